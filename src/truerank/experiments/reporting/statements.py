"""What a report found, in words: a sentence per collection and training set, with intervals, and no more than that."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from truerank.experiments.memorising import TopicSpread
from truerank.experiments.reporting.effectiveness import Effectiveness, EffectivenessEstimate
from truerank.experiments.reporting.memorised import Memorised, Place, significant
from truerank.experiments.reporting.options import ReportChoices
from truerank.measures import detectable_difference, lower_is_better


class ExperimentFinding(NamedTuple):
    """A finding: what it is about, the verdict in few words, the sentence, and whether a difference was shown."""

    subject: str
    verdict: str
    sentence: str
    shown: bool


def effect_statements(found: Sequence[Effectiveness]) -> tuple[ExperimentFinding, ...]:
    """By collection and training set, which rows differ from the baseline by the first measure."""
    return tuple(
        statement
        for one in found
        for condition in one.board.faults
        if (statement := _effect(one, condition)) is not None
    )


def order_statements(found: Sequence[Effectiveness]) -> tuple[str, ...]:
    """By collection and training set, whether the order of the models changes, by every measure."""
    return tuple(_orders(found))


def memory_statements(
    found: Sequence[Memorised], baseline: str, options: ReportChoices
) -> tuple[ExperimentFinding, ...]:
    """By collection and leak, what became of the ranks of leaked documents."""
    places = dict.fromkeys((one.collection, one.condition) for one in found)
    clear = significant(found, "offset", options)
    return tuple(
        _memory([one for one in found if (one.collection, one.condition) == place], baseline, clear) for place in places
    )


def _effect(one: Effectiveness, condition: str) -> ExperimentFinding | None:
    measure = one.measures[0]
    rows = [
        estimate
        for row in one.shown_rows()
        if (estimate := one.estimates.get((row, condition, measure))) is not None
        and estimate.difference is not None
        and estimate.difference.difference is not None
    ]
    subject = f"{one.board.collection}, {condition}"
    if not rows:
        return None
    survivors = [row for row in rows if row.difference is not None and row.difference.significant]
    against, lower = one.board.baseline, ", lower is better" if lower_is_better(measure) else ""
    if survivors:
        named = "; ".join(_named(one, row) for row in survivors)
        rest = [row for row in rows if row not in survivors]
        others = f" No difference is shown for the other {len(rest) if len(rest) > 1 else 'one'}." if rest else ""
        others += _reach([row.difference.detectable for row in rest if row.difference is not None])
        return ExperimentFinding(
            subject,
            f"{len(survivors)} of {len(rows)} differ",
            f"{measure}{lower}: {len(survivors)} of {len(rows)} differ from {against}, corrected: {named}.{others}"
            f"{_by_seeds(survivors)}",
            True,
        )
    named = "; ".join(_named(one, row) for row in rows) if len(rows) <= 6 else _range(rows)
    what = "no difference is shown" if len(rows) == 1 else f"no difference is shown for any of {len(rows)}"
    found = _reach([row.difference.detectable for row in rows if row.difference is not None])
    sentence = f"{measure}{lower}: {what} to {against}: {named} (intervals not corrected).{found}"
    return ExperimentFinding(subject, "cannot tell", sentence, False)


def _reach(detectable: Sequence[float | None], form: str = ".4f") -> str:
    """The sizes that the topics could have shown, so that nobody takes what is not shown for what is not there."""
    known = [size for size in detectable if size]
    if not known:
        return ""
    limits = f"{min(known):{form}}" + (f" to {max(known):{form}}" if max(known) > min(known) else "")
    return f" Differences below {limits} are too small for these topics to show reliably."


def _orders(found: Sequence[Effectiveness]) -> Iterator[str]:
    for one in found:
        for group, condition in dict.fromkeys(key[:2] for key in one.orders):
            changed = {
                measure: one.orders[group, condition, measure]
                for measure in one.measures
                if (group, condition, measure) in one.orders
            }
            changed = {name: changes for name, changes in changed.items() if changes.swaps or changes.overtakings}
            if not changed:
                continue
            parts = []
            for name, changes in changed.items():
                passing = [f"{pair.system} would pass {pair.other}" for pair in changes.overtakings]
                swapping = [f"{pair.better} and {pair.worse} change places" for pair in changes.swaps]
                parts.append(f"{name} ({'; '.join([*passing, *swapping])})")
            yield (
                f"{one.board.collection}{f', {group}' if group else ''}: training on {condition} in place of "
                f"{one.board.baseline} changes the order of the models by {', '.join(parts)}."
            )


def _memory(found: Sequence[Memorised], baseline: str, clear: Collection[Place]) -> ExperimentFinding:
    first = found[0]
    changes = "; ".join(
        f"{one.row.name} rank {_signed(one.rank.difference, '+.2f')}, offset {_signed(one.offset.difference, '+.2f')}"
        for one in found
    )
    grown = [one for one in found if one.place in clear and (one.offset.difference.mean or 0) > 0]
    verdict = f"offset grows for {len(grown)} of {len(found)}" if grown else "cannot tell"
    named = ", ".join(one.row.name for one in grown)
    tested = f"The offset grows, corrected, for {named}." if grown else "No growth of the offset survives correction."
    if len(grown) < len(found):
        rest = [one.offset.difference for one in found if one not in grown]
        sizes = [None if each.sd is None else detectable_difference(each.n, each.sd) for each in rest]
        tested += _reach(sizes, ".2f")
    sentence = (
        f"Leaked documents after training on {first.condition}, compared with {baseline}: the rank of the relevant "
        f"ones (negative: it rises) and the offset to the non-relevant ones change by {changes} "
        f"(intervals not corrected). {tested}"
    )
    return ExperimentFinding(f"{first.collection}, {first.condition}: memory", verdict, sentence, bool(grown))


def _named(whole: Effectiveness, one: EffectivenessEstimate) -> str:
    """The row and its difference; where one model is alone, its block says enough."""
    found, alone = one.difference, len({row.model for row in whole.board.rows}) == 1
    name = one.row.group if alone and one.row.group else one.row.name
    if found is None or found.difference is None:
        return name
    ends = "" if found.low is None or found.high is None else f" [{found.low:+.4f}, {found.high:+.4f}]"
    return f"{name} {found.difference:+.4f}{ends}"


def _by_seeds(survivors: Sequence[EffectivenessEstimate]) -> str:
    """Which differences are clear of zero over topics, but not over seeds: trained again, they may be others."""
    unsettled = [
        f"{one.row.name} ({over.n} seeds)"
        for one in survivors
        if (over := one.difference_over_seeds) is not None and not _clear(over.low, over.high)
    ]
    return f" Over seeds, the interval holds 0 or is not known: {', '.join(unsettled)}." if unsettled else ""


def _clear(low: float | None, high: float | None) -> bool:
    return low is not None and high is not None and (low > 0 or high < 0)


def _range(rows: Sequence[EffectivenessEstimate]) -> str:
    differences = [row.difference for row in rows if row.difference is not None]
    values = [one.difference for one in differences if one.difference is not None]
    ends = [end for one in differences for end in (one.low, one.high) if end is not None]
    around = f", intervals within [{min(ends):+.4f}, {max(ends):+.4f}]" if ends else ""
    return f"differences {min(values):+.4f} to {max(values):+.4f}{around}"


def _signed(spread: TopicSpread, form: str) -> str:
    if spread.mean is None:
        return "unknown"
    ends = "" if spread.low is None or spread.high is None else f" [{spread.low:{form}}, {spread.high:{form}}]"
    return f"{spread.mean:{form}}{ends}"
