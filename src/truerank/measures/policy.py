"""How runs are scored where conventions differ: ties, missing topics, depth, and what counts as relevant."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final, Literal, get_args

from truerank.errors import InputError

__all__ = ["Missing", "Policy", "Ties"]

Ties = Literal["trec_eval", "ascending", "rank"]
Missing = Literal["default", "skip", "fail"]

_TIES: Final[dict[str, str]] = {
    "trec_eval": "scores as 32-bit numbers, equal ones by document id descending (trec_eval)",
    "ascending": "equal scores by document id ascending",
    "rank": "the rank column of the run, equal ranks by document id ascending",
}
_MISSING: Final[dict[str, str]] = {
    "default": "a topic that the run lacks scores what an empty ranking scores",
    "skip": "a topic that the run lacks is left out of its means",
    "fail": "a run that lacks a topic is refused",
}


@dataclass(frozen=True)
class Policy:
    """The choices under which a run is scored; every one of them is printed with the result.

    Attributes:
        ties: the order of documents with equal scores: "trec_eval" (scores as 32-bit numbers, then document id
            descending), "ascending" (document id ascending, as in the leakage paper) or "rank" (the rank column).
        missing: what a topic of the qrels scores that the run lacks: "default" (what an empty ranking scores), "skip"
            (it is left out) or "fail" (the run is refused).
        depth: how many results of each topic are scored, None for all.
        rel: the lowest grade that binary measures count as relevant, unless a measure says `rel=` itself; measures
            with graded gains always gain from grade 1.

    Raises:
        InputError: an unknown name, or a depth or grade below 1.
    """

    ties: Ties = "trec_eval"
    missing: Missing = "default"
    depth: int | None = None
    rel: int = 1

    def __post_init__(self) -> None:
        if self.ties not in get_args(Ties):
            raise InputError(f"unknown tie policy '{self.ties}'", f"one of {', '.join(get_args(Ties))}", where="--ties")
        if self.missing not in get_args(Missing):
            raise InputError(
                f"unknown policy for missing topics '{self.missing}'",
                f"one of {', '.join(get_args(Missing))}",
                where="--missing",
            )
        if self.depth is not None and self.depth < 1:
            raise InputError(f"the depth is {self.depth}", "give 1 or more, or leave it out", where="--depth")
        if self.rel < 1:
            raise InputError(f"the lowest relevant grade is {self.rel}", "give 1 or more", where="--rel")

    def sentences(self) -> tuple[str, ...]:
        """The choices in words, one sentence each."""
        depth = "all results" if self.depth is None else f"the first {self.depth:,} results"
        return (
            f"Ties: {_TIES[self.ties]}.",
            f"Missing: {_MISSING[self.missing]}.",
            f"Depth: {depth} of each topic.",
            f"Binary measures count grades of {self.rel} and more unless they say rel= themselves.",
        )

    def json(self) -> dict[str, Any]:
        """The choices by name."""
        return asdict(self)
