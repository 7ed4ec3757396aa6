"""Values as JSON has them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from truerank.core.plain import picked, plain


class Ends(NamedTuple):
    low: float
    high: float


@dataclass
class Own:
    count: int

    def json(self) -> dict[str, Any]:
        return {"number": self.count}


@dataclass
class Outer:
    ends: Ends
    own: Own
    place: Path
    shares: tuple[np.float64, ...]
    names: frozenset[str] = frozenset({"b", "a"})


def test_every_kind_of_value() -> None:
    value = Outer(Ends(0.5, float("nan")), Own(3), Path("a/b"), (np.float64(1.5),))
    expected = {"ends": {"low": 0.5, "high": None}, "own": {"number": 3}, "place": "a/b", "shares": [1.5]}
    assert plain(value) == {**expected, "names": ["a", "b"]}
    assert plain(value, "names") == expected
    text = json.dumps(plain({1: np.arange(2), "flag": True, "none": None}), allow_nan=False)
    assert text == '{"1": [0, 1], "flag": true, "none": null}'


def test_what_has_no_json_is_an_error() -> None:
    with pytest.raises(TypeError, match="no JSON for a object"):
        plain({"x": [object()]})


def test_parts_of_a_value_by_their_names() -> None:
    value = Outer(Ends(0.5, 1.0), Own(3), Path("a"), ())
    expected = {"own": {"number": 3}, "least": 0.5, "json": {"number": 3}}
    assert picked(value, "own, least=ends.low, json=own.json") == expected
    with pytest.raises(AttributeError):
        picked(value, "own, absent")
