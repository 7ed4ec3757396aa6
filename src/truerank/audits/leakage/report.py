"""The leakage audit for people: tables, a page with every pair, a text for the terminal, its files, and SARIF."""

from __future__ import annotations

import contextlib
import functools
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import polars as pl

from truerank.audits.leakage.baseline import since_baseline
from truerank.audits.leakage.calibration import Calibration
from truerank.audits.leakage.documents.report import document_sections, short_kinds_table
from truerank.audits.leakage.estimate import NOTHING_CLAIMED
from truerank.audits.leakage.kinds import kind_named, kinds_of
from truerank.audits.leakage.redaction import key_mark
from truerank.audits.leakage.results import (
    AuditResult,
    AuditSummary,
    FieldCount,
    PrefilterRecall,
    TestSummary,
    VerdictWord,
    columns_read,
)
from truerank.audits.leakage.summaries import calibration_lines
from truerank.core.figures import Picture, histogram, precision_curve, stacked_histograms, to_svg
from truerank.core.figures.heat_maps import value_map
from truerank.core.listings import Listing, ListingColumn
from truerank.core.page import Drawing, Facts, Part, Prose
from truerank.core.report import Report, ReportSection, found_json, found_section
from truerank.core.result import Summary, reports, summarises, writes
from truerank.core.rules import Finding, Rule, rules_of
from truerank.core.sarif import MOST_FINDINGS, sarif
from truerank.core.tables import Cell, Column, Table, card, escape_markdown
from truerank.core.verdict import Verdict
from truerank.core.views import heads
from truerank.errors import InputError, OptionError
from truerank.records import Input
from truerank.sources import open_queries, parse
from truerank.text.normalising import normalise
from truerank.text.printable import counted, listed
from truerank.text.wording import EVIDENCE
from truerank.vectors.encoders.base import WordsOnly
from truerank.work.runs import Run

_RULES: Final = rules_of("truerank.audits.leakage", Rule)
#: Files that are read once more for the lines of what was found; larger ones are not part of a change.
_LARGEST: Final = 16 << 20
_KEY: Final = ("test", "topic_id", "source", "query_id")


def review(result: AuditResult, inputs: Sequence[Input]) -> str:
    """The audit as SARIF: each leaking training query where it stands; with a baseline, only those that are new."""
    places = {(one.role, one.name): one.source or one.name for one in inputs}
    baseline = next((one.source for one in inputs if one.role == "baseline"), None)
    names = ", ".join(one.name for one in inputs if one.role in ("train", "test"))
    kinds = _pairs(result, baseline)
    pairs = (one for rule, rows in kinds for one in _shown(rule, rows.head(MOST_FINDINGS), places))
    unlisted = sum(max(len(rows) - MOST_FINDINGS, 0) for _, rows in kinds)
    unknown = (
        Finding(_RULES["unknown-verdict"], f"{name}: {about['sentence']}", places.get(("test", name), name), 0, name)
        for name, about in result.summary["tests"].items()
        if about["verdict"] == "UNKNOWN"
    )
    return sarif(f"leakage audit of {names}", [*_RULES.values()], [*pairs, *unknown], unlisted=unlisted)


def _pairs(result: AuditResult, baseline: str | None) -> tuple[tuple[str, pl.DataFrame], ...]:
    """The pairs of each rule, one row for each training query and topic."""
    certain = result.leaking() if baseline is None else since_baseline(result, baseline).new
    possible = result.candidates.filter(standing="doubt").sort("shared", nulls_last=True, maintain_order=True)
    return tuple(
        (rule, rows.unique(_KEY, keep="first", maintain_order=True))
        for rule, rows in (("leaked-topic", certain), ("possible-leak", possible))
    )


def _rule_counts(result: AuditResult) -> dict[Rule, int]:
    """How often each rule was found; labels count, a baseline does not."""
    unknown = sum(about["verdict"] == "UNKNOWN" for about in result.summary["tests"].values())
    kinds = {kind_named(one.kind): one.pairs for test in result.summary["tests"] for one in kinds_of(result, test)}
    found = {_RULES[rule]: len(rows) for rule, rows in _pairs(result, None)}
    return found | {_RULES["unknown-verdict"]: unknown} | kinds


def _shown(rule: str, rows: pl.DataFrame, places: Mapping[tuple[str, str], str]) -> Iterator[Finding]:
    lines = _lines(rows, places)
    verb = "is" if rule == "leaked-topic" else "may be"
    for row in rows.iter_rows(named=True):
        evidence = row["evidence"].replace("+", ", ")
        yield Finding(
            _RULES[rule],
            f"“{row['query_text']}” {verb} topic {row['topic_id']} of {row['test']}: “{row['topic_text']}” "
            f"(similarity {row['similarity']:.3f}{evidence and '; '}{evidence})",
            places.get(("train", row["source"]), row["source"]),
            lines.get((row["source"], row["query_id"]), 0),
            "\0".join(row[name] for name in _KEY),
        )


def _lines(rows: pl.DataFrame, places: Mapping[tuple[str, str], str]) -> dict[tuple[str, str], int]:
    """The lines of training queries, by source and id, where the source is a file of moderate size."""
    found: dict[tuple[str, str], int] = {}
    for (name,), some in rows.group_by("source", maintain_order=True):
        place = places.get(("train", str(name)), "")
        spec = parse(place) if place else None
        if spec is not None and spec.scheme == "file" and spec.path.is_file() and spec.path.stat().st_size <= _LARGEST:
            with contextlib.suppress(InputError):  # it was removed or changed since it was read
                lines = open_queries(spec).lines_of(set(some["query_id"]))
                found |= {(str(name), query_id): line for query_id, line in lines.items()}
    return found


_FIELDS: Final = {
    "title": "Title",
    "description": "Description",
    "narrative": "Narrative",
    "variant": "Variants",
    "union": "Union",
}
#: Signs of a line in a terminal.
_WIDTH: Final = 100


def sensitivity_parts(summary: AuditSummary) -> Iterator[Part]:
    """What the page says of the sensitivity check, and the converse."""
    tables = kind_tables(summary)
    if not tables:
        return
    yield Prose(
        (
            "Rewordings of these topics were planted and compared with the same encoder, threshold and evidence; they "
            "are written nowhere. Found: the plant would be a leak or in doubt. Pairs with the same words are not "
            f"compared by letters. {NOTHING_CLAIMED}",
        )
    )
    yield from tables
    yield Table(
        "The converse: topic texts for which the audit would propose another topic of the same test set.",
        (*heads("Test_set, Field, Texts:,d, Proposed:,d, Share:.1%"), *_BY),
        tuple(
            (name, _FIELDS[field], row["texts"], row["proposed"], row["share"], *(row["by"][by] for by in EVIDENCE))
            for name, test in summary["tests"].items()
            for field, row in test["other_topics"].items()
        ),
    )


_BY: Final = Column.numbers(",d", *(name.capitalize() for name in EVIDENCE), above=("By",))


def kind_tables(summary: AuditSummary) -> list[Table]:
    """By test set, what was planted and found of each kind of change, and what the verdict claims of it."""
    return [
        Table(
            f"Planted changes of {name}, and what the verdict claims.",
            heads("Kind, Planted:,d, Found:,d, Claimed"),
            tuple((one["kind"], one["planted"], one["found"], one["claimed"]) for one in kinds),
        )
        for name, test in summary["tests"].items()
        if (kinds := test.get("kinds"))
    ]


def cells_table(summary: AuditSummary) -> Table:
    """Every training source against every test set."""
    names = ("train", "test", "verdict", "looked_for", "leaked", "doubtful", "texts")
    return Table(
        "What matches, by training source and test set.",
        heads("Training, Test_set, Verdict, Looked_for:,d, Leaked:,d, In_doubt:,d, Training_queries:,d"),
        tuple(tuple(cell[name] for name in names) for cell in summary["cells"]),
    )


def _cells(summary: AuditSummary) -> Iterator[Part]:
    cells = pl.DataFrame(summary["cells"])
    if len(cells) < 2:
        return
    trains, tests = (cells[name].unique(maintain_order=True).to_list() for name in ("train", "test"))
    if len(trains) > 1 and len(tests) > 1:
        shares = np.full((len(trains), len(tests)), np.nan)
        worst = cells.group_by("train", "test").agg(pl.max_horizontal(pl.col("leaked") / pl.col("looked_for"), 0).max())
        for train, test, share in worst.iter_rows():
            shares[trains.index(train), tests.index(test)] = share
        caption = "The share of each test set that leaks from each training source."
        yield Drawing(to_svg(value_map(trains, tests, shares), name="matrix", description=caption), caption)
    yield cells_table(summary)


def prefilter_parts(recall: PrefilterRecall) -> Iterator[Part]:
    """What the page says of the prefilter: its recall, and by topic text and form of the training text."""
    cuts = ", ".join(f"{cut:g} for {field}" for field, cut in recall["cuts"].items())
    worst = recall.get("unmodelled_low")
    basis = f"{recall['sampled']:,d} dropped texts that were encoded after all"
    if recall["recall"] is None:
        found = f"neither the texts that passed nor {basis} have a pair above the threshold"
        share = f"Its recall cannot be estimated: {found}."
    else:
        share = (
            f"Its recall is {recall['recall']:.4f} (95% interval {recall['low']:.4f} to {recall['high']:.4f}"
            f"{'' if worst is None else f'; {worst:.4f} if nothing is assumed about texts that were not sampled'}), "
            f"estimated from {basis}, {recall['missed_in_sample']:,d} of them leaks, and {recall['true_pairs']:,d} "
            "pairs found."
        )
    yield Prose((f"A prefilter ran before the encoder (cuts: {cuts}); {recall['passed']:,d} texts passed it. {share}",))
    rows = [row for row in recall["by"] if row["recall"] is not None]
    if rows:
        yield Table(
            "The prefilter's recall by topic text and form of the training text, with its 95% interval.",
            heads("Field, Training_text, Pairs:d, Recall:.3f, From:.3f, To:.3f"),
            tuple(
                (_FIELDS[row["field"]], row["form"], row["true_pairs"], row["recall"], row["low"], row["high"])
                for row in rows
            ),
        )


_BELOW: Final = "in doubt"
#: Training queries that are listed of each text of a topic.
_NEAREST: Final = 10
_SHOWN: Final = ("test", "topic_id", "field", "source", "query_id", "query_text", "similarity")


def counts_table(summary: AuditSummary, tests: Sequence[str] | None = None) -> Table:
    """Topics and queries that leak, by field and cumulative source."""
    chosen = {name: summary["tests"][name] for name in tests or summary["tests"]}
    groups: list[tuple[str, str, Mapping[str, FieldCount | None]]] = [
        (
            name,
            label if label[0] != "+" else f"+ {label[1:].lstrip()}",
            {field: counts.get(label) for field, counts in test["fields"].items()},
        )
        for name, test in chosen.items()
        for label in labels_of(test)
    ]
    lower: list[tuple[str, str, Mapping[str, FieldCount | None]]] = [
        (name, _BELOW, {**test["doubts"]["fields"]}) for name, test in chosen.items() if test["doubts"]["pairs"]
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
        for _, _, by_field in groups:
            count = by_field.get(field)
            cells += (0, 0) if count is None else (count["topics"], count["queries"])
        rows.append(tuple(cells))
    return Table(
        "Topics (T) that match a training query (Q). Sources add up from left to right; the union counts a topic or "
        f"query once.{f' {_BELOW.capitalize()}: pairs that people have to judge.' if lower else ''}",
        tuple(columns),
        tuple(rows),
        rules=(len(rows) - 1,) if "union" in present else (),
    )


def since_table(baseline: Mapping[str, Any]) -> Table:
    """What is new, known and gone by test set, from `summary.json` under "baseline"."""
    return Table(
        title="Leaking pairs since the baseline.",
        columns=heads("test_set, new_pairs:,d, new_topics:,d, new_queries:,d, known_pairs:,d, gone:,d"),
        rows=tuple(
            (name, news["pairs"], len(news["topics"]), news["queries"], news["known"], news["gone"])
            for name, news in baseline["tests"].items()
        ),
        notes=tuple(baseline["warnings"]),
    )


def news_table(baseline: Mapping[str, Any]) -> Table:
    """The new pairs, as `summary.json` has them under "baseline", with their number."""
    pairs, left_out = baseline["pairs"], baseline["pairs_left_out"]
    count = len(pairs) + left_out
    notes = (f"{left_out:,d} more new pairs are left out; all pairs are in candidates.parquet.",) if left_out else ()
    return Table(
        title=f"{count:,d} {'pair is' if count == 1 else 'pairs are'} new since the baseline.",
        columns=heads("test_set, topic, field, source, query_id, training_query, similarity:.4f"),
        rows=tuple(tuple(pair[name] for name in _SHOWN) for pair in pairs),
        notes=(*notes, *baseline["warnings"]),
    )


def neighbours_table(result: AuditResult, topic_id: str) -> Table:
    """The nearest training queries of a topic, by test set and text."""
    found = result.neighbours.filter(pl.col("topic_id") == topic_id)
    if found.is_empty():
        known = result.neighbours["topic_id"].unique(maintain_order=True).head(5).to_list()
        remedy = f"topic ids look like {', '.join(known) or '(none)'}"
        raise OptionError("topic", f"no neighbours of a topic '{topic_id}'", remedy)
    text = ["test", "field", "variant_no", "topic_text"]
    ordered = found.with_row_index("place").sort(
        [pl.col("place").min().over(text), "similarity", "place"], descending=[False, True, False]
    )
    nearest = ordered.group_by(text, maintain_order=True).head(_NEAREST)
    names = ("test", "field", "topic_text", "similarity", "query_text", "source", "query_id")
    return Table(
        title=f"Nearest training queries of topic {topic_id}",
        columns=tuple(Column(name) if name != "similarity" else Column(name, (), "right", ".3f") for name in names),
        rows=tuple(nearest.select(names).iter_rows()),
    )


def labels_of(test: TestSummary) -> list[str]:
    """The labels of the cumulative sources of a test set."""
    return list(dict.fromkeys(label for counts in test["fields"].values() for label in counts))


_TYPES: Final = ("identical", "generalization", "specialization", "reformulation", "different topic")
_WIDEST_TABLE: Final = 12
_REDACTED: Final = ("", "—")


def _lead(summary: AuditSummary) -> str:
    read = sum(count["read"] for count in summary["sources"].values())
    tests = summary["tests"].values()
    words = [test["verdict"] for test in tests]
    # How many test sets have which verdict, where there are several.
    tally = listed([f"{words.count(word)} {word.lower()}" for word in _MEANINGS if word in words]).capitalize()
    above = f" above a cosine similarity of {summary['threshold']:g}" if has_encoder(summary) else ""
    noun = ("test query", "test queries") if {test.get("noun") for test in tests} == {"queries"} else ("test topic", "")
    return (
        f"{f'{tally}. ' if len(tests) > 1 else ''}{read:,d} queries of "
        f"{counted(len(summary['sources']), 'training source')} against "
        f"{counted(sum(test['topics'] for test in tests), *noun)}, compared by {summary['encoder']}"
        f"{above}."
    )


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
    above = result.leaking()
    if above.height and (types := _types(above, tests)):
        yield types


def _types(above: pl.DataFrame, tests: Sequence[str]) -> Table | None:
    counted = {(test, kind): count for test, kind, count in above.group_by("test", "type").len().iter_rows() if kind}
    found = {type_ for _, type_ in counted}
    rows = [type_ for type_ in _TYPES if type_ in found] + sorted(found.difference(_TYPES))
    if not rows:
        return None
    return Table(
        "Leaking pairs by proposed reformulation type. One query can pair with several texts of a topic.",
        (Column("Type"), *Column.numbers(",d", *tests)),
        tuple((type_.capitalize(), *(counted.get((test, type_), 0) for test in tests)) for type_ in rows),
    )


#: Fewer pairs have no distribution.
_FEWEST_DRAWN: Final = 20


def similarity_pictures(result: AuditResult) -> Iterator[Picture]:
    """How similar the nearest queries of all topics are, and all neighbours that were kept."""
    neighbours, summary = result.neighbours, result.summary
    if len(neighbours) < _FEWEST_DRAWN or not has_encoder(summary):
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


def _trust(result: AuditResult) -> Iterator[Part]:
    summary = result.summary
    if note := calibrated_for(summary):
        yield Prose((note,))
    if result.calibration is not None:
        yield from _calibration(result.calibration)
    if summary["prefilter"] is not None:
        yield from prefilter_parts(summary["prefilter"])
    if "baseline" in summary:
        yield since_table(summary["baseline"])
    if summary.get("labels"):
        yield Facts("Judged by people", summary["labels"])


def has_encoder(summary: AuditSummary) -> bool:
    return summary["encoder"] != WordsOnly.name


def calibrated_for(summary: AuditSummary) -> str:
    """Whether the threshold was calibrated for the encoder, in sentences; empty where there is none."""
    if not has_encoder(summary):
        return ""
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
        heads("Source, Read:,d, Distinct:,d, Empty:,d, Repaired:,d, Skipped:,d"),
        tuple(rows),
        notes=(*notes, *columns_read(summary["sources"])),
    )


def _pair_parts(result: AuditResult) -> Iterator[Part]:
    summary, pairs = result.summary, result.candidates
    threshold, floor = summary["threshold"], summary["floor"]
    doubts, pairs = pairs.filter(standing="doubt"), pairs.filter(pl.col("standing") != "doubt")
    if not doubts.is_empty():
        title = (
            "Pairs in doubt: few content words, nearly the same letters, a whole topic inside a longer query, or one "
            "other number."
        )
        yield _pair_listing(doubts.sort("shared", nulls_last=True, maintain_order=True), "doubts", title, "shared")
    if pairs.is_empty():
        yield Prose(("No training query matches a text of a topic.",))
        return
    texts = "Words that only one of the two texts has are underlined; dots mark another form of a word that both have."
    if _is_redacted(pairs):
        texts = (
            "Texts are redacted: topics and queries are named by their ids. In the saved file keyed hashes stand for "
            "the texts; the same text has the same hash."
        )
    kept = f"Pairs from {floor:g} on are kept for calibration; the list begins with those above {threshold:g}."
    yield Prose((texts, kept) if floor < threshold else (texts,))
    title = "Topics and the training queries that are similar to them."
    yield _pair_listing(pairs, "list", title, "-similarity", start=threshold if floor < threshold else None)


def _pair_listing(pairs: pl.DataFrame, name: str, title: str, sort: str, *, start: float | None = None) -> Listing:
    redacted = _is_redacted(pairs)
    return Listing(
        name=name,
        title=title,
        columns=tuple(_columns(pairs, start=start, redacted=redacted, weak=name == "doubts")),
        nouns=("pair", "pairs"),
        sort=sort,
        compared=None if redacted else ("topic_text", "query_text"),
        whole="candidates.parquet",
    )


def _columns(pairs: pl.DataFrame, *, start: float | None, redacted: bool, weak: bool) -> Iterator[ListingColumn]:
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
    yield ListingColumn("standing", "Standing", texts("standing"), kind="label", filter="choose")
    yield ListingColumn("evidence", "Evidence", texts("evidence"), kind="label", filter="choose")
    yield ListingColumn("differs", "Differs in", texts("differs"), kind="label", filter="choose")
    # Pairs without a shared word are the weakest.
    shared = pairs["shared"].fill_null(1.0).round(6).to_list()
    yield ListingColumn("shared", "Texts with the rarest shared word", shared, kind="number", shown=weak)
    yield ListingColumn("title_type", "Type against the title", texts("title_type"), kind="label", shown=False)


def _is_redacted(pairs: pl.DataFrame) -> bool:
    return all(text in _REDACTED or key_mark(text) for text in pairs["query_text"].fill_null("").unique())


def _rounded(frame: pl.DataFrame) -> Any:
    """Similarities to the six digits that they are stored with."""
    return np.round(frame["similarity"].to_numpy().astype(np.float64), 6)


_MEANINGS: Final[dict[VerdictWord, str]] = {
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
        "This is not a clean result. Something was not compared, was not judged, or cannot be seen; do what is named "
        "here before you rely on this test set."
    ),
}


def _sign(left: float, right: float, shared: str = "", dashes: str = "") -> str:
    """Training data and test set as two circles."""
    ring = 'cy="12" r="9" fill="none" stroke="currentColor" stroke-width="2"'
    return (
        f'<svg viewBox="0 0 44 24" aria-hidden="true">{shared}<circle cx="{left:g}" {ring}/>'
        f'<circle cx="{right:g}" {ring}{dashes}/></svg>'
    )


SIGNS: Final[dict[VerdictWord, str]] = {
    "CONTAMINATED": _sign(16.5, 27.5, '<path d="M22 4.9a9 9 0 0 1 0 14.2a9 9 0 0 1 0-14.2z" fill="currentColor"/>'),
    "CLEAN": _sign(11, 33),
    "UNKNOWN": _sign(11, 33, dashes=' stroke-dasharray="3 2.7"'),
}


@summarises(AuditResult)
def _summary(result: AuditResult) -> Summary:
    parts, tables = list(_parts(result)), [neighbours_table(result, topic) for topic in result.topics]
    shown = _json(result)
    if tables:
        shown["neighbours"] = {
            topic: [dict(zip((column.title for column in table.columns), row, strict=True)) for row in table.rows]
            for topic, table in zip(result.topics, tables, strict=True)
        }
    notes = () if result.folder is None else (f"report: {result.folder / 'report.html'}", *result.left_over)
    pictures = functools.partial(similarity_pictures, result)
    return Summary(
        (*parts, *tables), shown, tuple(_that_count(result.summary)), notes, width=_WIDTH, pictures=pictures,
        details=tuple(_details(result)),
    )  # fmt: skip


@reports(AuditResult)
def _report(result: AuditResult) -> Report:
    summary = result.summary
    tests = list(summary["tests"])
    similarities = tuple(
        Drawing(to_svg(picture.figure, name=picture.name, description=picture.caption), picture.caption)
        for picture in similarity_pictures(result)
    )
    return Report(
        title=f"Leakage audit of {listed(tests) if len(tests) <= 3 else f'{len(tests)} test sets'}",
        lead=_lead(summary),
        verdicts=tuple(_verdicts(summary)),
        sections=(
            ReportSection("counts", "Topics and queries that leak", tuple(_counts(result))),
            ReportSection("matrix", "Every training source against every test set", tuple(_cells(summary))),
            found_section(_rule_counts(result)),
            ReportSection("similarities", "How similar the nearest queries are", similarities),
            ReportSection("sensitivity", "What this audit can see", tuple(sensitivity_parts(summary))),
            ReportSection("trust", "How far to trust the threshold", tuple(_trust(result))),
            ReportSection("sources", "What was read", tuple(_sources(summary))),
            ReportSection("pairs", "Every pair", tuple(_pair_parts(result))),
            *document_sections(result),
        ),
        json=summary,
        footer=(
            "Above the threshold means greater than it. A query is its normalised text: queries that differ in blanks "
            "or invisible characters only are one. This page needs no network.",
        ),
    )


def _json(result: AuditResult) -> dict[str, Any]:
    """What `summary.json` and `--json` have."""
    about = result.summary
    facts = {"encoder": about["encoder"], "threshold": about["threshold"], "mode": about["mode"]}
    return {**about, "findings": found_json(_rule_counts(result)), "facts": facts}


@writes(AuditResult)
def _write(result: AuditResult, job: Run) -> None:
    job.parquet("candidates.parquet", result.candidates)
    job.parquet("neighbours.parquet", result.neighbours)
    job.parquet("leaks.parquet", result.leaks)
    job.parquet("templates.parquet", result.templates)
    job.json("summary.json", _json(result))
    job.text("findings.sarif", review(result, job.inputs))
    job.text("card.md", leakage_card(result))
    job.text("report.html", render(result, job.provenance(), job.names()))


def render(result: AuditResult, provenance: Mapping[str, Any] | None = None, files: Iterable[str] = ()) -> str:
    """The audit as one HTML page that needs no network; the same audit gives the same text.

    Texts that were redacted (`--redact`) are left out of the table; their hashes are in the saved file.
    """
    page = _report(result).page(no_picture, provenance or {}, files)
    return (page if provenance else replace(page, sections=page.sections[:-1])).html()


def no_picture(picture: Any) -> str:
    raise TypeError("the figures of this page are drawn already")


def _parts(result: AuditResult) -> Iterator[Table | str]:
    summary = result.summary
    for name, test in summary["tests"].items():
        lines = textwrap.wrap(normalise(" ".join([test["sentence"], *test["settle"]])), _WIDTH - 4)
        yield "\n".join([f"{test['verdict']}: {normalise(name)}", *(f"    {line}" for line in lines)])
    for line in columns_read(summary["sources"]):
        yield "\n".join(textwrap.wrap(normalise(line), _WIDTH))
    if len(summary["sources"]) > 1 and len(summary["tests"]) > 1:
        yield cells_table(summary)
    elif any(test["leaked_topics"] or test["doubts"]["pairs"] for test in summary["tests"].values()):
        yield counts_table(summary)
    if any(about.get("document_kinds") for about in summary["tests"].values()):
        yield short_kinds_table(result)
    if "baseline" in summary:
        yield news_table(summary["baseline"])


def _details(result: AuditResult) -> Iterator[Table | str]:
    """What stands behind the verdicts."""
    summary = result.summary
    for name, test in summary["tests"].items():
        if notes := [*_more(test, summary), *test["notes"]]:
            yield "\n".join(textwrap.wrap(normalise(f"{name}: {' '.join(notes)}"), _WIDTH))
    if warning := calibrated_for(summary):
        yield "\n".join(textwrap.wrap(normalise(warning), _WIDTH))
    yield from kind_tables(summary)


def _verdicts(summary: AuditSummary) -> Iterator[Verdict]:
    explained: set[VerdictWord] = set()
    for name, test in summary["tests"].items():
        word = test["verdict"]
        known = word != "UNKNOWN" and test["topics"] > 0
        yield Verdict(
            word=word,
            sentence=test["sentence"],
            rests_on=" ".join([*test["settle"], *_more(test, summary), *test["notes"]]),
            settles="" if word in explained else _MEANINGS[word],
            subject=name,
            share=len(test["leaked_topics"]) / test["topics"] if known else None,
            sign=SIGNS[word],
        )
        explained.add(word)


def _that_count(summary: AuditSummary) -> Iterator[Verdict]:
    """What `--fail-on` looks at: with a baseline, a test set is contaminated by what is new only."""
    new = summary.get("baseline")
    for verdict in _verdicts(summary):
        if new is None:
            yield verdict
        elif new["tests"][verdict.subject]["pairs"]:
            yield replace(verdict, word="CONTAMINATED")
        else:
            yield replace(verdict, word="UNKNOWN" if verdict.word == "UNKNOWN" else "CLEAN")


def _more(test: TestSummary, summary: AuditSummary) -> Iterator[str]:
    """How many distinct training queries leak."""
    labels = labels_of(test)
    union = test["fields"].get("union", {}).get(labels[-1]) if labels else None
    if union is not None and union["queries"]:
        yield f"{counted(union['queries'], 'distinct training query leaks', 'distinct training queries leak')}."


#: The title of the card for the README of a data set or a model.
_CARD: Final = "Train–test leakage"


def leakage_card(result: AuditResult) -> str:
    """What an audit says."""
    summary, tests = result.summary, result.summary["tests"]
    known = f"calibrated for {escape_markdown(summary['calibrated_for'])}"
    if not summary["calibrated"]:
        known = f"not calibrated for this encoder (but for {escape_markdown(summary['calibrated_for'])})"
    rule = (
        f": cosine similarity above {summary['threshold']:g} under {escape_markdown(summary['encoder'])}; the "
        f"threshold is {known}."
    )
    if summary["encoder"] == WordsOnly.name:
        rule = ": texts were compared by their words and letters only, without an encoder."
    columns = heads("test_set, verdict, topics:,d, leaked_topics:,d, leaking_queries:,d, pairs_in_doubt:,d")
    rows = []
    for name, test in tests.items():
        union = list(test["fields"].get("union", {}).values())
        queries = union[-1]["queries"] if union else 0
        rows.append(
            (name, test["verdict"], test["topics"], len(test["leaked_topics"]), queries, test["doubts"]["pairs"])
        )
    read = tuple(
        (name, one["read"], one["distinct"], one["skipped"], one.get("fingerprint", "")[:19])
        for name, one in summary["sources"].items()
    )
    kinds = [(name, one) for name in tests for one in kinds_of(result, name)]
    heading = heads("test_set, kind_of_leak, verdict, leaking:,d, of:,d, share:.1%")
    shares = ((one.leaked, one.of, one.leaked / one.of) if one.of else (None, None, None) for _, one in kinds)
    named = ((name, kind_named(one.kind).phrase, one.verdict) for name, one in kinds)
    by_kind = Table("Documents", heading, tuple((*left, *right) for left, right in zip(named, shares, strict=True)))
    return card(
        _CARD,
        rule,
        Table("", columns, tuple(rows)),
        *([by_kind] if kinds else []),
        *(f"**{escape_markdown(name)}**: {escape_markdown(test['sentence'])}" for name, test in tests.items()),
        Table("Training queries compared", heads("source, read:,d, distinct:,d, skipped:,d, content"), read),
        *map(escape_markdown, columns_read(summary["sources"])),
        *(_folded(f"Leaked topics of {escape_markdown(name)}", test["leaked_topics"]) for name, test in tests.items()),
        "CONTAMINATED: a training text matches (same text, same four content words, shared shingles, confirmed by "
        "people; or three items are above the threshold). CLEAN: everything was read, no pair matches or is in doubt, "
        "and planted changes were found. UNKNOWN: anything else.",
    )


def _folded(heading: str, ids: Sequence[str]) -> str:
    """Topics that are shown at a click."""
    listed = ", ".join(map(escape_markdown, ids))
    return f"<details>\n<summary>{heading} ({len(ids)})</summary>\n\n{listed}\n\n</details>" if ids else ""
