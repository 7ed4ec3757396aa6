"""What can be chosen for a pool, and what it is made of."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import Any, Final

from truerank.audits.reusability.pools.bandit import METHODS, Method
from truerank.errors import InputError

__all__ = ["PoolOptions", "PoolSources"]

_DEPTH: Final = 10
_FOLLOWED: Final = 100
_NAME: Final = re.compile(r"\w[\w.@+-]{0,79}")


@dataclass(frozen=True)
class PoolOptions:
    """The choices behind a pool.

    Attributes:
        depth: documents of each run and topic; how far down runs are followed by the other methods. None for 10, and
            for 100 with these.
        method: "depth", or "move-to-front" and "maxmean", which follow what is found.
        budget: documents of a topic with these methods; None for as many as its depth-10 pool has.
        fading: of maxmean, see `adaptive_pool`.
        relevant_from: the lowest grade that counts as relevant.
        batch: with a store, documents of a topic that are to be judged next.
        seed: of ties.
        assessors: who judges; each topic is judged by one of them.

    Raises:
        InputError: an unknown method, a number below 1, a name that cannot be that of a file, or one that stands twice.
    """

    depth: int | None = None
    method: Method = "depth"
    budget: int | None = None
    fading: float = 1.0
    relevant_from: int = 1
    batch: int = 10
    seed: int = 0
    assessors: tuple[str, ...] = ("annotator",)

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise InputError(f"no method '{self.method}'", f"one of {', '.join(METHODS)}", where="--method")
        for name in ("depth", "budget", "batch"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise InputError(f"the {name} is {value}", "give 1 or more", where=f"--{name}")
        if not self.assessors:
            raise InputError("nobody judges", "name an assessor", where="--assessors")
        for name in self.assessors:
            if not _NAME.fullmatch(name):
                raise InputError(f"'{name}' is no name", "use letters, digits and . @ + -", where="--assessors")
            if self.assessors.count(name) > 1:
                raise InputError(f"'{name}' stands there twice", "name everybody once", where="--assessors")

    @property
    def reach(self) -> int:
        """How far down the runs are looked at."""
        return self.depth or (_DEPTH if self.method == "depth" else _FOLLOWED)

    @property
    def equal_cost(self) -> int:
        """The depth of the pool whose size is the budget where none is given."""
        return _DEPTH

    def json(self) -> dict[str, Any]:
        """The choices by name."""
        return {**asdict(self), "depth": self.reach, "assessors": list(self.assessors)}


@dataclass(frozen=True)
class PoolSources:
    """What goes into a pool besides the runs.

    Attributes:
        topics: the topics that are pooled; None for all of the runs.
        subset: pass over topics of runs that are not among these.
        sparse: judgments whose documents are added to the pool.
        judgments: qrels (what they lack is not relevant) or a judging store (what it lacks is not judged yet).
        docs: the collection, so that batches hold texts.
        metadata: tables of runs and their teams.
        team_prefix: the sign up to which a run's name is its team's, where no table says it.
    """

    topics: str | None = None
    subset: bool = False
    sparse: str | None = None
    judgments: str | None = None
    docs: str | None = None
    metadata: tuple[str, ...] = ()
    team_prefix: str | None = None

    def __post_init__(self) -> None:
        if self.docs is not None and self.topics is None:
            raise InputError("batches with texts need the topics' texts too", "give --topics", where="--docs")
        if self.subset and self.topics is None:
            raise InputError("no topics are named", "give --topics, or leave --subset out", where="--subset")

    def json(self) -> dict[str, Any]:
        """The sources by name."""
        return {**asdict(self), "metadata": list(self.metadata)}
