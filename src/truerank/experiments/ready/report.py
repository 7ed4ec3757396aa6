"""What `experiment designs` prints."""

from __future__ import annotations

from truerank.experiments.ready import DesignSize, ReadyDesigns
from truerank.reports.results import Summary, summarises
from truerank.reports.tables import Column, Table

_NOTES = (
    "Training sets: each size for itself. A cell is a training, or a checkpoint that is tested without one.",
    "Topics: judged ones with a text, by benchmark, where the design states their number; a run with another number "
    "ends.",
)


@summarises(ReadyDesigns)
def _ready(found: ReadyDesigns) -> Summary:
    if found.written is not None:
        return Summary((str(found.written),), {"file": str(found.written)})
    facts = [{"name": one.name, "says": one.says, **one.size._asdict(), "paper": one.paper} for one in found.designs]
    lines = []
    for one in found.designs:
        lines += [one.name, f"  {one.says}", *([f"  in the paper: {one.paper}"] if one.paper else [])]
    return Summary(("\n".join(lines), _table(found)), {"designs": facts})


def _table(found: ReadyDesigns) -> Table:
    """What they count."""
    counts = ("training sets", "models", "seeds", "trainings", "cells")
    columns = (
        Column("name"),
        *Column.numbers(",d", *counts),
        Column("topics"),
    )
    rows = tuple((one.name, *one.size[:5], _topics(one.size)) for one in found.designs)
    return Table("Ready designs", columns, rows, _NOTES)


def _topics(size: DesignSize) -> str | None:
    known = [f"{name} {count:,}" for name, count in size.topics.items() if count is not None]
    return ", ".join(known) or None
