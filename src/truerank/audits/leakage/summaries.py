"""How the results of calibrating, cleaning, measuring an effect and stating what was found are shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from truerank.audits.leakage.calibration import Calibration
from truerank.audits.leakage.clean import BASES, TrainCleaning, what_stays
from truerank.audits.leakage.effect import Effect, KindEffect
from truerank.audits.leakage.estimate import not_asked
from truerank.audits.leakage.guard import GuardReport
from truerank.audits.leakage.kinds import kind_named
from truerank.audits.leakage.reduction import TestReduction
from truerank.core.plain import plain
from truerank.core.result import Summary, summarises
from truerank.core.tables import Cell, Column, Table
from truerank.core.views import heads
from truerank.errors import InputError
from truerank.measures.placebo import Placebo
from truerank.measures.report import order_table, swap_table

_CHANGES: Final = heads(
    "run, measure, mean|all:.4f, mean|clean:.4f, change:+.4f, random_changes|low:+.4f, random_changes|high:+.4f, "
    "p|raw:.4f, p|corrected:.4f, detectable:.4f"
)
_VERDICTS: Final = (
    *heads("measure, verdict, p:.4f, τ:.3f"),
    *Column.numbers(".3f", "low", "high", above=("τ, random",)),
    *heads("p_of_τ:.4f"),
)


def placebo_tables(placebos: Sequence[Placebo], matched_by: str | None) -> Iterator[Table]:
    """How far scores move without the leaked topics, beside random removals, and the verdicts."""
    if rows := tuple(row for one in placebos for row in _changes(one)):
        title = "Change of the means without the leaked topics, and without as many random topics."
        yield Table(title=title, columns=_CHANGES, rows=rows)
    if placebos:
        draws = max(one.draws for one in placebos)
        yield Table(
            title="Did the clean topics' scores move more than chance?",
            columns=_VERDICTS,
            rows=tuple(_verdict(one) for one in placebos),
            notes=(
                *(f"{one.measure}: {one.reason}" for one in placebos),
                f"Random: {draws:,d} removals of as many topics{_topics_matched(matched_by)}.",
                f"Intervals of {placebos[0].confidence:.0%}.",
                *_explained(placebos[0]),
            ),
        )


def kind_tables(kinds: Sequence[KindEffect], matched_by: str | None) -> Iterator[Table]:
    """How far scores move without what each kind of leak concerns, beside random removals, and the verdicts."""
    compared = [(one, placebo) for one in kinds for placebo in one.placebos]
    if rows := tuple((one.kind, *row) for one, placebo in compared for row in _changes(placebo)):
        yield Table(
            title="Change of the means without the topics or documents that leak, by kind of leak.",
            columns=(*heads("kind_of_leak"), *_CHANGES),
            rows=rows,
        )
    if not kinds:
        return
    nothing = (None,) * len(_VERDICTS)
    draws = max((placebo.draws for _, placebo in compared), default=0)
    drawn = {one.removed for one, _ in compared}
    yield Table(
        title="Did scores move more than chance without what leaks?",
        columns=(*heads("kind_of_leak, leaks:,d, that_count:,d, removed"), *_VERDICTS),
        rows=tuple(
            (one.kind, one.leaked, one.counted, one.removed, *verdict)
            for one in kinds
            for verdict in ([_verdict(placebo) for placebo in one.placebos] or [nothing])
        ),
        notes=(
            *(f"{one.kind}: {kind_named(one.kind).phrase}; the audit says {one.verdict}." for one in kinds),
            *(f"{one.kind}, {placebo.measure}: {placebo.what}. {placebo.reason}" for one, placebo in compared),
            *([f"Random topics: {draws:,d} removals of as many{_topics_matched(matched_by)}."] * ("topics" in drawn)),
            *(_documents(draws, matched_by) if "documents" in drawn else ()),
            *(_explained(compared[0][1]) if compared else ()),
        ),
    )


def _documents(draws: int, matched_by: str | None) -> Iterator[str]:
    """What is drawn in place of documents, and when their p is exact."""
    ranked = {None: "", "difficulty": ", and that all runs rank about as high"}
    by = ranked.get(matched_by, f", and that {matched_by} ranks about as high")
    yield (
        f"Random documents: {draws:,d} removals of as many that count for the same topics with the same grades{by}. A "
        "document counts for a topic if it is judged relevant, or near the top of a run. One that no other is like is "
        "removed each time."
    )
    also = "" if matched_by is None else ", among those that are ranked about as high,"
    yield (
        "p of documents is exact if which of them leak depends on their topics and grades alone, whether each leaks by "
        f"itself or whole topics do: then every choice of as many that are alike{also} is as likely. "
        + (
            "Documents that all runs rank high, such as mined positives, move scores more: compare with --matched-by."
            if matched_by is None
            else "Ranks are matched in ten classes: within a class, higher ones may still leak more often. What a run "
            "gained by the documents is matched away as far as it is one of the runs that are matched by."
        )
    )
    yield (
        "A removed document leaves runs and judgments. A topic that loses its last relevant document leaves the means. "
        "Documents that count are judged or in a run."
    )


def _changes(placebo: Placebo) -> Iterator[tuple[Cell, ...]]:
    for one in placebo.systems:
        yield one.system, placebo.measure, *one[1:]


def _verdict(placebo: Placebo) -> tuple[Cell, ...]:
    return placebo.measure, placebo.word, placebo.p if placebo.systems else None, *placebo.order


def _topics_matched(matched_by: str | None) -> str:
    known = {None: "", "difficulty": ", as many of each fifth of the topics by the mean score of all runs"}
    return known.get(matched_by, f", as many of each fifth of the topics by the scores of {matched_by}")


def _explained(placebo: Placebo) -> tuple[str, ...]:
    return (
        "p: two-sided, corrected for the number of runs by the largest deviation, not for the number of measures; p of "
        "τ: of an order that changes as much.",
        "Detectable: the shift of one run beside chance that is found with a power of about 0.8. Where it is above "
        f"{placebo.smallest:g}, the verdict on scores that moved like random ones is 'cannot tell'.",
    )


_TIES: Final[dict[str, str]] = {
    "trec_eval": "as trec_eval: 32-bit scores, then document id descending",
    "ascending": "score, then document id ascending",
    "rank": "the rank column of the run",
}


@summarises(Calibration)
def _calibration(result: Calibration) -> Summary:
    # The advice is in the result; the error only says why the exit code is 2.
    fault = InputError("the labels support no threshold", where="leakage calibrate") if result.refused else None
    return Summary(("\n".join(calibration_lines(result)),), result.json(), fault=fault)


def calibration_lines(result: Calibration) -> list[str]:
    """The answer in words: which figure it is, and what it is not."""
    if result.chosen is None:
        return [f"No threshold: {result.reason}.", f"{result.remedy.capitalize()}.", *result.notes]
    share, wanted = f"{result.settings['confidence']:.0%}", f"{result.settings['min_precision']:g}"
    name = result.encoder or "an encoder that the labels do not name"
    pairs = f"{result.counts['pairs']} labelled pairs"
    ends = ["open" if end is None else f"{end:.3f}" for end in result.interval]
    if not result.bounded:
        lines = [
            f"{result.chosen:.3f}: point estimate; the estimated precision first reaches {wanted} ({pairs}), for "
            f"{name}.",
            "At a point estimate the true precision lies below the target about as often as not; '--threshold-rule "
            "lower-bound' gives the threshold to use.",
        ]
        return [*lines, *result.notes]
    at = int(np.flatnonzero(result.thresholds == result.chosen)[0])
    lines = [
        f"{result.chosen:.3f}: lower bound; above it the precision is at least {wanted} with {share} confidence "
        f"(estimate {result.precision[at]:.3f}, lower bound {result.low[at]:.3f}, {pairs}), for {name}."
    ]
    if result.estimate is not None and result.estimate < result.chosen:
        lines.append(
            f"The point estimate is {result.estimate:.3f} ({share} interval {ends[0]} to {ends[1]}): there the true "
            "precision lies below the target about as often as not. More labels bring the two together."
        )
    return [*lines, *result.notes]


@summarises(TrainCleaning)
def _cleaning(result: TrainCleaning) -> Summary:
    rule = "Removed: every query that the audit holds for a leak or in doubt"
    what, among = "queries", "distinct queries among them"
    if result.of_examples:
        what, among = "examples", "leaking texts that they hold"
        rule = "Removed: the examples that hold a text, or a pair of texts, that leaks"
    elif result.judged:
        rule = f"Removed: {BASES[result.basis]} ({result.judged:,d} judged pairs)"
    lines: list[tuple[str, int]] = [
        (f"{what} read", result.read),
        ("records removed", result.removed),
        (among, result.removed_queries),
        *((f"topics of {test} they leaked", topics) for test, topics in result.topics.items()),
        (f"{what} kept", result.kept),
        (f"leaking {'texts' if result.of_examples else what} that the source does not hold", result.not_found),
    ]
    table = Table(
        title=f"{result.out.name}: the training {what} without those that leak.",
        columns=heads("what, number:,d"),
        rows=tuple(lines),
        notes=(f"{rule}.", *what_stays(result.left), *result.warnings),
    )
    return Summary((table,), plain(result))


@summarises(TestReduction)
def _reduction(result: TestReduction) -> Summary:
    heading = ("smallest difference",)
    table = Table(
        title=f"{result.after:,d} of {result.before:,d} topics of {result.test} remain.",
        columns=(
            *heads("sd_of_differences:g"),
            *Column.numbers(".4f", f"{result.before:,d} topics", f"{result.after:,d} topics", above=heading),
        ),
        rows=tuple(tuple(row) for row in result.detectable),
        notes=(
            f"Smallest true difference of means that a paired t-test finds with power {result.power:g} "
            f"(two-sided, α = {result.alpha:g}; non-central t).",
        ),
    )
    return Summary((table,), plain(result))


@summarises(Effect)
def _effect(result: Effect) -> Summary:
    """The tables, the order of systems where there are two runs or more."""
    tables = [effect_table(result), *map(order_table, result.orders)]
    tables += [swap_table(order) for order in result.orders if order.swaps or order.overtakings]
    tables += placebo_tables(result.placebos, result.settings["matched_by"])
    tables += kind_tables(result.kinds, result.settings["matched_by"])
    return Summary(tuple(tables), plain(result))


def effect_table(result: Effect) -> Table:
    share = f"{result.settings['confidence']:.0%}"
    columns = [*heads("run, measure")]
    for part in ("all", "leaked", "clean", "leaked − clean"):
        columns += [] if part == "leaked − clean" else Column.numbers(",d", "n", above=(part,))
        columns += Column.numbers(".4f", "mean", "low", "high", above=(part,))
    columns += [*Column.numbers(".4f", "raw", "corrected", above=("p",)), *heads("missing:,d")]
    return Table(
        title="Scores on all, leaked and clean topics.",
        columns=tuple(columns),
        rows=tuple(
            (*row[:2], *row.all, *row.leaked, *row.clean, *row.difference[1:], *row[6:], result.missing[row.run])
            for row in result.runs
        ),
        notes=(
            f"{share} intervals: Student t over topics, Welch for the difference.",
            "p: two-sided permutation test; corrected: Bonferroni by the number of runs.",
            f"Ties: {_TIES[result.settings['ties']]}. Missing topics score the measure's default.",
            "Leaked topics may be easier for other reasons than the leak.",
        ),
    )


@summarises(GuardReport)
def _guard(result: GuardReport) -> Summary:
    columns = ("row", "text", "test", "topic_id", "topic_text", "similarity", "evidence")
    leaked = sum(map(len, result.topics.values()))
    table = Table.of(
        result.rows.head(20).select(columns),
        [Column(name, align="right" if name == "similarity" else "left") for name in columns],
        title=f"{result.dropped:,d} of {result.read:,d} rows dropped: they hold {leaked:,d} test queries.",
        notes=tuple(_guard_notes(result)),
    )
    return Summary((table,), {**plain(result, "rows"), "rows": result.rows.to_dicts()}, width=100)


def _guard_notes(result: GuardReport) -> Iterator[str]:
    yield f"Compared: {', '.join(result.columns)}."
    if result.basis == "audit":
        yield "The rows are those that 'truerank leakage clean' removes by the same audit."
        yield from what_stays(result.left)
        return
    yield (
        f"Similarity above {result.threshold:g} under {result.encoder}, the same content words, or nearly the same "
        "letters. Each row was checked on its own; an audit compares all of them and may name others. Give it as "
        "`audit` to drop the rows that 'truerank leakage clean' removes."
    )
    if result.unread and result.unread["unread"]:
        yield not_asked(0, 0, shares={"the rows": result.unread})
