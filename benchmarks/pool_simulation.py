"""Simulated judging of Vaswani and CACM with 33 runs of 8 teams, and what a simulation of the track's size would take.

    python benchmarks/pool_simulation.py [--collections vaswani,cacm] [--trials 10] [--runs runs] [--out simulations]
    python benchmarks/pool_simulation.py --collections "" --sizes 11429,100000,1000000

The complete judgments play the assessor, the official qrels come from the track's procedure over all runs by seed 0,
traces hold at most a tenth of the collection. Runs are made by `make runs` where they are not there. It prints for each
the verdict, Tables 5 to 7, the classical test, what holds of the sanity cases, seconds and peak memory; all
tables and figures are written below --out. Traces are kept there: killed and called again it continues.

The estimate is of 52 topics × 10 trials × (12 teams + all) with traces of 2,500 documents, from traces measured on
collections of the given sizes: Vaswani, and beyond it documents joined from two halves of its documents.
"""

from __future__ import annotations

import argparse
import random
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from shared_data import ROOT, SHARED, require_shared, table
from truerank import pool
from truerank.audits.reusability import Simulation
from truerank.audits.reusability.simulation.page import simulation_tables
from truerank.options import Workers
from truerank.records import Document
from truerank.sources import read_documents, read_qrels_frame, read_topics
from truerank.work.workers import processors

SOURCES = {"vaswani": ("docs.trec.gz", "topics.trec.txt"), "cacm": ("cacm.tar.gz", "topics.txt")}
RULES = {"vaswani": ("budget:200", "budget:300", "heuristic"), "cacm": ("budget:200", "budget:300", "heuristic")}
SHARE = 0.1
PRINTED = ("table5", "table6", "teams", "uniques", "table7", "budgets", "risks")
#: The track: topics, trials, teams left out and all, judgments of a trace, documents in a pool.
TRACK = (52, 10, 13, 2500, 100)
MEASURED = 3


def simulate(name: str, runs: Path, out: Path, trials: int, workers: int) -> None:
    """Simulates one collection and prints what it shows."""
    source, given = SHARED / "collections" / name, runs / name
    if not (given / "runs.tsv").is_file():
        subprocess.run(
            [sys.executable, str(ROOT / "scripts" / "make_runs.py"), str(runs), "--collections", name], check=True
        )
    started = time.perf_counter()
    found = pool.simulate(
        sorted(given.glob("*.run")),
        str(source / "qrels.txt"),
        str(given / "topics.tsv"),
        str(source / SOURCES[name][0]),
        pooling=pool.Pooling(metadata=(str(given / "runs.tsv"),), sparse_qrels=str(given / "sparse.qrels")),
        options=pool.SimulationOptions(trials=trials, share=SHARE, stopping_rule=RULES[name]),
        processes=Workers(workers=workers),
        work=out / f"{name}.traces",
        out=out / name,
    )
    seconds = time.perf_counter() - started
    said, tables = pool.verdict_of(found), simulation_tables(found)
    print(f"\n## {name}\n")
    print("\n".join(f"- {sentence}" for sentence in (*said.sentences(), said.criteria())), "\n")
    for part in PRINTED:
        print(tables[part].markdown())
    print_sanity(found)
    print(
        f"{seconds:,.0f} s with {workers} processes (less where traces were kept), peak {peak():,.0f} MiB in the "
        f"process that compares, {peak(resource.RUSAGE_CHILDREN):,.0f} MiB in the largest worker.\n"
    )


def print_sanity(found: Simulation) -> None:
    """What has to hold of any simulation."""
    original, control = (found.judgings_of(rule) for rule in ("Original Size", "Random order, original size"))
    taus = [
        min(one.tau for one in found.of_rule(rule, "AP") if not one.left_out and one.tau is not None)
        for rule in ("Original Size", "Random order, original size")
    ]
    print(
        f"- The learner finds {min(one.relevant for one in original):,} relevant documents or more, random order "
        f"{max(one.relevant for one in control):,} or fewer, at the same {original[0].judgments:,} judgments; "
        f"smallest τ of AP {taus[0]:.4f} and {taus[1]:.4f}."
    )


def estimate(sizes: list[int]) -> None:
    """Prints what a simulation of the track's size would take."""
    topics, trials, conditions, length, pooled = TRACK
    traces = topics * (1 + trials * conditions)
    rows = []
    for size in sizes:
        started = time.perf_counter()
        features = pool.Features.of_documents(documents(size))
        built = time.perf_counter() - started
        seconds, steps, judged = [], 0, 0
        for topic, text, grades in some_topics():
            started = time.perf_counter()
            done = pool.trace(
                features, topic, text, features.doc_ids[:pooled], lambda key, known=grades: known.get(key, 0),
                length=length, seed=1,
            )  # fmt: skip
            seconds.append(time.perf_counter() - started)
            steps, judged = max(done.batches), len(done)
        mean = sum(seconds) / len(seconds)
        whole = mean * traces / 3600
        rows.append(
            (
                f"{size:,}", f"{built:.0f}", f"{mean:.2f}", steps, f"{judged:,}", f"{1000 * mean / steps:.1f}",
                f"{whole:.1f}", f"{whole / processors():.1f}", f"{peak():,.0f}",
            )
        )  # fmt: skip
    header = (
        "documents", "features, s", "a trace, s", "trainings", "judged", "a step, ms",
        f"{traces:,} traces, processor hours", f"hours on {processors()} processors", "peak MiB",
    )  # fmt: skip
    print("\n## The track's size\n")
    print(table(header, rows))


def documents(size: int) -> Iterator[Document]:
    """Vaswani's documents, and beyond them documents joined from halves of two of these."""
    real = list(read_documents(str(SHARED / "collections" / "vaswani" / SOURCES["vaswani"][0])))
    yield from real[:size]
    draw = random.Random(5)
    for number in range(len(real), size):
        first, second = (draw.choice(real).text.split() for _ in range(2))
        yield Document(f"g{number}", body=" ".join(first[: len(first) // 2] + second[len(second) // 2 :]))


def some_topics() -> Iterator[tuple[str, str, dict[str, int]]]:
    """A few topics of Vaswani with their grades."""
    source = SHARED / "collections" / "vaswani"
    qrels = read_qrels_frame(str(source / "qrels.txt"))
    for topic in read_topics(str(source / SOURCES["vaswani"][1])).topics[:MEASURED]:
        rows = qrels.filter(qrels["topic_id"] == topic.topic_id)
        yield topic.topic_id, topic.title, dict(rows.select("doc_id", "relevance").iter_rows())


def peak(who: int = resource.RUSAGE_SELF) -> float:
    """Peak memory in MiB."""
    return resource.getrusage(who).ru_maxrss / 1024


def main() -> None:
    """Prints the simulations and the estimate."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--collections", default=",".join(SOURCES))
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--runs", type=Path, default=Path("runs"))
    parser.add_argument("--out", type=Path, default=Path("build/simulations"))
    parser.add_argument("--workers", type=int, default=processors())
    parser.add_argument("--sizes", default="11429,100000", help="of the collections that traces are measured on")
    given = parser.parse_args()
    require_shared()
    for name in filter(None, given.collections.split(",")):
        simulate(name, given.runs, given.out, given.trials, given.workers)
    if given.sizes:
        estimate([int(size) for size in given.sizes.split(",")])


if __name__ == "__main__":
    main()
