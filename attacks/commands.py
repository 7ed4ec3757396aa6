"""Commands on small generated data, for attacks on running commands."""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path
from typing import Final

from processes import Attacked, run
from small_data import write_inputs

__all__ = ["left_over", "make", "outputs"]

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "attacks" / "plugin")]
os.environ.update(POLARS_MAX_THREADS="1", OMP_NUM_THREADS="1", RAYON_NUM_THREADS="1")
#: Files with times in them, or of a database that grows in another order: their bytes may differ.
UNSTABLE: Final = ("run.log", "cell.log", ".sqlite", ".sqlite-wal", ".sqlite-shm", "-journal")
_AUDIT: Final = (
    "leakage audit --train IN/train.tsv --test IN/topics.trec --encoder letters --threshold 0.95 --block-size 64"
)
#: IN is the folder of the inputs, OUT the one for everything that a command writes.
_LINES: Final = {
    "audit": f"{_AUDIT} --mode exhaustive --out OUT/out",
    "audit by prefilter": f"{_AUDIT} --mode prefilter --out OUT/out",
    "redacted audit": f"{_AUDIT} --mode exhaustive --redact --redact-key IN/key --out OUT/out",
    "transfer scan": (
        "transfer scan --model bm25 --version old=IN/old.jsonl --version new=IN/new.jsonl --qrels IN/old.qrels"
        " --topics IN/old.topics --split sliding:30:15 --block-size 4 --out OUT/out"
    ),
    "pool simulate": (
        "pool simulate --run IN/a1.run --run IN/b1.run --run IN/c1.run --qrels IN/qrels --topics IN/topics.tsv"
        " --docs IN/docs.jsonl --depth 5 --trials 1 --length 60 --team-prefix 1 --workers 1 --stopping budget:30"
        " --official-rule budget:20 --unlike none --out OUT/out"
    ),
    "experiment run": "experiment run IN/design.yaml --workers 1 --out OUT/out",
    "index": "index IN/docs.jsonl --workers 1 --out OUT/out",
    "rerank": (
        "rerank --run IN/first.run --topics IN/topics.tsv --docs IN/docs.jsonl --model bm25:IN/index --depth 40"
        " --cache OUT/cache.sqlite --out OUT/out/x.run"
    ),
    "collection audit": (
        "collection audit --docs IN/repeated.jsonl --topics IN/topics.tsv --qrels IN/qrels --workers 1 --out OUT/out"
    ),
    "collection clean": "collection clean --qrels IN/qrels --audit IN/collection-audit --out OUT/out",
    "leakage examples": (
        "leakage examples --train IN/examples.jsonl --test IN/topics.tsv --docs IN/repeated.jsonl --qrels IN/qrels"
        " --semantic none --workers 1 --out OUT/out"
    ),
    "check": (
        "check --test IN/topics.tsv --qrels IN/qrels --docs IN/repeated.jsonl --run IN/a1.run --run IN/b1.run"
        " --run IN/c1.run --baseline a1 --trials 20 --out OUT/out"
    ),
    "evaluate": "evaluate --qrels IN/qrels --run IN/first.run --run IN/a1.run --out OUT/out",
    "search": "search --index IN/index --topics IN/topics.tsv -k 20 --workers 1 --out OUT/out/x.run.gz",
    "transfer match": (
        "transfer match --version old=IN/old.jsonl --version new=IN/new.jsonl --qrels IN/old.qrels --out OUT/out"
    ),
    "leakage matrix": "leakage matrix IN/suite.yaml --encoder letters --workers 1 --out OUT/out",
    "instances build": (
        "instances build --kind none --size 40 --queries-from-documents IN/untitled.jsonl --workers 1 --out OUT/out"
    ),
    "clean": "leakage clean --audit IN/audit --train IN/train.tsv --threshold 0.95 --out OUT/out/clean.tsv",
}


def make(folder: Path) -> dict[str, Attacked]:
    """Writes the inputs and returns the commands by name."""
    write_inputs(folder)
    env = {"TRUERANK_CACHE": str(folder / "cache")}
    found = {name: Attacked(line, folder, env) for name, line in _LINES.items()}
    for name in ("audit", "index", "collection audit"):
        if not (folder / name.replace(" ", "-")).is_dir():
            done = run(found[name], folder / "made" / name)
            if done.code != 0:
                raise RuntimeError(f"{name} fails: {done.said[-2000:]}")
            (folder / "made" / name / "out").rename(folder / name.replace(" ", "-"))
    return found


def outputs(out: Path) -> dict[str, str]:
    """The files with a final name and the hash of their bytes, without those whose bytes may differ."""
    found = {}
    for file in sorted(out.rglob("*")):
        name = str(file.relative_to(out))
        hidden = any(part.startswith(".") for part in Path(name).parts)
        if file.is_file() and not hidden and not name.endswith(UNSTABLE):
            found[name] = hashlib.sha256(file.read_bytes()).hexdigest()
    return found


def left_over(out: Path) -> list[str]:
    """Hidden files and folders: unfinished work, temporary names, locks."""
    return [str(path.relative_to(out)) for path in sorted(out.rglob("*")) if path.name.startswith(".")]
