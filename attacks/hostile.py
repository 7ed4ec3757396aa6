"""A server whose answers are drawn from a seed: slow, endless, cut off, malformed, or deep."""

from __future__ import annotations

import contextlib
import gzip
import random
import socket
import threading
import time
import zlib
from collections.abc import Callable, Iterator

__all__ = ["hostile_server", "respond", "values"]

MEBIBYTE = bytes(1 << 20)


def values(random_: random.Random, honest: bytes) -> tuple[str, bytes]:
    """A body in place of an honest one, with its name."""
    kinds: dict[str, Callable[[], bytes]] = {
        "honest": lambda: honest,
        "brackets": lambda: b"[" * 60_000,
        "objects": lambda: b'{"a":' * 60_000,
        "digits": lambda: honest.replace(b"1", b"1" * 5000),
        "infinity": lambda: honest.replace(b"1", random_.choice([b"NaN", b"1e999", b"-Infinity", b"0x1"])),
        "bytes": lambda: random_.randbytes(random_.randrange(3000)),
        "escapes": lambda: b"\x1b[2J\x07" * random_.randrange(1, 500),
        "halves": lambda: honest.replace(b"a", b"\\ud800"),
        "swapped": lambda: honest.replace(b"[", b"{").replace(b"]", b"}"),
        "nothing": lambda: b"",
        "null": lambda: b"null",
        "cut": lambda: honest[: random_.randrange(len(honest) + 1)],
        "mutated": lambda: mutated(random_, honest),
    }
    name = random_.choice([*kinds, *["honest"] * 8])
    return name, kinds[name]()


def mutated(random_: random.Random, data: bytes) -> bytes:
    """Some bytes replaced, doubled, or taken away."""
    found = bytearray(data)
    for _ in range(random_.randrange(1, 20)):
        at = random_.randrange(len(found) + 1)
        found[at : at + random_.randrange(8)] = random_.choice([
            b"", random_.randbytes(3), b'"', b"\n", b"\r\n\r\n", b" ", b",", b"{", b"9" * 40, bytes(found[:at][-20:]),
        ])  # fmt: skip
    return bytes(found)


def respond(connection: socket.socket, random_: random.Random, body: bytes) -> str:  # noqa: PLR0912 - one for each way
    """Sends a body in one of many ways; returns the way's name."""
    status = random_.choice([200] * 12 + [204, 206, 301, 302, 400, 401, 404, 429, 500, 503, 999])
    headers = ["Connection: close"]
    if random_.random() < 0.2:
        headers.append(random_.choice([
            "Retry-After: 0", "Retry-After: 86400", "Retry-After: " + "9" * 5000, "Retry-After: nan",
            "Location: http://127.0.0.1:9/", "Location: //evil", "Location: " + "x" * 5000, "Location: /same",
            "Content-Type: text/html; charset=no-such", "Link: " + "<" * 5000, "Memento-Datetime: never",
            "Set-Cookie: a=" + "b" * 5000, "X-Archive-Orig-X: \x1b[2J", "Date: \xff",
        ]))  # fmt: skip
    way = random_.choice(
        ["plain"] * 8 + ["gzip", "deflate", "broken-gzip", "bomb", "nested", "chunked", "bad-chunks", "cut", "short"]
        + ["long", "endless", "drip", "slow-header", "endless-header", "no-http", "nothing", "silent"]
    )  # fmt: skip
    head = lambda *more: "\r\n".join([f"HTTP/1.1 {status} X", *headers, *more]).encode("latin-1") + b"\r\n\r\n"  # noqa: E731
    length = f"Content-Length: {len(body)}"
    if way == "plain":
        connection.sendall(head(length) + body)
    elif way in ("gzip", "deflate", "broken-gzip"):
        packed = zlib.compress(body) if way == "deflate" else gzip.compress(body, mtime=0)
        if way == "broken-gzip":
            packed = mutated(random_, packed)
        connection.sendall(head(f"Content-Encoding: {way.rpartition('-')[2]}") + packed)
    elif way == "bomb":
        connection.sendall(head("Content-Encoding: gzip") + gzip.compress(MEBIBYTE * 100, 1, mtime=0))
    elif way == "nested":
        inner = gzip.compress(gzip.compress(MEBIBYTE * 50, 1, mtime=0), 1, mtime=0)
        connection.sendall(head("Content-Encoding: gzip, gzip") + inner)
    elif way == "chunked":
        connection.sendall(head("Transfer-Encoding: chunked") + b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body))
    elif way == "bad-chunks":
        connection.sendall(head("Transfer-Encoding: chunked") + random_.choice([b"zz\r\n", b"f" * 400, b"-1\r\nx"]))
    elif way == "cut":
        connection.sendall((head(length) + body)[: random_.randrange(len(body) + 60)])
    elif way == "short":
        connection.sendall(head(f"Content-Length: {len(body) // 2}") + body)
    elif way == "long":
        connection.sendall(head("Content-Length: " + random_.choice(["3000000000", "9" * 400, "-5", "x"])) + body)
    elif way == "endless":
        connection.sendall(head())
        for _ in range(3 << 10):
            connection.sendall(MEBIBYTE)
    elif way in ("drip", "slow-header"):
        whole = head(length) + body
        start = 0 if way == "slow-header" else len(whole) - len(body)
        connection.sendall(whole[:start])
        for at in range(start, len(whole)):
            connection.sendall(whole[at : at + 1])
            time.sleep(0.1)
    elif way == "endless-header":
        connection.sendall(f"HTTP/1.1 {status} X\r\n".encode())
        for _ in range(10_000):
            connection.sendall(b"X-Y: " + b"z" * 1000 + b"\r\n")
    elif way == "no-http":
        connection.sendall(random_.randbytes(300) + b"\r\n\r\n")
    elif way == "silent":
        time.sleep(3)
    return way


@contextlib.contextmanager
def hostile_server(answer: Callable[[socket.socket, bytes], None]) -> Iterator[str]:
    """Runs on a free port of this machine; yields its address.

    Args:
        answer: gets the connection and what the client sent first.
    """
    listening = socket.create_server(("127.0.0.1", 0), backlog=100)

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=one, args=listening.accept()[:1], daemon=True).start()

    def one(connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            connection.settimeout(30)
            answer(connection, connection.recv(1 << 20))

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        with contextlib.suppress(OSError):
            listening.shutdown(socket.SHUT_RDWR)
        listening.close()
