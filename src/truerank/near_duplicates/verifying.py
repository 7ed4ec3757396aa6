"""Verifying candidates: what two documents have in common, counted over all their shingles."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from truerank.arrays import Hashes
from truerank.near_duplicates.options import Shingles
from truerank.near_duplicates.plan import ComparisonPlan
from truerank.near_duplicates.results import KINDS
from truerank.near_duplicates.shingling import CommonShingles, Numbers, among, starts_of
from truerank.near_duplicates.shuffling import Piece, Shuffle, engine_for, load_array, run_pieces, save_array, spans
from truerank.work.blocks import BlockStore, run_blocks
from truerank.work.jobs import Job
from truerank.work.kept import is_whole

#: Relations of documents by number.
RELATIONS: Final[dict[str, Any]] = {
    "left": pl.Int64,
    "right": pl.Int64,
    "kind": pl.Enum(KINDS),
    "jaccard": pl.Float64,
    "left_in_right": pl.Float64,
    "right_in_left": pl.Float64,
    "left_words": pl.Int64,
    "right_words": pl.Int64,
    "own_share": pl.Float64,
}
#: Shingles that are compared at a time.
_AT_ONCE: Final = 1 << 21


def verify(plan: ComparisonPlan, candidates: Shuffle, job: Job) -> pl.DataFrame:
    """The relations that hold among candidates."""
    blocks = len(plan.places)
    texts = _Texts(plan)
    run_pieces("marking documents", _MarkDocuments(plan, candidates), 1, job)
    run_pieces("gathering shingles", _GatherShingles(plan, texts), blocks, job)
    store = BlockStore(plan.folder / "verified")
    job.progress.start("verifying", blocks)
    run_blocks(_VerifyTask(plan, candidates, texts), map(Piece, range(blocks)), store, engine_for(blocks, job))
    return pl.concat([pl.DataFrame(schema=RELATIONS), *(store.load(block) for block in range(blocks))])


class _Common(NamedTuple):
    """Of pairs of documents: shingles that both have, and beside boilerplate those of both and of each one."""

    every: Numbers
    own: Numbers
    own_sizes: tuple[Numbers, Numbers]


def relations(
    found: _Common, sizes: tuple[Numbers, Numbers], words: tuple[Numbers, Numbers], options: Shingles
) -> dict[str, NDArray[Any]]:
    """What pairs of documents are to each other; the columns of `RELATIONS` beside `left` and `right`."""
    common = found.every
    jaccard = common / (sizes[0] + sizes[1] - common)
    shares = common / sizes[0], common / sizes[1]
    # Which one is the smaller, by shingles and then by words.
    left_smaller = (sizes[0] < sizes[1]) | ((sizes[0] == sizes[1]) & (words[0] <= words[1]))
    smaller_words = np.where(left_smaller, words[0], words[1])
    contains = (np.maximum(*shares) >= options.containment) & (smaller_words >= options.contained_words)
    holds = np.where(left_smaller, sizes[0] - found.own_sizes[0], sizes[1] - found.own_sizes[1]) > 0
    own_share = np.where(holds, _own_share(found, left_smaller, options), np.maximum(*shares))
    contains &= own_share >= options.containment
    kind = np.where(jaccard >= options.similarity, KINDS.index("near"), np.where(contains, KINDS.index("contains"), -1))
    return {
        "kind": kind,
        "jaccard": jaccard,
        "left_in_right": shares[0],
        "right_in_left": shares[1],
        "left_words": words[0],
        "right_words": words[1],
        "own_share": own_share,
    }


def _own_share(found: _Common, left_smaller: NDArray[np.bool_], options: Shingles) -> NDArray[np.float64]:
    """Of smaller documents that hold boilerplate, the share of the rest that the larger one has.

    Shingles across the two edges of a passage are made of both, and stand nowhere else: they are not missed.
    """
    across = 2 * (options.shingle_size - 1)
    own = np.maximum(np.where(left_smaller, *found.own_sizes) - across, 1)
    share: NDArray[np.float64] = np.minimum(found.own / own, 1)
    return np.where(found.own >= options.least_own, share, 0.0)


@dataclass(frozen=True)
class _Texts:
    """The shingles of the documents that are in a candidate pair, for access by number."""

    plan: ComparisonPlan

    @property
    def marks(self) -> Path:
        """A byte for each document: whether it is needed."""
        return self.plan.folder / "needed.u1"

    def path(self, block: int) -> Path:
        """The shingles of the documents of a block."""
        return self.plan.folder / "needed" / f"{block:06d}.shingles"

    def index(self, block: int) -> Path:
        """Where those of each document of a block begin, and the end; missing until the block is done."""
        return self.path(block).with_suffix(".starts")

    def marked(self, block: int) -> NDArray[np.bool_]:
        """Which documents of a block are needed."""
        first, end = self.plan.firsts[block : block + 2].tolist()
        return load_array(self.marks, np.bool_, first, end)

    def read(self, documents: Numbers) -> tuple[Hashes, Numbers]:
        """The shingles of ascending documents, one after the other, and where each one's begin."""
        block_of = np.searchsorted(self.plan.firsts, documents, side="right") - 1
        found: list[Hashes] = [np.zeros(0, np.uint64)]
        sizes = [np.zeros(0, np.int64)]
        for block in np.unique(block_of).tolist():
            starts = load_array(self.index(block), np.int64)
            inside = documents[block_of == block] - self.plan.firsts[block]
            begin, end = starts[inside], starts[inside + 1]
            sizes.append(end - begin)
            with self.path(block).open("rb") as stream:
                for one, other in zip(begin.tolist(), end.tolist(), strict=True):
                    stream.seek(8 * one)
                    found.append(np.frombuffer(stream.read(8 * (other - one)), np.uint64))
        return np.concatenate(found), starts_of(np.concatenate(sizes))


@dataclass(frozen=True)
class _MarkDocuments:
    plan: ComparisonPlan
    candidates: Shuffle

    def done(self, piece: int) -> bool:
        return is_whole(_Texts(self.plan).marks)

    def open(self) -> Callable[[Piece], None]:
        def mark(piece: Piece) -> None:
            marks = np.zeros(int(self.plan.firsts[-1]), np.bool_)
            for part in range(self.plan.parts):
                pairs = self.candidates.of_piece(part)
                marks[pairs["left"]] = True
                marks[pairs["right"]] = True
            save_array(_Texts(self.plan).marks, marks)

        return mark


@dataclass(frozen=True)
class _GatherShingles:
    plan: ComparisonPlan
    texts: _Texts

    def done(self, piece: int) -> bool:
        needed = [self.texts.path(piece)] if self.texts.marked(piece).any() else []
        return all(map(is_whole, [self.texts.index(piece), *needed]))

    def open(self) -> Callable[[Piece], None]:
        return self._gather

    def _gather(self, piece: Piece) -> None:
        needed = self.texts.marked(piece.number)
        sizes = np.where(needed, self.plan.size_of(piece.number), 0)
        if needed.any():
            sketches, block = self.plan.places[piece.number]
            shingles = sketches.shingles_of(block)
            save_array(self.texts.path(piece.number), shingles[np.repeat(needed, self.plan.size_of(piece.number))])
        save_array(self.texts.index(piece.number), starts_of(sizes))


@dataclass(frozen=True)
class _VerifyTask:
    plan: ComparisonPlan
    candidates: Shuffle
    texts: _Texts

    def open(self) -> Callable[[Piece], pl.DataFrame]:
        sizes, words = self.plan.sizes("size"), self.plan.sizes("words")
        boilerplate = self.plan.boilerplate()

        def work(piece: Piece) -> pl.DataFrame:
            pairs = np.unique(self.candidates.read(piece.number))
            left, right = pairs["left"].astype(np.int64), pairs["right"].astype(np.int64)
            frames = [pl.DataFrame(schema=RELATIONS)]
            for first, end in spans(sizes[left].astype(np.int64) + sizes[right], _AT_ONCE):
                one, other = left[first:end], right[first:end]
                both = (sizes[one].astype(np.int64), sizes[other].astype(np.int64))
                lengths = (words[one].astype(np.int64), words[other].astype(np.int64))
                columns = relations(self._common(one, other, boilerplate), both, lengths, self.plan.options)
                holds = columns["kind"] >= 0
                kinds = pl.Series([KINDS[kind] for kind in columns.pop("kind")[holds]], dtype=RELATIONS["kind"])
                rest = {name: values[holds] for name, values in columns.items()}
                frames.append(pl.DataFrame({"left": one[holds], "right": other[holds], "kind": kinds, **rest}))
            return pl.concat(frames)

        return work

    def _common(self, left: Numbers, right: Numbers, boilerplate: Hashes) -> _Common:
        """How many shingles the documents of each pair have in common."""
        shingles, pair, own_sizes = [], [], []
        for side in (left, right):
            every, where = np.unique(side, return_inverse=True)
            held, starts = self.texts.read(every)
            sizes = np.diff(starts)[where]
            own_sizes.append(np.diff(starts_of((~among(held, boilerplate)).astype(np.int64))[starts])[where])
            pair.append(np.repeat(np.arange(len(side)), sizes))
            shingles.append(held[np.arange(len(pair[-1])) + np.repeat(starts[where] - starts_of(sizes)[:-1], sizes)])
        values, owner = np.concatenate(shingles), np.concatenate(pair)
        found = CommonShingles.of(len(left), values, owner, among(values, boilerplate))
        return _Common(found.every, found.every - found.marked, (own_sizes[0], own_sizes[1]))
