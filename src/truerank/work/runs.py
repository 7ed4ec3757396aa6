"""One run of a command: what it reads and writes, its lock, its unfinished work, its manifest and its log."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final

from truerank.errors import InputError
from truerank.loading import json_file
from truerank.records import Input
from truerank.version import __version__
from truerank.work.artifacts import Artifacts, digest, installed_versions, opened_for_writing, place_of, write_text

try:
    import fcntl
except ImportError:  # Windows: two runs of one folder are not kept apart there
    fcntl = None  # type: ignore[assignment]

_LOCK: Final = "lock"
#: Options that say where the work runs: the shards of a run, and its later attempts, share what is done.
_WHERE: Final = frozenset({"engine", "workers"})


class Run(Artifacts):
    """What a command does with its output: a folder, or one file with a manifest beside it.

    Make it with `run`. Everything but `run.log` has the same bytes for the same input.

    Attributes:
        folder: where artifacts go.
        command: as on the command line ("track report").
        options: all options, as plain values.
        inputs: what was read; add to it with `read` where a command learns of it on the way.
        skipped: what was left out of the result, by kind: {"no_text": ["12", "17"]}.
        keeps_others: unfinished work of other runs in the same output stays; by default it is removed.
    """

    def __init__(self, command: str, inputs: Sequence[Input], options: Mapping[str, Any], out: Path) -> None:
        self.command = command
        self.options = plain(options)
        self.inputs = list(inputs)
        self.skipped: dict[str, Any] = {}
        self.packages: tuple[str, ...] = ("truerank", "numpy", "polars")
        self.keeps_others = False
        self._own: list[Path] = []
        self._file: Path | None = None
        super().__init__(out)

    def read(self, *inputs: Input) -> None:
        """Adds what was read to the manifest."""
        self.inputs.extend(inputs)

    def identity(self) -> str:
        """A hash of all that the result depends on: command, version, inputs and options, not where the work runs."""
        return digest(
            {
                "command": self.command,
                "version": __version__,
                "inputs": [one._asdict() for one in self.inputs],
                "options": {name: value for name, value in self.options.items() if name not in _WHERE},
            }
        )

    def unfinished(self, identity: str | None = None) -> Path:
        """The folder in which this very run keeps unfinished work; a run that was killed finds it again.

        Unfinished work of other runs in the same output is removed unless `keeps_others`. The folder goes when the run
        ends well.

        Args:
            identity: all that the work depends on; by default `identity()`.
        """
        folder = self.work / (identity or self.identity())[:16]
        folder.mkdir(parents=True, exist_ok=True)
        self._own.append(folder)
        self.clear(but=folder)
        return folder

    def clear(self, but: Path | None = None) -> None:
        """Removes unfinished work: of this run and, unless `keeps_others`, of other runs."""
        for other in self._own if self.keeps_others else list(self.work.iterdir()):
            if other != but and other.name != _LOCK:
                shutil.rmtree(other, ignore_errors=True)

    def provenance(self) -> dict[str, Any]:
        """The manifest without the artifacts: one schema for all commands."""
        seeds = {name: value for name, value in self.options.items() if name == "seed" and value is not None}
        return {
            "command": self.command,
            "version": __version__,
            "inputs": [one._asdict() for one in self.inputs],
            "options": self.options,
            "seeds": seeds,
            "packages": installed_versions(*self.packages),
            "skipped": self.skipped,
        }

    def finish(self) -> None:
        """Writes the manifest and removes unfinished work; `run` calls it."""
        content = {**self.provenance(), "artifacts": dict(sorted(self._written.items()))}
        if self._file is None:
            self.json("manifest.json", content)
        else:
            path = self._file.with_name(f"{self._file.name}.manifest.json")
            write_text(path, json.dumps(content, indent=2, ensure_ascii=False) + "\n")

    @contextlib.contextmanager
    def output(self, name: str) -> Iterator[IO[bytes]]:
        """A file for writing, compressed as its name says; it appears when the block ends without an error."""
        with self.stream(name) as path, opened_for_writing(path, name) as stream:
            yield stream


@contextlib.contextmanager
def run(
    command: str,
    inputs: Sequence[Input] = (),
    options: Mapping[str, Any] | None = None,
    out: str | Path | None = None,
    *,
    file: bool = False,
    packages: Sequence[str] = (),
) -> Iterator[Run]:
    """One run of a command.

    At the end the manifest is written and unfinished work is removed. Where the block ends with an error, unfinished
    work stays, and the same run finds it again.

    Args:
        command: as on the command line.
        inputs: what it reads.
        options: by name; dataclasses of options are taken apart.
        out: the folder of the artifacts.
        file: `out` is one file instead; the manifest is `OUT.manifest.json`.
        packages: whose versions matter, beside truerank, NumPy and Polars.

    Raises:
        InputError: the output cannot be written, holds an index, or another process writes it now.
    """
    if out is None:
        raise ValueError("a run needs an output; a command without one returns its result")
    target = Path(out)
    if file and target.is_dir():
        raise InputError("a folder stands there", "give `out` the name of a file", where=target)
    if not file:
        _spare_others(target)
    made = _FileRun if file else Run
    job = made(command, inputs, options or {}, target)
    job.packages += tuple(packages)
    with place_of(target), locked(job.work, target):
        yield job
        job.finish()
        job.clear()
    job.tidy()


def _spare_others(folder: Path) -> None:
    """Refuses a folder whose manifest no command wrote, such as that of an index: it would be lost."""
    path = folder / "manifest.json"
    try:
        found = json_file(path) if path.is_file() else {"command": ""}
    except InputError:
        return  # broken: nothing is lost
    if not isinstance(found, dict) or "command" not in found:
        kind = found.get("kind") if isinstance(found, dict) else None
        fault = f"holds the manifest.json of {f'a {kind}' if kind else 'another program'}, which would be lost"
        raise InputError(fault, "choose another folder with `out`", where=folder)


class _FileRun(Run):
    """A run whose output is one file, perhaps with others beside it."""

    def __init__(self, command: str, inputs: Sequence[Input], options: Mapping[str, Any], out: Path) -> None:
        self._hidden = out.with_name(f".{out.name}.work")
        super().__init__(command, inputs, options, out.parent)
        self._file = out

    @property
    def work(self) -> Path:
        """Where unfinished work lies: beside the file."""
        return self._hidden


def plain(value: Any) -> Any:
    """A value as JSON has it: dataclasses of options merge into what holds them, paths become texts."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {each.name: plain(getattr(value, each.name)) for each in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        found: dict[str, Any] = {}
        for name, one in value.items():
            merged = plain(one)
            found |= merged if dataclasses.is_dataclass(one) else {str(name): merged}
        return found
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(one) for one in (sorted(value) if isinstance(value, set | frozenset) else value)]
    return value if isinstance(value, str | int | float | bool) or value is None else repr(type(value).__name__)


@contextlib.contextmanager
def locked(folder: Path, out: Path) -> Iterator[None]:
    """Holds the output for this process; the lock goes with the process, however that ends."""
    if fcntl is None:
        yield
        return
    path = folder / _LOCK
    stream = _acquired(path, out)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        stream.close()
        with contextlib.suppress(OSError):
            folder.rmdir()


def _acquired(path: Path, out: Path) -> IO[str]:
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        stream = path.open("a+", encoding="utf-8")
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            stream.seek(0)
            holder = stream.read().strip()
            stream.close()
            fault = f"another process writes here now (process {holder or 'unknown'})"
            raise InputError(fault, "wait until it ends, or choose another place with `out`", where=out) from error
        # The file may have been removed between opening and locking it: then the lock holds nobody off.
        with contextlib.suppress(FileNotFoundError):
            if path.stat().st_ino == os.fstat(stream.fileno()).st_ino:
                stream.truncate(0)
                stream.write(str(os.getpid()))
                stream.flush()
                return stream
        stream.close()
