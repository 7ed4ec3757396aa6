"""Documents: a collection in any form of files, streamed as often as needed, with the counts of what was read."""

from __future__ import annotations

import re
import shutil
import tarfile
import tempfile
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, islice
from pathlib import Path, PurePosixPath
from typing import IO, Any, Final, NamedTuple, TypeAlias, cast

import polars as pl

from truerank.errors import InputError
from truerank.loading import whole_number
from truerank.records import Document
from truerank.sources import columns, compressed, formats, grammar, hub, irds
from truerank.sources.blocks import SourceCounts
from truerank.sources.distinct import IdWindow
from truerank.sources.grammar import SourceSpec
from truerank.sources.lines import LineBlock, block_of, byte_blocks, line_blocks, line_ends
from truerank.sources.markup import html_text, is_html, trec_document
from truerank.sources.query_files import as_text, header_fields, identifier_of, keyed, well_formed
from truerank.sources.rows import Row, json_row, parquet_columns, parquet_frames, rows, saved_files
from truerank.sources.sharing import shared_stream
from truerank.sources.streamed import StreamedSource
from truerank.text.normalising import normalise

#: Where a text begins in its document: with such a column, `id` names the text and `doc_id` the document.
STARTS: Final = ("start", "start_char", "char_start", "start_index", "start_offset", "begin", "offset")
#: What the columns of documents are called; the body is what `#column` chooses.
_FIELDS: Final = {
    "body": ("body", "text", "contents", "content", "passage", "passage_text", "document", "doc_text", "segment",
             "abstract", "article", "positive"),
    "id": ("chunk_id", "_id", "doc_id", "docid", "docno", "document_id", "doc-id", "corpus-id", "corpus_id", "pid",
           "passage_id", "passage-id", "did", "id"),
    "url": ("url", "uri", "link", "target_url"),
    "title": ("title", "headline", "doc_title", "heading"),
}  # fmt: skip
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


def documents_of_rows(rows: Iterable[Row], column: str | None, where: str | Path) -> FoundStream:
    """The documents of rows of named values; one with an id and without any text is empty, one without both skipped."""
    first: Row | None = None
    usable = False
    for row, keys in keyed(rows, partial(_keys, column=column)):
        first, values = first or row, row.values
        at_id = keys.get("id")
        url = None if (key := keys.get("url")) is None else _text(values.get(key))
        title = None if (key := keys.get("title")) is None else _text(values.get(key))
        body = None if (key := keys.get("body")) is None else _text(values.get(key))
        if body is None and (title is None or column is not None):
            if at_id is None or values.get(at_id) is None:
                yield 1
                continue
        else:
            usable = True
        if url is None and isinstance(extra := values.get("metadata"), dict):
            url = as_text(extra.get("url"))
        document = Document(identifier_of(row, at_id), url or "", title or "", body or "")
        yield _repaired(FoundDocument(document, where, row.line, row.repaired))
    if first is not None and not usable:
        raise columns.no_column(list(first.values), column, _TEXT, where, first.line)


def document_rows(source: str) -> Iterator[tuple[str, frozenset[str], Row, str]]:
    """The rows of a table of documents: its id, the names of the columns of id, title and body, the row and the text.

    Nothing where the source is no table.
    """
    spec = grammar.parse(source)
    if spec.scheme != "file":
        return
    form = document_form(spec.path, spec.format)
    path, form = (folder_files(spec.path, form)[0], "jsonl") if form == "beir" else (spec.path, form)
    if form not in ("jsonl", "json", "csv", "parquet") and not (form == "tsv" and _has_names(path)):
        return
    for row, keys in keyed(rows(path, form), partial(_keys, column=spec.column)):
        own = frozenset(key for field, key in keys.items() if field != "url")
        yield identifier_of(row, keys.get("id")), own, row, _text(row.values.get(keys.get("body", ""))) or ""


def documents_of_parquet(path: Path, column: str | None) -> FoundStream:
    """The documents of a Parquet file, of which only the columns needed are read."""
    names = parquet_columns(path)
    keys = _keys(names, column)
    if "body" not in keys and ("title" not in keys or column is not None):
        raise columns.no_column(names, column, _TEXT, path, 1)
    values = (row for frame in parquet_frames(path, list(keys.values())) for row in frame.iter_rows(named=True))
    records = (Row(number, row) for number, row in enumerate(values, start=1))
    return documents_of_rows(records, None if column is None else keys["body"], path)


def _has_names(path: Path) -> bool:
    """Whether the first line of a text file names columns: an id and a text."""
    named = header_fields(path, _FIELDS).keys()
    return "id" in named and not named.isdisjoint(("body", "title"))


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
            remedy = f"it has {width} columns and no names; give its number"
            raise InputError(f"no column '{column}'", remedy, where=path, line=1)
        others = [f"column {position}" for position in range(1, width + 1)]
        others[number - 1] = "body"
        if number > 1:
            others[0] = "doc_id"
        return tuple(others)
    if width not in _UNNAMED:
        remedy = "give a first line of names, or the body as #NUMBER"
        raise InputError(f"{width} columns without names", remedy, where=path, line=1)
    return _UNNAMED[width]


def _keys(names: Sequence[str], column: str | None) -> dict[str, str]:
    ids = ("chunk_id", "id", *_FIELDS["id"]) if columns.named(names, STARTS) else _FIELDS["id"]
    return columns.fields(names, {**_FIELDS, "id": ids}, column)


def _text(value: Any) -> str | None:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return " ".join(value)
    return as_text(value)


def _repaired(found: FoundDocument) -> FoundDocument:
    """With halves of surrogate pairs, which JSON escapes can hold, replaced."""
    document = Document(*map(well_formed, found.document))
    return found if document == found.document else found._replace(document=document, repaired=True)


_BLOCK: Final = 1 << 10
#: Ids that are looked up at once.
_LOOKED_UP: Final = 1_000_000
#: Bytes of a document without its texts.
_VALUE: Final = 400


def open_documents(spec: str | SourceSpec, *, strict: bool = False, keep_empty: bool = False) -> DocumentSource:
    """Opens a collection of documents.

    Files: JSONL, JSON arrays, CSV, Parquet and TSV with named columns (ids as `_id`, `doc_id`, `docno`, `pid` …, texts
    as `text`, `body`, `contents`, `passage` …, `title`, `url`); TSV without names (`id TAB text`, `id TAB title TAB
    text`, MS MARCO's `id TAB url TAB title TAB body`); files of TREC `<DOC>` records; HTML pages; all of them
    compressed or not. BEIR folders (`corpus.jsonl`); other folders, and tar archives, of such files, where a file of
    HTML or plain text is one document whose id is the file's name without ending. ir_datasets and Hugging Face ids.

    Args:
        spec: the source, see `grammar.parse`; `#column` chooses what is the body.
        strict: raise for bytes that are not UTF-8 instead of reading that line as latin-1.
        keep_empty: hand on documents without title and body too.

    Returns:
        The source; it can be iterated any number of times.

    Raises:
        InputError: nothing there, not readable, of no known format, or (irds) an unknown id.
    """
    return DocumentSource(grammar.parse(spec) if isinstance(spec, str) else spec, strict=strict, keep_empty=keep_empty)


class DocumentSource(StreamedSource):
    """The documents of one collection in the order of the source.

    Iterating and `batches` stream: memory does not grow with the source. Documents without title and body are counted
    and left out. One that comes back with the same id and texts is left out and counted as repeated; with other texts
    it is an error. Both are noticed where they lie within the last half a million documents.

    Args:
        spec: the source.
        strict: raise for bytes that are not UTF-8.
        keep_empty: hand on documents without title and body too.
    """

    def __init__(self, spec: SourceSpec, *, strict: bool = False, keep_empty: bool = False) -> None:
        super().__init__(spec, strict=strict, of_irds="docs", form_of=document_form)
        self._keep_empty = keep_empty

    def __iter__(self) -> Iterator[Document]:
        for block in self.batches():
            yield from block

    def batches(self, size: int = _BLOCK) -> Iterator[list[Document]]:
        """The documents in blocks of at most `size`, none of them empty.

        Raises:
            InputError: a fault in the source, with file and line; no document in it at all.
        """
        self._counts, window = SourceCounts(), IdWindow()
        for found, skipped in self._blocks(size):
            self._counts += SourceCounts(read=skipped, skipped=skipped)
            if kept := self._checked(found, window):
                yield kept

    def records(self) -> Iterator[list[FoundDocument]]:
        """Every document as it is in the source, with its place: empty ones and repeated ids, too.

        Raises:
            InputError: a fault in the source, with file and line; no document in it at all.
        """
        return (found for found, _ in self._blocks(_BLOCK) if found)

    def _blocks(self, size: int) -> Iterator[tuple[list[FoundDocument], int]]:
        """The documents, and how many records were skipped between them."""
        stream, read = self._found(), 0
        while taken := list(islice(stream, size)):
            found = [item for item in taken if not isinstance(item, int)]
            read += len(found)
            yield found, sum(item for item in taken if isinstance(item, int))
        if not read:
            raise self._nothing("documents")

    def ids(self) -> Iterator[str]:
        """The ids of `records`; of plain lines of JSON, no more is made.

        Raises:
            InputError: as for `records`.
        """
        return chain.from_iterable(ids for ids, _ in self._by_ids(()))

    def ids_among(self, wanted: pl.Series) -> pl.Series:
        """The ids of `records` that are wanted, in their order.

        Raises:
            InputError: as for `records`.
        """
        ids, found, some = self.ids(), pl.Series(dtype=pl.String), pl.Series(dtype=pl.String)
        while len(more := pl.Series(list(islice(ids, _LOOKED_UP)), dtype=pl.String)) or len(some):
            some = some.append(more)
            # Each look takes as long as there are wanted ones, so that as many are looked up at once.
            if len(more) < _LOOKED_UP or len(some) >= len(wanted):
                found, some = found.append(some.filter(some.is_in(wanted.implode()))), some.clear()
        return found.unique(maintain_order=True)

    def chosen(self, wanted: Collection[str]) -> Iterator[Document]:
        """The documents of `records` with some ids; of plain lines of JSON, no others are made.

        Raises:
            InputError: as for `records`.
        """
        return chain.from_iterable(documents for _, documents in self._by_ids(wanted))

    def _by_ids(self, wanted: Collection[str]) -> Iterator[tuple[list[str], list[Document]]]:
        """The ids of `records`, some at a time, and the documents with wanted ones."""
        read, column = 0, self.spec.column
        path = self._files()[0] if self._form == "beir" else self.spec.path
        for first, data in byte_blocks(path, _AT_ONCE) if self._form in ("jsonl", "beir") else ():
            if not (ids := _plain_ids(data, column)):
                break
            places = [place for place, one in enumerate(ids) if one in wanted]
            lines = block_of(first, data, path).lines if places else []
            chosen = documents_of_rows((json_row(lines[at], path, first + at) for at in places), column, path)
            yield ids, [one.document for one in chosen if not isinstance(one, int)]
            read += len(ids)
        else:
            if read:
                return
        # What was read so far came as plain lines.
        left = (record.document for record in islice(chain.from_iterable(self.records()), read, None))
        while documents := list(islice(left, _BLOCK)):
            yield [one.doc_id for one in documents], [one for one in documents if one.doc_id in wanted]

    def _checked(self, found: list[FoundDocument], window: IdWindow) -> list[Document]:
        documents = [item.document for item in found]
        keys = ["\t".join(document[1:]) for document in documents]
        repeats, conflict = window.add([document.doc_id for document in documents], keys, [one.line for one in found])
        if conflict is not None:
            item = found[conflict.position]
            place = f"in line {conflict.first_line}" if conflict.first_line else "before"
            fault = f"the document '{item.document.doc_id}' occurs {place} with another text"
            raise InputError(fault, "give every document an id of its own", where=item.where, line=item.line or None)
        left_out = set(repeats.tolist())
        empty = {i for i, one in enumerate(documents) if not (normalise(one.title) or normalise(one.body))} - left_out
        repaired = sum(item.repaired for item in found)
        self._counts += SourceCounts(len(found), len(empty), repaired, repeated=len(left_out))
        if not self._keep_empty:
            left_out |= empty
        return [one for i, one in enumerate(documents) if i not in left_out] if left_out else documents

    def _found(self) -> FoundStream:
        spec = self.spec
        if spec.scheme == "irds":
            return (_repaired(FoundDocument(document, "", 0)) for document in irds.documents(spec.location))
        if spec.scheme == "hf":
            rows = hub.records(spec, strict=self._strict)
            return documents_of_rows(rows, spec.column, spec.spec)
        read = partial(file_documents, spec.path, self._form, spec.column, strict=self._strict)
        return shared_stream(spec.path, ("documents", self._form, spec.column, self._strict), read, _length)

    def _files(self) -> list[Path]:
        return saved_files(self.spec.path) if self._form == "saved" else folder_files(self.spec.path, self._form)


def _plain_ids(data: bytes, column: str | None) -> list[str]:
    """The id of each line of JSON; none where a line lacks an id or a text, or may not be what it seems."""
    try:
        frame = pl.read_ndjson(data, infer_schema_length=None)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        return []
    keys = _keys(frame.columns, column)
    lines = line_ends(data) + (not data.endswith(b"\n"))
    if not {"id", "body"} <= keys.keys() or "data" in frame.columns or len(frame) != lines:
        return []
    ids, bodies = frame[keys["id"]], frame[keys["body"]]
    texts = bodies.dtype == pl.String and ids.dtype in (pl.String, pl.Int64)
    if not texts or ids.null_count() or bodies.null_count():
        return []
    ids = ids.cast(pl.String)
    # All values become texts here, and of a name that comes twice another value counts.
    once = data.count(f'"{keys["id"]}"'.encode()) == lines
    changed = ids.str.contains(_CHANGED).any() or bodies.str.contains(_NO_TEXT).any()
    return ids.to_list() if once and not changed else []


#: Bytes of lines that are looked at together; values that may be no texts, and ids that are written otherwise then.
_AT_ONCE: Final = 1 << 24
_NO_TEXT: Final = r"^[\[{]|^(?:true|false)$"
_CHANGED: Final = rf"{_NO_TEXT}|\x00|^\s|\s$|^$|^[-+.0-9]*[.eE][-+0-9eE]*$"


def _length(found: FoundDocument | int) -> int:
    """The characters of a document, and what the value itself takes."""
    return _VALUE if isinstance(found, int) else _VALUE + sum(map(len, found.document))


_TABLE_ENDINGS: Final = frozenset({".jsonl", ".ndjson", ".tsv", ".csv", ".parquet"})
_COMPRESSED: Final = frozenset({".gz", ".zst", ".bz2", ".xz"})
_PAGES: Final = frozenset({".html", ".htm", ".xhtml"})
_TAR_MAGIC: Final = slice(257, 262)
_BOM: Final = b"\xef\xbb\xbf"


def document_form(path: Path, forced: str | None = None) -> str:
    """What kind of source a path is."""
    if compressed.is_folder(path):
        form = formats.detect(path, forced)
        other = form == "beir" and forced is None and formats.corpus_file(path, missing_ok=True) is None
        return "folder" if other else form
    start = compressed.head(path)
    if forced is None and _is_tar(start, path.name):
        return "tar"
    if forced is None and (_ending(path.name) in _PAGES or is_html(start.decode("latin-1"))):
        return "html"
    form = formats.detect(path, forced)
    if form == "xml" and b"<doc>" in start.lower():
        return "trec"
    if form in ("qrels", "run", "qna", "xml"):
        remedy = "give the file of the documents, or name its format with ?format="
        raise InputError(f"a file of the kind '{form}' holds no documents", remedy, where=path)
    return form


def file_documents(path: Path, form: str, column: str | None = None, *, strict: bool = False) -> FoundStream:
    """The documents of a file, a folder or an archive.

    Args:
        strict: raise for bytes that are not UTF-8.
    """
    if form == "folder":
        files = folder_files(path, form)
        if not files:
            raise InputError("an empty folder", "give one that holds documents", where=path)
        return chain.from_iterable(_in_folder(file, column, strict) for file in files)
    if form == "tar":
        return _in_archive(path, column, strict)
    if form in ("html", "trec"):
        blocks = line_blocks(path, strict=strict)
        return trec_records(path, blocks) if form == "trec" else iter([_page(path, blocks)])
    path, form = (folder_files(path, form)[0], "jsonl") if form == "beir" else (path, form)
    if form == "parquet":
        return documents_of_parquet(path, column)
    if form == "lines" or (form == "tsv" and not _has_names(path)):
        return documents_of_lines(path, column, strict=strict)
    return documents_of_rows(rows(path, form, strict=strict), column, path)


def folder_files(folder: Path, form: str) -> list[Path]:
    """The files that a folder's documents come from, by their paths; hidden ones are not among them."""
    if form == "beir":
        return [cast(Path, formats.corpus_file(folder))]
    try:
        found = [path for path in folder.rglob("*") if path.is_file()]
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror})", "change the permissions", where=folder) from error
    names = {path: path.relative_to(folder) for path in found}
    seen = [path for path, name in names.items() if not any(part.startswith(".") for part in name.parts)]
    return sorted(seen, key=lambda path: names[path].as_posix())


def _in_folder(path: Path, column: str | None, strict: bool) -> FoundStream:
    """One file of a folder: a table or TREC file holds many documents, any other is one."""
    if not path.stat().st_size:
        return iter([FoundDocument(Document(_stem(path.name)), path, 1)])
    start = compressed.head(path)
    if _is_tar(start, path.name) or _ending(path.name) in _TABLE_ENDINGS or start.startswith(b"PAR1"):
        return file_documents(path, document_form(path), column, strict=strict)
    text, blocks = start.removeprefix(_BOM).decode("latin-1"), line_blocks(path, strict=strict)
    if formats.is_trec_document(text):
        return trec_records(path, blocks)
    if not is_html(text) and _ending(path.name) not in _PAGES:
        formats.refuse_binary(start, path)
    return iter([_page(path, blocks)])


def _in_archive(path: Path, column: str | None, strict: bool) -> FoundStream:
    """The members of a tar archive in its order; each is copied out for as long as it is read."""
    try:
        with (
            tempfile.TemporaryDirectory(prefix="truerank-") as folder,
            compressed.plain_file(path) as plain,
            tarfile.open(plain, "r:", encoding="utf-8", errors="replace") as archive,
        ):
            for member in archive:
                name = PurePosixPath(member.name)
                if member.isfile() and not any(part.startswith(".") and part != "." for part in name.parts):
                    content, copy = cast(IO[bytes], archive.extractfile(member)), Path(folder) / name.name
                    yield from _member(path / name, content, copy, column, strict)
                    copy.unlink()
    except (tarfile.TarError, OSError, ValueError, OverflowError, RecursionError) as error:  # broken heads, deep nests
        raise InputError(f"a broken tar archive ({error})", "download or copy it again", where=path) from error


def _member(path: Path, content: IO[bytes], copy: Path, column: str | None, strict: bool) -> FoundStream:
    try:
        with copy.open("wb") as target:
            shutil.copyfileobj(content, target, 1 << 20)
    except OSError as error:
        fault = f"cannot be copied out of its archive ({error.strerror or error})"
        raise InputError(fault, "set TMPDIR to a folder with room, or unpack the archive", where=path) from error
    try:
        for found in _in_folder(copy, column, strict):
            yield found if isinstance(found, int) else found._replace(where=path)
    except InputError as error:
        raise InputError(error.fault, error.remedy, where=path, line=error.line) from error


def _page(path: Path, blocks: Iterable[LineBlock]) -> FoundDocument:
    """A file that is one document: a page, or plain text."""
    lines, name = list(blocks), path.name
    text = "\n".join(block.text for block in lines)
    page = _ending(name) in _PAGES or is_html(text)
    document = html_text(text)._replace(doc_id=_stem(name)) if page else Document(_stem(name), body=text.strip())
    return FoundDocument(document, path, 1, any(block.repaired for block in lines))


def _is_tar(start: bytes, name: str) -> bool:
    return start[_TAR_MAGIC] == b"ustar" or (_ending(name) in (".tar", ".tgz") and b"\0" in start[:512])


def _ending(name: str) -> str:
    path = PurePosixPath(name.lower())
    return PurePosixPath(path.stem).suffix if path.suffix in _COMPRESSED else path.suffix


def _stem(name: str) -> str:
    """The name of a file without its endings of compression and format."""
    path = PurePosixPath(name)
    if path.suffix.lower() in _COMPRESSED:
        path = PurePosixPath(path.stem)
    return path.stem or name


_BEGIN: Final = re.compile(r"<doc\b[^>]*>", re.IGNORECASE)
_END: Final = re.compile(r"</doc\s*>", re.IGNORECASE)
_LARGEST_RECORD: Final = 1 << 28


def trec_records(path: Path, blocks: Iterable[LineBlock]) -> Iterator[FoundDocument]:
    """The documents of the `<DOC>` records in the lines of a file."""
    held, line = "", 1
    repaired: set[int] = set()
    for block in blocks:
        held = f"{held}\n{block.text}" if held else block.text
        if not repaired and not held.strip():
            continue
        line = block.first + len(block) - 1 - held.count("\n")
        repaired.update(block.first + offset for offset in block.repaired)
        position = 0
        for end in _END.finditer(held):
            begin = _BEGIN.search(held, position, end.start())
            if begin is None or held[position : begin.start()].strip():
                raise _stray("text outside <DOC>", held[position:], path, line)
            line += held.count("\n", position, begin.start())
            last = line + held.count("\n", begin.start(), end.end())
            touched = bool(repaired) and any(line <= number <= last for number in repaired)
            document = trec_document(held[begin.end() : end.start()])
            if not document.doc_id:
                raise InputError("a <DOC> without <DOCNO>", "give it a number", where=path, line=line)
            yield FoundDocument(document, path, line, touched)
            line, position = last, end.end()
        held = held[position:].lstrip(" \t\r")
        if position:
            repaired = {number for number in repaired if number >= line}
        if len(held) > _LARGEST_RECORD:
            raise InputError("a <DOC> of more than 256 MiB", "is its </DOC> missing?", where=path, line=line)
    if held.strip():
        raise _stray("a <DOC> without </DOC>" if _BEGIN.search(held) else "text outside <DOC>", held, path, line)


def _stray(fault: str, held: str, path: Path, line: int) -> InputError:
    blank = held[: len(held) - len(held.lstrip())]
    remedy = "put every document between <DOC> and </DOC>; if the file is cut off, copy it again"
    return InputError(fault, remedy, where=path, line=line + blank.count("\n"))
