"""How pools and the topics of a judged collection (the track paper's Table 5) are shown, and the files of a pool."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from truerank.audits.pool.judged_topics import CountDifference, TaskTopics, TopicStatistics
from truerank.audits.pool.pools import Pool
from truerank.core.result import Summary, summarises, writes
from truerank.core.tables import Cell, Column, Table
from truerank.work.runs import Run


@summarises(TopicStatistics)
def _summary(found: TopicStatistics) -> Summary:
    facts = {
        "source": found.source,
        "min_relevant": found.keeping.min_relevant,
        "max_ratio": found.keeping.max_ratio,
        "tasks": [_facts(task) for task in found.tasks],
    }
    return Summary((topic_table(found),), facts)


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
        parts = [
            f"{row.topic_id} ({row.judged:,} here, {row.judged_in_qrels:,} there{_relevant_differ(row)})"
            for row in task.differences
        ]
        told = f"differ in {', '.join(parts)}" if parts else "agree in every topic that both have"
        said.append(f"{title}{task.qrels} and the rows {told}: by the qrels {judged:,} judged, {kept:,} kept.")
    if task.beyond:
        said.append(f"{title}kept here or judged there, but not both: {', '.join(task.beyond)}.")
    if task.topics and not task.kept and task.only_relevant:
        said.append(
            f"{title}no topic is kept because every judgment is relevant: these judgments lack their non-relevant "
            "rows, so that the share of relevant documents says nothing. Give the judgments with all rows, or "
            "--max-ratio none."
        )
    return said


def _facts(task: TaskTopics) -> dict[str, Any]:
    judged, kept = task.by_qrels()
    return {
        "task": task.name,
        "topics": len(task.topics),
        "kept": len(task.kept),
        "judged": task.judged,
        "judged_kept": task.judged_kept,
        "rel": task.rel,
        "left_out": {topic.topic_id: topic.why_not for topic in task.left_out},
        "rows": [{**topic._asdict(), "ratio": topic.ratio, "kept": not topic.why_not} for topic in task.topics],
        "qrels": task.qrels or None,
        "judged_by_qrels": judged if task.qrels else None,
        "judged_kept_by_qrels": kept if task.qrels else None,
        "differences": [row._asdict() for row in task.differences],
        "beyond": list(task.beyond),
    }


def _relevant_differ(row: CountDifference) -> str:
    if row.relevant == row.relevant_in_qrels:
        return ""
    return f"; relevant {row.relevant:,} and {row.relevant_in_qrels:,}"


@summarises(Pool)
def _pool_summary(pool: Pool) -> Summary:
    return Summary((_in_words(pool), team_table(pool), load_table(pool)), _pool_facts(pool))


@writes(Pool)
def _write(pool: Pool, job: Run) -> None:
    job.text("pool.csv", pool.documents.write_csv())
    job.text("topics.csv", pool_table(pool).csv())
    job.text("teams.csv", team_table(pool).csv())
    job.text("batches.csv", batch_table(pool).csv())


def pool_table(pool: Pool) -> Table:
    columns = (
        Column("topic"),
        *Column.numbers(",d", "documents", "only sparse", "of one team", "judged", "relevant"),
    )
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
    columns = (Column("annotator"), Column("topic"), *Column.numbers(",d", "documents"), Column("file"))
    rows = tuple((one.annotator, one.topic_id, len(one.documents), one.file) for one in pool.work)
    return Table("Who judges what", columns, rows)


def load_table(pool: Pool) -> Table:
    columns = (Column("annotator"), *Column.numbers(",d", "topics", "documents"), Column("file"))
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
        "topics": [row._asdict() for row in pool.topics],
        "teams": [row._asdict() for row in pool.teams],
        "without": list(pool.without),
        "batches": [
            {"annotator": one.annotator, "topic_id": one.topic_id, "documents": len(one.documents), "file": one.file}
            for one in pool.work
        ],
    }
