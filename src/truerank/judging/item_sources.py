"""Items from whatever a user has: audits, tables, runs."""

from __future__ import annotations

import contextlib
import datetime
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import polars as pl

from truerank.errors import InputError
from truerank.judging.items import Item, Text, content_id
from truerank.judging.schemes import Scheme
from truerank.loading import json_file, load_json
from truerank.records import Topic
from truerank.sources import compressed, formats, grammar, read_qrels, read_run, read_topics
from truerank.sources.grammar import SourceSpec
from truerank.sources.labels import (
    DATASET_NAMES,
    PROBABILITY_NAMES,
    QUERY_ID_NAMES,
    QUERY_NAMES,
    SIMILARITY_NAMES,
    TOPIC_NAMES,
)
from truerank.sources.lines import line_blocks
from truerank.sources.query_files import as_text, number_in, well_formed
from truerank.sources.rows import Row, rows
from truerank.text.normalising import normalise
from truerank.text.printable import first_few
from truerank.work.artifacts import as_written, written_by

_NEEDED: Final = ("test", "topic_id", "field", "topic_text", "query_id", "query_text", "similarity")
_REDACTED: Final = "hmac:"


def is_audit(path: Path) -> bool:
    """Whether a path is the folder of a leakage audit, or its candidates."""
    return (path / "candidates.parquet").is_file() or path.name == "candidates.parquet"


def audit_items(path: Path) -> Iterator[Item]:
    """The candidates of a leakage audit, as items without an id, with the topic as far as the folder knows it.

    A topic's texts come from the test set that the manifest names, if it still is where it was, otherwise from the
    audit's own files, which lack the fields that were not compared. The score is the highest similarity of the
    topic's texts; the variant is the most similar one.
    """
    folder = path if path.is_dir() else path.parent
    file = folder / "candidates.parquet"
    beside = [name for name in ("neighbours.parquet",) if (folder / name).is_file()]
    with written_by("leakage audit", folder, file.name, *beside):
        frame = pl.read_parquet(file, glob=False)
        if lacking := [name for name in _NEEDED if name not in frame.columns]:
            raise ValueError(f"no column '{lacking[0]}'")
    if frame.is_empty():
        raise InputError("no candidates in it", "audit with a lower --floor", where=file)
    if frame["query_text"].str.starts_with(_REDACTED).all():
        raise InputError("the audit is redacted: there is nothing to read", "audit without --redact", where=file)
    topics = _from_rows(frame)
    with contextlib.suppress(pl.exceptions.PolarsError, OSError):
        columns = ["test", "topic_id", "field", "topic_text"]
        neighbours = pl.read_parquet(folder / "neighbours.parquet", columns=columns, glob=False)
        topics |= _from_rows(neighbours)
    # Completed from the test set where that agrees.
    for (test, topic_id), topic in _from_sources(folder).items():
        seen = topics.get((test, topic_id))
        if seen is None or not seen.title or normalise(seen.title) == normalise(topic.title):
            topics[test, topic_id] = topic
    for pair in _pairs(frame):
        yield pair.item(topics.get((pair.test, pair.topic_id), Topic(pair.topic_id, "")))


@dataclass
class _Pair:
    """The rows of one topic and query."""

    test: str
    topic_id: str
    query_id: str
    query_text: str
    score: float
    sources: dict[str, None] = field(default_factory=dict)
    similarities: dict[str, float] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    variant: str = ""

    def add(self, row: Mapping[str, Any]) -> None:
        """Takes a row over; rows come with the highest similarity first."""
        name = row["field"]
        if "source" in row:
            self.sources[row["source"]] = None
        if name not in self.similarities:
            self.similarities[name] = round(float(row["similarity"]), 6)
            if row.get("type"):
                self.types[name] = row["type"]
            if name == "variant":
                self.variant = row["topic_text"]
        if row.get("title_type"):
            self.types.setdefault("title", row["title_type"])

    def item(self, topic: Topic) -> Item:
        texts = (Text("query", self.query_text, self.query_id),)
        data = {"sources": list(self.sources), "similarities": self.similarities, "proposed": self.types}
        about = (topic.title, topic.description, topic.narrative, self.variant)
        known = MappingProxyType({key: value for key, value in data.items() if value})
        return Item("", self.topic_id, *about, texts, self.test, score=min(1.0, self.score), data=known)


def _pairs(frame: pl.DataFrame) -> Iterator[_Pair]:
    """The pairs in order; a pair is a topic and a normalised query text."""
    order = frame.with_columns(pl.col("similarity").cast(pl.Float64)).sort(
        ["test", "topic_id", "similarity", "query_text", "query_id", "field"],
        descending=[False, False, True, False, False, False],
        maintain_order=True,
    )
    pairs: dict[tuple[str, str, str], _Pair] = {}
    for row in order.iter_rows(named=True):
        key = (row["test"], row["topic_id"], normalise(row["query_text"]))
        if key not in pairs:
            pairs[key] = _Pair(*key[:2], row["query_id"], row["query_text"], round(float(row["similarity"]), 6))
        pairs[key].add(row)
    return iter(pairs.values())


def _from_rows(frame: pl.DataFrame) -> dict[tuple[str, str], Topic]:
    fields: dict[tuple[str, str], dict[str, str]] = {}
    texts = frame.filter(pl.col("field") != "variant").select("test", "topic_id", "field", "topic_text").unique()
    for test, topic_id, name, text in texts.sort(pl.all()).iter_rows():
        fields.setdefault((test, topic_id), {})[name] = text
    return {
        key: Topic(key[1], texts.get("title", ""), texts.get("description", ""), texts.get("narrative", ""))
        for key, texts in fields.items()
    }


def _from_sources(folder: Path) -> dict[tuple[str, str], Topic]:
    """The topics of the test sets that the manifest names, as far as they are files that still can be read."""
    try:
        read = json_file(folder / "manifest.json")["inputs"]
        tests = [one for one in read if one["role"] == "test"]
        named = [(test["name"], test["source"]) for test in tests if ":" not in test["source"].partition("/")[0]]
    except (InputError, KeyError, TypeError, AttributeError):
        return {}
    found: dict[tuple[str, str], Topic] = {}
    for name, source in named:
        with contextlib.suppress(InputError, OSError):
            found |= {(name, topic.topic_id): topic for topic in read_topics(source).topics}
    return found


#: Columns of annotations, which are not part of an item.
ANNOTATION_NAMES: Final = frozenset((
    "label", "labels", "choice", "choices", "annotations", "completions", "predictions", "annotator", "annotator_id",
    "username", "user", "completed_by", "created_by", "comment", "comments", "reason", "seconds", "lead_time", "at",
    "kind", "number", "token", "undoes", "role", "about", "events", "standing", "who", "rule", "record", "model",
    "status",
))  # fmt: skip
_SCORES: Final = ("score",)
_DOC_IDS: Final = ("doc_id", "docno", "docid", "passage_id", "pid", "did")
_DOC_TEXTS: Final = ("document", "passage", "doc_text", "passage_text", "body", "contents", "text")
_VERSION: Final = re.compile(r"[vV](\d{1,2})")
_NUMBERED_PASSAGE: Final = re.compile(r"passage[ _-]?(\d{1,3})", re.IGNORECASE)
_TABLES: Final = ("csv", "tsv", "jsonl", "json", "parquet")
#: What the rows of a table need, by the view of the scheme.
_NEEDED_BY: Final = {
    "pair": "topic_id and query_text",
    "versions": "topic_id, query, V1 and V2",
    "passages": "topic_id, query and passages (a list) or passage_1, passage_2, …",
    "document": "topic_id, query, doc_id and text",
}


def row_items(spec: SourceSpec, scheme: Scheme, *, strict: bool = False) -> Iterator[tuple[int, Item]]:
    """The items of a table with the line of each; `strict` raises for bytes that are not UTF-8."""
    path = compressed.checked_file(spec.path)
    form = formats.detect(path, spec.format)
    form = "tsv" if form == "lines" else form
    if form not in _TABLES:
        raise InputError(f"items are not read from {form} files", "give JSONL, CSV, TSV or Parquet", where=path)
    for row in rows(path, form, strict=strict):
        yield row.line, item_of_row(row, scheme, spec.location)


def item_of_row(row: Row, scheme: Scheme, where: str) -> Item:
    """The item of one row; its id is empty where the row gives none."""
    values = row.values
    used: set[str] = set()
    topic_id = text_of(
        values, (*TOPIC_NAMES, *(() if scheme.view == "pair" else (*QUERY_ID_NAMES, "id"))), used
    ).strip()
    texts = _given_texts(values, used) or _texts(values, scheme, topic_id, used)
    if not topic_id or not texts or any(not text.text.strip() for text in texts if text.name == "query"):
        needed, what = (
            _NEEDED_BY[scheme.view],
            "topic" if not topic_id else "text to judge" if not texts else "query text",
        )
        there = ", ".join(list(row.values)[:12]) or "none"
        fault, remedy = f"no {what} in it (columns: {there})", f"the scheme {scheme.name} needs {needed}"
        raise InputError(fault, remedy, where=where, line=row.line)
    fields = {name: text_of(values, (name,), used) for name in ("title", "description", "narrative", "variant")}
    given = text_of(values, ("item_id",), used).strip()
    similarity, score = (number_of(row, names, where, used) for names in (SIMILARITY_NAMES, _SCORES))
    probability = number_of(row, PROBABILITY_NAMES, where, used)
    if probability is not None and not 0 < probability <= 1:
        fault = f"the probability {probability:g} is not above 0 and at most 1"
        raise InputError(fault, "correct it", where=where, line=row.line)
    return Item(
        item_id=given,
        topic_id=topic_id,
        **fields,
        texts=texts,
        dataset=text_of(values, DATASET_NAMES, used),
        stratum=text_of(values, ("stratum",), used),
        # A cosine above 1 is a rounding of the encoder.
        score=score if similarity is None else min(1.0, similarity),
        probability=1.0 if probability is None else probability,
        data=_rest(values, used),
    )


def text_of(values: Mapping[str, Any], names: tuple[str, ...], used: set[str] | None = None) -> str:
    """The text or number in the first of the columns that is there and not empty; empty if there is none."""
    there = {name.strip().lower(): name for name in reversed(list(values))}
    for name in names:
        key = there.get(name)
        text = None if key is None else as_text(values[key])
        if key is not None and text is not None and text.strip():
            if used is not None:
                used.add(key)
            return well_formed(text)
    return ""


def number_of(row: Row, names: tuple[str, ...], where: str, used: set[str] | None = None) -> float | None:
    """The number in the first of the columns that is there."""
    return number_in(text_of(row.values, names, used), names[0], where, row.line)


def _given_texts(values: Mapping[str, Any], used: set[str]) -> tuple[Text, ...]:
    """The texts of a row that lists them, as our own exports do."""
    given = values.get("texts")
    if not isinstance(given, list) or not all(isinstance(part, dict) for part in given):
        return ()
    used.add("texts")
    used.update(key for key in values if key.strip().lower() in ("query_text", "query_id"))
    found = (tuple(text_of(part, (key,)) for key in ("name", "text", "id", "url")) for part in given)
    return tuple(Text(*parts) for parts in found if parts[0])


def _texts(values: Mapping[str, Any], scheme: Scheme, topic_id: str, used: set[str]) -> tuple[Text, ...]:
    names = QUERY_NAMES if scheme.view == "pair" else QUERY_NAMES[:-1]
    query = text_of(values, names if scheme.view != "document" else (*names, "title"), used)
    if not query:
        return ()
    if scheme.view == "pair":
        return (Text("query", query, text_of(values, QUERY_ID_NAMES, used).strip()),)
    rest = {"versions": _versions, "passages": _passages, "document": _document}[scheme.view](values, used)
    return (Text("query", query, topic_id), *rest) if rest else ()


def _versions(values: Mapping[str, Any], used: set[str]) -> tuple[Text, ...]:
    """Columns V1, V2, … with V1_url and V1_id beside them."""
    texts = []
    for number, key in _numbered(values, _VERSION):
        used.add(key)
        url = text_of(values, (f"v{number}_url", f"url_v{number}", "url"), used)
        doc_id = text_of(values, (f"v{number}_id", f"id_v{number}", *_DOC_IDS), used)
        texts.append(Text(f"V{number}", well_formed(as_text(values[key]) or ""), doc_id, url))
    return tuple(texts) if len(texts) > 1 else ()


def _numbered(values: Iterable[str], pattern: re.Pattern[str]) -> list[tuple[int, str]]:
    """The columns that a pattern fits, by their numbers."""
    return sorted((int(match[1]), key) for key in values if (match := pattern.fullmatch(key.strip())))


def _passages(values: Mapping[str, Any], used: set[str]) -> tuple[Text, ...]:
    """A list `passages` of texts or objects, or the columns passage_1, passage_2, …"""
    given = next((key for key in ("passages", "results") if isinstance(values.get(key), list)), None)
    if given is not None:
        used.add(given)
        parts = values[given]
    else:
        parts = []
        for number, key in _numbered(values, _NUMBERED_PASSAGE):
            used.add(key)
            doc_id, url = (text_of(values, (f"passage_{number}_{name}",), used) for name in ("id", "url"))
            parts.append({"text": values[key], "id": doc_id, "url": url})
    texts: list[Text] = []
    for part in parts:
        record = part if isinstance(part, Mapping) else {"text": part}
        text = text_of(record, ("text", "passage_text", "passage", "contents", "body"))
        if text:
            doc_id = text_of(record, ("id", "_id", *_DOC_IDS))
            texts.append(Text(f"passage {len(texts) + 1}", text, doc_id, text_of(record, ("url",))))
    return tuple(texts)


def _document(values: Mapping[str, Any], used: set[str]) -> tuple[Text, ...]:
    text = text_of(values, _DOC_TEXTS, used)
    doc_id = text_of(values, _DOC_IDS, used).strip()
    return (Text("document", text, doc_id, text_of(values, ("url",), used)),) if text else ()


def _rest(values: Mapping[str, Any], used: set[str]) -> Mapping[str, Any]:
    """What no column of the item holds: the row's `data` object and all other values, made JSON-like."""
    rest: dict[str, Any] = {}
    extra = values.get("extra")
    if isinstance(extra, str) and extra.startswith("{"):
        with contextlib.suppress(InputError):
            extra = load_json(extra, "extra")
    if isinstance(extra, Mapping):
        used.add("extra")
        rest = _plain(extra)
    for key, value in values.items():
        if key in used or key.strip().lower() in ANNOTATION_NAMES or value is None or value == "":
            continue
        rest[key] = _plain(value)
    return MappingProxyType(rest)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    if isinstance(value, str):
        return well_formed(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, (bool, int)):
        return value
    return value.isoformat() if isinstance(value, (datetime.date, datetime.datetime)) else str(value)


_IDS: Final = ("doc_id", "docno", "docid", "_id", "id", "passage_id", "pid", "did")
_TEXTS: Final = ("text", "contents", "body", "passage", "document", "abstract")


class ShownDocument(NamedTuple):
    """A document as it is shown."""

    doc_id: str
    text: str
    title: str = ""
    url: str = ""


class _Found(NamedTuple):
    """A result of a run, or a judgment, that becomes an item."""

    topic_id: str
    doc_id: str
    score: float | None
    data: dict[str, Any]


def run_items(
    spec: SourceSpec, scheme: Scheme, topics: Mapping[str, Topic], docs: Sequence[str | SourceSpec]
) -> Iterator[Item]:
    """The documents of a run, or of judgments, with the topics' and documents' texts."""
    if scheme.view not in ("document", "passages"):
        remedy = "take a relevance scheme, survivorship or answerability"
        raise InputError(f"the scheme {scheme.name} does not judge a run's documents", remedy, where=spec.location)
    if not docs or not topics:
        missing = "`topics`" if docs else "`docs`"
        raise InputError(f"a run needs {missing}", f"give {missing} too", where=spec.location)
    if formats.detect(compressed.checked_file(spec.path), spec.format) == "qrels":
        found = [_Found(row.topic_id, row.doc_id, None, {"judged": row.relevance}) for row in read_qrels(spec)]
    else:
        found = []
        for row in read_run(spec.location):
            data = {"rank": row.rank, "run": row.tag} if row.tag else {"rank": row.rank}
            found.append(_Found(row.topic_id, row.doc_id, row.score, data))
    _refuse((pair.topic_id for pair in found if pair.topic_id not in topics), "topics", spec)
    texts = read_documents(docs, {pair.doc_id for pair in found})
    _refuse((pair.doc_id for pair in found if pair.doc_id not in texts), "docs", spec)
    return (_documents if scheme.view == "document" else _lists)(found, topics, texts)


def read_documents(specs: Sequence[str | SourceSpec], wanted: set[str]) -> dict[str, ShownDocument]:
    """The documents of some ids, read as a stream; nothing else of the collection is held.

    JSONL, JSON, CSV, TSV or Parquet with a column `doc_id` (or docno, _id, id, pid) and `text` (or contents, body),
    and where there are `title` and `url`; TSV without a header as `id TAB text` or `id TAB url TAB title TAB text`.
    """
    found: dict[str, ShownDocument] = {}
    for given in specs:
        spec = grammar.parse(given) if isinstance(given, str) else given
        for document in _read(spec):
            if document.doc_id in wanted:
                found.setdefault(document.doc_id, document)
        if len(found) == len(wanted):
            break
    return found


def _documents(
    found: list[_Found], topics: Mapping[str, Topic], documents: Mapping[str, ShownDocument]
) -> Iterator[Item]:
    for pair in found:
        topic, document = topics[pair.topic_id], documents[pair.doc_id]
        text = "\n\n".join(part for part in (document.title, document.text) if part)
        texts = (Text("query", topic.title, topic.topic_id), Text("document", text, document.doc_id, document.url))
        yield _item(pair, topic, texts)


def _lists(found: list[_Found], topics: Mapping[str, Topic], documents: Mapping[str, ShownDocument]) -> Iterator[Item]:
    """One item per topic: its query and all of its documents, in the order of the file."""
    by_topic: dict[str, list[_Found]] = {}
    for pair in found:
        by_topic.setdefault(pair.topic_id, []).append(pair)
    for topic_id, pairs in by_topic.items():
        shown = [documents[pair.doc_id] for pair in pairs]
        passages = (Text(f"passage {n}", d.text, d.doc_id, d.url) for n, d in enumerate(shown, start=1))
        texts = (Text("query", topics[topic_id].title, topic_id), *passages)
        yield _item(_Found(topic_id, "", None, {}), topics[topic_id], texts)


def _item(pair: _Found, topic: Topic, texts: tuple[Text, ...]) -> Item:
    return Item(
        "", pair.topic_id, "", topic.description, topic.narrative, texts=texts, score=pair.score,
        data=MappingProxyType(pair.data),
    )  # fmt: skip


def _read(spec: SourceSpec) -> Iterator[ShownDocument]:
    path = compressed.checked_file(spec.path)
    form = formats.detect(path, spec.format)
    if form in ("tsv", "lines") and not _has_header(spec):
        yield from _bare(spec)
        return
    if form not in _TABLES:
        raise InputError(f"documents are not read from {form} files", "give JSONL, TSV, CSV or Parquet", where=path)
    for row in rows(path, form):
        doc_id, text = text_of(row.values, _IDS).strip(), text_of(row.values, _TEXTS)
        title = text_of(row.values, ("title",))
        if not doc_id:
            there = ", ".join(list(row.values)[:12])
            raise InputError(f"no document id (columns: {there})", "name it doc_id", where=spec.location, line=row.line)
        yield ShownDocument(doc_id, text, title, text_of(row.values, ("url",)))


def _has_header(spec: SourceSpec) -> bool:
    first = next(line_blocks(spec.path)).lines[0].lower().split("\t")
    return any(name.strip() in _IDS for name in first) and any(name.strip() in _TEXTS for name in first)


def _bare(spec: SourceSpec) -> Iterator[ShownDocument]:
    for block in line_blocks(spec.path):
        for number, line in enumerate(block.lines, start=block.first):
            cells = line.split("\t")
            if not line.strip():
                continue
            if len(cells) not in (2, 4):
                fault = f"{len(cells)} columns without a header"
                remedy = "write id TAB text, or id TAB url TAB title TAB text"
                raise InputError(fault, remedy, where=spec.location, line=number)
            yield ShownDocument(*cells) if len(cells) == 2 else ShownDocument(cells[0], cells[3], cells[2], cells[1])


def _refuse(absent: Iterable[str], what: str, spec: SourceSpec) -> None:
    if distinct := list(dict.fromkeys(absent)):
        fault = f"{len(distinct)} {what} of it are not in --{what}: {first_few(distinct, 3)}"
        raise InputError(fault, "give their files too", where=spec.location)


def read_items(
    specs: str | SourceSpec | Iterable[str | SourceSpec],
    scheme: Scheme,
    *,
    topics: Sequence[str] = (),
    docs: Sequence[str | SourceSpec] = (),
    strict: bool = False,
) -> tuple[Item, ...]:
    """Reads what is to be judged.

    The folder of a leakage audit, or one with a file items.jsonl, such as a collection audit's; a table (JSONL, JSON,
    CSV, TSV, Parquet) with one item a row; a TREC run or qrels file together with topics and documents. An item that
    appears twice is taken once.

    Args:
        specs: one source or several; their order is kept.
        scheme: its view says what an item shows.
        topics: test sets, `SRC` or `NAME=SRC`, whose titles, descriptions and narratives complete the items. With a
            name they complete the items of that data set only.
        docs: tables of documents, for runs.
        strict: raise for bytes that are not UTF-8.

    Returns:
        The items, each with an id that is made of its content unless the file gave one.

    Raises:
        InputError: not readable; a row without the columns that the view needs; one id for two different items; a
            topic without a text; no item at all.
    """
    several = (specs,) if isinstance(specs, (str, SourceSpec)) else tuple(specs)
    known = _Topics(topics, strict)
    items: dict[str, Item] = {}
    given = grammar.unique_names([grammar.parse(s) if isinstance(s, str) else s for s in several])
    for spec, name in zip(several, given, strict=True):
        spec = grammar.parse(spec) if isinstance(spec, str) else spec
        for line, item in _of_source(spec, scheme, known, docs, strict):
            item = _identified(known.completed(item, name), spec)
            _check(item, scheme, spec, line)
            there = items.get(item.item_id)
            if there is None or _content(there) == _content(item):
                items[item.item_id] = item if there is None else _merged(there, item)
            else:
                fault = f"the id '{item.item_id[:80]}' is above with other content"
                raise InputError(fault, "give every item an id of its own", where=spec.location, line=line)
    if not items:
        raise InputError("nothing to judge in it", "give a file that holds items", where=", ".join(map(str, several)))
    return tuple(items.values())


class _Topics:
    """The topics that the user gave, by data set and id."""

    def __init__(self, specs: Sequence[str], strict: bool) -> None:
        self._named: dict[tuple[str, str], Topic] = {}
        self.all: dict[str, Topic] = {}
        self._given = bool(specs)
        for spec in specs:
            name, source = grammar.named_source(spec)
            for topic in read_topics(source, strict=strict).topics:
                if name:
                    self._named[name, topic.topic_id] = topic
                else:
                    there = self.all.setdefault(topic.topic_id, topic)
                    if there.title != topic.title:
                        fault = f"the topic '{topic.topic_id}' is in two test sets with different titles"
                        raise InputError(fault, "name the data sets with `topics`: NAME=SRC", where=spec)

    def completed(self, item: Item, source: str) -> Item:
        """The item with its topic's texts where it lacks them."""
        names = (item.dataset, source)
        topic = next((self._named[name, item.topic_id] for name in names if (name, item.topic_id) in self._named), None)
        topic = topic or self.all.get(item.topic_id)
        if topic is None:
            return item
        query = {text.text for text in item.texts if text.name == "query" and text.id == item.topic_id}
        return replace(
            item,
            title=item.title or ("" if topic.title in query else topic.title),
            description=item.description or topic.description,
            narrative=item.narrative or topic.narrative,
        )


def _of_source(
    spec: SourceSpec, scheme: Scheme, topics: _Topics, docs: Sequence[str | SourceSpec], strict: bool
) -> Iterator[tuple[int | None, Item]]:
    if spec.scheme != "file":
        raise InputError("items are read from files", "give a path", where=spec.spec)
    proposed = spec.path / "items.jsonl"
    if is_audit(spec.path) and not proposed.is_file():
        if scheme.view != "pair":
            fault = f"the scheme {scheme.name} does not judge the pairs of a leakage audit"
            raise InputError(fault, "take the scheme leakage or leak", where=spec.location)
        return ((None, item) for item in audit_items(spec.path))
    if proposed.is_file():
        return row_items(grammar.parse(str(as_written(proposed))), scheme, strict=strict)
    if spec.path.is_dir():
        if (spec.path / "manifest.json").is_file():
            remedy = "give an audit that has some, or a file of items"
            raise InputError("this result has no items to judge", remedy, where=spec.path)
        fault = "no candidates.parquet and no items.jsonl in this folder"
        raise InputError(fault, "give the folder of an audit", where=spec.path)
    if formats.detect(compressed.checked_file(spec.path), spec.format) in ("run", "qrels"):
        return ((None, item) for item in run_items(spec, scheme, topics.all, docs))
    as_written(spec.path)
    return row_items(spec, scheme, strict=strict)


def _identified(item: Item, spec: SourceSpec) -> Item:
    """The item under an id that is made of its content, unless the file gave it one.

    An audit's pair is a topic and a query's text: its id does not depend on the query's id, which differs between
    logs. A table that has one text under two query ids has two items.
    """
    if item.item_id:
        return item
    texts = item.texts
    if is_audit(spec.path):
        texts = tuple(Text(text.name, text.text) for text in texts)
    return replace(item, item_id=content_id(item.topic_id, item.title, texts))


def _check(item: Item, scheme: Scheme, spec: SourceSpec, line: int | None) -> None:
    if scheme.view == "pair" and not (item.title or item.description or item.variant):
        fault = f"the topic '{item.topic_id[:40]}' has no title here"
        raise InputError(fault, "give its test set with `topics`", where=spec.location, line=line)
    if scheme.view == "versions":
        shown = {text.name for text in item.texts}
        lacking = next((g.name for g in scheme.groups if g.name.startswith("V") and g.name not in shown), None)
        if lacking is not None:
            fault = f"no version {lacking} of topic '{item.topic_id[:40]}'"
            raise InputError(fault, f"the scheme {scheme.name} compares it", where=spec.location, line=line)
    if scheme.per_text is not None and not scheme.for_item(item).choices:
        raise InputError("no text to choose", "give passages", where=spec.location, line=line)


def _content(item: Item) -> tuple[object, ...]:
    return (item.topic_id, item.title, *((text.name, text.text.split()) for text in item.texts))


def _merged(first: Item, second: Item) -> Item:
    """One item for a pair that two data sets or sources have: the higher score, and the names of both data sets."""
    names = dict.fromkeys([*first.data.get("datasets", [first.dataset]), second.dataset])
    data = dict(first.data)
    if len(names) > 1:
        data["datasets"] = list(names)
    scores = [score for score in (first.score, second.score) if score is not None]
    return replace(first, score=max(scores, default=None), data=MappingProxyType(data))
