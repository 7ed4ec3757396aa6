"""Snapshots of web pages in an archive: which there are, what they hold, and WARC files that keep them."""

from truerank.sources.archive.client import (
    Archive,
    ArchiveOptions,
    BrokenError,
    Capture,
    FailedError,
    MissedError,
    Played,
    nearest,
    open_archive,
    parse_day,
    read_record,
    warc_record,
)

__all__ = [
    "Archive", "ArchiveOptions", "BrokenError", "Capture", "FailedError", "MissedError", "Played", "nearest",
    "open_archive", "parse_day", "read_record", "warc_record",
]  # fmt: skip
