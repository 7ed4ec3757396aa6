"""The design of an experiment: collections, training sets, models, seeds, what is measured; its file, and its cells."""

from __future__ import annotations

import dataclasses
import difflib
import json
import os
import re
import types
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NoReturn, TypeVar, get_args, get_origin

import polars as pl

from truerank.arrays import frame_schema
from truerank.errors import InputError, OptionError, TruerankError
from truerank.lexical.presets import PresetName
from truerank.loading import load_yaml, text_file
from truerank.measures.grammar import parse_measures
from truerank.options import Options, Range, declared
from truerank.text.passages import policy_named
from truerank_lab.instances.options import BuildOptions
from truerank_lab.rankers.recipes import Recipe, recipe_named, usual_recipe
from truerank_lab.training import divided

#: What is wrong with a training set, or that nothing is.
Kind = Literal["none", "leak", "test", "by-depth", "by-version", "other"]
#: How the score of a document follows from those of its passages.
Aggregation = Literal["first", "max"]
ReportKind = Literal["leakage", "transfer", "survivorship", "pilot"]
_Count = Annotated[int, Range(at_least=1)]
_Folds = Annotated[int, Range(at_least=2)] | str
#: In the places of a training set: what stands for the model and the seed of a training, which has rows of its own.
_PLACEHOLDER: Final = re.compile(r"\{([a-z]+)\}")

D = TypeVar("D")


@dataclass(frozen=True)
class CollectionDesign(Options):
    """A test collection.

    Attributes:
        field: what is searched and reranked with: title, description, narrative, or several joined by "+".
        run: a TREC run that has the candidates; None to search them with BM25.
        preset: the analyser and parameters of that search.
        depth: how many candidates of each topic are reranked.
        policy: how documents are cut, see `text.passages.policy_named`.
        aggregate: the score of a document is that of its first passage, or the largest.
        folds: their number, or a file, see `cross_validation.read_folds`.
        measures: what the report shows of it; empty for those of the design.
        topic_count: how many judged topics with a text it has; another number ends the run. None for any.
    """

    name: str
    docs: str
    topics: str
    qrels: str
    field: str = "title"
    run: str | None = None
    preset: PresetName = "anserini"
    depth: _Count = 100
    policy: str = "whole"
    aggregate: Aggregation = "first"
    folds: _Folds = 5
    rel: _Count = 1
    measures: tuple[str, ...] = ()
    topic_count: _Count | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_policy(self.policy, self.aggregate)
        parse_measures(self.measures or ("nDCG@10",))


@dataclass(frozen=True)
class BenchmarkDesign(Options):
    """Collections whose topics are one sample: divided into folds, averaged and tested together.

    In a file of folds, topics of several collections are called `COLLECTION:TOPIC`.
    """

    name: str
    collections: tuple[str, ...]
    folds: _Folds = 5

    def topic(self, collection: str, topic_id: str) -> str:
        """How a topic is called in the benchmark: two collections may have topics of the same id."""
        return f"{collection}:{topic_id}" if len(self.collections) > 1 else topic_id


@dataclass(frozen=True)
class SetDesign(Options):
    """Training sets of one kind in several sizes, a smaller one being the beginning of a larger one.

    Attributes:
        kind: what is wrong with it.
        collections: the test collections that rankers trained on it are tested on.
        sizes: in instances: a query with one relevant and one non-relevant document is two. Empty for all rows.
        instances: what `open_instances` opens, where the set is there already.
        build: options of `truerank-lab build`, and its seed, where the set is built here; `fill` may name another set.
        label: how tables call it: the kind, a strategy, a depth.
        checkpoint: a ranker that is tested as it is, without training, in place of what would be trained on the set.
    """

    name: str
    kind: Kind
    collections: tuple[str, ...]
    sizes: tuple[Annotated[int, Range(at_least=2)], ...] = ()
    instances: str | None = None
    build: Mapping[str, Any] | None = None
    label: str = ""
    checkpoint: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        known = self.kind in ("none", "leak", "test")
        object.__setattr__(self, "label", self.label or (self.kind if known else self.name))
        object.__setattr__(self, "sizes", tuple(sorted(set(self.sizes))))
        if any(size % 2 for size in self.sizes):
            raise OptionError("sizes", "an odd number", "give even ones: a query's two documents are two instances")
        if [self.instances, self.build, self.checkpoint].count(None) != 2:
            raise OptionError("instances", "a set has one of instances, build, checkpoint", "give one of them")
        if self.build is not None:
            if not self.sizes:
                raise OptionError("sizes", "none", "write [1000, 2000]; sets that are built here need them")
            build_options(self.build).check(self.kind)
        elif self.checkpoint is not None and self.sizes:
            raise OptionError("sizes", "a checkpoint is not trained", "leave the sizes out")
        if self.drawn("", 0) is not self and known and self.kind != "none":
            raise OptionError("instances", "a leak is the same for all trainings", "give one set of rows")

    def drawn(self, model: str, seed: int) -> SetDesign:
        """The set as a training reads it: model and seed stand where its places name them, and in its name."""
        text = json.dumps({part: getattr(self, part) for part in ("instances", "build")})
        values, named = {"model": model, "seed": str(seed)}, set(_PLACEHOLDER.findall(text))
        if unknown := named - set(values):
            fault = f"there is no value for {{{min(unknown)}}}"
            raise OptionError("instances", fault, "known: {model} and {seed}")
        if not named:
            return self
        parts = json.loads(_PLACEHOLDER.sub(lambda match: values[match[1]], text))
        return replace(self, name=".".join([self.name, *(values[each] for each in sorted(named))]), **parts)


@dataclass(frozen=True)
class ModelDesign(Options):
    """A ranker to be trained.

    Attributes:
        model: as for `train`: knrm, pacrr, duet, hint, tk, or a checkpoint.
        recipe: of the training; None for the usual one of the model.
        changes: values of the recipe or settings of the model.
        vectors: word vectors of a small model.
        aggregate: the score of a document is that of its first passage, or the largest; None as the collection says.
        policy: how documents are cut; None as the collection says.
        depth: how many candidates are reranked; None as the collection says.
        seeds: of the trainings; the design's where the file names none.
        sizes: the only sizes it is trained on; empty for all of each set.
        sets: the only sets it is trained on; empty for all.
    """

    name: str
    model: str
    recipe: str | None = None
    changes: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    vectors: str = "packaged"
    aggregate: Aggregation | None = None
    policy: str | None = None
    depth: _Count | None = None
    seeds: tuple[int, ...] = (0,)
    sizes: tuple[int, ...] = ()
    sets: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.policy is not None:
            _check_policy(self.policy, self.aggregate or "first")
        if not self.seeds:
            raise OptionError("seeds", "none", "give one or more")
        _ = self.trained_by

    @property
    def trained_by(self) -> Recipe:
        """The recipe with the changes that are its own."""
        recipe = recipe_named(self.recipe) if self.recipe else usual_recipe(self.model)
        return recipe.changed(divided(self.changes)[0])


def build_options(build: Mapping[str, Any]) -> BuildOptions:
    """The options of `truerank-lab build` in a design, which has the seed beside them."""
    given: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in build.items()}
    given.pop("seed", None)
    known = [each.name for each in fields(BuildOptions)]
    if unknown := [key for key in given if key not in known]:
        raise OptionError("build", f"unknown key '{unknown[0]}'", f"there are {', '.join(known)}")
    return BuildOptions(**given)


def _check_policy(policy: str, aggregate: str) -> None:
    if policy_named(policy).name == "whole" and aggregate == "max":
        raise OptionError("policy", "max over whole documents", "name one that cuts them, such as sliding:150:75")


@dataclass(frozen=True)
class ReportDesign(Options):
    """What `truerank-lab report` makes of the results.

    Attributes:
        kind: which paper's tables.
        baseline: the label of the sets that the others are compared with.
        memorisation_size: the training size, in instances, of the tables on memorisation; None for the largest.
    """

    kind: ReportKind = "leakage"
    baseline: str = "none"
    memorisation_size: Annotated[int, Range(at_least=2)] | None = None


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
    file: Path | None = dataclasses.field(default=None, compare=False)
    benchmarks: tuple[BenchmarkDesign, ...] = ()

    @property
    def reported(self) -> tuple[BenchmarkDesign, ...]:
        """What the report has tables of: benchmarks, and collections that stand alone, in the order of the file."""
        found: dict[str, BenchmarkDesign] = {}
        for one in self.collections:
            alone = BenchmarkDesign(one.name, (one.name,), one.folds)
            joint = next((each for each in self.benchmarks if one.name in each.collections), alone)
            found[joint.name] = joint
        return tuple(found.values())

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
        """The design as it is in a design file: what is not as by default."""
        parts = {part: {each.name: _written(each, "name") for each in getattr(self, part)} for part in _PARTS}
        return {"name": self.name, **parts, "measures": list(self.measures), "report": _written(self.report)}


_PARTS: Final = ("collections", "benchmarks", "sets", "models")


def _written(one: Any, *without: str) -> dict[str, Any]:
    usual = {each.name: each.default for each in fields(one)}
    given = {name: value for name, value in vars(one).items() if name not in without and value != usual[name]}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in given.items() if value != {}}


#: One row for each cell: a training, or a checkpoint that is tested without one. `size` is in instances, two a row, 0
#: for all rows of a set and for what is not trained.
CELL_SCHEMA: Final[dict[str, Any]] = {
    **frame_schema("set kind label: String"),
    "collections": pl.List(pl.String),
    **frame_schema("size: Int64, model recipe: String, seed: Int64"),
}


def expand(design: Design) -> pl.DataFrame:
    """All cells of a design, columns as in `CELL_SCHEMA`: by set, size, model, seed, in the order of the file."""
    rows = [
        (one.name, one.kind, one.label, list(one.collections), size, model.name, recipe, seed)
        for one in design.sets
        for size in one.sizes or (0,)
        for model in design.models
        if not model.sets or one.name in model.sets
        if not model.sizes or size in model.sizes or one.checkpoint is not None
        for recipe in (model.trained_by.name if one.checkpoint is None else "no training",)
        # What is not trained is the same under every seed.
        for seed in (model.seeds if one.checkpoint is None else model.seeds[:1])
    ]
    return pl.DataFrame(rows, schema=CELL_SCHEMA, orient="row")


#: Names become names of folders and keys of settings.
_NAME: Final = re.compile(r"[A-Za-z0-9][\w+-]*", re.ASCII)
_VARIABLE: Final = re.compile(r"\$\{(\w+)\}")


def read_design(path: str | Path, *, settings: Mapping[str, Any] | None = None) -> Design:
    """Reads the design of an experiment from a YAML file.

    Its keys are `name`, `collections`, `benchmarks`, `sets`, `models`, `measures`, `report` and `seeds`; each of the
    collections and so on has the attributes of `CollectionDesign` and so on. `${NAME}` is taken from the environment;
    `${HERE}` is the folder of the file.

    Args:
        path: the file.
        settings: values that replace those of the file, by keys joined by dots: `collections.vaswani.depth`.

    Returns:
        The design.

    Raises:
        InputError: any fault of the file, with the keys that lead to it.
    """
    file = Path(path)
    text = text_file(file, "give a design file")
    tree = load_yaml(text, file, lambda loader, node: loader.construct_document(node), remedy="mend it")
    reader = _Reader(file)
    for key, value in (settings or {}).items():
        tree = reader.changed(tree, key.split("."), value, key)
    return reader.design(reader.filled(tree, ""))


class _Reader:
    """Makes a design of the tree of a file; a fault names the keys that lead to it."""

    def __init__(self, file: Path) -> None:
        self._file, self._known = file, {**os.environ, "HERE": str(file.absolute().parent)}

    def design(self, tree: Any) -> Design:
        top = self.table(tree, "")
        known = ("name", "seeds", "measures", "report", *_PARTS)
        self.check_keys(top, known, "")
        for key in ("name", "collections", "sets", "models"):
            if not top.get(key):
                self.fault(key, "not given", f"write '{key}:'")
        models = {name: self.table(one, f"models.{name}") for name, one in self.table(top["models"], "models").items()}
        seeds = {"seeds": top["seeds"]} if "seeds" in top else {}
        collections = self._named("collections", CollectionDesign, top["collections"])
        benchmarks = self._named("benchmarks", BenchmarkDesign, top.get("benchmarks") or {})
        tested = {one.name: (one.name,) for one in collections} | {one.name: one.collections for one in benchmarks}
        sets = []
        for one in self._named("sets", SetDesign, top["sets"]):
            own = (self._among(each, tested, f"sets.{one.name}.collections") for each in one.collections)
            sets.append(replace(one, collections=tuple(dict.fromkeys(name for each in own for name in tested[each]))))
        design = Design(
            str(top["name"]), collections, tuple(sets),
            self._named("models", ModelDesign, {name: seeds | one for name, one in models.items()}),
            self.value(tuple[str, ...], top.get("measures", Design.measures), "measures"),
            self._made(ReportDesign, top.get("report") or {}, "report"), self._file, benchmarks,
        )  # fmt: skip
        self._check_together(design)
        return design

    def _check_together(self, design: Design) -> None:
        self._checked(lambda: parse_measures(design.measures), "measures")
        self._among(design.report.baseline, [one.label for one in design.sets], "report.baseline")
        for model in design.models:
            for name in model.sets:
                self._among(name, [one.name for one in design.sets], f"models.{model.name}.sets")
        for each in design.benchmarks:
            path = f"benchmarks.{each.name}.collections"
            every = [one.name for one in design.collections]
            members = [design.collection(self._among(name, every, path)) for name in each.collections]
            for key in ("rel", "measures", "depth"):
                if len({str(getattr(one, key)) for one in members}) > 1:
                    self.fault(path, f"their {key} differs", "score all of them alike")
            for one in design.sets:
                inside = [name for name in each.collections if name in one.collections]
                if 0 < len(inside) < len(members):
                    fault = f"only {', '.join(inside)} of the benchmark {each.name}"
                    self.fault(f"sets.{one.name}.collections", fault, f"test on all of it: {each.name}")

    def _named(self, key: str, kind: type[D], tree: Any) -> tuple[D, ...]:
        found = []
        for name, value in self.table(tree, key).items():
            if not _NAME.fullmatch(str(name)):
                self.fault(key, f"the name '{name}'", "use letters, digits, '-', '_' and '+'")
            found.append(self._made(kind, value, f"{key}.{name}", name=str(name)))
        return tuple(found)

    def _made(self, kind: type[D], tree: Any, path: str, **given: Any) -> D:
        hinted: Any = kind
        table, hints = self.table(tree, path), declared(hinted)
        places = [each for each in fields(hinted) if each.name not in given]
        self.check_keys(table, [each.name for each in places], path)
        for each in places:
            needed = each.default is dataclasses.MISSING and each.default_factory is dataclasses.MISSING
            if needed and each.name not in table:
                self.fault(path, f"no '{each.name}'", "add it")
        values = {key: self.value(hints[key], value, f"{path}.{key}") for key, value in table.items()}
        made: D = self._checked(lambda: kind(**given, **values), path)
        return made

    def value(self, hint: Any, value: Any, path: str) -> Any:
        """A value of the file as the annotation asks for."""
        origin, arguments = get_origin(hint), get_args(hint)
        if origin is Annotated:
            return self.value(arguments[0], value, path)
        if origin in (typing.Union, types.UnionType):
            if value is None and type(None) in arguments:
                return None
            own = [each for each in arguments if each is not type(None)]
            return self.value(own[0] if len(own) == 1 or isinstance(value, int) else own[-1], value, path)
        if origin is tuple:
            many = value if isinstance(value, list | tuple) else [value]
            return tuple(self.value(arguments[0], each, path) for each in many)
        if isinstance(origin, type) and issubclass(origin, Mapping):
            return self.table(value, path)
        if hint is int and (isinstance(value, bool) or not isinstance(value, int)):
            self.fault(path, f"expected an integer, got '{value}'", "write a number")
        if hint is str and (isinstance(value, bool) or not isinstance(value, str | int | float)):
            self.fault(path, "no text", "write a text here")
        return str(value) if hint is str else value

    def filled(self, value: Any, path: str) -> Any:
        """The tree with the variables of its texts replaced."""
        if isinstance(value, dict):
            return {key: self.filled(each, f"{path}.{key}".lstrip(".")) for key, each in value.items()}
        if isinstance(value, list):
            return [self.filled(each, path) for each in value]
        if not isinstance(value, str):
            return value
        for name in _VARIABLE.findall(value):
            if name not in self._known:
                self.fault(path, f"the variable {name} is not set", "set it")
        return _VARIABLE.sub(lambda match: self._known[match[1]], value)

    def changed(self, tree: Any, keys: list[str], value: Any, path: str) -> dict[Any, Any]:
        """The tree with another value below some keys."""
        table = self.table(tree, path)
        return {**table, keys[0]: self.changed(table.get(keys[0]), keys[1:], value, path) if keys[1:] else value}

    def table(self, value: Any, path: str) -> dict[Any, Any]:
        if not isinstance(value, dict):
            self.fault(path, "no mapping", "write 'key: value' lines below it")
        return value

    def check_keys(self, table: Mapping[Any, Any], known: Iterable[str], path: str) -> None:
        for key in table:
            self._among(key, list(known), path, "unknown key")

    def _among(self, value: Any, choices: Iterable[str], path: str, what: str = "unknown") -> str:
        known = list(choices)
        if value not in known:
            near = difflib.get_close_matches(str(value), known, 1)
            self.fault(
                path, f"{what} '{value}'", f"did you mean '{near[0]}'?" if near else f"known: {', '.join(known)}"
            )
        return str(value)

    def _checked(self, read: Any, path: str) -> Any:
        """What a function gives; its errors are named as faults of the keys."""
        try:
            return read()
        except InputError as error:
            if error.where == str(self._file):
                raise
            own = f"{path}.{error.option}" if isinstance(error, OptionError) else path
            self.fault(own, error.fault.replace("`", ""), error.remedy.replace("`", ""))
        except TruerankError as error:
            self.fault(path, error.fault, error.remedy)

    def fault(self, path: str, what: str, remedy: str) -> NoReturn:
        raise InputError(f"{path}: {what}" if path else what, remedy, where=self._file)
