"""The `truerank` command: its groups, and how it ends."""

from __future__ import annotations

import errno
import gc
import os
import re
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Sequence
from typing import Any

from truerank.cli import streams
from truerank.cli.commands import TRUERANK, Program
from truerank.errors import InputError, TruerankError

if sys.platform != "win32":
    import resource

#: Exit codes: success; what the user can mend; a fault of ours; too little memory; interrupted; ended by SIGTERM.
_OK, _USAGE, _INTERNAL, _MEMORY, _INTERRUPTED, _TERMINATED = 0, 2, 70, 71, 130, 143
_HALVES = re.compile(r"[\ud800-\udfff]")
_OWN_WORDS = (
    (re.compile(r'^Command ".*?" parameter (\S+) requires an argument'), r"\1 is missing, or has no value"),
    (re.compile(r"^Unused Tokens: \[(.*)\]"), r"no option takes \1"),
)
_NO_MEMORY = "truerank: there is not enough memory. raise the limit (ulimit -v), or use fewer --workers."
#: Bytes of addresses that the libraries take before any work; with less they end the process, or hang.
_ADDRESSES = 3 << 29


def main(arguments: Sequence[str] | None = None, program: Program = TRUERANK) -> None:
    """Runs a command line and ends the process.

    Exit codes: 0; 1 where `--fail-on` says so; 2 for what the user can mend, with one line that says what;
    70 for a fault of truerank itself; 71 where the memory does not suffice; 130 when interrupted, 143 by SIGTERM.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words
    words = [word for word in words if word != "--debug"]
    # NumPy reads it once: threads of OpenBLAS that wait for work would spin for longer than a small command takes.
    os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "16")
    # Modules are objects that stay: looking for garbage among them while they load finds none.
    gc.set_threshold(200_000)
    streams.prepare()
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, _terminated)
    with warnings.catch_warnings():
        warnings.showwarning = _warned
        code = _refused(words) or _run(words, program, debug)
    streams.end()
    sys.exit(code)


def _refused(words: Sequence[str]) -> int:
    """Says why no command can run here, and with what the process ends then; otherwise 0."""
    if sys.flags.optimize > 1:
        fault = "truerank: the options of commands are made of docstrings, which are not here"
        return _failed(f"{fault}. run it without -OO, and without PYTHONOPTIMIZE=2.", _USAGE)
    limit = _ADDRESSES if sys.platform == "win32" else resource.getrlimit(resource.RLIMIT_AS)[0]
    if 0 <= limit < _ADDRESSES:
        fault = f"{limit >> 20:,} MiB of addresses are too few to load its libraries"
        return _failed(f"truerank: {fault}. raise the limit to 4 GiB at least (ulimit -v).", _MEMORY)
    wrong = next((word for word in words if not word.isascii() and _HALVES.search(word)), None)
    if wrong is not None:
        remedy = "rename the file in UTF-8, or set PYTHONUTF8=1 where the locale is not UTF-8"
        return _failed(f"truerank: '{wrong}' is not UTF-8 text. {remedy}.", _USAGE)
    return 0


def _terminated(*_: Any) -> None:
    raise KeyboardInterrupt(signal.SIGTERM)


def _warned(message: Warning | str, *_: Any, **__: Any) -> None:
    """A warning of a library: one line, which may quote the input."""
    streams.put(sys.stderr, " ".join(f"warning: {message}".split()) + "\n")


def _run(words: list[str], program: Program, debug: bool) -> int:
    try:
        outcome = _called(words, program)
    except TruerankError as error:
        return _failed(str(error), _USAGE, debug, error.details)
    except KeyboardInterrupt as error:
        outcome = _TERMINATED if error.args else _INTERRUPTED
    except OSError as error:
        if error.errno == errno.ENOMEM:
            return _failed(_NO_MEMORY, _MEMORY, debug)
        # Those of commands name a place, so that what is left met the help.
        place = error.filename or streams.STDOUT
        if isinstance(error, BrokenPipeError) and place == streams.STDOUT:
            # The reader of our output has gone (`| head`): nothing is wrong, and nothing more can be said to it.
            return _OK
        # Some libraries give a text without the system's number.
        fault = error.strerror or ", ".join(str(part) for part in error.args if part is not None) or "cannot be used"
        return _failed(f"{place}: {fault}. check the path, its permissions and the free space.", _USAGE, debug)
    except MemoryError:
        return _failed(_NO_MEMORY, _MEMORY, debug)
    except SystemExit as ended:
        # The help met a reader that has gone. What commands call cannot end the process.
        return _OK if isinstance(ended.__context__, BrokenPipeError) else int(ended.code or 0)
    except BaseException as error:  # Rust code ends in an exception that is no Exception
        report = "run it again with --debug and report what it prints"
        return _failed(f"truerank failed: {type(error).__name__}: {error}. {report}.", _INTERNAL, debug)
    if outcome in (_INTERRUPTED, _TERMINATED):
        kept = any(word.partition("=")[0] == "--out" for word in words)
        streams.put(sys.stderr, f"interrupted{'; the same command continues where it stopped' if kept else ''}\n")
    return outcome if isinstance(outcome, int) else _OK


def _called(words: list[str], program: Program) -> Any:
    """Calls the command that the words name."""
    if words in ([], ["-h"], ["--help"], ["--help-all"]):
        streams.put(sys.stdout, program.help(every=words == ["--help-all"]))
        return _OK
    from cyclopts import CycloptsError

    from truerank.cli.building import called, install_completion

    if words[:1] == ["--install-completion"]:
        return install_completion(words[1:], program)
    rare = "--help-all" in words
    words = ["--help" if word == "--help-all" else word for word in words]
    try:
        return called(words, program, rare=rare)
    except CycloptsError as error:
        name = program.command(words)
        place = f"{program.name} {name}" if name else program.name
        fault = _in_our_words(" ".join(str(error).split()))
        raise InputError(fault, f"see '{place} --help'", where=place) from error


def _in_our_words(fault: str) -> str:
    """What cyclopts says, where that is not a sentence for a user."""
    if fault.endswith("..."):
        # A list of commands that breaks off would look like all of them.
        fault = fault.partition(" Available commands:")[0]
    for pattern, words in _OWN_WORDS:
        fault = pattern.sub(words, fault)
    return fault.rstrip(".")


def _failed(message: str, code: int, debug: bool = False, details: tuple[str, ...] = ()) -> int:
    if debug:
        streams.put(sys.stderr, traceback.format_exc())
    streams.put(sys.stderr, "\n".join((" ".join(message.split()), *details)) + "\n")
    return code
