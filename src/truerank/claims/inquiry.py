"""All that a check was asked: options, `check.yaml`, in which it stands to be run again, and what is read for it."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import polars as pl

from truerank.audits.benchmarks import KnownBenchmark, recognised
from truerank.audits.collection.run_faults import HARDLY
from truerank.claims.claim import Unit
from truerank.claims.options import ClaimKnowledge, ClaimOptions, ClaimSources
from truerank.errors import InputError, OptionError
from truerank.loading import load_yaml, text_file
from truerank.measures.repeats import repeat_files, run_files
from truerank.measures.scoring import judged_pairs, named_runs, ranked_runs
from truerank.options import Encoding, Labels, Resampling, Scoring
from truerank.records import Input
from truerank.sources import grammar, irds, open_documents, open_queries, read_topics
from truerank.sources.golden import GoldenTable
from truerank.sources.golden_rows import is_settings
from truerank.sources.inputs import input_of, inputs_of
from truerank.sources.notebook import is_given
from truerank.sources.recognition import Opened, Reading, brought_by, opened, several_paths
from truerank.sources.sample import sample_folder

#: In place of a file: the embedded sample; a folder of this name is ./sample.
SAMPLE_NAME: Final = "sample"
_GROUPS: Final = ("sources", "options", "judged", "encoding", "resampling", "scoring", "known")
#: Fields that name files, perhaps after NAME=.
_PATHS: Final = frozenset(("test", "qrels", "run", "tried", "train", "docs", "previous", "variants", "cache", "out"))
_NAMED_PATHS: Final = frozenset(("model_judgments", "labels"))
#: What files of questions are read as.
_OF_QUESTIONS: Final = frozenset(("golden file", "golden set", "expected answers", "score table"))
_CHECKED: Final = ("test", "qrels", "run", "docs")
_REMEDY: Final = "correct it; an earlier check.yaml shows the form"


@dataclass(frozen=True)
class Inquiry:
    """All that was asked: the groups of options of `check`, and the folder of the output.

    `paths` are the files that were given without an option, and `opened` what they hold; `named` has the sources
    without what was read from them.
    """

    sources: ClaimSources = ClaimSources()
    options: ClaimOptions = ClaimOptions()
    judged: Labels = Labels()
    encoding: Encoding = Encoding()
    resampling: Resampling = Resampling(resamples=1_000)
    scoring: Scoring = Scoring()
    out: str | Path | None = None
    known: ClaimKnowledge = ClaimKnowledge()
    paths: tuple[Any, ...] = ()
    opened: Opened | None = None
    named: ClaimSources | None = None

    @property
    def readings(self) -> tuple[Reading, ...]:
        """What the files were taken for."""
        return () if self.opened is None else self.opened.readings

    @property
    def table(self) -> GoldenTable | None:
        """The score tables among what was given, as one."""
        return None if self.opened is None else self.opened.scores

    @property
    def unit(self) -> Unit:
        """What each score is of: tables are about questions, files of TREC about topics."""
        kinds = {reading.kind for reading in self.readings}
        return "tasks" if "results of MTEB" in kinds else "questions" if kinds & _OF_QUESTIONS else "topics"

    def chosen(self) -> dict[str, Any]:
        """What the manifest says of the options; sources stand among its inputs."""
        encoding = replace(self.encoding, cache=None)
        chosen = {name: getattr(self.sources, name) for name in ("system", "baseline", "judged_by")}
        groups = ("options", "resampling", "scoring", "known")
        return {**chosen, **{name: getattr(self, name) for name in groups}, "encoding": encoding}

    def inputs(self) -> tuple[Input, ...]:
        """What is read, as the manifest names it."""
        given = self.sources
        runs = named_runs(given.run) if given.has("run") else {}
        tried = named_runs(run_files(given.tried)) if given.has("tried") else {}
        found = inputs_of(
            test=given.test, qrels=given.qrels if given.has("qrels") else None, train=given.train, docs=given.docs,
            judged_again=given.judged_again or None,
            previous=given.previous, variants=self.options.variants,
        )  # fmt: skip
        several = [given.model_judgments] if isinstance(given.model_judgments, str) else given.model_judgments
        models = several.items() if isinstance(several, Mapping) else [_split(str(one)) for one in several]
        files = {path for path in self.paths if isinstance(path, str)}
        return (
            *(input_of("table", one.path) for one in self.readings if one.table is not None and one.path in files),
            *found,
            *(input_of("run", source, name) for name, source in runs.items()),
            *(input_of("tried", source, name) for name, source in tried.items()),
            *(
                input_of("repeats", source, f"{system}={name}")
                for system, files in (repeat_files(given.repeats) if given.has("repeats") else {}).items()
                for name, source in named_runs(files).items()
            ),
            *(input_of("model_judgments", source, name) for name, source in models),
            *(input_of("labels", _split(one)[1]) for one in self.judged.labels if isinstance(one, str)),
        )


def _split(text: str, *, unnamed: bool = False) -> tuple[str, str]:
    name, spec = grammar.named_source(text)
    return name or ("" if unnamed else spec.name), spec.spec


def written_settings(given: Inquiry, folder: Path) -> dict[str, Any]:
    """What differs from the defaults, by option, with paths as seen from a folder; values of a program are left out."""
    paths = [_relative(str(path), folder) for path in given.paths if isinstance(path, str | Path)]
    found: dict[str, Any] = {"paths": paths} if paths else {}
    for group in _GROUPS:
        plain = getattr(Inquiry(), group)
        own = given.named if group == "sources" and given.named is not None else getattr(given, group)
        for each in dataclasses.fields(own):
            value = getattr(own, each.name)
            if _is_default(value, getattr(plain, each.name)):
                continue
            shown = _written(each.name, value, folder)
            if shown is not None:
                found[each.name] = shown
    return found


def _is_default(value: Any, default: Any) -> bool:
    """Whether an option was left as it is; a frame of a program never equals a default."""
    if isinstance(value, list | tuple) and isinstance(default, list | tuple):
        return not value and not default
    return type(value) is type(default) and bool(value == default)


def _written(name: str, value: Any, folder: Path) -> Any:
    if isinstance(value, list | tuple):
        several = [_written(name, one, folder) for one in value]
        return [one for one in several if one is not None]
    if name in _NAMED_PATHS and isinstance(value, str):
        key, source = _split(value, unnamed=True)
        path = _relative(source, folder)
        return path if path is None or not key else f"{key}={path}"
    if name in _PATHS and isinstance(value, str | Path):
        return _relative(str(value), folder)
    return value if isinstance(value, str | int | float | bool) else None


def _relative(text: str, folder: Path) -> str | None:
    spec = grammar.parse(text)
    if spec.scheme != "file":
        return text
    if is_given(spec.path):
        return None
    rest = text[len(spec.location) :] if text.startswith(spec.location) else ""
    return f"{Path(os.path.relpath(spec.path, folder)).as_posix()}{rest}"


def resolved(settings: str | Path, given: Inquiry) -> Inquiry:
    """What a file of settings says, with what was given beside it in its place."""
    path = Path(settings)
    if sample := settings == SAMPLE_NAME:
        path = sample_folder() / "collection" / "check.yaml"
    text = text_file(path, "give a check.yaml, or the options themselves")
    values = load_yaml(text, path, lambda loader, node: loader.construct_document(node), remedy=_REMEDY) or {}
    if not isinstance(values, dict):
        raise InputError("no options in it", _REMEDY, where=path)
    values = {str(key).replace("-", "_"): value for key, value in values.items()}
    if sample:
        # Here: a check without the sample would wait for it.
        from truerank.vectors.encoders.opening import packaged_or_words

        values["encoder"] = packaged_or_words()
    out, paths = values.pop("out", None), _read("test", values.pop("paths", []), path)
    groups: dict[str, Any] = {}
    for group in _GROUPS:
        plain, own = getattr(Inquiry(), group), getattr(given, group)
        names = {each.name: getattr(own, each.name) for each in dataclasses.fields(own)}
        read = {name: _read(name, values.pop(name), path) for name in list(values) if name in names}
        changed = {name: value for name, value in names.items() if not _is_default(value, getattr(plain, name))}
        groups[group] = replace(plain, **{**read, **changed})
    if values:
        raise InputError(f"there is no option '{next(iter(values))}'", _REMEDY, where=path)
    place = given.out if given.out is not None or out is None else path.parent / str(out)
    found = understood(Inquiry(**groups, out=place, paths=paths if isinstance(paths, tuple) else (paths,)))
    if found.table is None and not any(map(found.sources.has, _CHECKED)):
        raise InputError("names nothing to check", _REMEDY, where=path)
    return found


def asked(paths: Any, given: Inquiry) -> Inquiry:
    """All that was asked, with the files that were given without an option."""
    several = several_paths(paths)
    settings = [path for path in several if isinstance(path, str) and _is_settings(path)]
    if not settings:
        return understood(replace(given, paths=several))
    if len(several) > 1:
        raise InputError(
            "settings and other files", "give the settings alone, and other sources by option", where=settings[0]
        )
    return resolved(settings[0], given)


def _is_settings(path: str) -> bool:
    return path == SAMPLE_NAME or is_settings(Path(path))


def understood(given: Inquiry) -> Inquiry:
    """The same with the sources that the paths hold."""
    if not given.paths:
        return given
    named = {name: getattr(given.sources, name) for name in (*_CHECKED, "train")}
    found = opened(given.paths, given.sources.columns, given.options.measure, **named)
    if "run" in found.sources and "test" not in found.sources:
        found.judged_runs()
    return replace(given, sources=replace(given.sources, **found.sources), named=given.sources, opened=found)


def _read(name: str, value: Any, path: Path) -> Any:
    if isinstance(value, list):
        return tuple(_read(name, one, path) for one in value)
    if isinstance(value, dict) or value is None:
        raise InputError(f"'{name}' has no value that can be read", _REMEDY, where=path)
    if name in _NAMED_PATHS:
        key, equals, rest = str(value).partition("=")
        return f"{key}={_placed(rest, path)}" if equals else _placed(str(value), path)
    return _placed(str(value), path) if name in _PATHS else value


def _placed(text: str, path: Path) -> str:
    """A source as seen from here; one that a file names is seen from its folder."""
    if text.startswith(("irds:", "hf:")) or Path(text).is_absolute():
        return text
    return os.path.normpath(path.parent / text)


@dataclass(frozen=True, eq=False)
class ClaimMaterial:
    """What was read.

    Attributes:
        sources: what was given, with what the test set brings.
        qrels: the judgments; None where there are none.
        models: judgments of models by name: sources, or values of a program.
        scores: of a score table, by system: columns topic_id and value.
        repeated_scores: of a score table, by system with repetitions: topic_id, and a column for each.
        repeated: what has to be said of pairs that were judged several times.
        tried: all configurations that the system was chosen from, by name, as the runs.
        repeats: by system, its repetitions by name.
        again: pairs that were judged again: columns topic_id, doc_id, relevance; None where there are none.
    """

    sources: ClaimSources
    qrels: pl.DataFrame | None
    runs: Mapping[str, pl.DataFrame]
    models: Mapping[str, Any]
    test: str
    scores: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    tried: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    repeats: Mapping[str, Mapping[str, pl.DataFrame]] = field(default_factory=dict)
    again: pl.DataFrame | None = None
    repeated_scores: Mapping[str, pl.DataFrame] = field(default_factory=dict)
    repeated: tuple[str, ...] = ()

    @cached_property
    def held(self) -> pl.Series | None:
        """Of the ids of judgments and results, those that the documents have, in their order; None without documents.

        What is wrong with the documents is the question of the collection.
        """
        return self._held(self.sources.docs)

    @cached_property
    def before(self) -> pl.Series | None:
        """The same of the documents that were judged; None where they were not given."""
        return self._held(self.sources.previous)

    @cached_property
    def gone(self) -> pl.Series:
        """Those that only the documents have that were judged."""
        if self.held is None or self.before is None:
            return pl.Series(dtype=pl.String)
        return self.before.filter(~self.before.is_in(self.held.implode()))

    def _held(self, docs: str | None) -> pl.Series | None:
        frames = (*self.runs.values(), *([] if self.qrels is None else [self.qrels]))
        named = pl.concat([pl.Series(dtype=pl.String), *(one["doc_id"].unique() for one in frames)]).unique()
        return None if docs is None else open_documents(docs, keep_empty=True).ids_among(named)


def refuse_other_version(material: ClaimMaterial) -> None:
    """Says so where `previous` has hardly one of the judged documents that `docs` has."""
    if material.qrels is None or material.held is None or material.before is None:
        return
    judged = material.qrels["doc_id"].unique()
    here, there = (int(judged.is_in(ids.implode()).sum()) for ids in (material.held, material.before))
    if there >= HARDLY * here:
        return
    fault = f"it has {there:,d} of the judged documents, `docs` has {here:,d}: another collection, or with other ids"
    remedy = "give the documents that were judged, with the ids that `docs` and the judgments have"
    raise InputError(fault, remedy, where=f"previous ({material.sources.previous})")


def completed(sources: ClaimSources) -> ClaimSources:
    """The sources with the judgments and documents that the test set brings."""
    if sources.test is None:
        return sources
    spec = grammar.parse(sources.test)
    brought: tuple[str, ...] = brought_by(spec.path) if spec.scheme == "file" else ()
    if spec.scheme == "irds" and sources.qrels is None and _has_qrels(spec.location):
        brought = ("qrels",)
    found: dict[str, Any] = {name: sources.test for name in brought if getattr(sources, name) is None}
    return replace(sources, **found)


def _has_qrels(dataset: str) -> bool:
    irds.check(dataset)
    try:
        irds.check(dataset, "qrels")
    except InputError:
        return False
    return True


def read_material(sources: ClaimSources, table: GoldenTable | None = None) -> ClaimMaterial:
    """Reads judgments, runs and teams; of a score table its scores."""
    if table is not None:
        return ClaimMaterial(sources, None, {}, {}, Path(table.name).stem, table.scores, repeated_scores=table.repeats)
    if not any(map(sources.has, _CHECKED)):
        raise OptionError(
            "test", "nothing to check", "give a file, or `test`, `qrels` or `docs`, and `run` for a claim"
        )
    for each in (sources.test, *sources.train):
        if each is not None:
            open_queries(each)
    for each in (sources.docs, sources.previous):
        if each is not None:
            open_documents(each)
    if sources.has("run") and not sources.has("qrels"):
        raise OptionError("qrels", "runs need judgments", "give the judgments, or a test set that brings them")
    runs, placed_twice = ranked_runs(sources.run)
    tried, _ = ranked_runs(run_files(sources.tried) if sources.has("tried") else {})
    repeated = repeat_files(sources.repeats) if sources.has("repeats") else {}
    repeats = {name: ranked_runs(files)[0] for name, files in repeated.items()}
    qrels, judged_twice = judged_pairs(sources.qrels) if sources.has("qrels") else (None, ())
    named = sources.test or (sources.qrels if isinstance(sources.qrels, str) else None) or sources.docs or "the data"
    return ClaimMaterial(
        sources, qrels, runs, _models(sources.model_judgments), grammar.parse(str(named)).name, tried=tried,
        repeats=repeats, again=_again(sources), repeated=(*judged_twice, *placed_twice),
    )  # fmt: skip


def benchmark_of(material: ClaimMaterial) -> KnownBenchmark | None:
    """The benchmark of the gallery that the test set is; None where it is another one."""
    test = material.sources.test
    try:
        topics = None if test is None else [topic.topic_id for topic in read_topics(test).topics]
    except InputError:
        # The audit of the collection says what is wrong with them.
        topics = None
    return recognised(topics, material.qrels)


def _again(sources: ClaimSources) -> pl.DataFrame | None:
    if not sources.has("judged_again"):
        return None
    # Here: few checks have second judgments, and reading labels takes time to load.
    from truerank.audits.collection.label_noise import read_again

    return read_again(sources.judged_again)


def _models(given: Any) -> dict[str, Any]:
    """Judgments of models by name."""
    if isinstance(given, Mapping):
        return {str(name): one for name, one in given.items()}
    found: dict[str, Any] = {}
    for one in [given] if isinstance(given, str | Path) else given:
        name, source = _split(str(one))
        if name in found:
            raise OptionError("model_judgments", f"two models are called {name}", "give them as NAME=SRC")
        found[name] = source
    return found
