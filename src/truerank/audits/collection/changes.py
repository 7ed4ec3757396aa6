"""Propose: what changed between two versions of the judgments."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from truerank.audits.collection.identifiers import folded, what_differs
from truerank.audits.collection.instances import Instances, instances

__all__ = ["version_instances"]


def version_instances(before: pl.DataFrame, after: pl.DataFrame) -> Iterator[Instances]:
    """Judgments that were added, removed, regraded or renamed, and topics that only one version has.

    Args:
        before: the earlier judgments, one row for each pair.
        after: the present ones.
    """
    topics = frozenset(before["topic_id"]), frozenset(after["topic_id"])
    gone = [one for one in before["topic_id"].unique(maintain_order=True) if one not in topics[1]]
    new = [one for one in after["topic_id"].unique(maintain_order=True) if one not in topics[0]]
    keys = ["topic_id", "doc_id"]
    grade = pl.format("grade {}", "relevance").alias("detail")
    removed = before.filter(pl.col("topic_id").is_in(topics[1])).join(after, on=keys, how="anti", maintain_order="left")
    added = after.filter(pl.col("topic_id").is_in(topics[0])).join(before, on=keys, how="anti", maintain_order="left")
    renamed = _renamed(removed, added)
    old, now = ({(topic, pair[place]) for topic, *pair in renamed} for place in (0, 1))
    yield instances("added-judgment", _without(added, now).with_columns(grade), len(after))
    yield instances("removed-judgment", _without(removed, old).with_columns(grade), len(before))
    both = after.join(before, on=keys, suffix="_before", maintain_order="left")
    other = both.filter(pl.col("relevance") != pl.col("relevance_before"))
    detail = pl.format("grade {}, was {}", "relevance", "relevance_before").alias("detail")
    yield instances("regraded-judgment", other.with_columns(detail), len(both))
    rows = [
        {"topic_id": topic, "doc_id": one, "other": was, "detail": f"differs in {what_differs(one, was)}"}
        for topic, was, one in renamed
    ]
    yield instances("respelt-judgment", rows, len(after))
    yield instances("topic-only-before", [{"topic_id": one} for one in gone], len(topics[0]))
    yield instances("topic-only-now", [{"topic_id": one} for one in new], len(topics[1]))


def _without(rows: pl.DataFrame, named: set[tuple[str, str]]) -> pl.DataFrame:
    if not named:
        return rows
    other = pl.DataFrame(sorted(named), schema={"topic_id": pl.String, "doc_id": pl.String}, orient="row")
    return rows.join(other, on=["topic_id", "doc_id"], how="anti", maintain_order="left")


def _renamed(removed: pl.DataFrame, added: pl.DataFrame) -> list[tuple[str, str, str]]:
    """Removed and added judgments of one topic and grade whose document ids are spelt alike: topic, old, new."""
    forms: dict[tuple[str, str, int], list[str]] = {}
    for topic, doc, grade in removed.iter_rows():
        forms.setdefault((topic, folded(doc), grade), []).append(doc)
    found = []
    for topic, doc, grade in added.iter_rows():
        several = forms.get((topic, folded(doc), grade), [])
        if len(several) == 1:
            found.append((topic, several[0], doc))
    return found
