"""Annotation logs: which documents a person was shown for a query, in which order, and which of them answered it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

from truerank.errors import InputError
from truerank.sources import columns, grammar, hub, irds
from truerank.sources.grammar import SourceSpec
from truerank.sources.query_files import as_text, well_formed
from truerank.sources.rows import Row, column_rows, rows
from truerank.sources.streamed import StreamedSource

#: The columns that are read.
COLUMNS: Final[tuple[str, ...]] = ("passages", "query_id", "query", "query_type", "answers")
#: What MS MARCO QnA writes in the place of an answer.
NO_ANSWER: Final = "No Answer Present."
#: What can be wrong with a record, and what was done about it.
FAULTS: Final[Mapping[str, str]] = {
    "no-query-id": "no id of the query; the record's key or line stands for it",
    "no-query": "no text of the query",
    "no-type": "no type of the query, although others have one",
    "no-answers": "no field of answers, although others have one",
    "nothing-shown": "no document was shown",
    "no-text": "a shown document without text and without id; it keeps its position",
    "no-selection": "it is not said whether a document was selected; taken for not selected",
    "bad-selection": "a selection that is neither 0 nor 1; taken for not selected",
    "selected-not-shown": "a selected document that was not shown; left out",
    "repeated-document": "a document that was shown for the query before; it keeps its position",
    "repeated-query": "a query id that was read before; the record is left out",
    "answer-without-selection": "an answer, but no document selected",
    "selection-without-answer": "a selected document, but no answer",
    "repaired": "bytes that are not UTF-8; the record is read as latin-1",
}
_EXAMPLES: Final = 5
_OF_FIELDS: Final = frozenset(("no-type", "no-answers"))
_TYPES: Final = ("query_type", "type", "category")
#: What is read of a record, and the names of the columns that may hold it, likeliest first.
_ROLES: Final[Mapping[str, Sequence[str]]] = {
    "id": columns.ID_NAMES,
    "query": [name for name in columns.TEXT_NAMES if name not in _TYPES],
    "type": _TYPES,
    "shown": ("shown", "passages", "documents", "docs", "results", "candidates"),
    "selected": ("selected", "selected_ids", "chosen", "relevant"),
    "answers": ("answers", "answer"),
}
_DOC_IDS: Final = ("doc_id", "docid", "id", "_id", "passage_id", "pid", "document_id")
_DOC_TEXTS: Final = ("passage_text", "text", "body", "contents", "passage")
_MARKS: Final = ("is_selected", "selected")


class ShownPassage(NamedTuple):
    """One document as it was shown; a log that knows documents by their texts only leaves the id empty."""

    doc_id: str
    text: str = ""
    url: str = ""
    selected: bool = False


class Annotation(NamedTuple):
    """What one person saw and did for one query: the documents in the order shown, and the answers written."""

    query_id: str
    query: str
    query_type: str
    shown: tuple[ShownPassage, ...]
    answers: tuple[str, ...] = ()

    @property
    def positions(self) -> list[int]:
        """Where the selected documents stood, counted from 0."""
        return [position for position, one in enumerate(self.shown) if one.selected]

    @property
    def survived(self) -> bool:
        """Whether any document was selected, so that the query has a judgment."""
        return any(one.selected for one in self.shown)


class LogCounts(NamedTuple):
    """What was read: all records, those handed on, and the faults by kind, with the places of the first few."""

    read: int = 0
    kept: int = 0
    faults: Mapping[str, int] = {}
    examples: Mapping[str, tuple[str, ...]] = {}


def open_annotations(spec: str | SourceSpec, *, strict: bool = False) -> AnnotationLog:
    """Opens an annotation log.

    MS MARCO QnA v2.1 as one JSON object of columns, row by row as JSON, JSONL or Parquet, or `hf:…/ms_marco/v2.1`;
    `irds:msmarco-qna/dev` and other data sets whose judgments name every document shown, in order. Logs of one's own:
    JSONL, JSON, CSV or TSV with a header and the columns `query_id`, `query`, `shown`, `selected` (and `query_type`),
    where `shown` and `selected` are lists of ids (separated by blanks in CSV and TSV) or `shown` holds objects with
    `doc_id`, `text`, `url` and `selected`.

    Args:
        strict: raise for bytes that are not UTF-8.
    """
    return AnnotationLog(grammar.parse(spec) if isinstance(spec, str) else spec, strict=strict)


class AnnotationLog(StreamedSource):
    """The records of one log in its order; memory grows by a few bytes for each query id, to find repeated ones.

    Args:
        strict: raise for bytes that are not UTF-8.
    """

    def __init__(self, spec: SourceSpec, *, strict: bool = False) -> None:
        super().__init__(spec, strict=strict, of_irds="qrels")
        self._reading = _Reading(spec.location)
        if self._form not in ("qna", "json", "jsonl", "csv", "tsv", "parquet", ""):
            fault = f"a file of the kind '{self._form}' holds no annotations"
            raise InputError(fault, "give MS MARCO QnA JSON, JSONL, CSV or TSV", where=spec.location)

    @property
    def log_counts(self) -> LogCounts:
        """What the last iteration read."""
        return self._reading.counts()

    def __iter__(self) -> Iterator[Annotation]:
        self._reading = reading = _Reading(self.spec.location)
        for row in self._rows():
            found = reading.annotation(row)
            if found is not None:
                yield found
        if not reading.read:
            raise self._nothing("records")

    def blocks(self, size: int) -> Iterator[list[Annotation]]:
        """The records in blocks of so many, the last one smaller, none empty."""
        stream = iter(self)
        while block := list(islice(stream, size)):
            yield block

    def _rows(self) -> Iterator[Row]:
        if self.spec.scheme == "irds":
            return irds.annotated_queries(self.spec.location)
        if self.spec.scheme == "hf":
            return hub.records(self.spec, strict=self._strict)
        if self._form == "qna":
            return column_rows(self.spec.path, COLUMNS, ("passages", "query"), strict=self._strict)
        return rows(self.spec.path, self._form, strict=self._strict)


class _Reading:
    """One pass over a log: makes annotations of rows and counts what is wrong with them."""

    def __init__(self, where: str) -> None:
        self.read = self._kept = 0
        self._where = where
        self._faults: Counter[str] = Counter()
        self._examples: dict[str, list[str]] = {}
        self._names: tuple[str, ...] = ()
        self._columns: Mapping[str, str] = {}
        #: Fields that at least one record has; only then is it a fault of another to lack it.
        self._seen: set[str] = set()
        self._ids: set[int] = set()

    def counts(self) -> LogCounts:
        kinds = [kind for kind in FAULTS if kind in self._faults and (kind not in _OF_FIELDS or kind in self._seen)]
        examples = {kind: tuple(self._examples[kind]) for kind in kinds}
        return LogCounts(self.read, self._kept, {kind: self._faults[kind] for kind in kinds}, examples)

    def annotation(self, row: Row) -> Annotation | None:
        self.read += 1
        values = {role: row.values.get(name) for role, name in self._columns_of(row).items()}
        identifier = (as_text(values.get("id")) or "").strip()
        if not identifier:
            key = row.values.get("key")
            identifier = f"line-{row.line}" if key is None else f"key-{key}"
            self._fault("no-query-id", identifier)
        mark = hash(identifier)
        if mark in self._ids:
            self._fault("repeated-query", identifier)
            return None
        self._ids.add(mark)
        query = (as_text(values.get("query")) or "").strip()
        if not query:
            self._fault("no-query", identifier)
        if row.repaired:
            self._fault("repaired", identifier)
        shown = self._shown(values.get("shown"), values.get("selected"), identifier)
        kind = self._field(values.get("type"), "no-type", identifier)
        answers = self._read_answers(values.get("answers"), shown, identifier)
        self._kept += 1
        return Annotation(identifier, well_formed(query), as_text(kind) or "", shown, answers)

    def _fault(self, kind: str, place: str) -> None:
        self._faults[kind] += 1
        examples = self._examples.setdefault(kind, [])
        if len(examples) < _EXAMPLES:
            examples.append(place)

    def _columns_of(self, row: Row) -> Mapping[str, str]:
        """The columns of a record by role, of those that it has."""
        names = tuple(row.values)
        if names != self._names or not self._columns:
            there = {role: name for role, wanted in _ROLES.items() if (name := columns.named(names, wanted))}
            if not ("shown" in there or self._columns or "key" in names):
                fault = f"no column 'shown' or 'passages'; there are {', '.join(names[:12]) or 'none'}"
                raise InputError(fault, "rename the columns", where=self._where, line=row.line)
            self._names, self._columns = names, there
        return self._columns

    def _field(self, value: Any, fault: str, identifier: str) -> Any:
        """A field that may be missing in all records, but not in some."""
        if value is None or value == "":
            self._fault(fault, identifier)
            return None
        self._seen.add(fault)
        return value

    def _read_answers(self, value: Any, shown: tuple[ShownPassage, ...], identifier: str) -> tuple[str, ...]:
        found = self._field(value, "no-answers", identifier)
        if found is None:
            return ()
        texts = [found] if isinstance(found, str) else found if isinstance(found, list) else []
        answers = tuple(
            well_formed(text) for text in texts if isinstance(text, str) and text.strip() and text.strip() != NO_ANSWER
        )
        survived = any(one.selected for one in shown)
        if answers and not survived:
            self._fault("answer-without-selection", identifier)
        if survived and not answers:
            self._fault("selection-without-answer", identifier)
        return answers

    def _shown(self, value: Any, selected: Any, identifier: str) -> tuple[ShownPassage, ...]:
        if isinstance(value, str):
            value = value.split()
        if isinstance(value, dict):
            # Hugging Face stores a list of records as a record of lists.
            lists = {name: column for name, column in value.items() if isinstance(column, list)}
            length = max(map(len, lists.values()), default=0)
            value = [{name: column[i] for name, column in lists.items() if i < len(column)} for i in range(length)]
        if not isinstance(value, list) or not value:
            self._fault("nothing-shown", identifier)
            return ()
        chosen = _identifiers(selected)
        shown = tuple(self._one(entry, chosen, identifier) for entry in value)
        marks = {one.doc_id or one.text for one in shown}
        for doc_id in sorted(chosen - {one.doc_id for one in shown}) if chosen else ():
            self._fault("selected-not-shown", f"{identifier}: {doc_id}")
        for _ in range(len(shown) - len(marks)):
            self._fault("repeated-document", identifier)
        return shown

    def _one(self, entry: Any, chosen: frozenset[str] | None, identifier: str) -> ShownPassage:
        if not isinstance(entry, dict):
            doc_id = (as_text(entry) or "").strip()
            if not doc_id:
                self._fault("no-text", identifier)
            return ShownPassage(well_formed(doc_id), selected=chosen is not None and doc_id in chosen)
        doc_id = next((str(entry[name]).strip() for name in _DOC_IDS if entry.get(name) is not None), "")
        text = next((entry[name] for name in _DOC_TEXTS if isinstance(entry.get(name), str)), "")
        url = as_text(entry.get("url")) or ""
        if not doc_id and not text.strip():
            self._fault("no-text", identifier)
        selected = doc_id in chosen if chosen is not None else self._mark(entry, identifier)
        return ShownPassage(well_formed(doc_id), well_formed(text), well_formed(url), selected)

    def _mark(self, entry: Mapping[str, Any], identifier: str) -> bool:
        mark = next((entry[name] for name in _MARKS if entry.get(name) is not None), None)
        if mark not in (0, 1):
            self._fault("no-selection" if mark is None else "bad-selection", identifier)
        return bool(mark == 1)


def _identifiers(value: Any) -> frozenset[str] | None:
    """The ids of the selected documents; None where the log marks the documents themselves."""
    if value is None:
        return None
    entries: Sequence[Any] = value.split() if isinstance(value, str) else value if isinstance(value, list) else [value]
    return frozenset(well_formed((as_text(entry) or "").strip()) for entry in entries)
