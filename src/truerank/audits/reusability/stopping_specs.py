"""Stopping rules by name, as the command line gives them, and rules of the user's own in Python."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from truerank.audits.reusability.stopping import (
    AS_THE_TRACK,
    ConstantBudget,
    Decision,
    Keeping,
    OriginalSize,
    StoppingRule,
    TopicProgress,
    TrackProcedure,
    heuristic,
)
from truerank.errors import InputError, OptionError
from truerank.loading import decimal_number, signed_number, whole_number
from truerank.options import value_of
from truerank.plugins import Plugins

#: Rules of other packages: each is called with the options NAME=VALUE of the command line as keywords, and returns a
#: `StoppingRule`.
STOPPING_RULES: Final = Plugins("truerank.stopping_rules", "stopping rule", ("__call__",))

_REMEDY: Final = "one of track, heuristic, budget:N, original, MODULE:FUNCTION, FILE.py:FUNCTION"
_NUMBERS: Final[Mapping[str, Callable[[str], Any]]] = {
    "increment": decimal_number, "bound": decimal_number, "cap": signed_number, "min_relevant": signed_number,
    "max_ratio": decimal_number,
}  # fmt: skip


@dataclass(frozen=True)
class FunctionRule:
    """A rule of the user's own: a function from a `TopicProgress` to what is to be done.

    It answers a `Decision`; a whole number, for "judge on until there are so many"; or "stop" or "drop".

    Attributes:
        name: for tables.
        function: called with how far the topic is; first before anything is judged.
        keeping: which of the topics that it ends are kept.
    """

    name: str
    function: Callable[[TopicProgress], Any]
    keeping: Keeping = AS_THE_TRACK

    def stop(self, progress: TopicProgress) -> Decision:
        """What the function answers, as a decision.

        Raises:
            InputError: it fails, or answers something else.
        """
        place = f"at topic {progress.topic_id}, {progress.judged:,} judgments"
        try:
            answer = self.function(progress)
        except Exception as error:
            fault = f"the rule failed {place} ({type(error).__name__}: {error})"
            raise InputError(fault, "correct it", where=self.name) from error
        if isinstance(answer, Decision) and answer.action in ("stop", "drop", "continue"):
            return answer
        if isinstance(answer, int) and not isinstance(answer, bool):
            return Decision.go_on(answer)
        if answer == "stop":
            return Decision.stop("own rule")
        if answer == "drop":
            return Decision.drop("own rule")
        raise InputError(
            f"the rule answered {str(answer)[:60]!r} {place}",
            "let it answer a Decision, a number of judgments, 'stop' or 'drop'",
            where=self.name,
        )


def load_rule(
    spec: str, *, sizes: Mapping[str, int] | None = None, topics: frozenset[str] | None = None
) -> StoppingRule:
    """A rule by its name.

    `track` and `heuristic` take options: `track:increment=0.5,bound=0.6,reached=yes`, `heuristic:cap=1000`; all but
    `original` take `min_relevant=3` and `max_ratio=0.6` (or `none`). `budget:400` judges 400 documents of every topic.
    A rule of one's own is `module:function` or `file.py:function`; an object with a method `stop` will do too.

    Args:
        spec: the name with its options.
        sizes: judgments by topic, for `original`.
        topics: the official evaluation set, for `original`.

    Raises:
        InputError: no such rule, option or function; `original` without sizes.
    """
    name, _, rest = spec.partition(":")
    if name == "original":
        if sizes is None:
            raise OptionError("stopping", "the rule 'original' needs official judgments", "give them")
        return OriginalSize(sizes, topics)
    if name in ("track", "heuristic"):
        options = _options(rest)
        return heuristic(**options) if name == "heuristic" else TrackProcedure(**options)
    if name == "budget":
        number, _, more = rest.partition(",")
        judgments = whole_number(number)
        if judgments is None:
            raise OptionError("stopping", f"'{spec[:80]}' names no number of judgments", "write budget:400")
        found = ConstantBudget(judgments)
        keeping = _options(more).get("keeping")
        return found if keeping is None else dataclasses.replace(found, keeping=keeping)
    if name in STOPPING_RULES:
        return _registered(name, rest)
    if rest:
        return _own(spec)
    raise OptionError("stopping", f"no stopping rule '{spec}'", _REMEDY)


def _registered(name: str, rest: str) -> StoppingRule:
    """A rule of another package; its options are numbers where they read as such."""
    make, given = STOPPING_RULES.load(name), {}
    for part in filter(None, rest.split(",")):
        option, equals, text = part.partition("=")
        if not equals:
            raise OptionError("stopping", f"'{part}' is no option of a rule", "write NAME=VALUE")
        given[option] = value_of(text)
    try:
        rule = make(**given)
    except (TypeError, ValueError) as error:
        raise OptionError("stopping", f"the rule '{name}' refuses its options ({error})", "correct them") from error
    if isinstance(rule, StoppingRule):
        return rule
    raise OptionError("stopping", f"the rule '{name}' has no method stop", "correct the package that has it")


def _options(text: str) -> dict[str, Any]:
    """Options NAME=VALUE, joined by commas, as keywords of `TrackProcedure`."""
    given: dict[str, Any] = {}
    for part in filter(None, text.split(",")):
        name, _, value = part.partition("=")
        if name == "reached" and value in ("yes", "no"):
            given[name] = value == "yes"
            continue
        given[name] = _NUMBERS[name](value) if name in _NUMBERS else None
        if given[name] is None and not (name in ("cap", "max_ratio") and value == "none"):
            known = ", ".join((*_NUMBERS, "reached (yes or no)"))
            raise OptionError("stopping", f"'{part}' is no option of a rule", f"options are {known}")
    kept = {name: given.pop(name) for name in ("min_relevant", "max_ratio") if name in given}
    return {**given, "keeping": AS_THE_TRACK._replace(**kept)} if kept else given


def _own(spec: str) -> StoppingRule:
    place, _, name = spec.rpartition(":")
    found = getattr(_module(place, spec), name, None)
    if isinstance(found, type):
        found = found()
    if isinstance(found, StoppingRule):
        return found
    if not callable(found):
        raise InputError(f"no function '{name}' there", "name a function, or a rule with a method stop", where=place)
    return FunctionRule(spec, found)


def _module(place: str, spec: str) -> Any:
    try:
        if not place.endswith(".py"):
            return importlib.import_module(place)
        path = Path(place)
        if not path.is_file():
            raise InputError("no such file", "give a file of Python, or MODULE:FUNCTION", where=place)
        loading = importlib.util.spec_from_file_location(f"truerank_rule_{path.stem}", path)
        if loading is None or loading.loader is None:
            raise InputError("not a file of Python", "give FILE.py:FUNCTION", where=place)
        module = importlib.util.module_from_spec(loading)
        # Dataclasses look their module up while they are made.
        sys.modules[loading.name] = module
        loading.loader.exec_module(module)
    except InputError:
        raise
    except ModuleNotFoundError as error:
        raise OptionError("stopping", f"no module '{error.name}' (rule '{spec}')", _REMEDY) from error
    except Exception as error:
        raise InputError(f"cannot be loaded ({type(error).__name__}: {error})", "correct it", where=place) from error
    return module
