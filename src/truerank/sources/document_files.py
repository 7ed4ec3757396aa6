"""The documents of files, folders and archives, whatever their format."""

from __future__ import annotations

import io
import re
import tarfile
import tempfile
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple, cast

from truerank.errors import InputError
from truerank.records import Document
from truerank.sources import beir, compressed, formats
from truerank.sources.document_rows import (
    FoundDocument,
    FoundStream,
    documents_of_lines,
    documents_of_parquet,
    documents_of_rows,
    has_names,
)
from truerank.sources.lines import LineBlock, block_of, line_blocks, whole_text
from truerank.sources.markup import html_text, is_html, trec_document
from truerank.sources.rows import rows

__all__ = ["FoundDocument", "document_form", "file_documents", "folder_files", "trec_records"]

_TABLE_ENDINGS: Final = frozenset({".jsonl", ".ndjson", ".tsv", ".csv", ".parquet"})
_COMPRESSED: Final = frozenset({".gz", ".zst", ".bz2", ".xz"})
_PAGES: Final = frozenset({".html", ".htm", ".xhtml"})
_TAR_MAGIC: Final = slice(257, 262)
_LARGEST: Final = 1 << 28


def document_form(path: Path, forced: str | None = None) -> str:
    """What kind of source a path is."""
    if compressed.is_folder(path):
        if forced not in (None, "beir"):
            raise InputError(f"a folder cannot be read as {forced}", "give a file in it", where=path)
        if forced is None and formats.is_saved(path):
            return "saved"
        return "beir" if forced == "beir" or beir.corpus_file(path, missing_ok=True) else "folder"
    start = compressed.head(path)
    if forced is None and _is_tar(start, path.name):
        return "tar"
    if forced is None and (_ending(path.name) in _PAGES or is_html(start.decode("latin-1"))):
        return "html"
    form = formats.detect(path, forced)
    if form == "xml" and b"<doc>" in start.lower():
        return "trec"
    if form in ("qrels", "run", "qna", "xml"):
        raise InputError(
            f"a file of the kind '{form}' holds no documents",
            "give the file of the documents, or name its format with ?format=",
            where=path,
        )
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
    if form == "html":
        return iter([_page(path, path.name, *whole_text(path, strict=strict))])
    if form == "trec":
        return _trec(trec_records(path, strict=strict), path)
    return _in_table(path, form, column, strict)


def folder_files(folder: Path, form: str) -> list[Path]:
    """The files that a folder's documents come from, by their paths; hidden ones are not among them."""
    if form == "beir":
        return [cast(Path, beir.corpus_file(folder))]
    try:
        found = [path for path in folder.rglob("*") if path.is_file()]
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror})", "change the permissions", where=folder) from error
    names = {path: path.relative_to(folder) for path in found}
    seen = [path for path, name in names.items() if not any(part.startswith(".") for part in name.parts)]
    return sorted(seen, key=lambda path: names[path].as_posix())


def _in_table(path: Path, form: str, column: str | None, strict: bool) -> FoundStream:
    if form == "beir":
        path, form = cast(Path, beir.corpus_file(path)), "jsonl"
    if form == "parquet":
        return documents_of_parquet(path, column)
    if form == "lines" or (form == "tsv" and not has_names(path)):
        return documents_of_lines(path, column, strict=strict)
    return documents_of_rows(rows(path, form, strict=strict), column, path)


def _in_folder(path: Path, column: str | None, strict: bool) -> FoundStream:
    """One file of a folder: a table or TREC file holds many documents, any other is one."""
    if not path.stat().st_size:
        return iter([FoundDocument(Document(_stem(path.name)), path, 1)])
    start = compressed.head(path)
    if _is_tar(start, path.name) or _ending(path.name) in _TABLE_ENDINGS or start.startswith(b"PAR1"):
        return file_documents(path, document_form(path), column, strict=strict)
    text = start.decode("latin-1")
    if formats.is_trec_document(text):
        return _trec(trec_records(path, strict=strict), path)
    if not is_html(text) and _ending(path.name) not in _PAGES:
        formats.refuse_binary(start, path)
    return iter([_page(path, path.name, *whole_text(path, strict=strict))])


def _in_archive(path: Path, column: str | None, strict: bool) -> FoundStream:
    """The members of a tar archive in its order; one that has to be opened as a file is copied out for that long."""
    stream = cast(io.RawIOBase, io.BufferedReader(_Chunks(compressed.chunks(path))))
    try:
        with tarfile.open(fileobj=stream, mode="r|", encoding="utf-8", errors="replace") as archive:
            for member in archive:
                name = PurePosixPath(member.name)
                if not member.isfile() or any(part.startswith(".") and part != "." for part in name.parts):
                    continue
                content = cast(io.BufferedReader, archive.extractfile(member))
                yield from _member(path / name, content, member.size, column, strict)
    except (tarfile.TarError, ValueError, OverflowError, RecursionError) as error:  # broken heads, deep nests
        raise InputError(f"a broken tar archive ({error})", "download or copy it again", where=path) from error


def _member(path: Path, content: io.BufferedReader, size: int, column: str | None, strict: bool) -> FoundStream:
    endings = {_ending(path.name), Path(path.name).suffix.lower()}
    if endings & (_TABLE_ENDINGS | _COMPRESSED) or size > _LARGEST:
        with tempfile.TemporaryDirectory(prefix="truerank-") as folder:
            copy = Path(folder) / path.name
            try:
                with copy.open("wb") as target:
                    while piece := content.read(1 << 20):
                        target.write(piece)
            except OSError as error:
                fault = f"cannot be copied out of its archive ({error.strerror or error})"
                raise InputError(
                    fault, "set TMPDIR to a folder with room, or unpack the archive", where=path
                ) from error
            for found in _in_folder(copy, column, strict):
                yield found if isinstance(found, int) else found._replace(where=path)
        return
    block = block_of(1, content.read().removeprefix(b"\xef\xbb\xbf"), path, strict=strict)
    if formats.is_trec_document(block.text):
        yield from _trec(trec_records(path, blocks=[block]), path)
        return
    if not is_html(block.text) and _ending(path.name) not in _PAGES:
        formats.refuse_binary(block.text[: compressed.HEAD_SIZE].encode("latin-1", "replace"), path)
    yield _page(path, path.name, block.text, block.repaired)


def _page(path: Path, name: str, text: str, repaired: Iterable[int]) -> FoundDocument:
    """A file that is one document: a page, or plain text."""
    touched = any(True for _ in repaired)
    if _ending(name) in _PAGES or is_html(text):
        page = html_text(text)
        return FoundDocument(Document(_stem(name), page.url, page.title, page.body), path, 1, touched)
    return FoundDocument(Document(_stem(name), body=text.strip()), path, 1, touched)


def _trec(records: Iterator[TrecRecord], path: Path) -> FoundStream:
    for record in records:
        found = trec_document(record.text)
        if not found.doc_id:
            raise InputError("a <DOC> without <DOCNO>", "give it a number", where=path, line=record.line)
        yield FoundDocument(Document(*found), path, record.line, record.repaired)


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


_READS_AT_END: Final = 64


class _Chunks(io.RawIOBase):
    """Pieces of bytes as a stream that can only be read forward."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._held = b""
        self._ended = 0

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Fills as much of the buffer as the next piece does."""
        while not self._held:
            piece = next(self._pieces, None)
            if piece is None:
                # tarfile passes over a member block by block, past the end too, and a head may claim 2^60 bytes.
                self._ended += 1
                if self._ended > _READS_AT_END:
                    raise tarfile.ReadError("unexpected end of data")
                return 0
            self._held = piece
        size = min(len(buffer), len(self._held))
        buffer[:size] = self._held[:size]
        self._held = self._held[size:]
        return size


_BEGIN: Final = re.compile(r"<doc\b[^>]*>", re.IGNORECASE)
_END: Final = re.compile(r"</doc\s*>", re.IGNORECASE)
_LARGEST_RECORD: Final = 1 << 28


class TrecRecord(NamedTuple):
    """What stands between `<DOC>` and `</DOC>`, the line of the former, and whether one of its lines was repaired."""

    text: str
    line: int
    repaired: bool


def trec_records(
    path: Path, *, strict: bool = False, blocks: Iterable[LineBlock] | None = None
) -> Iterator[TrecRecord]:
    """The records of a file of `<DOC>` records, compressed or not.

    Args:
        strict: raise for bytes that are not UTF-8.
    """
    held, line = "", 1
    repaired: set[int] = set()
    for block in line_blocks(path, strict=strict) if blocks is None else blocks:
        held = f"{held}\n{block.text}" if held else block.text
        if not repaired and not held.strip():
            continue
        line = block.first + len(block) - 1 - held.count("\n")
        repaired.update(block.first + offset for offset in block.repaired)
        position = 0
        for end in _END.finditer(held):
            begin = _begin(held, position, end.start(), path, line)
            line += held.count("\n", position, begin.start())
            last = line + held.count("\n", begin.start(), end.end())
            touched = bool(repaired) and any(line <= number <= last for number in repaired)
            yield TrecRecord(held[begin.end() : end.start()], line, touched)
            line, position = last, end.end()
        held = held[position:].lstrip(" \t\r")
        if position:
            repaired = {number for number in repaired if number >= line}
        if len(held) > _LARGEST_RECORD:
            raise InputError("a <DOC> of more than 256 MiB", "is its </DOC> missing?", where=path, line=line)
    if held.strip():
        fault = "a <DOC> without </DOC>" if _BEGIN.search(held) else "text outside <DOC>"
        number = line + held.count("\n", 0, len(held) - len(held.lstrip()))
        raise InputError(fault, "the file is cut off or broken: copy it again", where=path, line=number)


def _begin(held: str, start: int, stop: int, path: Path, line: int) -> re.Match[str]:
    begin = _BEGIN.search(held, start, stop)
    if begin is None or held[start : begin.start()].strip():
        blank = len(held[start:]) - len(held[start:].lstrip())
        raise InputError(
            "text outside <DOC>",
            "put every document between <DOC> and </DOC>",
            where=path,
            line=line + held.count("\n", start, start + blank),
        )
    return begin
