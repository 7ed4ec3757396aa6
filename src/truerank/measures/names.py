"""What the name of a measure says about it."""

from __future__ import annotations

from typing import Final

from ir_measures.measures import registry
from ir_measures.measures.base import Measure

from truerank.plugins import Plugins

#: Measures of other packages: each is a `Measure` of ir_measures with `values(view)`, which returns the value of every
#: topic, shape (topics,), from an `effectiveness.View`; and `lower_is_better`, where that is so.
MEASURES: Final = Plugins("truerank.measures", "measure", ("NAME", "SUPPORTED_PARAMS", "values"))


def lower_is_better(measure: str | Measure) -> bool:
    """Whether a lower value of a measure is the better one: of ranks it is."""
    name = str(measure).partition("(")[0].partition("@")[0]
    if name in ("MFR", "HMFR"):
        return True
    return name not in registry and name in MEASURES and bool(getattr(MEASURES.load(name), "lower_is_better", False))
