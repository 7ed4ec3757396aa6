"""What the pages of `survivorship profile` and `survivorship depth` show."""

from __future__ import annotations

from typing import TYPE_CHECKING

from truerank.audits.survivorship.page import Draft, DraftSection
from truerank.reports.figures import Picture
from truerank.reports.figures.lines import Line, LinePanel, line_panels
from truerank.reports.figures.shares import ShareRow, share_rows
from truerank.reports.pages import Facts, Finding, Part

if TYPE_CHECKING:
    from truerank.audits.survivorship.depths import Depths
    from truerank.audits.survivorship.kinds import Kinds
    from truerank.audits.survivorship.profiling import Profile, Split

__all__ = ["depth_draft", "profile_draft"]


def profile_draft(result: Profile) -> Draft:
    """The page of `survivorship profile`."""
    sections = [DraftSection("splits", "What was discarded", (result.table(),))]
    for number, kinds in enumerate(result.kinds, start=1):
        title = f"{kinds.split}: by {kinds.labelling}"
        sections.append(DraftSection(f"kinds-{number}", title, (_kinds_picture(kinds, number), kinds.table())))
    for number, split in enumerate(result.splits, start=1):
        if split.ranks:
            parts = (_ranks_picture(split, number), result.rank_table(split))
            sections.append(DraftSection(f"ranks-{number}", f"{split.name}: rank of what was selected", parts))
            curve: tuple[Part | Picture, ...] = (_curve_picture(split, number), result.depth_table(split))
            sections.append(DraftSection(f"depths-{number}", f"{split.name}: had fewer, or more, been shown", curve))
    return Draft(
        title="Which queries were discarded",
        lead="Queries for which nobody found an answer among the documents shown are not in the test collection.",
        findings=tuple(_split_finding(result, split) for split in result.splits),
        sections=tuple(sections),
        facts=Facts("Inputs, options and versions", result.provenance()),
        footer=("What is extrapolated is marked so wherever it stands; it is no measurement.",),
    )


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
    finding = Finding(
        subject=result.name,
        verdict=f"{lost:.1%} fewer queries",
        tone="bad" if lost > 0 else "good",
        headline=f"At depth {shallow.label} {shallow.queries:,} of {whole.queries:,} queries have a judgment.",
        why=f"The whole log judges {whole.queries:,} of {result.queries:,} queries.",
        share=lost,
    )
    parts = (Picture("depths", caption, figure), result.table())
    return Draft(
        title=f"Simulated annotation depths: {result.name}",
        lead=f"{whole.qrels:,} judgments of {whole.queries:,} queries, had fewer documents been shown.",
        findings=(finding,),
        sections=(DraftSection("depths", "What is left at each depth", parts),),
        facts=Facts("Inputs, options and versions", result.provenance()),
    )


def _split_finding(result: Profile, split: Split) -> Finding:
    share = split.discarded
    lost = share.found > 0
    standing = [
        f"{one.kind} ({one.of_survivors:.1%} of survivors, {one.of_all:.1%} of all)"
        for kinds in result.kinds
        if kinds.split == split.name
        for one in kinds.counts
        if one.standing == "over"
    ]
    return Finding(
        subject=split.name,
        verdict=f"{share.value:.1%} discarded",
        tone="bad" if lost else "good",
        headline=f"{share.found:,} of {share.total:,} queries, {share.low:.1%} to {share.high:.1%}.",
        why=f"Over-represented among the survivors: {', '.join(standing[:4])}." if standing else "",
        share=share.value,
    )


def _kinds_picture(kinds: Kinds, number: int) -> Picture:
    rows = [
        ShareRow(
            f"{one.kind} (n = {one.discarded.total:,})", one.discarded.value, one.discarded.low, one.discarded.high
        )
        for one in kinds.counts
    ]
    caption = (
        f"Discarded share of the queries of {kinds.split} by {kinds.labelling}, with intervals; the dashed line is the "
        f"share over all {kinds.total.total:,} labelled queries."
    )
    figure = share_rows(rows, x_label="share discarded", reference=kinds.total.value, reference_label="all")
    return Picture(f"kinds-{number}", caption, figure)


def _ranks_picture(split: Split, number: int) -> Picture:
    survivors = max(1, sum(one.first for one in split.ranks))
    selected = max(1, sum(one.selected for one in split.ranks))
    lines = (
        Line("first selected", tuple((one.first / survivors, None, None) for one in split.ranks)),
        Line("any selected", tuple((one.selected / selected, None, None) for one in split.ranks)),
    )
    panel = LinePanel(f"n = {survivors:,} queries", tuple(str(one.position) for one in split.ranks), lines)
    figure = line_panels([panel], x_label="rank at which it was shown", y_label="share", columns=1)
    return Picture(
        f"ranks-{number}", f"Where the selected documents of {split.name} stood when they were shown.", figure
    )


def _curve_picture(split: Split, number: int) -> Picture:
    curve = split.curve
    points = () if curve is None else curve.points
    beyond = () if curve is None else curve.beyond
    depths = sorted({one.depth for one in points} | {one.depth for one in beyond})
    cut = {one.depth: (one.discarded.value, one.discarded.low, one.discarded.high) for one in points}
    future = {one.depth: (one.share, one.low, one.high) for one in beyond}
    lines = [Line("cut at this depth", tuple(cut.get(depth) for depth in depths))]
    if future:
        lines.append(Line("EXTRAPOLATED, no measurement", tuple(future.get(depth) for depth in depths)))
    panel = LinePanel(f"n = {split.discarded.total:,} queries", tuple(map(str, depths)), tuple(lines))
    caption = f"Discarded share of {split.name} by the number of documents shown."
    if future:
        caption += " Dashed and hollow: extrapolated, with an interval that spans three shapes of the trend."
    figure = line_panels([panel], x_label="documents shown", y_label="share discarded", columns=1)
    return Picture(f"depths-{number}", caption, figure)
