"""Golden files and score tables: questions, what was expected, what systems retrieved, or their scores, in one table.

Teams that build search keep such tables as CSV, JSON, Parquet or frames, each with column names of its own. Where two
readings are possible, reading stops and names both. What was done to rows (repeated questions, empty lists, ids as
numbers) is counted in `remarks`.
"""

from __future__ import annotations

import hashlib
import math
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, islice
from pathlib import Path
from typing import Any, Final

import polars as pl

from truerank.errors import InputError
from truerank.sources import golden_cells as in_cells
from truerank.sources.golden_columns import divided, roles_of
from truerank.sources.golden_joins import is_named_by_text
from truerank.sources.golden_roles import GoldenRoles, HalfError
from truerank.sources.golden_rows import GoldenRows, first_names, is_empty, json_cell, opened_rows
from truerank.sources.golden_scores import direction, named_measure, scale_fault, unlike_rows
from truerank.sources.golden_shapes import shaped, unfolded
from truerank.sources.golden_words import LOWER, RETRIEVED, says, words_of
from truerank.sources.qrels import QREL_SCHEMA
from truerank.text.normalising import spoken
from truerank.text.printable import counted

#: So few results of each question, and so many questions, show that two columns may be exchanged.
_FEW: Final = 3
_MANY: Final = 5
_LEFT: Final = "averages leave these questions out"
_LETTER: Final = re.compile(r"[^\W\d_]")
_NOT_WORD: Final = re.compile(r"[\W_]+")


@dataclass(frozen=True, eq=False)
class GoldenTable:
    """What a golden file or a score table holds.

    Attributes:
        questions: columns topic_id and text, in the order of the file.
        qrels: columns as in `QREL_SCHEMA`; None for a score table.
        runs: the results of each system: topic_id, doc_id, score, rank.
        scores: the scores of each system: topic_id, value; empty for a golden file.
        repeats: of systems with several scores of each question: topic_id, and a column for each repetition.
        empty: the questions for which a system retrieved nothing, as its file says.
        path: of the file; empty for a value of a program.
        cells: of results of MTEB: the scores of all splits, columns as in `mteb_results.CELLS`.
        better: which scores are, where their names do not say that the higher ones are.
        joined: whether its ids are those of a golden file.
        measure: what the scores are, where one name says so and they are not turned.
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
    repeats: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    empty: Mapping[str, frozenset[str]] = field(default_factory=dict)
    path: str = ""
    cells: pl.DataFrame | None = None
    better: str = ""
    joined: bool = False
    measure: str = "score"

    def sentence(self) -> str:
        """What it was taken for, and by which columns."""
        systems = list(self.runs or self.scores)
        many = f"{len(systems)} system{'s' if len(systems) != 1 else ''} ({first_names(systems)})"
        noun = "question" if self.cells is None else "task"
        count = f"{len(self.questions)} {noun}{'s' if len(self.questions) != 1 else ''}"
        roles = "; ".join(
            f"{role} in {first_names(sorted(names) if role == 'scores' else names, quoted=True)}"
            for role, names in self.columns.items()
            if role != "system" and (role != "id" or names != self.columns.get("question"))
        )
        kind = "scores of " if self.scores else ""
        return "; ".join(filter(None, (f"{count}, {kind}{many}", roles, self.better)))


def read_golden(source: Any, columns: str | Mapping[str, str] = "", *, measure: str = "") -> GoldenTable:
    """Reads a golden file or a score table.

    Args:
        source: a path (CSV, TSV, JSON, JSONL, Parquet), a frame of Polars or pandas, a list of mappings, or a mapping
            of columns.
        columns: what columns are, where their names do not say: "question=q,expected=gold,retrieved=a+b".
        measure: whose scores count, where a column names several measures.
    """
    table = source if isinstance(source, GoldenRows) else opened_rows(source)
    given, lone = table, False
    try:
        table, chosen = shaped(table, columns, measure)
        table = divided(table, chosen)
        roles = roles_of(table, chosen)
        if roles.system is not None:
            table = _one_spelling(table, roles.system, roles.question or roles.identifier or "")
        # What was expected is named, and what may be results is not called so: perhaps there are none.
        results = {"retrieved", "document"} & set(chosen) or any(says(x, RETRIEVED) for x in roles.retrieved.values())
        lone = "expected" in chosen and not results
        known = {"expected", "retrieved"} <= set(chosen)
        found = _scored(table, roles) if roles.is_scores else _retrieved(table, roles, known=known)
    except InputError as error:
        # What lies in a cell or a row is said with its line; else it is which column is what.
        if error.line is None and table is not source:
            error.details = in_cells.columns_shown(unfolded(given))
            if lone:
                half = HalfError(error.fault, error.remedy, where=table.where)
                half.details = error.details
                raise half from None
        raise
    taken = {name for names in found.columns.values() for name in names}
    said = unlike_rows(given, taken, taken if found.scores else ())
    path = str(table.where) if isinstance(table.where, Path) else ""
    return replace(found, path=path, remarks=(*found.remarks, *said))


def merged_tables(tables: Sequence[GoldenTable], columns: str = "") -> GoldenTable:
    """Several golden files, or several score tables, as one: a file for each system, or for some of them.

    Questions are the same where their ids are, or their texts where a file has no ids, or ids that number its rows.
    Where nothing names a system, its file does, or a folder of it. What was done to put them together is in `remarks`.
    """
    first, *others = tables
    if not others:
        return first
    parts, reason, remarks = list(tables), _pairing(tables, columns), list[str]()
    if reason:
        plain = all(one.questions["text"].map_elements(spoken, pl.String).is_unique().all() for one in tables)
        forms = {text: spoken(text) if plain else text for one in tables for text in one.questions["text"]}
        places = {form: str(number) for number, form in enumerate(dict.fromkeys(forms.values()), 1)}
        parts = [_renumbered(one, {text: places[form] for text, form in forms.items()}) for one in tables]
        said = any("id" in one.columns for one in tables)
        remarks += [f"questions are paired by their texts: {reason}"] if said else []
        met = sum(count > 1 for count in Counter(forms.values()).values())
        remarks += [f"{counted(met, 'question')} of several files equal but for case, marks and blanks: one each"] * (
            met > 0
        )
    systems = [list(one.runs or one.scores) for one in parts]
    unnamed = all("system" not in one.columns for one in tables)
    if unnamed and all(len(own) == 1 for own in systems) and len({own[0] for own in systems}) < len(systems):
        parts = [_named(one, label) for one, label in zip(parts, _labels(tables), strict=True)]
    found: dict[str, pl.DataFrame] = {}
    for one in parts:
        for system, frame in (one.runs or one.scores).items():
            if system not in found:
                found[system] = frame
                continue
            if "system" not in one.columns or set(frame["topic_id"]) & set(found[system]["topic_id"]):
                fault = f"a system '{system}' in two files"
                raise InputError(fault, "give its column another name in one of them", where=one.name)
            # Parts of one export: a column names the system, and no question is in both.
            found[system] = pl.concat([found[system], frame])
    counts = [set(one.questions["topic_id"]) for one in parts]
    unshared = len(every := set.union(*counts)) - len(set.intersection(*counts))
    if unshared and not first.joined:
        noun = "questions" if first.cells is None else "tasks"
        tail = ": systems are compared on those of both" if first.qrels is None else ""
        remarks.append(f"{unshared} of {len(every)} {noun} are not in all files{tail}")
    questions = pl.concat([one.questions for one in parts]).unique("topic_id", keep="first", maintain_order=True)
    if parts[0].qrels is None:
        _check_scales(first, found)
        repeats = {system: frame for one in parts for system, frame in one.repeats.items()}
        return replace(parts[0], questions=questions, scores=found, remarks=tuple(remarks), repeats=repeats)
    judged = [one.qrels for one in parts if one.qrels is not None]
    for part, own_judged in zip(parts[1:], judged[1:], strict=True):
        _check_expected(judged[0], own_judged, part.name, dict(questions.iter_rows()))
    qrels = pl.concat(judged).unique(["topic_id", "doc_id"], keep="first", maintain_order=True)
    empty: dict[str, frozenset[str]] = {}
    for one in parts:
        for system, topics in one.empty.items():
            empty[system] = empty.get(system, frozenset()) | topics
    return replace(parts[0], questions=questions, qrels=qrels, runs=found, remarks=tuple(remarks), empty=empty)


def _pairing(tables: Sequence[GoldenTable], columns: str) -> str:
    """Why questions of several files are the same where their texts are; empty where their ids are what counts."""
    named = {part.partition("=")[0].strip() for part in columns.split(",")}
    own = [dict(one.questions.iter_rows()) for one in tables]
    known = [place for place, texts in enumerate(own) if None not in texts.values()]
    ids = ["".join(one.columns.get("id", ())) for one in tables]
    pairs = combinations(known, 2) if "id" not in named and not any(one.joined for one in tables) else ()
    reason = ""
    if bare := [tables[place].name for place in known if not ids[place]]:
        reason = f"{bare[0]} has no ids"
    elif pairs and "question" in named and len(known) == len(tables):
        reason = "--columns names them"
    elif any(is_named_by_text(own[a], own[b], ids[a], tables[b].path or tables[b].name) for a, b in pairs):
        reason = f"'{ids[known[0]]}' does not name the same question in each file"
    for one, texts in zip(tables, own, strict=True) if reason else ():
        if None in texts.values() or len(set(texts.values())) < len(texts):
            fault = f"{one.name} has a question twice, or one without a text, and {reason}"
            raise InputError(fault, "give all files the same ids, or each question its text once", where=one.name)
    return reason


def _check_scales(table: GoldenTable, scores: Mapping[str, pl.DataFrame]) -> None:
    """Refuses scores of which one system has percent, and another one shares."""
    values = {system: frame["value"].to_list() for system, frame in scores.items()}
    if fault := scale_fault(values, lower=table.better.startswith("lower")):
        raise InputError(fault, "write all of them as shares, or all of them as percent", where=table.name)


def _renumbered(table: GoldenTable, numbers: Mapping[str, str]) -> GoldenTable:
    """The table with the numbers of its texts as ids."""
    ids = {topic: numbers[text] for topic, text in table.questions.iter_rows()}

    def keyed(frame: pl.DataFrame) -> pl.DataFrame:
        return frame.with_columns(pl.col("topic_id").replace_strict(ids, return_dtype=pl.String))

    return replace(
        table,
        questions=keyed(table.questions),
        qrels=None if table.qrels is None else keyed(table.qrels),
        runs={name: keyed(frame) for name, frame in table.runs.items()},
        scores={name: keyed(frame) for name, frame in table.scores.items()},
        repeats={name: keyed(frame) for name, frame in table.repeats.items()},
        empty={name: frozenset(ids[topic] for topic in topics) for name, topics in table.empty.items()},
    )


def _labels(tables: Sequence[GoldenTable]) -> list[str]:
    """What tells files apart: their names, or one of their folders that is more than a date, or all of these."""
    stems = [one.name.rpartition(".")[0] or one.name for one in tables]
    if len(set(stems)) == len(stems) or not set.intersection(*(set(one.questions["topic_id"]) for one in tables)):
        return stems
    parents = (Path(one.path).absolute().parent.parts for one in tables)
    apart = [level for level in zip(*parents, strict=False) if len(set(level)) > 1]
    for level in apart:
        if len(set(level)) == len(tables) and all(map(_LETTER.search, level)):
            return list(level)
    joined = ["_".join([*folders, stem]) for stem, *folders in zip(stems, *apart, strict=True)]
    return joined if len(set(joined)) == len(joined) else stems


def _named(table: GoldenTable, name: str) -> GoldenTable:
    (frame,) = (table.runs or table.scores).values()
    if not table.scores:
        return replace(table, runs={name: frame}, empty=dict(zip((name,), table.empty.values(), strict=False)))
    return replace(table, scores={name: frame}, repeats=dict(zip((name,), table.repeats.values(), strict=False)))


def _check_expected(first: pl.DataFrame, other: pl.DataFrame, name: str, texts: Mapping[str, str | None]) -> None:
    """Refuses two files that expect other documents of a question."""
    columns = ["topic_id", "doc_id", "relevance"]
    shared = set(first["topic_id"]) & set(other["topic_id"])
    own = [set(frame.filter(pl.col("topic_id").is_in(shared)).select(columns).iter_rows()) for frame in (first, other)]
    if unlike := sorted(own[0] ^ own[1]):
        topic, doc = unlike[0][:2]
        fault = f"question '{texts[topic] or topic}' expects '{doc}' in one file only"
        raise InputError(fault, "give each question the same expected documents in all files", where=name)


def _one_spelling(table: GoldenRows, system: str, question: str) -> GoldenRows:
    """The table with one name for systems that differ in case and blanks, and of which each question has one."""
    names = Counter(str(cell).strip() for cell in table.cells(system))
    usual: dict[str, str] = {}
    for name, _ in names.most_common():
        usual.setdefault("".join(name.split()).casefold(), name)
    said = {name: usual["".join(name.split()).casefold()] for name in names}
    asked = {(said[str(row.get(system)).strip()], str(row.get(question))) for row in table.rows}
    if len(usual) == len(names) or len(asked) < len({(str(x.get(system)), str(x.get(question))) for x in table.rows}):
        return table
    rows = tuple({**row, system: said[str(row.get(system)).strip()]} for row in table.rows)
    remarks = tuple(f"system '{name}' is '{said[name]}', in other letters" for name in names if name != said[name])
    return replace(table, rows=rows, remarks=(*table.remarks, *remarks))


class _Questions:
    """The questions in the order of the table, each with its id."""

    def __init__(self, table: GoldenRows, roles: GoldenRoles) -> None:
        self.texts: dict[str, str | None] = {}
        self.ids: list[str] = []
        known: dict[str, str] = {}
        several = roles.system or roles.document
        if several is not None and roles.identifier is None and roles.question is None:
            fault = f"several rows of a question, by '{several}', and no column that names the question"
            raise table.fault(fault, "name it: --columns id=COLUMN")
        for row, cells in enumerate(table.rows):
            text = None if roles.question is None else cells.get(roles.question)
            text = None if is_empty(text) else " ".join(str(text).split())
            own = None if roles.identifier is None else cells.get(roles.identifier)
            if is_empty(own) and text is None:
                if roles.identifier is None and roles.question is None:
                    own = str(row + 1)
                else:
                    raise table.fault("a row without a question", "give each row its question, or an id", row)
            key = f"id {in_cells.identifier_of(own)}" if not is_empty(own) else f"text {text}"
            number = known.setdefault(key, in_cells.identifier_of(own) if not is_empty(own) else str(len(known) + 1))
            self.ids.append(number)
            if self.texts.setdefault(number, text) != text and text is not None:
                fault = f"question {number} has two texts"
                raise table.fault(fault, "give each question an id of its own", row)

    def copies(self) -> dict[str, str]:
        """Questions with the text of another one, but for case, marks and blanks, and the first of each."""
        first: dict[str, str] = {}
        texts = {number: spoken(text) for number, text in self.texts.items() if text is not None}
        return {number: first[text] for number, text in texts.items() if first.setdefault(text, number) != number}

    def frame(self) -> pl.DataFrame:
        rows = list(self.texts.items())
        return pl.DataFrame(rows, schema={"topic_id": pl.String, "text": pl.String}, orient="row")


def _retrieved(table: GoldenRows, roles: GoldenRoles, *, known: bool) -> GoldenTable:
    """Judgments and runs of a golden file; `known` says that nobody guessed which column is which."""
    questions, remarks = _Questions(table, roles), Counter[str]()
    expected: dict[str, dict[str, float]] = defaultdict(dict)
    lists: dict[str, dict[str, list[in_cells.Retrieved]]] = defaultdict(dict)
    signs = {name: in_cells.separator(table, name) for name in (roles.expected, *roles.retrieved.values()) if name}
    texts = roles.expected is not None and in_cells.are_texts(table, roles.expected, signs[roles.expected])
    texts = texts and not _are_ids(table, roles)
    if texts and roles.expected is not None:
        signs[roles.expected] = ""
    if roles.document is not None:
        _by_row(table, roles, questions, (expected, lists), signs)
        if roles.grade is not None and roles.expected is None:
            remarks["only what systems retrieved is judged: recall and nDCG are of these documents"] += 1
    else:
        for row, (number, cells) in enumerate(zip(questions.ids, table.rows, strict=True)):
            own = {
                one.doc_id: _grade(one.weight, table, row)
                for one in in_cells.items(cells.get(roles.expected or ""), signs[roles.expected or ""], table, row)
            }
            _join(expected, number, own, remarks, repeated=roles.system is None)
            for label, name in roles.retrieved.items():
                system = label if roles.system is None else str(cells.get(roles.system)).strip()
                found = list(in_cells.items(cells.get(name), signs[name], table, row))
                if label in roles.scores:
                    found = _with_scores(found, cells.get(roles.scores[label]), table, row)
                if number in lists[system] and lists[system][number] != found:
                    fault = f"'{questions.texts[number] or number}' appears twice with other results of {system}"
                    remedy = "name the column of the system (--columns system=COLUMN), or of repeats"
                    raise table.fault(fault, remedy, row)
                lists[system][number] = found
    if texts:
        expected = _matched(table, roles, expected, lists, remarks)
    expected, step = in_cells.whole_grades(expected)
    remarks.update([step] if step else [])
    asked = {number for number in questions.texts if expected.get(number)}
    if without := len(questions.texts) - len(asked):
        remarks[f"{without} question{'s' * (without != 1)} without an expected answer: not scored"] += 1
    again = len(asked.intersection(questions.copies()))
    many = f"{again} of {len(asked)} questions have the text of another one"
    remarks.update([f"{many}; a check counts each text once"] * (again > 0))
    if not asked:
        raise table.fault("no question has an expected answer", "name another column: --columns expected=COLUMN")
    if {doc for own in expected.values() for doc in own} <= {"0", "1", "True", "False", "true", "false"}:
        fault = f"'{roles.expected or roles.document}' holds flags (0 and 1), and no ids"
        raise table.fault(fault, "give the ids of expected and retrieved documents, or a score for each question")
    shown = {
        system: f"in '{roles.retrieved[system]}'" if system in roles.retrieved else f"of {system}" for system in lists
    }
    _check_names(table, expected, {shown[system]: every for system, every in lists.items()})
    _check_lengths(table, roles, expected, lists, known=known)
    runs = {system: _run(table, system, found, remarks) for system, found in lists.items()}
    judged = ((number, doc, grade) for number in questions.texts for doc, grade in expected.get(number, {}).items())
    rows = [(number, in_cells.whole(doc), int(grade)) for number, doc, grade in judged]
    schema = {name: QREL_SCHEMA[name] for name in ("topic_id", "doc_id", "relevance")}
    qrels = pl.DataFrame(rows, schema=schema, orient="row")
    empty = {system: frozenset(number for number, own in every.items() if not own) for system, every in lists.items()}
    said = (*table.remarks, *remarks)
    return GoldenTable(table.name, questions.frame(), qrels, runs, {}, roles.columns(), said, empty=empty)


def _are_ids(table: GoldenRows, roles: GoldenRoles) -> bool:
    """Whether expected cells are among results that are ids and no texts, whatever their column is called."""
    known = frozenset[str]().union(
        *(in_cells.vocabulary(table, name) for name in (*roles.retrieved.values(), roles.document) if name)
    )
    words = in_cells.mean(len(doc.split()) for doc in known)
    return words < in_cells.TEXT_WORDS and bool(in_cells.vocabulary(table, roles.expected or "") & known)


def _join(
    expected: dict[str, dict[str, float]], number: str, own: dict[str, float], remarks: Counter[str], *, repeated: bool
) -> None:
    """Adds what is expected of a question; several rows of it are put together."""
    if number in expected and repeated:
        remarks["questions in several rows: one question each"] += 1
    if number in expected and own and expected[number] and own != expected[number]:
        remarks["questions whose rows expect other documents: all of them are expected"] += 1
    for doc, grade in own.items():
        expected[number][doc] = max(grade, expected[number].get(doc, grade))
    expected.setdefault(number, {})


def _grade(score: float | None, table: GoldenRows, row: int) -> float:
    if score is None:
        return 1
    if not float(round(100 * score, 6)).is_integer():
        raise table.fault(f"{score:g} is not a grade", "give whole numbers as grades, or two decimals at most", row)
    return score


def _by_row(
    table: GoldenRows,
    roles: GoldenRoles,
    questions: _Questions,
    found: tuple[dict[str, dict[str, float]], dict[str, dict[str, list[in_cells.Retrieved]]]],
    signs: Mapping[str, str],
) -> None:
    """A row for each result: lists in the order of the rank, of the score, or of the rows."""
    expected, lists = found
    placed: dict[tuple[str, str], list[tuple[float, in_cells.Retrieved]]] = defaultdict(list)
    rises = roles.rank is None and in_cells.rising(roles.score)
    unnamed = table.where.stem if isinstance(table.where, Path) else "system"
    for row, (number, cells) in enumerate(zip(questions.ids, table.rows, strict=True)):
        system = unnamed if roles.system is None else str(cells.get(roles.system)).strip()
        score = None if roles.score is None else in_cells.number_of(cells.get(roles.score))
        rank = None if roles.rank is None else in_cells.number_of(cells.get(roles.rank))
        if roles.expected is not None:
            for one in in_cells.items(cells.get(roles.expected), signs[roles.expected], table, row):
                expected[number][one.doc_id] = _grade(one.weight, table, row)
        expected.setdefault(number, {})
        cell = cells.get(roles.document or "")
        if is_empty(cell):
            lists[system].setdefault(number, [])
            continue
        doc = in_cells.identifier_of(cell)
        if roles.grade is not None:
            grade = in_cells.number_of(cells.get(roles.grade))
            if grade:
                expected[number][doc] = max(_grade(grade, table, row), expected[number].get(doc, 0))
            elif grade is not None:
                expected[number].setdefault(doc, 0)
        place = rank if rank is not None else float(row) if score is None else score if rises else -score
        # A distance falls where a score rises; only the rank can say so.
        falling = score is not None and rank is not None and not says(roles.score or "", LOWER)
        placed[system, number].append((place, in_cells.Retrieved(doc, score if rank is None or falling else None)))
    numbers = [[place for place, _ in results] for results in placed.values()]
    if rises and all(own == sorted(own, reverse=True) for own in numbers) and any(len(set(own)) > 1 for own in numbers):
        fault = f"two readings: results in the order of their rows, or by '{roles.score}', the smallest first"
        raise table.fault(fault, "add a column rank")
    for (system, number), results in placed.items():
        lists[system][number] = [one for _, one in sorted(results, key=lambda pair: pair[0])]


def _with_scores(found: list[in_cells.Retrieved], cell: Any, table: GoldenRows, row: int) -> list[in_cells.Retrieved]:
    value = json_cell(cell)
    scores = value if isinstance(value, list) else [part for part in re.split(r"[;|\s]+", str(value or "")) if part]
    if len(scores) != len(found):
        raise table.fault(f"{len(found)} results and {len(scores)} scores", "give a score for each result", row)
    return [one._replace(score=in_cells.number_of(score)) for one, score in zip(found, scores, strict=True)]


def _run(
    table: GoldenRows, system: str, lists: Mapping[str, list[in_cells.Retrieved]], remarks: Counter[str]
) -> pl.DataFrame:
    """A run in the order of the lists."""
    empty = sum(not found for found in lists.values())
    if empty:
        remarks[f"{system} returned nothing for {empty} question{'s' * (empty != 1)}"] += 1
    twice, rising, falling, rows = 0, 0, 0, []
    for number, found in lists.items():
        first = dict.fromkeys(in_cells.whole(one.doc_id) for one in found)
        twice += len(found) - len(first)
        scores = [one.score for one in found if one.score is not None]
        if len(set(scores)) > 1:
            rising += scores == sorted(scores)
            falling += scores == sorted(scores, reverse=True)
            if scores not in (sorted(scores), sorted(scores, reverse=True)) or (rising and falling):
                fault = f"two readings: {system}, question {number}: results in their order, or by their scores"
                raise table.fault(fault, "sort each list by its scores, or leave the scores out")
        in_cells.check_distances(found, f"{system}, question {number}", table)
        rows += [(number, doc, 1.0 / place, place) for place, doc in enumerate(first, start=1)]
    if twice:
        remarks[f"{system}: {counted(twice, 'result')} repeated in one list; the first place counts"] += 1
    if rising:
        remarks[f"{system}: the scores rise from first to last, as distances do; the order of the lists counts"] += 1
    schema = {"topic_id": pl.String, "doc_id": pl.String, "score": pl.Float64, "rank": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _plain(text: str) -> str:
    return f" {_NOT_WORD.sub(' ', text.casefold()).strip()} "


def _matched(
    table: GoldenRows,
    roles: GoldenRoles,
    expected: Mapping[str, Mapping[str, float]],
    lists: Mapping[str, dict[str, list[in_cells.Retrieved]]],
    remarks: Counter[str],
) -> dict[str, dict[str, float]]:
    """Expected texts as the documents that hold them; a text that none holds is a document that nobody retrieved."""
    known: dict[str, str] = {}
    for every in lists.values():
        for results in every.values():
            known |= {one.doc_id: _plain(one.text or one.doc_id) for one in results}
    if all(len(text.split()) < in_cells.TEXT_WORDS for text in known.values()):
        raise table.fault("the expected answers are texts, and the results are ids", "give the expected ids")
    plain = all(not one.text for every in lists.values() for results in every.values() for one in results)
    by_text: dict[str, list[str]] = defaultdict(list)
    for doc, text in known.items():
        by_text[text].append(doc)
    found: dict[str, dict[str, float]] = {}
    equal = inside = lacking = 0
    for number, answers in expected.items():
        found[number] = {}
        for answer, grade in answers.items():
            text = _plain(answer)
            own = by_text.get(text, [])
            equal += bool(own)
            if not own and text.strip():
                mine = {one.doc_id for every in lists.values() for one in every.get(number, [])}
                own = [doc for doc in mine if text in known.get(doc, "")]
                inside += bool(own)
            lacking += not own
            name = f"expected-{hashlib.sha256(text.encode()).hexdigest()[:10]}"
            if own and plain:
                # Texts have no ids: each that holds an answer is that answer, whatever else a system cut around it.
                _rename(lists, number, frozenset(own), name)
            found[number] |= dict.fromkeys(own if own and not plain else [name], grade)
    if not equal and not inside:
        fault = f"no text of '{roles.expected}' is a result, or within one"
        raise table.fault(fault, "give the expected documents, or scores: --columns score=COLUMN")
    met = f"{equal} equal to a document, {inside} contained in one"
    remarks[f"expected texts: {met}, {lacking} in none (they count as not found)"] += 1
    return found


def _rename(
    lists: Mapping[str, dict[str, list[in_cells.Retrieved]]], number: str, own: frozenset[str], name: str
) -> None:
    """Gives the results of a question that are equal to an answer, or contain it, one id."""
    for every in lists.values():
        if number in every:
            every[number] = [one._replace(doc_id=name) if one.doc_id in own else one for one in every[number]]


def _check_lengths(
    table: GoldenRows,
    roles: GoldenRoles,
    expected: Mapping[str, Mapping[str, float]],
    lists: Mapping[str, Mapping[str, list[in_cells.Retrieved]]],
    *,
    known: bool,
) -> None:
    """Refuses lists that were cut off when they were printed, and columns that may be exchanged."""
    every = [results for own in lists.values() for results in own.values() if results]
    if cut := sum(results[-1].doc_id.endswith(("...", "…")) for results in every):
        remedy = "write the whole lists, for instance as JSON"
        raise table.fault(f"{cut} lists of results end in '{every[0][-1].doc_id[-3:]}': they were cut off", remedy)
    lengths = [len(own) for own in expected.values() if own]
    if known or roles.expected is None or len(roles.retrieved) != 1 or roles.system is not None or len(lengths) < _MANY:
        return
    (column,), retrieved = roles.retrieved.values(), [len(results) for results in every]
    if max(retrieved, default=0) <= _FEW and min(lengths) > max(retrieved):
        fault = f"'{roles.expected}' has {min(lengths)} ids and more, '{column}' {max(retrieved)} at most"
        choices = (f"expected={column},retrieved={roles.expected}", f"expected={roles.expected},retrieved={column}")
        raise table.two_readings(f"{fault}: which is which", choices)


def _check_names(
    table: GoldenRows,
    expected: Mapping[str, Mapping[str, float]],
    lists: Mapping[str, Mapping[str, list[in_cells.Retrieved]]],
) -> None:
    """Refuses ids of results that are written otherwise than the expected ones."""
    wanted = {doc for own in expected.values() for doc in own}
    for system, every in lists.items():
        found = {one.doc_id for results in every.values() for one in results}
        if not found:
            continue
        if found & wanted:
            # Others may differ: names of files that one program writes as another one decomposes them.
            forms, lead = [in_cells.UNICODE], f"some results {system} are expected ids"
        else:
            forms, lead = list(in_cells.ID_FORMS), f"no expected id is among the results {system}"
        pair = min(wanted), min(found)
        for form in forms:
            if (same := _same_in_form(in_cells.ID_FORMS[form], expected, every)) is not None:
                lead, pair = f"{lead}; {form}, {'others' if found & wanted else 'some'} are", same
                break
        else:
            if found & wanted:
                continue
        remedy = "write the ids of both in the same form"
        raise table.fault(f"{lead} (expected {_shown(pair[0])}, retrieved {_shown(pair[1])})", remedy)


def _same_in_form(
    change: Callable[[str], str],
    expected: Mapping[str, Mapping[str, float]],
    every: Mapping[str, list[in_cells.Retrieved]],
) -> tuple[str, str] | None:
    """An expected id and a result of its question that are another text, and the same in a form; None for too few.

    Numbers of ids that have nothing to do with each other meet now and then: by these, half of the questions have to.
    """
    pairs = []
    for number, own in expected.items():
        changed = {change(one): one for one in own}
        met = ((changed[form], one.doc_id) for one in every.get(number, ()) if (form := change(one.doc_id)) in changed)
        pairs += list(islice((pair for pair in met if pair[0] != pair[1] and pair[1] not in own), 1))
    few = len(expected) / 2 if change is in_cells.ID_FORMS[in_cells.DIGITS] else 1
    return pairs[0] if pairs and len(pairs) >= few else None


def _shown(name: str) -> str:
    """An id with the form of its letters, where that cannot be seen."""
    composed = unicodedata.is_normalized("NFC", name)
    return f"'{name}'" if name.isascii() or composed else f"'{name}' with decomposed letters"


def _scored(table: GoldenRows, roles: GoldenRoles) -> GoldenTable:
    """The scores of a score table."""
    questions, remarks, missing = _Questions(table, roles), Counter[str](), Counter[str]()
    values: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    named: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    texts: dict[str, list[str]] = defaultdict(list)
    better = direction(table, roles)
    sign = -1 if better.startswith("lower") else 1
    columns = [name for name in (roles.score, *roles.retrieved.values()) if name]
    scored = {name for name in columns if in_cells.is_scored(table, name)}
    ranked = sign < 0 and (roles.rank or any("rank" in words_of(name) for name in columns))
    for number, cells in zip(questions.ids, table.rows, strict=True):
        repeat = None if roles.repeat is None else cells.get(roles.repeat)
        named_so = {str(cells.get(roles.system)).strip(): roles.score} if roles.system is not None else roles.retrieved
        for system, name in named_so.items():
            cell = cells.get(name or "")
            value = in_cells.number_of(cell)
            # As a rank, 0 and -1 are none.
            if in_cells.is_missing(cell) or (ranked and value is not None and value <= 0):
                missing[system] += 1
                continue
            if value is None and name in scored:
                texts[system].append(str(cell).strip())
                continue
            if value is None or not math.isfinite(value):
                remedy = "write numbers: 1 and 0 where a word says whether an answer is right"
                raise table.fault(f"'{cell}' is not a score", remedy, questions.ids.index(number))
            values[system][number].append(sign * value)
            count = len(values[system][number])
            named[system][number].append(str(count) if is_empty(repeat) else in_cells.identifier_of(repeat))
    if ranked and (missing or texts):
        remedy = "write a rank below the end of the lists, or give 1 / rank, and 0 for nothing"
        many = counted(sum(missing.values()) + sum(map(len, texts.values())), "rank")
        raise table.fault(f"{many} missing (empty, words, 0 or less): nothing was found, or nothing asked", remedy)
    repeated = [scores for own in values.values() for scores in own.values() if len(scores) > 1]
    copied = roles.repeat is None and all(len(set(scores)) == 1 for scores in repeated)
    if repeated:
        unsaid = "" if roles.repeat else ", as no column says what else these rows are"
        of_copies = "stand in equal rows of the same question and system: each counts once"
        said = of_copies if copied else f"are means over repeats of the same question and system{unsaid}"
        remarks[f"{len(repeated)} scores {said}"] += 1
    schema = {"topic_id": pl.String, "value": pl.Float64}
    scores = {
        name: pl.DataFrame([(one, in_cells.mean(own)) for one, own in every.items()], schema=schema, orient="row")
        for name, every in values.items()
    }
    remarks.update(_said_of(scores, missing, texts, len(questions.texts)))
    asked = questions.frame()
    if copies := questions.copies():
        remarks[f"{len(copies)} of {len(asked)} questions repeat another one: each counts once, with its mean"] += 1
        asked = asked.filter(~pl.col("topic_id").is_in([*copies]))
        first = pl.col("topic_id").replace(copies)
        scores = {
            system: frame.group_by(first, maintain_order=True).agg(pl.col("value").mean())
            for system, frame in scores.items()
        }
    return GoldenTable(
        table.name, asked, None, {}, scores, roles.columns(), (*table.remarks, *roles.left, *remarks),
        {
            system: frame
            for system, own in ({} if copied else values).items()
            if (frame := _repeats({one: own[one] for one in own if one not in copies}, named[system])) is not None
        },
        better=better,
        measure="score" if sign < 0 else named_measure(table, roles) or "score",
    )  # fmt: skip


def _said_of(
    scores: Mapping[str, pl.DataFrame], missing: Mapping[str, int], texts: Mapping[str, Sequence[str]], questions: int
) -> Iterator[str]:
    """What systems lack, and which have the scores of another one."""
    for system, count in missing.items():
        many = "1 score is" if count == 1 else f"{count} scores are"
        yield f"{system}: {many} missing; {_LEFT}"
    for system, own_texts in texts.items():
        many = "1 cell is no number" if len(own_texts) == 1 else f"{len(own_texts)} cells are no numbers"
        yield f"{system}: {many}, such as '{own_texts[0][:20]}'; {_LEFT}"
    same: dict[tuple[Any, ...], str] = {}
    for system, frame in scores.items():
        if (count := questions - len(frame)) and not (missing or texts):
            yield f"{system} has no score for {count} of {questions} questions; {_LEFT}"
        first = same.setdefault(tuple(frame.sort("topic_id").rows()), system)
        if len(set(frame["value"])) > 1 and first != system:
            yield f"{system} has the scores of {first} on every question"


def _repeats(values: Mapping[str, list[float]], named: Mapping[str, list[str]]) -> pl.DataFrame | None:
    """The repetitions of one system, of the questions that have all of them; None where there are fewer than two."""
    rows = [
        (topic, repeat, value) for topic, own in values.items() for repeat, value in zip(named[topic], own, strict=True)
    ]
    frame = pl.DataFrame(rows, {"topic_id": pl.String, "repeat": pl.String, "value": pl.Float64}, orient="row")
    if frame["repeat"].n_unique() < 2:
        return None
    wide = frame.pivot("repeat", index="topic_id", values="value", aggregate_function="mean").drop_nulls()
    return wide if len(wide) > 1 else None
