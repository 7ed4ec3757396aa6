"""Whole training examples in a check: topics and relevant documents that stand in one."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, NamedTuple

from truerank.audits.leakage.training_examples.options import ExampleOptions
from truerank.audits.leakage.training_examples.touched import touched_texts, with_documents
from truerank.claims.inquiry import Inquiry
from truerank.claims.steps import AuditSteps
from truerank.work.progress import Progress

#: The kinds of leak that concern a topic, or a document that is relevant to one.
_TOPICS: Final = ("pair", "query-query")
_DOCUMENTS: Final = ("positive-relevant", "negative-relevant")
_FOLDER: Final = "examples"


class ExampleLeaks(NamedTuple):
    """What the audit of whole examples says: its verdict, why, the topics, relevant documents, and its folder."""

    word: str
    why: str
    topics: frozenset[str]
    documents: frozenset[str]
    folder: str


def example_leaks(given: Inquiry, steps: AuditSteps) -> ExampleLeaks | None:
    """Audits whole examples; None where the training data are queries only, or the test set has no documents."""
    sources = given.sources
    whole = with_documents(sources.train)
    if not whole or not sources.has("docs") or not sources.has("qrels"):
        return None
    depends = {
        "train": steps.inputs("train", whole), "test": steps.inputs("test", [sources.test]),
        "docs": steps.inputs("docs", [sources.docs]), "qrels": steps.inputs("qrels", [sources.qrels]),
        "rel": given.scoring.rel,
    }  # fmt: skip

    def run(folder: Path | None, told: Progress) -> dict[str, Any]:
        options = ExampleOptions(qrels=sources.qrels, docs=sources.docs, rel=given.scoring.rel)
        found = touched_texts(whole, str(sources.test), options=options, out=folder, progress=told)
        return {} if found is None else found.json()

    found = steps.once(_FOLDER, depends, run)

    def of(texts: dict[str, list[str]], kinds: tuple[str, ...]) -> frozenset[str]:
        return frozenset(name for name, of_name in texts.items() if not set(kinds).isdisjoint(of_name))

    return ExampleLeaks(
        found["word"], found["why"], of(found["topics"], _TOPICS), of(found["documents"], _DOCUMENTS), _FOLDER
    )
