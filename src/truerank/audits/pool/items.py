"""Who judges what: topics shared out among annotators, the files for `judge new`, and the grades of a judging store."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import polars as pl

from truerank.errors import InputError
from truerank.judging import Item, Standing, Store, Text
from truerank.judging.items import content_id
from truerank.loading import json_file
from truerank.rankers.reranking.document_texts import DocumentTexts
from truerank.records import Document, Topic
from truerank.sources.qrels import QREL_SCHEMA
from truerank.work.progress import Progress
from truerank.work.runs import Run

_FOLDER = "batches"


class Batch(NamedTuple):
    """What one annotator judges of one topic, and the file that holds it; empty where none was written."""

    annotator: str
    topic_id: str
    documents: tuple[str, ...]
    file: str = ""


def shared_out(documents: pl.DataFrame, topics: Sequence[str], annotators: Sequence[str]) -> tuple[Batch, ...]:
    """Gives every topic to one annotator so that all have about the same number of documents."""
    by_topic: dict[str, list[str]] = {}
    for topic, doc_id in documents.select("topic_id", "doc_id").iter_rows():
        by_topic.setdefault(topic, []).append(doc_id)
    loads = dict.fromkeys(annotators, 0)
    places = {topic: place for place, topic in enumerate(topics)}
    judge: dict[str, str] = {}
    # The largest first, each to whoever has least: even loads without trying everything.
    for topic in sorted(by_topic, key=lambda topic: (-len(by_topic[topic]), places[topic])):
        judge[topic] = min(annotators, key=loads.__getitem__)
        loads[judge[topic]] += len(by_topic[topic])
    return tuple(
        Batch(annotator, topic, tuple(by_topic[topic]))
        for annotator in annotators
        for topic in topics
        if judge.get(topic) == annotator
    )


def pool_item(topic: Topic, document: Document, data: Mapping[str, object]) -> Item:
    """A document of a topic as an item of a relevance scheme; the same pair has the same id wherever it is made."""
    text = "\n\n".join(part for part in (document.title, document.body) if part)
    texts = (Text("query", topic.title, topic.topic_id), Text("document", text, document.doc_id, document.url))
    return Item(
        content_id(topic.topic_id, "", texts), topic.topic_id, description=topic.description,
        narrative=topic.narrative, texts=texts, dataset="pool", data=dict(data),
    )  # fmt: skip


def write_batches(
    job: Run, work: Sequence[Batch], topics: Mapping[str, Topic], docs: str | None, progress: Progress | None
) -> tuple[Batch, ...]:
    """Writes one file for each annotator: items with their texts as JSONL, or without documents a run."""
    by_annotator: dict[str, list[Batch]] = {}
    for batch in work:
        by_annotator.setdefault(batch.annotator, []).append(batch)
    written = {}
    if docs is None:
        for annotator, mine in by_annotator.items():
            lines = (
                f"{batch.topic_id} Q0 {doc_id} {rank} {len(batch.documents) - rank + 1} pool\n"
                for batch in mine
                for rank, doc_id in enumerate(batch.documents, start=1)
            )
            written[annotator] = f"{_FOLDER}/{annotator}.run", "".join(lines)
    else:
        wanted = frozenset(doc_id for batch in work for doc_id in batch.documents)
        with tempfile.TemporaryDirectory(prefix="truerank-pool-") as folder:
            texts = DocumentTexts.collect(Path(folder) / "documents", docs, wanted, progress)
            texts.check(sorted(wanted), "the pool")
            for annotator, mine in by_annotator.items():
                written[annotator] = f"{_FOLDER}/{annotator}.jsonl", _as_items(mine, topics, texts)
    _forget(job.folder)
    for name, text in written.values():
        job.text(name, text)
    return tuple(batch._replace(file=written[batch.annotator][0]) for batch in work)


def _as_items(batches: Sequence[Batch], topics: Mapping[str, Topic], texts: DocumentTexts) -> str:
    lines = []
    for batch in batches:
        documents = texts.of(batch.documents)
        for order, doc_id in enumerate(batch.documents, start=1):
            item = pool_item(topics[batch.topic_id], documents[doc_id], {"stage": "pool", "order": order})
            lines.append(json.dumps(item.json(), ensure_ascii=False) + "\n")
    return "".join(lines)


def _forget(folder: Path) -> None:
    """Removes the batches of an earlier pool in this folder, which would be judged beside the new ones."""
    try:
        written = json_file(folder / "manifest.json")["artifacts"]
    except (InputError, KeyError, TypeError):
        return
    for name in written:
        if str(name).startswith(f"{_FOLDER}/") and ".." not in str(name):
            (folder / str(name)).unlink(missing_ok=True)


_DOCUMENT: Final = "document"


def document_of(item: Item) -> str:
    """The id of the document that an item shows; empty where it shows none."""
    return next((text.id for text in item.texts if text.name == _DOCUMENT), "")


def grades_by_label(store: Store) -> dict[str, int]:
    grades = {choice.name: choice.grade for choice in store.scheme.choices if choice.grade is not None}
    if store.scheme.view != _DOCUMENT or not grades:
        raise InputError(
            f"the scheme {store.scheme.name} does not grade documents",
            "make the store with relevance-documents or relevance-passages",
            where=store.path,
        )
    return grades


def grade_of(standings: Sequence[Standing], grades: dict[str, int]) -> int | None:
    """The grade of a document by all that stands of it: the adjudication, or what most annotators say."""
    said = [(standing.kind, grades[label]) for standing in standings for label in standing.labels if label in grades]
    settled = [grade for kind, grade in said if kind == "adjudicate"]
    counts = Counter(settled or [grade for kind, grade in said if kind == "label"])
    return max(counts, key=lambda grade: (counts[grade], grade)) if counts else None


def read_grades(path: str | Path, *, allow_none: bool = False) -> pl.DataFrame:
    """The judgments of a store as qrels: columns topic_id, doc_id, relevance, in the order of the store."""
    with Store.open(path) as store:
        grades = grades_by_label(store)
        by_item = store.standing_by_item()
        # Each document of a topic once, with the highest of its grades.
        best: dict[tuple[str, str], int] = {}
        for item in store.items():
            grade = grade_of(by_item.get(item.item_id, []), grades)
            if grade is not None:
                pair = item.topic_id, document_of(item)
                best[pair] = max(grade, best.get(pair, grade))
    if not best and not allow_none:
        raise InputError("nothing is judged yet", "judge first, or give qrels", where=path)
    rows = [(*pair, grade) for pair, grade in best.items()]
    return pl.DataFrame(rows, schema=QREL_SCHEMA, orient="row")
