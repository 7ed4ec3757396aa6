"""What can be chosen for a pool."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Final

from truerank.audits.reusability.pools.bandit import Method
from truerank.options import Flag, Options, Range, Seed

#: Documents of each run in a depth pool, and how far down the other methods follow a run, where nothing is said.
DEPTH: Final = 10
_FOLLOWED: Final = 100


@dataclass(frozen=True)
class Pooling(Options):
    """What is pooled.

    Attributes:
        depth: documents of each run and topic in the pools, by default 10; with a method that follows judgments, how
            far down runs are followed, by default 100.
        metadata: tables of run and team; without them and `team_prefix` every run is a team of its own.
        team_prefix: where no table says it, a run's name up to this sign is its team's; a hyphen is given as
            --team-prefix=-.
        subset: pass over topics of runs that are not pooled.
        sparse_qrels: judgments whose documents are added to the pools.
    """

    depth: Annotated[int | None, Range(at_least=1)] = None
    metadata: Annotated[tuple[str, ...], Flag(metavar="FILE", reads=list[str])] = ()
    team_prefix: Annotated[str | None, Flag(metavar="SIGN")] = None
    subset: bool = False
    sparse_qrels: Annotated[str | None, Flag(metavar="SRC")] = None


@dataclass(frozen=True)
class PoolMethod(Options):
    """How documents are chosen.

    Attributes:
        method: depth takes the first documents of every run; move-to-front and maxmean (the bandit of the Common Core
            track) follow what is found and need `qrels`.
        rel: the lowest grade that counts as relevant.
        budget: with move-to-front and maxmean, documents of a topic; by default as many as its pool of depth 10 has.
        fading: with maxmean, what the weight of a document is multiplied by with every later one of its run.
        batch: with a judging store, documents of a topic to judge next.
        seed: of ties between runs.
    """

    method: Method = "depth"
    rel: Annotated[int, Range(at_least=1)] = 1
    budget: Annotated[int | None, Range(at_least=1)] = None
    fading: Annotated[float, Range(at_least=0, at_most=1)] = 1.0
    batch: Annotated[int, Range(at_least=1)] = 10
    seed: Seed = 0

    def reach(self, depth: int | None) -> int:
        """How far down the runs are looked at.

        Args:
            depth: of `Pooling`.
        """
        return depth or (DEPTH if self.method == "depth" else _FOLLOWED)
