"""Snapshots: the judged pages as a web archive has them, one version of the collection for each year."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

import polars as pl

from truerank.audits.outputs import written
from truerank.audits.transfer.fetching import Wanted, fetch_pages
from truerank.audits.transfer.matching.mapping_files import read_mapping
from truerank.audits.transfer.provenance import file_record, provenance, tsv
from truerank.errors import InputError
from truerank.reports.tables import Column, Table
from truerank.sources.archive import ArchiveOptions, parse_day, read_record
from truerank.sources.documents import open_documents
from truerank.sources.qrels import read_qrels_frame
from truerank.text.main_content import ContentOptions, page_text
from truerank.text.urls import normalise_url
from truerank.work.artifacts import Artifacts, digest, installed_versions
from truerank.work.blocks import BlockStore
from truerank.work.progress import Progress, Quiet

__all__ = ["SnapshotOptions", "Snapshots", "fetch_snapshots"]

#: The columns of `snapshots.parquet`: one row per judged document and year.
_COLUMNS: Final = (
    "doc_id", "url", "year", "status", "reason", "snapshot_url", "timestamp", "content_type", "bytes", "encoding",
    "title_characters", "body_characters", "warc", "offset",
)  # fmt: skip
_TEXTS: Final[dict[str, Any]] = {"title": pl.String, "body": pl.String, "encoding": pl.String, "why": pl.String}
#: Pages whose texts are taken at a time.
_BLOCK: Final = 256


@dataclass(frozen=True)
class SnapshotOptions:
    """Which snapshots `fetch_snapshots` looks for.

    Args:
        years: one snapshot of each is wanted.
        day: MM-DD; the snapshot nearest to this day is taken. 2 July is the middle of a year.
        tries: captures of a year that are tried, the nearest first.
        archive: which archive is asked, and how patiently.
        content: what of a page is taken.
    """

    years: tuple[int, ...] = (2015, 2016, 2017)
    day: str = "07-02"
    tries: int = 3
    archive: ArchiveOptions = field(default_factory=ArchiveOptions)
    content: ContentOptions = field(default_factory=ContentOptions)

    def __post_init__(self) -> None:
        if not self.years or len(set(self.years)) < len(self.years) or not all(1991 <= y <= 9999 for y in self.years):
            raise InputError("no years, one twice, or one before the web", "write 2015,2016,2017", where="--years")
        if self.tries < 1:
            raise InputError(f"{self.tries} tries find nothing", "give 1 or more", where="--tries")
        parse_day(self.day)

    @property
    def wanted(self) -> Wanted:
        """Years in their order, day, and tries."""
        return Wanted(tuple(sorted(self.years)), parse_day(self.day), self.tries)


@dataclass(frozen=True)
class Snapshots:
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
        return {
            **self.counts(),
            "reasons": self.reasons().to_dicts(),
            "files": self.files(),
            "folder": str(self.folder),
            "warnings": list(self.warnings),
        }

    def table(self) -> Table:
        """Found and missed per year, with the reasons."""
        counts, rows, rules = self.counts(), list[tuple[str | int, ...]](), list[int]()
        reasons = self.reasons()
        for year, found in counts["years"].items():
            rules.append(len(rows))
            rows.append((year, "found", "", found["found"]))
            for status in ("missed", "failed"):
                if found[status]:
                    some = reasons.filter((pl.col("year") == int(year)) & (pl.col("status") == status))
                    rows.append((year, status, "", found[status]))
                    rows += [("", "", reason, number) for *_, reason, number in some.iter_rows()]
        return Table(
            title=f"Snapshots of {counts['documents']:,d} judged documents.",
            columns=(
                Column("year"),
                Column("what became of them"),
                Column("of these, because"),
                Column("documents", align="right", format=",d"),
            ),
            rows=tuple(rows),
            notes=(
                f"A snapshot of all years: {counts['all_years']:,d} documents; of any: {counts['any_year']:,d}.",
                *self.warnings,
            ),
            rules=tuple(rules[1:]),
        )

    def text(self) -> str:
        """The counts for a terminal."""
        return self.table().text()


_DEFAULT: Final = SnapshotOptions()


def fetch_snapshots(
    out: str | Path,
    options: SnapshotOptions = _DEFAULT,
    *,
    docs: str | None = None,
    urls: str | None = None,
    qrels: str | None = None,
    progress: Progress | None = None,
) -> Snapshots:
    """Fetches for every judged document the snapshots of its page, and takes their main content.

    The folder gets `YEAR.jsonl` (doc_id, url, title, body, timestamp), `snapshots.parquet`, `misses.tsv`,
    `snapshots-N.warc.gz`, `fetched.parquet`, `summary.json` and `manifest.json`. A run that was killed goes on and ends
    with the same bytes. Run again, it fetches only what could not be asked for before; with other `content` options
    it takes the texts anew from the WARC files.

    Args:
        out: the folder.
        options: years, day, archive, texts.
        docs: the judged collection, whose documents have URLs.
        urls: instead of `docs`, a table of two columns: document id, URL.
        qrels: the judgments; without them every document is looked for.
        progress: is told what is done.

    Returns:
        What was found, and why the rest was not.

    Raises:
        InputError: a source is at fault, or the archive does not answer.
        MissingExtraError: the extra [pages] is not installed.

    Source:
        Section 3 of the paper, "Wayback Machine Snapshots".
    """
    progress = progress or Quiet()
    if (docs is None) == (urls is None):
        raise InputError("the URLs come from one place", "give --docs or --urls", where="transfer snapshots")
    judged = None if qrels is None else read_qrels_frame(qrels)["doc_id"].unique(maintain_order=True)
    artifacts = Artifacts(out)
    pages = _pages(docs, urls, judged, progress)
    usable = pages.filter(pl.col("reason") == "")["url"].unique(maintain_order=True)
    fetched = fetch_pages(usable.to_list(), options.wanted, options.archive, artifacts.folder, progress)
    store = _texts(fetched, options.content, artifacts, progress)
    texts = pl.concat([pl.DataFrame(schema=_LENGTHS), *(_lengths(store.load(n)) for n in range(_blocks_of(fetched)))])
    frame = _rows(pages, pl.concat([fetched, texts], how="horizontal"), options.wanted.years)
    result = Snapshots(frame, options.wanted.years, artifacts.folder, tuple(_warnings(frame)))
    inputs = {
        "docs": None if docs is None else open_documents(docs).fingerprint,
        "urls": None if urls is None else file_record(urls),
        "qrels": None if qrels is None else file_record(qrels),
    }
    _write_documents(result, pages, fetched, store, artifacts)
    _write_tables(result, artifacts, options, inputs)
    store.remove()
    artifacts.tidy()
    return result


_LENGTHS: Final[dict[str, Any]] = {
    "encoding": pl.String, "why": pl.String, "title_characters": pl.Int64, "body_characters": pl.Int64,
}  # fmt: skip


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
    return -(-len(fetched) // _BLOCK)


def _texts(fetched: pl.DataFrame, options: ContentOptions, artifacts: Artifacts, progress: Progress) -> BlockStore:
    """Takes the texts out of the WARC files, block by block, in the order of the rows."""
    content = {"fetched": digest(fetched.select("warc", "offset", "bytes").rows()), "options": asdict(options)}
    store = BlockStore(artifacts.work / f"texts-{digest(content)[:16]}")
    progress.start("taking the texts", len(fetched))
    for number in range(_blocks_of(fetched)):
        part = fetched.slice(number * _BLOCK, _BLOCK)
        if not store.has(number):
            rows = []
            for warc, offset in part.select("warc", "offset").iter_rows():
                if not warc:
                    rows.append(("", "", "", ""))
                    continue
                page = read_record(artifacts.folder / warc, offset)
                text = page_text(page.body, page.content_type, options)
                rows.append((text.title, text.body, text.encoding, text.reason))
            store.save(number, pl.DataFrame(rows, schema=_TEXTS, orient="row"))
        progress.advance(len(part))
    return store


def _lengths(texts: pl.DataFrame) -> pl.DataFrame:
    characters = [pl.col(name).str.len_chars().cast(pl.Int64).alias(f"{name}_characters") for name in ("title", "body")]
    return texts.select("encoding", "why", *characters)


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
        part = fetched.slice(number * _BLOCK, _BLOCK)
        both = pl.concat([part, store.load(number)], how="horizontal")
        both = both.filter((pl.col("year") == year) & (pl.col("status") == "found") & (pl.col("why") == ""))
        for row in both.iter_rows(named=True):
            for doc_id in documents[row["url"]]:
                record = {
                    "doc_id": doc_id,
                    "url": row["url"],
                    "title": row["title"],
                    "body": row["body"],
                    "timestamp": row["timestamp"],
                }
                yield json.dumps(record, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def _write_documents(
    result: Snapshots, pages: pl.DataFrame, fetched: pl.DataFrame, store: BlockStore, artifacts: Artifacts
) -> None:
    for year in result.years:
        with written(artifacts.folder / f"{year}.jsonl") as target, target.open() as stream:
            for line in _documents(pages, fetched, store, year):
                stream.write(line)
        artifacts.note(f"{year}.jsonl")
    for name in ("fetched.parquet", *sorted(set(fetched["warc"]) - {""})):
        artifacts.note(name)


def _write_tables(result: Snapshots, artifacts: Artifacts, options: SnapshotOptions, inputs: Mapping[str, Any]) -> None:
    artifacts.parquet("snapshots.parquet", result.frame)
    missed = result.frame.filter(pl.col("status") != "found").select("doc_id", "url", "year", "status", "reason")
    artifacts.text("misses.tsv", "".join(tsv(missed)))
    summary = {name: value for name, value in result.json().items() if name not in ("folder", "files")}
    artifacts.json("summary.json", summary)
    artifacts.manifest(
        provenance(
            "snapshots",
            **inputs,
            options={
                "years": list(result.years),
                "day": options.day,
                "tries": options.tries,
                "archive": options.archive.content(),
                "content": vars(options.content),
            },
            counts=result.counts(),
            warnings=list(result.warnings),
            software=installed_versions("wayback", "resiliparse", "fastwarc", "ftfy", "polars"),
        )
    )
    artifacts.log("snapshots", out=str(artifacts.folder))


def _warnings(frame: pl.DataFrame) -> Iterator[str]:
    failed = int((frame["status"] == "failed").sum())
    if failed:
        yield f"{failed:,d} snapshots could not be asked for: run the same command again, it tries those only."
