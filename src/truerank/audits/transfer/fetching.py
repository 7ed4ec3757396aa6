"""Fetch: the snapshots of pages out of a web archive, block by block, kept as WARC."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import polars as pl

from truerank.errors import InputError
from truerank.loading import json_file
from truerank.sources.archive import (
    Archive,
    ArchiveOptions,
    BrokenError,
    Capture,
    FailedError,
    MissedError,
    Played,
    nearest,
    open_archive,
    warc_record,
)
from truerank.work.artifacts import digest
from truerank.work.blocks import BlockStore
from truerank.work.kept import is_unharmed, is_whole, keep_json, kept_path
from truerank.work.progress import Progress

#: One row per URL and year; `warc` is the file, `offset` the record's place in it.
FETCHED_SCHEMA: Final[dict[str, Any]] = {
    "url": pl.String, "year": pl.Int32, "status": pl.String, "reason": pl.String, "snapshot_url": pl.String,
    "timestamp": pl.String, "content_type": pl.String, "bytes": pl.Int64, "warc": pl.String, "offset": pl.Int64,
}  # fmt: skip
#: URLs in a block: what is lost at most when the work is killed.
_BLOCK: Final = 16
#: After so many URLs in a row that could not be asked for it is seen whether the archive is down.
_DOWN: Final = 8
_KINDS: Final = frozenset(("", "-", "text/html", "application/xhtml+xml", "text/plain", "warc/revisit", "unk"))


@dataclass(frozen=True)
class Wanted:
    """What is fetched.

    Args:
        years: of each the snapshot that is nearest to a day.
        day: month and day.
        tries: captures of a year that are tried, the nearest first.
    """

    years: tuple[int, ...]
    day: tuple[int, int] = (7, 2)
    tries: int = 3


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
    identity = digest(
        {"urls": list(urls), "years": wanted.years, "day": wanted.day, "tries": wanted.tries, **options.content()}
    )[:16]
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
    if not all(map(is_unharmed, (state, table, *(folder / name for name in frame["warc"].unique() if name)))):
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
            if not store.has(number) or not is_whole(part):
                archive = archive or open_archive(options)
                outcomes: list[_Outcome] = []
                for one in block:
                    outcomes += _of_url(archive, one, wanted)
                    down = [*down, outcomes[-1].reason] if outcomes[-1].status == "failed" else []
                    if len(down) % _DOWN == _DOWN - 1 and not archive.answers():
                        raise InputError(
                            f"the archive no longer answers ({Counter(down).most_common(1)[0][0]})",
                            "run it again later: it continues",
                            where=options.base_url,
                        )
                    progress.advance(1)
                _save(outcomes, store, number, part)
            else:
                progress.advance(len(block))
    finally:
        if archive is not None:
            archive.close()
    return len(blocks)


def _of_url(archive: Archive, asked: _Asked, wanted: Wanted) -> list[_Outcome]:
    url = asked.url
    try:
        captures = archive.captures(url, wanted.years)
    except MissedError as error:
        return [_Outcome(url, year, "missed", str(error)) for year in asked.years]
    except FailedError as error:
        return [_Outcome(url, year, "failed", str(error)) for year in asked.years]
    found = []
    for year in asked.years:
        pages, reason = _usable(captures, year, wanted.day)
        missing = _Outcome(url, year, "missed", reason)
        found.append(_played(archive, url, year, pages[: wanted.tries]) if pages else missing)
    return found


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
            found = page.capture
            rows.append(
                (
                    one.url,
                    one.year,
                    "found",
                    "",
                    found.url,
                    found.timestamp,
                    page.content_type,
                    len(page.body),
                    "-",
                    offset,
                )
            )
    store.save(number, pl.DataFrame(rows, schema=FETCHED_SCHEMA, orient="row"))


def _joined(blocks: int, work: Path, out: Path, name: str) -> pl.DataFrame:
    """Puts the parts of the WARC file together, and says of each record where it now is."""
    store = BlockStore(work)
    frames = [pl.DataFrame(schema=FETCHED_SCHEMA)]
    if not any(len(store.load(number).filter(pl.col("warc") != "")) for number in range(blocks)):
        return pl.concat([*frames, *(store.load(number) for number in range(blocks))])
    with kept_path(out) as temporary, temporary.open("wb") as target:
        for number in range(blocks):
            start = target.tell()
            with (work / f"{number:08d}.warc.gz").open("rb") as part:
                shutil.copyfileobj(part, target, 1 << 20)
            kept = pl.col("warc") != ""
            frames.append(
                store.load(number).with_columns(
                    pl.when(kept).then(pl.lit(name)).otherwise(pl.lit("")).alias("warc"),
                    pl.when(kept).then(pl.col("offset") + start).otherwise(0).alias("offset"),
                )
            )
    return pl.concat(frames)
