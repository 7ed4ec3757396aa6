"""How runs are compared: the test, the correction, the level, and every choice beside them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from truerank.errors import InputError
from truerank.measures.magnitude import EFFECT_SIZES, EffectSize
from truerank.measures.resampling import Bootstrap
from truerank.measures.significance import (
    CORRECTIONS,
    PAIRED_TESTS,
    TESTS,
    ZEROS,
    Correction,
    Test,
    Zeros,
    check_count,
    check_name,
)

__all__ = ["Family", "Method"]

Family = Literal["measure", "all"] | int

_UNPAIRED_SIZES = ("ds", "gs")


@dataclass(frozen=True)
class Method:
    """The choices of a comparison; all of them are printed with it.

    Attributes:
        test: see `significance.TESTS`.
        correction: "bonferroni", "holm", "bh" (Benjamini–Hochberg) or "none".
        alpha: the level; a corrected p below it is significant, and intervals have the confidence 1 − alpha.
        family: what is corrected for: the comparisons by one "measure", those by "all" measures, or a number.
        effect: the effect size, see `magnitude.effect_size`; None for dz where the test is paired, else ds.
        zeros: what Wilcoxon's test does with differences of zero.
        permutations: draws of a randomisation test.
        bootstrap: "percentile" or "bca" for intervals by the bootstrap; None for intervals by the t distribution.
        resamples: draws of the bootstrap.
        seed: of all draws.
        tie: per-topic differences up to this count as ties in wins, ties and losses.
        power: of the smallest detectable difference.

    Raises:
        InputError: an unknown name, a number out of its range, or a paired effect size for an unpaired test.
    """

    test: Test = "paired-t"
    correction: Correction = "bonferroni"
    alpha: float = 0.05
    family: Family = "measure"
    effect: EffectSize | None = None
    zeros: Zeros = "wilcox"
    permutations: int = 100_000
    bootstrap: Bootstrap | None = None
    resamples: int = 10_000
    seed: int = 0
    tie: float = 1e-9
    power: float = 0.8

    def __post_init__(self) -> None:
        check_name(self.test, Test, "test", "--test")
        check_name(self.correction, Correction, "correction", "--correction")
        check_name(self.zeros, Zeros, "policy for zeros", "--zeros")
        if self.effect is not None:
            check_name(self.effect, EffectSize, "effect size", "--effect-size")
            if not self.paired and self.effect not in _UNPAIRED_SIZES:
                raise InputError(
                    f"the effect size {self.effect} needs a paired test", "choose ds or gs", where="--effect-size"
                )
        if self.bootstrap is not None:
            check_name(self.bootstrap, Bootstrap, "bootstrap", "--bootstrap")
        for value, option in ((self.alpha, "--alpha"), (self.power, "--power")):
            if not 0 < value < 1:
                raise InputError(f"{value:g} is out of range", "give a number between 0 and 1", where=option)
        if isinstance(self.family, int):
            check_count(self.family, "--family")
        elif self.family not in ("measure", "all"):
            raise InputError(f"unknown family '{self.family}'", "measure, all or a number", where="--family")
        check_count(self.permutations, "--permutations")
        check_count(self.resamples, "--resamples")
        if self.seed < 0:
            raise InputError(f"the seed is {self.seed}", "give 0 or more", where="--seed")
        if not self.tie >= 0:
            raise InputError(f"{self.tie:g} is out of range", "give 0 or more", where="--tie")

    @property
    def paired(self) -> bool:
        """Whether the test compares the scores of the same topics."""
        return self.test in PAIRED_TESTS

    @property
    def effect_size(self) -> EffectSize:
        """The effect size that is computed."""
        return self.effect or ("dz" if self.paired else "ds")

    def sentences(self) -> tuple[str, ...]:
        """The choices in words, one sentence each."""
        tests = [f"{TESTS[self.test]}, two-sided"]
        if self.test == "wilcoxon":
            tests.append(ZEROS[self.zeros])
        if self.test.endswith("randomisation"):
            tests.append(f"{self.permutations:,} permutations, or all where there are no more, seed {self.seed}")
        if self.bootstrap:
            kind = {"percentile": "percentile bootstrap", "bca": "BCa bootstrap"}[self.bootstrap]
            interval = f"{kind}, {self.resamples:,} draws, seed {self.seed}"
        elif self.paired:
            interval = "Student t of the per-topic differences"
        else:
            interval = "t with equal variances" if self.test == "equal-variance-t" else "Welch"
        found = [
            f"p: {'; '.join(tests)}.",
            f"Corrected: {self.corrected()}; † below α = {self.alpha:g}.",
            f"{100 * (1 - self.alpha):.6g}% intervals: {interval}.",
            f"Effect: {EFFECT_SIZES[self.effect_size]}.",
        ]
        if self.paired:
            found.append(f"Win / tie / loss: topics on which the run is better, as good (within {self.tie:g}), worse.")
        found.append(
            f"Detectable: the smallest true difference that a t-test finds with power {self.power:g} at α = "
            f"{self.alpha:g} before correction, given this many topics and this spread."
        )
        return tuple(found)

    def corrected(self) -> str:
        """The correction and its family in words."""
        if self.correction == "none":
            return CORRECTIONS["none"]
        over = {"measure": "the comparisons by each measure", "all": "the comparisons by all measures together"}
        family = f"{self.family:,} comparisons" if isinstance(self.family, int) else over[self.family]
        return f"{CORRECTIONS[self.correction]} over {family}"

    def json(self) -> dict[str, Any]:
        """The choices by name."""
        return {**asdict(self), "effect": self.effect_size}
