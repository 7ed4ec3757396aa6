"""Propose: what documents, topics and judgments show together."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final, NamedTuple

import polars as pl

from truerank.audits.collection.duplicates import Duplicates
from truerank.audits.collection.instances import Instances, instances
from truerank.measures import evaluate
from truerank.near_duplicates import Shingles, between
from truerank.options import Scoring
from truerank.records import Document

#: A topic of fewer words stands in some document by chance.
_FEWEST_WORDS: Final = 5
_VERBATIM: Final = Shingles(similarity=0.9, containment=1.0, contained_words=_FEWEST_WORDS)
_FULL: Final = 1 - 1e-9


class Ceiling(NamedTuple):
    """What a perfect ranking reaches by a measure.

    Attributes:
        measure: its name.
        mean: over all judged topics.
        below: topics that do not reach 1.
        lowest: the least value of a topic.
        topic: that topic.
    """

    measure: str
    mean: float
    below: int
    lowest: float
    topic: str


def group_instances(duplicates: Duplicates, pairs: pl.DataFrame, rel: int) -> Iterator[Instances]:
    """Grades of equivalent documents that contradict each other, and relevant documents whose copies are not judged."""
    certain = _graded(duplicates.groups(), pairs, rel)
    judged = pairs["topic_id"].n_unique()
    yield instances("contradicted-group", certain.contradicted, certain.size)
    yield instances("unjudged-twin", certain.unjudged, max(judged, len(certain.unjudged)))
    yield instances("redundant-relevant", certain.copies, int((pairs["relevance"] >= rel).sum()))
    doubtful = _graded(duplicates.groups(doubtful=True), pairs, rel)
    new = _beyond(doubtful.contradicted, certain.contradicted, ["topic_id", "doc_id", "other"])
    yield instances("doubtful-contradiction", new, max(doubtful.size, len(new)))
    new = _beyond(doubtful.unjudged, certain.unjudged, ["topic_id", "doc_id"])
    yield instances("doubtful-twin", new, max(judged, len(new)))


class _Graded(NamedTuple):
    """Alike documents: with different grades, unjudged beside a relevant one, further relevant; how many groups."""

    contradicted: pl.DataFrame
    unjudged: pl.DataFrame
    copies: pl.DataFrame
    size: int


def _graded(groups: pl.DataFrame, pairs: pl.DataFrame, rel: int) -> _Graded:
    """The groups with a judged document, topic by topic."""
    judged = pairs.join(groups, left_on="doc_id", right_on="document_id", how="inner", maintain_order="left")
    listed = pl.format("{} {}", "doc_id", "relevance").str.join(" · ")
    by_group = judged.group_by("topic_id", "group", maintain_order=True).agg(
        pl.col("doc_id").first(),
        pl.col("doc_id").filter(pl.col("relevance") != pl.col("relevance").first()).first().alias("other"),
        pl.col("relevance").n_unique().alias("grades"),
        (pl.col("relevance") >= rel).sum().alias("relevant"),
        listed.alias("detail"),
    )
    contradicted = by_group.filter(pl.col("grades") > 1)
    wanted = by_group.filter(pl.col("relevant") > 0).select("topic_id", "group", pl.col("doc_id").alias("other"))
    members = wanted.join(groups, on="group", maintain_order="left").rename({"document_id": "doc_id"})
    unjudged = members.join(pairs, on=["topic_id", "doc_id"], how="anti", maintain_order="left")
    unjudged = unjudged.filter(pl.col("doc_id") != pl.col("other"))
    relevant = judged.filter(pl.col("relevance") >= rel)
    copies = relevant.with_columns(pl.col("doc_id").first().over("topic_id", "group").alias("other"))
    return _Graded(
        contradicted.select("topic_id", "doc_id", "other", "detail"),
        unjudged.select("topic_id", "doc_id", "other"),
        copies.filter(pl.col("doc_id") != pl.col("other")).select("topic_id", "doc_id", "other"),
        len(by_group),
    )


def _beyond(rows: pl.DataFrame, known: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    return rows.join(known.select(keys), on=keys, how="anti", maintain_order="left")


def verbatim_instances(
    topics: dict[str, str], documents: Iterator[Document], pairs: pl.DataFrame | None
) -> Iterator[Instances]:
    """Topics that stand in a document word for word, or are one."""
    found = between(topics.items(), documents, _VERBATIM).pairs
    grades = {} if pairs is None else {(topic, doc): grade for topic, doc, grade in pairs.iter_rows()}
    own: list[dict[str, str]] = []
    inside: dict[str, dict[str, str]] = {}
    seen: set[tuple[str, str]] = set()
    for topic, doc, kind, share in found.select("left", "right", "kind", "left_in_right").iter_rows():
        same = kind in ("exact", "reformatted") or topic == doc
        grade = grades.get((topic, doc))
        judged = "" if pairs is None else ", not judged" if grade is None else f", grade {grade}"
        row = {"topic_id": topic, "doc_id": doc, "detail": f"{'the same text' if same else 'word for word'}{judged}"}
        if same and (topic, doc) not in seen:
            seen.add((topic, doc))
            own.append(row)
        elif kind == "contains" and share >= _FULL:
            inside.setdefault(topic, row)
    yield instances("self-retrieval", own, len(topics))
    yield instances("topic-in-document", inside.values(), len(topics))


def ceilings(
    pairs: pl.DataFrame, measures: str, scoring: Scoring, unreachable: Collection[str] = ()
) -> tuple[pl.DataFrame, tuple[Ceiling, ...]]:
    """What a perfect system reaches: the judged documents that exist, the highest grade first."""
    reachable = pairs.filter(~pl.col("doc_id").is_in(list(unreachable)))
    if reachable.is_empty():
        # A run needs a row: a document that nobody judged, since no id is a blank.
        reachable = pairs.head(1).with_columns(pl.lit(" ").alias("doc_id"))
    perfect = reachable.with_columns(
        pl.col("relevance").cast(pl.Float64).alias("score"),
        pl.col("relevance").rank("ordinal", descending=True).over("topic_id").cast(pl.Int64).alias("rank"),
    )
    found = evaluate(pairs, {"perfect": perfect.select("topic_id", "doc_id", "rank", "score")}, measures, scoring)
    rows, lines = [], []
    for measure, kind in zip(found.measures, found.aggregates, strict=True):
        if kind != "mean":
            continue
        values = found.of("perfect", measure)
        rows += [(topic, measure, float(value)) for topic, value in zip(found.topics, values, strict=True)]
        least = int(values.argmin())
        below = int((values < _FULL).sum())
        lines.append(Ceiling(measure, float(values.mean()), below, float(values[least]), found.topics[least]))
    frame = pl.DataFrame(
        rows, schema={"topic_id": pl.String, "measure": pl.String, "ceiling": pl.Float64}, orient="row"
    )
    return frame, tuple(lines)


def ceiling_instances(frame: pl.DataFrame) -> Instances:
    """The topics whose ceiling is below 1."""
    low = frame.filter(pl.col("ceiling") < _FULL).sort("ceiling", maintain_order=True)
    detail = pl.format("a perfect ranking reaches {} by {}", pl.col("ceiling").round(4), "measure").alias("detail")
    return instances("low-ceiling", low.with_columns(detail), len(frame))
