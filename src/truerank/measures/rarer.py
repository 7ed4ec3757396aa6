"""The measures that are left to ir_measures and the tools behind it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import polars as pl
from ir_measures.measures.base import Measure
from numpy.typing import NDArray

from truerank.errors import OptionError
from truerank.options import Scoring


class RarerMeasures:
    """Scores rankings by measures of ir_measures.

    Every tool behind ir_measures orders results in its own way where scores are equal. So each gets the ranking of the
    policy, with scores that fall by one from rank to rank.

    Args:
        measures: what is scored; binary measures without `rel=` take the policy's.
        qrels: columns topic_id, doc_id and relevance.
        policy: for the lowest relevant grade.
    """

    def __init__(self, measures: Sequence[Measure], qrels: pl.DataFrame, policy: Scoring) -> None:
        import ir_measures

        self._names = {str(_at_level(measure, policy)): name for name, measure in enumerate(measures)}
        levelled = [_at_level(measure, policy) for measure in measures]
        for measure in levelled:
            if type(measure).__module__.endswith(".diversity"):
                raise OptionError(
                    "measures", f"{measure} scores the subtopics of a topic", "leave it out: they are not read"
                )
        self._defaults = [float(measure.DEFAULT) for measure in levelled]
        try:
            sampled = any(measure.NAME == "infAP" for measure in measures)
            records = [ir_measures.Qrel(*row) for row in _safe(qrels, sampled).iter_rows()]
            self._evaluator = ir_measures.evaluator(levelled, records)
        except (RuntimeError, ValueError, AssertionError) as error:
            reason = str(error).removeprefix("Unsupported measures ").replace("{", "").replace("}", "")
            graded = any(measure.NAME == "RBP" for measure in levelled)
            remedy = "write RBP(p=0.8,rel=1), with the lowest relevant grade in it" if graded else "choose another"
            raise OptionError("measures", f"cannot be computed here: {reason}", remedy) from error

    def score(
        self, rankings: Iterator[tuple[str, list[str]]], topics: Mapping[str, int], values: NDArray[np.float64]
    ) -> None:
        """Fills in the values of some topics.

        Args:
            values: shape (measures, topics).
        """
        run = {topic: {name: float(-rank) for rank, name in enumerate(documents)} for topic, documents in rankings}
        for found in self._evaluator.iter_calc(run):
            if found.query_id in run:
                values[self._names[str(found.measure)], topics[found.query_id]] = found.value

    def empty(self, topics: int) -> NDArray[np.float64]:
        """What topics score whose ranking is empty, shape (measures, topics)."""
        return np.repeat(np.array(self._defaults)[:, None], topics, axis=1)


def _safe(qrels: pl.DataFrame, sampled: bool) -> pl.DataFrame:
    """The judgments without negative grades, which can make pytrec_eval hang.

    They stand for documents that are not judged. Where a measure needs to know that they were pooled, they stay as -1
    in topics that have other grades.
    """
    if not sampled:
        return qrels.filter(pl.col("relevance") >= 0)
    judged = qrels.filter(pl.col("relevance").max().over("topic_id") >= 0)
    return judged.with_columns(pl.col("relevance").clip(lower_bound=-1))


def _at_level(measure: Measure, policy: Scoring) -> Measure:
    """The measure with the policy's grade, if it counts grades of 1 and more unless told otherwise."""
    known = measure.SUPPORTED_PARAMS.get("rel")
    follows = known is not None and known.default == 1 and "rel" not in measure.params
    return measure(rel=policy.rel) if follows and policy.rel != 1 else measure
