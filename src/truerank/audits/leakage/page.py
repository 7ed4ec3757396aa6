"""The page of an audit: its lead and its sections."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import polars as pl

from truerank.audits.leakage.calibration_results import Calibration
from truerank.audits.leakage.redaction import key_mark
from truerank.audits.leakage.results import AuditResult, AuditSummary, columns_read
from truerank.audits.leakage.seen import prefilter_parts, sensitivity_parts
from truerank.audits.leakage.summaries import calibration_lines
from truerank.audits.leakage.tables import counts_table, since_table
from truerank.reports.figures import Picture, histogram, precision_curve, stacked_histograms, to_svg
from truerank.reports.listings import Listing, ListingColumn
from truerank.reports.pages import Drawing, Facts, Part, Prose
from truerank.reports.report import ReportSection
from truerank.reports.tables import Cell, Column, Table
from truerank.text.listing import listed

_VERDICTS: Final = ("CONTAMINATED", "CLEAN", "UNKNOWN")
_TYPES: Final = ("identical", "generalization", "specialization", "reformulation", "different topic")
_WIDEST_TABLE: Final = 12
_REDACTED: Final = ("", "—")


def title(summary: AuditSummary) -> str:
    """The heading of the page."""
    tests = list(summary["tests"])
    names = listed(tests) if len(tests) <= 3 else f"{len(tests)} test sets"
    return f"Leakage audit of {names}"


def lead(summary: AuditSummary) -> str:
    """The sentence below the heading."""
    read = sum(count["read"] for count in summary["sources"].values())
    return (
        f"{_tally(summary)}{read:,d} queries of {counted(len(summary['sources']), 'training source')} against "
        f"{_test_items(summary)}, compared by "
        f"{summary['encoder']} above a cosine similarity of {summary['threshold']:g}."
    )


def sections(result: AuditResult, truth: Table | None = None) -> tuple[ReportSection, ...]:
    """The sections in reading order."""
    summary = result.summary
    similarities = tuple(_drawn(picture) for picture in similarity_pictures(result))
    return (
        ReportSection("counts", "Topics and queries that leak", tuple(_counts(result))),
        ReportSection("similarities", "How similar the nearest queries are", similarities),
        ReportSection("sensitivity", "What this audit can see", tuple(sensitivity_parts(summary))),
        ReportSection("trust", "How far to trust the threshold", tuple(_trust(result, truth))),
        ReportSection("sources", "What was read", tuple(_sources(summary))),
        ReportSection("pairs", "Every pair", tuple(_pairs(result))),
    )


def _tally(summary: AuditSummary) -> str:
    """How many test sets have which verdict, where there are several."""
    verdicts = [test["verdict"] for test in summary["tests"].values()]
    if len(verdicts) == 1:
        return ""
    found = [f"{verdicts.count(verdict)} {verdict.lower()}" for verdict in _VERDICTS if verdict in verdicts]
    return f"{listed(found).capitalize()}. "


def _test_items(summary: AuditSummary) -> str:
    tests = summary["tests"].values()
    noun = ("test query", "test queries") if {test.get("noun") for test in tests} == {"queries"} else ("test topic", "")
    return counted(sum(test["topics"] for test in tests), *noun)


def _counts(result: AuditResult) -> Iterator[Part]:
    summary = result.summary
    tests = [name for name, test in summary["tests"].items() if test["fields"]]
    if not tests:
        return
    whole = counts_table(summary, tests)
    if len(whole.columns) - 1 <= _WIDEST_TABLE:
        yield whole
    else:
        yield from (counts_table(summary, [name]) for name in tests)
    above = result.above()
    if above.height and (types := _types(above, tests)):
        yield types


def _types(above: pl.DataFrame, tests: Sequence[str]) -> Table | None:
    counted = {
        (test, type_): count
        for test, type_, count in above.group_by("test", "type").len().iter_rows()
        if type_ is not None and type_ != ""
    }
    found = {type_ for _, type_ in counted}
    rows = [type_ for type_ in _TYPES if type_ in found] + sorted(found.difference(_TYPES))
    if not rows:
        return None
    return Table(
        "Pairs above the threshold by proposed reformulation type. One query can pair with several texts of a topic.",
        (Column("Type"), *Column.numbers(",d", *tests)),
        tuple((type_.capitalize(), *(counted.get((test, type_), 0) for test in tests)) for type_ in rows),
    )


def _drawn(picture: Picture) -> Drawing:
    return Drawing(to_svg(picture.figure, name=picture.name, description=picture.caption), picture.caption)


def similarity_pictures(result: AuditResult) -> Iterator[Picture]:
    """How similar the nearest queries of all topics are, and all neighbours that were kept."""
    neighbours, summary = result.neighbours, result.summary
    if neighbours.is_empty():
        return
    threshold = summary["threshold"]
    nearest = neighbours.group_by("test", "topic_id").agg(pl.col("similarity").max()).sort("test", "topic_id")
    series = [(test, _rounded(nearest.filter(test=test))) for test in summary["tests"]]
    series = [(test, values) for test, values in series if values.size]
    label = "cosine similarity"
    figure = stacked_histograms(series, threshold=threshold, x_label=label, counted="topics")
    over = "; ".join(f"{test}: {int((values > threshold).sum())} of {values.size}" for test, values in series)
    caption = "Each topic once, by the similarity of its nearest training query. Hatched: above the threshold."
    yield Picture("nearest", f"{caption} Topics above it: {over}.", figure)
    values = _rounded(neighbours)
    figure = histogram(values, threshold=threshold, x_label=label, counted="pairs")
    caption = (
        f"All neighbours that were kept: up to {summary['top_k']:,d} training queries per topic text and source"
        f"{', of those that passed the prefilter' if summary['mode'] == 'prefilter' else ''}. "
        f"{int((values > threshold).sum()):,d} of {values.size:,d} pairs lie above the threshold."
    )
    yield Picture("neighbours", caption, figure)


def _trust(result: AuditResult, truth: Table | None) -> Iterator[Part]:
    summary = result.summary
    if truth is not None:
        yield truth
    yield Prose((calibrated_for(summary),))
    if result.calibration is not None:
        yield from _calibration(result.calibration)
    if summary["prefilter"] is not None:
        yield from prefilter_parts(summary["prefilter"])
    if "baseline" in summary:
        yield since_table(summary["baseline"])
    given = {"Known truth": None if truth else summary.get("truth"), "Judged by people": summary.get("labels")}
    for name, values in given.items():
        if isinstance(values, Mapping) and values:
            yield Facts(name, values)


def calibrated_for(summary: AuditSummary) -> str:
    """Whether the threshold was calibrated for the encoder, in sentences."""
    threshold, source = f"{summary['threshold']:g}", summary["calibrated_for"]
    if summary["calibrated"]:
        return f"The threshold of {threshold} was calibrated for this encoder, {summary['encoder']}."
    origin = f" It was calibrated for {source}, whose similarities are on another scale." if source else ""
    return (
        f"The threshold of {threshold} is not calibrated for this encoder, {summary['encoder']}.{origin} Before you "
        "quote these counts, judge a sample of the pairs and run 'truerank leakage calibrate'."
    )


def _calibration(curve: Calibration) -> Iterator[Part]:
    numbers = np.asarray(curve.n)
    labels = int(numbers.max()) if numbers.size else 0
    yield Prose(tuple(line for line in calibration_lines(curve) if line))
    if not labels:
        return
    figure = precision_curve(
        curve.thresholds,
        curve.precision,
        curve.low,
        curve.high,
        labels=labels,
        target=curve.settings.get("min_precision"),
        chosen=curve.chosen,
    )
    band = "one-sided bounds" if curve.settings.get("rule") == "lower-bound" else "interval"
    caption = f"Share of true leaks among the pairs above each threshold, with its {band}."
    chosen = "no threshold is supported" if curve.chosen is None else f"the chosen threshold is {curve.chosen:g}"
    yield Drawing(to_svg(figure, name="precision", description=f"{caption} {labels} labels; {chosen}."), caption)


def _sources(summary: AuditSummary) -> Iterator[Part]:
    counted = ("read", "distinct", "empty", "repaired", "skipped")
    estimated = any(count["distinct_estimated"] for count in summary["sources"].values())
    notes = ["Repaired: bytes that were not UTF-8, read as Latin-1. Skipped: records that could not be read."]
    if estimated:
        notes.append("Numbers of distinct queries with a ≈ are estimates.")
    rows = []
    for name, count in summary["sources"].items():
        distinct: Cell = f"≈ {count['distinct']:,d}" if count["distinct_estimated"] else count["distinct"]
        rows.append((name, count["read"], distinct, count["empty"], count["repaired"], count["skipped"]))
    yield Table(
        "Training queries by source.",
        (Column("Source"), *Column.numbers(",d", *(title.capitalize() for title in counted))),
        tuple(rows),
        notes=(*notes, *columns_read(summary["sources"])),
    )


def _pairs(result: AuditResult) -> Iterator[Part]:
    summary, pairs = result.summary, result.candidates
    threshold, floor = summary["threshold"], summary["floor"]
    outside = pl.col("similarity") <= pl.lit(min(threshold, floor), pl.Float32)
    lower, pairs = pairs.filter(outside), pairs.filter(~outside)
    if not lower.is_empty():
        yield _words_listing(lower.sort("shared", nulls_last=True, maintain_order=True), threshold)
    if pairs.is_empty():
        yield Prose((f"No training query has a similarity above {min(threshold, floor):g} to a text of a topic.",))
        return
    redacted = _is_redacted(pairs)
    paragraphs = []
    if redacted:
        paragraphs.append(
            "Texts are redacted: topics and queries are named by their ids. In the saved file keyed hashes stand for "
            "the texts; the same text has the same hash."
        )
    else:
        paragraphs.append(
            "Words that only one of the two texts has are underlined; dots mark another form of a word that both have."
        )
    if floor < threshold:
        paragraphs.append(
            f"Pairs from {floor:g} on are kept for calibration; the list begins with those above {threshold:g}."
        )
    yield Prose(tuple(paragraphs))
    yield Listing(
        name="list",
        title="Topics and the training queries that are similar to them.",
        columns=tuple(_columns(pairs, start=threshold if floor < threshold else None, redacted=redacted)),
        nouns=("pair", "pairs"),
        sort="-similarity",
        compared=None if redacted else ("topic_text", "query_text"),
        whole="candidates.parquet",
    )


def _words_listing(lower: pl.DataFrame, threshold: float) -> Listing:
    redacted = _is_redacted(lower)
    return Listing(
        name="words",
        title=f"Pairs at or below {threshold:g} with the same content words or nearly the same letters.",
        columns=tuple(_columns(lower, start=None, redacted=redacted, weak=True)),
        nouns=("pair", "pairs"),
        sort="shared",
        compared=None if redacted else ("topic_text", "query_text"),
        whole="candidates.parquet",
    )


def _columns(
    pairs: pl.DataFrame, *, start: float | None, redacted: bool, weak: bool = False
) -> Iterator[ListingColumn]:
    def texts(name: str) -> list[str]:
        return pairs[name].fill_null("").to_list()

    fields, numbers = texts("field"), pairs["variant_no"].to_list()
    named = [f"{field} {number}" if number else field for field, number in zip(fields, numbers, strict=True)]
    several = pairs["test"].n_unique() > 1
    yield ListingColumn("test", "Test set", texts("test"), kind="label", filter="choose", shown=several)
    yield ListingColumn("topic_id", "Topic", texts("topic_id"), kind="label", filter="choose", searched=redacted)
    yield ListingColumn("text", "Field", named, kind="label", exported=False)
    yield ListingColumn("field", "Field", fields, kind="label", filter="choose", shown=False)
    yield ListingColumn("variant_no", "Variant", numbers, kind="number", digits=0, shown=False)
    yield ListingColumn("topic_text", "Topic text", texts("topic_text"), shown=not redacted, searched=not redacted)
    yield ListingColumn("query_text", "Training query", texts("query_text"), shown=not redacted, searched=not redacted)
    yield ListingColumn("source", "Source", texts("source"), kind="label", filter="choose")
    yield ListingColumn("query_id", "Query id", texts("query_id"), kind="code", searched=redacted)
    similarity = _rounded(pairs).tolist()
    yield ListingColumn("similarity", "Similarity", similarity, kind="number", filter="above", start=start)
    yield ListingColumn("rank", "Rank", pairs["rank"].to_list(), kind="number", digits=0, shown=False)
    yield ListingColumn("type", "Type", texts("type"), kind="label", filter="choose")
    yield ListingColumn("evidence", "Evidence", texts("evidence"), kind="label", filter="choose")
    # Pairs without a shared word are the weakest.
    shared = pairs["shared"].fill_null(1.0).round(6).to_list()
    yield ListingColumn("shared", "Texts with the rarest shared word", shared, kind="number", shown=weak)
    yield ListingColumn("title_type", "Type against the title", texts("title_type"), kind="label", shown=False)


def _is_redacted(pairs: pl.DataFrame) -> bool:
    return all(text in _REDACTED or key_mark(text) for text in pairs["query_text"].fill_null("").unique())


def _rounded(frame: pl.DataFrame) -> Any:
    """Similarities to the six digits that they are stored with."""
    return np.round(frame["similarity"].to_numpy().astype(np.float64), 6)


def counted(number: int, noun: str, several: str = "") -> str:
    """A number with its noun."""
    return f"{number:,d} {noun if number == 1 else several or noun + 's'}"
