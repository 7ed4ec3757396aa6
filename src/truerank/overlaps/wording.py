"""Evidence of the words and of the letters of short texts: which have the same content words, or damaged ones."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from truerank.arrays import Hashes, among
from truerank.near_duplicates import Sketches
from truerank.near_duplicates.shingles import Numbers, starts_of
from truerank.overlaps.results import BRIEF_WORDS, WORDING_LIMIT, OverlapRules, TextPart
from truerank.text.normalising import normalise
from truerank.text.wording import (
    LETTERS,
    LONGEST_WORD,
    WORDS,
    WordingProbe,
)
from truerank.work.blocks import BlockStore, run_blocks
from truerank.work.jobs import Job

_PAIRS: Final[dict[str, Any]] = {"left": pl.Int64, "right": pl.Int64, "wording": pl.String}
_SAYS: Final = {WORDS: "words", LETTERS: "letters"}


class _ShortTexts(NamedTuple):
    """A block of short texts of the training side, and the place of its first one."""

    number: int
    first: int
    texts: pl.Series


@dataclass(frozen=True)
class _WordingTask:
    """Compares short texts of the training side with those of the test side by their content words."""

    numbers: tuple[int, ...]
    texts: tuple[str, ...]

    def open(self) -> Callable[[_ShortTexts], pl.DataFrame]:
        probe = _probe(self.texts)

        def compare_block(block: _ShortTexts) -> pl.DataFrame:
            places = block.texts.is_not_null().arg_true().to_list()
            found = probe(block.texts.drop_nulls().to_list())
            rows = [(self.numbers[test], block.first + places[at], _SAYS[what]) for at, test, what in found]
            return pl.DataFrame(rows, _PAIRS, orient="row")

        return compare_block


@lru_cache(maxsize=1)
def _probe(texts: tuple[str, ...]) -> WordingProbe:
    """The probe of some texts; those of a test side meet several training sides one after the other."""
    return WordingProbe(texts)


def same_words(left: TextPart, right: TextPart, job: Job) -> pl.DataFrame:
    """The pairs of short texts with the same content words, or nearly the same letters."""
    ours = [left.short(block) for block in range(len(left.shingles.sizes))]
    short = pl.concat([pl.Series("short", [], pl.String), *ours])
    numbers = short.is_not_null().arg_true().to_numpy().astype(np.int64)
    if not len(numbers):
        return pl.DataFrame(schema=_PAIRS)
    task = _WordingTask(tuple(numbers.tolist()), tuple(normalise(text) for text in short.gather(numbers)))

    def blocks() -> Iterator[_ShortTexts]:
        for block in range(len(right.shingles.sizes)):
            yield _ShortTexts(block, int(right.firsts[block]), right.short(block))
            job.progress.advance(right.shingles.sizes[block])

    job.progress.start("comparing words")
    store = BlockStore(job.folder)
    count = run_blocks(task, blocks(), store, job.engine)
    return pl.concat([pl.DataFrame(schema=_PAIRS), *(store.load(block) for block in range(count))])


# Evidence of the letters of short texts: the same words in the same order, several of them damaged.
#
# A scanner takes signs for others and breaks or joins words; hasty typing does, too. Then too few runs of words are
# left for shingles, and more than one word differs. Two short texts that share a rare run of three words are compared
# word by word. Where they differ, the letters must be nearly the same, and what the training text has must be no word
# that other texts have: "increase" in place of "decrease" is another statement, "dccrease" is damage.

#: Texts of each side that may have a shingle by which pairs are proposed.
_HOLDERS: Final = (8, 64)
#: Of the shingles of the shorter text, the share that a pair must have in common, and of the words of the longer one.
_SHINGLES: Final = 0.15
_WORDS: Final = 0.4
#: One letter in so many may differ where texts differ, and at least one.
_LETTERS: Final = 4
#: Letters of a stray mark, which one text may have more.
_STRAY: Final = 2
#: Texts that have a word, from which on it is one; damage that is seen again and again is rarer than the word itself.
_KNOWN: Final = 3
_RARER: Final = 10
#: Signs that look alike in print, and digits that look like letters.
_ALIKE: Final = (("rn", "m"), ("vv", "w"), ("cl", "d"), ("li", "h"), ("ii", "u"))
_AS_LETTERS: Final = str.maketrans("01568", "olsbb")
#: Python counts vowel signs of Indic scripts and of Thai to no word.
_WORD: Final = re.compile(r"[\w\u0300-\u036f\u064b-\u065f\u0900-\u0dff\u0e31-\u0e4e]+")
#: What texts may have in common where words are damaged: all letters and digits, or how each word begins.
_LETTERS_ONLY: Final = pl.col("text").str.replace_all(r"[^\pL\pM\pN]+", "")
_BEGINNINGS: Final = pl.col("text").str.extract_all(r"[\pL\pM\pN]+").list.eval(pl.element().str.head(3)).list.join(" ")
#: The shortest such key.
_FEWEST_SIGNS: Final = 8
#: Low bits of a shingle by which most of the others are passed over.
_BITS: Final = np.uint64((1 << 20) - 1)


def same_letters(left: TextPart, right: TextPart, known: pl.DataFrame, rules: OverlapRules) -> pl.DataFrame:
    """The pairs of short texts that are the same but for damaged words."""
    same = _same_key(left, right, _LETTERS_ONLY).join(known, on=["left", "right"], how="anti")
    every = pl.concat([_proposed(left, right, rules), _same_key(left, right, _BEGINNINGS)]).unique(maintain_order=True)
    pairs = every.join(pl.concat([known.select(same.columns), same]), on=["left", "right"], how="anti").sort(pl.all())
    proposed = pairs["left"].to_list(), pairs["right"].to_list()
    texts = [_texts(part, numbers) for part, numbers in zip((left, right), proposed, strict=True)]
    doubtful = [
        (one, other, places)
        for one, other in zip(*proposed, strict=True)
        if (places := _differing(texts[0][one], texts[1][other])) is not None
    ]
    holders = _holders(
        {word for *_, places in doubtful for place in places for word in (*place.lost, *place.new)}, (left, right)
    )
    found = [
        (one, other, "letters") for one, other, places in doubtful if all(place.damaged(holders) for place in places)
    ]
    return pl.concat([pl.DataFrame(found, _PAIRS, orient="row"), same.with_columns(wording=pl.lit("letters"))])


def _same_key(left: TextPart, right: TextPart, key: pl.Expr) -> pl.DataFrame:
    """The pairs of short texts with the same key, which few texts of a side have; without texts that are the same."""
    sides = []
    for part, most in zip((left, right), _HOLDERS, strict=True):
        blocks = [
            pl.DataFrame({"text": part.short(block).str.to_lowercase(), "number": np.arange(first, last)})
            for block, (first, last) in enumerate(pairwise(part.firsts.tolist()))
        ]
        frame = pl.concat([pl.DataFrame(schema={"text": pl.String, "number": pl.Int64}), *blocks])
        # A hash of the key takes less memory than the key.
        keyed = frame.with_columns(key=key).filter(pl.col("key").str.len_chars() >= _FEWEST_SIGNS)
        keyed = keyed.select("number", pl.col("key").hash(), same=pl.col("text").hash())
        sides.append(keyed.filter(pl.len().over("key") <= most))
    pairs = (
        sides[0].join(sides[1], on="key", maintain_order="left_right").filter(pl.col("same") != pl.col("same_right"))
    )
    return pairs.select(left="number", right="number_right")


class _Place(NamedTuple):
    """Where texts differ: the words that only the test text has there, and those that only the training text has."""

    lost: frozenset[str]
    new: frozenset[str]

    def damaged(self, holders: Mapping[str, int]) -> bool:
        """Whether one of the new words is none that texts have, or that many fewer have than the words in its place."""
        usual = min((holders.get(word, 0) for word in self.lost), default=0)
        return any(holders.get(word, 0) < max(_KNOWN, usual / _RARER) for word in self.new)


def _texts(part: TextPart, numbers: Sequence[int]) -> dict[int, tuple[str, ...]]:
    every = sorted(set(numbers))
    return {at: _words(text) for at, text in zip(every, part.gathered("short", every), strict=True)}


def _words(text: str) -> tuple[str, ...]:
    return tuple(_WORD.findall(text.casefold()))


def _differing(test: Sequence[str], training: Sequence[str]) -> list[_Place] | None:
    """The places where other letters stand; None where the texts are not alike."""
    if len(set(test) & set(training)) < _WORDS * len(set(test)) - 1:
        return None
    matcher = SequenceMatcher(None, test, training, autojunk=False)
    same, places = 0, []
    for what, begin, end, first, last in matcher.get_opcodes():
        if what == "equal":
            same += end - begin
        elif (joined := "".join(test[begin:end])) != "".join(training[first:last]):
            if not alike(test[begin:end], training[first:last]):
                return None
            if joined and last > first:
                lost, new = frozenset(test[begin:end]), frozenset(training[first:last])
                places.append(_Place(lost - new, new - set(test)))
    return places if same >= max(2, _WORDS * max(len(test), len(training))) else None


def alike(test: Sequence[str], training: Sequence[str]) -> bool:
    """Whether words have nearly the same letters; numbers must be the same, or damaged themselves."""
    one, other = "".join(test), "".join(training)
    if not one or not other:
        return len(one) + len(other) <= _STRAY
    if max(map(len, (*test, *training))) > LONGEST_WORD:
        return False
    numbers = [{word for word in words if word.isdigit()} for words in (test, training)]
    if numbers[0] != numbers[1] and all(word.isdigit() or word.isalpha() for word in training):
        return False
    one, other = _folded(test), _folded(training)
    most = max(1, max(len(one), len(other)) // _LETTERS)
    return _distance(one, other, most) <= most


def _folded(words: Sequence[str]) -> str:
    """Words as one, signs that look alike as one of them."""
    joined = "".join(word if word.isalpha() else word.translate(_AS_LETTERS) for word in words)
    for signs, sign in _ALIKE:
        joined = joined.replace(signs, sign)
    return joined


def _distance(one: str, other: str, most: int) -> int:
    """Letters that are more, less or other in one text (Levenshtein, 1966); more than `most` where there are more."""
    if abs(len(one) - len(other)) > most:
        return most + 1
    row = list(range(len(other) + 1))
    for at, sign in enumerate(one, 1):
        before, row[0] = row[0], at
        for place, other_sign in enumerate(other, 1):
            before, row[place] = row[place], min(before + (sign != other_sign), row[place] + 1, row[place - 1] + 1)
        if min(row) > most:
            return most + 1
    return row[-1]


def _holders(wanted: set[str], parts: Sequence[TextPart]) -> Mapping[str, int]:
    """How many short texts have each of some words."""
    holders: Counter[str] = Counter()
    if wanted:
        names = pl.Series(sorted(wanted))
        for part in parts:
            for block in range(len(part.shingles.sizes)):
                texts = part.short(block).drop_nulls().str.to_lowercase()
                # Most texts have none of these words.
                texts = texts.filter(texts.str.contains_any(names.implode()))
                found = texts.str.extract_all(r"[\w]+").list.unique().explode()
                holders.update(dict(found.filter(found.is_in(names.implode())).value_counts().iter_rows()))
    return holders


def _proposed(left: TextPart, right: TextPart, rules: OverlapRules) -> pl.DataFrame:
    """Pairs of short texts of about the same length that share rare shingles, but not the same words in order."""
    ours, owner = _short_shingles(left, None)
    order = np.argsort(ours, kind="stable")
    ours, owner = ours[order], owner[order]
    wanted, first, holders = np.unique(ours, return_index=True, return_counts=True)
    theirs, training = _short_shingles(right, wanted)
    place = np.searchsorted(wanted, theirs)
    rare = (holders <= _HOLDERS[0]) & (np.bincount(place, minlength=len(wanted)) <= _HOLDERS[1])
    theirs, training, place = theirs[rare[place]], training[rare[place]], place[rare[place]]
    repeats = holders[place]
    test = owner[
        np.repeat(first[place], repeats) + np.arange(repeats.sum()) - np.repeat(starts_of(repeats)[:-1], repeats)
    ]
    pairs, shared = np.unique(np.stack((test, np.repeat(training, repeats))), axis=1, return_counts=True)
    words, sizes = (
        [_numbers(part, name)[of] for part, of in zip((left, right), pairs, strict=True)] for name in ("words", "size")
    )
    close = np.abs(words[0] - words[1]) <= 1 + np.maximum(*words) // 4
    near = (np.minimum(*words) >= BRIEF_WORDS) & (shared >= rules.similarity * (sizes[0] + sizes[1] - shared))
    alike = np.equal(*(part.column("sequence")[of] for part, of in zip((left, right), pairs, strict=True)))
    kept = pairs[:, close & ~near & ~alike & (shared >= _SHINGLES * np.minimum(*sizes))]
    return pl.DataFrame({"left": kept[0], "right": kept[1]}, {"left": pl.Int64, "right": pl.Int64})


def _numbers(part: TextPart, name: str) -> Numbers:
    blocks = (part.shingles.column(block, name) for block in range(len(part.shingles.sizes)))
    return np.concatenate([np.zeros(0, np.int64), *blocks]).astype(np.int64)


def _short_shingles(part: TextPart, wanted: Hashes | None) -> tuple[Hashes, Numbers]:
    """The shingles of short texts, and the text of each; only those that are wanted."""
    values, texts = [np.zeros(0, np.uint64)], [np.zeros(0, np.int64)]
    marked = np.zeros(int(_BITS) + 1, np.bool_)
    if wanted is not None:
        marked[wanted & _BITS] = True
    for block, first in enumerate(part.firsts[:-1].tolist()):
        found = part.shingles.shingles_of(block)
        short = part.shingles.column(block, "measured") <= WORDING_LIMIT
        kept = np.repeat(short, part.shingles.column(block, "size"))
        if wanted is not None:
            kept &= marked[found & _BITS]
        numbers = np.repeat(np.arange(first, first + len(short)), part.shingles.column(block, "size"))[kept]
        found = found[kept]
        if wanted is not None:
            there = among(found, wanted)
            found, numbers = found[there], numbers[there]
        values.append(found)
        texts.append(numbers)
    return np.concatenate(values), np.concatenate(texts)


#: Texts of a test side that hold a shingle, from which on it is familiar.
HOLDERS: Final = 4
#: The share of its shingles that a text has for itself, and their number, from which on familiar ones do not count.
_OWN_SHARE: Final = 0.25
_OWN: Final = 4
#: Of what a pair shares of all shingles of the left text, the part below which it shares little of its own.
_LITTLE: Final = 0.5
#: Low bits of a shingle by which most of the others are passed over.
_HASH_BITS: Final = np.uint64((1 << 22) - 1)


@dataclass(frozen=True)
class Common:
    """Of pairs of texts: how many shingles both have, and how many each one has."""

    both: Numbers
    left: Numbers
    right: Numbers


def familiar(shingles: Hashes, side: Sketches, least: int = HOLDERS) -> Hashes:
    """The shingles that several texts hold, ascending."""
    wanted = np.unique(shingles)
    if len(side) < least or not len(wanted):
        return wanted[:0]
    return wanted[holders(wanted, side) >= least]


def holders(wanted: Hashes, side: Sketches) -> Numbers:
    """How many texts hold each of some shingles."""
    found = np.zeros(len(wanted), np.int64)
    marked = np.zeros(int(_HASH_BITS) + 1, np.bool_)
    marked[wanted & _HASH_BITS] = True
    for block in range(len(side.sizes)):
        every = side.shingles_of(block)
        every = every[marked[every & _HASH_BITS]]
        there = every[among(every, wanted)]
        found += np.bincount(np.searchsorted(wanted, there), minlength=len(wanted))
    return found


def without_familiar(found: Common, familiar_ones: Common) -> Common:
    """What pairs have in common: without familiar shingles where the pair shares them and little else.

    A copy that was damaged has lost familiar shingles and others alike. Where the texts share, of the shingles that the
    left one has for itself, less than half the share that they have of all, they share what is familiar.
    """
    own = found.left - familiar_ones.left
    enough: NDArray[np.bool_] = own >= np.maximum(_OWN, np.ceil(_OWN_SHARE * found.left))
    shared = found.both - familiar_ones.both
    little = shared * found.left < _LITTLE * found.both * own
    parts = (
        np.where(enough & little, every - some, every)
        for every, some in (
            (found.both, familiar_ones.both),
            (found.left, familiar_ones.left),
            (found.right, familiar_ones.right),
        )
    )
    return Common(*parts)
