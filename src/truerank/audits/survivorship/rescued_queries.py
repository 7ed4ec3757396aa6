"""`truerank survivorship rescue`: judgments and training instances of discarded queries that can be answered."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import polars as pl

from truerank.arrays import frame_schema
from truerank.audits.survivorship.answers import (
    JudgedPassages,
    JudgedPoolFolder,
    given_by_people,
    judged_by_people,
    read_firsts,
)
from truerank.core.plain import picked
from truerank.core.result import Result
from truerank.errors import InputError, OptionError
from truerank.judging.ratings import label_rules
from truerank.options import Flag, Labels, Options, Out, Range, Seed, command
from truerank.records import Input
from truerank.sources import read_qrels_frame
from truerank.sources.inputs import input_of, inputs_of
from truerank.work.publishing import publish
from truerank.work.runs import run as started

#: What marks a judgment as rescued: it is in the column of the iteration, which evaluation programs do not read.
RESCUED: Final = "rescued"
#: `instances.parquet`: training instances, marked.
RESCUED_SCHEMA: Final[dict[str, Any]] = frame_schema(
    "query_id query relevant_id relevant nonrelevant_id nonrelevant corpus: String, rescued: Boolean"
)


@dataclass(frozen=True)
class RescueOptions(Options):
    """Training instances of rescued queries.

    Attributes:
        negatives: instances of each answering passage, each with another non-relevant one, where there are as many; 0
            for judgments only.
        choose: their non-relevant passages are those that stood highest in a ranking (top), or random ones of the
            pool.
        seed: of random ones.
    """

    negatives: Annotated[int, Range(at_least=0)] = 1
    choose: Literal["top", "random"] = "top"
    seed: Seed = 0


@dataclass(frozen=True, eq=False, repr=False)
class Rescued(Result, shown_in="truerank.audits.survivorship.report"):
    """Judgments and training instances of rescued queries.

    Attributes:
        judgments: corpus, query_id, doc_id, relevance (1 for an answer, 0 for a passage judged to be none), queries
            with an answer only.
        instances: columns as in `RESCUED_SCHEMA`.
        judged: judged queries by corpus.
        lone: rescued queries of which every judged passage answers, so that they give no instance.
        merged: by corpus, the judgments that the rescued ones were added to.
        options: the choices.
        notes: what was left out.
        inputs: what was read.
        out: the folder that it was written to.
    """

    judgments: pl.DataFrame
    instances: pl.DataFrame
    judged: Mapping[str, int]
    lone: int
    merged: pl.DataFrame | None
    options: RescueOptions
    notes: tuple[str, ...] = ()
    inputs: tuple[Input, ...] = ()
    out: Path | None = None

    def counts(self) -> Iterator[dict[str, Any]]:
        """By corpus: judged and rescued queries, passages that answer and that do not, instances."""
        for corpus, judged in self.judged.items():
            own = self.judgments.filter(pl.col("corpus") == corpus)
            queries, answers = own["query_id"].n_unique(), int((own["relevance"] > 0).sum())
            yield {
                "corpus": corpus or None,
                "judged": judged,
                "rescued": queries,
                "share": queries / judged if judged else None,
                "answers": answers,
                "no_answers": len(own) - answers,
                "instances": int((self.instances["corpus"] == corpus).sum()),
            }

    def json(self) -> dict[str, Any]:
        """What `summary.json` holds."""
        merged = None if self.merged is None else len(self.merged)
        known = {"corpora": list(self.counts()), "queries_without_negatives": self.lone, "merged_judgments": merged}
        return {**known, **picked(self, "options, notes")}


@command
def rescue(
    pool: JudgedPoolFolder = None,
    judged: Labels = Labels(),
    firsts: Annotated[str | None, Flag(metavar="SRC")] = None,
    qrels: Annotated[str | None, Flag(metavar="SRC")] = None,
    *,
    options: RescueOptions = RescueOptions(),
    out: Out = None,
) -> Rescued:
    """Makes judgments and training instances of the discarded queries that can be answered.

    Both are marked as rescued. Non-relevant passages are those of the pool that were judged to be no answer.

    Args:
        pool: the folder of a pool that was judged.
        judged: its labels, of the scheme answerability.
        firsts: in their place a table of first answers: scorer, query_id, doc_id, rank; it has no texts, so it gives
            judgments only.
        qrels: judgments of the queries that survived, to which the rescued ones are added.
        options: non-relevant passages and how they are chosen.
        out: a folder for judgments, instances and manifest.

    Returns:
        Judgments and instances, marked as rescued.

    Raises:
        InputError: no source; no query with an answer; a rescued query that `qrels` has already; several corpora
            together with `qrels`.

    Examples:

        truerank survivorship rescue --pool pool/ --labels answers.db --qrels qrels.dev.tsv --out rescued/

    Source: Gupta, MacAvaney: On Survivorship Bias in MS MARCO (SIGIR 2022), section 6 (pseudo-labelling).
    """
    found = _rescued(_judged(pool, judged, firsts), qrels, options)
    if out is None:
        return found
    with started("survivorship rescue", found.inputs, {**label_rules(judged), "options": options}, out) as job:
        job.skipped = {"queries_without_negatives": found.lone} if found.lone else {}
        found = replace(found, out=Path(out))
        publish(found, job)
    return found


def _rescued(judged: JudgedPassages, qrels: str | None, options: RescueOptions) -> Rescued:
    answered = judged.answers.filter("answers").select("corpus", "query_id").unique()
    if not len(answered):
        raise InputError("no query has an answer", "there is nothing to rescue", where="survivorship rescue")
    counts = judged.answers.group_by("corpus", maintain_order=True).agg(pl.col("query_id").n_unique())
    kept = judged.answers.join(answered, on=["corpus", "query_id"], how="semi", maintain_order="left")
    judgments = kept.with_columns(pl.col("answers").cast(pl.Int32).alias("relevance")).drop("answers")
    instances = pl.DataFrame(list(_instances(judged, kept, options)), schema=RESCUED_SCHEMA, orient="row")
    merged = None if qrels is None else _merged(qrels, judgments)
    lone = 0
    if judged.items:
        with_none = kept.filter(~pl.col("answers")).select("corpus", "query_id").unique()
        lone = len(answered.join(with_none, on=["corpus", "query_id"], how="anti"))
    return Rescued(
        judgments=judgments,
        instances=instances,
        judged={str(corpus): int(number) for corpus, number in counts.iter_rows()},
        lone=lone,
        merged=merged,
        options=options,
        notes=judged.notes,
        inputs=(*judged.inputs, *inputs_of(qrels=qrels)),
    )


def _judged(pool: str | Path | None, judged: Labels, firsts: str | None) -> JudgedPassages:
    by_people = given_by_people(pool, judged)
    if by_people == (firsts is not None):
        remedy = "give `pool` with `labels`, or `firsts`"
        raise InputError("one source of answers is needed", remedy, where="survivorship rescue")
    if firsts is None:
        return judged_by_people(pool or "", judged)
    first = read_firsts(firsts)
    # A query that nobody answered has been judged too: it is there without a document.
    answers = first.select("corpus", "query_id", "doc_id", pl.col("doc_id").is_not_null().alias("answers")).unique(
        maintain_order=True
    )
    whole = answers.group_by("corpus", "query_id").agg(pl.col("answers").any().alias("some"))
    answers = answers.join(whole, on=["corpus", "query_id"], maintain_order="left")
    answers = answers.filter(pl.col("answers") | ~pl.col("some")).drop("some")
    nothing = pl.DataFrame(schema={"corpus": pl.String, "query_id": pl.String, "doc_id": pl.String, "rank": pl.Int32})
    notes = ("Only first answers are known: no texts, no passages judged to be no answer, no instances.",)
    return JudgedPassages(nothing, answers, {}, notes, (input_of("firsts", firsts),))


def _instances(judged: JudgedPassages, kept: pl.DataFrame, options: RescueOptions) -> Iterator[tuple[Any, ...]]:
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
        raise OptionError("qrels", "judgments of several corpora", "rescue one corpus at a time")
    survived = read_qrels_frame(qrels)
    again = judgments.filter(pl.col("query_id").is_in(survived["topic_id"].unique().implode()))
    if len(again):
        fault = f"the rescued query '{again['query_id'][0]}' has judgments there"
        raise InputError(fault, "give the judgments of the queries that survived", where=qrels)
    return survived
