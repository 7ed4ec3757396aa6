"""What Python shows of work that takes long."""

from __future__ import annotations

import io
import sys
import threading

import pytest

from truerank.options import command
from truerank.work.progress import Progress, Quiet


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
