"""What each kind of leak of whole examples does to scores: topics, or documents, that leak are taken out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from truerank.audits.leakage.results import VerdictWord
from truerank.audits.leakage.training_examples.kinds import kind_named
from truerank.audits.leakage.training_examples.results import ExampleAudit
from truerank.measures import Evaluation, parse_measures
from truerank.measures.document_placebo import RankedDocuments, document_placebos
from truerank.measures.placebo import Placebo
from truerank.measures.scoring import QrelSource, RunSource
from truerank.options import Resampling, Scoring, Ties


@dataclass(frozen=True)
class KindEffect:
    """What one kind of leak does to scores.

    Attributes:
        kind: its name, as in `leakage examples`.
        verdict: that of the audit.
        removed: what is taken out: the topics of queries that leak, or the documents that leak.
        leaked: how many leak.
        counted: how many of these can move a score: topics with judgments, documents in a run or in the judgments.
        placebos: by measure, their removal beside that of as many random ones; empty where none leaks.
    """

    kind: str
    verdict: VerdictWord
    removed: Literal["topics", "documents"]
    leaked: int
    counted: int
    placebos: tuple[Placebo, ...]

    def json(self) -> dict[str, Any]:
        """Everything, as plain values."""
        return {
            "kind": self.kind,
            "verdict": self.verdict,
            "removed": self.removed,
            "leaked": self.leaked,
            "counted": self.counted,
            "placebos": [placebo.json() for placebo in self.placebos],
        }


def kind_effects(
    audit: ExampleAudit,
    scores: Evaluation,
    sources: tuple[QrelSource, RunSource],
    *,
    kinds: Collection[str],
    matched_by: str | None,
    resampling: Resampling,
    of_topics: Callable[[Collection[str]], tuple[Placebo, ...]],
) -> Iterator[KindEffect]:
    """Takes out what leaks, one kind after the other."""
    ranked: RankedDocuments | None = None
    for found in audit.kinds:
        if kinds and found.kind not in kinds:
            continue
        removed: Literal["topics", "documents"] = "topics" if kind_named(found.kind).test == "query" else "documents"
        column = audit.rows(found.kind)["topic_id" if removed == "topics" else "doc_id"]
        leaked = set(column.drop_nulls().to_list())
        counted, placebos = 0, tuple[Placebo, ...]()
        if leaked and removed == "topics":
            counted = len(leaked.intersection(scores.topics))
            placebos = of_topics(leaked)
        elif leaked:
            ranked = _ranked(scores, sources) if ranked is None else ranked
            counted = len(leaked.intersection(ranked.documents.to_list()))
            measures = " ".join(scores.measures)
            placebos = document_placebos(ranked, leaked, measures, matched_by=matched_by, resampling=resampling)
        yield KindEffect(found.kind, found.verdict, removed, len(leaked), counted, placebos)


def _ranked(scores: Evaluation, sources: tuple[QrelSource, RunSource]) -> RankedDocuments:
    by_rank: Ties = "rank"
    official = any(measure.NAME == "RR_MSMARCO" for measure in parse_measures(" ".join(scores.measures)))
    return RankedDocuments.of(*sources, Scoring(ties=scores.policy.ties), [by_rank] if official else [])
