"""Fuzzes readers: coverage-guided by atheris where it is installed, otherwise by seeded mutations.

    python attacks/fuzz.py --runs 20000                 every reader, one process after the other
    python attacks/fuzz.py --runs 50000 qrels runs      these readers
    python attacks/fuzz.py --coverage                   which lines of the package sources the kept inputs run

Every input that ends in anything but a line for the user, takes more than 10 seconds, or more than 2 GB of memory is
written to the folder of findings, and the exit code is 1.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import hashlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final

from campaigns import peak_megabytes

os.environ.setdefault("POLARS_MAX_THREADS", "1")
ROOT: Final = Path(__file__).resolve().parent.parent
SECONDS: Final = 10
MEGABYTES: Final = 2048


def main() -> int:
    """Reads the command line and runs the readers, each in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("readers", nargs="*", help="names of readers; by default all")
    parser.add_argument("--runs", type=int, default=2000, help="inputs for each reader")
    parser.add_argument("--seed", type=int, default=1, help="of all draws")
    parser.add_argument("--kept", type=Path, default=ROOT / ".attacks", help="folder of kept inputs and findings")
    parser.add_argument("--unguided", action="store_true", help="mutate what was kept at random, which is faster")
    parser.add_argument("--coverage", action="store_true", help="replay what was kept and count the lines of sources/")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        return _work(given.readers[0], given)
    if given.coverage:
        return _coverage(given.kept)
    return _all(given)


def _all(given: argparse.Namespace) -> int:
    from readers import READERS

    names = given.readers or list(READERS)
    total, faults = 0, 0
    for name in names:
        begun = time.monotonic()
        words = [sys.executable, __file__, "--worker", name, "--runs", str(given.runs), "--seed", str(given.seed)]
        words += ["--kept", str(given.kept), *(["--unguided"] if given.unguided else [])]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        state = _state(given.kept, name)
        if done.returncode not in (0, 1) or state.get("seed") != given.seed:
            state["findings"] = [
                *state.get("findings", []),
                f"process ended with {done.returncode}: {done.stderr[-800:]}",
            ]
        total, faults = total + state.get("runs", 0), faults + len(state["findings"])
        seconds = time.monotonic() - begun
        print(
            f"{name:20} {state.get('runs', 0):9,} inputs  {state.get('read', 0):8,} read  {seconds:6.0f} s"
            f"  {len(state['findings'])} faults",
            flush=True,
        )
        for fault in state["findings"]:
            print(f"    {fault}", flush=True)
    print(f"{total:,} inputs, {faults} faults; {_engine(given.unguided)}")
    return int(faults > 0)


def _engine(unguided: bool) -> str:
    if unguided:
        return "kept inputs mutated at random"
    with contextlib.suppress(ImportError):
        import atheris

        return f"guided by coverage (atheris {getattr(atheris, '__version__', '')})".replace(" )", ")")
    return "mutated at random (atheris is not installed)"


def _place(kept: Path, name: str) -> Path:
    return kept / name.replace(" ", "-")


def _state(kept: Path, name: str) -> dict[str, Any]:
    file = _place(kept, name) / "state.json"
    found: dict[str, Any] = json.loads(file.read_text()) if file.is_file() else {"findings": []}
    return found


class _Worker:
    """Runs one reader on many inputs, and remembers what went wrong, once for each place in the code."""

    def __init__(self, name: str, kept: Path, scratch: Path, seed: int) -> None:
        from readers import READERS

        self.reader = READERS[name]
        self.folder = _place(kept, name)
        self.corpus = self.folder / "corpus"
        self.findings: dict[str, str] = {}
        self.runs = self.read = 0
        self._scratch, self._seed = scratch, seed
        self.corpus.mkdir(parents=True, exist_ok=True)
        for data in self.reader.inputs():
            (self.corpus / hashlib.sha1(data, usedforsecurity=False).hexdigest()).write_bytes(data)

    def one(self, data: bytes) -> None:
        """Reads one input."""
        from readers import attempt

        self.runs += 1
        begun = time.monotonic()
        try:
            said = attempt(self.reader, data, self._scratch)
            self.read += not said
            if "\n" in said:
                self._found("a message of several lines", said, data)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt | SystemExit):
                raise
            place = traceback.extract_tb(error.__traceback__)
            ours = [frame for frame in place if "truerank" in frame.filename and "attacks" not in frame.filename]
            last = ours[-1] if ours else place[-1]
            where = f"{Path(last.filename).name}:{last.lineno}"
            self._found(f"{type(error).__name__} in {where}", str(error), data)
        if time.monotonic() - begun > SECONDS:
            self._found("a hang", f"{time.monotonic() - begun:.1f} s", data)
        if self.runs % 500 == 0:
            self.save()

    def _found(self, kind: str, text: str, data: bytes) -> None:
        if kind in self.findings:
            return
        file = self.folder / f"finding-{hashlib.sha1(data, usedforsecurity=False).hexdigest()[:12]}"
        file.write_bytes(data)
        self.findings[kind] = f"{kind}: {' '.join(text.split())[:200]} ({file})"
        self.save()

    def save(self) -> None:
        """Writes what is known, so that it outlives the process."""
        used = peak_megabytes()
        if used > MEGABYTES:
            self.findings.setdefault("memory", f"{used:,} MB of memory")
        state = {
            "seed": self._seed,
            "runs": self.runs,
            "read": self.read,
            "findings": list(self.findings.values()),
            "megabytes": used,
        }
        (self.folder / "state.json").write_text(json.dumps(state))


def _work(name: str, given: argparse.Namespace) -> int:
    resource.setrlimit(resource.RLIMIT_AS, (MEGABYTES << 22, MEGABYTES << 22))
    try:
        import atheris
    except ImportError:
        given.unguided = True
    with contextlib.nullcontext() if given.unguided else atheris.instrument_imports(include=["truerank"]):
        from readers import SCRATCH

        with tempfile.TemporaryDirectory(dir=SCRATCH) as scratch:
            worker = _Worker(name, given.kept, Path(scratch), given.seed)
            return (_unguided if given.unguided else _guided)(worker, given.runs, given.seed)


def _unguided(worker: _Worker, runs: int, seed: int) -> int:
    from mutations import mutated

    # The longest ones are left out, as they take most of the time.
    kept = sorted(file.read_bytes() for file in worker.corpus.iterdir())
    for data in mutated([one for one in kept if len(one) < 1 << 12] or kept, runs, seed):
        faulthandler.dump_traceback_later(3 * SECONDS, exit=True)
        worker.one(data)
    faulthandler.cancel_dump_traceback_later()
    worker.save()
    return int(bool(worker.findings))


def _guided(worker: _Worker, runs: int, seed: int) -> int:
    import atheris

    from mutations import TOKENS

    tokens = worker.folder / "tokens"
    tokens.write_text(
        "".join('"' + "".join(f"\\x{byte:02x}" for byte in each) + '"\n' for each in TOKENS if len(each) < 60)
    )
    words = [
        sys.argv[0],
        str(worker.corpus),
        f"-runs={2 * runs}",
        f"-seed={seed}",
        f"-dict={tokens}",
        "-max_len=4096",
        f"-timeout={SECONDS + 20}",
        f"-rss_limit_mb={MEGABYTES}",
        f"-artifact_prefix={worker.folder}/",
        "-print_final_stats=0",
        "-verbosity=0",
    ]

    def one(data: bytes) -> None:
        worker.one(data)
        if worker.runs >= runs:
            worker.save()
            # The fuzzer has no other end than that of its process.
            os._exit(int(bool(worker.findings)))

    atheris.Setup(words, one)
    atheris.Fuzz()
    return 1


def _coverage(kept: Path) -> int:
    """Replays the kept inputs and prints, for each module of the package sources, which share of its lines ran."""
    import truerank.sources as package
    from readers import READERS, SCRATCH, attempt

    folder = str(Path(package.__file__ or "").parent)
    ran: dict[str, set[int]] = {}

    def tracer(frame: FrameType, event: str, _: Any) -> Any:
        if not frame.f_code.co_filename.startswith(folder):
            return None
        if event == "line":
            ran.setdefault(frame.f_code.co_filename, set()).add(frame.f_lineno)
        return tracer

    inputs = 0
    with tempfile.TemporaryDirectory(dir=SCRATCH) as scratch:
        sys.settrace(tracer)
        for name, reader in READERS.items():
            for file in sorted((_place(kept, name) / "corpus").glob("*")):
                inputs += 1
                with contextlib.suppress(Exception):
                    attempt(reader, file.read_bytes(), Path(scratch))
        sys.settrace(None)
    every = {str(file): set(_lines(file)) for file in sorted(Path(folder).rglob("*.py"))}
    for file, lines in every.items():
        if lines:
            hit = len(lines & ran.get(file, set()))
            print(f"{Path(file).relative_to(folder)!s:32} {hit:4} of {len(lines):4} lines  {hit / len(lines):5.0%}")
    hits = sum(len(lines & ran.get(file, set())) for file, lines in every.items())
    count = sum(map(len, every.values()))
    print(f"{inputs:,} kept inputs: {hits:,} of {count:,} lines of functions in sources/, {hits / count:.1%}")
    return 0


def _lines(file: Path) -> Iterator[int]:
    """The lines of a module's functions that can be run."""

    def inside(code: CodeType, depth: int) -> Iterator[int]:
        if depth and not code.co_name.startswith("<module"):
            yield from (line for _, _, line in code.co_lines() if line and line != code.co_firstlineno)
        for each in code.co_consts:
            if isinstance(each, CodeType):
                yield from inside(each, depth + (each.co_flags & 0x2 > 0))

    return inside(compile(file.read_text(encoding="utf-8"), str(file), "exec"), 0)


if __name__ == "__main__":
    sys.exit(main())
