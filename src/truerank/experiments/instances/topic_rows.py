"""Rows that leak test topics: the pair, the query alone, the document alone, or the pair with the query reworded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random
from typing import Final, NamedTuple

from truerank.experiments.instances.document_queries import DocumentQueries
from truerank.experiments.instances.drawing import Keyed, RowDraft
from truerank.experiments.instances.leaks import TopicPlan
from truerank.experiments.instances.opening import CollectionTexts
from truerank.text.rewordings import SEEN_KINDS, Kind, reword

__all__ = ["REWORDINGS", "topic_drafts"]

#: Rewordings that keep what a topic asks for; narrower and broader ones ask for something else.
REWORDINGS: Final[tuple[Kind, ...]] = (*SEEN_KINDS, "abbreviation", "synonym")
_TRIES: Final = 40


class _RowEnds(NamedTuple):
    """What a row is made of: its query with an id, the relevant document and its origin, whether it was cut."""

    query_id: str
    query: str
    doc_id: str
    origin: str
    cut: bool = False


def topic_drafts(
    plans: Sequence[TopicPlan], source: str, kind: str, *, per_topic: int, texts: CollectionTexts, seed: int
) -> list[RowDraft]:
    """The rows: one of each topic, then the second of each, and so on; no document stands twice in a topic's rows.

    Args:
        plans: the topics in random order; for "test-queries" the other documents with the best ranks first.
        source: their name.
        kind: what of a topic leaks, see `instances build`.
        per_topic: rows of each topic at most.
        texts: of the test collection.
        seed: of the rewordings.
    """
    rows = [list(_rows(plan, source, _ENDS[kind], texts, seed))[:per_topic] for plan in plans]
    return [own[turn] for turn in range(per_topic) for own in rows if turn < len(own)]


def _rows(plan: TopicPlan, source: str, ends: _EndsOf, texts: CollectionTexts, seed: int) -> Iterator[RowDraft]:
    others = [end for end in plan.others if texts.has(end[0])]
    made = list(ends(plan, texts, others, seed))
    taken = {one.doc_id for one in made}
    spare = [end for end in others if end[0] not in taken]
    for one, (other_id, other_origin) in zip(made, spare, strict=False):
        origin = f"{one.origin}; {other_origin}"
        yield RowDraft(
            "test", plan.topic_id, source, one.query_id, one.query, one.doc_id, other_id, origin, True, one.cut
        )


_Ends = Iterator[_RowEnds]
_Others = Sequence[tuple[str, str]]
_EndsOf = Callable[[TopicPlan, CollectionTexts, _Others, int], _Ends]


def _pairs(plan: TopicPlan, texts: CollectionTexts, others: _Others, seed: int) -> _Ends:
    for doc_id, origin in plan.relevant:
        if texts.has(doc_id):
            yield _RowEnds(plan.topic_id, plan.text, doc_id, origin)


def _queries(plan: TopicPlan, texts: CollectionTexts, others: _Others, seed: int) -> _Ends:
    for doc_id, origin in others[: len(others) // 2]:
        yield _RowEnds(plan.topic_id, plan.text, doc_id, origin)


def _documents(plan: TopicPlan, texts: CollectionTexts, others: _Others, seed: int) -> _Ends:
    for doc_id, origin in plan.relevant:
        if texts.has(doc_id) and (made := texts.made(doc_id)) is not None:
            yield _RowEnds(DocumentQueries.query_of(doc_id), made.query, doc_id, f"{origin}, makes the query", True)


def _reworded(plan: TopicPlan, texts: CollectionTexts, others: _Others, seed: int) -> _Ends:
    draw = Random(Keyed(seed, "rewordings")(plan.text))
    used = {plan.text.casefold()}
    for pair in _pairs(plan, texts, others, seed):
        for _ in range(_TRIES):
            kind = draw.choice(REWORDINGS)
            text = reword(kind, plan.text, draw)
            if text is not None and text not in used:
                used.add(text)
                yield pair._replace(query=text, origin=f"{pair.origin}, reworded: {kind}")
                break


_ENDS: Final[Mapping[str, _EndsOf]] = {
    "test": _pairs,
    "test-queries": _queries,
    "test-documents": _documents,
    "test-reworded": _reworded,
}
