"""Runs that are values of a program are checked before they are looked at."""

from __future__ import annotations

import polars as pl
import pytest

from truerank import collection
from truerank.errors import InputError


def test_a_run_without_scores_is_a_fault_of_the_input() -> None:
    run = pl.DataFrame({"topic_id": ["1", "2"], "doc_id": ["a", "b"]})
    with pytest.raises(InputError, match="columns missing: score"):
        collection.audit(qrels={"1": {"a": 1}, "2": {"b": 1}}, run={"x": run})
