"""How `survivorship.evaluate` scores and compares annotation depths."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final, Literal, get_args

from truerank.errors import InputError
from truerank.measures import Policy
from truerank.measures.policy import Missing, Ties
from truerank.measures.significance import Correction, check_name

__all__ = ["TESTS", "EvaluateOptions"]

Test = Literal["welch", "equal-variance-t", "nested"]

#: The tests of a depth against the full set, in words.
TESTS: Final[dict[str, str]] = {
    "welch": "Welch's unpaired t-test",
    "equal-variance-t": "Student's unpaired t-test with one variance",
    "nested": "t-test of the difference that allows for the queries that both sets have",
}


@dataclass(frozen=True)
class EvaluateOptions:
    """The choices of an evaluation by depth; all of them are printed with it.

    Args:
        measures: see `measures.parse_measures`; RR_MSMARCO@10 is the official one of MS MARCO.
        test: "welch" and "equal-variance-t" take the two sets of queries as if they shared none, as the paper does;
            "nested" allows for the shallow set being a part of the full one.
        correction: "bonferroni", "holm", "bh" or "none".
        family: what is corrected for: the comparisons of one "system" (its depths), of one "measure" (all systems and
            depths), or of "all" measures together.
        alpha: a corrected p below it is significant; intervals have the confidence 1 − alpha.
        missing: a query of the judgments that a run lacks scores 0 ("default"), as the official rules want, or is left
            out ("skip").
        ties: see `measures.Policy`.
        rel: the lowest relevant grade of binary measures.
    """

    measures: str = "RR_MSMARCO@10"
    test: Test = "welch"
    correction: Correction = "bonferroni"
    family: Literal["system", "measure", "all"] = "measure"
    alpha: float = 0.05
    missing: Missing = "default"
    ties: Ties = "trec_eval"
    rel: int = 1

    def __post_init__(self) -> None:
        check_name(self.test, Test, "test", "--test")
        check_name(self.correction, Correction, "correction", "--correction")
        if self.family not in ("system", "measure", "all"):
            raise InputError(f"unknown family '{self.family}'", "system, measure or all", where="--family")
        if not 0 < self.alpha < 1:
            raise InputError(f"{self.alpha:g} is out of range", "give a number between 0 and 1", where="--alpha")
        if self.missing not in get_args(Missing):
            raise InputError(f"unknown policy '{self.missing}'", "default, skip or fail", where="--missing")
        self.policy()

    def policy(self) -> Policy:
        """How runs are scored."""
        return Policy(ties=self.ties, missing=self.missing, rel=self.rel)

    def sentences(self) -> tuple[str, ...]:
        """The test and its correction in words."""
        families = {
            "system": "the depths of each system",
            "measure": "all depths and systems of each measure",
            "all": "all depths, systems and measures together",
        }
        corrected = "not corrected"
        if self.correction != "none":
            corrected = f"corrected ({self.correction}) for {families[self.family]}"
        return (
            f"* differs from the full set: {TESTS[self.test]}, two-sided, {corrected}, p < {self.alpha:g}.",
            *self.policy().sentences(),
        )

    def json(self) -> dict[str, Any]:
        """The choices by name."""
        return asdict(self)
