"""Intervals of shares, means and differences, effect sizes, and the smallest difference that so many topics can show.

Only here are Wilson's interval and the exact one of Clopper and Pearson computed.
"""

from __future__ import annotations

import functools
import math
from typing import Any, Final, Literal, NamedTuple, get_args

import numpy as np
import scipy

from truerank.arrays import Floats
from truerank.errors import InputError, OptionError
from truerank.measures.resampling import Bootstrap, bootstrap_interval
from truerank.text.printable import counted

EffectSize = Literal["dz", "dav", "ds", "gz", "gav", "gs"]
IntervalMethod = Literal["paired-t", "welch", "equal-variance-t"]

#: What each effect size divides the difference of the means by.
EFFECT_SIZES: Final[dict[str, str]] = {
    "dz": "Cohen's dz: the mean difference in standard deviations of the per-topic differences",
    "dav": "Cohen's dav: the mean difference in the root of the mean of both runs' variances",
    "ds": "Cohen's ds: the difference of the means in pooled standard deviations",
    "gz": "Hedges' gz: dz with the correction for few topics",
    "gav": "Hedges' gav: dav with the correction for few topics",
    "gs": "Hedges' gs: ds with the correction for few topics",
}
_PAIRED: Final = frozenset({"dz", "dav", "gz", "gav"})
#: No study finds a shift beyond it.
_LARGEST_SHIFT: Final = float(1 << 30)
#: Standard deviations below this share of the largest score are rounding.
_ROUNDING: Final = 1e-12
#: Differences of scores that are smaller come from sums of floating numbers.
ROUNDING: Final = 1e-9


class MeanInterval(NamedTuple):
    """A mean over `n` topics, or the difference of two, with its interval.

    The ends are None below two topics, the mean is None below one.
    """

    n: int
    mean: float | None
    low: float | None
    high: float | None


def mean_interval(scores: Floats, confidence: float = 0.95) -> MeanInterval:
    """The mean with Student's t interval.

    Args:
        scores: one per topic, shape (topics,).
        confidence: of the interval.
    """
    n = len(scores)
    if n < 2 or not np.isfinite(scores).all():
        return MeanInterval(n, float(scores.mean()) if n else None, None, None)
    mean = float(scores.mean())
    half = float(scipy.special.stdtrit(n - 1, (1 + confidence) / 2)) * float(scores.std(ddof=1)) / math.sqrt(n)
    return MeanInterval(n, mean, mean - half, mean + half)


def difference_interval(
    first: Floats,
    second: Floats,
    *,
    method: IntervalMethod = "paired-t",
    confidence: float = 0.95,
    bootstrap: Bootstrap | None = None,
    resamples: int = 10_000,
    seed: int = 0,
) -> MeanInterval:
    """The difference of two means, first minus second, with its interval.

    Args:
        first: scores of the one side, shape (topics,).
        second: scores of the other; for "paired-t" of the same topics in the same order.
        method: "paired-t" (Student's, of the per-topic differences), "welch" or "equal-variance-t" (both unpaired).
        confidence: of the interval.
        bootstrap: "percentile" or "bca" instead of the t distribution; paired or not as `method` says.
        resamples: how often the bootstrap draws.
        seed: of the bootstrap.

    Returns:
        The interval; `n` counts the topics, those of both sides where they are not paired. No ends where a side has
        fewer than two topics or a score is infinite.

    Source: Welch (1947).
    """
    paired = method == "paired-t"
    n = len(first) if paired else len(first) + len(second)
    if not len(first) or not len(second) or not (np.isfinite(first).all() and np.isfinite(second).all()):
        return MeanInterval(n, None, None, None)
    samples = [first - second] if paired else [first, second]
    difference = float(samples[0].mean()) if paired else float(first.mean() - second.mean())
    if min(len(first), len(second)) < 2:
        return MeanInterval(n, difference, None, None)
    if bootstrap is not None:
        ends = bootstrap_interval(samples, confidence=confidence, method=bootstrap, resamples=resamples, seed=seed)
        return MeanInterval(n, difference, *ends)
    error, freedom = _standard_error(samples, method)
    half = float(scipy.special.stdtrit(freedom, (1 + confidence) / 2)) * error if error else 0.0
    return MeanInterval(n, difference, difference - half, difference + half)


#: The chance that t calls a difference shown that is none, on one side; what skewness adds to it, over the root of the
#: number of topics, at the 97.5% quantile of the normal distribution.
_ONE_SIDED, _PER_SKEW = 0.025, 0.0845
#: By chance alone, samples without a tail are seldom more skewed.
_TAIL: Final = -1.0


def fewest_changes(level: float) -> int:
    """The smallest number of topics of which a test of signs shows a difference, if all change in one direction."""
    return math.ceil(1 - math.log2(1 - level) - 1e-9)


def too_few(differences: Floats, level: float, noun: str = "topic") -> str:
    """Says so where too few topics differ for a two-sided test of signs to find anything: 2 ** (1 - n) > α."""
    known, fewest = differences[~np.isnan(differences)], fewest_changes(level)
    changed = int((np.abs(known) > ROUNDING).sum())
    if len(known) < fewest:
        return f"with fewer than {fewest} {noun}s, luck cannot be ruled out"
    few = f"the scores differ on only {changed} of {counted(len(known), noun)}"
    return f"{few}; with fewer than {fewest}, luck cannot be ruled out" if changed < fewest else ""


def losing_tail(differences: Floats, widest: float) -> tuple[float, float] | None:
    """The skewness of differences with few large losses, and how often Student's t then calls none of them shown.

    Source: the first term of the Edgeworth expansion of t (Hall 1992, section 2.3), which
    `studies/skewed_differences.py` compares with simulated errors.

    Args:
        differences: shape (topics,).
        widest: the largest difference that two scores can have.

    Returns:
        The skewness and the error of a test at 5%; None without a tail, and where as many losses as can be expected
        do not take the mean below 0.
    """
    if np.ptp(differences) <= ROUNDING:
        return None
    skew, size, mean = float(scipy.stats.skew(differences)), len(differences), float(differences.mean())
    # Of as many topics, so many more may lose by chance.
    more = 3 + 2 * math.sqrt(int((differences < 0).sum()))
    if skew > _TAIL or mean > more / size * (mean + widest):
        return None
    return skew, 2 * (_ONE_SIDED - skew * _PER_SKEW / math.sqrt(size))


def effect_size(first: Floats, second: Floats, variant: EffectSize = "dz") -> float | None:
    """The difference of two means, first minus second, in standard deviations.

    Args:
        first: scores of the one side, shape (topics,).
        second: scores of the other; for "dz", "dav", "gz" and "gav" of the same topics in the same order.
        variant: what the difference is divided by: the standard deviation of the differences (z), the root of the mean
            of the two variances (av) or the pooled standard deviation (s). "d" is Cohen's, "g" is Hedges', which
            multiplies by Γ(m/2) / (√(m/2) Γ((m−1)/2)) at m degrees of freedom.

    Returns:
        The effect size; None where a side has fewer than two topics (Hedges: where m < 2), a score is infinite or
        nothing varies. Where the means do not differ and nothing varies it is 0.

    Raises:
        InputError: an unknown variant.

    Source: Lakens (2013), equations 1 to 10; Hedges (1981) for the factor.
    """
    if variant not in EFFECT_SIZES:
        raise InputError(f"unknown effect size '{variant}'", f"one of {', '.join(get_args(EffectSize))}")
    if min(len(first), len(second)) < 2 or not (np.isfinite(first).all() and np.isfinite(second).all()):
        return None
    variances = float(first.var(ddof=1)), float(second.var(ddof=1))
    if variant in _PAIRED:
        freedom = len(first) - 1
        spread = float((first - second).std(ddof=1)) if variant[1:] == "z" else math.sqrt(sum(variances) / 2)
    else:
        freedom = len(first) + len(second) - 2
        spread = math.sqrt(((len(first) - 1) * variances[0] + (len(second) - 1) * variances[1]) / freedom)
    difference = float(first.mean() - second.mean())
    scale = max(float(np.abs(first).max()), float(np.abs(second).max()))
    if spread <= _ROUNDING * scale:
        return 0.0 if abs(difference) <= _ROUNDING * scale else None
    if variant.startswith("d"):
        return difference / spread
    return difference / spread * _hedges(freedom) if freedom >= 2 else None


def detectable_difference(
    topics: int, sd: float, *, power: float = 0.8, alpha: float = 0.05, others: int | None = None
) -> float | None:
    """The smallest true difference of means that a two-sided t-test finds with the given power.

    Args:
        topics: number of topics.
        sd: standard deviation of the per-topic differences; of the scores where the test is unpaired.
        power: chance of finding it.
        alpha: level of the test.
        others: number of topics of the other side, where the test is unpaired (equal variances); None for paired.

    Returns:
        The difference in the unit of `sd`, None below two topics.

    Source: the power of the t-test by the non-central t distribution; Sakai (2018), Laboratory Experiments in
    Information Retrieval, chapter 6.
    """
    if topics < 2 or (others is not None and others < 2):
        return None
    shift = _detectable_shift(topics - 1 if others is None else topics + others - 2, power, alpha)
    if shift is None:
        return None
    return shift * sd / math.sqrt(topics) if others is None else shift * sd * math.sqrt(1 / topics + 1 / others)


@functools.lru_cache(maxsize=4096)
def _detectable_shift(freedom: int, power: float, alpha: float) -> float | None:
    """The shift of the non-central t distribution at which the power is reached; None where it cannot be computed."""
    if alpha >= power:
        # So many tests find a difference of 0.
        return 0.0
    bar = float(scipy.special.stdtrit(freedom, 1 - alpha / 2))

    def shortfall(shift: float) -> float:
        # The far tail on the wrong side is 0 where SciPy cannot compute it.
        wrong_side = np.nan_to_num(scipy.special.nctdtr(freedom, shift, -bar), nan=0.0)
        # Bit for bit nct.sf, which has a value in further cases, but takes half a second to load.
        tail = scipy.special.nctdtr(freedom, -shift, -bar)
        return float((scipy.stats.nct.sf(bar, freedom, shift) if np.isnan(tail) else tail) + wrong_side) - power

    enough = 1.0
    while shortfall(enough) < 0 and enough < _LARGEST_SHIFT:
        enough *= 2
    # SciPy has no tail for a level of 1e-15 with two topics.
    if not shortfall(enough) >= 0:
        return None
    # Halves, down to the last bit: a tenth of a second less than loading scipy.optimize.
    low, middle = 0.0, enough / 2
    while low < middle < enough:
        low, enough = (middle, enough) if shortfall(middle) < 0 else (low, middle)
        middle = (low + enough) / 2
    return enough


def _standard_error(samples: list[Floats], method: IntervalMethod) -> tuple[float, float]:
    """The standard error of the difference, and the degrees of freedom."""
    counts = [len(sample) for sample in samples]
    variances = [float(sample.var(ddof=1)) for sample in samples]
    if method == "paired-t":
        return math.sqrt(variances[0] / counts[0]), counts[0] - 1
    if method == "equal-variance-t":
        freedom = sum(counts) - 2
        pooled = sum((n - 1) * variance for n, variance in zip(counts, variances, strict=True)) / freedom
        return math.sqrt(pooled * sum(1 / n for n in counts)), freedom
    parts = [variance / n for n, variance in zip(counts, variances, strict=True)]
    if sum(parts) == 0:
        return 0.0, sum(counts) - 2
    freedom_welch = sum(parts) ** 2 / sum(part**2 / (n - 1) for n, part in zip(counts, parts, strict=True))
    return math.sqrt(sum(parts)), freedom_welch


def _hedges(freedom: int) -> float:
    return math.exp(
        scipy.special.gammaln(freedom / 2) - scipy.special.gammaln((freedom - 1) / 2) - math.log(freedom / 2) / 2
    )


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
        raise ValueError(f"{k} of {n} is not a share")
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
