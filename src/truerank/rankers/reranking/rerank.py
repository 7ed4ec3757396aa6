"""Reranking: a run of any first stage in, the same documents in a ranker's order out."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, NamedTuple

import numpy as np
import polars as pl

from truerank.arrays import frame_schema
from truerank.core.plain import picked
from truerank.core.result import Result, Summary, place_note, summarises
from truerank.core.tables import Column, Table
from truerank.errors import InputError
from truerank.lexical.searching import topic_queries, write_run
from truerank.options import Flag, Options, OutFile, Range, Runtime, Source, command
from truerank.rankers.base import DECIMALS, Pair, Ranker, RankerSpec, device_of_ranker, placed, spec_of
from truerank.rankers.reranking.document_texts import DocumentTexts
from truerank.rankers.reranking.score_cache import CachedScores, counted_scores
from truerank.records import Input
from truerank.sources import compressed, grammar
from truerank.sources.documents import open_documents
from truerank.sources.inputs import inputs_of
from truerank.sources.runs import RUN_SCHEMA, read_run_frame
from truerank.text.normalising import normalise
from truerank.text.passages import Policy, joined, policy_named
from truerank.text.printable import first_few
from truerank.work.artifacts import digest
from truerank.work.blocks import BlockStore, run_blocks
from truerank.work.engines import Engine, LocalEngine
from truerank.work.jobs import Job
from truerank.work.progress import Progress, Quiet
from truerank.work.runs import run as started

__all__ = ["Aggregation", "RerankOptions", "rerank"]

#: The scores of a block of candidates; its number, and how many pairs it asked for, are in each row.
BLOCK_SCHEMA: Final[dict[str, Any]] = frame_schema(
    "topic_id doc_id: String, score: Float64, passages block asked hits: Int64"
)


#: Ids that a table names; the JSON has all.
_NAMED: Final = 5


@dataclass(frozen=True, eq=False, repr=False)
class Reranked(Result, shown_in="truerank.rankers.reranking.rerank"):
    """A reranked run, and what was scored how.

    Attributes:
        run: rows as in `sources.runs.RUN_SCHEMA`, topic by topic, best first.
        about: ranker, run, topics, documents, and the options that decide the result.
        missing: ids of candidates that the collection lacks; they stand below what was reranked.
        no_text: topics of the run that have no text; they are left in the order of the first stage.
        counts: documents reranked, passages scored, distinct pairs asked for, and those that the cache knew.
        tag: the name of the run.
        out: the file that it was written to.
    """

    run: pl.DataFrame
    about: Mapping[str, Any]
    missing: tuple[str, ...]
    no_text: tuple[str, ...]
    counts: Mapping[str, int]
    tag: str
    out: Path | None = None

    def json(self) -> dict[str, Any]:
        return {
            "tag": self.tag,
            **self.about,
            "rows": len(self.run),
            **picked(self, "counts, missing, no_text"),
            "ties": f"scores with {DECIMALS} decimals, equal ones by document id ascending",
        }


def merged(first: pl.DataFrame, found: pl.DataFrame, *, cut: bool, tag: str) -> pl.DataFrame:
    """The reranked documents, and below them the others in the order of the first stage."""
    scored = found.select("topic_id", "doc_id", pl.col("score").alias("new"))
    joined = first.join(scored, on=["topic_id", "doc_id"], how="left", maintain_order="left").with_columns(
        pl.col("topic_id").rle_id().alias("topic"), pl.col("new").is_null().alias("below")
    )
    if cut:
        joined = joined.filter(~pl.col("below") | pl.col("below").all().over("topic"))
    # The places of documents that were reranked do not count: among them equal scores go by the id.
    joined = joined.with_columns(pl.when("below").then("place").alias("place")).sort(
        "topic", "below", "new", "place", "doc_id", descending=[False, False, True, False, False], nulls_last=True
    )
    lowest = pl.col("new").min().over("topic").fill_null(0.0)
    further = pl.col("below").cum_sum().over("topic")
    return joined.select(
        "topic_id",
        "doc_id",
        pl.int_range(1, pl.len() + 1).over("topic").alias("rank"),
        pl.when("below").then(lowest - further).otherwise("new").round(DECIMALS).alias("score"),
        pl.lit(tag).alias("tag"),
    ).cast(pl.Schema(RUN_SCHEMA))


Aggregation = Literal["first", "max"]

#: Documents in a block: small enough that little is lost when killed, large enough for full batches.
_BLOCK: Final = 1024
_PACKAGES: Final = ("torch", "transformers")


@dataclass(frozen=True)
class RerankOptions(Options):
    """What is reranked, and how documents are read.

    Attributes:
        depth: how many documents of each topic are reranked.
        passages: a document's score is that of its first passage, or the largest of all its passages.
        split: how documents are cut into passages; by default whole with first, sliding:150:75 with max.
        cut: leave out documents that were not reranked.
        field: of the topics: title, description, narrative, or several joined by +.
        cache: a file that a file that keeps scores, so that no pair is scored twice.
        tag: last column of the run; by default the model's name.
    """

    depth: Annotated[int, Range(at_least=1)] = 100
    passages: Aggregation = "first"
    split: Annotated[str | None, Flag(metavar="whole|cast2021|cast2022|sliding:WORDS:STRIDE")] = None
    cut: bool = False
    field: str = "title"
    cache: Annotated[str | Path | None, Flag(metavar="FILE", reads=Path)] = None
    tag: str | None = None


@command
def rerank(
    run: Annotated[str | Path, Flag(metavar="FILE", reads=Path)],
    model: Annotated[Ranker | RankerSpec | str, Flag(metavar="NAME|DIR", reads=str)],
    topics: Source,
    docs: Source,
    *,
    probabilities: bool = False,
    set_: Annotated[Mapping[str, Any], Flag(metavar="NAME=VALUE")] = MappingProxyType({}),
    options: RerankOptions = RerankOptions(),
    runtime: Runtime = Runtime(),
    out: OutFile = None,
    engine: Annotated[Engine | None, Flag(hidden=True)] = None,
    progress: Progress | None = None,
) -> Reranked:
    """Reranks the first documents of each topic of a run.

    Kinds: monobert, monot5, ance, colbert (PLACE is a folder or a Hugging Face id), bm25 (PLACE is an index). A kind
    alone opens its usual checkpoint. Documents below the depth stay below, in their order. A job that was killed
    continues
    when it is run again.

    Args:
        run: a TREC run of any first stage; its order is by score, ties by document id ascending.
        model: KIND:PLACE, a saved ranker, a checkpoint, or a kind. In Python also a ranker, or how to open it.
        topics: a path, irds:ID or hf:ORG/NAME.
        docs: documents: a path, irds:ID or hf:ORG/NAME.
        probabilities: of monoT5: write probabilities instead of their logarithms.
        set_: a setting of the model's kind.
        options: what is reranked.
        runtime: what runs the model.
        out: the run, with a manifest beside it; .gz compresses it.
        engine: what runs the blocks; by default this process.
        progress: is told how many documents are reranked.

    Returns:
        The run: documents with equal scores are in the ascending order of their ids.

    Raises:
        InputError: a fault in run, topics or documents; none of the run's topics has a text, or none of its documents
            is in the collection; an unknown way to split.
        MissingExtraError: what runs the ranker is not installed.

    Examples:

        truerank rerank --model monot5 --run bm25.run --topics topics.trec --docs docs.jsonl.gz --out monot5.run

        truerank rerank --model monobert:models/ce --run bm25.run --topics irds:msmarco-document/trec-dl-2019
        --docs irds:msmarco-document --passages max --split cast2022 --cache scores.sqlite --out ce.run
    """
    ranker = model
    if isinstance(model, str):
        ranker = spec_of(model, runtime, {**set_, **({"probabilities": "true"} if probabilities else {})})
    made = partial(
        _made, (run, topics, docs), ranker, options, engine=engine or LocalEngine(), progress=progress or Quiet()
    )
    if out is None:
        with tempfile.TemporaryDirectory(prefix="truerank-rerank-") as temporary:
            return made(folder_of=lambda identity: Path(temporary))
    name = model if isinstance(model, str) else model.name
    # Where scores come from is no property of the result.
    chosen = {"model": name, "set_": set_, "runtime": runtime, "options": replace(options, cache=None)}
    inputs = inputs_of(run=run, topics=topics, docs=docs)
    with started("rerank", inputs, chosen, out, file=True, packages=_PACKAGES) as job:
        found = made(folder_of=job.unfinished)
        about = found.about["ranker"]
        job.read(Input(about["name"], name, "model", None, about["fingerprint"]))
        job.skipped = {"missing": list(found.missing), "no_text": list(found.no_text)}
        write_run(found.run, Path(out))
        job.note(Path(out).name)
    return replace(found, out=Path(out))


def _made(
    sources: tuple[str | Path, str, str],
    ranker: Any,
    options: RerankOptions,
    *,
    engine: Engine,
    progress: Progress,
    folder_of: Callable[[str], Path],
) -> Reranked:
    run, topics, docs = sources
    depth, passages, topic_field = options.depth, options.passages, options.field
    chosen = policy_named(options.split or ("whole" if passages == "first" else "sliding:150:75"))
    frame = read_run_frame(run)
    order = pl.DataFrame({"topic_id": frame["topic_id"].unique(maintain_order=True)}).with_row_index("order")
    ordered = frame.join(order, on="topic_id").sort("order", "score", "doc_id", descending=[False, True, False])
    first = ordered.with_columns(pl.int_range(pl.len()).over("topic_id").alias("place"))
    queries = {query.topic_id: query.text for query in topic_queries(topics, topic_field) if normalise(query.text)}
    known = pl.col("topic_id").is_in(list(queries))
    candidates = first.filter(known & (pl.col("place") < depth)).select("topic_id", "doc_id", "place")
    if candidates.is_empty():
        fault = f"none of the run's topics has a {topic_field} in {grammar.parse(topics).name}"
        raise InputError(fault, "give the topics of this run, or another `field`", where=run)
    collection = open_documents(docs)
    about = {
        "run": {"name": grammar.parse(str(run)).name, "fingerprint": compressed.fingerprint(Path(run))},
        "topics": {"name": grammar.parse(topics).name, "field": topic_field, "fingerprint": digest(queries)},
        "documents": {"name": collection.name, "fingerprint": collection.fingerprint},
        "depth": depth,
        "passages": passages,
        "policy": chosen.name,
        "cut": options.cut,
    }
    folder = folder_of(digest(about))
    texts = folder / "documents.sqlite"
    DocumentTexts.collect(texts, docs, frozenset(candidates["doc_id"].unique().to_list()), progress)
    blocks = _Blocks(candidates, queries)
    opened = ranker.open() if isinstance(ranker, RankerSpec) else ranker
    about = {"ranker": {"name": opened.name, "fingerprint": opened.fingerprint}, **about}
    elsewhere = placed(ranker, opened) if isinstance(ranker, RankerSpec) else ranker
    task = _Task(opened if engine.in_process else elsewhere, texts, chosen, passages, options.cache)
    # Another ranker's blocks are others, so that options may change between two attempts.
    job = Job(folder / opened.fingerprint[:16], engine, progress)
    found, missing = _reranked(task, candidates, blocks, job)
    if len(missing) == candidates["doc_id"].n_unique():
        fault = f"none of the run's {len(missing)} documents is in {collection.name}"
        raise InputError(fault, "give the collection of this run", where=docs)
    lacking = tuple(first.filter(~known)["topic_id"].unique(maintain_order=True).to_list())
    name = options.tag or "-".join(opened.name.split())
    made = merged(first, found, cut=options.cut, tag=name)
    return Reranked(made, about, missing, lacking, _sums(found), name)


class _Block(NamedTuple):
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

    @property
    def device(self) -> str | None:
        return device_of_ranker(self.ranker)

    def open(self) -> Callable[[_Block], pl.DataFrame]:
        scored = partial(self._scored, DocumentTexts(self.texts))
        return counted_scores(self.ranker, self.cache, scored, BLOCK_SCHEMA)

    def _scored(self, texts: DocumentTexts, block: _Block, scores: CachedScores) -> pl.DataFrame:
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
    def __init__(self, candidates: pl.DataFrame, queries: dict[str, str]) -> None:
        self._parts = candidates.partition_by("topic_id", maintain_order=True)
        self._queries = queries

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


def _sums(found: pl.DataFrame) -> dict[str, int]:
    blocks = found.unique(["block"])
    counts = {"passages": found, "asked": blocks, "hits": blocks}
    return {"documents": len(found), **{name: int(frame[name].sum()) for name, frame in counts.items()}}


def reranked_table(found: Reranked) -> Table:
    policy = f"{found.about['passages']} of the passages '{found.about['policy']}'"
    lacking = (
        (found.missing, "candidates are not in the collection and are ranked below what was reranked"),
        (found.no_text, "topics of the run have no text and were left as they are"),
    )
    counts, topics = found.counts, found.run["topic_id"].n_unique()
    row = (topics, len(found.run), counts["documents"], counts["passages"], counts["asked"] - counts["hits"])
    return Table(
        f"{found.tag}: {found.about['run']['name']} to depth {found.about['depth']}, {policy}",
        Column.numbers(",d", "topics", "rows", "reranked", "passages", "scored", "from the cache"),
        ((*row, counts["hits"]),),
        notes=(
            f"Ranker: {found.about['ranker']['name']}. Equal passages are scored once in a block.",
            f"Ties: scores with {DECIMALS} decimals, equal ones by document id ascending.",
            *(f"{len(ids)} {what}: {first_few(ids, _NAMED)}." for ids, what in lacking if ids),
        ),
    )


@summarises(Reranked)
def _summary(found: Reranked) -> Summary:
    written = {} if found.out is None else {"output": str(found.out)}
    return Summary((reranked_table(found),), {**found.json(), **written}, notes=place_note("run", found.out))
