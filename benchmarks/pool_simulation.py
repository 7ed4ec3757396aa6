"""Simulated judging of Vaswani and CACM with 33 runs of 8 teams, and what a simulation of the track's size takes.

    python benchmarks/pool_simulation.py [--collections vaswani,cacm] [--trials 10] [--runs runs] [--out simulations]
    python benchmarks/pool_simulation.py scale [--documents 100000 1000000 3200000] [--simulate 100000] [--work DIR]

The complete judgments play the assessor, the official qrels come from the track's procedure over all runs by seed 0,
traces hold at most a tenth of the collection. The runs are the lab's. It prints for each the verdict, Tables 5 to 7,
the classical test, what holds of the sanity cases, seconds and peak memory; all tables and figures are written below
--out. Traces are kept there: killed and called again it continues.

`scale` measures a step on generated documents (see `pool_scale`), plans 52 topics × 13 pools × 10 trials from it on 1,
16 and 256 machines, and runs a simulation of 4 topics × 3 pools × 2 trials. Features are kept in --work.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import time
from pathlib import Path

from shared_data import SHARED, require_shared
from truerank import pool
from truerank.audits.pool import Simulation
from truerank.audits.pool.page import simulation_tables
from truerank.options import Workers
from truerank.work.engines import processors

SOURCES = {"vaswani": ("docs.trec.gz", "topics.trec.txt"), "cacm": ("cacm.tar.gz", "topics.txt")}
RULES = {"vaswani": ("budget:200", "budget:300", "heuristic"), "cacm": ("budget:200", "budget:300", "heuristic")}
SHARE = 0.1
PRINTED = ("table5", "table6", "teams", "uniques", "table7", "budgets", "risks")
#: As in the workers of truerank.
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def simulate(name: str, runs: Path, out: Path, trials: int, workers: int) -> None:
    """Simulates one collection and prints what it shows."""
    source, given = SHARED / "collections" / name, runs / name
    if not (given / "runs.tsv").is_file():
        sys.exit(f"{given}: no runs; the lab's `python -m truerank_lab.papers.track_runs {runs}` writes them")
    started = time.perf_counter()
    found = pool.simulate(
        sorted(given.glob("*.run")),
        str(source / "qrels.txt"),
        str(given / "topics.tsv"),
        str(source / SOURCES[name][0]),
        pooling=pool.Pooling(metadata=(str(given / "runs.tsv"),), sparse_qrels=str(given / "sparse.qrels")),
        options=pool.SimulationOptions(trials=trials, share=SHARE, stopping=RULES[name]),
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


def peak(who: int = resource.RUSAGE_SELF) -> float:
    """Peak memory in MiB."""
    return resource.getrusage(who).ru_maxrss / 1024


def main() -> None:
    """Prints the simulations and the estimate."""
    parser = argparse.ArgumentParser()
    parser.add_argument("what", nargs="?", choices=("collections", "scale"), default="collections")
    parser.add_argument("--collections", default=",".join(SOURCES))
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--runs", type=Path, default=Path("runs"))
    parser.add_argument("--out", type=Path, default=Path("build/simulations"))
    parser.add_argument("--workers", type=int, default=processors())
    parser.add_argument("--documents", type=int, nargs="*", default=[100_000, 1_000_000, 3_200_000])
    parser.add_argument("--words", type=int, default=120, help="of a generated document")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--simulate", type=int, default=100_000, help="documents of the simulation; 0 for none")
    parser.add_argument("--work", type=Path, default=Path("build/pool-scale"))
    given = parser.parse_args()
    if given.what == "scale":
        for name in THREADS:
            os.environ[name] = "1"
        import pool_scale

        if given.documents:
            pool_scale.scale(given.documents, given.words, given.rounds, given.work)
        if given.simulate:
            pool_scale.simulated(given.simulate, 4, 2, given.work)
        return
    require_shared()
    for name in filter(None, given.collections.split(",")):
        simulate(name, given.runs, given.out, given.trials, given.workers)


if __name__ == "__main__":
    main()
