"""On a GPU: leakage audit, reranking and training beside sentence-transformers, and how far scores are from the CPU's.

    python benchmarks/gpu.py [--device cuda] [--out gpu.json] [--small] [--only PART …]

runs leakage_audit.py, reranking.py and training_throughput.py with `--device`, each in a process of its own, prints
their tables, and writes the rates of all rounds into one file. The part `agreement` scores pairs of Vaswani with every
kind of ranker on the CPU and on the device, and trains both on the same few instances. The trainer of
sentence-transformers needs `pip install datasets`.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from shared_data import require_shared, table

#: Part: script, arguments, and those of `--small`.
PARTS: dict[str, tuple[str, str, str]] = {
    "audit": ("leakage_audit.py", "speed --sample 146092", "--sample 2000 --rounds 1"),
    "reranking": ("reranking.py", "vaswani --topics 93", "--pairs 40 --repeats 1 --topics 1"),
    "reranking-base": ("reranking.py", "vaswani --topics 93 --shape 12x768", "--pairs 8 --repeats 1 --topics 1"),
    "training": ("training_throughput.py", "--instances 1024", "--instances 8 --repeats 1"),
    "training-bf16": ("training_throughput.py", "--instances 1024 --precision bf16", "--instances 8 --repeats 1"),
    "training-64": ("training_throughput.py", "--instances 2048 --batch 64", "--instances 64 --repeats 1"),
}
#: Kinds that begin with the packaged MiniLM; the others are drawn.
PACKAGED = ("monobert", "ance", "colbert", "cedr", "parade")
DRAWN = ("knrm", "pacrr", "duet", "hint", "tk")
SEED = 1


def agreement(device: str, pairs_compared: int, folder: Path) -> list[tuple[Any, ...]]:
    """Kind, largest difference of a score from the CPU's, and the losses of a short training on both."""
    from reranking import candidates
    from training import instances, read
    from truerank.rankers.base import RANKERS, Runtime, open_ranker
    from truerank_lab.rankers.recipes import recipe_named

    pairs = candidates("vaswani", 5, folder / "pairs")[:pairs_compared]
    data = read("vaswani", folder)
    rows = instances(data, list(data.topics), 64, 0, permuted=False)
    recipe = recipe_named("truerank").changed({"lr": 1e-4, "batch": 8, "accumulate": 1, "shuffle": 0})

    def opened(kind: str, place: str) -> Any:
        if kind in DRAWN:
            return RANKERS.load(kind).create(data.vocabulary, Runtime(device=place), seed=SEED)
        more = {"dimension": 64} if kind == "colbert" else {"seed": SEED} if kind != "ance" else {}
        return open_ranker(f"{kind}:packaged", device=place, backend="torch", **more)

    found = []
    for kind in (*PACKAGED, *DRAWN):
        scores, losses = [], []
        for place in ("cpu", device):
            ranker = opened(kind, place)
            scores.append(ranker.score(pairs))
            fitted = ranker.fit(rows, recipe, seed=0, folder=folder / f"{kind}-{place}")
            losses.append(fitted.json()["loss"]["last_tenth"])
        largest = float(np.abs(scores[0] - scores[1]).max())
        found.append((kind, f"{largest:.1e}", f"{np.ptp(scores[0]):.3g}", *(f"{loss:.4f}" for loss in losses)))
        print(*found[-1], file=sys.stderr, flush=True)
    return found


def machine(device: str) -> dict[str, str]:
    """What the figures were made on."""
    import sentence_transformers
    import torch
    import transformers

    from truerank.vectors.encoders.speed import processor_name

    card = torch.cuda.get_device_name(device) if device.startswith("cuda") else "none"
    versions = {each.__name__: each.__version__ for each in (torch, transformers, sentence_transformers)}
    return {"card": card, "processor": processor_name(), "python": platform.python_version(), **versions}


def main() -> None:
    """Runs all of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--out", type=Path, default=Path("gpu.json"))
    parser.add_argument("--small", action="store_true", help="whether it runs, not how fast")
    parser.add_argument("--only", nargs="*", default=[], choices=(*PARTS, "agreement"))
    given = parser.parse_args()
    require_shared()
    found: dict[str, Any] = {"machine": machine(given.device)}
    print(found["machine"], flush=True)
    failed = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for name, (script, arguments, small) in PARTS.items():
            if given.only and name not in given.only:
                continue
            path = Path(__file__).with_name(script)
            words = [*arguments.split(), *(small.split() if given.small else ())]
            command = [sys.executable, str(path), *words, "--device", given.device, "--json", str(folder / "part.json")]
            print(f"\n{name}: {script} {' '.join(words)}", flush=True)
            if subprocess.run(command, check=False).returncode:
                failed.append(name)
                continue
            found[name] = json.loads((folder / "part.json").read_text())
            given.out.write_text(json.dumps(found, indent=1))
        if not given.only or "agreement" in given.only:
            (folder / "pairs").mkdir()
            rows = agreement(given.device, 20 if given.small else 500, folder)
            header = ("ranker", "largest difference", "range of scores", "loss on the CPU", f"loss on {given.device}")
            print("\n" + table(header, rows), flush=True)
            found["agreement"] = [dict(zip(header, row, strict=True)) for row in rows]
    given.out.write_text(json.dumps(found, indent=1))
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
