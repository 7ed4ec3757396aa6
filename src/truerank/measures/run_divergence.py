"""Where two runs, or the scores of two tools, differ first: topic, rank, and what kind of difference it is."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final, NamedTuple

import polars as pl

from truerank.arrays import frame_schema
from truerank.core.audit import Audit, Look
from truerank.core.verdict import Verdict
from truerank.core.views import View, columns
from truerank.errors import InputError
from truerank.measures.conventions import ConventionScorer, scored_measure
from truerank.text.printable import listed

#: Kinds of difference, in the order in which they are told, and what each of them means.
KINDS: Final[Mapping[str, str]] = {
    "other topics": "one has the topic and the other does not",
    "ids in another form": "the same documents, with ids that differ in case, leading zeros or a prefix",
    "fewer results": "one list ends where the other goes on",
    "other documents": "one has a document here that the other lacks",
    "order of ties": "documents with equal scores are in another order",
    "score precision": "the scores of one are rounded: documents tie, and trec_eval orders these by id",
    "other scores": "the same documents, with scores that order them differently",
    "another value": "the same topic has another score",
}
#: A rounded number is at most so many of its last digits off.
_ROUNDED: Final = 0.5001
_SCHEMA: Final = frame_schema(
    "topic kind: String, rank: Int64, first second: String, first_score second_score effect: Float64"
)


class _Ranked(NamedTuple):
    """The documents of a topic, best first, and their scores."""

    docs: list[str]
    scores: dict[str, float]


class ScoreDifference(Audit):
    """Why two scores differ: of a report and its files, or of two runs."""

    verdict_words: ClassVar[tuple[str, ...]] = ("NOT EXPLAINED", "DIFFERENT", "AMBIGUOUS", "EXPLAINED", "SAME")
    look: ClassVar[Look] = Look("Why two scores differ", "")


class RunDivergence(ScoreDifference):
    """Where two runs, or two tools' scores by topic, differ.

    `frames["kinds"]` has the kinds of difference, `frames["topics"]` the first difference of each topic.
    """

    look: ClassVar[Look] = Look(
        "Where two results differ",
        "{first} beside {second}: {topics:,} topics.",
        views=(
            View(
                "kinds", "kinds", "Kinds of difference, by the first one of each topic",
                columns("kind, topics:,d, what it means=meaning, first topic=topic, rank:d, {measure}=effect:+.6f"),
                ("{effect_note}",), section="kinds",
            ),
            View(
                "topics", "topics", "The first difference of each topic",
                columns(
                    "topic, kind, rank:d, {first}=first, {second}=second, score=first_score:.6g, "
                    "other score=second_score:.6g, {measure}=effect:+.6f"
                ),
                section="topics", place="page",
            ),
        ),
        sections={"kinds": "What differs", "topics": "Where"},
    )  # fmt: skip


def run_divergence(
    first: pl.DataFrame,
    second: pl.DataFrame,
    names: tuple[str, str],
    *,
    qrels: pl.DataFrame | None,
    measure: str,
    rel: int,
) -> RunDivergence:
    """Compares two runs topic by topic.

    Args:
        first: columns topic_id, doc_id, score and perhaps rank, in the order of the file.
        second: the same.
        names: what the runs are called.
        qrels: judgments; with them the effect of each difference on the measure is given.
    """
    lists = tuple(dict(_lists(run)) for run in (first, second))
    unit = max(_unit(first["score"]), _unit(second["score"]))
    effects = {} if qrels is None else _effects(qrels, (first, second), measure, rel)
    rows = []
    for topic in dict.fromkeys((*lists[0], *lists[1])):
        left, right = lists[0].get(topic), lists[1].get(topic)
        found = ("other topics", 1, "", "") if left is None or right is None else _difference(left, right, unit)
        if found is not None:
            kind, rank, *docs = found
            scores = [
                None if one is None else one.scores.get(doc) for one, doc in zip((left, right), docs, strict=True)
            ]
            rows.append((topic, kind, rank, *docs, *scores, effects.get(topic, 0.0) if qrels is not None else None))
    return _divergence(rows, names, len({*lists[0], *lists[1]}), measure, qrels is not None)


def score_divergence(first: pl.DataFrame, second: pl.DataFrame, names: tuple[str, str], measure: str) -> RunDivergence:
    """Compares the scores by topic of two tools, frames with topic_id and value."""
    values = [dict(frame.select("topic_id", "value").iter_rows()) for frame in (first, second)]
    unit = max(_unit(first["value"]), _unit(second["value"]))
    rows: list[tuple[Any, ...]] = []
    for topic in dict.fromkeys((*values[0], *values[1])):
        left, right = (one.get(topic) for one in values)
        if left is None or right is None:
            rows.append((topic, "other topics", 1, "", "", left, right, (right or 0.0) - (left or 0.0)))
        elif abs(left - right) > _ROUNDED * unit:
            rows.append((topic, "another value", 1, "", "", left, right, right - left))
    return _divergence(rows, names, len({*values[0], *values[1]}), measure, known=True)


def _lists(run: pl.DataFrame) -> Iterator[tuple[str, _Ranked]]:
    by = ["score", "rank"] if "rank" in run.columns else ["score"]
    ordered = run.sort(by, descending=[True, False][: len(by)], maintain_order=True)
    for (topic,), own in ordered.group_by(["topic_id"], maintain_order=True):
        yield str(topic), _Ranked(own["doc_id"].to_list(), dict(own.select("doc_id", "score").iter_rows()))


def _unit(numbers: pl.Series) -> float:
    """The last digit that numbers were written with; 0 for all digits that a number can have."""
    places = max((len(f"{number:.12g}".partition(".")[2]) for number in numbers.head(2000).to_list()), default=0)
    return 0.0 if places > 9 else 10.0**-places


def _difference(left: _Ranked, right: _Ranked, unit: float) -> tuple[str, int, str, str] | None:
    """Kind, rank from 1, and the two documents of the first difference."""
    for rank, (one, other) in enumerate(zip(left.docs, right.docs, strict=False), 1):
        if one != other:
            return _kind(left, right, one, other, unit), rank, one, other
    if len(left.docs) != len(right.docs):
        rank = min(len(left.docs), len(right.docs)) + 1
        longer = left if len(left.docs) > len(right.docs) else right
        doc = longer.docs[rank - 1]
        return "fewer results", rank, doc if longer is left else "", doc if longer is right else ""
    # The same lists, and scores that trec_eval, which goes by them and then by id, puts in another order.
    for rank, (one, other) in enumerate(zip(_by_score(left), _by_score(right), strict=True), 1):
        if one != other:
            return "score precision", rank, one, other
    return None


def _kind(left: _Ranked, right: _Ranked, one: str, other: str, unit: float) -> str:
    """What kind of difference it is that one list has a document where the other has another."""
    if _plain(one) == _plain(other):
        return "ids in another form"
    if one not in right.scores or other not in left.scores:
        return "other documents"
    changes = [abs(left.scores[doc] - right.scores[doc]) for doc in (one, other)]
    tied = any(own.scores[one] == own.scores[other] for own in (left, right))
    if tied and not any(changes):
        return "order of ties"
    if unit and max(changes) <= _ROUNDED * unit:
        return "score precision"
    return "order of ties" if tied else "other scores"


def _by_score(ranked: _Ranked) -> list[str]:
    return [doc for _, doc in sorted(((score, doc) for doc, score in ranked.scores.items()), reverse=True)]


def _plain(doc_id: str) -> str:
    return re.sub(r"^0+(?=\d)", "", re.sub(r"^.*[/:#]", "", doc_id.lower()))


def _effects(qrels: pl.DataFrame, runs: tuple[pl.DataFrame, pl.DataFrame], measure: str, rel: int) -> dict[str, float]:
    """What the second run has more than the first, by topic."""
    scored = scored_measure(measure, rel)
    left, right = (ConventionScorer(qrels, run).scores(scored) for run in runs)
    return dict(zip(left.topics, (right.values - left.values).tolist(), strict=True))


def _divergence(
    rows: list[tuple[Any, ...]], names: tuple[str, str], topics: int, measure: str, known: bool
) -> RunDivergence:
    if not topics:
        raise InputError("no topics in either of them", "give two runs, or two tables of scores by topic")
    found = pl.DataFrame(rows, schema=_SCHEMA, orient="row")
    counts = Counter(found["kind"].to_list())
    kinds = []
    for kind in (kind for kind in KINDS if kind in counts):
        own = found.filter(kind=kind)
        effect = float(own["effect"].sum()) / topics if known else None
        kinds.append((kind, counts[kind], KINDS[kind], own["topic"][0], own["rank"][0], effect))
    schema = frame_schema("kind: String, topics: Int64, meaning topic: String, rank: Int64, effect: Float64")
    note = f"The last column is what these topics add to the difference of the means of {measure}, {names[1]} minus "
    facts = {
        "first": names[0], "second": names[1], "topics": topics, "differing": len(found), "measure": measure,
        "effect_note": f"{note}{names[0]}." if known else "With judgments, the effect on a measure is given.",
    }  # fmt: skip
    if not rows:
        verdict = Verdict("SAME", f"{names[0]} and {names[1]} are the same on all {topics:,} topics.")
    else:
        shown = listed([f"{kind} ({count:,} topic{'s' if count > 1 else ''})" for kind, count, *_ in kinds])
        first = rows[0]
        text = f"They differ on {len(rows):,} of {topics:,} topics, first on topic {first[0]}"
        text += f" at rank {first[2]}: {shown}." if first[3] or first[4] else f": {shown}."
        if known:
            total = float(found["effect"].sum()) / topics
            text += f" {names[1]} has {total:+.6f} {measure}."
        verdict = Verdict("DIFFERENT", text)
    frames = {"kinds": pl.DataFrame(kinds, schema=schema, orient="row"), "topics": found}
    return RunDivergence((verdict,), frames=frames, facts=facts)
