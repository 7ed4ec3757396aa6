"""What was said, by whom: read from a judging store, label files or judgments; and the rule for several voices."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from truerank.errors import InputError, OptionError
from truerank.judging.definitions import check_leak_labels, leak_answer
from truerank.judging.items import Annotator, Role
from truerank.judging.schemes import BUILT_IN, Scheme, load_scheme
from truerank.judging.store import Store, is_store
from truerank.options import Labels, Votes
from truerank.records import Input, Judgment
from truerank.sources import SourceSpec, read_labels, unique_names
from truerank.sources.golden_words import words_of
from truerank.sources.grammar import named_source
from truerank.sources.inputs import input_of
from truerank.sources.recognition import Reading
from truerank.text.normalising import normalise
from truerank.text.printable import counted

_Answer = TypeVar("_Answer", bound=Hashable)

#: What each rule says, for help and reports.
VOTES: Final[dict[str, str]] = {
    "majority": "the answer of more than half of the annotators; somebody who contradicts himself is an error",
    "unanimous": "the answer that every voice gave",
    "any": "the first of the possible answers, such as a leak before none, that any voice gave",
    "first": "what was said first",
    "last": "what was said last",
}


def checked_votes(votes: str) -> None:
    if votes not in VOTES:
        raise OptionError("votes", f"'{votes}' is not one of the choices", f"choose one of {', '.join(VOTES)}")


def decide(said: Sequence[tuple[Hashable, _Answer]], votes: Votes, order: Sequence[_Answer] = ()) -> _Answer | None:
    """The answer that holds after all voices were heard."""
    answers = [answer for _, answer in said]
    if len(set(answers)) < 2:
        return answers[0] if answers else None
    if votes == "unanimous":
        return None
    if votes == "any":
        return next((answer for answer in order if answer in answers), None)
    if votes in ("first", "last"):
        return answers[0 if votes == "first" else -1]
    # Whoever gave two answers has none that counts, but remains one of the voices.
    given: dict[Hashable, set[_Answer]] = {}
    for voice, answer in said:
        given.setdefault(voice, set()).add(answer)
    counts = Counter(answer for own in given.values() if len(own) == 1 for answer in own)
    return next((answer for answer, count in counts.items() if 2 * count > len(given)), None)


_LISTED: Final = 5


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
    """What one annotator said about one unit; both are positions in `Ratings`; `place` is the file and the line."""

    unit: int
    annotator: int
    labels: tuple[str, ...]
    adjudicated: bool = False
    place: tuple[str, int | None] = ("", None)


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
        ratings: what they said; of one annotator at most one per unit, and one adjudication, but all that they said
            where they contradict themselves and `votes` decides.
        scheme: the scheme of the store or of the call, or the built-in one that has all labels; None if none has.
        guessed: whether the scheme was told from the labels.
        skipped: how often an item was skipped, or a record carries no label.
        repeated: rows of label files that say what their annotator had said before.
        sources: what was read.
        votes: how one answer is made of several voices.
        contradictions: who said two things of one unit, and where.
    """

    units: tuple[Unit, ...]
    annotators: tuple[Annotator, ...]
    ratings: tuple[Rating, ...]
    scheme: Scheme | None = None
    guessed: bool = False
    skipped: int = 0
    repeated: int = 0
    sources: tuple[str, ...] = field(default=())
    votes: Votes = "majority"
    contradictions: tuple[str, ...] = ()

    @property
    def people(self) -> tuple[int, ...]:
        """Positions of the annotators that are not models."""
        return tuple(at for at, annotator in enumerate(self.annotators) if annotator.role != "model")

    @property
    def models(self) -> tuple[int, ...]:
        """Positions of the annotators that are models."""
        return tuple(at for at, annotator in enumerate(self.annotators) if annotator.role == "model")

    def readings(self) -> tuple[Reading, ...]:
        """What each source was taken for."""
        said = defaultdict[str, Counter[int]](Counter)
        for rating in self.ratings:
            said[rating.place[0] or self.sources[0]][rating.annotator] += 1
        return tuple(
            Reading(source, "labels", f"{counted(own.total(), 'label')} by {', '.join(map(self._called, own))}")
            for source, own in said.items()
        )

    def _called(self, annotator: int) -> str:
        one = self.annotators[annotator]
        return f"'{one.name}'" + (f" (a {one.role})" if one.role != "person" else "")

    @property
    def skip_note(self) -> str:
        """A sentence on the records that say nothing."""
        records, verb = ("record", "is") if self.skipped == 1 else ("records", "are")
        return f"{self.skipped:,} {records} without a label, or skipped, {verb} left out."

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know of the rows: those that say nothing, say it again, or contradict each other."""
        notes = [self.skip_note] if self.skipped else []
        if self.repeated:
            notes.append(f"{self.repeated:,} rows repeat what their annotator had said; each counts once.")
        return (*notes, *self.contradiction_notes)

    @property
    def contradiction_notes(self) -> tuple[str, ...]:
        """A sentence on the annotators who contradict themselves; none where nobody does."""
        if not self.contradictions:
            return ()
        return (f"Annotators contradict themselves, decided by '{self.votes}': {listed(self.contradictions)}.",)

    @cached_property
    def counts(self) -> tuple[int, ...]:
        """How many units each annotator labelled; adjudications are not counted."""
        found = {(rating.unit, rating.annotator) for rating in self.ratings if not rating.adjudicated}
        labelled = Counter(at for _, at in found)
        return tuple(labelled[at] for at in range(len(self.annotators)))

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
        cells: defaultdict[tuple[int, int], list[tuple[int, str]]] = defaultdict(list)
        for rating in self.ratings:
            if rating.adjudicated or rating.annotator not in column:
                continue
            if rating.labels not in meanings:
                meanings[rating.labels] = answer(rating.labels)
            meaning = meanings[rating.labels]
            if meaning is not None:
                cells[rating.unit, column[rating.annotator]].append((rating.annotator, meaning))
        names = (*categories, *sorted({said for cell in cells.values() for _, said in cell}.difference(categories)))
        place = {name: number for number, name in enumerate(names)}
        codes = np.full((len(self.units), len(annotators)), -1, dtype=np.int64)
        for (unit, at), cell in cells.items():
            codes[unit, at] = place.get(decide(cell, self.votes, categories) or "", -1)
        return Coded(codes, names)

    def decided(
        self,
        answer: Callable[[tuple[str, ...]], str | None],
        *,
        include_models: bool = False,
        order: Sequence[str] = (),
    ) -> dict[int, str | None]:
        """What holds for each unit: the last adjudication, or else the answer that the rule `votes` gives.

        Args:
            answer: what labels mean; None where they say nothing about the question.
            include_models: count what models said like what people said.
            order: the possible answers, for the rule "any".

        Returns:
            Unit → answer, in the order of the units; None where the rule gives none. Units about which nothing was
            said are not in it.

        Raises:
            OptionError: the rule is "any", and the question has no order of answers.
        """
        if self.votes == "any" and not order:
            fault = "'any' decides questions with an order of answers, such as leak or no leak"
            raise OptionError("votes", fault, "choose majority, unanimous, first or last")
        said: defaultdict[int, list[tuple[int, str]]] = defaultdict(list)
        settled: dict[int, str] = {}
        for rating in self.ratings:
            counts = include_models or self.annotators[rating.annotator].role != "model"
            meaning = answer(rating.labels) if counts else None
            if meaning is not None:
                said[rating.unit].append((rating.annotator, meaning))
                if rating.adjudicated:
                    settled[rating.unit] = meaning
        return {unit: settled.get(unit) or decide(said[unit], self.votes, order) for unit in sorted(said)}

    def only(self, annotators: Sequence[int]) -> Ratings:
        """The same units with the ratings of some annotators only, and all adjudications."""
        kept = tuple(rating for rating in self.ratings if rating.adjudicated or rating.annotator in annotators)
        return replace(self, ratings=kept)

    def by(self, annotators: Sequence[int]) -> Ratings:
        """The same units with what some annotators said, adjudications too, and nothing else."""
        return replace(self, ratings=tuple(rating for rating in self.ratings if rating.annotator in annotators))

    def with_scheme(self, scheme: Scheme) -> Ratings:
        """The same ratings with their labels spelt as a scheme spells them.

        For the scheme `leak` every label that says something about a leak is taken, also the types of `leakage`.

        Raises:
            InputError: a label that the scheme lacks.
        """
        known: Callable[[Sequence[str]], tuple[str, ...]] = scheme.known
        if scheme.name == "leak":
            check_leak_labels(label for rating in self.ratings for label in rating.labels)
            known = _leak_labels
        ratings = tuple(rating._replace(labels=known(rating.labels)) for rating in self.ratings)
        return replace(self, ratings=ratings, scheme=scheme, guessed=False)


def contradiction_error(named: Sequence[str], place: tuple[str, int | None] = ("", None)) -> InputError:
    return InputError(
        f"annotators contradict themselves: {listed(named)}",
        "name the annotators in a column 'annotator', keep one of the rows, or say how to decide with `votes`",
        where=place[0] or None,
        line=place[1],
    )


def listed(named: Sequence[str]) -> str:
    """The first few, and how many more there are."""
    return "; ".join(named[:_LISTED]) + (f"; and {len(named) - _LISTED} more" if len(named) > _LISTED else "")


def _leak_labels(labels: Sequence[str]) -> tuple[str, ...]:
    answer = leak_answer(tuple(labels))
    return () if answer is None else (answer,)


#: Labels of every kind of question.
_ANYWHERE: Final = frozenset("yes no true false 0 1".split())
_SAME_PROBABILITY: Final = 1e-9
#: What units and items call alike.
_OF_ITEMS: Final = ("topic_id", "title", "description", "variant", "dataset", "stratum", "probability", "data")


RatingSource: TypeAlias = str | Path | Store | Ratings | Sequence[str | Path] | Sequence[Judgment]


def read_ratings(
    source: RatingSource | Labels,
    *,
    scheme: Scheme | str | Sequence[str] | None = None,
    votes: Votes = "majority",
    annotators: Sequence[str] = (),
    columns: str = "",
) -> Ratings:
    """Reads what was said, from wherever it was written.

    Label files are those that `read_labels` opens. A record is told by `item_id`, or else by what it has of dataset,
    topic, query id, document, text and variant. Where one file lacks the query ids or variants that another has, the
    rest decides, if it fits one unit only. `NAME=FILE` names the annotator of a file without a column for it;
    otherwise it is called like the file.

    Args:
        source: a judging store (open, or its path), one label file or several, judgments, ratings, or the options
            `Labels`, which bring their own votes and annotators.
        scheme: the scheme of the labels, where the source does not carry it; a name, a file, a scheme, or the names of
            those that come into question.
        votes: how one answer is made of several voices. With "majority" an annotator who labelled a unit twice and
            differently is an error; the other rules decide it.
        annotators: whose ratings count; by default everybody's.
        columns: of label files, see `read_labels`.

    Returns:
        Units, annotators and ratings.

    Raises:
        InputError: not readable; a store among several sources; a record that nothing tells from others; an annotator
            who contradicts himself, with all such places; a label that the scheme lacks; nothing labelled at all.
    """
    checked_votes(votes)
    if isinstance(source, Labels):
        asked = source.annotators
        return read_ratings(label_source(source), scheme=scheme, votes=source.votes, annotators=asked, columns=columns)
    if annotators:
        ratings = read_ratings(source, scheme=scheme, votes=votes, columns=columns)
        return ratings.by(ratings.named(annotators))
    names = BUILT_IN if scheme is None else () if isinstance(scheme, str | Scheme) else tuple(scheme)
    wanted = load_scheme(scheme) if isinstance(scheme, str) else scheme if isinstance(scheme, Scheme) else None
    if isinstance(source, Ratings):
        return source if wanted is None else source.with_scheme(wanted)
    if isinstance(source, Store):
        return replace(_from_store(source, wanted), votes=votes)
    given = [source] if isinstance(source, str | Path) else list(source)
    rows = [row for row in given if isinstance(row, Judgment)]
    specs = [str(spec) for spec in given if not isinstance(spec, Judgment)]
    if rows and specs:
        raise InputError("label files and judgments mixed in one list", "give the files or the judgments")
    stores = [spec for spec in specs if is_store(Path(spec))]
    if stores and len(specs) > 1:
        remedy = "give it alone; bring label files in with 'judge import'"
        raise InputError("a store beside other sources", remedy, where=stores[0])
    if stores:
        with Store.open(stores[0]) as store:
            return replace(_from_store(store, wanted), votes=votes)
    files = [named_source(text) for text in specs]
    rows = rows or _read(files, columns)
    if scheme is not None and wanted is None and load_scheme(names[0]).view == "pair":
        lacking = next((row for row in rows if row.labels and not row.topic_id), None)
        if lacking is not None:
            there = ", ".join(map(repr, list(lacking.values)[:12])) or "none"
            fault = "no column or key 'topic_id'"
            raise InputError(fault, f"there are {there}", where=lacking.where or None, line=lacking.line)
    ratings = replace(_collected(rows), sources=tuple(spec.spec for _, spec in files))
    return _settled(_spelt(ratings, wanted, names, scheme is not None), votes)


def label_source(labels: Labels) -> Any:
    """The sources of a group of options: one that cannot be in a list, such as an open store, or all of them."""
    alone = len(labels.labels) == 1 and not isinstance(labels.labels[0], str | Path | Judgment)
    return labels.labels[0] if alone else labels.labels


def label_inputs(labels: Labels, role: str = "labels") -> tuple[Input, ...]:
    """The sources of labels as a manifest names them."""
    named = [named_source(str(one)) if isinstance(one, str | Path) else ("", one) for one in labels.labels]
    return tuple(input_of(role, source, name) for name, source in named)


def label_rules(labels: Labels) -> dict[str, Any]:
    """Whose labels count, and the rule for several voices, as options of a manifest."""
    return {name: getattr(labels, name) for name in ("annotators", "votes", "include_models")}


def one_of(paths: Any, judgments: Labels) -> Labels:
    """The store or label files that were given without an option, or those of `labels`, with the rule for votes."""
    absent = paths is None or (isinstance(paths, list | tuple) and not paths)
    if absent == (not judgments):
        fault = "neither a store nor label files" if absent else "two readings: files with and without `labels`"
        raise InputError(fault, "give PATH, or `labels`")
    return judgments if absent else replace(judgments, labels=paths)


def _spelt(ratings: Ratings, scheme: Scheme | None, names: Sequence[str], needed: bool) -> Ratings:
    """The ratings in a scheme's spelling: the given one, or the first of several that has all labels."""
    if scheme is not None:
        return ratings.with_scheme(scheme)
    said = {label.casefold() for rating in ratings.ratings for label in rating.labels}
    for name in names:
        # What everybody says of anything says of no pair of queries whether it is a leak.
        if not needed and said <= _ANYWHERE and load_scheme(name).view == "pair":
            continue
        try:
            return replace(ratings.with_scheme(load_scheme(name)), guessed=True)
        except InputError:
            if needed and name == names[-1]:
                raise
    return ratings


def _settled(ratings: Ratings, votes: Votes) -> Ratings:
    """Each annotator with one rating of a unit, or, where they contradict themselves and the rule allows it, all."""
    groups: defaultdict[tuple[int, int, bool], list[Rating]] = defaultdict(list)
    for rating in ratings.ratings:
        groups[rating.unit, rating.annotator, rating.adjudicated].append(rating)
    faulty = [group for group in groups.values() if len({frozenset(rating.labels) for rating in group}) > 1]
    named = tuple(
        f"'{ratings.annotators[group[0].annotator].name}' on {ratings.units[group[0].unit].unit_id}: "
        + ", ".join(f"{' + '.join(rating.labels)}{_shown(rating.place)}" for rating in group)
        for group in faulty
    )
    if faulty and votes == "majority":
        raise contradiction_error(named, faulty[0][-1].place)
    open_ones = {id(group) for group in faulty}
    dropped = {id(rating) for group in groups.values() if id(group) not in open_ones for rating in group[1:]}
    kept = tuple(rating for rating in ratings.ratings if id(rating) not in dropped)
    return replace(ratings, ratings=kept, repeated=len(dropped), votes=votes, contradictions=named)


def _shown(place: tuple[str, int | None]) -> str:
    return f" ({place[0]}:{place[1]})" if place[0] else ""


def _from_store(store: Store, scheme: Scheme | None) -> Ratings:
    if scheme is not None and scheme.name != store.scheme.name:
        fault = f"the store was made with the scheme '{store.scheme.name}', not '{scheme.name}'"
        raise InputError(fault, f"ask for {store.scheme.name}", where=store.path)
    units: list[Unit] = []
    places: dict[str, int] = {}
    for item in store.items():
        places[item.item_id] = len(units)
        query = next((text for text in item.texts if text.name == "query"), None)
        others = [text for text in item.texts if text is not query]
        query_id, words = ("", "") if query is None else (query.id, query.text)
        doc_id = next((text.id for text in others if text.id), "")
        same = {name: getattr(item, name) for name in _OF_ITEMS}
        units.append(Unit(item.item_id, query_id=query_id, text=words, doc_id=doc_id, similarity=item.score, **same))
    annotators = store.annotators()
    columns_of = {annotator.name: at for at, annotator in enumerate(annotators)}
    standing = store.standing()
    # Of several adjudications of an item the last one holds; times are ISO 8601 in UTC, so they sort as texts.
    last: dict[str, Any] = {}
    for entry in standing:
        if entry.kind == "adjudicate" and (entry.item_id not in last or entry.at >= last[entry.item_id].at):
            last[entry.item_id] = entry
    said = [*(entry for entry in standing if entry.kind == "label"), *last.values()]
    ratings = tuple(
        Rating(places[entry.item_id], columns_of[entry.annotator], entry.labels, entry.kind == "adjudicate")
        for entry in said
    )
    skipped = sum(entry.kind == "skip" for entry in standing)
    return Ratings(tuple(units), annotators, ratings, store.scheme, skipped=skipped, sources=(str(store.path),))


def _read(files: Sequence[tuple[str, SourceSpec]], columns: str) -> list[Judgment]:
    """The judgments of files, each with the name of its annotator."""
    if not files:
        raise InputError("nothing to read", "give a judging store, or label files")
    default = unique_names([spec for _, spec in files])
    said: list[Judgment] = []
    for (name, spec), fallback in zip(files, default, strict=True):
        read = [row._replace(annotator=name or row.annotator or fallback) for row in read_labels(spec, columns)]
        if not any(row.labels or row.kind == "undo" for row in read):
            raise InputError("no labelled record in it", "export the annotations again", where=spec.location)
        said += read
    return said


def _key(row: Judgment) -> tuple[tuple[str, ...], tuple[str, str]]:
    """What a unit is told by, and the parts of that which other files may lack."""
    if row.item_id:
        return ("id", row.item_id), ("", "")
    text = normalise(row.query_text)
    if not (text or row.query_id or row.doc_id):
        column = next((name for name in row.values or () if words_of(name)[-1:] == ("id",)), "COLUMN")
        remedy = f"name what does: --columns id={column}, or question=COLUMN or document=COLUMN"
        raise InputError(
            "nothing distinguishes this record from others", remedy, where=row.where or None, line=row.line
        )
    key = ("", row.dataset, row.topic_id or row.query_id, row.doc_id, text)
    return key, (row.query_id, normalise(row.variant))


def _collected(rows: Sequence[Judgment]) -> Ratings:
    """The judgments with their units and annotators numbered; every row is a rating."""
    undo = next((row for row in rows if row.kind == "undo"), None)
    if undo is not None:
        fault, remedy = (
            "a history of events, of which some were taken back",
            "export the labels that hold now, or give the store itself",
        )
        raise InputError(fault, remedy, where=undo.where or None, line=undo.line)
    said = [(row, *_key(row)) for row in rows if row.labels and row.kind not in ("skip", "open")]
    variants: defaultdict[tuple[str, ...], dict[tuple[str, str], None]] = defaultdict(dict)
    for _, key, loose in said:
        variants[key][loose] = None
    members: defaultdict[tuple[tuple[str, ...], tuple[str, str]], list[Judgment]] = defaultdict(list)
    annotators: dict[str, Annotator] = {}
    ratings: list[Rating] = []
    places: dict[tuple[tuple[str, ...], tuple[str, str]], int] = {}
    columns: dict[str, int] = {}
    for row, key, loose in said:
        whole = (key, _resolved(loose, variants[key]))
        unit = places.setdefault(whole, len(places))
        members[whole].append(row)
        role = cast(Role, row.role if row.role in ("model", "adjudicator") else "person")
        earlier = annotators.get(row.annotator)
        if earlier is not None and "model" in (earlier.role, role) and earlier.role != role:
            fault = f"'{row.annotator}' is a {earlier.role} in one row and a {role} in another"
            raise InputError(fault, "give the model a name of its own", where=row.where or None, line=row.line)
        if earlier is None or earlier.role == "adjudicator":
            annotators[row.annotator] = Annotator(row.annotator, role, row.about)
        column = columns.setdefault(row.annotator, len(columns))
        settles = row.kind == "adjudicate" or (row.role == "adjudicator" and row.kind != "label")
        ratings.append(Rating(unit, column, row.labels, settles, (row.where, row.line)))
    units = tuple(_merged(own) for own in members.values())
    return Ratings(units, tuple(annotators.values()), tuple(ratings), skipped=len(rows) - len(said))


def _merged(rows: Sequence[Judgment]) -> Unit:
    """One unit of all that the rows say about it."""
    row = rows[0]
    unit = Unit(
        unit_id=row.item_id,
        # Where queries were judged, they are the topics.
        topic_id=row.topic_id or row.query_id,
        query_id=row.query_id,
        text=row.query_text.strip(),
        doc_id=row.doc_id,
        title=row.title.strip(),
        description=row.description.strip(),
        variant=row.variant.strip(),
        dataset=row.dataset,
        stratum=row.stratum,
        similarity=row.similarity,
        probability=1.0 if row.probability is None else row.probability,
        data=row.values,
    )
    known = [row for row in rows if row.probability is not None]
    chances = [row.probability or 0.0 for row in known]
    if known and max(chances) - min(chances) > _SAME_PROBABILITY:
        fault = f"topic {unit.topic_id}, query '{unit.text or unit.query_id}' has two sampling probabilities"
        remedy, last = "give the same probability in every row of an item", known[-1]
        raise InputError(fault, remedy, where=last.where or None, line=last.line)
    similarities = [row.similarity for row in rows if row.similarity is not None]
    return unit._replace(
        unit_id=unit.unit_id or _readable(unit),
        query_id=next((row.query_id for row in rows if row.query_id), ""),
        similarity=max(similarities, default=None),
        probability=known[0].probability if known and known[0].probability is not None else 1.0,
    )


def _resolved(loose: tuple[str, str], there: Iterable[tuple[str, str]]) -> tuple[str, str]:
    """The fullest key that the given one may mean; itself where several fit."""
    fuller = [other for other in there if sum(map(bool, other)) > sum(map(bool, loose))]
    fits = [other for other in fuller if all(mine in ("", theirs) for mine, theirs in zip(loose, other, strict=True))]
    return fits[0] if len(fits) == 1 else loose


def _readable(unit: Unit) -> str:
    parts = [unit.dataset, f"topic {unit.topic_id}" if unit.topic_id else "", unit.doc_id]
    parts.append(f"'{normalise(unit.text)}'" if unit.text else f"query {unit.query_id}" if unit.query_id else "")
    return ", ".join(part for part in parts if part)
