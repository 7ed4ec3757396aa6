"""Leave-out-uniques, the classical test of reusability: without what a team alone contributed to the judgments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np
import polars as pl

from truerank.audits.reusability.simulation.outcomes import Change, Judging, OfficialStanding, compare
from truerank.audits.reusability.simulation.standings import JudgedSet, Qrels

LEAVE_OUT_UNIQUES: Final = "Leave out uniques"


class Unique(NamedTuple):
    """What one team alone contributed to the pools: documents, relevant ones among them, topics that these are of."""

    team: str
    documents: int
    relevant: int
    topics: int


def unique_documents(pools: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """The pooled documents that one team alone contributed."""
    every = pl.concat([pool.select("topic_id", "doc_id", pl.lit(team).alias("team")) for team, pool in pools.items()])
    alone = every.group_by("topic_id", "doc_id").agg(pl.col("team").first(), pl.len())
    return alone.filter(pl.col("len") == 1).select("topic_id", "doc_id", "team").sort("topic_id", "doc_id")


def leave_out_uniques(
    standing: OfficialStanding, uniques: pl.DataFrame
) -> tuple[tuple[Unique, ...], tuple[Change, ...]]:
    """Ranks the runs by the official qrels without the relevant documents that one team alone contributed.

    Source: Zobel (SIGIR 1998); Buckley et al. (2007).
    """
    scorer, universe = standing.scorer, standing.universe
    counts, changes = [], []
    for team in standing.teams:
        own = uniques.filter(pl.col("team") == team)
        by_topic = {str(key[0]): set(part["doc_id"]) for key, part in own.group_by("topic_id")}
        sets, relevant, topics = [], 0, 0
        for number in standing.official.qrels.sets:
            judged = scorer.judged(int(number))
            alone = by_topic.get(scorer.ranks.topics[judged.topic], set())
            ids, levels = universe.documents[judged.topic], universe.grades[judged.topic]
            out = np.array([levels[one] >= scorer.rel and ids[one] in alone for one in judged.documents], np.bool_)
            relevant += int(out.sum())
            topics += bool(out.any())
            sets.append(scorer.number(JudgedSet(judged.topic, judged.documents[~out])))
        counts.append(Unique(team, len(own), relevant, topics))
        judging = Judging(LEAVE_OUT_UNIQUES, 0, team, (), Qrels(np.array(sets)), 0, 0)
        changes += list(compare(standing, judging))
    return tuple(counts), tuple(changes)
