"""`truerank compare`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from truerank.cli.console import JsonFlag, emit
from truerank.errors import InputError
from truerank.measures.comparison_report import ComparisonReport, comparison_report
from truerank.measures.method import Family, Method
from truerank.measures.policy import Policy

__all__ = ["compare"]


def compare(
    qrels: Annotated[str | None, typer.Option(metavar="SRC", help="Relevance judgments.")] = None,
    run: Annotated[list[str], typer.Option("--run", metavar="FILE", help="TREC runs; repeat for several.")] = [],  # noqa: B006
    evaluation: Annotated[
        list[str],
        typer.Option(
            "--evaluation",
            metavar="DIR",
            help="Instead of --qrels and --run: what 'evaluate --out' wrote. Twice: the order of the runs between two "
            "conditions.",
        ),
    ] = [],  # noqa: B006
    also: Annotated[
        list[str], typer.Option("--also", metavar="DIR", help="Further evaluations whose runs take part.")
    ] = [],  # noqa: B006
    baseline: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The run that the others are compared with, or an evaluation whose runs of the same names they are "
            "compared with; without it, all pairs.",
        ),
    ] = None,
    measures: Annotated[
        str | None, typer.Option(help="Separated by blanks [default: nDCG@10 P@1, or all of the evaluation].")
    ] = None,
    test: Annotated[
        Literal["paired-t", "welch", "equal-variance-t", "wilcoxon", "randomisation", "unpaired-randomisation"],
        typer.Option(help="The test; welch, equal-variance-t and unpaired-randomisation allow different topics."),
    ] = "paired-t",
    correction: Annotated[
        Literal["bonferroni", "holm", "bh", "none"],
        typer.Option(help="For the number of comparisons; bh is Benjamini–Hochberg."),
    ] = "bonferroni",
    family: Annotated[
        str, typer.Option(metavar="measure|all|N", help="What is corrected for: comparisons by one measure, by all, N.")
    ] = "measure",
    alpha: Annotated[float, typer.Option(help="The level; intervals have the confidence 1 − alpha.")] = 0.05,
    effect_size: Annotated[
        Literal["dz", "dav", "ds", "gz", "gav", "gs"] | None,
        typer.Option(help="Cohen's d or Hedges' g [default: dz, unpaired ds]."),
    ] = None,
    zeros: Annotated[
        Literal["wilcox", "pratt", "zsplit"], typer.Option(help="What the Wilcoxon test does with equal scores.")
    ] = "wilcox",
    permutations: Annotated[int, typer.Option(help="Draws of the randomisation test.")] = 100_000,
    bootstrap: Annotated[
        Literal["percentile", "bca"] | None,
        typer.Option(help="Intervals by the bootstrap instead of the t distribution."),
    ] = None,
    resamples: Annotated[int, typer.Option(help="Draws of the bootstrap.")] = 10_000,
    seed: Annotated[int, typer.Option(help="Seed of permutations and bootstrap.")] = 0,
    tie: Annotated[float, typer.Option(help="Differences by topic up to this are ties.")] = 1e-9,
    per_topic: Annotated[
        str | None, typer.Option("--per-topic", metavar="RUN", help="Also this run against the baseline by topic.")
    ] = None,
    tau: Annotated[
        Literal["a", "b"], typer.Option(help="Variant of Kendall's τ between two conditions; b accounts for ties.")
    ] = "b",
    ties: Annotated[
        Literal["trec_eval", "ascending", "rank"], typer.Option(help="How documents with equal scores are ordered.")
    ] = "trec_eval",
    missing: Annotated[
        Literal["default", "skip", "fail"], typer.Option(help="What a topic scores that a run lacks.")
    ] = "default",
    depth: Annotated[int | None, typer.Option(help="Score only so many results of each topic.")] = None,
    rel: Annotated[int, typer.Option(help="The lowest grade that binary measures count as relevant.")] = 1,
    form: Annotated[
        Literal["text", "markdown", "latex", "csv"], typer.Option("--format", help="How the tables are printed.")
    ] = "text",
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Write the tables and JSON here too.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Compares runs with a baseline or with each other: differences, tests, and what survives the correction.

    Every difference comes with its interval, p, corrected p, effect size, wins and losses by topic, and the smallest
    difference that so many topics can show. Of two evaluations the order of the runs is compared: pairs that change
    places, Kendall's τ, the largest drop in rank.

    Examples:

        truerank compare --qrels dl19.qrels --run bm25.run --run monot5.run --baseline bm25

        truerank compare --qrels dl19.qrels --run bm25.run --run monot5.run --measures "nDCG@10 AP(rel=2)"
        --test randomisation --correction holm --out comparison/

        truerank compare --evaluation without-leakage/ --evaluation with-leakage/

        truerank compare --evaluation depth-1/ --also full/ --baseline full --test welch
    """
    report = comparison_report(
        qrels=qrels,
        runs=run,
        evaluations=evaluation,
        also=also,
        baseline=baseline,
        measures=measures,
        policy=Policy(ties=ties, missing=missing, depth=depth, rel=rel),
        method=Method(
            test=test,
            correction=correction,
            alpha=alpha,
            family=_family(family),
            effect=effect_size,
            zeros=zeros,
            permutations=permutations,
            bootstrap=bootstrap,
            resamples=resamples,
            seed=seed,
            tie=tie,
        ),
        per_topic=per_topic,
        tau=tau,
    )
    if out is not None:
        report.save(out)
    emit(_shown(report, form), report.json(), as_json)


def _family(text: str) -> Family:
    if text in ("measure", "all"):
        return "all" if text == "all" else "measure"
    try:
        return int(text)
    except ValueError as error:
        raise InputError(f"unknown family '{text}'", "measure, all or a number", where="--family") from error


def _shown(report: ComparisonReport, form: Literal["text", "markdown", "latex", "csv"]) -> str:
    if form == "text":
        return report.text()
    return "\n".join(getattr(table, form)() for table in report.tables())
