"""How alike two orders of systems are, and what becomes of an order between two conditions.

Kendall's τ with its ties named, τ_AP, Spearman's ρ, RBO, the largest drop, the systems that change places.

Means are rounded to 12 decimals before they are compared: sums in another order differ in the last bit, and systems
whose means differ in no more than that are tied.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from truerank.arrays import Floats
from truerank.core.plain import picked
from truerank.core.result import Result
from truerank.errors import InputError
from truerank.measures.grammar import lower_is_better
from truerank.measures.results import Evaluation
from truerank.measures.significance import check_name
from truerank.measures.systems import measure_names

Variant = Literal["a", "b"]

#: The cases without a coefficient.
CASES: Final[dict[str, str]] = {
    "few-systems": "fewer than two systems",
    "all-tied": "all systems are tied in one of the orders",
    "tied": "systems are tied, and τ_AP has no value for ties",
}

#: What `order_statistics` computes, in the order of its last axis.
ORDER_STATISTICS: Final = ("tau", "tau_ap", "rho", "rbo")
_DECIMALS: Final = 12
#: Of RBO: the weight of a rank falls by this factor, so that the first 10 ranks have 86% of all weight.
_PERSISTENCE: Final = 0.9
_EXACT: Final = 171
_CELLS_AT_ONCE: Final = 2_000_000


class Correlation(NamedTuple):
    """Kendall's τ between two orders of `n` systems.

    Attributes:
        tau: between −1 and 1; None where the case has none.
        p: two-sided, of no association.
        n: the number of systems.
        variant: "a" (tied pairs count as neither, over all pairs) or "b" (over the pairs that are not tied).
        tied_first: pairs of systems that are tied in the first order.
        tied_second: pairs that are tied in the second.
        tied_both: pairs that are tied in both.
        how: how p was found, "exact" or "normal approximation".
        case: empty, or "few-systems" or "all-tied".
    """

    tau: float | None
    p: float | None
    n: int
    variant: Variant
    tied_first: int = 0
    tied_second: int = 0
    tied_both: int = 0
    how: str = ""
    case: str = ""

    def sentence(self) -> str:
        """The coefficient in words."""
        if self.tau is None:
            return f"Kendall's τ-{self.variant} is not defined: {CASES[self.case]}."
        ties = self.tied_first, self.tied_second
        tied = f"; pairs tied: {ties[0]:,} and {ties[1]:,}" if any(ties) else "; no ties"
        p = "" if self.p is None else f", p = {self.p:.3g}, {self.how}"
        return f"Kendall's τ-{self.variant} = {self.tau:.3f} (n = {self.n:,}{p}{tied})."


class PrecisionCorrelation(NamedTuple):
    """τ_AP between two orders of `n` systems, which weighs the top more; `case` says why there is none."""

    tau: float | None
    n: int
    case: str = ""


class Drop(NamedTuple):
    """The system that loses most ranks, and how many; no name and 0 where none loses any."""

    system: str
    ranks: int


def kendall(first: Sequence[float] | Floats, second: Sequence[float] | Floats, variant: Variant = "b") -> Correlation:
    """Kendall's τ.

    Args:
        first: one number per system, such as its mean by one measure.
        second: the same systems in the same order.
        variant: "b" leaves tied pairs out of the denominator, "a" does not.

    Returns:
        The coefficient. p is exact for up to 171 systems without ties, else from the normal distribution with ties
        accounted for; it tests the same sum of agreeing minus disagreeing pairs for both variants. Where a system is
        tied with all others in one order, "b" has no value and "a" is 0.

    Raises:
        InputError: an unknown variant, numbers that are not finite, or two different lengths.

    Source: Kendall (1938) for a, Kendall (1945) for b.
    """
    check_name(variant, Variant, "variant of Kendall's τ", "tau")
    before, after = _rounded(first, second)
    n = len(before)
    if n < 2:
        return Correlation(None, None, n, variant, case="few-systems")
    ties = _tied(before), _tied(after), _tied(np.stack([before, after], axis=1))
    pairs = n * (n - 1) // 2
    open_pairs = pairs - ties[0], pairs - ties[1]
    if 0 in open_pairs:
        tau = 0.0 if variant == "a" else None
        return Correlation(tau, None, n, variant, *ties, case="all-tied")
    method = "asymptotic" if any(ties[:2]) or n > _EXACT else "exact"
    found = scipy.stats.kendalltau(before, after, variant="b", method=method)
    tau_b = float(found.statistic)
    tau = tau_b if variant == "b" else tau_b * math.sqrt(open_pairs[0] * open_pairs[1]) / pairs
    how = "exact" if method == "exact" else "normal approximation"
    return Correlation(tau, float(found.pvalue), n, variant, *ties, how=how)


def tau_ap(truth: Sequence[float] | Floats, other: Sequence[float] | Floats) -> PrecisionCorrelation:
    """τ_AP: of the systems that the other order puts above one, the share that belongs there, averaged over systems.

    Not symmetric. It weighs mistakes at the top more than those at the bottom.

    Args:
        truth: one number per system in the order that is taken for true.
        other: the same systems by the order that is judged.

    Returns:
        The coefficient; None where systems are tied in either order.

    Raises:
        InputError: numbers that are not finite, or two different lengths.

    Source: Yilmaz, Aslam, Robertson (SIGIR 2008), equation 4.
    """
    right, judged = _rounded(truth, other)
    n = len(right)
    if n < 2:
        return PrecisionCorrelation(None, n, "few-systems")
    if _tied(right) or _tied(judged):
        return PrecisionCorrelation(None, n, "tied")
    ordered = right[np.argsort(-judged, kind="stable")]
    above = np.arange(1, n)
    correct = np.array([int((ordered[:place] > ordered[place]).sum()) for place in above])
    return PrecisionCorrelation(float(2 * np.mean(correct / above) - 1), n)


def order_statistics(truth: Floats, other: Floats) -> Floats:
    """Correlations of many pairs of orders at once, such as those of the resamples of a bootstrap.

    Args:
        truth: the means of systems in the order that is taken for true, one pair of orders in each row; shape (n,
            systems); a higher mean is better.
        other: the means of the same systems in the order that is judged, the same shape.

    Returns:
        Shape (n, 4), the columns as in `ORDER_STATISTICS`: τ-b, τ_AP, Spearman's ρ (over mean ranks of ties), and RBO
        with p = 0.9, extrapolated, in which tied systems are in the order of their columns. Not a number where a
        coefficient has no value: with fewer than two systems, τ-b and ρ where all are tied, τ_AP where any are.

    Source: Kendall (1945); Yilmaz, Aslam, Robertson (SIGIR 2008), equation 4; Webber, Moffat, Zobel (TOIS 2010),
    equation 32.
    """
    n, systems = np.shape(truth)
    if systems < 2:
        return np.full((n, len(ORDER_STATISTICS)), np.nan)
    at_once = max(1, _CELLS_AT_ONCE // systems**2)
    starts = range(0, n, at_once)
    return np.concatenate([_statistics(truth[at : at + at_once], other[at : at + at_once]) for at in starts])


def _statistics(truth: Floats, other: Floats) -> Floats:
    """`order_statistics` of so many orders as memory allows."""
    right, judged = np.round(truth, _DECIMALS), np.round(other, _DECIMALS)
    systems = right.shape[1]
    one, two = np.triu_indices(systems, 1)
    signs = [np.sign(values[:, one] - values[:, two]) for values in (right, judged)]
    open_pairs = [np.abs(sign).sum(axis=1) for sign in signs]
    with np.errstate(invalid="ignore", divide="ignore"):
        tau = (signs[0] * signs[1]).sum(axis=1) / np.sqrt(open_pairs[0] * open_pairs[1])
        # Ranks less their mean: half of how many systems are behind, less those before. `scipy.stats` is slow to load.
        apart = [np.sign(values[:, :, None] - values[:, None, :]).sum(axis=2) / 2 for values in (right, judged)]
        rho = (apart[0] * apart[1]).sum(axis=1) / np.sqrt((apart[0] ** 2).sum(axis=1) * (apart[1] ** 2).sum(axis=1))
    ordered = np.take_along_axis(right, np.argsort(-judged, axis=1, kind="stable"), axis=1)
    above = np.tril(np.ones((systems, systems)), -1)
    correct = ((ordered[:, None, :] > ordered[:, :, None]) * above).sum(axis=2)[:, 1:]
    tau_ap_rows = 2 * (correct / np.arange(1, systems)).mean(axis=1) - 1
    tied = (np.abs(signs[0]).sum(axis=1) < len(one)) | (np.abs(signs[1]).sum(axis=1) < len(one))
    return np.stack([tau, np.where(tied, np.nan, tau_ap_rows), rho, _rbo(right, judged)], axis=1)


def _rbo(right: Floats, judged: Floats) -> Floats:
    n, systems = right.shape
    places = []
    for values in (right, judged):
        place = np.empty((n, systems), dtype=np.int64)
        np.put_along_axis(place, np.argsort(-values, axis=1, kind="stable"), np.arange(systems)[None, :], axis=1)
        places.append(place)
    # A system is in both lists from the deeper of its two places on.
    first = np.maximum(*places)
    met = (first[:, :, None] <= np.arange(systems)[None, None, :]).sum(axis=1)
    depth = np.arange(1, systems + 1)
    share = met / depth
    weights = _PERSISTENCE**depth
    rest = share[:, -1] * weights[-1]
    return np.asarray(rest + (1 - _PERSISTENCE) / _PERSISTENCE * (share * weights).sum(axis=1))


def largest_drop(before: Mapping[str, float], after: Mapping[str, float], *, ascending: bool = False) -> Drop:
    """The system that loses most ranks from one condition to the other.

    Args:
        before: the mean of each system.
        after: the same systems under the other condition.
        ascending: the lowest mean is the best one, as for MFR.

    Returns:
        The system and its loss; equal means share the best rank, and of several with the same loss the first in the
        order of `before` is named.

    Raises:
        InputError: the systems are not the same.
    """
    if set(before) != set(after):
        raise InputError("the two conditions have different systems", "compare the same systems")
    names = list(before)
    if not names:
        return Drop("", 0)
    lost = ranks([after[name] for name in names], ascending=ascending) - ranks(
        list(before.values()), ascending=ascending
    )
    worst = int(lost.argmax())
    return Drop(names[worst], int(lost[worst])) if lost[worst] > 0 else Drop("", 0)


def ranks(means: Sequence[float] | Floats, *, ascending: bool = False) -> NDArray[np.int64]:
    """The rank of each system, 1 for the best; equal means share the best rank.

    Args:
        ascending: the lowest mean is the best one.
    """
    values = np.round(np.asarray(means, dtype=np.float64), _DECIMALS)
    values = values if ascending else -values
    return np.searchsorted(np.sort(values), values).astype(np.int64) + 1


def _rounded(first: Sequence[float] | Floats, second: Sequence[float] | Floats) -> tuple[Floats, Floats]:
    before, after = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if before.shape != after.shape:
        raise InputError(
            f"the orders have {len(before):,} and {len(after):,} systems", "compare the same systems in the same order"
        )
    if not (np.isfinite(before).all() and np.isfinite(after).all()):
        raise InputError("a mean is not finite", "leave out the systems that have no score")
    return np.round(before, _DECIMALS), np.round(after, _DECIMALS)


def _tied(values: Floats) -> int:
    """Pairs of equal values (rows, where there are several columns)."""
    counts = np.unique(values, axis=0, return_counts=True)[1]
    return int((counts * (counts - 1) // 2).sum())


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


@dataclass(frozen=True, eq=False, repr=False)
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
        names = (
            "measure, conditions, ascending, before, after, swaps, overtakings, kendall=tau, tau_ap, largest_drop=drop"
        )
        return picked(self, f"{names}, only_before, only_after")


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
