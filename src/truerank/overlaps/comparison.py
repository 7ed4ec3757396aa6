"""Compares the texts of a test side with those of a training side."""

from __future__ import annotations

import shutil
from dataclasses import asdict
from itertools import product
from typing import Any, Final

import numpy as np
import polars as pl

from truerank.arrays import Hashes, among
from truerank.near_duplicates import Documents, Sketches, between
from truerank.near_duplicates.shingles import CommonShingles, Numbers, starts_of
from truerank.near_duplicates.sketches import claim
from truerank.overlaps.kept_texts import KeptTexts, keep
from truerank.overlaps.results import OVERLAPS, OverlapRules, Overlaps, TextPart, with_evidence
from truerank.overlaps.wording import HOLDERS, Common, familiar, same_letters, same_words, without_familiar
from truerank.work.blocks import BlockStore
from truerank.work.jobs import Job, opened

#: Of unfinished work.
_FORMAT: Final = 5
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
    holders: int = HOLDERS,
) -> Overlaps:
    """Finds the texts of a test side that are in a training side.

    Args:
        test: pairs of id and text, or documents; a stream that is read once. Or what `keep` kept of them.
        training: the same of the training side.
        rules: what counts as an overlap.
        job: where unfinished work lies, what runs it, and whom it tells; by default a temporary folder and this
            process. A killed job continues if it gets the same texts and rules.
        holders: texts of the test side that hold a shingle, from which on it is familiar (`overlaps.familiar`).

    Returns:
        The pairs. Memory grows with the pairs and with a million texts of each side, not with the sides.

    Raises:
        InputError: a folder with other work, or a worker died.
    """
    with opened(job) as work:
        ours, theirs = (
            side if isinstance(side, KeptTexts) else keep(side, rules, work.part(f"{name}-texts"))
            for name, side in (("test", test), ("training", training))
        )
        identity = [_identity(side) for side in (ours, theirs)]
        claim(work.folder, {"format": _FORMAT, "rules": asdict(rules), "sides": identity, "holders": holders})
        store, crowds = BlockStore(work.folder / "pairs"), BlockStore(work.folder / "crowds")
        places = list(product(ours.parts, theirs.parts))
        for number, (left, right) in enumerate(places):
            if not store.has(number):
                part = work.part(f"compare-{number:05d}")
                found, crowd = _compared(left, right, rules, part, holders)
                crowds.save(number, pl.DataFrame({"crowded": [crowd]}))
                store.save(number, found)
                shutil.rmtree(part.folder, ignore_errors=True)
        frames = [store.load(number) for number in range(len(places))]
        crowded = sum(int(crowds.load(number).item()) for number in range(len(places)))
    pairs = pl.concat([pl.DataFrame(schema=OVERLAPS), *frames])
    return Overlaps(pairs, crowded)


def _identity(side: KeptTexts) -> list[Any]:
    return [[list(part.shingles.sizes), part.shingles.shingles, part.ngrams.shingles] for part in side.parts]


def _compared(left: TextPart, right: TextPart, rules: OverlapRules, job: Job, holders: int) -> tuple[pl.DataFrame, int]:
    """The pairs of a part of each side with all evidence, by text and text; and how many shingles and n-grams are
    crowded. Shingles with so many `holders` are familiar.
    """
    near = between(left.shingles, right.shingles, rules.shingles, job.part("near"), numbered=True, crowd=_CROWD)
    ngrams = between(left.ngrams, right.ngrams, rules.ngrams, job.part("ngrams"), numbered=True, crowd=_CROWD)
    every = pl.concat([each.pairs.select(pl.col("left", "right").cast(pl.Int64)) for each in (near, ngrams)]).unique()
    words = same_words(left, right, job.part("words"))
    wording = pl.concat([words, same_letters(left, right, words, rules)])
    pairs = pl.concat([_with_copies(every, right), wording.select("left", "right")]).unique().sort("left", "right")
    measured = _measured(pairs, (left, right), rules, holders)
    measured = measured.join(wording, on=["left", "right"], how="left", maintain_order="left")
    measured = with_evidence(_named(measured, left, right, "shown", "text"), rules)
    measured = _named(measured, left, right, "document_id", "id").select(OVERLAPS.keys()).cast(OVERLAPS)  # type: ignore[arg-type]
    return measured, near.crowded + ngrams.crowded


def _named(pairs: pl.DataFrame, left: TextPart, right: TextPart, column: str, name: str) -> pl.DataFrame:
    """The pairs with a column of the texts of both sides, as `test_NAME` and `training_NAME`."""
    ours, theirs = left.gathered(column, pairs["left"]), right.gathered(column, pairs["right"])
    return pairs.with_columns(ours.alias(f"test_{name}"), theirs.alias(f"training_{name}"))


def _with_copies(pairs: pl.DataFrame, right: TextPart) -> pl.DataFrame:
    """The pairs, and those with all texts of the right side that have the same words as one of a pair."""
    sequence = right.column("sequence")
    every = pl.DataFrame({"right": np.arange(len(sequence)), "sequence": sequence.astype(np.uint64)})
    of_pairs = pairs.join(every, on="right")
    worded = of_pairs.filter(pl.col("sequence") != 0).select("left", "sequence").unique()
    copies = worded.join(every, on="sequence").select("left", "right")
    return pl.concat([pairs, copies]).unique()


def _measured(pairs: pl.DataFrame, sides: tuple[TextPart, TextPart], rules: OverlapRules, holders: int) -> pl.DataFrame:
    """What the texts of each pair have in common."""
    numbers = pairs["left"].to_numpy(), pairs["right"].to_numpy()
    words = [part.column("measured").astype(np.int64)[of] for part, of in zip(sides, numbers, strict=True)]
    alike = [part.column("folded")[of] for part, of in zip(sides, numbers, strict=True)]
    left, right = sides
    shingles = _common(numbers, (left.shingles, right.shingles), holders)
    ngrams = _common(numbers, (left.ngrams, right.ngrams), holders)
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


def _common(numbers: tuple[Numbers, Numbers], sides: tuple[Sketches, Sketches], holders: int) -> Common:
    """Counts the shingles of pairs of texts, in the order of the texts of the right side, without familiar ones."""
    sizes = [
        np.concatenate(
            [np.zeros(0, np.int64), *(side.column(block, "size") for block in range(len(side.sizes)))]
        ).astype(np.int64)[of]
        for side, of in zip(sides, numbers, strict=True)
    ]
    both, familiar_ones = np.zeros(len(numbers[0]), np.int64), np.zeros((3, len(numbers[0])), np.int64)
    order = np.argsort(numbers[1], kind="stable")
    total = np.cumsum((sizes[0] + sizes[1])[order])
    cuts = np.searchsorted(total, np.arange(_AT_ONCE, int(total[-1]) if len(total) else 0, _AT_ONCE))
    for chosen in np.split(order, cuts):
        (ours, our_pair), (theirs, their_pair) = (
            _gathered(side, of[chosen]) for side, of in zip(sides, numbers, strict=True)
        )
        first = np.zeros(len(chosen), np.bool_)
        first[np.unique(numbers[0][chosen], return_index=True)[1]] = True
        names = familiar(ours[first[our_pair]], sides[0], holders)
        usual = [among(values, names) for values in (ours, theirs)]
        common = CommonShingles.of(
            len(chosen), np.concatenate((ours, theirs)), np.concatenate((our_pair, their_pair)), np.concatenate(usual)
        )
        both[chosen], familiar_ones[0, chosen] = common.every, common.marked
        for row, (marked, pair) in enumerate(zip(usual, (our_pair, their_pair), strict=True), 1):
            familiar_ones[row, chosen] = np.bincount(pair[marked], minlength=len(chosen))
    return without_familiar(Common(both, sizes[0], sizes[1]), Common(*familiar_ones))


def _gathered(side: Sketches, numbers: Numbers) -> tuple[Hashes, Numbers]:
    """The shingles of some texts, one text after the other, and the place of the text that has each."""
    firsts = starts_of(np.array(side.sizes, np.int64))
    block_of = np.searchsorted(firsts, numbers, side="right") - 1
    shingles, owner = [np.zeros(0, np.uint64)], [np.zeros(0, np.int64)]
    for block in np.unique(block_of).tolist():
        places = np.flatnonzero(block_of == block)
        rows = side.load(block, side.columns[0])[side.columns[0]].gather(numbers[places] - firsts[block])
        shingles.append(np.frombuffer(b"".join(rows), "<u8"))
        owner.append(np.repeat(places, rows.bin.size().to_numpy().astype(np.int64) // 8))
    return np.concatenate(shingles), np.concatenate(owner)
