"""`truerank train`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from truerank.cli.console import JsonFlag, emit, pairs_option, progress
from truerank.rankers.training import train as training

__all__ = ["train"]


def train(
    model: Annotated[
        str,
        typer.Option(
            metavar="NAME|DIR",
            help="knrm, pacrr, duet, hint, tk; or a checkpoint: a folder or Hugging Face id, monot5:t5-base, cedr:DIR.",
        ),
    ],
    instances: Annotated[
        str,
        typer.Option(metavar="SRC", help="JSONL, Parquet, CSV with query, relevant, nonrelevant; MS MARCO triples."),
    ],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="The folder of the trained ranker.")],
    recipe: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="truerank, capreolus, ance, cedr, colbert, monobert, pygaggle, survivorship or t5-original.",
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of weights, order of the instances, and dropout.")] = 0,
    changes: Annotated[
        list[str],
        typer.Option(
            "--set", metavar="NAME=VALUE", help="A value of the recipe (lr, batch) or of the model (max_query)."
        ),
    ] = [],  # noqa: B006
    vectors: Annotated[
        str, typer.Option(metavar="FILE|DIR|packaged", help="Word vectors of the small models.")
    ] = "packaged",
    topics: Annotated[
        str | None, typer.Option(metavar="SRC", help="Texts of queries that the instances name by id.")
    ] = None,
    docs: Annotated[
        str | None,
        typer.Option(
            metavar="SRC", help="Texts of documents that the instances name by id; words are counted in them."
        ),
    ] = None,
    field: Annotated[str, typer.Option(help="Of the topics: title, description or narrative.")] = "title",
    device: Annotated[
        str | None, typer.Option(help="cpu, cuda, cuda:1, mps; default: a GPU where there is one.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Trains a ranker: one epoch by a named recipe.

    On the CPU the same instances and seed give the same weights. Killed and called again, it continues.

    Examples:

        truerank train --model knrm --instances triples.tsv --seed 1 --out knrm-1/

        truerank train --model pacrr --recipe capreolus --vectors glove.6B.300d.txt --instances train.jsonl --out pacrr/

        truerank train --model monot5:t5-base --recipe pygaggle --set lr=1e-4 --instances train.parquet --out monot5/
    """
    with progress() as shown:
        trained = training.train(
            model,
            instances,
            out,
            recipe=recipe,
            seed=seed,
            vectors=vectors,
            topics=topics,
            docs=docs,
            field=field,
            changes=pairs_option(changes, "--set"),
            device=device,
            progress=shown,
        )
    emit(trained.text(), trained.json(), as_json)
