"""The reports of the survivorship audit: pages with their figures, written whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import truerank
from truerank.reports.figures import Picture, page_svg
from truerank.reports.pages import Drawing, Facts, Finding, Page, Part, Section
from truerank.work.artifacts import Artifacts
from truerank.work.publishing import write_pictures

__all__ = ["Draft", "DraftSection", "write_page"]

_FOOTER: Final = "This page asks the network for nothing."


@dataclass(frozen=True, eq=False)
class DraftSection:
    """A section whose figures are not drawn yet."""

    name: str
    title: str
    parts: tuple[Part | Picture, ...]


@dataclass(frozen=True, eq=False)
class Draft:
    """A page whose figures are not drawn yet; `facts` are its provenance."""

    title: str
    lead: str
    findings: tuple[Finding, ...]
    sections: tuple[DraftSection, ...]
    facts: Facts
    footer: tuple[str, ...] = ()


def write_page(artifacts: Artifacts, draft: Draft) -> None:
    """Writes `report.html`, and every figure as `figures/NAME.svg` and `.pdf`.

    Args:
        artifacts: the folder.
        draft: the page.
    """
    sections = []
    for section in draft.sections:
        parts: list[Part] = []
        for part in section.parts:
            if isinstance(part, Picture):
                svgs = write_pictures(artifacts, [part])
                parts.append(Drawing(page_svg(svgs[part.name]), part.caption, dense=True))
            else:
                parts.append(part)
        sections.append(Section(section.name, section.title, tuple(parts)))
    sections.append(Section("provenance", "Where this comes from", (draft.facts,)))
    page = Page(
        title=draft.title,
        kicker="truerank",
        lead=draft.lead,
        findings=draft.findings,
        sections=tuple(sections),
        footer=(*draft.footer, _FOOTER, f"truerank {truerank.__version__}"),
    )
    artifacts.text("report.html", page.html())
