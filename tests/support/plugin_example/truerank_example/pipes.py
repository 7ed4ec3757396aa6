"""A source format: records with a bar between their values, the names in the first line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path


class Pipes:
    @staticmethod
    def records(path: Path) -> Iterator[dict[str, str]]:
        with path.open(encoding="utf-8") as lines:
            names = next(lines).strip().split("|")
            for line in lines:
                yield dict(zip(names, line.rstrip("\n").split("|"), strict=True))
