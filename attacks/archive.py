"""A hostile web archive: robots.txt, lists of captures and pages are drawn from a seed.

    python attacks/archive.py [--seconds 20] [--seed 1] [--case N] [--most-seconds 10]

Opens the archive, asks for the captures of a page and plays one back, with a deadline of half a second for each answer
and one repetition. Ends with 1, and prints the case, if that raises anything but an error in one printable line, takes
more than ten seconds, brings the process above 500 MB of memory, or asks another server. `--case N` runs one case
again.
"""

from __future__ import annotations

import random
import sys

from campaigns import campaign
from hostile import hostile_server, mutated, respond, values
from truerank.errors import InputError
from truerank.sources.archive import ArchiveOptions, Capture, FailedError, MissedError, open_archive

PAGE, STAMP = "http://a.org/1", "20150702120000"
CDX = f"org,a)/1 {STAMP} {PAGE} text/html 200 DIGEST 100\n".encode()
WHEN = "Thu, 02 Jul 2015 12:00:00 GMT"
TIMEMAP = f'<{PAGE}>; rel="original",\n<http://HOST/web/{STAMP}/{PAGE}>; rel="memento"; datetime="{WHEN}"'
ROBOTS = b"User-agent: *\nDisallow: /save/\nCrawl-delay: 0\n"
HTML = b"<html><head><title>a</title></head><body><p>some words 1</p></body></html>"


def tried(seed: int, case: int, told: list[str]) -> str:
    """One case: notes what the archive did, and returns what became of it. Raises what should not be raised."""
    random_, strange = random.Random(f"{seed} {case}"), list[bytes]()

    def elsewhere(connection, data):  # type: ignore[no-untyped-def]
        strange.append(data)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno")

    with hostile_server(elsewhere) as other:

        def answer(connection, data):  # type: ignore[no-untyped-def]
            path = data.partition(b" HTTP")[0].partition(b" ")[2].decode("latin-1")
            kind = {"/r": ROBOTS, "/c": CDX}.get(path[:2], TIMEMAP.encode() if "timemap" in path else HTML)
            if path.startswith("/robots.txt") and random_.random() < 0.7:
                told.append("robots")
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            elif random_.random() < 0.1:
                told.append("elsewhere")
                target = random_.choice([other, f"//{other[7:]}", other + "/web/", "file:///etc/passwd", "\\\\x", path])
                head = f"HTTP/1.1 302 X\r\nLocation: {target}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                connection.sendall(head.encode())
            elif kind is HTML and random_.random() < 0.6:
                told.append("page")
                link = mutated(random_, f'<{PAGE}>; rel="original"'.encode()) if random_.random() < 0.5 else b""
                head = (
                    b"HTTP/1.1 200 OK\r\nMemento-Datetime: Thu, 02 Jul 2015 12:00:00 GMT\r\nConnection: close\r\nLink: "
                )
                connection.sendall(head + link.replace(b"\r\n", b"") + b"\r\n\r\n" + values(random_, HTML)[1])
            else:
                name, body = values(random_, kind)
                told.append(f"{path[:12]} {name}")
                told.append(respond(connection, random_, body))

        with hostile_server(answer) as address:
            options = ArchiveOptions(
                base_url=address, lookup=random_.choice(["cdx", "timemap"]), search_rate=0.0, page_rate=0.0, retries=1,
                backoff=0.01, max_wait=0.1, timeout=0.4, max_seconds=0.5, max_bytes=1 << 20,
            )  # fmt: skip
            outcome = used(options)
    if strange:
        raise ValueError(f"another server was asked: {strange[0][:300]!r}")
    return outcome


def used(options: ArchiveOptions) -> str:
    """Does what `transfer snapshots` does with one page; how far it came."""
    outcome, archive = "robots", None
    try:
        archive = open_archive(options)
        outcome = "list"
        found = archive.captures(PAGE, [2015])
        outcome = "page"
        archive.play(found[0] if found else Capture(PAGE, STAMP))
        outcome = "played"
    except (InputError, MissedError, FailedError) as error:
        line = str(error)
        if not line.isprintable() or len(line) > 1000:
            raise ValueError(f"no printable line: {line[:2000]!r}") from error
        outcome = f"ended at {outcome}"
    finally:
        if archive is not None:
            archive.close()
    return outcome


if __name__ == "__main__":
    sys.exit(campaign(__doc__, tried, most_seconds=10))
