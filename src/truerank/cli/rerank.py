"""The command `rerank`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

import truerank
from truerank.cli.console import JsonFlag, emit, note, pairs_option, progress
from truerank.rankers.base import Runtime, spec_of

__all__ = ["rerank"]


def rerank(
    model: Annotated[
        str,
        typer.Option(
            "--model", metavar="NAME|DIR", help="KIND:PLACE, a saved ranker, a checkpoint, or a kind: see below."
        ),
    ],
    run: Annotated[Path, typer.Option("--run", metavar="FILE", help="A TREC run of any first stage.")],
    topics: Annotated[str, typer.Option("--topics", metavar="SRC", help="Topics: a path, irds:ID or hf:ORG/NAME.")],
    docs: Annotated[str, typer.Option("--docs", metavar="SRC", help="Documents: a path, irds:ID or hf:ORG/NAME.")],
    out: Annotated[Path, typer.Option("--out", metavar="RUN", help="The run; .gz compresses it.")],
    depth: Annotated[int, typer.Option(help="How many documents of each topic are reranked.")] = 100,
    passages: Annotated[
        Literal["first", "max"], typer.Option(help="Score of the first passage, or the largest of all.")
    ] = "first",
    policy: Annotated[
        str | None,
        typer.Option(
            metavar="whole|cast2021|cast2022|sliding:WORDS:STRIDE",
            help="How documents are cut. Default: whole with first, sliding:150:75 with max.",
        ),
    ] = None,
    cut: Annotated[bool, typer.Option("--cut", help="Leave out what was not reranked.")] = False,
    probabilities: Annotated[
        bool, typer.Option("--probabilities", help="monoT5: write probabilities instead of their logarithms.")
    ] = False,
    field: Annotated[
        str, typer.Option("--field", help="Of the topics: title, description, narrative, or several joined by +.")
    ] = "title",
    settings: Annotated[
        list[str], typer.Option("--set", metavar="NAME=VALUE", help="A setting of the model's kind.")
    ] = [],  # noqa: B006
    cache: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Keeps scores, so that no pair is scored twice.")
    ] = None,
    device: Annotated[
        str | None, typer.Option(help="cpu, cuda, cuda:1, mps; default: a GPU where there is one.")
    ] = None,
    precision: Annotated[
        Literal["fp32", "fp16", "bf16", "int8"],
        typer.Option(help="fp16 and bf16 on a GPU, int8 in OpenVINO; how far scores differ from fp32 is printed."),
    ] = "fp32",
    backend: Annotated[
        Literal["auto", "torch", "openvino"], typer.Option(help="OpenVINO runs cross- and bi-encoders on the CPU.")
    ] = "auto",
    threads: Annotated[int | None, typer.Option(help="Processors to use; default: all.")] = None,
    tag: Annotated[str | None, typer.Option(help="Last column of the run; default: the model's name.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Orders the first documents of each topic of a run by a ranker.

    Kinds: monobert, monot5, ance, colbert (PLACE is a folder or a Hugging Face id), bm25 (PLACE is an index). A kind
    alone opens its usual checkpoint. What is below the depth stays below, in its order. A job that was killed
    continues when it is run again.

    Examples:

        truerank rerank --model monot5 --run bm25.run --topics topics.trec --docs docs.jsonl.gz --out monot5.run

        truerank rerank --model monobert:models/ce --run bm25.run --topics irds:msmarco-document/trec-dl-2019
        --docs irds:msmarco-document --passages max --policy cast2022 --cache scores.sqlite --out ce.run
    """
    runtime = Runtime(device, precision, backend, threads)
    given = pairs_option(settings, "--set") | ({"probabilities": "true"} if probabilities else {})
    with progress() as shown:
        found = truerank.rerank(
            run,
            spec_of(model, runtime, given),
            topics,
            docs,
            depth=depth,
            passages=passages,
            policy=policy,
            cut=cut,
            topic_field=field,
            cache=cache,
            tag=tag,
            work=out.with_name(f".{out.name}.work"),
            progress=shown,
        )
    written = found.write(out)
    emit(found.text(), {**found.json(), "output": str(written)}, as_json)
    note(f"run: {written}")
