"""Whole training examples in a check: topics whose query and relevant document stand in one training example."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import polars as pl

from truerank.audits.leakage.training_examples.audit import examples
from truerank.audits.leakage.training_examples.options import ExampleOptions
from truerank.audits.leakage.training_examples.results import ExampleAudit
from truerank.claims.inquiry import Inquiry
from truerank.claims.steps import AuditSteps
from truerank.errors import InputError
from truerank.sources import open_examples
from truerank.work.progress import Progress

#: The kinds of leak that concern a topic, or a document that is relevant to one.
_TOPICS: Final = ("pair", "query-query")
_DOCUMENTS: Final = ("positive-relevant", "negative-relevant")
_FOLDER: Final = "examples"


class ExampleLeaks(NamedTuple):
    """What the audit of whole examples says: its worst verdict, why, the topics, relevant documents, and its folder."""

    word: str
    why: str
    topics: frozenset[str]
    documents: frozenset[str]
    folder: str


def example_leaks(given: Inquiry, steps: AuditSteps) -> ExampleLeaks | None:
    """Audits whole examples; None where the training data are queries only, or the test set has no documents.

    Args:
        given: what was asked.
        steps: where the audits lie.
    """
    sources = given.sources
    whole = [one for one in sources.train if _has_documents(one)]
    if not whole or not sources.has("docs") or not sources.has("qrels"):
        return None
    depends = {
        "train": steps.inputs("train", whole), "test": steps.inputs("test", [sources.test]),
        "docs": steps.inputs("docs", [sources.docs]), "qrels": steps.inputs("qrels", [sources.qrels]),
        "rel": given.scoring.rel,
    }  # fmt: skip

    def run(folder: Path | None, told: Progress) -> dict[str, Any]:
        return _audited(given, whole, folder, told)

    found = steps.once(_FOLDER, depends, run)
    return ExampleLeaks(
        found["verdict"], found["why"], frozenset(found["topics"]), frozenset(found["documents"]), _FOLDER
    )


def _audited(given: Inquiry, whole: Sequence[str], folder: Path | None, told: Progress) -> dict[str, Any]:
    options = ExampleOptions(
        qrels=given.sources.qrels, docs=given.sources.docs, kinds=(*_TOPICS, *_DOCUMENTS), rel=given.scoring.rel
    )  # fmt: skip
    found = examples(tuple(whole), str(given.sources.test), options=options, out=folder, progress=told)
    every = [kind for kind in found.kinds if kind.kind in (*_TOPICS, *_DOCUMENTS)]
    word = next((word for word in ExampleAudit.verdict_words if any(kind.verdict == word for kind in every)), "UNKNOWN")
    sure = [kind.kind for kind in every if kind.verdict == "CONTAMINATED"]
    rows = found.leaks.filter(pl.col("kind").is_in(sure))
    topics = rows.filter(pl.col("kind").is_in(_TOPICS))["topic_id"]
    documents = rows.filter(pl.col("kind").is_in(_DOCUMENTS))["doc_id"]
    why = " ".join(kind.why for kind in every if kind.verdict == word)
    return {
        "verdict": word, "why": why, "topics": sorted(set(topics) - {""}), "documents": sorted(set(documents) - {""}),
    }  # fmt: skip


def _has_documents(source: str) -> bool:
    """Whether a training source holds documents beside its queries."""
    try:
        return any(role != "query" for _, role in open_examples(source).roles.columns)
    except InputError:
        return False
