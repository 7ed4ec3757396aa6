"""`truerank transfer …`: are judgments still true for the new version of the documents?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from truerank.audits import transfer
from truerank.cli import transfer_scan
from truerank.cli.console import JsonFlag, emit, note, progress

__all__ = ["app"]

app = typer.Typer(
    help="Are my relevance judgments still true for the new version of the documents?", no_args_is_help=True
)

Versions = Annotated[
    list[str],
    typer.Option(
        "--version",
        metavar="NAME=SRC",
        help="Versions of the collection: a path, irds:ID or hf:ORG/NAME; the judged one first.",
    ),
]


@app.command("match")
def match(
    version: Versions,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for the tables and the manifest.")],
    qrels: Annotated[
        str | None, typer.Option(metavar="SRC", help="The judgments; without them every document is looked for.")
    ] = None,
    by: Annotated[
        Literal["url", "id", "mapping"], typer.Option(help="How a document is found again in another version.")
    ] = "url",
    mapping: Annotated[
        str | None, typer.Option(metavar="FILE", help="With --by mapping: a table of ids, one column per version.")
    ] = None,
    keep_scheme: Annotated[bool, typer.Option("--keep-scheme", help="http and https differ.")] = False,
    drop_www: Annotated[bool, typer.Option("--drop-www", help="A first www. of the host does not count.")] = False,
    keep_slash: Annotated[bool, typer.Option("--keep-slash", help="A slash at the end of the path counts.")] = False,
    drop_tracking: Annotated[
        bool, typer.Option("--drop-tracking", help="Parameters such as utm_source and gclid do not count.")
    ] = False,
    sort_parameters: Annotated[
        bool, typer.Option("--sort-parameters", help="The order of the parameters does not count.")
    ] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Bytes that are not UTF-8 are an error.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Finds the judged documents of one version of a collection in the others: matched, lost, ambiguous.

    Writes `matched.parquet` (one row per judged document, a column of ids per version), `pairs.parquet` (what became
    of each document in each version, and why), `lost.tsv`, `ambiguous.tsv`, `summary.json` and `manifest.json`.

    Examples:

        truerank transfer match --version V1=docs-2018.jsonl --version V2=docs-2021.jsonl --qrels train.qrels
        --drop-tracking --out matched/

        truerank transfer match --version old=old.trec --version new=new.trec --by mapping --mapping ids.tsv
        --out matched/
    """
    options = transfer.MatchOptions(
        by=by,
        urls=transfer.UrlRules(keep_scheme, drop_www, keep_slash, drop_tracking, sort_parameters),
        mapping=mapping,
        strict=strict,
    )
    with progress() as shown:
        result = transfer.match_versions(version, qrels, out, options, progress=shown)
    emit(result.text(), result.json(), as_json)
    note(f"matched: {out}")


@app.command("carry")
def carry(
    qrels: Annotated[str, typer.Option(metavar="SRC", help="The judgments to carry over.")],
    out: Annotated[
        Path, typer.Option("--out", metavar="FILE", help="The new judgments; the name says the compression.")
    ],
    matched: Annotated[
        str | None, typer.Option(metavar="DIR", help="The folder that 'transfer match --out' wrote.")
    ] = None,
    to: Annotated[str | None, typer.Option(metavar="NAME", help="With --matched: the version to carry to.")] = None,
    mapping: Annotated[
        str | None, typer.Option("--map", metavar="FILE", help="A table: judged id, id to carry to.")
    ] = None,
    pattern: Annotated[
        str | None,
        typer.Option(
            metavar="NAME|REGEX",
            help="The id holds that of its document: qna, cast, segment, window, or an expression with one group.",
        ),
    ] = None,
    docs: Annotated[
        str | None, typer.Option(metavar="SRC", help="With --map or --pattern: the collection; what it lacks is lost.")
    ] = None,
    combine: Annotated[
        Literal["max", "min", "majority", "agree"],
        typer.Option(help="What several judgments of one topic become that go to the same document."),
    ] = "max",
    expert: Annotated[
        str | None, typer.Option(metavar="SRC", help="Judgments of experts: how often do they disagree?")
    ] = None,
    relevant: Annotated[int, typer.Option(help="A carried judgment is relevant from this grade on.")] = 1,
    expert_relevant: Annotated[int, typer.Option(help="An expert's judgment is relevant from this grade on.")] = 1,
    confidence: Annotated[float, typer.Option(help="Confidence of the intervals.")] = 0.95,
    as_json: JsonFlag = False,
) -> None:
    """Writes judgments of passages as judgments of documents, or those of one version for another.

    Beside the file stand `FILE.lost.tsv`, `FILE.ambiguous.tsv` and `FILE.merged.tsv` (each judgment that was not
    carried or was put together with others, and why), with --expert `FILE.disagreements.tsv`, and
    `FILE.manifest.json`.

    Examples:

        truerank transfer carry --qrels train.qrels --matched matched/ --to V2 --out train-v2.qrels

        truerank transfer carry --qrels passages.qrels --map passage-to-doc.tsv --docs docs.tsv.gz --out docs.qrels
        --expert nist.qrels

        truerank transfer carry --qrels cast.qrels --pattern cast --out docs.qrels.gz
    """
    with progress() as shown:
        result = transfer.carry_judgments(
            qrels,
            out,
            transfer.Route(matched=matched, to=to, mapping=mapping, pattern=pattern, docs=docs),
            transfer.CarryOptions(
                combine=combine,
                relevant=relevant,
                expert=expert,
                expert_relevant=expert_relevant,
                confidence=confidence,
            ),
            progress=shown,
        )
    emit(result.text(), result.json(), as_json)
    note(f"judgments: {out}")


app.command("scan")(transfer_scan.scan)
app.command("describe")(transfer_scan.describe)
app.command("estimate")(transfer_scan.estimate)
app.command("select")(transfer_scan.select)
app.command("card")(transfer_scan.card)
