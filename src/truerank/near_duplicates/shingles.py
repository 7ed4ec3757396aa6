"""What a shingle is, and those of texts as 64-bit hashes, many texts at a time.

A hash is a polynomial modulo 2^64 over random values of the characters, then of the words, mixed at each step. It is
the same in every process and on every machine, so that kept sketches stay valid.
"""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Annotated, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truerank.arrays import Hashes, mixed
from truerank.options import Options, Range


@dataclass(frozen=True)
class Shingles(Options):
    """What counts as nearly the same text.

    Attributes:
        shingle_unit: what a shingle is made of: words (lower case, without punctuation; signs of scripts without blanks
            count as words) or letters (the same with one blank between words, for short texts).
        shingle_size: words or letters in a shingle; a shorter text is one shingle.
        similarity: Jaccard similarity of the sets of shingles from which on two documents are near-duplicates.
        containment: share of the shingles of the smaller document that the larger one has, from which on it contains
            the smaller one; what both have as boilerplate is not enough.
        contained_words: a document with fewer words is not looked for in others.
        boilerplate: share of the documents that hold a passage of eight words or more, from which on it is boilerplate.
    """

    shingle_unit: Literal["words", "letters"] = "words"
    shingle_size: Annotated[int, Range(at_least=1, at_most=64)] = 3
    similarity: Annotated[float, Range(above=0, at_most=1)] = 0.8
    containment: Annotated[float, Range(above=0, at_most=1)] = 0.8
    contained_words: Annotated[int, Range(at_least=1)] = 8
    boilerplate: Annotated[float, Range(above=0, at_most=1)] = 0.01

    @property
    def least_share(self) -> float:
        """The share of its shingles that the smaller document of a pair has in common with the larger one, at least.

        A Jaccard similarity s of sets of a and b ≥ a shingles needs s / (1 + s) · (a + b) ≥ 2s / (1 + s) · a in common.
        """
        return min(2 * self.similarity / (1 + self.similarity), self.containment)

    @property
    def least_own(self) -> int:
        """How many shingles beside boilerplate a document must have in another one to be contained in it.

        As many as `contained_words` words have; in letters, as many as that many words of one letter.
        """
        units = self.contained_words if self.shingle_unit == "words" else 2 * self.contained_words - 1
        return max(1, units - self.shingle_size + 1)

    @property
    def identity(self) -> dict[str, str | int]:
        """What kept sketches depend on; thresholds may change without reading the documents again."""
        return {"unit": self.shingle_unit, "size": self.shingle_size}


Numbers = NDArray[np.int64]

_SEPARATOR: Final = 0
_LETTER: Final = 1
#: Signs of scripts that put no blanks between words: how many hundredths of a word each is. In translations of free
#: software (gettext, Debian 12), an English word is 1.75 Han signs in Chinese, and with these 4.3 kana in Japanese; 5.4
#: signs in Thai and Khmer, 5.7 in Burmese. By these numbers, questions of MIRACL have 4.9 words in Japanese, and 4.9 to
#: 6.9 in five languages with blanks.
_HAN: Final = 57
_KANA: Final = 23
_MARKED: Final = 18
_UNSPACED: Final = (
    # Thai and Lao, Myanmar, Khmer.
    (0xE00, 0xEFF, _MARKED),
    (0x1000, 0x109F, _MARKED),
    (0x1780, 0x17FF, _MARKED),
    (0x3040, 0x30FF, _KANA),
    (0x3400, 0x9FFF, _HAN),
    (0x20000, 0x3FFFF, _HAN),
)
#: What a word of letters is in the same unit.
_WHOLE: Final = 100
#: A pattern of these signs.
UNSPACED_SIGN: Final = f"[{''.join(f'{chr(first)}-{chr(last)}' for first, last, _ in _UNSPACED)}]"
#: Code points beyond are rare; they count as the last one.
_CODES: Final = 0x40000
#: Code points that are looked up at once, at least.
_FEWEST_CODES: Final = 0x400
#: Characters that are worked on at a time, so that intermediate arrays stay in the processor's cache.
_AT_ONCE: Final = 1 << 18

#: Words of a passage that may be boilerplate.
WINDOW: Final = 8

_CHARACTER: Final = 0x9E3779B97F4A7C15
_WORD: Final = 0xD6E8FEB86659FD93
_SEQUENCE: Final = 0xA0761D6478BD642F


@dataclass(frozen=True)
class TextShingles:
    """What some texts consist of.

    Attributes:
        shingles: the distinct shingles of each text, ascending, one text after the other.
        starts: where those of each text begin, and at the end where the last ends; shape (texts + 1,).
        sequences: a hash of all words of each text in order; 0 for a text without words.
        words: the number of words of each text, where a sign of a script without blanks is one.
        measured: the same as a reader counts, where such a sign is a part of a word; a whole number, rounded down.
        windows: a hash of each `WINDOW` words in a row, one text after the other.
        window_starts: where those of each text begin, as `starts`.
    """

    shingles: Hashes
    starts: Numbers
    sequences: Hashes
    words: Numbers
    measured: Numbers
    windows: Hashes
    window_starts: Numbers

    def of(self, text: int) -> Hashes:
        return self.shingles[self.starts[text] : self.starts[text + 1]]


@dataclass(frozen=True)
class _Words:
    """The words of texts, and signs of scripts without blanks: hash, hundredths of a word up to its end, text, places
    in the joined texts, where each text's begin; letters if asked for."""

    hashes: Hashes
    measure: Numbers
    text: Numbers
    begins: Numbers
    ends: Numbers
    starts: Numbers
    letters: Hashes
    letter_starts: Numbers


def shingled(texts: Sequence[str], options: Shingles, *, measured: bool = False) -> TextShingles:
    parts = [_shingled(chunk, options, measured) for chunk in _chunks(texts)]
    if not parts:
        none = np.zeros(0, np.uint64)
        start = np.zeros(1, np.int64)
        return TextShingles(none, start, none, np.zeros(0, np.int64), np.zeros(0, np.int64), none, start)
    return TextShingles(
        np.concatenate([part.shingles for part in parts]),
        starts_of(np.concatenate([np.diff(part.starts) for part in parts])),
        np.concatenate([part.sequences for part in parts]),
        np.concatenate([part.words for part in parts]),
        np.concatenate([part.measured for part in parts]),
        np.concatenate([part.windows for part in parts]),
        starts_of(np.concatenate([np.diff(part.window_starts) for part in parts])),
    )


@dataclass(frozen=True)
class TextWindows:
    """One text in lower case, with each `WINDOW` words in a row."""

    text: str
    windows: Hashes
    begins: Numbers
    ends: Numbers


def windows_of(text: str) -> TextWindows:
    """The runs of `WINDOW` words of one text, with their places."""
    words = _words([text])
    found, _, ends = _windows(words.hashes, words.starts, WINDOW, words.measure)
    if int(_measured(words)[0]) < WINDOW:
        found, ends = found[:0], ends[:0]
    return TextWindows(_lowered(text), found, words.begins[: len(found)], words.ends[ends - 1])


class WordShingles(NamedTuple):
    """One text in lower case: its words in order, where signs of scripts without blanks are words, and its shingles.

    Attributes:
        words: in lower case.
        shingles: that which begins at each word, as in `TextShingles`; the last words begin none.
    """

    words: tuple[str, ...]
    shingles: Hashes


def word_shingles(text: str, options: Shingles) -> WordShingles:
    """The words of one text and its shingles of words, in order."""
    words, lowered = _words([text]), _lowered(text)
    found, _, _ = _windows(words.hashes, words.starts, options.shingle_size)
    places = zip(words.begins.tolist(), words.ends.tolist(), strict=True)
    return WordShingles(tuple(lowered[begin:end] for begin, end in places), found)


def starts_of(sizes: Numbers) -> Numbers:
    """Where groups of these sizes begin, and where the last one ends."""
    starts = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=starts[1:])
    return starts


def runs_of(values: NDArray[np.generic]) -> Numbers:
    """Where each run of equal values begins in a sorted array, and where the last one ends."""
    if not len(values):
        return np.zeros(1, np.int64)
    return np.concatenate(([0], np.flatnonzero(values[1:] != values[:-1]) + 1, [len(values)]))


@dataclass(frozen=True)
class CommonShingles:
    """Of pairs of texts: how many shingles both have, and how many of these are marked."""

    every: Numbers
    marked: Numbers

    @classmethod
    def of(cls, pairs: int, values: Hashes, owner: Numbers, marked: NDArray[np.bool_]) -> CommonShingles:
        """Counts what occurs twice in a pair."""
        # The pair, the leading bits of the shingle and the mark are one number, because NumPy sorts numbers many times
        # faster than it finds their order. Two shingles of a pair are taken for one less than once in 10^12 pairs.
        bits = np.uint64(max(1, (pairs - 1).bit_length()))
        keys = (values >> (bits + np.uint64(1))) << np.uint64(1) | marked
        keys |= owner.astype(np.uint64) << (np.uint64(64) - bits)
        keys.sort()
        twice = keys[1:][keys[1:] == keys[:-1]]
        pair = (twice >> (np.uint64(64) - bits)).astype(np.int64)
        return cls(np.bincount(pair, minlength=pairs), np.bincount(pair[twice & np.uint64(1) == 1], minlength=pairs))


def _chunks(texts: Sequence[str]) -> Iterator[Sequence[str]]:
    first, size = 0, 0
    for place, text in enumerate(texts):
        size += len(text) + 1
        if size >= _AT_ONCE:
            yield texts[first : place + 1]
            first, size = place + 1, 0
    if first < len(texts):
        yield texts[first:]


def _shingled(texts: Sequence[str], options: Shingles, measured: bool) -> TextShingles:
    words = _words(texts, with_letters=options.shingle_unit == "letters")
    placed = (np.arange(1, len(words.hashes) + 1) - words.starts[words.text]).astype(np.uint64)
    placed *= np.uint64(_SEQUENCE)
    placed += words.hashes
    sequences = _sums(mixed(placed), words.starts)
    del placed
    if options.shingle_unit == "words":
        found, owner, _ = _windows(
            words.hashes, words.starts, options.shingle_size, words.measure if measured else None
        )
    else:
        found, owner, _ = _windows(words.letters, words.letter_starts, options.shingle_size)
    # Text by text: to sort numbers is many times faster than to find their order in a whole chunk.
    for begin, end in pairwise(starts_of(np.bincount(owner, minlength=len(texts))).tolist()):
        found[begin:end].sort()
    new = np.ones(len(found), np.bool_)
    new[1:] = (found[1:] != found[:-1]) | (owner[1:] != owner[:-1])
    sizes = np.bincount(owner[new], minlength=len(texts))
    windows, window_starts = _runs(words)
    counts = np.diff(words.starts), _measured(words)
    return TextShingles(found[new], starts_of(sizes), sequences, *counts, windows, window_starts)


def _measured(words: _Words) -> Numbers:
    """The number of words of each text as a reader counts; one at least where there is a sign."""
    total = np.diff(np.append(0, words.measure)[words.starts])
    return np.where(total > 0, np.maximum(total // _WHOLE, 1), 0)


def _runs(words: _Words) -> tuple[Hashes, Numbers]:
    """A hash of each `WINDOW` words in a row, and where those of each text begin."""
    windows, owner, _ = _windows(words.hashes, words.starts, WINDOW, words.measure)
    whole = _measured(words)[owner] >= WINDOW
    return windows[whole], starts_of(np.bincount(owner[whole], minlength=len(words.starts) - 1))


def _windows(
    values: Hashes, starts: Numbers, size: int, measure: Numbers | None = None
) -> tuple[Hashes, Numbers, Numbers]:
    """A hash of each `size` neighbours within a text, or of all where there are fewer; the text of each, its end."""
    lengths = np.diff(starts)
    every, owner = np.arange(len(values)), np.repeat(np.arange(len(lengths)), lengths)
    ends = every + size
    if measure is not None and len(measure) and measure[-1] != len(measure) * _WHOLE:
        ends = np.searchsorted(measure, np.append(0, measure)[:-1] + size * _WHOLE) + 1
    # Of a text without a whole window, all is one.
    first = np.flatnonzero((ends <= starts[1:][owner]) | (every == starts[:-1][owner]))
    owner = owner[first]
    ends = np.minimum(ends[first], starts[1:][owner])
    widths = ends - first
    del every
    # Nearly all windows have as many neighbours, and theirs are computed for all places at once.
    total, usual = np.zeros(len(owner), np.uint64), widths == size
    every_total = np.zeros(max(0, len(values) - size + 1), np.uint64)
    for at in range(size):
        every_total *= np.uint64(_WORD)
        every_total += values[at : at + len(every_total)]
    total[usual] = every_total[first[usual]]
    # What other texts are beside it does not change the hash of a window.
    rest = np.flatnonzero(~usual)
    for at in range(int(widths[rest].max(initial=0))):
        part = values[np.minimum(first[rest] + at, len(values) - 1)]
        total[rest] = np.where(at < widths[rest], total[rest] * np.uint64(_WORD) + part, total[rest])
    # A short text is no beginning of a longer one.
    total += widths.astype(np.uint64)
    return mixed(total), owner, ends


def _lowered(text: str) -> str:
    """A text in lower case, its letters composed, as `normalise` has them."""
    return text.casefold() if text.isascii() else unicodedata.normalize("NFC", text).casefold()


def _words(texts: Sequence[str], *, with_letters: bool = False) -> _Words:
    lowered = list(map(_lowered, texts))
    sizes = np.fromiter(map(len, lowered), np.int64, len(lowered)) + 1
    ends = np.cumsum(sizes)
    joined = " ".join(lowered) + " "
    codes: NDArray[np.unsignedinteger]
    if joined.isascii():
        codes = np.frombuffer(joined.encode(), np.uint8)
        kinds = np.frombuffer(joined.encode().translate(_kinds(_FEWEST_CODES)[:256].tobytes()), np.uint8)
    else:
        codes = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), np.uint32)
        most = int(codes.max(initial=0))
        if most >= _CODES:
            codes, most = np.minimum(codes, np.uint32(_CODES - 1)), _CODES - 1
        kinds = _kinds(max(_FEWEST_CODES, 1 << most.bit_length()))[codes]
    pieces = range(0, len(joined), len(joined) if len(joined) <= 2 * _AT_ONCE else _AT_ONCE)
    parts = [_word_parts(codes, kinds, slice(at, at + pieces.step)) for at in pieces]
    hashes, begins, word_ends, counts = (np.concatenate(column) for column in zip(*parts, strict=True))
    whole = (kinds[begins] != _LETTER) | (kinds[begins - 1] != _LETTER) | (begins == 0)
    if not whole.all():
        # A word that goes on from one piece to the next is the sum of its parts.
        for at in np.flatnonzero(~whole).tolist():
            hashes[at : at + 1] *= np.uint64(pow(_CHARACTER, int(counts[at - 1]), 1 << 64))
            counts[at] += counts[at - 1]
        hashes = np.add.reduceat(hashes, np.flatnonzero(whole))
        begins, word_ends = begins[whole], word_ends[np.append(whole[1:], True)]
    hashes = mixed(hashes)
    del counts, parts
    starts = np.append(0, np.searchsorted(begins, ends))
    text = np.repeat(np.arange(len(texts)), np.diff(starts))
    part = kinds[begins].astype(np.int64)
    measure = np.cumsum(np.where(part == _LETTER, _WHOLE, part))
    found = _Words(hashes, measure, text, begins, word_ends, starts, hashes, starts)
    if not with_letters:
        return found
    letters = np.flatnonzero(kinds != _SEPARATOR)
    values, first = _values()[codes[letters]], np.searchsorted(letters, begins)
    # With one blank before each word but the first of a text.
    later = np.ones(len(first) + 1, np.bool_)
    later[starts] = False
    blanks = first[later[:-1]]
    spaced = np.insert(values, blanks, _values()[ord(" ")])
    bounds = np.append(first, len(letters))[np.minimum(starts, len(first))]
    return replace(found, letters=spaced, letter_starts=bounds + np.searchsorted(blanks, bounds, side="left"))


def _word_parts(
    codes: NDArray[np.unsignedinteger], kinds: NDArray[np.uint8], piece: slice
) -> tuple[Hashes, Numbers, Numbers, Numbers]:
    """The words of a piece of a text, where the first and the last may be parts of one: their hashes before they are
    mixed, where they begin and end, and how many letters they have."""
    own = kinds[piece]
    begins = own != _SEPARATOR
    letters = np.flatnonzero(begins)
    begins[1:] &= (own[1:] != _LETTER) | (own[:-1] != _LETTER)
    first = np.flatnonzero(begins[letters])
    bounds = np.append(first, len(letters))
    # The powers go on from word to word, and are taken back for each: modulo 2^64, the factor has an inverse.
    size = 2 * _AT_ONCE
    values = _values()[codes[piece][letters]] * _powers(_CHARACTER, size)[: len(letters)]
    total = np.append(np.uint64(0), np.cumsum(values))
    hashes = np.diff(total[bounds]) * _powers(pow(_CHARACTER, -1, 1 << 64), size)[first]
    return hashes, piece.start + letters[first], piece.start + letters[bounds[1:] - 1] + 1, np.diff(bounds)


def _sums(values: Hashes, starts: Numbers) -> Hashes:
    """The sum of each group, modulo 2^64; 0 for an empty one."""
    total = np.zeros(len(starts) - 1, np.uint64)
    there = np.flatnonzero(np.diff(starts))
    if len(there):
        total[there] = np.add.reduceat(values, starts[there])
    return total


@functools.cache
def _values() -> Hashes:
    return mixed((np.arange(_CODES, dtype=np.uint64) + np.uint64(1)) * np.uint64(_CHARACTER))


@functools.lru_cache(maxsize=2)
def _powers(factor: int, size: int) -> Hashes:
    return np.multiply.accumulate(np.append(np.uint64(1), np.full(size - 1, factor, np.uint64)))


@functools.cache
def _kinds(codes: int) -> NDArray[np.uint8]:
    """Of the first code points, whether each separates words, is a letter (digit, mark), or which part of a word."""
    half = 0 if codes <= _FEWEST_CODES else codes // 2
    more = (unicodedata.category(chr(code))[0] in "LNM" for code in range(half, codes))
    kinds = np.fromiter(more, np.uint8, codes - half)
    for first, last, share in _UNSPACED:
        part = kinds[max(first, half) - half : max(last + 1, half) - half]
        part[part == _LETTER] = share
    return np.concatenate([_kinds(half), kinds]) if half else kinds
