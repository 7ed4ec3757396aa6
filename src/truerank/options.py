"""The options that several commands share, and the check of every option, on the command line and in Python.

A command is a function; its options are its parameters and the fields of small frozen dataclasses. Annotations declare
what a value may be: `Literal` the choices, `Range` the bounds. Defaults and docstrings complete the declaration.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import math
import re
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any, Final, Literal, ParamSpec, TypeVar, get_args, get_origin

from truerank.errors import OptionError, TruerankError
from truerank.loading import decimal_number, signed_number

__all__ = [
    "Columns", "Confidence", "Encoding", "Flag", "Labels", "Missing", "Names", "Options", "Out", "OutFile",
    "Processes", "Range", "Resampling", "Runtime", "Scoring", "Seed", "Source", "Sources", "Ties", "Votes", "Workers",
    "adopted", "adopter", "check", "command", "declared", "overwrites", "value_of", "watcher",
]  # fmt: skip

#: Metavariables of options that name sources.
_SOURCE: Final = re.compile(r"SRC|FILE$")
#: Whether a command replaces files of others; None where none runs.
overwrites: ContextVar[bool | None] = ContextVar("overwrites", default=None)
P = ParamSpec("P")
R = TypeVar("R")

Ties = Literal["trec_eval", "ascending", "rank"]
Missing = Literal["default", "skip", "fail"]
#: The rule for several voices, see `judging.VOTES`.
Votes = Literal["majority", "unanimous", "any", "first", "last"]


@dataclass(frozen=True)
class Range:
    """The bounds of a number, or of the numbers in a mapping or list; None for no bound.

    Attributes:
        at_least: the smallest value allowed.
        at_most: the largest value allowed.
        above: a bound that is not allowed itself.
        below: a bound that is not allowed itself.
    """

    at_least: float | None = None
    at_most: float | None = None
    above: float | None = None
    below: float | None = None

    def holds(self, value: float) -> bool:
        """Whether a value lies within the bounds; nan lies nowhere."""
        return (
            not (isinstance(value, float) and math.isnan(value))
            and (self.at_least is None or value >= self.at_least)
            and (self.at_most is None or value <= self.at_most)
            and (self.above is None or value > self.above)
            and (self.below is None or value < self.below)
        )

    def text(self) -> str:
        """The bounds in words."""
        bounds = (
            ("at least", self.at_least),
            ("above", self.above),
            ("at most", self.at_most),
            ("below", self.below),
        )
        return " and ".join(f"{words} {_shown(bound)}" for words, bound in bounds if bound is not None)


@dataclass(frozen=True)
class Flag:
    """How the command line takes a parameter; only what cannot be derived from its name and type.

    Attributes:
        metavar: what the help shows for the value.
        short: a short form, or the only one where it stands for a parameter of one letter ("-k").
        positional: whether the value stands without a flag.
        reads: the type that the command line reads, where Python takes more.
        hidden: for Python only.
        commas: whether commas separate several values of one flag.
        rare: shown by `--help-all` only.
        panel: the heading in the help, in place of its group's; "" for the command's own options.
    """

    metavar: str = ""
    short: str = ""
    positional: bool = False
    reads: Any = None
    hidden: bool = False
    commas: bool = False
    rare: bool = False
    panel: str | None = None


#: Of whole numbers that declare no upper bound of their own: no count of the field comes near it.
_WHOLE: Final = Range(at_least=-(2**31), at_most=2**31 - 1)
#: A source of truerank's grammar, and several of them.
Source = Annotated[str, Flag(metavar="SRC")]
Sources = Annotated[tuple[str, ...], Flag(metavar="SRC", reads=list[str])]
#: Names of people or models.
Names = Annotated[tuple[str, ...], Flag(metavar="A,B", reads=list[str], commas=True)]
#: What the columns of tables are, where their names do not say.
Columns = Annotated[str, Flag(metavar="ROLE=COLUMN,…")]
#: How many processes or threads.
Processes = Annotated[int, Range(at_least=1, at_most=1024)]
#: Where artifacts go; None writes nothing.
Out = Annotated[str | Path | None, Flag(metavar="DIR", reads=Path)]
OutFile = Annotated[str | Path | None, Flag(metavar="FILE", reads=Path)]
#: Options with one meaning and one range everywhere.
Seed = Annotated[int, Range(at_least=0, at_most=2**32 - 1)]
Confidence = Annotated[float, Range(above=0, below=1)]


#: What turns values of a program into sources; `sources.given` sets it, since reading lies above options.
_adopters: list[Callable[..., Any]] = []
#: What registers the adopter.
_READER: Final = "truerank.sources.notebook"


def adopter(function: Callable[..., R]) -> Callable[..., R]:
    """Registers what turns a value of a program into a source: a function of name, value, `several` and `by_name`."""
    _adopters[:] = [function]
    return function


#: What shows progress where Python gives no `progress`; `work.progress` sets it, since it lies above options.
_watchers: list[Callable[[], contextlib.AbstractContextManager[Any]]] = []


def watcher(function: Callable[P, R]) -> Callable[P, R]:
    """Registers what shows the progress of commands that Python calls without `progress`: a context manager."""
    _watchers[:] = [function]  # type: ignore[list-item]
    return function


@contextlib.contextmanager
def _watched(given: inspect.BoundArguments) -> Iterator[None]:
    names = given.signature.parameters
    if not _watchers or "progress" not in names or "view" in names or given.arguments.get("progress") is not None:
        yield
        return
    with _watchers[0]() as given.arguments["progress"]:
        yield


def adopted(owner: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """Values of a program that stand in place of sources, as sources; one value in place of several, as several.

    Args:
        owner: the function or dataclass that declares them.
        values: by the name of the parameter or field.

    Raises:
        OptionError: a value that cannot be read.
    """
    hints = declared(owner)
    found = {}
    for name, value in values.items():
        if value is None or name not in hints:
            continue
        kinds = _kinds(hints[name])
        classes = tuple(kind for kind in kinds if isinstance(kind, type))
        # What the option takes itself, such as an open source, or a list of queries.
        own = tuple(one for one in classes if one.__module__.startswith("truerank.") and not _is_protocol(one))
        if isinstance(value, (str, Path, *own)) and _is_several(hints[name]) and not _takes(hints[name], value):
            commas = any(isinstance(kind, Flag) and kind.commas for kind in kinds)
            value = found[name] = tuple(part.strip() for part in str(value).split(",")) if commas else (value,)
        if isinstance(value, str):
            continue
        names_source = any(isinstance(kind, Flag) and _SOURCE.search(kind.metavar) for kind in kinds)
        if not names_source or any(kind.__name__ in ("Any", "DataFrame") for kind in classes):
            continue
        if isinstance(value, own) or (isinstance(value, list | tuple) and any(isinstance(one, own) for one in value)):
            continue
        by_name = any(issubclass(kind, Mapping) for kind in classes)
        several = _is_several(hints[name])
        # Options may be made before anything that reads a source is loaded.
        importlib.import_module(_READER)
        for adopt in _adopters:
            found[name] = adopt(name, value, several=several, by_name=by_name)
    return found


def _takes(hint: Any, value: Any) -> bool:
    """Whether an annotation allows a value by itself; a path is a text."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated or origin in (typing.Union, types.UnionType):
        return any(_takes(each, value) for each in (arguments[:1] if origin is Annotated else arguments))
    if origin is Literal or hint is Any or _is_protocol(hint):
        return True
    kinds = (str, Path) if hint in (str, Path) else hint
    return origin is None and isinstance(kinds, type | tuple) and isinstance(value, kinds)


def _is_protocol(hint: Any) -> bool:
    return bool(getattr(hint, "_is_protocol", False))


def _is_several(hint: Any) -> bool:
    """Whether an annotation allows several names of sources."""
    origin, arguments = get_origin(hint), get_args(hint)
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return any(kind in (str, Path) for part in arguments for kind in _kinds(part))
    return any(_is_several(part) for part in arguments)


def _kinds(hint: Any) -> list[Any]:
    """Every class and extra in an annotation."""
    origin, extras = get_origin(hint), getattr(hint, "__metadata__", ())
    own = [hint] if isinstance(hint, type) and origin is None else [origin] if isinstance(origin, type) else []
    return [*own, *extras, *(kind for part in get_args(hint) for kind in _kinds(part))]


@functools.cache
def declared(owner: Any) -> Mapping[str, Any]:
    """The annotations of a function's parameters or a dataclass's fields, with their bounds and flags."""
    return typing.get_type_hints(owner, include_extras=True)


def check(owner: Any, values: Mapping[str, Any]) -> None:
    """Compares values with their declaration.

    Args:
        owner: the function or dataclass that declares them.
        values: by the name of the parameter or field.

    Raises:
        OptionError: a value out of its range, or none of the choices.
    """
    hints = declared(owner)
    for name, value in values.items():
        if name in hints:
            _check_value(name, value, hints[name])


def _check_value(name: str, value: Any, hint: Any) -> None:
    """Looks through `Annotated`, optional types, lists and mappings for choices and bounds."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        bounds = [extra for extra in hint.__metadata__ if isinstance(extra, Range)]
        for each in bounds:
            _check_range(name, value, each)
        if not any(each.at_most is not None for each in bounds):
            _check_range(name, value, _WHOLE)
        _check_value(name, value, arguments[0])
    elif hint is int:
        _check_range(name, value, _WHOLE)
    elif origin is Literal:
        if value not in arguments:
            choices = ", ".join(str(choice) for choice in arguments)
            raise OptionError(name, f"'{value}' is not one of the choices", f"choose one of {choices}")
    elif origin in (typing.Union, types.UnionType):
        _check_union(name, value, arguments)
    elif origin in (tuple, list) and isinstance(value, tuple | list):
        for each in value:
            _check_value(name, each, arguments[0])
    elif isinstance(hint, type) and issubclass(hint, Options) and not isinstance(value, hint):
        first = fields(hint)[0].name  # type: ignore[arg-type]
        fault = f"a group of options of the type {hint.__name__} was expected, got {type(value).__name__}"
        raise OptionError(name, fault, f"give its options by name, such as {first}=…")


def _check_union(name: str, value: Any, kinds: tuple[Any, ...]) -> None:
    if value is None and type(None) in kinds:
        return
    if isinstance(value, str) and not value and Path in kinds:
        raise OptionError(name, "an empty path", "give the name of a file or folder")
    choices: list[Any] = []
    for kind in kinds:
        bare = get_args(kind)[0] if get_origin(kind) is Annotated else kind
        if get_origin(bare) is Literal:
            choices += get_args(bare)
        elif _is_protocol(bare):
            # A protocol cannot be asked whether it holds; a name is never meant by one.
            if not isinstance(value, str):
                return
        elif isinstance(value, bare if isinstance(bare, type) else get_origin(bare) or object):
            _check_value(name, value, kind)
            return
    if choices:
        _check_value(name, value, Literal[tuple(choices)])


def _check_range(name: str, value: Any, bounds: Range) -> None:
    numbers = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else (value,)
    for number in numbers:
        # The bounds of whole numbers are none of numbers with a fraction.
        if bounds is _WHOLE and not isinstance(number, int):
            continue
        if isinstance(number, int | float) and not bounds.holds(number):
            wanted = bounds.text() if bounds is not _WHOLE else f"at most {2**31 - 1}" if number > 0 else "0 or more"
            raise OptionError(name, f"must be {wanted}, got {_shown(number)}", "correct the value", value=number)


def _shown(number: float) -> str:
    """A number for a message; whole ones as they are, unless they are very long."""
    if isinstance(number, int):
        return str(number) if abs(number) < 10**20 else "a number of more than 20 digits"
    return f"{number:g}"


class Options:
    """Base of the dataclasses of options: a value that the declaration does not allow cannot be made.

    Raises:
        OptionError: a value out of its range, or none of the choices.
    """

    def __post_init__(self) -> None:
        values = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        for name, value in adopted(type(self), values).items():
            object.__setattr__(self, name, value)
        check(type(self), values)


def command(function: Callable[P, R]) -> Callable[P, R]:
    """Marks a function as a command.

    Its arguments are compared with their declaration when it is called. A field of a group of options may be given by
    its own name, as on the command line: `evaluate(…, rel=2)` is `evaluate(…, scoring=Scoring(rel=2))`. One that
    writes takes `overwrite=True`, which replaces what others wrote there. Errors name options as Python does. Work of
    more than a minute says on stderr how far it is, unless it is given a `progress`.
    """
    signature = inspect.signature(function)

    @functools.wraps(function)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        outer = overwrites.get()
        before = overwrites.set(bool(kwargs.pop("overwrite", outer) if "out" in signature.parameters else outer))
        try:
            given = signature.bind(*args, **_grouped(function, signature, kwargs))
            given.arguments |= adopted(function, given.arguments)
            check(function, given.arguments)
            with _watched(given) if outer is None else contextlib.nullcontext():
                return function(*given.args, **given.kwargs)
        except TruerankError as error:
            if outer is None:
                error.name_keywords()
            raise
        finally:
            overwrites.reset(before)

    return checked


def _grouped(function: Any, signature: inspect.Signature, given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments with the fields of groups in their groups."""
    found = {name: value for name, value in given.items() if name in signature.parameters}
    inner: dict[str, dict[str, Any]] = {}
    for name in given.keys() - signature.parameters.keys():
        owner = next((one for one, group in _groups(function).items() if name in group), None)
        if owner is None:
            known = [*signature.parameters, *(field for group in _groups(function).values() for field in group)]
            raise OptionError(name, f"{function.__name__} has no such option", f"there are {', '.join(known)}")
        inner.setdefault(owner, {})[name] = given[name]
    # All fields of a group at once: some are allowed together only.
    groups = {owner: replace(found.get(owner, signature.parameters[owner].default), **inner[owner]) for owner in inner}
    return found | groups


@functools.cache
def _groups(function: Any) -> Mapping[str, tuple[str, ...]]:
    """The fields of each group of options that a function takes."""
    groups = {name: hint for name, hint in declared(function).items() if isinstance(hint, type)}
    return {
        name: tuple(field.name for field in fields(kind))  # type: ignore[arg-type]
        for name, kind in groups.items()
        if issubclass(kind, Options)
    }


_TIES: Final[dict[str, str]] = {
    "trec_eval": "scores as 32-bit numbers, equal ones by document id descending (trec_eval)",
    "ascending": "equal scores by document id ascending",
    "rank": "the rank column of the run, equal ranks by document id ascending",
}
_MISSING: Final[dict[str, str]] = {
    "default": "a topic that the run lacks scores what an empty ranking scores",
    "skip": "a topic that the run lacks is left out of its means",
    "fail": "a run that lacks a topic is refused",
}


@dataclass(frozen=True)
class Scoring(Options):
    """How runs are scored where conventions differ; every choice is printed with the result.

    Attributes:
        ties: the order of documents with equal scores: trec_eval (scores as 32-bit numbers, then document id
            descending), ascending (document id ascending, as in the leakage paper) or rank (the rank column).
        missing: the score of a topic that a run lacks: default (what an empty ranking scores), skip (it is left out) or
            fail (the run is refused).
        depth: how many results of each topic are scored; by default all.
        rel: the lowest grade that binary measures without rel= count as relevant; graded gains begin at grade 1.
    """

    ties: Ties = "trec_eval"
    missing: Missing = "default"
    depth: Annotated[int | None, Range(at_least=1)] = None
    rel: Annotated[int, Range(at_least=1)] = 1

    def sentences(self) -> tuple[str, ...]:
        """The choices in words, one sentence each."""
        depth = "all results" if self.depth is None else f"the first {self.depth:,} results"
        return (
            f"Ties: {_TIES[self.ties]}.",
            f"Missing: {_MISSING[self.missing]}.",
            f"Depth: {depth} of each topic.",
            f"Binary measures count grades of {self.rel} and more unless they say rel= themselves.",
        )

    def json(self) -> dict[str, Any]:
        """The choices by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


@dataclass(frozen=True)
class Resampling(Options):
    """How often samples are drawn again, and how sure an interval is.

    Attributes:
        resamples: how many samples are drawn.
        confidence: of intervals.
        seed: the seed of all random draws.
    """

    resamples: Annotated[int, Range(at_least=1)] = 10_000
    confidence: Confidence = 0.95
    seed: Seed = 0


@dataclass(frozen=True)
class Labels(Options):
    """Judgments of people or models, and how several voices about one item become one.

    `judging.open_judgments` and `judging.read_ratings` take it as it is.

    Attributes:
        labels: label files and judging stores; NAME=SRC names the annotator of a file that names none. In Python also
            an open store, records, ratings or judgments.
        annotators: use the labels of these annotators only; by default those of all.
        votes: how several labels of an item become one: majority (the answer of more than half of the annotators; two
            different answers of one annotator are an error), unanimous (all agree), any (the first of the possible
            answers, such as a leak before none, that anybody gave), first or last (by time).
        include_models: count labels of models like those of people; the output says so.
    """

    labels: Annotated[Any, Flag(metavar="[NAME=]SRC", reads=list[str])] = ()
    annotators: Names = ()
    votes: Votes = "majority"
    include_models: bool = False

    def __post_init__(self) -> None:
        """Takes one source or one name as it is."""
        for name in ("labels", "annotators"):
            given = getattr(self, name)
            object.__setattr__(self, name, tuple(given) if isinstance(given, list | tuple) else (given,))
        super().__post_init__()

    def __bool__(self) -> bool:
        """Whether there are labels at all."""
        return bool(self.labels)


@dataclass(frozen=True)
class Workers(Options):
    """Where the work runs.

    Attributes:
        engine: local (processes of this machine), ray (a cluster on this machine), or ray:ADDRESS.
        workers: how many processes; by default as many as the processors allow.
    """

    engine: str = "local"
    workers: Processes | None = None


@dataclass(frozen=True)
class Encoding(Options):
    """What turns texts into vectors.

    Attributes:
        encoder: a Hugging Face id, a local folder, packaged, or words for none: texts are then compared by their words
            and letters. Auto takes packaged where it is installed, else words; it asks no network.
        backend: what runs the encoder; auto takes OpenVINO, ONNX Runtime or torch, the first that is installed.
        device: where the torch backend runs, such as cuda:0.
        precision: auto runs a first pass in lower precision where that is faster on this machine; the pairs above the
            floor are the same. Full does not.
        cache: a folder that keeps vectors, so that the next run encodes only what is new.
    """

    encoder: Annotated[str, Flag(metavar="NAME")] = "auto"
    backend: Literal["auto", "onnx", "openvino", "torch"] = "auto"
    device: str | None = None
    precision: Literal["auto", "full"] = "auto"
    cache: Annotated[str | None, Flag(metavar="DIR")] = None


@dataclass(frozen=True)
class Runtime(Options):
    """What runs a neural model.

    Attributes:
        device: cpu, cuda, cuda:1, mps; by default a GPU where there is one.
        precision: fp16 and bf16 run on a GPU.
        threads: processors to use; by default all that the process may use.
    """

    device: str | None = None
    precision: Literal["fp32", "fp16", "bf16"] = "fp32"
    threads: Processes | None = None


def value_of(text: str) -> bool | int | float | str:
    """A setting given as a text: true and false, whole numbers and numbers are read as such."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    for number in (signed_number(text), decimal_number(text)):
        if number is not None:
            return number
    return text
