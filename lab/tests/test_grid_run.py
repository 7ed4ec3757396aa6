"""Running a grid: killed and resumed, extended, partly failed, on Ray; always the same cells, none run twice."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

from grid_example import DESIGN, write_example
from truerank.errors import InputError
from truerank.work.progress import Quiet
from truerank_lab.grid.design import read_design
from truerank_lab.grid.execution import GridRun, RunOptions
from truerank_lab.grid.execution import run as run_grid
from truerank_lab.grid.plan import make_plan
from truerank_lab.grid.results import GridResults, cell_folder, is_done
from truerank_lab.training import InstanceTexts, train

_ONE = RunOptions(workers=1)
_LONG = DESIGN.replace("seeds: [0, 1]", f"seeds: {list(range(5))}")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> GridRun:
    """The uninterrupted grid: 20 cells."""
    folder = tmp_path_factory.mktemp("whole")
    return run_grid(read_design(write_example(folder, _LONG)), out=folder / "out", options=_ONE)


def test_what_a_grid_leaves(whole: GridRun) -> None:
    results = GridResults(whole.folder)
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
    assert len(results.folds("notes")) == 2
    assert results.design.model("knrm").changes == {"max_query": 5, "max_document": 20, "batch": 4}
    assert "done" in repr(whole)


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
        now = {path: path.stat().st_mtime_ns for path in _done(out)}
        assert finished.items() <= now.items()
        assert len(now) < 20
        finished = now
    run = _start(design, out)
    assert run.wait(120) == 0
    assert finished.items() <= {path: path.stat().st_mtime_ns for path in _done(out)}.items()
    _same_results(out, whole.folder)


@pytest.mark.parametrize("name", ["scores.parquet", "cell.json"])
def test_a_damaged_cell_is_refused_and_made_again(whole: GridRun, name: str, tmp_path: Path) -> None:
    shutil.copytree(whole.folder, out := tmp_path / "out")
    cell = whole.record["cell"][3]
    damaged = cell_folder(out, cell) / name
    content = damaged.read_bytes()
    damaged.write_bytes(content.replace(b"0", b"1", 1) if name == "cell.json" else content[: len(content) // 2])
    results = GridResults(out)
    if name == "scores.parquet":
        with pytest.raises(InputError, match="not finished, or was changed"):
            results.scores(cell)
    assert not is_done(out, cell)
    assert sum(is_done(out, each) for each in whole.record["cell"]) == len(whole.record) - 1


@pytest.mark.slow
def test_ray_gives_the_same_numbers(whole: GridRun, tmp_path: Path) -> None:
    ray = pytest.importorskip("ray")
    design = read_design(write_example(tmp_path, DESIGN.replace("seeds: [0, 1]", "seeds: [0]")))
    try:
        run = run_grid(design, out=tmp_path / "out", options=RunOptions(engine="ray", workers=2))
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
        "models:\n  poison: {model: knrm, vectors: '${HERE}/vectors.txt', changes: {loss: hinge, margin: 1.0e+39}}\n",
    )
    path.write_text(poisoned)
    run = run_grid(read_design(path), out=out, options=_ONE)
    after = {file: file.stat().st_mtime_ns for file in _done(out)}
    assert before.items() <= after.items() and len(after) == 24
    of_model = {name: set(some["status"]) for (name,), some in run.record.group_by("model")}
    assert of_model == {"poison": {"failed"}, "knrm": {"done"}}
    assert all("the loss is" in reason for _, reason in run.failed)
    assert run.failed[0][0] in repr(run)
    found = json.loads((out / "cells" / run.failed[0][0] / "failed.json").read_text())
    assert "Traceback" in found["details"] and "lower learning_rate" in found["details"]
    # What failed is tried again.
    path.write_text(poisoned.replace(", margin: 1.0e+39", ""))
    again = run_grid(read_design(path), out=out, options=_ONE)
    assert again.cells == {"all": 16, "done": 16, "failed": 0, "missing": 0}
    with pytest.raises(InputError, match="not finished"):
        GridResults(out).scores(run.failed[0][0])


def test_costs_are_told_and_nothing_is_prepared(whole: GridRun, tmp_path: Path) -> None:
    design = read_design(write_example(tmp_path))
    costed = run_grid(design, out=tmp_path / "out", options=_ONE, dry_run=True)
    assert not (tmp_path / "out").exists()
    assert costed.costs is not None and costed.costs.rows() == [("knrm", 8, 4 * 24 + 4 * 60, None)]
    assert "8 cells to do" in repr(costed)
    # A seed that is there already, and one that is not: by the seconds of what is there.
    more = read_design(design.file, settings={"seeds": [4, 5]})
    (row,) = run_grid(more, out=whole.folder, dry_run=True).costs.rows()
    results = GridResults(whole.folder)
    seconds = sum(results.seconds(cell) for cell in results.cells["cell"])
    assert row[:3] == ("knrm", 4, 168) and row[3] == pytest.approx(seconds / (20 * 42) * 168 / 3600)
    with pytest.raises(InputError, match="no results of a grid"):
        GridResults(tmp_path)
    with pytest.raises(InputError, match="no engine called"):
        run_grid(design, out=tmp_path / "out", options=RunOptions(engine="dask"))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "none, collections: notes, sizes: [24, 60]",
            "none, collections: notes, sizes: [24, 80]",
            r"has 60 instances \(30 rows\), and 80",
        ),
        ("/qrels.txt", "/none.jsonl", "columns"),
        ("max_query: 5", "max_quer: 5", "no setting 'max_quer'"),
        ("/vectors.txt", "/absent.txt", "absent"),
        ("/topics.tsv", "/vectors.txt", "no judged topic of notes has a title"),
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
    settings = {"seeds": [0], "sets.none.sizes": 24, "sets.test.sizes": 24}
    results = GridResults(run_grid(read_design(path, settings=settings), out=tmp_path / "out", options=_ONE).folder)
    leaked = results.leaked("notes").filter("relevant")
    assert leaked["doc_id"].to_list() == [f"training:{rows[0]['relevant_id']}", rows[1]["relevant_id"]]
    scores = results.scores(results.cells["cell"][0]).filter(topic_id="t0")
    own = scores.filter(doc_id=f"training:{rows[0]['relevant_id']}")["score"][0]
    same = scores.filter(doc_id=rows[0]["relevant_id"])["score"][0]
    assert own != same


@pytest.mark.slow
def test_draws_a_checkpoint_and_topics_that_are_counted(tmp_path: Path) -> None:
    """Each seed has rows of its own; a trained ranker, opened as it is, scores what it scored when it was trained."""
    changed = DESIGN.replace("    depth: 8", "    depth: 8\n    topic_count: 6")
    changed = changed.replace(
        "  test: {kind: test, collections: notes, sizes: [24, 60], instances: '${HERE}/test.jsonl'}\n", ""
    )
    plain = changed.replace(
        "sizes: [24, 60], instances: '${HERE}/none.jsonl'", "sizes: [24], instances: '${HERE}/rows-{seed}.jsonl'"
    )
    path = write_example(tmp_path, plain)
    rows = (tmp_path / "none.jsonl").read_text().splitlines(keepends=True)
    for seed, own in ((0, rows), (1, rows[::-1])):
        (tmp_path / f"rows-{seed}.jsonl").write_text("".join(own))
    drawn = run_grid(read_design(path), out=tmp_path / "out", options=_ONE)
    assert drawn.cells == {"all": 2, "done": 2, "failed": 0, "missing": 0}
    by_seed = dict(drawn.record.select("seed", "cell").rows())
    # Alone, each draw is the same set: its cell has the same address, which follows from the rows.
    for seed in (0, 1):
        path.write_text(plain.replace("{seed}", str(seed)))
        alone = make_plan(read_design(path, settings={"seeds": [seed]}), tmp_path / f"alone-{seed}", Quiet())
        assert alone.cells["cell"].to_list() == [by_seed[seed]]

    model = tmp_path / "knrm-1"
    options = {"max_query": 5, "max_document": 20, "batch": 4}
    texts = InstanceTexts(docs=str(tmp_path / "docs.jsonl"))
    (tmp_path / "first.jsonl").write_text("".join(rows[::-1][:12]))
    train(
        "knrm",
        str(tmp_path / "first.jsonl"),
        model,
        seed=1,
        set_=options,
        vectors=str(tmp_path / "vectors.txt"),
        texts=texts,
    )
    ready = plain.replace("models:\n", f"  ready: {{kind: other, collections: notes, checkpoint: {model}}}\nmodels:\n")
    ready = ready.replace("  knrm: {", "  ready: {model: monot5:t5-base, sets: [ready]}\n  knrm: {sets: [none], ")
    path.write_text(ready)
    run = run_grid(read_design(path), out=tmp_path / "out", options=_ONE)
    assert run.cells["done"] == 3
    results = GridResults(run.folder)
    one = results.cells.filter(model="ready").row(0, named=True)
    assert (one["status"], one["steps"], one["loss"], one["size"], one["recipe"]) == ("done", 0, None, 0, "no training")
    assert results.scores(one["cell"]).equals(results.scores(by_seed[1]))

    wrong = read_design(path, settings={"collections.notes.topic_count": 7})
    with pytest.raises(InputError, match="notes has 6 judged topics with a text, and the design says 7"):
        run_grid(wrong, out=tmp_path / "wrong", options=_ONE)


def _start(design: Path, out: Path) -> subprocess.Popen[bytes]:
    words = ["run", str(design), "--out", str(out), "--workers", "1", "--json"]
    code = f"from truerank_lab.cli import main; main({words!r})"
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _done(out: Path) -> list[Path]:
    return sorted((out / "cells").glob("*/cell.json"))


def _wait_for(condition, seconds: float = 300) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def _same_results(one: Path, other: Path) -> None:
    """All files but logs, seconds and inputs have the same bytes; the designs differ in the folder of the data."""
    exempt = {"run.log", "lock", "design.yaml", "manifest.json", "seconds.json"}
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
