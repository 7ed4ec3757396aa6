"""The pages: their layout, forms and items, and who visits them; templates and files are part of the package."""

from __future__ import annotations

import functools
import hashlib
import re
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from importlib import resources
from statistics import median
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl

import jinja2
from markupsafe import Markup
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from truerank.core.page import templates
from truerank.core.tables import escape_html
from truerank.judging.items import Annotator, Disagreement, Event, Item, JudgingProgress, Kind, Standing, Text
from truerank.judging.schemes import Choice, Scheme, View
from truerank.judging.store import Store
from truerank.judging.web.access import Access, Visitor, fresh_token
from truerank.loading import decimal_number
from truerank.text.words import MarkedPiece, mark

#: The keys of the page itself, beside those of the scheme's choices.
PAGE_KEYS: Final = (
    (("Enter",), "confirm"),
    (("u",), "undo what you said last"),
    (("s",), "skip; then the number of the reason, and Enter"),
    (("c",), "write a comment"),
    (("n", "→"), "next item"),
    (("p", "←"), "previous item"),
    (("g",), "guideline"),
    (("h", "?"), "keys"),
    (("Esc",), "leave the comment, the reasons or this list"),
)
_LONGEST_EXCERPT: Final = 90


class ShownGroup(NamedTuple):
    """Choices under one heading; `field` is their name in the form, `alone` marks those that exclude all others."""

    title: str
    field: str
    exclusive: bool
    required: bool
    alone: bool
    choices: tuple[Choice, ...]


class ShownStanding(NamedTuple):
    """What one annotator says about an item."""

    annotator: str
    role: str
    kind: str
    text: str
    comment: str


class ListRow(NamedTuple):
    """An item in a list."""

    address: str
    place: int
    topic: str
    text: str
    said: tuple[str, ...]
    state: str


@dataclass(frozen=True)
class Person:
    """How far one annotator is."""

    name: str
    role: str
    progress: JudgingProgress
    settled: int
    pace: str

    @property
    def percent(self) -> int:
        """The share of the items that are labelled or skipped, rounded down."""
        return 100 * (self.progress.done + self.progress.skipped) // max(self.progress.total, 1)


def shown_groups(scheme: Scheme, item: Item) -> tuple[ShownGroup, ...]:
    """The choices of an item by group, then those that exclude every other.

    The optional group "variant" is left out where the item has no variant.
    """
    named = {group.name for group in scheme.groups}
    groups = [
        ShownGroup(group.title, f"label.{number}", group.exclusive, group.required, False, choices)
        for number, group in enumerate(scheme.groups)
        if (choices := tuple(choice for choice in scheme.choices if choice.group == group.name))
        and (group.required or group.name != "variant" or item.variant.strip())
    ]
    alone = tuple(choice for choice in scheme.choices if choice.group not in named)
    if alone:
        groups.append(ShownGroup("or", "label.alone", False, False, True, alone))
    return tuple(groups)


def item_mark(item: Item) -> str:
    """What a form names its item by, so that an answer never lands on another one when the order of work changes."""
    return hashlib.sha256(item.item_id.encode("utf-8", "replace")).hexdigest()[:20]


def said_text(standing: Standing) -> str:
    if standing.kind == "skip":
        return f"skipped: {standing.reason}"
    return ", ".join(standing.labels)


def who_said_what(store: Store, item_id: str) -> tuple[ShownStanding, ...]:
    """Everybody's standing for an item; people first, then models, then the adjudication."""
    roles = {annotator.name: annotator.role for annotator in store.annotators()}
    standing = store.standing(item_id=item_id)
    rows = [ShownStanding(s.annotator, roles[s.annotator], s.kind, said_text(s), s.comment) for s in standing]
    return tuple(sorted(rows, key=lambda row: (row.kind == "adjudicate", row.role == "model", row.annotator)))


def own_rows(store: Store, annotator: str, first: int, last: int) -> tuple[ListRow, ...]:
    """An annotator's items in the order of work, from place `first` to `last`, counted from 1."""
    said = {each.item_id: each for each in store.standing(annotator=annotator) if each.kind != "adjudicate"}
    rows = []
    for place, item_id in enumerate(store.assigned(annotator)[first - 1 : last], start=first):
        item, own = store.item(item_id), said.get(item_id)
        words = () if own is None else (said_text(own),)
        state = "open" if own is None else "skipped" if own.kind == "skip" else "labelled"
        rows.append(ListRow(f"/judge/{place}", place, item.topic_id, excerpt(item), words, state))
    return tuple(rows)


def adjudication_rows(
    store: Store, found: Sequence[Disagreement], places: Sequence[int], query: str
) -> tuple[ListRow, ...]:
    """Items on which annotators disagree, with who said what."""
    models = {annotator.name for annotator in store.annotators() if annotator.role == "model"}
    rows = []
    for one, place in zip(found, places, strict=True):
        item = store.item(one.item_id)
        names = {s.annotator: f"{s.annotator} (model)" if s.annotator in models else s.annotator for s in one.standings}
        said = tuple(f"{names[s.annotator]}: {said_text(s)}" for s in one.standings)
        state = "open" if one.adjudicated is None else f"{said_text(one.adjudicated)} ({one.adjudicated.annotator})"
        rows.append(ListRow(f"/adjudicate/{place}{query}", place, item.topic_id, excerpt(item), said, state))
    return tuple(rows)


def people(store: Store) -> tuple[Person, ...]:
    """Everybody with their progress; people first, then adjudicators, then models, which are assigned nothing."""
    standings = store.standing()
    settled = Counter(standing.annotator for standing in standings if standing.kind == "adjudicate")
    times: dict[str, list[float]] = {}
    for standing in standings:
        if standing.kind == "label" and standing.seconds > 0:
            times.setdefault(standing.annotator, []).append(standing.seconds)
    rows = []
    for who in store.annotators():
        progress = store.progress(who.name)
        if who.role == "model" and not progress.total:
            kinds = Counter(standing.kind for standing in standings if standing.annotator == who.name)
            progress = JudgingProgress(kinds["label"], kinds["skip"], len(store.item_ids()))
        pace = f"{median(times[who.name]):.0f}" if who.name in times else "–"
        rows.append(Person(who.name, who.role, progress, settled[who.name], pace))
    order = ("person", "adjudicator", "model")
    return tuple(sorted(rows, key=lambda row: (order.index(row.role), row.name)))


def excerpt(item: Item) -> str:
    """A few words that tell an item from others in a list: the query of a pair, else the title."""
    text = item.text("query") or item.title or (item.texts[0].text if item.texts else "")
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST_EXCERPT else text[: _LONGEST_EXCERPT - 1].rstrip() + "…"


#: Marks of writing direction and blanks of no width: they change what a reader sees without being seen.
_INVISIBLE: Final = re.compile("[\u061c\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]")
#: Longer texts are shown without marks: nobody compares them word by word, and marking them would take seconds.
_LONGEST_MARKED: Final = 200_000


@dataclass(frozen=True)
class ShownText:
    """A text with its heading; `body` is safe markup."""

    name: str
    body: Markup
    id: str = ""
    url: str = ""


@dataclass(frozen=True)
class Shown:
    """An item as a page shows it: what it is judged against (query or title, description, narrative, variant, as far as
    there), what is judged, and whether differing words are marked."""

    topic: tuple[ShownText, ...]
    texts: tuple[ShownText, ...]
    marked: bool


def safe(text: object) -> Markup:
    """A text as markup that shows it: escaped, and invisible signs as their code points."""
    return Markup(_INVISIBLE.sub(_sign, escape_html(str(text))))


@functools.lru_cache(maxsize=512)
def shown_item(item: Item, view: View) -> Shown:
    """An item as the scheme lays it out."""
    bodies: dict[str, Markup] = {}
    texts = [(text, safe(text.text)) for text in item.texts]
    marked = sum(len(text.text) for text in item.texts) <= _LONGEST_MARKED
    if view == "pair" and marked:
        bodies, texts = _pair(item)
    elif view == "versions" and marked and len(item.texts) > 1:
        texts = [(text, _pieces(mark(_others(item, text), text.text).query)) for text in item.texts]
    else:
        marked = False
    topic = [
        ShownText("Query" if field == "title" and view != "pair" else field.capitalize(), bodies.get(field, safe(text)))
        for field in ("title", "variant", "description", "narrative")
        if (text := getattr(item, field)).strip()
    ]
    shown = tuple(ShownText(_heading(text, view), body, text.id, text.url) for text, body in texts)
    return Shown(tuple(topic), shown, marked)


def _pair(item: Item) -> tuple[dict[str, Markup], list[tuple[Text, Markup]]]:
    """Title and variant against what is judged, and that against both; without them, two texts against each other."""
    if not item.texts:
        return {}, []
    first = item.texts[0]
    fields = {name: getattr(item, name) for name in ("title", "variant") if getattr(item, name).strip()}
    if fields:
        bodies = {name: _pieces(mark(text, first.text).topic) for name, text in fields.items()}
        reference = " \n ".join(fields.values())
        return bodies, [(text, _pieces(mark(reference, text.text).query)) for text in item.texts]
    if len(item.texts) == 1:
        return {}, [(first, safe(first.text))]
    return {}, [(text, _pieces(mark(_others(item, text), text.text).query)) for text in item.texts]


def _others(item: Item, text: Text) -> str:
    return " \n ".join(other.text for other in item.texts if other is not text)


def _heading(text: Text, view: View) -> str:
    if view == "versions" and re.fullmatch(r"V\d+", text.name):
        return f"Version {text.name[1:]}"
    return text.name[:1].upper() + text.name[1:]


def _pieces(pieces: Iterable[MarkedPiece]) -> Markup:
    parts = (
        safe(token) if status == "same" else Markup('<mark class="{}">{}</mark>').format(status, safe(token))
        for token, status in pieces
    )
    return Markup("").join(parts)


def _sign(match: re.Match[str]) -> str:
    return f'<span class="sign">U+{ord(match[0]):04X}</span>'


_STATIC: Final = {
    "page.css": ("truerank.core", "templates", "text/css"),
    "judge.css": ("truerank.judging.web", "static", "text/css"),
    "judge.js": ("truerank.judging.web", "static", "text/javascript"),
    "icon.svg": ("truerank.judging.web", "static", "image/svg+xml"),
}


class StaticFile(NamedTuple):
    """A file that pages ask for; `version` is made of its content and is in its address."""

    body: bytes
    media_type: str
    version: str


@functools.cache
def static_file(name: str) -> StaticFile | None:
    """A file by its name; None if there is none of that name."""
    if name not in _STATIC:
        return None
    package, folder, media_type = _STATIC[name]
    body = resources.files(package).joinpath(folder, name).read_bytes()
    return StaticFile(body, media_type, hashlib.sha256(body).hexdigest()[:12])


@functools.cache
def _environment() -> jinja2.Environment:
    environment = templates("truerank.judging.web")
    environment.filters["safe_text"] = safe
    # For attributes and text fields, where no element can stand.
    environment.filters["attribute"] = lambda text: Markup(escape_html(str(text)))
    environment.globals["page_keys"] = PAGE_KEYS
    environment.globals["versions"] = {name: found.version for name in _STATIC if (found := static_file(name))}
    return environment


#: The largest form, in bytes: a comment of the longest kind in any script, and some more.
LARGEST_BODY: Final = 128 * 1024
_MOST_FIELDS: Final = 400
_LONGEST_COMMENT: Final = 4_000
_LONGEST_REASON: Final = 500
_LONGEST_TOKEN: Final = 100
#: Nobody looks at one item for longer than this without going away.
_MOST_SECONDS: Final = 3600.0


class Refused(Exception):  # noqa: N818 - it is an answer, not a fault of ours
    """A request that is answered with a status and a sentence, and changes nothing."""

    def __init__(self, status: int, message: str) -> None:
        self.status = status
        self.message = message
        super().__init__(message)


@dataclass(frozen=True)
class Form:
    """A form's fields in order."""

    fields: Sequence[tuple[str, str]]

    def one(self, name: str) -> str:
        """The last value of a field; empty if it is not there."""
        return next((value for key, value in reversed(self.fields) if key == name), "")

    def all(self, prefix: str) -> tuple[str, ...]:
        """The values of all fields whose names begin with the prefix."""
        return tuple(value for key, value in self.fields if key.startswith(prefix))


@dataclass(frozen=True)
class JudgedForm:
    """What an annotator says with a form."""

    kind: Kind
    labels: tuple[str, ...]
    comment: str
    reason: str
    seconds: float
    token: str

    @classmethod
    def of(cls, form: Form, *kinds: Kind) -> JudgedForm:
        kind = next((one for one in kinds if form.one("act") in (one, "")), None)
        if kind is None:
            raise Refused(422, "This page has no such button. Load the page again.")
        reason = form.one("other").strip() or form.one("reason").strip()
        comment, token = form.one("comment").replace("\r\n", "\n").strip(), form.one("token")
        seconds = _seconds(form)
        for name, text, most in (("comment", comment, _LONGEST_COMMENT), ("reason", reason, _LONGEST_REASON)):
            if len(text) > most:
                raise Refused(422, f"The {name} has {len(text):,} characters. At most {most:,} are kept.")
        if not token or len(token) > _LONGEST_TOKEN:
            raise Refused(422, "The form is incomplete. Load the page again.")
        if kind == "skip":
            return cls(kind, (), comment, reason, seconds, token)
        return cls(kind, form.all("label"), comment, "", seconds, token)

    def is_in(self, event: Event, item_id: str) -> bool:
        """Whether an event says the same of the same item. A token that was used before brings back its first event."""
        asked = (item_id, self.kind, self.labels, self.comment, self.reason)
        return asked == (event.item_id, event.kind, event.labels, event.comment, event.reason)

    def stands(self, standing: Standing) -> bool:
        """Whether it is what holds now."""
        held = (standing.kind, standing.labels, standing.comment, standing.reason)
        return held == (self.kind, self.labels, self.comment, self.reason)


async def read_form(request: Request) -> Form:
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/x-www-form-urlencoded":
        raise Refused(415, "Only forms are taken.")
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > LARGEST_BODY:
            raise Refused(413, f"The form is larger than {LARGEST_BODY // 1024} KiB.")
    try:
        fields = parse_qsl(body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=_MOST_FIELDS)
    except ValueError as error:
        raise Refused(422, "The form cannot be read.") from error
    return Form(fields)


def posted(answer: Callable[[Request, Form], Response]) -> Callable[[Request], Awaitable[Response]]:
    """An endpoint that reads the form as it comes and then answers in a thread."""

    async def endpoint(request: Request) -> Response:
        return await run_in_threadpool(answer, request, await read_form(request))

    return endpoint


def _seconds(form: Form) -> float:
    """How long the item was looked at: what the page measured, or else the time since it was made."""
    measured = form.one("seconds")
    if not (said := measured or form.one("shown")):
        return 0.0
    value = decimal_number(said)
    if value is None:
        raise Refused(422, "The time is not a number.")
    return round(min(max(value if measured else time.time() - value, 0.0), _MOST_SECONDS), 1)


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
        if self.visitor.annotator is None:
            raise Refused(401, "Say first who you are.")
        return self.visitor.annotator

    @property
    def name(self) -> str:
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
        # Every value is escaped where it is not safe markup.
        return HTMLResponse(_environment().get_template(f"{template}.html.j2").render(everywhere | values), status)

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
        return self.page("refused", status, reason=HTTPStatus(status).phrase, message=message)

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
    if not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS):
        raise Refused(404, "There is no such page.")
    return int(text)
