"""The `truerank` command: its groups, and how it ends."""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated, Any, Final

import typer

import truerank
from truerank.cli.loading import Entry, LazyGroup
from truerank.errors import TruerankError

__all__ = ["COMMANDS", "app", "main"]

#: Typer brings its own copy of Click in some versions and depends on it in others: its base of all usage errors.
_ClickError: type[Exception] = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")

#: Exit codes: success; what the user can mend; a fault of ours; interrupted.
_OK, _USAGE, _INTERNAL, _INTERRUPTED = 0, 2, 70, 130


#: In the order of `truerank --help`.
COMMANDS: Final = (
    Entry("leakage", "leakage", "app", "Are my test queries in my training data?"),
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
    Entry("track", "track", "app", "What do the runs of a track show?"),
    Entry("pool", "pool", "app", "Do my judgments rank systems fairly, also new ones?"),
    Entry("demo", "demo", "demo", "Audits the embedded sample, where the truth is known; needs no network."),
    Entry(
        "evaluate",
        "evaluate",
        "evaluate",
        "Scores runs against relevance judgments, under policies that are printed with the scores.",
    ),
    Entry(
        "compare",
        "compare",
        "compare",
        "Compares runs with a baseline or with each other: differences, tests, and what survives the correction.",
    ),
    Entry("index", "lexical", "index", "Builds an index of a collection of documents."),
    Entry("search", "lexical", "search", "Retrieves the best documents for each topic and writes a TREC run."),
    Entry("tune", "lexical", "tune", "Chooses a model's parameters by cross-validation over the topics."),
    Entry("rerank", "rerank", "rerank", "Orders the first documents of each topic of a run by a ranker."),
    Entry("train", "train", "train", "Trains a ranker: one epoch by a named recipe."),
    Entry(
        "instances", "instances", "app", "Training sets with known faults: built, proven, written for other programs."
    ),
    Entry("experiment", "experiment", "app", "Grids of trainings on sets that differ only in a fault."),
)


class _Commands(LazyGroup):
    entries = COMMANDS


app = typer.Typer(
    name="truerank",
    cls=_Commands,
    help="Finds out whether a retrieval result can be believed.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"truerank {truerank.__version__}\n")
        raise typer.Exit


@app.callback()
def _options(
    debug: Annotated[bool, typer.Option("--debug", help="Show where in the code an error arose.")] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and end.")
    ] = False,
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
        outcome: Any = app(args=words, standalone_mode=False)
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


def _failed(message: str, debug: bool, code: int) -> int:
    if debug:
        traceback.print_exc()
    sys.stderr.write(" ".join(message.split()) + "\n")
    return code
