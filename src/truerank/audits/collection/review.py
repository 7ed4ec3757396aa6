"""What a collection audit found, for the review of a change: SARIF, with the lines of the files."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from truerank.audits.collection.catalogue import Kind, Severity, kinds
from truerank.audits.collection.results import CollectionAudit
from truerank.records import Input, Qrel
from truerank.reports.sarif import MOST_FINDINGS, Level, SarifFinding, SarifRule, sarif
from truerank.sources.grammar import parse
from truerank.sources.qrels import qrel_lines

__all__ = ["review"]

_LEVELS: Final[Mapping[Severity, Level]] = {"fault": "error", "doubt": "warning", "note": "note"}
#: Judgments that are read once more for their lines; a larger file is no part of a change.
_LARGEST: Final = 16 << 20
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
    listed = [len(result.rows(one.kind.name)) for one in result.findings if one.kind.severity != "note"]
    unlisted = sum(max(rows - MOST_FINDINGS, 0) for rows in listed)
    audited = [one.source or one.name for one in inputs if one.role in ("qrels", "docs", "topics")]
    return sarif(f"collection audit of {', '.join(audited)}", rules, _findings(result, roles), unlisted=unlisted)


def _judged_lines(source: str | None, wanted: Collection[tuple[str, str]]) -> dict[tuple[str, str], int]:
    """The last line of each wanted pair, and the first of each topic (without a document), of a file of judgments."""
    found: dict[tuple[str, str], int] = {}
    spec = parse(source) if source else None
    if spec is None or spec.scheme != "file" or not spec.path.is_file() or spec.path.stat().st_size > _LARGEST:
        return found
    for line in qrel_lines(spec):
        if isinstance(line.said, Qrel):
            topic, document = line.said.topic_id, line.said.doc_id
            if (topic, "") in wanted:
                found.setdefault((topic, ""), line.number)
            if (topic, document) in wanted:
                found[topic, document] = line.number
    return found


def _findings(result: CollectionAudit, roles: Mapping[str, str]) -> Iterator[SarifFinding]:
    shown = {
        one.kind.name: result.rows(one.kind.name).head(MOST_FINDINGS)
        for one in result.findings
        if one.kind.severity != "note"
    }
    wanted = {pair for rows in shown.values() for pair in rows.select("topic_id", "doc_id").iter_rows()}
    lines = _judged_lines(roles.get("qrels"), wanted) if wanted else {}
    for finding in result.findings:
        kind = finding.kind
        source = next((roles[role] for role in _INPUTS[kind.part] if role in roles), kind.part)
        if kind.severity == "note":
            yield SarifFinding(kind.name, f"{kind.title}: {finding.counted}", source, 0, kind.name)
            continue
        for row in shown[kind.name].iter_rows(named=True):
            key = "\0".join(str(row[name]) for name in ("topic_id", "doc_id", "other", "detail"))
            known = lines.get((row["topic_id"], row["doc_id"]), 0) if source == roles.get("qrels") else 0
            yield SarifFinding(kind.name, _message(kind, row), source, row["line"] or known, key)


def _message(kind: Kind, row: Mapping[str, Any]) -> str:
    """`judged twice with different grades: topic 1, document a (grades 1 and 0)`."""
    named = (("topic", "topic_id"), ("document", "doc_id"), ("and", "other"))
    place = ", ".join(f"{word} {row[name]}" for word, name in named if row[name])
    detail = f" ({row['detail']})" if row["detail"] else ""
    return f"{kind.title}: {place}{detail}" if place else f"{kind.title}{detail}"
