"""WARC records: written so that the same page gives the same bytes, read back by their place in a file."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import uuid
from pathlib import Path
from typing import Final

from truerank.errors import InputError, MissingExtraError
from truerank.sources.archive.snapshots import Capture, Played, moment

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
    try:
        from fastwarc.warc import ArchiveIterator, WarcRecordType
    except ImportError as error:
        raise MissingExtraError("reading WARC files", "pages") from error
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
