"""The texts of test sets and of training data, each with an id that says where it stands."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from truerank.audits.leakage.kinds import DocumentOptions
from truerank.core.plain import picked
from truerank.errors import InputError
from truerank.overlaps.kept_texts import ComparedForm
from truerank.records import TopicText
from truerank.sources import (
    DocumentSource,
    ExampleSource,
    QuerySource,
    SourceSpec,
    TopicSet,
    formats,
    open_documents,
    open_examples,
    open_queries,
    parse,
    read_qrels_frame,
)
from truerank.sources.blocks import QueryBlock, SourceCounts
from truerank.sources.columns import Roles
from truerank.sources.distinct import DistinctTexts, text_hashes
from truerank.sources.examples import ExampleText
from truerank.sources.queries import TextColumns, text_columns
from truerank.text.normalising import normalise
from truerank.text.wording import LABELS

#: A prompt stands before one in so many texts of a source, and before so many; its signs, and the colons in it.
_ONE_IN: Final = 100
_FEWEST: Final = 20
_LONGEST_PROMPT: Final = 400
_COLONS: Final = 3


@dataclass(frozen=True)
class TestTexts:
    """A test set with the texts that are compared, documents where they were given, and the topics of each relevant
    document.

    `given` has the sources by option: test, docs, qrels.
    """

    __test__ = False

    topics: TopicSet
    texts: tuple[TopicText, ...]
    docs: DocumentSource | None
    relevant: Mapping[str, frozenset[str]] | None
    given: Mapping[str, str]

    @classmethod
    def of(
        cls, test: str, topics: TopicSet, texts: Sequence[TopicText], options: DocumentOptions, *, strict: bool
    ) -> TestTexts:
        """Opens what belongs to a test set; a BEIR folder brings its documents and judgments along."""
        spec, qrels, docs = parse(test), options.qrels, options.docs
        if spec.scheme == "file" and spec.path.is_dir():
            qrels = qrels or (test if formats.qrels_file(spec.path) is not None else None)
            docs = docs or (test if formats.corpus_file(spec.path, missing_ok=True) is not None else None)
        known = {topic.topic_id for topic in topics.topics}
        relevant = None if qrels is None else _relevant(str(qrels), known, options.rel)
        opened = None if docs is None else open_documents(str(docs), strict=strict)
        named = {"test": test, "docs": docs, "qrels": qrels}
        own = tuple(text for text in texts if text.test == topics.name)
        return cls(topics, own, opened, relevant, {role: str(one) for role, one in named.items() if one})

    def queries(self, form: Callable[[str], str]) -> Iterator[tuple[str, str]]:
        """The texts of topics as they are compared, with their places as ids."""
        return ((str(place), form(text.text)) for place, text in enumerate(self.texts))

    def documents(self, form: Callable[[str], str]) -> Iterator[tuple[str, str]]:
        """The documents as they are compared, by their ids; none without documents."""
        return ((document.doc_id, form(document.text)) for document in self.docs or ())

    def fingerprint(self) -> list[Any]:
        """The identity of its documents and judgments."""
        return [None if self.docs is None else self.docs.fingerprint, sorted(self.relevant) if self.relevant else None]


def _relevant(qrels: str, topics: Collection[str], rel: int) -> dict[str, frozenset[str]]:
    frame = read_qrels_frame(qrels)
    found: dict[str, set[str]] = {}
    for topic, doc, grade in frame.iter_rows():
        if grade >= rel and topic in topics:
            found.setdefault(doc, set()).add(topic)
    if not found:
        fault = f"no document has a grade of {rel} or more for a topic of the test set"
        raise InputError(fault, "give the judgments of these topics, or another `rel`", where=qrels)
    return {doc: frozenset(names) for doc, names in found.items()}


@dataclass
class TrainingSource:
    """One source of training data: a log of queries, or examples whose texts have roles.

    To the comparison of queries it is a source of queries.
    """

    name: str
    source: QuerySource | ExampleSource
    counts: SourceCounts = field(default_factory=SourceCounts)

    @classmethod
    def of(cls, name: str, spec: SourceSpec, options: DocumentOptions, *, strict: bool) -> TrainingSource:
        """Opens a source: as examples where it holds documents beside queries, or where somebody says so."""
        given = None if options.roles is None else Roles.parse(options.roles)
        if spec.column is None or given is not None:
            asked = given is not None or bool(options.texts)
            with suppress(*(() if asked else (InputError,))):
                examples = open_examples(spec, roles=given, texts=options.texts, strict=strict)
                roles = {role for _, role in examples.roles.columns}
                # A single column of texts, such as "text", is one of queries where its name may be.
                if asked or len(roles) > 1 or ("query" not in roles and text_columns(spec).query is None):
                    return cls(name, examples)
        return cls(name, open_queries(spec, strict=strict))

    @property
    def spec(self) -> SourceSpec:
        return self.source.spec

    @property
    def fingerprint(self) -> str:
        return self.source.fingerprint

    @property
    def columns(self) -> TextColumns:
        """The column that is read as the query, and those that are not read at all."""
        return self.source.columns if isinstance(self.source, QuerySource) else TextColumns(None)

    @property
    def roles(self) -> frozenset[str]:
        """The roles of its texts."""
        if isinstance(self.source, QuerySource):
            return frozenset(("query",))
        return frozenset(role for _, role in self.source.roles.columns)

    def texts(self) -> Iterator[list[ExampleText]]:
        """All texts with their roles, in blocks; an example is in one block."""
        if isinstance(self.source, ExampleSource):
            yield from self.source.batches()
            return
        for ids, texts in self.source.batches():
            yield [ExampleText(query_id, "query", text) for query_id, text in zip(ids, texts, strict=True)]

    def batches(self, size: int = 1 << 13) -> Iterator[QueryBlock]:
        """The queries in blocks."""
        if isinstance(self.source, QuerySource):
            yield from self.source.batches(size)
            self.counts = self.source.counts
            return
        read = 0
        for block in self.source.batches(size):
            asked = [text for text in block if text.role == "query"]
            read += len(asked)
            if asked:
                yield QueryBlock([text.example_id for text in asked], [text.text for text in asked])
        counts = self.source.counts
        self.counts = SourceCounts(read, 0, counts.repaired, counts.skipped + self.source.absent.counts["query"])

    def counted(self) -> dict[str, Any]:
        """Of examples, what was counted, and what their columns were taken for."""
        if isinstance(self.source, QuerySource):
            return {}
        parts = "given=roles.given, skipped=counts.skipped, absent, train_queries=texts.queries, train_docs=texts.docs"
        return {"roles": str(self.source.roles), **picked(self.source, parts)}


def distinct_documents(sources: Sequence[TrainingSource], form: ComparedForm) -> Iterator[tuple[str, str]]:
    """The documents of training data, each once, with a hash of the normalised text as id.

    Memory is bounded: beyond some millions of distinct texts, one may come again, with the same id.
    """
    seen = DistinctTexts()
    for source in sources:
        without: re.Pattern[str] | None = None
        for block in source.texts():
            # In their own lines: the form joins words that are cut at the end of one.
            texts = [text for _, role, text in block if role != "query"]
            normal = [normalise(text) for text in texts]
            without = without or prompts(texts)
            new = seen.new(normal)
            ids = map(hashed, text_hashes([normal[place] for place in new]).tolist())
            bare = (form(without.sub("", texts[place], count=1)) for place in new)
            yield from zip(ids, bare, strict=True)


def prompts(texts: Sequence[str]) -> re.Pattern[str]:
    """What stands before many texts of a source, up to a colon, such as an instruction and "Query:" below it; and
    labels of embedding models ("query:").
    """
    counts = Counter(
        text[: colon.end()]
        for text in texts
        for colon in islice(re.compile(":").finditer(text, 0, _LONGEST_PROMPT), _COLONS)
    )
    least = max(_FEWEST, len(texts) // _ONE_IN)
    usual = sorted((prompt for prompt, count in counts.items() if count >= least), key=len, reverse=True)
    return re.compile("|".join(rf"\A{prompt}\s*(?=\S)" for prompt in (*map(re.escape, usual), LABELS)))


def hashed(number: int) -> str:
    """The id of a training text: the hash of its normalised text."""
    return f"{number:016x}"
