"""`truerank transfer …`: are judgments still true for the new version of the documents?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from truerank.audits import transfer
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
