"""The leakage audit for people: a self-contained page with every pair, and a short text for the terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

import truerank
from truerank.audits.leakage.baseline import news_table
from truerank.audits.leakage.redaction import key_mark
from truerank.audits.leakage.results import AuditResult, FieldCount, Summary, TestSummary, Verdict, columns_read
from truerank.audits.leakage.seen import prefilter_parts, sensitivity_parts, short_sensitivity_tables
from truerank.reports.figures import histogram, precision_curve, stacked_histograms, to_svg
from truerank.reports.listings import Listing, ListingColumn
from truerank.reports.pages import Drawing, Facts, Finding, Page, Part, Prose, Section, Tone
from truerank.reports.tables import Cell, Column, Table
from truerank.text.normalising import normalise

__all__ = ["CalibrationCurve", "ReportExtras", "counts_table", "render", "to_text"]

_MEANINGS: Final[dict[Verdict, str]] = {
    "CONTAMINATED": (
        "A model trained on these sources has probably seen queries of this test set. Look at the pairs below before "
        "you believe a score: remove them from the training data, or report the topics with and without leaks apart."
    ),
    "CLEAN": (
        "Everything was read, and nothing that this audit can see is left unjudged. What it can see is measured: "
        "rewordings of these very topics were planted, and the table says which share of each kind would have been "
        "found."
    ),
    "UNKNOWN": (
        "This is not a clean result. Something was not looked at, not judged, or cannot be seen; do what is named here "
        "before you rely on this test set."
    ),
}
_TONES: Final[dict[Verdict, Tone]] = {"CONTAMINATED": "bad", "CLEAN": "good", "UNKNOWN": "open"}


def _sign(left: float, right: float, shared: str = "", dashes: str = "") -> str:
    """Training data and test set as two circles."""
    ring = 'cy="12" r="9" fill="none" stroke="currentColor" stroke-width="2"'
    return (
        f'<svg viewBox="0 0 44 24" aria-hidden="true">{shared}<circle cx="{left:g}" {ring}/>'
        f'<circle cx="{right:g}" {ring}{dashes}/></svg>'
    )


_SIGNS: Final[dict[Verdict, str]] = {
    "CONTAMINATED": _sign(16.5, 27.5, '<path d="M22 4.9a9 9 0 0 1 0 14.2a9 9 0 0 1 0-14.2z" fill="currentColor"/>'),
    "CLEAN": _sign(11, 33),
    "UNKNOWN": _sign(11, 33, dashes=' stroke-dasharray="3 2.7"'),
}
_FIELDS: Final = {
    "title": "Title",
    "description": "Description",
    "narrative": "Narrative",
    "variant": "Variants",
    "union": "Union",
}
_TYPES: Final = ("identical", "generalization", "specialization", "reformulation", "different topic")
_WIDEST_TABLE: Final = 12
_BELOW: Final = "words, letters"
_REDACTED: Final = ("", "—")


class CalibrationCurve(Protocol):
    """What the report shows of a calibration; `calibration.Calibration` has it."""

    @property
    def thresholds(self) -> ArrayLike: ...  # noqa: D102
    @property
    def precision(self) -> ArrayLike: ...  # noqa: D102
    @property
    def low(self) -> ArrayLike: ...  # noqa: D102
    @property
    def high(self) -> ArrayLike: ...  # noqa: D102
    @property
    def n(self) -> ArrayLike: ...  # noqa: D102
    @property
    def chosen(self) -> float | None: ...  # noqa: D102
    @property
    def encoder(self) -> str: ...  # noqa: D102
    @property
    def settings(self) -> Mapping[str, Any]: ...  # noqa: D102
    def text(self) -> str: ...  # noqa: D102


@dataclass(frozen=True, eq=False)
class ReportExtras:
    """What a report can show beside the audit itself.

    Args:
        calibration: the precision at each threshold, from labels.
        truth: precision and recall against a known truth, such as the planted leaks of the embedded sample.
        provenance: inputs with hashes, options, versions and seeds, as in `manifest.json`.
        baseline: what is new since an earlier audit.
    """

    calibration: CalibrationCurve | None = None
    truth: Table | None = None
    provenance: Mapping[str, Any] | None = None
    baseline: Table | None = None


_NO_EXTRAS: Final = ReportExtras()


def render(result: AuditResult, *, extras: ReportExtras = _NO_EXTRAS) -> str:
    """The audit as one HTML page that needs no network; the same audit and extras give the same text.

    Texts that were redacted (`--redact`) are left out of the table; their hashes stand in the saved file.

    Args:
        result: the audit.
        extras: what else to show.

    Returns:
        The page.
    """
    summary = result.summary
    tests = list(summary["tests"])
    sections = [
        Section("counts", "Topics and queries that leak", tuple(_counts(result))),
        Section("similarities", "How similar the nearest queries are", tuple(_similarities(result))),
        Section("sensitivity", "What this audit can see", tuple(sensitivity_parts(summary))),
        Section("trust", "How far to trust the threshold", tuple(_trust(summary, extras))),
        Section("sources", "What was read", tuple(_sources(summary))),
        Section("pairs", "Every pair", tuple(_pairs(result))),
    ]
    if extras.provenance:
        sections.append(
            Section("provenance", "Where this comes from", (Facts("Inputs, options and versions", extras.provenance),))
        )
    read = sum(count["read"] for count in summary["sources"].values())
    names = _listed(tests) if len(tests) <= 3 else f"{len(tests)} test sets"
    return Page(
        title=f"Leakage audit of {names}",
        kicker="truerank",
        lead=(
            f"{_tally(summary)}{read:,d} queries of {_counted(len(summary['sources']), 'training source')} against "
            f"{_test_items(summary)}, compared by "
            f"{summary['encoder']} above a cosine similarity of {summary['threshold']:g}."
        ),
        findings=tuple(_findings(summary)),
        sections=tuple(section for section in sections if section.parts),
        footer=(
            "Above the threshold means greater than it. A query is its normalised text: queries that differ in blanks "
            "or invisible characters only are one. This page asks the network for nothing.",
            f"truerank {truerank.__version__}",
        ),
    ).html()


def to_text(result: AuditResult, *, width: int = 100) -> str:
    """The verdicts and the table of counts for a terminal.

    Args:
        result: the audit.
        width: characters per line.

    Returns:
        Plain text that ends with a line end.
    """
    summary = result.summary
    blocks = []
    for name, test in summary["tests"].items():
        sentences = [test["why"], *_more(test, summary)]
        lines = textwrap.wrap(normalise(" ".join(sentences)), width - 4)
        blocks.append("\n".join([f"{test['verdict']}: {normalise(name)}", *(f"    {line}" for line in lines)]))
    if (warning := _calibrated_for(summary)) and not summary["calibrated"]:
        blocks.append("\n".join(textwrap.wrap(normalise(warning), width)))
    blocks += [table.text(width).rstrip("\n") for table in short_sensitivity_tables(summary)]
    blocks += ["\n".join(textwrap.wrap(normalise(line), width)) for line in columns_read(summary["sources"])]
    if any(test["fields"] for test in summary["tests"].values()):
        blocks.append(counts_table(summary).text(width).rstrip("\n"))
    if "baseline" in summary:
        blocks.append(news_table(summary["baseline"]).text(width).rstrip("\n"))
    return "\n\n".join(blocks) + "\n"


def counts_table(summary: Summary, tests: Sequence[str] | None = None) -> Table:
    """Topics and queries with a similarity above the threshold, by field and cumulative source.

    Args:
        summary: the audit's summary.
        tests: the test sets to show; None for all.

    Returns:
        Table 1 of the leakage paper.
    """
    chosen = {name: summary["tests"][name] for name in tests or summary["tests"]}
    groups: list[tuple[str, str, Mapping[str, FieldCount | None]]] = [
        (name, _shown(label), {field: counts.get(label) for field, counts in test["fields"].items()})
        for name, test in chosen.items()
        for label in _labels(test)
    ]
    lower: list[tuple[str, str, Mapping[str, FieldCount | None]]] = [
        (name, _BELOW, {**test["below"]["fields"]}) for name, test in chosen.items() if test["below"]["pairs"]
    ]
    groups = [group for name in chosen for group in (*groups, *lower) if group[0] == name]
    columns = [Column("Field")]
    columns += [Column(title, group[:2], "right", ",d") for group in groups for title in ("T", "Q")]
    present = dict.fromkeys(field for test in chosen.values() for field in test["fields"])
    fields = [field for field in [*_FIELDS, *present] if field in present]
    fields = [*(field for field in dict.fromkeys(fields) if field != "union"), *(f for f in ("union",) if f in present)]
    rows = []
    for field in fields:
        cells: list[Cell] = [_FIELDS.get(field, field)]
        for _, _, counted in groups:
            count = counted.get(field)
            cells += (0, 0) if count is None else (count["topics"], count["queries"])
        rows.append(tuple(cells))
    return Table(
        f"Topics (T) with training queries (Q) whose similarity to a text of the topic is above "
        f"{summary['threshold']:g}. Sources add up from left to right; the union counts a topic or query once."
        + (
            f" {_BELOW.capitalize()}: pairs not judged away at or below it with the same content words or nearly the "
            "same letters."
            if lower
            else ""
        ),
        tuple(columns),
        tuple(rows),
        rules=(len(rows) - 1,) if "union" in present else (),
    )


def _findings(summary: Summary) -> Iterator[Finding]:
    explained: set[Verdict] = set()
    for name, test in summary["tests"].items():
        verdict = test["verdict"]
        known = verdict != "UNKNOWN" and test["topics"] > 0
        yield Finding(
            subject=name,
            verdict=verdict,
            tone=_TONES[verdict],
            headline=test["why"],
            why=" ".join(_more(test, summary)),
            meaning="" if verdict in explained else _MEANINGS[verdict],
            share=len(test["leaked_topics"]) / test["topics"] if known else None,
            sign=_SIGNS[verdict],
        )
        explained.add(verdict)


def _more(test: TestSummary, summary: Summary) -> Iterator[str]:
    """What stands behind the reason of a verdict, in sentences."""
    labels = _labels(test)
    union = test["fields"].get("union", {}).get(labels[-1]) if labels else None
    if union is not None and union["queries"]:
        yield (
            f"{_counted(union['queries'], 'distinct training query', 'distinct training queries')} lie above "
            f"{summary['threshold']:g}."
        )
    if test["verdict"] == "CONTAMINATED":
        yield from test["evidence"]
    yield from test["settle"]


def _tally(summary: Summary) -> str:
    """How many test sets have which verdict, where there are several."""
    verdicts = [test["verdict"] for test in summary["tests"].values()]
    if len(verdicts) == 1:
        return ""
    found = [f"{verdicts.count(verdict)} {verdict.lower()}" for verdict in _MEANINGS if verdict in verdicts]
    return f"{_listed(found).capitalize()}. "


def _test_items(summary: Summary) -> str:
    tests = summary["tests"].values()
    noun = ("test query", "test queries") if {test.get("noun") for test in tests} == {"queries"} else ("test topic", "")
    return _counted(sum(test["topics"] for test in tests), *noun)


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
        (Column("Type"), *(Column(test, align="right", format=",d") for test in tests)),
        tuple((type_.capitalize(), *(counted.get((test, type_), 0) for test in tests)) for type_ in rows),
    )


def _similarities(result: AuditResult) -> Iterator[Part]:
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
    yield Drawing(to_svg(figure, name="nearest", description=f"{caption} Topics above it: {over}."), caption)
    values = _rounded(neighbours)
    figure = histogram(values, threshold=threshold, x_label=label, counted="pairs")
    caption = (
        f"All neighbours that were kept: up to {summary['top_k']:,d} training queries per topic text and source"
        f"{', of those that passed the prefilter' if summary['mode'] == 'prefilter' else ''}. "
        f"{int((values > threshold).sum()):,d} of {values.size:,d} pairs lie above the threshold."
    )
    yield Drawing(to_svg(figure, name="neighbours", description=caption), caption)


def _trust(summary: Summary, extras: ReportExtras) -> Iterator[Part]:
    if extras.truth is not None:
        yield extras.truth
    yield Prose((_calibrated_for(summary),))
    if extras.calibration is not None:
        yield from _calibration(extras.calibration)
    if summary["prefilter"] is not None:
        yield from prefilter_parts(summary["prefilter"])
    if extras.baseline is not None:
        yield extras.baseline
    given = {"truth": extras.truth, "baseline": extras.baseline, "labels": None}
    titles = {"truth": "Known truth", "baseline": "Since the baseline", "labels": "Judged by people"}
    for key, part in given.items():
        values = summary.get(key)
        if part is None and isinstance(values, Mapping) and values:
            yield Facts(titles[key], values)


def _calibrated_for(summary: Summary) -> str:
    threshold, source = f"{summary['threshold']:g}", summary["calibrated_for"]
    if summary["calibrated"]:
        return f"The threshold of {threshold} was calibrated for this encoder, {summary['encoder']}."
    origin = f" It was calibrated for {source}, whose similarities are on another scale." if source else ""
    return (
        f"The threshold of {threshold} is not calibrated for this encoder, {summary['encoder']}.{origin} Before you "
        "quote these counts, judge a sample of the pairs and run 'truerank leakage calibrate'."
    )


def _calibration(curve: CalibrationCurve) -> Iterator[Part]:
    numbers = np.asarray(curve.n)
    labels = int(numbers.max()) if numbers.size else 0
    yield Prose(tuple(line for line in curve.text().splitlines() if line))
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


def _sources(summary: Summary) -> Iterator[Part]:
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
        (Column("Source"), *(Column(title.capitalize(), align="right", format=",d") for title in counted)),
        tuple(rows),
        notes=(*notes, *columns_read(summary["sources"])),
    )


def _pairs(result: AuditResult) -> Iterator[Part]:
    summary, pairs = result.summary, result.candidates
    threshold, floor = summary["threshold"], summary["floor"]
    outside = pl.col("similarity") <= pl.lit(min(threshold, floor), pl.Float32)
    lower, pairs = pairs.filter(outside), pairs.filter(~outside)
    if not lower.is_empty():
        yield _words_listing(lower, threshold)
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
        columns=tuple(_columns(lower, start=None, redacted=redacted)),
        nouns=("pair", "pairs"),
        sort="-similarity",
        compared=None if redacted else ("topic_text", "query_text"),
        whole="candidates.parquet",
    )


def _columns(pairs: pl.DataFrame, *, start: float | None, redacted: bool) -> Iterator[ListingColumn]:
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
    yield ListingColumn("title_type", "Type against the title", texts("title_type"), kind="label", shown=False)


def _is_redacted(pairs: pl.DataFrame) -> bool:
    return all(text in _REDACTED or key_mark(text) for text in pairs["query_text"].fill_null("").unique())


def _rounded(frame: pl.DataFrame) -> Any:
    """Similarities to the six digits that they are stored with."""
    return np.round(frame["similarity"].to_numpy().astype(np.float64), 6)


def _labels(test: TestSummary) -> list[str]:
    return list(dict.fromkeys(label for counts in test["fields"].values() for label in counts))


def _shown(label: str) -> str:
    return f"+ {label[1:].lstrip()}" if label.startswith("+") else label


def _counted(number: int, noun: str, several: str = "") -> str:
    return f"{number:,d} {noun if number == 1 else several or noun + 's'}"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
