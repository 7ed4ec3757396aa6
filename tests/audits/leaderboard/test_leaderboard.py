"""`leaderboard`: what is not comparable is named, ranks have intervals, claims are over shared tasks."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import truerank
from truerank.audits.leaderboard import LeaderboardOptions, leaderboard
from truerank.audits.leaderboard.board import block, read_board
from truerank.cli import main
from truerank.errors import InputError, OptionError
from truerank.measures.rank_groups import letters, order_by, rank_groups

TASKS = [f"Task{number}" for number in range(8)]


def folder(place: Path, *, systems: int = 5, seed: int = 1) -> Path:
    """Results as MTEB writes them, in two forms; nothing is mixed."""
    draw = random.Random(seed)
    hard = {task: draw.uniform(0.2, 0.6) for task in TASKS}
    for number, task in itertools.product(range(systems), TASKS):
        score = hard[task] + 0.03 * number + draw.uniform(-0.01, 0.01)
        write(place, f"org__model{number}", task, score)
    return place


def write(place: Path, model: str, task: str, score: float, revision: str = "r1", **changed: object) -> None:
    own = place / model / revision
    own.mkdir(parents=True, exist_ok=True)
    value = {"task_name": task, "dataset_revision": "abc", "mteb_version": "2.0.0",
             "scores": {"test": [{"main_score": score, "hf_subset": "default"}]}} | changed  # fmt: skip
    (own / f"{task}.json").write_text(json.dumps(value))


def codes(found: truerank.core.audit.Audit) -> set[str]:
    return {one.rule.code for one in found.findings}


def test_a_clean_folder(tmp_path: Path) -> None:
    found = leaderboard(folder(tmp_path))
    assert not found.findings
    assert [one.word for one in found.verdicts] == ["FIRST", "COMPARABLE"]
    assert found.frames["systems"]["system"].to_list() == [f"org__model{number}" for number in (4, 3, 2, 1, 0)]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda place: write(place, "org__model1", "Task3", 0.5, dataset_revision="other"), "BOARD01"),
        (lambda place: write(place, "org__model1", "Task3", 0.5, scores={"dev": [{"main_score": 0.5}]}), "BOARD02"),
        (lambda place: write(place, "org__model1", "Task3", 51.0), "BOARD03"),
        (lambda place: (place / "org__model1/r1/Task3.json").unlink(), "BOARD04"),
        (lambda place: write(place, "org__model1", "Task3", 0.9, revision="r2"), "BOARD05"),
        (lambda place: copied(place, "org__model1", "org__copy"), "BOARD06"),
        (lambda place: write(place, "org__model1", "Task3", 0.5, mteb_version="1.0"), "BOARD07"),
        (lambda place: write(place, "org__model1", "Task3", 0.5, dataset_revision="external"), "BOARD08"),
        (lambda place: trained(place, "org__model1", {"Task3": ["train"]}), "BOARD09"),
    ],
)
def test_what_is_mixed_is_found_and_nothing_else(change: object, code: str, tmp_path: Path) -> None:
    change(folder(tmp_path))  # type: ignore[operator]
    assert codes(leaderboard(tmp_path)) == {code}


def copied(place: Path, model: str, to: str) -> None:
    for path in (place / model / "r1").glob("*.json"):
        (place / to / "r1").mkdir(parents=True, exist_ok=True)
        (place / to / "r1" / path.name).write_bytes(path.read_bytes())


def trained(place: Path, model: str, names: object) -> None:
    (place / model / "r1" / "model_meta.json").write_text(json.dumps({"training_datasets": names}))


def test_older_results_are_read(tmp_path: Path) -> None:
    folder(tmp_path)
    old = {
        "mteb_dataset_name": "Task3",
        "dataset_revision": "abc",
        "mteb_version": "2.0.0",
        "test": {"ndcg_at_10": 0.4},
    }
    (tmp_path / "org__model1/r1/Task3.json").write_text(json.dumps(old))
    cells = read_board(tmp_path).cells.filter((pl.col("system") == "org__model1") & (pl.col("task") == "Task3"))
    assert cells["score"].to_list() == [0.4]


def test_three_orientations_of_a_table_are_one_board(tmp_path: Path) -> None:
    scores = {"a": [0.5, 0.6, 0.7], "b": [0.4, 0.65, 0.1]}
    tasks = ["x", "y", "z"]
    (tmp_path / "systems.csv").write_text(
        "model,x,y,z,average\n" + "".join(f"{name},{','.join(map(str, own))},9\n" for name, own in scores.items())
    )
    (tmp_path / "tasks.csv").write_text(
        "task,a,b\n" + "".join(f"{task},{scores['a'][at]},{scores['b'][at]}\n" for at, task in enumerate(tasks))
    )
    long = [f"{name},{task},{own[at]}\n" for name, own in scores.items() for at, task in enumerate(tasks)]
    (tmp_path / "long.csv").write_text("system,task,score\n" + "".join(long))
    boards = [
        read_board(tmp_path / f"{name}.csv").cells.sort("system", "task") for name in ("systems", "tasks", "long")
    ]
    assert boards[0].equals(boards[1]) and boards[1].equals(boards[2])
    assert boards[0]["score"].to_list() == [*scores["a"], *scores["b"]]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("model,task\na,x\n", "none of scores"),
        ("q,x,y\n1,2,3\n", "no column of systems or tasks"),
        ("model,x\na,1\n", "fewer than two columns"),
        ("system,task,score\na,x,1\na,x,2\n", "several scores"),
        ("system,task,score\na,x,high\n", "is not a score"),
        ("system,task,score\n,x,1\n", "without a system"),
    ],
)
def test_tables_that_are_no_board(text: str, fault: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(InputError, match=fault):
        leaderboard(tmp_path / "a.csv")


def test_folders_and_options_at_fault(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{}")
    for place in (tmp_path, tmp_path / "absent"):
        with pytest.raises(InputError):
            leaderboard(place)
    own = folder(tmp_path / "board")
    wrong = (
        LeaderboardOptions(claim=("a > b",)),
        LeaderboardOptions(claim=("org__model1",)),
        LeaderboardOptions(tasks=("no",)),
        LeaderboardOptions(systems=("org__model1",)),
    )
    for options in wrong:
        with pytest.raises(OptionError):
            leaderboard(own, options)


def test_claims(tmp_path: Path) -> None:
    folder(tmp_path)
    trained(tmp_path, "org__model4", {"Task0": [], "Task1HardNegatives": []})
    claims = ("org__model4 > org__model0", "org__model0 > org__model4")
    holds, not_ = leaderboard(tmp_path, LeaderboardOptions(claim=claims)).verdicts[:2]
    assert (holds.word, not_.word) == ("HOLDS", "DOES NOT HOLD")
    assert "2 tasks that either was trained on" in holds.sentence


def test_a_claim_that_rests_on_training(tmp_path: Path) -> None:
    rows = [("a", task, 0.5 + 0.1 * (at < 5)) for at, task in enumerate(TASKS)]
    rows += [("b", task, 0.5 + 0.001 * (-1) ** at) for at, task in enumerate(TASKS)]
    for system, task, score in rows:
        write(tmp_path, system, task, score)
    trained(tmp_path, "a", TASKS[:5])
    assert leaderboard(tmp_path, LeaderboardOptions(claim=("a > b",))).verdicts[0].word == "HOLDS EXCEPT"


def test_scores_of_questions_are_the_sample(tmp_path: Path) -> None:
    draw = np.random.default_rng(2)
    rows = [
        {"system": name, "task": task, "item": item, "score": draw.normal(0.5 + 0.2 * (name == "a"), 0.3)}
        for name in ("a", "b") for task in ("x", "y") for item in range(200)
    ]  # fmt: skip
    found = leaderboard(rows, LeaderboardOptions(claim=("a > b",)))
    assert found.verdicts[1].word == "FIRST" and "over questions" in found.verdicts[0].sentence
    assert "questions are taken" in found.facts["chance_over"]
    few = leaderboard([row | {"item": None} for row in rows if row["item"] == 0])
    assert few.verdicts[0].word == "CANNOT TELL"


def test_a_block_without_holes() -> None:
    rows = [(system, task, 1.0) for system in "abc" for task in "xyz" if (system, task) != ("c", "x")]
    systems, tasks, scores = block(pl.DataFrame(rows, ["system", "task", "score"], orient="row"))
    assert (systems, tasks, scores.shape) == (["a", "b"], ["x", "y", "z"], (3, 2))


def run(words: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 0


def test_the_command_writes_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder(tmp_path / "results")
    run(["leaderboard", str(tmp_path / "results"), "--out", str(tmp_path / "out")])
    page = (tmp_path / "out/report.html").read_text()
    assert "FIRST" in capsys.readouterr().out and 'id="ranks' in page
    again = tmp_path / "again"
    run(["leaderboard", str(tmp_path / "results"), "--out", str(again)])
    assert (again / "summary.json").read_bytes() == (tmp_path / "out/summary.json").read_bytes()


# -- statistics -------------------------------------------------------------------------------------------------------


def by_loops(scores: np.ndarray, resamples: int, seed: int, confidence: float) -> np.ndarray:
    """The first step of the comparison of all pairs, one draw and pair at a time."""
    rows, systems = scores.shape
    signs = np.random.default_rng(seed).integers(0, 2, (resamples, rows), dtype=np.int8) * 2 - 1
    pairs = list(itertools.combinations(range(systems), 2))
    apart = {pair: scores[:, pair[0]] - scores[:, pair[1]] for pair in pairs}
    largest = []
    for sign in signs:
        values = []
        for gap in apart.values():
            drawn = sign * (gap - gap.mean())
            values.append(abs(drawn.mean()) / (drawn.std(ddof=1) / np.sqrt(rows)))
        largest.append(max(values))
    bar = np.quantile(largest, confidence)
    better = np.zeros((systems, systems), bool)
    for (one, other), gap in apart.items():
        value = gap.mean() / (gap.std(ddof=1) / np.sqrt(rows))
        better[one, other], better[other, one] = value > bar, -value > bar
    return better


def test_pairs_against_loops() -> None:
    draw = np.random.default_rng(5)
    scores = draw.normal(size=(12, 6)) + np.linspace(0, 2.5, 6)
    found = rank_groups(scores, resamples=300, seed=7)
    one_step = by_loops(scores, 300, 7, 0.95)
    assert one_step.any() and not (one_step & ~found.better).any()
    # Later steps only add: where the first finds nothing more, both are the same.
    assert found.better.sum() - one_step.sum() <= 3
    assert np.array_equal(found.low, 1 + found.better.sum(axis=0))


def test_equal_systems_are_one_group_about_as_often_as_asked() -> None:
    draw = np.random.default_rng(8)
    wrong = groups = 0
    for seed in range(200):
        found = rank_groups(draw.normal(size=(14, 8)), resamples=300, seed=seed)
        wrong += bool(found.better.any())
        groups += not found.first.all()
    # 5% of 200, with three standard errors.
    assert wrong <= 20 and groups <= 20


def test_few_rows_show_nothing() -> None:
    found = rank_groups(np.array([[1.0, 5.0], [1.1, 5.2], [0.9, 5.1]]))
    assert not found.enough and found.first.all() and found.high.tolist() == [2, 2]


def test_letters_overlap() -> None:
    better = np.zeros((4, 4), bool)
    better[0, 2] = better[0, 3] = better[1, 3] = True
    assert letters(np.arange(4), better) == ((0, 1), (1, 2), (2, 3))


def test_orders() -> None:
    scores = np.array([[1.0, 2.0, 3.0], [3.0, 1.0, 2.0], [1.0, 2.0, 9.0]])
    assert np.argmax(order_by(scores, "mean")) == 2
    assert order_by(scores, "mean rank").tolist() == pytest.approx([-1 / 3, -1 / 3, 2 / 3])
    assert order_by(scores, "median").tolist() == [1.0, 2.0, 3.0]
