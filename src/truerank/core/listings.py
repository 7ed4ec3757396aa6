"""A long list that people sort, filter, search and save in the page; paper and no-script readers see its first part.

The rows travel as data, column by column, and become elements in the browser, a hundred at a time; nothing of a row is
ever read as markup.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from truerank.text.words import MarkedPiece, mark, stem, words

#: More distinct values than this are typed, fewer are chosen from a list.
_MOST_CHOICES: Final = 40
_STATIC_ROWS: Final = 200
#: Names up to this length stay on one line.
_SHORT: Final = 20
# "<" would let a text end the script element; the two separators end a line in old JavaScript.
_UNSAFE: Final = re.compile("[<>&\u2028\u2029\ud800-\udfff]")


@dataclass(frozen=True)
class ListingColumn:
    """One column of a listing.

    Args:
        key: its name in saved files and in the address of the page: a lower-case word.
        values: one text or number per row.
        kind: "text" for sentences, "label" for names, "code" for identifiers, "number" for numbers.
        filter: "choose" to keep one value, "above" to keep numbers above a bound, "none".
        start: the bound that an "above" filter begins with; None for none.
        digits: digits shown behind the point of a number.
        shown: whether the table has the column.
        exported: whether the saved file has the column.
        searched: whether the text search looks into it.
    """

    key: str
    title: str
    values: Sequence[str] | Sequence[float]
    kind: Literal["text", "label", "code", "number"] = "text"
    filter: Literal["choose", "above", "none"] = "none"
    start: float | None = None
    digits: int = 4
    shown: bool = True
    exported: bool = True
    searched: bool = False

    def show(self, row: int) -> str:
        """The value of a row as people read it."""
        value = self.values[row]
        return value if isinstance(value, str) else f"{value:.{self.digits}f}"

    def choices(self) -> list[tuple[str, int]]:
        """Distinct values with their numbers of rows, in the order of their first rows."""
        return [(str(value), count) for value, count in Counter(self.values).items() if value != ""]

    def typed(self) -> bool:
        """Whether there are too many values to choose from."""
        return len(set(self.values)) > _MOST_CHOICES

    def short(self) -> bool:
        """Whether every value is a name that fits on one line."""
        return self.kind == "label" and all(len(str(value)) <= _SHORT for value in self.values)

    def above_start(self, row: int) -> bool:
        """Whether a row passes the bound that the column's filter begins with."""
        return self.start is None or round(float(self.values[row]), 6) > self.start

    def data(self) -> dict[str, Any]:
        """What the script needs of the column; repeated texts are stored once."""
        about: dict[str, Any] = {
            "key": self.key,
            "title": self.title,
            "kind": self.kind,
            "filter": self.filter,
            "start": "" if self.start is None else f"{self.start:g}",
            "digits": self.digits,
            "shown": self.shown,
            "exported": self.exported,
            "searched": self.searched,
        }
        if self.kind == "number":
            return {**about, "values": [round(float(value), 6) for value in self.values]}
        codes = {value: code for code, value in enumerate(dict.fromkeys(self.values))}
        if 2 * len(codes) > len(self.values):
            return {**about, "values": list(self.values)}
        return {**about, "dictionary": list(codes), "codes": [codes[value] for value in self.values]}


@dataclass(frozen=True)
class Listing:
    """A list of rows with everything a person needs to look through it.

    Args:
        name: a lower-case word that is unique in the page.
        title: the caption, one sentence.
        columns: the columns from left to right, all of one length.
        nouns: what one row is, and what several are ("pair", "pairs").
        sort: key of the column that the list is sorted by at first, with "-" before it for descending; rows that are
            equal in it keep their order. Empty for the order of the values.
        compared: keys of two columns of texts whose differing words are marked in each other.
        printed: rows that are printed.
        whole: where the whole list is, for those who see a part ("candidates.parquet").
    """

    name: str
    title: str
    columns: tuple[ListingColumn, ...]
    nouns: tuple[str, str]
    sort: str = ""
    compared: tuple[str, str] | None = None
    printed: int = 500
    whole: str = ""

    def __post_init__(self) -> None:
        if len({len(column.values) for column in self.columns}) > 1:
            raise ValueError("columns of different lengths")

    def __len__(self) -> int:
        return len(self.columns[0].values) if self.columns else 0

    def column(self, key: str) -> ListingColumn:
        return next(column for column in self.columns if column.key == key)

    def shown(self) -> list[ListingColumn]:
        """The columns that the table has."""
        return [column for column in self.columns if column.shown]

    def classes(self) -> dict[str, str]:
        """The classes of the cells by column; the first of two compared columns is the quiet one."""
        quiet = None if self.compared is None else self.compared[0]
        return {
            c.key: f"{c.kind}{' short' if c.short() else ''}{' reference' if c.key == quiet else ''}"
            for c in self.columns
        }

    def filters(self) -> list[ListingColumn]:
        """The columns that can be filtered by, without those that have one value."""
        return [c for c in self.columns if c.filter == "above" or (c.filter == "choose" and len(set(c.values)) > 1)]

    def first_rows(self) -> list[int]:
        """Numbers of the rows that are in the page without its script, sorted and filtered as at first."""
        bounded = [column for column in self.columns if column.start is not None]
        rows = [row for row in range(len(self)) if all(column.above_start(row) for column in bounded)]
        if self.sort:
            values = self.column(self.sort.removeprefix("-")).values
            rows.sort(key=lambda row: values[row], reverse=self.sort.startswith("-"))
        return rows[:_STATIC_ROWS]

    def cells(self, row: int) -> Iterator[tuple[ListingColumn, Sequence[MarkedPiece]]]:
        """The shown cells of a row; those of the compared columns in pieces with what they are to the other text."""
        marked: dict[str, Sequence[MarkedPiece]] = {}
        if self.compared is not None:
            texts = [self.column(key).show(row) for key in self.compared]
            marked = dict(zip(self.compared, mark(*texts), strict=True))
        for column in self.shown():
            yield column, marked.get(column.key, (MarkedPiece(column.show(row), "same"),))

    def data(self) -> str:
        """The rows as JSON that can be in a `script` element."""
        classes = self.classes()
        about = {
            "name": self.name,
            "nouns": self.nouns,
            "rows": len(self),
            "sort": self.sort,
            "compared": self.compared,
            "stems": self._stems(),
            "printed": self.printed,
            "whole": self.whole,
            "columns": [{**column.data(), "classes": classes[column.key]} for column in self.columns],
        }
        return data_for_script(about)

    def _stems(self) -> dict[str, str]:
        """The stems of the words in the compared columns, where they differ from the words."""
        texts = {str(text) for key in self.compared or () for text in self.column(key).values}
        forms = sorted({form for text in texts for form in words(text)})
        return {form: stem(form) for form in forms if stem(form) != form}


def data_for_script(value: object) -> str:
    """JSON in which no text can end the `script` element it stands in, open a comment, or break a line."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return _UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
