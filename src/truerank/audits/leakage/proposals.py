"""Propose: the pairs of topic texts and training queries that are worth a look (leakage paper, section 3)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import polars as pl

from truerank.arrays import frame_schema
from truerank.audits.leakage.documents.texts import TrainingSource
from truerank.audits.leakage.encoders import unread_share
from truerank.audits.leakage.options import FIELDS
from truerank.audits.leakage.results import NEIGHBOUR_SCHEMA, SourceCount
from truerank.records import TopicText
from truerank.sources import TopicSet
from truerank.sources.distinct import DistinctTexts
from truerank.text.carriers import Carrier, carrier_of, may_be_labelled, shared_carrier
from truerank.text.mojibake import repair
from truerank.text.normalising import normalise
from truerank.text.wording import core, folded, key, tokens
from truerank.vectors.search import NeighbourPairs, SearchPlan, search
from truerank.work.jobs import Job
from truerank.work.kept import keep_json, kept_json

_READ_SIZE = 1 << 16
#: Texts of a source on which words are counted, and the share and number that makes a word a common one.
_COUNTED = 1 << 14
_COMMON = 0.01
_RARE = 0.001
_FEWEST_HOLDERS = 10
#: The share of ids among the first texts of a source above which it does not hold queries.
_IDS = 0.5


def topic_texts(tests: Sequence[TopicSet], fields: Sequence[str]) -> tuple[TopicText, ...]:
    """The topic texts that are compared: the fields named, and every variant; empty texts are left out."""
    texts: list[TopicText] = []
    for test in tests:
        for topic in test.topics:
            own = [(name, 0, repair(str(getattr(topic, name)))) for name in fields if name != "variant"]
            own += [("variant", number, variant) for number, variant in enumerate(map(repair, topic.variants), start=1)]
            texts += [TopicText(test.name, topic.topic_id, *text) for text in own if normalise(text[2])]
    return tuple(texts)


def bare(test: TopicSet, texts: Callable[[], Iterable[str]]) -> TopicSet:
    """A test set whose texts come without what stands around most of a field; `texts` are some of the training side."""
    columns: dict[str, list[str]] = {name: [getattr(topic, name) for topic in test.topics] for name in FIELDS[:3]}
    columns["variants"] = [variant for topic in test.topics for variant in topic.variants]
    carriers = {name: Carrier() for name in columns}
    if any(may_be_labelled(column) or shared_carrier(filter(None, column), ()) for column in columns.values()):
        others = list(texts())
        carriers = {name: shared_carrier(filter(None, column), others) for name, column in columns.items()}
    if not any(carriers.values()):
        return test

    def taken(name: str, text: str) -> str:
        return carriers[name](normalise(text)) if carriers[name] else text

    topics = (
        topic._replace(variants=tuple(taken("variants", text) for text in topic.variants),
                       **{name: taken(name, getattr(topic, name)) for name in FIELDS[:3]})
        for topic in test.topics
    )  # fmt: skip
    around = [text for one in carriers.values() for text in (*one.before, *one.after)]
    return replace(test, topics=tuple(topics), carrier=tuple(dict.fromkeys(around)))


class DistinctQueries:
    """The distinct texts of one training source, as a stream that can be opened again; counts what it reads.

    A file, where given, keeps the counts once the source was read to its end, for the next process. Where texts have a
    carrier, they are distinct with it, and come without it. Damaged characters come mended.
    """

    def __init__(self, source: TrainingSource, kept: Path | None = None, carrier: Carrier = Carrier()) -> None:
        self._source = source
        self._kept = kept
        self._carrier = carrier
        known = None if kept is None else kept_json(kept)
        self.count: SourceCount | None = known

    def __call__(self) -> Iterator[tuple[int, str, str, str]]:
        """Opens the stream: (position, id of the first query with this text, text, normalised text)."""
        distinct = DistinctTexts()
        position = 0
        for query_ids, texts in self._source.batches(_READ_SIZE):
            texts = [repair(text) for text in texts]
            normalised = [normalise(text) for text in texts]
            new = distinct.new(normalised).tolist()
            if self._carrier:
                texts = normalised = [self._carrier(text) for text in normalised]
            columns = (map(column.__getitem__, new) for column in (query_ids, texts, normalised))
            yield from zip(range(position, position + len(new)), *columns, strict=True)
            position += len(new)
        counts = self._source.counts
        self.count = SourceCount(
            read=counts.read,
            distinct=distinct.count,
            distinct_estimated=distinct.estimated,
            empty=counts.empty,
            repaired=counts.repaired,
            skipped=counts.skipped,
        )
        if self._kept is not None:
            keep_json(self._kept, self.count)


@dataclass(frozen=True)
class Proposed:
    """What was found in all sources, and what was read of them.

    `pairs` has the columns of `NEIGHBOUR_SCHEMA`, `probed`, `unread` (the same text, which the encoder cannot read),
    and `compared` (the query without its carrier); from the share `common` of the sources' first texts on, a word that
    they hold is a common one, and up to `rare` of them one that is rare. `held` says how many hold a word.
    """

    pairs: pl.DataFrame
    counts: dict[str, SourceCount]
    found: dict[str, NeighbourPairs]
    common: float = _COMMON
    held: Mapping[str, int] = field(default_factory=dict)

    @property
    def rare(self) -> float:
        """How many of the first texts hold a rare word at most."""
        return max(_FEWEST_HOLDERS, _RARE * sum(min(count["read"], _COUNTED) for count in self.counts.values()))


def propose(
    sources: Sequence[TrainingSource],
    texts: Sequence[TopicText],
    plan: SearchPlan,
    job: Job,
    held: Mapping[str, int],
) -> Proposed:
    """Searches every source for neighbours of every topic text."""
    counts: dict[str, SourceCount] = {}
    found: dict[str, NeighbourPairs] = {}
    for place, source in enumerate(sources):
        name = source.name
        job.progress.note(f"{name}: reading {source.spec.spec}")
        part = job.part(f"source-{place}")
        first, topics = list(first_texts([source])), [text.text for text in texts]
        carrier = carrier_of(first, topics)
        queries = DistinctQueries(source, part.folder / "counts.json", carrier)
        found[name] = search(queries, plan, part)
        found[name] = replace(found[name], pairs=_as_read(found[name].pairs, source, carrier))
        check = found[name].screen
        if check is not None and plan.error is None:
            # One pilot serves all sources: each checks the error again on what it encodes twice.
            plan = replace(plan, error=check.allowed)
        share = unread_share(
            [text for text in first if text.strip()],
            lambda some: plan.unread([carrier(normalise(repair(text))) for text in some]),  # noqa: B023
        )
        counts[name] = SourceCount(**_counted(queries), unread=share)
        if (like := ids_among(first, topics)) is not None:
            counts[name] = {**counts[name], "ids": like}
        if carrier:
            counts[name] = {**counts[name], "carrier": [*carrier.before, *carrier.after]}
    pairs = _joined(texts, [source.name for source in sources], found)
    pairs, common = _with_shared(pairs, sources)
    return Proposed(pairs, counts, found, common, held)


def ids_among(texts: Sequence[str], topics: Sequence[str]) -> str | None:
    """One of the ids that stand in place of queries; None where most texts are queries, or most topics look like ids.

    An id is one word with digits: of the queries of a log, fewer than one in a hundred are.
    """
    ids = [[text for text in side if len(text.split()) == 1 and re.search(r"\d", text)] for side in (texts, topics)]
    shares = [len(some) / max(1, len(side)) for some, side in zip(ids, (texts, topics), strict=True)]
    return ids[0][0].strip() if shares[0] > _IDS >= shares[1] else None


def held_words(sources: Sequence[TrainingSource]) -> dict[str, int]:
    """How many of the first texts of all sources hold a word."""
    counts: Counter[str] = Counter()
    for text in first_texts(sources):
        counts.update(set(_words(text)))
    return dict(counts)


def _with_shared(pairs: pl.DataFrame, sources: Sequence[TrainingSource]) -> tuple[pl.DataFrame, float]:
    """Pairs with the column `shared`, and the share from which on a word is a common one."""
    weak = pl.col("probed") > 0
    texts = pairs.filter(weak).select("topic_text", "query_text").unique(maintain_order=True)
    if texts.is_empty():
        return pairs.with_columns(shared=pl.lit(None, pl.Float32)), _COMMON
    holders: Counter[str] = Counter()
    read = 0
    for text in first_texts(sources):
        holders.update({key(word) for word in _words(text)})
        read += 1
    rarest = []
    for pair in texts.iter_rows():
        topic, query = ({key(word) for word in core(text).words} for text in pair)
        rarest.append(min((holders[name] for name in topic & query), default=None))
    shared = (pl.Series(rarest, dtype=pl.Int64) / max(read, 1)).cast(pl.Float32)
    found = pairs.join(texts.with_columns(shared=shared), on=texts.columns, how="left", maintain_order="left")
    return found.with_columns(pl.when(weak).then("shared")), max(_FEWEST_HOLDERS / max(read, 1), _COMMON)


def first_texts(sources: Sequence[TrainingSource]) -> Iterator[str]:
    for source in sources:
        yield from next(iter(source.batches(_COUNTED)), ((), ()))[1]


def _words(text: str) -> list[str]:
    return [word for token in tokens(text) for word in folded(token)]


def _as_read(pairs: pl.DataFrame, source: TrainingSource, carrier: Carrier) -> pl.DataFrame:
    """Pairs with the column `compared`, and with every text of the source that is the same without its carrier."""
    pairs = pairs.with_columns(compared="text")
    if not carrier:
        return pairs
    wanted = set(pairs["text"])
    every = ((*row[:3], carrier(row[3])) for row in DistinctQueries(source)())
    schema = {name: pairs.schema[name] for name in ("position", "query_id", "text", "compared")}
    rows = pl.DataFrame([row for row in every if row[3] in wanted], schema, orient="row")
    texts = pairs.drop("position", "query_id", "text").join(rows, on="compared", maintain_order="left_right")
    return texts.select(pairs.columns)


def signs(column: str) -> pl.Expr:
    """A text without case, and with its marks and blanks as one blank between words."""
    return pl.col(column).str.to_lowercase().str.replace_all(r"[\s\p{P}--#%&*@]+", " ").str.strip_chars()


def _counted(queries: DistinctQueries) -> SourceCount:
    if queries.count is None:
        for _ in queries():
            pass
    if queries.count is None:
        raise RuntimeError("a stream of queries ended without being counted")
    return queries.count


def _joined(texts: Sequence[TopicText], order: Sequence[str], found: dict[str, NeighbourPairs]) -> pl.DataFrame:
    topics = pl.DataFrame(
        [(number, *text) for number, text in enumerate(texts)],
        schema=frame_schema("topic_no: UInt32, test topic_id field: String, variant_no: Int32, topic_text: String"),
        orient="row",
    )
    parts = [
        found[name].pairs.with_columns(source=pl.lit(name), source_no=pl.lit(place, pl.Int32))
        for place, name in enumerate(order)
    ]
    joined = pl.concat(parts).join(topics, on="topic_no", how="left")
    # Where the encoder reads nothing, there is no cosine; a text that is the topic text has 1 all the same.
    same = (pl.col("similarity") == 0) & (signs("compared") == signs("topic_text"))
    return (
        joined.with_columns(similarity=pl.when(same).then(1.0).otherwise("similarity").cast(pl.Float32), unread=same)
        .sort("topic_no", "source_no", -pl.col("similarity"), "rank")
        .with_columns(rank=pl.col("rank").sort().over("topic_no", "source_no", mapping_strategy="group_to_rows"))
        .rename({"text": "query_text"})
        .select(*NEIGHBOUR_SCHEMA, "probed", "unread", "compared")
    )
