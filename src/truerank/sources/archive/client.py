"""Asks a web archive which captures of a page it has, and for the page as it was."""

from __future__ import annotations

import datetime
import email.utils
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

from truerank.errors import MissingExtraError
from truerank.sources.archive.options import CANONICAL, ArchiveOptions
from truerank.sources.archive.snapshots import BrokenError, Capture, FailedError, MissedError, Played
from truerank.sources.archive.transport import check_robots, make_session

_T = TypeVar("_T")
#: Captures of one page that are looked at.
_MOST: Final = 20_000
#: Answers into which the list of one page is cut.
_MOST_LISTS: Final = 200
_LINK: Final = re.compile(r"<([^<>]+)>\s*((?:;\s*[\w*-]+\s*=\s*(?:\"[^\"]*\"|[^\s;,]+)\s*)*)")
_REL: Final = re.compile(r"\brel\s*=\s*\"?([^\";]+)")
_WHEN: Final = re.compile(r"\bdatetime\s*=\s*\"([^\"]+)\"")
_STAMP: Final = re.compile(r"/(\d{14})(?:[a-z]{2}_)?/(.+)$")
#: Headers of the archive's own answer; the page's begin with X-Archive-Orig-.
_CONTENT: Final = ("content-type",)
_ERROR_CODE: Final = re.compile(r"\b([1-5]\d\d)\b")


def open_archive(options: ArchiveOptions) -> Archive:
    """Opens an archive, after its robots.txt."""
    session = make_session(options)
    delay = check_robots(session, options)
    if delay:
        rate = min(1 / delay, options.page_rate or 1 / delay)
        options = replace(options, search_rate=rate, page_rate=rate)
        session.close()
        session = make_session(options)
    return Archive(session, options)


class Archive:
    """A web archive that speaks the Memento protocol.

    Args:
        session: made by `transport.make_session`.
        options: how it is asked.

    Source:
        RFC 7089 (Memento).
    """

    def __init__(self, session: Any, options: ArchiveOptions) -> None:
        try:
            import wayback
        except ImportError as error:
            raise MissingExtraError("asking a web archive", "pages") from error
        self._session = session
        self._options = options
        self._client = wayback.WaybackClient(session)

    def close(self) -> None:
        """Closes the connections."""
        self._client.close()

    def answers(self) -> bool:
        """Whether the archive answers at all, and does not ask to be left alone."""
        import requests
        from wayback.exceptions import WaybackException

        try:
            answer = self._session.request("GET", f"{CANONICAL}/robots.txt")
        except (MissedError, FailedError, requests.RequestException, WaybackException):
            return False
        return int(answer.status_code) < 500

    def captures(self, url: str, years: Sequence[int]) -> list[Capture]:
        """The captures of a page in these years and between them, in order of time."""
        asked = url.strip().partition("#")[0]
        if self._options.lookup == "timemap":
            return self._patiently(lambda: self._timemap(asked, years))
        return self._patiently(lambda: list(self._cdx(asked, years)))

    def play(self, capture: Capture) -> Played:
        """The page of a capture as it was sent."""
        return self._patiently(lambda: self._played(capture))

    def _cdx(self, url: str, years: Sequence[int]) -> Iterator[Capture]:
        self._session.lists_left = _MOST_LISTS
        found = self._client.search(
            url,
            match_type="exact",
            from_date=datetime.datetime(min(years), 1, 1, tzinfo=datetime.UTC),
            to_date=datetime.datetime(max(years), 12, 31, 23, 59, 59, tzinfo=datetime.UTC),
        )
        for number, record in enumerate(found):
            if number >= _MOST:
                return
            stamp = record.timestamp.strftime("%Y%m%d%H%M%S")
            yield Capture(record.original, stamp, record.statuscode, record.mimetype)

    def _timemap(self, url: str, years: Sequence[int]) -> list[Capture]:
        answer = self._session.request("GET", f"{CANONICAL}/web/timemap/link/{url}")
        if answer.status_code == 404:
            return []
        if answer.status_code >= 500:
            raise FailedError(f"HTTP {answer.status_code} from the list of captures")
        if answer.status_code != 200:
            raise MissedError(f"HTTP {answer.status_code} from the list of captures")
        text = answer.text
        found = {one for one in _mementos(text, url) if min(years) <= int(one.timestamp[:4]) <= max(years)}
        if not found and "rel=" not in text and text.strip():
            raise FailedError("the list of captures is broken")
        return sorted(found, key=lambda one: (one.timestamp, one.url))[:_MOST]

    def _played(self, capture: Capture) -> Played:
        memento = self._client.get_memento(capture.url, timestamp=capture.timestamp, exact=True, follow_redirects=False)
        if memento.status_code != 200:
            raise MissedError(f"captured as HTTP {memento.status_code}")
        answer = self._session.last
        headers = [(name, value) for name, value in memento.headers.items() if name.lower() not in _CONTENT]
        kind = memento.headers.get("Content-Type") or answer.headers.get("Content-Type") or ""
        return Played(
            capture._replace(url=memento.url or capture.url),
            200,
            (("Content-Type", kind), *sorted(headers)) if kind else tuple(sorted(headers)),
            answer.content,
        )

    def _patiently(self, ask: Callable[[], _T]) -> _T:
        """Asks again where the fault may pass; the session itself has repeated what failed to be answered at all."""
        import requests
        from wayback import exceptions

        reason, broken = "", False
        for attempt in range(self._options.retries + 1):
            if attempt:
                time.sleep(min(self._options.max_wait, self._options.backoff * 2 ** (attempt - 1)))
            try:
                return ask()
            except (MissedError, FailedError):
                raise
            except exceptions.RateLimitError as error:
                reason = "the archive limits the rate (HTTP 429)"
                time.sleep(min(self._options.max_wait, float(error.retry_after or 0)))
            except exceptions.WaybackRetryError as error:
                raise FailedError(f"no answer ({_kind(error.cause)})") from error
            except exceptions.WaybackException as error:
                _raise_said(error, exceptions)
                reason = "the list of captures is broken"
            except UnicodeDecodeError:
                reason = "an answer that is no text"
            except (requests.exceptions.InvalidURL, requests.exceptions.InvalidSchema, UnicodeError) as error:
                raise MissedError("no URL that can be asked for") from error
            except (requests.RequestException, OSError, RuntimeError) as error:
                reason, broken = f"broken answer ({_kind(error)})", True
            except (ValueError, TypeError, AttributeError, KeyError) as error:
                # The client takes headers apart that an archive may send in any form.
                reason = f"an answer that is no Memento answer ({type(error).__name__})"
        raise BrokenError(reason) if broken else FailedError(reason)


def _raise_said(error: Exception, exceptions: Any) -> None:
    """Raises what an error of the client means; returns for those that may pass."""
    if isinstance(error, exceptions.BlockedByRobotsError):
        raise MissedError("closed by robots.txt") from error
    if isinstance(error, exceptions.BlockedSiteError):
        raise MissedError("excluded from the archive") from error
    if isinstance(error, exceptions.NoMementoError):
        raise MissedError("the archive lists the capture but does not have it") from error
    if isinstance(error, exceptions.UnexpectedResponseFormat):
        return
    text = str(error)
    if isinstance(error, exceptions.MementoPlaybackError):
        code = re.match(r"(\d{3}) error", text)
        if code and int(code[1]) >= 500:
            raise FailedError(f"HTTP {code[1]} from the archive") from error
        raise MissedError("the archive cannot play it back" + (f" (HTTP {code[1]})" if code else "")) from error
    found = _ERROR_CODE.search(text)
    if found and int(found[1]) >= 500:
        raise FailedError(f"HTTP {found[1]} from the list of captures") from error
    raise MissedError(f"HTTP {found[1]} from the list of captures" if found else "the archive refuses it") from error


def _mementos(text: str, url: str) -> Iterator[Capture]:
    for target, parameters in map(re.Match[str].groups, _LINK.finditer(text)):
        rel, when, stamp = _REL.search(parameters), _WHEN.search(parameters), _STAMP.search(target)
        if rel is None or "memento" not in rel[1].split():
            continue
        if stamp is not None:
            yield Capture(stamp[2], stamp[1])
        elif when is not None and (parsed := email.utils.parsedate(when[1])) is not None:
            yield Capture(url, time.strftime("%Y%m%d%H%M%S", parsed))


def _kind(error: Any) -> str:
    """The kind of a fault of the network, in words."""
    text = str(error)
    for mark in ("compressed", "cut off", "no connection"):
        if text.startswith(mark):
            return text.partition(" (")[0]
    return "time ran out" if text.startswith("timed out") else type(error).__name__
