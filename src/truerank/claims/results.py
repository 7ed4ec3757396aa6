"""What a check found, as immutable values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Final, Literal

from truerank.claims.claim import Claim, ClaimEstimate, Effect
from truerank.reports.results import Result

ConclusionWord = Literal["DOES NOT HOLD", "CANNOT TELL", "UNKNOWN", "HOLDS EXCEPT", "HOLDS"]

#: The questions in the order of the page.
QUESTIONS: Final[Mapping[str, str]] = {
    "significance": "Is the difference more than chance?",
    "leakage": "Does it rest on test queries in the training data?",
    "collection": "Does it rest on faults of the collection?",
    "unjudged": "Could unjudged documents turn it?",
    "pools": "Were both runs judged alike?",
    "models": "Do a model's judgments say the same?",
    "versions": "Do the judgments still fit the documents?",
    "policies": "Does it depend on the measure or the conventions?",
}


@dataclass(frozen=True)
class PlannedQuestion:
    """One question before anything is run.

    Attributes:
        name: of the question.
        answerable: whether what was given answers it.
        needs: what would have to be given; empty where it is answerable.
        what: what is run, in a few words.
        seconds: roughly how long that takes on two processors.
    """

    name: str
    answerable: bool
    needs: str = ""
    what: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class ClaimAnswer:
    """One question answered, and what that does to the claim.

    Attributes:
        question: its name.
        word: the verdict in the words of the audit; UNKNOWN where it was not or cannot be answered.
        evidence: what it rests on, in one sentence.
        effect: what becomes of the claim.
        consequence: the same in one sentence, with its figures.
        estimates: the difference under this condition; several where several were tried.
        settles: what to give or run next; empty where nothing is open.
        folder: of the audit, below that of the check; empty where there is none.
        exception: how a conclusion names what the claim does not survive.
        facts: figures for `summary.json`.
        possible: what these data cannot exclude, in one sentence with its figures; empty where there is nothing.
        plausible: whether that is likely enough to be an exception.
    """

    question: str
    word: str
    evidence: str
    effect: Effect
    consequence: str
    estimates: tuple[ClaimEstimate, ...] = ()
    settles: str = ""
    folder: str = ""
    exception: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    possible: str = ""
    plausible: bool = False

    def json(self) -> dict[str, Any]:
        """Everything, as plain numbers and texts."""
        found = asdict(self)
        return {**found, "facts": dict(self.facts), "estimates": [asdict(one) for one in self.estimates]}


@dataclass(frozen=True)
class ClaimConclusion:
    """What all answers say together.

    Attributes:
        word: HOLDS, HOLDS EXCEPT, CANNOT TELL, DOES NOT HOLD, or UNKNOWN without a claim.
        reason: in one sentence, with its figures.
        exceptions: what the claim does not survive, in a few words each.
        unknown: names of questions that were not answered.
        detectable: the smallest difference that so many topics could have shown; None where it has no value.
    """

    word: ConclusionWord
    reason: str
    exceptions: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    detectable: float | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Check(Result, shown_in="truerank.claims.page"):
    """Whether a claim can be believed, question by question.

    Attributes:
        claim: the claim; None where fewer than two runs were given.
        base: the difference as the data are.
        answers: in the order of `QUESTIONS`; empty for a plan.
        conclusion: what they say together.
        plan: what could be answered with what was given, in the same order.
        settings: what was given, as `check.yaml` has it.
        test: the name of the test set.
        folder: where the files are.
    """

    verdict_words: ClassVar[tuple[str, ...]] = ("DOES NOT HOLD", "CANNOT TELL", "UNKNOWN", "HOLDS EXCEPT")

    claim: Claim | None
    base: ClaimEstimate | None
    answers: tuple[ClaimAnswer, ...]
    conclusion: ClaimConclusion
    plan: tuple[PlannedQuestion, ...]
    settings: Mapping[str, Any]
    test: str
    folder: Path | None = None

    def answer(self, question: str) -> ClaimAnswer:
        """The answer to one question.

        Raises:
            KeyError: it was not asked.
        """
        return next(one for one in self.answers if one.question == question)

    def sentence(self) -> str:
        """The claim in one sentence."""
        if self.claim is None or self.base is None or self.base.value is None:
            return f"The data of {self.test}"
        claim, size = self.claim, abs(self.base.value)
        better = "better" if self.base.value >= 0 else "worse"
        return f"{claim.system} is {better} than {claim.baseline} by {size:.3f} {claim.measure}"

    def json(self) -> dict[str, Any]:
        """Everything, as plain numbers and texts."""
        claim = None
        if self.claim is not None and self.base is not None:
            claim = {
                "system": self.claim.system,
                "baseline": self.claim.baseline,
                "measure": self.claim.measure,
                "comparisons": self.claim.comparisons,
                "confidence": self.claim.confidence,
                **{name: getattr(self.base, name) for name in ("value", "low", "high", "topics")},
            }
        return {
            "verdict": self.conclusion.word,
            "sentence": self.sentence(),
            "conclusion": asdict(self.conclusion),
            "test": self.test,
            "claim": claim,
            "answers": [one.json() for one in self.answers],
            "plan": [asdict(one) for one in self.plan],
            "settings": dict(self.settings),
        }
