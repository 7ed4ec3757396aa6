"""How many queries would be discarded had more, or fewer, documents been shown."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import scipy

from truerank.arrays import Floats, Ints
from truerank.measures.magnitudes import Proportion, proportion

#: Fewer depths than this carry no trend.
_FEWEST_DEPTHS: Final = 4
_STEPS: Final = 50
#: The shapes that the chance of a selection may have beyond what was shown.
_SHAPES: Final[tuple[tuple[str, Callable[[Floats], Floats]], ...]] = (
    ("trend in log depth", lambda k: np.column_stack([np.ones_like(k), np.log(k)])),
    ("trend in depth", lambda k: np.column_stack([np.ones_like(k), k])),
    ("as at the last depths", lambda k: np.ones((len(k), 1))),
)
#: The last shape looks at this share of the depths, the deepest.
_RECENT: Final = 1 / 3


class DepthPoint(NamedTuple):
    """One depth within what was shown.

    `discarded` is what the log gives when cut there; `adjusted` what it would be had every query been shown so many
    documents (Kaplan–Meier, for lists of different lengths); `reached` says how many queries were shown so many.
    """

    depth: int
    discarded: Proportion
    adjusted: float
    reached: int


class FutureShare(NamedTuple):
    """One depth beyond what was shown: the middle of all shapes, and the outer ends of their intervals."""

    depth: int
    share: float
    low: float
    high: float


@dataclass(frozen=True)
class DepthCurve:
    """Discarded share by depth.

    Attributes:
        points: what the log says.
        beyond: an extrapolation, empty where there is none.
        shown: the depth that at least half of the queries without a selection above it were shown; the trend rests on
            the depths up to it.
        shapes: by name of a shape, the share that it gives at each depth beyond.
        dispersion: how much more the chances vary between depths than chance explains, by shape (1: no more).
        why_not: why there is no extrapolation.
    """

    points: tuple[DepthPoint, ...]
    beyond: tuple[FutureShare, ...]
    shown: int
    shapes: dict[str, tuple[float, ...]]
    dispersion: dict[str, float]
    why_not: str = ""

    def json(self) -> dict[str, Any]:
        """All figures; those that are extrapolated say so."""
        return {
            "points": [
                {
                    "depth": one.depth,
                    "extrapolated": False,
                    **one.discarded.json(),
                    "adjusted": one.adjusted,
                    "reached": one.reached,
                }
                for one in self.points
            ],
            "beyond": [{**one._asdict(), "extrapolated": True} for one in self.beyond],
            "trend_from_depths_up_to": self.shown,
            "shapes": {name: list(values) for name, values in self.shapes.items()},
            "dispersion": self.dispersion,
            "why_not": self.why_not or None,
        }


def depth_curve(
    first: Ints, shown: Ints, *, to: int | None = None, confidence: float = 0.95, resamples: int = 2000, seed: int = 0
) -> DepthCurve:
    """Discarded share at every depth, and beyond.

    The chance that a document at some depth is the first to be selected, given that none above it was, is a discrete
    hazard. Within the depths shown it is counted. Beyond, three shapes carry it on: logistic trends in the logarithm of
    the depth and in the depth, and the level of the last third of depths. Their uncertainty is that of a
    quasi-binomial fit, so that an uneven course widens it; the interval spans those of all shapes.

    Args:
        resamples: draws from each shape's uncertainty.

    Source: the cuts are those of Gupta, MacAvaney (SIGIR 2022), section 4.1; the extrapolation is this project's.
    """
    deepest = int(shown.max()) if len(shown) else 0
    depths = np.arange(1, deepest + 1)
    events = np.bincount(first[first >= 0], minlength=deepest)[:deepest] if deepest else np.zeros(0, np.int64)
    reached = len(shown) - np.cumsum(np.bincount(shown, minlength=deepest + 1))[:deepest] if deepest else events
    # Those at risk at depth k were shown k documents or more and have selected none of the first k-1.
    last = np.where(first >= 0, np.minimum(first + 1, shown), shown)
    risk = len(shown) - np.cumsum(np.bincount(last, minlength=deepest + 1))[:deepest] if deepest else events
    hazard = np.divide(events, risk, out=np.zeros(deepest), where=risk > 0)
    adjusted = np.cumprod(1 - hazard)
    left = len(shown) - np.cumsum(events)
    points = tuple(
        DepthPoint(int(k), proportion(int(n), len(shown), confidence=confidence), float(share), int(long))
        for k, n, share, long in zip(depths, left, adjusted, reached, strict=True)
    )
    # A depth that only a minority of the undecided was shown says nothing about the others.
    usual = int((risk * 2 >= left + events).cumprod().sum())
    to = 2 * usual if to is None else to
    why_not = _why_not(usual, to, events[:usual])
    if why_not:
        return DepthCurve(points, (), usual, {}, {}, why_not)
    start = _Start(float(adjusted[usual - 1]), _greenwood(events[:usual], risk[:usual], float(adjusted[usual - 1])))
    trend = _Trend(events[:usual], risk[:usual], start, confidence, resamples, seed)
    return _extrapolated(points, trend, to)


class _Start(NamedTuple):
    """The share of queries still without a selection, and its standard error."""

    share: float
    error: float


class _Trend(NamedTuple):
    """First selections and queries without one until then, by depth; where a trend begins, and how it is drawn."""

    events: Ints
    risk: Ints
    start: _Start
    confidence: float
    resamples: int
    seed: int


def _why_not(usual: int, to: int, events: Ints) -> str:
    if to == 0:
        return "Extrapolation was not wanted."
    if usual < _FEWEST_DEPTHS:
        return f"Most queries were shown {usual} documents; a trend needs {_FEWEST_DEPTHS}."
    if to <= usual:
        return f"Nothing to extrapolate: depth {to} was shown to most queries."
    return "" if events.sum() and (events > 0).sum() > 2 else "Too few selections for a trend."


def _greenwood(events: Ints, risk: Ints, share: float) -> float:
    open_ = risk > events
    return share * math.sqrt(float((events[open_] / (risk[open_] * (risk[open_] - events[open_]))).sum()))


def _extrapolated(points: tuple[DepthPoint, ...], trend: _Trend, to: int) -> DepthCurve:
    events, risk, start, confidence, resamples, seed = trend
    usual = len(events)
    future = np.arange(usual + 1, to + 1, dtype=np.float64)
    tails = [100 * (1 - confidence) / 2, 50, 100 * (1 + confidence) / 2]
    shapes: dict[str, tuple[float, ...]] = {}
    dispersion: dict[str, float] = {}
    found = []
    for number, (name, columns) in enumerate(_SHAPES):
        span = slice(usual - max(2, round(usual * _RECENT)), usual) if number == 2 else slice(0, usual)
        past = np.arange(1, usual + 1, dtype=np.float64)[span]
        fit, covariance, spread = _fitted(columns(past), events[span], risk[span])
        draw = np.random.default_rng((seed, number))
        weights = draw.multivariate_normal(fit, covariance, resamples, method="svd")
        begin = np.clip(draw.normal(start.share, start.error, resamples), 0, 1)
        paths = begin[:, None] * np.cumprod(1 - scipy.special.expit(weights @ columns(future).T), axis=1)
        found.append(np.percentile(paths, tails, axis=0))
        shapes[name] = tuple((start.share * np.cumprod(1 - scipy.special.expit(columns(future) @ fit))).tolist())
        dispersion[name] = spread
    together = np.array(found)
    low, middle, high = together[:, 0].min(0), together[:, 1].mean(0), together[:, 2].max(0)
    beyond = tuple(
        FutureShare(int(k), float(middle[i]), float(low[i]), float(high[i])) for i, k in enumerate(future.tolist())
    )
    return DepthCurve(points, beyond, usual, shapes, dispersion)


def _fitted(columns: Floats, events: Ints, risk: Ints) -> tuple[Floats, Floats, float]:
    """A logistic regression of counts by Newton's steps: weights, covariance with dispersion, dispersion."""
    # Half an event more keeps depths without any from pulling the fit to minus infinity.
    share = (events + 0.5) / (risk + 1.0)
    weights = np.linalg.lstsq(columns, np.log(share / (1 - share)), rcond=None)[0]
    for _ in range(_STEPS):
        fitted = scipy.special.expit(columns @ weights)
        curvature = columns.T @ (columns * (risk * fitted * (1 - fitted))[:, None])
        step = np.linalg.lstsq(curvature, columns.T @ (events - risk * fitted), rcond=None)[0]
        weights = weights + step
        if np.abs(step).max() < 1e-10:
            break
    fitted = scipy.special.expit(columns @ weights)
    variance = risk * fitted * (1 - fitted)
    curvature = columns.T @ (columns * variance[:, None])
    freedom = max(1, len(events) - columns.shape[1])
    spread = max(1.0, float(((events - risk * fitted) ** 2 / np.maximum(variance, 1e-12)).sum()) / freedom)
    return weights, np.linalg.pinv(curvature) * spread, spread
