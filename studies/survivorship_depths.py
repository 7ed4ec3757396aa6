"""Scores by annotation depth: does the test find a known effect, and only that? And Figure 1's pattern for DL 19.

    python studies/survivorship_depths.py --simulate 1000
    python studies/survivorship_depths.py --dl19
    python studies/survivorship_depths.py --full           Table 4's computation at MS MARCO's size

`--simulate` generates data sets: queries whose answer stood at a random position of the log, and systems whose
reciprocal rank does, or does not, depend on that position. Rates are over data sets, with Wilson's intervals.
"""

from __future__ import annotations

import argparse
import gzip
import random
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from common import SHARED, peak_memory, require_shared, table
from truerank.audits.survivorship.evaluation import DepthEvaluation, DepthScores, EvaluateOptions, evaluate
from truerank.audits.survivorship.evaluation_report import depth_table
from truerank.measures import Comparison, compare_evaluations
from truerank.measures import evaluate as evaluate_runs
from truerank.measures.magnitudes import Proportion, proportion
from truerank.measures.report import difference_table

LABELS = (*map(str, range(1, 10)), "all")
#: Survivors at each depth of MS MARCO's dev set, by which the positions of answers are drawn.
SURVIVORS = (8197, 15543, 22060, 27858, 33062, 38024, 42669, 47146, 51344, 55578)
TESTS = ("welch", "equal-variance-t", "nested")
SHARES = np.diff(np.array([0, *SURVIVORS])) / SURVIVORS[-1]
#: Ranks of answers are geometric with this chance, and 10 at most: their distribution, for the known rates.
STOP = 0.35
RANKS = np.arange(1, 11)
OF_RANK = np.append(STOP * (1 - STOP) ** np.arange(9), (1 - STOP) ** 9)


class Generated(NamedTuple):
    """Queries with the position of their answer in the log, and one score for each system."""

    positions: NDArray[np.int64]
    scores: NDArray[np.float64]


def generate(draw: np.random.Generator, queries: int, systems: int, effect: float) -> Generated:
    """Reciprocal ranks cut at 10, whose mean rises by `effect` from the queries found at once to those found last.

    A query's answer is retrieved with a chance that depends on the position; where it is, its rank is geometric. The
    systems of one data set share how hard a query is, as real systems do.
    """
    positions = draw.choice(len(SHARES), size=queries, p=SHARES)
    ranks = np.minimum(draw.geometric(STOP, size=(systems, queries)), 10)
    chance = chances(systems, effect)[:, positions]
    hard = draw.random(queries)
    own = draw.random((systems, queries))
    # The shared part decides in half of the cases, so that scores of two systems correlate.
    found = np.where(draw.random(queries) < 0.5, hard, own) < chance
    return Generated(positions, np.where(found, 1 / ranks, 0.0))


def chances(systems: int, effect: float) -> NDArray[np.float64]:
    """The chance that an answer is retrieved, shape (systems, positions): mean scores from 0.22 to 0.36."""
    base = np.linspace(0.22, 0.36, systems)[:, None]
    mean = float((OF_RANK / RANKS).sum())
    return np.clip((base + effect * (np.arange(len(SHARES)) / 9 - 0.5)) / mean, 0, 1)


def known_rates(queries: int, systems: int, effect: float, test: str) -> tuple[float, float]:
    """What the test should find: one comparison uncorrected (mean of all), and depth 1 lower after Bonferroni.

    The difference of two sets of which one is a part of the other varies by what they do not share; the test takes
    another variance for it, unless it is the nested one. Normal approximation.
    """
    chance = chances(systems, effect)
    first, second = (chance * (OF_RANK / RANKS**power).sum() for power in (1, 2))

    def moments(part: slice) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
        weights = SHARES[part] / SHARES[part].sum()
        mean = first[:, part] @ weights
        return mean, second[:, part] @ weights - mean**2, queries * SHARES[part].sum()

    whole, spread, total = moments(slice(None))
    single, shallow = [], np.zeros(systems)
    for depth in range(1, 10):
        mean, variance, size = moments(slice(0, depth))
        _, rest, others = moments(slice(depth, None))
        true = np.sqrt((others / total) ** 2 * (variance / size + rest / others))
        taken = true
        if test == "welch":
            taken = np.sqrt(variance / size + spread / total)
        if test == "equal-variance-t":
            pooled = (variance * size + spread * total) / (size + total)
            taken = np.sqrt(pooled * (1 / size + 1 / total))
        shift = (mean - whole) / true
        edge = norm.isf(0.025) * taken / true
        single.append(norm.cdf(-edge - shift) + norm.sf(edge - shift))
        if depth == 1:
            shallow = norm.cdf(-norm.isf(0.025 / (9 * systems)) * taken / true - shift)
    return float(np.mean(single)), float(shallow.mean())


def evaluated(data: Generated, test: str, family: str) -> DepthEvaluation:
    """The data set by depths, through the code of `survivorship evaluate`."""
    systems, queries = data.scores.shape
    depths = np.arange(1, 11)[:, None] > data.positions[None, :]
    values = np.where(depths[None, None], data.scores[:, None, None, :], np.nan)
    counts = tuple(int(number) for number in depths.sum(axis=1))
    names = tuple(f"system {place + 1}" for place in range(systems))
    scores = DepthScores(values, counts, counts, dict.fromkeys(names, counts), counts)
    return DepthEvaluation(
        name="generated",
        labels=LABELS,
        places=tuple(map(float, range(1, 11))),
        systems=names,
        measures=("RR_MSMARCO@10",),
        topics=tuple(map(str, range(queries))),
        variants={"all": scores},
        options=EvaluateOptions(significance=test, family=family),  # type: ignore[arg-type]
    )


def simulate(sets: int, queries: int, systems: int, effect: float, seed: int) -> None:
    """Prints how often each test finds the effect, and anything where there is none."""
    start = time.perf_counter()
    print(f"{sets:,} generated data sets of {queries:,} queries and {systems} systems, seed {seed}; α = 0.05")
    rows = []
    for shift in (0.0, effect):
        counts = {test: {"any": 0, "each": 0, "shallow": 0, "slope": 0} for test in TESTS}
        for number in range(sets):
            draw = np.random.default_rng([seed, number, int(shift * 1e6)])
            data = generate(draw, queries, systems, shift)
            for test in TESTS:
                result = evaluated(data, test, "measure")
                found = [cell for cell in result.cells if cell.difference is not None]
                own = counts[test]
                own["any"] += any(cell.significant for cell in found)
                own["each"] += sum(cell.p is not None and cell.p < 0.05 for cell in found)
                shallow = [cell for cell in found if cell.depth == "1"]
                own["shallow"] += sum(cell.significant and (cell.difference or 0) < 0 for cell in shallow)
                if test == "nested":
                    own["slope"] += sum(trend.slope.known for trend in result.trends)
        for test in TESTS:
            own = counts[test]
            comparisons = sets * systems * 9
            known = known_rates(queries, systems, shift, test)
            slope = shown(proportion(own["slope"], sets * systems)) if test == "nested" else "–"
            rows.append(
                (
                    f"{shift:.3f}",
                    test,
                    shown(proportion(own["any"], sets)),
                    shown(proportion(own["each"], comparisons)),
                    f"{known[0]:.3f}",
                    shown(proportion(own["shallow"], sets * systems)),
                    f"{known[1]:.3f}",
                    slope,
                )
            )
    header = (
        "effect",
        "test",
        "any comparison found, Bonferroni (family-wise)",
        "one comparison, p < 0.05 uncorrected",
        "by theory",
        "depth 1 found lower, Bonferroni",
        "by theory",
        "slope's 95% interval without 0",
    )
    print(table(header, rows))
    print(f"{time.perf_counter() - start:.0f} s")


def shown(rate: Proportion) -> str:
    """A rate with its interval."""
    return f"{rate.k / rate.n:.3f} ({rate.low:.3f}–{rate.high:.3f})"


def dl19() -> None:
    """Figure 1's pattern for DL 19, from the authors' runs."""
    require_shared()
    folder = SHARED / "survivorship" / "runs"
    runs = {
        "1": folder / "monot5-sim1.dl19.run.gz",
        "5": folder / "monot5-sim5.dl19.run.gz",
        "all": folder / "monot5.dl19.run.gz",
    }
    evaluation = evaluate_runs(
        str(SHARED / "qrels" / "dl19-passage.qrels.gz"),
        {depth: str(path) for depth, path in runs.items()},
        "nDCG@10 RR(rel=2) AP(rel=2) RR(rel=1) AP(rel=1)",
    )
    comparison = compare_evaluations(evaluation)
    print(beside(comparison))
    print(difference_table(comparison).markdown())


def beside(comparison: Comparison) -> str:
    """AP and RR by the track's own binarisation (grade 2 and more) and, beside it, by grade 1 and more.

    Corrected in two ways: over the three pairs of depths, as in the paper's figure, and over the two comparisons with
    the full model. A difference that no test shows comes with the size that 43 topics could have shown.
    """
    rows = []
    for name in ("AP", "RR"):
        for grade, measure in (("2 (official)", f"{name}(rel=2)"), ("1", name)):
            for pair in comparison.differences:
                if pair.measure != measure or "all" not in (pair.run, pair.baseline):
                    continue
                ends = {pair.run: pair.mean or 0.0, pair.baseline: pair.baseline_mean or 0.0}
                full = ends.pop("all")
                ((depth, mean),) = ends.items()
                p = pair.p or 0.0
                corrected = (f"{min(1.0, 3 * p):.3f}", f"{min(1.0, 2 * p):.3f}")
                change = f"{(mean - full) / full:+.1%}"
                figures = (f"{mean:.4f}", f"{full:.4f}", change, f"{p:.3f}", *corrected, f"{pair.detectable:.4f}")
                rows.append((name, grade, depth, *figures))
    heads = (
        "measure",
        "relevant from grade",
        "trained at depth",
        "mean",
        "mean of the full model",
        "change of it",
        "p",
    )
    return table((*heads, "corrected, 3 pairs", "corrected, 2 with the full model", "detectable difference"), rows)


def full(systems: int) -> None:
    """Table 4's computation on generated runs of MS MARCO's size and the authors' judgments."""
    require_shared()
    folder = SHARED / "survivorship" / "qrels"
    relevant: dict[str, list[str]] = {}
    for line in gzip.decompress((folder / "dev-all.qrels.gz").read_bytes()).decode().splitlines():
        query, _, document, _ = line.split()
        relevant.setdefault(query, []).append(document)
    with tempfile.TemporaryDirectory() as where:
        names = []
        for system in range(systems):
            draw = random.Random(system)
            names.append(str(Path(where) / f"system{system + 1}.run"))
            with Path(names[-1]).open("w") as target:
                for query, documents in relevant.items():
                    ranking = [f"d{draw.randrange(8_000_000)}x{place}" for place in range(100)]
                    if draw.random() < 0.3 + 0.1 * system:
                        ranking[min(99, int(draw.expovariate(0.3)))] = draw.choice(documents)
                    target.writelines(
                        f"{query} Q0 {document} {place} {101 - place} s\n"
                        for place, document in enumerate(ranking, start=1)
                    )
        start = time.perf_counter()
        result = evaluate(names, folder, out=Path(where) / "out")
        seconds = time.perf_counter() - start
    rows = 100 * len(relevant) * systems
    peak = peak_memory() / 2**10
    print(depth_table(result, result.measures[0], "all").markdown())
    print(f"{rows:,} rows of {systems} runs, ten depths twice, report included: {seconds:.1f} s, peak {peak:.2f} GiB")


def main() -> None:
    """Reads the arguments."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--simulate", type=int, metavar="N", help="generated data sets")
    parser.add_argument("--queries", type=int, default=5000)
    parser.add_argument("--systems", type=int, default=4)
    parser.add_argument("--effect", type=float, default=0.08)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--dl19", action="store_true")
    parser.add_argument("--full", action="store_true")
    given = parser.parse_args()
    if given.simulate:
        simulate(given.simulate, given.queries, given.systems, given.effect, given.seed)
    if given.dl19:
        dl19()
    if given.full:
        full(given.systems)
    if not (given.simulate or given.dl19 or given.full):
        parser.error("give --simulate N, --dl19 or --full")


if __name__ == "__main__":
    main()
