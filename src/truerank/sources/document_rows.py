"""Documents out of tables: which columns hold id, URL, title and body."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import polars as pl

from truerank.errors import InputError
from truerank.loading import whole_number
from truerank.records import Document
from truerank.sources import columns
from truerank.sources.lines import LineBlock, line_blocks
from truerank.sources.rows import Row, parquet_frames
from truerank.sources.tables import as_text, identifier_of, well_formed

_IDS: Final = (
    "_id", "doc_id", "docid", "docno", "document_id", "doc-id", "corpus-id", "corpus_id", "pid", "passage_id",
    "passage-id", "did", "id",
)  # fmt: skip
_TITLES: Final = ("title", "headline", "doc_title", "heading")
_URLS: Final = ("url", "uri", "link", "target_url")
_BODIES: Final = (
    "body", "text", "contents", "content", "passage", "passage_text", "document", "doc_text", "segment", "abstract",
    "article", "positive",
)  # fmt: skip
#: The columns of a text file without names, by their number.
_UNNAMED: Final = {
    1: ("body",), 2: ("doc_id", "body"), 3: ("doc_id", "title", "body"), 4: ("doc_id", "url", "title", "body"),
}  # fmt: skip


class FoundDocument(NamedTuple):
    """A document, where it stands (line 0: not known), and whether it was repaired."""

    document: Document
    where: str | Path
    line: int
    repaired: bool = False


#: Documents, and numbers of records that were skipped.
FoundStream: TypeAlias = Iterator[FoundDocument | int]


_TEXT: Final = "a document's text"


class _Keys(NamedTuple):
    """The keys of the records of documents; None for what they lack."""

    identifier: str | None
    url: str | None
    title: str | None
    body: str | None


def documents_of_rows(rows: Iterable[Row], column: str | None, where: str | Path) -> FoundStream:
    """The documents of rows of named values; a row without any text is skipped."""
    first: Row | None = None
    usable = False
    names: tuple[str, ...] = ()
    keys = _Keys(None, None, None, None)
    for row in rows:
        first = first or row
        if tuple(row.values) != names:
            names = tuple(row.values)
            keys = _keys(names, column)
        url, title, body = (_text(row.values, key) for key in keys[1:])
        if body is None and (title is None or column is not None):
            yield 1
            continue
        usable = True
        if url is None and isinstance(extra := row.values.get("metadata"), dict):
            url = as_text(extra.get("url"))
        document = Document(identifier_of(row, keys.identifier), url or "", title or "", body or "")
        yield _repaired(FoundDocument(document, where, row.line, row.repaired))
    if first is not None and not usable:
        raise columns.no_column(names, column, _TEXT, where, first.line)


def documents_of_parquet(path: Path, column: str | None) -> FoundStream:
    """The documents of a Parquet file, of which only the columns needed are read."""
    schema = next((frame.schema for frame in parquet_frames(path)), pl.Schema())
    keys = _keys(tuple(schema), column)
    if keys.body is None and (keys.title is None or column is not None):
        raise columns.no_column(tuple(schema), column, _TEXT, path, 1)
    wanted = list(dict.fromkeys(key for key in keys if key is not None))

    def rows() -> Iterator[Row]:
        number = 0
        for frame in parquet_frames(path, wanted):
            for values in frame.iter_rows(named=True):
                number += 1
                yield Row(number, values)

    return documents_of_rows(rows(), column if column is None or column in schema else keys.body, path)


def has_names(path: Path) -> bool:
    """Whether the first line of a text file names columns: an id and a text."""
    block = next(line_blocks(path), LineBlock(1, ""))
    names = [name.strip() for name in block.lines[0].split("\t")]
    text = columns.named(names, _BODIES) or columns.named(names, _TITLES)
    return len(names) > 1 and text is not None and columns.named(names, _IDS) is not None


def documents_of_lines(path: Path, column: str | None, *, strict: bool = False) -> FoundStream:
    """The documents of a text file without names: one a line, one to four columns.

    One column is the body (the line number is the id), two are id and body, three id, title and body, four id, URL,
    title and body; a body keeps further tabs. With more columns, or others, `column` gives the number of the body.

    Args:
        strict: raise for bytes that are not UTF-8.
    """
    names: tuple[str, ...] = ()
    for block in line_blocks(path, strict=strict):
        if not names:
            names = _names(block.lines, column, path)
        for offset, line in enumerate(block.lines):
            cells = line.split("\t", len(names) - 1)
            if len(cells) < len(names):
                if line.strip():
                    yield 1
                continue
            values = dict(zip(names, cells, strict=True))
            number = block.first + offset
            identifier = values.get("doc_id", str(number)).strip() or f"line-{number}"
            document = Document(identifier, values.get("url", ""), values.get("title", ""), values["body"])
            yield FoundDocument(document, path, number, offset in block.repaired)


def _names(lines: Sequence[str], column: str | None, path: Path) -> tuple[str, ...]:
    sample = [line for line in lines[: columns.SAMPLE_LINES] if line.strip()]
    counts = [line.count("\t") + 1 for line in sample]
    width = min(set(counts), key=lambda count: (-counts.count(count), count)) if counts else 1
    if column is not None:
        number = whole_number(column) or 0
        if not 1 <= number <= width:
            raise InputError(
                f"no column '{column}'", f"it has {width} columns and no names; give its number", where=path, line=1
            )
        others = [f"column {position}" for position in range(1, width + 1)]
        others[number - 1] = "body"
        if number > 1:
            others[0] = "doc_id"
        return tuple(others)
    if width not in _UNNAMED:
        raise InputError(
            f"{width} columns without names", "give a first line of names, or the body as #NUMBER", where=path, line=1
        )
    return _UNNAMED[width]


def _keys(names: Sequence[str], column: str | None) -> _Keys:
    body = columns.named(names, _BODIES) if column is None else columns.chosen(names, column)
    titles = [name for name in _TITLES if name != (body or "").lower()]
    return _Keys(columns.named(names, _IDS), columns.named(names, _URLS), columns.named(names, titles), body)


def _text(values: Mapping[str, Any], key: str | None) -> str | None:
    if key is None:
        return None
    value = values.get(key)
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return " ".join(value)
    return as_text(value)


def _repaired(found: FoundDocument) -> FoundDocument:
    """With halves of surrogate pairs, which JSON escapes can hold, replaced."""
    try:
        "".join(found.document).encode()
        return found
    except UnicodeEncodeError:
        return found._replace(document=Document(*map(well_formed, found.document)), repaired=True)
