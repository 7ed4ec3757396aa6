"""Findings as SARIF 2.1.0, which code hosts show beside the lines of a change.

Source: OASIS, Static Analysis Results Interchange Format (SARIF) Version 2.1.0, 2020.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any, Final
from urllib.parse import quote

from truerank.core.rules import SEVERITIES, Finding, Rule, Severity
from truerank.version import __version__

_LEVELS: Final[Mapping[Severity, str]] = {"fault": "error", "doubt": "warning", "note": "note"}

#: GitHub takes 25,000 results of a run and shows 5,000.
MOST_FINDINGS: Final = 5_000
_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_LONGEST: Final = 1_000
_PLACEHOLDER: Final = re.compile(r"\{(\d+)\}")


def sarif(category: str, rules: Sequence[Rule], findings: Iterable[Finding], *, unlisted: int = 0) -> str:
    """The log of one run as JSON text.

    Severe findings come first; beyond `MOST_FINDINGS` they are counted and left out, and a notification says so.
    """
    places = {rule.code: place for place, rule in enumerate(rules)}
    every = sorted(findings, key=lambda finding: (SEVERITIES.index(finding.severe), places[finding.rule.code]))
    invocation: dict[str, Any] = {"executionSuccessful": True}
    if left_out := unlisted + max(len(every) - MOST_FINDINGS, 0):
        text = f"{left_out:,d} of {unlisted + len(every):,d} findings are left out; the report has all of them."
        invocation["toolExecutionNotifications"] = [{"level": "warning", "message": {"text": text}}]
    run = {
        "tool": {"driver": {"name": "truerank", "version": __version__, "rules": [_rule(rule) for rule in rules]}},
        "automationDetails": {"id": f"{category.replace('/', ' ')}/"},
        "invocations": [invocation],
        "columnKind": "unicodeCodePoints",
        "results": [_result(finding, places[finding.rule.code]) for finding in every[:MOST_FINDINGS]],
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1, ensure_ascii=False) + "\n"


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.code,
        "name": "".join(part.capitalize() for part in rule.name.split("-")),
        "shortDescription": {"text": _sentence(rule.title)},
        "fullDescription": {"text": _sentence(rule.effect)},
        "help": {"text": _sentence(rule.remedy)},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
    }


def _result(finding: Finding, place: int) -> dict[str, Any]:
    physical: dict[str, Any] = {"artifactLocation": {"uri": _uri(finding.source)}}
    # Code hosts want a line: the first stands for the whole file.
    physical["region"] = {"startLine": max(finding.line, 1)}
    # The address and not the source: a checkout elsewhere has the same findings.
    key = f"{finding.rule.name}\0{_uri(finding.source)}\0{finding.key}"
    digest = hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()
    accepted = [{"kind": "external", "status": "accepted", "justification": _sentence(finding.accepted)}]
    return {
        "ruleId": finding.rule.code,
        "ruleIndex": place,
        "level": _LEVELS[finding.severe],
        "message": {"text": _sentence(finding.evidence)},
        "locations": [{"physicalLocation": physical}],
        "partialFingerprints": {"truerank/v1": digest[:32]},
        **({"suppressions": accepted} if finding.accepted else {}),
    }


def _uri(source: str) -> str:
    """A source as a URI reference; a path in the working folder is relative to it, which is the checkout in CI."""
    scheme = source.partition(":")[0]
    if scheme in ("irds", "hf"):
        return f"{scheme}:{quote(source[len(scheme) + 1 :], safe='/@')}"
    path = Path(source)
    if path.is_absolute():
        if not path.is_relative_to(Path.cwd()):
            return path.as_uri()
        path = path.relative_to(Path.cwd())
    # A colon in the first part of a relative reference would end a scheme.
    return quote(PurePath(path).as_posix(), safe="/")


def _sentence(text: str) -> str:
    """One line that ends as a sentence, without what SARIF reads as a link or a placeholder (3.11.5, 3.11.6)."""
    line = " ".join(text.encode("utf-8", "replace").decode().split()).replace("](", "] (")
    line = _PLACEHOLDER.sub(r"{ \1 }", line)
    line = line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"
    return line if line.endswith((".", "…", "?", "!")) else f"{line}."
