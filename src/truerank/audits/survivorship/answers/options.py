"""How `survivorship answerable` and `survivorship rescue` choose, count and write."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

from truerank.errors import InputError
from truerank.judging.votes import Votes

__all__ = ["AnswerableOptions", "Discarded", "PoolOptions", "RescueOptions"]


class Discarded(NamedTuple):
    """Where the discarded queries are.

    Args:
        log: an annotation log; its discarded queries are taken, and their texts are known.
        ids: a list of ids, in its place or to take only some of the log's.
        topics: the texts of queries that come without a log.
        rule: which queries of a log are discarded: without a "selected" document, or not "answered".
    """

    log: str | None = None
    ids: str | None = None
    topics: str | None = None
    rule: Literal["selected", "answered"] = "selected"


@dataclass(frozen=True)
class PoolOptions:
    """What is judged for each discarded query.

    Args:
        k: results of each ranker.
        sample: queries that are drawn, every one with the same chance; None for all.
        seed: of the sample, and of the order in which passages are shown.
    """

    k: int = 10
    sample: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.k < 1:
            raise InputError(f"{self.k} results", "give 1 or more", where="-k")
        if self.sample is not None and self.sample < 1:
            raise InputError(f"a sample of {self.sample}", "give 1 or more", where="--sample")
        if self.seed < 0:
            raise InputError(f"the seed is {self.seed}", "give 0 or more", where="--seed")

    def json(self) -> dict[str, Any]:
        """The choices by name."""
        return asdict(self)


@dataclass(frozen=True)
class AnswerableOptions:
    """How answers are counted.

    Args:
        cutoffs: an answer among so many first results counts; the largest first.
        confidence: of all intervals.
        include_models: labels of models count like those of people.
        rel: for judgments in place of labels: the lowest grade that answers a query.
        votes: how one answer is made of several voices, see `judging.VOTES`.
    """

    cutoffs: tuple[int, ...] = (10, 3)
    confidence: float = 0.95
    include_models: bool = False
    rel: int = 1
    votes: Votes = "majority"

    def __post_init__(self) -> None:
        if not self.cutoffs or min(self.cutoffs) < 1 or len(set(self.cutoffs)) < len(self.cutoffs):
            raise InputError("cutoffs are distinct numbers from 1", "write 10,3", where="--cutoffs")
        object.__setattr__(self, "cutoffs", tuple(sorted(self.cutoffs, reverse=True)))
        if not 0 < self.confidence < 1:
            raise InputError(f"confidence {self.confidence:g}", "give 0.95", where="--confidence")
        if self.rel < 1:
            raise InputError(f"the lowest grade is {self.rel}", "give 1 or more", where="--rel")

    def json(self) -> dict[str, Any]:
        """The choices by name."""
        return {**asdict(self), "cutoffs": list(self.cutoffs)}


@dataclass(frozen=True)
class RescueOptions:
    """What is made of rescued queries.

    Args:
        negatives: training instances of each answering passage, each with another non-relevant one, where there are
            as many; 0 for judgments only.
        choose: non-relevant passages are those that stood "top" in a ranking, or "random" ones of the pool.
        seed: of these.
        include_models: labels of models count like those of people.
        votes: how one answer is made of several voices, see `judging.VOTES`.
    """

    negatives: int = 1
    choose: Literal["top", "random"] = "top"
    seed: int = 0
    include_models: bool = False
    votes: Votes = "majority"

    def __post_init__(self) -> None:
        if self.negatives < 0:
            raise InputError(f"{self.negatives} negatives", "give 0 or more", where="--negatives")
        if self.choose not in ("top", "random"):
            raise InputError(f"no way called {self.choose!r}", "use 'top' or 'random'", where="--choose")
        if self.seed < 0:
            raise InputError(f"the seed is {self.seed}", "give 0 or more", where="--seed")

    def json(self) -> dict[str, Any]:
        """The choices by name."""
        return asdict(self)
