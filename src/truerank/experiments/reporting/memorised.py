"""Tables 6 to 8 of the leakage paper: ranks, scores and rank offsets of leaked documents, from a grid's results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import polars as pl

from truerank.errors import OptionError
from truerank.experiments.grid.results import GridResults
from truerank.experiments.memorising import (
    Memorisation,
    MemorisationChange,
    TopicSpread,
    difference_of_differences,
    memorisation,
)
from truerank.experiments.reporting.board import Board, BoardRow, size_name
from truerank.experiments.reporting.options import ReportChoices
from truerank.measures import correct
from truerank.reports.tables import Cell, Column, Table

#: Collection, leaking training sets, row.
Place: TypeAlias = tuple[str, str, BoardRow]


class Memorised(NamedTuple):
    """What one row remembers of one leak on one collection.

    Attributes:
        collection: its name.
        row: the row.
        condition: the leaking training sets.
        kind: "leak", "test", or what the design says.
        size: of the training sets, in instances.
        seeds: that models with and without the leak share.
        topics: that have leaked relevant documents.
        unscored: leaked pairs without scores.
        rank: mean rank of the leaked relevant documents.
        score: their mean score.
        offset: ranks from the leaked relevant to the leaked non-relevant documents.
        gain: how many ranks the relevant ones rise by.
        loss: how many the non-relevant ones fall by.
        found: the values by topic.
    """

    collection: str
    row: BoardRow
    condition: str
    kind: str
    size: int
    seeds: tuple[int, ...]
    topics: int
    unscored: int
    rank: MemorisationChange
    score: MemorisationChange
    offset: MemorisationChange
    gain: TopicSpread
    loss: TopicSpread
    found: Memorisation

    @property
    def place(self) -> Place:
        """Where it stands in the tables."""
        return self.collection, self.condition, self.row

    def json(self) -> dict[str, Any]:
        """Everything but the values by topic."""
        changes = {
            name: {
                side: value._asdict() if isinstance(value, TopicSpread) else value
                for side, value in change._asdict().items()
            }
            for name, change in (("rank", self.rank), ("score", self.score), ("offset", self.offset))
        }
        return {
            "collection": self.collection,
            "group": self.row.group,
            "model": self.row.model,
            "trained_on": self.condition,
            "kind": self.kind,
            "size": self.size,
            "seeds": list(self.seeds),
            "topics": self.topics,
            "unscored": self.unscored,
            **changes,
            "gain": self.gain._asdict(),
            "loss": self.loss._asdict(),
        }


def memorised(
    results: GridResults, boards: Sequence[Board], options: ReportChoices
) -> tuple[tuple[Memorised, ...], tuple[str, ...]]:
    """What every row remembers of every leak, at one training size."""
    found, missing = [], []
    for board in boards:
        leaked = pl.concat([_named(board, each, results.leaked(each)) for each in board.benchmark.collections])
        for condition in board.faults:
            for row in board.rows:
                sets = board.of(row, condition)["set"].unique().to_list()
                pairs = leaked.filter(pl.col("set").is_in(sets)).select("topic_id", "doc_id", "relevant").unique()
                size = _size(board, row, condition, options.memorisation_size)
                if not pairs.height:
                    continue
                if size is None:
                    wanted = options.memorisation_size
                    at = "in a shared size" if wanted is None else f"at {size_name(wanted)} instances"
                    missing.append(
                        f"{board.collection}, {row.name}: no finished training {at} both on {condition} and on "
                        f"{board.baseline}, so memorisation is not known."
                    )
                    continue
                found.append(_one(results, board, (row, condition, size), pairs, options))
    if missing and not found and options.memorisation_size is not None:
        raise OptionError(
            "memorisation_size",
            f"no model was trained with {size_name(options.memorisation_size)} instances with and without a leak",
            "choose another size",
        )
    return tuple(found), tuple(missing)


def memorised_tables(found: Sequence[Memorised], baseline: str, options: ReportChoices) -> dict[str, Table]:
    """The tables by name: ranks, scores, the difference of the differences, offsets."""
    if not found:
        return {}
    tables = {
        "memorised-ranks": _sides(found, "rank", ".2f", "Mean rank of the leaked relevant documents", options),
        "memorised-scores": _sides(found, "score", ".3f", "Mean score of the leaked relevant documents", options),
    }
    differences = list(_differences(found, options))
    if differences:
        tables["memorised-differences"] = _differences_table(differences, baseline, options)
    return {**tables, "memorised-offsets": _offsets(found, baseline, options)}


def _one(
    results: GridResults, board: Board, key: tuple[BoardRow, str, int], pairs: pl.DataFrame, options: ReportChoices
) -> Memorised:
    row, condition, size = key
    sides = [_scores(results, board, row, side, size) for side in (condition, board.baseline)]
    found, draws = memorisation(sides[0], sides[1], pairs), options.draws
    return Memorised(
        collection=board.collection,
        row=row,
        condition=condition,
        kind=board.kinds[condition],
        size=size,
        seeds=found.seeds,
        topics=len(found.values("rank_with")[0]),
        unscored=found.unscored,
        rank=found.rank(draws),
        score=found.score(draws),
        offset=found.offset(draws),
        gain=found.spread("gain", draws),
        loss=found.spread("loss", draws),
        found=found,
    )


def _scores(results: GridResults, board: Board, row: BoardRow, condition: str, size: int) -> pl.DataFrame:
    """What the trainings of a row say, with their seeds."""
    cells = board.of(row, condition, size)
    parts = []
    for cell, seed in cells.select("cell", "seed").rows():
        scores = results.scores(cell)
        for each in board.benchmark.collections:
            own = _named(board, each, scores.filter(pl.col("collection") == each))
            given = pl.lit(seed, dtype=pl.Int64).alias("seed")
            parts.append(own.select(given, "topic_id", "doc_id", "score", "candidate"))
    return pl.concat(parts)


def _named(board: Board, collection: str, frame: pl.DataFrame) -> pl.DataFrame:
    """Rows of a collection with their topics as the benchmark calls them."""
    if len(board.benchmark.collections) == 1:
        return frame
    return frame.with_columns(pl.format("{}:{}", pl.lit(collection), "topic_id").alias("topic_id"))


def _size(board: Board, row: BoardRow, condition: str, wanted: int | None) -> int | None:
    """The size wanted, or the largest, that is finished with and without the leak under a shared seed."""
    both = [size for size in board.sizes(row, condition) if size in board.sizes(row, board.baseline)]
    for size in reversed([size for size in both if wanted in (None, size)]):
        seeds = [set(board.of(row, side, size)["seed"].to_list()) for side in (condition, board.baseline)]
        if seeds[0] & seeds[1]:
            return size
    return None


def _layout(found: Sequence[Memorised]) -> tuple[list[str], list[tuple[str, BoardRow]], Mapping[Place, Memorised]]:
    """Collections, rows of a table as (condition, row), and what stands where."""
    order = list(dict.fromkeys(one.condition for one in found))
    places = sorted(dict.fromkeys((one.condition, one.row) for one in found), key=lambda place: order.index(place[0]))
    by_place = {one.place: one for one in found}
    return list(dict.fromkeys(one.collection for one in found)), places, by_place


def significant(found: Sequence[Memorised], name: str, options: ReportChoices) -> frozenset[Place]:
    """Where a difference ("rank", "score", "offset") is significant by the paired t-test, corrected for all of them."""
    p = [getattr(one, name).p for one in found]
    corrected = correct(p, options.method.correction)
    return frozenset(
        one.place
        for one, value in zip(found, corrected, strict=True)
        if value is not None and value < options.method.alpha
    )


def _side_by_side(
    found: Sequence[Memorised],
    name: str,
    headings: Sequence[str],
    cells_of: Callable[[Memorised, str], Sequence[Cell]],
    options: ReportChoices,
) -> tuple[tuple[Column, ...], tuple[tuple[Cell, ...], ...], tuple[int, ...]]:
    """Columns, rows and rules of a table with the same columns for each collection."""
    collections, places, by_place = _layout(found)
    marked = significant(found, name, options)
    columns = [Column("trained on"), Column("model")]
    columns += [Column(heading, (collection,), align="right") for collection in collections for heading in headings]
    rows = []
    for condition, row in places:
        cells: list[Cell] = [condition, row.name]
        for collection in collections:
            place = (collection, condition, row)
            one = by_place.get(place)
            cells += [None] * len(headings) if one is None else cells_of(one, "†" if place in marked else "")
        rows.append(tuple(cells))
    return tuple(columns), tuple(rows), _rules(places)


def _sides(found: Sequence[Memorised], name: str, form: str, title: str, options: ReportChoices) -> Table:
    """With and without the leak, and the difference with its interval, side by side for each collection."""

    def cells(one: Memorised, mark: str) -> list[Cell]:
        change: MemorisationChange = getattr(one, name)
        return [
            _plus_minus(change.with_leak, form),
            _plus_minus(change.without, form),
            _shown(change.difference.mean, f"+{form}", mark),
            _ends(change.difference, f"+{form}"),
        ]

    headings = ("with", "without", "difference", _interval_title(options))
    columns, rows, rules = _side_by_side(found, name, headings, cells, options)
    return Table(f"{title} {_at(found)}, with and without the leak.", columns, rows, _notes(found, options), rules)


def _offsets(found: Sequence[Memorised], baseline: str, options: ReportChoices) -> Table:
    """The increase of the offset and its two parts, side by side for each collection."""

    def cells(one: Memorised, mark: str) -> list[Cell]:
        return [
            (_plus_minus(one.offset.difference, ".3f") or "–") + mark,
            _ends(one.offset.difference, "+.3f"),
            _shown(one.gain.mean, "+.3f"),
            _shown(one.loss.mean, "+.3f"),
        ]

    headings = ("increase", _interval_title(options), "relevant rise", "non-relevant fall")
    columns, rows, rules = _side_by_side(found, "offset", headings, cells, options)
    notes = (
        "The offset is the mean rank of the leaked non-relevant documents of a topic minus that of the relevant ones; "
        f"its increase over {baseline} is what the relevant ones rise by and the non-relevant ones fall by, in ranks.",
        *_notes(found, options),
    )
    title = f"Increase of the rank offset between leaked relevant and non-relevant documents {_at(found)}."
    return Table(title, columns, rows, notes, rules)


def _differences(
    found: Sequence[Memorised], options: ReportChoices
) -> Iterator[tuple[str, BoardRow, str, str, TopicSpread, TopicSpread, TopicSpread]]:
    """Of each row with a leak of test data and another one: both changes of the score, and their difference."""
    for one in found:
        for other in found:
            same = (one.collection, one.row, one.size) == (other.collection, other.row, other.size)
            if same and one.kind == "test" and other.kind == "leak":
                both = difference_of_differences(one.found, other.found, "score", options.draws)
                changes = one.score.difference, other.score.difference
                yield one.collection, one.row, one.condition, other.condition, *changes, both


def _differences_table(rows: Sequence[tuple[Any, ...]], baseline: str, options: ReportChoices) -> Table:
    columns = (
        Column("collection"),
        Column("model"),
        Column("leak"),
        Column("other leak"),
        *Column.numbers("+.4f", "of the leak", "of the other", above=("change of the score",)),
        *Column.numbers("+.4f", "mean", "low", "high", above=("difference of the differences",)),
    )
    notes = (
        f"Each change is with minus without the leak ({baseline}), macro-averaged over the topics that leak there.",
        f"Intervals: {_bootstrap(options)}; topics that both leaks have are drawn together.",
    )
    cells = tuple(
        (collection, row.name, first, second, one.mean, other.mean, both.mean, both.low, both.high)
        for collection, row, first, second, one, other, both in rows
    )
    return Table(
        "Mean score of the leaked relevant documents: the difference of the differences.", columns, cells, notes
    )


def _notes(found: Sequence[Memorised], options: ReportChoices) -> tuple[str, ...]:
    topics = dict.fromkeys(f"{one.collection}, {one.condition}: {one.topics:,} topics" for one in found)
    notes = [
        "Macro-averaged over topics (mean within a topic and seed, then over seeds) ± standard deviation over topics. "
        f"{'; '.join(topics)}.",
        "A leaked document outside the reranked ones is inserted by its score, ties by document id, each by itself.",
        f"Intervals: {_bootstrap(options)}. † paired t-test over topics, {options.method.correction} over the "
        f"{len(found)} comparisons of the table, α = {options.method.alpha:g}.",
    ]
    unscored = sum(one.unscored for one in found)
    if unscored:
        notes.append(f"{unscored:,} leaked pairs were not scored and are left out.")
    return tuple(notes)


def _bootstrap(options: ReportChoices) -> str:
    return f"percentile bootstrap over topics, {options.method.draws:,} draws, seed {options.method.seed}"


def _at(found: Sequence[Memorised]) -> str:
    sizes = dict.fromkeys(size_name(one.size) for one in sorted(found, key=lambda one: one.size))
    return f"at {' or '.join(sizes)} training instances"


def _interval_title(options: ReportChoices) -> str:
    return f"{100 * options.confidence:.6g}% interval"


def _rules(places: Sequence[tuple[str, BoardRow]]) -> tuple[int, ...]:
    return tuple(place for place, key in enumerate(places) if place and places[place - 1][0] != key[0])


def _plus_minus(spread: TopicSpread, form: str) -> str | None:
    if spread.mean is None:
        return None
    return f"{spread.mean:{form}}" if spread.sd is None else f"{spread.mean:{form}} ± {spread.sd:{form}}"


def _shown(value: float | None, form: str, mark: str = "") -> str | None:
    return None if value is None else f"{value:{form}}{mark}"


def _ends(spread: TopicSpread, form: str) -> str | None:
    return None if spread.low is None or spread.high is None else f"{spread.low:{form}} to {spread.high:{form}}"
