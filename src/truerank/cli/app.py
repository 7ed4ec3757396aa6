"""The `truerank` command: its groups, and how it ends."""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated, Any, Final

import typer

from truerank.cli.loading import Entry, LazyGroup
from truerank.errors import InputError, OptionError, TruerankError

__all__ = ["NOT_CARRIED", "app", "main"]

#: Typer brings its own copy of Click in some versions and depends on it in others: its base of all usage errors.
_ClickError: type[Exception] = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")

#: Exit codes: success; what the user can mend; a fault of ours; interrupted.
_OK, _USAGE, _INTERNAL, _INTERRUPTED = 0, 2, 70, 130


#: Groups that still declare their options by hand, in the order of `truerank --help`; each one that moves to
#: `commands.COMMANDS` leaves this list.
NOT_CARRIED: Final = (
    Entry(
        "transfer",
        "transfer",
        "app",
        "Are my relevance judgments still true for the new version of the documents?",
    ),
    Entry(
        "survivorship",
        "survivorship",
        "app",
        "Which queries did my annotation throw away, and what does that do to my scores and models?",
    ),
    Entry("judge", "judge", "app", "People, or models, judge what the audits propose."),
    Entry("pool", "pool", "app", "Do my judgments rank systems fairly, also new ones?"),
    Entry(
        "instances", "instances", "app", "Training sets with known faults: built, proven, written for other programs."
    ),
    Entry("experiment", "experiment", "app", "Grids of trainings on sets that differ only in a fault."),
)


class _Commands(LazyGroup):
    entries = NOT_CARRIED


app = typer.Typer(
    name="truerank",
    cls=_Commands,
    help="Finds out whether a retrieval result can be believed.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
)


@app.callback()
def _options(
    debug: Annotated[bool, typer.Option("--debug", help="Show where in the code an error arose.")] = False,
) -> None:
    """Finds out whether a retrieval result can be believed."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command line and ends the process.

    Exit codes: 0; 1 where `--fail-on` says so; 2 for what the user can mend, with one line that says what;
    130 when interrupted; 70 for a fault of truerank itself.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words
    words = [word for word in words if word != "--debug"]
    code = _run(words, debug)
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.flush()
    sys.exit(code)


def _run(words: list[str], debug: bool) -> int:
    try:
        outcome = _called(words)
    except TruerankError as error:
        return _failed(str(error), debug, _USAGE)
    except (KeyboardInterrupt, typer.Abort):
        outcome = _INTERRUPTED
    except _ClickError as error:
        error.show()  # type: ignore[attr-defined]
        return _USAGE
    except BrokenPipeError:
        # The reader of our output has gone (`| head`): nothing is wrong, and nothing more can be said to it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _OK
    except OSError as error:
        place = error.filename or "a file"
        return _failed(
            f"{place}: {error.strerror or error}. check the path, its permissions and the free space.", debug, _USAGE
        )
    except Exception as error:
        return _failed(
            f"truerank failed: {type(error).__name__}: {error}. run it again with --debug and report what it prints.",
            debug,
            _INTERNAL,
        )
    if outcome == _INTERRUPTED:
        sys.stderr.write("interrupted; the same command continues where it stopped\n")
    return outcome if isinstance(outcome, int) else _OK


def _called(words: list[str]) -> Any:
    """Calls what the words name: a command that is built from its function, or a group that is not carried yet."""
    if words and words[0] in {entry.name for entry in NOT_CARRIED}:
        return _not_carried(words)
    from cyclopts import CycloptsError

    from truerank.cli.building import app_for, carried

    try:
        return app_for(words, [(entry.name, entry.help) for entry in NOT_CARRIED])(words)
    except CycloptsError as error:
        name = carried(words)
        place = f"truerank {name}" if name else "truerank"
        fault = " ".join(str(error).split()).rstrip(".?")
        raise InputError(fault, f"see '{place} --help'", where=place) from error


def _not_carried(words: list[str]) -> Any:
    try:
        return app(args=words, standalone_mode=False)
    except OptionError as error:
        # A part of a command that is carried already names options as in Python.
        from truerank.cli.declarations import in_flags

        raise in_flags(error) from error


def _failed(message: str, debug: bool, code: int) -> int:
    if debug:
        traceback.print_exc()
    sys.stderr.write(" ".join(message.split()) + "\n")
    return code
