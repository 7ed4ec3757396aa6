"""What Python shows of work that takes long."""

from __future__ import annotations

import time

import pytest

from truerank.options import command
from truerank.work.progress import Progress, Quiet


@command
def work(seconds: float, *, progress: Progress | None = None) -> None:
    shown = progress or Quiet()
    shown.note("it takes long")
    shown.start("counting", 3)
    shown.advance(1)
    time.sleep(seconds)


@command
def within(*, progress: Progress | None = None) -> None:
    work(0.3)


def test_long_work_that_python_calls_says_how_far_it_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    work(0)
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr("truerank.work.progress._EVERY", 0.1)
    work(0.3)
    lines = capsys.readouterr().err.splitlines()
    assert lines[:2] == ["it takes long", "counting, 1 of 3 (0 min 0 s)"]
    assert lines.count("it takes long") == 1
    # One command within another one is not said twice, and who wants silence has it.
    within()
    assert "counting" not in capsys.readouterr().err
    work(0.3, progress=Quiet())
    assert capsys.readouterr().err == ""
