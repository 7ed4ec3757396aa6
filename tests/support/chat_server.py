"""A real HTTP server on loopback that answers like an OpenAI-compatible endpoint, well or badly, as a test says."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

__all__ = ["Reply", "Seen", "answered", "chat_server", "item_of"]


@dataclass(frozen=True)
class Reply:
    """What the server sends: a status, headers, a body, how long it thinks first, and between two bytes of it."""

    body: bytes | str = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    cut: bool = False
    pause: float = 0.0


@dataclass(frozen=True)
class Seen:
    """One request as it came, and when."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    at: float


def answered(content: Any, finish: str = "stop", **more: Any) -> Reply:
    """A chat completion with a text, or with the JSON of a value."""
    text = content if isinstance(content, str) or content is None else json.dumps(content)
    message = {"role": "assistant", "content": text}
    usage = {"prompt_tokens": 100, "completion_tokens": 7, "total_tokens": 107}
    value = {"choices": [{"index": 0, "message": message, "finish_reason": finish}], "usage": usage, **more}
    return Reply(json.dumps(value))


def item_of(seen: Seen) -> dict[str, Any]:
    """The item of a request, from between its two marks."""
    first, body, last = seen.body["messages"][-1]["content"].split("\n")
    assert first.removesuffix(" begins") == last.removesuffix(" ends")
    return dict(json.loads(body))


@contextlib.contextmanager
def chat_server(reply: Callable[[Seen, int], Reply]) -> Iterator[tuple[str, list[Seen]]]:
    """Runs the server; yields its address and the list of what it has seen.

    Args:
        reply: request and its number from 0 → what is sent.
    """
    seen: list[Seen] = []
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            request = Seen(self.path, dict(self.headers), json.loads(self.rfile.read(length)), time.monotonic())
            with lock:
                number = len(seen)
                seen.append(request)
            sent = reply(request, number)
            time.sleep(sent.seconds)
            body = sent.body.encode() if isinstance(sent.body, str) else sent.body
            self.send_response(sent.status)
            for name, value in sent.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body) + 100 * sent.cut))
            self.send_header("Connection", "close")
            self.end_headers()
            with contextlib.suppress(OSError):
                for at in range(len(body) if sent.pause else 0):
                    self.wfile.write(body[at : at + 1])
                    time.sleep(sent.pause)
                self.wfile.write(b"" if sent.pause else body)
            self.close_connection = True

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", seen
    finally:
        server.shutdown()
        server.server_close()
