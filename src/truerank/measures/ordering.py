"""What becomes of the order of systems between two conditions, such as training with and without leakage."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from truerank.errors import InputError
from truerank.measures.correlation import (
    Correlation,
    Drop,
    PrecisionCorrelation,
    Variant,
    kendall,
    largest_drop,
    tau_ap,
)
from truerank.measures.grammar import lower_is_better
from truerank.measures.results import Evaluation
from truerank.measures.systems import measure_names
from truerank.reports.results import Result

_DECIMALS: Final = 12


class Swap(NamedTuple):
    """Two systems that change places: `better` leads by `before`, and trails by `after`, which has the other sign.

    Both differences are better minus worse in the unit of the measure.
    """

    better: str
    worse: str
    before: float
    after: float


class Overtaking(NamedTuple):
    """A system that passes another one if it alone changes: the red cells of the leakage paper's Tables 3 to 5.

    `before` and `after` are the differences of `system` to `other`'s mean under the first condition, with its own mean
    under the first and under the second.
    """

    system: str
    other: str
    before: float
    after: float


@dataclass(frozen=True, repr=False)
class OrderChanges(Result, shown_in="truerank.measures.report"):
    """The order of the same systems under two conditions.

    Attributes:
        measure: its name, may be empty.
        before: mean by system under the first condition.
        after: mean by system under the second.
        ascending: the lowest mean is the best one.
        swaps: the pairs that change places, largest lead first.
        overtakings: the systems that would pass another one that stays as it was, largest lead first.
        tau: Kendall's τ of the two orders.
        tau_ap: τ_AP with the first order taken for true.
        drop: the largest loss of ranks.
        only_before: systems that the second condition lacks; they take no part.
        only_after: systems that the first condition lacks; they take no part.
        conditions: what the two are called.
    """

    measure: str
    before: Mapping[str, float]
    after: Mapping[str, float]
    ascending: bool
    swaps: tuple[Swap, ...]
    overtakings: tuple[Overtaking, ...]
    tau: Correlation
    tau_ap: PrecisionCorrelation
    drop: Drop
    only_before: tuple[str, ...] = ()
    only_after: tuple[str, ...] = ()
    conditions: tuple[str, str] = ("before", "after")

    def sentences(self) -> tuple[str, ...]:
        """What a reader has to know, one sentence each."""
        n = len(self.before)
        found = [f"{len(self.swaps):,} of {math.comb(n, 2):,} pairs of systems change places.", self.tau.sentence()]
        if self.tau_ap.tau is not None:
            found.append(f"τ_AP = {self.tau_ap.tau:.3f}, {self.conditions[0]} taken for true.")
        if self.drop.ranks:
            lost = "1 rank" if self.drop.ranks == 1 else f"{self.drop.ranks:,} ranks"
            found.append(f"Largest drop: {self.drop.system} loses {lost}.")
        else:
            found.append("No system loses a rank.")
        if self.ascending:
            found.append("The lowest mean is the best one.")
        for condition, missing in zip(self.conditions, (self.only_before, self.only_after), strict=True):
            if missing:
                found.append(f"Only in {condition}, left out: {', '.join(missing)}.")
        return tuple(found)

    def json(self) -> dict[str, Any]:
        """Everything, as plain numbers and texts."""
        return {
            "measure": self.measure,
            "conditions": list(self.conditions),
            "ascending": self.ascending,
            "before": dict(self.before),
            "after": dict(self.after),
            "swaps": [swap._asdict() for swap in self.swaps],
            "overtakings": [overtaking._asdict() for overtaking in self.overtakings],
            "kendall": self.tau._asdict(),
            "tau_ap": self.tau_ap._asdict(),
            "largest_drop": self.drop._asdict(),
            "only_before": list(self.only_before),
            "only_after": list(self.only_after),
        }


def order_changes(
    before: Mapping[str, float],
    after: Mapping[str, float],
    *,
    measure: str = "",
    ascending: bool = False,
    variant: Variant = "b",
    conditions: tuple[str, str] = ("before", "after"),
) -> OrderChanges:
    """Compares the order of systems under two conditions.

    Args:
        before: mean by system under the first condition.
        after: mean by system under the second; systems that only one condition has are named and left out.
        measure: its name, for the tables.
        ascending: the lowest mean is the best one, as for MFR.
        variant: of Kendall's τ.
        conditions: what the two are called.

    Returns:
        The change. Means that agree to 12 decimals are tied, and tied systems do not change places.

    Raises:
        InputError: no system is in both, a mean is not finite, or the variant is unknown.

    Source: leakage paper, section 4, Tables 3 to 5 (cells in red).
    """
    names = [name for name in before if name in after]
    if not names:
        raise InputError("the two conditions have no system in common", "compare the same systems")
    first = {name: float(before[name]) for name in names}
    second = {name: float(after[name]) for name in names}
    sign = -1.0 if ascending else 1.0
    values = sign * np.array(list(first.values())), sign * np.array(list(second.values()))
    return OrderChanges(
        measure=measure,
        before=first,
        after=second,
        ascending=ascending,
        swaps=_swaps(names, *values, sign),
        overtakings=_overtakings(names, *values, sign),
        tau=kendall(*values, variant),
        tau_ap=tau_ap(*values),
        drop=largest_drop(first, second, ascending=ascending),
        only_before=tuple(name for name in before if name not in after),
        only_after=tuple(name for name in after if name not in before),
        conditions=conditions,
    )


def evaluation_order_changes(
    before: Evaluation,
    after: Evaluation,
    *,
    measures: str | Sequence[str] | None = None,
    variant: Variant = "b",
    conditions: tuple[str, str] = ("before", "after"),
) -> tuple[OrderChanges, ...]:
    """Compares the order of runs of the same name in two evaluations, by every measure that both have.

    Args:
        before: the scores under the first condition.
        after: the scores under the second.
        measures: which measures; None for all that both have.
        variant: of Kendall's τ.
        conditions: what the two are called.

    Raises:
        InputError: they have no run or measure in common, or a run has no score by a measure.
    """
    shared = [name for name in before.measures if name in after.measures]
    if not shared:
        raise InputError("the two conditions have no measure in common", "evaluate both by the same measures")
    means = before.mean, after.mean
    found = []
    for name in shared if measures is None else measure_names(measures, shared):
        columns = [
            dict(zip(one.runs, mean[:, one.measures.index(name)].tolist(), strict=True))
            for one, mean in zip((before, after), means, strict=True)
        ]
        found.append(
            order_changes(
                *columns,
                measure=name,
                ascending=lower_is_better(name),
                variant=variant,
                conditions=conditions,
            )
        )
    return tuple(found)


def _swaps(names: Sequence[str], before: Any, after: Any, sign: float) -> tuple[Swap, ...]:
    # Sums in another order differ in the last bit; such systems are tied.
    first, second = np.round(before, _DECIMALS), np.round(after, _DECIMALS)
    found = []
    for one, other in itertools.combinations(range(len(names)), 2):
        better, worse = (one, other) if first[one] > first[other] else (other, one)
        lead, remains = float(first[better] - first[worse]), float(second[better] - second[worse])
        if lead > 0 > remains:
            found.append(Swap(names[better], names[worse], sign * lead, sign * remains))
    return tuple(sorted(found, key=lambda swap: (-abs(swap.before), swap.better, swap.worse)))


def _overtakings(names: Sequence[str], before: Any, after: Any, sign: float) -> tuple[Overtaking, ...]:
    first, second = np.round(before, _DECIMALS), np.round(after, _DECIMALS)
    found = []
    for one, other in itertools.permutations(range(len(names)), 2):
        behind, ahead = float(first[one] - first[other]), float(second[one] - first[other])
        if behind < 0 < ahead:
            found.append(Overtaking(names[one], names[other], sign * behind, sign * ahead))
    return tuple(sorted(found, key=lambda overtaking: (-abs(overtaking.after), overtaking.system, overtaking.other)))
