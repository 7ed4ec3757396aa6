"""`truerank pool serve`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from truerank.audits import reusability
from truerank.cli.console import JsonFlag, emit, note, progress
from truerank.cli.serving import AllowHosts, Annotators, Certificate, Host, Key, NewTokens, Port

__all__ = ["serve"]


def serve(
    store: Annotated[Path, typer.Argument(metavar="STORE", help="A store of a relevance scheme, see 'pool build'.")],
    docs: Annotated[str, typer.Option(metavar="SRC", help="The collection.")],
    stopping: Annotated[str, typer.Option(metavar="RULE", help="When a topic is judged enough.")] = "track",
    budget: Annotated[int | None, typer.Option(help="Judgments over all topics.")] = None,
    batch: Annotated[
        int | None, typer.Option(help="Documents between two trainings (default: 1, growing by a tenth).")
    ] = None,
    rel: Annotated[int, typer.Option(help="The lowest grade that counts as relevant.")] = 1,
    regularisation: Annotated[float, typer.Option(help="λ of the learner's loss.")] = 1e-4,
    seed: Annotated[int, typer.Option(help="Of the presumed non-relevant documents and of ties.")] = 0,
    work: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where the index is kept (default: STORE.collection).")
    ] = None,
    workers: Annotated[int, typer.Option(help="Processes that analyse documents.")] = 1,
    host: Host = "127.0.0.1",
    port: Port = 8000,
    annotator: Annotators = [],  # noqa: B006
    new_token: NewTokens = [],  # noqa: B006
    allow_host: AllowHosts = [],  # noqa: B006
    certificate: Certificate = None,
    key: Key = None,
    as_json: JsonFlag = False,
) -> None:
    """Serves a store in whose topics active learning goes on where the pool ends, until Ctrl-C.

    Everybody judges the pool of their topics first; then a model of all labels as they stand chooses what they judge
    next, in batches that grow, until the stopping rule ends the topic. The index of the collection is made once and
    kept beside the store. Rules: track, heuristic:cap=1000, budget:400, MODULE:FUNCTION, FILE.py:FUNCTION.

    Examples:

        truerank pool serve judged --docs docs.jsonl

        truerank pool serve judged --docs irds:msmarco-passage --rel 2 --stopping track:increment=0.5 --budget 12000
    """
    size = 1 if batch is None else batch
    learner = reusability.LearnerOptions(rel, regularisation=regularisation, batch=size, growing=batch is None)
    with progress() as shown:
        desk = reusability.serve(
            store, docs, rule=stopping, budget=budget, seed=seed, learner=learner, work=work, workers=workers,
            progress=shown, host=host, port=port, annotators=annotator, new_tokens=new_token,
            allow_hosts=allow_host, certificate=certificate, key=key,
        )  # fmt: skip
    emit(desk.text(), desk.json(), as_json)
    sys.stdout.flush()
    desk.run()
    note("ended; every confirmed label is kept")
