"""`truerank transfer …`: are judgments still true for the new version of the documents?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from truerank.audits import transfer
from truerank.cli import transfer_scan
from truerank.cli.console import JsonFlag, emit, note, progress
from truerank.errors import InputError
from truerank.sources.archive.options import CANONICAL

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


@app.command("snapshots")
def snapshots(
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Folder for documents, WARC files and tables.")],
    docs: Annotated[
        str | None, typer.Option(metavar="SRC", help="The judged collection, whose documents have URLs.")
    ] = None,
    urls: Annotated[str | None, typer.Option(metavar="FILE", help="Instead: a table of document id and URL.")] = None,
    qrels: Annotated[
        str | None, typer.Option(metavar="SRC", help="The judgments; without them every document is looked for.")
    ] = None,
    years: Annotated[str, typer.Option(metavar="YEAR,…", help="One snapshot of each year.")] = "2015,2016,2017",
    day: Annotated[str, typer.Option(metavar="MM-DD", help="The snapshot nearest to this day.")] = "07-02",
    tries: Annotated[int, typer.Option(help="Captures of a year that are tried, the nearest first.")] = 3,
    base_url: Annotated[str, typer.Option(help="The archive.")] = CANONICAL,
    lookup: Annotated[
        Literal["cdx", "timemap"], typer.Option(help="How captures are found: CDX server, or Memento TimeMap.")
    ] = "cdx",
    playback_path: Annotated[str, typer.Option(help="What stands before TIMESTAMPid_/URL in the archive.")] = "/web/",
    cdx_path: Annotated[str, typer.Option(help="The archive's CDX server.")] = "/cdx/search/cdx",
    timemap_path: Annotated[str, typer.Option(help="What stands before the URL of a TimeMap.")] = "/web/timemap/link/",
    search_rate: Annotated[float, typer.Option(help="Look-ups a second at most; 0 for no limit.")] = 0.4,
    page_rate: Annotated[float, typer.Option(help="Snapshots a second at most; 0 for no limit.")] = 4.0,
    retries: Annotated[int, typer.Option(help="Repetitions of a request that failed for the moment.")] = 5,
    backoff: Annotated[float, typer.Option(help="Seconds before the second repetition; doubled each time.")] = 2.0,
    max_wait: Annotated[float, typer.Option(help="Seconds waited at most, whatever Retry-After says.")] = 600.0,
    timeout: Annotated[float, typer.Option(help="Seconds without an answer.")] = 60.0,
    max_seconds: Annotated[float, typer.Option(help="Seconds that one page may take.")] = 300.0,
    max_bytes: Annotated[int, typer.Option(help="Of a larger page nothing is kept.")] = 10 << 20,
    user_agent: Annotated[str, typer.Option(help="Who asks: a name and an address to write to.")] = "",
    ignore_robots: Annotated[
        bool, typer.Option("--ignore-robots", help="Ask although robots.txt forbids it, with the archive's leave.")
    ] = False,
    all_text: Annotated[
        bool, typer.Option("--all-text", help="Take all visible text, not the main content only.")
    ] = False,
    alt_texts: Annotated[bool, typer.Option("--alt-texts", help="Take alternative texts of images too.")] = False,
    repair: Annotated[bool, typer.Option(help="Mend wrongly decoded characters (ftfy).")] = True,
    as_json: JsonFlag = False,
) -> None:
    """Fetches the judged pages as a web archive has them: for each year the snapshot nearest to 2 July.

    Writes `YEAR.jsonl` (documents with id, url, title, body, timestamp), `snapshots.parquet`, `misses.tsv` (what has no
    snapshot, and why), `snapshots-N.warc.gz`, `fetched.parquet`, `summary.json` and `manifest.json`. A run that was
    killed continues; run again, it asks only for what could not be asked for before. Needs truerank[pages].

    Examples:

        truerank transfer snapshots --docs docs.jsonl --qrels train.qrels --years 2015,2016,2017 --out snapshots/
        --user-agent "my-lab (me@example.org)"

        truerank transfer snapshots --urls urls.tsv --base-url https://archive.example --lookup timemap --out snapshots/
    """
    options = transfer.SnapshotOptions(
        years=tuple(_year(text) for text in years.split(",") if text.strip()),
        day=day,
        tries=tries,
        archive=transfer.ArchiveOptions(
            base_url=base_url,
            lookup=lookup,
            playback_path=playback_path,
            cdx_path=cdx_path,
            timemap_path=timemap_path,
            search_rate=search_rate,
            page_rate=page_rate,
            retries=retries,
            backoff=backoff,
            max_wait=max_wait,
            timeout=timeout,
            max_seconds=max_seconds,
            max_bytes=max_bytes,
            user_agent=user_agent,
            ignore_robots=ignore_robots,
        ),
        content=transfer.ContentOptions(
            main_content=not all_text, alt_texts=alt_texts, repair=repair, max_bytes=max_bytes
        ),
    )
    with progress() as shown:
        result = transfer.fetch_snapshots(out, options, docs=docs, urls=urls, qrels=qrels, progress=shown)
    emit(result.text(), result.json(), as_json)
    note(f"snapshots: {out}")


def _year(text: str) -> int:
    if not text.strip().isdigit():
        raise InputError(f"'{text}' is no year", "write 2015,2016,2017", where="--years")
    return int(text)


app.command("scan")(transfer_scan.scan)
app.command("describe")(transfer_scan.describe)
app.command("estimate")(transfer_scan.estimate)
app.command("select")(transfer_scan.select)
app.command("card")(transfer_scan.card)
