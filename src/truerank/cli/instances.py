"""`truerank instances …`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from truerank.cli.console import JsonFlag, VotesOption, emit, note, progress
from truerank.experiments import instances
from truerank.experiments.instances.options import BuildOptions
from truerank.judging.votes import Votes

__all__ = ["app"]

app = typer.Typer(
    help="Training sets with known faults: built, proven, written for other programs.", no_args_is_help=True
)

_BUILD = """
Builds a training set that differs from others only in its fault, in several sizes at once.

An instance is a pair of a query and a document: a size of 1,000 has 500 rows, each a query with one relevant and one
non-relevant document. Each size is the beginning of the next. Rows that leak come first; the others are those of the
set of the kind none with the same sources and seed. Training queries are drawn in one pass, whatever their number;
non-relevant documents are searched for those that are drawn only.

none: no candidate of an audit, equal shares of the sources. leak: so many verified leaking queries, spread over the
topics, with the relevant document of the training query. test: so many rows of the test topics with judged documents.
by-depth, by-version: rows of a table that 'survivorship triples' or 'transfer select' wrote.

Examples:

    truerank instances build --kind none --queries irds:msmarco-document/train --queries irds:msmarco-document/orcas
    --docs irds:msmarco-document --index index/ --candidates audit/ --size 1000 --size 128000 --out none/

    truerank instances build --kind leak --leaks 500 --labels judged.jsonl --topics topics.trec
    --queries queries.tsv --train-qrels qrels.tsv --docs docs.jsonl --candidates audit/ --size 1000 --out leak/

    truerank instances build --kind test --leaks 500 --topics topics.trec --qrels qrels.txt --test-docs robust.jsonl
    --queries queries.tsv --train-qrels qrels.tsv --docs docs.jsonl --candidates audit/ --size 1000 --out test/

    truerank instances build --kind none --queries-from-documents docs.trec.gz --candidates audit/ --size 1000
    --out none/

    truerank instances build --kind by-depth --rows triples.parquet --depth 1 --out depth-1/
"""

Words = Annotated[int, typer.Option(help="Words that make the query where a document has no title.")]
Rest = Annotated[int, typer.Option(help="Words that must be left; records with fewer have a title only.")]
Ends = Annotated[
    str, typer.Option(metavar="REGEX", help="What stands behind its first match is no text of the record.")
]


@app.command("build", help=_BUILD)
def build(
    kind: Annotated[
        Literal["none", "leak", "test", "by-depth", "by-version"], typer.Option(help="Which fault the set has.")
    ],
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="The folder of the set.")],
    size: Annotated[
        list[int], typer.Option(metavar="N", help="In instances, twice the rows; repeat for several sizes.")
    ] = [],  # noqa: B006
    seed: Annotated[int, typer.Option(help="Of all choices.")] = 0,
    queries: Annotated[
        list[str], typer.Option(metavar="SRC", help="Training queries; repeat: the sources get equal shares.")
    ] = [],  # noqa: B006
    train_qrels: Annotated[
        list[str], typer.Option(metavar="SRC", help="Their judgments: one for all, or one for each in order.")
    ] = [],  # noqa: B006
    docs: Annotated[str | None, typer.Option(metavar="SRC", help="The training documents.")] = None,
    queries_from_documents: Annotated[
        str | None, typer.Option(metavar="SRC", help="Documents that make the training queries themselves.")
    ] = None,
    words: Words = 8,
    rest: Rest = 20,
    ends: Ends = "",
    candidates: Annotated[
        list[str], typer.Option(metavar="DIR", help="What 'leakage audit --out' wrote; repeat for several.")
    ] = [],  # noqa: B006
    labels: Annotated[list[str], typer.Option(metavar="SRC", help="Judged pairs: label files or judging stores.")] = [],  # noqa: B006
    votes: VotesOption = "majority",
    relevant_from: Annotated[int, typer.Option(help="Lowest grade of a relevant document, training judgments.")] = 1,
    negatives: Annotated[
        Literal["first-stage", "judged"], typer.Option(help="Where non-relevant training documents come from.")
    ] = "first-stage",
    run: Annotated[
        list[str], typer.Option(metavar="FILE", help="First stage of the queries: one run for all, or one for each.")
    ] = [],  # noqa: B006
    index: Annotated[
        str | None, typer.Option(metavar="DIR", help="Index to search instead; without either one is made.")
    ] = None,
    preset: Annotated[str, typer.Option(help="Of the first stage: anserini, terrier, track-documents …")] = "anserini",
    model: Annotated[str, typer.Option(help="Of the first stage; default: the preset's usual one.")] = "",
    top_k: Annotated[int, typer.Option(help="Documents of the first stage that are drawn from.")] = 100,
    fill: Annotated[
        str | None, typer.Option(metavar="DIR", help="A built set of the kind none that gives the rows without a leak.")
    ] = None,
    leaks: Annotated[int | None, typer.Option(metavar="N", help="Rows that leak (kinds leak and test).")] = None,
    topics: Annotated[str | None, typer.Option(metavar="SRC", help="Test topics.")] = None,
    field: Annotated[str, typer.Option(help="Of the topics: title, description or narrative.")] = "title",
    test: Annotated[str | None, typer.Option(metavar="NAME", help="Of the candidates: the test set.")] = None,
    threshold: Annotated[
        float | None, typer.Option(help="Takes candidates above it for leaks, verified or not.")
    ] = None,
    qrels: Annotated[str | None, typer.Option(metavar="SRC", help="Test judgments.")] = None,
    test_docs: Annotated[str | None, typer.Option(metavar="SRC", help="Test documents; default: --docs.")] = None,
    test_run: Annotated[
        str | None, typer.Option(metavar="FILE", help="First stage of the topics, for judgments of relevant rows only.")
    ] = None,
    test_index: Annotated[
        str | None, typer.Option(metavar="DIR", help="Index of the test documents for the same purpose.")
    ] = None,
    test_relevant_from: Annotated[int, typer.Option(help="Lowest grade of a relevant test document.")] = 1,
    per_topic: Annotated[int, typer.Option(help="Rows of each test topic, with different documents.")] = 2,
    rows: Annotated[
        str | None, typer.Option(metavar="SRC", help="Table with a column depth, or version or strategy.")
    ] = None,
    depth: Annotated[int | None, typer.Option(metavar="R", help="Keep rows down to this depth.")] = None,
    version: Annotated[str | None, typer.Option(metavar="NAME", help="Keep rows of this version.")] = None,
    write: Annotated[
        list[str],
        typer.Option(metavar="FORMAT", help="Also write: jsonl, parquet, sentence-transformers, triples; repeat."),
    ] = [],  # noqa: B006
    allow_fewer: Annotated[
        bool, typer.Option("--allow-fewer", help="Take what there is where it is less than asked for.")
    ] = False,
    workers: Annotated[int, typer.Option(help="Processes that search.")] = 1,
    as_json: JsonFlag = False,
) -> None:
    """Builds a training set that differs from others only in its fault."""
    options = BuildOptions(
        queries=tuple(queries),
        train_qrels=tuple(train_qrels),
        docs=docs,
        queries_from_documents=queries_from_documents,
        words=words,
        rest=rest,
        ends=ends,
        candidates=tuple(candidates),
        labels=tuple(labels),
        votes=votes,
        relevant_from=relevant_from,
        negatives=negatives,
        runs=tuple(run),
        index=index,
        preset=preset,
        model=model,
        top_k=top_k,
        fill=fill,
        leaks=leaks,
        topics=topics,
        field=field,
        test=test,
        threshold=threshold,
        qrels=qrels,
        test_docs=test_docs,
        test_run=test_run,
        test_index=test_index,
        test_relevant_from=test_relevant_from,
        per_topic=per_topic,
        rows=rows,
        depth=depth,
        version=version,
        write=tuple(write),
        allow_fewer=allow_fewer,
        workers=workers,
    )
    with progress() as shown:
        built = instances.build_instances(kind, size, out, options, seed=seed, progress=shown)
    emit(built.text(), built.json(), as_json)


@app.command("stats")
def stats(
    folders: Annotated[
        list[str], typer.Argument(metavar="DIR…", help="What 'instances build --out' wrote; DIR?size=N: a size of it.")
    ],
    candidates: Annotated[
        list[str], typer.Option(metavar="DIR", help="Audits to check against; default: those of the sets.")
    ] = [],  # noqa: B006
    labels: Annotated[list[str], typer.Option(metavar="SRC", help="Judged pairs; default: those of the sets.")] = [],  # noqa: B006
    votes: Annotated[Votes | None, typer.Option(help="How several voices make one answer; default: as built.")] = None,
    train_qrels: Annotated[
        list[str], typer.Option(metavar="SRC", help="Training judgments; default: those of the sets.")
    ] = [],  # noqa: B006
    qrels: Annotated[
        str | None, typer.Option(metavar="SRC", help="Test judgments; default: those of the sets.")
    ] = None,
    fail_on: Annotated[
        Literal["broken"] | None, typer.Option(help="Exit with 1 if a property of a set is broken.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Proves what training sets promise: each property with holds, BROKEN or not checked, and its numbers.

    Counts, balance of the sources, nested sizes, texts, repeats, ranks of the non-relevant documents; that no leaking
    query is in a row without a leak; that no relevant document is the non-relevant one of its query; of several sets
    what they share, and that their rows without a leak are the same.

    Examples:

        truerank instances stats none/ leak/ test/

        truerank instances stats 'leak/?size=1000' --candidates audit/ --fail-on broken
    """
    result = instances.instance_stats(
        folders, candidates=candidates, labels=labels, votes=votes, train_qrels=train_qrels, qrels=qrels
    )
    emit(result.text(), result.json(), as_json)
    if fail_on and not result.holds:
        raise typer.Exit(1)


@app.command("queries")
def queries(
    docs: Annotated[str, typer.Argument(metavar="SRC", help="The collection.")],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="Lines: id TAB query.")],
    words: Words = 8,
    rest: Rest = 20,
    ends: Ends = "",
    as_json: JsonFlag = False,
) -> None:
    """Writes the queries that a collection's own documents make, so that they can be audited.

    The title is the query and the body the document; without a title, the first words and what follows them. Records
    with a title only make none.

    Example:

        truerank instances queries docs.trec.gz --out queries.tsv
    """
    counts = instances.write_document_queries(str(docs), out, instances.CutRule(words, rest, ends))
    value = {"out": str(out), "documents": counts.read, "queries": counts.read - counts.skipped,
             "title_only": counts.skipped}  # fmt: skip
    text = f"{value['queries']:,} queries of {counts.read:,} documents; {counts.skipped:,} have a title only\n"
    emit(f"{text}written: {out}", value, as_json)


@app.command("export")
def export(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="What 'instances build --out' wrote.")],
    form: Annotated[
        Literal["jsonl", "parquet", "sentence-transformers", "triples"],
        typer.Option("--format", help="All columns; anchor, positive, negative; or MS MARCO triples of texts."),
    ],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="The file.")],
    size: Annotated[int | None, typer.Option(metavar="N", help="In instances; default: the whole set.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Writes a built set as other programs read it.

    In triples, tabs and line ends of the texts become blanks; the other formats keep them.

    Example:

        truerank instances export none/ --size 1000 --format sentence-transformers --out none-1000.jsonl
    """
    written = instances.export_instances(folder, form, out, size)
    emit(f"written: {written}", {"out": str(written), "format": form, "size": size}, as_json)
    note(f"format: {form}")
