"""What whole training examples hold of a test set: which topics and which relevant documents, by kind of leak."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import polars as pl

from truerank.audits.leakage.results import VerdictWord
from truerank.audits.leakage.training_examples.audit import examples
from truerank.audits.leakage.training_examples.options import ExampleOptions
from truerank.audits.leakage.training_examples.reading import TestTexts
from truerank.audits.leakage.training_examples.results import ExampleAudit
from truerank.errors import InputError
from truerank.options import Encoding, Workers
from truerank.sources import open_examples
from truerank.work.progress import Progress

#: Kinds of leak that change what a score of these topics means; that of documents counts for relevant ones only.
KINDS: Final = ("pair", "query-query", "positive-relevant", "negative-relevant", "document-corpus")


@dataclass(frozen=True)
class TouchedTexts:
    """The topics and relevant documents of a test set that stand in training examples.

    Attributes:
        word: CONTAMINATED where there are any; UNKNOWN where one of the kinds that the data can have is; else CLEAN.
        why: what decided the word, one sentence for each kind that did.
        verdicts: the verdict on each kind that was looked for.
        topics: the kinds by topic; of a relevant document, all topics that it is relevant for.
        documents: the kinds by relevant document.
        audited: the sources that hold more than queries.
    """

    word: VerdictWord
    why: str
    verdicts: Mapping[str, str]
    topics: Mapping[str, tuple[str, ...]]
    documents: Mapping[str, tuple[str, ...]]
    audited: tuple[str, ...]

    def json(self) -> dict[str, Any]:
        """Everything, as plain values."""
        return {
            "word": self.word,
            "why": self.why,
            "verdicts": dict(self.verdicts),
            "topics": {name: list(kinds) for name, kinds in self.topics.items()},
            "documents": {name: list(kinds) for name, kinds in self.documents.items()},
            "audited": list(self.audited),
        }


def with_documents(train: Sequence[str]) -> tuple[str, ...]:
    """The training sources that hold more than queries."""
    return tuple(source for source in train if _has_documents(source))


def touched_texts(
    train: Sequence[str],
    test: str,
    *,
    options: ExampleOptions = ExampleOptions(),
    encoding: Encoding = Encoding(),
    work: Workers = Workers(),
    out: Path | None = None,
    progress: Progress | None = None,
) -> TouchedTexts | None:
    """Audits whole training examples for what they hold of a test set."""
    whole = with_documents(train)
    if not whole:
        return None
    found = examples(whole, test, options=options, encoding=encoding, work=work, out=out, progress=progress)
    opened = TestTexts.of(
        test, options.qrels, options.docs, fields=options.fields, rel=options.rel, strict=options.strict
    )
    return touched_by(found, opened.relevant or {}, whole)


def touched_by(found: ExampleAudit, relevant: Mapping[str, frozenset[str]], audited: tuple[str, ...]) -> TouchedTexts:
    """What an audit of whole examples says of the topics and relevant documents of its test set."""
    topics, documents = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)
    rows = found.leaks.filter(pl.col("kind").is_in(list(KINDS)))
    for kind, topic, doc in rows.select("kind", "topic_id", "doc_id").iter_rows():
        if topic:
            topics[topic].add(kind)
        if doc in relevant:
            documents[doc].add(kind)
            for name in () if topic else relevant[doc]:
                topics[name].add(kind)
    asked = [one for one in found.kinds if one.kind in KINDS]
    hit = {kind for kinds in topics.values() for kind in kinds}
    roles = {role for source in found.sources.values() for role in _roles(source)}
    # A kind whose role the data do not have is no gap: there is nothing that could leak in this way.
    lacking = {"pair": "positive", "positive-relevant": "positive", "negative-relevant": "negative"}
    possible = [one for one in asked if lacking.get(one.kind, "query") in {*roles, "query"}]
    open_ = [one for one in possible if one.verdict == "UNKNOWN"]
    word: VerdictWord = "CONTAMINATED" if hit else "UNKNOWN" if open_ else "CLEAN"
    decisive = [one for one in asked if one.kind in hit] or open_ or [one for one in possible if one.verdict == "CLEAN"]
    return TouchedTexts(
        word,
        " ".join(dict.fromkeys(f"{one.kind}: {one.why}" for one in decisive)),
        {one.kind: one.verdict for one in asked},
        {name: tuple(kind for kind in KINDS if kind in topics[name]) for name in sorted(topics)},
        {name: tuple(kind for kind in KINDS if kind in documents[name]) for name in sorted(documents)},
        audited,
    )


def _roles(source: Mapping[str, Any]) -> set[str]:
    """The roles of which a source holds texts."""
    return {name.removesuffix("_texts") for name, count in source.items() if name.endswith("_texts") and count}


def _has_documents(source: str) -> bool:
    try:
        return any(role != "query" for _, role in open_examples(source).roles.columns)
    except InputError:
        return False
