"""The labels of a store as files of other tools; of a damaged store, what can still be read."""

from __future__ import annotations

import contextlib
import csv
import io
import itertools
import json
import shutil
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Final, NamedTuple, get_args

from truerank.core.plain import picked
from truerank.core.result import Result
from truerank.core.tables import is_formula
from truerank.errors import InputError, OptionError
from truerank.judging.database import connected
from truerank.judging.exchange import forms
from truerank.judging.exchange.forms import (
    RULES,
    LabelFormat,
    Outgoing,
    StatementSelection,
    Which,
    item_record,
    said_record,
    select,
    text_columns,
)
from truerank.judging.items import Annotator, Draft, Item, Role
from truerank.judging.schemes import Scheme
from truerank.judging.store import (
    EVENT,
    Store,
    append_history,
    check_draft,
    event_of,
    fill,
    is_store,
    item_of,
    store_input,
)
from truerank.loading import load_json
from truerank.options import Flag, Names, command
from truerank.work.runs import run as started

#: What a row can be that is not what it was.
_BROKEN: Final = (InputError, sqlite3.Error, UnicodeError, ValueError, TypeError, KeyError, AttributeError)
#: Numbers of rows that are asked for one by one, at most.
_MOST: Final = 1 << 20


@contextlib.contextmanager
def recovered(store: str | Path | Store) -> Iterator[tuple[Store, int]]:
    """A store of the rows that can be read, and how many cannot; an event without its item or annotator is lost too."""
    path = store.path if isinstance(store, Store) else Path(store)
    if not path.is_file():
        raise InputError("no store there", "give the damaged store", where=path)
    with tempfile.TemporaryDirectory(prefix="truerank-") as temporary:
        copy, made = Path(temporary) / "copy", Path(temporary) / path.name
        shutil.copyfile(path, copy)
        wal = path.with_name(f"{path.name}-wal")
        if wal.is_file():
            shutil.copyfile(wal, copy.with_name("copy-wal"))
        with contextlib.closing(sqlite3.connect(copy)) as connection:
            connection.text_factory = lambda text: text.decode("utf-8", "replace")
            lost = _filled(made, connection, path)
        with Store.open(made) as whole:
            yield whole, lost


def _filled(made: Path, damaged: sqlite3.Connection, path: Path) -> int:
    """Writes the new store; how many rows it lacks."""
    meta = dict(_rows(damaged, "meta", "key", "value").values())
    try:
        scheme = Scheme.from_json(load_json(meta["scheme"], path), path)
        seed, plan = int(meta.get("seed", 0)), load_json(meta.get("plan", "{}"), path)
    except _BROKEN as error:
        raise InputError("not even its scheme can be read", "take a copy of the store", where=path) from error
    bodies, lost = _numbered(damaged, "items", "position", "body")
    items: dict[str, Item] = {}
    for (body,) in bodies:
        try:
            item = item_of(body, path)
            items[item.item_id] = item
        except _BROKEN:
            lost += 1
    people = {
        row[0]: Annotator(*row)
        for row in _rows(damaged, "annotators", "name", "role, about").values()
        if all(isinstance(value, str) for value in row) and row[1] in get_args(Role)
    }
    work: dict[str, list[str]] = {name: [] for name in people}
    for name, _, item_id in _rows(damaged, "assignments", "annotator, place", "item_id").values():
        if name in work and item_id in items:
            work[name].append(item_id)
    meta = {"seed": seed, "plan": plan}
    fill(made, path, scheme, items.values(), annotators=people.values(), work=work, meta=meta)
    events, missing = _numbered(damaged, "events", "number", EVENT)
    with contextlib.closing(connected(made)) as connection:
        connection.execute("PRAGMA synchronous = OFF")  # the copy need not outlive this process
        connection.execute("BEGIN IMMEDIATE")
        # The number of each event that is whole, in the new store.
        numbers: dict[int, int] = {}
        for row in events:
            with contextlib.suppress(*_BROKEN):
                event = event_of(row, path)
                if event.item_id not in items or event.annotator not in people:
                    continue
                # Labels that the scheme lacks are damaged; those that exclude each other may have been imported so.
                scheme.known(event.labels, items[event.item_id])
                draft = Draft(*event[2:10], at=event.at)
                check_draft(draft, people[event.annotator].role, path)
                back = numbers[event.undoes] if event.undoes is not None else 0
                numbers[event.number] = append_history(connection, [draft], [back])[0].number
        connection.execute("COMMIT")
    return lost + missing + len(events) - len(numbers)


def _rows(connection: sqlite3.Connection, table: str, key: str, columns: str) -> dict[Any, tuple[Any, ...]]:
    """The rows of a table that can be read from its beginning and from its end, by key."""
    names = key.split(", ")
    found: dict[Any, tuple[Any, ...]] = {}
    for order in ("ASC", "DESC"):
        asked = ", ".join(f"{name} {order}" for name in names)
        with contextlib.suppress(sqlite3.Error, UnicodeError):
            for row in connection.execute(f"SELECT {key}, {columns} FROM {table} ORDER BY {asked}"):
                found.setdefault(row[: len(names)], row)
    return dict(sorted(found.items(), key=lambda one: tuple(map(repr, one[0])))) if len(names) > 1 else found


def _numbered(connection: sqlite3.Connection, table: str, key: str, columns: str) -> tuple[list[tuple[Any, ...]], int]:
    """The rows of a table with numbers from 1, in order, and how many of those numbers have none."""
    found = {row[0]: row[1:] for (number,), row in _rows(connection, table, key, columns).items() if number > 0}
    last = max(found, default=0)
    with contextlib.suppress(sqlite3.Error, UnicodeError):
        for (number,) in connection.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (table,)):
            last = number if isinstance(number, int) and last < number <= last + _MOST else last
    for number in range(1, min(last, _MOST) + 1):
        if number not in found:
            with contextlib.suppress(sqlite3.Error, UnicodeError):
                row = connection.execute(f"SELECT {columns} FROM {table} WHERE {key} = ?", (number,)).fetchone()
                if row is not None:
                    found[number] = row
    return [found[number] for number in sorted(found)], last - len(found)


_BY_ENDING: Final[dict[str, LabelFormat]] = {
    ".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".json": "labelstudio", ".qrels": "qrels",
}  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class LabelExport(Result, shown_in="truerank.judging.report"):
    """What was written.

    Attributes:
        path: the file.
        form: its format.
        which: the rule.
        annotators: whose labels, where not everybody's.
        written: number of statements in it.
        open: items without an answer because nobody labelled them.
        left_out: items without an answer because the rule gives none.
        models: models whose labels are in it.
        beside: further files: label configuration, labelling interface.
        formulas: cells of the CSV that a spreadsheet would take for a formula.
        escaped: whether an apostrophe stands in front of these.
        lost: rows of a damaged store that could not be read; None for a whole one.
    """

    path: Path
    form: LabelFormat
    which: Which
    annotators: tuple[str, ...]
    written: int
    open: int
    left_out: tuple[str, ...]
    models: tuple[str, ...]
    beside: tuple[Path, ...] = ()
    formulas: int = 0
    escaped: bool = False
    lost: int | None = None

    @property
    def rule(self) -> str:
        """The rule as a sentence's end."""
        return RULES[self.which] + (f", of {', '.join(self.annotators)} only" if self.annotators else "")

    def json(self) -> dict[str, Any]:
        """The outcome as a JSON object."""
        names = "file=path, format=form, which, rule, annotators, written, open, left_out, models, formulas, beside"
        return {**picked(self, names), **({} if self.lost is None else {"lost": self.lost})}


@command
def export(
    store: Annotated[str | Path | Store, Flag(metavar="STORE", positional=True, reads=Path)],
    out: Annotated[str | Path, Flag(metavar="FILE", positional=True, reads=Path)],
    *,
    file_format: LabelFormat | None = None,
    which: Which = "standing",
    annotators: Names = (),
    include_models: bool = False,
    people_only: bool = False,
    escape_formulas: bool = False,
    recover: bool = False,
) -> LabelExport:
    """Writes the labels of a store to a file.

    The file appears whole or not at all. Labels of models are marked in every format; standing labels and histories
    have them beside those of people.

    Args:
        store: the store; in Python also an open one.
        out: the file; FILE.manifest.json stands beside it, for doccano also `FILE.label_config.json` and for Label
            Studio `FILE.config.xml`.
        file_format: of the file; by default what its ending says.
        which: every standing label (standing), the whole history (events; JSONL and CSV), or one answer per item: the
            adjudicated one, or else the one on which all agree (adjudicated) or which more than half gave (majority).
            Qrels need one of the last two, or one annotator.
        annotators: only what these said; by default what all said.
        include_models: labels of models count like those of people where one answer is made.
        people_only: labels of models are left out of standing labels and histories.
        escape_formulas: in CSV, an apostrophe stands before texts that begin with =, +, -, @, a tab or a carriage
            return, which spreadsheets take for formulas. Such a file is for reading, not for import.
        recover: of a damaged store, take what can still be read; its items can be imported into a new one.

    Returns:
        What was written and what was left out.

    Raises:
        InputError: a format that the ending does not tell or that cannot hold this; a rule or annotator that is not
            there; the file is a store or cannot be written.

    Examples:

        truerank judge export leakage.judged labels.jsonl

        truerank judge export leakage.judged history.jsonl --which events

        truerank judge export leakage.judged pairs.jsonl --file-format doccano

        truerank judge export graded.judged graded.qrels --which majority
    """
    if include_models and people_only:
        raise OptionError("people_only", "contradicts `include_models`", "give one of the two")
    place = Path(out)
    form = file_format or _of_ending(place)
    with contextlib.ExitStack() as stack:
        opened, lost = stack.enter_context(recovered(store)) if recover else (stack.enter_context(Store.of(store)), 0)
        _check(opened, place, form, which, annotators)
        models = True if include_models else False if people_only else None
        chosen = select(opened, which, annotators=annotators, include_models=models)
        written = [row for row in chosen.rows if row.said is not None]
        content = _content(form, chosen, written, opened, escape_formulas)
        options: dict[str, Any] = {"file_format": form, "which": which, "annotators": annotators}
        options |= {"include_models": include_models, "people_only": people_only}
        if recover:
            options["recover"] = True
        with started("judge export", [store_input(store)], options, place, file=True) as job:
            job.skipped = {"open": chosen.open, "left_out": len(chosen.left_out), **({"lost": lost} if recover else {})}
            with job.stream(place.name) as temporary, temporary.open("w", encoding="utf-8", newline="") as stream:
                stream.writelines(content.lines)
            for ending, text in content.beside.items():
                job.text(f"{place.name}.{ending}", text)
        count = len(written)
        if form == "qrels":
            count = sum(row.said is not None and row.said.kind != "skip" for row in written)
        beside = tuple(place.with_name(f"{place.name}.{ending}") for ending in content.beside)
        return LabelExport(
            place, form, which, tuple(annotators), count, chosen.open, chosen.left_out, chosen.models, beside,
            content.formulas, escape_formulas, lost if recover else None,
        )  # fmt: skip


class _Content(NamedTuple):
    """What is written: the lines, files beside them by the end of their names, cells that are formulas."""

    lines: Iterable[str]
    beside: Mapping[str, str] = MappingProxyType({})
    formulas: int = 0


def _content(
    form: LabelFormat, chosen: StatementSelection, written: Sequence[Outgoing], store: Store, escaped: bool
) -> _Content:
    if form == "qrels":
        return _Content(_qrels(written, store))
    if form == "csv":
        rows = list(_csv(chosen))
        stream = io.StringIO(newline="")
        for row in rows:
            cells = [f"'{cell}" if is_formula(cell) else cell for cell in row] if escaped else row
            csv.writer(stream, lineterminator="\n").writerow(cells)
        return _Content([stream.getvalue()], formulas=sum(map(is_formula, itertools.chain.from_iterable(rows))))
    if form == "doccano":
        return _Content(forms.doccano_lines(chosen.rows), {"label_config.json": forms.label_config(store.scheme)})
    if form == "labelstudio":
        interface = forms.interface(store.scheme, (row.item for row in chosen.rows))
        return _Content(forms.tasks(chosen.rows, store.scheme), {"config.xml": interface})
    return _Content(_jsonl(chosen.rows))


def _of_ending(path: Path) -> LabelFormat:
    ending = path.suffix.lower()
    if ending not in _BY_ENDING:
        remedy = f"name it with `file_format`, or end the name in {', '.join(_BY_ENDING)}"
        raise InputError("the ending does not say the format", remedy, where=path)
    return _BY_ENDING[ending]


def _check(store: Store, place: Path, form: LabelFormat, which: Which, annotators: Sequence[str]) -> None:
    if is_store(place):
        raise InputError("is a store", "choose another file", where=place)
    if which == "events" and form not in ("jsonl", "csv"):
        raise InputError(f"{form} holds no history", "export events as JSONL or CSV", where=place)
    if form != "qrels":
        return
    if not store.scheme.graded:
        raise InputError(f"the scheme {store.scheme.name} has no grades", "export JSONL or CSV", where=place)
    if which == "standing" and len(annotators) != 1:
        fault = "qrels hold one grade per document"
        raise InputError(fault, "choose adjudicated or majority with `which`, or one of `annotators`", where=place)


def _jsonl(rows: Iterable[Outgoing]) -> Iterator[str]:
    for row in rows:
        value = item_record(row.item)
        value["texts"] = row.item.json().get("texts", [])
        if row.item.data:
            value["extra"] = dict(row.item.data)
        yield json.dumps({**value, **said_record(row)}, ensure_ascii=False) + "\n"


def _csv(chosen: StatementSelection) -> Iterator[list[Any]]:
    """A header with every column that a row needs, then the rows; several labels are joined by "|"."""
    rows = [_cells(row) for row in chosen.rows]
    names = list(dict.fromkeys(name for row in rows for name in row))
    yield names
    yield from ([row.get(name, "") for name in names] for row in rows)


def _cells(row: Outgoing) -> dict[str, Any]:
    said = said_record(row)
    extra = {"extra": json.dumps(dict(row.item.data), ensure_ascii=False)} if row.item.data else {}
    labels = {"labels": "|".join(said.pop("labels", []))}
    return {**item_record(row.item), **text_columns(row.item), **extra, **labels, **said}


def _qrels(rows: Iterable[Outgoing], store: Store) -> Iterator[str]:
    """TREC lines in the order of the items. The second column is "model" where no person's label decided, else 0."""
    for row in rows:
        if row.said is None or not row.said.labels:
            continue
        document = next((text.id for text in row.item.texts if text.name != "query"), "")
        if not document or any(part.isspace() for part in document + row.item.topic_id):
            fault = f"the item '{row.item.item_id[:40]}' has no document id that a qrels file can hold"
            raise InputError(fault, "export JSONL or CSV", where=store.path)
        iteration = "model" if row.role == "model" else "0"
        yield f"{row.item.topic_id} {iteration} {document} {store.scheme.grade(row.said.labels[0])}\n"
