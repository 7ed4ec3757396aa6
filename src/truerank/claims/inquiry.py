"""All that a check was asked, and `check.yaml`, in which it stands so that it can be run again."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from truerank.claims.options import ClaimOptions, ClaimSources
from truerank.errors import InputError
from truerank.judging.ratings import named_source
from truerank.loading import load_yaml, text_file
from truerank.measures.scoring import named_runs
from truerank.options import Encoding, Labels, Resampling, Scoring
from truerank.records import Input
from truerank.sources import grammar
from truerank.sources.given import is_given
from truerank.sources.inputs import input_of, inputs_of
from truerank.sources.sample import sample_folder

#: In place of a file: the embedded sample.
SAMPLE_NAME: Final = "sample"
_GROUPS: Final = ("sources", "options", "judged", "encoding", "resampling", "scoring")
#: Fields that name files, perhaps after NAME=.
_PATHS: Final = frozenset(("test", "qrels", "run", "train", "docs", "previous", "metadata", "variants", "cache", "out"))
_NAMED_PATHS: Final = frozenset(("model_judgments", "labels"))
_REMEDY: Final = "correct it; an earlier check.yaml shows the form"


@dataclass(frozen=True)
class Inquiry:
    """All that was asked: the groups of options of `check`, and the folder of the output."""

    sources: ClaimSources = ClaimSources()
    options: ClaimOptions = ClaimOptions()
    judged: Labels = Labels()
    encoding: Encoding = Encoding()
    resampling: Resampling = Resampling(resamples=1_000)
    scoring: Scoring = Scoring()
    out: str | Path | None = None

    def chosen(self) -> dict[str, Any]:
        """What the manifest says of the options; sources stand among its inputs."""
        encoding = replace(self.encoding, cache=None)
        chosen = {name: getattr(self.sources, name) for name in ("system", "baseline", "judged_by")}
        groups = ("options", "resampling", "scoring")
        return {**chosen, **{name: getattr(self, name) for name in groups}, "encoding": encoding}

    def inputs(self) -> tuple[Input, ...]:
        """What is read, as the manifest names it."""
        given = self.sources
        runs = named_runs(given.run) if given.has("run") else {}
        found = inputs_of(
            test=given.test, qrels=given.qrels if given.has("qrels") else None, train=given.train, docs=given.docs,
            previous=given.previous, metadata=given.metadata, variants=self.options.variants,
        )  # fmt: skip
        several = [given.model_judgments] if isinstance(given.model_judgments, str) else given.model_judgments
        models = several.items() if isinstance(several, Mapping) else [_split(str(one)) for one in several]
        return (
            *found,
            *(input_of("run", source, name) for name, source in runs.items()),
            *(input_of("model_judgments", source, name) for name, source in models),
            *(input_of("labels", _split(one)[1]) for one in self.judged.labels if isinstance(one, str)),
        )


def _split(text: str) -> tuple[str, str]:
    name, spec = named_source(text)
    return name or spec.name, spec.spec


def written_settings(given: Inquiry, folder: Path) -> dict[str, Any]:
    """What differs from the defaults, by option, with paths as seen from a folder; values of a program are left out."""
    found: dict[str, Any] = {}
    for group in _GROUPS:
        plain, own = getattr(Inquiry(), group), getattr(given, group)
        for field in dataclasses.fields(own):
            value = getattr(own, field.name)
            if _is_default(value, getattr(plain, field.name)) or field.name == "dry_run":
                continue
            shown = _written(field.name, value, folder)
            if shown is not None:
                found[field.name] = shown
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
        key, spec = named_source(value)
        path = _relative(spec.spec, folder)
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
    if str(settings) == SAMPLE_NAME and not path.exists():
        path = sample_folder() / "collection" / "check.yaml"
    text = text_file(path, "give a check.yaml, or the options themselves")
    values = load_yaml(text, path, lambda loader, node: loader.construct_document(node), remedy=_REMEDY) or {}
    if not isinstance(values, dict):
        raise InputError("no options in it", _REMEDY, where=path)
    values = {str(key).replace("-", "_"): value for key, value in values.items()}
    out = values.pop("out", None)
    groups: dict[str, Any] = {}
    for group in _GROUPS:
        plain, own = getattr(Inquiry(), group), getattr(given, group)
        names = {field.name: getattr(own, field.name) for field in dataclasses.fields(own)}
        read = {name: _read(name, values.pop(name), path) for name in list(values) if name in names}
        changed = {name: value for name, value in names.items() if not _is_default(value, getattr(plain, name))}
        groups[group] = replace(plain, **{**read, **changed})
    if values:
        raise InputError(f"there is no option '{next(iter(values))}'", _REMEDY, where=path)
    place = given.out if given.out is not None or out is None else path.parent / str(out)
    return Inquiry(**groups, out=place)


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
