"""A web archive: which captures of a page it has, the page as it was, and WARC records of what was fetched."""

from __future__ import annotations

import base64
import datetime
import email.utils
import functools
import gzip
import hashlib
import io
import re
import time
import urllib.robotparser
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeVar
from urllib.parse import urlsplit, urlunsplit

from truerank import network
from truerank.errors import InputError, OptionError, needed_for
from truerank.loading import toml_file
from truerank.options import Flag, Options, Range

#: Where the client believes to be; another archive is put in its place underneath.
CANONICAL: Final = "https://web.archive.org"
#: What `settings` may hold.
_RARE: Final = (
    "playback_path", "cdx_path", "timemap_path",
    "retries", "backoff", "max_wait", "timeout", "max_seconds", "max_bytes",
)  # fmt: skip
_HIDDEN: Final = Flag(hidden=True)


@dataclass(frozen=True)
class ArchiveOptions(Options):
    """Which archive is asked, and how patiently.

    Attributes:
        base_url: the archive.
        lookup: how captures are found: cdx, by the CDX server, with their status; timemap, by the Memento TimeMap,
            which every Memento archive has, without a status.
        search_rate: look-ups a second at most; 0 for no limit.
        page_rate: snapshots a second at most; 0 for no limit. A Crawl-delay of the archive holds for both together.
        user_agent: the user agent: a name and a contact address; by default this program.
        ignore_robots: ignore the archive's robots.txt (only with the archive's permission).
        playback_path: what stands before `TIMESTAMPid_/URL`.
        cdx_path: the CDX server.
        timemap_path: what stands before the URL whose TimeMap is asked for.
        retries: how often a request is repeated that failed for the moment.
        backoff: seconds before the second repetition; doubled each time. A longer `Retry-After` is waited for.
        max_wait: seconds that are waited at most; an archive that asks for more is not asked again.
        timeout: seconds without an answer, or without further bytes of one.
        max_seconds: seconds that one attempt may take, from the connection to the end of the answer.
        max_bytes: of a larger page nothing is kept.
    """

    base_url: str = CANONICAL
    lookup: Literal["cdx", "timemap"] = "cdx"
    search_rate: Annotated[float, Range(at_least=0)] = 0.4
    page_rate: Annotated[float, Range(at_least=0)] = 4.0
    user_agent: str = ""
    ignore_robots: bool = False
    playback_path: Annotated[str, _HIDDEN] = "/web/"
    cdx_path: Annotated[str, _HIDDEN] = "/cdx/search/cdx"
    timemap_path: Annotated[str, _HIDDEN] = "/web/timemap/link/"
    retries: Annotated[int, Range(at_least=0), _HIDDEN] = 5
    backoff: Annotated[float, Range(at_least=0), _HIDDEN] = 2.0
    max_wait: Annotated[float, Range(at_least=0), _HIDDEN] = 600.0
    timeout: Annotated[float, Range(above=0), _HIDDEN] = 60.0
    max_seconds: Annotated[float, Range(above=0), _HIDDEN] = 300.0
    max_bytes: Annotated[int, Range(above=0), _HIDDEN] = 10 << 20

    def __post_init__(self) -> None:
        super().__post_init__()
        if not re.fullmatch(r"https?://[^\s/?#]+(?:/[^\s?#]*)?", self.base_url):
            raise OptionError("base_url", f"'{self.base_url}' is not an archive", "write https://HOST")

    def with_file(self, path: str | Path) -> ArchiveOptions:
        """The same with the rare settings of a TOML file.

        Args:
            path: the file, one `NAME = VALUE` a line; names are those of the attributes from `playback_path` on.

        Raises:
            InputError: the file cannot be read, or has another name or a value of the wrong kind.
        """
        path = Path(path)
        found = toml_file(path, "write NAME = VALUE in TOML")
        kinds = {field.name: type(field.default) for field in fields(self)}
        for name, value in found.items():
            if name not in _RARE:
                raise InputError(f"no setting '{name}'", f"there are {', '.join(_RARE)}", where=path)
            allowed = (int, float) if kinds[name] is float else (kinds[name],)
            if isinstance(value, bool) or not isinstance(value, allowed):
                raise InputError(f"{name} is {value!r}", f"give a value such as {getattr(self, name)!r}", where=path)
        return replace(self, **found)

    def content(self) -> dict[str, Any]:
        """What decides which pages are found; the rest only decides how long that takes."""
        names = ("base_url", "lookup", "playback_path", "cdx_path", "timemap_path", "max_bytes")
        every = asdict(self)
        return {name: every[name] for name in names}


class Capture(NamedTuple):
    """One capture: its time as 14 digits (UTC), and status and content type where the archive lists them."""

    url: str
    timestamp: str
    status: int | None = None
    content_type: str = ""


class Played(NamedTuple):
    """A capture as the archive plays it back: the page's own headers and its bytes, without content encoding."""

    capture: Capture
    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes

    @property
    def content_type(self) -> str:
        """The content type by the headers."""
        return next((value for name, value in self.headers if name.lower() == "content-type"), "")


class MissedError(Exception):
    """The archive has no such snapshot; asking again would not help. The text says why."""


class FailedError(Exception):
    """The archive could not be asked; asking again may help. The text says why."""


class BrokenError(FailedError):
    """What came was broken, however often it was asked for; another capture may be sound."""


def nearest(captures: Iterable[Capture], year: int, day: tuple[int, int]) -> list[Capture]:
    """The captures of a year, that nearest to noon of a day first; of two as near the earlier."""
    middle = datetime.datetime(year, *day, 12, tzinfo=datetime.UTC)
    of_year = [capture for capture in captures if capture.timestamp.startswith(f"{year:04d}")]
    return sorted(of_year, key=lambda one: (abs(moment(one.timestamp) - middle), one.timestamp, one.url))


def moment(timestamp: str) -> datetime.datetime:
    """The time that 14 digits stand for."""
    return datetime.datetime.strptime(timestamp, "%Y%m%d%H%M%S").replace(tzinfo=datetime.UTC)


def parse_day(text: str) -> tuple[int, int]:
    """Month and day of `MM-DD`."""
    month, _, day = text.partition("-")
    try:
        found = datetime.date(2001, int(month), int(day))
    except ValueError as error:
        raise OptionError("day", f"no day '{text}' in every year", "write MM-DD, such as 07-02") from error
    return found.month, found.day


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
        with needed_for("asking a web archive", "pages"):
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
    with needed_for("asking a web archive", "pages"):
        import wayback

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
        with needed_for("asking a web archive", "pages"):
            import wayback
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
                reason = "an answer that is not text"
            except (requests.exceptions.InvalidURL, requests.exceptions.InvalidSchema, UnicodeError) as error:
                raise MissedError("no URL that can be asked for") from error
            except (requests.RequestException, OSError, RuntimeError) as error:
                reason, broken = f"broken answer ({_kind(error)})", True
            except (ValueError, TypeError, AttributeError, KeyError) as error:
                # The client takes headers apart that an archive may send in any form.
                reason = f"an answer that is not a Memento answer ({type(error).__name__})"
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


#: Headers that said how the page was sent; it is kept as it was meant.
_TRANSFER: Final = frozenset((
    "content-encoding", "transfer-encoding", "content-length", "connection", "keep-alive", "trailer", "upgrade",
))  # fmt: skip
_END: Final = b"\r\n"


def warc_record(page: Played) -> bytes:
    """A page as a WARC 1.1 `response` record, compressed as one gzip member.

    Its id comes from URL, time and content, its date is that of the capture, so that equal pages give equal bytes.

    Returns:
        The bytes; records put one after another are a WARC file.

    Source:
        ISO 28500:2017.
    """
    headers = [(name, value) for name, value in page.headers if name.lower() not in _TRANSFER]
    headers.append(("Content-Length", str(len(page.body))))
    http = _lines(f"HTTP/1.1 {page.status}", headers) + page.body
    digest = base64.b32encode(hashlib.sha1(page.body, usedforsecurity=False).digest()).decode()
    name = f"{page.capture.timestamp}/{page.capture.url}#{digest}"
    fields = [
        ("WARC-Type", "response"),
        ("WARC-Record-ID", f"<urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, name)}>"),
        ("WARC-Date", moment(page.capture.timestamp).strftime("%Y-%m-%dT%H:%M:%SZ")),
        ("WARC-Target-URI", page.capture.url),
        ("WARC-Payload-Digest", f"sha1:{digest}"),
        ("Content-Type", "application/http; msgtype=response"),
        ("Content-Length", str(len(http))),
    ]
    target = io.BytesIO()
    with gzip.GzipFile("", "wb", compresslevel=6, fileobj=target, mtime=0) as packed:
        packed.write(_lines("WARC/1.1", fields) + http + _END + _END)
    return target.getvalue()


def read_record(path: Path, offset: int) -> Played:
    """The page that begins at a place of a WARC file."""
    with needed_for("reading WARC files", "pages"):
        from fastwarc.warc import ArchiveIterator, WarcRecordType
    try:
        with path.open("rb") as stream:
            stream.seek(offset)
            records = ArchiveIterator(stream, record_types=WarcRecordType.response, parse_http=True)
            record = next(iter(records), None)
            if record is None or record.http_headers is None:
                raise InputError("no record at the place where one was written", "fetch again", where=path)
            status = int(str(record.http_headers.status_line).split()[1])
            capture = Capture(
                record.headers["WARC-Target-URI"],
                "".join(mark for mark in record.headers["WARC-Date"] if mark.isdigit())[:14],
                status,
            )
            return Played(capture, status, tuple(record.http_headers.astuples()), record.reader.read())
    except (OSError, ValueError, RuntimeError) as error:
        raise InputError(f"not readable as WARC ({error})", "fetch again", where=path) from error


def _lines(first: str, fields: list[tuple[str, str]]) -> bytes:
    lines = [first, *(f"{name}: {' '.join(value.split())}" for name, value in fields)]
    return "\r\n".join(lines).encode("utf-8", "replace") + _END + _END
