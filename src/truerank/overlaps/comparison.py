"""Compares the texts of a test side with those of a training side."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl

from truerank.arrays import Hashes, among
from truerank.errors import InputError
from truerank.near_duplicates import Documents, Sketches, between
from truerank.near_duplicates.shingles import CommonShingles, Numbers, starts_of
from truerank.near_duplicates.sketches import claim
from truerank.overlaps.kept_texts import PART, KeptTexts, keep
from truerank.overlaps.meaning import cosines, similar
from truerank.overlaps.results import OVERLAPS, OverlapRules, Overlaps, SemanticState, TextPart, with_evidence
from truerank.overlaps.wording import HOLDERS, Common, familiar, same_letters, same_words, without_familiar
from truerank.vectors.encoders.base import Encoder
from truerank.work.blocks import BlockStore
from truerank.work.jobs import Job, opened

#: Of unfinished work.
_FORMAT: Final = 3
#: Texts with one shingle up to which all are compared: what is found does not depend on what else is compared.
_CROWD: Final = 1 << 14
#: Shingles that are compared at a time.
_AT_ONCE: Final = 1 << 22


def compare(
    test: Documents | KeptTexts,
    training: Documents | KeptTexts,
    rules: OverlapRules = OverlapRules(),
    job: Job | None = None,
    *,
    encoder: Encoder | None = None,
    holders: int = HOLDERS,
) -> Overlaps:
    """Finds the texts of a test side that are in a training side.

    Args:
        test: pairs of id and text, or documents; a stream that is read once. Or what `keep` kept of them.
        training: the same of the training side. The same kept texts on both sides compare a collection with itself:
            each pair stands once, with the earlier text on the test side.
        rules: what counts as an overlap.
        job: where unfinished work lies, what runs it, and whom it tells; by default a temporary folder and this
            process. A killed job continues if it gets the same texts and rules.
        encoder: makes the vectors of streams; None for no semantic evidence. Kept texts have theirs or not.
        holders: texts of the test side that hold a shingle, from which on it is familiar (`overlaps.familiar`).

    Returns:
        The pairs. Memory grows with the pairs and with a million texts of each side, not with the sides.

    Raises:
        InputError: kept texts for other n-grams, a folder with other work, or a worker died.
    """
    with opened(job) as work:
        sides = [
            side if isinstance(side, KeptTexts) else keep(side, rules, work.part(f"{name}-texts"), encoder)
            for name, side in (("test", test), ("training", training))
        ]
        return compare_all(sides[:1], sides[1], rules, work, holders=holders)[0]


def compare_all(
    tests: Sequence[KeptTexts],
    training: KeptTexts,
    rules: OverlapRules = OverlapRules(),
    job: Job | None = None,
    *,
    in_full: bool = False,
    holders: int = HOLDERS,
) -> tuple[Overlaps, ...]:
    """Compares several test sides with one training side, which costs less than one after the other.

    Args:
        tests: kept texts; one of them may be those of the training side.
        training: kept texts.
        rules: what counts as an overlap.
        job: as in `compare`.
        in_full: a test side with the kept texts of the training side is one that was trained on, and each of its texts
            has its pair; by default it is compared with itself.
        holders: as in `compare`.

    Returns:
        For each test side what `compare` finds; unless lists are crowded, the very same.

    Raises:
        InputError: as in `compare`.
    """
    for side in (*tests, training):
        if side.rules.ngram != rules.ngram:
            fault = f"texts kept for n-grams of {side.rules.ngram} words, not of {rules.ngram}"
            raise InputError(fault, "keep them again", where=side.folder)
    with opened(job) as work:
        identity = [_identity(side) for side in (*tests, training)]
        claim(
            work.folder,
            {"format": _FORMAT, "rules": asdict(rules), "sides": identity, "in_full": in_full, "holders": holders},
        )
        store, crowds = BlockStore(work.folder / "pairs"), BlockStore(work.folder / "crowds")
        places = [(group, right) for group in _groups(tests, training, in_full) for right in range(len(training.parts))]
        for number, (group, right) in enumerate(places):
            if not store.has(number):
                part = work.part(f"compare-{number:05d}")
                found, crowd = _compared(group, _Right(right, training.parts[right]), rules, part, holders)
                crowds.save(number, pl.DataFrame({"crowded": [crowd]}))
                store.save(number, found)
                shutil.rmtree(part.folder, ignore_errors=True)
        frames = [store.load(number) for number in range(len(places))]
        crowded = sum(int(crowds.load(number).item()) for number in range(len(places)))
    pairs = pl.concat([pl.DataFrame(schema={**OVERLAPS, "test": pl.Int64}), *frames])
    return tuple(
        Overlaps(
            rules,
            (len(test), len(training)),
            pairs.filter(test=at).drop("test"),
            semantic_state(test, training),
            crowded,
            (test.unread, training.unread),
        )
        for at, test in enumerate(tests)
    )


def _identity(side: KeptTexts) -> list[Any]:
    parts = [[list(part.shingles.sizes), part.shingles.shingles, part.ngrams.shingles] for part in side.parts]
    return [parts, None if side.encoder is None else side.encoder[0]]


def semantic_state(test: KeptTexts, training: KeptTexts) -> SemanticState:
    if test.encoder is None or test.encoder != training.encoder:
        return "not asked"
    unread = any(0 < len(side) - side.empty <= side.unread for side in (test, training))
    return "unknown language" if unread else "compared"


class _Member(NamedTuple):
    """A part of a test side: of which side, its number there, whether the training side is the same one, and the
    dimension of vectors to compare, or 0."""

    test: int
    number: int
    part: TextPart
    itself: bool
    dimension: int


class _Right(NamedTuple):
    number: int
    part: TextPart


def _groups(tests: Sequence[KeptTexts], training: KeptTexts, in_full: bool) -> Iterator[list[_Member]]:
    """Parts of test sides that are compared together: up to a million texts."""
    group: list[_Member] = []
    for at, test in enumerate(tests):
        itself = not in_full and test.folder.resolve() == training.folder.resolve()
        dimension = test.encoder[1] if semantic_state(test, training) == "compared" and test.encoder else 0
        for number, part in enumerate(test.parts):
            if group and sum(len(one.part) for one in group) + len(part) > PART:
                yield group
                group = []
            group.append(_Member(at, number, part, itself, dimension))
    if group:
        yield group


def _compared(
    group: Sequence[_Member], theirs: _Right, rules: OverlapRules, job: Job, holders: int
) -> tuple[pl.DataFrame, int]:
    """The pairs of a group and a part of the training side with all evidence, by test side, text and text; and how
    many shingles and n-grams are crowded."""
    left, right = TextPart.joined([one.part for one in group]), theirs.part
    firsts = starts_of(np.array([len(one.part) for one in group], np.int64))
    near = between(left.shingles, right.shingles, rules.shingles, job.part("near"), numbered=True, crowd=_CROWD)
    ngrams = between(left.ngrams, right.ngrams, rules.ngrams, job.part("ngrams"), numbered=True, crowd=_CROWD)
    every = pl.concat([each.pairs.select(pl.col("left", "right").cast(pl.Int64)) for each in (near, ngrams)]).unique()
    # What a probe of words finds rests on all of its texts: each test side has its own.
    wording = pl.concat(
        found.with_columns(pl.col("left") + int(firsts[at]))
        for at, one in enumerate(group)
        for found in _worded((one.part, right), len(left), rules, job.part(f"words-{at:05d}"))
    )
    proposed = [_with_copies(every, right), wording.select("left", "right")]
    for size, first, members in _with_vectors(group):
        ours, part = TextPart.joined([one.part for one in members]), job.part(f"meaning-{first:05d}")
        alike = similar(ours, right, size, rules.threshold, part)
        proposed.append(alike.with_columns(pl.col("left") + int(firsts[first])))
    pairs = pl.concat(proposed).unique().sort("left", "right")
    member = np.searchsorted(firsts, pairs["left"].to_numpy(), side="right") - 1
    own = pairs["left"].to_numpy() - firsts[member]
    kept = np.ones(len(pairs), np.bool_)
    for at, one in enumerate(group):
        if one.itself:
            later = own < pairs["right"].to_numpy() if one.number == theirs.number else one.number < theirs.number
            kept &= (member != at) | later
    pairs, member = pairs.filter(pl.Series(kept)), member[kept]
    dimension = np.array([one.dimension for one in group])[member]
    cosine = np.full(len(pairs), np.nan)
    for size in np.unique(dimension[dimension > 0]).tolist():
        some = dimension == size
        cosine[some] = cosines(pairs.filter(pl.Series(some)), left, right, size).to_numpy()
    found = _measured((pairs, member), group, (left, right), rules, holders).with_columns(
        cosine=pl.Series(cosine, dtype=pl.Float64).fill_nan(None),
        test=pl.Series(np.array([one.test for one in group])[member], dtype=pl.Int64),
    )
    found = found.join(wording, on=["left", "right"], how="left", maintain_order="left")
    found = with_evidence(_named(found, left, right, "shown", "text"), rules)
    found = _named(found, left, right, "document_id", "id")
    columns = {**OVERLAPS, "test": pl.Int64}
    found = found.select(columns.keys()).cast(columns)  # type: ignore[arg-type]
    return found, near.crowded + ngrams.crowded


def _named(found: pl.DataFrame, left: TextPart, right: TextPart, column: str, name: str) -> pl.DataFrame:
    """The pairs with a column of the texts of both sides, as `test_NAME` and `training_NAME`."""
    ours, theirs = left.gathered(column, found["left"]), right.gathered(column, found["right"])
    return found.with_columns(ours.alias(f"test_{name}"), theirs.alias(f"training_{name}"))


def _with_vectors(group: Sequence[_Member]) -> Iterator[tuple[int, int, list[_Member]]]:
    """Neighbours in a group whose vectors are compared: their dimension, the place of the first, and themselves."""
    first = 0
    for size, run in groupby(group, key=lambda one: one.dimension):
        members = list(run)
        if size:
            yield size, first, members
        first += len(members)


def _worded(sides: tuple[TextPart, TextPart], texts: int, rules: OverlapRules, job: Job) -> Iterator[pl.DataFrame]:
    """The pairs of short texts with the same words, and those with damaged ones; `texts` is as in `same_words`."""
    left, right = sides
    words = same_words(left, right, job, texts)
    yield words
    yield same_letters(left, right, words, rules)


def _with_copies(pairs: pl.DataFrame, right: TextPart) -> pl.DataFrame:
    """The pairs, and those with all texts of the right side that have the same words as one of a pair."""
    sequence = right.column("sequence")
    every = pl.DataFrame({"right": np.arange(len(sequence)), "sequence": sequence.astype(np.uint64)})
    of_pairs = pairs.join(every, on="right")
    worded = of_pairs.filter(pl.col("sequence") != 0).select("left", "sequence").unique()
    copies = worded.join(every, on="sequence").select("left", "right")
    return pl.concat([pairs, copies]).unique()


def _measured(
    found: tuple[pl.DataFrame, Numbers],
    group: Sequence[_Member],
    sides: tuple[TextPart, TextPart],
    rules: OverlapRules,
    holders: int,
) -> pl.DataFrame:
    """What the texts of each pair have in common; pairs come with the place in the group of the left text of each."""
    (pairs, member), (left, right) = found, sides
    one, other = pairs["left"].to_numpy(), pairs["right"].to_numpy()
    words = [part.column("measured").astype(np.int64)[of] for part, of in ((left, one), (right, other))]
    alike = [part.column("folded")[of] for part, of in ((left, one), (right, other))]
    ours = [[side.part.shingles for side in group], [side.part.ngrams for side in group]]
    shingles = _common((one, other), (left.shingles, right.shingles), ours[0], member, holders)
    ngrams = _common((one, other), (left.ngrams, right.ngrams), ours[1], member, holders)
    long = (words[0] >= rules.ngram) & (words[1] >= rules.ngram)
    least = np.minimum(shingles.left, shingles.right)
    return pairs.with_columns(
        exact=pl.Series(alike[0] == alike[1], dtype=pl.Boolean),
        ngram_test=_share(ngrams.both, np.where(long, ngrams.left, 0)),
        ngram_training=_share(ngrams.both, np.where(long, ngrams.right, 0)),
        jaccard=_share(shingles.both, shingles.left + shingles.right - shingles.both),
        containment=_share(shingles.both, least),
        test_words=words[0],
        training_words=words[1],
    )


def _share(part: Numbers, whole: Numbers) -> pl.Series:
    """Shares, rounded as they are stored; null of nothing."""
    values = pl.Series(np.round(part / np.maximum(whole, 1), 6), dtype=pl.Float64)
    return values.zip_with(pl.Series(whole > 0), pl.Series([None], dtype=pl.Float64))


def _common(
    numbers: tuple[Numbers, Numbers],
    sides: tuple[Sketches, Sketches],
    members: Sequence[Sketches],
    member: Numbers,
    holders: int,
) -> Common:
    """Counts the shingles of pairs of texts, in the order of the texts of the right side, without familiar ones."""
    sizes = [
        np.concatenate(
            [np.zeros(0, np.int64), *(side.column(block, "size") for block in range(len(side.sizes)))]
        ).astype(np.int64)[of]
        for side, of in zip(sides, numbers, strict=True)
    ]
    both, known = np.zeros(len(member), np.int64), np.zeros((3, len(member)), np.int64)
    order = np.argsort(numbers[1], kind="stable")
    total = np.cumsum((sizes[0] + sizes[1])[order])
    cuts = np.searchsorted(total, np.arange(_AT_ONCE, int(total[-1]) if len(total) else 0, _AT_ONCE))
    for chosen in np.split(order, cuts):
        (ours, our_pair), (theirs, their_pair) = (
            _gathered(side, of[chosen]) for side, of in zip(sides, numbers, strict=True)
        )
        usual = [np.zeros(len(values), np.bool_) for values in (ours, theirs)]
        first = np.zeros(len(chosen), np.bool_)
        first[np.unique(numbers[0][chosen], return_index=True)[1]] = True
        for at in np.unique(member[chosen]).tolist():
            inside = member[chosen] == at
            names = familiar(ours[(inside & first)[our_pair]], members[at], holders)
            for marked, values, pair in ((usual[0], ours, our_pair), (usual[1], theirs, their_pair)):
                marked |= inside[pair] & among(values, names)
        found = CommonShingles.of(
            len(chosen), np.concatenate((ours, theirs)), np.concatenate((our_pair, their_pair)), np.concatenate(usual)
        )
        both[chosen], known[0, chosen] = found.every, found.marked
        for row, (marked, pair) in enumerate(zip(usual, (our_pair, their_pair), strict=True), 1):
            known[row, chosen] = np.bincount(pair[marked], minlength=len(chosen))
    return without_familiar(Common(both, sizes[0], sizes[1]), Common(*known))


def _gathered(side: Sketches, numbers: Numbers) -> tuple[Hashes, Numbers]:
    """The shingles of some texts, one text after the other, and the place of the text that has each."""
    firsts = starts_of(np.array(side.sizes, np.int64))
    block_of = np.searchsorted(firsts, numbers, side="right") - 1
    found, owner = [np.zeros(0, np.uint64)], [np.zeros(0, np.int64)]
    for block in np.unique(block_of).tolist():
        places = np.flatnonzero(block_of == block)
        rows = side.load(block, side.columns[0])[side.columns[0]].gather(numbers[places] - firsts[block])
        found.append(np.frombuffer(b"".join(rows), "<u8"))
        owner.append(np.repeat(places, rows.bin.size().to_numpy().astype(np.int64) // 8))
    return np.concatenate(found), np.concatenate(owner)
