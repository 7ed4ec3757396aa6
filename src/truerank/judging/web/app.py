"""The application: its routes, the overview, how every fault is answered, and the door before Uvicorn."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import ipaddress
import itertools
import logging
import re
import socket
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

import h11
import uvicorn
from markupsafe import Markup
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from truerank.core.tables import Column, Table
from truerank.errors import InputError, TruerankError
from truerank.judging.agreement import agreement
from truerank.judging.coefficients import TITLES, Score
from truerank.judging.definitions import definitions
from truerank.judging.samples import Proposer
from truerank.judging.store import Store
from truerank.judging.web import labelling
from truerank.judging.web.access import Access
from truerank.judging.web.pages import (
    LARGEST_BODY,
    Form,
    Refused,
    entered,
    people,
    posted,
    static_file,
    visit_of,
)
from truerank.text.printable import counted


def create_app(store: Store, access: Access, proposer: Proposer | None = None, batch: int = 1) -> ASGIApp:
    routes = (
        Route("/", _home),
        Route("/enter", lambda request: visit_of(request).enter_page()),
        Route("/enter", posted(_enter), methods=["POST"]),
        Route("/leave", posted(_leave), methods=["POST"]),
        Route("/help", lambda request: entered(request).page("keys")),
        Route("/static/{name}", _static),
        *labelling.routes,
        Route("/overview", _overview),
    )
    app = Starlette(routes=routes)
    app.router.redirect_slashes = False
    app.state.store, app.state.access, app.state.figures = store, access, Figures(store)
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


def _enter(request: Request, form: Form) -> Response:
    visit = visit_of(request)
    if not visit.visitor.owns(form.one("form")):
        raise Refused(403, "The form is not one that this page gave you. Load the page again.")
    name, token = form.one("name").strip(), form.one("token")
    if not visit.access.admits(visit.store, name, token):
        fault = "That name and token do not belong together."
        return visit.enter_page(401, fault if visit.access.tokens else "Nobody of that name judges here.")
    response = visit.go("/")
    visit.set_cookie(response, visit.access.cookie_value(name, token))
    return response


def _leave(request: Request, form: Form) -> Response:
    visit = entered(request, form)
    response = visit.go("/enter")
    visit.set_cookie(response, "")
    return response


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
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        refusal = self._refusal(Headers(scope=scope), scope)

        async def sealed(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _SEALS.items():
                    headers[name] = value
                # Nothing of a page is kept, so that going back shows what holds now, with a fresh token.
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        if refusal is None:
            await self._app(scope, receive, sealed)
            return
        status, message = refusal
        answer = Response(f"{message}\n", status, {"connection": "close"}, "text/plain; charset=utf-8")
        await answer(scope, receive, sealed)

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


#: Two names, the items that were compared, and the coefficients.
_Row: TypeAlias = tuple[str, str, int, Mapping[str, Score]]


class _ShownTable(NamedTuple):
    """A table of figures as HTML, below its heading."""

    title: str
    markup: Markup


class Figures:
    """The overview's figures, computed once for everybody who looks, and again when something was said since."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._after: tuple[object, ...] = ()
        self._values: dict[str, Any] = {}

    def values(self) -> dict[str, Any]:
        with self._lock:
            now = (self._store.last_event(), *self._store.annotators())
            if now != self._after:
                rows = people(self._store)
                labels = sum(row.progress.done for row in rows if row.role == "person")
                tables, note = _agreement(self._store)
                lead = f"{counted(len(self._store.item_ids()), 'item')}; {labels:,} labels by people."
                self._values = {"lead": lead, "people": rows, "tables": tables, "agreement_note": note}
                self._after = now
            return self._values


def _overview(request: Request) -> Response:
    figures: Figures = request.app.state.figures
    return entered(request).page("overview", **figures.values())


def _agreement(store: Store) -> tuple[list[_ShownTable], str]:
    """The tables, and what there is to say beside them. Models are in a table of their own."""
    try:
        found = agreement(store, resamples=0)
    except InputError:
        return [], "It is shown as soon as two people have labelled items."
    compared = [part for part in found.compared if part.units]
    main = definitions(store.scheme)[0].name
    models = [pair for pair in found.models if pair.definition == main and pair.units]
    tables = []
    if compared:
        rows = [(part.definition.name, part.definition.meaning, part.units, part.scores) for part in compared]
        who = ", ".join(annotator.name for annotator, _ in found.annotators)
        tables.append(_table(f"People: {who}", ("Definition", "What is compared"), rows))
    if models:
        rows = [(pair.first, pair.second, pair.units, pair.scores) for pair in models]
        title = f"Models against people ({main}); not part of the figures above"
        tables.append(_table(title, ("Model", "Against"), rows))
    if not tables:
        return [], "It is shown as soon as two people have labelled the same item."
    return tables, "Intervals, single labels and who confuses what: truerank judge agreement."


def _table(title: str, names: tuple[str, str], rows: Sequence[_Row]) -> _ShownTable:
    used = list(dict.fromkeys(name for row in rows for name in row[3]))
    columns = [*map(Column, names), Column("Items", align="right", format=",d")]
    columns += [Column(TITLES[name], align="right", format=".0%" if name == "percentage" else ".2f") for name in used]
    cells = [
        (first, second, units, *(scores[name].value if name in scores else None for name in used))
        for first, second, units, scores in rows
    ]
    return _ShownTable(title, Markup(Table(f"{title}.", tuple(columns), tuple(cells)).html()))


_log: Final = logging.getLogger("truerank.judging.web")
#: Loggers on which clients can make lines appear.
_LOGGERS: Final = ("uvicorn.error", "asyncio", _log.name)
_MOST_CONNECTIONS: Final = 512
_MOST_PER_ADDRESS: Final = 128
#: File handles for the store, the libraries and the threads that answer.
_OTHER_HANDLES: Final = 96
_WANTED_HANDLES: Final = 4096
_SWEEP_SECONDS: Final = 0.5


@dataclass(frozen=True)
class DoorLimits:
    """What one client, and all of them, may take: connections at the same time, in all and from one address (IPv6: one
    /64 network), and seconds: from the connection, or the first byte of a further request, to the last byte of its
    body; for the TLS handshake; for taking an answer."""

    connections: int = _MOST_CONNECTIONS
    per_address: int = _MOST_PER_ADDRESS
    request_seconds: float = 20.0
    handshake_seconds: float = 10.0
    unread_seconds: float = 60.0


def limits_here() -> DoorLimits:
    """The limits for the file handles that this process may have; it asks for more where they are few."""
    try:
        import resource
    except ModuleNotFoundError:  # Windows
        return DoorLimits()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _WANTED_HANDLES if hard == resource.RLIM_INFINITY else min(hard, _WANTED_HANDLES)
    if soft not in (resource.RLIM_INFINITY, wanted) and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    room = _MOST_CONNECTIONS if soft == resource.RLIM_INFINITY else max(soft - _OTHER_HANDLES, 8)
    most = min(_MOST_CONNECTIONS, room)
    return DoorLimits(most, min(_MOST_PER_ADDRESS, max(most // 2, 4)))


class SparingLog(logging.Filter):
    """Lets a few lines of a kind pass in a minute, and counts the others."""

    def __init__(self, most: int = 5, seconds: float = 60.0) -> None:
        super().__init__()
        self._most, self._seconds = most, seconds
        self._kinds: dict[tuple[str, object], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a line is written; the first after a pause says how many were not."""
        kind, now = (record.name, record.msg), time.monotonic()
        begun, seen = self._kinds.get(kind, (now, 0))
        if now - begun >= self._seconds:
            left_out, begun, seen = seen - self._most, now, 0
            if left_out > 0:
                record.msg = f"{record.msg} ({left_out:,d} more lines like this were left out)"
        if len(self._kinds) > 1000:
            self._kinds.clear()
        self._kinds[kind] = (begun, seen + 1)
        return seen < self._most


class Connection(H11Protocol):
    """One connection, which knows since when its client owes the rest of a request."""

    def __init__(self, beside: set[Connection], **uvicorns: Any) -> None:
        super().__init__(**uvicorns)
        #: Those from the same address, this one included while it is open.
        self.beside = beside
        beside.add(self)
        self.began = time.monotonic()
        #: Since when a request is awaited; None while one is answered, and between two.
        self.owing: float | None = self.began
        #: Since when parts of an answer wait to be taken.
        self.unread: float | None = None
        self.asked = False
        self.opening: asyncio.Task[None] | None = None

    def data_received(self, data: bytes) -> None:
        if self.owing is None and self.conn.their_state is h11.IDLE:
            self.owing = time.monotonic()
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._look()

    @property
    def answering(self) -> bool:
        """Whether a whole request was read and is being answered, and what is ready of the answer was taken."""
        if self.transport is None or self.transport.get_write_buffer_size():
            return False
        return self.cycle is not None and not self.cycle.response_complete and self.owing is None

    def late(self, now: float, limits: DoorLimits) -> bool:
        if self.transport is None or not self.transport.get_write_buffer_size():
            self.unread = None
        elif self.unread is None:
            self.unread = now
        owes_too_long = self.owing is not None and now - self.owing > limits.request_seconds
        return owes_too_long or (self.unread is not None and now - self.unread > limits.unread_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        self.beside.discard(self)
        super().connection_lost(exc)

    def drop(self) -> None:
        """Ends it at once, without an answer."""
        self.beside.discard(self)
        if self.transport is not None:
            self.transport.abort()
        elif self.opening is not None:
            self.opening.cancel()

    def _look(self) -> None:
        if self.conn.their_state is h11.IDLE:
            if not self.conn.trailing_data[0]:
                self.owing = self.owing if not self.asked else None
            elif self.owing is None:
                self.owing = time.monotonic()
        elif self.conn.their_state is not h11.SEND_BODY:
            self.owing, self.asked = None, True
        elif self.owing is None:
            self.owing = time.monotonic()


class Server(uvicorn.Server):
    """Uvicorn behind a door."""

    def __init__(self, config: uvicorn.Config, limits: DoorLimits) -> None:
        super().__init__(config)
        self._limits = limits
        #: The open connections by the address they come from.
        self._open: dict[str, set[Connection]] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._sparing = SparingLog()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Opens the door instead of letting Uvicorn listen."""
        await super().startup(sockets=[])
        for name in _LOGGERS:
            logging.getLogger(name).addFilter(self._sparing)
        work = [self._sweep(), *(self._accept(listening) for listening in sockets or ())]
        self._tasks = [asyncio.get_running_loop().create_task(each) for each in work]
        for task in self._tasks:
            task.add_done_callback(self._ended)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Closes the door, then lets Uvicorn finish."""
        for task in self._tasks:
            task.cancel()
        for connection in self._all():
            if connection.transport is None:
                connection.drop()
        await super().shutdown(sockets)
        for name in _LOGGERS:
            logging.getLogger(name).removeFilter(self._sparing)

    def _ended(self, task: asyncio.Task[None]) -> None:
        """A door that fails ends the server: it would look as if it were there."""
        if not task.cancelled() and task.exception() is not None:
            _log.error("the door failed", exc_info=task.exception())
            self.should_exit = True

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        listening.setblocking(False)
        for number in itertools.count():
            # Connections that wait are taken without a pause. A few at a time: each may begin, and its request be read,
            # long before as many others have come as make it go.
            if number % max(1, self._limits.per_address // 16) == 0:
                await asyncio.sleep(0)
            try:
                taken, place = await loop.sock_accept(listening)
            except OSError as error:
                # No file handles or no memory: whoever only waits makes room.
                _log.warning("a connection cannot be accepted (%s)", error.strerror or error)
                _make_room(self._all())
                await asyncio.sleep(0.05)
                continue
            beside = self._open.setdefault(_network(str(place[0])), set())
            if not self._admits(beside):
                taken.close()
                _log.warning("too many connections; further ones are closed")
                continue
            states = {"server_state": self.server_state, "app_state": self.lifespan.state}
            connection = Connection(beside, config=self.config, **states)
            connection.opening = loop.create_task(self._begin(connection, taken))
            connection.opening.add_done_callback(functools.partial(_begun, connection, taken))

    async def _begin(self, connection: Connection, taken: socket.socket) -> None:
        encrypted = self.config.ssl
        seconds = self._limits.handshake_seconds if encrypted else None
        # A client that speaks no TLS, or goes away, is nothing to log.
        with contextlib.suppress(OSError):
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: connection, taken, ssl=encrypted, ssl_handshake_timeout=seconds
            )

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(_SWEEP_SECONDS)
            now = time.monotonic()
            for connection in self._all():
                if connection.late(now, self._limits):
                    connection.drop()
            for network in [network for network, beside in self._open.items() if not beside]:
                del self._open[network]

    def _admits(self, beside: set[Connection]) -> bool:
        """Whether there is room for one more, if need be after the longest waiting one has gone."""
        if len(beside) >= self._limits.per_address:
            return _make_room(beside)
        if sum(map(len, self._open.values())) >= self._limits.connections:
            return _make_room(max(self._open.values(), key=len))
        return True

    def _all(self) -> list[Connection]:
        return [connection for beside in self._open.values() for connection in beside]


def _begun(connection: Connection, taken: socket.socket, _: asyncio.Task[None]) -> None:
    """Closes what did not become a connection, also where it was dropped before its task began."""
    if connection.transport is None:
        taken.close()
        connection.beside.discard(connection)


def _make_room(among: Collection[Connection]) -> bool:
    """Ends one connection whose client keeps us waiting: rather one that never asked, rather an old one."""
    waiting = [one for one in among if not one.answering]
    if not waiting:
        return False
    min(waiting, key=lambda one: (one.asked, one.owing or one.began)).drop()
    return True


def _network(address: str) -> str:
    """What counts as one address: of IPv6 the /64 that one site has."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped is not None:
            return str(found.ipv4_mapped)
        return str(ipaddress.ip_network((found, 64), strict=False))
    return str(found)
