"""What queries, documents and examples share as sources: a name, the counts of the last reading, a fingerprint."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Literal

from truerank.errors import InputError
from truerank.sources import compressed, formats, hub, irds
from truerank.sources.blocks import SourceCounts
from truerank.sources.grammar import SourceSpec


class StreamedSource:
    """A source that can be iterated any number of times, and that streams: memory does not grow with it.

    Args:
        strict: raise for bytes that are not UTF-8.
        of_irds: what it takes of a data set of ir_datasets.
        form_of: tells the format of a file, or of a folder.
    """

    def __init__(
        self,
        spec: SourceSpec,
        *,
        strict: bool = False,
        of_irds: Literal["queries", "docs", "qrels"] = "queries",
        form_of: Callable[[Path, str | None], str] = formats.detect,
    ) -> None:
        self.spec = spec
        self._strict = strict
        self._counts = SourceCounts()
        self._form = form_of(spec.path, spec.format) if spec.scheme == "file" else ""
        if spec.scheme == "irds":
            irds.check(spec.location, of_irds)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.spec.spec!r})"

    @property
    def name(self) -> str:
        """The file name without endings, or the id."""
        return self.spec.name

    @property
    def counts(self) -> SourceCounts:
        """What the last iteration read; where it was broken off, up to the block it had reached."""
        return self._counts

    @cached_property
    def fingerprint(self) -> str:
        """The identity of the content, for provenance and for resuming: size and SHA-256 of what a file or folder
        holds, or the id with the version of ir_datasets or the revision on Hugging Face; then how it is read."""
        if self.spec.scheme == "irds":
            identity = irds.fingerprint(self.spec.location)
        elif self.spec.scheme == "hf":
            identity = hub.fingerprint(self.spec)
        elif compressed.is_folder(path := self.spec.path):
            together, files = hashlib.sha256(), self._files()
            for file in files:
                together.update(f"{file.relative_to(path).as_posix()}\n{compressed.fingerprint(file)}\n".encode())
            identity = f"sha256:{together.hexdigest()};files={len(files)}"
        else:
            identity = compressed.fingerprint(path)
        return identity + "".join(f";{key}={value}" for key, value in self._settings().items() if value)

    def _nothing(self, noun: str) -> InputError:
        return InputError(f"no {noun} in it", "give a source that holds some", where=self.spec.location)

    def _files(self) -> Sequence[Path]:
        """The files that are read of a folder."""
        return ()

    def _settings(self) -> dict[str, str | None]:
        """What decides how the same bytes are read."""
        return {"column": self.spec.column, "format": self.spec.format}
