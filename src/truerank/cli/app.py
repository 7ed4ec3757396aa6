"""The `truerank` command: its groups, and how it ends."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import traceback
from collections.abc import Sequence
from typing import Any

from truerank.errors import InputError, ShardFinishedError, TruerankError
from truerank.text.printable import printable

#: Exit codes: success; what the user can mend; a fault of ours; interrupted.
_OK, _USAGE, _INTERNAL, _INTERRUPTED = 0, 2, 70, 130
_OWN_WORDS = (
    (re.compile(r'^Command ".*?" parameter (\S+) requires an argument'), r"\1 is missing, or has no value"),
    (re.compile(r"^Unused Tokens: \[(.*)\]"), r"no option takes \1"),
)


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
    except ShardFinishedError as finished:
        sys.stderr.write(printable(f"{finished}\n"))
        return _OK
    except TruerankError as error:
        return _failed(str(error), debug, _USAGE)
    except KeyboardInterrupt:
        outcome = _INTERRUPTED
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
    """Calls the command that the words name."""
    from cyclopts import CycloptsError

    from truerank.cli.building import app_for, carried, install_completion

    if words[:1] == ["--install-completion"]:
        return install_completion(words[1:])
    try:
        return app_for(words)(words)
    except CycloptsError as error:
        name = carried(words)
        place = f"truerank {name}" if name else "truerank"
        fault = _in_our_words(" ".join(str(error).split()))
        if name and fault.startswith("Unknown option: --engine"):
            remedy = "the guide 'Large data' names the commands that run in shards or on a cluster"
            raise InputError("works on one machine and has no --engine", remedy, where=place) from error
        raise InputError(fault, f"see '{place} --help'", where=place) from error


def _in_our_words(fault: str) -> str:
    """What cyclopts says, where that is no sentence for a user."""
    if fault.endswith("..."):
        # A list of commands that breaks off would look like all of them.
        fault = fault.partition(" Available commands:")[0]
    for pattern, words in _OWN_WORDS:
        fault = pattern.sub(words, fault)
    return fault.rstrip(".")


def _failed(message: str, debug: bool, code: int) -> int:
    if debug:
        traceback.print_exc()
    sys.stderr.write(printable(" ".join(message.split())) + "\n")
    return code
