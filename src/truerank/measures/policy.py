"""How runs are scored: the options live in `truerank.options`; `Policy` is a second name for them."""

from __future__ import annotations

from truerank.options import Missing, Scoring, Ties

__all__ = ["Missing", "Policy", "Ties"]

Policy = Scoring
