"""What the tests of leaks share: the packaged model is opened once, and encodes a list of texts once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from shortcuts import encoded_once


@pytest.fixture(autouse=True)
def one_encoder(request: pytest.FixtureRequest) -> Iterator[None]:
    """The long runs compare what was encoded anew."""
    if request.node.get_closest_marker("slow"):
        yield
        return
    with encoded_once():
        yield
