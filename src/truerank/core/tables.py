"""A table as a value that can be shown in a terminal, in Markdown, LaTeX, CSV and HTML."""

from __future__ import annotations

import html
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, cast

from rich.cells import cell_len, chop_cells

from truerank.text.normalising import normalise
from truerank.version import __version__

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Cell", "Column", "Interval", "Table", "escape_html", "escape_latex", "escape_markdown", "is_formula"]


class Interval(NamedTuple):
    """A number with the ends of its interval, in one cell; CSV has three. Without ends there is no interval."""

    value: float | None
    low: float | None
    high: float | None


Cell = str | int | float | Interval | None

_MISSING: Final = "–"
_GAP: Final = 2
_NARROWEST: Final = 12
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
_NUMBER: Final = re.compile(r"[+-]?(?:(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|inf|nan)")
_LATEX: Final = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    # After a line end LaTeX would read these two as an argument of it.
    "[": "{[}",
    "*": "{*}",
}
_MARKDOWN: Final = re.compile(r"([\\`*_\[\]|~$]|^[#+\-=])")
_ENTITIES: Final = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
# Characters that an HTML document must not hold, not even as a reference, and halves of surrogate pairs.
_FORBIDDEN: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


class _Span(NamedTuple):
    """A heading over neighbouring columns."""

    label: str
    start: int
    length: int


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Args:
        title: the heading directly above the cells.
        above: headings over that one, the topmost first; equal neighbours are merged.
        align: "left" for words, "right" for numbers.
        format: Python format specification of the column's numbers, such as ",d" or ".3f".
        source: the field of a row or frame that `Table.of` takes; by default the title.
    """

    title: str
    above: tuple[str, ...] = ()
    align: Literal["left", "right"] = "left"
    format: str = ""
    source: str = ""

    @classmethod
    def numbers(cls, form: str, *titles: str, above: tuple[str, ...] = ()) -> tuple[Column, ...]:
        """Columns of numbers that are shown alike, side by side.

        Args:
            form: the format of their numbers.
            *titles: a column each.
            above: headings over all of them.
        """
        return tuple(cls(title, above, "right", form) for title in titles)

    def show(self, cell: Cell) -> str:
        """The cell as people read it; a dash where there is no value."""
        if cell is None or (isinstance(cell, float) and math.isnan(cell)):
            return _MISSING
        if isinstance(cell, Interval):
            shown = self.show(cell.value)
            return shown if None in cell else f"{shown} [{self.show(cell.low)}, {self.show(cell.high)}]"
        return cell if isinstance(cell, str) else format(cell, self.format)


@dataclass(frozen=True)
class Table:
    """A table: what it shows, its columns and its rows.

    Args:
        title: the caption, one sentence.
        columns: the columns from left to right; the first one names the rows.
        rows: one tuple per row, one cell per column.
        notes: sentences below the table.
        rules: positions of the rows that have a line above them, such as a total.
        strong: cells that stand out, as (row, column): bold, with a star before them where nothing is bold.
        addressed: the first cell of each row, such as a rule's code, is its address on a page: `report.html#LEAK02`.

    Raises:
        ValueError: there is no column, or a row has more or fewer cells than there are columns.
    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()
    rules: tuple[int, ...] = ()
    strong: frozenset[tuple[int, int]] = frozenset()
    addressed: bool = False

    @classmethod
    def of(
        cls,
        rows: Iterable[Sequence[Cell] | Mapping[str, Cell]] | pl.DataFrame,
        columns: Sequence[Column | str] = (),
        title: str = "",
        **rest: Any,
    ) -> Table:
        """A table of rows or of a frame.

        Args:
            rows: tuples (NamedTuples among them) or mappings, all of one kind; or a Polars frame.
            columns: the columns, or their titles; `Column.source` names the field where it is not the title. By default
                all fields of the frame, of the mappings or of the NamedTuple, numbers to the right.
            title: the caption.
            **rest: notes, rules and strong cells.
        """
        frame: Any = rows if hasattr(rows, "iter_rows") else None
        listed: list[Any] = list(cast(Iterable[Any], rows)) if frame is None else frame.rows(named=True)
        first = listed[0] if listed else ()
        names = list(getattr(first, "_fields", first)) if frame is None else list(frame.columns)
        chosen = [
            Column(one, align=_alignment(listed, one)) if isinstance(one, str) else one for one in columns or names
        ]
        if isinstance(first, Mapping):
            cells = [tuple(row.get(column.source or column.title) for column in chosen) for row in listed]
        elif names and all(isinstance(name, str) for name in names) and any(column.source for column in chosen):
            cells = [tuple(getattr(row, column.source or column.title) for column in chosen) for row in listed]
        else:
            cells = [tuple(row) for row in listed]
        return cls(title, tuple(chosen), tuple(cells), **rest)

    def __repr__(self) -> str:
        return self.text().rstrip("\n")

    def _repr_html_(self) -> str:
        return self.html()

    def __post_init__(self) -> None:
        if not self.columns:
            raise ValueError("a table needs a column")
        for number, row in enumerate(self.rows):
            if len(row) != len(self.columns):
                raise ValueError(f"row {number} has {len(row)} cells, the table has {len(self.columns)} columns")

    def filled(self) -> Table:
        """The table without the columns that have a value in no row; the first column stays."""
        known = [
            place
            for place in range(len(self.columns))
            if place == 0 or any(row[place] is not None and row[place] == row[place] for row in self.rows)
        ]
        return self if len(known) == len(self.columns) else self._only(known)

    def text(self, width: int | None = None) -> str:
        """The table for a terminal, in plain characters.

        Control characters are dropped. A table that is wider than `width` first wraps its columns of words, then is
        cut into several below each other, each with the first column.

        Args:
            width: characters per line; None for as wide as the table is.
        """
        blocks = [block._text_block(width) for block in self._blocks(width)]
        lines = _wrapped(self.title, width)
        notes = [line for note in self.notes for line in _wrapped(note, width)]
        return "\n\n".join(part for part in ("\n".join(lines), *blocks, "\n".join(notes)) if part) + "\n"

    def markdown(self) -> str:
        """The table in GitHub-flavoured Markdown, which has one heading row: headings are joined by a dot."""
        titles = [" · ".join(part for part in (*c.above, c.title) if part) for c in self.columns]
        lines = [f"**{escape_markdown(self.title)}**", ""] if self.title else []
        lines.append("| " + " | ".join(escape_markdown(title) for title in titles) + " |")
        lines.append("| " + " | ".join("---:" if c.align == "right" else ":---" for c in self.columns) + " |")
        shown = self._shown(escape_markdown, "**{}**")
        lines += ["| " + " | ".join(row) + " |" for row in shown]
        for note in self.notes:
            lines += ["", escape_markdown(note)]
        return "\n".join(lines) + "\n"

    def latex(self) -> str:
        r"""The table as a LaTeX `table` environment; it needs `\usepackage{booktabs}` and a Unicode engine or input."""
        alignment = "".join("r" if column.align == "right" else "l" for column in self.columns)
        lines = [r"\begin{table}", r"\centering"]
        if self.title:
            lines.append(rf"\caption{{{escape_latex(self.title)}}}")
        lines += [rf"\begin{{tabular}}{{@{{}}{alignment}@{{}}}}", r"\toprule"]
        for level in range(self._depth() - 1):
            lines += self._latex_heading(level)
        lines.append(" & ".join(escape_latex(c.title) for c in self.columns) + r" \\")
        lines.append(r"\midrule")
        for number, row in enumerate(self._shown(escape_latex, r"\textbf{{{}}}")):
            if number and number in self.rules:
                lines.append(r"\midrule")
            lines.append(" & ".join(row) + r" \\")
        lines += [r"\bottomrule", r"\end{tabular}"]
        lines += [rf"\par\smallskip{{\footnotesize {escape_latex(note)}}}" for note in self.notes]
        lines.append(r"\end{table}")
        return "\n".join(lines) + "\n"

    def csv(self) -> str:
        """The table as CSV with one heading row and unformatted values.

        Headings are joined by " / ". An interval is three columns: "κ", "κ low", "κ high". A missing value is an empty
        cell. Texts come back from a CSV reader unchanged, but for an apostrophe before those that a spreadsheet would
        run.
        """
        titles = [" / ".join(part for part in (*c.above, c.title) if part) for c in self.columns]
        wide = [any(isinstance(row[place], Interval) for row in self.rows) for place in range(len(titles))]
        rows = [[t for title, three in zip(titles, wide, strict=True) for t in _ends_of(title, three)]]
        for row in self.rows:
            cells = [cell for place, cell in enumerate(row) for cell in _three(cell, wide[place])]
            rows.append(["" if cell is None else str(cell) for cell in cells])
        rows = [[f"'{cell}" if is_formula(cell) else cell for cell in row] for row in rows]
        # An empty line would be no row.
        return "".join((",".join(_csv_cell(cell) for cell in row) or '""') + "\n" for row in rows)

    def html(self) -> str:
        """The table as an HTML `table` with caption, heading scopes and escaped texts."""
        lines = ["<table>"]
        if self.title:
            lines.append(f"<caption>{escape_html(self.title)}</caption>")
        lines.append("<thead>")
        lines += [f"<tr>{''.join(self._html_headings(level))}</tr>" for level in range(self._depth())]
        lines += ["</thead>", "<tbody>"]
        for number, row in enumerate(self._shown(_html_cell, "<strong>{}</strong>")):
            rule = ' class="rule"' if number and number in self.rules else ""
            first, *rest = zip(self.columns, row, strict=True)
            address = f' id="{first[1]}"' if self.addressed else ""
            cells = [f'<th scope="row"{address}{_html_class(first[0])}>{first[1]}</th>']
            cells += [f"<td{_html_class(column)}>{cell}</td>" for column, cell in rest]
            lines.append(f"<tr{rule}>{''.join(cells)}</tr>")
        lines += ["</tbody>", "</table>"]
        lines += [f'<p class="note">{escape_html(note)}</p>' for note in self.notes]
        return "\n".join(lines) + "\n"

    def _shown(self, escape: Callable[[str], str] = str, strong: str = "*{}") -> Iterator[list[str]]:
        for number, row in enumerate(self.rows):
            cells = [escape(column.show(cell)) for column, cell in zip(self.columns, row, strict=True)]
            yield [strong.format(c) if (number, place) in self.strong else c for place, c in enumerate(cells)]

    def _depth(self) -> int:
        return 1 + max(len(column.above) for column in self.columns)

    def _path(self, column: Column) -> tuple[str, ...]:
        return ("",) * (self._depth() - 1 - len(column.above)) + column.above

    def _spans(self, level: int) -> list[_Span]:
        """The headings of one level above the titles; neighbours merge when all headings down to it are equal."""
        spans: list[_Span] = []
        previous: tuple[str, ...] | None = None
        for position, column in enumerate(self.columns):
            path = self._path(column)[: level + 1]
            if path == previous and path[-1]:
                spans[-1] = spans[-1]._replace(length=spans[-1].length + 1)
            else:
                spans.append(_Span(path[-1], position, 1))
            previous = path
        return spans

    def _latex_heading(self, level: int) -> list[str]:
        cells, rules = [], []
        for label, start, length in self._spans(level):
            cells.append(rf"\multicolumn{{{length}}}{{c}}{{{escape_latex(label)}}}" if label else "")
            if label:
                rules.append(rf"\cmidrule(lr){{{start + 1}-{start + length}}}")
        return [" & ".join(cells) + r" \\", " ".join(rules)]

    def _html_headings(self, level: int) -> Iterator[str]:
        depth = self._depth()
        if level < depth - 1:
            for label, start, length in self._spans(level):
                column = self.columns[start]
                if not column.above and level == 0:
                    yield f'<th scope="col" rowspan="{depth}"{_html_class(column)}>{escape_html(column.title)}</th>'
                elif label:
                    yield f'<th scope="colgroup" class="group" colspan="{length}">{escape_html(label)}</th>'
                elif column.above:
                    yield "<td></td>"
            return
        for column in self.columns:
            if column.above or depth == 1:
                yield f'<th scope="col"{_html_class(column)}>{escape_html(column.title)}</th>'

    def _widths(self, width: int | None) -> list[int]:
        cells = [[column.title for column in self.columns], *self._shown()]
        widths = [max(cell_len(normalise(row[i])) for row in cells) for i in range(len(self.columns))]
        words = [
            i
            for i, column in enumerate(self.columns)
            if column.align == "left" and any(isinstance(row[i], str) for row in self.rows)
        ]
        if width is not None:
            excess = sum(widths) + _GAP * (len(widths) - 1) - width
            while excess > 0 and (wide := [i for i in words if widths[i] > _NARROWEST]):
                widths[max(wide, key=lambda i: widths[i])] -= 1
                excess -= 1
        for level in range(self._depth() - 1):
            for label, start, length in self._spans(level):
                spanned = sum(widths[start : start + length]) + _GAP * (length - 1)
                for extra in range(max(0, cell_len(normalise(label)) - spanned)):
                    widths[start + length - 1 - extra % length] += 1
        return widths

    def _blocks(self, width: int | None) -> Iterator[Table]:
        """The table cut between its groups of columns into tables that fit into the width, as far as possible."""
        widths = self._widths(width)
        if width is None or len(self.columns) == 1 or sum(widths) + _GAP * (len(widths) - 1) <= width:
            yield self
            return
        units = self._units(widths, width)
        chosen = [0]
        for unit in units:
            if len(chosen) > 1 and sum(widths[i] + _GAP for i in (*chosen, *unit)) - _GAP > width:
                yield self._only(chosen)
                chosen = [0]
            chosen += unit
        yield self._only(chosen)

    def _units(self, widths: Sequence[int], width: int) -> list[list[int]]:
        """Columns that stay together: the highest groups that fit into the width beside the first column."""
        units = [[i] for i in range(1, len(widths))]
        for level in reversed(range(self._depth() - 1)):
            spans = (range(max(1, start), start + length) for _, start, length in self._spans(level))
            groups = [list(span) for span in spans if span]
            if any(sum(widths[i] + _GAP for i in (0, *group)) - _GAP > width for group in groups):
                break
            units = groups
        return units

    def _only(self, positions: Sequence[int]) -> Table:
        columns = tuple(self.columns[i] for i in positions)
        strong = frozenset((row, positions.index(i)) for row, i in self.strong if i in positions)
        rows = tuple(tuple(row[i] for i in positions) for row in self.rows)
        return replace(self, columns=columns, rows=rows, strong=strong)

    def _text_block(self, width: int | None) -> str:
        widths = self._widths(width)
        line = "-" * (sum(widths) + _GAP * (len(widths) - 1))
        lines = []
        for level in range(self._depth() - 1):
            labels, dashes = [], []
            for label, start, length in self._spans(level):
                room = sum(widths[start : start + length]) + _GAP * (length - 1)
                labels.append(_padded(normalise(label), room, "right" if length == 1 else "left"))
                dashes.append(("-" if label else " ") * room)
            lines += [(" " * _GAP).join(part).rstrip() for part in (labels, dashes)]
        lines += self._text_row([column.title for column in self.columns], widths)
        lines.append(line)
        for number, row in enumerate(self._shown()):
            if number and number in self.rules:
                lines.append(line)
            lines += self._text_row(row, widths)
        return "\n".join(lines)

    def _text_row(self, cells: Sequence[str], widths: Sequence[int]) -> list[str]:
        wrapped = [_wrapped(cell, width) or [""] for cell, width in zip(cells, widths, strict=True)]
        lines = []
        for number in range(max(map(len, wrapped))):
            parts = [
                _padded(cell[number] if number < len(cell) else "", width, column.align)
                for cell, width, column in zip(wrapped, widths, self.columns, strict=True)
            ]
            lines.append((" " * _GAP).join(parts).rstrip())
        return lines


def _alignment(rows: Sequence[Any], name: str) -> Literal["left", "right"]:
    """To the right where a field holds numbers only."""
    values = [row[name] if isinstance(row, Mapping) else getattr(row, name, None) for row in rows]
    known = [value for value in values if value is not None]
    return "right" if known and all(isinstance(value, int | float) for value in known) else "left"


def is_formula(value: object) -> bool:
    """Whether a spreadsheet would take a cell for a formula; numbers are none."""
    return isinstance(value, str) and value.startswith(_FORMULA) and not _NUMBER.fullmatch(value)


def escape_html(text: str) -> str:
    """The text for an HTML element or quoted attribute; characters that HTML forbids become U+FFFD."""
    return html.escape(_FORBIDDEN.sub("\ufffd", text), quote=True)


def escape_latex(text: str) -> str:
    """The text as LaTeX that prints it; line ends, control and direction marks become blanks."""
    return "".join(_LATEX.get(character, character) for character in normalise(text))


def escape_markdown(text: str) -> str:
    """The text as one line of Markdown that shows it, markup characters and all."""
    escaped = _MARKDOWN.sub(r"\\\1", normalise(text))
    return "".join(_ENTITIES.get(character, character) for character in escaped)


def _html_cell(text: str) -> str:
    return _isolated(escape_html(text))


def _isolated(escaped: str) -> str:
    """Keeps marks of writing direction from reordering what stands around the text."""
    return escaped if escaped.isascii() or escaped == _MISSING else f"<bdi>{escaped}</bdi>"


def _ends_of(title: str, three: bool) -> tuple[str, ...]:
    return (title, f"{title} low", f"{title} high") if three else (title,)


def _three(cell: Cell, three: bool) -> tuple[Cell, ...]:
    return (tuple(cell) if isinstance(cell, Interval) else (cell, None, None)) if three else (cell,)


def _csv_cell(text: str) -> str:
    # The csv module of Python 3.11 leaves a bare carriage return unquoted and then takes it for the end of a row.
    return '"' + text.replace('"', '""') + '"' if any(sign in text for sign in ',"\r\n') else text


def _html_class(column: Column) -> str:
    return ' class="number"' if column.align == "right" else ""


def _padded(text: str, width: int, align: str) -> str:
    blanks = " " * max(0, width - cell_len(text))
    return blanks + text if align == "right" else text + blanks


def group_starts(keys: Sequence[Any]) -> tuple[int, ...]:
    """The rows, after the first, whose key is another than that of the row above: where a group of rows begins."""
    return tuple(at for at in range(1, len(keys)) if keys[at] != keys[at - 1])


def _wrapped(text: str, width: int | None) -> list[str]:
    """The text in lines of at most `width` terminal cells; words that are longer are cut."""
    text = normalise(text)
    if not text or width is None or cell_len(text) <= width:
        return [text] if text else []
    lines = [""]
    for word in text.split(" "):
        for piece in chop_cells(word, width):
            joined = f"{lines[-1]} {piece}" if lines[-1] else piece
            if cell_len(joined) <= width:
                lines[-1] = joined
            else:
                lines.append(piece)
    return lines


def card(title: str, checked: str, *parts: Table | str) -> str:
    """A section of a README in Markdown, as GitHub and Hugging Face show it.

    Args:
        checked: goes on after "Checked with truerank 1.0": what was read, and by what rule.
        parts: tables and paragraphs of Markdown; empty ones are left out.
    """
    shown = (part.markdown().strip() if isinstance(part, Table) else part for part in parts)
    return "\n\n".join((f"## {title}", f"Checked with truerank {__version__}{checked}", *filter(None, shown))) + "\n"
