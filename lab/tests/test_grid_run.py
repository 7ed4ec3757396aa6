"""Running a grid: killed and resumed, extended, partly failed, on Ray; always the same cells, none run twice."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from grid_example import DESIGN, write_example
from truerank.errors import InputError
from truerank.work.engines import LocalEngine, Lost
from truerank.work.progress import Quiet
from truerank_lab.grid import (
    GridRun,
    RunOptions,
    costs,
    open_results,
    read_design,
)
from truerank_lab.grid.execution import run as run_grid
from truerank_lab.grid.execution import status as status_of
from truerank_lab.grid.plan import make_plan
from truerank_lab.grid.results import cell_folder, is_done

_ONE = RunOptions(workers=1)
_LONG = DESIGN.replace("seeds: [0, 1]", f"seeds: {list(range(5))}")


@pytest.fixture(scope="module", autouse=True)
def short_trials() -> Iterator[None]:
    """A trial ends with the first rows: how long a training takes is no matter here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(costs, "_TRIAL_SECONDS", 0.0)
        yield


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> GridRun:
    """The uninterrupted grid: 20 cells."""
    folder = tmp_path_factory.mktemp("whole")
    return run_grid(read_design(write_example(folder, _LONG)), out=folder / "out", options=_ONE)


def test_what_a_grid_leaves(whole: GridRun) -> None:
    results = open_results(whole.folder)
    assert whole.cells == {"all": 20, "done": 20, "failed": 0, "missing": 0}
    assert results.cells.equals(pl.read_parquet(whole.folder / "record.parquet"))
    assert results.cells["cell"].n_unique() == 20
    assert set(results.cells.filter(pl.col("size") == 24)["steps"]) == {3}  # 12 rows in batches of 4
    cell = results.cells.filter(kind="test", size=60, seed=0)["cell"][0]
    scores = results.scores(cell)
    candidates = results.first_stage("notes")
    assert candidates.group_by("topic_id").len()["len"].max() == 8
    assert scores.filter("candidate").select("topic_id", "doc_id").equals(candidates.select("topic_id", "doc_id"))
    ranked = results.run(cell, "notes")
    first = ranked.filter(topic_id="t0")
    expected = scores.filter(pl.col("candidate") & (pl.col("topic_id") == "t0"))
    assert first["score"].to_list() == sorted(expected["score"], reverse=True)
    assert first["rank"].to_list() == list(range(1, len(first) + 1))
    leaked = results.leaked("notes")
    assert leaked.filter("relevant").height == leaked.filter(~pl.col("relevant")).height == 6
    # Every leaked document has a score, also of rankers that did not see it.
    none = results.scores(results.cells.filter(kind="none")["cell"][0])
    for frame in (scores, none):
        assert leaked.join(frame, on=["collection", "topic_id", "doc_id"], how="anti").is_empty()
        assert frame.select("topic_id", "doc_id").is_duplicated().sum() == 0
    outside = scores.filter(~pl.col("candidate"))
    assert len(outside)
    assert outside.join(candidates, on=["topic_id", "doc_id"]).is_empty()
    assert results.leaking_topics("notes") == ()
    assert len(results.folds("notes")) == 2
    summary = json.loads((whole.folder / "summary.json").read_text())
    assert summary["design"]["models"]["knrm"]["changes"] == {"max_query": 5, "max_document": 20, "batch": 4}
    assert "done" in repr(whole) and whole.estimate is not None and "20 runs" in whole.estimate.sentence()


@pytest.mark.slow
def test_killed_interrupted_and_resumed_it_equals_the_uninterrupted_one(whole: GridRun, tmp_path: Path) -> None:
    design = write_example(tmp_path, _LONG)
    out = tmp_path / "out"
    finished: dict[Path, int] = {}
    for wanted, ending in ((2, signal.SIGKILL), (6, signal.SIGINT)):
        run = _start(design, out)
        _wait_for(lambda wanted=wanted: len(_done(out)) >= wanted)
        run.send_signal(ending)
        code = run.wait(60)
        assert code == (130 if ending == signal.SIGINT else -signal.SIGKILL)
        _wait_for(lambda: not _workers_alive(out))
        now = {path: path.stat().st_mtime_ns for path in _done(out)}
        assert finished.items() <= now.items()
        assert len(now) < 20
        finished = now
    run = _start(design, out)
    assert run.wait(120) == 0
    assert finished.items() <= {path: path.stat().st_mtime_ns for path in _done(out)}.items()
    for path in sorted((out / "cells").glob("*/cell.log")):
        events = [json.loads(line)["event"] for line in path.read_text().splitlines()]
        assert events.count("done") == 1 or events.count("started") > 1
        # Nothing was begun again after it was finished.
        assert events[-1] == "done"
    _same_results(out, whole.folder)


@pytest.mark.parametrize("name", ["scores.parquet", "cell.json"])
def test_a_damaged_cell_is_refused_and_made_again(whole: GridRun, name: str, tmp_path: Path) -> None:
    shutil.copytree(whole.folder, out := tmp_path / "out")
    cell = whole.record["cell"][3]
    damaged = cell_folder(out, cell) / name
    content = damaged.read_bytes()
    damaged.write_bytes(content.replace(b"0", b"1", 1) if name == "cell.json" else content[: len(content) // 2])
    results = open_results(out)
    if name == "scores.parquet":
        with pytest.raises(InputError, match="is not what was written here"):
            results.scores(cell)
    assert not is_done(out, cell)
    assert sum(is_done(out, each) for each in whole.record["cell"]) == len(whole.record) - 1
    # Cells of earlier versions have no records.
    damaged.with_name(f"{name}.sum").unlink()
    assert is_done(out, cell)


def test_a_folder_of_others_among_the_inputs_stays(tmp_path: Path) -> None:
    file = tmp_path / "out" / "inputs" / "collections" / "notes" / "thesis.txt"
    file.parent.mkdir(parents=True)
    file.write_text("mine")
    with pytest.raises(InputError, match="choose another place"):
        run_grid(read_design(write_example(tmp_path, DESIGN)), out=tmp_path / "out", options=_ONE)
    assert file.read_text() == "mine"


@pytest.mark.slow
def test_ray_gives_the_same_numbers(whole: GridRun, tmp_path: Path) -> None:
    ray = pytest.importorskip("ray")
    design = read_design(write_example(tmp_path, DESIGN.replace("seeds: [0, 1]", "seeds: [0]")))
    try:
        run = run_grid(design, out=tmp_path / "out", options=RunOptions(engine="ray", workers=2))
        with pytest.raises(InputError, match=r"a block needs \d+ CPU, and the cluster has"):
            settings = {"models.knrm.cpus": "4096"}
            run_grid(
                read_design(design.file, settings=settings), out=tmp_path / "out", options=RunOptions(engine="ray")
            )
    finally:
        ray.shutdown()
    assert run.cells["done"] == 4
    for cell in run.record["cell"]:
        own, other = (root / "cells" / cell / "scores.parquet" for root in (run.folder, whole.folder))
        assert own.read_bytes() == other.read_bytes()


@pytest.mark.slow
def test_extended_partly_failed_and_tried_again(whole: GridRun, tmp_path: Path) -> None:
    """The same data in another folder, with a model and a seed more: what is there is not run again."""
    path = write_example(tmp_path)
    out = shutil.copytree(whole.folder, tmp_path / "out")
    before = {file: file.stat().st_mtime_ns for file in _done(out)}
    assert len(before) == 20
    poisoned = DESIGN.replace("seeds: [0, 1]", "seeds: [0, 9]").replace(
        "models:\n",
        "models:\n  poison: {model: knrm, vectors: vectors.txt, changes: {max_query: 5, precision: fp16}}\n",
    )
    path.write_text(poisoned)
    run = run_grid(read_design(path), out=out, options=_ONE)
    after = {file: file.stat().st_mtime_ns for file in _done(out)}
    assert before.items() <= after.items() and len(after) == 24
    of_model = {name: set(some["status"]) for (name,), some in run.record.group_by("model")}
    assert of_model == {"poison": {"failed"}, "knrm": {"done"}}
    assert all("precision fp16 on the CPU" in reason for _, reason in run.failed)
    assert "cell.log" in repr(run)
    log = (out / "cells" / run.failed[0][0] / "cell.log").read_text()
    assert "Traceback" in log and "leave precision=no there" in log
    # What failed is not tried again unless that is asked for.
    assert run_grid(read_design(path), out=out, options=_ONE).estimate.left == 0
    again = run_grid(read_design(path), out=out, options=RunOptions(workers=1, retry_failed=True))
    assert len(again.failed) == 8
    status = status_of(out)
    assert status.cells == {"all": 16, "done": 8, "failed": 8, "missing": 0}
    with pytest.raises(InputError, match="not finished"):
        open_results(out).scores(run.failed[0][0])


def test_costs_are_told_before_and_can_be_too_high(tmp_path: Path) -> None:
    design = read_design(write_example(tmp_path))
    costed = run_grid(design, out=tmp_path / "out", options=_ONE, dry_run=True)
    estimate = costed.estimate
    assert estimate is not None and not (tmp_path / "out" / "manifest.json").exists()
    assert (estimate.cells, estimate.trainings, estimate.left, estimate.done) == (8, 8, 8, 0)
    assert 0 < estimate.hours(16) <= estimate.hours(1) < 1
    assert not _done(tmp_path / "out")
    assert "a short trial" in repr(costed)
    with pytest.raises(InputError, match=r"max_hours: 8 runs to do .* and 1e-09 hours were allowed"):
        run_grid(design, out=tmp_path / "out", options=RunOptions(workers=1, max_hours=1e-9))
    with pytest.raises(InputError, match="no results of a grid"):
        open_results(tmp_path)
    with pytest.raises(InputError, match="no engine called"):
        RunOptions(engine="dask")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "sizes: [24, 60], instances: none",
            "sizes: [24, 80], instances: none",
            r"has 60 instances \(30 rows\), and 80",
        ),
        ("qrels: qrels.txt", "qrels: none.jsonl", "columns"),
        ("max_query: 5", "max_quer: 5", "no setting 'max_quer'"),
        ("vectors: vectors.txt", "vectors: absent.txt", "absent"),
        ("topics: topics.tsv", "topics: vectors.txt", "no judged topic of notes has a title"),
    ],
)
def test_faults_of_the_data_are_told_before_anything_runs(old: str, new: str, message: str, tmp_path: Path) -> None:
    design = read_design(write_example(tmp_path, DESIGN.replace(old, new)))
    with pytest.raises(InputError, match=message):
        run_grid(design, out=tmp_path / "out", options=_ONE)
    assert not (tmp_path / "out" / "cells").exists()


@pytest.mark.slow
def test_documents_of_training_that_only_share_an_id_are_told_apart(tmp_path: Path) -> None:
    path = write_example(tmp_path, DESIGN.replace("kind: test", "kind: leak"))
    rows = [json.loads(line) for line in (tmp_path / "test.jsonl").read_text().splitlines()]
    for row in rows[:2]:
        row["role"] = "leak"
    rows[0]["relevant"] = "w01 w02 another document with the id of one of the collection"
    for row in rows[2:6]:
        row["role"] = "none"
    (tmp_path / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    settings = {"seeds": "[0]", "sets.none.sizes": "24", "sets.test.sizes": "24"}
    results = open_results(run_grid(read_design(path, settings=settings), out=tmp_path / "out", options=_ONE).folder)
    leaked = results.leaked("notes").filter("relevant")
    assert leaked["doc_id"].to_list() == [f"training:{rows[0]['relevant_id']}", rows[1]["relevant_id"]]
    assert results.leaking_topics("notes") == ("t0", "t1")
    scores = results.scores(results.cells["cell"][0]).filter(topic_id="t0")
    own = scores.filter(doc_id=f"training:{rows[0]['relevant_id']}")["score"][0]
    same = scores.filter(doc_id=rows[0]["relevant_id"])["score"][0]
    assert own != same


@pytest.mark.slow
def test_draws_a_checkpoint_and_topics_that_are_counted(tmp_path: Path) -> None:
    """Each seed has rows of its own; a trained ranker, opened as it is, scores what it scored when it was trained."""
    changed = DESIGN.replace("    depth: 8", "    depth: 8\n    topic_count: 6")
    changed = changed.replace("  test: {kind: test, for: notes, sizes: [24, 60], instances: test.jsonl}\n", "")
    plain = changed.replace("sizes: [24, 60], instances: none.jsonl", "sizes: [24], instances: 'rows-{seed}.jsonl'")
    path = write_example(tmp_path, plain)
    rows = (tmp_path / "none.jsonl").read_text().splitlines(keepends=True)
    for seed, own in ((0, rows), (1, rows[::-1])):
        (tmp_path / f"rows-{seed}.jsonl").write_text("".join(own))
    drawn = run_grid(read_design(path), out=tmp_path / "out", options=RunOptions(workers=1, keep_models=True))
    assert drawn.cells == {"all": 2, "done": 2, "failed": 0, "missing": 0}
    by_seed = dict(drawn.record.select("seed", "cell").rows())
    # Alone, each draw is the same set: its cell has the same address, which follows from the rows.
    for seed in (0, 1):
        path.write_text(plain.replace("{seed}", str(seed)))
        alone = make_plan(read_design(path, settings={"seeds": f"[{seed}]"}), tmp_path / f"alone-{seed}", Quiet())
        assert [cell.address for cell in alone.cells] == [by_seed[seed]]
    assert set(json.loads((drawn.folder / "summary.json").read_text())["sets"]) == {"none.0", "none.1"}

    model = drawn.folder / "cells" / by_seed[1] / "model"
    ready = plain.replace("models:\n", f"  ready: {{kind: other, for: notes, checkpoint: {model}}}\nmodels:\n")
    ready = ready.replace("  knrm: {", "  ready: {model: monot5:t5-base, sets: [ready]}\n  knrm: {sets: [none], ")
    path.write_text(ready)
    run = run_grid(read_design(path), out=tmp_path / "out", options=_ONE)
    assert run.estimate is not None
    assert (run.estimate.trainings, run.estimate.done, run.estimate.left) == (3, 2, 1)
    results = open_results(run.folder)
    one = results.cells.filter(model="ready").row(0, named=True)
    assert (one["status"], one["steps"], one["loss"], one["size"], one["recipe"]) == ("done", 0, None, 0, "no training")
    assert results.scores(one["cell"]).equals(results.scores(by_seed[1]))

    wrong = read_design(path, settings={"collections.notes.topic_count": "7"})
    with pytest.raises(InputError, match="notes has 6 judged topics with a text, and the design says 7"):
        run_grid(wrong, out=tmp_path / "wrong", options=_ONE, dry_run=True)


class _Deadly:
    """A task that kills its worker on one block."""

    def open(self):
        return self._work

    @staticmethod
    def _work(block):
        if block.number == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return block.number * 2


class _Block:
    def __init__(self, number: int) -> None:
        self.number = number


def test_a_worker_that_dies_takes_no_other_block_along() -> None:
    found = dict(LocalEngine(2, tolerant=True).run(_Deadly(), [_Block(number) for number in range(4)]))
    assert found == {0: 0, 1: Lost("its process was killed by SIGKILL, perhaps for want of memory"), 2: 4, 3: 6}


def _start(design: Path, out: Path) -> subprocess.Popen[bytes]:
    words = ["run", str(design), "--out", str(out), "--workers", "1", "--json"]
    code = f"from truerank_lab.cli import main; main({words!r})"
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _done(out: Path) -> list[Path]:
    return sorted((out / "cells").glob("*/cell.json"))


def _workers_alive(out: Path) -> bool:
    lines = [line for path in (out / "cells").glob("*/cell.log") for line in path.read_text().splitlines()]
    processes = {event["process"] for line in lines if "process" in (event := json.loads(line))}
    return any(Path(f"/proc/{process}/cmdline").is_file() for process in processes)


def _wait_for(condition, seconds: float = 90) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def _same_results(one: Path, other: Path) -> None:
    """All files but logs and inputs have the same bytes; the designs differ in the folder of the data."""
    exempt = {"run.log", "cell.log", "lock", "design.yaml", "manifest.json", "summary.json"}
    names = [
        sorted(
            path.relative_to(root)
            for path in root.rglob("*")
            if path.is_file() and path.name not in exempt and "inputs" not in path.parts
        )
        for root in (one, other)
    ]
    assert names[0] == names[1]
    for name in names[0]:
        assert (one / name).read_bytes() == (other / name).read_bytes(), name
    assert not (one / ".work").exists() or not [path for path in (one / ".work").iterdir() if path.name != "lock"]
