"""Are files of scores what they seem? Splits, copies, scales and contradictions of results, and marks of failures."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import truerank
from truerank.claims.claim import signed

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
    for model in ("m0", "m1"):
        write(two, model, "MSMARCO", dev=entry(scores[model]["Task0"]), test=entry(0.1))
    assert "dev (MSMARCO and Task2)" in truerank.check(two, system="m1", baseline="m0").answer("files").evidence
    means = truerank.leaderboard(two).frames["scores"].filter(system="m1", task="Task0")
    assert means["score"].to_list() == [scores["m1"]["Task0"]]


def changed(place: Path, model: str, task: str, factor: float = 1.0, **values: float) -> None:
    """Rewrites one result: all measures by a factor, and some by value."""
    path = place / model / "rev" / f"{task}.json"
    result = json.loads(path.read_text())
    (one,) = result["scores"]["test"]
    for key, number in one.items():
        one[key] = number * factor if isinstance(number, float) else number
    one.update(values)
    path.write_text(json.dumps(result))


def test_results_in_percent_beside_shares_are_files_at_fault(tmp_path: Path) -> None:
    for name, models in (("one", ["m0"]), ("both", ["m0", "m1"])):
        place = folder(tmp_path / name, drawn())
        for model in models:
            for task in TASKS[:3]:
                changed(place, model, task, 100)
        found = truerank.check(place)
        assert found.conclusion.word == "FILES AT FAULT" and found.base is None
        assert all(part in found.conclusion.reason for part in ("m0 on 3 tasks", "Task0", "scale"))
        assert found.answer("chance").word == "UNKNOWN"
        assert "BOARD03" in {one.rule.code for one in truerank.leaderboard(place).findings}


def test_results_that_are_all_in_percent_are_compared(tmp_path: Path) -> None:
    scores = drawn()
    place = folder(tmp_path, scores)
    for model, task in ((model, task) for model in scores for task in TASKS):
        changed(place, model, task, 100)
    # A hard task: 0.9 and 2 percent.
    changed(place, "m0", TASKS[0], 0.9 / 100 / scores["m0"][TASKS[0]], recall_at_100=4.0)
    changed(place, "m1", TASKS[0], 2 / 100 / scores["m1"][TASKS[0]], recall_at_100=5.0)
    found = truerank.check(place)
    assert found.answer("files").word == "AS THEY SEEM" and found.conclusion.word == "HOLDS"
    assert "BOARD03" not in {one.rule.code for one in truerank.leaderboard(place).findings}


def test_main_scores_on_no_scale_and_results_written_twice_are_no_faults(tmp_path: Path) -> None:
    scores = drawn()
    place = folder(tmp_path, scores)
    for model, (main, other) in {"m0": (0.4, 0.9), "m1": (8.3, 0.8)}.items():
        write(place, model, "Task0", test=entry(other, main_score=main, **{"p-MRR": main}))
        path = place / model / "rev" / "Task1.json"
        one = entry(scores[model]["Task1"])
        path.write_text(json.dumps({"task_name": "Task1", "scores": {"test": [one, one]}}))
    found = truerank.check(place).answer("files")
    assert found.word == "AS THEY SEEM" and not found.facts["faults"]


def test_a_main_score_that_is_no_measure_of_its_file_does_not_count(tmp_path: Path) -> None:
    place = folder(tmp_path, drawn(gap=0.0))
    expected = truerank.check(place, system="m1", baseline="m0")
    changed(place, "m0", "Task2", main_score=0.1)
    found = truerank.check(place, system="m1", baseline="m0")
    assert found.headline is not None and found.headline.topics == 7
    assert found.headline.value == pytest.approx(expected.base.value, abs=0.01)  # type: ignore[union-attr]
    assert "m0 on 1 task (Task2) is no measure of its file (m0/rev/Task2.json)" in found.conclusion.reason
    repair = found.answer("files").repair
    assert repair is not None and (repair.what, repair.topics) == ("without 1 task (Task2)", {"Task2"})
    board = truerank.leaderboard(place)
    assert board.verdicts[-1].word == "NOT COMPARABLE" and "BOARD13" in {one.rule.code for one in board.findings}
    for task in TASKS[:4]:
        changed(place, "m1", task, main_score=0.9)
    assert truerank.check(place).conclusion.word == "FILES AT FAULT"


def test_a_main_score_with_the_value_of_several_measures_is_each_of_them(tmp_path: Path) -> None:
    place = folder(tmp_path, drawn())
    for model, own in drawn().items():
        for task, score in own.items():
            # The main score is MRR@10; in one file MAP@10 has the same value.
            same = {"map_at_10": score} if (model, task) == ("m0", "Task1") else {}
            changed(place, model, task, ndcg_at_10=score / 2, mrr_at_10=score, **same)
    assert "BOARD13" not in {one.rule.code for one in truerank.leaderboard(place).findings}
    assert truerank.check(place).answer("files").word == "AS THEY SEEM"


def test_results_that_both_systems_have_are_named(tmp_path: Path) -> None:
    scores = drawn()
    copied = {**scores, "m0": {task: scores["m1" if task in TASKS[:3] else "m0"][task] for task in TASKS}}
    found = truerank.check(folder(tmp_path / "three", copied))
    assert found.claim is not None and found.claim.system == "m1"
    assert "one result, in all measures, on 3 tasks (Task0, Task1, Task2)" in found.conclusion.reason
    (row,) = found.answer("files").estimates
    assert row.topics == 5 and row.value == pytest.approx(sum(scores["m1"][t] - scores["m0"][t] for t in TASKS[3:]) / 5)
    assert found.base is not None and found.base.topics == 8
    # Solved by both: equal, and no copy.
    solved = folder(tmp_path / "solved", scores)
    for model in scores:
        ones = dict.fromkeys(entry(1.0), 1.0)
        changed(solved, model, "Task0", **{key: one for key, one in ones.items() if key != "hf_subset"})
    assert truerank.check(solved).answer("files").word == "AS THEY SEEM"
    every = folder(tmp_path / "all", dict.fromkeys(scores, scores["m0"]))
    assert truerank.check(every).conclusion.word == "FILES AT FAULT"


def test_results_of_a_third_system_are_named_and_second_names_are_not(tmp_path: Path) -> None:
    scores = drawn(models=3)
    copied = {**scores, "m1": {task: scores["m2" if task in TASKS[:2] else "m1"][task] for task in TASKS}}
    # One model by two names.
    place = folder(tmp_path, {**copied, "again": copied["m0"]})
    found = truerank.check(place, system="m1", baseline="m0")
    reason = found.conclusion.reason
    assert "m1 has the result of m2, in all measures, on 2 tasks (Task0, Task1)" in reason and "again" not in reason
    assert [row.topics for row in found.answer("files").estimates] == [6]


def test_two_systems_with_the_same_scores_are_called_so() -> None:
    draw = random.Random(2)
    values = [round(draw.random(), 3) for _ in range(30)]
    table = {"id": list(range(100, 130)), "a": values, "b": values}
    found = truerank.check(table)
    assert found.conclusion.word == "CANNOT TELL"
    assert "score the same on every question" in found.conclusion.found and "0 on all 30 " in found.conclusion.figure
    table["b"] = [values[0] + 0.001, *values[1:]]
    assert "score the same on every" not in truerank.check(table).conclusion.reason


def test_results_of_mteb_are_of_tasks(tmp_path: Path) -> None:
    place = folder(tmp_path / "two", drawn(gap=0.0))
    found = truerank.check(place, out=tmp_path / "out")
    said = [found.conclusion.reason, repr(found), (tmp_path / "out/card.md").read_text()]
    said += [text for answer in found.answers for text in (answer.evidence, answer.consequence, answer.settles)]
    assert "With 8 tasks, chance alone can explain" in said[0] and "8 can show a difference of " in " ".join(said)
    assert not any("topic" in text for text in said)
    single = folder(tmp_path / "one", {"m0": drawn()["m0"]})
    assert "on 8 tasks" in repr(truerank.check(single))
    for model, task in (("m0", "A"), ("m1", "B")):
        write(tmp_path / "apart", model, task, test=entry(0.5))
    reason = "m0 has scores of 1 task, m1 of 1 task, and no task has both."
    assert truerank.check(tmp_path / "apart").conclusion.reason.startswith(reason)
    table = {"id": [*TASKS], "m0": [*drawn()["m0"].values()], "m1": [*drawn()["m1"].values()]}
    assert "8 questions" in truerank.check(table).conclusion.reason


def test_tasks_of_zeros_among_good_scores_are_named(tmp_path: Path) -> None:
    tasks = [f"Task{number}" for number in range(14)]
    scores = {
        f"m{number}": {task: 0.3 + place / 40 + 0.04 * number for place, task in enumerate(tasks)} for number in (0, 1)
    }
    scores["m0"] |= {task: score + random.Random(task).gauss(0, 0.01) for task, score in scores["m0"].items()}
    scores["m0"] |= {"Task3": 0.0, "Task9": 0.0}
    found = truerank.check(folder(tmp_path, scores), system="m1", baseline="m0")
    assert "m0 scores exactly 0 on 2 tasks (Task3, Task9)" in found.conclusion.reason
    change = f"{signed(found.base.value or 0)} → {signed(found.answer('files').estimates[0].value or 0)}"
    told = found.conclusion.reason.partition("Without 2 tasks (Task3, Task9), ")[2]
    assert change in told.partition(". ")[0]
