"""Cells: every training source against every test set, as figures and as a picture."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any, Final
from urllib.parse import urlencode

import polars as pl

from truerank.arrays import frame_schema
from truerank.core.figures.style import ACCENT, INK, QUIET
from truerank.core.tables import escape_html
from truerank.text.normalising import normalise

#: By training source, test set and kind: items (topics, documents) that were looked for, that leak and that are in
#: doubt, the distinct training texts that leak, and the lines or examples that hold them.
CELLS: Final[dict[str, Any]] = frame_schema(
    "train test kind: String, looked_for leaked doubtful texts records: Int64, verdict: String"
)


def cells_of(
    pairs: pl.DataFrame, sources: Sequence[str], looked_for: Mapping[str, int], words: Mapping[str, tuple[str, str]]
) -> pl.DataFrame:
    """The cells of queries in training queries, columns as in `CELLS`.

    Args:
        pairs: the candidates of an audit, columns as in `results.CANDIDATE_SCHEMA`.
        sources: the training sources.
        looked_for: by test set, the topics that were compared.
        words: by test set, its verdict, and what it would be without any pair.
    """
    by_cell = ["source", "test"]
    leaks = pairs.filter(standing="leak")
    counts = leaks.group_by(by_cell).agg(leaked=pl.col("topic_id").n_unique(), texts=pl.col("query_text").n_unique())
    doubtful = pairs.filter(standing="doubt").join(leaks, on=[*by_cell, "topic_id"], how="anti")
    every = pl.DataFrame(list(product(sources, looked_for)), {"source": pl.String, "test": pl.String}, orient="row")
    found = every.join(counts, on=by_cell, how="left", maintain_order="left").join(
        doubtful.group_by(by_cell).agg(doubtful=pl.col("topic_id").n_unique()), on=by_cell, how="left",
        maintain_order="left",
    )  # fmt: skip
    found = found.with_columns(
        pl.col("leaked", "doubtful", "texts").fill_null(0),
        kind=pl.lit("query-query"),
        records=pl.lit(0),
        looked_for=pl.col("test").replace_strict(dict(looked_for), return_dtype=pl.Int64),
    )
    given, bare = (pl.col("test").replace_strict({name: both[at] for name, both in words.items()}) for at in (0, 1))
    word = pl.when(pl.col("leaked") > 0).then(given).when(pl.col("doubtful") == 0).then(bare)
    return found.with_columns(verdict=word.otherwise(pl.lit("UNKNOWN"))).select(
        pl.col({"train": "source"}.get(name, name)).cast(kind).alias(name) for name, kind in CELLS.items()
    )


_CELL: Final = 24.0
_LETTER: Final = 6.0
_LONGEST: Final = 26
_SLANT: Final = math.radians(55)
#: Shares of the items that leak: up to each a darkness.
_STEPS: Final = ((0.01, 0.14), (0.05, 0.32), (0.2, 0.52), (0.5, 0.74), (1.0, 0.95))
_LEGEND: Final = ("up to 1%", "to 5%", "to 20%", "to 50%", "more")
_FONT: Final = "font-family: 'DejaVu Sans', sans-serif"
_WHITE: Final = "#ffffff"


def matrix_svg(cells: pl.DataFrame, listing: str = "") -> str:
    """The cells of one kind as an SVG file; equal cells give equal texts."""
    rows, columns = (cells[name].unique(maintain_order=True).to_list() for name in ("train", "test"))
    left = 16 + _LETTER * max((len(_short(name)) for name in rows), default=0)
    longest = _LETTER * max((len(_short(name)) for name in columns), default=0)
    head = 16 + longest * math.sin(_SLANT)
    width = max(left + _CELL * len(columns) + longest * math.cos(_SLANT) + 8, left + 430)
    height = head + _CELL * len(rows) + 72
    inside = {(row["train"], row["test"]): row for row in cells.iter_rows(named=True)}
    drawn = [*_panel(inside, rows, columns, (left, head), listing), *_legend(left, height - 40)]
    size = f'width="{width:.1f}pt" height="{height:.1f}pt" viewBox="0 0 {width:.1f} {height:.1f}"'
    label = "Training sources in rows, test sets in columns; the darker a cell, the more of the test set leaks."
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
                if listing and cell["leaked"]:
                    address = urlencode({"source": row, "test": column})
                    shape = f'<a href="#{listing}&amp;{escape_html(address)}">{shape}</a>'
                yield shape


def _cell(cell: Mapping[str, Any], x: float, y: float) -> Iterator[str]:
    share = cell["leaked"] / max(1, cell["looked_for"])
    size = _CELL - 2
    edge = f'stroke="{QUIET}" stroke-width="0.8"' + (
        ' stroke-dasharray="2.5 2"' if cell["verdict"] == "UNKNOWN" else ""
    )
    figures = f"{cell['leaked']:,d} of {cell['looked_for']:,d} leak, {cell['doubtful']:,d} in doubt"
    said = f"{cell['train']}, {cell['test']}: {cell['verdict']}, {figures}"
    yield f"<g><title>{escape_html(normalise(said))}</title>"
    place = f'x="{x + 1:.1f}" y="{y + 1:.1f}" width="{size:.1f}" height="{size:.1f}"'
    yield f'<rect {place} fill="{_WHITE}" fill-opacity="0" {edge}/>'
    if cell["leaked"]:
        yield _box(x + 1, y + 1, size, _darkness(share))
        dark = _darkness(share) > 0.4
        yield _text(
            x + _CELL / 2, y + 0.63 * _CELL, _count(cell["leaked"]), size=8.5, anchor="middle",
            colour=_WHITE if dark else INK,
        )  # fmt: skip
    elif cell["doubtful"]:
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
        (f'<path d="M{x + 80:.1f} {y:.1f}h7l-7 7z" fill="{INK}"/>', "in doubt"),
        (f'<circle cx="{x + 246:.1f}" cy="{y + 6:.1f}" r="2.2" fill="{QUIET}"/>', "CLEAN"),
    ):
        yield shape
        place = {"UNKNOWN": 16, "CLEAN": 254}.get(words, 92)
        yield _text(x + place, y + 10, words, size=9.5)


def _box(x: float, y: float, size: float, darkness: float) -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" width="{size:.1f}" height="{size:.1f}"'
    return f'<rect {place} fill="{ACCENT}" fill-opacity="{darkness:g}"/>'


def _text(
    x: float, y: float, words: str, *, size: float = 10, anchor: str = "start", turn: str = "",
    colour: str = INK,
) -> str:  # fmt: skip
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size:g}" text-anchor="{anchor}" fill="{colour}" '
        f'style="{_FONT}"{turn}>{escape_html(words)}</text>'
    )


def _darkness(share: float) -> float:
    return next(darkness for most, darkness in _STEPS if share <= most)


def _count(number: int) -> str:
    return str(number) if number < 1000 else f"{number / 1000:.1f}k" if number < 10_000 else f"{number // 1000}k"


def _short(name: str) -> str:
    name = normalise(name)
    return name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…"
