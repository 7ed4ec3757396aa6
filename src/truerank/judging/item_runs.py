"""Items out of runs and judgments: one per topic and document, with the document's text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from truerank.errors import InputError
from truerank.judging.item_rows import text_of
from truerank.judging.items import Item, Text
from truerank.judging.schemes import Scheme
from truerank.records import Topic
from truerank.sources import compressed, formats, grammar, read_qrels, read_run
from truerank.sources.grammar import SourceSpec
from truerank.sources.lines import line_blocks
from truerank.sources.rows import Row, rows
from truerank.text.listing import first_few

_IDS: Final = ("doc_id", "docno", "docid", "_id", "id", "passage_id", "pid", "did")
_TEXTS: Final = ("text", "contents", "body", "passage", "document", "abstract")
_SHOWN: Final = 3


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
    found = _judged(spec) if _form(spec) == "qrels" else _retrieved(spec)
    absent = dict.fromkeys(pair.topic_id for pair in found if pair.topic_id not in topics)
    _refuse(list(absent), "topics", spec)
    texts = read_documents(docs, {pair.doc_id for pair in found})
    _refuse(list(dict.fromkeys(pair.doc_id for pair in found if pair.doc_id not in texts)), "docs", spec)
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


def _form(spec: SourceSpec) -> str:
    return formats.detect(compressed.checked_file(spec.path), spec.format)


def _retrieved(spec: SourceSpec) -> list[_Found]:
    return [
        _Found(
            row.topic_id, row.doc_id, row.score, {"rank": row.rank, "run": row.tag} if row.tag else {"rank": row.rank}
        )
        for row in read_run(spec.location)
    ]


def _judged(spec: SourceSpec) -> list[_Found]:
    return [_Found(row.topic_id, row.doc_id, None, {"judged": row.relevance}) for row in read_qrels(spec)]


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
        "",
        pair.topic_id,
        description=topic.description,
        narrative=topic.narrative,
        texts=texts,
        score=pair.score,
        data=MappingProxyType(pair.data),
    )


def _read(spec: SourceSpec) -> Iterator[ShownDocument]:
    path = compressed.checked_file(spec.path)
    form = formats.detect(path, spec.format)
    if form in ("tsv", "lines") and not _has_header(spec):
        yield from _bare(spec)
        return
    if form not in ("csv", "tsv", "jsonl", "json", "parquet"):
        raise InputError(f"documents are not read from {form} files", "give JSONL, TSV, CSV or Parquet", where=path)
    for row in rows(path, form):
        yield _document(row, spec)


def _document(row: Row, spec: SourceSpec) -> ShownDocument:
    doc_id, text = text_of(row.values, _IDS).strip(), text_of(row.values, _TEXTS)
    title = text_of(row.values, ("title",))
    if not doc_id:
        there = ", ".join(list(row.values)[:12])
        raise InputError(f"no document id (columns: {there})", "name it doc_id", where=spec.location, line=row.line)
    return ShownDocument(doc_id, text, title, text_of(row.values, ("url",)))


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


def _refuse(absent: list[str], what: str, spec: SourceSpec) -> None:
    if absent:
        shown = first_few(absent, _SHOWN)
        raise InputError(
            f"{len(absent)} {what} of it are not in --{what}: {shown}", "give their files too", where=spec.location
        )
