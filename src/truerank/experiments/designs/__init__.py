"""Ready designs: the experiments of the three papers, at full size and at sizes that run on one machine."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

from truerank.errors import InputError
from truerank.reports.tables import Column, Table
from truerank.work.artifacts import write_text

__all__ = ["ReadyDesign", "ReadyDesigns", "copy_design", "ready_designs"]


class ReadyDesign(NamedTuple):
    """A design that comes with the package: its name, and what its first comment line says."""

    name: str
    says: str
    text: str


class ReadyDesigns(NamedTuple):
    """All designs that come with the package."""

    designs: tuple[ReadyDesign, ...]

    def table(self) -> Table:
        """Their names and what they are."""
        rows = tuple((one.name, one.says) for one in self.designs)
        return Table("Ready designs", (Column("name"), Column("what it is")), rows)

    def text(self) -> str:
        """The table in plain characters."""
        return self.table().text()

    def json(self) -> dict[str, Any]:
        """Names and descriptions."""
        return {"designs": [{"name": one.name, "says": one.says} for one in self.designs]}


def ready_designs() -> ReadyDesigns:
    """The designs that come with the package, by name."""
    files = sorted(
        (file for file in resources.files(__package__).iterdir() if file.name.endswith(".yaml")),
        key=lambda file: file.name,
    )
    found = []
    for file in files:
        text = file.read_text(encoding="utf-8")
        found.append(ReadyDesign(file.name.removesuffix(".yaml"), text.partition("\n")[0].lstrip("# "), text))
    return ReadyDesigns(tuple(found))


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
