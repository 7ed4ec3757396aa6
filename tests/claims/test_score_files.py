"""Are files of scores what they seem? Splits, copies, scales and contradictions of results, and marks of failures."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import truerank

TASKS = [f"Task{number}" for number in range(8)]
Scores = Mapping[str, Mapping[str, float]]


def entry(score: float, **changed: float) -> dict[str, Any]:
    """One result with more than the main score, which is one of its measures."""
    shares = {"map_at_10": 0.9, "mrr_at_10": 0.95, "recall_at_10": 0.8, "recall_at_100": 0.97, "precision_at_10": 0.3}
    measures = {"ndcg_at_10": score, **{name: score * share for name, share in shares.items()}}
    return {"main_score": score, "hf_subset": "default", **measures, **changed}


def write(place: Path, model: str, task: str, **splits: dict[str, Any]) -> None:
    own = place / model / "rev"
    own.mkdir(parents=True, exist_ok=True)
    scores = {split: [one] for split, one in splits.items()}
    (own / f"{task}.json").write_text(json.dumps({"task_name": task, "mteb_version": "2.0", "scores": scores}))


def drawn(seed: int = 1, models: int = 2, gap: float = 0.05) -> Scores:
    """Scores of models by task: each model is better than the last one."""
    draw = random.Random(seed)
    hard = {task: draw.uniform(0.3, 0.6) for task in TASKS}
    return {
        f"m{number}": {task: round(hard[task] + gap * number + draw.uniform(0, 0.02), 5) for task in TASKS}
        for number in range(models)
    }


def folder(place: Path, scores: Scores) -> Path:
    for model, own in scores.items():
        for task, score in own.items():
            write(place, model, task, test=entry(score))
    return place


def difference(place: Path) -> float:
    found = truerank.check(place, system="m1", baseline="m0")
    assert found.base is not None and found.base.value is not None
    return found.base.value


def test_the_test_split_counts_whatever_other_systems_have(tmp_path: Path) -> None:
    two, six = tmp_path / "two", tmp_path / "six"
    for place, models in ((two, 2), (six, 6)):
        scores = drawn(models=6)
        for model in list(scores)[:models]:
            folder(place, {model: scores[model]})
            write(place, model, "Task0", train=entry(0.9), test=entry(scores[model]["Task0"]))
            # All have dev; the pair has test, too.
            splits = {"test": entry(scores[model]["Task1"])} if model in ("m0", "m1") else {}
            write(place, model, "Task1", dev=entry(0.1), train=entry(0.2), **splits)
            write(place, model, "Task2", dev=entry(scores[model]["Task2"]), train=entry(0.2))
        write(place, "m0", "Task3", dev=entry(0.1))
    scores = drawn(models=6)
    expected = sum(scores["m1"][task] - scores["m0"][task] for task in TASKS if task != "Task3") / 7
    assert difference(two) == pytest.approx(expected) == difference(six)
    found = truerank.check(six, system="m1", baseline="m0")
    sentence = found.answer("files").evidence
    assert "test (6 tasks) and dev (Task2)" in sentence and "train (Task0, Task1 and Task2)" in sentence
    assert "no split has scores of both: Task3" in sentence and sentence in found.conclusion.reason
    board = truerank.leaderboard(six, claim=["m1 > m0"])
    assert f"{expected:+.4f}" in board.verdicts[0].sentence
    means = truerank.leaderboard(two).frames["scores"].filter(system="m1", task="Task0")
    assert means["score"].to_list() == [scores["m1"]["Task0"]]
