"""Whether the tables of the small pilot and of the survivorship experiment follow from their kept cell results.

    python studies/aggregation_check.py pilot-reproduction survivorship-reproduction [--tolerance 1e-9]

Reads `grid/` and `report/tables/*.csv` of each folder with code of its own; nothing of truerank is imported. From the
scores of each cell: a ranking by score, equal scores by document id; the measure by topic; means over seeds, then over
topics; Student intervals and paired t-tests of differences by topic; Bonferroni over the comparisons by one measure on
one benchmark. Printed: how many values of each column are equal, and each that differs. The exit code is 1 if one does.
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
from scipy import stats

Topics = dict[str, float]
Row = dict[str, str]


class Table(NamedTuple):
    """A CSV file of a report: what is compared with what, and the columns of the results."""

    file: str
    treated: Callable[[Row], str]
    reference: Callable[[Row], str]
    treated_mean: str
    reference_mean: str | None
    difference: str


#: `sets` are named by the column `label` of the record.
TABLES = (
    Table(
        "controls.csv", lambda _: "none", lambda row: row["control"], "mean / on none", "mean / on control",
        "above control",
    ),
    Table("depths.csv", lambda row: row["trained on"], lambda _: "all", "mean", None, "difference to all"),
)  # fmt: skip


def gain(name: str, ranked: list[int], judged: list[int]) -> float:
    """One measure of one ranking: the judgments of its documents from the top, and all judgments of the topic."""
    kind, _, cut = name.partition("@")
    top = ranked[: int(cut)] if cut else ranked
    if kind == "AP":
        found = [rank for rank, grade in enumerate(top, start=1) if grade > 0]
        relevant = sum(grade > 0 for grade in judged)
        return sum(number / rank for number, rank in enumerate(found, start=1)) / relevant if relevant else 0.0
    if kind == "P":
        return sum(grade > 0 for grade in top) / int(cut)
    if kind == "RR":
        return next((1 / rank for rank, grade in enumerate(top, start=1) if grade > 0), 0.0)
    if kind == "nDCG":
        best = sorted((grade for grade in judged if grade > 0), reverse=True)[: int(cut)]
        return discounted(top) / discounted(best) if best else 0.0
    raise SystemExit(f"aggregation_check: no code for {name}")


def discounted(grades: list[int]) -> float:
    """Discounted cumulative gain."""
    return sum(max(grade, 0) / math.log2(rank + 1) for rank, grade in enumerate(grades, start=1))


class Grid:
    """A finished grid: the effectiveness by topic of each model by the set it was trained on."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.record = pl.read_parquet(folder / "record.parquet").filter(pl.col("status") == "done").to_dicts()
        self.qrels: dict[str, dict[str, dict[str, int]]] = {}
        for path in sorted(folder.glob("collections/*/qrels.parquet")):
            by_topic: dict[str, dict[str, int]] = defaultdict(dict)
            for topic, document, grade in pl.read_parquet(path).iter_rows():
                by_topic[topic][document] = grade
            self.qrels[path.parent.name] = by_topic

    def cell(self, address: str, benchmark: str, measure: str) -> Topics:
        """One training; a topic without a ranking has 0."""
        rows: dict[str, list[tuple[float, str]]] = defaultdict(list)
        scores = pl.read_parquet(self.folder / "cells" / address / "scores.parquet")
        wanted = scores.filter(pl.col("candidate") & (pl.col("collection") == benchmark))
        for topic, document, score in wanted.select("topic_id", "doc_id", "score").iter_rows():
            rows[topic].append((-score, document))
        return {
            topic: gain(measure, [judged.get(name, 0) for _, name in sorted(rows[topic])], list(judged.values()))
            for topic, judged in self.qrels[benchmark].items()
        }

    def trained(self, label: str, model: str, benchmark: str, measure: str) -> Topics:
        """Means over seeds."""
        found = [
            self.cell(row["cell"], benchmark, measure)
            for row in self.record
            if row["label"] == label and row["model"] == model and benchmark in row["collections"]
        ]
        return {topic: float(np.mean([one[topic] for one in found])) for topic in found[0]}


def recomputed(grid: Grid, table: Table, rows: list[Row]) -> Iterator[tuple[Row, str, float]]:
    """Each value of the table that follows from the cells: its row, its column, and the value."""
    compared = [row for row in rows if table.treated(row) != table.reference(row)]
    for row in rows:
        asked = (row["model"].rstrip("†"), row["benchmark"], row["measure"])
        treated = grid.trained(table.treated(row), *asked)
        yield row, table.treated_mean, float(np.mean(list(treated.values())))
        yield row, "topics", len(treated)
        if row not in compared:
            continue
        reference = grid.trained(table.reference(row), *asked)
        if table.reference_mean is not None:
            yield row, table.reference_mean, float(np.mean(list(reference.values())))
        differences = np.array([treated[topic] - reference[topic] for topic in treated])
        mean, error = differences.mean(), differences.std(ddof=1) / math.sqrt(len(differences))
        half = stats.t.ppf(0.975, len(differences) - 1) * error
        family = sum((one["benchmark"], one["measure"]) == asked[1:] for one in compared)
        p_value = 2 * stats.t.sf(abs(mean / error), len(differences) - 1) if error else 1.0
        yield row, f"{table.difference} / mean", float(mean)
        yield row, f"{table.difference} / low", float(mean - half)
        yield row, f"{table.difference} / high", float(mean + half)
        yield row, "p corrected", min(1.0, float(p_value) * family)


def main() -> None:
    """Compares, and prints what is equal and what differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "folders", nargs="+", type=Path, help="with grid/ and report/, as scripts/reproduce.py makes them"
    )
    parser.add_argument("--tolerance", type=float, default=1e-9, help="for what is written in full")
    options = parser.parse_args()
    differing = 0
    for folder in options.folders:
        grid = Grid(folder / "grid")
        for table in (one for one in TABLES if (folder / "report" / "tables" / one.file).is_file()):
            with (folder / "report" / "tables" / table.file).open(encoding="utf-8", newline="") as lines:
                rows = list(csv.DictReader(lines))
            equal: dict[str, int] = defaultdict(int)
            for row, column, value in recomputed(grid, table, rows):
                written = row[column].rstrip("†‡")
                # What is written with four digits is compared with four.
                tolerance = 5.01e-5 if len(written) == 6 and written[1] == "." else options.tolerance
                if abs(float(written) - value) <= tolerance:
                    equal[column] += 1
                else:
                    differing += 1
                    where = ", ".join(row[name] for name in ("benchmark", "measure", "model"))
                    print(f"{folder}: {table.file}: {where}, {column}: {row[column]} in the report, {value:.10g} here")
            print(
                f"{folder}: {table.file}: {len(rows)} rows; equal: " + ", ".join(f"{k} {n}" for k, n in equal.items())
            )
    print(f"{differing} values differ")
    sys.exit(differing > 0)


if __name__ == "__main__":
    main()
