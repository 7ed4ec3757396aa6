"""`truerank pool simulate`: would the collection rank systems fairly that were not pooled?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from truerank.audits import reusability
from truerank.cli.console import JsonFlag, emit, note, progress

__all__ = ["SIMULATE_HELP", "simulate"]

SIMULATE_HELP = """
Simulates the judging of a track with all teams and with each team left out, and says how new systems would be ranked.

Every trial judges the pools, then what active learning chooses, by the grades of --qrels; a document that is not there
is not relevant. The official qrels are those given, or what the track's procedure makes of all runs by the seed.
Systems unlike the runs (a sentence encoder, a latent space, queries led astray) are made from the collection, not
pooled, and ranked by the judgments: the verdict takes into account how they fare. Writes a report with a verdict in
words, tables as text, CSV, LaTeX and Markdown, figures, and all traces. Killed and called again, it continues.

Rules: track, heuristic:cap=1000, track:increment=0.5,bound=0.6, budget:400, MODULE:FUNCTION, FILE.py:FUNCTION.

Examples:

    truerank pool simulate --run runs/a1.run --run runs/b1.run --team-prefix _ --qrels judged.qrels --topics topics.tsv
    --docs docs.jsonl --out report/

    truerank pool simulate --run runs/a1.run --run runs/b1.run --metadata teams.tsv --qrels track.qrels --official
    track.qrels --topics topics.tsv --docs irds:msmarco-passage --relevant-from 2 --rule budget:500 --rule own.py:rule
    --work traces/ --out report/
"""


def simulate(
    run: Annotated[list[str], typer.Option("--run", metavar="FILE", help="TREC runs, not truncated; repeat.")],
    qrels: Annotated[str, typer.Option(metavar="SRC", help="What the simulated assessor says.")],
    topics: Annotated[str, typer.Option(metavar="SRC", help="The topics that the learner starts from.")],
    docs: Annotated[str, typer.Option(metavar="SRC", help="The collection.")],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for page, tables, figures and traces.")],
    metadata: Annotated[list[str], typer.Option(metavar="FILE", help="Tables of run and team.")] = [],  # noqa: B006
    team_prefix: Annotated[
        str | None, typer.Option(metavar="SIGN", help="A run's name up to this sign is its team's.")
    ] = None,
    subset: Annotated[bool, typer.Option("--subset", help="Pass over topics of runs without judgments.")] = False,
    sparse: Annotated[
        str | None, typer.Option(metavar="SRC", help="Sparse judgments whose documents are in every pool.")
    ] = None,
    official: Annotated[
        str | None, typer.Option(metavar="SRC", help="The track's qrels (default: made by --official-rule).")
    ] = None,
    trials: Annotated[int, typer.Option(help="Trials; their seeds follow the official one.")] = 10,
    seed: Annotated[int, typer.Option(help="Of the official judging.")] = 0,
    depth: Annotated[int, typer.Option(help="Documents of each run and topic in the pools.")] = 10,
    length: Annotated[int, typer.Option(help="Judgments of a trace at most.")] = 2500,
    share: Annotated[float, typer.Option(help="Of the collection that a trace holds at most.")] = 1.0,
    measures: Annotated[str, typer.Option(help="What runs are ranked by; the first one leads.")] = "AP P@10",
    rule: Annotated[
        list[str], typer.Option(metavar="RULE", help="Stopping rules beside the original size; repeat.")
    ] = list(reusability.DEFAULT_RULES),  # noqa: B006
    official_rule: Annotated[
        str, typer.Option(metavar="RULE", help="What makes the official qrels where none are given.")
    ] = "track",
    relevant_from: Annotated[int, typer.Option(help="The lowest grade that counts as relevant.")] = 1,
    field: Annotated[str, typer.Option(help="Of the topics: title, description, narrative, joined by +.")] = "title",
    unlike: Annotated[
        str,
        typer.Option(
            metavar="NAMES",
            help="Systems unlike the runs, made from the collection and tried without being pooled: "
            "dense, latent, lexical, feedback, joined by commas; auto (as the collection's size allows) or none.",
        ),
    ] = "auto",
    work: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where traces are kept for further simulations.")
    ] = None,
    engine: Annotated[str, typer.Option(help="local (processes of this machine), ray or ray:ADDRESS.")] = "local",
    workers: Annotated[int | None, typer.Option(min=1, help="Processes (default: one on every processor).")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Simulates the judging of a track with each team left out."""
    options = reusability.SimulationOptions(
        trials, seed, depth, length, share, measures, tuple(rule), official_rule, field,
        tuple(name.strip() for name in unlike.split(",")), reusability.LearnerOptions(relevant_from),
    )  # fmt: skip
    sources = reusability.SimulationSources(
        tuple(run), qrels, topics, docs, tuple(metadata), team_prefix, subset, sparse, official
    )
    with progress() as shown:
        found = reusability.simulate(
            sources,
            out,
            options=options,
            work=work,
            engine=reusability.trial_engine(engine, workers),
            progress=shown,
        )
    emit(found.text(), found.json(), as_json)
    note(f"report: {out / 'report.html'}")
