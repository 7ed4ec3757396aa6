"""What Python shows of work that takes long."""

from __future__ import annotations

import errno
import io
import sys
import threading
import time

import pytest

from truerank.options import command
from truerank.work.progress import Progress, ProgressLines, Quiet


class _Watched(io.StringIO):
    """A stream that says when some words were written to it."""

    def __init__(self, words: str) -> None:
        super().__init__()
        self.words, self.there = words, threading.Event()

    def write(self, text: str) -> int:
        written = super().write(text)
        if self.words in self.getvalue():
            self.there.set()
        return written


@command
def work(watched: _Watched | None = None, *, progress: Progress | None = None) -> None:
    shown = progress or Quiet()
    shown.note("it takes long")
    shown.start("counting", 3)
    shown.advance(1)
    assert watched is None or watched.there.wait(60)


@command
def within(watched: _Watched, *, progress: Progress | None = None) -> None:
    work(watched)


def test_long_work_that_python_calls_says_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def seen(words: str) -> _Watched:
        watched = _Watched(words)
        monkeypatch.setattr(sys, "stderr", watched)
        return watched

    short = seen("")
    work()
    assert short.getvalue() == ""
    monkeypatch.setattr("truerank.work.progress._EVERY", 0.1)
    long = seen("counting, 1 of 3 (")
    work(long)
    told = long.getvalue()
    assert told.count("it takes long\n") == 1 and told.index("it takes long") < told.index("counting, 1 of 3 (")
    # One command within another one is not said twice, and who wants silence has it.
    outer = seen("working (")
    within(outer)
    assert "counting" not in outer.getvalue() and "it takes long" not in outer.getvalue()
    silent = seen("")
    work(progress=Quiet())
    assert silent.getvalue() == ""


def test_without_a_terminal_long_work_writes_lines() -> None:
    stream = io.StringIO()
    lines = ProgressLines(stream, every=0.05)
    lines.start("reading \x1b[2J", 1000)
    lines.advance(250)
    end = time.monotonic() + 20
    while stream.getvalue().count("\n") < 2 and time.monotonic() < end:
        time.sleep(0.01)
    lines.finish()
    written = stream.getvalue()
    assert written.startswith("reading \ufffd[2J, 250 of 1,000 (0 min 0 s)\n")
    assert written.count("\n") >= 2
    lines.start("done")
    assert stream.getvalue() == written


def test_a_log_that_is_full_does_not_end_the_work() -> None:
    class _Full(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    lines = ProgressLines(_Full(), every=0.01)
    lines.note("x")
    time.sleep(0.05)
    lines.finish()
