"""`truerank experiment report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from truerank.cli.console import JsonFlag, emit, note
from truerank.experiments.report import ReportOptions
from truerank.experiments.report import report as make_report
from truerank.measures import Policy, Testing

__all__ = ["report"]


def report(
    results: Annotated[Path, typer.Argument(metavar="DIR", help="What 'experiment run --out' wrote, finished or not.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Of the report [default: report/ in the grid's folder]."),
    ] = None,
    kind: Annotated[
        Literal["leakage", "transfer", "survivorship", "pilot"] | None,
        typer.Option(help="Which tables and figures [default: as the design says]."),
    ] = None,
    measures: Annotated[
        str | None,
        typer.Option(help="Separated by blanks; the first is that of figures and findings [default: the design's]."),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(metavar="LABEL", help="What the other training sets are compared with [default: the design's]."),
    ] = None,
    choose: Annotated[
        Literal["sizes", "runs"] | None,
        typer.Option(
            help="What cross-validation chooses between: training sizes, each the mean over its seeds, or single "
            "trainings [default: sizes; transfer: runs]."
        ),
    ] = None,
    memorisation_size: Annotated[
        int | None,
        typer.Option(
            "--memorisation-size",
            metavar="N",
            help="Training size, in instances, of the tables on memorisation [default: the design's, or the largest].",
        ),
    ] = None,
    pilot_size: Annotated[
        int | None,
        typer.Option(
            "--pilot-size",
            metavar="N",
            help="Training size of the pilot table [default: the largest shared one].",
        ),
    ] = None,
    test: Annotated[
        Literal["paired-t", "wilcoxon", "randomisation"], typer.Option(help="Of the differences to the baseline.")
    ] = "paired-t",
    correction: Annotated[
        Literal["bonferroni", "holm", "bh", "none"],
        typer.Option(help="For the number of comparisons by each measure; bh is Benjamini–Hochberg."),
    ] = "bonferroni",
    alpha: Annotated[float, typer.Option(help="The level; intervals have the confidence 1 − alpha.")] = 0.05,
    resamples: Annotated[int, typer.Option(help="Draws of the bootstrap over topics.")] = 10_000,
    seed: Annotated[int, typer.Option(help="Seed of the draws.")] = 0,
    ties: Annotated[
        Literal["trec_eval", "ascending", "rank"], typer.Option(help="How documents with equal scores are ordered.")
    ] = "ascending",
    rel: Annotated[
        int | None,
        typer.Option(help="The lowest grade that binary measures count as relevant [default: the design's]."),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Makes tables, figures and a page of what a grid has found so far.

    Effectiveness by training set, cross-validated, with tests, intervals over topics and the spread over seeds; models
    whose order changes; the effect by training size; what was memorised of leaked documents; the models without the
    fault. What is not finished is named.

    Examples:

        truerank experiment report results/

        truerank experiment report results/ --measures "nDCG@10 RR" --memorisation-size 2000 --out report/

        truerank experiment report transfer-results/ --kind transfer --baseline T5_Min --json
    """
    found = make_report(
        results,
        out or results / "report",
        options=ReportOptions(
            kind=kind,
            measures=() if measures is None else (measures,),
            baseline=baseline,
            choose=choose,
            memorisation_size=memorisation_size,
            pilot_size=pilot_size,
            rel=rel,
            policy=Policy(ties=ties),
            method=Testing(
                significance=test, correction=correction, confidence=1 - alpha, resamples=resamples, seed=seed
            ),
        ),
    )
    emit(found.text(), found.json(), as_json)
    note(f"report: {(out or results / 'report') / 'report.html'}")
