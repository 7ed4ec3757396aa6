"""The commands `rule` and `rules`: what the audits can find, by code."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final

from truerank.core.plain import plain
from truerank.core.result import Result, Summary, summarises
from truerank.core.rules import PACKAGES, Rule, rules_of
from truerank.core.tables import Table
from truerank.core.views import heads
from truerank.errors import OptionError
from truerank.options import Flag, command

__all__ = ["AuditRule", "RuleList", "rule", "rules"]

#: The commands that find what the rules of a package say.
_COMMANDS: Final[Mapping[str, str]] = {
    "claims": "check", "leakage": "leakage audit", "documents": "leakage audit", "transfer": "transfer scan",
    "survivorship": "survivorship answerable", "collection": "collection audit", "assessors": "judge audit",
    "track": "track validate", "leaderboard": "leaderboard",
}  # fmt: skip


@dataclass(frozen=True)
class AuditRule:
    """A rule, and the command that looks for it."""

    rule: Rule
    command: str


@dataclass(frozen=True, eq=False, repr=False)
class RuleList(Result, shown_in="truerank.cli.rules"):
    """Rules.

    Attributes:
        rules: in the order of the documentation.
        whole: whether each is shown with all that is said of it.
    """

    rules: tuple[AuditRule, ...]
    whole: bool = False


def _every() -> Iterator[AuditRule]:
    for package in PACKAGES:
        for rule in rules_of(package, Rule).values():
            yield AuditRule(rule, _COMMANDS[package.rpartition(".")[2]])


@command
def rule(code: Annotated[str, Flag(metavar="CODE", positional=True)]) -> RuleList:
    """Explains a rule: what was found, what it does to scores, and how to fix it.

    Args:
        code: as pages, summaries and findings.sarif have it, such as QREL04; small letters and the name of the rule are
            fine, too.

    Returns:
        The rule.

    Raises:
        OptionError: there is no such rule; the nearest codes are named.

    Examples:

        truerank rule QREL04
    """
    every = tuple(_every())
    found = tuple(one for one in every if code.lower() in (one.rule.code.lower(), one.rule.name))
    if not found:
        near = difflib.get_close_matches(code.upper(), [one.rule.code for one in every], cutoff=0.5)
        remedy = f"the nearest are {', '.join(near)}" if near else "'truerank rules' lists all"
        raise OptionError("code", f"there is no rule '{code}'", remedy)
    return RuleList(found, whole=True)


@command
def rules(
    select: Annotated[tuple[str, ...], Flag(metavar="PREFIX", positional=True, reads=list[str])] = (),
) -> RuleList:
    """Lists the rules: what audits can find.

    Args:
        select: codes, or how they begin: QREL for the faults of judgments; by default all.

    Returns:
        The rules.

    Raises:
        OptionError: no code begins so.

    Examples:

        truerank rules QREL DOCS

        truerank rules --format markdown
    """
    every = tuple(_every())
    wanted = tuple(prefix.upper() for prefix in ([select] if isinstance(select, str) else select))
    for prefix in wanted:
        if not any(one.rule.code.startswith(prefix) for one in every):
            known = ", ".join(dict.fromkeys(one.rule.code.rstrip("0123456789") for one in every))
            raise OptionError("select", f"no code begins with '{prefix}'", f"codes begin with {known}")
    return RuleList(tuple(one for one in every if not wanted or one.rule.code.startswith(wanted)))


@summarises(RuleList)
def _summary(result: RuleList) -> Summary:
    shown: list[dict[str, Any]] = [{**plain(one.rule), "command": one.command} for one in result.rules]
    if result.whole:
        text = "\n\n".join(_text(one) for one in result.rules)
        return Summary((text,), shown[0])
    table = Table(
        f"{len(result.rules)} rules; 'truerank rule CODE' says more of one.",
        heads("code, severity, what, found by=command"),
        tuple((one.rule.code, one.rule.severity, one.rule.title, f"truerank {one.command}") for one in result.rules),
    )
    return Summary((table,), {"rules": shown})


def _text(one: AuditRule) -> str:
    rule = one.rule
    return (
        f"{rule.code} {rule.name} ({rule.severity}): {rule.title}.\n\n"
        f"What it does to scores: {rule.effect}\n"
        f"What mends it: {rule.remedy}\n"
        f"Found by: truerank {one.command}"
    )
