"""`truerank survivorship profile`: what was discarded, by split, kind of query, rank of the selection, and depth."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import numpy as np
import scipy

from truerank.arrays import Floats, Ints
from truerank.audits.survivorship.annotation_logs import Annotation, AnnotationLog, LogCounts, open_annotations
from truerank.audits.survivorship.queries import (
    Kinds,
    NamedSources,
    Survival,
    independence,
    input_of_log,
    left_out,
    named_source,
    named_sources,
    read_ids,
    read_kinds,
)
from truerank.core.plain import picked, plain
from truerank.core.result import Result
from truerank.errors import InputError, OptionError
from truerank.measures.magnitudes import Proportion, proportion
from truerank.options import Flag, Options, Out, Range, Resampling, command
from truerank.records import Input
from truerank.sources.grammar import SourceSpec
from truerank.sources.inputs import input_of
from truerank.work.progress import Progress, Quiet
from truerank.work.publishing import publish
from truerank.work.runs import run as started

#: Fewer depths than this carry no trend.
_FEWEST_DEPTHS: Final = 4
_STEPS: Final = 50
#: The shapes that the chance of a selection may have beyond what was shown.
_SHAPES: Final[tuple[tuple[str, Callable[[Floats], Floats]], ...]] = (
    ("trend in log depth", lambda k: np.column_stack([np.ones_like(k), np.log(k)])),
    ("trend in depth", lambda k: np.column_stack([np.ones_like(k), k])),
    ("as at the last depths", lambda k: np.ones((len(k), 1))),
)
#: The last shape looks at this share of the depths, the deepest.
_RECENT: Final = 1 / 3


class DepthPoint(NamedTuple):
    """One depth within what was shown.

    `discarded` is what the log gives when cut there; `adjusted` what it would be had every query been shown so many
    documents (Kaplan–Meier, for lists of different lengths); `reached` says how many queries were shown so many.
    """

    depth: int
    discarded: Proportion
    adjusted: float
    reached: int


class FutureShare(NamedTuple):
    """One depth beyond what was shown: the middle of all shapes, and the outer ends of their intervals."""

    depth: int
    share: float
    low: float
    high: float


@dataclass(frozen=True)
class DepthCurve:
    """Discarded share by depth.

    Attributes:
        points: what the log says.
        beyond: an extrapolation, empty where there is none.
        shown: the depth that at least half of the queries without a selection above it were shown; the trend rests on
            the depths up to it.
        shapes: by name of a shape, the share that it gives at each depth beyond.
        dispersion: how much more the chances vary between depths than chance explains, by shape (1: no more).
        why_not: why there is no extrapolation.
    """

    points: tuple[DepthPoint, ...]
    beyond: tuple[FutureShare, ...]
    shown: int
    shapes: dict[str, tuple[float, ...]]
    dispersion: dict[str, float]
    why_not: str = ""

    def json(self) -> dict[str, Any]:
        points = [
            {"depth": one.depth, "extrapolated": False, **one.discarded.json(), **plain(one, "depth", "discarded")}
            for one in self.points
        ]
        beyond = [{**one._asdict(), "extrapolated": True} for one in self.beyond]
        known = picked(self, "trend_from_depths_up_to=shown, shapes, dispersion")
        return {"points": points, "beyond": beyond, **known, "why_not": self.why_not or None}


def depth_curve(
    first: Ints, shown: Ints, *, to: int | None = None, confidence: float = 0.95, resamples: int = 2000, seed: int = 0
) -> DepthCurve:
    """Discarded share at every depth, and beyond.

    The chance that a document at some depth is the first to be selected, given that none above it was, is a discrete
    hazard. Within the depths shown it is counted. Beyond, three shapes carry it on: logistic trends in the logarithm of
    the depth and in the depth, and the level of the last third of depths. Their uncertainty is that of a
    quasi-binomial fit, so that an uneven course widens it; the interval spans those of all shapes.

    Args:
        resamples: draws from each shape's uncertainty.

    Source: the cuts are those of Gupta, MacAvaney (SIGIR 2022), section 4.1; the extrapolation is this project's.
    """
    deepest = int(shown.max()) if len(shown) else 0
    depths = np.arange(1, deepest + 1)
    events = np.bincount(first[first >= 0], minlength=deepest)[:deepest] if deepest else np.zeros(0, np.int64)
    reached = len(shown) - np.cumsum(np.bincount(shown, minlength=deepest + 1))[:deepest] if deepest else events
    # Those at risk at depth k were shown k documents or more and have selected none of the first k-1.
    last = np.where(first >= 0, np.minimum(first + 1, shown), shown)
    risk = len(shown) - np.cumsum(np.bincount(last, minlength=deepest + 1))[:deepest] if deepest else events
    hazard = np.divide(events, risk, out=np.zeros(deepest), where=risk > 0)
    adjusted = np.cumprod(1 - hazard)
    left = len(shown) - np.cumsum(events)
    points = tuple(
        DepthPoint(int(k), proportion(int(n), len(shown), confidence=confidence), float(share), int(long))
        for k, n, share, long in zip(depths, left, adjusted, reached, strict=True)
    )
    # A depth that only a minority of the undecided was shown says nothing about the others.
    usual = int((risk * 2 >= left + events).cumprod().sum())
    to = 2 * usual if to is None else to
    why_not = _why_not(usual, to, events[:usual])
    if why_not:
        return DepthCurve(points, (), usual, {}, {}, why_not)
    trend = _Trend(events[:usual], risk[:usual], float(adjusted[usual - 1]), confidence, resamples, seed)
    return _extrapolated(points, trend, to)


class _Trend(NamedTuple):
    """First selections and queries without one until then, by depth; where a trend begins, and how it is drawn."""

    events: Ints
    risk: Ints
    share: float
    confidence: float
    resamples: int
    seed: int


def _why_not(usual: int, to: int, events: Ints) -> str:
    if to == 0:
        return "Extrapolation was not wanted."
    if usual < _FEWEST_DEPTHS:
        return f"Most queries were shown {usual} documents; a trend needs {_FEWEST_DEPTHS}."
    if to <= usual:
        return f"Nothing to extrapolate: depth {to} was shown to most queries."
    return "" if events.sum() and (events > 0).sum() > 2 else "Too few selections for a trend."


def _extrapolated(points: tuple[DepthPoint, ...], trend: _Trend, to: int) -> DepthCurve:
    events, risk, share, confidence, resamples, seed = trend
    usual = len(events)
    # Greenwood's standard error of the share of queries still without a selection.
    open_ = risk > events
    error = share * math.sqrt(float((events[open_] / (risk[open_] * (risk[open_] - events[open_]))).sum()))
    future = np.arange(usual + 1, to + 1, dtype=np.float64)
    tails = [100 * (1 - confidence) / 2, 50, 100 * (1 + confidence) / 2]
    shapes: dict[str, tuple[float, ...]] = {}
    dispersion: dict[str, float] = {}
    found = []
    for number, (name, columns) in enumerate(_SHAPES):
        span = slice(usual - max(2, round(usual * _RECENT)), usual) if number == 2 else slice(0, usual)
        past = np.arange(1, usual + 1, dtype=np.float64)[span]
        fit, covariance, spread = _fitted(columns(past), events[span], risk[span])
        draw = np.random.default_rng((seed, number))
        weights = draw.multivariate_normal(fit, covariance, resamples, method="svd")
        begin = np.clip(draw.normal(share, error, resamples), 0, 1)
        paths = begin[:, None] * np.cumprod(1 - scipy.special.expit(weights @ columns(future).T), axis=1)
        found.append(np.percentile(paths, tails, axis=0))
        shapes[name] = tuple((share * np.cumprod(1 - scipy.special.expit(columns(future) @ fit))).tolist())
        dispersion[name] = spread
    together = np.array(found)
    low, middle, high = together[:, 0].min(0), together[:, 1].mean(0), together[:, 2].max(0)
    beyond = tuple(
        FutureShare(int(k), float(middle[i]), float(low[i]), float(high[i])) for i, k in enumerate(future.tolist())
    )
    return DepthCurve(points, beyond, usual, shapes, dispersion)


def _fitted(columns: Floats, events: Ints, risk: Ints) -> tuple[Floats, Floats, float]:
    """A logistic regression of counts by Newton's steps: weights, covariance with dispersion, dispersion."""
    # Half an event more keeps depths without any from pulling the fit to minus infinity.
    share = (events + 0.5) / (risk + 1.0)
    weights = np.linalg.lstsq(columns, np.log(share / (1 - share)), rcond=None)[0]
    for _ in range(_STEPS):
        fitted = scipy.special.expit(columns @ weights)
        curvature = columns.T @ (columns * (risk * fitted * (1 - fitted))[:, None])
        step = np.linalg.lstsq(curvature, columns.T @ (events - risk * fitted), rcond=None)[0]
        weights = weights + step
        if np.abs(step).max() < 1e-10:
            break
    fitted = scipy.special.expit(columns @ weights)
    variance = risk * fitted * (1 - fitted)
    curvature = columns.T @ (columns * variance[:, None])
    freedom = max(1, len(events) - columns.shape[1])
    spread = max(1.0, float(((events - risk * fitted) ** 2 / np.maximum(variance, 1e-12)).sum()) / freedom)
    return weights, np.linalg.pinv(curvature) * spread, spread


#: The labelling that a log brings along.
QUERY_TYPE: Final = "query type"
_STEP: Final = 1 << 10
_NamedList = Annotated[NamedSources, Flag(metavar="[NAME=]SRC", reads=list[str])]


@dataclass(frozen=True)
class ProfileOptions(Options):
    """What counts as discarded, and how far the depths go.

    Attributes:
        survival: what makes a query of a log survive: selected (a shown document was selected, as for MS MARCO's
            rankings) or answered (somebody wrote an answer).
        extrapolate_to: the last depth; by default twice the depth that most queries were shown, 0 for none.
    """

    survival: Survival = "selected"
    extrapolate_to: Annotated[int | None, Range(at_least=0, at_most=1000)] = None


class RankCount(NamedTuple):
    """One position, from 1: queries that were shown so many, queries whose first selected one stood there, and all
    selected ones that did."""

    position: int
    reached: int
    first: int
    selected: int


@dataclass(frozen=True)
class Split:
    """One split of a data set."""

    name: str
    discarded: Proportion
    ranks: tuple[RankCount, ...] = ()
    curve: DepthCurve | None = None
    counts: LogCounts = field(default_factory=LogCounts)

    def json(self) -> dict[str, Any]:
        survived = self.discarded.n - self.discarded.k
        known = picked(self, "discarded, ranks, depths=curve")
        log = self.counts._asdict() if self.counts.read else None
        return {"split": self.name, "queries": self.discarded.n, "survived": survived, **known, "log": log}


@dataclass(frozen=True, eq=False, repr=False)
class Profile(Result, shown_in="truerank.audits.survivorship.report"):
    """Which queries were discarded.

    Attributes:
        options: what counts as discarded.
        resampling: confidence of all intervals, and the draws of the extrapolation.
        splits: in the order given, logs before lists.
        kinds: by split and labelling.
        out: the folder that it was written to.
    """

    options: ProfileOptions
    resampling: Resampling
    splits: tuple[Split, ...]
    kinds: tuple[Kinds, ...]
    out: Path | None = None

    def json(self) -> dict[str, Any]:
        """What `summary.json` holds."""
        return {"rule": self.options.survival, "splits": plain(self.splits), "kinds": plain(self.kinds)}


@command
def profile(
    log: _NamedList = (),
    *,
    survived: _NamedList = (),
    discarded: _NamedList = (),
    kinds: _NamedList = (),
    options: ProfileOptions = ProfileOptions(),
    resampling: Resampling = Resampling(resamples=2000),
    out: Out = None,
    progress: Progress | None = None,
) -> Profile:
    """Describes which queries were discarded because nobody found an answer among the documents shown.

    Discarded share of each split; by query type and any other labelling, with a test of independence and the kinds that
    are over- or under-represented among the survivors, Bonferroni-corrected at 1 − confidence; the rank at which
    selected documents stood; the discarded share at each depth, and, marked as such, extrapolated beyond. Without a
    log, lists of ids give the shares and the kinds.

    Args:
        log: annotation logs, one for each split: MS MARCO QnA, JSONL, CSV or TSV, irds:msmarco-qna/dev; repeat the
            option for several. In Python also sources by name.
        survived: ids of queries that survived, in place of a log.
        discarded: ids of those that did not, as many lists, in the same order or under the same names.
        kinds: kinds of queries: id TAB label, or a table.
        options: what counts as discarded, and how far the depths go.
        resampling: draws of the extrapolation's uncertainty, and the confidence of all intervals.
        out: a folder for page, tables, figures and manifest.
        progress: is told about the work.

    Returns:
        Shares, kinds, ranks and depths by split.

    Raises:
        InputError: a fault in a file, with its line; lists without their counterpart; nothing to look at.

    Examples:

        truerank survivorship profile --log dev=dev_v2.1.json.gz --kinds category=categories.tsv --out profile/

        truerank survivorship profile --survived dev=survived.txt --discarded dev=discarded.txt --kinds kinds.tsv

    Source: Gupta, MacAvaney: On Survivorship Bias in MS MARCO (SIGIR 2022), sections 2 and 3.
    """
    labelled = named_sources(kinds, "kinds")
    labellings = {name: read_kinds(spec) for name, spec in labelled.items()}
    logs, pairs = named_sources(log, "log"), _paired(survived, discarded)
    if not logs and not pairs:
        raise InputError(
            "nothing to look at", "give `log`, or `survived` and `discarded`", where="survivorship profile"
        )
    if twice := sorted(logs.keys() & pairs.keys()):
        raise OptionError("log", f"two splits are called '{twice[0]}'", "name them: NAME=FILE")
    splits, found, inputs = _splits(logs, pairs, _Counting(labellings, options, resampling), progress or Quiet())
    inputs += [input_of("kinds", spec, name) for name, spec in labelled.items()]
    result = Profile(options, resampling, tuple(splits), tuple(found), None if out is None else Path(out))
    if out is not None:
        chosen = {"options": options, "resampling": resampling}
        with started("survivorship profile", inputs, chosen, out, packages=("scipy", "matplotlib")) as job:
            job.skipped = {split.name: counts for split in splits if (counts := left_out(split.counts))}
            publish(result, job)
    return result


def _splits(
    logs: Mapping[str, SourceSpec],
    pairs: Mapping[str, tuple[SourceSpec, SourceSpec]],
    counting: _Counting,
    progress: Progress,
) -> tuple[list[Split], list[Kinds], list[Input]]:
    splits: list[Split] = []
    found: list[Kinds] = []
    inputs: list[Input] = []
    for name, spec in logs.items():
        opened = open_annotations(spec)
        progress.start(f"queries of {name}")
        tally = _Tally(counting)
        for number, one in enumerate(opened, start=1):
            tally.add(one)
            if number % _STEP == 0:
                progress.advance(_STEP)
        splits.append(tally.split(name, opened))
        found += tally.kinds(name)
        inputs.append(input_of_log(name, opened))
    for name, (kept, lost) in pairs.items():
        split, several = _of_lists(name, kept, lost, counting)
        splits.append(split)
        found += several
        inputs += [input_of("survived", kept, name), input_of("discarded", lost, name)]
    return splits, found, inputs


class _Counting(NamedTuple):
    """What is counted how: kinds by labelling and query, what survives, the confidence."""

    labellings: Mapping[str, Mapping[str, str]]
    options: ProfileOptions
    resampling: Resampling


class _Tally:
    """Counts over one log, a few bytes for each query."""

    def __init__(self, counting: _Counting) -> None:
        self._counting = counting
        self._by_kind: dict[str, Counter[tuple[str, bool]]] = {QUERY_TYPE: Counter()}
        self._by_kind |= {name: Counter() for name in counting.labellings}
        self._firsts = Counter[tuple[int, int]]()
        self._selected = Counter[int]()
        self._discarded = self._total = 0

    def add(self, one: Annotation) -> None:
        positions = one.positions
        survived = bool(positions) if self._counting.options.survival == "selected" else bool(one.answers)
        self._total += 1
        self._discarded += not survived
        self._firsts[positions[0] if positions else -1, len(one.shown)] += 1
        self._selected.update(positions)
        self._by_kind[QUERY_TYPE][one.query_type, survived] += 1
        for name, labels in self._counting.labellings.items():
            self._by_kind[name][labels.get(one.query_id, ""), survived] += 1

    def split(self, name: str, log: AnnotationLog) -> Split:
        resampling = self._counting.resampling
        pairs = np.array(list(self._firsts), np.int64).reshape(-1, 2)
        times = np.fromiter(self._firsts.values(), np.int64, len(pairs))
        first, shown = (np.repeat(pairs[:, column], times) for column in (0, 1))
        curve = depth_curve(
            first,
            shown,
            to=self._counting.options.extrapolate_to,
            confidence=resampling.confidence,
            resamples=resampling.resamples,
            seed=resampling.seed,
        )
        firsts = Counter(first.tolist())
        ranks = tuple(
            RankCount(point.depth, point.reached, firsts[point.depth - 1], self._selected[point.depth - 1])
            for point in curve.points
        )
        discarded = proportion(self._discarded, self._total, confidence=resampling.confidence)
        return Split(name, discarded, ranks, curve, log.log_counts)

    def kinds(self, split: str) -> list[Kinds]:
        return [
            _kinds(counts, labelling, split, self._counting.resampling)
            for labelling, counts in self._by_kind.items()
            if any(kind for kind, _ in counts)
        ]


def _kinds(counts: Counter[tuple[str, bool]], labelling: str, split: str, resampling: Resampling) -> Kinds:
    names = {kind for kind, _ in counts if kind}
    return independence(
        {kind: (counts[kind, True] + counts[kind, False], counts[kind, False]) for kind in names},
        labelling=labelling,
        split=split,
        unlabelled=counts["", True] + counts["", False],
        confidence=resampling.confidence,
        alpha=round(1 - resampling.confidence, 12),
    )


def _paired(survived: NamedSources, discarded: NamedSources) -> dict[str, tuple[SourceSpec, SourceSpec]]:
    """The two lists of each split: by their names where both sides have the same ones, else in order."""
    kept, lost = _lists(survived, "survived"), _lists(discarded, "discarded")
    if len(kept) != len(lost):
        fault = f"{len(kept)} lists of survivors and {len(lost)} of discarded queries"
        raise OptionError("discarded", fault, "give one of each for every split")
    by_name = dict(lost)
    same = by_name.keys() == {name for name, _ in kept}
    pairs: dict[str, tuple[SourceSpec, SourceSpec]] = {}
    for (name, spec), (_, other) in zip(kept, lost, strict=True):
        if name in pairs:
            raise OptionError("survived", f"two splits are called '{name}'", "name them: NAME=FILE")
        pairs[name] = (spec, by_name[name] if same else other)
    return pairs


def _lists(given: NamedSources, option: str) -> list[tuple[str, SourceSpec]]:
    """Lists of ids by the name given, or by the part of the file's name before its first dot."""
    if isinstance(given, Mapping):
        return list(named_sources(given, option).items())
    pairs = [named_source(one) for one in ([given] if isinstance(given, str | Path) else given)]
    return [(name if name != spec.name else name.partition(".")[0] or name, spec) for name, spec in pairs]


def _of_lists(name: str, kept: SourceSpec, lost: SourceSpec, counting: _Counting) -> tuple[Split, list[Kinds]]:
    survived, discarded = read_ids(kept), read_ids(lost)
    both = set(survived).intersection(discarded)
    if both:
        raise InputError(
            f"{len(both):,} queries are in both lists, '{min(both)}' among them", "correct the lists", where=lost.path
        )
    confidence = counting.resampling.confidence
    split = Split(name, proportion(len(discarded), len(survived) + len(discarded), confidence=confidence))
    kinds = []
    for labelling, labels in counting.labellings.items():
        counts = Counter((labels.get(one, ""), True) for one in survived)
        counts.update((labels.get(one, ""), False) for one in discarded)
        if any(kind for kind, _ in counts):
            kinds.append(_kinds(counts, labelling, name, counting.resampling))
    return split, kinds
