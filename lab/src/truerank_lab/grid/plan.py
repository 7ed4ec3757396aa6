"""From a design to work: what cells share is made once (sets, texts, vocabularies), every cell gets its address."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import polars as pl

from truerank.rankers.base import RANKER_FILE, RANKERS, RankerSpec, Runtime
from truerank.rankers.pretrained.checkpoints import kind_of
from truerank.sources import compressed, open_documents
from truerank.work.artifacts import digest
from truerank.work.progress import Progress
from truerank_lab.grid.design import Design, ModelDesign, expand
from truerank_lab.grid.inputs import LEAK_SCHEMA, TestCollection, TrainingSet, open_collection, open_set
from truerank_lab.grid.results import LEAKED_SCHEMA
from truerank_lab.rankers.vocabulary import Vocabulary, open_vocabulary
from truerank_lab.training import check_trainable, divided, drawn_ranker, is_drawn

_READY: Final = "vocabulary.json"
#: Changes where cells are no longer what they were by their addresses.
_VERSION: Final = 2


@dataclass(frozen=True)
class Network:
    """How to open a ranker that is to be trained, or only tested; picklable.

    `vocabulary` is the folder of that of a small model, else None; `fingerprint` is a hash over all that decides about
    the ranker but the seed: settings, vocabulary, or the checkpoint.
    """

    model: ModelDesign
    vocabulary: Path | None = None
    trained: bool = True
    fingerprint: str = ""

    def open(self, seed: int, device: str | None, memory: dict[Path, Vocabulary]) -> Any:
        """The ranker, its weights drawn from the seed or those of the checkpoint; `memory` keeps vocabularies."""
        model, settings = self.model, divided(self.model.changes)[1]
        if self.vocabulary is None:
            settings = settings | (_seed_of_head(model.model, settings, seed) if self.trained else {})
            runtime = Runtime(device=device)
            ranker: Any = RankerSpec(model.model, runtime, tuple(sorted(settings.items()))).open()
            if self.trained:
                check_trainable(ranker, model.model)
            return ranker
        if self.vocabulary not in memory:
            memory[self.vocabulary] = open_vocabulary(self.vocabulary)
        runtime, words = Runtime(device=device or "cpu"), memory[self.vocabulary]
        return drawn_ranker(model.model, words, runtime, model.trained_by, seed=seed, settings=settings)


def _seed_of_head(name: str, settings: Mapping[str, Any], seed: int) -> dict[str, int]:
    """The seed of the head that monoBERT draws for an encoder that has none."""
    kind, _, place = name.partition(":")
    if not place or kind not in RANKERS:
        kind, place = "", name
    if "seed" in settings or (Path(place) / RANKER_FILE).is_file():
        return {}
    if not kind and name not in RANKERS:
        kind = kind_of(name)
    return {"seed": seed} if (kind or name) == "monobert" else {}


class Test(NamedTuple):
    """How a collection is scored for one cell; its texts lie in the folder."""

    collection: str
    folder: Path
    depth: int
    policy: str
    aggregate: str


@dataclass(frozen=True)
class Training:
    """One training, and the cell that comes from it, a row of the record; picklable.

    `source` is empty for a checkpoint that is not trained; `tests` says how the collections are scored.
    """

    number: int
    source: str
    network: Network
    cell: Mapping[str, Any]
    tests: tuple[Test, ...]


class Plan(NamedTuple):
    """A grid that is ready to be run: its cells, with their addresses; its trainings; what leaks; notes on inputs."""

    cells: pl.DataFrame
    trainings: tuple[Training, ...]
    leaked: pl.DataFrame
    notes: tuple[str, ...]


def make_plan(design: Design, out: Path, progress: Progress) -> Plan:
    """Makes what cells share, or finds it made, and gives every cell its address."""
    cells = expand(design)
    asked = cells.filter(pl.col("recipe") != "no training").select("set", "model", "seed").unique(maintain_order=True)
    drawn = {row: design.set(row[0]).drawn(*row[1:]) for row in asked.rows()}
    # Sets without a fault first: others may be filled from them.
    ordered = sorted({one.name: one for one in drawn.values()}.values(), key=lambda one: one.kind != "none")
    sets: dict[str, TrainingSet] = {}
    for one in ordered:
        sets[one.name] = open_set(one, out, progress)
    collections: dict[str, TestCollection] = {}
    leaked = [pl.DataFrame(schema=LEAKED_SCHEMA)]
    for collection in design.collections:
        depths = {model.depth or collection.depth for model in design.models}
        tested = [sets[one.name].leaks for one in ordered if collection.name in one.collections]
        leaks = pl.concat([pl.DataFrame(schema=LEAK_SCHEMA), *tested])
        collections[collection.name], found = open_collection(collection, leaks, depths, out, progress)
        leaked.append(found)
    networks = _Networks(out / "inputs" / "vocabularies", progress)
    trainings: list[Training] = []
    for row in cells.iter_rows(named=True):
        one, model = design.set(row["set"]), design.model(row["model"])
        made = None if one.checkpoint is not None else sets[drawn[one.name, model.name, row["seed"]].name]
        network = networks.ready(model, [design.collection(name).docs for name in one.collections], one.checkpoint)
        size = 0 if made is None else row["size"] or max(made.prefixes)
        tests = tuple(_test(model, collections[name]) for name in one.collections)
        scored = [[collections[test.collection].fingerprints[test.depth], *test[2:]] for test in tests]
        inputs: dict[str, Any] = {"version": _VERSION, "network": network.fingerprint, "collections": scored}
        if made is not None:
            recipe = {key: value for key, value in model.trained_by.json().items() if key not in ("name", "source")}
            inputs |= {"instances": made.prefixes[size], "recipe": recipe, "seed": row["seed"]}
        cell = {"cell": digest(inputs)[:24], **row, "size": size}
        trainings.append(Training(len(trainings), "" if made is None else made.source, network, cell, tests))
    notes = tuple(f"{name}: {note}." for name, one in collections.items() for note in one.notes)
    schema: dict[str, Any] = {"cell": pl.String, **cells.schema}
    return Plan(
        pl.DataFrame([each.cell for each in trainings], schema=schema), tuple(trainings), pl.concat(leaked), notes
    )


def _test(model: ModelDesign, collection: TestCollection) -> Test:
    own = collection.design
    depth, policy, aggregate = model.depth or own.depth, model.policy or own.policy, model.aggregate or own.aggregate
    return Test(own.name, collection.work, depth, policy, aggregate)


class _Networks:
    """Makes ready what the rankers of a grid need; a vocabulary is counted once for each set of documents."""

    def __init__(self, folder: Path, progress: Progress) -> None:
        self._folder, self._progress = folder, progress
        self._ready: dict[str, Network] = {}
        self._memory: dict[Path, Vocabulary] = {}

    def ready(self, model: ModelDesign, docs: Sequence[str], checkpoint: str | None) -> Network:
        """A network, the words of its vocabulary counted in these documents."""
        small = checkpoint is None and is_drawn(model.model)
        key = digest([dataclasses.asdict(model), checkpoint, list(docs) if small else []])
        if key not in self._ready:
            opened = model if checkpoint is None else replace(model, model=checkpoint, recipe=None)
            network = Network(opened, self._vocabulary(model, docs) if small else None, checkpoint is None)
            self._progress.start(f"opening {opened.model}")
            ranker = network.open(0, "cpu", self._memory)
            fingerprint = ranker.fingerprint
            if small:
                fingerprint = digest([ranker.kind, dataclasses.asdict(ranker.settings), ranker.vocabulary.fingerprint])
            self._ready[key] = replace(network, fingerprint=fingerprint)
        return self._ready[key]

    def _vocabulary(self, model: ModelDesign, docs: Sequence[str]) -> Path:
        sources = [open_documents(each) for each in docs]
        vectors = compressed.fingerprint(Path(model.vectors)) if Path(model.vectors).is_file() else model.vectors
        folder = self._folder / digest([vectors, [source.fingerprint for source in sources]])[:16]
        if not (folder / _READY).is_file():
            self._progress.start("counting words")

            def texts() -> Iterator[str]:
                for source in sources:
                    for document in source:
                        yield document.text
                        self._progress.advance(1)

            open_vocabulary(model.vectors, texts()).save(folder)
        return folder
