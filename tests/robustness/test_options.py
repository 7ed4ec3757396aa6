"""Hostile command lines, made from the declarations of the commands."""

from __future__ import annotations

import os
import random
import re
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from truerank.cli.app import main
from truerank.cli.commands import COMMANDS
from truerank.cli.declarations import command_at

#: They wait for people or ask a network.
LEFT_OUT = ("judge serve", "pool serve", "transfer snapshots")
NUMBERS = (
    "0", "-1", "1", "2147483648", "99999999999999999999", "9" * 5000, "1e400", "nan", "-inf", "1e308", "-0.0", "",
    " ", "0x10", "1_000", "\u0663", "1.5", "1e0", "a", "\x1b[2J",
)  # fmt: skip
TEXTS = (
    "", " ", ".", "nothing", "a" * 5000, "\x1b[2J", "\u202e", "\udcff", "../x", "/dev/zero", "pipe", "folder", "-",
    "--", "=", ",", "#", "?format=", "x?format=parquet", "name=", "=x", "irds:nothing", "hf:", "[[", "%s", "{}", "1",
    "nan", "small.tsv", "small.jsonl", "a=b", "a=" + "9" * 5000, "file.py:f", "random:0", "\n",
)  # fmt: skip
_WHOLE = re.compile(r"[+-]?[0-9]+", re.ASCII)
#: An error about the value of an option.
_VALUE = re.compile(r"(--?[\w-]+): must be at ")


def lines(runs: int, seed: int) -> Iterator[tuple[list[str], bool]]:
    """Command lines with one or two hostile options each, and whether a whole number among them is none."""
    draw = random.Random(seed)
    chosen = [name for name in COMMANDS if name not in LEFT_OUT]
    for number in range(runs):
        name = chosen[number % len(chosen)]
        options = command_at(name, COMMANDS[name]).options
        hostile = set(draw.sample(range(len(options)), min(len(options), draw.choice((1, 1, 2)))))
        words, impossible = name.split(), False
        for place, option in enumerate(options):
            if place in hostile:
                text = _hostile(option, draw)
                impossible |= option.reads is int and not _WHOLE.fullmatch(text)
            elif option.required or option.name == "out":
                text = (
                    "out" if option.name == "out" else draw.choice(("small.tsv", "small.jsonl", "small.run", "folder"))
                )
                text = f"a={text}" if "=" in option.metavar else text
            else:
                continue
            given = [text] if option.positional else [f"{option.flags[-1]}={text}"]
            words += [option.flags[-1]] if option.reads is bool else given
        yield words, impossible


def _hostile(option: Any, draw: random.Random) -> str:
    if option.reads in (int, float):
        return draw.choice(NUMBERS)
    if typing.get_origin(option.reads) is typing.Literal:
        return draw.choice((*map(str, typing.get_args(option.reads)), "nothing", ""))
    text = draw.choice((*TEXTS, *NUMBERS[:10]))
    return draw.choice((text, f"a={text}" if "=" in option.metavar else text))


def fault(words: list[str], impossible: bool, code: int, said: str) -> str:
    """What is wrong with how a command line ended; empty where nothing is."""
    last = said.strip().splitlines()[-1] if said.strip() else ""
    if code not in (0, 1, 2) or "Traceback" in said or "\x1b" in said:
        return f"{code} {last}"
    if code != 2:
        return f"{code}, with a whole number that is none" if impossible else ""
    if not re.match(r"\S.*?: \S", last) or "Errno" in last or last.startswith("a file:"):
        return f"no place: {last}"
    named = _VALUE.match(last)
    given = named is None or any(word.partition("=")[0] == named[1] for word in words)
    return "" if given else f"an option that was not given: {last}"


def test_hostile_command_lines_end_with_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    deep = tmp_path / "a" / "b"
    (deep / "folder").mkdir(parents=True)
    os.mkfifo(deep / "pipe")
    (deep / "small.tsv").write_text("1\ta query\n2\tanother query\n")
    (deep / "small.jsonl").write_text(
        '{"_id": "1", "text": "a text", "query": "a", "positive": "b", "negative": "c"}\n'
    )
    (deep / "small.run").write_text("1 Q0 d1 1 2.5 t\n1 Q0 d2 2 1.5 t\n")
    monkeypatch.chdir(deep)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    faults = {}
    for words, impossible in lines(120, seed=3):
        with pytest.raises(SystemExit) as ended:
            main(words)
        shown = capsys.readouterr()
        wrong = fault(words, impossible, int(ended.value.code or 0), shown.out + shown.err)
        faults |= {wrong: words} if wrong else {}
    assert not faults
