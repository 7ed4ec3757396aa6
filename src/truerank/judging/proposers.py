"""How an audit feeds a store while people judge: what to look at next follows from what was said so far."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from truerank.judging.items import Item
from truerank.judging.store import Store


@runtime_checkable
class Proposer(Protocol):
    """Chooses items by what the store holds; an active learner, or a pool that grows."""

    def propose(self, store: Store, annotator: str, n: int) -> Sequence[Item]:
        """At most n items that the annotator should judge next; none when there is nothing left worth a look."""
        ...


class Queue:
    """The simplest proposer: a list of items, each given to one annotator, in order.

    Args:
        items: what to judge, the most useful first.
    """

    def __init__(self, items: Sequence[Item]) -> None:
        self._items = tuple(items)

    def propose(self, store: Store, annotator: str, n: int) -> Sequence[Item]:
        """The first n items that nobody has."""
        taken = {item_id for person in store.annotators() for item_id in store.assigned(person.name)}
        return [item for item in self._items if item.item_id not in taken][:n]


def next_item(store: Store, annotator: str, proposer: Proposer | None = None, *, batch: int = 1) -> Item | None:
    """The annotator's next item; asks the proposer where none is left."""
    found = store.next_item(annotator)
    if found is not None or proposer is None:
        return found
    store.extend(proposer.propose(store, annotator, batch), annotator)
    return store.next_item(annotator)
