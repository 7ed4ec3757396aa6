"""A hostile archive: every fault is told in a line, nothing is asked elsewhere, and nothing has no end."""

from __future__ import annotations

import socket
import time
from collections import Counter
from collections.abc import Callable

import pytest

from raw_server import raw_server, response

pytest.importorskip("wayback", reason="the extra [pages] is not installed: archives are not asked")

from truerank.audits.transfer.archive import ArchiveOptions, Capture, FailedError, MissedError, open_archive
from truerank.errors import InputError

STAMP, PAGE = "20150702120000", "http://a.org/x"
ROBOTS, CDX, TIMEMAP, PLAYBACK = "/robots.txt", "/cdx/search/cdx", "/web/timemap/link/", "/web/2"
LINE = f"key {STAMP} {PAGE} text/html 200 DIGEST 100\n".encode()


class Hostile:
    """An archive whose services are functions; how often each was asked stands in `asked`."""

    def __init__(self, **services: Callable[[socket.socket, str], None] | bytes) -> None:
        self.services = services
        self.asked: Counter[str] = Counter()

    def __call__(self, connection: socket.socket, head: str) -> None:
        path = head.split()[1]
        known = {"robots": ROBOTS, "cdx": CDX, "timemap": TIMEMAP, "page": PLAYBACK}
        name = next((name for name, start in known.items() if path.startswith(start)), "other")
        self.asked[name] += 1
        service = self.services.get(name, response(status=404))
        if isinstance(service, bytes):
            connection.sendall(service)
        else:
            service(connection, path)


def options(address: str, **changes: object) -> ArchiveOptions:
    quick = {"search_rate": 0.0, "page_rate": 0.0, "retries": 1, "backoff": 0.0, "max_wait": 0.05, "timeout": 2.0}
    return ArchiveOptions(**{"base_url": address, "max_seconds": 2.0, **quick, **changes})


def endless(connection: socket.socket, _: str) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    for _ in range(3 << 10):
        connection.sendall(bytes(1 << 20))


def slow(connection: socket.socket, _: str) -> None:
    whole = response(b"User-agent: *\nDisallow:\n" * 4)
    for at in range(len(whole)):
        connection.sendall(whole[at : at + 1])
        time.sleep(0.05)


def refusal(hostile: Hostile, **changes: object) -> str:
    with raw_server(hostile) as address, pytest.raises(InputError) as caught:
        open_archive(options(address, **changes)).close()
    return str(caught.value)


def outcome(hostile: Hostile, ask: str, **changes: object) -> object:
    with raw_server(hostile) as address:
        archive = open_archive(options(address, **changes))
        try:
            return archive.captures(PAGE, [2015]) if ask == "captures" else archive.play(Capture(PAGE, STAMP))
        except (MissedError, FailedError) as error:
            assert str(error).isprintable()
            assert len(str(error)) < 300
            return error
        finally:
            archive.close()


def test_robots_without_end():
    assert "robots.txt cannot be read (larger than 1,048,576 bytes)" in refusal(Hostile(robots=endless))
    assert "took longer than 0.5 seconds" in refusal(Hostile(robots=slow), max_seconds=0.5)


@pytest.mark.parametrize(
    ("delay", "message"),
    [
        ("86400", "asks for 86,400 s between two requests, longer than 300 s"),
        ("9" * 4000, "more than 1,000,000,000 s"),
        ("9" * 5000, "a number that is none"),
        ("\u00b2", "a number that is none"),
    ],
    ids=["day", "4000-digits", "5000-digits", "superscript"],
)
def test_delays_that_nobody_keeps(delay, message):
    text = f"User-agent: *\nCrawl-delay: {delay}\n".encode()
    assert message in refusal(Hostile(robots=response(text)))


def test_a_delay_beyond_the_bound_can_be_overruled():
    robots = response(b"User-agent: *\nCrawl-delay: 86400\n")
    assert outcome(Hostile(robots=robots, cdx=response(LINE)), "captures", ignore_robots=True) == [
        Capture(PAGE, STAMP, 200, "text/html")
    ]


@pytest.mark.parametrize("service", ["robots", "cdx", "timemap", "page"])
def test_redirects_stay_with_the_archive(service):
    stranger = Hostile()
    with raw_server(stranger) as elsewhere:
        moved = {service: response(b"", f"Location: {elsewhere}/robots.txt", status=302)}
        if service == "robots":
            assert "sends us to another server" in refusal(Hostile(**moved))
        else:
            asked = "play" if service == "page" else "captures"
            found = outcome(Hostile(**moved), asked, lookup="timemap" if service == "timemap" else "cdx")
            assert isinstance(found, MissedError | FailedError)
    assert not stranger.asked


def test_redirects_within_the_archive_are_followed():
    hostile = Hostile()

    def moved(connection: socket.socket, path: str) -> None:
        if "again" in path:
            connection.sendall(response(LINE))
        else:
            host = connection.getsockname()
            connection.sendall(response(b"", f"Location: http://127.0.0.1:{host[1]}{CDX}?again", status=302))

    hostile.services["cdx"] = moved
    assert outcome(hostile, "captures") == [Capture(PAGE, STAMP, 200, "text/html")]


@pytest.mark.parametrize("lookup", ["cdx", "timemap"])
def test_lists_without_end(lookup):
    found = outcome(Hostile(**{lookup: endless}), "captures", lookup=lookup, max_seconds=60.0)
    assert str(found) == "larger than 33,554,432 bytes"


def test_lists_whose_pages_have_no_end():
    hostile = Hostile(cdx=response(LINE + b"\nKEY"))
    assert str(outcome(hostile, "captures")) == "the list of captures does not end"
    assert hostile.asked["cdx"] == 200


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 60_000,
        b"key " + b"9" * 5000 + b" http://a.org text/html 200 D 1",
        LINE.replace(b"200", b"9" * 5000),
        b"\xff\xfe" * 1000,
        LINE + b"\n",
        b"\x1b[2J" * 100,
    ],
    ids=["brackets", "long-time", "long-status", "bytes", "no-key", "escapes"],
)
def test_lists_that_are_none(body):
    assert isinstance(outcome(Hostile(cdx=response(body)), "captures"), FailedError)
    found = outcome(Hostile(timemap=response(body)), "captures", lookup="timemap")
    assert found == [] or isinstance(found, FailedError)


@pytest.mark.parametrize("wait", ["86400", "9" * 5000, "Thu, 01 Jan 2099 00:00:00 GMT"], ids=["day", "digits", "date"])
def test_waits_beyond_the_bound_are_not_waited_for(wait):
    hostile = Hostile(page=response(b"slow down", f"Retry-After: {wait}", status=429))
    found = outcome(hostile, "play", max_wait=30.0)
    assert "asks to wait" in str(found)
    assert "longer than 30 s" in str(found)
    assert hostile.asked["page"] == 1
