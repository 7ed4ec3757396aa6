"""Shingles of queries: pairs by hand, and those of the comparison of two sides."""

from __future__ import annotations

import random

import polars as pl
import pytest

from truerank.audits.leakage.encoders import ShingleProbe
from truerank.overlaps import compare
from truerank.overlaps.results import without_parts
from truerank.text.wording import INSIDE, SHINGLES

LONG = "the fire of london began in a bakery in pudding lane and burned for four days until the wind fell at last"


@pytest.mark.parametrize(
    ("topic", "query", "what"),
    [
        (LONG, LONG.replace("four", "five"), 0),
        (LONG, f"tell me whether {LONG}", SHINGLES),
        (LONG, "burned for four days until the wind fell", 0),
        ("how many moons does jupiter have", "How many moons does Jupiter have?", SHINGLES),
        ("how many moons does jupiter have", "please say how many moons does jupiter have today", INSIDE),
        ("how many moons does jupiter have", "how many moons does saturn have", 0),
        ("moons of jupiter", "all moons of jupiter", 0),
        ("富士山の高さは何メートルですか", "富士山の高さは何メートルですか教えて", INSIDE),
    ],
)
def test_pairs_by_hand(topic: str, query: str, what: int) -> None:
    assert ShingleProbe(("red wine", topic))(["nothing", query]) == ([(1, 1, what)] if what else [])


def test_pairs_are_those_of_the_comparison_of_two_sides() -> None:
    draw = random.Random(3)
    words = [f"w{number}" for number in range(60)]
    topics = [" ".join(draw.choices(words, k=draw.choice([3, 6, 14, 25]))) for _ in range(40)]
    texts = []
    for topic in topics:
        parts = topic.split()
        parts[draw.randrange(len(parts))] = draw.choice(words)
        texts += [f"w1 {topic} w2", " ".join(parts), " ".join(parts[2:])]
    found = without_parts(compare(((str(n), text) for n, text in enumerate(topics)),
                                  ((str(n), text) for n, text in enumerate(texts))).frame)  # fmt: skip
    wanted = found.filter(pl.col("evidence").str.contains("near|contains"), pl.col("training_words") >= 5)
    pairs = set(zip(wanted["training_id"].cast(int), wanted["test_id"].cast(int), strict=True))
    assert {(place, number) for place, number, _ in ShingleProbe(tuple(topics))(texts)} == pairs
    assert len(pairs) > 40
