"""Rescued queries: judgments and pseudo-labelled training instances for what was discarded and can be answered."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

import polars as pl

from truerank.audits.survivorship.answers.judged import Judged, judged_by_people, read_firsts
from truerank.audits.survivorship.answers.options import RescueOptions
from truerank.audits.survivorship.results import file_input, provenance
from truerank.errors import InputError
from truerank.judging.ratings import RatingSource
from truerank.reports.tables import Cell, Column, Table
from truerank.sources import read_qrels_frame
from truerank.work.artifacts import Artifacts
from truerank.work.publishing import write_tables

__all__ = ["RESCUED", "RESCUED_SCHEMA", "Rescued", "RescuedFrom", "rescue"]

#: What marks a judgment as rescued: it stands in the column of the iteration, which evaluation programs do not read.
RESCUED: Final = "rescued"
#: `instances.parquet`: training instances, marked.
RESCUED_SCHEMA: Final[dict[str, Any]] = {
    "query_id": pl.String,
    "query": pl.String,
    "relevant_id": pl.String,
    "relevant": pl.String,
    "nonrelevant_id": pl.String,
    "nonrelevant": pl.String,
    "corpus": pl.String,
    "rescued": pl.Boolean,
}
_DEFAULTS: Final = RescueOptions()


class RescuedFrom(NamedTuple):
    """Where it is told what answers a query: a pool with labels, or a table of first answers.

    Args:
        pool: the folder of a pool.
        labels: a judging store or label files of the scheme answerability.
        firsts: a table of the first answer of each system; it has no texts, so it gives judgments only.
    """

    pool: str | Path | None = None
    labels: RatingSource | None = None
    firsts: str | None = None


@dataclass(frozen=True, eq=False)
class Rescued:
    """The result of `survivorship.rescue`.

    Attributes:
        judgments: corpus, query_id, doc_id, relevance (1 for an answer, 0 for a passage judged to be none), queries
            with an answer only.
        instances: columns as in `RESCUED_SCHEMA`.
        judged: judged queries by corpus.
        lone: rescued queries of which every judged passage answers, so that they give no instance.
        merged: by corpus, the judgments that the rescued ones were added to.
        options: the choices.
        notes: what was left out.
        inputs: for the manifest.
    """

    judgments: pl.DataFrame
    instances: pl.DataFrame
    judged: Mapping[str, int]
    lone: int
    merged: pl.DataFrame | None
    options: RescueOptions
    notes: tuple[str, ...] = ()
    inputs: Mapping[str, Any] = field(default_factory=dict)

    def table(self) -> Table:
        """Rescued queries, judgments and instances by corpus."""
        number: dict[str, Any] = {"align": "right", "format": ",d"}
        columns = (
            Column("corpus"),
            Column("judged queries", **number),
            Column("rescued", **number),
            Column("share", align="right", format=".1%"),
            Column("answers", **number),
            Column("no answers", **number),
            Column("instances", **number),
        )
        rows: list[tuple[Cell, ...]] = []
        for corpus, judged in self.judged.items():
            own = self.judgments.filter(pl.col("corpus") == corpus)
            queries, answers = own["query_id"].n_unique(), int((own["relevance"] > 0).sum())
            made = int((self.instances["corpus"] == corpus).sum())
            share = queries / judged if judged else None
            rows.append((corpus or None, judged, queries, share, answers, len(own) - answers, made))
        notes = [f"Judgments are marked '{RESCUED}' in the second column, instances in the column 'rescued'."]
        if self.lone:
            notes.append(f"{self.lone:,} rescued queries have no passage judged to be no answer: no instance of them.")
        return Table("Rescued queries", columns, tuple(rows), (*notes, *self.notes))

    def text(self) -> str:
        """The table for a terminal."""
        return self.table().text(120)

    def json(self) -> dict[str, Any]:
        """What `summary.json` holds."""
        names = ("corpus", "judged", "rescued", "share", "answers", "no_answers", "instances")
        return {
            "corpora": [dict(zip(names, row, strict=True)) for row in self.table().rows],
            "queries_without_negatives": self.lone,
            "merged_judgments": None if self.merged is None else len(self.merged),
            "options": self.options.json(),
            "notes": list(self.notes),
        }

    def save(self, folder: str | Path) -> Path:
        """Writes `qrels/CORPUS.qrels`, `instances.parquet`, `merged.qrels`, summary and manifest.

        Args:
            folder: made if it does not exist.

        Raises:
            InputError: it cannot be written to.
        """
        artifacts = Artifacts(folder)
        for corpus in self.judged:
            own = self.judgments.filter(pl.col("corpus") == corpus)
            artifacts.text(f"qrels/{(corpus or RESCUED).replace('/', '-')}.qrels", _lines(own, RESCUED))
        if len(self.instances):
            artifacts.parquet("instances.parquet", self.instances)
        if self.merged is not None:
            first = self.merged.rename({"topic_id": "query_id"})
            artifacts.text("merged.qrels", _lines(first, "0") + _lines(self.judgments, RESCUED))
        write_tables(artifacts, {"rescued": self.table()})
        artifacts.json("summary.json", self.json())
        artifacts.manifest(provenance("rescue", self.inputs, self.options.json()))
        return artifacts.folder


def rescue(
    source: RescuedFrom,
    out: str | Path | None = None,
    *,
    qrels: str | None = None,
    options: RescueOptions = _DEFAULTS,
) -> Rescued:
    """Makes judgments and training instances of the discarded queries that can be answered.

    Args:
        source: where it is told what answers a query.
        out: the folder to write; None to write nothing.
        qrels: judgments of the queries that survived, to which the rescued ones are added.
        options: negatives and how they are chosen.

    Returns:
        Judgments and instances, marked as rescued.

    Raises:
        InputError: no source; no query with an answer; a rescued query that `qrels` has already; several corpora
            together with `qrels`.

    Source: Gupta, MacAvaney: On Survivorship Bias in MS MARCO (SIGIR 2022), section 6 (pseudo-labelling).
    """
    judged = _judged(source, options)
    answered = judged.answers.filter("answers").select("corpus", "query_id").unique()
    if not len(answered):
        raise InputError("no query has an answer", "there is nothing to rescue", where="rescue")
    counts = judged.answers.group_by("corpus", maintain_order=True).agg(pl.col("query_id").n_unique())
    kept = judged.answers.join(answered, on=["corpus", "query_id"], how="semi", maintain_order="left")
    judgments = kept.with_columns(pl.col("answers").cast(pl.Int32).alias("relevance")).drop("answers")
    instances = pl.DataFrame(list(_instances(judged, kept, options)), schema=RESCUED_SCHEMA, orient="row")
    inputs = dict(judged.inputs)
    merged = None
    if qrels is not None:
        merged, inputs["qrels"] = _merged(qrels, judgments), file_input(qrels)
    lone = 0
    if judged.items:
        with_none = kept.filter(~pl.col("answers")).select("corpus", "query_id").unique()
        lone = len(answered.join(with_none, on=["corpus", "query_id"], how="anti"))
    result = Rescued(
        judgments=judgments,
        instances=instances,
        judged={str(corpus): int(number) for corpus, number in counts.iter_rows()},
        lone=lone,
        merged=merged,
        options=options,
        notes=judged.notes,
        inputs=inputs,
    )
    if out is not None:
        result.save(out)
    return result


def _judged(source: RescuedFrom, options: RescueOptions) -> Judged:
    people = source.pool is not None or source.labels is not None
    if people == (source.firsts is not None):
        remedy = "give --pool with --labels, or --firsts"
        raise InputError("one source of answers is needed", remedy, where="rescue")
    if people:
        if source.pool is None or source.labels is None:
            raise InputError("a pool goes with labels", "give --pool and --labels", where="rescue")
        return judged_by_people(source.pool, source.labels, votes=options.votes, include_models=options.include_models)
    first = read_firsts(str(source.firsts))
    # A query that nobody answered has been judged too: it stands there without a document.
    answers = first.select("corpus", "query_id", "doc_id", pl.col("doc_id").is_not_null().alias("answers")).unique(
        maintain_order=True
    )
    whole = answers.group_by("corpus", "query_id").agg(pl.col("answers").any().alias("some"))
    answers = answers.join(whole, on=["corpus", "query_id"], maintain_order="left")
    answers = answers.filter(pl.col("answers") | ~pl.col("some")).drop("some")
    nothing = pl.DataFrame(schema={"corpus": pl.String, "query_id": pl.String, "doc_id": pl.String, "rank": pl.Int32})
    notes = ("Only first answers are known: no texts, no passages judged to be no answer, no instances.",)
    return Judged(nothing, answers, {}, notes, {"firsts": file_input(str(source.firsts))})


def _instances(judged: Judged, kept: pl.DataFrame, options: RescueOptions) -> Iterator[tuple[Any, ...]]:
    if not options.negatives or not judged.items:
        return
    ranks = judged.pool.group_by("corpus", "query_id", "doc_id").agg(pl.col("rank").min())
    keys = ["corpus", "query_id"]
    placed = kept.join(ranks, on=[*keys, "doc_id"], how="left", maintain_order="left")
    for (corpus, query_id), part in placed.group_by(keys, maintain_order=True):
        item = judged.items[str(corpus), str(query_id)]
        texts = {text.id: text.text for text in item.texts[1:]}
        ordered = part.sort("rank", "doc_id", nulls_last=True)
        answers = ordered.filter("answers")["doc_id"].to_list()
        others = ordered.filter(~pl.col("answers"))["doc_id"].to_list()
        if options.choose == "random":
            random.Random(f"{options.seed}\t{corpus}\t{query_id}").shuffle(others)
        for place, answer in enumerate(answers):
            # Answers take turns with the negatives, so that several answers do not all meet the same one.
            start = place * options.negatives
            for offset in range(min(options.negatives, len(others))):
                other = others[(start + offset) % len(others)]
                query = item.text("query")
                yield query_id, query, answer, texts[answer], other, texts[other], corpus, True


def _merged(qrels: str, judgments: pl.DataFrame) -> pl.DataFrame:
    if judgments["corpus"].n_unique() > 1:
        raise InputError("judgments of several corpora", "rescue one corpus at a time", where="--qrels")
    survived = read_qrels_frame(qrels)
    again = judgments.filter(pl.col("query_id").is_in(survived["topic_id"].unique().implode()))
    if len(again):
        fault = f"the rescued query '{again['query_id'][0]}' has judgments there"
        raise InputError(fault, "give the judgments of the queries that survived", where=qrels)
    return survived


def _lines(frame: pl.DataFrame, mark: str) -> str:
    form = pl.format("{} {} {} {}\n", "query_id", pl.lit(mark), "doc_id", "relevance").alias("line")
    return "".join(frame.select(form)["line"])
