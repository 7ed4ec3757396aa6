"""The suite: training sets and test sets as a file describes them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import Final

from truerank.audits.leakage.training_data.texts import prompts
from truerank.errors import InputError
from truerank.records import Input
from truerank.sources import (
    DocumentSource,
    ExampleSource,
    QuerySource,
    TopicSet,
    open_documents,
    open_examples,
    open_queries,
    parse,
    read_qrels,
    read_topics,
)
from truerank.sources.compressed import fingerprint
from truerank.sources.examples import ExampleTexts
from truerank.sources.inputs import input_of
from truerank.sources.yaml_tree import Value, YamlMapping, read_tree
from truerank.work.artifacts import digest

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
    """Ids and texts of one source; of training data without the prompts before them ("query:", an instruction)."""

    source: DocumentSource | ExampleSource | QuerySource | TopicSet
    kind: str

    def __iter__(self) -> Iterator[tuple[str, str]]:
        if isinstance(self.source, TopicSet):
            for topic in self.source.topics:
                yield from ((topic.topic_id, text) for text in (topic.title, topic.description) if text.strip())
        elif isinstance(self.source, DocumentSource):
            yield from ((one[0], one.text) for one in self.source)
        else:
            stream = iter(self._training_texts(self.source))
            first = list(islice(stream, _FIRST))
            prompt = prompts([text for _, text in first])
            yield from ((text_id, prompt.sub("", text, count=1)) for text_id, text in chain(first, stream))

    def _training_texts(self, source: ExampleSource | QuerySource) -> Iterator[tuple[str, str]]:
        if isinstance(source, ExampleSource):
            for block in source.batches():
                for example_id, role, text in zip(block.ids, block.roles, block.texts, strict=True):
                    if role == self.kind:
                        yield example_id, text
        else:
            yield from ((one[0], one.text) for one in source)

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
    """Reads a suite from a YAML file; docs/leakage-matrix.md describes its keys.

    Paths in it are relative to the file, `${NAME}` is taken from the environment.
    """
    file = Path(path)
    top = read_tree(file, {}).table(("training", "test"))
    training, tests = (_named(top, key) for key in ("training", "test"))
    reader = _Reader(file.absolute().parent, frozenset(name for name, _ in training))
    return Suite(
        file,
        tuple(reader.training(name, value) for name, value in training),
        tuple(reader.test(name, value) for name, value in tests),
    )


def _named(top: YamlMapping, key: str) -> list[tuple[str, Value]]:
    """The sets below a heading by name; none is a fault."""
    value = top.need(key, f"name at least one set below '{key}:'")
    found = list(value.table())
    if not found:
        value.fault("nothing in it", f"name at least one set below '{key}:'")
    return found


@dataclass(frozen=True)
class _Reader:
    """Reads the sets of a suite; `names` are those of all training sets."""

    folder: Path
    names: frozenset[str]

    def training(self, name: str, value: Value) -> SuiteSet:
        """A training set; each parent must be another one."""
        table = value.table(_TRAINING)
        sources = [source for key in ("queries", "topics", "documents") for source in self._sources(table, key)]
        roles = table.read("roles", Value.text, None)
        texts = ExampleTexts(*(table.read(key, self._place, None) for key in _TEXTS))
        for spec in self._specs(table, "examples"):
            sources += [TextSource(role, spec, roles, texts) for role in ("query", "positive")]
        parents = tuple(self._parent(name, parent) for parent in table.read("parents", Value.items, []))
        if not sources and not parents:
            value.fault("a training set without data", "give queries, topics, documents, examples or parents")
        return SuiteSet(name, tuple(sources), parents, None, table.read("license", Value.text, ""))

    def test(self, name: str, value: Value) -> SuiteSet:
        """A test set; judgments need topics and documents."""
        table = value.table(_TEST)
        sources = (*self._sources(table, "topics"), *self._sources(table, "documents"))
        if not sources:
            value.fault("a test set without texts", "give topics or documents")
        qrels = table.read("qrels", self._place, None)
        if qrels is not None and {source.kind for source in sources} != {"topics", "documents"}:
            value.fault("judgments without topics and documents", "give both, or leave 'qrels' out")
        return SuiteSet(name, sources, (), qrels, table.read("license", Value.text, ""))

    def _parent(self, name: str, value: Value) -> str:
        parent = value.text()
        if parent not in self.names or parent == name:
            value.fault(f"'{parent}' is no other training set", f"one of {', '.join(sorted(self.names))}")
        return parent

    def _sources(self, table: YamlMapping, key: str) -> tuple[TextSource, ...]:
        return tuple(TextSource(key, spec) for spec in self._specs(table, key))

    def _specs(self, table: YamlMapping, key: str) -> list[str]:
        value = table.get(key)
        return [] if value is None else [self._place(one) for one in value.items()]

    def _place(self, value: Value) -> str:
        """A source; a path is relative to the file."""
        text = value.text()
        spec = value.checked(lambda: parse(text))
        if spec.scheme != "file" or Path(text).expanduser().is_absolute():
            return text
        found = str(self.folder / text)
        if not parse(found).path.exists():
            raise InputError("nothing there", "correct the path; it is relative to the suite file", where=found)
        return found
