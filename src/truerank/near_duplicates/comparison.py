"""Near-duplicates within a collection and between two: candidates verified by what they share of all their shingles."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from truerank.arrays import Hashes, among
from truerank.errors import InputError
from truerank.near_duplicates.joins import (
    CROWD,
    NO_TWIN,
    ComparisonPlan,
    Piece,
    PlainStep,
    Shuffle,
    engine_for,
    find_candidates,
    find_equals,
    load_array,
    run_pieces,
    save_array,
    spans,
)
from truerank.near_duplicates.results import BOILERPLATE, GROUPS, KINDS, PAIRS, Equivalents, groups_of
from truerank.near_duplicates.shingles import CommonShingles, Numbers, Shingles, starts_of
from truerank.near_duplicates.sketches import Documents, Sketches, boilerplate, claim, keep
from truerank.work.blocks import BlockStore, run_blocks
from truerank.work.engines import Engine, LocalEngine, RayEngine, give_back, processors
from truerank.work.jobs import Job, opened
from truerank.work.kept import all_whole, forget_all, is_whole
from truerank.work.runs import plain

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
    blocks = len(plan.places)
    texts = _Texts(plan)
    run_pieces("marking documents", PlainStep(partial(_mark_documents, plan, candidates), texts.are_marked), 1, job)
    run_pieces("gathering shingles", PlainStep(partial(_gather_shingles, plan, texts), texts.gathered), blocks, job)
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
        return self.plan.folder / "needed.u1"

    def are_marked(self, _: int) -> bool:
        return is_whole(self.marks)

    def gathered(self, block: int) -> bool:
        needed = [self.path(block)] if self.marked(block).any() else []
        return all(map(is_whole, [self.index(block), *needed]))

    def path(self, block: int) -> Path:
        return self.plan.folder / "needed" / f"{block:06d}.shingles"

    def index(self, block: int) -> Path:
        """Where those of each document of a block begin, and the end; missing until the block is done."""
        return self.path(block).with_suffix(".starts")

    def marked(self, block: int) -> NDArray[np.bool_]:
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


def _mark_documents(plan: ComparisonPlan, candidates: Shuffle, piece: Piece) -> None:
    marks = np.zeros(int(plan.firsts[-1]), np.bool_)
    for part in range(plan.parts):
        pairs = candidates.of_piece(part)
        marks[pairs["left"]] = True
        marks[pairs["right"]] = True
    save_array(_Texts(plan).marks, marks)


def _gather_shingles(plan: ComparisonPlan, texts: _Texts, piece: Piece) -> None:
    needed = texts.marked(piece.number)
    sizes = np.where(needed, plan.size_of(piece.number), 0)
    if needed.any():
        sketches, block = plan.places[piece.number]
        shingles = sketches.shingles_of(block)
        save_array(texts.path(piece.number), shingles[np.repeat(needed, plan.size_of(piece.number))])
    save_array(texts.index(piece.number), starts_of(sizes))


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


#: Of unfinished work; another one has other columns.
_FORMAT: Final = 2


def within(documents: Documents | Sketches, options: Shingles = Shingles(), job: Job | None = None) -> Equivalents:
    """Finds documents of one collection that say the same.

    Args:
        documents: the documents, or pairs of id and text, with distinct ids; a stream that is read once. Or what
            `keep` kept of them.
        options: what counts as nearly the same.
        job: where unfinished work lies, what runs it, and whom it tells; by default a temporary folder and this
            process. A killed job continues if it gets the same documents and options.

    Returns:
        Pairs, groups and boilerplate.

    Raises:
        InputError: sketches of other shingles, a folder with other work, or a worker died.
    """
    with opened(job) as work:
        sketches = _sketches(documents, options, work.part("sketches"))
        plan = ComparisonPlan(work.folder, (sketches,), options, CROWD)
        passages = boilerplate(sketches.all_passages, len(sketches), options.boilerplate)
        pairs, crowded = _compare(plan, replace(work, engine=_here(work.engine)), passages["passage"])
        named = _named(plan, pairs)
        numbers = np.unique(pairs.select("left", "right").to_numpy())
        groups = groups_of(named, _ids(plan, numbers))
        return Equivalents(options, (len(sketches), 0), sketches.empty, named, groups, passages, crowded)


def between(
    left: Documents | Sketches,
    right: Documents | Sketches,
    options: Shingles = Shingles(),
    job: Job | None = None,
    *,
    numbered: bool = False,
    crowd: int = CROWD,
) -> Equivalents:
    """Finds documents of two collections that say the same; pairs within one of them are not looked for.

    Args:
        left: the documents that are asked about, such as test documents, or pairs of id and text; a stream that is
            read once. Or what `keep` kept of them.
        right: the same of the other collection.
        options: what counts as nearly the same.
        job: as in `within`.
        numbered: name documents by their places from 0, as integers, in place of ids.
        crowd: documents with one shingle up to which all are compared; more take more time.

    Returns:
        Pairs of a document of `left` and one of `right`. Every document of `left` has its pairs; documents of `right`
        with the same words stand for each other, the first one is named.

    Raises:
        InputError: sketches of other shingles, a folder with other work, or a worker died.
    """
    with opened(job) as work:
        sides = tuple(
            _sketches(side, options, work.part(f"{name}-sketches")) for name, side in (("left", left), ("right", right))
        )
        plan = ComparisonPlan(work.folder, sides, options, crowd)
        pairs, crowded = _compare(plan, replace(work, engine=_here(work.engine)))
        sizes = len(sides[0]), len(sides[1])
        groups, passages = pl.DataFrame(schema=GROUPS), pl.DataFrame(schema=BOILERPLATE)
        empty = sides[0].empty + sides[1].empty
        if numbered:
            found = pairs.with_columns(pl.col("right") - len(sides[0])).select(PAIRS.keys())
        else:
            found = _named(plan, pairs)
        return Equivalents(options, sizes, empty, found, groups, passages, crowded)


def _here(engine: Engine) -> Engine:
    """What sorts and joins: processes of this machine, which share its disk. Only texts are worth sending elsewhere."""
    return LocalEngine(processors()) if isinstance(engine, RayEngine) else engine


def _sketches(documents: Documents | Sketches, options: Shingles, job: Job) -> Sketches:
    if not isinstance(documents, Sketches):
        return keep(documents, options, job)
    kept = documents.options
    if (kept.shingle_unit, kept.shingle_size) != (options.shingle_unit, options.shingle_size):
        fault = (
            f"sketches of {kept.shingle_size} {kept.shingle_unit}, not of {options.shingle_size} {options.shingle_unit}"
        )
        raise InputError(fault, "keep them again with these options", where=documents.folder)
    return documents


def _compare(plan: ComparisonPlan, job: Job, passages: Iterable[str] = ()) -> tuple[pl.DataFrame, int]:
    """All pairs by number, columns as in `RELATIONS`, and how many crowded shingles there are."""
    give_back()
    if plan.firsts[-1] >= NO_TWIN:
        raise InputError(f"{plan.firsts[-1]:,} documents, more than can be numbered", "compare them in parts")
    sides = [[*side.sizes, side.shingles, side.empty] for side in plan.sides]
    parts = [path for path in plan.folder.iterdir() if not path.name.endswith("sketches")]
    if not all_whole(parts):
        forget_all(parts)
    claim(plan.folder, {"format": _FORMAT, "options": plain(plan.options), "sides": sides, "crowd": plan.crowd})
    plan.write_sizes()
    plan.write_boilerplate(passages)
    equals = find_equals(plan, job)
    candidates, crowded = find_candidates(plan, equals, job)
    similar = verify(plan, candidates, job)
    repeats = pl.DataFrame(np.concatenate([equals.of_piece(part) for part in range(plan.parts)])).cast(pl.Int64)
    twins = _twins(plan, repeats.filter(pl.col("twin") != NO_TWIN))
    if plan.border is not None:
        matched = repeats.filter(pl.col("match") != NO_TWIN).select(left="document", right="match")
        similar = similar.join(matched, on=["left", "right"], how="anti")
        others = repeats.filter((pl.col("document") != pl.col("first")) & (pl.col("document") < plan.border))
        alike = similar.join(others.select("document", "first"), left_on="left", right_on="first")
        alike = alike.with_columns(left="document").select(RELATIONS.keys())
        similar = pl.concat([similar, alike])
    return pl.concat([twins, similar]).sort("left", "right"), crowded


def _twins(plan: ComparisonPlan, repeats: pl.DataFrame) -> pl.DataFrame:
    """Exact and reformatted duplicates with the document that they repeat."""
    document, twin = repeats["document"], repeats["twin"]
    left, right = (twin, document) if plan.border is None else (document, twin)
    words = plan.sizes("words")
    columns: dict[str, Any] = {
        "left": left,
        "right": right,
        "kind": [KINDS[kind] for kind in repeats["kind"]],
        **dict.fromkeys(("jaccard", "left_in_right", "right_in_left", "own_share"), np.ones(len(repeats))),
        "left_words": words[left.to_numpy()].astype(np.int64),
        "right_words": words[right.to_numpy()].astype(np.int64),
    }
    return pl.DataFrame(columns, RELATIONS)


def _named(plan: ComparisonPlan, pairs: pl.DataFrame) -> pl.DataFrame:
    ids = {}
    for side in ("left", "right"):
        numbers, place = np.unique(pairs[side].to_numpy(), return_inverse=True)
        ids[side] = _ids(plan, numbers).gather(place)
    return pairs.with_columns(**ids).select(PAIRS.keys())


def _ids(plan: ComparisonPlan, numbers: Any) -> pl.Series:
    found = [pl.Series("document_id", [], pl.String)]
    block_of = np.searchsorted(plan.firsts, numbers, side="right") - 1
    for block in np.unique(block_of).tolist():
        sketches, own = plan.places[block]
        found.append(sketches.ids(own).gather(numbers[block_of == block] - plan.firsts[block]))
    return pl.concat(found)
