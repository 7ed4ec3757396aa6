"""What is wrong with the judgments by themselves; what is left of them when faults go and documents count as one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final

import polars as pl

from truerank.audits.collection.instances import Instances, instances
from truerank.errors import InputError
from truerank.measures.equivalence import Combine, combined_grade
from truerank.records import Qrel
from truerank.sources.grammar import SourceSpec, parse
from truerank.sources.notebook import frame_of
from truerank.sources.qrels import QREL_SCHEMA, highest_grades, qrel_frames, qrel_lines
from truerank.text.identifiers import folded, what_differs

#: A grade that so few judgments have, and that is more than twice the highest of the others, is off the scale.
_RARE: Final = 0.005
#: From one grade to the next, scales do not grow so many times (or from 1, 2, 3 to 10), if at most this share of the
#: judgments lies above.
_GAP, _FEW = 4, 0.2
#: Topics with so many relevant documents in common, and such a share of them, look alike.
_COMMON, _ALIKE = 3, 0.8
#: A document that is relevant for more topics than this does not make two topics alike by itself.
_SHARED_BY: Final = 200
#: So many topics at least, and such a share of all, for a document to stand out.
_HUB, _HUB_SHARE = 10, 0.1
#: So many relevant documents at least, and so many times the median, for a topic to stand out.
_SWOLLEN, _SWOLLEN_TIMES = 50, 20
#: Judgments of a topic that are all relevant stand out where chance makes them rarer than this.
_CHANCE: Final = 1e-6
_KEYS: Final = ["topic_id", "doc_id"]


@dataclass(frozen=True, eq=False)
class JudgmentTable:
    """Judgments as they are in their source.

    Attributes:
        frame: columns row (from 0, of the judgments), line (0 where not known), topic_id, doc_id, relevance; pairs
            may be there several times.
        broken: rows that are not judgments: line, detail.
        spec: the source; None for values of the caller's program.
    """

    frame: pl.DataFrame
    broken: pl.DataFrame
    spec: SourceSpec | None = None


def read_judgments(source: Any) -> JudgmentTable:
    """Reads judgments with all their faults."""
    if isinstance(source, JudgmentTable):
        return source
    broken: list[tuple[int, str]] = []
    if not isinstance(source, str | SourceSpec) and not hasattr(source, "__fspath__"):
        frame = frame_of(source, QREL_SCHEMA, "relevance").select(list(QREL_SCHEMA)).cast(QREL_SCHEMA)  # type: ignore[arg-type]
        return _table(frame, broken, None)
    spec = source if isinstance(source, SourceSpec) else parse(str(source))
    try:
        frame = pl.concat([pl.DataFrame(schema=QREL_SCHEMA), *qrel_frames(spec)])
        lines = pl.Series("line", [], pl.Int64)
    except InputError as error:
        if error.line is None or spec.scheme != "file":
            raise
        frame, lines = _line_by_line(spec, broken)
    return _table(frame, broken, spec, lines)


def _line_by_line(spec: SourceSpec, broken: list[tuple[int, str]]) -> tuple[pl.DataFrame, pl.Series]:
    rows, lines = [], []
    for number, raw, said, _ in qrel_lines(spec):
        if isinstance(said, Qrel):
            rows.append((said.topic_id, said.doc_id, said.relevance))
            lines.append(number)
        elif said is not None:
            broken.append((number, f"{said.fault}: {raw.decode('utf-8', 'replace').strip()[:120]}"))
    if not rows:
        raise InputError("no line of it is a judgment", "write topic, iteration, document, relevance", where=spec.path)
    return pl.DataFrame(rows, schema=QREL_SCHEMA, orient="row"), pl.Series("line", lines, pl.Int64)


def _table(
    frame: pl.DataFrame, broken: Sequence[tuple[int, str]], spec: SourceSpec | None, lines: pl.Series | None = None
) -> JudgmentTable:
    if not len(frame):
        raise InputError("no judgments in it", "give judgments", where="the qrels" if spec is None else spec.spec)
    places = pl.Series([0] * len(frame), dtype=pl.Int64) if lines is None or len(lines) != len(frame) else lines
    frame = frame.with_row_index("row").with_columns(pl.col("row").cast(pl.Int64), places.alias("line"))
    refused = pl.DataFrame(broken, schema={"line": pl.Int64, "detail": pl.String}, orient="row")
    return JudgmentTable(frame, refused, spec)


def usable(table: JudgmentTable) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """The judgments as they count, one row for each pair, and what has to be said of others; see `highest_grades`."""
    return highest_grades(table.frame.select(list(QREL_SCHEMA)))


def judgment_instances(table: JudgmentTable, rel: int = 1, grades: Collection[int] = ()) -> Iterator[Instances]:
    """What the judgments alone show."""
    frame = table.frame
    yield instances("broken-row", table.broken, len(frame) + len(table.broken))
    yield from _repeats(frame)
    yield from _grades(frame, rel, grades)
    pairs, _ = usable(table)
    for kind, column in (("alike-document-ids", "doc_id"), ("alike-topic-ids", "topic_id")):
        yield _alike(kind, column, pairs[column].unique(maintain_order=True))
    yield _twins(pairs, rel)
    yield _hubs(pairs, rel)
    yield from _lopsided(pairs, rel)


def _repeats(frame: pl.DataFrame) -> Iterator[Instances]:
    several = frame.filter(pl.len().over("topic_id", "doc_id") > 1)
    groups = several.group_by("topic_id", "doc_id", maintain_order=True).agg(
        pl.len().alias("rows"),
        pl.col("relevance").n_unique().alias("grades"),
        pl.col("relevance").cast(pl.String).str.join(", ").alias("were"),
        pl.col("line").last(),
        pl.format("judgments {}", (pl.col("row") + 1).cast(pl.String).str.join(", ")).alias("places"),
    )
    same, other = groups.filter(pl.col("grades") == 1), groups.filter(pl.col("grades") > 1)
    further = several.join(same.select(*_KEYS, "places"), on=_KEYS, maintain_order="left").filter(
        pl.col("row") != pl.col("row").first().over("topic_id", "doc_id")
    )
    yield instances("repeated-pair", further.rename({"places": "detail"}), len(frame))
    graded = other.with_columns(pl.format("grades {}; {}", "were", "places").alias("detail"))
    yield instances("contradicted-pair", graded, frame.select("topic_id", "doc_id").n_unique())


def _grades(frame: pl.DataFrame, rel: int, grades: Collection[int]) -> Iterator[Instances]:
    counts = dict(frame["relevance"].value_counts().iter_rows())
    outside = sorted(set(counts) - set(grades)) if grades else _outliers(counts)
    detailed = frame.with_columns(pl.format("grade {}", "relevance").alias("detail"))
    off = pl.col("relevance").is_in(outside)
    yield instances("off-scale-grade", detailed.filter(off), len(frame))
    yield instances("negative-grade", detailed.filter((pl.col("relevance") < 0) & ~off), len(frame))
    relevant = frame.filter(pl.col("relevance") >= rel)
    if relevant["relevance"].n_unique() == 1:
        row = {"detail": f"every relevant document has the grade {relevant['relevance'][0]}"}
        yield instances("one-grade", [row], len(relevant), len(relevant))
    if len(relevant) == len(frame):
        row = {"detail": f"all {len(frame):,d} judgments are of relevant documents"}
        yield instances("no-negatives", [row], len(frame), len(frame))


def _outliers(counts: dict[int, int]) -> list[int]:
    """Grades beyond a gap in the scale that few judgments have: the wider the gap, the more may have them.

    Two grades or more that are ten or a hundred times those of a scale without a gap are another scale: the fewer of
    the two are named.
    """
    total = sum(counts.values())
    rare = {grade for grade, count in counts.items() if count <= max(1, _RARE * total)}
    usual = [grade for grade in counts if grade not in rare] or list(counts)
    odd = {grade for grade in rare if grade > 2 * max(*usual, 1) or grade < min(2 * min(usual), -2)}
    positive = sorted(grade for grade in counts if grade > 0)
    for place, (one, next_one) in enumerate(pairwise(positive), start=1):
        below, above = positive[:place], positive[place:]
        scale = below == [*range(1, place + 1)] and next_one > 2 * one
        times = scale and any({*above} <= {factor * grade for grade in below} for factor in (10, 100))
        fewer = min(above, below, key=lambda some: sum(counts[grade] for grade in some))
        if times and len(above) > 1:
            odd.update(fewer)
        elif (times or next_one > _GAP * one) and sum(counts[grade] for grade in above) <= _FEW * total:
            odd.update(above)
    return sorted(odd)


def _alike(kind: str, column: str, ids: pl.Series) -> Instances:
    """Ids of one folded form; digits alone that differ in padding are the plainest case."""
    forms: dict[str, list[str]] = {}
    for one in ids:
        forms.setdefault(folded(one), []).append(one)
    rows = [
        {column: one, "other": several[0], "detail": f"differs in {what_differs(one, several[0])}"}
        for several in forms.values()
        for one in several[1:]
    ]
    return instances(kind, rows, len(ids))


def _twins(pairs: pl.DataFrame, rel: int) -> Instances:
    """Topics whose relevant documents are nearly those of another topic; each with the nearest one before it."""
    topics = pairs["topic_id"].n_unique()
    relevant = pairs.filter(pl.col("relevance") >= rel).select("topic_id", "doc_id")
    sizes = dict(relevant["topic_id"].value_counts().iter_rows())
    order = {topic: place for place, topic in enumerate(pairs["topic_id"].unique(maintain_order=True))}
    holders = pl.len().over("doc_id")
    shared = relevant.filter(holders.is_between(2, _SHARED_BY))
    met = shared.join(shared, on="doc_id", suffix="_other").filter(pl.col("topic_id") != pl.col("topic_id_other"))
    # Documents of many topics say little alone; they count for pairs that share another one.
    of_many = relevant.filter(holders > _SHARED_BY)
    also = met.select("topic_id", "topic_id_other").unique().join(of_many, on="topic_id")
    also = also.join(of_many, left_on=("topic_id_other", "doc_id"), right_on=("topic_id", "doc_id"), how="semi")
    columns = ("topic_id", "topic_id_other")
    both = pl.concat([met.select(columns), also.select(columns)]).group_by(columns).len()
    both = both.filter(pl.col("len") >= _COMMON)
    best: dict[str, tuple[float, int, str]] = {}
    for topic, other, common in both.sort(pl.all()).iter_rows():
        share = common / (sizes[topic] + sizes[other] - common)
        if order[other] < order[topic] and share >= _ALIKE and (topic not in best or share > best[topic][0]):
            best[topic] = (share, common, other)
    rows = [
        {
            "topic_id": topic,
            "other": best[topic][2],
            "detail": f"{best[topic][1]} relevant documents in common, {best[topic][0]:.0%} of both together",
        }
        for topic in order
        if topic in best
    ]
    return instances("twin-topics", rows, topics)


def _hubs(pairs: pl.DataFrame, rel: int) -> Instances:
    topics = pairs["topic_id"].n_unique()
    relevant = pairs.filter(pl.col("relevance") >= rel)
    counts = relevant.group_by("doc_id", maintain_order=True).len()
    hubs = counts.filter(pl.col("len") >= max(_HUB, _HUB_SHARE * topics))
    hubs = hubs.sort("len", descending=True, maintain_order=True)
    detail = pl.format(f"relevant for {{}} of {topics:,d} topics", "len").alias("detail")
    return instances("hub-document", hubs.with_columns(detail), len(counts))


def _lopsided(pairs: pl.DataFrame, rel: int) -> Iterator[Instances]:
    relevant = pl.col("relevance") >= rel
    by_topic = pairs.group_by("topic_id", maintain_order=True).agg(
        pl.len().alias("judged"), relevant.sum().alias("relevant")
    )
    none = by_topic.filter(pl.col("relevant") == 0)
    detail = pl.format("{} judged, none relevant", "judged").alias("detail")
    yield instances("no-relevant", none.with_columns(detail), len(by_topic))
    middle = float(by_topic.filter(pl.col("relevant") > 0)["relevant"].median() or 0)  # type: ignore[arg-type]
    wide = by_topic.filter((pl.col("relevant") >= _SWOLLEN) & (pl.col("relevant") >= _SWOLLEN_TIMES * middle))
    text = pl.format(f"{{}} relevant documents, median {middle:g}", "relevant").alias("detail")
    yield instances("swollen-topic", wide.with_columns(text), len(by_topic))
    all_relevant = by_topic.filter(pl.col("relevant") == pl.col("judged"))
    # The chance by the share among the other topics, at least one of them being counted as not relevant.
    rest = int((by_topic["judged"] - by_topic["relevant"]).sum())
    share = 1 - max(1, rest) / max(1, int(by_topic["judged"].sum()))
    chosen = all_relevant.filter(pl.lit(share) ** pl.col("judged") < _CHANCE / max(1, len(by_topic)))
    if not rest or len(all_relevant) > 0.5 * len(by_topic):
        chosen = chosen.clear()
    detail = pl.format("all {} judged are relevant", "judged").alias("detail")
    yield instances("all-relevant", chosen.with_columns(detail), len(by_topic))


def version_instances(before: pl.DataFrame, after: pl.DataFrame) -> Iterator[Instances]:
    """Judgments that were added, removed, regraded or renamed, and topics that only one version has."""
    topics = frozenset(before["topic_id"]), frozenset(after["topic_id"])
    gone = [one for one in before["topic_id"].unique(maintain_order=True) if one not in topics[1]]
    new = [one for one in after["topic_id"].unique(maintain_order=True) if one not in topics[0]]
    grade = pl.format("grade {}", "relevance").alias("detail")
    removed = before.join(after, on=_KEYS, how="anti", maintain_order="left")
    added = after.join(before, on=_KEYS, how="anti", maintain_order="left")
    renamed = _renamed(removed, added)
    old, now = ({(topic, pair[place]) for topic, *pair in renamed} for place in (0, 1))
    yield instances("added-judgment", _without(added, now).with_columns(grade), len(after))
    yield instances("removed-judgment", _without(removed, old).with_columns(grade), len(before))
    both = after.join(before, on=_KEYS, suffix="_before", maintain_order="left")
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
    other = pl.DataFrame(sorted(named), schema={"topic_id": pl.String, "doc_id": pl.String}, orient="row")
    return rows.join(other, on=_KEYS, how="anti", maintain_order="left")


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


#: Every change of a judgment: `row` counts the judgments of the source from 0; `new_doc_id` and `new_relevance` are
#: empty where the row was removed.
CHANGES: Final[dict[str, Any]] = {
    "row": pl.Int64, "line": pl.Int64, "topic_id": pl.String, "doc_id": pl.String, "relevance": pl.Int32,
    "action": pl.String, "new_doc_id": pl.String, "new_relevance": pl.Int32, "reason": pl.String,
}  # fmt: skip


@dataclass(frozen=True)
class Closing:
    """What is done with the judgments.

    Attributes:
        missing: ids of documents that do not exist; their judgments go.
        replaced: ids of documents with a notice in place of the text that was judged; theirs go, too.
        unknown: ids of topics that do not exist, and that no document has either.
        swapped: pairs of topic and document, as they stand, that are in each other's place.
        respelt: documents whose judgments name them by another spelling.
        representatives: by document of a group, the one that stands for it.
        combine: what several judgments of a topic become that go to one document.
        judged: by topic and document, the grade that people gave when they judged again.
    """

    missing: Collection[str] = ()
    replaced: Collection[str] = ()
    unknown: Collection[str] = ()
    swapped: Collection[tuple[str, str]] = ()
    respelt: Mapping[str, str] = field(default_factory=dict)
    representatives: Mapping[str, str] = field(default_factory=dict)
    combine: Combine = "max"
    judged: Mapping[tuple[str, str], int] = field(default_factory=dict)


def closing_of(rows: Callable[[str], pl.DataFrame], groups: Mapping[str, str], combine: Combine = "max") -> Closing:
    """What has to be done with the judgments, by the findings."""
    waste = rows("unknown-topic").filter(pl.col("other") == "")
    return Closing(
        missing=frozenset(rows("missing-document")["doc_id"]),
        replaced=frozenset(rows("replaced-text")["doc_id"]),
        unknown=frozenset() if len(rows("shifted-judgments")) else frozenset(waste["topic_id"]),
        swapped=frozenset(rows("swapped-ids").select("topic_id", "doc_id").iter_rows()),
        respelt=dict(rows("respelt-document").select("doc_id", "other").iter_rows()),
        representatives=groups,
        combine=combine,
    )


def upright(frame: pl.DataFrame, swapped: Collection[tuple[str, str]]) -> pl.DataFrame:
    """The judgments with the two ids of some of them exchanged; column `turned` marks the rows in which they were."""
    pairs = pl.DataFrame(sorted(swapped), schema={"topic_id": pl.String, "doc_id": pl.String}, orient="row")
    rows = frame.join(pairs.with_columns(turned=True), on=_KEYS, how="left", maintain_order="left")
    return rows.with_columns(pl.col("turned").fill_null(value=False)).with_columns(
        topic_id=pl.when("turned").then("doc_id").otherwise("topic_id"),
        doc_id=pl.when("turned").then("topic_id").otherwise("doc_id"),
    )


def closed(frame: pl.DataFrame, rules: Closing) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The judgments that stay, and every change.

    Of several judgments of one topic and document, the first row stays, with the grade that `combine` gives. With
    "agree", judgments that contradict each other all go.
    """
    rows = upright(frame, rules.swapped)
    again = [(*pair, grade) for pair, grade in rules.judged.items()]
    said = pl.DataFrame(again, {"topic_id": pl.String, "doc_id": pl.String, "again": pl.Int32}, orient="row")
    # `stated` is the grade that is in the source.
    rows = rows.join(said, on=_KEYS, how="left", maintain_order="left").with_columns(
        stated="relevance", relevance=pl.coalesce("again", "relevance").cast(frame.schema["relevance"])
    )
    rows = rows.with_columns(
        pl.col("doc_id").replace(dict(rules.respelt)).alias("spelt"),
        pl.when(pl.col("topic_id").is_in(list(rules.unknown)))
        .then(pl.lit("no such topic"))
        .when(pl.col("doc_id").is_in(list(rules.missing)) & ~pl.col("doc_id").is_in(list(rules.respelt)))
        .then(pl.lit("no such document"))
        .when(pl.col("doc_id").is_in(list(rules.replaced)))
        .then(pl.lit("a notice in place of the text"))
        .otherwise(None)
        .alias("reason"),
    )
    gone = rows.filter(pl.col("reason").is_not_null())
    rest = rows.filter(pl.col("reason").is_null()).drop("reason")
    rest = rest.with_columns(pl.col("spelt").replace(dict(rules.representatives)).alias("found"))
    keys = ["topic_id", "found"]
    rest = rest.with_columns(
        combined_grade(rules.combine).over(keys).alias("grade"),
        pl.col("relevance").n_unique().over(keys).alias("grades"),
        pl.col("row").first().over(keys).alias("first"),
        pl.len().over(keys).alias("several"),
    )
    removed = pl.col("grades") > 1 if rules.combine == "agree" else pl.lit(False)
    further = (pl.col("row") != pl.col("first")) & ~removed
    leaving = further | removed
    kept = rest.filter(~leaving).select(
        "row", "topic_id", pl.col("found").alias("doc_id"), pl.col("grade").alias("relevance")
    )
    copy = pl.col("spelt") != pl.col("found")
    same = pl.when(copy).then(pl.lit("a copy of a document that is judged already")).otherwise(pl.lit("a row too many"))
    why = (
        pl.when(removed)
        .then(pl.lit("equivalent documents, or rows, with different grades"))
        .when(further)
        .then(same)
        .when(copy)
        .then(pl.lit("the document that represents its group"))
        .when("turned")
        .then(pl.lit("topic and document were in each other's place"))
        .when(pl.col("doc_id") != pl.col("spelt"))
        .then(pl.lit("spelt as the document is"))
        .when(pl.col("several") > 1)
        .then(pl.format("{} of {} judgments", pl.lit(rules.combine), "several"))
        .otherwise(pl.lit("judged again"))
    )
    changed = leaving | pl.col("turned") | (pl.col("doc_id") != pl.col("found"))
    changed |= pl.col("stated") != pl.col("grade")
    stood = [
        pl.when("turned").then(name).otherwise(other).alias(other)
        for name, other in (("doc_id", "topic_id"), ("topic_id", "doc_id"))
    ]
    touched = rest.filter(changed).select(
        "row", "line", *stood, pl.col("stated").alias("relevance"),
        pl.when(leaving).then(pl.lit("removed")).otherwise(pl.lit("changed")).alias("action"),
        pl.when(leaving).then(None).otherwise("found").alias("new_doc_id"),
        pl.when(leaving).then(None).otherwise("grade").alias("new_relevance"),
        why.alias("reason"),
    )  # fmt: skip
    lost = gone.select(
        "row", "line", "topic_id", "doc_id", pl.col("stated").alias("relevance"), pl.lit("removed").alias("action"),
        pl.lit(None, pl.String).alias("new_doc_id"), pl.lit(None, pl.Int32).alias("new_relevance"), "reason",
    )  # fmt: skip
    changes = pl.concat([lost.cast(CHANGES), touched.cast(CHANGES)]).sort("row", maintain_order=True)  # type: ignore[arg-type]
    return kept, changes
