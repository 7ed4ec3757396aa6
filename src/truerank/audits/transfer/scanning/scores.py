"""Scores of judged documents in every version: passages, first and best, in blocks that are saved as they finish."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl

from truerank.arrays import frame_schema
from truerank.rankers.base import Pair, Ranker, RankerSpec, device_of_ranker
from truerank.rankers.reranking.document_texts import DocumentTexts
from truerank.rankers.reranking.score_cache import CachedScores, counted_scores
from truerank.text.passages import Policy, joined
from truerank.work.blocks import BlockStore, run_blocks
from truerank.work.jobs import Job

#: One row per judged document and version it was found in: the row of the judged document, the place of the version,
#: passages, the place of the best one, and the scores of the first and the best.
SCORE_SCHEMA: Final[dict[str, Any]] = frame_schema(
    "row: UInt32, version: UInt8, passages best: UInt32, first max: Float64, block: UInt32, asked hits: Int64"
)


def id_column(version: str) -> str:
    """The column of a frame of rows that holds the documents' ids in a version."""
    return f"id:{version}"


@dataclass(frozen=True)
class RowScoring:
    """What scores rows; picklable where the ranker is a spec.

    Attributes:
        ranker: the ranker, or how to open it.
        texts: the files of `DocumentTexts` by version.
        cache: the file of a `ScoreCache`, or None.
    """

    ranker: Ranker | RankerSpec
    texts: Mapping[str, Path]
    policy: Policy
    cache: str | None

    @property
    def device(self) -> str | None:
        """Where the ranker runs."""
        return device_of_ranker(self.ranker)

    def _passages(self, block: _Block) -> Iterator[tuple[list[str | None], dict[str, tuple[str, ...]]]]:
        """By version: the documents' ids, and the passages of those that are there."""
        for version, doc_ids in block.ids.items():
            held = DocumentTexts(self.texts[version]).texts([doc_id for doc_id in doc_ids if doc_id is not None])
            yield doc_ids, {doc_id: tuple(self.policy.cut(joined(*text))) for doc_id, text in held.items()}

    def open(self) -> Callable[[_Block], pl.DataFrame]:
        """Opens ranker, cache and texts."""
        return counted_scores(self.ranker, self.cache, self._scored, SCORE_SCHEMA)

    def _scored(self, block: _Block, scores: CachedScores) -> pl.DataFrame:
        pairs: list[Pair] = []
        rows: list[tuple[int, int, int]] = []
        for place, (doc_ids, cut) in enumerate(self._passages(block)):
            for row, query, doc_id in zip(block.rows, block.queries, doc_ids, strict=True):
                if doc_id in cut:
                    pairs += [Pair(query, passage) for passage in cut[doc_id]]
                    rows.append((row, place, len(cut[doc_id])))
        values = scores.score(pairs).astype(np.float64)
        ends = np.cumsum([size for *_, size in rows])
        parts = [values[end - size : end] for end, (*_, size) in zip(ends, rows, strict=True)]
        found = [
            (*row, int(part.argmax()), float(part[0]), float(part.max())) for row, part in zip(rows, parts, strict=True)
        ]
        return pl.DataFrame(found, schema=dict(list(SCORE_SCHEMA.items())[:6]), orient="row")


class _Block(NamedTuple):
    """Some rows: their numbers, the queries, and the documents' ids by version."""

    number: int
    rows: list[int]
    queries: list[str]
    ids: dict[str, list[str | None]]


def score_rows(rows: pl.DataFrame, scoring: RowScoring, job: Job, block_size: int) -> pl.DataFrame:
    """Scores all rows in all versions."""
    store = BlockStore(job.folder / "blocks")
    job.progress.start("scoring", len(rows))
    versions = list(scoring.texts)

    def settle(frame: pl.DataFrame) -> pl.DataFrame:
        job.progress.advance(frame["row"].n_unique())
        return frame

    count = run_blocks(scoring, _blocks(rows, versions, block_size), store, job.engine, settle)
    parts = [store.load(number) for number in range(count)]
    return pl.concat([pl.DataFrame(schema=SCORE_SCHEMA), *parts]).sort("row", "version")


def _blocks(rows: pl.DataFrame, versions: Sequence[str], size: int) -> Iterator[_Block]:
    for number, part in enumerate(rows.iter_slices(size)):
        ids = {version: part[id_column(version)].to_list() for version in versions}
        yield _Block(number, part["row"].to_list(), part["query"].to_list(), ids)
