"""What can be chosen for a track report."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from truerank.errors import InputError
from truerank.measures import Policy

__all__ = ["DEFAULT_DEPTH", "ReportOptions"]

#: Depth of NCG and recall where none is given: the number of candidates of a document rerank subtask.
DEFAULT_DEPTH: Final = 100


@dataclass(frozen=True)
class ReportOptions:
    """The choices behind a report; every one of them is in its manifest.

    Attributes:
        name: what the track or task is called.
        main: the measure that runs are sorted by and compared with.
        measures: further measures, separated by blanks; None for RR, AP, NCG@k and R@k where runs are scored (k is the
            policy's depth, or 100), for all there are in tables of means.
        baseline: the category that others are compared with.
        where: conditions on the rows of tables, value by column.
        policy: how runs are scored.
        seed: of the map of runs.
        perplexity: of the map of runs; None for 30, or a third of the other runs.

    Raises:
        InputError: a perplexity of zero or less, or no main measure.
    """

    name: str = ""
    main: str = "nDCG@10"
    measures: str | None = None
    baseline: str = "trad"
    where: Mapping[str, str] = field(default_factory=dict)
    policy: Policy = field(default_factory=Policy)
    seed: int = 0
    perplexity: float | None = None

    def __post_init__(self) -> None:
        if self.perplexity is not None and not self.perplexity > 0:
            raise InputError(f"the perplexity is {self.perplexity:g}", "give more than 0", where="--perplexity")
        if self.seed < 0:
            raise InputError(f"the seed is {self.seed}", "give 0 or more", where="--seed")
        if len(self.main.split()) != 1:
            raise InputError(f"'{self.main}' is not one measure", "give one, such as nDCG@10", where="--main")

    def scored(self) -> list[str]:
        """The further measures that runs are scored by."""
        if self.measures is not None:
            return self.measures.split()
        depth = self.policy.depth or DEFAULT_DEPTH
        return ["RR", "AP", f"NCG@{depth}", f"R@{depth}"]

    def printed(self) -> list[str]:
        """The measures to take from tables of means, empty for all; a word in brackets belongs to what it follows."""
        return re.findall(r"\S+(?: \(\w+\))?", self.measures or "")

    def json(self) -> dict[str, Any]:
        """The choices by name."""
        return {**asdict(self), "where": dict(self.where)}
