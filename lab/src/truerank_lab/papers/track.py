"""Tables 2 to 7 of the track paper in small: runs, their report, pools, judged topics, simulated judging.

    python -m truerank_lab.papers.track [--out FOLDER] [--full] [--dry-run]

`make reproduce-track` calls it. Vaswani stands for the document task and CACM for the passage task, with 33 runs of 8
teams that `track_runs` makes, and their judgments for the assessors. For each task:

    Tables 2 to 4   `track report` of the runs; `track candidates`: what the rerank subtask starts from
    the pools       `pool build`: the first ten documents of each run, and the sparse judgments
    Tables 6 and 7  `pool simulate`: the track's procedure over these pools, with every team left out, and other rules
    Table 5         `pool topics` of the qrels that the procedure made

Small: 12 topics and 2 trials; --full: all topics and 10 trials. Ended anywhere and called again, it goes on.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import polars as pl

from truerank.audits import pool, track
from truerank.audits.pool.page import simulation_tables, topic_table
from truerank.audits.track.page import counts_table, results_table
from truerank.errors import TruerankError
from truerank.options import Workers
from truerank_lab.papers import track_runs
from truerank_lab.papers.track_runs import Collection

#: The collection that stands for each of the paper's tasks, the number of candidates of its rerank subtask.
TASKS: Final = {"vaswani": ("documents", 100), "cacm": ("passages", 1000)}


class Size(NamedTuple):
    """How large a reproduction is: topics (None for all), trials, runs (none for all), systems unlike the runs, and the
    share of the collection that is judged for a topic at most."""

    topics: int | None
    trials: int
    runs: tuple[str, ...] = ()
    unlike: str = "auto"
    share: float = 0.1


SMALL: Final = Size(12, 2)
FULL: Final = Size(None, 10)


def reproduce(
    name: str, collection: Collection, qrels: pl.DataFrame, folder: Path, size: Size
) -> tuple[track.TrackReport, pool.TopicStatistics, pool.Simulation]:
    """Runs, report, pools and simulation of one task, into the folder; prints the tables.

    Args:
        name: the task.
        collection: documents and topics.
        qrels: what the assessors say.
        folder: what is there already is not made again.
        size: how large it is.

    Returns:
        The report (Tables 2 to 4), the judged topics (Table 5), and the simulation (Tables 6 and 7).
    """
    task, candidates = TASKS.get(name, (name, 100))
    chosen = dict(list(collection.topics.items())[: size.topics])
    given, judged, topics = folder / "runs", folder / "judged.qrels", str(folder / "runs" / "topics.tsv")
    own = qrels.filter(pl.col("topic_id").is_in(list(chosen)))
    if not (given / "topics.tsv").is_file():
        track_runs.write(collection._replace(topics=chosen), own, given, wanted=size.runs)
        judged.write_text("".join(f"{topic} 0 {doc_id} {grade}\n" for topic, doc_id, grade in own.iter_rows()))
    runs, sparse, metadata = sorted(given.glob("*.run")), str(given / "sparse.qrels"), str(given / "runs.tsv")

    found = track.report(
        runs,
        str(judged),
        sparse_qrels=sparse,
        metadata=[metadata],
        options=track.TrackReportOptions(title=f"Track, {task}", topics=topics),
        files=track.CountedFiles(collection=(collection.source,), queries=(f"Test queries={topics}",)),
        out=folder / "report",
    )
    print(counts_table(found.analysis).text(), results_table(found.analysis.scores).text(), sep="\n")
    print(track.candidates(given / "okapi-bm25.run", folder / "candidates.tsv", k=candidates, topics=topics))

    pooling = pool.Pooling(depth=10, metadata=(metadata,), sparse_qrels=sparse)
    print(pool.build(runs, topics=topics, qrels=str(judged), pooling=pooling, out=folder / "pool"))
    options = pool.SimulationOptions(
        trials=size.trials, share=size.share, stopping=("budget:200", "budget:300", "heuristic"), unlike=size.unlike
    )
    simulated = pool.simulate(
        runs,
        str(judged),
        topics,
        collection.source,
        pooling=pooling,
        options=options,
        processes=Workers(),
        work=folder / "traces",
        out=folder / "simulation",
    )
    statistics = pool.topics(folder / "simulation" / "official.qrels", out=folder / "kept.txt")
    tables = simulation_tables(simulated)
    print(*(table.text() for table in (topic_table(statistics), tables["table6"], tables["table7"])), sep="\n")
    return found, statistics, simulated


def main(words: Sequence[str] | None = None) -> None:
    """Both tasks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("track-reproduction"))
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--dry-run", action="store_true", help="say what is made, and stop")
    given = parser.parse_args(words)
    root, size = track_runs.SHARED / "data" / "collections", FULL if given.full else SMALL
    if not root.is_dir():
        sys.exit(f"no collections at {root}: set TRUERANK_SHARED to the folder that holds data/")
    try:
        for name, (task, _) in TASKS.items():
            collection, qrels = track_runs.read(name, root)
            topics = min(len(collection.topics), size.topics or len(collection.topics))
            print(
                f"{name} for the {task}: 33 runs of 8 teams over {topics} topics; {size.trials} trials with all teams"
            )
            print(f"and as many with each team left out: {9 * size.trials * topics:,} traces of a topic")
            if not given.dry_run:
                reproduce(name, collection, qrels, given.out / name, size)
    except TruerankError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
