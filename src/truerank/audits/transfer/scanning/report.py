"""A scan for people: figures, tables, and every candidate with both texts on one page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import polars as pl

from truerank.audits.transfer.descriptions import ALL
from truerank.audits.transfer.scanning.judging_items import highest_difference, write_items
from truerank.audits.transfer.scanning.options import AGGREGATIONS, TEXTS
from truerank.audits.transfer.scanning.results import LOW, VERY, Scan, curves
from truerank.core.figures import Picture, cumulative_curves, side_by_side_histograms
from truerank.core.listings import Listing, ListingColumn
from truerank.core.page import Part, Prose
from truerank.core.report import Report, ReportSection, found_section
from truerank.core.result import Summary, page_note, reports, summarises, writes
from truerank.core.rules import Rule, rules_of
from truerank.core.tables import Cell, Column, Table, card, escape_markdown
from truerank.core.verdict import Verdict
from truerank.core.views import heads
from truerank.rankers.reranking.document_texts import DocumentTexts
from truerank.text.page_faults import REASONS
from truerank.text.passages import joined, policy_named
from truerank.work.publishing import write_pictures
from truerank.work.runs import Run

_RULES: Final = rules_of("truerank.audits.transfer", Rule)
#: Candidates shown with their texts; all of them stand in candidates.parquet.
_SHOWN: Final = 300
_PASSAGE_WORDS: Final = 250
_TEXT_WORDS: Final = 600
_BINS: Final = 10


def figures(scan: Scan) -> Iterator[Picture]:
    """The paper's two figures; the first needs probabilities.

    Source: the transfer paper, Figures 1 and 2.
    """
    if scan.summary["below"]:
        series = [
            (f"{name} {label}", frame[aggregation].to_numpy())
            for aggregation, label in AGGREGATIONS.items()
            for name, frame in curves(scan)
        ]
        lows = []
        for name, one in scan.summary["below"].items():
            shares = (f"{label} {one[aggregation]['share']:.2%}" for aggregation, label in AGGREGATIONS.items())
            lows.append(f"{name} {', '.join(shares)}")
        caption = f"How probable it is that judged documents are relevant. Below {LOW:g}: {'; '.join(lows)}."
        figure = cumulative_curves(series, x_label="probability of being relevant", counted="judged documents", at=LOW)
        yield Picture("figure1", caption, figure)
    panels = []
    for better, worse, inside in scan.sides():
        named = [(label, inside.filter(pl.col(name))[f"{name}_difference"].to_numpy())
                 for name, label in AGGREGATIONS.items()]  # fmt: skip
        panels.append((f"{better} minus {worse}: candidates for errors in {worse}", named))
    lowest = min(scan.summary["cut_off"][name] for name in AGGREGATIONS)
    highest = max(highest_difference(scan, name) for name in AGGREGATIONS)
    edges = np.linspace(lowest, max(highest, lowest + 1e-6), _BINS + 1)
    unit = "probability" if scan.summary["percentile"] is None else "score"
    figure = side_by_side_histograms(panels, edges=edges, x_label=f"difference in {unit}", counted="documents")
    caption = f"Differences above the cut-off, {len(scan.candidates):,d} candidates in all."
    yield Picture("figure2", caption, figure)


def _tables(scan: Scan) -> dict[str, Table]:
    below = {"below": below_table(scan)} if scan.summary["below"] else {}
    return {"sets": sets_table(scan), **below, "documents": documents_table(scan)}


@summarises(Scan)
def _scan_summary(scan: Scan) -> Summary:
    parts: list[Table | str] = [*_tables(scan).values()]
    if skipped := scan.summary["skipped"]:
        text = "; ".join(f"{count:,d}: {reason}" for reason, count in skipped.items())
        parts.append(f"Not compared: {text}")
    return Summary(tuple(parts), scan.json(), verdicts=tuple(_verdicts(scan)), notes=page_note(scan.folder), width=110)


@reports(Scan)
def _scan_report(scan: Scan) -> Report:
    summary = scan.summary
    tables = _tables(scan)
    counts = Counter(scan.candidates["reason"])
    skipped = ", ".join(f"{count:,d} {reason}" for reason, count in summary["skipped"].items())
    left_out = (Prose((f"Judged documents left out: {skipped}. They are in skipped.parquet.",)),) if skipped else ()
    sections = (
        ReportSection("sets", "Data sets of possible errors", (*tables.values(), *figures(scan))),
        found_section({rule: counts[name.replace("-", " ")] for name, rule in _RULES.items()}),
        ReportSection("candidates", "Every candidate", tuple(_candidates(scan))),
        ReportSection("left", "What was not compared", left_out),
    )
    return Report(
        title=f"Do the judgments of {scan.versions[0]} still fit the documents?",
        lead=(
            f"{summary['compared']:,d} judged documents in {len(scan.versions)} versions, scored by "
            f"{summary['ranker']['name']} passage by passage ({summary['policy']})."
        ),
        verdicts=tuple(_verdicts(scan)),
        sections=sections,
        tables=tables,
        json=summary,
        footer=(
            "A candidate is not an error yet: let people judge a sample (items.jsonl), and estimate from it how many "
            "errors there are. This page needs no network.",
        ),
    )


@writes(Scan)
def _write_scan(scan: Scan, job: Run) -> None:
    for name in ("scores", "candidates", "sets", "skipped"):
        job.parquet(f"{name}.parquet", getattr(scan, name))
    judged = scan.scores.unique("row", keep="first", maintain_order=True).select("topic_id", "doc_id", "relevance")
    for name in scan.set_names:
        inside = scan.sets.filter(pl.col("set") == name).join(judged, on=["topic_id", "doc_id"], maintain_order="left")
        lines = inside.select("topic_id", pl.lit("0").alias("iteration"), "doc_id", "relevance")
        text = lines.write_csv(separator=" ", include_header=False, quote_style="never")
        job.text(f"sets/{_file_name(name)}.qrels", text)
    write_items(job, scan, scan.texts, job.options["items"], job.options["seed"])
    job.json("summary.json", scan.summary)
    job.text("card.md", scan_card(scan))
    report = _scan_report(scan)
    svgs = write_pictures(job, report.pictures(), folder="")
    job.skipped = dict(scan.summary["skipped"])
    page = report.page(lambda picture: svgs[picture.name], job.provenance(), job.names())
    job.text("report.html", page.html())


def _file_name(name: str) -> str:
    """A data set's name as a file's: "V1-over-V2.MaxP"."""
    plain = name.replace(">>", "-over-").replace(" ", ".")
    return "".join(sign if sign.isalnum() or sign in "-._" else "_" for sign in plain)


def sets_table(scan: Scan) -> Table:
    """The data sets: documents, those that differ most, and the classes of reasons."""
    present = [name for name in REASONS if any(name in one["reasons"] for one in scan.summary["sets"].values())]
    rows: list[tuple[Cell, ...]] = []
    for name, one in scan.summary["sets"].items():
        figures = (one["very"], *(one["reasons"].get(reason, 0) for reason in present))
        rows.append((name, one["documents"], *(figures if one["aggregation"] else [None] * len(figures))))
    cuts, percentile = scan.summary["cut_off"], scan.summary["percentile"]
    very, cut_off = f"> {VERY:g}", f"difference above {cuts['max']:g}"
    if percentile is not None:
        text = ", ".join(f"{label} {cuts[name]:g}" for name, label in AGGREGATIONS.items())
        very, cut_off = "twice the cut-off", f"difference above percentile {percentile:g}: {text}"
    reasons = Column.numbers(",d", *present, above=("why, by the texts",))
    return Table(
        f"Judged documents that one version answers and the other, it seems, does not ({cut_off}).",
        (Column("set"), *Column.numbers(",d", "documents", very), *reasons),
        tuple(rows),
        notes=tuple(scan.summary["notes"]),
    )


def below_table(scan: Scan) -> Table:
    """The share of judged documents below 0.1, by version and aggregation (Figure 1)."""
    rows = []
    for name, one in scan.summary["below"].items():
        shares = (100 * one[aggregation]["share"] for aggregation in AGGREGATIONS)
        rows.append((name, one["documents"], *shares))
    return Table(
        f"Judged documents whose probability of being relevant is below {LOW:g}, in percent.",
        (*heads("version, documents:,d"), *Column.numbers(".2f", *AGGREGATIONS.values())),
        tuple(rows),
    )


def documents_table(scan: Scan) -> Table:
    """What the documents of the data sets are like (Table 2)."""
    rows: list[tuple[Cell, ...]] = []
    for name, one in scan.summary["documents"].items():
        urls = (one["path_length"], one["parameters"]) if one["with_url"] else (None, None)
        nearest = (one["similar"], one["similarity"]) if one["similar"] else (None, None)
        domain = (one["domain"], 100 * one["domain_share"]) if one["domain"] else (None, None)
        rows.append((name, one["documents"], *urls, *nearest, *domain))
    every = scan.summary["documents"][ALL]
    columns = heads(
        "set, documents:,d, URLs|path_length:.2f, URLs|parameters:.2f, most_similar_by_topics|set, "
        "most_similar_by_topics|Jaccard:.2f, most_frequent|domain, most_frequent|%:.2f"
    )
    note = (
        "URLs are those of the judged version, else of any other; "
        f"{every['documents'] - every['with_url']:,d} documents have none there."
    )
    return Table("The documents of the data sets.", columns, tuple(rows), (note,), rules=(len(rows) - 1,))


def scan_card(scan: Scan) -> str:
    """What the scan says, for the README of the judgments."""
    summary = scan.summary
    names = ", ".join(map(escape_markdown, scan.versions))
    return card(
        "Judgments and versions of the documents",
        f": {summary['compared']:,d} judged documents in the versions {names}, scored by "
        f"{escape_markdown(summary['ranker']['name'])} ({escape_markdown(summary['policy'])} passages).",
        sets_table(scan),
        below_table(scan) if summary["below"] else "",
        "These are candidates: 'truerank transfer estimate' says from judgments of a sample how many are errors.",
    )


def _verdicts(scan: Scan) -> Iterator[Verdict]:
    total = scan.summary["compared"]
    for better, worse, inside in scan.sides():
        counts = {label: int(inside[name].sum()) for name, label in AGGREGATIONS.items()}
        if scan.summary["evidence"] != "scores":
            counts[TEXTS] = int(inside[TEXTS].sum())
        flagged = inside.filter(pl.col("max") | pl.col(TEXTS))
        found = ", ".join(f"{count:,d} by {label}" for label, count in counts.items()) if len(inside) else "none"
        why = flagged["reason"].value_counts(sort=True).sort("count", "reason", descending=[True, False])
        yield Verdict(
            word="CHANGED" if len(inside) else "UNCHANGED",
            subject=worse,
            level="bad" if len(inside) else "good",
            sentence=f"Far less relevant than in {better}, of {total:,d} judged documents: {found}.",
            rests_on="; ".join(f"{reason}: {count:,d}" for reason, count in why.iter_rows()),
            share=len(flagged) / total,
        )


def _candidates(scan: Scan) -> Iterator[Part]:
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
    what = f"The {len(shown):,d} candidates with the largest differences or losses of {len(every):,d}."
    texts = (
        " On the left the passage that scores best in the better version, on the right the other one. Words that only "
        "one of the two texts has are underlined; dots mark another form of a word that both have."
    )
    yield Prose((f"{what}{texts if scan.texts else ''}",))
    pairs = list(_texts(scan, shown)) if scan.texts else []
    yield Listing(
        name="list",
        title="Judged documents and what became of them.",
        columns=tuple(_columns(shown, pairs)),
        nouns=("candidate", "candidates"),
        sort="-difference",
        compared=("better_text", "worse_text") if pairs else None,
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
    if pairs:
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


def _texts(scan: Scan, shown: pl.DataFrame) -> Iterator[tuple[str, str]]:
    opened = {name: DocumentTexts(path) for name, path in scan.texts.items()}
    policy = policy_named(scan.summary["policy"])
    for row in shown.iter_rows(named=True):
        better = opened[row["better"]].texts([row["better_id"]])[row["better_id"]]
        worse = opened[row["worse"]].texts([row["worse_id"]])[row["worse_id"]]
        passage = list(policy.cut(joined(*better)))[row["passage"]]
        yield _cut(passage, _PASSAGE_WORDS), _cut(joined(*worse), _TEXT_WORDS) or "(no text)"


def _cut(text: str, words: int) -> str:
    parts = text.split()
    return " ".join(parts[:words]) + (" …" if len(parts) > words else "")
