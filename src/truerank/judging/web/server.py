"""Serving the pages: where, for whom, and until when."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final
from urllib.parse import urlencode

from truerank.core.plain import picked
from truerank.core.result import Result
from truerank.errors import InputError, MissingExtraError, OptionError
from truerank.judging.samples import Proposer
from truerank.judging.store import Store
from truerank.judging.web.access import Access, fresh_token, host_of, is_loopback, token_hash
from truerank.options import Flag, Names, Options, Range

if TYPE_CHECKING:
    from truerank.judging.web.app import Server

_BACKLOG: Final = 4096
_KEEP_ALIVE_SECONDS: Final = 30
#: How long requests that are being answered may take after Ctrl-C.
_LAST_SECONDS: Final = 3


@dataclass(frozen=True, eq=False, repr=False)
class Desk(Result, shown_in="truerank.judging.report"):
    """A store that is ready to be served: the port is taken, nobody is answered yet.

    `names` may enter; `new_tokens` were made just now, by name, and are kept nowhere: show them once; `tokens` says
    whether a name needs its token, `local` whether only this machine can reach it, or a proxy on it.
    """

    store: Store
    addresses: tuple[str, ...]
    names: tuple[str, ...]
    new_tokens: tuple[tuple[str, str], ...]
    tokens: bool
    encrypted: bool
    local: bool
    _listening: socket.socket
    _server: Server

    @property
    def links(self) -> tuple[tuple[str, str], ...]:
        """For each new token its name and the address that takes its owner in with one click.

        The token stands behind a #: browsers do not send that part, so that no log of a proxy has it.
        """
        start = self.addresses[min(1, len(self.addresses) - 1)]
        return tuple(
            (name, f"{start}enter#{urlencode({'name': name, 'token': token})}") for name, token in self.new_tokens
        )

    def json(self) -> dict[str, Any]:
        return {
            **picked(self, "store=store.path, addresses"),
            "links": dict(self.links),
            **picked(self, "annotators=names, tokens_required=tokens"),
            "new_tokens": dict(self.new_tokens),
            "encrypted": self.encrypted,
        }

    def run(self) -> None:
        """Answers until Ctrl-C or SIGTERM; then closes the store."""
        with self._listening, self.store, contextlib.suppress(KeyboardInterrupt):
            try:
                asyncio.get_running_loop()
            except RuntimeError:
                self._server.run(sockets=[self._listening])
                return
            # A notebook has a loop at work: the server gets a thread with its own.
            serving = threading.Thread(target=self._server.run, kwargs={"sockets": [self._listening]})
            serving.start()
            try:
                serving.join()
            finally:
                self.stop()
                serving.join()

    def go_on(self) -> str:
        """Serves, after the addresses were printed."""
        self.run()
        return "ended; every confirmed label is kept"

    def stop(self) -> None:
        self._server.should_exit = True

    def close(self) -> None:
        """Gives port and store back without serving."""
        self._listening.close()
        self.store.close()


@dataclass(frozen=True)
class Serving(Options):
    """Where the pages are served, and for whom.

    Attributes:
        host: the address to listen at; 0.0.0.0 for all of this machine's.
        port: the port; 0 for a free one.
        annotators: who may enter; by default everybody in the store, models apart.
        adjudicators: further people who settle disagreements; the store learns about those it does not know.
        new_tokens: who gets a new access token; their old one ends.
        no_tokens: a name is enough, for everybody who uses this machine; only on an address of this machine.
        allow_hosts: host names by which a proxy or a DNS entry reaches this server.
        certificate: a TLS certificate chain in PEM.
        key: its private key in PEM.
    """

    host: str = "127.0.0.1"
    port: Annotated[int, Range(at_least=0, at_most=65535)] = 8000
    annotators: Names = ()
    adjudicators: Names = ()
    new_tokens: Names = ()
    no_tokens: bool = False
    allow_hosts: Annotated[tuple[str, ...], Flag(metavar="NAME", reads=list[str], commas=True)] = ()
    certificate: Annotated[str | Path | None, Flag(metavar="FILE", reads=Path)] = None
    key: Annotated[str | Path | None, Flag(metavar="FILE", reads=Path)] = None

    def __post_init__(self) -> None:
        """A certificate needs its key, and whoever comes from elsewhere a token."""
        super().__post_init__()
        if (self.certificate is None) != (self.key is None):
            raise OptionError("certificate", "a certificate and its key belong together", "give both")
        if self.no_tokens and (self.allow_hosts or self.new_tokens):
            fault = "people who come through a proxy need a token" if self.allow_hosts else "no use for new tokens"
            raise OptionError("no_tokens", fault, "leave `no_tokens` out")
        for name in self.allow_hosts:
            if not host_of(name) or name.rpartition(":")[2].isdigit():
                raise OptionError(
                    "allow_hosts", f"'{name}' is not a name of a host", "write it without scheme and port"
                )


def open_desk(
    store: str | Path, serving: Serving = Serving(), *, proposer: Proposer | None = None, batch: int = 1
) -> Desk:
    """Opens a store for judging in the browser and takes the port.

    Everybody needs an access token: one is made for each who has none yet, and only its hash is kept. On an address of
    this machine, `no_tokens` makes a name enough.
    """
    try:
        import uvicorn

        from truerank.judging.web import app as application
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("truerank"):
            raise
        raise MissingExtraError("judging in the browser", "web") from error
    listening = _listen(serving.host, serving.port)
    opened = None
    try:
        # By the address that was taken, not by its name: a name can mean any address.
        address, taken = listening.getsockname()[:2]
        if serving.no_tokens and not is_loopback(address):
            raise OptionError("no_tokens", f"others reach {address}: they need a token", "leave `no_tokens` out")
        opened = Store.open(store)
        names = _names(opened, serving)
        needed = not serving.no_tokens
        made = _make_tokens(opened, names, serving.new_tokens, needed)
        hosts = _hosts(serving.host, is_loopback(address), serving.allow_hosts)
        access = Access(frozenset(names), needed, hosts, f"truerank-{taken}")
        app = application.create_app(opened, access, proposer, batch)
        config = uvicorn.Config(
            app, lifespan="off", http="h11", ws="none", access_log=False, server_header=False, log_level="warning",
            timeout_keep_alive=_KEEP_ALIVE_SECONDS, timeout_graceful_shutdown=_LAST_SECONDS,
            # Only a proxy on this machine is believed, and only where one is announced.
            proxy_headers=bool(serving.allow_hosts), forwarded_allow_ips="127.0.0.1,::1",
            ssl_certfile=serving.certificate, ssl_keyfile=serving.key,
        )  # fmt: skip
        try:
            # Read now, so that a fault in the certificate is reported before anything is printed.
            config.load()
        except OSError as error:
            fault = f"certificate or key cannot be used ({error.strerror or error})"
            raise InputError(fault, "give both as PEM files", where=serving.certificate) from error
        encrypted = serving.certificate is not None
        scheme = "https" if encrypted else "http"
        name = _reached_as(serving.host)
        own = f"[{name}]" if ":" in name else name
        addresses = (f"{scheme}://{own}:{taken}/", *(f"https://{name}/" for name in serving.allow_hosts))
        server = application.Server(config, application.limits_here())
        local = is_loopback(address)
        return Desk(opened, addresses, names, made, needed, encrypted, local, listening, server)
    except BaseException:
        listening.close()
        if opened is not None:
            opened.close()
        raise


def _names(store: Store, serving: Serving) -> tuple[str, ...]:
    """Who may enter: never a model."""
    for name in serving.adjudicators:
        store.add_annotator(name, "adjudicator")
    for name in serving.annotators:
        if store.annotator(name).role == "model":
            raise InputError(f"'{name}' is a model", "name a person", where=store.path)
    everybody = tuple(who.name for who in store.annotators() if who.role != "model")
    if not everybody:
        remedy = "name annotators in 'truerank judge new', or an adjudicator here"
        raise InputError("nobody judges here", remedy, where=store.path)
    chosen = {*serving.annotators, *serving.adjudicators} if serving.annotators else set(everybody)
    return tuple(name for name in everybody if name in chosen)


def _make_tokens(
    store: Store, names: Sequence[str], wanted: Sequence[str], needed: bool
) -> tuple[tuple[str, str], ...]:
    for name in wanted:
        if store.annotator(name).role == "model":
            raise InputError(f"'{name}' is a model", "models need no access token", where=store.path)
    without = [name for name in names if needed and not store.has_token(name)]
    made = [(name, fresh_token()) for name in dict.fromkeys((*wanted, *without))]
    for name, token in made:
        store.set_token(name, token_hash(token))
    return tuple(made)


def _hosts(host: str, loopback: bool, allowed: Sequence[str]) -> frozenset[str] | None:
    """The names that a Host header may carry; any for a server that others reach, where none are named."""
    if not loopback and not allowed:
        return None
    own = {"localhost", "127.0.0.1", "::1", _reached_as(host).lower()}
    return frozenset({*own, *(name.lower().strip("[]") for name in allowed)})


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(
            host.strip("[]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (OSError, UnicodeError, OverflowError) as error:
        raise OptionError("host", f"'{host}:{port}' is not an address", "give an address of this machine") from error
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(place)
        # Two sockets can be bound to one port here; only listening tells that it is taken.
        listening.listen(_BACKLOG)
    except (OSError, OverflowError) as error:
        listening.close()
        why = (error.strerror or str(error)).lower() if isinstance(error, OSError) else str(error)
        fault, remedy = (
            f"port {port} of {host} cannot be taken ({why})",
            "choose another with `port`, or 0 for a free one",
        )
        raise OptionError("port", fault, remedy) from error
    return listening


def _reached_as(host: str) -> str:
    """What others call an address that was listened at: for all addresses, the machine's name."""
    bare = host.strip("[]")
    return socket.gethostname() if bare in ("0.0.0.0", "::", "") else bare
