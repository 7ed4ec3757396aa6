"""What a long job needs beside its input: where its blocks lie, what runs it, whom it tells."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from truerank.work.engines import Engine, LocalEngine
from truerank.work.progress import Progress, Quiet


@dataclass(frozen=True)
class Job:
    """Where a job's blocks lie, what runs it, and whom it tells.

    Args:
        folder: where finished blocks lie; a killed job continues from there.
        engine: what runs the blocks (default: this process).
        key: what makes the blocks readable, where no text may stand on the disk; empty for plain files.
    """

    folder: Path
    engine: Engine = field(default_factory=LocalEngine)
    progress: Progress = field(default_factory=Quiet)
    key: bytes = field(default=b"", repr=False)

    def part(self, name: str) -> Job:
        """The same in a folder of its own."""
        return replace(self, folder=self.folder / name)


@contextlib.contextmanager
def opened(job: Job | None) -> Iterator[Job]:
    """The job with its folder made; without one, a job in a temporary folder and this process."""
    if job is not None:
        job.folder.mkdir(parents=True, exist_ok=True)
        yield job
        return
    with tempfile.TemporaryDirectory() as folder:
        yield Job(Path(folder))
