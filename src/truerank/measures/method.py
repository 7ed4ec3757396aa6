"""How runs are compared: the test, the correction, the confidence, and every choice beside them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from truerank.errors import OptionError
from truerank.measures.magnitude import EFFECT_SIZES, EffectSize
from truerank.measures.resampling import Bootstrap
from truerank.measures.significance import CORRECTIONS, PAIRED_TESTS, TESTS, ZEROS, Correction, Test, Zeros
from truerank.options import Confidence, Flag, Options, Range, Seed

Family = Literal["measure", "all"] | Annotated[int, Range(at_least=1)]

_UNPAIRED_SIZES = ("ds", "gs")
_PERMUTATIONS, _DRAWS = 100_000, 10_000


@dataclass(frozen=True)
class Significance(Options):
    """How runs are compared; every choice is printed with the result.

    Attributes:
        significance: the test; welch, equal-variance-t and unpaired-randomisation allow different topics.
        correction: for the number of comparisons; bh is Benjamini–Hochberg.
        confidence: of intervals; a corrected p below 1 − confidence is significant.
        family: what is corrected for: the comparisons by one measure, by all measures, or a number.
        effect_size: Cohen's d or Hedges' g; by default dz, for unpaired tests ds.
        zeros: what the Wilcoxon test does with equal scores.
        interval: by the t distribution, or by the bootstrap (percentile or bca).
        resamples: samples drawn; by default 100,000 for a randomisation test and 10,000 for the bootstrap.
        seed: of all draws.
        tie: differences by topic up to this are ties.
        power: of the smallest detectable difference.
    """

    significance: Test = "paired-t"
    correction: Correction = "bonferroni"
    confidence: Confidence = 0.95
    family: Annotated[Family, Flag(metavar="measure|all|N")] = "measure"
    effect_size: EffectSize | None = None
    zeros: Zeros = "wilcox"
    interval: Literal["t", "percentile", "bca"] = "t"
    resamples: Annotated[int | None, Range(at_least=1)] = None
    seed: Seed = 0
    tie: Annotated[float, Range(at_least=0)] = 1e-9
    power: Annotated[float, Range(above=0, below=1), Flag(hidden=True)] = 0.8

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.effect_size is not None and not self.paired and self.effect_size not in _UNPAIRED_SIZES:
            raise OptionError("effect_size", f"{self.effect_size} needs a paired test", "choose ds or gs")

    @property
    def alpha(self) -> float:
        """The level: a corrected p below it is significant."""
        return round(1 - self.confidence, 12)

    @property
    def permutations(self) -> int:
        """Samples of a randomisation test."""
        return self.resamples or _PERMUTATIONS

    @property
    def draws(self) -> int:
        """Samples of the bootstrap."""
        return self.resamples or _DRAWS

    @property
    def bootstrap(self) -> Bootstrap | None:
        """The bootstrap of intervals; None for those by the t distribution."""
        return None if self.interval == "t" else self.interval

    @property
    def paired(self) -> bool:
        """Whether the test compares the scores of the same topics."""
        return self.significance in PAIRED_TESTS

    @property
    def effect(self) -> EffectSize:
        """The effect size that is computed."""
        return self.effect_size or ("dz" if self.paired else "ds")

    def sentences(self) -> tuple[str, ...]:
        """The choices in words, one sentence each."""
        tests = [f"{TESTS[self.significance]}, two-sided"]
        if self.significance == "wilcoxon":
            tests.append(ZEROS[self.zeros])
        if self.significance.endswith("randomisation"):
            tests.append(f"{self.permutations:,} permutations, or all where there are no more, seed {self.seed}")
        if self.bootstrap:
            kind = {"percentile": "percentile bootstrap", "bca": "BCa bootstrap"}[self.bootstrap]
            interval = f"{kind}, {self.draws:,} draws, seed {self.seed}"
        elif self.paired:
            interval = "Student t of the per-topic differences"
        else:
            interval = "t with equal variances" if self.significance == "equal-variance-t" else "Welch"
        found = [
            f"p: {'; '.join(tests)}.",
            f"Corrected: {self.corrected()}; † below α = {self.alpha:g}.",
            f"{100 * self.confidence:.6g}% intervals: {interval}.",
            f"Effect: {EFFECT_SIZES[self.effect]}.",
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
        """The choices by the names that `comparison.json` has for them."""
        return {
            "test": self.significance,
            "correction": self.correction,
            "alpha": self.alpha,
            "family": self.family,
            "effect": self.effect,
            "zeros": self.zeros,
            "permutations": self.permutations,
            "bootstrap": self.bootstrap,
            "resamples": self.draws,
            "seed": self.seed,
            "tie": self.tie,
            "power": self.power,
        }
