"""The application: its routes, and how every fault is answered."""

from __future__ import annotations

import re
from typing import Final

from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from truerank.errors import TruerankError
from truerank.judging.proposers import Proposer
from truerank.judging.store import Store
from truerank.judging.web import adjudicating, labelling, overview
from truerank.judging.web.access import Access
from truerank.judging.web.pages import LARGEST_BODY, Form, Refused, entered, posted, static_file, visit_of


def create_app(store: Store, access: Access, proposer: Proposer | None = None, batch: int = 1) -> ASGIApp:
    """The judging pages of a store as an ASGI application."""
    routes = (
        Route("/", _home),
        Route("/enter", _enter_page),
        Route("/enter", posted(_enter), methods=["POST"]),
        Route("/leave", posted(_leave), methods=["POST"]),
        Route("/help", _help),
        Route("/static/{name}", _static),
        *(route for room in (labelling, adjudicating, overview) for route in room.routes),
    )
    app = Starlette(routes=routes)
    app.router.redirect_slashes = False
    app.state.store, app.state.access, app.state.figures = store, access, overview.Figures(store)
    app.state.proposer, app.state.batch = proposer, batch
    app.add_exception_handler(Refused, _refused)
    app.add_exception_handler(HTTPException, _not_there)
    app.add_exception_handler(ClientDisconnect, _gone)
    app.add_exception_handler(TruerankError, _unusable)
    app.add_exception_handler(Exception, _broken)
    return Guard(app, access)


def _home(request: Request) -> Response:
    visit = visit_of(request)
    if visit.visitor.annotator is None:
        return visit.enter_page()
    adjudicates = visit.who.role == "adjudicator" and not visit.store.assigned(visit.name)
    return visit.go("/adjudicate" if adjudicates else "/judge")


def _enter_page(request: Request) -> Response:
    return visit_of(request).enter_page()


def _enter(request: Request, form: Form) -> Response:
    visit = visit_of(request)
    if not visit.visitor.owns(form.one("form")):
        raise Refused(403, "The form is not one that this page gave you. Load the page again.")
    name, token = form.one("name").strip(), form.one("token")
    if not visit.access.admits(visit.store, name, token):
        return visit.enter_page(
            401,
            "That name and token do not belong together."
            if visit.access.tokens
            else "Nobody of that name judges here.",
        )
    response = visit.go("/")
    visit.set_cookie(response, visit.access.cookie_value(name, token))
    return response


def _leave(request: Request, form: Form) -> Response:
    visit = entered(request, form)
    response = visit.go("/enter")
    visit.set_cookie(response, "")
    return response


def _help(request: Request) -> Response:
    return entered(request).page("keys")


def _static(request: Request) -> Response:
    found = static_file(request.path_params["name"])
    if found is None:
        raise Refused(404, "There is no such file.")
    headers = {"Cache-Control": "public, max-age=31536000, immutable"}
    return Response(found.body, media_type=found.media_type, headers=headers)


def _refused(request: Request, refusal: Exception) -> Response:
    status, message = (refusal.status, refusal.message) if isinstance(refusal, Refused) else (500, "")
    visit = visit_of(request)
    return visit.enter_page(401, message) if status == 401 else visit.refused_page(status, message)


def _not_there(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    messages = {404: "There is no such page.", 405: "That cannot be done here."}
    return visit_of(request).refused_page(status, messages.get(status, "The request cannot be answered."))


def _gone(request: Request, error: Exception) -> Response:
    """The client went away in the middle of its form: nobody reads this, and there is nothing to log."""
    return Response(status_code=400)


def _unusable(request: Request, error: Exception) -> Response:
    """The store cannot be read: nothing can be looked up for the page either, so it is plain."""
    fault = error.fault if isinstance(error, TruerankError) else "it failed"
    return Response(f"The store cannot be used now: {fault}.\n", 503, media_type="text/plain; charset=utf-8")


def _broken(request: Request, error: Exception) -> Response:
    """A fault of ours; the server prints where it arose."""
    message = "This went wrong on the server, and nothing was changed. Try again.\n"
    return Response(message, 500, media_type="text/plain; charset=utf-8")


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
        refusal = self._refusal(Headers(scope=scope), scope)
        sealed = _sealed(send)
        if refusal is None:
            await self._app(scope, receive, sealed)
        else:
            await _answer(sealed, *refusal)

    def _refusal(self, headers: Headers, scope: Scope) -> tuple[int, str] | None:
        hosts = headers.getlist("host")
        if len(hosts) != 1 or not self._access.answers_for(hosts[0]):
            return 421, "This server does not answer under that name. Use the address that it printed."
        length = headers.get("content-length", "0")
        if not re.fullmatch("[0-9]{1,12}", length) or int(length) > LARGEST_BODY:
            return 413, f"The request is larger than {LARGEST_BODY // 1024} KiB."
        if scope["method"] in ("GET", "HEAD"):
            return None
        origin, site = headers.get("origin"), headers.get("sec-fetch-site", "same-origin")
        # A page that came in the clear may be anybody's; a proxy may speak TLS and not say so.
        own = {f"{scheme}://{hosts[0].lower()}" for scheme in (scope["scheme"], "https")}
        if site not in ("same-origin", "none") or (origin is not None and origin.lower() not in own):
            return 403, "The form comes from another site."
        return None


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
