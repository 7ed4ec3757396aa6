"""Labels of files become events of a store: nothing is lost, nothing is doubled, what does not fit is listed."""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple, cast

from truerank.core.plain import picked
from truerank.core.result import Result
from truerank.errors import InputError
from truerank.judging.definitions import leak_answer
from truerank.judging.item_sources import item_of_row
from truerank.judging.items import Draft, Event, Item, Kind, Role, Text
from truerank.judging.ratings import contradiction_error
from truerank.judging.schemes import Scheme
from truerank.judging.store import Store, check_draft, store_change
from truerank.options import Flag, Votes, command
from truerank.records import Judgment
from truerank.sources import compressed, formats, read_labels, read_qrels
from truerank.sources.grammar import SourceSpec, named_source
from truerank.sources.inputs import input_of
from truerank.sources.rows import Row
from truerank.text.normalising import normalise


class Matcher:
    """The items of a store by id, by their texts, and by the ids of their documents."""

    def __init__(self, store: Store) -> None:
        self._by_key: defaultdict[Hashable, list[str]] = defaultdict(list)
        self._marks: dict[str, tuple[str, str, str, str]] = {}
        for item in store.items():
            self._marks[item.item_id] = _marks(item)
            for key in _keys(item):
                self._by_key[key].append(item.item_id)

    def find(self, item: Item) -> tuple[str | None, str]:
        """The id of the item in the store.

        By the item id; otherwise by the topic with the ids of its documents, or with all texts, or with the query's
        normalised text. Where several fit, the query id, the title, the data set and the variant decide.
        """
        if item.item_id in self._marks:
            return item.item_id, ""
        marks = _marks(item)
        for key in _keys(item):
            found = self._by_key.get(key, [])
            for position, mark in enumerate(marks):
                if len(found) > 1 and mark:
                    narrowed = [item_id for item_id in found if self._marks[item_id][position] == mark]
                    found = narrowed or found
            if len(found) == 1:
                return found[0], ""
            if found:
                return None, f"{len(found)} items fit"
        return None, "no such item in the store"


def _keys(item: Item) -> Iterator[Hashable]:
    """What an item is found by, the most telling first."""
    documents = tuple(text.id for text in item.texts if text.name != "query")
    if documents and all(documents):
        yield ("ids", item.topic_id, documents)
    texts = tuple(normalise(text.text) for text in item.texts)
    if len(texts) > 1:
        yield ("texts", item.topic_id, texts)
    query = normalise(item.text("query"))
    if query:
        yield ("query", item.topic_id, query)


def _marks(item: Item) -> tuple[str, str, str, str]:
    query_id = next((text.id for text in item.texts if text.name == "query"), "")
    return query_id, normalise(item.title), item.dataset, normalise(item.variant)


_SHOWN: Final = 60
LabelFileFormat = Literal["jsonl", "csv", "doccano", "labelstudio", "qrels"]
#: What the formats of labels are called as formats of sources.
_FORMATS: Final = {"jsonl": "jsonl", "csv": "csv", "doccano": "jsonl", "labelstudio": "json", "qrels": "qrels"}


class UnmatchedRecord(NamedTuple):
    """A record whose item was not found in the store."""

    file: str
    line: int
    topic_id: str
    text: str
    why: str


@dataclass(frozen=True, eq=False, repr=False)
class LabelImport(Result, shown_in="truerank.judging.report"):
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
        contradictions: who said two things of one item, and where, if a rule decided that.
    """

    store: str
    records: int
    added: dict[str, int] = field(default_factory=dict)
    present: int = 0
    unlabelled: int = 0
    irregular: int = 0
    unmatched: tuple[UnmatchedRecord, ...] = ()
    models: tuple[str, ...] = ()
    contradictions: tuple[str, ...] = ()

    def json(self) -> dict[str, Any]:
        """The outcome as a JSON object."""
        added = sum(self.added.values())
        names = "annotators=added, models, present, unlabelled, irregular, unmatched, contradictions"
        return {"store": self.store, "records": self.records, "added": added, **picked(self, names)}


@command
def import_(
    store: Annotated[str | Path | Store, Flag(metavar="STORE", positional=True, reads=Path)],
    files: Annotated[
        str | Path | SourceSpec | Iterable[str | Path | SourceSpec],
        Flag(metavar="[NAME=]FILE...", positional=True, reads=list[str]),
    ],
    *,
    role: Role = "person",
    votes: Literal["majority", "first", "last"] = "majority",
    file_format: LabelFileFormat | None = None,
    strict: bool = False,
) -> LabelImport:
    """Adds the labels of files to a store.

    All of them are added or, at a fault, none. A record is matched to an item by its item id, or by topic and text;
    what does not match is listed. A record that the store has already (same annotator, item, kind, labels, comment and
    reason, and same time where the file has one) is not added again. Labels of tools that let exclusive labels stand
    together are taken over as they are.

    Args:
        store: the store; in Python also an open one.
        files: JSONL, CSV, TSV, Parquet, doccano, Label Studio, or, for graded schemes, TREC qrels; NAME=FILE says who
            judged, where the file does not.
        role: of annotators that are new and whose file says nothing; what an adjudicator said settles a disagreement.
        votes: which label counts where an annotator contradicts himself; with majority that is an error. Labels with
            different times are a history and are all taken.
        file_format: of the files; by default what they look like.
        strict: treat bytes that are not UTF-8 as an error.

    Returns:
        What was added, what was there, what was not matched; STORE.import-HASH.manifest.json names the files.

    Raises:
        InputError: a file cannot be read; a label that the scheme lacks; nobody named as annotator; an annotator with
            another role; no record that matches.

    Examples:

        truerank judge import leakage.judged ann=annotated-by-ann.jsonl

        truerank judge import leakage.judged label-studio.json agreed.csv

        truerank judge import graded.judged nist=nist.qrels
    """
    several = [files] if isinstance(files, (str, Path, SourceSpec)) else list(files)
    form = None if file_format is None else _FORMATS[file_format]
    named = [("", given) if isinstance(given, SourceSpec) else named_source(str(given), form) for given in several]
    with Store.of(store) as opened:
        work = _Work(opened, role, votes)
        for name, spec in named:
            for said in _statements(spec, opened.scheme, strict):
                work.take(said, spec, name)
        if not work.records:
            raise InputError("no records in it", "export the labels again", where=", ".join(map(str, several)))
        if len(work.unmatched) == work.records:
            first = work.unmatched[0]
            fault = f"none of the {work.records:,} records is about an item of the store ({first.why})"
            raise InputError(fault, "import into the store of these items", where=first.file, line=first.line)
        inputs = [input_of("files", spec, name) for name, spec in named]
        options = {"role": role, "votes": votes, "file_format": file_format, "strict": strict}
        with store_change("judge import", opened, inputs, options) as job:
            found = work.written()
            job.skipped = {"unlabelled": found.unlabelled, "unmatched": len(found.unmatched)}
    return found


class _Work:
    """The records of all files until they are written."""

    def __init__(self, store: Store, role: Role, votes: Votes) -> None:
        self._store = store
        self._role: Role = role
        self._votes: Votes = votes
        self._labels: dict[tuple[str, str, str], tuple[tuple[str, ...], str]] = {}
        self._place: tuple[str, int | None] = ("", None)
        self.contradictions: list[str] = []
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
        self.unmatched: list[UnmatchedRecord] = []

    def take(self, said: Judgment, spec: SourceSpec, annotator: str = "") -> None:
        """Looks at one record; the annotator counts where the record names none."""
        self.records += 1
        if not said.labels and said.kind in ("", "open"):
            self.unlabelled += 1
            return
        scheme = self._store.scheme
        item = _item(said, scheme, spec)
        item_id, why = self._matcher.find(item)
        if item_id is None:
            text = item.text("query") or item.item_id or " ".join(text.id for text in item.texts)
            self.unmatched.append(UnmatchedRecord(spec.location, said.line or 0, item.topic_id, text[:_SHOWN], why))
            return
        name = self._who(said, spec, annotator)
        kind = cast(Kind, said.kind or "label")
        if kind == "label" and self._roles()[name] == "adjudicator":
            kind = "adjudicate"
        reason = said.reason or ("not given" if kind == "skip" else "")
        try:
            # For `leak` whatever says something about a leak, as everywhere.
            answer = leak_answer(tuple(said.labels)) if scheme.name == "leak" else None
            labels = scheme.known(said.labels if answer is None else (answer,), self._store.item(item_id))
            draft = Draft(item_id, name, kind, labels, said.comment, reason, said.seconds, at=said.at)
            check_draft(draft, self._roles()[name], self._store.path)
        except InputError as error:
            raise InputError(error.fault, error.remedy, where=spec.location, line=said.line) from error
        if self._heard(said, item_id, name, kind, labels):
            self._add(draft, said, spec)

    def _heard(self, said: Judgment, item_id: str, name: str, kind: Kind, labels: tuple[str, ...]) -> bool:
        """Whether a label counts; one that contradicts an earlier one of these files is noted.

        Labels that carry different times are a history: who changes their mind does not contradict themselves.
        """
        if kind not in ("label", "adjudicate"):
            return True
        key = (item_id, name, kind)
        earlier = self._labels.setdefault(key, (labels, said.at))
        if set(earlier[0]) == set(labels) or (said.at and earlier[1] and said.at != earlier[1]):
            return True
        self.contradictions.append(f"'{name}' on {item_id} ({said.where}:{said.line})")
        self._place = (said.where, said.line)
        return self._votes == "last"

    def written(self) -> LabelImport:
        """Writes everything and says what it was."""
        if self.contradictions and self._votes == "majority":
            raise contradiction_error(self.contradictions, self._place)
        new = [(name, role, self._abouts.get(name, "")) for name, role in self._new.items()]
        added = Counter(event.annotator for event in self._store.record_history(self._drafts, self._undone, new))
        models = tuple(name for name in added if self._roles()[name] == "model")
        return LabelImport(
            str(self._store.path), self.records, dict(sorted(added.items())), self.present, self.unlabelled,
            self.irregular, tuple(self.unmatched), models, tuple(self.contradictions),
        )  # fmt: skip

    def _add(self, draft: Draft, said: Judgment, spec: SourceSpec) -> None:
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
        value = [
            draft.annotator, draft.item_id, draft.kind, sorted(draft.labels), draft.comment, draft.reason, draft.at
        ]  # fmt: skip
        # An idempotency key, so that two imports at the same time do not double anything either.
        token = f"import:{hashlib.sha256(json.dumps(value).encode()).hexdigest()[:32]}"
        self._drafts.append(draft._replace(token=token))
        self._undone.append(undoes)
        times[draft.at] = -len(self._drafts)
        self._link(said, spec, -len(self._drafts))

    def _link(self, said: Judgment, spec: SourceSpec, reference: int) -> None:
        if said.number is not None:
            self._links[spec.location, said.number] = reference

    def _who(self, said: Judgment, spec: SourceSpec, annotator: str) -> str:
        name = said.annotator.strip() or annotator
        if not name:
            fault = "the file does not say who judged"
            raise InputError(fault, "give NAME=FILE", where=spec.location, line=said.line)
        role = self._roles().get(name)
        if role is None:
            self._new[name] = cast(Role, said.role or self._role)
        elif said.role and said.role != role:
            fault = f"'{name}' is there as {role}, not as {said.role}"
            raise InputError(fault, "rename one of them", where=spec.location, line=said.line)
        if said.about:
            self._abouts[name] = said.about
        return name

    def _roles(self) -> dict[str, Role]:
        return {**self._people, **self._new}


def _statements(spec: SourceSpec, scheme: Scheme, strict: bool) -> Iterator[Judgment]:
    """The judgments of a file; for graded schemes of TREC qrels, too."""
    if spec.scheme == "file":
        form = formats.detect(compressed.checked_file(spec.path), spec.format)
        if form == "qrels" or (form in ("tsv", "lines") and scheme.graded and _is_qrels(spec)):
            return _of_qrels(spec, scheme)
    return read_labels(spec)


def _is_qrels(spec: SourceSpec) -> bool:
    with compressed.checked_file(spec.path).open("rb") as stream:
        cells = stream.readline(4096).split()
    return len(cells) == 4 and cells[3].lstrip(b"-").isdigit()


def _of_qrels(spec: SourceSpec, scheme: Scheme) -> Iterator[Judgment]:
    if not scheme.graded:
        remedy = "import them into a store of a relevance scheme"
        raise InputError(f"the scheme {scheme.name} has no grades", remedy, where=spec.location)
    names = {choice.grade: choice.name for choice in scheme.choices}
    for line, qrel in enumerate(read_qrels(SourceSpec(**{**vars(spec), "format": None})), start=1):
        if qrel.relevance not in names:
            there = ", ".join(str(grade) for grade in sorted(grade for grade in names if grade is not None))
            fault = f"the scheme {scheme.name} has no grade {qrel.relevance} (topic {qrel.topic_id})"
            raise InputError(fault, f"there are {there}", where=spec.location)
        role = "model" if qrel.iteration == "model" else ""
        yield Judgment(
            qrel.topic_id, "", "", (names[qrel.relevance],), doc_id=qrel.doc_id, kind="label", role=role,
            where=spec.location, line=line,
        )  # fmt: skip


def _item(said: Judgment, scheme: Scheme, spec: SourceSpec) -> Item:
    """What a record says about its item, for finding it; with an item id nothing else is needed."""
    if not said.values:
        return Item("", said.topic_id, texts=(Text("document", "", said.doc_id),))
    try:
        return item_of_row(Row(said.line or 0, said.values), scheme, spec.location)
    except InputError:
        if not said.item_id:
            raise
        return Item(said.item_id, said.topic_id)


def _identity(said: Event | Draft) -> tuple[Any, ...]:
    """What makes two statements the same, but for their time."""
    return (said.annotator, said.item_id, said.kind, frozenset(said.labels), said.comment, said.reason)
