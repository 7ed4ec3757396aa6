"""Building an index: documents analysed block by block, sorted run by run, merged on disk, moved into place whole."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any, Final, Literal, NamedTuple, Self

import numpy as np
import polars as pl
from numpy.lib.format import dtype_to_descr, write_array_header_1_0
from numpy.typing import NDArray

from truerank.errors import InputError, OptionError
from truerank.lexical.analysis import Analyser
from truerank.lexical.index import (
    FORMAT_VERSION,
    KIND,
    Block,
    BlockTask,
    Index,
    IndexField,
    Longs,
    RunBuffer,
    SortedRun,
    manifest_hash,
    term_flags,
)
from truerank.lexical.presets import DEFAULT_PRESET, PresetName, analyser_of
from truerank.loading import json_file
from truerank.options import Flag, Options, Processes, command
from truerank.records import Document
from truerank.sources.documents import DocumentSource, open_documents
from truerank.work.artifacts import hash_file, installed_versions, place_of, runs_now
from truerank.work.engines import LocalEngine, give_back, in_order
from truerank.work.kept import RECORD
from truerank.work.progress import Progress, Quiet

__all__ = ["AnalysisOptions", "build_index", "index", "move_folder", "temporary_folder"]

#: Postings that are moved at once.
_CHUNK: Final = 1 << 21
#: Terms of all runs that are merged at once, and terms of one run at least.
_TERMS: Final = 1 << 20
_FEWEST_TERMS: Final = 1 << 8
_STRINGS: Final = 1 << 16
#: What killed processes leave: temporary files and folders.
_LEFT: Final = re.compile(r"\..+\.(\d+)(\.old)?\.tmp")


class ArrayFile:
    """A `.npy` file that is written piece by piece, with the bytes that `numpy.save` gives the whole array.

    Unlike a memory-mapped array it takes no memory, and a full disk is an error.

    Args:
        path: the new file.
        kind: of the values.
        columns: the shape behind the first axis.
    """

    def __init__(self, path: Path, kind: np.dtype[Any] | type, columns: tuple[int, ...] = ()) -> None:
        self._kind, self._columns, self._rows = np.dtype(kind), columns, 0
        self._file = path.open("wb")
        self._header()

    def write(self, values: NDArray[Any]) -> None:
        """Adds rows."""
        self._file.write(np.ascontiguousarray(values, self._kind).data)
        self._rows += len(values)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._file:
            self._file.seek(0)
            self._header()  # of the same length: NumPy leaves room for any number of rows

    def _header(self) -> None:
        shape = (self._rows, *self._columns)
        text = {"descr": dtype_to_descr(self._kind), "fortran_order": False, "shape": shape}
        write_array_header_1_0(self._file, text)


class StringFile:
    """Texts one behind the other (`NAME.bin`), and the places where they begin (`NAME.starts.npy`).

    Args:
        folder: where the two files lie.
        name: of the files.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._texts = (folder / f"{name}.bin").open("wb")
        self._starts = ArrayFile(folder / f"{name}.starts.npy", np.int64)
        self._starts.write(np.zeros(1, np.int64))
        self._size = 0

    def write(self, texts: Sequence[str]) -> None:
        """Adds texts."""
        encoded = [text.encode() for text in texts]
        ends = self._size + np.cumsum(np.fromiter(map(len, encoded), np.int64, len(encoded)))
        self._texts.write(b"".join(encoded))
        self._starts.write(ends)
        self._size = int(ends[-1]) if encoded else self._size

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._texts.close()
        self._starts.__exit__(kind, error, at)

    @staticmethod
    def read(folder: Path, name: str) -> Iterator[pl.Series]:
        """All texts, in pieces."""
        starts = np.load(folder / f"{name}.starts.npy", mmap_mode="r")
        with (folder / f"{name}.bin").open("rb") as texts:
            for first in range(0, len(starts) - 1, _STRINGS):
                ends = starts[first : first + _STRINGS + 1].tolist()
                piece = texts.read(ends[-1] - ends[0])
                places = [end - ends[0] for end in ends]
                yield pl.Series([piece[a:b].decode() for a, b in pairwise(places)], dtype=pl.String)


@dataclass(frozen=True)
class StoredRun:
    """A run that lies on the disk in plain binary files, of which pieces are read.

    Attributes:
        folder: where its files lie.
        documents: how many documents it covers.
        terms: how many terms it has.
        postings: how many postings it has.
        largest: the largest count in it.
    """

    folder: Path
    documents: int
    terms: int
    postings: int
    largest: int

    @property
    def count_type(self) -> np.dtype[Any]:
        """The type of its counts."""
        return _smallest(self.largest)

    def read(self, name: str, kind: np.dtype[Any] | type, start: int = 0, stop: int | None = None) -> NDArray[Any]:
        """A piece of one of its arrays."""
        count = -1 if stop is None else stop - start
        return np.fromfile(self.folder / name, kind, count, offset=start * np.dtype(kind).itemsize)

    def remove(self) -> None:
        """Removes its files."""
        shutil.rmtree(self.folder)

    def names(self, start: int, stop: int) -> list[str]:
        """Some of its terms, in order."""
        if start == stop:
            return []
        begin, *_, end = self.read("term_starts", np.int64, start, stop + 1).tolist()
        with (self.folder / "terms").open("rb") as stream:
            stream.seek(begin)
            return stream.read(end - begin).decode().split("\n")[:-1]


def store_run(run: SortedRun, folder: Path, first: int, documents: int) -> StoredRun:
    """Writes a run."""
    folder.mkdir(parents=True)
    postings, vectors = run.postings, run.by_document()
    stored = StoredRun(folder, documents, len(run.terms), len(postings.terms), int(postings.counts.max(initial=0)))
    lines = [f"{term}\n".encode() for term in run.terms]
    (folder / "terms").write_bytes(b"".join(lines))
    arrays: dict[str, NDArray[Any]] = {
        "term_starts": _starts(np.fromiter(map(len, lines), np.int64, len(lines))),
        "starts": _starts(np.bincount(postings.terms, minlength=len(lines))),
        "documents": postings.documents,
        "counts": postings.counts.astype(stored.count_type),
        "vector_sizes": np.bincount(vectors.documents - first, minlength=documents).astype(np.int32),
        "vector_terms": vectors.terms,
        "vector_counts": vectors.counts.astype(stored.count_type),
    }
    for name, array in arrays.items():
        (folder / name).write_bytes(np.ascontiguousarray(array).data)
    return stored


def merge_runs(runs: Sequence[StoredRun], folder: Path, fields: int) -> None:
    """Merges runs of consecutive documents into the files of an index; the same bytes however the runs were cut.

    Terms are merged piece by piece in their order, and with them their postings, so that every file is read and written
    in one direction. The runs' files are removed when they are not needed any more.
    """
    kind = _smallest(max(run.largest for run in runs))
    with ExitStack() as opened:

        def array(name: str, kind: np.dtype[Any] | type, columns: tuple[int, ...] = ()) -> ArrayFile:
            return opened.enter_context(ArrayFile(folder / f"{name}.npy", kind, columns))

        terms = opened.enter_context(StringFile(folder, "terms"))
        flags, totals = array("terms.flags", np.uint8), array("terms.totals", np.int64, (fields,))
        starts, documents = array("postings.starts", np.int64), array("postings.documents", np.int32)
        counts = array("postings.counts", kind, (fields,))
        starts.write(np.zeros(1, np.int64))
        end = 0
        for piece in _merged_terms(runs):
            frequency = np.zeros(len(piece.names), np.int64)
            for part in piece.parts:
                frequency[part.places] += np.diff(part.starts)
            terms.write(piece.names.to_list())
            flags.write(term_flags(piece.names))
            starts.write(end + np.cumsum(frequency))
            end += int(frequency.sum())
            for some_documents, some_counts, some_totals in _postings(piece.parts, _starts(frequency), kind, fields):
                documents.write(some_documents)
                counts.write(some_counts)
                totals.write(some_totals)
    for run in runs:
        (run.folder / "documents").unlink()
        (run.folder / "counts").unlink()
    _merge_vectors(runs, folder, kind, fields)


class _Part(NamedTuple):
    """Consecutive terms of a run: their places among the terms of a piece, ascending, and where their postings begin
    in the run, shape (terms + 1,)."""

    run: StoredRun
    places: Longs
    starts: Longs


class _Piece(NamedTuple):
    """Consecutive terms of the index, and where they are in the runs."""

    names: pl.Series
    parts: list[_Part]


def _merged_terms(runs: Sequence[StoredRun]) -> Iterator[_Piece]:
    """The terms of all runs in order; what number each has now is written beside the run."""
    at_once = max(_FEWEST_TERMS, _TERMS // len(runs))
    cursors, number = [0] * len(runs), 0
    while any(cursor < run.terms for cursor, run in zip(cursors, runs, strict=True)):
        stops = [min(cursor + at_once, run.terms) for cursor, run in zip(cursors, runs, strict=True)]
        names = [
            pl.Series(run.names(cursor, stop), dtype=pl.String)
            for run, cursor, stop in zip(runs, cursors, stops, strict=True)
        ]
        # Up to this term all are known.
        last = [own[-1] for own, stop, run in zip(names, stops, runs, strict=True) if stop < run.terms]
        if last:
            names = [own.head(int(own.search_sorted(min(last), side="right"))) for own in names]
        every = pl.concat(names)
        merged = every.unique().sort()
        numbered = pl.DataFrame({"term": merged, "place": np.arange(len(merged))})
        joined = every.to_frame("term").join(numbered, on="term", how="left", maintain_order="left")["place"].to_numpy()
        parts = []
        for at, own in enumerate(np.split(joined, np.cumsum([len(one) for one in names])[:-1])):
            if len(own):
                with (runs[at].folder / "numbers").open("ab") as stream:
                    stream.write((number + own).astype(np.int32).data)
                starts = runs[at].read("starts", np.int64, cursors[at], cursors[at] + len(own) + 1)
                parts.append(_Part(runs[at], own, starts))
                cursors[at] += len(own)
        number += len(merged)
        yield _Piece(merged, parts)


def _postings(
    parts: Sequence[_Part], starts: Longs, kind: np.dtype[Any], fields: int
) -> Iterator[tuple[NDArray[np.int32], NDArray[Any], Longs]]:
    """The postings of a piece's terms and, for each term, the total of its counts, in chunks.

    Of each term they go run after run: since runs follow one another, so do the documents of a term.
    """
    for first, last in _term_chunks(starts):
        begin, size = int(starts[first]), int(starts[last] - starts[first])
        documents, counts = np.empty(size, np.int32), np.empty((size, fields), kind)
        free = starts[first:last] - begin
        for run, places, own in parts:
            a, b = np.searchsorted(places, (first, last)).tolist()
            if a == b:
                continue
            s, e = int(own[a]), int(own[b])
            sizes, chosen = np.diff(own[a : b + 1]), places[a:b] - first
            targets = np.repeat(free[chosen] - own[a:b] + s, sizes) + np.arange(e - s)
            documents[targets] = run.read("documents", np.int32, s, e)
            counts[targets] = run.read("counts", run.count_type, s * fields, e * fields).reshape(-1, fields)
            free[chosen] += sizes
        totals = np.add.reduceat(counts, starts[first:last] - begin, axis=0, dtype=np.int64)
        yield documents, counts, totals


def _merge_vectors(runs: Sequence[StoredRun], folder: Path, kind: np.dtype[Any], fields: int) -> None:
    with (
        ArrayFile(folder / "vectors.terms.npy", np.int32) as terms,
        ArrayFile(folder / "vectors.counts.npy", kind, (fields,)) as counts,
        ArrayFile(folder / "vectors.starts.npy", np.int64) as starts,
    ):
        starts.write(np.zeros(1, np.int64))
        end = 0
        for run in runs:
            numbers = run.read("numbers", np.int32)
            terms.write(numbers[run.read("vector_terms", np.int32)])
            counts.write(run.read("vector_counts", run.count_type).reshape(-1, fields))
            starts.write(end + np.cumsum(run.read("vector_sizes", np.int32), dtype=np.int64))
            end += run.postings
            run.remove()


def _term_chunks(starts: Longs) -> Iterator[tuple[int, int]]:
    """Ranges of terms with about `_CHUNK` postings each; a term is never cut."""
    first, last = 0, len(starts) - 1
    while first < last:
        stop = int(np.searchsorted(starts, starts[first] + _CHUNK, side="left"))
        stop = min(max(stop, first + 1), last)
        yield first, stop
        first = stop


def _starts(sizes: NDArray[Any]) -> Longs:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)])


def _smallest(largest: int) -> np.dtype[Any]:
    return np.dtype(next(kind for kind in (np.uint8, np.uint16, np.int32) if largest <= np.iinfo(kind).max))


#: A run is sorted and written once it holds so many postings (about 200 MB with what sorting needs) or terms.
RUN_POSTINGS: Final = 1 << 22
RUN_TERMS: Final = 1 << 20
TokeniserName = Literal["lucene", "alphanumeric", "letters", "terrier", "whitespace"]
StemmerName = Literal["none", "porter", "english", "krovetz"]


@dataclass(frozen=True)
class AnalysisOptions(Options):
    """How texts become terms.

    Attributes:
        preset: whose analyser is used.
        tokeniser: in place of the preset's tokeniser.
        stopwords: in place of the preset's list.
        stemmer: in place of the preset's stemmer.
    """

    preset: PresetName = DEFAULT_PRESET
    tokeniser: TokeniserName | None = None
    stopwords: Annotated[str | None, Flag(metavar="none|lucene|grammar|FILE")] = None
    stemmer: StemmerName | None = None


def build_index(
    source: str | DocumentSource,
    out: str | Path,
    *,
    analyser: Analyser | None = None,
    fields: Sequence[str] = ("contents",),
    workers: int = 1,
    strict: bool = False,
    run_postings: int = RUN_POSTINGS,
    progress: Progress | None = None,
) -> Index:
    """Builds an index of a collection; the same collection and analyser give the same bytes.

    Documents are streamed, and terms and postings are sorted in runs on the disk, so that the memory needed grows with
    the number of documents only (by about 60 bytes each). The index appears whole or not at all; one that stands
    there already is replaced when the new one is complete.

    Args:
        source: the documents, see `sources.open_documents`.
        out: the folder of the index.
        analyser: how texts become terms; default: as Anserini does.
        fields: `contents` (title and body), `title`, `body`, `url`, or NAME=PART+PART.
        workers: processes that analyse documents.
        strict: treat bytes that are not UTF-8 as an error.
        run_postings: how many postings are sorted at once.
        progress: receives the number of documents done.

    Returns:
        The index, opened.

    Raises:
        InputError: a fault in the documents, an id that occurs twice or holds a blank, no document with a term, fields
            of one name, or a folder that holds something else.
    """
    documents = open_documents(source, strict=strict) if isinstance(source, str) else source
    parts = tuple(IndexField.parse(text) for text in fields)
    if len({part.name for part in parts}) != len(parts) or not parts:
        raise OptionError("fields", "fields need different names", "name each field once")
    target, progress = Path(out).absolute(), progress or Quiet()
    if target.is_dir() and any(target.iterdir()) and not Index.is_index(target):
        raise InputError("the folder holds something that is not an index", "choose another with `out`", where=target)
    replaceable(target)
    with temporary_folder(target) as folder:
        task = BlockTask(analyser or Analyser(), parts)
        progress.start("indexing", None)
        runs, lengths = _sort_blocks(_blocks(task, documents, workers), folder, run_postings, progress, documents)
        if not sum(run.postings for run in runs):
            raise InputError(
                "no document has a term", "check the analyser and the fields", where=documents.spec.location
            )
        progress.start("merging", None)
        merge_runs(runs, folder, len(parts))
        np.save(folder / "documents.lengths.npy", lengths)
        _write_order(folder, documents)
        _write_manifest(folder, documents, task)
        move_folder(folder, target)
    give_back()
    return Index(target)


@command
def index(
    source: Annotated[str | DocumentSource, Flag(metavar="SRC", positional=True, reads=str)],
    out: Annotated[str | Path, Flag(metavar="DIR", reads=Path)],
    *,
    analysis: AnalysisOptions = AnalysisOptions(),
    fields: Annotated[str, Flag(metavar="NAME[=PART+PART],…")] = "contents",
    workers: Processes = 1,
    strict: bool = False,
    progress: Progress | None = None,
) -> Index:
    """Builds an index of a document collection.

    Postings are sorted on disk, so that memory does not grow with them. The index appears as a whole or not at all.

    Args:
        source: documents: a path, irds:ID or hf:ORG/NAME.
        out: the folder of the index.
        analysis: how texts become terms.
        fields: fields of the index, made of url, title and body; contents is title+body.
        workers: processes that analyse documents.
        strict: treat bytes that are not UTF-8 as an error.
        progress: receives the number of documents done.

    Returns:
        The index, opened.

    Raises:
        InputError: as in `build_index`, or an analyser that does not exist.

    Examples:

        truerank index docs.trec.gz --out index/

        truerank index irds:msmarco-document --fields url,title,body --out index/

        truerank index corpus.jsonl --preset terrier --stopwords terrier.txt --out index/
    """
    own = asdict(analysis)
    analyser = analyser_of(own.pop("preset"), **own)
    names = fields.split(",")
    return build_index(source, out, analyser=analyser, fields=names, workers=workers, strict=strict, progress=progress)


class _Documents(NamedTuple):
    """Consecutive documents, the first of which has the number `first`."""

    number: int
    first: int
    documents: list[Document]


class _Analysis(NamedTuple):
    """Analyses documents; a worker process remembers the terms of words between blocks."""

    task: BlockTask

    def open(self) -> Callable[[_Documents], Block]:
        """The function that does it."""
        return lambda block: self.task(block.first, block.documents)


def _blocks(task: BlockTask, documents: DocumentSource, workers: int) -> Iterator[Block]:
    """The analysed blocks in order."""

    def numbered() -> Iterator[_Documents]:
        first = 0
        for number, block in enumerate(documents.batches()):
            yield _Documents(number, first, block)
            first += len(block)

    yield from in_order(LocalEngine(workers if workers > 1 else 0).run(_Analysis(task), numbered()))


def _sort_blocks(
    blocks: Iterable[Block], folder: Path, run_postings: int, progress: Progress, documents: DocumentSource
) -> tuple[list[StoredRun], Any]:
    """Writes the runs and the ids; returns the runs and the lengths, shape (documents, fields)."""
    runs: list[StoredRun] = []
    lengths: list[Any] = []
    buffer, first, seen = RunBuffer(), 0, 0

    def close() -> None:
        nonlocal buffer, first
        if seen > first:
            runs.append(store_run(buffer.sorted(), folder / f"run-{len(runs)}", first, seen - first))
            buffer, first = RunBuffer(), seen

    with StringFile(folder, "documents") as ids:
        for block in blocks:
            ids.write(_checked(block.ids, documents))
            buffer.add(block)
            lengths.append(block.lengths)
            seen += len(block.ids)
            progress.advance(len(block.ids))
            if buffer.size >= run_postings or len(buffer.numbers) >= RUN_TERMS:
                close()
    if not seen:
        raise InputError("no document with a text", "check the source", where=documents.spec.location)
    close()
    return runs, np.concatenate(lengths)


def _checked(ids: list[str], documents: DocumentSource) -> list[str]:
    """The ids, if they can be in a run."""
    for identifier in ids:
        if identifier.split() != [identifier]:
            raise InputError(
                f"the id '{identifier}' holds a blank, which a run cannot hold" if identifier else "an empty id",
                "give every document an id of one word",
                where=documents.spec.location,
            )
    return ids


def kept_index(source: str, folder: Path, analyser: Analyser, progress: Progress) -> Index:
    """The index that unfinished work keeps; built where it is not there, or not as it was built."""
    with contextlib.suppress(InputError):
        return Index(folder)
    shutil.rmtree(folder, ignore_errors=True)
    return build_index(source, folder, analyser=analyser, progress=progress)


def _write_order(folder: Path, documents: DocumentSource) -> None:
    """Where each document stands among all by the order of ids; an id that occurs twice is found here at the latest."""
    ids = pl.concat(StringFile.read(folder, "documents"))
    order = ids.arg_sort().to_numpy()
    ordered = ids.gather(order)
    same = np.flatnonzero((ordered[1:] == ordered[:-1]).to_numpy())
    if len(same):
        raise InputError(
            f"the id '{ordered[int(same[0])]}' occurs twice (the other time with the document number "
            f"{order[same[0] + 1] + 1})",
            "give every document an id of its own",
            where=documents.spec.location,
        )
    ranks = np.empty(len(ids), np.int32)
    ranks[order] = np.arange(len(ids), dtype=np.int32)
    np.save(folder / "documents.ranks.npy", ranks)


def _write_manifest(folder: Path, documents: DocumentSource, task: BlockTask) -> None:
    files = sorted(path for path in folder.iterdir() if path.is_file())
    manifest = {
        "kind": KIND,
        "version": FORMAT_VERSION,
        "versions": installed_versions("truerank", "PyStemmer", "krovetzstemmer"),
        "source": {"name": documents.spec.spec, "fingerprint": documents.fingerprint, **asdict(documents.counts)},
        "analyser": task.analyser.json(),
        "fields": {part.name: list(part.parts) for part in task.fields},
        "files": {path.name: {"bytes": path.stat().st_size, "sha256": hash_file(path)} for path in files},
    }
    text = json.dumps({**manifest, "sha256": manifest_hash(manifest)}, indent=2, ensure_ascii=False) + "\n"
    (folder / "manifest.json").write_text(text, encoding="utf-8")


@contextlib.contextmanager
def temporary_folder(target: Path) -> Iterator[Path]:
    """A folder beside the target that is gone afterwards; those that killed builds left behind are removed."""
    target = target.resolve()
    folder = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        for stale in target.parent.glob(f".{target.name}.*.tmp"):
            owner = _LEFT.fullmatch(stale.name)
            if owner is None or (int(owner[1]) != os.getpid() and runs_now(int(owner[1]))):
                continue
            if owner[2] and not target.exists():
                stale.rename(target)  # killed between moving the old index away and the new one into its place
            shutil.rmtree(stale, ignore_errors=True)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
    except OSError as error:
        raise InputError(
            f"cannot be written to ({error.strerror})", "choose another folder with `out`", where=target
        ) from error
    try:
        with place_of(target):
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def replaceable(target: Path, names: Collection[str] = ()) -> Path:
    """The folder that may be replaced as a whole, links followed: it holds what its manifest names and these files."""
    if os.path.lexists(target) and not target.is_dir():
        raise InputError("a file or a broken link is there", "choose another name with `out`", where=target)
    known = {*names, *_named(target)}
    for path in sorted(target.iterdir()) if target.is_dir() else ():
        if path.is_dir() and not path.is_symlink() and _named(path):
            replaceable(path)
        elif path.name.removesuffix(RECORD) not in known and not _LEFT.fullmatch(path.name):
            fault = "is not of the index here, and would be lost with it"
            raise InputError(fault, "move it, or choose another folder with `out`", where=path)
    return target.resolve()


def _named(folder: Path) -> set[str]:
    """The files that the manifest of a folder names, and the manifest itself."""
    named: set[str] = set()
    for name in ("manifest.json", "features.json"):
        with contextlib.suppress(InputError, TypeError, KeyError):
            named |= {name, *json_file(folder / name)["files"]}
    return named


def move_folder(folder: Path, target: Path) -> None:
    """Gives a temporary folder its name, in place of what is there."""
    target = replaceable(target, [path.name for path in folder.iterdir()])
    old = folder.with_suffix(".old.tmp")
    if target.exists():
        target.rename(old)
    folder.rename(target)
    shutil.rmtree(old, ignore_errors=True)
