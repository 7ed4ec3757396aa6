"""Folds: topics divided for cross-validation, the same way whatever their order, or as a file says."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from truerank.errors import InputError, OptionError
from truerank.loading import load_json, whole_number
from truerank.sources import compressed
from truerank.sources.lines import numbered_lines, whole_text

#: The topics of each fold.
Folds = tuple[tuple[str, ...], ...]

_REMEDY: Final = "write a JSON list of lists of topics, an object {fold: [topics]}, or lines: topic TAB fold"


def folds(topics: Iterable[str], k: int = 5, seed: int = 0) -> Folds:
    """Divides topics into folds whose sizes differ by at most one.

    The division rests on a hash of seed and topic, so that it does not change with the order of the topics, the
    machine or the version of a library.

    Args:
        topics: their ids.
        k: number of folds.
        seed: another seed gives another division.

    Returns:
        The topics of each fold, in ascending order.

    Raises:
        InputError: fewer than two folds, fewer topics than folds, or a topic that is there twice.
    """
    ids = list(topics)
    if len(set(ids)) < len(ids):
        raise InputError(f"the topic {_first_twice(ids)} is there twice", "give every topic once")
    if k < 2:
        raise OptionError("folds", f"{k} is too few", "cross-validation needs 2 folds or more")
    if len(ids) < k:
        raise OptionError("folds", f"{len(ids):,} topics make no {k:,} folds", "choose fewer folds")
    drawn = sorted(ids, key=lambda topic: (hashlib.sha256(f"{seed}\0{topic}".encode()).digest(), topic))
    return tuple(tuple(sorted(drawn[start::k])) for start in range(k))


def read_folds(file: str | Path) -> Folds:
    """Reads folds from JSON or from lines, compressed or not.

    JSON: a list of lists of topics (as Anserini has them), an object of lists by fold, an object with the fold of each
    topic, or Capreolus' object of `{"predict": {"test": [topics]}}` by fold. Lines: topic, blank or tab, fold.

    Args:
        file: the file.

    Returns:
        The topics of each fold as they stand there; folds in the order of the JSON, or by number or name.

    Raises:
        InputError: not readable, another shape, fewer than two folds, or a topic in two of them.
    """
    path = compressed.checked_file(Path(file))
    if compressed.head(path).removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"[", b"{"):
        value = load_json(whole_text(path)[0], path, remedy=_REMEDY)
        return checked_folds(_of_json(value, path), path)
    by_fold: dict[str, list[str]] = {}
    for line in numbered_lines(path):
        cells = line.text.split()
        if cells and len(cells) != 2:
            raise InputError(f"{len(cells)} columns instead of 2", "write topic TAB fold", where=path, line=line.number)
        if cells:
            by_fold.setdefault(cells[1], []).append(cells[0])
    return checked_folds([by_fold[name] for name in sorted(by_fold, key=_number_first)], path)


def checked_folds(given: Iterable[Iterable[str]], where: str | Path | None = None) -> Folds:
    """Folds that can be used."""
    found = tuple(tuple(fold) for fold in given)
    if len(found) < 2:
        raise InputError(f"{len(found)} fold is too few", "cross-validation needs 2 or more", where=where)
    if empty := [number for number, fold in enumerate(found, start=1) if not fold]:
        raise InputError(f"fold {empty[0]} is empty", "leave it out or fill it", where=where)
    every = [topic for fold in found for topic in fold]
    if len(set(every)) < len(every):
        raise InputError(f"the topic {_first_twice(every)} is there twice", "give it one fold", where=where)
    return found


def _of_json(value: Any, path: Path) -> list[list[str]]:
    if isinstance(value, list):
        return [_topics(fold, path) for fold in value]
    if isinstance(value, dict) and value:
        if all(isinstance(fold, list) for fold in value.values()):
            return [_topics(fold, path) for fold in value.values()]
        if all(isinstance(fold, dict) for fold in value.values()):
            return [_topics(_test_part(fold, path), path) for fold in value.values()]
        if all(isinstance(fold, str | int) for fold in value.values()):
            names = sorted({str(fold) for fold in value.values()}, key=_number_first)
            return [[topic for topic, fold in value.items() if str(fold) == name] for name in names]
    raise InputError("no folds", _REMEDY, where=path)


def _test_part(fold: dict[str, Any], path: Path) -> Any:
    predict = fold.get("predict")
    if not isinstance(predict, dict) or "test" not in predict:
        raise InputError('a fold without {"predict": {"test": [topics]}}', _REMEDY, where=path)
    return predict["test"]


def _topics(fold: Any, path: Path) -> list[str]:
    if not isinstance(fold, list) or not all(isinstance(topic, str | int) for topic in fold):
        raise InputError("a fold that is no list of topics", _REMEDY, where=path)
    return [str(topic) for topic in fold]


def _number_first(name: str) -> tuple[int, int, str]:
    number = whole_number(name)
    return (1, 0, name) if number is None else (0, number, name)


def _first_twice(topics: Sequence[str]) -> str:
    return next(topic for topic, count in Counter(topics).items() if count > 1)
