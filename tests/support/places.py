"""Where things are: the repository, the modules that tests share, and the real data."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

__all__ = ["DATA", "ROOT", "SHARED", "SUPPORT", "real", "without_progress"]

SUPPORT = Path(__file__).resolve().parent
ROOT = SUPPORT.parents[1]
#: The folder of real data; tests that need it are skipped, with a message, where it is absent.
SHARED = Path(os.environ.get("TRUERANK_SHARED", ROOT.parent / "shared")).resolve()
DATA = SHARED / "data"


def real(*parts: str) -> Path:
    """A file or folder of the real data; the test is skipped where it is absent."""
    path = DATA.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"TRUERANK_SHARED: {path} is absent")
    return path


def without_progress(stderr: str) -> str:
    """What a command wrote to stderr, less the lines of progress that it writes on a slow machine."""
    return re.sub(r".*(?:\(\d+ min \d+ s\)|: reading .*)\n", "", stderr)
