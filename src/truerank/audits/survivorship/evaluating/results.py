"""What `survivorship.evaluate` found: means by depth and system, tests, trends, and the order of the systems."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from truerank.audits.survivorship.evaluating.options import EvaluateOptions
from truerank.audits.survivorship.evaluating.report import evaluation_draft
from truerank.audits.survivorship.evaluating.statistics import Contrast, nested_contrast, slope_weights
from truerank.audits.survivorship.page import write_page
from truerank.audits.survivorship.results import provenance
from truerank.measures import correct, difference_interval, difference_test, lower_is_better, mean_interval
from truerank.measures.ordering import OrderChanges, order_changes
from truerank.reports.tables import Cell, Column, Table
from truerank.work.artifacts import Artifacts
from truerank.work.publishing import write_tables

__all__ = ["SCORE_SCHEMA", "DepthCell", "DepthEvaluation", "DepthScores", "Trend"]

#: `scores.parquet`: one value per set of judgments ("all" or "first"), depth, run, measure and query; queries that the
#: depth lacks, or that were left out, have no row.
SCORE_SCHEMA: Final[dict[str, Any]] = {
    "judgments": pl.String,
    "depth": pl.String,
    "run": pl.String,
    "measure": pl.String,
    "topic_id": pl.String,
    "value": pl.Float64,
}
#: How the two sets of judgments are called.
VARIANTS: Final[Mapping[str, str]] = {"all": "all judgments", "first": "first judgment of each query only"}


@dataclass(frozen=True, eq=False)
class DepthScores:
    """Scores by one set of judgments.

    Attributes:
        values: shape (systems, measures, depths, queries), NaN where a depth lacks the query.
        qrels: judgments by depth.
        queries: queries by depth.
        present: by system, how many of them the run has.
        together: how many all runs have.
    """

    values: NDArray[np.float64] = field(repr=False)
    qrels: tuple[int, ...]
    queries: tuple[int, ...]
    present: Mapping[str, tuple[int, ...]]
    together: tuple[int, ...]


class DepthCell(NamedTuple):
    """One system at one depth, compared with the full set.

    `low` and `high` are the ends of the mean's interval; `difference` is this depth minus the full set, None for the
    full set itself; `p` is before and `corrected` after the correction.
    """

    judgments: str
    measure: str
    system: str
    depth: str
    n: int
    mean: float | None
    low: float | None
    high: float | None
    difference: float | None = None
    difference_low: float | None = None
    difference_high: float | None = None
    p: float | None = None
    corrected: float | None = None
    significant: bool = False


class Trend(NamedTuple):
    """How a system's mean moves with depth.

    `slope` is the change of the mean for each further document shown; `change` is the full set minus the shallowest
    one. Both intervals allow for queries that the depths share. The relative changes name their bases.
    """

    judgments: str
    measure: str
    system: str
    slope: Contrast
    change: Contrast
    relative_to_full: float | None
    relative_to_shallowest: float | None


@dataclass(frozen=True, eq=False)
class DepthEvaluation:
    """The result of `survivorship.evaluate`.

    Attributes:
        name: of the log that the judgments come from.
        labels: the depths, the full set last.
        places: where they stand on an axis.
        systems: names of the runs.
        measures: as they are spelled.
        topics: ids of the queries.
        variants: scores by "all" judgments and by the "first" of each query.
        options: the choices.
        derived: the first judgments were told from the depths at which judgments appear.
        strays: judgments of a depth that the full set lacks.
        unknown: by run, queries that no depth has.
        inputs: for the manifest.
    """

    name: str
    labels: tuple[str, ...]
    places: tuple[float, ...]
    systems: tuple[str, ...]
    measures: tuple[str, ...]
    topics: tuple[str, ...]
    variants: Mapping[str, DepthScores]
    options: EvaluateOptions
    derived: bool = False
    strays: int = 0
    unknown: Mapping[str, int] = field(default_factory=dict)
    inputs: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def cells(self) -> tuple[DepthCell, ...]:
        """Every system at every depth, by set of judgments, measure, system and depth."""
        raw = [
            cell
            for variant in self.variants
            for m in range(len(self.measures))
            for s in range(len(self.systems))
            for cell in self._compared(variant, m, s)
        ]
        families: dict[tuple[str, ...], list[int]] = {}
        for place, cell in enumerate(raw):
            if cell.difference is not None:
                families.setdefault(self._family(cell), []).append(place)
        for places in families.values():
            adjusted = correct([raw[place].p for place in places], self.options.correction)
            for place, p in zip(places, adjusted, strict=True):
                raw[place] = raw[place]._replace(corrected=p, significant=p is not None and p < self.options.alpha)
        return tuple(raw)

    @cached_property
    def trends(self) -> tuple[Trend, ...]:
        """How every system's mean moves with depth."""
        return tuple(
            self._trend(variant, m, s)
            for variant in self.variants
            for m in range(len(self.measures))
            for s in range(len(self.systems))
        )

    def cell(self, system: str, depth: str | int, measure: str | None = None, judgments: str = "all") -> DepthCell:
        """One of `cells`; the first measure where none is named."""
        wanted = (judgments, measure or self.measures[0], system, str(depth))
        return next(one for one in self.cells if (one.judgments, one.measure, one.system, one.depth) == wanted)

    @cached_property
    def orders(self) -> Mapping[tuple[str, str, str], OrderChanges]:
        """By set of judgments, measure and depth: the order of the systems there, and in the full set."""
        found = {}
        for variant in self.variants:
            for measure in self.measures:
                full = self._means(variant, measure, self.labels[-1])
                for label in self.labels[:-1]:
                    shallow = self._means(variant, measure, label)
                    if len(full) > 1 and set(shallow) == set(full):
                        found[variant, measure, label] = order_changes(
                            shallow,
                            full,
                            measure=measure,
                            ascending=lower_is_better(measure),
                            conditions=(f"depth {label}", "full set"),
                        )
        return found

    def table(self, measure: str | None = None, judgments: str = "all") -> Table:
        """Means by depth and system, and both counts of queries, as in the paper's Table 4."""
        measure = measure or self.measures[0]
        scores = self.variants[judgments]
        columns = [Column("depth", align="right"), *(Column(name, (measure,), "right") for name in self.systems)]
        number: dict[str, Any] = {"align": "right", "format": ",d"}
        for above in ("queries judged", "queries in all runs"):
            columns += [Column("n", (above,), **number), Column("gained", (above,), align="right", format="+,d")]
        rows = []
        for place, label in enumerate(self.labels):
            shown = (self._shown(self.cell(system, label, measure, judgments)) for system in self.systems)
            counts = (*_gain(scores.queries, place), *_gain(scores.together, place))
            rows.append((label, *shown, *counts))
        title = f"{self.name}: {measure} by annotation depth, {VARIANTS[judgments]}"
        return Table(title, tuple(columns), tuple(rows), tuple(self.notes(judgments)))

    def difference_table(self, measure: str | None = None, judgments: str = "all") -> Table:
        """Every depth against the full set: difference, interval, p."""
        measure = measure or self.measures[0]
        signed: dict[str, Any] = {"align": "right", "format": "+.4f"}
        columns = (
            Column("system"),
            Column("depth", align="right"),
            Column("n", align="right", format=",d"),
            Column("mean", align="right", format=".4f"),
            Column("depth − full", **signed),
            Column("low", (f"{1 - self.options.alpha:.0%} interval",), **signed),
            Column("high", (f"{1 - self.options.alpha:.0%} interval",), **signed),
            Column("p", align="right", format=".3g"),
            Column("corrected", align="right", format=".3g"),
        )
        rows: list[tuple[Cell, ...]] = []
        rules, strong = [], set()
        for system in self.systems:
            rules.append(len(rows))
            for label in self.labels[:-1]:
                one = self.cell(system, label, measure, judgments)
                strong |= {(len(rows), 8)} if one.significant else set()
                rows.append((system, label, one.n, one.mean, *one[8:13]))
        title = f"{measure}: each depth against the full set, {VARIANTS[judgments]}"
        interval = "Intervals are not corrected."
        notes = (self.options.sentences()[0], interval)
        return Table(title, columns, tuple(rows), notes, tuple(rules[1:]), frozenset(strong))

    def trend_table(self, measure: str | None = None) -> Table:
        """The trend of every system, by all and by the first judgments."""
        measure = measure or self.measures[0]
        signed: dict[str, Any] = {"align": "right", "format": "+.4f"}
        above = ("slope per document shown",)
        change = ("full set − shallowest",)
        columns = (
            Column("judgments"),
            Column("system"),
            Column("slope", above, align="right", format="+.5f"),
            Column("low", above, align="right", format="+.5f"),
            Column("high", above, align="right", format="+.5f"),
            Column("change", change, **signed),
            Column("low", change, **signed),
            Column("high", change, **signed),
            Column("of the full set", ("relative change",), align="right", format="+.1%"),
            Column("of the shallowest", ("relative change",), align="right", format="+.1%"),
        )
        rows = tuple(
            (one.judgments, one.system, *one.slope[:3], *one.change[:3], *one[5:])
            for one in self.trends
            if one.measure == measure
        )
        notes = (
            f"Slopes: least squares through the means at {', '.join(self.labels)}"
            + (f", '{self.labels[-1]}' taken for {self.places[-1]:g}." if not self.labels[-1].isdigit() else "."),
            f"{1 - self.options.alpha:.0%} intervals by linearisation; queries that depths share are allowed for.",
        )
        return Table(f"{measure}: the trend with depth", columns, rows, notes, (len(self.systems),))

    def order_table(self) -> Table:
        """Whether the systems change order between a depth and the full set."""
        columns = (
            Column("judgments"),
            Column("measure"),
            Column("depth", align="right"),
            Column("pairs that change", align="right", format=",d"),
            Column("τ", align="right", format=".3f"),
            Column("which"),
        )
        rows = tuple(
            (
                variant,
                measure,
                label,
                len(found.swaps),
                found.tau.tau,
                "; ".join(f"{swap.better} over {swap.worse}" for swap in found.swaps) or "none",
            )
            for (variant, measure, label), found in self.orders.items()
        )
        note = "'a over b': a is better than b at this depth, and worse in the full set."
        return Table("The order of the systems at each depth, and in the full set", columns, rows, (note,))

    def notes(self, judgments: str = "all") -> Iterator[str]:
        """What a reader of the table has to know."""
        yield from self.options.sentences()
        if self.options.test != "nested":
            yield (
                "The shallow queries are a part of the full set, which an unpaired test does not allow for: it finds "
                "less than there is. The test 'nested' does."
            )
        if judgments == "first" and self.derived:
            yield "First judgments: those that appear at the smallest depth, in the order of the file."
        if self.strays:
            yield f"{self.strays:,} judgments of shallower depths are not in the full set."
        scores = self.variants[judgments]
        lacking = {name: scores.queries[-1] - there[-1] for name, there in scores.present.items()}
        if any(lacking.values()):
            shown = ", ".join(f"{name} {number:,}" for name, number in lacking.items() if number)
            yield f"Queries of the full set that runs lack: {shown}."

    def text(self) -> str:
        """The tables for a terminal."""
        tables = [
            table
            for measure in self.measures
            for table in (
                *(self.table(measure, variant) for variant in self.variants),
                self.trend_table(measure),
            )
        ]
        if self.orders:
            tables.append(self.order_table())
        return "\n".join(table.text(120) for table in tables)

    def json(self) -> dict[str, Any]:
        """What `summary.json` holds."""
        return {
            "name": self.name,
            "depths": list(self.labels),
            "systems": list(self.systems),
            "measures": list(self.measures),
            "options": self.options.json(),
            "counts": {
                variant: {
                    "qrels": list(scores.qrels),
                    "queries": list(scores.queries),
                    "queries_in_all_runs": list(scores.together),
                    "queries_in_run": {name: list(there) for name, there in scores.present.items()},
                }
                for variant, scores in self.variants.items()
            },
            "cells": [one._asdict() for one in self.cells],
            "trends": [
                one._asdict() | {"slope": one.slope._asdict(), "change": one.change._asdict()} for one in self.trends
            ],
            "orders": [
                {
                    "judgments": variant,
                    "measure": measure,
                    "depth": label,
                    "swaps": [swap._asdict() for swap in found.swaps],
                    "tau": found.tau.tau,
                }
                for (variant, measure, label), found in self.orders.items()
            ],
            "first_judgments_derived": self.derived,
            "strays": self.strays,
            "unknown_queries": dict(self.unknown),
        }

    def frame(self) -> pl.DataFrame:
        """The scores as a long table, columns as in `SCORE_SCHEMA`."""
        parts = [pl.DataFrame(schema=SCORE_SCHEMA)]
        topics = pl.Series("topic_id", self.topics, dtype=pl.String)
        for variant, scores in self.variants.items():
            for d, label in enumerate(self.labels):
                for s, system in enumerate(self.systems):
                    for m, measure in enumerate(self.measures):
                        known = np.flatnonzero(~np.isnan(scores.values[s, m, d]))
                        texts = {"judgments": variant, "depth": label, "run": system, "measure": measure}
                        part = pl.DataFrame({"topic_id": topics.gather(known), "value": scores.values[s, m, d, known]})
                        literals = [pl.lit(value).alias(name) for name, value in texts.items()]
                        parts.append(part.with_columns(literals).select(list(SCORE_SCHEMA)))
        return pl.concat(parts)

    def save(self, folder: str | Path) -> Path:
        """Writes tables, scores, figures, report, summary and manifest.

        Args:
            folder: made if it does not exist.

        Returns:
            The folder.

        Raises:
            InputError: it cannot be written to.
        """
        artifacts = Artifacts(folder)
        write_tables(artifacts, self.tables())
        artifacts.parquet("scores.parquet", self.frame())
        write_page(artifacts, evaluation_draft(self))
        artifacts.json("summary.json", self.json())
        artifacts.manifest(self.provenance())
        return artifacts.folder

    def tables(self) -> dict[str, Table]:
        """Every table by the name of its files."""
        found: dict[str, Table] = {}
        for number, measure in enumerate(self.measures, start=1):
            end = f"-{number}" if len(self.measures) > 1 else ""
            for variant in self.variants:
                found[f"{variant}{end}"] = self.table(measure, variant)
                found[f"{variant}-differences{end}"] = self.difference_table(measure, variant)
            found[f"trend{end}"] = self.trend_table(measure)
        if self.orders:
            found["order"] = self.order_table()
        return found

    def provenance(self) -> dict[str, Any]:
        """Inputs with hashes, options and versions."""
        return provenance("evaluate", self.inputs, self.options.json())

    def _family(self, cell: DepthCell) -> tuple[str, ...]:
        parts = {"system": (cell.measure, cell.system), "measure": (cell.measure,), "all": ()}
        return (cell.judgments, *parts[self.options.family])

    def _compared(self, variant: str, m: int, s: int) -> Iterator[DepthCell]:
        layers = self.variants[variant].values[s, m]
        full = layers[-1][~np.isnan(layers[-1])]
        for place, label in enumerate(self.labels):
            own = layers[place][~np.isnan(layers[place])]
            mean = mean_interval(own, 1 - self.options.alpha)
            cell = DepthCell(variant, self.measures[m], self.systems[s], label, mean.n, *mean[1:])
            if place < len(self.labels) - 1 and len(own) and len(full):
                found = self._difference(layers, place, own, full)
                cell = cell._replace(
                    difference=found.value, difference_low=found.low, difference_high=found.high, p=found.p
                )
            yield cell

    def _difference(
        self, layers: NDArray[np.float64], place: int, own: NDArray[np.float64], full: NDArray[np.float64]
    ) -> Contrast:
        test, confidence = self.options.test, 1 - self.options.alpha
        if test == "nested":
            weights = np.zeros(len(layers))
            weights[place], weights[-1] = 1.0, -1.0
            return nested_contrast(layers, weights, confidence)
        outcome = difference_test(own, full, test)
        interval = difference_interval(own, full, method=test, confidence=confidence)
        return Contrast(float(own.mean() - full.mean()), interval.low, interval.high, outcome.p)

    def _trend(self, variant: str, m: int, s: int) -> Trend:
        layers = self.variants[variant].values[s, m]
        confidence = 1 - self.options.alpha
        slope = nested_contrast(layers, slope_weights(self.places), confidence)
        ends = np.zeros(len(layers))
        ends[0], ends[-1] = -1.0, 1.0
        change = nested_contrast(layers, ends, confidence)
        shallow = self.cell(self.systems[s], self.labels[0], self.measures[m], variant).mean
        full = self.cell(self.systems[s], self.labels[-1], self.measures[m], variant).mean
        known = shallow is not None and full is not None
        return Trend(
            variant,
            self.measures[m],
            self.systems[s],
            slope,
            change,
            (full - shallow) / full if known and full else None,  # type: ignore[operator]
            (full - shallow) / shallow if known and shallow else None,  # type: ignore[operator]
        )

    def _means(self, variant: str, measure: str, label: str) -> dict[str, float]:
        means = {name: self.cell(name, label, measure, variant).mean for name in self.systems}
        return {name: mean for name, mean in means.items() if mean is not None}

    @staticmethod
    def _shown(cell: DepthCell) -> str | None:
        return None if cell.mean is None else f"{'*' if cell.significant else ''}{cell.mean:.3f}"


def _gain(numbers: tuple[int, ...], place: int) -> tuple[int, int | None]:
    return numbers[place], numbers[place] - numbers[place - 1] if place else None
