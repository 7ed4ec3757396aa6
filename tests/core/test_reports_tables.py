import csv
import io
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from rich.cells import cell_len

from truerank.core.tables import Column, Table, escape_latex, is_formula
from truerank.core.views import heads
from truerank.text.normalising import normalise

LEAKS = Table(
    "Topics and queries.",
    (
        Column("Candidates"),
        Column("T", ("Robust04", "MSM"), "right", ",d"),
        Column("Q", ("Robust04", "MSM"), "right", ",d"),
        Column("T", ("Robust04", "+ ORC"), "right", ",d"),
        Column("Q", ("Robust04", "+ ORC"), "right", ",d"),
        Column("T", ("Core 2017", "MSM"), "right", ",d"),
        Column("Q", ("Core 2017", "MSM"), "right", ",d"),
    ),
    (("Title", 33, 83, 140, 1775, 2, 12), ("Union", 53, 151, 181, 3960, 7, None)),
    notes=("A note.",),
    rules=(1,),
)
TEXTS = st.text(st.characters(blacklist_categories=["Cs"]), max_size=30)


def test_text_shows_groups_of_columns_and_rules():
    assert LEAKS.text() == (
        "Topics and queries.\n"
        "\n"
        "            Robust04             Core 2017\n"
        "            -------------------  ---------\n"
        "            MSM      + ORC       MSM\n"
        "            -------  ----------  ---------\n"
        "Candidates   T    Q    T      Q    T     Q\n"
        "------------------------------------------\n"
        "Title       33   83  140  1,775    2    12\n"
        "------------------------------------------\n"
        "Union       53  151  181  3,960    7     –\n"
        "\n"
        "A note.\n"
    )


def test_text_too_wide_is_cut_between_groups_with_the_names_repeated():
    text = LEAKS.text(34)
    assert [line for line in text.splitlines() if line.startswith("Union")] == [
        "Union       53  151  181  3,960",
        "Union         7     –",
    ]


def test_text_counts_terminal_cells():
    table = Table("", (Column("Query"), Column("n", align="right")), (("東京", 1), ("abcd", 2)))
    assert table.text().splitlines()[-2:] == ["東京   1", "abcd   2"]


@given(st.lists(st.tuples(TEXTS, TEXTS, st.integers(0, 10**6)), min_size=1, max_size=4), st.integers(45, 100))
def test_text_fits_the_width(rows, width):
    table = Table("A title.", (Column("One"), Column("Two"), Column("n", ("Count",), "right", ",d")), tuple(rows))
    assert all(cell_len(line) <= width for line in table.text(width).splitlines())


@given(TEXTS)
def test_markdown_shows_the_text(text):
    table = Table("", (Column("a"), Column("b")), ((text, "x"),))
    tokens = MarkdownIt("commonmark").enable("table").parse(table.markdown())
    cells = [token for token in tokens if token.type == "inline"][2:]
    shown = ["".join(child.content for child in cell.children) for cell in cells]
    assert all(child.type in ("text", "text_special") for cell in cells for child in cell.children)
    assert shown == [normalise(text), "x"]


def test_latex_is_booktabs():
    table = Table(
        "50% & more.",
        (Column("Field"), Column("T", ("MSM",), "right"), Column("Q", ("MSM",), "right", ".1f")),
        (("[x]_1", 2, 0.25), ("union", 3, None)),
        rules=(1,),
    )
    assert table.latex().splitlines() == [
        r"\begin{table}",
        r"\centering",
        r"\caption{50\% \& more.}",
        r"\begin{tabular}{@{}lrr@{}}",
        r"\toprule",
        r" & \multicolumn{2}{c}{MSM} \\",
        r"\cmidrule(lr){2-3}",
        r"Field & T & Q \\",
        r"\midrule",
        r"{[}x]\_1 & 2 & 0.2 \\",
        r"\midrule",
        r"union & 3 & – \\",
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]


@given(TEXTS)
def test_latex_can_be_read_back(text):
    named = {
        "backslash": "\\",
        "asciicircum": "^",
        "asciitilde": "~",
        "less": "<",
        "greater": ">",
        "bar": "|",
        "quotedbl": '"',
    }
    token = re.compile(r"\\text([a-z]+)\{\}|\\([{}$&#%_])|\{([\[*])\}|([^\\{}$&#%_^~])")
    escaped = escape_latex(text)
    parts = list(token.finditer(escaped))
    assert "".join(part[0] for part in parts) == escaped
    assert "".join(named[p[1]] if p[1] else p[2] or p[3] or p[4] for p in parts) == normalise(text)


@given(st.lists(st.tuples(TEXTS, st.none() | st.integers() | st.floats(allow_nan=False)), min_size=1))
def test_csv_comes_back_but_for_an_apostrophe_before_formulas(rows):
    table = Table("", (Column("text"), Column("T", ("MSM",), "right", ",d")), tuple(rows))
    read = list(csv.reader(io.StringIO(table.csv(), newline="")))
    texts = [f"'{text}" if is_formula(text) else text for text, _ in rows]
    assert read[0] == ["text", "MSM / T"]
    assert read[1:] == [[text, "" if row[1] is None else str(row[1])] for text, row in zip(texts, rows, strict=True)]


class Cells(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.cells = [], []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_data(self, data):
        if self.cells:
            self.cells[-1] += data


@given(TEXTS)
def test_html_shows_the_text_and_nothing_else(text):
    parser = Cells()
    parser.feed(Table("", (Column("a"),), ((text,),)).html().partition("</td>")[0].partition("</tbody>")[0])
    allowed = "".join("\ufffd" if re.match("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffe\uffff]", c) else c for c in text)
    assert parser.cells[1].rstrip("\n") == allowed.rstrip("\n")
    assert {tag for tag, _ in parser.tags} <= {"table", "thead", "tr", "th", "tbody", "bdi"}


def test_missing_and_undefined_numbers_are_dashes():
    assert [Column("x", format=".2f").show(cell) for cell in (None, float("nan"), 0.125)] == ["–", "–", "0.12"]


def test_rows_must_fit_the_columns():
    with pytest.raises(ValueError, match="row 1 has 1 cells, the table has 2 columns"):
        Table("", (Column("a"), Column("b")), ((1, 2), (1,)))


def test_the_first_cells_of_a_table_of_rules_are_addresses():
    table = Table("", heads("code, count"), (("LEAK02", 3), ("LEAK04", 1)), addressed=True)
    assert re.findall(r'<th scope="row" id="(\w+)">\1</th>', table.html()) == ["LEAK02", "LEAK04"]
    assert "id=" not in replace(table, addressed=False).html()
