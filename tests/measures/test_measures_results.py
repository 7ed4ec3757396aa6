"""An evaluation knows its means, its tables and its files."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from truerank.errors import InputError
from truerank.measures import Coverage, Evaluation, Policy, load_evaluation
from truerank.measures.report import evaluation_table
from truerank.measures.results import PER_TOPIC_SCHEMA
from truerank.version import __version__
from truerank.work.publishing import publish
from truerank.work.runs import run


def example() -> Evaluation:
    values = np.array([[[0.5, math.nan], [2.0, 4.0], [10, 5]], [[0.25, 1.0], [math.inf, math.inf], [0, 7]]])
    return Evaluation(
        runs=("a", "b|c"),
        measures=("nDCG@10", "HMFR", "NumRet"),
        topics=("2", "01"),
        values=values,
        missing={"a": 1, "b|c": 0},
        policy=Policy(ties="ascending", missing="skip", depth=100, rel=2),
        aggregates=("mean", "harmonic", "sum"),
        coverage={"a": Coverage(1, 1, 0, 10, 5), "b|c": Coverage(2, 0, 3, 0, 0)},
        remarks=("HMFR: remarkable.",),
        inputs={"qrels": {"source": None, "rows": 3}},
    )


def test_one_number_per_run_and_measure() -> None:
    found = example()
    assert found.mean.tolist() == [[0.5, 1 / (1 / 2 + 1 / 4) * 2, 15], [0.625, math.inf, 7]]
    assert found.of("b|c", "nDCG@10").tolist() == [0.25, 1.0]
    with pytest.raises(InputError, match=r"no run 'c'.*one of a, b\|c"):
        found.of("c", "nDCG@10")
    with pytest.raises(InputError, match="no measure 'AP'"):
        found.sorted("AP")
    with pytest.raises(ValueError, match="read-only"):
        found.values[0, 0, 0] = 1
    with pytest.raises(ValueError, match="shape"):
        Evaluation(("a",), ("AP",), ("1",), np.zeros((1, 1, 2)), {}, Policy())


def test_the_best_run_comes_first() -> None:
    assert example().sorted("nDCG@10").runs == ("b|c", "a")
    assert example().sorted("HMFR").runs == ("a", "b|c")
    again = example().sorted("nDCG@10").sorted("HMFR")
    assert again.of("b|c", "NumRet").tolist() == [0, 7]


def saved(evaluation: Evaluation, folder: Path) -> Path:
    with run("evaluate", out=folder) as job:
        publish(evaluation, job)
    return folder


def test_the_long_table() -> None:
    frame = example().frame()
    assert frame.schema == pl.Schema(PER_TOPIC_SCHEMA)
    assert frame.rows()[:4] == [
        ("a", "nDCG@10", "2", 0.5), ("a", "nDCG@10", "01", None), ("a", "HMFR", "2", 2.0), ("a", "HMFR", "01", 4.0),
    ]  # fmt: skip
    assert len(frame) == 12


def test_saved_and_opened(tmp_path: Path) -> None:
    found = example()
    folder = saved(found, tmp_path / "out")
    assert sorted(path.name for path in folder.iterdir() if path.is_file()) == [
        "manifest.json", "per_topic.parquet", "summary.json",
    ]  # fmt: skip
    again = load_evaluation(folder)
    assert np.array_equal(again.values, found.values, equal_nan=True)
    for name in ("runs", "measures", "topics", "missing", "policy", "aggregates", "coverage", "remarks", "inputs"):
        assert getattr(again, name) == getattr(found, name), name
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["runs"]["b|c"]["measures"] == {"nDCG@10": 0.625, "HMFR": None, "NumRet": 7.0}
    assert summary == {"version": __version__, "command": "evaluate", **found.json()}
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    saved(again, folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before


def test_values_that_come_from_no_run(tmp_path: Path) -> None:
    plain = Evaluation(("a",), ("mine",), ("1", "2"), np.array([[[1.0, 2.0]]]), {"a": 0}, Policy())
    assert plain.mean.tolist() == [[1.5]]
    assert load_evaluation(saved(plain, tmp_path)).mean.tolist() == [[1.5]]
    assert [column.title for column in evaluation_table(plain).columns] == ["run", "mine", "missing"]


@pytest.mark.parametrize("name", ["summary.json", "per_topic.parquet"])
def test_a_broken_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match=r"no summary\.json here"):
        load_evaluation(tmp_path)
    saved(example(), tmp_path)
    (tmp_path / name).write_bytes(b"{}")
    with pytest.raises(InputError, match="run 'truerank evaluate' again"):
        load_evaluation(tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(InputError, match=f"no {name} here"):
        load_evaluation(tmp_path)
