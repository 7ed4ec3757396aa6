"""What the leaked topics do to the scores of runs and to the order of systems.

Scores come from ir_measures. A difference between leaked and clean topics is no proof that a system profited: leaked
topics are popular ones and may simply be easier. Compare with a system that was not trained on the leaked queries.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import ir_measures
import numpy as np
from numpy.typing import NDArray
from scipy import stats

from truerank.audits.leakage.results import AuditResult, load_audit
from truerank.errors import InputError
from truerank.records import Qrel, RunRow
from truerank.reports.tables import Column, Table
from truerank.sources import parse, read_qrels, read_run, unique_names

__all__ = ["Effect", "Mean", "Order", "RunEffect", "Swap", "difference_sds", "effect", "topic_scores"]

Ties = Literal["trec_eval", "ascending", "rank"]
Floats: TypeAlias = NDArray[np.float64]
QrelSource: TypeAlias = str | Path | Iterable[Qrel]
RunSource: TypeAlias = str | Path | Sequence[str | Path] | Mapping[str, Iterable[RunRow]]

_PERMUTATIONS: Final = 9_999
_CELLS_AT_ONCE: Final = 2_000_000
_SAME: Final = 1e-12
_TIES: Final[dict[str, str]] = {
    "trec_eval": "as trec_eval: 32-bit scores, then document id descending",
    "ascending": "score, then document id ascending",
    "rank": "the rank column of the run",
}


class Mean(NamedTuple):
    """A mean over `n` topics with its Student t interval; the ends are None below two topics, the mean below one."""

    n: int
    mean: float | None
    low: float | None
    high: float | None


class RunEffect(NamedTuple):
    """One run and measure on all, leaked and clean topics.

    `difference` is leaked minus clean with Welch's interval (n: all topics); `p` is two-sided, from permuting which
    topics are leaked; `p_corrected` is Bonferroni's by the number of runs. None where one side has too few topics.
    """

    run: str
    measure: str
    all: Mean
    leaked: Mean
    clean: Mean
    difference: Mean
    p: float | None
    p_corrected: float | None


class Swap(NamedTuple):
    """Two systems whose order changes: `better` leads on all topics by `on_all`, and trails on clean by `on_clean`."""

    better: str
    worse: str
    on_all: float
    on_clean: float


class Order(NamedTuple):
    """How one measure orders the systems on all topics and on the clean ones.

    `tau` is Kendall's τ-b (None where all systems are tied); `largest_drop` is in ranks (equal means share the best
    rank), `dropped` names the system that loses most, empty if none does.
    """

    measure: str
    tau: float | None
    swaps: tuple[Swap, ...]
    largest_drop: int
    dropped: str


@dataclass(frozen=True)
class Effect:
    """The scores of runs with and without the leaked topics.

    Attributes:
        runs: one entry per measure and run, measures first.
        orders: one entry per measure where there are two runs or more.
        missing: for each run, the topics of the qrels that it lacks; they score the measure's default.
        unjudged: leaked topics without qrels; they are in no mean.
        settings: test set, tie policy, confidence, permutations, seed, methods.
    """

    runs: tuple[RunEffect, ...]
    orders: tuple[Order, ...]
    missing: dict[str, int]
    unjudged: tuple[str, ...]
    settings: dict[str, Any]

    def table(self) -> Table:
        """The scores side by side."""
        share = f"{self.settings['confidence']:.0%}"
        columns = [Column("run"), Column("measure")]
        for part in ("all", "leaked", "clean", "leaked − clean"):
            if part != "leaked − clean":
                columns.append(Column("n", (part,), align="right", format=",d"))
            columns.append(Column("mean", (part,), align="right", format=".4f"))
            columns.append(Column("low", (part,), align="right", format=".4f"))
            columns.append(Column("high", (part,), align="right", format=".4f"))
        columns.append(Column("raw", ("p",), align="right", format=".4f"))
        columns.append(Column("corrected", ("p",), align="right", format=".4f"))
        columns.append(Column("missing", align="right", format=",d"))
        return Table(
            title="Scores on all, leaked and clean topics.",
            columns=tuple(columns),
            rows=tuple(
                (
                    row.run,
                    row.measure,
                    *row.all,
                    *row.leaked,
                    *row.clean,
                    *row.difference[1:],
                    row.p,
                    row.p_corrected,
                    self.missing[row.run],
                )
                for row in self.runs
            ),
            notes=(
                f"{share} intervals: Student t over topics, Welch for the difference.",
                "p: two-sided permutation test; corrected: Bonferroni by the number of runs.",
                f"Ties: {_TIES[self.settings['ties']]}. Missing topics score the measure's default.",
                "Leaked topics may be easier for other reasons than the leak.",
            ),
        )

    def order_table(self) -> Table:
        """How the order of the systems changes without the leaked topics."""
        return Table(
            title="Order of the systems without the leaked topics.",
            columns=(
                Column("measure"),
                Column("Kendall's τ-b", align="right", format=".3f"),
                Column("swaps", align="right", format=",d"),
                Column("largest drop in rank", align="right", format=",d"),
                Column("of"),
            ),
            rows=tuple((o.measure, o.tau, len(o.swaps), o.largest_drop, o.dropped) for o in self.orders),
        )

    def swap_table(self) -> Table:
        """Every pair of systems that changes places."""
        number: dict[str, Any] = {"align": "right", "format": "+.4f"}
        return Table(
            title="Pairs of systems that change places without the leaked topics.",
            columns=(
                Column("measure"),
                Column("better on all"),
                Column("worse on all"),
                Column("difference on all", **number),
                Column("difference on clean", **number),
            ),
            rows=tuple((o.measure, *swap) for o in self.orders for swap in o.swaps),
        )

    def text(self) -> str:
        """The tables as text, the order of systems where there are two runs or more."""
        tables = [self.table(), *([self.order_table()] if self.orders else [])]
        tables += [self.swap_table()] if any(order.swaps for order in self.orders) else []
        return "\n".join(table.text() for table in tables)

    def json(self) -> dict[str, Any]:
        """Everything, as plain numbers and texts."""
        parts = ("all", "leaked", "clean", "difference")
        return {
            "settings": self.settings,
            "runs": [{**row._asdict(), **{part: getattr(row, part)._asdict() for part in parts}} for row in self.runs],
            "orders": [{**order._asdict(), "swaps": [swap._asdict() for swap in order.swaps]} for order in self.orders],
            "missing": self.missing,
            "unjudged": list(self.unjudged),
        }


def effect(
    qrels: QrelSource,
    runs: RunSource,
    candidates: AuditResult | str | Path | Collection[str],
    *,
    measures: str | Sequence[str] = "nDCG@10 P@1",
    test: str | None = None,
    ties: Ties = "trec_eval",
    confidence: float = 0.95,
    seed: int = 0,
) -> Effect:
    """Scores runs on all, leaked and clean topics.

    Args:
        qrels: relevance judgments, a source or records. Means are over its topics.
        runs: run files, or records by name.
        candidates: an audit, the folder it wrote, or the ids of the leaked topics.
        measures: names of ir_measures, separated by blanks or as a list.
        test: the test set, where the audit has several.
        ties: how documents with equal scores are ordered, for every measure alike: "trec_eval" (32-bit scores, then
            document id descending), "ascending" (document id ascending, as in the leakage paper) or "rank" (as the
            run says).
        confidence: of the intervals.
        seed: of the permutations (9,999, shared by all runs; all of them where there are no more).

    Returns:
        The scores, and for two runs or more the change in the order of systems.

    Raises:
        InputError: a source, measure or option is at fault, or no leaked topic has qrels.

    Source: Welch (1947) for the interval of the difference; Kendall (1945) for τ-b.
    """
    if not 0 < confidence < 1:
        raise InputError(f"confidence is {confidence:g}", "give a number between 0 and 1", where="leakage effect")
    wanted = _measures(measures)
    judged = list(read_qrels(str(qrels)) if isinstance(qrels, str | Path) else qrels)
    scores, missing = topic_scores(judged, runs, wanted, ties=ties)
    topics = list(dict.fromkeys(qrel.topic_id for qrel in judged))
    test_name, leaked_ids = _leaked(candidates, test)
    leaked = np.array([topic in leaked_ids for topic in topics])
    if leaked_ids and not leaked.any():
        raise InputError(
            f"none of the {len(leaked_ids)} leaked topics has relevance judgments",
            "give the qrels of the audited test set" + ("" if test else ", or name the test set with --test"),
        )
    values = np.stack(list(scores.values()), axis=1)
    p = _permutation_p(values, leaked, np.random.default_rng(seed))
    names = list(missing)
    rows = [
        _run_effect(key, values[:, i], leaked, confidence, (float(p[i]), len(names))) for i, key in enumerate(scores)
    ]
    comparable = wanted if len(names) > 1 and not leaked.all() else []
    orders = [_order(str(m), {name: scores[name, str(m)] for name in names}, ~leaked) for m in comparable]
    return Effect(
        runs=tuple(rows),
        orders=tuple(orders),
        missing=missing,
        unjudged=tuple(sorted(set(leaked_ids) - set(topics))),
        settings={
            "test": test_name,
            "measures": [str(measure) for measure in wanted],
            "ties": ties,
            "confidence": confidence,
            "interval": "Student t over topics; Welch for the difference",
            "p": "two-sided permutation test of the difference of means",
            "permutations": _PERMUTATIONS,
            "seed": seed,
        },
    )


def difference_sds(
    qrels: QrelSource, runs: RunSource, measure: str = "nDCG@10", *, ties: Ties = "trec_eval"
) -> dict[str, float]:
    """Standard deviations of the per-topic differences of runs, for `reduction.reduce_topics`.

    Args:
        qrels: relevance judgments, a source or records.
        runs: two runs or more.
        measure: the measure, in whose unit the standard deviations are.
        ties: as in `effect`.

    Returns:
        By pair of runs, over the topics of the qrels.

    Raises:
        InputError: a source or measure is at fault, or there are fewer than two runs or topics.
    """
    judged = list(read_qrels(str(qrels)) if isinstance(qrels, str | Path) else qrels)
    scores, _ = topic_scores(judged, runs, _measures([measure]), ties=ties)
    if len(scores) < 2 or min(map(len, scores.values())) < 2:
        raise InputError("differences need two runs and two topics", "give more", where="--run")
    pairs = itertools.combinations(scores.items(), 2)
    return {f"{first[0][0]} – {second[0][0]}": float((first[1] - second[1]).std(ddof=1)) for first, second in pairs}


def topic_scores(
    qrels: Sequence[Qrel], runs: RunSource, measures: Sequence[Any], *, ties: Ties = "trec_eval"
) -> tuple[dict[tuple[str, str], Floats], dict[str, int]]:
    """Scores of each topic.

    Args:
        qrels: relevance judgments.
        runs: run files, or records by name.
        measures: ir_measures measures.
        ties: as in `effect`.

    Returns:
        By run and measure (measures first), the scores in the order in which the qrels name the topics, shape
        (topics,); and for each run the number of topics that it lacks.

    Raises:
        InputError: no qrels, a run without a topic of the qrels, or a measure that cannot be computed here.
    """
    topics = list(dict.fromkeys(qrel.topic_id for qrel in qrels))
    if not topics:
        raise InputError("no relevance judgments", "give qrels that hold some", where="--qrels")
    if ties not in _TIES:
        raise InputError(f"unknown tie policy '{ties}'", f"one of {', '.join(_TIES)}")
    place = {topic: number for number, topic in enumerate(topics)}
    records = [ir_measures.Qrel(q.topic_id, q.doc_id, q.relevance, q.iteration) for q in qrels]
    try:
        evaluator = ir_measures.evaluator(measures, records)
    except (RuntimeError, ValueError) as error:
        raise InputError(f"a measure cannot be computed ({error})", "choose another one", where="--measures") from error
    found: dict[tuple[str, str], Floats] = {}
    missing: dict[str, int] = {}
    for name, rows in _opened(runs):
        ranking = _ranked(rows, ties)
        missing[name] = sum(topic not in ranking for topic in topics)
        if missing[name] == len(topics):
            raise InputError("the run holds none of the topics of the qrels", "give matching files", where=name)
        found.update({(name, str(measure)): np.full(len(topics), float(measure.DEFAULT)) for measure in measures})
        for metric in evaluator.iter_calc({topic: ranking[topic] for topic in topics if topic in ranking}):
            found[name, str(metric.measure)][place[metric.query_id]] = metric.value
    ordered = sorted(found, key=lambda key: [str(m) for m in measures].index(key[1]))
    return {key: found[key] for key in ordered}, missing


def _measures(measures: str | Sequence[str]) -> list[Any]:
    names = measures.split() if isinstance(measures, str) else list(measures)
    parsed = []
    for name in names:
        try:
            measure = ir_measures.parse_measure(name)
            measure.validate_params()
        except (ValueError, NameError, SyntaxError, TypeError, KeyError, AssertionError) as error:
            raise InputError(
                f"unknown measure '{name}'",
                "use names of ir_measures such as nDCG@10, P@1 or RR@10",
                where="--measures",
            ) from error
        if not isinstance(measure.aggregator(), ir_measures.measures.base.MeanAgg):
            raise InputError(f"{name} is no mean over topics", "choose a measure that is", where="--measures")
        if measure not in parsed:
            parsed.append(measure)
    if not parsed:
        raise InputError("no measure", "name one, such as nDCG@10", where="--measures")
    return parsed


def _opened(runs: RunSource) -> Iterable[tuple[str, Iterable[RunRow]]]:
    if isinstance(runs, Mapping):
        yield from runs.items()
        return
    paths = [str(path) for path in ([runs] if isinstance(runs, str | Path) else runs)]
    if not paths:
        raise InputError("no run", "name one with --run")
    for name, path in zip(unique_names([parse(path) for path in paths]), paths, strict=True):
        yield name, read_run(path)


def _ranked(rows: Iterable[RunRow], ties: Ties) -> dict[str, dict[str, float]]:
    """The run by topic with scores that fall by one from rank to rank, so that every provider sees the same order."""
    by_topic: defaultdict[str, dict[str, RunRow]] = defaultdict(dict)
    for row in rows:
        if row.doc_id in by_topic[row.topic_id]:
            raise InputError(f"topic {row.topic_id} has document {row.doc_id} twice", "remove one of them")
        if math.isnan(row.score) and ties != "rank":
            raise InputError(f"topic {row.topic_id}, document {row.doc_id} has no number as its score", "write one")
        by_topic[row.topic_id][row.doc_id] = row
    ranking = {}
    for topic, found in by_topic.items():
        if ties == "rank":
            ordered = sorted(found.values(), key=lambda row: (row.rank, row.doc_id))
        elif ties == "ascending":
            ordered = sorted(found.values(), key=lambda row: (-row.score, row.doc_id))
        else:
            descending = sorted(found.values(), key=lambda row: row.doc_id, reverse=True)
            ordered = sorted(descending, key=lambda row: -float(np.float32(row.score)))
        ranking[topic] = {row.doc_id: float(-place) for place, row in enumerate(ordered)}
    return ranking


def _leaked(candidates: AuditResult | str | Path | Collection[str], test: str | None) -> tuple[str, frozenset[str]]:
    """The test set's name (empty for bare ids) and its leaked topics."""
    if not isinstance(candidates, AuditResult | str | Path):
        return test or "", frozenset(candidates)
    result = candidates if isinstance(candidates, AuditResult) else load_audit(candidates)
    tests = result.summary["tests"]
    if test is None and len(tests) > 1:
        raise InputError(f"the audit has the test sets {', '.join(tests)}", "choose one with --test")
    if test is not None and test not in tests:
        raise InputError(f"the audit has no test set '{test}'", f"choose one of {', '.join(tests)} with --test")
    name = test if test is not None else next(iter(tests))
    return name, frozenset(tests[name]["leaked_topics"])


def _run_effect(
    key: tuple[str, str], scores: Floats, leaked: NDArray[np.bool_], confidence: float, test: tuple[float, int]
) -> RunEffect:
    p, comparisons = test
    sides = scores[leaked], scores[~leaked]
    return RunEffect(
        run=key[0],
        measure=key[1],
        all=_mean(scores, confidence),
        leaked=_mean(sides[0], confidence),
        clean=_mean(sides[1], confidence),
        difference=_difference(*sides, confidence),
        p=None if math.isnan(p) else p,
        p_corrected=None if math.isnan(p) else min(1.0, p * comparisons),
    )


def _mean(scores: Floats, confidence: float) -> Mean:
    n = len(scores)
    if n < 2:
        return Mean(n, float(scores[0]) if n else None, None, None)
    mean = float(scores.mean())
    half = float(stats.t.ppf((1 + confidence) / 2, n - 1)) * float(scores.std(ddof=1)) / math.sqrt(n)
    return Mean(n, mean, mean - half, mean + half)


def _difference(leaked: Floats, clean: Floats, confidence: float) -> Mean:
    n = len(leaked) + len(clean)
    if not len(leaked) or not len(clean):
        return Mean(n, None, None, None)
    difference = float(leaked.mean() - clean.mean())
    if len(leaked) < 2 or len(clean) < 2:
        return Mean(n, difference, None, None)
    parts = [float(side.var(ddof=1)) / len(side) for side in (leaked, clean)]
    if sum(parts) == 0:
        return Mean(n, difference, difference, difference)
    freedom = sum(parts) ** 2 / sum(
        part**2 / (len(side) - 1) for part, side in zip(parts, (leaked, clean), strict=True)
    )
    half = float(stats.t.ppf((1 + confidence) / 2, freedom)) * math.sqrt(sum(parts))
    return Mean(n, difference, difference - half, difference + half)


def _permutation_p(values: Floats, leaked: NDArray[np.bool_], rng: np.random.Generator) -> Floats:
    """Two-sided p of each column's difference of means, shape (columns,); NaN where one side has no topic."""
    topics, size = len(leaked), int(leaked.sum())
    if size in (0, topics):
        return np.full(values.shape[1], np.nan)
    total = values.sum(axis=0)

    def differences(chosen: Floats) -> Floats:
        inside = chosen @ values
        return np.asarray(np.abs(inside / size - (total - inside) / (topics - size)))

    bar = differences(leaked[None, :].astype(np.float64))[0] - _SAME
    if math.comb(topics, size) <= _PERMUTATIONS:
        every = np.zeros((math.comb(topics, size), topics))
        for row, members in zip(every, itertools.combinations(range(topics), size), strict=True):
            row[list(members)] = 1
        return np.asarray((differences(every) >= bar).mean(axis=0))
    beyond = np.zeros(values.shape[1])
    rows = max(1, _CELLS_AT_ONCE // topics)
    for start in range(0, _PERMUTATIONS, rows):
        same = np.tile(leaked.astype(np.float64), (min(rows, _PERMUTATIONS - start), 1))
        beyond += (differences(rng.permuted(same, axis=1)) >= bar).sum(axis=0)
    return (1 + beyond) / (_PERMUTATIONS + 1)


def _order(measure: str, scores: Mapping[str, Floats], clean: NDArray[np.bool_]) -> Order:
    names = list(scores)
    # Sums in another order differ in the last bit; such systems are tied.
    on_all = np.round([values.mean() for values in scores.values()], 12)
    on_clean = np.round([values[clean].mean() for values in scores.values()], 12)
    swaps = []
    for first, second in itertools.combinations(range(len(names)), 2):
        better, worse = (first, second) if on_all[first] > on_all[second] else (second, first)
        lead, remains = float(on_all[better] - on_all[worse]), float(on_clean[better] - on_clean[worse])
        if lead > 0 > remains:
            swaps.append(Swap(names[better], names[worse], lead, remains))
    drops = stats.rankdata(-on_clean, method="min") - stats.rankdata(-on_all, method="min")
    largest = int(drops.max())
    tau = float(stats.kendalltau(on_all, on_clean).statistic)
    return Order(
        measure=measure,
        tau=None if math.isnan(tau) else tau,
        swaps=tuple(sorted(swaps, key=lambda swap: (-swap.on_all, swap.better, swap.worse))),
        largest_drop=max(0, largest),
        dropped=names[int(drops.argmax())] if largest > 0 else "",
    )
