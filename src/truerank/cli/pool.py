"""`truerank pool …`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from truerank.audits import reusability
from truerank.audits.reusability.pools.bandit import Method
from truerank.cli import pool_simulate
from truerank.cli.console import JsonFlag, emit, progress
from truerank.errors import InputError
from truerank.judging.tables import Form, show

__all__ = ["app"]

app = typer.Typer(help="Do my judgments rank systems fairly, also new ones?", no_args_is_help=True)
app.command("simulate", help=pool_simulate.SIMULATE_HELP)(pool_simulate.simulate)

_BUILD_HELP = """
Builds pools over runs, and the batches in which they are judged.

The depth method takes the first documents of every run; move-to-front and maxmean (the bandit of the Common Core track)
follow what is found and need judgments: qrels, or a store, where the documents to judge next are written. Documents of
sparse judgments are added. Batches are items for `judge new` where documents and topics are given, else runs.

Examples:

    truerank pool build --run runs/a1.run --run runs/b1.run --team-prefix _ --out pool/

    truerank pool build --run runs/a1.run --run runs/b1.run --metadata teams.tsv --sparse clicks.qrels --topics t.tsv
    --docs docs.jsonl --assessors ann,bob --out pool/

    truerank judge new judged --scheme relevance-documents --items pool/batches/ann.jsonl --annotators ann --order given

    truerank pool build --run runs/a1.run --run runs/b1.run --method maxmean --judgments judged --batch 10 --out next/
"""


@app.command("build", help=_BUILD_HELP)
def build(
    run: Annotated[list[str], typer.Option("--run", metavar="FILE", help="TREC runs; repeat for several.")],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for pools, tables, batches, manifest.")],
    depth: Annotated[
        int | None, typer.Option(help="Documents of each run (default: 10; 100 with the other methods).")
    ] = None,
    sparse: Annotated[
        str | None, typer.Option(metavar="SRC", help="Sparse judgments whose documents are added.")
    ] = None,
    metadata: Annotated[list[str], typer.Option(metavar="FILE", help="Tables of run and team.")] = [],  # noqa: B006
    team_prefix: Annotated[
        str | None, typer.Option(metavar="SIGN", help="A run's name up to this sign is its team's.")
    ] = None,
    topics: Annotated[str | None, typer.Option(metavar="SRC", help="The topics that are pooled.")] = None,
    subset: Annotated[bool, typer.Option("--subset", help="Pass over topics of runs that are not among them.")] = False,
    docs: Annotated[str | None, typer.Option(metavar="SRC", help="The collection, for batches with texts.")] = None,
    method: Annotated[Method, typer.Option(help="How documents are chosen.")] = "depth",
    judgments: Annotated[str | None, typer.Option(metavar="SRC", help="Qrels or a store: what is judged.")] = None,
    relevant_from: Annotated[int, typer.Option(help="The lowest grade that counts as relevant.")] = 1,
    budget: Annotated[
        int | None, typer.Option(help="Documents of a topic, with move-to-front and maxmean (default: as at depth 10).")
    ] = None,
    fading: Annotated[float, typer.Option(help="Of maxmean: what earlier documents of a run weigh; 1 for all.")] = 1.0,
    batch: Annotated[int, typer.Option(help="With a store: documents of a topic to judge next.")] = 10,
    assessors: Annotated[str, typer.Option(metavar="A,B", help="Who judges; topics are shared out.")] = "annotator",
    seed: Annotated[int, typer.Option(help="Of ties between runs.")] = 0,
    as_json: JsonFlag = False,
) -> None:
    """Builds pools over runs."""
    names = tuple(name.strip() for name in assessors.split(",") if name.strip())
    options = reusability.PoolOptions(depth, method, budget, fading, relevant_from, batch, seed, names)
    sources = reusability.PoolSources(topics, subset, sparse, judgments, docs, tuple(metadata), team_prefix)
    with progress() as shown:
        found = reusability.build(run, out, sources=sources, options=options, progress=shown)
    emit(found.text(), found.json(), as_json)


_TOPICS_HELP = """
Says which topics are kept, and why not the others.

From qrels, from a store of relevance judgments, or from a table with one row per topic: topic, relevant and judged, or
TASK_relevant and TASK_judged for each of several tasks. A topic is kept with enough relevant documents and not too
large a share of them: the track's rule is 3 and 0.6.

Examples:

    truerank pool topics judged.csv

    truerank pool topics judged.csv --qrels doc=documents.qrels --qrels passage=passages.qrels --relevant-from passage=2

    truerank pool topics track.qrels --max-ratio none --format latex
"""


@app.command("topics", help=_TOPICS_HELP)
def topics(
    source: Annotated[str, typer.Argument(metavar="SRC", help="Qrels, a judging store, or a table of counts.")],
    qrels: Annotated[
        list[str], typer.Option(metavar="[TASK=]SRC", help="Judgments to compare the counts with; repeat for tasks.")
    ] = [],  # noqa: B006
    relevant_from: Annotated[
        list[str], typer.Option(metavar="[TASK=]GRADE", help="The lowest grade that counts as relevant; repeat.")
    ] = ["1"],  # noqa: B006
    min_relevant: Annotated[int, typer.Option(min=0, help="Relevant documents that a topic needs.")] = 3,
    max_ratio: Annotated[
        str, typer.Option(metavar="NUMBER|none", help="The largest share of relevant documents among the judged.")
    ] = "0.6",
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="The kept topics' ids, one a line.")] = None,
    form: Annotated[Form, typer.Option("--format", help="text, markdown, latex or csv.")] = "text",
    as_json: JsonFlag = False,
) -> None:
    """Says which topics are kept."""
    keeping = reusability.Keeping(min_relevant, None if max_ratio == "none" else _number(max_ratio, "--max-ratio"))
    grades = {task: _grade(value) for task, value in _by_task(relevant_from).items()}
    found = reusability.topics(source, qrels=_by_task(qrels), relevant_from=grades, keeping=keeping)
    if out is not None:
        found.write(out)
    emit(show((found.table(),), form), found.json(), as_json)


def _by_task(values: list[str]) -> dict[str, str]:
    """Options of the form [TASK=]VALUE."""
    return {value.partition("=")[0] if "=" in value else "": value.partition("=")[2] or value for value in values}


def _number(text: str, option: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise InputError(f"'{text}' is no number", "write one such as 0.6", where=option) from error


def _grade(text: str) -> int:
    if not text.lstrip("-").isdigit():
        raise InputError(f"'{text}' is no grade", "write a whole number, or TASK=NUMBER", where="--relevant-from")
    return int(text)
