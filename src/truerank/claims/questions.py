"""The questions of a check in the order of the page: one value each, from which page, terminal, card and plan come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from truerank.claims.options import ClaimSources
from truerank.core.rules import Rule, rules_of
from truerank.errors import OptionError
from truerank.text.printable import listed

#: Without them there is no conclusion.
_ALWAYS: Final = ("files", "chance")


@dataclass(frozen=True)
class Question:
    """One question.

    Attributes:
        name: by which `Check.answer` finds it.
        short: its heading in the plot, and among the checks.
        subject: how a sentence names what was not checked.
        needs: inputs without which it has no answer; of those joined by "|" one is enough.
        role: the input beside which a finding is shown.
        asked_by: the input that asks it; without that the question is not named.
    """

    name: str
    short: str
    subject: str
    needs: tuple[str, ...]
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
        return listed(named)


#: By question, in their order, what would have to be given: "" where it is answerable, None where it was left out.
Plan = Mapping[str, str | None]

_CLAIM: Final = ("run", "qrels")

#: In the order of the page. Those before `chance` may repair the data; the others are asked of the repaired data.
QUESTIONS: Final = (
    Question("files", "Files", "the files", _CLAIM, role="run"),
    Question("chance", "Chance", "chance", _CLAIM),
    Question("leakage", "Training data", "training data", ("test", "train"), role="train"),
    Question("collection", "Test set", "the test set", ("qrels|docs",), role="docs"),
    Question(
        "versions", "Changed documents", "an earlier version of the documents", ("qrels", "test", "docs", "previous"),
        role="docs",
    ),
    Question("unjudged", "Unjudged documents", "unjudged documents", _CLAIM),
    Question("pools", "Fair judging", "fair judging", _CLAIM),
    Question(
        "models", "A model's judgments", "a model's judgments", ("run", "qrels", "model_judgments"),
        role="model_judgments",
    ),
    Question(
        "labels", "Judged again", "judgments made again", ("run", "qrels", "judged_again"), asked_by="judged_again"
    ),
    Question(
        "choice", "Settings tried", "how many settings were tried", ("run", "qrels", "tried"), role="run",
        asked_by="tried",
    ),
    Question(
        "repeats", "Repeated runs", "repeated runs", ("run", "qrels", "repeats"),
        role="run", asked_by="repeats",
    ),
    Question("policies", "Other measures", "other measures", _CLAIM),
)  # fmt: skip
NAMES: Final = tuple(question.name for question in QUESTIONS)


def question(name: str) -> Question:
    try:
        return QUESTIONS[NAMES.index(name)]
    except ValueError:
        raise KeyError(f"there is no question '{name}'; the questions are {', '.join(NAMES)}") from None


def flags(text: str) -> str:
    """Names of options in backquotes as flags; commands stay as they are."""
    parts = text.split("`")
    for at in range(1, len(parts), 2):
        name = parts[at]
        parts[at] = f"--{name.replace('_', '-')}" if name.isidentifier() else f"'truerank {name}'"
    return "".join(parts)


def planned(sources: ClaimSources, ignore: Sequence[str] = (), select: Sequence[str] = ()) -> Plan:
    """What can be answered with what was given."""
    codes, chosen = (tuple(map(_code, given)) for given in (ignore, select))
    for option, code in (*(("ignore", code) for code in codes), *(("select", code) for code in chosen)):
        named = [each for each in QUESTIONS if each.rule.code.startswith(code)]
        if not named:
            raise OptionError(
                option, f"no question has the code {code}", f"there are {', '.join(NAMES)} (or their codes)"
            )
        if option == "ignore" and (needed := [each.rule.code for each in named if each.name in _ALWAYS]):
            raise OptionError("ignore", f"{needed[0]} cannot be left out", "the word of the conclusion rests on it")
    plan = dict[str, str | None]()
    for each in QUESTIONS:
        code = each.rule.code
        if not each.asked_by or sources.has(each.asked_by):
            left = (chosen and each.name not in _ALWAYS and not code.startswith(chosen)) or code.startswith(codes)
            plan[each.name] = None if left else each.lacking(sources)
    return plan


def _code(given: str) -> str:
    """The code, or its beginning, that a code or a name of a question stands for."""
    return question(given).rule.code if given in NAMES else given.upper()
