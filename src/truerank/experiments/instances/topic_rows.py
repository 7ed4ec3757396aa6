"""Rows that leak test topics: the topics with their documents, and what of them leaks.

That is the pair, the query alone, the document alone, or the pair with the query reworded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random
from typing import Final, NamedTuple

from truerank.errors import InputError, OptionError
from truerank.experiments.instances.document_queries import DocumentQueries
from truerank.experiments.instances.drawing import Keyed, RowDraft
from truerank.experiments.instances.first_stage import Asked, FirstStage, everything
from truerank.experiments.instances.opening import CollectionTexts
from truerank.experiments.instances.options import BuildOptions
from truerank.sources.grammar import parse
from truerank.sources.qrels import read_qrels_frame
from truerank.sources.topics import read_topics
from truerank.text.normalising import normalise
from truerank.text.rewordings import SEEN_KINDS, Kind, reword

#: Rewordings that keep what a topic asks for; narrower and broader ones ask for something else.
REWORDINGS: Final[tuple[Kind, ...]] = (*SEEN_KINDS, "abbreviation", "synonym")
_TRIES: Final = 40


#: Documents that stand ready in case the collection lacks the first ones.
_SPARE: Final = 8


class JudgedTopics(NamedTuple):
    """The topics that have a text and a relevant document.

    `relevant_only` says that the judgments hold relevant documents only.
    """

    name: str
    texts: dict[str, str]
    judged: dict[str, dict[str, int]]
    relevant_only: bool


class TopicPlan(NamedTuple):
    """A topic with its documents in random order, each with where it comes from."""

    topic_id: str
    text: str
    relevant: tuple[tuple[str, str], ...]
    others: tuple[tuple[str, str], ...]


def read_judged_topics(options: BuildOptions) -> JudgedTopics:
    """Reads the test topics and their judgments."""
    if options.topics is None or options.qrels is None:
        raise OptionError("topics", "topics and judgments are missing", "give both")
    spec = parse(options.topics)
    found = {topic.topic_id: normalise(getattr(topic, options.field)) for topic in read_topics(spec).topics}
    texts = {topic_id: text for topic_id, text in found.items() if text}
    judged: dict[str, dict[str, int]] = {}
    for topic_id, doc_id, grade in read_qrels_frame(options.qrels).iter_rows():
        if topic_id in texts:
            judged.setdefault(topic_id, {})[doc_id] = grade
    bound = options.test_rel
    judged = {topic: grades for topic, grades in judged.items() if any(grade >= bound for grade in grades.values())}
    if not judged:
        fault = f"no topic has a {options.field} and a document judged {bound} or higher"
        raise InputError(fault, "check topics, judgments, `field` and `test_rel`", where=options.qrels)
    relevant_only = all(grade >= bound for grades in judged.values() for grade in grades.values())
    return JudgedTopics(spec.name, texts, judged, relevant_only)


def plan_topics(
    topics: JudgedTopics, options: BuildOptions, seed: int, stage: FirstStage | None, *, best_first: bool = False
) -> list[TopicPlan]:
    """Puts the topics, and the documents of each, into a random order."""
    of_topic, of_document = Keyed(seed, "topics"), Keyed(seed, "test documents")
    room, bound = options.rows_per_topic + _SPARE, options.test_rel
    ids = sorted(topics.judged, key=lambda topic: (of_topic(topic), topic))
    asked = [Asked(topic, topics.texts[topic], topics.judged[topic]) for topic in ids]
    searched = {} if stage is None else stage.negatives(asked, of_document, everything, room)
    plans = []
    for topic_id, text, judged in asked:
        ordered = sorted(judged, key=lambda doc_id: (of_document(f"{text}\0{doc_id}"), doc_id))
        ends = [(doc_id, f"judged {topics.judged[topic_id][doc_id]}") for doc_id in ordered]
        relevant = [end for end in ends if topics.judged[topic_id][end[0]] >= bound]
        others = [end for end in ends if topics.judged[topic_id][end[0]] < bound]
        if stage is not None:
            found = searched.get(topic_id, ())
            in_order = sorted(found, key=lambda one: one.rank) if best_first else found
            others = [(one.doc_id, f"first-stage rank {one.rank}, unjudged") for one in in_order]
        plans.append(TopicPlan(topic_id, text, tuple(relevant[:room]), tuple(others[:room])))
    return plans


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
    """The rows: one of each topic, then the second of each, and so on; no document stands twice in a topic's rows."""
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
