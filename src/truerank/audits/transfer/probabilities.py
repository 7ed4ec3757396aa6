"""From scores to probabilities of relevance, so that a difference of 0.5 means the same for every ranker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy.special import expit

from truerank.errors import InputError

__all__ = ["Curve", "fit_curve", "topic_levels"]

Floats = NDArray[np.float64]

#: Keeps the slope finite where all relevant documents score above all others.
_PENALTY: Final = 1e-4
_STEPS: Final = 100
#: As many documents of average score are added to those of each topic.
_SHRINKAGE: Final = 5


@dataclass(frozen=True)
class Curve:
    """P(relevant) = 1 / (1 + exp(-(slope · score + offset))), for as many relevant documents as others.

    The score is one above the level of its topic, see `topic_levels`.

    Attributes:
        slope: per unit of the score.
        offset: at score 0.
        relevant: documents it was fitted to.
        others: likewise.
        auc: the share of pairs of a relevant document and another in which the relevant one scores higher.
    """

    slope: float
    offset: float
    relevant: int
    others: int
    auc: float

    @property
    def tells(self) -> bool:
        """Whether relevant documents score higher at all."""
        return self.slope > 0 and self.auc > 0.5

    def __call__(self, scores: Floats) -> Floats:
        """The probability of each score; one half for all where the score tells nothing."""
        if not self.tells:
            return np.full(len(scores), 0.5)
        found: Floats = expit(self.slope * scores + self.offset)
        return found

    def json(self) -> dict[str, Any]:
        """The curve as plain numbers."""
        return {
            "slope": round(self.slope, 6),
            "offset": round(self.offset, 6),
            "relevant": self.relevant,
            "others": self.others,
            "auc": round(self.auc, 6),
        }


def fit_curve(relevant: Floats, others: Floats) -> Curve:
    """Fits the curve; both sides weigh the same, whatever their numbers.

    Args:
        relevant: scores of judged relevant documents, shape (m,).
        others: scores of documents that are not, shape (n,).

    Returns:
        The maximum of the likelihood with a small penalty on the slope.

    Raises:
        InputError: no documents on a side.

    Source: Platt (1999).
    """
    if not len(relevant) or not len(others):
        raise InputError(
            "nothing to calibrate with: no judged topic has a document that is not relevant to it",
            "give --first-stage, or --percentile instead of a cut-off",
            where="--probability",
        )
    scores = np.concatenate([relevant, others])
    centre, scale = float(scores.mean()), float(scores.std()) or 1.0
    x = np.column_stack([(scores - centre) / scale, np.ones(len(scores))])
    y = np.r_[np.ones(len(relevant)), np.zeros(len(others))]
    weights = np.r_[np.full(len(relevant), 0.5 / len(relevant)), np.full(len(others), 0.5 / len(others))]
    found = np.zeros(2)
    penalty = np.diag([_PENALTY, 0.0])
    for _ in range(_STEPS):
        guess = expit(x @ found)
        rise = x.T @ (weights * (guess - y)) + penalty @ found
        bend = (x * (weights * guess * (1 - guess))[:, None]).T @ x + penalty + 1e-9 * np.eye(2)
        step = np.linalg.solve(bend, rise)
        # A long step from a flat place would overshoot.
        found = found - step * min(1.0, 5.0 / float(np.abs(step).max() or 1.0))
        if np.abs(step).max() < 1e-10:
            break
    return Curve(
        float(found[0] / scale),
        float(found[1] - found[0] * centre / scale),
        len(relevant),
        len(others),
        _auc(relevant, others),
    )


def topic_levels(topics: pl.Series, scores: Floats, others: NDArray[np.bool_]) -> Floats:
    """What a document that is not relevant scores for a topic, on average: some topics score high with everything.

    Args:
        topics: ids, length n.
        scores: shape (n,).
        others: which of them are of documents that are not relevant, shape (n,); few for a topic weigh little.

    Returns:
        The level of each score's topic, shape (n,).
    """
    mean = float(scores[others].mean()) if others.any() else 0.0
    known = pl.DataFrame({"topic": topics, "score": scores, "other": others})
    mine = known.filter("other").group_by("topic").agg(pl.col("score").sum().alias("sum"), pl.len().alias("n"))
    joined = known.join(mine, on="topic", how="left", maintain_order="left")
    level = (pl.col("sum").fill_null(0.0) + _SHRINKAGE * mean) / (pl.col("n").fill_null(0) + _SHRINKAGE)
    found: Floats = joined.select(level.alias("level"))["level"].to_numpy()
    return found


def _auc(relevant: Floats, others: Floats) -> float:
    ordered = np.sort(others)
    below = np.searchsorted(ordered, relevant, side="left")
    tied = np.searchsorted(ordered, relevant, side="right") - below
    return float((below + 0.5 * tied).mean() / len(others))
