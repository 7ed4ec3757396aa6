"""The kinds of findings: what each is called, how severe it is, what it does to scores, and what mends it."""

from __future__ import annotations

import tomllib
from collections.abc import Collection
from functools import cache
from importlib import resources
from typing import Final, Literal, NamedTuple, cast, get_args

Part = Literal["judgments", "documents", "topics", "together", "versions"]
#: "fault": the data alone show that something is wrong. "doubt": somebody has to look. "note": no fault, but whoever
#: uses the collection should know.
Severity = Literal["fault", "doubt", "note"]

PARTS: Final[tuple[Part, ...]] = get_args(Part)


class Kind(NamedTuple):
    """One kind of finding.

    Attributes:
        name: a word with hyphens, as in `findings.parquet`.
        part: the part of the collection that it concerns.
        severity: how severe it is.
        needs: the inputs without which nobody can look for it.
        title: a heading, in the plural.
        noun: what is counted, singular and plural.
        effect: what it does to scores, one or two sentences.
        remedy: what would mend it.
        instead: other inputs that serve as well; empty for none.
    """

    name: str
    part: Part
    severity: Severity
    needs: tuple[str, ...]
    title: str
    noun: tuple[str, str]
    effect: str
    remedy: str
    instead: tuple[str, ...] = ()

    def serves(self, given: Collection[str]) -> bool:
        """Whether these inputs are enough to look for it."""
        return set(self.needs) <= set(given) or (bool(self.instead) and set(self.instead) <= set(given))


@cache
def kinds() -> dict[str, Kind]:
    """All kinds by name, in the order in which a report lists them."""
    text = resources.files("truerank.audits.collection").joinpath("kinds.toml").read_text(encoding="utf-8")
    found = {}
    for name, about in tomllib.loads(text).items():
        noun = tuple(about["noun"])
        found[name] = Kind(
            name,
            cast(Part, about["part"]),
            cast(Severity, about["severity"]),
            tuple(about["needs"]),
            about["title"],
            (noun[0], noun[1]),
            about["effect"],
            about["remedy"],
            tuple(about.get("instead", ())),
        )
    return found


def kind_of(name: str) -> Kind:
    """A kind by its name."""
    return kinds()[name]
