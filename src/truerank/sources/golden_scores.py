"""What counts as a score: which numbers are those of systems, and which are places, times, counts or means."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from truerank.sources.golden_cells import is_missing, is_numeric, number_of
from truerank.sources.golden_roles import MOST_SYSTEMS, GoldenRoles, HalfError, NumbersError, no_expected, only_one
from truerank.sources.golden_rows import GoldenRows, first_names
from truerank.sources.golden_words import ID, LOWER, MEASURE, QUESTION, SCORE, SCORES, joined, measure_in, words_of

_DERIVED: Final = frozenset("delta diff difference change average avg mean best worst max min".split())


_SIGNS: Final = frozenset(("Δ", "δ", "±", "Ø", "∆"))


_CALLED: Final = frozenset(
    "rating ratings stars star points quality percent pct grade grades judge judgment punktzahl note nota puntos "
    "bewertung punkte".split()
)


#: Parts of names of times and ranks in some languages, and units behind a sign.
_TIME: Final = re.compile(
    r"latenc|durat|runtime|elapsed|zeit|dauer|tiempo|temps|second|sekund|\brang\b|puesto|[_ (](m?s|sec|secs)\)?$|^ms_",
    re.IGNORECASE,
)


_SIZES: Final = frozenset("len length size count chars words".split())


#: Measures of programs that judge answers and contexts, such as Ragas and DeepEval.
_RAG_MEASURE: Final = re.compile(
    r"faithfulness|groundedness|answer_(relevancy|relevance|correctness|similarity)|semantic_similarity|"
    r"context(ual)?_(precision|recall|relevancy|relevance|entity_recall)|factual_correctness|hallucination"
)
#: A column whose largest value is so many times that of another one is of another measure.
SCALE: Final = 10


#: Numbers that programs write where there is no score: 99, -999. A score is so many by less than this chance.
_MARK: Final = re.compile(r"-?9{2,}")
_CHANCE: Final = 0.001


#: Numbers above it, and whole numbers above 1, are asked about where nothing calls them scores.
_HIGHEST_SCORE: Final = 2


def score_roles(
    table: GoldenRows, free: Sequence[str], chosen: Mapping[str, tuple[str, ...]], found: GoldenRoles
) -> GoldenRoles:
    """The roles of a score table: a column of numbers for each system, or one with the system beside it."""
    numbers, left = list(chosen.get("score", ())), tuple[str, ...]()
    if not numbers:
        numbers, left = _numbers(table, [name for name in free if is_numeric(table, name) or failures(table, name)])
    if found.expected is not None and (not numbers or "expected" in chosen):
        named = f" (left are {first_names(free, quoted=True)})" if free else ""
        fault = f"no column with what was retrieved{named}"
        raise HalfError(fault, "name it: --columns retrieved=COLUMN", where=table.where)
    own = [found.score] if found.system is not None and found.score is not None else numbers
    shown = f", or say that these are scores: --columns score={'+'.join(own)}"
    left = (*left, *refuse_marks(table, own, found.system, shown, asked="score" not in chosen))
    if found.system is not None:
        score = found.score or only_one(table, numbers, "score")
        if score is None:
            fault = f"a column '{found.system}', and none with scores or results"
            raise table.fault(fault, "name it: --columns score=COLUMN")
        check_results(table, found, [name for name in free if name not in numbers], chosen)
        if "score" not in chosen:
            _check_scores(table, [score])
        return replace(found, expected=None, score=_higher_is_better(table, score), is_scores=True, left=left)
    if found.rank is not None and "score" not in chosen:
        raise no_expected(table)  # ranks order results
    if not numbers:
        fault = f"no results and no scores; there are {first_names(table.names, quoted=True)}"
        remedy = "name the columns: --columns question=…,expected=…,retrieved=…"
        raise HalfError(fault, remedy, where=table.where)
    others = [name for name in free if name not in numbers]
    if found.identifier is None and found.question is None:
        if not others:
            raise table.fault("scores without questions", "add a column with an id for each row")
        found = replace(found, question=others[0])
        if len(table.rows) < len(numbers):
            fault = f"'{others[0]}' names {len(table.rows)} questions, or as many systems"
            raise table.two_readings(fault, (f"question={others[0]}", f"system={others[0]}"))
    check_rows(table, found, others)
    _check_numbers(table, [_higher_is_better(table, name) for name in numbers])
    if "score" not in chosen:
        _check_scores(table, numbers)
    labels = {_label(name): name for name in numbers}
    if isinstance(table.where, Path) and len(numbers) == 1 and joined(numbers[0]) in SCORE:
        labels = {table.where.stem: numbers[0]}  # a file for each system
    return replace(found, expected=None, retrieved=labels, is_scores=True, left=left)


def _numbers(table: GoldenRows, names: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    """The columns that may be scores of systems, and which ones are not: times, row numbers, differences, means."""
    kept: list[str] = []
    left: list[str] = []
    for name in names:
        words = set(words_of(name))
        apart = _is_time(name) or words & _SIZES or words & _DERIVED or name in _SIGNS or _is_counted(table, name)
        (left if apart or (joined(name) in ID and len(names) > 1) else kept).append(name)
    if not kept:
        return list(names), ()
    return kept, ((f"not taken for scores: {first_names(left, quoted=True)}",) if left else ())


def failures(table: GoldenRows, name: str) -> list[str]:
    """The texts in a column that has fractions otherwise, as programs write failures."""
    cells = [cell for cell in table.filled(name) if not is_missing(cell)]
    fractions = sum(not (number_of(cell) or 0.0).is_integer() for cell in cells)
    return [str(cell) for cell in cells if number_of(cell) is None] if fractions * 2 > len(cells) else []


def without_failures(table: GoldenRows, names: Iterable[str]) -> GoldenRows:
    """The table without the texts that columns of scores hold, which are named."""
    texts = {name: found for name in names if (found := failures(table, name))}
    if not texts:
        return table
    rows = tuple(
        {name: None if name in texts and number_of(cell) is None else cell for name, cell in row.items()}
        for row in table.rows
    )
    remarks = (
        f"'{name}': {len(found)} of its cells are left out, which are no numbers, such as '{found[0][:20]}'"
        for name, found in texts.items()
    )
    return replace(table, rows=rows, remarks=(*table.remarks, *remarks))


def refuse_marks(
    table: GoldenRows, numbers: Sequence[str], system: str | None, remedy: str = "", *, asked: bool = True
) -> tuple[str, ...]:
    """Asks where numbers may be marks of failures; says how many there are where they may well be scores.

    Args:
        table: the table.
        numbers: the columns of scores.
        system: the column that names the system, if there is one.
        remedy: what else can be done.
        asked: whether nobody said that they are scores.
    """
    cells = [
        (row, name if system is None else str(cells.get(system)).strip(), number_of(cells.get(name)) or 0.0)
        for row, cells in enumerate(table.rows)
        for name in numbers
        if not is_missing(cells.get(name))
    ]
    marks, certain = failure_marks([value for _, _, value in cells])
    if not marks:
        return ()
    rows = [(row, name) for row, name, value in cells if value in marks]
    values = " or ".join(f"{value:g}" for value in sorted(marks))
    names = first_names(dict.fromkeys(name for _, name in rows), quoted=True)
    many = f"{values} in {len(rows)} score{'s' * (len(rows) != 1)} of {names}"
    if not (asked and certain):
        return (f"{many}: counted as scores",)
    others = [value for _, _, value in cells if value not in marks]
    fault = f"{many}, all others from {min(others):g} to {max(others):g}: failures, or scores"
    raise table.fault(fault, f"leave the cells of failures empty, or write 0 if they shall count{remedy}", rows[0][0])


def failure_marks(values: Sequence[float]) -> tuple[frozenset[float], bool]:
    """Values that may be marks of failures among scores, and whether they are hardly scores.

    Of scores from 0 to 1 with fractions they are all whole numbers below 0, of others one such number where chance does
    not make all negative scores whole; and 99, 999 and so on, with either sign, far above what the others have.
    """
    nines = {value for value in values if _MARK.fullmatch(f"{value:.0f}") and value.is_integer()}
    largest = max((abs(value) for value in values if value not in nines), default=math.inf)
    if far := frozenset(value for value in nines if abs(value) > SCALE * largest):
        return far, True
    negative = [value for value in values if value < 0]
    rest = [value for value in values if value >= 0]
    if not negative or not rest or not all(value.is_integer() for value in negative):
        return frozenset(), False
    whole = sum(value.is_integer() for value in rest) / len(rest)
    marks = frozenset(negative)
    certain = whole < 1 and (max(rest) <= 1 or (len(marks) == 1 and whole ** len(negative) <= _CHANCE))
    return (marks, certain) if certain or marks == {-1.0} else (frozenset(), False)


def _is_time(name: str) -> bool:
    """Whether a name says that lower values are better: a time, a cost, a rank."""
    return bool(set(words_of(name)) & LOWER) or _TIME.search(name) is not None


def check_judged_answers(table: GoldenRows, free: Sequence[str], expected: str | None, retrieved: str) -> None:
    """Asks where a table has results, and beside them what a program that judges answers made of them."""
    scored = [name for name in free if _RAG_MEASURE.fullmatch("_".join(words_of(name)))]
    if scored:
        fault = f"scores of a program that judges answers ({first_names(scored, quoted=True)}), or results to be scored"
        choices = (*(f"score={name}" for name in scored[:2]), f"expected={expected},retrieved={retrieved}")
        raise table.two_readings(fault, choices)


def _is_counted(table: GoldenRows, name: str) -> bool:
    """Whether a column counts the rows."""
    values = [number_of(cell) for cell in table.cells(name)]
    return len(values) > 2 and values in ([*range(len(values))], [*range(1, len(values) + 1)])


def check_means(table: GoldenRows, head: str) -> None:
    """Refuses a table with a row for each system, or measure, of numbers alone, of which each is that of a measure."""
    heads = [str(cell).strip() for cell in table.cells(head)]
    numbers = [name for name in table.names if name != head and is_numeric(table, name)]
    asked = any(joined(name) in QUESTION | ID for name in table.names)
    if asked or not numbers or len(set(heads)) < len(heads):
        return
    by_row = all(MEASURE.fullmatch(one) for one in heads)
    if by_row or all(measure_in(name) for name in numbers):
        what = first_names(heads if by_row else numbers, quoted=True)
        fault = f"means over all questions ({what}), and no scores of single ones"
        raise table.fault(fault, "give a row for each question: a mean does not say how much of it is chance")


def check_results(
    table: GoldenRows, found: GoldenRoles, others: Sequence[str], chosen: Mapping[str, tuple[str, ...]]
) -> None:
    """Refuses several rows of a question and a system that name things: the mean score of results says nothing."""
    key = found.question or found.identifier
    if key is None or found.repeat is not None or "score" in chosen:
        return
    pairs = [(str(row.get(key)), str(row.get(found.system or ""))) for row in table.rows]
    things = []
    for name in (name for name in others if not is_numeric(table, name)):
        groups: dict[tuple[str, str], set[str]] = {}
        for pair, cell in zip(pairs, table.cells(name), strict=True):
            groups.setdefault(pair, set()).add(str(cell))
        # Names of repetitions are the same for all questions.
        if len(set(map(frozenset, groups.values()))) > len({system for _, system in pairs}):
            things.append(name)
    if len(set(pairs)) < len(pairs) and things:
        choices = tuple(f"{role}={name}" for name in things for role in ("document", "repeat"))
        raise table.two_readings(f"several rows of a question and a system, with '{things[0]}'", choices)


def _check_scores(table: GoldenRows, numbers: Sequence[str]) -> None:
    """Asks where numbers may be places, times or counts, and nothing calls them scores."""
    where = table.where.stem if isinstance(table.where, Path) else ""
    words = {word for name in (*numbers, where) for word in words_of(name)}
    plain = any(set(words_of(name)) & (SCORE | SCORES | _CALLED) or measure_in(name) for name in numbers)
    if lower := next((name for name in (*numbers, *(() if plain else (where,))) if _is_time(name)), ""):
        fault = f"'{lower}' is not called like a score: lower may be better"
        raise table.fault(fault, "give scores of which the higher is better, or name them: --columns score=COLUMN")
    named = words & (SCORE | SCORES | _CALLED) or any(measure_in(name) for name in (*numbers, where))
    cells = [cell for name in numbers for cell in table.filled(name) if not is_missing(cell)]
    values = [abs(number_of(cell) or 0.0) for cell in cells]
    largest = max(values, default=0.0)
    if not named and (largest > _HIGHEST_SCORE or (largest > 1 and all(value.is_integer() for value in values))):
        chosen = "+".join(numbers)
        fault = f"{first_names(numbers, quoted=True)} with values up to {largest:g}: scores, or places, times or counts"
        raise NumbersError(f"two readings: {fault}", (f"score={chosen}",), table.where)


def check_places(table: GoldenRows, found: GoldenRoles) -> None:
    """Asks where the numbers of each list of results count up, and nothing calls them scores."""
    name = found.score or ""
    if set(words_of(name)) & (SCORES | {"score"}):
        return
    lists: dict[tuple[str, ...], list[float]] = {}
    keys = [one for one in (found.identifier, found.question, found.system) if one is not None]
    for row in table.rows:
        lists.setdefault(tuple(str(row.get(key)) for key in keys), []).append(number_of(row.get(name)) or 0.0)
    if all(sorted(own) in ([*range(len(own))], [*range(1, len(own) + 1)]) for own in lists.values()):
        fault = f"'{name}' counts the results of each question: places, or scores"
        raise table.two_readings(fault, (f"rank={name}", f"score={name}"))


def check_rows(table: GoldenRows, found: GoldenRoles, others: Sequence[str]) -> None:
    """Refuses rows of one question that differ in what may be a system: their mean would be of several."""
    key = found.question or found.identifier
    if key is None or found.repeat is not None:
        return
    asked = [str(cell) for cell in table.cells(key)]
    if len(set(asked)) == len(asked):
        return
    apart = [name for name in others if name != key and 1 < len(set(map(str, table.cells(name)))) <= MOST_SYSTEMS]
    if apart:
        roles = tuple(f"{role}={name}" for name in apart for role in ("system", "repeat"))
        raise table.two_readings(f"several rows of a question, by {first_names(apart, quoted=True)}", roles)


def _higher_is_better(table: GoldenRows, name: str) -> str:
    """The column, unless its name says that lower values are better."""
    if lower := set(words_of(name)) & LOWER:
        fault = f"'{name}' is not a score: of a {min(lower)} the lower is better"
        raise table.fault(fault, "give scores of which the higher is better, such as 1 / rank, or leave the column out")
    return name


def _check_numbers(table: GoldenRows, numbers: Sequence[str]) -> None:
    """Refuses columns that cannot be scores of one measure by several systems."""
    remedy = f"choose those of one measure: --columns score={numbers[0]}+…"
    if len({measure_in(name) for name in numbers}) > 1:
        remedy = (
            f"choose one: --columns score={'+'.join(n for n in numbers if measure_in(n) == measure_in(numbers[0]))}"
        )
        raise table.fault(f"columns of several measures ({first_names(numbers, quoted=True)})", remedy)
    for name in numbers:
        if len(table.filled(name)) * 2 < len(table.rows):
            raise table.fault(f"'{name}' has numbers in fewer than half of the rows: it is not a system", remedy)
    largest = {name: max(abs(number_of(cell) or 0.0) for cell in table.filled(name)) for name in numbers}
    first, last = min(numbers, key=largest.__getitem__), max(numbers, key=largest.__getitem__)
    if largest[last] > SCALE * max(largest[first], 1e-9) > 0:
        cells = table.filled(last)
        above = sum(abs(number_of(cell) or 0.0) > largest[first] for cell in cells)
        fault = f"'{first}' has values up to {largest[first]:g}, '{last}' up to {largest[last]:g}"
        counted = f"{above:,d} of {len(cells):,d} are above {largest[first]:g}"
        raise table.fault(
            f"values of different scales: {fault} ({counted})", f"write all values on one scale, or {remedy}"
        )


def _label(name: str) -> str:
    measure = measure_in(name)
    parts = [part for part in re.split(r"[\s_\-./:]+(?=\D)", name) if part.lower() != measure]
    return "_".join(parts) if measure and parts else name
