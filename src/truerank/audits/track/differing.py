"""Which runs of a track differ: the finding that its report opens with, its table and its figures."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from truerank.core.verdict import Verdict
from truerank.measures.comparison import MARK, Comparison, Difference
from truerank.measures.report import difference_picture, difference_table, order_picture
from truerank.measures.significance import CORRECTIONS, TESTS
from truerank.reports.figures.export import Picture
from truerank.reports.tables import Column, Table

_SECTION: Final = "differences"


def best_differences(comparison: Comparison) -> tuple[Difference, ...]:
    """The differences of all other runs to the best one, in their order."""
    best = comparison.runs[0]
    return tuple(row for row in comparison.differences if row.baseline == best)


def finding(comparison: Comparison) -> Verdict:
    """Whether the best run is significantly better than the others, and by how much."""
    rows = best_differences(comparison)
    best, measure = comparison.runs[0], comparison.measures[0]
    worse, alike = [row for row in rows if row.significant], [row for row in rows if not row.significant]
    mean, topics = rows[0].baseline_mean, rows[0].n[0]
    head = f"{best} has the highest {measure}{'' if mean is None else f' ({mean:.4f})'}"
    if alike:
        others = f"{len(alike):,} of the {len(rows):,} other runs" if len(rows) > 1 else "the other run"
        reason = f"{head}, but these {topics:,} topics do not tell it from {others}; the nearest is {_named(alike[0])}."
    else:
        reason = f"{head} and is significantly better than {_others(len(rows))}, {_amounts(worse)}."
    differ = sum(row.significant for row in comparison.differences)
    evidence = [f"It is significantly better than {len(worse):,}, {_amounts(worse)}."] if alike and worse else []
    pairs = len(comparison.differences)
    evidence.append(
        f"Of {'the one pair' if pairs == 1 else f'all {pairs:,} pairs'} of runs, {differ:,} "
        f"differ{'s' if differ == 1 else ''} significantly ({method_sentence(comparison)})."
    )
    return Verdict(
        subject="the best run",
        word="CANNOT TELL" if alike else "AHEAD",
        level="unknown" if alike else "good",
        sentence=reason,
        rests_on=" ".join(evidence),
        settles=_reach(alike, topics, comparison.method.power),
    )


def method_sentence(comparison: Comparison) -> str:
    """The test and its correction in words."""
    method, pairs = comparison.method, len(comparison.differences)
    over = f"{CORRECTIONS[method.correction]} over {pairs:,} pair{'' if pairs == 1 else 's'}"
    return f"{TESTS[method.significance]}, {over}, α = {method.alpha:g}"


def told_apart(comparison: Comparison | None, run: str, other: str) -> str:
    """What the test says of two runs, one sentence; empty where they were not compared."""
    found = [] if comparison is None else comparison.differences
    for row in found:
        if {row.run, row.baseline} == {run, other} and row.p_corrected is not None:
            p = f"p = {row.p_corrected:.2g}, corrected for all pairs of runs"
            return f"The difference is significant ({p})." if row.significant else f"No significant difference ({p})."
    return ""


def difference_tables(comparison: Comparison) -> Iterator[tuple[str, Table]]:
    """The differences to the best run, and those of all pairs, by the names of their files."""
    yield "differences", _table(comparison)
    if len(comparison.runs) > 2:
        yield "pairs", difference_table(comparison)


def difference_pictures(comparison: Comparison) -> Iterator[Picture]:
    """The differences to the best run with their intervals, and the order with what no test tells apart."""
    measure = comparison.measures[0]
    to_best = difference_picture(_to_best(comparison), measure)
    yield replace(to_best, name="differences", section=_SECTION)
    if len(comparison.runs) > 2:
        yield replace(order_picture(comparison, measure), name="order", section=_SECTION)


def _table(comparison: Comparison) -> Table:
    """One row for each other run."""
    columns = (
        Column("run"),
        Column("mean", align="right", format=".4f"),
        *Column.numbers("+.4f", "mean", "low", "high", above=("difference",)),
        *Column.numbers(".2g", "raw", "corrected", above=("p",)),
        Column(MARK, ("p",)),
        Column("win / tie / loss", align="right"),
        Column("detectable", align="right", format=".4f"),
    )
    rows = tuple(
        (
            row.run, row.mean, row.difference, row.low, row.high, row.p, row.p_corrected,
            MARK if row.significant else "", f"{row.wins} / {row.ties} / {row.losses}", row.detectable,
        )
        for row in best_differences(comparison)
    )  # fmt: skip
    title = f"{comparison.measures[0]} of the other runs, and their differences to {comparison.runs[0]}."
    # The table has no effect sizes.
    notes = [note for note in _to_best(comparison).method.sentences() if not note.startswith("Effect:")]
    return Table(title, columns, rows, notes=tuple(notes))


def _to_best(comparison: Comparison) -> Comparison:
    """The same with the differences to the best run only; they stay corrected for all pairs."""
    family = replace(comparison.method, family=len(comparison.differences))
    return replace(comparison, baseline=comparison.runs[0], differences=best_differences(comparison), method=family)


def _amounts(rows: list[Difference]) -> str:
    sizes = sorted((abs(row.difference or 0.0), row.run) for row in rows)
    if len(sizes) == 1:
        return f"by {sizes[0][0]:.4f} ({sizes[0][1]})"
    return f"by {sizes[0][0]:.4f} ({sizes[0][1]}) to {sizes[-1][0]:.4f} ({sizes[-1][1]})"


def _named(row: Difference) -> str:
    ends = "" if row.low is None or row.high is None else f", interval {row.low:+.4f} to {row.high:+.4f}"
    return f"{row.run} ({row.difference or 0.0:+.4f}{ends})"


def _others(number: int) -> str:
    return "the other run" if number == 1 else f"all {number:,} other runs"


def _reach(alike: list[Difference], topics: int, power: float) -> str:
    """What size of a difference so many topics can show."""
    known = sorted(row.detectable for row in alike if row.detectable is not None)
    if not known:
        return ""
    sizes = f"{known[0]:.4f}" if len(known) == 1 else f"{known[0]:.4f} to {known[-1]:.4f}, depending on the run"
    return (
        f"More topics would: {topics:,} show a true difference of {sizes}, with a power of {power:.0%} before "
        "correction. Runs that no test tells apart are not shown to be equal."
    )
