"""`truerank survivorship evaluate`: systems scored by the judgments of every annotation depth; tests and trends."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, NamedTuple

import numpy as np
import polars as pl
import scipy
from ir_measures.measures.base import Measure
from numpy.typing import NDArray

from truerank.arrays import Floats, frame_schema
from truerank.audits.survivorship.depths import by_depth, depth_label
from truerank.core.plain import picked, plain
from truerank.core.result import Result
from truerank.errors import InputError, OptionError
from truerank.measures import (
    correct,
    detectable_difference,
    difference_interval,
    difference_test,
    lower_is_better,
    mean_interval,
    parse_measures,
)
from truerank.measures import evaluate as score_runs
from truerank.measures.grammar import MeasureSpec
from truerank.measures.orders import OrderChanges, order_changes
from truerank.measures.rankings import whole_topics
from truerank.measures.significance import Correction
from truerank.options import Confidence, Flag, Options, Out, Scoring, command
from truerank.records import Input
from truerank.sources import parse, read_qrels_frame, read_run_frame, run_frames, unique_names
from truerank.sources.inputs import input_of
from truerank.work.progress import Progress, Quiet
from truerank.work.publishing import publish
from truerank.work.runs import run as started

#: The tests of a depth against the full set, in words.
TESTS: Final[dict[str, str]] = {
    "welch": "Welch's unpaired t-test",
    "equal-variance-t": "Student's unpaired t-test with one variance",
    "nested": "t-test of the difference that allows for the queries that both sets have",
}


#: `scores.parquet`: one value per set of judgments ("all" or "first"), depth, run, measure and query; queries that the
#: depth lacks, or that were left out, have no row.
SCORE_SCHEMA: Final[dict[str, Any]] = frame_schema("judgments depth run measure topic_id: String, value: Float64")
#: How the two sets of judgments are called.
VARIANTS: Final[Mapping[str, str]] = {"all": "all judgments", "first": "first judgment of each query only"}


@dataclass(frozen=True)
class EvaluateOptions(Options):
    """How depths are compared with the full set.

    Attributes:
        significance: the test: welch and equal-variance-t take the two sets of queries as if they shared none, as the
            paper does; nested allows for the shallow set being a part of the full one.
        correction: of the p-values.
        family: what is corrected for: the comparisons of one system (its depths), of one measure (all systems and
            depths), or of all measures together.
        confidence: of intervals; a corrected p below 1 − confidence is significant.
    """

    significance: Literal["welch", "equal-variance-t", "nested"] = "welch"
    correction: Correction = "bonferroni"
    family: Literal["system", "measure", "all"] = "measure"
    confidence: Confidence = 0.95

    @property
    def alpha(self) -> float:
        """The level: a corrected p below it is significant."""
        return round(1 - self.confidence, 12)

    def sentence(self) -> str:
        """The test and its correction in words."""
        families = {
            "system": "the depths of each system",
            "measure": "all depths and systems of each measure",
            "all": "all depths, systems and measures together",
        }
        corrected = "not corrected"
        if self.correction != "none":
            corrected = f"corrected ({self.correction}) for {families[self.family]}"
        return f"* differs from the full set: {TESTS[self.significance]}, two-sided, {corrected}, p < {self.alpha:g}."


class Contrast(NamedTuple):
    """A weighted sum of the means at several depths, with its interval and the p of its being zero.

    The interval and p are None where there are too few queries, or no spread, to tell.
    """

    value: float
    low: float | None = None
    high: float | None = None
    p: float | None = None
    #: The smallest true value that the test finds with a power of 0.8 at the level of the interval.
    detectable: float | None = None

    @property
    def known(self) -> bool:
        return self.low is not None and self.high is not None and not self.low <= 0 <= self.high


def nested_contrast(scores: Floats, weights: Sequence[float] | Floats, confidence: float = 0.95) -> Contrast:
    """A weighted sum of means over sets of queries that overlap, by linearisation.

    Queries are the sampling units. Each adds to the sum what it adds to the means of the sets that it is in; the
    variance is that of these additions, so that what two sets have in common cancels out.

    Args:
        scores: shape (depths, queries), NaN where a depth lacks the query.
        weights: of the means, shape (depths,).

    Source: Woodruff, A simple method for approximating the variance of a complicated estimate (JASA 1971).
    """
    there = ~np.isnan(scores)
    sizes = there.sum(axis=1)
    factors = np.asarray(weights, np.float64)
    used = factors != 0
    if not len(sizes) or (sizes[used] == 0).any():
        return Contrast(math.nan)
    means = np.where(there, scores, 0.0).sum(axis=1) / np.maximum(1, sizes)
    value = float(factors[used] @ means[used])
    smallest = int(sizes[used].min())
    if smallest < 2:
        return Contrast(value)
    added = np.where(there, scores - means[:, None], 0.0) * (factors / np.maximum(1, sizes))[:, None]
    queries = int(there[used].any(axis=0).sum())
    error = math.sqrt(float(np.square(added.sum(axis=0)).sum()) * queries / (queries - 1))
    if error <= 1e-12 * max(1.0, float(np.abs(means).max())):
        return Contrast(value, value, value, 1.0 if abs(value) < 1e-12 else None)
    half = float(scipy.special.stdtrit(smallest - 1, (1 + confidence) / 2)) * error
    p = 2 * float(scipy.special.stdtr(smallest - 1, -abs(value) / error))
    # As for a paired test over the smallest set of queries, whose freedom the interval has, too.
    reach = detectable_difference(smallest, error * math.sqrt(smallest), alpha=1 - confidence)
    return Contrast(value, value - half, value + half, p, reach)


def slope_weights(places: Sequence[float]) -> Floats:
    """The weights that make the slope of a straight line through means out of them."""
    centred = np.asarray(places, np.float64) - float(np.mean(places))
    total = float(np.square(centred).sum())
    return centred / total if total else centred


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


@dataclass(frozen=True, eq=False, repr=False)
class DepthEvaluation(Result, shown_in="truerank.audits.survivorship.evaluation_report"):
    """Scores by annotation depth.

    Attributes:
        name: of the log that the judgments come from.
        labels: the depths, the full set last.
        places: where they stand on an axis.
        systems: names of the runs.
        measures: as they are spelled.
        topics: ids of the queries.
        variants: scores by "all" judgments and by the "first" of each query.
        options: how depths are compared.
        scoring: how runs were scored.
        derived: the first judgments were told from the depths at which judgments appear.
        strays: judgments of a depth that the full set lacks.
        unknown: by run, queries that no depth has.
        out: the folder that it was written to.
    """

    name: str
    labels: tuple[str, ...]
    places: tuple[float, ...]
    systems: tuple[str, ...]
    measures: tuple[str, ...]
    topics: tuple[str, ...]
    variants: Mapping[str, DepthScores]
    options: EvaluateOptions
    scoring: Scoring = Scoring()
    derived: bool = False
    strays: int = 0
    unknown: Mapping[str, int] = field(default_factory=dict)
    out: Path | None = None

    @cached_property
    def cells(self) -> tuple[DepthCell, ...]:
        """Every system at every depth, by set of judgments, measure, system and depth."""
        raw = [cell for each in self._rows() for cell in self._compared(*each)]
        families: dict[tuple[str, ...], list[int]] = {}
        for place, cell in enumerate(raw):
            if cell.difference is not None:
                parts = {"system": (cell.measure, cell.system), "measure": (cell.measure,), "all": ()}
                families.setdefault((cell.judgments, *parts[self.options.family]), []).append(place)
        for places in families.values():
            adjusted = correct([raw[place].p for place in places], self.options.correction)
            for place, p in zip(places, adjusted, strict=True):
                raw[place] = raw[place]._replace(corrected=p, significant=p is not None and p < self.options.alpha)
        return tuple(raw)

    @cached_property
    def trends(self) -> tuple[Trend, ...]:
        """How every system's mean moves with depth."""
        return tuple(self._trend(*each) for each in self._rows())

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
                        ends, ascending = (f"depth {label}", "full set"), lower_is_better(measure)
                        changes = order_changes(shallow, full, measure=measure, ascending=ascending, conditions=ends)
                        found[variant, measure, label] = changes
        return found

    def json(self) -> dict[str, Any]:
        """What `summary.json` holds."""
        keys = ("qrels", "queries", "queries_in_all_runs", "queries_in_run")
        counts = {
            variant: dict(zip(keys, (scores.qrels, scores.queries, scores.together, scores.present), strict=True))
            for variant, scores in self.variants.items()
        }
        orders = [
            {"judgments": variant, "measure": measure, "depth": label, "swaps": found.swaps, "tau": found.tau.tau}
            for (variant, measure, label), found in self.orders.items()
        ]
        return {
            **picked(self, "name, depths=labels, systems, measures"),
            "options": {"measures": list(self.measures), **plain(self.options), **self.scoring.json()},
            "counts": counts,
            **picked(self, "cells, trends"),
            "orders": plain(orders),
            **picked(self, "first_judgments_derived=derived, strays, unknown_queries=unknown"),
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

    def _rows(self) -> Iterator[tuple[str, int, int]]:
        return itertools.product(self.variants, range(len(self.measures)), range(len(self.systems)))

    def _compared(self, variant: str, m: int, s: int) -> Iterator[DepthCell]:
        layers = self.variants[variant].values[s, m]
        full = layers[-1][~np.isnan(layers[-1])]
        for place, label in enumerate(self.labels):
            own = layers[place][~np.isnan(layers[place])]
            mean = mean_interval(own, self.options.confidence)
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
        test, confidence = self.options.significance, self.options.confidence
        if test == "nested":
            weights = np.zeros(len(layers))
            weights[place], weights[-1] = 1.0, -1.0
            return nested_contrast(layers, weights, confidence)
        outcome = difference_test(own, full, test)
        interval = difference_interval(own, full, method=test, confidence=confidence)
        return Contrast(float(own.mean() - full.mean()), interval.low, interval.high, outcome.p)

    def _trend(self, variant: str, m: int, s: int) -> Trend:
        layers = self.variants[variant].values[s, m]
        confidence = self.options.confidence
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


_PACKAGES: Final = ("ir-measures", "scipy", "matplotlib")
_NAMED: Final = re.compile(r"(?P<name>.+)-(?P<label>0*[1-9]\d*|all)\.qrels(\.(gz|bz2|xz|zst))?")


@command
def evaluate(
    run: Annotated[str | Path | Sequence[str | Path], Flag(metavar="FILE", reads=list[str])],
    depths: Annotated[str | Path | None, Flag(metavar="DIR", reads=Path)] = None,
    qrels: Annotated[Mapping[str, str], Flag(metavar="K=FILE")] = MappingProxyType({}),
    measures: Annotated[MeasureSpec, Flag(reads=str)] = "RR_MSMARCO@10",
    *,
    options: EvaluateOptions = EvaluateOptions(),
    scoring: Scoring = Scoring(),
    out: Out = None,
    progress: Progress | None = None,
) -> DepthEvaluation:
    """Scores runs by the judgments of each annotation depth, to show whether a shallow annotation moves the figures.

    Each depth is tested against the full set; the trend has an interval; the order of the systems is compared; and all
    of it once more with the first judgment of each query only.

    Args:
        run: TREC runs; repeat the option for several. Each is read once.
        depths: the folder that survivorship depth wrote, or one with files NAME-K.qrels.
        qrels: in its place, judgments by depth, and all=FILE. In Python files by depth.
        measures: measures of ir_measures, separated by blanks; RR_MSMARCO@10 follows the official rules.
        options: how depths are compared with the full set.
        scoring: how runs are scored.
        out: a folder for page, tables, scores.parquet and manifest.
        progress: is told about the work.

    Returns:
        Scores by depth with their tests, trends and the order of the systems.

    Raises:
        InputError: a fault in a file, or in how the files fit together.

    Examples:

        truerank survivorship evaluate --depths depths/ --run bm25.run --run monot5.run --out scores/

        truerank survivorship evaluate --qrels 1=dev-1.qrels --qrels all=dev.qrels --run bm25.run --significance nested

    Source: Gupta, MacAvaney: On Survivorship Bias in MS MARCO (SIGIR 2022), section 4, Table 4.
    """
    paths = [str(one) for one in ([run] if isinstance(run, str | Path) else run)]
    if not paths:
        raise OptionError("run", "no run", "name at least one")
    sets = read_depth_sets(depths, qrels)
    names = unique_names([parse(path) for path in paths])
    cutoff = largest_cutoff(parse_measures(measures))
    frames = [frame["topic_id"] for frame in reversed(list(sets.every.values()))]
    # The queries of the full set first.
    wanted = pl.concat(frames).unique(maintain_order=True).alias("topic_id")
    progress = progress or Quiet()
    progress.start("runs", total=len(names))
    scored: dict[str, _Run] = {}
    for name, path in zip(names, paths, strict=True):
        scored[name] = _scored(name, kept_run(path, wanted, cutoff), (sets, wanted), measures, scoring)
        progress.advance(1)
    result = replace(_result(sets, wanted, scored, options, scoring), out=None if out is None else Path(out))
    if out is not None:
        inputs = (*sets.inputs, *(input_of("run", path, name) for name, path in zip(names, paths, strict=True)))
        chosen = {"measures": list(result.measures), "options": options, "scoring": scoring}
        with started("survivorship evaluate", inputs, chosen, out, packages=_PACKAGES) as job:
            job.skipped = {"unknown_queries": {name: number for name, number in result.unknown.items() if number}}
            job.parquet("scores.parquet", result.frame())
            publish(result, job)
    return result


@dataclass(frozen=True, eq=False)
class DepthSets:
    """Judgments by depth."""

    name: str
    every: Mapping[str, pl.DataFrame]
    first: Mapping[str, pl.DataFrame]
    derived: bool = False
    strays: int = 0
    inputs: tuple[Input, ...] = ()

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(self.every)

    @property
    def places(self) -> tuple[float, ...]:
        """Where the depths stand on an axis; the whole log stands one after the last number."""
        numbers = [int(label) for label in self.labels if label.isdigit()]
        beyond = max(numbers, default=0) + 1
        return tuple(float(label) if label.isdigit() else float(beyond) for label in self.labels)


def read_depth_sets(folder: str | Path | None = None, files: Mapping[str, str] = MappingProxyType({})) -> DepthSets:
    if (folder is None) == (not files):
        remedy = "give `depths`, or `qrels` K=FILE for each depth"
        raise InputError("judgments by depth are needed", remedy, where="survivorship evaluate")
    if folder is not None:
        name, paths, firsts = _of_folder(Path(folder))
    else:
        name, paths, firsts = "qrels", _of_files(files), {}
    if len(paths) < 2:
        fault = f"{len(paths)} annotation depth" + "s" * (not paths)
        raise InputError(fault, "give two or more, the full set included", where=folder or "qrels")
    every = {label: read_qrels_frame(str(path)) for label, path in paths.items()}
    derived = set(firsts) != set(paths)
    first = _firsts(every) if derived else {label: read_qrels_frame(str(firsts[label])) for label in paths}
    if empty := next((label for label, frame in first.items() if not len(frame)), None):
        raise InputError("no relevant judgment in it", "leave this depth out", where=paths[empty])
    whole = every[list(every)[-1]]
    keys = ["topic_id", "doc_id"]
    strays = sum(len(frame.join(whole, on=keys, how="anti")) for frame in every.values())
    inputs = tuple(input_of("qrels", path, label, len(every[label])) for label, path in paths.items())
    return DepthSets(name, every, first, derived, strays, inputs)


def _of_folder(folder: Path) -> tuple[str, dict[str, Path], dict[str, Path]]:
    if not folder.is_dir():
        raise InputError("no folder", "give what 'survivorship depth --out' wrote", where=folder)
    inner = folder / "qrels"
    found = _named_files(inner if inner.is_dir() else folder)
    if len(found) != 1:
        names = ", ".join(sorted(found)) or "none"
        fault = f"judgments NAME-K.qrels of one name are needed, there are: {names}"
        raise InputError(fault, "name the files with `qrels` K=FILE", where=folder)
    name = next(iter(found))
    firsts = _named_files(folder / "first") if (folder / "first").is_dir() else {}
    return name, found[name], firsts.get(name, {})


def _named_files(folder: Path) -> dict[str, dict[str, Path]]:
    found: dict[str, dict[str, Path]] = {}
    for path in sorted(folder.iterdir()):
        if (match := _NAMED.fullmatch(path.name)) and path.is_file():
            found.setdefault(match["name"], {})[depth_label(match["label"], "depths")] = path
    return {name: _ordered(paths) for name, paths in found.items()}


def _of_files(files: Mapping[str, str]) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for label, path in files.items():
        label = depth_label(label, "qrels", f"{label}={path}")
        if label in found:
            raise OptionError("qrels", f"the depth {label} appears twice", "give each once")
        found[label] = Path(path)
    return _ordered(found)


def _ordered(paths: Mapping[str, Path]) -> dict[str, Path]:
    return {label: paths[label] for label in sorted(paths, key=by_depth)}


def _firsts(every: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """The judgment of each query that appears first, by the depth and then by the order of the file."""
    seen = pl.concat(
        [
            frame.with_columns(pl.lit(place, pl.Int32).alias("level")).with_row_index("row")
            for place, frame in enumerate(every.values())
        ]
    ).filter(pl.col("relevance") > 0)
    first = seen.sort("level", "row").unique("topic_id", keep="first", maintain_order=True)
    return {
        label: first.filter(pl.col("level") <= place).select(frame.columns)
        for place, (label, frame) in enumerate(every.items())
    }


@dataclass(frozen=True, eq=False)
class KeptRun:
    """The rows of a run that can be scored: those of the wanted queries, above the largest cutoff."""

    rows: pl.DataFrame
    queries: frozenset[str]
    unknown: int


def largest_cutoff(measures: Sequence[Measure]) -> int | None:
    cutoffs = [measure.params.get("cutoff") for measure in measures]
    if any(
        cutoff is None or measure.params.get("judged_only") for cutoff, measure in zip(cutoffs, measures, strict=True)
    ):
        return None
    return max(int(cutoff) for cutoff in cutoffs if cutoff is not None)


def kept_run(path: str, wanted: pl.Series, cutoff: int | None) -> KeptRun:
    parts: list[pl.DataFrame] = []
    topics: set[str] = set()
    for piece in whole_topics(run_frames(path)):
        if piece is None:
            # Topics that come back: the whole run has to be seen.
            whole = read_run_frame(path)
            parts, topics = [_cut(whole, wanted, cutoff)], set(whole["topic_id"].unique())
            break
        parts.append(_cut(piece[0], wanted, cutoff))
        topics.update(piece[0]["topic_id"].gather(piece[1]))
    there = frozenset(topics & set(wanted))
    if not there:
        fault = f"the run holds none of the {len(wanted):,} queries of the judgments"
        raise InputError(fault, f"give matching files; the judgments have '{wanted[0]}'", where=path)
    return KeptRun(pl.concat(parts, rechunk=True), there, len(topics) - len(there))


def _cut(piece: pl.DataFrame, wanted: pl.Series, cutoff: int | None) -> pl.DataFrame:
    kept = piece.filter(pl.col("topic_id").is_in(wanted.implode())).drop("tag")
    if cutoff is None:
        return kept
    scores = pl.col("score").cast(pl.Float32)
    best = scores.rank("min", descending=True).over("topic_id") <= cutoff
    return kept.filter(best | (pl.col("rank").rank("min").over("topic_id") <= cutoff))


class _Run(NamedTuple):
    """One run's scores by set of judgments, shape (measures, depths, queries), NaN where a depth lacks the query."""

    measures: tuple[str, ...]
    values: Mapping[str, Floats]
    queries: frozenset[str]
    unknown: int


def _scored(
    name: str, kept: KeptRun, judged: tuple[DepthSets, pl.Series], measures: MeasureSpec, scoring: Scoring
) -> _Run:
    sets, wanted = judged
    places = pl.DataFrame({"topic_id": wanted}).with_row_index("place")
    spelled: tuple[str, ...] = ()
    values: dict[str, Floats] = {}
    for variant, frames in (("all", sets.every), ("first", sets.first)):
        layers: list[Floats] = []
        for qrels in frames.values():
            scores = score_runs(qrels, {name: kept.rows}, measures, scoring)
            spelled = scores.measures
            at = pl.DataFrame({"topic_id": scores.topics}).join(places, on="topic_id", maintain_order="left")["place"]
            layer = np.full((len(spelled), len(wanted)), np.nan)
            layer[:, at.to_numpy()] = scores.values[0]
            layers.append(layer)
        values[variant] = np.stack(layers, axis=1)
    return _Run(spelled, values, kept.queries, kept.unknown)


def _result(
    sets: DepthSets, wanted: pl.Series, runs: Mapping[str, _Run], options: EvaluateOptions, scoring: Scoring
) -> DepthEvaluation:
    variants = {}
    for variant, frames in (("all", sets.every), ("first", sets.first)):
        values = np.stack([run.values[variant] for run in runs.values()])
        queries = {label: frozenset(frame["topic_id"]) for label, frame in frames.items()}
        variants[variant] = DepthScores(
            values=values,
            qrels=tuple(len(frame) for frame in frames.values()),
            queries=tuple(len(ids) for ids in queries.values()),
            present={name: tuple(len(ids & run.queries) for ids in queries.values()) for name, run in runs.items()},
            together=tuple(len(ids.intersection(*(run.queries for run in runs.values()))) for ids in queries.values()),
        )
    return DepthEvaluation(
        name=sets.name,
        labels=sets.labels,
        places=sets.places,
        systems=tuple(runs),
        measures=next(iter(runs.values())).measures,
        topics=tuple(wanted),
        variants=variants,
        options=options,
        scoring=scoring,
        derived=sets.derived,
        strays=sets.strays,
        unknown={name: run.unknown for name, run in runs.items()},
    )
