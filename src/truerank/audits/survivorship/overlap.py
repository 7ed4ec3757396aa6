"""How much of each text stands in one document of a later corpus: shared sequences of words, in one pass over it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from truerank.arrays import Hashes, Ints
from truerank.audits.survivorship.passages import canonical
from truerank.sources.documents import DocumentSource
from truerank.work.progress import Progress

_BLOCK: Final = 1 << 11
_WORD: Final = r"[\p{L}\p{N}]+"
_MIX: Final = np.uint64(0x9E37_79B9_7F4A_7C15)
_SHIFT: Final = np.uint64(29)
_SEED: Final = 20220711


class _Sequences(NamedTuple):
    """Sequences of words as hashes, each text's own ones once; `owners` are the texts' positions."""

    hashes: Hashes
    owners: Ints


class OverlapIndex(NamedTuple):
    """Texts to be looked for: their sequences in ascending order, the texts they belong to, how many each text has."""

    hashes: Hashes
    owners: Ints
    sizes: Ints
    words: int


def overlap_index(blocks: Iterable[Sequence[str]], words: int) -> OverlapIndex:
    """Texts, given block by block, ready to be looked for."""
    found: list[_Sequences] = []
    number = 0
    for block in blocks:
        part = _sequences(block, words)
        found.append(_Sequences(part.hashes, part.owners + number))
        number += len(block)
    hashes = np.concatenate([part.hashes for part in found]) if found else np.zeros(0, np.uint64)
    owners = np.concatenate([part.owners for part in found]) if found else np.zeros(0, np.int64)
    order = np.argsort(hashes, kind="stable")
    return OverlapIndex(hashes[order], owners[order], np.bincount(owners, minlength=number), words)


def overlaps(index: OverlapIndex, documents: DocumentSource, progress: Progress) -> NDArray[np.float64]:
    """For each text the largest share of its sequences that stand in one document; one pass over the documents."""
    progress.start("documents of the later corpus")
    best = np.zeros(len(index.sizes))
    for block in documents.batches(_BLOCK):
        part = _sequences([one.text for one in block], index.words)
        begin = np.searchsorted(index.hashes, part.hashes)
        length = np.searchsorted(index.hashes, part.hashes, side="right") - begin
        total = int(length.sum())
        if total:
            within = np.arange(total) - np.repeat(np.cumsum(length) - length, length)
            owners = index.owners[np.repeat(begin, length) + within]
            pairs = np.repeat(part.owners, length) * len(best) + owners
            found, times = np.unique(pairs, return_counts=True)
            whose = found % len(best)
            np.maximum.at(best, whose, times / index.sizes[whose])
        progress.advance(len(block))
    return best


def _sequences(texts: Sequence[str], words: int) -> _Sequences:
    series = pl.Series([canonical(text).lower() for text in texts], dtype=pl.String)
    split = series.str.extract_all(_WORD)
    lengths = split.list.len().to_numpy().astype(np.int64)
    signs = split.explode(empty_as_null=False).hash(_SEED).to_numpy() if lengths.sum() else np.zeros(0, np.uint64)
    owners = np.repeat(np.arange(len(texts)), lengths)
    places = np.arange(len(signs)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    mixed = np.zeros(len(signs), np.uint64)
    with np.errstate(over="ignore"):
        for step in range(words):
            # Behind the end of a short text nothing is added.
            inside = places + step < lengths[owners]
            moved = np.zeros(len(signs), np.uint64)
            moved[: len(signs) - step] = signs[step:]
            mixed = (mixed ^ np.where(inside, moved, 0)) * _MIX
            mixed ^= mixed >> _SHIFT
    whole = (places + words <= lengths[owners]) | (places == 0)
    pairs = pl.DataFrame({"owner": owners[whole], "hash": mixed[whole]}).unique().sort("owner", "hash")
    return _Sequences(pairs["hash"].to_numpy(), pairs["owner"].to_numpy())
