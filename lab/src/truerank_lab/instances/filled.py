"""Training instances whose texts may be those of topics and documents, or of a set that `build` wrote."""

from __future__ import annotations

import hashlib
import json
import re
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

import polars as pl

from truerank.audits.survivorship.instances import FoundInstance, Instance, InstanceSource
from truerank.errors import InputError, OptionError
from truerank.sources import grammar
from truerank.sources.documents import DocumentSource, open_documents
from truerank.sources.grammar import SourceSpec
from truerank.sources.rows import Row
from truerank.sources.topics import read_topics
from truerank.work.artifacts import written_by

#: The table in a folder that `build` wrote, and how a size of it is named.
_BUILT: Final = "instances.parquet"
_SIZED: Final = re.compile(r"(?P<folder>.+)\?size=(?P<size>[0-9]{1,18})")
_BLOCK: Final = 1000


def open_instances(
    spec: str | SourceSpec, *, topics: str | None = None, docs: str | None = None, topic_field: str = "title"
) -> FilledInstances:
    """Opens a source of training instances, see `truerank.audits.survivorship.instances`, of which ids get their texts.

    Also a folder that `build` wrote, and `FOLDER?size=1000`: its first 500 rows, which are 1,000 pairs of a query and a
    document.

    Args:
        topics: texts of queries of which there is an id only.
        docs: texts of documents of which there is an id only.
    """
    if isinstance(spec, str) and (built := _built(spec)) is not None:
        return FilledInstances(built.table, topics, docs, topic_field, built=built)
    return FilledInstances(grammar.parse(spec) if isinstance(spec, str) else spec, topics, docs, topic_field)


class _Built(NamedTuple):
    """The table of a folder that `instances build` wrote, and how many rows of it are read, None for all."""

    table: SourceSpec
    rows: int | None


def _built(spec: str) -> _Built | None:
    """The built set that a source is; None for any other source."""
    text, size = spec.strip(), None
    if (match := _SIZED.fullmatch(text)) and not Path(text).exists():
        text, size = match["folder"], int(match["size"])
    table = Path(text) / _BUILT
    if not table.is_file():
        if size is None:
            return None
        raise InputError("no built training set there", "?size= goes with what 'instances build' wrote", where=spec)
    if size is None:
        return _Built(replace(grammar.parse(str(table)), name=Path(text).name, spec=spec), None)
    with written_by("instances build", table.parent, _BUILT):
        there = pl.scan_parquet(table, glob=False).select(pl.len()).collect().item()
    if size < 2 or size % 2 or size // 2 > there:
        fault = f"the set has {2 * there:,} instances, not {size:,}"
        raise InputError(fault, "give an even number up to that", where=spec)
    return _Built(replace(grammar.parse(str(table)), name=f"{Path(text).name}-{size}", spec=spec), size // 2)


class FilledInstances(InstanceSource):
    """The instances of one source in its order; memory does not grow with it.

    `topics` and `docs` have the texts of ids; `built` says that the source is the table of a built set.
    """

    def __init__(
        self,
        spec: SourceSpec,
        topics: str | None,
        docs: str | None,
        topic_field: str = "title",
        *,
        built: _Built | None = None,
    ) -> None:
        super().__init__(spec)
        if topic_field not in ("title", "description", "narrative"):
            fault = f"topics have no '{topic_field}'"
            raise OptionError("field", fault, "choose title, description or narrative")
        self._topics, self._topic_field, self._built = topics, topic_field, built
        self._docs: DocumentSource | None = None if docs is None else open_documents(docs, keep_empty=True)

    @cached_property
    def fingerprint(self) -> str:
        """The identity of the content, for provenance; of a built set that of the rows that are read, so that a size
        keeps it when larger ones are built."""
        if self._built is not None:
            together, count = hashlib.sha256(), 0
            for instance in self:
                together.update(json.dumps(instance).encode())
                count += 1
            return f"rows:{together.hexdigest()};rows={count}"
        own = InstanceSource(self.spec).fingerprint
        return own if self._docs is None else f"{own};docs={self._docs.fingerprint}"

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Instance]:
        queries: Mapping[str, str] | None = None
        with tempfile.TemporaryDirectory(prefix="truerank-") as folder:
            texts: _Texts | None = None
            try:
                for number, found in enumerate(self.found()):
                    if number == 0 and all(found.by_id) and (self._topics is None or self._docs is None):
                        fault = "the triples seem to be ids, without texts"
                        remedy = "name the texts with `topics` and `docs`"
                        raise InputError(fault, remedy, where=self.spec.location, line=found.line)
                    instance = found.instance
                    if found.by_id[0]:
                        queries = self._queries(found) if queries is None else queries
                        identifier = found.instance.query_id
                        if identifier not in queries:
                            raise self._unknown(f"the topics lack query '{identifier}'", "topics", found)
                        instance = instance._replace(query=queries[identifier])
                    if found.by_id[1] or found.by_id[2]:
                        texts = self._texts(Path(folder), found) if texts is None else texts
                        instance = self._with_texts(instance, texts, found)
                    yield instance
            finally:
                if texts is not None:
                    texts.close()

    def as_read(self) -> Iterator[Instance]:
        """The instances as they are there: what is given as an id only has no text."""
        return (found.instance for found in self.found())

    @cached_property
    def _count(self) -> int:
        return sum(1 for _ in self.found())

    def found(self) -> Iterator[FoundInstance]:
        """The instances with their lines."""
        return super().found() if self._built is None else self.of_rows(_built_rows(self._built))

    def _queries(self, found: FoundInstance) -> Mapping[str, str]:
        if self._topics is None:
            raise self._unknown(f"no text of query '{found.instance.query_id}'", "topics", found)
        return {topic.topic_id: getattr(topic, self._topic_field) for topic in read_topics(self._topics).topics}

    def _texts(self, folder: Path, found: FoundInstance) -> _Texts:
        if self._docs is None:
            wanted = found.instance.relevant_id if found.by_id[1] else found.instance.nonrelevant_id
            raise self._unknown(f"no text of document '{wanted}'", "docs", found)
        texts = _Texts(folder / "texts.sqlite")
        texts.want(
            identifier
            for each in self.found()
            for identifier, wanted in zip(each.instance[2::2], each.by_id[1:], strict=True)
            if wanted
        )
        texts.fill((document.text, document.doc_id) for document in self._docs)
        return texts

    def _with_texts(self, instance: Instance, texts: _Texts, found: FoundInstance) -> Instance:
        for wanted, field, identifier in zip(
            found.by_id[1:], ("relevant", "nonrelevant"), (instance.relevant_id, instance.nonrelevant_id), strict=True
        ):
            if wanted:
                text = texts.get(identifier)
                if text is None:
                    raise self._unknown(f"the documents lack '{identifier}'", "docs", found)
                instance = instance._replace(**{field: text})
        return instance

    def _unknown(self, fault: str, option: str, found: FoundInstance) -> InputError:
        remedy = f"name a source that has it with `{option}`"
        return InputError(fault, remedy, where=self.spec.location, line=found.line)


def _built_rows(built: _Built) -> Iterator[Row]:
    """The instances of a built set, a thousand at a time: their texts may be long."""
    with written_by("instances build", built.table.path.parent, built.table.path.name):
        frame = pl.scan_parquet(built.table.path, glob=False)
    frame = frame if built.rows is None else frame.head(built.rows)
    number = 0
    for block in frame.collect_batches(chunk_size=_BLOCK, maintain_order=True):
        for values in block.iter_rows(named=True):
            number += 1
            yield Row(number, values)


class _Texts:
    """Texts of documents by id, on the disk."""

    def __init__(self, path: Path) -> None:
        self._base = sqlite3.connect(path, isolation_level=None)
        self._base.execute("PRAGMA journal_mode = OFF")
        self._base.execute("PRAGMA synchronous = OFF")
        self._base.execute("CREATE TABLE texts (id TEXT PRIMARY KEY, text TEXT) WITHOUT ROWID")

    def want(self, identifiers: Iterable[str]) -> None:
        self._many("INSERT OR IGNORE INTO texts (id) VALUES (?)", ((identifier,) for identifier in identifiers))

    def fill(self, documents: Iterable[tuple[str, str]]) -> None:
        """Keeps the texts, given as (text, id), of those that are needed."""
        self._many("UPDATE texts SET text = ? WHERE id = ?", documents)

    def get(self, identifier: str) -> str | None:
        found = self._base.execute("SELECT text FROM texts WHERE id = ?", (identifier,)).fetchone()
        return None if found is None else found[0]

    def close(self) -> None:
        self._base.close()

    def _many(self, statement: str, values: Iterable[tuple[str, ...]]) -> None:
        stream = iter(values)
        while block := list(islice(stream, _BLOCK)):
            self._base.execute("BEGIN")
            self._base.executemany(statement, block)
            self._base.execute("COMMIT")
