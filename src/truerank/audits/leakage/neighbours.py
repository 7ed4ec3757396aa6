"""The nearest training queries of one topic (leakage paper, Figure 1), and when an audit fails a build."""

from __future__ import annotations

from typing import Literal

import polars as pl

from truerank.audits.leakage.results import AuditResult
from truerank.errors import InputError
from truerank.reports.tables import Column, Table

__all__ = ["fails", "neighbours_table"]

_FIELD_ORDER = ("title", "description", "narrative", "variant")


def neighbours_table(result: AuditResult, topic_id: str, *, most: int = 10) -> Table:
    """The nearest training queries of a topic, by test set and text.

    Args:
        result: an audit.
        topic_id: the topic.
        most: so many queries for each text, over all sources.

    Raises:
        InputError: no test set has such a topic with a neighbour.
    """
    found = result.neighbours.filter(pl.col("topic_id") == topic_id)
    if found.is_empty():
        known = result.neighbours["topic_id"].unique(maintain_order=True).head(5).to_list()
        raise InputError(
            f"no neighbours of a topic '{topic_id}'",
            f"topic ids look like {', '.join(known) or '(none)'}",
            where="--topic",
        )
    text = ["test", "field", "variant_no", "topic_text"]
    ordered = found.with_row_index("place").sort(
        [pl.col("place").min().over(text), "similarity", "place"], descending=[False, True, False]
    )
    nearest = ordered.group_by(text, maintain_order=True).head(most)
    names = ("test", "field", "topic_text", "similarity", "query_text", "source", "query_id")
    return Table(
        title=f"Nearest training queries of topic {topic_id}",
        columns=tuple(Column(name, **_STYLE.get(name, {})) for name in names),  # type: ignore[arg-type]
        rows=tuple(nearest.select(names).iter_rows()),
    )


_STYLE: dict[str, dict[str, str]] = {"similarity": {"align": "right", "format": ".3f"}}


def fails(result: AuditResult, on: Literal["contaminated", "unknown"] = "contaminated") -> bool:
    """Whether `--fail-on` ends with 1.

    Args:
        result: an audit.
        on: "contaminated": a contaminated test set, or with a baseline, anything new; "unknown": an unknown one, too.
    """
    verdicts = {test["verdict"] for test in result.summary["tests"].values()}
    if on == "unknown" and "UNKNOWN" in verdicts:
        return True
    return bool(result.summary["baseline"]["new"]) if "baseline" in result.summary else "CONTAMINATED" in verdicts
