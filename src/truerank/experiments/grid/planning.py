"""From a design to work: everything that cells share is made once, every cell gets its address."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

import polars as pl

from truerank.experiments.grid.collections import TestCollection, open_collection
from truerank.experiments.grid.design import Design, ModelDesign
from truerank.experiments.grid.networks import Network, NetworkMaker, recipe_of
from truerank.experiments.grid.results import LEAKED_SCHEMA, Cell, GridTraining, expand
from truerank.experiments.grid.sets import TrainingSet, open_set
from truerank.rankers.training.recipes import Recipe
from truerank.work.artifacts import digest
from truerank.work.progress import Progress

#: Changes where cells are no longer what they were by their addresses.
_VERSION: Final = 1


class Test(NamedTuple):
    """How a collection is scored for one cell."""

    collection: str
    folder: Path
    depth: int
    policy: str
    aggregate: str


@dataclass(frozen=True)
class Work:
    """One training and the cells that come from it; picklable.

    Attributes:
        number: in the grid, from 0.
        training: what is trained on what.
        source: where the rows are; empty for a checkpoint that is not trained.
        size: in instances, as it is; 0 for such a checkpoint.
        network: how the ranker is opened.
        recipe: of the training.
        cells: one for each variant, with how each of its collections is scored.
        inputs: of each cell, what its address follows from.
    """

    number: int
    training: GridTraining
    source: str
    size: int
    network: Network
    recipe: Recipe
    cells: tuple[Cell, ...]
    tests: tuple[tuple[Test, ...], ...]
    inputs: tuple[Mapping[str, Any], ...]

    @property
    def trained(self) -> bool:
        """Whether anything is trained: a checkpoint is only tested."""
        return self.training.set.checkpoint is None

    @property
    def cpus(self) -> int:
        """Processors that it uses."""
        return self.training.model.cpus

    @property
    def gpus(self) -> float:
        """Of a GPU that it needs on a cluster."""
        return self.training.model.gpus


@dataclass(frozen=True)
class Plan:
    """A grid that is ready to be run.

    Attributes:
        design: of the experiment.
        sets: the training sets, by name; one for each draw.
        collections: the test collections, by name.
        works: all trainings, in the order of the design.
        leaked: columns as in `LEAKED_SCHEMA`.
    """

    design: Design
    sets: Mapping[str, TrainingSet]
    collections: Mapping[str, TestCollection]
    works: tuple[Work, ...]
    leaked: pl.DataFrame = field(repr=False)

    @property
    def cells(self) -> tuple[Cell, ...]:
        """All cells, in the order of the design."""
        return tuple(cell for work in self.works for cell in work.cells)


def make_plan(design: Design, out: Path, told: Progress) -> Plan:
    """Makes what the cells share, and the cells."""
    trainings = expand(design)
    draws = {one.name: one for one in (each.drawn for each in trainings) if one.checkpoint is None}
    # Sets without a fault first: others may be filled from them.
    ordered = sorted(draws.values(), key=lambda one: one.kind != "none")
    sets = {one.name: open_set(one, out, told) for one in ordered}
    collections: dict[str, TestCollection] = {}
    leaked = [pl.DataFrame(schema=LEAKED_SCHEMA)]
    for one in design.collections:
        depths = sorted({model.depth or one.depth for model in design.models})
        opened, found = open_collection(one, list(sets.values()), depths, out, told)
        collections[one.name] = opened
        leaked.append(found)
    maker = NetworkMaker(out / "inputs" / "vocabularies", told)
    works: list[Work] = []
    for training in trainings:
        docs = [design.collection(name).docs for name in training.set.collections]
        network = maker.ready(training.model, docs, training.set.checkpoint)
        works.append(_work(len(works), training, sets.get(training.drawn.name), network, collections))
    return Plan(design, sets, collections, tuple(works), pl.concat(leaked))


def _work(
    number: int,
    training: GridTraining,
    made: TrainingSet | None,
    network: Network,
    collections: Mapping[str, TestCollection],
) -> Work:
    size = 0 if made is None else training.size or max(made.prefixes)
    recipe = recipe_of(training.model)
    cells, all_tests, all_inputs = [], [], []
    for variant in training.variants:
        tests = tuple(_test(training.model, collections[name], variant) for name in training.set.collections)
        inputs = {
            "version": _VERSION,
            "instances": None if made is None else made.prefixes[size],
            "network": network.fingerprint,
            "recipe": {name: value for name, value in recipe.json().items() if name not in ("name", "source")},
            "seed": training.seed,
            "cpus": training.model.cpus,
            "collections": [
                [collections[test.collection].fingerprints[test.depth], test.depth, test.policy, test.aggregate]
                for test in tests
            ],
        }
        if made is None:
            inputs |= {"recipe": None, "seed": None}
        cells.append(
            _cell(training, digest(inputs)[:24], size, "no training" if made is None else recipe.name, variant)
        )
        all_tests.append(tests)
        all_inputs.append(inputs)
    source = "" if made is None else made.source
    return Work(number, training, source, size, network, recipe, tuple(cells), tuple(all_tests), tuple(all_inputs))


def _test(model: ModelDesign, collection: TestCollection, variant: str) -> Test:
    design = collection.design
    return Test(
        design.name,
        collection.work,
        model.depth or design.depth,
        model.policy or design.policy,
        variant or design.aggregate,
    )


def _cell(training: GridTraining, address: str, size: int, recipe: str, variant: str) -> Cell:
    one = training.set
    return Cell(
        address,
        one.name,
        one.kind,
        one.label,
        one.collections,
        size,
        training.model.name,
        recipe,
        training.seed,
        variant,
    )
