"""Labels of files become events of a store: nothing is lost, nothing is doubled, what does not fit is listed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from truerank.errors import InputError
from truerank.judging.events import Draft, Event, Role
from truerank.judging.exchange.matching import Matcher
from truerank.judging.exchange.said import Said, read_said
from truerank.judging.store import Store
from truerank.judging.store_rows import check_draft
from truerank.reports.tables import Column, Table
from truerank.sources import grammar
from truerank.sources.grammar import SourceSpec

__all__ = ["Imported", "Unmatched", "import_labels"]

_LISTED: Final = 20
_SHOWN: Final = 60


class Unmatched(NamedTuple):
    """A record whose item was not found in the store."""

    file: str
    line: int
    topic_id: str
    text: str
    why: str


@dataclass(frozen=True)
class Imported:
    """What became of the records of some files.

    Attributes:
        store: the file.
        records: how many there were.
        added: annotator → events that were added.
        present: records that the store had already.
        unlabelled: records on which nobody said anything.
        irregular: added labels that exclude each other in the scheme, taken over as they are.
        unmatched: records whose item is not in the store.
        models: annotators that are models.
    """

    store: str
    records: int
    added: dict[str, int] = field(default_factory=dict)
    present: int = 0
    unlabelled: int = 0
    irregular: int = 0
    unmatched: tuple[Unmatched, ...] = ()
    models: tuple[str, ...] = ()

    def json(self) -> dict[str, Any]:
        """The outcome as a JSON object."""
        return {
            "store": self.store,
            "records": self.records,
            "added": sum(self.added.values()),
            "annotators": self.added,
            "models": list(self.models),
            "present": self.present,
            "unlabelled": self.unlabelled,
            "irregular": self.irregular,
            "unmatched": [record._asdict() for record in self.unmatched],
        }

    def table(self) -> Table:
        """The records by what became of them."""
        marked = {name: f"{name} (model)" if name in self.models else name for name in self.added}
        rows = [(f"added: {marked[name]}", count) for name, count in self.added.items()]
        rows += [("there already", self.present), ("without a label", self.unlabelled)]
        rows += [("not matched", len(self.unmatched)), ("all", self.records)]
        notes = []
        if self.irregular:
            notes.append(f"{self.irregular:,} of them have labels that the scheme does not let stand together.")
        columns = (Column("records"), Column("number", align="right", format=",d"))
        return Table(f"Imported into {self.store}", columns, tuple(rows), tuple(notes), (len(rows) - 1,))

    def text(self) -> str:
        """The outcome for a terminal, with the first records that were not matched."""
        lines = [
            f"{record.file}:{record.line}: topic {record.topic_id}, '{record.text}': {record.why}"
            for record in self.unmatched[:_LISTED]
        ]
        more = len(self.unmatched) - len(lines)
        lines += [f"… and {more:,} more; --json lists all"] if more > 0 else []
        return "\n".join([self.table().text(), *lines]).rstrip("\n") + "\n"


def import_labels(
    store: Store | str | Path,
    files: str | Path | SourceSpec | Iterable[str | Path | SourceSpec],
    *,
    annotator: str = "",
    role: Role = "person",
    form: str | None = None,
    strict: bool = False,
) -> Imported:
    """Adds the labels of files to a store, in one transaction: all of them or, at a fault, none.

    A record that the store has already (same annotator, item, kind, labels, comment and reason, and same time where
    the file has one) is not added again. Labels of tools that let exclusive labels stand together are taken over as
    they are.

    Args:
        store: an open store, or its file.
        files: JSONL, CSV, TSV, Parquet, doccano, Label Studio, or, for graded schemes, TREC qrels.
        annotator: who said it, where a file does not say.
        role: of annotators that are new and whose file says nothing; what an adjudicator said settles a disagreement.
        form: "jsonl", "csv", "doccano", "labelstudio" or "qrels"; None for what the file looks like.
        strict: raise for bytes that are not UTF-8.

    Returns:
        What was added, what was there, what was not matched.

    Raises:
        InputError: a file cannot be read; a label that the scheme lacks; nobody named as annotator; an annotator with
            another role; no record that matches.
    """
    if not isinstance(store, Store):
        with Store.open(store) as opened:
            return import_labels(opened, files, annotator=annotator, role=role, form=form, strict=strict)
    several = [files] if isinstance(files, (str, Path, SourceSpec)) else list(files)
    work = _Work(store, annotator, role)
    for given in several:
        spec = given if isinstance(given, SourceSpec) else grammar.parse(_with_format(str(given), form))
        for said in read_said(spec, store.scheme, strict=strict):
            work.take(said, spec)
    if not work.records:
        raise InputError("no records in it", "export the labels again", where=", ".join(map(str, several)))
    if len(work.unmatched) == work.records:
        first = work.unmatched[0]
        fault = f"none of the {work.records:,} records is about an item of the store ({first.why})"
        raise InputError(fault, "import into the store of these items", where=first.file, line=first.line)
    return work.written()


class _Work:
    """The records of all files until they are written."""

    def __init__(self, store: Store, annotator: str, role: Role) -> None:
        self._store = store
        self._annotator = annotator
        self._role: Role = role
        self._matcher = Matcher(store)
        self._people = {person.name: person.role for person in store.annotators()}
        self._abouts: dict[str, str] = {}
        self._new: dict[str, Role] = {}
        # Statement → time → the event's number, or -1, -2, … for the first, second, … draft.
        self._history: dict[tuple[Any, ...], dict[str, int]] = {}
        for event in store.events():
            self._history.setdefault(_identity(event), {})[event.at] = event.number
        self._links: dict[tuple[str, int], int] = {}
        self._undone: list[int] = []
        self._drafts: list[Draft] = []
        self.records = self.present = self.unlabelled = self.irregular = 0
        self.unmatched: list[Unmatched] = []

    def take(self, said: Said | int, spec: SourceSpec) -> None:
        """Looks at one record."""
        self.records += 1
        if isinstance(said, int):
            self.unlabelled += 1
            return
        item_id, why = self._matcher.find(said.item)
        if item_id is None:
            text = said.item.text("query") or said.item.item_id or " ".join(text.id for text in said.item.texts)
            topic = said.item.topic_id
            self.unmatched.append(Unmatched(spec.location, said.line, topic, text[:_SHOWN], why))
            return
        name = self._who(said, spec)
        try:
            labels = self._store.scheme.known(said.labels, self._store.item(item_id))
        except InputError as error:
            raise InputError(error.fault, error.remedy, where=spec.location, line=said.line) from error
        kind = said.kind
        if kind == "label" and self._roles()[name] == "adjudicator":
            kind = "adjudicate"
        reason = said.reason or ("not given" if kind == "skip" else "")
        draft = Draft(item_id, name, kind, labels, said.comment, reason, said.seconds, at=said.at)
        try:
            check_draft(draft, self._roles()[name], self._store.path)
        except InputError as error:
            raise InputError(error.fault, error.remedy, where=spec.location, line=said.line) from error
        self._add(draft, said, spec)

    def written(self) -> Imported:
        """Writes everything and says what it was."""
        added: dict[str, int] = {}
        events = self._store.record_history(self._drafts, self._undone, self._annotators())
        for event in events:
            added[event.annotator] = added.get(event.annotator, 0) + 1
        models = tuple(name for name in added if self._roles()[name] == "model")
        return Imported(
            str(self._store.path),
            self.records,
            dict(sorted(added.items())),
            self.present,
            self.unlabelled,
            self.irregular,
            tuple(self.unmatched),
            models,
        )

    def _add(self, draft: Draft, said: Said, spec: SourceSpec) -> None:
        times = self._history.setdefault(_identity(draft), {})
        there = times.get(draft.at) if draft.at else next(iter(times.values()), None)
        if there is not None:
            self.present += 1
            self._link(said, spec, there)
            return
        undoes = 0
        if draft.kind == "undo":
            undoes = 0 if said.undoes is None else self._links.get((spec.location, said.undoes), 0)
            if not undoes:
                fault = "an undo of an event that is not in this file"
                raise InputError(fault, "import the whole history", where=spec.location, line=said.line)
        elif draft.kind != "skip":
            self.irregular += not self._store.scheme.regular(draft.labels, self._store.item(draft.item_id))
        self._drafts.append(draft._replace(token=_token(draft)))
        self._undone.append(undoes)
        times[draft.at] = -len(self._drafts)
        self._link(said, spec, -len(self._drafts))

    def _link(self, said: Said, spec: SourceSpec, reference: int) -> None:
        if said.number is not None:
            self._links[spec.location, said.number] = reference

    def _who(self, said: Said, spec: SourceSpec) -> str:
        name = said.annotator.strip() or self._annotator
        if not name:
            fault = "the file does not say who judged"
            raise InputError(fault, "name them with --annotator", where=spec.location, line=said.line)
        role = self._roles().get(name)
        if role is None:
            self._new[name] = said.role or self._role
        elif said.role is not None and said.role != role:
            fault = f"'{name}' is there as {role}, not as {said.role}"
            raise InputError(fault, "rename one of them", where=spec.location, line=said.line)
        if said.about:
            self._abouts[name] = said.about
        return name

    def _roles(self) -> dict[str, Role]:
        return {**self._people, **self._new}

    def _annotators(self) -> Sequence[tuple[str, Role, str]]:
        return [(name, role, self._abouts.get(name, "")) for name, role in self._new.items()]


def _with_format(text: str, form: str | None) -> str:
    if form is None:
        return text
    names = {"jsonl": "jsonl", "csv": "csv", "doccano": "jsonl", "labelstudio": "json", "qrels": "qrels"}
    if form not in names:
        raise InputError(f"no format '{form}'", f"one of {', '.join(names)}", where=text)
    return f"{text}?format={names[form]}"


def _identity(said: Event | Draft) -> tuple[Any, ...]:
    """What makes two statements the same, but for their time."""
    return (said.annotator, said.item_id, said.kind, frozenset(said.labels), said.comment, said.reason)


def _token(draft: Draft) -> str:
    """An idempotency key, so that two imports at the same time do not double anything either."""
    value = [draft.annotator, draft.item_id, draft.kind, sorted(draft.labels), draft.comment, draft.reason, draft.at]
    return f"import:{hashlib.sha256(json.dumps(value).encode()).hexdigest()[:32]}"
