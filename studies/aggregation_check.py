"""Whether the tables of the small pilot, of survivorship and of leaked documents follow from their kept cell results.

    python studies/aggregation_check.py pilot-reproduction survivorship-reproduction leakage-reproduction

Reads `grid/` and `report/tables/*.csv` of each folder with code of its own; nothing of truerank is imported. From the
scores of each cell: a ranking by score, equal scores by document id; the measure by topic; means over seeds, then over
topics; Student intervals and paired t-tests of differences by topic; Bonferroni over the comparisons by one measure on
one benchmark. For leaked documents: ranks among the candidates by score, means within a topic, over seeds, differences
to the training without the leak over topics, with their standard deviation. Printed: how many values of each column are
equal, and each that differs. The exit code is 1 if one does.
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


def leaked_ranks(
    grid: Grid, address: str, benchmark: str, leaks: list[tuple[str, str, bool]]
) -> dict[str, list[float]]:
    """By topic, the mean rank of the leaked documents that are not relevant, and of those that are."""
    scores = pl.read_parquet(grid.folder / "cells" / address / "scores.parquet")
    known: dict[tuple[str, str], float] = {}
    candidates: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for place, topic, document, score, candidate in scores.select(
        "collection", "topic_id", "doc_id", "score", "candidate"
    ).iter_rows():
        if place == benchmark:
            known[topic, document] = -score
            if candidate:
                candidates[topic].append((-score, document))
    ranks: dict[str, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    for topic, document, relevant in leaks:
        if (topic, document) in known:
            own = (known[topic, document], document)
            others = (one for one in candidates[topic] if one[1] != document)
            ranks[topic][relevant].append(1 + sum(one < own for one in others))
    return {topic: [float(np.mean(some)) for some in both] for topic, both in ranks.items() if all(both)}


def offsets(grid: Grid, rows: list[Row], size: int) -> Iterator[tuple[Row, str, list[float]]]:
    """The values of each cell of the table of offsets: the increase and its deviation, the rise, the fall."""
    leaked = pl.read_parquet(grid.folder / "leaked.parquet").filter(pl.col("rows") <= size // 2)
    for row in rows:
        for benchmark in grid.qrels:
            of = [one for one in grid.record if benchmark in one["collections"] and one["model"] == row["model"]]
            of = [one for one in of if one["size"] == size]
            (name,) = {one["set"] for one in of if one["label"] == row["trained on"]}
            leaks = leaked.filter(pl.col("set") == name).select("topic_id", "doc_id", "relevant").rows()
            means = []
            for label in (row["trained on"], "none"):
                cells = [leaked_ranks(grid, one["cell"], benchmark, leaks) for one in of if one["label"] == label]
                means.append(np.array([np.mean([cell[topic] for cell in cells], axis=0) for topic in cells[0]]))
            fall, rise = (means[0] - means[1]).T * np.array([[1], [-1]])
            yield row, f"{benchmark} / increase", [float((fall + rise).mean()), float((fall + rise).std(ddof=1))]
            yield row, f"{benchmark} / relevant rise", [float(rise.mean())]
            yield row, f"{benchmark} / non-relevant fall", [float(fall.mean())]


def offsets_differ(folder: Path, size: int) -> int:
    """How many values of the table of offsets differ, which are printed."""
    with (folder / "report" / "tables" / "memorised-offsets.csv").open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines))
    equal = differing = 0
    for row, column, values in offsets(Grid(folder / "grid"), rows, size):
        written = [float(part.strip("'†‡ ")) for part in row[column].split("±")]
        same = len(written) == len(values) and np.allclose(written, values, rtol=0, atol=5.01e-4)
        equal, differing = equal + same, differing + (not same)
        if not same:
            print(
                f"{folder}: {row['trained on']}, {row['model']}, {column}: {row[column]} in the report, {values} here"
            )
    print(f"{folder}: memorised-offsets.csv: {len(rows)} rows, {equal} cells are equal")
    return differing


def main() -> None:
    """Compares, and prints what is equal and what differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "folders", nargs="+", type=Path, help="with grid/ and report/, as scripts/reproduce.py makes them"
    )
    parser.add_argument("--tolerance", type=float, default=1e-9, help="for what is written in full")
    parser.add_argument("--leaked-size", type=int, default=2000, help="instances of the table of leaked documents")
    options = parser.parse_args()
    differing = 0
    for folder in options.folders:
        if (folder / "report" / "tables" / "memorised-offsets.csv").is_file():
            differing += offsets_differ(folder, options.leaked_size)
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
