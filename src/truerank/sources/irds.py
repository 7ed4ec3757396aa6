"""ir_datasets as a source: queries, topics and judgments by id, quietly, with remedies instead of tracebacks."""

from __future__ import annotations

import difflib
import logging
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain, groupby, islice
from typing import Any, Final, Literal

from truerank.errors import InputError, needed_for
from truerank.records import Document, Qrel, Topic
from truerank.sources.blocks import RawBlock
from truerank.sources.query_files import well_formed, well_formed_block
from truerank.sources.rows import Row

_BLOCK: Final = 1 << 13
_FEATURE: Final = "a data set of ir_datasets"
_TITLES: Final = ("title", "query", "text", "question", "original_query", "raw_utterance", "short_query")
_DOCUMENT_TITLES: Final = ("title", "headline")
_BODIES: Final = ("body", "text", "abstract", "contents", "passage")
_DESCRIPTIONS: Final = ("description", "question", "long_query")


def check(dataset_id: str, entity: Literal["queries", "qrels", "docs"] = "queries") -> None:
    """Whether ir_datasets knows an id and it has queries (or qrels, or documents); nothing is downloaded."""
    _load(dataset_id, entity)


def fingerprint(dataset_id: str) -> str:
    """The id and the version of ir_datasets, which fixes the files that the id stands for."""
    from importlib.metadata import version

    with needed_for(_FEATURE, "irds"):
        return f"irds:{dataset_id};ir_datasets={version('ir_datasets')}"


def queries(dataset_id: str) -> Iterator[RawBlock]:
    """The queries of a data set; of queries with several fields the title."""
    number = 1
    for items in _blocks(dataset_id, "queries"):
        ids, texts = [str(item.query_id) for item in items], [_title(item) for item in items]
        yield well_formed_block(RawBlock(ids, texts, range(number, number + len(items))))
        number += len(items)


def topics(dataset_id: str) -> Iterator[Topic]:
    """The queries of a data set with all fields that truerank knows (title, description, narrative or subtopics)."""
    for items in _blocks(dataset_id, "queries"):
        for item in items:
            title = _title(item)
            description = _field(item, _DESCRIPTIONS)
            narrative = _field(item, ("narrative",)) or _subtopics(item)
            if description == title:
                description = ""
            yield Topic(str(item.query_id), _line(title), _line(description), _line(narrative))


def documents(dataset_id: str) -> Iterator[Document]:
    """The documents of a data set.

    URL and title are the fields of that name; the body is `body`, `text`, `abstract` or `contents`, where there is
    none of them what ir_datasets takes for the text.
    """
    for items in _blocks(dataset_id, "docs"):
        for item in items:
            title, body = _field(item, _DOCUMENT_TITLES), _field(item, _BODIES)
            if not body:
                whole = getattr(item, "default_text", None)
                body = str(whole() or "") if callable(whole) else ""
                body = body.removeprefix(title).lstrip() if title else body
            yield Document(str(item.doc_id), _field(item, ("url",)), title, body)


def qrels(dataset_id: str) -> Iterator[Qrel]:
    """The judgments of a data set."""
    for items in _blocks(dataset_id, "qrels"):
        for item in items:
            yield Qrel(str(item.query_id), str(item.doc_id), int(item.relevance), str(getattr(item, "iteration", "0")))


def annotated_queries(dataset_id: str) -> Iterator[Row]:
    """The queries of a data set whose judgments name every document that was shown, in order (`msmarco-qna/dev`).

    Of msmarco-qna, whose document ids are a passage's id and the number of one of its URLs, the passage's id is kept.
    """
    judged = groupby(chain.from_iterable(_blocks(dataset_id, "qrels")), key=lambda item: str(item.query_id))
    found = next(judged, None)
    for number, item in enumerate(chain.from_iterable(_blocks(dataset_id, "queries")), start=1):
        query_id = str(item.query_id)
        shown = []
        if found is not None and found[0] == query_id:
            shown = [
                {"doc_id": _passage(dataset_id, str(one.doc_id)), "selected": int(one.relevance > 0)}
                for one in found[1]
            ]
            found = next(judged, None)
        yield Row(
            number,
            {
                "query_id": query_id,
                "query": _title(item),
                "query_type": getattr(item, "type", None),
                "answers": [str(text) for text in getattr(item, "answers", ())],
                "shown": shown,
            },
        )
    if found is not None:
        raise InputError(
            f"the judgments of query '{found[0]}' are in another order than the queries",
            "write a log of your own with the columns query_id, query, shown, selected",
            where=f"irds:{dataset_id}",
        )


def _passage(dataset_id: str, doc_id: str) -> str:
    return doc_id.rpartition("-")[0] if dataset_id.startswith("msmarco-qna") and "-" in doc_id else doc_id


def count_documents(dataset_id: str) -> int:
    """How many documents a data set has, as ir_datasets counts them."""
    dataset = _load(dataset_id, "docs")
    try:
        with _quiet():
            return int(dataset.docs_count())
    # As for its queries, ir_datasets raises whatever its sources raise.
    except Exception as error:
        raise InputError(
            f"ir_datasets cannot count the documents ({_reason(error)})",
            "check the network, or leave the collection out",
            where=f"irds:{dataset_id}",
        ) from error


def _title(item: Any) -> str:
    if text := _field(item, _TITLES):
        return text
    default = getattr(item, "default_text", None)
    return str(default() or "") if callable(default) else ""


def _field(item: Any, names: tuple[str, ...]) -> str:
    values = (getattr(item, name, None) for name in names)
    return next((value for value in values if isinstance(value, str) and value), "")


def _subtopics(item: Any) -> str:
    parts = getattr(item, "subtopics", None) or ()
    return " ".join(filter(None, (" ".join(_field(part, ("text", "description")).split()) for part in parts)))


def _line(text: str) -> str:
    return " ".join(well_formed(text).split())


def _reason(error: Exception) -> str:
    """One short phrase; a failed download comes as a list of exceptions that quote one another."""
    whole = " ".join(str(error).split())
    if re.search(r"Connection|MaxRetry|Timeout|NameResolution", f"{type(error).__name__} {whole}"):
        hosts = dict.fromkeys(re.findall(r"https?://([\w.-]+)|host=\\*'([\w.-]+)", whole))
        names = [first or second for first, second in hosts]
        return f"no connection to {', '.join(dict.fromkeys(names))}" if names else "no connection"
    return whole[:160] or type(error).__name__


def _load(dataset_id: str, entity: str) -> Any:
    where = f"irds:{dataset_id}"
    with _quiet():
        with needed_for(_FEATURE, "irds"):
            import ir_datasets

        try:
            dataset = ir_datasets.load(dataset_id)
        except KeyError as error:
            near = difflib.get_close_matches(dataset_id, list(ir_datasets.registry), n=3, cutoff=0.4)
            remedy = f"did you mean {', '.join(near)}?" if near else "see https://ir-datasets.com for the ids"
            raise InputError("ir_datasets has no such id", remedy, where=where) from error
        if not dataset.has(entity):
            children = [name for name in ir_datasets.registry if name.startswith(dataset_id + "/")]
            having = [name for name in children if ir_datasets.load(name).has(entity)][:5]
            remedy = f"one of its parts has: {', '.join(having)}" if having else "choose another data set"
            raise InputError(f"this data set has no {entity}", remedy, where=where)
        return dataset


def _blocks(dataset_id: str, entity: str) -> Iterator[list[Any]]:
    dataset = _load(dataset_id, entity)
    stream: Iterator[Any] | None = None
    while True:
        # ir_datasets and what it calls raise anything from ConnectionError to RuntimeError and EOFError (where it asks
        # for a password and nobody is there); all of it means that the data are not here.
        try:
            with _quiet():
                stream = iter(getattr(dataset, f"{entity}_iter")()) if stream is None else stream
                items = list(islice(stream, _BLOCK))
        except Exception as error:
            raise InputError(
                f"ir_datasets cannot get the {entity} ({_reason(error)})",
                f"check the network, or see https://ir-datasets.com/{dataset_id.partition('/')[0]} for files to fetch "
                "by hand into IR_DATASETS_HOME",
                where=f"irds:{dataset_id}",
            ) from error
        if not items:
            return
        yield items


@contextmanager
def _quiet() -> Iterator[None]:
    """Keeps ir_datasets from writing logs and progress bars to the terminal while it works."""
    logger = logging.getLogger("ir_datasets")
    names = ("IR_DATASETS_DL_DISABLE_PBAR", "IR_DATASETS_SKIP_DEPRECATED_WARNING")
    before, disabled = {name: os.environ.get(name) for name in names}, logger.disabled
    logger.disabled = True
    os.environ.update(dict.fromkeys(names, "true"))
    try:
        yield
    finally:
        logger.disabled = disabled
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
