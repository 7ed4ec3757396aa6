"""How a web archive is asked."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

from truerank.errors import InputError

__all__ = ["CANONICAL", "ArchiveOptions"]

#: Where the client believes to be; another archive is put in its place underneath.
CANONICAL: Final = "https://web.archive.org"


@dataclass(frozen=True)
class ArchiveOptions:
    """Which archive is asked, and how patiently.

    Args:
        base_url: the archive.
        lookup: "cdx": captures with their status, by the CDX server; "timemap": by the Memento TimeMap, which every
            Memento archive has, without a status.
        playback_path: what stands before `TIMESTAMPid_/URL`.
        cdx_path: the CDX server.
        timemap_path: what stands before the URL whose TimeMap is asked for.
        search_rate: look-ups a second at most; 0 for no limit.
        page_rate: snapshots a second at most; 0 for no limit. A Crawl-delay of the archive holds for both together.
        retries: how often a request is repeated that failed for the moment.
        backoff: seconds before the second repetition; doubled each time. A longer `Retry-After` is waited for.
        max_wait: seconds that are waited at most, whatever the archive asks for.
        timeout: seconds without an answer, or without further bytes of one.
        max_seconds: seconds that one page may take.
        max_bytes: of a larger page nothing is kept.
        user_agent: who asks; the default names this program.
        ignore_robots: ask although the archive's robots.txt forbids it (only with the archive's leave).
    """

    base_url: str = CANONICAL
    lookup: Literal["cdx", "timemap"] = "cdx"
    playback_path: str = "/web/"
    cdx_path: str = "/cdx/search/cdx"
    timemap_path: str = "/web/timemap/link/"
    search_rate: float = 0.4
    page_rate: float = 4.0
    retries: int = 5
    backoff: float = 2.0
    max_wait: float = 600.0
    timeout: float = 60.0
    max_seconds: float = 300.0
    max_bytes: int = 10 << 20
    user_agent: str = ""
    ignore_robots: bool = False

    def __post_init__(self) -> None:
        if not re.fullmatch(r"https?://[^\s/?#]+(?:/[^\s?#]*)?", self.base_url):
            raise InputError(f"'{self.base_url}' is no archive", "write https://HOST", where="--base-url")
        if self.lookup not in ("cdx", "timemap"):
            raise InputError(f"no look-up called '{self.lookup}'", "use cdx or timemap", where="--lookup")
        low = min(self.search_rate, self.page_rate, self.retries, self.backoff, self.max_wait)
        if low < 0 or min(self.timeout, self.max_seconds, self.max_bytes) <= 0:
            raise InputError("a rate, limit or number of retries is negative", "give one that is not")

    def content(self) -> dict[str, Any]:
        """What decides which pages are found; the rest only decides how long that takes."""
        names = ("base_url", "lookup", "playback_path", "cdx_path", "timemap_path", "max_bytes")
        every = asdict(self)
        return {name: every[name] for name in names}
