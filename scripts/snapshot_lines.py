"""Small generated data, and the command lines over them that `snapshots.py` runs."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

LEFT_OUT: Final = {"judge serve": "waits for people"}
_AUDIT: Final = "--train in/train.tsv --test in/topics.trec --encoder letters --threshold 0.95"
_RUNS: Final = "--run in/a1.run --run in/b1.run --run in/c1.run"
#: By command and label. OUT is where the line writes, COMMAND/LABEL/out; others may read it there. "FROM TO; " copies a file
#: first. "! " stands before what is too slow to be printed in each form; "--out OUT" at the end is left out there.
LINES: Final = {
    "check": {
        "sample": "! sample --encoder letters --out OUT",
    },
    "leakage audit": {
        "exhaustive": f"{_AUDIT} --out OUT",
        "prefilter": f"{_AUDIT} --mode prefilter --out OUT",
    },
    "leakage clean": {
        "train": "--audit leakage-audit/exhaustive/out --train in/train.tsv --out OUT/clean.tsv",
    },
    "collection audit": {
        "full": "--docs in/repeated.jsonl --topics in/topics.tsv --qrels in/qrels --workers 1 --out OUT",
    },
    "index": {"docs": "in/docs.jsonl --out OUT/index"},
    "search": {"bm25": "--index index/docs/out/index --topics in/topics.tsv -k 20 --out OUT/x.run"},
    "evaluate": {"runs": f"--qrels in/qrels {_RUNS} --per-topic --plot --out OUT/x"},
    "compare": {"runs": f"--qrels in/qrels {_RUNS} --plot --out OUT/x"},
}


@contextlib.contextmanager
def inputs(folder: Path) -> Iterator[None]:
    """Writes what the lines read."""
    import small_data
    from truerank.sources.sample import sample_folder

    small_data.write_inputs(folder)
    shutil.copytree(sample_folder(), folder / "sample")
    yield
