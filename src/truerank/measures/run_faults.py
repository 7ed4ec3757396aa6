"""What a run shows of itself before any score: scores that contradict its ranks, or say nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal, NamedTuple

import numpy as np
import polars as pl

from truerank.measures.topic_lists import TopicLists

#: What follows: the comparison has no meaning; some topics have to be left out; somebody has to look; good to know.
Weight = Literal["fault", "topics", "doubt", "note"]

#: A fault of so many topics, or of such a share of the steps, is one of the whole run.
_HALF, _WHOLE = 0.5, 0.9
#: The share of steps from rank to rank at which scores rise, above which a topic's scores contradict its ranks.
_RISING: Final = 0.25


class RunFault(NamedTuple):
    """One thing that the files show.

    Attributes:
        run: the run; empty where it is about the judgments, the topics, or both runs.
        weight: what follows.
        topics: the judged topics that it touches; empty where it touches all.
        reason: a sentence with its figures.
        remedy: what to mend.
        exception: the condition without what it touches, where nothing repairs it.
        documents: those that it touches, where it is about documents.
    """

    kind: str
    run: str
    weight: Weight
    topics: frozenset[str]
    reason: str
    remedy: str
    exception: str = ""
    documents: frozenset[str] = frozenset()


def score_faults(name: str, own: TopicLists, *, by_rank: bool) -> Iterator[RunFault]:
    """Scores of a run that rise from rank to rank, contradict the ranks, or are all the same.

    Args:
        by_rank: whether ties are broken by the rank column.
    """
    ordered = own.by_rank()
    starts = ordered.starts
    rows = ordered.select("score", "rank")
    steps = np.diff(rows["score"].to_numpy(), prepend=np.nan)
    steps[starts] = np.nan
    # Results of one rank have no order.
    rank_steps = np.diff(rows["rank"].to_numpy(), prepend=0)
    rank_steps[starts] = 1
    rising_steps = (steps > 0) & (rank_steps > 0)
    by_topic = pl.DataFrame(
        {
            "topic_id": ordered.names,
            "up": np.add.reduceat(rising_steps, starts, dtype=np.int64),
            "down": np.add.reduceat(steps < 0, starts, dtype=np.int64),
            "level": np.add.reduceat(steps == 0, starts, dtype=np.int64),
            "results": ordered.lengths,
            "ranks": np.add.reduceat(rank_steps == 0, starts, dtype=np.int64),
        }
    )
    several = by_topic.filter(pl.col("results") > 1)
    if not len(several):
        return
    rising = several.filter(pl.col("up") > _RISING * (pl.col("up") + pl.col("down")))
    up, down = int(several["up"].sum()), int(several["down"].sum())
    changes = up + down
    text = f"{name}'s scores rise down the list in {len(rising):,d} of {len(several):,d} topics: {{why}}"
    if len(rising):
        why = "they look like distances." if up > _WHOLE * changes else "scores and ranks contradict each other."
        remedy = "Write scores that fall from rank to rank: evaluation programs sort by score, not by rank."
        whole = len(rising) >= _HALF * len(several)
        topics = frozenset() if whole else frozenset(rising["topic_id"])
        yield RunFault("rising-scores", name, "fault" if whole else "topics", topics, text.format(why=why), remedy)
    noun, column = ("ranks", "ranks") if by_rank else ("scores", "level")
    flat = several.filter(pl.col(column) == pl.col("results") - 1)
    if len(flat):
        reason = (
            f"{name} has one and the same {noun[:-1]} for all results of {len(flat):,d} of {len(several):,d} topics; "
            "programs then order them by document id."
        )
        remedy = "Write the scores of the system, or break ties by the rank column (`ties` rank)."
        if by_rank:
            remedy = "Write the ranks of the system, or order results by their scores: leave out `ties` rank."
        whole = len(flat) >= _HALF * len(several)
        topics = frozenset() if whole else frozenset(flat["topic_id"])
        yield RunFault(f"constant-{noun}", name, "fault" if whole else "topics", topics, reason, remedy)
