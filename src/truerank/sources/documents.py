"""Documents: a collection streamed as often as needed, with the counts of what was read."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Final

from truerank.errors import InputError
from truerank.records import Document
from truerank.sources import compressed, document_files, document_rows, grammar, hub, irds
from truerank.sources.blocks import SourceCounts
from truerank.sources.document_rows import FoundDocument, FoundStream
from truerank.sources.duplicates import IdWindow
from truerank.sources.grammar import SourceSpec
from truerank.sources.rows import saved_files
from truerank.sources.sharing import shared_stream
from truerank.sources.streamed import StreamedSource
from truerank.text.normalising import normalise

_BLOCK: Final = 1 << 10
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


def read_documents(spec: str | SourceSpec, *, strict: bool = False) -> Iterator[Document]:
    """Streams the documents of a collection; arguments and errors as in `open_documents`."""
    return iter(open_documents(spec, strict=strict))


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
        super().__init__(spec, strict=strict)
        self._keep_empty = keep_empty
        self._form = ""
        if spec.scheme == "irds":
            irds.check(spec.location, "docs")
        elif spec.scheme == "file":
            self._form = document_files.document_form(spec.path, spec.format)

    def __iter__(self) -> Iterator[Document]:
        for block in self.batches():
            yield from block

    def batches(self, size: int = _BLOCK) -> Iterator[list[Document]]:
        """The documents in blocks of at most `size`, none of them empty.

        Raises:
            InputError: a fault in the source, with file and line; no document in it at all.
        """
        self._counts = SourceCounts()
        window = IdWindow()
        stream = self._found()
        while taken := list(islice(stream, size)):
            found = [item for item in taken if not isinstance(item, int)]
            skipped = sum(item for item in taken if isinstance(item, int))
            self._counts = replace(
                self._counts, read=self._counts.read + skipped, skipped=self._counts.skipped + skipped
            )
            if kept := self._checked(found, window):
                yield kept
        if not self._counts.read:
            raise InputError("no documents in it", "give a source that holds some", where=self.spec.location)

    def records(self, size: int = _BLOCK) -> Iterator[list[FoundDocument]]:
        """Every document as it stands in the source, with its place: empty ones and repeated ids, too.

        Raises:
            InputError: a fault in the source, with file and line; no document in it at all.
        """
        stream, read = self._found(), 0
        while taken := list(islice(stream, size)):
            found = [item for item in taken if not isinstance(item, int)]
            read += len(found)
            if found:
                yield found
        if not read:
            raise InputError("no documents in it", "give a source that holds some", where=self.spec.location)

    def _checked(self, found: list[FoundDocument], window: IdWindow) -> list[Document]:
        documents = [item.document for item in found]
        keys = ["\t".join(document[1:]) for document in documents]
        repeats, conflict = window.repeats(
            [document.doc_id for document in documents], keys, [item.line for item in found]
        )
        if conflict is not None:
            item = found[conflict.position]
            place = f"in line {conflict.first_line}" if conflict.first_line else "before"
            raise InputError(
                f"the document '{item.document.doc_id}' stands {place} with another text",
                "give every document an id of its own",
                where=item.where,
                line=item.line or None,
            )
        left_out = set(repeats.tolist())
        empty = {i for i, one in enumerate(documents) if not (normalise(one.title) or normalise(one.body))} - left_out
        counts = self._counts
        self._counts = replace(
            counts,
            read=counts.read + len(found),
            empty=counts.empty + len(empty),
            repaired=counts.repaired + sum(item.repaired for item in found),
            repeated=counts.repeated + len(left_out),
        )
        if not self._keep_empty:
            left_out |= empty
        return [one for i, one in enumerate(documents) if i not in left_out] if left_out else documents

    def _found(self) -> FoundStream:
        spec = self.spec
        if spec.scheme == "irds":
            return (FoundDocument(document, "", 0, repaired) for document, repaired in irds.documents(spec.location))
        if spec.scheme == "hf":
            rows = hub.records(spec, strict=self._strict)
            return document_rows.documents_of_rows(rows, spec.column, spec.spec)
        read = partial(document_files.file_documents, spec.path, self._form, spec.column, strict=self._strict)
        return shared_stream(spec.path, ("documents", self._form, spec.column, self._strict), read, _length)

    def _file_fingerprint(self) -> str:
        path = self.spec.path
        if not compressed.is_folder(path):
            return compressed.fingerprint(path)
        files = saved_files(path) if self._form == "saved" else document_files.folder_files(path, self._form)
        together = hashlib.sha256()
        for file in files:
            name = file.relative_to(path).as_posix()
            together.update(f"{name}\n{compressed.fingerprint(file)}\n".encode())
        return f"sha256:{together.hexdigest()};files={len(files)}"


def _length(found: FoundDocument | int) -> int:
    """The characters of a document, and what the value itself takes."""
    return _VALUE if isinstance(found, int) else _VALUE + sum(map(len, found.document))
