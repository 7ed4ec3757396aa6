"""The door of the judging server: who waits too long loses the connection, and honest requests are answered."""

from __future__ import annotations

import contextlib
import http.client
import logging
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest

pytest.importorskip("starlette", reason="the extra [web] is not installed: the judging server is not tried")
pytest.importorskip("uvicorn", reason="the extra [web] is not installed: the judging server is not tried")

from truerank.judging import Item, Store, Text, load_scheme
from truerank.judging.web import Serving, app, open_desk
from truerank.judging.web.app import DoorLimits, SparingLog

HEAD = b"GET /enter HTTP/1.1\r\nHost: 127.0.0.1\r\n"
FORM = b"POST /enter HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/x-www-form-urlencoded\r\n"
#: Beginnings of requests that do not go on.
HALVES = {
    "nothing": b"",
    "line": b"GET /en",
    "header": HEAD + b"X-Lo",
    "body": FORM + b"Content-Length: 100\r\n\r\nname=a",
    "chunk": FORM + b"Transfer-Encoding: chunked\r\n\r\n400\r\nname=a",
    "second": HEAD + b"\r\n" + HEAD,
}


@contextlib.contextmanager
def running(folder: Path, limits: DoorLimits, monkeypatch: pytest.MonkeyPatch, **options: object) -> Iterator[tuple]:
    """A server with these limits; yields host and port."""
    monkeypatch.setattr(app, "limits_here", lambda: limits)
    path = folder / "store"
    items = [Item("1", "1", "a topic", texts=(Text("query", "a query"),))]
    Store.create(path, load_scheme("leakage"), items, {"ann": ["1"]}).close()
    before = options.pop("before", lambda _: None)
    desk = open_desk(path, Serving(port=0, no_tokens=True, **options))
    place = urlsplit(desk.addresses[0])
    before((place.hostname, place.port))
    thread = threading.Thread(target=desk.run)
    thread.start()
    try:
        yield place.hostname, place.port
    finally:
        desk.stop()
        thread.join(20)
        assert not thread.is_alive()


def begun(place: tuple, start: bytes) -> socket.socket:
    connection = socket.create_connection(place, timeout=20)
    connection.sendall(start)
    return connection


def ends(connection: socket.socket) -> bool:
    """Whether the server closes it; what it sends before is read. Raises if it stays open for 20 s."""
    with connection:
        with contextlib.suppress(ConnectionError):
            while connection.recv(65536):
                pass
        return True


def answers(place: tuple) -> bool:
    connection = http.client.HTTPConnection(*place, timeout=20)
    try:
        connection.request("GET", "/enter")
        return connection.getresponse().status == 200
    finally:
        connection.close()


@pytest.mark.parametrize("half", HALVES)
def test_a_request_that_does_not_go_on_is_ended(half, tmp_path, monkeypatch):
    with running(tmp_path, DoorLimits(request_seconds=0.3), monkeypatch) as place:
        assert ends(begun(place, HALVES[half]))


def test_a_byte_now_and_then_does_not_move_the_deadline(tmp_path, monkeypatch):
    with running(tmp_path, DoorLimits(request_seconds=0.5), monkeypatch) as place:
        connection = begun(place, HEAD)
        with pytest.raises(ConnectionError):
            for _ in range(400):
                connection.sendall(b"X: y\r\n")
                time.sleep(0.05)
        connection.close()


def test_a_browser_may_pause_between_requests(tmp_path, monkeypatch):
    with running(tmp_path, DoorLimits(request_seconds=0.3), monkeypatch) as place:
        connection = http.client.HTTPConnection(*place, timeout=20)
        for _ in range(2):
            connection.request("GET", "/enter")
            answer = connection.getresponse()
            assert answer.status == 200
            answer.read()
            here = connection.sock.getsockname()
            time.sleep(1.2)
        # The same connection, over several sweeps.
        connection.request("GET", "/enter")
        assert connection.getresponse().status == 200
        assert connection.sock is None or connection.sock.getsockname() == here
        connection.close()


@pytest.mark.parametrize(
    "limits", [DoorLimits(connections=50, per_address=4), DoorLimits(connections=4, per_address=50)]
)
def test_the_oldest_that_waits_makes_room(limits, tmp_path, monkeypatch):
    with running(tmp_path, limits, monkeypatch) as place:
        # Those that had an answer before are the last to go.
        waiting = [begun(place, HALVES[half]) for half in sorted(HALVES.keys() - {"second"}) * 5]
        for _ in range(5):
            assert answers(place)
        for connection in waiting[:-4]:
            assert ends(connection)
        waiting[-1].setblocking(False)
        with pytest.raises(BlockingIOError):
            while waiting[-1].recv(65536):
                pass
        for connection in waiting:
            connection.close()


def test_a_request_in_a_crowd_that_waits_at_the_door_is_answered(tmp_path, monkeypatch):
    crowd, honest = [], []

    def before(place: tuple) -> None:
        # All are there before the first is let in, and the honest one is among the oldest.
        honest.append(begun(place, HEAD + b"Connection: close\r\n\r\n"))
        crowd.extend(begun(place, HEAD) for _ in range(60))

    with running(tmp_path, DoorLimits(per_address=8), monkeypatch, before=before):
        assert honest[0].recv(15) == b"HTTP/1.1 200 OK"
    for connection in (*honest, *crowd):
        connection.close()


def test_who_goes_away_in_the_middle_leaves_no_line(tmp_path, monkeypatch, capfd):
    with running(tmp_path, DoorLimits(), monkeypatch) as place:
        for half in list(HALVES.values()) * 3:
            connection = begun(place, half)
            # Closed with a reset, as by a browser that is killed.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
            connection.close()
        assert answers(place)
    assert capfd.readouterr() == ("", "")


def test_bad_requests_fill_no_log(tmp_path, monkeypatch, capfd):
    with running(tmp_path, DoorLimits(), monkeypatch) as place:
        for _ in range(40):
            assert ends(begun(place, b"\x00\r\n\r\n"))
        assert answers(place)
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == 5
    assert all("Invalid HTTP request" in line for line in lines)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl: TLS is not tried")
def test_a_handshake_has_its_deadline_and_its_place_in_the_count(tmp_path, monkeypatch):
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
         "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate],
        check=True, capture_output=True,
    )  # fmt: skip
    tls = {"certificate": certificate, "key": key}
    context = ssl.create_default_context(cafile=certificate)
    limits = DoorLimits(per_address=4, handshake_seconds=0.4)
    with running(tmp_path, limits, monkeypatch, **tls) as place:
        waiting = [begun(place, start) for start in (b"", b"\x16\x03\x01", b"GET / HTTP/1.1\r\n\r\n") * 4]
        connection = http.client.HTTPSConnection(*place, timeout=20, context=context)
        connection.request("GET", "/enter")
        assert connection.getresponse().status == 200
        connection.close()
        assert all(map(ends, waiting))


def test_who_is_answered_is_never_the_one_to_go():
    def one(answering, asked, owing):
        dropped = []
        return SimpleNamespace(
            answering=answering, asked=asked, owing=owing, began=0.0, dropped=dropped, drop=lambda: dropped.append(1)
        )

    busy, idle, old, new = one(True, True, None), one(False, True, None), one(False, False, 1.0), one(False, False, 2.0)
    for among, goes in (([busy, idle, old, new], old), ([busy, idle, new], new), ([busy, idle], idle)):
        assert app._make_room(among)
        assert goes.dropped
        assert not busy.dropped
    assert not app._make_room([busy])


def test_who_takes_no_answer_is_not_being_answered():
    answering = app.Connection.answering.fget
    for buffered, complete, owing, expected in (
        (0, False, None, True),
        (9, False, None, False),
        (0, True, None, False),
        (0, False, 1.0, False),
    ):
        transport = SimpleNamespace(get_write_buffer_size=lambda buffered=buffered: buffered)
        one = SimpleNamespace(transport=transport, cycle=SimpleNamespace(response_complete=complete), owing=owing)
        assert answering(one) is expected
    assert not answering(SimpleNamespace(transport=None, cycle=None, owing=1.0))


def test_addresses_of_one_site_count_together():
    assert app._network("10.0.0.1") != app._network("10.0.0.2")
    assert app._network("2001:db8::1") == app._network("2001:db8::ffff") != app._network("2001:db8:0:1::1")
    assert app._network("::ffff:10.0.0.1") == app._network("10.0.0.1")
    assert app._network("fe80::1%eth0") == app._network("fe80::2%eth0")


def test_the_limits_leave_file_handles_for_the_rest(monkeypatch):
    resource = pytest.importorskip("resource", reason="no limits of handles on this system")
    monkeypatch.setattr(resource, "setrlimit", lambda *_: None)
    for handles, expected in (((256, 256), (160, 80)), ((64, 64), (8, 4)), ((20_000, 20_000), (512, 128)),
                              ((256, 10_000), (512, 128)), ((resource.RLIM_INFINITY,) * 2, (512, 128))):  # fmt: skip
        monkeypatch.setattr(resource, "getrlimit", lambda _, handles=handles: handles)
        found = app.limits_here()
        assert (found.connections, found.per_address) == expected


def test_lines_of_a_kind_are_rationed(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(app.time, "monotonic", lambda: now[0])
    log, lines = logging.Logger("tried"), []
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())
    log.addHandler(handler)
    log.addFilter(SparingLog(most=2, seconds=60))
    for number in range(10):
        log.warning("a fault of %s", number)
    log.warning("another")
    now[0] = 61.0
    for number in range(10, 13):
        log.warning("a fault of %s", number)
    assert lines == [
        "a fault of 0", "a fault of 1", "another",
        "a fault of 10 (8 more lines like this were left out)", "a fault of 11",
    ]  # fmt: skip
