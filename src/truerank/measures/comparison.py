"""A comparison of systems: how it tests, its differences, and what they say."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Final, Literal, NamedTuple

import numpy as np

from truerank.arrays import Floats
from truerank.core.plain import picked
from truerank.core.result import Result
from truerank.errors import OptionError
from truerank.measures.grammar import lower_is_better
from truerank.measures.magnitudes import (
    EFFECT_SIZES,
    EffectSize,
    IntervalMethod,
    detectable_difference,
    difference_interval,
    effect_size,
)
from truerank.measures.resampling import Bootstrap
from truerank.measures.significance import (
    CORRECTIONS,
    PAIRED_TESTS,
    TESTS,
    ZEROS,
    Correction,
    Outcome,
    Test,
    Zeros,
    correct,
    difference_test,
    randomisation_columns,
)
from truerank.measures.systems import Evaluations, System, measure_names, named_evaluations, shared_topics, systems
from truerank.options import Confidence, Flag, Options, Range, Scoring, Seed

Family = Literal["measure", "all"] | Annotated[int, Range(at_least=1)]

_UNPAIRED_SIZES = ("ds", "gs")
_PERMUTATIONS, _DRAWS = 100_000, 10_000


@dataclass(frozen=True)
class Significance(Options):
    """How runs are compared; every choice is printed with the result.

    Attributes:
        significance: the test; welch, equal-variance-t and unpaired-randomisation allow different topics.
        correction: for the number of comparisons; bh is Benjamini–Hochberg.
        confidence: of intervals; a corrected p below 1 − confidence is significant.
        family: what is corrected for: the comparisons by one measure, by all measures, or a number.
        effect_size: Cohen's d or Hedges' g; by default dz, for unpaired tests ds.
        zeros: what the Wilcoxon test does with equal scores.
        interval: by the t distribution, or by the bootstrap (percentile or bca).
        resamples: samples drawn; by default 100,000 for a randomisation test and 10,000 for the bootstrap.
        seed: the seed of all random draws.
        tie: differences by topic up to this are ties.
        power: of the smallest detectable difference.
    """

    significance: Test = "paired-t"
    correction: Correction = "bonferroni"
    confidence: Confidence = 0.95
    family: Annotated[Family, Flag(metavar="measure|all|N")] = "measure"
    effect_size: EffectSize | None = None
    zeros: Zeros = "wilcox"
    interval: Literal["t", "percentile", "bca"] = "t"
    resamples: Annotated[int | None, Range(at_least=1)] = None
    seed: Seed = 0
    tie: Annotated[float, Range(at_least=0)] = 1e-9
    power: Annotated[float, Range(above=0, below=1), Flag(hidden=True)] = 0.8

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.effect_size is not None and not self.paired and self.effect_size not in _UNPAIRED_SIZES:
            raise OptionError("effect_size", f"{self.effect_size} needs a paired test", "choose ds or gs")

    @property
    def alpha(self) -> float:
        """The level: a corrected p below it is significant."""
        return round(1 - self.confidence, 12)

    @property
    def permutations(self) -> int:
        """Samples of a randomisation test."""
        return self.resamples or _PERMUTATIONS

    @property
    def draws(self) -> int:
        """Samples of the bootstrap."""
        return self.resamples or _DRAWS

    @property
    def bootstrap(self) -> Bootstrap | None:
        """The bootstrap of intervals; None for those by the t distribution."""
        return None if self.interval == "t" else self.interval

    @property
    def paired(self) -> bool:
        """Whether the test compares the scores of the same topics."""
        return self.significance in PAIRED_TESTS

    @property
    def effect(self) -> EffectSize:
        """The effect size that is computed."""
        return self.effect_size or ("dz" if self.paired else "ds")

    def sentences(self) -> tuple[str, ...]:
        """The choices in words, one sentence each."""
        tests = [f"{TESTS[self.significance]}, two-sided"]
        if self.significance == "wilcoxon":
            tests.append(ZEROS[self.zeros])
        if self.significance.endswith("randomisation"):
            tests.append(f"{self.permutations:,} permutations, or all where there are no more, seed {self.seed}")
        if self.bootstrap:
            kind = {"percentile": "percentile bootstrap", "bca": "BCa bootstrap"}[self.bootstrap]
            interval = f"{kind}, {self.draws:,} draws, seed {self.seed}"
        elif self.paired:
            interval = "Student t of the per-topic differences"
        else:
            interval = "t with equal variances" if self.significance == "equal-variance-t" else "Welch"
        found = [
            f"p: {'; '.join(tests)}.",
            f"Corrected: {self.corrected()}; † below α = {self.alpha:g}.",
            f"{100 * self.confidence:.6g}% intervals: {interval}.",
            f"Effect: {EFFECT_SIZES[self.effect]}.",
        ]
        if self.paired:
            found.append(f"Win / tie / loss: topics on which the run is better, as good (within {self.tie:g}), worse.")
        found.append(
            f"Detectable: the smallest true difference that a t-test finds with power {self.power:g} at α = "
            f"{self.alpha:g} before correction, given this many topics and this spread."
        )
        return tuple(found)

    def corrected(self) -> str:
        """The correction and its family in words."""
        if self.correction == "none":
            return CORRECTIONS["none"]
        over = {"measure": "the comparisons by each measure", "all": "the comparisons by all measures together"}
        family = f"{self.family:,} comparisons" if isinstance(self.family, int) else over[self.family]
        return f"{CORRECTIONS[self.correction]} over {family}"

    def json(self) -> dict[str, Any]:
        """The choices by the names that `comparison.json` has for them."""
        names = "test=significance, correction, alpha, family, effect, zeros, permutations, bootstrap, resamples=draws"
        return picked(self, f"{names}, seed, tie, power")


#: Stands at a significant difference.
MARK: Final = "†"
_NAMED: Final = 10


class Difference(NamedTuple):
    """One run compared with one baseline by one measure.

    Attributes:
        measure: its name.
        run: the run.
        baseline: what it is compared with.
        n: topics; those of the run and of the baseline where the test is unpaired.
        skipped: topics that were left out because one of the two was not scored on them.
        mean: of the run over these topics; None where there are none or a score is infinite.
        baseline_mean: of the baseline.
        difference: run minus baseline, in the unit of the measure.
        low: lower end of the difference's interval.
        high: upper end.
        statistic: of the test.
        freedom: degrees of freedom of a t-test.
        p: two-sided.
        p_corrected: corrected for the number of comparisons.
        significant: whether that is below the level.
        better: whether the run is the better one; None where the means are equal.
        effect: the effect size.
        wins: topics on which the run is better; None, like the next two, where the test is unpaired.
        ties: topics on which both are as good.
        losses: topics on which the run is worse.
        detectable: the smallest true difference that a t-test would find.
        how: how p was found, where there are several ways.
        case: empty, or why there is no p, see `significance.CASES`.
    """

    measure: str
    run: str
    baseline: str
    n: tuple[int, ...]
    skipped: int
    mean: float | None
    baseline_mean: float | None
    difference: float | None
    low: float | None
    high: float | None
    statistic: float | None
    freedom: float | None
    p: float | None
    p_corrected: float | None
    significant: bool
    better: bool | None
    effect: float | None
    wins: int | None
    ties: int | None
    losses: int | None
    detectable: float | None
    how: str
    case: str


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Result, shown_in="truerank.measures.report"):
    """Runs compared with a baseline or with each other.

    Attributes:
        method: test, correction, level.
        baseline: the run or evaluation that the others are compared with; None for all pairs.
        runs: the runs that take part, baselines first.
        measures: what they are compared by.
        left_out: measures that are not means over topics.
        differences: by measure and pair.
        policies: by evaluation, how its runs were scored.
        remarks: what has to be said of its measures, its judgments and its runs.
    """

    method: Significance
    baseline: str | None
    runs: tuple[str, ...]
    measures: tuple[str, ...]
    left_out: tuple[str, ...]
    differences: tuple[Difference, ...]
    policies: Mapping[str, Scoring] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()

    def of(self, run: str, measure: str, baseline: str | None = None) -> Difference:
        """One difference.

        Args:
            run: the run.
            measure: the measure.
            baseline: what the run is compared with; needed where that are several.

        Raises:
            KeyError: there is none, or there are several.
        """
        found = [
            row
            for row in self.differences
            if (row.run, row.measure) == (run, measure) and baseline in (None, row.baseline)
        ]
        if len(found) != 1:
            raise KeyError(f"{len(found)} differences of {run} by {measure}")
        return found[0]

    def sentences(self) -> tuple[str, ...]:
        """What survived the correction, one sentence or two by measure."""
        return tuple(sentence for measure in self.measures for sentence in self._sentences(measure))

    def json(self) -> dict[str, Any]:
        """Everything, as plain numbers and texts."""
        return picked(self, "baseline, runs, measures, left_out, method, policies, differences, sentences")

    def _sentences(self, measure: str) -> Iterator[str]:
        rows = [row for row in self.differences if row.measure == measure]
        survivors = [row for row in rows if row.significant]
        corrected = self.method.correction != "none"
        family = self.method.family if isinstance(self.method.family, int) else len(rows)
        family = len(self.differences) if self.method.family == "all" else family
        over = f"{CORRECTIONS[self.method.correction]} over {family:,} comparison{'s' if family != 1 else ''}"
        how = f"{TESTS[self.method.significance]}, {over if corrected else 'no correction'}, α = {self.method.alpha:g}"
        against = " between runs" if self.baseline is None else f" to {self.baseline}"
        if survivors:
            verb = "survives" if len(survivors) == 1 else "survive"
            named = "; ".join(self._named(row) for row in survivors[:_NAMED])
            more = f"; and {len(survivors) - _NAMED:,} more" if len(survivors) > _NAMED else ""
            yield (
                f"{measure}: {len(survivors):,} of {len(rows):,} difference{'s' if len(rows) != 1 else ''}{against} "
                f"{verb} ({how}): {named}{more}."
            )
        else:
            yield f"{measure}: no difference{against} survives, 0 of {len(rows):,} ({how}).{self._nearest(rows)}"
        raw = sum(row.p is not None and row.p < self.method.alpha for row in rows)
        if corrected and raw > len(survivors):
            yield f"{measure}: without the correction {raw:,} would."

    def _named(self, row: Difference) -> str:
        name = f"{row.run} − {row.baseline}" if self.baseline is None else row.run
        direction = "" if not lower_is_better(row.measure) else ", lower is better"
        return f"{name} ({row.difference:+.4f}, p = {row.p_corrected:.3g}{direction})"

    def _nearest(self, rows: Sequence[Difference]) -> str:
        """How far the data are from showing anything."""
        known = [row for row in rows if row.p is not None]
        reach = [row.detectable for row in rows if row.detectable is not None]
        found = f" The smallest p is {min(row.p for row in known if row.p is not None):.3g}." if known else ""
        if reach:
            ends = f"{min(reach):.4f}" if len(reach) == 1 else f"{min(reach):.4f} to {max(reach):.4f}"
            found += f" Even uncorrected, differences below {ends} are too small for these topics to show reliably."
        return found


_INTERVALS: Final[dict[str, IntervalMethod]] = {
    "welch": "welch",
    "unpaired-randomisation": "welch",
    "equal-variance-t": "equal-variance-t",
}


class _Pair(NamedTuple):
    """Two systems and their scores by one measure, without the topics that either was not scored on."""

    run: System
    baseline: System
    first: Floats
    second: Floats
    skipped: int


def compare_evaluations(
    evaluations: Evaluations,
    baseline: str | None = None,
    *,
    measures: str | Sequence[str] | None = None,
    method: Significance | None = None,
    **changes: Any,
) -> Comparison:
    """Compares runs with a baseline, or all with each other.

    Args:
        evaluations: the scores; several by name, such as {"depth 1": …, "full": …}, are pooled.
        baseline: a run; or, of several evaluations, the name of one, so that each run is compared with the run of the
            same name there; None for all pairs of runs.
        measures: which measures, separated by blanks or as a list; None for all that are means over topics.
        method: test, correction, level and so on.
        **changes: fields of `Significance` that differ from it, such as significance="welch" or confidence=0.99.

    Returns:
        One difference per pair and measure, run minus baseline.

    Raises:
        InputError: fewer than two runs, an unknown baseline or measure, a measure that is not a mean over topics, or a
            paired test of runs that were scored on different topics.
    """
    method = replace(method or Significance(), **changes)
    named, found = named_evaluations(evaluations), systems(evaluations)
    names, left_out = _measures(list(named.values()), measures)
    pairs = _pairs(found, list(named), baseline)
    rows: list[Difference] = []
    for measure in names:
        scores = [_scores(pair, measure, method) for pair in pairs]
        outcomes = _outcomes(scores, method)
        rows += [_difference(measure, pair, found, method) for pair, found in zip(scores, outcomes, strict=True)]
    # The remark on a measure begins with its name.
    remarks = (
        remark
        for evaluation in named.values()
        for remark in evaluation.remarks
        if not (about := {remark.partition(": ")[0]} & {*evaluation.measures}) or about <= {*names}
    )
    return Comparison(
        method=method,
        baseline=baseline,
        runs=tuple(dict.fromkeys(system.name for pair in pairs for system in reversed(pair))),
        measures=tuple(names),
        left_out=tuple(left_out),
        differences=_corrected(rows, method),
        policies={name: evaluation.policy for name, evaluation in named.items()},
        remarks=tuple(dict.fromkeys(remarks)),
    )


def _measures(evaluations: Sequence[Any], wanted: str | Sequence[str] | None) -> tuple[list[str], list[str]]:
    """The measures to compare by, and those that are left out because they are not means over topics."""
    kinds: dict[str, str] = {}
    for evaluation in evaluations:
        kinds.update(zip(evaluation.measures, evaluation.aggregates, strict=True))
    shared = [name for name in kinds if all(name in evaluation.measures for evaluation in evaluations)]
    if wanted is None:
        means = [name for name in shared if kinds[name] == "mean"]
        if not means:
            raise OptionError(
                "measures", "no measure that is a mean over topics and that all runs have", "evaluate by one"
            )
        return means, [name for name in shared if kinds[name] != "mean"]
    names = measure_names(wanted, shared)
    for name in names:
        if kinds[name] != "mean":
            raise OptionError("measures", f"{name} is not a mean over topics", "choose a measure that is")
    return names, []


def _pairs(found: dict[str, System], labels: Sequence[str], baseline: str | None) -> list[tuple[System, System]]:
    """The pairs that are compared, as (run, baseline)."""
    if len(found) < 2:
        raise OptionError("run", "a comparison needs two runs", "give more with `run`")
    if baseline is None:
        # The second of two is compared with the first, so that the difference says what came of it.
        return [(second, first) for first, second in itertools.combinations(found.values(), 2)]
    if baseline in found:
        return [(system, found[baseline]) for name, system in found.items() if name != baseline]
    if len(labels) < 2 or baseline not in labels:
        names = [*found, *(label for label in labels if label)] if len(labels) > 1 else list(found)
        raise OptionError("baseline", f"there is no run '{baseline}'", f"one of {', '.join(names)}")
    namesakes = {system.run: system for system in found.values() if system.label == baseline}
    pairs = [(s, namesakes[s.run]) for s in found.values() if s.label != baseline and s.run in namesakes]
    if not pairs:
        raise OptionError("baseline", f"no run of another evaluation is also in {baseline}", "name a run")
    return pairs


def _scores(pair: tuple[System, System], measure: str, method: Significance) -> _Pair:
    first, second = (system.scores(measure) for system in pair)
    if method.significance in PAIRED_TESTS:
        _, own, other = shared_topics(*pair)
        first, second = first[own], second[other]
        known = ~(np.isnan(first) | np.isnan(second))
        return _Pair(*pair, first[known], second[known], int((~known).sum()))
    skipped = int(np.isnan(first).sum() + np.isnan(second).sum())
    return _Pair(*pair, first[~np.isnan(first)], second[~np.isnan(second)], skipped)


def _outcomes(pairs: Sequence[_Pair], method: Significance) -> list[Outcome]:
    number, seed = method.permutations, method.seed
    if method.significance != "randomisation":
        return [
            difference_test(p.first, p.second, method.significance, zeros=method.zeros, permutations=number, seed=seed)
            for p in pairs
        ]
    outcomes: dict[int, Outcome] = {}
    # The draws are shared by all comparisons over as many topics.
    for topics in dict.fromkeys(len(pair.first) for pair in pairs):
        places = [place for place, pair in enumerate(pairs) if len(pair.first) == topics]
        first = np.stack([pairs[place].first for place in places], axis=1)
        second = np.stack([pairs[place].second for place in places], axis=1)
        outcomes.update(zip(places, randomisation_columns(first, second, permutations=number, seed=seed), strict=True))
    return [outcomes[place] for place in range(len(pairs))]


def _difference(measure: str, pair: _Pair, outcome: Outcome, method: Significance) -> Difference:
    first, second = pair.first, pair.second
    paired = method.significance in PAIRED_TESTS
    interval = difference_interval(
        first,
        second,
        method=_INTERVALS.get(method.significance, "paired-t"),
        confidence=method.confidence,
        bootstrap=method.bootstrap,
        resamples=method.draws,
        seed=method.seed,
    )
    ascending = lower_is_better(measure)
    better = None if not interval.mean else (interval.mean < 0) == ascending
    counts = _wins(first, second, method.tie, ascending) if paired else (None, None, None)
    return Difference(
        measure=measure,
        run=pair.run.name,
        baseline=pair.baseline.name,
        n=outcome.n,
        skipped=pair.skipped,
        mean=_mean(first),
        baseline_mean=_mean(second),
        difference=interval.mean,
        low=interval.low,
        high=interval.high,
        statistic=outcome.statistic,
        freedom=outcome.freedom,
        p=outcome.p,
        p_corrected=None,
        significant=False,
        better=better,
        effect=effect_size(first, second, method.effect),
        wins=counts[0],
        ties=counts[1],
        losses=counts[2],
        detectable=_detectable(first, second, paired, method),
        how=outcome.how,
        case=outcome.case,
    )


def _corrected(rows: Sequence[Difference], method: Significance) -> tuple[Difference, ...]:
    """The same rows with corrected p-values, by measure or all as one family."""
    families: dict[str, list[int]] = {}
    for place, row in enumerate(rows):
        families.setdefault("" if method.family == "all" else row.measure, []).append(place)
    found = list(rows)
    for places in families.values():
        size = method.family if isinstance(method.family, int) else None
        corrected = correct([rows[place].p for place in places], method.correction, family=size)
        for place, p in zip(places, corrected, strict=True):
            found[place] = rows[place]._replace(p_corrected=p, significant=p is not None and p < method.alpha)
    return tuple(found)


def _wins(first: Floats, second: Floats, tie: float, ascending: bool) -> tuple[int, int, int]:
    """On how many topics the first is better, as good and worse; both infinite are as good."""
    with np.errstate(invalid="ignore"):
        differences = np.where(first == second, 0.0, first - second) * (-1 if ascending else 1)
    wins, losses = int((differences > tie).sum()), int((differences < -tie).sum())
    return wins, len(first) - wins - losses, losses


def _detectable(first: Floats, second: Floats, paired: bool, method: Significance) -> float | None:
    if min(len(first), len(second)) < 2 or not (np.isfinite(first).all() and np.isfinite(second).all()):
        return None
    if paired:
        sd = float((first - second).std(ddof=1))
        return detectable_difference(len(first), sd, power=method.power, alpha=method.alpha)
    counts = len(first), len(second)
    squares = sum((n - 1) * float(side.var(ddof=1)) for n, side in zip(counts, (first, second), strict=True))
    sd = float(np.sqrt(squares / (sum(counts) - 2)))
    return detectable_difference(counts[0], sd, power=method.power, alpha=method.alpha, others=counts[1])


def _mean(scores: Floats) -> float | None:
    return float(scores.mean()) if len(scores) and np.isfinite(scores).all() else None
