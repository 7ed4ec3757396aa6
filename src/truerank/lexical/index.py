"""An index as it lies on the disk: memory-mapped postings, so that opening it costs nothing and processes share it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from truerank.core.result import Result
from truerank.errors import InputError, OptionError
from truerank.lexical.analysis import Analyser
from truerank.loading import json_file
from truerank.records import Document
from truerank.work.artifacts import digest, hash_file
from truerank.work.kept import user_cache_folder

KIND: Final = "truerank index"
FORMAT_VERSION: Final = 2
_DAMAGED: Final = ("not as it was written", "build the index again")
#: Nanoseconds after which a file system gives another change another time.
_SETTLED: Final = 2_000_000_000
#: What a term is made of: ASCII letters and digits, 2 to 20 of them; letters only, 2 or more; digits only.
WORD, LETTERS, NUMBER = 1, 2, 4
#: In the notation of Rust's `regex`.
_MADE_OF: Final = {WORD: "^[a-z0-9]{2,20}$", LETTERS: "^[a-z]{2,}$", NUMBER: "^[0-9]+$"}


def term_flags(terms: pl.Series) -> NDArray[np.uint8]:
    """What terms are made of, each a sum of `WORD`, `LETTERS` and `NUMBER`; shape (terms,)."""
    flags = np.zeros(len(terms), np.uint8)
    for flag, pattern in _MADE_OF.items():
        flags[terms.str.contains(pattern).to_numpy()] |= flag
    return flags


def _opened(path: Path) -> NDArray[Any]:
    # A plain view: slices of a memmap are memmaps, which cost microseconds each.
    mapped = np.load(path, mmap_mode="r") if path.suffix == ".npy" else np.memmap(path, np.uint8, "r")
    return mapped.view(np.ndarray)


def _array(name: str) -> cached_property[NDArray[Any]]:
    """An array of an index, opened when it is asked for."""
    return cached_property(lambda index: _opened(index.folder / name))


class Index(Result, shown_in="truerank.lexical.report"):
    """An inverted index with document vectors, read from its folder.

    Attributes:
        folder: where it lies.
        manifest: what it was built from and how.
        analyser: how its texts became terms.
        fields: the names of its fields.
        lengths: the number of terms in each document's fields, shape (documents, fields).
        ranks: where each document stands among all in the ascending order of their ids, shape (documents,).
        flags: what each term is made of, see `term_flags`; shape (terms,).
        totals: how often each term is in each field of the collection, shape (terms, fields).
        starts: where the postings of each term begin, shape (terms + 1,).

    Args:
        folder: written by `build_index`.

    Raises:
        InputError: no index there, one of another version, or a file that is not as it was written.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.manifest: Mapping[str, Any] = _manifest(self.folder)
        _check_files(self.folder, self.manifest)
        self.analyser = Analyser.from_json(self.manifest["analyser"])
        self.fields: tuple[str, ...] = tuple(self.manifest["fields"])
        self._numbers: dict[str, int] = {}

    def __repr__(self) -> str:
        return f"Index({str(self.folder)!r})"

    def __len__(self) -> int:
        """The number of documents."""
        return len(self._document_starts) - 1

    @staticmethod
    def is_index(folder: Path) -> bool:
        """Whether an index, of whatever version, lies there."""
        try:
            return bool(json_file(folder / "manifest.json").get("kind") == KIND)
        except (InputError, AttributeError):
            return False

    @cached_property
    def fingerprint(self) -> str:
        """The identity of what it holds, whatever built it."""
        return digest({key: self.manifest[key] for key in ("version", "analyser", "fields", "files")})

    @property
    def terms(self) -> int:
        """The number of terms."""
        return len(self._term_starts) - 1

    @cached_property
    def by_rank(self) -> NDArray[np.int32]:
        """The documents in the ascending order of their ids, shape (documents,)."""
        order = np.empty(len(self), np.int32)
        order[self.ranks] = np.arange(len(self), dtype=np.int32)
        return order

    def term_number(self, term: str) -> int | None:
        """The number of a term, None where the collection lacks it."""
        number = self._numbers.get(term)
        if number is None:
            number = self._numbers[term] = self._find(term.encode())
        return number if number >= 0 else None

    def term(self, number: int) -> str:
        """The term with this number; terms are numbered in the order of their code points."""
        return self._term_bytes(number).decode()

    def doc_id(self, number: int) -> str:
        """The id of the document with this number; documents are numbered in the order of the collection."""
        starts = self._document_starts
        return bytes(self._document_bytes[starts[number] : starts[number + 1]]).decode()

    def doc_ids(self, numbers: Sequence[int] | NDArray[Any]) -> list[str]:
        """The ids of documents."""
        chosen = np.asarray(numbers, np.int64)
        starts, data = self._document_starts, self._document_bytes.data
        begins, ends = starts[chosen].tolist(), starts[chosen + 1].tolist()
        return [str(data[a:b], "utf-8") for a, b in zip(begins, ends, strict=True)]

    def postings(self, term: int) -> tuple[NDArray[np.int32], NDArray[Any]]:
        """The documents that hold a term, ascending, and how often in each field, shape (documents, fields)."""
        a, b = int(self.starts[term]), int(self.starts[term + 1])
        return self._posting_documents[a:b], self._posting_counts[a:b]

    def vectors(self, documents: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[Any]]:
        """The terms of documents.

        Args:
            documents: their numbers, shape (documents,).

        Returns:
            Postings, document after document and by term within each: the place of the document among those given, the
            term, and how often it is in each field; shapes (postings,), (postings,), (postings, fields).
        """
        begins, ends = self._vector_starts[documents], self._vector_starts[np.asarray(documents) + 1]
        sizes = ends - begins
        before = np.cumsum(sizes) - sizes
        places = np.arange(int(sizes.sum())) + np.repeat(begins - before, sizes)
        return np.repeat(np.arange(len(sizes)), sizes), self._vector_terms[places], self._vector_counts[places]

    def json(self) -> dict[str, Any]:
        """What the index holds."""
        return {
            "folder": str(self.folder),
            "documents": len(self),
            "terms": self.terms,
            "postings": int(self.starts[-1]),
            "tokens": dict(zip(self.fields, self.lengths.sum(axis=0, dtype=np.int64).tolist(), strict=True)),
            "analyser": self.manifest["analyser"] | {"name": self.analyser.name},
            "fields": self.manifest["fields"],
            "source": self.manifest["source"],
            "bytes": sum(file["bytes"] for file in self.manifest["files"].values()),
        }

    lengths = _array("documents.lengths.npy")
    ranks = _array("documents.ranks.npy")
    flags = _array("terms.flags.npy")
    totals = _array("terms.totals.npy")
    starts = _array("postings.starts.npy")
    _document_starts = _array("documents.starts.npy")
    _term_starts = _array("terms.starts.npy")
    _posting_documents = _array("postings.documents.npy")
    _posting_counts = _array("postings.counts.npy")
    _vector_starts = _array("vectors.starts.npy")
    _vector_terms = _array("vectors.terms.npy")
    _vector_counts = _array("vectors.counts.npy")
    _document_bytes = _array("documents.bin")
    _all_terms = _array("terms.bin")

    def _term_bytes(self, number: int) -> bytes:
        return bytes(self._all_terms[self._term_starts[number] : self._term_starts[number + 1]])

    def _find(self, term: bytes) -> int:
        """The number of a term by bisection, -1 where there is none: bytes of UTF-8 sort as code points do."""
        low, high = 0, self.terms
        while low < high:
            middle = (low + high) // 2
            if self._term_bytes(middle) < term:
                low = middle + 1
            else:
                high = middle
        return low if low < self.terms and self._term_bytes(low) == term else -1


def open_index(index: Index | str | Path) -> Index:
    """The index itself, or the one in a folder; errors as in `Index`."""
    return index if isinstance(index, Index) else Index(index)


def _manifest(folder: Path) -> Mapping[str, Any]:
    path = folder / "manifest.json"
    remedy = "give the folder that 'truerank index --out' wrote"
    if not path.is_file():
        raise InputError("no index there", remedy, where=folder)
    try:
        manifest = json_file(path)
    except InputError as error:
        raise InputError(error.fault, _DAMAGED[1], where=path) from error
    if not isinstance(manifest, dict) or manifest.get("kind") != KIND:
        raise InputError("no manifest of an index", f"{remedy}, or {_DAMAGED[1]}", where=path)
    if manifest.get("version") != FORMAT_VERSION:
        raise InputError(
            f"an index of version {manifest.get('version')}, not {FORMAT_VERSION}",
            "build it again with this version of truerank",
            where=folder,
        )
    if manifest.get("sha256") != manifest_hash(manifest):
        raise InputError(*_DAMAGED, where=path)
    return manifest


def manifest_hash(manifest: Mapping[str, Any]) -> str:
    """The hash of all that a manifest says, which it holds, too."""
    return digest({key: value for key, value in manifest.items() if key != "sha256"})


def _check_files(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Compares the files with their hashes, unless that was done since the last change of one of them.

    What was compared is remembered in the user's cache folder: an index need not be writable. Where nothing can be
    remembered, all files are read each time.
    """
    files: Mapping[str, Mapping[str, Any]] = manifest["files"]
    found = {name: path.stat() for name in files if (path := folder / name).is_file()}
    times = [(file.st_mtime_ns, file.st_ctime_ns) for file in found.values()]
    stands = [(file.st_size, file.st_ino, *both) for file, both in zip(found.values(), times, strict=True)]
    state = digest([manifest["sha256"], list(found), stands])
    memory = user_cache_folder() / "checked" / digest(str(folder.resolve()))[:32]
    with contextlib.suppress(OSError):
        if memory.read_bytes() == state.encode():
            return
    for name, file in files.items():
        path = folder / name
        if name not in found or found[name].st_size != file["bytes"] or hash_file(path) != file["sha256"]:
            raise InputError(*_DAMAGED, where=path)
    # A change within the tick of the clock in which a file was written would not show.
    if time.time_ns() - max(map(max, times)) > _SETTLED:
        with contextlib.suppress(OSError):
            memory.parent.mkdir(parents=True, exist_ok=True)
            memory.write_text(state, encoding="ascii")


Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
_PARTS = ("url", "title", "body")


@dataclass(frozen=True)
class IndexField:
    """A field of an index: its name, and the parts of a document that it joins."""

    name: str
    parts: tuple[str, ...]

    def __post_init__(self) -> None:
        for part in self.parts:
            if part not in _PARTS:
                raise InputError(f"documents have no '{part}'", f"name parts among {', '.join(_PARTS)}")

    @classmethod
    def parse(cls, text: str) -> IndexField:
        """`title`, or `contents=url+title+body`; `contents` alone joins title and body."""
        name, given, parts = text.strip().partition("=")
        if not name or (given and not parts):
            raise OptionError("fields", f"'{text}' is not a field", "write NAME or NAME=PART+PART")
        if not given:
            return cls(name, ("title", "body") if name == "contents" else (name,))
        return cls(name, tuple(part.strip() for part in parts.split("+")))

    def text(self, document: Document) -> str:
        """The parts of a document that are not empty, joined by blanks."""
        return " ".join(filter(None, (getattr(document, part) for part in self.parts)))


class Postings(NamedTuple):
    """Which term stands how often in which document.

    Shapes: `documents` and `terms` (postings,), `counts` (postings, fields).
    """

    documents: Ints
    terms: Ints
    counts: Ints


class Block(NamedTuple):
    """Analysed documents: number of the first, their ids, terms that occur, postings (documents and terms counted from
    0 within the block, sorted by document) and lengths, shape (documents, fields)."""

    first: int
    ids: list[str]
    terms: list[str]
    postings: Postings
    lengths: Ints


class TermNumbers(dict[str, int]):
    """Numbers for terms in the order of their coming."""

    def __missing__(self, term: str) -> int:
        number = self[term] = len(self)
        return number


def tokens(analyser: Analyser, texts: Sequence[str], numbers: TermNumbers) -> tuple[Longs, Longs, Longs]:
    """Of every token the text and the term; then the lengths of the texts."""
    pieces = analyser.pieces(texts)
    every = pieces.explode(empty_as_null=False)
    different = every.unique(maintain_order=True)
    codes = every.cast(pl.Enum(different)).to_physical().to_numpy()
    # Each different piece is looked at once; nearly all are one word, some none (a stopword) or several.
    terms = [analyser(piece) for piece in different]
    flat = np.fromiter(map(numbers.__getitem__, chain.from_iterable(terms)), np.int64)
    sizes = np.fromiter(map(len, terms), np.int64, len(terms))
    begins = np.cumsum(sizes) - sizes
    size = sizes[codes]
    at = np.repeat(np.repeat(np.arange(len(texts)), pieces.list.len().to_numpy()), size)
    within = np.arange(len(at)) - np.repeat(np.cumsum(size) - size, size)
    return at, flat[np.repeat(begins[codes], size) + within], np.bincount(at, minlength=len(texts))


@dataclass(frozen=True)
class BlockTask:
    """Analyses blocks of documents; picklable, so that worker processes can do it."""

    analyser: Analyser
    fields: tuple[IndexField, ...]

    def __call__(self, first: int, documents: Sequence[Document]) -> Block:
        """Analyses consecutive documents, the first of which has the number `first`."""
        numbers = TermNumbers()
        texts = [[part.text(document) for document in documents] for part in self.fields]
        found = [tokens(self.analyser, own, numbers) for own in texts]
        width = max(1, len(numbers))
        keyed = [np.unique(at * width + terms, return_counts=True) for at, terms, _ in found]
        keys = keyed[0][0] if len(keyed) == 1 else np.unique(np.concatenate([own for own, _ in keyed]))
        counts = np.zeros((len(keys), len(found)), np.int32)
        for column, (own, count) in enumerate(keyed):
            counts[np.searchsorted(keys, own), column] = count
        postings = Postings((keys // width).astype(np.int32), (keys % width).astype(np.int32), counts)
        lengths = np.stack([length for _, _, length in found], axis=1).astype(np.int32)
        return Block(first, [document.doc_id for document in documents], list(numbers), postings, lengths)


@dataclass
class RunBuffer:
    """Postings of consecutive blocks, held until there are enough of them to be sorted and written."""

    numbers: dict[str, int] = field(default_factory=TermNumbers)
    parts: list[Postings] = field(default_factory=list)
    size: int = 0

    def add(self, block: Block) -> None:
        """Takes a block; its terms get numbers of this run."""
        number = self.numbers.__getitem__
        known = np.fromiter(map(number, block.terms), np.int32, len(block.terms))
        postings = block.postings
        terms = known[postings.terms] if len(known) else postings.terms
        self.parts.append(Postings(postings.documents + np.int32(block.first), terms, postings.counts))
        self.size += len(terms)

    def sorted(self) -> SortedRun:
        """The run by term: terms ascending, the documents of each ascending."""
        names = sorted(self.numbers)
        places = np.empty(len(names), np.int32)
        places[np.fromiter((self.numbers[name] for name in names), np.int32, len(names))] = np.arange(len(names))
        documents, terms, counts = (np.concatenate(column) for column in zip(*self.parts, strict=True))
        terms = places[terms] if len(places) else terms
        order = stable_order(terms)
        return SortedRun(names, Postings(documents[order], terms[order], counts[order]))


def stable_order(keys: Ints) -> Longs:
    """The places of keys of 0 and more in their ascending order, equal ones as they stand; shape (keys,).

    NumPy sorts 64-bit numbers with vector instructions, several times as fast as `argsort` with `kind="stable"`.
    """
    both = keys.astype(np.int64) << 32
    both |= np.arange(len(keys))
    both.sort()
    both &= 0xFFFF_FFFF
    return both


class SortedRun(NamedTuple):
    """The terms of a run in the order of their code points, and its postings in the order of terms and documents."""

    terms: list[str]
    postings: Postings

    def by_document(self) -> Postings:
        """The postings in the order of documents, and of terms within each."""
        order = stable_order(self.postings.documents)
        return Postings(*(column[order] for column in self.postings))
