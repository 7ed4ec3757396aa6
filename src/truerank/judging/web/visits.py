"""One request: who asks, and the pages that are made for them."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from truerank.judging.events import Annotator
from truerank.judging.store import Store
from truerank.judging.web.access import Access, Visitor, fresh_token
from truerank.judging.web.forms import Form, Refused
from truerank.judging.web.pages import reason, render

_COOKIE_SECONDS: Final = 14 * 24 * 3600
_MOST_DIGITS: Final = 9


@dataclass(frozen=True)
class Visit:
    """A request with its store, its rules and its visitor."""

    request: Request
    store: Store
    access: Access
    visitor: Visitor

    @property
    def who(self) -> Annotator:
        """Who has entered."""
        if self.visitor.annotator is None:
            raise Refused(401, "Say first who you are.")
        return self.visitor.annotator

    @property
    def name(self) -> str:
        """The name of who has entered."""
        return self.who.name

    def query(self, name: str) -> str:
        """A part of the address behind the question mark; empty if it is not there."""
        return self.request.query_params.get(name, "")

    def page(self, template: str, status: int = 200, **values: Any) -> Response:
        """A page with what all pages show."""
        everywhere = {
            "scheme": self.store.scheme,
            "who": self.visitor.annotator,
            "links": self._links(),
            "here": "/" + self.request.url.path.split("/")[1],
            "form_key": self.visitor.form_key if self.visitor.secret else "",
            "token": fresh_token(),
            "undo_token": fresh_token(),
            "shown_at": f"{time.time():.1f}",
        }
        return HTMLResponse(render(template, everywhere | values), status)

    def enter_page(self, status: int = 200, message: str = "") -> Response:
        """The page that asks who one is; gives the browser a secret for its form if it has none."""
        visitor = Visitor(None, self.visitor.secret or fresh_token())
        names = [who for who in self.store.annotators() if who.name in self.access.names]
        came_straight = self.request.headers.get("sec-fetch-site", "none") in ("none", "same-origin")
        response = Visit(self.request, self.store, self.access, visitor).page(
            "enter", status, tokens=self.access.tokens, names=[] if self.access.tokens else names, message=message,
            straight=came_straight and self.visitor.annotator is None,
        )  # fmt: skip
        if not self.visitor.secret:
            self.set_cookie(response, f":{visitor.secret}")
        return response

    def refused_page(self, status: int, message: str) -> Response:
        """The page that says why nothing was done."""
        return self.page("refused", status, reason=reason(status), message=message)

    def set_cookie(self, response: Response, value: str) -> None:
        """Keeps a value in the browser, out of the reach of scripts and of other sites; an empty one is forgotten."""
        response.set_cookie(
            self.access.cookie, value, max_age=_COOKIE_SECONDS if value else 0, path="/",
            secure=self.request.url.scheme == "https", httponly=True, samesite="strict",
        )  # fmt: skip

    def go(self, address: str) -> Response:
        """Sends the browser to another page after a form."""
        return RedirectResponse(address, 303)

    def _links(self) -> list[tuple[str, str]]:
        if self.visitor.annotator is None:
            return []
        links = [("/judge", "Judge"), ("/mine", "My items")]
        if self.visitor.annotator.role == "adjudicator":
            own = links if self.store.assigned(self.visitor.annotator.name) else []
            links = [*own, ("/adjudicate", "Adjudicate")]
        return [*links, ("/overview", "Overview"), ("/help", "Help")]


def visit_of(request: Request) -> Visit:
    """The visit of a request, whether or not somebody has entered."""
    store, access = request.app.state.store, request.app.state.access
    return Visit(request, store, access, access.visitor(store, request.cookies))


def entered(request: Request, form: Form | None = None) -> Visit:
    """The visit of somebody who has entered, with a form that is their own."""
    visit = visit_of(request)
    _ = visit.who
    if form is not None and not visit.visitor.owns(form.one("form")):
        raise Refused(403, "The form is not one that this page gave you. Load the page again.")
    return visit


def number_of(text: str) -> int:
    """A number of an address."""
    if not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS):
        raise Refused(404, "There is no such page.")
    return int(text)
