"""A web archive on this machine, which misbehaves as archives do: CDX search, TimeMap, playback, robots.txt."""

from __future__ import annotations

import contextlib
import email.utils
import gzip
import threading
import time
import urllib.parse
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

__all__ = ["Snapshot", "WebArchive", "serve"]


@dataclass
class Snapshot:
    """One capture, and what playing it back does."""

    timestamp: str
    body: bytes = b""
    status: int = 200
    listed: str = ""
    content_type: str = "text/html; charset=utf-8"
    #: plain | redirect-loop | playback-redirect | gzip | broken-gzip | truncated | slow | drip | 429 | 503 | 500 |
    #: robots | excluded | huge | dropped | not-memento | twice-encoded
    behaviour: str = "plain"
    #: How often it misbehaves before it works; 0 for always.
    times: int = 0


@dataclass
class WebArchive:
    """The pages by URL, how the list of captures of a URL misbehaves, and what was asked."""

    pages: dict[str, list[Snapshot]] = field(default_factory=dict)
    lists: dict[str, str] = field(default_factory=dict)
    robots: str = "User-agent: *\nDisallow: /save/\n"
    asked: Counter[str] = field(default_factory=Counter)
    at: list[tuple[float, str]] = field(default_factory=list)
    #: Stops answering after so many requests; None for never.
    dies_after: int | None = None
    url: str = ""

    def add(self, url: str, *snapshots: Snapshot) -> None:
        """Adds captures of a page."""
        self.pages.setdefault(url, []).extend(snapshots)


@contextlib.contextmanager
def serve(archive: WebArchive) -> Iterator[WebArchive]:
    """Runs the archive on a free port of this machine."""

    class Handler(_Handler):
        pages_of = archive

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.handle_error = lambda request, address: None  # type: ignore[method-assign]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    archive.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield archive
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    pages_of: WebArchive

    def do_GET(self) -> None:
        archive = self.pages_of
        archive.asked[self.path] += 1
        archive.at.append((time.monotonic(), self.path))
        if archive.dies_after is not None and len(archive.at) > archive.dies_after:
            self.close_connection = True
            return
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            if self.path == "/robots.txt":
                self._send(200, archive.robots.encode(), {"Content-Type": "text/plain"})
            elif self.path.startswith("/cdx/search/cdx?"):
                self._cdx(urllib.parse.parse_qs(self.path.partition("?")[2]))
            elif self.path.startswith("/web/timemap/link/"):
                self._timemap(self.path[len("/web/timemap/link/") :])
            elif self.path.startswith("/web/"):
                self._playback(*self.path[len("/web/") :].split("/", 1))
            else:
                self._send(404, b"no such service")

    def log_message(self, *args: Any) -> None:
        return

    def _cdx(self, query: dict[str, list[str]]) -> None:
        url, low, high = query["url"][0], query["from"][0], query["to"][0]
        if self._misbehaved(url):
            return
        lines = [
            f"key {one.timestamp} {url} {one.content_type.partition(';')[0]} {one.listed or one.status} DIGEST 100"
            for one in sorted(self.pages_of.pages.get(url, []), key=lambda one: one.timestamp)
            if low <= one.timestamp <= high
        ]
        start = int(query.get("resumeKey", ["0"])[0])
        # Two captures a page, so that the pages are turned.
        part = lines[start : start + 2]
        more = f"\n\n{start + 2}" if start + 2 < len(lines) else ""
        self._send(200, ("\n".join(part) + more).encode(), {"Content-Type": "text/plain"})

    def _timemap(self, url: str) -> None:
        url = urllib.parse.unquote(url)
        if self._misbehaved(url):
            return
        found = self.pages_of.pages.get(url)
        if not found:
            self._send(404, b"")
            return
        links = [f'<{url}>; rel="original"', f'<{self.pages_of.url}/web/{url}>; rel="timegate"']
        for one in found:
            when = email.utils.format_datetime(datetime.strptime(one.timestamp, "%Y%m%d%H%M%S").replace(tzinfo=UTC))
            links.append(f'<{self.pages_of.url}/web/{one.timestamp}/{url}>; rel="memento"; datetime="{when}"')
        self._send(200, ",\n".join(links).encode(), {"Content-Type": "application/link-format"})

    def _misbehaved(self, url: str) -> bool:
        behaviour = self.pages_of.lists.get(url, "")
        if behaviour == "garbage":
            self._send(200, b"<html>We are sorry</html>")
        elif behaviour == "robots":
            self._send(403, b"org.archive.util.io.RuntimeIOException: RobotAccessControlException: Blocked")
        elif behaviour == "excluded":
            self._send(403, b"AdministrativeAccessControlException: Blocked Site Error")
        elif behaviour == "400":
            self._send(400, b"Bad Request")
        elif behaviour == "429":
            self._send(429, b"slow down", {"Retry-After": "0"})
        elif behaviour == "503-once" and self.pages_of.asked[self.path] == 1:
            self._send(503, b"later", {"Retry-After": "0"})
        else:
            return False
        return True

    def _playback(self, stamp: str, url: str) -> None:
        url, archive = urllib.parse.unquote(url), self.pages_of
        snapshot = next((one for one in archive.pages.get(url, []) if one.timestamp == stamp.rstrip("_abcdi")), None)
        if snapshot is None:
            self._send(404, b"Wayback has not archived that URL")
            return
        misbehaves = not snapshot.times or archive.asked[self.path] <= snapshot.times
        behaviour = snapshot.behaviour if misbehaves else "plain"
        when = datetime.strptime(snapshot.timestamp, "%Y%m%d%H%M%S").replace(tzinfo=UTC)
        headers = {
            "Content-Type": snapshot.content_type,
            "Memento-Datetime": email.utils.format_datetime(when, usegmt=True),
            "Link": f'<{url}>; rel="original", <{archive.url}/web/timemap/link/{url}>; rel="timemap"',
            "X-Archive-Orig-Server": "Apache/2",
            "X-Archive-Orig-Content-Type": snapshot.content_type,
        }
        self._behave(behaviour, snapshot, headers, url)

    def _behave(self, behaviour: str, snapshot: Snapshot, headers: dict[str, str], url: str) -> None:
        body = snapshot.body
        if behaviour == "redirect-loop":
            self._send(302, b"", {"Location": self.path})
        elif behaviour == "playback-redirect":
            self._send(302, b"", {"Location": f"/web/20010101000000id_/{url}"})
        elif behaviour in ("429", "503", "500"):
            self._send(int(behaviour), b"try later", {"Retry-After": "0"} if behaviour != "500" else {})
        elif behaviour == "robots":
            self._send(403, b"Page cannot be displayed due to robots.txt.")
        elif behaviour == "excluded":
            self._send(403, b"This URL has been excluded from the Wayback Machine.")
        elif behaviour == "not-memento":
            self._send(200, b"<html>We are down for maintenance</html>")
        elif behaviour == "gzip":
            self._send(200, gzip.compress(body, mtime=0), {**headers, "Content-Encoding": "gzip"})
        elif behaviour == "broken-gzip":
            self._send(200, b"\x1f\x8b\x08\x00" + b"no gzip at all" * 20, {**headers, "Content-Encoding": "gzip"})
        elif behaviour == "truncated":
            self._send(200, body[: len(body) // 2], {**headers, "Content-Length": str(len(body))})
            self.close_connection = True
        elif behaviour == "dropped":
            self.close_connection = True
        elif behaviour == "slow":
            time.sleep(3)
            self._send(200, body, headers)
        elif behaviour == "drip":
            self._start(200, {**headers, "Content-Length": str(1 << 20)})
            for _ in range(100):
                self.wfile.write(b"<p>x")
                self.wfile.flush()
                time.sleep(0.05)
            self.close_connection = True
        elif behaviour == "huge":
            self._start(200, {**headers, "Connection": "close"})
            piece = b"<p>A page that does not end, said the server, and went on." * 1024
            for _ in range((50 << 20) // len(piece)):
                self.wfile.write(piece)
            self.close_connection = True
        else:
            location = {"Location": f"/web/{snapshot.timestamp}id_/{url}x"} if 300 <= snapshot.status < 400 else {}
            self._send(snapshot.status, body, {**headers, **location})

    def _send(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self._start(status, {"Content-Length": str(len(body)), **(headers or {})})
        self.wfile.write(body)

    def _start(self, status: int, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
