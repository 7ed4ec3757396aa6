"""An audit in the one shape: verdicts, findings, frames and facts, and a look that says how they are shown.

What the command prints, the page, `summary.json`, the tables in every form, `findings.sarif` and the card follow from
these; an audit adds its words and its algorithm.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from truerank.core.plain import picked, plain
from truerank.core.report import Report, ReportPart, ReportSection, found_json, found_section, found_table
from truerank.core.result import Result, Summary, gallery_notes, page_note, reports, summarises
from truerank.core.rules import Finding, Rule
from truerank.core.sarif import sarif
from truerank.core.tables import Table, card, escape_markdown
from truerank.core.verdict import LEVELS, ORDER, Verdict
from truerank.core.views import View, tables

if TYPE_CHECKING:
    import polars as pl

    from truerank.core.figures.export import Picture


@dataclass(frozen=True)
class Look:
    """How an audit is shown.

    Attributes:
        lead: the sentence below it; names of facts stand in braces.
        rules: all that the audit can find, by name.
        views: the tables, in reading order.
        sections: their titles, by the names that views and figures have, in reading order.
        pictures: draws the figures.
    """

    title: str
    lead: str
    rules: Mapping[str, Rule] = field(default_factory=dict)
    views: tuple[View, ...] = ()
    sections: Mapping[str, str] = field(default_factory=dict)
    pictures: Callable[[Any], Iterable[Picture]] = field(default=lambda _: ())

    def __post_init__(self) -> None:
        """Refuses views of sections that the page lacks."""
        for view in self.views:
            if view.place != "files" and view.section not in self.sections:
                raise ValueError(f"view '{view.name}' is of section '{view.section}'; there are {list(self.sections)}")


@dataclass(frozen=True, eq=False, repr=False)
class Audit(Result, shown_in="truerank.core.audit"):
    """Base of the results of audits. A subclass gives its `look`, and `verdict_words` for `--fail-on`.

    Attributes:
        verdicts: the most important first.
        frames: by the names of their Parquet files.
        facts: numbers and names, as `summary.json` has them.
        folder: where it was written; None where it was not.
    """

    look: ClassVar[Look]

    def __init_subclass__(cls, **rest: Any) -> None:
        """Refuses words without a level: `--fail-on` would pass them over."""
        super().__init_subclass__(**rest)
        if unknown := [word for word in cls.verdict_words if word not in LEVELS]:
            raise ValueError(f"the word {unknown[0]} has no level; add it to LEVELS in core/verdict.py")

    verdicts: tuple[Verdict, ...]
    findings: tuple[Finding, ...] = ()
    frames: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    folder: Path | None = None

    @property
    def verdict(self) -> Verdict:
        """The worst verdict; of several as bad, the first."""
        return max(self.verdicts, key=lambda verdict: ORDER.index(verdict.level))

    def json(self) -> dict[str, Any]:
        """What `summary.json` holds."""
        shown = [plain(verdict, "share", "sign") for verdict in self.verdicts]
        found = {"verdicts": shown, "findings": found_json(self.counts()), "facts": plain(self.facts)}
        return {**picked(self, "verdict=verdict.word, sentence=verdict.sentence"), **found}

    def counts(self) -> dict[Rule, int]:
        """How often each rule was found, in the order of the rules."""
        counts = Counter(finding.rule.name for finding in self.findings)
        return {rule: counts[rule.name] for rule in self.look.rules.values() if rule.name in counts}

    def tables(self) -> dict[str, Table]:
        """The tables by name, in reading order."""
        shown = dict(tables(self.look.views, self.frames, self.facts))
        counts = self.counts()
        return {**shown, "findings": found_table(counts)} if counts else shown

    def card(self) -> str:
        """A section of a data card, in Markdown."""
        lines = [f"- {_subject(each)}**{each.word}**. {escape_markdown(each.sentence)}" for each in self.verdicts]
        return card(self.look.title, ".", "\n".join(lines))


def _subject(verdict: Verdict) -> str:
    return f"{verdict.subject}: " if verdict.subject else ""


@summarises(Audit)
def _summary(audit: Audit) -> Summary:
    shown = audit.tables()
    places = {view.name: view.place for view in audit.look.views}
    lines = "\n".join(
        " ".join(filter(None, (f"{_subject(each)}{each.word}. {each.sentence}", each.rests_on, each.settles)))
        for each in audit.verdicts
    )
    wanted = (table for name, table in shown.items() if places.get(name, "everywhere") == "everywhere")
    pictures = audit.look.pictures
    return Summary(
        (lines, *wanted), audit.json(), audit.verdicts, (*page_note(audit.folder), *gallery_notes(audit.facts)), 120,
        None, lambda: pictures(audit),
    )  # fmt: skip


@reports(Audit)
def _report(audit: Audit) -> Report:
    look, shown = audit.look, audit.tables()
    parts: dict[str, list[ReportPart]] = {name: [] for name in look.sections}
    for picture in look.pictures(audit):
        parts[picture.section].append(picture)
    for view in look.views:
        if view.name in shown and view.place != "files":
            parts[view.section].append(shown[view.name])
    sections = [ReportSection(name, look.sections[name], tuple(some)) for name, some in parts.items()]
    return Report(
        look.title,
        look.lead.format_map(audit.facts),
        audit.verdicts,
        (*sections, found_section(audit.counts())),
        shown,
        audit.json(),
        footer=gallery_notes(audit.facts),
        frames=audit.frames,
        texts={
            "findings.sarif": sarif(look.title, [*look.rules.values()], audit.findings),
            "card.md": audit.card(),
        },
    )
