"""Two runs topic by topic: where the one wins, and where it loses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from truerank.errors import OptionError
from truerank.measures.grammar import lower_is_better
from truerank.measures.systems import Evaluations, shared_topics, systems
from truerank.reports.results import Result

Floats = NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class TopicDifferences(Result, shown_in="truerank.measures.report"):
    """The scores of two runs by topic, from the topic where the run gains most to the one where it loses most.

    Attributes:
        measure: its name.
        run: the run.
        baseline: what it is compared with.
        topics: the ids; topics that either was not scored on are left out.
        scores: of the run, shape (topics,).
        baseline_scores: of the baseline, shape (topics,).
        tie: differences up to this are ties.
        ascending: lower scores are better.
    """

    measure: str
    run: str
    baseline: str
    topics: tuple[str, ...]
    scores: Floats
    baseline_scores: Floats
    tie: float
    ascending: bool

    @property
    def differences(self) -> Floats:
        """Run minus baseline, shape (topics,); 0 where both are infinite."""
        return _differences(self.scores, self.baseline_scores)

    @property
    def outcomes(self) -> tuple[str, ...]:
        """By topic "win", "tie" or "loss"."""
        gains = self.differences * (-1 if self.ascending else 1)
        return tuple("win" if gain > self.tie else "loss" if gain < -self.tie else "tie" for gain in gains)

    def sentence(self) -> str:
        """How often the run wins."""
        outcomes = self.outcomes
        wins, ties, losses = (outcomes.count(kind) for kind in ("win", "tie", "loss"))
        return (
            f"{self.run} wins {wins:,} of {len(outcomes):,} topics against {self.baseline}, loses {losses:,}, "
            f"{ties:,} are ties (within {self.tie:g})."
        )

    def json(self) -> dict[str, Any]:
        """Everything, as plain numbers and texts; None for what is not finite."""
        columns = (self.scores.tolist(), self.baseline_scores.tolist(), self.differences.tolist(), self.outcomes)
        keys = ("topic_id", "score", "baseline_score", "difference", "outcome")
        return {
            "measure": self.measure,
            "run": self.run,
            "baseline": self.baseline,
            "tie": self.tie,
            "topics": [
                {key: _plain(value) for key, value in zip(keys, row, strict=True)}
                for row in zip(self.topics, *columns, strict=True)
            ],
            "sentence": self.sentence(),
        }


def topic_differences(
    evaluations: Evaluations, run: str, baseline: str, measures: Sequence[str], *, tie: float = 1e-9
) -> tuple[TopicDifferences, ...]:
    """Compares two runs topic by topic.

    Args:
        evaluations: the scores, one evaluation or several by name.
        run: the run.
        baseline: what it is compared with; both were scored on the same topics.
        measures: by which measures.
        tie: differences up to this are ties.

    Returns:
        One result per measure; topics with the same difference are in the order of the run's evaluation.

    Raises:
        InputError: an unknown run or measure, or other topics.
    """
    found = systems(evaluations)
    for name, option in ((run, "topics_of"), (baseline, "baseline")):
        if name not in found:
            raise OptionError(option, f"there is no run '{name}'", f"one of {', '.join(found)}")
    topics, own, other = shared_topics(found[run], found[baseline])
    results = []
    for measure in measures:
        scores, others = found[run].scores(measure)[own], found[baseline].scores(measure)[other]
        known = np.flatnonzero(~(np.isnan(scores) | np.isnan(others)))
        ascending = lower_is_better(measure)
        # Differences that only rounding tells apart keep the order of the topics.
        gains = np.round(_differences(scores[known], others[known]) * (-1 if ascending else 1), 12)
        order = known[np.argsort(-gains, kind="stable")]
        results.append(
            TopicDifferences(
                measure,
                run,
                baseline,
                tuple(topics[place] for place in order),
                scores[order],
                others[order],
                tie,
                ascending,
            )
        )
    return tuple(results)


def _differences(first: Floats, second: Floats) -> Floats:
    with np.errstate(invalid="ignore"):
        return np.where(first == second, 0.0, first - second)


def _plain(value: Any) -> Any:
    return value if not isinstance(value, float) or np.isfinite(value) else None
