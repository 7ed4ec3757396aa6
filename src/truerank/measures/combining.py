"""What several judgments of one topic and document become: the one rule for it."""

from __future__ import annotations

from typing import Final, Literal

import polars as pl

Combine = Literal["max", "min", "majority", "agree"]

#: What several judgments of one topic become that go to the same document.
COMBINE: Final[dict[str, str]] = {
    "max": "the highest grade",
    "min": "the lowest grade",
    "majority": "the grade that most of them have, of equally many the higher",
    "agree": "the grade, where they agree; the others are ambiguous",
}


def combined_grade(combine: Combine) -> pl.Expr:
    """The grade of several rows, as an aggregation of the column `relevance`; for "agree" the highest one."""
    grade = pl.col("relevance")
    rule = {"max": grade.max(), "min": grade.min(), "agree": grade.max(), "majority": grade.mode().max()}[combine]
    return rule.cast(pl.Int32)
