"""Training a ranker from its name: opened or drawn anew, trained by a recipe, saved with what it was made from."""

from __future__ import annotations

import hashlib
import importlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final, cast

import polars as pl

from truerank.errors import InputError
from truerank.rankers.base import KINDS, RankerSpec, Runtime
from truerank.rankers.training.fitting import Fitted, fit
from truerank.rankers.training.instances import InstanceSource, open_instances
from truerank.rankers.training.recipes import DEFAULT_RECIPES, Recipe, recipe_named
from truerank.reports.tables import Table
from truerank.sources.documents import DocumentSource, open_documents
from truerank.work.artifacts import Artifacts, hash_file, installed_versions
from truerank.work.progress import Progress, Quiet

__all__ = ["SMALL_KINDS", "Trained", "check_trainable", "divided", "train"]

#: The kinds whose networks are drawn anew; the others begin with a checkpoint.
SMALL_KINDS: Final = ("duet", "hint", "knrm", "pacrr", "tk")
_DEFAULT_RECIPE: Final = "truerank"
_PACKAGES: Final = ("truerank", "torch", "transformers", "accelerate", "numpy")
_LOG: Final = "steps.parquet"


@dataclass(frozen=True)
class Trained:
    """A ranker that was trained and saved.

    Attributes:
        folder: where it lies; a name for `open_ranker`.
        kind: which ranker.
        fitted: what the training did.
        provenance: model, settings, instances, vectors, and the fingerprint of the result.
    """

    folder: Path
    kind: str
    fitted: Fitted
    provenance: Mapping[str, Any]

    def table(self) -> Table:
        """Loss and gradient by tenths of the run."""
        return self.fitted.table()

    def json(self) -> dict[str, Any]:
        """What the manifest holds, and the folder."""
        return {"folder": str(self.folder), **self.provenance, **self.fitted.json()}

    def text(self) -> str:
        """The table, and what a reader should know of the texts."""
        cut = self.provenance.get("cut_queries")
        told = "" if not cut else f"{cut['cut']:,} of {cut['queries']:,} queries are cut to {cut['words']} words.\n"
        return f"{self.table().text()}{told}saved: {self.folder}\n"


def train(
    model: str,
    instances: str | InstanceSource,
    out: str | Path,
    *,
    recipe: str | Recipe | None = None,
    seed: int = 0,
    vectors: str = "packaged",
    topics: str | None = None,
    docs: str | None = None,
    field: str = "title",
    changes: Mapping[str, Any] | None = None,
    device: str | None = None,
    progress: Progress | None = None,
) -> Trained:
    """Trains a ranker for one epoch and saves it. Killed and called again, it continues.

    Args:
        model: knrm, pacrr, duet, hint or tk, which are drawn from the seed; or what `open_ranker` opens: a folder or
            a Hugging Face id, perhaps after `monobert:`, `monot5:`, `ance:`, `colbert:`, `cedr:` or `parade:`.
        instances: a source, see `open_instances`, or an opened one.
        out: the folder of the result.
        recipe: its name, or the recipe itself; None for the usual one of the model. `capreolus` also sets the lengths
            and the padding of a small model.
        seed: of the weights, the order of the instances, and dropout.
        vectors: word vectors of a small model: a GloVe or word2vec file, a folder of an encoder, or `packaged`.
        topics: texts of queries that stand in the instances as ids only.
        docs: texts of such documents; also what the words of a small model are counted in. Without it they are counted
            in the documents of the instances.
        field: of the topics.
        changes: values of the recipe (`lr`, `batch` …) or settings of the model (`max_query` …) by name.
        device: None takes a GPU where there is one.
        progress: is told how far it is.

    Returns:
        What was trained; the folder holds the ranker, manifest.json, and steps.parquet with loss and gradient norm.

    Raises:
        InputError: an unknown model, recipe or name in `changes`; a fault in a source; a loss that is no number.
        MissingExtraError: what trains it is not installed.
    """
    source = (
        open_instances(instances, topics=topics, docs=docs, topic_field=field)
        if isinstance(instances, str)
        else instances
    )
    usual = DEFAULT_RECIPES.get(model.partition(":")[0], _DEFAULT_RECIPE)
    chosen = recipe if isinstance(recipe, Recipe) else recipe_named(recipe or usual)
    of_recipe, of_model = divided(changes or {})
    chosen = chosen.changed(of_recipe)
    artifacts, told = Artifacts(out), progress or Quiet()
    runtime = Runtime(device=_device(device), backend="torch")
    collection = None if docs is None else open_documents(docs)
    if model in SMALL_KINDS:
        told.start("counting words")
        ranker = _drawn(model, source, chosen, of_model, (vectors, collection, seed, runtime))
    else:
        ranker = RankerSpec(model, runtime, tuple(sorted(of_model.items()))).open()
        check_trainable(ranker, model)
    before = ranker.fingerprint
    fitted = fit(ranker, source, chosen, seed=seed, folder=artifacts.work, progress=told)
    provenance = {
        "model": model,
        "kind": ranker.kind,
        "settings": _settings(ranker),
        "instances_source": {"source": source.spec.spec, "fingerprint": source.fingerprint},
        "fingerprints": {"before": before, "after": ranker.fingerprint},
    }
    if model in SMALL_KINDS:
        counted = {"source": source.spec.spec} if collection is None else {"source": collection.spec.spec}
        provenance |= {"vectors": vectors, "words_counted_in": counted, "cut_queries": _cut(ranker, source)}
    trained = Trained(artifacts.folder, ranker.kind, fitted, provenance)
    if int(os.environ.get("RANK", "0")) == 0:
        _save(ranker, trained, artifacts)
    return trained


def divided(changes: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Changes apart: those of the recipe, and those of the model's settings."""
    names = {"lr", *(each.name for each in fields(Recipe))}
    of_recipe = {name: value for name, value in changes.items() if name in names}
    return of_recipe, {name: value for name, value in changes.items() if name not in names}


def _device(device: str | None) -> str | None:
    # Under `accelerate launch` each process has a GPU of its own.
    local = os.environ.get("LOCAL_RANK")
    return f"cuda:{local}" if device in (None, "cuda") and local is not None else device


def _drawn(
    model: str,
    source: InstanceSource,
    recipe: Recipe,
    settings: Mapping[str, Any],
    rest: tuple[str, DocumentSource | None, int, Runtime],
) -> Any:
    from truerank.rankers.words.vocabulary import open_vocabulary

    vectors, collection, seed, runtime = rest
    module, attribute = KINDS[model]
    kind = getattr(importlib.import_module(module), attribute)
    preset = kind.capreolus if recipe.name == "capreolus" else {}
    texts = _texts(source) if collection is None else (document.text for document in collection)
    vocabulary = open_vocabulary(vectors, texts)
    return kind.create(vocabulary, runtime, seed=seed, **{**preset, **settings})


def _texts(source: InstanceSource) -> Iterator[str]:
    """The distinct documents of the instances, told apart by their hashes."""
    seen: set[bytes] = set()
    for instance in source:
        for text in (instance.relevant, instance.nonrelevant):
            key = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).digest()
            if key not in seen:
                seen.add(key)
                yield text


def check_trainable(ranker: Any, model: str) -> None:
    """Refuses a ranker that has no network to train."""
    if not all(hasattr(ranker, member) for member in ("module", "rows", "logits")):
        known = ", ".join((*SMALL_KINDS, "ance:…", "cedr:…", "colbert:…", "monobert:…", "monot5:…", "parade:…"))
        raise InputError(f"{model} cannot be trained here", f"train one of {known}", where="--model")


def _settings(ranker: Any) -> dict[str, Any]:
    settings = ranker.settings
    if isinstance(settings, Mapping):
        return dict(settings)
    return {each.name: getattr(settings, each.name) for each in fields(settings)}


def _cut(ranker: Any, source: InstanceSource) -> dict[str, int]:
    queries = {instance.query for instance in source}
    return {
        "queries": len(queries),
        "cut": cast(int, ranker.cut_queries(queries)),
        "words": int(ranker.settings.max_query),
    }


def _save(ranker: Any, trained: Trained, artifacts: Artifacts) -> None:
    fitted = trained.fitted
    steps = pl.DataFrame(
        {
            "step": range(1, fitted.steps + 1),
            "loss": fitted.losses,
            "gradient_norm": fitted.gradient_norms,
        },
        schema={"step": pl.Int64, "loss": pl.Float64, "gradient_norm": pl.Float64},
    )
    artifacts.parquet(_LOG, steps)
    ranker.save(artifacts.folder)
    own = {"manifest.json", "run.log", _LOG}
    files = sorted(path for path in artifacts.folder.iterdir() if path.is_file() and path.name not in own)
    artifacts.manifest(
        {
            "command": "train",
            "versions": installed_versions(*_PACKAGES),
            **trained.provenance,
            **fitted.json(),
            "ranker": {path.name: hash_file(path) for path in files},
        }
    )
    artifacts.log("trained", seconds=round(fitted.seconds, 3))
