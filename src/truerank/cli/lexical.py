"""The commands of first-stage retrieval: `index`, `search`, `tune`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from truerank import lexical
from truerank.cli.console import JsonFlag, emit, note, pairs_option, progress
from truerank.errors import InputError

__all__ = ["index", "search", "tune"]

PresetName = Literal["anserini", "terrier", "track-documents", "track-passages"]
ModelName = Literal["bm25", "ql", "rm3", "axiomatic", "prf"]

IndexFolder = Annotated[str, typer.Option("--index", metavar="DIR", help="The folder that 'index --out' wrote.")]
TopicsSource = Annotated[str, typer.Option("--topics", metavar="SRC", help="Topics: a path, irds:ID or hf:ORG/NAME.")]
TopicField = Annotated[
    str, typer.Option("--field", help="Of the topics: title, description, narrative, or several joined by +.")
]
Weights = Annotated[
    list[str],
    typer.Option("--weights", metavar="FIELD=NUMBER", help="Weights of the index's fields; fields not named weigh 0."),
]
Parameters = Annotated[
    list[str],
    typer.Option("--set", metavar="NAME=VALUE", help="A parameter in place of the preset's; base.NAME of the base."),
]
Depth = Annotated[int, typer.Option("-k", help="Documents for each topic at most.")]


def index(
    source: Annotated[str, typer.Argument(metavar="SRC", help="Documents: a path, irds:ID or hf:ORG/NAME.")],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="The folder of the index.")],
    preset: Annotated[PresetName, typer.Option(help="Whose analyser is used.")] = "anserini",
    tokeniser: Annotated[
        Literal["lucene", "alphanumeric", "letters", "terrier", "whitespace"] | None,
        typer.Option(help="In place of the preset's tokeniser."),
    ] = None,
    stopwords: Annotated[
        str | None, typer.Option(metavar="none|lucene|grammar|FILE", help="In place of the preset's list.")
    ] = None,
    stemmer: Annotated[
        Literal["none", "porter", "english", "krovetz"] | None, typer.Option(help="In place of the preset's stemmer.")
    ] = None,
    fields: Annotated[
        str,
        typer.Option(metavar="NAME[=PART+PART],…", help="Fields, of url, title and body; contents is title+body."),
    ] = "contents",
    workers: Annotated[int, typer.Option(help="Processes that analyse documents.")] = 1,
    strict: Annotated[bool, typer.Option("--strict", help="Bytes that are not UTF-8 are an error.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Builds an index of a collection of documents.

    Postings are sorted on the disk, so that memory does not grow with them. The index appears whole or not at all.

    Examples:

        truerank index docs.trec.gz --out index/

        truerank index irds:msmarco-document --fields url,title,body --out index/

        truerank index corpus.jsonl --preset terrier --stopwords terrier.txt --out index/
    """
    analyser = lexical.analyser_of(preset, tokeniser=tokeniser, stopwords=stopwords, stemmer=stemmer)
    with progress() as shown:
        built = lexical.build_index(
            source, out, analyser=analyser, fields=fields.split(","), workers=workers, strict=strict, progress=shown
        )
    emit(built.text(), built.json(), as_json)


def search(
    index: IndexFolder,
    topics: TopicsSource,
    out: Annotated[Path, typer.Option("--out", metavar="RUN", help="The run; .gz compresses it.")],
    model: Annotated[ModelName | None, typer.Option(help="Default: the preset's usual model.")] = None,
    preset: Annotated[PresetName, typer.Option(help="Whose parameters are used.")] = "anserini",
    parameters: Parameters = [],  # noqa: B006
    k: Depth = 1000,
    field: TopicField = "title",
    weights: Weights = [],  # noqa: B006
    any_analyser: Annotated[
        bool, typer.Option("--any-analyser", help="Search an index whose analyser is not the preset's.")
    ] = False,
    tag: Annotated[str | None, typer.Option(help="Last column of the run; default: preset and model.")] = None,
    workers: Annotated[int, typer.Option(help="Processes that search.")] = 1,
    as_json: JsonFlag = False,
) -> None:
    """Retrieves the best documents for each topic and writes a TREC run.

    Scores have six decimals; documents with equal ones stand in the ascending order of their ids.

    Examples:

        truerank search --index index/ --topics topics.trec --model rm3 --out bm25-rm3.run

        truerank search --index index/ --topics topics.trec --set k1=1.2 --set b=0.75 --field description --out d.run
    """
    opened = lexical.open_index(index)
    if not any_analyser:
        lexical.require_analyser(opened, preset)
    chosen = lexical.model_of(preset, model or "", pairs_option(parameters, "--set"))
    name = tag or f"{preset}-{chosen.json()['model']}"
    with progress() as shown:
        found = lexical.search(
            opened,
            topics,
            chosen,
            k=k,
            topic_field=field,
            weights=_numbers(weights, "--weights"),
            tag=name,
            workers=workers,
            progress=shown,
        )
    written = found.write(out)
    emit(found.text(), {**found.json(), "run": str(written)}, as_json)
    note(f"run: {written}")


def tune(
    index: IndexFolder,
    topics: TopicsSource,
    qrels: Annotated[str, typer.Option("--qrels", metavar="SRC", help="Relevance judgments.")],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for base.run, tuned.run, tuning.json.")],
    model: Annotated[ModelName | None, typer.Option(help="Default: the preset's usual model.")] = None,
    preset: Annotated[PresetName, typer.Option(help="Whose parameters are the base.")] = "anserini",
    parameters: Parameters = [],  # noqa: B006
    grid: Annotated[
        list[str], typer.Option("--grid", metavar="NAME=VALUE,VALUE", help="Values to try; repeat for each parameter.")
    ] = [],  # noqa: B006
    measure: Annotated[str, typer.Option(help="What is maximised.")] = "nDCG@10",
    folds: Annotated[str, typer.Option(metavar="K|FILE", help="How many folds, or a file of them.")] = "5",
    seed: Annotated[int, typer.Option(help="Of the division into folds.")] = 0,
    k: Depth = 1000,
    field: TopicField = "title",
    weights: Weights = [],  # noqa: B006
    any_analyser: Annotated[
        bool, typer.Option("--any-analyser", help="Search an index whose analyser is not the preset's.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Chooses a model's parameters by cross-validation over the topics.

    Each fold's topics are searched with the parameters that are best on the other folds; `tuned.run` joins them.

    Examples:

        truerank tune --index index/ --topics topics.trec --qrels qrels.txt --measure AP --out tuned/

        truerank tune --index index/ --topics topics.trec --qrels qrels.txt --grid k1=0.9,1.2 --grid b=0.4,0.75
        --out tuned/
    """
    opened = lexical.open_index(index)
    if not any_analyser:
        lexical.require_analyser(opened, preset)
    tried: dict[str, list[str]] = {name: values.split(",") for name, values in pairs_option(grid, "--grid").items()}
    with progress() as shown:
        tuning = lexical.tune(
            opened,
            topics,
            qrels,
            model=model or "",
            preset=preset,
            parameters=pairs_option(parameters, "--set"),
            grid=tried or None,
            measure=measure,
            folds=int(folds) if folds.isdigit() else folds,
            seed=seed,
            k=k,
            topic_field=field,
            weights=_numbers(weights, "--weights"),
            progress=shown,
        )
    tuning.save(out)
    emit(tuning.text(), tuning.json(), as_json)
    note(f"runs: {out / 'base.run'}, {out / 'tuned.run'}")


def _numbers(values: list[str], option: str) -> dict[str, Any]:
    try:
        return {name: float(value) for name, value in pairs_option(values, option).items()}
    except ValueError as error:
        raise InputError("a weight that is not a number", "write FIELD=NUMBER", where=option) from error
