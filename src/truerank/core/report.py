"""What an audit says in the end: a title, verdicts, and sections of prose, tables, figures, lists and facts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from truerank.core.figures.export import Picture, page_svg
from truerank.core.page import Drawing, Facts, Front, Page, Section
from truerank.core.plain import picked
from truerank.core.rules import Rule
from truerank.core.tables import Table
from truerank.core.verdict import Verdict
from truerank.core.views import heads
from truerank.version import __version__

if TYPE_CHECKING:
    import polars as pl

ReportPart = Any


@dataclass(frozen=True)
class ReportSection:
    """A part of a report with a heading.

    Attributes:
        name: a lower-case word that is unique in the report.
        parts: prose, tables, pictures, listings and facts in reading order.
    """

    name: str
    title: str
    parts: tuple[ReportPart, ...]


@dataclass(frozen=True)
class Report:
    """A report before it is a page.

    Attributes:
        lead: the sentence below it.
        verdicts: most important first.
        sections: in reading order; a section without parts is left out.
        tables: by the names of their files; a section may show some of them.
        json: the content of `summary.json`.
        frames: written beside it as NAME.parquet.
        texts: further files, by name.
        front: the first screen, in place of title, lead and verdicts.
    """

    title: str
    lead: str
    verdicts: tuple[Verdict, ...]
    sections: tuple[ReportSection, ...]
    tables: Mapping[str, Table] = field(default_factory=dict)
    json: Mapping[str, Any] = field(default_factory=dict)
    footer: tuple[str, ...] = ()
    frames: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    front: Front | None = None

    def pictures(self) -> Iterator[Picture]:
        """The figures in reading order."""
        for section in self.sections:
            yield from (part for part in section.parts if isinstance(part, Picture))

    def page(self, drawn: Callable[[Picture], str], provenance: Mapping[str, Any], files: Iterable[str] = ()) -> Page:
        sections = [
            Section(section.name, section.title, tuple(_shown(part, drawn) for part in section.parts))
            for section in self.sections
            if section.parts
        ]
        facts = Facts("Inputs, options and versions", provenance)
        return Page(
            title=self.title,
            kicker="truerank",
            lead=self.lead,
            verdicts=self.verdicts,
            sections=(*sections, Section("provenance", "Where this comes from", (facts,))),
            footer=(*self.footer, f"truerank {__version__}"),
            files=tuple(files),
            front=self.front,
        )


def _shown(part: ReportPart, drawn: Callable[[Picture], str]) -> Any:
    if isinstance(part, Picture):
        return Drawing(page_svg(drawn(part)), part.caption, part.screen != "narrow", part.screen)
    return part


def found_table(counts: Mapping[Rule, int]) -> Table:
    """What was found, by rule: how often, what it does to scores, and what mends it."""
    return Table(
        "What was found",
        heads("rule, what, severity, places:,d, what it does to scores=effect, remedy"),
        tuple(
            (rule.code, rule.title, rule.severity, count, rule.effect, rule.remedy)
            for rule, count in counts.items()
            if count
        ),
        addressed=True,
    )


def found_json(counts: Mapping[Rule, int]) -> list[dict[str, Any]]:
    """What was found, by rule, as JSON has it; nothing says among how many."""
    shown = ((picked(rule, "code, title, severity"), count) for rule, count in counts.items() if count)
    return [{**rule, "count": count, "of": None} for rule, count in shown]


def found_section(counts: Mapping[Rule, int]) -> ReportSection:
    """The section of a page that names the rules of what was found."""
    table = found_table(counts)
    return ReportSection("findings", "What was found, and what mends it", (table,) if table.rows else ())
