"""What can be wrong with a submitted run: kinds of faults, errors and warnings, and a ledger that counts them all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Literal, NamedTuple, get_args

import polars as pl

from truerank.errors import InputError, OptionError

Level = Literal["error", "warning", "off"]

#: Every kind of fault and its level unless the user says otherwise, in the order of reports.
KINDS: Final[dict[str, Level]] = {
    "unreadable": "error",
    "empty": "error",
    "columns": "error",
    "control": "error",
    "encoding": "warning",
    "q0": "warning",
    "rank": "error",
    "score": "error",
    "not-finite": "error",
    "duplicate": "error",
    "too-many": "error",
    "unknown-topic": "error",
    "unjudged-topic": "warning",
    "missing-topic": "error",
    "order": "error",
    "rank-repeated": "error",
    "rank-gap": "warning",
    "mixed-tags": "error",
    "tag-length": "warning",
    "tag-pattern": "error",
    "not-candidate": "error",
    "unknown-document": "error",
}


class Fault(NamedTuple):
    """One fault of a run, with its line where it has one."""

    file: str
    line: int | None
    kind: str
    level: Level
    fault: str
    remedy: str

    def text(self) -> str:
        """The fault as one line: `file:line: fault. remedy. [level kind]`."""
        return f"{InputError(self.fault, self.remedy, where=self.file, line=self.line)} [{self.level} {self.kind}]"


class Ledger:
    """Counts every fault of one run and keeps the first ones of each kind, by line.

    Args:
        file: the run's file.
        levels: the level of each kind.
        cap: how many faults of a kind are kept; None for all.
        ordered: whether the faults of a kind come in the order of their lines; then what is full stays as it is.
    """

    def __init__(self, file: str, levels: Mapping[str, Level], cap: int | None, *, ordered: bool = True) -> None:
        self.file = file
        self._ordered = ordered
        self._levels = levels
        self._cap = cap
        self._counts: Counter[str] = Counter()
        self._kept: dict[str, list[Fault]] = {}

    def add(self, kind: str, line: int | None, fault: str, remedy: str) -> None:
        """Enters one fault."""
        self._enter(kind, 1, lambda: [(line, fault)], remedy)

    def add_rows(self, kind: str, rows: pl.DataFrame, say: Callable[..., str], remedy: str) -> None:
        """Enters one fault for each row."""
        head = rows if self._cap is None else rows.sort("line").head(self._cap)
        self._enter(kind, len(rows), lambda: [(line, say(*rest)) for line, *rest in head.iter_rows()], remedy)

    def counts(self) -> dict[str, int]:
        """How many faults of each kind there are, kept or not, in the order of `KINDS`."""
        return {kind: self._counts[kind] for kind in KINDS if self._counts[kind]}

    def faults(self) -> tuple[Fault, ...]:
        """The faults that were kept, kind after kind, by line."""
        return tuple(fault for kind in KINDS for fault in self._first(self._kept.get(kind, [])))

    def _enter(self, kind: str, count: int, found: Callable[[], Iterable[tuple[int | None, str]]], remedy: str) -> None:
        level = self._levels[kind]
        if level == "off" or not count:
            return
        self._counts[kind] += count
        kept = self._kept.setdefault(kind, [])
        if self._cap is None or len(kept) < self._cap or not self._ordered:
            kept += [Fault(self.file, line, kind, level, fault, remedy) for line, fault in found()]
        if self._cap is not None and len(kept) > 4 * self._cap:
            self._kept[kind] = self._first(kept)

    def _first(self, faults: list[Fault]) -> list[Fault]:
        ordered = sorted(faults, key=lambda fault: fault.line or 0)
        return ordered if self._cap is None else ordered[: self._cap]


def levels_of(changes: Mapping[str, Any]) -> dict[str, Level]:
    """The level of every kind of fault."""
    levels = dict(KINDS)
    for kind, level in changes.items():
        if kind not in KINDS:
            raise OptionError("level", f"no kind of fault called '{kind}'", f"one of {', '.join(KINDS)}")
        if level not in get_args(Level):
            raise OptionError("level", f"no level called '{level}'", f"one of {', '.join(get_args(Level))}")
        levels[kind] = level
    return levels
