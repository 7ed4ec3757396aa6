"""From documents to postings: blocks of documents analysed, runs of blocks sorted by term."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from truerank.errors import InputError, OptionError
from truerank.lexical.analysis import Analyser
from truerank.records import Document

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
            raise OptionError("fields", f"'{text}' is no field", "write NAME or NAME=PART+PART")
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


class _Numbers(dict[str, int]):
    """Numbers for terms in the order of their coming."""

    def __missing__(self, term: str) -> int:
        number = self[term] = len(self)
        return number


@dataclass(frozen=True)
class BlockTask:
    """Analyses blocks of documents; picklable, so that worker processes can do it."""

    analyser: Analyser
    fields: tuple[IndexField, ...]

    def __call__(self, first: int, documents: Sequence[Document]) -> Block:
        """Analyses consecutive documents, the first of which has the number `first`."""
        numbers = _Numbers()
        found = [self._tokens(part, documents, numbers) for part in self.fields]
        width = max(1, len(numbers))
        keyed = [np.unique(at * width + terms, return_counts=True) for at, terms, _ in found]
        keys = keyed[0][0] if len(keyed) == 1 else np.unique(np.concatenate([own for own, _ in keyed]))
        counts = np.zeros((len(keys), len(found)), np.int32)
        for column, (own, count) in enumerate(keyed):
            counts[np.searchsorted(keys, own), column] = count
        postings = Postings((keys // width).astype(np.int32), (keys % width).astype(np.int32), counts)
        lengths = np.stack([length for _, _, length in found], axis=1).astype(np.int32)
        return Block(first, [document.doc_id for document in documents], list(numbers), postings, lengths)

    def _tokens(self, part: IndexField, documents: Sequence[Document], numbers: _Numbers) -> tuple[Longs, Longs, Longs]:
        """Of every token of a field the document and the term; then the documents' lengths."""
        pieces = self.analyser.pieces([part.text(document) for document in documents])
        every = pieces.explode(empty_as_null=False)
        different = every.unique(maintain_order=True)
        codes = every.cast(pl.Enum(different)).to_physical().to_numpy()
        # Each different piece is looked at once; nearly all are one word, some none (a stopword) or several.
        terms = [self.analyser(piece) for piece in different]
        flat = np.fromiter(map(numbers.__getitem__, chain.from_iterable(terms)), np.int64)
        sizes = np.fromiter(map(len, terms), np.int64, len(terms))
        begins = np.cumsum(sizes) - sizes
        size = sizes[codes]
        at = np.repeat(np.repeat(np.arange(len(documents)), pieces.list.len().to_numpy()), size)
        within = np.arange(len(at)) - np.repeat(np.cumsum(size) - size, size)
        return at, flat[np.repeat(begins[codes], size) + within], np.bincount(at, minlength=len(documents))


@dataclass
class RunBuffer:
    """Postings of consecutive blocks, held until there are enough of them to be sorted and written."""

    numbers: dict[str, int] = field(default_factory=_Numbers)
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
