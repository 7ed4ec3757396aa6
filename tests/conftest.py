"""What all tests share: the mark of tests that need the real data."""

from __future__ import annotations

import pytest

from places import DATA


def pytest_runtest_setup(item: pytest.Item) -> None:
    """A test with the mark `shared` is skipped, with a message, where the real data are absent."""
    if item.get_closest_marker("shared") and not DATA.is_dir():
        pytest.skip(f"TRUERANK_SHARED: no real data at {DATA}")
