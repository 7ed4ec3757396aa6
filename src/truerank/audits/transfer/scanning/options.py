"""The options of `scan`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Final, Literal

from truerank.errors import OptionError
from truerank.options import Flag, Options, Range, Seed
from truerank.rankers.base import RankerSpec
from truerank.text.passages import policy_named

Aggregation = Literal["first", "max"]
Probability = Literal["auto", "exp", "logistic", "raw"]
Given = Literal["auto", "judged", "nothing"]
Evidence = Literal["scores", "texts", "both"]

#: How scores of passages become one of the document, and how the paper calls that.
AGGREGATIONS: Final[Mapping[Aggregation, str]] = {"first": "FirstP", "max": "MaxP"}
#: The paper's cut-off (section 4): a difference of probabilities.
DEFAULT_CUT_OFF: Final = 0.5
#: Given that one version is relevant, pairs whose larger probability is below it are not candidates: the quotient of
#: two that are next to impossible tells nothing. Chosen on the development draws.
DEFAULT_FLOOR: Final = 0.05
#: What the data sets of the texts' candidates are called.
TEXTS: Final = "texts"


@dataclass(frozen=True)
class ScanOptions(Options):
    """What makes a candidate.

    Attributes:
        evidence: what names candidates: the scores, that fall apart; the texts, that lost what answered; or both: then
            scores name only what the texts do not contradict.
        probability: how a score becomes a probability: exp (it is its logarithm: monoT5, monoBERT), logistic (a curve
            fitted to judged documents against others), raw (not at all, with `percentile`), or auto: exp for monoT5,
            raw with a percentile, else logistic.
        given: whether differences take it as given that one of the two versions is relevant: judged, nothing (as in
            the paper), or auto: judged where a curve is fitted.
        cut_off: a larger difference of probabilities is a candidate.
        floor: with `given` judged, the larger probability of a candidate's versions is at least this.
        percentile: instead, differences of scores above this percentile are candidates.
        pair: versions to compare, repeated for several pairs; by default each with each.
        best: in Figure 1, also the best of these versions, over the documents that all of them have.
    """

    evidence: Evidence = "both"
    probability: Probability = "auto"
    given: Given = "auto"
    cut_off: Annotated[float, Range(above=0, below=1)] = DEFAULT_CUT_OFF
    floor: Annotated[float, Range(at_least=0, below=1)] = DEFAULT_FLOOR
    percentile: Annotated[float | None, Range(at_least=0, below=100)] = None
    pair: Annotated[Sequence[str | tuple[str, str]], Flag(metavar="A=B", reads=list[str])] = ()
    best: Annotated[Mapping[str, tuple[str, ...]], Flag(metavar="NAME=A,B,…")] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.given == "judged" and self.percentile is not None:
            fault = "differences of scores are not probabilities, and nothing can be given"
            raise OptionError("given", fault, "leave out `percentile` or `given`")
        if self.percentile is None and self.probability == "raw":
            raise OptionError("probability", "raw scores have no cut-off of their own", "give `percentile`")

    def pairs(self, names: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
        """The versions that are compared.

        Args:
            names: of all versions.

        Raises:
            OptionError: there is no such version, or one is compared with itself.
        """
        found = [_pair(one) for one in self.pair]
        for name in (*(name for pair in found for name in pair), *(n for some in self.best.values() for n in some)):
            if name not in names:
                raise OptionError("pair", f"no version '{name}'", f"there are {', '.join(names)}")
        for first, second in found:
            if first == second:
                raise OptionError("pair", f"'{first}' is compared with itself", "name two versions")
        for name in self.best:
            if name in names:
                raise OptionError("best", f"'{name}' is a version's name", "choose another")
        return tuple(found) or tuple((a, b) for place, a in enumerate(names) for b in names[place + 1 :])


def directions(pairs: Iterable[Sequence[str]]) -> Iterator[tuple[str, str]]:
    """Better and worse version of each pair, either way round."""
    return ((better, worse) for one, other in pairs for better, worse in ((one, other), (other, one)))


def _pair(given: str | tuple[str, str]) -> tuple[str, str]:
    first, separator, second = given.partition("=") if isinstance(given, str) else (given[0], "=", given[1])
    if not (first and separator and second):
        raise OptionError("pair", f"'{given}' is not of the form A=B", "name two versions")
    return first, second


@dataclass(frozen=True)
class Samples(Options):
    """What is drawn: documents that calibrate, and those that people judge.

    Attributes:
        first_stage: a run whose documents that are not relevant calibrate; by default documents of other topics.
        sampled: the largest number of documents for calibration.
        items: documents of each data set, and of all, that are written to be judged (items.jsonl).
        seed: of all samples.
    """

    first_stage: Annotated[str | None, Flag(metavar="RUN")] = None
    sampled: Annotated[int, Range(at_least=1)] = 2000
    items: Annotated[int, Range(at_least=0)] = 100
    seed: Seed = 0


@dataclass(frozen=True)
class ScanScoring(Options):
    """How documents are scored.

    Attributes:
        with_: a further ranker, weighed together with `model` by the curve.
        split: how documents are cut into passages.
        cache: a file that a file that keeps scores, so that no pair is scored twice.
        engine: local (this process), ray (a cluster on this machine), or ray:ADDRESS.
        block_size: judged documents scored, and saved, at a time.
    """

    with_: Annotated[Sequence[RankerSpec | str], Flag(metavar="NAME[,SETTING=VALUE…]", reads=list[str])] = ()
    split: Annotated[str, Flag(metavar="whole|cast2021|cast2022|sliding:WORDS:STRIDE")] = "cast2021"
    cache: Annotated[str | Path | None, Flag(metavar="FILE", reads=Path)] = None
    engine: Annotated[str, Flag(metavar="local|ray[:ADDRESS]")] = "local"
    block_size: Annotated[int, Range(at_least=1)] = 256


@dataclass(frozen=True)
class ScanPlan:
    """All choices of a scan; `rel` is the lowest grade of the judgments that are looked at, `field` of the topics.

    The scores of several rankers are weighed together by a curve.
    """

    rankers: tuple[RankerSpec, ...]
    split: str
    rel: int
    field: str
    options: ScanOptions
    samples: Samples

    def __post_init__(self) -> None:
        policy_named(self.split)
        plain = self.options.percentile is None and self.options.probability in ("auto", "logistic")
        if len(self.rankers) > 1 and not plain:
            fault = "scores of several rankers are weighed by a curve only"
            raise OptionError("with_", fault, "leave out `percentile` and `probability`")

    @property
    def fits_curve(self) -> Literal["no", "perhaps", "yes"]:
        """Whether a curve is fitted; with "auto" the ranker decides."""
        if len(self.rankers) > 1:
            return "yes"
        if self.options.probability == "auto":
            return "perhaps" if self.options.percentile is None else "no"
        return "yes" if self.options.probability == "logistic" else "no"
