"""The rankers of a grid before they are trained: vocabularies made once, networks opened anew for each cell."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from truerank.experiments.grid.design import ModelDesign
from truerank.rankers.base import RANKER_FILE, RankerSpec, Runtime
from truerank.rankers.kinds import RANKERS, is_drawn, usual_recipe
from truerank.rankers.pretrained.checkpoints import kind_of
from truerank.rankers.training.recipes import Recipe, recipe_named
from truerank.rankers.training.train import check_trainable, divided
from truerank.rankers.words.vocabulary import Vocabulary, open_vocabulary
from truerank.sources import compressed, open_documents
from truerank.sources.documents import DocumentSource
from truerank.work.artifacts import digest
from truerank.work.progress import Progress

_READY: Final = "vocabulary.json"
#: Characters of texts whose words a worker keeps as numbers.
_MEMORY: Final = 1 << 26


@dataclass(frozen=True)
class Network:
    """How to open a ranker that is to be trained; picklable.

    Attributes:
        model: as designed.
        vocabulary: the folder of that of a small model, else None.
        fingerprint: hash over all that decides about it but the seed: settings, vocabulary, or the checkpoint.
        trained: False for a ranker that is only tested.
    """

    model: ModelDesign
    vocabulary: Path | None
    fingerprint: str
    trained: bool = True


def recipe_of(model: ModelDesign) -> Recipe:
    """The recipe of a model with its changes."""
    recipe = recipe_named(model.recipe) if model.recipe else usual_recipe(model.model)
    return recipe.changed(divided(model.changes)[0])


class NetworkMaker:
    """Makes ready what the rankers of a grid need; a vocabulary is counted once for each set of documents.

    Args:
        folder: where the vocabularies lie.
        told: is told what happens.
    """

    def __init__(self, folder: Path, told: Progress) -> None:
        self._folder, self._told = folder, told
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
        self._told.start(f"opening {model.model}")
        network = Network(model, None, "", trained)
        return replace(network, fingerprint=network_of(network, seed=0, device="cpu").fingerprint)

    def _small(self, model: ModelDesign, docs: Sequence[str]) -> Network:
        sources = [open_documents(each) for each in docs]
        vectors = compressed.fingerprint(Path(model.vectors)) if Path(model.vectors).is_file() else model.vectors
        folder = self._folder / digest([vectors, [source.fingerprint for source in sources]])[:16]
        if not (folder / _READY).is_file():
            self._told.start("counting words")
            open_vocabulary(model.vectors, self._texts(sources)).save(folder)
        ranker = network_of(Network(model, folder, ""), seed=0, device="cpu", memory=self._memory)
        described = [ranker.kind, dataclasses.asdict(ranker.settings), ranker.vocabulary.fingerprint]
        return Network(model, folder, digest(described))

    def _texts(self, sources: Sequence[DocumentSource]) -> Iterator[str]:
        for source in sources:
            for document in source:
                yield document.text
                self._told.advance(1)


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
    kind = RANKERS.load(model.model)
    preset = getattr(kind, "capreolus", {}) if recipe.name == "capreolus" else {}
    return kind.create(kept[network.vocabulary], Runtime(device=device or "cpu"), seed=seed, **{**preset, **settings})


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
        """That of the vocabulary."""
        return self._own.fingerprint

    def ids(self, texts: Sequence[str]) -> list[list[int]]:
        """The numbers of each text's words."""
        new = [text for text in dict.fromkeys(texts) if text not in self._ids]
        found = dict(zip(new, self._own.ids(new), strict=True))
        for text, ids in found.items():
            if (length := len(text)) <= self._room:
                self._ids[text] = ids
                self._room -= length
        return [self._ids[text] if text in self._ids else found[text] for text in texts]

    def save(self, folder: Path) -> None:
        """Writes the vocabulary."""
        self._own.save(folder)
