"""The door of the server: hosts, origins and sizes are looked at before anything else, and every answer is sealed."""

from __future__ import annotations

import re
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from truerank.judging.web.access import Access
from truerank.judging.web.forms import LARGEST_BODY

__all__ = ["Guard"]

_SEALS: Final = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Not "no-referrer": it would also blank the Origin of our own forms, which is checked.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}


class Guard:
    """Middleware. Refuses, in plain words, what no page of this server would ask.

    421: a Host that is not ours. 403: a request that changes something and comes from another site. 413: a body that
    announces more than a form holds.
    """

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Looks at one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refusal = self._refusal(Headers(scope=scope), scope["method"])
        sealed = _sealed(send)
        if refusal is None:
            await self._app(scope, receive, sealed)
        else:
            await _answer(sealed, *refusal)

    def _refusal(self, headers: Headers, method: str) -> tuple[int, str] | None:
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self._access.answers_for(hosts[0]):
            return 421, "This server does not answer under that name. Use the address that it printed."
        length = headers.get("content-length", "0")
        if not re.fullmatch("[0-9]{1,12}", length) or int(length) > LARGEST_BODY:
            return 413, f"The request is larger than {LARGEST_BODY // 1024} KiB."
        if method in ("GET", "HEAD"):
            return None
        origin, site = headers.get("origin"), headers.get("sec-fetch-site", "same-origin")
        if site not in ("same-origin", "none") or (origin is not None and _place(origin) != hosts[0].lower()):
            return 403, "The form comes from another site."
        return None


def _place(origin: str) -> str:
    """Host and port of an Origin, as a Host header writes them."""
    return origin.lower().partition("://")[2]


def _sealed(send: Send) -> Send:
    async def sealing(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _SEALS.items():
                headers[name] = value
            # Nothing of a page is kept, so that going back shows what holds now, with a fresh token.
            headers.setdefault("Cache-Control", "no-store")
        await send(message)

    return sealing


async def _answer(send: Send, status: int, message: str) -> None:
    body = f"{message}\n".encode()
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", str(len(body)).encode()),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
