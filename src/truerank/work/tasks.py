"""What an engine runs: a task, opened once by each worker, over a stream of numbered blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeVar

B_contra = TypeVar("B_contra", contravariant=True)
R_co = TypeVar("R_co", covariant=True)


class Numbered(Protocol):
    """A piece of work that knows its place in the job."""

    @property
    def number(self) -> int:
        """Place in the job, from 0."""


class Task(Protocol[B_contra, R_co]):
    """A picklable piece of work: opened once by each worker, then called for every block.

    With an attribute `device` it tells the engine where its model runs; on "cuda", a cluster gives its blocks a GPU.
    """

    def open(self) -> Callable[[B_contra], R_co]:
        """Loads what the work needs and returns the function that does it."""


class Lost(NamedTuple):
    """The result of a block whose worker died."""

    reason: str
