"""Rankers trained on simulated annotation depths, compared: what shallow training data costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from truerank.audits.survivorship.depths import by_depth, depth_label
from truerank.errors import InputError
from truerank.measures import (
    Comparison,
    Evaluation,
    Significance,
    compare_evaluations,
    evaluate,
    lower_is_better,
)
from truerank.options import Scoring
from truerank.reports.results import Result

#: Signs of depths in tables.
MARKS: Final = "*†‡§¶"


class DepthLoss(NamedTuple):
    """A ranker trained at one depth against the one trained on everything.

    `loss` is the full one's mean minus this one's, turned round where lower is better; `of_full` and `of_this` are the
    loss relative to the full one's mean and to this one's.
    """

    measure: str
    depth: str
    mean: float
    full: float
    loss: float
    of_full: float | None
    of_this: float | None


@dataclass(frozen=True, eq=False, repr=False)
class TrainingEffect(Result, shown_in="truerank.audits.survivorship.evaluation_report"):
    """Rankers trained at several annotation depths, compared.

    Attributes:
        depths: the training depths, the full one last.
        evaluation: the scores; runs are called like the depths.
        comparison: all pairs of depths.
    """

    depths: tuple[str, ...]
    evaluation: Evaluation
    comparison: Comparison

    @property
    def losses(self) -> tuple[DepthLoss, ...]:
        """By measure and depth, the full one left out."""
        found = []
        for place, measure in enumerate(self.evaluation.measures):
            means = {depth: float(self.evaluation.mean[row, place]) for row, depth in enumerate(self.depths)}
            full = means[self.depths[-1]]
            for depth in self.depths[:-1]:
                own = means[depth]
                loss = own - full if lower_is_better(measure) else full - own
                found.append(
                    DepthLoss(
                        measure, depth, own, full, loss, loss / full if full else None, loss / own if own else None
                    )
                )
        return tuple(found)

    def marks(self, measure: str, depth: str) -> str:
        """Signs of the other depths from which a depth differs: * for the first, † for the second, and so on."""
        others = {
            sign
            for one in self.comparison.differences
            if one.measure == measure and one.significant and depth in (one.run, one.baseline)
            for sign, other in zip(MARKS, self.depths, strict=False)
            if other != depth and other in (one.run, one.baseline)
        }
        return "".join(sign for sign in MARKS if sign in others)

    def json(self) -> dict[str, Any]:
        """Means, losses and comparisons."""
        return {
            "depths": list(self.depths),
            "losses": [one._asdict() for one in self.losses],
            "comparisons": [one._asdict() for one in self.comparison.differences],
            "marks": {
                measure: {depth: self.marks(measure, depth) for depth in self.depths}
                for measure in self.evaluation.measures
            },
        }

    def p_against_full(self, measure: str, depth: str) -> tuple[float | None, float | None]:
        """The p of a depth against the full one, before and after the correction."""
        pair = {depth, self.depths[-1]}
        one = next(
            one for one in self.comparison.differences if one.measure == measure and {one.run, one.baseline} == pair
        )
        return one.p, one.p_corrected


def training_effect(
    qrels: str,
    runs: Mapping[str, str],
    measures: str = "nDCG@10 RR(rel=2) AP(rel=2)",
    *,
    policy: Scoring | None = None,
    method: Significance | None = None,
) -> TrainingEffect:
    """Compares rankers that were trained on simulated depths with each other and with the one trained on everything.

    Args:
        qrels: judgments of the test topics.
        runs: files by training depth, a number or "all"; the deepest is the full one.
        measures: see `measures.parse_measures`.
        policy: how runs are scored.
        method: test and correction; paired t with Bonferroni over the pairs by each measure where it is None.

    Raises:
        InputError: fewer than two depths, a depth that is none, or a fault in a file.

    Source: Gupta, MacAvaney: On Survivorship Bias in MS MARCO (SIGIR 2022), section 5, Figure 1.
    """
    named = {depth_label(depth, "runs"): run for depth, run in runs.items()}
    if len(named) < 2:
        raise InputError("one depth cannot be compared", "give two or more", where="runs")
    depths = tuple(sorted(named, key=by_depth))
    evaluation = evaluate(qrels, {depth: named[depth] for depth in depths}, measures, policy or Scoring())
    return TrainingEffect(depths, evaluation, compare_evaluations(evaluation, method=method or Significance()))
