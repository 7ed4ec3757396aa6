"""What all tests share: one thread for each process, and the mark of tests that need the real data."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import pytest
from hypothesis import settings

import shortcuts
from places import DATA

# Before a numerical library is loaded: threads that wait for each other on busy processors take many times as long.
# Tests of several threads name them.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

# What changes how a command behaves is as in no other place: the width, the zone, the network, the encoding. Processes
# that tests start, and those of xdist, begin with it.
for _name in (
    "COLUMNS", "LINES", "FORCE_COLOR", "NO_COLOR", "MPLBACKEND", "PYTHONIOENCODING", "PYTHONOPTIMIZE", "PYTHONWARNINGS",
    "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_DATASETS_OFFLINE",
):  # fmt: skip
    os.environ.pop(_name, None)
os.environ.update(TZ="UTC", LC_ALL="C.UTF-8", PYTHONUTF8="1")
if hasattr(time, "tzset"):
    time.tzset()

# A test fails by what it finds, not by how busy the machine is, and finds the same each time, as in CI's own profile.
# HYPOTHESIS_SEARCH=1 looks for new examples.
settings.register_profile("truerank", deadline=None, derandomize="HYPOTHESIS_SEARCH" not in os.environ)
settings.load_profile("truerank")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """A test with the mark `shared` is skipped, with a message, where the real data are absent."""
    if item.get_closest_marker("shared") and not DATA.is_dir():
        pytest.skip(f"TRUERANK_SHARED: no real data at {DATA}")


@pytest.fixture
def undrawn() -> Iterator[None]:
    """For tests of what an audit finds: it writes its figures, also where nobody looks at them."""
    with shortcuts.undrawn():
        yield
