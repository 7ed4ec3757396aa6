"""`truerank track …`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from truerank.audits import track
from truerank.cli import track_runs
from truerank.cli.console import JsonFlag, emit, note, pairs_option
from truerank.measures import Policy

__all__ = ["app"]

app = typer.Typer(help="What do the runs of a track show?", no_args_is_help=True)
app.command("candidates")(track_runs.candidates)
app.command("validate")(track_runs.validate)
app.command("select-topics")(track_runs.select_topics)

_REPORT_HELP = """
Analyses the runs of a track: tables and figures by category, subtask, topic and measure.

Give run files with judgments, or, where only mean scores exist, tables of them. `--metadata` names tables with one row
per run: its group, its subtask (fullrank or rerank) and its category, such as trad, nn or nnlm.

Examples:

    truerank track report --run runs/bm25.run --run runs/dense.run --qrels track.qrels --metadata runs.csv --out report/

    truerank track report --run a.run --run b.run --qrels track.qrels --sparse-qrels clicks.qrels --depth 100
    --collection docs.jsonl.gz --queries "Test queries=topics.tsv" --metadata runs.csv --out report/

    truerank track report --means printed.csv --means measures.csv --where task=docs --stated text.csv --out report/
"""


@app.command("report", help=_REPORT_HELP)
def report(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for page, tables, figures and manifest.")],
    run: Annotated[list[str], typer.Option("--run", metavar="FILE", help="TREC runs; repeat for several.")] = [],  # noqa: B006
    qrels: Annotated[str | None, typer.Option(metavar="SRC", help="Relevance judgments.")] = None,
    sparse_qrels: Annotated[
        str | None, typer.Option(metavar="SRC", help="Other judgments, one or few a topic, for RR (sparse).")
    ] = None,
    means: Annotated[
        list[str],
        typer.Option(metavar="FILE", help="Tables of mean scores, in the place of runs; the most trusted first."),
    ] = [],  # noqa: B006
    metadata: Annotated[
        list[str], typer.Option(metavar="FILE", help="Tables of run, group, subtask and category.")
    ] = [],  # noqa: B006
    where: Annotated[
        list[str], typer.Option(metavar="COLUMN=VALUE", help="Use only the rows of tables that hold this value.")
    ] = [],  # noqa: B006
    name: Annotated[str, typer.Option(help="What the track or task is called.")] = "",
    main: Annotated[str, typer.Option(help="The measure that runs are sorted by and compared with.")] = "nDCG@10",
    measures: Annotated[
        str | None,
        typer.Option(help="Further measures, separated by blanks (default: RR AP NCG@k R@k; of tables, all)."),
    ] = None,
    baseline_category: Annotated[
        str, typer.Option(metavar="NAME", help="The category that others are compared with.")
    ] = "trad",
    depth: Annotated[
        int | None, typer.Option(help="Score only this many results of each topic (default: all).")
    ] = None,
    rel: Annotated[int, typer.Option(help="The lowest grade that binary measures count as relevant.")] = 1,
    ties: Annotated[
        Literal["trec_eval", "ascending", "rank"], typer.Option(help="How documents with equal scores are ordered.")
    ] = "trec_eval",
    missing: Annotated[
        Literal["default", "skip", "fail"], typer.Option(help="What a topic counts that a run lacks.")
    ] = "default",
    collection: Annotated[
        list[str], typer.Option(metavar="[NAME=]SRC", help="Documents to count: a file, a folder, irds:ID.")
    ] = [],  # noqa: B006
    queries: Annotated[
        list[str], typer.Option(metavar="[NAME=]SRC", help="Queries to count; repeat for training and test.")
    ] = [],  # noqa: B006
    also_qrels: Annotated[
        list[str], typer.Option(metavar="[NAME=]SRC", help="Further judgments to count, such as those for training.")
    ] = [],  # noqa: B006
    topics: Annotated[
        str | None, typer.Option(metavar="SRC", help="Topics whose titles name the rows of the figures by topic.")
    ] = None,
    stated: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Figures that a text states (statement, value), to be compared."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the map of runs.")] = 0,
    perplexity: Annotated[
        float | None, typer.Option(help="Of the map of runs (default: 30, at most a third of the other runs).")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Analyses the runs of a track."""
    options = track.ReportOptions(
        name=name,
        main=main,
        measures=measures,
        baseline=baseline_category,
        where=pairs_option(where, "--where"),
        policy=Policy(ties=ties, missing=missing, depth=depth, rel=rel),
        seed=seed,
        perplexity=perplexity,
    )
    result = track.report(
        out,
        qrels=qrels,
        runs=run,
        sparse_qrels=sparse_qrels,
        means=means,
        metadata=metadata,
        collection=collection,
        queries=queries,
        also_qrels=also_qrels,
        topics=topics,
        stated=stated,
        options=options,
    )
    emit(result.text(), result.json(), as_json)
    note(f"report: {out / 'report.html'}")
