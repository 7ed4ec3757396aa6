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
    pairs = {frozenset(pair): tuple(pair) for pair in reversed(scan.summary["pairs"])}
    samples: list[tuple[str, tuple[str, ...], pl.DataFrame]] = []
    for name, about in scan.summary["sets"].items():
        versions = pairs[frozenset((about["better"], about["worse"]))] if about["aggregation"] else scan.versions[:2]
        samples.append((name, versions, scan.sets.filter(pl.col("set") == name)))
    both = scan.scores.filter(pl.col("version").is_in(scan.versions[:2]))
    every = both.group_by("topic_id", "doc_id", maintain_order=True).len().filter(pl.col("len") == 2)
    every = every.with_columns(pl.lit(None, pl.Float64).alias("difference"), pl.lit("").alias("aggregation"))
    samples.append((RANDOM_SET, scan.versions[:2], every))
    opened = {name: DocumentTexts(path) for name, path in texts.items()}
    draw = np.random.default_rng(seed)
    for name, versions, inside in samples:
        taken = inside[np.sort(draw.permutation(len(inside))[:size])]
        probability = round(len(taken) / max(1, len(inside)), 6)
        rows = taken.join(scan.scores, on=["topic_id", "doc_id"], how="left", maintain_order="left")
        for (topic_id, doc_id), part in rows.group_by("topic_id", "doc_id", maintain_order=True):
            found = {row["version"]: row for row in part.iter_rows(named=True)}
            some = [found[version] for version in versions if version in found]
            item: dict[str, Any] = {"topic_id": topic_id, "query": some[0]["query"]}
            for number, row in enumerate(some, start=1):
                own = row["version_doc_id"]
                title, body = opened[row["version"]].texts([own])[own]
                text = f"{title}\n\n{body}".strip() or "(no text)"
                item |= {f"V{number}": text, f"V{number}_id": own, f"V{number}_url": row["url"]}
            item |= {"dataset": name, "doc_id": doc_id, "probability": probability}
            difference, aggregation = some[0]["difference"], some[0]["aggregation"]
            if difference is not None:
                lowest = scan.summary["cut_off"][aggregation]
                item["stratum"] = band_of(difference, lowest, highest_difference(scan, aggregation))
                item["score"] = round(difference, 6)
            yield item
