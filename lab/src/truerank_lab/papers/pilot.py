"""What the small pilot is trained on: rows without a leak of Vaswani and CACM, and the same with shuffled labels.

`truerank_lab.papers.reproduce pilot` calls it. Writes `none.parquet`, rows of the two collections by turns, made from
their documents as for the leakage paper's reproduction; `shuffled.parquet`, in which the relevant and the non-relevant
document of half of the rows, drawn by a seed, have changed places, so that the labels say nothing; and `t5`, a small
T5, and `minilm`, the first three layers of MiniLM (`papers/small_models.py`).
"""

from __future__ import annotations

import random
from pathlib import Path

import polars as pl

from truerank_lab import instances
from truerank_lab.papers.leakage import COLLECTIONS, ENDS, SEED, audit_queries, save_small_models

_IDS = ("query_id", "relevant_id", "nonrelevant_id")


def prepare(collections: Path, out: Path, rows: int = 2_000) -> None:
    """Both sets, and the small models; `rows` are of each collection, fewer where it has not so many."""
    docs = {name: str(collections / name / files[0]) for name, files in COLLECTIONS.items()}
    save_small_models(collections, out)
    if (out / "shuffled.parquet").is_file():
        return
    parts = []
    for name, source in docs.items():
        audit_queries(name, collections / name, out / name)
        options = instances.BuildOptions(
            queries_from_documents=source, ends=ENDS[name], audit=(str(out / name / "audit"),), allow_fewer=True
        )
        print(instances.build("none", (2 * rows,), options=options, out=out / name / "none"))
        part = pl.read_parquet(out / name / "none" / "instances.parquet")
        ids = [pl.format(f"{name}:{{}}", pl.col(column)).alias(column) for column in _IDS]
        parts.append(part.with_columns(*ids).with_row_index("turn"))
    joined = pl.concat(parts).sort("turn", maintain_order=True).drop("turn")
    joined.write_parquet(out / "none.parquet")
    shuffled(joined, SEED).write_parquet(out / "shuffled.parquet")


def shuffled(rows: pl.DataFrame, seed: int) -> pl.DataFrame:
    """The rows with the labels of one in two, drawn in each successive pair of rows, so that beginnings have it too."""
    draw = random.Random(seed)
    changed = [place for _ in range(0, len(rows), 2) for place in draw.sample([True, False], 2)][: len(rows)]
    swap = pl.Series(changed)
    columns = [("relevant", "nonrelevant"), ("relevant_id", "nonrelevant_id")]
    return rows.with_columns(
        *(pl.when(swap).then(pl.col(b)).otherwise(pl.col(a)).alias(a) for a, b in columns),
        *(pl.when(swap).then(pl.col(a)).otherwise(pl.col(b)).alias(b) for a, b in columns),
    )
