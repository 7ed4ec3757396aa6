"""From a design to work: what cells share is made once (networks, vocabularies), every cell gets its address."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import polars as pl

from truerank.rankers.base import RANKER_FILE, RANKERS, RankerSpec, Runtime
from truerank.rankers.pretrained.checkpoints import kind_of
from truerank.sources import compressed, open_documents
from truerank.sources.documents import DocumentSource
from truerank.work.artifacts import digest
from truerank.work.progress import Progress
from truerank_lab.grid.collections import TestCollection, TrainingSet, open_collection, open_set
from truerank_lab.grid.design import Design, ModelDesign
from truerank_lab.grid.results import LEAKED_SCHEMA, Cell, GridTraining, expand
from truerank_lab.rankers.recipes import Recipe, recipe_named, usual_recipe
from truerank_lab.rankers.vocabulary import Vocabulary, open_vocabulary
from truerank_lab.training import check_trainable, divided, drawn_ranker, is_drawn

_READY: Final = "vocabulary.json"
#: Characters of texts whose words a worker keeps as numbers.
_MEMORY: Final = 1 << 26


@dataclass(frozen=True)
class Network:
    """How to open a ranker that is to be trained, or only tested; picklable.
     `vocabulary` is the folder of that of a small model, else None; `fingerprint` is a hash over all that decides about
    the ranker but the seed: settings, vocabulary, or the checkpoint.
    """

    model: ModelDesign
    vocabulary: Path | None
    fingerprint: str
    trained: bool = True


def recipe_of(model: ModelDesign) -> Recipe:
    recipe = recipe_named(model.recipe) if model.recipe else usual_recipe(model.model)
    return recipe.changed(divided(model.changes)[0])


class NetworkMaker:
    """Makes ready what the rankers of a grid need; a vocabulary is counted once for each set of documents."""

    def __init__(self, folder: Path, progress: Progress) -> None:
        self._folder, self._progress = folder, progress
        self._ready: dict[str, Network] = {}
        self._memory: dict[Path, Vocabulary] = {}

    def ready(self, model: ModelDesign, docs: Sequence[str], checkpoint: str | None = None) -> Network:
        """A network, the words of its vocabulary counted in these documents."""
        small = checkpoint is None and is_drawn(model.model)
        key = digest([model.json(), checkpoint, list(docs) if small else []])
        if key not in self._ready:
            opened = model if checkpoint is None else replace(model, model=checkpoint, recipe=None)
            self._ready[key] = self._small(model, docs) if small else self._checkpoint(opened, checkpoint is None)
        return self._ready[key]

    def _checkpoint(self, model: ModelDesign, trained: bool) -> Network:
        self._progress.start(f"opening {model.model}")
        network = Network(model, None, "", trained)
        return replace(network, fingerprint=network_of(network, seed=0, device="cpu").fingerprint)

    def _small(self, model: ModelDesign, docs: Sequence[str]) -> Network:
        sources = [open_documents(each) for each in docs]
        vectors = compressed.fingerprint(Path(model.vectors)) if Path(model.vectors).is_file() else model.vectors
        folder = self._folder / digest([vectors, [source.fingerprint for source in sources]])[:16]
        if not (folder / _READY).is_file():
            self._progress.start("counting words")
            open_vocabulary(model.vectors, self._texts(sources)).save(folder)
        ranker = network_of(Network(model, folder, ""), seed=0, device="cpu", memory=self._memory)
        described = [ranker.kind, dataclasses.asdict(ranker.settings), ranker.vocabulary.fingerprint]
        return Network(model, folder, digest(described))

    def _texts(self, sources: Sequence[DocumentSource]) -> Iterator[str]:
        for source in sources:
            for document in source:
                yield document.text
                self._progress.advance(1)


def network_of(network: Network, *, seed: int, device: str | None, memory: dict[Path, Vocabulary] | None = None) -> Any:
    """A ranker ready to be trained, its weights drawn from the seed or those of the checkpoint."""
    model = network.model
    recipe, settings = recipe_of(model), divided(model.changes)[1]
    if network.vocabulary is None:
        settings = settings | (_seed_of_head(model.model, settings, seed) if network.trained else {})
        runtime = Runtime(device=device, backend="torch")
        ranker: Any = RankerSpec(model.model, runtime, tuple(sorted(settings.items()))).open()
        if network.trained:
            check_trainable(ranker, model.model)
        return ranker
    kept = {} if memory is None else memory
    if network.vocabulary not in kept:
        kept[network.vocabulary] = _Remembered(open_vocabulary(network.vocabulary))
    runtime = Runtime(device=device or "cpu")
    return drawn_ranker(model.model, kept[network.vocabulary], runtime, recipe, seed=seed, settings=settings)


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


class _Remembered(Vocabulary):
    """A vocabulary that remembers the numbers of texts: the cells of a worker read the same documents."""

    def __init__(self, own: Vocabulary) -> None:
        self._own = own
        self.vectors, self.idf = own.vectors, own.idf
        self._ids: dict[str, list[int]] = {}
        self._room = _MEMORY

    @property
    def fingerprint(self) -> str:
        return self._own.fingerprint

    def ids(self, texts: Sequence[str]) -> list[list[int]]:
        new = [text for text in dict.fromkeys(texts) if text not in self._ids]
        found = dict(zip(new, self._own.ids(new), strict=True))
        for text, ids in found.items():
            if (length := len(text)) <= self._room:
                self._ids[text] = ids
                self._room -= length
        return [self._ids[text] if text in self._ids else found[text] for text in texts]

    def save(self, folder: Path) -> None:
        self._own.save(folder)


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
    """One training and the cells that come from it, one for each variant; picklable.
     `source` is empty and `size` (in instances) 0 for a checkpoint that is not trained; `tests` says how the
    collections of each cell are scored, `inputs` what the address of each cell follows from.
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
        return self.training.model.cpus

    @property
    def gpus(self) -> float:
        """Of a GPU that it needs on a cluster."""
        return self.training.model.gpus


@dataclass(frozen=True)
class Plan:
    """A grid that is ready to be run: sets (one for each draw) and collections by name, trainings in the order of the
    design, and what leaks, with the columns of `LEAKED_SCHEMA`.
    """

    design: Design
    sets: Mapping[str, TrainingSet]
    collections: Mapping[str, TestCollection]
    works: tuple[Work, ...]
    leaked: pl.DataFrame = field(repr=False)

    @property
    def cells(self) -> tuple[Cell, ...]:
        return tuple(cell for work in self.works for cell in work.cells)


def make_plan(design: Design, out: Path, progress: Progress) -> Plan:
    trainings = expand(design)
    draws = {one.name: one for one in (each.drawn for each in trainings) if one.checkpoint is None}
    # Sets without a fault first: others may be filled from them.
    ordered = sorted(draws.values(), key=lambda one: one.kind != "none")
    sets = {one.name: open_set(one, out, progress) for one in ordered}
    collections: dict[str, TestCollection] = {}
    leaked = [pl.DataFrame(schema=LEAKED_SCHEMA)]
    for one in design.collections:
        depths = sorted({model.depth or one.depth for model in design.models})
        opened, found = open_collection(one, list(sets.values()), depths, out, progress)
        collections[one.name] = opened
        leaked.append(found)
    maker = NetworkMaker(out / "inputs" / "vocabularies", progress)
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
        one, named = training.set, "no training" if made is None else recipe.name
        own = (one.name, one.kind, one.label, one.collections)
        cells.append(Cell(digest(inputs)[:24], *own, size, training.model.name, named, training.seed, variant))
        all_tests.append(tests)
        all_inputs.append(inputs)
    source = "" if made is None else made.source
    return Work(number, training, source, size, network, recipe, tuple(cells), tuple(all_tests), tuple(all_inputs))


def _test(model: ModelDesign, collection: TestCollection, variant: str) -> Test:
    own = collection.design
    depth, policy = model.depth or own.depth, model.policy or own.policy
    return Test(own.name, collection.work, depth, policy, variant or own.aggregate)
