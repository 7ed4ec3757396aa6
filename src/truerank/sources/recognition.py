"""What files and folders are, told from their content, so that a check takes them as they come."""

from __future__ import annotations

import contextlib
import csv
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

import polars as pl

from truerank.errors import InputError, TwoReadingsError
from truerank.loading import json_file, load_json, whole_number
from truerank.sources import compressed, formats, golden_words
from truerank.sources import golden_cells as in_cells
from truerank.sources import golden_joins as joins
from truerank.sources.folders import FolderContent, folder_content
from truerank.sources.golden import GoldenTable, merged_tables, read_golden
from truerank.sources.golden_columns import is_named_expected, result_columns
from truerank.sources.golden_roles import HalfError, NumbersError
from truerank.sources.golden_rows import first_names, is_settings, is_workbook, opened_rows
from truerank.sources.golden_shapes import unfolded
from truerank.sources.golden_words import called
from truerank.sources.grammar import parse, unique_names
from truerank.sources.labels import read_labels
from truerank.sources.mteb_results import counted_splits, is_mteb_result, read_mteb_results, task_scores
from truerank.sources.notebook import source_of
from truerank.sources.pair_tables import conforming, renamed
from truerank.sources.qrels import QREL_SCHEMA, qrel_frames
from truerank.sources.qrels import header_of as qrel_header
from truerank.sources.rows import parquet_frames
from truerank.sources.runs import header_of as run_header
from truerank.sources.tool_results import graded, is_numbers, told_numbers, tool_result
from truerank.text.printable import and_more, counted, listed

#: What a file can be.
Kind = Literal[
    "settings", "golden file", "golden set", "expected answers", "score table", "results of MTEB", "test set",
    "judgments", "run", "questions", "documents", "leaderboard", "labels", "left out", "nothing known",
]  # fmt: skip
#: What a check can be about; without any of it there is nothing to check.
_CHECKED: Final = frozenset((
    "golden file", "golden set", "score table", "results of MTEB", "test set", "judgments", "run", "documents",
))  # fmt: skip
#: Bytes of the largest file of a folder that is read whole to find out what it is.
_LARGEST_TABLE: Final = 200_000_000
#: Bytes of a run of a corpus so small that most documents are retrieved for every topic.
_SMALL: Final = 4_000_000
_LINES: Final = 50
#: Files that a fault names.
_NAMED: Final = 6
_COUNTED: Final = "test counts before dev where both systems have them, train only where there is no other"
_RUN: Final = re.compile(r"\S+\s+\S+\s+\S+\s+-?\d+\s+[-+]?(?:[-+.\deE]+|(?i:nan|inf|infinity))(\s+\S.*)?")
_QREL: Final = re.compile(r"\S+\s+\S+\s+\S+\s+-?\d+(\.\d+)?")
_BEIR_QREL: Final = re.compile(r"\S+\t\S+\t-?\d+")
_TEXT_LINE: Final = re.compile(r"\S+\t[^\t]*[^\W\d][^\t]*")
_SHARE: Final = 0.9
#: More lines of the first topic than this have to count up, for a column to be one of ranks and not of grades.
_FEWEST_RANKS: Final = 2
_HIGHEST_GRADE: Final = 10
#: Mean words from which on texts are documents and no questions.
_DOCUMENT_WORDS: Final = 30
_RECORD: Final = frozenset("_id id query_id qid topic_id doc_id docid docno url metadata".split())
_RECORD_OF_DOCUMENT: Final = frozenset("doc_id docid docno url".split())
_PROSE: Final = frozenset("title text contents body".split())
_BEIR: Final = frozenset(("query-id", "corpus-id", "score"))
_QUERY: Final = frozenset(("query", "question"))
_TABLES: Final = (".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".parquet", ".txt", "")


@dataclass(frozen=True, eq=False)
class Reading:
    """What one file or folder was taken for.

    Attributes:
        why: by what that was told.
        table: of a golden file or a score table.
        numbers: of judgments or a run of another tool: by topic and document; of a golden set a row for each judgment.
        name: of the system, where the file names it.
        questions: of a golden set: columns _id and text.
        remarks: what was done to the rows, or to all files, beside what the table says.
    """

    path: str
    kind: Kind
    why: str
    table: GoldenTable | None = None
    numbers: Mapping[str, Mapping[str, float]] | pl.DataFrame | None = None
    name: str = ""
    questions: pl.DataFrame | None = None
    remarks: tuple[str, ...] = ()

    def source(self, noun: str) -> str:
        """What an option reads."""
        if self.numbers is None:
            return self.path
        name = self.name or Path(self.path).stem
        value = self.numbers if noun == "qrels" else {name: self.numbers}
        made = source_of(noun, value, several=False, by_name=noun == "run")
        return str(made if isinstance(made, str) else made[name])

    def sentence(self) -> str:
        """The reading in one line."""
        return f"{self.path}: {self.kind}: {self.why}"

    def said(self) -> tuple[str, ...]:
        """What was done to the rows."""
        return (*(self.table.remarks if self.table else ()), *self.remarks)

    def lines(self) -> list[str]:
        """The reading, and what was done to the rows of the file."""
        return [self.sentence(), *(f"  {remark}" for remark in self.said())]

    def json(self) -> dict[str, Any]:
        """The reading as plain values."""
        return {"path": self.path, "kind": self.kind, "why": self.why, "remarks": list(self.said())}


def read_as_given(paths: Sequence[Any], columns: str = "", measure: str = "") -> tuple[Reading, ...]:
    """What each path, or value of a program, is; a folder is taken as its files are, if each is named.

    Of a folder, a file that cannot be read is named with its fault, and the others count.

    Args:
        paths: files, folders, frames, lists of mappings or mappings of columns.
        columns: for golden files, see `read_golden`.
        measure: whose scores count, where a file has those of several.
    """
    found: list[Reading] = []
    files: list[tuple[Any, bool]] = []
    for path in paths:
        if isinstance(path, str | Path) and Path(path).is_dir():
            content = folder_content(Path(path))
            found += _of_folder(content)
            files += ((file, True) for file in content.files)
        else:
            files.append((path, False))
    halves: dict[str, HalfError] = {}
    own = _columns_by_file([file for file, _ in files], columns) if columns and len(files) > 1 else {}
    inside = frozenset(str(file) for file, in_folder in files if in_folder)
    small = {} if columns else _of_small_corpus([Path(path) for path, _ in files if isinstance(path, str | Path)])
    for path, in_folder in files:
        try:
            one = small.get(str(path))
            found.append(one or _given(path, own.get(str(path), columns), measure, in_folder=in_folder))
        except HalfError as error:
            if len(files) > 1 and isinstance(path, str | Path):
                halves[str(path)] = error
            elif (alone := _golden_set(path, columns) or _labels(path, columns, error)) is None:
                raise
            else:
                found.append(alone)
        except (InputError, OSError) as error:
            if not in_folder or isinstance(error, TwoReadingsError):
                raise
            found.append(_not_read(path, error))
    if (alone := _alone(halves, found, own, columns)) is not None:
        found.append(alone)
        halves = {}
    readings = tuple(_with_halves(found, halves, inside, columns, measure))
    doubts = [error for path, error in halves.items() if path in inside and isinstance(error, TwoReadingsError)]
    if doubts and not any(one.kind in _CHECKED for one in readings):
        raise doubts[0]
    return _without_scores(readings, inside)


def _of_small_corpus(paths: Sequence[Path]) -> dict[str, Reading]:
    """Objects of numbers by two keys that the judgments beside them show to be runs, and no tables of scores.

    Where most documents are retrieved for every topic, a run looks like scores of systems, one for each question.
    """
    objects = {}
    for path in paths if len(paths) > 1 else ():
        # What is wrong with a file is said where it is read.
        with contextlib.suppress(InputError, OSError):
            if path.suffix == ".json" and path.stat().st_size <= _SMALL and is_numbers(value := json_file(path)):
                objects[str(path)] = value
    told = {path: result for path, value in objects.items() if (result := graded(value)) is not None}
    doubtful = {path: told_numbers(value) for path, value in objects.items() if path not in told}
    if not doubtful:
        return {}
    judged = [frozenset[str]().union(*one.numbers.values()) for one in told.values() if one.kind == "judgments"]
    for path in paths:
        with contextlib.suppress(InputError, OSError):
            one = None if str(path) in objects else _ranking(path, _sample(path))
            if one is not None and one.kind == "judgments":
                judged.append(frozenset(pl.concat(qrel_frames(one.path))["doc_id"]))
            elif one is not None and one.kind == "run":
                judged.append(frozenset(line.split()[2] for line in _sample(path) if not line.startswith("#")))
    whole = [one for one in doubtful.values() if one.kind == "judgments"]
    if not judged and len(whole) == 1 and len(doubtful) > 1:
        judged = [frozenset[str]().union(*whole[0].numbers.values())]
    documents = frozenset[str]().union(*judged)
    return {
        path: Reading(path, one.kind, f"{one.why}, as the judgments name them", numbers=one.numbers)
        for path, one in doubtful.items()
        if documents & frozenset[str]().union(*one.numbers.values())
    }


def _of_folder(content: FolderContent) -> Iterator[Reading]:
    """What several files of a folder are together, and what was not looked at."""
    for place in content.tests:
        parts = [name for name in ("corpus.jsonl", "qrels") if (place / name).exists() or formats._first(place / name)]
        why = f"a BEIR folder: queries.jsonl{''.join(f', {one}' for one in parts)}"
        yield Reading(str(place), "test set", why)
    if content.results:
        table = mteb_table(content.folder, content.results)
        yield Reading(str(content.folder), "results of MTEB", table.sentence(), table)
    if content.skipped:
        yield Reading(str(content.folder), "left out", f"not looked at: {', '.join(content.skipped)}")


def _given(path: Any, columns: str, measure: str, *, in_folder: bool) -> Reading:
    if not isinstance(path, str | Path):
        table = read_golden(path, columns, measure=measure)
        return Reading("the table", _kind(table), table.sentence(), table)
    return _reading(Path(path), columns, measure, in_folder=in_folder)


def _not_read(path: str | Path, error: InputError | OSError) -> Reading:
    """A file of a folder that is not taken for anything, with the reason."""
    if isinstance(error, OSError):
        return Reading(str(path), "nothing known", f"cannot be read ({error.strerror or error})")
    line = "" if error.line is None else f"line {error.line}: "
    return Reading(str(path), "nothing known", f"{line}{error.fault}")


def _without_scores(readings: Sequence[Reading], inside: frozenset[str]) -> tuple[Reading, ...]:
    """The readings without scores of systems where there are results, of which more can be asked."""
    results = [one for one in readings if one.table is not None and one.table.qrels is not None]
    judged = any(one.kind in ("judgments", "test set") for one in readings)
    results = results or [one for one in readings if one.kind == "run" and judged]
    scores = [one for one in readings if one.table is not None and one.table.scores]
    if not results or not scores:
        return tuple(readings)
    if named := [one for one in scores if one.path not in inside and one.kind != "results of MTEB"]:
        fault = f"two readings: {named[0].path} has scores of systems, {results[0].path} their results"
        raise InputError(fault, "give one of them")
    why = "scores of systems, beside their results; give them alone"
    return tuple(Reading(one.path, "left out", why) if one in scores else one for one in readings)


def _columns_by_file(paths: Sequence[Any], columns: str) -> dict[str, str]:
    """Of the columns that were named, those that each file has; what no file has is left to the first one to refuse."""
    names: dict[str, set[str]] = {}
    for path in paths:
        try:
            names[str(path)] = set(unfolded(opened_rows(path)).names) if isinstance(path, str | Path) else set()
        except (InputError, OSError):
            names[str(path)] = set()
    parts = [part for part in columns.split(",") if part.strip()]

    def has(path: str, part: str) -> bool:
        return {one.strip() for one in part.partition("=")[2].split("+")} <= names[path]

    return {
        path: ",".join(part for part in parts if has(path, part) or not any(has(other, part) for other in names))
        for path in names
    }


def _with_halves(
    found: Sequence[Reading], errors: Mapping[str, HalfError], inside: frozenset[str], columns: str, measure: str
) -> Iterator[Reading]:
    """Readings of files of which some hold what was expected, and others what was retrieved.

    Faults of files `inside` a folder are named, and not raised.
    """
    runs = [one for one in found if one.kind == "run"]
    # Beside such files, a table of numbers or of grades may be the other half.
    possible = [one for one in found if one.table is not None and (errors or (runs and "grade" in one.table.columns))]
    if not errors and not possible:
        yield from found
        return
    named = _columns_by_file([*errors, *(one.path for one in possible)], columns)
    every = {path: half for path in named if (half := joins.half_of(path, named[path]))}
    judgments = [one for one in found if one.kind == "judgments"]
    halves = every if judgments or runs else joins.related(every, inside)
    gold = joins.golden_half(list(halves.values())) if not judgments else None

    def unread(path: str, error: InputError) -> Reading:
        if path not in inside:
            raise error
        return _not_read(path, error)

    lost = [path for path in errors if path not in halves or (gold is None and not judgments)]
    # A named file that lacks its half is the fault, whatever a folder holds.
    for path in sorted(lost, key=lambda path: (path in inside, path in halves)):
        yield unread(path, errors[path])
    if gold is None and not judgments:
        yield from found
        return
    others = {path: half for path, half in halves.items() if half is not gold and (gold is not None or path in errors)}
    yield from (one for one in found if one.path not in halves or (gold is None and one.path not in others))
    if gold is None:
        for path, half in others.items():
            listed = half.roles.document or golden_words.says(half.content, golden_words.RETRIEVED)
            alone = isinstance(errors[path], NumbersError) and not listed
            if half.roles.system is not None or alone or not half.content:
                yield unread(path, errors[path])
            else:
                yield _other_half(path, half)
        return
    if runs:
        numbers, remark = joins.judged_by(gold)
        why = f"{_gold_sentence(gold)}; {remark}" if remark else _gold_sentence(gold)
        yield Reading(str(gold.table.where), "judgments", why, numbers=numbers, remarks=gold.remarks())
    read = {one.path: one for one in found}
    for path, half in others.items():
        roles = ",".join(
            part for part in (named[path], f"expected={joins.EXPECTED}", f"id={joins.QUESTION}", half.named()) if part
        )
        try:
            table = read_golden(joins.joined(gold, half), roles, measure=measure)
        except InputError as error:
            if (other := joins.expected_elsewhere(gold, half)) is not None:
                fault = f"{error.fault}; '{other}' of {gold.table.name} has ids of results"
                error = InputError(fault, f"name it: --columns expected={other}", where=path)
            yield read[path] if path in read and path in inside else unread(path, error)
            continue
        own = {role: names for role, names in table.columns.items() if role != "expected"}
        table = replace(table, columns=own | {"id": (gold.roles.identifier or gold.roles.question or "",)}, joined=True)
        yield Reading(path, _kind(table), table.sentence(), table)
    if not runs:
        yield Reading(str(gold.table.where), "expected answers", _gold_sentence(gold), remarks=gold.remarks())


def _other_half(path: str, half: joins.Half) -> Reading:
    """A file beside judgments that is a run, or judgments too."""
    if half.roles.grade is not None and not (half.roles.rank or half.roles.score):
        return Reading(path, "judgments", _gold_sentence(half), numbers=joins.judged_by(half)[0])
    return Reading(path, "run", f"lists by '{half.content}'", numbers=joins.ranked_by(half))


def _alone(
    halves: Mapping[str, HalfError], found: Sequence[Reading], own: Mapping[str, str], columns: str
) -> Reading | None:
    """The golden set, where documents at most are beside it."""
    if len(halves) != 1 or any(one.kind in _CHECKED - {"documents"} for one in found):
        return None
    (path,) = halves
    return _golden_set(path, own.get(path, columns))


def _golden_set(source: Any, columns: str) -> Reading | None:
    """Questions with what was expected, and no system; None where a column may hold what one retrieved."""
    half = joins.half_of(source, columns)
    if half is None or half.roles.system or half.roles.rank:
        return None
    table, roles = half.table, half.roles
    told = roles.grade is not None or is_named_expected(table.name)
    if roles.expected is None and (roles.document is None or not told or roles.score is not None):
        return None
    distinct = {name: len(set(own)) for name, own in half.keys().items()}
    if roles.question and roles.identifier and distinct[roles.identifier] < distinct[roles.question]:
        # It names groups of questions.
        roles = replace(roles, identifier=None)
    kept = {roles.identifier, roles.question, roles.grade, half.content}
    others = [name for name in table.names if name not in kept and table.filled(name)]
    documents = frozenset[str]().union(*(in_cells.lists_of(table, half.content) or ()))
    possible = set(result_columns(table, half.content)).intersection(others)
    possible = {name for name in possible if not in_cells.is_other_words(table, name, documents)}
    # Other lists may be what a system retrieved, unless what was expected is named, and alone.
    doubtful = {name for name in possible if "expected" not in half.chosen and in_cells.is_lists(table, name)}
    forms = [form for form in in_cells.ID_FORMS.values() if form is not in_cells.ID_FORMS[in_cells.DIGITS]]
    shown = [in_cells.vocabulary(table, name) for name in possible]
    met = any({*map(form, own)} & {*map(form, documents)} for own in shown for form in forms)
    if doubtful or met or any(own & documents for own in shown):
        return None
    column = roles.identifier or roles.question or ""
    keys = [
        " ".join(str(cell).split()) if column == roles.question else in_cells.whole(in_cells.identifier_of(cell))
        for cell in table.cells(column)
    ]
    if not called([column], golden_words.QUESTION | golden_words.ID) and 2 * len(set(keys)) < len(keys):
        return None  # few values, again and again, and nothing calls them questions
    ids = {key: key if roles.identifier else str(number) for number, key in enumerate(dict.fromkeys(keys), 1)}
    numbers, step = joins.judged_by(half, [ids[key] for key in keys])
    texts = dict(zip(keys, table.cells(roles.question), strict=True)) if roles.question else {}
    questions = pl.DataFrame([(ids[key], str(text)) for key, text in texts.items()], ["_id", "text"], orient="row")
    prose = in_cells.are_texts(table, half.content, "")
    if prose and not len(questions):
        return None
    remarks = [*half.remarks(), *filter(None, [step])]
    if roles.expected is None:
        remarks.append(f"without ranks and scores these are judgments; if results: --columns retrieved={half.content}")
    if (again := len(keys) - len(ids)) and roles.document is None:
        remarks.append(f"repeated questions, whose expected documents are added: {counted(again, 'row')}")
    if empty := len(ids) - numbers["topic_id"].n_unique():
        remarks.append(f"{counted(empty, 'question')} without an expected document: in no score")
    if prose:
        remarks.append(f"what is expected in '{half.content}' are texts, which are not looked for without results")
    if others:
        remarks.append(f"not looked at: {first_names(others, quoted=True)}")
    why = f"{counted(len(ids), 'question')}, {_gold_sentence(half)}, and no system"
    path = str(source) if isinstance(source, str | Path) else "the table"
    judged = None if prose else numbers
    return Reading(path, "golden set", why, numbers=judged, questions=questions, remarks=tuple(remarks))


def _labels(path: Any, columns: str, error: HalfError) -> Reading | None:
    """What several annotators said beside each other, or in rows of their own; None for anything else."""
    if not isinstance(path, str | Path):
        return None
    try:
        read = list(read_labels(str(path), columns))
    except InputError:
        return None
    names = dict.fromkeys(judgment.annotator for judgment in read if judgment.labels)
    if len(names) < 2:
        return None
    if isinstance(error, TwoReadingsError):
        fault = f"{error.fault}, or labels of annotators (then: truerank judge agreement {path})"
        raise NumbersError(fault, error.choices, path)
    return Reading(str(path), "labels", f"by {first_names(names, quoted=True)}")


def _gold_sentence(gold: joins.Half) -> str:
    graded = "" if gold.roles.grade is None else f", with its grade in '{gold.roles.grade}'"
    return f"what is expected in '{gold.content}'{graded}"


def _kind(table: GoldenTable) -> Kind:
    return "score table" if table.scores else "golden file"


def _reading(path: Path, columns: str, measure: str, *, in_folder: bool = False) -> Reading:
    if is_workbook(path):
        table = read_golden(path, columns, measure=measure)
        return Reading(str(path), _kind(table), table.sentence(), table)
    compressed.checked_file(path)
    if is_settings(path):
        return Reading(str(path), "settings", "the settings of a check" + ("; give them alone" if in_folder else ""))
    sample = _sample(path)
    found = _ranking(path, sample) or (_records(path, sample) if columns == "" else None)
    if found is None and in_folder and (size := path.stat().st_size) > _LARGEST_TABLE:
        why = f"{size / 1e6:,.0f} MB, too large for a table of questions; name it to have it read"
        found = Reading(str(path), "nothing known", why)
    if found is None and columns == "" and (tool := tool_result(path, sample)):
        found = Reading(str(path), tool.kind, tool.why, numbers=tool.numbers, name=tool.name)
    if found is not None:
        return found
    value = json_file(path) if in_folder and path.suffix == ".json" else None
    if isinstance(value, Mapping) and not any(isinstance(one, Mapping | list) for one in value.values()):
        return Reading(str(path), "nothing known", "one record of plain values, as settings are")
    is_mteb = path.suffix == ".json" and is_mteb_result(path)
    table = mteb_table(path.parent, [path]) if is_mteb else read_golden(path, columns, measure=measure)
    return Reading(str(path), "results of MTEB" if is_mteb else _kind(table), table.sentence(), table)


def _sample(path: Path) -> list[str]:
    head = compressed.head(path)
    lines = head.decode("utf-8", "replace").splitlines()
    whole = lines if len(head) < compressed.HEAD_SIZE else lines[:-1]
    return [line for line in whole if line.strip()][:_LINES]


def _ranking(path: Path, lines: Sequence[str]) -> Reading | None:
    """Judgments or a run in the form of TREC, or judgments of BEIR."""
    plain = [line for line in lines if not line.startswith("#")]
    if not plain:
        return None
    if plain[0].split("\t")[:2] == ["query-id", "corpus-id"]:
        return Reading(str(path), "judgments", "the columns query-id, corpus-id and score of BEIR")
    named = len(plain) > 1 and plain[0].count(",") < 2 and (qrel_header(plain[0]) or run_header(plain[0]))
    below = plain[1:] if named else plain

    def share(pattern: re.Pattern[str]) -> float:
        fitting = below if pattern in (_QREL, _RUN) else plain
        return sum(pattern.fullmatch(line.strip()) is not None for line in fitting) / len(fitting)

    found: tuple[Kind, str] | None = None
    if share(_QREL) >= _SHARE and not named:
        _check_four(path, below)
    if named and "rank" in plain[0].lower().split() and share(_RUN) < _SHARE:
        return None  # a table, whose columns say what they are
    if share(_QREL) >= _SHARE:
        found = "judgments", "lines of topic, 0, document and grade"
    elif share(_RUN) >= _SHARE:
        found = "run", "lines of topic, Q0, document, rank, score and tag"
    elif share(_BEIR_QREL) == 1 and _counts_up(plain):
        found = "run", "lines of topic, document and rank, as for MS MARCO"
    elif len(plain) > 1 and share(_TEXT_LINE) == 1 and (words := _words_by_id(plain)):
        kind: Kind = "documents" if words >= _DOCUMENT_WORDS else "questions"
        found = kind, f"lines of id and text without a header, {words:.0f} words each"
    elif share(_BEIR_QREL) >= (1 if path.suffix in _TABLES else _SHARE) and _are_judged(plain):
        found = "judgments", "lines of topic, document and grade"
    return None if found is None else Reading(str(path), *found)


def _check_four(path: Path, lines: Sequence[str]) -> None:
    """Refuses four columns in another order than those of judgments: a rank, or the document, is the second one."""
    rows = [cells for line in lines if len(cells := line.split()) == 4]
    ranks = [whole_number(row[1]) for row in rows if row[0] == rows[0][0]]
    fault, order = "", ""
    if len(ranks) > _FEWEST_RANKS and ranks == [*range(1, len(ranks) + 1)]:
        fault, order = "lines of topic, rank, document and score: a run has six columns", '$1, "Q0", $3, $2, $4, "run"'
    elif len(rows) > _FEWEST_RANKS and len({row[2] for row in rows}) == 1 < len({row[1] for row in rows}):
        fault, order = f"the third column, of documents, is '{rows[0][2]}' in every line", "$1, 0, $2, $3"
    if fault:
        remedy = f"write them in order: awk '{{print {order}}}' {path}"
        raise InputError(fault, remedy, where=path)


def _words_by_id(lines: Sequence[str]) -> float:
    """The mean words of lines of id and text; 0 where there is a header, an id comes twice, or texts are ids."""
    ids, texts = zip(*(line.strip().split("\t") for line in lines), strict=True)
    if not any(map(str.isdigit, ids[0])) or len(set(ids)) < len(ids):
        return 0.0
    counts = [len(text.split()) for text in texts]
    return in_cells.mean(counts) if in_cells.mean(count > 1 for count in counts) > _SHARE / 2 else 0.0


def _are_judged(lines: Sequence[str]) -> bool:
    """Whether topics have several lines each, and their last column has the few numbers that grades have."""
    rows = [line.split() for line in lines if len(line.split()) == 3]
    few = all(abs(whole_number(row[2]) or 0) <= _HIGHEST_GRADE for row in rows)
    return few and len({row[0] for row in rows}) < len({(row[0], row[1]) for row in rows})


def _counts_up(lines: Sequence[str]) -> bool:
    """Whether the last column of the first topic is 1, 2, 3 and so on."""
    rows = [line.split() for line in lines]
    first = [whole_number(row[2]) for row in rows if row[0] == rows[0][0]]
    return len(first) > _FEWEST_RANKS and first == list(range(1, len(first) + 1))


def _records(path: Path, sample: Sequence[str]) -> Reading | None:
    """Questions or documents: records of an id and a text, and nothing else that counts; or judgments of BEIR."""
    marked = bool(sample) and sample[0].lstrip().startswith("<")
    if not marked and path.suffix not in (".jsonl", ".ndjson", ".gz", ".trec", ".xml", ".csv", ".tsv", ".parquet"):
        return None
    # A table may be UTF-16, as a spreadsheet writes it.
    if compressed.head(path).startswith((b"\xff\xfe", b"\xfe\xff")):
        return None
    form = formats.detect(path)
    if form in ("trec", "xml"):
        documents = formats.is_trec_document(compressed.head(path).decode("utf-8", "replace"))
        return Reading(str(path), "documents" if documents else "questions", "records of TREC")
    try:
        records = _first_records(path, form, sample)
    except (csv.Error, InputError):
        records = []
    names = {str(key).lower() for one in records for key in (one if isinstance(one, dict) else ("",))}
    if names == _BEIR:
        rows = renamed(pl.DataFrame(opened_rows(path).rows if form == "jsonl" else []), QREL_SCHEMA)
        numbers = conforming(rows, QREL_SCHEMA, path) if len(rows) else None
        return Reading(str(path), "judgments", "query-id, corpus-id and score of BEIR", numbers=numbers)
    # A document beside a question is an answer.
    answers = names & _QUERY and names & _RECORD_OF_DOCUMENT
    if (
        not names & (_PROSE | _QUERY)
        or not names <= _RECORD | _PROSE | _QUERY
        or answers
        or (form != "jsonl" and not names & _RECORD)
    ):
        return None
    words = sum(len(str(value).split()) for one in records for key, value in one.items() if key.lower() in _PROSE)
    long = words / len(records) >= _DOCUMENT_WORDS
    documents = not names & _QUERY and (long or bool(names & (_PROSE - {"text"})))
    why = f"records of {listed(sorted(names))}, {words / len(records):.0f} words each"
    return Reading(str(path), "documents" if documents else "questions", why)


def _first_records(path: Path, form: str, sample: Sequence[str]) -> list[Any]:
    if form == "jsonl":
        return [load_json(line, path) for line in sample]
    if form == "parquet":
        return next((frame.head(_LINES).to_dicts() for frame in parquet_frames(path, size=_LINES)), [])
    if form not in ("csv", "tsv") or not sample:
        return []
    head = next(csv.reader(sample[:1], delimiter="\t" if form == "tsv" else ","))
    names = {name.strip().lower() for name in head}
    if not names <= _RECORD | _PROSE | _QUERY and names != _BEIR:
        return []
    return list(csv.DictReader(sample, delimiter="\t" if form == "tsv" else ","))


def mteb_table(folder: Path, files: Iterable[Path]) -> GoldenTable:
    """Results of MTEB as a score table: a column for each model, a row for each task.

    Versions of MTEB, and splits and revisions of data sets that differ, are named in the remarks.
    """
    found = read_mteb_results(folder, files)
    main = found.cells.filter(pl.col("measure") == "")
    scores = {system: own for system, own in task_scores(main).items() if len(own)}
    tasks = pl.concat([own["topic_id"] for own in scores.values()]).unique().sort()
    others = main.join(counted_splits(main), on=["task", "split"], how="anti", nulls_equal=True)["task"].unique().sort()
    several = main.group_by("system").agg(pl.col("model_revision").n_unique() > 1)["model_revision"].sum()
    versions = main["tool_version"].n_unique()
    mixed = main.group_by("task").agg(pl.col("data_revision").n_unique() > 1).filter("data_revision")["task"].sort()
    notes = (
        (several, f"{several} models have several revisions; the one with most tasks counts"),
        (versions > 1, f"results of {versions} versions of MTEB are mixed"),
        (len(mixed), f"results on several revisions of {len(mixed)} data sets are mixed ({first_names(mixed)})"),
        (len(others), f"several splits of {first_names(others)}: {_COUNTED}"),
        (found.broken, f"{len(found.broken)} files hold no scores and are left out ({first_names(found.broken)})"),
    )
    return GoldenTable(
        folder.name,
        pl.DataFrame({"topic_id": tasks}).with_columns(text=pl.lit(None, pl.String)),
        None,
        scores=scores,
        columns={"score": ("main_score",)},
        remarks=tuple(note for wanted, note in notes if wanted),
        cells=main,
    )


@dataclass(frozen=True, eq=False)
class Opened:
    """What PATHs hold, for every command that takes them.

    Attributes:
        paths: one by one, as they were given.
        sources: by the names of the options of `check`.
        scores: the score tables, as one; None where there are none.
        results: the golden files, as one; likewise.
    """

    paths: tuple[Any, ...]
    readings: tuple[Reading, ...]
    sources: Mapping[str, Any]
    scores: GoldenTable | None
    results: GoldenTable | None

    def judged_runs(self) -> tuple[Any, Any]:
        """The judgments and the runs."""
        if self.scores is not None:
            fault = "scores of systems, and no results to score"
            raise InputError(fault, "compare takes scores: truerank compare FILE", where=self.readings[0].path)
        if "qrels" not in self.sources:
            fault = f"runs need judgments, and no file holds any: {kinds_of(self.readings)}"
            raise InputError(fault, "give a file of judgments, or name it with --qrels")
        if "run" not in self.sources:
            fault = f"no file says what a system retrieved: {kinds_of(self.readings)}"
            raise InputError(fault, "give a run, or name it with --run")
        return self.sources["qrels"], self.sources["run"]


def opened(paths: Any, columns: str = "", measure: str = "", **named: Any) -> Opened:
    """Reads PATHs: the one door of all commands.

    Args:
        paths: as in `read_as_given`; also one of them.
        columns: see `read_golden`.
        measure: see `read_golden`.
        named: what was named by options of `check`, which wins; what is empty was not named.

    Raises:
        InputError: nothing in it can be checked, or a fault in one of the files.
    """
    several = several_paths(paths)
    try:
        readings = read_as_given(several, columns, measure)
    except TwoReadingsError as error:
        asked = error.beside(columns)
        raise asked.among([choice for choice in asked.choices if _leads_on(several, choice, measure)]) from None
    if not any(one.kind in _CHECKED for one in readings):
        for one in readings:
            if one.kind == "labels":
                remedy = f"compare them: truerank judge agreement {one.path}; grades of documents: truerank judge audit"
                raise InputError(f"labels {one.why}, and no results of systems", remedy, where=one.path)
        remedy = "give a table of questions, runs and judgments, or name what the files are by options"
        raise InputError(f"nothing in it can be checked: {kinds_of(readings)}", remedy, where=readings[0].path)
    scores = [one.table for one in readings if one.table is not None and one.table.scores]
    tables = [one.table for one in readings if one.table is not None and one.table.qrels is not None]
    results, merged = (merged_tables(own, columns) if own else None for own in (tables, scores))
    said = {id(own[-1]): one.remarks for own, one in ((tables, results), (scores, merged)) if one and len(own) > 1}
    readings = tuple(replace(one, remarks=(*one.remarks, *said.get(id(one.table), ()))) for one in readings)
    named = {
        name: one
        for name, one in named.items()
        if one is not None and not (isinstance(one, list | tuple | Mapping) and not one)
    }
    sources = {**_sources_of(readings, results, named), **named}
    for one in readings:
        if one.kind == "golden set":
            sources = {**_of_golden_set(one), **sources}
    return Opened(several, readings, sources, merged, results)


def _leads_on(paths: Sequence[Any], choice: str, measure: str) -> bool:
    """Whether files can be read with a choice, perhaps after another question; large ones are not tried."""
    named = [Path(path) for path in paths if isinstance(path, str | Path) and Path(path).is_file()]
    if len(named) < len(paths) or sum(path.stat().st_size for path in named) > _SMALL:
        return True
    try:
        read_as_given(paths, choice, measure)
    except TwoReadingsError:
        return True
    except InputError as error:
        # A measure is asked for next, and missing ranks have a remedy of their own.
        return "--measure" in error.remedy or "rank=" in choice
    return True


def _of_golden_set(one: Reading) -> dict[str, Any]:
    """The judgments and questions of a golden set, as files of this process."""
    found = {} if one.numbers is None else {"qrels": one.source("qrels")}
    if one.questions is not None and len(one.questions):
        name = Path(one.path).name.partition(".")[0]
        found["test"] = str(source_of("test", {name: one.questions}, several=False, by_name=False))
    return found


def brought_by(folder: Path) -> tuple[str, ...]:
    """What a BEIR folder has beside its queries, by the names of the options."""
    if not folder.is_dir():
        return ()
    qrels = ("qrels",) if formats.qrels_file(folder) is not None else ()
    return (*qrels, "docs") if formats.corpus_file(folder, missing_ok=True) is not None else qrels


def several_paths(paths: Any) -> tuple[Any, ...]:
    """PATHs as a tuple: a path, a frame or a mapping of columns is one of them, as is a list of mappings."""
    paths = paths.collect() if isinstance(paths, pl.LazyFrame) else paths
    single = isinstance(paths, str | Path | Mapping) or hasattr(paths, "columns")
    single = single or (isinstance(paths, list) and bool(paths) and isinstance(paths[0], Mapping))
    several = (paths,) if single else tuple(paths or ())
    return tuple(str(path) if isinstance(path, Path) else path for path in several)


def _golden_parts(table: GoldenTable) -> dict[str, Any]:
    """The judgments, runs and topics of a golden file, as files of this process."""
    qrels = source_of("qrels", table.qrels, several=False, by_name=False)
    found = {"qrels": qrels, "run": source_of("run", dict(table.runs), several=False, by_name=True)}
    texts = table.questions.drop_nulls("text").rename({"topic_id": "_id"})
    if len(texts) == len(table.questions):
        name = table.name.partition(".")[0]
        found["test"] = source_of("test", {name: texts}, several=False, by_name=False)
    return found


def _sources_of(readings: Sequence[Reading], results: GoldenTable | None, named: Mapping[str, Any]) -> dict[str, Any]:
    """The sources of a check by the names of its options; what was named by an option wins."""
    found: dict[str, Any] = {}
    options: Mapping[Kind, str] = {
        "test set": "test", "questions": "test", "judgments": "qrels", "documents": "docs",
    }  # fmt: skip
    for kind, option in options.items():
        own = [one for one in readings if one.kind == kind and not named.get(option)]
        if len(own) > 1:
            also = " or --train" if option == "test" else ""
            fault = f"two readings: {listed([one.path for one in own[:3]])} are {kind}"
            raise InputError(fault, f"say which with --{option}{also}, and leave the other out")
        if own:
            found.setdefault(option, own[0].source(option))
    tests = [one for one in readings if one.kind == "test set" and formats.qrels_file(Path(one.path)) is not None]
    if tests and "qrels" in found:
        judged = next(one for one in readings if one.kind == "judgments")
        fault = f"two readings: the judgments are in {judged.path}, or in {tests[0].path}"
        raise InputError(fault, "say which with --qrels, and leave the other out")
    ranked = [one for one in readings if one.kind == "run"]
    names = unique_names([parse(one.name or one.path) for one in ranked])
    for one in tests[:1]:
        found = dict.fromkeys(brought_by(Path(one.path)), one.path) | found
    runs = {name: one.source("run") for name, one in zip(names, ranked, strict=True)}
    if results is not None and "qrels" not in named:
        if "qrels" in found or runs:
            fault = f"two readings: {results.name} is a golden file, and there are judgments or runs too"
            raise InputError(fault, "give one of them")
        found |= _golden_parts(results)
    if runs:
        found["run"] = runs
    return found


def kinds_of(readings: Sequence[Reading]) -> str:
    """What each file was taken for, those first that were not understood."""
    order = sorted(readings, key=lambda one: (one.kind != "nothing known", one.path))
    return and_more([one.sentence() for one in order], _NAMED, separator="; ")
