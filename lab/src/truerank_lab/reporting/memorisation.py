"""Memorisation: where rankers put the documents they were trained on, with and without the leak, on plain frames.

A leaked document that the first stage did not find is inserted into its ranking by its score, each by itself, so that
the worst rank is one more than the depth of the ranking.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import polars as pl

from truerank.arrays import Floats, frame_schema
from truerank.core.tables import Table
from truerank.core.verdict import Verdict
from truerank.core.views import ColumnSpread, View, columns
from truerank.errors import InputError
from truerank.measures import Significance, correct, detectable_difference
from truerank.measures.resampling import bootstrap_interval
from truerank.measures.significance import difference_test
from truerank_lab.grid.results import GridResults
from truerank_lab.reporting.board import Board, BoardRow, Choices, size_name
from truerank_lab.reporting.effectiveness import reachable, signed

#: What a model said: of the documents that it reranked (`candidate`) and of leaked ones that it did not.
SCORE_SCHEMA: Final[dict[str, Any]] = frame_schema(
    "seed: Int64, topic_id doc_id: String, score: Float64, candidate: Boolean"
)
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

    def spread(self, name: str, method: Significance | None = None) -> TopicSpread:
        """One of `TOPIC_VALUES` summed up over topics."""
        return spread(self.values(name)[1], method)

    def change(self, name: str, method: Significance | None = None) -> MemorisationChange:
        """With and without the leak, macro-averaged over topics: rank and score of the leaked relevant documents, or
        the offset, which says how many ranks lie between these and the non-relevant ones."""
        first, second = (self.values(f"{name}_{side}")[1] for side in ("with", "without"))
        p = difference_test(first, second, "paired-t").p if len(first) > 1 else None
        return MemorisationChange(spread(first, method), spread(second, method), spread(first - second, method), p)


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

    Scores have the columns of `SCORE_SCHEMA`; `leaked` says with topic_id, doc_id and relevant which documents leaked
    for which topic, and whether as relevant or as non-relevant ones.

    Source: leakage paper, section 4, Tables 6 to 8.
    """
    leaked = leaked.select("topic_id", "doc_id", "relevant").unique(maintain_order=False)
    if leaked.select(_PAIR).is_duplicated().any():
        pair = leaked.filter(leaked.select(_PAIR).is_duplicated()).sort(*_PAIR).row(0)
        fault = f"topic {pair[0]}: document {pair[1]} leaked both as relevant and as non-relevant"
        raise InputError(fault, "keep one of the two")
    sides = [side.select(*SCORE_SCHEMA) for side in (with_leak, without)]
    seeds = sorted(set(sides[0]["seed"].unique()) & set(sides[1]["seed"].unique()))
    if not seeds:
        raise InputError("the models with and without the leak share no seed", "train both with the same seeds")
    found = [_of_leaked(side, leaked, seeds) for side in sides]
    pairs = found[0].join(found[1], on=["seed", *_PAIR, "relevant"], suffix="_without", how="inner")
    pairs = pairs.rename({"rank": "rank_with", "score": "score_with"})
    scored = pairs.select(_PAIR).unique().height
    return Memorisation(_by_topic(pairs), tuple(seeds), leaked.height - scored)


def spread(values: Floats, method: Significance | None = None) -> TopicSpread:
    """Sums up one value per topic, shape (topics,); the method says how the bootstrap draws."""
    method, n = method or Significance(), len(values)
    if n < 2:
        return TopicSpread(n, float(values[0]) if n else None, None, None, None)
    ends = bootstrap_interval(
        [values], confidence=method.confidence, method="percentile", resamples=method.draws, seed=method.seed
    )
    return TopicSpread(n, float(values.mean()), float(values.std(ddof=1)), *ends)


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


class Memorised(NamedTuple):
    """What one row remembers of one leak on one collection, at one size of the training sets, in instances.

    `rank` and `score` are means of the leaked relevant documents, `offset` the ranks from these to the leaked
    non-relevant ones, `gain` and `loss` how many ranks the former rise and the latter fall by. Each change is marked
    where it is significant among those of all rows, see `memorised`.
    """

    collection: str
    row: BoardRow
    condition: str
    size: int
    found: Memorisation
    rank: MemorisationChange
    score: MemorisationChange
    offset: MemorisationChange
    gain: TopicSpread
    loss: TopicSpread

    @property
    def topics(self) -> int:
        """Topics with leaked relevant documents."""
        return len(self.found.values("rank_with")[0])


def memorised(
    results: GridResults, boards: Sequence[Board], choices: Choices
) -> tuple[tuple[Memorised, ...], tuple[str, ...]]:
    """What every row remembers of every leak, at one training size; and where that is not known."""
    found: list[Memorised] = []
    missing: list[str] = []
    for board in boards:
        leaked = pl.concat([_named(board, each, results.leaked(each)) for each in board.benchmark.collections])
        for condition, row in itertools.product(board.faults, board.rows):
            sets = board.of(row, condition)["set"].unique().to_list()
            pairs = leaked.filter(pl.col("set").is_in(sets)).select("topic_id", "doc_id", "relevant").unique()
            if not pairs.height:
                continue
            size = _size(board, row, condition, choices.size)
            if size is None:
                at = "in a shared size" if choices.size is None else f"at {size_name(choices.size)} instances"
                missing.append(
                    f"{board.collection}, {row.name}: no finished training {at} both on {condition} and on "
                    f"{board.baseline}, so memorisation is not known."
                )
                continue
            sides = [_scores(results, board, row, side, size) for side in (condition, board.baseline)]
            one = memorisation(sides[0], sides[1], pairs)
            rank, score, offset = (one.change(name, choices.method) for name in ("rank", "score", "offset"))
            gain, loss = (one.spread(name, choices.method) for name in ("gain", "loss"))
            found.append(Memorised(board.collection, row, condition, size, one, rank, score, offset, gain, loss))
    if missing and not found and choices.size is not None:
        fault = f"no model was trained with {size_name(choices.size)} instances with and without a leak"
        raise InputError(fault, "choose another memorisation_size in the design", where=results.folder)
    return tuple(found), tuple(missing)


def _scores(results: GridResults, board: Board, row: BoardRow, condition: str, size: int) -> pl.DataFrame:
    parts = []
    for cell, seed in board.of(row, condition, size).select("cell", "seed").rows():
        scores = results.scores(cell).with_columns(seed=pl.lit(seed, pl.Int64))
        for each in board.benchmark.collections:
            parts.append(_named(board, each, scores.filter(pl.col("collection") == each)).select(*SCORE_SCHEMA))
    return pl.concat(parts)


def _named(board: Board, collection: str, frame: pl.DataFrame) -> pl.DataFrame:
    """Rows of a collection with their topics as the benchmark calls them."""
    if len(board.benchmark.collections) == 1:
        return frame
    return frame.with_columns(pl.format("{}:{}", pl.lit(collection), "topic_id").alias("topic_id"))


def _size(board: Board, row: BoardRow, condition: str, wanted: int | None) -> int | None:
    """The size wanted, or the largest, that is finished with and without the leak under a shared seed."""
    for size in reversed(board.sizes(row, condition)):
        seeds = [set(board.of(row, side, size)["seed"].to_list()) for side in (condition, board.baseline)]
        if wanted in (None, size) and seeds[0] & seeds[1]:
            return size
    return None


def _significant(found: Sequence[Memorised], name: str, method: Significance) -> list[bool]:
    """Where a difference ("rank", "score", "offset") is significant by the paired t-test, corrected for all of them."""
    corrected = correct([getattr(one, name).p for one in found], method.correction)
    return [value is not None and value < method.alpha for value in corrected]


_PLACES: Final = columns("trained on=trained_on, model")
_SIDES: Final = columns("with=with_leak:s, without:s, difference:s, {interval}=interval:s")
_VIEWS: Final = tuple(
    View(
        f"memorised-{name}s", name, f"Mean {name} of the leaked relevant documents {{at}}, with and without the leak.",
        _PLACES, spread=ColumnSpread("collection", ("{}",), _SIDES), ruled="trained_on",
    )
    for name in ("rank", "score")
)  # fmt: skip
_OFFSETS: Final = View(
    "memorised-offsets",
    "offset",
    "Increase of the rank offset between leaked relevant and non-relevant documents {at}.",
    _PLACES,
    notes=(
        "The offset is the mean rank of the leaked non-relevant documents of a topic minus that of the relevant ones; "
        "its increase over {baseline} is what the relevant ones rise by and the non-relevant ones fall by, in ranks.",
    ),
    spread=ColumnSpread(
        "collection",
        ("{}",),
        columns("increase:s, {interval}=interval:s, relevant rise=gain:s, non-relevant fall=loss:s"),
    ),
    ruled="trained_on",
)


def memorised_tables(found: Sequence[Memorised], baseline: str, choices: Choices) -> Iterator[tuple[str, Table]]:
    """The tables by name: ranks and scores with and without the leak, and the increase of the offset.

    Source: leakage paper, section 4, Tables 6 to 8.
    """
    if not found:
        return
    order = list(dict.fromkeys(one.condition for one in found))
    ordered = sorted(found, key=lambda one: order.index(one.condition))
    sizes = dict.fromkeys(size_name(one.size) for one in sorted(found, key=lambda one: one.size))
    facts = {"at": f"at {' or '.join(sizes)} training instances", "baseline": baseline}
    facts["interval"] = f"{100 * choices.confidence:.6g}% interval"
    forms = {"rank": ".2f", "score": ".3f", "offset": ".3f"}
    for view in (*_VIEWS, _OFFSETS):
        form, rows = forms[view.frame], []
        for one, marked in zip(ordered, _significant(ordered, view.frame, choices.method), strict=True):
            change: MemorisationChange = getattr(one, view.frame)
            difference, mark = change.difference, "†" if marked else ""
            low, high = difference.low, difference.high
            rows.append({
                "trained_on": one.condition, "model": one.row.name, "collection": one.collection,
                "with_leak": _plus_minus(change.with_leak, form), "without": _plus_minus(change.without, form),
                "difference": None if difference.mean is None else f"{difference.mean:+{form}}{mark}",
                "increase": (_plus_minus(difference, form) or "–") + mark,
                "interval": None if low is None else f"{low:+{form}} to {high:+{form}}",
                "gain": None if one.gain.mean is None else f"{one.gain.mean:+{form}}",
                "loss": None if one.loss.mean is None else f"{one.loss.mean:+{form}}",
            })  # fmt: skip
        table = view.table({view.frame: pl.DataFrame(rows, infer_schema_length=None)}, facts)
        yield view.name, replace(table, notes=(*table.notes, *_notes(found, choices)))


def memories(found: Sequence[Memorised], baseline: str, choices: Choices) -> Iterator[Verdict]:
    """What became of the ranks of the documents that leaked on one collection by one set."""
    clear = [one for one, marked in zip(found, _significant(found, "offset", choices.method), strict=True) if marked]
    for collection, condition in dict.fromkeys((one.collection, one.condition) for one in found):
        own = [one for one in found if (one.collection, one.condition) == (collection, condition)]
        changes = "; ".join(f"{one.row.name} rank {_signed(one.rank)}, offset {_signed(one.offset)}" for one in own)
        grown = [one for one in own if one in clear and (one.offset.difference.mean or 0) > 0]
        word = f"offset grows for {len(grown)} of {len(own)}" if grown else "cannot tell"
        named = ", ".join(one.row.name for one in grown)
        tested = (
            f"The offset grows, corrected, for {named}." if grown else "No growth of the offset survives correction."
        )
        rest = [one.offset.difference for one in own if one not in grown]
        sizes = [None if each.sd is None else detectable_difference(each.n, each.sd) for each in rest]
        sentence = (
            f"Leaked documents after training on {condition}, compared with {baseline}: the rank of the relevant "
            f"ones (negative: it rises) and the offset to the non-relevant ones change by {changes} "
            f"(intervals not corrected). {tested}{reachable(sizes, '.2f')}"
        )
        subject = f"{collection}, {condition}: memory"
        yield Verdict(word, sentence, subject=subject, level="bad" if grown else "unknown")


def _notes(found: Sequence[Memorised], choices: Choices) -> tuple[str, ...]:
    method = choices.method
    topics = dict.fromkeys(f"{one.collection}, {one.condition}: {one.topics:,} topics" for one in found)
    bootstrap = f"percentile bootstrap over topics, {method.draws:,} draws, seed {method.seed}"
    notes = [
        "Macro-averaged over topics (mean within a topic and seed, then over seeds) ± standard deviation over topics. "
        f"{'; '.join(topics)}.",
        "A leaked document outside the reranked ones is inserted by its score, ties by document id, each by itself.",
        f"Intervals: {bootstrap}. † paired t-test over topics, {method.correction} over the "
        f"{len(found)} comparisons of the table, α = {method.alpha:g}.",
    ]
    unscored = sum(one.found.unscored for one in found)
    return (*notes, *([f"{unscored:,} leaked pairs were not scored and are left out."] if unscored else []))


def _signed(change: MemorisationChange) -> str:
    return signed(change.difference.mean, change.difference.low, change.difference.high, "+.2f")


def _plus_minus(spread: TopicSpread, form: str) -> str | None:
    if spread.mean is None:
        return None
    return f"{spread.mean:{form}}" if spread.sd is None else f"{spread.mean:{form}} ± {spread.sd:{form}}"
