"""From files to a comparison: runs or saved evaluations, differences, topics, and the order between two conditions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from truerank.errors import InputError
from truerank.measures.comparing import compare
from truerank.measures.comparison import Comparison, write_results
from truerank.measures.correlation import Variant
from truerank.measures.method import Method
from truerank.measures.ordering import OrderChanges, evaluation_order_changes
from truerank.measures.policy import Policy
from truerank.measures.results import Evaluation
from truerank.measures.scoring import evaluate
from truerank.measures.systems import open_evaluations
from truerank.measures.topic_differences import TopicDifferences, topic_differences
from truerank.reports.tables import Column, Table
from truerank.sources import parse

__all__ = ["ComparisonReport", "comparison_report"]

_PAIRS: Final = ("swaps", "overtakings")


@dataclass(frozen=True)
class ComparisonReport:
    """What `truerank compare` found.

    Attributes:
        comparison: the differences; None where only the order between two conditions was asked for.
        topics: the differences by topic of one run, by measure.
        orders: the change of order between two evaluations, by measure.
        inputs: by evaluation, what was read.
    """

    comparison: Comparison | None
    topics: tuple[TopicDifferences, ...] = ()
    orders: tuple[OrderChanges, ...] = ()
    inputs: Mapping[str, Any] = field(default_factory=dict)

    def tables(self) -> tuple[Table, ...]:
        """All tables: differences, topics by measure, and orders with their swaps by measure."""
        found = [] if self.comparison is None else [self.comparison.table()]
        found += [result.table() for result in self.topics]
        for order in self.orders:
            found.append(order.table())
            if order.swaps or order.overtakings:
                found.append(order.swap_table())
        return tuple(found)

    def text(self) -> str:
        """Everything for a terminal."""
        found = [] if self.comparison is None else [self.comparison.text()]
        return "\n".join([*found, *(result.text() for result in self.topics), *(order.text() for order in self.orders)])

    def json(self) -> dict[str, Any]:
        """Everything, as plain numbers and texts."""
        return {
            "comparison": None if self.comparison is None else self.comparison.json(),
            "per_topic": [result.json() for result in self.topics],
            "orders": [order.json() for order in self.orders],
        }

    def save(self, folder: str | Path) -> Path:
        """Writes what there is of `comparison`, `per_topic`, `order` and `swaps`, each as .json, .csv, .md and .tex.

        Args:
            folder: made if it does not exist; `manifest.json` says where the results come from.

        Returns:
            The folder.

        Raises:
            InputError: the folder cannot be written to.
        """
        results: dict[str, tuple[Mapping[str, Any], Table]] = {}
        if self.comparison is not None:
            results["comparison"] = self.comparison.json(), self.comparison.table()
        if self.topics:
            value = {"per_topic": [result.json() for result in self.topics]}
            tables = {result.measure: result.table() for result in self.topics}
            results["per_topic"] = value, _stacked("Differences by topic.", tables)
        if self.orders:
            value = {"orders": [order.json() for order in self.orders]}
            results["order"] = value, _stacked("Order of systems.", {o.measure: o.table() for o in self.orders})
            changed = {order.measure: order for order in self.orders if order.swaps or order.overtakings}
            if changed:
                swaps = {name: order.swap_table() for name, order in changed.items()}
                pairs = {name: {key: order.json()[key] for key in _PAIRS} for name, order in changed.items()}
                results["swaps"] = pairs, _stacked("Pairs of systems whose order changes.", swaps)
        method = {} if self.comparison is None else {"method": self.comparison.method.json()}
        return write_results(folder, results, {**method, "inputs": dict(self.inputs)})


def comparison_report(
    *,
    qrels: str | Path | None = None,
    runs: Sequence[str | Path] = (),
    evaluations: Sequence[str | Path] = (),
    also: Sequence[str | Path] = (),
    baseline: str | None = None,
    measures: str | None = None,
    policy: Policy | None = None,
    method: Method | None = None,
    per_topic: str | None = None,
    tau: Variant = "b",
) -> ComparisonReport:
    """Compares runs, or runs that were evaluated before.

    Args:
        qrels: relevance judgments, with `runs`.
        runs: run files.
        evaluations: instead of these, one folder that `evaluate --out` wrote; or two, the conditions between which the
            order of the runs is compared. Their differences are tested too where a baseline is named.
        also: folders of further evaluations whose runs take part.
        baseline: see `comparing.compare`.
        measures: by which measures; None for nDCG@10 and P@1, or all that the evaluations share.
        policy: how runs are scored.
        method: how they are compared.
        per_topic: a run whose differences to the baseline are given by topic, for a paired test.
        tau: variant of Kendall's τ.

    Returns:
        The differences, and what else was asked for.

    Raises:
        InputError: neither runs nor evaluations, both, or a fault in any of them.
    """
    method = method or Method()
    named = _opened(qrels, runs, evaluations, measures, policy)
    conditions = list(named.items())
    orders: tuple[OrderChanges, ...] = ()
    if len(conditions) == 2:
        (first, before), (second, after) = conditions
        orders = evaluation_order_changes(before, after, measures=measures, variant=tau, conditions=(first, second))
    for name, evaluation in open_evaluations(also).items():
        if name in named:
            raise InputError(f"two evaluations are called {name}", "rename the folder", where="--also")
        named[name] = evaluation
    single = len(named) == 1
    found: Evaluation | dict[str, Evaluation] = next(iter(named.values())) if single else named
    comparison = None
    if baseline is not None or not orders:
        # What was evaluated just now has its measures already, under the names that the policy gives them.
        wanted = measures if evaluations else list(conditions[0][1].measures) if measures else None
        comparison = compare(found, baseline, measures=wanted, method=method)
    topics: tuple[TopicDifferences, ...] = ()
    if per_topic is not None:
        if comparison is None or baseline is None:
            raise InputError("differences by topic need a baseline", "name one with --baseline", where="--per-topic")
        topics = topic_differences(found, per_topic, baseline, comparison.measures, tie=method.tie)
    inputs = {name: dict(evaluation.inputs) for name, evaluation in named.items()}
    return ComparisonReport(comparison, topics, orders, inputs)


def _opened(
    qrels: str | Path | None,
    runs: Sequence[str | Path],
    evaluations: Sequence[str | Path],
    measures: str | None,
    policy: Policy | None,
) -> dict[str, Evaluation]:
    if evaluations:
        if runs or qrels is not None:
            raise InputError(
                "--evaluation stands instead of --qrels and --run", "give one or the other", where="--evaluation"
            )
        if len(evaluations) > 2:
            raise InputError(
                f"{len(evaluations)} evaluations are no two conditions",
                "give further ones with --also",
                where="--evaluation",
            )
        if policy not in (None, Policy()):
            raise InputError(
                "saved evaluations keep the policy under which they were scored",
                "leave out --ties, --missing, --depth and --rel, or evaluate again",
                where="--evaluation",
            )
        return open_evaluations(evaluations)
    if qrels is None or not runs:
        raise InputError("nothing to compare", "give --qrels and --run, or --evaluation", where="compare")
    return {parse(str(qrels)).name: evaluate(qrels, list(runs), measures or "nDCG@10 P@1", policy)}


def _stacked(title: str, tables: Mapping[str, Table]) -> Table:
    """Tables of the same shape below each other, with the measure in the first column."""
    first = next(iter(tables.values()))
    columns = (Column("measure"), *first.columns)
    rows = tuple((name, *row) for name, table in tables.items() for row in table.rows)
    notes = tuple(dict.fromkeys(f"{name}: {note}" for name, table in tables.items() for note in table.notes))
    return Table(title, columns, rows, notes)
