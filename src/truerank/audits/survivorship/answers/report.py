"""What the page of `survivorship answerable` shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from truerank.audits.survivorship.page import Draft, DraftSection
from truerank.reports.figures import Picture
from truerank.reports.figures.shares import ShareRow, share_rows
from truerank.reports.pages import Facts, Finding, Part

if TYPE_CHECKING:
    from truerank.audits.survivorship.answers.results import Answerable, Corpus

__all__ = ["answerable_draft"]


def answerable_draft(result: Answerable) -> Draft:
    """The page of `survivorship answerable`."""
    sections: list[DraftSection] = []
    for number, corpus in enumerate(result.corpora, start=1):
        name = corpus.name or "answers"
        parts: tuple[Part | Picture, ...] = (
            _picture(corpus, number),
            result.table(corpus),
            result.interval_table(corpus),
        )
        sections.append(DraftSection(f"answers-{number}", f"{name}: which rankers find an answer", parts))
        if corpus.overlaps:
            overlap = (result.overlap_table(corpus),)
            sections.append(DraftSection(f"overlap-{number}", f"{name}: what they have in common", overlap))
    if result.reasons is not None:
        sections.append(
            DraftSection("reasons", "Why queries were left without an answer", tuple(result.reasons.parts.values()))
        )
    return Draft(
        title="Can the discarded queries be answered?",
        lead="Queries were discarded because nobody found an answer among the documents shown; rankers look further.",
        findings=tuple(_finding(corpus) for corpus in result.corpora),
        sections=tuple(sections),
        facts=Facts("Inputs, options and versions", result.provenance()),
        footer=("A query that none of the rankers answers may be answerable: its answer may not have been retrieved.",),
    )


def _finding(corpus: Corpus) -> Finding:
    lost = corpus.unanswerable
    answered = lost.total - lost.found
    best = max(corpus.shares[: len(corpus.systems)], key=lambda one: one.within[corpus.cutoffs[0]].found)
    share = answered / lost.total if lost.total else 0.0
    return Finding(
        subject=corpus.name or "discarded queries",
        verdict=f"{share:.0%} answerable",
        tone="bad" if answered else "good",
        headline=(
            f"{answered:,} of {lost.total:,} discarded queries have an answer in the collection "
            f"({1 - lost.high:.0%} to {1 - lost.low:.0%})."
        ),
        why=f"{best.system} alone answers {best.within[corpus.cutoffs[0]].found:,} in its first {corpus.cutoffs[0]}.",
        share=share,
    )


def _picture(corpus: Corpus, number: int) -> Picture:
    rows = [
        ShareRow(f"{one.system}, top {cutoff}", share.value, share.low, share.high)
        for one in corpus.shares
        for cutoff, share in one.within.items()
    ]
    caption = f"Share of {len(corpus.queries):,} discarded queries with an answer among the first results."
    return Picture(f"answers-{number}", caption, share_rows(rows, x_label="share of discarded queries"))
