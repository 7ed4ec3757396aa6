"""The tables of an audit: Table 1 of the leakage paper, what is new since a baseline, the neighbours of a topic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import polars as pl

from truerank.audits.leakage.results import AuditResult, AuditSummary, FieldCount, TestSummary
from truerank.errors import OptionError
from truerank.reports.tables import Cell, Column, Table

_FIELDS: Final = {
    "title": "Title",
    "description": "Description",
    "narrative": "Narrative",
    "variant": "Variants",
    "union": "Union",
}
_BELOW: Final = "words, letters"
_SHOWN: Final = ("test", "topic_id", "field", "source", "query_id", "query_text", "similarity")


def counts_table(summary: AuditSummary, tests: Sequence[str] | None = None) -> Table:
    """Topics and queries with a similarity above the threshold, by field and cumulative source."""
    chosen = {name: summary["tests"][name] for name in tests or summary["tests"]}
    groups: list[tuple[str, str, Mapping[str, FieldCount | None]]] = [
        (name, _shown(label), {field: counts.get(label) for field, counts in test["fields"].items()})
        for name, test in chosen.items()
        for label in labels_of(test)
    ]
    lower: list[tuple[str, str, Mapping[str, FieldCount | None]]] = [
        (name, _BELOW, {**test["below"]["fields"]}) for name, test in chosen.items() if test["below"]["pairs"]
    ]
    groups = [group for name in chosen for group in (*groups, *lower) if group[0] == name]
    columns = [Column("Field")]
    columns += [Column(title, group[:2], "right", ",d") for group in groups for title in ("T", "Q")]
    present = dict.fromkeys(field for test in chosen.values() for field in test["fields"])
    fields = [field for field in [*_FIELDS, *present] if field in present]
    fields = [*(field for field in dict.fromkeys(fields) if field != "union"), *(f for f in ("union",) if f in present)]
    rows = []
    for field in fields:
        cells: list[Cell] = [_FIELDS.get(field, field)]
        for _, _, counted in groups:
            count = counted.get(field)
            cells += (0, 0) if count is None else (count["topics"], count["queries"])
        rows.append(tuple(cells))
    return Table(
        f"Topics (T) with training queries (Q) whose similarity to a text of the topic is above "
        f"{summary['threshold']:g}. Sources add up from left to right; the union counts a topic or query once."
        + (
            f" {_BELOW.capitalize()}: pairs not judged away at or below it with the same content words or nearly the "
            "same letters."
            if lower
            else ""
        ),
        tuple(columns),
        tuple(rows),
        rules=(len(rows) - 1,) if "union" in present else (),
    )


def since_table(baseline: Mapping[str, Any]) -> Table:
    """What is new, known and gone by test set, from `summary.json` under "baseline"."""
    names = ("new pairs", "new topics", "new queries", "known pairs", "gone")
    return Table(
        title="Pairs above the threshold since the baseline.",
        columns=(Column("test set"), *Column.numbers(",d", *names)),
        rows=tuple(
            (name, news["pairs"], len(news["topics"]), news["queries"], news["known"], news["gone"])
            for name, news in baseline["tests"].items()
        ),
        notes=tuple(baseline["warnings"]),
    )


def news_table(baseline: Mapping[str, Any]) -> Table:
    """The new pairs, as `summary.json` has them under "baseline", with their number."""
    pairs, left_out = baseline["pairs"], baseline["pairs_left_out"]
    count = len(pairs) + left_out
    notes = (f"{left_out:,d} more new pairs are left out; all pairs are in candidates.parquet.",) if left_out else ()
    return Table(
        title=f"{count:,d} {'pair is' if count == 1 else 'pairs are'} new since the baseline.",
        columns=(
            Column("test set"),
            Column("topic"),
            Column("field"),
            Column("source"),
            Column("query id"),
            Column("training query"),
            Column("similarity", align="right", format=".4f"),
        ),
        rows=tuple(tuple(pair[name] for name in _SHOWN) for pair in pairs),
        notes=(*notes, *baseline["warnings"]),
    )


def neighbours_table(result: AuditResult, topic_id: str, *, most: int = 10) -> Table:
    """The nearest training queries of a topic, by test set and text."""
    found = result.neighbours.filter(pl.col("topic_id") == topic_id)
    if found.is_empty():
        known = result.neighbours["topic_id"].unique(maintain_order=True).head(5).to_list()
        remedy = f"topic ids look like {', '.join(known) or '(none)'}"
        raise OptionError("topic", f"no neighbours of a topic '{topic_id}'", remedy)
    text = ["test", "field", "variant_no", "topic_text"]
    ordered = found.with_row_index("place").sort(
        [pl.col("place").min().over(text), "similarity", "place"], descending=[False, True, False]
    )
    nearest = ordered.group_by(text, maintain_order=True).head(most)
    names = ("test", "field", "topic_text", "similarity", "query_text", "source", "query_id")
    return Table(
        title=f"Nearest training queries of topic {topic_id}",
        columns=tuple(Column(name) if name != "similarity" else Column(name, (), "right", ".3f") for name in names),
        rows=tuple(nearest.select(names).iter_rows()),
    )


def labels_of(test: TestSummary) -> list[str]:
    """The labels of the cumulative sources of a test set."""
    return list(dict.fromkeys(label for counts in test["fields"].values() for label in counts))


def _shown(label: str) -> str:
    return f"+ {label[1:].lstrip()}" if label.startswith("+") else label
