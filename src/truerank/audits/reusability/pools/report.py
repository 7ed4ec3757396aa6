"""How pools are shown, and which files they leave behind."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from truerank.audits.reusability.pools.results import Pool
from truerank.reports.results import Summary, summarises, writes
from truerank.reports.tables import Column, Table
from truerank.work.runs import Run


@summarises(Pool)
def _summary(pool: Pool) -> Summary:
    return Summary((_in_words(pool), team_table(pool), load_table(pool)), _facts(pool))


@writes(Pool)
def _write(pool: Pool, job: Run) -> None:
    job.text("pool.csv", pool.documents.write_csv())
    job.text("topics.csv", topic_table(pool).csv())
    job.text("teams.csv", team_table(pool).csv())
    job.text("batches.csv", batch_table(pool).csv())


def topic_table(pool: Pool) -> Table:
    """The sizes of the pools."""
    numbers = ("documents", "only sparse", "of one team", "judged", "relevant")
    columns = (Column("topic"), *map(_number, numbers))
    return Table(f"{len(pool.topics):,} pools", columns, tuple(tuple(row) for row in pool.topics))


def team_table(pool: Pool) -> Table:
    """What each team brought."""
    numbers = ("runs", "documents", "unique", "relevant", "unique relevant")
    without = () if pool.graded else ("No judgments were given: nothing is known to be relevant.",)
    return Table(
        "What each team brought",
        (Column("team"), *map(_number, numbers)),
        tuple(tuple(row) for row in pool.teams),
        notes=(f"Unique: no other team has it among its first {pool.depth:,} documents.", *without),
    )


def batch_table(pool: Pool) -> Table:
    """Who judges what."""
    columns = (Column("annotator"), Column("topic"), _number("documents"), Column("file"))
    rows = tuple((one.annotator, one.topic_id, len(one.documents), one.file) for one in pool.work)
    return Table("Who judges what", columns, rows)


def load_table(pool: Pool) -> Table:
    """How much each annotator has."""
    columns = (Column("annotator"), _number("topics"), _number("documents"), Column("file"))
    rows = []
    for annotator in pool.annotators:
        mine = [one for one in pool.work if one.annotator == annotator]
        file = next((one.file for one in mine), "")
        rows.append((annotator, len(mine), sum(len(one.documents) for one in mine), file))
    return Table("To be judged", columns, tuple(rows))


def _in_words(pool: Pool) -> str:
    """The pool in a sentence or two."""
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


def _facts(pool: Pool) -> dict[str, Any]:
    """Everything but the documents, as plain numbers and texts."""
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


def _number(title: str) -> Column:
    return Column(title, align="right", format=",d")
