"""`truerank track candidates | validate | select-topics`: the runs of a track before they are analysed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from truerank.audits import track
from truerank.audits.track.faults import KINDS
from truerank.cli.console import JsonFlag, emit, note, pairs_option, progress

__all__ = ["candidates", "select_topics", "validate"]

Runs = Annotated[list[str], typer.Option("--run", metavar="FILE", help="TREC runs; repeat for several.")]
Topics = Annotated[str | None, typer.Option("--topics", metavar="SRC", help="The topics of the track.")]


def candidates(
    run: Annotated[str, typer.Option(metavar="FILE", help="The first-stage run.")],
    out: Annotated[
        Path, typer.Option("--out", metavar="FILE", help="The candidates; the name says compression and format.")
    ],
    k: Annotated[int, typer.Option("--k", "-k", help="Results for each topic.")] = 100,
    topics: Topics = None,
    form: Annotated[
        Literal["run", "tsv", "jsonl", "pairs"] | None,
        typer.Option("--format", help="A TREC run, a table, JSON lines, or topic TAB document."),
    ] = None,
    ties: Annotated[
        Literal["trec_eval", "ascending", "rank"], typer.Option(help="How documents with equal scores are ordered.")
    ] = "trec_eval",
    tag: Annotated[
        str | None, typer.Option(help="The tag of the run that is written, in place of the input's.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Writes the first k results of each topic, from which a track's rerank subtask starts.

    Ranks are contiguous from 1. With --topics, results for other topics are left out, topics without results are
    named, and a table or JSON lines carry the query. Topics with fewer than k results are named. Beside the file
    stands `FILE.manifest.json`.

    Examples:

        truerank track candidates --run bm25.run.gz --k 100 --out top100.run.gz

        truerank track candidates --run bm25.run --k 1000 --topics topics.tsv --out top1000.tsv
    """
    with progress() as shown:
        result = track.candidates(run, out, k=k, ties=ties, topics=topics, form=form, tag=tag, progress=shown)
    emit(result.text(), result.json(), as_json)
    note(f"candidates: {result.out}")


def validate(
    run: Runs,
    topics: Topics = None,
    qrels: Annotated[
        str | None, typer.Option(metavar="SRC", help="Judgments; without --topics their topics are expected.")
    ] = None,
    max_results: Annotated[int, typer.Option(help="Results allowed for each topic.")] = 1000,
    candidates: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="What a rerank run may hold: a run, topic TAB document, or JSON lines."),
    ] = None,
    docs_ids: Annotated[str | None, typer.Option(metavar="FILE", help="The ids of the collection, one a line.")] = None,
    tag_pattern: Annotated[str | None, typer.Option(metavar="REGEX", help="What the whole tag has to match.")] = None,
    max_tag: Annotated[int, typer.Option(help="Characters allowed in a tag.")] = 20,
    cap: Annotated[int, typer.Option(help="Faults shown of each kind and run; all are counted; 0 shows all.")] = 20,
    level: Annotated[
        list[str],
        typer.Option(
            metavar="KIND=LEVEL", help=f"Count a kind of fault as error, warning or off. Kinds: {', '.join(KINDS)}."
        ),
    ] = [],  # noqa: B006
    fail_on: Annotated[
        Literal["error", "warning", "never"], typer.Option(help="Exit with 1 if there is such a fault.")
    ] = "error",
    as_json: JsonFlag = False,
) -> None:
    """Checks runs as a track would before it accepts them, and names every fault with its line.

    Each fault is one line, `file:line: fault. remedy. [level kind]`. Exit code: 0 if there is no error, 1 if there
    is (see --fail-on), 2 where a file cannot be read to its end.

    Examples:

        truerank track validate --run mine.run --topics topics.tsv

        truerank track validate --run rerank.run.gz --candidates top100.run.gz --max-results 100 --json

        truerank track validate --run a.run --run b.run --docs-ids ids.txt.gz --level missing-topic=warning
    """
    with progress() as shown:
        result = track.validate(
            run,
            topics=topics,
            qrels=qrels,
            candidates=candidates,
            docs_ids=docs_ids,
            limits=track.Limits(max_results=max_results, tag_pattern=tag_pattern, max_tag=max_tag),
            cap=cap,
            levels=pairs_option(level, "--level"),
            progress=shown,
        )
    emit(result.text(), result.json(), as_json)
    result.require()
    if result.fails(fail_on):
        raise typer.Exit(1)


def select_topics(
    run: Runs,
    qrels: Annotated[str, typer.Option(metavar="SRC", help="The sparse judgments.")],
    low: Annotated[float, typer.Option(help="A topic is eligible if its median lies above this")] = 0.0,
    high: Annotated[float, typer.Option(help="and not above this.")] = 0.5,
    n: Annotated[int | None, typer.Option("--n", "-n", help="Draw so many of the eligible topics.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the draw.")] = 0,
    cutoff: Annotated[int, typer.Option(help="Results that the reciprocal rank looks at; 0 for all.")] = 10,
    ties: Annotated[
        Literal["trec_eval", "ascending", "rank"],
        typer.Option(help="rank: MS MARCO's official rules, by the rank column; else by score, ties ordered so."),
    ] = "rank",
    topics: Topics = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="The chosen topics; the table stands beside it.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Chooses the topics that are worth judging: their median reciprocal rank over all runs is above 0, at most 0.5.

    Prints every topic with its median, the number of runs that found something, the best and the median rank, and
    whether it was chosen or why not.

    Examples:

        truerank track select-topics --run a.run --run b.run --run c.run --qrels sparse.qrels

        truerank track select-topics --run a.run --run b.run --qrels sparse.qrels --topics topics.tsv --n 52
        --out judged.tsv
    """
    result = track.select_topics(
        run,
        qrels,
        low=low,
        high=high,
        n=n,
        seed=seed,
        cutoff=cutoff or None,
        ties=ties,
        topics=topics,
        out=out,
    )
    emit(result.text(), result.json(), as_json)
