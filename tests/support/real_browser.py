"""A real browser for the tests of pages."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = Path("/usr/bin/chromium")


@contextmanager
def chromium(tried: str) -> Iterator[Any]:
    """Chromium, driven by Playwright; the test is skipped, with a word of what is not tried, where one is missing."""
    sync_api = pytest.importorskip("playwright.sync_api", reason=f"playwright is not installed: {tried} not tried")
    if not CHROMIUM.exists():
        pytest.skip(f"no Chromium at {CHROMIUM}: {tried} not tried in a browser")
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()
