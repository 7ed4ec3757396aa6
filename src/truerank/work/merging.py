"""The finished blocks of the shards of one run, made known to each other."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

from truerank.core.result import Result, Summary, summarises
from truerank.core.tables import Column, Table
from truerank.errors import InputError, OptionError
from truerank.options import Flag, command
from truerank.work.artifacts import WORK
from truerank.work.kept import is_whole, kept_json, record
from truerank.work.runs import locked

__all__ = ["Merged", "merge"]

_BLOCKS: Final = "*.arrow"
#: What a job measures once, and other processors measure otherwise: all go on with what the first one found.
_MEASURED: Final = ("pilot-*.json",)
#: The file of a run that says which precision its jobs encode in, where they encode.
PRECISION: Final = "precision.json"


@dataclass(frozen=True, eq=False, repr=False)
class Merged(Result, shown_in="truerank.work.merging"):
    """What was merged.

    Attributes:
        blocks: finished blocks of all shards together; each of them has them now.
        own: by shard, how many it had itself.
    """

    blocks: int
    own: Mapping[str, int]

    def json(self) -> dict[str, Any]:
        """All of it."""
        return {"blocks": self.blocks, "shards": dict(self.own)}


@command
def merge(shards: Annotated[Sequence[str | Path], Flag(metavar="DIR", positional=True, reads=list[str])]) -> Merged:
    """Shares finished blocks between the shards of one run.

    A job array runs one command as many jobs, each with `--engine shard:I/N` and a folder of its own in `--out`. A job
    works on its part of the blocks and ends where it needs those of others. After merging, run the jobs again where
    another step is to be spread; or run the command in one of the folders without `--engine`, which does what is left
    and writes the result.

    Args:
        shards: the folders that the jobs wrote to.

    Returns:
        How many blocks there are.

    Raises:
        InputError: a folder without unfinished work, shards of different runs, or one that is at work now.

    Examples:

        truerank merge shard-1/ shard-2/ shard-3/
    """
    folders = [Path(each) for each in shards]
    if len(set(folders)) < 2:
        raise OptionError("shards", "fewer than two folders", "give those of all shards")
    with ExitStack() as held:
        for folder in folders:
            if not folder.joinpath(WORK).is_dir():
                raise InputError("no unfinished work here", "give the `out` of a shard", where=folder)
            held.enter_context(locked(folder / WORK, folder))
        return _merged(folders)


def _merged(folders: Sequence[Path]) -> Merged:
    found = {folder: _paths(folder / WORK, _BLOCKS) for folder in folders}
    runs = {folder: {each.name for each in (folder / WORK).iterdir() if each.is_dir()} for folder in folders}
    # A job that was killed while it began has a folder and no run yet: it is given what the others have.
    first = next(filter(runs.get, folders), folders[0])
    for folder in folders:
        if runs[folder] not in (set(), runs[first]):
            own, theirs = (_precisions(each, runs[each]) for each in (folder, first))
            if own != theirs and own and theirs:
                fault = f"encodes in precision {own}, and the shard in {first} in {theirs}"
                raise InputError(fault, "run all jobs of an array with the same --precision", where=folder)
            fault = f"unfinished work of another run than in {first}"
            raise InputError(fault, "merge shards of one command with the same inputs and options", where=folder)
    every = {path: folder for folder in reversed(folders) for path in found[folder]}
    measured = {path: folder for folder in reversed(folders) for path in _paths(folder / WORK, *_MEASURED)}
    for folder in folders:
        for path in sorted(every.keys() - found[folder]):
            _give(every[path] / WORK / path, folder / WORK / path)
        for path, other in measured.items():
            source, target = other / WORK / path, folder / WORK / path
            if not is_whole(target) or target.read_bytes() != source.read_bytes():
                _give(source, target)
    return Merged(len(every), {str(folder): len(blocks) for folder, blocks in found.items()})


def _precisions(folder: Path, runs: Iterable[str]) -> str:
    known = {kept_json(folder / WORK / run / PRECISION) for run in runs}
    return ", ".join(sorted(map(str, known - {None})))


def _paths(work: Path, *patterns: str) -> frozenset[Path]:
    whole = filter(is_whole, (path for pattern in patterns for path in work.rglob(pattern)))
    return frozenset(path.relative_to(work) for path in whole)


def _give(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_suffix(f".{os.getpid()}.tmp")
    # A block is never changed, so that on one disk shards can share it: a link takes no room and next to no time.
    try:
        os.link(source, temporary)
    except OSError:
        shutil.copyfile(source, temporary)
    temporary.replace(target)
    record(target)


@summarises(Merged)
def _summary(found: Merged) -> Summary:
    columns = (Column("shard"), Column("blocks of its own", align="right", format=",d"))
    table = Table(f"{found.blocks:,} blocks, now in each of the shards", columns, tuple(found.own.items()))
    return Summary((table,), found.json())
