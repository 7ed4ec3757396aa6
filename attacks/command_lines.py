"""Command lines as texts, in which words in capitals stand for folders and files."""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["words"]


def words(line: str, **places: Path | str) -> list[str]:
    """The words of a command line; a name in capitals stands for its place, which may have blanks in it."""
    if not places:
        return line.split()
    names = re.compile(rf"\b({'|'.join(places)})\b")
    return [names.sub(lambda found: str(places[found[1]]), word) for word in line.split()]
