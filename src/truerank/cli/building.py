"""Builds the command line from the declarations of commands, runs a command and prints its result."""

from __future__ import annotations

import functools
import inspect
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Final, get_args

from cyclopts import App, Group, Parameter
from cyclopts.completion import ShellDetectionError

from truerank.cli import streams
from truerank.cli.commands import TRUERANK, Program
from truerank.cli.declarations import Command, Option, command_at, in_flags, output_options, shown_default
from truerank.cli.helps import Help, help_of, stored_help, summary_of
from truerank.cli.settings import project_settings
from truerank.core.result import Format, Result, summary
from truerank.core.verdict import ORDER
from truerank.errors import InputError, OptionError, TruerankError, TwoReadingsError
from truerank.loading import decimal_number, signed_number
from truerank.options import overwrites
from truerank.version import __version__
from truerank.work.progress import terminal_progress

_OWN: Final = Group("Options", sort_key=0)
#: Characters of a line of an example, so that it fits into 80 with the sign that it goes on.
_WIDTH: Final = 76
#: Options from which on a command shows the rare ones with `--help-all` only.
_MANY: Final = 20
#: Words from which on repeated options are given to cyclopts as one, and what stands between their values then: no
#: argument of a process can hold it.
_FEW_WORDS: Final = 100
_BETWEEN: Final = "\0"
#: Characters of a value in a message.
_LONGEST: Final = 40


def app_for(words: Sequence[str], program: Program = TRUERANK, *, every: bool = False, rare: bool = False) -> App:
    """The command line for these words: the named command is built, of the others only the first sentence is read.

    Args:
        words: of the command line.
        program: whose commands there are.
        every: build all commands.
        rare: show rare options, too.
    """
    wanted = program.command(words)
    asks = not {"--help", "-h"}.isdisjoint(words)
    root = _app(program.name, program.sentence)
    sentences = {group: text for named in program.panels.values() for group, text in named.items()}
    groups: dict[str, App] = {}
    for place, (name, path) in enumerate(program.commands.items()):
        group, _, last = name.rpartition(" ")
        if group and group not in groups:
            groups[group] = _app(group, sentences[group], place)
            root.command(groups[group], name=group)
        parent = groups[group] if group else root
        if every or name == wanted:
            is_stored = asks and not every and program is TRUERANK
            known = stored_help(name) if is_stored else help_of(command_at(name, path))
            hidden = 0 if rare or len(known.options) <= _MANY else sum(map(_is_hidden, known.options))
            more = f"{hidden} more options: {program.name} {name} --help-all" if hidden else ""
            epilogue = "\n\n".join(filter(None, (more, _examples(known.examples))))
            runner = _signed(_runner(program.name, name, path, known), known, all_shown=not hidden)
            shown = {"help": "\n\n".join(filter(None, (known.summary, known.text))), "help_epilogue": epilogue}
            parent.command(runner, name=last, sort_key=place, **shown)
        elif wanted is None:
            parent.command(_stub(), name=last, sort_key=place, help=summary_of(name, program))
    return root


def called(words: Sequence[str], program: Program = TRUERANK, *, rare: bool = False) -> Any:
    """Calls the command that the words name."""
    name = program.command(words)
    several: dict[str, str] = {}
    if name is not None and len(words) > _FEW_WORDS:
        options = (option for option in command_at(name, program.commands[name]).options if option.reads == list[str])
        several = {flag: option.name for option in options for flag in option.flags}
    return app_for(words, program, rare=rare)(_joined(words, several))


def _joined(words: Sequence[str], several: Mapping[str, str]) -> list[str]:
    """The words with the values of options that may be repeated in one: cyclopts' time grows with the square of them.

    Args:
        several: the names of such options by their flags.
    """
    options = words[: words.index("--")] if "--" in words else words
    kept: list[list[str]] = []
    places: dict[str, list[str]] = {}
    following = iter(options)
    for word in following:
        flag, equals, value = word.partition("=")
        name = several.get(flag, "")
        values = [value] if equals else [*islice(following, 1)] if name else []
        if not name or not values or values[0].startswith("-"):
            # What begins with a hyphen is cyclopts' to judge; later values stay behind it.
            kept += [[word], *([] if equals else [[value] for value in values])]
            places.pop(name, None)
        elif name in places:
            places[name] += values
        else:
            places[name] = values
            kept += [[flag], values]
    return [*map(_BETWEEN.join, kept), *words[len(options) :]]


def _separate(_: Any, tokens: Sequence[Any]) -> list[str]:
    """The values that `_joined` made one."""
    return [value for token in tokens for value in token.value.split(_BETWEEN)]


def install_completion(words: Sequence[str], program: Program = TRUERANK) -> None:
    """Sets up completion for a shell, and says where."""
    shells: Final = ("bash", "zsh", "fish", "powershell")
    shell: Any = words[0] if words else None
    remedy = f"write --install-completion and one of {', '.join(shells)}"
    if len(words) > 1 or shell not in (None, *shells):
        raise InputError(f"no shell '{' '.join(words)}'", remedy, where="--install-completion")
    try:
        place = app_for((), program, every=True).install_completion(shell=shell)
    except ShellDetectionError as error:
        raise InputError("the shell is not recognised", remedy, where="--install-completion") from error
    streams.put(sys.stderr, f"completion is in {place}; open a new shell to use it\n")


def _app(name: str, text: str, place: int | None = None) -> App:
    return App(
        name=name,
        sort_key=place,
        help=text,
        # Not Markdown: its parser would take a tenth of the start of every command.
        help_format="plaintext",
        version=f"truerank {__version__}",
        help_on_error=False,
        exit_on_error=False,
        print_error=False,
        suppress_keyboard_interrupt=False,
        result_action="return_value",
    )


def _stub() -> Callable[[], None]:
    def not_built() -> None:
        """Stands in lists of commands only."""

    return not_built


def _examples(examples: Sequence[str]) -> str:
    """Command lines for the end of the help; a long one goes on below, as a shell takes it."""
    lines = [
        " \\\n".join(
            textwrap.wrap(
                line,
                _WIDTH,
                initial_indent="  ",
                subsequent_indent="      ",
                break_long_words=False,
                break_on_hyphens=False,
            )
        )
        for line in examples
    ]
    return "\n\n".join(["Examples:", *lines]) if lines else ""


def _is_hidden(option: Option) -> bool:
    return option.rare and not option.required


def _runner(program: str, name: str, path: str, known: Help) -> Callable[..., int]:
    """The function behind a command: values in, exit code out."""

    positional = [option.name for option in known.options if option.positional]

    def run(*texts: Any, **values: Any) -> int:
        """Calls the function with what the command line read, and prints its result."""
        command = command_at(name, path)
        output = output_options(command)
        values |= dict(zip(positional, texts, strict=False))
        given = {name: value for name, value in values.items() if value is not None}
        settings, place = project_settings(command.name, (*command.options, *output), Path())
        if place is not None:
            streams.put(sys.stderr, f"settings from {place}\n")
            if "format" in given:
                settings.pop("as_json", None)
            # A flag that was not given is False.
            given |= {name: value for name, value in settings.items() if given.get(name, False) is False}
        shown: Format = given.pop("format", "text")
        form: Format = "json" if given.pop("as_json", False) else shown
        fail_on = _fail_on(given.pop("fail_on", getattr(command.result, "fails_on", "never")), command.verdict_words)
        overwrite, verbose = given.pop("overwrite", False), given.pop("verbose", False)
        before = overwrites.set(overwrite)
        try:
            _check_output(command, given)
            with terminal_progress(False if "view" in command.takes else None) as progress:
                every = {"progress": progress, "view": "terminal"}
                supplied = {name: every[name] for name in command.takes}
                result = _answered(command, given, supplied)
        except OSError as error:
            error.filename = error.filename or f"{program} {command.name}"
            raise
        except SystemExit as ended:
            raise RuntimeError(f"code that it called ended the process (exit {ended.code})") from ended
        except TruerankError as error:
            if isinstance(error, OptionError) and _is_computed(error, given):
                raise RuntimeError(f"a number of truerank's own is out of its bounds ({error})") from error
            raise in_flags(error, command, program) from error
        finally:
            overwrites.reset(before)
        to_stdout = given.get("out") == Path("-")
        return _printed(result, form, fail_on, command, to_stdout=to_stdout, verbose=verbose)

    return run


def _signed(run: Callable[..., int], known: Help, *, all_shown: bool) -> Callable[..., int]:
    """The function with the options of a command as its parameters."""
    panels = list(dict.fromkeys(option.panel for option in (*known.options, *known.output) if option.panel))
    parameters = [_parameter(option, panels, all_shown or not _is_hidden(option)) for option in known.options]
    parameters.sort(key=lambda parameter: parameter.kind)
    parameters += [_parameter(option, panels, shown=True) for option in known.output]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _answered(command: Command, given: dict[str, Any], supplied: Mapping[str, Any]) -> Any:
    """The result of a command; where a table can be read in two ways, a terminal is asked which one is meant."""
    while True:
        try:
            return command.function(**command.arguments(given), **supplied)
        except TwoReadingsError as error:
            takes_columns = any(option.name == "columns" for option in command.options)
            if not (takes_columns and sys.stdin.isatty() and sys.stderr.isatty()):
                raise
            given["columns"] = _chosen(error)


def _chosen(error: TwoReadingsError) -> str:
    lines = [
        *error.details,
        f"{error.where}: {error.fault}.",
        *(f"  {n}  {one}" for n, one in enumerate(error.choices, 1)),
    ]
    streams.put(sys.stderr, "\n".join(lines) + "\n")
    while True:
        streams.put(sys.stderr, f"Which one is it? 1 to {len(error.choices)}, or Enter to stop: ")
        answer = sys.stdin.readline().strip()
        if not answer:
            raise error
        if answer.isdecimal() and 1 <= int(answer) <= len(error.choices):
            return error.choices[int(answer) - 1]


def _is_computed(error: OptionError, given: Mapping[str, Any]) -> bool:
    """Whether a number is out of the bounds of an option that the user did not give, not even inside another one."""
    named = error.option in given or any(f"{error.option}=" in str(value) for value in given.values())
    return error.value is not None and not named


def _check_output(command: Command, given: Mapping[str, Any]) -> None:
    """Looks at the output before any work; the run looks again, and knows more of what is read."""
    from truerank.work.runs import check_output

    option = next((one for one in command.options if one.name == "out" and one.reads is Path), None)
    file = option is not None and option.metavar == "FILE"
    # Some commands make up the name of a file in a folder; the others refuse it when they run.
    if isinstance(given.get("out"), Path) and not (file and given["out"].is_dir()):
        every = (value for name, value in given.items() if not name.startswith("out"))
        several = (one for value in every for one in (value if isinstance(value, list) else [value]))
        sources = [str(one) for one in several if isinstance(one, str | Path)]
        check_output(command.name, given["out"], file=file, sources=sources)


def _printed(result: Result, form: Format, fail_on: str, command: Command, *, to_stdout: bool, verbose: bool) -> int:
    words, found = command.verdict_words, summary(result).whole() if verbose else summary(result)
    found = replace(found, json={"version": __version__, "command": command.name, **found.json})
    # The output itself is on stdout where `--out -` says so.
    streams.put(sys.stderr if to_stdout else sys.stdout, found.show(form), form)
    # Where the files are: on a terminal apart from the result, without one at the end of the text.
    stream = sys.stderr if sys.stderr.isatty() or to_stdout else sys.stdout if form == "text" else None
    if stream is not None:
        streams.put(stream, "".join(f"{note}\n" for note in found.notes))
    if found.fault is not None:
        raise found.fault
    last = result.go_on()
    if last and sys.stderr.isatty():
        streams.put(sys.stderr, f"{last}\n")
    levels = ORDER[ORDER.index(fail_on) :] if fail_on in ORDER and fail_on not in words else ()
    failing = words[: words.index(fail_on) + 1] if fail_on in words else ()
    if any(verdict.word in failing or verdict.level in levels for verdict in found.verdicts):
        return 1
    unknown = fail_on != "never" and any(verdict.level == "unknown" for verdict in found.verdicts)
    return result.unknown_code if unknown else 0


def _fail_on(given: str, words: Sequence[str]) -> str:
    """The word or level of a verdict that `--fail-on` names, whatever its case; "never" otherwise."""
    known = (*words, *(level for level in ORDER[:0:-1] if level.upper() not in words), "never")
    found = next((word for word in known if word.lower() == given.lower()), None)
    if words and found is None:
        choices = ", ".join(word.lower() for word in known)
        raise InputError(f"'{given}' is not one of the choices", f"choose one of {choices}", where="--fail-on")
    return found or "never"


def _parameter(option: Option, panels: Sequence[str], shown: bool) -> inspect.Parameter:
    kind = inspect.Parameter.POSITIONAL_ONLY if option.positional else inspect.Parameter.KEYWORD_ONLY
    described: dict[str, Any] = {
        "help": option.help,
        "group": Group(option.panel, sort_key=panels.index(option.panel) + 1) if option.panel else _OWN,
        "negative": (),
        "required": option.required,
        "show": shown,
        "show_default": (lambda value: shown_default(option.default)) if option.default is not None else False,
    }
    if not option.positional:
        described["name"] = option.flags
    if option.metavar:
        described["metavar"] = option.metavar
    if option.reads is Path:
        described["converter"] = _path
    elif option.reads == list[str]:
        described["converter"] = _separate
    elif option.reads in (int, float, list[int]):
        described["converter"] = functools.partial(_numbers, option)
    # What is left out stays None: the default is the function's own.
    default: Any = inspect.Parameter.empty if option.required else False if option.reads is bool else None
    plain: Any = option.reads if option.required or option.reads is bool else option.reads | None
    annotation: Any = Annotated[plain, Parameter(**described)]
    return inspect.Parameter(option.name, kind, default=default, annotation=annotation)


def _path(_: Any, tokens: Sequence[Any]) -> Path:
    """A path as it was given; an empty one would be the folder in which the command runs."""
    if not tokens[-1].value:
        raise ValueError("an empty path")
    return Path(tokens[-1].value)


def _numbers(option: Option, _: Any, tokens: Sequence[Any]) -> Any:
    """The number of an option, or a list of them: what only looks like one is refused, never rounded."""
    whole = option.reads is not float
    found = []
    for token in tokens:
        number = signed_number(token.value) if whole else decimal_number(token.value)
        if number is None:
            shown = token.value if len(token.value) <= _LONGEST else f"{token.value[:_LONGEST]}…"
            kind, remedy = ("whole number", "decimal digits, such as 10") if whole else ("number", "one such as 0.5")
            raise InputError(f"'{shown}' is not a {kind}", f"write {remedy}", where=option.flags[-1])
        found.append(number)
    return found if get_args(option.reads) else found[-1]
