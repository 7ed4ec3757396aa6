"""A real browser for the tests of pages."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import matplotlib
import pytest

CHROMIUM = Path("/usr/bin/chromium")


#: Sets of fonts that a browser may have: those of the machine, and none but a narrow one with serifs.
FONTS = ("of the machine", "STIX only")


@contextmanager
def chromium(tried: str, fonts: str = FONTS[0]) -> Iterator[Any]:
    """Chromium, driven by Playwright; the test is skipped, with a word of what is not tried, where one is missing."""
    sync_api = pytest.importorskip("playwright.sync_api", reason=f"playwright is not installed: {tried} not tried")
    if not CHROMIUM.exists():
        pytest.skip(f"no Chromium at {CHROMIUM}: {tried} not tried in a browser")
    with sync_api.sync_playwright() as playwright, TemporaryDirectory() as folder:
        known = None if fonts == FONTS[0] else {**os.environ, "FONTCONFIG_FILE": str(_only_stix(Path(folder)))}
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"], env=known)
        yield started
        started.close()


def _only_stix(folder: Path) -> Path:
    """A configuration of fonts with those that Matplotlib brings and no machine shows pages in."""
    for path in (Path(matplotlib.get_data_path()) / "fonts" / "ttf").glob("STIXGeneral*.ttf"):
        shutil.copy(path, folder)
    configuration = folder / "fonts.conf"
    configuration.write_text(f"<fontconfig><dir>{folder}</dir><cachedir>{folder}</cachedir></fontconfig>")
    return configuration
