"""What a command's signature, annotations and docstrings declare: the only source of its flags and its help."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import inspect
import re
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal, get_args, get_origin

import docstring_parser

from truerank.core.result import Format, Result
from truerank.errors import OptionError, TruerankError
from truerank.loading import decimal_number, signed_number
from truerank.options import Flag, Options, Range, declared

#: Parameters that the command line supplies itself: progress, or what shows it in a way of its own.
_SUPPLIED: Final = frozenset({"progress", "view"})
_MISSING: Final = inspect.Parameter.empty
#: The heading of the options of how results are shown.
_OUTPUT: Final = "Output"
#: Where the name of an option is in the text of an error.
_QUOTED: Final = re.compile(r"`([a-z_]+)`")


@dataclass(frozen=True)
class Option:
    """One option of a command.

    Attributes:
        name: as in Python.
        flags: as on the command line, or the name of a positional value.
        reads: the type of one value, or of a list of them.
        default: where it may be left out.
        required: whether it may not.
        help: what the docstring says, with the bounds of the declaration.
        metavar: what stands for the value in the help.
        panel: the heading in the help; empty for the command's own options.
        owner: the parameter of the function whose dataclass holds it; empty for a parameter.
        made: turns what the command line read into what the function takes.
        positional: whether it has no flag.
        rare: whether `--help` leaves it to `--help-all`, where a command has many options: those of groups that many
            commands share, and those that say so.
    """

    name: str
    flags: tuple[str, ...]
    reads: Any
    default: Any
    required: bool
    help: str
    metavar: str
    panel: str
    owner: str
    made: Callable[[Any], Any]
    positional: bool = False
    rare: bool = False


@dataclass(frozen=True)
class Command:
    """A public function as a command.

    Attributes:
        name: its words ("track report").
        options: in the order of the help: its own, then those of each group.
        summary: the first sentence of its docstring.
        text: the rest of the docstring, without its sections.
        examples: command lines.
        result: the type of what it returns.
    """

    name: str
    function: Callable[..., Any]
    options: tuple[Option, ...]
    summary: str
    text: str
    examples: tuple[str, ...]
    result: Any

    def arguments(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of the function from what the command line read; groups become their dataclasses."""
        own: dict[str, Any] = {}
        groups: dict[str, dict[str, Any]] = {}
        for option in self.options:
            if option.name in values:
                target = groups.setdefault(option.owner, {}) if option.owner else own
                target[option.name] = option.made(values[option.name])
        parameters = inspect.signature(self.function).parameters
        return own | {owner: dataclasses.replace(parameters[owner].default, **some) for owner, some in groups.items()}

    @property
    def takes(self) -> frozenset[str]:
        """The parameters that the command line supplies: progress."""
        return _SUPPLIED & set(inspect.signature(self.function).parameters)

    @property
    def verdict_words(self) -> tuple[str, ...]:
        """The words that `--fail-on` takes; empty where the result has no verdicts."""
        is_result = isinstance(self.result, type) and issubclass(self.result, Result)
        return self.result.verdict_words if is_result else ()


@functools.cache
def command_at(name: str, path: str) -> Command:
    """The command whose function lies at `package.module:name`."""
    module, _, attribute = path.partition(":")
    function = getattr(importlib.import_module(module), attribute)
    plain = inspect.unwrap(function)
    hints, parsed = declared(plain), docstring_parser.parse(plain.__doc__ or "", docstring_parser.DocstringStyle.GOOGLE)
    described = _described(parsed)
    own: list[Option] = []
    grouped: list[Option] = []
    for parameter in inspect.signature(plain).parameters.values():
        bare = _bare(hints[parameter.name])
        group = bare if isinstance(bare, type) and issubclass(bare, Options) else None
        if parameter.name in _SUPPLIED:
            continue
        if group is not None:
            grouped += _fields(group, parameter.name, getattr(parameter.default, "__dict__", {}))
        else:
            option = _option(parameter.name, hints[parameter.name], parameter.default, described)
            own += [] if option is None else [option]
    return Command(
        name,
        function,
        # The command's own stand first, what it reads before where it writes.
        tuple(sorted([*own, *grouped], key=lambda one: (one.panel != "", not one.positional, one.name == "out"))),
        _sentence(parsed.short_description or ""),
        unwrapped(parsed.long_description or ""),
        tuple(
            " ".join(line.split()) for example in parsed.examples for line in (example.description or "").split("\n\n")
        ),
        hints.get("return"),
    )


def flag_of(name: str) -> str:
    """The flag of a parameter or field: "block_size" is `--block-size`, "k" is `-k`, "set_" is `--set`."""
    bare = name.rstrip("_").replace("_", "-")
    return f"-{bare}" if len(bare) == 1 else f"--{bare}"


def _fields(group: Any, owner: str, defaults: Mapping[str, Any]) -> list[Option]:
    described = _described(docstring_parser.parse(group.__doc__ or "", docstring_parser.DocstringStyle.GOOGLE))
    title = _sentence(re.split("[.;\n]", group.__doc__ or "")[0])
    found = []
    for field in dataclasses.fields(group):
        default = defaults.get(field.name)
        option = _option(field.name, declared(group)[field.name], default, described, title.rstrip("."), owner)
        shared = group.__module__ == "truerank.options"
        found += [] if option is None else [dataclasses.replace(option, rare=option.rare or shared)]
    return found


def _option(
    name: str, hint: Any, default: Any, described: Mapping[str, str], panel: str = "", owner: str = ""
) -> Option | None:
    flag, bounds = _extras(hint)
    if flag.hidden:
        return None
    reads, made = _reading(name, flag.reads or _bare(hint))
    made = _separated if flag.commas else made
    text = described.get(name)
    if not text:
        raise TypeError(f"the docstring does not describe `{name}`")
    limits = f" [{bounds.text()}]" if bounds is not None and bounds.text() else ""
    shown = None if default in (None, (), [], "", False) or default == {} else default
    if isinstance(shown, tuple) and reads is str:
        shown = ",".join(shown)
    return Option(
        name=name,
        flags=(name.upper(),) if flag.positional else tuple(filter(None, (flag.short, flag_of(name)))),
        reads=reads,
        default=shown,
        required=default is _MISSING,
        help=f"{_sentence(text.partition(' In Python ')[0])}{limits}",
        metavar=flag.metavar,
        panel=panel if flag.panel is None else flag.panel,
        owner=owner,
        made=made,
        positional=flag.positional,
        rare=flag.rare,
    )


def _reading(name: str, hint: Any) -> tuple[Any, Callable[[Any], Any]]:
    """What the command line reads for a type, and how it becomes a value of that type."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (typing.Union, types.UnionType):
        kinds = [kind for kind in arguments if kind is not type(None)]
        if len(kinds) == 1:
            return _reading(name, kinds[0])
        if all(get_origin(kind) is Literal or kind is int for kind in kinds):
            return str, lambda text: text if (number := signed_number(str(text))) is None else number
        return (Path if Path in kinds else str), _as_it_is
    if origin in (dict, Mapping) or (isinstance(origin, type) and issubclass(origin, Mapping)):
        return list[str], functools.partial(_pairs, name, arguments[1])
    if origin in (tuple, list) or (isinstance(origin, type) and issubclass(origin, Sequence)):
        return list[_bare(arguments[0])], tuple  # type: ignore[misc]
    return hint, _as_it_is


def _pairs(name: str, kind: Any, texts: Sequence[str]) -> dict[str, Any]:
    """Texts of the form NAME=VALUE as a mapping; values become numbers, or lists of what commas separate."""
    found: dict[str, Any] = {}
    for text in texts:
        key, separator, value = text.partition("=")
        if not (separator and key and value):
            raise OptionError(name, f"'{text}' is not of the form NAME=VALUE", "write NAME=VALUE")
        if kind is float:
            number = decimal_number(value)
            if number is None:
                raise OptionError(name, f"'{value}' in '{text}' is not a number", "write NAME=NUMBER")
            found[key] = number
        else:
            found[key] = value if kind in (str, Any) else tuple(value.split(","))
    return found


def _separated(texts: Sequence[str]) -> tuple[str, ...]:
    """What commas, or several flags, separate."""
    return tuple(part.strip() for text in texts for part in text.split(",") if part.strip())


def _as_it_is(value: Any) -> Any:
    return value


def _extras(hint: Any) -> tuple[Flag, Range | None]:
    """Flag and bounds of an annotation, wherever in it they stand."""
    flag, bounds = Flag(), None
    if get_origin(hint) is Annotated:
        for extra in hint.__metadata__:
            flag = extra if isinstance(extra, Flag) else flag
            bounds = extra if isinstance(extra, Range) else bounds
    for part in get_args(hint) if get_origin(hint) in (Annotated, typing.Union, types.UnionType) else ():
        inner, limits = _extras(part)
        flag = inner if flag == Flag() else flag
        bounds = bounds or limits
    return flag, bounds


def _bare(hint: Any) -> Any:
    """An annotation without its extras."""
    if get_origin(hint) is Annotated:
        return _bare(get_args(hint)[0])
    if get_origin(hint) in (typing.Union, types.UnionType):
        return typing.Union[tuple(_bare(part) for part in get_args(hint))]  # noqa: UP007
    return hint


def _described(parsed: Any) -> dict[str, str]:
    """What a docstring says of each name; "low, high: bounds" says it of both."""
    return {
        name.strip(): " ".join((one.description or "").split())
        for one in parsed.params
        for name in one.arg_name.split(",")
    }


def _sentence(text: str) -> str:
    text = " ".join(text.split()).rstrip(".").replace("`", "")
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def unwrapped(text: str) -> str:
    """Paragraphs, each on one line."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


def in_flags(error: TruerankError, command: Command | None = None, program: str = "truerank") -> TruerankError:
    """The error with flags in place of the names of parameters."""
    flags = {} if command is None else {option.name: option.flags[-1] for option in command.options}

    def shown(match: re.Match[str]) -> str:
        return flags.get(match[1], flag_of(match[1]))

    fault, remedy = (_QUOTED.sub(shown, text) for text in (error.fault, error.remedy))
    where = flags.get(error.option, flag_of(error.option)) if isinstance(error, OptionError) else error.where
    # Every error has a place; one of values that several inputs share has that of the command.
    where = where or (None if command is None else f"{program} {command.name}")
    changed = TruerankError(fault, remedy, where=where, line=error.line)
    changed.details = error.details
    return changed


def shown_default(default: Any) -> str:
    """A default as the help shows it."""
    return ",".join(map(str, default)) if isinstance(default, tuple) else str(default)


def output_options(command: Command) -> tuple[Option, ...]:
    """How results are shown and what fails: options that every command with such a result has."""

    def option(name: str, flag: str, reads: Any, text: str, default: Any = None, metavar: str = "") -> Option:
        flags = ("--verbose", "-v") if name == "verbose" else (flag,)
        return Option(name, flags, reads, default, False, text, metavar, _OUTPUT, "", str)

    shown = [
        option("format", "--format", Format, "How tables are printed.", "text"),
        option("as_json", "--json", bool, "Print one JSON object on stdout and nothing else."),
    ]
    if any(declared.name == "out" for declared in command.options):
        shown.append(option("overwrite", "--overwrite", bool, "Replace what others wrote where the output goes."))
    if getattr(command.result, "has_details", False):
        shown.append(option("verbose", "-v", bool, "Print all questions and figures, not only what decides."))
    if command.verdict_words:
        choices = ", ".join(word.lower() for word in command.verdict_words)
        text = f"Exit with 1 if there is such a verdict, or a worse one: {choices}; a level: bad, doubt; or never."
        shown.append(option("fail_on", "--fail-on", str, text, command.result.fails_on, "VERDICT"))
    return tuple(shown)
