"""What is printed: no character of the input commands a terminal; a full disk names the path."""

from __future__ import annotations

import errno
import sqlite3
import warnings
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from truerank.cli.app import main
from truerank.errors import InputError
from truerank.text.printable import printable
from truerank.work.artifacts import atomic_path

_HARMFUL = "\x1b[2J\x07\x08\x9b2J\u202e\u2066\ud800\x7f\r\x00\u2028"


def test_only_harmful_characters_are_replaced() -> None:
    assert printable(_HARMFUL) == "\ufffd[2J" + "\ufffd" * 3 + "2J" + "\ufffd" * 7
    whole = "tab\tline\nümlaut 漢字 \U0001f600 עברית \u200b"
    assert printable(whole) == whole


@pytest.mark.parametrize("ending", ["text", "json", "csv", "markdown"])
def test_a_run_cannot_clear_the_screen(ending: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "q").write_text("1\x1b[2J 0 d 1\n")
    (tmp_path / "r").write_text("1\x1b[2J Q0 d 1 1.5\x1b[2J t\n")
    with pytest.raises(SystemExit) as ended:
        main(["evaluate", "--qrels", str(tmp_path / "q"), "--run", str(tmp_path / "r"), "--format", ending])
    shown = capsys.readouterr()
    assert ended.value.code == 2
    assert "\x1b" not in shown.out + shown.err
    assert "1.5\ufffd[2J" in shown.err


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        pl.exceptions.ComputeError("No space left on device (os error 28)"),
        pl.exceptions.ComputeError("parquet: File out of specification: Invalid thrift: transport error"),
        sqlite3.OperationalError("database or disk is full"),
        OSError("5 requested and 0 written"),
    ],
)
def test_a_full_disk_names_the_path(error: Exception, tmp_path: Path) -> None:
    with pytest.raises(OSError) as caught, atomic_path(tmp_path / "table.parquet"):
        raise error
    assert caught.value.filename == str(tmp_path / "table.parquet")
    assert list(tmp_path.iterdir()) == []


def test_numpy_polars_and_python_name_the_path_of_a_full_device(tmp_path: Path) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("no /dev/full here")
    for write in (
        lambda: full.open("wb").write(b"x" * (1 << 20)),
        lambda: np.arange(1 << 20).tofile(full),
        lambda: pl.DataFrame({"a": range(1 << 16)}).write_parquet(full),
    ):
        with pytest.raises(OSError) as caught, atomic_path(tmp_path / "x"):
            write()
        assert caught.value.filename is not None


def test_an_index_on_a_full_disk_names_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "docs.tsv").write_text("d1\ta text\nd2\tanother text\n")

    def full(*_: object, **__: object) -> None:
        raise OSError("23461 requested and 5088 written")

    monkeypatch.setattr(np, "save", full)
    with pytest.raises(SystemExit) as ended:
        main(["index", str(tmp_path / "docs.tsv"), "--out", str(tmp_path / "index")])
    assert ended.value.code == 2
    assert str(tmp_path / "index") in capsys.readouterr().err
    assert not list(tmp_path.glob("*index*"))


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (InputError("two of them differ", "give one"), "truerank evaluate: two of them differ."),
        (OSError(errno.ENOSPC, "No space left on device"), "truerank evaluate: No space left on device."),
        (OSError("5 requested and 0 written"), "truerank evaluate: 5 requested and 0 written."),
        (FileNotFoundError(errno.ENOENT, "No such file", "x"), "x: No such file."),
        (MemoryError(), "truerank: there is not enough memory."),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), "truerank: there is not enough memory."),
        (BrokenPipeError(errno.EPIPE, "Broken pipe"), "truerank evaluate: Broken pipe."),
        (BaseException("a panic"), "truerank failed: BaseException: a panic."),
    ],
)
def test_every_error_has_a_place(
    error: BaseException, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(*_: object) -> None:
        raise error

    monkeypatch.setattr("truerank.measures.scoring.parse_measures", fails)
    with pytest.raises(SystemExit) as ended:
        main(["evaluate", "--qrels", "x", "--run", "y"])
    assert capsys.readouterr().err.startswith(said)
    assert ended.value.code == (70 if "failed" in said else 71 if "memory" in said else 2)


def test_warnings_of_libraries_are_one_printable_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def warns(*_: object) -> None:
        warnings.warn("a name \x1b[2J\nof two lines", stacklevel=1)
        raise InputError("no", where="here")

    monkeypatch.setattr("truerank.measures.scoring.parse_measures", warns)
    with pytest.raises(SystemExit):
        main(["evaluate", "--qrels", "x", "--run", "y"])
    assert capsys.readouterr().err == "warning: a name \ufffd[2J of two lines\nhere: no.\n"
