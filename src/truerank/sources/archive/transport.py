"""The session through which an archive is asked: patient, polite, bounded, and pointed at any archive."""

from __future__ import annotations

import functools
import urllib.robotparser
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

from truerank import network
from truerank.errors import InputError, MissingExtraError
from truerank.sources.archive.options import CANONICAL, ArchiveOptions
from truerank.sources.archive.snapshots import FailedError, MissedError

_AGENT: Final = "truerank"
_TIMEMAP: Final = "/web/timemap/link/"
_CDX: Final = "/cdx/search/cdx"
#: Bytes of robots.txt; RFC 9309 asks for at least 500 KiB.
_LARGEST_ROBOTS: Final = 1 << 20
#: Bytes of a list of captures: about 200,000 captures.
_LARGEST_LIST: Final = 32 << 20
#: Seconds between two requests that are kept to where robots.txt asks for them.
_LONGEST_DELAY: Final = 300
#: Seconds that are waited after HTTP 429 where the archive does not say how long.
_RATE_LIMITED: Final = 60.0


def make_session(options: ArchiveOptions) -> Any:
    """A session that keeps the rates and repeats what failed for the moment."""
    session = _session_class()(options)
    elsewhere = _adapter_class()(_Asker(options))
    # Also for what the archive sends us to: nothing is asked past this adapter.
    session.mount("https://", elsewhere)
    session.mount("http://", elsewhere)
    return session


def check_robots(session: Any, options: ArchiveOptions) -> float:
    """Whether the archive lets programs ask.

    Returns:
        The seconds between requests that its robots.txt asks for, 0 where it asks for none.
    """
    import requests
    from wayback.exceptions import WaybackException

    try:
        answer = session.request("GET", f"{CANONICAL}/robots.txt")
    except _MovedError as error:
        raise InputError(
            str(error), "if you trust it, give its address as --base-url", where=options.base_url
        ) from error
    except (MissedError, FailedError) as error:
        if options.ignore_robots:
            return 0.0
        raise InputError(
            f"its robots.txt cannot be read ({error})", "ask the archive; with its leave use --ignore-robots",
            where=options.base_url,
        ) from error  # fmt: skip
    except (requests.RequestException, WaybackException) as error:
        raise InputError(
            f"the archive cannot be reached ({type(error).__name__})", "check the address and the network, or wait",
            where=options.base_url,
        ) from error  # fmt: skip
    if answer.status_code >= 500:
        raise InputError(
            f"the archive answers HTTP {answer.status_code}", "wait, then run again", where=options.base_url
        )
    return _delay(answer.text if answer.status_code == 200 else "", options)


def _delay(text: str, options: ArchiveOptions) -> float:
    """The Crawl-delay of a robots.txt, which must not forbid what is needed."""
    rules = urllib.robotparser.RobotFileParser()
    try:
        rules.parse(text.splitlines())
    except ValueError as error:
        # Its numbers are taken as they come.
        raise InputError(
            "its robots.txt holds a number that is none", "ask the archive", where=options.base_url
        ) from error
    agent = options.user_agent or _AGENT
    first = options.cdx_path if options.lookup == "cdx" else options.timemap_path
    closed = [path for path in (first, options.playback_path) if not rules.can_fetch(agent, options.base_url + path)]
    remedy = "ask the archive; with its leave use --ignore-robots"
    if closed and not options.ignore_robots:
        raise InputError(f"its robots.txt closes {closed[0]} to programs", remedy, where=options.base_url)
    delay = int(rules.crawl_delay(agent) or 0)
    if delay <= _LONGEST_DELAY:
        return float(delay)
    if options.ignore_robots:
        return 0.0
    shown = f"{delay:,d}" if delay < 10**9 else "more than 1,000,000,000"
    fault = f"its robots.txt asks for {shown} s between two requests, longer than {_LONGEST_DELAY} s"
    raise InputError(fault, remedy, where=options.base_url)


class _MovedError(MissedError):
    """A redirect to another server; where the user trusts that one, they can name it."""


class _Asker:
    """Asks the archive of the options for what is meant for the Wayback Machine, and nobody else."""

    def __init__(self, options: ArchiveOptions) -> None:
        self._options = options
        here = network.is_this_machine(urlsplit(options.base_url).hostname or "")
        self._http = network.HttpClient(silence=options.timeout, proxies=not here)
        self._base = options.base_url.rstrip("/")
        # The longest first, since a TimeMap's path begins like that of a page.
        self._paths = ((_TIMEMAP, options.timemap_path), (_CDX, options.cdx_path), ("/web/", options.playback_path))

    def ask(self, request: Any) -> network.HttpAnswer:
        """One attempt."""
        path = urlunsplit(("", "", *urlsplit(request.url)[2:]))
        if network.origin(request.url) == network.origin(CANONICAL):
            theirs = next((new + path[len(old) :] for old, new in self._paths if path.startswith(old)), path)
            address = self._base + theirs
        elif network.origin(request.url) == network.origin(self._base):
            address = request.url
        else:
            raise _MovedError(f"the archive sends us to another server, {request.url.partition('?')[0][:200]}")
        largest = _LARGEST_LIST if path.startswith((_CDX, _TIMEMAP)) else self._options.max_bytes
        try:
            return self._http.ask(
                request.method, address, seconds=self._options.max_seconds, headers=request.headers,
                largest=_LARGEST_ROBOTS if path == "/robots.txt" else largest,
            )  # fmt: skip
        except network.LargeAnswerError as error:
            raise MissedError(str(error)) from error
        except network.AddressError as error:
            raise MissedError("no URL that can be asked for") from error
        except network.LateAnswerError as error:
            raise FailedError(f"it took longer than {self._options.max_seconds:g} seconds") from error

    def named(self, text: str) -> str:
        """A header with addresses of the archive as those of the Wayback Machine."""
        playback = self._paths[-1][1]
        for prefix in (self._base, self._base.partition(":")[2]):
            text = text.replace(prefix + playback, f"{CANONICAL}/web/")
        return f"{CANONICAL}/web/{text[len(playback) :]}" if text.startswith(playback) else text

    def close(self) -> None:
        """Closes the connections."""
        self._http.close()


@functools.cache
def _session_class() -> Any:
    try:
        import wayback
    except ImportError as error:
        raise MissingExtraError("asking a web archive", "pages") from error

    class Session(wayback.WaybackSession):  # type: ignore[misc]
        """Never waits longer than the user allows, turns no endless pages of a list, and remembers the last answer."""

        def __init__(self, options: ArchiveOptions) -> None:
            searches = pages = wayback.RateLimit(options.page_rate)
            if options.search_rate != options.page_rate:
                searches = wayback.RateLimit(options.search_rate)
            super().__init__(
                retries=options.retries,
                backoff=options.backoff,
                timeout=options.timeout,
                user_agent=options.user_agent or _AGENT,
                search_calls_per_second=searches,
                memento_calls_per_second=pages,
            )
            # Proxies are the client's concern.
            self.trust_env = False
            self.lists_left = 0
            self.last: Any = None
            self._longest = options.max_wait

        def request(self, method: str, url: str, **kwargs: Any) -> Any:
            if url.startswith(CANONICAL + _CDX):
                self.lists_left -= 1
                if self.lists_left < 0:
                    raise FailedError("the list of captures does not end")
            return super().request(method, url, **kwargs)

        def send(self, request: Any, **kwargs: Any) -> Any:
            self.last = super().send(request, **kwargs)
            return self.last

        def get_retry_delay(self, retries: int, response: Any = None) -> float:
            delay = float(super().get_retry_delay(retries))
            if response is not None and response.status_code >= 400 and "Memento-Datetime" not in response.headers:
                asked = network.retry_after(response.headers.get("Retry-After"))
                if asked is not None and asked > self._longest:
                    raise FailedError(f"the archive asks to wait {asked:.0f} s, longer than {self._longest:g} s")
                delay = max(delay, asked or (_RATE_LIMITED if response.status_code == 429 else 0.0))
            return min(self._longest, delay)

    return Session


@functools.cache
def _adapter_class() -> Any:
    import requests

    class Elsewhere(requests.adapters.BaseAdapter):  # type: ignore[misc]
        """Answers and faults of the client as those of requests."""

        def __init__(self, asker: _Asker) -> None:
            super().__init__()
            self._asker = asker

        def send(self, request: Any, *_: Any, **__: Any) -> Any:
            try:
                answer = self._asker.ask(request)
            except network.SilentError as error:
                raise requests.exceptions.ReadTimeout(str(error)) from error
            except network.BrokenAnswerError as error:
                raise requests.exceptions.ChunkedEncodingError(str(error)) from error
            except network.NetworkError as error:
                raise requests.exceptions.ConnectTimeout(str(error)) from error
            response = requests.Response()
            response.status_code, response.url, response.request = answer.status, request.url, request
            response.encoding = "utf-8"
            for name, value in answer.headers:
                before = f"{response.headers[name]}, " if name in response.headers else ""
                response.headers[name] = before + value
            for name in ("Location", "Content-Location", "Link"):
                if name in response.headers:
                    response.headers[name] = self._asker.named(response.headers[name])
            # What requests itself sets when a body is read.
            response._content, response._content_consumed = answer.body, True
            return response

        def close(self) -> None:
            self._asker.close()

    return Elsewhere
