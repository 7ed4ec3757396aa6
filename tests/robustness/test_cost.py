"""What grew with the square of an input, or held it in memory several times: it ends soon, or says why not."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from truerank.cli.app import main
from truerank.cli.building import _joined


def ended(*words: str) -> int:
    """Runs a command line; its exit code."""
    with pytest.raises(SystemExit) as end:
        main(words)
    return int(end.value.code or 0)


def test_an_option_that_is_repeated_thousands_of_times(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "qrels").write_text("1 0 d1 1\n")
    runs = [word for number in range(8000) for word in ("--run", str(tmp_path / f"r{number}"))]
    begun = time.monotonic()
    assert ended("evaluate", "--qrels", str(tmp_path / "qrels"), *runs) == 2
    assert f"{tmp_path / 'r0'}: no such file" in capsys.readouterr().err
    # It took more than two minutes.
    assert time.monotonic() - begun < 20


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("a --run=1 --run 2 -k 3 --run 4 --", "a --run 1+2+4 -k 3 --"),
        ("--run 1 --run 2 --run - --run 3 --run 4", "--run 1+2 --run - --run 3+4"),
        ("--run 1 --tag 2 --train x --run 3 --train y", "--run 1+3 --tag 2 --train x+y"),
        ("--run 1 -- --run 2", "--run 1 -- --run 2"),
        ("--run 1 --run", "--run 1 --run"),
    ],
)
def test_values_of_a_repeated_option_keep_their_order(words: str, expected: str) -> None:
    several = {"--run": "run", "--train": "train"}
    assert " ".join(_joined(words.split(), several)).replace("\0", "+") == expected
