"""The cascade of passes finds exactly what a brute-force comparison finds."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

from toy_encoder import Opener, TrigramEncoder
from truerank.vectors.neighbours import Bars, rounded
from truerank.vectors.search import SearchPlan, search
from truerank.work.engines import LocalEngine
from truerank.work.jobs import Job

TOPICS = ("lyme disease", "hydroponics", "black bear attacks", "women in parliaments", "tropical storms", "")[:5]
WORDS = "lyme disease bear attack black women parliament tropical storm hydroponic plants in the of and new old".split()


def log(count: int, seed: int = 1) -> list[str]:
    draw = random.Random(seed)
    texts = {" ".join(draw.choices(WORDS, k=draw.randint(1, 5))) for _ in range(count * 2)}
    return sorted(texts)[:count]


def rows_of(texts: list[str]):
    def rows() -> Iterator[tuple[int, str, str, str]]:
        for position, text in enumerate(texts):
            yield position, f"q{position:05d}", text, text

    return rows


def plan_for(**changes: object) -> SearchPlan:
    given: dict[str, object] = {
        "open_exact": Opener(),
        "topic_vectors": lambda: TrigramEncoder().encode(TOPICS),
        "floor": 0.7,
        "top_k": 7,
        "block_size": 50,
    }
    return SearchPlan(**{**given, **changes})  # type: ignore[arg-type]


def by_hand(texts: list[str], floor: float, top_k: int) -> dict[tuple[int, str], tuple[float, int]]:
    similarity = rounded(TrigramEncoder().encode(TOPICS) @ TrigramEncoder().encode(texts).T)
    wanted = {}
    for topic, row in enumerate(similarity):
        order = sorted(range(len(texts)), key=lambda place: (-row[place], f"q{place:05d}"))
        for rank, place in enumerate(order, start=1):
            if row[place] > np.float32(floor) or rank <= top_k:
                wanted[topic, f"q{place:05d}"] = float(row[place]), rank
    return wanted


def check(pairs: pl.DataFrame, wanted: dict[tuple[int, str], tuple[float, int]]) -> None:
    rows = pairs.select("topic_no", "query_id", "similarity", "rank").rows()
    assert {(topic, query) for topic, query, _, _ in rows} == set(wanted)
    assert len(rows) == len(wanted)
    # Products of other shapes round the last bit otherwise; what differs by that much may swap ranks.
    assert all(abs(similarity - wanted[topic, query][0]) <= 2e-6 for topic, query, similarity, _ in rows)
    assert sum(rank != wanted[topic, query][1] for topic, query, _, rank in rows) <= len(rows) // 100
    assert rows == sorted(rows, key=lambda row: (row[0], row[3]))


@pytest.mark.parametrize(("block_size", "top_k"), [(7, 0), (50, 7), (50, 1000), (10_000, 7)])
def test_search_equals_brute_force(tmp_path: Path, block_size: int, top_k: int) -> None:
    texts = log(200)
    found = search(rows_of(texts), plan_for(block_size=block_size, top_k=top_k), Job(tmp_path))
    check(found.pairs, by_hand(texts, 0.7, top_k))
    assert len(by_hand(texts, 0.7, 0)) > 20


@pytest.fixture
def screening(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every source is worth a low-precision pass."""
    monkeypatch.setattr("truerank.vectors.search._WORTH_A_PILOT", 1)


def assert_same_above_floor(both: pl.DataFrame, exact: pl.DataFrame) -> None:
    keys = ["topic_no", "query_id", "rank"]
    left, right = (pairs.filter(pl.col("similarity") > 0.7).sort("topic_no", "rank") for pairs in (both, exact))
    assert left.height > 10
    assert left["exact"].all()
    assert left.select(keys).equals(right.select(keys))
    assert (left["similarity"] - right["similarity"]).abs().max() <= 2e-6  # other batches round the last bit otherwise


@pytest.mark.usefixtures("screening")
def test_low_precision_pass_changes_no_pair_above_the_floor(tmp_path: Path) -> None:
    texts = log(400)
    exact = search(rows_of(texts), plan_for(), Job(tmp_path / "exact"))
    both = search(rows_of(texts), plan_for(open_screen=Opener(noise=0.05)), Job(tmp_path / "both"))
    assert_same_above_floor(both.pairs, exact.pairs)
    assert both.screen is not None
    assert 0 < both.screen.largest <= both.screen.allowed < 0.2
    # The neighbours at or below the floor are those of the first pass, and say so.
    assert (
        both.pairs["topic_no"]
        .value_counts()
        .sort("topic_no")
        .equals(exact.pairs["topic_no"].value_counts().sort("topic_no"))
    )
    below = both.pairs.filter(~pl.col("exact"))
    assert 0 < below.height < both.pairs.height
    truth = TrigramEncoder().encode(TOPICS) @ TrigramEncoder().encode(texts).T
    errors = [abs(truth[row["topic_no"], row["position"]] - row["similarity"]) for row in below.iter_rows(named=True)]
    assert max(errors) < 0.1


@pytest.mark.usefixtures("screening")
def test_margin_is_widened_when_the_pilot_saw_too_little(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("truerank.vectors.search._PILOT_TEXTS", 1)
    monkeypatch.setattr("truerank.vectors.search._SAFETY", 0.01)
    texts = log(400)
    exact = search(rows_of(texts), plan_for(), Job(tmp_path / "exact"))
    both = search(rows_of(texts), plan_for(open_screen=Opener(noise=0.05)), Job(tmp_path / "both"))
    assert_same_above_floor(both.pairs, exact.pairs)
    assert both.screen is not None
    assert both.screen.allowed > 0.004


def test_short_source_is_not_screened(tmp_path: Path) -> None:
    found = search(rows_of(log(100)), plan_for(open_screen=Opener(noise=0.05)), Job(tmp_path))
    assert found.screen is None
    assert found.pairs["exact"].all()


@pytest.mark.parametrize("first_pass", [False, True])
@pytest.mark.usefixtures("screening")
def test_texts_above_the_floor_that_cannot_be_read_have_no_similarity(tmp_path: Path, first_pass: bool) -> None:
    texts, asked = log(2000), list[str]()

    def unread(some: Sequence[str]) -> NDArray[np.bool_]:
        asked.extend(some)
        return np.array(["plants" in text.split() for text in some], np.bool_)

    plan = plan_for(open_screen=Opener(noise=0.05)) if first_pass else plan_for()
    every = search(rows_of(texts), plan, Job(tmp_path / "every")).pairs
    found = search(rows_of(texts), replace(plan, unread=unread), Job(tmp_path / "found")).pairs
    above = every.filter(pl.col("similarity") > plan.floor)
    silent = found["text"].str.split(" ").list.contains("plants") & found["text"].is_in(above["text"].implode())
    assert found.drop("similarity").equals(every.drop("similarity"))
    assert found.filter(~silent).equals(every.filter(~silent))
    assert 0 < silent.sum() < len(silent) and found.filter(silent)["similarity"].to_list() == [0.0] * silent.sum()
    # The others are not asked about.
    assert sorted(asked) == sorted(above["text"].unique())


def test_killed_search_continues(tmp_path: Path) -> None:
    texts = log(400)
    plan = plan_for()
    whole = search(rows_of(texts), plan, Job(tmp_path / "whole"))

    class KilledError(Exception):
        pass

    class Dying(LocalEngine):
        def __init__(self, after: int) -> None:
            self.left = after

        def run(self, task, blocks):
            for result in super().run(task, blocks):
                if self.left == 0:
                    raise KilledError
                self.left -= 1
                yield result

    for after in (2, 1, 3):
        with pytest.raises(KilledError):
            search(rows_of(texts), plan, Job(tmp_path / "killed", Dying(after)))
    again = search(rows_of(texts), plan, Job(tmp_path / "killed"))
    assert again.pairs.equals(whole.pairs)


def test_same_text_twice_counts_once_and_probed_pairs_stay(tmp_path: Path) -> None:
    texts = ["lyme disease", "old bear", "lyme  disease", "nothing like it"]

    class Probe:
        def __call__(self, block):
            return [(place, 1, 1) for place, text in enumerate(block) if text == "nothing like it"]

    found = search(rows_of(texts), plan_for(top_k=0, floor=0.95, probe=Probe()), Job(tmp_path))
    kept = found.pairs.select("topic_no", "text", "probed").rows()
    assert kept == [(0, "lyme disease", False), (1, "nothing like it", True)]


def test_bars_count_a_text_once() -> None:
    bars = Bars(1, 2)
    frame = pl.DataFrame(
        {
            "position": [0, 1, 2],
            "query_id": ["a", "b", "c"],
            "text": ["x", "x", "y"],
            "topic_nos": [[0], [0], [0]],
            "similarities": [[0.9], [0.9], [0.5]],
            "probed": [[False]] * 3,
            "exact": [[True]] * 3,
        }
    ).cast({"topic_nos": pl.List(pl.UInt32), "similarities": pl.List(pl.Float32)})
    bars.raise_by(frame)
    assert bars.values.tolist() == [0.5]
