"""Small judged data for the tests of agreement, tables and models."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from truerank.judging import Annotator, Item, Scheme, Store, Text

__all__ = ["Queue", "pair_item", "store_of", "written_csv"]


def pair_item(topic: str, query: str, number: int = 0, **more: object) -> Item:
    """A pair of a topic and a training query, as the leakage audit proposes it."""
    texts = (Text("query", query, f"q{topic}-{number}"),)
    return Item(f"{topic}-{number}", topic, title=f"title of {topic}", texts=texts, **more)  # type: ignore[arg-type]


def store_of(
    path: Path,
    scheme: Scheme,
    items: Sequence[Item],
    said: Mapping[str, Mapping[str, Sequence[str]]],
    annotators: Iterable[Annotator] = (),
) -> Path:
    """A store in which every annotator said something about some items; returns its path."""
    known = {annotator.name for annotator in annotators}
    people = [*annotators, *(Annotator(name) for name in said if name not in known)]
    with Store.create(path, scheme, items, annotators=people) as store:
        for annotator, labels in said.items():
            for item_id, chosen in labels.items():
                store.record(item_id, annotator, "label", chosen)
    return path


def written_csv(path: Path, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Path:
    """A CSV file."""
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(columns)
        writer.writerows(rows)
    return path


class Queue:
    """A proposer: a list of items, the most useful first, each given to one annotator."""

    def __init__(self, items: Sequence[Item]) -> None:
        self._items = tuple(items)

    def propose(self, store: Store, annotator: str, n: int) -> Sequence[Item]:
        """The first n items that nobody has."""
        taken = {item_id for person in store.annotators() for item_id in store.assigned(person.name)}
        return [item for item in self._items if item.item_id not in taken][:n]
