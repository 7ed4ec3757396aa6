"""The options of `scan_versions`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, get_args

from truerank.audits.transfer.matching.finding import MatchOptions
from truerank.errors import InputError
from truerank.rankers.base import RankerSpec
from truerank.text.passages import policy_named

__all__ = [
    "AGGREGATIONS",
    "DEFAULT_CUT_OFF",
    "DEFAULT_FLOOR",
    "TEXTS",
    "Aggregation",
    "Evidence",
    "Given",
    "Probability",
    "ScanOptions",
]

Aggregation = Literal["first", "max"]
Probability = Literal["auto", "exp", "logistic", "raw"]
Given = Literal["auto", "judged", "nothing"]
Evidence = Literal["scores", "texts", "both"]

#: How scores of passages become one of the document, and how the paper calls that.
AGGREGATIONS: Final[Mapping[Aggregation, str]] = {"first": "FirstP", "max": "MaxP"}
#: The paper's cut-off (section 4): a difference of probabilities.
DEFAULT_CUT_OFF: Final = 0.5
#: Given that one version is relevant, pairs whose larger probability is below it are no candidates: the quotient of
#: two that are next to impossible tells nothing. Chosen on the development draws.
DEFAULT_FLOOR: Final = 0.05
#: What the data sets of the texts' candidates are called.
TEXTS: Final = "texts"


@dataclass(frozen=True)
class ScanOptions:
    """How `scan_versions` looks for judgments that no longer hold.

    Args:
        ranker: what scores; None for monoT5, 3B where there is a GPU, base where there is none. "bm25" alone takes its
            statistics from the judged version.
        also: further rankers; the curve weighs the scores of all of them together.
        policy: how documents are cut, see `text.passages.policy_named`.
        probability: how a score becomes a probability: "exp" (the score is its logarithm: monoT5, monoBERT),
            "logistic" (a curve fitted to judged documents against others), "raw" (not at all; with `percentile`), or
            "auto": exp for monoT5, raw with a percentile, else logistic.
        given: whether a difference takes it as given that one of the two versions is relevant, see
            `probabilities.difference`: "judged", "nothing" (as in the paper), or "auto": judged with a curve.
        cut_off: a difference above it is a candidate.
        floor: with `given` "judged", the larger probability of a candidate's versions is at least this.
        evidence: what names candidates: the "scores" of the rankers, the "texts" (see `text_evidence`), or "both".
        percentile: instead, the percentile of all differences above which one is a candidate, 0 to 100.
        pairs: which versions are compared; empty for each with each.
        best: for Figure 1, names of the best of several versions, each over the documents that all of them have.
        relevance: judgments from this grade on are looked at.
        topic_field: "title", "description", "narrative", or several joined by "+".
        match: how documents are found again, where that was not done before.
        first_stage: a run whose documents that are not judged relevant calibrate; None for documents of other topics.
        sampled: how many such documents at most.
        items: how many documents of each set, and of all, are written for people to judge.
        seed: of all samples.
        cache: the file of a `ScoreCache`.
        engine: "local", "ray" or "ray:ADDRESS".
        block_size: judged documents that are scored, and saved, at a time.
    """

    ranker: RankerSpec | None = None
    also: tuple[RankerSpec, ...] = ()
    policy: str = "cast2021"
    probability: Probability = "auto"
    given: Given = "auto"
    cut_off: float = DEFAULT_CUT_OFF
    floor: float = DEFAULT_FLOOR
    evidence: Evidence = "both"
    percentile: float | None = None
    pairs: tuple[tuple[str, str], ...] = ()
    best: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    relevance: int = 1
    topic_field: str = "title"
    match: MatchOptions = field(default_factory=MatchOptions)
    first_stage: str | None = None
    sampled: int = 2000
    items: int = 100
    seed: int = 0
    cache: str | None = None
    engine: str = "local"
    block_size: int = 256

    def __post_init__(self) -> None:
        policy_named(self.policy)
        if self.probability not in get_args(Probability):
            fault = f"no probabilities by '{self.probability}'"
            raise InputError(fault, f"choose {', '.join(get_args(Probability))}", where="--probability")
        if self.given not in get_args(Given):
            fault = f"nothing is given by '{self.given}'"
            raise InputError(fault, f"choose {', '.join(get_args(Given))}", where="--given")
        if self.evidence not in get_args(Evidence):
            fault = f"no evidence by '{self.evidence}'"
            raise InputError(fault, f"choose {', '.join(get_args(Evidence))}", where="--evidence")
        if not 0 <= self.floor < 1:
            fault = f"a floor of probabilities is between 0 and 1, not {self.floor:g}"
            raise InputError(fault, "give a number such as 0.05, or 0 for none", where="--floor")
        if self.also and (self.percentile is not None or self.probability not in ("auto", "logistic")):
            fault = "scores of several rankers are weighed by a curve only"
            raise InputError(fault, "leave out --percentile and --probability", where="--with")
        if self.given == "judged" and self.percentile is not None:
            fault = "differences of scores are no probabilities, and nothing can be given"
            raise InputError(fault, "leave out --percentile or --given", where="--given")
        if self.percentile is None and self.probability == "raw":
            raise InputError("raw scores have no cut-off of their own", "give --percentile", where="--probability")
        if self.percentile is not None and not 0 <= self.percentile < 100:
            raise InputError(f"there is no percentile {self.percentile:g}", "0 to 100", where="--percentile")
        if self.percentile is None and not 0 < self.cut_off < 1:
            fault = f"a difference of probabilities is between 0 and 1, not {self.cut_off:g}"
            raise InputError(fault, "give a number such as 0.5, or --percentile", where="--cut-off")
        for name, least in (("sampled", 1), ("items", 0), ("block_size", 1)):
            if getattr(self, name) < least:
                option = f"--{name.replace('_', '-')}"
                raise InputError(f"{getattr(self, name)} is too few", f"give {least} or more", where=option)

    @property
    def curve(self) -> Literal["no", "perhaps", "yes"]:
        """Whether a curve is fitted; with "auto" the ranker decides."""
        if self.also:
            return "yes"
        if self.probability == "auto":
            return "perhaps" if self.percentile is None else "no"
        return "yes" if self.probability == "logistic" else "no"

    def identity(self) -> dict[str, object]:
        """What the scores depend on, beside the sources."""
        return {
            "policy": self.policy,
            "relevance": self.relevance,
            "topic_field": self.topic_field,
            "sampled": self.sampled,
            "seed": self.seed,
            "block_size": self.block_size,
        }
