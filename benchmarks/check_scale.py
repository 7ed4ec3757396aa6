"""Processor time and memory of `check` on folders of real sizes, by question.

    python benchmarks/check_scale.py [nfcorpus scifact trec-covid fever] [--documents] [--topics N] [--ignore QUESTION]
    python benchmarks/check_scale.py nfcorpus --beside ../before/src --rounds 3    in turn with another version

Topics, judgments, runs and documents are generated; numbers of topics, runs, results and documents are those of the
collections that the sizes are named after. Each size runs in a process of its own. Without `--documents`, only runs and
judgments are given.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

import truerank
from generated_documents import texts, vocabulary
from shared_data import table
from truerank.claims.options import ClaimOptions, ClaimSources
from truerank.work.progress import Quiet


class Size(NamedTuple):
    """Topics, runs, results of a topic, documents, and judged and relevant documents of a topic."""

    topics: int
    runs: int
    results: int
    documents: int
    judged: int
    relevant: int


SIZES = {
    "nfcorpus": Size(323, 20, 1000, 3_633, 38, 38),
    "scifact": Size(300, 20, 1000, 5_183, 1, 1),
    "trec-covid": Size(50, 20, 1000, 171_332, 1_300, 490),
    "fever": Size(6_666, 2, 1000, 5_416_568, 1, 1),
}
#: Words of a generated document on average, and the spread of their logarithm.
_WORDS, _SPREAD = 200, 0.3


def write(size: Size, folder: Path, seed: int = 1, *, documents: bool = False) -> None:
    """Judgments, runs whose quality grows with their number, and documents where these are wanted."""
    draw = np.random.default_rng(seed)
    judged = [draw.choice(size.documents, size.judged, replace=False) for _ in range(size.topics)]
    rows = [
        (f"q{topic}", f"D{doc:07d}", int(place < size.relevant) * (1 + int(place % 3 == 0)))
        for topic, docs in enumerate(judged)
        for place, doc in enumerate(docs)
    ]
    lines = (f"{topic} 0 {doc} {grade}\n" for topic, doc, grade in rows)
    (folder / "test.qrels").write_text("".join(lines))
    pools = [
        draw.choice(size.documents, min(size.documents, 2 * size.results), replace=False) for _ in range(size.topics)
    ]
    for number in range(size.runs):
        frames = []
        for topic, (docs, pool) in enumerate(zip(judged, pools, strict=True)):
            good = docs[: size.relevant]
            found = np.unique(np.concatenate([good, pool]))
            values = np.where(np.isin(found, good), 1.5 + 0.05 * number, 0.0) + draw.normal(size=len(found))
            order = np.argsort(-values)[: size.results]
            frames.append(
                pl.DataFrame({"topic": f"q{topic}", "doc": found[order], "score": values[order].round(4)}).with_columns(
                    rank=pl.int_range(1, len(order) + 1)
                )
            )
        run = pl.concat(frames).select(
            pl.concat_str(
                "topic", pl.lit("Q0"), pl.format("D{}", pl.col("doc").cast(pl.String).str.zfill(7)), "rank", "score",
                pl.lit(f"r{number}"), separator=" ",
            )
        )  # fmt: skip
        run.write_csv(folder / f"run{number:02d}.run", include_header=False, quote_style="never")
    if documents:
        words = vocabulary()
        with (folder / "docs.jsonl").open("w", encoding="ascii") as target:
            for place, text in enumerate(texts(size.documents, words, mean=_WORDS, spread=_SPREAD)):
                target.write(json.dumps({"_id": f"D{place:07d}", "title": "", "text": text}) + "\n")
        with (folder / "topics.tsv").open("w", encoding="ascii") as target:
            for topic, text in enumerate(texts(size.topics, words, seed=2)):
                target.write(f"q{topic}\t{' '.join(text.split(' ')[5:13])}\n")


class Questions(Quiet):
    """Processor time and largest memory (GiB) of each question, and of reading before the first one."""

    def __init__(self) -> None:
        self.taken: dict[str, tuple[float, float]] = {}
        self._name, self._begun = "reading", time.process_time()

    def start(self, what: str, total: int | None = None) -> None:
        """A step begins."""
        if what.startswith("check: "):
            self.end(what.removeprefix("check: ").partition(" (")[0])

    def end(self, following: str = "") -> None:
        """The question that was asked is answered."""
        now = time.process_time()
        self.taken[self._name] = now - self._begun, largest()
        self._name, self._begun = following, now


def largest() -> float:
    """The largest memory of this process since this was last asked, in GiB; 0 where the system does not say."""
    status = Path("/proc/self/status")
    if not status.exists():
        return 0.0
    found = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
    Path("/proc/self/clear_refs").write_text("5")
    return int(found.split()[1]) / 2**20


def checked(folder: Path, ignore: Sequence[str]) -> None:
    """One check, with its times by question, in a process of its own."""
    progress, start = Questions(), time.process_time()
    given = {"qrels": str(folder / "test.qrels"), "run": tuple(map(str, sorted(folder.glob("*.run"))))}
    if (folder / "docs.jsonl").exists():
        given |= {"docs": str(folder / "docs.jsonl"), "test": str(folder / "topics.tsv")}
    options = ClaimOptions(ignore=tuple(ignore))
    found = truerank.check(sources=ClaimSources(**given), options=options, progress=progress)
    progress.end()
    total = time.process_time() - start
    peak = max(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, *(gib for _, gib in progress.taken.values()))
    answers = hashlib.sha256(json.dumps(found.json(), sort_keys=True, default=str).encode()).hexdigest()
    result = {"word": found.conclusion.word, "seconds": total, "peak": peak, "by": progress.taken, "answers": answers}
    print(json.dumps(result))


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sizes", nargs="*", default=["nfcorpus", "scifact", "trec-covid"])
    parser.add_argument("--documents", action="store_true")
    parser.add_argument("--topics", type=int, help="fewer topics than the collection has")
    parser.add_argument("--ignore", action="append", default=[], help="a question to leave out")
    parser.add_argument("--beside", type=Path, metavar="SRC", help="the src folder of another version")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.folder:
        checked(options.folder, options.ignore)
        return
    sources = {"now": Path(truerank.__file__).parents[1], **({"before": options.beside} if options.beside else {})}
    rows = []
    for name in options.sizes:
        size = SIZES[name]
        if options.topics:
            size = size._replace(topics=min(size.topics, options.topics))
        with tempfile.TemporaryDirectory() as folder:
            write(size, Path(folder), documents=options.documents)
            own = [sys.executable, __file__, "--folder", folder, *(f"--ignore={one}" for one in options.ignore)]
            found: dict[str, list[dict[str, Any]]] = {version: [] for version in sources}
            for _ in range(options.rounds):
                for version, source in sources.items():
                    # As the command line has it.
                    environment = os.environ | {"PYTHONPATH": str(source.resolve()), "OPENBLAS_THREAD_TIMEOUT": "16"}
                    done = subprocess.run(own, capture_output=True, text=True, check=True, env=environment)
                    found[version].append(json.loads(done.stdout.splitlines()[-1]))
        same = {version: {one["answers"] for one in rounds} for version, rounds in found.items()}
        for version, rounds in found.items():
            rounds.sort(key=lambda one: float(one["seconds"]))
            low, middle, high = rounds[0], rounds[len(rounds) // 2], rounds[-1]
            by = [f"{key} {value:.1f} s {gib:.2f}" for key, (value, gib) in middle["by"].items() if value >= 0.05]
            rows.append(
                (
                    name, size.topics, size.runs, size.results, size.documents if options.documents else 0,
                    f"{middle['seconds']:.1f}", f"{middle['peak']:.2f}", middle["word"], ", ".join(by), version,
                    f"{low['seconds']:.1f} to {high['seconds']:.1f}",
                    "same" if same[version] == same["now"] else "other",
                )
            )  # fmt: skip
    heads = (
        "size", "topics", "runs", "results", "documents", "seconds (median)", "GiB", "word", "by question", "version",
        "range", "answers",
    )  # fmt: skip
    print(table(heads, rows))


if __name__ == "__main__":
    main()
