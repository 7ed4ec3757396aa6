"""Captures of a page, what is played back of one, and why there is none."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from typing import NamedTuple

from truerank.errors import OptionError


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
