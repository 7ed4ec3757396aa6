"""What a pool is: its topics, what each team brought, and who judges what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from truerank.audits.reusability.pools.batches import Batch
from truerank.audits.reusability.pools.options import PoolOptions
from truerank.reports.tables import Column, Table

__all__ = ["Pool", "PoolTeam", "PoolTopic", "team_rows", "topic_rows"]


class PoolTopic(NamedTuple):
    """One topic's pool: its size, documents that only sparse judgments name, those that one team alone brought, and
    how many are judged and relevant."""

    topic_id: str
    documents: int
    sparse_only: int
    unique: int
    judged: int
    relevant: int


class PoolTeam(NamedTuple):
    """What one team brought: documents of the pool that its runs hold (down to the depth), those that no other team
    brought, and the relevant ones among both."""

    team: str
    runs: int
    documents: int
    unique: int
    relevant: int
    unique_relevant: int


@dataclass(frozen=True, eq=False)
class Pool:
    """The pools of all topics.

    Attributes:
        documents: topic_id, doc_id, order (of judging, within the topic), place (the best one in a run, null where only
            sparse judgments name it), runs and teams (how many have it), sparse, grade (null where nobody judged it).
        topics: their pools.
        teams: what each brought.
        options: how the pools were made.
        work: who judges what.
        without: topics that no run has.
        graded: whether judgments were given.
        out: the folder that was written, if any.
    """

    documents: pl.DataFrame
    topics: tuple[PoolTopic, ...]
    teams: tuple[PoolTeam, ...]
    options: PoolOptions
    work: tuple[Batch, ...]
    without: tuple[str, ...] = ()
    graded: bool = False
    out: Path | None = None

    def with_files(self, out: Path, work: tuple[Batch, ...]) -> Pool:
        """The same with what was written."""
        return replace(self, out=out, work=work)

    def __len__(self) -> int:
        """The number of documents over all topics."""
        return len(self.documents)

    def topic_table(self) -> Table:
        """The sizes of the pools."""
        columns = (
            Column("topic"),
            *(_number(title) for title in ("documents", "only sparse", "of one team", "judged", "relevant")),
        )
        return Table(f"{len(self.topics):,} pools", columns, tuple(tuple(row) for row in self.topics))

    def team_table(self) -> Table:
        """What each team brought."""
        columns = (
            Column("team"),
            *(_number(title) for title in ("runs", "documents", "unique", "relevant", "unique relevant")),
        )
        without = () if self.graded else ("No judgments were given: nothing is known to be relevant.",)
        return Table(
            "What each team brought",
            columns,
            tuple(tuple(row) for row in self.teams),
            notes=(f"Unique: no other team has it among its first {self.options.reach:,} documents.", *without),
        )

    def batch_table(self) -> Table:
        """Who judges what."""
        columns = (Column("assessor"), Column("topic"), _number("documents"), Column("file"))
        rows = tuple((one.assessor, one.topic_id, len(one.documents), one.file) for one in self.work)
        return Table("Who judges what", columns, rows)

    def load_table(self) -> Table:
        """How much each assessor has."""
        columns = (Column("assessor"), _number("topics"), _number("documents"), Column("file"))
        rows = []
        for assessor in self.options.assessors:
            mine = [one for one in self.work if one.assessor == assessor]
            file = next((one.file for one in mine), "")
            rows.append((assessor, len(mine), sum(len(one.documents) for one in mine), file))
        return Table("To be judged", columns, tuple(rows))

    def summary(self) -> str:
        """The pool in a sentence or two."""
        sizes = [row.documents for row in self.topics]
        middle = f"{min(sizes):,} to {max(sizes):,} a topic, {sum(sizes) / len(sizes):.1f} on average"
        parts = [
            f"{len(self):,} documents of {len(self.topics):,} topics ({middle}) from "
            f"{sum(team.runs for team in self.teams):,} runs of {len(self.teams):,} teams, "
            f"method {self.options.method}, depth {self.options.reach:,}."
        ]
        if self.graded:
            judged, relevant = sum(row.judged for row in self.topics), sum(row.relevant for row in self.topics)
            parts.append(f"{judged:,} are judged, {relevant:,} relevant.")
        if self.without:
            parts.append(f"No run has the topics {', '.join(self.without)}.")
        return " ".join(parts)

    def text(self) -> str:
        """The pool for a terminal."""
        return "\n".join((self.summary(), "", self.team_table().text(), self.load_table().text()))

    def json(self) -> dict[str, Any]:
        """Everything but the documents, as plain numbers and texts."""
        return {
            "out": None if self.out is None else str(self.out),
            "documents": len(self),
            "options": self.options.json(),
            "topics": [row._asdict() for row in self.topics],
            "teams": [row._asdict() for row in self.teams],
            "without": list(self.without),
            "batches": [
                {"assessor": one.assessor, "topic_id": one.topic_id, "documents": len(one.documents), "file": one.file}
                for one in self.work
            ],
        }


def topic_rows(documents: pl.DataFrame, names: Sequence[str], relevant_from: int = 1) -> tuple[PoolTopic, ...]:
    """The sizes of the pools, in the order of the names."""
    counted = documents.group_by("topic_id").agg(
        pl.len().alias("documents"),
        (pl.col("runs") == 0).sum().alias("sparse_only"),
        (pl.col("teams") == 1).sum().alias("unique"),
        pl.col("grade").is_not_null().sum().alias("judged"),
        (pl.col("grade") >= relevant_from).sum().alias("relevant"),
    )
    found = {row[0]: PoolTopic(row[0], *map(int, row[1:])) for row in counted.iter_rows()}
    return tuple(found[name] for name in names)


def team_rows(
    documents: pl.DataFrame, members: pl.DataFrame, teams: Mapping[str, str], relevant_from: int = 1
) -> tuple[PoolTeam, ...]:
    """What each team brought, in the order in which the runs name them.

    Args:
        documents: the pool.
        members: topic_id, doc_id and team of what the runs hold down to the depth.
        teams: by run.
        relevant_from: the lowest grade that counts as relevant.
    """
    brought = members.select("topic_id", "doc_id", "team").unique()
    brought = brought.join(documents.select("topic_id", "doc_id", "teams", "grade"), on=["topic_id", "doc_id"])
    alone, relevant = pl.col("teams") == 1, (pl.col("grade") >= relevant_from).fill_null(False)
    counted = brought.group_by("team").agg(
        pl.len().alias("documents"),
        alone.sum().alias("unique"),
        relevant.sum().alias("relevant"),
        (alone & relevant).sum().alias("unique_relevant"),
    )
    found = {row[0]: tuple(map(int, row[1:])) for row in counted.iter_rows()}
    sizes = {team: sum(one == team for one in teams.values()) for team in dict.fromkeys(teams.values())}
    return tuple(PoolTeam(team, size, *found.get(team, (0, 0, 0, 0))) for team, size in sizes.items())


def _number(title: str) -> Column:
    return Column(title, align="right", format=",d")
