"""`truerank survivorship …`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from truerank.audits import survivorship
from truerank.cli.console import JsonFlag, VotesOption, emit, note, progress
from truerank.errors import InputError

__all__ = ["app"]

app = typer.Typer(
    help="Which queries did my annotation throw away, and what does that do to my scores and models?",
    no_args_is_help=True,
)

LogSource = Annotated[
    str,
    typer.Option(
        "--log", metavar="[NAME=]SRC", help="An annotation log: MS MARCO QnA, JSONL, CSV or TSV, irds:msmarco-qna/dev."
    ),
]
OutFolder = Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for the results.")]

_PROFILE_HELP = """
Describes which queries were discarded because nobody found an answer among the documents shown.

Discarded share of each split; by query type and any other labelling, with a test of independence and the kinds that
are over- or under-represented among the survivors; the rank at which selected documents stood; the discarded share at
each depth, and, marked as such, extrapolated beyond.

Without a log, lists of the ids of survived and discarded queries give the shares and the kinds.

Examples:

    truerank survivorship profile --log dev=dev_v2.1.json.gz --labels category=categories.tsv --out profile/

    truerank survivorship profile --survived dev=survived.txt --discarded dev=discarded.txt --labels kinds.tsv
    --out profile/
"""


@app.command("profile", help=_PROFILE_HELP)
def profile(
    out: OutFolder,
    log: Annotated[
        list[str], typer.Option("--log", metavar="[NAME=]SRC", help="Annotation logs, one for each split.")
    ] = [],  # noqa: B006
    survived: Annotated[
        list[str], typer.Option(metavar="[NAME=]SRC", help="Ids of queries that survived, in place of a log.")
    ] = [],  # noqa: B006
    discarded: Annotated[
        list[str], typer.Option(metavar="[NAME=]SRC", help="Ids of those that did not, as many lists.")
    ] = [],  # noqa: B006
    labels: Annotated[
        list[str], typer.Option(metavar="[NAME=]SRC", help="Kinds of queries: id TAB label, or a table.")
    ] = [],  # noqa: B006
    rule: Annotated[
        Literal["selected", "answered"],
        typer.Option(help="A query survives if a document was selected, or if somebody wrote an answer."),
    ] = "selected",
    confidence: Annotated[float, typer.Option(help="Of all intervals.")] = 0.95,
    alpha: Annotated[float, typer.Option(help="Level at which a kind stands out, corrected for their number.")] = 0.05,
    extrapolate_to: Annotated[
        int | None, typer.Option(help="Last depth (default: twice what was shown; 0 for none).")
    ] = None,
    draws: Annotated[int, typer.Option(help="Of the extrapolation's uncertainty.")] = 2000,
    seed: Annotated[int, typer.Option(help="Of these draws.")] = 0,
    as_json: JsonFlag = False,
) -> None:
    """Describes which queries were discarded."""
    options = survivorship.ProfileOptions(rule, confidence, alpha, extrapolate_to, draws, seed)
    with progress() as shown:
        result = survivorship.profile(
            out, logs=log, survived=survived, discarded=discarded, labels=labels, options=options, progress=shown
        )
    emit(result.text(), result.json(), as_json)
    note(f"report: {out / 'report.html'}")


@app.command("map")
def map_passages(
    log: LogSource,
    out: OutFolder,
    docs: Annotated[
        str | None, typer.Option(metavar="SRC", help="The collection, such as MS MARCO's passages.")
    ] = None,
    later: Annotated[
        str | None, typer.Option(metavar="SRC", help="A later corpus: which queries lose all their passages in it?")
    ] = None,
    duplicates: Annotated[
        Literal["leave", "first", "fail"],
        typer.Option(help="Passages with the same text: map nothing to them, map to the first, or end with an error."),
    ] = "leave",
    overlap: Annotated[
        float, typer.Option(help="Share of a passage's word sequences that one later document has to hold.")
    ] = 0.8,
    words: Annotated[int, typer.Option(help="Length of these sequences.")] = 5,
    as_json: JsonFlag = False,
) -> None:
    """Gives the passages of an annotation log the ids they have in a collection, by their texts.

    Texts are equal after repairing UTF-8 that was read as latin-1. What is not mapped is listed in unmatched.jsonl,
    passages with the same text in duplicates.tsv.

    Examples:

        truerank survivorship map --log dev_v2.1.json.gz --docs collection.tsv --out map/

        truerank survivorship map --log train_v2.1.json.gz --docs irds:msmarco-passage --later irds:msmarco-passage-v2
        --out map/
    """
    options = survivorship.MapOptions(duplicates, overlap, words)
    with progress() as shown:
        result = survivorship.map_passages(log, out, docs=docs, later=later, options=options, progress=shown)
    emit(result.text(), result.json(), as_json)
    note(f"mapping: {out / 'mapping.parquet'}")


@app.command("depth")
def depth(
    log: LogSource,
    out: OutFolder,
    qrels: Annotated[
        str | None, typer.Option(metavar="SRC", help="Official judgments to filter, in place of the log's selections.")
    ] = None,
    mapping: Annotated[
        Path | None, typer.Option("--map", metavar="DIR", help="What 'survivorship map' wrote, for logs without ids.")
    ] = None,
    depths: Annotated[
        str, typer.Option(metavar="K,K…", help="Numbers of documents shown; the whole log is always added.")
    ] = "1,2,3,4,5,6,7,8,9",
    name: Annotated[str | None, typer.Option(help="Of the files (default: the log's name).")] = None,
    relevance: Annotated[int, typer.Option(help="Grade of a selected document.")] = 1,
    unmapped: Annotated[
        Literal["drop", "keep"],
        typer.Option(help="Selected documents without an id: left out, or named by their text."),
    ] = "drop",
    as_json: JsonFlag = False,
) -> None:
    """Simulates the judgments there would be had fewer documents been shown for each query.

    Writes a file of judgments for each depth, qrels/NAME-K.qrels, and one with the first judgment of each query only,
    first/NAME-K.qrels.

    Examples:

        truerank survivorship depth --log irds:msmarco-qna/dev --out depths/

        truerank survivorship depth --log dev_v2.1.json.gz --map map/ --qrels qrels.dev.tsv --depths 1,5 --out depths/
    """
    options = survivorship.DepthOptions(_numbers(depths, "--depths"), relevance, unmapped)
    with progress() as shown:
        result = survivorship.depth(log, out, qrels=qrels, mapping=mapping, name=name, options=options, progress=shown)
    emit(result.text(), result.json(), as_json)
    note(f"report: {out / 'report.html'}")


@app.command("simulate")
def simulate(
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="The log, JSONL; .gz compresses it.")],
    topics: Annotated[str | None, typer.Option(metavar="SRC", help="The queries.")] = None,
    qrels: Annotated[str | None, typer.Option(metavar="SRC", help="What answers them.")] = None,
    instances: Annotated[
        str | None, typer.Option(metavar="SRC", help="In place of both: training instances with ids and queries.")
    ] = None,
    run: Annotated[str | None, typer.Option(metavar="FILE", help="The ranking that was shown.")] = None,
    index: Annotated[str | None, typer.Option(metavar="DIR", help="In its place: an index, searched by BM25.")] = None,
    preset: Annotated[
        Literal["anserini", "terrier", "track-documents", "track-passages"], typer.Option(help="Of the search.")
    ] = "anserini",
    shown: Annotated[int, typer.Option(help="Documents shown for each query.")] = 10,
    select: Annotated[
        Literal["all", "first"], typer.Option(help="The annotator selects every relevant document, or the first.")
    ] = "all",
    rel: Annotated[int, typer.Option(help="Lowest grade that answers a query.")] = 1,
    field: Annotated[
        Literal["title", "description", "narrative"], typer.Option("--field", help="Of the topics.")
    ] = "title",
    as_json: JsonFlag = False,
) -> None:
    """Writes the log of annotators who saw the first results of a ranking, from judgments that are more complete.

    Examples:

        truerank survivorship simulate --topics topics.trec --qrels qrels.txt --run bm25.run --out log.jsonl

        truerank survivorship simulate --instances train/ --index index/ --shown 10 --out log.jsonl.gz
    """
    judged = survivorship.Judged(topics, qrels, instances, field)
    options = survivorship.SimulateOptions(shown, select, rel)
    with progress() as bars:
        result = survivorship.simulate(out, judged, run=run, index=index, preset=preset, options=options, progress=bars)
    emit(result.text(), result.json(), as_json)
    note(f"log: {out}")


@app.command("triples")
def triples(
    instances: Annotated[
        str, typer.Option(metavar="SRC", help="Training triples: MS MARCO's, of ids or texts, or a table of instances.")
    ],
    depths: Annotated[Path, typer.Option("--depths", metavar="DIR", help="What 'survivorship depth' wrote.")],
    out: OutFolder,
    depth: Annotated[str, typer.Option(metavar="K,K…", help="Depths to count; all is always added.")] = "1,5",
    by: Annotated[
        Literal["auto", "id", "text"],
        typer.Option(help="Look pairs up by ids or texts (auto: ids if there are)."),
    ] = "auto",
    tsv: Annotated[bool, typer.Option("--tsv", help="Also write triples-K.tsv for each depth.")] = False,
    limit: Annotated[
        int | None, typer.Option(metavar="N", help="Stop once the shallowest depth has N triples; default: read all.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Filters training triples by the depth at which their relevant document was shown.

    Order and non-relevant documents stay. The table triples.parquet has a column depth, by which 'instances build
    --kind by-depth' chooses.

    Examples:

        truerank survivorship triples --instances triples.train.small.tsv --depths depths/ --by text --out triples/

        truerank instances build --kind by-depth --rows triples/triples.parquet --depth 1 --out train-1/
    """
    options = survivorship.TriplesOptions(_numbers(depth, "--depth"), by, limit)
    with progress() as shown:
        result = survivorship.triples(instances, depths, out, tsv=tsv, options=options, progress=shown)
    emit(result.text(), result.json(), as_json)
    note(f"triples: {out / 'triples.parquet'}")


@app.command("evaluate")
def evaluate(
    run: Annotated[list[str], typer.Option("--run", metavar="FILE", help="TREC runs.")],
    out: OutFolder,
    depths: Annotated[
        Path | None, typer.Option("--depths", metavar="DIR", help="What 'survivorship depth' wrote.")
    ] = None,
    qrels: Annotated[
        list[str],
        typer.Option("--qrels", metavar="K=FILE", help="In its place: judgments by depth, and all=FILE."),
    ] = [],  # noqa: B006
    measures: Annotated[
        str, typer.Option(help="Effectiveness measures; RR_MSMARCO@10 follows the official rules.")
    ] = "RR_MSMARCO@10",
    test: Annotated[
        Literal["welch", "equal-variance-t", "nested"],
        typer.Option(help="Unpaired t-tests as in the paper; nested allows for queries that both sets have."),
    ] = "welch",
    correction: Annotated[Literal["none", "bonferroni", "holm", "bh"], typer.Option(help="Of the p-values.")] = (
        "bonferroni"
    ),
    family: Annotated[
        Literal["system", "measure", "all"],
        typer.Option(help="Comparisons that are corrected for: of one system, of one measure, or all."),
    ] = "measure",
    alpha: Annotated[float, typer.Option(help="Level of the tests; intervals have 1 − alpha.")] = 0.05,
    missing: Annotated[
        Literal["default", "skip", "fail"],
        typer.Option(help="Judged queries that a run lacks score 0, are left out, or are an error."),
    ] = "default",
    ties: Annotated[
        Literal["trec_eval", "ascending", "rank"], typer.Option(help="Order of results with equal scores.")
    ] = "trec_eval",
    rel: Annotated[int, typer.Option(help="Lowest relevant grade.")] = 1,
    as_json: JsonFlag = False,
) -> None:
    """Scores runs by the judgments of each annotation depth: does a shallow annotation move the figures?

    Each depth is tested against the full set; the trend has an interval; the order of the systems is compared; and all
    of it once more with the first judgment of each query only.

    Examples:

        truerank survivorship evaluate --depths depths/ --run bm25.run --run monot5.run --out scores/

        truerank survivorship evaluate --qrels 1=dev-1.qrels --qrels all=dev.qrels --run bm25.run --test nested
        --out scores/
    """
    options = survivorship.EvaluateOptions(measures, test, correction, family, alpha, missing, ties, rel)
    with progress() as shown:
        result = survivorship.evaluate(run, out, depths=depths, qrels=qrels, options=options, progress=shown)
    emit(result.text(), result.json(), as_json)
    note(f"report: {out / 'report.html'}")


_ANSWERABLE_HELP = """
Can discarded queries be answered after all? First pools rankers' results for people to judge, then counts.

With --docs: the first k results of every run for the discarded queries, as items for 'judge new' (scheme
answerability); from a log also what the first annotators saw (reasons.jsonl, scheme survivorship).

Without: for how many queries each ranker has an answer, and how many none has; from labels of such a pool, from
judgments, or from a table of first answers. --reasons counts why queries were left without an answer.

Examples:

    truerank survivorship answerable --log dev_v2.1.json.gz --sample 50 --docs collection.tsv --run bm25.run
    --run monot5.run --out pool/

    truerank judge new answers.db --scheme answerability --items pool/items.jsonl

    truerank survivorship answerable --pool pool/ --labels answers.db --out answerable/
"""


@app.command("answerable", help=_ANSWERABLE_HELP)
def answerable(
    out: OutFolder,
    run: Annotated[
        list[str], typer.Option("--run", metavar="[[CORPUS/]NAME=]FILE", help="Runs of the discarded queries.")
    ] = [],  # noqa: B006
    docs: Annotated[
        list[str], typer.Option(metavar="[CORPUS=]SRC", help="Makes a pool: the collections of the runs.")
    ] = [],  # noqa: B006
    log: Annotated[
        str | None, typer.Option("--log", metavar="[NAME=]SRC", help="An annotation log: its discarded queries.")
    ] = None,
    discarded: Annotated[
        str | None, typer.Option(metavar="SRC", help="Ids of discarded queries, in its place, or to choose of them.")
    ] = None,
    topics: Annotated[str | None, typer.Option(metavar="SRC", help="Texts of queries that come without a log.")] = None,
    k: Annotated[int, typer.Option("-k", help="Results of each run.")] = 10,
    sample: Annotated[int | None, typer.Option(help="Queries to draw (default: all).")] = None,
    seed: Annotated[int, typer.Option(help="Of the sample and of the order of passages.")] = 0,
    rule: Annotated[
        Literal["selected", "answered"],
        typer.Option(help="Discarded is what has no selected document, or no answer."),
    ] = "selected",
    pool: Annotated[Path | None, typer.Option("--pool", metavar="DIR", help="Counts: a pool that was judged.")] = None,
    labels: Annotated[
        list[str], typer.Option(metavar="STORE|SRC", help="Its labels: a judging store or label files.")
    ] = [],  # noqa: B006
    qrels: Annotated[
        str | None, typer.Option(metavar="SRC", help="Counts, in their place: judgments of discarded queries.")
    ] = None,
    firsts: Annotated[
        str | None, typer.Option(metavar="SRC", help="Counts, in their place: scorer, query_id, doc_id, rank.")
    ] = None,
    reasons: Annotated[list[str], typer.Option(metavar="STORE|SRC", help="Labels of the scheme survivorship.")] = [],  # noqa: B006
    cutoffs: Annotated[str, typer.Option(metavar="K,K…", help="An answer among so many results counts.")] = "10,3",
    rel: Annotated[int, typer.Option(help="Lowest grade of --qrels that answers.")] = 1,
    votes: VotesOption = "majority",
    include_models: Annotated[
        bool, typer.Option("--include-models", help="Count labels of models like those of people.")
    ] = False,
    confidence: Annotated[float, typer.Option(help="Of all intervals.")] = 0.95,
    as_json: JsonFlag = False,
) -> None:
    """Pools rankers' results for discarded queries, or counts what was found in them."""
    source = survivorship.Discarded(log, discarded, topics, rule)
    if docs:
        if pool or labels or qrels or firsts or reasons:
            raise InputError("--docs makes a pool, which is judged first", "count in a second call", where="answerable")
        choices = survivorship.PoolOptions(k, sample, seed)
        with progress() as shown:
            made = survivorship.pool_discarded(run, docs, source, out, options=choices, progress=shown)
        emit(made.text(), made.json(), as_json)
        note(f"items: {out / 'items.jsonl'}")
        return
    options = survivorship.AnswerableOptions(_numbers(cutoffs, "--cutoffs"), confidence, include_models, rel, votes)
    told = survivorship.AnswersFrom(pool, labels or None, firsts, run, qrels, source if log or discarded else None)
    result = survivorship.answerable(told, out, reasons=reasons or None, options=options)
    emit(result.text(), result.json(), as_json)
    note(f"report: {out / 'report.html'}")


@app.command("rescue")
def rescue(
    out: OutFolder,
    pool: Annotated[Path | None, typer.Option("--pool", metavar="DIR", help="A pool that was judged.")] = None,
    labels: Annotated[
        list[str], typer.Option(metavar="STORE|SRC", help="Its labels: a judging store or label files.")
    ] = [],  # noqa: B006
    firsts: Annotated[
        str | None, typer.Option(metavar="SRC", help="In their place: scorer, query_id, doc_id, rank.")
    ] = None,
    qrels: Annotated[
        str | None, typer.Option(metavar="SRC", help="Judgments of the queries that survived, to add to.")
    ] = None,
    negatives: Annotated[int, typer.Option(help="Training instances of each answer, 0 for none.")] = 1,
    choose: Annotated[
        Literal["top", "random"], typer.Option(help="Their non-relevant passages: highest in a ranking, or random.")
    ] = "top",
    seed: Annotated[int, typer.Option(help="Of random ones.")] = 0,
    votes: VotesOption = "majority",
    include_models: Annotated[
        bool, typer.Option("--include-models", help="Count labels of models like those of people.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Makes judgments and training instances of the discarded queries that can be answered.

    Both are marked as rescued. Non-relevant passages are those of the pool that were judged to be no answer.

    Examples:

        truerank survivorship rescue --pool pool/ --labels answers.db --qrels qrels.dev.tsv --out rescued/

        truerank train --model monot5 --instances rescued/instances.parquet --seed 1 --out model/
    """
    options = survivorship.RescueOptions(negatives, choose, seed, include_models, votes)
    source = survivorship.RescuedFrom(pool, labels or None, firsts)
    result = survivorship.rescue(source, out, qrels=qrels, options=options)
    emit(result.text(), result.json(), as_json)
    note(f"judgments: {out / 'qrels'}")


def _numbers(text: str, option: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(",") if part.strip())
    except ValueError as error:
        raise InputError(f"'{text}' is no list of whole numbers", "write them like 1,2,5", where=option) from error
