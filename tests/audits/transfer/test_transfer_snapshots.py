"""Snapshots out of an archive on this machine that misbehaves in every way archives do."""

from __future__ import annotations

import gzip
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import wayback

from archive_server import Snapshot, WebArchive, serve
from places import ROOT
from truerank import transfer
from truerank.audits.transfer import ArchiveOptions
from truerank.audits.transfer.archive import Capture, nearest, read_record
from truerank.errors import InputError
from truerank.sources import open_documents

WORDS = "The page of this day says what it says, in words that a reader may look for and find again later."
YEARS = (2015, 2016)


def body(title: str, text: str = WORDS) -> bytes:
    return f"<html><head><title>{title}</title></head><body><main><p>{text}</p></main></body></html>".encode()


@pytest.fixture
def archive() -> Iterator[WebArchive]:
    with serve(WebArchive()) as running:
        yield running


def quick(archive: WebArchive, **changes: Any) -> dict[str, Any]:
    settings = {
        "base_url": archive.url, "search_rate": 0.0, "page_rate": 0.0, "retries": 2, "backoff": 0.01, "max_wait": 0.02,
        "timeout": 1.5, "max_seconds": 2.0, "max_bytes": 4 << 20, **changes,
    }  # fmt: skip
    return {"years": YEARS, "archive": ArchiveOptions(**settings)}


def collection(path: Path, urls: list[str]) -> str:
    rows = [{"doc_id": f"d{at}", "url": url, "title": "", "body": "judged"} for at, url in enumerate(urls)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def outcomes(result: Any, year: int = 2015) -> dict[str, tuple[str, str]]:
    rows = result.frame.filter(pl.col("year") == year).select("url", "status", "reason")
    return {url.rpartition("/")[2]: (status, reason) for url, status, reason in rows.iter_rows()}


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file() and path.name != "run.log"}


#: What a page does, and what is said of it: by the CDX server, and by the TimeMap where that differs.
CATALOGUE = {
    "plain": ("found", ""),
    "gzip": ("found", ""),
    "redirect-loop": ("missed", "the archive cannot play it back"),
    "playback-redirect": ("missed", "the archive cannot play it back"),
    "not-memento": ("missed", "the archive cannot play it back"),
    "robots": ("missed", "closed by robots.txt"),
    "excluded": ("missed", "excluded from the archive"),
    "huge": ("missed", "larger than 4,194,304 bytes"),
    "429": ("failed", "the archive limits the rate (HTTP 429)"),
    "503": ("failed", "HTTP 503 from the archive"),
    "500": ("failed", "HTTP 500 from the archive"),
    "slow": ("failed", "no answer (time ran out)"),
    "drip": ("failed", "it took longer than 2 seconds"),
    "broken-gzip": ("failed", "broken answer (compressed data that is broken)"),
    "truncated": ("failed", "broken answer (cut off)"),
    "dropped": ("failed", "broken answer (cut off)"),
}
LISTS = {
    "garbage": ("failed", "the list of captures is broken"),
    "robots": ("missed", "closed by robots.txt"),
    "excluded": ("missed", "excluded from the archive"),
    "400": ("missed", "HTTP 400 from the list of captures"),
    "429": ("failed", "the archive limits the rate (HTTP 429)"),
    "503-once": ("found", ""),
}
PAGES = {
    "empty": (Snapshot("20150702000000", b""), ("missed", "empty page")),
    "latin": (
        Snapshot("20150702000000", body("Caf\u00e9").decode().encode("cp1252"), content_type="text/html"),
        ("found", ""),
    ),
    "no-html": (Snapshot("20150702000000", b"\x00\x01\x02" * 500), ("missed", "not a text")),
    "tags": (Snapshot("20150702000000", b"<html><p>open <b>tags <<< and words"), ("found", "")),
    "pdf": (
        Snapshot("20150702000000", b"%PDF", content_type="application/pdf"), ("missed", "content type application/pdf"),
    ),
    "liar": (
        Snapshot("20150702000000", b"GIF89a\x00" * 99, content_type="text/html"), ("missed", "not a text"),
    ),
    "gone": (Snapshot("20150702000000", body("x"), status=404), ("missed", "captured as HTTP 404")),
    "moved": (Snapshot("20150702000000", b"", status=301), ("missed", "captured as HTTP 301")),
    "other-year": (Snapshot("20160702000000", body("x")), ("missed", "no capture in this year")),
    "long-ago": (Snapshot("19990702000000", body("x")), ("missed", "no capture in the years asked for")),
}  # fmt: skip


@pytest.mark.slow
def test_every_misbehaviour_is_an_explained_row(archive: WebArchive, tmp_path: Path) -> None:
    urls = []
    for name in CATALOGUE:
        urls.append(f"http://page.org/{name}")
        archive.add(urls[-1], Snapshot("20150702120000", body(name), behaviour=name))
    for name in LISTS:
        urls.append(f"http://list.org/list-{name}")
        archive.add(urls[-1], Snapshot("20150601000000", body(name)))
        archive.lists[urls[-1]] = name
    for name, (snapshot, _) in PAGES.items():
        urls.append(f"http://kind.org/{name}")
        archive.add(urls[-1], snapshot)
    docs = collection(tmp_path / "docs.jsonl", [*urls, "", "nohost", "http://never.org/asked"])
    qrels = tmp_path / "q.qrels"
    qrels.write_text("".join(f"1 0 d{at} 1\n" for at in range(len(urls) + 3)) + "2 0 absent 1\n", encoding="utf-8")
    result = transfer.snapshots(tmp_path / "out", docs=docs, qrels=str(qrels), **quick(archive))
    wanted = CATALOGUE | {f"list-{name}": said for name, said in LISTS.items()}
    wanted |= {name: said for name, (_, said) in PAGES.items()}
    wanted["nohost"] = ("missed", "its URL names no host")
    wanted["asked"] = ("missed", "no capture in the years asked for")
    found = outcomes(result)
    without = result.frame.filter((pl.col("url") == "") & (pl.col("year") == 2015)).select("doc_id", "reason").rows()
    assert without == [
        (f"d{len(urls)}", "the document has no URL"), ("absent", "the document is not in the collection"),
    ]  # fmt: skip
    assert {name: said for name, said in found.items() if name} == wanted
    counts = result.counts()["years"]["2015"]
    assert counts["found"] == sum(said[0] == "found" for said in wanted.values())
    assert sum(counts.values()) == len(urls) + 4
    documents = {document.doc_id: document for document in open_documents(str(tmp_path / "out" / "2015.jsonl"))}
    assert documents["d0"].title == "plain"
    assert documents["d0"].body == documents["d1"].body == WORDS
    assert documents[f"d{urls.index('http://kind.org/latin')}"].title == "Café"
    record = json.loads((tmp_path / "out" / "2015.jsonl").read_text(encoding="utf-8").splitlines()[0])
    assert record["timestamp"] == "20150702120000"
    assert (
        len((tmp_path / "out" / "misses.tsv").read_text().splitlines())
        == 1 + result.frame.filter(pl.col("status") != "found").height
    )
    by_timemap = transfer.snapshots(tmp_path / "other", docs=docs, **quick(archive, lookup="timemap", retries=0))
    seen = outcomes(by_timemap)
    for name in ("plain", "gzip", "robots", "huge", "gone", "moved", "pdf", "other-year", "asked", "list-garbage"):
        assert seen[name] == wanted[name]


def test_the_nearest_capture_that_can_be_read(archive: WebArchive, tmp_path: Path) -> None:
    archive.add(
        "http://a.org/x",
        Snapshot("20150101000000", body("new year")),
        Snapshot("20150702235900", body("the day itself"), behaviour="not-memento"),
        Snapshot("20150703130000", body("a day late")),
        Snapshot("20150630100000", body("two days early")),
        Snapshot("20150702110000", b"", status=302),
        Snapshot("20161224000000", body("christmas")),
    )
    docs = collection(tmp_path / "docs.jsonl", ["http://a.org/x#part", "http://a.org/x"])
    result = transfer.snapshots(tmp_path / "out", docs=docs, **quick(archive))
    titles = {year: [one.title for one in open_documents(path)] for year, path in result.files().items()}
    assert titles == {"2015": ["a day late"] * 2, "2016": ["christmas"] * 2}
    assert result.counts()["all_years"] == 2
    december = {**quick(archive), "day": "12-31"}
    result = transfer.snapshots(tmp_path / "december", docs=docs, **december)
    assert result.frame["timestamp"].to_list() == ["20150703130000", "20161224000000"] * 2
    captures = [Capture("u", f"2015070{day}120000") for day in (1, 3)]
    assert [one.timestamp for one in nearest(captures, 2015, (7, 2))] == ["20150701120000", "20150703120000"]


def test_what_failed_is_asked_for_again_and_nothing_else(archive: WebArchive, tmp_path: Path) -> None:
    urls = [f"http://a.org/{number}" for number in range(20)]
    for number, url in enumerate(urls):
        behaviour = "500" if number % 7 == 3 else "plain"
        archive.add(url, Snapshot("20150702000000", body(f"page {number}"), behaviour=behaviour, times=2))
    docs = collection(tmp_path / "docs.jsonl", urls)
    options = quick(archive, retries=1)
    first = transfer.snapshots(tmp_path / "out", docs=docs, **options)
    assert first.counts()["years"]["2015"] == {"found": 17, "missed": 0, "failed": 3}
    assert "run the same command again" in repr(first)
    asked = len(archive.at)
    second = transfer.snapshots(tmp_path / "out", docs=docs, **options)
    assert second.counts()["years"]["2015"] == {"found": 20, "missed": 0, "failed": 0}
    # robots.txt, and for each of the three the list of captures and the page.
    assert len(archive.at) - asked == 1 + 3 * 2
    rows = second.frame.filter(pl.col("year") == 2015)
    assert rows["warc"].unique().sort().to_list() == ["snapshots-0.warc.gz", "snapshots-1.warc.gz"]
    for row in rows.iter_rows(named=True):
        page = read_record(tmp_path / "out" / row["warc"], row["offset"])
        assert page.body == body(f"page {row['doc_id'][1:]}")
        assert page.capture.timestamp == "20150702000000"
    titles = [document.title for document in open_documents(str(tmp_path / "out" / "2015.jsonl"))]
    assert titles == [f"page {number}" for number in range(20)]
    # With other texts wanted, they come out of the WARC files.
    asked = len(archive.at)
    again = {**options, "all_text": True}
    transfer.snapshots(tmp_path / "out", docs=docs, **again)
    assert len(archive.at) == asked


@pytest.mark.parametrize("name", ["snapshots-0.warc.gz", "fetched.parquet", "fetched.json"])
def test_what_was_fetched_and_damaged_is_fetched_again(archive: WebArchive, name: str, tmp_path: Path) -> None:
    urls = [f"http://a.org/{number}" for number in range(3)]
    for number, url in enumerate(urls):
        archive.add(url, Snapshot("20150702000000", body(f"page {number}")))
    docs = collection(tmp_path / "docs.jsonl", urls)
    transfer.snapshots(tmp_path / "out", docs=docs, **quick(archive))
    file = tmp_path / "out" / name
    content = file.read_bytes()
    middle = len(content) // 2
    file.write_bytes(content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :])
    again = transfer.snapshots(tmp_path / "out", docs=docs, **quick(archive))
    assert again.counts()["years"]["2015"] == {"found": 3, "missed": 0, "failed": 0}
    assert file.read_bytes() == content
    asked = len(archive.at)
    transfer.snapshots(tmp_path / "out", docs=docs, **quick(archive))
    assert len(archive.at) == asked


def test_killed_and_continued_gives_the_same_bytes(archive: WebArchive, tmp_path: Path) -> None:
    urls = [f"http://a.org/{number}" for number in range(48)]
    for number, url in enumerate(urls):
        pages = [
            Snapshot(f"{year}0702000000", body(f"{year} {number}")) for year in YEARS if number % 3 or year == 2015
        ]
        archive.add(url, *pages)
    docs = collection(tmp_path / "docs.jsonl", urls)
    words = [
        "transfer", "snapshots", "--docs", docs, "--years", "2015,2016", "--base-url", archive.url,
        "--search-rate", "60", "--page-rate", "0", "--out",
    ]  # fmt: skip
    command = [sys.executable, "-m", "truerank", *words]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    subprocess.run([*command, str(tmp_path / "whole")], check=True, env=environment, capture_output=True)
    whole_requests = len(archive.at)
    with subprocess.Popen([*command, str(tmp_path / "out")], env=environment, stderr=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 60
        while not list((tmp_path / "out").glob(".work/fetch-*/00000001.arrow")) and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
    killed_requests = len(archive.at) - whole_requests
    assert not (tmp_path / "out" / "2015.jsonl").exists()
    subprocess.run([*command, str(tmp_path / "out")], check=True, env=environment, capture_output=True)
    assert files(tmp_path / "out") == files(tmp_path / "whole")
    assert not (tmp_path / "out" / ".work").exists()
    # What the first two blocks had asked for was not asked for again.
    assert len(archive.at) - whole_requests - killed_requests < whole_requests - 50
    with gzip.open(tmp_path / "whole" / "snapshots-0.warc.gz") as warc:
        assert warc.read().count(b"WARC/1.1\r\nWARC-Type: response") == 80


def test_an_archive_that_is_down_or_closed(
    archive: WebArchive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    urls = [f"http://a.org/{number}" for number in range(40)]
    for url in urls:
        archive.add(url, Snapshot("20150702000000", body(url)), Snapshot("20160702000000", body(url)))
    docs = collection(tmp_path / "docs.jsonl", urls)
    archive.dies_after = 60
    options = quick(archive, retries=1)
    with pytest.raises(InputError, match=r"no longer answers .*it continues"):
        transfer.snapshots(tmp_path / "out", docs=docs, **options)
    archive.dies_after = None
    result = transfer.snapshots(tmp_path / "out", docs=docs, **options)
    assert result.counts()["all_years"] == 40
    archive.robots = "User-agent: *\nDisallow: /cdx/\n"
    with pytest.raises(InputError, match="closes /cdx/search/cdx to programs"):
        transfer.snapshots(tmp_path / "closed", docs=docs, **options)
    archive.robots = "User-agent: *\nCrawl-delay: 1\n"
    archive.at.clear()
    # Taken where requests leave: how long one is on its way depends on what else the machine does.
    left, wait = [], wayback.RateLimit.wait

    def waited(self: wayback.RateLimit) -> None:
        wait(self)
        if self._minimum_wait:
            left.append(time.time())

    monkeypatch.setattr(wayback.RateLimit, "wait", waited)
    transfer.snapshots(tmp_path / "slow", docs=collection(tmp_path / "few.jsonl", urls[:1]), **quick(archive))
    assert len([path for _, path in archive.at if path != "/robots.txt"]) == 3
    assert len(left) == 3 and min(later - earlier for earlier, later in itertools.pairwise(left)) > 0.95
    with pytest.raises(InputError, match="cannot be reached"):
        gone = quick(archive, base_url="http://127.0.0.1:9", retries=0)
        transfer.snapshots(tmp_path / "gone", docs=docs, **gone)
    with pytest.raises(InputError, match="the URLs come from one place"):
        transfer.snapshots(tmp_path / "both", **options)


def test_rare_settings_come_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "archive.toml"
    file.write_text('retries = 1\nbackoff = 1\ncdx_path = "/cdx"\n')
    found = ArchiveOptions(user_agent="me").with_file(file)
    assert found == ArchiveOptions(user_agent="me", retries=1, backoff=1, cdx_path="/cdx")
    for text, message in (
        ("user_agent = 'x'", "no setting 'user_agent'"),
        ("retries = 1.5", r"retries is 1\.5"),
        ("timeout = true", "timeout is True"),
        ("retries", "no valid TOML"),
        ("timeout = 0", "timeout: must be above 0, got 0"),
    ):
        file.write_text(text)
        with pytest.raises(InputError, match=message):
            ArchiveOptions().with_file(file)


def test_a_table_of_urls(archive: WebArchive, tmp_path: Path) -> None:
    archive.add("http://a.org/x?a=1&b=2", Snapshot("20150702000000", body("x")))
    table = tmp_path / "urls.tsv"
    table.write_text("doc_id\turl\nD1\thttp://a.org/x?a=1&b=2\nD2\t\n", encoding="utf-8")
    result = transfer.snapshots(tmp_path / "out", urls=str(table), **quick(archive))
    rows = result.frame.filter(pl.col("year") == 2015).select("doc_id", "status", "reason").rows()
    assert rows == [("D1", "found", ""), ("D2", "missed", "the document has no URL")]
