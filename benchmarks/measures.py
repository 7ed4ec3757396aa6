"""Scores generated runs with truerank and with the tools that people use, and prints times, peaks and agreement.

Every tool reads the same files in a process of its own, and every time includes the reading:

    python benchmarks/measures.py                    # 10 measures, 2,000 topics x 1,000 results, one run
    python benchmarks/measures.py --large            # and 7,000 topics x 1,000 results, five runs
    python benchmarks/measures.py --gzip             # the same runs, compressed
    python benchmarks/measures.py --parquet          # the same runs as Parquet; for the others, read by polars
    python benchmarks/measures.py --ranx PYTHON      # ranx too, in the environment of another interpreter

ranx brings numba and stays out of this project's environment. To have it: `python -m venv /tmp/ranx &&
/tmp/ranx/bin/pip install ranx`, then `--ranx /tmp/ranx/bin/python`.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import Any, TextIO

from shared_data import peak_memory

MEASURES = "nDCG@10 nDCG P@10 AP R@100 R@1000 RR Rprec Bpref Success@5"
TREC = {
    "nDCG@10": "ndcg_cut_10", "nDCG": "ndcg", "P@10": "P_10", "AP": "map", "R@100": "recall_100",
    "R@1000": "recall_1000", "RR": "recip_rank", "Rprec": "Rprec", "Bpref": "bpref", "Success@5": "success_5",
}  # fmt: skip
RANX = {
    "nDCG@10": "ndcg@10", "nDCG": "ndcg", "P@10": "precision@10", "AP": "map", "R@100": "recall@100",
    "R@1000": "recall@1000", "RR": "mrr", "Rprec": "r-precision", "Bpref": "bpref", "Success@5": "hit_rate@5",
}  # fmt: skip

#: By measure, the values of run after run in the order of the topics of the qrels.
Values = dict[str, list[float]]


def opened(path: str) -> TextIO:
    """A run as text, compressed or not."""
    return gzip.open(path, "rt") if path.endswith(".gz") else open(path)  # noqa: PTH123


def rows(path: str) -> Iterable[tuple[str, str, float]]:
    """Topic, document and score of each row of a Parquet file."""
    import polars as pl

    return pl.read_parquet(path, columns=["topic_id", "doc_id", "score"]).iter_rows()


def score_with_truerank(qrels: str, runs: list[str]) -> Callable[[], Values]:
    """The library under test."""
    from truerank.measures import evaluate

    def score() -> Values:
        found = evaluate(qrels, runs, MEASURES)
        return {name: found.values[:, place].ravel().tolist() for place, name in enumerate(found.measures)}

    return score


def score_with_pytrec_eval(qrels: str, runs: list[str]) -> Callable[[], Values]:
    """trec_eval's own code in Python's process, with the parsers that come with it."""
    import pytrec_eval

    def score() -> Values:
        with open(qrels) as lines:  # noqa: PTH123
            judged = pytrec_eval.parse_qrel(lines)
        evaluator = pytrec_eval.RelevanceEvaluator(judged, set(TREC.values()))
        values: Values = {name: [] for name in TREC}
        for path in runs:
            if path.endswith(".parquet"):
                run: dict[str, dict[str, float]] = {}
                for topic, doc, number in rows(path):
                    run.setdefault(topic, {})[doc] = number
                found = evaluator.evaluate(run)
            else:
                with opened(path) as lines:
                    found = evaluator.evaluate(pytrec_eval.parse_run(lines))
            for name, trec in TREC.items():
                values[name] += [found[topic][trec] if topic in found else 0.0 for topic in judged]
        return values

    return score


def score_with_ir_measures(qrels: str, runs: list[str]) -> Callable[[], Values]:
    """ir_measures, which hands all of these on to pytrec_eval."""
    import ir_measures

    measures = [ir_measures.parse_measure(name) for name in MEASURES.split()]

    def score() -> Values:
        judged = list(ir_measures.read_trec_qrels(qrels))
        topics = {topic: place for place, topic in enumerate(dict.fromkeys(qrel.query_id for qrel in judged))}
        evaluator = ir_measures.evaluator(measures, judged)
        values: Values = {str(measure): [] for measure in measures}
        for path in runs:
            found = {name: [0.0] * len(topics) for name in values}
            packed = path.endswith(".parquet")
            with nullcontext(None) if packed else opened(path) as lines:
                results = (ir_measures.ScoredDoc(*row) for row in rows(path)) if packed else (
                    ir_measures.read_trec_run(lines)
                )  # fmt: skip
                for metric in evaluator.iter_calc(results):
                    found[str(metric.measure)][topics[metric.query_id]] = metric.value
            for name, column in found.items():
                values[name] += column
        return values

    return score


def score_with_ranx(qrels: str, runs: list[str]) -> Callable[[], Values]:
    """ranx; it compiles at its first call, so it scores a small run before the clock starts."""
    from ranx import Qrels, Run
    from ranx import evaluate as ranx_evaluate

    def score(qrels: str = qrels, runs: list[str] = runs) -> Values:
        judged = Qrels.from_file(qrels, kind="trec")
        lines = Path(qrels).read_text().splitlines()
        order = list(dict.fromkeys(line.split(maxsplit=1)[0] for line in lines))
        values: Values = {name: [] for name in RANX}
        for path in runs:
            run = Run.from_file(path, kind="trec")
            ranx_evaluate(judged, run, list(RANX.values()), make_comparable=True)
            for name, ranx in RANX.items():
                values[name] += [float(run.scores[ranx][topic]) for topic in order]
        return values

    with tempfile.TemporaryDirectory() as folder:
        small = Path(folder) / "small.qrels", Path(folder) / "small.run"
        small[0].write_text("1 0 a 1\n2 0 b 1\n")
        small[1].write_text("1 Q0 a 1 2.0 t\n1 Q0 b 2 1.0 t\n2 Q0 b 1 2.0 t\n2 Q0 a 2 1.0 t\n")
        score(str(small[0]), [str(small[1])])
    return score


TOOLS = {
    "truerank": score_with_truerank,
    "pytrec_eval": score_with_pytrec_eval,
    "ir_measures": score_with_ir_measures,
    "ranx": score_with_ranx,
}


def work(tool: str, qrels: str, runs: list[str]) -> None:
    """One tool in this process: its time, its peak, and the digest of its printed values by measure."""
    start = time.perf_counter()
    score = TOOLS[tool](qrels, runs)
    ready, used = time.perf_counter(), time.process_time()
    values = score()
    end, spent = time.perf_counter(), time.process_time() - used
    result = {
        "import": ready - start,
        "seconds": end - ready,
        "cpu": spent,
        "peak": peak_memory(),
        "digests": {name: digest(f"{value:.4f}" for value in column) for name, column in values.items()},
        "means": {name: sum(column) / len(column) for name, column in values.items()},
    }
    print(json.dumps(result))


def digest(printed: Iterable[str]) -> str:
    """One short text for many."""
    return hashlib.sha256("\n".join(printed).encode()).hexdigest()[:16]


def generate(folder: Path, topics: int, depth: int, runs: int, seed: int = 0) -> tuple[Path, list[Path]]:
    """Qrels with 50 judgments a topic, of which each run retrieves the same half, and runs that share nothing else."""
    import numpy as np
    import polars as pl

    generator = np.random.default_rng(seed)
    paths, retrieved = [], np.empty((topics, 0), np.int64)
    chosen = generator.permuted(np.tile(np.arange(depth), (topics, 1)), axis=1)[:, :25]
    for number in range(runs):
        # Distinct within a topic: consecutive stretches of a line of documents, one document drawn from each.
        documents = generator.integers(0, 8_800, (topics, depth)) + np.arange(depth) * 8_800
        if number == 0:
            retrieved = np.take_along_axis(documents, chosen, axis=1)
        np.put_along_axis(documents, chosen, retrieved, axis=1)
        documents = generator.permuted(documents, axis=1)
        scores = -np.sort(-generator.random((topics, depth)) * 30, axis=1)
        path = folder / f"run-{number}.run"
        pl.DataFrame(
            {
                "topic": np.repeat(np.arange(topics) + 1_000_000, depth),
                "q0": pl.repeat("Q0", topics * depth, eager=True),
                "document": documents.ravel(),
                "rank": np.tile(np.arange(1, depth + 1), topics),
                "score": scores.ravel(),
                "tag": pl.repeat(f"run-{number}", topics * depth, eager=True),
            }
        ).write_csv(path, include_header=False, separator=" ", float_precision=6)
        paths.append(path)
    judged = np.concatenate([retrieved, 8_800 * depth + np.tile(np.arange(25), (topics, 1))], axis=1)
    grades = generator.choice(4, judged.shape, p=(0.55, 0.2, 0.15, 0.1))
    qrels = folder / "test.qrels"
    pl.DataFrame(
        {
            "topic": np.repeat(np.arange(topics) + 1_000_000, judged.shape[1]),
            "iteration": pl.repeat("0", judged.size, eager=True),
            "document": judged.ravel(),
            "grade": grades.ravel(),
        }
    ).write_csv(qrels, include_header=False, separator=" ")
    return qrels, paths


def compare(topics: int, depth: int, runs: int, ranx: str | None, repeats: int, *, packed: str = "") -> None:
    """One size: every tool, the medians of some rounds in turn."""
    with tempfile.TemporaryDirectory(prefix="truerank-measures-") as name:
        qrels, paths = generate(Path(name), topics, depth, runs)
        size = sum(path.stat().st_size for path in paths) / 1e6
        if packed:
            paths = [(pack if packed == "gzip" else columns)(path) for path in paths]
        how = f", {packed}" if packed else ""
        print(f"\n10 measures, {topics:,} topics x {depth:,} results x {runs} runs ({size:,.0f} MB of runs{how})\n")
        print(f"{'tool':<12}{'seconds':>9}{'x':>7}{'cpu s':>9}{'x cpu':>7}{'peak MB':>9}{'import s':>10}  values")
        pythons = {tool: ranx if tool == "ranx" else sys.executable for tool in TOOLS if tool != "ranx" or not packed}
        done: dict[str, list[dict[str, Any]]] = {tool: [] for tool in pythons}
        for _ in range(repeats):
            for tool, python in pythons.items():
                done[tool] += [run_tool(python, tool, qrels, paths)] if python else []
        first = done["truerank"]
        for tool, rounds in done.items():
            if not rounds:
                print(f"{tool:<12}  not run: give an interpreter that has it with --ranx")
                continue
            mine, ours = rounds[0]["digests"], first[0]["digests"]
            other = [key for key in ours if mine[key] != ours[key]]
            said = f"{len(ours) - len(other)} of {len(ours)} measures equal on every topic to the last printed digit"
            said += f"; not {', '.join(other)}" if other else ""
            clock, cpu = (middle(rounds, key) / middle(first, key) for key in ("seconds", "cpu"))
            print(
                f"{tool:<12}{middle(rounds, 'seconds'):>9.2f}{clock:>7.1f}{middle(rounds, 'cpu'):>9.2f}{cpu:>7.1f}"
                f"{middle(rounds, 'peak'):>9.0f}{middle(rounds, 'import'):>10.2f}  {said}"
            )


def middle(rounds: list[dict[str, Any]], key: str) -> float:
    """The median of the rounds."""
    return statistics.median(float(one[key]) for one in rounds)


def pack(path: Path) -> Path:
    """The file, compressed."""
    packed = path.with_name(f"{path.name}.gz")
    with path.open("rb") as source, gzip.open(packed, "wb", compresslevel=6) as target:
        shutil.copyfileobj(source, target)
    return packed


def columns(path: Path) -> Path:
    """The run as Parquet."""
    import polars as pl

    from truerank.sources import read_run_frame

    table = path.with_suffix(".parquet")
    read_run_frame(path).select("topic_id", "doc_id", "rank", pl.col("score")).write_parquet(table)
    return table


def run_tool(python: str, tool: str, qrels: Path, runs: list[Path]) -> dict[str, Any]:
    """One tool in a process of its own."""
    words = [python, str(Path(__file__).resolve()), "--worker", tool, str(qrels), *map(str, runs)]
    finished = subprocess.run(words, capture_output=True, text=True, check=False)
    if finished.returncode:
        sys.exit(f"{tool} failed:\n{finished.stderr}")
    result: dict[str, Any] = json.loads(finished.stdout.splitlines()[-1])
    return result


def main() -> None:
    """Parses the options and prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--large", action="store_true", help="also 7,000 topics x 1,000 results x 5 runs")
    parser.add_argument("--ranx", metavar="PYTHON", help="an interpreter whose environment has ranx")
    parser.add_argument("--topics", type=int, default=2_000)
    parser.add_argument("--depth", type=int, default=1_000)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=3, help="rounds in turn, of which the medians count")
    parser.add_argument("--gzip", action="store_true", help="compressed runs, without ranx")
    parser.add_argument("--parquet", action="store_true", help="runs as Parquet, without ranx")
    options = parser.parse_args()
    packed = "gzip" if options.gzip else "Parquet" if options.parquet else ""
    compare(options.topics, options.depth, options.runs, options.ranx, options.repeats, packed=packed)
    if options.large:
        compare(7_000, 1_000, 5, options.ranx, 1)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        work(sys.argv[2], sys.argv[3], sys.argv[4:])
    else:
        main()
