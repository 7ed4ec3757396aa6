"""Placebo: how much of a change of scores random changes of the same size would make.

Removing topics, judgments or documents moves every score, whatever was wrong with them. So what a cleaning did to
scores is compared with what as many random removals do: a randomisation test, whose p is the share of random changes
that are at least as far from the middle of all changes as the one that was made. Under the hypothesis that the change
was made without regard to scores it is exact; over several systems the largest deviation is corrected for.

Source: Pitman (1937) for randomisation tests; Westfall and Young (1993), Resampling-Based Multiple Testing, section
2.6, for the correction by the largest deviation.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import polars as pl
from ir_measures.measures.base import Measure
from numpy.typing import NDArray

from truerank.arrays import Floats, Ints
from truerank.core.plain import picked
from truerank.errors import OptionError
from truerank.measures import effectiveness
from truerank.measures.effectiveness import RankedJudgments
from truerank.measures.grammar import parse_measures
from truerank.measures.rankings import GradeList, GradeTable, Hits, Ranking, grouped, on_topics
from truerank.measures.scoring import evaluate
from truerank.options import Scoring

_CELLS_AT_ONCE: Final = 1 << 22


class _Free(NamedTuple):
    """The strata of which some items go and some stay: in the others there is no choice.

    `items` are theirs, one stratum after the other, shape (items,); `size` and `removed` say of each stratum how many
    it has and how many go, shape (strata,).
    """

    items: Ints
    size: Ints
    removed: Ints

    @classmethod
    def of(cls, removed: NDArray[np.bool_], strata: Ints | None) -> _Free:
        """From which items are removed, and the number of each one's stratum."""
        _, which, size = np.unique(
            np.zeros(len(removed)) if strata is None else strata, return_inverse=True, return_counts=True
        )
        gone = np.bincount(which, removed, len(size)).astype(np.int64)
        free = (gone > 0) & (gone < size)
        order = np.argsort(which, kind="stable")
        return cls(order[free[which[order]]], size[free], gone[free])


def removal_choices(removed: NDArray[np.bool_], strata: Ints | None, most: int) -> int:
    """In how many ways as many items of each stratum can be removed.

    Args:
        removed: which items were removed, shape (items,).
        strata: a number for each item, shape (items,); None where all are alike.
    """
    return _choices(_Free.of(removed, strata), most)


def removal_draws(removed: NDArray[np.bool_], strata: Ints | None, draws: int, seed: int) -> Iterator[Floats]:
    """Removals of as many items of each stratum: random ones, or each of the others where there are no more than these.

    Args:
        removed: which items were removed, shape (items,).
        strata: a number for each item, shape (items,); None where all are alike.

    Yields:
        Rows of zeros and ones, shape (some draws, items).
    """
    free = _Free.of(removed, strata)
    certain = removed.astype(np.float64)
    certain[free.items] = 0.0
    if _choices(free, draws + 1) <= draws + 1:
        yield _others(removed, certain, free)
        return
    stratum = np.repeat(np.arange(len(free.size)), free.size)
    first = np.arange(len(stratum)) - np.repeat(np.cumsum(free.size) - free.size, free.size)
    goes = first < np.repeat(free.removed, free.size)
    rng = np.random.default_rng(seed)
    step = max(1, _CELLS_AT_ONCE // len(removed))
    for start in range(0, draws, step):
        chosen = np.tile(certain, (min(step, draws - start), 1))
        # Random numbers order the items of each stratum, one stratum after the other.
        order = np.argsort(rng.random((len(chosen), len(stratum))) + stratum, axis=1)
        np.put_along_axis(chosen, free.items[order[:, goes]], 1.0, axis=1)
        yield chosen


def _choices(free: _Free, most: int) -> int:
    found = 1
    for size, count in zip(free.size.tolist(), free.removed.tolist(), strict=True):
        if size > most:
            return most + 1
        found *= math.comb(size, count)
        if found > most:
            break
    return found


def _others(removed: NDArray[np.bool_], certain: Floats, free: _Free) -> Floats:
    """Every choice but the one that was made."""
    members = np.split(free.items, np.cumsum(free.size)[:-1])
    ways = list(
        itertools.product(
            *(itertools.combinations(own, count) for own, count in zip(members, free.removed.tolist(), strict=False))
        )
    )
    chosen = np.tile(certain, (len(ways), 1))
    for row, parts in zip(chosen, ways, strict=True):
        row[list(itertools.chain(*parts))] = 1.0
    others: Floats = chosen[(chosen != removed).any(axis=1)]
    return others


Moved = Literal["moved more than chance", "no more than chance", "cannot tell"]

#: Changes of judgments: the grade before (null: not judged) and after (null: removed).
EDITS: Final[dict[str, Any]] = {"topic_id": pl.String, "doc_id": pl.String, "old": pl.Int32, "new": pl.Int32}

#: The smallest shift that matters unless the caller says otherwise.
SMALLEST: Final = 0.02
_POWER: Final = 0.8
_DECIMALS: Final = 12
_ROUNDS: Final = 10
_ROUNDING: Final = 1e-12
#: Changed judgments that are scored at once, and what stands between their number and the topic.
_AT_ONCE: Final = 50
_MARK: Final = "\x1f"


class SystemPlacebo(NamedTuple):
    """One system under the change and under random ones.

    Attributes:
        before: its mean before.
        after: its mean after the change.
        change: after minus before.
        low: lower end of the interval in which random changes lie.
        p: share of random changes that are as unusual as this one.
        p_corrected: the same for the most unusual of all systems.
        detectable: the smallest shift of this system alone, beside chance, that the corrected test finds with a power
            of about 0.8.
    """

    system: str
    before: float
    after: float
    change: float
    low: float
    high: float
    p: float
    p_corrected: float
    detectable: float


class OrderPlacebo(NamedTuple):
    """The order of systems: Kendall's τ-b of before and after, the interval of random changes, p of a lower τ."""

    tau: float | None
    low: float | None
    high: float | None
    p: float | None


@dataclass(frozen=True)
class Placebo:
    """A change of scores beside random changes of the same size.

    Attributes:
        systems: one entry for each.
        order: what becomes of their order.
        what: what was changed, such as "3 of 93 topics removed".
        draws: random changes.
        confidence: of the intervals; 1 minus it is the level of the test.
        smallest: the smallest shift that matters, in the unit of the measure.
        reason: the verdict in one sentence, with its figures.
    """

    measure: str
    systems: tuple[SystemPlacebo, ...]
    order: OrderPlacebo
    what: str
    draws: int
    confidence: float
    smallest: float
    word: Moved
    reason: str

    @property
    def p(self) -> float:
        """The p-value of the whole change, over all systems."""
        return min((one.p_corrected for one in self.systems), default=1.0)

    def json(self) -> dict[str, Any]:
        """Everything, as plain numbers and texts."""
        return picked(self, "measure, what, verdict=word, reason, draws, confidence, smallest, p, order, systems")


def placebo_removal(
    values: Mapping[str, Floats],
    removed: NDArray[np.bool_],
    *,
    strata: NDArray[np.int64] | None = None,
    measure: str = "",
    draws: int = 1000,
    confidence: float = 0.95,
    smallest: float = SMALLEST,
    seed: int = 0,
) -> Placebo:
    """Compares the removal of some topics with the removal of as many random ones.

    Args:
        values: by system, its score on each topic, shape (topics,).
        removed: which topics were removed, shape (topics,).
        strata: a number for each topic, shape (topics,); random removals take as many topics of each number, such as
            a class of difficulty. By default all topics are alike.
    """
    table = _table(values)
    topics, gone = table.shape[1], int(removed.sum())
    what = f"{gone:,d} of {topics:,d} topics removed"
    if removal_choices(removed, strata, 1) == 1:
        why = "no topic is removed" if not gone else "no topic is kept" if gone == topics else ""
        reason = f"{(why or 'every class of topics is removed or kept as a whole').capitalize()}: no choice is random."
        return untold(reason, measure=measure, what=what, confidence=confidence, smallest=smallest)
    before = table.mean(axis=1)
    after = table[:, ~removed].mean(axis=1)
    sums = np.concatenate([chosen @ table.T for chosen in removal_draws(removed, strata, draws, seed)])
    drawn = (table.sum(axis=1) - sums) / (topics - gone)
    return _placebo(
        tuple(values),
        (before, after, drawn),
        measure=measure,
        what=what,
        confidence=confidence,
        smallest=smallest,
        topics=topics,
    )


def untold(reason: str, *, measure: str, what: str, confidence: float = 0.95, smallest: float = SMALLEST) -> Placebo:
    """The comparison where no random change could be made: "cannot tell", with the reason."""
    nothing = OrderPlacebo(None, None, None, None)
    return Placebo(measure, (), nothing, what, 0, confidence, smallest, "cannot tell", reason)


def difficulty_classes(values: Mapping[str, Floats], classes: int = 5) -> NDArray[np.int64]:
    """Classes of topics that are about as hard, for `placebo_removal`.

    Args:
        values: by system, its score on each topic, shape (topics,). A topic is as hard as the mean of these scores.

    Returns:
        The class of each topic, shape (topics,).
    """
    means = np.round(_table(values).mean(axis=0), _DECIMALS)
    _, place, sizes = np.unique(means, return_inverse=True, return_counts=True)
    middle = (np.cumsum(sizes) - sizes / 2)[place] / len(means)
    return np.floor(middle * classes).astype(np.int64)


def placebo_changes(
    before: Mapping[str, float],
    after: Mapping[str, float],
    draw: Callable[[np.random.Generator, int], Floats],
    *,
    measure: str = "",
    what: str = "",
    draws: int = 1000,
    confidence: float = 0.95,
    compared: float = 1.0,
    seed: int = 0,
) -> Placebo:
    """Compares any change with random changes of the same size.

    Args:
        draw: makes random changes; called with a generator and a number n, it returns the means of the systems after
            each of them, shape (n, systems).
    """
    systems = tuple(before)
    if not systems:
        raise OptionError("run", "no system", "give at least one run")
    means = (np.array([one[name] for name in systems], np.float64) for one in (before, after))
    drawn = draw(np.random.default_rng(seed), draws)
    return _placebo(
        systems,
        (*means, drawn),  # type: ignore[arg-type]
        measure=measure,
        what=what,
        confidence=confidence,
        smallest=SMALLEST,
        compared=compared,
    )


def _placebo(
    systems: Sequence[str],
    means: tuple[Floats, Floats, Floats],
    *,
    measure: str,
    what: str,
    confidence: float,
    smallest: float,
    topics: int | None = None,
    compared: float = 1.0,
) -> Placebo:
    before, after, drawn = means
    draws = len(drawn)
    moved = np.vstack([after - before, drawn - before])
    # The middle and the spread are those of all changes, the one that was made included: so the test is exact.
    away = np.abs(moved - moved.mean(axis=0))
    spread = moved.std(axis=0)
    slack = _ROUNDING * max(1.0, float(np.abs(moved).max()))
    scaled = np.divide(away, spread, out=np.zeros_like(away), where=spread > slack)
    largest = scaled.max(axis=1)
    # The same bar for all systems, in standard deviations: that of the corrected test.
    highest = float(np.quantile(largest[1:], confidence))
    tails = [(1 - confidence) / 2, (1 + confidence) / 2]
    low, high = np.quantile(moved[1:], tails, axis=0)
    weak = np.quantile(moved[1:] - moved[1:].mean(axis=0), 1 - _POWER, axis=0)
    detectable = highest * spread - weak
    for _ in range(_ROUNDS if topics else 0):
        # Removed topics whose scores differ shift the mean, and spread the random changes as well: a shift s by s²/n.
        detectable = highest * np.sqrt(spread**2 + detectable**2 / topics) - weak
    detectable = detectable / compared
    p = (away >= away[0] - slack).mean(axis=0)
    corrected = (largest[:, None] >= scaled[0] - _ROUNDING).mean(axis=0)
    columns = (before, after, moved[0], low, high, p, corrected, detectable)
    rows = [
        SystemPlacebo(name, *map(float, row)) for name, row in zip(systems, zip(*columns, strict=True), strict=True)
    ]
    order = _order(before, after, drawn, tails)
    word, reason = _verdict(rows, order, draws, confidence, smallest)
    return Placebo(measure, tuple(rows), order, what, draws, confidence, smallest, word, reason)


def _verdict(
    rows: Sequence[SystemPlacebo], order: OrderPlacebo, draws: int, confidence: float, smallest: float
) -> tuple[Moved, str]:
    level = 1 - confidence
    most = min(rows, key=lambda one: (one.p_corrected, -abs(one.change)))
    weakest = max(one.detectable for one in rows)
    found = f"{most.system} moved by {most.change:+.4f}, random changes by {most.low:+.4f} to {most.high:+.4f}"
    p = f"p = {most.p_corrected:.3g} over {len(rows)} system{'s' if len(rows) != 1 else ''}"
    if (draws + 1) * level < 1 - _ROUNDING:
        return "cannot tell", f"{draws} random changes are too few for a level of {level:.3g}."
    if most.p_corrected <= level + _ROUNDING:
        return "moved more than chance", f"{found} ({p})."
    if weakest > smallest:
        return "cannot tell", f"{found} ({p}), but only shifts from {weakest:.4f} on would be found."
    return "no more than chance", f"{found} ({p}); a shift of {weakest:.4f} would be found with a power of {_POWER:g}."


def _order(before: Floats, after: Floats, drawn: Floats, tails: Sequence[float]) -> OrderPlacebo:
    taus = _taus(before, np.vstack([after, drawn]))
    if np.isnan(taus[0]) or np.isnan(taus[1:]).all():
        return OrderPlacebo(None, None, None, None)
    random = taus[1:][~np.isnan(taus[1:])]
    low, high = np.quantile(random, tails)
    p = (1 + float((random <= taus[0] + _ROUNDING).sum())) / (1 + len(random))
    return OrderPlacebo(float(taus[0]), float(low), float(high), p)


def _taus(first: Floats, others: Floats) -> Floats:
    """Kendall's τ-b of one order with several, shape (orders,); NaN where an order is all ties."""
    left, right = np.triu_indices(len(first), 1)
    if not len(left):
        return np.full(len(others), np.nan)
    signs = np.sign(np.round(first[left] - first[right], _DECIMALS))
    theirs = np.sign(np.round(others[:, left] - others[:, right], _DECIMALS))
    pairs = np.sqrt(np.abs(signs).sum() * np.abs(theirs).sum(axis=1))
    found: Floats = np.divide(theirs @ signs, pairs, out=np.full(len(others), np.nan), where=pairs > 0)
    return found


def _table(values: Mapping[str, Floats]) -> Floats:
    if not values:
        raise OptionError("run", "no system", "give at least one run")
    return np.stack([np.asarray(one, np.float64) for one in values.values()])


# -- changes of judgments and of runs -------------------------------------------------------------------------------


def edits_between(before: pl.DataFrame, after: pl.DataFrame) -> pl.DataFrame:
    """What turns some judgments into others: columns as in `EDITS`."""
    keys = ["topic_id", "doc_id"]
    both = before.join(after, on=keys, how="full", coalesce=True, suffix="_new", maintain_order="left_right")
    both = both.rename({"relevance": "old", "relevance_new": "new"}).select(
        [pl.col(n).cast(k) for n, k in EDITS.items()]
    )
    return both.filter(~pl.col("old").eq_missing(pl.col("new")))


def edited(pairs: pl.DataFrame, edits: pl.DataFrame) -> pl.DataFrame:
    """Judgments after some edits; untouched ones keep their order."""
    kept = pairs.join(edits, on=["topic_id", "doc_id"], how="anti", maintain_order="left")
    new = edits.filter(pl.col("new").is_not_null())
    added = new.select("topic_id", "doc_id", pl.col("new").cast(pairs.schema["relevance"]).alias("relevance"))
    return pl.concat([kept.select("topic_id", "doc_id", "relevance"), added])


class _Editable(NamedTuple):
    """Pairs with one grade (None: not judged) by their places, judged ones before the others, and grades after."""

    old: int | None
    places: Ints
    new: Sequence[int | None]

    @classmethod
    def all_of(cls, pairs: pl.DataFrame, edits: pl.DataFrame, unjudged: int) -> tuple[_Editable, ...]:
        """Of each grade that some edits change, where so many pairs are not judged."""
        found = []
        counts = edits.group_by("old", "new").len().sort("old", "new", nulls_last=True)
        for (old,), part in counts.group_by("old", maintain_order=True):
            alike = np.flatnonzero(pairs["relevance"].to_numpy() == old)
            places = len(pairs) + np.arange(unjudged) if old is None else alike
            new = [grade for grade, count in part.select("new", "len").iter_rows() for _ in range(count)]
            found.append(cls(old, places, new[: len(places)]))
        return tuple(found)

    def drawn(self, rng: np.random.Generator) -> Ints:
        """The places of random ones, in the order of the grades after."""
        return self.places[rng.choice(len(self.places), len(self.new), replace=False) if self.new else slice(0)]


def random_edits(
    pairs: pl.DataFrame, edits: pl.DataFrame, pool: pl.DataFrame, rng: np.random.Generator
) -> pl.DataFrame:
    """Random edits that change as many judgments from each grade to each other grade."""
    every = pl.concat([one.select("topic_id", "doc_id") for one in (pairs, pool)])
    chosen = [
        every[one.drawn(rng)].with_columns(
            pl.lit(one.old, EDITS["old"]).alias("old"), pl.Series("new", one.new, EDITS["new"])
        )
        for one in _Editable.all_of(pairs, edits, len(pool))
    ]
    return pl.concat([pl.DataFrame(schema=EDITS), *chosen])


#: In place of the grade of a pair that is not judged.
_NONE: Final = np.iinfo(np.int64).min


class _Results(NamedTuple):
    """The results of a run on judged topics, by topic and rank: numbers of topic and pair, and the row in the run."""

    topic: Ints
    pair: Ints
    row: Ints
    rows: int

    @classmethod
    def of(cls, run: pl.DataFrame, numbered: pl.DataFrame, table: GradeTable, scoring: Scoring) -> _Results:
        """Of pairs that have numbers."""
        known = grouped(on_topics(run.with_row_index("row"), pl.Series(table.topics)))
        ranks = Ranking(known, table).ranks(scoring.ties, np.arange(len(known)))
        topic = table.numbers(known["topic_id"]).astype(np.int64)
        pair = known.join(numbered, on=["topic_id", "doc_id"], how="left", maintain_order="left")["pair"].to_numpy()
        order = np.lexsort((ranks, topic))
        return cls(topic[order], pair[order], known["row"].to_numpy()[order], len(run))

    def hits(self, grades: Ints, lost: Ints, topics: int, depth: int | None) -> Hits:
        """The judged ones, without the results in some rows of the run."""
        stays = np.ones(self.rows, np.bool_)
        stays[lost] = False
        topic, grade = self.topic[stays[self.row]], grades[self.pair[stays[self.row]]]
        length = np.bincount(topic, minlength=topics)
        rank = np.arange(len(topic)) - np.repeat(np.cumsum(length) - length, length)
        judged = (grade != _NONE) & (rank < (np.inf if depth is None else depth))
        results = length if depth is None else np.minimum(length, depth)
        return Hits(topic[judged], rank[judged], grade[judged], results)


@dataclass(frozen=True, eq=False)
class JudgmentPlacebo:
    """Scores of runs under random changes of judgments, and of results.

    Attributes:
        runs: by name, columns topic_id, doc_id, score, rank; as deep as the measure looks.
        pairs: the judgments before.
        edits: what was changed, columns as in `EDITS`.
        dropped: by run, how many of its results were left out; random ones are left out in the draws.
    """

    runs: Mapping[str, pl.DataFrame]
    pairs: pl.DataFrame
    edits: pl.DataFrame
    measure: str
    scoring: Scoring
    dropped: Mapping[str, int]

    def means(self, rng: np.random.Generator, draws: int) -> Floats:
        """The means of the runs after random changes, shape (draws, runs)."""
        pool = pl.concat([run.select("topic_id", "doc_id") for run in self.runs.values()]).unique(maintain_order=True)
        pool = pool.join(self.pairs, on=["topic_id", "doc_id"], how="anti", maintain_order="left")
        pool = pool.filter(pl.col("topic_id").is_in(self.pairs["topic_id"].unique().implode()))
        (measure,) = parse_measures(self.measure)
        simple = effectiveness.computes(measure) and measure.NAME != "RR_MSMARCO" and self.scoring.missing == "default"
        some = self._by_number(measure, pool) if simple else partial(self._some, pool)
        return np.concatenate([some(rng, min(_AT_ONCE, draws - start)) for start in range(0, draws, _AT_ONCE)])

    def _by_number(self, measure: Measure, pool: pl.DataFrame) -> Callable[[np.random.Generator, int], Floats]:
        """The same as `_some`, to the last bit, where grades are changed in place: many times as fast."""
        table, ids = GradeTable(self.pairs), ["topic_id", "doc_id"]
        every = pl.concat([self.pairs.select(ids), pool.select(ids)]).with_row_index("pair")
        topics, topic = len(table.topics), table.numbers(every["topic_id"]).astype(np.int64)
        before = np.append(table.relevance, np.full(len(pool), _NONE))
        editable = _Editable.all_of(self.pairs, self.edits, len(pool))
        results = [_Results.of(run, every, table, self.scoring) for run in self.runs.values()]

        def means(changed: Ints, lost: Sequence[Ints]) -> list[float]:
            grades, order = before.copy(), np.arange(len(every))
            grades[changed] = new
            order[changed] = len(every) + np.arange(len(changed))
            judged = np.flatnonzero(grades != _NONE)
            judgments = GradeList.sorted(topic[judged], grades[judged], topics)
            # A mean sums topics in the order of the judgments, in which changed ones are the last.
            first = np.full(topics, 2 * len(every))
            np.minimum.at(first, topic[judged], order[judged])
            there = np.argsort(first)[: np.count_nonzero(first < 2 * len(every))]
            found = []
            for one, gone in zip(results, lost, strict=True):
                hits = one.hits(grades, gone, topics, self.scoring.depth)
                values = effectiveness.score(measure, RankedJudgments(judgments, hits, None, self.scoring))
                found.append(float(np.cumsum(values[there])[-1]) / len(there) if len(there) else 0.0)
            return found

        new = np.array([_NONE if one is None else one for part in editable for one in part.new], np.int64)

        def some(rng: np.random.Generator, draws: int) -> Floats:
            changed = [
                np.concatenate([np.zeros(0, np.int64), *(one.drawn(rng) for one in editable)]) for _ in range(draws)
            ]
            lost = [[self._lost(rng, name) for _ in range(draws)] for name in self.runs]
            return np.array([means(*each) for each in zip(changed, zip(*lost, strict=True), strict=True)])

        return some

    def _lost(self, rng: np.random.Generator, name: str) -> Ints:
        """Random rows of a run, as many as were left out."""
        size = len(self.runs[name])
        return rng.choice(size, min(self.dropped.get(name, 0), size - 1), replace=False)

    def _some(self, pool: pl.DataFrame, rng: np.random.Generator, draws: int) -> Floats:
        """Several draws at once: each has topics of its own."""
        numbered = [
            _numbered(edited(self.pairs, random_edits(self.pairs, self.edits, pool, rng)), i) for i in range(draws)
        ]
        runs = {}
        for name, run in self.runs.items():
            parts = []
            for i in range(draws):
                lost = self._lost(rng, name)
                keep = np.ones(len(run), np.bool_)
                keep[lost] = False
                parts.append(_numbered(run.filter(keep) if len(lost) else run, i))
            runs[name] = pl.concat(parts)
        scores = evaluate(pl.concat(numbered), runs, self.measure, self.scoring)
        owner = np.array([int(topic.partition(_MARK)[0]) for topic in scores.topics])
        sizes = np.bincount(owner, minlength=draws)
        values = [scores.of(name, scores.measures[0]) for name in self.runs]
        return np.stack([np.bincount(owner, one, minlength=draws) / np.maximum(1, sizes) for one in values], axis=1)


def _numbered(frame: pl.DataFrame, number: int) -> pl.DataFrame:
    return frame.with_columns(pl.concat_str(pl.lit(f"{number}{_MARK}"), "topic_id").alias("topic_id"))
