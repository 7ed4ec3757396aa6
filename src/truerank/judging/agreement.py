"""How far annotators agree: which coefficient over which definition of the answer, and how sure it is."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from truerank.arrays import Floats
from truerank.core.plain import picked, plain
from truerank.core.result import Result
from truerank.errors import InputError
from truerank.judging.coefficients import Coefficients, Score, drawn_weights, interval
from truerank.judging.definitions import Definition, definitions, named
from truerank.judging.items import Annotator
from truerank.judging.ratings import Ratings, RatingSource, label_inputs, label_rules, one_of, read_ratings
from truerank.judging.schemes import Scheme
from truerank.options import Columns, Confidence, Flag, Labels, Out, Range, Seed, command
from truerank.work.publishing import publish
from truerank.work.runs import run as started

#: So many items with the same labels of two annotators are no accident.
_MANY = 20


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

    `units` are items with two ratings or more, `ratings` these; `scores` is by coefficient; `pairs` are there where
    there are more than two annotators. `answers` are rows (the first annotator) and columns (the second) of the
    `matrix`, none where each label was compared for itself; with more than two, it has all ordered pairs of ratings.
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
            "definitions": [
                {
                    **picked(part, "definition=definition.name, meaning=definition.meaning, level=definition.level"),
                    "items": part.units,
                    **plain(part, "definition", "units"),
                }
                for part in self.compared
            ],
            **picked(self, "models, about, notes"),
        }


Drawing = Literal["items", "topics"]
#: With fewer shared items there is no coefficient.
FEWEST: Final = 10


class _Plan(NamedTuple):
    """How intervals are made; `topics` numbers the topic of every unit, or is None where units are drawn."""

    draws: int
    topics: NDArray[np.int64] | None
    seed: int
    confidence: float


@command
def agreement(
    paths: Annotated[RatingSource | None, Flag(metavar="PATH", positional=True, reads=list[str])] = None,
    judgments: Labels = Labels(),
    *,
    columns: Columns = "",
    definition: Annotated[str | None, Flag(metavar="NAME")] = None,
    scheme: Annotated[Scheme | str | None, Flag(metavar="NAME|FILE", reads=str)] = None,
    resamples: Annotated[int, Range(at_least=0)] = 1000,
    drawing: Drawing = "items",
    confidence: Confidence = 0.95,
    seed: Seed = 0,
    out: Out = None,
) -> AnnotatorAgreement:
    """Measures how far annotators agree, with bootstrap intervals.

    What is compared is a definition with a name: for the scheme leakage title-type, title-type-by-rule, leak,
    variant-type, variant-type-by-rule and variant-type-and-topic; for leak: leak; for transfer: V1 and V2; for
    relevance: grade (ordinal); for every scheme label-set and mean-label. Without one, each is printed; with one, also
    its labels, each two annotators, and the confusion matrix.

    Two annotators are compared by percentage, Cohen's kappa and Krippendorff's alpha; more by percentage, Fleiss' kappa
    and Krippendorff's alpha. Only items with two ratings or more count; adjudications and skips do not. With fewer than
    10 such items there is the percentage only, and "too few" in place of a coefficient. What models said is compared
    with people in a table of its own.

    Args:
        paths: a judging store, or label files: exports of annotation tools, and tables with a row for each label, or
            a column for each annotator. In Python whatever `read_ratings` takes.
        judgments: label files whose annotators are named, whose labels count, and which of several answers counts where
            one annotator contradicts himself. In comparisons with models the rule also says how people's answers become
            one.
        columns: what columns are, where their names do not say, such as id=answer,label=ann+bob.
        definition: what is compared; by default every definition of the scheme.
        scheme: of label files; by default recognised from the labels.
        resamples: how many samples are drawn for the intervals; 0 for no intervals.
        drawing: whether items are drawn again, or whole topics.
        confidence: of the intervals.
        seed: of the draws.
        out: a folder for tables/, summary.json and manifest.json.

    Returns:
        The coefficients by definition, with intervals, and where one definition was asked for, its labels and matrix.

    Raises:
        InputError: fewer than two annotators, an unknown annotator or definition, or a source that cannot be read.

    Examples:

        truerank judge agreement leakage.judged

        truerank judge agreement labels.csv --columns id=answer,label=ann+bob

        truerank judge agreement leakage.judged --definition title-type --annotators ann,bob --drawing topics

        truerank judge agreement --labels ann=first.jsonl --labels bob=second.jsonl --definition mean-label --json

    Source: the leakage paper, section 3 (a kappa of 103 pairs, whose definition it leaves open).
    """
    # Named annotators are the columns; what others adjudicated counts all the same.
    everyone = replace(one_of(paths, judgments), annotators=())
    ratings = read_ratings(everyone, scheme=scheme, columns=columns)
    chosen = [named(definition, ratings.scheme)] if definition else list(definitions(ratings.scheme))
    voices, models = _participants(ratings, judgments.annotators, judgments.include_models)
    topics = None
    if drawing == "topics":
        topics = np.unique([unit.topic_id for unit in ratings.units], return_inverse=True)[1]
    plan = _Plan(resamples, topics, seed, confidence)
    # With one person there is only the comparison with models.
    shown = chosen if len(voices) > 1 else []
    found = AnnotatorAgreement(
        compared=tuple(_compared(ratings, part, voices, plan, detailed=definition is not None) for part in shown),
        annotators=tuple((ratings.annotators[at], ratings.counts[at]) for at in voices),
        models=tuple(
            pair for part in chosen for model in models for pair in _against_people(ratings, part, model, voices, plan)
        ),
        about=tuple(ratings.annotators[at] for at in models),
        settings={
            "definitions": {part.name: part.meaning for part in chosen},
            "scheme": None if ratings.scheme is None else ratings.scheme.name,
            "scheme_guessed": ratings.guessed,
            "votes": judgments.votes,
            "include_models": judgments.include_models,
            "resamples": resamples,
            "drawing": drawing,
            "confidence": confidence,
            "seed": seed,
        },
        notes=_notes(ratings, models, voices, judgments.include_models, plan),
    )
    if out is not None:
        options = {**found.settings, **label_rules(judgments), "definition": definition}
        with started("judge agreement", label_inputs(everyone), options, out) as job:
            publish(found, job)
    return found.read_from(ratings.readings())


def _participants(
    ratings: Ratings, names: Sequence[str], include_models: bool
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Whose ratings are compared with each other, and the models that are compared with people."""
    wanted = ratings.named(names) if names else tuple(range(len(ratings.annotators)))
    wanted = tuple(at for at in wanted if ratings.counts[at] or names)
    models = tuple(at for at in wanted if at in ratings.models)
    columns = tuple(at for at in wanted if include_models or at not in models)
    if len(columns) < 2 and not (columns and models):
        there = ", ".join(ratings.annotators[at].name for at in columns) or "nobody"
        remedy = "give the labels of two people"
        if models:
            there += f", and the model{'s' * (len(models) > 1)} "
            there += ", ".join(ratings.annotators[at].name for at in models)
            remedy = "give the labels of people too, or compare the models with `include_models`"
        fault = f"agreement needs two annotators; there is {there}"
        raise InputError(fault, remedy, where=", ".join(ratings.sources[:3]) or None)
    return columns, models


def _notes(
    ratings: Ratings, models: Sequence[int], columns: Sequence[int], include_models: bool, plan: _Plan
) -> tuple[str, ...]:
    notes = []
    if plan.draws:
        drawn = "items" if plan.topics is None else "topics"
        notes.append(
            f"low and high: {plan.confidence:.0%} percentile interval of {plan.draws:,} bootstrap resamples "
            f"of {drawn}, seed {plan.seed}."
        )
    if ratings.guessed and ratings.scheme is not None:
        notes.append(f"The scheme '{ratings.scheme.name}' was recognised from the labels.")
    inside = [ratings.annotators[at].name for at in columns if at in models]
    if include_models and inside:
        notes.append(f"Not only people: these figures include the model{'s' * (len(inside) > 1)} {', '.join(inside)}.")
    said: dict[int, dict[int, tuple[str, ...]]] = {at: {} for at in columns}
    for rating in ratings.ratings:
        if rating.annotator in said:
            said[rating.annotator][rating.unit] = rating.labels
    for one, other in itertools.combinations(columns, 2):
        both = [said[one][unit] for unit in said[one].keys() & said[other].keys()]
        if len(both) >= _MANY and len(set(both)) > 1 and said[one] == said[other]:
            names = " and ".join(ratings.annotators[at].name for at in (one, other))
            notes.append(f"{names} have the same labels on all {len(both):,} items: one may be a copy of the other.")
    return (*notes, *ratings.notes)


def _compared(
    ratings: Ratings, definition: Definition, columns: Sequence[int], plan: _Plan, *, detailed: bool
) -> DefinitionAgreement:
    coded = ratings.coded(definition.answer, columns, () if definition.each else definition.categories)
    whole = Coefficients(coded.codes, len(coded.categories), definition.level)
    labels, codes = _label_codes(ratings, definition, columns, detailed)
    if not definition.each and not labels:
        labels, codes = _answer_codes(coded.codes, coded.categories) if detailed else ((), ())
    parts = [Coefficients(code, 2) for code in codes]
    names = ("percentage", "cohen", "krippendorff") if len(columns) <= 2 else ("percentage", "fleiss", "krippendorff")
    every = parts if definition.each else [whole, *parts]
    values, drawn = _evaluated(every, names, whole.rows, plan)
    rows = []
    for part, own, some in zip(every, values, drawn, strict=True):
        reason, of_names = _reason(part, label=part is not whole), zip(names, own, some, strict=True)
        rows.append({name: interval(value, each, plan.confidence, reason) for name, value, each in of_names})
    if definition.each:
        scores = _mean_scores(values, drawn, names, whole.units, plan)
    else:
        scores, *rows = rows
    given = [int(part.counts[:, 1].sum()) for part in parts]
    shown = _matrix(whole, coded.categories) if detailed and not definition.each else ((), np.zeros((0, 0), np.int64))
    pairs = []
    if detailed and len(columns) > 2:
        for one, other in itertools.combinations(range(len(columns)), 2):
            names_of = [ratings.annotators[columns[at]].name for at in (one, other)]
            if definition.each:
                pairs.append(_pair(ratings, definition, (columns[one], columns[other]), plan))
            else:
                units, two = _two(coded.codes[:, [one, other]], len(coded.categories), plan)
                pairs.append(PairAgreement(definition.name, names_of[0], names_of[1], units, two))
    of_labels = tuple(LabelAgreement(*row) for row in zip(labels, given, rows, strict=True)) if detailed else ()
    ratings_of = int(whole.counts.sum())
    return DefinitionAgreement(definition, whole.units, ratings_of, scores, of_labels, tuple(pairs), *shown)


def _label_codes(
    ratings: Ratings, definition: Definition, columns: Sequence[int], detailed: bool
) -> tuple[tuple[str, ...], tuple[NDArray[np.int64], ...]]:
    """Each label, given or not, for the definitions that compare sets of labels."""
    if not definition.each and not (detailed and definition.name == "label-set"):
        return (), ()
    there = {label for r in ratings.ratings if r.annotator in columns and not r.adjudicated for label in r.labels}
    labels = tuple(label for label in ratings.labels() if label in there)
    codes = []
    for label in labels:
        coded = ratings.coded(lambda given, label=label: str(int(label in given)), columns, ("0", "1"))  # type: ignore[misc]
        codes.append(coded.codes)
    return labels, tuple(codes)


def _answer_codes(
    codes: NDArray[np.int64], categories: Sequence[str]
) -> tuple[tuple[str, ...], tuple[NDArray[np.int64], ...]]:
    """Each answer that occurs against all others."""
    there = [at for at in range(len(categories)) if (codes == at).any()]
    coded = tuple(np.where(codes < 0, -1, (codes == at).astype(np.int64)) for at in there)
    return tuple(categories[at] for at in there), coded


def _evaluated(
    parts: Sequence[Coefficients], names: Sequence[str], rows: NDArray[np.int64], plan: _Plan
) -> tuple[Floats, Floats]:
    """The coefficients of the data, shape (parts, names), and of the resamples, shape (parts, names, resamples)."""
    groups = None if plan.topics is None else np.unique(plan.topics[rows], return_inverse=True)[1]
    once = np.ones((1, len(rows)))
    values = np.array([[getattr(part, name)(once)[0] for name in names] for part in parts])
    blocks = [
        np.array([[getattr(part, name)(weights) for name in names] for part in parts])
        for weights in drawn_weights(groups, len(rows), plan.draws, plan.seed)
    ]
    shape = (len(parts), len(names))
    drawn = np.concatenate(blocks, axis=2) if blocks and parts else np.empty((*shape, 0))
    values = values.reshape(shape)
    if len(rows) < FEWEST:
        for place in (at for at, name in enumerate(names) if name != "percentage"):
            values[:, place] = drawn[:, place] = np.nan
    return values, drawn


def _mean_scores(values: Floats, drawn: Floats, names: Sequence[str], units: int, plan: _Plan) -> dict[str, Score]:
    reason = _too_few(units) or "no label was given to some items only"
    scores = {}
    for place, name in enumerate(names):
        column = values[:, place]
        defined = ~np.isnan(column)
        mean = float(column[defined].mean()) if defined.any() else float("nan")
        spread = drawn[defined, place]
        there = ~np.isnan(spread)
        counts = there.sum(axis=0)
        means = np.where(there, spread, 0).sum(axis=0)[counts > 0] / counts[counts > 0]
        scores[name] = interval(mean, means, plan.confidence, reason)
    return scores


def _reason(part: Coefficients, *, label: bool) -> str:
    if few := _too_few(part.units):
        return few
    return "undefined, since it was given to all items or to none" if label else "undefined, since all gave one answer"


def _too_few(units: int) -> str:
    if not units:
        return "no item has two ratings"
    shared = "1 shared item" if units == 1 else f"{units} shared items"
    return f"too few: {shared}, {FEWEST} needed" if units < FEWEST else ""


def _matrix(whole: Coefficients, categories: Sequence[str]) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    size = len(categories)
    if whole.codes.shape[1] == 2:
        matrix = np.zeros((size, size), np.int64)
        np.add.at(matrix, (whole.codes[:, 0], whole.codes[:, 1]), 1)
    else:
        counts = whole.counts.astype(np.int64)
        matrix = counts.T @ counts - np.diag(counts.sum(axis=0))
    used = np.flatnonzero(matrix.any(axis=0) | matrix.any(axis=1)).tolist()
    return tuple(categories[at] for at in used), matrix[np.ix_(used, used)]


def _pair(ratings: Ratings, definition: Definition, columns: tuple[int, int], plan: _Plan) -> PairAgreement:
    found = _compared(ratings, definition, columns, plan, detailed=False)
    first, second = (ratings.annotators[at].name for at in columns)
    scores = {name: found.scores[name] for name in ("percentage", "cohen")}
    return PairAgreement(definition.name, first, second, found.units, scores)


def _against_people(
    ratings: Ratings, definition: Definition, model: int, columns: Sequence[int], plan: _Plan
) -> list[PairAgreement]:
    people = [at for at in columns if at not in ratings.models]
    pairs = [_pair(ratings, definition, (model, person), plan) for person in people]
    settled = any(rating.adjudicated for rating in ratings.ratings)
    if definition.each or not people or (len(people) == 1 and not settled):
        return pairs
    coded = ratings.coded(definition.answer, (model,), definition.categories)
    place = {name: number for number, name in enumerate(coded.categories)}
    codes = np.column_stack([coded.codes, np.full(len(coded.codes), -1)])
    decided = ratings.only(people).decided(definition.answer, order=definition.categories or ("",))
    more = sorted({answer for answer in decided.values() if answer is not None}.difference(place))
    place |= {name: len(place) + at for at, name in enumerate(more)}
    for unit, answer in decided.items():
        if answer is not None:
            codes[unit, 1] = place[answer]
    units, scores = _two(codes, len(place), plan)
    return [*pairs, PairAgreement(definition.name, ratings.annotators[model].name, "people", units, scores)]


def _two(codes: NDArray[np.int64], categories: int, plan: _Plan) -> tuple[int, dict[str, Score]]:
    """Units and coefficients of two columns of codes."""
    whole = Coefficients(codes, categories)
    names = ("percentage", "cohen")
    values, drawn = _evaluated([whole], names, whole.rows, plan)
    reason, parts = _reason(whole, label=False), zip(names, values[0], drawn[0], strict=True)
    return whole.units, {name: interval(value, some, plan.confidence, reason) for name, value, some in parts}
