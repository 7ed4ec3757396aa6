"""Reading items from whatever a user has: audits, tables, runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from truerank.errors import InputError
from truerank.judging.item_audits import audit_items, is_audit, texts_without_ids
from truerank.judging.item_rows import row_items
from truerank.judging.item_runs import run_items
from truerank.judging.items import Item, content_id
from truerank.judging.schemes import Scheme
from truerank.records import Topic
from truerank.sources import compressed, formats, grammar, read_topics
from truerank.sources.grammar import SourceSpec


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
    stands there twice is taken once.

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
            if there is None:
                items[item.item_id] = item
            elif _content(there) == _content(item):
                items[item.item_id] = _merged(there, item)
            else:
                fault = f"the id '{item.item_id[:80]}' stands above with another content"
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
            name, separator, source = spec.partition("=")
            named = bool(separator) and not Path(spec).exists() and "?" not in name
            found = read_topics(source if named else spec, strict=strict)
            for topic in found.topics:
                if named:
                    self._named[name, topic.topic_id] = topic
                else:
                    self._add(topic, spec)

    def _add(self, topic: Topic, spec: str) -> None:
        there = self.all.setdefault(topic.topic_id, topic)
        if there.title != topic.title:
            fault = f"the topic '{topic.topic_id}' stands in two test sets with different titles"
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
    if is_audit(spec.path):
        if scheme.view != "pair":
            fault = f"the scheme {scheme.name} does not judge the pairs of a leakage audit"
            raise InputError(fault, "take the scheme leakage or leak", where=spec.location)
        return ((None, item) for item in audit_items(spec.path))
    proposed = spec.path / "items.jsonl"
    if proposed.is_file():
        return row_items(grammar.parse(str(proposed)), scheme, strict=strict)
    if spec.path.is_dir():
        if (spec.path / "manifest.json").is_file():
            remedy = "give an audit that has some, or a file of items"
            raise InputError("this result has no items to judge", remedy, where=spec.path)
        raise InputError(
            "no candidates.parquet and no items.jsonl in this folder", "give the folder of an audit", where=spec.path
        )
    if formats.detect(compressed.checked_file(spec.path), spec.format) in ("run", "qrels"):
        return ((None, item) for item in run_items(spec, scheme, topics.all, docs))
    return row_items(spec, scheme, strict=strict)


def _identified(item: Item, spec: SourceSpec) -> Item:
    """The item under an id that is made of its content, unless the file gave it one.

    An audit's pair is a topic and a query's text: its id does not depend on the query's id, which differs between
    logs. A table that has one text under two query ids has two items.
    """
    if item.item_id:
        return item
    texts = texts_without_ids(item.texts) if is_audit(spec.path) else item.texts
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
