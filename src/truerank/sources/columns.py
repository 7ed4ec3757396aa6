"""Which column or key of a table holds the id and which the text."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from truerank.errors import InputError
from truerank.loading import whole_number

#: Names of the text, the likeliest first: TREC and BEIR habits, those of sentence-transformers, doccano's.
TEXT_NAMES: Final = (
    "query", "query_text", "text", "question", "anchor", "sentence1", "sentence_a", "sentence", "premise", "input",
    "utterance", "prompt", "data", "title", "topic_title",
)  # fmt: skip
#: Names of the id, the likeliest first.
ID_NAMES: Final = (
    "_id", "query_id", "query-id", "qid", "queryid", "ms-marco-qid", "question_id", "topic_id", "topic", "number", "id",
)  # fmt: skip
#: How many lines the layout of a table is told from.
SAMPLE_LINES: Final = 1000
#: Words of an id that holds blanks, at most.
_ID_WORDS: Final = 4
#: A line of judgments or of a run, with blanks between its columns.
_RANKING: Final = re.compile(r"\S+ +Q?0 +\S+ +-?\d+( +\S+ +\S+)?\s*$")
_COLON: Final = re.compile(r"[A-Za-z]{0,4}\d{1,4}-?\d{0,4}:\S")


class Layout(NamedTuple):
    """Where the fields of a line stand: positions from 0; `identifier` is None where the line number is the id.

    Lines are split at `separator` at most `splits` times; `header` says that the first line holds names.
    """

    identifier: int | None
    text: int
    splits: int
    header: bool = False
    separator: str = "\t"


def named(names: Sequence[str], wanted: Sequence[str]) -> str | None:
    """The first of the wanted names that is there, whatever its case; as it is written there."""
    known = {name.strip().lower(): name for name in reversed(names)}
    return next((known[name] for name in wanted if name in known), None)


def chosen(names: Sequence[str], column: str) -> str | None:
    """The name that a user means: `column` itself where it is there, or the one with this number from 1."""
    if column in names:
        return column
    number = whole_number(column) or 0
    return names[number - 1] if 0 < number <= len(names) else None


def no_column(names: Sequence[str], column: str | None, what: str, where: str | Path, line: int) -> InputError:
    """The fault of records without the column that is asked for, or without any that holds `what`."""
    there = ", ".join(map(repr, names[:12])) or "none"
    fault = f"no column or key '{column}'" if column else f"no column or key that holds {what}"
    return InputError(fault, f"there are {there}; name one with #COLUMN", where=where, line=line)


def csv_header(line: str) -> str | None:
    """The delimiter of a CSV file (comma, semicolon or tab) if its first line names a text column, else None."""
    for delimiter in (",", ";", "\t"):
        try:
            names = next(csv.reader([line], delimiter=delimiter), [])
        except csv.Error:
            continue
        if len(names) > 1 and named(names, TEXT_NAMES) is not None:
            return delimiter
    return None


def layout_of(lines: Sequence[str], column: str | None, path: Path, *, single: bool = False) -> Layout:
    """The layout of a text file of lines, told from its first ones.

    The number of columns is that of most lines. A first line that names an id and a text is a header. Otherwise, with
    one column, that is the text. With more, the first column is the id unless at least a tenth of its values hold
    blanks between words, and the text is the first column whose values do (`qid TAB query TAB did TAB url`,
    `query TAB passage TAB passage`, `qid TAB pid TAB query TAB passage`); where no column does, it is the second. Ids
    may hold blanks, too, if they are all different, short, and hold a digit (`topic 12 TAB query`).
    Files whose every line begins with a topic number and a colon (`wt09-1:obama family tree`) are split there.
    """
    sample = [line for line in lines[:SAMPLE_LINES] if line.strip()]
    rows = [line.split("\t") for line in sample]
    if single or not rows:
        return Layout(None, 0, 0)
    width = _usual_width(rows)
    names = [name.strip() for name in rows[0]]
    header = width > 1 and named(names, TEXT_NAMES) is not None and named(names, ID_NAMES) is not None
    if column is not None:
        return _chosen(column, rows, header, path)
    if header:
        text = names.index(named(names, TEXT_NAMES) or "")
        identifier = names.index(named(names, ID_NAMES) or "")
        return Layout(identifier, text, _splits(max(text, identifier), width), header=True)
    if width == 1:
        if all(map(_RANKING.match, sample)):
            raise _no_texts(path)
        colon = len(sample) > 1 and all(_COLON.match(line) for line in sample)
        return Layout(0, 1, 1, separator=":") if colon else Layout(None, 0, 0)
    full = [row for row in rows if len(row) >= width]
    worded = [position for position in range(width) if _has_words(full, position)]
    if width > 2 and not worded:
        _refuse_numbers(full, path)
    text = worded[0] if worded else 1
    return Layout(None if text == 0 else 0, text, _splits(text, width))


def _chosen(column: str, rows: list[list[str]], header: bool, path: Path) -> Layout:
    names, width = [name.strip() for name in rows[0]], _usual_width(rows)
    if column in names and not column.isdigit():
        text, header = names.index(column), True
    elif 1 <= (number := whole_number(column) or 0) <= max(map(len, rows)):
        text = number - 1
    else:
        there = f"it has the columns {', '.join(names)}" if header else f"it has {width} columns and no header"
        raise InputError(f"no column '{column}'", f"{there}; name one, or give its number from 1", where=path, line=1)
    width = max(width, text + 1)
    known = named(names, ID_NAMES) if header else None
    full = [row for row in rows if len(row) >= width]
    identifier = names.index(known) if known else 0 if text and not _has_words(full, 0) else None
    if identifier == text:
        identifier = None
    return Layout(identifier, text, _splits(max(text, identifier or 0), width), header=header)


def _usual_width(rows: Sequence[Sequence[str]]) -> int:
    counts = Counter(map(len, rows))
    return min(counts, key=lambda width: (-counts[width], width))


def _splits(last: int, width: int) -> int:
    """The last of the usual columns keeps further tabs; a text before it ends at the next one."""
    return last if last == width - 1 else last + 1


def _has_words(rows: Sequence[Sequence[str]], position: int) -> bool:
    blanks = sum(" " in row[position].strip() for row in rows)
    return blanks * 10 >= max(1, len(rows)) and not (position == 0 and _is_id_with_blanks(rows))


def _is_id_with_blanks(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first column holds ids such as "topic 12": all different, short, each with a digit."""
    values = [row[0].strip() for row in rows]
    return 1 < len(set(values)) == len(values) and all(
        value.count(" ") < _ID_WORDS and any(character.isdigit() for character in value) for value in values
    )


def _refuse_numbers(rows: Sequence[Sequence[str]], path: Path) -> None:
    if all(row[1].strip() in ("0", "Q0") or row[1].strip().isdigit() for row in rows):
        raise _no_texts(path)


def _no_texts(path: Path) -> InputError:
    remedy = "give the file of the queries, or name the column with #NUMBER"
    return InputError(
        "ids and numbers only, no query text (relevance judgments, or a run?)", remedy, where=path, line=1
    )
