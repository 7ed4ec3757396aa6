"""What the runs of a track show: categories, subtasks, topics, agreement of measures, likeness of runs; statements."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from itertools import combinations
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truerank.arrays import Floats
from truerank.audits.track.scores import Scores
from truerank.core.tables import Column, Table
from truerank.core.views import heads
from truerank.errors import InputError, OptionError, needed_for
from truerank.measures import Evaluation
from truerank.measures.orders import kendall
from truerank.sources import compressed, formats, grammar
from truerank.sources.rows import rows
from truerank.sources.run_tables import RunInfo

SUBTASKS: Final = ("fullrank", "rerank")
#: Scores of a topic that differ by less than this are equal.
_EQUAL: Final = 1e-12


class Best(NamedTuple):
    """The best run of a category by the main measure; `gain` is in percent over the best run of the baseline."""

    category: str
    run: str
    value: float
    runs: int
    gain: float | None


class SubtaskGap(NamedTuple):
    """The best fullrank run beside the best rerank run by one measure; `gain` is in percent over the latter."""

    measure: str
    fullrank: str
    fullrank_value: float
    rerank: str
    rerank_value: float
    gain: float | None


class CandidateGain(NamedTuple):
    """The best cumulated gain beside that of the candidates which rerank runs were given; `gain` in percent.

    All that a rerank run can do is to reorder the candidates, so that all of them have the candidates' NCG@k where k is
    the number of candidates; `sharing` of the `reranks` runs do. A run that dropped candidates has less.
    """

    measure: str
    run: str
    value: float
    candidates: float
    sharing: int
    reranks: int
    gain: float | None


@dataclass(frozen=True, eq=False)
class Duel:
    """The best runs of two categories, topic by topic.

    Attributes:
        first: the best run of one category.
        second: the best run of the other.
        measure: the measure compared.
        topics: sorted by difference, the largest win of the first run first; equal ones in the order of the topics.
        first_values: scores of the first run, shape (topics,).
        second_values: scores of the second run.
    """

    first: RunInfo
    second: RunInfo
    measure: str
    topics: tuple[str, ...]
    first_values: Floats
    second_values: Floats

    @property
    def wins(self) -> int:
        """Topics on which the first run is better."""
        return int(np.sum(self.first_values - self.second_values > _EQUAL))

    @property
    def losses(self) -> int:
        """Topics on which the second run is better."""
        return int(np.sum(self.second_values - self.first_values > _EQUAL))

    @property
    def ties(self) -> int:
        """Topics on which both score the same."""
        return len(self.topics) - self.wins - self.losses


class Agreement(NamedTuple):
    """Kendall's tau-b of two measures over runs; `category` is "" for all runs, `pearson` the linear correlation.

    A coefficient is None where all runs are tied by one of the measures.
    """

    first: str
    second: str
    category: str
    tau: float | None
    p: float | None
    pearson: float | None
    n: int


@dataclass(frozen=True, eq=False)
class Analysis:
    """What the runs show.

    Attributes:
        scores: the scores that it rests on.
        baseline: the category that others are compared with.
        categories: best run first.
        best: the best run of each category.
        gaps: fullrank against rerank, by the main measure and, where there is one, NCG@k.
        candidates: the best NCG@k beside the candidates', where both are known.
        duels: the best run of each other category against the best of the baseline.
        agreements: of all pairs of measures, over all runs and within each category.
    """

    scores: Scores
    baseline: str
    categories: tuple[str, ...]
    best: tuple[Best, ...]
    gaps: tuple[SubtaskGap, ...]
    candidates: CandidateGain | None
    duels: tuple[Duel, ...]
    agreements: tuple[Agreement, ...]

    def runs_in(self, category: str) -> NDArray[np.bool_]:
        """Which runs belong to a category, shape (runs,)."""
        return np.array([run.category == category for run in self.scores.runs], dtype=bool)

    def counts(self) -> dict[tuple[str, str], int]:
        """How many runs there are by category and subtask; "" where not stated."""
        return dict(Counter((run.category, run.subtask) for run in self.scores.runs))

    def agreement(self, first: str, second: str, category: str = "") -> Agreement | None:
        """The agreement of two measures, in either order; None where there are too few runs."""
        for found in self.agreements:
            if {found.first, found.second} == {first, second} and found.category == category:
                return found
        return None

    @property
    def recall(self) -> Agreement | None:
        """The agreement of NCG@k with recall at the same k, where both are known."""
        gain, recall = self.scores.gain, self.scores.recall
        return None if gain is None or recall is None else self.agreement(gain, recall)


def analyse(scores: Scores, *, baseline: str = "trad") -> Analysis:
    """Analyses the runs of a track.

    Args:
        scores: the scores.
        baseline: the category that others are compared with.

    Returns:
        The analysis. Runs without a category or subtask stay out of the comparisons that need one.

    Raises:
        InputError: there are categories, but not the baseline.

    Source: Craswell, Mitra, Yilmaz, Campos, Voorhees: Overview of the TREC 2019 Deep Learning Track, section 4.
    """
    stated = {run.category for run in scores.runs if run.category}
    if stated and baseline not in stated:
        raise OptionError(
            "baseline_category",
            f"no run is of the category '{baseline}'",
            f"choose another with `baseline_category`: {', '.join(sorted(stated))}",
        )
    best = tuple(_best(scores, baseline))
    gain = scores.gain
    measures = (scores.main, gain) if gain is not None and gain != scores.main else (scores.main,)
    return Analysis(
        scores=scores,
        baseline=baseline,
        categories=tuple(one.category for one in best),
        best=best,
        gaps=tuple(gap for measure in measures if (gap := _gap(scores, measure)) is not None),
        candidates=_candidate_gain(scores, gain),
        duels=tuple(_duels(scores, best, baseline)),
        agreements=tuple(_agreements(scores, [one.category for one in best])),
    )


def percent(value: float, base: float) -> float | None:
    """How much larger a value is than a base, in percent; None where the base is zero."""
    return 100.0 * (value / base - 1.0) if base else None


def _top(scores: Scores, measure: str, chosen: Sequence[bool]) -> tuple[int, float] | None:
    """The position and value of the best of the chosen runs; the first of equal ones."""
    column = np.where(np.asarray(chosen, dtype=bool), scores.of(measure), np.nan)
    if not np.isfinite(column).any():
        return None
    position = int(np.nanargmax(column))
    return position, float(column[position])


def _best(scores: Scores, baseline: str) -> list[Best]:
    tops = {}
    for category in dict.fromkeys(run.category for run in scores.runs if run.category):
        chosen = [run.category == category for run in scores.runs]
        top = _top(scores, scores.main, chosen)
        if top is not None:
            tops[category] = (*top, sum(chosen))
    base = tops[baseline][1] if baseline in tops else None
    found = [
        Best(
            category,
            scores.runs[position].run,
            value,
            runs,
            None if base is None or category == baseline else percent(value, base),
        )
        for category, (position, value, runs) in tops.items()
    ]
    return sorted(found, key=lambda one: (-one.value, one.category))


def _gap(scores: Scores, measure: str) -> SubtaskGap | None:
    tops = [_top(scores, measure, [run.subtask == subtask for run in scores.runs]) for subtask in SUBTASKS]
    if tops[0] is None or tops[1] is None:
        return None
    (full, full_value), (rerank, rerank_value) = tops[0], tops[1]
    return SubtaskGap(
        measure,
        scores.runs[full].run,
        full_value,
        scores.runs[rerank].run,
        rerank_value,
        percent(full_value, rerank_value),
    )


def _candidate_gain(scores: Scores, measure: str | None) -> CandidateGain | None:
    if measure is None:
        return None
    reranks = [run.subtask == "rerank" for run in scores.runs]
    own = _top(scores, measure, reranks)
    top = _top(scores, measure, [True] * len(reranks))
    if own is None or top is None:
        return None
    candidates = own[1]
    known = scores.of(measure)[np.array(reranks)]
    known = known[np.isfinite(known)]
    sharing = int(np.sum(np.abs(known - candidates) < 5e-5))
    return CandidateGain(
        measure, scores.runs[top[0]].run, top[1], candidates, sharing, known.size, percent(top[1], candidates)
    )


def _duels(scores: Scores, best: Sequence[Best], baseline: str) -> Iterator[Duel]:
    evaluation = scores.evaluation
    base = next((one for one in best if one.category == baseline), None)
    if evaluation is None or base is None:
        return
    infos = {run.run: run for run in scores.runs}
    for one in best:
        if one.category == baseline:
            continue
        first, second = (evaluation.of(run, scores.main) for run in (one.run, base.run))
        known = np.flatnonzero(np.isfinite(first + second))
        order = known[np.argsort(second[known] - first[known], kind="stable")]
        yield Duel(
            infos[one.run],
            infos[base.run],
            scores.main,
            tuple(evaluation.topics[i] for i in order),
            first[order],
            second[order],
        )


def _agreements(scores: Scores, categories: Sequence[str]) -> Iterator[Agreement]:
    groups = {"": np.ones(len(scores.runs), dtype=bool)}
    if len(categories) > 1:
        groups |= {name: np.array([run.category == name for run in scores.runs]) for name in categories}
    for first, second in combinations(scores.measures, 2):
        one, other = scores.of(first), scores.of(second)
        for category, chosen in groups.items():
            known = chosen & np.isfinite(one) & np.isfinite(other)
            if known.sum() < 3:
                continue
            a, b = one[known], other[known]
            found = kendall(a, b, variant="b")
            a, b = a - a.mean(), b - b.mean()
            scale = float(np.sqrt((a @ a) * (b @ b)))
            pearson = float(a @ b) / scale if scale > 0 else None
            yield Agreement(first, second, category, found.tau, found.p, pearson, len(a))


_NAMES: Final = ("statement", "name", "key")
_VALUES: Final = ("value", "stated")


class Statement(NamedTuple):
    """One figure that follows from the runs.

    `name` is what a table of stated figures calls it; `unit` is "percent", "runs", "groups" or "topics"; `stated` is
    the figure that a text gives for it, as written there, "" for none.
    """

    name: str
    value: float
    unit: str
    stated: str = ""

    @property
    def shown(self) -> str:
        """The value as people read it: percentages to two digits, counts as they are."""
        return f"{self.value:.2f}" if self.unit == "percent" else f"{self.value:,.0f}"

    @property
    def difference(self) -> float | None:
        """By how much the value is above the stated figure; None where none is stated."""
        return self.value - float(self.stated) if self.stated else None


def statements(analysis: Analysis, stated: Mapping[str, str] | None = None) -> tuple[Statement, ...]:
    """The figures of a track's text, beside those that are stated."""
    found = [*_percentages(analysis), *_counts(analysis)]
    names = [one.name for one in found]
    for name in stated or {}:
        if name not in names:
            raise OptionError("stated", f"no statement is called '{name}'", f"one of: {'; '.join(names)}")
    return tuple(one._replace(stated=(stated or {}).get(one.name, "")) for one in found)


def agrees(statement: Statement) -> bool | None:
    """Whether the value, rounded half up to the digits of the stated figure, is that figure; None for none stated."""
    if not statement.stated:
        return None
    figure = Decimal(statement.stated)
    # Six digits first: what a division adds behind them must not push a half up or down.
    value = Decimal(f"{statement.value:.6f}")
    return value.quantize(Decimal(1).scaleb(int(figure.as_tuple().exponent)), ROUND_HALF_UP) == figure


def read_stated(path: str | Path) -> dict[str, str]:
    """Reads figures that a text states, as they are written: a table with the columns `statement` and `value`."""
    spec = grammar.parse(str(path))
    form = formats.detect(compressed.checked_file(spec.path), spec.format)
    found: dict[str, str] = {}
    for row in rows(spec.path, "csv" if form == "lines" else form):
        values = {str(name).strip().lower(): value for name, value in row.values.items()}
        name, value = (_cell(values, names) for names in (_NAMES, _VALUES))
        if name is None or value is None:
            raise InputError("no statement or no value", "give columns statement, value", where=path, line=row.line)
        try:
            Decimal(value)
        except InvalidOperation as error:
            raise InputError(f"'{value}' is not a number", "write it as 29.4", where=path, line=row.line) from error
        found[name] = value
    return found


def statements_table(found: Sequence[Statement]) -> Table:
    """The figures; with those stated and the differences where there are any."""
    compared = any(one.stated for one in found)
    columns = [Column("statement"), Column("value", align="right"), Column("unit")]
    if compared:
        columns += heads("stated:, difference:+.2f, agrees")
    rows = []
    for one in found:
        verdict = {None: None, True: "yes", False: "no"}[agrees(one)]
        rows.append(
            (one.name, one.shown, one.unit, *((one.stated or None, one.difference, verdict) if compared else ()))
        )
    notes = ("Agrees: the value, rounded to the digits of the stated figure, is that figure.",) if compared else ()
    return Table("What follows from the runs.", tuple(columns), tuple(rows), notes=notes)


def _percentages(analysis: Analysis) -> Iterator[Statement]:
    for one in analysis.best:
        if one.gain is not None:
            yield Statement(f"best {one.category} over best {analysis.baseline}", one.gain, "percent")
    for gap in analysis.gaps:
        if gap.gain is not None and gap.measure == analysis.scores.main:
            yield Statement("best fullrank over best rerank", gap.gain, "percent")
    if analysis.candidates is not None and analysis.candidates.gain is not None:
        yield Statement("best NCG over the candidates", analysis.candidates.gain, "percent")
    for duel in analysis.duels:
        name = f"topics that {duel.first.category} wins over {duel.second.category}"
        yield Statement(name, float(duel.wins), "topics")


def _counts(analysis: Analysis) -> Iterator[Statement]:
    infos = analysis.scores.runs
    groups = {run.group for run in infos if run.group}
    if groups:
        yield Statement("groups", float(len(groups)), "groups")
    yield Statement("runs", float(len(infos)), "runs")
    for category in analysis.categories:
        yield Statement(f"runs {category}", float(sum(run.category == category for run in infos)), "runs")
    for subtask in SUBTASKS:
        if any(run.subtask for run in infos):
            yield Statement(f"runs {subtask}", float(sum(run.subtask == subtask for run in infos)), "runs")


def _cell(values: Mapping[str, Any], names: Sequence[str]) -> str | None:
    for name in names:
        if values.get(name) is not None and str(values[name]).strip():
            return str(values[name]).strip()
    return None


#: Below this many runs neighbourhoods mean nothing: there, similarities are shown themselves.
FEWEST_RUNS: Final = 10
_PERPLEXITY: Final = 30.0
_DIGITS: Final = 4
#: A vector of deviations from its mean that is shorter than this is rounding.
_CONSTANT: Final = 1e-12


class RunMap(NamedTuple):
    """Places of runs in a plane, which has no unit: only who is near whom counts.

    `points` has the shape (runs, 2); `topics` is the length of the vectors behind it.
    """

    points: Floats
    topics: int
    perplexity: float
    seed: int


class RunSimilarities(NamedTuple):
    """Pearson's correlation of the scores by topic of each pair of runs, shape (runs, runs); NaN where one is constant.

    `topics` is the number of topics behind each of them.
    """

    values: Floats
    topics: int


def run_similarities(evaluation: Evaluation, measure: str) -> RunSimilarities | None:
    """How alike runs are: high where they do well and badly on the same topics.

    Args:
        evaluation: the scores; topics that a run was not scored on are left out.
        measure: one of its measures.

    Returns:
        The correlations, in the order of the evaluation's runs; None for fewer than two runs or three topics.
    """
    vectors = _vectors(evaluation, measure)
    runs, topics = vectors.shape
    if runs < 2 or topics < 3:
        return None
    centred = vectors - vectors.mean(axis=1, keepdims=True)
    lengths = np.sqrt((centred**2).sum(axis=1))
    centred[lengths < _CONSTANT] = np.nan
    with np.errstate(invalid="ignore", divide="ignore"):
        values: Floats = np.clip(centred @ centred.T / np.outer(lengths, lengths), -1.0, 1.0)
    return RunSimilarities(values.round(_DIGITS), topics)


def _vectors(evaluation: Evaluation, measure: str) -> Floats:
    """The scores of the topics that all runs were scored on, shape (runs, topics)."""
    vectors = np.stack([evaluation.of(run, measure) for run in evaluation.runs])
    known: Floats = vectors[:, np.isfinite(vectors).all(axis=0)]
    return known


def run_map(evaluation: Evaluation, measure: str, *, seed: int = 0, perplexity: float | None = None) -> RunMap | None:
    """Lays runs out in a plane by their scores on each topic, with t-SNE.

    The gradient is computed exactly, in one thread and from a start by principal components, so that the same scores
    give the same places.

    Args:
        evaluation: the scores; topics that a run was not scored on are left out.
        measure: one of its measures.
        seed: of the layout.
        perplexity: how many neighbours count; by default 30, but at most a third of the other runs.

    Returns:
        The places, in the order of the evaluation's runs; None for fewer than ten runs or two topics.

    Raises:
        MissingExtraError: scikit-learn is not installed.

    Source: Craswell et al.: Overview of the TREC 2019 Deep Learning Track, section 4, Figure 4.
    """
    vectors = _vectors(evaluation, measure)
    runs, topics = vectors.shape
    if runs < FEWEST_RUNS or topics < 2:
        return None
    with needed_for("the map of runs", "track"):
        from sklearn.manifold import TSNE
        from threadpoolctl import threadpool_limits
    bound = (runs - 1) / 3.0
    chosen = min(_PERPLEXITY, bound) if perplexity is None else min(perplexity, bound)
    with threadpool_limits(limits=1):
        layout = TSNE(n_components=2, perplexity=chosen, init=_start(vectors), method="exact", random_state=seed)
        points = layout.fit_transform(vectors)
    places: Floats = np.asarray(points, dtype=np.float64).round(_DIGITS)
    return RunMap(places, topics, chosen, seed)


def _start(vectors: Floats) -> Floats:
    """The first two principal components, as small as t-SNE wants them, with signs that do not depend on LAPACK.

    Equal vectors would never part: each run is moved by less than any difference that counts.
    """
    centred = vectors - vectors.mean(axis=0)
    left, sizes, right = np.linalg.svd(centred, full_matrices=False)
    signs = np.sign(right[np.arange(len(right)), np.abs(right).argmax(axis=1)])
    start = (left * sizes * np.where(signs == 0, 1.0, signs))[:, :2]
    spread = float(start[:, 0].std())
    steps = np.linspace(-1e-7, 1e-7, len(start))
    scaled: Floats = (start / spread if spread > 0 else start) * 1e-4 + steps[:, None]
    return scaled
