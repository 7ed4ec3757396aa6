"""A scan for people: figures, tables, and every candidate with both texts on one page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import polars as pl

import truerank
from truerank.audits.transfer.scanning.judging_items import highest_difference
from truerank.audits.transfer.scanning.options import AGGREGATIONS, TEXTS
from truerank.audits.transfer.scanning.results import LOW, Scan, curves
from truerank.rankers.reranking.document_texts import DocumentTexts
from truerank.reports.figures import Picture, cumulative_curves, side_by_side_histograms
from truerank.reports.listings import Listing, ListingColumn
from truerank.reports.pages import Drawing, Facts, Finding, Page, Part, Prose, Section
from truerank.text.passages import joined, policy_named

if TYPE_CHECKING:
    pass

__all__ = ["figures", "render"]

#: Candidates shown with their texts; all of them stand in candidates.parquet.
_SHOWN: Final = 300
_PASSAGE_WORDS: Final = 250
_TEXT_WORDS: Final = 600
_BINS: Final = 10


def figures(scan: Scan, best: Mapping[str, tuple[str, ...]]) -> Iterator[Picture]:
    """The paper's two figures; the first needs probabilities.

    Source: the transfer paper, Figures 1 and 2.
    """
    if scan.summary["below"]:
        series = [
            (f"{name} {label}", frame[aggregation].to_numpy())
            for aggregation, label in AGGREGATIONS.items()
            for name, frame in curves(scan, best)
        ]
        low = "; ".join(_low(name, one) for name, one in scan.summary["below"].items())
        caption = f"How probable it is that judged documents are relevant. Below {LOW:g}: {low}."
        figure = cumulative_curves(series, x_label="probability of being relevant", counted="judged documents", at=LOW)
        yield Picture("figure1", caption, figure)
    panels = []
    for first, second in scan.summary["pairs"]:
        for better, worse in ((first, second), (second, first)):
            inside = scan.candidates.filter((pl.col("better") == better) & (pl.col("worse") == worse))
            named = [
                (label, inside.filter(pl.col(name))[f"{name}_difference"].to_numpy())
                for name, label in AGGREGATIONS.items()
            ]
            panels.append((f"{better} minus {worse}: candidates for errors in {worse}", named))
    lowest = min(scan.summary["cut_off"][name] for name in AGGREGATIONS)
    highest = max(highest_difference(scan, name) for name in AGGREGATIONS)
    edges = np.linspace(lowest, max(highest, lowest + 1e-6), _BINS + 1)
    unit = "probability" if scan.summary["percentile"] is None else "score"
    figure = side_by_side_histograms(panels, edges=edges, x_label=f"difference in {unit}", counted="documents")
    caption = f"Differences above the cut-off, {len(scan.candidates):,d} candidates in all."
    yield Picture("figure2", caption, figure)


def render(scan: Scan, drawings: Sequence[Drawing], texts: Mapping[str, Path], content: Mapping[str, Any]) -> str:
    """The scan as one HTML page that needs no network; the same scan gives the same text.

    Args:
        scan: what was found.
        drawings: its figures.
        texts: the files of `DocumentTexts` by version.
        content: what the manifest says.
    """
    summary = scan.summary
    parts: list[Part] = [scan.table()]
    if summary["below"]:
        parts.append(scan.below())
    sections = (
        Section("sets", "Data sets of possible errors", (*parts, *drawings)),
        Section("candidates", "Every candidate", tuple(_candidates(scan, texts))),
        Section("left", "What was not compared", tuple(_skipped(scan))),
        Section("provenance", "Where this comes from", (Facts("Inputs, options and versions", content),)),
    )
    return Page(
        title=f"Are the judgments of {scan.versions[0]} still true?",
        kicker="truerank",
        lead=(
            f"{summary['compared']:,d} judged documents in {len(scan.versions)} versions, scored by "
            f"{summary['ranker']['name']} passage by passage ({summary['policy']})."
        ),
        findings=tuple(_findings(scan)),
        sections=tuple(section for section in sections if section.parts),
        footer=(
            "A candidate is no error yet: let people judge a sample (items.jsonl) and estimate from it how many there "
            "are. This page asks the network for nothing.",
            f"truerank {truerank.__version__}",
        ),
    ).html()


def _low(name: str, one: Mapping[str, Any]) -> str:
    shares = (f"{label} {one[aggregation]['share']:.2%}" for aggregation, label in AGGREGATIONS.items())
    return f"{name} {', '.join(shares)}"


def _findings(scan: Scan) -> Iterator[Finding]:
    total = scan.summary["compared"]
    for first, second in scan.summary["pairs"]:
        for better, worse in ((first, second), (second, first)):
            inside = scan.candidates.filter((pl.col("better") == better) & (pl.col("worse") == worse))
            counts = {label: int(inside[name].sum()) for name, label in AGGREGATIONS.items()}
            flagged = inside.filter(pl.col("max") | pl.col(TEXTS))
            if scan.summary["evidence"] != "scores":
                counts[TEXTS] = int(inside[TEXTS].sum())
            found = ", ".join(f"{count:,d} by {label}" for label, count in counts.items())
            why = flagged["reason"].value_counts(sort=True).sort("count", "reason", descending=[True, False])
            yield Finding(
                subject=worse,
                verdict="CHANGED" if len(inside) else "UNCHANGED",
                tone="bad" if len(inside) else "good",
                headline=f"Of {total:,d} judged documents, {found} are far less relevant than in {better}.",
                why="; ".join(f"{reason}: {count:,d}" for reason, count in why.iter_rows()),
                share=len(flagged) / total,
            )


def _candidates(scan: Scan, texts: Mapping[str, Path]) -> Iterator[Part]:
    every = scan.candidates
    if every.is_empty():
        yield Prose(("No judged document differs by more than the cut-off.",))
        return
    largest = pl.max_horizontal("first_difference", "max_difference").alias("difference")
    shown = (
        every.with_columns(largest)
        .sort(pl.max_horizontal("difference", "lost"), "topic_id", "doc_id", descending=[True, False, False])
        .head(_SHOWN)
    )
    yield Prose(
        (
            f"The {len(shown):,d} candidates with the largest differences or losses of {len(every):,d}. On the left "
            "the passage that scores best in the better version, on the right the other one. Words that only one of "
            "the two texts has are underlined; dots mark another form of a word that both have.",
        )
    )
    pairs = list(_texts(scan, shown, texts))
    yield Listing(
        name="list",
        title="Judged documents and what became of them.",
        columns=tuple(_columns(shown, pairs)),
        nouns=("candidate", "candidates"),
        sort="-difference",
        compared=("better_text", "worse_text"),
        whole="candidates.parquet",
    )


def _columns(shown: pl.DataFrame, pairs: list[tuple[str, str]]) -> Iterator[ListingColumn]:
    def values(name: str) -> list[Any]:
        return shown[name].to_list()

    ways = [
        " and ".join(label for name, label in (*AGGREGATIONS.items(), (TEXTS, TEXTS)) if row[name])
        for row in shown.iter_rows(named=True)
    ]
    yield ListingColumn("topic_id", "Topic", values("topic_id"), kind="label", filter="choose")
    yield ListingColumn("query", "Query", values("query"), searched=True)
    yield ListingColumn("better", "Better", values("better"), kind="label", filter="choose")
    yield ListingColumn("worse", "Worse", values("worse"), kind="label", filter="choose")
    yield ListingColumn("better_text", "Passage of the better version", [one for one, _ in pairs], searched=True)
    yield ListingColumn("worse_text", "The worse version", [other for _, other in pairs], searched=True)
    yield ListingColumn("reason", "Why", values("reason"), kind="label", filter="choose")
    yield ListingColumn("shown", "What shows it", values("shown"))
    yield ListingColumn("by", "By", ways, kind="label", filter="choose")
    lost = ["" if share is None else f"{share:.0%}" for share in values("lost")]
    yield ListingColumn("lost", "Lost, by the texts", lost)
    yield ListingColumn("difference", "Difference", values("difference"), kind="number", filter="above")
    yield ListingColumn("better_url", "Address", values("better_url"), kind="code")
    yield ListingColumn("doc_id", "Judged document", values("doc_id"), kind="code", searched=True)


def _texts(scan: Scan, shown: pl.DataFrame, texts: Mapping[str, Path]) -> Iterator[tuple[str, str]]:
    opened = {name: DocumentTexts(path) for name, path in texts.items()}
    policy = policy_named(scan.summary["policy"])
    for row in shown.iter_rows(named=True):
        better = opened[row["better"]].texts([row["better_id"]])[row["better_id"]]
        worse = opened[row["worse"]].texts([row["worse_id"]])[row["worse_id"]]
        passage = list(policy.cut(joined(*better)))[row["passage"]]
        yield _cut(passage, _PASSAGE_WORDS), _cut(joined(*worse), _TEXT_WORDS) or "(no text)"


def _cut(text: str, words: int) -> str:
    parts = text.split()
    return " ".join(parts[:words]) + (" …" if len(parts) > words else "")


def _skipped(scan: Scan) -> Iterator[Part]:
    if scan.summary["skipped"]:
        told = ", ".join(f"{count:,d} {reason}" for reason, count in scan.summary["skipped"].items())
        yield Prose((f"Judged documents left out: {told}. They stand in skipped.parquet.",))
