"""Exact cosine neighbours of a stream: every pair above a floor, and the top-k of every topic text.

A scan takes blocks of training texts, encodes them, compares them with all topic texts and lets through what may
still belong to the result. Scans compose: a low-precision scan (with a slack for its error) goes before the exact
one, which then encodes only what the first let through.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from truerank.arrays import frame_schema
from truerank.sources.distinct import text_hashes
from truerank.text.normalising import normalise
from truerank.vectors.encoders.base import Encoder, Vectors

#: Opens a stream of distinct texts: (position, query id, text, normalised text).
Rows: TypeAlias = Callable[[], Iterable[tuple[int, str, str, str]]]


class TextBlock(NamedTuple):
    """Distinct texts of one source, in order.

    Attributes:
        number: place among the source's blocks, from 0.
        positions: place of each text among the source's distinct texts, ascending.
        query_ids: id of the first query with this text.
    """

    number: int
    positions: tuple[int, ...]
    query_ids: tuple[str, ...]
    texts: tuple[str, ...]
    normalised: tuple[str, ...]


#: Texts that a pass let through, one row each, with the topic texts (by number) that they were kept for; `probed`
#: is above 0 for pairs that are kept whatever their similarity and says what proposes them; `exact` marks those whose
#: similarity is of full precision.
KEPT_SCHEMA: Final[dict[str, Any]] = {
    "position": pl.Int64,
    "query_id": pl.String,
    "text": pl.String,
    "topic_nos": pl.List(pl.UInt32),
    "similarities": pl.List(pl.Float32),
    "probed": pl.List(pl.UInt8),
    "exact": pl.List(pl.Boolean),
}

#: Pairs of a topic text (by number) and a training text, with their similarity.
PAIR_SCHEMA: Final[dict[str, Any]] = frame_schema(
    "topic_no: UInt32, position: Int64, query_id text: String, similarity: Float32, probed: UInt8, exact: Boolean, "
    "rank: Int32"
)


def empty_pairs() -> pl.DataFrame:
    return pl.DataFrame(schema=PAIR_SCHEMA)


def blocks_of(rows: Iterable[tuple[int, str, str, str]], size: int) -> Iterator[TextBlock]:
    """Cuts a stream of (position, query id, text, normalised text) into blocks of `size`; the last may be shorter."""
    stream, number = iter(rows), 0
    while batch := list(islice(stream, size)):
        yield _block(number, batch)
        number += 1


def _block(number: int, rows: Sequence[tuple[int, str, str, str]]) -> TextBlock:
    # Column by column: zip(*rows) would make an iterator for each row, which takes longer.
    return TextBlock(
        number,
        tuple([row[0] for row in rows]),
        tuple([row[1] for row in rows]),
        tuple([row[2] for row in rows]),
        tuple([row[3] for row in rows]),
    )


#: The columns of `KEPT_SCHEMA` that hold one entry for each pair.
LISTS = ("topic_nos", "similarities", "probed", "exact")

#: Cells of the similarity matrix that are in memory at a time.
_CELLS = 1 << 22
#: Similarities are stored to six decimals; what may be rounded up to a bar is kept.
_ROUNDING = 1e-6


class PairProbe(Protocol):
    """Names pairs that are kept whatever their similarity."""

    def __call__(self, texts: Sequence[str]) -> list[tuple[int, int, int]]:
        """Triples of (place in `texts`, number of the topic text, what proposes the pair: 1 to 255)."""


def rounded(similarities: NDArray[np.floating]) -> Vectors:
    """Similarities as they are stored: six decimals, within [-1, 1], float32."""
    values = np.round(similarities.astype(np.float64), 6)
    return np.clip(values, -1.0, 1.0).astype(np.float32)


#: A low precision is trusted where the error that it shows is at most this share of what is allowed for.
TRUSTED: Final = 0.75


def above_bars(
    coarse: Vectors,
    bars: NDArray[np.floating] | np.floating,
    error: float,
    exact: Callable[[NDArray[np.intp]], Vectors],
) -> NDArray[np.bool_]:
    """Which exact values are above their bars, where coarse ones are known; only those near the bars are asked for.

    Args:
        coarse: shape (values,).
        error: what to allow for in the coarse values; 0 where they are exact. It grows where more is seen.
        exact: gives the exact values in these places.
    """
    above: NDArray[np.bool_] = coarse > bars
    while error:
        near = np.flatnonzero(np.abs(coarse - bars) <= error)
        values = exact(near)
        above[near] = values > np.broadcast_to(bars, coarse.shape)[near]
        largest = float(np.abs(values - coarse[near]).max(initial=0.0))
        error = 0.0 if largest <= TRUSTED * error else wider(error, largest)
    return above


def wider(error: float, shown: float) -> float:
    """The error to allow for once a larger one was seen than `error` is trusted with."""
    return round(2 * max(error, shown), 6)


class Bars:
    """For each topic text, a similarity that a pair must reach to enter the top-k; rises as the stream goes by.

    Holds the k best distinct texts of each topic text seen so far; memory is (topic texts × k × 12 bytes).

    Args:
        top_k: how many neighbours are wanted; 0 for none.
    """

    def __init__(self, topics: int, top_k: int) -> None:
        self._top_k = top_k
        self._similarity = np.full((topics, top_k), -np.inf, np.float32)
        self._hash = np.zeros((topics, top_k), np.uint64)

    @property
    def values(self) -> Vectors:
        """The k-th best similarity of each topic text, shape (topics,); -inf while there are fewer than k."""
        if self._top_k == 0:
            return np.full(len(self._similarity), np.inf, np.float32)
        return self._similarity[:, -1].copy()

    def raise_by(self, kept: pl.DataFrame) -> None:
        """Takes the texts that a block kept (`KEPT_SCHEMA`) into account."""
        if self._top_k == 0 or kept.is_empty():
            return
        texts = [normalise(text) for text in kept["text"].to_list()]
        hashed = kept.select(pl.Series("hash", text_hashes(texts)), "topic_nos", "similarities")
        pairs = hashed.explode(["topic_nos", "similarities"], empty_as_null=False).sort("topic_nos")
        topics, starts = np.unique(pairs["topic_nos"].to_numpy(), return_index=True)
        similarity, hashes = pairs["similarities"].to_numpy(), pairs["hash"].to_numpy()
        ends = np.append(starts[1:], len(similarity))
        for topic, start, end in zip(topics.tolist(), starts.tolist(), ends.tolist(), strict=True):
            fresh = similarity[start:end] > self._similarity[topic, -1]
            if fresh.any():
                self._merge(topic, similarity[start:end][fresh], hashes[start:end][fresh])

    def _merge(self, topic: int, similarity: Vectors, hashes: NDArray[np.uint64]) -> None:
        similarity = np.concatenate([self._similarity[topic], similarity])
        hashes = np.concatenate([self._hash[topic], hashes])
        order = np.lexsort((hashes, -similarity))
        similarity, hashes = similarity[order], hashes[order]
        real = similarity > -np.inf
        _, first = np.unique(hashes[real], return_index=True)
        best = np.sort(first)[: self._top_k]
        self._similarity[topic, : len(best)] = similarity[real][best]
        self._hash[topic, : len(best)] = hashes[real][best]

    def still_in(self, kept: pl.DataFrame, floor: float, error: float) -> pl.DataFrame:
        """The texts of a block that may still belong to the result, with the pairs that they may belong to."""
        needed = np.minimum(np.float32(floor - error), self.values)
        pairs = kept.explode(LISTS, empty_as_null=False)
        enough = pairs["similarities"].to_numpy() >= needed[pairs["topic_nos"].to_numpy()]
        return grouped(pairs.filter(pl.Series(enough) | (pairs["probed"] > 0)))


def grouped(pairs: pl.DataFrame) -> pl.DataFrame:
    """Pairs, one row each, as one row for each text (`KEPT_SCHEMA`)."""
    return pairs.group_by("position", "query_id", "text", maintain_order=True).agg(LISTS)


@dataclass(frozen=True)
class ScanTask:
    """One pass over blocks of training texts.

    Args:
        open_encoder: opens the encoder; must be picklable.
        topic_vectors: unit vectors of the topic texts, shape (topics, dimension).
        floor: pairs with a similarity of at least this are kept.
        top_k: so many nearest texts of each topic text are kept.
        error: largest difference between this pass's similarities and the exact ones at the floor; 0 if it is exact.
        probe: names further pairs to keep.
        device: where the encoder runs.
    """

    open_encoder: Callable[[], Encoder]
    topic_vectors: Vectors
    floor: float
    top_k: int
    error: float = 0.0
    probe: PairProbe | None = None
    device: str | None = None

    def open(self) -> Callable[[TextBlock], pl.DataFrame]:
        """Opens the encoder and returns the scan of one block: what it keeps, as in `KEPT_SCHEMA`."""
        encoder = self.open_encoder()

        def scan(block: TextBlock) -> pl.DataFrame:
            with ThreadPoolExecutor(1) as beside:
                # The encoder leaves Python to others while it computes.
                probed = None if self.probe is None else beside.submit(self.probe, block.normalised)
                vectors = encoder.encode(block.normalised)
                return keep(block, vectors, self, [] if probed is None else probed.result())

        return scan


def keep(block: TextBlock, vectors: Vectors, task: ScanTask, extra: Sequence[tuple[int, int, int]]) -> pl.DataFrame:
    """The texts of a block that may belong to the result, with the topic texts they may belong to.

    Args:
        vectors: their unit vectors, shape (texts, dimension).
        extra: what the probe names.
    """
    topics, places, similarities = _pairs_above(vectors, task)
    probed = np.zeros(len(topics), np.uint8)
    if extra:
        at, of, what = (np.array(side, np.intp) for side in zip(*extra, strict=True))
        values = rounded(np.einsum("ij,ij->i", vectors[at], task.topic_vectors[of]))
        topics, places = np.concatenate([of, topics]), np.concatenate([at, places])
        similarities = np.concatenate([values, similarities])
        probed = np.concatenate([what.astype(np.uint8), probed])
    order = np.lexsort((-probed.astype(np.int16), topics, places))
    pairs = pl.DataFrame(
        {
            "place": places[order],
            "topic_nos": topics[order].astype(np.uint32),
            "similarities": similarities[order],
            "probed": probed[order],
            "exact": np.full(len(order), task.error == 0),
        }
    ).unique(["place", "topic_nos"], keep="first", maintain_order=True)
    by_text = pairs.group_by("place", maintain_order=True).agg(LISTS)
    kept = by_text["place"].to_numpy()
    return pl.DataFrame(
        {
            "position": np.asarray(block.positions, np.int64)[kept],
            "query_id": [block.query_ids[place] for place in kept],
            "text": [block.texts[place] for place in kept],
            **{name: by_text[name] for name in LISTS},
        },
        schema=KEPT_SCHEMA,
    )


def _pairs_above(vectors: Vectors, task: ScanTask) -> tuple[NDArray[np.intp], NDArray[np.intp], Vectors]:
    """Numbers of the topic texts, places of the texts, similarities: all that reach floor or top-k within the block."""
    count = len(vectors)
    step = max(1, _CELLS // max(1, count))
    topics: list[NDArray[np.intp]] = []
    places: list[NDArray[np.intp]] = []
    values: list[Vectors] = []
    for start in range(0, len(task.topic_vectors), step):
        similarities = task.topic_vectors[start : start + step] @ vectors.T
        bars = np.full(len(similarities), task.floor - task.error - _ROUNDING)
        if task.top_k:
            # A text below the k best of its own block cannot be among the k best of all.
            kth = (
                np.partition(similarities, count - task.top_k, axis=1)[:, count - task.top_k]
                if count > task.top_k
                else -2.0
            )
            bars = np.minimum(bars, kth - _ROUNDING)
        rows, columns = np.nonzero(similarities >= bars[:, None].astype(np.float32))
        topics.append(rows + start)
        places.append(columns)
        values.append(rounded(similarities[rows, columns]))
    return np.concatenate(topics), np.concatenate(places), np.concatenate(values)


def select(kept: pl.DataFrame, floor: float, top_k: int) -> pl.DataFrame:
    """The result of an exact scan of one source: pairs above the floor, the top-k of every topic text, probed pairs.

    Pairs are ordered by topic text, then similarity (falling), then query id; of texts that are the same after
    normalising, the first stays.
    """
    normalised = pl.Series("normalised", [normalise(text) for text in kept["text"].to_list()], dtype=pl.String)
    pairs = (
        kept.with_columns(normalised)
        .explode(LISTS, empty_as_null=False)
        .rename({"topic_nos": "topic_no", "similarities": "similarity"})
        .sort("topic_no", "position")
        .unique(["topic_no", "normalised"], keep="first", maintain_order=True)
        .sort(["topic_no", "similarity", "query_id"], descending=[False, True, False])
        .with_columns(rank=pl.int_range(1, pl.len() + 1, dtype=pl.Int32).over("topic_no"))
    )
    wanted = (pl.col("similarity") > pl.lit(floor, pl.Float32)) | (pl.col("rank") <= top_k) | (pl.col("probed") > 0)
    return pairs.filter(wanted).select(list(PAIR_SCHEMA)).cast(pl.Schema(PAIR_SCHEMA))
