"""Training a ranker from its name: opened or drawn anew, trained by a recipe, saved with what it was made from."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Final

import polars as pl

from truerank.core.result import Result, Summary, summarises
from truerank.errors import OptionError
from truerank.options import Flag, Options, Seed, command
from truerank.rankers.base import RANKERS, RankerSpec, Runtime
from truerank.records import Input
from truerank.sources.documents import open_documents
from truerank.sources.inputs import inputs_of
from truerank.work.progress import Progress, Quiet
from truerank.work.runs import Run
from truerank.work.runs import run as started
from truerank_lab.instances.filled import FilledInstances, open_instances
from truerank_lab.rankers.fitting import Fitted, fit
from truerank_lab.rankers.recipes import Recipe, recipe_named, usual_recipe

__all__ = ["InstanceTexts", "Trained", "check_trainable", "divided", "train"]

_PACKAGES: Final = ("torch", "transformers")
_LOG: Final = "steps.parquet"


@dataclass(frozen=True, eq=False, repr=False)
class Trained(Result, shown_in="truerank_lab.training"):
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

    def json(self) -> dict[str, Any]:
        """What the manifest holds, and the folder."""
        return {"folder": str(self.folder), **self.provenance, **self.fitted.json()}


@dataclass(frozen=True)
class InstanceTexts(Options):
    """Texts of instances that hold ids.

    Attributes:
        topics: texts of queries that the instances name by id.
        docs: texts of documents that the instances name by id; words are counted in them.
        field: of the topics: title, description or narrative.
    """

    topics: Annotated[str | None, Flag(metavar="SRC")] = None
    docs: Annotated[str | None, Flag(metavar="SRC")] = None
    field: str = "title"


@command
def train(
    model: Annotated[str, Flag(metavar="NAME|DIR")],
    instances: Annotated[str | FilledInstances, Flag(metavar="SRC", reads=str)],
    out: Annotated[str | Path, Flag(metavar="DIR", reads=Path)],
    *,
    recipe: Annotated[str | Recipe | None, Flag(metavar="NAME", reads=str)] = None,
    seed: Seed = 0,
    set_: Annotated[Mapping[str, Any], Flag(metavar="NAME=VALUE")] = MappingProxyType({}),
    vectors: Annotated[str, Flag(metavar="FILE|DIR|packaged")] = "packaged",
    texts: InstanceTexts = InstanceTexts(),
    device: str | None = None,
    progress: Progress | None = None,
) -> Trained:
    """Trains a ranker: one epoch by a named recipe.

    On the CPU the same instances and seed give the same weights. Killed and called again, it continues.

    Args:
        model: knrm, pacrr, duet, hint, tk; or a checkpoint: a folder or Hugging Face id, monot5:t5-base, cedr:DIR.
        instances: JSONL, Parquet, CSV with query, relevant, nonrelevant; MS MARCO triples.
        out: the folder of the trained ranker, with steps.parquet (loss and gradient norm) and training.json.
        recipe: truerank, capreolus, ance, cedr, colbert, monobert, pygaggle or survivorship; by default the usual one
            of the model. capreolus also sets the lengths and the padding of a small model.
        seed: of weights, order of the instances, and dropout.
        set_: a setting of the recipe (lr, batch) or of the model (max_query).
        vectors: word vectors of the small models: a file in GloVe's form, a folder of an encoder, or packaged.
        texts: of instances that name queries and documents by id.
        device: cpu, cuda, cuda:1, mps; by default a GPU where there is one.
        progress: receives progress updates.

    Returns:
        What was trained.

    Raises:
        InputError: an unknown model, recipe or name in `set_`; a fault in a source; a loss that is not a number.
        MissingExtraError: what trains it is not installed.

    Examples:

        truerank-lab train --model knrm --instances triples.tsv --seed 1 --out knrm-1/

        truerank-lab train --model pacrr --recipe capreolus --vectors glove.txt --instances train.jsonl --out pacrr/

        truerank-lab train --model monot5:t5-base --set lr=1e-4 --instances train.parquet --out monot5/
    """
    topics, docs = texts.topics, texts.docs
    source = instances
    if isinstance(source, str):
        source = open_instances(source, topics=topics, docs=docs, topic_field=texts.field)
    chosen = recipe_named(recipe) if isinstance(recipe, str) else recipe or usual_recipe(model)
    of_recipe, of_model = divided(set_)
    chosen = chosen.changed(of_recipe)
    collection = None if docs is None else open_documents(docs)
    given = Input(source.spec.name, source.spec.spec, "instances", None, source.fingerprint)
    inputs = (given, *inputs_of(vectors=vectors, topics=topics, docs=docs))
    options = {"model": model, "recipe": chosen.json(), "seed": seed, "settings": of_model}
    with started("train", inputs, options, out, packages=_PACKAGES) as job:
        runtime, progress = Runtime(device=device), progress or Quiet()
        ranker: Any
        if is_drawn(model):
            from truerank_lab.rankers.vocabulary import open_vocabulary

            progress.start("counting words")
            words = open_vocabulary(vectors, _texts(source) if collection is None else (one.text for one in collection))
            ranker = drawn_ranker(model, words, runtime, chosen, seed=seed, settings=of_model)
        else:
            ranker = RankerSpec(model, runtime, tuple(sorted(of_model.items()))).open()
            check_trainable(ranker, model)
        before = ranker.fingerprint
        fitted = fit(ranker, source, chosen, seed=seed, folder=job.work, progress=progress)
        settings = ranker.settings
        provenance = {
            "model": model,
            "kind": ranker.kind,
            "settings": (dict(settings) if isinstance(settings, Mapping) else asdict(settings)),
            "instances_source": {"source": source.spec.spec, "fingerprint": source.fingerprint},
            "fingerprints": {"before": before, "after": ranker.fingerprint},
        }
        if is_drawn(model):
            counted = {"source": (source if collection is None else collection).spec.spec}
            provenance |= {"vectors": vectors, "words_counted_in": counted}
        trained = Trained(job.folder, ranker.kind, fitted, provenance)
        _save(ranker, trained, job)
    return trained


def is_drawn(model: str) -> bool:
    """Whether a name is that of a kind whose network is drawn anew; the others begin with a checkpoint."""
    return model in RANKERS and hasattr(RANKERS.load(model), "create")


def divided(changes: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Changes apart: those of the recipe, and those of the model's settings."""
    names = {"lr", *(each.name for each in fields(Recipe))}
    of_recipe = {name: value for name, value in changes.items() if name in names}
    return of_recipe, {name: value for name, value in changes.items() if name not in names}


def drawn_ranker(
    model: str, vocabulary: Any, runtime: Runtime, recipe: Recipe, *, seed: int, settings: Mapping[str, Any]
) -> Any:
    """A small ranker with weights of the seed; the recipe capreolus also sets its lengths and padding."""
    kind = RANKERS.load(model)
    preset = getattr(kind, "capreolus", {}) if recipe.name == "capreolus" else {}
    return kind.create(vocabulary, runtime, seed=seed, **{**preset, **settings})


def _texts(source: FilledInstances) -> Iterator[str]:
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
        fault = f"{model} cannot be trained here"
        raise OptionError("model", fault, "train knrm, pacrr, duet, hint or tk, or a checkpoint such as monot5:t5-base")


def _save(ranker: Any, trained: Trained, run: Run) -> None:
    fitted = trained.fitted
    columns = {"step": range(1, fitted.steps + 1), "loss": fitted.losses, "gradient_norm": fitted.gradient_norms}
    schema = {"step": pl.Int64, "loss": pl.Float64, "gradient_norm": pl.Float64}
    run.parquet(_LOG, pl.DataFrame(columns, schema=schema))
    run.json("training.json", {**trained.provenance, **fitted.json()})
    ranker.save(run.folder)
    own = {"manifest.json", "run.log", "training.json", _LOG}
    for path in sorted(path for path in run.folder.iterdir() if path.is_file() and path.name not in own):
        run.note(path.name)
    run.log("trained", seconds=round(fitted.seconds, 3))


@summarises(Trained)
def _summary(trained: Trained) -> Summary:
    known = trained.json()
    first, last = (known["loss"][part] for part in ("first_tenth", "last_tenth"))
    loss = f"{known['steps']:,} steps; mean loss of the first tenth {first:.4f}, of the last {last:.4f}"
    return Summary((loss, f"saved: {trained.folder}"), known)
