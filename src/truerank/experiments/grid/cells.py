"""The cells of a grid: what is trained on what, and how often."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from truerank.experiments.grid.design import Design, ModelDesign, SetDesign


class GridTraining(NamedTuple):
    """One training: a set in one size, a model, a seed. Its cells differ in how passages become scores.

    `size` is in instances, two for each row; 0 stands for all rows of a set whose number is not known yet, and for a
    checkpoint that is not trained at all.
    """

    set: SetDesign
    size: int
    model: ModelDesign
    seed: int

    @property
    def variants(self) -> tuple[str, ...]:
        """The variants of its results; one without a name where the collections say how passages become scores."""
        return self.model.aggregates or ("",)

    @property
    def drawn(self) -> SetDesign:
        """The set as this training reads it."""
        return self.set.drawn(self.model.name, self.seed)


class Cell(NamedTuple):
    """One cell of the grid, as it stands in the record.

    `address` follows from all that decides the result; `variant` is "first", "max", or empty where the collections say.
    """

    address: str
    set: str
    kind: str
    label: str
    collections: tuple[str, ...]
    size: int
    model: str
    recipe: str
    seed: int
    variant: str = ""

    def json(self) -> dict[str, Any]:
        """By the names of the record's columns."""
        rest = {name: value for name, value in self._asdict().items() if name != "address"}
        return {"cell": self.address, **rest, "collections": list(self.collections)}

    @classmethod
    def of(cls, value: Mapping[str, Any]) -> Cell:
        """What `json` gave."""
        own = {name: value[name] for name in cls._fields if name not in ("address", "collections")}
        return cls(address=value["cell"], collections=tuple(value["collections"]), **own)


def expand(design: Design) -> tuple[GridTraining, ...]:
    """All trainings of a design: by set, size, model, seed, in the order of the file.

    Args:
        design: the experiment; `len(training.variants)` cells come from each training.
    """
    return tuple(_trainings(design))


def _trainings(design: Design) -> Iterator[GridTraining]:
    for one in design.sets:
        untrained = one.checkpoint is not None
        for size in one.sizes or (0,):
            for model in design.models:
                if model.sets and one.name not in model.sets:
                    continue
                if model.sizes and size not in model.sizes and not untrained:
                    continue
                # What is not trained is the same under every seed.
                for seed in model.seeds[:1] if untrained else model.seeds:
                    yield GridTraining(one, size, model, seed)
