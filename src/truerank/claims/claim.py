"""A claim that one run is better than another, as data: the scores of both, and what repairs of the data do to it."""

from __future__ import annotations

import difflib
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
import polars as pl

from truerank.arrays import Floats
from truerank.errors import InputError, OptionError
from truerank.measures import Evaluation, difference_interval
from truerank.measures.document_placebo import RankedDocuments, document_placebos
from truerank.measures.equivalence import EquivalenceOptions
from truerank.measures.grammar import lower_is_better, parse_measures
from truerank.measures.magnitudes import ROUNDING, too_few
from truerank.measures.placebo import SystemPlacebo, edited, placebo_removal
from truerank.measures.rankings import has_topics
from truerank.measures.scoring import evaluate
from truerank.options import Resampling, Scoring
from truerank.sources.qrels import QREL_SCHEMA

#: What becomes of the claim under a condition.
Effect = Literal["stands", "smaller", "not shown", "falls", "appears", "unknown"]
#: What the scores of a claim are of: of a table of questions, or of topics; results of MTEB have one for each task.
Unit = Literal["questions", "topics", "tasks"]


@dataclass(frozen=True)
class ClaimEstimate:
    """The difference under one condition.

    Attributes:
        label: the condition, in a few words.
        value: the difference, positive where the claim's system is better; None where there is none.
        low: the lower end of its interval, or of a range.
        high: the upper end.
        topics: topics that it is over.
        effect: what becomes of the claim.
        is_range: the ends are the least and the largest value under a condition, and no interval of chance.
        measure: where it is another one than the claim's.
        scores: the means of the system and of the baseline on these topics; None where they are not looked at.
        few: so few topics differ that the interval says nothing, and is not shown.
    """

    label: str
    value: float | None
    low: float | None
    high: float | None
    topics: int
    effect: Effect
    is_range: bool = False
    measure: str = ""
    scores: tuple[float, float] | None = None
    few: bool = False

    @property
    def ends(self) -> tuple[float, float] | None:
        """Those of the interval, where there is one to show."""
        return None if self.low is None or self.high is None or self.few else (self.low, self.high)

    def figures(self) -> str:
        """The difference and its ends in figures."""
        if self.value is None:
            return "–"
        return f"{signed(self.value)}{self.interval}"

    @property
    def interval(self) -> str:
        """The interval in brackets, behind a blank; empty where there is none to show."""
        return "" if self.ends is None else " ({} to {})".format(*map(signed, self.ends))


def signed(value: float) -> str:
    """A difference with its sign, three decimals; none of it where it is nothing."""
    return f"{value:+.3f}".replace("-", "−") if round(value, 3) else "0.000"


@dataclass(frozen=True, eq=False)
class Repair:
    """What is certainly wrong with the data, and what to do about it.

    Attributes:
        what: as a list of repairs names it: "without the 43 topics that match a training query".
        topics: topics that are left out.
        documents: documents that are left out of runs and judgments.
        edits: judgments that change, columns as in `placebo.EDITS`.
        equivalent: documents that count as another one.
        which: of the topics that it touches, what a table calls them, and what is the matter: "that match", "a query".
        where: how a sentence on what is left begins; by default it names the topics that are left.
    """

    what: str
    topics: frozenset[str] = frozenset()
    documents: frozenset[str] = frozenset()
    edits: pl.DataFrame | None = None
    equivalent: Mapping[str, str] = field(default_factory=dict)
    which: tuple[str, str] = ("at fault", "")
    where: str = ""

    @property
    def done(self) -> str:
        """What was done about it."""
        if not self.topics and not self.documents:
            return "corrected"
        corrected = self.edits is not None and not self.edits["doc_id"].is_in([*self.documents]).all()
        return "corrected or left out" if self.equivalent or corrected else "left out"

    def touched(self, claim: Claim) -> frozenset[str]:
        """The topics of a claim that are left out, or lose a relevant document, or have a judgment that changes."""
        of_documents = claim.qrels.filter(
            pl.col("doc_id").is_in([*self.documents]) & (pl.col("relevance") >= claim.scoring.rel)
        )
        found = self.topics | frozenset(of_documents["topic_id"])
        if self.edits is not None:
            found |= frozenset(self.edits["topic_id"])
        return found & frozenset(claim.answered)


@dataclass(frozen=True, eq=False)
class Claim:
    """One run is better than another by a measure.

    Attributes:
        system: the run that is called better.
        baseline: the other one.
        measure: as it is spelled.
        runs: all runs by name, columns topic_id, doc_id, score, rank; none where only scores were given.
        qrels: the judgments, columns topic_id, doc_id, relevance.
        scoring: how runs are scored.
        evaluation: the scores of all runs by the measure.
        comparisons: how many comparisons the claim was chosen from.
        confidence: of all intervals together.
        equivalent: documents that count as another one.
        unit: what each score is of, as sentences name it.
    """

    system: str
    baseline: str
    measure: str
    runs: Mapping[str, pl.DataFrame]
    qrels: pl.DataFrame
    scoring: Scoring
    evaluation: Evaluation
    comparisons: int
    confidence: float
    equivalent: Mapping[str, str] = field(default_factory=dict)
    unit: Unit = "topics"

    @property
    def pair(self) -> dict[str, pl.DataFrame]:
        """The two runs."""
        return {name: self.runs[name] for name in (self.system, self.baseline)}

    @property
    def level(self) -> float:
        """The confidence of each interval, with Bonferroni's correction for the comparisons."""
        return 1 - (1 - self.confidence) / self.comparisons

    def too_few(self, differences: Floats) -> str:
        """Why these differences are too few to tell; empty where they are not."""
        return too_few(differences, self.level, self.unit.removesuffix("s"))

    @cached_property
    def base(self) -> ClaimEstimate:
        """The difference as the data are."""
        return self.of(self.evaluation, "as given")

    @property
    def answered(self) -> list[str]:
        """The topics that count."""
        return [topic for topic, gap in zip(self.evaluation.topics, self.gaps, strict=True) if not math.isnan(gap)]

    @property
    def golden(self) -> bool:
        """Whether it is about a table of questions, whose users know nothing of topics."""
        return self.unit == "questions"

    @property
    def measured(self) -> str:
        """The measure as it stands behind a figure; the scores of a table have no name to speak of."""
        return "" if self.measure == "score" else f" {self.measure}"

    @cached_property
    def gaps(self) -> Floats:
        """The differences by topic as the data are."""
        return self.differences(self.evaluation)

    def differences(self, evaluation: Evaluation) -> Floats:
        """The differences by topic, shape (topics,), positive where the system is better; NaN for skipped topics."""
        return self.differences_by(evaluation, evaluation.measures[0])

    def differences_by(self, evaluation: Evaluation, measure: str) -> Floats:
        """The same by one of several measures."""
        sign = -1.0 if lower_is_better(measure) else 1.0
        found: Floats = sign * (evaluation.of(self.system, measure) - evaluation.of(self.baseline, measure))
        return found

    def scored(
        self,
        qrels: pl.DataFrame | None = None,
        *,
        runs: Mapping[str, pl.DataFrame] | None = None,
        measure: str | None = None,
        scoring: Scoring | None = None,
        equivalent: Mapping[str, str] | None = None,
    ) -> Evaluation:
        """Scores both runs under other conditions; what is not given stays as it is."""
        if not self.runs:
            pair = [self.evaluation.runs.index(name) for name in (self.system, self.baseline)]
            return replace(self.evaluation, runs=(self.system, self.baseline), values=self.evaluation.values[pair])
        return evaluate(
            self.qrels if qrels is None else qrels,
            dict(self.pair if runs is None else runs),
            measure or self.measure,
            scoring or self.scoring,
            EquivalenceOptions(equivalent={**self.equivalent, **(equivalent or {})} or None),
        )

    def repaired(self, repairs: Sequence[Repair]) -> Claim | None:
        """The claim on repaired data; None where no topic is left.

        Args:
            repairs: all of them are applied together, once.
        """
        if not self.runs:
            gone = {topic for repair in repairs for topic in repair.topics}
            kept = [place for place, topic in enumerate(self.evaluation.topics) if topic not in gone]
            names = tuple(self.evaluation.topics[place] for place in kept)
            scores = replace(self.evaluation, topics=names, values=self.evaluation.values[:, :, kept])
            return None if np.isnan(self.differences(scores)).all() else replace(self, evaluation=scores)
        qrels, runs = self.qrels, dict(self.runs)
        for repair in repairs:
            if repair.edits is not None:
                qrels = edited(qrels, repair.edits)
        topics = pl.Series([*{topic for repair in repairs for topic in repair.topics}], dtype=pl.String)
        documents = pl.Series([*{document for repair in repairs for document in repair.documents}], dtype=pl.String)
        if len(topics):
            # Of the runs, only topics that are judged count: large ones are not held a second time.
            qrels = qrels.filter(~pl.col("topic_id").is_in(topics.implode()))
        if len(documents):
            others = ~pl.col("doc_id").is_in(documents.implode())
            # A topic that loses its last relevant document leaves the means: there is nothing left to find.
            relevant = pl.col("relevance") >= self.scoring.rel
            before, after = self.qrels.filter(relevant), qrels.filter(relevant & others)
            bare = before.join(after, on="topic_id", how="anti")["topic_id"]
            qrels = qrels.filter(others & ~pl.col("topic_id").is_in(bare.implode()))
            runs = {name: run.filter(others) for name, run in runs.items()}
        left = qrels["topic_id"].unique()
        answering = {name for name, run in runs.items() if has_topics(run, left)}
        if not answering.issuperset(self.pair):
            return None
        runs = {name: run for name, run in runs.items() if name in answering}
        equivalent = {**self.equivalent, **{key: to for repair in repairs for key, to in repair.equivalent.items()}}
        same = EquivalenceOptions(equivalent=equivalent or None)
        evaluation = evaluate(qrels, runs, self.measure, self.scoring, same)
        return replace(self, runs=runs, qrels=qrels, evaluation=evaluation, equivalent=equivalent)

    def of(
        self, evaluation: Evaluation, label: str, within: Collection[str] | None = None, *, measure: str = ""
    ) -> ClaimEstimate:
        """The difference with both scores.

        Args:
            evaluation: the scores of both runs, perhaps under other conditions.
            label: the condition.
            within: the topics that count; by default all.
            measure: where it is another one than the claim's.
        """
        name = measure or evaluation.measures[0]
        gaps = self.differences_by(evaluation, name)
        if within is not None:
            gaps = np.where([topic in within for topic in evaluation.topics], gaps, np.nan)
        row, known = self.estimate(gaps, label, measure=measure), ~np.isnan(gaps)
        if not known.any():
            return row
        system, baseline = (float(evaluation.of(run, name)[known].mean()) for run in (self.system, self.baseline))
        return replace(row, scores=(system, baseline))

    def estimate(self, differences: Floats, label: str, *, measure: str = "") -> ClaimEstimate:
        """The mean difference with its interval, and what becomes of the claim by it.

        Args:
            differences: by topic, shape (topics,); NaN where a topic is left out.
            label: the condition.
            measure: where it is another one than the claim's.
        """
        known = differences[~np.isnan(differences)]
        found = difference_interval(known, np.zeros(len(known)), confidence=self.level)
        effect, values = effect_of(found.mean, found.low, found.high), self.evaluation.values
        if found.low is not None and found.high is not None and np.nanmin(values) >= 0 and np.nanmax(values) <= 1:
            found = found._replace(low=max(found.low, -1.0), high=min(found.high, 1.0))  # no two scores differ by more
        if len(known) and np.ptp(known) <= ROUNDING:
            # An interval without width is none; that all differ in one direction is what a test of signs sees.
            found = found._replace(low=None, high=None)
        few = effect != "unknown" and bool(self.too_few(known))
        effect = "not shown" if few else effect
        return ClaimEstimate(label, found.mean, found.low, found.high, len(known), effect, measure=measure, few=few)


def effect_of(value: float | None, low: float | None, high: float | None) -> Effect:
    """What a difference and its interval say of the claim, taken for themselves."""
    if value is None or math.isnan(value):
        return "unknown"
    if low is not None and low > 0:
        return "stands"
    return "falls" if high is not None and high < 0 else "not shown"


def chosen_claim(
    runs: Mapping[str, pl.DataFrame],
    qrels: pl.DataFrame,
    measure: str,
    scoring: Scoring,
    names: tuple[str | None, str | None],
    *,
    comparisons: int | None,
    confidence: float,
    unit: Unit = "topics",
) -> Claim:
    """The claim: of the named runs, or of the best ones."""
    if len(runs) < 2:
        raise OptionError("run", "a claim needs two runs", "give more with `run`, or none to check the data alone")
    try:
        several = len(parse_measures(measure)) != 1
    except OptionError as error:
        raise OptionError("measure", error.fault, error.remedy) from error
    if several:
        raise OptionError("measure", f"'{measure}' is not one measure", "name others with `measures`")
    found = evaluate(qrels, dict(runs), measure, scoring)
    return claim_of(found, names, runs=runs, qrels=qrels, comparisons=comparisons, confidence=confidence, unit=unit)


def claim_of(
    found: Evaluation,
    names: tuple[str | None, str | None],
    *,
    runs: Mapping[str, pl.DataFrame] | None = None,
    qrels: pl.DataFrame | None = None,
    comparisons: int | None,
    confidence: float,
    unit: Unit = "topics",
) -> Claim:
    """The claim that scores allow: of the named systems, or of the best ones; what one lacks does not count."""
    if found.aggregates[0] != "mean":
        raise OptionError("measure", f"{found.measures[0]} is not a mean over topics", "choose a measure that is")
    for option, name in zip(("system", "baseline"), names, strict=True):
        if name is not None and name not in found.runs:
            near = difflib.get_close_matches(name, found.runs, n=1, cutoff=0.5)
            choice = f"did you mean '{near[0]}'? There are" if near else "choose one of"
            raise OptionError(option, f"there is no run '{name}'", f"{choice} {', '.join(found.runs)}")
    if names[0] is not None and names[0] == names[1]:
        raise OptionError("system", f"'{names[0]}' is the baseline too", "name two runs")
    order = [name for name in found.sorted(found.measures[0]).runs if name not in names]
    baseline = names[1] or (order[0] if names[0] else order[1])
    system = names[0] or next(name for name in order if name != baseline)
    others = len(found.runs) - 1 if names[1] else math.comb(len(found.runs), 2)
    pair = found.of(system, found.measures[0]) - found.of(baseline, found.measures[0])
    if runs and np.isnan(pair).all():
        raise InputError(f"{system} and {baseline} share no topic", "score missing topics with `missing` default")
    return Claim(
        system=system,
        baseline=baseline,
        measure=found.measures[0],
        runs=dict(runs or {}),
        qrels=pl.DataFrame(schema=QREL_SCHEMA) if qrels is None else qrels,
        scoring=found.policy,
        evaluation=found,
        comparisons=comparisons or others,
        confidence=confidence,
        unit=unit,
    )


class ClaimChange(NamedTuple):
    """What repairs do to the difference.

    Attributes:
        claim: the claim on the repaired data.
        after: the difference of the repaired data.
        size: after minus before.
        moved: whether that is more than chance makes.
        effect: what becomes of the claim.
        beside: what chance makes, in sentences; empty where nothing random is compared.
    """

    claim: Claim
    after: ClaimEstimate
    size: float
    moved: bool
    effect: Effect
    beside: str


def change_by(claim: Claim, repairs: Sequence[Repair], label: str, resampling: Resampling) -> ClaimChange | None:
    """The difference after repairs that are applied together; None where no topic is left.

    Chance is the removal of as many random topics, of as many random documents that are alike, and where judgments
    change, the interval of the changes by topic.
    """
    repaired = claim.repaired(repairs)
    if repaired is None:
        return None
    old = dict(zip(claim.evaluation.topics, claim.differences(claim.evaluation), strict=True))
    new = dict(zip(repaired.evaluation.topics, repaired.differences(repaired.evaluation), strict=True))
    after = repaired.of(repaired.evaluation, label)
    if after.value is None or claim.base.value is None:
        return None
    tests = [_without_topics(claim, frozenset(old) - frozenset(new), resampling)]
    documents = frozenset(document for repair in repairs for document in repair.documents)
    tests.append(_without_documents(claim, documents, resampling))
    size, beside = after.value - claim.base.value, []
    left_out = {claim.unit: len(frozenset(old) - frozenset(new)), "documents": len(documents)}
    for (what, count), test in zip(left_out.items(), tests, strict=True):
        if test is None:
            continue
        # A repair may do more than leave out what can be compared.
        these = f"these {count:,d} {what}{'' if math.isclose(test.change, size, abs_tol=1e-9) else ' alone'}"
        beside.append(
            f"Leaving out {these} changes the difference by {signed(test.change)}, "
            f"{'' if test.p <= 1 - resampling.confidence else 'no '}more than {count:,d} random ones would "
            f"({signed(test.low)} to {signed(test.high)})."
        )
    # Where only judgments of 0 leave, nothing moves but by rounding.
    chances = [test.p for test in tests if test is not None and abs(test.change) > ROUNDING]
    moved = any(p <= 1 - resampling.confidence for p in chances)
    # Where no other documents are like those, the change by topic is all that can be tested.
    if tests[1] is None:
        kept = np.array([(old[topic], value) for topic, value in new.items() if topic in old]).reshape(-1, 2)
        kept = kept[~np.isnan(kept).any(axis=1)]
        ends = difference_interval(kept[:, 1], kept[:, 0], confidence=claim.confidence)
        changed = len(kept) and np.abs(kept[:, 1] - kept[:, 0]).max() > ROUNDING
        if changed and ends.low is not None and ends.high is not None and not ends.low <= 0 <= ends.high:
            moved = True
            mean = signed(float((kept[:, 1] - kept[:, 0]).mean()))
            left = f"{mean} ({signed(ends.low)} to {signed(ends.high)})"
            beside.append(f"On the {len(kept):,d} {claim.unit} that are left the repair changes it by {left}.")
    effect = repaired_effect(claim.base, after, moved)
    return ClaimChange(repaired, after, size, moved, effect, " ".join(beside))


def beyond_chance(claim: Claim, topics: frozenset[str]) -> bool:
    """Whether leaving out some topics changes the difference by more than leaving out as many random ones does."""
    test = _without_topics(claim, topics, Resampling(resamples=1_000))
    return test is not None and test.p <= 1 - claim.confidence


def _without_topics(claim: Claim, topics: frozenset[str], resampling: Resampling) -> SystemPlacebo | None:
    differences = claim.differences(claim.evaluation)
    gone = np.array([topic in topics for topic in claim.evaluation.topics])
    known = ~np.isnan(differences)
    if not gone[known].any():
        return None
    placebo = placebo_removal(
        {"difference": differences[known]}, gone[known], measure=claim.measure, draws=resampling.resamples,
        confidence=resampling.confidence, seed=resampling.seed,
    )  # fmt: skip
    return placebo.systems[0] if placebo.systems else None


def _without_documents(claim: Claim, documents: frozenset[str], resampling: Resampling) -> SystemPlacebo | None:
    if not documents:
        return None
    ranked = RankedDocuments.of(claim.qrels, claim.pair, claim.scoring)
    (placebo,) = document_placebos(
        ranked, documents, claim.measure, contrast=(claim.system, claim.baseline), resampling=resampling
    )
    return placebo.systems[0] if placebo.systems else None


def repaired_effect(base: ClaimEstimate, after: ClaimEstimate, moved: bool) -> Effect:
    """What repairing does to the claim.

    It falls where the change is more than chance makes, and the difference turns its sign, or is no longer shown and
    the size that was claimed is excluded. It appears where the repaired data show what the data as they are do not.
    """
    if after.value is None or base.value is None:
        return "unknown"
    if base.effect != "stands":
        return "appears" if after.effect == "stands" else base.effect
    if after.effect == "stands":
        return "smaller" if moved and after.value < base.value else "stands"
    excluded = after.value <= 0 or (after.high is not None and after.high < base.value)
    return "falls" if moved and excluded else "not shown"


def became(claim: Claim, before: ClaimEstimate, after: ClaimEstimate, *, moved: bool) -> str:
    """What becomes of a lead under a condition, before and after; "gone" only where nothing of it is left.

    Args:
        moved: whether the change is more than chance makes; always where the condition leaves no topics out.
    """
    if after.value is None or before.value is None:
        return "nothing is left to compare"
    ends, change = after.interval, f"{signed(before.value)} → {signed(after.value)}{claim.measured}"
    if signed(before.value) == signed(after.value):
        # What changes, if anything, is the interval.
        same, ends = after.effect == before.effect, ends if after.effect == before.effect else ""
        change = f"{signed(after.value) if same else f'{before.figures()} → {after.figures()}'}{claim.measured}"
    if after.effect == "falls":
        says = f"{claim.baseline} is ahead"
    elif after.effect == "stands":
        less = moved and round(after.value, 3) < round(before.value, 3)
        more = moved and round(after.value, 3) > round(before.value, 3)
        stays = "shrinks but stays" if less else "grows" if more else "stays"
        says = f"{claim.system} leads by more than chance" if before.effect != "stands" else f"the lead {stays}"
    elif before.effect != "stands":
        says = f"{'' if moved else 'little changes, and '}chance can explain the difference"
    elif moved and after.value <= 0:
        return f"the lead is gone: {change}"
    elif after.few:
        what = "the lead falls, and {} differ to show it" if moved else "{} differ to show the lead"
        says = what.format(f"too few {claim.unit}")
    else:
        moved &= after.value < before.value
        says = "the lead shrinks to what chance can explain" if moved else "chance can explain the lead"
    return f"{says}: {change}{'' if after.effect == 'stands' == before.effect else ends}"
