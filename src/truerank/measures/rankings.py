"""The ranking of every topic of a run, its judgments, and where the judged documents are in it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from truerank.arrays import SPREAD, Floats, Ints
from truerank.errors import OptionError
from truerank.measures.equivalence import Equivalence
from truerank.options import Ties
from truerank.sources.lines import repeated_pair

_BITS_PER_JUDGMENT: Final = 32
_FEWEST_BITS: Final = 1 << 16
_MOST_BITS: Final = 1 << 27
_HALF: Final = np.uint64(32)


class GradeTable:
    """The judgments by topic number, and a quick test whether a document is judged at all.

    Args:
        frame: columns topic_id, doc_id and relevance; a pair of topic and document is there once.

    Attributes:
        topics: the ids of the topics in the order of the frame; a topic's number is its place there.
        topic: the number of each judgment's topic, shape (judgments,).
        relevance: the grade of each judgment, shape (judgments,). Negative grades stand for pooled but not judged.
    """

    def __init__(self, frame: pl.DataFrame) -> None:
        if not len(frame):
            raise OptionError("qrels", "no relevance judgments", "give qrels that hold some")
        names = frame["topic_id"].unique(maintain_order=True)
        self.topics: tuple[str, ...] = tuple(names.to_list())
        self._numbers = {name: number for number, name in enumerate(self.topics)}
        self.topic: NDArray[np.int32] = frame["topic_id"].cast(pl.Enum(names)).to_physical().cast(pl.Int32).to_numpy()
        self.relevance: NDArray[np.int64] = frame["relevance"].to_numpy().astype(np.int64)
        hashes = frame["doc_id"].hash().to_numpy()
        self._table = frame.select(pl.Series("key", _pair_keys(self.topic, hashes)), "doc_id", "relevance")
        self._made: dict[Hashable, NDArray[Any]] = {}
        bits = 1 << (_BITS_PER_JUDGMENT * len(frame) - 1).bit_length()
        self._mask = np.uint64(min(max(bits, _FEWEST_BITS), _MOST_BITS) - 1)
        self._judged = np.zeros(int(self._mask) + 1, np.bool_)
        self._judged[hashes & self._mask] = True

    def __len__(self) -> int:
        return len(self.topic)

    def once(self, key: Hashable, make: Callable[[], NDArray[Any]]) -> NDArray[Any]:
        """What depends on the judgments alone, such as the ideal gain: made for the first run, kept for the others."""
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]

    def best_first(self, gains: NDArray[np.float64]) -> NDArray[np.int64]:
        """The places of the judgments by topic, those with the highest gains first; shape (judgments,)."""
        return np.lexsort((-gains, self.topic))

    def numbers(self, topic_ids: pl.Series) -> NDArray[np.int32]:
        """The number of each topic, -1 for one that has no judgments; shape (n,)."""
        return np.array([self._numbers.get(topic_id, -1) for topic_id in topic_ids.to_list()], np.int32)

    def likely(self, hashes: NDArray[np.uint64]) -> NDArray[np.int64]:
        """The places of the documents that may be judged for some topic; one that is judged is always among them.

        Args:
            hashes: what `Series.hash()` gives for the documents' ids, shape (n,).
        """
        return np.flatnonzero(self._judged[hashes & self._mask])

    def find(self, topics: NDArray[np.int32], documents: pl.Series, hashes: NDArray[np.uint64]) -> tuple[Ints, Ints]:
        """The places and grades of the judged ones of some results, in their order.

        Args:
            topics: the number of each result's topic, shape (n,).
            hashes: what `Series.hash()` gives for the documents' ids, shape (n,).
        """
        rows = pl.int_range(len(documents), dtype=pl.Int64, eager=True)
        results = pl.DataFrame({"key": _pair_keys(topics, hashes), "document": documents, "row": rows})
        found = results.join(self._table, on="key", how="inner", maintain_order="left")
        # Two documents may have one hash; with the same document, the same key means the same topic.
        same = (found["document"] == found["doc_id"]).to_numpy()
        return found["row"].to_numpy()[same], found["relevance"].to_numpy()[same].astype(np.int64)


def _pair_keys(topics: NDArray[np.int32], hashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """One number for a topic and a document: the same for the same two, another for another topic."""
    return hashes ^ (topics.astype(np.uint64) * SPREAD)


class GradeList(GradeTable):
    """Judgments by number, the highest grade first, such as those of several draws; for scoring alone."""

    def __init__(self, topic: Ints, relevance: Ints, topics: int) -> None:
        self.topics = ("",) * topics
        self.topic = topic.astype(np.int32)
        self.relevance = relevance
        self._made = {}

    @classmethod
    def sorted(cls, topic: Ints, relevance: Ints, topics: int) -> GradeList:
        """From judgments in any order."""
        top, low = int(relevance.max(initial=0)), int(relevance.min(initial=0))
        # Sorting one number is several times as fast as sorting places by two.
        topic, below = np.divmod(np.sort(topic * (top - low + 1) + (top - relevance)), top - low + 1)
        return cls(topic, top - below, topics)

    def best_first(self, gains: Floats) -> Ints:
        lower = (np.diff(gains) <= 0) | (np.diff(self.topic) > 0)
        return np.arange(len(gains)) if lower.all() else super().best_first(gains)


class Hits(NamedTuple):
    """The judged documents among the results, by topic and rank.

    `topic` (the topic's number), `rank` (from 0) and `relevance` (the grade) have the shape (hits,), `results` (how
    many results are scored) has the shape (topics,).
    """

    topic: Ints
    rank: Ints
    relevance: Ints
    results: Ints

    def judged_only(self) -> Hits:
        """The hits as if results that are not judged, or with a negative grade, were not there."""
        kept = self.relevance >= 0
        topic, relevance = self.topic[kept], self.relevance[kept]
        results = np.bincount(topic, minlength=len(self.results))
        return Hits(topic, _positions(results)[: len(topic)], relevance, results)


class Ranking:
    """The results of whole topics, in the order of the run, and what is found out about them.

    Args:
        frame: columns topic_id, doc_id, and score or rank, whichever the ties need; equal topics stand together.
        judgments: those that the run is scored by.
        starts: where each topic begins, if that is known.
    """

    def __init__(self, frame: pl.DataFrame, judgments: GradeTable, starts: Ints | None = None) -> None:
        starts = topic_starts(frame["topic_id"]) if starts is None else starts
        numbers = judgments.numbers(frame["topic_id"].gather(starts))
        lengths = np.diff(np.append(starts, len(frame)))
        known = numbers >= 0
        #: How many topics have no judgments.
        self.unknown = int(np.count_nonzero(~known))
        self._unknown_repeats = False
        if self.unknown:
            scored = pl.Series(np.repeat(known, lengths))
            others = frame.filter(~scored)
            self._unknown_repeats = repeated_pair(others["topic_id"], others["doc_id"]) is not None
            frame = frame.filter(scored)
        self.numbers, self._lengths = numbers[known], lengths[known]
        self._frame = frame
        self._judgments = judgments
        self._starts: Ints = np.cumsum(self._lengths) - self._lengths
        self._hashes: NDArray[np.uint64] = frame["doc_id"].hash().to_numpy()

    def hits(self, ties: tuple[Ties, ...], depth: int | None) -> tuple[Hits, ...]:
        """Where the judged documents stand, by tie policy."""
        rows = self._judgments.likely(self._hashes)
        numbers = self.numbers[self._stretch(rows)]
        found, relevance = self._judgments.find(numbers, self._frame["doc_id"].gather(rows), self._hashes[rows])
        rows, topic = rows[found], numbers[found].astype(np.int64)
        results = np.zeros(len(self._judgments.topics), np.int64)
        results[self.numbers] = self._lengths if depth is None else np.minimum(self._lengths, depth)
        hits = []
        for policy in ties:
            ranks = self.ranks(policy, rows)
            kept = slice(None) if depth is None else ranks < depth
            hits.append(Hits(topic[kept], ranks[kept], relevance[kept], results))
        return tuple(hits)

    def ranks(self, ties: Ties, wanted: Ints) -> Ints:
        """The ranks of some results within their topics, from 0.

        Args:
            wanted: the places of the results in the run, shape (n,).
        """
        keys, descending = self._keys(ties)
        inside = np.ones(max(0, len(keys) - 1), np.bool_)
        inside[self._starts[1:] - 1] = False
        rising = np.flatnonzero((keys[1:] > keys[:-1]) & inside)
        rows = self._tied(np.flatnonzero((keys[1:] == keys[:-1]) & inside), wanted)
        if len(rising):
            unordered = np.zeros(len(self._starts), np.bool_)
            unordered[self._stretch(rising)] = True
            whole = np.repeat(unordered, self._lengths)
            whole[rows] = True
            rows = np.flatnonzero(whole)
        first: Ints = self._starts[self._stretch(wanted)]
        if not len(rows):
            return wanted - first
        order = rows[_order(self._stretch(rows), keys[rows], self._frame["doc_id"].gather(rows), descending)]
        ranks: Ints = np.arange(len(keys))
        ranks[order] = rows
        return ranks[wanted] - first

    @staticmethod
    def _tied(upper: Ints, wanted: Ints) -> Ints:
        """The rows of the groups of equal keys in which some row is wanted.

        Args:
            upper: the rows that are followed by one of their topic with the same key, ascending.
        """
        if not len(upper):
            return upper
        begins = np.flatnonzero(np.diff(upper, prepend=-2) > 1)
        first, last = upper[begins], upper[np.append(begins[1:], len(upper)) - 1] + 1
        group = np.searchsorted(first, wanted, side="right") - 1
        group = np.unique(group[(group >= 0) & (wanted <= last[group])])
        lengths = last[group] - first[group] + 1
        found: Ints = np.repeat(first[group], lengths) + _positions(lengths)
        return found

    def documents(self, ties: Ties, depth: int | None) -> Iterator[tuple[str, list[str]]]:
        """Each topic's id and its documents, best first."""
        rows = np.arange(len(self._frame))
        order = np.empty(len(rows), np.int64)
        order[np.repeat(self._starts, self._lengths) + self.ranks(ties, rows)] = rows
        documents = self._frame["doc_id"].gather(order)
        for number, start, length in zip(self.numbers, self._starts, self._lengths, strict=True):
            kept = int(length) if depth is None else min(int(length), depth)
            yield self._judgments.topics[number], documents.slice(int(start), kept).to_list()

    def closed(self, equivalence: Equivalence | None, ties: tuple[Ties, ...]) -> dict[Ties, tuple[Ranking, Ties]]:
        """The ranking in which the first document of each group of equivalent ones counts, by tie policy."""
        if equivalence is None:
            return {policy: (self, policy) for policy in ties}
        found: dict[Ties, tuple[Ranking, Ties]] = {}
        for policy in ties:
            rows = np.arange(len(self._frame))
            ranks = self.ranks(policy, rows)
            order = np.empty(len(rows), np.int64)
            order[np.repeat(self._starts, self._lengths) + ranks] = rows
            ordered = self._frame[order].select("topic_id", "doc_id", pl.Series("rank", ranks[order] + 1))
            found[policy] = Ranking(equivalence.ranked(ordered), self._judgments), "rank"
        return found

    def repeats(self) -> bool:
        """Whether a document occurs twice for a topic."""
        if self._unknown_repeats:
            return True
        # Half of a hash is enough for a first look. Topics of one length are sorted each for itself, which is faster.
        keys = (self._hashes >> _HALF).astype(np.uint32)
        if len(self._lengths) and np.all(self._lengths == self._lengths[0]):
            keys = np.sort(keys.reshape(len(self._lengths), -1), axis=1)
        else:
            salts = np.arange(len(self._starts), dtype=np.uint32) * SPREAD.astype(np.uint32)
            keys = np.sort(keys ^ np.repeat(salts, self._lengths))[None]
        if not np.any(keys[:, 1:] == keys[:, :-1]):
            return False
        return repeated_pair(self._frame["topic_id"], self._frame["doc_id"]) is not None

    def _stretch(self, rows: Ints) -> Ints:
        """Which of the topics in the order of the run each row belongs to."""
        found: Ints = np.searchsorted(self._starts, rows, side="right") - 1
        return found

    def _keys(self, ties: Ties) -> tuple[NDArray[np.float64] | NDArray[np.float32] | Ints, bool]:
        """What results are ordered by, higher first, and whether equal ones go by document id descending."""
        if ties == "rank":
            return -self._frame["rank"].to_numpy(), False
        scores = self._frame["score"].to_numpy()
        if ties == "ascending":
            return scores, False
        with np.errstate(over="ignore", under="ignore"):
            return scores.astype(np.float32), True


def topic_starts(topics: pl.Series) -> Ints:
    """Where another topic begins than in the row before, shape (stretches,)."""
    if not len(topics):
        return np.empty(0, np.int64)
    changed = (topics.slice(1) != topics.slice(0, len(topics) - 1)).to_numpy()
    return np.concatenate(([0], np.flatnonzero(changed) + 1))


def on_topics(run: pl.DataFrame, topics: pl.Series) -> pl.DataFrame:
    """The rows of a run on some topics, in their order; each stretch of equal topics is looked for once."""
    starts = topic_starts(run["topic_id"])
    kept = run["topic_id"].gather(starts).is_in(topics.implode())
    if kept.all():
        return run
    return run.filter(pl.Series(np.repeat(kept.to_numpy(), np.diff(np.append(starts, len(run))))))


def has_topics(run: pl.DataFrame, topics: pl.Series) -> bool:
    """Whether a run has results for one of some topics."""
    return bool(run["topic_id"].gather(topic_starts(run["topic_id"])).is_in(topics.implode()).any())


def among_first(run: pl.DataFrame, depth: int) -> pl.Series:
    """Which results have fewer than so many better ones in their topic by score, as trec_eval reads it: in 32 bits."""
    score = run["score"].cast(pl.Float32)
    starts, values = topic_starts(run["topic_id"]), score.to_numpy()
    lengths = np.diff(np.append(starts, len(run)))
    falling = np.diff(values) <= 0
    falling[starts[1:] - 1] = True
    if not falling.all() or run["topic_id"].gather(starts).n_unique() < len(starts):
        ranks = pl.col("score").rank("min", descending=True).over("topic_id")
        return run.select("topic_id", score).select(ranks <= depth).to_series()
    least = values[starts + np.minimum(lengths, depth) - 1]
    return pl.Series(values >= np.repeat(least, lengths))


def whole_topics(frames: Iterator[pl.DataFrame]) -> Iterator[tuple[pl.DataFrame, Ints] | None]:
    """The rows of a run, cut anew between topics, and where each topic begins; None where a topic comes back."""
    held = next(frames, None)
    seen: set[str] = set()
    # The last topic of a block may go on in the next one; most runs are one block.
    while held is not None:
        following = next(frames, None)
        starts = topic_starts(held["topic_id"])
        names = held["topic_id"].gather(starts).to_list()
        if len(set(names)) < len(names) or not seen.isdisjoint(names):
            yield None
            return
        if following is None:
            yield held, starts
            return
        seen.update(names[:-1])
        last = int(starts[-1])
        if last:
            yield held.slice(0, last), starts[:-1]
        held = pl.concat([held.slice(last), following])


def grouped(frame: pl.DataFrame) -> pl.DataFrame:
    """The rows with equal topics together, the topics and their rows in the order in which they come."""
    starts = topic_starts(frame["topic_id"])
    if len(starts) == frame["topic_id"].gather(starts).n_unique():
        return frame
    numbered = frame.with_row_index("row").with_columns(pl.col("row").first().over("topic_id"))
    return numbered.sort("row", maintain_order=True).drop("row")


def joined(parts: list[Hits], topics: int) -> Hits:
    """The hits of parts of a run that have no topic in common, by topic and rank."""
    if not parts:
        empty = np.empty(0, np.int64)
        return Hits(empty, empty, empty, np.zeros(topics, np.int64))
    topic, rank, relevance = (np.concatenate([part[field] for part in parts]) for field in range(3))
    # Most runs have their topics in the order of the judgments, so that this is sorted already.
    order = np.argsort(topic * (rank.max(initial=0) + 1) + rank, kind="stable")
    return Hits(topic[order], rank[order], relevance[order], np.sum([part.results for part in parts], axis=0))


def _order(
    topic: Ints, keys: NDArray[np.float64] | NDArray[np.float32] | Ints, documents: pl.Series, descending: bool
) -> Ints:
    """The order of rows by topic, key descending, and document."""
    # Most runs are out of order among equal scores alone.
    falling = bool(np.all((keys[1:] <= keys[:-1]) | (topic[1:] != topic[:-1])))
    order = np.arange(len(keys)) if falling else np.lexsort((-keys, topic))
    same = (keys[order][1:] == keys[order][:-1]) & (topic[order][1:] == topic[order][:-1])
    if not same.any():
        return order
    member = np.append(same, False) | np.insert(same, 0, False)
    group = np.cumsum(np.insert(~same, 0, True))[member]
    tied = pl.DataFrame({"group": group, "document": documents.gather(order[member]), "row": order[member]})
    order[member] = tied.sort("group", "document", descending=[False, descending])["row"].to_numpy()
    return order


def _positions(lengths: Ints) -> Ints:
    """0, 1, … within each of consecutive stretches of these lengths."""
    positions: Ints = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return positions
