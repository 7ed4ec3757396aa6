"""Which pairs people judge: strata with known chances, and how many labels an interval of a given width needs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Final, Literal, NamedTuple

import numpy as np
import polars as pl
import scipy
from ir_measures.measures.base import Measure
from numpy.typing import NDArray

from truerank.arrays import Floats, Ints
from truerank.errors import InputError, OptionError
from truerank.measures.effectiveness import gains_of
from truerank.measures.grammar import MeasureSpec, parse_measures
from truerank.measures.prediction_powered import Adjustment, Target, allocate, basis, sums_by
from truerank.measures.rankings import GradeTable, Ranking, grouped
from truerank.options import Confidence, Options, Range, Scoring, Seed


class LinearMeasure(NamedTuple):
    """A measure that is a sum over documents of weight times gain: what it makes of ranks from 0 and of grades."""

    weights: Floats
    measure: Measure
    level: int

    def of_ranks(self, ranks: Ints) -> Floats:
        """The weight of each rank; 0 beyond the cutoff, and for -1, which is a document that is not in the run."""
        padded = np.append(self.weights, 0.0)
        return np.asarray(padded[np.where(ranks < 0, len(padded) - 1, np.minimum(ranks, len(padded) - 1))])

    def of_grades(self, grades: Ints) -> Floats:
        """The gain of each grade."""
        if self.measure.NAME == "DCG":
            return gains_of(self.measure, grades)
        return np.asarray(grades >= self.level, np.float64)


class Ranks(NamedTuple):
    """Where the judged pairs are in the runs.

    `frame` (topic_id, doc_id, relevance: the model's judgments, sorted), `topics` (ids), `topic` (number of each pair,
    shape (pairs,)), `grades` (the model's, shape (pairs,)), `runs` (names) and `ranks` (from 0, -1 where a run does not
    have a document; shape (pairs, runs)).
    """

    frame: pl.DataFrame
    topics: tuple[str, ...]
    topic: Ints
    grades: Ints
    runs: tuple[str, ...]
    ranks: Ints


def linear_measure(measure: Measure, depth: int, scoring: Scoring) -> LinearMeasure | None:
    """The weights of a measure that is a mean over topics of a sum over documents, None for any other."""
    places = np.arange(int(measure.params.get("cutoff") or depth))
    level = max(1, int(measure.params.get("rel", scoring.rel)))
    if measure.params.get("judged_only"):
        return None
    if measure.NAME == "P":
        return LinearMeasure(np.full(len(places), 1 / len(places)), measure, level)
    if measure.NAME == "DCG":
        return LinearMeasure(1 / np.log2(places + 2), measure, level)
    if measure.NAME == "RBP" and "rel" in measure.params:
        persistence = float(measure["p"])
        return LinearMeasure(np.asarray((1 - persistence) * persistence**places), measure, level)
    return None


def ranks_of(model: pl.DataFrame, runs: Mapping[str, pl.DataFrame], scoring: Scoring = Scoring()) -> Ranks:
    """Where the pairs that the model judged are in the runs."""
    frame = model.select("topic_id", "doc_id", "relevance").sort("topic_id", "doc_id")
    # The place of a pair travels in the column of its grade.
    places = frame.with_columns(pl.int_range(pl.len(), dtype=pl.Int64).alias("relevance"))
    judgments = GradeTable(places)
    ranks = np.full((len(frame), len(runs)), -1, np.int64)
    for column, run in enumerate(runs.values()):
        hits = Ranking(grouped(run), judgments).hits((scoring.ties,), scoring.depth)[0]
        ranks[hits.relevance, column] = hits.rank
    grades = frame["relevance"].to_numpy().astype(np.int64)
    return Ranks(frame, judgments.topics, judgments.topic.astype(np.int64), grades, tuple(runs), ranks)


_PLACES: Final = ("bottom", "middle", "top")
#: A stratum of a grade has at least so many pairs, and each stratum gets at least so many labels.
_FEWEST_PAIRS: Final = 20
_FEWEST_LABELS: Final = 5
#: So many labels of the overall variance are added to those of each grade.
_PRIOR: Final = 5

#: How pairs are drawn for people: all with one chance; strata of the model's grade and the best rank in any run; strata
#: of how much the runs differ about a document; or whole topics.
Design = Literal["uniform", "grade-rank", "disagreement", "topics"]


@dataclass(frozen=True)
class Correcting(Options):
    """How labels of people correct the scores of a model's judgments.

    Attributes:
        design: how pairs were, or will be, drawn for people: uniform, grade-rank, disagreement, or topics (whole ones).
        target: topics: the interval is for topics like these; collection: for these topics with all pairs judged by
            people.
        adjustment: how the model's gains predict people's: none (people's labels alone), fixed (λ is 1), tuned (a line
            with the λ of the smallest variance) or grades (one value for each grade of the model).
        folds: of the cross-fitting; 1 uses all labels at once.
        confidence: of the intervals.
        seed: of the folds, and of samples that are drawn.
    """

    design: Design = "grade-rank"
    target: Target = "topics"
    adjustment: Adjustment = "tuned"
    folds: Annotated[int, Range(at_least=1)] = 5
    confidence: Confidence = 0.95
    seed: Seed = 0


class LabelStrata(NamedTuple):
    """The strata of the pairs that count in the scores.

    `stratum` (number of each pair, -1 for one that counts in no score, shape (pairs,)), `names`, `sizes` (shape
    (strata,)) and `importance` (mean over the scores of the squared weight, summed over the measures, each of them in
    shares of its sum; shape (pairs,)).
    """

    stratum: Ints
    names: tuple[str, ...]
    sizes: Ints
    importance: Floats


@dataclass(frozen=True)
class LabelPlan:
    """How many labels of which pairs.

    Attributes:
        pairs: topic_id, doc_id, relevance (the model's), stratum (null for a pair that counts in no score).
        strata: stratum, pairs, labels.
        width: of the intervals, mean over the runs, that is not exceeded with the assurance; None where no width was
            asked for.
        reached: whether the plan gives the width that was asked for; the topics may be too few for it.
    """

    pairs: pl.DataFrame
    strata: pl.DataFrame
    width: float | None
    reached: bool = True

    @property
    def labels(self) -> int:
        """How many labels there are in all."""
        return int(self.strata["labels"].sum())

    @property
    def sample(self) -> str:
        """The plan as `judge new --sample` takes it, for items that carry their stratum."""
        quotas = ",".join(f"{name}={labels}" for name, labels in self.strata.select("stratum", "labels").iter_rows())
        return f"per:stratum:{quotas}"

    def draw(self, seed: int = 0, *, already: pl.DataFrame | None = None) -> pl.DataFrame:
        """Draws the pairs.

        Args:
            seed: of the draw.
            already: topic_id, doc_id of pairs that were drawn by an earlier plan with the same strata; they count.

        Returns:
            The pairs that are still to be labelled: topic_id, doc_id, stratum.
        """
        random = np.random.default_rng(seed)
        there = self.pairs.drop_nulls("stratum").with_columns(pl.lit(False).alias("drawn"))
        if already is not None:
            marked = already.select("topic_id", "doc_id").unique().with_columns(pl.lit(True).alias("drawn"))
            there = there.drop("drawn").join(marked, on=["topic_id", "doc_id"], how="left", maintain_order="left")
            there = there.with_columns(pl.col("drawn").fill_null(False))
        shuffled = there.sort("topic_id", "doc_id").with_columns(pl.Series("chance", random.random(len(there))))
        ordered = shuffled.join(self.strata, on="stratum").sort("stratum", ~pl.col("drawn"), "chance")
        place = pl.int_range(pl.len()).over("stratum")
        chosen = ordered.filter((place < pl.col("labels")) & ~pl.col("drawn"))
        return chosen.select("topic_id", "doc_id", "stratum").sort("topic_id", "doc_id")

    def labelled(self, people: pl.DataFrame) -> pl.DataFrame:
        """Labels with their strata and the probability of having been drawn: labels of the stratum over its pairs.

        Args:
            people: topic_id, doc_id, relevance of the pairs that were drawn, by one or several plans with these strata.
        """
        return with_probabilities(people, self.pairs)


def with_probabilities(people: pl.DataFrame, pairs: pl.DataFrame) -> pl.DataFrame:
    """Labels with their stratum and probability, from the strata of all pairs."""
    counting = pairs.drop_nulls("stratum").with_columns(pl.len().over("stratum").alias("size"))
    found = people.select("topic_id", "doc_id", "relevance").join(
        counting.select("topic_id", "doc_id", "stratum", "size"),
        on=["topic_id", "doc_id"],
        how="inner",
        maintain_order="left",
    )
    return found.with_columns((pl.len().over("stratum") / pl.col("size")).alias("probability")).drop("size")


def strata_of(ranks: Ranks, measures: Sequence[LinearMeasure], design: Design) -> LabelStrata:
    """The strata of a design; the same pairs, runs and measures give the same strata."""
    importance = np.zeros(len(ranks.topic))
    counts = np.zeros(len(ranks.topic), np.bool_)
    for measure in measures:
        weights = measure.of_ranks(ranks.ranks)
        counts |= weights.any(axis=1)
        spread = weights.var(axis=1) if design == "disagreement" else (weights**2).mean(axis=1)
        importance += spread / max(float(spread.sum()), 1e-300)
    if not counts.any():
        raise InputError("no run has a pair that the model judged", "give runs of the same collection", where="run")
    named = np.full(len(counts), "", dtype=object)
    if design == "uniform":
        named[counts] = "all"
    elif design == "disagreement":
        band = _bands(importance, counts, 5)
        named[counts] = [f"disagreement {number + 1}" for number in band[counts]]
    else:
        band = _bands(importance, counts, 3)
        for number, place in enumerate(_PLACES):
            inside = counts & (band == number)
            for low, high in _merged(ranks.grades[inside]):
                kept = inside & (ranks.grades >= low) & (ranks.grades <= high)
                named[kept] = f"{place} grade {low}" if low == high else f"{place} grades {low}-{high}"
    names = tuple(sorted(set(named[counts])))
    numbers = {name: number for number, name in enumerate(names)}
    stratum = np.array([numbers.get(name, -1) for name in named], np.int64)
    return LabelStrata(stratum, names, np.bincount(stratum[counts], minlength=len(names)).astype(np.int64), importance)


def _bands(values: Floats, counts: NDArray[np.bool_], bands: int) -> Ints:
    """The band of each value, with about the same number of counting pairs in each."""
    edges = np.quantile(values[counts], np.arange(1, bands) / bands)
    return np.searchsorted(edges, values, side="left").astype(np.int64)


def _merged(grades: Ints) -> list[tuple[int, int]]:
    """Neighbouring grades, joined until each group has enough pairs."""
    found: list[tuple[int, int]] = []
    low, size = None, 0
    for grade, count in zip(*np.unique(grades, return_counts=True), strict=True):
        low, size = (int(grade) if low is None else low), size + int(count)
        if size >= _FEWEST_PAIRS:
            found.append((low, int(grade)))
            low, size = None, 0
    if low is not None:
        # What is left over joins the group before it.
        start = found.pop()[0] if found else low
        found.append((start, int(grades.max())))
    return found


def label_plan(
    model: pl.DataFrame,
    runs: Mapping[str, pl.DataFrame],
    measures: MeasureSpec = "P@10 DCG@10",
    correcting: Correcting = Correcting(),
    *,
    labels: int | None = None,
    width: float | None = None,
    pilot: pl.DataFrame | None = None,
    assurance: float = 0.8,
    scoring: Scoring = Scoring(),
) -> LabelPlan:
    """Plans which pairs people judge.

    Labels go to strata in proportion to their size and to the spread of what is estimated (Neyman). For a width, the
    variance of the scores is predicted from the weights and from the variance of people's gains around the prediction
    from the model's. The latter comes from a pilot: some labels of people, of these pairs or of a like collection.
    Without a pilot the model counts as if it knew nothing, and the plan asks for more than is needed.

    Args:
        model: topic_id, doc_id, relevance, of all pairs.
        runs: name → topic_id, doc_id, score.
        measures: of which scores are wanted; with `width` a single one.
        correcting: design, target, adjustment and confidence.
        labels: how many labels there may be; or
        width: of the interval (high minus low), mean over the runs.
        pilot: topic_id, doc_id, relevance by people. Labels that were drawn with the same strata count for the plan.
        assurance: the chance that the intervals are no wider, since the pilot's labels and the topics are few.
        scoring: ties, depth, and the grade that counts as relevant.

    Raises:
        OptionError: neither labels nor width, or both; a measure that is not a sum over documents.

    Source: Neyman (1934) for the allocation; Kupper and Hafner (The American Statistician 1989) for the assurance.
    """
    if (labels is None) == (width is None):
        raise OptionError("labels", "give labels or width, one of the two", "leave the other out")
    ranks = ranks_of(model, runs, scoring)
    found = [linear_measure(one, int(ranks.ranks.max()) + 1, scoring) for one in parse_measures(measures)]
    linear = [one for one in found if one is not None]
    if len(linear) < len(found) or correcting.design == "topics":
        raise OptionError("measures", "not all are sums over documents", "use P@k, DCG@k or RBP, or judge whole topics")
    if width is not None and len(linear) > 1:
        raise OptionError("measures", f"{len(linear)} measures for one width", "plan for one measure")
    strata = strata_of(ranks, linear, correcting.design)
    learned = _learned(ranks, linear[0], strata, correcting, pilot=pilot, assurance=assurance)
    planning = _Planning.of(ranks, linear[0], strata, learned, _done(strata, pilot))
    expected, reached = None, True
    if width is None:
        shares = planning.shares(int(labels or 0))
    else:
        shares, expected = planning.for_width(width, correcting)
        reached = expected <= width
    names = np.array([*strata.names, None], dtype=object)
    return LabelPlan(
        ranks.frame.with_columns(pl.Series("stratum", names[strata.stratum].tolist(), dtype=pl.String)),
        pl.DataFrame({"stratum": strata.names, "pairs": strata.sizes, "labels": shares}),
        expected,
        reached,
    )


class _Learned(NamedTuple):
    """What a pilot says: the variance of people's gain of each pair, and the variance of the topics' true scores.

    `assurance` is the chance that intervals planned from it are no wider.
    """

    variance: Floats
    between: float
    assurance: float


def _learned(
    ranks: Ranks,
    measure: LinearMeasure,
    strata: LabelStrata,
    correcting: Correcting,
    *,
    pilot: pl.DataFrame | None,
    assurance: float,
) -> _Learned:
    predicted, weights = measure.of_grades(ranks.grades), measure.of_ranks(ranks.ranks)
    topics = len(ranks.topics)
    by_topic = sums_by(ranks.topic, weights * predicted[:, None], topics)
    between = float(by_topic.var(axis=0, ddof=1).mean()) if topics > 1 else 0.0
    counts = strata.stratum >= 0
    flat = np.full(len(predicted), float(predicted[counts].var()))
    if pilot is None:
        return _Learned(flat, between, assurance)
    places = ranks.frame.select("topic_id", "doc_id").with_row_index("row")
    joined = pilot.select("topic_id", "doc_id", "relevance").join(places, on=["topic_id", "doc_id"], how="inner")
    rows = joined["row"].to_numpy().astype(np.int64)
    if len(rows) < 20:
        raise InputError(f"a pilot of {len(rows)} labels", "give 20 or more, or none", where="pilot")
    gains = measure.of_grades(joined["relevance"].to_numpy().astype(np.int64))
    keys = ranks.grades.astype(np.float64) if correcting.adjustment == "grades" else predicted
    features = basis(keys, correcting.adjustment)
    if correcting.adjustment == "fixed":
        left = gains - predicted[rows]
    else:
        left = gains - features[rows] @ np.linalg.lstsq(features[rows], gains, rcond=None)[0]
    freedom = max(len(rows) - features.shape[1], 1)
    overall = float(left @ left) / freedom
    factor = freedom / _chi_square(1 - assurance, freedom)
    variance = np.full(len(predicted), overall)
    for grade in np.unique(ranks.grades):
        own = left[ranks.grades[rows] == grade]
        variance[ranks.grades == grade] = (float(own @ own) + _PRIOR * overall) / (len(own) + _PRIOR)
    return _Learned(variance * factor, between, assurance)


def _chi_square(probability: float, freedom: float) -> float:
    """The quantile of a χ² distribution. `scipy.stats`, which has it too, takes most of a second to load."""
    return 2 * float(scipy.special.gammaincinv(freedom / 2, probability))


def _done(strata: LabelStrata, pilot: pl.DataFrame | None) -> Ints:
    """How many labels each stratum has already, where the pilot was drawn with these strata."""
    done = np.zeros(len(strata.names), np.int64)
    if pilot is None or "stratum" not in pilot.columns:
        return done
    numbers = {name: number for number, name in enumerate(strata.names)}
    for name, count in pilot.group_by("stratum").len().iter_rows():
        if name in numbers:
            done[numbers[name]] = count
    return done


class _Planning(NamedTuple):
    """What the variance of the scores depends on.

    `sizes`, `spread` (what labels are shared out by), `own` (variance of a pair of the stratum, mean over the runs)
    and `least` (labels) have the shape (strata,). `share` is the part of the labels that count in one run, `between`
    the variance of the topics' scores.
    """

    sizes: Ints
    spread: Floats
    own: Floats
    least: Ints
    share: float
    between: float
    topics: int
    assurance: float

    @classmethod
    def of(cls, ranks: Ranks, measure: LinearMeasure, strata: LabelStrata, learned: _Learned, done: Ints) -> _Planning:
        weights = measure.of_ranks(ranks.ranks)
        counts = strata.stratum >= 0
        number, sizes = strata.stratum[counts], strata.sizes
        spread = np.bincount(number, (strata.importance * learned.variance)[counts], len(sizes)) / sizes
        own = np.bincount(number, ((weights**2).mean(axis=1) * learned.variance)[counts], len(sizes)) / sizes
        least = np.maximum(done, np.minimum(sizes, _FEWEST_LABELS))
        share = float((weights > 0).sum(axis=0).mean()) / int(counts.sum())
        return cls(sizes, np.sqrt(spread), own, least, share, learned.between, len(ranks.topics), learned.assurance)

    def shares(self, labels: int) -> Ints:
        return allocate(self.sizes, self.spread, labels, least=self.least)

    def for_width(self, width: float, correcting: Correcting) -> tuple[Ints, float]:
        """The fewest labels whose expected width is not above the wanted one, by stratum, and that width."""
        low, high = int(self.least.sum()), int(self.sizes.sum())
        while low < high:
            middle = (low + high) // 2
            if self._width(middle, correcting) <= width:
                high = middle
            else:
                low = middle + 1
        return self.shares(low), self._width(low, correcting)

    def _width(self, labels: int, correcting: Correcting) -> float:
        parts = self.shares(labels)
        variance = float(np.sum(self.sizes * (self.sizes / parts - 1) * self.own)) / self.topics**2
        freedom = max(labels * self.share - 2, 2.0)
        if correcting.target == "topics":
            freedom = max(self.topics - 1, 1)
            # The variance that is estimated from so many topics is itself above the true one as often as below it.
            variance = (variance + self.between / self.topics) * _chi_square(self.assurance, freedom) / freedom
        return 2 * float(scipy.special.stdtrit(freedom, (1 + correcting.confidence) / 2)) * math.sqrt(variance)
