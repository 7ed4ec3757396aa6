"""A calibrated threshold, with the curve that it comes from."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truerank.arrays import Floats
from truerank.errors import InputError
from truerank.reports.results import Result


class Support(NamedTuple):
    """What labels must show before a threshold is believed.

    Attributes:
        labels: pairs needed within `window` below the threshold, the same number within `window` above it, and the
            number above a threshold without which its precision is not looked at.
        window: similarity distance; labels must also reach this far below the threshold's interval.
        width: the widest acceptable interval of the threshold.
    """

    labels: int = 10
    window: float = 0.03
    width: float = 0.05


class LabelNext(NamedTuple):
    """A range of similarities (above `low`, up to `high`) that needs `more` labelled pairs beside those it has."""

    low: float
    high: float
    have: int
    more: int


@dataclass(frozen=True, eq=False, repr=False)
class Calibration(Result, shown_in="truerank.audits.leakage.summaries"):
    """The precision at each threshold, and the threshold chosen from it.

    Attributes:
        thresholds: multiples of 0.001 over the labelled range, ascending, shape (T,).
        precision: share of leaks among the candidates above each threshold, shape (T,): from the curve for the lower
            bound, otherwise the weighted share among the labelled pairs.
        low, high: for the lower bound the one-sided bounds of the precision, each with the confidence asked for;
            otherwise its pointwise bootstrap interval, shape (T,).
        n: labelled pairs above each threshold, shape (T,).
        chosen: the threshold, or None if the labels do not support one.
        estimate: where the estimated precision itself reaches the target, also where the threshold is refused; None if
            it does so nowhere.
        interval: of the estimate; an end is None where the labels do not reach so far.
        reason: why there is no threshold, in words; empty if there is one.
        label_next: the similarities to label before asking again.
        encoder: the encoder whose similarities the labels carry; empty if unknown.
        settings: target, rule, confidence, resampling, seed and the support asked for.
        counts: pairs used, leaks among them, unresolved, unlabelled, without similarity.
        notes: what a reader must know about the estimate.
    """

    thresholds: Floats
    precision: Floats
    low: Floats
    high: Floats
    n: NDArray[np.int64]
    chosen: float | None
    estimate: float | None
    interval: tuple[float | None, float | None]
    reason: str
    label_next: tuple[LabelNext, ...]
    encoder: str
    settings: dict[str, Any]
    counts: dict[str, int]
    notes: tuple[str, ...] = ()

    @property
    def refused(self) -> bool:
        """Whether the labels support no threshold."""
        return self.chosen is None

    def require(self) -> float:
        """The threshold.

        Raises:
            InputError: there is none; the message says why and what to label next.
        """
        if self.chosen is None:
            raise InputError(f"no threshold: {self.reason}", self.remedy)
        return self.chosen

    @property
    def bounded(self) -> bool:
        """Whether the threshold is that of the lower bound; otherwise it is a point estimate."""
        return bool(self.settings["rule"] == "lower-bound")

    def json(self) -> dict[str, Any]:
        """Everything, as plain numbers and texts."""
        curve = [
            {"threshold": float(t), "pairs": int(n), "precision": plain(p), "low": plain(low), "high": plain(high)}
            for t, n, p, low, high in zip(self.thresholds, self.n, self.precision, self.low, self.high, strict=True)
        ]
        return {
            "encoder": self.encoder,
            "chosen": self.chosen,
            "estimate": self.estimate,
            "interval": list(self.interval),
            "reason": self.reason,
            "label_next": [bin_._asdict() for bin_ in self.label_next],
            "settings": self.settings,
            "counts": self.counts,
            "notes": list(self.notes),
            "curve": curve,
        }

    @property
    def remedy(self) -> str:
        """What would lead to a threshold, where there is none."""
        if not self.label_next:
            return "lower the target, or choose an encoder that tells leaks from other pairs better"
        wanted = ", ".join(f"{b.more} more pairs from {b.low:.2f} to {b.high:.2f}" for b in self.label_next)
        return f"label {wanted}"


def plain(value: float) -> float | None:
    """A number for JSON and tables; None where it is not finite."""
    return float(value) if math.isfinite(value) else None
