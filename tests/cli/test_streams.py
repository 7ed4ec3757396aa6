"""What is printed where stdout and stderr are closed, full, or of an encoding that lacks characters; what the
environment makes of a command."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

RUN = "1 Q0 d 1 1.5 t\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("streams")
    (found / "q").write_text("1 0 d 1\n")
    (found / "κ–\U0001f600run").write_text(RUN)
    return found


def ended(folder: Path, *more: str, shell: str = "", qrels: str = "q", **environment: str) -> tuple[int, str, str]:
    """Runs `evaluate`; the exit code, and what it wrote to stdout and stderr."""
    words = [sys.executable, "-m", "truerank", "evaluate", "--qrels", qrels, "--run", "κ–\U0001f600run", *more]
    done = subprocess.run(
        ["bash", "-c", f'"$@" {shell}', "bash", *words],
        cwd=folder, capture_output=True, check=False, env={**os.environ, **environment},
    )  # fmt: skip
    return done.returncode, done.stdout.decode("latin-1"), done.stderr.decode("latin-1")


@pytest.mark.parametrize("encoding", ["ascii", "koi8-r"])
def test_an_encoding_shows_what_it_has(folder: Path, encoding: str) -> None:
    code, out, said = ended(folder, PYTHONIOENCODING=encoding)
    assert (code, said) == (0, "")
    assert "?run" in out
    code, out, said = ended(folder, "--json", PYTHONIOENCODING=encoding)
    assert list(json.loads(out)["runs"]) == ["κ–\U0001f600run"]


@pytest.mark.parametrize(
    ("shell", "qrels", "code", "said"),
    [
        (">&-", "q", 0, ""),
        (">&- 2>&-", "nothing", 2, ""),
        ("2>&-", "nothing", 2, ""),
        ("2>/dev/full", "nothing", 2, ""),
        (">/dev/full", "q", 2, "standard output: No space left"),
        ("--help >/dev/full", "q", 2, "standard output: No space left"),
        ("--help | true; exit ${PIPESTATUS[0]}", "q", 0, ""),
        ("| true; exit ${PIPESTATUS[0]}", "q", 0, ""),
    ],
)
def test_closed_and_full_streams_keep_the_exit_code(folder: Path, shell: str, qrels: str, code: int, said: str) -> None:
    found = ended(folder, shell=shell, qrels=qrels)
    assert found[0] == code
    assert found[2].startswith(said) and bool(said) == bool(found[2])


def test_an_environment_without_what_commands_need_is_named(folder: Path) -> None:
    for text, code, environment in (("docstrings", 2, {"PYTHONOPTIMIZE": "2"}), ("UTF-8", 2, {})):
        ends = ended(folder, "--out", os.fsdecode(b"\xff") if not environment else "x", **environment)
        assert (ends[0], ends[2].count("\n")) == (code, 1)
        assert text in ends[2]
    limit = resource.getrlimit(resource.RLIMIT_AS)[1]
    words = [sys.executable, "-m", "truerank", "evaluate"]
    done = subprocess.run(
        words, capture_output=True, text=True, check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (900 << 20, limit)),
    )  # fmt: skip
    assert done.returncode == 71
    assert "900 MiB of addresses" in done.stderr and done.stderr.count("\n") == 1


def test_a_plot_needs_no_backend_and_names_command_no_terminal(folder: Path) -> None:
    (folder / "b\x1b[2Jx").write_text(RUN)
    more = ("--run", "b\x1b[2Jx", "--plot", "--out", "plots")
    code, out, said = ended(folder, *more, MPLBACKEND="nonsense")
    assert code == 0
    assert "\x1b" not in out + said
