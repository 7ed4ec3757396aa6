"""What counts as a score: which numbers are those of systems, and which are places, times, counts or means."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from truerank.sources import golden_words as terms
from truerank.sources.golden_cells import TEXT_WORDS, is_lists, is_missing, is_numeric, is_scored, is_whole, number_of
from truerank.sources.golden_roles import MOST_SYSTEMS, GoldenRoles, HalfError, NumbersError, no_expected, only_one
from truerank.sources.golden_rows import GoldenRows, first_names, is_empty, is_summary, json_cell
from truerank.sources.golden_words import (
    called,
    is_count,
    is_measure,
    joined,
    lower_is_better,
    measure_in,
    says,
    words_of,
)
from truerank.text.printable import counted

_DERIVED: Final = frozenset("delta diff difference change average avg mean best worst max min both only".split())
_SIGNS: Final = frozenset(("Δ", "δ", "±", "Ø", "∆"))
_CALLED: Final = frozenset(
    "rating ratings stars star points quality percent pct grade grades judge judgment punktzahl note nota puntos "
    "bewertung punkte".split()
)
_SIZES: Final = frozenset("len length size chars words".split())
#: Words of columns that say what a question is, and not how it was answered.
_TRAITS: Final = frozenset("answerable unanswerable".split())
#: Words of flags that say how it was answered.
_ANSWERED: Final = frozenset("correct right found passed success successful".split())
#: A column whose largest value is so many times that of another one is of another measure.
SCALE: Final = 10
#: Numbers that programs write where there is no score: 99, -999. A score is so many by less than this chance.
_MARK: Final = re.compile(r"-?9{2,}")
_CHANCE: Final = 0.001
#: The highest rating that is usual.
_STARS: Final = 10
#: Last words of names of settings: top_k, depth.
_SETTINGS: Final = (("k",), ("depth",), ("cutoff",))
#: The remark on a table whose rows became columns, which nobody can name.
TURNED: Final = "rows and columns were swapped"
#: Names of what is logged while a model is trained.
_LOGGED: Final = re.compile(r"(train|eval|val)/")
#: Columns that Weights & Biases exports of each run, and how many of them no other table has.
_RUNS, _OF_RUNS = frozenset(("Created", "Runtime", "State", "Updated", "Tags", "Sweep", "Hostname", "End Time")), 2
#: What a column is called that says of how many questions a row is the mean.
_COUNTS: Final = re.compile(
    r"n|questions|queries|topics|(n|num|nb|number_of|count|total)_(q|questions|queries|topics|tests)|"
    r"(records|examples|samples|queries|questions)_(total|count|n)"
)
#: Numbers above it, and whole numbers above 1, are asked about where nothing calls them scores.
_HIGHEST_SCORE: Final = 2


def score_roles(
    table: GoldenRows, free: Sequence[str], chosen: Mapping[str, tuple[str, ...]], found: GoldenRoles
) -> GoldenRoles:
    """The roles of a score table: a column of numbers for each system, or one with the system beside it."""
    turned = "rank" in chosen and "score" not in chosen
    chosen = {**chosen, "score": chosen["rank"]} if turned else chosen
    if not turned and found.rank is not None and "score" not in chosen:
        raise unexpected(table, table.names)  # ranks order results
    found = replace(found, rank=chosen["rank"][0] if turned else None, score=None if turned else found.score)
    numbers, left = list(chosen.get("score", ())), tuple[str, ...]()
    if not numbers:
        numbers, left = _told(table, free, chosen)
    if found.expected is not None and (not numbers or "expected" in chosen):
        named = f" (not taken yet: {first_names(free, quoted=True)})" if free else ""
        fault = f"no column with what was retrieved{named}"
        raise HalfError(fault, "name it: --columns retrieved=COLUMN", where=table.where)
    own = [found.score] if found.system is not None and found.score is not None else numbers
    flags = [name for name in own if all(isinstance(cell, bool) for cell in table.filled(name))]
    left = (*left, f"{first_names(flags, quoted=True)}: right counts 1, wrong 0") if flags else left
    others = [name for name in free if name not in own]
    if not (found.identifier or found.question):
        found = _of_rows(found, others, chosen)
    shown = "" if "score" in chosen else f", or say that these are scores: --columns score={'+'.join(own)}"
    ranked = found.rank or all(says(name, terms.RANK) and lower_is_better(name) for name in own)
    left = (*left, *refuse_marks(table, () if ranked else own, found.system, shown, asked="score" not in chosen))
    if found.system is not None:
        return replace(_by_system(table, free, numbers, chosen, found), left=left)
    if not numbers:
        fault = f"no results and no scores; there are {first_names(table.names, quoted=True)}"
        remedy = "name the columns: --columns question=…,expected=…,retrieved=…"
        raise HalfError(fault, remedy, where=table.where)
    if found.identifier is None and found.question is None:
        if not others:
            remedy = "add a column with an id for each row, or name it: --columns question=COLUMN"
            raise table.fault("scores without questions", remedy)
        found = replace(found, question=others[0])
        if len(table.rows) < len(numbers):
            fault = f"'{others[0]}' names {len(table.rows)} questions, or as many systems"
            raise table.two_readings(fault, (f"question={others[0]}", f"system={others[0]}"))
    check_questions(table, found, others, chosen)
    check_rows(table, found, others, chosen)
    _check_numbers(table, numbers, asked="score" not in chosen)
    if "score" not in chosen:
        _check_factors(table, numbers)
        if not any(remark.endswith(TURNED) for remark in table.remarks):
            _check_scores(table, numbers)
    labels = _labels(numbers)
    if isinstance(table.where, Path) and len(numbers) == 1 and (found.measure or is_measure(numbers[0])):
        labels = {table.where.stem: numbers[0]}  # a file for each system
    return replace(found, expected=None, score=None, retrieved=labels, is_scores=True, left=left)


def unexpected(table: GoldenRows, names: Sequence[str], scores: Sequence[str] = ()) -> HalfError:
    """Nothing expected: asks whether scores or ranks count that somebody made of the results."""
    ranks = [name for name in names if says(name, terms.RANK) and not measure_in(name) and is_whole(table, name)]
    made = [name for name in names if measure_in(name) and not lower_is_better(name)]
    scores = scores or [name for name in made if is_scored(table, name)]
    if not scores and not any(says(name, terms.WANTED) for name in ranks):
        return no_expected(table)
    choices = (*(f"score={name}" for name in scores), *(f"rank={name}" for name in ranks))
    fault = f"no expected answers; scores or ranks may be {first_names([*scores, *ranks], quoted=True)}"
    return NumbersError(f"two readings: {fault}", choices, table.where)


def _of_rows(found: GoldenRoles, others: Sequence[str], chosen: Mapping[str, tuple[str, ...]]) -> GoldenRoles:
    """The roles with the only column that can say what rows without questions are."""
    if not others and found.repeat is not None and "repeat" not in chosen:
        return replace(found, question=found.repeat, repeat=None)
    return replace(found, question=others[0]) if found.system is not None and len(others) == 1 else found


def _by_system(
    table: GoldenRows,
    free: Sequence[str],
    numbers: Sequence[str],
    chosen: Mapping[str, tuple[str, ...]],
    found: GoldenRoles,
) -> GoldenRoles:
    """The roles of scores in one column, with the system beside them."""
    if found.score is None and len(numbers) > 1 and "system" not in chosen and not any(map(measured, numbers)):
        if not (found.question or found.identifier or found.repeat):
            fault = f"a row for each '{found.system}', with {first_names(numbers, quoted=True)}: no scores of questions"
            raise table.fault(fault, f"if these are tasks: truerank leaderboard {table.where}")
        fault = f"'{found.system}' names systems, or the runs of {first_names(numbers, quoted=True)}"
        choices = (f"score={'+'.join(numbers)},repeat={found.system}", *(f"score={name}" for name in numbers))
        raise table.two_readings(fault, choices)
    # Shares with fractions are scores rather than counts are.
    likely = sorted(numbers, key=lambda name: is_whole(table, name))
    score = found.score or only_one(table, likely, "score")
    if score is None:
        fault = f"a column '{found.system}', and none with scores or results"
        raise HalfError(fault, "name it: --columns score=COLUMN", where=table.where)
    check_questions(table, found, free, chosen)
    key = found.question or found.identifier
    systems = len({str(cell).strip() for cell in table.cells(found.system or "")})
    if key and systems > 1 and len({*map(str, table.cells(key))}) == len(table.rows):
        fault = f"each row has another '{key}', so that no two of {systems} systems share a question"
        raise table.fault(fault, "name what they share: --columns id=COLUMN")
    check_rows(table, found, [name for name in free if name != score], chosen)
    if "score" not in chosen:
        _check_scores(table, [score])
    return replace(found, expected=None, score=score, is_scores=True)


def _told(
    table: GoldenRows, free: Sequence[str], chosen: Mapping[str, tuple[str, ...]]
) -> tuple[list[str], tuple[str, ...]]:
    """The columns of scores that nobody named, and what is to be said of the others."""
    if "scores" in chosen:
        fault = "scores= are those of the documents in lists of results, and there are no lists"
        raise table.fault(fault, f"scores of systems: --columns score={'+'.join(chosen['scores'])}")
    numbers, left = _numbers(table, [name for name in free if is_scored(table, name)])
    return numbers, (*left, *with_texts(table, [name for name in free if not is_scored(table, name)]))


def _numbers(table: GoldenRows, names: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    """The columns that may be scores of systems, and which ones are not: times, row numbers, differences, means."""
    kept: list[str] = []
    left: list[str] = []
    for name in names:
        words = set(words_of(name))
        lower = lower_is_better(name) or terms.SECONDS.search(name)
        grouped = words and words <= terms.GROUPS
        apart = lower or grouped or is_count(name) or words & (_SIZES | _DERIVED | _TRAITS) or name in _SIGNS
        apart = apart or _is_counted(table, name) or _is_setting(name)
        (left if apart or (joined(name) in terms.ID and len(names) > 1) else kept).append(name)
    # Beside numbers, yes and no say something of the question, unless they are called scores.
    said = [name for name in kept if all(str(cell).strip().isalpha() for cell in table.filled(name))]
    flags = [name for name in said if not measured(name) and not says(name, _ANSWERED)]
    if len(said) < len(kept):
        kept, left = [name for name in kept if name not in flags], left + flags
    ranks = [name for name in left if says(name, terms.RANK) and says(name, terms.WANTED)]
    if ranks and kept and not any(map(measured, kept)):
        raise unexpected(table, ranks, kept)
    if not kept:
        times = [name for name in names if lower_is_better(name) or terms.SECONDS.search(name)]
        others = [name for name in names if not says(name, _TRAITS)]
        times = [name for name in times if any(number_of(cell) for cell in table.filled(name))] or times
        if others and all(map(is_count, others)):
            remedy = "write a score for each question, such as the share of its expected documents that was found"
            raise table.fault(f"{first_names(others, quoted=True)} count something, and nothing is a score", remedy)
        return [name for name in times if "total" in words_of(name)] or times or others, ()
    return kept, ((f"not taken for scores: {first_names(left, quoted=True)}",) if left else ())


#: One number in so many cells is no accident.
_SOME: Final = 5


def with_texts(table: GoldenRows, names: Sequence[str]) -> Iterable[str]:
    """Columns of fractions in which some cells are texts, as programs write failures."""
    for name in names:
        cells = [cell for cell in table.filled(name) if not is_missing(cell)]
        texts = [str(cell) for cell in cells if number_of(cell) is None]
        fractions = sum(not (number_of(cell) or 0.0).is_integer() for cell in cells)
        if texts and fractions * _SOME > len(cells):
            yield f"'{name}' is not taken for scores: not numbers: {len(texts)} of its cells, such as '{texts[0][:20]}'"


def refuse_marks(
    table: GoldenRows, numbers: Sequence[str], system: str | None, remedy: str = "", *, asked: bool = True
) -> tuple[str, ...]:
    """Asks where numbers may be marks of failures, and nobody said that they are scores; otherwise counts them."""
    cells = [
        (row, name if system is None else str(cells.get(system)).strip(), number)
        for row, cells in enumerate(table.rows)
        for name in numbers
        if not is_missing(cells.get(name)) and (number := number_of(cells.get(name))) is not None
    ]
    marks, certain = failure_marks([value for _, _, value in cells])
    if not marks:
        return ()
    rows = [(row, name) for row, name, value in cells if value in marks]
    values = " or ".join(f"{value:g}" for value in sorted(marks))
    names = first_names(dict.fromkeys(name for _, name in rows), quoted=True)
    many = f"{values} in {len(rows)} score{'s' * (len(rows) != 1)} of {names}"
    # What is called after a measure has no values outside of it, whoever named it.
    if not (certain and (asked or all(measure_in(name) for _, name in rows))):
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
    # Of ratings from 0 to 5, too, −1 alone is none: wins and losses are -1, 0 and 1.
    certain = whole < 1 and (max(rest) <= 1 or (len(marks) == 1 and whole ** len(negative) <= _CHANCE))
    certain = certain or (whole == 1 and marks == {-1.0} and 1 < max(rest) <= _STARS)
    return (marks, certain) if certain or marks == {-1.0} else (frozenset(), False)


def check_judged_answers(table: GoldenRows, free: Sequence[str], expected: str | None, retrieved: str) -> None:
    """Asks where a table has results, and beside them what a program that judges answers made of them."""
    scored = [name for name in free if terms.RAG_MEASURE.fullmatch(joined(name))]
    if scored:
        fault = f"scores of a program that judges answers ({first_names(scored, quoted=True)}), or results to be scored"
        choices = (*(f"score={name}" for name in scored), f"expected={expected},retrieved={retrieved}")
        raise table.two_readings(fault, choices)


def check_flags(
    table: GoldenRows, free: Sequence[str], expected: str | None, chosen: Mapping[str, tuple[str, ...]]
) -> None:
    """Asks where several columns say of each answer whether it is right, and no column has lists of results."""
    if not says(expected or "", terms.WANTED | terms.REFERENCE) or {"retrieved", "expected"} & set(chosen):
        return
    flags = [name for name in free if says(name, _ANSWERED) and not set(words_of(name)) & _DERIVED]
    flags = [name for name in flags if is_numeric(table, name) and not measure_in(name)]
    if len(flags) > 1 and not any(is_lists(table, name) for name in free):
        fault = f"{first_names(flags, quoted=True)} say what was right, or '{expected}' is to be looked for in results"
        raise table.two_readings(fault, (f"score={'+'.join(flags)}", f"expected={expected}"))


def _is_setting(name: str) -> bool:
    """Whether a name ends as those of settings do: top_k, and not precisionAtK."""
    return words_of(name)[-1:] in _SETTINGS and "at" not in words_of(name) and not measure_in(name)


def _is_counted(table: GoldenRows, name: str) -> bool:
    """Whether a column counts the rows."""
    values = [number_of(cell) for cell in table.cells(name)]
    return len(values) > 2 and values in ([*range(len(values))], [*range(1, len(values) + 1)])


def _has_numbers(cell: Any) -> bool:
    """Whether a cell has a list of numbers, one for each of many questions."""
    value = json_cell(cell)
    numbers = [one for one in value if one is not None] if isinstance(value, list) else []
    return isinstance(value, list) and len(value) > SCALE and all(isinstance(one, int | float) for one in numbers)


def check_means(table: GoldenRows, head: str) -> None:
    """Refuses a table of means: of systems, or measures, also by groups, of counted questions, or in totals."""
    heads = [str(cell).strip() for cell in table.cells(head)]
    numbers = [name for name in table.names if name != head and is_numeric(table, name)]
    scored = [name for name in numbers if measure_in(name)]
    rest = [name for name in numbers if name not in scored]
    first = table.rows[0]
    totals = [name for name in table.names if is_summary(name) and isinstance(json_cell(first.get(name)), Mapping)]
    asked = any(joined(name) in terms.QUESTION for name in table.names)
    ids = [name for name in table.names if joined(name) in terms.ID]
    counts = [name for name in rest if _COUNTS.fullmatch(joined(name))]
    # Groups have names without digits, and each of them is the mean of many questions.
    many = all(min(number_of(cell) or 0 for cell in table.filled(name)) > SCALE for name in counts)
    # So is what has a list of numbers of its questions beside it, or stands among blocks without any score.
    single_ones = [name for name in table.names if all(_has_numbers(cell) for cell in table.filled(name) or ("",))]
    bare = sum(all(is_empty(row.get(name)) for name in scored) for row in table.rows)
    parts = bool(single_ones) or (bool(scored) and 2 * bare >= len(table.rows))
    asks = any(says(name, {*terms.QUESTION, "qid"}) or _are_numbered(table.filled(name)) for name in ids)
    groups = bool(single_ones) or (((counts and many) or parts) and not asks)
    # Rows with several measures whose names are neither numbered nor texts, or that have a cut-off, are settings.
    texts = (name for name in table.names if not is_numeric(table, name) and not is_summary(name))
    called_so = asks or any(_are_numbered(own) or are_worded(own) for own in map(table.filled, texts) if own)
    cut = any(map(_is_setting, rest))
    settings = len(scored) > 1 and (cut or not called_so or len(table.rows) == 1) and not asks
    settings = settings or sum(map(bool, map(_LOGGED.match, numbers))) > 1 or len(_RUNS & {*table.names}) > _OF_RUNS
    if asked or (ids and not totals and not groups and not settings):
        return
    single = len(set(heads)) == len(heads)
    by_row = bool(head and numbers and single) and all(map(is_measure, heads))
    grouped = all(set(words_of(name)) <= terms.GROUPS for name in rest) and (rest or single)
    if by_row or totals or settings or (scored and ((head and grouped) or counts or parts)):
        what = first_names(heads if by_row else totals or scored, quoted=True)
        fault = f"means over all questions ({what}), and no scores of single ones"
        remedy = "give a row for each question: a mean does not say how much of it is chance"
        if single_ones:
            remedy = (
                f"write the numbers in '{single_ones[0]}' as a table: a row for each question, a column for each system"
            )
        raise table.fault(fault, f"{remedy}; if its rows are questions: --columns question=COLUMN")


def _are_numbered(cells: Sequence[Any]) -> bool:
    """Whether cells are names with a number in each, as ids of questions are."""
    return all(re.search(r"\d", str(cell)) for cell in cells)


def are_worded(cells: Sequence[Any]) -> bool:
    """Whether cells are texts of some words."""
    return sum(len(str(cell).split()) for cell in cells) >= TEXT_WORDS * len(cells)


_PREFERS: Final = frozenset("winner preference preferred prefers".split())
#: Two answers, both, and neither.
_SIDES: Final = 4
_EVEN: Final = frozenset("tie tied draw both neither equal same none".split())


def check_preferences(table: GoldenRows, chosen: Mapping[str, tuple[str, ...]]) -> None:
    """Refuses a column that says which of two answers is the better one."""
    taken = {name for names in chosen.values() for name in names}
    for name in (one for one in table.names if one not in taken and not {"score", "retrieved"} & set(chosen)):
        said = sorted({str(cell).strip() for cell in table.filled(name)})
        values = set(map(str.casefold, said))
        few = 1 < len(values) <= min(_SIDES, len(table.rows) / 2) and not is_numeric(table, name)
        if few and (says(name, _PREFERS) or {"a", "b"} < values <= {"a", "b", *_EVEN}):
            fault = f"'{name}' holds preferences between answers ({first_names(said)}), which are not read"
            remedy = "write a column for each system: 1 where it is preferred, 0 where the other one is, 0.5 for a tie"
            raise table.fault(fault, remedy)


def check_rows(
    table: GoldenRows, found: GoldenRoles, others: Sequence[str], chosen: Mapping[str, tuple[str, ...]]
) -> None:
    """Asks about several rows of a question, and of a system where one is named, that differ in something else.

    Their mean would be that of several systems, measures or results.
    """
    keys = [name for name in (found.question or found.identifier, found.system, found.repeat) if name is not None]
    rows = [tuple(str(row.get(name)) for name in keys) for row in table.rows]
    if len(set(rows)) == len(rows) or keys[:1] != [found.question or found.identifier]:
        return
    choices: dict[str, list[str]] = {}
    alike = list[str]()
    named = "score" in chosen and chosen["score"] != chosen.get("measure")
    for name in others:
        groups: dict[tuple[str, ...], set[str]] = {}
        for row, cell in zip(rows, table.cells(name), strict=True):
            groups.setdefault(row, set()).add(str(cell))
        # Names of systems, measures and repetitions are the same for all questions.
        names = len(set().union(*groups.values())) <= MOST_SYSTEMS
        settings = names and len(set(map(frozenset, groups.values()))) == 1
        plain = found.system and is_numeric(table, name) and not (settings or set(words_of(name)) <= terms.GROUPS)
        if name in keys or max(map(len, groups.values())) == 1 or plain:
            continue
        if settings:
            alike.append(name)
        if _names_measures(table, name):
            choices[name] = ["measure"]
        elif says(name, terms.CUTOFFS) and names:
            choices[name] = ["repeat"] if "measure" in chosen else ["measure", "repeat"]
        elif found.repeat is None and found.system is None and names:
            # Of a system most questions have several.
            several = 2 * sum(len(own) > 1 for own in groups.values()) > len(groups)
            choices[name] = ["system", "repeat"] if several else ["repeat"]
        elif found.repeat is None and found.system is not None and (settings or not named):
            same = len(set(map(frozenset, groups.values()))) <= len({row[1] for row in rows})
            other = "measure" if same else "document"
            plain = is_numeric(table, name) or "measure" in chosen
            choices[name] = [*([] if plain else [other]), *(["system"] if settings else []), "repeat"]
    # Names of settings are the same for all questions; others differ by accident.
    choices = {name: own for name, own in choices.items() if name in alike} or choices
    apart = [name for name in choices if len({*zip(rows, map(str, table.cells(name)), strict=True)}) == len(rows)]
    if choices:
        choices = {name: choices[name] for name in apart or choices}
        what = "a question and a system" if found.system else "a question"
        fault = f"several rows of {what}, with {first_names(choices, quoted=True)}"
        beside = {"system": f"{found.system}+"} if found.system else {}
        pairs = ((role, name) for name, own in choices.items() for role in own)
        options = [f"{role}={beside.get(role, '')}{name}" for role, name in pairs]
        options += [f"id={keys[0]}+{name}" for name in choices if name in apart and set(words_of(name)) <= terms.PARTS]
        raise table.two_readings(fault, tuple(options))


def _check_scores(table: GoldenRows, numbers: Sequence[str]) -> None:
    """Asks where numbers may be places, times or counts, and nothing calls them scores."""
    where = table.where.stem if isinstance(table.where, Path) else ""
    words = {word for name in (*numbers, where) for word in words_of(name)}
    plain = any(says(name, terms.SCORE | terms.SCORES | _CALLED) or measure_in(name) for name in numbers)
    if all(map(lower_is_better, numbers)):
        return
    doubtful = [where, *filter(terms.SECONDS.search, numbers)]
    named = words & (terms.SCORE | terms.SCORES | _CALLED) or any(measure_in(name) for name in (*numbers, where))
    cells = [cell for name in numbers for cell in table.filled(name) if not is_missing(cell)]
    values = [abs(number_of(cell) or 0.0) for cell in cells]
    largest, fault = max(values, default=0.0), ""
    if not plain and (len(doubtful) > 1 or lower_is_better(where)):
        fault = f"'{doubtful[-1]}' is not called like a score: lower may be better"
    elif not named and (largest > _HIGHEST_SCORE or (largest > 1 and all(value.is_integer() for value in values))):
        what = "scores, or places, times or counts, of which the lower is better"
        fault = f"{first_names(numbers, quoted=True)} with values up to {largest:g}: {what}"
    if fault:
        choices = tuple(f"{role}={'+'.join(numbers)}" for role in ("score", "rank"))
        raise NumbersError(f"two readings: {fault}", choices, table.where)


def check_places(table: GoldenRows, found: GoldenRoles) -> None:
    """Asks where the numbers of each list of results count up, and nothing calls them scores."""
    name = found.score or ""
    if says(name, terms.SCORES | {"score"}):
        return
    lists: dict[tuple[str, ...], list[float]] = {}
    keys = [one for one in (found.identifier, found.question, found.system) if one is not None]
    for row in table.rows:
        lists.setdefault(tuple(str(row.get(key)) for key in keys), []).append(number_of(row.get(name)) or 0.0)
    if all(sorted(own) in ([*range(len(own))], [*range(1, len(own) + 1)]) for own in lists.values()):
        fault = f"'{name}' counts the results of each question: places, or scores"
        raise table.two_readings(fault, (f"rank={name}", f"score={name}"))


def _names_measures(table: GoldenRows, name: str) -> bool:
    """Whether the few values of a column name measures."""
    values = set(map(str, table.filled(name)))
    return 1 < len(values) <= MOST_SYSTEMS and any(map(is_measure, values))


def _check_numbers(table: GoldenRows, numbers: Sequence[str], *, asked: bool) -> None:
    """Refuses columns that cannot be scores of one measure by several systems."""
    groups: dict[str, list[str]] = {}
    for name in numbers:
        groups.setdefault(measured(name), []).append(name)
    alone = any(map(is_measure, numbers))
    if asked and _is_one_system(table, numbers):
        groups, alone = {name: [name] for name in numbers}, False
    if len(groups) > 1 and (asked or alone):
        # Columns that are called after nothing but measures are those of one system.
        parts = [[name] for name in sorted(numbers, key=lambda name: not measured(name))] if alone else groups.values()
        fault = f"columns of several measures ({first_names(numbers, quoted=True)})"
        raise table.two_readings(fault, tuple(f"score={'+'.join(part)}" for part in parts))
    full = [name for name in numbers if len(table.filled(name)) * 2 >= len(table.rows)]
    for name in numbers:
        if name not in full:
            remedy = f"choose others: --columns score={'+'.join(full) or 'COLUMN'}"
            raise table.fault(f"'{name}' has numbers in fewer than half of the rows: it is not a system", remedy)
    _check_together(table, numbers, asked=asked)


def _check_together(table: GoldenRows, numbers: Sequence[str], *, asked: bool) -> None:
    """Refuses columns of different scales, and asks about columns that are sorted, each by itself."""
    values = {name: [number_of(cell) or 0.0 for cell in table.filled(name)] for name in numbers}
    if fault := scale_fault(values, lower=all(map(lower_is_better, numbers))):
        parts = factors(numbers) if asked else None
        if parts is None:
            raise table.fault(fault, "write all values on one scale")
        raise table.two_readings(fault, tuple(f"score={'+'.join(a + b for b in parts[1])}" for a in parts[0]))
    many = all(len(set(own)) > MOST_SYSTEMS for own in values.values())
    orders = {(own == sorted(own), own == sorted(own, reverse=True)) for own in values.values()}
    if asked and many and len(numbers) > 1 and orders in ({(True, False)}, {(False, True)}):
        fault = f"{first_names(numbers, quoted=True)}, each in order from the first row to the last: sorted by itself"
        raise table.two_readings(f"{fault} (then a row is no question), or not", (f"score={'+'.join(numbers)}",))


def _is_one_system(table: GoldenRows, numbers: Sequence[str]) -> bool:
    """Whether names of columns differ only in a cut-off, or in what was found, if all is 0 or 1: top1_doc, top1_url."""
    flags = all(number_of(cell) in (0, 1) for name in numbers for cell in table.filled(name) if not is_missing(cell))
    things = terms.THING | terms.DOCUMENT | terms.ANSWER | {"citation"} if flags else frozenset[str]()
    stems = [_CUT_OFF.sub(" ", name) for name in numbers]
    said = [frozenset(words_of(stem)) - things for stem in stems if flags or stem.strip("_- ")]
    return len(set(said)) < len(said)


def scale_fault(values: Mapping[str, Sequence[float]], *, lower: bool) -> str:
    """What shows that systems have scores of different scales; times and ranks (`lower`) have no upper end."""
    largest = {name: max(map(abs, own), default=0.0) for name, own in values.items()}
    first, last = min(largest, key=largest.__getitem__), max(largest, key=largest.__getitem__)
    # Who never scores has no scale.
    if not largest[first] or largest[last] <= (SCALE**2 if lower else SCALE) * largest[first]:
        return ""
    above = sum(abs(value) > largest[first] for value in values[last])
    return (
        f"values of different scales: '{first}' has values up to {largest[first]:g}, '{last}' up to {largest[last]:g} "
        f"({above:,d} of {len(values[last]):,d} are above {largest[first]:g})"
    )


def factors(numbers: Sequence[str]) -> tuple[list[str], list[str]] | None:
    """The first and the last parts of columns' names, if they have two in every combination."""
    for part in re.finditer(r"[\s_\-./:]+", numbers[0]):
        head, tail = numbers[0][: part.start()], numbers[0][part.start() :]
        tails = [name.removeprefix(head) for name in numbers if name.startswith(head + part[0])]
        heads = [name.removesuffix(tail) for name in numbers if name.endswith(tail)]
        if min(len(heads), len(tails)) > 1 and sorted(a + b for a in heads for b in tails) == sorted(numbers):
            return heads, tails
    return None


def _check_factors(table: GoldenRows, numbers: Sequence[str]) -> None:
    """Asks where names of columns have two parts in every combination: systems, and judges, measures or settings."""
    if parts := factors(numbers):
        heads, tails = parts
        first, second = (first_names([one.strip("_-./: ") for one in own], quoted=True) for own in parts)
        fault = f"columns are each of {first} with each of {second}: which of them are systems, scored alike"
        by_tail, by_head = ([a + b for a in heads] for b in tails), ([a + b for b in tails] for a in heads)
        raise table.two_readings(fault, tuple(f"score={'+'.join(own)}" for own in (*by_tail, *by_head, numbers)))


#: Columns that say who labelled, what parts of a data set are called, and what programs write that got no answer.
_LABELLED: Final = frozenset("annotator labeler labeller labeled rater assessor judge reviewer grader by".split())
_PEOPLE: Final = frozenset("human humans people person manual expert experts".split())
_SETS: Final = frozenset("train training test testing dev val valid validation eval holdout heldout".split())
_FAILURES: Final = frozenset(
    "timeout timed error errors failed failure exception crashed aborted skipped limited unavailable".split()
)
#: The most values of a column that says what kind of row it is, and words of a failure.
_FEW: Final = 6


def unlike_rows(table: GoldenRows, taken: Collection[str], scores: Collection[str] = ()) -> tuple[str, ...]:
    """What columns of few values, that are not taken for anything, say of rows: sets, failures, labels of a model."""
    found = []
    for name in (name for name in table.names if name not in taken):
        cells = ["" if is_missing(cell) else str(cell).strip() for cell in table.cells(name)]
        counts, called = Counter(filter(None, cells)), set(words_of(name))
        words = {value: set(words_of(value)) for value in counts} if len(counts) <= _FEW else {}
        every = set[str]().union(*words.values())
        labelled = every & terms.MODELS and (called & _LABELLED or every & _PEOPLE)
        if len(words) > 1 and (labelled or all(own & _SETS for own in words.values())):
            shown = " and ".join(f"{value} ({count})" for value, count in counts.most_common())
            found.append(f"'{name}' has {shown}: all rows count alike; to keep one, give its rows alone")
        failed = [value for value, own in words.items() if own & _FAILURES and len(value.split()) <= _FEW]
        failed += [value for value in words if called & _FAILURES and value.lower() in ("true", "yes")]
        rows = [row for row, cell in zip(table.rows, cells, strict=True) if cell in failed]
        if 0 < len(rows) < len(table.rows) and (
            called & _FAILURES or not {*words_of(name)[-1:]} & (terms.NOTES | terms.GROUPS)
        ):
            zeros = [one for one in scores if all(number_of(row.get(one)) == 0 for row in rows)]
            tail = f", whose {first_names(zeros, quoted=True)} is 0: these count as all others" if zeros else ""
            found.append(f"'{name}' says {' and '.join(failed)} in {counted(len(rows), 'row')}{tail}")
    return tuple(found)


def measured(name: str) -> str:
    """The measure that a column is called after; empty for none."""
    lower = sorted(set(words_of(name)) & terms.LOWER) if lower_is_better(name) else []
    return measure_in(name) or next(iter(lower), "")


def _labels(names: Sequence[str]) -> dict[str, str]:
    """What systems are called: their columns without the measure that all have, and what else they have with it."""
    measures = {measured(name) for name in names}
    parts = {name: terms.parts_of(name) for name in names}
    shared = set.intersection(*map(set, parts.values())) if any(map(lower_is_better, names)) and len(names) > 1 else ()
    left = {
        name: "_".join(part for part in own if part.lower() not in measures and part not in shared)
        for name, own in parts.items()
    }
    labels = {left[name]: name for name in names}
    plain = len(measures) > 1 or "" in measures or "" in labels or len(labels) < len(names)
    return dict(zip(names, names, strict=True)) if plain else labels


def direction(table: GoldenRows, found: GoldenRoles) -> str:
    """Which scores are better, where their names do not say that the higher are."""
    columns = [found.score] if found.score is not None else list(found.retrieved.values())
    measure = [str(table.cells(found.measure)[0])] if found.measure is not None else []
    names = [*columns, *measure]
    if found.rank or all(map(lower_is_better, columns)) or any(map(lower_is_better, measure)):
        return "lower is better, so each value counts with a minus"
    known = any(measured(name) or says(name, _CALLED | {"score", "scores"}) for name in names)
    return "" if known else _HIGHER


def named_measure(table: GoldenRows, found: GoldenRoles) -> str:
    """The one measure that all scores are called after; empty for none."""
    names = [found.score] if found.score is not None else list(found.retrieved.values())
    own = {measured(name) for name in names}
    if found.measure in names:
        return found.measure
    said = "" if found.measure is None else str(table.cells(found.measure)[0]).strip()
    return said if said and number_of(said) is None else own.pop() if len(own) == 1 else ""


_HIGHER: Final = "higher counts as better"
DATE: Final = re.compile(r"(\d{4}-\d\d(-\d\d)?|\d{1,2}[./]\d{1,2}[./]\d{2,4})(\b|T).*")
#: A cut-off within the name of a column.
_CUT_OFF: Final = re.compile(r"(?<![^\W_])(top|at|k|first)[ _=@-]?\d+|@\d+", re.IGNORECASE)
_CUT: Final = re.compile(r"(top|k|at|depth|.*@)[ _=@-]?\d+", re.IGNORECASE)
#: Ids of rows and of tasks, which may name anything.
_ANY: Final = frozenset("index idx unnamed_0 task key".split())
_LANGUAGES: Final = frozenset("ar cs da de el en es fa fi fr he hi hu it ja ko nl pl pt ro ru sv tr uk vi zh".split())
_DATA_SETS: Final = frozenset(
    "nq fiqa scifact hotpotqa quora msmarco treccovid nfcorpus arguana touche touche2020 dbpedia fever climatefever "
    "scidocs cqadupstack bioasq squad triviaqa naturalquestions miracl musique popqa eli5 narrativeqa".split()
)


def check_questions(
    table: GoldenRows, found: GoldenRoles, others: Sequence[str], chosen: Mapping[str, tuple[str, ...]]
) -> None:
    """Asks about rows that are no questions: neither their id nor their text says so."""
    key = found.question or found.identifier
    if key is None or {"question", "id"} & set(chosen):
        return
    # Beside numbers of rows, what each row has another one of may be what it is about.
    counted = found.question is None and _is_counted(table, key)
    beside = [name for name in others if set(words_of(name)) <= terms.GROUPS or not is_scored(table, name)]
    for name in (key, *beside) if counted else (key,):
        cells = [str(cell).strip() for cell in table.filled(name)]
        plain = name == key or says(name, terms.GROUPS) or group_of(cells) or joined(key) in _ANY
        if plain and (name == key or len(set(cells)) == len(cells)) and (what := _no_questions(name, cells)):
            kind = "named" if what == "rows" else what
            fault = (
                f"rows are {kind} by '{name}' ({first_names(dict.fromkeys(cells))}): each the mean of many questions "
            )
            fault += "(then give a row for each question), or each one question"
            raise table.two_readings(fault, (f"question={name}",))


def _no_questions(name: str, cells: Sequence[str]) -> str:
    """What rows are, by the name of a column and its cells; empty for questions."""
    count, words = len(cells), set(words_of(name))
    known = bool(called([name], terms.QUESTION | terms.ID)) and joined(name) not in _ANY
    if what := group_of(cells):
        return what
    if not known and words & terms.GROUPS and words_of(name)[-1] not in terms.QUESTION:
        return "groups of questions"
    numbered = words & terms.QUESTION and words & terms.ID
    if known or numbered or "id" in words or not words or list(map(number_of, cells)) == [*range(count)]:
        return ""
    return "" if _are_questions(cells) else "rows"


def group_of(cells: Sequence[str]) -> str:
    """What cells are that name means; empty where they may name questions."""
    kinds: Mapping[str, Callable[[str], Any]] = {
        "dates": DATE.fullmatch,
        "cut-offs": _CUT.fullmatch,
        "measures": is_measure,
        "languages": _LANGUAGES.__contains__,
        "data sets": lambda cell: "".join(words_of(cell)) in _DATA_SETS,
        "groups of questions": lambda cell: (
            words_of(cell)[:1] and words_of(cell)[0] in terms.GROUPS and len(cell.split()) < 3
        ),
    }
    return next((what for what, fits in kinds.items() if 2 * sum(bool(fits(cell)) for cell in cells) > len(cells)), "")


def _are_questions(cells: Sequence[str]) -> bool:
    """Whether most cells are texts, or ids of letters and digits."""
    texts = sum(len(cell.split()) >= TEXT_WORDS or (not cell.isascii() and len(cell) >= _TEXT) for cell in cells)
    ids = sum(re.search(r"\d", cell) is not None and number_of(cell) is None for cell in cells)
    return 2 * max(texts, ids) > len(cells)


#: Letters of a text in a script without blanks.
_TEXT: Final = 8
