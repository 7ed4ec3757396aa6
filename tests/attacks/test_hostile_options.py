"""Hostile command lines, made from the declarations of the commands, and bounds of values in Python."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from truerank import evaluate
from truerank.errors import OptionError
from truerank.options import Resampling, Workers

ROOT = Path(__file__).resolve().parents[2]


def test_hostile_command_lines_end_with_a_line(tmp_path: Path) -> None:
    words = [sys.executable, str(ROOT / "attacks" / "options.py"), "--runs", "120", "--seed", "3"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    assert "120 command lines" in done.stdout


@pytest.mark.parametrize(
    ("group", "name", "value", "fault"),
    [
        (Workers, "workers", 2147483648, "at least 1 and at most 1024, got 2147483648"),
        (Workers, "workers", 0, "at least 1 and at most 1024, got 0"),
        (Resampling, "resamples", 10**20, "at most 2147483647, got a number of more than 20 digits"),
        pytest.param(Resampling, "resamples", 10**5000, "got a number of more than 20 digits", id="5,001 digits"),
        (Resampling, "seed", 2**32, "at most 4294967295, got 4294967296"),
        (Resampling, "confidence", float("nan"), "got nan"),
    ],
)
def test_whole_numbers_have_bounds(group: type, name: str, value: float, fault: str) -> None:
    with pytest.raises(OptionError, match=fault):
        group(**{name: value})


def test_an_empty_path_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="out: an empty path"):
        evaluate(str(tmp_path), str(tmp_path), out="")
    assert Workers(workers=1024).workers == 1024
    assert Resampling(resamples=2**31 - 1).resamples == 2**31 - 1
