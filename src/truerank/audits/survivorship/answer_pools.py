"""The first results of several rankers for discarded queries, as items for people to judge."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import polars as pl

from truerank.arrays import frame_schema
from truerank.audits.survivorship.annotation_logs import Annotation, LogCounts, open_annotations
from truerank.audits.survivorship.evaluation import kept_run
from truerank.audits.survivorship.queries import Survival, input_of_log, named_source, named_sources, read_ids
from truerank.core.result import Result
from truerank.errors import InputError, OptionError
from truerank.judging import Item, Text
from truerank.judging.items import content_id
from truerank.options import Flag, Options, Range, Seed
from truerank.records import Document, Input
from truerank.sources import SourceSpec, read_topics
from truerank.sources.documents import open_documents
from truerank.sources.inputs import input_of
from truerank.work.progress import Progress, Quiet

#: `pool.parquet`: which ranker had which document at which rank, by corpus, query, system and rank.
POOL_SCHEMA: Final[dict[str, Any]] = frame_schema("corpus query_id system doc_id: String, rank: Int32")
POOL: Final = "pool.parquet"
#: What is judged: which passages answer (scheme answerability), and why nothing did (scheme survivorship).
ITEMS: Final = "items.jsonl"
REASONS: Final = "reasons.jsonl"
_SHOWN: Final = 3


@dataclass(frozen=True)
class DiscardedQueries(Options):
    """Which queries were discarded.

    Attributes:
        log: an annotation log; its discarded queries are taken, and their texts are known.
        discarded: ids of discarded queries, in its place, or to take only some of the log's.
        topics: texts of queries that come without a log.
        survival: what makes a query of a log survive: selected (a shown document was selected) or answered (somebody
            wrote an answer).
    """

    log: Annotated[str | None, Flag(metavar="[NAME=]SRC")] = None
    discarded: Annotated[str | None, Flag(metavar="SRC")] = None
    topics: Annotated[str | None, Flag(metavar="SRC")] = None
    survival: Survival = "selected"


@dataclass(frozen=True)
class AnswerPoolOptions(Options):
    """To make a pool for people to judge.

    Attributes:
        docs: the collections of the runs; with them a pool is made, without them answers are counted. In Python also
            by name.
        k: results of each run.
        sample: queries that are drawn, every one with the same chance; by default all.
        seed: of the sample, and of the order in which passages are shown.
    """

    docs: Annotated[str | Sequence[str] | Mapping[str, str], Flag(metavar="[CORPUS=]SRC", reads=list[str])] = ()
    k: Annotated[int, Range(at_least=1)] = 10
    sample: Annotated[int | None, Range(at_least=1)] = None
    seed: Seed = 0


class AnswersOfDiscarded(Result, shown_in="truerank.audits.survivorship.report"):
    """What `survivorship answerable` returns: a pool to be judged, or the counts of answers."""


@dataclass(frozen=True, eq=False, repr=False)
class AnswerPool(AnswersOfDiscarded):
    """A pool of passages that may answer discarded queries.

    Attributes:
        results: columns as in `POOL_SCHEMA`.
        items: one per corpus and query, for the scheme answerability; passages in an order that tells no ranks.
        reasons: one per query, for the scheme survivorship: what the first annotators saw; empty without a log.
        queries: texts of the queries drawn, by id.
        discarded: how many queries the sample was drawn from.
        lacking: by corpus and system, queries of the sample without a result.
        options: the choices.
        counts: what was read of the log.
        inputs: what was read.
        out: the folder that it was written to.
    """

    results: pl.DataFrame
    items: tuple[Item, ...]
    reasons: tuple[Item, ...]
    queries: Mapping[str, str]
    discarded: int
    lacking: Mapping[str, int]
    options: AnswerPoolOptions
    counts: LogCounts = field(default_factory=LogCounts)
    inputs: tuple[Input, ...] = ()
    out: Path | None = None

    def json(self) -> dict[str, Any]:
        """What `summary.json` holds."""
        return {
            "queries": len(self.queries),
            "discarded": self.discarded,
            "k": self.options.k,
            "corpora": self.results["corpus"].unique(maintain_order=True).to_list(),
            "systems": {
                str(corpus): part["system"].unique(maintain_order=True).to_list()
                for (corpus,), part in self.results.group_by("corpus", maintain_order=True)
            },
            "items": len(self.items),
            "passages": sum(len(item.texts) - 1 for item in self.items),
            "reasons": len(self.reasons),
            "lacking": dict(self.lacking),
        }


class _Run(NamedTuple):
    corpus: str
    system: str
    path: SourceSpec


def pool_discarded(
    runs: Sequence[str], discarded: DiscardedQueries, options: AnswerPoolOptions, progress: Progress | None = None
) -> AnswerPool:
    """Pools the first results of several rankers for discarded queries, over one or several corpora.

    Source: Gupta, MacAvaney: On Survivorship Bias in MS MARCO (SIGIR 2022), section 3, Table 2.
    """
    progress = progress or Quiet()
    corpora = named_sources(options.docs, "docs")
    named = _named_runs(runs, list(corpora))
    chosen = _chosen(discarded, options, progress)
    results, lacking = _pooled(named, chosen.queries, options.k, progress)
    return AnswerPool(
        results=results,
        items=tuple(_items(results, chosen, corpora, options, progress)),
        reasons=tuple(_reason_items(chosen)),
        queries=chosen.queries,
        discarded=len(chosen.read.ids),
        lacking=lacking,
        options=options,
        counts=chosen.read.counts,
        inputs=(
            *chosen.read.inputs,
            *(input_of("run", one.path, f"{one.corpus}/{one.system}") for one in named),
            *(input_of("docs", spec, name) for name, spec in corpora.items()),
        ),
    )


def top_results(run: SourceSpec, queries: pl.Series, k: int) -> pl.DataFrame:
    """The first results of a run, with ranks from 1: by score as a 32-bit number, then by document id descending."""
    rows = kept_run(run.spec, queries, k).rows.with_columns(pl.col("score").cast(pl.Float32))
    ordered = rows.sort("topic_id", "score", "doc_id", descending=[False, True, True])
    ranked = ordered.with_columns((pl.int_range(pl.len()).over("topic_id") + 1).cast(pl.Int32).alias("rank"))
    return ranked.filter(pl.col("rank") <= k).select(pl.col("topic_id").alias("query_id"), "doc_id", "rank")


def _named_runs(runs: Sequence[str], corpora: Sequence[str]) -> list[_Run]:
    """Runs by corpus and system; the name of the corpus may be left out where there is one."""
    if not runs:
        raise OptionError("run", "no run", "name at least one")
    found = []
    for given in runs:
        name, spec = named_source(given)
        corpus, _, system = name.partition("/") if name != spec.name else ("", "", name)
        if not system or (corpus not in corpora and len(corpora) == 1):
            corpus, system = (corpora[0] if len(corpora) == 1 else ""), name
        if corpus not in corpora:
            fault = f"the run '{given}' does not say which corpus it is of"
            raise OptionError("run", fault, f"write CORPUS/SYSTEM=FILE, a corpus of {', '.join(corpora)}")
        found.append(_Run(corpus, system, spec))
    if len({one[:2] for one in found}) < len(found):
        raise OptionError("run", "two runs of one name", "write SYSTEM=FILE")
    return found


class _Read(NamedTuple):
    """Discarded queries as they are named: ids in the order of the source, and what a log says of them."""

    ids: list[str]
    annotations: dict[str, Annotation]
    dataset: str
    counts: LogCounts
    inputs: tuple[Input, ...]


class _Chosen(NamedTuple):
    """The queries that were drawn: texts by id, and what they were drawn from."""

    queries: dict[str, str]
    read: _Read

    @property
    def probability(self) -> float:
        return len(self.queries) / len(self.read.ids)


def discarded_ids(discarded: DiscardedQueries) -> tuple[list[str], tuple[Input, ...]]:
    found = _read(discarded, Quiet())
    return found.ids, found.inputs


def _read(discarded: DiscardedQueries, progress: Progress) -> _Read:
    if discarded.log is None and discarded.discarded is None:
        raise InputError(
            "the discarded queries are not named", "give `log` or `discarded`", where="survivorship answerable"
        )
    inputs: list[Input] = []
    wanted: list[str] | None = None
    dataset, counts = "", LogCounts()
    annotations: dict[str, Annotation] = {}
    if discarded.discarded is not None:
        dataset, spec = named_source(discarded.discarded)
        wanted = read_ids(spec)
        inputs.append(input_of("discarded", spec))
    if discarded.log is not None:
        dataset, spec = named_source(discarded.log)
        source = open_annotations(spec)
        known = None if wanted is None else set(wanted)
        progress.start("queries of the log")
        for one in source:
            progress.advance(1)
            survived = one.survived if discarded.survival == "selected" else bool(one.answers)
            if not survived and (known is None or one.query_id in known):
                annotations[one.query_id] = one
        counts = source.log_counts
        inputs.append(input_of_log(dataset, source))
        wanted = [one for one in wanted or annotations if one in annotations]
    return _Read(wanted or [], annotations, dataset, counts, tuple(inputs))


def _chosen(discarded: DiscardedQueries, options: AnswerPoolOptions, progress: Progress) -> _Chosen:
    read = _read(discarded, progress)
    if discarded.log is None and discarded.topics is None:
        raise OptionError("discarded", "the queries have no texts", "give them with `topics`")
    drawn = _drawn(read.ids, options, discarded)
    texts, inputs = {key: one.query for key, one in read.annotations.items()}, read.inputs
    if discarded.topics is not None:
        inputs = (*inputs, input_of("topics", discarded.topics))
        texts |= {topic.topic_id: topic.title for topic in read_topics(discarded.topics).topics}
    absent = [one for one in drawn if not texts.get(one, "").strip()]
    if absent:
        shown = ", ".join(absent[:_SHOWN])
        fault = f"{len(absent):,} discarded queries have no text: {shown}"
        raise InputError(fault, "give their texts with `topics`", where=discarded.topics or discarded.log)
    queries = {one: texts[one] for one in drawn}
    return _Chosen(queries, read._replace(inputs=inputs))


def _drawn(wanted: list[str], options: AnswerPoolOptions, discarded: DiscardedQueries) -> list[str]:
    """The sample, in the order of the source."""
    if not wanted:
        raise InputError(
            "no discarded queries in it", "there is nothing to judge", where=discarded.log or discarded.discarded
        )
    if options.sample is None or options.sample >= len(wanted):
        return wanted
    places = random.Random(options.seed).sample(range(len(wanted)), options.sample)
    return [wanted[place] for place in sorted(places)]


def _pooled(
    runs: Sequence[_Run], queries: Mapping[str, str], k: int, progress: Progress
) -> tuple[pl.DataFrame, dict[str, int]]:
    wanted = pl.Series("topic_id", list(queries), dtype=pl.String)
    order = pl.DataFrame({"query_id": wanted}).with_row_index("place")
    progress.start("runs", total=len(runs))
    parts, lacking = [], {}
    for one in runs:
        top = top_results(one.path, wanted, k)
        lacking[f"{one.corpus}/{one.system}"] = len(queries) - top["query_id"].n_unique()
        names = [pl.lit(one.corpus).alias("corpus"), pl.lit(one.system).alias("system")]
        parts.append(top.join(order, on="query_id", maintain_order="left").sort("place", "rank").with_columns(names))
        progress.advance(1)
    results = pl.concat(parts).select(list(POOL_SCHEMA)).cast(pl.Schema(POOL_SCHEMA))
    return results, lacking


def _items(
    results: pl.DataFrame,
    chosen: _Chosen,
    corpora: Mapping[str, SourceSpec],
    options: AnswerPoolOptions,
    progress: Progress,
) -> Iterator[Item]:
    for corpus, source in corpora.items():
        own = results.filter(pl.col("corpus") == corpus)
        pairs = own.select("query_id", "doc_id").unique(maintain_order=True)
        texts = _texts(source, set(pairs["doc_id"]), progress)
        pools = {str(key[0]): part["doc_id"].to_list() for key, part in pairs.group_by("query_id")}
        for query_id, query in chosen.queries.items():
            if query_id not in pools:
                continue
            ids = sorted(pools[query_id], key=lambda one: _mixed(options.seed, query_id, one))
            passages = [
                Text(f"passage {n}", texts[one].text, one, texts[one].url) for n, one in enumerate(ids, start=1)
            ]
            shown = (Text("query", query, query_id), *passages)
            yield Item(
                content_id(query_id, corpus, shown),
                query_id,
                texts=shown,
                dataset=corpus,
                probability=chosen.probability,
            )


def _reason_items(chosen: _Chosen) -> Iterator[Item]:
    for query_id in chosen.queries:
        one = chosen.read.annotations.get(query_id)
        if one is None or not one.shown:
            continue
        passages = (Text(f"passage {n}", d.text, d.doc_id, d.url) for n, d in enumerate(one.shown, start=1))
        texts = (Text("query", one.query, query_id), *passages)
        if all(text.text for text in texts):
            yield Item(
                content_id(query_id, "", texts),
                query_id,
                texts=texts,
                dataset=chosen.read.dataset,
                probability=chosen.probability,
            )


def _texts(source: SourceSpec, wanted: set[str], progress: Progress) -> dict[str, Document]:
    found: dict[str, Document] = {}
    progress.start("documents")
    for block in open_documents(source.spec, keep_empty=True).batches():
        found.update((one.doc_id, one) for one in block if one.doc_id in wanted)
        progress.advance(len(block))
        if len(found) == len(wanted):
            break
    absent = sorted(wanted.difference(found))
    if absent:
        fault = f"{len(absent):,} documents of the runs are not in it: {', '.join(absent[:_SHOWN])}"
        raise InputError(fault, "give the collection that the runs are of", where=source.spec)
    return found


def _mixed(seed: int, query_id: str, doc_id: str) -> str:
    return hashlib.sha256(f"{seed}\t{query_id}\t{doc_id}".encode("utf-8", "replace")).hexdigest()
