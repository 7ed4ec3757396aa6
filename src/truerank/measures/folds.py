"""Folds of topics, the same on every machine."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence

from truerank.errors import InputError, OptionError

#: The topics of each fold.
Folds = tuple[tuple[str, ...], ...]


def folds(topics: Iterable[str], k: int = 5, seed: int = 0) -> Folds:
    """Divides topics into folds whose sizes differ by at most one.

    The division rests on a hash of seed and topic, so that it does not change with the order of the topics, the
    machine or the version of a library.

    Args:
        topics: their ids.
        k: number of folds.
        seed: another seed gives another division.

    Returns:
        The topics of each fold, in ascending order.

    Raises:
        InputError: fewer than two folds, fewer topics than folds, or a topic that is there twice.
    """
    ids = list(topics)
    if len(set(ids)) < len(ids):
        raise InputError(f"the topic {first_twice(ids)} is there twice", "give every topic once")
    if k < 2:
        raise OptionError("folds", f"{k} is too few", "cross-validation needs 2 folds or more")
    if len(ids) < k:
        raise OptionError("folds", f"{len(ids):,} topics make no {k:,} folds", "choose fewer folds")
    drawn = sorted(ids, key=lambda topic: (hashlib.sha256(f"{seed}\0{topic}".encode()).digest(), topic))
    return tuple(tuple(sorted(drawn[start::k])) for start in range(k))


def first_twice(topics: Sequence[str]) -> str:
    """The first of the topics that occurs twice."""
    return next(topic for topic, count in Counter(topics).items() if count > 1)
