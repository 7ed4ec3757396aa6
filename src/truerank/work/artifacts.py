"""Artifacts: files that appear whole or not at all, and the manifest that says where they come from."""

from __future__ import annotations

import bz2
import contextlib
import datetime
import errno
import gzip
import hashlib
import importlib.metadata
import json
import lzma
import os
import platform
import re
import shutil
import sqlite3
import stat
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from pathlib import Path, PurePath
from typing import IO, Any, Final

import polars as pl

from truerank.errors import InputError, TruerankError
from truerank.zstd import ZstdFile

#: The folder of unfinished work, in that of the artifacts.
WORK: Final = ".work"


#: No room left, or none to write at all.
_OF_DISKS: Final = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EFBIG, errno.EIO)
#: How Polars says which error of the system it met.
_NOT_WRITTEN: Final = "Invalid thrift: transport error"
_OS_ERROR: Final = re.compile(r"\(os error (\d+)\)")


@contextlib.contextmanager
def place_of(path: Path) -> Iterator[None]:
    """Faults of writing within, such as a full disk, name the path, whichever library met them."""
    try:
        yield
    except pl.exceptions.PolarsError as error:
        found = _OS_ERROR.search(str(error))
        if _NOT_WRITTEN in str(error):
            raise OSError(None, "cannot be written", str(path)) from error
        if found is None:
            raise
        raise OSError(int(found[1]), os.strerror(int(found[1])), str(path)) from error
    except sqlite3.OperationalError as error:
        raise OSError(None, str(error), str(path)) from error
    except OSError as error:
        # NumPy gives a text without the system's number.
        if error.filename is None and error.errno in (None, *_OF_DISKS):
            error.filename = str(path)
        raise


#: Standard output, where one file is written.
STDOUT: Final = Path("-")
#: Asked before a file is written whether that may be; set by the run of a command.
claims: ContextVar[Callable[[Path], None] | None] = ContextVar("claims", default=None)


def is_stream(path: Path) -> bool:
    """Whether what is written there goes on to somewhere else: a device, a pipe, standard output."""
    if path == STDOUT:
        return True
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return False
    except OSError as error:
        raise InputError(
            f"cannot be written ({error.strerror})", "choose another file with `out`", where=path
        ) from error
    for kind, holds in (("a folder", stat.S_ISDIR), ("a socket", stat.S_ISSOCK), ("a disk", stat.S_ISBLK)):
        if holds(mode):
            raise InputError(f"{kind} is there", "give `out` the name of a file", where=path)
    # /dev/stdout may lead to a file that another program has open.
    parent = path.absolute().parent.resolve()
    return not stat.S_ISREG(mode) or parent == Path("/dev") or Path("/proc") in parent.parents


@contextlib.contextmanager
def _streamed(path: Path) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="truerank-") as folder:
        temporary = Path(folder) / (path.name.lstrip("-") or "output")
        yield temporary
        with contextlib.ExitStack() as opened:
            if path == STDOUT:
                target: IO[bytes] = sys.stdout.buffer
            else:
                target = opened.enter_context(os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND), "wb"))
            shutil.copyfileobj(opened.enter_context(temporary.open("rb")), target)
            target.flush()


@contextlib.contextmanager
def atomic_path(path: Path) -> Iterator[Path]:
    """A temporary path in the same folder that becomes `path` when the block ends without an error.

    A link stays, and what it leads to is replaced. What is written to a device or a pipe is copied there at the end.
    Temporary files of processes that were killed while they wrote the same file are removed.
    """
    if is_stream(path):
        with place_of(path), _streamed(path) as temporary:
            yield temporary
        return
    if (claim := claims.get()) is not None:
        claim(path)
    if path.is_symlink():
        path = path.resolve()
    path.parent.mkdir(parents=True, exist_ok=True)
    # Folders of unfinished work hold thousands of blocks; they are removed as a whole.
    if WORK not in path.parts:
        _remove_left_over(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with place_of(path):
            yield temporary
            temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _remove_left_over(path: Path) -> None:
    """Removes `.NAME.PID.tmp` where no process with that number runs on this machine."""
    start, end = f".{path.name}.", ".tmp"
    for one in os.scandir(path.parent):
        number = one.name[len(start) : -len(end)]
        if one.name.startswith(start) and one.name.endswith(end) and number.isdecimal() and not runs_now(int(number)):
            with contextlib.suppress(OSError):
                Path(one.path).unlink()


def runs_now(process: int) -> bool:
    """Whether a process with this number runs; one of another user counts. On Windows, asking would end it."""
    if sys.platform == "win32":
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


@contextlib.contextmanager
def written_by(command: str, folder: Path, *names: str) -> Iterator[None]:
    """What a command reads of another one's artifacts: whole, and faults met within name the folder and the command."""
    for name in names:
        if not (folder / name).is_file():
            raise InputError(f"no {name} here", f"give the folder that 'truerank {command}' wrote", where=folder)
    remedy = f"run 'truerank {command}' again"
    if changed := changed_artifact(folder, names):
        raise InputError(f"{changed} is not as it was written", f"{remedy} with --overwrite", where=folder)
    try:
        yield
    except TruerankError:
        raise
    except (Exception, pl.exceptions.PanicException) as error:
        # Whatever a reader meets in what it did not expect, Polars' panics too.
        reason = str(error).partition("\n")[0]
        raise InputError(f"not readable ({reason})", remedy, where=folder) from error


def changed_artifact(folder: Path, names: Iterable[str] | None = None) -> str | None:
    """The first of the files that the manifest of a folder names which is not as it was written."""
    file = folder / "manifest.json"
    if not file.is_file():
        return None
    known = _hashes(file)
    if known is None:
        return file.name
    chosen = [name for name in (known if names is None else names) if name in known]
    return next((name for name in chosen if not has_hash(folder / name, known[name])), None)


def _hashes(manifest: Path) -> dict[str, str] | None:
    """The files that a manifest names and their hashes; None where it is damaged, or no manifest of ours."""
    try:
        return {name: str(sha) for name, sha in json.loads(manifest.read_bytes())["artifacts"].items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def as_written(path: Path) -> Path:
    """The path of a single file of a command; refused where a manifest beside or above it names another hash."""
    place = path.absolute()
    parts = place.name.split(".")
    beside = [place.with_name(".".join((*parts[:end], "manifest.json"))) for end in range(len(parts))]
    for manifest in (*beside, place.parent.parent / "manifest.json"):
        known = (_hashes(manifest) if manifest.is_file() else None) or {}
        sha = known.get(place.relative_to(manifest.parent).as_posix())
        if sha is not None and not has_hash(place, sha):
            fault = f"is not as it was written (by its hash in {manifest.name})"
            raise InputError(fault, "write it again, or give a copy elsewhere if you changed it", where=path)
    return path


def has_hash(path: Path, sha: str) -> bool:
    """Whether a file is there and has this hash."""
    return path.is_file() and hash_file(path) == sha


def read_table(path: Path, schema: Mapping[str, Any], *, others: bool = False) -> pl.DataFrame:
    """The columns of a Parquet table that a command wrote, and `others` if there are some."""
    frame = pl.read_parquet(path, glob=False)
    for name, kind in schema.items():
        if name not in frame.columns or frame.schema[name] != kind:
            there = f"is {frame.schema[name]}" if name in frame.columns else "is missing"
            raise ValueError(f"column '{name}' of {path.name} {there}")
    return frame if others else frame.select(list(schema))


def write_text(path: Path, text: str) -> None:
    """Writes UTF-8 text, whole or not at all."""
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def hash_file(path: Path) -> str:
    """SHA-256 of a file's bytes, hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def digest(value: Any) -> str:
    """SHA-256 of a JSON-like value, hexadecimal; equal values give equal digests."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


def installed_versions(*packages: str) -> dict[str, str]:
    """Versions of Python and of those of the packages that are installed."""
    versions = {"python": platform.python_version()}
    for package in packages:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            versions[package] = importlib.metadata.version(package)
    return versions


class Artifacts:
    """The folder that a command writes its results to.

    Everything but `run.log` has the same bytes for the same input.

    Args:
        folder: made if it does not exist.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            # Now, and not after an hour's work, it shows whether anything can be written here.
            self.work.mkdir(exist_ok=True)
            self.tidy()
        except OSError as error:
            raise InputError(
                f"cannot be written to ({error.strerror})", "choose another folder with --out", where=self.folder
            ) from error
        self._written: dict[str, str] = {}

    @property
    def work(self) -> Path:
        """Where unfinished work lies, while there is some."""
        return self.folder / WORK

    def work_folders(self) -> list[tuple[Path, int]]:
        """The folders of unfinished work and their sizes in bytes, by name."""
        if not self.work.is_dir():
            return []
        return [
            (folder, sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()))
            for folder in sorted(self.work.iterdir())
            if folder.is_dir()
        ]

    def tidy(self) -> None:
        """Removes the folder of unfinished work if it is empty."""
        with contextlib.suppress(OSError):
            self.work.rmdir()

    def text(self, name: str, text: str) -> Path:
        """Writes a text file."""
        write_text(self.folder / name, text)
        return self.note(name)

    def binary(self, name: str, content: bytes) -> Path:
        """Writes a file that is not text."""
        with atomic_path(self.folder / name) as temporary:
            temporary.write_bytes(content)
        return self.note(name)

    def json(self, name: str, value: Mapping[str, Any]) -> Path:
        """Writes a JSON object, keys in the order given."""
        return self.text(name, json.dumps(value, indent=2, ensure_ascii=False) + "\n")

    def parquet(self, name: str, frame: pl.DataFrame) -> Path:
        """Writes a table as Parquet."""
        with atomic_path(self.folder / name) as temporary:
            frame.write_parquet(temporary, compression="zstd", statistics=True)
        return self.note(name)

    def lazy_parquet(self, name: str, frame: pl.LazyFrame, rows: int) -> Path:
        """Writes a table that need not fit into memory as Parquet, in groups of so many rows."""
        with atomic_path(self.folder / name) as temporary:
            frame.sink_parquet(temporary, compression="zstd", statistics=True, row_group_size=rows, maintain_order=True)
        return self.note(name)

    @contextlib.contextmanager
    def stream(self, name: str) -> Iterator[Path]:
        """A temporary path for a file that is written bit by bit; it appears when the block ends without an error."""
        with atomic_path(self.folder / name) as temporary:
            yield temporary
        self.note(name)

    def names(self) -> list[str]:
        """The files written so far, in the order in which they were written, and the manifest that comes last."""
        return [*self._written, "manifest.json"]

    def log(self, event: str, **details: Any) -> None:
        """Appends a line to `run.log`, the only file with times and the host's name."""
        line = {
            "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "host": platform.node(),
            "event": event,
            **details,
        }
        path = self.folder / "run.log"
        if (claim := claims.get()) is not None:
            claim(path)
        with place_of(path), path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(line, ensure_ascii=False) + "\n")

    def note(self, name: str) -> Path:
        """Takes a file that is in the folder already into the manifest."""
        if not is_stream(self.folder / name):
            self._written[name] = hash_file(self.folder / name)
        return self.folder / name


@contextmanager
def opened_for_writing(path: Path, name: str | None = None) -> Iterator[IO[bytes]]:
    """A file for writing."""
    ending = PurePath(name or path.name).suffix.lower()
    with path.open("wb") as raw, ExitStack() as stack:
        packed: Any = raw
        if ending == ".gz":
            packed = stack.enter_context(gzip.GzipFile("", "wb", compresslevel=6, fileobj=raw, mtime=0))
        elif ending == ".bz2":
            packed = stack.enter_context(bz2.BZ2File(raw, "wb"))
        elif ending == ".xz":
            packed = stack.enter_context(lzma.LZMAFile(raw, "wb"))
        elif ending == ".zst":
            packed = stack.enter_context(ZstdFile(raw, "wb"))
        yield packed
