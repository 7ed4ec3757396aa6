"""What a pool is: its topics, what each team brought, and who judges what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import polars as pl

from truerank.audits.reusability.pools.batches import Batch
from truerank.audits.reusability.pools.options import PoolMethod
from truerank.reports.results import Result


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


@dataclass(frozen=True, eq=False, repr=False)
class Pool(Result, shown_in="truerank.audits.reusability.pools.report"):
    """The pools of all topics.

    Attributes:
        documents: topic_id, doc_id, order (of judging, within the topic), place (the best one in a run, null where only
            sparse judgments name it), runs and teams (how many have it), sparse, grade (null where nobody judged it).
        topics: their pools.
        teams: what each brought.
        work: who judges what.
        depth: how far down the runs were looked at.
        choice: how documents were chosen.
        annotators: who judges.
        without: topics that no run has.
        graded: whether judgments were given.
        out: the folder that was written, if any.
    """

    documents: pl.DataFrame
    topics: tuple[PoolTopic, ...]
    teams: tuple[PoolTeam, ...]
    work: tuple[Batch, ...]
    depth: int
    choice: PoolMethod
    annotators: tuple[str, ...]
    without: tuple[str, ...] = ()
    graded: bool = False
    out: Path | None = None

    def __len__(self) -> int:
        """The number of documents over all topics."""
        return len(self.documents)


def topic_rows(documents: pl.DataFrame, names: Sequence[str], rel: int = 1) -> tuple[PoolTopic, ...]:
    """The sizes of the pools, in the order of the names."""
    counted = documents.group_by("topic_id").agg(
        pl.len().alias("documents"),
        (pl.col("runs") == 0).sum().alias("sparse_only"),
        (pl.col("teams") == 1).sum().alias("unique"),
        pl.col("grade").is_not_null().sum().alias("judged"),
        (pl.col("grade") >= rel).sum().alias("relevant"),
    )
    found = {row[0]: PoolTopic(row[0], *map(int, row[1:])) for row in counted.iter_rows()}
    return tuple(found[name] for name in names)


def team_rows(
    documents: pl.DataFrame, members: pl.DataFrame, teams: Mapping[str, str], rel: int = 1
) -> tuple[PoolTeam, ...]:
    """What each team brought, in the order in which the runs name them."""
    brought = members.select("topic_id", "doc_id", "team").unique()
    brought = brought.join(documents.select("topic_id", "doc_id", "teams", "grade"), on=["topic_id", "doc_id"])
    alone, relevant = pl.col("teams") == 1, (pl.col("grade") >= rel).fill_null(False)
    counted = brought.group_by("team").agg(
        pl.len().alias("documents"),
        alone.sum().alias("unique"),
        relevant.sum().alias("relevant"),
        (alone & relevant).sum().alias("unique_relevant"),
    )
    found = {row[0]: tuple(map(int, row[1:])) for row in counted.iter_rows()}
    sizes = {team: sum(one == team for one in teams.values()) for team in dict.fromkeys(teams.values())}
    return tuple(PoolTeam(team, size, *found.get(team, (0, 0, 0, 0))) for team, size in sizes.items())
