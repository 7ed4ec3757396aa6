"""What a check found, as immutable values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, NamedTuple

from truerank.core.plain import picked
from truerank.core.result import Result
from truerank.core.rules import Severity
from truerank.core.verdict import LEVELS, Level

if TYPE_CHECKING:
    from truerank.audits.benchmarks import KnownBenchmark
    from truerank.claims.claim import Claim, ClaimEstimate, Effect, Repair, Unit
    from truerank.sources.recognition import Reading

ConclusionWord = Literal[
    "FILES AT FAULT", "DOES NOT HOLD", "CANNOT TELL", "UNKNOWN", "HOLDS EXCEPT", "HOLDS SMALLER", "HOLDS"
]


#: The evidence of a question that was left out as asked, and of one whose needs were not given.
LEFT_OUT: Final = "Left out, as asked."
NOT_GIVEN: Final = "Not given."
#: And of all others where the files are at fault.
FILES_FIRST: Final = "Not checked: correct the files first."


class MatchedPair(NamedTuple):
    """A test text and the training text that it matches, each with its name, and who confirmed the matches."""

    test: tuple[str, str]
    train: tuple[str, str]
    confirmed: str


_LEVELS: Final[Mapping[str, Level]] = {
    "stands": "good", "smaller": "doubt", "not shown": "doubt", "appears": "doubt", "falls": "bad",
    "unknown": "unknown",
}  # fmt: skip
_SEVERITIES: Final[Mapping[Level, Severity]] = {"bad": "fault", "doubt": "doubt", "unknown": "note", "good": "note"}


@dataclass(frozen=True)
class ClaimAnswer:
    """One question answered, and what that does to the claim.

    Attributes:
        question: its name.
        word: the verdict in the words of the audit; UNKNOWN where it was not or cannot be answered.
        evidence: what it rests on, in sentences.
        effect: what becomes of the claim by what was found; what merely could be does not count.
        consequence: what that does to the difference, in sentences with its figures.
        estimates: the difference under this condition; several where several were tried.
        settles: what to give or run next; empty where nothing is open.
        folder: of the audit, below that of the check; empty where there is none.
        exception: what the claim does not survive: a sentence that says what was found, and sentences on the lead.
        facts: figures for `summary.json`.
        possible: what these data cannot exclude, in one sentence with its figures.
        plausible: whether the exception is plausible by the rule of the question; then the conclusion names it, too.
        repair: what is certainly wrong with the data, and what to do about it.
        remark: what the conclusion says besides, such as the topics that nobody judged.
        found: what was found, in one short sentence with its count; empty where nothing was.
        example: of what was found.
        unless: where the claim may be relied on in spite of the exception.
        split: the topics that it touches, and the others, where no repair leaves them out.
    """

    question: str
    word: str
    evidence: str
    effect: Effect
    consequence: str
    estimates: tuple[ClaimEstimate, ...] = ()
    settles: str = ""
    folder: str = ""
    exception: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    possible: str = ""
    plausible: bool = False
    repair: Repair | None = None
    remark: str = ""
    found: str = ""
    example: MatchedPair | None = None
    unless: str = "you can rule that out"
    split: tuple[ClaimEstimate, ...] = ()

    @classmethod
    def at_fault(cls, found: str, settles: str, facts: Mapping[str, Any], evidence: str = "") -> ClaimAnswer:
        """Files that allow no comparison, which the question about them says."""
        says = "Correct this first. Until then any score would mislead."
        return cls(
            "files", "FILES AT FAULT", evidence or found, "unknown", says, settles=settles, facts=facts, found=found
        )

    @property
    def objects(self) -> bool:
        """Whether the claim does not survive what was found, or what is plausible."""
        return bool(self.exception) and (self.plausible or self.effect in ("falls", "not shown"))

    @property
    def level(self) -> Level:
        """How bad it is for the claim."""
        level = "bad" if self.word == "FILES AT FAULT" else _LEVELS[self.effect]
        return "doubt" if self.objects and level == "good" else level

    @property
    def severity(self) -> Severity:
        """The same as findings have it."""
        return _SEVERITIES[self.level]

    @property
    def given(self) -> bool:
        """Whether the question was asked."""
        return self.evidence not in (NOT_GIVEN, LEFT_OUT, FILES_FIRST)

    def json(self) -> dict[str, Any]:
        """Everything, as plain numbers and texts."""
        values = asdict(replace(self, repair=None, facts={}))
        del values["facts"]
        return {**values, "repair": "" if self.repair is None else self.repair.what}


class SystemScore(NamedTuple):
    """The mean score of the only system over so many topics, with its interval; None where one topic gives none."""

    system: str
    measure: str
    value: float
    low: float | None
    high: float | None
    topics: int
    confidence: float
    unit: Unit = "topics"


class ClaimRow(NamedTuple):
    """A line of the first table: the difference on all topics, on some of them, or under a condition.

    Attributes:
        note: what is the matter with them; empty for nothing.
        role: "touched" by a fault, or what the "answer" rests on.
    """

    name: str
    note: str
    estimate: ClaimEstimate
    role: Literal["", "touched", "answer"] = ""


@dataclass(frozen=True)
class ClaimConclusion:
    """What all answers say together, in the order in which it is read.

    Attributes:
        word: HOLDS, HOLDS SMALLER, HOLDS EXCEPT, CANNOT TELL, DOES NOT HOLD, FILES AT FAULT; without a claim UNKNOWN.
        found: what was found, in one sentence; empty without a fault.
        figure: before and after, or both scores, in one sentence or two.
        decision: what it means for a choice, in one sentence.
        means: what else it means, a sentence each.
        settles: what would settle it, a sentence each.
        caption: the finding as the title of the table.
        rows: of the table, at most six.
        decided_by: the question that decides; empty without a claim.
        not_checked: what nobody looked at, the largest threat first, each with the option that gives it.
        example: one match.
    """

    word: ConclusionWord
    found: str
    figure: str
    decision: str = ""
    means: tuple[str, ...] = ()
    settles: tuple[str, ...] = ()
    caption: str = ""
    rows: tuple[ClaimRow, ...] = ()
    decided_by: str = ""
    not_checked: tuple[str, ...] = ()
    example: MatchedPair | None = None

    @property
    def sentence(self) -> str:
        """What was found, with its figures."""
        return " ".join(filter(None, (self.found, self.figure)))

    @property
    def reason(self) -> str:
        """All that it says, in sentences."""
        return " ".join(filter(None, (self.sentence, self.decision, *self.means)))


@dataclass(frozen=True, eq=False, repr=False)
class Check(Result, shown_in="truerank.claims.page"):
    """Whether a claim can be believed, question by question.

    Attributes:
        claim: the claim; None where fewer than two runs were given.
        base: the difference as the data are.
        repaired: the difference after all certain repairs together; None where nothing was repaired.
        readings: what each file that was given without an option was taken for.
        answers: in the order of `QUESTIONS`.
        conclusion: what they say together.
        settings: what was given, as `check.yaml` has it.
        test: the name of the test set.
        folder: where the files are.
        single: the score of the only system; None where there are several, or none.
        benchmark: the one of the gallery that the test set is; None where it is another one.
        names: of systems as tables have them, where theirs are long.
    """

    verdict_words: ClassVar[tuple[str, ...]] = (
        "FILES AT FAULT", "DOES NOT HOLD", "CANNOT TELL", "UNKNOWN", "HOLDS EXCEPT", "HOLDS SMALLER",
    )  # fmt: skip

    has_details: ClassVar[bool] = True
    unknown_code: ClassVar[int] = 3

    claim: Claim | None
    base: ClaimEstimate | None
    answers: tuple[ClaimAnswer, ...]
    conclusion: ClaimConclusion
    settings: Mapping[str, Any]
    test: str
    folder: Path | None = None
    repaired: ClaimEstimate | None = None
    readings: tuple[Reading, ...] = ()
    single: SystemScore | None = None
    benchmark: KnownBenchmark | None = None
    names: Mapping[str, str] = field(default_factory=dict)

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
        return next(answer for answer in self.answers if answer.question == name)

    def objections(self) -> Iterator[ClaimAnswer]:
        """The answers that do not leave the claim as it is."""
        return (answer for answer in self.answers if answer.objects or answer.level not in ("good", "unknown"))

    def sentence(self) -> str:
        """What was found, with its figures."""
        return self.conclusion.sentence

    @property
    def golden(self) -> bool:
        """Whether it is about a table of questions."""
        told = self.claim or self.single
        return told is not None and told.unit == "questions"

    @property
    def asked(self) -> str:
        """What the word answers."""
        if self.claim is None:
            name = self.single and self.single.system
            return f"Is {name} better than another system?" if name else f"Can {self.test} be believed?"
        return f"Is {self.claim.system} better than {self.claim.baseline}?"

    def json(self) -> dict[str, Any]:
        """Everything, as plain numbers and texts; docs/json.md says what stays."""
        from truerank.claims.questions import question

        claim, findings = None, list[dict[str, Any]]()
        for answer in self.objections():
            rule, count, of = question(answer.question).rule, 1, None
            if self.claim is not None and answer.repair is not None:
                count, of = len(answer.repair.touched(self.claim)), len(self.claim.answered)
            named = {"code": rule.code, "title": answer.found or rule.title, "severity": answer.severity}
            findings.append({**named, "count": count, "of": of})
        if self.claim is not None and self.base is not None:
            figures = "value, low, high, topics, scores"
            claim = {
                **picked(self.claim, "system, baseline, measure, comparisons, confidence, unit"),
                **picked(self.headline, figures),
                "given": picked(self.base, figures),
            }
        conclusion, sentence = self.conclusion, self.sentence()
        verdict = {"subject": self.asked, "word": conclusion.word, "level": LEVELS[conclusion.word]}
        unasked = [answer.question for answer in self.answers if not answer.given]
        return {
            "verdict": conclusion.word,
            "sentence": sentence,
            "verdicts": [{**verdict, "sentence": sentence}],
            "findings": findings,
            "claim": claim,
            "decided_by": question(conclusion.decided_by).rule.code if conclusion.decided_by else "",
            "not_checked": [question(name).rule.code for name in unasked],
            "facts": {one.question: dict(one.facts) for one in self.answers if one.facts},
            "single": None if self.single is None else self.single._asdict(),
            **picked(self, "conclusion, test, answers, settings, files=readings"),
            **({} if self.benchmark is None else {"gallery": [self.benchmark.json()]}),
        }
