"""Scores of exactly 0 that are hardly scores: of evaluations that failed, and of jobs that stopped."""

from __future__ import annotations

from typing import Final

import numpy as np
import scipy

from truerank.arrays import Flags, Floats

#: Chance makes so seldom what is called a failure.
_CHANCE: Final = 0.001
#: So few other scores say nothing about their spread.
_FEWEST: Final = 5
#: Scores of which so many are different may be any number, so that 0 is one of very many.
_DIFFERENT: Final = 0.9


def zeros_in_a_row(scores: Floats, others: Floats) -> Flags:
    """Topics in a row for which a system has 0, where its other scores make that hardly chance; shape (topics,).

    Each zero is compared with the topics that are as hard or harder: those on which the others score as little or less.
    Topics on which all others have 0, too, say nothing.

    Args:
        scores: of the system, in the order in which topics were answered; NaN where there is none.
        others: the mean of other systems on the same topics; NaN where there is none.
    """
    known = np.flatnonzero(~np.isnan(scores) & (others > 0))
    zero, level, found = scores[known] == 0, others[known], np.zeros(len(scores), np.bool_)
    edges = np.flatnonzero(np.diff(np.concatenate(([0], zero.astype(np.int8), [0]))))
    for start, stop in zip(edges[::2], edges[1::2], strict=True):
        own = np.sort(level[start:stop])
        if len(own) < 2:
            continue
        rest = np.delete(np.arange(len(known)), np.s_[start:stop])
        below = level[rest][:, None] <= own
        # One after the other, the easiest first: the share of zeros among all that are not easier.
        left = np.arange(1, len(own) + 1)
        chance = np.log((zero[rest][:, None] & below).sum(axis=0) + left) - np.log(below.sum(axis=0) + left)
        # A job that stopped has its zeros at the end; anywhere else, a row may begin at each topic.
        places = 1 if stop == len(known) else len(known)
        if chance.sum() <= np.log(_CHANCE / places):
            within = slice(known[start], len(scores) if places == 1 else known[stop - 1] + 1)
            found[within] |= scores[within] == 0
    return found


def lone_zeros(scores: Floats, others: Floats) -> Flags:
    """Scores of 0 that are far below what the others let expect, by Student's t of the system's other scores.

    Scores that are often the same, such as those of topics with one relevant document, may be 0: of them it says
    nothing. Arguments as in `zeros_in_a_row`.
    """
    found: Flags = np.zeros(len(scores), np.bool_)
    zero = scores == 0
    rest = ~zero & ~np.isnan(scores) & ~np.isnan(others)
    count = int(rest.sum())
    if count < max(_FEWEST, zero.sum()) or len(np.unique(scores[rest])) < _DIFFERENT * count:
        return found
    ratio = float(scores[rest].sum() / max(others[rest].sum(), 1e-9))
    spread = float((scores[rest] - ratio * others[rest]).std(ddof=1)) * np.sqrt(1 + 1 / count)
    with np.errstate(divide="ignore", invalid="ignore"):
        # `scipy.stats` takes most of a second to load.
        chance = scipy.special.stdtr(count - 1, -ratio * others / spread)
    found |= zero & (chance * len(scores) <= _CHANCE)
    return found
