"""What the tests of claims share: drawing is left to the tests of what a check writes, and to those of each audit."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from shortcuts import undrawn

DRAWN = ("test_check_files", "test_check_paths", "test_check_sample")


@pytest.fixture(autouse=True)
def without_drawing(request: pytest.FixtureRequest) -> Iterator[None]:
    """A check writes the figures of each audit, also where nobody looks at them: a third of its time."""
    if request.module.__name__.rpartition(".")[2] in DRAWN:
        yield
        return
    with undrawn():
        yield
