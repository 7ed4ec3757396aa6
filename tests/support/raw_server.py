"""A server of bytes: each connection is given to a function that sends what it likes, HTTP or not."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator

__all__ = ["raw_server", "response"]


@contextlib.contextmanager
def raw_server(answer: Callable[[socket.socket, str], None]) -> Iterator[str]:
    """Runs it on a free port of this machine; yields its address.

    Args:
        answer: gets the connection and the head of the request.
    """
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=one, args=listening.accept()[:1], daemon=True).start()

    def one(connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            head = b""
            while b"\r\n\r\n" not in head:
                if not (piece := connection.recv(65536)):
                    return
                head += piece
            answer(connection, head.decode("latin-1"))

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        # A thread that waits in accept() keeps the port; a shutdown wakes it.
        with contextlib.suppress(OSError):
            listening.shutdown(socket.SHUT_RDWR)
        listening.close()


def response(body: bytes = b"", *headers: str, status: int = 200, length: bool = True) -> bytes:
    """A whole HTTP response, after which the connection ends."""
    lines = [f"HTTP/1.1 {status} Text", "Connection: close", *headers]
    if length:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body
