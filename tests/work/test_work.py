"""Blocks resume, engines agree, artifacts are whole."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl
import pytest

from truerank.errors import InputError
from truerank.work.artifacts import Artifacts, atomic_path, digest
from truerank.work.blocks import BlockStore, run_blocks
from truerank.work.engines import LocalEngine, RayEngine, in_order, open_engine


class Numbers(NamedTuple):
    number: int
    values: tuple[int, ...]


@dataclass(frozen=True)
class Square:
    """Squares numbers; refuses 13."""

    def open(self) -> Callable[[Numbers], pl.DataFrame]:
        def work(block: Numbers) -> pl.DataFrame:
            if 13 in block.values:
                raise InputError("13 is unlucky", "leave it out")
            return pl.DataFrame({"square": [value**2 for value in block.values]})

        return work


class Unable:
    """A task that cannot be opened."""

    def open(self) -> Callable[[Numbers], pl.DataFrame]:
        raise AssertionError("nothing is left to do")


BLOCKS = [Numbers(number, (number, number + 100)) for number in range(20, 32)]
BLOCKS = [Numbers(place, block.values) for place, block in enumerate(BLOCKS)]


def results(store: BlockStore, count: int) -> list[list[int]]:
    return [store.load(number)["square"].to_list() for number in range(count)]


OWN_TASK = """
class Task:
    def open(self):
        return lambda block: block.number

class Block:
    number = 0
"""


@pytest.mark.parametrize(
    ("script", "said"),
    [
        # Nothing of the work is defined in the script: it needs no look at its name, and does not run again.
        (
            "print('begun')\nfound = truerank.collection.audit(truerank.collection.Parts(docs='docs.jsonl'), "
            "work=TWO)\nprint(len(found.verdicts))",
            "begun\n2\n",
        ),
        (
            f"{OWN_TASK}\nif __name__ == '__main__':\n"
            "    print(list(truerank.work.engines.LocalEngine(1).run(Task(), [Block()])))",
            "[(0, 0)]\n",
        ),
    ],
)
def test_processes_do_not_run_the_script_again(script: str, said: str, tmp_path: Path) -> None:
    documents = (json.dumps({"_id": f"d{number}", "text": f"text of {number}"}) for number in range(20))
    (tmp_path / "docs.jsonl").write_text("\n".join(documents))
    head = "import truerank, truerank.options, truerank.work.engines\nTWO = truerank.options.Workers(workers=2)\n"
    (tmp_path / "script.py").write_text(head + script)
    run = [sys.executable, "script.py"]
    done = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == (said, 0), done.stderr


def test_processes_that_start_together_leave_the_script_and_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    script, before = sys.modules["__main__"], dict(os.environ)
    both = threading.Barrier(2)
    process = multiprocessing.get_context("spawn").Process
    start = process.start

    def slow(started: Any) -> None:
        # The first one waits for the second, as long as that one can come here.
        with contextlib.suppress(threading.BrokenBarrierError):
            both.wait(1)
        start(started)

    monkeypatch.setattr(process, "start", slow)
    with ThreadPoolExecutor(2) as threads:
        found = [*threads.map(lambda _: [*LocalEngine(1).run(Square(), BLOCKS[:1])], "ab")]
    assert [len(one) for one in found] == [1, 1]
    assert sys.modules["__main__"] is script
    assert dict(os.environ) == before


def test_local_engine_keeps_order_and_passes_on_errors() -> None:
    assert [number for number, _ in LocalEngine().run(Square(), BLOCKS)] == list(range(12))
    with pytest.raises(InputError, match="13 is unlucky"):
        list(LocalEngine().run(Square(), [Numbers(0, (1,)), Numbers(1, (13,))]))

    def broken():
        yield BLOCKS[0]
        raise InputError("the file ends in the middle")

    with pytest.raises(InputError, match="ends in the middle"):
        list(LocalEngine().run(Square(), broken()))


def test_abandoned_stream_stops_its_reader() -> None:
    read: list[int] = []

    def endless():
        number = 0
        while True:
            read.append(number)
            yield Numbers(number, (1,))
            number += 1

    stream = LocalEngine().run(Square(), endless())
    next(stream)
    stream.close()
    assert len(read) < 10


@pytest.mark.slow
def test_ray_engine_gives_the_same(tmp_path: Path) -> None:
    ray = pytest.importorskip("ray", reason="Ray is not installed: the Ray engine is not tested")
    # The workers must find this module, which defines the task.
    places = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    found = {"env_vars": {"PYTHONPATH": os.pathsep.join(filter(None, places))}}
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR", runtime_env=found)
    try:
        engine = RayEngine(workers=2)
        local, remote = BlockStore(tmp_path / "local"), BlockStore(tmp_path / "ray")
        assert run_blocks(Square(), BLOCKS, local, LocalEngine()) == 12
        assert run_blocks(Square(), BLOCKS, remote, engine) == 12
        assert results(local, 12) == results(remote, 12)
        with pytest.raises(InputError, match="13 is unlucky"):
            list(engine.run(Square(), [Numbers(0, (13,))]))
    finally:
        ray.shutdown()


def test_finished_blocks_are_not_worked_on_again(tmp_path: Path) -> None:
    store = BlockStore(tmp_path)
    settled: list[int] = []

    def settle(frame: pl.DataFrame) -> pl.DataFrame:
        settled.append(frame["square"][0])
        return frame

    with pytest.raises(InputError):
        run_blocks(Square(), [*BLOCKS[:5], Numbers(5, (13,))], store, LocalEngine(), settle)
    assert settled == [block.values[0] ** 2 for block in BLOCKS[:5]]
    before = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    settled.clear()
    assert run_blocks(Square(), BLOCKS, store, LocalEngine(), settle) == 12
    assert sorted(settled) == [block.values[0] ** 2 for block in BLOCKS]
    assert all((tmp_path / name).stat().st_mtime_ns == when for name, when in before.items())


def test_half_written_block_is_not_a_block(tmp_path: Path) -> None:
    store = BlockStore(tmp_path)
    (tmp_path / "00000000.99.tmp").write_bytes(b"half")
    assert not store.has(0)
    assert run_blocks(Square(), BLOCKS[:1], store, LocalEngine()) == 1
    assert results(store, 1) == [[400, 14400]]


def test_unknown_engine_is_refused() -> None:
    with pytest.raises(InputError, match="no engine called 'spark'"):
        open_engine("spark")


def test_artifacts_are_hashed_into_the_manifest(tmp_path: Path) -> None:
    artifacts = Artifacts(tmp_path / "out")
    artifacts.json("summary.json", {"b": 1, "a": "ü"})
    artifacts.parquet("table.parquet", pl.DataFrame({"x": [1, 2]}))
    artifacts.log("end")
    assert (tmp_path / "out/summary.json").read_bytes() == '{\n  "b": 1,\n  "a": "ü"\n}\n'.encode()
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["run.log", "summary.json", "table.parquet"]


def test_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "result.txt"
    path.write_text("old")
    with pytest.raises(RuntimeError), atomic_path(path) as temporary:
        temporary.write_text("half")
        raise RuntimeError
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_artifacts_refuse_a_file_as_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written to"):
        Artifacts(tmp_path / "file")


def test_digest_ignores_key_order() -> None:
    assert digest({"a": 1, "b": [2]}) == digest({"b": [2], "a": 1}) != digest({"a": 1, "b": [3]})


def test_results_come_in_the_order_of_the_blocks() -> None:
    assert list(in_order(iter([(2, "c"), (0, "a"), (1, "b"), (3, "d")]))) == ["a", "b", "c", "d"]
    found = in_order(LocalEngine(2).run(Square(), BLOCKS))
    assert [frame["square"][0] for frame in found] == [block.values[0] ** 2 for block in BLOCKS]


def test_a_stream_that_was_read_to_its_end_is_not_read_again(tmp_path: Path) -> None:
    store = BlockStore(tmp_path / ".work" / "run" / "step")
    assert store.total is None
    assert run_blocks(Square(), BLOCKS, store, LocalEngine(), known=True) == store.total == 12
    settled = []

    def settle(frame: pl.DataFrame) -> pl.DataFrame:
        settled.append(frame["square"][0])
        return frame

    def unread() -> Iterator[Any]:
        raise AssertionError
        yield

    assert run_blocks(Unable(), unread(), store, LocalEngine(), settle, known=True) == 12
    assert settled == [block.values[0] ** 2 for block in BLOCKS]
    (store.folder / "00000003.arrow").unlink()
    with pytest.raises(AssertionError):
        run_blocks(Square(), unread(), store, LocalEngine(), known=True)
    store.remove()
    assert store.total is None


@pytest.mark.parametrize("name", ["shard:1/2", "rays"])
def test_engines_that_do_not_exist_are_refused(name: str) -> None:
    with pytest.raises(InputError, match="no engine called"):
        open_engine(name)
