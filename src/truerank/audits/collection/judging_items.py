"""Judge: pairs of documents for the judging page, and what people said of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple, cast

import numpy as np
import polars as pl

from truerank.audits.collection.duplicates import CERTAIN, Answer, Duplicates
from truerank.judging.ratings import read_ratings
from truerank.measures.magnitudes import Proportion, proportion
from truerank.options import Labels

#: Bands of Jaccard similarity from which a sample is drawn, by their lower ends.
_BANDS: Final = (0.0, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95)
_ANSWERS: Final = ("same", "holds", "different")
#: Characters of a text that are shown.
_SHOWN: Final = 20_000


class Band(NamedTuple):
    """Pairs of one kind and similarity: how many there are, how many were judged, and how many say the same.

    `share` has the exact interval of the share that says the same; without judgments it is from 0 to 1.
    """

    kind: str
    low: float
    pairs: int
    judged: int
    share: Proportion


def read_answers(judged: Labels) -> dict[tuple[str, str], Answer]:
    """What people said, by pair of document ids."""
    if not judged:
        return {}
    ratings = read_ratings(judged, scheme="duplicates")
    found: dict[tuple[str, str], Answer] = {}
    for at, answer in ratings.decided(_answer, include_models=judged.include_models, order=_ANSWERS).items():
        data = ratings.units[at].data
        left, right = data.get("left"), data.get("right")
        if answer is not None and left and right:
            found[str(left), str(right)] = cast(Answer, answer)
    return found


def _answer(labels: tuple[str, ...]) -> str | None:
    return next((label for label in labels if label in _ANSWERS), None)


def bands(duplicates: Duplicates, confidence: float = 0.95) -> tuple[Band, ...]:
    """How many pairs there are of each kind and similarity, and the share of those judged that say the same."""
    rows = _banded(duplicates.answered)
    groups = rows.group_by("kind", "band").agg(
        pl.len().alias("pairs"),
        pl.col("answer").is_not_null().sum().alias("judged"),
        (pl.col("answer") == "same").sum().alias("same"),
    )
    found = []
    for kind, band, pairs, judged, same in groups.sort("kind", "band").iter_rows():
        share = proportion(same, judged, confidence=confidence, method="exact")
        found.append(Band(str(kind), band, pairs, judged, share))
    return tuple(found)


def _banded(pairs: pl.DataFrame) -> pl.DataFrame:
    jaccard = pairs["jaccard"].to_numpy()
    low = np.array(_BANDS)[np.searchsorted(_BANDS, jaccard, side="right") - 1]
    return pairs.with_columns(pl.Series("band", low.tolist(), pl.Float64))


def drawn_pairs(duplicates: Duplicates, sample: int, seed: int) -> pl.DataFrame:
    """A sample of the pairs that nobody judged: as many of each band, as far as there are so many."""
    open_ones = _banded(duplicates.answered.filter(pl.col("answer").is_null() & ~pl.col("kind").is_in(CERTAIN)))
    groups = open_ones.partition_by("kind", "band", maintain_order=True)
    groups.sort(key=lambda group: (str(group["kind"][0]), group["band"][0]))
    rng = np.random.default_rng(seed)
    chosen = []
    for group in groups:
        size = min(len(group), -(-sample // len(groups)))
        places = np.sort(rng.choice(len(group), size, replace=False))
        chosen.append(group[places].with_columns(pl.lit(size / len(group)).alias("probability")))
    empty = open_ones.clear().with_columns(pl.lit(0.0).alias("probability"))
    return pl.concat([empty, *chosen])


def item_lines(
    pairs: pl.DataFrame, contradictions: pl.DataFrame, texts: Mapping[str, str], topics: Mapping[str, str]
) -> Iterator[str]:
    """Lines of `items.jsonl`, for `judge new --scheme duplicates`."""
    for row in contradictions.iter_rows(named=True):
        left, right = row["doc_id"], row["other"]
        if left in texts and right in texts:
            about = {"grades": row["detail"], "left": left, "right": right}
            extra = {"title": topics.get(row["topic_id"], row["topic_id"]), "dataset": "contradictions"}
            yield _line(
                f"{row['topic_id']} {left} {right}", row["topic_id"], (left, right), texts, {**extra, "data": about}
            )
    for row in pairs.iter_rows(named=True):
        left, right = row["left"], row["right"]
        if left in texts and right in texts:
            about = {"kind": str(row["kind"]), "left": left, "right": right}
            extra = {
                "dataset": f"{row['kind']} {row['band']:g}",
                "score": round(row["jaccard"], 6),
                "probability": row["probability"],
                "data": about,
            }
            yield _line(f"{left} {right}", left, (left, right), texts, extra)


def _line(item_id: str, topic_id: str, ids: tuple[str, str], texts: Mapping[str, str], extra: Mapping[str, Any]) -> str:
    shown = [
        {"name": f"document {number}", "text": texts[one][:_SHOWN], "id": one}
        for number, one in enumerate(ids, start=1)
    ]
    return json.dumps({"item_id": item_id, "topic_id": topic_id, "texts": shown, **extra}, ensure_ascii=False) + "\n"
