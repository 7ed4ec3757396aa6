"""Judging pages behind a proxy with TLS, as the tutorial sets one up: forms, cookies, redirects, and who may ask."""

from __future__ import annotations

import http.client
import re
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("starlette", reason="the extra [web] is not installed: judging pages are not tried")
pytest.importorskip("uvicorn", reason="the extra [web] is not installed: judging pages are not tried")

from judging_web_sample import Browser, make_store, pairs, served
from tls_proxy import tls_proxy, write_certificate
from truerank.judging.web import Desk

HOST = "judge.example"


class _OverTls(Browser):
    """A browser for which the host is that of the proxy."""

    def __init__(self, port: int, certificate: Path) -> None:
        super().__init__(f"https://{HOST}/")
        context = ssl.create_default_context(cafile=certificate)

        class Connection(http.client.HTTPSConnection):
            def connect(self) -> None:
                plain = socket.create_connection(("127.0.0.1", port), 30)
                self.sock = context.wrap_socket(plain, server_hostname=HOST)

        self._connection = Connection(HOST, timeout=30)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    make_store(tmp_path / "store", pairs(5)).close()
    with served(tmp_path / "store", allow_hosts=[HOST], new_tokens=["ann"]) as opened:
        yield opened


@pytest.fixture
def browser(desk: Desk, tmp_path: Path) -> Iterator[_OverTls]:
    certificate, key = write_certificate(tmp_path, HOST)
    port = int(desk.addresses[0].rstrip("/").rpartition(":")[2])
    with tls_proxy(port, certificate, key, Connection="close", X_Forwarded_Proto="https") as place:
        opened = _OverTls(place, certificate)
        yield opened
        opened.close()


def _given(desk: Desk) -> list[tuple[str, ...]]:
    return [event.labels for event in desk.store.events()]


def test_an_annotator_works_over_tls(desk: Desk, browser: _OverTls) -> None:
    assert f"https://{HOST}/" in desk.addresses
    cookie = browser.get("/enter").headers["set-cookie"].lower()
    assert "secure" in cookie and "httponly" in cookie and "samesite=strict" in cookie
    fields = {**browser.fields(), "name": "ann", "token": dict(desk.new_tokens)["ann"]}
    browser.post("/enter", fields, follow=False, Origin=f"https://{HOST}")
    assert browser.status == 303
    # A redirect names no scheme: the browser stays where it is.
    assert browser.headers["location"].startswith("/")
    browser.get("/judge/1")
    browser.label("Title-Identical")
    page = browser.text
    assert browser.status == 200 and "Saved." in page
    assert not re.search(r'(?:src|href|action)="http:', page)
    assert _given(desk) == [("Title-Identical",)]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": f"https://{HOST}", "Sec-Fetch-Site": "same-origin"}, 303),
        # A page that was sent in the clear may be anybody's.
        ({"Origin": f"http://{HOST}"}, 403),
        ({"Origin": f"https://{HOST}:8443"}, 403),
        ({"Origin": f"https://{HOST}.evil.example"}, 403),
        ({"Origin": f"https://evil.example/https://{HOST}"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": f"https://{HOST}", "Sec-Fetch-Site": "same-site"}, 403),
        ({"Host": "evil.example", "Origin": "https://evil.example"}, 421),
    ],
)
def test_only_pages_of_the_proxys_host_may_send_forms(
    desk: Desk, browser: _OverTls, headers: dict[str, str], status: int
) -> None:
    browser.get("/enter")
    browser.post("/enter", {**browser.fields(), "name": "ann", "token": dict(desk.new_tokens)["ann"]})
    browser.get("/judge/1")
    fields = {**browser.fields(), "label": "Title-Identical"}
    browser.post("/judge/1", fields, follow=False, **{name.replace("-", "_"): text for name, text in headers.items()})
    assert browser.status == status
    assert _given(desk) == ([("Title-Identical",)] if status == 303 else [])


def test_a_wrong_token_opens_nothing_over_tls(desk: Desk, browser: _OverTls) -> None:
    browser.get("/enter")
    browser.post("/enter", {**browser.fields(), "name": "ann", "token": "wrong"})
    assert browser.status == 401
    browser.get("/judge/1")
    assert browser.status >= 400 and "Airport" not in browser.text
