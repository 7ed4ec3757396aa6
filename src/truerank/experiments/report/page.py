"""The report on an experiment as one HTML page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from truerank.experiments.report.statements import order_statements
from truerank.reports.figures import page_svg
from truerank.reports.pages import Drawing, Facts, Finding, Page, Part, Prose, Section
from truerank.reports.tables import Table

if TYPE_CHECKING:
    from truerank.experiments.report.making import ExperimentReport

__all__ = ["render"]

_TITLES: Final = {
    "found": "What was found",
    "effectiveness": "Effectiveness by training set",
    "sizes": "Effect by training size",
    "memory": "What was memorised",
    "pilot": "The models without the fault",
    "details": "Every comparison",
    "grid": "The grid",
    "provenance": "Where this comes from",
}
#: Tables with more rows are in their files only.
_LONGEST: Final = 60
_SECTIONS: Final = {
    "effectiveness": "effectiveness",
    "strategies": "effectiveness",
    "depths": "effectiveness",
    "order": "effectiveness",
    "sizes": "sizes",
    "memorised": "memory",
    "pilot": "pilot",
    "pairs": "details",
    "grid": "grid",
}
_WHAT: Final = {
    "leakage": "Rankers trained on sets that differ only in a leak",
    "transfer": "Rankers trained on documents selected by different strategies",
    "survivorship": "Rankers trained on sets annotated to different depths",
    "pilot": "Rankers trained without any fault",
}


def render(result: ExperimentReport, svgs: Mapping[str, str]) -> str:
    """The report as HTML; the same report gives the same text.

    Args:
        result: the report.
        svgs: the figures as texts of SVG files, by name.

    Returns:
        The page.
    """
    parts: dict[str, list[Part]] = {name: [] for name in _TITLES}
    said = [*order_statements(result.effects), *result.left_out]
    if said:
        parts["found"].append(Prose(tuple(said)))
    for picture in result.pictures:
        section = _SECTIONS[picture.name.partition("-")[0]]
        parts[section].append(Drawing(page_svg(svgs[picture.name]), picture.caption, dense=True))
    for name, table in result.tables.items():
        section = "details" if name.endswith("-details") else _SECTIONS[name.partition("-")[0]]
        if len(table.rows) > _LONGEST:
            parts[section].append(Prose((f"{table.title} {len(table.rows):,} rows: tables/{name}.csv.",)))
        else:
            parts[section].append(_with_new_notes(table, parts[section]))
    parts["provenance"].append(Facts("Inputs, options and versions", result.provenance()))
    collections = ", ".join(f"{one.collection} ({len(one.scores.topics):,} topics)" for one in result.boards)
    compared = "" if result.options.kind == "pilot" else f", compared with {result.baseline}"
    return Page(
        title=f"Experiment: {result.name}",
        kicker="truerank",
        lead=f"{_WHAT[str(result.options.kind)]}{compared}, on {collections}.",
        findings=tuple(
            Finding(
                subject=one.subject,
                verdict=one.verdict,
                tone="bad" if one.shown else "open",
                headline=one.sentence,
            )
            for one in result.statements
        ),
        sections=tuple(Section(name, _TITLES[name], tuple(found)) for name, found in parts.items() if found),
        footer=(
            "An interval that holds 0 is no proof that there is no effect. Every table is in tables/ as CSV and LaTeX, "
            "every figure in figures/. This page asks the network for nothing.",
            f"truerank {result.provenance()['versions'].get('truerank', '')}".strip(),
        ),
    ).html()


def _with_new_notes(table: Table, before: Sequence[Part]) -> Table:
    """The table without the notes that stand below another table of its section."""
    said = {note for part in before if isinstance(part, Table) for note in part.notes}
    return replace(table, notes=tuple(note for note in table.notes if note not in said))
