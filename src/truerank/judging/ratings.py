"""What was said about which item by whom: from a judging store, or from label files of any kind."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from truerank.errors import InputError
from truerank.judging.events import Annotator
from truerank.judging.items import Item
from truerank.judging.schemes import BUILT_IN, Scheme, load_scheme
from truerank.judging.store import Store, is_store
from truerank.sources import SourceSpec, columns, label_rows, parse, unique_names
from truerank.sources.labels import LabelRow
from truerank.sources.tables import as_text
from truerank.text.normalising import normalise

__all__ = ["Coded", "Rating", "RatingSource", "Ratings", "Unit", "read_ratings"]

_TOPICS: Final = ("topic_id", "topic", "topic_number", "test_id")
_QUERIES: Final = ("query_id", "ms-marco-qid", "qid", "query-id")
_TEXTS: Final = ("query_text", "query", "text", "data")
_DOCUMENTS: Final = ("doc_id", "docid", "document_id", "docno", "passage_id", "url")
_DATASETS: Final = ("dataset", "split", "selection", "test", "corpus")
_SCORES: Final = ("similarity", "cosine_similarity", "cosine", "score")


class Unit(NamedTuple):
    """One thing that was judged.

    `unit_id` is the item's id in the store, or says what the file tells it by; `text` is the query's; `data` is the
    rest of the record.
    """

    unit_id: str
    topic_id: str
    query_id: str = ""
    text: str = ""
    doc_id: str = ""
    title: str = ""
    description: str = ""
    variant: str = ""
    dataset: str = ""
    stratum: str = ""
    similarity: float | None = None
    probability: float = 1.0
    data: Mapping[str, Any] = {}


class Rating(NamedTuple):
    """What one annotator said about one unit; both are positions in `Ratings`."""

    unit: int
    annotator: int
    labels: tuple[str, ...]
    adjudicated: bool = False


class Coded(NamedTuple):
    """Ratings as numbers: `codes` has shape (units, annotators), -1 where nothing was said."""

    codes: NDArray[np.int64]
    categories: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Ratings:
    """What was said, by whom.

    Attributes:
        units: what was judged, in the order of the source.
        annotators: who judged, with their roles.
        ratings: what they said; of one annotator at most one per unit, and one adjudication.
        scheme: the scheme of the store or of the call, or the built-in one that has all labels; None if none has.
        guessed: whether the scheme was told from the labels.
        skipped: how often an item was skipped, or a record carries no label.
        repeated: rows of label files that say what their annotator had said before.
        sources: what was read.
    """

    units: tuple[Unit, ...]
    annotators: tuple[Annotator, ...]
    ratings: tuple[Rating, ...]
    scheme: Scheme | None = None
    guessed: bool = False
    skipped: int = 0
    repeated: int = 0
    sources: tuple[str, ...] = field(default=())

    @property
    def people(self) -> tuple[int, ...]:
        """Positions of the annotators that are no models."""
        return tuple(at for at, annotator in enumerate(self.annotators) if annotator.role != "model")

    @property
    def models(self) -> tuple[int, ...]:
        """Positions of the annotators that are models."""
        return tuple(at for at, annotator in enumerate(self.annotators) if annotator.role == "model")

    @property
    def skip_note(self) -> str:
        """A sentence on the records that say nothing."""
        records, verb = ("record", "is") if self.skipped == 1 else ("records", "are")
        return f"{self.skipped:,} {records} without a label, or skipped, {verb} left out."

    @cached_property
    def counts(self) -> tuple[int, ...]:
        """How many units each annotator labelled; adjudications are not counted."""
        found = Counter(rating.annotator for rating in self.ratings if not rating.adjudicated)
        return tuple(found[at] for at in range(len(self.annotators)))

    def named(self, names: Sequence[str]) -> tuple[int, ...]:
        """Positions of annotators by their names.

        Raises:
            InputError: nobody of a name.
        """
        places = {annotator.name: at for at, annotator in enumerate(self.annotators)}
        for name in names:
            if name not in places:
                there = ", ".join(places) or "nobody"
                raise InputError(f"no annotator '{name}'", f"there are {there}", where=", ".join(self.sources) or None)
        return tuple(dict.fromkeys(places[name] for name in names))

    def labels(self) -> tuple[str, ...]:
        """The labels that occur, in the scheme's order, then by name."""
        known = () if self.scheme is None else tuple(choice.name for choice in self.scheme.choices)
        there = {label for rating in self.ratings for label in rating.labels}
        return (*(name for name in known if name in there), *sorted(there.difference(known)))

    def coded(
        self, answer: Callable[[tuple[str, ...]], str | None], annotators: Sequence[int], categories: Sequence[str] = ()
    ) -> Coded:
        """The ratings of some annotators as numbers.

        Args:
            answer: what labels mean; None where they say nothing about the question.
            annotators: their positions; the columns.
            categories: the answers in order; others follow, by name. Without any: those that occur, by name.

        Returns:
            The codes, with one row for each unit of `units`; adjudications are left out.
        """
        column = {at: place for place, at in enumerate(annotators)}
        meanings: dict[tuple[str, ...], str | None] = {}
        found: list[tuple[int, int, str]] = []
        for rating in self.ratings:
            if rating.adjudicated or rating.annotator not in column:
                continue
            if rating.labels not in meanings:
                meanings[rating.labels] = answer(rating.labels)
            meaning = meanings[rating.labels]
            if meaning is not None:
                found.append((rating.unit, column[rating.annotator], meaning))
        names = (*categories, *sorted({meaning for _, _, meaning in found}.difference(categories)))
        place = {name: number for number, name in enumerate(names)}
        codes = np.full((len(self.units), len(annotators)), -1, dtype=np.int64)
        for unit, at, meaning in found:
            codes[unit, at] = place[meaning]
        return Coded(codes, names)

    def decided(
        self, answer: Callable[[tuple[str, ...]], str | None], *, include_models: bool = False
    ) -> dict[int, str | None]:
        """What holds for each unit: the last adjudication, or else the answer that most annotators gave.

        Args:
            answer: what labels mean; None where they say nothing about the question.
            include_models: count what models said like what people said.

        Returns:
            Unit → answer, in the order of the units; None where the annotators are tied. Units about which nothing
            was said are not in it.
        """
        votes: defaultdict[int, Counter[str]] = defaultdict(Counter)
        settled: dict[int, str] = {}
        for rating in self.ratings:
            if self.annotators[rating.annotator].role == "model" and not include_models:
                continue
            meaning = answer(rating.labels)
            if meaning is None:
                continue
            if rating.adjudicated:
                settled[rating.unit] = meaning
            votes[rating.unit][meaning] += 1
        decided: dict[int, str | None] = {}
        for unit in sorted(votes):
            first, *rest = votes[unit].most_common(2)
            tied = bool(rest) and rest[0][1] == first[1]
            decided[unit] = settled.get(unit, None if tied else first[0])
        return decided

    def only(self, annotators: Sequence[int]) -> Ratings:
        """The same units with the ratings of some annotators only, and all adjudications."""
        kept = tuple(rating for rating in self.ratings if rating.adjudicated or rating.annotator in annotators)
        return replace(self, ratings=kept)

    def with_scheme(self, scheme: Scheme) -> Ratings:
        """The same ratings with their labels spelt as a scheme spells them.

        Raises:
            InputError: a label that the scheme lacks.
        """
        ratings = tuple(rating._replace(labels=scheme.known(rating.labels)) for rating in self.ratings)
        return replace(self, ratings=ratings, scheme=scheme, guessed=False)


RatingSource: TypeAlias = str | Path | Store | Ratings | Sequence[str | Path]


def read_ratings(source: RatingSource, *, scheme: Scheme | str | None = None) -> Ratings:
    """Reads what was said, from wherever it was written.

    Label files are those that `read_labels` opens, for items of any kind: a record is told by `item_id`, or else by
    what it has of dataset, topic, query id, document, text and variant. Where one file lacks the query ids or variants
    that another has, the rest decides, if it fits one unit only. `NAME=FILE` names the annotator of a file without a
    column `annotator`; otherwise it is called like the file.

    Args:
        source: a judging store (open, or its path), one label file or several, or ratings.
        scheme: the scheme of the labels, where the source does not carry it; a name, a file, or a scheme.

    Returns:
        Units, annotators and ratings.

    Raises:
        InputError: not readable; a store among several sources; a record that nothing tells from others; an annotator
            who labelled a unit twice and differently; a label that the scheme lacks; nothing labelled at all.
    """
    wanted = load_scheme(scheme) if isinstance(scheme, str) else scheme
    if isinstance(source, Ratings):
        return source if wanted is None else source.with_scheme(wanted)
    if isinstance(source, Store):
        return _from_store(source, wanted)
    specs = [str(source)] if isinstance(source, str | Path) else [str(spec) for spec in source]
    stores = [spec for spec in specs if is_store(Path(spec))]
    if stores and len(specs) > 1:
        raise InputError(
            "a store beside other sources", "give it alone; bring label files in with 'judge import'", where=stores[0]
        )
    if stores:
        with Store.open(stores[0]) as store:
            return _from_store(store, wanted)
    return _from_files(specs, wanted)


def _from_store(store: Store, scheme: Scheme | None) -> Ratings:
    if scheme is not None and scheme.name != store.scheme.name:
        raise InputError(
            f"the store was made with the scheme '{store.scheme.name}', not '{scheme.name}'",
            f"ask for {store.scheme.name}",
            where=store.path,
        )
    units: list[Unit] = []
    places: dict[str, int] = {}
    for item in store.items():
        places[item.item_id] = len(units)
        units.append(_unit_of(item))
    annotators = store.annotators()
    columns_of = {annotator.name: at for at, annotator in enumerate(annotators)}
    standing = store.standing()
    said = [entry for entry in standing if entry.kind == "label"]
    # Of several adjudications of an item the last one holds; times are ISO 8601 in UTC, so they sort as texts.
    last: dict[str, Any] = {}
    for entry in standing:
        if entry.kind == "adjudicate" and (entry.item_id not in last or entry.at >= last[entry.item_id].at):
            last[entry.item_id] = entry
    ratings = [Rating(places[entry.item_id], columns_of[entry.annotator], entry.labels) for entry in said]
    ratings += [Rating(places[e.item_id], columns_of[e.annotator], e.labels, True) for e in last.values()]
    return Ratings(
        tuple(units),
        annotators,
        tuple(ratings),
        store.scheme,
        skipped=sum(entry.kind == "skip" for entry in standing),
        sources=(str(store.path),),
    )


def _unit_of(item: Item) -> Unit:
    query = next((text for text in item.texts if text.name == "query"), None)
    others = [text for text in item.texts if text is not query]
    return Unit(
        unit_id=item.item_id,
        topic_id=item.topic_id,
        query_id="" if query is None else query.id,
        text="" if query is None else query.text,
        doc_id=next((text.id for text in others if text.id), ""),
        title=item.title,
        description=item.description,
        variant=item.variant,
        dataset=item.dataset,
        stratum=item.stratum,
        similarity=item.score,
        probability=item.probability,
        data=item.data,
    )


class _Said(NamedTuple):
    """A row of a label file; `loose` are the parts of the key that other files may lack."""

    unit: Unit
    key: tuple[str, ...]
    loose: tuple[str, str]
    annotator: str
    role: str
    about: str
    labels: tuple[str, ...]
    where: str
    line: int


def _from_files(given: Sequence[str], scheme: Scheme | None) -> Ratings:
    named = [_named_source(text) for text in given]
    if not named:
        raise InputError("nothing to read", "give a judging store, or label files")
    default = unique_names([spec for _, spec in named])
    said: list[_Said] = []
    skipped = 0
    for (name, spec), fallback in zip(named, default, strict=True):
        before = len(said)
        for row in label_rows(spec):
            if row.labels:
                said.append(_said(row, spec, name or row.annotator or fallback))
            skipped += not row.labels
        if len(said) == before:
            raise InputError("no labelled record in it", "export the annotations again", where=spec.location)
    ratings = _collected(said)
    ratings = replace(ratings, skipped=skipped, sources=tuple(spec.spec for _, spec in named))
    if scheme is not None:
        return ratings.with_scheme(scheme)
    guess = next((name for name in BUILT_IN if _fits(ratings, load_scheme(name))), None)
    return ratings if guess is None else replace(ratings.with_scheme(load_scheme(guess)), guessed=True)


def _named_source(text: str) -> tuple[str, SourceSpec]:
    """The annotator's name and the source of `NAME=FILE`; a file that exists as it is written is taken as it is."""
    name, equals, rest = text.partition("=")
    if equals and rest and name.strip() and not set(name) & set("/?#") and not Path(text).exists():
        return name.strip(), parse(rest)
    return "", parse(text)


def _said(row: LabelRow, spec: SourceSpec, annotator: str) -> _Said:
    text, query = _cell(row, _TEXTS), _cell(row, _QUERIES)
    unit = Unit(
        unit_id=_cell(row, ("item_id",)),
        topic_id=_cell(row, _TOPICS) or query,
        query_id=query,
        text=text,
        doc_id=_cell(row, _DOCUMENTS),
        title=_cell(row, ("title",)),
        description=_cell(row, ("description",)),
        variant=_cell(row, ("variant",)),
        dataset=_cell(row, _DATASETS),
        stratum=_cell(row, ("stratum",)),
        similarity=_similarity(row),
        probability=row.probability,
        data=row.values,
    )
    if unit.unit_id:
        key: tuple[str, ...] = ("id", unit.unit_id)
        loose = ("", "")
    else:
        key = ("", unit.dataset, unit.topic_id, unit.doc_id, normalise(text))
        loose = (query, normalise(unit.variant))
        if not (text or query or unit.doc_id):
            raise InputError(
                "nothing tells this record from others",
                "give it item_id, or topic_id and query_text, query_id or doc_id",
                where=spec.location,
                line=row.line,
            )
    return _Said(unit, key, loose, annotator, row.role, row.about, row.labels, spec.location, row.line)


def _collected(said: Sequence[_Said]) -> Ratings:
    variants: defaultdict[tuple[str, ...], dict[tuple[str, str], None]] = defaultdict(dict)
    for row in said:
        variants[row.key][row.loose] = None
    units: dict[tuple[Any, ...], int] = {}
    known: list[Unit] = []
    annotators: dict[str, Annotator] = {}
    ratings: dict[tuple[int, str, bool], _Said] = {}
    repeated = 0
    for row in said:
        key = (row.key, _resolved(row.loose, variants[row.key]))
        if key not in units:
            units[key] = len(known)
            known.append(row.unit._replace(unit_id=row.unit.unit_id or _readable(row.unit)))
        _note_annotator(annotators, row)
        place = (units[key], row.annotator, row.role == "adjudicator")
        earlier = ratings.setdefault(place, row)
        if earlier is not row:
            _check_repeated(earlier, row, known[units[key]])
            repeated += 1
    column = {name: at for at, name in enumerate(annotators)}
    return Ratings(
        tuple(known),
        tuple(annotators.values()),
        tuple(Rating(at, column[name], row.labels, settles) for (at, name, settles), row in ratings.items()),
        repeated=repeated,
    )


def _resolved(loose: tuple[str, str], there: Iterable[tuple[str, str]]) -> tuple[str, str]:
    """The fullest key that the given one may mean; itself where several fit."""
    fits = [
        other
        for other in there
        if other != loose
        and all(not mine or mine == theirs for mine, theirs in zip(loose, other, strict=True))
        and sum(map(bool, other)) > sum(map(bool, loose))
    ]
    return fits[0] if len(fits) == 1 else loose


def _note_annotator(annotators: dict[str, Annotator], row: _Said) -> None:
    role = row.role if row.role in ("model", "adjudicator") else "person"
    earlier = annotators.get(row.annotator)
    if earlier is not None and "model" in (earlier.role, role) and earlier.role != role:
        raise InputError(
            f"'{row.annotator}' is a {earlier.role} in one row and a {role} in another",
            "give the model a name of its own",
            where=row.where,
            line=row.line,
        )
    if earlier is None or earlier.role == "adjudicator":
        annotators[row.annotator] = Annotator(row.annotator, role, row.about)  # type: ignore[arg-type]


def _check_repeated(earlier: _Said, row: _Said, unit: Unit) -> None:
    if set(earlier.labels) != set(row.labels):
        first = f"line {earlier.line}" if earlier.where == row.where else f"{earlier.where}:{earlier.line}"
        raise InputError(
            f"'{row.annotator}' labelled {unit.unit_id} in {first} already, and differently",
            "name the annotators in a column 'annotator', or keep one of the rows",
            where=row.where,
            line=row.line,
        )


def _readable(unit: Unit) -> str:
    parts = [unit.dataset, f"topic {unit.topic_id}" if unit.topic_id else "", unit.doc_id]
    parts.append(f"'{normalise(unit.text)}'" if unit.text else f"query {unit.query_id}" if unit.query_id else "")
    return ", ".join(part for part in parts if part)


def _fits(ratings: Ratings, scheme: Scheme) -> bool:
    try:
        scheme.known(tuple({label for rating in ratings.ratings for label in rating.labels}))
    except InputError:
        return False
    return True


def _cell(row: LabelRow, names: Sequence[str]) -> str:
    key = columns.named(list(row.values), names)
    return ("" if key is None else as_text(row.values[key]) or "").strip()


def _similarity(row: LabelRow) -> float | None:
    try:
        return min(1.0, float(_cell(row, _SCORES)))
    except ValueError:
        return None
