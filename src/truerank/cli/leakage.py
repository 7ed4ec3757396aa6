"""`truerank leakage …`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from truerank import judging
from truerank.audits import leakage
from truerank.audits.leakage.options import CALIBRATED_FOR, DEFAULT_THRESHOLD, Options
from truerank.cli.console import JsonFlag, VotesOption, emit, pairs_option, progress, say
from truerank.errors import InputError
from truerank.work.artifacts import Artifacts

__all__ = ["app"]

app = typer.Typer(help="Are my test queries in my training data?", no_args_is_help=True)

_AUDIT_EXAMPLES = """
Finds the training queries that are near-duplicates of test topics.

Every training query is compared with every text of every topic; pairs whose cosine similarity is above the threshold
are candidates. Each test set gets a verdict: CONTAMINATED, CLEAN or UNKNOWN. A run that was killed continues when it
is started again.

Examples:

    truerank leakage audit --train queries.tsv.gz --test topics.trec --out audit/

    truerank leakage audit --train irds:msmarco-document/train --train irds:msmarco-document/orcas
    --test irds:disks45/nocr/trec-robust-2004 --out audit/

    truerank leakage audit --train log.parquet#query --test beir/scifact --mode prefilter --out audit/
"""

Sources = Annotated[
    list[str],
    typer.Option(
        "--train",
        metavar="SRC",
        help="Training queries: a path, irds:ID or hf:ORG/NAME; repeat in the order of the columns.",
    ),
]
Tests = Annotated[
    list[str],
    typer.Option(
        "--test", metavar="SRC", help="Test topics: a path, irds:ID or hf:ORG/NAME; repeat for several test sets."
    ),
]
OutFolder = Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for candidates, report and manifest.")]


@app.command("audit", help=_AUDIT_EXAMPLES)
def audit(
    train: Sources,
    test: Tests,
    out: OutFolder,
    variants: Annotated[
        list[str], typer.Option(metavar="TEST=FILE", help="Query variants of a test set (topic TAB variant, or JSONL).")
    ] = [],  # noqa: B006
    fields: Annotated[
        str, typer.Option(help="Topic texts to compare: title, description, narrative.")
    ] = "title,description",
    encoder: Annotated[
        str, typer.Option(metavar="NAME", help="A Hugging Face id, a local folder, or 'packaged'.")
    ] = CALIBRATED_FOR,
    backend: Annotated[
        Literal["auto", "onnx", "openvino", "torch"], typer.Option(help="What runs the encoder.")
    ] = "auto",
    device: Annotated[str, typer.Option(help="Where the torch backend runs, such as cuda:0.")] = "",
    threshold: Annotated[
        float, typer.Option(help="Pairs with a higher cosine similarity are candidates.")
    ] = DEFAULT_THRESHOLD,
    calibrated_for: Annotated[
        str, typer.Option(metavar="NAME", help="The encoder that the threshold was calibrated for.")
    ] = CALIBRATED_FOR,
    floor: Annotated[
        float | None, typer.Option(help="Write pairs down to this similarity, for calibration; exhaustive mode only.")
    ] = None,
    top_k: Annotated[int, typer.Option(help="Neighbours kept for each topic text and source.")] = 100,
    mode: Annotated[
        Literal["exhaustive", "prefilter"],
        typer.Option(help="Encode every text, or only those that share character trigrams with a topic."),
    ] = "exhaustive",
    cut: Annotated[
        list[str], typer.Option(metavar="FIELD=SCORE", help="The prefilter's cut for a field, in place of the default.")
    ] = [],  # noqa: B006
    precision: Annotated[
        Literal["auto", "full"],
        typer.Option(help="auto: a first pass in int8 where OpenVINO is installed; the same pairs above the floor."),
    ] = "auto",
    engine: Annotated[
        str, typer.Option(metavar="local|ray[:ADDRESS]|shard:I/N", help="Where the blocks are worked on.")
    ] = "local",
    labels: Annotated[
        list[str], typer.Option(metavar="SRC", help="Judged pairs: the verdict then rests on confirmed leaks.")
    ] = [],  # noqa: B006
    votes: VotesOption = "majority",
    topic: Annotated[
        list[str], typer.Option(metavar="ID", help="Print the nearest training queries of this topic.")
    ] = [],  # noqa: B006
    baseline: Annotated[
        str | None, typer.Option(metavar="DIR", help="Count what is new since this earlier audit.")
    ] = None,
    fail_on: Annotated[
        Literal["contaminated", "unknown"] | None,
        typer.Option(
            help="Exit with 1 if a test set is contaminated (with --baseline: by something new); unknown: or not clean."
        ),
    ] = None,
    all_columns: Annotated[
        bool,
        typer.Option("--all-columns", help="Compare every text column of a training source, each as its own source."),
    ] = False,
    redact: Annotated[bool, typer.Option("--redact", help="Write keyed hashes instead of texts.")] = False,
    redact_key: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="The key of the hashes (default: your own, made at the first use)."),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Bytes that are not UTF-8 are an error.")] = False,
    cache: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="Keep embeddings here, so that the next audit costs only what is new."),
    ] = None,
    block_size: Annotated[int, typer.Option(help="Texts encoded, and saved, at a time.")] = 8192,
    as_json: JsonFlag = False,
) -> None:
    """Finds the training queries that are near-duplicates of test topics."""
    options = Options(
        fields=tuple(name.strip() for name in fields.split(",") if name.strip()),
        variants=pairs_option(variants, "--variants"),
        encoder=encoder,
        backend=backend,
        device=device or None,
        threshold=threshold,
        calibrated_for=calibrated_for,
        floor=floor,
        top_k=top_k,
        mode=mode,
        cuts={name: _number(value, "--cut") for name, value in pairs_option(cut, "--cut").items()},
        precision=precision,
        engine=engine,
        strict=strict,
        cache=cache,
        block_size=block_size,
        labels=tuple(labels),
        votes=votes,
        baseline=baseline,
        all_columns=all_columns,
        redact=redact,
        redact_key=redact_key,
    )
    with progress() as shown:
        result = leakage.audit(train, test, out, options, progress=shown)
    neighbours = [leakage.neighbours_table(result, topic_id) for topic_id in topic]
    text = "\n\n".join([leakage.to_text(result), *(table.text() for table in neighbours)])
    emit(text, {**result.summary, **_topics_json(topic, neighbours)}, as_json)
    say(f"report: {out / 'report.html'}", as_json)
    for folder, size in Artifacts(out).work_folders():
        remedy = "run that audit again to continue it, or remove the folder"
        say(f"{folder}: unfinished work of another audit ({size / 1e6:.1f} MB); {remedy}", as_json)
    if fail_on and leakage.fails(result, fail_on):
        raise typer.Exit(1)


def _topics_json(topics: list[str], tables: list[Any]) -> dict[str, Any]:
    if not topics:
        return {}
    return {
        "neighbours": {
            topic: [dict(zip((column.title for column in table.columns), row, strict=True)) for row in table.rows]
            for topic, table in zip(topics, tables, strict=True)
        }
    }


def _number(text: str, option: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise InputError(f"'{text}' is not a number", "write FIELD=SCORE, such as title=0.5", where=option) from error


Candidates = Annotated[
    str, typer.Option("--candidates", metavar="DIR", help="The folder that 'leakage audit --out' wrote.")
]
Labels = Annotated[
    list[str],
    typer.Option("--labels", metavar="SRC", help="Judged pairs: label files or judging stores; repeat for several."),
]


@app.command("calibrate")
def calibrate(
    labels: Labels,
    min_precision: Annotated[float, typer.Option(help="The precision that the threshold must reach.")] = 0.9,
    rule: Annotated[
        Literal["lower-bound", "point", "lowest"],
        typer.Option(
            help="lower-bound: above the threshold the precision is at least so high with this confidence; point: the "
            "estimate is, at every higher threshold too; lowest: the estimate is, at this one."
        ),
    ] = "lower-bound",
    encoder: Annotated[str, typer.Option(metavar="NAME", help="The encoder that the similarities come from.")] = "",
    candidates: Annotated[
        str | None,
        typer.Option(metavar="DIR", help="The audit whose pairs were sampled: its similarities sharpen the bound."),
    ] = None,
    resample: Annotated[
        Literal["strata", "pairs", "topics"], typer.Option(help="What is drawn; topics: pairs of a topic are alike.")
    ] = "strata",
    confidence: Annotated[float, typer.Option(help="Confidence of the lower bound and the intervals.")] = 0.95,
    seed: Annotated[int, typer.Option(help="Seed of the draws.")] = 0,
    votes: VotesOption = "majority",
    include_models: Annotated[
        bool, typer.Option("--include-models", help="Count labels of models like those of people.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Finds the lowest threshold whose pairs are precise enough, from judged pairs with similarities.

    The threshold to use is the lower bound: above it the precision is at least the target with the confidence asked
    for. At a point estimate it lies below the target in about half of all samples. Each pair counts by its sampling
    probability. Where too few labels lie around the answer there is none, but what to label next, and the exit code
    is 2.

    Examples:

        truerank leakage calibrate --labels judged.jsonl --min-precision 0.9 --encoder packaged

        truerank leakage calibrate --labels leaks.judged --candidates audit/ --encoder packaged
    """
    result = leakage.calibrate(
        judging.open_judgments(labels, votes=votes, include_models=include_models),
        min_precision=min_precision,
        rule=rule,
        encoder=encoder,
        population=None if candidates is None else leakage.similarities(candidates),
        resample=resample,
        confidence=confidence,
        seed=seed,
    )
    emit(result.text(), result.json(), as_json)
    if result.refused:
        raise typer.Exit(2)


@app.command("clean")
def clean(
    candidates: Candidates,
    out: Annotated[
        Path, typer.Option("--out", metavar="FILE", help="The cleaned file; its name says the compression.")
    ],
    train: Annotated[str, typer.Option("--train", metavar="SRC", help="The training source to clean.")] = "",
    test: Annotated[
        str, typer.Option("--test", metavar="SRC", help="The test set to reduce, with --remove test.")
    ] = "",
    remove: Annotated[
        Literal["train", "test"], typer.Option(help="Remove leaking queries from the training data, or leaked topics.")
    ] = "train",
    name: Annotated[
        str | None, typer.Option(help="The test set's name in the audit, where its file is called otherwise.")
    ] = None,
    labels: Annotated[
        list[str], typer.Option("--labels", metavar="SRC", help="Judged pairs; repeat for several files.")
    ] = [],  # noqa: B006
    policy: Annotated[
        Literal["labels-first", "labels-only", "either"],
        typer.Option(help="How labels and threshold are combined."),
    ] = "labels-first",
    votes: VotesOption = "majority",
    threshold: Annotated[float | None, typer.Option(help="Instead of the audit's.")] = None,
    match: Annotated[
        Literal["text", "id"], typer.Option(help="id: --candidates is the .removed.tsv of an earlier cleaning.")
    ] = "text",
    strict: Annotated[bool, typer.Option("--strict", help="Bytes that are not UTF-8 are an error.")] = False,
    qrels: Annotated[
        str, typer.Option(metavar="SRC", help="With --remove test and --run: judgments for the detectable difference.")
    ] = "",
    run: Annotated[
        list[str], typer.Option("--run", metavar="FILE", help="Runs whose differences say how much the topics vary.")
    ] = [],  # noqa: B006
    measure: Annotated[str, typer.Option(help="The measure of that difference.")] = "nDCG@10",
    as_json: JsonFlag = False,
) -> None:
    """Writes the training data without the leaking queries, or the test set without the leaked topics.

    What stays keeps its bytes, ids and order. Beside the file stand `FILE.removed.tsv` (what was removed and why) and
    `FILE.manifest.json`.

    Examples:

        truerank leakage clean --train queries.tsv.gz --candidates audit/ --out queries.clean.tsv.gz

        truerank leakage clean --remove test --test topics.trec --candidates audit/ --out topics.clean.trec
    """
    judged = labels or None
    if remove == "train":
        source = _needed(train, "--train", "name the training source to clean")
        cleaning = leakage.clean(
            source,
            candidates,
            out,
            labels=judged,
            threshold=threshold,
            policy=policy,
            votes=votes,
            match=match,
            strict=strict,
        )
        emit(cleaning.text(), cleaning.json(), as_json)
        return
    source = _needed(test, "--test", "name the test set to reduce")
    spreads: dict[str, Any] = {}
    if run:
        judgments = _needed(qrels, "--qrels", "give the judgments with the runs")
        spreads["sds"] = leakage.difference_sds(judgments, run, measure)
    reduction = leakage.reduce_topics(
        source, candidates, out, labels=judged, threshold=threshold, policy=policy, votes=votes, name=name, **spreads
    )
    emit(reduction.text(), reduction.json(), as_json)


@app.command("card")
def card(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="The folder that 'leakage audit --out' wrote.")],
    form: Annotated[
        Literal["json", "markdown"], typer.Option("--format", help="For machines, or for a model card.")
    ] = "json",
    date: Annotated[str | None, typer.Option(help="The date to state, YYYY-MM-DD.")] = None,
    labels: Annotated[
        list[str], typer.Option("--labels", metavar="SRC", help="Judged pairs: state how the threshold was calibrated.")
    ] = [],  # noqa: B006
    votes: VotesOption = "majority",
    pairs: Annotated[bool, typer.Option("--pairs", help="State every pair above the threshold, too.")] = False,
    redact: Annotated[
        bool, typer.Option("--redact", help="Keyed hashes instead of the names of the sources and the texts of pairs.")
    ] = False,
    redact_key: Annotated[
        str | None, typer.Option(metavar="FILE", help="The key of those hashes (default: your own).")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Prints a statement about leakage: for a data card, a model card, or a machine.

    Examples:

        truerank leakage card audit/ --format markdown >> README.md

        truerank leakage card audit/ --pairs --redact > card.json
    """
    statement = leakage.card(
        folder,
        date=date,
        calibration=leakage.calibrate(judging.open_judgments(labels, votes=votes)) if labels else None,
        pairs=pairs,
        redact_key=leakage.open_key(redact_key) if redact else None,
    )
    emit(statement.markdown() if form == "markdown" else statement.text(), statement.json(), as_json)


@app.command("effect")
def effect(
    candidates: Candidates,
    qrels: Annotated[str, typer.Option(metavar="SRC", help="Relevance judgments.")],
    run: Annotated[list[str], typer.Option("--run", metavar="FILE", help="TREC runs; repeat for several.")],
    measures: Annotated[str, typer.Option(help="Measures of ir_measures, separated by blanks.")] = "nDCG@10 P@1",
    test: Annotated[
        str | None, typer.Option(metavar="NAME", help="The test set in the audit, where it has several.")
    ] = None,
    ties: Annotated[
        Literal["trec_eval", "ascending", "rank"], typer.Option(help="How documents with equal scores are ordered.")
    ] = "trec_eval",
    confidence: Annotated[float, typer.Option(help="Confidence of the intervals.")] = 0.95,
    seed: Annotated[int, typer.Option(help="Seed of the permutation test.")] = 0,
    as_json: JsonFlag = False,
) -> None:
    """Scores runs on all, leaked and clean topics side by side, and what becomes of the order of systems.

    Example:

        truerank leakage effect --candidates audit/ --qrels robust04.qrels --run bm25.run --run monot5.run
    """
    result = leakage.effect(
        qrels, run, candidates, measures=measures, test=test, ties=ties, confidence=confidence, seed=seed
    )
    emit(result.text(), result.json(), as_json)


def _needed(value: str, option: str, remedy: str) -> str:
    if not value:
        raise InputError(f"{option} is missing", remedy, where="leakage clean")
    return value
