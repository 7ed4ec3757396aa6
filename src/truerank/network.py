"""Requests over HTTP that end: after a time, and after so many bytes, whatever the other side does.

httpx2 bounds the silence between two bytes. Here a deadline holds for the whole attempt, from the name's resolution to
the last byte of the body, also for a server that sends one byte a second. Nothing follows a redirect on its own.
"""

from __future__ import annotations

import asyncio
import atexit
import concurrent.futures
import email.utils
import functools
import http.cookiejar
import ipaddress
import math
import re
import ssl
import threading
import time
import zlib
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlsplit

from truerank.errors import InputError

if TYPE_CHECKING:
    import httpx2

_PORTS: Final = {"http": 80, "https": 443}
#: Several encodings one in the other only waste time.
_MOST_CODINGS: Final = 2
_PIECE: Final = 1 << 16
_STARTING: Final = threading.Lock()


class NetworkError(Exception):
    """No answer. The text says why, in a few words; asking again may help."""


class SilentError(NetworkError):
    """Nothing came for too long."""


class LateAnswerError(NetworkError):
    """Something came all the time, but the answer was not complete in time."""


class BrokenAnswerError(NetworkError):
    """An answer began, but was cut off, or is not HTTP."""


class LargeAnswerError(NetworkError):
    """The answer is larger than allowed; asking again does not help."""


class AddressError(NetworkError):
    """What was asked for is not an address that can be asked; asking again does not help."""


class HttpAnswer(NamedTuple):
    """A complete answer: status, headers as they came, and the body without its content encoding."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def header(self, name: str) -> str | None:
        """The first value of a header."""
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)


class _Asked(NamedTuple):
    """One request."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes | None


class HttpClient:
    """Asks over HTTP; may be used by many threads at once. It keeps no cookies and follows no redirects.

    Args:
        headers: sent with every request.
        silence: seconds without a further byte after which an attempt ends.
        proxies: the proxies of the environment (`HTTPS_PROXY`) are used.
        secret: a key among the headers; nothing that a server sends holds it when it is handed on.
    """

    def __init__(
        self, *, headers: Mapping[str, str] | None = None, silence: float = 60.0, proxies: bool = True, secret: str = ""
    ) -> None:
        import httpx2

        self._secret = _forms(secret) if secret else None
        self._headers = {"Accept-Encoding": "gzip, deflate", **(headers or {})}
        self._silence = silence
        try:
            self._client = httpx2.AsyncClient(
                timeout=silence, follow_redirects=False, trust_env=proxies,
                limits=httpx2.Limits(max_connections=None, max_keepalive_connections=20),
            )  # fmt: skip
        except (ValueError, ImportError, OSError) as error:
            raise InputError(
                f"a proxy or certificates that cannot be used ({self._words(error)})",
                "correct HTTP_PROXY, HTTPS_PROXY, ALL_PROXY or SSL_CERT_FILE", where="environment",
            ) from error  # fmt: skip
        # Each request says all that it sends.
        self._client.headers.clear()
        self._client.cookies.jar.set_policy(http.cookiejar.DefaultCookiePolicy(allowed_domains=()))
        self._lock = threading.Lock()
        self._running: set[concurrent.futures.Future[HttpAnswer]] = set()

    def ask(
        self, method: str, url: str, *, seconds: float, largest: int, headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
    ) -> HttpAnswer:  # fmt: skip
        """One attempt.

        Args:
            seconds: that the attempt may take, from the resolution of the name to the end of the body.
            largest: bytes of the body, compressed or not.
        """
        asked = _Asked(method, url, {**self._headers, **(headers or {})}, body)
        # Begun under the lock, so that `stop` sees every attempt that a server can know of.
        with self._lock:
            attempt = asyncio.run_coroutine_threadsafe(self._attempt(asked, seconds, largest), _loop())
            self._running.add(attempt)
        try:
            return attempt.result()
        except concurrent.futures.CancelledError as error:
            raise NetworkError("stopped") from error
        finally:
            # After Ctrl-C in this thread the attempt would go on in the other.
            attempt.cancel()
            with self._lock:
                self._running.discard(attempt)

    def stop(self) -> None:
        """Ends what is being asked; those who asked get a `NetworkError`."""
        with self._lock:
            running = list(self._running)
        for attempt in running:
            attempt.cancel()

    def close(self) -> None:
        """Ends what is being asked and closes the connections."""
        self.stop()
        asyncio.run_coroutine_threadsafe(self._client.aclose(), _loop()).result(5)

    async def _attempt(self, asked: _Asked, seconds: float, largest: int) -> HttpAnswer:
        import httpx2

        try:
            async with (
                asyncio.timeout(seconds),
                self._client.stream(asked.method, asked.url, headers=asked.headers, content=asked.body) as response,
            ):
                content = self._hidden((await _body(response, largest)).decode("latin-1")).encode("latin-1")
                texts = [self._hidden(part.decode("latin-1")) for pair in response.headers.raw for part in pair]
                return HttpAnswer(response.status_code, tuple(zip(texts[::2], texts[1::2], strict=True)), content)
        except TimeoutError as error:
            raise LateAnswerError(f"timed out after {seconds:g} s") from error
        except httpx2.TimeoutException as error:
            raise SilentError(f"timed out: {self._silence:g} s without a byte") from error
        except (httpx2.InvalidURL, httpx2.UnsupportedProtocol, httpx2.LocalProtocolError, UnicodeError) as error:
            raise AddressError(f"no address that can be asked ({self._words(error)})") from None
        except (httpx2.ConnectError, httpx2.ProxyError) as error:
            raise NetworkError(f"no connection ({self._words(error)})") from None
        except (httpx2.HTTPError, ssl.SSLError, OSError) as error:
            raise BrokenAnswerError(f"cut off ({self._words(error)})") from None

    def _hidden(self, text: str) -> str:
        """What a server sent, without the key: some repeat it in what they say of a fault."""
        return text if self._secret is None else self._secret.sub("***", text)

    def _words(self, error: BaseException) -> str:
        # Libraries quote what came; so would the error behind this one, which is therefore not shown.
        return " ".join(self._hidden(str(error)).split())[:160] or type(error).__name__


def origin(url: str) -> tuple[str, str, int]:
    """Scheme, host and port of an address; addresses with the same origin are served by the same server."""
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").lower(), parts.port
    except ValueError as error:
        raise AddressError(f"'{url[:200]}' is not an address") from error
    if parts.scheme not in _PORTS or not host:
        raise AddressError(f"'{url[:200]}' is not an address of http or https")
    return parts.scheme, host, _PORTS[parts.scheme] if port is None else port


def is_this_machine(host: str) -> bool:
    """Whether a host's name or address means this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def retry_after(value: str | None) -> float | None:
    """Seconds to wait by a Retry-After header, a number or a date; None where it is missing or unreadable."""
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(value).timestamp() - time.time()
        except (ValueError, TypeError, OverflowError):
            return None
    return None if math.isnan(seconds) else max(0.0, seconds)


async def _body(response: httpx2.Response, largest: int) -> bytes:
    """The body, read piece by piece and no further than allowed."""
    announced = response.headers.get("content-length", "")
    if announced.isascii() and announced.isdigit() and (len(announced) > 18 or int(announced) > largest):
        raise LargeAnswerError(f"larger than {largest:,d} bytes")
    codings = [
        coding for part in response.headers.get("content-encoding", "").lower().split(",")
        if (coding := part.strip()) not in ("", "identity")
    ]  # fmt: skip
    content = _counted(response.aiter_raw(_PIECE), largest)
    if len(codings) > _MOST_CODINGS:
        raise BrokenAnswerError("compressed several times")
    for coding in reversed(codings):
        if coding not in ("gzip", "x-gzip", "deflate"):
            raise BrokenAnswerError("compressed in a way that was not asked for")
        content = _counted(_unpacked(content), largest)
    return b"".join([piece async for piece in content])


async def _counted(pieces: AsyncIterator[bytes], largest: int) -> AsyncIterator[bytes]:
    size = 0
    async for piece in pieces:
        size += len(piece)
        if size > largest:
            raise LargeAnswerError(f"larger than {largest:,d} bytes")
        yield piece


async def _unpacked(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Data of gzip or zlib, or bare deflate, without its compression; never more than a piece at a time."""
    unpacker: Any = None
    async for piece in pieces:
        left = piece
        while left:
            try:
                if unpacker is None or unpacker.eof:
                    unpacker = zlib.decompressobj(_window(left))
                made = unpacker.decompress(left, _PIECE)
            except zlib.error as error:
                raise BrokenAnswerError("compressed data that is broken") from error
            left = unpacker.unused_data if unpacker.eof else unpacker.unconsumed_tail
            yield made
    # What is missing at the end of a page was missing when the archive took it.


def _window(start: bytes) -> int:
    """The parameter of zlib for data that begins so: gzip and zlib have a mark, bare deflate has none."""
    zlib_mark = start[0] & 0x0F == 8 and (len(start) < 2 or (start[0] << 8 | start[1]) % 31 == 0)
    return 47 if start[0] == 0x1F or zlib_mark else -15


def _forms(secret: str) -> re.Pattern[str]:
    """A key as it is, and with signs escaped as JSON and addresses do."""
    signs = (rf"(?:\\{{0,7}}{re.escape(sign)}|\\{{1,7}}u00{ord(sign):02x}|%{ord(sign):02x})" for sign in secret)
    return re.compile("".join(signs), re.IGNORECASE)


def _loop() -> asyncio.AbstractEventLoop:
    """The loop in which all requests run."""
    with _STARTING:
        return _started()


@functools.cache
def _started() -> asyncio.AbstractEventLoop:
    """The loop in a thread of its own, which ends with the program."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="network", daemon=True)
    thread.start()

    def end() -> None:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(2)

    atexit.register(end)
    return loop
