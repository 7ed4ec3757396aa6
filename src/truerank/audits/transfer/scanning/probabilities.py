"""From scores to probabilities of relevance, so that a difference of 0.5 means the same for every ranker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from truerank.arrays import Floats
from truerank.errors import OptionError

#: Keeps the slope finite where all relevant documents score above all others.
_PENALTY: Final = 1e-4
_STEPS: Final = 100
#: As many documents of average score are added to those of each topic.
_SHRINKAGE: Final = 5


@dataclass(frozen=True)
class Curve:
    """P(relevant) = 1 / (1 + exp(-(slopes · scores + offset))), for as many relevant documents as others.

    Scores are those of one ranker or several, each above the level of its topic, see `topic_levels`.

    Attributes:
        slopes: per unit of each ranker's score.
        offset: where all scores are 0.
        relevant: documents it was fitted to.
        others: likewise.
        auc: the share of pairs of a relevant document and another in which the relevant one scores higher.
    """

    slopes: tuple[float, ...]
    offset: float
    relevant: int
    others: int
    auc: float

    @property
    def tells(self) -> bool:
        """Whether relevant documents score higher at all."""
        return max(self.slopes) > 0 and self.auc > 0.5

    def log_odds(self, scores: Floats) -> Floats:
        """The logarithm of the odds of being relevant, shape (n,); 0 for all where the scores tell nothing.

        Args:
            scores: shape (n, rankers).
        """
        if not self.tells:
            return np.zeros(len(scores))
        found: Floats = scores @ np.array(self.slopes) + self.offset
        return found

    def __call__(self, scores: Floats) -> Floats:
        """The probability of each row of scores, shape (n,); one half for all where the scores tell nothing."""
        found: Floats = _expit(self.log_odds(scores))
        return found

    def json(self) -> dict[str, Any]:
        """The curve as plain numbers."""
        return {
            "slopes": [round(slope, 6) for slope in self.slopes],
            "offset": round(self.offset, 6),
            "relevant": self.relevant,
            "others": self.others,
            "auc": round(self.auc, 6),
        }


def fit_curve(relevant: Floats, others: Floats) -> Curve:
    """Fits the curve; both sides weigh the same, whatever their numbers.

    Args:
        relevant: scores of judged relevant documents, shape (m, rankers).
        others: scores of documents that are not, shape (n, rankers).

    Source: Platt (1999).
    """
    if not len(relevant) or not len(others):
        raise OptionError(
            "probability",
            "nothing to calibrate with: no judged topic has a document that is not relevant to it",
            "give --first-stage, or --percentile instead of a cut-off",
        )
    scores = np.concatenate([relevant, others])
    centre, scale = scores.mean(axis=0), scores.std(axis=0)
    scale[scale == 0] = 1.0
    x = np.column_stack([(scores - centre) / scale, np.ones(len(scores))])
    y = np.r_[np.ones(len(relevant)), np.zeros(len(others))]
    weights = np.r_[np.full(len(relevant), 0.5 / len(relevant)), np.full(len(others), 0.5 / len(others))]
    found = np.zeros(x.shape[1])
    penalty = np.diag([*[_PENALTY] * scores.shape[1], 0.0])
    for _ in range(_STEPS):
        guess = _expit(x @ found)
        rise = x.T @ (weights * (guess - y)) + penalty @ found
        bend = (x * (weights * guess * (1 - guess))[:, None]).T @ x + penalty + 1e-9 * np.eye(len(found))
        step = np.linalg.solve(bend, rise)
        # A long step from a flat place would overshoot.
        found = found - step * min(1.0, 5.0 / float(np.abs(step).max() or 1.0))
        if np.abs(step).max() < 1e-10:
            break
    slopes = found[:-1] / scale
    offset = float(found[-1] - slopes @ centre)
    # A single score orders documents itself, also where its slope is negative.
    order = slopes if len(slopes) > 1 else np.ones(1)
    area = _auc(relevant @ order, others @ order)
    return Curve(tuple(slopes.tolist()), offset, len(relevant), len(others), area)


def difference(better: pl.Expr, worse: pl.Expr, *, judged: bool) -> pl.Expr:
    """How much more probable it is that one version is relevant than that the other is."""
    plain = better - worse
    if not judged:
        return plain
    either = better + worse - better * worse
    return pl.when(either > 0).then(plain / either).otherwise(0.0)


def topic_levels(topics: pl.Series, scores: Floats, others: NDArray[np.bool_]) -> Floats:
    """What a document that is not relevant scores for a topic, on average: some topics score high with everything.

    Args:
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


def _expit(values: Floats) -> Floats:
    # Imported here: SciPy takes a while to load.
    from scipy.special import expit

    found: Floats = expit(values)
    return found
