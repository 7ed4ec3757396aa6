"""A new annotation: read what there is, draw a sample, say who judges what, make the store."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from truerank.errors import InputError
from truerank.judging.item_sources import read_items
from truerank.judging.items import Item
from truerank.judging.samples import Assignment, Drawn, Order, assign, draw
from truerank.judging.schemes import Scheme, load_scheme
from truerank.judging.store import Annotator, Store
from truerank.reports.tables import Column, Table
from truerank.sources.grammar import SourceSpec

__all__ = ["NewStore", "People", "new"]


@dataclass(frozen=True)
class People:
    """Who judges, and how the items are shared out.

    Attributes:
        annotators: each gets the overlap and an equal part of the rest.
        overlap: items that all of them judge, at least; whole topics.
        checkers: people who only look at the spot check.
        spot_check: items that a second person looks at.
        adjudicators: people who settle disagreements.
        order: of the work.
    """

    annotators: tuple[str, ...] = ("annotator",)
    overlap: int = 0
    checkers: tuple[str, ...] = ()
    spot_check: int = 0
    adjudicators: tuple[str, ...] = ()
    order: Order = "shuffled"


@dataclass(frozen=True)
class NewStore:
    """What a new store holds.

    Attributes:
        path: the file.
        scheme: what is asked.
        drawn: the sample.
        assignment: who judges what.
        adjudicators: who settles disagreements.
    """

    path: Path
    scheme: str
    drawn: Drawn
    assignment: Assignment
    adjudicators: tuple[str, ...] = ()

    def json(self) -> dict[str, Any]:
        """The store as a JSON object."""
        return {
            "store": str(self.path),
            "scheme": self.scheme,
            **self.drawn.json(),
            **self.assignment.json(),
            "adjudicators": list(self.adjudicators),
        }

    def table(self) -> Table:
        """Who judges how many items."""
        columns = (Column("annotator"), Column("items", align="right", format=",d"))
        rows = tuple((name, len(ids)) for name, ids in self.assignment.work.items())
        notes = [f"Judged by all: {len(self.assignment.overlap):,}."] if self.assignment.overlap else []
        notes += [f"Spot check: {len(self.assignment.checked):,}."] if self.assignment.checked else []
        notes += [f"Adjudication: {', '.join(self.adjudicators)}."] if self.adjudicators else []
        return Table(f"{self.path}: scheme {self.scheme}", columns, rows, tuple(notes))

    def text(self) -> str:
        """What was drawn and who judges it, for a terminal."""
        return f"{self.drawn.table().text()}\n{self.table().text()}"


def new(
    path: str | Path,
    scheme: str | Path | Scheme,
    items: str | SourceSpec | Iterable[str | SourceSpec] | Sequence[Item],
    *,
    sample: str | Sequence[str] = "all",
    people: People | None = None,
    topics: Sequence[str] = (),
    docs: Sequence[str] = (),
    seed: int = 0,
) -> NewStore:
    """Makes a store.

    Args:
        path: where; nothing may be there.
        scheme: a name, a file, or a scheme.
        items: sources as `read_items` takes them, or items.
        sample: one plan or several, see `draw`.
        people: who judges; one annotator named "annotator" if nothing is said.
        topics: test sets that complete the items' topics.
        docs: tables of documents, for runs.
        seed: of the sample, of who judges what, and of the order of work.

    Returns:
        What the store holds.

    Raises:
        InputError: a source, scheme, plan or name is at fault; the store is there already or cannot be written.
    """
    place, people = Path(path), people or People()
    if place.exists():
        raise InputError("is there already", "choose another name; a store is never overwritten", where=place)
    opened = scheme if isinstance(scheme, Scheme) else load_scheme(scheme)
    clash = set(people.adjudicators) & {*people.annotators, *people.checkers}
    if clash:
        fault = f"'{min(clash)}' is annotator and adjudicator"
        raise InputError(fault, "use another name for one of the two", where=place)
    found = _items(items, opened, topics, docs)
    drawn = draw(found, sample, seed=seed)
    assignment = assign(
        drawn.items,
        people.annotators,
        overlap=people.overlap,
        spot_check=people.spot_check,
        checkers=people.checkers,
        order=people.order,
        seed=seed,
    )
    plan = {**drawn.json(), **assignment.json(), "order": people.order}
    judges = [Annotator(name, "adjudicator") for name in dict.fromkeys(people.adjudicators)]
    with Store.create(place, opened, drawn.items, assignment.work, seed=seed, plan=plan, annotators=judges):
        pass
    return NewStore(place, opened.name, drawn, assignment, tuple(judge.name for judge in judges))


def _items(
    given: str | SourceSpec | Iterable[str | SourceSpec] | Sequence[Item],
    scheme: Scheme,
    topics: Sequence[str],
    docs: Sequence[str],
) -> Sequence[Item]:
    if isinstance(given, (str, SourceSpec)):
        return read_items(given, scheme, topics=topics, docs=docs)
    several = list(given)
    items = [item for item in several if isinstance(item, Item)]
    sources = [source for source in several if isinstance(source, (str, SourceSpec))]
    if items and sources:
        raise InputError("items and sources mixed in one list", "give the items or the sources")
    return items or read_items(sources, scheme, topics=topics, docs=docs)
