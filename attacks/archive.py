"""A hostile web archive: robots.txt, lists of captures and pages are drawn from a seed.

    python attacks/archive.py [--seconds 20] [--seed 1] [--case N]

Opens the archive, asks for the captures of a page and plays one back, with a deadline of half a second for each answer
and one repetition. Ends with 1, and prints the case, if that raises anything but an error in one printable line, takes
more than ten seconds, brings the process above 500 MB of memory, or asks another server. `--case N` runs one case
again.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import sys
import time
from collections import Counter

from hostile import hostile_server, mutated, respond, values
from truerank.errors import InputError
from truerank.sources.archive import ArchiveOptions, Capture, FailedError, MissedError, open_archive

PAGE, STAMP = "http://a.org/1", "20150702120000"
CDX = f"org,a)/1 {STAMP} {PAGE} text/html 200 DIGEST 100\n".encode()
WHEN = "Thu, 02 Jul 2015 12:00:00 GMT"
TIMEMAP = f'<{PAGE}>; rel="original",\n<http://HOST/web/{STAMP}/{PAGE}>; rel="memento"; datetime="{WHEN}"'
ROBOTS = b"User-agent: *\nDisallow: /save/\nCrawl-delay: 0\n"
HTML = b"<html><head><title>a</title></head><body><p>some words 1</p></body></html>"
MOST_SECONDS, MOST_MEGABYTES = 10, 500


def tried(seed: int, case: int) -> tuple[str, list[str]]:
    """One case: what became of it, and what the archive did. Raises what should not be raised."""
    random_, told, strange = random.Random(f"{seed} {case}"), [], []

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
    return outcome, told


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


def main() -> int:
    """Runs cases until the time is over."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--case", type=int, help="only this one")
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    end, case, slowest = time.monotonic() + options.seconds, options.case or 0, 0.0
    while time.monotonic() < end:
        begun, told = time.monotonic(), []
        try:
            outcome, told = tried(options.seed, case)
            seconds = time.monotonic() - begun
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
            if seconds > MOST_SECONDS or memory > MOST_MEGABYTES:
                raise ValueError(f"{seconds:.1f} s, {memory} MB")
        except Exception as error:
            print(f"broken: --seed {options.seed} --case {case} ({told}): {type(error).__name__}: {str(error)[:2000]}")
            return 1
        counts[outcome] += 1
        slowest = max(slowest, seconds)
        case += 1
        if options.case is not None:
            break
    print(json.dumps({"cases": sum(counts.values()), **counts, "slowest_s": round(slowest, 2), "memory_mb": memory}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
