"""Answers and files of every command on small generated data, to compare two states of the code.

    python scripts/snapshots.py make OUT [NAME ...]            all commands, or the named ones: "leakage audit"
    python scripts/snapshots.py compare A B [--lines 10]

`make` writes OUT/COMMAND/LINE/ for each line of `snapshot_lines.LINES`: what the command prints in each form, how it
ends, and its files. What varies without meaning is replaced by placeholders. It ends with the places of `src/truerank`
that make tables and were not reached. `compare` ends with 1 where anything differs.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import datetime
import difflib
import functools
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
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parent.parent
PATHS: Final = [str(ROOT / part) for part in ("src", "attacks/plugin", "attacks", "tests/support", "scripts")]
sys.path[:0] = PATHS
FORMS: Final = {"json": ".json", "markdown": ".md", "latex": ".tex", "csv": ".csv"}
#: Files with times in them, and locks.
UNSTABLE: Final = ("run.log", "cell.log", "-wal", "-shm", "-journal")
PROGRESS: Final = re.compile(r".*(?:\(\d+ min \d+ s\)|: reading .*)\n")
TIME: Final = re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?")
MARKUP: Final = re.compile(r"<(style|script|svg)\b.*?</\1>|<[^>]*>", re.S)


class Place(NamedTuple):
    """Lines of a module that make a table: a call, or a function that returns one."""

    file: str
    first: int
    last: int
    name: str


def make(out: Path, names: list[str]) -> int:
    """Runs the commands in a temporary folder, and writes what they did, without what varies."""
    os.environ.update(
        COLUMNS="100", TZ="UTC", LC_ALL="C.UTF-8", ATTACK_SECONDS="0", HF_HUB_OFFLINE="1", MPLBACKEND="agg",
        OMP_NUM_THREADS="1", POLARS_MAX_THREADS="1", RAYON_NUM_THREADS="1", PYTHONPATH=os.pathsep.join(PATHS),
    )  # fmt: skip
    time.tzset()
    if out.exists():
        shutil.rmtree(out)
    began = datetime.datetime.now(datetime.UTC)
    with tempfile.TemporaryDirectory(prefix="snapshots-") as name, contextlib.chdir(name):
        os.environ.update(HOME=name, TRUERANK_CACHE=f"{name}/cache", XDG_CACHE_HOME=f"{name}/cache")
        import snapshot_lines
        from truerank.cli.commands import COMMANDS

        reached = _watched()
        with snapshot_lines.inputs(Path("in")) as servers:
            for command, label in _wanted(names or [*COMMANDS], snapshot_lines.LINES):
                started = sum(os.times()[:4])
                codes = _run(command, label, snapshot_lines.LINES[command][label], servers)
                print(f"{sum(os.times()[:4]) - started:5.1f} s  {command}: {label}  {codes}", flush=True)
        clean = _cleaner(Path(name), began)
        for command in snapshot_lines.LINES:
            for file in sorted(Path(command.replace(" ", "-")).rglob("*")):
                if file.is_file():
                    _copy(file, out / file, clean)
        for command, reason in snapshot_lines.LEFT_OUT.items():
            print(f"left out: {command}: {reason}")
        for command in COMMANDS:
            if command not in snapshot_lines.LINES and command not in snapshot_lines.LEFT_OUT:
                print(f"no line: {command}")
    places = list(_places())
    lacking = [place for place in places if place not in reached]
    print(f"{len(places) - len(lacking)} of {len(places)} places that make tables were reached; not these:")
    for place in lacking:
        print(f"  {Path(place.file).relative_to(ROOT / 'src' / 'truerank')}:{place.first} {place.name}")
    print(f"{(datetime.datetime.now(datetime.UTC) - began).total_seconds():.0f} s")
    return 0


def _wanted(names: list[str], lines: dict[str, dict[str, str]]) -> list[tuple[str, str]]:
    """The lines of these commands in an order in which each comes after those whose files it reads."""
    found: dict[tuple[str, str], None] = {}

    def add(command: str, label: str) -> None:
        for other, some in lines.items():
            for one in some:
                if (other, one) != (command, label) and f"{other.replace(' ', '-')}/{one}/" in lines[command][label]:
                    add(other, one)
        found[command, label] = None

    for name in names:
        for label in lines.get(name, ()):
            add(name, label)
    return list(found)


def _run(command: str, label: str, line: str, servers: dict[str, str]) -> str:
    """One line, with its files in COMMAND/LABEL/out; again in each form, with files that nobody reads. Exit codes."""
    import snapshot_lines

    folder = Path(command.replace(" ", "-"), label)
    once = line.startswith("! ")
    *steps, line = line.removeprefix("! ").split("; ")
    codes = []
    for form, ending in {"text": ".txt", **({"json": ".json"} if once else FORMS)}.items():
        place = folder / "out" if form == "text" else Path("again", *folder.parts, "out")
        shutil.rmtree(place.parent, ignore_errors=True)
        place.parent.mkdir(parents=True)
        places = {"OUT": str(place), **servers}
        for step, *words in ([_placed(word, places) for word in shlex.split(one)] for one in steps):
            getattr(snapshot_lines, step)(*words)
        words = shlex.split(line if form == "text" else line.removesuffix(" --out OUT"))
        words = [_placed(word, places) for word in words]
        code, printed, said = _called([*command.split(), *words, *([] if form == "text" else ["--format", form])])
        codes.append(str(code) if code in (0, 1) or form != "text" else f"{code} {said.splitlines()[-1:]}")
        (folder / f"stdout{ending}").write_bytes(printed)
        if form == "text":
            (folder / "end").write_text(f"{code}\n{PROGRESS.sub('', said)}")
    shutil.rmtree("again", ignore_errors=True)
    return " ".join(dict.fromkeys(codes))


def _placed(word: str, places: dict[str, str]) -> str:
    return re.sub(r"\b[A-Z]{3,}\b", lambda found: places.get(found[0], found[0]), word)


def _called(words: list[str]) -> tuple[int, bytes, str]:
    """Exit code, stdout and stderr of a command line."""
    from truerank.cli import main

    printed = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    said = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(said):
        try:
            main([*words, "--debug"])
        except SystemExit as ended:
            code = int(ended.code or 0)
    return code, printed.buffer.getvalue(), said.buffer.getvalue().decode()  # type: ignore[attr-defined]


def _places() -> Iterator[Place]:
    """Where tables are made: calls of `Table`, and functions that return tables."""
    for file in sorted((ROOT / "src" / "truerank").rglob("*.py")):
        if file.name == "tables.py" and file.parent.name == "reports":
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.FunctionDef)
                and node.returns
                and re.search(r"\bTable\b", ast.unparse(node.returns))
            ):
                yield Place(str(file), node.lineno, node.end_lineno or 0, node.name)
            elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("Table", "Table.of"):
                yield Place(str(file), node.lineno, node.end_lineno or 0, ast.unparse(node)[:60].replace("\n", " "))


def _watched() -> set[Place]:
    """The places that a table passed while it was made; grows while commands run."""
    from truerank.reports.tables import Table

    places: dict[str, list[Place]] = {}
    for place in _places():
        places.setdefault(place.file, []).append(place)
    reached: set[Place] = set()
    before = Table.__post_init__

    def checked(self: Table) -> None:
        frame = sys._getframe(1)
        while frame is not None:
            for place in places.get(frame.f_code.co_filename, ()):
                if place.first <= frame.f_lineno <= place.last:
                    reached.add(place)
            frame = frame.f_back  # type: ignore[assignment]
        before(self)

    Table.__post_init__ = checked  # type: ignore[method-assign]
    return reached


def _cleaner(work: Path, began: datetime.datetime) -> Callable[[str], str]:
    """What replaces folders, versions, ports, and times since the beginning."""
    from importlib.metadata import distributions

    import truerank.version

    ended = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=61)
    versions = {each.metadata["Name"]: each.version for each in distributions()}
    versions |= {"python": ".".join(map(str, sys.version_info[:3])), "version": truerank.version.__version__}
    named = "|".join(sorted(map(re.escape, versions), key=len, reverse=True))
    version = re.compile(rf"(?i)(?<![\w-])({named})((?:</?\w+>|\W){{1,5}})(\d[\w.+]*)")

    def timed(found: re.Match[str]) -> str:
        with contextlib.suppress(ValueError):
            at = datetime.datetime.fromisoformat(found[0])
            if began.replace(second=0) <= at.replace(tzinfo=at.tzinfo or datetime.UTC) <= ended:
                return "<time>"
        return found[0]

    def versioned(found: re.Match[str]) -> str:
        return f"{found[1]}{found[2]}<version>" if found[3] in versions.values() else found[0]

    def clean(text: str) -> str:
        text = text.replace(str(work), "<work>").replace(str(ROOT), "<root>").replace(str(Path(sys.prefix)), "<python>")
        text = re.sub(r"(127\.0\.0\.1|localhost):\d+", r"\1:<port>", text)
        text = re.sub(r'("seconds\w*": |"\w*_seconds": )[\d.e-]+', r"\1<seconds>", text)
        return version.sub(versioned, TIME.sub(timed, text))

    return clean


def _copy(file: Path, target: Path, clean: Callable[[str], str]) -> None:
    """A file without what varies; a database as its rows; what is hidden or a log, not at all."""
    if file.name.endswith(UNSTABLE) or any(part.startswith(".") for part in file.parts):
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    content = file.read_bytes()
    if content.startswith(b"SQLite format 3"):
        with contextlib.closing(sqlite3.connect(file)) as opened:
            target.with_name(f"{file.name}.sql").write_text(clean("\n".join(opened.iterdump()) + "\n"))
        return
    if file.name == "manifest.json" or file.name.endswith(".manifest.json"):
        found = json.loads(content)
        found["artifacts"] = dict.fromkeys(found.get("artifacts", ()), "<sha256>")
        content = json.dumps(found, indent=1, ensure_ascii=False).encode()
    if file.suffix != ".parquet":
        with contextlib.suppress(UnicodeDecodeError):
            content = clean(content.decode()).encode()
    target.write_bytes(content)


def compare(first: Path, second: Path, lines: int) -> int:
    """Prints what differs, file by file, and returns whether anything does."""
    files = [{str(file.relative_to(one)) for file in one.rglob("*") if file.is_file()} for one in (first, second)]
    counts: Counter[str] = Counter()
    for name in sorted(files[0] | files[1]):
        if name not in files[0] & files[1]:
            kind, details = ("new file", []) if name in files[1] else ("missing file", [])
        else:
            kind, details = _difference(first / name, second / name)
        counts[kind or "same"] += 1
        if kind:
            print(f"{kind}: {name}")
            print("".join(f"    {detail}\n" for detail in details[:lines]), end="")
            if len(details) > lines:
                print(f"    … {len(details) - lines:,} more")
    print(", ".join(f"{count:,} {kind}" for kind, count in sorted(counts.items())))
    return int(counts.keys() != {"same"})


def _difference(first: Path, second: Path) -> tuple[str, list[str]]:
    """The kind of difference between two files, and its details; an empty kind where there is none."""
    contents = [file.read_bytes() for file in (first, second)]
    if contents[0] == contents[1]:
        return "", []
    if first.suffix == ".parquet":
        return _frames_differ(first, second)
    if first.suffix == ".gz":
        contents = [gzip.decompress(content) for content in contents]
    try:
        old, new = (content.decode() for content in contents)
    except UnicodeDecodeError:
        return "bytes", [f"{len(contents[0]):,} and {len(contents[1]):,} bytes"]
    if first.suffix in (".json", ".sarif"):
        with contextlib.suppress(ValueError):
            found = list(_values_differ(json.loads(old), json.loads(new), ""))
            return ("JSON", found) if found else ("JSON, spelling only", [])
    if first.suffix in (".html", ".svg"):
        old, new = (re.sub(r"\s*\n\s*", "\n", MARKUP.sub("\n", text)) for text in (old, new))
        if old == new:
            return f"{first.suffix[1:].upper()}, not its text", []
    kind = "HTML text" if first.suffix == ".html" else f"text {first.suffix}"
    changes = difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=0)
    return kind, [line for line in changes if not line.startswith(("---", "+++", "@@"))]


def _values_differ(old: Any, new: Any, path: str) -> Iterator[str]:
    """Paths of what is gone, new and changed."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in dict.fromkeys([*old, *new]):
            if key not in new or key not in old:
                yield f"{'gone' if key in old else 'new'}: {path}.{key}"
            else:
                yield from _values_differ(old[key], new[key], f"{path}.{key}")
    elif isinstance(old, list) and isinstance(new, list):
        if len(old) != len(new):
            yield f"changed: {path}: {len(old)} entries, now {len(new)}"
        for place, pair in enumerate(zip(old, new, strict=False)):
            yield from _values_differ(*pair, f"{path}[{place}]")
    elif old != new or type(old) is not type(new):
        yield f"changed: {path}: {str(old)[:80]} -> {str(new)[:80]}"


def _frames_differ(first: Path, second: Path) -> tuple[str, list[str]]:
    import polars as pl

    old, new = pl.read_parquet(first), pl.read_parquet(second)
    if old.schema != new.schema:
        return "Parquet schema", list(
            _values_differ(*({k: str(v) for k, v in f.schema.items()} for f in (old, new)), "")
        )
    if old.equals(new):
        return "Parquet, bytes only", []
    details = [f"{old.height:,} rows, now {new.height:,}"] if old.height != new.height else []
    both = min(old.height, new.height)
    for name in old.columns:
        changed = (~old[name].head(both).eq_missing(new[name].head(both))).arg_true()
        if len(changed):
            at = changed[0]
            details.append(f"{name}: {len(changed):,} rows, first {at}: {old[name][at]!r:.80} -> {new[name][at]!r:.80}")
    return "Parquet values", details


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    chosen = parser.add_subparsers(required=True)
    one = chosen.add_parser("make")
    one.add_argument("out", type=lambda text: Path(text).absolute())
    one.add_argument("names", nargs="*")
    one.set_defaults(does=make)
    one = chosen.add_parser("compare")
    one.add_argument("first", type=Path)
    one.add_argument("second", type=Path)
    one.add_argument("--lines", type=int, default=10)
    one.set_defaults(does=compare)
    given = vars(parser.parse_args())
    sys.exit(functools.partial(given.pop("does"), **given)())
