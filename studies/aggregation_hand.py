"""Compute the tables of experiment reports a second time, from the kept scores of the trainings.

    python studies/aggregation_hand.py GRID REPORT [GRID REPORT …]
    python studies/aggregation_hand.py BY-DEPTH [BY-DEPTH …]

GRID is a folder that `truerank experiment run` wrote, REPORT one that `experiment report` made of it; BY-DEPTH holds
`depths/`, `runs/` and `report/`. This imports nothing from truerank. The definitions are those of
docs/experiment-report.md, docs/comparing.md, docs/evaluating.md and docs/scores-by-depth.md. What they leave open is
marked OPEN here: it was read off the tables themselves, so that equal values of such a column show that one rule gives
all of them, not that the page states it.

It prints, for each table and column, how many values are equal (numbers at 1e-9, texts as they are), and each value
that differs. Exit status 1 if one does.
"""

from __future__ import annotations

import csv
import hashlib
import itertools
import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import yaml
from numpy.typing import NDArray
from scipy import optimize, stats

Floats = NDArray[np.float64]
Table = list[dict[str, Any]]
TOLERANCE = 1e-9
LOWER_IS_BETTER = ("MFR",)


# Comparison


class Tally:
    """Equal and differing values by table and column."""

    def __init__(self) -> None:
        self.equal: Counter[tuple[str, str]] = Counter()
        self.blank: Counter[tuple[str, str]] = Counter()
        self.differing: list[tuple[str, str, str, str, str]] = []
        self.unchecked: Counter[tuple[str, str]] = Counter()

    def value(self, table: str, column: str, row: str, theirs: str, ours: Any) -> None:
        if agree(theirs, ours):
            (self.blank if ours is None else self.equal)[table, column] += 1
        else:
            self.differing.append((table, column, row, theirs, "–" if ours is None else str(ours)))

    def table(self, file: Path, ours: Table | None, keys: Sequence[str]) -> None:
        """Compare a CSV file with rows that have the same keys, in any order."""
        name = file.stem
        with file.open(newline="", encoding="utf-8") as lines:
            theirs = list(csv.DictReader(lines))
        if ours is None:
            for column in theirs[0] if theirs else ():
                self.unchecked[name, column] += len(theirs)
            return
        keys = [key for key in keys if theirs and key in theirs[0]]
        left, right = ({tuple(str(row[key]) for key in keys): row for row in rows} for rows in (theirs, ours))
        assert len(left) == len(theirs) and len(right) == len(ours), f"{file}: rows with the same {keys}"
        columns = {column for row in ours for column in row}
        for key in [*left, *(key for key in right if key not in left)]:
            self.value(
                name,
                "(rows)",
                ", ".join(key),
                "in the report" if key in left else "",
                "in the report" if key in right else None,
            )
            if key not in left or key not in right:
                continue
            for column, text in left[key].items():
                if column in columns:
                    self.value(name, column, ", ".join(key), text, right[key].get(column))
                else:
                    self.unchecked[name, column] += 1

    def show(self) -> bool:
        columns = {**self.equal, **self.blank, **{(table, column): 0 for table, column, *_ in self.differing}}
        print(f"{'table':32} {'column':40} {'equal':>6} {'empty':>6} {'differ':>6}")
        wrong = Counter((table, column) for table, column, *_ in self.differing)
        for place in sorted(columns):
            print(f"{place[0]:32} {place[1]:40} {self.equal[place]:6} {self.blank[place]:6} {wrong[place]:6}")
        for table, column, row, theirs, ours in self.differing:
            print(f"DIFFERS {table} | {column} | {row}: the report has {theirs!r}, here {ours}")
        for (table, column), count in sorted(self.unchecked.items()):
            print(f"NOT COMPARED {table} | {column}: {count} values")
        equal, blank = sum(self.equal.values()), sum(self.blank.values())
        print(f"{equal} values equal, {blank} empty in both, {len(self.differing)} differ\n")
        return not self.differing


class Between(NamedTuple):
    """Where a percentile of another bootstrap may lie."""

    low: float
    high: float


def agree(theirs: str, ours: Any) -> bool:
    if ours is None:
        return theirs == ""
    if isinstance(ours, Between):
        return theirs != "" and ours.low <= float(theirs) <= ours.high
    if isinstance(ours, str):
        return theirs.removeprefix("'") == ours
    if theirs == "":
        return False
    return abs(float(theirs) - float(ours)) <= TOLERANCE * max(1.0, abs(float(ours)))


# Statistics


class Interval(NamedTuple):
    mean: float
    low: float | None
    high: float | None


def student(values: Floats) -> Interval:
    """Mean and 95% interval of Student's t."""
    n, mean = len(values), float(values.mean())
    if n < 2:
        return Interval(mean, None, None)
    half = float(stats.t.ppf(0.975, n - 1) * values.std(ddof=1) / np.sqrt(n))
    return Interval(mean, mean - half, mean + half)


def paired_p(difference: Floats) -> float | None:
    """Paired t-test, two-sided; 1 where nothing differs."""
    if np.all(np.abs(difference) < 1e-12):
        return 1.0
    spread = difference.std(ddof=1)
    if spread == 0:
        return None
    return float(2 * stats.t.sf(abs(difference.mean() / (spread / np.sqrt(len(difference)))), len(difference) - 1))


def bonferroni(p: float | None, family: int) -> float | None:
    return None if p is None else min(1.0, p * family)


@cache
def smallest_noncentrality(n: int) -> float:
    """The true mean difference, in standard errors, that a t-test over n finds with power 0.8."""
    critical = float(stats.t.ppf(0.975, n - 1))
    about = critical + float(stats.t.ppf(0.8, n - 1))

    def lacking(effect: float) -> float:
        return float(stats.nct.sf(critical, n - 1, effect) + stats.nct.cdf(-critical, n - 1, effect)) - 0.8

    return float(optimize.brentq(lacking, 0.7 * about, 1.3 * about, xtol=1e-13, rtol=1e-14))


def detectable(difference: Floats) -> float | None:
    spread = float(difference.std(ddof=1))
    return smallest_noncentrality(len(difference)) * spread / np.sqrt(len(difference)) if spread else None


def percentiles(values: Floats) -> tuple[float, float]:
    """Percentile bootstrap of a mean. OPEN: the generator and the order of its draws."""
    draws = np.random.default_rng(0).integers(0, len(values), (10_000, len(values)))
    low, high = np.percentile(values[draws].mean(axis=1), [2.5, 97.5])
    return float(low), float(high)


# Measures, written from their definitions


def grade(judged: Mapping[str, int], document: str) -> int:
    return max(judged.get(document, 0), 0)


def score(measure: str, ranking: Sequence[str], judged: Mapping[str, int], rel: int, depth: int) -> float:
    name, _, cut = measure.partition("@")
    k = int(cut) if cut else len(ranking)
    hits = [judged.get(document, 0) >= rel for document in ranking]
    first = next((place for place, hit in enumerate(hits, 1) if hit), None)
    match name:
        case "nDCG":
            gain = sum(grade(judged, document) / np.log2(place + 1) for place, document in enumerate(ranking[:k], 1))
            best = sorted((max(value, 0) for value in judged.values()), reverse=True)[: k if cut else None]
            ideal = sum(value / np.log2(place + 1) for place, value in enumerate(best, 1))
            return float(gain / ideal) if ideal else 0.0
        case "P":
            return sum(hits[:k]) / k
        case "RR":
            return 1 / first if first and first <= k else 0.0
        case "AP":
            total = sum(value >= rel for value in judged.values())
            return (
                sum(sum(hits[:place]) / place for place in range(1, min(k, len(hits)) + 1) if hits[place - 1]) / total
                if total
                else 0.0
            )
        case "MFR":
            return float(first or depth + 1)
    raise SystemExit(f"{measure} is not written here")


# A grid


class Cell(NamedTuple):
    label: str
    model: str
    size: int | None
    seed: int | None
    variant: str | None
    name: str

    @property
    def block(self) -> str:
        return self.label.rpartition(" | ")[0]

    @property
    def condition(self) -> str:
        return self.label.rpartition(" | ")[2]


class Collection(NamedTuple):
    name: str
    topics: tuple[str, ...]
    judged: dict[str, dict[str, int]]
    depth: int
    rel: int
    measures: tuple[str, ...]
    folds: Any


class Grid:
    """Finished cells, and what they score by topic."""

    def __init__(self, folder: Path, options: Mapping[str, Any]) -> None:
        self.folder, self.options = folder, options
        self.design = yaml.safe_load((folder / "design.yaml").read_text(encoding="utf-8"))
        self.record = pl.read_parquet(folder / "record.parquet").to_dicts()
        self.leaked = pl.read_parquet(folder / "leaked.parquet").to_dicts()
        self.kind: str = options["kind"]
        self.baseline: str = options["baseline"]
        if self.design.get("benchmarks"):
            raise SystemExit("benchmarks that join collections are not written here")
        self.collections = {name: self._collection(name) for name in self.design["collections"]}
        self._scores: dict[str, dict[str, dict[str, dict[str, tuple[float, bool]]]]] = {}

    def _collection(self, name: str) -> Collection:
        about = self.design["collections"][name]
        judged: dict[str, dict[str, int]] = defaultdict(dict)
        for row in pl.read_parquet(self.folder / "collections" / name / "qrels.parquet").iter_rows(named=True):
            judged[row["topic_id"]][row["doc_id"]] = row["relevance"]
        measures = self.options["measures"] or about.get("measures") or self.design["measures"]
        return Collection(
            name,
            tuple(sorted(judged)),
            dict(judged),
            about["depth"],
            about.get("rel", 1),
            tuple(measures),
            about["folds"],
        )

    def folds(self, collection: Collection) -> NDArray[np.int64]:
        """In the order of SHA-256 of seed, a zero byte and topic, dealt out in turn.

        OPEN: docs/comparing.md has 'a hash of seed and topic'."""
        seed = self.design["collections"][collection.name].get("fold_seed", 0)
        order = sorted(collection.topics, key=lambda topic: hashlib.sha256(f"{seed}\0{topic}".encode()).digest())
        place = {topic: number % int(collection.folds) for number, topic in enumerate(order)}
        return np.array([place[topic] for topic in collection.topics])

    def cells(self, collection: str) -> list[Cell]:
        return [
            Cell(row["label"], row["model"], row["size"], row["seed"], row["variant"], row["cell"])
            for row in self.record
            if row["status"] == "done" and collection in row["collections"]
        ]

    def scores(self, cell: str, collection: str) -> dict[str, dict[str, tuple[float, bool]]]:
        """Score, and whether it is a candidate, by topic and document."""
        if cell not in self._scores:
            output: dict[str, dict[str, dict[str, tuple[float, bool]]]] = defaultdict(lambda: defaultdict(dict))
            for name, topic, document, value, candidate in pl.read_parquet(
                self.folder / "cells" / cell / "scores.parquet"
            ).iter_rows():
                output[name][topic][document] = (value, candidate)
            self._scores[cell] = output
        return self._scores[cell][collection]

    @cache  # noqa: B019
    def by_topic(self, cell: str, collection: str, measure: str) -> Floats:
        about = self.collections[collection]
        scored = self.scores(cell, collection)
        return np.array(
            [
                score(measure, ranking(scored.get(topic, {})), about.judged[topic], about.rel, self.depth(cell, about))
                for topic in about.topics
            ]
        )

    def depth(self, cell: str, about: Collection) -> int:
        model = next(row["model"] for row in self.record if row["cell"] == cell)
        return int(self.design["models"][model].get("depth") or about.depth)


def ranking(scored: Mapping[str, tuple[float, bool]]) -> list[str]:
    """Candidates by score, equal ones by document id ascending."""
    return [
        document
        for _, document in sorted((-value, document) for document, (value, candidate) in scored.items() if candidate)
    ]


# Effectiveness by training set


class Estimate(NamedTuple):
    """One row: the value of each topic under the choice of its fold."""

    block: str
    model: str
    condition: str
    values: Floats
    seeds: dict[int, float]
    trainings: tuple[float, ...]
    chosen: str


def ranker(grid: Grid, model: str) -> str:
    return str(grid.design["models"][model]["model"]).partition(":")[0]


def best(candidates: Sequence[Floats], apart: NDArray[np.bool_], measure: str) -> int:
    means = [round(float(values[apart].mean()), 12) for values in candidates]
    return int(np.argmin(means) if measure.partition("@")[0] in LOWER_IS_BETTER else np.argmax(means))


def counted(names: Iterable[str]) -> str:
    """OPEN: the choices in the order of the folds, each with how many folds made it."""
    return ", ".join(f"{name} ×{count}" for name, count in Counter(names).items())


def estimates(grid: Grid, about: Collection, measure: str) -> list[Estimate]:
    cells = grid.cells(about.name)
    by_run = grid.options["choose"] == "runs"
    groups: dict[tuple[str, str, str], list[Cell]] = {}
    for cell in cells:
        model = ranker(grid, cell.model) if by_run else cell.model
        groups.setdefault((cell.block, model, cell.condition), []).append(cell)
    fold = grid.folds(about)
    output = []
    for (block, model, condition), members in groups.items():
        of = {cell: grid.by_topic(cell.name, about.name, measure) for cell in members}
        trainings = tuple(float(values.mean()) for values in of.values())
        values, chosen, seeds = np.zeros(len(about.topics)), [], {}
        if by_run:
            names = [f"{cell.model} seed {cell.seed}" for cell in members]
            options = list(of.values())
        else:
            shared = set.intersection(
                *({cell.size for cell in group} for key, group in groups.items() if key[:2] == (block, model))
            )
            sizes: list[int | None] = [*sorted(size for size in shared if size is not None)] or [None]
            names = [f"{size:,}" if size is not None else "" for size in sizes]
            options = [np.mean([of[cell] for cell in members if cell.size == size], axis=0) for size in sizes]
        picks = {number: best(options, fold != number, measure) for number in sorted(set(fold.tolist()))}
        for number, pick in picks.items():
            values[fold == number] = options[pick][fold == number]
            chosen.append(names[pick])
        if not by_run:
            common = set.intersection(*({cell.seed for cell in members if cell.size == size} for size in sizes))
            for seed in sorted(seed for seed in common if seed is not None):
                single = np.zeros(len(about.topics))
                for number, pick in picks.items():
                    cell = next(cell for cell in members if cell.size == sizes[pick] and cell.seed == seed)
                    single[fold == number] = of[cell][fold == number]
                seeds[seed] = float(single.mean())
        output.append(Estimate(block, model, condition, values, seeds, trainings, counted(chosen)))
    return output


def in_order(rows: Sequence[Estimate], baseline: str) -> list[Estimate]:
    """As in the design; the baseline first, except in strategies."""
    pairs = list(dict.fromkeys((row.block, row.model) for row in rows))
    return [
        row
        for pair in pairs
        for row in sorted(
            (row for row in rows if (row.block, row.model) == pair), key=lambda row: row.condition != baseline
        )
    ]


def family(rows: Sequence[Estimate], baseline: str) -> int:
    return sum(row.condition != baseline for row in rows)


def base_of(rows: Sequence[Estimate], row: Estimate, baseline: str) -> Estimate:
    return next(
        other for other in rows if (other.block, other.model, other.condition) == (row.block, row.model, baseline)
    )


def details(grid: Grid, about: Collection) -> Table:
    table = []
    for measure in about.measures:
        rows = estimates(grid, about, measure)
        for row in in_order(rows, grid.baseline):
            over = student(row.values)
            several = np.array(list(row.seeds.values()))
            seeds = student(several) if len(several) else Interval(0.0, None, None)
            line: dict[str, Any] = {
                "measure": measure,
                "queries": row.block,
                "model": row.model,
                "trained on": row.condition,
                "topics": len(row.values),
            }
            line |= {f"over topics / {key}": value for key, value in over._asdict().items()}
            line |= {
                "over seeds / seeds": len(several),
                "over seeds / mean": seeds.mean if len(several) else None,
                "over seeds / sd": float(several.std(ddof=1)) if len(several) > 1 else None,
                "over seeds / low": seeds.low,
                "over seeds / high": seeds.high,
                "single trainings / lowest": min(row.trainings),
                "single trainings / highest": max(row.trainings),
                "chosen, folds": row.chosen,
            }
            if row.condition != grid.baseline:
                other = base_of(rows, row, grid.baseline)
                difference = row.values - other.values
                p = paired_p(difference)
                corrected = bonferroni(p, family(rows, grid.baseline))
                both = np.array([row.seeds[seed] - other.seeds[seed] for seed in row.seeds if seed in other.seeds])
                change = student(both) if len(both) > 1 else Interval(0.0, None, None)
                line |= {
                    f"difference, over topics / {key}": value for key, value in student(difference)._asdict().items()
                }
                line |= {"p / raw": p, "p / corrected": corrected, "p / †": mark(corrected)}
                line |= {
                    "difference, over seeds / mean": float(both.mean()) if len(both) else None,
                    "difference, over seeds / low": change.low,
                    "difference, over seeds / high": change.high,
                }
            else:
                ends = ("mean", "low", "high")
                line |= dict.fromkeys(
                    [f"difference, over {what} / {end}" for what in ("topics", "seeds") for end in ends]
                )
                line |= dict.fromkeys(["p / raw", "p / corrected", "p / †"])
            table.append(line)
    return table


def mark(p: float | None) -> str | None:
    return "†" if p is not None and p < 0.05 else None


def better(left: float, right: float, measure: str) -> bool:
    if round(left, 12) == round(right, 12):
        return False
    return left < right if measure.partition("@")[0] in LOWER_IS_BETTER else left > right


def changes(
    rows: Sequence[Estimate], baseline: str, measure: str
) -> list[tuple[str, str, str, str, str, float, float]]:
    """Block, condition, sign, model, other, difference before, difference afterwards."""
    mean = {(row.block, row.model, row.condition): float(row.values.mean()) for row in rows}
    output = []
    for block, condition in dict.fromkeys((row.block, row.condition) for row in rows if row.condition != baseline):
        models = [
            row.model
            for row in rows
            if (row.block, row.condition) == (block, condition) and (block, row.model, baseline) in mean
        ]
        for model, other in itertools.permutations(models, 2):
            before, after = (
                (mean[block, model, baseline], mean[block, other, baseline]),
                (mean[block, model, condition], mean[block, other, condition]),
            )
            if better(*before, measure) and better(after[1], after[0], measure):
                output.append((block, condition, "↔", model, other, before[0] - before[1], after[0] - after[1]))
            if better(before[1], before[0], measure) and better(after[0], before[1], measure):
                output.append((block, condition, "‡", model, other, before[0] - before[1], after[0] - before[1]))
    return output


def marked(grid: Grid, rows: Sequence[Estimate], row: Estimate, measure: str) -> str:
    text = f"{row.values.mean():.4f}"
    if row.condition == grid.baseline:
        return text
    p = paired_p(row.values - base_of(rows, row, grid.baseline).values)
    text += mark(bonferroni(p, family(rows, grid.baseline))) or ""
    swaps = [swap for swap in changes(rows, grid.baseline, measure) if swap[:2] == (row.block, row.condition)]
    text += "‡" if any(sign == "‡" and model == row.model for _, _, sign, model, *_ in swaps) else ""
    return text + ("↔" if any(sign == "↔" and row.model in pair for _, _, sign, *pair, _, _ in swaps) else "")


def effectiveness(grid: Grid, about: Collection) -> Table:
    lines: dict[str, dict[str, Any]] = {}
    for measure in about.measures:
        rows = estimates(grid, about, measure)
        for row in rows:
            lines.setdefault(row.model, {"model": row.model})[f"{measure} / {row.condition}"] = marked(
                grid, rows, row, measure
            )
    return list(lines.values())


def strategies(grid: Grid) -> Table:
    lines: dict[tuple[str, str, str], dict[str, Any]] = {}
    for about in grid.collections.values():
        for measure in about.measures:
            rows = estimates(grid, about, measure)
            for row in rows:
                line = lines.setdefault(
                    (row.block, row.condition, row.model),
                    {"queries": row.block, "selection": row.condition, "ranker": row.model},
                )
                line[f"{about.name} / {measure}"] = marked(grid, rows, row, measure)
    first: dict[str, Any] = {"queries": "first stage", "selection": "", "ranker": ""}
    for about in grid.collections.values():
        ranked: dict[str, list[tuple[float, str]]] = defaultdict(list)
        run = grid.folder / "collections" / about.name / "first-stage.run"
        for text in run.read_text(encoding="utf-8").splitlines():
            topic, _, document, _, value, _ = text.split()
            ranked[topic].append((-float(value), document))
        for measure in about.measures:
            rankings = {topic: [document for _, document in sorted(pairs)] for topic, pairs in ranked.items()}
            values = [
                score(measure, rankings.get(topic, [])[: about.depth], about.judged[topic], about.rel, about.depth)
                for topic in about.topics
            ]
            first[f"{about.name} / {measure}"] = f"{np.mean(values):.4f}"
    return [*lines.values(), first]


def order(grid: Grid, about: Collection) -> Table:
    words = {"↔": "↔ change places", "‡": "‡ overtakes"}
    table: Table = []
    for measure in about.measures:
        rows = estimates(grid, about, measure)
        for _, condition, sign, model, other, before, after in changes(rows, grid.baseline, measure):
            table.append(
                {
                    "measure": measure,
                    "trained on": condition,
                    "kind": words[sign],
                    "model": model,
                    "other": other,
                    "model minus other / both on none": before,
                    "model minus other / afterwards": after,
                }
            )
    return table


def controls(grid: Grid) -> Table:
    table = []
    for about in grid.collections.values():
        for measure in about.measures:
            rows = estimates(grid, about, measure)
            for row in rows:
                if row.condition == grid.baseline:
                    continue
                plain = base_of(rows, row, grid.baseline)
                difference = plain.values - row.values
                corrected = bonferroni(paired_p(difference), family(rows, grid.baseline))
                line = {
                    "benchmark": about.name,
                    "measure": measure,
                    "model": row.model + (mark(corrected) or ""),
                    "control": row.condition,
                    "topics": len(difference),
                    "mean / on none": plain.values.mean(),
                    "mean / on control": row.values.mean(),
                    "p corrected": corrected,
                }
                line |= {f"above control / {key}": value for key, value in student(difference)._asdict().items()}
                table.append(line)
    return table


def at_one_size(grid: Grid, about: Collection, measure: str) -> dict[str, tuple[Floats, list[float]]]:
    """By model: means over the seeds of the largest size of the baseline, by topic, and the mean of each seed."""
    groups: dict[str, list[Cell]] = defaultdict(list)
    cells = [cell for cell in grid.cells(about.name) if cell.label == grid.baseline]
    largest = grid.options["pilot_size"] or max(cell.size or 0 for cell in cells)
    for cell in cells:
        if (cell.size or 0) == largest:
            groups[cell.model].append(cell)
    output = {}
    for model, members in groups.items():
        values = [grid.by_topic(cell.name, about.name, measure) for cell in members]
        output[model] = (np.mean(values, axis=0), [float(single.mean()) for single in values])
    return output


def pilot(grid: Grid, about: Collection) -> Table:
    lines: dict[str, dict[str, Any]] = {}
    leader = ""
    for measure in about.measures:
        models = at_one_size(grid, about, measure)
        if not leader:
            sign = 1 if measure.partition("@")[0] in LOWER_IS_BETTER else -1
            ordered = sorted(models, key=lambda model: sign * round(float(models[model][0].mean()), 12))
            leader = ordered[0]
            lines = {model: {"model": model, "seeds": len(models[model][1])} for model in ordered}
        for model, (values, seeds) in models.items():
            p = None if model == leader else bonferroni(paired_p(values - models[leader][0]), len(models) - 1)
            over = student(values)
            lines[model] |= {
                f"{measure} / mean": f"{over.mean:.4f}{mark(p) or ''}",
                f"{measure} / low": over.low,
                f"{measure} / high": over.high,
                f"{measure} / sd over seeds": float(np.std(seeds, ddof=1)) if len(seeds) > 1 else None,
            }
    return list(lines.values())


def depths(grid: Grid) -> Table:
    table = []
    for about in grid.collections.values():
        for measure in about.measures:
            rows = estimates(grid, about, measure)
            for row in rows:
                line: dict[str, Any] = {
                    "benchmark": about.name,
                    "measure": measure,
                    "model": row.model,
                    "trained on": row.condition,
                }
                line |= {"topics": len(row.values), "mean": marked(grid, rows, row, measure)}
                if row.condition != grid.baseline:
                    full = base_of(rows, row, grid.baseline)
                    difference = row.values - full.values
                    line |= {
                        f"difference to all / {key}": value for key, value in student(difference)._asdict().items()
                    }
                    line["p corrected"] = bonferroni(paired_p(difference), family(rows, grid.baseline))
                    # OPEN: a positive value is a gain here.
                    line["relative difference / of all"] = difference.mean() / full.values.mean()
                    line["relative difference / of the smaller set"] = difference.mean() / row.values.mean()
                else:
                    line |= dict.fromkeys(
                        [
                            "difference to all / mean",
                            "difference to all / low",
                            "difference to all / high",
                            "p corrected",
                            "relative difference / of all",
                            "relative difference / of the smaller set",
                        ]
                    )
                table.append(line)
    return table


def pairs(grid: Grid, about: Collection, number: int) -> Table:
    """All pairs of depths for one model. OPEN: the family are the pairs of all models."""
    table = []
    for measure in about.measures:
        rows = estimates(grid, about, measure)
        models = list(dict.fromkeys(row.model for row in rows))
        compared = 0
        lines: Table = []
        for model in models:
            mine = [row for row in rows if row.model == model]
            for low, high in itertools.combinations(mine, 2):
                compared += 1
                if model != models[number - 1]:
                    continue
                difference = high.values - low.values
                wins, losses = int((difference > TOLERANCE).sum()), int((difference < -TOLERANCE).sum())
                spread = difference.std(ddof=1)
                line: dict[str, Any] = {
                    "run": high.condition,
                    "measure": measure,
                    "baseline": low.condition,
                    "topics": len(difference),
                }
                line |= {
                    "mean / run": high.values.mean(),
                    "mean / baseline": low.values.mean(),
                    "p / raw": paired_p(difference),
                }
                line |= {f"difference / {key}": value for key, value in student(difference)._asdict().items()}
                line |= {"effect": difference.mean() / spread if spread else None, "detectable": detectable(difference)}
                line["win / tie / loss"] = f"{wins} / {len(difference) - wins - losses} / {losses}"
                lines.append(line)
        for line in lines:
            line["p / corrected"] = bonferroni(line["p / raw"], compared)
            line["p / †"] = mark(line["p / corrected"])
        table += lines
    return table


def sizes(grid: Grid) -> Table:
    """The first measure at each size, leaking topics first."""
    table: Table = []
    for about in grid.collections.values():
        measure = about.measures[0]
        leaks = {name for name, builders in grid.design["sets"].items() if builders["kind"] == "leak"}
        leaking = {row["topic_id"] for row in grid.leaked if row["collection"] == about.name and row["set"] in leaks}
        groups: dict[tuple[str, str, int], list[Floats]] = defaultdict(list)
        for cell in grid.cells(about.name):
            groups[cell.condition, cell.model, cell.size or 0].append(grid.by_topic(cell.name, about.name, measure))
        conditions = list(dict.fromkeys(key[0] for key in groups if key[0] != grid.baseline))
        models = list(dict.fromkeys(key[1] for key in groups))
        for title, members in (("leaking", leaking), ("all", set(about.topics))):
            keep = np.array([topic in members for topic in about.topics])
            for condition, model in itertools.product(conditions, models):
                for size in sorted({key[2] for key in groups if key[:2] == (condition, model)}):
                    plain, with_fault = groups.get((grid.baseline, model, size), []), groups[condition, model, size]
                    if not plain or not keep.any():
                        continue
                    left, right = np.mean(plain, axis=0)[keep], np.mean(with_fault, axis=0)[keep]
                    line: dict[str, Any] = {
                        "collection": about.name,
                        "topics": title,
                        "model": model,
                        "trained on": condition,
                        "size": size,
                    }
                    line |= {
                        "n": int(keep.sum()),
                        "seeds": f"{len(plain)} and {len(with_fault)}",
                        "none / mean": left.mean(),
                        "with the fault / mean": right.mean(),
                    }
                    line |= {f"difference / {key}": value for key, value in student(right - left)._asdict().items()}
                    table.append(line)
    return table


def finished(grid: Grid) -> Table:
    table: dict[tuple[str, str], dict[str, Any]] = {}
    for row in grid.record:
        line = table.setdefault(
            (row["set"], row["model"]),
            {"training set": row["set"], "kind": row["kind"], "model": row["model"]}
            | dict.fromkeys((f"cells / {what}" for what in ("planned", "done", "failed", "missing")), 0),
        )
        line["cells / planned"] += 1
        line[f"cells / {row['status']}"] += 1
    return list(table.values())


# Memorisation


class Memory(NamedTuple):
    """What the leaked documents of a topic have after training with the leak and without, by topic."""

    topics: tuple[str, ...]
    rank: dict[tuple[bool, bool], Floats]
    score: dict[tuple[bool, bool], Floats]


def memory(grid: Grid, about: Collection, label: str, model: str, relevant_only: bool) -> Memory | None:
    size = grid.options["memorisation_size"]
    sets = grid.design["sets"].items()
    leaks = {name for name, values in sets if values["label"] == label and about.name in values["for"]}
    documents: dict[str, dict[bool, list[str]]] = defaultdict(lambda: {True: [], False: []})
    for row in grid.leaked:
        if row["collection"] == about.name and row["set"] in leaks:
            documents[row["topic_id"]][row["relevant"]].append(row["doc_id"])
    cells = {
        (cell.condition == label, cell.seed): cell.name
        for cell in grid.cells(about.name)
        if cell.model == model and cell.size == size and cell.condition in (label, grid.baseline)
    }
    seeds = sorted(
        {seed for leak, seed in cells if leak} & {seed for leak, seed in cells if not leak}, key=lambda seed: seed or 0
    )
    if not seeds:
        return None
    needed = (True,) if relevant_only else (True, False)
    topics = tuple(topic for topic in sorted(documents) if all(documents[topic][side] for side in needed))
    rank: dict[tuple[bool, bool], Floats] = {}
    scores: dict[tuple[bool, bool], Floats] = {}
    for leak, side in itertools.product((True, False), needed):
        places, values = np.zeros((len(topics), len(seeds))), np.zeros((len(topics), len(seeds)))
        for column, seed in enumerate(seeds):
            scored = grid.scores(cells[leak, seed], about.name)
            for line, topic in enumerate(topics):
                of = scored[topic]
                candidates = sorted((-value, name) for name, (value, candidate) in of.items() if candidate)
                wanted = [(-of[name][0], name) for name in documents[topic][side]]
                places[line, column] = np.mean([1 + sum(other < single for other in candidates) for single in wanted])
                values[line, column] = np.mean([-value for value, _ in wanted])
        rank[leak, side], scores[leak, side] = places.mean(axis=1), values.mean(axis=1)
    return Memory(topics, rank, scores)


def spread(values: Floats, digits: int) -> str:
    return f"{values.mean():.{digits}f} ± {values.std(ddof=1):.{digits}f}"


def signed(value: float, digits: int) -> str:
    return f"{value:+.{digits}f}"


def memorised(grid: Grid, what: str) -> Table:
    """`ranks`, `scores` or `offsets`. OPEN: digits; that offsets are of the topics with both kinds of documents."""
    labels = [builders["label"] for builders in grid.design["sets"].values() if builders["kind"] in ("leak", "test")]
    digits = 2 if what == "ranks" else 3
    changed: dict[tuple[str, str, str], Floats] = {}
    lines: dict[tuple[str, str], dict[str, Any]] = {}
    for label, model, about in itertools.product(
        dict.fromkeys(labels), grid.design["models"], grid.collections.values()
    ):
        kept = memory(grid, about, label, model, what != "offsets")
        if kept is None:
            continue
        line = lines.setdefault((label, model), {"trained on": label, "model": model})
        if what == "offsets":
            rise = kept.rank[False, True] - kept.rank[True, True]
            fall = kept.rank[True, False] - kept.rank[False, False]
            difference = rise + fall
            line |= {
                f"{about.name} / increase": spread(difference, digits),
                f"{about.name} / relevant rise": signed(rise.mean(), digits),
                f"{about.name} / non-relevant fall": signed(fall.mean(), digits),
            }
        else:
            values = kept.rank if what == "ranks" else kept.score
            difference = values[True, True] - values[False, True]
            line |= {
                f"{about.name} / with": spread(values[True, True], digits),
                f"{about.name} / without": spread(values[False, True], digits),
                f"{about.name} / difference": signed(difference.mean(), digits),
            }
        low, high = percentiles(difference)
        line[f"{about.name} / 95% interval"] = f"{signed(low, digits)} to {signed(high, digits)}"
        changed[label, model, about.name] = difference
    column = "increase" if what == "offsets" else "difference"
    for (label, model, name), difference in changed.items():
        lines[label, model][f"{name} / {column}"] += mark(bonferroni(paired_p(difference), len(changed))) or ""
    return list(lines.values())


def over(values: Floats, of: Sequence[str], topics: Sequence[str], draws: NDArray[np.int64]) -> Floats:
    """Mean of each draw over those of its topics that have a value."""
    placed = dict(zip(of, values.tolist(), strict=True))
    drawn = np.array([placed.get(topic, np.nan) for topic in topics])[draws]
    return np.asarray(np.nanmean(drawn, axis=1))


def memorised_differences(grid: Grid) -> Table:
    table: Table = []
    for about, model in itertools.product(grid.collections.values(), grid.design["models"]):
        first, second = memory(grid, about, "test", model, True), memory(grid, about, "leak", model, True)
        if first is None or second is None:
            continue
        left, right = (
            first.score[True, True] - first.score[False, True],
            second.score[True, True] - second.score[False, True],
        )
        line: dict[str, Any] = {
            "collection": about.name,
            "model": model,
            "leak": "test",
            "other leak": "leak",
            "change of the score / of the leak": left.mean(),
            "change of the score / of the other": right.mean(),
            "difference of the differences / mean": left.mean() - right.mean(),
        }
        topics = sorted({*first.topics, *second.topics})
        draws = np.random.default_rng(0).integers(0, len(topics), (10_000, len(topics)))
        drawn = [over(values, of.topics, topics, draws) for values, of in ((left, first), (right, second))]
        # Another generator draws other topics: an end may be within four standard errors of two such percentiles.
        slack = 4 * np.sqrt(2 * 0.025 * 0.975 / len(draws))
        for end, level in (("low", 0.025), ("high", 0.975)):
            line[f"difference of the differences / {end}"] = Between(
                *np.nanquantile(drawn[0] - drawn[1], [level - slack, level + slack]).tolist()
            )
        table.append(line)
    return table


# Scores by depth


def read_run(file: Path) -> dict[str, list[str]]:
    """As trec_eval: scores cut to 32 bits, equal ones by document id descending."""
    output: dict[str, list[tuple[float, bytes, str]]] = defaultdict(list)
    for line in file.read_text(encoding="utf-8").splitlines():
        topic, _, document, _, value, _ = line.split()
        output[topic].append((float(np.float32(value)), document.encode(), document))
    return {topic: [document for *_, document in sorted(rows, reverse=True)] for topic, rows in output.items()}


def read_qrels(file: Path) -> dict[str, dict[str, int]]:
    output: dict[str, dict[str, int]] = defaultdict(dict)
    for line in file.read_text(encoding="utf-8").splitlines():
        topic, _, document, value = line.split()
        output[topic][document] = int(value)
    return output


class Depths:
    """Scores of each system by the judgments of each depth, by query."""

    def __init__(self, folder: Path, judgments: str) -> None:
        about = json.loads((folder / "report" / "summary.json").read_text(encoding="utf-8"))
        self.names: list[str] = about["depths"]
        self.systems: list[str] = about["systems"]
        self.measure: str = about["measures"][0]
        where = folder / "depths" / ("qrels" if judgments == "all" else "first")
        self.qrels = [read_qrels(next(where.glob(f"*-{name}.qrels"))) for name in self.names]
        self.scores = {
            system: [
                {topic: score(self.measure, run.get(topic, []), judged, 1, 0) for topic, judged in qrels.items()}
                for qrels in self.qrels
            ]
            for system in self.systems
            for run in [read_run(folder / "runs" / f"{system}.run")]
        }

    def values(self, system: str, depth: int) -> Floats:
        return np.array(list(self.scores[system][depth].values()))

    def means(self, system: str) -> Floats:
        return np.array([self.values(system, depth).mean() for depth in range(len(self.names))])

    def weighted(self, system: str, weights: Floats) -> Interval:
        """A weighted sum of the means, which share queries. OPEN: the degrees of freedom, of the smallest set."""
        influence: dict[str, float] = defaultdict(float)
        means = self.means(system)
        for depth, weight in enumerate(weights):
            for topic, value in self.scores[system][depth].items():
                influence[topic] += weight * (value - means[depth]) / len(self.scores[system][depth])
        n = len(influence)
        error = float(np.sqrt(sum(value**2 for value in influence.values()) * n / (n - 1)))
        mean = float(weights @ means)
        half = float(stats.t.ppf(0.975, min(map(len, self.qrels)) - 1)) * error
        return Interval(mean, mean - half, mean + half)


def welch(left: Floats, right: Floats) -> tuple[Interval, float]:
    a, b = left.var(ddof=1) / len(left), right.var(ddof=1) / len(right)
    freedom = (a + b) ** 2 / (a**2 / (len(left) - 1) + b**2 / (len(right) - 1))
    mean, error = float(left.mean() - right.mean()), float(np.sqrt(a + b))
    half = float(stats.t.ppf(0.975, freedom)) * error
    return Interval(mean, mean - half, mean + half), float(2 * stats.t.sf(abs(mean) / error, freedom))


def by_depth(folder: Path, tally: Tally) -> None:
    tables = folder / "report" / "tables"
    trends: Table = []
    swaps: Table = []
    for judgments in ("all", "first"):
        of = Depths(folder, judgments)
        last = len(of.names) - 1
        tests = {
            (system, depth): welch(of.values(system, depth), of.values(system, last))
            for system in of.systems
            for depth in range(last)
        }
        corrected = {key: min(1.0, p * len(tests)) for key, (_, p) in tests.items()}
        rows: Table = []
        for (system, depth), (interval, p) in tests.items():
            values = of.values(system, depth)
            rows.append(
                {
                    "system": system,
                    "depth": of.names[depth],
                    "n": len(values),
                    "mean": values.mean(),
                    "depth − full": interval.mean,
                    "95% interval / low": interval.low,
                    "95% interval / high": interval.high,
                    "p": p,
                    "corrected": corrected[system, depth],
                }
            )
        tally.table(tables / f"{judgments}-differences.csv", rows, ("system", "depth"))
        lines: Table = []
        for depth, name in enumerate(of.names):
            n = len(of.qrels[depth])
            gained = len(of.qrels[depth].keys() - of.qrels[depth - 1].keys()) if depth else None
            line: dict[str, Any] = {"depth": name, "queries judged / n": n, "queries judged / gained": gained}
            # Every run has all queries here.
            line |= {"queries in all runs / n": n, "queries in all runs / gained": gained}
            for system in of.systems:
                star = "*" if depth < last and corrected[system, depth] < 0.05 else ""
                line[f"{of.measure} / {system}"] = f"{star}{of.values(system, depth).mean():.3f}"
            lines.append(line)
        tally.table(tables / f"{judgments}.csv", lines, ("depth",))
        # OPEN: the depth of the full set counts as one more than the deepest.
        shown = np.arange(1, last + 2, dtype=float)
        slope = (shown - shown.mean()) / ((shown - shown.mean()) ** 2).sum()
        ends = np.zeros(last + 1)
        ends[0], ends[last] = -1, 1
        for system in of.systems:
            line = {"judgments": judgments, "system": system}
            line |= {
                f"slope per document shown / {'slope' if key == 'mean' else key}": value
                for key, value in of.weighted(system, slope)._asdict().items()
            }
            change = of.weighted(system, ends)
            line |= {
                f"full set − shallowest / {'change' if key == 'mean' else key}": value
                for key, value in change._asdict().items()
            }
            means = of.means(system)
            line |= {
                "relative change / of the full set": change.mean / means[last],
                "relative change / of the shallowest": change.mean / means[0],
            }
            trends.append(line)
        for depth in range(last):
            here, full = ([float(of.means(system)[place]) for system in of.systems] for place in (depth, last))
            output = [
                f"{of.systems[i]} over {of.systems[j]}"
                for i, j in itertools.permutations(range(len(of.systems)), 2)
                if here[i] > here[j] + 1e-12 and full[j] > full[i] + 1e-12
            ]
            swaps.append(
                {
                    "judgments": judgments,
                    "measure": of.measure,
                    "depth": of.names[depth],
                    "pairs that change": len(output),
                    "τ": float(stats.kendalltau(here, full).statistic),
                    "which": frozenset(output),
                }
            )
    tally.table(tables / "trend.csv", trends, ("judgments", "system"))
    for line in swaps:
        line["which"] = "; ".join(sorted(line["which"])) or "none"
    # The order of the pairs is not compared.
    with (tables / "order.csv").open(newline="", encoding="utf-8") as file:
        for theirs, line in zip(csv.DictReader(file), swaps, strict=True):
            theirs["which"] = "; ".join(sorted(theirs["which"].split("; ")))
            for column, value in theirs.items():
                tally.value("order", column, f"{line['judgments']}, {line['depth']}", value, line[column])


# All of a report


def report(folder: Path, tables: Path, options: Mapping[str, Any], tally: Tally) -> None:
    grid = Grid(folder, options)
    builders: dict[str, tuple[Callable[[], Table], tuple[str, ...]]] = {
        "grid": (partial(finished, grid), ("training set", "model")),
        "controls": (partial(controls, grid), ("benchmark", "measure", "model")),
        "depths": (partial(depths, grid), ("benchmark", "measure", "model", "trained on")),
        "strategies": (partial(strategies, grid), ("queries", "selection")),
        "sizes": (partial(sizes, grid), ("collection", "topics", "model", "trained on", "size")),
        "memorised-differences": (partial(memorised_differences, grid), ("collection", "model")),
    }
    for what in ("ranks", "scores", "offsets"):
        builders[f"memorised-{what}"] = (partial(memorised, grid, what), ("trained on", "model"))
    for about in grid.collections.values():
        of_collection: dict[str, tuple[Callable[[Grid, Collection], Table], tuple[str, ...]]] = {
            f"effectiveness-{about.name}-details": (details, ("measure", "queries", "model", "trained on")),
            f"effectiveness-{about.name}": (effectiveness, ("model",)),
            f"order-{about.name}": (order, ("measure", "trained on", "kind", "model", "other")),
            f"pilot-{about.name}": (pilot, ("model",)),
        }
        builders |= {
            name: (partial(function, grid, about), columns) for name, (function, columns) in of_collection.items()
        }
    for file in sorted(tables.glob("*.csv")):
        numbered = re.fullmatch(r"pairs-(.+)-(\d+)", file.stem)
        if numbered:
            about, number = grid.collections[numbered[1]], int(numbered[2])
            tally.table(file, pairs(grid, about, number), ("run", "measure", "baseline"))
        elif file.stem in builders:
            rows, keys = builders[file.stem]
            tally.table(file, rows(), keys)
        else:
            tally.table(file, None, ())


def main(folders: Sequence[str]) -> int:
    right, left = True, [Path(folder) for folder in folders]
    if not left:
        raise SystemExit(__doc__)
    while left:
        folder, tally = left.pop(0), Tally()
        if (folder / "record.parquet").is_file() and left:
            tables = left.pop(0)
            print(f"# {folder} and {tables}")
            options = json.loads((tables / "manifest.json").read_text(encoding="utf-8"))["options"]
            report(folder, tables / "tables", options, tally)
        elif (folder / "depths").is_dir():
            print(f"# {folder}")
            by_depth(folder, tally)
        else:
            raise SystemExit(
                f"{folder} is neither a grid that is followed by its report nor a folder of scores by depth"
            )
        right &= tally.show()
    return 0 if right else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
