"""What the pages of `survivorship profile` and `survivorship depth` show."""

from __future__ import annotations

from typing import TYPE_CHECKING

from truerank.audits.survivorship.page import Draft, DraftSection, Picture
from truerank.reports.figures.lines import Line, LinePanel, line_panels
from truerank.reports.pages import Facts, Finding

if TYPE_CHECKING:
    from truerank.audits.survivorship.depths import Depths

__all__ = ["depth_draft"]


def depth_draft(result: Depths) -> Draft:
    """The page of `survivorship depth`."""
    levels = result.levels
    shallow, whole = levels[0], levels[-1]
    lost = 1 - shallow.queries / whole.queries if whole.queries else 0.0
    conditions = tuple(one.label for one in levels)
    counts = (("qrels", [one.qrels for one in levels]), ("queries", [one.queries for one in levels]))
    lines = tuple(Line(name, tuple((float(n), None, None) for n in numbers)) for name, numbers in counts)
    added = Line("new queries", tuple((float(one.new_queries), None, None) for one in levels))
    figure = line_panels(
        [LinePanel("judgments and queries left", conditions, lines), LinePanel("queries gained", conditions, (added,))],
        x_label="documents shown",
        y_label="number",
    )
    caption = (
        f"Judgments and surviving queries of {result.name} by the number of documents that would have been shown; "
        "beside them, how many queries each depth adds."
    )
    picture = Picture("depths", caption, figure)
    finding = Finding(
        subject=result.name,
        verdict=f"{lost:.1%} fewer queries",
        tone="bad" if lost > 0 else "good",
        headline=f"At depth {shallow.label} {shallow.queries:,} of {whole.queries:,} queries have a judgment.",
        why=f"The whole log judges {whole.queries:,} of {result.queries:,} queries.",
        share=lost,
    )
    return Draft(
        title=f"Simulated annotation depths: {result.name}",
        lead=f"{whole.qrels:,} judgments of {whole.queries:,} queries, had fewer documents been shown.",
        findings=(finding,),
        sections=(
            DraftSection("depths", "What is left at each depth", (Picture("depths", caption, figure), result.table())),
        ),
        facts=Facts("Inputs, options and versions", result.provenance()),
    )
