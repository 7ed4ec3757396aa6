"""The rows of a set with leaks (of topics or queries) or without: planned as ids, then filled with texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import polars as pl

from truerank.errors import InputError, OptionError
from truerank.judging.labels import Judgments, open_judgments
from truerank.sources.grammar import parse
from truerank.sources.qrels import read_qrels_frame
from truerank.sources.topics import read_topics
from truerank.text.normalising import normalise
from truerank_lab.instances.built import ROWS, open_built
from truerank_lab.instances.draws import SCHEMA, Asked, FirstStage, Keyed, RowDraft, everything
from truerank_lab.instances.options import BuildOptions
from truerank_lab.instances.sources import CollectionTexts, Opened, filled
from truerank_lab.instances.training_queries import (
    Leak,
    Prepared,
    TrainingSources,
    excluded,
    read_candidates,
    spread,
    verified_leaks,
    wanted,
)

#: Rows of each test topic, with different documents, and documents that stand ready in case the collection lacks some.
_TIMES: Final = 2
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
    if options.topics is None or options.qrels is None:
        raise OptionError("topics", "topics and judgments are missing", "give both")
    spec = parse(options.topics)
    found = {topic.topic_id: normalise(topic.title) for topic in read_topics(spec).topics}
    texts = {topic_id: text for topic_id, text in found.items() if text}
    judged: dict[str, dict[str, int]] = {}
    for topic_id, doc_id, grade in read_qrels_frame(options.qrels).iter_rows():
        if topic_id in texts:
            judged.setdefault(topic_id, {})[doc_id] = grade
    judged = {topic: grades for topic, grades in judged.items() if any(grade > 0 for grade in grades.values())}
    if not judged:
        raise InputError(
            "no topic has a title and a relevant document", "check topics and judgments", where=options.qrels
        )
    relevant_only = all(grade > 0 for grades in judged.values() for grade in grades.values())
    return JudgedTopics(spec.name, texts, judged, relevant_only)


def plan_topics(topics: JudgedTopics, seed: int, stage: FirstStage | None) -> list[TopicPlan]:
    """Puts the topics, and the documents of each, into a random order."""
    of_topic, of_document = Keyed(seed, "topics"), Keyed(seed, "test documents")
    room = _TIMES + _SPARE
    ids = sorted(topics.judged, key=lambda topic: (of_topic(topic), topic))
    asked = [Asked(topic, topics.texts[topic], topics.judged[topic]) for topic in ids]
    searched = {} if stage is None else stage.negatives(asked, of_document, everything, room)
    plans = []
    for topic_id, text, judged in asked:
        ordered = sorted(judged, key=lambda doc_id: (of_document(f"{text}\0{doc_id}"), doc_id))
        grades = topics.judged[topic_id]
        relevant = [(doc_id, f"judged {grades[doc_id]}") for doc_id in ordered if grades[doc_id] > 0]
        others = [(doc_id, f"judged {grades[doc_id]}") for doc_id in ordered if grades[doc_id] <= 0]
        if stage is not None:
            found = searched.get(topic_id, ())
            others = [(one.doc_id, f"first-stage rank {one.rank}, unjudged") for one in found]
        plans.append(TopicPlan(topic_id, text, tuple(relevant[:room]), tuple(others[:room])))
    return plans


def topic_drafts(plans: Sequence[TopicPlan], source: str, texts: CollectionTexts) -> list[RowDraft]:
    """The rows: one of each topic, then the second of each; no document occurs twice in a topic's rows."""
    rows = [list(_rows(plan, source, texts))[:_TIMES] for plan in plans]
    return [own[turn] for turn in range(_TIMES) for own in rows if turn < len(own)]


def _rows(plan: TopicPlan, source: str, texts: CollectionTexts) -> Iterator[RowDraft]:
    relevant, others = ([end for end in ends if texts.has(end[0])] for ends in (plan.relevant, plan.others))
    for (doc_id, origin), (other_id, came) in zip(relevant, others, strict=False):
        ids = (plan.topic_id, source, plan.topic_id, plan.text, doc_id, other_id)
        yield RowDraft("test", *ids, f"{origin}; {came}", of_test=True)


#: By how much more is drawn where too much of it could not be used.
_GROWTH: Final = 4
_UNAUDITED: Final = "No candidates of an audit were given: nothing shows that the rows of the role none do not leak."
_UNJUDGED: Final = (
    "The test judgments hold relevant documents only: non-relevant ones are unjudged documents of the first stage."
)


@dataclass(frozen=True)
class Assembled:
    """The rows of a set in their order, without their texts, and what is to be said about them.
     With `fill`, the rows without a leak from another set, `drafts` has only those that leak; `leaks` counts these and
    their topics. `skipped` counts by reason what could not be used; `notes` are what a user must know.
    """

    drafts: tuple[RowDraft, ...]
    opened: Opened
    fill: pl.LazyFrame | None
    queries: list[dict[str, Any]]
    audited: bool
    leaks: dict[str, Any] | None
    skipped: dict[str, int]
    notes: tuple[str, ...]

    def blocks(self) -> Iterator[pl.DataFrame]:
        """The rows with their texts, in frames with the columns of `SCHEMA` but `number`."""
        schema = {name: kind for name, kind in SCHEMA.items() if name != "number"}
        for start in range(0, len(self.drafts), ROWS):
            some = self.drafts[start : start + ROWS]
            texts = filled(some, self.opened.training_texts, self.opened.testing_texts)
            rows = [
                {**draft._asdict(), "relevant": relevant, "nonrelevant": other}
                for draft, (relevant, other) in zip(some, texts, strict=True)
            ]
            yield pl.DataFrame(rows, schema=schema)
        if self.fill is not None:
            yield from self.fill.select(list(schema)).collect_batches(chunk_size=ROWS, maintain_order=True)


def assemble(kind: str, rows: int, opened: Opened) -> Assembled:
    options, seed = opened.options, opened.seed
    candidates = read_candidates(options.audit)
    judgments = open_judgments(options.labels) if options.labels else None
    leaks = _leaks(judgments, options) if kind == "leak" and judgments is not None else []
    barred = excluded(candidates, judgments, [lane.name for lane in opened.lanes])
    training = TrainingSources(opened.lanes, lambda: opened.training_stage, seed, barred)
    topics = read_judged_topics(options) if kind == "test" else None
    plans: list[TopicPlan] = []
    if topics is not None:
        plans = plan_topics(topics, seed, opened.testing_stage if topics.relevant_only else None)
    asked = options.leaks or 0
    # With fewer leaks than asked for there are more rows without one.
    drawn = _drawn(training, opened, leaks, plans, rows if options.allow_fewer else rows - asked)
    if topics is None:
        leaking, what = _of_leaks(drawn, seed), "leaking queries with documents"
    else:
        leaking = topic_drafts(plans, topics.name, opened.testing_texts)
        what = f"rows of test topics ({len(topics.judged):,} topics, {_TIMES} rows of each at most)"
    notes = [_UNJUDGED] if topics is not None and topics.relevant_only else []
    if len(leaking) < asked:
        fault = f"{len(leaking):,} {what}, not {asked:,}"
        if not options.allow_fewer:
            raise OptionError("leaks", f"there are {fault}", f"ask for `leaks` {len(leaking)}, or give `allow_fewer`")
        notes.append(f"There are only {fault}.")
    taken = leaking[:asked]
    about = {"rows": len(taken), "usable": len(leaking), "topics": len({draft.topic_id for draft in taken})}
    count = rows - len(taken)
    drafts, frame, audited = list(taken), None, bool(options.audit)
    if options.fill is None:
        fill = _taken(drawn.lanes, count)
        notes += _too_small(drawn.lanes, fill, count, options.allow_fewer) if fill.empty else []
        drafts += fill.rows
    else:
        frame = _filled_from(options.fill, seed, count, barred.texts)
        audited |= bool(open_built(options.fill).about["audited"])
    if frame is None and not drafts:
        lost = "".join(f"; {number:,} {reason}" for reason, number in drawn.skipped.items())
        remedy = "check that queries, judgments and documents belong together"
        raise OptionError("queries", f"no query makes a row{lost}", remedy)
    scanned = zip(opened.lanes, training.scanned, strict=True)
    queries = [{"name": lane.name, "read": one.read, "excluded": one.excluded} for lane, one in scanned]
    notes += [] if audited else [_UNAUDITED]
    return Assembled(
        tuple(drafts), opened, frame, queries, audited, about if asked else None, drawn.skipped, tuple(notes)
    )


class _Supply(NamedTuple):
    """Rows whose texts are there: of each source, and of leaking queries."""

    lanes: list[Prepared]
    leaking: list[tuple[Leak, RowDraft]]
    skipped: dict[str, int]


class _Taken(NamedTuple):
    """Rows taken from the sources in turn, how many of each, and which of them had no more."""

    rows: list[RowDraft]
    given: list[int]
    empty: list[int]


def _leaks(judgments: Judgments, options: BuildOptions) -> list[Leak]:
    topics = None if options.topics is None else {topic.topic_id for topic in read_topics(options.topics).topics}
    leaks = verified_leaks(judgments, topics)
    if not leaks:
        fault = "the labels hold no leak" + ("" if topics is None else f" of the {len(topics):,} topics")
        raise OptionError("labels", fault, "check labels and topics")
    return leaks


def _drawn(
    training: TrainingSources, opened: Opened, leaks: list[Leak], plans: Sequence[TopicPlan], fill_rows: int
) -> _Supply:
    """Draws until there is enough of every source, or it holds no more."""
    options, lanes = opened.options, training.lanes
    share = -(-fill_rows // max(1, len(lanes))) if options.fill is None and lanes else 0
    count = share + 64 + share // 16 if share else 0
    room = 2 * count + 1000 if share else 0
    while True:
        training.scan(room, wanted(leaks), opened.progress.start)
        prepared = training.rows(count) if share else []
        if any(len(one.drafts) < count and not one.complete for one in prepared):
            room *= _GROWTH
            continue
        leaking, lost = training.leaking(leaks) if leaks else ([], {})
        drafts = [draft for one in prepared for draft in one.drafts] + [draft for _, draft in leaking]
        own = {doc_id for draft in drafts for doc_id in (draft.relevant_id, draft.nonrelevant_id)}
        tested = {doc_id for plan in plans for doc_id, _ in (*plan.relevant, *plan.others)}
        same = opened.testing_texts is opened.training_texts
        opened.training_texts.collect(own | tested if same else own)
        if not same:
            opened.testing_texts.collect(tested)
        texts = opened.training_texts
        whole = []
        for one in prepared:
            there = tuple(draft for draft in one.drafts if _has_texts(draft, texts))
            lost_texts = {"drawn queries whose documents the collection lacks": len(one.drafts) - len(there)}
            reasons = {reason: number for reason, number in {**one.skipped, **lost_texts}.items() if number}
            whole.append(Prepared(there, one.complete, reasons))
        if all(whole[place].complete for place in _taken(whole, fill_rows).empty) or not share:
            break
        count, room = count * _GROWTH, room * _GROWTH
    kept = [(leak, draft) for leak, draft in leaking if _has_texts(draft, texts)]
    missing = {"leaks whose documents the collection lacks": len(leaking) - len(kept)}
    skipped = Counter({reason: number for one in whole for reason, number in one.skipped.items()})
    skipped.update({reason: number for reason, number in {**lost, **missing}.items() if number})
    return _Supply(whole, kept, dict(skipped))


def _has_texts(draft: RowDraft, texts: CollectionTexts) -> bool:
    return texts.has(draft.relevant_id) and texts.has(draft.nonrelevant_id)


def _of_leaks(drawn: _Supply, seed: int) -> list[RowDraft]:
    """The rows of leaking queries, spread over the topics."""
    by_leak = {(leak.topic_id, leak.text or leak.query_id): draft for leak, draft in drawn.leaking}
    ordered = spread((leak for leak, _ in drawn.leaking), seed)
    return [by_leak[leak.topic_id, leak.text or leak.query_id] for leak in ordered]


def _taken(lanes: Sequence[Prepared], count: int) -> _Taken:
    """The sources take turns; a text that an earlier turn brought is passed over."""
    taken = _Taken([], [0] * len(lanes), [])
    texts: set[str] = set()
    waiting = [iter(lane.drafts) for lane in lanes]
    while len(taken.rows) < count and len(taken.empty) < len(lanes):
        for place in range(len(lanes)):
            if len(taken.rows) == count or place in taken.empty:
                continue
            draft = next((one for one in waiting[place] if one.query not in texts), None)
            if draft is None:
                taken.empty.append(place)
                continue
            texts.add(draft.query)
            taken.rows.append(draft)
            taken.given[place] += 1
    return taken


def _too_small(lanes: Sequence[Prepared], taken: _Taken, count: int, allow_fewer: bool) -> list[str]:
    share = -(-count // len(lanes))
    names = [lane.drafts[0].source if lane.drafts else "a source" for lane in lanes]
    counts = [(names[place], taken.given[place]) for place in taken.empty]
    lacking = [f"{name} has {count:,} usable queries, fewer than its share of {share:,}" for name, count in counts]
    if not allow_fewer:
        raise OptionError("queries", "; ".join(lacking), "ask for a smaller size, or give `allow_fewer`")
    notes = [f"{sentence}; other sources make up for it as far as they can." for sentence in lacking]
    found = len(taken.rows)
    return [*notes, f"There are only {found:,} rows without a leak, not {count:,}."] if found < count else notes


def _filled_from(folder: str, seed: int, count: int, barred: Collection[str]) -> pl.LazyFrame:
    """The first rows of a built set without leaks, without those that leak after all."""
    built = open_built(folder)
    if built.kind != "none" or built.seed != seed:
        fault = f"a set of the kind {built.kind} with seed {built.seed}"
        raise InputError(fault, f"fill with one of the kind none and seed {seed}", where=folder)
    queries = built.lazy().select("query").collect()["query"].to_list()
    places = [place for place, query in enumerate(queries) if normalise(query) not in barred][:count]
    if len(places) < count:
        fault = f"{len(places):,} rows without a leak, not {count:,}"
        raise InputError(fault, "build it larger, or this set smaller", where=folder)
    chosen = pl.LazyFrame({"number": places}, schema={"number": pl.Int64})
    return built.lazy().join(chosen, on="number", how="semi", maintain_order="left")
