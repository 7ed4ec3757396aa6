"""The first results of several rankers for discarded queries, as items for people to judge."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

import polars as pl

from truerank.audits.survivorship.answers.options import Discarded, PoolOptions
from truerank.audits.survivorship.evaluating.inputs import kept_run
from truerank.audits.survivorship.query_labels import read_ids
from truerank.audits.survivorship.results import fault_notes, file_input, log_input, named_source, provenance
from truerank.errors import InputError
from truerank.judging import Item, Text
from truerank.judging.items import content_id
from truerank.records import Document
from truerank.reports.tables import Column, Table
from truerank.sources import parse, read_topics
from truerank.sources.annotation_logs import Annotation, LogCounts, open_annotations
from truerank.sources.documents import open_documents
from truerank.work.artifacts import Artifacts
from truerank.work.progress import Progress, Quiet

__all__ = ["ITEMS", "POOL", "POOL_SCHEMA", "REASONS", "AnswerPool", "discarded_ids", "pool_discarded", "top_results"]

#: `pool.parquet`: which ranker had which document at which rank, by corpus, query, system and rank.
POOL_SCHEMA: Final[dict[str, Any]] = {
    "corpus": pl.String,
    "query_id": pl.String,
    "system": pl.String,
    "doc_id": pl.String,
    "rank": pl.Int32,
}
POOL: Final = "pool.parquet"
#: What is judged: which passages answer (scheme answerability), and why nothing did (scheme survivorship).
ITEMS: Final = "items.jsonl"
REASONS: Final = "reasons.jsonl"
_DEFAULTS: Final = PoolOptions()
_SHOWN: Final = 3


@dataclass(frozen=True, eq=False)
class AnswerPool:
    """What `survivorship.pool_discarded` made.

    Attributes:
        results: columns as in `POOL_SCHEMA`.
        items: one per corpus and query, for the scheme answerability; passages in an order that tells no ranks.
        reasons: one per query, for the scheme survivorship: what the first annotators saw; empty without a log.
        queries: texts of the queries drawn, by id.
        discarded: how many queries the sample was drawn from.
        lacking: by corpus and system, queries of the sample without a result.
        options: the choices.
        counts: what was read of the log.
        inputs: for the manifest.
    """

    results: pl.DataFrame
    items: tuple[Item, ...]
    reasons: tuple[Item, ...]
    queries: Mapping[str, str]
    discarded: int
    lacking: Mapping[str, int]
    options: PoolOptions
    counts: LogCounts = field(default_factory=LogCounts)
    inputs: Mapping[str, Any] = field(default_factory=dict)

    def table(self) -> Table:
        """Systems, queries and passages by corpus."""
        number: dict[str, Any] = {"align": "right", "format": ",d"}
        columns = (
            Column("corpus"),
            Column("system"),
            Column("queries", **number),
            Column("passages", **number),
            Column("only here", **number),
        )
        alone = self.results.group_by("corpus", "query_id", "doc_id").agg(
            pl.len().alias("systems"), pl.col("system").first()
        )
        rows: list[tuple[str | int, ...]] = []
        rules = []
        for (corpus,), part in self.results.group_by("corpus", maintain_order=True):
            own = alone.filter(pl.col("corpus") == corpus)
            for (system,), found in part.group_by("system", maintain_order=True):
                only = len(own.filter((pl.col("systems") == 1) & (pl.col("system") == system)))
                rows.append((str(corpus), str(system), found["query_id"].n_unique(), len(found), only))
            rules.append(len(rows))
            rows.append((str(corpus), "pool", part["query_id"].n_unique(), len(own), len(own)))
        title = f"Pools of the first {self.options.k} results for {len(self.queries):,} discarded queries"
        return Table(title, columns, tuple(rows), tuple(self.notes()), tuple(rules))

    def notes(self) -> Iterator[str]:
        """What a reader of the table has to know."""
        if len(self.queries) < self.discarded:
            yield f"Drawn at random from {self.discarded:,} discarded queries, seed {self.options.seed}."
        else:
            yield f"All {self.discarded:,} discarded queries."
        yield "Passages stand in an order that does not tell who retrieved them, or where."
        for where, number in self.lacking.items():
            if number:
                yield f"{where} has no result for {number:,} of the queries."
        yield from fault_notes(self.counts)

    def text(self) -> str:
        """The table for a terminal."""
        return self.table().text(120)

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

    def save(self, folder: str | Path) -> Path:
        """Writes the pool, the items, the queries, summary and manifest.

        Args:
            folder: made if it does not exist.

        Raises:
            InputError: it cannot be written to.
        """
        artifacts = Artifacts(folder)
        artifacts.parquet(POOL, self.results)
        artifacts.text(ITEMS, _lines(self.items))
        if self.reasons:
            artifacts.text(REASONS, _lines(self.reasons))
        artifacts.text(
            "queries.tsv", "".join(f"{one}\t{' '.join(text.split())}\n" for one, text in self.queries.items())
        )
        artifacts.json("summary.json", self.json())
        artifacts.manifest(provenance("answerable", self.inputs, self.options.json()))
        return artifacts.folder


class _Run(NamedTuple):
    corpus: str
    system: str
    path: str


def pool_discarded(
    runs: Sequence[str],
    docs: Sequence[str],
    discarded: Discarded,
    out: str | Path | None = None,
    *,
    options: PoolOptions = _DEFAULTS,
    progress: Progress | None = None,
) -> AnswerPool:
    """Pools the first results of several rankers for discarded queries, over one or several corpora.

    Args:
        runs: `FILE`, `SYSTEM=FILE` or `CORPUS/SYSTEM=FILE`; the corpus is needed where there are several.
        docs: the collections, `SRC` or `CORPUS=SRC`.
        discarded: where the discarded queries and their texts are.
        out: the folder to write; None to write nothing.
        options: how many results and queries, and the seed.
        progress: told about the work.

    Returns:
        The pool, with items for a judging store.

    Raises:
        InputError: a fault in a source; a query without a text; a document that its collection lacks.

    Source: Gupta, MacAvaney: On Survivorship Bias in MS MARCO (SIGIR 2022), section 3, Table 2.
    """
    shown = progress or Quiet()
    corpora = {name: spec.spec for name, spec in map(named_source, docs)}
    if len(corpora) < max(1, len(docs)):
        raise InputError("every collection needs a name of its own", "write CORPUS=SRC", where="--docs")
    named = _named_runs(runs, list(corpora))
    chosen = _chosen(discarded, options, shown)
    results, lacking = _pooled(named, chosen.queries, options.k, shown)
    items = tuple(_items(results, chosen, corpora, options, shown))
    inputs = {
        **chosen.inputs,
        "runs": {f"{one.corpus}/{one.system}": file_input(one.path) for one in named},
        "docs": {name: file_input(source) for name, source in corpora.items()},
    }
    pool = AnswerPool(
        results=results,
        items=items,
        reasons=tuple(_reason_items(chosen)),
        queries=chosen.queries,
        discarded=chosen.total,
        lacking=lacking,
        options=options,
        counts=chosen.counts,
        inputs=inputs,
    )
    if out is not None:
        pool.save(out)
    return pool


def top_results(path: str, queries: pl.Series, k: int) -> pl.DataFrame:
    """The first results of a run, with ranks from 1: by score as a 32-bit number, then by document id descending.

    Args:
        path: the run.
        queries: ids.
        k: results of each.

    Returns:
        Columns query_id, doc_id, rank.

    Raises:
        InputError: a fault in the run, or none of the queries in it.
    """
    rows = kept_run(path, queries, k).rows.with_columns(pl.col("score").cast(pl.Float32))
    ordered = rows.sort("topic_id", "score", "doc_id", descending=[False, True, True])
    ranked = ordered.with_columns((pl.int_range(pl.len()).over("topic_id") + 1).cast(pl.Int32).alias("rank"))
    return ranked.filter(pl.col("rank") <= k).select(pl.col("topic_id").alias("query_id"), "doc_id", "rank")


def _lines(items: Sequence[Item]) -> str:
    return "".join(json.dumps(item.json(), ensure_ascii=False) + "\n" for item in items)


def _named_runs(runs: Sequence[str], corpora: Sequence[str]) -> list[_Run]:
    if not runs:
        raise InputError("no run", "name one or more", where="--run")
    found = []
    for given in runs:
        name, sign, path = given.partition("=")
        if not sign or Path(given).exists() or "?" in name:
            name, path = parse(given).name, given
        corpus, slash, system = name.partition("/")
        if not slash or (not corpora.count(corpus) and len(corpora) == 1):
            corpus, system = (corpora[0] if len(corpora) == 1 else ""), name
        if corpus not in corpora:
            fault = f"the run '{given}' does not say which corpus it is of"
            raise InputError(fault, f"write CORPUS/SYSTEM=FILE, a corpus of {', '.join(corpora)}", where="--run")
        found.append(_Run(corpus, system, path))
    if len({one[:2] for one in found}) < len(found):
        raise InputError("two runs of one name", "write SYSTEM=FILE", where="--run")
    return found


@dataclass(frozen=True, eq=False)
class _Chosen:
    """The queries that were drawn: texts by id, how many there were, what was shown for them."""

    queries: dict[str, str]
    total: int
    probability: float
    shown: Mapping[str, Annotation]
    dataset: str
    counts: LogCounts
    inputs: dict[str, Any]


class _Read(NamedTuple):
    """Discarded queries as they are named: ids in the order of the source, and what a log says of them."""

    ids: list[str]
    annotations: dict[str, Annotation]
    dataset: str
    counts: LogCounts
    inputs: dict[str, Any]


def discarded_ids(discarded: Discarded) -> tuple[list[str], dict[str, Any]]:
    """The ids of discarded queries, and what they were read from.

    Args:
        discarded: a log, a list of ids, or a list of some of the log's.

    Raises:
        InputError: neither is given, or a fault in a file.
    """
    found = _read(discarded, Quiet())
    return found.ids, found.inputs


def _read(discarded: Discarded, progress: Progress) -> _Read:
    if discarded.log is None and discarded.ids is None:
        raise InputError("the discarded queries are not named", "give --log or --discarded", where="answerable")
    if discarded.rule not in ("selected", "answered"):
        raise InputError(f"no rule called {discarded.rule!r}", "use 'selected' or 'answered'", where="--rule")
    inputs: dict[str, Any] = {}
    wanted: list[str] | None = None
    dataset, counts = "", LogCounts()
    annotations: dict[str, Annotation] = {}
    if discarded.ids is not None:
        dataset, spec = named_source(discarded.ids)
        wanted, inputs["discarded"] = read_ids(spec), file_input(spec.spec)
    if discarded.log is not None:
        dataset, spec = named_source(discarded.log)
        source = open_annotations(spec)
        known = None if wanted is None else set(wanted)
        progress.start("queries of the log")
        for one in source:
            progress.advance(1)
            survived = one.survived if discarded.rule == "selected" else bool(one.answers)
            if not survived and (known is None or one.query_id in known):
                annotations[one.query_id] = one
        counts, inputs["log"] = source.counts, {**log_input(source), "rule": discarded.rule}
        wanted = [one for one in wanted or annotations if one in annotations]
    return _Read(wanted or [], annotations, dataset, counts, inputs)


def _chosen(discarded: Discarded, options: PoolOptions, progress: Progress) -> _Chosen:
    read = _read(discarded, progress)
    if discarded.log is None and discarded.topics is None:
        raise InputError("the queries have no texts", "give them with --topics", where="--discarded")
    drawn = _drawn(read.ids, options, discarded)
    texts, inputs = {key: one.query for key, one in read.annotations.items()}, dict(read.inputs)
    if discarded.topics is not None:
        inputs["topics"] = file_input(discarded.topics)
        texts |= {topic.topic_id: topic.title for topic in read_topics(discarded.topics).topics}
    absent = [one for one in drawn if not texts.get(one, "").strip()]
    if absent:
        shown = ", ".join(absent[:_SHOWN])
        fault = f"{len(absent):,} discarded queries have no text: {shown}"
        raise InputError(fault, "give their texts with --topics", where=discarded.topics or discarded.log)
    queries = {one: texts[one] for one in drawn}
    kept = {key: one for key, one in read.annotations.items() if key in queries}
    return _Chosen(queries, len(read.ids), len(drawn) / len(read.ids), kept, read.dataset, read.counts, inputs)


def _drawn(wanted: list[str], options: PoolOptions, discarded: Discarded) -> list[str]:
    """The sample, in the order of the source."""
    if not wanted:
        raise InputError(
            "no discarded queries in it", "there is nothing to judge", where=discarded.log or discarded.ids
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
    results: pl.DataFrame, chosen: _Chosen, corpora: Mapping[str, str], options: PoolOptions, progress: Progress
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
        one = chosen.shown.get(query_id)
        if one is None or not one.shown:
            continue
        passages = (Text(f"passage {n}", d.text, d.doc_id, d.url) for n, d in enumerate(one.shown, start=1))
        texts = (Text("query", one.query, query_id), *passages)
        if all(text.text for text in texts):
            yield Item(
                content_id(query_id, "", texts),
                query_id,
                texts=texts,
                dataset=chosen.dataset,
                probability=chosen.probability,
            )


def _texts(source: str, wanted: set[str], progress: Progress) -> dict[str, Document]:
    found: dict[str, Document] = {}
    progress.start("documents")
    for block in open_documents(source, keep_empty=True).batches():
        found.update((one.doc_id, one) for one in block if one.doc_id in wanted)
        progress.advance(len(block))
        if len(found) == len(wanted):
            break
    absent = sorted(wanted.difference(found))
    if absent:
        fault = f"{len(absent):,} documents of the runs are not in it: {', '.join(absent[:_SHOWN])}"
        raise InputError(fault, "give the collection that the runs are of", where=source)
    return found


def _mixed(seed: int, query_id: str, doc_id: str) -> str:
    return hashlib.sha256(f"{seed}\t{query_id}\t{doc_id}".encode("utf-8", "replace")).hexdigest()
