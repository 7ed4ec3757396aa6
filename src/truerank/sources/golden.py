"""Golden files and score tables: questions, what was expected, what systems retrieved, or their scores, in one table.

Teams that build search keep such tables as CSV, JSON, Parquet or frames, each with column names of its own. What a
column is, is told from its name and its cells; where two readings are possible, reading stops and names both. What was
done to rows (repeated questions, empty lists, ids as numbers) is counted in `remarks`.
"""

from __future__ import annotations

import ast
import csv
import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

import polars as pl

from truerank.errors import InputError
from truerank.sources import compressed, formats
from truerank.sources.qrels import QREL_SCHEMA
from truerank.sources.rows import rows as read_rows

#: What a column can be named with `--columns`.
ROLES: Final = (
    "id", "question", "expected", "grade", "retrieved", "scores", "system", "document", "rank", "score", "repeat",
)  # fmt: skip
_QUESTION: Final = frozenset(
    "question query prompt input user_input search_query utterance text query_text question_text user_query q "
    "user_question search search_term".split()
)
_ID: Final = frozenset(
    "id qid query_id question_id topic_id topic item item_id example_id sample_id case case_id row_id uuid number nr "
    "no index idx unnamed_0 task task_id".split()
)
_SYSTEM: Final = frozenset("system model run retriever engine config configuration experiment pipeline method".split())
_DOCUMENT: Final = frozenset(
    "doc_id docid document document_id doc docno chunk_id passage_id result_id retrieved_id retrieved_doc "
    "retrieved_doc_id corpus_id".split()
)
_RANK: Final = frozenset("rank position place".split())
_GRADE: Final = frozenset("relevance grade rel is_relevant judgment judgement gain".split())
_REPEAT: Final = frozenset("repeat trial seed iteration rep attempt".split())
_SCORE: Final = frozenset("score value metric_value result".split())
_WANTED: Final = frozenset("expected gold golden relevant positive positives target targets truth correct".split())
_REFERENCE: Final = frozenset("reference references ground".split())
_ANSWER: Final = frozenset("answer answers response".split())
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
_DECIMAL_COMMA: Final = re.compile(r"[+-]?\d+,\d+")
_NOT_WORD: Final = re.compile(r"[\W_]+")
#: Shares of cells by which a column is told.
_MOST: Final = 0.6
#: Words from which on an expected cell is a text, and letters from which a text within another one is meant.
_TEXT_WORDS: Final = 3
_NAMED: Final = 5


class Retrieved(NamedTuple):
    """One result: its id, its score and its text, as far as they are known."""

    doc_id: str
    score: float | None = None
    text: str = ""


@dataclass(frozen=True, eq=False)
class GoldenTable:
    """What a golden file or a score table holds.

    Attributes:
        name: of the file.
        questions: columns topic_id and text, in the order of the file.
        qrels: columns as in `QREL_SCHEMA`; None for a score table.
        runs: the results of each system: topic_id, doc_id, score, rank.
        scores: the scores of each system: topic_id, value; empty for a golden file.
        columns: by role, which columns were taken for it.
        remarks: what was done to rows and ids, one sentence each.
    """

    name: str
    questions: pl.DataFrame
    qrels: pl.DataFrame | None
    runs: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    scores: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()

    def sentence(self) -> str:
        """What it was taken for, and by which columns."""
        systems = list(self.runs or self.scores)
        many = f"{len(systems)} system{'s' if len(systems) != 1 else ''} ({_first(systems)})"
        count = f"{len(self.questions)} question{'s' if len(self.questions) != 1 else ''}"
        roles = "; ".join(f"{role} in {_first(names, quoted=True)}" for role, names in self.columns.items() if role != "system")
        kind = "scores of " if self.scores else ""
        return f"{kind}{many}, {count}; {roles}"


def _first(names: Iterable[str], *, quoted: bool = False) -> str:
    every = [f"'{name}'" if quoted else name for name in names]
    return ", ".join(every[:_NAMED]) + (f" and {len(every) - _NAMED} more" if len(every) > _NAMED else "")


def read_golden(
    source: Any, columns: str | Mapping[str, str] = "", documents: Iterable[tuple[str, str]] | None = None
) -> GoldenTable:
    """Reads a golden file or a score table.

    Args:
        source: a path (CSV, TSV, JSON, JSONL, Parquet), a frame of Polars or pandas, a list of mappings, or a mapping
            of columns.
        columns: what columns are, where their names do not say: "question=q,expected=gold,retrieved=a+b".
        documents: ids and texts, where the expected answers are texts and the results are ids.

    Raises:
        InputError: it is broken, no such table, or can be read in two ways; the fault names both.
    """
    table = _opened(source)
    chosen = _chosen(columns, table)
    table = _turned(_unfolded(table), chosen)
    roles = _roles(table, chosen)
    return _scored(table, roles) if roles.is_scores else _retrieved(table, roles, documents)


@dataclass(frozen=True, eq=False)
class _Table:
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
        return [cell for cell in self.cells(name) if not _is_empty(cell)]

    def fault(self, fault: str, remedy: str, row: int | None = None) -> InputError:
        return InputError(fault, remedy, where=self.where, line=None if row is None else self.lines[row])


def _is_empty(cell: Any) -> bool:
    if cell is None or (isinstance(cell, float) and math.isnan(cell)):
        return True
    return isinstance(cell, str) and not cell.strip()


def _opened(source: Any) -> _Table:
    """The rows of a file, or of a value of a program."""
    if isinstance(source, str | Path):
        return _file(Path(source))
    if isinstance(source, Mapping):
        source = pl.DataFrame(dict(source), strict=False)
    if hasattr(source, "columns") and not isinstance(source, pl.DataFrame):
        source = pl.DataFrame({str(name): list(source[name]) for name in source.columns}, strict=False)
    rows = [dict(row) for row in (source.to_dicts() if isinstance(source, pl.DataFrame) else source)]
    return _of_rows("the table", "the table", rows, range(1, len(rows) + 1))


def _of_rows(
    name: str, where: str | Path, rows: Sequence[Mapping[str, Any]], lines: Iterable[int], remarks: tuple[str, ...] = ()
) -> _Table:
    names = tuple(dict.fromkeys(str(key) for row in rows for key in row))
    if not rows:
        raise InputError("a table without rows", "give one with a row for each question", where=where)
    return _Table(name, where, names, tuple(rows), tuple(lines), remarks)


def _file(path: Path) -> _Table:
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


def _lines(path: Path, text: str, remarks: tuple[str, ...]) -> _Table:
    """The rows of a text with a header, separated by commas, semicolons, tabs or bars."""
    head = next((line for line in text.splitlines() if line.strip()), "")
    delimiter = max((",", ";", "\t", "|"), key=lambda sign: len(next(csv.reader([head], delimiter=sign), [])))
    names: list[str] = []
    rows, lines, begins = [], [], 1
    reader = csv.reader(text.splitlines(keepends=True), delimiter=delimiter, strict=True)
    try:
        for cells in reader:
            line, begins = begins, reader.line_num + 1
            if not names:
                names = [name.strip() for name in cells] if any(cells) else names
                if twice := [name for name, count in Counter(names).items() if count > 1]:
                    remedy = "give each column a name of its own"
                    raise InputError(f"column '{twice[0]}' stands there twice", remedy, where=path, line=line)
            elif any(cell.strip() for cell in cells):
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


def _chosen(columns: str | Mapping[str, str], table: _Table) -> dict[str, tuple[str, ...]]:
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
            raise table.fault(f"no column '{absent[0]}'", f"there are {_first(table.names)}")
        chosen[role.strip()] = several
    return chosen


def _unfolded(table: _Table) -> _Table:
    """Cells that hold one list for each system become columns: `retrieved: {a: [...], b: [...]}`."""
    rows = []
    for row in table.rows:
        flat: dict[str, Any] = {}
        for name, cell in row.items():
            value = _json(cell)
            if isinstance(value, Mapping) and value and all(isinstance(one, list | dict) for one in value.values()):
                if not any(key in value for key in (*_KEYS, *_INNER)):
                    flat |= {f"{name}.{key}": one for key, one in value.items()}
                    continue
            flat[str(name)] = cell
        rows.append(flat)
    return _of_rows(table.name, table.where, rows, table.lines, table.remarks)


def _json(cell: Any) -> Any:
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


def _words(name: str) -> tuple[str, ...]:
    return tuple(word.lower() for word in _WORDS.findall(name))


def _joined(name: str) -> str:
    return "_".join(_words(name))


def _one(table: _Table, names: Iterable[str], role: str) -> str | None:
    found = list(names)
    if len(found) > 1:
        both = " or ".join(f"'{name}'" for name in found[:3])
        raise table.fault(f"two readings: {role} in {both}", f"say which: --columns {role}={found[0]}")
    return found[0] if found else None


def _turned(table: _Table, chosen: Mapping[str, tuple[str, ...]]) -> _Table:
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
class _Roles:
    """Which column is what; `retrieved` and `scores` by system."""

    identifier: str | None
    question: str | None
    expected: str | None
    grade: str | None
    system: str | None
    document: str | None
    rank: str | None
    score: str | None
    repeat: str | None
    retrieved: Mapping[str, str]
    scores: Mapping[str, str]
    is_scores: bool

    def columns(self) -> dict[str, tuple[str, ...]]:
        named = {
            "id": self.identifier, "question": self.question, "expected": self.expected, "system": self.system,
            "document": self.document, "rank": self.rank, "score": self.score,
            "grade": self.grade, "repeat": self.repeat,
        }  # fmt: skip
        found: dict[str, tuple[str, ...]] = {role: (name,) for role, name in named.items() if name is not None}
        if self.retrieved:
            found["scores" if self.is_scores else "retrieved"] = tuple(self.retrieved.values())
        return found


def _roles(table: _Table, chosen: Mapping[str, tuple[str, ...]]) -> _Roles:
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
    rank = pick("rank", _RANK, lambda name: _is_numeric(table, name))
    expected = chosen["expected"][0] if "expected" in chosen else _expected(table, names, taken)
    taken.update(() if expected is None else (expected,))
    document = pick("document", _DOCUMENT, lambda name: not _is_lists(table, name))
    if document is not None and not _repeats(table, names, taken):
        taken.discard(document)
        document = None
    grade = pick("grade", _GRADE, lambda name: _is_numeric(table, name)) if document or "grade" in chosen else None
    question = pick("question", _QUESTION, lambda name: not _is_numeric(table, name))
    identifier = pick("id", _ID)
    score = None
    if document is not None or system is not None or "score" in chosen:
        score = pick("score", _SCORE | _SCORES, lambda name: _is_numeric(table, name) and not _is_lists(table, name))
    if document is not None:
        if expected is None and grade is None:
            raise _no_expected(table)
        return _Roles(identifier, question, expected, grade, system, document, rank, score, repeat, {}, {}, False)
    retrieved, scores = _systems(table, names, taken, chosen, expected)
    if retrieved and expected is None:
        raise _no_expected(table)
    if not retrieved:
        return _of_scores(table, names, taken, chosen, (identifier, question, expected, system, score, repeat))
    if system is not None and len(retrieved) > 1:
        both = _first(retrieved.values(), quoted=True)
        raise table.fault(f"a column '{system}' and several columns of results ({both})", "drop one of them")
    return _Roles(identifier, question, expected, None, system, None, None, None, repeat, retrieved, scores, False)


def _id_order(name: str) -> tuple[bool, int]:
    """Of two columns of ids that which names a question."""
    return not set(_words(name)) & {"qid", "query", "question", "topic"}, len(name)


def _no_expected(table: _Table) -> InputError:
    return table.fault(
        f"no column with the expected answers; there are {_first(table.names, quoted=True)}",
        "name it: --columns expected=COLUMN",
    )


def _repeats(table: _Table, names: Sequence[str], taken: set[str]) -> bool:
    """Whether questions stand in several rows: a row for each result."""
    keys = [name for name in names if name not in taken and _joined(name) in _QUESTION | _ID]
    if not keys:
        return False
    counts = Counter(str(cell) for cell in table.cells(keys[0]))
    return len(counts) < len(table.rows)


def _expected(table: _Table, names: Sequence[str], taken: set[str]) -> str | None:
    """The column of expected answers: one that names documents before one that does not, and answers last."""
    tiers: list[list[str]] = [[], [], [], []]
    for name in names:
        words = set(_words(name))
        if name in taken or words & _RETRIEVED or words & _SCORES:
            continue
        if words & {"grade", "grades"} or _joined(name) in _QUESTION:
            continue
        wanted, reference = words & _WANTED, words & _REFERENCE
        if (wanted or reference) and words & _ANSWER:
            tiers[3].append(name)
        elif (wanted or reference) and words & _THING:
            tiers[0].append(name)
        elif wanted or "truth" in words or words == {"qrels"}:
            tiers[1].append(name)
        elif reference:
            tiers[2].append(name)
        elif words & _ANSWER and "response" not in words:
            tiers[3].append(name)
    return next((_one(table, tier, "expected") for tier in tiers if tier), None)


def _systems(
    table: _Table, names: Sequence[str], taken: set[str], chosen: Mapping[str, tuple[str, ...]], expected: str | None
) -> tuple[dict[str, str], dict[str, str]]:
    """The columns of results, and of their scores, by system."""
    if "retrieved" in chosen:
        lists = list(chosen["retrieved"])
    else:
        free = [name for name in names if name not in taken and not set(_words(name)) & _SCORES]
        known = _vocabulary(table, expected) if expected else frozenset()
        lists = [name for name in free if _is_results(table, name, known)]
        named = [name for name in lists if set(_words(name)) & _RETRIEVED]
        # With a column that says what it is, one that does not is something else, unless it has expected documents.
        lists = [
            name for name in lists if name in named or not named or _vocabulary(table, name) & known
        ]  # fmt: skip
    labels = _labels(lists)
    marked = [name for name in names if set(_words(name)) & _SCORES and _is_lists(table, name)]
    marked = list(chosen.get("scores", marked))
    scores = {}
    for label, name in labels.items():
        own = [
            one for one in marked if set(_words(one)) - _SCORES - _RETRIEVED == set(_words(name)) - _RETRIEVED - _THING
        ]
        if own or (len(labels) == 1 and len(marked) == 1):
            scores[label] = (own or marked)[0]
    return labels, scores


def _labels(names: Sequence[str]) -> dict[str, str]:
    """What the systems are called: what is left of each column's name without words that all have."""
    found: dict[str, str] = {}
    for name in names:
        last = name.rpartition(".")[2] if "." in name else name
        parts = [part for part in re.split(r"[\s_\-./:]+", last) if part]
        own = [part for part in parts if not set(_words(part)) & (_RETRIEVED | _THING | {"k", "by", "at"})]
        label = "_".join(own) or last
        found[label if label not in found else name] = name
    return found


def _is_lists(table: _Table, name: str) -> bool:
    cells = table.filled(name)
    return bool(cells) and sum(isinstance(_json(cell), list | dict) for cell in cells) >= _MOST * len(cells)


def _is_numeric(table: _Table, name: str) -> bool:
    cells = table.filled(name)
    return bool(cells) and all(_number(cell) is not None for cell in cells)


def _number(cell: Any) -> float | None:
    if isinstance(cell, bool):
        return float(cell)
    if isinstance(cell, int | float):
        return float(cell)
    text = str(cell).strip()
    if text.lower() in ("true", "false"):
        return float(text.lower() == "true")
    if _DECIMAL_COMMA.fullmatch(text):
        text = text.replace(",", ".")
    if text.endswith("%") and _NUMBER.fullmatch(text[:-1]):
        return float(text[:-1]) / 100
    return float(text) if _NUMBER.fullmatch(text) else None


def _is_results(table: _Table, name: str, known: frozenset[str]) -> bool:
    """Whether a column holds lists of results: by its name and its cells."""
    cells = table.filled(name)
    if not cells:
        return False
    if _is_lists(table, name):
        return True
    if any(_number(cell) is None for cell in cells):
        several = sum(any(sign in str(cell) for sign in (*_SEPARATORS, " ")) for cell in cells)
        named = bool(set(_words(name)) & _RETRIEVED)
        if named or _vocabulary(table, name) & known:
            return True
        return several >= _MOST * len(cells) and len(_vocabulary(table, name)) > 1 and not known
    return bool(known) and bool(_vocabulary(table, name) & known)


def _vocabulary(table: _Table, name: str) -> frozenset[str]:
    split = _splitter(table, name)
    return frozenset(
        one.doc_id for row, cell in enumerate(table.cells(name)) for one in _items(cell, split, table, row)
    )


def _splitter(table: _Table, name: str) -> str:
    """The sign between the ids of a column of texts; empty where there is one id in each."""
    texts = [cell.strip() for cell in table.filled(name) if isinstance(_json(cell), str)]
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


def _items(cell: Any, split: str, table: _Table, row: int) -> Iterator[Retrieved]:
    """The results, or expected documents, of a cell."""
    value = _json(cell)
    if _is_empty(value):
        return
    if isinstance(value, Mapping):
        if found := _of_mapping(value):
            yield found
            return
        scored = [Retrieved(_identifier(key), _number(one)) for key, one in value.items()]
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
                if len(one) != 2 or _number(one[1]) is None:
                    raise table.fault("a list within a list of results", "give ids, or pairs of id and score", row)
                yield Retrieved(_identifier(one[0]), _number(one[1]))
            elif not _is_empty(one):
                yield Retrieved(_identifier(one))
        return
    parts = [value] if not isinstance(value, str) or not split else value.split(split if split != " " else None)
    for part in parts:
        text = part.strip().strip("[]'\"").strip() if isinstance(part, str) else part
        if not _is_empty(text):
            yield Retrieved(_identifier(text))


def _of_mapping(value: Mapping[str, Any]) -> Retrieved | None:
    """A result that is an object: an id or a text, perhaps with a score."""
    flat = dict(value)
    for key in _INNER:
        if isinstance(flat.get(key), Mapping):
            flat = {**flat.pop(key), **flat}
    score = next((_number(flat[key]) for key in ("score", "similarity", "relevance_score") if key in flat), None)
    text = next((str(flat[key]) for key in _TEXTS if isinstance(flat.get(key), str)), "")
    identifier = next((flat[key] for key in _KEYS if not _is_empty(flat.get(key))), text or None)
    return None if identifier is None else Retrieved(_identifier(identifier), score, text)


def _identifier(value: Any) -> str:
    """An id as text: 12, 12.0 and "12.0" are one id."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = " ".join(str(value).split())
    return text[:-2] if _FLOAT_ID.fullmatch(text) else text


class _Questions:
    """The questions in the order of the table, each with its id."""

    def __init__(self, table: _Table, roles: _Roles) -> None:
        self.texts: dict[str, str | None] = {}
        self.ids: list[str] = []
        known: dict[str, str] = {}
        for row, cells in enumerate(table.rows):
            text = None if roles.question is None else cells.get(roles.question)
            text = None if _is_empty(text) else " ".join(str(text).split())
            own = None if roles.identifier is None else cells.get(roles.identifier)
            if _is_empty(own) and text is None:
                if roles.identifier is None and roles.question is None:
                    own = str(row + 1)
                else:
                    raise table.fault("a row without a question", "give each row its question, or an id", row)
            key = f"id {_identifier(own)}" if not _is_empty(own) else f"text {text}"
            number = known.setdefault(key, _identifier(own) if not _is_empty(own) else str(len(known) + 1))
            self.ids.append(number)
            if self.texts.setdefault(number, text) != text and text is not None:
                fault = f"question {number} stands there with two texts"
                raise table.fault(fault, "give each question an id of its own", row)

    def frame(self) -> pl.DataFrame:
        rows = list(self.texts.items())
        return pl.DataFrame(rows, schema={"topic_id": pl.String, "text": pl.String}, orient="row")


def _retrieved(table: _Table, roles: _Roles, documents: Iterable[tuple[str, str]] | None) -> GoldenTable:
    """Judgments and runs of a golden file."""
    questions, remarks = _Questions(table, roles), Counter[str]()
    expected: dict[str, dict[str, int]] = defaultdict(dict)
    lists: dict[str, dict[str, list[Retrieved]]] = defaultdict(dict)
    signs = {name: _splitter(table, name) for name in (roles.expected, *roles.retrieved.values()) if name is not None}
    texts = roles.expected is not None and _are_texts(table, roles.expected, signs[roles.expected])
    if texts and roles.expected is not None:
        signs[roles.expected] = ""
    if roles.document is not None:
        _by_row(table, roles, questions, (expected, lists), remarks, signs)
    else:
        for row, (number, cells) in enumerate(zip(questions.ids, table.rows, strict=True)):
            own = {
                one.doc_id: _grade(one.score, table, row)
                for one in _items(cells.get(roles.expected or ""), signs[roles.expected or ""], table, row)
            }
            _join(expected, number, own, remarks, repeated=roles.system is None)
            for label, name in roles.retrieved.items():
                system = label if roles.system is None else str(cells.get(roles.system)).strip()
                found = list(_items(cells.get(name), signs[name], table, row))
                if label in roles.scores:
                    found = _with_scores(found, cells.get(roles.scores[label]), table, row)
                if number in lists[system] and lists[system][number] != found:
                    fault = f"question {number} stands there twice with other results of {system}"
                    raise table.fault(
                        fault, "name the column of the system (--columns system=COLUMN), or of repeats", row
                    )
                lists[system][number] = found
    if texts or any(one.text for every in lists.values() for found in every.values() for one in found):
        expected = _matched(table, expected, lists, documents, remarks) if texts else expected
    asked = {number for number in questions.texts if expected.get(number)}
    if without := len(questions.texts) - len(asked):
        remarks[f"{without} question{'s' * (without != 1)} without an expected answer: not scored"] += 1
    if not asked:
        raise table.fault("no question has an expected answer", "name another column: --columns expected=COLUMN")
    _check_names(table, expected, lists)
    runs = {system: _run(table, system, found, remarks) for system, found in lists.items()}
    rows = [(number, "0", doc, grade) for number in questions.texts for doc, grade in expected.get(number, {}).items()]
    qrels = pl.DataFrame(
        [(topic, _whole(doc), grade) for topic, _, doc, grade in rows],
        schema={name: QREL_SCHEMA[name] for name in ("topic_id", "doc_id", "relevance")}, orient="row",
    )  # fmt: skip
    return GoldenTable(table.name, questions.frame(), qrels, runs, {}, roles.columns(), (*table.remarks, *remarks))


def _join(
    expected: dict[str, dict[str, int]], number: str, own: dict[str, int], remarks: Counter[str], *, repeated: bool
) -> None:
    """Adds what is expected of a question; several rows of it are put together."""
    if number in expected and repeated:
        remarks["questions that stand in several rows: one question each"] += 1
    if number in expected and own and expected[number] and own != expected[number]:
        remarks["questions whose rows expect other documents: all of them are expected"] += 1
    for doc, grade in own.items():
        expected[number][doc] = max(grade, expected[number].get(doc, grade))
    expected.setdefault(number, {})


def _grade(score: float | None, table: _Table, row: int) -> int:
    if score is None:
        return 1
    if not score.is_integer():
        raise table.fault(f"{score:g} is no grade", "give whole numbers as grades", row)
    return int(score)


def _by_row(
    table: _Table,
    roles: _Roles,
    questions: _Questions,
    found: tuple[dict[str, dict[str, int]], dict[str, dict[str, list[Retrieved]]]],
    remarks: Counter[str],
    signs: Mapping[str, str],
) -> None:
    """A row for each result: lists in the order of the rank, of the score, or of the rows."""
    expected, lists = found
    placed: dict[tuple[str, str], list[tuple[float, Retrieved]]] = defaultdict(list)
    for row, (number, cells) in enumerate(zip(questions.ids, table.rows, strict=True)):
        system = "system" if roles.system is None else str(cells.get(roles.system)).strip()
        score = None if roles.score is None else _number(cells.get(roles.score))
        rank = None if roles.rank is None else _number(cells.get(roles.rank))
        if roles.expected is not None:
            for one in _items(cells.get(roles.expected), signs[roles.expected], table, row):
                expected[number][one.doc_id] = _grade(one.score, table, row)
        expected.setdefault(number, {})
        cell = cells.get(roles.document or "")
        if _is_empty(cell):
            lists[system].setdefault(number, [])
            continue
        doc = _identifier(cell)
        if roles.grade is not None:
            grade = _number(cells.get(roles.grade))
            if grade:
                expected[number][doc] = max(_grade(grade, table, row), expected[number].get(doc, 0))
            elif grade is not None:
                expected[number].setdefault(doc, 0)
        place = rank if rank is not None else -score if score is not None else float(row)
        placed[system, number].append((place, Retrieved(doc, None if rank is not None else score)))
    for (system, number), results in placed.items():
        lists[system][number] = [one for _, one in sorted(results, key=lambda pair: pair[0])]


def _with_scores(found: list[Retrieved], cell: Any, table: _Table, row: int) -> list[Retrieved]:
    value = _json(cell)
    scores = value if isinstance(value, list) else [part for part in re.split(r"[;|\s]+", str(value or "")) if part]
    if len(scores) != len(found):
        raise table.fault(f"{len(found)} results and {len(scores)} scores", "give a score for each result", row)
    return [one._replace(score=_number(score)) for one, score in zip(found, scores, strict=True)]


def _run(table: _Table, system: str, lists: Mapping[str, list[Retrieved]], remarks: Counter[str]) -> pl.DataFrame:
    """A run in the order of the lists."""
    empty = sum(not found for found in lists.values())
    if empty:
        remarks[f"{system} returned nothing for {empty} question{'s' * (empty != 1)}"] += 1
    twice, rising, falling, rows = 0, 0, 0, []
    for number, found in lists.items():
        first = dict.fromkeys(_whole(one.doc_id) for one in found)
        twice += len(found) - len(first)
        scores = [one.score for one in found if one.score is not None]
        if len(set(scores)) > 1:
            rising += scores == sorted(scores)
            falling += scores == sorted(scores, reverse=True)
            if scores not in (sorted(scores), sorted(scores, reverse=True)) or (rising and falling):
                fault = f"two readings: the results of {system} for question {number} in their order, or by their scores"
                raise table.fault(fault, "sort each list by its scores, or leave the scores out")
        rows += [(number, doc, 1.0 / place, place) for place, doc in enumerate(first, start=1)]
    if twice:
        remarks[f"{system}: {twice} results stand twice in their list; the first place counts"] += 1
    if rising:
        remarks[f"{system}: the scores rise from first to last, as distances do; the order of the lists counts"] += 1
    schema = {"topic_id": pl.String, "doc_id": pl.String, "score": pl.Float64, "rank": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _whole(identifier: str) -> str:
    """An id without blanks, as runs and judgments need it."""
    return "_".join(identifier.split())


def _are_texts(table: _Table, name: str, split: str) -> bool:
    """Whether expected answers are texts and not ids."""
    cells = [_json(cell) for cell in table.filled(name)]
    items = [one for cell in cells for one in (cell if isinstance(cell, list) else [cell])]
    words = [len(str(one).split()) for one in items if isinstance(one, str)]
    if not words or set(_words(name)) & {"id", "ids"}:
        return False
    if split and split != ",":
        return False
    return sum(count >= _TEXT_WORDS for count in words) >= _MOST * len(words) or bool(set(_words(name)) & _ANSWER)


def _plain(text: str) -> str:
    return f" {_NOT_WORD.sub(' ', text.casefold()).strip()} "


def _matched(
    table: _Table,
    expected: Mapping[str, Mapping[str, int]],
    lists: Mapping[str, Mapping[str, list[Retrieved]]],
    documents: Iterable[tuple[str, str]] | None,
    remarks: Counter[str],
) -> dict[str, dict[str, int]]:
    """Expected texts as the documents that hold them; a text that none holds is a document that nobody retrieved."""
    known = {doc: _plain(text) for doc, text in documents} if documents is not None else {}
    for every in lists.values():
        for results in every.values():
            known |= {one.doc_id: _plain(one.text or one.doc_id) for one in results}
    if documents is None and all(len(text.split()) < _TEXT_WORDS for text in known.values()):
        raise table.fault(
            "the expected answers are texts, and the results are ids", "give the documents too, or the expected ids"
        )
    by_text: dict[str, list[str]] = defaultdict(list)
    for doc, text in known.items():
        by_text[text].append(doc)
    found: dict[str, dict[str, int]] = {}
    equal = inside = lacking = 0
    for number, answers in expected.items():
        found[number] = {}
        for answer, grade in answers.items():
            text = _plain(answer)
            own = by_text.get(text, [])
            equal += bool(own)
            if not own and text.strip():
                mine = {one.doc_id for every in lists.values() for one in every.get(number, [])}
                pool = known if documents is not None else mine
                own = [doc for doc in pool if text in known[doc]]
                inside += bool(own)
            if not own:
                lacking += 1
                own = [f"expected-{number}-{len(found[number]) + 1}"]
            found[number] |= dict.fromkeys(own, grade)
    remarks[
        f"expected texts: {equal} equal to a document, {inside} contained in one, {lacking} in none (they count as not "
        "found)"
    ] += 1
    return found


#: Forms of an id under which other ids may be meant.
_FORMS: Final[Mapping[str, Callable[[str], str]]] = {
    "in small letters": str.casefold,
    "without leading zeros": lambda one: one.lstrip("0") or "0",
    "without what stands before the last '/'": lambda one: one.rpartition("/")[2],
    "without the ending of the file": lambda one: one.rpartition(".")[0] or one,
    "by their digits alone": lambda one: "".join(sign for sign in one if sign.isdigit()).lstrip("0") or one,
}


def _check_names(
    table: _Table, expected: Mapping[str, Mapping[str, int]], lists: Mapping[str, Mapping[str, list[Retrieved]]]
) -> None:
    """Refuses ids of results that are written otherwise than the expected ones."""
    wanted = {doc for own in expected.values() for doc in own}
    for system, every in lists.items():
        found = {one.doc_id for results in every.values() for one in results}
        if not found or found & wanted:
            continue
        for form, change in _FORMS.items():
            if {change(one) for one in found} & {change(one) for one in wanted}:
                fault = f"no expected id is among the results of {system}; {form}, some are"
                break
        else:
            fault = f"no expected id is among the results of {system}"
        example = f"expected '{min(wanted)}', retrieved '{min(found)}'"
        raise table.fault(f"{fault} ({example})", "write the ids of both in the same form")


def _of_scores(
    table: _Table,
    names: Sequence[str],
    taken: set[str],
    chosen: Mapping[str, tuple[str, ...]],
    known: Sequence[str | None],
) -> _Roles:
    """The roles of a score table: a column of numbers for each system, or one with the system beside it."""
    identifier, question, expected, system, score, repeat = known
    if expected is not None and not _is_numeric(table, expected):
        free = [name for name in names if name not in taken]
        named = f" (left are {_first(free, quoted=True)})" if free else ""
        raise table.fault(f"no column with what was retrieved{named}", "name it: --columns retrieved=COLUMN")
    if system is not None:
        if score is None:
            free = [name for name in names if name not in taken and _is_numeric(table, name)]
            score = _one(table, free, "score")
        if score is None:
            raise table.fault(
                f"a column '{system}', and none with scores or results", "name it: --columns score=COLUMN"
            )
        return _Roles(identifier, question, None, None, system, None, None, score, repeat, {}, {}, True)
    numbers = list(chosen.get("score", chosen.get("retrieved", ())))
    numbers = numbers or [name for name in names if name not in taken and _is_numeric(table, name)]
    others = [name for name in names if name not in taken and name not in numbers]
    if identifier is None and question is None and others:
        question = others[0]
        if len(table.rows) < len(numbers):
            raise table.fault(
                f"two readings: '{question}' names {len(table.rows)} questions, or as many systems",
                f"say which: --columns question={question}, or system={question}",
            )
    if not numbers:
        raise table.fault(
            f"no results and no scores; there are {_first(table.names, quoted=True)}",
            "name the columns: --columns question=…,expected=…,retrieved=…",
        )
    if identifier is None and question is None:
        raise table.fault("scores without questions", "add a column with an id for each row")
    kinds = {_measure(name) for name in numbers}
    if len(kinds) > 1:
        example = "+".join(name for name in numbers if _measure(name) == _measure(numbers[0]))
        raise table.fault(
            f"columns of several measures ({_first(numbers, quoted=True)})", f"choose one: --columns score={example}"
        )
    return _Roles(
        identifier,
        question,
        None,
        None,
        None,
        None,
        None,
        None,
        repeat,
        {_label(name): name for name in numbers},
        {},
        True,
    )


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


def _scored(table: _Table, roles: _Roles) -> GoldenTable:
    """The scores of a score table."""
    questions, remarks = _Questions(table, roles), Counter[str]()
    values: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for number, cells in zip(questions.ids, table.rows, strict=True):
        pairs = (
            [(str(cells.get(roles.system)).strip(), roles.score)]
            if roles.system is not None
            else list(roles.retrieved.items())
        )
        for system, name in pairs:
            cell = cells.get(name or "")
            if _is_empty(cell):
                remarks[f"{system}: scores are missing; these questions are left out where it is compared"] += 1
                continue
            value = _number(cell)
            if value is None or not math.isfinite(value):
                raise table.fault(f"'{cell}' is no score", "give numbers", questions.ids.index(number))
            values[system][number].append(value)
    repeats = sum(len(scores) > 1 for own in values.values() for scores in own.values())
    if repeats:
        remarks[f"{repeats} scores are means over repeats of the same question and system"] += 1
    schema = {"topic_id": pl.String, "value": pl.Float64}
    scores = {
        system: pl.DataFrame(
            [(number, sum(own) / len(own)) for number, own in every.items()], schema=schema, orient="row"
        )
        for system, every in values.items()
    }
    if any(set(frame["topic_id"]) != set(questions.texts) for frame in scores.values()) and not remarks:
        remarks["some systems lack questions; they are left out where these are compared"] += 1
    return GoldenTable(table.name, questions.frame(), None, {}, scores, roles.columns(), (*table.remarks, *remarks))
