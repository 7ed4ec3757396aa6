"""The texts of the test collection and of the training examples, each with an id that says where it stands; how they
are kept to be compared, and their pairs."""

from __future__ import annotations

import difflib
import os
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import Any, Final, NoReturn

from truerank.audits.leakage.proposals import bare, topic_texts
from truerank.core.plain import picked
from truerank.errors import InputError, OptionError
from truerank.loading import load_yaml, text_file
from truerank.overlaps.kept_texts import ComparedForm
from truerank.records import Input, TopicText
from truerank.sources import (
    DocumentSource,
    ExampleSource,
    QuerySource,
    TopicSet,
    formats,
    open_documents,
    open_examples,
    open_queries,
    parse,
    read_qrels,
    read_qrels_frame,
    read_topics,
    unique_names,
)
from truerank.sources.columns import Roles
from truerank.sources.compressed import fingerprint
from truerank.sources.distinct import DistinctTexts, text_hashes
from truerank.sources.examples import ExampleTexts
from truerank.sources.inputs import input_of
from truerank.text.normalising import normalise
from truerank.text.wording import LABELS
from truerank.work.artifacts import digest

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


#: What is compared with what: texts of the two sides.
PARTS: Final = ("query", "document")
#: Texts of a source from which its prompts are told.
_FIRST: Final = 4096
#: Where the texts of the ids in examples are.
_TEXTS: Final = ("train_queries", "train_docs")
_TRAINING: Final = ("queries", "topics", "documents", "examples", "roles", *_TEXTS, "parents", "license")
_TEST: Final = ("topics", "documents", "qrels", "license")


@dataclass(frozen=True)
class TextStream:
    """Ids and texts of one source, without the prompts before them ("query:", an instruction)."""

    source: DocumentSource | ExampleSource | QuerySource | TopicSet
    kind: str

    def __iter__(self) -> Iterator[tuple[str, str]]:
        if isinstance(self.source, TopicSet):
            for topic in bare(self.source, tuple).topics:
                yield from ((topic.topic_id, text) for text in (topic.title, topic.description) if text.strip())
        elif isinstance(self.source, DocumentSource):
            yield from ((one[0], one.text) for one in self.source)
        else:
            stream = (
                ((query[0], query.text) for query in self.source)
                if isinstance(self.source, QuerySource)
                else ((example_id, text) for example_id, role, text in self.source if role == self.kind)
            )
            first = list(islice(stream, _FIRST))
            prompt = prompts([text for _, text in first])
            yield from ((text_id, prompt.sub("", text, count=1)) for text_id, text in chain(first, stream))

    @property
    def unread(self) -> int:
        """After the last text: records that hold none, of topics also those without title and description; of examples
        also ids without a text."""
        counts = self.source.counts
        if isinstance(self.source, ExampleSource):
            return counts.skipped + self.source.absent.counts.total()
        if not isinstance(self.source, TopicSet):
            return counts.skipped
        silent = sum(not (topic.title.strip() or topic.description.strip()) for topic in self.source.topics)
        return counts.skipped + counts.empty + silent


@dataclass(frozen=True)
class TextSource:
    """One source of texts; `kind` says how it is read: queries, documents, topics, or the role of the texts of
    examples.
    """

    kind: str
    spec: str
    roles: str | None = None
    by_id: ExampleTexts | None = None

    @property
    def part(self) -> str:
        """Whether its texts are queries or documents."""
        return "document" if self.kind in ("documents", "positive") else "query"

    def texts(self) -> TextStream:
        """A stream of ids and texts."""
        return TextStream(self._opened(), self.kind)

    def _opened(self) -> DocumentSource | ExampleSource | QuerySource | TopicSet:
        if self.kind == "topics":
            return read_topics(self.spec)
        if self.kind == "documents":
            return open_documents(self.spec)
        if self.kind == "queries":
            return open_queries(self.spec)
        return open_examples(self.spec, roles=self.roles, texts=self.by_id)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the content, and of how it is read; a file of topics is not parsed for it."""
        spec = parse(self.spec)
        if self.kind == "topics" and spec.scheme == "file" and spec.path.is_file():
            return digest([self.kind, fingerprint(spec.path), spec.column, spec.format])
        source = self._opened()
        if isinstance(source, TopicSet):
            return digest([self.kind, digest([list(topic) for topic in source.topics])])
        return digest([self.kind, self.roles, source.fingerprint])


@dataclass(frozen=True)
class SuiteSet:
    """A training set, with the sets whose data it inherits (`parents`), or a test set."""

    name: str
    sources: tuple[TextSource, ...]
    parents: tuple[str, ...] = ()
    qrels: str | None = None
    license: str = ""

    def of_part(self, part: str) -> tuple[TextSource, ...]:
        """Its own sources of queries or of documents."""
        return tuple(source for source in self.sources if source.part == part)

    @cached_property
    def relevant(self) -> frozenset[tuple[str, str]]:
        """The pairs of topic and document that are judged relevant."""
        if self.qrels is None:
            return frozenset()
        return frozenset((qrel.topic_id, qrel.doc_id) for qrel in read_qrels(self.qrels) if qrel.relevance > 0)


@dataclass(frozen=True)
class Suite:
    """Training sets (the rows of the matrix) and test sets (its columns), in the order of the file."""

    file: Path
    training: tuple[SuiteSet, ...]
    tests: tuple[SuiteSet, ...]

    def line(self, row: SuiteSet) -> tuple[SuiteSet, ...]:
        """A training set and all whose data it inherits, each once."""
        by_name = {one.name: one for one in self.training}
        found: dict[str, SuiteSet] = {}
        open_ = [row.name]
        while open_:
            name = open_.pop(0)
            if name not in found:
                found[name] = by_name[name]
                open_ += by_name[name].parents
        return tuple(found.values())

    def inputs(self) -> Iterator[Input]:
        """All that is read, for the manifest."""
        yield input_of("suite", str(self.file))
        for role, sets in (("train", self.training), ("test", self.tests)):
            for one in sets:
                for spec in dict.fromkeys(source.spec for source in one.sources):
                    yield input_of(role, spec, one.name)
                by_id = [source.by_id for source in one.sources if source.by_id]
                for spec in dict.fromkeys(spec for texts in by_id for spec in (texts.queries, texts.docs) if spec):
                    yield input_of(role, spec, one.name)
                if one.qrels is not None:
                    yield input_of("qrels", one.qrels, one.name)


def read_suite(path: str | Path) -> Suite:
    """Reads a suite from a YAML file.

    Paths in it are relative to the file, `${NAME}` is taken from the environment.
    """
    file = Path(path)
    text = os.path.expandvars(text_file(file, "give a YAML file"))
    content = load_yaml(text, file, lambda loader, node: loader.construct_document(node))
    reader = _SuiteReader(file)
    training, tests = reader.sets(content)
    return Suite(
        file,
        tuple(reader.training(f"training.{name}", value, training) for name, value in training.items()),
        tuple(reader.test(f"test.{name}", value) for name, value in tests.items()),
    )


@dataclass(frozen=True)
class _SuiteReader:
    """Reads the sets of a suite; places are keys with dots."""

    file: Path

    def fault(self, place: str, fault: str, remedy: str) -> NoReturn:
        raise InputError(f"{place}: {fault}" if place else fault, remedy, where=self.file)

    def table(self, place: str, value: Any, known: Collection[str] = ()) -> dict[str, Any]:
        """A mapping whose keys are texts, and among the known ones where some are."""
        if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
            self.fault(place, "no mapping of names", "write 'name: value' lines below it")
        for key in value.keys() - known if known else ():
            near = difflib.get_close_matches(key, known, 1)
            meant = f"did you mean '{near[0]}'? " if near else ""
            self.fault(place, f"unknown key '{key}'", f"{meant}known: {', '.join(known)}")
        return value

    def sets(self, content: Any) -> Iterator[dict[str, Any]]:
        """The training sets and the test sets by name; none is a fault."""
        top = self.table("", content, ("training", "test"))
        for key in ("training", "test"):
            if not top.get(key):
                self.fault("", f"nothing below '{key}'", f"name at least one set below '{key}:'")
            yield self.table(key, top[key])

    def training(self, place: str, value: Any, names: Collection[str]) -> SuiteSet:
        """A training set; each parent must be another one."""
        table = self.table(place, value, _TRAINING)
        sources = [source for key in ("queries", "topics", "documents") for source in self.sources(place, table, key)]
        roles = self.text(place, table, "roles") or None
        texts = ExampleTexts(*(self.source(place, table, key) for key in _TEXTS))
        for spec in self.specs(place, table, "examples"):
            sources += [TextSource(role, spec, roles, texts) for role in ("query", "positive")]
        parents = self.texts(place, table, "parents")
        for parent in parents:
            if parent not in names or f"training.{parent}" == place:
                remedy = f"one of {', '.join(sorted(names))}"
                self.fault(f"{place}.parents", f"'{parent}' is not another training set", remedy)
        if not sources and not parents:
            self.fault(place, "a training set without data", "give queries, topics, documents, examples or parents")
        name = place.partition(".")[2]
        return SuiteSet(name, tuple(sources), tuple(parents), None, self.text(place, table, "license"))

    def test(self, place: str, value: Any) -> SuiteSet:
        """A test set; judgments need topics and documents."""
        table = self.table(place, value, _TEST)
        sources = (*self.sources(place, table, "topics"), *self.sources(place, table, "documents"))
        if not sources:
            self.fault(place, "a test set without texts", "give topics or documents")
        qrels = self.source(place, table, "qrels")
        if qrels is not None and {source.kind for source in sources} != {"topics", "documents"}:
            self.fault(place, "judgments without topics and documents", "give both, or leave 'qrels' out")
        return SuiteSet(place.partition(".")[2], sources, (), qrels, self.text(place, table, "license"))

    def texts(self, place: str, table: Mapping[str, Any], key: str) -> list[str]:
        """Texts of a key; a single one is a list of one, a number is taken as it is written."""
        value = table.get(key)
        found = value if isinstance(value, list) else [] if value is None else [value]
        if not all(isinstance(text, str | int | float) and str(text) for text in found):
            self.fault(f"{place}.{key}", "no text", "write a text, or [a, b, …]")
        return [str(text) for text in found]

    def text(self, place: str, table: Mapping[str, Any], key: str) -> str:
        found = self.texts(place, table, key)
        if len(found) > 1:
            self.fault(f"{place}.{key}", "a list", "write one text")
        return "".join(found)

    def sources(self, place: str, table: Mapping[str, Any], key: str) -> tuple[TextSource, ...]:
        return tuple(TextSource(key, spec) for spec in self.specs(place, table, key))

    def specs(self, place: str, table: Mapping[str, Any], key: str) -> list[str]:
        """Sources; a path is relative to the file."""
        found = []
        for text in self.texts(place, table, key):
            try:
                spec = parse(text)
            except InputError as error:
                self.fault(f"{place}.{key}", error.fault, error.remedy)
            if spec.scheme != "file" or Path(text).expanduser().is_absolute():
                found.append(text)
                continue
            found.append(str(self.file.absolute().parent / text))
            if not parse(found[-1]).path.exists():
                raise InputError("nothing there", "correct the path; it is relative to the suite", where=found[-1])
        return found

    def source(self, place: str, table: Mapping[str, Any], key: str) -> str | None:
        return next(iter(self.specs(place, table, key)), None) if self.text(place, table, key) else None
