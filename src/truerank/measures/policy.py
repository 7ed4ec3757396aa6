"""How runs are scored: the options live in `truerank.options`; `Policy` is their name in rooms that have not moved."""

from __future__ import annotations

from truerank.options import Missing, Scoring, Ties

__all__ = ["Missing", "Policy", "Ties"]

Policy = Scoring
