"""Snapshots: the judged pages fetched from a web archive, one version of the collection for each year."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import polars as pl

from truerank.arrays import frame_schema
from truerank.audits.transfer.archive import (
    Archive,
    ArchiveOptions,
    BrokenError,
    Capture,
    FailedError,
    MissedError,
    Played,
    nearest,
    open_archive,
    parse_day,
    read_record,
    warc_record,
)
from truerank.audits.transfer.matching.versions import read_mapping
from truerank.core.result import Result
from truerank.errors import InputError, OptionError
from truerank.loading import json_file, whole_number
from truerank.options import Flag, Options, Range, command
from truerank.sources.documents import open_documents
from truerank.sources.inputs import inputs_of
from truerank.sources.qrels import read_qrels_frame
from truerank.text.main_content import ContentOptions, page_text
from truerank.text.urls import normalise_url
from truerank.work.artifacts import digest
from truerank.work.blocks import BlockStore
from truerank.work.kept import RECORD, is_whole, keep_json, kept_path
from truerank.work.progress import Progress, Quiet
from truerank.work.publishing import publish
from truerank.work.runs import Run
from truerank.work.runs import run as started

#: One row per URL and year; `warc` is the file, `offset` the record's place in it.
FETCHED_SCHEMA: Final[dict[str, Any]] = frame_schema(
    "url: String, year: Int32, status reason snapshot_url timestamp content_type: String, bytes: Int64, warc: String, "
    "offset: Int64"
)
#: URLs in a block: what is lost at most when the work is killed.
_BLOCK: Final = 16
#: After so many URLs in a row that could not be asked for it is seen whether the archive is down.
_DOWN: Final = 8
_KINDS: Final = frozenset(("", "-", "text/html", "application/xhtml+xml", "text/plain", "warc/revisit", "unk"))


class Wanted(NamedTuple):
    """Of each year the snapshot nearest to a day (month, day); so many captures of it are tried, the nearest first."""

    years: tuple[int, ...]
    day: tuple[int, int]
    tries: int


class _Asked(NamedTuple):
    """A URL, and the years of which a snapshot is still wanted."""

    url: str
    years: tuple[int, ...]


class _Outcome(NamedTuple):
    """What became of one URL and year; `page` where there is one."""

    url: str
    year: int
    status: str
    reason: str
    page: Played | None = None


def fetch_pages(
    urls: Sequence[str], wanted: Wanted, options: ArchiveOptions, folder: Path, progress: Progress
) -> pl.DataFrame:
    """Fetches the wanted snapshots of pages into a folder.

    The folder gets `fetched.parquet` and `snapshots-N.warc.gz`, each with a record of its length and checksum. What is
    there and whole is not fetched again; URLs that could not be asked for are, in another WARC file. A run that was
    killed goes on.
    """
    identity = digest({"urls": list(urls), **wanted._asdict(), **options.content()})[:16]
    done, rounds = _finished(folder, identity)
    pending = [_Asked(url, wanted.years) for url in urls]
    if done is not None:
        failed = done.filter(pl.col("status") == "failed").group_by("url", maintain_order=True).agg("year")
        pending = [_Asked(url, tuple(years)) for url, years in failed.iter_rows()]
        if not pending:
            return done
    work = folder / ".work" / f"fetch-{identity}-{rounds}"
    found = _round(pending, wanted, options, work, progress)
    name = f"snapshots-{rounds}.warc.gz"
    fresh = _joined(found, work, folder / name, name)
    if done is not None:
        fresh = pl.concat([done.filter(pl.col("status") != "failed"), fresh])
    order = pl.DataFrame({"url": urls}, schema={"url": pl.String}).with_row_index("at")
    fresh = fresh.join(order, on="url", how="left").sort("at", "year").select(list(FETCHED_SCHEMA))
    with kept_path(folder / "fetched.parquet") as temporary:
        fresh.write_parquet(temporary, compression="zstd")
    keep_json(folder / "fetched.json", {"identity": identity, "rounds": rounds + (folder / name).exists()})
    shutil.rmtree(work, ignore_errors=True)
    return fresh


def _finished(folder: Path, identity: str) -> tuple[pl.DataFrame | None, int]:
    """What an earlier run fetched for the same wishes, and the number of its rounds."""
    state, table = folder / "fetched.json", folder / "fetched.parquet"
    try:
        found = json_file(state)
        if found["identity"] != identity:
            return None, 0
        frame = pl.read_parquet(table, glob=False).select(list(FETCHED_SCHEMA))
        rounds = int(found["rounds"])
    except (InputError, OSError, ValueError, KeyError, TypeError, pl.exceptions.PolarsError):
        return None, 0
    if not all(map(is_whole, (state, table, *(folder / name for name in frame["warc"].unique() if name)))):
        return None, 0
    return frame, rounds


def _round(asked: list[_Asked], wanted: Wanted, options: ArchiveOptions, work: Path, progress: Progress) -> int:
    """Fetches the URLs, block by block; returns the number of blocks."""
    store = BlockStore(work)
    blocks = [asked[start : start + _BLOCK] for start in range(0, len(asked), _BLOCK)]
    progress.start("asking the archive", len(asked))
    archive: Archive | None = None
    down: list[str] = []
    try:
        for number, block in enumerate(blocks):
            part = work / f"{number:08d}.warc.gz"
            if store.has(number) and is_whole(part):
                progress.advance(len(block))
                continue
            archive = archive or open_archive(options)
            outcomes: list[_Outcome] = []
            for one in block:
                outcomes += _of_url(archive, one, wanted)
                down = [*down, outcomes[-1].reason] if outcomes[-1].status == "failed" else []
                if len(down) % _DOWN == _DOWN - 1 and not archive.answers():
                    fault = f"the archive no longer answers ({Counter(down).most_common(1)[0][0]})"
                    error = InputError(fault, "run it again later: it continues", where=options.base_url)
                    error.continues = True
                    raise error
                progress.advance(1)
            _save(outcomes, store, number, part)
    finally:
        if archive is not None:
            archive.close()
    return len(blocks)


def _of_url(archive: Archive, asked: _Asked, wanted: Wanted) -> list[_Outcome]:
    url = asked.url
    try:
        captures = archive.captures(url, wanted.years)
    except (MissedError, FailedError) as error:
        status = "missed" if isinstance(error, MissedError) else "failed"
        return [_Outcome(url, year, status, str(error)) for year in asked.years]
    outcomes = []
    for year in asked.years:
        pages, reason = _usable(captures, year, wanted.day)
        missing = _Outcome(url, year, "missed", reason)
        outcomes.append(_played(archive, url, year, pages[: wanted.tries]) if pages else missing)
    return outcomes


def _usable(captures: Sequence[Capture], year: int, day: tuple[int, int]) -> tuple[list[Capture], str]:
    """The captures of a year that may be pages, the nearest first, or why there is none."""
    of_year = nearest(captures, year, day)
    if not of_year:
        return [], "no capture in this year" if captures else "no capture in the years asked for"
    answered = [one for one in of_year if one.status in (200, None)]
    if not answered:
        return [], f"captured as HTTP {of_year[0].status}"
    pages = [one for one in answered if one.content_type.lower() in _KINDS]
    return pages, "" if pages else f"content type {answered[0].content_type.lower()}"


def _played(archive: Archive, url: str, year: int, pages: Sequence[Capture]) -> _Outcome:
    """The first of the captures that can be played back."""
    status, reason = "missed", ""
    for capture in pages:
        try:
            return _Outcome(url, year, "found", "", archive.play(capture))
        except MissedError as error:
            reason = reason or str(error)
        except BrokenError as error:
            status, reason = "failed", reason or str(error)
        except FailedError as error:
            return _Outcome(url, year, "failed", str(error))
    return _Outcome(url, year, status, reason)


def _save(outcomes: Sequence[_Outcome], store: BlockStore, number: int, part: Path) -> None:
    rows = []
    with kept_path(part) as temporary, temporary.open("wb") as stream:
        for one in outcomes:
            page, offset = one.page, stream.tell()
            if page is None:
                rows.append((one.url, one.year, one.status, one.reason, "", "", "", 0, "", 0))
                continue
            stream.write(warc_record(page))
            about = (page.capture.url, page.capture.timestamp, page.content_type, len(page.body), "-", offset)
            rows.append((one.url, one.year, "found", "", *about))
    store.save(number, pl.DataFrame(rows, schema=FETCHED_SCHEMA, orient="row"))


def _joined(blocks: int, work: Path, out: Path, name: str) -> pl.DataFrame:
    """Puts the parts of the WARC file together, and says of each record where it now is."""
    parts = [BlockStore(work).load(number) for number in range(blocks)]
    frames = [pl.DataFrame(schema=FETCHED_SCHEMA)]
    kept = pl.col("warc") != ""
    if not any(len(part.filter(kept)) for part in parts):
        return pl.concat([*frames, *parts])
    with kept_path(out) as temporary, temporary.open("wb") as target:
        for number, rows in enumerate(parts):
            start = target.tell()
            with (work / f"{number:08d}.warc.gz").open("rb") as part:
                shutil.copyfileobj(part, target, 1 << 20)
            place = pl.when(kept).then(pl.col("offset") + start).otherwise(0)
            file = pl.when(kept).then(pl.lit(name)).otherwise(pl.lit(""))
            frames.append(rows.with_columns(file.alias("warc"), place.alias("offset")))
    return pl.concat(frames)


_PACKAGES: Final = ("wayback", "resiliparse", "fastwarc", "ftfy")
#: The columns of `snapshots.parquet`: one row per judged document and year.
_COLUMNS: Final = (
    "doc_id", "url", "year", "status", "reason", "snapshot_url", "timestamp", "content_type", "bytes", "encoding",
    "title_characters", "body_characters", "warc", "offset",
)  # fmt: skip
_TEXTS: Final[dict[str, Any]] = {"title": pl.String, "body": pl.String, "encoding": pl.String, "why": pl.String}
#: Pages whose texts are taken at a time.
_URLS_AT_ONCE: Final = 256


@dataclass(frozen=True)
class SnapshotOptions(Options):
    """Which snapshots are looked for, and what of a page is taken.

    Attributes:
        years: one snapshot of each of these years, with commas between them. In Python also numbers.
        day: MM-DD; the snapshot nearest to this day is taken. 2 July is the middle of a year.
        tries: how many captures of a year are tried, the nearest first.
        all_text: take all visible text, not the main content only.
        alt_texts: take alternative texts of images too.
        no_repair: leave wrongly decoded characters as they are; by default ftfy repairs them.
    """

    years: Annotated[str | tuple[int, ...], Flag(metavar="YEAR,…", reads=str)] = "2015,2016,2017"
    day: Annotated[str, Flag(metavar="MM-DD")] = "07-02"
    tries: Annotated[int, Range(at_least=1)] = 3
    all_text: bool = False
    alt_texts: bool = False
    no_repair: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        years = self._years()
        if not years or len(set(years)) < len(years) or not all(1991 <= year <= 9999 for year in years):
            raise OptionError("years", "no years, one twice, or one before the web", "write 2015,2016,2017")
        parse_day(self.day)

    def _years(self) -> tuple[int, ...]:
        if not isinstance(self.years, str):
            return tuple(self.years)
        texts = [text.strip() for text in self.years.split(",") if text.strip()]
        for text in texts:
            if whole_number(text) is None:
                raise OptionError("years", f"'{text}' is not a year", "write 2015,2016,2017")
        return tuple(map(int, texts))

    @property
    def wanted(self) -> Wanted:
        """Years in their order, day, and tries."""
        return Wanted(tuple(sorted(self._years())), parse_day(self.day), self.tries)


@dataclass(frozen=True, eq=False, repr=False)
class Snapshots(Result, shown_in="truerank.audits.transfer.report"):
    """The snapshots of judged documents.

    Attributes:
        frame: one row per judged document and year: what was found, or why not.
        years: the years.
        folder: where `YEAR.jsonl`, the WARC files and the tables lie.
        warnings: what a user must know, one sentence each.
    """

    frame: pl.DataFrame
    years: tuple[int, ...]
    folder: Path
    warnings: tuple[str, ...] = ()

    def files(self) -> dict[str, str]:
        """The documents of each year, as versions of the collection."""
        return {str(year): str(self.folder / f"{year}.jsonl") for year in self.years}

    def counts(self) -> dict[str, Any]:
        """Documents, snapshots by year, and documents with a snapshot in all and in any year."""
        found = self.frame.filter(pl.col("status") == "found")
        per_document = found.group_by("doc_id").len()["len"]
        by_year: dict[str, dict[str, int]] = {}
        for year in self.years:
            known = dict(self.frame.filter(pl.col("year") == year)["status"].value_counts().iter_rows())
            by_year[str(year)] = {status: int(known.get(status, 0)) for status in ("found", "missed", "failed")}
        return {
            "documents": self.frame["doc_id"].n_unique(),
            "years": by_year,
            "all_years": int((per_document == len(self.years)).sum()),
            "any_year": len(per_document),
        }

    def reasons(self) -> pl.DataFrame:
        """Year, status, reason and number of documents that have no snapshot, the most frequent first."""
        missed = self.frame.filter(pl.col("status") != "found")
        grouped = missed.group_by("year", "status", "reason").agg(pl.len().cast(pl.Int64).alias("documents"))
        return grouped.sort("year", "documents", "status", "reason", descending=[False, True, True, False])

    def json(self) -> dict[str, Any]:
        """The counts, reasons and files."""
        found = {**self.counts(), "reasons": self.reasons().to_dicts(), "files": self.files()}
        return {**found, "folder": str(self.folder), "warnings": list(self.warnings)}


@command
def snapshots(
    out: Annotated[str | Path, Flag(metavar="DIR", reads=Path)],
    docs: Annotated[str | None, Flag(metavar="SRC")] = None,
    qrels: Annotated[str | None, Flag(metavar="SRC")] = None,
    *,
    urls: Annotated[str | None, Flag(metavar="FILE")] = None,
    options: SnapshotOptions = SnapshotOptions(),
    archive: ArchiveOptions = ArchiveOptions(),
    settings: Annotated[str | Path | None, Flag(metavar="FILE", reads=Path)] = None,
    progress: Progress | None = None,
) -> Snapshots:
    """Fetches the judged pages as a web archive has them: for each year the snapshot nearest to 2 July.

    A run that was killed continues and ends with the same bytes. Run again, it requests only what failed before; with
    other options for texts, it extracts them again from the WARC files. Needs
    truerank[pages].

    Args:
        out: a folder for YEAR.jsonl (documents with id, url, title, body, timestamp), snapshots.parquet, misses.tsv
            (what has no snapshot, and why), snapshots-N.warc.gz, fetched.parquet and summary.json.
        docs: the judged collection, whose documents have URLs.
        qrels: the judgments; without them every document is looked for.
        urls: instead of `docs`, a table of document id and URL.
        options: which snapshots.
        archive: which archive.
        settings: rare settings of the archive, in TOML: playback_path, cdx_path, timemap_path, retries, backoff,
            max_wait, timeout, max_seconds, max_bytes.
        progress: receives progress updates.

    Returns:
        What was found, and why the rest was not.

    Raises:
        InputError: a source is at fault, or the archive does not answer.
        MissingExtraError: the extra [pages] is not installed.

    Examples:

        truerank transfer snapshots --docs docs.jsonl --qrels train.qrels --years 2015,2016,2017 --out snapshots/
        --user-agent "my-lab (me@example.org)"

        truerank transfer snapshots --urls urls.tsv --base-url https://archive.example --lookup timemap --out snapshots/

    Source: the transfer paper, section 3, "Wayback Machine Snapshots".
    """
    progress = progress or Quiet()
    if (docs is None) == (urls is None):
        raise OptionError("docs", "the URLs come from one place", "give `docs` or `urls`")
    if settings is not None:
        archive = archive.with_file(settings)
    content = ContentOptions(
        not options.all_text, alt_texts=options.alt_texts, repair=not options.no_repair, max_bytes=archive.max_bytes
    )
    inputs = inputs_of(docs=docs, urls=urls, qrels=qrels)
    # How patiently the archive is asked does not decide what is found.
    how = {"options": options, "years": list(options.wanted.years), **archive.content()}
    with started("transfer snapshots", inputs, how, out, packages=_PACKAGES) as job:
        judged = None if qrels is None else read_qrels_frame(qrels)["doc_id"].unique(maintain_order=True)
        pages = _pages(docs, urls, judged, progress)
        usable = pages.filter(pl.col("reason") == "")["url"].unique(maintain_order=True)
        fetched = fetch_pages(usable.to_list(), options.wanted, archive, job.folder, progress)
        store = _texts(fetched, content, job, progress)
        characters = [
            pl.col(name).str.len_chars().cast(pl.Int64).alias(f"{name}_characters") for name in ("title", "body")
        ]
        empty = pl.DataFrame(schema=_TEXTS).select("encoding", "why", *characters)
        lengths = (store.load(number).select("encoding", "why", *characters) for number in range(_blocks_of(fetched)))
        texts = pl.concat([empty, *lengths])
        frame = _rows(pages, pl.concat([fetched, texts], how="horizontal"), options.wanted.years)
        failed = int((frame["status"] == "failed").sum())
        again = f"{failed:,d} snapshots could not be asked for: run the same command again, it tries those only."
        result = Snapshots(frame, options.wanted.years, job.folder, (again,) if failed else ())
        for year in result.years:
            with job.output(f"{year}.jsonl") as stream:
                stream.writelines(_documents(pages, fetched, store, year))
        for name in ("fetched.parquet", "fetched.json", *sorted(set(fetched["warc"]) - {""})):
            for file in (name, f"{name}{RECORD}"):
                if (job.folder / file).is_file():
                    job.note(file)
        publish(result, job)
    return result


def _pages(docs: str | None, urls: str | None, judged: pl.Series | None, progress: Progress) -> pl.DataFrame:
    """Judged documents with their URLs, and why one cannot be asked for."""
    schema = {"doc_id": pl.String, "url": pl.String}
    if urls is not None:
        named = read_mapping(urls, ("doc_id", "url")).with_columns(pl.col("url").fill_null(""))
    else:
        progress.start("reading the documents")
        sought = None if judged is None else frozenset(judged.to_list())
        rows: list[tuple[str, str]] = []
        for block in open_documents(docs or "", keep_empty=True).batches():
            rows += [(one.doc_id, one.url.strip()) for one in block if sought is None or one.doc_id in sought]
            progress.advance(len(block))
        named = pl.DataFrame(rows, schema=schema, orient="row")
    named = named.unique("doc_id", keep="first", maintain_order=True)
    if judged is not None:
        named = pl.DataFrame({"doc_id": judged}).join(named, on="doc_id", how="left", maintain_order="left")
    hosts = [normalise_url(url) if url else "" for url in named["url"]]
    return named.with_columns(
        pl.when(pl.col("url").is_null()).then(pl.lit("the document is not in the collection"))
        .when(pl.col("url") == "").then(pl.lit("the document has no URL"))
        .when(pl.Series(hosts, dtype=pl.String) == "").then(pl.lit("its URL names no host"))
        .otherwise(pl.lit("")).alias("reason"),
        pl.col("url").fill_null(""),
    )  # fmt: skip


def _blocks_of(fetched: pl.DataFrame) -> int:
    return -(-len(fetched) // _URLS_AT_ONCE)


def _texts(fetched: pl.DataFrame, options: ContentOptions, job: Run, progress: Progress) -> BlockStore:
    """Takes the texts out of the WARC files, block by block, in the order of the rows."""
    content = {"fetched": digest(fetched.select("warc", "offset", "bytes").rows()), "options": asdict(options)}
    store = BlockStore(job.work / f"texts-{digest(content)[:16]}")
    progress.start("taking the texts", len(fetched))
    for number in range(_blocks_of(fetched)):
        part = fetched.slice(number * _URLS_AT_ONCE, _URLS_AT_ONCE)
        if not store.has(number):
            rows = []
            for warc, offset in part.select("warc", "offset").iter_rows():
                if not warc:
                    rows.append(("", "", "", ""))
                    continue
                page = read_record(job.folder / warc, offset)
                text = page_text(page.body, page.content_type, options)
                rows.append((text.title, text.body, text.encoding, text.reason))
            store.save(number, pl.DataFrame(rows, schema=_TEXTS, orient="row"))
        progress.advance(len(part))
    return store


def _rows(pages: pl.DataFrame, fetched: pl.DataFrame, years: Sequence[int]) -> pl.DataFrame:
    """One row per document and year, in the order of the documents."""
    every = pages.join(
        pl.DataFrame({"year": pl.Series(years, dtype=pl.Int32)}), how="cross", maintain_order="left_right"
    )
    rows = every.join(fetched, on=["url", "year"], how="left", maintain_order="left", suffix="_fetched")
    unreadable = (pl.col("status") == "found") & (pl.col("why") != "")
    return rows.with_columns(
        pl.when(unreadable).then(pl.lit("missed")).otherwise(pl.col("status").fill_null("missed")).alias("status"),
        pl.when(pl.col("reason") != "").then("reason").when(unreadable).then("why")
        .otherwise(pl.col("reason_fetched").fill_null("")).alias("reason"),
        pl.col("snapshot_url", "timestamp", "content_type", "encoding", "warc").fill_null(""),
        pl.col("bytes", "offset", "title_characters", "body_characters").fill_null(0),
    ).select(_COLUMNS)  # fmt: skip


def _documents(pages: pl.DataFrame, fetched: pl.DataFrame, store: BlockStore, year: int) -> Iterator[bytes]:
    """The documents of a year as JSONL, in the order of the pages; texts are held one block at a time."""
    documents: dict[str, list[str]] = {}
    for doc_id, url in pages.filter(pl.col("reason") == "").select("doc_id", "url").iter_rows():
        documents.setdefault(url, []).append(doc_id)
    for number in range(_blocks_of(fetched)):
        part = fetched.slice(number * _URLS_AT_ONCE, _URLS_AT_ONCE)
        both = pl.concat([part, store.load(number)], how="horizontal")
        both = both.filter((pl.col("year") == year) & (pl.col("status") == "found") & (pl.col("why") == ""))
        for row in both.iter_rows(named=True):
            for doc_id in documents[row["url"]]:
                record = {"doc_id": doc_id, **{name: row[name] for name in ("url", "title", "body", "timestamp")}}
                yield json.dumps(record, ensure_ascii=False).encode("utf-8", "replace") + b"\n"
