"""Test topics: small sets, read as a whole, with every field that the source carries; and their query variants."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

from truerank.errors import InputError
from truerank.records import Topic
from truerank.sources import columns, compressed, formats, grammar, hub, irds, query_files
from truerank.sources.blocks import RawBlock, SourceCounts
from truerank.sources.grammar import SourceSpec
from truerank.sources.lines import numbered_lines
from truerank.sources.qrels import read_qrels
from truerank.sources.query_files import FoundTopic, as_text, file_queries, header_fields, keyed, texts_in, well_formed
from truerank.sources.rows import Row, rows
from truerank.sources.sharing import shared_stream
from truerank.text.normalising import normalise

#: What the columns of topics are called; the title is what `#column` chooses.
_FIELDS: Final = {
    "title": ("title", "topic_title", *columns.TEXT_NAMES),
    "id": ("_id", "topic_id", "topic", "number", "query_id", "query-id", "qid", "queryid", "question_id", "id"),
    "description": ("description", "desc", "question"),
    "narrative": ("narrative", "narr"),
    "variants": ("variants", "query_variants"),
}


#: Topics, and numbers of records that were skipped.
FoundTopics: TypeAlias = Iterator[FoundTopic | int]


@dataclass(frozen=True)
class TopicSet:
    """The topics of one test set.

    Attributes:
        name: the file name without endings, or the id.
        topics: in the order of the source, those without any text left out.
        counts: what was read; `empty` are topics without any text.
        fields: which of "title", "description", "narrative", "variant" at least one topic carries, in this order.
        notes: what a report should say about the reading (variants of unknown topics).
        carrier: what texts began or ended with and what was taken off.
    """

    name: str
    topics: tuple[Topic, ...]
    counts: SourceCounts
    fields: tuple[str, ...]
    notes: tuple[str, ...] = ()
    carrier: tuple[str, ...] = ()

    @property
    def noun(self) -> str:
        """What its items are called: "queries" where they have one text only, as in BEIR, else "topics"."""
        return "topics" if {"description", "narrative"} & set(self.fields) else "queries"


def read_topics(spec: str | SourceSpec, *, strict: bool = False) -> TopicSet:
    """Reads a test set.

    TREC topics (`<top>`, with or without end tags; `<DOC>`), TREC web XML (query as title, subtopics as narrative),
    TSV (`id TAB title`, or named columns), CSV, JSONL, JSON, Parquet, BEIR (of a folder with `qrels/test.tsv` the
    queries that are judged there, otherwise all), ir_datasets and Hugging Face ids.

    Args:
        spec: the source, see `grammar.parse`; `#column` chooses what is the title.
        strict: raise for bytes that are not UTF-8 instead of reading that line as latin-1.

    Returns:
        The topics with their counts.

    Raises:
        InputError: not readable, no topics in it, none with a text, or one id for two different topics.
    """
    spec = grammar.parse(spec) if isinstance(spec, str) else spec
    topics, counts = _collected(_found(spec, strict), spec)
    if not topics:
        fault = "no topics in it" if not counts.read else f"{counts.read} topics, none with a text"
        raise InputError(fault, "give a file of topics, or name its format with ?format=", where=spec.location)
    return TopicSet(spec.name, topics, counts, _fields(topics))


def topic_records(spec: str | SourceSpec) -> Iterator[tuple[Topic, int | None, bool]]:
    """Every topic as it is in the source: those without a text and those whose id came before, too.

    Yields:
        A topic, its line where the source has lines, and whether bytes of it were no UTF-8.
    """
    spec = grammar.parse(spec) if isinstance(spec, str) else spec
    for found in _found(spec, strict=False):
        if not isinstance(found, int):
            yield found.topic, found.line, bool(found.repaired)


def _collected(stream: FoundTopics, spec: SourceSpec) -> tuple[tuple[Topic, ...], SourceCounts]:
    known: dict[str, FoundTopic] = {}
    read = repaired = skipped = repeated = 0
    for found in stream:
        if isinstance(found, int):
            skipped += found
            continue
        read += 1
        repaired += found.repaired
        topic_id = found.topic.topic_id
        earlier = known.setdefault(topic_id, found)
        if earlier.topic != found.topic:
            place = "above" if earlier.line is None else f"in line {earlier.line}"
            fault = f"the topic '{topic_id}' occurs {place} with another text"
            raise InputError(fault, "give every topic a number of its own", where=spec.location, line=found.line)
        repeated += earlier is not found
    topics = tuple(found.topic for found in known.values() if _has_text(found.topic))
    return topics, SourceCounts(read + skipped, len(known) - len(topics), repaired, skipped, repeated)


def _has_text(topic: Topic) -> bool:
    return any(normalise(text) for text in (topic.title, topic.description, topic.narrative, *topic.variants))


def _fields(topics: Sequence[Topic]) -> tuple[str, ...]:
    texts = zip(*((*topic[1:4], "".join(topic.variants)) for topic in topics), strict=True)
    named = zip(("title", "description", "narrative", "variant"), texts, strict=True)
    return tuple(name for name, values in named if any(map(normalise, values)))


def _found(spec: SourceSpec, strict: bool) -> FoundTopics:
    """Topics, and numbers of records that were skipped."""
    if spec.scheme == "irds":
        return (FoundTopic(topic) for topic in irds.topics(spec.location))
    if spec.scheme == "hf":
        return _from_rows(hub.records(spec, strict=strict), spec.column, spec.spec)
    read = partial(_from_file, spec, strict)
    return shared_stream(spec.path, ("topics", spec.format, spec.column, strict), read, _length)


def _length(found: FoundTopic | int) -> int:
    """The characters of a topic."""
    return 0 if isinstance(found, int) else len("".join(found.topic.variants)) + sum(map(len, found.topic[1:4]))


def _from_file(spec: SourceSpec, strict: bool) -> FoundTopics:
    path = spec.path
    form = formats.detect(path, spec.format)
    if form in ("qrels", "run"):
        raise InputError(f"a {form} file holds no topics", "give the file of the topics", where=path)
    if form in ("trec", "xml"):
        return query_files.marked_topics(path, xml=form == "xml", strict=strict)
    if form == "beir":
        return _from_beir(path, spec.column, strict)
    if form == "qna" or (form in ("tsv", "lines") and not {"title", "id"} <= header_fields(path, _FIELDS).keys()):
        single = spec.format == "lines"
        return _from_blocks(file_queries(path, form, spec.column, single=single, strict=strict))
    return _from_rows(rows(path, "tsv" if form == "lines" else form, strict=strict), spec.column, path)


def _from_blocks(blocks: Iterable[RawBlock]) -> FoundTopics:
    for block in blocks:
        repaired = block.repaired
        for identifier, text, line in zip(block.ids, block.texts, block.lines, strict=True):
            yield FoundTopic(Topic(identifier, text.strip()), line, repaired)
            repaired = 0
        yield block.skipped


def _from_beir(folder: Path, column: str | None, strict: bool) -> FoundTopics:
    path = formats.queries_file(folder)
    judgments = formats.qrels_file(folder)
    judged = None if judgments is None else {qrel.topic_id for qrel in read_qrels(str(judgments))}
    for found in _from_rows(rows(path, "jsonl", strict=strict), column, path):
        if isinstance(found, int) or judged is None or found.topic.topic_id in judged:
            yield found


def _from_rows(records: Iterable[Row], column: str | None, where: Path | str) -> FoundTopics:
    first: Row | None = None
    usable = False
    for row, keys in keyed(records, partial(columns.fields, wanted=_FIELDS, column=column)):
        first = first or row
        values = {field: row.values.get(key) for field, key in keys.items()}
        texts = [as_text(values.get(field)) for field in ("title", "description", "narrative")]
        if all(text is None for text in (texts[:1] if column else texts)):
            yield 1
            continue
        usable = True
        identifier = well_formed(query_files.identifier_of(row, keys.get("id")))
        title, description, narrative = (well_formed((text or "").strip()) for text in texts)
        variants = (well_formed(text.strip()) for text in texts_in(values.get("variants")))
        topic = Topic(identifier, title, description, narrative, tuple(dict.fromkeys(filter(None, variants))))
        yield FoundTopic(topic, row.line, int(row.repaired))
    if first is not None and not usable:
        raise columns.no_column(list(first.values), column, "a topic's title", where, first.line)


_VARIANT_FIELDS: Final = {
    "topic": ("topic", "topic_id", "topic_number", "number", "qid", "query_id", "_id", "id"),
    "variant": ("variants", "variant", "query_variants", "query_variant", "query", "queries", "text", "title"),
}


def read_variants(path: str | Path, *, strict: bool = False) -> dict[str, tuple[str, ...]]:
    """Reads a file of query variants.

    TSV lines `topic TAB variant` (a line that names these columns may come first), CSV with such a header, or JSONL,
    JSON or Parquet records with a topic (`topic`, `topic_id`, `qid`, …) and one text or a list of them (`variant`,
    `variants`, `query`, `text`).

    Args:
        path: the file, in the grammar of sources.
        strict: raise for bytes that are not UTF-8.

    Returns:
        The variants of each topic, in the order of the file, each once.

    Raises:
        InputError: not readable, a line or record without topic or text, or no variants in it.
    """
    spec = grammar.parse(str(path))
    if spec.scheme != "file":
        raise InputError("query variants are read from files", "give a path", where=spec.spec)
    form = formats.detect(compressed.checked_file(spec.path), spec.format)
    if form not in ("tsv", "lines", "csv", "jsonl", "json", "parquet"):
        raise InputError(
            f"query variants are not read from {form} files", "write lines of topic TAB variant", where=spec.path
        )
    variants: dict[str, dict[str, None]] = {}
    for row, keys in keyed(_variant_rows(spec.path, form, strict), partial(columns.fields, wanted=_VARIANT_FIELDS)):
        values = {field: row.values.get(key) for field, key in keys.items()}
        topic_id, texts = (as_text(values.get("topic")) or "").strip(), texts_in(values.get("variant"))
        if not topic_id or not texts:
            remedy = 'write lines of topic TAB variant, or {"topic": …, "variant": …}'
            raise InputError("a record without topic or variant", remedy, where=spec.path, line=row.line)
        for text in filter(normalise, texts):
            variants.setdefault(well_formed(topic_id), {})[well_formed(text.strip())] = None
    if not variants:
        raise InputError("no variants in it", "write lines of topic TAB variant", where=spec.path)
    return {topic_id: tuple(texts) for topic_id, texts in variants.items()}


def with_variants(topic_set: TopicSet, variants: Mapping[str, tuple[str, ...]]) -> TopicSet:
    """A topic set with variants added behind those that its topics have already.

    Args:
        topic_set: the topics.
        variants: the variants of each topic number; those of numbers that the set lacks are counted and noted.

    Raises:
        InputError: none of the topic numbers is in the set.
    """
    known = {topic.topic_id for topic in topic_set.topics}
    unknown = [topic_id for topic_id in variants if topic_id not in known]
    if len(unknown) == len(variants):
        example = f" (there: {unknown[0]}, here: {topic_set.topics[0].topic_id})" if unknown else ""
        raise InputError(
            f"none of the variants' topic numbers is a topic of {topic_set.name}{example}",
            "give the variants of this test set",
            where=topic_set.name,
        )
    topics = tuple(
        topic._replace(variants=tuple(dict.fromkeys((*topic.variants, *variants.get(topic.topic_id, ())))))
        for topic in topic_set.topics
    )
    notes = topic_set.notes
    if unknown:
        lost = sum(len(variants[topic_id]) for topic_id in unknown)
        notes = (*notes, f"{lost} variants of {len(unknown)} topics that are not in {topic_set.name} were left out")
    fields = topic_set.fields if "variant" in topic_set.fields else (*topic_set.fields, "variant")
    return replace(topic_set, topics=topics, fields=fields, notes=notes)


def _variant_rows(path: Path, form: str, strict: bool) -> Iterator[Row]:
    if form not in ("tsv", "lines"):
        return rows(path, form, strict=strict)
    if len(header_fields(path, _VARIANT_FIELDS)) == len(_VARIANT_FIELDS):
        return rows(path, "tsv", strict=strict)
    cells = ((line, line.text.split("\t", 1)) for line in numbered_lines(path, strict=strict) if line.text.strip())
    return (Row(line.number, dict(zip(_VARIANT_FIELDS, pair, strict=False)), line.repaired) for line, pair in cells)
