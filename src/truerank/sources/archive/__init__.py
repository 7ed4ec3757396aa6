"""Snapshots of web pages in an archive: which there are, what they hold, and WARC files that keep them."""

from truerank.sources.archive.client import Archive, open_archive
from truerank.sources.archive.options import ArchiveOptions
from truerank.sources.archive.snapshots import (
    BrokenError,
    Capture,
    FailedError,
    MissedError,
    Played,
    nearest,
    parse_day,
)
from truerank.sources.archive.warc import read_record, warc_record

__all__ = [
    "Archive",
    "ArchiveOptions",
    "BrokenError",
    "Capture",
    "FailedError",
    "MissedError",
    "Played",
    "nearest",
    "open_archive",
    "parse_day",
    "read_record",
    "warc_record",
]
