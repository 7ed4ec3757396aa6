"""What the cells of a golden file hold: numbers, ids, lists of results as programs and people write them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from truerank.errors import InputError
from truerank.sources.golden_rows import GoldenRows, is_empty, json_cell
from truerank.sources.golden_words import ANSWER, GENERATED, REFERENCE, RETRIEVED, THING, says, words_of
from truerank.sources.qrels import step_of

KEYS: Final = (
    "doc_id", "docid", "document_id", "chunk_id", "passage_id", "node_id", "id_", "_id", "id", "docno", "corpus_id",
    "docId", "docID", "documentId", "chunkId", "passageId", "nodeId", "source", "url", "file", "doc", "document", "pid",
    "path", "file_path",
)  # fmt: skip
_TEXTS: Final = ("page_content", "text", "content", "body", "passage")
#: Last words of names of numbers that rise from the best result: distance, cosine_distance, rank.
_RISING: Final = (("distance",), ("distances",), ("dist",), ("rank",))
INNER: Final = ("metadata", "node", "document", "hit")
SEPARATORS: Final = (";", "|", "\n", ",")
#: Signs that are tried where ids of expected and retrieved cells meet only by one of them; an id may hold the others.
_TRIED: Final = (*SEPARATORS, " / ", "、")
#: The share of expected cells of which that has to be so.
_LEAST_MET: Final = 0.25
_DIGIT: Final = re.compile(r"\d")
_FLOAT_ID: Final = re.compile(r"-?\d+\.0")
_NUMBER: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_YES, _NO = "true yes pass passed".split(), "false no fail failed".split()
_ANSWERS: Final = dict.fromkeys(_YES, 1.0) | dict.fromkeys(_NO, 0.0)
_MISSING: Final = re.compile(r"nan|n/?a|null|none|[-–—.]|#[A-Z0-9/]+[!?]?", re.IGNORECASE)
#: An id and its grade: kb-7:2, kb-7=2, kb-7 (2).
_GRADED_ID: Final = re.compile(r"(.*[^\s:=(])\s*[:=(]\s*(\d+(?:\.\d+)?)\)?")
_DECIMAL_COMMA: Final = re.compile(r"[+-]?\d+,\d+")
#: Shares of cells by which a column is told.
MOST: Final = 0.6
#: Words by which a program says that something failed.
_FAILURES: Final = 3
_CODE: Final = re.compile(r"(error|status|http|code)\W*\d+", re.IGNORECASE)
#: Columns and letters of cells that a question about columns shows.
_SHOWN, _WIDTH = 24, 24
#: Words from which on an expected cell is a text, and letters from which a text within another one is meant.
TEXT_WORDS: Final = 3


UNICODE: Final = "in one form of Unicode (NFC)"
DIGITS: Final = "by their digits alone"
#: The number of a piece of a document behind its id.
_PIECE: Final = re.compile(r"[-_:./#]+(chunk|part|passage|page|section|segment|split)s?[-_:.#]*\d+$", re.IGNORECASE)
#: Forms of an id under which other ids may be meant.
ID_FORMS: Final[Mapping[str, Callable[[str], str]]] = {
    UNICODE: lambda one: unicodedata.normalize("NFC", one),
    "without what follows '#'": lambda one: one.partition("#")[0],
    "without the number of a piece": lambda one: _PIECE.sub("", one),
    "in small letters": str.casefold,
    "without leading zeros": lambda one: one.lstrip("0") or "0",
    "without what precedes the last '/'": lambda one: one.rpartition("/")[2],
    "without the ending of the file": lambda one: one.rpartition(".")[0] or one,
    DIGITS: lambda one: "".join(sign for sign in one if sign.isdigit()).lstrip("0") or one,
}


class Retrieved(NamedTuple):
    """One result: its id, its score, its text, and a number that rises from the best one, as far as they are known.

    `grade` is what somebody said of it beside its score.
    """

    doc_id: str
    score: float | None = None
    text: str = ""
    distance: float | None = None
    grade: float | None = None

    @property
    def weight(self) -> float | None:
        """What an expected document counts."""
        return self.score if self.grade is None else self.grade


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


def is_scored(table: GoldenRows, name: str) -> bool:
    """Whether a column holds numbers, perhaps with a few words of failures among them, as "timeout" and "error"."""
    cells = [cell for cell in table.filled(name) if not is_missing(cell)]
    numbers = [number for cell in cells if (number := number_of(cell)) is not None]
    words = {_CODE.sub("error", str(cell)) for cell in cells if number_of(cell) is None}
    fractions = sum(not number.is_integer() for number in numbers)
    plain = fractions * 2 > len(cells) or (len(words) <= _FAILURES and not re.search(r"\d", "".join(words)))
    return is_numeric(table, name) or (len(numbers) >= MOST * len(cells) > 0 and plain)


def is_whole(table: GoldenRows, name: str) -> bool:
    """Whether a column holds whole numbers alone."""
    return all((number_of(cell) or 0.0).is_integer() for cell in table.filled(name)) and is_numeric(table, name)


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


def lists_of(table: GoldenRows, name: str, sign: str | None = None) -> list[frozenset[str]] | None:
    """The ids of each cell of a column; None where they cannot be read."""
    try:
        sign = separator(table, name) if sign is None else sign
        return [
            frozenset(one.doc_id for one in items(cell, sign, table, row)) for row, cell in enumerate(table.cells(name))
        ]
    except InputError:
        return None


def separator(table: GoldenRows, name: str) -> str:
    """The sign between the ids of a column of texts; empty where there is one id in each."""
    texts = [cell.strip() for cell in table.filled(name) if isinstance(json_cell(cell), str)]
    if is_prose(table, name):
        return ""
    used = [sign for sign in SEPARATORS if any(sign in text for text in texts)]
    for sign in used:
        several = [text for text in texts if any(other in text for other in used)]
        if all(sign in text for text in several):
            return sign
    if used and 2 * sum(" " in part.strip() for text in texts for part in re.split("[;|\n,]", text)) > len(texts):
        return ""  # sentences
    if used:
        rows = {sign: next(row for row, cell in enumerate(table.cells(name)) if sign in str(cell)) for sign in used[:2]}
        signs = " and ".join("line ends" if sign == "\n" else f"'{sign}'" for sign in rows)
        raise table.fault(f"'{name}' has lists separated by {signs}", "use one sign", max(rows.values()))
    listed = [part for text in texts for part in text.split("、")]
    if len(listed) > len(texts) and all(map(_is_like_id, listed)):
        return "、"
    tokens = [text.split() for text in texts]
    if any(len(parts) > 1 for parts in tokens) and all(_is_like_id(part) for parts in tokens for part in parts):
        return " "
    return ""


def is_other_words(table: GoldenRows, name: str, known: frozenset[str]) -> bool:
    """Whether a column that nobody calls results holds words, while all known ids have digits: keywords and tags."""
    if says(name, RETRIEVED) or not known or not all(map(_DIGIT.search, known)):
        return False
    return not any(map(_DIGIT.search, frozenset[str]().union(*(lists_of(table, name) or ("0",)))))


def refuse_flags(table: GoldenRows, names: Iterable[str]) -> None:
    """Refuses lists of 0 and 1, which say by rank what is relevant, and name no documents."""
    for name in names:
        cells = [json_cell(cell) for cell in table.filled(name)]
        lists = [cell for cell in cells if isinstance(cell, list)]
        if lists and max(map(len, lists)) > 2 and all(one in (0, 1) for own in lists for one in own):
            remedy = "write ids, or the score of each list: for RR, 1 / the place of its first 1"
            raise table.fault(f"'{name}' has 0 and 1 by rank, and no ids of documents", remedy)


def columns_shown(table: GoldenRows) -> tuple[str, ...]:
    """The columns of a table, each with a cell and what `--columns` may take it for by what it holds."""
    lines = []
    for name in table.names[:_SHOWN]:
        cells = table.filled(name)
        values = [json_cell(cell) for cell in cells]
        few = 2 * len({str(cell) for cell in cells}) <= len(cells)
        if any(isinstance(value, list | dict) for value in values):
            roles = "expected, retrieved"
        elif is_scored(table, name):
            roles = "score, rank, grade, id, repeat" if is_whole(table, name) else "score"
        elif mean(len(str(cell).split()) for cell in cells) >= TEXT_WORDS:
            roles = "question, expected, retrieved"
        else:
            roles = "system, repeat, measure, expected" if few else "id, question, expected, retrieved, document"
        cell = " ".join(str(cells[0] if cells else "").split())
        lines.append((name, cell if len(cell) <= _WIDTH else f"{cell[: _WIDTH - 1]}…", roles if cells else "(empty)"))
    wide = max((min(len(name), _WIDTH) for name, _, _ in lines), default=0)
    more = len(table.names) - len(lines)
    return (
        "Columns, their first cells, and what each may be (--columns ROLE=COLUMN,ROLE=COLUMN):",
        *(f"  {name:<{wide}}  {cell:<{_WIDTH}}  {roles}" for name, cell, roles in lines),
        *((f"  and {more} more",) if more else ()),
    )


def is_prose(table: GoldenRows, name: str) -> bool:
    """Whether a column has an answer in words, which may hold the signs between ids."""
    cells = [str(cell).split() for cell in table.filled(name) if isinstance(json_cell(cell), str)]
    words = [word for cell in cells for word in cell]
    named = says(name, ANSWER | GENERATED | REFERENCE) and len(words) >= 2 * TEXT_WORDS * len(cells) > 0
    return named and 2 * sum(map(_is_like_id, words)) < len(words)


def are_texts(table: GoldenRows, name: str, split: str) -> bool:
    """Whether expected answers are texts and not ids."""
    cells = [json_cell(cell) for cell in table.filled(name)]
    items = [one for cell in cells for one in (cell if isinstance(cell, list) else [cell])]
    words = [len(str(one).split()) for one in items if isinstance(one, str)]
    if not words or says(name, ("id", "ids")):
        return False
    if split and split != ",":
        return False
    called = set(words_of(name))
    return sum(count >= TEXT_WORDS for count in words) >= MOST * len(words) or bool(
        called & ANSWER and not called & THING
    )


def shared_separator(gold: tuple[GoldenRows, str], results: tuple[GoldenRows, Sequence[str]]) -> tuple[str, list[str]]:
    """The sign by which more expected cells are ids of results than where each column is split alone, if any.

    Cells count of which all ids are met, as parts of ids meet by chance; then ids. Of two signs that are as good, the
    rarer one counts.

    Returns:
        The sign, and the columns of results that it splits.
    """
    table, columns = results

    def met(signs: Mapping[str, str], own: str) -> tuple[int, int]:
        known = {doc for column in columns for part in lists_of(table, column, signs[column]) or () for doc in part}
        parts = lists_of(*gold, own) or []
        return sum(bool(part) and part <= known for part in parts), sum(len(part & known) for part in parts)

    cells = (cell for source, column in (gold, *((table, one) for one in columns)) for cell in source.filled(column))
    texts = [cell for cell in cells if isinstance(json_cell(cell), str)]
    counts = {sign: sum(text.count(sign) for text in texts) for sign in _TRIED}
    if not any(counts.values()):
        return "", []
    own, alone = _alone(*gold), {column: _alone(table, column) for column in columns}
    usual, uncut = met(alone, own), met(alone, "") if are_texts(*gold, own) else (0, 0)
    tried = [(met(dict.fromkeys(columns, sign), sign), -count, sign) for sign, count in counts.items() if count]
    most, _, best = max(tried, default=((0, 0), 0, ""))
    if (alike := _around_alike(texts)) and met(dict.fromkeys(columns, alike), alike) > usual:
        best = alike
    elif most <= usual or most[0] < max(uncut[0], _LEAST_MET * len(gold[0].filled(gold[1]))):
        return "", []
    wanted = frozenset[str]().union(*(lists_of(*gold, best) or ()))
    pieces = wanted.union(*(part for column in columns for part in lists_of(table, column, best) or ()))
    if any(part.strip() in wanted for one in pieces for sign in _TRIED if sign in one for part in one.split(sign)):
        return "", []  # some cells use another sign
    split = [one for one in columns if any(isinstance(cell, str) and best in cell for cell in table.filled(one))]
    return best, [one for one in split if any(part & wanted for part in lists_of(table, one, best) or ())]


def with_grades(table: GoldenRows, name: str, known: frozenset[str]) -> GoldenRows:
    """The table with grades by id where each part of a column ends in a number, and known ids lack it: "kb-7:2"."""
    sign = _alone(table, name)
    cells = [cell for cell in table.filled(name) if isinstance(json_cell(cell), str)]
    parts = [[_GRADED_ID.fullmatch(part.strip()) for part in (cell.split(sign) if sign else [cell])] for cell in cells]
    graded = [part for own in parts for part in own if part is None or part[0].strip()]
    if not graded or len(cells) < len(table.filled(name)) or not all(graded):
        return table
    if not known & {part[1] for part in graded if part} or known & {part[0] for part in graded if part}:
        return table
    found = iter(parts)
    rows = [
        {**row, name: {one[1]: float(one[2]) for one in next(found) if one}} if not is_empty(row.get(name)) else row
        for row in table.rows
    ]
    return replace(table, rows=tuple(rows), remarks=(*table.remarks, f"'{name}' has ids with grades"))


def _around_alike(texts: Sequence[str]) -> str:
    """The sign between parts that have each other sign equally often, as "Report 7, part 1 | Report 9, part 1"."""
    used = [sign for sign in SEPARATORS if any(sign in text for text in texts)]
    for sign in used if len(used) > 1 else ():
        parts = [part for text in texts for part in text.split(sign)]
        inside = {tuple(part.count(other) for other in used if other != sign) for part in parts}
        if len(parts) > len(texts) and len(inside) == 1 and all(*inside):
            return sign
    return ""


def _alone(table: GoldenRows, name: str) -> str:
    try:
        return separator(table, name)
    except InputError:
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


def check_distances(found: Sequence[Retrieved], whose: str, table: GoldenRows) -> None:
    """Refuses results with numbers beside them that rise from the best one, in another order."""
    distances = [one.distance for one in found if one.distance is not None]
    if distances != sorted(distances):
        fault = f"two readings: {whose}: results in their order, or by their distances or ranks"
        raise table.fault(fault, "sort each list, the smallest number first, or leave the numbers out")


def rising(name: str | None) -> bool:
    """Whether a name says that its numbers rise from the best result."""
    return words_of(name or "")[-1:] in _RISING


def _of_mapping(value: Mapping[str, Any]) -> Retrieved | None:
    """A result that is an object: an id or a text, perhaps with a score."""
    flat = dict(value)
    for key in INNER:
        if isinstance(flat.get(key), Mapping):
            flat = {**flat.pop(key), **flat}
    score = next(
        (number_of(flat[key]) for key in ("score", "similarity", "relevance_score", "_score") if key in flat), None
    )
    grade = next(
        (number_of(flat[key]) for key in ("rating", "grade", "relevance", "gain", "weight") if key in flat), None
    )
    text = next((str(flat[key]) for key in _TEXTS if isinstance(flat.get(key), str)), "")
    names = [cell for cell in flat.values() if isinstance(cell, str)]
    # The only text of an object is its name, whatever that is called.
    named = text or (names[0] if len(names) == 1 else None)
    identifier = next((flat[key] for key in KEYS if not is_empty(flat.get(key))), named)
    distance = next((number_of(cell) for key, cell in flat.items() if rising(str(key))), None)
    return None if identifier is None else Retrieved(identifier_of(identifier), score, text, distance, grade)


def whole_grades(grades: Mapping[str, Mapping[str, float]]) -> tuple[dict[str, dict[str, float]], str]:
    """Grades as whole numbers, and a remark: 0.1 to 1 are 1 to 10. More than two decimals are left as they are."""
    step = step_of(grade for own in grades.values() for grade in own.values())
    whole = {topic: {doc: float(round(step * x, 6)) for doc, x in own.items()} for topic, own in grades.items()}
    largest = max((grade for own in whole.values() for grade in own.values()), default=0.0)
    return whole, "" if step == 1 else f"grades with decimals are counted as whole numbers, up to {largest:g}"


def identifier_of(value: Any) -> str:
    """An id as text: 12, 12.0 and "12.0" are one id."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = " ".join(str(value).split())
    return text[:-2] if _FLOAT_ID.fullmatch(text) else text


def whole(identifier: str) -> str:
    """An id without blanks, as runs and judgments need it."""
    return "_".join(identifier.split())
