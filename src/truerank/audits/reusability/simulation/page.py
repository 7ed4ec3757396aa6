"""The simulation as one HTML page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

import truerank
from truerank.reports.figures import page_svg
from truerank.reports.pages import Drawing, Facts, Finding, Page, Part, Prose, Section, Tone

if TYPE_CHECKING:
    from truerank.audits.reusability.simulation.report import Simulation

__all__ = ["render"]

_TITLES: Final = {
    "verdict": "The verdict in words",
    "teams": "Teams left out",
    "trials": "Trials",
    "rules": "Stopping criteria",
    "cost": "What the next judgments cost",
    "topics": "Topics",
    "runs": "Runs",
    "provenance": "Where this comes from",
}
_SECTIONS: Final = {
    "evidence": "verdict", "runs": "runs", "table5": "topics", "table6": "trials", "teams": "teams",
    "uniques": "teams", "unlike": "teams", "table7": "rules", "budgets": "cost", "risks": "topics",
    "positions": "runs",
}  # fmt: skip
_TONES: Final[Mapping[str, Tone]] = {"HELD": "good", "WITH CARE": "open", "NOT HELD": "bad", "UNKNOWN": "open"}
_MEANING: Final = {
    "HELD": "New systems stood where they would have stood had they been pooled, as far as was tried.",
    "WITH CARE": "Small differences between a new system and an old one mean little.",
    "NOT HELD": "A new system may be misranked.",
    "UNKNOWN": "Nothing was found that misranks a new system, and too little was tried to say that nothing would.",
}


def render(simulation: Simulation, svgs: Mapping[str, str]) -> str:
    """The report as HTML; the same simulation gives the same text.

    Args:
        simulation: what was found.
        svgs: the figures as texts of SVG files, by name.

    Returns:
        The page.
    """
    parts: dict[str, list[Part]] = {name: [] for name in _TITLES}
    # What each measure's findings say stands above, and as a table below.
    said = simulation.verdict.sentences()
    parts["verdict"].append(
        Prose((said[0], simulation.verdict.criteria(), *said[1 + len(simulation.verdict.measures) :]))
    )
    if simulation.notes:
        parts["verdict"].append(Prose(simulation.notes))
    for picture in simulation.pictures:
        parts[picture.section].append(Drawing(page_svg(svgs[picture.name]), picture.caption, dense=True))
    for name, table in simulation.tables.items():
        parts[_SECTIONS[name]].append(table)
    parts["provenance"].append(Facts("Inputs, options and versions", simulation.provenance()))
    official, runs = simulation.standing.official, len(simulation.teams)
    return Page(
        title="Is this collection fair to new systems?",
        kicker="truerank: reusability",
        lead=f"{runs:,} runs of {len(simulation.standing.teams):,} teams; {len(official.qrels.sets):,} topics with "
        f"{sum(official.sizes.values()):,} judgments ({official.name}); {simulation.options.trials:,} simulated trials "
        "with all teams and with each team left out.",
        findings=tuple(_findings(simulation)),
        sections=tuple(Section(name, _TITLES[name], tuple(found)) for name, found in parts.items() if found),
        footer=(
            "A simulation shows what became of the systems that were tried. It bounds nothing for a system unlike all "
            "of them. This page asks the network for nothing.",
            f"truerank {truerank.__version__}",
        ),
    ).html()


def _findings(simulation: Simulation) -> Iterator[Finding]:
    verdict = simulation.verdict
    for one in verdict.measures:
        yield Finding(
            subject=one.measure,
            verdict=one.word,
            tone=_TONES[one.word],
            headline=one.reason,
            why=" ".join(one.tests()),
            meaning=f"{_MEANING[one.word]} What would change this: {one.what_would_change_it}",
            share=one.unmoved,
        )
    yield Finding(
        subject="what was tried",
        verdict="the limits",
        tone="open",
        headline=verdict.alike_sentence(),
        why=verdict.blind,
    )
    yield Finding(subject="topics", verdict="the risk", tone="open", headline=verdict.topic_sentence())
    yield Finding(subject="the next judgments", verdict="the cost", tone="open", headline=verdict.gain_sentence())
