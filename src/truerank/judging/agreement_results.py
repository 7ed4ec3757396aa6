"""The agreement of annotators as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truerank.judging.coefficients import Score
from truerank.judging.definitions import Definition
from truerank.judging.events import Annotator
from truerank.reports.results import Result


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
class DefinitionAgreement:
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


@dataclass(frozen=True, eq=False, repr=False)
class AnnotatorAgreement(Result, shown_in="truerank.judging.report"):
    """How far annotators agree.

    Attributes:
        compared: one entry per definition; none where only one person, and models, labelled.
        annotators: whose ratings were compared with each other, and how many units each of them labelled.
        models: each model against each person and against what people decided.
        about: the models, with their settings.
        settings: the definitions with their meanings, scheme, resamples, what was drawn, confidence, seed, whether
            models were included.
        notes: what a reader must know.
    """

    compared: tuple[DefinitionAgreement, ...]
    annotators: tuple[tuple[Annotator, int], ...]
    models: tuple[PairAgreement, ...]
    about: tuple[Annotator, ...]
    settings: dict[str, Any]
    notes: tuple[str, ...] = ()

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


def _score_json(scores: dict[str, Score]) -> dict[str, Any]:
    return {name: score._asdict() for name, score in scores.items()}


def _pair_json(pair: PairAgreement) -> dict[str, Any]:
    return {**pair._asdict(), "scores": _score_json(pair.scores)}


def _compared_json(part: DefinitionAgreement) -> dict[str, Any]:
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
