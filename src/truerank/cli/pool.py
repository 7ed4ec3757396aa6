"""`truerank pool …`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from truerank.audits import reusability
from truerank.cli.console import JsonFlag, emit
from truerank.errors import InputError
from truerank.judging.tables import Form, show

__all__ = ["app"]

app = typer.Typer(help="Do my judgments rank systems fairly, also new ones?", no_args_is_help=True)

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
