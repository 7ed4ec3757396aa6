"""Which column of a table of questions is what: told from its name and its cells, or refused where two readings fit.

Files come as CSV with any separator and encoding, JSON, JSONL or Parquet; cells as lists, objects, or texts with signs
between ids.
"""

from __future__ import annotations

import ast
import csv
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import polars as pl

from truerank.errors import InputError, TwoReadingsError
from truerank.sources import compressed, formats
from truerank.sources.rows import rows as read_rows
from truerank.sources.tool_results import measure_columns

#: What a column can be named with `--columns`.
ROLES: Final = (
    "id", "question", "expected", "grade", "retrieved", "scores", "system", "document", "rank", "score", "repeat",
    "measure",
)  # fmt: skip
_QUESTION: Final = frozenset(
    "question query prompt input user_input search_query utterance text query_text question_text user_query q "
    "user_question search search_term".split()
)
_ID: Final = frozenset(
    "id qid query_id question_id topic_id topic item item_id example_id sample_id case case_id row_id uuid number nr "
    "no index idx unnamed_0 task task_id".split()
)
_SYSTEM: Final = frozenset(
    "system model run retriever engine config configuration experiment pipeline method system_id system_name model_id "
    "model_name run_id run_name".split()
)
_DOCUMENT: Final = frozenset(
    "doc_id docid document document_id doc docno chunk_id passage_id result_id retrieved_id retrieved_doc "
    "retrieved_doc_id corpus_id".split()
)
_RANK: Final = frozenset("rank position place".split())
_GRADE: Final = frozenset("relevance grade rel is_relevant judgment judgement gain".split())
_LABEL: Final = frozenset("relevant label judged".split())
_LOWER: Final = frozenset("rank ranks latency cost time seconds ms error errors distance loss tokens price".split())
_REPEAT: Final = frozenset(
    "repeat repetition replicate trial seed iteration rep attempt epoch repeat_id trial_id run_index".split()
)
_NAMED_MEASURE: Final = frozenset("measure metric metric_name measure_name".split())
_SCORE: Final = frozenset("score value metric_value result".split())
_WANTED: Final = frozenset("expected gold golden relevant positive positives target targets truth correct".split())
_REFERENCE: Final = frozenset("reference references ground".split())
ANSWER: Final = frozenset("answer answers response".split())
_THING: Final = frozenset(
    "id ids doc docs document documents chunk chunks passage passages context contexts url urls file files source "
    "sources page pages node nodes".split()
)
_RETRIEVED: Final = frozenset(
    "retrieved retrieval results result hits ranking ranked predicted predictions returned found candidates topk top "
    "search".split()
)
_SCORES: Final = frozenset("score scores similarity similarities distance distances cosine".split())
_KEYS: Final = (
    "doc_id", "docid", "document_id", "chunk_id", "passage_id", "node_id", "id_", "_id", "id", "docno", "corpus_id",
    "source", "url", "file",
)  # fmt: skip
_TEXTS: Final = ("page_content", "text", "content", "body", "passage")
_INNER: Final = ("metadata", "node", "document")
_SEPARATORS: Final = (";", "|", "\n", ",")
_WORDS: Final = re.compile(r"[A-Za-z][a-z]+|[A-Z]+(?![a-z])|[a-z]+|\d+")
_FLOAT_ID: Final = re.compile(r"-?\d+\.0")
_NUMBER: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_YES, _NO = "true yes pass passed".split(), "false no fail failed".split()
_ANSWERS: Final = dict.fromkeys(_YES, 1.0) | dict.fromkeys(_NO, 0.0)
_DECIMAL_COMMA: Final = re.compile(r"[+-]?\d+,\d+")
#: A column whose largest value is so many times that of another one is of another measure.
_SCALE: Final = 10
#: Shares of cells by which a column is told.
MOST: Final = 0.6
#: Words from which on an expected cell is a text, and letters from which a text within another one is meant.
TEXT_WORDS: Final = 3
_NAMED: Final = 5


class Retrieved(NamedTuple):
    """One result: its id, its score and its text, as far as they are known."""

    doc_id: str
    score: float | None = None
    text: str = ""


def first_names(names: Iterable[str], *, quoted: bool = False) -> str:
    every = [f"'{name}'" if quoted else name for name in names]
    return ", ".join(every[:_NAMED]) + (f" and {len(every) - _NAMED} more" if len(every) > _NAMED else "")


@dataclass(frozen=True, eq=False)
class GoldenRows:
    """Rows by column, each with its line."""

    name: str
    where: str | Path
    names: tuple[str, ...]
    rows: tuple[Mapping[str, Any], ...]
    lines: tuple[int, ...]
    remarks: tuple[str, ...] = ()

    def cells(self, name: str) -> list[Any]:
        return [row.get(name) for row in self.rows]

    def filled(self, name: str) -> list[Any]:
        return [cell for cell in self.cells(name) if not is_empty(cell)]

    def two_readings(self, fault: str, choices: tuple[str, ...]) -> TwoReadingsError:
        return TwoReadingsError(f"two readings: {fault}", choices, self.where)

    def fault(self, fault: str, remedy: str, row: int | None = None) -> InputError:
        return InputError(fault, remedy, where=self.where, line=None if row is None else self.lines[row])


def is_empty(cell: Any) -> bool:
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return True
    return isinstance(cell, str) and not cell.strip()


def opened_rows(source: Any) -> GoldenRows:
    """The rows of a file, or of a value of a program."""
    if isinstance(source, str | Path):
        return _file(Path(source))
    if isinstance(source, Mapping):
        source = pl.DataFrame(dict(source), strict=False)
    if hasattr(source, "columns") and not isinstance(source, pl.DataFrame):
        source = pl.DataFrame({str(name): list(source[name]) for name in source.columns}, strict=False)
    rows = [dict(row) for row in (source.to_dicts() if isinstance(source, pl.DataFrame) else source)]
    return _of_rows("table", "the table", rows, range(1, len(rows) + 1))


def _of_rows(
    name: str, where: str | Path, rows: Sequence[Mapping[str, Any]], lines: Iterable[int], remarks: tuple[str, ...] = ()
) -> GoldenRows:
    names = tuple(dict.fromkeys(str(key) for row in rows for key in row))
    if not rows:
        raise InputError("a table without rows", "give one with a row for each question", where=where)
    return GoldenRows(name, where, names, tuple(rows), tuple(lines), remarks)


def _file(path: Path) -> GoldenRows:
    start = compressed.head(path)
    if not start.startswith((b"\xff\xfe", b"\xfe\xff")):
        form = formats.detect(path)
        if form not in ("csv", "tsv", "lines", "qna"):
            found = list(read_rows(path, form))
            return _of_rows(path.name, path, [row.values for row in found], [row.line for row in found])
    text, remarks = _text(b"".join(compressed.chunks(path)))
    if text.lstrip()[:1] == "<":
        raise InputError("this is HTML or XML, not a table", "save the table itself as CSV", where=path, line=1)
    return _lines(path, text, remarks)


def _text(content: bytes) -> tuple[str, tuple[str, ...]]:
    """The text of a file, and a remark where it is not UTF-8."""
    for encoding, remark in (("utf-8-sig", ""), ("utf-16", "read as UTF-16"), ("cp1252", "read as Windows-1252")):
        marked = content.startswith((b"\xff\xfe", b"\xfe\xff"))
        if (encoding == "utf-16") != marked:
            continue
        try:
            return content.decode(encoding), ((remark,) if remark else ())
        except UnicodeDecodeError:
            continue
    return content.decode("latin-1"), ("read as Latin-1",)


def _lines(path: Path, text: str, remarks: tuple[str, ...]) -> GoldenRows:
    """The rows of a text with a header, separated by commas, semicolons, tabs or bars."""
    head = next((line for line in text.splitlines() if line.strip()), "")
    try:
        known = measure_columns([line for line in text.splitlines() if line.strip()])
    except InputError as error:
        raise InputError(error.fault, error.remedy, where=path) from None
    delimiter = max((",", ";", "\t", "|"), key=lambda sign: len(next(csv.reader([head], delimiter=sign), [])))
    names: list[str] = list(known)
    rows, lines, begins = [], [], 1
    reader = csv.reader(text.splitlines(keepends=True), delimiter=delimiter, strict=True)
    try:
        for cells in reader:
            line, begins = begins, reader.line_num + 1
            if not names:
                names = [name.strip() for name in cells] if any(cells) else names
                if twice := [name for name, count in Counter(names).items() if count > 1]:
                    remedy = "give each column a name of its own"
                    raise InputError(f"column '{twice[0]}' appears twice", remedy, where=path, line=line)
            elif any(cell.strip() for cell in cells) and not (known and cells[0].strip() == "runid"):
                if len(cells) != len(names):
                    fault = f"{len(cells)} cells below {len(names)} columns"
                    remedy = "quote cells that hold the separator, or write the file again if it was cut off"
                    raise InputError(fault, remedy, where=path, line=line)
                rows.append(dict(zip(names, cells, strict=True)))
                lines.append(line)
    except csv.Error as error:
        fault = f"no valid CSV ({error})"
        raise InputError(fault, "quote texts that hold quotes or line ends", where=path, line=begins) from error
    return _of_rows(path.name, path, rows, lines, remarks)


def named_columns(columns: str | Mapping[str, str], table: GoldenRows) -> dict[str, tuple[str, ...]]:
    """The columns that were named, by role."""
    if isinstance(columns, str):
        pairs = [part.partition("=")[::2] for part in columns.split(",") if part.strip()]
    else:
        pairs = list(columns.items())
    chosen: dict[str, tuple[str, ...]] = {}
    for role, names in pairs:
        if role.strip() not in ROLES:
            raise table.fault(f"a column cannot be a '{role.strip()}'", f"columns are {', '.join(ROLES)}")
        several = tuple(name.strip() for name in names.split("+") if name.strip())
        if absent := [name for name in several if name not in table.names]:
            raise table.fault(f"no column '{absent[0]}'", f"there are {first_names(table.names)}")
        chosen[role.strip()] = several
    return chosen


def unfolded(table: GoldenRows) -> GoldenRows:
    """Cells that hold one list for each system become columns: `retrieved: {a: [...], b: [...]}`."""
    rows = []
    for row in table.rows:
        flat: dict[str, Any] = {}
        for name, cell in row.items():
            value = json_cell(cell)
            folded = isinstance(value, Mapping) and not any(key in value for key in (*_KEYS, *_INNER))
            if folded and value and all(isinstance(one, list | dict) for one in value.values()):
                flat |= {f"{name}.{key}": one for key, one in value.items()}
            else:
                flat[str(name)] = cell
        rows.append(flat)
    return _of_rows(table.name, table.where, rows, table.lines, table.remarks)


def json_cell(cell: Any) -> Any:
    """A cell that is a JSON object or list as a value; others as they are."""
    if hasattr(cell, "tolist"):
        return cell.tolist()
    if isinstance(cell, str) and cell.strip()[:1] in ("[", "{"):
        try:
            return json.loads(cell)
        except ValueError:
            try:
                return ast.literal_eval(cell.strip())
            except (ValueError, SyntaxError, MemoryError, RecursionError):
                return cell
    return cell


def words_of(name: str) -> tuple[str, ...]:
    return tuple(word.lower() for word in _WORDS.findall(name))


def _joined(name: str) -> str:
    return "_".join(words_of(name))


def _one(table: GoldenRows, names: Iterable[str], role: str) -> str | None:
    found = list(names)
    if len(found) > 1:
        both = " or ".join(f"'{name}'" for name in found[:3])
        choices = tuple(f"{role}={name}" for name in found)
        raise table.two_readings(f"{role} in {both}", choices)
    return found[0] if found else None


def turned(table: GoldenRows, chosen: Mapping[str, tuple[str, ...]]) -> GoldenRows:
    """A table with a row for each system and a column for each question, turned."""
    heads = chosen.get("system") or tuple(name for name in table.names if _joined(name) in _SYSTEM)
    if len(heads) != 1:
        return table
    systems = [str(cell) for cell in table.cells(heads[0])]
    others = [name for name in table.names if name != heads[0]]
    plain = [name for name in others if _joined(name) in _QUESTION | _ID | _SCORE | _DOCUMENT | _RETRIEVED | _GRADE]
    if plain or len(set(systems)) < len(systems) or len(others) <= len(systems):
        return table
    rows = [{"question": name, **dict(zip(systems, table.cells(name), strict=True))} for name in others]
    remark = f"a row for each {heads[0]} and a column for each question; it was turned"
    return _of_rows(table.name, table.where, rows, [1] * len(rows), (*table.remarks, remark))


@dataclass(frozen=True)
class GoldenRoles:
    """Which column is what; `retrieved` and `scores` by system, several columns of ranks for one."""

    identifier: str | None = None
    question: str | None = None
    expected: str | None = None
    grade: str | None = None
    system: str | None = None
    document: str | None = None
    rank: str | None = None
    score: str | None = None
    repeat: str | None = None
    measure: str | None = None
    retrieved: Mapping[str, str] = field(default_factory=dict)
    scores: Mapping[str, str] = field(default_factory=dict)
    is_scores: bool = False

    def columns(self) -> dict[str, tuple[str, ...]]:
        named = {
            "id": self.identifier, "question": self.question, "expected": self.expected, "system": self.system,
            "document": self.document, "rank": self.rank, "score": self.score,
            "grade": self.grade, "repeat": self.repeat, "measure": self.measure,
        }  # fmt: skip
        found: dict[str, tuple[str, ...]] = {role: (name,) for role, name in named.items() if name is not None}
        if self.retrieved:
            found["scores" if self.is_scores else "retrieved"] = tuple(self.retrieved.values())
        return found


def roles_of(table: GoldenRows, chosen: Mapping[str, tuple[str, ...]]) -> GoldenRoles:
    names, taken = [name for name in table.names if table.filled(name)], set[str]()

    def pick(role: str, known: frozenset[str], fits: Callable[[str], bool] = lambda name: True) -> str | None:
        if role in chosen:
            name: str | None = chosen[role][0]
        else:
            free = [one for one in names if one not in taken and _joined(one) in known and fits(one)]
            name = _one(table, free, role) if role != "id" or len(free) < 2 else min(free, key=_id_order)
        taken.update(() if name is None else (name,))
        return name

    for several in chosen.values():
        taken.update(several)
    system = pick("system", _SYSTEM)
    repeat = pick("repeat", _REPEAT)
    measure = pick("measure", _NAMED_MEASURE, lambda name: not _is_numeric(table, name))
    rank = pick("rank", _RANK, lambda name: _is_numeric(table, name))
    document = pick("document", _DOCUMENT, lambda name: not _is_lists(table, name))
    if document is not None and not _repeats(table, names, taken):
        taken.discard(document)
        document = None
    grades = _GRADE | _LABEL if document is not None else frozenset[str]()
    grade = pick("grade", grades, lambda name: _is_numeric(table, name))
    expected = chosen["expected"][0] if "expected" in chosen else _expected(table, names, taken)
    taken.update(() if expected is None else (expected,))
    question = pick("question", _QUESTION, lambda name: not _is_numeric(table, name))
    identifier = pick("id", _ID)
    score = None
    if document is not None or system is not None or "score" in chosen:
        score = pick("score", _SCORE | _SCORES, lambda name: _is_numeric(table, name) and not _is_lists(table, name))
    found = GoldenRoles(identifier, question, expected, grade, system, document, rank, score, repeat, measure)
    if document is not None:
        if expected is None and grade is None:
            raise _no_expected(table)
        return found
    retrieved, scores = _systems(table, names, taken, chosen, expected)
    if retrieved and expected is None:
        raise _no_expected(table)
    if not retrieved:
        return _of_scores(table, [name for name in names if name not in taken], chosen, found)
    if system is not None and len(retrieved) > 1:
        both = first_names(retrieved.values(), quoted=True)
        raise table.fault(f"a column '{system}' and several columns of results ({both})", "drop one of them")
    return replace(found, rank=None, score=None, retrieved=retrieved, scores=scores)


def _id_order(name: str) -> tuple[bool, int]:
    """Of two columns of ids that which names a question."""
    return not set(words_of(name)) & {"qid", "query", "question", "topic"}, len(name)


def _no_expected(table: GoldenRows) -> InputError:
    return table.fault(
        f"no column with the expected answers; there are {first_names(table.names, quoted=True)}",
        "name it: --columns expected=COLUMN",
    )


def _repeats(table: GoldenRows, names: Sequence[str], taken: set[str]) -> bool:
    """Whether questions stand in several rows: a row for each result."""
    keys = [name for name in names if name not in taken and _joined(name) in _QUESTION | _ID]
    if not keys:
        return False
    counts = Counter(str(cell) for cell in table.cells(keys[0]))
    return len(counts) < len(table.rows)


def _expected(table: GoldenRows, names: Sequence[str], taken: set[str]) -> str | None:
    """The column of expected answers: one that names documents before one that does not, and answers last."""
    tiers: list[list[str]] = [[], [], [], []]
    for name in names:
        words = set(words_of(name))
        if name in taken or words & _RETRIEVED or words & _SCORES:
            continue
        if words & {"grade", "grades"} or _joined(name) in _QUESTION:
            continue
        wanted, reference = words & _WANTED, words & _REFERENCE
        if (wanted or reference) and words & ANSWER:
            tiers[3].append(name)
        elif (wanted or reference) and words & _THING:
            tiers[0].append(name)
        elif wanted or "truth" in words or words == {"qrels"}:
            tiers[1].append(name)
        elif reference:
            tiers[2].append(name)
        elif words & ANSWER and "response" not in words:
            tiers[3].append(name)
    return next((_one(table, tier, "expected") for tier in tiers if tier), None)


def _systems(
    table: GoldenRows,
    names: Sequence[str],
    taken: set[str],
    chosen: Mapping[str, tuple[str, ...]],
    expected: str | None,
) -> tuple[dict[str, str], dict[str, str]]:
    """The columns of results, and of their scores, by system."""
    if "retrieved" in chosen:
        lists = list(chosen["retrieved"])
    else:
        free = [name for name in names if name not in taken and not set(words_of(name)) & _SCORES]
        known = _vocabulary(table, expected) if expected else frozenset()
        lists = [name for name in free if _is_results(table, name, known)]
        named = [name for name in lists if set(words_of(name)) & _RETRIEVED]
        # With a column that says what it is, one that does not is something else, unless it has expected documents.
        lists = [
            name for name in lists if name in named or not named or _vocabulary(table, name) & known
        ]  # fmt: skip
    if len(lists) > 1 and all(_PLACED.fullmatch(name) for name in lists) and _are_single(table, lists):
        raise table.fault(
            f"two readings: {first_names(lists, quoted=True)} are systems, or the places of one system",
            "write the results of a system as one list in one column",
        )
    labels = _labels(lists)
    marked = [name for name in names if set(words_of(name)) & _SCORES and _is_lists(table, name)]
    marked = list(chosen.get("scores", marked))
    scores = {}
    for label, name in labels.items():
        own = [
            one
            for one in marked
            if set(words_of(one)) - _SCORES - _RETRIEVED == set(words_of(name)) - _RETRIEVED - _THING
        ]
        if own or (len(labels) == 1 and len(marked) == 1):
            scores[label] = (own or marked)[0]
    return labels, scores


#: A part of a column's name, and words that name no system.
_PART: Final = re.compile(r"[^\s_\-./:]+")
_NO_NAME: Final = _RETRIEVED | _THING | {"k", "by", "at"}
_PLACED: Final = re.compile(r"\D*[_ -]?\d+")


def _are_single(table: GoldenRows, names: Iterable[str]) -> bool:
    """Whether each cell of some columns holds one id."""
    signs = {name: separator(table, name) for name in names}
    return all(len(list(items(cell, signs[name], table, 0))) <= 1 for name in signs for cell in table.cells(name))


def _labels(names: Sequence[str]) -> dict[str, str]:
    """What the systems are called: what is left of each column's name without words for results at its ends."""
    found: dict[str, str] = {}
    for name in names:
        last = name.rpartition(".")[2] if "." in name else name
        parts = [part for part in _PART.finditer(last) if not set(words_of(part[0])) & _NO_NAME]
        label = last[parts[0].start() : parts[-1].end()] if parts else last
        found[label if label not in found else name] = name
    return found


def _is_lists(table: GoldenRows, name: str) -> bool:
    cells = table.filled(name)
    return bool(cells) and sum(isinstance(json_cell(cell), list | dict) for cell in cells) >= MOST * len(cells)


def _is_numeric(table: GoldenRows, name: str) -> bool:
    cells = table.filled(name)
    return bool(cells) and all(number_of(cell) is not None for cell in cells)


def number_of(cell: Any) -> float | None:
    if isinstance(cell, bool):
        return float(cell)
    if isinstance(cell, int | float):
        return float(cell)
    text = str(cell).strip()
    if text.lower() in _ANSWERS:
        return _ANSWERS[text.lower()]
    if _DECIMAL_COMMA.fullmatch(text):
        text = text.replace(",", ".")
    if text.endswith("%") and _NUMBER.fullmatch(text[:-1]):
        return float(text[:-1]) / 100
    return float(text) if _NUMBER.fullmatch(text) else None


def _is_results(table: GoldenRows, name: str, known: frozenset[str]) -> bool:
    """Whether a column holds lists of results: by its name and its cells."""
    cells = table.filled(name)
    if not cells:
        return False
    if _is_lists(table, name):
        return True
    if any(number_of(cell) is None for cell in cells):
        several = sum(any(sign in str(cell) for sign in (*_SEPARATORS, " ")) for cell in cells)
        named = bool(set(words_of(name)) & _RETRIEVED)
        if named or _vocabulary(table, name) & known:
            return True
        return several >= MOST * len(cells) and len(_vocabulary(table, name)) > 1 and not known
    return bool(known) and bool(_vocabulary(table, name) & known)


def _vocabulary(table: GoldenRows, name: str) -> frozenset[str]:
    split = separator(table, name)
    return frozenset(one.doc_id for row, cell in enumerate(table.cells(name)) for one in items(cell, split, table, row))


def separator(table: GoldenRows, name: str) -> str:
    """The sign between the ids of a column of texts; empty where there is one id in each."""
    texts = [cell.strip() for cell in table.filled(name) if isinstance(json_cell(cell), str)]
    used = [sign for sign in _SEPARATORS if any(sign in text for text in texts)]
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
    for key in _INNER:
        if isinstance(flat.get(key), Mapping):
            flat = {**flat.pop(key), **flat}
    score = next((number_of(flat[key]) for key in ("score", "similarity", "relevance_score") if key in flat), None)
    text = next((str(flat[key]) for key in _TEXTS if isinstance(flat.get(key), str)), "")
    identifier = next((flat[key] for key in _KEYS if not is_empty(flat.get(key))), text or None)
    return None if identifier is None else Retrieved(identifier_of(identifier), score, text)


def identifier_of(value: Any) -> str:
    """An id as text: 12, 12.0 and "12.0" are one id."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = " ".join(str(value).split())
    return text[:-2] if _FLOAT_ID.fullmatch(text) else text


def _of_scores(
    table: GoldenRows, free: Sequence[str], chosen: Mapping[str, tuple[str, ...]], found: GoldenRoles
) -> GoldenRoles:
    """The roles of a score table: a column of numbers for each system, or one with the system beside it."""
    numbers = list(chosen.get("score", ())) or [name for name in free if _is_numeric(table, name)]
    if found.expected is not None and not numbers:
        named = f" (left are {first_names(free, quoted=True)})" if free else ""
        raise table.fault(f"no column with what was retrieved{named}", "name it: --columns retrieved=COLUMN")
    if found.system is not None:
        score = found.score or _one(table, numbers, "score")
        if score is None:
            fault = f"a column '{found.system}', and none with scores or results"
            raise table.fault(fault, "name it: --columns score=COLUMN")
        return replace(found, expected=None, score=_higher_is_better(table, score), is_scores=True)
    if not numbers:
        fault = f"no results and no scores; there are {first_names(table.names, quoted=True)}"
        raise table.fault(fault, "name the columns: --columns question=…,expected=…,retrieved=…")
    others = [name for name in free if name not in numbers]
    if found.identifier is None and found.question is None:
        if not others:
            raise table.fault("scores without questions", "add a column with an id for each row")
        found = replace(found, question=others[0])
        if len(table.rows) < len(numbers):
            fault = f"'{others[0]}' names {len(table.rows)} questions, or as many systems"
            raise table.two_readings(fault, (f"question={others[0]}", f"system={others[0]}"))
    _check_numbers(table, [_higher_is_better(table, name) for name in numbers])
    labels = {_label(name): name for name in numbers}
    if isinstance(table.where, Path) and len(numbers) == 1 and _joined(numbers[0]) in _SCORE:
        labels = {table.where.stem: numbers[0]}  # a file for each system
    return replace(found, expected=None, retrieved=labels, is_scores=True)


def _higher_is_better(table: GoldenRows, name: str) -> str:
    """The column, unless its name says that lower values are better."""
    if lower := set(words_of(name)) & _LOWER:
        fault = f"'{name}' is not a score: of a {min(lower)} the lower is better"
        raise table.fault(fault, "give scores of which the higher is better, such as 1 / rank, or leave the column out")
    return name


def _check_numbers(table: GoldenRows, numbers: Sequence[str]) -> None:
    """Refuses columns that cannot be scores of one measure by several systems."""
    remedy = f"choose those of one measure: --columns score={numbers[0]}+…"
    if len({_measure(name) for name in numbers}) > 1:
        remedy = f"choose one: --columns score={'+'.join(n for n in numbers if _measure(n) == _measure(numbers[0]))}"
        raise table.fault(f"columns of several measures ({first_names(numbers, quoted=True)})", remedy)
    for name in numbers:
        if len(table.filled(name)) * 2 < len(table.rows):
            raise table.fault(f"'{name}' has numbers in fewer than half of the rows: it is not a system", remedy)
    largest = {name: max(abs(number_of(cell) or 0.0) for cell in table.filled(name)) for name in numbers}
    first, last = min(numbers, key=largest.__getitem__), max(numbers, key=largest.__getitem__)
    if largest[last] > _SCALE * max(largest[first], 1e-9) > 0:
        fault = f"'{first}' has values up to {largest[first]:g}, '{last}' up to {largest[last]:g}"
        raise table.fault(f"columns of different scales: {fault}", remedy)


_MEASURE: Final = re.compile(
    r"(n?dcg|recall|precision|mrr|rr|map|ap|hit(?:_?rate)?|success|f1|accuracy|acc|em|rouge|bleu|faithfulness|"
    r"context_(?:recall|precision)|answer_relevancy|latency|cost)(?:[@_ ]?\d+)?",
    re.IGNORECASE,
)


def _measure(name: str) -> str:
    """The measure that a column's name ends or begins with; empty for none."""
    parts = re.split(r"[\s_\-./:]+(?=\D)", name)
    return next((part.lower() for part in parts if _MEASURE.fullmatch(part)), "")


def _label(name: str) -> str:
    measure = _measure(name)
    parts = [part for part in re.split(r"[\s_\-./:]+(?=\D)", name) if part.lower() != measure]
    return "_".join(parts) if measure and parts else name
