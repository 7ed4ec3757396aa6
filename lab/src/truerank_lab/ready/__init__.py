"""Ready designs: the experiments of the three papers, at full size and at sizes that run on one machine."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Annotated, Final, NamedTuple

from truerank.core.result import Result, Summary, summarises
from truerank.core.tables import Column, Table
from truerank.errors import InputError, OptionError
from truerank.options import Flag, OutFile, command
from truerank.work.artifacts import write_text
from truerank_lab.grid import expand, read_design
from truerank_lab.grid.design import Design

__all__ = ["DesignSize", "ReadyDesign", "ReadyDesigns", "designs"]

#: The comment that says what the paper counts.
_IN_THE_PAPER: Final = "# In the paper: "


_NOTES = (
    "Training sets: each size for itself. A cell is a training, or a checkpoint that is tested without one.",
    "Topics: judged ones with a text, by benchmark, where the design states their number; a run with another number "
    "ends.",
)


class DesignSize(NamedTuple):
    """How large a design is.

    Attributes:
        sets: training sets, each size for itself; checkpoints are none.
        models: that are trained or tested.
        seeds: of the trainings.
        trainings: all of them.
        cells: what is recorded: of trainings, of their variants, and of checkpoints.
        topics: by benchmark, where the design states how many there are.
    """

    sets: int
    models: int
    seeds: int
    trainings: int
    cells: int
    topics: dict[str, int | None]

    @classmethod
    def of(cls, design: Design) -> DesignSize:
        every = expand(design)
        trained = [one for one in every if one.set.checkpoint is None]
        topics: dict[str, int | None] = {}
        for benchmark in design.reported:
            counts = [design.collection(name).topic_count for name in benchmark.collections]
            topics[benchmark.name] = None if None in counts else sum(count or 0 for count in counts)
        return cls(
            len({(one.set.name, one.size) for one in trained}),
            len({one.model.name for one in every}),
            len({one.seed for one in trained}),
            len(trained),
            sum(len(one.variants) for one in every),
            topics,
        )


class ReadyDesign:
    """A design that comes with the package.

    Attributes:
        text: of the file.
        says: what it is: its first comment line.
        paper: what the paper counts: its second comment line; empty for designs of our own.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self.name, self.text = file.stem, file.read_text(encoding="utf-8")
        first, second, *_ = self.text.splitlines()
        self.says = first.lstrip("# ")
        self.paper = second.removeprefix(_IN_THE_PAPER) if second.startswith(_IN_THE_PAPER) else ""

    @cached_property
    def size(self) -> DesignSize:
        return DesignSize.of(read_design(self._file, variables=False))


@dataclass(frozen=True, eq=False, repr=False)
class ReadyDesigns(Result, shown_in="truerank_lab.ready"):
    """All designs that come with the package.

    Attributes:
        written: the file that one of them was copied to.
    """

    designs: tuple[ReadyDesign, ...]
    written: Path | None = None


@command
def designs(copy: Annotated[str | None, Flag(metavar="NAME")] = None, *, out: OutFile = None) -> ReadyDesigns:
    """Lists the designs that come with the package, or copies one.

    Args:
        copy: writes this one to a file, to be changed there.
        out: the file, or a folder, which gets NAME.yaml; by default the current folder.

    Returns:
        The designs.

    Raises:
        InputError: no such design, or the file is there already.

    Examples:

        truerank experiment designs --format markdown

        truerank experiment designs --copy leakage-small
    """
    with resources.as_file(resources.files(__package__)) as folder:
        found = ReadyDesigns(tuple(ReadyDesign(file) for file in sorted(folder.glob("*.yaml"))))
    return found if copy is None else replace(found, written=_copied(found, copy, Path(out or "")))


def _copied(found: ReadyDesigns, name: str, target: Path) -> Path:
    known = {one.name: one for one in found.designs}
    wanted = name.removesuffix(".yaml")
    if wanted not in known:
        raise OptionError("copy", f"no design '{name}'", f"there are {', '.join(known)}")
    target = target / f"{wanted}.yaml" if target.is_dir() else target
    if target.exists():
        raise InputError("is there already", "choose another file with `out`", where=target)
    write_text(target, known[wanted].text)
    return target


@summarises(ReadyDesigns)
def _ready(found: ReadyDesigns) -> Summary:
    if found.written is not None:
        return Summary((str(found.written),), {"file": str(found.written)})
    facts = [{"name": one.name, "says": one.says, **one.size._asdict(), "paper": one.paper} for one in found.designs]
    lines = []
    for one in found.designs:
        lines += [one.name, f"  {one.says}", *([f"  in the paper: {one.paper}"] if one.paper else [])]
    counts = ("training sets", "models", "seeds", "trainings", "cells")
    columns = (Column("name"), *Column.numbers(",d", *counts), Column("topics"))
    rows = tuple((one.name, *one.size[:5], _topics(one.size)) for one in found.designs)
    return Summary(("\n".join(lines), Table("Ready designs", columns, rows, _NOTES)), {"designs": facts})


def _topics(size: DesignSize) -> str | None:
    known = [f"{name} {count:,}" for name, count in size.topics.items() if count is not None]
    return ", ".join(known) or None
