"""Bounds of values, on the command line and in Python: what is no number, too large or empty gets a line."""

from __future__ import annotations

from pathlib import Path

import pytest

from truerank import evaluate
from truerank.cli.app import main
from truerank.errors import InputError, OptionError
from truerank.measures import scoring
from truerank.options import Resampling, Scoring, Workers, value_of
from truerank.sources import open_documents


@pytest.mark.parametrize(
    ("group", "name", "value", "fault"),
    [
        (Workers, "workers", 2147483648, "at least 1 and at most 1024, got 2147483648"),
        (Workers, "workers", 0, "at least 1 and at most 1024, got 0"),
        (Resampling, "resamples", 10**20, "at most 2147483647, got a number of more than 20 digits"),
        pytest.param(Resampling, "resamples", 10**5000, "got a number of more than 20 digits", id="5,001 digits"),
        (Resampling, "seed", 2**32, "at most 4294967295, got 4294967296"),
        (Resampling, "confidence", float("nan"), "got nan"),
    ],
)
def test_whole_numbers_have_bounds(group: type, name: str, value: float, fault: str) -> None:
    with pytest.raises(OptionError, match=fault):
        group(**{name: value})


@pytest.mark.parametrize("text", ["1.5", "0x3", "1_0", "٣", "1e0", "", " 1", "--1", "9" * 5000])
def test_a_whole_number_is_decimal_digits(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["check", "--comparisons"], ["compare", "--resamples"]):
        with pytest.raises(SystemExit) as ended:
            main([*words[:-1], f"{words[-1]}={text}"])
        said = capsys.readouterr().err
        assert ended.value.code == 2
        assert f"{words[-1]}: '{text[:40]}" in said
        assert "is not a whole number" in said


@pytest.mark.parametrize("text", ["1_0", "٠٫٥", "nan", "inf", "1e400", "0x1p3", "half"])
def test_a_number_is_finite_and_of_ascii_digits(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["compare", f"--confidence={text}"])
    assert f"--confidence: '{text}' is not a number" in capsys.readouterr().err
    assert value_of(text) == text


def test_signs_and_exponents_are_numbers() -> None:
    assert (value_of("+3"), value_of("-07"), value_of("1e0"), value_of(".5")) == (3, -7, 1.0, 0.5)


def test_a_number_of_our_own_out_of_its_bounds_is_no_fault_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "q").write_text("1 0 d 1\n")
    (tmp_path / "r").write_text("1 Q0 d 1 1.5 t\n")
    words = ["evaluate", "--qrels", str(tmp_path / "q"), "--run", str(tmp_path / "r")]
    monkeypatch.setattr(scoring, "parse_measures", lambda *given: Scoring(depth=0))
    for more, code in (([], 70), (["--depth", "5"], 2)):
        with pytest.raises(SystemExit) as ended:
            main([*words, *more])
        assert ended.value.code == code
        assert ("truerank failed" in capsys.readouterr().err) == (code == 70)


def test_an_empty_path_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="out: an empty path"):
        evaluate(str(tmp_path), str(tmp_path), out="")
    assert Workers(workers=1024).workers == 1024
    assert Resampling(resamples=2**31 - 1).resamples == 2**31 - 1


def test_a_place_that_cannot_be_seen_is_quoted() -> None:
    assert str(InputError("wrong", where=" ")) == "' ': wrong."
    with pytest.raises(InputError) as refused:
        list(open_documents("9" * 5000))
    assert "Errno" not in str(refused.value)
