"""Leaks in training examples, and the matrix of a suite, for people: short texts, a page with its picture, files."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlencode

import polars as pl

from truerank.audits.leakage.card import example_card
from truerank.audits.leakage.report import SIGNS, no_picture
from truerank.audits.leakage.training_data.results import ExampleAudit, LeakageMatrix, kind_named
from truerank.core.figures.export import page_svg
from truerank.core.figures.style import ACCENT, INK, QUIET
from truerank.core.listings import Listing, ListingColumn
from truerank.core.page import Drawing, Facts, Part, Prose
from truerank.core.report import Report, ReportSection, found_section
from truerank.core.result import Summary, page_note, report, reports, summarises, writes
from truerank.core.tables import Cell, Column, Table, escape_html
from truerank.core.verdict import Verdict
from truerank.core.views import heads
from truerank.overlaps.results import BRIEF_SHARE, BRIEF_WORDS, PART_SHARE, PART_WORDS
from truerank.text.normalising import normalise
from truerank.work.publishing import write_tables
from truerank.work.runs import Run

_WIDTH: Final = 100
#: Pairs of one kind that the page lists, and characters of a text that it shows.
_LISTED: Final = 1000
_SHOWN: Final = 300
_MEANINGS: Final = {
    "CONTAMINATED": "Scores of a model that was trained on these examples say less about new queries.",
    "CLEAN": "Everything was read, and nothing that this audit can see was found. What it can see is measured with "
    "changed copies of these very texts.",
    "UNKNOWN": "This is not a clean result: something was not given, not read, or cannot be seen.",
}


@summarises(ExampleAudit)
def _summary(result: ExampleAudit) -> Summary:
    return Summary(tuple(_parts(result)), result.json(), tuple(_verdicts(result)), page_note(result.folder), _WIDTH)


def _write(result: ExampleAudit | LeakageMatrix, job: Run) -> None:
    found = report(result)
    for name, frame in found.frames.items():
        job.parquet(f"{name}.parquet", frame)
    write_tables(job, found.tables)
    for name, text in found.texts.items():
        job.text(name, text)
    job.text("report.html", found.page(no_picture, job.provenance()).html())
    job.json("summary.json", found.json)


writes(ExampleAudit)(_write)
writes(LeakageMatrix)(_write)


@reports(ExampleAudit)
def _report(result: ExampleAudit) -> Report:
    kinds = kinds_table(result)
    listed = [one.kind for one in result.kinds if one.pairs]
    return Report(
        title=f"Training examples against {result.test['name']}",
        lead=_lead(result),
        verdicts=tuple(_verdicts(result)),
        sections=(
            ReportSection("kinds", "What leaks", (kinds,)),
            found_section({kind_named(one.kind): one.pairs for one in result.kinds}),
            ReportSection("rule", "What counts as an overlap", tuple(_rule(result))),
            ReportSection("sensitivity", "What this audit can see", tuple(_sensitivity(result))),
            ReportSection("sources", "What was read", (sources_table(result), Facts("Test collection", result.test))),
            *(ReportSection(name, f"Pairs: {kind_named(name).phrase}", (_listing(result, name),)) for name in listed),
        ),
        tables={"kinds": kinds, "sources": sources_table(result), "sensitivity": sensitivity_table(result)},
        json=result.json(),
        frames={"leaks": result.leaks, "templates": result.templates},
        texts={"card.md": example_card(result)},
        footer=("This page needs no network.",),
    )


def _parts(result: ExampleAudit) -> Iterator[Table | str]:
    known: set[str] = set()
    for one in result.kinds:
        new = [sentence for sentence in one.settle if sentence not in known]
        known.update(new)
        lines = textwrap.wrap(normalise(" ".join((one.why, *new))), _WIDTH - 4)
        yield "\n".join([f"{one.verdict}: {kind_named(one.kind).phrase}", *(f"    {line}" for line in lines)])
    yield kinds_table(result)
    yield sources_table(result)
    if (table := sensitivity_table(result)).rows:
        yield table


def _verdicts(result: ExampleAudit) -> Iterator[Verdict]:
    explained: set[str] = set()
    for one in result.kinds:
        change = " ".join(("" if one.verdict in explained else _MEANINGS[one.verdict], *one.settle)).strip()
        explained.add(one.verdict)
        yield Verdict(
            word=one.verdict,
            sentence=one.why,
            rests_on=" ".join(one.evidence),
            settles=change,
            subject=kind_named(one.kind).title,
            share=one.leaked / one.of if one.of and one.verdict != "UNKNOWN" else None,
            sign=SIGNS[one.verdict],
        )


def _lead(result: ExampleAudit) -> str:
    examples = sum(source["examples"] for source in result.sources.values())
    words: list[str] = [one.verdict for one in result.kinds]
    tally = ", ".join(f"{words.count(word)} {word.lower()}" for word in dict.fromkeys(words))
    test = result.test
    documents = f" and {test['documents']:,d} documents" if test["documents"] else ""
    against = f"{test['topics']:,d} {test['noun']}{documents}"
    return f"{examples:,d} training examples against {against}. Kinds of leak: {tally}."


def kinds_table(result: ExampleAudit) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for one in result.kinds:
        cells: tuple[Cell, ...] = (None,) * 8
        if one.of:
            share = one.leaked / one.of
            cells = (one.leaked, one.of, share, one.low, one.high, one.topics, one.pairs, one.examples)
        rows.append((kind_named(one.kind).phrase, one.verdict, *cells))
    return Table(
        "Leaks by kind.",
        heads(
            "Kind, Verdict, Leaked:,d, Of:,d, Share:.1%, 95% interval|from:.1%, 95% interval|to:.1%, Topics:,d, "
            "Pairs:,d, Examples:,d"
        ),
        tuple(rows),
        notes=(
            "Leaked and of: queries or documents of the test collection. Examples: training texts that leak, counted "
            "once for each example that holds them. The interval takes the queries or documents for a sample.",
        ),
    )


def _rule(result: ExampleAudit) -> Iterator[Part]:
    yield Prose(tuple(rule_sentences(result.rules)))
    if result.boilerplate:
        title = "Boilerplate of the test collection, which was left out of both sides."
        yield Table(title, heads(_PASSAGE), tuple(map(_passage, result.boilerplate)))


_PASSAGE: Final = "Passage, Texts:,d, Share:.1%"


def _passage(row: Mapping[str, Any]) -> tuple[Cell, ...]:
    return row["passage"], row["documents"], row["share"]


def rule_sentences(rules: Any) -> Iterator[str]:
    """The rule by which evidence makes a pair of texts an overlap."""
    n = rules["ngram"]
    yield "Any one kind of evidence is enough; the list of pairs has the values of all of them."
    yield "Tags and entities of HTML are taken off both texts before they are compared."
    yield "Exact: the same text; blanks, letter case and marks at the end do not count."
    yield (
        f"N-gram: the text with fewer of them shares at least {rules['ngram_share']:.0%} of its runs of {n} words with "
        f"the other one; texts of fewer than {n} words have none. The list has the shares of both texts, and their "
        "lengths."
    )
    yield f"Near: the sets of three-word shingles have a Jaccard similarity of at least {rules['similarity']:g}."
    yield (
        f"Contains: the larger text has at least {rules['containment']:.0%} of the three-word shingles of the smaller "
        f"one. Test texts of fewer than {rules['contained_words']} words are not looked for in others, nor training "
        f"texts of fewer than {PART_WORDS} that are less than {PART_SHARE:.0%} of a test text. Where one text has "
        f"fewer than {n} words, near and contains ask for all shingles; with fewer than {BRIEF_WORDS}, for at least "
        f"{BRIEF_SHARE:.0%}, and n-gram for at least a half."
    )
    yield (
        "Words and letters: texts of at most 32 words have the same content words, in any order and inflection, or "
        "these are one letter apart."
    )
    yield f"Encoder: the cosine similarity is above {rules['threshold']:g}, where an encoder was asked."


def sensitivity_table(result: ExampleAudit) -> Table:
    """What was found of planted changes, by kind of leak."""
    rows = [
        (kind_named(one.kind).phrase, row["kind"], row["planted"], row["found"], row["share"], row["low"], row["high"])
        for one in result.kinds
        for row in one.sensitivity
    ]
    return Table(
        "Planted changes of the test collection's texts that the audit would have found.",
        heads("Kind, Change, Planted:,d, Found:,d, Share:.2f, 95% interval|from:.2f, 95% interval|to:.2f"),
        tuple(rows),
    )


def _sensitivity(result: ExampleAudit) -> Iterator[Part]:
    table = sensitivity_table(result)
    if not table.rows:
        return
    yield Prose(
        (
            "Texts of the test collection were changed, compared like training texts, and written nowhere. A planted "
            "pair counts as found where both its query, in other words, and its changed answer are found.",
        )
    )
    yield table
    for noun, row in result.others.items():
        if row["texts"]:
            yield Prose(
                (
                    f"The converse: {row['proposed']:,d} of {row['texts']:,d} {noun} of this collection "
                    f"({row['share']:.1%}) would be taken for another one of it.",
                )
            )


def sources_table(result: ExampleAudit) -> Table:
    """What was read of each training source, and what its columns were taken for."""
    counted = ("examples", "query_texts", "positive_texts", "negative_texts", "document_texts", "empty", "skipped")
    return Table(
        "Training examples by source.",
        heads(
            "Source, Roles, Examples:,d, Query:,d, Positive:,d, Negative:,d, Document:,d, Empty:,d, "
            "Skipped:,d, Absent:,d"
        ),
        tuple(
            (
                name,
                f"{source['roles']}{' (given)' if source['given'] else ''}",
                *(source.get(one, 0) for one in counted),
                source.get("absent", {}).get("ids", 0),
            )
            for name, source in result.sources.items()
        ),
        notes=("Absent: ids that the given queries and documents lack.",),
    )


def _listing(result: ExampleAudit, kind: str) -> Listing:
    rows = result.rows(kind)
    shown = rows.sort("examples", descending=True, maintain_order=True).head(_LISTED)
    more = f" The first {_LISTED:,d} of {rows.height:,d}." if rows.height > _LISTED else ""
    title = f"{kind_named(kind).title}.{more}"
    compared = ("test_text", "training_text")
    columns = tuple(_columns(shown, several=len(result.sources) > 1))
    return Listing(kind, title, columns, ("pair", "pairs"), "-examples", compared=compared, whole="leaks.parquet")


def _columns(shown: pl.DataFrame, *, several: bool) -> Iterator[ListingColumn]:
    kind = shown.item(0, "kind")

    def texts(name: str, title: str, key: str = "", **how: Any) -> ListingColumn:
        cut = [text if len(text) <= _SHOWN else f"{text[:_SHOWN]} …" for text in shown[name].fill_null("").to_list()]
        return ListingColumn(key or name, title, cut, **how)

    def there(name: str) -> bool:
        return bool(shown[name].is_not_null().any())

    chosen: dict[str, Any] = {"kind": "label", "filter": "choose"}
    yield texts("topic_id", "Topic", "topic", shown=there("topic_id"), **chosen)
    yield texts("doc_id", "Document", "document", kind="code", shown=there("doc_id"))
    yield texts("test_text", "Test text", searched=True)
    yield texts("training_text", "Training text", searched=True)
    if kind == "pair":
        yield texts("document_text", "Relevant document", searched=True)
        yield texts("training_document", "Training positive", searched=True)
        yield texts("document_evidence", "Evidence of the answer", kind="label")
    yield texts("evidence", "Evidence", **chosen)
    yield ListingColumn("examples", "Examples", shown["examples"].to_list(), kind="number", digits=0)
    yield texts("example_id", "Example", "example", kind="code")
    yield texts("source", "Source", shown=several, **chosen)
    yield texts("role", "Role", shown=kind != "pair" and len(kind_named(kind).training) > 1, **chosen)
    for name, heading in _MEASURED.items():
        digits = 0 if name.endswith("words") else 2
        values = shown[name].fill_null(0.0).to_list() if digits else shown[name].to_list()
        yield ListingColumn(name, heading, values, kind="number", digits=digits, shown=False)


_MEASURED: Final = {
    "ngram_test": "N-grams of the test text",
    "ngram_training": "N-grams of the training text",
    "jaccard": "Jaccard",
    "containment": "Containment",
    "cosine": "Cosine",
    "test_words": "Words, test",
    "training_words": "Words, training",
}


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


_MATRIX_WIDTH: Final = 110
#: Pairs of a cell that the page has; all are in pairs.parquet.
_MOST_OF_CELL: Final = 50
_LISTING: Final = "list"
_CAPTION: Final = (
    "Training sets in rows, test sets in columns. A number counts the topics or documents that leak: the same text, "
    "n-grams, near-duplicates or meaning; the darker, the larger their share. A corner marks those with the same "
    "content words only. A cell opens its pairs below."
)


@summarises(LeakageMatrix)
def _matrix_summary(result: LeakageMatrix) -> Summary:
    notes = () if result.folder is None else (*page_note(result.folder), *result.work)
    parts = (_rows_table(result), cells_table(result))
    return Summary(parts, result.json(), tuple(_matrix_verdict(result)), notes, _MATRIX_WIDTH)


@reports(LeakageMatrix)
def _matrix_report(result: LeakageMatrix) -> Report:
    cells = len(result.cells)
    encoder = f", {result.encoder} above {result.rules.threshold:g}" if result.encoder else ""
    return Report(
        title=f"{len(result.suite.training)} training sets against {len(result.suite.tests)} test sets",
        lead=f"{cells:,} cells, compared by exact text, {result.rules.ngram}-grams, near-duplicates, words{encoder}.",
        verdicts=tuple(_matrix_verdict(result)),
        sections=(
            ReportSection("matrix", "The matrix", (Drawing(page_svg(_svg(result, _LISTING)), _CAPTION, dense=True),)),
            ReportSection("rows", "Training sets", (_rows_table(result),)),
            ReportSection("cells", "Cells with pairs", (cells_table(result), Prose(tuple(_rules(result))))),
            ReportSection("sets", "What was compared", tuple(_sets(result))),
            ReportSection("pairs", "Pairs", tuple(_pairs(result))),
        ),
        tables={"cells": cells_table(result), "training": _rows_table(result)},
        json=result.json(),
        frames={"matrix": result.cells, "pairs": result.pairs},
        texts={"figures/matrix.svg": _svg(result)},
        footer=("Above the threshold means greater than it. This page needs no network.",),
    )


def cells_table(result: LeakageMatrix) -> Table:
    """The cells with a pair."""
    found = result.cells.filter((pl.col("leaking") > 0) | (pl.col("proposed") > 0))
    fields = "training", "test", "part", "items", "exact", "ngram", "words", "semantic", "leaking", "upper", "verdict"
    return Table(
        f"{len(found):,} of {len(result.cells):,} cells have a pair.",
        heads(
            "Training, Test, Part, Items:,d, Exact:,d, N-gram=ngram:,d, Words:,d, Semantic:,d, Leaking:,d, "
            "At_most:,d, Verdict"
        ),
        tuple(found.select(fields).iter_rows()),
        notes=("A dash: not compared, or the encoder cannot read one of the sides. Leaking: all evidence but words.",),
    )


def _matrix_verdict(result: LeakageMatrix) -> Iterator[Verdict]:
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
        heads("Training, Contaminated:,d, Unknown:,d, Clean:,d, Leaking:,d"),
        tuple(rows),
    )


def _rules(result: LeakageMatrix) -> Iterator[str]:
    rules = result.rules
    yield (
        f"N-gram: {rules.ngram_share:.0%} of the {rules.ngram}-grams of either text, a Jaccard similarity of "
        f"{rules.similarity:g}, or {rules.containment:.0%} of the smaller text's shingles in the larger one. "
        f"A text with fewer than {rules.ngram} words must be there whole. A training text of fewer than "
        f"{PART_WORDS} words that is less than {PART_SHARE:.0%} of a test text does not count as contained: it is a "
        "name, or a part of a question. In scripts without blanks, signs are parts of words."
    )
    yield (
        "Words: short texts with the same content words, or one letter apart. These are not leaks until judged so by "
        "people. Semantic: the cosine similarity of the most similar passages"
        + (f" is above {rules.threshold:g} by {result.encoder}." if result.encoder else "; no encoder was used.")
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
        heads("Set, Role, Queries:,d, Documents:,d, Inherits, Licence"),
        tuple(rows),
    )
    if result.boilerplate:
        yield Table(
            "Boilerplate of test sets: what many of their texts hold was left out of both sides of their cells.",
            heads(f"Test, {_PASSAGE}"),
            tuple((name, *_passage(row)) for name, found in result.boilerplate.items() for row in found),
        )
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
    strength = pl.max_horizontal(pl.col("exact").cast(pl.Float64), "ngram_test", "jaccard", "cosine").fill_null(0)
    ordered = result.pairs.with_columns(strength=strength).sort("strength", descending=True, maintain_order=True)
    pairs = ordered.filter(pl.int_range(pl.len()).over("training", "test", "part") < _MOST_OF_CELL)
    order = {one.name: at for at, one in enumerate(result.suite.training)}
    row = pl.col("training").replace_strict(order, return_dtype=pl.Int64)
    pairs = pairs.with_columns(row=row).sort("row", maintain_order=True)
    if pairs.is_empty():
        yield Prose(("No pair was found.",))
        return

    def texts(name: str, title: str, **how: Any) -> ListingColumn:
        return ListingColumn(name, title, pairs[name].fill_null("").to_list(), **how)

    chosen: dict[str, Any] = {"kind": "label", "filter": "choose"}
    cosines = ["" if value is None else f"{value:.3f}" for value in pairs["cosine"]]
    yield Listing(
        _LISTING,
        f"At most {_MOST_OF_CELL} pairs of each cell, the strongest first.",
        (
            texts("training", "Training", **chosen),
            texts("source", "Held by", shown=False, **chosen),
            texts("test", "Test", **chosen),
            texts("part", "Part", **chosen),
            texts("test_id", "Test id", kind="code"),
            texts("test_text", "Test text", searched=True),
            texts("training_text", "Training text", searched=True),
            texts("training_id", "Training id", kind="code"),
            ListingColumn("jaccard", "Jaccard", pairs["jaccard"].fill_null(0).to_list(), kind="number", digits=2),
            ListingColumn("cosine", "Cosine", cosines, kind="label"),
            texts("evidence", "Evidence", **chosen),
        ),
        ("pair", "pairs"),
        compared=("test_text", "training_text"),
        whole="pairs.parquet",
    )


def _svg(result: LeakageMatrix, listing: str = "") -> str:
    suite = result.suite
    return matrix_svg(result.cells, [one.name for one in suite.training], [one.name for one in suite.tests], listing)
