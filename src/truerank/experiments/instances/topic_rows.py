"""Rows made of the test data itself: topics and their judgments."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NamedTuple

from truerank.errors import InputError
from truerank.experiments.instances.drafts import Draft
from truerank.experiments.instances.first_stage import Asked, FirstStage, everything
from truerank.experiments.instances.keyed import Keyed
from truerank.experiments.instances.options import BuildOptions
from truerank.sources.grammar import parse
from truerank.sources.qrels import read_qrels_frame
from truerank.sources.topics import read_topics
from truerank.text.normalising import normalise

__all__ = ["JudgedTopics", "TopicPlan", "plan_topics", "read_judged_topics", "topic_drafts"]

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
    """Reads the test topics and their judgments.

    Args:
        options: `topics`, `field`, `qrels`, `test_relevant_from`.

    Raises:
        InputError: a fault in one of them, or no topic has a text and a relevant document.
    """
    if options.topics is None or options.qrels is None:
        raise InputError("topics and judgments are missing", "give both", where="--topics")
    spec = parse(options.topics)
    found = {topic.topic_id: normalise(getattr(topic, options.field)) for topic in read_topics(spec).topics}
    texts = {topic_id: text for topic_id, text in found.items() if text}
    judged: dict[str, dict[str, int]] = {}
    for topic_id, doc_id, grade in read_qrels_frame(options.qrels).iter_rows():
        if topic_id in texts:
            judged.setdefault(topic_id, {})[doc_id] = grade
    bound = options.test_relevant_from
    judged = {topic: grades for topic, grades in judged.items() if any(grade >= bound for grade in grades.values())}
    if not judged:
        fault = f"no topic has a {options.field} and a document judged {bound} or higher"
        raise InputError(fault, "check topics, judgments, --field and --test-relevant-from", where=options.qrels)
    relevant_only = all(grade >= bound for grades in judged.values() for grade in grades.values())
    return JudgedTopics(spec.name, texts, judged, relevant_only)


def plan_topics(topics: JudgedTopics, options: BuildOptions, seed: int, stage: FirstStage | None) -> list[TopicPlan]:
    """Puts the topics, and the documents of each, into a random order.

    Args:
        topics: with their judgments.
        options: `per_topic`, `test_relevant_from`.
        seed: of the order.
        stage: where non-relevant documents come from that nobody judged; None to take judged ones.
    """
    of_topic, of_document = Keyed(seed, "topics"), Keyed(seed, "test documents")
    room, bound = options.per_topic + _SPARE, options.test_relevant_from
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
            others = [(one.doc_id, f"first-stage rank {one.rank}, unjudged") for one in searched.get(topic_id, ())]
        plans.append(TopicPlan(topic_id, text, tuple(relevant[:room]), tuple(others[:room])))
    return plans


def topic_drafts(
    plans: Sequence[TopicPlan], source: str, per_topic: int, has_text: Callable[[str], bool]
) -> list[Draft]:
    """The rows: one of each topic, then the second of each, and so on; no document stands twice in a topic's rows.

    Args:
        plans: the topics in random order.
        source: their name.
        per_topic: rows of each topic at most.
        has_text: whether the collection holds a document.
    """
    rows = [list(_rows(plan, source, per_topic, has_text)) for plan in plans]
    return [own[turn] for turn in range(per_topic) for own in rows if turn < len(own)]


def _rows(plan: TopicPlan, source: str, per_topic: int, has_text: Callable[[str], bool]) -> Iterator[Draft]:
    relevant = [end for end in plan.relevant if has_text(end[0])][:per_topic]
    others = [end for end in plan.others if has_text(end[0])][:per_topic]
    for (doc_id, origin), (other_id, other_origin) in zip(relevant, others, strict=False):
        yield Draft(
            "test", plan.topic_id, source, plan.topic_id, plan.text, doc_id, other_id, f"{origin}; {other_origin}", True
        )
