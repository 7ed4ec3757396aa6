"""Rows of tables as people keep them: separators, encodings, titles above a header, means below, forms of JSON.

What is left out or turned is said in the remarks.
"""

from __future__ import annotations

import ast
import csv
import io
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Final

import polars as pl

from truerank.errors import InputError, TwoReadingsError
from truerank.loading import LARGEST, load_json, load_yaml, without_halves
from truerank.sources import compressed, formats
from truerank.sources.golden_words import ID, QUESTION, RETRIEVED, SYSTEM, THING, WANTED, joined, measure_in, words_of
from truerank.sources.lines import whole_bytes
from truerank.sources.pair_tables import is_missing, polars_frame
from truerank.sources.rows import rows as read_rows
from truerank.sources.tool_results import NAMES_OF_MEASURES, is_numbers, measure_columns
from truerank.text.printable import counted

_NAMED: Final = 5
#: A workbook of Excel, and one of its sheets.
_WORKBOOK: Final = re.compile(r"(.+\.xls[xm])(?:#(.+))?", re.IGNORECASE)
_SEPARATORS: Final = (",", ";", "\t", "|")
#: A line of a table below its header, in Markdown.
_RULE: Final = re.compile(r"[-:+ ]*")
#: The last line of what psql prints, and a list as PostgreSQL writes it.
_COUNT: Final = re.compile(r"\(\d+ rows?\)")
_ARRAY: Final = re.compile(r"\{([^{}:]*)\}")
#: The most cells of a title.
_TITLE: Final = 2
#: A word.
_LETTERS: Final = re.compile(r"[^\W\d_]{2}")
#: Letters of Japanese, and their least share of a text's letters beyond ASCII.
_KANA: Final = re.compile("[\u3041-\u30fa]")
_FEWEST_KANA: Final = 0.1
#: Lines by which a separator is chosen.
_LOOKED_AT: Final = 200
#: A share of rows that counts as all but a few.
_NEARLY_ALL: Final = 0.8
#: What a row is called that holds no question, and what may stand beside that.
_SUMMARIES: Final = frozenset(
    "mean average avg std stdev sd median mittelwert durchschnitt moyenne promedio media overall total subtotal sub "
    "grand all sum summe summary aggregate aggregated rata gesamt zwischensumme macro micro".split()
)
_OF_ALL: Final = frozenset("score scores over queries questions topics of value results weighted".split())
#: The most words of a label such as "Subtotal Billing", which no question is called, and the first word of one.
_LABEL: Final = 5
_FIRST: Final = re.compile(r"[\s*_]*([^\W\d_]+)")
#: A list of questions beside other lists of its length: columns.
_ASKED: Final = frozenset("question query questions queries user_input prompt".split())
#: What names a question, and never a result.
_ASKING: Final = QUESTION | {"query_id", "question_id", "topic_id", "qid"}
#: Objects of JSON within objects that are looked through for rows.
_DEEPEST: Final = 4


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
    return not cell.strip() if isinstance(cell, str) else is_missing(cell)


def json_cell(cell: Any) -> Any:
    """A cell that is a JSON object or list as a value; others as they are."""
    if hasattr(cell, "tolist"):
        return cell.tolist()
    if isinstance(cell, str) and cell.strip()[:1] in ("[", "{"):
        try:
            return without_halves(load_json(cell, "a cell"))
        except InputError:
            try:
                return ast.literal_eval(cell.strip())
            except (ValueError, SyntaxError, MemoryError, RecursionError):
                array = _ARRAY.fullmatch(cell.strip())
                return cell if array is None else [part for part in array[1].split(",") if part.strip()]
    return cell


def opened_rows(source: Any) -> GoldenRows:
    """The rows of a file, or of a value of a program."""
    if isinstance(source, str | Path):
        return _file(Path(source))
    if isinstance(source, Mapping):
        source = pl.DataFrame(dict(source), strict=False)
    if isinstance(source, pl.LazyFrame) or hasattr(source, "columns"):
        source = polars_frame(source)
    rows = [dict(row) for row in (source.to_dicts() if isinstance(source, pl.DataFrame) else source)]
    return of_rows("table", "the table", rows, range(1, len(rows) + 1))


def of_rows(
    name: str, where: str | Path, rows: Sequence[Mapping[str, Any]], lines: Iterable[int], remarks: tuple[str, ...] = ()
) -> GoldenRows:
    """A table without the rows of means at its ends, and between questions."""
    names = tuple(dict.fromkeys(str(key) for row in rows for key in row))
    if not rows:
        raise InputError("a table without rows", "give one with a row for each question", where=where)
    left = _summaries(rows, names)
    if left:
        shown = first_names(dict.fromkeys(left.values()), quoted=True)
        remarks = (*remarks, f"rows of means are left out: {len(left)} ({shown})")
    kept = [(row, line) for at, (row, line) in enumerate(zip(rows, lines, strict=False)) if at not in left]
    return GoldenRows(name, where, names, tuple(row for row, _ in kept), tuple(line for _, line in kept), remarks)


def _summaries(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> dict[int, str]:
    """The rows that are called mean or total where others have the id or the text of a question, and what each says.

    They say nothing that other rows do not, beside their numbers. Among questions of many words, any short text that
    begins so is called that, and nothing else. Where no column is called so, or where questions are single words, only
    rows at the ends of a table that hold nothing but numbers are means.
    """
    ids, texts = ([one for one in names if _is_called(one, words)] for words in (ID, QUESTION))
    called = (*ids, *texts) or names[:1]
    firsts = {found[1] for row in rows for name in called if (found := _FIRST.match(str(row.get(name, ""))))}
    if not any(first.casefold() in _SUMMARIES | _OF_ALL | {"ø"} for first in firsts):
        return {}
    cells = [{name: " ".join(str(cell).split()).strip(":. ") for name, cell in row.items()} for row in rows]
    words = [[cell for cell in own.values() if _LETTERS.search(cell)] for own in cells]
    alone = [own[0] if len(own) == 1 else "" for own in words]
    asked = 2 * sum(len(text.split()) > _LABEL or text.endswith("?") for text in alone) > len(rows)
    heads = [[cell for name in called if (cell := own.get(name, ""))] for own in cells]
    marked: dict[int, str] = {}
    for at, head in enumerate(heads):
        # Numbers of rows go on below questions.
        first = next((cell for cell in head if not (asked and cell.isdecimal())), "")
        label = next(filter(is_summary, (cells[at].get(name, "") for name in ids)), first)
        if is_summary(label, labelled=asked and label == alone[at]):
            marked[at] = label
    free = [at for at in range(len(rows)) if at not in marked]
    if not marked or not free:
        return {}
    told = sum(any(re.search(r"\d", cell) or len(cell.split()) > _TITLE for cell in heads[at]) for at in free)
    beside = {at: set(words[at]) - {label} for at, label in marked.items()}
    if asked or ((ids or texts) and 2 * told > len(free)):
        usual = {word for at in free for word in words[at]}
        return {at: label for at, label in marked.items() if beside[at] <= usual}
    if len({label.casefold() for label in marked.values()}) < len(marked):
        return {}
    return {at: label for at, label in marked.items() if not beside[at] and not free[0] < at < free[-1]}


def _is_called(name: str, known: frozenset[str]) -> bool:
    words = set(words_of(name))
    return bool(words & known) and not words & (SYSTEM | THING - ID - {"ids"}) and not measure_in(name)


def is_summary(text: str, *, labelled: bool = False) -> bool:
    """Whether something is called mean, total or all, or is the label of such rows: "Subtotal Billing"."""
    words = words_of(text.replace("Ø", "mean"))
    if labelled and len(text.split()) <= _LABEL and not text.endswith("?"):
        words = words[:1]
    return not _SUMMARIES.isdisjoint(words) and set(words) <= _SUMMARIES | _OF_ALL


def _file(path: Path) -> GoldenRows:
    if is_workbook(path):
        return _of_workbook(path)
    start = compressed.head(path)
    if path.suffix in (".yaml", ".yml"):
        rows, remark = _records(_yaml(path), path.name.partition(".")[0])
        return of_rows(path.name, path, rows, range(1, len(rows) + 1), remark)
    if not start.startswith((b"\xff\xfe", b"\xfe\xff")):
        form = formats.detect(path)
        if form == "json" and (found := _of_json(path)):
            return found
        if form not in ("csv", "tsv", "lines", "qna"):
            read = list(read_rows(path, form))
            if len(read) == 1 and form == "jsonl" and (whole := _of_json(path)):
                return whole
            return of_rows(path.name, path, [without_halves(row.values) for row in read], [row.line for row in read])
    text, remarks = _text(whole_bytes(path))
    if text.lstrip()[:1] == "<":
        raise InputError("this is HTML or XML, not a table", "save the table itself as CSV", where=path, line=1)
    return _lines(path, text, remarks)


def is_workbook(path: Path) -> bool:
    """Whether a path names a workbook of Excel, or a sheet of one: FILE.xlsx#SHEET."""
    return _WORKBOOK.fullmatch(str(path)) is not None


def _of_workbook(path: Path) -> GoldenRows:
    """The rows of a sheet: the one that is named, or the only one that holds a table."""
    book, sheet = _WORKBOOK.fullmatch(str(path)).groups()  # type: ignore[union-attr]
    compressed.checked_file(Path(book))
    try:
        import openpyxl
    except ImportError:
        remedy = "pip install 'truerank[excel]', or save the sheet as CSV"
        raise InputError("an Excel file, and openpyxl is not installed", remedy, where=path) from None
    try:
        opened = openpyxl.load_workbook(book, read_only=True, data_only=True)
        sheets = {one.title: [list(row) for row in one.values] for one in opened.worksheets}
        opened.close()
    except MemoryError:
        raise
    except Exception as error:
        # openpyxl raises whatever its parsers raise.
        fault = f"an Excel file that cannot be read ({type(error).__name__})"
        raise InputError(fault, "save the sheet as CSV", where=path) from error
    widths = {name: [sum(cell is not None for cell in row) for row in rows] for name, rows in sheets.items()}
    tables = [name for name, own in widths.items() if sum(map(bool, own)) > 1 and max(own) > 1]
    if (len(tables) != 1) if sheet is None else (sheet not in sheets):
        fault = f"{len(tables)} sheets with tables" if sheet is None else f"no sheet '{sheet}'"
        shown = " ".join(f"'{book}#{name}'" for name in tables[:_NAMED])
        fault += f" ({first_names(tables, quoted=True) or 'none'})"
        raise InputError(fault, f"give one, or several: {shown}", where=book)
    name = sheet or tables[0]
    text = io.StringIO()
    csv.writer(text).writerows([["" if cell is None else cell for cell in row] for row in sheets[name]])
    found = _lines(path, text.getvalue(), (f"sheet '{name}'",))
    return replace(found, name=name) if sheet else found


def _yaml(path: Path) -> Any:
    data = whole_bytes(path)
    return load_yaml(data, path, lambda loader, node: loader.construct_document(node), most=LARGEST)


def is_settings(path: Path) -> bool:
    """Whether a file holds the settings of a check: YAML that is no list of records, as golden sets are."""
    return path.suffix in (".yaml", ".yml") and (not path.is_file() or len(_records(_yaml(path), "")[0]) < 2)


def _of_json(path: Path) -> GoldenRows | None:
    """The rows of one JSON value that is not a plain list of records."""
    value = without_halves(load_json(whole_bytes(path), path))
    plain = value if isinstance(value, list) and all(isinstance(one, list) for one in value) else ()
    if plain and all(isinstance(cell, int) for one in plain for cell in one):
        remedy = 'name the question of each: {"q1": [45, 48], "q2": [7]}'
        raise InputError("lists of numbers without ids of questions", remedy, where=path)
    if isinstance(value, list) and all(isinstance(one, Mapping) for one in value) and not _by_system(value or [{}]):
        return None
    rows, remarks = _records(value, path.name.partition(".")[0])
    return of_rows(path.name, path, rows, range(1, len(rows) + 1), remarks) if rows else None


_Records = tuple[list[dict[str, Any]], tuple[str, ...]]


def _records(value: Any, name: str, place: str = "") -> _Records:
    """Records in one of the forms in which programs write tables, wherever in a value they are; the largest count.

    `name` is that of the column, where a list is all that an id has.
    """
    remarks = (f"rows are those of '{place}'",) if place else ()
    if isinstance(value, list) and value and all(isinstance(one, Mapping) for one in value):
        return _by_system(value) or ([dict(one) for one in value], remarks)
    if not isinstance(value, Mapping):
        return [], ()
    named = [{"name": key, "rows": cell} for key, cell in value.items() if isinstance(cell, list)]
    by_system = _by_system(named) if len(value) == len(named) > 1 and _same_questions(list(value.values())) else None
    if found := by_system or _of_known(value) or _of_lists(value, name):
        return found[0], (*found[1], *remarks)
    parts = list(value.values())
    if len(parts) > 1 and all(isinstance(one, Mapping) and one for one in parts):
        if grouped := _by_system([{**one, "name": key} for key, one in value.items()]):
            return grouped
        shared = set.intersection(*(set(one) for one in parts))
        if len(shared) * 2 > max(len(one) for one in parts):
            return _of_objects(value, len(parts), remarks)
    inner = [
        _records(one, str(key), f"{place}.{key}".strip("."))
        for key, one in value.items()
        if place.count(".") < _DEEPEST and isinstance(one, Mapping | list)
    ]
    return max(inner, key=lambda found: len(found[0]), default=([], ()))


def _by_system(records: Sequence[Mapping[str, Any]]) -> _Records | None:
    """Records of systems, each with the list of its questions, as a row for each question."""

    def asks(record: Mapping[str, Any]) -> bool:
        return any(joined(str(name)) in _ASKING for name in record)

    def scored(record: Mapping[str, Any]) -> bool:
        """Whether a record is one of a question, or of its scores."""
        return asks(record) or ("id" in record and any(measure_in(str(name)) for name in record))

    keys = [key for key, cell in records[0].items() if isinstance(cell, list) and cell]
    for key in keys if not any(map(asks, records)) else ():
        inner = [one.get(key) for one in records]
        if all(isinstance(own, list) and all(isinstance(x, Mapping) and scored(x) for x in own) for own in inner):
            names = [_system_of(one, str(number)) for number, one in enumerate(records, 1)]
            # Parts of a test set ask other questions.
            what = "system" if len(inner) == 1 or _same_questions([own or [] for own in inner]) else "group"
            rows = [{what: name, **one} for name, own in zip(names, inner, strict=True) for one in own or ()]
            return rows, (f"rows are those of '{key}' of each {what}",)
    return None


def _same_questions(lists: Sequence[Sequence[Any]]) -> bool:
    """Whether lists of records ask much the same, as systems do, and parts of a test set do not."""
    cells = [[pair for one in own if isinstance(one, Mapping) for pair in one.items()] for own in lists]
    asked = [{str(cell) for key, cell in own if joined(str(key)) in _ASKING} for own in cells]
    asked = asked if any(asked) else [{str(cell) for key, cell in own if key == "id"} for own in cells]
    return 2 * len(set.intersection(*asked)) > max(map(len, asked))


def _system_of(record: Mapping[str, Any], number: str) -> str:
    """What a record of a system calls it, in itself or in its settings."""
    inner = (cell for key, cell in record.items() if joined(str(key)) in SYSTEM and isinstance(cell, Mapping))
    parts = [record, *inner]
    keys = ("name", "label", *sorted(SYSTEM), "id")
    named = (str(part[key]) for part in parts for key in keys if key in part and not isinstance(part[key], list | dict))
    return next(named, number)


def _of_known(value: Mapping[str, Any]) -> _Records | None:
    """Objects of columns and data, as data frames are logged, and of queries and relevant_docs, as for fine-tuning."""
    if found := _of_judged_runs(value) or _of_promptfoo(value):
        return found
    queries, relevant = value.get("queries"), value.get("relevant_docs")
    if isinstance(queries, Mapping) and isinstance(relevant, Mapping):
        rows = [{"id": key, "question": queries.get(key), "expected": one} for key, one in relevant.items()]
        return rows, ("queries and relevant_docs of one object",)
    head, body = value.get("columns"), value.get("data")
    if isinstance(head, list) and isinstance(body, list) and all(isinstance(one, list) for one in body):
        return [dict(zip(map(str, head), one, strict=False)) for one in body], ("an object of columns and data",)
    return None


def _of_judged_runs(value: Mapping[str, Any]) -> _Records | None:
    """An object that has judgments by topic and document, and runs by system, topic and document."""
    judged: Any = next((value[key] for key in ("qrels", "qrel", "judgments") if key in value), None)
    runs: Any = next((value[key] for key in ("runs", "results", "systems", "run") if key in value), None)
    if not is_numbers(judged) or not isinstance(runs, Mapping) or not runs or not all(map(is_numbers, runs.values())):
        return None
    rows = [
        {"id": topic, "expected": own} | {f"retrieved.{name}": run.get(topic) for name, run in runs.items()}
        for topic, own in judged.items()
    ]
    return rows, ("judgments and runs of one object",)


def _of_promptfoo(value: Mapping[str, Any]) -> _Records | None:
    """Results of promptfoo: a row for each test, provider and prompt; what it scored, where no output is a list."""
    own: Any = value.get("results")
    own = own.get("results") if isinstance(own, Mapping) else own
    told = isinstance(own, list) and all(isinstance(x, Mapping) and {"provider", "vars"} <= set(x) for x in own)
    if not own or not told:
        return None
    several = len({one.get("promptIdx") for one in own}) > 1
    tests: dict[str, int] = {}
    rows = []
    for one in own:
        provider, asked, response = (
            cell if isinstance(cell := one.get(name), Mapping) else {} for name in ("provider", "vars", "response")
        )
        system = str(provider.get("label") or provider.get("id") or one["provider"])
        row = {
            "id": one.get("testIdx", tests.setdefault(repr(asked), len(tests))),
            "system": f"{system} prompt {one.get('promptIdx')}" if several else system,
            "retrieved": output if isinstance(output := json_cell(response.get("output")), list) else None,
            "score": one.get("score"),
        }
        rows.append(dict(asked) | row)
    lists = any(row["retrieved"] is not None for row in rows)
    kept = {"id", "system", "score"}
    cells = [
        {key: cell for key, cell in row.items() if (key != "score" if lists else key in kept or joined(key) in _ASKED)}
        for row in rows
    ]
    return cells, (f"results of promptfoo: {'lists of each provider' if lists else 'its own scores'}, by test",)


def _of_lists(value: Mapping[str, Any], name: str) -> _Records | None:
    """A list for each column, or a list for each id."""
    parts = list(value.values())
    asked = {"_".join(words_of(str(key))) for key in value} & _ASKED
    lists = len(parts) > 1 and all(isinstance(one, list) for one in parts)
    if asked and lists and len({len(one) for one in parts}) == 1:
        return [dict(zip(value, row, strict=True)) for row in zip(*parts, strict=True)], ("lists by column",)
    plain = all(isinstance(one, list) and not any(isinstance(x, dict | list) for x in one) for one in parts)
    if len(parts) < 2 or not plain:
        return None
    return [{"id": key, name: one} for key, one in value.items()], ("a list for each id",)


def _of_objects(value: Mapping[str, Any], count: int, remarks: tuple[str, ...]) -> _Records:
    """Objects with the same keys: records by id, records by system and id, or columns by number of row."""
    first = next(iter(value.values()))
    if all(isinstance(cell, Mapping) for one in value.values() for cell in one.values()) and first:
        # Of ids there are more.
        names = ("id", "system") if count > len(first) else ("system", "id")
        pairs = ((outer, *pair) for outer, own in value.items() for pair in own.items())
        rows = [{names[0]: outer, names[1]: inner, **cell} for outer, inner, cell in pairs]
        return rows, (f"records by {' and '.join(names)}", *remarks)
    roles = any(set(words_of(str(key))) <= WANTED | RETRIEVED | THING for key in first)
    lists = all(isinstance(cell, list) for one in value.values() for cell in one.values())
    if lists and first and count < len(first) and not roles:
        pairs = ((system, *pair) for system, own in value.items() for pair in own.items())
        rows = [{"system": system, "id": key, "retrieved": cell} for system, key, cell in pairs]
        return rows, ("lists by system and id", *remarks)
    if all(str(key).isdecimal() for key in first) and not all(str(key).isdecimal() for key in value):
        keys = list(dict.fromkeys(key for own in value.values() for key in own))
        rows = [{name: own.get(key) for name, own in value.items()} for key in keys]
        return rows, ("columns by number of row", *remarks)
    if len(first) > count and all(isinstance(x, int | float) for own in value.values() for x in own.values()):
        rows = [{"id": key, **{name: own.get(key) for name, own in value.items()}} for key in first]
        return rows, (f"scores of {count} systems by question", *remarks)
    return [{"id": key, **own} for key, own in value.items()], (f"{count} records by id", *remarks)


def _text(content: bytes) -> tuple[str, tuple[str, ...]]:
    """The text of a file, and a remark where it is not UTF-8."""
    for encoding, remark in (
        ("utf-8-sig", ""),
        ("utf-16", "read as UTF-16"),
        ("cp932", "read as Shift-JIS"),
        ("cp1252", "read as Windows-1252"),
    ):
        marked = content.startswith((b"\xff\xfe", b"\xfe\xff"))
        if (encoding == "utf-16") != marked:
            continue
        try:
            text = content.decode(encoding)
        except UnicodeDecodeError:
            continue
        # The bytes of kana are signs that no European text has.
        if encoding != "cp932" or len(_KANA.findall(text)) > _FEWEST_KANA * sum(not sign.isascii() for sign in text):
            return text, ((remark,) if remark else ())
    return content.decode("latin-1"), ("read as Latin-1",)


def _separator(text: str) -> tuple[str, int]:
    """The sign between cells, and how many cells most rows have."""
    best = ("", 0.0, 0)
    for sign in _SEPARATORS:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=sign)
        try:
            counts = Counter(len(cells) for cells in islice(reader, _LOOKED_AT) if any(cell.strip() for cell in cells))
        except csv.Error:
            continue
        wide = {count: times for count, times in counts.items() if count > 1}
        if not wide:
            continue
        count, times = max(wide.items(), key=lambda pair: (pair[1], pair[0]))
        share = times / counts.total()
        if (share >= _NEARLY_ALL, count) > (best[1] >= _NEARLY_ALL, best[2]) or not best[0]:
            best = (sign, share, count)
    return best[0] or ",", best[2] or 1


def _lines(path: Path, text: str, remarks: tuple[str, ...]) -> GoldenRows:
    """The rows of a text with a header, separated by commas, semicolons, tabs or bars."""
    filled = [line for line in text.splitlines() if line.strip()]
    try:
        known = measure_columns(filled)
    except InputError as error:
        raise InputError(error.fault, error.remedy, where=path) from None
    head = next(iter(filled), "")
    delimiter = max(_SEPARATORS, key=lambda sign: len(next(csv.reader([head], delimiter=sign), [])))
    usual, width = _separator(text)
    if delimiter not in head or head.startswith("#"):
        delimiter = usual
    names: list[str] = list(known)
    rows: list[dict[str, str]] = []
    lines, left, begins = list[int](), Counter[str](), 0
    every = list(_cells(path, text, delimiter))
    usually = Counter(sum(map(bool, map(str.strip, cells))) for _, cells in every[:_LOOKED_AT]).most_common(1)
    for place, (line, cells) in enumerate(every):
        count = sum(bool(cell.strip()) for cell in cells)
        if not count or place < begins:
            continue
        if count == 1 and len(cells) == 1 and (_COUNT.fullmatch(cells[0].strip()) or _RULE.fullmatch(cells[0].strip())):
            continue
        comment = cells[0].lstrip().startswith("#") and (len(cells) < width or not names)
        if comment and not (names == [] and len(cells) == width):
            left["comment"] += 1
        elif (
            not names
            and width > 1
            and (count == 1 or _is_title(cells, count, usually[0][0], width, every[place + 1 : place + 2]))
        ):
            left["line above the header/lines above the header"] += 1
        elif not names:
            names, heads = _of_two_headers([own for _, own in every[place : place + 3]])
            begins = place + heads
            names = names or _header(path, line, cells, {own[0].strip() for _, own in every[place + 1 :] if own})
            remarks = (*remarks, "two header rows are joined") if heads else remarks
        elif [cell.strip() for cell in cells] == names or all(_RULE.fullmatch(cell) for cell in cells):
            left["repeated header"] += 1
        elif not (known and cells[0].strip() == "runid"):
            if len(cells) != len(names):
                fault = f"{len(cells)} cells below {len(names)} columns"
                remedy = "quote cells that hold the separator, or write the file again if it was cut off"
                raise InputError(fault, remedy, where=path, line=line)
            row = [(name, cell) for name, cell in zip(names, cells, strict=True) if name or cell.strip()]
            if any(not name for name, _ in row):
                raise InputError("a cell in a column without a name", "name the column", where=path, line=line)
            rows.append(dict(row))
            lines.append(line)
    skipped = tuple(f"{counted(count, *what.split('/'))} left out" for what, count in left.items())
    return of_rows(path.name, path, rows, lines, (*remarks, *skipped))


def _is_title(
    cells: Sequence[str], count: int, usually: int, width: int, below: Sequence[tuple[int, list[str]]]
) -> bool:
    """Whether a row above a header is a title, perhaps filled up to the width of the table by a spreadsheet."""
    leading = all(cell.strip() for cell in cells[:count])
    apart = len(cells) < width and not any(below[0][1] if below else ())
    padded = leading and (len(cells) > count or 2 * len(cells) <= width or apart)
    return padded and count <= _TITLE and count < usually and not any(joined(cell) in QUESTION | ID for cell in cells)


def _cells(path: Path, text: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Each row with the line on which it begins."""
    # A text may hold signs that are line ends for Python only, such as a form feed.
    begins, reader = 1, csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        for cells in reader:
            line, begins = begins, reader.line_num + 1
            yield line, cells
    except csv.Error as error:
        fault = f"no valid CSV ({error})"
        raise InputError(fault, "quote texts that hold quotes or line ends", where=path, line=begins) from error


def _of_two_headers(rows: Sequence[Sequence[str]]) -> tuple[list[str], int]:
    """Names of columns where systems stand over measures, or measures over systems, and how many rows they take.

    None for a usual header. Below them pandas names its index.
    """
    over, cells, *more = [[cell.strip() for cell in row] for row in (*rows, [])]
    groups = [name or next(filter(None, reversed(over[:place])), "") for place, name in enumerate(over)]
    names = [
        f"{group if cell else name} {cell}".strip() for group, name, cell in zip(groups, over, cells, strict=False)
    ]
    measured = any(map(NAMES_OF_MEASURES.fullmatch, (*over, *cells)))
    usual = (len(set(over)) == len(over) and all(over[1:])) or len({*cells[1:]}) == len(cells[1:])
    names[:1] = [names[0] or "index"] if names else []
    if usual or not measured or not len(over) == len(cells) == len({*names} - {""}):
        return [], 0
    indexed = bool(more[0]) and not any(more[0][1:])
    return ([more[0][0], *names[1:]], 3) if indexed else (names, 2)


def _header(path: Path, line: int, cells: Sequence[str], firsts: Collection[str]) -> list[str]:
    """The names of columns; one without a name that comes first is the index of a frame."""
    names = [name.strip() for name in cells]
    if names and not names[0] and all(names[1:]):
        names[0] = "index"
    if twice := [name for name, count in Counter(names).items() if name and count > 1]:
        fault = f"column '{twice[0]}' appears twice"
        raise InputError(fault, "give each column a name of its own", where=path, line=line)
    known = any({*words_of(name)} & (ID | QUESTION | SYSTEM | WANTED | RETRIEVED | THING) for name in names)
    if any(name.replace(".", "", 1).isdecimal() for name in names) and (names[0] in firsts or not known):
        fault = f"the first line has values ({first_names(names, quoted=True)}), and no names of columns"
        raise InputError(fault, "write a line with their names above it: query_id, doc_id, relevance", where=path)
    return names
