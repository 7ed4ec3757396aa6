"""The one place where text goes to stdout and stderr, whatever they can show, and where they are closed or full."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import sys
from pathlib import Path
from typing import Final, TextIO

from truerank.text.printable import printable

#: What errors call it.
STDOUT: Final = "standard output"
_BEYOND_ASCII: Final = re.compile(r"[^\x00-\x7f]+")


def prepare() -> None:
    """Lets both streams take any text: what an encoding lacks is replaced, and a closed one is the null device."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper) and stream.errors in ("strict", "surrogateescape"):
            stream.reconfigure(errors="replace")


def put(stream: TextIO, text: str, form: str = "text") -> None:
    """Writes a text that may hold characters of the input."""
    exact = form in ("csv", "json") and not stream.isatty()
    shown = text.encode("utf-8", "replace").decode() if exact else printable(text)
    if form == "json" and "utf" not in (stream.encoding or "utf").lower():
        shown = _BEYOND_ASCII.sub(lambda match: json.dumps(match[0])[1:-1], shown)
    try:
        stream.write(shown)
        stream.flush()
    except (OSError, ValueError) as error:
        _discard(stream)
        if stream is sys.stderr:
            return
        if isinstance(error, OSError):
            error.filename = STDOUT
        raise


def end() -> None:
    """Writes what the streams hold: at the end of Python, a stream that fails would change the exit code."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            _discard(stream)


def _discard(stream: TextIO) -> None:
    """Lets go what a stream holds, and all that comes."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
