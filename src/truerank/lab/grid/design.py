"""The design of an experiment as values: collections, training sets, models, seeds, what is measured."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal, get_args

#: What is wrong with a training set, or that nothing is.
Kind = Literal[
    "none", "leak", "test", "test-queries", "test-documents", "test-reworded", "by-depth", "by-version", "other"
]
KINDS: Final[tuple[str, ...]] = get_args(Kind)
#: How the score of a document follows from those of its passages.
Aggregation = Literal["first", "max"]
ReportKind = Literal["leakage", "transfer", "survivorship", "pilot"]
REPORTS: Final[tuple[str, ...]] = get_args(ReportKind)
#: In the places of a training set: what stands for the model and the seed of a training. A set that names one of them
#: has rows of its own for each.
PLACEHOLDERS: Final = ("model", "seed")
PLACEHOLDER: Final = re.compile(r"\{(?P<name>[a-z]+)\}")


@dataclass(frozen=True)
class FirstStageDesign:
    """Where the documents come from that are reranked.

    Attributes:
        run: a TREC run; None to search here.
        model: of the search: one of `lexical.MODELS`.
        preset: its analyser and parameters, see `lexical.PRESETS`.
        parameters: those of the model that differ from the preset.
    """

    run: str | None = None
    model: str = "bm25"
    preset: str = "anserini"
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def json(self) -> dict[str, Any]:
        if self.run is not None:
            return {"run": self.run}
        return {"model": self.model, "preset": self.preset, "parameters": dict(self.parameters)}


@dataclass(frozen=True)
class CollectionDesign:
    """A test collection.

    Attributes:
        name: how it is called in results.
        docs: the documents, see `sources.open_documents`.
        topics: the topics, see `sources.read_topics`.
        qrels: the judgments, see `sources.read_qrels`.
        topic_field: what is searched and reranked with: title, description, narrative, or several joined by "+".
        first_stage: where the candidates come from.
        depth: how many candidates of each topic are reranked.
        policy: how documents are cut, see `text.passages.policy_named`.
        aggregate: the score of a document is that of its first passage, or the largest.
        folds: their number, or a file, see `measures.read_folds`.
        fold_seed: of the division into that number of folds.
        leaking_topics: a file with the ids of the topics that leak, one a line; None takes those of the leaked pairs.
        rel: the lowest grade that binary measures count as relevant.
        measures: what the report shows of it; empty for those of the design.
        topic_count: how many judged topics with a text it has; another number ends the run. None for any.
    """

    name: str
    docs: str
    topics: str
    qrels: str
    topic_field: str = "title"
    first_stage: FirstStageDesign = FirstStageDesign()
    depth: int = 100
    policy: str = "whole"
    aggregate: Aggregation = "first"
    folds: int | str = 5
    fold_seed: int = 0
    leaking_topics: str | None = None
    rel: int = 1
    measures: tuple[str, ...] = ()
    topic_count: int | None = None

    def json(self) -> dict[str, Any]:
        return {
            "docs": self.docs,
            "topics": self.topics,
            "field": self.topic_field,
            "qrels": self.qrels,
            "first_stage": self.first_stage.json(),
            "depth": self.depth,
            "passages": {"policy": self.policy, "aggregate": self.aggregate},
            "folds": self.folds,
            "fold_seed": self.fold_seed,
            **({} if self.leaking_topics is None else {"leaking_topics": self.leaking_topics}),
            "rel": self.rel,
            **({"measures": list(self.measures)} if self.measures else {}),
            **({} if self.topic_count is None else {"topic_count": self.topic_count}),
        }


@dataclass(frozen=True)
class BenchmarkDesign:
    """Collections whose topics are one sample: divided into folds, averaged and tested together.

    Attributes:
        name: how reports call it; of a collection that stands alone, its own.
        collections: their names.
        folds: their number, or a file; in a file, topics of several collections are called `COLLECTION:TOPIC`.
        fold_seed: of the division into that number of folds.
    """

    name: str
    collections: tuple[str, ...]
    folds: int | str = 5
    fold_seed: int = 0

    def topic(self, collection: str, topic_id: str) -> str:
        """How a topic is called in the benchmark: two collections may have topics of the same id."""
        return f"{collection}:{topic_id}" if len(self.collections) > 1 else topic_id

    def json(self) -> dict[str, Any]:
        return {"collections": list(self.collections), "folds": self.folds, "fold_seed": self.fold_seed}


@dataclass(frozen=True)
class SetDesign:
    """Training sets of one kind in several sizes, a smaller one being the beginning of a larger one.

    Attributes:
        name: how it is called in results.
        kind: what is wrong with it.
        collections: the test collections that rankers trained on it are tested on.
        sizes: in instances: a query with one relevant and one non-relevant document is two. Empty for all rows.
        instances: what `open_instances` opens, where the set is there already.
        topics: texts of the queries that its rows name by id only.
        docs: texts of the documents that its rows name by id only.
        build: options of `instances build`, and its seed, where the set is built here; `fill` may name another set.
        label: how tables call it: the kind, a strategy, a depth.
        checkpoint: a ranker that is tested as it is, without training, in place of what would be trained on the set.
    """

    name: str
    kind: Kind
    collections: tuple[str, ...]
    sizes: tuple[int, ...] = ()
    instances: str | None = None
    topics: str | None = None
    docs: str | None = None
    build: Mapping[str, Any] | None = None
    label: str = ""
    checkpoint: str | None = None

    @property
    def placeholders(self) -> tuple[str, ...]:
        """What of a training its places name: `model`, `seed`; sorted."""
        texts = _texts([self.instances, self.topics, self.docs, self.build])
        return tuple(sorted({match["name"] for text in texts for match in PLACEHOLDER.finditer(text)}))

    def drawn(self, model: str, seed: int) -> SetDesign:
        """The set as a training reads it: model and seed stand where its places name them, and in its name."""
        named = self.placeholders
        if not named:
            return self
        values = {"model": model, "seed": str(seed)}

        def filled(value: Any) -> Any:
            if isinstance(value, Mapping):
                return {key: filled(each) for key, each in value.items()}
            if isinstance(value, list | tuple):
                return [filled(each) for each in value]
            return PLACEHOLDER.sub(lambda match: values[match["name"]], value) if isinstance(value, str) else value

        return replace(
            self,
            name=".".join([self.name, *(values[each] for each in named)]),
            instances=filled(self.instances),
            topics=filled(self.topics),
            docs=filled(self.docs),
            build=filled(self.build),
        )

    def json(self) -> dict[str, Any]:
        texts = {name: value for name, value in (("topics", self.topics), ("docs", self.docs)) if value is not None}
        made: dict[str, Any] = {"instances": self.instances, **texts}
        if self.build is not None:
            made = {"build": dict(self.build)}
        if self.checkpoint is not None:
            made = {"checkpoint": self.checkpoint}
        return {
            "kind": self.kind,
            "label": self.label,
            "for": list(self.collections),
            **({"sizes": list(self.sizes)} if self.sizes else {}),
            **made,
        }


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(each)


@dataclass(frozen=True)
class ModelDesign:
    """A ranker to be trained.

    Attributes:
        name: how it is called in results.
        model: as for `rankers.train`: knrm, pacrr, duet, hint, tk, or a checkpoint.
        recipe: of the training; None for the usual one of the model.
        changes: values of the recipe or settings of the model.
        vectors: word vectors of a small model.
        aggregates: each is a variant of the result, from one training; empty for that of the collection.
        policy: how documents are cut; None as the collection says.
        depth: how many candidates are reranked; None as the collection says.
        seeds: of the trainings; the design's where the file names none.
        sizes: the only sizes it is trained on; empty for all of each set.
        sets: the only sets it is trained on; empty for all.
        gpus: of a GPU that one training needs on a cluster.
        cpus: that one training needs on a cluster.
    """

    name: str
    model: str
    recipe: str | None = None
    changes: Mapping[str, Any] = field(default_factory=dict)
    vectors: str = "packaged"
    aggregates: tuple[Aggregation, ...] = ()
    policy: str | None = None
    depth: int | None = None
    seeds: tuple[int, ...] = (0,)
    sizes: tuple[int, ...] = ()
    sets: tuple[str, ...] = ()
    gpus: float = 0.0
    cpus: int = 1

    def json(self) -> dict[str, Any]:
        maybe: dict[str, Any] = {
            "recipe": self.recipe,
            "aggregate": list(self.aggregates),
            "policy": self.policy,
            "depth": self.depth,
            "sizes": list(self.sizes),
            "sets": list(self.sets),
        }
        return {
            "model": self.model,
            **{name: value for name, value in maybe.items() if value},
            "changes": dict(self.changes),
            "vectors": self.vectors,
            "seeds": list(self.seeds),
            "gpus": self.gpus,
            "cpus": self.cpus,
        }


@dataclass(frozen=True)
class ReportDesign:
    """What `experiment report` makes of the results where it is not told otherwise.

    Attributes:
        kind: which paper's tables.
        baseline: the label of the sets that the others are compared with.
        memorisation_size: the training size, in instances, of the tables on memorisation; None for the largest.
    """

    kind: ReportKind = "leakage"
    baseline: str = "none"
    memorisation_size: int | None = None

    def json(self) -> dict[str, Any]:
        """As it stands in a design file."""
        size = {} if self.memorisation_size is None else {"memorisation_size": self.memorisation_size}
        return {"kind": self.kind, "baseline": self.baseline, **size}


@dataclass(frozen=True)
class Design:
    """An experiment: each model is trained on each set in each size with each seed, and tested.

    Attributes:
        name: of the experiment.
        collections: the test collections, in the order of the file, as are the following.
        sets: the training sets.
        models: what is trained.
        measures: what the report shows, see `measures`.
        report: how.
        file: where it was read from.
        benchmarks: collections that are reported together; the others stand alone.
    """

    name: str
    collections: tuple[CollectionDesign, ...]
    sets: tuple[SetDesign, ...]
    models: tuple[ModelDesign, ...]
    measures: tuple[str, ...] = ("nDCG@10", "MFR", "P@1")
    report: ReportDesign = ReportDesign()
    file: Path | None = field(default=None, compare=False)
    benchmarks: tuple[BenchmarkDesign, ...] = ()

    @property
    def reported(self) -> tuple[BenchmarkDesign, ...]:
        """What the report has tables of: benchmarks, and collections that stand alone, in the order of the file."""
        found: dict[str, BenchmarkDesign] = {}
        for one in self.collections:
            alone = BenchmarkDesign(one.name, (one.name,), one.folds, one.fold_seed)
            joint = next((each for each in self.benchmarks if one.name in each.collections), alone)
            found[joint.name] = joint
        return tuple(found.values())

    def benchmark(self, name: str) -> BenchmarkDesign:
        """The benchmark, or the collection that stands alone, of a name that the design has."""
        return next(each for each in self.reported if each.name == name)

    def measures_of(self, collection: str) -> tuple[str, ...]:
        """What the report shows of a collection."""
        return self.collection(collection).measures or self.measures

    def collection(self, name: str) -> CollectionDesign:
        """The collection of a name that the design has."""
        return next(each for each in self.collections if each.name == name)

    def set(self, name: str) -> SetDesign:
        """The set of a name that the design has."""
        return next(each for each in self.sets if each.name == name)

    def model(self, name: str) -> ModelDesign:
        """The model of a name that the design has."""
        return next(each for each in self.models if each.name == name)

    def json(self) -> dict[str, Any]:
        """The whole design, every value written out, as it stands in a design file."""
        return {
            "name": self.name,
            "collections": {each.name: each.json() for each in self.collections},
            **({"benchmarks": {each.name: each.json() for each in self.benchmarks}} if self.benchmarks else {}),
            "sets": {each.name: each.json() for each in self.sets},
            "models": {each.name: each.json() for each in self.models},
            "measures": list(self.measures),
            "report": self.report.json(),
        }
