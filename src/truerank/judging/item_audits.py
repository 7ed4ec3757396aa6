"""Items out of a leakage audit's folder: one per topic and distinct training query."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import polars as pl

from truerank.errors import InputError
from truerank.judging.items import Item, Text
from truerank.loading import json_file
from truerank.records import Topic
from truerank.sources import read_topics
from truerank.text.normalising import normalise
from truerank.work.artifacts import written_by

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
    topics = _topics(folder, frame)
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
        """The pair as something to judge."""
        texts = (Text("query", self.query_text, self.query_id),)
        data = {"sources": list(self.sources), "similarities": self.similarities, "proposed": self.types}
        return Item(
            "",
            self.topic_id,
            topic.title,
            topic.description,
            topic.narrative,
            self.variant,
            texts,
            self.test,
            score=min(1.0, self.score),
            data=MappingProxyType({key: value for key, value in data.items() if value}),
        )


def texts_without_ids(texts: tuple[Text, ...]) -> tuple[Text, ...]:
    """The texts as a pair's id knows them: one query text under several query ids is one thing to judge."""
    return tuple(Text(text.name, text.text) for text in texts)


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


def _topics(folder: Path, frame: pl.DataFrame) -> dict[tuple[str, str], Topic]:
    """The topics by test and id: what the audit's files say, completed from the test set where that agrees."""
    known = _from_rows(frame)
    with contextlib.suppress(pl.exceptions.PolarsError, OSError):
        columns = ["test", "topic_id", "field", "topic_text"]
        neighbours = pl.read_parquet(folder / "neighbours.parquet", columns=columns, glob=False)
        known = {**known, **_from_rows(neighbours)}
    for (test, topic_id), topic in _from_sources(folder).items():
        seen = known.get((test, topic_id))
        if seen is None or not seen.title or normalise(seen.title) == normalise(topic.title):
            known[test, topic_id] = topic
    return known


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
