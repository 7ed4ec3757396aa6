"""What the cells of a golden file hold: numbers, ids, lists of results as programs and people write them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from truerank.errors import InputError
from truerank.sources.golden_rows import GoldenRows, is_empty, json_cell

KEYS: Final = (
    "doc_id", "docid", "document_id", "chunk_id", "passage_id", "node_id", "id_", "_id", "id", "docno", "corpus_id",
    "source", "url", "file",
)  # fmt: skip


_TEXTS: Final = ("page_content", "text", "content", "body", "passage")


INNER: Final = ("metadata", "node", "document")


SEPARATORS: Final = (";", "|", "\n", ",")


_FLOAT_ID: Final = re.compile(r"-?\d+\.0")


_NUMBER: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


_YES, _NO = "true yes pass passed".split(), "false no fail failed".split()


_ANSWERS: Final = dict.fromkeys(_YES, 1.0) | dict.fromkeys(_NO, 0.0)


_MISSING: Final = re.compile(r"nan|n/?a|null|none|[-–—.]|#[A-Z0-9/]+[!?]?", re.IGNORECASE)


_DECIMAL_COMMA: Final = re.compile(r"[+-]?\d+,\d+")


#: Shares of cells by which a column is told.
MOST: Final = 0.6


#: Words from which on an expected cell is a text, and letters from which a text within another one is meant.
TEXT_WORDS: Final = 3


class Retrieved(NamedTuple):
    """One result: its id, its score and its text, as far as they are known."""

    doc_id: str
    score: float | None = None
    text: str = ""


def mean(values: Iterable[float]) -> float:
    every = list(values)
    return sum(every) / max(1, len(every))


def is_lists(table: GoldenRows, name: str) -> bool:
    cells = table.filled(name)
    return bool(cells) and sum(isinstance(json_cell(cell), list | dict) for cell in cells) >= MOST * len(cells)


def is_numeric(table: GoldenRows, name: str) -> bool:
    cells = table.filled(name)
    numbers = [cell for cell in cells if not is_missing(cell)]
    return len(numbers) * 2 > len(cells) and all(number_of(cell) is not None for cell in numbers)


def number_of(cell: Any) -> float | None:
    if isinstance(cell, bool):
        return float(cell)
    if isinstance(cell, int | float):
        return float(cell)
    text = str(cell).replace("\xa0", " ").strip()
    if text.lower() in _ANSWERS:
        return _ANSWERS[text.lower()]
    share = text.endswith("%")
    text = text.removesuffix("%").rstrip()
    if _DECIMAL_COMMA.fullmatch(text):
        text = text.replace(",", ".")
    if not _NUMBER.fullmatch(text):
        return None
    return float(text) / 100 if share else float(text)


def is_missing(cell: Any) -> bool:
    """Whether a cell of numbers is empty, or says that there is none, as programs and spreadsheets do."""
    return is_empty(cell) or _MISSING.fullmatch(str(cell).strip()) is not None


def vocabulary(table: GoldenRows, name: str) -> frozenset[str]:
    split = separator(table, name)
    return frozenset(one.doc_id for row, cell in enumerate(table.cells(name)) for one in items(cell, split, table, row))


def lists_of(table: GoldenRows, name: str) -> list[frozenset[str]] | None:
    """The ids of each cell of a column; None where they cannot be read."""
    try:
        sign = separator(table, name)
        return [
            frozenset(one.doc_id for one in items(cell, sign, table, row)) for row, cell in enumerate(table.cells(name))
        ]
    except InputError:
        return None


def separator(table: GoldenRows, name: str) -> str:
    """The sign between the ids of a column of texts; empty where there is one id in each."""
    texts = [cell.strip() for cell in table.filled(name) if isinstance(json_cell(cell), str)]
    used = [sign for sign in SEPARATORS if any(sign in text for text in texts)]
    for sign in used:
        several = [text for text in texts if any(other in text for other in used)]
        if all(sign in text for text in several):
            return sign
    if used:
        rows = {sign: next(row for row, cell in enumerate(table.cells(name)) if sign in str(cell)) for sign in used[:2]}
        signs = " and ".join("line ends" if sign == "\n" else f"'{sign}'" for sign in rows)
        raise table.fault(f"'{name}' has lists separated by {signs}", "use one sign", max(rows.values()))
    tokens = [text.split() for text in texts]
    if any(len(parts) > 1 for parts in tokens) and all(_is_like_id(part) for parts in tokens for part in parts):
        return " "
    return ""


def _is_like_id(text: str) -> bool:
    return any(sign.isdigit() for sign in text) and not text.endswith((".", "?", "!"))


def items(cell: Any, split: str, table: GoldenRows, row: int) -> Iterator[Retrieved]:
    """The results, or expected documents, of a cell."""
    value = json_cell(cell)
    if is_empty(value):
        return
    if isinstance(value, Mapping):
        if found := _of_mapping(value):
            yield found
            return
        scored = [Retrieved(identifier_of(key), number_of(one)) for key, one in value.items()]
        yield from sorted(scored, key=lambda one: -(one.score or 0.0))
        return
    if isinstance(value, list | tuple):
        for one in value:
            if isinstance(one, Mapping):
                found = _of_mapping(one)
                if found is None:
                    fault = f"a result without an id: {', '.join(map(str, one))}"
                    raise table.fault(fault, "give each result an id or a text", row)
                yield found
            elif isinstance(one, list | tuple):
                if len(one) != 2 or number_of(one[1]) is None:
                    raise table.fault("a list within a list of results", "give ids, or pairs of id and score", row)
                yield Retrieved(identifier_of(one[0]), number_of(one[1]))
            elif not is_empty(one):
                yield Retrieved(identifier_of(one))
        return
    parts = [value] if not isinstance(value, str) or not split else value.split(split if split != " " else None)
    for part in parts:
        text = part.strip().strip("[]'\"").strip() if isinstance(part, str) else part
        if not is_empty(text):
            yield Retrieved(identifier_of(text))


def _of_mapping(value: Mapping[str, Any]) -> Retrieved | None:
    """A result that is an object: an id or a text, perhaps with a score."""
    flat = dict(value)
    for key in INNER:
        if isinstance(flat.get(key), Mapping):
            flat = {**flat.pop(key), **flat}
    score = next((number_of(flat[key]) for key in ("score", "similarity", "relevance_score") if key in flat), None)
    text = next((str(flat[key]) for key in _TEXTS if isinstance(flat.get(key), str)), "")
    identifier = next((flat[key] for key in KEYS if not is_empty(flat.get(key))), text or None)
    return None if identifier is None else Retrieved(identifier_of(identifier), score, text)


def identifier_of(value: Any) -> str:
    """An id as text: 12, 12.0 and "12.0" are one id."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = " ".join(str(value).split())
    return text[:-2] if _FLOAT_ID.fullmatch(text) else text


def whole(identifier: str) -> str:
    """An id without blanks, as runs and judgments need it."""
    return "_".join(identifier.split())
