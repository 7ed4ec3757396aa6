"""Boilerplate: passages that many documents hold.

What a share of all documents holds is held by at least that share of the documents of some block. So the passages are
taken from the blocks, and counted over all of them. A block counts documents with the same words once, and only windows
that two of its documents hold; the count is too low by at most one for each block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl

from truerank.near_duplicates.results import BOILERPLATE
from truerank.near_duplicates.shingling import Hashes, Numbers, TextShingles, runs_of, windows_of

#: What fewer documents share is no boilerplate, however small the collection.
_LEAST: Final = 10
#: Passages that a block names, the most frequent first.
_MOST: Final = 1000

PASSAGES: Final[Any] = pl.List(pl.Struct({"passage": pl.String, "windows": pl.List(pl.UInt64)}))


class BlockPassages(NamedTuple):
    """The windows of a block that several documents hold, how many, and passages of the most frequent ones."""

    windows: Hashes
    documents: Numbers
    passages: list[dict[str, Any]]


def block_passages(texts: Sequence[str], found: TextShingles, share: float) -> BlockPassages:
    """The windows that documents of a block share."""
    owner = np.repeat(np.arange(len(texts)), np.diff(found.window_starts))
    # Documents with the same words are duplicates, and what they share is no boilerplate.
    first = np.zeros(len(texts), np.bool_)
    first[np.unique(found.sequences, return_index=True)[1]] = True
    windows, owner = found.windows[first[owner]], owner[first[owner]]
    order = np.argsort(windows)
    bounds = runs_of(windows[order])
    order = order[np.repeat(np.diff(bounds) > 1, np.diff(bounds))]
    windows, owner = windows[order], owner[order]
    order = np.lexsort((owner, windows))
    windows, owner = windows[order], owner[order]
    # Once in a document.
    new = np.ones(len(windows), np.bool_)
    new[1:] = (windows[1:] != windows[:-1]) | (owner[1:] != owner[:-1])
    windows, owner = windows[new], owner[new]
    bounds = runs_of(windows)
    documents = np.diff(bounds)
    several = np.flatnonzero(documents >= 2)
    shared, documents, holder = windows[bounds[several]], documents[several], owner[bounds[several]]
    frequent = np.flatnonzero(documents >= max(2, share * len(texts)))
    frequent = frequent[np.argsort(-documents[frequent], kind="stable")][:_MOST]
    passages = [
        passage
        for text in np.unique(holder[frequent]).tolist()
        for passage in _passages(texts[text], shared[frequent[holder[frequent] == text]])
    ]
    return BlockPassages(shared, documents, passages)


def _passages(text: str, wanted: Hashes) -> Iterable[dict[str, Any]]:
    """The longest passages of a text that consist of some windows."""
    found = windows_of(text)
    places = np.flatnonzero(np.isin(found.windows, wanted))
    cuts = np.flatnonzero(np.diff(places) > 1) + 1
    for part in np.split(places, cuts):
        if len(part):
            begin, end = found.begins[part[0]], found.ends[part[-1]]
            yield {"passage": " ".join(found.text[begin:end].split()), "windows": found.windows[part].tolist()}


def boilerplate(blocks: Callable[[], Iterable[BlockPassages]], documents: int, share: float) -> pl.DataFrame:
    """The passages that a share of all documents holds."""
    passages = [passage for block in blocks() for passage in block.passages]
    wanted = np.unique(np.array([each for passage in passages for each in passage["windows"]], np.uint64))
    if not len(wanted):
        return pl.DataFrame(schema=BOILERPLATE)
    total = np.zeros(len(wanted), np.int64)
    for block in blocks():
        place = np.minimum(np.searchsorted(wanted, block.windows), len(wanted) - 1)
        there = wanted[place] == block.windows
        total[place[there]] += block.documents[there]
    counted = []
    for number, passage in enumerate(passages):
        at = np.searchsorted(wanted, np.array(passage["windows"], np.uint64))
        counted.append((-int(total[at].min()), -len(at), number, at))
    rows, told = [], np.zeros(len(wanted), np.bool_)
    for negative, _, number, at in sorted(counted, key=lambda one: one[:3]):
        if -negative < max(_LEAST, share * documents) or told[at].mean() > 0.5:
            continue
        told[at] = True
        rows.append((passages[number]["passage"], -negative, -negative / documents))
    return pl.DataFrame(rows, BOILERPLATE, orient="row")
