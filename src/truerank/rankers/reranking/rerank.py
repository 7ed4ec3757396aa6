"""Reranking: a run of any first stage in, the same documents in a ranker's order out."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import polars as pl

from truerank.errors import InputError
from truerank.lexical.searching import topic_queries
from truerank.rankers.base import Pair, Ranker, RankerSpec
from truerank.rankers.reranking.agreement import agreement, calibrated
from truerank.rankers.reranking.document_texts import DocumentTexts
from truerank.rankers.reranking.reranked import BLOCK_SCHEMA, Reranked, merged
from truerank.rankers.reranking.score_cache import CachedScores, ScoreCache
from truerank.sources import compressed, grammar
from truerank.sources.documents import open_documents
from truerank.sources.runs import read_run_frame
from truerank.text.normalising import normalise
from truerank.text.passages import Policy, joined, policy_named
from truerank.work.artifacts import digest
from truerank.work.blocks import BlockStore, run_blocks
from truerank.work.engines import Engine, LocalEngine
from truerank.work.jobs import Job
from truerank.work.progress import Progress, Quiet

__all__ = ["Aggregation", "rerank"]

Aggregation = Literal["first", "max"]

#: Documents in a block: small enough that little is lost when killed, large enough for full batches.
_BLOCK: Final = 1024


def rerank(
    run: str | Path,
    ranker: Ranker | RankerSpec | str,
    topics: str,
    docs: str,
    *,
    depth: int = 100,
    passages: Aggregation = "first",
    policy: str | None = None,
    cut: bool = False,
    topic_field: str = "title",
    cache: str | Path | None = None,
    tag: str | None = None,
    work: str | Path | None = None,
    engine: Engine | None = None,
    progress: Progress | None = None,
) -> Reranked:
    """Orders the first documents of each topic by a ranker.

    Args:
        run: a TREC run of any first stage; its order is by score, ties by document id ascending.
        ranker: the ranker, how to open it, or its name (see `rankers.base.open_ranker`).
        topics: a source of topics, see `sources.read_topics`.
        docs: a collection, see `sources.open_documents`.
        depth: how many documents of each topic are reranked.
        passages: a document's score is that of its first passage, or the largest of all its passages.
        policy: how documents are cut, see `text.passages.policy_named`; None for "whole" with "first", and
            "sliding:150:75" with "max".
        cut: leave out what was not reranked, instead of keeping it below in the order of the first stage.
        topic_field: "title", "description", "narrative", or several joined by "+".
        cache: the file of a `ScoreCache`.
        tag: the last column of the run; None for the ranker's name.
        work: a folder for unfinished work; what is there from the same job is not done again, and the folder is
            removed at the end. None works in a temporary folder.
        engine: what runs the blocks; None for this process.
        progress: is told how many documents are reranked.

    Returns:
        The run: documents with equal scores stand in the ascending order of their ids.

    Raises:
        InputError: a fault in run, topics or documents; none of the run's topics has a text, or none of its documents
            is in the collection; a depth below 1; an unknown policy.
        MissingExtraError: what runs the ranker is not installed.
    """
    if depth < 1:
        raise InputError(f"the depth is {depth}", "give 1 or more", where="--depth")
    if passages not in ("first", "max"):
        raise InputError(f"no aggregation '{passages}'", "choose first or max", where="--passages")
    told = progress or Quiet()
    chosen = policy_named(policy or ("whole" if passages == "first" else "sliding:150:75"))
    first = _first_stage(run)
    queries = {query.topic_id: query.text for query in topic_queries(topics, topic_field) if normalise(query.text)}
    known = pl.col("topic_id").is_in(list(queries))
    candidates = first.filter(known & (pl.col("place") < depth)).select("topic_id", "doc_id", "place")
    if candidates.is_empty():
        fault = f"none of the run's topics has a {topic_field} in {grammar.parse(topics).name}"
        raise InputError(fault, "give the topics of this run, or another --field", where=run)
    collection = open_documents(docs)
    about = {
        "run": {"name": grammar.parse(str(run)).name, "fingerprint": compressed.fingerprint(Path(run))},
        "topics": {"name": grammar.parse(topics).name, "field": topic_field, "fingerprint": digest(queries)},
        "documents": {"name": collection.name, "fingerprint": collection.fingerprint},
        "depth": depth,
        "passages": passages,
        "policy": chosen.name,
        "cut": cut,
    }
    with _folder(work, about) as folder:
        texts = folder / "documents.sqlite"
        DocumentTexts.collect(texts, docs, frozenset(candidates["doc_id"].unique().to_list()), told)
        blocks = _Blocks(candidates, queries)
        spec = RankerSpec(ranker) if isinstance(ranker, str) else ranker
        if isinstance(spec, RankerSpec):
            sample = partial(_sample, blocks, DocumentTexts(texts), chosen)
            spec = calibrated(spec, sample)
        opened = spec.open() if isinstance(spec, RankerSpec) else spec
        about = {"ranker": {"name": opened.name, "fingerprint": opened.fingerprint}, **about}
        local = engine is None or isinstance(engine, LocalEngine)
        task = _Task(opened if local else spec, texts, chosen, passages, cache)
        # Another ranker's blocks are others, so that options may change between two attempts.
        job = Job(folder / opened.fingerprint[:16], engine or LocalEngine(), told)
        found, missing = _reranked(task, candidates, blocks, job)
        agreed = agreement(spec, opened, sample) if isinstance(spec, RankerSpec) else {}
    if len(missing) == candidates["doc_id"].n_unique():
        fault = f"none of the run's {len(missing)} documents is in {collection.name}"
        raise InputError(fault, "give the collection of this run", where=docs)
    lacking = tuple(first.filter(~known)["topic_id"].unique(maintain_order=True).to_list())
    name = tag or "-".join(opened.name.split())
    made = merged(first, found, cut=cut, tag=name)
    return Reranked(made, about, missing, lacking, _sums(found), name, agreed)


class _Block(NamedTuple):
    """The candidates of some topics."""

    number: int
    topic_ids: list[str]
    queries: list[str]
    doc_ids: list[str]


@dataclass(frozen=True)
class _Task:
    """Scores blocks; picklable where the ranker is a spec."""

    ranker: Ranker | RankerSpec
    texts: Path
    policy: Policy
    aggregation: Aggregation
    cache: str | Path | None

    def open(self) -> Callable[[_Block], pl.DataFrame]:
        """Opens ranker, cache and texts."""
        ranker = self.ranker.open() if isinstance(self.ranker, RankerSpec) else self.ranker
        scores = CachedScores(ranker, None if self.cache is None else ScoreCache(self.cache))
        texts = DocumentTexts(self.texts)

        def work(block: _Block) -> pl.DataFrame:
            asked, hits = scores.asked, scores.hits
            found = self._scored(block, texts, scores)
            counts = {"block": block.number, "asked": scores.asked - asked, "hits": scores.hits - hits}
            return found.with_columns(**{name: pl.lit(count) for name, count in counts.items()}).cast(
                pl.Schema(BLOCK_SCHEMA)
            )

        return work

    def _scored(self, block: _Block, texts: DocumentTexts, scores: CachedScores) -> pl.DataFrame:
        held = texts.texts(block.doc_ids)
        cut = {doc_id: self._cut(*text) for doc_id, text in held.items()}
        rows = [number for number, doc_id in enumerate(block.doc_ids) if doc_id in held]
        pairs = [Pair(block.queries[number], passage) for number in rows for passage in cut[block.doc_ids[number]]]
        sizes = np.fromiter((len(cut[block.doc_ids[number]]) for number in rows), np.int64, len(rows))
        values = scores.score(pairs)
        starts = np.cumsum(sizes) - sizes
        best = np.maximum.reduceat(values, starts) if rows else values
        return pl.DataFrame(
            {
                "topic_id": [block.topic_ids[number] for number in rows],
                "doc_id": [block.doc_ids[number] for number in rows],
                "score": best.astype(np.float64),
                "passages": sizes,
            }
        )

    def _cut(self, title: str, body: str) -> tuple[str, ...]:
        passages = self.policy.cut(joined(title, body))
        # A policy cuts as it is asked: the first passage does not cost the others.
        return (next(passages),) if self.aggregation == "first" else tuple(passages)


class _Blocks:
    """Candidates in blocks of whole topics."""

    def __init__(self, candidates: pl.DataFrame, queries: dict[str, str]) -> None:
        self._parts = candidates.partition_by("topic_id", maintain_order=True)
        self._queries = queries
        self.size = len(candidates)

    def __iter__(self) -> Iterator[_Block]:
        number, held = 0, _Block(0, [], [], [])
        for part in self._parts:
            if held.doc_ids and len(held.doc_ids) + len(part) > _BLOCK:
                yield held
                number, held = number + 1, _Block(number + 1, [], [], [])
            topic = part["topic_id"][0]
            held.topic_ids.extend([topic] * len(part))
            held.queries.extend([self._queries[topic]] * len(part))
            held.doc_ids.extend(part["doc_id"].to_list())
        yield held


def _reranked(task: _Task, candidates: pl.DataFrame, blocks: _Blocks, job: Job) -> tuple[pl.DataFrame, tuple[str, ...]]:
    store = BlockStore(job.folder / "blocks")
    job.progress.start("reranking", len(candidates))

    def settle(frame: pl.DataFrame) -> pl.DataFrame:
        job.progress.advance(len(frame))
        return frame

    count = run_blocks(task, blocks, store, job.engine, settle)
    found = pl.concat([store.load(number) for number in range(count)])
    there = set(DocumentTexts(task.texts).ids())
    missing = sorted(set(candidates["doc_id"].to_list()) - there)
    return found, tuple(missing)


def _sample(blocks: _Blocks, texts: DocumentTexts, policy: Policy, size: int) -> list[Pair]:
    """First passages of candidates at even distances, as they will be scored."""
    step = max(1, blocks.size // size)
    chosen = [(query, doc_id) for block in blocks for query, doc_id in zip(block.queries, block.doc_ids, strict=True)][
        ::step
    ][:size]
    held = texts.texts([doc_id for _, doc_id in chosen])
    return [Pair(query, next(policy.cut(joined(*held[doc_id])))) for query, doc_id in chosen if doc_id in held]


def _first_stage(run: str | Path) -> pl.DataFrame:
    """The run topic by topic, best first, with each document's place from 0."""
    frame = read_run_frame(run)
    order = pl.DataFrame({"topic_id": frame["topic_id"].unique(maintain_order=True)}).with_row_index("order")
    ordered = frame.join(order, on="topic_id").sort("order", "score", "doc_id", descending=[False, True, False])
    return ordered.with_columns(pl.int_range(pl.len()).over("topic_id").alias("place"))


def _sums(found: pl.DataFrame) -> dict[str, int]:
    blocks = found.unique(["block"])
    return {
        "documents": len(found),
        "passages": int(found["passages"].sum()),
        "asked": int(blocks["asked"].sum()),
        "hits": int(blocks["hits"].sum()),
    }


@contextlib.contextmanager
def _folder(work: str | Path | None, about: dict[str, Any]) -> Iterator[Path]:
    if work is None:
        with tempfile.TemporaryDirectory(prefix="truerank-rerank-") as temporary:
            yield Path(temporary)
        return
    folder = Path(work) / digest(about)[:16]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot be written to ({error.strerror})", "choose another folder", where=work) from error
    yield folder
    shutil.rmtree(work, ignore_errors=True)
