"""The non-relevant documents of training rows: of a first stage's best, not judged relevant, drawn by a seed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import polars as pl

from truerank.audits.transfer.matching.versions import Version
from truerank.audits.transfer.scanning.results import Scan
from truerank.errors import OptionError
from truerank.lexical import TopicQuery, analyser_of, kept_index, model_of, search
from truerank.options import Flag, Options, Range
from truerank.rankers.bm25 import Bm25
from truerank.sources.qrels import read_qrels_frame
from truerank.sources.runs import read_run_frame
from truerank.work.progress import Progress


@dataclass(frozen=True)
class NegativeSource(Options):
    """Where non-relevant documents come from.

    Attributes:
        run: a first stage; by default BM25 searches.
        depth: how many of its documents for each topic come into question.
        negatives: the version they are taken from; by default the judged one.
        qrels: all judgments, so that no document judged relevant is taken; by default those of the scan.
    """

    run: Annotated[str | None, Flag(metavar="FILE")] = None
    depth: Annotated[int, Range(at_least=1)] = 100
    negatives: Annotated[str | None, Flag(metavar="NAME")] = None
    qrels: Annotated[str | None, Flag(metavar="SRC")] = None


class NegativeRows(NamedTuple):
    """Rows with a non-relevant document each, the version it is of, BM25 over that version, and what was left out."""

    rows: pl.DataFrame
    version: Version
    bm25: Bm25
    skipped: dict[str, int]


class Negatives:
    """Non-relevant documents: of a first stage's best, not judged relevant, drawn by the seed."""

    def __init__(
        self, scan: Scan, sources: tuple[Version, ...], options: NegativeSource, folder: Path, told: Progress
    ) -> None:
        self._scan, self._options, self._folder, self._told = scan, options, folder, told
        name = options.negatives or scan.versions[0]
        by_name = {version.name: version for version in sources}
        if name not in by_name:
            raise OptionError("negatives", f"no version '{name}'", f"there are {', '.join(by_name)}")
        self._version, self._judged = by_name[name], sources[0]
        self._by_topic: dict[str, list[tuple[str, int]]] | None = None

    def draw(self, rows: pl.DataFrame, seed: int) -> NegativeRows:
        """The rows with columns nonrelevant_id and place (in the first stage), without those that have none.

        The first stage is searched once: other draws have the same topics.
        """
        index = self._folder / f"index-{self._version.name}"
        kept_index(self._version.source.spec.spec, index, analyser_of("anserini"), self._told)
        if self._by_topic is None:
            self._by_topic = {
                str(key[0]): list(zip(part["doc_id"].to_list(), part["place"].to_list(), strict=True))
                for key, part in self._pool(rows, index).group_by("topic_id", maintain_order=True)
            }
        by_topic = self._by_topic
        draw = np.random.default_rng([seed, 1])
        found: list[tuple[str | None, int | None]] = []
        for topic in rows["topic_id"].to_list():
            # Drawn also where there is none, so that the others do not depend on it.
            number = draw.random()
            own = by_topic.get(topic)
            found.append(own[int(number * len(own))] if own else (None, None))
        drawn = rows.with_columns(
            pl.Series("nonrelevant_id", [doc for doc, _ in found], pl.String),
            pl.Series("place", [place for _, place in found], pl.Int64),
        )
        kept = drawn.drop_nulls("nonrelevant_id")
        lacking = len(drawn) - len(kept)
        skipped = {"the first stage has no non-relevant document": lacking} if lacking else {}
        return NegativeRows(kept, self._version, Bm25.open(str(index)), skipped)

    def _pool(self, rows: pl.DataFrame, index: Path) -> pl.DataFrame:
        topics = rows.unique("topic_id", maintain_order=True)
        if self._options.run is None:
            asked = [TopicQuery(topic, query) for topic, query in topics.select("topic_id", "query").iter_rows()]
            asked.sort()
            run = search(index, asked, model_of("anserini", "bm25", {}), k=self._options.depth, progress=self._told).run
        else:
            run = read_run_frame(self._options.run).join(topics, on="topic_id", how="semi", maintain_order="left")
        run = run.sort("topic_id", "score", "doc_id", descending=[False, True, False])
        run = run.with_columns(pl.int_range(1, pl.len() + 1).over("topic_id").alias("place"))
        run = run.filter(pl.col("place") <= self._options.depth)
        return run.join(self._relevant(), on=["topic_id", "doc_id"], how="anti", maintain_order="left").select(
            "topic_id", "doc_id", pl.col("place").cast(pl.Int64)
        )

    def _relevant(self) -> pl.DataFrame:
        """What is judged relevant, by the ids of the version that negatives are taken from."""
        own = self._scan.scores.filter(pl.col("version") == self._version.name)
        known = own.select("topic_id", pl.col("version_doc_id").alias("doc_id"))
        if self._options.qrels is None:
            return known.unique()
        judged = read_qrels_frame(self._options.qrels).filter(pl.col("relevance") > 0)
        ids = own.select(pl.col("doc_id").alias("judged"), "version_doc_id").unique()
        named = judged.join(ids, left_on="doc_id", right_on="judged", how="left")
        doc_id = pl.coalesce("version_doc_id", "doc_id").alias("doc_id")
        return pl.concat([known, named.select("topic_id", doc_id)]).unique()
