"""The texts of the test collection and of the training examples, each with an id that says where it stands; how they
are kept to be compared, and their pairs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final

from truerank.audits.leakage.proposals import bare, topic_texts
from truerank.core.plain import picked
from truerank.errors import InputError, OptionError
from truerank.overlaps.kept_texts import ComparedForm
from truerank.records import TopicText
from truerank.sources import (
    DocumentSource,
    ExampleSource,
    TopicSet,
    formats,
    open_documents,
    open_examples,
    parse,
    read_qrels_frame,
    read_topics,
    unique_names,
)
from truerank.sources.columns import Roles
from truerank.sources.distinct import DistinctTexts, text_hashes
from truerank.sources.examples import ExampleTexts
from truerank.text.normalising import normalise
from truerank.text.wording import LABELS

#: Texts of a source from which what stands around topics is told.
_FIRST: Final = 4096
#: A prompt stands before one in so many texts of a source, and before so many; its signs, and the colons in it.
_ONE_IN: Final = 100
_FEWEST: Final = 20
_LONGEST_PROMPT: Final = 400
_COLONS: Final = 3


@dataclass(frozen=True)
class TestTexts:
    """Topics with the texts that are compared, documents where they were given, and the topics of each relevant
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
        cls, test: str, qrels: str | None, docs: str | None, *, fields: Collection[str], rel: int, strict: bool
    ) -> TestTexts:
        """Opens the test collection; a BEIR folder brings its documents and judgments along."""
        spec = parse(test)
        if spec.scheme == "file" and spec.path.is_dir():
            qrels = qrels or (test if formats.qrels_file(spec.path) is not None else None)
            docs = docs or (test if formats.corpus_file(spec.path, missing_ok=True) is not None else None)
        topics = read_topics(test, strict=strict)
        texts = topic_texts([topics], tuple(fields))
        if not texts:
            raise InputError("no topic has a text in these fields", "choose others with `fields`", where=test)
        relevant = None if qrels is None else _relevant(qrels, {topic.topic_id for topic in topics.topics}, rel)
        opened = None if docs is None else open_documents(docs, strict=strict)
        named = {"test": test, "docs": docs, "qrels": qrels}
        return cls(topics, tuple(texts), opened, relevant, {role: one for role, one in named.items() if one})

    def bare(self, training: TrainingTexts, fields: Collection[str]) -> TestTexts:
        """The same without what stands around most topics and is no part of them."""
        topics = bare(
            self.topics, lambda: islice((text for _, text in training.distinct(("query",), ComparedForm())), _FIRST)
        )
        return replace(self, topics=topics, texts=topic_texts([topics], tuple(fields)))

    def queries(self, form: Callable[[str], str]) -> Iterator[tuple[str, str]]:
        """The texts of topics as they are compared, with their places as ids."""
        return ((str(place), form(text.text)) for place, text in enumerate(self.texts))

    def documents(self, form: Callable[[str], str]) -> Iterator[tuple[str, str]]:
        """The documents as they are compared, by their ids; none without documents."""
        return ((document.doc_id, form(document.text)) for document in self.docs or ())

    def fingerprint(self) -> list[Any]:
        """The identity of all that is compared."""
        documents = None if self.docs is None else self.docs.fingerprint
        judged = sorted(self.relevant) if self.relevant else None
        return [[list(text) for text in self.texts], documents, judged]


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


@dataclass(frozen=True)
class TrainingTexts:
    """Sources of examples by name, in the order given."""

    sources: tuple[tuple[str, ExampleSource], ...]

    @classmethod
    def of(
        cls, train: Sequence[str], roles: str | None, texts: ExampleTexts | None = None, *, strict: bool
    ) -> TrainingTexts:
        """Opens the sources and tells the roles of their columns."""
        if not train:
            raise OptionError("train", "no training data", "name at least one source")
        given = None if roles is None else Roles.parse(roles)
        names = unique_names([parse(spec) for spec in train])
        sources = tuple(
            (name, open_examples(spec, roles=given, texts=texts, strict=strict))
            for name, spec in zip(names, train, strict=True)
        )
        for _, source in sources:
            _ = source.roles
        return cls(sources)

    def distinct(self, roles: Collection[str], form: ComparedForm) -> Iterator[tuple[str, str]]:
        """The texts of some roles, each once, with a hash of the normalised text as id.

        Memory is bounded: beyond some millions of distinct texts, one may come again, with the same id.
        """
        seen = DistinctTexts()
        for _, source in self.sources:
            without: re.Pattern[str] | None = None
            for block in source.batches():
                # In their own lines: the form joins words that are cut at the end of one.
                texts = [text for _, role, text in block if role in roles]
                normal = [normalise(text) for text in texts]
                without = without or prompts(texts)
                new = seen.new(normal)
                ids = map(hashed, text_hashes([normal[place] for place in new]).tolist())
                kept = [texts[place] for place in new]
                bare = (form(without.sub("", text, count=1)) for text in kept)
                yield from zip(ids, bare, strict=True)

    def fingerprint(self) -> list[list[str]]:
        """The identity of all sources and their roles."""
        return [[name, source.fingerprint] for name, source in self.sources]


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


def counted(source: ExampleSource) -> dict[str, Any]:
    """What the last reading of a source counted, with its roles and the identity of its content."""
    parts = "given=roles.given, read=counts.read, empty=counts.empty, repaired=counts.repaired, skipped=counts.skipped"
    places = "absent, train_queries=texts.queries, train_docs=texts.docs, fingerprint"
    return {"roles": str(source.roles), **picked(source, f"{parts}, {places}")}
