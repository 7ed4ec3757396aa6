"""The learner as a live assistant: while people judge a pool, it says what they judge next, until a rule stops."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from truerank.audits.pool.active import ActiveLearner, LearnerOptions
from truerank.audits.pool.features import Features
from truerank.audits.pool.items import document_of, grade_of, grades_by_label, pool_item
from truerank.audits.pool.stopping import (
    StoppingRule,
    TopicJudgments,
    TopicOutcome,
    TrackProcedure,
    apply_rule,
    follow,
    load_rule,
)
from truerank.judging import Item, Standing, Store
from truerank.rankers.reranking.document_texts import DocumentTexts
from truerank.records import Topic
from truerank.work.progress import Progress

#: What marks the items that the learner chose; all others of a store are the pool.
ACTIVE: Final = "active"
_STAGE: Final = "stage"


@dataclass(frozen=True)
class Collection:
    """A collection as the assistant needs it: what the learner sees, and what people read."""

    features: Features
    texts: DocumentTexts


def open_collection(docs: str, folder: str | Path, *, workers: int = 1, progress: Progress | None = None) -> Collection:
    """The features and texts of a collection, made once and found again in a folder.

    Args:
        docs: the documents, see `sources.open_documents`.
        folder: where both are kept: an index of the features' terms, and the texts by id.
        workers: processes that analyse documents.
        progress: receives the number of documents done.

    Raises:
        InputError: a fault in the documents, or the folder was made from others.
    """
    place = Path(folder)
    # The texts come last: where they are, they are those of the index.
    features = Features.of_collection(docs, place / "index", workers=workers, progress=progress)
    return Collection(features, DocumentTexts.collect(place / "documents.sqlite", docs, progress=progress))


@dataclass
class _Live:
    """A topic as it stands: its pool and what was chosen, in the order of the store."""

    topic: Topic
    pool: int = 0
    chosen: int = 0
    open_pool: int = 0
    grades: dict[str, int] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)
    skipped: set[str] = field(default_factory=set)

    def add(self, seen: _Seen, said: Sequence[Standing], grades: dict[str, int]) -> None:
        self.pool += seen.in_pool
        self.chosen += not seen.in_pool
        # What was skipped is as good as judged, but says nothing.
        self.open_pool += seen.in_pool and not said
        self.seen.add(seen.doc_id)
        grade = grade_of(said, grades)
        if grade is not None:
            self.grades[seen.doc_id] = grade
        elif said:
            self.skipped.add(seen.doc_id)


class Assistant:
    """A `Proposer` that goes on where the pool ends.

    A topic belongs to the annotators who judge its pool. When one has judged all that is theirs, they get the next
    batch of their first topic that the rule does not end, chosen by a model of all labels as they stand: a grade that
    is changed counts at the next batch. A document that someone skips is not proposed again.

    Args:
        collection: see `open_collection`.
        rule: when a topic ends; the track's procedure where none is given.
        seed: of the learner.
        options: see `LearnerOptions`.
        budget: judgments over all topics; None for no bound.
    """

    def __init__(
        self,
        collection: Collection,
        rule: StoppingRule | None = None,
        *,
        seed: int = 0,
        options: LearnerOptions | None = None,
        budget: int | None = None,
    ) -> None:
        self.rule: StoppingRule = rule or TrackProcedure()
        self.options = options or LearnerOptions()
        self._collection, self._seed, self._budget = collection, seed, budget
        self._learners: dict[str, ActiveLearner] = {}
        self._shelf = _Shelf()
        # Proposed, but perhaps not in the store yet: two annotators of a topic get different documents.
        self._given: dict[str, dict[str, Item]] = {}
        self._lock = threading.Lock()

    def propose(self, store: Store, annotator: str, n: int) -> Sequence[Item]:
        """The annotator's next documents, at most n; none when all of their topics have ended."""
        with self._lock:
            live = self._shelf.read(store)
            left = None if self._budget is None else self._budget - sum(len(one.grades) for one in live.values())
            if left is not None and left <= 0:
                return []
            for topic_id in self._shelf.topics_of(store.assigned(annotator)):
                wanted = self._wanted(live[topic_id])
                size = min(wanted, n, self.options.left_of_batch(live[topic_id].chosen))
                # None come where the whole collection is judged.
                if size and (items := self._chosen(live[topic_id], size if left is None else min(size, left))):
                    return items
            return []

    def outcomes(self, store: Store) -> tuple[TopicOutcome, ...]:
        """What the rule makes of every topic by the labels as they stand."""
        return apply_rule(
            self.rule, [self._found(one) for one in self._shelf.read(store).values()], budget=self._budget
        )

    def _wanted(self, live: _Live) -> int:
        """How many more documents of a topic the rule wants; none while its pool is not judged."""
        if live.open_pool:
            return 0
        outcome = follow(self.rule, self._found(live))
        waiting = len(live.seen) - len(live.grades) - len(live.skipped)
        return max(0, outcome.until - outcome.judged - waiting) if outcome.ending == "trace" else 0

    def _found(self, live: _Live) -> TopicJudgments:
        relevant = np.array([grade >= self.options.rel for grade in live.grades.values()], np.int64)
        return TopicJudgments(live.topic.topic_id, live.pool, np.cumsum(relevant))

    def _chosen(self, live: _Live, n: int) -> list[Item]:
        name = live.topic.topic_id
        learner = self._learners.get(name)
        if learner is None:
            learner = ActiveLearner(self._collection.features, name, live.topic.title, self._seed, self.options)
            self._learners[name] = learner
        given = self._given.setdefault(name, {})
        waiting = [doc_id for doc_id in given if doc_id not in live.seen]
        chosen = learner.next(live.grades, n, [*live.seen, *waiting])
        documents = self._collection.texts.of(chosen)
        for doc_id in chosen:
            given[doc_id] = pool_item(live.topic, documents[doc_id], {_STAGE: ACTIVE})
        return [given[doc_id] for doc_id in chosen]


class _Seen(NamedTuple):
    """What an item shows, which never changes."""

    topic_id: str
    doc_id: str
    in_pool: bool


class _Shelf:
    """The items of a store without their texts, read once each: a store may hold a gigabyte of documents."""

    def __init__(self) -> None:
        self._items: dict[str, _Seen] = {}
        self._topics: dict[str, Topic] = {}

    def topics_of(self, item_ids: Iterable[str]) -> list[str]:
        """The topics of items that `read` has met, each once."""
        return list(dict.fromkeys(self._items[item_id].topic_id for item_id in item_ids if item_id in self._items))

    def read(self, store: Store) -> dict[str, _Live]:
        """The topics of a store in the order of its items, with what is said of them now."""
        ids, grades = store.item_ids(), grades_by_label(store)
        for item in (
            store.items() if not self._items else map(store.item, (one for one in ids if one not in self._items))
        ):
            self._items[item.item_id] = _Seen(item.topic_id, document_of(item), item.data.get(_STAGE) != ACTIVE)
            topic = Topic(item.topic_id, item.text("query") or item.title, item.description, item.narrative)
            self._topics.setdefault(item.topic_id, topic)
        standings = store.standing_by_item()
        live: dict[str, _Live] = {}
        for item_id in ids:
            seen = self._items[item_id]
            one = live.setdefault(seen.topic_id, _Live(self._topics[seen.topic_id]))
            one.add(seen, standings.get(item_id, []), grades)
        return live


def pool_assistant(
    store: str | Path,
    docs: str,
    *,
    rule: str | StoppingRule = "track",
    budget: int | None = None,
    seed: int = 0,
    learner: LearnerOptions | None = None,
    folder: str | Path | None = None,
    workers: int = 1,
    progress: Progress | None = None,
) -> Assistant:
    """What feeds a store with active learning where its pool ends; see `truerank.judge.serve`.

    Args:
        store: of a relevance scheme; its items are the pool.
        docs: the collection, see `sources.open_documents`.
        rule: when a topic is judged enough, see `load_rule`.
        budget: judgments over all topics; None for no bound.
        seed: of the learner.
        learner: see `LearnerOptions`.
        folder: where index and texts of the collection are kept; None for `STORE.collection`.
        workers: processes that analyse documents.
        progress: receives the number of documents done.

    Raises:
        InputError: a store that does not grade documents; a fault in the documents or the rule.
    """
    chosen = load_rule(rule) if isinstance(rule, str) else rule
    with Store.open(store) as opened:
        grades_by_label(opened)
    place = Path(f"{store}.collection") if folder is None else Path(folder)
    collection = open_collection(docs, place, workers=workers, progress=progress)
    return Assistant(collection, chosen, seed=seed, options=learner, budget=budget)
