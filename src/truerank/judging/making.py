"""A new annotation: read what there is, draw a sample, say who judges what, make the store."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from truerank.core.result import Result
from truerank.errors import InputError
from truerank.judging.item_sources import read_items
from truerank.judging.items import Item
from truerank.judging.ratings import named_source
from truerank.judging.samples import Assignment, ItemSample, Order, assign, draw
from truerank.judging.schemes import Scheme, load_scheme
from truerank.judging.store import Annotator, Store
from truerank.options import Flag, Names, Options, Range, Seed, command
from truerank.records import Input
from truerank.sources.grammar import SourceSpec
from truerank.sources.inputs import input_of, inputs_of
from truerank.work.runs import run as started


@dataclass(frozen=True)
class People(Options):
    """Who judges, and how the items are shared out.

    Attributes:
        annotators: who judges; each gets the overlap and an equal part of the rest.
        overlap: items that all of them judge first, at least so many; whole topics.
        checkers: people who only look at the spot check; without them the other annotators do.
        spot_check: further items that a second person looks at.
        adjudicators: people who settle disagreements.
        order: the order of work: shuffled, by topic, or as given.
    """

    annotators: Names = ("annotator",)
    overlap: Annotated[int, Range(at_least=0)] = 0
    checkers: Names = ()
    spot_check: Annotated[int, Range(at_least=0)] = 0
    adjudicators: Names = ()
    order: Order = "shuffled"


@dataclass(frozen=True, repr=False)
class NewStore(Result, shown_in="truerank.judging.report"):
    """What a new store holds.

    Attributes:
        path: the file.
        scheme: what is asked.
        sample: what was drawn.
        assignment: who judges what.
        adjudicators: who settles disagreements.
    """

    path: Path
    scheme: str
    sample: ItemSample
    assignment: Assignment
    adjudicators: tuple[str, ...] = ()

    def json(self) -> dict[str, Any]:
        """The store as a JSON object."""
        return {
            "store": str(self.path),
            "scheme": self.scheme,
            **self.sample.json(),
            **self.assignment.json(),
            "adjudicators": list(self.adjudicators),
        }


@command
def new(
    store: Annotated[str | Path, Flag(metavar="STORE", positional=True, reads=Path)],
    scheme: Annotated[str | Path | Scheme, Flag(metavar="NAME|FILE", reads=str)],
    items: Annotated[Any, Flag(metavar="SRC", reads=list[str])],
    sample: Annotated[str | Sequence[str], Flag(metavar="PLAN", reads=list[str])] = "all",
    people: People = People(),
    *,
    topics: Annotated[Sequence[str], Flag(metavar="[NAME=]SRC")] = (),
    docs: Annotated[Sequence[str], Flag(metavar="SRC")] = (),
    seed: Seed = 0,
) -> NewStore:
    """Makes a store of items that are to be judged, and says who judges which.

    Args:
        store: the file to make; it is never overwritten.
        scheme: what is asked: leakage, leak, transfer, transfer:N, survivorship, answerability, relevance-documents,
            relevance-passages, duplicates, or a TOML or JSON file. In Python also a scheme.
        items: what is judged: the folder of an audit, a table, or a run; several are read together. In Python also
            items.
        sample: all, random:N, strata:0.8-1:N, top:N@0.91 (per topic), per:dataset:N or per:dataset:A=N,B=N; steps are
            joined by "then"; a further plan adds another sample to the first.
        people: who judges.
        topics: test sets whose titles and descriptions complete the items.
        docs: tables of documents (doc_id, text), where the items are a run.
        seed: of the sample, of who judges what, and of the order of work.

    Returns:
        What the store holds; STORE.manifest.json says where it comes from.

    Raises:
        InputError: a source, scheme, plan or name is at fault; the store is there already or cannot be written.

    Examples:

        truerank judge new leakage.judged --scheme leakage --items audit/ --sample top:5@0.91 --annotators ann,bob
        --overlap 100

        truerank judge new threshold.judged --scheme leak --items audit/ --sample strata:0.8-1:100

        truerank judge new versions.judged --scheme transfer --items pairs.jsonl --sample per:dataset:100
        --checkers carl,dora --spot-check 60

        truerank judge new graded.judged --scheme relevance-passages --items bm25.run --topics topics.tsv
        --docs passages.jsonl --sample top:10
    """
    place = Path(store)
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
    options = {"scheme": opened.name, "sample": sample, "people": people, "seed": seed}
    with started("judge new", _inputs(items, topics, docs), options, place, file=True):
        # The bytes of a store change with every judgment: the manifest has no hash of it.
        Store.create(place, opened, drawn.items, assignment.work, seed=seed, plan=plan, annotators=judges).close()
    return NewStore(place, opened.name, drawn, assignment, tuple(judge.name for judge in judges))


def _inputs(items: Any, topics: Sequence[str], docs: Sequence[str]) -> tuple[Input, ...]:
    sources = [items] if isinstance(items, str | Path | SourceSpec) else list(items)
    named = [named_source(topic) for topic in topics]
    return (
        *inputs_of(items=[one for one in sources if not isinstance(one, Item)]),
        *(input_of("topics", spec, name) for name, spec in named),
        *inputs_of(docs=docs),
    )


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
