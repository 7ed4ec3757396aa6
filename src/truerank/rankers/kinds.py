"""The kinds of rankers: what each declares in its class, and which there are."""

from __future__ import annotations

import contextlib
import inspect
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Final

from truerank.errors import TruerankError
from truerank.plugins import Plugins
from truerank.rankers.training.recipes import Recipe, recipe_named

_RECIPE: Final = "truerank"
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
#: `kind`; `default_model`, which its bare name opens; `recipe`, a name or a `Recipe`. Its settings are the keywords of
#: `open`; one that takes any keyword checks them itself. A class with `create(vocabulary, runtime, seed, **settings)`
#: is drawn from a seed when it is trained; one with `module`, `rows` and `logits` can be trained.
RANKERS: Final = Plugins("truerank.rankers", "ranker", ("kind", "open"), _own)


def default_model(kind: str) -> str | None:
    """The checkpoint that the bare name of a kind opens; None where there is none."""
    return getattr(RANKERS.load(kind), "default_model", None)


def is_drawn(model: str) -> bool:
    """Whether a name is that of a kind whose network is drawn anew; the others begin with a checkpoint."""
    return model in RANKERS and hasattr(RANKERS.load(model), "create")


def usual_recipe(model: str) -> Recipe:
    """The recipe of a model where the user names none."""
    kind = model.partition(":")[0]
    declared = getattr(RANKERS.load(kind), "recipe", _RECIPE) if kind in RANKERS else _RECIPE
    return declared if isinstance(declared, Recipe) else recipe_named(declared)


def settings_of(home: Any) -> tuple[str, ...] | None:
    """The names of the settings that the `open` of a class takes; None where it checks them itself."""
    parameters = list(inspect.signature(home.open).parameters.values())
    if any(each.kind is each.VAR_KEYWORD for each in parameters):
        return None
    return tuple(each.name for each in parameters if each.kind is each.KEYWORD_ONLY)


def trained_names() -> tuple[str, ...]:
    """How the models are named that can be trained here: the kind alone, or with a checkpoint."""
    homes = {}
    for kind in RANKERS:
        # What is not installed, or is of a package that is broken, cannot be trained.
        with contextlib.suppress(TruerankError):
            homes[kind] = RANKERS.load(kind)
    drawn = [kind for kind, home in homes.items() if hasattr(home, "create")]
    opened = [f"{kind}:…" for kind, home in homes.items() if kind not in drawn and hasattr(home, "logits")]
    return (*drawn, *opened)
