"""What people should look at to say how many judgments broke: a random sample of each data set, and of all."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl

from truerank.audits.transfer.scanning.results import Scan
from truerank.rankers.reranking.document_texts import DocumentTexts
from truerank.work.artifacts import Artifacts

#: Bands of the difference per data set, each of the same width.
BANDS: Final = 5
#: The sample of all judged documents that two versions have.
RANDOM_SET: Final = "random"


def write_items(artifacts: Artifacts, scan: Scan, texts: Mapping[str, Path], size: int, seed: int) -> None:
    """Writes `items.jsonl` for `judge new --scheme transfer`: `size` documents of each set, drawn at random.

    V1 and V2 are the two versions in the order in which they were compared; the stratum is the band of the difference.
    """
    if not size:
        return
    lines = [json.dumps(item, ensure_ascii=False) + "\n" for item in _items(scan, texts, size, seed)]
    artifacts.text("items.jsonl", "".join(lines))


def band_of(difference: float, lowest: float, highest: float) -> str:
    """The band of a difference between the cut-off and the largest possible difference."""
    width = (highest - lowest) / BANDS or 1.0
    place = min(BANDS - 1, max(0, int(np.ceil(round((difference - lowest) / width, 9))) - 1))
    return f"{lowest + place * width:g}-{lowest + (place + 1) * width:g}"


def highest_difference(scan: Scan, aggregation: str) -> float:
    """Where the last band ends: 1 for probabilities, else the largest difference."""
    if scan.summary["percentile"] is None:
        return 1.0
    largest = scan.candidates[f"{aggregation}_difference"].max() if aggregation else None
    return float(largest) if isinstance(largest, (int, float)) else 1.0


def _items(scan: Scan, texts: Mapping[str, Path], size: int, seed: int) -> Iterator[dict[str, Any]]:
    opened = {name: DocumentTexts(path) for name, path in texts.items()}
    draw = np.random.default_rng(seed)
    for name, about in scan.summary["sets"].items():
        inside = scan.sets.filter(pl.col("set") == name)
        versions = _in_order(scan, about["better"], about["worse"]) if about["aggregation"] else scan.versions[:2]
        yield from _sampled(scan, inside, (name, versions), (size, draw), opened)
    first, second = scan.versions[:2]
    every = (
        scan.scores.filter(pl.col("version").is_in([first, second]))
        .group_by("topic_id", "doc_id", maintain_order=True)
        .len()
    )
    every = every.filter(pl.col("len") == 2).select(
        "topic_id", "doc_id", pl.lit(None, pl.Float64).alias("difference"), pl.lit("").alias("aggregation")
    )
    yield from _sampled(scan, every, (RANDOM_SET, (first, second)), (size, draw), opened)


def _in_order(scan: Scan, better: str, worse: str) -> tuple[str, str]:
    return next((a, b) for a, b in scan.summary["pairs"] if {a, b} == {better, worse})


def _sampled(
    scan: Scan,
    inside: pl.DataFrame,
    about: tuple[str, tuple[str, ...]],
    sample: tuple[int, np.random.Generator],
    texts: Mapping[str, DocumentTexts],
) -> Iterator[dict[str, Any]]:
    (name, versions), (size, draw) = about, sample
    taken = inside[np.sort(draw.permutation(len(inside))[:size])]
    probability = len(taken) / max(1, len(inside))
    rows = taken.join(scan.scores, on=["topic_id", "doc_id"], how="left", maintain_order="left")
    for key, part in rows.group_by("topic_id", "doc_id", maintain_order=True):
        found = {row["version"]: row for row in part.iter_rows(named=True)}
        some = [found[version] for version in versions if version in found]
        item: dict[str, Any] = {"topic_id": key[0], "query": some[0]["query"]}
        for number, row in enumerate(some, start=1):
            title, body = texts[row["version"]].texts([row["version_doc_id"]])[row["version_doc_id"]]
            shown = {"": f"{title}\n\n{body}".strip() or "(no text)", "_id": row["version_doc_id"], "_url": row["url"]}
            item |= {f"V{number}{ending}": value for ending, value in shown.items()}
        item |= {"dataset": name, "doc_id": key[1], "probability": round(probability, 6)}
        difference, aggregation = some[0]["difference"], some[0]["aggregation"]
        if difference is not None:
            lowest = scan.summary["cut_off"][aggregation]
            item["stratum"] = band_of(difference, lowest, highest_difference(scan, aggregation))
            item["score"] = round(difference, 6)
        yield item
