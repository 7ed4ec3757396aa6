"""Judgments and runs of ranx: with the package where it is installed, otherwise with what its classes offer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import truerank
from truerank.errors import OptionError

try:
    import ranx
except ImportError:
    ranx = None

QRELS = {"1": {"a": 2, "b": 0}, "2": {"c": 1, "d": 3}}
RUN = {"1": {"b": 2.0, "a": 1.0}, "2": {"d": 0.5, "x": 0.25}}


class Like:
    """What `ranx.Qrels` and `ranx.Run` have that is read here."""

    def __init__(self, content: dict[str, dict[str, Any]], name: str | None = None) -> None:
        self._content, self.name = content, name

    def to_dict(self) -> dict[str, dict[str, Any]]:
        return self._content


def pair(name: str | None = None) -> tuple[Any, Any]:
    return (Like(QRELS), Like(RUN, name)) if ranx is None else (ranx.Qrels(QRELS), ranx.Run(RUN, name=name))


def test_what_is_read_is_what_is_in_them() -> None:
    qrels, run = pair("bm25")
    expected = truerank.evaluate(QRELS, RUN, measures="nDCG@10 AP")
    found = truerank.evaluate(qrels, run, measures="nDCG@10 AP")
    assert np.array_equal(found.values, expected.values)
    assert found.runs == ("bm25",)
    if ranx is not None:
        assert found.values[0].mean(axis=1) == pytest.approx(
            list(ranx.evaluate(qrels, run, ["ndcg@10", "map"]).values())
        )


def test_lists_and_mappings_of_runs() -> None:
    qrels, first = pair("first")
    _, second = pair()
    assert truerank.evaluate(qrels, [first, second]).runs == ("first", "run 2")
    assert truerank.evaluate(qrels, {"x": first, "y": second}).runs == ("x", "y")
    with pytest.raises(OptionError, match="one name"):
        truerank.evaluate(qrels, [first, first])
