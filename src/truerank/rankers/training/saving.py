"""The checkpoint of a training: a file that appears whole or not at all."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from truerank.errors import InputError
from truerank.rankers.training.steps import Steps
from truerank.work.kept import forget, is_whole, kept_path


class Kept(NamedTuple):
    """What a checkpoint holds: instances that are done, the hash over them, and the state of the steps."""

    done: int
    instances: str
    state: Mapping[str, Any]


class TrainingCheckpoint:
    """A file that appears whole or not at all; one of another training is not taken.

    Args:
        torch: the package.
        path: of the file.
        identity: of the training.
        seconds: between two checkpoints, at the earliest.
    """

    def __init__(self, torch: Any, path: Path, identity: str, seconds: float) -> None:
        self._torch, self._path, self._identity, self._seconds = torch, path, identity, seconds
        self._last = time.monotonic()

    def due(self) -> bool:
        """Whether it is time for another one."""
        return time.monotonic() - self._last >= self._seconds

    def write(self, run: Steps, count: int, instances: str) -> None:
        """Keeps the state after so many instances, whose hash is given; one process of several writes."""
        if run.is_first:
            content = {"identity": self._identity, "count": count, "instances": instances}
            # Into a file of Python's, which says where a disk was full.
            with kept_path(self._path) as temporary, temporary.open("wb") as stream:
                self._torch.save({**content, "state": run.state()}, stream)
        self._last = time.monotonic()

    def read(self) -> Kept | None:
        """The checkpoint of this training; None where there is none, a damaged one, or one of another."""
        if not is_whole(self._path):
            return None
        try:
            found = self._torch.load(self._path, map_location="cpu", weights_only=True)
            if found["identity"] != self._identity:
                return None
            return Kept(int(found["count"]), str(found["instances"]), found["state"])
        except Exception as error:  # torch raises whatever its reader meets
            fault = f"no checkpoint that can be read ({type(error).__name__})"
            raise InputError(fault, "remove it to begin again", where=self._path) from error

    def remove(self) -> None:
        """Removes the file, if there is one."""
        forget(self._path)

    @property
    def path(self) -> Path:
        """Of the file."""
        return self._path
