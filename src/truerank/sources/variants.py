"""Query variants: other people's wordings of a topic, beside the topic file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from truerank.errors import InputError
from truerank.sources import columns, compressed, formats, grammar
from truerank.sources.lines import numbered_lines
from truerank.sources.rows import rows
from truerank.sources.tables import as_text, well_formed
from truerank.sources.topics import TopicSet
from truerank.text.normalising import normalise

_TOPICS: Final = ("topic", "topic_id", "topic_number", "number", "qid", "query_id", "_id", "id")
_TEXTS: Final = ("variants", "variant", "query_variants", "query_variant", "query", "queries", "text", "title")


class _Variant(NamedTuple):
    """One variant of a topic."""

    topic_id: str
    text: str


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
    if form in ("tsv", "lines"):
        found = _from_lines(spec.path, strict)
    elif form in ("csv", "jsonl", "json", "parquet"):
        found = _from_rows(spec.path, form, strict)
    else:
        raise InputError(
            f"query variants are not read from {form} files", "write lines of topic TAB variant", where=spec.path
        )
    variants: dict[str, dict[str, None]] = {}
    for topic_id, text in found:
        if normalise(text):
            variants.setdefault(topic_id, {})[text] = None
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
    lost = sum(len(variants[topic_id]) for topic_id in unknown)
    notes = topic_set.notes
    if unknown:
        notes = (*notes, f"{lost} variants of {len(unknown)} topics that are not in {topic_set.name} were left out")
    fields = topic_set.fields if "variant" in topic_set.fields else (*topic_set.fields, "variant")
    return replace(
        topic_set, topics=topics, fields=fields, notes=notes, unmatched_variants=topic_set.unmatched_variants + lost
    )


def _from_lines(path: Path, strict: bool) -> Iterator[_Variant]:
    first = True
    for line in numbered_lines(path, strict=strict):
        topic_id, tab, text = line.text.partition("\t")
        if not line.text.strip():
            continue
        is_header, first = first and _is_header(topic_id, text), False
        if is_header:
            continue
        if not tab or not topic_id.strip():
            raise InputError("a line without topic TAB variant", "write them so", where=path, line=line.number)
        yield _Variant(topic_id.strip(), text.strip())


def _is_header(left: str, right: str) -> bool:
    return left.strip().lower() in _TOPICS and right.strip().lower() in _TEXTS


def _from_rows(path: Path, form: str, strict: bool) -> Iterator[_Variant]:
    for row in rows(path, form, strict=strict):
        names = list(row.values)
        topic, text = columns.named(names, _TOPICS), columns.named(names, _TEXTS)
        topic_id = (as_text(row.values[topic]) or "").strip() if topic else ""
        texts = _texts(row.values[text]) if text else []
        if not topic_id or not texts:
            raise InputError(
                "a record without topic or variant", 'write {"topic": …, "variant": …}', where=path, line=row.line
            )
        for variant in texts:
            yield _Variant(well_formed(topic_id), well_formed(variant.strip()))


def _texts(value: Any) -> list[str]:
    given = value if isinstance(value, list) else [value]
    return [text for text in map(as_text, given) if text is not None]
