"""The questions of a check in the order of the page: one value each, from which page, terminal, card and plan come."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from truerank.claims.claim import Claim
from truerank.claims.options import ClaimSources
from truerank.claims.results import NOT_GIVEN, ClaimAnswer
from truerank.core.rules import Rule, rules_of
from truerank.errors import OptionError
from truerank.sources import grammar

#: Without them there is no conclusion.
_ALWAYS: Final = ("files", "chance")
#: Bytes of compressed and of plain text that a second takes, measured on two processors with the small encoder.
_ENCODED: Final = 12_000.0
_COMPARED: Final = 1_500_000.0
_SCORED: Final = 3_000_000.0
#: Bytes of documents, of all runs and of the two of the claim that a second takes, as benchmarks/check_scale.py has it.
_STREAMED: Final = 20_000_000.0
_RUNS_COMPARED: Final = 15_000_000.0
_RESCORED: Final = 30_000_000.0
_CONVENED: Final = 10_000_000.0
#: How much text a compressed byte holds.
_COMPRESSION: Final = 3.0
_START: Final = 2.0
#: Seconds of one simulated judging of fifty topics, of some thousand documents, without one team.
_TRIAL: Final = 1.0


@dataclass(frozen=True)
class Question:
    """One question.

    Attributes:
        name: by which `Check.answer` finds it.
        short: its heading in the plot, and among the checks.
        subject: how a sentence names what was not checked.
        needs: inputs without which it has no answer; of those joined by "|" one is enough.
        what: what is run, in a few words.
        seconds: roughly how long that takes on two processors, for the sources and the number of trials.
        role: the input beside which a finding is shown.
        asked_by: the input that asks it; without that the question is not named.
    """

    name: str
    short: str
    subject: str
    needs: tuple[str, ...]
    what: str
    seconds: Callable[[ClaimSources, int], float]
    role: str = "qrels"
    asked_by: str = ""

    @property
    def rule(self) -> Rule:
        """The kind of finding that an objection is."""
        return rules_of("truerank.claims", Rule)[self.name]

    @property
    def text(self) -> str:
        """The question as the page asks it."""
        return self.rule.title

    def lacking(self, sources: ClaimSources) -> str:
        """What would have to be given, as a sentence names it; empty where nothing lacks."""
        # Judgments of a model as the truth limit the claim, whatever else was given.
        by_model = self.name == "models" and sources.judged_by == "model"
        needs = [need for need in self.needs if not (by_model and need == "model_judgments")]
        lacking = [need for need in needs if not any(map(sources.has, need.split("|")))]
        named = [" or ".join(f"`{name}`" for name in need.split("|")) for need in lacking]
        if "run" in self.needs and sources.has("run") and not isinstance(sources.run, str) and len(sources.run) < 2:
            named.append("a second `run`")
        return " and ".join(named)


@dataclass(frozen=True)
class PlannedQuestion:
    """One question before anything is run.

    Attributes:
        name: of the question.
        answerable: whether what was given answers it.
        needs: what would have to be given; empty where it is answerable, or was left out as asked.
        what: what is run, in a few words.
        seconds: roughly how long that takes on two processors.
    """

    name: str
    answerable: bool
    needs: str = ""
    what: str = ""
    seconds: float = 0.0


_CLAIM: Final = ("run", "qrels")

#: In the order of the page. Those before `chance` may repair the data; the others are asked of the repaired data.
QUESTIONS: Final = (
    Question(
        "files", "Files", "the files", _CLAIM,
        "ids, ranks, scores and topics compared",
        lambda sources, _: 0.5 + _size([sources.docs]) / _STREAMED + _runs(sources) / _RUNS_COMPARED,
        role="run",
    ),
    Question(
        "chance", "Chance", "chance", _CLAIM, "paired t-test",
        lambda *_: 0.1,
    ),
    Question(
        "leakage", "Training data", "training data", ("test", "train"),
        "leakage audit; what leaks is removed, against a placebo",
        lambda sources, _: _START + _size(sources.train) / _ENCODED, role="train",
    ),
    Question(
        "collection", "Test set", "the test set",
        ("qrels|docs",), "collection audit; judgments repaired",
        lambda sources, _: _START + _size([sources.docs]) / _COMPARED, role="docs",
    ),
    Question(
        "versions", "Changed documents", "an earlier version of the documents",
        ("qrels", "test", "docs", "previous"), "scan of both versions with BM25",
        lambda sources, _: _START + _size([sources.docs, sources.previous]) / _SCORED, role="docs",
    ),
    Question(
        "unjudged", "Unjudged documents", "unjudged documents", _CLAIM,
        "rates at which unjudged documents are relevant", lambda sources, _: 2.0 + _pair(sources) / _RESCORED,
    ),
    Question(
        "pools", "Depth of judging", "the depth of judging", _CLAIM, "where runs were judged; teams left out",
        lambda sources, trials: 0.2 + _simulated(sources, trials),
    ),
    Question(
        "models", "A model's judgments", "a model's judgments",
        ("run", "qrels", "model_judgments"), "audit of the model's judgments", lambda *_: 3.0, role="model_judgments",
    ),
    Question(
        "labels", "Wrong judgments", "wrong judgments", ("run", "qrels", "judged_again"),
        "the difference by a sample that was judged again", lambda *_: 1.0, asked_by="judged_again",
    ),
    Question(
        "choice", "Best of several tries", "the best of several tries", ("run", "qrels", "tried"),
        "the best of all that were tried, under random signs", lambda *_: 2.0, role="run", asked_by="tried",
    ),
    Question(
        "repeats", "Other runs of the same system", "other runs of the same system", ("run", "qrels", "repeats"),
        "the difference beside the noise between repetitions", lambda *_: 1.0, role="run", asked_by="repeats",
    ),
    Question(
        "policies", "Other measures", "other measures", _CLAIM, "every measure and order of ties",
        lambda sources, _: 1.0 + _pair(sources) / _CONVENED,
    ),
)  # fmt: skip
NAMES: Final = tuple(question.name for question in QUESTIONS)


def question(name: str) -> Question:
    try:
        return QUESTIONS[NAMES.index(name)]
    except ValueError:
        raise KeyError(f"there is no question '{name}'; the questions are {', '.join(NAMES)}") from None


#: What threatens a claim most, where nobody looked.
_THREATS: Final = ("leakage", "collection", "versions", "models")


def unchecked(answers: Iterable[ClaimAnswer], claim: Claim | None) -> tuple[str, ...]:
    """What nobody looked at, the largest threat first, each with the option that gives it.

    Args:
        answers: to all questions.
        claim: of scores alone nothing can be given that says how they were made.
    """
    if claim is not None and not claim.runs:
        return ("how the scores were made",)
    found = dict[str, str]()
    for answer in answers:
        if not answer.given:
            needs = answer.settles.removeprefix("Give ").removesuffix(".") if answer.evidence == NOT_GIVEN else ""
            found[answer.question] = f"{question(answer.question).subject} ({flags(needs) or '--ignore'})"
        elif answer.facts.get("without_documents"):
            found[answer.question] = "document texts (--docs)"
    order = (*_THREATS, *found)
    return tuple(found[name] for name in dict.fromkeys(order) if name in found)


def flags(text: str) -> str:
    """Names of options in backquotes as flags; commands stay as they are."""
    parts = text.split("`")
    for at in range(1, len(parts), 2):
        name = parts[at]
        parts[at] = f"--{name.replace('_', '-')}" if name.isidentifier() else f"'truerank {name}'"
    return "".join(parts)


def planned(
    sources: ClaimSources, trials: int = 0, ignore: Sequence[str] = (), select: Sequence[str] = ()
) -> tuple[PlannedQuestion, ...]:
    """The questions in their order, each with what is run or what would have to be given."""
    codes, chosen = (tuple(map(_code, given)) for given in (ignore, select))
    for option, code in (*(("ignore", code) for code in codes), *(("select", code) for code in chosen)):
        named = [each for each in QUESTIONS if each.rule.code.startswith(code)]
        if not named:
            raise OptionError(
                option, f"no question has the code {code}", f"there are {', '.join(NAMES)} (or their codes)"
            )
        if option == "select":
            continue
        if needed := [each.rule.code for each in named if each.name in _ALWAYS]:
            raise OptionError("ignore", f"{needed[0]} cannot be left out", "the word of the conclusion rests on it")
    plan = []
    for each in QUESTIONS:
        if each.asked_by and not sources.has(each.asked_by):
            continue
        left = chosen and each.name not in _ALWAYS and not each.rule.code.startswith(chosen)
        if left or (codes and each.rule.code.startswith(codes)):
            plan.append(PlannedQuestion(each.name, False))
            continue
        lacking = each.lacking(sources)
        what = each.what
        if each.name == "pools" and _simulated(sources, trials):
            what += f"; {trials} simulated judgings"
        seconds = 0.0 if lacking else round(each.seconds(sources, trials), 1)
        plan.append(PlannedQuestion(each.name, not lacking, lacking, "" if lacking else what, seconds))
    return tuple(plan)


def _code(given: str) -> str:
    """The code, or its beginning, that a code or a name of a question stands for."""
    return question(given).rule.code if given in NAMES else given.upper()


def _simulated(sources: ClaimSources, trials: int) -> float:
    """Seconds of simulated judgings of all topics with each team left out; a run is taken for a team."""
    if not trials or not sources.has("docs") or not sources.has("test"):
        return 0.0
    runs = 1 if isinstance(sources.run, str) else len(sources.run)
    return _START + (trials + 1) * _TRIAL * (runs + 1)


def _runs(sources: ClaimSources) -> float:
    """Characters of the runs that lie in files."""
    given = [sources.run] if isinstance(sources.run, str | Path) else sources.run
    files = given.values() if isinstance(given, Mapping) else given if isinstance(given, list | tuple) else ()
    return _size(str(one) for one in files if isinstance(one, str | Path))


def _pair(sources: ClaimSources) -> float:
    """Characters of two runs of the mean size."""
    several = isinstance(sources.run, list | tuple | Mapping)
    return _runs(sources) * (min(1.0, 2 / max(1, len(sources.run))) if several else 1.0)


def _size(sources: Iterable[str | None]) -> float:
    """Characters of text in files; 0 for what lies elsewhere, whose size nobody knows before it is read."""
    total = 0.0
    for each in sources:
        if each is None or (spec := grammar.parse(each)).scheme != "file":
            continue
        path = spec.path / "corpus.jsonl" if spec.path.is_dir() else Path(spec.location)
        if path.is_file():
            packed = path.suffix in (".gz", ".zst", ".bz2", ".xz")
            total += path.stat().st_size * (_COMPRESSION if packed else 1.0)
    return total
