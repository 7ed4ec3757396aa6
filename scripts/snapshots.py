"""Answers and files of every command on small generated data, to compare two states of the code.

    python scripts/snapshots.py make OUT [NAME ...]            all commands, or the named ones: "leakage audit"
    python scripts/snapshots.py compare A B [--lines 10]

`make` writes OUT/COMMAND/LABEL/ for each line of `snapshot_lines.txt`: what the command prints in each form, how it
ends, and its files. What varies without meaning is replaced by placeholders. It ends with the places of `src/truerank`
that make tables and were not reached. `compare` ends with 1 where anything differs.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import datetime as datetime_module
import difflib
import gzip
import io
import json
import os
import re
import shlex
import shutil
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, tzinfo
from importlib.metadata import distributions
from pathlib import Path
from typing import Any, Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parent.parent
SOURCE: Final = ROOT / "src" / "truerank"
PATHS: Final = [str(ROOT / part) for part in ("src", "attacks/plugin", "attacks", "tests/support", "scripts")]
FORMS: Final = {"text": "txt", "json": "json", "markdown": "md", "latex": "tex", "csv": "csv"}
LEFT_OUT: Final = {"judge serve": "waits for people", "machine": "prints measured times only, of a model"}
#: Logs with times in them, checksums, and what a database leaves.
UNSTABLE: Final = ("run.log", "cell.log", ".sum", "-wal", "-shm", "-journal")
PROGRESS: Final = re.compile(r".*(?:\(\d+ min \d+ s\)|: reading |of processor time).*\n")
#: Measured durations, where they stand in what is printed.
MEASURED: Final = re.compile(r"(?<=about )\d+(?= seconds)|\d+(?= seconds on a)|(?:[\d.]+ +){3}(?=a short trial)")
#: What is not text of a page, and of a figure.
MARKUP: Final = {
    ".html": re.compile(r"<(style|script|svg)\b.*?</\1>|<[^>]*>", re.S),
    ".svg": re.compile(r"<(style|metadata)\b.*?</\1>|<[^>]*>", re.S),
}


class _Clock(type):
    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, datetime)


class Clock(datetime, metaclass=_Clock):
    """It stands still, so that judging stores are the same."""

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
        return datetime(2024, 5, 6, 7, 8, 9, tzinfo=tz)


class Line(NamedTuple):
    """A command line: in how many forms it is printed, the steps before it, and its words."""

    command: str
    label: str
    forms: int
    steps: Sequence[str]
    words: str

    @property
    def folder(self) -> Path:
        return Path(self.command.replace(" ", "-"), self.label)


class Place(NamedTuple):
    """Lines of a module that make a table: a call, or a function that returns one."""

    file: str
    first: int
    last: int
    name: str


def make(out: Path, names: Sequence[str]) -> bool:
    """Runs the commands in a temporary folder, and writes what they did, without what varies."""
    os.environ.update(
        COLUMNS="100", TZ="UTC", LC_ALL="C.UTF-8", ATTACK_SECONDS="0", HF_HUB_OFFLINE="1", MPLBACKEND="agg",
        OMP_NUM_THREADS="1", POLARS_MAX_THREADS="1", RAYON_NUM_THREADS="1", PYTHONPATH=os.pathsep.join(PATHS),
    )  # fmt: skip
    time.tzset()
    began = time.monotonic()
    shutil.rmtree(out, ignore_errors=True)
    lines, files, schemes = _read(Path(__file__).with_name("snapshot_lines.txt").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory(prefix="snapshots-") as work, contextlib.chdir(work):
        os.environ.update(HOME=work, TRUERANK_CACHE=f"{work}/cache", XDG_CACHE_HOME=f"{work}/cache")
        # What is imported here reads the variables above.
        from snapshot_inputs import inputs

        datetime_module.datetime = Clock  # type: ignore[misc]
        reached = _watched()
        with inputs(Path("in"), schemes, files) as servers:
            for line in _wanted([one for one in lines if not names or one.command in names], lines):
                before = sum(os.times()[:4])
                ended = _run(line, servers)
                print(f"{sum(os.times()[:4]) - before:5.1f} s  {line.command}: {line.label}: {ended}", flush=True)
        every = {line.folder.parts[0] for line in lines}
        written = [file for folder in every for file in Path(folder).rglob("*") if file.is_file()]
        clean = _cleaner(Path(work), written)
        for file in written:
            _copy(file, out / file, clean)
    _say_what_lacks(lines, reached)
    print(f"{time.monotonic() - began:.0f} s")
    return False


def _read(text: str) -> tuple[list[Line], dict[str, str], list[str]]:
    """The lines, the files that they read, and the judging schemes."""
    named: dict[str, str] = {}
    lines: list[Line] = []
    files: dict[str, str] = {}
    head = ""
    for raw in text.splitlines():
        if found := re.fullmatch(r"\[(.*)\]", raw):
            head = found[1]
        elif head.startswith("file "):
            files[head[5:]] = files.get(head[5:], "") + f"{raw}\n" * bool(raw)
        elif raw and not raw.startswith("#"):
            raw = re.sub(r"\$([A-Z]+)", lambda found: named[found[1]], raw)
            if not head:
                name, _, named[name] = raw.partition(" = ")
                continue
            labels, _, rest = f"{raw} ".partition(": ")
            marks = len(rest) - len(rest.lstrip("!"))
            for label in labels.split("|"):
                *steps, words = rest.lstrip("! ").replace("@", label, rest.count("@") * ("|" in labels)).split("; ")
                lines.append(Line(head, label, (len(FORMS), 2, 1)[marks], steps, words.strip()))
    return lines, files, named["SCHEMES"].split("|")


def _wanted(chosen: Sequence[Line], lines: Sequence[Line]) -> list[Line]:
    """The chosen lines in an order in which each comes after those whose files it reads."""
    found: dict[str, Line] = {}

    def add(line: Line) -> None:
        for other in lines:
            if other != line and any(f"{other.folder}/" in words for words in (*line.steps, line.words)):
                add(other)
        found[str(line.folder)] = line

    for line in chosen:
        add(line)
    return list(found.values())


def _run(line: Line, servers: Mapping[str, str]) -> str:
    """One line, with its files in COMMAND/LABEL/out; again in each form, with files that nobody reads. How it ends."""
    import snapshot_inputs

    codes = []
    for form, ending in list(FORMS.items())[: line.forms]:
        place = line.folder / "out" if form == "text" else Path("again") / line.folder / "out"
        shutil.rmtree(place.parent, ignore_errors=True)
        place.parent.mkdir(parents=True)
        places = {"OUT": str(place), **servers}
        for step in line.steps:
            name, *given = _placed(step, places)
            getattr(snapshot_inputs, name)(*given)
        if line.command == "python":
            code, printed, said = _called(line.words)
        else:
            words = line.words if form == "text" else line.words.removesuffix("--out OUT")
            code, printed, said = _called([*line.command.split(), *_placed(words, places), "--format", form])
        codes.append(str(code))
        line.folder.joinpath(f"stdout.{ending}").write_bytes(printed)
        if form == "text":
            line.folder.joinpath("end").write_text(f"{code}\n{PROGRESS.sub('', said)}")
            fault = f" {said.splitlines()[-1:]}" if code > 1 else ""
    return " ".join(dict.fromkeys(codes)) + fault


def _placed(words: str, places: Mapping[str, str]) -> list[str]:
    """The words, with places for names in capitals."""
    return [re.sub(rf"\b({'|'.join(places)})\b", lambda found: places[found[1]], word) for word in shlex.split(words)]


def _called(words: Sequence[str] | str) -> tuple[int, bytes, str]:
    """Exit code, stdout and stderr of a command line, or of an expression."""
    import snapshot_inputs
    import truerank
    from truerank.cli import main

    printed, said = io.BytesIO(), io.BytesIO()
    streams = [io.TextIOWrapper(each, encoding="utf-8", write_through=True) for each in (printed, said)]
    code = 0
    with contextlib.redirect_stdout(streams[0]), contextlib.redirect_stderr(streams[1]):
        if isinstance(words, str):
            print(eval(words, {"truerank": truerank, "page": snapshot_inputs.page}))
        else:
            try:
                main(words)
            except SystemExit as ended:
                code = int(ended.code or 0)
    return code, printed.getvalue(), said.getvalue().decode()


def _places() -> Iterator[Place]:
    """Where tables are made: calls of `Table`, and functions that return tables."""
    for file in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            last = getattr(node, "end_lineno", 0)
            if isinstance(node, ast.FunctionDef) and re.search(r"\bTable\b", ast.unparse(node.returns or node.args)):
                yield Place(str(file), node.lineno, last, node.name)
            elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("Table", "Table.of"):
                yield Place(str(file), node.lineno, last, ast.unparse(node)[:60].replace("\n", " "))


def _watched() -> set[Place]:
    """The places that a table passed while it was made; grows while commands run."""
    from truerank.core.tables import Table

    places: dict[str, list[Place]] = {}
    for place in _places():
        places.setdefault(place.file, []).append(place)
    reached: set[Place] = set()
    checked = Table.__post_init__

    def noted(self: Table) -> None:
        frame: Any = sys._getframe(1)
        while frame is not None:
            some = places.get(frame.f_code.co_filename, ())
            reached.update(place for place in some if place.first <= frame.f_lineno <= place.last)
            frame = frame.f_back
        checked(self)

    Table.__post_init__ = noted  # type: ignore[method-assign]
    return reached


def _say_what_lacks(lines: Sequence[Line], reached: set[Place]) -> None:
    from truerank.cli.commands import COMMANDS

    for command in COMMANDS:
        if command not in {line.command for line in lines}:
            print(f"left out: {command}: {LEFT_OUT.get(command, 'no line')}")
    own = str(SOURCE / "core" / "tables.py")
    places = [place for place in _places() if place.file != own]
    lacking = [place for place in places if place not in reached]
    print(f"{len(places) - len(lacking)} of {len(places)} places that make tables were reached; not these:")
    for place in lacking:
        print(f"  {Path(place.file).relative_to(SOURCE)}:{place.first} {place.name}")


def _cleaner(work: Path, written: Sequence[Path]) -> Callable[[str], str]:
    """What replaces folders, ports, versions, what was measured, and the hashes of what lines read of each other."""
    from truerank.version import __version__

    versions = {each.metadata["Name"].lower(): each.version for each in distributions()}
    versions |= {"python": ".".join(map(str, sys.version_info[:3])), "version": __version__}
    named = "|".join(sorted(map(re.escape, versions), key=len, reverse=True))
    version = re.compile(rf"(?i)(?<![\w-])({named})((?:</?\w+>|\W){{1,5}})(\d[\w.+]*)")
    manifests = (json.loads(file.read_text()) for file in written if file.name.endswith("manifest.json"))
    given = [one for manifest in manifests for one in manifest.get("inputs", ()) if one["sha256"]]
    own = {one["sha256"] for one in given if str(one["source"]).startswith("in/")}
    hashes = {one["sha256"]: "<sha256>" for one in given if one["sha256"] not in own}
    places = {str(work): "<work>", str(ROOT): "<root>", sys.prefix: "<python>", **hashes}

    def versioned(found: re.Match[str]) -> str:
        return f"{found[1]}{found[2]}<version>" if versions[found[1].lower()] == found[3] else found[0]

    def clean(text: str) -> str:
        for place, name in places.items():
            text = text.replace(place, name)
        text = re.sub(r"(127\.0\.0\.1):\d+", r"\1:<port>", text)
        text = re.sub(r'("identity": )"\w+"', r'\1"<hash>"', text)
        text = re.sub(r'("seconds": )[\d.e-]+', r'\1"<measured>"', version.sub(versioned, text))
        return MEASURED.sub("<measured>", text)

    return clean


def _copy(file: Path, target: Path, clean: Callable[[str], str]) -> None:
    """A file without what varies; a database as its rows; what is hidden or a log, not at all."""
    if file.name.endswith(UNSTABLE) or any(part.startswith(".") for part in file.parts):
        return
    # The addresses of servers are in these hashes.
    target = target.with_name(re.sub(r"-[0-9a-f]{8}(?=\.manifest)", "-HASH", target.name))
    target.parent.mkdir(parents=True, exist_ok=True)
    content = file.read_bytes()
    if content.startswith(b"SQLite format 3"):
        with contextlib.closing(sqlite3.connect(file)) as opened:
            target = target.with_name(f"{file.name}.sql")
            rows = (re.sub(r"',\d+\.\d+,'", "',<seconds>,'", row) for row in opened.iterdump())
            content = "".join(f"{row}\n" for row in rows).encode()
    if file.name.endswith("manifest.json"):
        found = json.loads(content)
        found["artifacts"] = dict.fromkeys(found.get("artifacts", ()), "<sha256>")
        content = json.dumps(found, indent=1, ensure_ascii=False).encode()
    if file.suffix != ".parquet":
        with contextlib.suppress(UnicodeDecodeError):
            content = clean(content.decode()).encode()
    target.write_bytes(content)


def compare(first: Path, second: Path, lines: int) -> bool:
    """Prints what differs, file by file, and returns whether anything does."""
    files = [{str(file.relative_to(one)) for file in one.rglob("*") if file.is_file()} for one in (first, second)]
    counts: Counter[str] = Counter()
    for name in sorted(files[0] | files[1]):
        details: Sequence[str] = ()
        if name not in files[0] & files[1]:
            kind = "new file" if name in files[1] else "missing file"
        else:
            kind, details = _difference(first / name, second / name)
        counts[kind or "same"] += 1
        if kind:
            print(f"{kind}: {name}")
            print("".join(f"    {detail:.200}\n" for detail in details[:lines]), end="")
            if len(details) > lines:
                print(f"    … {len(details) - lines:,} more")
    print(", ".join(f"{count:,} {kind}" for kind, count in sorted(counts.items())))
    return counts.keys() != {"same"}


def _difference(first: Path, second: Path) -> tuple[str, Sequence[str]]:
    """The kind of difference between two files, and its details; an empty kind where there is none."""
    contents = [file.read_bytes() for file in (first, second)]
    if contents[0] == contents[1]:
        return "", ()
    if first.suffix == ".parquet":
        return _frames_differ(first, second)
    if first.suffix == ".gz":
        contents = [gzip.decompress(content) for content in contents]
    try:
        old, new = (content.decode() for content in contents)
    except UnicodeDecodeError:
        return "bytes", (f"{len(contents[0]):,} bytes, now {len(contents[1]):,}",)
    if first.suffix in (".json", ".sarif"):
        with contextlib.suppress(ValueError):
            found = list(_values_differ(json.loads(old), json.loads(new), ""))
            return "JSON" if found else "JSON, spelling only", found
    kind = f"text {first.suffix or 'without an ending'}"
    if markup := MARKUP.get(first.suffix):
        old, new = (re.sub(r"\s*\n\s*", "\n", markup.sub("\n", text)) for text in (old, new))
        kind = f"{first.suffix[1:].upper()} {'text' if old != new else 'bytes, not its text'}"
    changes = difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=0)
    return kind, [line for line in changes if not line.startswith(("---", "+++", "@@"))]


def _values_differ(old: Any, new: Any, path: str) -> Iterator[str]:
    """Paths of what is gone, new and changed."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in dict.fromkeys([*old, *new]):
            if key in old and key in new:
                yield from _values_differ(old[key], new[key], f"{path}.{key}")
            else:
                yield f"{'gone' if key in old else 'new'}: {path}.{key}"
    elif isinstance(old, list) and isinstance(new, list):
        if len(old) != len(new):
            yield f"changed: {path}: {len(old)} entries, now {len(new)}"
        for place, pair in enumerate(zip(old, new, strict=False)):
            yield from _values_differ(*pair, f"{path}[{place}]")
    elif old != new or type(old) is not type(new):
        yield f"changed: {path}: {str(old)[:80]} -> {str(new)[:80]}"


def _frames_differ(first: Path, second: Path) -> tuple[str, Sequence[str]]:
    """Schema, then values; the order of rows counts."""
    import polars as pl

    old, new = pl.read_parquet(first), pl.read_parquet(second)
    if old.schema != new.schema:
        kinds = ({name: str(kind) for name, kind in frame.schema.items()} for frame in (old, new))
        return "Parquet schema", list(_values_differ(*kinds, "")) or ("the order of columns",)
    details = [f"{old.height:,} rows, now {new.height:,}"] if old.height != new.height else []
    for name in old.columns:
        # As texts: a value that is not a number equals itself there.
        pairs = [(repr(a), repr(b)) for a, b in zip(old[name].to_list(), new[name].to_list(), strict=False)]
        changed = [place for place, (a, b) in enumerate(pairs) if a != b]
        if changed:
            values = " -> ".join(f"{value:.80}" for value in pairs[changed[0]])
            details.append(f"{name}: {len(changed):,} rows, first {changed[0]}: {values}")
    return "Parquet values" if details else "Parquet, bytes only", details


if __name__ == "__main__":
    sys.path[:0] = PATHS
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    tasks = parser.add_subparsers(required=True, dest="task")
    one = tasks.add_parser("make")
    one.add_argument("out", type=lambda text: Path(text).absolute())
    one.add_argument("names", nargs="*")
    one = tasks.add_parser("compare")
    one.add_argument("first", type=Path)
    one.add_argument("second", type=Path)
    one.add_argument("--lines", type=int, default=10)
    given = vars(parser.parse_args())
    sys.exit({"make": make, "compare": compare}[given.pop("task")](**given))
