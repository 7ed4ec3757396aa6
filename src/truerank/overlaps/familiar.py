"""Shingles that several texts of a test side hold: those of a template, a series or an author's note.

A text that shares little but these with a test text is another one of the kind, not a copy of this one. So they do not
count there, where the test text has enough of its own. A text that has not is one of several copies, which all leak.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from truerank.near_duplicates import Sketches
from truerank.near_duplicates.shingling import Hashes, Numbers, among

#: Texts of a test side that hold a shingle, from which on it is familiar.
HOLDERS: Final = 4
#: The share of its shingles that a text has for itself, and their number, from which on familiar ones do not count.
_OWN_SHARE: Final = 0.25
_OWN: Final = 4
#: Of what a pair shares of all shingles of the left text, the part below which it shares little of its own.
_LITTLE: Final = 0.5
#: Low bits of a shingle by which most of the others are passed over.
_BITS: Final = np.uint64((1 << 22) - 1)


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
    """How many texts hold each of some shingles.

    Args:
        wanted: ascending.
    """
    found = np.zeros(len(wanted), np.int64)
    marked = np.zeros(int(_BITS) + 1, np.bool_)
    marked[wanted & _BITS] = True
    for block in range(len(side.sizes)):
        every = side.shingles_of(block)
        every = every[marked[every & _BITS]]
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
