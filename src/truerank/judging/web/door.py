"""The door of the server: how many connections there may be, how long they may wait, and what is logged of them.

Uvicorn accepts every connection and waits without end for the first request. Here connections are counted in all and
by address before anything is read, TLS included, and whoever owes a request loses the connection after a while. Where
there is no room left, the connection goes that has waited longest without a request: browsers send theirs at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import ipaddress
import itertools
import logging
import socket
import time
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

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
    """What one client, and all of them, may take.

    Attributes:
        connections: at the same time, in all.
        per_address: at the same time from one address (IPv6: from one /64 network).
        request_seconds: from the connection, or the first byte of a further request, to the last byte of its body.
        handshake_seconds: for the TLS handshake.
        unread_seconds: for taking an answer.
    """

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
    """Lets a few lines of a kind pass in a minute, and counts the others.

    Args:
        most: lines of a kind.
        seconds: in so many seconds.
    """

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
        """Takes what came."""
        if self.owing is None and self.conn.their_state is h11.IDLE:
            self.owing = time.monotonic()
        super().data_received(data)
        self._look()

    def on_response_complete(self) -> None:
        """Goes on to the next request."""
        super().on_response_complete()
        self._look()

    @property
    def answering(self) -> bool:
        """Whether a whole request was read and is being answered, and what is ready of the answer was taken."""
        if self.transport is None or self.transport.get_write_buffer_size():
            return False
        return self.cycle is not None and not self.cycle.response_complete and self.owing is None

    def late(self, now: float, limits: DoorLimits) -> bool:
        """Whether the client took longer than it may."""
        if self.transport is None or not self.transport.get_write_buffer_size():
            self.unread = None
        elif self.unread is None:
            self.unread = now
        owes_too_long = self.owing is not None and now - self.owing > limits.request_seconds
        return owes_too_long or (self.unread is not None and now - self.unread > limits.unread_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        """Leaves."""
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
    """Uvicorn behind a door.

    Args:
        config: of Uvicorn.
        limits: of the door.
    """

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
            connection = Connection(
                beside, config=self.config, server_state=self.server_state, app_state=self.lifespan.state
            )
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
