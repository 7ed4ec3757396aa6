"""The leaks of a training source: the candidates of audits, and which of them people verified."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import polars as pl

from truerank.errors import InputError
from truerank.experiments.instances.drawing import Excluded, Keyed, QueryKeys
from truerank.judging.labels import Judgments, open_judgments
from truerank.judging.votes import Votes
from truerank.text.normalising import normalise
from truerank.work.artifacts import hash_file, written_by

_FILE: Final = "candidates.parquet"
_COLUMNS: Final = ("test", "topic_id", "source", "query_id", "query_text", "similarity")
_SCHEMA: Final[Any] = dict.fromkeys(_COLUMNS[:5], pl.String) | {"similarity": pl.Float32}
_HASHED: Final = re.compile(r"hmac:[0-9a-f]{8}:[0-9a-f]{16}")


class Leak(NamedTuple):
    """A training query that leaks a topic; `text` is normalised, and empty where only the id is known."""

    topic_id: str
    query_id: str
    text: str
    verified: bool


@dataclass(frozen=True)
class LeakCandidates:
    """The candidates of several audits.

    Attributes:
        table: test, topic_id, source, query_id, query_text, similarity.
        inputs: folder and hash of each, for provenance.
    """

    table: pl.DataFrame
    inputs: tuple[dict[str, Any], ...] = ()


def read_candidates(folders: Sequence[str]) -> LeakCandidates:
    """Reads what `leakage audit` wrote: every pair down to its floor."""
    tables, inputs = [pl.DataFrame(schema=_SCHEMA)], []
    for folder in folders:
        path = Path(folder) / _FILE
        with written_by("leakage audit", path.parent, _FILE):
            table = pl.read_parquet(path, columns=list(_COLUMNS), glob=False).cast(_SCHEMA)
        if len(table) and _HASHED.fullmatch(str(table["query_text"][0])):
            raise InputError("the audit is redacted", "give the audit that holds the texts", where=folder)
        tables.append(table)
        inputs.append({"folder": str(folder), "sha256": hash_file(path), "pairs": len(table)})
    return LeakCandidates(pl.concat(tables), tuple(inputs))


def excluded(candidates: LeakCandidates, judgments: Judgments | None, sources: Sequence[str]) -> Excluded:
    """The queries that must not stand in a row without a leak: every candidate, and what was judged a leak.

    Candidates are known by text, and by id in the source of that name; where the audits know no source of a name, by
    id in any.
    """
    texts = {normalise(text) for text in candidates.table["query_text"].unique()}
    ids: defaultdict[str, set[str]] = defaultdict(set)
    for source, query_id in candidates.table.select("source", "query_id").unique().iter_rows():
        ids[source].add(query_id)
    everywhere: set[str] = set().union(*ids.values())
    by_source: dict[str, set[str]] = {name: set(ids.get(name, everywhere)) for name in sources}
    for pair in () if judgments is None else judgments.pairs:
        if pair.leak and pair.text:
            texts.add(pair.text)
        elif pair.leak:
            for name in sources:
                by_source[name].add(pair.query_id)
    return Excluded(frozenset(texts - {""}), by_source)


def verified_leaks(
    labels: Sequence[str], topics: Collection[str] | None, votes: Votes = "majority"
) -> tuple[Judgments, list[Leak]]:
    """What people judged a leak."""
    judgments = open_judgments(list(labels), votes=votes)
    leaks = [
        Leak(pair.topic_id, pair.query_id, pair.text, True)
        for pair in judgments.pairs
        if pair.leak and (topics is None or pair.topic_id in topics)
    ]
    return judgments, leaks


def leaks_above(
    candidates: LeakCandidates, threshold: float, judgments: Judgments | None, topics: Collection[str] | None
) -> list[Leak]:
    """The candidates above a threshold, which nobody need have verified; what was judged to be no leak is left out."""
    above = candidates.table.filter(pl.col("similarity") > pl.lit(threshold, pl.Float32))
    leaks: dict[tuple[str, str], Leak] = {}
    for topic_id, query_id, raw in above.select("topic_id", "query_id", "query_text").iter_rows():
        pair = None if judgments is None else judgments.find(topic_id, raw, query_id)
        verdict = None if pair is None else pair.leak
        if verdict is not False and (topics is None or topic_id in topics):
            text = normalise(raw)
            leaks.setdefault((topic_id, text), Leak(topic_id, query_id, text, verdict is True))
    return list(leaks.values())


def wanted(leaks: Iterable[Leak]) -> QueryKeys:
    """What has to be looked up in the sources of queries: the leaks' texts, and ids where there is no text."""
    known = list(leaks)
    texts = frozenset(leak.text for leak in known if leak.text)
    return QueryKeys(texts, frozenset(leak.query_id for leak in known if not leak.text))


def spread(leaks: Iterable[Leak], seed: int) -> list[Leak]:
    """The leaks in a random order in which the topics take turns; a query that leaks several topics stands once.

    Any number of them from the beginning is a sample spread over the topics.
    """
    of_query, of_topic = Keyed(seed, "leaks"), Keyed(seed, "topics")
    by_topic: defaultdict[str, list[Leak]] = defaultdict(list)
    for leak in sorted(set(leaks), key=lambda leak: (of_query(leak.text or leak.query_id), leak)):
        by_topic[leak.topic_id].append(leak)
    turns = [by_topic[topic] for topic in sorted(by_topic, key=lambda topic: (of_topic(topic), topic))]
    taken: set[str] = set()
    ordered: list[Leak] = []
    while turns:
        for queue in turns:
            while queue and (queue[0].text or queue[0].query_id) in taken:
                queue.pop(0)
            if queue:
                leak = queue.pop(0)
                taken.add(leak.text or leak.query_id)
                ordered.append(leak)
        turns = [queue for queue in turns if queue]
    return ordered
