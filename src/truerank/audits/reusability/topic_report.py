"""How the topics of a judged collection are shown (the track paper's Table 5)."""

from __future__ import annotations

from typing import Any

from truerank.audits.reusability.judged_topics import CountDifference, TaskTopics, TopicStatistics
from truerank.reports.results import Summary, summarises
from truerank.reports.tables import Cell, Column, Table


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
    """What is to be said below the table."""
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
