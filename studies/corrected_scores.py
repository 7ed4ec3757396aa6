"""Corrected scores on LLMJudge: coverage of their intervals, labels saved, promises of plans, and what is not valid.

    python studies/corrected_scores.py coverage|saved|planned|topics|ratio [--simulations 2000] [--development]
        [--judge NAME]

People's labels of TREC DL 2023 (4,423 pairs, 25 topics) are the truth. In each simulation a sample of them is drawn by
a design, and the rest is hidden. The target "collection" keeps the topics; for "topics" 25 topics are drawn with
replacement first, and the truth is the mean over the 25. The method was developed with the judge and the systems of
--development (h2oloo-fewself; planted systems) and is reported for five judges of other teams, with systems that rank
the judged pairs by the grades of ten other judges, ties at random. The five judges are those of their teams whose own
interval covers least, so that there is something to correct.
"""

from __future__ import annotations

import argparse
import functools
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import stats

import common
from common import SHARED, require_shared
from truerank.audits.assessors.correction import LinearMeasure, Ranks, corrected_scores, linear_measure, ranks_of
from truerank.audits.assessors.sampling_designs import Correcting, label_plan, strata_of
from truerank.measures import evaluate, parse_measures
from truerank.measures.prediction_powered import (
    Labelled,
    Pairs,
    allocate,
    basis,
    estimate,
    estimate_topics,
    half_widths,
    sums_by,
)
from truerank.options import Scoring
from truerank.sources import read_qrels_frame

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

REPORTED = ("NISTRetrieval-reason0", "Olz-multiprompt", "RMITIR-llama70B", "TREMA-direct", "prophet-setting4")
DEVELOPED = ("h2oloo-fewself",)
RANKERS = (
    "NISTRetrieval-instruct0", "Olz-exp", "Olz-halfbin", "RMITIR-llama38b", "TREMA-CoT", "TREMA-questions",
    "TREMA-sumdecompose", "h2oloo-zeroshot1", "prophet-setting1", "willia-umbrela2",
)  # fmt: skip
MEASURES = ("P(rel=2)@10", "DCG@10")
DESIGNS = ("uniform", "grade-rank", "disagreement")
LABELS = 300
#: Plans: target, width and design.
PLANNED = (("collection", 0.12, "uniform"), ("collection", 0.12, "grade-rank"), ("topics", 0.35, "grade-rank"))


def table(title: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Prints a table."""
    print(f"{title}\n\n{common.table(header, rows)}\n")


class World(NamedTuple):
    """The real labels with one judge: the truth that the simulations draw from."""

    people: pl.DataFrame
    model: pl.DataFrame
    runs: dict[str, pl.DataFrame]
    ranks: Ranks
    grades: Ints


def judge_frame(name: str, people: pl.DataFrame) -> pl.DataFrame:
    """A judge's grades of the pairs; grades above the scale count as the highest."""
    grades = read_qrels_frame(str(SHARED / "llmjudge" / "judges" / f"{name}.qrels.gz"))
    found = people.select("topic_id", "doc_id").join(grades, on=["topic_id", "doc_id"], maintain_order="left")
    return found.with_columns(pl.col("relevance").clip(0, 3))


@functools.cache
def world(name: str, development: bool) -> World:
    """The data of one judge."""
    people = read_qrels_frame(str(SHARED / "llmjudge" / "human.qrels.gz")).sort("topic_id", "doc_id")
    rng = np.random.default_rng(7)
    keys = people.select("topic_id", "doc_id")
    if development:
        grades = people["relevance"].to_numpy()
        scores = {f"planted {q:.1f}": q * grades + rng.normal(0, 1.5, len(grades)) for q in np.linspace(0.2, 1.6, 10)}
    else:
        scores = {
            f"by {ranker}": judge_frame(ranker, people)["relevance"].to_numpy() + 0.9 * rng.random(len(people))
            for ranker in RANKERS
        }
    runs = {run: keys.with_columns(pl.Series("score", score)) for run, score in scores.items()}
    model = judge_frame(name, people)
    return World(people, model, runs, ranks_of(model, runs), people["relevance"].to_numpy().astype(np.int64))


class Arrays(NamedTuple):
    """What a simulation needs, for the pairs that count in a score."""

    topic: Ints
    weights: Floats
    model: Floats
    people: Floats
    features: Floats
    stratum: Ints
    importance: Floats
    topics: int


def arrays(found: World, measure: str, design: str, adjustment: str = "tuned") -> Arrays:
    """The arrays of a measure and a design."""
    ranks = found.ranks
    linear = linear_of(measure, ranks)
    strata = strata_of(ranks, [linear], design)
    kept = strata.stratum >= 0
    model = linear.of_grades(ranks.grades)
    keys = ranks.grades.astype(float) if adjustment == "grades" else model
    return Arrays(
        ranks.topic[kept], linear.of_ranks(ranks.ranks)[kept], model[kept], linear.of_grades(found.grades)[kept],
        basis(keys, adjustment)[kept], strata.stratum[kept], strata.importance[kept], len(ranks.topics),
    )  # fmt: skip


def linear_of(measure: str, ranks: Ranks) -> LinearMeasure:
    """The weights of a measure."""
    found = linear_measure(parse_measures(measure)[0], int(ranks.ranks.max()) + 1, Scoring())
    if found is None:
        raise ValueError(measure)
    return found


def shares(data: Arrays, rows: Ints, labels: int) -> tuple[Ints, Ints]:
    """Sizes of the strata among some pairs, and their labels."""
    sizes = np.bincount(data.stratum[rows])
    spread = np.sqrt(np.bincount(data.stratum[rows], data.importance[rows]) / np.maximum(sizes, 1))
    parts = np.zeros(len(sizes), np.int64)
    there = sizes > 0
    parts[there] = allocate(sizes[there], spread[there], labels, least=np.minimum(sizes[there], 5))
    return sizes, parts


def drawn(data: Arrays, rows: Ints, planned: tuple[Ints, Ints], rng: np.random.Generator) -> Labelled:
    """A sample of some pairs by the strata."""
    sizes, parts = planned
    stratum = data.stratum[rows]
    order = np.lexsort((rng.random(len(rows)), stratum))
    place = np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    chosen = order[place < parts[stratum[order]]]
    number = stratum[chosen]
    return Labelled(chosen, data.people[rows[chosen]], number, parts[number] / sizes[number])


def coverage_of(task: tuple[str, bool, str, str, str, int]) -> tuple[object, ...]:
    """One row of the table of coverage."""
    name, development, measure, design, target, simulations = task
    data = arrays(world(name, development), measure, design)
    topics, runs = data.topics, data.weights.shape[1]
    of_topic = [np.flatnonzero(data.topic == topic) for topic in range(topics)]
    truth = sums_by(data.topic, data.weights * data.people[:, None], topics).mean(axis=0)
    alone = sums_by(data.topic, data.weights * data.model[:, None], topics)
    # Each system against the next one.
    first, second = np.arange(runs - 1), np.arange(1, runs)
    true_gain = truth[first] - truth[second]
    columns = np.concatenate((data.weights, data.weights[:, first] - data.weights[:, second]), axis=1)
    rng = np.random.default_rng(20231)
    hits = np.zeros((3, runs))
    gain_hits, widths, gain_width = 0.0, np.zeros(2), 0.0
    bound = float(stats.t.ppf(0.975, topics - 1))
    everything, plan, people_seen = np.arange(topics), None, 0
    for number in range(simulations):
        chosen = rng.integers(0, topics, topics) if target == "topics" else everything
        rows = np.concatenate([of_topic[one] for one in chosen])
        topic = np.repeat(np.arange(topics), [len(of_topic[one]) for one in chosen])
        plan = shares(data, rows, LABELS) if target == "topics" or plan is None else plan
        labelled = drawn(data, rows, plan, rng)
        found = estimate(Pairs(topic, columns[rows], data.features[rows]), labelled, topics, tuned_on=runs, seed=number)
        half = half_widths(found, 0.95, target, topics=topics)
        if number % 5 == 0:
            # Only for comparison: one simulation in five is enough.
            pairs = Pairs(topic, data.weights[rows], np.ones((len(rows), 1)))
            people = estimate(pairs, labelled, topics, seed=number)
            people_half = half_widths(people, 0.95, target, topics=topics)
            hits[1] += np.abs(people.means - truth) <= people_half
            widths[1] += 2 * people_half.mean()
            people_seen += 1
        own = alone[chosen]
        hits[0] += np.abs(found.means[:runs] - truth) <= half[:runs]
        hits[2] += np.abs(own.mean(axis=0) - truth) <= bound * own.std(axis=0, ddof=1) / np.sqrt(topics)
        gain_hits += np.mean(np.abs(found.means[runs:] - true_gain) <= half[runs:])
        widths[0] += 2 * half[:runs].mean()
        gain_width += 2 * half[runs:].mean()
    corrected, people_cover, model_cover = hits[0] / simulations, hits[1] / people_seen, hits[2] / simulations
    return (
        name, measure, design, target, f"{corrected.mean():.1%}", f"{corrected.min():.1%} to {corrected.max():.1%}",
        f"{gain_hits / simulations:.1%}", f"{people_cover.mean():.1%}", f"{model_cover.mean():.1%}",
        f"{widths[0] / simulations:.3f}", f"{widths[1] / people_seen:.3f}", f"{gain_width / simulations:.3f}",
    )  # fmt: skip


def coverage(judges: tuple[str, ...], development: bool, simulations: int) -> None:
    """Coverage of the intervals of corrected scores, people's labels alone and the model alone."""
    tasks = [
        (name, development, measure, design, target, simulations)
        for target in ("collection", "topics")
        for measure in MEASURES
        for design in DESIGNS
        for name in judges
    ]
    with ProcessPoolExecutor(2) as pool:
        rows = list(pool.map(coverage_of, tasks))
    table(
        f"Coverage of 95% intervals, {LABELS} labels, {simulations:,} simulations (mean over 10 systems)",
        ("judge", "measure", "design", "target", "corrected", "systems", "differences", "people alone", "model alone",
         "width", "people's", "differences'"),
        rows,
    )  # fmt: skip


def variance(data: Arrays, labels: int) -> float:
    """The variance of the scores under a design, from all labels: mean over the systems."""
    weights, rows = data.weights, np.arange(len(data.topic))
    together = (weights**2).sum(axis=1)[:, None]
    line = np.linalg.lstsq(data.features * np.sqrt(together), data.people * np.sqrt(together[:, 0]), rcond=None)[0]
    errors = weights * (data.people - data.features @ line)[:, None]
    sizes, parts = shares(data, rows, labels)
    means = sums_by(data.stratum, errors, len(sizes)) / sizes[:, None]
    squares = sums_by(data.stratum, errors**2, len(sizes)) - sizes[:, None] * means**2
    factor = sizes * (sizes / parts - 1) / np.maximum(sizes - 1, 1)
    return float((factor[:, None] * squares).sum(axis=0).mean()) / data.topics**2


def saved(judges: tuple[str, ...], development: bool) -> None:
    """How many labels of people alone give the same width, by the variance that all labels give."""
    rows = []
    for name in judges:
        found = world(name, development)
        for measure in MEASURES:
            for design in DESIGNS:
                for adjustment in ("tuned", "grades"):
                    wanted = variance(arrays(found, measure, design, adjustment), LABELS)
                    cells = []
                    for other in (design, "uniform"):
                        alone = arrays(found, measure, other, "none")
                        needed = next(n for n in range(100, len(alone.topic) + 1) if variance(alone, n) <= wanted)
                        cells.append(f"{needed} ({1 - LABELS / needed:+.0%})")
                    rows.append((name, measure, design, adjustment, LABELS, *cells))
    table(
        "Labels for intervals of the same width (collection)",
        ("judge", "measure", "design", "adjustment", "corrected", "people, same design", "people, uniform"),
        rows,
    )


def planned_of(task: tuple[str, bool, str, str, float, int]) -> tuple[object, ...]:
    """One row of the table of plans."""
    name, development, design, target, width, trials = task
    found = world(name, development)
    measure, correcting = MEASURES[0], Correcting(design=design, target=target)
    linear = linear_of(measure, found.ranks)
    counting = strata_of(found.ranks, [linear], "uniform").stratum >= 0
    pool = found.ranks.frame.filter(pl.Series(counting)).select("topic_id", "doc_id")
    truth = evaluate(found.people, found.runs, measure).values[:, 0, :].mean(axis=1)
    kept, widths, labels, covered, reached = 0, [], [], [], 0
    for trial in range(trials):
        pilot = pool.sample(100, seed=trial).join(found.people, on=["topic_id", "doc_id"])
        plan = label_plan(found.model, found.runs, measure, correcting, width=width, pilot=pilot)
        people = plan.draw(trial).join(found.people, on=["topic_id", "doc_id"])
        scores = corrected_scores(plan.labelled(people), found.model, found.runs, measure, correcting).scores
        got = float((scores["corrected_high"] - scores["corrected_low"]).mean())
        reached += plan.reached
        kept += got <= width
        widths.append(got)
        labels.append(plan.labels)
        inside = (scores["corrected_low"].to_numpy() <= truth) & (truth <= scores["corrected_high"].to_numpy())
        covered.append(inside.mean())
    return (
        name, design, target, f"{width:g}", f"{reached / trials:.0%}", int(np.median(labels)),
        f"{np.mean(widths):.3f}", f"{max(widths):.3f}", f"{kept / trials:.0%}",
        f"{np.mean(covered):.1%}" if target == "collection" else "",
    )  # fmt: skip


def planned(judges: tuple[str, ...], development: bool, trials: int) -> None:
    """Whether plans keep their promise: a pilot of 100 labels, a plan for a width, the labels, the interval."""
    tasks = [(name, development, design, target, width, trials) for target, width, design in PLANNED for name in judges]
    with ProcessPoolExecutor(2) as pool:
        rows = list(pool.map(planned_of, tasks))
    table(
        f"Plans for P(rel=2)@10 from a pilot of 100 labels, assurance 80%, {trials} trials",
        ("judge", "design", "target", "wanted", "reachable", "labels", "width", "widest", "kept", "coverage"),
        rows,
    )


def topics_judged(judges: tuple[str, ...], development: bool, simulations: int) -> None:
    """Whole topics: nDCG and AP, 10 of 25 topics judged by people."""
    rows = []
    for name in judges:
        found = world(name, development)
        for measure in ("nDCG@10", "AP(rel=2)", "P(rel=2)@10"):
            people, model = (
                evaluate(qrels, found.runs, measure).values[:, 0, :].T for qrels in (found.people, found.model)
            )
            for target in ("collection", "topics"):
                rows.append((name, measure, target, *whole_topics(people, model, target, simulations)))
    table(
        f"Whole topics, 10 of 25 judged by people, {simulations:,} simulations",
        ("judge", "measure", "target", "corrected", "people alone", "model alone", "width", "people's", "λ"),
        rows,
    )


def whole_topics(people: Floats, model: Floats, target: str, simulations: int) -> Iterator[str]:
    """Coverage and widths of one row."""
    rng, truth, topics = np.random.default_rng(5), people.mean(axis=0), len(people)
    hits, widths, power = np.zeros(3), np.zeros(2), 0.0
    bound = float(stats.t.ppf(0.975, topics - 1))
    for _ in range(simulations):
        chosen = rng.integers(0, topics, topics) if target == "topics" else np.arange(topics)
        own = model[chosen]
        judged = rng.permutation(topics)[:10]
        for place, fixed in enumerate((None, 0.0)):
            found = estimate_topics(own, people[chosen][judged], judged, fixed=fixed)
            half = half_widths(found, 0.95, target, topics=int(found.design_freedom[0]) + 1)
            hits[place] += np.mean(np.abs(found.means - truth) <= half)
            widths[place] += 2 * half.mean()
            power += float(found.coefficients[0])
        hits[2] += np.mean(np.abs(own.mean(axis=0) - truth) <= bound * own.std(axis=0, ddof=1) / np.sqrt(topics))
    yield from (f"{share:.1%}" for share in hits / simulations)
    yield from (f"{width:.3f}" for width in widths / simulations)
    yield f"{power / simulations:.2f}"


def ratio(judges: tuple[str, ...], development: bool, simulations: int) -> None:
    """nDCG@10 and AP from single pairs, topic by topic: why they are not offered."""
    found = world(judges[0], development)
    rows = [(labels, *ap_from_pairs(found, labels, simulations)) for labels in (400, 800, 1600, 2400, 3200)]
    table(
        f"AP(rel=2) by statAP from people's labels alone, {simulations:,} simulations (collection)",
        ("labels", "bias", "root mean squared error", "the same of whole topics"),
        rows,
    )
    rows = []
    for name in judges:
        found = world(name, development)
        for labels in (800, 1600, 2400, 3200):
            rows.append(
                (name, labels, f"{labels / len(found.grades):.0%}", *ndcg_from_pairs(found, labels, simulations))
            )
    table(
        f"nDCG@10 as a ratio of estimates in each topic, {simulations:,} simulations (collection)",
        ("judge", "labels", "of all pairs", "coverage", "median bias", "median width"),
        rows,
    )


def ndcg_from_pairs(found: World, labels: int, simulations: int, cutoff: int = 10) -> tuple[str, ...]:
    """Coverage of the ratio of the estimated DCG and the estimated ideal DCG, with the variance of its linear part.

    The ideal DCG is Σ_g D(min(k, N_g)) with N_g the pairs of grade g or higher, a sum over documents.
    """
    ranks, people = found.ranks, found.grades
    linear = linear_of(f"DCG@{cutoff}", ranks)
    weights, topics = linear.of_ranks(ranks.ranks), len(ranks.topics)
    data = arrays(found, f"DCG@{cutoff}", "grade-rank")
    sums = np.concatenate(([0.0], np.cumsum(1 / np.log2(np.arange(cutoff) + 2))))
    truth = evaluate(found.people, found.runs, f"nDCG@{cutoff}").values[:, 0, :].mean(axis=1)
    levels = np.arange(1, 4)
    reached, modelled = people[:, None] >= levels, basis(ranks.grades.astype(float), "grades")
    # One stratum for each grade of the model and whether the pair counts in a score.
    cell = 2 * ranks.grades + weights.any(axis=1)
    stratum = np.unique(cell, return_inverse=True)[1]
    full = data._replace(
        topic=ranks.topic, stratum=stratum, importance=(weights**2).mean(axis=1) + 0.02, people=people.astype(float)
    )
    rng, hits, bias, width = np.random.default_rng(3), [], [], []
    everything = np.arange(len(people))
    plan = shares(full, everything, labels)
    for _ in range(simulations):
        sample = drawn(full, everything, plan, rng)
        share = np.linalg.lstsq(modelled[sample.rows], reached[sample.rows].astype(float), rcond=None)[0]
        left = reached[sample.rows] - modelled[sample.rows] @ share
        order = np.lexsort((ranks.topic[sample.rows], sample.stratum))
        rows, left, chance = sample.rows[order], left[order], sample.probability[order, None]
        topic = ranks.topic[rows]
        dcg = sums_by(ranks.topic, weights * (modelled @ share).sum(axis=1)[:, None], topics)
        dcg += sums_by(topic, weights[rows] * left.sum(axis=1)[:, None] / chance, topics)
        counts = sums_by(ranks.topic, modelled @ share, topics) + sums_by(topic, left / chance, topics)
        counts = np.clip(np.maximum(counts, sums_by(topic, reached[rows].astype(float), topics)), 0, cutoff)
        whole = np.minimum(counts.astype(int), cutoff - 1)
        slope = np.where(counts < cutoff, np.diff(sums)[whole], 0.0)
        best = (sums[whole] + np.diff(sums)[whole] * (counts - whole)).sum(axis=1)
        scores = dcg / np.maximum(best, 0.1)[:, None]
        errors = weights[rows] * left.sum(axis=1)[:, None] - scores[topic] * (left * slope[topic]).sum(axis=1)[:, None]
        errors /= np.maximum(best, 0.1)[topic, None]
        half = 1.96 * np.sqrt(design_variance(errors, sample.stratum[order], chance[:, 0])) / topics
        hits.append(np.mean(np.abs(scores.mean(axis=0) - truth) <= half))
        bias.append(scores.mean(axis=0) - truth)
        width.append(2 * half.mean())
    return f"{np.mean(hits):.1%}", f"{np.median(np.mean(bias, axis=1)):+.3f}", f"{np.median(width):.3f}"


def ap_from_pairs(found: World, labels: int, simulations: int) -> tuple[str, ...]:
    """Bias and error of statAP (Pavlu and Aslam 2007) with a uniform sample, and the error of as many whole topics.

    The sum of precisions of a topic is estimated from pairs of sampled relevant documents with their joint probability.
    """
    ranks, relevant, size = found.ranks, found.grades >= 2, len(found.grades)
    truth = evaluate(found.people, found.runs, "AP(rel=2)").values[:, 0, :].T
    topics = len(ranks.topics)
    per_topic = np.bincount(ranks.topic, minlength=topics)
    one, two = labels / size, labels * (labels - 1) / size / (size - 1)
    rng, errors, whole = np.random.default_rng(9), [], []
    for _ in range(simulations):
        sampled = np.zeros(size, np.bool_)
        sampled[rng.permutation(size)[:labels]] = True
        rows = np.flatnonzero(sampled & relevant)
        scores = np.zeros_like(truth)
        number = np.maximum(np.bincount(ranks.topic[rows], minlength=topics), 1)
        for run in range(truth.shape[1]):
            order = rows[np.lexsort((ranks.ranks[rows, run], ranks.topic[rows]))]
            topic = ranks.topic[order]
            above = np.arange(len(order)) - np.searchsorted(topic, topic)
            parts = (1 / one + above / two) / (ranks.ranks[order, run] + 1)
            scores[:, run] = np.bincount(topic, parts, topics) / (number / one)
        errors.append(scores.mean(axis=0) - truth.mean(axis=0))
        chosen = rng.permutation(topics)
        kept = chosen[: max(1, int(np.searchsorted(np.cumsum(per_topic[chosen]), labels)))]
        whole.append(truth[kept].mean(axis=0) - truth.mean(axis=0))
    return (
        f"{np.mean(errors):+.3f}",
        f"{np.sqrt(np.mean(np.square(errors))):.3f}",
        f"{np.sqrt(np.mean(np.square(whole))):.3f}",
    )


def design_variance(errors: Floats, stratum: Ints, chance: Floats) -> Floats:
    """The variance of the sum of errors over their probabilities, from sorted strata."""
    total = np.zeros(errors.shape[1])
    for number in np.unique(stratum):
        inside = stratum == number
        labels, part = int(inside.sum()), float(chance[inside][0])
        total += (1 - part) / part**2 * labels * errors[inside].var(axis=0, ddof=1)
    return total


def main() -> None:
    """Prints one of the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("coverage", "saved", "planned", "topics", "ratio"))
    parser.add_argument("--simulations", type=int, default=2000)
    parser.add_argument("--development", action="store_true")
    parser.add_argument("--judge", action="append", help="one of the judges; by default all")
    given = parser.parse_args()
    require_shared()
    judges = tuple(given.judge or (DEVELOPED if given.development else REPORTED))
    if given.part == "coverage":
        coverage(judges, given.development, given.simulations)
    elif given.part == "saved":
        saved(judges, given.development)
    elif given.part == "planned":
        planned(judges, given.development, max(1, given.simulations // 20))
    elif given.part == "topics":
        topics_judged(judges, given.development, given.simulations)
    else:
        ratio(judges, given.development, max(1, given.simulations // 10))


if __name__ == "__main__":
    main()
