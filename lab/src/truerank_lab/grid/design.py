"""The design of an experiment: collections, training sets, models, seeds, what is measured; and its file."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal, cast, get_args

from truerank.core.plain import picked, plain
from truerank.errors import InputError, MissingExtraError
from truerank.lexical.presets import MODELS, PRESETS, model_of
from truerank.measures.grammar import parse_measures
from truerank.sources import grammar
from truerank.sources.yaml_tree import Value, YamlMapping, read_tree
from truerank.text.passages import policy_named
from truerank_lab.instances.options import TEST_KINDS, BuildOptions
from truerank_lab.rankers.recipes import RECIPES, recipe_named, usual_recipe
from truerank_lab.training import divided, is_drawn

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
        known = {
            **picked(self, "docs, topics, field=topic_field, qrels, first_stage, depth"),
            "passages": {"policy": self.policy, "aggregate": self.aggregate},
            **picked(self, "folds, fold_seed, leaking_topics, rel, measures, topic_count"),
        }
        unsaid: dict[str, Any] = {"leaking_topics": None, "measures": [], "topic_count": None}
        return {name: value for name, value in known.items() if name not in unsaid or value != unsaid[name]}


@dataclass(frozen=True)
class BenchmarkDesign:
    """Collections whose topics are one sample: divided into folds, averaged and tested together.

    Attributes:
        name: how reports call it; of a collection that stands alone, its own.
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
        value: dict[str, Any] = plain(self, "name")
        return value


@dataclass(frozen=True)
class SetDesign:
    """Training sets of one kind in several sizes, a smaller one being the beginning of a larger one.

    Attributes:
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

        places = {part: filled(getattr(self, part)) for part in ("instances", "topics", "docs", "build")}
        return replace(self, name=".".join([self.name, *(values[each] for each in named)]), **places)

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
        maybe = picked(self, "recipe, aggregate=aggregates, policy, depth, sizes, sets")
        known = {name: value for name, value in maybe.items() if value}
        return {"model": self.model, **known, **picked(self, "changes, vectors, seeds, gpus, cpus")}


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
        """As it is in a design file."""
        return {name: value for name, value in vars(self).items() if value is not None}


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
        """The whole design, every value written out, as it is in a design file."""
        found: dict[str, Any] = {"name": self.name}
        for part in ("collections", "benchmarks", "sets", "models"):
            if part != "benchmarks" or self.benchmarks:
                found[part] = {each.name: each.json() for each in getattr(self, part)}
        return {**found, "measures": list(self.measures), "report": self.report.json()}


#: Names become names of folders and keys of `--set`.
_NAME: Final = re.compile(r"[A-Za-z0-9][\w+-]*", re.ASCII)
_AGGREGATES: Final = ("first", "max")
_FIELDS: Final = ("title", "description", "narrative")
_TOP: Final = ("name", "collections", "benchmarks", "sets", "models", "seeds", "sizes", "measures", "report")
_OF_COLLECTION: Final = (
    "docs", "topics", "field", "qrels", "first_stage", "depth", "passages", "folds", "fold_seed", "leaking_topics",
    "rel", "measures", "topic_count",
)  # fmt: skip
_OF_BENCHMARK: Final = ("collections", "folds", "fold_seed")
_OF_SET: Final = ("kind", "label", "for", "sizes", "instances", "topics", "docs", "build", "checkpoint")
_OF_MODEL: Final = (
    "model", "recipe", "changes", "vectors", "aggregate", "policy", "depth", "seeds", "sizes", "sets", "gpus", "cpus",
)  # fmt: skip
#: Options of `instances build` that are places of data, relative to the design file.
BUILD_PLACES: Final = frozenset((
    "queries", "train_qrels", "docs", "queries_from_documents", "audit", "exclude_qrels", "labels", "index", "fill",
    "topics", "qrels", "test_docs", "rows",
))  # fmt: skip
_BUILD_DEFAULTS: Final = BuildOptions().json()
_OF_BUILD: Final = ("seed", *_BUILD_DEFAULTS)
_MANY: Final = frozenset(name for name, usual in _BUILD_DEFAULTS.items() if isinstance(usual, list))
_REPORT_OF_KIND: Final[Mapping[str, str]] = {"by-version": "transfer", "by-depth": "survivorship"}


def read_design(path: str | Path, *, settings: Mapping[str, str] | None = None, variables: bool = True) -> Design:
    """Reads the design of an experiment from a YAML file; docs/guide.md describes its keys.

    Paths in it are relative to the file, `${NAME}` is taken from the environment.

    Args:
        path: the file.
        settings: values that replace those of the file, by keys joined by dots: `collections.vaswani.docs`. Paths in
            them are relative to the current folder.
        variables: whether `${NAME}` has to be set; False leaves the name of one that is not set, so that a design can
            be counted without its data.

    Returns:
        The design, every value written out.

    Raises:
        InputError: any fault of the file, with its line.
    """
    file = Path(path)
    return _Reader(file, read_tree(file, settings or {}, variables=variables)).design()


class _Reader:
    """Makes a design of the tree of a file; a fault names its line."""

    def __init__(self, file: Path, tree: Value) -> None:
        self._file = file
        self._folder = file.absolute().parent
        self._top = tree.table(_TOP)

    def design(self) -> Design:
        top = self._top
        collections = tuple(self._collection(*each) for each in self._named("collections"))
        benchmarks = self._benchmarks(collections)
        tested: dict[str, tuple[str, ...]] = {each.name: (each.name,) for each in collections}
        tested |= {each.name: each.collections for each in benchmarks}
        described = self._named("sets")
        all_sets = [name for name, _ in described]
        sets = tuple(self._set(name, value, (tested, all_sets)) for name, value in described)
        models = tuple(self._model(name, value, sets) for name, value in self._named("models"))
        _check_largest(top, collections, models)
        self._check_together(benchmarks, sets, models)
        measures = top.read("measures", _measures, Design.measures)
        for key in ("seeds", "sizes"):
            given = top.get(key)
            if given is not None and isinstance(given.content, dict):
                given.table((*(model.name for model in models), "default"))
        name = top.need("name", "give the experiment a name").text()
        return Design(name, collections, sets, models, measures, self._report(sets), self._file, benchmarks)

    def _named(self, key: str) -> list[tuple[str, Value]]:
        value = self._top.need(key, f"declare at least one below '{key}:'")
        found = list(value.table())
        if not found:
            value.fault("nothing in it", f"declare at least one below '{key}:'")
        for name, each in found:
            if not _NAME.fullmatch(name):
                each.fault(f"the name '{name}'", "use letters, digits, '-', '_' and '+'")
        return found

    def _collection(self, name: str, value: Value) -> CollectionDesign:
        table = value.table(_OF_COLLECTION)
        nothing = YamlMapping(Value({}, value.file, value.line, value.path))
        passages = table.read("passages", lambda each: each.table(("policy", "aggregate")), nothing)
        return CollectionDesign(
            name,
            docs=self._place(table.need("docs", "name the documents")),
            topics=self._place(table.need("topics", "name the topics")),
            qrels=self._place(table.need("qrels", "name the judgments")),
            topic_field=table.read("field", _topic_field, CollectionDesign.topic_field),
            first_stage=table.read("first_stage", self._first_stage, FirstStageDesign()),
            depth=table.read("depth", lambda each: each.whole(1), CollectionDesign.depth),
            policy=passages.read("policy", _policy, CollectionDesign.policy),
            aggregate=passages.read("aggregate", lambda each: each.choice(_AGGREGATES), CollectionDesign.aggregate),
            folds=table.read("folds", self._folds, CollectionDesign.folds),
            fold_seed=table.read("fold_seed", lambda each: each.whole(0), CollectionDesign.fold_seed),
            leaking_topics=table.read("leaking_topics", self._place, None),
            rel=table.read("rel", lambda each: each.whole(1), CollectionDesign.rel),
            measures=table.read("measures", _measures, ()),
            topic_count=table.read("topic_count", lambda each: each.whole(1), None),
        )

    def _benchmarks(self, collections: tuple[CollectionDesign, ...]) -> tuple[BenchmarkDesign, ...]:
        if "benchmarks" not in self._top:
            return ()
        by_name = {each.name: each for each in collections}
        found: list[BenchmarkDesign] = []
        for name, value in self._named("benchmarks"):
            table = value.table(_OF_BENCHMARK)
            listed = table.need("collections", "name the collections that belong together")
            members = _among(listed, list(by_name))
            if len(members) < 2:
                listed.fault("one collection alone", "name two or more; one needs no benchmark")
            if name in by_name:
                value.fault(f"'{name}' is a collection, too", "choose another name")
            if taken := next((each for each in members for other in found if each in other.collections), None):
                listed.fault(f"'{taken}' is in another benchmark already", "put it in one of them")
            for key in ("rel", "measures", "depth"):
                values = {str(getattr(by_name[each], key)) for each in members}
                if len(values) > 1:
                    listed.fault(f"their {key} differs ({', '.join(sorted(values))})", "score all of them alike")
            folds = table.read("folds", self._folds, BenchmarkDesign.folds)
            seed = table.read("fold_seed", lambda each: each.whole(0), BenchmarkDesign.fold_seed)
            found.append(BenchmarkDesign(name, members, folds, seed))
        return tuple(found)

    def _check_together(
        self, benchmarks: tuple[BenchmarkDesign, ...], sets: tuple[SetDesign, ...], models: tuple[ModelDesign, ...]
    ) -> None:
        """Refuses a set that is tested on a part of a benchmark, or a checkpoint that would stand for two models."""
        described = self._top.need("sets", "").table()
        for one in sets:
            value = described.need(one.name, "").table()
            for each in benchmarks:
                inside = [name for name in each.collections if name in one.collections]
                if 0 < len(inside) < len(each.collections):
                    fault = f"only {', '.join(inside)} of the benchmark {each.name}"
                    value.need("for", "").fault(fault, f"test on all of it: {each.name}")
            taken = [model.name for model in models if not model.sets or one.name in model.sets]
            if one.checkpoint is not None and len(taken) > 1:
                fault = f"one checkpoint for {len(taken)} models ({', '.join(taken)})"
                value.need("checkpoint", "").fault(fault, "choose one of them with 'sets' of the others")

    def _first_stage(self, value: Value) -> FirstStageDesign:
        table = value.table(("run", "model", "preset", "parameters"))
        if "run" in table:
            if len(table) > 1:
                value.fault("a run, and how to search", "give one of them")
            return FirstStageDesign(self._place(table.need("run", "")))
        model = table.read("model", lambda each: each.choice(MODELS), FirstStageDesign.model)
        preset = table.read("preset", lambda each: each.choice(list(PRESETS)), FirstStageDesign.preset)
        parameters: dict[str, Any] = table.read("parameters", lambda each: each.table().value.plain(), {})
        value.checked(lambda: model_of(preset, model, parameters))
        return FirstStageDesign(None, model, preset, parameters)

    def _folds(self, value: Value) -> int | str:
        if isinstance(value.content, int) and not isinstance(value.content, bool):
            return value.whole(2)
        return self._place(value)

    def _set(self, name: str, value: Value, known: tuple[Mapping[str, tuple[str, ...]], list[str]]) -> SetDesign:
        collections, sets = known
        table = value.table(_OF_SET)
        kind = table.need("kind", f"one of {', '.join(KINDS)}").choice(KINDS)
        listed = table.need("for", "name the collections it is for").items()
        tested = dict.fromkeys(name for each in listed for name in collections[each.choice(list(collections))])
        if sum(key in table for key in ("instances", "build", "checkpoint")) != 1:
            remedy = "name a source of instances, or say how to build them, or name a checkpoint that is not trained"
            value.fault("needs either 'instances' or 'build' (or 'checkpoint')", remedy)
        build = table.read("build", lambda each: self._build(each, kind, sets), None)
        sizes = table.read("sizes", _sizes, self._top.read("sizes", lambda each: _by_default(each, _sizes), ()))
        if build is not None and not sizes:
            value.fault("no sizes", "write sizes: [1000, 2000]; sets that are built here need them")
        default = kind if kind in ("none", "leak", *TEST_KINDS) else name
        checkpoint = table.read("checkpoint", self._model_place, None)
        if checkpoint is not None and "sizes" in table:
            table.need("sizes", "").fault("a checkpoint is not trained", "leave the sizes out")
        one = SetDesign(
            name,
            kind,
            tuple(tested),
            () if checkpoint is not None else sizes,
            table.read("instances", self._place, None),
            table.read("topics", self._place, None),
            table.read("docs", self._place, None),
            build,
            table.read("label", Value.text, default),
            checkpoint,
        )
        self._check_placeholders(one, value)
        return one

    def _check_placeholders(self, one: SetDesign, value: Value) -> None:
        if wrong := [each for each in one.placeholders if each not in PLACEHOLDERS]:
            known = " and ".join(f"{{{each}}}" for each in PLACEHOLDERS)
            value.fault(f"there is no value for {{{wrong[0]}}}", f"known: {known}")
        if one.placeholders and one.kind in ("leak", *TEST_KINDS):
            fault = f"other rows for each {one.placeholders[0]}"
            value.fault(fault, "a leak is the same for all trainings: give one set of rows")
        fill = (one.build or {}).get("fill")
        other = self._top.need("sets", "").table().get(str(fill))
        if other is not None and PLACEHOLDER.search(str(other.plain())):
            value.fault(f"'{fill}' has other rows for each training", "fill from a set with one draw")

    def _build(self, value: Value, kind: str, sets: list[str]) -> dict[str, Any]:
        table = value.table(_OF_BUILD)
        if kind == "other":
            value.fault("sets of the kind other are not built", "give their 'instances'")
        built = {key: self._build_value(key, each, sets) for key, each in table}
        given: dict[str, Any] = {
            key: tuple(each) if key in _MANY else each for key, each in built.items() if key != "seed"
        }
        table.read("seed", lambda each: each.content == "{seed}" or each.whole(0), 0)
        value.checked(lambda: BuildOptions(**given).check(kind))
        return built

    def _build_value(self, key: str, value: Value, sets: list[str]) -> Any:
        if key == "fill" and value.content in sets:
            return value.content
        if key in _MANY:
            return [self._place(each) if key in BUILD_PLACES else each.text() for each in value.items()]
        return self._place(value) if key in BUILD_PLACES else value.plain()

    def _model(self, name: str, value: Value, sets: tuple[SetDesign, ...]) -> ModelDesign:
        table = value.table(_OF_MODEL)
        model = self._model_place(table.need("model", "name one: knrm, monot5:t5-base, …"))
        recipe = table.read("recipe", lambda each: each.choice(list(RECIPES)), None)
        changes: dict[str, Any] = table.read("changes", lambda each: each.table().value.plain(), {})
        _check_changes(table, model, recipe, changes)
        only = table.read("sets", lambda each: _among(each, [one.name for one in sets]), ())
        sizes = table.read("sizes", _sizes, self._of_model("sizes", name, _sizes, ()))
        taken = [one for one in sets if not only or one.name in only]
        known = {size for one in taken for size in one.sizes}
        if sizes and not known & set(sizes) and all(one.sizes for one in taken):
            value.fault(f"no set has a size of {', '.join(map(str, sizes))}", "choose among the sizes of the sets")
        return ModelDesign(
            name,
            model,
            recipe,
            changes,
            table.read("vectors", self._vectors, ModelDesign.vectors),
            table.read("aggregate", lambda each: cast(tuple[Aggregation, ...], _among(each, _AGGREGATES)), ()),
            table.read("policy", _policy, None),
            table.read("depth", lambda each: each.whole(1), None),
            table.read("seeds", _seeds, self._of_model("seeds", name, _seeds, ModelDesign.seeds)),
            sizes,
            only,
            table.read("gpus", Value.number, ModelDesign.gpus),
            table.read("cpus", lambda each: each.whole(1), ModelDesign.cpus),
        )

    def _of_model(self, key: str, name: str, read: Any, default: Any) -> Any:
        """What the top of the file says of a model: a list for all, or a mapping with a list for some."""
        given = self._top.get(key)
        if given is None or (key == "sizes" and not isinstance(given.content, dict)):
            return default
        if not isinstance(given.content, dict):
            return read(given)
        table = given.table()
        return table.read(name, read, table.read("default", read, default) if key == "seeds" else default)

    def _report(self, sets: tuple[SetDesign, ...]) -> ReportDesign:
        usual = next((_REPORT_OF_KIND[one.kind] for one in sets if one.kind in _REPORT_OF_KIND), "leakage")
        value = self._top.get("report")
        labels = list(dict.fromkeys(one.label for one in sets))
        first = labels[0] if ReportDesign.baseline not in labels else ReportDesign.baseline
        if value is None:
            return ReportDesign(cast(ReportKind, usual), first)
        table = value.table(("kind", "baseline", "memorisation_size"))
        return ReportDesign(
            cast(ReportKind, table.read("kind", lambda each: each.choice(REPORTS), usual)),
            table.read("baseline", lambda each: each.choice(labels), first),
            table.read("memorisation_size", lambda each: _sizes(each)[0], None),
        )

    def _place(self, value: Value) -> str:
        text = value.text()
        if value.checked(lambda: grammar.parse(text)).scheme != "file":
            return text
        return os.path.normpath(self._base(value) / Path(text).expanduser())

    def _model_place(self, value: Value) -> str:
        text = value.text()
        kind, separator, place = text.rpartition(":")
        is_path = place.startswith((".", "/", "~")) or (self._base(value) / place).is_dir()
        if not is_path or is_drawn(text):
            return text
        return kind + separator + os.path.normpath(self._base(value) / Path(place).expanduser())

    def _vectors(self, value: Value) -> str:
        return value.text() if value.text() == "packaged" else self._place(value)

    def _base(self, value: Value) -> Path:
        return Path.cwd() if value.file == "--set" else self._folder


def _topic_field(value: Value) -> str:
    for part in value.text().split("+"):
        if part.strip() not in _FIELDS:
            value.fault(f"topics have no '{part.strip()}'", f"one of {', '.join(_FIELDS)}, joined by +")
    return value.text()


def _policy(value: Value) -> str:
    return value.checked(lambda: policy_named(value.text())).name


def _sizes(value: Value) -> tuple[int, ...]:
    sizes = []
    for each in value.items():
        size = each.whole(2)
        if size % 2:
            each.fault(f"{size} instances", "give an even number: a query's two documents are two instances")
        sizes.append(size)
    if len(set(sizes)) < len(sizes) or not sizes:
        value.fault("no sizes, or one that occurs twice", "give each size once")
    return tuple(sorted(sizes))


def _by_default(value: Value, read: Any) -> Any:
    if not isinstance(value.content, dict):
        return read(value)
    return value.table().read("default", read, ())


def _seeds(value: Value) -> tuple[int, ...]:
    seeds = tuple(each.whole(0) for each in value.items())
    if len(set(seeds)) < len(seeds) or not seeds:
        value.fault("no seeds, or one that occurs twice", "give each seed once")
    return seeds


def _among(value: Value, choices: Any) -> tuple[str, ...]:
    found = tuple(each.choice(choices) for each in value.items())
    if len(set(found)) < len(found):
        value.fault("one that occurs twice", "give each once")
    return found


def _measures(value: Value) -> tuple[str, ...]:
    texts = tuple(each.text() for each in value.items())
    for each, text in zip(value.items(), texts, strict=True):
        each.checked(lambda text=text: parse_measures(text))  # type: ignore[misc]
    if not texts:
        value.fault("no measures", "write [nDCG@10]")
    return texts


def _check_largest(
    top: YamlMapping, collections: tuple[CollectionDesign, ...], models: tuple[ModelDesign, ...]
) -> None:
    """Refuses the largest score of documents that are not cut: it would be that of the only passage."""
    remedy = "name a policy that cuts documents, such as sliding:150:75"
    for one in collections:
        if one.aggregate == "max" and one.policy == "whole":
            top.need("collections", "").table().need(one.name, "").fault("max over whole documents", remedy)
    for model in models:
        whole = model.policy == "whole" or (model.policy is None and any(one.policy == "whole" for one in collections))
        if "max" in model.aggregates and whole:
            top.need("models", "").table().need(model.name, "").fault("max over whole documents", remedy)


def _check_changes(table: YamlMapping, model: str, recipe: str | None, changes: Mapping[str, Any]) -> None:
    if not changes:
        return
    of_recipe, _ = divided(changes)
    value = table.need("changes", "")
    for _, each in value.table():
        if isinstance(each.content, list | dict) or each.content is None:
            each.fault("no single value", "write one number or text")
    if not of_recipe:
        return
    try:
        chosen = recipe_named(recipe) if recipe else usual_recipe(model)
    except MissingExtraError:
        # A design can be read where nothing is trained; names and ranges are those of every recipe.
        chosen = RECIPES["truerank"]
    # Together: a batch may be too small for the recipe's own parts, and not for those that are given with it.
    with contextlib.suppress(InputError):
        chosen.changed(of_recipe)
        return
    for name, each in value.table():
        if name in of_recipe:
            each.checked(lambda name=name: chosen.changed({name: of_recipe[name]}))  # type: ignore[misc]
    value.checked(lambda: chosen.changed(of_recipe))
