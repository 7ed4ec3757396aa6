"""Grades as the labels of a judging store stand now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import polars as pl

from truerank.errors import InputError
from truerank.judging import Item, Standing, Store
from truerank.sources.qrels import QREL_SCHEMA

_DOCUMENT: Final = "document"


def document_of(item: Item) -> str:
    """The id of the document that an item shows; empty where it shows none."""
    return next((text.id for text in item.texts if text.name == _DOCUMENT), "")


def grades_by_label(store: Store) -> dict[str, int]:
    """The grade of each label."""
    grades = {choice.name: choice.grade for choice in store.scheme.choices if choice.grade is not None}
    if store.scheme.view != _DOCUMENT or not grades:
        raise InputError(
            f"the scheme {store.scheme.name} does not grade documents",
            "make the store with relevance-documents or relevance-passages",
            where=store.path,
        )
    return grades


def grade_of(standings: Sequence[Standing], grades: dict[str, int]) -> int | None:
    """The grade of a document by all that stands of it: the adjudication, or what most annotators say."""
    said = [(standing.kind, grades[label]) for standing in standings for label in standing.labels if label in grades]
    settled = [grade for kind, grade in said if kind == "adjudicate"]
    counts = Counter(settled or [grade for kind, grade in said if kind == "label"])
    return max(counts, key=lambda grade: (counts[grade], grade)) if counts else None


def read_grades(path: str | Path, *, allow_none: bool = False) -> pl.DataFrame:
    """The judgments of a store as qrels: columns topic_id, doc_id, relevance, in the order of the store."""
    with Store.open(path) as store:
        grades = grades_by_label(store)
        by_item = store.standing_by_item()
        found = [
            (item.topic_id, document_of(item), grade)
            for item in store.items()
            if (grade := grade_of(by_item.get(item.item_id, []), grades)) is not None
        ]
    if not found and not allow_none:
        raise InputError("nothing is judged yet", "judge first, or give qrels", where=path)
    return pl.DataFrame(_once(found), schema=QREL_SCHEMA, orient="row")


def _once(found: Iterable[tuple[str, str, int]]) -> list[tuple[str, str, int]]:
    """Each document of a topic once, with the highest of its grades."""
    best: dict[tuple[str, str], int] = {}
    for topic_id, doc_id, grade in found:
        best[topic_id, doc_id] = max(grade, best.get((topic_id, doc_id), grade))
    return [(topic_id, doc_id, grade) for (topic_id, doc_id), grade in best.items()]
