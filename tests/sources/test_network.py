"""The one HTTP client: it ends in time and in size whatever a server sends, and it follows nobody."""

from __future__ import annotations

import gzip
import math
import socket
import subprocess
import sys
import threading
import time
import zlib

import pytest

from raw_server import raw_server, response
from truerank.errors import InputError
from truerank.network import (
    AddressError,
    BrokenAnswerError,
    HttpClient,
    LargeAnswerError,
    LateAnswerError,
    NetworkError,
    SilentError,
    origin,
    retry_after,
)

MIB = 1 << 20


def slowly(head: bytes, rest: bytes):
    """Sends the head at once and then a byte every 50 ms: an answer that is whole in the end."""

    def answer(connection: socket.socket, _: str) -> None:
        connection.sendall(head)
        for at in range(len(rest)):
            connection.sendall(rest[at : at + 1])
            time.sleep(0.05)

    return answer


def sent(*pieces: bytes):
    def answer(connection: socket.socket, _: str) -> None:
        for piece in pieces:
            connection.sendall(piece)

    return answer


def asked(answer, **settings):
    client = HttpClient(silence=settings.pop("silence", 5))
    with raw_server(answer) as address:
        try:
            return client.ask("GET", address, **{"seconds": 5, "largest": MIB, **settings})
        finally:
            client.close()


def fault(answer, kind: type[NetworkError], **settings) -> str:
    with pytest.raises(NetworkError) as caught:
        asked(answer, **settings)
    assert type(caught.value) is kind, caught.value
    return str(caught.value)


@pytest.mark.parametrize(
    ("head", "rest"),
    [
        (b"", response(b"hello")),
        (b"HTTP/1.1 200 OK\r\nX-Long: ", b"x" * 60 + b"\r\nContent-Length: 0\r\n\r\n"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 60\r\n\r\n", b"x" * 60),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n" * 12 + b"0\r\n\r\n"),
    ],
    ids=["all", "header", "body", "chunks"],
)
def test_the_deadline_holds_for_the_whole_attempt(head, rest):
    # Every one is a whole answer after 3 s or more, and no byte comes late.
    assert "timed out after 0.4 s" in fault(slowly(head, rest), LateAnswerError, seconds=0.4, silence=2)


def test_silence_ends_an_attempt_before_its_deadline():
    gone = threading.Event()
    try:
        assert "0.2 s without a byte" in fault(lambda *_: gone.wait(20), SilentError, silence=0.2, seconds=10)
    finally:
        gone.set()


@pytest.mark.parametrize("coding", ["gzip", "deflate", ""])
def test_a_body_is_taken_up_to_its_limit(coding):
    exact, over = b"a" * MIB, b"a" * (MIB + 1)
    pack = {"gzip": gzip.compress, "deflate": zlib.compress, "": bytes}[coding]
    header = f"Content-Encoding: {coding}"
    assert asked(sent(response(pack(exact), header))).body == exact
    assert "larger than 1,048,576 bytes" in fault(sent(response(pack(over), header)), LargeAnswerError)
    assert "larger" in fault(sent(response(pack(over), header, length=False)), LargeAnswerError)


def test_an_announced_length_is_refused_before_the_body():
    assert "larger" in fault(sent(b"HTTP/1.1 200 OK\r\nContent-Length: 3000000000\r\n\r\n"), LargeAnswerError)
    with pytest.raises(NetworkError):
        asked(sent(b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n"))


def test_three_gigabytes_end_at_the_limit_in_little_memory():
    script = """
import re, sys
from pathlib import Path
from truerank.errors import InputError
from truerank.network import HttpClient, LargeAnswerError
try:
    HttpClient().ask("GET", sys.argv[1], seconds=60, largest=1 << 20)
except LargeAnswerError:
    # Not ru_maxrss, which a new process inherits from the one that started it.
    print(int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) // 1024)
"""
    block, count = bytes(MIB), []

    def endless(connection: socket.socket, _: str) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        for _ in range(3 << 10):
            connection.sendall(block)
            count.append(1)

    with raw_server(endless) as address:
        found = subprocess.run([sys.executable, "-c", script, address], capture_output=True, text=True, check=True)
    assert 0 < int(found.stdout) < 200
    # What lies in the buffers of the kernel was sent, and not much more.
    assert len(count) < 100


def test_encodings_are_undone_as_browsers_do():
    text = b"some words " * 9000
    assert asked(sent(response(gzip.compress(text) + gzip.compress(b"more"), "Content-Encoding: gzip"))).body == (
        text + b"more"
    )
    both = response(gzip.compress(gzip.compress(text)), "Content-Encoding: gzip, gzip")
    assert asked(sent(both)).body == text
    bare = zlib.compressobj(wbits=-15)
    raw = bare.compress(text) + bare.flush()
    assert asked(sent(response(raw, "Content-Encoding: deflate"))).body == text
    # The Wayback Machine sends an empty header beside the true one.
    empty = response(gzip.compress(text), "content-encoding: ", "Content-Encoding: gzip")
    assert asked(sent(empty)).body == text
    cut = response(gzip.compress(text)[:-20], "Content-Encoding: gzip")
    assert text.startswith(asked(sent(cut)).body)
    assert "compressed data" in fault(sent(response(b"\x1f\x8bno gzip", "Content-Encoding: gzip")), BrokenAnswerError)
    assert "not asked for" in fault(sent(response(b"x", "Content-Encoding: br")), BrokenAnswerError)
    many = response(b"x", "Content-Encoding: " + ", ".join(["gzip"] * 50))
    assert "several times" in fault(sent(many), BrokenAnswerError)


@pytest.mark.parametrize(
    "sent_bytes",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nhi",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"f" * 5000,
        b"HTTP/1.1 200 OK\r\n" + b"X: " + b"x" * (4 << 20),
        b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
        b"HTTP/1.1 99999 \x00\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nhi",
        b"",
    ],
    ids=["cut", "chunk-size", "endless-header", "ssh", "status", "two-lengths", "nothing"],
)
def test_what_is_no_answer_is_a_fault_in_words(sent_bytes):
    message = fault(sent(sent_bytes), BrokenAnswerError)
    assert len(message) < 300
    assert message.isprintable()


def test_nothing_follows_a_redirect_and_no_cookie_is_kept():
    heads = []

    def answer(connection: socket.socket, head: str) -> None:
        heads.append(head)
        connection.sendall(response(b"", "Location: /next", "Set-Cookie: a=b", status=302))

    client = HttpClient()
    with raw_server(answer) as address:
        found = [client.ask("GET", f"{address}/{at}", seconds=5, largest=10) for at in range(2)]
    client.close()
    assert [one.status for one in found] == [302, 302]
    assert found[0].header("location") == "/next"
    assert [head.split()[1] for head in heads] == ["/0", "/1"]
    assert "cookie" not in heads[1].lower()


@pytest.mark.parametrize("url", ["ftp://x/", "http://[::", "nowhere", "http:///x", "\x00", "http://x:y/"])
def test_what_is_no_address_is_told(url):
    client = HttpClient()
    with pytest.raises(NetworkError):
        client.ask("GET", url, seconds=5, largest=10)
    client.close()


@pytest.mark.parametrize(("variable", "value"), [("HTTPS_PROXY", "nonsense://x"), ("SSL_CERT_FILE", "/nothing")])
def test_an_environment_that_cannot_be_used_is_told(variable, value, monkeypatch):
    monkeypatch.setenv(variable, value)
    with pytest.raises(InputError, match="environment: a proxy or certificates that cannot be used"):
        HttpClient()


def test_what_is_asked_can_be_stopped():
    client, faults = HttpClient(), []
    begun, gone = threading.Event(), threading.Event()

    def ask(address: str) -> None:
        try:
            client.ask("GET", address, seconds=60, largest=10)
        except NetworkError as error:
            faults.append(str(error))

    def answer(*_: object) -> None:
        begun.set()
        gone.wait(30)

    with raw_server(answer) as address:
        thread = threading.Thread(target=ask, args=(address,))
        thread.start()
        assert begun.wait(20)
        client.stop()
        thread.join(20)
        gone.set()
    assert faults == ["stopped"]


def test_origins():
    assert origin("http://A.org") == origin("http://a.org:80/x?y") == ("http", "a.org", 80)
    assert origin("https://a.org") == ("https", "a.org", 443)
    assert len({origin(f"{one}.org") for one in ("http://a", "https://a", "http://b")}) == 3
    for wrong in ("a.org", "ftp://a.org", "http://", "http://a:99999", "http://[::1"):
        with pytest.raises(AddressError):
            origin(wrong)


def test_waits_that_are_asked_for():
    assert retry_after("3.5") == 3.5
    assert retry_after("-3") == 0.0
    assert retry_after("9" * 5000) == math.inf
    assert retry_after("Thu, 01 Jan 1970 00:00:00 GMT") == 0.0
    for unreadable in (None, "", "nan", "soon", "Thu, 99 Jan 99999 00:00:00 GMT", "[" * 60000):
        assert retry_after(unreadable) is None
