"""Finding the item of a store that a record of a file is about."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator

from truerank.judging.items import Item
from truerank.judging.store import Store
from truerank.text.normalising import normalise


class Matcher:
    """The items of a store by id, by their texts, and by the ids of their documents."""

    def __init__(self, store: Store) -> None:
        self._ids: set[str] = set()
        self._places: dict[str, int] = {}
        self._by_key: defaultdict[Hashable, list[str]] = defaultdict(list)
        self._marks: dict[str, tuple[str, str, str, str]] = {}
        for place, item in enumerate(store.items()):
            self._ids.add(item.item_id)
            self._places[item.item_id] = place
            self._marks[item.item_id] = _marks(item)
            for key in _keys(item):
                self._by_key[key].append(item.item_id)

    def find(self, item: Item) -> tuple[str | None, str]:
        """The id of the item in the store.

        By the item id; otherwise by the topic with the ids of its documents, or with all texts, or with the query's
        normalised text. Where several fit, the query id, the title, the data set and the variant decide.
        """
        if item.item_id in self._ids:
            return item.item_id, ""
        marks = _marks(item)
        for key in _keys(item):
            found = self._by_key.get(key, [])
            for position, mark in enumerate(marks):
                if len(found) > 1 and mark:
                    narrowed = [item_id for item_id in found if self._marks[item_id][position] == mark]
                    found = narrowed or found
            if len(found) == 1:
                return found[0], ""
            if found:
                return None, f"{len(found)} items fit"
        return None, "no such item in the store"


def _keys(item: Item) -> Iterator[Hashable]:
    """What an item is found by, the most telling first."""
    documents = tuple(text.id for text in item.texts if text.name != "query")
    if documents and all(documents):
        yield ("ids", item.topic_id, documents)
    texts = tuple(normalise(text.text) for text in item.texts)
    if len(texts) > 1:
        yield ("texts", item.topic_id, texts)
    query = normalise(item.text("query"))
    if query:
        yield ("query", item.topic_id, query)


def _marks(item: Item) -> tuple[str, str, str, str]:
    query_id = next((text.id for text in item.texts if text.name == "query"), "")
    return query_id, normalise(item.title), item.dataset, normalise(item.variant)
