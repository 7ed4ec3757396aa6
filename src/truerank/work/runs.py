"""One run of a command: what it reads and writes, its lock, its unfinished work, its manifest and its log."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Any, Final

from truerank.errors import InputError
from truerank.loading import json_file
from truerank.options import overwrites
from truerank.records import Input
from truerank.version import __version__
from truerank.work.artifacts import (
    WORK,
    Artifacts,
    claims,
    digest,
    has_hash,
    installed_versions,
    is_stream,
    opened_for_writing,
    place_of,
    write_text,
)
from truerank.work.kept import RECORD

try:
    import fcntl
except ImportError:  # Windows: two runs of one folder are not kept apart there
    fcntl = None  # type: ignore[assignment]

_LOCK: Final = "lock"
#: The names of the files that an unfinished run has written.
_WRITTEN: Final = "written"
_OVERWRITE: Final = "choose another place with `out`, or replace it with --overwrite"
#: Seconds after which a refused run leaves unfinished work: a mended call goes on with it.
_WORTH_KEEPING: Final = 60.0
_FILE_HASH: Final = re.compile("[0-9a-f]{64}")
#: Options that say where the work runs: a later attempt shares what is done.
_WHERE: Final = frozenset({"engine", "workers"})


class Run(Artifacts):
    """What a command does with its output: a folder, or one file with a manifest beside it.

    Make it with `run`. Everything but `run.log` has the same bytes for the same input.

    Attributes:
        folder: where artifacts go.
        command: as on the command line ("track report").
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
        #: What was not there before: the folder with those above it, and what this run wrote.
        self._made = [one for one in (out, *out.parents) if not one.exists()]
        self._new: list[Path] = []
        super().__init__(out)
        #: The files that are this command's by name, and their hashes where they are to be as they were written.
        self._names: dict[str, str] = _listed(self._manifest_file, command)
        self._names |= dict.fromkeys(_lines(self.work / _WRITTEN), "")

    @property
    def _manifest_file(self) -> Path:
        return self.folder / "manifest.json"

    def _sources(self) -> Iterator[str]:
        yield from _texts(self.options)
        yield from (one.source for one in self.inputs)

    def json(self, name: str, value: Mapping[str, Any]) -> Path:
        """Writes a JSON object; `summary.json` says first what wrote it."""
        first = {"version": __version__, "command": self.command} if name == "summary.json" else {}
        return super().json(name, {**first, **value})

    def forget_unwritten(self) -> None:
        """Forgets the list of files that were to be written where none of them was."""
        known = _listed(self._manifest_file, self.command)
        if not any(_differs(self.folder / name, known.get(name)) for name in _lines(self.work / _WRITTEN) if name):
            (self.work / _WRITTEN).unlink(missing_ok=True)

    def take_back(self) -> None:
        """Removes what this run wrote; what was there before stays."""
        for path in self._new:
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)

    def leave(self) -> None:
        """Removes the folders that this run made and left empty."""
        self.tidy()
        for folder in self._made:
            with contextlib.suppress(OSError):
                folder.rmdir()

    def note_new(self, path: Path) -> None:
        """Remembers a file or folder that is not there yet, or the first folder on the way to it that is not."""
        between = [one for one in (path, *path.parents) if self.folder in one.parents and not os.path.lexists(one)]
        self._new += between[-1:]

    def claim(self, path: Path) -> None:
        """Lets a file be written that is new, or one that is as this command wrote it."""
        folder, place = self.folder.resolve(), path.absolute().parent.resolve() / path.name
        if not place.is_relative_to(folder) or place.is_relative_to(self.work.resolve()):
            return
        if path.exists() and any(_is_same(path, one) for one in self._sources()):
            raise InputError("the output would replace its own source", "choose another place with `out`", where=path)
        name = place.relative_to(folder).as_posix()
        if self._names.get(name) != "":
            self.refuse_others(name)
            self._own_name(name)

    def refuse_others(self, *names: str) -> None:
        """Refuses files in the output that are not as this command wrote them, by default all that it ever wrote."""
        for name in names or self._names:
            if not overwrites.get() and _differs(self.folder / name, self._names.get(name)):
                fault = "a file is there that no manifest of this command names"
                changed = f"the file is not as '{self.command}' wrote it, and your changes would be lost"
                raise InputError(changed if name in self._names else fault, _OVERWRITE, where=self.folder / name)

    def claim_folder(self, name: str) -> Path:
        """A folder of the output in which blocks are kept: a new one, or one of an earlier run of this command."""
        folder = self.folder / name
        if f"{name}/" not in self._names:
            if folder.is_dir() and any(folder.iterdir()) and not self._names and not overwrites.get():
                raise InputError("a folder is there that no manifest of this command names", _OVERWRITE, where=folder)
            self._own_name(f"{name}/")
        return folder

    def _own_name(self, name: str) -> None:
        # A later process knows by this what the killed one wrote.
        with (self.work / _WRITTEN).open("a", encoding="utf-8") as stream:
            stream.write(f"{name}\n")
        self._names[name] = ""
        self.note_new(self.folder / name)

    def read(self, *inputs: Input) -> None:
        """Adds what was read to the manifest."""
        self.inputs.extend(inputs)
        check_origins(self.command, self.inputs)

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

    def unfinished(self, identity: str | None = None, page: str = "report.html") -> Path:
        """The folder in which this very run keeps unfinished work; a run that was killed finds it again.

        Unfinished work of other runs in the same output is removed unless `keeps_others`. The folder goes when the run
        ends well. A page of others in the output is refused now, and not after an hour's work.
        """
        if page and self._file is None:
            self.refuse_others(page)
        folder = self.work / (identity or self.identity())[:16]
        self.note_new(folder)
        folder.mkdir(parents=True, exist_ok=True)
        self._own.append(folder)
        self.clear(but=folder)
        return folder

    def clear(self, but: Path | None = None) -> None:
        """Removes unfinished work: of this run and, unless `keeps_others`, of other runs."""
        for other in self._own if self.keeps_others else list(self.work.iterdir()):
            if other.is_dir() and other != but:
                shutil.rmtree(other, ignore_errors=True)
            elif other.is_file() and other.name not in (_LOCK, _WRITTEN):
                other.unlink(missing_ok=True)

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
        """Writes the manifest and removes what an earlier run of this command wrote and this one did not."""
        for name, sha in self._names.items():
            if sha and name not in self._written and not _differs(self.folder / name, sha):
                (self.folder / name).unlink(missing_ok=True)
        content = {**self.provenance(), "artifacts": dict(sorted(self._written.items()))}
        write_text(self._manifest_file, json.dumps(content, indent=2, ensure_ascii=False) + "\n")

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
    work stays, and the same run finds it again; a refusal at the start leaves the output as it was.
    """
    if out is None:
        raise ValueError("a run needs an output; a command without one returns its result")
    target = Path(out)
    check_origins(command, inputs)
    check_output(command, target, file=file, sources=[*_texts(plain(options or {})), *(one.source for one in inputs)])
    # What a run within another one writes is taken back with that.
    if isinstance(outer := getattr(claims.get(), "__self__", None), Run):
        outer.note_new(target)
    with contextlib.ExitStack() as stack:
        if not file:
            job = Run(command, inputs, options or {}, target)
        elif is_stream(target):
            hidden = stack.enter_context(tempfile.TemporaryDirectory(prefix="truerank-"))
            job = _FileRun(command, inputs, options or {}, target, Path(hidden) / WORK)
        else:
            job = _FileRun(command, inputs, options or {}, target)
        job.packages += tuple(packages)
        before, begun = claims.set(job.claim), time.monotonic()
        stack.callback(lambda: claims.reset(before))
        stack.callback(job.leave)
        with place_of(target), locked(job.work, target):
            try:
                job.refuse_others()
                yield job
            except BaseException as error:
                refused = isinstance(error, InputError) and not error.continues
                if refused and time.monotonic() - begun < _WORTH_KEEPING:
                    job.take_back()
                job.forget_unwritten()
                raise
            job.finish()
            job.clear()
            (job.work / _WRITTEN).unlink(missing_ok=True)


def check_output(command: str, out: Path, *, file: bool, sources: Iterable[str] = ()) -> None:
    """Says before any work whether a command may write to its output; makes nothing."""
    if file and is_stream(out):
        return
    fault, remedy = "", "choose another place with `out`"
    parent = next(one for one in (out.absolute(), *out.absolute().parents)[file:] if one.exists() or one.is_symlink())
    if not parent.is_dir():
        fault = f"cannot be written to ({parent} is not a folder)"
    elif not os.access(parent, os.W_OK | os.X_OK):
        fault = f"cannot be written to ({parent} lets you write nothing)"
    elif file and any(map(partial(_is_same, out), sources)):
        fault = "the output would replace its own source"
    elif _is_foreign(out.with_name(f".{out.name}{WORK}") if file else out / WORK):
        fault = f"holds a folder {WORK} that is not unfinished work of truerank"
    else:
        manifest = out.with_name(f"{out.name}.manifest.json") if file else out / "manifest.json"
        content = _manifest_of(manifest)
        if content is not None and not overwrites.get() and _writer(content) != command:
            kind = f"a {content['kind']}" if "kind" in content else "another program"
            other = f"'truerank {content['command']}'" if "command" in content else kind
            fault, remedy = f"holds the {manifest.name} of {other}, which would be lost", _OVERWRITE
    if fault:
        raise InputError(fault, remedy, where=out)


def check_origins(command: str, inputs: Iterable[Input]) -> None:
    """Refuses the folder of another command that was made of files that are others now, by the hashes in its manifest.

    Files are the same by their place, versions of a collection also by their names.
    """
    current: dict[object, Input] = {}
    folders: dict[Path, set[str]] = {}
    # A value of a program has no place.
    for one in (one for one in inputs if one.source):
        place = Path(one.source).absolute()
        if _FILE_HASH.fullmatch(one.sha256 or ""):
            current |= {place: one, (one.role, one.name): one}
        with contextlib.suppress(OSError, ValueError):
            is_folder = place.is_dir()
            folders.setdefault(place if is_folder else place.parent, set()).add("" if is_folder else place.name)
    for folder, names in folders.items():
        manifest = _manifest_of(folder / "manifest.json") or {}
        maker, made, read = (manifest.get(key) for key in ("command", "artifacts", "inputs"))
        if maker == command or not (isinstance(made, dict) and isinstance(read, list)) or names.isdisjoint(["", *made]):
            continue
        for known in (one for one in read if isinstance(one, dict)):
            role, name, source, sha = (str(known.get(key)) for key in ("role", "name", "source", "sha256"))
            now = current.get(Path(source).absolute()) or (current.get((role, name)) if role == "version" else None)
            if now is not None and _FILE_HASH.fullmatch(sha) and sha != now.sha256:
                fault = f"{now.source} is not what 'truerank {maker}' read as the {role} {name}"
                raise InputError(fault, f"run 'truerank {maker}' again", where=folder)


def _manifest_of(path: Path) -> dict[str, Any] | None:
    """What a manifest holds; nothing that is known where it is damaged; None where there is none."""
    if not path.is_file():
        return None
    try:
        found = json_file(path, "change its permissions, or choose another place with `out`")
    except InputError as error:
        if isinstance(error.__cause__, OSError):
            raise
        return {}
    return found if isinstance(found, dict) else {}


def _writer(manifest: Mapping[str, Any]) -> str:
    """The command that wrote a manifest; that of an index has another form."""
    return str(manifest.get("command") or manifest.get("kind", "")).removeprefix("truerank ")


def _listed(manifest: Path, command: str) -> dict[str, str]:
    """The files that the last run of a command wrote and their hashes; none for its manifest, its log, and kept files,
    which are made again where they are damaged."""
    content = _manifest_of(manifest) or {}
    if content.get("command") != command:
        return {}
    artifacts = content.get("artifacts")
    hashes = artifacts if isinstance(artifacts, dict) else {}
    named = {name: "" if f"{name.removesuffix(RECORD)}{RECORD}" in hashes else str(sha) for name, sha in hashes.items()}
    return {**named, manifest.name: "", "run.log": ""}


def _differs(path: Path, sha: str | None) -> bool:
    """Whether something is there, a link that leads nowhere too, whose hash is not this one; an empty one is any."""
    return sha != "" and os.path.lexists(path) and (sha is None or not has_hash(path, sha))


def _lines(path: Path) -> set[str]:
    return set(path.read_text(encoding="utf-8", errors="replace").split("\n")) if path.is_file() else set()


def _is_foreign(work: Path) -> bool:
    """Whether what has the name of our unfinished work was made by something else: a link, or a folder without a lock
    of ours."""
    if work.is_symlink():
        return True
    if not work.is_dir() or not any(work.iterdir()):
        return work.exists() and not work.is_dir()
    try:
        holder = (work / _LOCK).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return True
    return not (holder.isdecimal() or not holder)


def _texts(value: Any, name: str = "") -> Iterator[str]:
    """All texts among options, without those that say where something goes."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, one in value.items():
            yield from () if str(key).startswith("out") else _texts(one)
    elif isinstance(value, list):
        for one in value:
            yield from _texts(one)


def _is_same(path: Path, source: str) -> bool:
    """Whether a source, as it was given, is this very file."""
    for place in {source, source.partition("#")[0], source.partition("?")[0], source.partition("=")[2]} - {""}:
        with contextlib.suppress(OSError, ValueError):
            if path.samefile(place):
                return True
    return False


class _FileRun(Run):
    """A run whose output is one file, perhaps with others beside it."""

    def __init__(
        self,
        command: str,
        inputs: Sequence[Input],
        options: Mapping[str, Any],
        out: Path,
        hidden: Path | None = None,
    ) -> None:
        self._hidden, self._out = hidden or out.with_name(f".{out.name}{WORK}"), out
        super().__init__(command, inputs, options, out.parent)
        self._file = out

    @property
    def work(self) -> Path:
        """Where unfinished work lies: beside the file."""
        return self._hidden

    @property
    def _manifest_file(self) -> Path:
        return self._out.with_name(f"{self._out.name}.manifest.json")

    def finish(self) -> None:
        """Writes the manifest beside the file; a device or a pipe has none."""
        if not is_stream(self._out):
            super().finish()

    def log(self, event: str, **details: Any) -> None:
        """Appends a line to the `run.log` of all files of the folder; that of a device or a pipe has none."""
        if not is_stream(self._out):
            self._names["run.log"] = ""
            super().log(event, **details)


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
    path = folder / _LOCK
    stream = _acquired(path, out)
    try:
        yield
    finally:
        # With unfinished work it stays, and says whose that is.
        if {one.name for one in folder.iterdir()} <= {_LOCK}:
            path.unlink(missing_ok=True)
        stream.close()
        with contextlib.suppress(OSError):
            folder.rmdir()


def _acquired(path: Path, out: Path) -> IO[str]:
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        stream = path.open("a+", encoding="utf-8")
        if fcntl is None:
            return stream
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
