"""Propose: what documents, topics and judgments show together."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

import polars as pl

from truerank.audits.collection.duplicates import Duplicates
from truerank.audits.collection.instances import Instances, instances
from truerank.measures import evaluate
from truerank.near_duplicates import Documents, Shingles, Sketches, between
from truerank.options import Scoring

#: A topic of fewer words stands in some document by chance.
_FEWEST_WORDS: Final = 5
#: What counts as the same there.
VERBATIM: Final = Shingles(similarity=0.9, containment=1.0, contained_words=_FEWEST_WORDS)
_FULL: Final = 1 - 1e-9


def group_instances(duplicates: Duplicates, pairs: pl.DataFrame, rel: int) -> Iterator[Instances]:
    """Grades of equivalent documents that contradict each other, and relevant documents whose copies are not judged."""
    contradicted, unjudged, copies, size = _graded(duplicates.groups(), pairs, rel)
    judged = pairs["topic_id"].n_unique()
    lost = pairs.filter((pl.col("relevance") >= rel) & pl.col("doc_id").is_in([*duplicates.replaced]))
    yield instances("replaced-text", lost.with_columns(detail=pl.format("grade {}", "relevance")), len(pairs))
    yield instances("contradicted-group", contradicted, size)
    yield instances("unjudged-twin", unjudged, max(judged, len(unjudged)))
    yield instances("redundant-relevant", copies, int((pairs["relevance"] >= rel).sum()))
    doubtful, twins, _, size = _graded(duplicates.groups(doubtful=True), pairs, rel)
    new = doubtful.join(contradicted, on=["topic_id", "doc_id", "other"], how="anti", maintain_order="left")
    yield instances("doubtful-contradiction", new, size)
    new = twins.join(unjudged, on=["topic_id", "doc_id"], how="anti", maintain_order="left")
    yield instances("doubtful-twin", new, max(judged, len(new)))


def _graded(
    groups: pl.DataFrame, pairs: pl.DataFrame, rel: int
) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame, int]:
    """Alike documents with different grades, unjudged ones beside a relevant one, further relevant ones; all groups.

    Groups are those with a judged document, topic by topic, of one document or more.
    """
    judged = pairs.join(groups, left_on="doc_id", right_on="document_id", how="inner", maintain_order="left")
    by_group = judged.group_by("topic_id", "group", maintain_order=True).agg(
        pl.col("doc_id").first(),
        pl.col("doc_id").filter(pl.col("relevance") != pl.col("relevance").first()).first().alias("other"),
        pl.col("relevance").n_unique().alias("grades"),
        (pl.col("relevance") >= rel).sum().alias("relevant"),
        pl.format("{} {}", "doc_id", "relevance").str.join(" · ").alias("detail"),
    )
    contradicted = by_group.filter(pl.col("grades") > 1)
    wanted = by_group.filter(pl.col("relevant") > 0).select("topic_id", "group", pl.col("doc_id").alias("other"))
    members = wanted.join(groups, on="group", maintain_order="left").rename({"document_id": "doc_id"})
    unjudged = members.join(pairs, on=["topic_id", "doc_id"], how="anti", maintain_order="left")
    relevant = judged.filter(pl.col("relevance") >= rel)
    copies = relevant.with_columns(pl.col("doc_id").first().over("topic_id", "group").alias("other"))
    unjudged, copies = (
        rows.filter(pl.col("doc_id") != pl.col("other")).select("topic_id", "doc_id", "other")
        for rows in (unjudged, copies)
    )
    # A document without copies is a group of its own.
    every = len(by_group) + len(pairs) - len(judged)
    return contradicted.select("topic_id", "doc_id", "other", "detail"), unjudged, copies, every


def verbatim_instances(
    topics: dict[str, str], documents: Documents | Sketches, pairs: pl.DataFrame | None
) -> Iterator[Instances]:
    """Topics that are in a document word for word, or are one."""
    found = between(topics.items(), documents, VERBATIM).pairs
    grades = {} if pairs is None else {(topic, doc): grade for topic, doc, grade in pairs.iter_rows()}
    own: dict[tuple[str, str], dict[str, str]] = {}
    inside: dict[str, dict[str, str]] = {}
    for topic, doc, kind, share in found.select("left", "right", "kind", "left_in_right").iter_rows():
        same = kind in ("exact", "reformatted") or topic == doc
        grade = grades.get((topic, doc))
        judged = "" if pairs is None else ", not judged" if grade is None else f", grade {grade}"
        row = {"topic_id": topic, "doc_id": doc, "detail": f"{'the same text' if same else 'word for word'}{judged}"}
        if same and (topic, doc) not in own:
            own[topic, doc] = row
        elif kind == "contains" and share >= _FULL:
            inside.setdefault(topic, row)
    yield instances("self-retrieval", own.values(), len(topics))
    yield instances("topic-in-document", inside.values(), len(topics))


def ceilings(
    pairs: pl.DataFrame,
    measures: str,
    scoring: Scoring,
    unreachable: Collection[str] = (),
    copies: Mapping[str, str] | None = None,
) -> tuple[pl.DataFrame, list[dict[str, Any]]]:
    """What a perfect system reaches: the judged documents that exist, the highest grade first.

    Args:
        pairs: the judgments, one row for each pair.
        measures: by name, separated by blanks.
        unreachable: judged documents that do not exist.
        copies: by document the one with the same text that stands for it.

    Returns:
        Rows of topic_id, measure, ceiling, and what is known of the topic's relevant documents; and for each measure
        the mean over all judged topics, the mean `once` if every text is returned once (None where no two relevant
        documents of a topic have one text), the number of topics `below` 1, the `lowest` value and its topic.
    """
    grade = pl.col("relevance")
    gone = pl.col("doc_id").is_in(list(unreachable))
    reachable = pairs.filter(~gone)
    if reachable.is_empty():
        # A run needs a row: a document that nobody judged, since no id is a blank.
        reachable = pairs.head(1).with_columns(pl.lit(" ").alias("doc_id"))
    text = pl.col("doc_id").replace(dict(copies or {})).alias("text")
    best = reachable.with_columns(text).sort("topic_id", grade, descending=[False, True], maintain_order=True)
    single = best.unique(["topic_id", "text"], keep="first", maintain_order=True)
    good = grade >= scoring.rel
    copied = len(best.filter(good)) > len(single.filter(good))
    rank = (pl.int_range(pl.len()).over("topic_id") + 1).cast(pl.Int64)
    ordered = ("topic_id", "doc_id", rank.alias("rank"), (-rank).cast(pl.Float64).alias("score"))
    runs = {"perfect": best.select(ordered), **({"once": single.select(ordered)} if copied else {})}
    scored = evaluate(pairs, runs, measures, scoring)
    why = pairs.group_by("topic_id").agg(good.sum().alias("relevant"), (good & gone).sum().alias("gone"))
    schema = {"topic_id": pl.String, "measure": pl.String, "ceiling": pl.Float64}
    frames, lines = [pl.DataFrame(schema=schema)], []
    for measure, kind in zip(scored.measures, scored.aggregates, strict=True):
        if kind == "mean":
            values = scored.of("perfect", measure)
            frames.append(pl.DataFrame([scored.topics, [measure] * len(values), values], schema=schema, orient="col"))
            least = int(values.argmin())
            below = int((values < _FULL).sum())
            once = float(scored.of("once", measure).mean()) if copied else None
            line = {"measure": measure, "mean": float(values.mean()), "once": once, "below": below}
            lines.append({**line, "lowest": float(values[least]), "topic": scored.topics[least]})
    return pl.concat(frames).join(why, on="topic_id", how="left", maintain_order="left"), lines


def ceiling_instances(frame: pl.DataFrame) -> Instances:
    """The topics whose ceiling is below 1, and why."""
    low = frame.filter(pl.col("ceiling") < _FULL).sort("ceiling", maintain_order=True)
    lost = pl.when(pl.col("gone") > 0).then(pl.format(", {} of them not in the collection", "gone"))
    none = pl.when(pl.col("relevant") == 0).then(pl.lit("no relevant document"))
    noun = pl.when(pl.col("relevant") == 1).then(pl.lit("document")).otherwise(pl.lit("documents"))
    why = none.otherwise(pl.format("{} relevant {}{}", "relevant", noun, lost.otherwise(pl.lit(""))))
    reaches = pl.format("a perfect ranking reaches {} by {}: {}", pl.col("ceiling").round(4), "measure", why)
    detail = reaches.alias("detail")
    return instances("low-ceiling", low.with_columns(detail), len(frame))
