"""How the results of the collection commands are shown and written."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from truerank.audits.collection.card import CollectionCard
from truerank.audits.collection.catalogue import Kind, Severity, kinds
from truerank.audits.collection.cleaning import CollectionCleaning, clean_lines
from truerank.audits.collection.page import effect_tables, lead, sections, shown, title, verdicts_shown
from truerank.audits.collection.results import CollectionAudit
from truerank.measures.equivalence import COMBINE
from truerank.records import Input, Qrel
from truerank.reports.report import Report
from truerank.reports.results import Format, Summary, page_note, place_note, reports, summarises, writes
from truerank.reports.sarif import MOST_FINDINGS, SarifFinding, SarifLevel, SarifRule, sarif
from truerank.reports.tables import Column, Table, escape_markdown
from truerank.sources.grammar import parse
from truerank.sources.qrels import qrel_lines
from truerank.work.publishing import write_pictures, write_tables
from truerank.work.runs import Run

_WIDTH: Final = 100
#: Turns what would break a line of TSV into blanks.
_BREAKS: Final = str.maketrans("\t\r\n", "   ")


@summarises(CollectionAudit)
def _summary(result: CollectionAudit) -> Summary:
    verdict = shown(result.verdicts[0])
    # A few faults fail what faults fail.
    failing = replace(verdict, word="FAULTY") if verdict.word == "FAULTY IN PART" else verdict
    return Summary(tuple(_parts(result)), result.json(), (failing,), page_note(result.folder), width=_WIDTH)


@writes(CollectionAudit)
def _write(result: CollectionAudit, job: Run) -> None:
    job.parquet("findings.parquet", result.instances)
    job.parquet("pairs.parquet", result.pairs)
    job.parquet("groups.parquet", result.groups)
    if result.items:
        job.text("items.jsonl", "".join(result.items))
    report = _report(result)
    write_tables(job, report.tables)
    drawn = write_pictures(job, report.pictures())
    job.text("findings.sarif", review(result, job.inputs))
    job.json("summary.json", result.json())
    page = report.page(lambda picture: drawn[picture.name], job.provenance(), job.names())
    job.text("report.html", page.html())


def findings_table(result: CollectionAudit) -> Table:
    """The findings with their counts and their first example."""
    rows = [
        (one.kind.title, one.kind.part, one.kind.severity, one.count, one.of, _example(one.examples))
        for one in result.findings
    ]
    return Table(
        "What was found." if rows else "Nothing was found.",
        (
            Column("Finding"),
            Column("Part"),
            Column("Severity"),
            *Column.numbers(",d", "Count", "Of"),
            Column("Example"),
        ),
        tuple(rows),
    )


def _example(examples: tuple[object, ...]) -> str:
    if not examples:
        return ""
    first: dict[str, object] = dict(examples[0])  # type: ignore[call-overload]
    ids = [str(first[name]) for name in ("topic_id", "doc_id", "other") if name in first]
    place = [f"line {first['line']}"] if "line" in first else []
    return ": ".join(part for part in (" · ".join([*place, *ids]), str(first.get("detail", ""))) if part)


def _parts(result: CollectionAudit) -> Iterator[Table | str]:
    for verdict in result.verdicts:
        sentences = " ".join(part for part in (verdict.reason, verdict.evidence, verdict.settle) if part)
        lines = textwrap.wrap(sentences, _WIDTH - 4)
        yield "\n".join([f"{verdict.word}: {verdict.part}", *(f"    {line}" for line in lines)])
    yield findings_table(result)
    for name, heading in (("effect", "cleaning"), ("versions", "the new judgments")):
        if effect := result.facts.get(name):
            yield f"What {heading} would do to the runs:" if name == "effect" else f"What {heading} do to the runs:"
            yield from effect_tables(effect)


@reports(CollectionAudit)
def _report(result: CollectionAudit) -> Report:
    tables = {"findings": findings_table(result)}
    if effect := result.facts.get("effect"):
        tables |= dict(zip(("scores", "order", "placebo"), effect_tables(effect), strict=False))
    return Report(
        title=title(result),
        lead=lead(result),
        verdicts=tuple(verdicts_shown(result)),
        sections=sections(result),
        tables=tables,
        json=result.json(),
        footer=(
            "A note is no fault: whoever uses the collection should know it. This page asks the network for nothing.",
        ),
    )


@summarises(CollectionCleaning)
def _cleaning_summary(result: CollectionCleaning) -> Summary:
    return Summary(
        (_cleaning_table(result),), result.json(), notes=place_note("judgments", result.out, result.file), width=_WIDTH
    )


def _cleaning_table(result: CollectionCleaning) -> Table:
    counts = result.counts()
    rows: list[tuple[str, str, int]] = [("judgments read", "", counts["read"])]
    rows += [(f"judgments {action}", reason, number) for action, reason, number in result.reasons()]
    rows += [
        ("rows that are no judgment, left out", "", counts["broken"]),
        ("judgments written", "", counts["written"]),
        ("contradictions listed", "", counts["contradictions"]),
        ("duplicates in the map", "", counts["duplicates"]),
        ("documents that are their topic's own text", "", counts["exclusions"]),
    ]
    return Table(
        "What cleaning did.",
        (Column("what"), Column("because"), Column("number", align="right", format=",d")),
        tuple(rows),
        notes=(f"Several judgments of one document: {COMBINE[result.combine]}.", *result.warnings),
    )


@writes(CollectionCleaning)
def _write_cleaning(result: CollectionCleaning, job: Run) -> None:
    with job.output(result.file) as stream:
        stream.writelines(clean_lines(result))
    for name in ("changes", "contradictions", "duplicates", "exclusions"):
        frame = getattr(result, name)
        lines = ["\t".join(frame.columns), *("\t".join(map(_cell, row)) for row in frame.iter_rows())]
        job.text(f"{name}.tsv", "\n".join(lines) + "\n")
    # Where it lies is not what was found: the same input has the same bytes in every folder.
    job.json("summary.json", {name: value for name, value in result.json().items() if name != "out"})


def _cell(value: object) -> str:
    return "" if value is None else str(value).translate(_BREAKS)


class _CardSummary(Summary):
    """A card as text is its JSON; as Markdown it is a section of a README."""

    def show(self, form: Format = "text") -> str:
        if form == "markdown" and len(self.parts) > 1:
            return _card_markdown(self.json, self.parts)
        return f"{self.parts[0]}\n" if form in ("text", "markdown") else super().show(form)


@summarises(CollectionCard)
def _card(result: CollectionCard) -> Summary:
    if result.card:
        return _CardSummary((result.card.removesuffix("\n"),), result.json())
    text = json.dumps(result.content, indent=2, ensure_ascii=False)
    return _CardSummary((text, _card_table(result.audit)), result.json())


def _card_table(audit: CollectionAudit) -> Table:
    return Table(
        "What was found.",
        (Column("Finding"), Column("Severity"), Column("Count"), Column("Effect on scores")),
        tuple((one.kind.title, one.kind.severity, one.counted, one.kind.effect) for one in audit.findings),
    )


def _card_markdown(content: Mapping[str, Any], parts: tuple[Table | str, ...]) -> str:
    parts_of = ", ".join(f"{part} {word}" for part, word in content["verdicts"].items())
    date = f" on {content['date']}" if "date" in content else ""
    by = f"Collection audit by truerank {content['truerank']}{date}"
    said = f"{by}: **{content['verdict']}** ({escape_markdown(parts_of)})."
    tables = [part.markdown() for part in parts if isinstance(part, Table) and part.rows]
    return "\n".join(["## Collection audit", "", said, "", *tables])


_LEVELS: Final[Mapping[Severity, SarifLevel]] = {"fault": "error", "doubt": "warning", "note": "note"}
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
    """The audit as SARIF: faults are errors, doubts warnings; a note is said once for each kind."""
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
