"""What grew with the square of an input, or held it in memory several times: it ends soon, or says why not."""

from __future__ import annotations

import dataclasses
import gzip
import os
import pickle
import subprocess
import sys
import time
from pathlib import Path
from random import Random
from typing import Literal

import numpy as np
import pytest

from truerank.cli.app import main
from truerank.cli.building import _joined
from truerank.near_duplicates import shingles
from truerank.near_duplicates.shingles import Shingles, shingled
from truerank.sources import lines
from truerank.text.wording import WordingProbe


def ended(*words: str) -> int:
    """Runs a command line; its exit code."""
    with pytest.raises(SystemExit) as end:
        main(words)
    return int(end.value.code or 0)


def test_an_option_that_is_repeated_thousands_of_times(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "qrels").write_text("1 0 d1 1\n")
    runs = [word for number in range(8000) for word in ("--run", str(tmp_path / f"r{number}"))]
    begun = time.process_time()
    assert ended("evaluate", "--qrels", str(tmp_path / "qrels"), *runs) == 2
    assert f"{tmp_path / 'r0'}: no such file" in capsys.readouterr().err
    # It took more than two minutes.
    assert time.process_time() - begun < 20


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


def seconds(*words: str) -> float:
    begun = time.process_time()
    assert ended(*words) == 0
    return time.process_time() - begun


@pytest.mark.parametrize("text", ["?", "-", "…", "😀"])
def test_a_topic_without_a_word(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "topics.tsv").write_text(f"1\tsolar energy\n2\t{text}\n")
    (tmp_path / "train.tsv").write_text(f"q1\tlunar orbits\nq2\t{text}\nq3\t!\n")
    sources = ("--train", str(tmp_path / "train.tsv"), "--test", str(tmp_path / "topics.tsv"))
    assert ended("leakage", "audit", "--encoder", "words", *sources) == 0
    # What has no word is compared by its signs.
    assert "1 of 2 queries (50%) matches a training query: 1 by the same text" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("word", "size"), [(True, 70_000), (True, 1_000_000), (False, 10_000), (False, 60_000)], ids=str
)
def test_long_words_and_texts_in_a_leakage_audit(
    word: bool, size: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    draw = Random(size)
    text = draw.randbytes(size // 2).hex() if word else " ".join(f"w{draw.randrange(4000)}" for _ in range(size // 5))
    (tmp_path / "topics.tsv").write_text(f"1\tsolar energy\n2\t{text}\n3\tlunar orbits\n")
    (tmp_path / "train.tsv").write_text(f"q1\tanything else\nq2\t{text}\nq3\t{text}x\n")
    sources = ("--train", str(tmp_path / "train.tsv"), "--test", str(tmp_path / "topics.tsv"))
    # They took gigabytes of memory, or did not end.
    assert seconds("leakage", "audit", "-v", "--encoder", "words", *sources) < 30
    said = capsys.readouterr().out
    assert "1 of 3 queries (33%) matches a training query: 1 by the same text" in " ".join(said.split())
    assert ("1 query is longer than 300 words" in " ".join(said.split())) is not word


def test_a_probe_is_the_same_in_a_process_with_other_hashes(tmp_path: Path) -> None:
    probe, texts = WordingProbe(["solar energy plants", "rainforest"]), ["solar enrgy plants", "rain forest"]
    (tmp_path / "probe").write_bytes(pickle.dumps(probe))
    code = f"import pickle; print(pickle.load(open({str(tmp_path / 'probe')!r}, 'rb'))({texts!r}))"
    run = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONHASHSEED": "7"}, capture_output=True, check=True
    )
    assert run.stdout.decode().strip() == str(probe(texts)) == "[(0, 0, 2), (1, 1, 2)]"


@pytest.mark.parametrize("name", ["a.csv", "a.yaml", "a.txt", "a.run"])
def test_a_line_that_is_too_long(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(lines, "_LONGEST_LINE", 1 << 22)
    (tmp_path / f"{name}.gz").write_bytes(gzip.compress(b"question,expected\n" + b"a" * (1 << 24), 1))
    (tmp_path / name).write_bytes((tmp_path / f"{name}.gz").read_bytes())
    for path in (tmp_path / name, tmp_path / f"{name}.gz"):
        assert ended("check", str(path)) == 2
        assert capsys.readouterr().err == f"{path}:2: a line of more than 4 MiB. this is not a text file of lines.\n"


@pytest.mark.parametrize("unit", ["words", "letters"])
@pytest.mark.parametrize("text", ["ab c-d " * 300, "x" * 2000, "日本x語 " * 300, f"a {'b' * 900} c"], ids=str)
def test_a_document_is_hashed_alike_in_pieces(
    unit: Literal["words", "letters"], text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = shingled([text], Shingles(shingle_unit=unit))
    monkeypatch.setattr(shingles, "_AT_ONCE", 256)
    pieces = shingled([text], Shingles(shingle_unit=unit))
    for field in dataclasses.fields(whole):
        assert np.array_equal(getattr(whole, field.name), getattr(pieces, field.name)), field.name
