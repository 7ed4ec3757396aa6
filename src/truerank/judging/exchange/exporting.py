"""The labels of a store as files of other tools: all statements, the history, or one answer per item.

Of a damaged store, what can still be read.
"""

from __future__ import annotations

import contextlib
import csv
import io
import itertools
import json
import shutil
import sqlite3
import tempfile
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, NamedTuple

from truerank.core.plain import picked, plain
from truerank.core.result import Result
from truerank.core.tables import is_formula
from truerank.errors import InputError, OptionError
from truerank.judging.database import connected
from truerank.judging.items import Annotator, Draft, Event, Item, Role, Standing
from truerank.judging.ratings import decide
from truerank.judging.schemes import Scheme
from truerank.judging.store import (
    EVENT,
    FITS,
    Store,
    append_history,
    event_of,
    fill,
    is_store,
    item_of,
    refuse_older,
    store_input,
)
from truerank.loading import load_json
from truerank.options import Flag, Names, command
from truerank.work.runs import run as started

Which = Literal["standing", "events", "adjudicated", "majority"]
LabelFormat = Literal["jsonl", "csv", "doccano", "qrels"]

#: What each rule says, for reports.
RULES: Final = {
    "standing": "every annotator's standing labels",
    "events": "the whole history",
    "adjudicated": "the adjudication of an item; without one the labels on which all who labelled it agree",
    "majority": "the adjudication of an item; without one the labels of more than half of those who labelled it",
}


class Outgoing(NamedTuple):
    """One statement about an item, or none (`said` is None) for an item on which nobody said anything.

    `by` are those whose labels decided, where a rule made one answer of several.
    """

    item: Item
    said: Standing | Event | None
    role: Role = "person"
    about: str = ""
    by: tuple[str, ...] = ()


class StatementSelection(NamedTuple):
    """The statements to write, in the order of the items, and the items for which the rule gave no answer."""

    rows: tuple[Outgoing, ...]
    which: Which
    left_out: tuple[str, ...] = ()
    open: int = 0
    models: tuple[str, ...] = ()


def select(
    store: Store, which: Which = "standing", *, annotators: Sequence[str] = (), include_models: bool | None = None
) -> StatementSelection:
    people = {person.name: person for person in store.annotators()}
    for name in annotators:
        store.annotator(name)
    models = which in ("standing", "events") if include_models is None else include_models
    named = [people[name] for name in annotators] if annotators else list(people.values())
    chosen = {person.name: person for person in named if models or person.role != "model" or annotators}

    def outgoing(item: Item, said: Standing | Event) -> Outgoing:
        return Outgoing(item, said, people[said.annotator].role, people[said.annotator].about)

    if which == "events":
        events = [outgoing(store.item(e.item_id), e) for e in store.events() if e.annotator in chosen]
        return StatementSelection(tuple(events), which, models=_models(events))
    standing: defaultdict[str, list[Outgoing]] = defaultdict(list)
    for said in store.standing():
        if said.annotator in chosen:
            standing[said.item_id].append(outgoing(store.item(said.item_id), said))
    if which == "standing":
        every = [row for item in store.items() for row in standing.get(item.item_id, [Outgoing(item, None)])]
        return StatementSelection(
            tuple(every), which, open=sum(row.said is None for row in every), models=_models(every)
        )
    rows, left_out = [], []
    for item_id, said_of_item in standing.items():
        answer = _answer(said_of_item, which)
        if answer is not None:
            rows.append(answer)
        elif any(row.said is not None and row.said.kind == "label" for row in said_of_item):
            left_out.append(item_id)
    answered = {row.item.item_id for row in rows}
    open_items = sum(item_id not in answered for item_id in store.item_ids()) - len(left_out)
    return StatementSelection(tuple(rows), which, tuple(left_out), open_items, _models(rows))


def _answer(rows: Sequence[Outgoing], which: Which) -> Outgoing | None:
    """The one answer of an item; None where the rule gives none."""
    settled = [row for row in rows if row.said is not None and row.said.kind == "adjudicate"]
    if settled:
        last = max(settled, key=lambda row: row.said.at if row.said else "")
        return last._replace(by=_names([last]))
    said = [row for row in rows if row.said is not None and row.said.kind == "label"]
    heard = [(row.said.annotator, row.said.labels) for row in said if row.said]
    labels = decide(heard, "unanimous" if which == "adjudicated" else "majority")
    if labels is None:
        return None
    agreeing = [row for row in said if row.said is not None and row.said.labels == labels]
    role: Role = "model" if all(row.role == "model" for row in agreeing) else "person"
    item = agreeing[0].item
    name = heard[0][0] if len(said) == 1 else which
    at = max(row.said.at for row in agreeing if row.said)
    answer = Standing(item.item_id, name, "label", labels, "", "", at, 0.0)
    return Outgoing(item, answer, role, by=_names(agreeing))


def _names(rows: Iterable[Outgoing]) -> tuple[str, ...]:
    return tuple(
        f"{row.said.annotator} (model)" if row.role == "model" else row.said.annotator for row in rows if row.said
    )


def _models(rows: Iterable[Outgoing]) -> tuple[str, ...]:
    names = {row.said.annotator for row in rows if row.said is not None and row.role == "model"}
    names |= {name.removesuffix(" (model)") for row in rows for name in row.by if name.endswith(" (model)")}
    return tuple(sorted(names))


def item_record(item: Item) -> dict[str, Any]:
    """The item's columns; what is empty is left out."""
    query = next((text for text in item.texts if text.name == "query"), None)
    value: dict[str, Any] = {"item_id": item.item_id, "topic_id": item.topic_id}
    if query is not None:
        value |= {"query_id": query.id, "query_text": query.text}
    for name in ("title", "description", "narrative", "variant", "dataset", "stratum", "score", "probability"):
        value[name] = getattr(item, name)
    return {key: part for key, part in value.items() if part not in ("", None)}


def text_columns(item: Item) -> dict[str, str]:
    """The texts besides the query as columns: V1, V1_id, V1_url; passage_1, …; document with doc_id and url."""
    columns: dict[str, str] = {}
    for text in item.texts:
        if text.name == "query":
            continue
        name = text.name.replace(" ", "_")
        id_name, url_name = ("doc_id", "url") if name == "document" else (f"{name}_id", f"{name}_url")
        columns[name] = text.text
        columns |= {key: part for key, part in ((id_name, text.id), (url_name, text.url)) if part}
    return columns


def said_record(row: Outgoing) -> dict[str, Any]:
    """Who said what; for an item without a label only that it is open."""
    said = row.said
    if said is None:
        return {"kind": "open"}
    value: dict[str, Any] = {"annotator": said.annotator, "role": row.role, "about": row.about, "kind": said.kind}
    value |= {"labels": list(said.labels), "comment": said.comment, "reason": said.reason}
    value |= {"seconds": said.seconds, "at": said.at, "by": ", ".join(row.by)}
    if isinstance(said, Event):
        value |= {"number": said.number, "token": said.token, "undoes": said.undoes}
    return {key: part for key, part in value.items() if part not in ("", None, [], 0.0)}


#: Background colours of the groups in turn; labels that stand alone are red.
_COLOURS: Final = ("#8BC34A", "#FFEB3B", "#4FC3F7", "#CE93D8", "#FFB74D", "#A1887F")
_ALONE: Final = "#F44336"
_KEYS: Final = frozenset("0123456789abcdefghijklmnopqrstuvwxyz")


def doccano_lines(rows: Iterable[Outgoing]) -> Iterator[str]:
    """One line per statement: `text` and `label` as doccano reads them, everything else as its metadata."""
    for number, row in enumerate(rows, start=1):
        said, texts = said_record(row), row.item.texts
        # It shows one text: the query alone where it is all there is.
        shown = texts[0].text if len(texts) == 1 else "\n\n".join(f"[{text.name}] {text.text}" for text in texts)
        value: dict[str, Any] = {"id": number, "text": shown, "label": said.pop("labels", []), **item_record(row.item)}
        if len(texts) > 1:
            value["texts"] = plain(texts)
        if row.item.data:
            value["extra"] = dict(row.item.data)
        yield json.dumps({**value, **said}, ensure_ascii=False) + "\n"


def label_config(scheme: Scheme) -> str:
    """The labels of a scheme as doccano's label import reads them."""
    colours = {group.name: _COLOURS[place % len(_COLOURS)] for place, group in enumerate(scheme.groups)}
    labels = [
        {
            "id": number,
            "text": choice.name,
            "prefixKey": None,
            "suffixKey": choice.key if choice.key in _KEYS else None,
            "backgroundColor": _ALONE if choice.alone else colours.get(choice.group, _COLOURS[0]),
            "textColor": "#ffffff" if choice.alone else "#000000",
        }
        for number, choice in enumerate(scheme.choices, start=1)
    ]
    return json.dumps(labels, indent=2, ensure_ascii=False) + "\n"


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
    refuse_older(path)
    with tempfile.TemporaryDirectory(prefix="truerank-") as temporary:
        copy, made = Path(temporary) / "copy", Path(temporary) / path.name
        shutil.copyfile(path, copy)
        wal = path.with_name(f"{path.name}-wal")
        if wal.is_file():
            shutil.copyfile(wal, copy.with_name("copy-wal"))
        with contextlib.closing(sqlite3.connect(copy)) as connection:
            connection.create_function("crc32", 1, zlib.crc32)
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
    items = {item.item_id: item for item in (item_of(body, path) for (body,) in bodies)}
    people = {row[0]: Annotator(*row) for row in _rows(damaged, "annotators", "name", "role, about").values()}
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
                draft = Draft(*event[2:10], at=event.at)
                back = numbers[event.undoes] if event.undoes is not None else 0
                numbers[event.number] = append_history(connection, [draft], [back])[0].number
        connection.execute("COMMIT")
    return lost + missing + len(events) - len(numbers)


def _rows(connection: sqlite3.Connection, table: str, key: str, columns: str) -> dict[Any, tuple[Any, ...]]:
    """The rows of a table that can be read from its beginning and from its end and are as they were written, by key."""
    names = key.split(", ")
    found: dict[Any, tuple[Any, ...]] = {}
    for order in ("ASC", "DESC"):
        asked = ", ".join(f"{name} {order}" for name in names)
        with contextlib.suppress(sqlite3.Error, UnicodeError):
            for row in connection.execute(
                f"SELECT {key}, {columns} FROM {table} WHERE {FITS.get(table, 1)} ORDER BY {asked}"
            ):
                found.setdefault(row[: len(names)], row)
    return dict(sorted(found.items(), key=lambda one: tuple(map(repr, one[0])))) if len(names) > 1 else found


def _numbered(connection: sqlite3.Connection, table: str, key: str, columns: str) -> tuple[list[tuple[Any, ...]], int]:
    """The rows of a table with numbers from 1, in order, and how many of those numbers have none."""
    found = {row[0]: row[1:] for (number,), row in _rows(connection, table, key, columns).items() if number > 0}
    last = max(found, default=0)
    with contextlib.suppress(sqlite3.Error, UnicodeError):
        for (number,) in connection.execute("SELECT seq FROM sqlite_sequence WHERE name = ?", (table,)):
            last = number if isinstance(number, int) and last < number <= last + _MOST else last
    asked = f"SELECT {columns} FROM {table} WHERE {FITS[table]}"
    for number in range(1, min(last, _MOST) + 1):
        if number not in found:
            with contextlib.suppress(sqlite3.Error, UnicodeError):
                row = connection.execute(f"{asked} AND {key} = ?", (number,)).fetchone()
                if row is not None:
                    found[number] = row
    return [found[number] for number in sorted(found)], last - len(found)


_BY_ENDING: Final[dict[str, LabelFormat]] = {
    ".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".qrels": "qrels",
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
        beside: further files: label configuration.
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
        out: the file; FILE.manifest.json stands beside it, for doccano also `FILE.label_config.json`.
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
        return _Content(doccano_lines(chosen.rows), {"label_config.json": label_config(store.scheme)})
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
