"""Output files that appear whole or not at all, compressed as their names say; same content, same bytes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

from truerank.errors import InputError
from truerank.work.artifacts import atomic_path, opened_for_writing


class Target(NamedTuple):
    """A file to be written, and the name whose ending says how it is compressed."""

    path: Path
    name: str

    @contextmanager
    def open(self) -> Iterator[IO[bytes]]:
        """The file for writing; the same content gives the same bytes."""
        with opened_for_writing(self.path, self.name) as stream:
            yield stream


@contextmanager
def written(out: Path) -> Iterator[Target]:
    """A target that becomes `out` when the block ends without an error; otherwise nothing is left."""
    with atomic_path(out) as temporary:
        yield Target(temporary, out.name)


def refuse_overwrite(path: Path | None, out: Path) -> None:
    """Raises an InputError where the output would replace its own source or a folder."""
    if out.is_dir():
        raise InputError("a folder is there", "give --out the name of a file", where=out)
    if path is not None and out.exists() and out.samefile(path):
        raise InputError("the output would replace its own source", "choose another file with --out", where=out)
