"""Evidence of the encoder: the cosine similarity of two texts, or of the most similar passages of two long ones.

Vectors are kept with half precision. Compared with them, a cosine differs from that of single precision by less than
0.001. Passages that the encoder cannot read (`unread`) have vectors of zeros, and no cosine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress, pairwise
from random import Random
from typing import Any, Final, NamedTuple, TypedDict

import numpy as np
import polars as pl
from numpy.typing import NDArray

from truerank.near_duplicates import Shingles
from truerank.near_duplicates.shingles import Numbers, shingled
from truerank.overlaps.results import TextPart
from truerank.text.normalising import normalise
from truerank.text.passages import Sliding
from truerank.text.words import script_of
from truerank.vectors.encoders.base import Encoder, Vectors
from truerank.work.blocks import BlockStore, run_blocks
from truerank.work.jobs import Job

# Which texts an encoder can read, so that a cosine of them says something.
#
# A text is doubtful where the tokenizer has no piece for a part of it, or cuts its words into many pieces. Whether
# the encoder reads a doubtful text is then measured with that very text: its words are written backwards, and its
# letters are exchanged for each other. That leaves nothing of what it says, so an encoder that reads the text gives
# other vectors; one that sees unknown pieces, letters and endings gives nearly the same. No list of languages or
# scripts has a say. It takes a few times as long as encoding: a scan asks it about a sample and about what it names.

#: Pieces for each word up to which a text is not doubtful. English questions have 1.1 to 1.3.
_FEW_PIECES: Final = 1.5
#: How far towards itself, from what unrelated texts have, a text's cosine with its words backwards and with its letters
#: exchanged, may lie: the first number, and the second for each word, because chance has more to say of few words.
_MOST_ALIKE: Final = ((0.2, 0.3), (0.3, 0.6))
#: Texts on nothing in common: their cosines are where an encoder's scale begins.
_UNRELATED: Final = (
    "how to repair a bicycle chain", "symptoms of low blood sugar", "history of the roman senate", "chess openings",
    "growing tomatoes on a balcony", "price of crude oil in winter", "the painter of mona lisa", "jazz guitar scales",
    "tax on rented apartments", "why do whales sing", "install a printer driver", "recipe for onion soup",
)  # fmt: skip


#: Texts of a sample that says which share of a source an encoder cannot read.
_SAMPLE: Final = 512


def unread(texts: Sequence[str], encoder: Encoder) -> NDArray[np.bool_]:
    """Which texts an encoder cannot read, shape (len(texts),); only doubtful ones are encoded.

    Args:
        encoder: in full precision. One without a method `pieces` is taken to read everything.
    """
    found = np.zeros(len(texts), np.bool_)
    pieces: Any = getattr(encoder, "pieces", None)
    if pieces is None or not len(doubtful := _doubtful(texts, pieces)):
        return found
    asked = [texts[place] for place in doubtful.tolist()]
    vectors = encoder.encode([*_UNRELATED, *asked, *map(_backwards, asked), *map(_exchanged, asked)])
    few, own, *others = np.split(vectors, len(_UNRELATED) + len(asked) * np.arange(3))
    start = float((few @ few.T)[~np.eye(len(few), dtype=np.bool_)].mean())
    for senseless, most in zip(others, _MOST_ALIKE, strict=True):
        bars = most[0] + most[1] / np.array([max(1, len(text.split())) for text in asked])
        alike = (np.einsum("ij,ij->i", own, senseless) - start) / max(1e-6, 1 - start)
        found[doubtful] |= alike > bars
    return found


def read_vectors(texts: Sequence[str], encoder: Encoder) -> Vectors:
    """Unit vectors, and zeros for texts that the encoder cannot read, shape (len(texts), dimension), float32; of texts
    that stand several times, one is encoded."""
    row = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    vectors = np.array(encoder.encode(list(row)))
    vectors[unread(list(row), encoder)] = 0
    return vectors[[row[text] for text in texts]]


class UnreadShare(TypedDict):
    """Of a sample of a source's first texts, how many there are, and how many an encoder cannot read, by script."""

    texts: int
    unread: dict[str, int]


def unread_share(texts: Sequence[str], unread: Callable[[Sequence[str]], NDArray[np.bool_]]) -> UnreadShare:
    """What is true of the texts that a source begins with; the scripts with most texts that are not read come first."""
    sample = Random(0).sample(texts, min(_SAMPLE, len(texts)))
    scripts = Counter(map(script_of, compress(sample, unread(sample))))
    return UnreadShare(texts=len(sample), unread=dict(scripts.most_common()))


def _doubtful(texts: Sequence[str], pieces: Callable[[Sequence[str]], Sequence[tuple[int, int]]]) -> NDArray[np.intp]:
    """Places of texts with unknown pieces or many pieces for each word, as a reader counts words."""
    counts = np.array(pieces(texts), np.int64).reshape(-1, 2)
    fewest = np.array([len(text.split()) for text in texts], np.int64)
    unknown = counts[:, 1] > 0
    many = np.flatnonzero(~unknown & (counts[:, 0] > _FEW_PIECES * fewest))
    if len(many):
        measured = shingled([texts[place] for place in many.tolist()], Shingles(), measured=True).measured
        many = many[counts[many, 0] > _FEW_PIECES * np.maximum(measured, fewest[many])]
    return np.union1d(np.flatnonzero(unknown), many).astype(np.intp)


def _backwards(text: str) -> str:
    """A text whose words are written backwards; signs that stand alone are left out, since they have no direction."""
    return " ".join(word[::-1] for word in text.split() if any(map(str.isalnum, word)))


def _exchanged(text: str) -> str:
    """A text in which each letter is another one of its letters, the same one everywhere."""
    letters = sorted({letter for letter in text if letter.isalpha()})
    half = len(letters) // 2
    return text.translate(str.maketrans("".join(letters), "".join(letters[half:] + letters[:half])))


#: The window of passages in words.
PASSAGES: Final = Sliding(150, 75)
_HALF: Final = np.dtype("<f2")
#: Similarities that are in memory at a time.
_CELLS: Final = 1 << 24
#: Pairs whose vectors are side by side at a time.
_PAIRS_AT_ONCE: Final = 1 << 14
#: Directions in which most of the passages' length lies tell which cosines can be above a bound: how many for each
#: dimension, from how many passages, and in how many rounds they are found.
_AXES: Final = 1 / 6
_AXES_OF: Final = 1 << 12
_ROUNDS: Final = 3
#: What rounding may change of a cosine.
_SLACK: Final = 1e-5
#: Where more than this share of cosines can be above the bound, all of them are computed.
_MANY: Final = 1 / 64
_PAIRS: Final[dict[str, Any]] = {"left": pl.Int64, "right": pl.Int64}


def encoded(texts: Sequence[str], encoder: Encoder) -> Mapping[str, pl.Series]:
    """The `vectors` of the passages of each text, one after the other, as bytes of half precision; and whether the
    encoder could not read some of them: `unread`, 0 or 1."""
    cut = [[passage for passage in PASSAGES.cut(normalise(text)) if passage] for text in texts]
    vectors = read_vectors([passage for passages in cut for passage in passages], encoder).astype(_HALF)
    silent = np.logical_not(vectors.any(axis=1)).reshape(-1)
    content, width = vectors.tobytes(), _HALF.itemsize * encoder.dimension
    ends = np.cumsum([0, *map(len, cut)]).tolist()
    return {
        "vectors": pl.Series([content[width * start : width * end] for start, end in pairwise(ends)], dtype=pl.Binary),
        "unread": pl.Series([int(silent[start:end].any()) for start, end in pairwise(ends)], dtype=pl.UInt32),
    }


class _Passages(NamedTuple):
    """Vectors of passages that the encoder could read, and the number of the text of each."""

    vectors: Vectors
    owner: Numbers

    @classmethod
    def of(cls, part: TextPart, block: int, dimension: int) -> _Passages:
        content = part.shingles.load(block, "vectors")["vectors"]
        sizes = content.bin.size().to_numpy().astype(np.int64) // (_HALF.itemsize * dimension)
        vectors = np.frombuffer(b"".join(content), _HALF).reshape(-1, dimension).astype(np.float32)
        read = vectors.any(axis=1)
        return cls(vectors[read], np.repeat(np.arange(len(sizes)) + part.firsts[block], sizes)[read])


@dataclass(frozen=True)
class _Axes:
    """Few directions in which most of the passages' length lies, by subspace iteration: any directions give a bound.

    Attributes:
        directions: unit vectors at right angles to each other, shape (dimension, few).
    """

    directions: Vectors

    @classmethod
    def of(cls, passages: Sequence[_Passages], dimension: int) -> _Axes:
        total = np.zeros((dimension, dimension), np.float32)
        for each in passages:
            some = each.vectors[:: len(each.vectors) // _AXES_OF + 1]
            total += some.T @ some
        directions = total[:, : max(1, int(_AXES * dimension))]
        for _ in range(_ROUNDS):
            directions = total @ np.linalg.qr(directions).Q
        return cls(np.linalg.qr(directions).Q)

    def bounds(self, vectors: Vectors) -> Vectors:
        """The places of vectors along the directions, and the length of what is left: the product of two such rows is
        at least that of the vectors (the inequality of Cauchy and Schwarz)."""
        along = vectors @ self.directions
        left = np.einsum("ij,ij->i", vectors, vectors) - np.einsum("ij,ij->i", along, along)
        return np.column_stack([along, np.sqrt(np.maximum(left, 0))])


class _Block(NamedTuple):
    """A block of the training side, by its number."""

    number: int


@dataclass(frozen=True)
class _SimilarTask:
    """Compares all passages of the test side with those of a block of the training side."""

    left: TextPart
    right: TextPart
    dimension: int
    above: float

    def open(self) -> Callable[[_Block], pl.DataFrame]:
        ours = [_Passages.of(self.left, block, self.dimension) for block in range(len(self.left.shingles.sizes))]
        axes = _Axes.of(ours, self.dimension)
        bounds = [axes.bounds(mine.vectors) for mine in ours]

        def compare(block: _Block) -> pl.DataFrame:
            theirs = _Passages.of(self.right, block.number, self.dimension)
            most = axes.bounds(theirs.vectors)
            found = [pl.DataFrame(schema=_PAIRS)]
            found += [_above((mine, own), (theirs, most), self.above) for mine, own in zip(ours, bounds, strict=True)]
            return pl.concat(found).unique().sort("left", "right")

        return compare


def similar(left: TextPart, right: TextPart, dimension: int, above: float, job: Job) -> pl.DataFrame:
    def blocks() -> Iterator[_Block]:
        for block, size in enumerate(right.shingles.sizes):
            yield _Block(block)
            job.progress.advance(size)

    job.progress.start("comparing vectors")
    store = BlockStore(job.folder)
    # What is above the bound once rounded may be below it before.
    count = run_blocks(_SimilarTask(left, right, dimension, above - 1e-4), blocks(), store, job.engine)
    return pl.concat([pl.DataFrame(schema=_PAIRS), *(store.load(block) for block in range(count))])


def _above(ours: tuple[_Passages, Vectors], theirs: tuple[_Passages, Vectors], above: float) -> pl.DataFrame:
    (mine, my_bounds), (others, their_bounds) = ours, theirs
    width = len(others.vectors)
    step = max(1, _CELLS // max(1, width))
    found = [pl.DataFrame(schema=_PAIRS)]
    for start in range(0, len(mine.vectors), step):
        own = mine.vectors[start : start + step]
        may = np.flatnonzero(my_bounds[start : start + step] @ their_bounds.T > np.float32(above - _SLACK))
        if len(may) > _MANY * len(own) * width:
            may = np.flatnonzero(own @ others.vectors.T > np.float32(above))
        one, other = np.divmod(may, max(1, width))
        for part in range(0, len(may), _PAIRS_AT_ONCE):
            some = slice(part, part + _PAIRS_AT_ONCE)
            high = np.einsum("ij,ij->i", own[one[some]], others.vectors[other[some]]) > np.float32(above)
            columns = {"left": mine.owner[start + one[some][high]], "right": others.owner[other[some][high]]}
            found.append(pl.DataFrame(columns, _PAIRS))
    return pl.concat(found).unique()


def cosines(pairs: pl.DataFrame, left: TextPart, right: TextPart, dimension: int) -> pl.Series:
    """The cosine similarity of the most similar passages of each pair, to three decimals; null without passages."""
    best = np.full(len(pairs), np.nan)
    sides = []
    for part, numbers in ((left, pairs["left"].to_numpy()), (right, pairs["right"].to_numpy())):
        sides.append((part, numbers, np.searchsorted(part.firsts, numbers, side="right") - 1))
    held: dict[tuple[bool, int], Any] = {}
    order = np.lexsort((sides[0][2], sides[1][2]))
    borders = np.flatnonzero(np.diff(sides[0][2][order]) | np.diff(sides[1][2][order])) + 1
    for chosen in np.split(order, borders) if len(order) else []:
        both = []
        for place, (part, numbers, block_of) in enumerate(sides):
            key = bool(place), int(block_of[chosen[0]])
            if key not in held:
                held = {one: vectors for one, vectors in held.items() if one[0] != key[0]} | {
                    key: _Passages.of(part, key[1], dimension)
                }
            passages = held[key]
            both.append((passages, *np.searchsorted(passages.owner, [numbers[chosen], numbers[chosen] + 1])))
        best[chosen] = _best(*both)
    return pl.Series(np.round(np.clip(best, -1, 1), 3), dtype=pl.Float64).fill_nan(None)


def _best(ours: tuple[_Passages, Numbers, Numbers], theirs: tuple[_Passages, Numbers, Numbers]) -> Any:
    found = np.full(len(ours[1]), np.nan)
    single = np.flatnonzero((ours[2] - ours[1] == 1) & (theirs[2] - theirs[1] == 1))
    for start in range(0, len(single), _PAIRS_AT_ONCE):
        some = single[start : start + _PAIRS_AT_ONCE]
        one, other = ours[0].vectors[ours[1][some]], theirs[0].vectors[theirs[1][some]]
        found[some] = np.einsum("ij,ij->i", one, other)
    for pair in np.setdiff1d(np.arange(len(found)), single).tolist():
        one = ours[0].vectors[ours[1][pair] : ours[2][pair]]
        other = theirs[0].vectors[theirs[1][pair] : theirs[2][pair]]
        if len(one) and len(other):
            found[pair] = float((one @ other.T).max())
    return found
