"""Intervals of a share: the only place that computes Wilson's and the exact interval of Clopper and Pearson."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from truerank.errors import OptionError

ProportionMethod = Literal["wilson", "exact"]


class Proportion(NamedTuple):
    """A share with its interval.

    `k` of `n` items have the property; `share` is their ratio, `low` and `high` are the ends of the interval.
    Without items the share is None, and the interval is from 0 to 1: nothing is known.
    """

    k: int
    n: int
    share: float | None
    low: float
    high: float

    def json(self) -> dict[str, Any]:
        """Number, total, share and interval by name; of nothing there is no interval."""
        low, high = (None, None) if self.share is None else (self.low, self.high)
        return {"found": self.k, "total": self.n, "share": self.share, "low": low, "high": high}


def proportion(k: int, n: int, *, confidence: float = 0.95, method: ProportionMethod = "wilson") -> Proportion:
    """A share with a two-sided interval.

    Args:
        k: items that have the property.
        n: all items, drawn independently.
        confidence: of the interval.
        method: "wilson" (Wilson's score interval), or "exact" (Clopper and Pearson; it covers the true share with at
            least this confidence, also for few items).

    Raises:
        OptionError: a count below 0 or above n, or a confidence that is not between 0 and 1.

    Source: Wilson, Probable inference (JASA 1927); Clopper and Pearson (Biometrika 1934); computed by SciPy.
    """
    if not 0 <= k <= n:
        raise OptionError("k", f"must be at least 0 and at most {n}, got {k}", "correct the counts")
    if not 0 < confidence < 1:
        raise OptionError("confidence", f"must be above 0 and below 1, got {confidence:g}", "correct the value")
    if not n:
        return Proportion(0, 0, None, 0.0, 1.0)
    # Imported here: SciPy's statistics take most of a second to load.
    from scipy.stats import binomtest

    interval = binomtest(k, n).proportion_ci(confidence, method=method)
    return Proportion(k, n, k / n, float(interval.low), float(interval.high))


def exact_interval(k: int, n: int, *, confidence: float = 0.95) -> tuple[float, float]:
    """The "exact" interval of `proportion`, without SciPy's statistics, which take long to load; (0, 1) of nothing.

    Args:
        k: items that have the property.
        n: all items, drawn independently.
        confidence: of the two-sided interval.

    Source: Clopper and Pearson (Biometrika 1934), by the beta distribution.
    """
    from scipy.special import betaincinv

    outside = (1 - confidence) / 2
    low = float(betaincinv(k, n - k + 1, outside)) if k else 0.0
    high = float(betaincinv(k + 1, n - k, 1 - outside)) if k < n else 1.0
    return low, high
