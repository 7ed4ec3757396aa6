"""Tables of removals beside random ones: of leaked topics, and of what each kind of leak concerns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal

from truerank.audits.leakage.kind_effects import KindEffect
from truerank.audits.leakage.training_examples.kinds import kind_named
from truerank.measures.placebo import Placebo
from truerank.reports.tables import Cell, Column, Table

_SCORE: Final[dict[str, Any]] = {"align": "right", "format": ".4f"}
_MOVE: Final[dict[str, Any]] = {"align": "right", "format": "+.4f"}
_SHARE: Final[dict[str, Any]] = {"align": "right", "format": ".3f"}
_COUNT: Final[dict[str, Any]] = {"align": "right", "format": ",d"}
_CHANGES: Final = (
    Column("run"),
    Column("measure"),
    *Column.numbers(".4f", "all", "clean", above=("mean",)),
    Column("change", **_MOVE),
    *Column.numbers("+.4f", "low", "high", above=("random changes",)),
    *Column.numbers(".4f", "raw", "corrected", above=("p",)),
    Column("detectable", **_SCORE),
)
_VERDICTS: Final = (
    Column("measure"),
    Column("verdict"),
    Column("p", **_SCORE),
    Column("τ", **_SHARE),
    *Column.numbers(".3f", "low", "high", above=("τ, random",)),
    Column("p of τ", **_SCORE),
)


def placebo_tables(
    placebos: Sequence[Placebo], matched_by: str | None, removed: Literal["topics", "documents"] = "topics"
) -> Iterator[Table]:
    """How far scores move without the leaked topics or documents, beside random removals, and the verdicts."""
    if rows := tuple(row for one in placebos for row in _changes(one)):
        title = f"Change of the means without the leaked {removed}, and without as many random {removed}."
        yield Table(title=title, columns=_CHANGES, rows=rows)
    if placebos:
        draws = max(one.draws for one in placebos)
        yield Table(
            title=f"Did scores move more than chance without the leaked {removed}?"
            if removed == "documents"
            else "Did the clean topics' scores move more than chance?",
            columns=_VERDICTS,
            rows=tuple(_verdict(one) for one in placebos),
            notes=(
                *(f"{one.measure}: {one.what}. {one.reason}" for one in placebos if removed == "documents"),
                *(f"{one.measure}: {one.reason}" for one in placebos if removed == "topics"),
                *(
                    _documents(draws, matched_by)
                    if removed == "documents"
                    else [f"Random: {draws:,d} removals of as many topics{_topics_matched(matched_by)}."]
                ),
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
            columns=(Column("kind of leak"), *_CHANGES),
            rows=rows,
        )
    if not kinds:
        return
    nothing = (None,) * len(_VERDICTS)
    draws = max((placebo.draws for _, placebo in compared), default=0)
    yield Table(
        title="Did scores move more than chance without what leaks?",
        columns=(
            Column("kind of leak"),
            Column("leaks", **_COUNT),
            Column("that count", **_COUNT),
            Column("removed"),
            *_VERDICTS,
        ),
        rows=tuple(
            (one.kind, one.leaked, one.counted, one.removed, *verdict)
            for one in kinds
            for verdict in ([_verdict(placebo) for placebo in one.placebos] or [nothing])
        ),
        notes=(
            *(f"{one.kind}: {kind_named(one.kind).title}; the audit says {one.verdict}." for one in kinds),
            *(f"{one.kind}, {placebo.measure}: {placebo.what}. {placebo.reason}" for one, placebo in compared),
            *(_random(draws, matched_by, kinds) if compared else ()),
            *(_explained(compared[0][1]) if compared else ()),
        ),
    )


def _random(draws: int, matched_by: str | None, kinds: Sequence[KindEffect]) -> Iterator[str]:
    compared = {one.removed for one in kinds if one.placebos}
    if "topics" in compared:
        yield f"Random topics: {draws:,d} removals of as many{_topics_matched(matched_by)}."
    if "documents" in compared:
        yield from _documents(draws, matched_by)


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
