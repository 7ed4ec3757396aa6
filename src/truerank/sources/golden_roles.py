"""The roles that columns of a golden file can have, and the faults of a table that lacks one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from string import digits
from typing import Final

from truerank.errors import InputError, TwoReadingsError
from truerank.sources.golden_rows import GoldenRows, first_names

#: What a column can be named with `--columns`.
ROLES: Final = (
    "id", "question", "expected", "grade", "retrieved", "scores", "system", "document", "rank", "score", "repeat",
    "measure",
)  # fmt: skip
#: Of which several columns can be named.
_SEVERAL: Final = ("expected", "retrieved", "scores", "score", "rank", "label", "system", "id", "question")
MOST_SYSTEMS: Final = 12


class HalfError(InputError):
    """A table that says what was expected, or what was retrieved, and lacks the other half."""


class NumbersError(TwoReadingsError, HalfError):
    """Numbers that may be scores, or places, times, counts or ids; graded documents that may be in an order."""


@dataclass(frozen=True)
class GoldenRoles:
    """Which column is what; `retrieved` and `scores` by system, several columns of ranks for one.

    `left` says which columns are taken for nothing, where somebody could take them for a system.
    """

    identifier: str | None = None
    question: str | None = None
    expected: str | None = None
    grade: str | None = None
    system: str | None = None
    document: str | None = None
    rank: str | None = None
    score: str | None = None
    repeat: str | None = None
    measure: str | None = None
    retrieved: Mapping[str, str] = field(default_factory=dict)
    scores: Mapping[str, str] = field(default_factory=dict)
    is_scores: bool = False
    left: tuple[str, ...] = ()

    def columns(self) -> dict[str, tuple[str, ...]]:
        named = {
            "id": self.identifier, "question": self.question, "expected": self.expected, "system": self.system,
            "document": self.document, "rank": self.rank, "score": self.score,
            "grade": self.grade, "repeat": self.repeat, "measure": self.measure,
        }  # fmt: skip
        if self.measure in (self.score, *self.retrieved.values()):
            del named["measure"]
        found: dict[str, tuple[str, ...]] = {role: (name,) for role, name in named.items() if name is not None}
        if self.retrieved:
            found["scores" if self.is_scores else "retrieved"] = tuple(self.retrieved.values())
        return found


def named_columns(
    columns: str | Mapping[str, str], table: GoldenRows, roles: Sequence[str] = ROLES
) -> dict[str, tuple[str, ...]]:
    """The columns that were named, by role."""
    if isinstance(columns, str):
        pairs = [part.partition("=")[::2] for part in columns.split(",") if part.strip()]
    else:
        pairs = list(columns.items())
    chosen: dict[str, tuple[str, ...]] = {}
    for role, names in pairs:
        if role.strip() not in roles:
            raise table.fault(f"a column cannot be a '{role.strip()}'", f"columns are {', '.join(roles)}")
        several = tuple(name.strip() for name in names.split("+") if name.strip())
        if names.strip() in table.names:
            several = (names.strip(),)
        if absent := [name for name in several if name not in table.names]:
            raise table.fault(f"no column '{absent[0]}'", f"there are {first_names(table.names)}")
        if len(several) > 1 and role.strip() not in _SEVERAL:
            raise table.fault(f"{len(several)} columns for '{role.strip()}'", "name one of them")
        chosen[role.strip()] = several
    return chosen


def only_one(table: GoldenRows, names: Iterable[str], role: str) -> str | None:
    found = list(names)
    if len(found) > 1:
        both = " or ".join(f"'{name}'" for name in found[:3])
        choices = tuple(f"{role}={name}" for name in found)
        if role == "expected" and len({name.rstrip(digits) for name in found}) == 1:
            choices = (f"{role}={'+'.join(found)}", *choices)
        raise table.two_readings(f"{role} in {both}", choices)
    return found[0] if found else None


def no_expected(table: GoldenRows) -> HalfError:
    fault = f"no column with the expected answers; there are {first_names(table.names, quoted=True)}"
    return HalfError(
        fault, "name it: --columns expected=COLUMN; or give the file that has them, too", where=table.where
    )
