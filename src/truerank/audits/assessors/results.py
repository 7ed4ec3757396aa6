"""What an audit of assessors found, as one value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import polars as pl

from truerank.audits.assessors.grades import Grades
from truerank.audits.assessors.options import AssessorRules
from truerank.audits.assessors.ordering import SystemScores
from truerank.options import Resampling, Scoring
from truerank.reports.results import Result


@dataclass(frozen=True, eq=False, repr=False)
class AssessorAudit(Result, shown_in="truerank.audits.assessors.page"):
    """Whether the grades of models can stand in for those of people, and for what.

    Attributes:
        grades: what people and models said about the same pairs.
        scores: the scores of the runs under people and each model; None without runs.
        frames: the figures by name: agreement, cuts, confusion, rating, ranks, topics, between, differences, people,
            ceiling, ensembles, choosing; with runs order, pairs, scores, last_stage; with families families; with
            runs corrected and plans.
        families: the family of each run.
        rules: the rules.
        resampling: of the intervals.
        scoring: how runs were scored.
        remarks: what became of the corrected scores, in sentences.
        out: the folder that it was written to.
    """

    verdict_words: ClassVar[tuple[str, ...]] = ("NOT USABLE", "WITH CARE", "UNKNOWN")

    grades: Grades
    scores: SystemScores | None
    frames: Mapping[str, pl.DataFrame]
    families: Mapping[str, str] = field(default_factory=dict)
    rules: AssessorRules = AssessorRules()
    resampling: Resampling = Resampling()
    scoring: Scoring = Scoring()
    remarks: tuple[str, ...] = ()
    out: Path | None = None

    def best(self) -> tuple[str, ...]:
        """The models by their α (ordinal) with people, the highest first; equal ones in the order given."""
        main = self.frames["agreement"].filter(pl.col("coefficient") == "alpha-ordinal")
        known = {judge: value for judge, value in main.select("judge", "value").iter_rows() if value is not None}
        return tuple(sorted(self.grades.judges, key=lambda judge: -known.get(judge, float("-inf"))))

    def of(self, frame: str, **wanted: Any) -> list[dict[str, Any]]:
        """Rows of a frame in which these columns have these values; none where the frame is not there."""
        if frame not in self.frames:
            return []
        found = self.frames[frame]
        for column, value in wanted.items():
            found = found.filter(pl.col(column) == value)
        return found.rows(named=True)
