"""The tables of a simulation, the paper's among them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from truerank.audits.reusability.judged_topics import TaskTopics, TopicStatistics
from truerank.audits.reusability.simulation.leave_out import LEAVE_OUT_UNIQUES
from truerank.audits.reusability.simulation.outcomes import ALL_TEAMS, COMPLETE, RANDOM, Change
from truerank.audits.reusability.simulation.results import Simulation
from truerank.audits.reusability.simulation.unlike import UNLIKE
from truerank.audits.reusability.simulation.verdict import verdict_of
from truerank.audits.reusability.stopping import OriginalSize
from truerank.audits.reusability.topic_report import topic_table
from truerank.reports.tables import Cell, Column, Table

_TAU: Final[dict[str, Any]] = {"align": "right", "format": ".4f"}
_WHOLE: Final[dict[str, Any]] = {"align": "right", "format": ",d"}
_NONE: Final = "–"


def topics_table(simulation: Simulation) -> Table:
    """Relevant and judged documents by topic, and which topics are left out (Table 5)."""
    task = TaskTopics("", simulation.judged_topics(), simulation.options.rel)
    name = f"the official qrels ({simulation.standing.official.name})"
    return topic_table(TopicStatistics(name, (task,), simulation.keeping))


def evidence_table(simulation: Simulation) -> Table:
    """What the verdict rests on: the worst of each test by each measure."""
    columns = (
        Column("measure"),
        Column("test"),
        Column("word"),
        Column("orders", **_WHOLE),
        Column("smallest τ", **_TAU),
        Column("ranks lost", **_WHOLE),
        Column("by"),
        Column("ranks won", **_WHOLE),
        Column("largest swap", **_TAU),
    )
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            verdict.measure, one.test, one.word, one.cases, one.tau, one.lost, one.lost_run if one.lost else "",
            one.won, one.largest_swap,
        )
        for verdict in verdict_of(simulation).measures
        for one in verdict.evidence
    )  # fmt: skip
    return Table(
        "What the verdict rests on: the worst of each test.",
        columns,
        rows,
        notes=(
            "Largest swap: the largest difference at which a new run and another changed places, in the judgments with "
            "or without the new run's documents. It is the largest that was seen, and bounds nothing.",
        ),
    )


def trials_table(simulation: Simulation) -> Table:
    """τ and the largest drop of every trial: all teams, and the worst team left out (Table 6)."""
    measures = simulation.standing.scorer.names
    columns = [Column("trial")]
    for above in ("All vs. Official", "Omit Team vs. Official"):
        for measure in measures:
            columns += [Column("τ", (above, measure), **_TAU), Column("drop", (above, measure), **_WHOLE)]
    rows: list[tuple[Cell, ...]] = []
    for trial in range(1, simulation.options.trials + 1):
        cells: list[Cell] = [str(trial)]
        for left_out in (False, True):
            for measure in measures:
                changes = [
                    one
                    for one in simulation.of_rule(OriginalSize.name, measure)
                    if one.trial == trial and (one.left_out != ALL_TEAMS) == left_out
                ]
                cells += worst(changes)
        rows.append(tuple(cells))
    return Table(
        "Kendall's τ and the largest drop in ranks of each trial, against the official order.",
        tuple(columns),
        tuple(rows),
        notes=(
            "Every trial judges as many documents of each topic as the official qrels have. With a team omitted: the "
            f"smallest τ and the largest drop of any run, over {len(simulation.standing.teams):,} teams left out.",
            "τ-b; equal means share the best rank.",
        ),
    )


def rules_table(simulation: Simulation) -> Table:
    """What each stopping rule costs, how many topics it keeps, and how it ranks the runs (Table 7)."""
    measures = simulation.standing.scorer.names
    columns = [
        Column("criterion"),
        Column("judgments", ("total",), align="right"),
        Column("topics", ("evaluation",), align="right"),
        Column("relevant", ("found",), align="right"),
    ]
    for measure in measures:
        columns += [Column("τ", (measure,), **_TAU), Column("drop", (measure,), **_WHOLE)]
    official = simulation.standing.official
    judged = simulation.judged_topics()
    rows: list[tuple[Cell, ...]] = [
        (
            "Official",
            f"{sum(official.sizes.values()):,}",
            f"{len(official.qrels.sets):,}",
            f"{sum(row.relevant for row in judged):,}",
            *([None, None] * len(measures)),
        )
    ]
    names = (*simulation.rules, RANDOM, COMPLETE)
    for rule in names:
        judgings = simulation.judgings_of(rule)
        cells: list[Cell] = [
            rule,
            _range([one.judgments for one in judgings]),
            _range([len(one.qrels.sets) for one in judgings]),
            _range([one.relevant for one in judgings]),
        ]
        for measure in measures:
            cells += worst([one for one in simulation.of_rule(rule, measure) if one.left_out == ALL_TEAMS])
        rows.append(tuple(cells))
    return Table(
        "Effect of stopping criteria on the quality of the qrels and the judgments needed.",
        tuple(columns),
        tuple(rows),
        notes=(
            f"Means over {simulation.options.trials:,} trials with all teams [fewest–most]; the smallest τ and the "
            "largest drop of a trial. Judgments count the topics that a criterion leaves out too.",
            f"{RANDOM}: the control; the same pools and as many judgments, without the learner.",
            f"{COMPLETE}: every document of the official topics that the assessor has a grade for.",
            *simulation.notes,
        ),
        rules=(1, len(simulation.rules) + 1),
    )


def teams_table(simulation: Simulation) -> Table:
    """What becomes of each team's runs when it is left out, beside the classical test."""
    measures = simulation.standing.scorer.names
    columns = [Column("team left out"), Column("runs", **_WHOLE)]
    for measure in measures:
        columns += [
            Column("τ", (measure, "worst trial"), **_TAU),
            Column("drop", (measure, "worst trial"), **_WHOLE),
            Column("own drop", (measure, "worst trial"), **_WHOLE),
            Column("own gain", (measure, "worst trial"), **_WHOLE),
        ]
    rows = []
    for team, own in simulation.standing.teams.items():
        cells: list[Cell] = [team, len(own)]
        for measure in measures:
            changes = [one for one in simulation.of_rule(OriginalSize.name, measure) if one.left_out == team]
            cells += [
                *worst(changes),
                max(0, *(one.own or 0 for one in changes)),
                max(one.own_gain or 0 for one in changes),
            ]
        rows.append(tuple(cells))
    return Table(
        "Each team left out of the pools: how the order of runs changes.",
        tuple(columns),
        tuple(rows),
        notes=("Own: the most ranks that a run of this team loses or wins; drop: that any run loses.",),
    )


def uniques_table(simulation: Simulation) -> Table:
    """The classical test: the official qrels without the relevant documents that one team alone contributed."""
    measures = simulation.standing.scorer.names
    columns = [
        Column("team"),
        Column("overlap", (), "right", ".0%"),
        Column("documents", ("unique",), **_WHOLE),
        Column("relevant", ("unique",), **_WHOLE),
        Column("topics", ("unique",), **_WHOLE),
    ]
    for measure in measures:
        columns += [
            Column("τ", (measure,), **_TAU),
            Column("drop", (measure,), **_WHOLE),
            Column("own drop", (measure,), **_WHOLE),
        ]
    rows = []
    for unique in simulation.uniques:
        cells: list[Cell] = [unique.team, simulation.overlaps[unique.team], *unique[1:]]
        for measure in measures:
            changes = [one for one in simulation.of_rule(LEAVE_OUT_UNIQUES, measure) if one.left_out == unique.team]
            cells += [*worst(changes), max(0, *(one.own or 0 for one in changes))]
        rows.append(tuple(cells))
    return Table(
        "Leave out uniques: the official qrels without what one team alone contributed to the pools.",
        tuple(columns),
        tuple(rows),
        notes=(
            "Overlap: the share of the team's pool that other teams' pools hold too.",
            "Unique: documents of the pools that no other team's runs, and no sparse judgment, brought in; relevant "
            "ones among the kept topics' judgments, which are taken out. The learner might have found them again: the "
            "simulation says whether it does.",
        ),
    )


def unlike_table(simulation: Simulation) -> Table:
    """Systems unlike the runs: how unlike, and the worst that became of each."""
    measures = simulation.standing.scorer.names
    columns = [
        Column("system"),
        Column("overlap", (), "right", ".0%"),
        Column("ungraded", (), "right", ".0%"),
        Column("relevant outside the pools", **_WHOLE),
    ]
    for measure in measures:
        columns += [
            Column("rank", (measure,), **_WHOLE),
            Column("τ", (measure,), **_TAU),
            Column("own drop", (measure,), **_WHOLE),
            Column("own gain", (measure,), **_WHOLE),
            Column("largest swap", (measure,), **_TAU),
        ]
    rows = []
    for system in simulation.unlike:
        ungraded = None if system.ungraded is None or not system.first else system.ungraded / system.first
        cells: list[Cell] = [system.name, system.overlap, ungraded, system.new_relevant]
        for measure in measures:
            changes = [
                one for rule in UNLIKE for one in simulation.of_rule(rule, measure) if one.left_out == system.name
            ]
            cells += [
                int(changes[0].positions[-1]),
                next(worst(changes)),
                max(0, *(one.own or 0 for one in changes)),
                max(one.own_gain or 0 for one in changes),
                max(one.largest_swap for one in changes),
            ]
        rows.append(tuple(cells))
    return Table(
        "Systems unlike the runs, made from the collection and not pooled.",
        tuple(columns),
        tuple(rows),
        notes=(
            f"Overlap: the share of its first {simulation.sources.depth:,} documents that the pools hold; ungraded: "
            "that the assessor has no grade for, a dash where the judgments hold relevant rows only.",
            "Rank: by the official judgments, among the runs and the system. The others: the worst over the official "
            "judgments and every trial, beside the same with the system's first documents judged, and beside complete "
            "judgments. Largest swap: the largest difference at which the system and a run change places.",
        ),
    )


def budgets_table(simulation: Simulation) -> Table:
    """Constant budgets from small to large: what they find, and how they rank the runs."""
    measures = simulation.standing.scorer.names
    columns = [
        Column("budget", align="right", format=",d"),
        Column("judgments", align="right"),
        Column("topics", align="right"),
        Column("relevant", align="right"),
        Column("judgments per further relevant", align="right", format=",.1f"),
    ]
    for measure in measures:
        columns += [Column("τ", (measure,), **_TAU), Column("drop", (measure,), **_WHOLE)]
    rows = []
    before = 0.0, 0.0
    for budget, name in simulation.budgets():
        judgings = simulation.judgings_of(name)
        spent, found = (float(np.mean([getattr(one, what) for one in judgings])) for what in ("judgments", "relevant"))
        price = (spent - before[0]) / (found - before[1]) if found > before[1] else None
        before = spent, found
        cells: list[Cell] = [
            budget,
            _range([one.judgments for one in judgings]),
            _range([len(one.qrels.sets) for one in judgings]),
            _range([one.relevant for one in judgings]),
            price,
        ]
        for measure in measures:
            cells += worst(simulation.of_rule(name, measure))
        rows.append(tuple(cells))
    return Table(
        "What the next judgments cost: constant budgets of each topic, all teams.",
        tuple(columns),
        tuple(rows),
        notes=("Means over the trials [fewest–most]; the smallest τ and the largest drop against the official order.",),
    )


def risks_table(simulation: Simulation) -> Table:
    """The topics of the evaluation set by how much they change when a team is left out."""
    measure = simulation.standing.scorer.names[0]
    columns = (
        Column("topic"),
        Column("change", (measure,), **_TAU),
        Column("share", (measure,), align="right", format=".1%"),
        Column("relevant", **_WHOLE),
        Column("judged", **_WHOLE),
        Column("ratio", align="right", format=".3f"),
    )
    rows = tuple(
        (risk.topic_id, risk.change, risk.share, risk.relevant, risk.judged, risk.ratio)
        for risk in verdict_of(simulation).topics
    )
    return Table(
        "Topics that carry the risk.",
        columns,
        rows,
        notes=(f"Change: mean absolute difference of a topic's {measure}, over trials and runs of the team left out.",),
    )


def positions_table(simulation: Simulation) -> Table:
    """Where every run stood over all trials and teams left out: what the heat maps show."""
    measures = simulation.standing.scorer.names
    columns = [Column("run"), Column("team")]
    for measure in measures:
        columns += [Column(name, (measure,), **_WHOLE) for name in ("official", "best", "worst")]
        columns.append(Column("there", (measure,), align="right", format=".0%"))
    order = simulation.order(measures[0])
    counts = {measure: simulation.position_counts(measure) for measure in measures}
    rows = []
    for run in order:
        name = simulation.standing.scorer.ranks.runs[run]
        cells: list[Cell] = [name, simulation.teams[name]]
        for measure in measures:
            there = np.flatnonzero(counts[measure][run])
            official = int(simulation.positions(measure)[run])
            share = float(counts[measure][run, official - 1] / counts[measure][run].sum())
            cells += [official, int(there[0]) + 1, int(there[-1]) + 1, share]
        rows.append(tuple(cells))
    return Table(
        "Positions of the runs over all trials, with all teams and with each team left out.",
        tuple(columns),
        tuple(rows),
        notes=("There: the share of trials and teams left out in which the run stands at its official rank.",),
    )


def runs_table(simulation: Simulation) -> Table:
    """The official means of the runs, best first by the first measure."""
    scorer = simulation.standing.scorer
    columns = (Column("run"), Column("team"), *(Column(name, (), **_TAU) for name in scorer.names))
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            scorer.ranks.runs[run],
            simulation.teams[scorer.ranks.runs[run]],
            *(float(simulation.standing.official.means[number, run]) for number in range(len(scorer.names))),
        )
        for run in simulation.order(scorer.names[0])
    )
    return Table(
        f"The runs by the official qrels, {len(simulation.standing.official.qrels.sets):,} topics.", columns, rows
    )


def worst(changes: Sequence[Change]) -> Iterator[Cell]:
    """The smallest τ and the largest drop; dashes where there is nothing."""
    taus = [one.tau for one in changes if one.tau is not None]
    yield min(taus) if taus else None
    yield max(one.drop for one in changes) if changes else None


def _range(values: Sequence[int]) -> str:
    if not values:
        return _NONE
    low, high = min(values), max(values)
    return f"{low:,}" if low == high else f"{float(np.mean(values)):,.1f} [{low:,}–{high:,}]"
