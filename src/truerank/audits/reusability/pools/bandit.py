"""Pools that follow what is found: move-to-front, and the bandit MaxMean that the Common Core track used.

Both look at the runs one document at a time and go on with a run as long as it finds something. Ties between runs are
broken by the seed. Documents that were judged are passed over and change nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

import numpy as np

from truerank.errors import OptionError
from truerank.work.artifacts import digest

Method = Literal["depth", "move-to-front", "maxmean"]
METHODS: Final = ("depth", "move-to-front", "maxmean")


class Ordered(NamedTuple):
    """A topic's documents in the order in which they are judged.

    `doc_ids` and `grades` belong together, the grade is None where nobody judged the document yet; `runs` says which
    run brought each.
    """

    doc_ids: tuple[str, ...]
    grades: tuple[int | None, ...]
    runs: tuple[str, ...]

    @property
    def pending(self) -> tuple[str, ...]:
        """The documents that are to be judged next."""
        return tuple(doc_id for doc_id, grade in zip(self.doc_ids, self.grades, strict=True) if grade is None)


def adaptive_pool(
    rankings: Mapping[str, Sequence[str]],
    judge: Callable[[str], int | None],
    budget: int,
    *,
    method: Method = "maxmean",
    fading: float = 1.0,
    rel: int = 1,
    batch: int = 1,
    seed: int = 0,
    topic_id: str = "",
) -> Ordered:
    """The documents of a topic that are judged, one after the other.

    Move-to-front: all runs begin with one priority; the first takes documents from its top until one is not relevant,
    then its priority falls by one. MaxMean: a run's worth is the mean of a Beta distribution, (1 + relevant) /
    (2 + judged) over the documents it brought; the run of the largest mean brings the next. With a fading below 1
    earlier documents count less (0: only the last one), which is the non-stationary variant.

    Args:
        rankings: document ids, the best first, by run.
        judge: the grade of a document; None where it is not judged yet. Such a document is taken, and its run is left
            as it was.
        budget: documents at most.
        method: "move-to-front" or "maxmean".
        fading: what a document's weight is multiplied by with every later one of its run.
        rel: the lowest grade that counts as relevant.
        batch: documents without a judgment after which it ends.
        seed: of ties.
        topic_id: the topic, so that ties fall differently in each.

    Returns:
        The documents.

    Raises:
        InputError: an unknown method, a fading outside 0 to 1, or a budget below 1.

    Source: Cormack, Palmer, Clarke, Efficient construction of large test collections (SIGIR 1998); Losada, Parapar,
    Barreiro, Multi-armed bandits for adjudicating documents (Information Processing and Management, 2017).
    """
    if method not in METHODS[1:]:
        raise OptionError("method", f"no method '{method}'", f"one of {', '.join(METHODS)}")
    if not 0 <= fading <= 1 or budget < 1 or batch < 1:
        raise OptionError("method", "a fading outside 0 to 1, or a budget or batch below 1", "correct it")
    key = int(digest([seed, topic_id])[:16], 16)
    order = np.random.default_rng(key).permutation(len(rankings))
    arms = [_Arm(name, ranking, int(place)) for (name, ranking), place in zip(rankings.items(), order, strict=True)]
    taken: dict[str, tuple[int | None, str]] = {}
    pending = 0
    while len(taken) < budget and pending < batch:
        live = [arm for arm in arms if arm.advance(taken)]
        if not live:
            break
        arm = max(live, key=lambda arm: (arm.priority if method == "move-to-front" else arm.mean, -arm.place))
        doc_id = arm.take()
        grade = judge(doc_id)
        taken[doc_id] = grade, arm.name
        if grade is None:
            pending += 1
        else:
            arm.learn(grade >= rel, fading)
    documents = tuple(taken)
    return Ordered(documents, tuple(grade for grade, _ in taken.values()), tuple(run for _, run in taken.values()))


@dataclass
class _Arm:
    """A run on its way down."""

    name: str
    ranking: Sequence[str]
    place: int
    at: int = 0
    priority: int = 0
    relevant: float = 0.0
    judged: float = 0.0

    @property
    def mean(self) -> float:
        return (1 + self.relevant) / (2 + self.judged)

    def advance(self, taken: Mapping[str, object]) -> bool:
        """Passes over documents that were taken; whether one is left."""
        while self.at < len(self.ranking) and self.ranking[self.at] in taken:
            self.at += 1
        return self.at < len(self.ranking)

    def take(self) -> str:
        """The next document."""
        self.at += 1
        return self.ranking[self.at - 1]

    def learn(self, relevant: bool, fading: float) -> None:
        """Takes in what was said about the document that it brought last."""
        self.relevant = fading * self.relevant + relevant
        self.judged = fading * self.judged + 1
        self.priority -= not relevant
