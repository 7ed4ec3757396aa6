"""Candidates: the pairs of documents that may have enough shingles in common. None that has is missed.

A pair is looked for from its smaller document. If that has n shingles and the pair needs k of them in common, then of
any n - k + 1 of its shingles the larger one has at least one (prefix filter: Chaudhuri et al., 2006; Bayardo et al.,
2007). The rarest ones are taken. Most shingles are in one document only, and a document with more than n - k of these
has no partner, so that most documents are done as soon as shingles are counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray

from truerank.arrays import Hashes
from truerank.near_duplicates.shingles import Numbers, Shingles, runs_of, shingled, starts_of
from truerank.near_duplicates.sketches import Sketches
from truerank.work.engines import Engine, LocalEngine
from truerank.work.jobs import Job
from truerank.work.kept import forget, is_whole, keep_bytes, keep_text

Records = NDArray[Any]

# Records that are written by one kind of piece and read by another, through the disk.
#
# Each piece writes its records in the order of the parts that will read them. A part then reads its share from every
# piece, in the order of the pieces. So no step holds more than one piece or one part in memory.

_DONE: Final = "done"
_FEW: Final = 8


class Piece(NamedTuple):
    """A piece of a step, by its number."""

    number: int


class Step(Protocol):
    """A step of the comparison: opened once by each worker, then called for every piece, whose files it writes."""

    def open(self) -> Callable[[Piece], None]: ...

    def done(self, piece: int, /) -> bool: ...


@dataclass(frozen=True)
class PlainStep:
    """A step that opens nothing: `work` does a piece; `done` says whether its files are there."""

    work: Callable[[Piece], None]
    done: Callable[[int], bool]

    def open(self) -> Callable[[Piece], None]:
        return self.work


@dataclass(frozen=True)
class Shuffle:
    """The records between two steps, in a folder."""

    folder: Path
    pieces: int
    dtype: tuple[tuple[str, str], ...]

    def write(self, piece: int, records: Records, bounds: Numbers) -> None:
        save_array(self._data(piece), records)
        save_array(self._bounds(piece), bounds.astype(np.int64))

    def done(self, piece: int) -> bool:
        return is_whole(self._bounds(piece)) and is_whole(self._data(piece))

    def read(self, part: int) -> Records:
        return np.concatenate([self.read_piece(piece, part) for piece in range(self.pieces)])

    def read_piece(self, piece: int, part: int) -> Records:
        begin, end = np.fromfile(self._bounds(piece), np.int64, 2, offset=8 * part).tolist()
        if end == begin:
            return np.zeros(0, list(self.dtype))
        return load_array(self._data(piece), list(self.dtype), begin, end)

    def of_piece(self, piece: int) -> Records:
        return load_array(self._data(piece), list(self.dtype))

    def drop(self) -> None:
        """Removes the records; the step counts as done all the same."""
        for piece in range(self.pieces):
            forget(self._data(piece))

    def _data(self, piece: int) -> Path:
        return self.folder / f"{piece:06d}.records"

    def _bounds(self, piece: int) -> Path:
        return self.folder / f"{piece:06d}.bounds"


def save_array(path: Path, values: NDArray[Any]) -> None:
    keep_bytes(path, np.ascontiguousarray(values))


def load_array(path: Path, dtype: DTypeLike, begin: int = 0, end: int | None = None) -> NDArray[Any]:
    size = np.dtype(dtype).itemsize
    count = -1 if end is None else end - begin
    return np.fromfile(path, dtype, count, offset=size * begin)


def engine_for(pieces: int, job: Job) -> Engine:
    """What runs so many pieces: processes cost more than they save where there is little to do."""
    return job.engine if pieces > _FEW else LocalEngine()


def spans(sizes: Numbers, most: int) -> Iterator[tuple[int, int]]:
    """Cuts a sequence into spans whose sizes together are at most `most`, or of one element."""
    total = np.cumsum(sizes)
    first = 0
    while first < len(sizes):
        before = int(total[first - 1]) if first else 0
        end = max(first + 1, int(np.searchsorted(total, before + most, side="right")))
        yield first, end
        first = end


def run_pieces(name: str, step: Step, pieces: int, job: Job) -> None:
    """Does the pieces of a step that are not done."""
    mark = job.folder / f"{name}.{_DONE}".replace(" ", "-")
    if is_whole(mark):
        return
    job.progress.start(name, pieces)
    for _ in engine_for(pieces, job).run(step, (Piece(number) for number in range(pieces) if not step.done(number))):
        job.progress.advance(1)
    keep_text(mark, "")


#: Shingles that a part sorts at a time, and the most parts there are.
_PART: Final = 1 << 21
_MOST_PARTS: Final = 1 << 12
#: Of documents with one shingle: in a longer list, each is compared with the first ones and with its neighbours only.
CROWD: Final = 128
_BOILERPLATE: Final = "boilerplate.u8"


class SketchBlock(NamedTuple):
    sketches: Sketches
    block: int


@dataclass(frozen=True)
class ComparisonPlan:
    """One comparison. Documents are numbered in order, those of the second collection after those of the first.

    Attributes:
        folder: where unfinished work lies.
        sides: one collection, or two.
        options: what counts as nearly the same.
        crowd: documents with one shingle up to which all are compared.
    """

    folder: Path
    sides: tuple[Sketches, ...]
    options: Shingles
    crowd: int = CROWD

    @cached_property
    def places(self) -> tuple[SketchBlock, ...]:
        return tuple(SketchBlock(side, block) for side in self.sides for block in range(len(side.sizes)))

    @cached_property
    def firsts(self) -> Numbers:
        """The number of the first document of each block, and at the end how many documents there are."""
        return starts_of(np.array([size for side in self.sides for size in side.sizes], np.int64))

    @property
    def border(self) -> int | None:
        """The number of the first document of the second collection; None for one collection."""
        return len(self.sides[0]) if len(self.sides) == 2 else None

    @cached_property
    def parts(self) -> int:
        """Into how many parts the space of hashes is cut, a power of two."""
        wanted = sum(side.shingles for side in self.sides) // _PART
        return int(min(1 << wanted.bit_length(), _MOST_PARTS))

    def part_bounds(self, hashes: Hashes) -> Numbers:
        """Where each part begins among ascending hashes, and the end."""
        edges = np.arange(1, self.parts, dtype=np.uint64) << np.uint64(64 - self.parts.bit_length() + 1)
        inner = np.searchsorted(hashes, edges) if self.parts > 1 else np.zeros(0, np.int64)
        return np.concatenate(([0], inner, [len(hashes)])).astype(np.int64)

    def block_bounds(self, documents: NDArray[np.integer]) -> Numbers:
        """Where each block begins among ascending document numbers, and the end."""
        return np.searchsorted(documents, self.firsts).astype(np.int64)

    def write_sizes(self) -> None:
        """Writes how many shingles and words each document has, for access by number."""
        for name in ("size", "words"):
            path = self.folder / f"{name}.u4"
            if not is_whole(path):
                columns = [place.sketches.column(place.block, name) for place in self.places]
                save_array(path, np.concatenate([np.zeros(0, np.uint32), *columns]).astype("<u4"))

    def write_boilerplate(self, passages: Iterable[str]) -> None:
        """Writes the shingles of these passages, for all workers."""
        path = self.folder / _BOILERPLATE
        if not is_whole(path):
            save_array(path, np.unique(shingled(tuple(passages), self.options).shingles))

    def boilerplate(self) -> Hashes:
        return load_array(self.folder / _BOILERPLATE, np.uint64)

    def sizes(self, name: str) -> NDArray[np.uint32]:
        """The number of shingles (`size`) or of words (`words`) of each document, read where it is needed."""
        if not self.firsts[-1]:
            return np.zeros(0, np.uint32)
        return np.memmap(self.folder / f"{name}.u4", np.dtype("<u4"), "r").view(np.ndarray)

    def size_of(self, block: int) -> Numbers:
        return load_array(self.folder / "size.u4", "<u4", int(self.firsts[block]), int(self.firsts[block + 1])).astype(
            np.int64
        )


_KEYS: Final = (("key", "<u8"), ("text", "<u8"), ("document", "<u4"))
#: Of a document: the first of its collection with these words; the first with this text, or else with these words,
#: that it is paired with; the first with these words in the other collection; 0 for exact, 1 for reformatted.
_EQUALS: Final = (("document", "<u4"), ("first", "<u4"), ("twin", "<u4"), ("match", "<u4"), ("kind", "u1"))
NO_TWIN: Final = 0xFFFFFFFF


def find_equals(plan: ComparisonPlan, job: Job) -> Shuffle:
    keys = Shuffle(plan.folder / "keys", len(plan.places), _KEYS)
    equals = Shuffle(plan.folder / "equals", plan.parts, _EQUALS)
    run_pieces("sorting texts", PlainStep(partial(_sort_texts, plan, keys), keys.done), len(plan.places), job)
    run_pieces("comparing texts", PlainStep(partial(_compare_texts, plan, keys, equals), equals.done), plan.parts, job)
    keys.drop()
    return equals


def not_first(equals: Shuffle, block: int) -> Numbers:
    """The documents of a block that are not the first of their collection with these words, ascending."""
    found = equals.read(block)
    return np.sort(found["document"][found["first"] != found["document"]]).astype(np.int64)


def _sort_texts(plan: ComparisonPlan, keys: Shuffle, piece: Piece) -> None:
    sketches, block = plan.places[piece.number]
    text, sequence = (sketches.column(block, name) for name in ("text", "sequence"))
    records = np.zeros(len(text), list(_KEYS))
    # Signs without words only equal themselves.
    records["key"], records["text"] = np.where(sequence == 0, text, sequence), text
    records["document"] = plan.firsts[piece.number] + np.arange(len(text))
    records = records[text != 0]
    records = records[np.argsort(records["key"], kind="stable")]
    keys.write(piece.number, records, plan.part_bounds(records["key"]))


def _compare_texts(plan: ComparisonPlan, keys: Shuffle, equals: Shuffle, piece: Piece) -> None:
    records = keys.read(piece.number)
    records = records[np.argsort(records["key"], kind="stable")]
    bounds = runs_of(records["key"])
    records = records[np.repeat(np.diff(bounds) > 1, np.diff(bounds))]
    found = _equals(records, plan.border)
    found = found[np.argsort(found["document"], kind="stable")]
    equals.write(piece.number, found, plan.block_bounds(found["document"]))


def _equals(records: NDArray[Any], border: int | None) -> NDArray[Any]:
    """The documents that repeat another one, of records by key and document."""
    by_text = np.lexsort((records["document"], records["text"], records["key"]))
    text_of = np.empty(len(records), np.int64)
    texts = runs_of(records[["key", "text"]][by_text])
    text_of[by_text] = np.repeat(np.arange(len(texts) - 1), np.diff(texts))
    words = runs_of(records["key"])
    words_of = np.repeat(np.arange(len(words) - 1), np.diff(words))
    document = records["document"].astype(np.int64)
    found = np.zeros(len(records), list(_EQUALS))
    found["document"], found["match"] = document, NO_TWIN
    if border is None:
        found["first"] = document[words[:-1]][words_of]
        exact = document[by_text][texts[:-1]][text_of]
        twin = np.where(exact != document, exact, found["first"])
        found["kind"] = twin != exact
        found["twin"] = np.where(twin != document, twin, NO_TWIN)
    else:
        ours = document < border
        first_left = _first(document, words_of, len(words) - 1, ours)
        first_right = _first(document, words_of, len(words) - 1, ~ours)
        found["first"] = np.where(ours, first_left[words_of], first_right[words_of])
        exact = _first(document, text_of, len(texts) - 1, ~ours)[text_of]
        found["match"] = np.where(ours, first_right[words_of], NO_TWIN)
        found["kind"] = exact == NO_TWIN
        found["twin"] = np.where(ours, np.where(exact != NO_TWIN, exact, found["match"]), NO_TWIN)
    repeats: NDArray[Any] = found[(found["first"] != document) | (found["twin"] != NO_TWIN)]
    return repeats


def _first(document: Numbers, group: Numbers, groups: int, chosen: NDArray[np.bool_]) -> Numbers:
    """The first of the chosen documents of each group, or `NO_TWIN`."""
    first = np.full(groups, NO_TWIN, np.int64)
    np.minimum.at(first, group[chosen], document[chosen])
    return first


_POSTINGS: Final = (("shingle", "<u8"), ("document", "<u4"))
#: A shingle of a document that others have: how many of these there are, and which list names them.
_SHARED: Final = (("document", "<u4"), ("others", "<u4"), ("list", "<u4"))
_REQUESTS: Final = (("list", "<u4"), ("document", "<u4"))
_PAIRS: Final = (("left", "<u4"), ("right", "<u4"))

_FIRST_ONES: Final = 8
_NEIGHBOURS: Final = 24
#: Pairs that are made at a time.
_AT_ONCE: Final = 1 << 19
#: The shingles of a collection up to this size filter those of the other one, with four to eight bits for each.
_FILTERED: Final = 1 << 22


def find_candidates(plan: ComparisonPlan, equals: Shuffle, job: Job) -> tuple[Shuffle, int]:
    """Finds the pairs that may have enough in common.

    Returns:
        The pairs by block of the left document, sorted and distinct for each of `plan.parts`; and how many crowded
        lists were asked for.
    """
    folder, blocks = plan.folder, len(plan.places)
    postings = Shuffle(folder / "postings", blocks, _POSTINGS)
    shared = Shuffle(folder / "shared", plan.parts, _SHARED)
    requests = Shuffle(folder / "requests", blocks, _REQUESTS)
    pairs = Shuffle(folder / "candidates", plan.parts, _PAIRS)
    lists = folder / "lists"
    run_pieces("sorting shingles", _SortShingles(plan, equals, postings), blocks, job)
    run_pieces(
        "counting shingles",
        PlainStep(partial(_count_shingles, plan, postings, shared, lists), shared.done),
        plan.parts,
        job,
    )
    postings.drop()
    step = PlainStep(partial(_choose_shingles, plan, shared, requests), requests.done)
    run_pieces("choosing shingles", step, blocks, job)
    shared.drop()
    run_pieces(
        "finding candidates",
        PlainStep(partial(_find_candidates, plan, lists, requests, pairs), pairs.done),
        plan.parts,
        job,
    )
    requests.drop()
    crowded = sum(int(load_array(lists / f"{part:06d}.crowded", np.int64)[0]) for part in range(plan.parts))
    for part in range(plan.parts):
        forget(_list_path(lists, part, "documents"))
    return pairs, crowded


@dataclass(frozen=True)
class _SortShingles:
    """Of each block the shingles of its documents by part, without those that a small other side lacks."""

    plan: ComparisonPlan
    equals: Shuffle
    postings: Shuffle

    def done(self, piece: int) -> bool:
        return self.postings.done(piece)

    def open(self) -> Callable[[Piece], None]:
        filters = tuple(_filter_of(self.plan, side) for side in range(len(self.plan.sides)))

        def sort(piece: Piece) -> None:
            plan = self.plan
            sketches, block = plan.places[piece.number]
            sizes = plan.size_of(piece.number)
            first = int(plan.firsts[piece.number])
            sizes_kept = np.ones(len(sizes), np.bool_)
            sizes_kept[not_first(self.equals, piece.number) - first] = False
            owner = np.repeat(np.arange(len(sizes)), sizes)
            shingles = sketches.shingles_of(block)
            kept = sizes_kept[owner]
            if plan.border is not None and (other := filters[0 if first >= plan.border else 1]) is not None:
                kept &= other.may_have(shingles)
            shingles, owner = shingles[kept], owner[kept]
            # Part by part only, which takes a fraction of the time: the next step sorts all of a part.
            part = (shingles >> np.uint64(1) >> np.uint64(64 - plan.parts.bit_length())).astype(np.uint16)
            order = np.argsort(part, kind="stable")
            records = np.empty(len(order), list(_POSTINGS))
            records["shingle"], records["document"] = shingles[order], first + owner[order]
            self.postings.write(piece.number, records, starts_of(np.bincount(part, minlength=plan.parts)))

        return sort


@dataclass(frozen=True)
class _Filter:
    """Which values the first bits of the shingles of a collection have: a bit for each value."""

    bits: NDArray[np.uint8]
    shift: int

    def may_have(self, shingles: Hashes) -> NDArray[np.bool_]:
        value = shingles >> np.uint64(self.shift)
        byte = self.bits[(value >> np.uint64(3)).astype(np.int64)]
        there: NDArray[np.bool_] = (byte >> (value & np.uint64(7)).astype(np.uint8)) & 1 != 0
        return there


def _filter_of(plan: ComparisonPlan, side: int) -> _Filter | None:
    """The filter of a collection; None for a large one, or where there is no other."""
    sketches = plan.sides[side]
    if len(plan.sides) == 1 or sketches.shingles > _FILTERED:
        return None
    size = max(16, sketches.shingles.bit_length() + 2)
    there = np.zeros(1 << size, np.bool_)
    for block in range(len(sketches.sizes)):
        there[(sketches.shingles_of(block) >> np.uint64(64 - size)).astype(np.int64)] = True
    return _Filter(np.packbits(there, bitorder="little"), 64 - size)


def _count_shingles(plan: ComparisonPlan, postings: Shuffle, shared: Shuffle, lists: Path, piece: Piece) -> None:
    """Of each part of the shingles those that several documents have: who has them, and how many others."""
    records = postings.read(piece.number)
    shingles = np.ascontiguousarray(records["shingle"])
    order = np.argsort(shingles)
    bounds = runs_of(shingles[order])
    several = np.diff(bounds) > 1
    documents = records["document"][order[np.repeat(several, np.diff(bounds))]]
    sizes = np.diff(bounds)[several]
    del records, shingles, order
    documents = _sorted_within(documents, sizes)
    if plan.border is None:
        others = np.repeat(sizes - 1, sizes)
    else:
        ours = documents < plan.border
        left = np.add.reduceat(ours, starts_of(sizes)[:-1], dtype=np.int64) if len(documents) else sizes
        kept = (left > 0) & (left < sizes)
        ours = ours[np.repeat(kept, sizes)]
        left_of, sizes_of = (np.repeat(each[kept], sizes[kept]) for each in (left, sizes))
        others = np.where(ours, sizes_of - left_of, left_of)
        documents, sizes = documents[np.repeat(kept, sizes)], sizes[kept]
    save_array(_list_path(lists, piece.number, "documents"), documents)
    save_array(_list_path(lists, piece.number, "starts"), starts_of(sizes))
    found = np.empty(len(documents), list(_SHARED))
    order = np.argsort(documents, kind="stable")
    found["document"], found["others"] = documents[order], others[order]
    found["list"] = np.repeat(np.arange(len(sizes)), sizes)[order]
    shared.write(piece.number, found, plan.block_bounds(found["document"]))


def _sorted_within(documents: NDArray[np.uint32], sizes: Numbers) -> NDArray[np.uint32]:
    """The documents in lists of these sizes, ascending in each."""
    number = np.repeat(np.arange(len(sizes), dtype=np.uint64), sizes)
    return (np.sort(number << np.uint64(32) | documents) & np.uint64(0xFFFFFFFF)).astype(np.uint32)


def _choose_shingles(plan: ComparisonPlan, shared: Shuffle, requests: Shuffle, piece: Piece) -> None:
    """Of each document that may be the smaller one of a pair the rarest of its shingles that others have."""
    options = plan.options
    sizes = plan.size_of(piece.number)
    first = int(plan.firsts[piece.number])
    parts = [shared.read_piece(part, piece.number) for part in range(plan.parts)]
    part_of = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    records = np.concatenate(parts)
    document = records["document"].astype(np.int64) - first
    alone = sizes - np.bincount(document, minlength=len(sizes))
    needed = np.maximum(np.ceil(options.least_share * sizes - 1e-9), 1).astype(np.int64)
    wanted = sizes - needed + 1 - alone
    may = wanted[document] > 0
    records, document, part_of = records[may], document[may], part_of[may]
    order = np.lexsort((records["list"], part_of, records["others"], document))
    records, document, part_of = records[order], document[order], part_of[order]
    rank = np.arange(len(document)) - np.searchsorted(document, document)
    taken = rank < wanted[document]
    records, part_of = records[taken], part_of[taken]
    order = np.argsort(part_of, kind="stable")
    found = np.empty(len(order), list(_REQUESTS))
    found["list"], found["document"] = records["list"][order], records["document"][order]
    requests.write(piece.number, found, starts_of(np.bincount(part_of, minlength=plan.parts)))


def _find_candidates(plan: ComparisonPlan, lists: Path, requested: Shuffle, written: Shuffle, piece: Piece) -> None:
    """Of each part of the shingles the pairs of documents that ask for one and others that have it."""
    requests = requested.read(piece.number)
    members = load_array(_list_path(lists, piece.number, "documents"), "<u4")
    starts = load_array(_list_path(lists, piece.number, "starts"), np.int64)
    asked = _asked(requests, members, starts, plan.border)
    found = [np.zeros(0, np.uint64)]
    for pairs in _pairs(asked, members, plan.sizes("size"), plan.crowd):
        found.append(pairs)
        if sum(map(len, found)) > 4 * _AT_ONCE:
            found = [np.unique(np.concatenate(found))]
    pairs = np.unique(np.concatenate(found))
    records = np.empty(len(pairs), list(_PAIRS))
    records["left"], records["right"] = pairs >> np.uint64(32), pairs & np.uint64(0xFFFFFFFF)
    crowded = np.unique(requests["list"][asked.length > plan.crowd])
    save_array(lists / f"{piece.number:06d}.crowded", np.array([len(crowded)]))
    written.write(piece.number, records, plan.block_bounds(records["left"]))


class _Asked(NamedTuple):
    """Documents that ask for lists, and where in `members` each list's documents of the other side are."""

    documents: Numbers
    begin: Numbers
    length: Numbers

    def some(self, chosen: NDArray[np.bool_] | slice) -> _Asked:
        return _Asked(self.documents[chosen], self.begin[chosen], self.length[chosen])


def _asked(requests: Records, members: NDArray[np.uint32], starts: Numbers, border: int | None) -> _Asked:
    documents = requests["document"].astype(np.int64)
    begin, end = starts[requests["list"]], starts[requests["list"] + 1]
    if border is not None:
        theirs = np.concatenate(([0], np.cumsum(members >= border)))
        middle = end - (theirs[end] - theirs[begin])
        begin, end = np.where(documents < border, middle, begin), np.where(documents < border, end, middle)
    return _Asked(documents, begin, end - begin)


def _pairs(
    asked: _Asked, members: NDArray[np.uint32], sizes: NDArray[np.uint32], most: int
) -> Iterator[NDArray[np.uint64]]:
    """Pairs, the left one in the upper half of a number: of documents that ask for a list and those in it."""
    crowded = asked.length > most
    for every, crowd in ((asked.some(~crowded), False), (asked.some(crowded), True)):
        taken = np.full(len(every.length), _FIRST_ONES + _NEIGHBOURS) if crowd else every.length
        for first, end in spans(taken, _AT_ONCE):
            part, sums = every.some(slice(first, end)), starts_of(taken[first:end])
            place = np.repeat(np.arange(end - first), taken[first:end])
            step = np.arange(len(place)) - sums[place]
            if crowd:
                # Those behind the document itself, and from the beginning again after the end.
                behind = _places(part, members)[place] + step - _FIRST_ONES
                step = np.where(step < _FIRST_ONES, step, behind) % part.length[place]
            own, other = part.documents[place], members[part.begin[place] + step].astype(np.int64)
            good = own != other
            if not crowd:
                # From the smaller one only; of two of one size from the earlier one.
                mine, theirs = sizes[own], sizes[other]
                good &= (mine < theirs) | ((mine == theirs) & (own < other))
            own, other = own[good], other[good]
            low, high = np.minimum(own, other).astype(np.uint64), np.maximum(own, other).astype(np.uint64)
            yield np.unique(low << np.uint64(32) | high)


def _places(asked: _Asked, members: NDArray[np.uint32]) -> Numbers:
    """The place behind each document in the list that it asks for."""
    found = [
        int(np.searchsorted(members[begin : begin + length], document, side="right"))
        for document, begin, length in zip(*(column.tolist() for column in asked), strict=True)
    ]
    return np.array(found, np.int64)


def _list_path(folder: Path, part: int, name: str) -> Path:
    return folder / f"{part:06d}.{name}"
