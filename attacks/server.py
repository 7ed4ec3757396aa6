"""Attacks the judging server with slow, many, malformed and vanishing clients while annotators work.

    python attacks/server.py [--seconds 20] [--seed 1] [--half-open 1000] [--handles 0] [--json]

Starts `truerank judge serve` twice on loopback and attacks one of the two. In turn: holds connections on which no
request is ever complete, opened again when the server closes them; sends malformed requests drawn from the seed; sends
forms and goes away in the middle, and asks for pages without taking them. All the while an annotator of each server
asks for pages, in turn, so that other programs slow both. `--handles` bounds the file handles of the server.

Ends with 1, and prints the case, if an honest request fails, a page takes more than twice as long with half-open
connections (by median, and by more than 20 ms), an answer has status 500, the server ends, its log grows by more than
200 lines, or a label is there that nobody gave.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import http.client
import json
import random
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode, urlsplit

from truerank.judging import Item, Store, Text, load_scheme

HIDDEN: Final = re.compile(r'<input type="hidden" name="(\w+)" value="([^"]*)"')
MOST_LINES: Final = 200
HEAD: Final = b"POST /judge/1 HTTP/1.1\r\nHost: HOST\r\nContent-Type: application/x-www-form-urlencoded\r\n"


class BrokenError(Exception):
    """What the server should not have done; the text is the case."""


class Server:
    """The command in a process of its own."""

    def __init__(self, store: Path, log: Path, handles: int) -> None:
        self.log = log
        words = [sys.executable, "-m", "truerank", "judge", "serve", str(store), "--port", "0", "--json"]

        if handles:
            words = ["sh", "-c", f'ulimit -n {handles}; exec "$@"', "sh", *words]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=self.log.open("wb"), text=True)
        assert self.process.stdout is not None
        printed = json.loads(self.process.stdout.readline() or "null")
        if printed is None:
            raise BrokenError(f"the server did not start: {self.log.read_text()}")
        place = urlsplit(printed["addresses"][0])
        self.host, self.port = str(place.hostname), int(place.port or 0)
        self.tokens: dict[str, str] = printed["new_tokens"]

    def end(self) -> None:
        """Ends it as Ctrl-C does."""
        self.process.send_signal(2)
        if self.process.wait(30):
            raise BrokenError(f"the server ended with {self.process.returncode}: {self.log.read_text()[-3000:]}")

    def check(self) -> None:
        """Raises if it is gone, or wrote too much."""
        if self.process.poll() is not None:
            raise BrokenError(f"the server ended with {self.process.returncode}: {self.log.read_text()[-3000:]}")
        text = self.log.read_text(errors="replace")
        if "Traceback" in text:
            raise BrokenError(f"a traceback in the log: {text[-3000:]}")
        if text.count("\n") > MOST_LINES:
            raise BrokenError(f"{text.count(chr(10))} lines in the log, the last: {text[-1000:]}")


class Annotator:
    """An honest client with a new connection for every request, as after each pause of a person."""

    def __init__(self, server: Server, name: str) -> None:
        self.server, self.cookie = server, ""
        _, _, text = self.ask("GET", "/enter")
        fields = dict(HIDDEN.findall(text)) | {"name": name, "token": server.tokens[name]}
        status, _, _ = self.ask("POST", "/enter", fields)
        if status != 303:
            raise BrokenError(f"{name} cannot enter: status {status}")

    def ask(self, method: str, path: str, fields: dict[str, str] | None = None) -> tuple[int, str, str]:
        """One request: status, where it leads, and the page."""
        connection = http.client.HTTPConnection(self.server.host, self.server.port, timeout=30)
        headers = {"Cookie": self.cookie, "Content-Type": "application/x-www-form-urlencoded"}
        try:
            connection.request(method, path, None if fields is None else urlencode(fields), headers)
            answer = connection.getresponse()
            text = answer.read().decode()
        except (OSError, http.client.HTTPException) as error:
            raise BrokenError(f"an honest {method} {path} failed: {error!r}") from error
        finally:
            connection.close()
        if answer.getheader("set-cookie"):
            self.cookie = str(answer.getheader("set-cookie")).partition(";")[0]
        if answer.status >= 400:
            raise BrokenError(f"an honest {method} {path} got status {answer.status}: {text[:300]}")
        return answer.status, answer.getheader("location", ""), text

    def page(self) -> float:
        """The milliseconds until a page is there."""
        begun = time.perf_counter()
        self.ask("GET", "/judge/1")
        return (time.perf_counter() - begun) * 1000


def times(attacked: Annotator, other: Annotator, seconds: float) -> tuple[list[float], list[float]]:
    """The times of pages of two servers in turn, so that other programs slow both."""
    pairs, end = [], time.monotonic() + seconds
    while time.monotonic() < end or len(pairs) < 20:
        pairs.append((attacked.page(), other.page()))
    return [one for one, _ in pairs], [two for _, two in pairs]


def half_open(random_: random.Random, host: str) -> Iterator[bytes]:
    """The beginning of a request, and further bytes that never complete it."""
    form = HEAD.replace(b"HOST", host.encode())
    start = random_.choice([
        b"", b"G", b"GET / HTTP/1.1\r\nHost: ", b"GET / HTTP/1.1\r\nHost: x\r\nX: ", form,
        form + b"Content-Length: 5000\r\n\r\nlabel=", form + b"Transfer-Encoding: chunked\r\n\r\n400\r\n",
        b"\x16\x03\x01\x02\x00\x01",
    ])  # fmt: skip
    yield start
    while True:
        yield b"a"


def malformed(random_: random.Random, host: str) -> bytes:
    """A request that no browser sends."""
    lines = [b"GET /judge/1 HTTP/1.1", b"Host: " + host.encode(), b"Cookie: a=b", b"Content-Length: 3", b"", b"a=b"]
    kind = random_.randrange(10)
    at = random_.randrange(len(lines))
    if kind == 0:
        lines[at] = random_.randbytes(random_.randrange(200))
    elif kind == 1:
        lines.insert(at, b"X" * random_.randrange(70_000) + b": y")
    elif kind == 2:
        lines[1] = b"Host: " + random_.choice([b"", b"a b", b"evil", b"x" * 9000, b"[::", b"127.0.0.1:99999", b"\xff"])
    elif kind == 3:
        lines[0] = random_.choice([b"POST", b"PUT", b"CONNECT", b"TRACE", b"OPTIONS", b"get", b"\x00"]) + lines[0][3:]
    elif kind == 4:
        path = random_.choice(
            [b"/judge/" + b"9" * 6000, b"/%00", b"/../../etc/passwd", b"http://evil/", b"*", b"/\xc3"]
        )
        lines[0] = b"GET " + path + b" HTTP/1.1"
    elif kind == 5:
        lines[3] = b"Content-Length: " + random_.choice([b"-1", b"9" * 400, b"1e3", b" ", b"3, 3", b"+3"])
    elif kind == 6:
        lines[3] = b"Transfer-Encoding: " + random_.choice([b"chunked", b"gzip, chunked", b"chunked, chunked", b"x"])
    elif kind == 7:
        lines[2] = b"Cookie: " + random_.choice([b"truerank=ann:", b"=" * 8000, b'"\\', b"a=\xff\xfe", b";" * 3000])
    elif kind == 8:
        lines[2] = b"Connection: upgrade\r\nUpgrade: " + random_.choice([b"websocket", b"h2c", b"x"])
    else:
        lines[at] = lines[at] * random_.randrange(2, 50)
    return b"\r\n".join(lines)


async def hold(server: Server, random_: random.Random, stop: threading.Event) -> None:
    """One connection that owes its request, opened again when it is closed."""
    while not stop.is_set():
        with contextlib.suppress(OSError):
            reader, writer = await asyncio.open_connection(server.host, server.port)
            try:
                for piece in half_open(random_, f"{server.host}:{server.port}"):
                    writer.write(piece)
                    await writer.drain()
                    with contextlib.suppress(TimeoutError):
                        if await asyncio.wait_for(reader.read(4096), random_.uniform(0.5, 2)) == b"" or stop.is_set():
                            break
            finally:
                writer.close()
        # As many as a client opens that is not itself the fault to be measured.
        await asyncio.sleep(random_.uniform(2, 6))


async def send(server: Server, random_: random.Random, stop: threading.Event) -> None:
    """Malformed requests, one after the other."""
    while not stop.is_set():
        data = malformed(random_, f"{server.host}:{server.port}")
        answer = b""
        with contextlib.suppress(OSError, TimeoutError):
            reader, writer = await asyncio.open_connection(server.host, server.port)
            try:
                writer.write(data)
                writer.write_eof()
                answer = await asyncio.wait_for(reader.read(), 5)
            finally:
                writer.close()
        if re.match(rb"HTTP/1\.1 5", answer):
            raise BrokenError(f"{answer[:100]!r} for {data[:2000]!r}")
        await asyncio.sleep(0.01)


async def vanish(server: Server, random_: random.Random, stop: threading.Event) -> None:
    """Forms of somebody who goes away in the middle, and pages of somebody who does not take them."""
    while not stop.is_set():
        with contextlib.suppress(OSError):
            reader, writer = await asyncio.open_connection(server.host, server.port, limit=64)
            if random_.random() < 0.5:
                head = HEAD.replace(b"HOST", f"{server.host}:{server.port}".encode())
                writer.write(head + b"Content-Length: 5000\r\n\r\nlabel=Title")
            else:
                writer.write(b"GET /enter HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 50)
            await writer.drain()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(reader.read(1), random_.uniform(0, 0.3))
            if random_.random() < 0.5:
                writer.transport.abort()
            writer.close()
        await asyncio.sleep(0.02)


@contextlib.contextmanager
def attacked(
    server: Server, client: Callable[[Server, random.Random, threading.Event], Any], many: int, seed: int
) -> Iterator[None]:
    """So many clients at work in another thread."""
    stop, faults = threading.Event(), []

    async def all_of_them() -> None:
        tasks = [asyncio.create_task(client(server, random.Random(f"{seed} {at}"), stop)) for at in range(many)]
        while not stop.is_set() and not any(task.done() for task in tasks):
            await asyncio.sleep(0.05)
        for task in tasks:
            if task.done() and task.exception() is not None:
                faults.append(task.exception())
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    thread = threading.Thread(target=lambda: asyncio.run(all_of_them()))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
    if faults:
        raise faults[0]


def open_connections(server: Server) -> int:
    """Sockets of the server's process."""
    links = Path(f"/proc/{server.process.pid}/fd").iterdir()
    count = 0
    for link in links:
        with contextlib.suppress(OSError):
            count += str(link.readlink()).startswith("socket:")
    return count


def made(folder: Path, name: str, handles: int) -> tuple[Server, Path]:
    """A server of a store of its own."""
    path = folder / f"{name}.judged"
    items = [Item(f"i{at}", "1", "a topic", texts=(Text("query", f"query {at}"),)) for at in range(50)]
    Store.create(path, load_scheme("leakage"), items, {"ann": [item.item_id for item in items]}).close()
    return Server(path, folder / f"{name}.log", handles), path


def trial(options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    """All attacks in turn; what was measured."""
    (server, path), (other, _) = made(folder, "attacked", options.handles), made(folder, "other", 0)
    found: dict[str, Any] = {}
    try:
        ann, bob = Annotator(server, "ann"), Annotator(other, "ann")
        for name, client, many in (
            ("half-open", hold, options.half_open),
            ("malformed", send, 4),
            ("vanishing", vanish, 20),
        ):
            with attacked(server, client, many, options.seed):
                time.sleep(1.5)
                sockets, (with_attack, without) = open_connections(server), times(ann, bob, options.seconds / 3)
            server.check()
            slowed, usual = statistics.median(with_attack), statistics.median(without)
            found[name] = {
                "clients": many, "sockets": sockets, "requests": len(without), "page_ms": round(slowed, 2),
                "page_ms_of_another_server": round(usual, 2), "times_as_long": round(slowed / usual, 2),
                "slowest_ms": round(max(with_attack)), "slowest_ms_of_another_server": round(max(without)),
            }  # fmt: skip
            if name == "half-open" and slowed > 2 * usual and slowed > usual + 20:
                raise BrokenError(f"pages take {slowed} ms with {many} half-open connections, {usual} ms without")
    except BrokenError as error:
        raise BrokenError(f"{error}; after {found}; log: {server.log.read_text()[-2000:]!r}") from error
    finally:
        other.end()
        server.end()
    found["log_lines"] = server.log.read_text().count("\n")
    with Store.open(path) as store:
        if events := list(store.events()):
            raise BrokenError(f"labels that nobody gave: {events[:3]}")
    return found


def main() -> int:
    """Runs it and prints what it found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20, help="of all attacks together")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--half-open", type=int, default=1000, help="connections held at the same time")
    parser.add_argument("--handles", type=int, default=0, help="file handles of the server; 0 for those of this shell")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = options.half_open + 300
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(wanted, hard), hard))
    with tempfile.TemporaryDirectory() as folder:
        try:
            found = trial(options, Path(folder))
        except BrokenError as error:
            print(f"broken (seed {options.seed}): {error}")
            return 1
    print(json.dumps(found) if options.json else json.dumps(found, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
