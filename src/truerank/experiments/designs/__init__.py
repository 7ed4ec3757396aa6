"""Ready designs: the experiments of the three papers, at full size and at sizes that run on one machine."""

from __future__ import annotations

from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any, Final, NamedTuple

from truerank.errors import InputError
from truerank.experiments.grid import expand, read_design
from truerank.experiments.grid.design import Design
from truerank.reports.tables import Column, Table
from truerank.work.artifacts import write_text

__all__ = ["DesignSize", "ReadyDesign", "ReadyDesigns", "copy_design", "ready_designs"]

#: The comment that says what the paper counts.
_IN_THE_PAPER: Final = "# In the paper: "


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
        """Counts a design."""
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

    Args:
        file: the design.

    Attributes:
        name: of the design.
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
        """What the design counts."""
        return DesignSize.of(read_design(self._file, variables=False))


class ReadyDesigns(NamedTuple):
    """All designs that come with the package."""

    designs: tuple[ReadyDesign, ...]

    def table(self) -> Table:
        """What they are and what they count, beside what the papers count."""
        number: dict[str, Any] = {"align": "right", "format": ",d"}
        counts = ("training sets", "models", "seeds", "trainings", "cells")
        columns = (
            Column("name"),
            Column("what it is"),
            *(Column(name, **number) for name in counts),
            Column("topics"),
            Column("in the paper"),
        )
        rows = tuple((one.name, one.says, *one.size[:5], _topics(one.size), one.paper or None) for one in self.designs)
        notes = (
            "Training sets: each size for itself. A cell is a training, or a checkpoint that is tested without one.",
            "Topics: judged ones with a text, by benchmark, where the design states their number; a run with another "
            "number ends.",
        )
        return Table("Ready designs", columns, rows, notes)

    def text(self) -> str:
        """Name by name, in plain characters."""
        lines = []
        for one in self.designs:
            size = one.size
            lines += [one.name, f"  {one.says}"]
            lines.append(
                f"  training sets {size.sets:,}, models {size.models:,}, seeds {size.seeds:,}, "
                f"trainings {size.trainings:,}, cells {size.cells:,}; topics: {_topics(size) or 'as the data have'}"
            )
            lines += [f"  in the paper: {one.paper}"] if one.paper else []
        return "\n".join([*lines, "", *self.table().notes]) + "\n"

    def json(self) -> dict[str, Any]:
        """Names, descriptions and counts."""
        found = [{"name": one.name, "says": one.says, **one.size._asdict(), "paper": one.paper} for one in self.designs]
        return {"designs": found}


def _topics(size: DesignSize) -> str | None:
    known = [f"{name} {count:,}" for name, count in size.topics.items() if count is not None]
    return ", ".join(known) or None


def ready_designs() -> ReadyDesigns:
    """The designs that come with the package, by name."""
    with resources.as_file(resources.files(__package__)) as folder:
        return ReadyDesigns(tuple(ReadyDesign(file) for file in sorted(folder.glob("*.yaml"))))


def copy_design(name: str, out: str | Path) -> Path:
    """Writes a ready design to a file, to be changed there.

    Args:
        name: of the design.
        out: a file, or a folder, which gets `NAME.yaml`.

    Returns:
        The file.

    Raises:
        InputError: no such design, or the file is there already.
    """
    designs = {one.name: one for one in ready_designs().designs}
    wanted = name.removesuffix(".yaml")
    if wanted not in designs:
        raise InputError(f"no design '{name}'", f"there are {', '.join(designs)}", where="--copy")
    target = Path(out)
    target = target / f"{wanted}.yaml" if target.is_dir() else target
    if target.exists():
        raise InputError("is there already", "choose another file with --out", where=target)
    write_text(target, designs[wanted].text)
    return target
