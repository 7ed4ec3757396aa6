"""The files of a folder that may hold data: nested folders and links are followed, and what is skipped is counted."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from truerank.errors import InputError
from truerank.sources import compressed, formats
from truerank.sources.mteb_results import META_FILE, is_mteb_result

_MOST_FILES: Final = 20_000
_CACHES: Final = frozenset("__pycache__ node_modules venv site-packages".split())
_NO_DATA: Final = frozenset(
    ".md .rst .py .ipynb .sh .log .png .jpg .jpeg .gif .svg .pdf .html .css .js .ts .toml .cfg .ini .lock".split()
)
#: The files of a test set of BEIR, compressed or not.
_PART: Final = re.compile(r"(queries|corpus)\.jsonl")


@dataclass(frozen=True)
class FolderContent:
    """What is in a folder.

    Attributes:
        files: those that may hold data, in the order of their paths, but those of the next two.
        tests: the folders in it, or itself, that are test sets of BEIR.
        results: result files of MTEB.
        skipped: what was not looked at, with counts.
    """

    folder: Path
    files: tuple[Path, ...]
    tests: tuple[Path, ...]
    results: tuple[Path, ...]
    skipped: tuple[str, ...]


def folder_content(folder: Path) -> FolderContent:
    """What a folder holds."""
    left: Counter[str] = Counter()
    tests, files, results = list[Path](), list[Path](), list[Path]()
    for path in _walked(folder, left, tests):
        if len(files) + len(results) == _MOST_FILES:
            left[f"files after the first {_MOST_FILES:,}"] += 1
        elif path.name == META_FILE:
            left["metadata of models"] += 1
        elif path.suffix == ".json" and is_mteb_result(path):
            results.append(path)
        else:
            files.append(path)
    skipped = tuple(f"{what} ({count:,})" for what, count in sorted(left.items()))
    if not files and not results and not tests:
        fault = "an empty folder" if not skipped else f"no files of data in it (not looked at: {', '.join(skipped)})"
        raise InputError(fault, "give files, or a folder that holds some", where=folder)
    return FolderContent(folder, tuple(files), tuple(tests), tuple(results), skipped)


def _walked(folder: Path, left: Counter[str], tests: list[Path]) -> Iterator[Path]:
    """Files in the order of their paths, each once."""
    files: list[Path] = []
    for path in _entries(folder, left, tests, set()):
        if path.name.startswith("."):
            left["hidden files"] += 1
        elif path.suffix.lower() in _NO_DATA:
            left[f"{path.suffix.lower()} files"] += 1
        elif not path.is_file():
            left["broken links" if path.is_symlink() else "special files"] += 1
        else:
            files.append(path)
    # A file counts under its own name, and one from elsewhere under the first of its names.
    seen = {_identity(path) for path in files if not path.is_symlink()}
    for path in files:
        if path.is_symlink() and _identity(path) in seen:
            left["second links to a file"] += 1
        else:
            seen.add(_identity(path))
            yield path


def _entries(place: Path, left: Counter[str], tests: list[Path], seen: set[tuple[int, int]]) -> Iterator[Path]:
    """What is in a folder and in those within it, but for the parts of test sets."""
    try:
        inside, identity = sorted(place.iterdir()), _identity(place)
    except OSError:
        left["folders without permission to look into"] += 1
        return
    if identity in seen:
        left["second links to a folder"] += 1
        return
    seen.add(identity)
    manifest = place / "manifest.json"
    if manifest.is_file() and b'"artifacts"' in compressed.checked_file(manifest).read_bytes():
        left["folders that truerank wrote"] += 1
        return
    if is_test := formats._first(place / "queries.jsonl") is not None:
        tests.append(place)
    for path in inside:
        if is_test and (_PART.match(path.name) or (path.name == "qrels" and path.is_dir())):
            continue
        if not path.is_dir():
            yield path
        elif path.name.startswith("."):
            left["hidden folders"] += 1
        elif path.name in _CACHES:
            left["caches"] += 1
        else:
            yield from _entries(path, left, tests, seen)


def _identity(path: Path) -> tuple[int, int]:
    at = path.stat()
    return at.st_dev, at.st_ino
