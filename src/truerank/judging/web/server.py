"""Serving the pages: where, for whom, and until when."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from truerank.errors import InputError, MissingExtraError, OptionError
from truerank.judging.proposers import Proposer
from truerank.judging.store import Store
from truerank.judging.web.access import Access, fresh_token, is_loopback, token_hash
from truerank.options import Flag, Names, Options, Range
from truerank.reports.results import Result

if TYPE_CHECKING:
    import uvicorn

__all__ = ["Desk", "Serving", "open_desk"]

_BACKLOG: Final = 256
_KEEP_ALIVE_SECONDS: Final = 30
#: How long requests that are being answered may take after Ctrl-C.
_LAST_SECONDS: Final = 3


@dataclass(frozen=True, repr=False)
class Desk(Result, shown_in="truerank.judging.report"):
    """A store that is ready to be served: the port is taken, nobody is answered yet.

    Attributes:
        store: the open store.
        addresses: where browsers find it.
        names: who may enter.
        new_tokens: access tokens that were made just now, by name. They are kept nowhere: show them once.
        tokens: whether a name needs its token.
        encrypted: whether it is served over TLS.
    """

    store: Store
    addresses: tuple[str, ...]
    names: tuple[str, ...]
    new_tokens: tuple[tuple[str, str], ...]
    tokens: bool
    encrypted: bool
    _listening: socket.socket
    _server: uvicorn.Server

    def json(self) -> dict[str, Any]:
        """The same as a JSON object."""
        return {
            "store": str(self.store.path),
            "addresses": list(self.addresses),
            "annotators": list(self.names),
            "tokens_required": self.tokens,
            "new_tokens": dict(self.new_tokens),
            "encrypted": self.encrypted,
        }

    def run(self) -> None:
        """Answers until Ctrl-C or SIGTERM; then closes the store."""
        with self._listening, self.store, contextlib.suppress(KeyboardInterrupt):
            self._server.run(sockets=[self._listening])

    def go_on(self) -> str:
        """Serves, after the addresses were printed."""
        self.run()
        return "ended; every confirmed label is kept"

    def stop(self) -> None:
        """Ends `run`, from another thread."""
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
        tokens: access tokens are asked for on this machine too: it is shared, or behind a proxy.
        allow_hosts: host names by which a proxy or a DNS entry reaches this server.
        certificate: a TLS certificate chain in PEM.
        key: its private key in PEM.
    """

    host: str = "127.0.0.1"
    port: Annotated[int, Range(at_least=0, at_most=65535)] = 8000
    annotators: Names = ()
    adjudicators: Names = ()
    new_tokens: Names = ()
    tokens: bool = False
    allow_hosts: Annotated[tuple[str, ...], Flag(metavar="NAME", reads=list[str], commas=True)] = ()
    certificate: Annotated[str | Path | None, Flag(metavar="FILE", reads=Path)] = None
    key: Annotated[str | Path | None, Flag(metavar="FILE", reads=Path)] = None

    def __post_init__(self) -> None:
        """A certificate needs its key."""
        super().__post_init__()
        if (self.certificate is None) != (self.key is None):
            raise OptionError("certificate", "a certificate and its key belong together", "give both")


def open_desk(
    store: str | Path, serving: Serving = Serving(), *, proposer: Proposer | None = None, batch: int = 1
) -> Desk:
    """Opens a store for judging in the browser and takes the port.

    On an address of this machine only, a name is enough. On any other, everybody needs an access token: one is made
    for each who has none yet, and only its hash is kept.

    Args:
        store: the store.
        serving: where, and for whom.
        proposer: feeds the store while people judge: an audit that learns from what they say.
        batch: how many items it is asked for at a time.

    Returns:
        The desk; `run` serves it.

    Raises:
        InputError: no store, or one of a newer version; nobody of a name; the port is in use or the address is not
            this machine's; no such certificate.
        MissingExtraError: Starlette or Uvicorn is not installed.
    """
    uvicorn, create_app = _web()
    listening = _listen(serving.host, serving.port)
    opened = None
    try:
        opened = Store.open(store)
        names = _names(opened, serving.annotators, serving.adjudicators)
        # By the address that was taken, not by its name: a name can mean any address.
        address, taken = listening.getsockname()[:2]
        needed = serving.tokens or not is_loopback(address)
        made = _make_tokens(opened, names, serving.new_tokens, needed)
        hosts = _hosts(serving.host, needed, serving.allow_hosts)
        app = create_app(opened, Access(frozenset(names), needed, hosts, f"truerank-{taken}"), proposer, batch)
        config = uvicorn.Config(
            app, lifespan="off", access_log=False, server_header=False, log_level="warning",
            timeout_keep_alive=_KEEP_ALIVE_SECONDS, timeout_graceful_shutdown=_LAST_SECONDS,
            ssl_certfile=serving.certificate, ssl_keyfile=serving.key,
        )  # fmt: skip
        _load(config, serving.certificate)
        encrypted = serving.certificate is not None
        addresses = _addresses(serving.host, taken, encrypted, serving.allow_hosts)
        return Desk(opened, addresses, names, made, needed, encrypted, listening, uvicorn.Server(config))
    except BaseException:
        listening.close()
        if opened is not None:
            opened.close()
        raise


def _web() -> tuple[Any, Any]:
    try:
        import uvicorn

        from truerank.judging.web.app import create_app
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("truerank"):
            raise
        raise MissingExtraError("judging in the browser", "web") from error
    return uvicorn, create_app


def _names(store: Store, annotators: Sequence[str], adjudicators: Sequence[str]) -> tuple[str, ...]:
    """Who may enter: never a model."""
    for name in adjudicators:
        store.add_annotator(name, "adjudicator")
    for name in annotators:
        if store.annotator(name).role == "model":
            raise InputError(f"'{name}' is a model", "name a person", where=store.path)
    everybody = tuple(who.name for who in store.annotators() if who.role != "model")
    if not everybody:
        raise InputError(
            "nobody judges here", "name annotators in 'truerank judge new', or an adjudicator here", where=store.path
        )
    chosen = {*annotators, *adjudicators} if annotators else set(everybody)
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


def _hosts(host: str, tokens: bool, allowed: Sequence[str]) -> frozenset[str] | None:
    """The names that a Host header may carry. With tokens any may, unless some are named: a name opens nothing then."""
    if tokens and not allowed:
        return None
    own = {"localhost", "127.0.0.1", "::1", _reached_as(host).lower()}
    return frozenset({*own, *(name.lower() for name in allowed)})


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(
            host.strip("[]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (OSError, UnicodeError, OverflowError) as error:
        raise OptionError("host", f"'{host}:{port}' is no address", "give an address of this machine") from error
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(place)
        # Two sockets can be bound to one port here; only listening tells that it is taken.
        listening.listen(_BACKLOG)
    except (OSError, OverflowError) as error:
        listening.close()
        raise OptionError(
            "port",
            f"port {port} of {host} cannot be taken ({_why(error)})",
            "choose another with `port`, or 0 for a free one",
        ) from error
    return listening


def _why(error: Exception) -> str:
    return (error.strerror or str(error)).lower() if isinstance(error, OSError) else str(error)


def _load(config: Any, certificate: str | Path | None) -> None:
    """Reads the certificate now, so that a fault in it is told before anything is printed."""
    try:
        config.load()
    except OSError as error:
        fault = f"certificate or key cannot be used ({error.strerror or error})"
        raise InputError(fault, "give both as PEM files", where=certificate) from error


def _addresses(host: str, port: int, encrypted: bool, allowed: Sequence[str]) -> tuple[str, ...]:
    scheme = "https" if encrypted else "http"
    name = _reached_as(host)
    own = f"[{name}]" if ":" in name else name
    return (f"{scheme}://{own}:{port}/", *(f"https://{name}/" for name in allowed))


def _reached_as(host: str) -> str:
    """What others call an address that was listened at: for all addresses, the machine's name."""
    bare = host.strip("[]")
    return socket.gethostname() if bare in ("0.0.0.0", "::", "") else bare
