"""The result of `pool simulate`: a verdict, tables and figures, as values, files and one page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from truerank.audits.reusability.simulation import page as simulation_page
from truerank.audits.reusability.simulation import tables as simulation_tables
from truerank.audits.reusability.simulation.heat_maps import pictures
from truerank.audits.reusability.simulation.leave_out import LEAVE_OUT_UNIQUES, Unique
from truerank.audits.reusability.simulation.options import SimulationOptions, SimulationSources
from truerank.audits.reusability.simulation.outcomes import ALL_TEAMS, COMPLETE, Change, Judging, Standing
from truerank.audits.reusability.simulation.trials import Traces
from truerank.audits.reusability.simulation.unlike import UNLIKE, UNLIKE_PASSED, UnlikeSystem
from truerank.audits.reusability.simulation.verdict import Verdict, verdict_of
from truerank.audits.reusability.stopping import ConstantBudget, Keeping, OriginalSize
from truerank.audits.reusability.stopping_specs import load_rule
from truerank.audits.reusability.topics import JudgedTopic
from truerank.measures.correlation import ranks
from truerank.reports.figures import Picture, to_svg_file
from truerank.reports.tables import Table
from truerank.sources import grammar
from truerank.work.artifacts import Artifacts, hash_file, installed_versions
from truerank.work.publishing import write_pictures, write_tables

__all__ = ["CHANGE_SCHEMA", "OUTCOME_SCHEMA", "Simulation"]

#: How each trial ranks the runs: one row for each rule, trial, team left out and measure.
CHANGE_SCHEMA: Final = {
    "rule": pl.String, "trial": pl.Int32, "left_out": pl.String, "measure": pl.String, "tau": pl.Float64,
    "drop": pl.Int32, "dropped": pl.String, "own_drop": pl.Int32, "own_run": pl.String, "own_gain": pl.Int32,
    "largest_swap": pl.Float64,
}  # fmt: skip
#: What each rule made of each topic: one row for each rule, trial, team left out and topic.
OUTCOME_SCHEMA: Final = {
    "rule": pl.String, "trial": pl.Int32, "left_out": pl.String, "topic_id": pl.String, "pool": pl.Int32,
    "judged": pl.Int32, "relevant": pl.Int32, "kept": pl.Boolean, "why_not": pl.String, "ending": pl.String,
    "reason": pl.String, "steps": pl.Int32,
}  # fmt: skip
_PACKAGES: Final = ("truerank", "numpy", "scipy", "polars", "matplotlib")
#: Tables that are for files, not for a terminal.
_LONG: Final = ("evidence", "runs", "positions", "table5", "risks")


@dataclass(frozen=True, eq=False)
class Simulation:
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
        notes: what a reader has to know.
        sources: what was read.
        length: judgments of a trace at most, after the share of the collection.
    """

    options: SimulationOptions
    teams: Mapping[str, str]
    standing: Standing
    judgings: tuple[Judging, ...]
    changes: tuple[Change, ...]
    uniques: tuple[Unique, ...]
    overlaps: Mapping[str, float]
    unlike: tuple[UnlikeSystem, ...]
    has_non_relevant: bool
    traces: Traces
    rules: tuple[str, ...]
    notes: tuple[str, ...]
    sources: SimulationSources
    length: int

    @cached_property
    def verdict(self) -> Verdict:
        """What it says in words."""
        return verdict_of(self)

    @cached_property
    def tables(self) -> Mapping[str, Table]:
        """The tables by name, in reading order."""
        return {
            "evidence": simulation_tables.evidence_table(self),
            "runs": simulation_tables.runs_table(self),
            "table5": simulation_tables.topics_table(self),
            "table6": simulation_tables.trials_table(self),
            "teams": simulation_tables.teams_table(self),
            "uniques": simulation_tables.uniques_table(self),
            **({"unlike": simulation_tables.unlike_table(self)} if self.unlike else {}),
            "table7": simulation_tables.rules_table(self),
            "budgets": simulation_tables.budgets_table(self),
            "risks": simulation_tables.risks_table(self),
            "positions": simulation_tables.positions_table(self),
        }

    @cached_property
    def pictures(self) -> tuple[Picture, ...]:
        """The figures in reading order."""
        return tuple(pictures(self))

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

    def table(self) -> Table:
        """The stopping criteria (Table 7)."""
        return self.tables["table7"]

    def text(self, width: int | None = 120) -> str:
        """The verdict and the tables for a terminal, but the long ones."""
        tables = [table.text(width).rstrip("\n") for name, table in self.tables.items() if name not in _LONG]
        return "\n\n".join(["\n".join(self.verdict.sentences()), self.verdict.criteria(), *tables]) + "\n"

    def json(self) -> dict[str, Any]:
        """What `summary.json` holds."""
        official, scorer = self.standing.official, self.standing.scorer
        return {
            "verdict": self.verdict.json(),
            "runs": {
                name: {"team": self.teams[name], **_by(scorer.names, official.means[:, number])}
                for number, name in enumerate(scorer.ranks.runs)
            },
            "official": {
                "name": official.name,
                "judgments": sum(official.sizes.values()),
                "topics": len(official.qrels.sets),
                "judged_topics": [row._asdict() | {"ratio": row.ratio} for row in self.judged_topics()],
            },
            "trials": [_change(one) for one in self.changes if one.rule == OriginalSize.name],
            "rules": [self._rule(rule) for rule in dict.fromkeys(one.rule for one in self.judgings)],
            "leave_out_uniques": [
                unique._asdict() | {"changes": [_change(one) for one in self.changes if self._of(one, unique)]}
                for unique in self.uniques
            ],
            "overlaps": dict(self.overlaps),
            "unlike": [
                system._asdict()
                | {
                    "overlap": system.overlap,
                    "changes": [
                        _change(one)
                        for one in self.changes
                        if one.rule in (*UNLIKE, UNLIKE_PASSED) and one.left_out == system.name
                    ],
                }
                for system in self.unlike
            ],
            "has_non_relevant": self.has_non_relevant,
            "length": self.length,
            "notes": list(self.notes),
        }

    def html(self) -> str:
        """The report as one page that needs no network."""
        svgs = {one.name: to_svg_file(one.figure, name=one.name, description=one.caption) for one in self.pictures}
        return simulation_page.render(self, svgs)

    def save(self, folder: str | Path) -> Path:
        """Writes `report.html`, `summary.json`, `official.qrels`, `changes.parquet`, `outcomes.parquet`,
        `positions.parquet`, `traces.parquet`, `manifest.json`, `tables/` and `figures/`.

        Returns:
            The folder.

        Raises:
            InputError: the folder cannot be written to.
        """
        artifacts = Artifacts(folder)
        write_tables(artifacts, self.tables)
        svgs = write_pictures(artifacts, self.pictures)
        artifacts.text("official.qrels", "".join(self._qrels_lines()))
        artifacts.parquet("changes.parquet", self.changes_frame())
        artifacts.parquet("outcomes.parquet", self.outcomes_frame())
        artifacts.parquet("positions.parquet", self.positions_frame())
        artifacts.parquet("traces.parquet", self.traces.frame())
        artifacts.text("report.html", simulation_page.render(self, svgs))
        artifacts.json("summary.json", self.json())
        artifacts.manifest(self.provenance())
        return artifacts.folder

    def changes_frame(self) -> pl.DataFrame:
        """How each qrels ranks the runs, columns as in `CHANGE_SCHEMA`."""
        return pl.DataFrame([tuple(_change(one).values()) for one in self.changes], CHANGE_SCHEMA, orient="row")

    def outcomes_frame(self) -> pl.DataFrame:
        """What each rule made of each topic, columns as in `OUTCOME_SCHEMA`; trial 0 is the official one."""
        official = Judging(
            "Official", 0, ALL_TEAMS, self.standing.official.outcomes, self.standing.official.qrels, 0, 0
        )
        rows = [
            (
                judging.rule, judging.trial, judging.left_out, one.topic_id, one.pool, one.judged, one.relevant,
                one.kept, one.why_not, one.ending, one.reason, one.steps,
            )
            for judging in (official, *self.judgings)
            for one in judging.outcomes
        ]  # fmt: skip
        return pl.DataFrame(rows, OUTCOME_SCHEMA, orient="row")

    def positions_frame(self) -> pl.DataFrame:
        """The rank of every run in every trial by the original size: rule, trial, left_out, measure, run, position."""
        runs = self.standing.scorer.ranks.runs
        rows = [
            (one.trial, one.left_out, one.measure, run, int(position))
            for one in self.changes
            if one.rule == OriginalSize.name
            for run, position in zip(runs, one.positions, strict=True)
        ]
        schema = {
            "trial": pl.Int32, "left_out": pl.String, "measure": pl.String, "run": pl.String, "position": pl.Int32,
        }  # fmt: skip
        return pl.DataFrame(rows, schema, orient="row")

    def provenance(self) -> dict[str, Any]:
        """Inputs with hashes, options and versions."""
        return {
            "command": "pool simulate",
            "inputs": {
                name: [_input(source) for source in given] for name, given in self.sources.names().items() if given
            },
            "options": {
                **self.options.json(), "team_prefix": self.sources.team_prefix, "subset": self.sources.subset,
            },
            "ties": "scores as 32-bit numbers, equal ones by document id descending",
            "notes": list(self.notes),
            "versions": installed_versions(*_PACKAGES),
        }  # fmt: skip

    @cached_property
    def _changes(self) -> dict[tuple[str, str], list[Change]]:
        found: dict[tuple[str, str], list[Change]] = {}
        for change in self.changes:
            found.setdefault((change.rule, change.measure), []).append(change)
        return found

    @cached_property
    def _judgings(self) -> dict[str, list[Judging]]:
        return simulation_tables.judgings_by_rule(self.judgings)

    def _rule(self, rule: str) -> dict[str, Any]:
        judgings = self.judgings_of(rule)
        return {
            "rule": rule,
            "judgments": [one.judgments for one in judgings],
            "topics": [len(one.qrels.sets) for one in judgings],
            "relevant": [one.relevant for one in judgings],
            "worst": {
                measure: dict(
                    zip(
                        ("tau", "drop"),
                        simulation_tables.worst(
                            [one for one in self.of_rule(rule, measure) if one.left_out == ALL_TEAMS]
                        ),
                        strict=True,
                    )
                )
                for measure in self.standing.scorer.names
            },
        }

    @staticmethod
    def _of(change: Change, unique: Unique) -> bool:
        return change.rule == LEAVE_OUT_UNIQUES and change.left_out == unique.team

    def _qrels_lines(self) -> Iterator[str]:
        universe, scorer = self.standing.universe, self.standing.scorer
        for number in self.standing.official.qrels.sets:
            judged = scorer.judged(int(number))
            topic_id, ids, grades = (
                part[judged.topic] for part in (universe.topics, universe.documents, universe.grades)
            )
            for place in judged.documents:
                yield f"{topic_id} 0 {ids[place]} {int(grades[place])}\n"


def _change(one: Change) -> dict[str, Any]:
    return {
        "rule": one.rule,
        "trial": one.trial,
        "left_out": one.left_out or None,
        "measure": one.measure,
        "tau": one.tau,
        "drop": one.drop,
        "dropped": one.dropped or None,
        "own_drop": one.own,
        "own_run": one.own_run or None,
        "own_gain": one.own_gain,
        "largest_swap": one.largest_swap,
    }


def _by(names: tuple[str, ...], values: NDArray[np.float64]) -> dict[str, float]:
    return dict(zip(names, values.tolist(), strict=True))


def _input(given: str) -> dict[str, Any]:
    spec = grammar.parse(given)
    found: dict[str, Any] = {"source": given, "name": spec.name}
    return found | ({"sha256": hash_file(spec.path)} if spec.scheme == "file" and spec.path.is_file() else {})
