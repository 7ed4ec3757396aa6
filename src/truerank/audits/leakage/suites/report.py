"""The matrix for people: a page with the picture, a short text for the terminal, and its files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import polars as pl

from truerank.audits.leakage.suites.picture import matrix_svg
from truerank.audits.leakage.suites.results import LeakageMatrix
from truerank.overlaps.results import PART_SHARE, PART_WORDS
from truerank.reports.figures.export import page_svg
from truerank.reports.listings import Listing, ListingColumn
from truerank.reports.pages import Drawing, Part, Prose, Tone
from truerank.reports.report import Report, ReportSection, Verdict
from truerank.reports.results import Summary, reports, summarises, writes
from truerank.reports.tables import Cell, Column, Table
from truerank.work.publishing import write_tables
from truerank.work.runs import Run

_WIDTH: Final = 110
_TONES: Final[dict[str, Tone]] = {"CONTAMINATED": "bad", "CLEAN": "good", "UNKNOWN": "open"}
#: Pairs of a cell that the page has; all are in pairs.parquet.
_SHOWN: Final = 50
_LISTING: Final = "list"
#: Columns of pairs that the page shows as texts.
_TEXTS: Final = (
    "training", "source", "test", "part", "test_id", "test_text", "training_text", "training_id", "evidence",
)  # fmt: skip
_CAPTION: Final = (
    "Training sets in rows, test sets in columns. A number counts the topics or documents that leak: the same text, "
    "n-grams, near-duplicates or meaning; the darker, the larger their share. A corner marks those with the same "
    "content words only. A cell opens its pairs below."
)


@summarises(LeakageMatrix)
def _summary(result: LeakageMatrix) -> Summary:
    notes = () if result.folder is None else (f"report: {result.folder / 'report.html'}", *result.work)
    return Summary(
        (_rows_table(result), cells_table(result)), result.json(), tuple(_verdicts(result)), notes, width=_WIDTH
    )


@writes(LeakageMatrix)
def _write(result: LeakageMatrix, job: Run) -> None:
    job.parquet("matrix.parquet", result.cells)
    job.parquet("pairs.parquet", result.pairs)
    report = _report(result)
    write_tables(job, report.tables)
    job.text("figures/matrix.svg", _svg(result))
    job.text("report.html", report.page(_no_picture, job.provenance()).html())
    job.json("summary.json", result.json())


@reports(LeakageMatrix)
def _report(result: LeakageMatrix) -> Report:
    cells = len(result.cells)
    encoder = f", {result.encoder} above {result.rules.threshold:g}" if result.encoder else ""
    return Report(
        title=f"{len(result.suite.training)} training sets against {len(result.suite.tests)} test sets",
        lead=f"{cells:,} cells, compared by exact text, {result.rules.ngram}-grams, near-duplicates, words{encoder}.",
        verdicts=tuple(_verdicts(result)),
        sections=(
            ReportSection("matrix", "The matrix", (Drawing(page_svg(_svg(result, _LISTING)), _CAPTION, dense=True),)),
            ReportSection("rows", "Training sets", (_rows_table(result),)),
            ReportSection("cells", "Cells with pairs", (cells_table(result), Prose(tuple(_rules(result))))),
            ReportSection("sets", "What was compared", tuple(_sets(result))),
            ReportSection("pairs", "Pairs", tuple(_pairs(result))),
        ),
        tables={"cells": cells_table(result), "training": _rows_table(result)},
        json=result.json(),
        footer=("Above the threshold means greater than it. This page asks the network for nothing.",),
    )


def cells_table(result: LeakageMatrix) -> Table:
    """The cells with a pair."""
    found = result.cells.filter((pl.col("leaking") > 0) | (pl.col("proposed") > 0))
    words = ("Training", "Test", "Part")
    numbers = ("Items", "Exact", "N-gram", "Words", "Semantic", "Leaking", "At most")
    sources = ("items", "exact", "ngram", "words", "semantic", "leaking", "upper")
    return Table.of(
        found,
        [
            *(Column(name, source=name.lower()) for name in words),
            *(Column(n, align="right", format=",d", source=s) for n, s in zip(numbers, sources, strict=True)),
            Column("Verdict", source="verdict"),
        ],
        f"{len(found):,} of {len(result.cells):,} cells have a pair.",
        notes=("A dash: not compared, or the encoder cannot read one of the sides. Leaking: all evidence but words.",),
    )


def _verdicts(result: LeakageMatrix) -> Iterator[Verdict]:
    """One of the whole: the worst of the cells."""
    by = {word: result.cells.filter(verdict=word) for word in LeakageMatrix.verdict_words}
    word = next((word for word, found in by.items() if len(found)), "UNKNOWN")
    counted = ", ".join(f"{len(found):,} {each}" for each, found in by.items() if len(found))
    evidence = ""
    if word == "CONTAMINATED":
        worst = by[word].sort(pl.col("leaking") / pl.col("items").clip(1), descending=True, maintain_order=True)
        names = worst.head(3).select("training", "test", "leaking", "items").rows()
        shown = "; ".join(f"{test} in {train}: {leaking:,} of {items:,}" for train, test, leaking, items in names)
        evidence = f"The largest shares: {shown}."
    yield Verdict(
        word=word,
        reason=f"Of {len(result.cells):,} cells: {counted or 'none compared'}.",
        evidence=evidence,
        what_would_change_it="UNKNOWN is not clean: the table of all cells says why. Judge the pairs, or remove them.",
        subject="All cells",
        tone=_TONES[word],
    )


def _rows_table(result: LeakageMatrix) -> Table:
    """The training sets with their cells by verdict."""
    rows: list[tuple[Cell, ...]] = []
    for one in result.suite.training:
        cells = result.cells.filter(training=one.name)
        counts = [len(cells.filter(verdict=word)) for word in LeakageMatrix.verdict_words]
        rows.append((one.name, *counts, int(cells["leaking"].sum())))
    return Table(
        "Cells of each training set by verdict, and the topics and documents that leak in all of them.",
        (
            Column("Training"),
            *(Column(w.capitalize(), align="right", format=",d") for w in LeakageMatrix.verdict_words),
            Column("Leaking", align="right", format=",d"),
        ),
        tuple(rows),
    )


def _rules(result: LeakageMatrix) -> Iterator[str]:
    rules = result.rules
    yield (
        f"N-gram: {rules.ngram_share:.0%} of the {rules.ngram}-grams of either text, a Jaccard similarity of "
        f"{rules.similarity:g}, or {rules.containment:.0%} of the smaller text's shingles in the larger one. "
        f"A text with fewer than {rules.ngram} words must stand there whole. A training text of fewer than "
        f"{PART_WORDS} words that is less than {PART_SHARE:.0%} of a test text does not count as contained: it is a "
        "name, or a part of a question. In scripts without blanks, signs are parts of words."
    )
    yield (
        "Words: short texts with the same content words, or one letter apart. These are no leaks until somebody judged "
        "them. Semantic: the cosine similarity of the most similar passages"
        + (f" is above {rules.threshold:g} by {result.encoder}." if result.encoder else "; no encoder was asked.")
    )
    yield (
        "At most: where rewordings of the topics in the same words (order, inflection, stop words, question form, "
        "typing errors) were planted, the most topics that can leak in this way, with 95% confidence. It bounds no "
        "paraphrases."
    )


def _sets(result: LeakageMatrix) -> Iterator[Part]:
    rows = []
    for role, sets in (("training", result.suite.training), ("test", result.suite.tests)):
        for one in sets:
            texts = result.texts.get(f"{role} {one.name}", {})
            rows.append(
                (one.name, role, texts.get("query"), texts.get("document"), ", ".join(one.parents), one.license)
            )
    yield Table(
        "The sets with their numbers of texts.",
        (
            Column("Set"), Column("Role"), Column("Queries", align="right", format=",d"),
            Column("Documents", align="right", format=",d"), Column("Inherits"), Column("Licence"),
        ),
        tuple(rows),
    )  # fmt: skip
    if result.boilerplate:
        yield Table.of(
            [{"test": name, **row} for name, found in result.boilerplate.items() for row in found],
            (
                Column("Test", source="test"), Column("Passage", source="passage"),
                Column("Texts", source="documents", align="right", format=",d"),
                Column("Share", source="share", align="right", format=".1%"),
            ),
            "Boilerplate of test sets: what many of their texts hold was left out of both sides of their cells.",
        )  # fmt: skip
    kinds = [
        (name, kind["kind"], kind["planted"], kind["found"], kind["share"])
        for name, check in result.checks.items()
        for kind in check["kinds"]
        if kind["field"] == "title" and kind["planted"]
    ]
    if kinds:
        names = list(dict.fromkeys(kind[1] for kind in kinds))
        shares = {(name, kind): share for name, kind, _, _, share in kinds}
        yield Table(
            "Shares of planted rewordings of titles that would have been found, of a sample of at most 40 topics.",
            (Column("Test"), *(Column(name.capitalize(), align="right", format=".2f") for name in names)),
            tuple((test, *(shares.get((test, name)) for name in names)) for test in result.checks),
        )


def _pairs(result: LeakageMatrix) -> Iterator[Part]:
    cell = ["training", "test", "part"]
    strength = pl.max_horizontal(pl.col("exact").cast(pl.Float64), "ngram_test", "jaccard", "cosine").fill_null(0)
    ordered = result.pairs.with_columns(strength=strength).sort("strength", descending=True, maintain_order=True)
    pairs = ordered.filter(pl.int_range(pl.len()).over(cell) < _SHOWN)
    order = {name: at for at, name in enumerate([*(one.name for one in result.suite.training)])}
    pairs = pairs.with_columns(row=pl.col("training").replace_strict(order, return_dtype=pl.Int64)).sort(
        "row", maintain_order=True
    )
    if pairs.is_empty():
        yield Prose(("No pair was found.",))
        return
    texts = {name: pairs[name].fill_null("").to_list() for name in _TEXTS}
    yield Listing(
        _LISTING,
        f"At most {_SHOWN} pairs of each cell, the strongest first.",
        (
            ListingColumn("training", "Training", texts["training"], kind="label", filter="choose"),
            ListingColumn("source", "Held by", texts["source"], kind="label", filter="choose", shown=False),
            ListingColumn("test", "Test", texts["test"], kind="label", filter="choose"),
            ListingColumn("part", "Part", texts["part"], kind="label", filter="choose"),
            ListingColumn("test_id", "Test id", texts["test_id"], kind="code"),
            ListingColumn("test_text", "Test text", texts["test_text"], searched=True),
            ListingColumn("training_text", "Training text", texts["training_text"], searched=True),
            ListingColumn("training_id", "Training id", texts["training_id"], kind="code"),
            ListingColumn("jaccard", "Jaccard", pairs["jaccard"].fill_null(0).to_list(), kind="number", digits=2),
            ListingColumn("cosine", "Cosine", [_number(value) for value in pairs["cosine"].to_list()], kind="label"),
            ListingColumn("evidence", "Evidence", texts["evidence"], kind="label", filter="choose"),
        ),
        ("pair", "pairs"),
        compared=("test_text", "training_text"),
        whole="pairs.parquet",
    )


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _svg(result: LeakageMatrix, listing: str = "") -> str:
    suite = result.suite
    return matrix_svg(result.cells, [one.name for one in suite.training], [one.name for one in suite.tests], listing)


def _no_picture(picture: object) -> str:
    raise TypeError("the figures of this page are drawn already")
