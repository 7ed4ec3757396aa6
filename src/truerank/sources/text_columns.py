"""Which columns of a source hold texts: the one that is read as the query, and the others (positives, answers, …)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, Final, NamedTuple

from truerank.sources import beir, columns, formats, hub, tables
from truerank.sources.grammar import FORMATS, SOURCES, SourceSpec
from truerank.sources.lines import line_blocks
from truerank.sources.rows import Row, rows

#: Names of texts beside the query: sentence-transformers, FlagEmbedding, Tevatron, instruction data, conversations.
_OTHER_NAMES: Final = frozenset((
    "positive", "negative", "pos", "neg", "positives", "negatives", "hard_negative", "positive_passages",
    "negative_passages", "sentence1", "sentence2", "sentence_a", "sentence_b", "premise", "hypothesis", "passage",
    "passages", "document", "documents", "doc", "context", "answer", "answers", "response", "output", "completion",
    "chosen", "rejected", "instruction", "messages", "conversations",
))  # fmt: skip


class TextColumns(NamedTuple):
    """The text columns of a source.

    Attributes:
        query: the column that is read; None where the format has no columns, or none of them is known as a query.
        others: the other columns with texts, in the order of the source.
        readable: whether each of them can be read as a source of its own.
    """

    query: str | None
    others: tuple[str, ...] = ()
    readable: bool = True


def text_columns(spec: SourceSpec, *, strict: bool = False) -> TextColumns:
    """Tells the text columns from the first thousand records.

    A column holds texts if a known name says so, or if at least a tenth of its values have several words. Lists of
    texts count, and lists of records with a text (`messages`).

    Args:
        strict: raise for bytes that are not UTF-8.
    """
    if spec.scheme == "irds":
        return TextColumns(None)
    if spec.scheme == "hf":
        return _of_rows(hub.records(spec, strict=strict), spec.column)
    form = formats.detect(spec.path, spec.format)
    if form == "qna":
        return TextColumns(spec.column or "query", ("passages", "answers"), readable=False)
    if form == "beir":
        return _of_rows(rows(beir.queries_file(spec.path), "jsonl", strict=strict), spec.column)
    if form in ("csv", "jsonl", "json", "parquet", "saved") or (form not in FORMATS and form in SOURCES):
        return _of_rows(rows(spec.path, form, strict=strict), spec.column)
    return _of_lines(spec, strict) if form == "tsv" else TextColumns(None)


def by_column(spec: SourceSpec, *, strict: bool = False) -> tuple[SourceSpec, ...]:
    """One source for each text column, called `file.jsonl#positive`.

    Args:
        spec: the source.
        strict: raise for bytes that are not UTF-8.

    Returns:
        The source itself where it names its column, has one text column only, or its columns cannot be read apart.

    Raises:
        InputError: the source cannot be read.
    """
    found = TextColumns(None) if spec.column is not None else text_columns(spec, strict=strict)
    every = [*filter(None, [found.query]), *found.others]
    if not found.readable or not found.others:
        return (spec,)
    stem = spec.path.name if spec.scheme == "file" else spec.name
    return tuple(replace(spec, column=name, name=f"{stem}#{name}", spec=f"{spec.spec}#{name}") for name in every)


def _of_rows(records: Iterable[Row], column: str | None) -> TextColumns:
    sample = [row.values for row in islice(records, columns.SAMPLE_LINES)]
    names = list(dict.fromkeys(name for values in sample for name in values))
    query = next(filter(None, (tables.text_key(values, column) for values in sample)), None)
    ids = {name.lower() for name in columns.ID_NAMES}
    others = (name for name in names if name != query and name.lower() not in ids and _holds_texts(name, sample))
    return TextColumns(query, tuple(others))


def _holds_texts(name: str, sample: Sequence[Mapping[str, Any]]) -> bool:
    texts = [text for values in sample for text in tables.texts_in(values.get(name)) if isinstance(text, str)]
    worded = sum(" " in text.strip() for text in texts)
    return bool(texts) and (worded * 10 >= len(texts) or name.strip().lower() in _OTHER_NAMES)


def _of_lines(spec: SourceSpec, strict: bool) -> TextColumns:
    lines: list[str] = next((block.lines for block in line_blocks(spec.path, strict=strict)), [])
    layout = columns.layout_of(lines, spec.column, spec.path)
    if layout.separator != "\t":
        return TextColumns(None)
    sample = [line.split("\t") for line in lines[: columns.SAMPLE_LINES] if line.strip()]
    if not sample:
        return TextColumns(None)
    names = [name.strip() if layout.header else str(place) for place, name in enumerate(sample[0], start=1)]
    named = [dict(zip(names, cells, strict=False)) for cells in sample[layout.header :]]
    others = (name for place, name in enumerate(names) if place not in (layout.text, layout.identifier))
    # A first line that is shorter than most names no column of texts.
    text = names[layout.text] if layout.text < len(names) else None
    return TextColumns(text, tuple(name for name in others if _holds_texts(name, named)))
