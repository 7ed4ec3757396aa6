"""The result of `pool simulate`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from truerank.audits.reusability.judged_topics import JudgedTopic
from truerank.audits.reusability.simulation.leave_out import Unique
from truerank.audits.reusability.simulation.options import SimulationOptions, SimulationSources
from truerank.audits.reusability.simulation.outcomes import ALL_TEAMS, COMPLETE, Change, Judging, OfficialStanding
from truerank.audits.reusability.simulation.trials import Traces
from truerank.audits.reusability.simulation.unlike import UnlikeSystem
from truerank.audits.reusability.stopping import ConstantBudget, Keeping, OriginalSize
from truerank.audits.reusability.stopping_specs import load_rule
from truerank.measures.orders import ranks
from truerank.reports.results import Result


@dataclass(frozen=True, eq=False, repr=False)
class Simulation(Result, shown_in="truerank.audits.reusability.simulation.page"):
    """What a simulation found.

    Attributes:
        options: what was chosen.
        teams: the team of each run.
        standing: the documents, the scorer, the official qrels.
        judgings: what every rule made of every trial.
        changes: how each of them ranks the runs.
        uniques: what each team alone contributed.
        overlaps: by team, the share of its pool that other teams brought in too.
        unlike: the unlike systems that were tried.
        has_non_relevant: whether the assessor's judgments have rows that are not relevant.
        traces: what was judged in which order.
        rules: the names of the rules of Table 7, the original size first.
        sources: what was read.
        notes: what a reader has to know.
        length: judgments of a trace at most, after the share of the collection.
        out: the folder that it was written to.
    """

    verdict_words: ClassVar[tuple[str, ...]] = ("NOT HELD", "WITH CARE", "UNKNOWN")

    options: SimulationOptions
    teams: Mapping[str, str]
    standing: OfficialStanding
    judgings: tuple[Judging, ...]
    changes: tuple[Change, ...]
    uniques: tuple[Unique, ...]
    overlaps: Mapping[str, float]
    unlike: tuple[UnlikeSystem, ...]
    has_non_relevant: bool
    traces: Traces
    rules: tuple[str, ...]
    sources: SimulationSources
    notes: tuple[str, ...] = ()
    length: int = 0
    out: Path | None = None

    @cached_property
    def is_complete(self) -> bool:
        """Whether the official qrels hold all relevant documents that the assessor knows."""
        return all(
            change.tau == 1 and not change.drop for change in self.changes if change.rule == COMPLETE
        ) and self.judgings_of(COMPLETE)[0].relevant == sum(
            row.relevant for row in self.judged_topics() if not row.why_not
        )

    @property
    def keeping(self) -> Keeping:
        """Which topics the official qrels keep."""
        return load_rule(self.options.official_rule).keeping if self.standing.official.outcomes else Keeping(0, None)

    def of_rule(self, rule: str, measure: str) -> list[Change]:
        """How a rule's qrels rank the runs by a measure, over trials and teams left out."""
        return self._changes.get((rule, measure), [])

    def judgings_of(self, rule: str) -> list[Judging]:
        """What a rule made of each trial with all teams."""
        return self._judgings.get(rule, [])

    def judged_topics(self) -> tuple[JudgedTopic, ...]:
        """Relevant and judged documents of every topic by the official qrels."""
        official, scorer = self.standing.official, self.standing.scorer
        if official.outcomes:
            return tuple(JudgedTopic(one.topic_id, one.relevant, one.judged, one.why_not) for one in official.outcomes)
        found = []
        for number in official.qrels.sets:
            judged = scorer.judged(int(number))
            relevant = int((self.standing.universe.grades[judged.topic][judged.documents] >= scorer.rel).sum())
            found.append(JudgedTopic(scorer.ranks.topics[judged.topic], relevant, len(judged.documents)))
        return tuple(found)

    def budgets(self) -> Iterator[tuple[int, str]]:
        """The constant budgets that were tried, the smallest first."""
        prefix = ConstantBudget(1).name.removesuffix("1")
        sizes = {int(name.removeprefix(prefix)) for name in self._judgings if name.removeprefix(prefix).isdigit()}
        yield from ((size, f"{prefix}{size}") for size in sorted(sizes))

    def positions(self, measure: str) -> NDArray[np.int64]:
        """The official rank of each run, shape (runs,)."""
        number = self.standing.scorer.names.index(measure)
        return ranks(self.standing.official.means[number], ascending=self.standing.scorer.ascending[number])

    def order(self, measure: str) -> list[int]:
        """The runs by their official rank, equal ones by name."""
        found, names = self.positions(measure), self.standing.scorer.ranks.runs
        return sorted(range(len(names)), key=lambda run: (int(found[run]), names[run]))

    def position_counts(self, measure: str) -> NDArray[np.int64]:
        """How often each run stood at each position over all trials and teams left out, shape (runs, positions)."""
        runs = len(self.standing.scorer.ranks.runs)
        counts = np.zeros((runs, runs), np.int64)
        for change in self.of_rule(OriginalSize.name, measure):
            counts[np.arange(runs), change.positions - 1] += 1
        return counts

    @cached_property
    def _changes(self) -> dict[tuple[str, str], list[Change]]:
        found: dict[tuple[str, str], list[Change]] = {}
        for change in self.changes:
            found.setdefault((change.rule, change.measure), []).append(change)
        return found

    @cached_property
    def _judgings(self) -> dict[str, list[Judging]]:
        found: dict[str, list[Judging]] = {}
        for judging in self.judgings:
            if judging.left_out == ALL_TEAMS:
                found.setdefault(judging.rule, []).append(judging)
        return found
