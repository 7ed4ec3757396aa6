"""How a simulation is shown: what the command prints, its page, its figures, and its files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from truerank.audits.reusability.simulation import tables
from truerank.audits.reusability.simulation.leave_out import LEAVE_OUT_UNIQUES
from truerank.audits.reusability.simulation.outcomes import ALL_TEAMS, Change, Judging
from truerank.audits.reusability.simulation.results import Simulation
from truerank.audits.reusability.simulation.tables import worst
from truerank.audits.reusability.simulation.unlike import UNLIKE, UNLIKE_PASSED
from truerank.audits.reusability.simulation.verdict import verdict_of
from truerank.audits.reusability.stopping import OriginalSize
from truerank.core.verdict import Verdict
from truerank.reports.figures.export import Picture
from truerank.reports.figures.heat_maps import HeatMap, heat_maps
from truerank.reports.figures.lines import Panel, Series, scatter_panels
from truerank.reports.pages import Prose
from truerank.reports.report import Report, ReportSection
from truerank.reports.results import Summary, page_note, reports, summarises, writes
from truerank.reports.tables import Table
from truerank.work.publishing import publish
from truerank.work.runs import Run

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
#: Tables that are for files, not for a terminal.
_LONG: Final = ("evidence", "runs", "positions", "table5", "risks")
_TITLES: Final = {
    "tried": "What was tried, and what it showed",
    "teams": "Teams left out",
    "trials": "Trials",
    "rules": "Stopping criteria",
    "cost": "What the next judgments cost",
    "topics": "Topics",
    "runs": "Runs",
}
_SECTIONS: Final = {
    "evidence": "tried", "runs": "runs", "table5": "topics", "table6": "trials", "teams": "teams",
    "uniques": "teams", "unlike": "teams", "table7": "rules", "budgets": "cost", "risks": "topics",
    "positions": "runs",
}  # fmt: skip
_MEANING: Final = {
    "HELD": "New systems stood where they would have stood had they been pooled, as far as was tried.",
    "WITH CARE": "Small differences between a new system and an old one mean little.",
    "NOT HELD": "A new system may be misranked.",
    "UNKNOWN": "Nothing was found that misranks a new system, and too little was tried to say that nothing would.",
}


@summarises(Simulation)
def _summary(simulation: Simulation) -> Summary:
    found = verdict_of(simulation)
    shown = [table for name, table in simulation_tables(simulation).items() if name not in _LONG]
    return Summary(
        ("\n".join(found.sentences()), found.criteria(), *shown),
        _facts(simulation),
        tuple(_measure_verdicts(simulation)),
        page_note(simulation.out),
        width=120,
    )


@reports(Simulation)
def _report(simulation: Simulation) -> Report:
    found = verdict_of(simulation)
    parts: dict[str, list[Any]] = {name: [] for name in _TITLES}
    # The verdicts stand above; here is what they rest on, each sentence in the section that it is about.
    parts["tried"].append(Prose((found.alike_sentence(), found.blind, *found.chance_sentences())))
    parts["topics"].append(Prose((found.topic_sentence(),)))
    parts["cost"].append(Prose((found.gain_sentence(),)))
    for picture in pictures(simulation):
        parts[picture.section].append(picture)
    named = simulation_tables(simulation)
    for name, table in named.items():
        parts[_SECTIONS[name]].append(table)
    parts["tried"].append(Prose((found.criteria(), *simulation.notes)))
    official, runs = simulation.standing.official, len(simulation.teams)
    return Report(
        title="Is this collection fair to new systems?",
        lead=f"{runs:,} runs of {len(simulation.standing.teams):,} teams; {len(official.qrels.sets):,} topics with "
        f"{sum(official.sizes.values()):,} judgments ({official.name}); {simulation.options.trials:,} simulated trials "
        "with all teams and with each team left out.",
        verdicts=tuple(_measure_verdicts(simulation, brief=True)),
        sections=tuple(ReportSection(name, _TITLES[name], tuple(some)) for name, some in parts.items()),
        tables=named,
        json=_facts(simulation),
        footer=(
            "A simulation shows what became of the systems that were tried. It bounds nothing for a system unlike all "
            "of them. This page asks the network for nothing.",
        ),
    )


@writes(Simulation)
def _write(simulation: Simulation, job: Run) -> None:
    job.text("official.qrels", "".join(official_lines(simulation)))
    job.parquet("changes.parquet", _changes_frame(simulation))
    job.parquet("outcomes.parquet", _outcomes_frame(simulation))
    job.parquet("positions.parquet", _positions_frame(simulation))
    job.parquet("traces.parquet", simulation.traces.frame())
    publish(_report(simulation), job)


def _measure_verdicts(simulation: Simulation, *, brief: bool = False) -> Iterator[Verdict]:
    """One verdict for each measure; brief ones leave to the page's table what each test showed."""
    explained: set[str] = set()
    for one in verdict_of(simulation).measures:
        change = f"What would change this: {one.what_would_change_it}"
        meaning = change if brief and one.word in explained else f"{_MEANING[one.word]} {change}"
        explained.add(one.word)
        yield Verdict(
            subject=one.measure,
            word=one.word,
            sentence=one.reason,
            rests_on="" if brief else " ".join(one.tests()),
            settles=meaning,
            share=one.unmoved,
        )


def simulation_tables(simulation: Simulation) -> Mapping[str, Table]:
    """The tables by name, in reading order."""
    return {
        "evidence": tables.evidence_table(simulation),
        "runs": tables.runs_table(simulation),
        "table5": tables.topics_table(simulation),
        "table6": tables.trials_table(simulation),
        "teams": tables.teams_table(simulation),
        "uniques": tables.uniques_table(simulation),
        **({"unlike": tables.unlike_table(simulation)} if simulation.unlike else {}),
        "table7": tables.rules_table(simulation),
        "budgets": tables.budgets_table(simulation),
        "risks": tables.risks_table(simulation),
        "positions": tables.positions_table(simulation),
    }


def official_lines(simulation: Simulation) -> Iterator[str]:
    """The official judgments in TREC format, line by line."""
    universe, scorer = simulation.standing.universe, simulation.standing.scorer
    for number in simulation.standing.official.qrels.sets:
        judged = scorer.judged(int(number))
        topic_id, ids, grades = (part[judged.topic] for part in (universe.topics, universe.documents, universe.grades))
        for place in judged.documents:
            yield f"{topic_id} 0 {ids[place]} {int(grades[place])}\n"


def pictures(simulation: Simulation) -> Iterator[Picture]:
    """The figures.

    Source: Craswell et al., Overview of the TREC 2019 Deep Learning Track, Figure 9, for the heat maps.
    """
    yield _positions(simulation)
    yield _cost(simulation)


def _positions(simulation: Simulation) -> Picture:
    scorer = simulation.standing.scorer
    maps = []
    for measure in scorer.names:
        order = simulation.order(measure)
        systems = tuple(scorer.ranks.runs[run] for run in order)
        places = simulation.positions(measure)[order]
        maps.append(HeatMap(measure, systems, simulation.position_counts(measure)[order], places))
    total = int(maps[0].counts[0].sum())
    return Picture(
        "positions",
        f"Where every run stood in {total:,} trials: {simulation.options.trials:,} with all teams, and as many with "
        f"each of {len(simulation.standing.teams):,} teams left out. Runs stand in official order from the top; the "
        "darker a cell, the more often the run stood there. The line goes through the official ranks.",
        heat_maps(maps, x_label="position"),
        section="teams",
    )


def _cost(simulation: Simulation) -> Picture:
    budgets = list(simulation.budgets())
    measures = simulation.standing.scorer.names
    spent = np.array([np.mean([one.judgments for one in simulation.judgings_of(name)]) for _, name in budgets])
    found = np.array([np.mean([one.relevant for one in simulation.judgings_of(name)]) for _, name in budgets])
    official = sum(simulation.standing.official.sizes.values())
    at = sum(row.relevant for row in simulation.judged_topics())
    relevant = Panel(
        "Relevant documents found",
        "judgments over all topics",
        "relevant documents",
        (Series("constant budgets", spent, found), Series("official", [official], [at])),
    )
    series = []
    for measure in measures:
        worst = [
            min((one.tau for one in simulation.of_rule(name, measure) if one.tau is not None), default=np.nan)
            for _, name in budgets
        ]
        series.append(Series(measure, spent, np.array(worst, np.float64)))
    order = Panel("Order of the runs", "judgments over all topics", "smallest τ of a trial", tuple(series))
    return Picture(
        "cost",
        "What judgments bring: constant budgets of each topic, means over the trials with all teams. Right: the "
        "smallest τ of a trial against the official order.",
        scatter_panels([relevant, order], columns=2),
        section="cost",
    )


def _facts(simulation: Simulation) -> dict[str, Any]:
    """What `summary.json` holds."""
    official, scorer = simulation.standing.official, simulation.standing.scorer
    return {
        "verdict": verdict_of(simulation).json(),
        "runs": {
            name: {"team": simulation.teams[name], **_by(scorer.names, official.means[:, number])}
            for number, name in enumerate(scorer.ranks.runs)
        },
        "official": {
            "name": official.name,
            "judgments": sum(official.sizes.values()),
            "topics": len(official.qrels.sets),
            "judged_topics": [row._asdict() | {"ratio": row.ratio} for row in simulation.judged_topics()],
        },
        "trials": [_change(one) for one in simulation.changes if one.rule == OriginalSize.name],
        "rules": [_rule(simulation, rule) for rule in dict.fromkeys(one.rule for one in simulation.judgings)],
        "leave_out_uniques": [
            unique._asdict()
            | {
                "changes": [
                    _change(one)
                    for one in simulation.changes
                    if one.rule == LEAVE_OUT_UNIQUES and one.left_out == unique.team
                ]
            }
            for unique in simulation.uniques
        ],
        "overlaps": dict(simulation.overlaps),
        "unlike": [
            system._asdict()
            | {
                "overlap": system.overlap,
                "changes": [
                    _change(one)
                    for one in simulation.changes
                    if one.rule in (*UNLIKE, UNLIKE_PASSED) and one.left_out == system.name
                ],
            }
            for system in simulation.unlike
        ],
        "has_non_relevant": simulation.has_non_relevant,
        "length": simulation.length,
        "notes": list(simulation.notes),
    }


def _rule(simulation: Simulation, rule: str) -> dict[str, Any]:
    judgings = simulation.judgings_of(rule)
    return {
        "rule": rule,
        "judgments": [one.judgments for one in judgings],
        "topics": [len(one.qrels.sets) for one in judgings],
        "relevant": [one.relevant for one in judgings],
        "worst": {
            measure: dict(
                zip(
                    ("tau", "drop"),
                    worst([one for one in simulation.of_rule(rule, measure) if one.left_out == ALL_TEAMS]),
                    strict=True,
                )
            )
            for measure in simulation.standing.scorer.names
        },
    }


def _changes_frame(simulation: Simulation) -> pl.DataFrame:
    """How each qrels ranks the runs, columns as in `CHANGE_SCHEMA`."""
    return pl.DataFrame([tuple(_change(one).values()) for one in simulation.changes], CHANGE_SCHEMA, orient="row")


def _outcomes_frame(simulation: Simulation) -> pl.DataFrame:
    """What each rule made of each topic, columns as in `OUTCOME_SCHEMA`; trial 0 is the official one."""
    official = Judging(
        "Official", 0, ALL_TEAMS, simulation.standing.official.outcomes, simulation.standing.official.qrels, 0, 0
    )
    rows = [
        (
            judging.rule, judging.trial, judging.left_out, one.topic_id, one.pool, one.judged, one.relevant,
            one.kept, one.why_not, one.ending, one.reason, one.steps,
        )
        for judging in (official, *simulation.judgings)
        for one in judging.outcomes
    ]  # fmt: skip
    return pl.DataFrame(rows, OUTCOME_SCHEMA, orient="row")


def _positions_frame(simulation: Simulation) -> pl.DataFrame:
    """The rank of every run in every trial by the original size: rule, trial, left_out, measure, run, position."""
    runs = simulation.standing.scorer.ranks.runs
    rows = [
        (one.trial, one.left_out, one.measure, run, int(position))
        for one in simulation.changes
        if one.rule == OriginalSize.name
        for run, position in zip(runs, one.positions, strict=True)
    ]
    schema = {
        "trial": pl.Int32, "left_out": pl.String, "measure": pl.String, "run": pl.String, "position": pl.Int32,
    }  # fmt: skip
    return pl.DataFrame(rows, schema, orient="row")


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
