"""Recipes: how a ranker is trained, as named values, each with the paper or tool that it comes from."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Final, Literal, get_args

from truerank.errors import OptionError

Loss = Literal["hinge", "pair-softmax", "classes"]
Optimiser = Literal["adam", "adamw", "adafactor"]
Schedule = Literal["constant", "linear"]


@dataclass(frozen=True)
class Recipe:
    """How a ranker is trained: one epoch over the instances.

    An instance is a query with a relevant and a non-relevant document, hence two scored pairs, which always stand side
    by side in one batch.

    Attributes:
        name: by which a user asks for it.
        source: where the values come from.
        loss: "hinge": max(0, margin − s⁺ + s⁻), the mean over instances; "pair-softmax": −log of the relevant one's
            share of exp(s⁺) + exp(s⁻); "classes": cross-entropy of relevant or not (true or false), over pairs.
        margin: of the hinge loss.
        optimiser: "adam" (weight decay added to the gradient), "adamw" (decoupled), "adafactor" (no relative step).
        learning_rate: after the warm-up.
        head_rate: that of the layers above an encoder (CEDR, PARADE); 0 for the same.
        weight_decay: as the optimiser takes it.
        warmup_steps: steps over which the learning rate rises from 0; scaled where it is no shorter than the run.
        warmup_share: the same as a share of the run, used where `warmup_steps` is 0.
        schedule: after the warm-up: "constant", or "linear" down to 0.
        batch: instances in one step of the optimiser.
        accumulate: parts that a batch is cut into, to save memory; the gradient is that of the whole batch.
        clip: the largest norm of the gradient; 0 for no limit.
    """

    name: str
    source: str
    loss: Loss = "hinge"
    margin: float = 1.0
    optimiser: Optimiser = "adam"
    learning_rate: float = 1e-3
    head_rate: float = 0.0
    weight_decay: float = 0.0
    warmup_steps: int = 0
    warmup_share: float = 0.0
    schedule: Schedule = "constant"
    batch: int = 32
    accumulate: int = 1
    clip: float = 0.0

    def __post_init__(self) -> None:
        for field, choices in _CHOICES.items():
            if getattr(self, field) not in choices:
                raise OptionError("set_", f"no {field} '{getattr(self, field)}'", f"one of {', '.join(choices)}")
        for field, lowest in _LOWEST.items():
            value = getattr(self, field)
            if not (math.isfinite(value) and value >= lowest):
                raise OptionError("set_", f"{field} is {value}", f"give {lowest} or more")
        if not self.learning_rate > 0:
            raise OptionError("set_", "learning_rate is 0", "give a number above 0")
        if self.warmup_share >= 1:
            raise OptionError("set_", f"warmup_share is {self.warmup_share}", "give a share below 1")
        if self.accumulate > self.batch:
            fault = f"a batch of {self.batch} cannot be cut into {self.accumulate} parts"
            raise OptionError("set_", fault, "lower accumulate")

    def json(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    def changed(self, values: Mapping[str, str | int | float]) -> Recipe:
        """The recipe with other values; `lr` is short for learning_rate."""
        kinds = {field.name: type(getattr(self, field.name)) for field in fields(self)}
        taken: dict[str, Any] = {}
        for given, value in values.items():
            name = "learning_rate" if given == "lr" else given
            if name not in kinds or name in ("name", "source"):
                known = ", ".join(key for key in kinds if key not in ("name", "source"))
                raise OptionError("set_", f"a recipe has no '{given}'", f"it has {known}")
            try:
                taken[name] = kinds[name](value)
            except ValueError as error:
                wanted = "a whole number" if kinds[name] is int else "a number"
                raise OptionError("set_", f"{given} is '{value}'", f"give {wanted}") from error
        return replace(self, **taken)

    def fitted_to(self, steps: int) -> Recipe:
        """The recipe as a run of so many steps uses it.

        A warm-up that would not end within the run is cut to a tenth of it: with the thousand steps that PyGaggle
        warms up for, a short run would never reach its learning rate.
        """
        warmup = self.warmup_steps or round(self.warmup_share * steps)
        if warmup >= steps:
            warmup = steps // 10
        return replace(self, warmup_steps=warmup, warmup_share=0.0)


_CHOICES: Final = {"loss": get_args(Loss), "optimiser": get_args(Optimiser), "schedule": get_args(Schedule)}
_LOWEST: Final = {
    "margin": 0, "learning_rate": 0, "head_rate": 0, "weight_decay": 0, "warmup_steps": 0, "warmup_share": 0,
    "batch": 1, "accumulate": 1, "clip": 0,
}  # fmt: skip

_RECIPES: Final = (
    Recipe(
        "truerank",
        "Own default for the small models: the pair softmax, which does not stop learning at a margin, and more and "
        "larger steps than capreolus, because audits train on few instances.",
        loss="pair-softmax",
        learning_rate=3e-3,
        batch=16,
        clip=5.0,
    ),
    Recipe(
        "capreolus", "Capreolus' defaults for KNRM, PACRR and DUET, as the leakage paper used them (its section 4)."
    ),
    Recipe(
        "ance",
        "ANCE (Xiong et al., 2021), passages: softmax over the pair, 1e-6, batches of 64, 5,000 steps of warm-up, "
        "scaled where the run is shorter; AdamW in place of LAMB.",
        loss="pair-softmax",
        optimiser="adamw",
        learning_rate=1e-6,
        warmup_steps=5000,
        schedule="linear",
        batch=64,
        accumulate=4,
        clip=1.0,
    ),
    Recipe(
        "cedr",
        "CEDR (MacAvaney et al., 2019), section 3.1: softmax over the pair, BERT at 2e-5, the layers above it at 1e-3; "
        "also of PARADE here.",
        loss="pair-softmax",
        learning_rate=2e-5,
        head_rate=1e-3,
        batch=16,
    ),
    Recipe(
        "colbert",
        "ColBERT (Khattab and Zaharia, 2020), section 4.1: softmax over the pair, Adam at 3e-6, batches of 32.",
        loss="pair-softmax",
        learning_rate=3e-6,
        batch=32,
        accumulate=2,
    ),
    Recipe(
        "monobert",
        "monoBERT (Nogueira and Cho, 2019): learning rate 3e-6, batch of 128 pairs, warm-up over a tenth, weight decay "
        "0.01.",
        loss="classes",
        optimiser="adamw",
        learning_rate=3e-6,
        weight_decay=0.01,
        warmup_share=0.1,
        schedule="linear",
        batch=64,
        accumulate=8,
        clip=1.0,
    ),
    Recipe(
        "pygaggle",
        "PyGaggle's training of monoT5, as the leakage paper used it: Adafactor, effective batch of 128 pairs, 1,000 "
        "steps of warm-up, scaled where the run is shorter.",
        loss="classes",
        optimiser="adafactor",
        learning_rate=3e-4,
        weight_decay=5e-5,
        warmup_steps=1000,
        schedule="linear",
        batch=64,
        accumulate=8,
        clip=1.0,
    ),
    Recipe(
        "survivorship",
        "The survivorship paper's training of monoT5: batches of 8, learning rate 5e-5 (256,000 samples there).",
        loss="classes",
        optimiser="adamw",
        learning_rate=5e-5,
        batch=4,
    ),
)
#: Recipes by name.
RECIPES: Final[Mapping[str, Recipe]] = {recipe.name: recipe for recipe in _RECIPES}


def recipe_named(name: str) -> Recipe:
    if name not in RECIPES:
        raise OptionError("recipe", f"no recipe '{name}'", f"there are {', '.join(RECIPES)}")
    return RECIPES[name]


#: The usual recipe of a kind; of others it is "truerank".
_USUAL: Final = {
    "ance": "ance",
    "cedr": "cedr",
    "colbert": "colbert",
    "monobert": "monobert",
    "monot5": "pygaggle",
    "parade": "cedr",
}


def usual_recipe(model: str) -> Recipe:
    """The recipe of a model where the user names none."""
    return RECIPES[_USUAL.get(model.partition(":")[0], "truerank")]
