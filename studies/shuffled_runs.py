"""Whether a run whose results belong to other topics is told by another run, and runs as they are left alone.

    python studies/shuffled_runs.py

Each pair of runs at hand, both ways: the topics of the first one are left alone, all are shuffled, or every other one.
The three runs of DL 2019 rerank the same documents; each of Common Core has a run of its judged documents.
"""

from __future__ import annotations

import itertools
import random

import polars as pl

from common import SHARED, require_shared, table
from truerank.audits.collection.judgments import read_judgments, usable
from truerank.audits.collection.run_faults import Files
from truerank.audits.collection.run_origins import run_origins
from truerank.sources.runs import read_run_frame

RUNS = {
    "dl19-passage": [f"survivorship/runs/{name}.dl19.run.gz" for name in ("monot5", "monot5-sim1", "monot5-sim5")],
    "core17": [f"spire22/runs/nyt-{name}.run.gz" for name in ("common-core-2017-bm25-anserini", "ac-common-core-2017")],
    "core18": [f"spire22/runs/wapo-v2-common-core-2018{name}.run.gz" for name in ("-bm25-anserini", "")],
}


def shuffled(run: pl.DataFrame, step: int) -> pl.DataFrame:
    """The run with the results of every so many topics dealt out anew."""
    topics = sorted(run["topic_id"].unique())[::step]
    names = dict(zip(topics, random.Random(1).sample(topics, len(topics)), strict=True))
    return run.with_columns(pl.col("topic_id").replace(names))


def main() -> None:
    """Prints how many of the first runs are called misplaced, and how many of the others."""
    require_shared()
    rows = []
    for name, paths in RUNS.items():
        qrels = usable(read_judgments(str(SHARED / "qrels" / f"{name}.qrels.gz")))
        runs = {path: read_run_frame(SHARED / path) for path in paths}
        pairs = list(itertools.permutations(paths, 2))
        for how, step in (("left alone", 0), ("shuffled", 1), ("every other topic shuffled", 2)):
            named = []
            for one, other in pairs:
                given = {one: shuffled(runs[one], step) if step else runs[one], other: runs[other]}
                found = run_origins(Files(given, (one, other), qrels, None, None, 10), 1)
                named += [fault.run == one for fault in found if fault.kind == "misplaced-run"]
            rows.append((name, how, str(len(pairs)), str(sum(named)), str(len(named) - sum(named))))
    print(table(("runs of", "topics of the first run", "pairs", "called misplaced", "the other called so"), rows))


if __name__ == "__main__":
    main()
