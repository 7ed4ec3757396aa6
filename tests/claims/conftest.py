"""What the tests of claims share: drawing is left to the tests of what a check writes, and to those of each audit."""

from __future__ import annotations

import pytest

DRAWN = ("test_check_files", "test_check_sample")


@pytest.fixture(autouse=True)
def drawn_elsewhere(request: pytest.FixtureRequest) -> None:
    """A check writes the figures of each audit, also where nobody looks at them: a third of its time."""
    if request.module.__name__.rpartition(".")[2] not in DRAWN:
        request.getfixturevalue("undrawn")
