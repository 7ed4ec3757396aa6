"""ir_measures: truerank's measures as a provider, and judgments and runs as its types."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import ir_measures
import polars as pl
from ir_measures import providers
from ir_measures.measures import Measure, registry
from ir_measures.measures import register as register_measure
from ir_measures.util import Metric, QrelsConverter, RunConverter

from truerank.measures import effectiveness
from truerank.measures.effectiveness import RankedJudgments
from truerank.measures.grammar import DCG, HMFR, MFR, NCG, RR_MSMARCO
from truerank.measures.rankings import GradeTable, Hits, Ranking, grouped, joined
from truerank.measures.scoring import OneRun, QrelSource, qrel_frame, run_frame
from truerank.options import Scoring
from truerank.sources import parse, read_qrels
from truerank.sources.grammar import SourceSpec

__all__ = ["TruerankProvider", "install", "qrels", "run"]

#: The measures that ir_measures does not have.
_MEASURES: Final = (NCG, DCG, MFR, HMFR, RR_MSMARCO)
_POLICY: Final = Scoring()


def install() -> None:
    """Makes NCG, DCG, MFR, HMFR and RR_MSMARCO measures of ir_measures, for this process.

    After it, `ir_measures.parse_measure("NCG@10")` and all that computes measures with ir_measures know them. Calling
    it again changes nothing.
    """
    if TruerankProvider.NAME in providers.registry:
        return
    provider = providers.register(TruerankProvider())
    ir_measures.DefaultPipeline.providers.append(provider)
    for measure in _MEASURES:
        if measure.NAME not in registry:
            register_measure(measure)


def qrels(source: QrelSource) -> list[ir_measures.Qrel]:
    """Judgments as records of ir_measures.

    Args:
        source: a source (a path or `irds:ID`), or any value that `truerank.evaluate` takes for judgments.

    Returns:
        The judgments in their order. Iterations are kept where a source is read, otherwise they are "0".

    Raises:
        InputError: not readable, or a pair of topic and document that occurs twice.
    """
    if isinstance(source, str | Path | SourceSpec):
        spec = source if isinstance(source, SourceSpec) else parse(str(source))
        return [ir_measures.Qrel(*one) for one in read_qrels(spec)]
    return [ir_measures.Qrel(*row) for row in qrel_frame(source).iter_rows()]


def run(source: OneRun) -> list[ir_measures.ScoredDoc]:
    """A run as records of ir_measures, which order results by their scores alone.

    Args:
        source: a file, or any value that `truerank.evaluate` takes for one run.

    Raises:
        InputError: not readable.
    """
    return [ir_measures.ScoredDoc(*row) for row in run_frame(source).iter_rows()]


class TruerankProvider(providers.Provider):  # type: ignore[misc]
    """Computes the measures that ir_measures lacks, with the arrays of `truerank.evaluate` under its default policies.

    Ties are broken as trec_eval does. RR_MSMARCO is by rank; since a run of ir_measures has none, results of equal
    scores rank in the order in which they are given. Every topic of the judgments has a value, those that the run lacks
    that of an empty ranking.
    """

    NAME = "truerank"
    SUPPORTED_MEASURES: Final = list(_MEASURES)

    def _evaluator(self, measures: Iterable[Measure], qrels: Any) -> _Evaluator:
        records = QrelsConverter(qrels).as_namedtuple_iter()
        return _Evaluator(tuple(measures), GradeTable(qrel_frame(list(records))))


class _Evaluator(providers.Evaluator):  # type: ignore[misc]
    """Scores runs by one set of judgments."""

    def __init__(self, measures: tuple[Measure, ...], judgments: GradeTable) -> None:
        super().__init__(measures, set(judgments.topics))
        self._judgments = judgments

    def _iter_calc(self, run: Any) -> Iterator[Metric]:
        hits, by_rank = self._hits(list(RunConverter(run).as_namedtuple_iter()))
        view = RankedJudgments(self._judgments, hits, by_rank, _POLICY)
        for measure in self.measures:
            values = effectiveness.score(measure, view)
            for topic, value in zip(self._judgments.topics, values.tolist(), strict=True):
                yield Metric(query_id=topic, measure=measure, value=value)

    def _hits(self, records: list[Any]) -> tuple[Hits, Hits]:
        topics = len(self._judgments.topics)
        if not records:
            return joined([], topics), joined([], topics)
        frame = run_frame(records)
        # By falling score; equal ones in the order given.
        order = frame.sort("score", descending=True, maintain_order=True)
        ranked = order.with_columns(rank=pl.int_range(1, pl.len() + 1, dtype=pl.Int64).over("topic_id"))
        ranking = Ranking(grouped(ranked), self._judgments)
        first, second = ranking.hits((_POLICY.ties, "rank"), _POLICY.depth)
        return joined([first], topics), joined([second], topics)
