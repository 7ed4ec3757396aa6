"""URLs that name the same page, written in one form."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

from truerank.options import Options

#: Parameters that say where a visitor came from, not what is shown; a name that ends in "*" stands for all so begun.
TRACKING: Final = (
    "utm_*", "gclid", "gclsrc", "dclid", "gbraid", "wbraid", "fbclid", "msclkid", "yclid", "twclid", "ttclid", "igshid",
    "mc_cid", "mc_eid", "_ga", "_gl", "_hsenc", "_hsmi", "mkt_tok", "vero_id", "wickedid", "oly_anon_id", "oly_enc_id",
    "s_cid", "icid", "ncid", "ref_src", "cmpid", "spm",
)  # fmt: skip
_TRACKING: Final = re.compile(
    "|".join(f"{re.escape(name.removesuffix('*'))}{'.*' if name.endswith('*') else ''}" for name in TRACKING),
    re.IGNORECASE,
)
#: What needs nothing but that its scheme, `www.` and last slash are looked at: most URLs of a crawl.
_PLAIN: Final = re.compile(
    r"(https?)://([a-z0-9][a-z0-9-]*(?:\.[a-z0-9-]+)*\.[a-z]+)((?:/[A-Za-z0-9_~-][\w~.-]*)*/?)", re.ASCII
)
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(?!\d+(?:[/?#]|$))")
_HOST: Final = re.compile(r"\[[0-9a-fA-F:.]+\]|[^\s/?#@:\[\]<>\"\\^`{|}]+")
_ESCAPE: Final = re.compile("%([0-9A-Fa-f]{2})")
_STRIPPED: Final = re.compile("[\t\r\n]")
_UNRESERVED: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
#: Characters that are in a URL as they are; everything else is written as escapes of its UTF-8 bytes.
_LEGAL: Final = re.compile(r"[^A-Za-z0-9\-._~:/?#\[\]@!$&'()*+,;=%]+")
_LONE_PERCENT: Final = re.compile("%(?![0-9A-Fa-f]{2})")
_PORTS: Final = {"http": "80", "https": "443", "ftp": "21"}


@dataclass(frozen=True)
class UrlRules(Options):
    """Which differences between two URLs count.

    Always without meaning: the case of scheme and host, a final dot of the host, Unicode or punycode in it, user names,
    the port that the scheme stands for anyway, `.` and `..` in the path, the case of escapes and escapes that are not
    needed, fragments, an empty query.

    Attributes:
        keep_scheme: treat http and https as different.
        drop_www: ignore a leading www. of the host.
        keep_slash: keep a slash at the end of the path.
        drop_tracking: ignore parameters such as utm_source and gclid. In Python see `TRACKING`.
        sort_parameters: ignore the order of parameters.
    """

    keep_scheme: bool = False
    drop_www: bool = False
    keep_slash: bool = False
    drop_tracking: bool = False
    sort_parameters: bool = False

    def json(self) -> dict[str, bool]:
        """The rules by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


_DEFAULT: Final = UrlRules()


def normalise_url(url: str, rules: UrlRules = _DEFAULT) -> str:
    """The form that all URLs of a page share.

    Source:
        RFC 3986, section 6.2; hosts by IDNA 2003, which Python has.
    """
    if plain := _PLAIN.fullmatch(url):
        scheme, host, path = plain.groups()
        if host.startswith("xn--") or ".xn--" in host:
            host = _host(host)
        return _assembled(scheme, host, path, "", rules)
    text = _STRIPPED.sub("", url.strip())
    parts = _split(text)
    if parts is None:
        return ""
    scheme = parts.scheme.lower()
    host = _authority(scheme, parts.netloc)
    if not host:
        return ""
    return _assembled(scheme, host, _path(parts.path), _query(parts.query, rules), rules)


def _assembled(scheme: str, host: str, path: str, query: str, rules: UrlRules) -> str:
    if rules.drop_www and host.startswith("www.") and host.count(".") > 1:
        host = host[4:]
    if not rules.keep_slash:
        path = path.rstrip("/")
    elif not path:
        path = "/"
    start = f"{scheme}://" if rules.keep_scheme or scheme not in ("http", "https") else ""
    return f"{start}{host}{path}?{query}" if query else f"{start}{host}{path}"


def _split(text: str) -> SplitResult | None:
    if text.startswith("//"):
        text = f"http:{text}"
    elif (scheme := _SCHEME.match(text)) is None:
        text = f"http://{text}"
    elif scheme[1].lower() in _PORTS:
        # `http:/host` and `http:\\host` are what browsers make of them.
        rest = text[scheme.end() :].replace("\\", "/")
        text = f"{scheme[1]}://{rest.lstrip('/')}"
    try:
        parts = urlsplit(text)
    except ValueError:
        return None
    return parts if parts.netloc else None


def _authority(scheme: str, netloc: str) -> str:
    place = netloc.rpartition("@")[2]
    found = _HOST.match(place)
    if found is None:
        return ""
    host, rest = _host(found[0]), place[found.end() :]
    # Escapes and wide forms can stand for what no host has, such as a brace or a slash.
    if "%" in host or not _HOST.fullmatch(host) or (rest and not re.fullmatch(r":\d{0,5}", rest)):
        return ""
    if "." not in host and not host.startswith("[") and host != "localhost":
        return ""
    port = rest[1:].lstrip("0")
    return host if not port or port == _PORTS.get(scheme) or (scheme == "http" and port == "443") else f"{host}:{port}"


def _host(host: str) -> str:
    host = host.lower().rstrip(".")
    if "%" in host:
        host = unquote(host).lower()
    if not host.isascii():
        try:
            host = host.encode("idna").decode("ascii").rstrip(".")
        except UnicodeError:
            return host
    return host


def _path(path: str) -> str:
    return _without_dots(_escaped(path))


def _query(query: str, rules: UrlRules) -> str:
    if not query:
        return ""
    parts = [part for part in _escaped(query).split("&") if part]
    if rules.drop_tracking:
        parts = [part for part in parts if not _TRACKING.fullmatch(part.partition("=")[0])]
    return "&".join(sorted(parts) if rules.sort_parameters else parts)


def _escaped(text: str) -> str:
    """Escapes in capitals where they are needed, and nowhere else."""
    if not text:
        return text
    text = _LONE_PERCENT.sub("%25", text)
    text = _LEGAL.sub(lambda found: "".join(f"%{byte:02X}" for byte in found[0].encode("utf-8", "replace")), text)
    return _ESCAPE.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    character = chr(int(found[1], 16))
    return character if character in _UNRESERVED else f"%{found[1].upper()}"


def _without_dots(path: str) -> str:
    if "/." not in path:
        return path
    kept: list[str] = []
    segments = path.split("/")[1:]
    for segment in segments:
        if segment == "..":
            del kept[-1:]
        elif segment != ".":
            kept.append(segment)
    closed = segments[-1] in (".", "..")
    return "".join(f"/{segment}" for segment in kept) + ("/" if closed else "")
