"""Tables in other shapes, brought into that of a row for each question, or result: turned, nested, spread by place."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from truerank.sources import golden_words as terms
from truerank.sources.golden_cells import INNER, KEYS, is_lists, is_numeric, items, lists_of, number_of, separator
from truerank.sources.golden_roles import named_columns
from truerank.sources.golden_rows import GoldenRows, first_names, is_empty, is_summary, json_cell, of_rows
from truerank.sources.golden_scores import TURNED, check_means, check_preferences, group_of
from truerank.sources.golden_words import called, joined, says, words_of
from truerank.sources.pair_tables import judgment_columns
from truerank.sources.tool_results import FORMS, NAMES_OF_MEASURES, ToolForm, is_number, measure_name
from truerank.text.printable import counted

_NUMBERED: Final = re.compile(r"(.*?)[ _.-]?(\d{1,9})")
_MEASURE: Final = re.compile(NAMES_OF_MEASURES.pattern.removesuffix("([@_(].*)?") + r"((?:_cut|_at)?[@_][\d.]+)?")


def shaped(
    table: GoldenRows, columns: str | Mapping[str, str], measure: str | None = None
) -> tuple[GoldenRows, dict[str, tuple[str, ...]]]:
    """The table with a row for each question, or result, and the columns that were named, by role.

    Of scores of several measures one is left, unless `measure` is None.
    """
    named = columns.split(",") if isinstance(columns, str) else [f"={names}" for names in columns.values()]
    names = [name.strip() for part in named for name in part.partition("=")[2].split("+")]
    table = unfolded(_with_nested(table, names))
    # A tool writes datasetItemId, or dataset_item_id.
    spelt = {joined(name): name for name in table.names}
    has = ((one, one.has.split()) for one in FORMS)
    fitting = (one for one, own in has if all(joined(x) in spelt or fnmatch.filter(table.names, x) for x in own))
    form = next(fitting, ToolForm("", "", {}))
    table = _with_nested(table, names)
    chosen = named_columns(columns, table)
    for role in ("system", "id", "question"):
        if len(parts := chosen.get(role, ())) > 1:
            name = "+".join(parts)
            cells = ({key: cell for key, cell in row.items() if key not in parts} for row in table.rows)
            systems = (" ".join(str(row.get(one)) for one in parts) for row in table.rows)
            rows = [{**own, name: system} for own, system in zip(cells, systems, strict=True)]
            table, chosen[role] = of_rows(table.name, table.where, rows, table.lines, table.remarks), (name,)
    if not {"question", "id"} & set(chosen):
        heads = (chosen.get("system") or called(table.names, known) for known in (terms.SYSTEM, terms.NAMED_MEASURE))
        check_means(table, next((own[0] for own in heads if len(own) == 1), ""))
    free = not _RESULTS & {*chosen, *form.roles}
    if measure is not None and free and (scored := _measures_in(table)):
        table, wanted = _of_columns(table, scored, measure)
        chosen |= {"measure": (wanted,), "score": (wanted,)}
    elif free and measure not in (None, "", "nDCG@10"):
        named_so = [name for name in called(table.names, frozenset((joined(measure),))) if is_numeric(table, name)]
        chosen |= {"score": (named_so[0],)} if named_so and terms.measure_in(named_so[0]) else {}
    chosen = {**_of_form(table, form, chosen), **chosen}
    named_else = {"document", "expected", "retrieved", "score", "rank"} & set(chosen)
    if not named_else and (own := judgment_columns(table.names)) and is_numeric(table, own[2]):
        chosen |= {"document": (own[1],)} if len(set(map(str, table.cells(own[0])))) < len(table.rows) else {}
    if form.tool:
        taken = {name for names in chosen.values() for name in names}
        left = {name for part in form.left.split() for name in fnmatch.filter(table.names, part)} - taken
        kept = tuple(name for name in table.names if name not in left)
        table = replace(table, names=kept, remarks=(*table.remarks, f"read as {form.tool}"))
    check_preferences(table, chosen)
    several = chosen.get("expected", ())
    if len(several) > 1:
        table = _together(table, several)
        chosen["expected"] = ("+".join(several),)
    table = placed(turned(_with_flags(table), chosen), chosen)
    named_so = [name for name in table.names if joined(name) in terms.NAMED_MEASURE and not is_numeric(table, name)]
    by_row = chosen.get("measure") or (tuple(named_so) if len(named_so) == 1 else ())
    if measure is not None and by_row and by_row != chosen.get("score"):
        table, chosen["measure"] = _of_rows(table, by_row[0], measure), by_row
    return table, chosen


#: Words by which people say that an answer is right, or is not; "yes" and "pass" are those of cells.
_RIGHT: Final = tuple(
    pair.split("/")
    for pair in "correct/incorrect right/wrong good/bad y/n ja/nein oui/non sí/no si/no richtig/falsch vrai/faux "
    "👍/👎 ✅/❌ ✓/✗ ✔/✘".split()
)


def _with_flags(table: GoldenRows) -> GoldenRows:
    """The table with true and false in columns that hold the two words of a pair, and nothing else."""
    cells = {name: {str(x).strip(" \ufe0f").casefold() for x in table.filled(name)} - {""} for name in table.names}
    for right, wrong in _RIGHT:
        names = [name for name, own in cells.items() if own and own <= {right, wrong}]
        if {right, wrong} <= frozenset[str]().union(*(cells[name] for name in names)):
            flags = {right: True, wrong: False}
            rows = [
                {**row} | {name: flags.get(str(row.get(name)).strip(" \ufe0f").casefold()) for name in names}
                for row in table.rows
            ]
            table = replace(table, rows=tuple(rows))
    return table


_RESULTS: Final = frozenset(("expected", "retrieved", "document", "grade", "rank", "score", "scores"))


def _of_form(table: GoldenRows, form: ToolForm, chosen: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    """The columns of a known form by role, as far as they are there and what was named does not speak against it."""
    taken = {name for names in chosen.values() for name in names}
    against = _RESULTS if "score" in chosen else {"score"} if {"expected", "retrieved"} & set(chosen) else set[str]()
    found: dict[str, tuple[str, ...]] = {}
    spelt = {joined(name): name for name in table.names}
    for role, names in form.roles.items():
        named = {spelt.get(joined(name), name.removesuffix("[]")): name.endswith("[]") for name in names.split()}
        there = [name for name in named if name not in taken and table.filled(name)]
        free = [name for name in there if not named[name] or is_lists(table, name)]
        # With its text a question needs no id that comes after it.
        if free and role not in against and not (role == "id" and "question" in found):
            found[role] = (free[0],)
            taken.add(free[0])
    return found


def _measures_in(table: GoldenRows) -> list[str]:
    """The columns with the scores of each question by measure, or one that has them all, or one for each system.

    None where documents are.
    """
    if any(
        (words := set(words_of(name))) & terms.WANTED and words <= terms.WANTED | terms.THING for name in table.names
    ):
        return []
    free = [name for name in table.names if not is_summary(name)]
    nested = [name for name in free if all(_scores_in(cell) for cell in table.filled(name) or ("",))]
    # What stands behind a measure and its cut-off names a system: ndcg@10_old.
    # Where a column names systems, what stands before it does not: source_mrr.
    systems = any(joined(name) in terms.SYSTEM for name in table.names)
    beside = [x for x in table.names if systems and terms.measure_in(x) and not terms.lower_is_better(x)]
    known = [name for name in table.names if name in beside or (_is_measure(name) and not terms.is_count(name))]
    told = systems or any(map(_MEASURE.fullmatch, known))
    single = [name for name in known if told and is_numeric(table, name)]
    asked = any(joined(name) in terms.QUESTION | terms.ID for name in table.names)
    return nested or (single if len(single) > 1 and asked else [])


def _is_measure(name: str) -> bool:
    return bool(_MEASURE.fullmatch(name) or terms.RAG_MEASURE.fullmatch(joined(name)))


def _scores_in(cell: Any) -> dict[str, Any]:
    """The scores of an object by measure, or of a list of objects with a name and a score."""
    value = json_cell(cell)
    if isinstance(value, list) and all(isinstance(one, Mapping) and "name" in one for one in value):
        return {str(one["name"]): one["score"] for one in value if not is_empty(one.get("score"))}
    if not isinstance(value, Mapping):
        return {}
    cells = {
        str(name): one["score"] if isinstance(one, Mapping) and "score" in one else one for name, one in value.items()
    }
    plain = all(one is None or is_number(one) or isinstance(one, bool) for one in cells.values())
    return cells if plain and any(map(_is_measure, cells)) else {}


def _of_columns(table: GoldenRows, columns: Sequence[str], measure: str) -> tuple[GoldenRows, str]:
    """The table with the scores of one measure in a column that is called after it, and the name of that."""
    plain = ({name: row.get(name) for name in columns} for row in table.rows)
    scores = [_scores_in(own[columns[0]]) if len(columns) == 1 else own for own in plain]
    known = [name for name in {name: 1 for own in scores for name in own} if name not in table.names or name in columns]
    wanted = _one_measure(table, known, measure)
    left = {*columns, *(name for name in table.names if joined(name) in terms.DOCUMENT)}
    asked = [name for name in table.names if joined(name) in terms.QUESTION | terms.ID]
    rows, lines, lost = [], [], 0
    for row, line, own in zip(table.rows, table.lines, scores, strict=True):
        if all(map(is_empty, (*own.values(), *map(row.get, asked)))):
            lost += 1
            continue
        rows.append({name: cell for name, cell in row.items() if name not in left} | {wanted: own.get(wanted)})
        lines.append(line)
    said = [f"left out: {counted(lost, 'row')} without a question and a score"] if lost else []
    return of_rows(table.name, table.where, rows, lines, (*table.remarks, *said, *_read(wanted, known, ""))), wanted


def _of_rows(table: GoldenRows, column: str, measure: str) -> GoldenRows:
    """The rows of one measure, where a column names it."""
    names = [str(cell).strip() for cell in table.cells(column)]
    known = list(dict.fromkeys(name for name in names if not is_empty(name)))
    wanted = _one_measure(table, known, measure)
    rows = [row for row, name in zip(table.rows, names, strict=True) if name == wanted]
    lines = [line for line, name in zip(table.lines, names, strict=True) if name == wanted]
    said = _read(wanted, known, column)
    for head in (name for name in table.names if joined(name) in terms.SYSTEM):
        if lost := [x for x in dict.fromkeys(map(str, table.cells(head))) if x not in {str(row[head]) for row in rows}]:
            said = (*said, f"without {wanted}, and left out: {first_names(lost)}")
    return of_rows(table.name, table.where, rows, lines, (*table.remarks, *said))


def _one_measure(table: GoldenRows, known: Sequence[str], measure: str) -> str:
    wanted = [name for name in known if len(known) == 1 or name == measure]
    wanted = wanted or [name for name in known if measure_name(name) == measure_name(measure)]
    if len(wanted) != 1:
        asked = "" if measure in ("", "nDCG@10") else f", none of which is {measure}"
        fault = f"scores of {len(known)} measures ({first_names(known)}){asked}"
        shown = ", or ".join(f'"{name}"' if " " in name else name for name in known[:6])
        other = "; of another column: --columns score=COLUMN" if known[:1] and known[0] in table.names else ""
        raise table.fault(fault, f"choose one: --measure {shown}{other}" if known else "give scores of topics")
    return wanted[0]


def _read(wanted: str, known: Sequence[str], column: str) -> Iterable[str]:
    if others := [name for name in known if name != wanted]:
        shown = f"{column} {wanted}" if number_of(wanted) is not None else wanted
        yield f"{shown} is read; {counted(len(others), 'other measure')} left out: {first_names(others)}"


def _with_nested(table: GoldenRows, names: Sequence[str]) -> GoldenRows:
    """The table with columns of what is within its cells, as far as names with dots ask for it."""
    wanted = [name for name in names if "." in name and name not in table.names]
    cells = {name: [_within(row, name) for row in table.rows] for name in wanted}
    nested = {name: own for name, own in cells.items() if any(cell is not None for cell in own)}
    if not nested:
        return table
    rows = tuple({**row, **{name: own[place] for name, own in nested.items()}} for place, row in enumerate(table.rows))
    return replace(table, rows=rows, names=(*table.names, *nested))


def _within(cell: Any, name: str) -> Any:
    """What is at a name with dots, of which a key may have some itself."""
    value = json_cell(cell)
    if isinstance(value, list):
        return [_within(one, name) for one in value] or None
    if not isinstance(value, Mapping) or name in value:
        return value.get(name) if isinstance(value, Mapping) else None
    inner = (_within(one, name.removeprefix(f"{key}.")) for key, one in value.items() if name.startswith(f"{key}."))
    return next((one for one in inner if one is not None), None)


def _together(table: GoldenRows, names: Sequence[str]) -> GoldenRows:
    """The table with one column of lists for several of which each holds expected ids."""
    signs = {name: separator(table, name) for name in names}
    rows = []
    for place, row in enumerate(table.rows):
        found = [one for name in names for one in items(row.get(name), signs[name], table, place)]
        graded = any(one.score is not None for one in found)
        own = {name: cell for name, cell in row.items() if name not in names}
        listed = {one.doc_id: one.score for one in found} if graded else list(dict.fromkeys(o.doc_id for o in found))
        rows.append(own | {"+".join(names): listed})
    return of_rows(table.name, table.where, rows, table.lines, table.remarks)


def unfolded(table: GoldenRows) -> GoldenRows:
    """Cells that hold one list for each system become columns: `retrieved: {a: [...], b: [...]}`."""
    table = _systems_as_rows(table)
    rows = []
    for row in table.rows:
        flat: dict[str, Any] = {}
        for name, cell in row.items():
            value = json_cell(cell)
            if isinstance(value, Mapping) and joined(str(name)) in terms.SYSTEM and not is_empty(value.get("id")):
                flat[str(name)] = value["id"]
                continue
            if isinstance(value, Mapping) and (asked := [key for key in value if joined(str(key)) in terms.QUESTION]):
                # A request, with its text and what else was sent.
                flat |= {str(key): value[key] for key in asked if isinstance(value[key], str) and key not in row}
                continue
            plain = isinstance(value, Mapping) and not any(key in value for key in (*KEYS, *INNER))
            # Objects by document are expected, and scores are none of lists.
            plain = plain and not says(name, terms.WANTED) and not _scores_in(value)
            if plain and value and (all(isinstance(x, list | dict) for x in value.values()) or _has_results(value)):
                flat |= {f"{name}.{key}": one for key, one in value.items()}
            else:
                flat[str(name)] = cell
        rows.append(flat)
    return _systems_as_rows(of_rows(table.name, table.where, rows, table.lines, table.remarks))


def _systems_as_rows(table: GoldenRows) -> GoldenRows:
    """Columns with objects of the same keys, of which some have numbers, become a row for each system, or measure."""
    keys: dict[str, frozenset[str]] = {}
    for name in table.names:
        cells = [json_cell(cell) for cell in table.filled(name)]
        if cells and all(isinstance(cell, Mapping) and any(map(is_number, cell.values())) for cell in cells):
            keys[name] = frozenset(cells[0])
    heads = {name: name.rpartition(".")[2] for name in keys}
    # Beside scores, objects of a measure hold what it was computed from.
    plain = all(joined(name) in terms.ID or not is_numeric(table, name) for name in table.names)
    named = [name for name in keys if plain and _is_measure(heads[name])]
    alike = [name for name in keys if [*keys.values()].count(keys[name]) > 1 and not keys[name] & {*KEYS}]
    if not (parts := named or alike):
        return table
    # Beside lists of the same systems they are what was computed from these.
    if {heads[name] for name in alike} <= {
        name.rpartition(".")[2] for name in table.names if is_lists(table, name) and name not in parts
    }:
        return replace(table, names=tuple(name for name in table.names if name not in parts))
    what = "measure" if named else "system"
    rows = [
        {key: cell for key, cell in row.items() if key not in parts}
        | {what: heads[name], **(json_cell(row.get(name)) or {})}
        for row in table.rows
        for name in parts
    ]
    remark = f"{what}s are {first_names(parts, quoted=True)}, which have the same keys"
    lines = (line for line in table.lines for _ in parts)
    return of_rows(table.name, table.where, rows, lines, (*table.remarks, remark))


def _has_results(value: Mapping[str, Any]) -> bool:
    """Whether one key of what a program returned has results, and the others say something of them."""
    lists = [one for one in value.values() if isinstance(one, list | dict)]
    return len(lists) == 1 and bool(lists[0]) and all(isinstance(one, Mapping) for one in lists[0])


def turned(table: GoldenRows, chosen: Mapping[str, tuple[str, ...]]) -> GoldenRows:
    """A table with a row for each system and a column for each question, turned."""
    heads = chosen.get("system") or tuple(name for name in table.names if joined(name) in terms.SYSTEM)
    if len(heads) != 1:
        return table
    systems = [str(cell) for cell in table.cells(heads[0])]
    others = [name for name in table.names if name != heads[0]]
    known = terms.QUESTION | terms.ID | terms.SCORE | terms.DOCUMENT | terms.RETRIEVED | terms.GRADE
    plain = any(joined(name) in known for name in others)
    if plain or "score" in chosen or len(set(systems)) < len(systems) or len(others) <= len(systems):
        return table
    if "system" not in chosen and (what := group_of(others)):
        fault = f"columns are {what} ({first_names(others)}), or questions"
        raise table.two_readings(fault, (f"system={heads[0]}",))
    rows = [{"question": name, **dict(zip(systems, table.cells(name), strict=True))} for name in others]
    remark = f"each row is a {heads[0]}, each column a question; {TURNED}"
    return of_rows(table.name, table.where, rows, [1] * len(rows), (*table.remarks, remark))


def placed(table: GoldenRows, chosen: Mapping[str, tuple[str, ...]]) -> GoldenRows:
    """Columns for the places of one list, such as hit1 to hit10, become one column of lists."""
    groups: dict[str, list[tuple[int, str]]] = {}
    for name in table.names:
        match = _NUMBERED.fullmatch(name)
        if match and not any(name in names for names in chosen.values()):
            groups.setdefault(match[1], []).append((int(match[2]), name))
    complete: dict[str, list[str]] = {}
    wanted: dict[str, list[str]] = {}
    for stem, places in groups.items():
        numbers = sorted(place for place, _ in places)
        counts = numbers == list(range(numbers[0], numbers[0] + len(numbers))) and numbers[0] < 2
        names = [name for _, name in sorted(places)]
        words = set(words_of(stem))
        if not counts or stem in table.names or any(is_lists(table, name) for name in names):
            continue
        if words & (terms.WANTED | terms.REFERENCE) and not words & (terms.PLACES | terms.THING):
            if len(names) > 1 and not any(is_numeric(table, name) for name in names):
                wanted[stem] = names
        elif len(names) > 2 and not any(is_share(table, name) for name in names):
            complete[stem] = names
    # Lists of several systems, such as bm25_1 to bm25_5 and dense_1 to dense_5, have the same places, and no numbers.
    several = [stem for stem, names in complete.items() if stem and not any(is_numeric(table, name) for name in names)]
    alike = len(several) > 1 and len({len(complete[stem]) for stem in several}) == 1
    merged = {
        stem: names
        for stem, names in complete.items()
        if says(stem, terms.PLACES | terms.THING)
        or (alike and stem in several)
        or ((stem in several or says(stem, terms.RETRIEVED)) and _is_one_list(table, names))
    }
    if not merged:
        return table
    # Columns of expected answers are put together as those of results are.
    merged |= wanted
    rows = []
    for row in table.rows:
        own = {name: cell for name, cell in row.items() if not any(name in names for names in merged.values())}
        rows.append(own | {stem: [row[n] for n in names if not is_empty(row.get(n))] for stem, names in merged.items()})
    said = [f"'{names[0]}' to '{names[-1]}' are the places of one list" for names in merged.values()]
    return of_rows(table.name, table.where, rows, table.lines, (*table.remarks, *said))


def _is_one_list(table: GoldenRows, names: Sequence[str]) -> bool:
    """Whether columns have one id in each cell, and in no row the same one twice, as top results of systems have."""
    lists = [own for name in names if (own := lists_of(table, name)) is not None]
    rows = [[doc for cell in row for doc in cell] for row in zip(*lists, strict=True)]
    single = len(lists) == len(names) and all(len(cell) <= 1 for own in lists for cell in own)
    numbers = [number_of(doc) for row in rows for doc in row]
    whole = all(number is None or number.is_integer() for number in numbers)
    return single and whole and all(len(set(row)) == len(row) for row in rows)


def with_lists(table: GoldenRows, names: Iterable[str], sign: str) -> GoldenRows:
    """The table with lists instead of texts in some columns."""
    columns = frozenset(names)
    rows = [
        {
            name: [one.doc_id for one in items(cell, sign, table, place)]
            if name in columns and isinstance(json_cell(cell), str)
            else cell
            for name, cell in row.items()
        }
        for place, row in enumerate(table.rows)
    ]
    shown = "line ends" if sign == "\n" else f"'{sign}'"
    return replace(table, rows=tuple(rows), remarks=(*table.remarks, f"lists are separated by {shown}"))


def is_share(table: GoldenRows, name: str) -> bool:
    """Whether a column holds numbers between 0 and 1: scores, and no ids."""
    numbers = [number_of(cell) for cell in table.filled(name)]
    return bool(numbers) and all(one is not None and 0 <= one <= 1 for one in numbers)
