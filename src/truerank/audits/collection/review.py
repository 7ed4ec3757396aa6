"""What a collection audit found, for the review of a change: SARIF, with the lines of the files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from truerank.audits.collection.catalogue import Kind, Severity, kinds
from truerank.audits.collection.results import CollectionAudit
from truerank.records import Input, Qrel
from truerank.reports.sarif import Level, SarifFinding, SarifRule, sarif
from truerank.sources.qrels import qrel_lines

__all__ = ["review"]

_LEVELS: Final[Mapping[Severity, Level]] = {"fault": "error", "doubt": "warning", "note": "note"}
#: Judgments that are read once more for their lines; a larger file is no part of a change.
_LARGEST: Final = 64 << 20
#: The input in which the instances of a part lie, the likeliest first.
_INPUTS: Final[Mapping[str, tuple[str, ...]]] = {
    "judgments": ("qrels", "topics", "docs"),
    "documents": ("docs", "qrels", "topics"),
    "topics": ("topics", "qrels", "docs"),
    "together": ("qrels", "topics", "docs"),
    "versions": ("qrels", "previous_qrels"),
}


def review(result: CollectionAudit, inputs: Sequence[Input]) -> str:
    """The audit as SARIF: faults are errors, doubts warnings; a note is said once for each kind.

    Args:
        result: the audit.
        inputs: what it read, as in its manifest.
    """
    roles: dict[str, str] = {}
    for one in inputs:
        roles.setdefault(one.role, one.source or one.name)
    rules = [
        SarifRule(kind.name, kind.title, kind.effect, kind.remedy, _LEVELS[kind.severity]) for kind in kinds().values()
    ]
    audited = [one.source or one.name for one in inputs if one.role in ("qrels", "docs", "topics")]
    return sarif(f"collection audit of {', '.join(audited)}", rules, _findings(result, roles))


def _judged_lines(source: str | None) -> dict[tuple[str, str], int]:
    """The last line of each judged pair, and the first of each topic (without a document), of a file of judgments."""
    path = Path((source or "").partition("?")[0])
    found: dict[tuple[str, str], int] = {}
    if not path.is_file() or path.stat().st_size > _LARGEST:
        return found
    for line in qrel_lines(str(source)):
        if isinstance(line.said, Qrel):
            found.setdefault((line.said.topic_id, ""), line.number)
            found[line.said.topic_id, line.said.doc_id] = line.number
    return found


def _findings(result: CollectionAudit, roles: Mapping[str, str]) -> Iterator[SarifFinding]:
    lines = _judged_lines(roles.get("qrels")) if any(one.kind.severity != "note" for one in result.findings) else {}
    for finding in result.findings:
        kind = finding.kind
        source = next((roles[role] for role in _INPUTS[kind.part] if role in roles), kind.part)
        if kind.severity == "note":
            yield SarifFinding(kind.name, f"{kind.title}: {finding.counted}", source, 0, kind.name)
            continue
        for row in result.rows(kind.name).iter_rows(named=True):
            key = "\0".join(str(row[name]) for name in ("topic_id", "doc_id", "other", "detail"))
            known = lines.get((row["topic_id"], row["doc_id"]), 0) if source == roles.get("qrels") else 0
            yield SarifFinding(kind.name, _message(kind, row), source, row["line"] or known, key)


def _message(kind: Kind, row: Mapping[str, Any]) -> str:
    """`judged twice with different grades: topic 1, document a (grades 1 and 0)`."""
    named = (("topic", "topic_id"), ("document", "doc_id"), ("and", "other"))
    place = ", ".join(f"{word} {row[name]}" for word, name in named if row[name])
    detail = f" ({row['detail']})" if row["detail"] else ""
    return f"{kind.title}: {place}{detail}" if place else f"{kind.title}{detail}"
