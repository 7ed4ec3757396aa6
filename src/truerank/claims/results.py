"""What a check found, as immutable values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, NamedTuple

from truerank.core.plain import picked, plain
from truerank.core.result import Result

if TYPE_CHECKING:
    from truerank.audits.benchmarks import KnownBenchmark
    from truerank.claims.claim import Claim, ClaimEstimate, Effect, Repair, Unit
    from truerank.claims.questions import PlannedQuestion
    from truerank.sources.recognition import Reading

ConclusionWord = Literal[
    "FILES AT FAULT", "DOES NOT HOLD", "CANNOT TELL", "UNKNOWN", "HOLDS EXCEPT", "HOLDS, SMALLER THAN CLAIMED", "HOLDS"
]


#: The evidence of a question that was left out as asked, and of one whose needs were not given.
LEFT_OUT: Final = "Left out, as asked."
NOT_GIVEN: Final = "Not given."


@dataclass(frozen=True)
class ClaimAnswer:
    """One question answered, and what that does to the claim.

    Attributes:
        question: its name.
        word: the verdict in the words of the audit; UNKNOWN where it was not or cannot be answered.
        evidence: what it rests on, in one sentence.
        effect: what becomes of the claim by what was found; what merely could be does not count.
        consequence: the same in one sentence, with its figures.
        estimates: the difference under this condition; several where several were tried.
        settles: what to give or run next; empty where nothing is open.
        folder: of the audit, below that of the check; empty where there is none.
        exception: how a conclusion names what the claim does not survive.
        facts: figures for `summary.json`.
        possible: what these data cannot exclude, in one sentence with its figures.
        plausible: whether the exception is plausible by the rule of the question; then the conclusion names it, too.
        repair: what is certainly wrong with the data, and what to do about it.
        remark: what the conclusion says besides, such as the topics that nobody judged.
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
    repair: Repair | None = None
    remark: str = ""

    @property
    def objects(self) -> bool:
        """Whether the claim does not survive what was found, or what is plausible."""
        return bool(self.exception) and (self.plausible or self.effect in ("falls", "not shown"))

    def json(self) -> dict[str, Any]:
        """Everything, as plain numbers and texts."""
        values = asdict(replace(self, repair=None))
        values["repair"] = "" if self.repair is None else self.repair.what
        return {**values, "facts": dict(self.facts), "estimates": [asdict(row) for row in self.estimates]}


class SystemScore(NamedTuple):
    """The score of the only system, with its interval; None where one topic gives none.

    Attributes:
        topics: topics that it is over.
        unit: what each score is of.
    """

    system: str
    measure: str
    value: float
    low: float | None
    high: float | None
    topics: int
    confidence: float
    unit: Unit = "topics"


@dataclass(frozen=True)
class ClaimConclusion:
    """What all answers say together.

    Attributes:
        word: HOLDS, HOLDS, SMALLER THAN CLAIMED, HOLDS EXCEPT, CANNOT TELL, DOES NOT HOLD, FILES AT FAULT, or UNKNOWN
            without a claim.
        reason: in plain sentences, with the figures.
        brief: the same beside a line that has the difference, without what was not asked.
        exceptions: what the claim does not survive, in a few words each.
        possible: what these data cannot exclude, one sentence each.
        unknown: names of questions that were not answered.
        detectable: the smallest difference that so many topics could have shown; None where it has no value.
        repairs: what was repaired, as the sentence names it.
    """

    word: ConclusionWord
    reason: str
    brief: str = ""
    exceptions: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    detectable: float | None = None
    possible: tuple[str, ...] = ()
    repairs: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False, repr=False)
class Check(Result, shown_in="truerank.claims.page"):
    """Whether a claim can be believed, question by question.

    Attributes:
        claim: the claim; None where fewer than two runs were given.
        base: the difference as the data are.
        repaired: the difference after all certain repairs together; None where nothing was repaired.
        readings: what each file that was given without an option was taken for.
        answers: in the order of `QUESTIONS`; empty for a plan.
        conclusion: what they say together.
        plan: what could be answered with what was given, in the same order.
        settings: what was given, as `check.yaml` has it.
        test: the name of the test set.
        folder: where the files are.
        single: the score of the only system; None where there are several, or none.
        benchmark: the one of the gallery that the test set is; None where it is another one.
    """

    verdict_words: ClassVar[tuple[str, ...]] = (
        "FILES AT FAULT", "DOES NOT HOLD", "CANNOT TELL", "UNKNOWN", "HOLDS EXCEPT", "HOLDS, SMALLER THAN CLAIMED",
    )  # fmt: skip

    has_details: ClassVar[bool] = True
    unknown_code: ClassVar[int] = 3

    claim: Claim | None
    base: ClaimEstimate | None
    answers: tuple[ClaimAnswer, ...]
    conclusion: ClaimConclusion
    plan: tuple[PlannedQuestion, ...]
    settings: Mapping[str, Any]
    test: str
    folder: Path | None = None
    repaired: ClaimEstimate | None = None
    readings: tuple[Reading, ...] = ()
    single: SystemScore | None = None
    benchmark: KnownBenchmark | None = None

    @property
    def headline(self) -> ClaimEstimate | None:
        """The difference that counts: that of the repaired data, where anything was repaired."""
        return self.base if self.repaired is None else self.repaired

    def answer(self, name: str) -> ClaimAnswer:
        """The answer to one question.

        Args:
            name: of the question, such as "chance" or "leakage".

        Raises:
            KeyError: there is no such question; the names are listed.
        """
        # Here, as below: the help of `check` needs this class, and nothing of what a check loads.
        from truerank.claims.questions import question

        question(name)
        answer = next((answer for answer in self.answers if answer.question == name), None)
        if answer is None:
            raise KeyError("nothing was asked: this is the plan")
        return answer

    def sentence(self) -> str:
        """The claim in one sentence, with the difference that counts."""
        from truerank.claims.claim import signed

        claim, headline = self.claim, self.headline
        if self.conclusion.word == "FILES AT FAULT":
            names = "" if claim is None else f" of {claim.system} and {claim.baseline}"
            return f"The comparison{names} on {self.test}"
        if self.single is not None:
            return f"{self.single.system}: {self.single.value:.3f} {self.single.measure}"
        if claim is None or headline is None or headline.value is None:
            return f"The data of {self.test}"
        if self.conclusion.word == "CANNOT TELL":
            unmended = ", as the files are" if self.repaired is None and self.conclusion.repairs else ""
            return f"{claim.system} against {claim.baseline}: {signed(headline.value)} {claim.measure}{unmended}"
        better = "better" if headline.value >= 0 else "worse"
        return f"{claim.system} is {better} than {claim.baseline} by {abs(headline.value):.3f} {claim.measure}"

    def json(self) -> dict[str, Any]:
        """Everything, as plain numbers and texts."""
        claim = None
        if self.claim is not None and self.base is not None:
            claim = {
                **picked(self.claim, "system, baseline, measure, comparisons, confidence"),
                **picked(self.base, "value, low, high, topics"),
                "repaired": plain(self.repaired),
            }
        return {
            **picked(self, "verdict=conclusion.word, sentence, conclusion, test"),
            "claim": claim,
            **({} if self.single is None else {"single": self.single._asdict()}),
            **picked(self, "answers, plan, settings, files=readings"),
            **({} if self.benchmark is None else {"gallery": [self.benchmark.json()]}),
        }
