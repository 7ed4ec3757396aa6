"""Every command with hostile options, generated from the declarations in truerank.cli.

    python attacks/options.py --runs 2000      so many command lines, drawn with a seed
    python attacks/options.py --runs 200 index "leakage audit"

A command line may end with 0, 1 or 2; anything else, a traceback or more than 60 seconds are faults. So are a whole
number that is not written in decimal digits and was taken, an error that begins with no place, and one about the value
of an option that was not given.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import io
import os
import random
import re
import sys
import tempfile
import time
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

os.environ.update(HF_HUB_OFFLINE="1", POLARS_MAX_THREADS="1", OMP_NUM_THREADS="1")
sys.path[:0] = [str(Path(__file__).resolve().parent.parent / "src")]

_SECONDS: Final = 60
#: They wait for people or ask a network, or need minutes for an honest answer.
LEFT_OUT: Final = ("judge serve", "pool serve", "transfer snapshots", "experiment start")
_NUMBERS: Final = (
    "0",
    "-1",
    "1",
    "2",
    "2147483647",
    "2147483648",
    "99999999999999999999",
    "9" * 5000,
    "1e400",
    "nan",
    "inf",
    "-inf",
    "1e308",
    "-0.0",
    "1e-400",
    "",
    " ",
    "0x10",
    "1_000",
    "\u0663",
    "\u0967",
    "1.5",
    "1e0",
    "2.0",
    "a",
    "\x1b[2J",
)
#: What a whole number looks like, and how an error begins that is about the value of an option.
_WHOLE: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)
_VALUE: Final = re.compile(r"(--?[\w-]+): must be at ")
_TEXTS: Final = (
    "",
    " ",
    ".",
    "nothing",
    "a" * 5000,
    "\x1b[2J",
    "\u202e",
    "\udcff",
    "../x",
    "/dev/null",
    "/dev/zero",
    "pipe",
    "folder",
    "-",
    "--",
    "=",
    ",",
    "#",
    "?format=",
    "x?format=parquet",
    "name=",
    "=x",
    "irds:nothing",
    "hf:a/b",
    "hf:",
    "irds:",
    "[",
    "[[",
    "%s",
    "{}",
    "1",
    "nan",
    "small.tsv",
    "small.jsonl",
    "a=b",
    "a=1e400",
    "a=" + "9" * 5000,
    "title=nan",
    "file.py:f",
    "random:0",
    "\n",
    "\t",
)


def lines(runs: int, seed: int, names: list[str]) -> Iterator[tuple[list[str], bool]]:
    """Command lines, each with one or two hostile options.

    Yields:
        The words, and whether one of them stands for a whole number and is none.
    """
    from truerank.cli.commands import COMMANDS
    from truerank.cli.declarations import command_at

    draw = random.Random(seed)
    chosen = [name for name in (names or COMMANDS) if name not in LEFT_OUT]
    for number in range(runs):
        name = chosen[number % len(chosen)]
        command = command_at(name, COMMANDS[name])
        hostile = set(draw.sample(range(len(command.options)), min(len(command.options), draw.choice((1, 1, 2)))))
        words, impossible = name.split(), False
        for place, option in enumerate(command.options):
            if place in hostile:
                text = _hostile(option, draw)
                impossible |= option.reads is int and not _WHOLE.fullmatch(text)
                words += _given(option, text, draw)
            elif option.required or option.name == "out":
                honest = (
                    "out" if option.name == "out" else draw.choice(("small.tsv", "small.jsonl", "small.run", "folder"))
                )
                words += _given(option, _named(option, honest), draw)
        yield words, impossible


def _named(option: Any, text: str) -> str:
    """NAME=VALUE where the option wants it."""
    return f"a={text}" if "=" in option.metavar else text


def _given(option: Any, text: str, draw: random.Random) -> list[str]:
    if option.reads is bool:
        return [option.flags[-1]]
    if option.positional:
        return [text]
    return (
        [f"{option.flags[-1]}={text}"]
        if draw.random() < 0.5 and option.flags[-1].startswith("--")
        else [option.flags[-1], text]
    )


def _hostile(option: Any, draw: random.Random) -> str:
    reads = option.reads
    if reads in (int, float):
        return draw.choice(_NUMBERS)
    if typing.get_origin(reads) is typing.Literal:
        return draw.choice((*map(str, typing.get_args(reads)), "nothing", ""))
    text = draw.choice((*_TEXTS, *_NUMBERS[:10]))
    return draw.choice((text, _named(option, text)))


def fault(words: list[str], impossible: bool, code: int, said: str) -> str:
    """What is wrong with how a command line ended; empty where nothing is."""
    last = said.strip().splitlines()[-1] if said.strip() else ""
    if code not in (0, 1, 2) or "Traceback" in said or "\x1b" in said:
        return f"{code} {last}"
    if impossible and code != 2:
        return f"{code}, with a whole number that is none"
    if code != 2:
        return ""
    if not re.match(r"\S.*?: \S", last) or "Errno" in last or last.startswith("a file:"):
        return f"no place: {last}"
    named = _VALUE.match(last)
    given = named is None or any(word.partition("=")[0] == named[1] for word in words)
    return "" if given else f"an option that was not given: {last}"


def call(words: list[str]) -> tuple[int, str]:
    """Runs a command line in this process; its exit code and what it printed."""
    from truerank.cli.app import main

    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    code = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        try:
            main(words)
        except SystemExit as ended:
            code = int(ended.code or 0)
    return code, out.buffer.getvalue().decode("utf-8", "replace")  # type: ignore[attr-defined]


def prepare(folder: Path) -> None:
    """Small files, a folder and a named pipe in the folder in which the commands run."""
    (folder / "folder").mkdir()
    os.mkfifo(folder / "pipe")
    (folder / "small.tsv").write_text("1\ta query\n2\tanother query\n")
    (folder / "small.jsonl").write_text(
        '{"_id": "1", "text": "a text", "query": "a", "positive": "b", "negative": "c"}\n'
    )
    (folder / "small.run").write_text("1 Q0 d1 1 2.5 t\n1 Q0 d2 2 1.5 t\n")


def main() -> int:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commands", nargs="*")
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    faults: dict[str, list[str]] = {}
    codes: dict[int, int] = {}
    with tempfile.TemporaryDirectory(prefix="attack-") as folder:
        deep = Path(folder) / "a" / "b"
        deep.mkdir(parents=True)
        os.chdir(deep)
        prepare(deep)
        for number, (words, impossible) in enumerate(lines(given.runs, given.seed, given.commands)):
            faulthandler.dump_traceback_later(_SECONDS + 30, exit=True)
            begun = time.monotonic()
            code, said = call(words)
            codes[code] = codes.get(code, 0) + 1
            taken = time.monotonic() - begun
            wrong = f"{taken:.0f} s" if taken > _SECONDS else fault(words, impossible, code, said)[:200]
            if wrong and wrong not in faults:
                faults[wrong] = words
                print(f"    FAULT {' '.join(repr(word[:60]) for word in words)}\n        {wrong!r}", flush=True)
            if number % 500 == 499:
                print(f"  {number + 1} command lines", flush=True)
        faulthandler.cancel_dump_traceback_later()
        os.chdir("/")
    print(f"options: {given.runs:,} command lines, exit codes {dict(sorted(codes.items()))}; {len(faults)} faults")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main())
