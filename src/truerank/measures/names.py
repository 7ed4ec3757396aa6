"""What the name of a measure says about it."""

from __future__ import annotations

from ir_measures.measures.base import Measure

__all__ = ["lower_is_better"]


def lower_is_better(measure: str | Measure) -> bool:
    """Whether a lower value of a measure is the better one: of ranks it is."""
    return str(measure).partition("(")[0].partition("@")[0] in ("MFR", "HMFR")
