"""How a web archive is asked."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from truerank.errors import InputError, OptionError
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
        user_agent: who asks: a name and an address to write to; by default this program.
        ignore_robots: ask although the archive's robots.txt forbids it (only with the archive's leave).
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
            raise OptionError("base_url", f"'{self.base_url}' is no archive", "write https://HOST")

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
