"""The options of `leaderboard`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from truerank.options import Flag, Options, Range


@dataclass(frozen=True)
class LeaderboardOptions(Options):
    """What is compared.

    Attributes:
        claim: a claim, as "A > B"; repeat the option for several, which are then tested together.
        tasks: only these tasks; by default all that can be compared.
        systems: only these systems.
        first: only so many systems, those with the highest means over the tasks that all share.
        types: a table with columns task and type, for the mean over types. In Python also a frame.
    """

    claim: Annotated[tuple[str, ...], Flag(metavar="A>B", reads=list[str])] = ()
    tasks: Annotated[tuple[str, ...], Flag(metavar="NAME", reads=list[str])] = ()
    systems: Annotated[tuple[str, ...], Flag(metavar="NAME", reads=list[str])] = ()
    first: Annotated[int | None, Range(at_least=2)] = None
    types: Annotated[Any, Flag(metavar="FILE", reads=str)] = None
