"""The draws: which seed, wordings and family of faults two versions of a collection are planted with.

Pages are built from 5 to 10 abstracts each; one of them is relevant to some topics (and stands anywhere on the page),
the others are relevant to nothing. In one of the two versions some pages became error pages, other documents (half of
them near ones, by BM25), were cut, lost or changed their content, or say the same in other words; all the others
changed harmlessly. Same seed, same bytes. A draw is a seed and a half of the texts of error pages, notices and
boilerplate: thresholds and rules are looked at with `development` only. `fresh` has the texts of `report` and a seed
that no scan had seen when conditional differences and several rankers were added to the scan. `records-development` and
`records` are of the second family, `planted/records.py`: one record a document, wordings of public projects. `third`
has wordings that were collected, and a seed that was drawn, when the rules on the damaged version were committed.
`fourth` has the kinds and shares of `third`; its wordings and its seed are those of a developer who had not read the
rules. `fifth` has wordings of public places that were looked for when the rules on parked domains, kept beginnings and
cuts were committed. `sixth` has emptied pages, parts of pages, maintenance and scripts, in wordings that the developer
of the rules wrote when they were committed.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from common import SHARED
from planted.abstracts import Abstracts, read_abstracts
from planted.faults import Half
from planted.records import FURTHER
from planted.writing import Plan


class Draw(NamedTuple):
    """A seed, the half of the texts that goes with it, and the family of faults."""

    seed: int
    half: Half
    family: Literal["pages", "records"] = "pages"


#: The one that everything was developed with, and those that figures are reported for.
DRAWS: dict[str, Draw] = {
    "development": Draw(20220905, "development"),
    "report": Draw(20220908, "report"),
    "fresh": Draw(20261121, "report"),
    "records-development": Draw(20261122, "development", "records"),
    "records": Draw(20261123, "report", "records"),
    "third": Draw(20270314, "third", "records"),
    "fourth": Draw(31415927, "fourth", "records"),
    "fifth": Draw(27182818, "fifth", "records"),
    "sixth": Draw(16180339, "sixth", "records"),
}


def planned(name: str, draw: Draw, seed: int | None = None, unjudged: int = 500) -> tuple[Abstracts, Plan]:
    """A collection, and how faults are planted in it."""
    folder, records = SHARED / "collections", draw.family == "records"
    other = "cacm" if name == "vaswani" else "vaswani"
    outside = read_abstracts(other, folder / other) if draw.half in FURTHER else None
    plan = Plan(draw.seed if seed is None else seed, draw.half, unjudged, family=draw.family, outside=outside)
    return read_abstracts(name, folder / name, titles=records), plan
