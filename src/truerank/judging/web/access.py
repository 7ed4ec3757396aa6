"""Who may do what: names, access tokens, cookies, forms that are our own, and hosts that we answer for."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple
from urllib.parse import quote, unquote

from truerank.judging.items import Annotator
from truerank.judging.store import Store

_LONGEST_COOKIE: Final = 2000
#: A name of letters, digits, dots and hyphens (IPv4 included), or an IPv6 address in brackets; then perhaps a port.
_HOST: Final = re.compile(
    r"(?:(?P<name>[A-Za-z0-9](?:[A-Za-z0-9._-]{0,252}[A-Za-z0-9])?)|\[(?P<inside>[0-9A-Fa-f:.]{2,45})\])"
    r"(?::(?P<port>[0-9]{1,5}))?",
    re.ASCII,
)


class Visitor(NamedTuple):
    """Who asks: `annotator` is None before they have said who they are; `secret` is known to their browser only."""

    annotator: Annotator | None
    secret: str

    @property
    def form_key(self) -> str:
        """What every form of theirs carries, and what no other site can know."""
        return hmac.new(self.secret.encode(), b"truerank form", hashlib.sha256).hexdigest()

    def owns(self, form_key: str) -> bool:
        """Whether a form is theirs; compared in constant time."""
        return bool(self.secret) and hmac.compare_digest(self.form_key.encode(), form_key.encode())


@dataclass(frozen=True)
class Access:
    """The rules of one server: who may enter, and whether a name needs its access token.

    `hosts` are names under which the server may be asked, in lower case and without ports; None for any. They keep
    pages of other sites out, whose names lead to this machine (DNS rebinding). The cookie's name differs by port,
    because browsers share cookies between ports.
    """

    names: frozenset[str]
    tokens: bool
    hosts: frozenset[str] | None
    cookie: str = "truerank"

    def visitor(self, store: Store, cookies: Mapping[str, str]) -> Visitor:
        """Who the cookie says it is, if that is so."""
        value = cookies.get(self.cookie, "")
        quoted, _, secret = value.partition(":")
        name = unquote(quoted, errors="replace")
        if not secret or len(value) > _LONGEST_COOKIE:
            return Visitor(None, "")
        if name not in self.names:
            return Visitor(None, secret)
        if self.tokens and not store.check_token(name, token_hash(secret)):
            return Visitor(None, secret)
        return Visitor(store.annotator(name), secret)

    def admits(self, store: Store, name: str, token: str) -> bool:
        """Whether somebody may enter under a name with what they typed as their token."""
        known = name in self.names
        if not self.tokens:
            return known
        return store.check_token(name, token_hash(token.strip())) and known

    def cookie_value(self, name: str, token: str) -> str:
        """The cookie of somebody who entered: the token itself, so that a new token ends all old visits."""
        return f"{quote(name, safe='')}:{token.strip() if self.tokens else fresh_token()}"

    def answers_for(self, host: str) -> bool:
        """Whether a Host header is well-formed and names this server."""
        name = host_of(host)
        return bool(name) and (self.hosts is None or name in self.hosts)


def token_hash(token: str) -> str:
    """What is kept of an access token. Its 192 random bits need no salt and no slow hash."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


def fresh_token() -> str:
    """A new access token of 192 random bits, in letters that survive copying."""
    return secrets.token_urlsafe(24)


def host_of(header: str) -> str:
    """The host of a Host header without its port, in lower case; empty if it is malformed.

    Source:
        RFC 9112, section 3.2; RFC 3986, section 3.2.2, without percent-encoded names.
    """
    found = _HOST.fullmatch(header)
    if found is None or int(found["port"] or 0) > 65535:
        return ""
    if found["inside"] is None:
        return found["name"].lower()
    try:
        return str(ipaddress.IPv6Address(found["inside"]))
    except ValueError:
        return ""


def is_loopback(address: str) -> bool:
    """Whether an address, which is not a name, means this machine only."""
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False
