"""`leaderboard`: what is not comparable is named, ranks have intervals, claims are over shared tasks."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import scipy

import truerank
from truerank.audits.leaderboard import LeaderboardOptions, leaderboard
from truerank.audits.leaderboard.board import block, read_board
from truerank.audits.leaderboard.claims import on_fixed_tasks
from truerank.audits.leaderboard.order import Questions
from truerank.cli import main
from truerank.errors import InputError, OptionError, TwoReadingsError
from truerank.measures.rank_groups import order_by, rank_groups

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


def copied(place: Path, model: str, to: str, change: float = 0.0) -> None:
    for path in (place / model / "r1").glob("*.json"):
        value = json.loads(path.read_text())
        write(place, to, path.stem, value["scores"]["test"][0]["main_score"] + change)


def entries(score: float = 0.5, **measures: float) -> dict[str, list[dict[str, float]]]:
    """A file with the measures of retrieval, the main score being nDCG@10."""
    usual = {"map_at_10": 0.4, "recall_at_10": 0.6, "recall_at_100": 0.8, "mrr_at_10": 0.45, "precision_at_10": 0.1}
    return {"test": [{"main_score": score, "ndcg_at_10": 0.5, **usual, **measures}]}


def measured(place: Path) -> None:
    """For one system the main score is another measure."""
    for number in range(5):
        own = {"ndcg_at_10": 0.5 + number / 50, "map_at_10": 0.3 + number / 50}
        main = own["map_at_10" if number == 2 else "ndcg_at_10"]
        write(place, f"org__model{number}", "Task3", 0.5, scores=entries(main, **own))


def german(place: Path) -> None:
    for number in range(5):
        language = ["deu-Latn" if number == 2 else "eng-Latn"]
        entry = {"main_score": 0.5 + number / 50, "languages": language}
        write(place, f"org__model{number}", "Task3", 0.5, scores={"test": [entry]})


def board_of(place: Path, head: str, *numbers: Callable[[int], float]) -> Path:
    rows = [f"s{at},{','.join(f'{one(at):g}' for one in numbers)}" for at in range(6)]
    (place / "board.csv").write_text("\n".join((head, *rows)) + "\n")
    return place / "board.csv"


@pytest.mark.parametrize(
    "names", ["n_queries,latency_ms", "chunks,seconds", "documents,ci_low", "tokens_used,±", "corpus,std", "n,hits"]
)
@pytest.mark.parametrize("scale", [1, 100])
def test_counts_times_and_ends_of_intervals_are_no_tasks(tmp_path: Path, names: str, scale: int) -> None:
    head = f"config,Law,Health,{names}"
    second = (lambda at: 0.3 + at / 70) if names.endswith(("_ms", "seconds", "low", "std")) else (lambda at: 900 + at)
    scores = [lambda at: scale * (0.4 + at / 37), lambda at: scale * (0.5 + at / 41)]
    found = read_board(board_of(tmp_path, head, *scores, lambda at: 2000 + 3000 * at, second))
    assert set(found.cells["task"]) == {"Law", "Health"}
    assert f"Not taken for scores: {names.replace(',', ', ')}." in found.remarks


@pytest.mark.parametrize(
    "names", ["hit@1,hit@5,mrr", "R@1,R@10,nDCG@10", "recall@5,precision@5,f1", "map,accuracy,P@3"]
)
def test_measures_of_one_test_are_no_tasks(tmp_path: Path, names: str) -> None:
    shares = [lambda at: 0.2 + at / 90, lambda at: 0.4 + at / 80, lambda at: 0.3 + at / 70]
    path = board_of(tmp_path, f"pipeline,{names},n", *shares, lambda _: 2000)
    first, joint = names.partition(",")[0], names.replace(",", "+")
    with pytest.raises(InputError, match="are measures of one test, and no tasks") as fault:
        read_board(path)
    assert f"--columns system=pipeline,score={joint}" in str(fault.value)
    named = read_board(path, f"system=pipeline,score={joint}")
    assert set(named.cells["task"]) == {*names.split(",")}
    with pytest.raises(InputError, match=f"one score of each system, in '{first}', and no task"):
        read_board(path, f"system=pipeline,score={first}")


def test_several_rows_of_a_system_are_tasks_if_somebody_says_so(tmp_path: Path) -> None:
    rows = [f"{system},{part},{8 + at},0.{4 + at}5,0.{3 + at}5" for system in "ab" for at, part in enumerate("xyz")]
    (tmp_path / "b.csv").write_text("\n".join(("system,segment,n_questions,ndcg@5,mrr", *rows)) + "\n")
    choice = "task=segment,system=system,score=ndcg@5"
    with pytest.raises(TwoReadingsError, match="several rows of each system, by 'segment'") as fault:
        read_board(tmp_path / "b.csv")
    assert choice in fault.value.choices
    with pytest.raises(TwoReadingsError, match="on 'segment' in 'ndcg@5', 'mrr'"):
        read_board(tmp_path / "b.csv", "task=segment")
    assert set(read_board(tmp_path / "b.csv", choice).cells["task"]) == {*"xyz"}


def test_languages_are_several_where_none_is_the_same(tmp_path: Path) -> None:
    german(folder(tmp_path))
    assert leaderboard(tmp_path).verdicts[-1].word == "NOT COMPARABLE"
    for number, languages in enumerate((["eng-Latn"], ["eng-Latn", "fra-Latn"], ["eng-Latn"] * 2) * 2):
        entry = {"main_score": 0.5 + number / 50, "languages": languages}
        write(tmp_path, f"org__model{number}", "Task3", 0.5, scores={"test": [entry]})
    assert "BOARD12" not in {one.rule.code for one in leaderboard(tmp_path).findings}


def one_result(place: Path) -> None:
    """Two systems have one result for one task, to the last digit of every measure."""
    for number in range(5):
        score = 0.5 + (1 if number == 2 else number) / 50
        write(place, f"org__model{number}", "Task3", 0.5, scores=entries(score, ndcg_at_10=score))


def trained(place: Path, model: str, names: object, **more: object) -> None:
    (place / model / "r1" / "model_meta.json").write_text(json.dumps({"training_datasets": names, **more}))


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
        (lambda place: trained(place, "org__model1", {"NanoTask3Retrieval": ["train"]}), "BOARD22"),
        (lambda place: write(place, "org__model1", "Task3", 0.5, scores=entries(recall_at_100=0.3)), "BOARD11"),
        (german, "BOARD12"),
        (measured, "BOARD13"),
        (one_result, "BOARD14"),
        (lambda place: write(place, "org__model1", "Task3", 0.0), "BOARD15"),
        (lambda place: [write(place, f"org__model{n}", "Task3", 0.99 + n / 1e5) for n in range(5)], "BOARD16"),
        (
            lambda place: [write(place, "org__model1", task, round(0.31 + n / 50, 2)) for n, task in enumerate(TASKS)],
            "BOARD17",
        ),
        (lambda place: trained(place, "org__model1", None, name="org/other"), "BOARD18"),
        (
            lambda place: write(
                place, "org__model1", "Task3", 0.5, scores={"test": [{"main_score": 0.5}, {"main_score": 0.6}]}
            ),
            "BOARD19",
        ),
        (lambda place: [copied(place, "org__model1", f"org__model1-step{n}", 0.01 * n) for n in (1, 2)], "BOARD20"),
        (lambda place: (place / "org__model1/r1/Task3.json").rename(place / "org__model1/r1/x.json"), "BOARD21"),
    ],
)
def test_what_is_mixed_is_found_and_nothing_else(change: object, code: str, tmp_path: Path) -> None:
    change(folder(tmp_path))  # type: ignore[operator]
    assert codes(leaderboard(tmp_path)) == {code}


def test_percent_contradicts_itself_no_more_than_shares(tmp_path: Path) -> None:
    shares = {"ndcg_at_10": 0.4123, "mrr_at_1": 0.3311, "precision_at_1": 0.3251, "recall_at_10": 0.5, "mrr_at_10": 0.4}
    shares |= {"recall_at_100": 0.4998, "mrr_at_100": 0.3996}
    place = folder(tmp_path)
    for task, own in (("Task3", shares), ("Task4", shares | {"recall_at_100": 0.3})):
        percent = {name: 100 * score for name, score in own.items()}
        write(
            place, "org__model1", task, 0.4, scores={"test": [{"main_score": 41.2, "hf_subset": "default"} | percent]}
        )
    found = leaderboard(place)
    (one,) = (one for one in found.findings if one.rule.code == "BOARD11")
    assert "Task4" in one.evidence and not any(one.rule.code == "BOARD13" for one in found.findings)
    (tmp_path / "a.csv").write_text("model,x,y\na,41.0,1.2\nb,40.0,0.9\n")
    assert "BOARD11" not in codes(leaderboard(tmp_path / "a.csv"))


def test_tasks_of_several_revisions_fill_in_and_are_named(tmp_path: Path) -> None:
    folder(tmp_path)
    (tmp_path / "org__model1/r2").mkdir()
    (tmp_path / "org__model1/r1/Task3.json").rename(tmp_path / "org__model1/r2/Task3.json")
    found = leaderboard(tmp_path)
    assert codes(found) == {"BOARD05"} and found.facts["shared_tasks"] == len(TASKS)
    assert found.facts["compared"] == 5


def test_scores_that_are_rounded_or_nearly_the_same_are_one_system(tmp_path: Path) -> None:
    folder(tmp_path)
    copied(tmp_path, "org__model1", "org__copy", 0.0003)
    (tmp_path / "org__copy/r1/Task3.json").unlink()
    assert codes(leaderboard(tmp_path)) == {"BOARD04", "BOARD06"}


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


def test_cells_that_are_no_scores_are_missing_or_asked_about(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('model,x,y,z,size\na,0.51,"0,7",0.9,"1,300"\nb,n/a,"0,65",ERR,335\nc,0.4,"0,6",0.8,110\n')
    board = read_board(path)
    assert board.cells.sort("task", "system")["score"].to_list() == [0.51, 0.4, 0.7, 0.65, 0.6]
    assert "Read as missing scores: 1 of the cells, such as 'n/a'." in board.remarks
    assert "Read as decimal commas: those in y." in board.remarks
    assert any("'z' is not taken for scores" in remark and "ERR" in remark for remark in board.remarks)
    for text, marks in (
        ("model,x,y\na,0.5,0.6\nb,-1,0.5\n", "-1"),
        ("system,task,score\na,x,0.5\na,y,-999\nb,x,0.2\n", "-999"),
    ):
        path.write_text(text)
        with pytest.raises(InputError, match=f"{marks} in 1 score .*failures, or scores"):
            leaderboard(path)
    path.write_text("model,x,y\na,-0.12,0.6\nb,0.3,-0.45\n")  # correlations
    assert read_board(path).cells["score"].min() == -0.45


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


def test_scores_on_another_scale_are_in_no_order_and_no_claim(tmp_path: Path) -> None:
    draw = random.Random(3)
    tasks = {f"T{n}": draw.uniform(0.3, 0.6) for n in range(12)}
    scores = {f"m{at}": [hard - 0.03 * at + draw.gauss(0, 0.005) for hard in tasks.values()] for at in range(5)}
    scores["m3"] = [100 * score for score in scores["m3"]]
    rows = [f"{name},{','.join(f'{score:.4f}' for score in own)}" for name, own in scores.items()]
    (tmp_path / "b.csv").write_text("\n".join((f"system,{','.join(tasks)}", *rows)) + "\n")
    found = leaderboard(tmp_path / "b.csv", LeaderboardOptions(claim=("m3 > m0", "m0 > m1")))
    words = {one.subject: one for one in found.verdicts}
    assert words["m3 > m0"].word == "CANNOT TELL" and "m3 are on another scale" in words["m3 > m0"].sentence
    assert words["m0 > m1"].word == "HOLDS" and "m0 is first" in words["order"].sentence
    assert words["rows"].word == "NOT COMPARABLE" and "without 12 scores on another scale" in words["rows"].settles


def holes(lead: float, lost: int) -> list[dict[str, object]]:
    """A board of six systems, each worse than the one before; the first one has that lead, and lacks scores."""
    draw = random.Random(5)
    rows: list[dict[str, object]] = [
        {"system": f"m{at}", "task": task, "score": 0.6 - 0.04 * at + (lead if at == 0 else 0) + draw.gauss(0, 0.008)}
        for at in range(6) for task in TASKS
    ]  # fmt: skip
    return rows[lost:]


@pytest.mark.parametrize(
    ("lead", "word", "text"),
    [
        (0.0, "CANNOT TELL", "better than m1 on the tasks that both have (5): +0.0"),
        (-0.04, "CANNOT TELL", "may equal m1 on the tasks that both have (5)"),
        (-0.1, "FIRST", "better than all others, also than those left out, on the tasks that both have: m0."),
    ],
)
def test_no_system_is_first_past_a_better_one_that_lacks_tasks(lead: float, word: str, text: str) -> None:
    rows = holes(lead, 3)
    found = leaderboard(rows)
    verdict = found.verdicts[0]
    assert verdict.word == word and text in verdict.sentence
    assert ("better than all others" in verdict.sentence) == (word == "FIRST")
    (left,) = found.facts["left_out"]
    assert (left["system"], left["why"], left["tasks"]) == ("m0", "no score on Task0, Task1, Task2", 5)
    assert "no score on Task0, Task1, Task2" in truerank.summary(found).show()
    # Asked about others only, nothing is left out.
    others = LeaderboardOptions(systems=tuple(f"m{at}" for at in range(1, 6)))
    assert leaderboard(rows, others).verdicts[0].sentence == "m1 is first: better than all others."


def test_why_a_system_is_left_out_and_where_nothing_is_shared() -> None:
    rows = [
        row | {"score": row["score"] * (100 if (row["system"], row["task"]) in scaled else 1)}  # type: ignore[operator]
        for scaled in [{("m0", "Task3"), ("m0", "Task4"), *(("m5", task) for task in TASKS)}]
        for row in holes(0.0, 0)
    ]
    found = leaderboard(rows)
    why = {one["system"]: (one["why"], one["tasks"]) for one in found.facts["left_out"]}
    every = "another scale on Task0, Task1, Task2, Task3, Task4 and 3 more"
    assert why == {"m0": ("another scale on Task3, Task4", 6), "m5": (every, 0)}
    assert found.verdicts[0].word == "CANNOT TELL" and "Of those left out, 1 more may" in found.verdicts[0].sentence


def test_a_claim_that_rests_on_training(tmp_path: Path) -> None:
    rows = [("a", task, 0.5 + 0.1 * (at < 5)) for at, task in enumerate(TASKS)]
    rows += [("b", task, 0.5 + 0.001 * (-1) ** at) for at, task in enumerate(TASKS)]
    for system, task, score in rows:
        write(tmp_path, system, task, score)
    trained(tmp_path, "a", TASKS[:5])
    assert leaderboard(tmp_path, LeaderboardOptions(claim=("a > b",))).verdicts[0].word == "HOLDS EXCEPT"


def test_claims_name_both_questions_and_are_corrected(tmp_path: Path) -> None:
    draw = np.random.default_rng(3)
    # Better on three tasks of eight by much, worse on the others: clear here, open on others.
    lead = np.array([0.5, 0.5, 0.5, -0.05, -0.05, -0.05, -0.05, -0.05])
    rows = [
        {"system": name, "task": task, "item": item, "score": (name == "a") * lead[at] + draw.normal(0, 0.3)}
        for name in ("a", "b", "c") for at, task in enumerate(TASKS) for item in range(100)
    ]  # fmt: skip
    (one,) = leaderboard(rows, LeaderboardOptions(claim=("a > b",))).verdicts[:1]
    assert one.word == "HOLDS EXCEPT"
    assert "On these 8 tasks: HOLDS" in one.sentence and "another task of this kind: CANNOT TELL" in one.sentence
    several = leaderboard(rows, LeaderboardOptions(claim=("a > b", "a > c"))).verdicts[0]
    assert "2 claims" in several.rests_on and several.sentence != one.sentence


@pytest.mark.parametrize(
    ("leads", "word", "text"),
    [
        ([0.03, 0.04], "CANNOT TELL", "with fewer than 6 tasks, luck cannot be ruled out"),
        ([0.03, 0.03, 0.03], "CANNOT TELL", "with fewer than 6 tasks, luck"),
        ([0.03, 0.04, 0.02, 0.03, 0.035], "CANNOT TELL", "with fewer than 6 tasks, luck"),
        ([0.03, 0.04, 0.02, 0, 0, 0, 0, 0], "CANNOT TELL", "the scores differ on only 3 of 8 tasks"),
        ([0.03, 0.04, 0.02, 0.03, 0.035, 0.03], "HOLDS", "of this kind: HOLDS, +0.0308 (+0.02"),
        ([0.25] * 6, "HOLDS", "of this kind: HOLDS, +0.2500 on each of them"),
    ],
)
def test_a_claim_on_another_task_needs_six_that_differ(leads: list[float], word: str, text: str) -> None:
    rows = [
        {"system": name, "task": f"T{at}", "score": 0.5 + at / 16 + (name == "a") * lead}
        for at, lead in enumerate(leads) for name in "ab"
    ]  # fmt: skip
    verdict = leaderboard(rows, LeaderboardOptions(claim=("a > b",))).verdicts[0]
    assert verdict.word == word and text in verdict.sentence


def test_an_order_on_these_tasks_and_one_on_others(tmp_path: Path) -> None:
    draw = np.random.default_rng(4)
    own = {name: draw.normal(0, 0.3, len(TASKS)) for name in "abcd"}
    rows = [
        {"system": name, "task": task, "item": item, "score": values[at] + draw.normal(0, 0.2)}
        for name, values in own.items() for at, task in enumerate(TASKS) for item in range(200)
    ]  # fmt: skip
    found = leaderboard(rows, out=tmp_path / "out")
    here, kind = found.frames["systems"], found.frames["kind"]
    assert here["system"].to_list() == kind["system"].to_list()
    width = [float((frame["rank_high"] - frame["rank_low"]).sum()) for frame in (here, kind)]
    # Questions of eight tasks tell apart what eight tasks, as a sample of tasks, do not.
    assert width[0] < width[1] and kind["rank_high"].to_list() == [4] * 4
    assert [one.subject for one in found.verdicts[:2]] == ["order on these tasks", "order on tasks of this kind"]


def test_a_table_says_how_scores_were_made(tmp_path: Path) -> None:
    rows = [
        {"model": f"m{n}", "task_name": task, "score": 0.4 + n / 30 + at / 40, "metric": metric, "type": "AB"[at % 2],
         "prompt": "short" if (n, at) == (1, 2) else "long", "split": "test", "seed": seed}
        for n in range(4) for at, task in enumerate(TASKS) for metric in ("nDCG@10", "R@100") for seed in (1, 2)
    ]  # fmt: skip
    found = leaderboard(rows)
    assert codes(found) == {"BOARD10"} and found.facts["cells"] == 4 * len(TASKS)
    assert found.frames["ways"]["how"].to_list()[-2:] == ["mean over types", "R@100, mean"]
    assert len(found.facts["remarks"]) == 2


def test_types_of_tasks_from_a_table(tmp_path: Path) -> None:
    scores = {"a": [0.9, 0.1, 0.1], "b": [0.1, 0.8, 0.8]}
    (tmp_path / "board.csv").write_text(
        ",x,y,z\n" + "".join(f"{name},{','.join(map(str, own))}\n" for name, own in scores.items())
    )
    (tmp_path / "types.csv").write_text("task,type\nx,first\ny,second\nz,second\n")
    found = leaderboard(tmp_path / "board.csv", LeaderboardOptions(types=tmp_path / "types.csv"))
    leaders = dict(found.frames["ways"].select("how", "leader").iter_rows())
    # By type: (.9 + .1) / 2 against (.1 + .8) / 2.
    assert (leaders["mean"], leaders["mean over types"]) == ("b", "a")
    with pytest.raises(InputError, match="tasks and types"):
        leaderboard(tmp_path / "board.csv", LeaderboardOptions(types=tmp_path / "board.csv"))


def test_only_the_first(tmp_path: Path) -> None:
    folder(tmp_path, systems=8)
    # The task that one of the others lacks counts again.
    (tmp_path / "org__model0/r1/Task3.json").unlink()
    found = leaderboard(tmp_path, LeaderboardOptions(first=3))
    assert found.frames["systems"]["system"].to_list() == ["org__model7", "org__model6", "org__model5"]
    assert found.facts["shared_tasks"] == len(TASKS)


def test_names_as_people_write_them(tmp_path: Path) -> None:
    claims = ("org/model4 > org/model0", "model4 > model0")
    found = leaderboard(folder(tmp_path), LeaderboardOptions(claim=claims)).verdicts[:2]
    assert {one.subject for one in found} == {"org__model4 > org__model0"}


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
    rows = [("a", "x", 1.0), ("a", "y", 1.0), ("b", "y", 1.0)]
    assert block(pl.DataFrame(rows, ["system", "task", "score"], orient="row"))[:2] == (["a", "b"], ["y"])


def run(words: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 0


@pytest.mark.usefixtures("undrawn")
def test_the_command_writes_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder(tmp_path / "results")
    run(["leaderboard", str(tmp_path / "results"), "--out", str(tmp_path / "out")])
    page = (tmp_path / "out/report.html").read_text()
    assert "FIRST" in capsys.readouterr().out and 'aria-label="ranks' in page
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


def test_ranks_by_own_pairs_against_loops() -> None:
    draw = np.random.default_rng(5)
    scores = draw.normal(size=(12, 6)) + np.linspace(0, 2.5, 6)
    found = rank_groups(scores, resamples=300, seed=7)
    signs = np.random.default_rng(7).integers(0, 2, (300, 12), dtype=np.int8) * 2 - 1
    for one in range(6):
        left, better, worse = [other for other in range(6) if other != one], 0, 0
        while left:
            gaps = {other: scores[:, one] - scores[:, other] for other in left}
            drawn = [max(abs(studentised(sign * (gap - gap.mean()))) for gap in gaps.values()) for sign in signs]
            bar = np.quantile(drawn, 0.95)
            told = [other for other, gap in gaps.items() if abs(studentised(gap)) > bar]
            better += sum(gaps[other].mean() > 0 for other in told)
            worse += sum(gaps[other].mean() < 0 for other in told)
            left = [other for other in left if other not in told] if told else []
        assert (found.own_low[one], found.own_high[one]) == (1 + worse, 6 - better)
    assert (found.own_high - found.own_low).sum() < (found.high - found.low).sum()


def studentised(gap: np.ndarray) -> float:
    return float(gap.mean() / (gap.std(ddof=1) / np.sqrt(len(gap))))


def test_questions_within_tasks_have_a_stratified_error() -> None:
    draw = np.random.default_rng(6)
    sizes = [40, 10, 25]
    tasks = np.repeat(np.arange(3), sizes)
    scores = draw.normal(size=(75, 2)) + tasks[:, None] * [1.0, 0.0]
    weights = 1 / (3 * np.bincount(tasks)[tasks])
    low, high = on_fixed_tasks(Questions(scores, weights, tasks), 0.95)
    gaps = [scores[tasks == task, 0] - scores[tasks == task, 1] for task in range(3)]
    error = np.sqrt(sum(scipy.stats.sem(gap) ** 2 for gap in gaps)) / 3
    middle = np.mean([gap.mean() for gap in gaps])
    assert (low, high) == pytest.approx((middle - 1.959964 * error, middle + 1.959964 * error), rel=1e-6)


def test_few_rows_show_nothing() -> None:
    found = rank_groups(np.array([[1.0, 5.0], [1.1, 5.2], [0.9, 5.1]]))
    assert not found.enough and found.first.all() and found.high.tolist() == [2, 2]


def test_orders() -> None:
    scores = np.array([[1.0, 2.0, 3.0], [3.0, 1.0, 2.0], [1.0, 2.0, 9.0]])
    assert np.argmax(order_by(scores, "mean")) == 2
    assert order_by(scores, "mean rank").tolist() == pytest.approx([-1 / 3, -1 / 3, 2 / 3])
    assert order_by(scores, "median").tolist() == [1.0, 2.0, 3.0]


def test_what_is_a_systems_own_is_no_task(tmp_path: Path) -> None:
    """Averages, ranks, sizes and dates are left out and named, in columns, in rows, and in a row for each score."""
    names = ["Rank (Borda)", "Zero-shot", "Memory Usage (MB)", "Total Parameters (B)", "Max Tokens", "Mean (Task)",
             "Mean (TaskType)", "Average (56 datasets)", "Release Date", "License", "Embedding Dimensions"]  # fmt: skip
    rows = [
        {"Model": name, **dict.fromkeys(names, 900 * number + 1), "Rank1Retrieval": 50.0 + number, "STS": 40 + number}
        for number, name in enumerate("abc")
    ]
    wide = leaderboard(pl.DataFrame(rows))
    assert sorted(wide.facts["tasks_compared"]) == ["Rank1Retrieval", "STS"]
    assert all(name in wide.facts["remarks_text"] for name in names)
    scores = [("T1", 1.0, 2.0), ("T2", 3.0, 4.0), ("Average", 2.0, 3.0)]
    tall = read_board(pl.DataFrame(scores, ["task", "a", "b"], orient="row"))
    single = [
        {"system": name, "task": task, "score": one}
        for task, *own in scores
        for name, one in zip("ab", own, strict=True)
    ]
    for board in (tall, read_board(single)):
        assert set(board.main["task"]) == {"T1", "T2"}
        assert "Not taken for tasks: Average." in board.remarks or "rows of means" in board.remarks[0]


def test_tables_are_read_together_by_columns_that_are_named(tmp_path: Path) -> None:
    tall, wide = tmp_path / "tall.csv", tmp_path / "wide.csv"
    tall.write_text("Nom;Corpus;Valeur\na;x;.5\na;y;.6\nb;x;.4\nb;y;.7\n", encoding="utf-8")
    wide.write_text("Model,x,y,extra\nc,.1,.2,9\nd,.3,.4,9\n", encoding="utf-8")
    with pytest.raises(InputError, match="system=COLUMN,task=COLUMN"):
        leaderboard(str(tall))
    found = leaderboard([str(tall)], columns="system=Nom,task=Corpus,score=Valeur")
    assert (
        found.readings[0]
        .sentence()
        .endswith("2 systems on 2 tasks; system in 'Nom'; task in 'Corpus'; score in 'Valeur'")
    )
    assert found.frames["scores"].filter(system="b")["score"].to_list() == [0.4, 0.7]
    named = leaderboard(str(wide), columns="score=x+y")
    assert named.facts["tasks"] == 2 and "extra" in named.readings[0].remarks[0]
    tall.write_text("model,task,score\na,x,.5\na,y,.6\nb,x,.4\nb,y,.7\n", encoding="utf-8")
    wide.write_text("Model,x,y\nc,.1,.2\nd,.3,.4\n", encoding="utf-8")
    both = leaderboard([str(tall), str(wide)])
    assert both.facts["systems"] == 4 and len(both.readings) == 2
    with pytest.raises(InputError, match="several scores for x of a"):
        leaderboard([str(tall), str(tall)])
