"""Training queries: one source, its text columns, streamed as often as needed, with the counts of what was read."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

from truerank.errors import InputError
from truerank.records import Query
from truerank.sources import columns, formats, grammar, hub, irds, query_files
from truerank.sources.blocks import QueryBlock, RawBlock, SourceCounts
from truerank.sources.distinct import IdWindow
from truerank.sources.grammar import FORMATS, SOURCES, SourceSpec
from truerank.sources.lines import line_blocks
from truerank.sources.query_files import file_queries
from truerank.sources.rows import Row, rows, saved_files
from truerank.sources.sharing import shared_stream
from truerank.sources.streamed import StreamedSource
from truerank.text.normalising import normalise

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
    """

    query: str | None
    others: tuple[str, ...] = ()


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
        return TextColumns(spec.column or "query", ("passages", "answers"))
    if form == "beir":
        return _of_rows(rows(formats.queries_file(spec.path), "jsonl", strict=strict), spec.column)
    if form in ("csv", "jsonl", "json", "parquet", "saved") or (form not in FORMATS and form in SOURCES):
        return _of_rows(rows(spec.path, form, strict=strict), spec.column)
    return _of_lines(spec, strict) if form == "tsv" else TextColumns(None)


def _of_rows(records: Iterable[Row], column: str | None) -> TextColumns:
    sample = [row.values for row in islice(records, columns.SAMPLE_LINES)]
    names = list(dict.fromkeys(name for values in sample for name in values))
    query = next(filter(None, (query_files.text_key(values, column) for values in sample)), None)
    ids = {name.lower() for name in columns.ID_NAMES}
    others = (name for name in names if name != query and name.lower() not in ids and _holds_texts(name, sample))
    return TextColumns(query, tuple(others))


def _holds_texts(name: str, sample: Sequence[Mapping[str, Any]]) -> bool:
    texts = [text for values in sample for text in query_files.texts_in(values.get(name)) if isinstance(text, str)]
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


#: Bytes of a query without its characters: text, id and line.
_VALUE: Final = 150


def open_queries(spec: str | SourceSpec, *, strict: bool = False) -> QuerySource:
    """Opens a source of training queries: a query log, the queries of a training set, or a topic file (its titles).

    Files: TSV (`id TAB text`, plain queries one a line, or more columns, see `columns.layout_of`), CSV with a header,
    JSONL and JSON arrays (keys as in BEIR, MS MARCO, sentence-transformers, doccano, Label Studio), Parquet, TREC
    topics, MS MARCO QnA JSON, all of them compressed or not, and BEIR folders, whose `queries.jsonl` is read whole,
    whatever the split. Where a source has no ids, the line numbers are the ids; where single records lack theirs,
    `line-NUMBER` stands for it.

    Args:
        spec: the source, see `grammar.parse`.
        strict: raise for bytes that are not UTF-8 instead of reading that line as latin-1.

    Returns:
        The source; it can be iterated any number of times.

    Raises:
        InputError: nothing there, not readable, of no known format, or (irds) an unknown id.
    """
    return QuerySource(grammar.parse(spec) if isinstance(spec, str) else spec, strict=strict)


class QuerySource(StreamedSource):
    """The queries of one source in file order.

    Iterating and `batches` stream: memory does not grow with the source. Queries whose normalised text is empty are
    counted and left out. An id that comes back with another text is an error where it lies within the last half a
    million records (an id further back is forgotten); with the same text it is handed on and counted as repeated.

    Args:
        spec: the source.
        strict: raise for bytes that are not UTF-8.
    """

    def __init__(self, spec: SourceSpec, *, strict: bool = False) -> None:
        super().__init__(spec, strict=strict)
        if self._form in ("qrels", "run"):
            fault = f"a {self._form} file holds no query texts"
            raise InputError(fault, "give the file of the queries", where=spec.location)
        if self._form == "beir":
            formats.queries_file(spec.path)

    @cached_property
    def columns(self) -> TextColumns:
        """The column that is read, and the other columns with texts."""
        return text_columns(self.spec, strict=self._strict)

    def __iter__(self) -> Iterator[Query]:
        for block in self.batches():
            yield from map(Query, block.ids, block.texts)

    def batches(self, size: int = 1 << 13) -> Iterator[QueryBlock]:
        """The queries in blocks: the fast way, on which iteration is built.

        Args:
            size: queries per block; only the last one may hold fewer.

        Yields:
            Blocks of ids and texts.

        Raises:
            InputError: a fault in the source, with file and line; no record in it at all.
        """
        self._counts = SourceCounts()
        window = IdWindow()
        ids: list[str] = []
        texts: list[str] = []
        for raw in self._raw_blocks():
            empty = [
                position for position, text in enumerate(raw.texts) if not "!" <= text < "\x7f" and not normalise(text)
            ]
            self._count(raw, len(empty), window)
            full = _without(empty, raw)
            ids += full.ids
            texts += full.texts
            start = 0
            while len(ids) - start >= size:
                yield QueryBlock(ids[start : start + size], texts[start : start + size])
                start += size
            del ids[:start], texts[:start]
        if not self._counts.read:
            raise self._nothing("queries")
        if ids:
            yield QueryBlock(ids, texts)

    def lines_of(self, ids: Collection[str]) -> dict[str, int]:
        """The lines in which queries stand, by id; of a source without lines, the numbers of the records.

        Args:
            ids: of queries; those that the source lacks are left out.
        """
        found: dict[str, int] = {}
        for raw in self._raw_blocks():
            for query_id, line in zip(raw.ids, raw.lines, strict=True):
                if query_id in ids:
                    found.setdefault(query_id, line)
            if len(found) == len(ids):
                break
        return found

    def _count(self, raw: RawBlock, empty: int, window: IdWindow) -> None:
        repeated = 0
        if raw.own_ids:
            repeats, conflict = window.add(raw.ids, raw.texts, raw.lines)
            repeated = len(repeats)
            if conflict is not None:
                raise InputError(
                    f"the id '{raw.ids[conflict.position]}' has another text in line {conflict.first_line}",
                    "give every query an id of its own",
                    where=self.spec.location,
                    line=raw.lines[conflict.position],
                )
        self._counts += SourceCounts(len(raw.texts) + raw.skipped, empty, raw.repaired, raw.skipped, repeated)

    def _files(self) -> list[Path]:
        path = self.spec.path
        return saved_files(path) if self._form == "saved" else [formats.queries_file(path)]

    def _raw_blocks(self) -> Iterator[RawBlock]:
        spec = self.spec
        if spec.scheme == "irds":
            return irds.queries(spec.location)
        if spec.scheme == "hf":
            return hub.queries(spec, strict=self._strict)
        single = spec.format == "lines"
        read = partial(file_queries, spec.path, self._form, spec.column, single=single, strict=self._strict)
        return shared_stream(spec.path, ("queries", self._form, spec.column, single, self._strict), read, _length)


def _length(block: RawBlock) -> int:
    """The characters of a block, and what its values take."""
    return sum(map(len, block.texts)) + _VALUE * len(block.texts)


def _without(positions: list[int], raw: RawBlock) -> QueryBlock:
    if not positions:
        return QueryBlock(raw.ids, raw.texts)
    left_out = set(positions)
    kept = [position for position in range(len(raw.texts)) if position not in left_out]
    return QueryBlock([raw.ids[position] for position in kept], [raw.texts[position] for position in kept])
