"""The matrix for people: a page with the picture, a short text for the terminal, and its files."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlencode

import polars as pl

from truerank.audits.leakage.report import no_picture
from truerank.audits.leakage.training_data.matrix import LeakageMatrix
from truerank.core.figures.export import page_svg
from truerank.core.figures.style import ACCENT, INK, QUIET
from truerank.core.listings import Listing, ListingColumn
from truerank.core.page import Drawing, Part, Prose
from truerank.core.report import Report, ReportSection
from truerank.core.result import Summary, reports, summarises, writes
from truerank.core.tables import Cell, Column, Table, escape_html
from truerank.core.verdict import Verdict
from truerank.overlaps.results import PART_SHARE, PART_WORDS
from truerank.text.normalising import normalise
from truerank.work.publishing import write_tables
from truerank.work.runs import Run

_CELL: Final = 24.0
_LETTER: Final = 6.0
_LONGEST: Final = 26
_SLANT: Final = math.radians(55)
#: Shares of the items that leak: up to each a darkness.
_STEPS: Final = ((0.01, 0.14), (0.05, 0.32), (0.2, 0.52), (0.5, 0.74), (1.0, 0.95))
_LEGEND: Final = ("up to 1%", "to 5%", "to 20%", "to 50%", "more")
_FONT: Final = "font-family: 'DejaVu Sans', sans-serif"
_WHITE: Final = "#ffffff"
_NOUNS: Final = {"query": "Test queries in training queries", "document": "Test documents in training documents",
                 "pair": "Queries with a relevant document in one training example"}  # fmt: skip


def matrix_svg(cells: pl.DataFrame, rows: Sequence[str], columns: Sequence[str], listing: str = "") -> str:
    """The matrix as an SVG file; equal cells give equal texts."""
    parts = [part for part in _NOUNS if part in cells["part"].unique().to_list()]
    left = 16 + _LETTER * max((len(_short(name)) for name in rows), default=0)
    longest = _LETTER * max((len(_short(name)) for name in columns), default=0)
    head = 34 + longest * math.sin(_SLANT)
    width = max(left + _CELL * len(columns) + longest * math.cos(_SLANT) + 8, left + 430)
    height = (head + _CELL * len(rows) + 16) * len(parts) + 56
    drawn: list[str] = []
    for at, part in enumerate(parts):
        top = at * (head + _CELL * len(rows) + 16)
        inside = {(row["training"], row["test"]): row for row in cells.filter(part=part).iter_rows(named=True)}
        drawn.append(_text(0, top + 14, _NOUNS[part], size=12, weight="bold"))
        drawn += _panel(inside, rows, columns, (left, top + head), listing)
    drawn += _legend(left, height - 40)
    size = f'width="{width:.1f}pt" height="{height:.1f}pt" viewBox="0 0 {width:.1f} {height:.1f}"'
    label = "Training sets in rows, test sets in columns; the darker a cell, the more of the test set leaks."
    body = "\n".join(drawn)
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<svg {size} xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{label}">\n{body}\n</svg>\n'
    )


def _panel(
    cells: Mapping[tuple[str, str], Mapping[str, Any]],
    rows: Sequence[str],
    columns: Sequence[str],
    origin: tuple[float, float],
    listing: str,
) -> Iterator[str]:
    left, top = origin
    for at, name in enumerate(columns):
        x, y = left + _CELL * (at + 0.55), top - 6
        turn = f' transform="rotate({-math.degrees(_SLANT):.0f} {x:.1f} {y:.1f})"'
        yield _text(x, y, _short(name), turn=turn)
    for down, row in enumerate(rows):
        y = top + _CELL * down
        yield _text(left - 6, y + 0.64 * _CELL, _short(row), anchor="end")
        for at, column in enumerate(columns):
            cell = cells.get((row, column))
            if cell is not None:
                shape = "".join(_cell(cell, left + _CELL * at, y))
                if listing and cell["pairs"]:
                    address = urlencode({"training": row, "test": column, "part": cell["part"]})
                    shape = f'<a href="#{listing}&amp;{escape_html(address)}">{shape}</a>'
                yield shape


def _cell(cell: Mapping[str, Any], x: float, y: float) -> Iterator[str]:
    share = cell["leaking"] / max(1, cell["items"])
    size = _CELL - 2
    edge = f'stroke="{QUIET}" stroke-width="0.8"' + (
        ' stroke-dasharray="2.5 2"' if cell["verdict"] == "UNKNOWN" else ""
    )
    said = f"{cell['training']}, {cell['test']}: {cell['verdict']}. {cell['reason']}"
    yield f"<g><title>{escape_html(normalise(said))}</title>"
    place = f'x="{x + 1:.1f}" y="{y + 1:.1f}" width="{size:.1f}" height="{size:.1f}"'
    yield f'<rect {place} fill="{_WHITE}" fill-opacity="0" {edge}/>'
    if cell["leaking"]:
        yield _box(x + 1, y + 1, size, _darkness(share))
        dark = _darkness(share) > 0.4
        yield _text(
            x + _CELL / 2, y + 0.63 * _CELL, _count(cell["leaking"]), size=8.5, anchor="middle",
            colour=_WHITE if dark else INK,
        )  # fmt: skip
    elif cell["proposed"]:
        yield f'<path d="M{x + 1:.1f} {y + 1:.1f}h7l-7 7z" fill="{INK}"/>'
    if cell["verdict"] == "CLEAN":
        yield f'<circle cx="{x + _CELL / 2:.1f}" cy="{y + _CELL / 2:.1f}" r="2.2" fill="{QUIET}"/>'
    yield "</g>"


def _legend(x: float, y: float) -> Iterator[str]:
    start = x
    for (_, darkness), words in zip(_STEPS, _LEGEND, strict=True):
        yield _box(x, y, 12, darkness)
        yield _text(x + 16, y + 10, words, size=9.5)
        x += 26 + _LETTER * len(words)
    x, y = start, y + 20
    dashes = f'<rect x="{x:.1f}" y="{y:.1f}" width="12" height="12" fill="none" stroke="{QUIET}"'
    for shape, words in (
        (f'{dashes} stroke-dasharray="2.5 2"/>', "UNKNOWN"),
        (f'<path d="M{x + 80:.1f} {y:.1f}h7l-7 7z" fill="{INK}"/>', "the same words, unjudged"),
        (f'<circle cx="{x + 246:.1f}" cy="{y + 6:.1f}" r="2.2" fill="{QUIET}"/>', "CLEAN"),
    ):
        yield shape
        place = {"UNKNOWN": 16, "CLEAN": 254}.get(words, 92)
        yield _text(x + place, y + 10, words, size=9.5)


def _box(x: float, y: float, size: float, darkness: float) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" width="{size:.1f}" height="{size:.1f}"'
    return f'<rect {place} fill="{ACCENT}" fill-opacity="{darkness:g}"/>'


def _text(
    x: float, y: float, words: str, *, size: float = 10, anchor: str = "start", weight: str = "", turn: str = "",
    colour: str = INK,
) -> str:  # fmt: skip
    bold = f' font-weight="{weight}"' if weight else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size:g}" text-anchor="{anchor}" fill="{colour}"{bold} '
        f'style="{_FONT}"{turn}>{escape_html(words)}</text>'
    )


def _darkness(share: float) -> float:
    return next(darkness for most, darkness in _STEPS if share <= most)


def _count(number: int) -> str:
    return str(number) if number < 1000 else f"{number / 1000:.1f}k" if number < 10_000 else f"{number // 1000}k"


def _short(name: str) -> str:
    name = normalise(name)
    return name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…"


_WIDTH: Final = 110
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
    job.text("report.html", report.page(no_picture, job.provenance()).html())
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
        sentence=f"Of {len(result.cells):,} cells: {counted or 'none compared'}.",
        rests_on=evidence,
        settles="UNKNOWN is not clean: the table of all cells says why. Judge the pairs, or remove them.",
        subject="All cells",
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
            ListingColumn(
                "cosine", "Cosine", ["" if value is None else f"{value:.3f}" for value in pairs["cosine"]], kind="label"
            ),
            ListingColumn("evidence", "Evidence", texts["evidence"], kind="label", filter="choose"),
        ),
        ("pair", "pairs"),
        compared=("test_text", "training_text"),
        whole="pairs.parquet",
    )


def _svg(result: LeakageMatrix, listing: str = "") -> str:
    suite = result.suite
    return matrix_svg(result.cells, [one.name for one in suite.training], [one.name for one in suite.tests], listing)
