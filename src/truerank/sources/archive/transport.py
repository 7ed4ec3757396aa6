"""The session through which an archive is asked: patient, polite, and pointed at any archive."""

from __future__ import annotations

import functools
import urllib.robotparser
from typing import Any, Final

from truerank.errors import InputError, MissingExtraError
from truerank.sources.archive.options import CANONICAL, ArchiveOptions

__all__ = ["check_robots", "make_session"]

_AGENT: Final = "truerank"


def make_session(options: ArchiveOptions) -> Any:
    """A session that keeps the rates, repeats what failed for the moment, and reads answers piece by piece.

    Raises:
        MissingExtraError: the package `wayback` is not installed.
    """
    session = _classes()[0](options)
    session.mount(CANONICAL, _classes()[1](options))
    return session


def check_robots(session: Any, options: ArchiveOptions) -> float:
    """Whether the archive lets programs ask.

    Returns:
        The seconds between requests that its robots.txt asks for, 0 where it asks for none.

    Raises:
        InputError: it forbids what is needed, or cannot be reached at all.
    """
    import requests
    from wayback.exceptions import WaybackException

    try:
        answer = session.request("GET", f"{CANONICAL}/robots.txt")
        text = answer.text if answer.status_code == 200 else ""
        broken = answer.status_code >= 500
    except (requests.RequestException, WaybackException) as error:
        raise InputError(
            f"the archive cannot be reached ({type(error).__name__})", "check the address and the network, or wait",
            where=options.base_url,
        ) from error  # fmt: skip
    if broken:
        raise InputError(
            f"the archive answers HTTP {answer.status_code}", "wait, then run again", where=options.base_url
        )
    rules = urllib.robotparser.RobotFileParser()
    rules.parse(text.splitlines())
    agent = options.user_agent or _AGENT
    first = options.cdx_path if options.lookup == "cdx" else options.timemap_path
    closed = [path for path in (first, options.playback_path) if not rules.can_fetch(agent, options.base_url + path)]
    if closed and not options.ignore_robots:
        raise InputError(
            f"its robots.txt closes {closed[0]} to programs", "ask the archive; with its leave use --ignore-robots",
            where=options.base_url,
        )  # fmt: skip
    return float(rules.crawl_delay(agent) or 0)


@functools.cache
def _classes() -> tuple[Any, Any]:
    try:
        import requests.adapters
        import wayback
    except ImportError as error:
        raise MissingExtraError("asking a web archive", "pages") from error

    class Session(wayback.WaybackSession):  # type: ignore[misc]
        """Never waits longer than the user allows, and remembers the last answer, whose body is still to be read."""

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
            self._longest = options.max_wait
            self.stream = True
            self.last: Any = None

        def send(self, request: Any, **kwargs: Any) -> Any:
            self.last = super().send(request, **kwargs)
            return self.last

        def get_retry_delay(self, retries: int, response: Any = None) -> float:
            return min(self._longest, float(super().get_retry_delay(retries, response)))

    class Elsewhere(requests.adapters.HTTPAdapter):  # type: ignore[misc]
        """Sends what is meant for the Wayback Machine to the archive of the options."""

        def __init__(self, options: ArchiveOptions) -> None:
            super().__init__()
            self._base = options.base_url.rstrip("/")
            # The longest first, since a TimeMap's path begins like that of a page.
            self._paths = (
                ("/web/timemap/link/", options.timemap_path),
                ("/cdx/search/cdx", options.cdx_path),
                ("/web/", options.playback_path),
            )

        def send(self, request: Any, *args: Any, **kwargs: Any) -> Any:
            asked, path = request.url, request.url[len(CANONICAL) :]
            theirs = next((new + path[len(old) :] for old, new in self._paths if path.startswith(old)), path)
            sent = request.copy()
            sent.url = self._base + theirs
            response = super().send(sent, *args, **kwargs)
            response.url, response.request = asked, request
            for name in ("Location", "Content-Location", "Link"):
                if name in response.headers:
                    response.headers[name] = self._ours(response.headers[name])
            return response

        def _ours(self, text: str) -> str:
            playback = self._paths[-1][1]
            for prefix in (self._base, self._base.partition(":")[2]):
                text = text.replace(prefix + playback, f"{CANONICAL}/web/")
            return f"{CANONICAL}/web/{text[len(playback) :]}" if text.startswith(playback) else text

    return Session, Elsewhere
