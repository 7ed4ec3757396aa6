"""Propose: what is wrong with the topics by themselves, and beside other splits of the collection."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Final, NamedTuple, TypeVar

from truerank.audits.collection.instances import Instances, instances
from truerank.audits.collection.texts import damage, markup, measured, placeholder
from truerank.errors import InputError
from truerank.near_duplicates import Shingles, between, within
from truerank.records import Topic
from truerank.sources.grammar import SourceSpec, parse, unique_names
from truerank.sources.queries import open_queries
from truerank.sources.topics import topic_records
from truerank.text.identifiers import unwritable
from truerank.text.normalising import normalise
from truerank.text.words import has_script, script_of

#: Words of a topic that are looked for in other topics: as letters, so that scripts without blanks are served.
_LETTERS: Final = 4
#: Topics whose median is more characters than that are compared by runs of so many words.
_LONG_TEXTS, _WORDS = 250, 3
#: A topic is short or long by comparison with the median, at these factors and these numbers of letters.
_SHORT, _SHORT_LETTERS = 6, 6
_LONG, _LONG_LETTERS = 12, 300
#: A script that fewer than this share of the texts have is another one, if there are enough texts to say so.
_FOREIGN_SHARE: Final = 0.02
_FEWEST_FOR_SCRIPT: Final = 20
T = TypeVar("T")
_PAIR: Final = ("left", "right", "kind", "jaccard")


class TopicRecord(NamedTuple):
    """A topic as it is in its source: with its line (0 where not known), and whether bytes were not UTF-8."""

    topic: Topic
    line: int
    repaired: bool

    @property
    def text(self) -> str:
        """Title and description, normalised."""
        return normalise(f"{self.topic.title} {self.topic.description}")


@dataclass(frozen=True, eq=False)
class TopicTable:
    """Topics as they are in their source: all of them, those without a text and repeated ids too."""

    records: tuple[TopicRecord, ...]
    spec: SourceSpec

    @property
    def ids(self) -> tuple[str, ...]:
        """The distinct ids in order."""
        return tuple(dict.fromkeys(record.topic.topic_id for record in self.records))

    def distinct(self) -> tuple[TopicRecord, ...]:
        """The first record of each id that has a text."""
        first: dict[str, TopicRecord] = {}
        for record in self.records:
            if record.text:
                first.setdefault(record.topic.topic_id, record)
        return tuple(first.values())

    def texts(self) -> dict[str, str]:
        """The text of each topic that has one."""
        return {record.topic.topic_id: record.text for record in self.distinct()}


def several_of(counts: Mapping[T, int]) -> frozenset[T]:
    """The scripts or languages that so many texts have, without those of single ones among many."""
    total = sum(counts.values())
    least = max(1, _FOREIGN_SHARE * total) if total >= _FEWEST_FOR_SCRIPT else 0
    return frozenset(one for one, count in counts.items() if count > least)


def read_topic_table(source: str | SourceSpec) -> TopicTable:
    """Reads topics with all their faults."""
    spec = parse(source) if isinstance(source, str) else source
    records = tuple(TopicRecord(topic, line or 0, repaired) for topic, line, repaired in topic_records(spec))
    if not records:
        raise InputError("no topics in it", "give a file of topics", where=spec.location)
    return TopicTable(records, spec)


def comparable(similarity: float, texts: Collection[str] = ()) -> Shingles:
    """What makes two topics nearly the same.

    Short topics are compared by runs of letters, so that inflection is served; long ones, as those of ArguAna, by runs
    of words, as documents are.
    """
    long = bool(texts) and median(map(len, texts)) > _LONG_TEXTS
    return Shingles(
        shingle_unit="words" if long else "letters",
        shingle_size=_WORDS if long else _LETTERS,
        similarity=similarity,
        containment=1.0,
        contained_words=1 << 20,
    )


def topic_instances(table: TopicTable, similarity: float) -> Iterator[Instances]:
    """What the topics alone show."""
    yield from _records(table)
    yield from _texts(table.distinct(), len(table.records))
    yield from _duplicates(table.texts(), similarity)


def _records(table: TopicTable) -> Iterator[Instances]:
    first: dict[str, str] = {}
    rows: dict[str, list[dict[str, Any]]] = {
        kind: [] for kind in ("empty-topic", "conflicting-topic", "repeated-topic", "unwritable-topic-id")
    }
    for topic, line, text in ((record.topic, record.line, record.text) for record in table.records):
        row: dict[str, Any] = {"topic_id": topic.topic_id, "line": line}
        if not text and not normalise(topic.narrative):
            rows["empty-topic"].append(row)
        if unwritable(topic.topic_id):
            rows["unwritable-topic-id"].append({**row, "detail": f"id '{topic.topic_id}'"})
        if topic.topic_id not in first:
            first[topic.topic_id] = text
        elif (earlier := first[topic.topic_id]) == text:
            rows["repeated-topic"].append({**row, "detail": _shown(text)})
        else:
            detail = f"'{_shown(text)}'; before it '{_shown(earlier)}'"
            rows["conflicting-topic"].append({**row, "detail": detail})
    yield from (instances(kind, some, len(table.records)) for kind, some in rows.items())


def _texts(records: Sequence[TopicRecord], total: int) -> Iterator[Instances]:
    rows: dict[str, list[dict[str, Any]]] = {
        kind: []
        for kind in ("damaged-topic", "topic-markup", "topic-placeholder", "foreign-topic", "short-topic", "long-topic")
    }
    sizes = {record.topic.topic_id: measured(record.text).letters for record in records}
    middle = median(sizes.values()) if sizes else 0
    scripts = {record.topic.topic_id: script_of(record.text) for record in records}

    def note(kind: str, record: TopicRecord, detail: str) -> None:
        rows[kind].append({"topic_id": record.topic.topic_id, "line": record.line, "detail": detail})

    for record in records:
        shown = f"'{_shown(record.text)}'"
        raw = f"{record.topic.title} {record.topic.description}"
        if record.repaired:
            note("damaged-topic", record, "bytes that are not UTF-8")
        elif found := damage(raw):
            note("damaged-topic", record, found[1])
        if left := markup(raw):
            note("topic-markup", record, left)
        if placeholder(record.text):
            note("topic-placeholder", record, _shown(record.text))
            continue
        size = sizes[record.topic.topic_id]
        if size < _SHORT_LETTERS and size * _SHORT < middle:
            note("short-topic", record, f"{size} letters, median {middle:g}: {shown}")
        if size > _LONG_LETTERS and size > _LONG * middle:
            note("long-topic", record, f"{size:,d} letters, median {middle:g}: {shown}")
    rows["foreign-topic"] = _foreign(records, scripts)
    yield from (instances(kind, some, total) for kind, some in rows.items())


def _foreign(records: Sequence[TopicRecord], scripts: dict[str, str]) -> list[dict[str, Any]]:
    counts = Counter(script for script in scripts.values() if script)
    if not (rare := counts.keys() - several_of(counts)):
        return []
    usual = counts.most_common(1)[0][0]
    rows = []
    for record in records:
        if (script := scripts[record.topic.topic_id]) in rare and not has_script(record.text, usual):
            detail = f"{script.lower()}, not {usual.lower()}: '{_shown(record.text)}'"
            rows.append({"topic_id": record.topic.topic_id, "line": record.line, "detail": detail})
    return rows


def _duplicates(texts: Mapping[str, str], similarity: float) -> Iterator[Instances]:
    found = within(texts.items(), comparable(similarity, texts.values())).pairs.select(_PAIR)
    same, near = [], []
    seen: set[str] = set()
    for left, right, kind, jaccard in found.iter_rows():
        row = {"topic_id": right, "other": left, "detail": f"'{_shown(texts[right])}' · '{_shown(texts[left])}'"}
        if kind in ("exact", "reformatted"):
            same.append(row)
            seen.add(right)
        elif kind == "near":
            near.append({**row, "detail": f"{jaccard:.2f}: {row['detail']}"})
    yield instances("duplicate-topic", same, len(texts))
    once = {row["topic_id"]: row for row in reversed(near) if row["topic_id"] not in seen}
    order = {topic: place for place, topic in enumerate(texts)}
    yield instances("near-duplicate-topic", sorted(once.values(), key=lambda row: order[row["topic_id"]]), len(texts))


def other_splits(table: TopicTable, train: Sequence[str], similarity: float) -> Iterator[Instances]:
    """Topics that are in other splits of the collection."""
    texts = table.texts()
    same: dict[str, dict[str, Any]] = {}
    near: dict[str, dict[str, Any]] = {}
    for name, source in zip(unique_names([parse(one) for one in train]), train, strict=True):
        queries = {f"{place} {query.query_id}": query.text for place, query in enumerate(open_queries(parse(source)))}
        found = between(texts.items(), queries.items(), comparable(similarity, texts.values())).pairs.select(_PAIR)
        for left, right, kind, jaccard in found.sort("jaccard", descending=True, maintain_order=True).iter_rows():
            number = right.partition(" ")[2]
            pair = f"{name}: '{_shown(queries[right])}' · '{_shown(texts[left])}'"
            row = {"topic_id": left, "other": number}
            if kind in ("exact", "reformatted"):
                same.setdefault(left, {**row, "detail": pair})
            elif kind == "near":
                near.setdefault(left, {**row, "detail": f"{jaccard:.2f}, {pair}"})
    yield instances("topic-in-training", same.values(), len(texts))
    rest = [row for topic, row in near.items() if topic not in same]
    yield instances("near-topic-in-training", rest, len(texts))


def _shown(text: str) -> str:
    return text if len(text) <= 90 else f"{text[:87].rstrip()}…"
