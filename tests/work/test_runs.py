"""One run of a command: its manifest, its lock, and its unfinished work."""

from __future__ import annotations

import gzip
import json
import os
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from truerank.errors import InputError
from truerank.options import Scoring, overwrites
from truerank.records import Input
from truerank.work.artifacts import write_text
from truerank.work.runs import run

SCHEMA = ["command", "version", "inputs", "options", "seeds", "packages", "skipped", "artifacts"]


def test_a_folder_and_its_manifest(tmp_path: Path) -> None:
    inputs = [Input("q", "q.qrels", "qrels", 3, "0" * 64)]
    with run("evaluate", inputs, {"scoring": Scoring(rel=2), "seed": 7, "where": {"a": "b"}}, tmp_path / "out") as job:
        job.text("x.txt", "x\n")
        job.skipped = {"missing": ["9"]}
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert list(manifest) == SCHEMA
    assert manifest["inputs"][0] == {"name": "q", "source": "q.qrels", "role": "qrels", "rows": 3, "sha256": "0" * 64}
    assert manifest["options"]["rel"] == 2 and manifest["options"]["where"] == {"a": "b"}
    assert manifest["seeds"] == {"seed": 7}
    assert list(manifest["artifacts"]) == ["x.txt"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["manifest.json", "x.txt"]


def test_one_file_and_its_manifest_beside_it(tmp_path: Path) -> None:
    with run("search", out=tmp_path / "a.run.gz", file=True) as job, job.output("a.run.gz") as stream:
        stream.write(b"1 Q0 a 1 1 x\n")
    assert gzip.decompress((tmp_path / "a.run.gz").read_bytes()) == b"1 Q0 a 1 1 x\n"
    assert list(json.loads((tmp_path / "a.run.gz.manifest.json").read_text())) == SCHEMA
    assert len(list(tmp_path.iterdir())) == 2


def test_unfinished_work_stays_for_the_same_run_only(tmp_path: Path) -> None:
    def broken(options: dict[str, int], name: str) -> Path:
        with pytest.raises(KeyboardInterrupt), run("x", (), options, tmp_path / "out") as job:
            folder = job.unfinished()
            (folder / name).write_text("")
            raise KeyboardInterrupt
        return folder

    first = broken({"a": 1}, "one")
    assert broken({"a": 1}, "two") == first
    assert sorted(path.name for path in first.iterdir()) == ["one", "two"]
    other = broken({"a": 2}, "three")
    assert other != first and not first.exists()
    with run("x", (), {"a": 2}, tmp_path / "out"):
        pass
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["manifest.json"]


HOLD = """
import sys
from truerank.work.artifacts import write_text
from truerank.work.runs import run
with run("x", out=sys.argv[1]) as job:
    print("held", flush=True)
    sys.stdin.readline()
"""


def test_two_processes_do_not_write_one_place(tmp_path: Path) -> None:
    out = tmp_path / "out"
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(out)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None and holder.stdout.readline() == "held\n"
    with (
        pytest.raises(InputError, match=rf"another process writes here now \(process {holder.pid}\)"),
        run("x", out=out),
    ):
        pass
    # A process that is killed leaves no lock behind.
    holder.kill()
    holder.communicate()
    with run("x", out=out):
        pass
    assert (out / "manifest.json").is_file()


@pytest.mark.parametrize(("content", "kind"), [('{"kind": "truerank index"}', "a truerank index"), ("[]", "another")])
def test_a_manifest_that_no_command_wrote_is_spared(content: str, kind: str, tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(content)
    with pytest.raises(InputError, match=f"holds the manifest.json of {kind}"), run("x", out=tmp_path):
        pass
    assert (tmp_path / "manifest.json").read_text() == content
    with run("x", out=tmp_path / "other"):
        pass
    with pytest.raises(InputError, match=r"'truerank x'.*--overwrite"), run("y", out=tmp_path / "other"):
        pass
    before = overwrites.set(True)
    with run("y", out=tmp_path / "other"):
        pass
    overwrites.reset(before)
    assert '"command": "y"' in (tmp_path / "other" / "manifest.json").read_text()


def test_files_of_others_are_neither_replaced_nor_removed(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match=r"notes.txt: a file is there"), run("x", out=tmp_path) as job:
        job.text("other.txt", "new")
        job.text("notes.txt", "theirs")
    with run("x", out=tmp_path) as job:
        job.text("other.txt", "of the run that failed")
    with run("x", out=tmp_path) as job:
        job.text("other.txt", "again")
    assert (tmp_path / "notes.txt").read_text() == "mine"
    theirs = tmp_path / "their" / ".work" / "precious"
    theirs.mkdir(parents=True)
    with pytest.raises(InputError, match="not unfinished work of truerank"), run("x", out=tmp_path / "their"):
        pass
    assert theirs.is_dir()


def contents(folder: Path) -> dict[str, str]:
    return {str(one.relative_to(folder)): one.read_text() if one.is_file() else "" for one in folder.rglob("*")}


def test_a_refusal_at_the_start_leaves_the_output_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "tables").mkdir()
    before = contents(tmp_path)
    with pytest.raises(InputError, match=r"notes.txt: a file is there"), run("x", out=tmp_path) as job:
        (job.unfinished() / "block").write_text("work")
        with run("y", out=tmp_path / "part" / "of") as part:
            part.text("tables/a.txt", "new")
        for name in ("tables/a.txt", "figures/a.svg", "notes.txt"):
            job.text(name, "new")
    assert contents(tmp_path) == before
    with pytest.raises(InputError), run("x", out=tmp_path / "a" / "b") as job:
        job.unfinished()
        raise InputError("bad input")
    with pytest.raises(InputError), run("x", out=tmp_path / "c" / "one.txt", file=True):
        raise InputError("bad input")
    assert contents(tmp_path) == before
    # Work that a mended call goes on with stays: what was there, what another call finds again, and much of it.
    error = InputError("no answer")
    error.continues = True
    with pytest.raises(InputError), run("x", out=tmp_path / "a") as job:
        (job.unfinished() / "block").write_text("work")
        raise error
    with pytest.raises(InputError), run("x", out=tmp_path / "a") as job:
        assert (job.unfinished() / "block").is_file()
        raise InputError("bad input")
    monkeypatch.setattr("truerank.work.runs._WORTH_KEEPING", 0)
    with pytest.raises(InputError), run("y", out=tmp_path / "b") as job:
        (job.unfinished() / "block").write_text("work")
        raise InputError("bad input")
    assert len([*tmp_path.rglob("block")]) == 2


def test_a_page_of_others_is_refused_before_long_work(tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text("mine")
    with pytest.raises(InputError, match=r"report.html: a file is there"), run("x", out=tmp_path) as job:
        job.unfinished()
    assert contents(tmp_path) == {"report.html": "mine"}


def test_an_output_is_no_input(tmp_path: Path) -> None:
    source = tmp_path / "a.run"
    source.write_text("1 Q0 d 1 1 t")
    link = tmp_path / "b.run"
    link.symlink_to(source)
    for options in ({"run": [str(link)]}, {"run": f"name={source}"}):
        with pytest.raises(InputError, match="its own source"), run("x", (), options, source, file=True):
            pass
        with pytest.raises(InputError, match="its own source"), run("x", (), options, tmp_path) as job:
            job.text("a.run", "")
    assert source.read_text() == "1 Q0 d 1 1 t"


def test_devices_pipes_and_links(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    def written(place: Path) -> None:
        with run("x", out=place, file=True) as job:
            job.text(place.name, "a run\n")
            job.log("done")

    place = tmp_path / "pipe"
    os.mkfifo(place)
    reader = subprocess.Popen(["cat", str(place)], stdout=subprocess.PIPE)
    written(place)
    assert reader.communicate(timeout=20)[0] == b"a run\n"
    (tmp_path / "link").symlink_to("target")
    with pytest.raises(InputError, match="a file is there"):
        written(tmp_path / "link")
    (tmp_path / "target").touch()
    before = overwrites.set(True)
    written(tmp_path / "link")
    overwrites.reset(before)
    written(tmp_path / "link")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "target").read_text() == "a run\n"
    written(Path("-"))
    assert capfdbinary.readouterr().out == b"a run\n"
    with socket.socket(socket.AF_UNIX) as stream, pytest.raises(InputError, match="a socket is there"):
        stream.bind(str(tmp_path / "s"))
        written(tmp_path / "s")
    assert {path.name for path in tmp_path.iterdir()} == {
        "pipe", "link", "target", "link.manifest.json", "run.log", "s"
    }  # fmt: skip
    written(Path(os.devnull))
    assert stat.S_ISCHR(Path(os.devnull).stat().st_mode)
    assert not list(Path(os.devnull).parent.glob(".null*"))


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a folder is there"), run("x", out=tmp_path, file=True):
        pass
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written to"), run("x", out=tmp_path / "file" / "out"):
        pass


def test_what_a_killed_process_left_is_removed_by_the_next_one(tmp_path: Path) -> None:
    """A process of another number that still runs keeps its file."""
    ended = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True, check=True
    )
    dead, alive = tmp_path / f".a.txt.{ended.stdout.strip()}.tmp", tmp_path / f".a.txt.{os.getppid()}.tmp"
    others = tmp_path / f".b.txt.{ended.stdout.strip()}.tmp"
    for left in (dead, alive, others):
        left.write_text("half")
    write_text(tmp_path / "a.txt", "whole")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([alive.name, others.name, "a.txt"])


def test_a_folder_of_blocks_is_ours_or_refused(tmp_path: Path) -> None:
    (tmp_path / "x" / "kept").mkdir(parents=True)
    (file := tmp_path / "x" / "kept" / "thesis.txt").write_text("mine")
    with pytest.raises(InputError, match="no manifest of this command"), run("x", out=tmp_path / "x") as job:
        job.claim_folder("kept")
    assert file.read_text() == "mine"
    with pytest.raises(KeyboardInterrupt), run("x", out=tmp_path / "y") as job:
        job.claim_folder("kept").mkdir()
        (tmp_path / "y" / "kept" / "block").write_text("1")
        raise KeyboardInterrupt
    # A run that was stopped finds its blocks again.
    with run("x", out=tmp_path / "y") as job:
        assert (job.claim_folder("kept") / "block").is_file()


def test_what_an_earlier_run_wrote_and_this_one_does_not_is_gone(tmp_path: Path) -> None:
    for names in (("a.txt", "parts/b.txt"), ("a.txt",)):
        (tmp_path / "mine.txt").write_text("mine")
        with run("track report", out=tmp_path) as job:
            for name in names:
                job.text(name, "written")
    left = sorted(path.name for path in tmp_path.rglob("*") if path.is_file())
    assert left == ["a.txt", "manifest.json", "mine.txt"]
