"""What was said about which item by whom, as one table of units, annotators and ratings."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truerank.errors import InputError, OptionError
from truerank.judging.definitions import check_leak_labels, leak_answer
from truerank.judging.events import Annotator
from truerank.judging.schemes import Scheme
from truerank.judging.votes import Votes, decide

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
        labelled = np.bincount([at for _, at in found], minlength=len(self.annotators)) if found else ()
        return tuple(int(count) for count in labelled) or (0,) * len(self.annotators)

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
            raise OptionError(
                "votes",
                "'any' decides questions with an order of answers, such as leak or no leak",
                "choose majority, unanimous, first or last",
            )
        said: defaultdict[int, list[tuple[int, str]]] = defaultdict(list)
        settled: dict[int, str] = {}
        for rating in self.ratings:
            if self.annotators[rating.annotator].role == "model" and not include_models:
                continue
            meaning = answer(rating.labels)
            if meaning is None:
                continue
            if rating.adjudicated:
                settled[rating.unit] = meaning
            said[rating.unit].append((rating.annotator, meaning))
        return {
            unit: settled[unit] if unit in settled else decide(said[unit], self.votes, order) for unit in sorted(said)
        }

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
    """The error for annotators who contradict themselves."""
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
