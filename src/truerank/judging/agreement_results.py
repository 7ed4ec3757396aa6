"""The agreement of annotators as values that know their tables."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truerank.judging.coefficients import Score
from truerank.judging.definitions import Definition
from truerank.judging.events import Annotator
from truerank.reports.tables import Cell, Column, Table

__all__ = ["Agreement", "Compared", "LabelAgreement", "PairAgreement"]

#: What the coefficients are called in tables.
_TITLES: Final = {
    "percentage": "agreement",
    "cohen": "Cohen's kappa",
    "fleiss": "Fleiss' kappa",
    "krippendorff": "Krippendorff's alpha",
}
_WIDEST_MATRIX: Final = 12


class LabelAgreement(NamedTuple):
    """One label or answer, given or not given: how often it was given, and the coefficients."""

    label: str
    given: int
    scores: dict[str, Score]


class PairAgreement(NamedTuple):
    """Two annotators by one definition; `second` is "people" where a model is compared with what people decided."""

    definition: str
    first: str
    second: str
    units: int
    scores: dict[str, Score]


@dataclass(frozen=True, eq=False)
class Compared:
    """The agreement by one definition.

    Attributes:
        definition: what was compared.
        units: items with two ratings or more.
        ratings: their ratings.
        scores: coefficient → value and interval.
        labels: for each label.
        pairs: for each two annotators, where there are more than two.
        answers: rows and columns of the matrix; none where each label was compared for itself.
        matrix: rows the first annotator, columns the second; with more than two, all ordered pairs of ratings of an
            item. Shape (answers, answers).
    """

    definition: Definition
    units: int
    ratings: int
    scores: dict[str, Score]
    labels: tuple[LabelAgreement, ...]
    pairs: tuple[PairAgreement, ...]
    answers: tuple[str, ...]
    matrix: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Agreement:
    """How far annotators agree.

    Attributes:
        compared: one entry per definition; none where only one person, and models, labelled.
        annotators: whose ratings were compared with each other, and how many units each of them labelled.
        models: each model against each person and against what people decided.
        about: the models, with their settings.
        settings: the definitions with their meanings, scheme, bootstrap, what was drawn, confidence, seed, whether
            models were included.
        notes: what a reader must know.
    """

    compared: tuple[Compared, ...]
    annotators: tuple[tuple[Annotator, int], ...]
    models: tuple[PairAgreement, ...]
    about: tuple[Annotator, ...]
    settings: dict[str, Any]
    notes: tuple[str, ...] = ()

    def table(self) -> Table:
        """One row per definition."""
        used = list(dict.fromkeys(name for part in self.compared for name in part.scores))
        columns = [Column("definition"), Column("items", align="right", format=",d")]
        columns += self._score_columns(used)
        rows = []
        for part in self.compared:
            cells: list[Cell] = [part.definition.name, part.units]
            for name in used:
                cells += self._cells(part.scores[name])
            rows.append(tuple(cells))
        who = " and ".join(annotator.name for annotator, _ in self.annotators)
        many = f"{len(self.annotators)} annotators"
        title = f"Agreement of {who if len(self.annotators) == 2 else many}."
        return Table(title, tuple(columns), tuple(rows), self._notes())

    def tables(self) -> tuple[Table, ...]:
        """Everything: the overview; for a single definition its labels, pairs and matrix; the models."""
        found = [self.table()] if self.compared else []
        if len(self.compared) == 1:
            (part,) = self.compared
            found.append(self._label_table(part))
            if part.pairs:
                title = f"Agreement of each two annotators ({part.definition.name})."
                found.append(self._pair_table(title, part.pairs))
            if 0 < len(part.answers) <= _WIDEST_MATRIX:
                found.append(self._matrix_table(part))
        if self.models:
            notes = tuple(f"{model.name}: {model.about}." for model in self.about if model.about)
            notes = notes if self.compared else (*notes, *self._notes())
            title = "Models against people" + ("; these figures are not part of those above." if self.compared else ".")
            if self.settings["include_models"]:
                title = "Models against people; models also take part in the figures above."
            found.append(self._pair_table(title, self.models, notes))
        return tuple(found)

    def text(self, width: int | None = None) -> str:
        """All tables for a terminal."""
        return "\n".join(table.text(width) for table in self.tables())

    def json(self) -> dict[str, Any]:
        """Everything, as plain numbers and texts."""
        return {
            "settings": self.settings,
            "annotators": [{**annotator._asdict(), "labelled": n} for annotator, n in self.annotators],
            "definitions": [_compared_json(part) for part in self.compared],
            "models": [_pair_json(pair) for pair in self.models],
            "about": [model._asdict() for model in self.about],
            "notes": list(self.notes),
        }

    def _notes(self) -> tuple[str, ...]:
        lines = [f"{name}: {meaning}" for name, meaning in self.settings["definitions"].items()]
        reasons = dict.fromkeys(
            f"{part.definition.name}, {_TITLES[name]}: {score.reason}."
            for part in self.compared
            for name, score in part.scores.items()
            if score.reason
        )
        return (*lines, *reasons, *self.notes)

    def _score_columns(self, names: Sequence[str]) -> list[Column]:
        columns = []
        for name in names:
            above = (_TITLES[name],)
            columns.append(Column("value", above, align="right", format=".3f"))
            if self.settings["bootstrap"]:
                columns.append(Column("low", above, align="right", format=".3f"))
                columns.append(Column("high", above, align="right", format=".3f"))
        return columns

    def _cells(self, score: Score) -> list[Cell]:
        return [score.value, score.low, score.high] if self.settings["bootstrap"] else [score.value]

    def _label_table(self, part: Compared) -> Table:
        names = list(part.labels[0].scores) if part.labels else []
        columns = (Column("label"), Column("given", align="right", format=",d"), *self._score_columns(names))
        rows: list[tuple[Cell, ...]] = [
            (row.label, row.given, *itertools.chain.from_iterable(self._cells(row.scores[name]) for name in names))
            for row in part.labels
        ]
        notes = tuple(f"{row.label}: {s.reason}." for row in part.labels for s in row.scores.values() if s.reason)
        title = f"Agreement on each label, given or not given ({part.definition.name})."
        return Table(title, columns, tuple(rows), tuple(dict.fromkeys(notes)))

    def _pair_table(self, title: str, pairs: Sequence[PairAgreement], notes: tuple[str, ...] = ()) -> Table:
        names = ("percentage", "cohen")
        columns = [Column("annotator"), Column("against"), Column("definition")]
        columns += [Column("items", align="right", format=",d"), *self._score_columns(names)]
        rows: list[tuple[Cell, ...]] = []
        for pair in pairs:
            cells: list[Cell] = [pair.first, pair.second, pair.definition, pair.units]
            for name in names:
                cells += self._cells(pair.scores[name])
            rows.append(tuple(cells))
        reasons = dict.fromkeys(
            f"{pair.first} against {pair.second}, {pair.definition}: {score.reason}."
            for pair in pairs
            for score in pair.scores.values()
            if score.reason
        )
        return Table(title, tuple(columns), tuple(rows), (*notes, *reasons))

    def _matrix_table(self, part: Compared) -> Table:
        names = [annotator.name for annotator, _ in self.annotators]
        two = len(names) == 2
        title = f"Rows {names[0]}, columns {names[1]}" if two else "Pairs of ratings of the same item, both ways"
        columns = [Column(names[0] if two else "one rating")]
        above = (names[1] if two else "other rating",)
        columns += [Column(answer, above, align="right", format=",d") for answer in part.answers]
        rows: list[tuple[Cell, ...]] = [
            (answer, *(int(n) for n in row)) for answer, row in zip(part.answers, part.matrix.tolist(), strict=True)
        ]
        return Table(f"{title} ({part.definition.name}).", tuple(columns), tuple(rows))


def _score_json(scores: dict[str, Score]) -> dict[str, Any]:
    return {name: score._asdict() for name, score in scores.items()}


def _pair_json(pair: PairAgreement) -> dict[str, Any]:
    return {**pair._asdict(), "scores": _score_json(pair.scores)}


def _compared_json(part: Compared) -> dict[str, Any]:
    return {
        "definition": part.definition.name,
        "meaning": part.definition.meaning,
        "level": part.definition.level,
        "items": part.units,
        "ratings": part.ratings,
        "scores": _score_json(part.scores),
        "labels": [{**row._asdict(), "scores": _score_json(row.scores)} for row in part.labels],
        "pairs": [_pair_json(pair) for pair in part.pairs],
        "answers": list(part.answers),
        "matrix": part.matrix.tolist(),
    }
