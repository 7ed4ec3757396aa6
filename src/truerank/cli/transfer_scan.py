"""`truerank transfer scan|describe|estimate|select|card`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from truerank.audits import transfer
from truerank.audits.transfer.scanning.options import DEFAULT_CUT_OFF, DEFAULT_FLOOR
from truerank.cli.console import JsonFlag, VotesOption, emit, note, pairs_option, progress
from truerank.rankers.base import RankerSpec, Runtime, spec_of

__all__ = ["card", "describe", "estimate", "scan", "select"]

ScanFolder = Annotated[str, typer.Argument(metavar="DIR", help="The folder that 'transfer scan --out' wrote.")]


def scan(
    version: Annotated[
        list[str],
        typer.Option(
            "--version",
            metavar="NAME=SRC",
            help="Versions of the collection: a path, irds:ID or hf:ORG/NAME; the judged one first.",
        ),
    ],
    qrels: Annotated[str, typer.Option(metavar="SRC", help="The judgments.")],
    topics: Annotated[str, typer.Option(metavar="SRC", help="The topics: a path, irds:ID or hf:ORG/NAME.")],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for scores, candidates and report.")],
    matched: Annotated[
        str | None, typer.Option(metavar="DIR", help="The folder that 'transfer match --out' wrote.")
    ] = None,
    by: Annotated[
        Literal["url", "id", "mapping"], typer.Option(help="Without --matched: how a document is found again.")
    ] = "url",
    mapping: Annotated[str | None, typer.Option(metavar="FILE", help="With --by mapping: a table of ids.")] = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            metavar="NAME|DIR",
            help="As for rerank; bm25 alone takes the judged version's statistics. Default: monoT5, 3B with a GPU.",
        ),
    ] = None,
    settings: Annotated[
        list[str], typer.Option("--set", metavar="NAME=VALUE", help="A setting of the model's kind.")
    ] = [],  # noqa: B006
    also: Annotated[
        list[str],
        typer.Option(
            "--with",
            metavar="NAME[,SETTING=VALUE…]",
            help="A further ranker, weighed together with --model by the curve; repeat for several.",
        ),
    ] = [],  # noqa: B006
    policy: Annotated[
        str, typer.Option(metavar="whole|cast2021|cast2022|sliding:WORDS:STRIDE", help="How documents are cut.")
    ] = "cast2021",
    probability: Annotated[
        Literal["auto", "exp", "logistic", "raw"],
        typer.Option(
            help="How scores become probabilities; auto: exp for monoT5, else a curve fitted to judged pairs."
        ),
    ] = "auto",
    given: Annotated[
        Literal["auto", "judged", "nothing"],
        typer.Option(help="Differences given that one version is relevant, as judged; auto: where a curve is fitted."),
    ] = "auto",
    cut_off: Annotated[float, typer.Option(help="A larger difference of probabilities is a candidate.")] = (
        DEFAULT_CUT_OFF
    ),
    floor: Annotated[
        float, typer.Option(help="Given that one version is relevant: the larger probability is at least this.")
    ] = DEFAULT_FLOOR,
    evidence: Annotated[
        Literal["scores", "texts", "both"],
        typer.Option(help="What names candidates: scores that fall apart, texts that lost what answered, or both."),
    ] = "both",
    percentile: Annotated[
        float | None, typer.Option(help="Instead: differences of scores above this percentile are candidates.")
    ] = None,
    pair: Annotated[
        list[str], typer.Option(metavar="A=B", help="Compare these two versions only; repeat for several.")
    ] = [],  # noqa: B006
    best: Annotated[
        list[str], typer.Option(metavar="NAME=A,B,…", help="In Figure 1, also the best of these versions.")
    ] = [],  # noqa: B006
    relevance: Annotated[int, typer.Option(help="Judgments from this grade on are looked at.")] = 1,
    field: Annotated[
        str, typer.Option("--field", help="Of the topics: title, description, narrative, or several joined by +.")
    ] = "title",
    first_stage: Annotated[
        str | None,
        typer.Option(metavar="RUN", help="Calibrate with its documents that are not relevant, not with other topics'."),
    ] = None,
    sampled: Annotated[int, typer.Option(help="How many documents calibrate at most.")] = 2000,
    items: Annotated[int, typer.Option(help="Documents of each data set to be judged (items.jsonl).")] = 100,
    seed: Annotated[int, typer.Option(help="Seed of the samples.")] = 0,
    cache: Annotated[
        str | None, typer.Option(metavar="FILE", help="Keeps scores, so that no pair is scored twice.")
    ] = None,
    engine: Annotated[
        str, typer.Option(metavar="local|ray[:ADDRESS]", help="Where the blocks are worked on.")
    ] = "local",
    block_size: Annotated[int, typer.Option(help="Judged documents scored, and saved, at a time.")] = 256,
    device: Annotated[
        str | None, typer.Option(help="cpu, cuda, cuda:1, mps; default: a GPU where there is one.")
    ] = None,
    precision: Annotated[
        Literal["fp32", "fp16", "bf16", "int8"], typer.Option(help="fp16 and bf16 on a GPU, int8 in OpenVINO.")
    ] = "fp32",
    backend: Annotated[
        Literal["auto", "torch", "openvino"], typer.Option(help="OpenVINO runs cross- and bi-encoders on the CPU.")
    ] = "auto",
    threads: Annotated[int | None, typer.Option(help="Processors to use; default: all.")] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Bytes that are not UTF-8 are an error.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Scores every version of the judged documents and finds those that one version answers and another does not.

    Documents are cut into passages; a document scores like its first passage (FirstP) and like its best one (MaxP).
    Candidates are what scores or texts name: a version that scores far lower, or lacks what answered the query.
    They get a class of reasons from the two texts: error page, redirect, truncated, content missing, content
    changed, boilerplate only, empty. A run that was killed continues when it is started again.

    Examples:

        truerank transfer scan --version V1=docs-2018.tsv.gz --version V2=docs-2021.jsonl.gz --qrels train.qrels
        --topics queries.tsv --out scan/

        truerank transfer scan --version old=old.jsonl --version new=new.jsonl --qrels qrels.txt --topics topics.trec
        --model bm25 --percentile 95 --out scan/

        truerank transfer scan --version old=old.jsonl --version new=new.jsonl --qrels qrels.txt --topics topics.trec
        --model bm25 --with ance:packaged --policy sliding:60:30 --out scan/
    """
    runtime = Runtime(device, precision, backend, threads)
    spec = None if model is None else spec_of(model, runtime, pairs_option(settings, "--set"))
    if spec is None and (settings or runtime != Runtime()):
        spec = transfer.default_ranker(runtime, pairs_option(settings, "--set"))
    options = transfer.ScanOptions(
        ranker=spec,
        also=tuple(_further(one, Runtime(device, threads=threads)) for one in also),
        policy=policy,
        probability=probability,
        given=given,
        cut_off=cut_off,
        floor=floor,
        evidence=evidence,
        percentile=percentile,
        pairs=tuple(pairs_option([one], "--pair").popitem() for one in pair),
        best={name: tuple(some.split(",")) for name, some in pairs_option(best, "--best").items()},
        relevance=relevance,
        topic_field=field,
        match=transfer.MatchOptions(match_by=by, mapping=mapping, strict=strict),
        first_stage=first_stage,
        sampled=sampled,
        items=items,
        seed=seed,
        cache=cache,
        engine=engine,
        block_size=block_size,
    )
    with progress() as shown:
        result = transfer.scan_versions(version, qrels, topics, out, options, matched=matched, progress=shown)
    emit(result.text(), result.json(), as_json)
    note(f"report: {out / 'report.html'}")


def _further(text: str, runtime: Runtime) -> RankerSpec:
    name, *settings = text.split(",")
    return spec_of(name, runtime, pairs_option(settings, "--with"))


def describe(
    folder: ScanFolder,
    version: Annotated[
        str | None, typer.Option(metavar="NAME", help="Whose URLs; default: the judged version's.")
    ] = None,
    form: Annotated[
        Literal["text", "markdown", "latex", "csv"], typer.Option("--format", help="How the table is printed.")
    ] = "text",
    as_json: JsonFlag = False,
) -> None:
    """Describes the documents of the data sets: URLs, the most similar set, the most frequent domain.

    Example:

        truerank transfer describe scan/
    """
    found = transfer.describe_sets(folder, version=version)
    emit(found.text() if form == "text" else getattr(found.table(), form)(), found.json(), as_json)


def estimate(
    folder: Annotated[
        str | None, typer.Argument(metavar="DIR", help="The folder that 'transfer scan --out' wrote.")
    ] = None,
    labels: Annotated[
        list[str], typer.Option("--labels", metavar="SRC", help="What people said: a judging store, or label files.")
    ] = [],  # noqa: B006
    counts: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Instead: labels counted already, a CSV of set, 00 … 12, documents, error."),
    ] = None,
    confidence: Annotated[float, typer.Option(help="Confidence of the intervals.")] = 0.95,
    votes: VotesOption = "majority",
    include_models: Annotated[
        bool, typer.Option("--include-models", help="Count labels of models like those of people.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Seed of the intervals by bands.")] = 0,
    form: Annotated[
        Literal["text", "markdown", "latex", "csv"], typer.Option("--format", help="How the table is printed.")
    ] = "text",
    as_json: JsonFlag = False,
) -> None:
    """Estimates how many judgments broke, from a judged sample of the data sets.

    Examples:

        truerank judge new versions.judged --scheme transfer --items scan/items.jsonl

        truerank transfer estimate scan/ --labels versions.judged

        truerank transfer estimate --counts table3.csv
    """
    found = transfer.estimate_errors(
        labels or None,
        folder,
        counts=counts,
        confidence=confidence,
        votes=votes,
        include_models=include_models,
        seed=seed,
    )
    emit(found.text() if form == "text" else getattr(found.table(), form)(), found.json(), as_json)


def select(
    folder: ScanFolder,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for a table of each strategy.")],
    strategy: Annotated[
        list[str], typer.Option("--strategy", metavar="NAME", help="max, min, bm25, random or version:NAME; repeat.")
    ] = ["max", "min", "bm25", "random"],  # noqa: B006
    data_set: Annotated[
        str | None, typer.Option("--data-set", metavar="NAME", help="Whose documents: 'V1>>V2 MaxP'; default: all.")
    ] = None,
    aggregation: Annotated[
        Literal["first", "max"] | None, typer.Option(help="Scores that max and min compare; default: of the set.")
    ] = None,
    size: Annotated[int | None, typer.Option(help="Instances: a row of the table is two. Default: all.")] = None,
    missing: Annotated[
        Literal["available", "judged", "skip"], typer.Option(help="What is done where a version lacks a document.")
    ] = "available",
    part: Annotated[
        Literal["whole", "first", "best"], typer.Option(help="The document, its first passage, or its best one.")
    ] = "whole",
    run: Annotated[
        str | None, typer.Option(metavar="FILE", help="First stage of the non-relevant documents; default: BM25.")
    ] = None,
    negatives: Annotated[
        str | None, typer.Option(metavar="NAME", help="The version they come from; default: the judged one.")
    ] = None,
    depth: Annotated[int, typer.Option(help="Depth of the first stage.")] = 100,
    qrels: Annotated[
        str | None, typer.Option(metavar="SRC", help="All judgments: what is relevant is no non-relevant document.")
    ] = None,
    version: Annotated[
        list[str], typer.Option("--version", metavar="NAME=SRC", help="The versions, where they have moved.")
    ] = [],  # noqa: B006
    seed: Annotated[int, typer.Option(help="Seed of all choices.")] = 0,
    draws: Annotated[
        int | None,
        typer.Option(metavar="N", help="N draws with the seeds from --seed on, in folders seed-S; default: one draw."),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Writes training rows in which a strategy decides which version of the relevant document is learnt from.

    Each strategy gets a table `STRATEGY.parquet` of the same queries and non-relevant documents, for
    `instances build --kind by-version`, `train` and `experiment run`.

    Examples:

        truerank transfer select scan/ --data-set 'V1>>V2 MaxP' --strategy max --strategy min --strategy bm25
        --size 20000 --out selected/

        truerank transfer select scan/ --size 20000 --part best --draws 5 --out selected/best
    """
    options = transfer.SelectOptions(
        strategies=tuple(strategy),
        data_set=data_set,
        aggregation=aggregation,
        size=size,
        missing=missing,
        part=part,
        run=run,
        negatives=negatives,
        depth=depth,
        qrels=qrels,
        seed=seed,
        draws=draws,
    )
    with progress() as shown:
        found = transfer.select_instances(folder, out, options, versions=version or None, progress=shown)
    emit(found.text(), found.json(), as_json)
    note(f"tables: {out}")


def card(
    folder: ScanFolder,
    form: Annotated[
        Literal["json", "markdown"], typer.Option("--format", help="For machines, or for a data card.")
    ] = "json",
    labels: Annotated[
        list[str], typer.Option("--labels", metavar="SRC", help="Judged pairs: state the estimated errors, too.")
    ] = [],  # noqa: B006
    votes: VotesOption = "majority",
    date: Annotated[str | None, typer.Option(help="The date to state, YYYY-MM-DD.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Prints a statement about judgments and versions: for a data card, or for a machine.

    Example:

        truerank transfer card scan/ --labels versions.judged --format markdown >> README.md
    """
    statement = transfer.transfer_card(folder, labels=labels or None, votes=votes, date=date)
    emit(statement.markdown() if form == "markdown" else statement.text(), statement.json(), as_json)
