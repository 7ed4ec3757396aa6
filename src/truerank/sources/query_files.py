"""The queries of one file: text lines, rows of named values, Parquet columns, MS MARCO QnA, TREC topics."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl

from truerank.errors import InputError
from truerank.records import Topic
from truerank.sources import columns, formats
from truerank.sources.blocks import RawBlock
from truerank.sources.columns import Layout
from truerank.sources.lines import LineBlock, line_blocks, whole_text
from truerank.sources.rows import Row, column_rows, parquet_frames, rows

_BLOCK: Final = 1 << 13
#: Keys of the text of a message or passage.
_CONTENTS: Final = ("content", "value", "text", "contents")
_ID_AND_TEXT: Final = Layout(0, 1, 1)
_TAB, _LINE_END = ord("\t"), ord("\n")


def keyed(
    records: Iterable[Row], keys_of: Callable[[tuple[str, ...]], Mapping[str, str]]
) -> Iterator[tuple[Row, Mapping[str, str]]]:
    """Rows, each with the column of every field, which is told anew where the names of the columns change."""
    names: tuple[str, ...] | None = None
    keys: Mapping[str, str] = {}
    for row in records:
        if tuple(row.values) != names:
            names = tuple(row.values)
            keys = keys_of(names)
        yield row, keys


def header_fields(path: Path, wanted: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """The fields that the first line of a text file names, with tabs between them; none in one column."""
    names = [name.strip() for name in next(line_blocks(path), LineBlock(1, "")).lines[0].split("\t")]
    return columns.fields(names, wanted) if len(names) > 1 else {}


def line_queries(
    path: Path, column: str | None = None, *, single: bool = False, strict: bool = False
) -> Iterator[RawBlock]:
    """The queries of a text file with one record a line; `columns.layout_of` says which columns are taken.

    Args:
        strict: raise for bytes that are not UTF-8.
    """
    layout, aside = None, False
    for block in line_blocks(path, strict=strict):
        if layout is None:
            layout = columns.layout_of(block.lines, column, path, single=single)
            aside = column is not None and layout.text != _usual_text(block.lines, path)
            if layout.header:
                if len(block) == 1:
                    continue
                block = block.without_first()
        raw = _pairs(block, layout) or _split(block, layout)
        # The id of a line is that of its query: another text of it may come back with the id.
        yield raw._replace(own_ids=False) if aside else raw


def _usual_text(lines: Sequence[str], path: Path) -> int | None:
    """The column that is read where none is named."""
    try:
        return columns.layout_of(lines, None, path).text
    except InputError:
        return None


def _pairs(block: LineBlock, layout: Layout) -> RawBlock | None:
    """The fast way for `id TAB text`: None where a line has more or fewer tabs than one."""
    if layout != _ID_AND_TEXT:
        return None
    data = np.frombuffer(block.text.encode(), np.uint8)
    separators = data[(data == _TAB) | (data == _LINE_END)]
    if len(separators) % 2 == 0 or not (separators[::2] == _TAB).all() or not (separators[1::2] == _LINE_END).all():
        return None
    cells = block.text.replace("\n", "\t").split("\t")
    numbers = range(block.first, block.first + len(cells) // 2)
    return RawBlock(_stripped(cells[::2], numbers), cells[1::2], numbers, True, len(block.repaired))


def _split(block: LineBlock, layout: Layout) -> RawBlock:
    lines = block.lines
    numbers: Sequence[int] = range(block.first, block.first + len(lines))
    if layout.splits == 0:
        return RawBlock(list(map(str, numbers)), lines, numbers, False, len(block.repaired))
    cells, repaired, skipped = [line.split(layout.separator, layout.splits) for line in lines], len(block.repaired), 0
    needed = max(layout.text, layout.identifier or 0) + 1
    if cells and min(map(len, cells)) < needed:
        # A blank line is a query without text; one with too few columns is skipped.
        kept = [at for at, cell in enumerate(cells) if len(cell) >= needed or not any(part.strip() for part in cell)]
        repaired, skipped = len(block.repaired.intersection(kept)), len(cells) - len(kept)
        numbers = [block.first + at for at in kept]
        cells = [cells[at] if len(cells[at]) >= needed else [""] * needed for at in kept]
    texts = [cell[layout.text] for cell in cells]
    return RawBlock(_ids(cells, layout, numbers), texts, numbers, layout.identifier is not None, repaired, skipped)


def _ids(cells: list[list[str]], layout: Layout, numbers: Sequence[int]) -> list[str]:
    position = layout.identifier
    if position is None:
        return list(map(str, numbers))
    return _stripped([cell[position] for cell in cells], numbers)


def _stripped(ids: list[str], numbers: Sequence[int]) -> list[str]:
    """The ids without blanks around them; `line-NUMBER`, which is no other record's id, where nothing is left."""
    together = "".join(ids)
    if together.split(None, 1) == [together] and all(ids):
        return ids
    return [given.strip() or f"line-{number}" for given, number in zip(ids, numbers, strict=True)]


def row_queries(rows: Iterable[Row], column: str | None, where: Path | str) -> Iterator[RawBlock]:
    """The queries of rows of named values; the keys are told from the first rows that hold a text."""
    stream = iter(rows)
    keys: _TextAndId | None = None
    while taken := list(islice(stream, _BLOCK)):
        if keys is None:
            keys = next(filter(None, (_keys(row.values, column) for row in taken)), None)
            if keys is None:
                raise columns.no_column(list(taken[0].values), column, "a query", where, taken[0].line)
        yield _raw(taken, keys)


class _TextAndId(NamedTuple):
    """The keys; `aside` says that the text is not the query, whose id the id is, so that both may come back apart."""

    text: str
    identifier: str | None
    aside: bool = False


def text_key(values: Mapping[str, Any], column: str | None) -> str | None:
    """The key of the text: `column` (a name, or a number from 1), or the likeliest; None where there is none."""
    names = list(values)
    if column is None:
        return columns.named(names, columns.TEXT_NAMES) or ("1" if names[:1] == ["1"] else None)
    return columns.chosen(names, column)


def _keys(values: Mapping[str, Any], column: str | None) -> _TextAndId | None:
    text = text_key(values, column)
    if text is None:
        return None
    others = [name for name in values if name != text]
    return _TextAndId(text, columns.named(others, columns.ID_NAMES), text != (text_key(values, None) or text))


def texts_in(value: Any) -> list[str]:
    """The texts of a value: itself, those in a list, those of records in it (`{"role": …, "content": …}`)."""
    if isinstance(value, (list, tuple)):
        return [text for item in value for text in texts_in(item)]
    if isinstance(value, Mapping):
        return texts_in(next((value[key] for key in _CONTENTS if value.get(key)), None))
    text = as_text(value)
    return [] if text is None else [text]


def _raw(taken: list[Row], keys: _TextAndId) -> RawBlock:
    ids: list[str] = []
    texts: list[str] = []
    lines: list[int] = []
    repaired = skipped = 0
    own_ids = keys.identifier is not None and not keys.aside
    for row in taken:
        value = row.values.get(keys.text)
        # What stands beside the query may be missing: "input" of an instruction, a negative.
        several = isinstance(value, (list, Mapping)) or (keys.aside and value is None)
        found = (texts_in(value) or [""]) if several else [as_text(value)]
        own_ids = own_ids and not several
        for text in found:
            if text is None:
                skipped += 1
                continue
            ids.append(identifier_of(row, keys.identifier))
            texts.append(text)
            lines.append(row.line)
            repaired += row.repaired
    return well_formed_block(RawBlock(ids, texts, lines, own_ids, repaired, skipped))


def parquet_queries(path: Path, column: str | None) -> Iterator[RawBlock]:
    """The queries of a Parquet file, of which only the columns of text and id are read."""
    schema = next((frame.schema for frame in parquet_frames(path)), pl.Schema())
    keys = _keys(dict.fromkeys(schema), column)
    if keys is None:
        raise columns.no_column(list(schema), column, "a query", path, 1)
    if schema[keys.text].is_nested():
        yield from row_queries(rows(path, "parquet"), column, path)
        return
    if not _is_textual(schema[keys.text]):
        raise InputError(f"the column '{keys.text}' holds {schema[keys.text]}, not texts", "name another", where=path)
    if keys.identifier is not None and not _is_textual(schema[keys.identifier]):
        keys = keys._replace(identifier=None)
    wanted = [keys.text] if keys.identifier is None else [keys.text, keys.identifier]
    first, empties = 1, keys.aside and schema[keys.text] == pl.String
    for frame in parquet_frames(path, wanted):
        raw = _columns(frame.with_columns(pl.col(keys.text).fill_null("")) if empties else frame, keys, first)
        yield raw._replace(own_ids=raw.own_ids and not keys.aside)
        first += frame.height


def _is_textual(dtype: pl.DataType) -> bool:
    return not dtype.is_nested() and dtype not in (pl.Binary, pl.Boolean, pl.Null, pl.Object)


def _columns(frame: pl.DataFrame, keys: _TextAndId, first: int) -> RawBlock:
    texts = frame[keys.text].cast(pl.String)
    there = texts.is_not_null()
    numbers: Sequence[int] = range(first, first + frame.height)
    if texts.null_count():
        numbers = [number for number, known in zip(numbers, there, strict=True) if known]
    skipped = frame.height - len(numbers)
    kept = texts.filter(there).to_list() if skipped else texts.to_list()
    if keys.identifier is None:
        return RawBlock(list(map(str, numbers)), kept, numbers, False, skipped=skipped)
    ids = frame[keys.identifier].cast(pl.String, strict=False).fill_null("")
    return RawBlock(
        _stripped((ids.filter(there) if skipped else ids).to_list(), numbers), kept, numbers, skipped=skipped
    )


def qna_queries(path: Path, column: str | None, *, strict: bool = False) -> Iterator[RawBlock]:
    """The queries of an MS MARCO QnA file; where there is no `query_id`, the record's key is the id."""
    text = column or "query"
    records = enumerate(column_rows(path, (text, "query_id"), (text,), strict=strict), start=1)
    numbered = (Row(number, {"query_id": row.values["key"], **row.values}, row.repaired) for number, row in records)
    return row_queries(numbered, text, path)


def identifier_of(row: Row, key: str | None) -> str:
    """The id of a record: its line number where the source has no ids, `line-NUMBER` where this one lacks it."""
    if key is None:
        return str(row.line)
    return (as_text(row.values.get(key)) or "").strip() or f"line-{row.line}"


def as_text(value: Any) -> str | None:
    """A text or a number as text; None for anything else."""
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def number_in(text: str, column: str, where: str, line: int) -> float | None:
    """The number that a cell holds; None for an empty one."""
    if not (text := text.strip()):
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(f"'{text[:40]}' is not a number", f"correct the column {column}", where=where, line=line)
    return value


def well_formed(text: str) -> str:
    """The text with halves of surrogate pairs (which JSON escapes can hold, files cannot) replaced by U+FFFD."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def well_formed_block(block: RawBlock) -> RawBlock:
    """A block with halves of surrogate pairs replaced, and counted in its texts."""
    try:
        "".join(block.texts).encode()
        "".join(block.ids).encode()
        return block
    except UnicodeEncodeError:
        texts = [well_formed(text) for text in block.texts]
        ids = [well_formed(identifier) for identifier in block.ids]
        changed = sum(new != old for new, old in zip(texts, block.texts, strict=True))
        return block._replace(ids=ids, texts=texts, repaired=block.repaired + changed)


_TREC_BLOCK: Final = 1000


def file_queries(
    path: Path, form: str, column: str | None = None, *, single: bool = False, strict: bool = False
) -> Iterator[RawBlock]:
    """The queries of a file.

    Args:
        strict: raise for bytes that are not UTF-8.
    """
    if form in ("tsv", "lines"):
        return line_queries(path, column, single=single, strict=strict)
    if form == "parquet":
        return parquet_queries(path, column)
    if form == "qna":
        return qna_queries(path, column, strict=strict)
    if form in ("trec", "xml"):
        return _titles(marked_topics(path, xml=form == "xml", strict=strict))
    if form == "beir":
        path, form = formats.queries_file(path), "jsonl"
    return row_queries(rows(path, form, strict=strict), column, path)


def _titles(found: Iterator[FoundTopic]) -> Iterator[RawBlock]:
    while taken := list(islice(found, _TREC_BLOCK)):
        topics = [item.topic for item in taken]
        yield RawBlock(
            [topic.topic_id for topic in topics],
            [topic.title for topic in topics],
            [item.line or 0 for item in taken],
            repaired=sum(item.repaired for item in taken),
        )


_COMMENT: Final = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
#: What may be a record, the likeliest first.
_RECORDS: Final = tuple(
    re.compile(rf"<(?:\w+:)?({name})\b([^>]*)>", re.IGNORECASE) for name in ("top", "topic", "doc", "query")
)
_NUMBER: Final = re.compile(r"\b(?:number|num|id|qid|topic_id)\s*=\s*[\"']([^\"']*)", re.IGNORECASE)
_TAG: Final = re.compile(
    r"<(?P<end>/?)(?:\w+:)?(?P<name>num|number|docno|id|qid|title|desc|description|narr|narrative|query|question|subtopic"
    r"|dom|head|con|fac|def|smry|nat|time|text|topic|top|doc)\b[^>]*>",
    re.IGNORECASE,
)
#: What stands after a tag without belonging to the text: the field's name, then a colon or the end of the line.
_PREFIXES: Final = {
    "num": re.compile(r"\A\s*Number\s*:", re.IGNORECASE),
    "title": re.compile(r"\A\s*(?:Topic|Title)\s*:", re.IGNORECASE),
    "desc": re.compile(r"\A\s*Description\s*(?::|\n)", re.IGNORECASE),
    "narr": re.compile(r"\A\s*Narrative\s*(?::|\n)", re.IGNORECASE),
}
_SAME: Final = {
    "number": "num", "docno": "num", "id": "num", "qid": "num", "description": "desc", "narrative": "narr", "text": "",
}  # fmt: skip
#: The fields that may be a topic's title, description and narrative.
_TEXTS: Final = (("title", "query", ""), ("desc", "question"), ("narr", "subtopic"))
_CDATA: Final = re.compile(r"<!\[CDATA\[(.*?)(?:\]\]>|\Z)", re.DOTALL)
_XML_MARK: Final = re.compile(r"</?[a-z][^<>]*>", re.IGNORECASE)


class FoundTopic(NamedTuple):
    """A topic, the line where it begins, and how many lines were repaired since the one before, as far as known."""

    topic: Topic
    line: int | None = None
    repaired: int = 0


def marked_topics(path: Path, *, xml: bool, strict: bool = False) -> Iterator[FoundTopic]:
    """The topics of a file of marked-up records, in order.

    TREC's `<top>` (or `<DOC>`), with or without end tags; XML of the web tracks (`<topic>` with query and subtopics),
    of TREC-COVID (query, question, narrative), or `<query>` with an id. A field goes on to the next known tag, to its
    end tag or to the end of the record; the words "Number:", "Description:", "Narrative:" behind a tag are dropped and
    lines are joined with a blank. Text outside any field is the title of a record without one.

    Args:
        xml: records end with an end tag, and other tags and references to characters are no text.
        strict: raise for bytes that are not UTF-8.
    """
    text, repaired = whole_text(path, strict=strict)
    text = _COMMENT.sub(lambda comment: "\n" * comment[0].count("\n"), text)
    text = _CDATA.sub(lambda part: html.escape(part[1]), text) if xml else text
    starts = next(filter(None, (list(record.finditer(text)) for record in _RECORDS)), [])
    if not starts:
        remedy = "give a TREC topic file, or name its format with ?format="
        raise InputError("no topics: there is no <top> or <topic>", remedy, where=path)
    line, counted = 1, 0
    for start, following in zip(starts, [*starts[1:], None], strict=True):
        stop, kind = len(text) if following is None else following.start(), start[1]
        line += text.count("\n", counted, start.start())
        counted = start.start()
        record = text[start.end() : stop]
        if xml and not re.search(rf"</(?:\w+:)?{kind}\s*>", record):
            remedy = "the file is cut off or broken: copy it again"
            raise InputError(f"a <{kind}> without </{kind}>", remedy, where=path, line=line)
        fields = _fields(record, kind.lower(), xml=xml)
        attribute = _NUMBER.search(start[2])
        number = (attribute[1].strip() if attribute else "") or fields.get("num", "")
        if not number:
            raise InputError(f"a <{kind}> without number", "add <num> to it", where=path, line=line)
        last = line + text.count("\n", start.start(), stop)
        title, desc, narr = (next((fields[name] for name in names if name in fields), "") for names in _TEXTS)
        touched = any(line <= at < last for at in repaired) or last in repaired
        yield FoundTopic(Topic(number, title, desc, narr), line, touched)


def _fields(record: str, kind: str, *, xml: bool) -> dict[str, str]:
    """The fields of a record by their short names; text outside any field under ""."""
    words: dict[str, list[str]] = {}
    name, begin = "", 0
    for tag in [*_TAG.finditer(record), None]:
        text = record[begin : len(record) if tag is None else tag.start()]
        text = _PREFIXES[name].sub("", text) if name in _PREFIXES else text
        words.setdefault(name, []).extend((html.unescape(_XML_MARK.sub("", text)) if xml else text).split())
        if tag is None or (tag["end"] and tag["name"].lower() == kind):
            break
        name, begin = "" if tag["end"] else _SAME.get(tag["name"].lower(), tag["name"].lower()), tag.end()
    return {name: " ".join(parts) for name, parts in words.items() if parts}
