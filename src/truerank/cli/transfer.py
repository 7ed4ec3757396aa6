"""`truerank transfer …`: are judgments still true for the new version of the documents?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from truerank.audits import transfer
from truerank.cli import transfer_scan
from truerank.cli.console import JsonFlag, VotesOption, emit, note, progress
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


@app.command("clean")
def clean(
    qrels: Annotated[str, typer.Option(metavar="SRC", help="The judgments.")],
    out: Annotated[
        Path, typer.Option("--out", metavar="FILE", help="The judgments that hold; the name says the compression.")
    ],
    scan: Annotated[
        str | None, typer.Option(metavar="DIR", help="The folder that 'transfer scan --out' wrote.")
    ] = None,
    labels: Annotated[
        list[str], typer.Option("--labels", metavar="SRC", help="What people judged: a store, or label files.")
    ] = [],  # noqa: B006
    version: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="For whose documents judgments must hold (default: the second version)."),
    ] = None,
    by: Annotated[
        Literal["max-or-texts", "max", "texts", "first", "any", "both"],
        typer.Option(help="What must have named a candidate: scores by MaxP, FirstP or both, the texts, any of them."),
    ] = "max-or-texts",
    ids: Annotated[
        Literal["judged", "version"], typer.Option(help="Whose ids the judgments have: version for carried ones.")
    ] = "judged",
    reason: Annotated[
        list[str], typer.Option(metavar="CLASS", help="Only what was flagged for this reason; repeat for several.")
    ] = [],  # noqa: B006
    policy: Annotated[
        Literal["labels-first", "labels-only", "either"], typer.Option(help="How labels and scan are combined.")
    ] = "labels-first",
    relevant: Annotated[int, typer.Option(help="Judgments below this grade stay.")] = 1,
    votes: VotesOption = "majority",
    include_models: Annotated[
        bool, typer.Option("--include-models", help="Count labels of models like those of people.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Writes the judgments without those that a scan flagged, or that people judged broken.

    What stays keeps its order. Beside the file stand `FILE.removed.tsv` (what was removed and why) and
    `FILE.manifest.json`.

    Examples:

        truerank transfer clean --qrels train.qrels --scan scan/ --out train.clean.qrels

        truerank transfer clean --qrels train-v2.qrels --scan scan/ --labels judged.db --ids version --version V2
        --policy labels-only --out train-v2.clean.qrels
    """
    sources: list[str] | str | None = labels[0] if len(labels) == 1 else labels or None
    options = transfer.CleanOptions(version, by, ids, tuple(reason), policy, relevant, include_models, votes)
    result = transfer.clean_judgments(qrels, out, scan, sources, options)
    emit(result.text(), result.json(), as_json)
    note(f"judgments: {out}")


app.command("scan")(transfer_scan.scan)
app.command("describe")(transfer_scan.describe)
app.command("estimate")(transfer_scan.estimate)
app.command("select")(transfer_scan.select)
app.command("card")(transfer_scan.card)
