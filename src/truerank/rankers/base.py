"""What a ranker is, and how one is opened by name."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Protocol, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from truerank.errors import InputError, OptionError
from truerank.loading import json_file
from truerank.options import Runtime, value_of
from truerank.plugins import Plugins
from truerank.work.artifacts import write_text

__all__ = [
    "DECIMALS", "RANKER_FILE", "Pair", "Ranker", "RankerSpec", "Runtime", "Scores", "device_of_ranker", "open_ranker",
    "placed", "read_description", "rounded", "spec_of", "write_description",
]  # fmt: skip

_DECLARED: Final = re.compile(r'^class (?P<name>\w+)|^    kind: ClassVar\[str\] = "(?P<kind>\w+)"', re.MULTILINE)


@cache
def _own() -> Mapping[str, str]:
    """The classes of this package that declare a kind, read from their files: importing them would load engines."""
    found: dict[str, str] = {}
    for file in sorted(files(__package__).iterdir(), key=lambda each: each.name):
        module, _, ending = file.name.partition(".")
        if ending != "py" or module == __name__.rpartition(".")[2]:
            continue
        name = ""
        for match in _DECLARED.finditer(file.read_text(encoding="utf-8")):
            name = match["name"] or name
            if match["kind"]:
                found[match["kind"]] = f"{__package__}.{module}:{name}"
    return MappingProxyType(found)


#: Rankers by kind: a class with the members of `base.Ranker`, `open(place, runtime, **settings)`, and what it declares:
#: `kind`; `default_model`, which its bare name opens. Its settings are the keywords of `open`; one that takes any
#: keyword checks them itself.
RANKERS: Final = Plugins("truerank.rankers", "ranker", ("kind", "open"), _own)


def default_model(kind: str) -> str | None:
    """The checkpoint that the bare name of a kind opens; None where there is none."""
    return getattr(RANKERS.load(kind), "default_model", None)


def settings_of(home: Any) -> tuple[str, ...] | None:
    """The names of the settings that the `open` of a class takes; None where it checks them itself."""
    parameters = list(inspect.signature(home.open).parameters.values())
    if any(each.kind is each.VAR_KEYWORD for each in parameters):
        return None
    return tuple(each.name for each in parameters if each.kind is each.KEYWORD_ONLY)


Scores = NDArray[np.float32]

#: Decimals of a score.
DECIMALS: Final = 6
#: The file of a saved ranker that says what it is.
RANKER_FILE: Final = "ranker.json"


class Pair(NamedTuple):
    """A query and a document as texts; the document may be one passage."""

    query: str
    document: str


@runtime_checkable
class Ranker(Protocol):
    """Scores documents for queries; anything with these members is a ranker."""

    @property
    def name(self) -> str:
        """The model as a user would name it."""

    @property
    def fingerprint(self) -> str:
        """Hash over weights, tokenizer and settings: equal fingerprints, equal scores."""

    def score(self, pairs: Sequence[Pair]) -> Scores:
        """The score of each pair, shape (pairs,), rounded to `DECIMALS`; higher is better.

        The score of a pair does not depend on the order of the pairs.
        """

    def save(self, folder: Path) -> None:
        """Writes the model to a folder that `open_ranker` opens."""


@dataclass(frozen=True)
class RankerSpec:
    """Everything that `open_ranker` needs; small, hashable and picklable.

    Attributes:
        name: as for `open_ranker`.
        runtime: what runs it.
        settings: of the kind, as sorted pairs.
    """

    name: str
    runtime: Runtime = Runtime()
    settings: tuple[tuple[str, Any], ...] = ()

    def open(self) -> Ranker:
        """Opens the ranker; errors as in `open_ranker`."""
        kind, place = _kind_and_place(self.name)
        folder = Path(place).expanduser()
        settings = dict(self.settings)
        if (folder / RANKER_FILE).is_file():
            saved, kept = read_description(folder)
            if kind not in ("", saved):
                raise InputError(f"holds a ranker of kind {saved}", f"leave out '{kind}:'", where=folder)
            kind, settings = saved, {**kept, **settings}
        if not kind:
            from truerank.rankers.pretrained.checkpoints import kind_of

            kind = kind_of(place)
        home = RANKERS.load(kind)
        known = settings_of(home)
        if known is not None and (unknown := [name for name in settings if name not in known]):
            remedy = f"there are {', '.join(known)}" if known else "leave it out"
            raise OptionError("set_", f"{kind} has no such setting: {', '.join(unknown)}", remedy)
        try:
            return cast(Ranker, home.open(place, self.runtime, **settings))
        except ValueError as error:
            fault = f"a setting that cannot be read ({' '.join(str(error).split())[:200]})"
            raise OptionError("set_", fault, "give a value of the right kind") from error


def open_ranker(name: str, **options: Any) -> Ranker:
    """Opens a ranker.

    Args:
        name: a folder that `save` or `train` wrote; `KIND:PLACE`, where the place is a local folder or a Hugging Face
            id (of an index for bm25); a folder or id alone where its configuration tells the kind; or a bare kind,
            which opens the usual checkpoint of that kind.
        **options: the attributes of `Runtime`, and settings of the kind.

    Raises:
        InputError: the model cannot be found, is of no known kind, or cannot be run this way.
        MissingExtraError: what runs it is not installed.
    """
    of_runtime = {field.name for field in fields(Runtime)}
    runtime = replace(Runtime(), **{key: value for key, value in options.items() if key in of_runtime})
    settings = {key: value for key, value in options.items() if key not in of_runtime}
    return RankerSpec(name, runtime, tuple(sorted(settings.items()))).open()


def spec_of(name: str, runtime: Runtime, settings: Mapping[str, str]) -> RankerSpec:
    """How to open a ranker with settings given as texts: whole numbers, numbers, true and false are read as such."""
    return RankerSpec(name, runtime, tuple(sorted((key, value_of(text)) for key, text in settings.items())))


def placed(spec: RankerSpec, ranker: Ranker) -> RankerSpec:
    """How other processes open a ranker that is open here: on the same kind of device, for scores depend on it.

    A process of a cluster has a GPU of its own, or a part of one: to it, that is the first.

    Args:
        spec: how it was opened here.
        ranker: what was opened.
    """
    device = getattr(ranker, "device", None)
    if not isinstance(device, str):
        return spec
    return replace(spec, runtime=replace(spec.runtime, device=device.partition(":")[0]))


def device_of_ranker(ranker: Ranker | RankerSpec) -> str | None:
    """Where a ranker runs, or is to run; None where neither it nor its spec tells."""
    device = ranker.runtime.device if isinstance(ranker, RankerSpec) else getattr(ranker, "device", None)
    return device if isinstance(device, str) else None


def rounded(scores: NDArray[Any]) -> Scores:
    """Scores as they are stored: `DECIMALS` decimals, float32; never -0."""
    return (np.round(scores.astype(np.float64), DECIMALS) + 0.0).astype(np.float32)


def write_description(folder: Path, kind: str, settings: Mapping[str, Any]) -> None:
    """Writes what a saved ranker is, as the last of its files: its kind, and the settings that `open` takes."""
    content = {"kind": kind, "settings": dict(sorted(settings.items()))}
    write_text(folder / RANKER_FILE, json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def read_description(folder: Path) -> tuple[str, dict[str, Any]]:
    """Kind and settings of a saved ranker.

    Raises:
        InputError: the folder holds none, or one of another version.
    """
    file = folder / RANKER_FILE
    try:
        content = json_file(file)
        kind, settings = content["kind"], content["settings"]
    except (InputError, KeyError, TypeError) as error:
        raise InputError("no ranker that was saved", "give a folder that 'train' wrote", where=file) from error
    if kind not in RANKERS or not isinstance(settings, dict):
        raise InputError(f"a ranker of an unknown kind '{kind}'", f"there are {', '.join(RANKERS)}", where=file)
    return str(kind), settings


def _kind_and_place(name: str) -> tuple[str, str]:
    kind, separator, place = name.partition(":")
    if separator and place and kind in RANKERS:
        return kind, place
    # A folder of that name goes before the kind's usual checkpoint.
    if name in RANKERS and not Path(name).is_dir():
        usual = default_model(name)
        if usual is None:
            raise OptionError("model", f"'{name}' alone names no model", f"give {name}:FOLDER")
        return name, usual
    return "", name
