"""Expected answers in one file, what systems retrieved in others: the files of one evaluation, joined by question."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import polars as pl

from truerank.errors import InputError, TwoReadingsError
from truerank.sources import golden_cells as in_cells
from truerank.sources.golden_columns import half_roles, is_named_expected, known_ids, result_columns
from truerank.sources.golden_roles import GoldenRoles
from truerank.sources.golden_rows import GoldenRows, first_names, is_empty, json_cell, of_rows, opened_rows
from truerank.sources.golden_scores import check_places, unlike_rows
from truerank.sources.golden_shapes import shaped, with_lists
from truerank.sources.qrels import highest_grades, step_of
from truerank.text.normalising import spoken

#: The share of a file's questions that has to be in the other one.
_SHARED: Final = 0.5
#: How many times longer lists of results are than those of expected answers, where nothing else says which is which.
_LONGER: Final = 1.5
#: The columns that a file of results gets.
EXPECTED: Final = "expected"
QUESTION: Final = "golden question"


@dataclass(frozen=True, eq=False)
class Half:
    """A table of questions with one list each, by its own columns.

    Attributes:
        roles: of its columns.
        content: the column of documents or texts.
        chosen: the roles whose columns were named.
    """

    table: GoldenRows
    roles: GoldenRoles
    content: str
    chosen: frozenset[str] = frozenset()

    def named(self) -> str:
        """The column of documents, where its name does not say what it is and rows are single results."""
        single = self.content and self.roles.document is None and self.roles.rank is not None
        return f"document={self.content}" if single else ""

    def keys(self) -> dict[str, list[str]]:
        """What names the question of each row, by column, as it is compared."""
        columns = [name for name in (self.roles.identifier, self.roles.question) if name is not None]
        keys = {name: [_key(cell) for cell in self.table.cells(name)] for name in columns}
        return {name: own if name == self.roles.identifier else [*map(spoken, own)] for name, own in keys.items()}

    def length(self) -> float:
        """The mean length of the lists."""
        column = self.roles.question or self.roles.identifier or ""
        count = Counter(map(str, self.table.cells(column)))
        lists = [len(own) for own in self.lists()]
        return in_cells.mean(lists) * (in_cells.mean(count.values()) if max(lists, default=0) <= 1 else 1)

    def lists(self) -> list[dict[str, float | None]]:
        """The documents, or texts, of each row, with their grades."""
        found = self.results()
        grades = [None] * len(found) if self.roles.grade is None else self.table.cells(self.roles.grade)
        return [
            {one.doc_id: in_cells.number_of(grade) if grade is not None else one.weight for one in own}
            for own, grade in zip(found, grades, strict=True)
        ]

    def rows(self, keys: Sequence[str]) -> pl.DataFrame:
        """What is expected, row by row: topic_id, doc_id, relevance."""
        listed = list(zip(keys, self.lists(), strict=True))
        rows = [(key, doc, 1.0 if grade is None else grade) for key, own in listed for doc, grade in own.items()]
        return pl.DataFrame(rows, {"topic_id": pl.String, "doc_id": pl.String, "relevance": pl.Float64}, orient="row")

    def answers(self, keys: Sequence[str]) -> tuple[dict[str, dict[str, float]], list[str]]:
        """What is expected of each question, of several grades the highest, and what is to be said of it."""
        frame, remarks = highest_grades(self.rows(keys))
        expected = {key: dict[str, float]() for key in keys}
        for key, doc, grade in frame.iter_rows():
            expected[key][doc] = grade
        return expected, [remark.rstrip(".") for remark in remarks]

    def remarks(self) -> tuple[str, ...]:
        """What is to be said of what is expected."""
        columns = [name for own in self.roles.columns().values() for name in own] + [self.content]
        keys = [*map(in_cells.identifier_of, self.table.cells(next(iter(self.keys()))))]
        return (*self.table.remarks, *self.answers(keys)[1], *unlike_rows(self.table, columns))

    def texts(self) -> dict[str, str]:
        """The text of each question by its id, as ids are compared; empty where one of them is not there."""
        at_id, at_text = self.roles.identifier, self.roles.question
        if at_id is None or at_text is None:
            return {}
        return dict(zip(self.keys()[at_id], map(in_cells.identifier_of, self.table.cells(at_text)), strict=True))

    def results(self) -> list[list[in_cells.Retrieved]]:
        """The documents, or texts, of each row as they are listed."""
        cells = self.table.cells(self.content)
        texts = [len(str(cell).split()) for cell in self.table.filled(self.content) if isinstance(json_cell(cell), str)]
        try:
            # A text may hold the signs that separate ids.
            sign = "" if in_cells.mean(texts) >= in_cells.TEXT_WORDS else in_cells.separator(self.table, self.content)
        except InputError:
            sign = ""
        return [list(in_cells.items(cell, sign, self.table, row)) for row, cell in enumerate(cells)]


def _key(cell: Any) -> str:
    return "" if is_empty(cell) else in_cells.identifier_of(cell).casefold()


def half_of(source: Any, columns: str = "") -> Half | None:
    """A file as the half of an evaluation; None where it is no table of questions and lists."""
    try:
        table, chosen = shaped(opened_rows(source), columns)
        roles, content = half_roles(table, chosen)
    except InputError:
        return None
    return Half(table, roles, content, frozenset(chosen)) if roles.question or roles.identifier else None


def related(halves: Mapping[str, Half], inside: frozenset[str]) -> dict[str, Half]:
    """The halves without those of a folder that share no questions with another one: lists of other things."""

    def meets(half: Half) -> bool:
        own = half.keys().values()
        return any(
            in_cells.mean(key in set(keys) for key in wanted) >= _SHARED
            for other in halves.values()
            if other is not half
            for wanted in other.keys().values()
            for keys in own
        )

    return {path: half for path, half in halves.items() if path not in inside or meets(half)}


def golden_half(halves: Sequence[Half]) -> Half | None:
    """The one that says what was expected: by the name of its column or file, or by its shorter lists."""
    ranked = [one for one in halves if one.roles.rank or one.roles.system or one.roles.score]
    open_ones = [one for one in halves if one not in ranked and one.content]
    by_column = [one for one in open_ones if one.roles.expected is not None or one.roles.grade is not None]
    by_name = [one for one in open_ones if is_named_expected(one.table.name)]
    for fitting in (by_column, by_name):
        if len(fitting) == 1:
            return fitting[0]
    if len(open_ones) == 1 and ranked:
        return open_ones[0]
    by_length = sorted(open_ones, key=Half.length)
    if len(by_length) > 1 and by_length[0].length() * _LONGER <= min(one.length() for one in by_length[1:]):
        return by_length[0]
    return None


def is_named_by_text(first: Mapping[str, str], other: Mapping[str, str], column: str, where: str | Path) -> bool:
    """Whether texts by id of two files are the same questions by their texts only: the ids number rows.

    It is asked about where most ids have another text in the other file, and the texts are not the same either.
    """
    shared = [topic for topic in first if topic in other]
    unlike = [topic for topic in shared if spoken(first[topic]) != spoken(other[topic])]
    same = len(shared) - len(unlike)
    texts = [set(map(spoken, own.values())) for own in (first, other)]
    met = len(texts[0] & texts[1])
    if met > same and (unlike or 2 * met >= max(map(len, texts))):
        return True
    if len(unlike) > same:
        topic = unlike[0]
        fault = f"two readings: '{column}' {topic} is '{first[topic]}' in one file, '{other[topic]}' in another one: "
        raise TwoReadingsError(f"{fault}one question, or numbers of rows", (f"id={column}",), where)
    return False


def joined(gold: Half, results: Half) -> GoldenRows:
    """The rows of a file of results with the expected answers of their questions.

    Raises:
        InputError: fewer than half of the questions are in both files.
    """
    own, wanted = gold.keys(), results.keys()
    shares = {
        (first, other): in_cells.mean(key in set(keys) for key in dict.fromkeys(others))
        for first, keys in own.items()
        for other, others in wanted.items()
    }
    (first, other), share = max(shares.items(), key=lambda pair: pair[1])
    if share < _SHARED:
        fault = f"{share:.0%} of the questions of {results.table.name} are in {gold.table.name}"
        raise InputError(fault, "name questions in both in the same way", where=results.table.where)
    by = f"'{first}'"
    texts = (gold.roles.question or "", results.roles.question or "")
    if texts in shares and first != texts[0] and "id" not in gold.chosen | results.chosen:
        known = gold.texts(), results.texts()
        where = results.table.where
        if "question" in gold.chosen & results.chosen or (all(known) and is_named_by_text(*known, first, where)):
            by = f"'{texts[0]}'" + f", as '{first}' does not name the same question in each file" * all(known)
            first, other = texts
    columns = result_columns(results.table)
    gold = replace(gold, table=in_cells.with_grades(gold.table, gold.content, known_ids(results.table, columns)))
    sign, split = in_cells.shared_separator((gold.table, gold.content), (results.table, columns))
    if sign:
        gold = replace(gold, table=with_lists(gold.table, [gold.content], sign))
        results = replace(results, table=with_lists(results.table, split, sign))
    expected, _ = gold.answers(own[first])
    ids = dict(zip(own[first], own.get(gold.roles.identifier or "", ()), strict=False))
    names = {key: str(number) for number, key in enumerate(expected, 1)}
    if ids and len(set(ids.values())) == len(ids):
        cells = gold.table.cells(gold.roles.identifier or "")
        names = {key: in_cells.whole(in_cells.identifier_of(cell)) for key, cell in zip(own[first], cells, strict=True)}
    graded = any(grade is not None for answers in gold.lists() for grade in answers.values())
    rows, lines, lacking = [], [], set[str]()
    for row, key, line in zip(results.table.rows, wanted[other], results.table.lines, strict=True):
        if key not in expected:
            lacking.add(key)
            continue
        own_answers = expected[key]
        rows.append({**row, EXPECTED: own_answers if graded else list(own_answers), QUESTION: names[key]})
        lines.append(line)
    remarks = [f"expected answers are those of {gold.table.name}, by {by}", *results.table.remarks]
    if lacking:
        shown = first_names(sorted(lacking))
        remarks.append(f"{len(lacking)} questions are not in {gold.table.name} and are left out ({shown})")
    table = of_rows(results.table.name, results.table.where, rows, lines)
    if unanswered := len(set(expected) - set(wanted[other])):
        remarks.append(f"{unanswered} questions of {gold.table.name} are not in this file and are left out")
    return replace(table, remarks=tuple(remarks))


def expected_elsewhere(gold: Half, results: Half) -> str | None:
    """Another column of expected answers whose ids are among the results, where those of the chosen one are not."""
    table = results.table
    known = known_ids(table, result_columns(table))

    def meets(name: str) -> bool:
        return any(own & known for own in in_cells.lists_of(gold.table, name) or ())

    others = [name for name in result_columns(gold.table, gold.content) if meets(name)]
    return None if meets(gold.content) or len(others) != 1 else others[0]


def judged_by(gold: Half, keys: Sequence[str] = ()) -> tuple[pl.DataFrame, str]:
    """What was expected as judgments, with all that a pair was judged, for runs in files of their own; a remark."""
    column = gold.roles.identifier or gold.roles.question or ""
    keys = keys or [in_cells.whole(in_cells.identifier_of(cell)) for cell in gold.table.cells(column)]
    rows = gold.rows(keys)
    step = step_of(rows["relevance"])
    grades = (pl.col("relevance") * step).round().cast(pl.Int32)
    said = f"grades with decimals are counted as whole numbers, up to {round(step * max(rows['relevance'], default=0))}"
    docs = pl.Series("doc_id", map(in_cells.whole, rows["doc_id"]), pl.String)
    return rows.with_columns(docs, grades), said * (step > 1)


def ranked_by(results: Half) -> Mapping[str, Mapping[str, float]]:
    """Results of one system by question and document, for judgments that come in a file of their own."""
    roles, table = results.roles, results.table
    column, number = roles.identifier or roles.question or "", roles.rank or roles.score
    rows = list(zip(table.cells(column), results.results(), strict=True))
    if number is not None and all(len(listed) <= 1 for _, listed in rows):
        if roles.rank is None:
            check_places(table, roles)
        sign = 1 if roles.rank is not None or in_cells.rising(number) else -1
        places = [math.inf if (own := in_cells.number_of(cell)) is None else sign * own for cell in table.cells(number)]
        rows = [rows[place] for place in sorted(range(len(rows)), key=places.__getitem__)]
    found: dict[str, dict[str, float]] = {}
    for cell, listed in rows:
        in_cells.check_distances(listed, f"question {in_cells.identifier_of(cell)}", table)
        mine = found.setdefault(in_cells.whole(in_cells.identifier_of(cell)), {})
        for one in listed:
            mine.setdefault(in_cells.whole(one.doc_id), 1 / (len(mine) + 1))
    return found
