"""Results of MTEB in the layouts of its versions: one table, read alike by `check` and `leaderboard`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from truerank.audits.leaderboard.board import read_board
from truerank.errors import InputError
from truerank.sources.mteb_results import one_score_each, read_mteb_results
from truerank.sources.recognition import read_as_given

LAYOUTS: dict[str, dict[str, Any]] = {
    "Newer": {"task_name": "Newer", "scores": {"test": [{"main_score": 0.5, "hf_subset": "default"}]}},
    "Named": {"mteb_dataset_name": "Named", "scores": {"test": [{"main_score": 0.5}]}},
    "Older": {"mteb_dataset_name": "Older", "mteb_version": "1.0", "test": {"ndcg_at_10": 0.5}},
    "Bare": {"dev": {"ndcg_at_10": 0.5}, "mteb_dataset_name": "Bare"},
}


def written(place: Path, model: str, revision: str = "r", **values: Any) -> None:
    folder = place / model / revision
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in values.items():
        (folder / f"{name}.json").write_text(json.dumps(value))


def test_check_and_leaderboard_read_every_layout(tmp_path: Path) -> None:
    for model in ("org__a", "org__b"):
        written(tmp_path, model, **LAYOUTS)
    (reading,) = read_as_given([tmp_path])
    assert reading.kind == "results of MTEB" and reading.table is not None
    table = reading.table.scores["org__b"]
    cells = read_board(tmp_path).main.filter(system="org__b")
    assert table["topic_id"].to_list() == sorted(LAYOUTS) == cells["task"].sort().to_list()
    assert table["value"].to_list() == [0.5] * 4 == cells["score"].to_list()


def test_what_has_no_score_is_counted(tmp_path: Path) -> None:
    written(tmp_path, "org__a", **LAYOUTS, model_meta={"training_datasets": {"Newer": ["train"]}})
    written(
        tmp_path, "org__b", Empty={"task_name": "Empty", "scores": {"test": [{"main_score": None}]}},
        Other={"a": 1}, model_meta={"training_datasets": None},
    )  # fmt: skip
    for number, scores in enumerate(([1], {"test": {"main_score": 0.5}}, {"test": [5]}, {"test": None})):
        written(tmp_path, "org__b", **{f"Broken{number}": {"task_name": "Broken", "scores": scores}})
    (tmp_path / "org__b/r/NaN.json").write_text('{"task_name": "NaN", "scores": {"test": [{"main_score": NaN}]}}')
    found = read_mteb_results(tmp_path)
    assert (
        len(found.broken) == 7
        and "org__b/r/NaN.json" in found.broken
        and found.trained == {"org__a": frozenset(["Newer"])}
    )
    with pytest.raises(InputError, match="no scores"):
        read_mteb_results(tmp_path / "org__b")


def test_other_measures_and_what_contradicts_itself(tmp_path: Path) -> None:
    entry = {"main_score": 0.5, "ndcg_at_10": 0.5, "recall_at_10": 0.7, "mrr_at_1": 0.1, "precision_at_1": 0.4,
             "recall_at_100": 0.9}  # fmt: skip
    written(tmp_path, "a", Task={"task_name": "Task", "scores": {"test": [entry]}})
    cells = read_mteb_results(tmp_path).cells
    assert dict(cells.select("measure", "score").iter_rows()) == {"": 0.5, "R@10": 0.7, "R@100": 0.9}
    assert cells["main_measure"].drop_nulls().to_list() == ["ndcg_at_10"]
    assert "0.100" in cells["contradiction"].drop_nulls()[0]


def test_one_split_counts_and_the_fullest_revision(tmp_path: Path) -> None:
    def result(task: str, score: float, split: str = "test") -> dict[str, Any]:
        return {"task_name": task, "scores": {split: [{"main_score": score}]}}

    written(tmp_path, "a", "r1", X=result("X", 0.1), Y=result("Y", 0.1))
    written(tmp_path, "a", "r2", X=result("X", 0.2), Z=result("Z", 0.2))
    written(tmp_path, "b", "r1", X={"task_name": "X", "scores": {s: [{"main_score": 0.3}] for s in ("dev", "test")}})
    chosen = one_score_each(read_mteb_results(tmp_path).cells)
    assert chosen.select("system", "task", "score").sort("system", "task").rows() == [
        ("a", "X", 0.1), ("a", "Y", 0.1), ("a", "Z", 0.2), ("b", "X", 0.3),
    ]  # fmt: skip
    assert chosen["split"].unique().to_list() == ["test"] and isinstance(chosen, pl.DataFrame)
