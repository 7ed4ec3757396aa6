"""Which column of a table of questions is what: told from its name and its cells, or refused where two readings fit."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from truerank.errors import TwoReadingsError
from truerank.sources import golden_words as terms
from truerank.sources.golden_cells import (
    DIGITS,
    ID_FORMS,
    MOST,
    SEPARATORS,
    TEXT_WORDS,
    is_lists,
    is_numeric,
    is_other_words,
    is_prose,
    is_scored,
    is_whole,
    lists_of,
    mean,
    refuse_flags,
    rising,
    separator,
    shared_separator,
    vocabulary,
    with_grades,
)
from truerank.sources.golden_roles import MOST_SYSTEMS, GoldenRoles, NumbersError, no_expected, only_one
from truerank.sources.golden_rows import GoldenRows, first_names, json_cell
from truerank.sources.golden_scores import (
    DATE,
    check_flags,
    check_judged_answers,
    check_places,
    check_rows,
    factors,
    score_roles,
    unexpected,
)
from truerank.sources.golden_shapes import is_share, with_lists
from truerank.sources.golden_words import called, is_count, joined, measure_in, says, words_of

#: For columns that are recognised by what they hold: the share of rows in which results have an expected answer, how
#: many times longer their lists are, and the most systems.
_OVERLAP: Final = 0.1
_JUDGED: Final = frozenset("judgments judgements relevance".split())
_TEXTS: Final = frozenset("text texts content contents title titles score scores".split())
_LONGER: Final = 1.5
#: The least share of questions that each system has answered, where nothing but that tells which column names systems.
_CROSSED: Final = 0.8
#: So few rows may be those of so many systems.
_FEWEST_ROWS: Final = 3


def _groups(table: GoldenRows, name: str) -> bool:
    """Whether a column may name systems: an id of which each row has its own names rows."""
    values = [str(cell) for cell in table.filled(name)]
    return len(values) < _FEWEST_ROWS or len(set(values)) < len(values)


def _is_question(table: GoldenRows, name: str) -> bool:
    """Whether a column holds texts, or numbers of questions."""
    return not is_numeric(table, name) or all(str(cell).strip().isdecimal() for cell in table.filled(name))


#: What columns of each role are called, and what they hold; expected and retrieved ones are told beside each other.
_ROLES: Final[Mapping[str, tuple[frozenset[str], Callable[[GoldenRows, str], bool]]]] = {
    "system": (terms.SYSTEM, _groups),
    "repeat": (terms.REPEAT, lambda table, name: True),
    "measure": (terms.NAMED_MEASURE, lambda table, name: not is_numeric(table, name)),
    "rank": (terms.RANK, is_numeric),
    "document": (terms.DOCUMENT, lambda table, name: not is_lists(table, name)),
    "grade": (terms.GRADE | terms.LABEL, is_numeric),
    "question": (terms.QUESTION, _is_question),
    "id": (terms.ID, lambda table, name: len(table.rows) < _FEWEST_ROWS or len(set(map(str, table.cells(name)))) > 1),
    "score": (terms.SCORE | terms.SCORES, lambda table, name: is_scored(table, name) and not is_lists(table, name)),
}


def _ruled_out(chosen: Mapping[str, tuple[str, ...]]) -> frozenset[str]:
    """The roles for which named columns leave no room."""
    several = max(len(chosen.get(role, ())) for role in ("retrieved", "score", "rank")) > 1
    lists = {"document", "grade"} if "retrieved" in chosen and "document" not in chosen else set[str]()
    scored = {"score", "rank"} & set(chosen) and not {"retrieved", "document"} & set(chosen)
    scores = {"expected"} if scored else set[str]()
    return frozenset((lists | scores | ({"system"} if several else set())) - set(chosen))


def _by_result(
    table: GoldenRows, names: Sequence[str], chosen: Mapping[str, tuple[str, ...]]
) -> Mapping[str, tuple[str, ...]]:
    """The named columns, where one of results has one id in each of several rows of a question: documents."""
    lists = chosen.get("retrieved", ())
    if len(lists) != 1 or not _repeats(table, names, {*lists}) or not _are_single(table, lists):
        return chosen
    return {**chosen, "document": lists}


def roles_of(table: GoldenRows, chosen: Mapping[str, tuple[str, ...]]) -> GoldenRoles:
    # A frame that was saved with its index more than once has several such columns.
    spare = [name for name in table.names if words_of(name)[:1] == ("unnamed",) and joined(name) != "unnamed_0"]
    names, taken = [name for name in table.names if table.filled(name) and name not in spare], set[str]()
    chosen = _by_result(table, names, chosen)
    shut = _ruled_out(chosen)

    def pick(role: str) -> str | None:
        known, fits = _ROLES[role]
        if role in chosen or role in shut:
            name: str | None = chosen.get(role, (None,))[0]
        else:
            free = [one for one in names if one not in taken and fits(table, one)]
            free = called(free, known) if role == "question" else [one for one in free if joined(one) in known]
            if role == "id" and system is not None:
                # Beside systems, an id of which each row has its own names what one of them did.
                free = [one for one in free if _groups(table, one)] or free
            name = only_one(table, free, role) if role != "id" or len(free) < 2 else min(free, key=_id_order)
        taken.update(() if name is None else (name,))
        return name

    for several in chosen.values():
        taken.update(several)
    if not {"score", "rank"} & set(chosen):
        refuse_flags(table, [name for name in names if not measure_in(name)])
    system, repeat, measure, rank, document = map(pick, ("system", "repeat", "measure", "rank", "document"))
    if document is not None and "document" not in chosen and not _repeats(table, names, taken):
        taken.discard(document)
        document = None
    grade = _in_numbers(table, pick("grade")) if document is not None or "grade" in chosen else None
    expected = chosen.get("expected", (None,))[0]
    if expected is None and ("expected" not in shut or document is not None):
        expected = _expected(table, names, taken)
    taken.update(() if expected is None else (expected,))
    question, identifier = _one_name(table, pick("question"), pick("id"), chosen)
    free = [name for name in names if name not in taken]
    said = system or ("" if "system" in shut else None)
    seen = _by_content(table, free, (question or identifier, repeat), expected, said)
    question, expected, system = seen.question or question, seen.expected or expected, seen.system or system
    taken.update(name for name in seen if name is not None)
    score = pick("score") if document is not None or system is not None or "score" in chosen else None
    found = GoldenRoles(identifier, question, expected, grade, system, document, rank, score, repeat, measure)
    if document is not None:
        return _of_documents(table, [name for name in names if name not in taken], chosen, found)
    if {"score", "rank"} & set(chosen) and not {"retrieved", "expected"} & set(chosen):
        return score_roles(table, [name for name in names if name not in taken], chosen, replace(found, expected=None))
    check_flags(table, [name for name in names if name not in taken], expected, chosen)
    retrieved, scores = _systems(table, names, taken, chosen, expected)
    if retrieved and expected is None:
        return _score_beside(table, names, taken, chosen, found)
    if not retrieved:
        return score_roles(table, [name for name in names if name not in taken], chosen, found)
    if system is not None and len(retrieved) > 1:
        both = first_names(retrieved.values(), quoted=True)
        raise table.fault(f"a column '{system}' and several columns of results ({both})", "drop one of them")
    if not {"retrieved", "expected"} & set(chosen):
        free = [name for name in names if name not in taken]
        check_judged_answers(table, free, expected, next(iter(retrieved.values())))
    return replace(found, rank=None, score=None, retrieved=retrieved, scores=scores)


def _in_numbers(table: GoldenRows, grade: str | None) -> str | None:
    """The column of grades, if there is one; words are refused."""
    if grade is not None and not is_numeric(table, grade):
        fault = f"'{grade}' has words for grades ({first_names(dict.fromkeys(map(str, table.filled(grade))))})"
        raise table.fault(fault, "write numbers: 0 for what is not relevant, 1 and more for what is")
    return grade


def _of_documents(
    table: GoldenRows, free: Sequence[str], chosen: Mapping[str, tuple[str, ...]], found: GoldenRoles
) -> GoldenRoles:
    """The roles of a row for each document."""
    if found.expected is None and found.grade is None:
        if found.score and not says(found.score, terms.SCORES - {"score"}) and is_whole(table, found.score):
            fault = f"'{found.score}' has the grades of '{found.document}', or scores of results without judgments"
            raise NumbersError(
                f"two readings: {fault}", (f"expected={found.document},grade={found.score}",), table.where
            )
        raise no_expected(table)
    if found.score is None and found.rank is None:
        distances = [name for name in free if rising(name) and is_numeric(table, name)]
        found = replace(found, score=only_one(table, distances, "score"))
    listed = "retrieved" in chosen or says(found.document or "", terms.RETRIEVED)
    if not (listed or found.score or found.rank or found.expected or found.system):
        fault = f"'{found.document}' with '{found.grade}', and no rank or score: judgments, or results in order"
        raise NumbersError(f"two readings: {fault}", (f"retrieved={found.document}",), table.where)
    if "score" not in chosen and found.rank is None and found.score is not None:
        check_places(table, found)
    return found


def _score_beside(
    table: GoldenRows, names: Sequence[str], taken: set[str], chosen: Mapping[str, tuple[str, ...]], found: GoldenRoles
) -> GoldenRoles:
    """The roles where nothing is expected, and one column of scores is beside the lists."""
    own = list(chosen.get("score", ())) or [
        name for name in names if joined(name) in terms.SCORE and is_numeric(table, name)
    ]
    if len(own) != 1 or ("retrieved" in chosen and "score" not in chosen):
        raise no_expected(table) if own or "retrieved" in chosen else unexpected(table, names)
    others = [name for name in names if name not in taken and name not in own]
    check_rows(table, found, others, chosen)
    return score_roles(table, own, chosen, found)


class _Seen(NamedTuple):
    """Columns whose names say nothing, by what they hold."""

    question: str | None = None
    expected: str | None = None
    system: str | None = None


def _by_content(
    table: GoldenRows,
    free: Sequence[str],
    keys: tuple[str | None, str | None],
    expected: str | None,
    system: str | None,
) -> _Seen:
    """What columns are whose names say nothing.

    Expected answers are the only column whose ids are among the results of all others, with shorter lists. A system is
    the only column of few values of which each question, and repetition of it, has every one once. A question is the
    only text. `keys` are the columns of questions and of repetitions.
    """
    key, repeat = keys
    lists = {name: own for name in free if (own := lists_of(table, name)) is not None}
    length = {name: mean(map(len, own)) for name, own in lists.items()}
    results = [name for name in lists if length[name] > 1 and not is_numeric(table, name)]
    wanted = None
    if expected is None:
        met = {
            name: [one for one in results if one != name and _overlap(lists[name], lists[one]) >= _OVERLAP]
            for name in lists
            if not says(name, terms.GENERATED)
        }
        fitting = [
            name for name, own in met.items() if own and all(length[one] >= _LONGER * length[name] for one in own)
        ]
        wanted = fitting[0] if len(fitting) == 1 else None
    said = terms.RETRIEVED | terms.THING | terms.SCORES | terms.WANTED | terms.REFERENCE
    rest = [name for name in free if name != wanted and not says(name, said)]
    rest = [name for name in rest if not is_lists(table, name) and not is_numeric(table, name)]
    text = None
    if key is None:
        known = frozenset(doc for own in lists.get(wanted or "", ()) for doc in own)
        texts = [name for name in rest if not (known and vocabulary(table, name) & known)]
        texts = [name for name in texts if not says(name, terms.NOTES)] or texts
        texts = [name for name in texts if not all(DATE.fullmatch(str(cell)) for cell in table.filled(name))]
        texts = [name for name in texts if len(set(map(str, table.cells(name)))) > MOST_SYSTEMS] or texts
        long = [name for name in texts if mean(len(str(cell).split()) for cell in table.filled(name)) >= TEXT_WORDS]
        # A short one beside numbers alone may also name systems.
        text = key = long[0] if len(long) == 1 else texts[0] if len(texts) == 1 and results else None
    which = None
    if system is None and key is not None:
        pairs = [f"{row.get(key)} {row.get(repeat or '')}" for row in table.rows]
        for name in (one for one in rest if one != key and not set(words_of(one)) <= terms.PARTS):
            values = [str(cell) for cell in table.cells(name)]
            count, once = len(set(values)), len(set(zip(pairs, values, strict=True))) == len(values)
            if 1 < count <= MOST_SYSTEMS and once and len(values) > _CROSSED * len(set(pairs)) * count:
                which = name if which is None else ""
    return _Seen(text, wanted, which or None)


def _overlap(first: Sequence[frozenset[str]], other: Sequence[frozenset[str]]) -> float:
    """The share of rows in which two columns have an id in common."""
    return mean(bool(own & found) for own, found in zip(first, other, strict=True))


def divided(table: GoldenRows, chosen: Mapping[str, tuple[str, ...]]) -> GoldenRows:
    """The table with lists where ids of expected and retrieved cells meet only by one sign between them."""
    try:
        expected = chosen["expected"][0] if "expected" in chosen else _expected(table, table.names, set())
    except TwoReadingsError:
        return table  # it is asked about where roles are chosen
    if expected is None:
        return table
    results = result_columns(table, expected)
    table = with_grades(table, expected, known_ids(table, results))
    sign, columns = shared_separator((table, expected), (table, results))
    return with_lists(table, [expected, *columns], sign) if sign else table


def result_columns(table: GoldenRows, expected: str = "") -> list[str]:
    """The columns that may hold results, whatever they are called."""
    names = [name for name in table.names if name != expected and joined(name) not in terms.QUESTION | terms.ID]
    return [name for name in names if table.filled(name) and not is_numeric(table, name)]


def known_ids(table: GoldenRows, names: Iterable[str]) -> frozenset[str]:
    """The ids in some columns, as far as they can be read."""
    return frozenset[str]().union(*(ids for name in names for ids in lists_of(table, name) or ()))


def is_named_expected(name: str) -> bool:
    """Whether a file is called after what was expected: golden.jsonl, judgements.json, solutions.csv."""
    known = terms.WANTED | terms.REFERENCE | terms.GRADE | {"qrel", "label", "solution", "answer", "testset"}
    return any(word.removesuffix("s") in known for word in words_of(name))


def half_roles(table: GoldenRows, chosen: Mapping[str, tuple[str, ...]]) -> tuple[GoldenRoles, str]:
    """The roles of a table that lacks what was expected or what was retrieved, and its column of documents or texts."""
    names = [name for name in table.names if table.filled(name)]

    def named(role: str, *more: str) -> str | None:
        words = _ROLES[role][0].union(more)
        fitting = called(names, words) if role == "question" else [name for name in names if joined(name) in words]
        # What all rows share names no question.
        told = [name for name in fitting if role not in ("id", "question") or _ROLES["id"][1](table, name)]
        return chosen.get(role, (None,))[0] or min(told, key=_id_order, default=None)

    system, question, identifier, rank, score, document = map(
        named, ("system", "question", "id", "rank", "score", "document")
    )
    score = score or next((name for name in names if rising(name) and name != rank), None)
    grade = named("grade", "rating") if document is not None or "grade" in chosen else None
    taken = {system, question, identifier, rank, score, grade}
    free = [name for name in names if name not in taken and words_of(name)[:1] != ("unnamed",)]
    expected = chosen["expected"][0] if "expected" in chosen else _expected(table, free, set())
    if question is None and identifier is None:
        texts = [name for name in free if name not in (document, expected) and not is_lists(table, name)]
        question = texts[0] if texts else None
        free = [name for name in free if name != question]
    lists = [name for name in free if is_lists(table, name)]
    alone = [name for name in free if not is_numeric(table, name)]
    single = next((own[0] for own in (lists, alone, free) if len(own) == 1), "")
    content = expected or document or chosen.get("retrieved", (single,))[0]
    return GoldenRoles(identifier, question, expected, grade, system, document, rank, score), content


def _one_name(
    table: GoldenRows, question: str | None, identifier: str | None, chosen: Mapping[str, tuple[str, ...]]
) -> tuple[str | None, str | None]:
    """A question and its id; where one is named and the other, which is not, says otherwise, the named one alone."""
    named = {"question", "id"} & set(chosen)
    if question is None or identifier is None or len(named) != 1:
        return question, identifier
    pairs = {(str(row.get(question)), str(row.get(identifier))) for row in table.rows}
    if len(pairs) == len({text for text, _ in pairs}) == len({own for _, own in pairs}):
        return question, identifier
    return (question, None) if "question" in named else (None, identifier)


def _id_order(name: str) -> tuple[bool, int]:
    """Of two columns of ids that which names a question."""
    return not says(name, ("qid", "query", "question", "topic", "item", "example")), len(name)


def _repeats(table: GoldenRows, names: Sequence[str], taken: set[str]) -> bool:
    """Whether questions stand in several rows: a row for each result."""
    keys = [name for name in names if name not in taken and joined(name) in terms.QUESTION | terms.ID]
    if not keys:
        return False
    counts = Counter(str(cell) for cell in table.cells(keys[0]))
    return len(counts) < len(table.rows)


def _expected(table: GoldenRows, names: Sequence[str], taken: set[str]) -> str | None:
    """The column of expected answers: one that names documents before one that does not, and answers last."""
    tiers: list[list[str]] = [[], [], [], [], []]
    # Beside fractions, a number of references is none of them.
    shares = any(is_share(table, name) and not is_whole(table, name) for name in names)
    numbers = [name for name in names if name not in taken and is_numeric(table, name) and joined(name) not in terms.ID]
    crossed = numbers if len(numbers) > 1 and factors(numbers) else []
    right = [name for name in names if says(name, ("correct",)) and is_scored(table, name)]
    crossed = [*crossed, *right] if len(right) > 1 else crossed
    for name in names:
        words = set(words_of(name))
        if name in taken or name in crossed or words & terms.RETRIEVED or words & terms.SCORES:
            continue
        if words & {"grade", "grades"} or joined(name) in terms.QUESTION or is_share(table, name):
            continue
        if (is_count(name) or words & terms.RANK) and is_numeric(table, name):
            continue
        wanted, reference = words & terms.WANTED, words & terms.REFERENCE
        if (wanted or reference) and words & terms.ANSWER:
            tiers[3].append(name)
        elif (wanted or reference) and words & terms.THING:
            tiers[0].append(name)
        elif wanted or "truth" in words or words == {"qrels"} or (words & _JUDGED and is_lists(table, name)):
            tiers[1].append(name)
        elif shares and is_whole(table, name):
            continue
        elif reference or (words & terms.ANSWER and words & terms.THING):
            tiers[2].append(name)
        elif words & terms.ANSWER and not words & (terms.GENERATED | {"response"}):
            tiers[4].append(name)
    if not any(tiers[:4]) and len(tiers[4]) > 1 and len(numbers) > 1:
        fault = f"{first_names(tiers[4], quoted=True)}: answers of systems, beside their scores, or an expected one"
        raise table.two_readings(fault, (f"score={'+'.join(numbers)}", *(f"expected={name}" for name in tiers[4])))
    return next((only_one(table, tier, "expected") for tier in tiers if tier), None)


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
        free = [name for name in names if name not in taken and not says(name, terms.SCORES)]
        known = vocabulary(table, expected) if expected else frozenset()
        lists = [name for name in free if _is_results(table, name, known)]
        lists = [name for name in lists if not known or not _is_record(table, name) or vocabulary(table, name) & known]
        named = [name for name in lists if says(name, terms.RETRIEVED if known else terms.RETRIEVED - {"top"})]
        several = sum(is_scored(table, name) for name in free) > 1
        if several and not known and not named and not any(is_lists(table, name) for name in lists):
            return {}, {}  # texts beside scores of several systems are no lists
        # With a column that says what it is, one that does not is something else, unless it has expected documents.
        lists = [name for name in lists if name in named or not named or vocabulary(table, name) & known]
        # Of the ids and the texts of one list those count that can be expected.
        lists = [name for name in lists if vocabulary(table, name) & known or not _is_twin(name, lists, table, known)]
        free = [name for name in free if name in lists or not _is_twin(name, lists, table, known)]
        lists += _check_left(table, [name for name in free if name not in lists], lists, known)
        if len(lists) > 1 and all(map(_PLACED.fullmatch, lists)) and _are_single(table, lists):
            many = first_names(lists, quoted=True)
            fault = f"{many} are systems, or the places of one system (then write them as one list)"
            raise table.two_readings(fault, (f"retrieved={'+'.join(lists)}",))
    labels = _labels(lists)
    marked = [name for name in names if says(name, terms.SCORES) and is_lists(table, name)]
    marked = list(chosen.get("scores", marked))
    scores = {}
    for label, name in labels.items():
        stem = set(words_of(name)) - terms.RETRIEVED - terms.THING
        own = [one for one in marked if set(words_of(one)) - terms.SCORES - terms.RETRIEVED == stem]
        if own or (len(labels) == 1 and len(marked) == 1):
            scores[label] = (own or marked)[0]
    return labels, scores


def _is_twin(name: str, lists: Sequence[str], table: GoldenRows, known: frozenset[str]) -> bool:
    """Whether another column of results has the same name but for what is listed, and expected documents."""
    stem = set(words_of(name)) - terms.THING - _TEXTS
    others = (other for other in lists if other != name and set(words_of(other)) - terms.THING - _TEXTS == stem)
    return any(vocabulary(table, other) & known for other in others)


def _is_record(table: GoldenRows, name: str) -> bool:
    """Whether cells are objects of the same keys without digits, as feedback and settings are: no ids."""
    cells = [json_cell(cell) for cell in table.filled(name)]
    same = len(cells) > 1 and all(isinstance(cell, Mapping) and set(cell) == set(cells[0]) for cell in cells)
    return same and not any(
        isinstance(one, Mapping | list) or re.search(r"\d", str(key)) for key, one in cells[0].items()
    )


def _check_left(table: GoldenRows, others: Sequence[str], lists: Sequence[str], known: frozenset[str]) -> list[str]:
    """Asks about lists of ids of which none is expected: a system that never hits would be lost without a word.

    Returns:
        Lists of expected ids in another form, of which more is said where ids are compared.
    """
    found = list[str]()
    if not lists or not known:
        return found
    usual = min((mean(map(len, own)) for name in lists if (own := lists_of(table, name)) is not None), default=0)
    for name in (one for one in others if joined(one) not in terms.ID):
        objects = any(isinstance(json_cell(cell), Mapping) for cell in table.filled(name))
        apart = objects or says(name, terms.QUESTION | terms.NOTES) or is_numeric(table, name) or is_prose(table, name)
        own = None if apart else lists_of(table, name)
        listed = own is not None and (max(map(len, own)) > 1 or says(name, terms.RETRIEVED))
        if own is not None and listed and usual > 1 and mean(map(len, own)) >= usual / 2:
            changes = [change for form, change in ID_FORMS.items() if form != DIGITS]
            shown = frozenset[str]().union(*own)
            if any({change(doc) for doc in shown} & {change(doc) for doc in known} for change in changes):
                found.append(name)
                continue
            fault = f"'{name}' holds lists, but none of the expected ids"
            choices = (f"retrieved={'+'.join([*lists, name])}", f"retrieved={'+'.join(lists)}")
            raise table.two_readings(f"{fault}: a system, or something else", choices)
    return found


#: A part of a column's name, and words that name no system.
_PART: Final = re.compile(r"[^\s_\-./:]+")
_NO_NAME: Final = (terms.RETRIEVED - {"search"}) | terms.THING | {"k", "by", "at"}
_PLACED: Final = re.compile(r"\D*[_ -]?\d+")


def _are_single(table: GoldenRows, names: Iterable[str]) -> bool:
    """Whether each cell of some columns holds one id."""
    return all(len(own) <= 1 for name in names for own in lists_of(table, name, separator(table, name)) or ())


def _labels(names: Sequence[str]) -> dict[str, str]:
    """What the systems are called: what is left of each column's name without words for results at its ends."""
    found: dict[str, str] = {}
    for name in names:
        # A key below another one begins with a letter; what else has a dot is a version.
        last = name.rpartition(".")[2]
        last = last if re.fullmatch(r"[^\W\d]\w*", last) else name
        parts = [part for part in _PART.finditer(last) if not says(part[0], _NO_NAME)]
        label = last[parts[0].start() : parts[-1].end()] if parts else last
        found[label if label not in found else name] = name
    return found


def _is_results(table: GoldenRows, name: str, known: frozenset[str]) -> bool:
    """Whether a column holds lists of results: by its name and its cells."""
    cells = table.filled(name)
    if not cells:
        return False
    if is_lists(table, name):
        return not is_other_words(table, name, known) and not (words_of(name) and {*words_of(name)} <= terms.NOTES)
    if is_prose(table, name) or (not known and {*words_of(name)[-1:]} & terms.NOTES):
        return False
    if not is_numeric(table, name):
        known_so, named = vocabulary(table, name), says(name, terms.RETRIEVED)
        listed = sum(any(sign in str(cell) for sign in (*SEPARATORS, " ")) for cell in cells) >= MOST * len(cells)
        # Two words alone are those of flags.
        if known_so & known or (named and (listed or len(known_so) > 2 - bool(len(cells) < _FEWEST_ROWS))):
            return True
        return listed and len(known_so) > 1 and not known
    number = is_count(name) or (measure_in(name) and not says(name, terms.PLACES))
    return not number and bool(vocabulary(table, name) & known)
