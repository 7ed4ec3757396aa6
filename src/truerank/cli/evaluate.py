"""`truerank evaluate`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from truerank import measures as scoring
from truerank.cli.console import JsonFlag, emit, note
from truerank.measures.results import Evaluation

__all__ = ["evaluate"]


def evaluate(
    qrels: Annotated[str, typer.Option(metavar="SRC", help="Relevance judgments: a path or irds:ID.")],
    run: Annotated[list[str], typer.Option("--run", metavar="FILE", help="TREC runs; repeat for several.")],
    measures: Annotated[
        str, typer.Option(help="Measures of ir_measures, NCG@k, MFR, HMFR, RR_MSMARCO, separated by blanks.")
    ] = "nDCG@10 P@1",
    ties: Annotated[
        Literal["trec_eval", "ascending", "rank"],
        typer.Option(
            help="Order of equal scores: trec_eval (32-bit scores, document id descending), document id ascending, "
            "or the rank column."
        ),
    ] = "trec_eval",
    missing: Annotated[
        Literal["default", "skip", "fail"],
        typer.Option(help="A topic that a run lacks scores as an empty ranking, is left out, or is an error."),
    ] = "default",
    depth: Annotated[int | None, typer.Option(help="Score only so many results of each topic.")] = None,
    rel: Annotated[int, typer.Option(help="The lowest grade that binary measures without rel= count as relevant.")] = 1,
    sort: Annotated[
        str | None, typer.Option(metavar="MEASURE", help="Order the runs by this measure, the best first.")
    ] = None,
    per_topic: Annotated[bool, typer.Option("--per-topic", help="Also the scores of every topic.")] = False,
    form: Annotated[
        Literal["text", "markdown", "latex", "csv"], typer.Option("--format", help="How the tables are printed.")
    ] = "text",
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Write per_topic.parquet, summary.json and manifest.json."),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Scores runs against relevance judgments, under policies that are printed with the scores.

    Means are over the topics of the judgments. A run is named by its file without .run, .txt and .gz.

    Examples:

        truerank evaluate --qrels robust04.qrels --run bm25.run --run monot5.run.gz --measures "nDCG@10 P@1 AP MFR"

        truerank evaluate --qrels dl19-passage.qrels --run monot5.run --rel 2 --measures "nDCG@10 AP P(rel=3)@10"

        truerank evaluate --qrels irds:cord19/trec-covid --run a.run --run b.run --sort nDCG@10 --format latex
        --out evaluation/
    """
    policy = scoring.Policy(ties=ties, missing=missing, depth=depth, rel=rel)
    result = scoring.evaluate(qrels, run, measures, policy)
    if sort is not None:
        result = result.sorted(sort)
    if out is not None:
        result.save(out)
        note(f"scores by topic: {out / 'per_topic.parquet'}")
    emit(_shown(result, form, per_topic), result.json(per_topic=per_topic), as_json)


def _shown(result: Evaluation, form: Literal["text", "markdown", "latex", "csv"], per_topic: bool) -> str:
    tables = [result.table(), *([result.topic_table()] if per_topic else [])]
    return "\n".join(getattr(table, form)() for table in tables)
