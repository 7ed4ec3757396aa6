"""Runs by topic, against plain loops over their rows."""

from __future__ import annotations

import random
from itertools import groupby, pairwise

import polars as pl
import pytest

from truerank.measures.topic_lists import TopicLists

Row = tuple[str, str, int]


def rows(seed: int, kind: str) -> list[Row]:
    """A run whose ranks order it; or that has topics in several stretches, or equal ranks, or no results."""
    draw = random.Random(seed)
    found = [
        (topic, f"d{draw.randrange(50)}", rank)
        for topic in draw.sample(["a", "b", "c", "d", "e"], 0 if kind == "empty" else 4)
        for rank in range(1, draw.randrange(2, 8))
    ]
    if kind == "torn":
        cut = draw.randrange(1, len(found) - 1)
        found = [*found[cut:], *found[:cut]]
    if kind == "tied":
        found = [(topic, doc, draw.randrange(3)) for topic, doc, _ in found]
    return draw.sample(found, len(found)) if kind == "mixed" else found


@pytest.mark.parametrize("kind", ["ordered", "torn", "tied", "mixed", "empty"])
@pytest.mark.parametrize("seed", range(8))
def test_lists_are_those_of_plain_loops(seed: int, kind: str) -> None:
    given, judged = rows(seed, kind), {"a", "c", "e"}
    schema = {"topic_id": pl.String, "doc_id": pl.String, "rank": pl.Int64}
    whole = TopicLists(pl.DataFrame(given, schema=schema, orient="row"))
    for lists, own in (
        (whole, given),
        (whole.on(pl.Series([*judged], dtype=pl.String)), [r for r in given if r[0] in judged]),
    ):
        every = ((topic, len([*some])) for topic, some in groupby(given, key=lambda row: row[0]))
        stretches = [(topic, length) for topic, length in every if own is given or topic in judged]
        assert lists.select(*schema).rows() == own and len(lists) == len(own)
        assert [*zip(lists.names, lists.lengths.tolist(), strict=True)] == stretches
        assert lists.topics.to_list() == [*dict.fromkeys(topic for topic, _ in stretches)]
        by_rank = sorted(range(len(own)), key=lambda at: (own[at][0], own[at][2]))
        place = {
            at: number
            for _, some in groupby(by_rank, key=lambda at: own[at][0])
            for number, at in enumerate(some, start=1)
        }
        assert lists.places.to_list() == [place[at] for at in range(len(own))]
        assert lists.first(3).rows() == [(*row[:2], place[at]) for at, row in enumerate(own) if place[at] <= 3]
        several = len({topic for topic, _ in stretches}) < len(stretches)
        rising = all(one[0] != other[0] or one[2] < other[2] for one, other in pairwise(own))
        assert lists.ordered == (rising and not several)
        ranked = own if lists.ordered else [own[at] for at in by_rank]
        assert lists.by_rank().select(*schema).rows() == ranked
