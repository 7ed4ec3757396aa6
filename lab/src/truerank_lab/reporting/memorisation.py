"""Memorisation: where rankers put the documents they were trained on, with and without the leak, on plain frames.

A leaked document that the first stage did not find is inserted into its ranking by its score, each by itself, so that
the worst rank is one more than the depth of the ranking.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import polars as pl

from truerank.arrays import Floats, frame_schema
from truerank.core.plain import plain
from truerank.core.tables import Cell, Column, Table, group_starts
from truerank.core.views import heads
from truerank.errors import InputError, OptionError
from truerank.measures import correct
from truerank.measures.resampling import bootstrap_interval
from truerank.measures.significance import difference_test
from truerank_lab.grid.results import GridResults
from truerank_lab.reporting.board import Board, BoardRow, Draws, ReportChoices, size_name

#: What a model said: of the documents that it reranked (`candidate`) and of leaked ones that it did not.
SCORE_SCHEMA: Final[dict[str, Any]] = frame_schema(
    "seed: Int64, topic_id doc_id: String, score: Float64, candidate: Boolean"
)
#: Which documents leaked for which topic, and whether as relevant or as non-relevant ones.
LEAKED_SCHEMA: Final[dict[str, Any]] = {"topic_id": pl.String, "doc_id": pl.String, "relevant": pl.Boolean}
#: What is known of a topic: see `Memorisation.topics`.
TOPIC_VALUES: Final = (
    "rank_with", "rank_without", "score_with", "score_without", "offset_with", "offset_without", "gain", "loss",
    "increase",
)  # fmt: skip
_PAIR: Final = ("topic_id", "doc_id")


class TopicSpread(NamedTuple):
    """One value per topic, summed up.

    `mean` is over `n` topics, `sd` the standard deviation over them (n − 1), `low` and `high` the percentile bootstrap
    over topics. None where there are too few topics.
    """

    n: int
    mean: float | None
    sd: float | None
    low: float | None
    high: float | None


class MemorisationChange(NamedTuple):
    """A value per topic with and without the leak: both, and with minus without; `p` is of the paired t-test."""

    with_leak: TopicSpread
    without: TopicSpread
    difference: TopicSpread
    p: float | None


@dataclass(frozen=True, eq=False)
class Memorisation:
    """What training on the leak did to the leaked documents of every topic.
     `topics` has one row per topic, sorted: topic_id; `relevant` and `non_relevant`, the numbers of leaked documents;
    the mean rank and score of the relevant ones with and without (null where there are none); the offset, mean rank of
    the non-relevant minus that of the relevant ones (null without either); `gain`, the ranks that the relevant ones
    rise by, `loss`, those that the non-relevant ones fall by, and `increase`, their sum. Each is the mean over
    documents within a seed, then over the seeds that both conditions have. `unscored` pairs were not scored by both
    under any of these.
    """

    topics: pl.DataFrame
    seeds: tuple[int, ...]
    unscored: int

    def values(self, name: str) -> tuple[tuple[str, ...], Floats]:
        """The topics that have a value, and the values: one of `TOPIC_VALUES`."""
        known = self.topics.filter(pl.col(name).is_not_null())
        return tuple(known["topic_id"].to_list()), known[name].to_numpy()

    def spread(self, name: str, draws: Draws | None = None) -> TopicSpread:
        """One of `TOPIC_VALUES` summed up over topics."""
        return spread(self.values(name)[1], draws)

    def change(self, name: str, draws: Draws | None = None) -> MemorisationChange:
        """With and without the leak, macro-averaged over topics: rank and score of the leaked relevant documents, or
        the offset, which says how many ranks lie between these and the non-relevant ones."""
        first, second = (self.values(f"{name}_{side}")[1] for side in ("with", "without"))
        p = difference_test(first, second, "paired-t").p if len(first) > 1 else None
        return MemorisationChange(spread(first, draws), spread(second, draws), spread(first - second, draws), p)


def insertion_ranks(scores: pl.DataFrame, by: Sequence[str] = ("topic_id",)) -> pl.DataFrame:
    """The rank of every document among the reranked ones, from 1; equal scores are in the order of the document ids.

    Source: leakage paper, section 4 (memorisation of leaked instances).
    """
    unusable = scores.filter(~pl.col("score").is_finite() | pl.col("score").is_null())
    if unusable.height:
        row = unusable.row(0, named=True)
        fault = f"document {row['doc_id']} has {row['score']} as its score"
        raise InputError(fault, "train the model again, or leave it out")
    twice = scores.select(*by, "doc_id").is_duplicated()
    if twice.any():
        row = scores.filter(twice).row(0, named=True)
        raise InputError(f"document {row['doc_id']} occurs twice in a ranking", "keep one of its scores")
    keys = list(by)
    descending = [False] * len(keys) + [True, False]
    ordered = scores.with_columns(pl.col("score") + 0.0).sort(*keys, "score", "doc_id", descending=descending)
    before = pl.col("candidate").cast(pl.Int64).cum_sum().over(keys) - pl.col("candidate").cast(pl.Int64)
    return ordered.with_columns((before + 1).alias("rank"))


def memorisation(with_leak: pl.DataFrame, without: pl.DataFrame, leaked: pl.DataFrame) -> Memorisation:
    """Compares the ranks and scores of leaked documents between models trained with and without them.

    Source: leakage paper, section 4, Tables 6 to 8.
    """
    leaked = _columns(leaked, LEAKED_SCHEMA, "the leaked pairs").unique(maintain_order=False)
    if leaked.select(_PAIR).is_duplicated().any():
        pair = leaked.filter(leaked.select(_PAIR).is_duplicated()).sort(*_PAIR).row(0)
        fault = f"topic {pair[0]}: document {pair[1]} leaked both as relevant and as non-relevant"
        raise InputError(fault, "keep one of the two")
    sides = [_columns(side, SCORE_SCHEMA, "the scores") for side in (with_leak, without)]
    seeds = sorted(set(sides[0]["seed"].unique()) & set(sides[1]["seed"].unique()))
    if not seeds:
        raise InputError("the models with and without the leak share no seed", "train both with the same seeds")
    found = [_of_leaked(side, leaked, seeds) for side in sides]
    pairs = found[0].join(found[1], on=["seed", *_PAIR, "relevant"], suffix="_without", how="inner")
    pairs = pairs.rename({"rank": "rank_with", "score": "score_with"})
    scored = pairs.select(_PAIR).unique().height
    return Memorisation(_by_topic(pairs), tuple(seeds), leaked.height - scored)


def spread(values: Floats, draws: Draws | None = None) -> TopicSpread:
    """Sums up one value per topic, shape (topics,)."""
    draws, n = draws or Draws(), len(values)
    if n < 2:
        return TopicSpread(n, float(values[0]) if n else None, None, None, None)
    ends = bootstrap_interval(
        [values], confidence=draws.confidence, method="percentile", resamples=draws.resamples, seed=draws.seed
    )
    return TopicSpread(n, float(values.mean()), float(values.std(ddof=1)), *ends)


def difference_of_differences(
    first: Memorisation, second: Memorisation, name: str = "score", draws: Draws | None = None
) -> TopicSpread:
    """How much more one leak changes a value than another one: (with − without) of the first minus of the second.

    Topics that both leaks have are drawn together, so that the interval knows how far they go along. A draw that
    happens to miss all topics of a leak is not counted.

    Source: leakage paper, section 4 (discussion of Table 7).
    """
    draws = draws or Draws()
    sides = [_differences(side, name) for side in (first, second)]
    topics = sorted(set(sides[0]) | set(sides[1]))
    if not sides[0] or not sides[1]:
        return TopicSpread(len(topics), None, None, None, None)
    values = np.array([[side.get(topic, 0.0) for topic in topics] for side in sides])
    there = np.array([[topic in side for topic in topics] for side in sides], dtype=np.float64)
    mean = float(values[0].sum() / there[0].sum() - values[1].sum() / there[1].sum())
    if min(map(len, sides)) < 2:
        return TopicSpread(len(topics), mean, None, None, None)
    rng, n = np.random.default_rng(draws.seed), len(topics)
    times = rng.multinomial(n, np.full(n, 1 / n), size=draws.resamples).astype(np.float64)
    counts = times @ there.T
    drawn = (times @ values.T)[(counts > 0).all(axis=1)] / counts[(counts > 0).all(axis=1)]
    tail = (1 - draws.confidence) / 2
    low, high = np.quantile(drawn[:, 0] - drawn[:, 1], [tail, 1 - tail])
    return TopicSpread(n, mean, None, float(low), float(high))


def _differences(one: Memorisation, name: str) -> dict[str, float]:
    (topics, first), (_, second) = (one.values(f"{name}_{side}") for side in ("with", "without"))
    return dict(zip(topics, (first - second).tolist(), strict=True))


def _of_leaked(scores: pl.DataFrame, leaked: pl.DataFrame, seeds: Sequence[int]) -> pl.DataFrame:
    """Rank and score of the leaked documents: seed, topic_id, doc_id, relevant, rank, score."""
    kept = scores.filter(pl.col("seed").is_in(list(seeds)))
    kept = kept.join(leaked.select("topic_id").unique(), on="topic_id", how="semi")
    return (
        insertion_ranks(kept, ("seed", "topic_id"))
        .join(leaked, on=_PAIR, how="inner")
        .select("seed", *_PAIR, "relevant", "rank", "score")
    )


def _by_topic(pairs: pl.DataFrame) -> pl.DataFrame:
    """The values of each topic: the mean over documents within a seed, then over seeds."""
    relevant = pl.col("relevant")
    ranks, scores = ("rank_with", "rank_without"), ("score_with", "score_without")
    means = [pl.col(name).filter(relevant).cast(pl.Float64).mean() for name in (*ranks, *scores)]
    others = [pl.col(name).filter(~relevant).cast(pl.Float64).mean() for name in ranks]
    means += [each.alias(each.meta.output_name().replace("rank", "other")) for each in others]
    counts = [
        pl.col("doc_id").filter(relevant).n_unique().alias("relevant"),
        pl.col("doc_id").filter(~relevant).n_unique().alias("non_relevant"),
    ]
    # Rows are sorted first: a sum in another order differs in its last bit.
    by_seed = pairs.sort("topic_id", "seed", "doc_id").group_by("topic_id", "seed", maintain_order=True).agg(*means)
    numbers = pairs.group_by("topic_id").agg(*counts)
    topics = by_seed.group_by("topic_id", maintain_order=True).agg(pl.exclude("seed").mean())
    both = pl.col("offset_with").is_not_null()
    return (
        topics.join(numbers, on="topic_id", how="left", maintain_order="left")
        .with_columns(
            (pl.col("other_with") - pl.col("rank_with")).alias("offset_with"),
            (pl.col("other_without") - pl.col("rank_without")).alias("offset_without"),
        )
        .with_columns(
            pl.when(both).then(pl.col("rank_without") - pl.col("rank_with")).alias("gain"),
            pl.when(both).then(pl.col("other_with") - pl.col("other_without")).alias("loss"),
            (pl.col("offset_with") - pl.col("offset_without")).alias("increase"),
        )
        .select("topic_id", "relevant", "non_relevant", *TOPIC_VALUES)
        .sort("topic_id")
    )


def _columns(frame: pl.DataFrame, schema: dict[str, Any], what: str) -> pl.DataFrame:
    if missing := [name for name in schema if name not in frame.columns]:
        raise InputError(f"columns missing: {', '.join(missing)}", f"needed are {', '.join(schema)}", where=what)
    return frame.select([pl.col(name).cast(kind) for name, kind in schema.items()])


#: Collection, leaking training sets, row.
Place: TypeAlias = tuple[str, str, BoardRow]


class Memorised(NamedTuple):
    """What one row remembers of one leak on one collection, at one size of the training sets, in instances.

    `topics` counts those with leaked relevant documents, `unscored` leaked pairs without scores; `rank` and `score` are
    means of the leaked relevant documents, `offset` the ranks from these to the leaked non-relevant ones, `gain` and
    `loss` how many ranks the former rise and the latter fall by.
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
        return self.collection, self.condition, self.row

    def json(self) -> dict[str, Any]:
        rest = plain(self, "collection", "row", "condition", "found")
        return {"collection": self.collection, **self.row._asdict(), "trained_on": self.condition, **rest}


def memorised(
    results: GridResults, boards: Sequence[Board], options: ReportChoices
) -> tuple[tuple[Memorised, ...], tuple[str, ...]]:
    """What every row remembers of every leak, at one training size."""
    found, missing, wanted = [], [], options.memorisation_size
    for board in boards:
        leaked = pl.concat([_named(board, each, results.leaked(each)) for each in board.benchmark.collections])
        for condition in board.faults:
            for row in board.rows:
                sets = board.of(row, condition)["set"].unique().to_list()
                pairs = leaked.filter(pl.col("set").is_in(sets)).select("topic_id", "doc_id", "relevant").unique()
                size = _size(board, row, condition, wanted)
                if not pairs.height:
                    continue
                if size is None:
                    at = "in a shared size" if wanted is None else f"at {size_name(wanted)} instances"
                    missing.append(
                        f"{board.collection}, {row.name}: no finished training {at} both on {condition} and on "
                        f"{board.baseline}, so memorisation is not known."
                    )
                    continue
                found.append(_one(results, board, (row, condition, size), pairs, options))
    if missing and not found and wanted is not None:
        fault = f"no model was trained with {size_name(wanted)} instances with and without a leak"
        raise OptionError("memorisation_size", fault, "choose another size")
    return tuple(found), tuple(missing)


def memorised_tables(found: Sequence[Memorised], baseline: str, options: ReportChoices) -> dict[str, Table]:
    """The tables by name: ranks, scores, the difference of the differences, offsets."""
    if not found:
        return {}
    tables = {
        "memorised-ranks": _sides(found, "rank", ".2f", "Mean rank of the leaked relevant documents", options),
        "memorised-scores": _sides(found, "score", ".3f", "Mean score of the leaked relevant documents", options),
    }
    differences = list(_all_differences(found, options))
    if differences:
        change, difference = "change of the score", "difference of the differences"
        columns = heads(
            f"collection, model, leak, other_leak, {change}|of the leak:+.4f, {change}|of the other:+.4f, "
            f"{difference}|mean:+.4f, {difference}|low:+.4f, {difference}|high:+.4f"
        )
        notes = (
            f"Each change is with minus without the leak ({baseline}), macro-averaged over the topics that leak there.",
            f"Intervals: {_bootstrap(options)}; topics that both leaks have are drawn together.",
        )
        cells = tuple(
            (collection, row.name, first, second, one.mean, other.mean, both.mean, both.low, both.high)
            for collection, row, first, second, one, other, both in differences
        )
        tables["memorised-differences"] = Table(
            "Mean score of the leaked relevant documents: the difference of the differences.", columns, cells, notes
        )
    return {**tables, "memorised-offsets": _offsets(found, baseline, options)}


def _one(
    results: GridResults, board: Board, key: tuple[BoardRow, str, int], pairs: pl.DataFrame, options: ReportChoices
) -> Memorised:
    row, condition, size = key
    sides = [_scores(results, board, row, side, size) for side in (condition, board.baseline)]
    found, draws = memorisation(sides[0], sides[1], pairs), options.draws
    rank, score, offset = (found.change(name, draws) for name in ("rank", "score", "offset"))
    gain, loss = (found.spread(name, draws) for name in ("gain", "loss"))
    return Memorised(
        board.collection, row, condition, board.kinds[condition], size, found.seeds,
        len(found.values("rank_with")[0]), found.unscored, rank, score, offset, gain, loss, found,
    )  # fmt: skip


def _scores(results: GridResults, board: Board, row: BoardRow, condition: str, size: int) -> pl.DataFrame:
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
    corrected = correct([getattr(one, name).p for one in found], options.method.correction)
    pairs = zip(found, corrected, strict=True)
    return frozenset(one.place for one, value in pairs if value is not None and value < options.method.alpha)


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
    return tuple(columns), tuple(rows), group_starts([place[0] for place in places])


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


def _all_differences(
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


def _plus_minus(spread: TopicSpread, form: str) -> str | None:
    if spread.mean is None:
        return None
    return f"{spread.mean:{form}}" if spread.sd is None else f"{spread.mean:{form}} ± {spread.sd:{form}}"


def _shown(value: float | None, form: str, mark: str = "") -> str | None:
    return None if value is None else f"{value:{form}}{mark}"


def _ends(spread: TopicSpread, form: str) -> str | None:
    return None if spread.low is None or spread.high is None else f"{spread.low:{form}} to {spread.high:{form}}"
