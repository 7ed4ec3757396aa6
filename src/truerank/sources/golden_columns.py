"""Which column of a table of questions is what: told from its name and its cells, or refused where two readings fit.

Files come as CSV with any separator and encoding, JSON, JSONL or Parquet; cells as lists, objects, or texts with signs
between ids.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from truerank.errors import InputError, TwoReadingsError
from truerank.sources.golden_rows import GoldenRows, first_names, is_empty, json_cell, of_rows, words_of

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
    "retrieved_doc_id corpus_id article".split()
)
_RANK: Final = frozenset("rank position place".split())
_GRADE: Final = frozenset("relevance grade rel is_relevant judgment judgement gain".split())
_LABEL: Final = frozenset("relevant label judged".split())
LOWER: Final = frozenset("rank ranks latency cost time seconds ms error errors distance loss tokens price".split())
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
_DATE: Final = re.compile(r"(\d{4}-\d\d-\d\d|\d{1,2}[./]\d{1,2}[./]\d{2,4})(\b|T).*")
_SIZES: Final = frozenset("len length size count chars words".split())
_REPEAT: Final = frozenset(
    "repeat repetition replicate trial seed iteration rep attempt epoch repeat_id trial_id run_index".split()
)
_NAMED_MEASURE: Final = frozenset("measure metric metric_name measure_name".split())
_SCORE: Final = frozenset("score value metric_value result".split())
_WANTED: Final = frozenset("expected gold golden relevant positive positives target targets truth correct".split())
_NOTES: Final = frozenset(
    "tag tags topic topics category categories keyword keywords note notes comment comments".split()
)
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
_FLOAT_ID: Final = re.compile(r"-?\d+\.0")
_NUMBER: Final = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_YES, _NO = "true yes pass passed".split(), "false no fail failed".split()
_ANSWERS: Final = dict.fromkeys(_YES, 1.0) | dict.fromkeys(_NO, 0.0)
_MISSING: Final = re.compile(r"nan|n/?a|null|none|[-–—.]|#[A-Z0-9/]+[!?]?", re.IGNORECASE)
_DECIMAL_COMMA: Final = re.compile(r"[+-]?\d+,\d+")
#: A column whose largest value is so many times that of another one is of another measure.
SCALE: Final = 10
#: Numbers above it, and whole numbers above 1, are asked about where nothing calls them scores.
_HIGHEST_SCORE: Final = 2
#: Columns of places are called so: hit1, rank_2.
_PLACES: Final = frozenset("hit rank place position match".split())
#: For columns that are recognised by what they hold: the share of rows in which results have an expected answer, how
#: many times longer their lists are, and the most systems.
_OVERLAP: Final = 0.1
_LONGER: Final = 1.5
_FEW: Final = 12
#: Shares of cells by which a column is told.
MOST: Final = 0.6
#: Words from which on an expected cell is a text, and letters from which a text within another one is meant.
TEXT_WORDS: Final = 3


class HalfError(InputError):
    """A table that says what was expected, or what was retrieved, and lacks the other half."""


class NumbersError(TwoReadingsError, HalfError):
    """Numbers that may be scores, or places, times, counts or ids."""


class Retrieved(NamedTuple):
    """One result: its id, its score and its text, as far as they are known."""

    doc_id: str
    score: float | None = None
    text: str = ""


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
            if isinstance(value, Mapping) and (asked := [key for key in value if _joined(str(key)) in _QUESTION]):
                # A request, with its text and what else was sent.
                flat |= {str(key): value[key] for key in asked if isinstance(value[key], str) and key not in row}
                continue
            folded = isinstance(value, Mapping) and not any(key in value for key in (*_KEYS, *_INNER))
            if folded and value and all(isinstance(one, list | dict) for one in value.values()):
                flat |= {f"{name}.{key}": one for key, one in value.items()}
            else:
                flat[str(name)] = cell
        rows.append(flat)
    return of_rows(table.name, table.where, rows, table.lines, table.remarks)


def _joined(name: str) -> str:
    return "_".join(words_of(name))


def _one(table: GoldenRows, names: Iterable[str], role: str) -> str | None:
    found = list(names)
    if len(found) > 1:
        both = " or ".join(f"'{name}'" for name in found[:3])
        choices = tuple(f"{role}={name}" for name in found)
        raise table.two_readings(f"{role} in {both}", choices)
    return found[0] if found else None


def _check_means(table: GoldenRows, head: str) -> None:
    """Refuses a table with a row for each system, or measure, of numbers alone, of which each is that of a measure."""
    heads = [str(cell).strip() for cell in table.cells(head)]
    numbers = [name for name in table.names if name != head and _is_numeric(table, name)]
    asked = any(_joined(name) in _QUESTION | _ID for name in table.names)
    if asked or not numbers or len(set(heads)) < len(heads):
        return
    by_row = all(_MEASURE.fullmatch(one) for one in heads)
    if by_row or all(_measure(name) for name in numbers):
        what = first_names(heads if by_row else numbers, quoted=True)
        fault = f"means over all questions ({what}), and no scores of single ones"
        raise table.fault(fault, "give a row for each question: a mean does not say how much of it is chance")


def turned(table: GoldenRows, chosen: Mapping[str, tuple[str, ...]]) -> GoldenRows:
    """A table with a row for each system and a column for each question, turned."""
    measures = [name for name in table.names if _joined(name) in _NAMED_MEASURE]
    heads = chosen.get("system") or tuple(name for name in table.names if _joined(name) in _SYSTEM)
    if not heads and len(measures) == 1:
        _check_means(table, measures[0])
    if len(heads) != 1:
        return table
    _check_means(table, heads[0])
    systems = [str(cell) for cell in table.cells(heads[0])]
    others = [name for name in table.names if name != heads[0]]
    plain = [name for name in others if _joined(name) in _QUESTION | _ID | _SCORE | _DOCUMENT | _RETRIEVED | _GRADE]
    if plain or len(set(systems)) < len(systems) or len(others) <= len(systems):
        return table
    rows = [{"question": name, **dict(zip(systems, table.cells(name), strict=True))} for name in others]
    remark = f"a row for each {heads[0]} and a column for each question; it was turned"
    return of_rows(table.name, table.where, rows, [1] * len(rows), (*table.remarks, remark))


@dataclass(frozen=True)
class GoldenRoles:
    """Which column is what; `retrieved` and `scores` by system, several columns of ranks for one.

    `left` says which columns are taken for nothing, where somebody could take them for a system.
    """

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
    left: tuple[str, ...] = ()

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
    # A frame that was saved with its index more than once has several such columns.
    indices = [name for name in table.names if words_of(name)[:1] == ("unnamed",) and _joined(name) != "unnamed_0"]
    names, taken = [name for name in table.names if table.filled(name) and name not in indices], set[str]()

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
    seen = _by_content(table, [name for name in names if name not in taken], question or identifier, expected, system)
    question, expected, system = seen.question or question, seen.expected or expected, seen.system or system
    taken.update(name for name in seen if name is not None)
    score = None
    if document is not None or system is not None or "score" in chosen:
        score = pick("score", _SCORE | _SCORES, lambda name: _is_numeric(table, name) and not _is_lists(table, name))
    found = GoldenRoles(identifier, question, expected, grade, system, document, rank, score, repeat, measure)
    if document is not None:
        if expected is None and grade is None:
            raise _no_expected(table)
        return found
    if "score" in chosen and not {"retrieved", "expected"} & set(chosen):
        return _of_scores(table, [name for name in names if name not in taken], chosen, replace(found, expected=None))
    retrieved, scores = _systems(table, names, taken, chosen, expected)
    if retrieved and expected is None:
        own = [name for name in names if _joined(name) in _SCORE | {"metric_score"} and _is_numeric(table, name)]
        if len(own) != 1 or "retrieved" in chosen:
            raise _no_expected(table)
        if system is not None:
            _check_results(table, found, [name for name in names if name not in taken and name not in own], chosen)
        return _of_scores(table, own, chosen, found)
    if not retrieved:
        return _of_scores(table, [name for name in names if name not in taken], chosen, found)
    if system is not None and len(retrieved) > 1:
        both = first_names(retrieved.values(), quoted=True)
        raise table.fault(f"a column '{system}' and several columns of results ({both})", "drop one of them")
    return replace(found, rank=None, score=None, retrieved=retrieved, scores=scores)


class _Seen(NamedTuple):
    """Columns whose names say nothing, by what they hold."""

    question: str | None = None
    expected: str | None = None
    system: str | None = None


def _by_content(
    table: GoldenRows, free: Sequence[str], key: str | None, expected: str | None, system: str | None
) -> _Seen:
    """What columns are whose names say nothing.

    Expected answers are the only column whose ids are among the results of all others, with shorter lists. A system is
    the only column of few values of which each question has every one once. A question is the only text.
    """
    lists = {name: own for name in free if (own := _lists_of(table, name)) is not None}
    length = {name: mean(map(len, own)) for name, own in lists.items()}
    results = [name for name in lists if length[name] > 1 and not _is_numeric(table, name)]
    wanted = None
    if expected is None:
        met = {
            name: [one for one in results if one != name and _overlap(lists[name], lists[one]) >= _OVERLAP]
            for name in lists
        }
        fitting = [
            name for name, own in met.items() if own and all(length[one] >= _LONGER * length[name] for one in own)
        ]
        wanted = fitting[0] if len(fitting) == 1 else None
    said = _RETRIEVED | _THING | _SCORES | _WANTED | _REFERENCE
    rest = [name for name in free if name != wanted and not set(words_of(name)) & said]
    rest = [name for name in rest if not _is_lists(table, name) and not _is_numeric(table, name)]
    text = None
    if key is None:
        known = frozenset(doc for own in lists.get(wanted or "", ()) for doc in own)
        texts = [name for name in rest if not (known and _vocabulary(table, name) & known)]
        texts = [name for name in texts if not all(_DATE.fullmatch(str(cell)) for cell in table.filled(name))]
        texts = [name for name in texts if len(set(map(str, table.cells(name)))) > _FEW] or texts
        long = [name for name in texts if mean(len(str(cell).split()) for cell in table.filled(name)) >= TEXT_WORDS]
        # A short one beside numbers alone may also name systems.
        text = key = long[0] if len(long) == 1 else texts[0] if len(texts) == 1 and results else None
    which = None
    if system is None and key is not None:
        pairs = [str(cell) for cell in table.cells(key)]
        for name in (one for one in rest if one != key):
            values = [str(cell) for cell in table.cells(name)]
            count = len(set(values))
            if (
                1 < count <= _FEW
                and len(set(zip(pairs, values, strict=True))) == len(values) == len(set(pairs)) * count
            ):
                which = name if which is None else ""
    return _Seen(text, wanted, which or None)


def mean(values: Iterable[float]) -> float:
    every = list(values)
    return sum(every) / max(1, len(every))


def _lists_of(table: GoldenRows, name: str) -> list[frozenset[str]] | None:
    """The ids of each cell of a column; None where they cannot be read."""
    try:
        sign = separator(table, name)
        return [
            frozenset(one.doc_id for one in items(cell, sign, table, row)) for row, cell in enumerate(table.cells(name))
        ]
    except InputError:
        return None


def _overlap(first: Sequence[frozenset[str]], other: Sequence[frozenset[str]]) -> float:
    """The share of rows in which two columns have an id in common."""
    return mean(bool(own & found) for own, found in zip(first, other, strict=True))


def placed(table: GoldenRows, chosen: Mapping[str, tuple[str, ...]]) -> GoldenRows:
    """Columns for the places of one list, such as hit1 to hit10, become one column of lists."""
    groups: dict[str, list[tuple[int, str]]] = {}
    for name in table.names:
        match = _NUMBERED.fullmatch(name)
        if match and not any(name in names for names in chosen.values()):
            groups.setdefault(match[1], []).append((int(match[2]), name))
    complete = {}
    for stem, places in groups.items():
        numbers = sorted(place for place, _ in places)
        counts = len(numbers) > 2 and numbers == list(range(numbers[0], numbers[0] + len(numbers))) and numbers[0] < 2
        names = [name for _, name in sorted(places)]
        if counts and not any(_is_lists(table, name) or _is_share(table, name) for name in names):
            complete[stem] = names
    # Lists of several systems, such as bm25_1 to bm25_5 and dense_1 to dense_5, have the same places, and no numbers.
    several = [stem for stem, names in complete.items() if stem and not any(_is_numeric(table, name) for name in names)]
    alike = len(several) > 1 and len({len(complete[stem]) for stem in several}) == 1
    merged = {
        stem: names
        for stem, names in complete.items()
        if set(words_of(stem)) & (_PLACES | _THING) or (alike and stem in several)
    }
    if not merged:
        return table
    rows = []
    for row in table.rows:
        own = {name: cell for name, cell in row.items() if not any(name in names for names in merged.values())}
        rows.append(own | {stem: [row[n] for n in names if not is_empty(row.get(n))] for stem, names in merged.items()})
    said = [f"'{names[0]}' to '{names[-1]}' are the places of one list" for names in merged.values()]
    return of_rows(table.name, table.where, rows, table.lines, (*table.remarks, *said))


def _is_share(table: GoldenRows, name: str) -> bool:
    """Whether a column holds numbers between 0 and 1: scores, and no ids."""
    numbers = [number_of(cell) for cell in table.filled(name)]
    return bool(numbers) and all(one is not None and 0 <= one <= 1 for one in numbers)


def is_named_expected(name: str) -> bool:
    """Whether a file is called after what was expected: golden.jsonl, judgements.json, solutions.csv."""
    words = {word.removesuffix("s") for word in words_of(name)}
    return bool(words & (_WANTED | _REFERENCE | _GRADE | {"qrel", "label", "solution", "answer", "testset"}))


def half_roles(table: GoldenRows, chosen: Mapping[str, tuple[str, ...]]) -> tuple[GoldenRoles, str]:
    """The roles of a table that lacks what was expected or what was retrieved, and its column of documents or texts."""
    names = [name for name in table.names if table.filled(name)]

    def named(words: frozenset[str], role: str) -> str | None:
        fitting = [name for name in names if _joined(name) in words]
        return chosen.get(role, (None,))[0] or (min(fitting, key=_id_order) if fitting else None)

    system = named(_SYSTEM, "system")
    question, identifier = named(_QUESTION, "question"), named(_ID, "id")
    rank, score = named(_RANK, "rank"), named(_SCORE | _SCORES, "score")
    document = named(_DOCUMENT, "document")
    grade = named(_GRADE | _LABEL | {"rating"}, "grade") if document is not None else None
    taken = {system, question, identifier, rank, score, grade}
    free = [name for name in names if name not in taken and words_of(name)[:1] != ("unnamed",)]
    expected = chosen["expected"][0] if "expected" in chosen else _expected(table, free, set())
    if question is None and identifier is None:
        texts = [name for name in free if name not in (document, expected) and not _is_lists(table, name)]
        question = texts[0] if texts else None
        free = [name for name in free if name != question]
    lists = [name for name in free if _is_lists(table, name)]
    alone = [name for name in free if not _is_numeric(table, name)]
    content = expected or document or next((own[0] for own in (lists, alone, free) if len(own) == 1), "")
    return GoldenRoles(identifier, question, expected, grade, system, document, rank, score), content


def _id_order(name: str) -> tuple[bool, int]:
    """Of two columns of ids that which names a question."""
    return not set(words_of(name)) & {"qid", "query", "question", "topic"}, len(name)


def _no_expected(table: GoldenRows) -> HalfError:
    fault = f"no column with the expected answers; there are {first_names(table.names, quoted=True)}"
    return HalfError(fault, "name it: --columns expected=COLUMN", where=table.where)


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
        _check_left(table, [name for name in free if name not in lists], lists, known)
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


def _check_left(table: GoldenRows, others: Sequence[str], lists: Sequence[str], known: frozenset[str]) -> None:
    """Asks about lists of ids of which none is expected: a system that never hits would be lost without a word."""
    if not lists or not known:
        return
    usual = min((mean(map(len, own)) for name in lists if (own := _lists_of(table, name)) is not None), default=0)
    for name in others:
        objects = any(isinstance(json_cell(cell), Mapping) for cell in table.filled(name))
        apart = objects or set(words_of(name)) & (_QUESTION | _NOTES) or _is_numeric(table, name)
        own = None if apart else _lists_of(table, name)
        if own is not None and usual > 1 and mean(map(len, own)) >= usual / 2:
            fault = f"'{name}' holds lists, but none of the expected ids"
            choices = (f"retrieved={'+'.join([*lists, name])}", f"retrieved={'+'.join(lists)}")
            raise table.two_readings(f"{fault}: a system, or something else", choices)


#: A part of a column's name, and words that name no system.
_PART: Final = re.compile(r"[^\s_\-./:]+")
_NO_NAME: Final = _RETRIEVED | _THING | {"k", "by", "at"}
_NUMBERED: Final = re.compile(r"(.*?)[ _.-]?(\d+)")
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
    numbers = [cell for cell in cells if not is_missing(cell)]
    return len(numbers) * 2 > len(cells) and all(number_of(cell) is not None for cell in numbers)


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


def _is_results(table: GoldenRows, name: str, known: frozenset[str]) -> bool:
    """Whether a column holds lists of results: by its name and its cells."""
    cells = table.filled(name)
    if not cells:
        return False
    if _is_lists(table, name):
        return True
    if not _is_numeric(table, name):
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


def whole(identifier: str) -> str:
    """An id without blanks, as runs and judgments need it."""
    return "_".join(identifier.split())


def _of_scores(
    table: GoldenRows, free: Sequence[str], chosen: Mapping[str, tuple[str, ...]], found: GoldenRoles
) -> GoldenRoles:
    """The roles of a score table: a column of numbers for each system, or one with the system beside it."""
    numbers, left = list(chosen.get("score", ())), tuple[str, ...]()
    if not numbers:
        numbers, left = _numbers(table, [name for name in free if _is_numeric(table, name)])
    if found.expected is not None and (not numbers or "expected" in chosen):
        named = f" (left are {first_names(free, quoted=True)})" if free else ""
        fault = f"no column with what was retrieved{named}"
        raise HalfError(fault, "name it: --columns retrieved=COLUMN", where=table.where)
    if found.system is not None:
        score = found.score or _one(table, numbers, "score")
        if score is None:
            fault = f"a column '{found.system}', and none with scores or results"
            raise table.fault(fault, "name it: --columns score=COLUMN")
        _check_results(table, found, [name for name in free if name not in numbers], chosen)
        if "score" not in chosen:
            _check_scores(table, [score])
        return replace(found, expected=None, score=_higher_is_better(table, score), is_scores=True, left=left)
    if found.rank is not None and "score" not in chosen:
        raise _no_expected(table)  # ranks order results
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
    _check_rows(table, found, others)
    _check_numbers(table, [_higher_is_better(table, name) for name in numbers])
    if "score" not in chosen:
        _check_scores(table, numbers)
    labels = {_label(name): name for name in numbers}
    if isinstance(table.where, Path) and len(numbers) == 1 and _joined(numbers[0]) in _SCORE:
        labels = {table.where.stem: numbers[0]}  # a file for each system
    return replace(found, expected=None, retrieved=labels, is_scores=True, left=left)


def _numbers(table: GoldenRows, names: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    """The columns that may be scores of systems, and which ones are not: times, row numbers, differences, means."""
    kept: list[str] = []
    left: list[str] = []
    for name in names:
        words = set(words_of(name))
        apart = _is_time(name) or words & _SIZES or words & _DERIVED or name in _SIGNS or _is_counted(table, name)
        (left if apart or (_joined(name) in _ID and len(names) > 1) else kept).append(name)
    if not kept:
        return list(names), ()
    return kept, ((f"not taken for scores: {first_names(left, quoted=True)}",) if left else ())


def _is_time(name: str) -> bool:
    """Whether a name says that lower values are better: a time, a cost, a rank."""
    return bool(set(words_of(name)) & LOWER) or _TIME.search(name) is not None


def _is_counted(table: GoldenRows, name: str) -> bool:
    """Whether a column counts the rows."""
    values = [number_of(cell) for cell in table.cells(name)]
    return len(values) > 2 and values in ([*range(len(values))], [*range(1, len(values) + 1)])


def _check_results(
    table: GoldenRows, found: GoldenRoles, others: Sequence[str], chosen: Mapping[str, tuple[str, ...]]
) -> None:
    """Refuses several rows of a question and a system that name things: the mean score of results says nothing."""
    key = found.question or found.identifier
    if key is None or found.repeat is not None or "score" in chosen:
        return
    pairs = [(str(row.get(key)), str(row.get(found.system or ""))) for row in table.rows]
    things = []
    for name in (name for name in others if not _is_numeric(table, name)):
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
    plain = any(set(words_of(name)) & (_SCORE | _SCORES | _CALLED) or _measure(name) for name in numbers)
    if lower := next((name for name in (*numbers, *(() if plain else (where,))) if _is_time(name)), ""):
        fault = f"'{lower}' is not called like a score: lower may be better"
        raise table.fault(fault, "give scores of which the higher is better, or name them: --columns score=COLUMN")
    named = words & (_SCORE | _SCORES | _CALLED) or any(_measure(name) for name in (*numbers, where))
    cells = [cell for name in numbers for cell in table.filled(name) if not is_missing(cell)]
    values = [abs(number_of(cell) or 0.0) for cell in cells]
    largest = max(values, default=0.0)
    if not named and (largest > _HIGHEST_SCORE or (largest > 1 and all(value.is_integer() for value in values))):
        chosen = "+".join(numbers)
        fault = f"{first_names(numbers, quoted=True)} with values up to {largest:g}: scores, or places, times or counts"
        raise NumbersError(f"two readings: {fault}", (f"score={chosen}",), table.where)


def _check_rows(table: GoldenRows, found: GoldenRoles, others: Sequence[str]) -> None:
    """Refuses rows of one question that differ in what may be a system: their mean would be of several."""
    key = found.question or found.identifier
    if key is None or found.repeat is not None:
        return
    asked = [str(cell) for cell in table.cells(key)]
    if len(set(asked)) == len(asked):
        return
    apart = [name for name in others if name != key and 1 < len(set(map(str, table.cells(name)))) <= _FEW]
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
    if len({_measure(name) for name in numbers}) > 1:
        remedy = f"choose one: --columns score={'+'.join(n for n in numbers if _measure(n) == _measure(numbers[0]))}"
        raise table.fault(f"columns of several measures ({first_names(numbers, quoted=True)})", remedy)
    for name in numbers:
        if len(table.filled(name)) * 2 < len(table.rows):
            raise table.fault(f"'{name}' has numbers in fewer than half of the rows: it is not a system", remedy)
    largest = {name: max(abs(number_of(cell) or 0.0) for cell in table.filled(name)) for name in numbers}
    first, last = min(numbers, key=largest.__getitem__), max(numbers, key=largest.__getitem__)
    if largest[last] > SCALE * max(largest[first], 1e-9) > 0:
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
