"""How pools, judged topics (the track paper's Table 5) and simulations are shown, and the files of a pool."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Final

import numpy as np
import polars as pl

from truerank.arrays import frame_schema
from truerank.audits.pool.judged_topics import TaskTopics, TopicStatistics
from truerank.audits.pool.pools import Pool
from truerank.audits.pool.simulation import Simulation
from truerank.audits.pool.standings import ALL_TEAMS, COMPLETE, LEAVE_OUT_UNIQUES, RANDOM, Change, Judging
from truerank.audits.pool.stopping import OriginalSize
from truerank.audits.pool.unlike import UNLIKE, UNLIKE_PASSED
from truerank.audits.pool.verdict import verdict_of
from truerank.core.figures.export import Picture
from truerank.core.figures.heat_maps import HeatMap, heat_maps
from truerank.core.figures.lines import Panel, Series, scatter_panels
from truerank.core.page import Prose
from truerank.core.plain import picked
from truerank.core.report import Report, ReportSection
from truerank.core.result import Summary, page_note, reports, summarises, writes
from truerank.core.tables import Cell, Column, Table
from truerank.core.verdict import Verdict
from truerank.core.views import heads
from truerank.work.publishing import publish
from truerank.work.runs import Run


@summarises(TopicStatistics)
def _topics_summary(found: TopicStatistics) -> Summary:
    facts = picked(found, "source, min_relevant=keeping.min_relevant, max_ratio=keeping.max_ratio")
    return Summary((topic_table(found),), {**facts, "tasks": [_topic_facts(task) for task in found.tasks]})


def topic_table(found: TopicStatistics) -> Table:
    """Relevant, judged and their ratio, by topic and task, with the totals below."""
    ids = list(dict.fromkeys(topic.topic_id for task in found.tasks for topic in task.topics))
    columns: list[Column] = [Column("topic")]
    for task in found.tasks:
        above = (task.name,) if task.name else ()
        columns += [
            *Column.numbers(",d", "relevant", "judged", above=above),
            Column("ratio", above, "right", ".3f"),
            Column("left out", above),
        ]
    by_task = [{topic.topic_id: topic for topic in task.topics} for task in found.tasks]
    body: list[tuple[Cell, ...]] = []
    for topic_id in ids:
        cells: list[Cell] = [topic_id]
        for by_topic in by_task:
            one = by_topic.get(topic_id)
            cells += [None] * 4 if one is None else [one.relevant, one.judged, one.ratio, one.why_not]
        body.append(tuple(cells))
    totals: list[Cell] = ["judged in all"]
    sizes: list[Cell] = ["in kept topics"]
    for task in found.tasks:
        totals += [None, task.judged, None, ""]
        sizes += [sum(topic.relevant for topic in task.kept), task.judged_kept, None, ""]
    ratio = "" if found.keeping.max_ratio is None else f" and relevant/judged at most {found.keeping.max_ratio:g}"
    rule = f"A topic is kept with at least {found.keeping.min_relevant} relevant documents{ratio}."
    return Table(
        f"Judging statistics of {found.source}",
        tuple(columns),
        (*body, tuple(totals), tuple(sizes)),
        notes=(rule, *(note for task in found.tasks for note in topic_notes(task))),
        rules=(len(body),),
    )


def topic_notes(task: TaskTopics) -> list[str]:
    title = f"{task.name}: " if task.name else ""
    reasons = dict.fromkeys(topic.why_not for topic in task.left_out)
    said = [
        f"{title}{len(task.kept):,} of {len(task.topics):,} topics are kept; {task.judged:,} judged, "
        f"{task.judged_kept:,} in the kept ones."
    ]
    for reason in reasons:
        named = ", ".join(topic.topic_id for topic in task.left_out if topic.why_not == reason)
        said.append(f"{title}left out, {reason}: {named}.")
    if task.qrels:
        judged, kept = task.by_qrels()
        parts = []
        for row in task.differences:
            differ = f"; relevant {row.relevant:,} and {row.relevant_in_qrels:,}"
            differ = "" if row.relevant == row.relevant_in_qrels else differ
            parts.append(f"{row.topic_id} ({row.judged:,} here, {row.judged_in_qrels:,} there{differ})")
        text = f"differ in {', '.join(parts)}" if parts else "agree in every topic that both have"
        said.append(f"{title}{task.qrels} and the rows {text}: by the qrels {judged:,} judged, {kept:,} kept.")
    if task.beyond:
        said.append(f"{title}kept here or judged there, but not both: {', '.join(task.beyond)}.")
    if task.topics and not task.kept and task.only_relevant:
        said.append(
            f"{title}no topic is kept because every judgment is relevant: these judgments lack their non-relevant "
            "rows, so that the share of relevant documents says nothing. Give the judgments with all rows, or "
            "--max-ratio none."
        )
    return said


def _topic_facts(task: TaskTopics) -> dict[str, Any]:
    judged, kept = task.by_qrels()
    return {
        "task": task.name,
        "topics": len(task.topics),
        "kept": len(task.kept),
        **picked(task, "judged, judged_kept, rel"),
        "left_out": {topic.topic_id: topic.why_not for topic in task.left_out},
        "rows": [{**topic._asdict(), "ratio": topic.ratio, "kept": not topic.why_not} for topic in task.topics],
        "qrels": task.qrels or None,
        "judged_by_qrels": judged if task.qrels else None,
        "judged_kept_by_qrels": kept if task.qrels else None,
        **picked(task, "differences, beyond"),
    }


@summarises(Pool)
def _pool_summary(pool: Pool) -> Summary:
    return Summary((_in_words(pool), team_table(pool), load_table(pool)), _pool_facts(pool))


@writes(Pool)
def _write_pool(pool: Pool, job: Run) -> None:
    job.text("pool.csv", pool.documents.write_csv())
    job.text("topics.csv", pool_table(pool).csv())
    job.text("teams.csv", team_table(pool).csv())
    job.text("batches.csv", batch_table(pool).csv())


def pool_table(pool: Pool) -> Table:
    columns = heads("topic, documents:,d, only_sparse:,d, of_one_team:,d, judged:,d, relevant:,d")
    return Table(f"{len(pool.topics):,} pools", columns, tuple(tuple(row) for row in pool.topics))


def team_table(pool: Pool) -> Table:
    columns = Column.numbers(",d", "runs", "documents", "unique", "relevant", "unique relevant")
    without = () if pool.graded else ("No judgments were given: nothing is known to be relevant.",)
    return Table(
        "What each team brought",
        (Column("team"), *columns),
        tuple(tuple(row) for row in pool.teams),
        notes=(f"Unique: no other team has it among its first {pool.depth:,} documents.", *without),
    )


def batch_table(pool: Pool) -> Table:
    columns = heads("annotator, topic, documents:,d, file")
    rows = tuple((one.annotator, one.topic_id, len(one.documents), one.file) for one in pool.work)
    return Table("Who judges what", columns, rows)


def load_table(pool: Pool) -> Table:
    columns = heads("annotator, topics:,d, documents:,d, file")
    rows = []
    for annotator in pool.annotators:
        mine = [one for one in pool.work if one.annotator == annotator]
        file = next((one.file for one in mine), "")
        rows.append((annotator, len(mine), sum(len(one.documents) for one in mine), file))
    return Table("To be judged", columns, tuple(rows))


def _in_words(pool: Pool) -> str:
    sizes = [row.documents for row in pool.topics]
    middle = f"{min(sizes):,} to {max(sizes):,} a topic, {sum(sizes) / len(sizes):.1f} on average"
    parts = [
        f"{len(pool):,} documents of {len(pool.topics):,} topics ({middle}) from "
        f"{sum(team.runs for team in pool.teams):,} runs of {len(pool.teams):,} teams, "
        f"method {pool.choice.method}, depth {pool.depth:,}."
    ]
    if pool.graded:
        judged, relevant = sum(row.judged for row in pool.topics), sum(row.relevant for row in pool.topics)
        parts.append(f"{judged:,} are judged, {relevant:,} relevant.")
    if pool.without:
        parts.append(f"No run has the topics {', '.join(pool.without)}.")
    return " ".join(parts)


def _pool_facts(pool: Pool) -> dict[str, Any]:
    return {
        "out": None if pool.out is None else str(pool.out),
        "documents": len(pool),
        "options": {"depth": pool.depth, **asdict(pool.choice), "annotators": list(pool.annotators)},
        **picked(pool, "topics, teams, without"),
        "batches": [
            {"annotator": one.annotator, "topic_id": one.topic_id, "documents": len(one.documents), "file": one.file}
            for one in pool.work
        ],
    }


_FORMATS: Final = {
    "τ": ".4f",
    "smallest τ": ".4f",
    "largest swap": ".4f",
    "overlap": ".0%",
    "ungraded": ".0%",
    "there": ".0%",
}
_NONE: Final = "–"


def _columns(*titles: str, above: tuple[str, ...] = ()) -> tuple[Column, ...]:
    return tuple(Column(title, above, "right", _FORMATS.get(title, ",d")) for title in titles)


def _by_measure(simulation: Simulation, *titles: str, below: tuple[str, ...] = ()) -> Iterator[Column]:
    """The same columns for each measure."""
    for measure in simulation.standing.scorer.names:
        yield from _columns(*titles, above=(measure, *below))


def topics_table(simulation: Simulation) -> Table:
    task = TaskTopics("", simulation.judged_topics(), simulation.options.rel)
    name = f"the official qrels ({simulation.standing.official.name})"
    return topic_table(TopicStatistics(name, (task,), simulation.keeping))


def evidence_table(simulation: Simulation) -> Table:
    columns = (
        Column("measure"), Column("test"), Column("word"), *_columns("orders", "smallest τ", "ranks lost"),
        Column("by"), *_columns("ranks won", "largest swap"),
    )  # fmt: skip
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            verdict.subject, one.test, one.word, one.cases, one.tau, one.lost, one.lost_run if one.lost else "",
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
            columns += _columns("τ", "drop", above=(above, measure))
    rows: list[tuple[Cell, ...]] = []
    for trial in range(1, simulation.options.trials + 1):
        cells: list[Cell] = [str(trial)]
        for left_out in (False, True):
            for measure in measures:
                every = simulation.of_rule(OriginalSize.name, measure)
                cells += worst([one for one in every if one.trial == trial and (one.left_out != ALL_TEAMS) == left_out])
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
    headings = (("judgments", "total"), ("topics", "evaluation"), ("relevant", "found"))
    columns = (
        Column("criterion"),
        *(Column(title, (above,), align="right") for title, above in headings),
        *_by_measure(simulation, "τ", "drop"),
    )
    official = simulation.standing.official
    relevant = sum(row.relevant for row in simulation.judged_topics())
    sizes = (f"{size:,}" for size in (sum(official.sizes.values()), len(official.qrels), relevant))
    rows: list[tuple[Cell, ...]] = [("Official", *sizes, *([None, None] * len(measures)))]
    for rule in (*simulation.rules, RANDOM, COMPLETE):
        cells: list[Cell] = [rule, *_ranges(simulation.judgings_of(rule))]
        for measure in measures:
            cells += worst([one for one in simulation.of_rule(rule, measure) if one.left_out == ALL_TEAMS])
        rows.append(tuple(cells))
    return Table(
        "Effect of stopping criteria on the quality of the qrels and the judgments needed.",
        columns,
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
    rows = []
    for team, own in simulation.standing.teams.items():
        cells: list[Cell] = [team, len(own)]
        for measure in simulation.standing.scorer.names:
            changes = [one for one in simulation.of_rule(OriginalSize.name, measure) if one.left_out == team]
            cells += [*worst(changes), _own_drop(changes), _own_gain(changes)]
        rows.append(tuple(cells))
    measured = _by_measure(simulation, "τ", "drop", "own drop", "own gain", below=("worst trial",))
    return Table(
        "Each team left out of the pools: how the order of runs changes.",
        (Column("team left out"), *_columns("runs"), *measured),
        tuple(rows),
        notes=("Own: the most ranks that a run of this team loses or wins; drop: that any run loses.",),
    )


def uniques_table(simulation: Simulation) -> Table:
    """The classical test: the official qrels without the relevant documents that one team alone contributed."""
    rows = []
    for unique in simulation.uniques:
        cells: list[Cell] = [unique.team, simulation.overlaps[unique.team], *unique[1:]]
        for measure in simulation.standing.scorer.names:
            changes = [one for one in simulation.of_rule(LEAVE_OUT_UNIQUES, measure) if one.left_out == unique.team]
            cells += [*worst(changes), _own_drop(changes)]
        rows.append(tuple(cells))
    unique_columns = _columns("documents", "relevant", "topics", above=("unique",))
    measured = _by_measure(simulation, "τ", "drop", "own drop")
    return Table(
        "Leave out uniques: the official qrels without what one team alone contributed to the pools.",
        (Column("team"), *_columns("overlap"), *unique_columns, *measured),
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
    rows = []
    for system in simulation.unlike:
        ungraded = None if system.ungraded is None or not system.first else system.ungraded / system.first
        cells: list[Cell] = [system.name, system.overlap, ungraded, system.new_relevant]
        for measure in simulation.standing.scorer.names:
            changes = [
                one for rule in UNLIKE for one in simulation.of_rule(rule, measure) if one.left_out == system.name
            ]
            cells += [
                int(changes[0].positions[-1]), next(worst(changes)), _own_drop(changes), _own_gain(changes),
                max(one.largest_swap for one in changes),
            ]  # fmt: skip
        rows.append(tuple(cells))
    measured = _by_measure(simulation, "rank", "τ", "own drop", "own gain", "largest swap")
    return Table(
        "Systems unlike the runs, made from the collection and not pooled.",
        (Column("system"), *_columns("overlap", "ungraded", "relevant outside the pools"), *measured),
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
    rows = []
    before = 0.0, 0.0
    for budget, name in simulation.budgets():
        judgings = simulation.judgings_of(name)
        spent, found = (float(np.mean([getattr(one, what) for one in judgings])) for what in ("judgments", "relevant"))
        price = (spent - before[0]) / (found - before[1]) if found > before[1] else None
        before = spent, found
        cells: list[Cell] = [budget, *_ranges(judgings), price]
        for measure in simulation.standing.scorer.names:
            cells += worst(simulation.of_rule(name, measure))
        rows.append(tuple(cells))
    return Table(
        "What the next judgments cost: constant budgets of each topic, all teams.",
        (
            *_columns("budget"),
            *Column.numbers("", "judgments", "topics", "relevant"),
            *Column.numbers(",.1f", "judgments per further relevant"),
            *_by_measure(simulation, "τ", "drop"),
        ),
        tuple(rows),
        notes=("Means over the trials [fewest–most]; the smallest τ and the largest drop against the official order.",),
    )


def risks_table(simulation: Simulation) -> Table:
    measure = simulation.standing.scorer.names[0]
    columns = (
        Column("topic"),
        *Column.numbers(".4f", "change", above=(measure,)),
        *Column.numbers(".1%", "share", above=(measure,)),
        *_columns("relevant", "judged"),
        *Column.numbers(".3f", "ratio"),
    )
    rows = tuple((*risk, risk.ratio) for risk in verdict_of(simulation).topics)
    return Table(
        "Topics that carry the risk.",
        columns,
        rows,
        notes=(f"Change: mean absolute difference of a topic's {measure}, over trials and runs of the team left out.",),
    )


def positions_table(simulation: Simulation) -> Table:
    measures = simulation.standing.scorer.names
    counts = {measure: simulation.position_counts(measure) for measure in measures}
    rows = []
    for run in simulation.order(measures[0]):
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
        (Column("run"), Column("team"), *_by_measure(simulation, "official", "best", "worst", "there")),
        tuple(rows),
        notes=("There: the share of trials and teams left out in which the run has its official rank.",),
    )


def runs_table(simulation: Simulation) -> Table:
    scorer = simulation.standing.scorer
    columns = (Column("run"), Column("team"), *Column.numbers(".4f", *scorer.names))
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            scorer.ranks.runs[run],
            simulation.teams[scorer.ranks.runs[run]],
            *map(float, simulation.standing.official.means[:, run]),
        )
        for run in simulation.order(scorer.names[0])
    )
    return Table(f"The runs by the official qrels, {len(simulation.standing.official.qrels):,} topics.", columns, rows)


def worst(changes: Sequence[Change]) -> Iterator[Cell]:
    """The smallest τ and the largest drop; dashes where there is nothing."""
    yield min((one.tau for one in changes if one.tau is not None), default=None)
    yield max((one.drop for one in changes), default=None)


def _own_drop(changes: Sequence[Change]) -> int:
    return max(0, *(one.own or 0 for one in changes))


def _own_gain(changes: Sequence[Change]) -> int:
    return max(one.own_gain or 0 for one in changes)


def _ranges(judgings: Sequence[Judging]) -> Iterator[str]:
    """Judgments, topics and relevant documents: the mean over trials, the fewest and the most."""
    for values in zip(*((one.judgments, len(one.qrels), one.relevant) for one in judgings), strict=True):
        low, high = min(values), max(values)
        yield f"{low:,}" if low == high else f"{float(np.mean(values)):,.1f} [{low:,}–{high:,}]"
    if not judgings:
        yield from (_NONE,) * 3


#: How each trial ranks the runs: one row for each rule, trial, team left out and measure.
CHANGE_SCHEMA: Final = frame_schema(
    "rule: String, trial: Int32, left_out measure: String, tau: Float64, drop: Int32, dropped: String, "
    "own_drop: Int32, own_run: String, own_gain: Int32, largest_swap: Float64"
)
#: What each rule made of each topic: one row for each rule, trial, team left out and topic.
OUTCOME_SCHEMA: Final = frame_schema(
    "rule: String, trial: Int32, left_out topic_id: String, pool judged relevant: Int32, kept: Boolean, why_not ending "
    "reason: String, steps: Int32"
)
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
    "HELD": "New systems stood where pooling them would have put them, as far as was tried.",
    "WITH CARE": "Small differences between a new system and an old one mean little.",
    "NOT HELD": "A new system may be misranked.",
    "UNKNOWN": "No new system was misranked, but too little was tried.",
}


@summarises(Simulation)
def _simulation_summary(simulation: Simulation) -> Summary:
    found = verdict_of(simulation)
    shown = [table for name, table in simulation_tables(simulation).items() if name not in _LONG]
    return Summary(
        ("\n".join(found.sentences()), found.criteria(), *shown),
        _simulation_facts(simulation),
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
        title="Are systems treated fairly that nobody judged?",
        lead=f"{runs:,} runs of {len(simulation.standing.teams):,} teams; {len(official.qrels):,} topics with "
        f"{sum(official.sizes.values()):,} judgments ({official.name}); {simulation.options.trials:,} simulated trials "
        "with all teams and with each team left out.",
        verdicts=tuple(_measure_verdicts(simulation, brief=True)),
        sections=tuple(ReportSection(name, _TITLES[name], tuple(some)) for name, some in parts.items()),
        tables=named,
        json=_simulation_facts(simulation),
        footer=(
            "A simulation shows what became of the systems that were tried. It bounds nothing for a system unlike all "
            "of them. This page needs no network.",
        ),
    )


@writes(Simulation)
def _write_simulation(simulation: Simulation, job: Run) -> None:
    job.text("official.qrels", "".join(official_lines(simulation)))
    changes = [tuple(_change(one).values()) for one in simulation.changes]
    job.parquet("changes.parquet", pl.DataFrame(changes, CHANGE_SCHEMA, orient="row"))
    official = Judging(
        "Official", 0, ALL_TEAMS, simulation.standing.official.outcomes, simulation.standing.official.qrels, 0, 0
    )
    rows = [
        (judging.rule, judging.trial, judging.left_out, *one[:-1])
        for judging in (official, *simulation.judgings)
        for one in judging.outcomes
    ]
    job.parquet("outcomes.parquet", pl.DataFrame(rows, OUTCOME_SCHEMA, orient="row"))
    job.parquet("positions.parquet", _positions_frame(simulation))
    job.parquet("traces.parquet", simulation.traces.frame())
    publish(_report(simulation), job)


def _measure_verdicts(simulation: Simulation, *, brief: bool = False) -> Iterator[Verdict]:
    """One verdict for each measure; brief ones leave to the page's table what each test showed."""
    explained: set[str] = set()
    for one in verdict_of(simulation).measures:
        change = f"What would change this: {one.settles}"
        meaning = change if brief and one.word in explained else f"{_MEANING[one.word]} {change}"
        explained.add(one.word)
        yield replace(one, rests_on="" if brief else " ".join(one.tests()), settles=meaning, share=one.unmoved)


def simulation_tables(simulation: Simulation) -> Mapping[str, Table]:
    return {
        "evidence": evidence_table(simulation),
        "runs": runs_table(simulation),
        "table5": topics_table(simulation),
        "table6": trials_table(simulation),
        "teams": teams_table(simulation),
        "uniques": uniques_table(simulation),
        **({"unlike": unlike_table(simulation)} if simulation.unlike else {}),
        "table7": rules_table(simulation),
        "budgets": budgets_table(simulation),
        "risks": risks_table(simulation),
        "positions": positions_table(simulation),
    }


def official_lines(simulation: Simulation) -> Iterator[str]:
    universe, scorer = simulation.standing.universe, simulation.standing.scorer
    for number in simulation.standing.official.qrels:
        judged = scorer.judged(int(number))
        topic_id, ids, grades = (part[judged.topic] for part in (universe.topics, universe.documents, universe.grades))
        for place in judged.documents:
            yield f"{topic_id} 0 {ids[place]} {int(grades[place])}\n"


def pictures(simulation: Simulation) -> Iterator[Picture]:
    """The figures.

    Source: Craswell et al., Overview of the TREC 2019 Deep Learning Track, Figure 9, for the heat maps.
    """
    scorer = simulation.standing.scorer
    maps = []
    for measure in scorer.names:
        order = simulation.order(measure)
        systems = tuple(scorer.ranks.runs[run] for run in order)
        places = simulation.positions(measure)[order]
        maps.append(HeatMap(measure, systems, simulation.position_counts(measure)[order], places))
    total = int(maps[0].counts[0].sum())
    yield Picture(
        "positions",
        f"Where every run stood in {total:,} trials: {simulation.options.trials:,} with all teams, and as many with "
        f"each of {len(simulation.standing.teams):,} teams left out. Runs stand in official order from the top; the "
        "darker a cell, the more often the run stood there. The line goes through the official ranks.",
        heat_maps(maps, x_label="position"),
        section="teams",
    )
    yield _cost(simulation)


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


def _simulation_facts(simulation: Simulation) -> dict[str, Any]:
    official, scorer = simulation.standing.official, simulation.standing.scorer

    def changes(left_out: str, *rules: str) -> list[dict[str, Any]]:
        return [_change(one) for one in simulation.changes if one.rule in rules and one.left_out == left_out]

    return {
        "verdict": verdict_of(simulation).json(),
        "runs": {
            name: {
                "team": simulation.teams[name],
                **dict(zip(scorer.names, official.means[:, number].tolist(), strict=True)),
            }
            for number, name in enumerate(scorer.ranks.runs)
        },
        "official": {
            "name": official.name,
            "judgments": sum(official.sizes.values()),
            "topics": len(official.qrels),
            "judged_topics": [row._asdict() | {"ratio": row.ratio} for row in simulation.judged_topics()],
        },
        "trials": [_change(one) for one in simulation.changes if one.rule == OriginalSize.name],
        "rules": [_rule(simulation, rule) for rule in dict.fromkeys(one.rule for one in simulation.judgings)],
        "leave_out_uniques": [
            unique._asdict() | {"changes": changes(unique.team, LEAVE_OUT_UNIQUES)} for unique in simulation.uniques
        ],
        "overlaps": dict(simulation.overlaps),
        "unlike": [
            system._asdict() | {"overlap": system.overlap, "changes": changes(system.name, *UNLIKE, UNLIKE_PASSED)}
            for system in simulation.unlike
        ],
        **picked(simulation, "has_non_relevant, length, notes"),
    }


def _rule(simulation: Simulation, rule: str) -> dict[str, Any]:
    judgings, smallest = simulation.judgings_of(rule), {}
    for measure in simulation.standing.scorer.names:
        tau, drop = worst([one for one in simulation.of_rule(rule, measure) if one.left_out == ALL_TEAMS])
        smallest[measure] = {"tau": tau, "drop": drop}
    return {
        "rule": rule,
        "judgments": [one.judgments for one in judgings],
        "topics": [len(one.qrels) for one in judgings],
        "relevant": [one.relevant for one in judgings],
        "worst": smallest,
    }


def _positions_frame(simulation: Simulation) -> pl.DataFrame:
    runs = simulation.standing.scorer.ranks.runs
    rows = [
        (one.trial, one.left_out, one.measure, run, int(position))
        for one in simulation.changes
        if one.rule == OriginalSize.name
        for run, position in zip(runs, one.positions, strict=True)
    ]
    schema = frame_schema("trial: Int32, left_out measure run: String, position: Int32")
    return pl.DataFrame(rows, schema, orient="row")


def _change(one: Change) -> dict[str, Any]:
    """A change by the names of `CHANGE_SCHEMA`."""
    found = dict(zip(CHANGE_SCHEMA, one, strict=False))
    return found | {name: found[name] or None for name in ("left_out", "dropped", "own_run")}
