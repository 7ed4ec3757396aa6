"""Active judging (HiCAL / BMI): a model of relevance that says which documents to judge next."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

from truerank.audits.reusability.features import Features
from truerank.audits.reusability.following import Found

__all__ = ["ActiveLearner", "LearnerOptions", "Trace", "trace"]


@dataclass(frozen=True)
class LearnerOptions:
    """What can be chosen for the learner.

    Attributes:
        relevant_from: the lowest grade that counts as relevant.
        random: documents presumed non-relevant, drawn anew at each training.
        regularisation: λ of the loss.
        batch: documents of the first batch; each following one is larger by a tenth, rounded up.
        growing: False for batches of one size.
    """

    relevant_from: int = 1
    random: int = 100
    regularisation: float = 1e-4
    batch: int = 1
    growing: bool = True


@dataclass(frozen=True)
class Trace:
    """The documents of a topic in the order in which they were judged: the pool, then what the learner chose.

    Attributes:
        topic_id: the topic.
        pool_size: P; the first judgments are the pool's.
        seed: of the learner.
        doc_ids, grades, batches: one per judgment; the batch is 0 for the pool and counts from 1 for the learner.
        relevant_from: the lowest grade that counts as relevant.
        whole: no document of the collection was left to judge.
    """

    topic_id: str
    pool_size: int
    seed: int
    doc_ids: tuple[str, ...]
    grades: tuple[int, ...]
    batches: tuple[int, ...]
    relevant_from: int = 1
    whole: bool = False

    def __len__(self) -> int:
        return len(self.doc_ids)

    @cached_property
    def found(self) -> NDArray[np.int64]:
        """How many of the judged documents are relevant after each judgment, shape (judgments,)."""
        return np.cumsum(np.asarray(self.grades, np.int64) >= self.relevant_from)

    def as_found(self) -> Found:
        """The trace as stopping rules read it."""
        return Found(self.topic_id, self.pool_size, self.found, self.whole)

    def qrels(self, judgments: int | None = None) -> pl.DataFrame:
        """The first judgments (all without a number) as qrels: columns topic_id, doc_id, relevance."""
        raise NotImplementedError


class ActiveLearner:
    """Chooses the documents of a topic that are most likely relevant by the labels as they stand.

    What it chooses depends on the seed, the topic and the labels: asked again with the same labels, it answers the
    same; left-out teams and all teams draw by the same seeds.

    Args:
        features: of the collection.
        topic_id: the topic.
        query_text: the relevant pseudo-document.
        seed: of the presumed non-relevant documents and of ties.
        options: see `LearnerOptions`.
    """

    def __init__(
        self, features: Features, topic_id: str, query_text: str, seed: int = 0, options: LearnerOptions | None = None
    ) -> None:
        self.features, self.topic_id, self.seed = features, topic_id, seed
        self.options = options or LearnerOptions()
        raise NotImplementedError

    def next(self, judged: Mapping[str, int], n: int, excluded: Sequence[str] = ()) -> list[str]:
        """The n documents that are most likely relevant among those not judged, the likeliest first.

        Args:
            judged: grade by document; documents that the features lack are passed over.
            n: how many; fewer come where fewer are left.
            excluded: documents that are not wanted either, such as those that others are judging.
        """
        raise NotImplementedError


def trace(
    features: Features,
    topic_id: str,
    query: str,
    pool: Sequence[str],
    judge: Callable[[str], int],
    *,
    length: int = 2500,
    seed: int = 0,
    options: LearnerOptions | None = None,
) -> Trace:
    """Simulates the judging of a topic: the pool first, in the order given, then batch by batch what is chosen.

    Args:
        features: of the collection.
        topic_id: the topic.
        query: its text.
        pool: document ids; all are judged, also where they are more than `length`.
        judge: the grade of a document; 0 for what was never judged.
        length: judgments at most, the pool's included.
        seed: see `ActiveLearner`.
        options: see `LearnerOptions`.

    Returns:
        The trace; it depends on the seed, and not on any stopping rule.
    """
    raise NotImplementedError
