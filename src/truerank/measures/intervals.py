"""Intervals of a share: the only place that computes Wilson's and the exact interval of Clopper and Pearson."""

from __future__ import annotations

import math
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
        ValueError: a count below 0 or above n: no option holds it, so that it is a fault of the caller.
        OptionError: a confidence that is not between 0 and 1.

    Source: Wilson, Probable inference (JASA 1927); Clopper and Pearson (Biometrika 1934), by the beta distribution.
    """
    if not 0 <= k <= n:
        raise ValueError(f"{k} of {n} is no share")
    if not 0 < confidence < 1:
        raise OptionError("confidence", f"must be above 0 and below 1, got {confidence:g}", "correct the value")
    if not n:
        return Proportion(0, 0, None, 0.0, 1.0)
    if method == "exact":
        return Proportion(k, n, k / n, *exact_interval(k, n, confidence=confidence))
    return Proportion(k, n, k / n, *_wilson(k, n, confidence))


def exact_interval(k: int, n: int, *, confidence: float = 0.95) -> tuple[float, float]:
    """The ends of the "exact" interval of `proportion`; (0, 1) of nothing.

    Source: Clopper and Pearson (Biometrika 1934), by the beta distribution.
    """
    # SciPy's special functions are imported where they are needed. Its statistics have these intervals, too, but take
    # most of a second to load.
    from scipy.special import betainccinv, betaincinv

    tail = (1 - confidence) / 2
    low = float(betaincinv(k, n - k + 1, tail)) if k else 0.0
    return low, float(betainccinv(k + 1, n - k, tail)) if k < n else 1.0


def _wilson(k: int, n: int, confidence: float) -> tuple[float, float]:
    from scipy.special import ndtri

    share, z = k / n, float(ndtri(0.5 + 0.5 * confidence))
    whole = 2 * (n + z**2)
    middle, half = (2 * n * share + z**2) / whole, z / whole * math.sqrt(4 * n * share * (1 - share) + z**2)
    return middle - half if k else 0.0, middle + half if k < n else 1.0
