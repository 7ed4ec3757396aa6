"""Rules and findings: what an audit can find, each kind under a code that stays, and what it found where.

The rules of an audit are in the file `rules.toml` beside it. Pages, SARIF, baselines and cards take them from there.
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from importlib import resources
from typing import Annotated, Any, Final, Literal, TypeVar

from truerank.errors import OptionError
from truerank.options import Flag, Options

#: "fault": the data alone show that something is wrong. "doubt": somebody has to look. "note": a property to know of.
Severity = Literal["fault", "doubt", "note"]
SEVERITIES: Final[tuple[Severity, ...]] = ("fault", "doubt", "note")

#: The packages that have rules, in the order of the documentation.
PACKAGES: Final = (
    "truerank.claims",
    *(
        f"truerank.audits.{name}"
        for name in (
            "leakage",
            "leakage.documents",
            "transfer",
            "survivorship",
            "collection",
            "assessors",
            "track",
            "leaderboard",
        )
    ),
)


@dataclass(frozen=True)
class Rule:
    """One kind of finding.

    Attributes:
        name: small letters and hyphens ("repeated-judgment"), as files name it.
        code: capital letters and two digits ("QREL04"); it keeps its meaning from version to version.
        severity: how severe its findings are.
        effect: what it does to scores, or what it means, in sentences.
    """

    name: str
    code: str
    title: str
    severity: Severity
    effect: str
    remedy: str


@dataclass(frozen=True)
class Finding:
    """What was found in one place.

    Attributes:
        rule: the kind of finding.
        evidence: what was found there, one sentence.
        source: the source as the user named it: a path, `irds:ID`, `hf:ORG/NAME`.
        line: its line, from 1; 0 where it is not known.
        key: distinguishes this finding from others of its rule, also when lines move.
        severity: where it is not that of the rule.
        accepted: why it is accepted; empty where it is not.
    """

    rule: Rule
    evidence: str
    source: str
    line: int = 0
    key: str = ""
    severity: Severity | None = None
    accepted: str = ""

    @property
    def severe(self) -> Severity:
        """How severe it is."""
        return self.severity or self.rule.severity


@dataclass(frozen=True)
class RuleChoice(Options):
    """Which findings count.

    Attributes:
        select: codes of what is looked for, or how they begin, such as QREL,DOCS03; by default all.
        ignore: codes of what is left out, or how they begin.
        accept: a finding that you know and accept, as CODE=REASON; repeat the option for several. The page shows the
            finding with its reason, and the verdict does not count it.
    """

    select: Annotated[tuple[str, ...], Flag(metavar="CODE", reads=list[str], commas=True)] = ()
    ignore: Annotated[tuple[str, ...], Flag(metavar="CODE", reads=list[str], commas=True)] = ()
    accept: Annotated[tuple[str, ...], Flag(metavar="CODE=REASON", reads=list[str])] = ()

    def takes(self, rule: Rule) -> bool:
        """Whether a rule is selected and not ignored."""
        chosen = not self.select or rule.code.startswith(_codes(self.select))
        return chosen and not rule.code.startswith(_codes(self.ignore) or "-")

    def names(self, rule: Rule) -> bool:
        """Whether a rule is selected by its whole code, and not ignored."""
        return rule.code in _codes(self.select) and self.takes(rule)

    def reason(self, rule: Rule) -> str:
        """Why findings of a rule are accepted; empty where they are not."""
        parts = (text.partition("=")[::2] for text in self.accept)
        return next((reason.strip() for code, reason in parts if code.strip().upper() == rule.code), "")

    def check(self, rules: Mapping[str, Rule]) -> None:
        """Refuses codes that no rule has, and acceptances without a reason.

        Raises:
            OptionError: with the command that lists the codes.
        """
        known = {rule.code for rule in rules.values()}
        accepted = [text.partition("=")[::2] for text in self.accept]
        codes = [("select", code) for code in _codes(self.select)] + [("ignore", code) for code in _codes(self.ignore)]
        for option, code in (*codes, *(("accept", code.strip().upper()) for code, _ in accepted)):
            if not any(one == code if option == "accept" else one.startswith(code) for one in known):
                raise OptionError(option, f"no rule of this audit has the code {code}", "'truerank rules' lists all")
        for code, reason in accepted:
            if not reason.strip():
                raise OptionError("accept", f"no reason for {code.strip()}", f"write {code.strip()}=REASON")


def _codes(texts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(text.strip().upper() for text in texts)


R = TypeVar("R", bound=Rule)


def rules_of(package: str, kind: type[R]) -> Mapping[str, R]:
    """The rules of an audit by name, in the order of its file; `kind` is `Rule`, or has fields of the audit's own."""
    wanted = {field.name for field in fields(kind)}
    return {
        name: kind(name, **{key: value for key, value in about.items() if key in wanted})
        for name, about in _tables(package).items()
    }


@functools.cache
def _tables(package: str) -> Mapping[str, Mapping[str, Any]]:
    text = resources.files(package).joinpath("rules.toml").read_text(encoding="utf-8")
    tables = tomllib.loads(text)
    return {
        name: {key: tuple(value) if isinstance(value, list) else value for key, value in about.items()}
        for name, about in tables.items()
    }
