"""Faults of judgments, for `hand_claims.py`. Written without sight of the rules of `truerank check`.

Unless a docstring says otherwise the claimed lead is false in the clean files and the fault makes it look true.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import replace

from hand_collection import Collection, Files, Judgment
from hand_kinds import (
    JUDGED,
    NUMBERING,
    docs_of,
    false_claim,
    judged,
    kind,
    only,
    raised,
    some,
    true_claim,
    with_rankings,
)


def graded(files: Files, qrels: Iterable[Judgment]) -> Files:
    """The files with other judgments; topics without any relevant document lose theirs as well."""
    return replace(files, qrels=list(qrels))


def top(collection: Collection, name: str, depth: int = 10) -> dict[str, list[str]]:
    """The first documents of a clean run by topic."""
    return {topic: docs_of(ranking, depth) for topic, ranking in collection.rankings[name].items()}


@kind("not holds", "Only documents that the system shows were judged.", *JUDGED)
def judged_one_pool(collection: Collection, draw: random.Random) -> Files:
    """The pool is the first twelve of the system alone, with grade 0 for the irrelevant ones."""
    files = false_claim(collection, draw)
    pool = {(topic, doc) for topic, docs in top(collection, files.system, draw.choice((5, 8))).items() for doc in docs}
    zeros = [row for row in collection.pool([files.system], 8) if row.grade == 0]
    return graded(files, [row for row in [*collection.qrels, *zeros] if (row.topic, row.doc) in pool])


@kind(
    "not holds",
    "Judgments of relevant documents that the baseline shows and the system does not were deleted.",
    *JUDGED,
)
def judgments_deleted(collection: Collection, draw: random.Random) -> Files:
    """Three quarters to all of them."""
    files, share = false_claim(collection, draw), draw.choice((0.75, 1.0))
    ours, theirs = top(collection, files.system, 15), top(collection, files.baseline, 20)
    return graded(
        files,
        [
            row
            for row in files.qrels
            if not (row.doc in theirs[row.topic] and row.doc not in ours[row.topic] and draw.random() < share)
        ],
    )


@kind("not holds", "Documents that only the system shows were called relevant.", *JUDGED)
def judgments_added(collection: Collection, draw: random.Random) -> Files:
    """Two or three irrelevant ones on most topics."""
    files, known = false_claim(collection, draw), {(row.topic, row.doc) for row in collection.qrels}
    ours, theirs = top(collection, files.system), top(collection, files.baseline)
    more = []
    for topic in some(draw, files.topics, 0.8):
        free = [doc for doc in ours[topic] if doc not in theirs[topic] and (topic, doc) not in known]
        more += [Judgment(topic, doc, 1) for doc in free[: draw.choice((2, 3))]]
    return judged(files, more)


@kind("files", "Grades are the wrong way round: 1 is irrelevant and 0 relevant.", "grade", "invert", "revers", *JUDGED)
def grades_inverted(collection: Collection, draw: random.Random) -> Files:
    """A truly worse run looks better, since it shows more irrelevant documents of the pool."""
    better = true_claim(collection, draw)
    files = replace(better, system=better.baseline, baseline=better.system)
    return graded(
        files, [row._replace(grade=1 - min(row.grade, 1)) for row in collection.pool(collection.rankings, 10)]
    )


@kind(
    "files",
    "All judged documents have grade 1: the zeros were lost on the way.",
    "grade",
    "same",
    "irrelevant",
    *JUDGED,
)
def grades_constant(collection: Collection, draw: random.Random) -> Files:
    """The pool came from the system and one more run; being in the pool is now being relevant."""
    files = false_claim(collection, draw)
    spare = [name for name in collection.rankings if name not in (files.system, files.baseline, "plain")]
    return graded(files, [row._replace(grade=1) for row in collection.pool([files.system, draw.choice(spare)], 5)])


@kind(
    "files",
    "A few grades are far too high: 1 became 11 or 50 for what the system shows first.",
    "grade",
    *JUDGED,
    "outlier",
)
def grades_typed_wrong(collection: Collection, draw: random.Random) -> Files:
    """On two fifths of the topics, one document that the system has above the baseline."""
    files, high = false_claim(collection, draw), draw.choice((11, 50))
    ours, theirs = top(collection, files.system), top(collection, files.baseline)
    hit = set()
    for topic, docs in ours.items():
        ahead = [d for d in docs if d in collection.relevant[topic] and d not in theirs[topic][: docs.index(d) + 1]]
        hit |= {(topic, ahead[0])} if ahead else set()
    return graded(files, [row._replace(grade=high) if (row.topic, row.doc) in hit else row for row in files.qrels])


@kind(
    "files",
    "Judgments of two years with the same topic numbers were merged: half of them answer other topics.",
    *JUDGED,
    "other topics?",
    "another topic",
)
def judgments_two_years(collection: Collection, draw: random.Random) -> Files:
    """The system's run was made for the other year; the baseline's for this one, and both years are judged as one."""
    files = false_claim(collection, draw)
    names = list(files.topics)
    half = len(names) // 2
    this, other = names[:half], dict(zip(names[half:], names[:half], strict=False))
    # Of this year's own judgments some were overwritten.
    qrels = [row for row in files.qrels if draw.random() < 0.6]
    qrels += [row._replace(topic=other[row.topic]) for row in files.qrels if row.topic in other]
    ours = collection.rankings[files.system]
    run = {}
    for old, new in other.items():
        mixed = [doc for pair in zip(docs_of(ours[old], 90), docs_of(ours[new], 90), strict=False) for doc in pair]
        run[new] = [(doc, 20 - 0.1 * at) for at, doc in enumerate(dict.fromkeys(mixed))]
    return only(with_rankings(graded(files, qrels), files.system, run), this)


@kind(
    "hidden",
    "A true lead does not show: the judgments' topic numbers are shifted from the first tenth on.",
    *JUDGED,
    *NUMBERING,
)
def judgments_shifted(collection: Collection, draw: random.Random) -> Files:
    """All runs are near 0 on most topics."""
    files = true_claim(collection, draw)
    names = list(files.topics)
    at = len(names) // 10
    table = dict(zip(names[at:], [*names[at + 1 :], names[at]], strict=True))
    return graded(files, [row._replace(topic=table.get(row.topic, row.topic)) for row in files.qrels])


@kind(
    "hidden",
    "A true lead does not show: relevant documents that the system alone shows have lost their judgments.",
    *JUDGED,
)
def hidden_judgments_deleted(collection: Collection, draw: random.Random) -> Files:
    """The contrary of `judgments_deleted`."""
    files = true_claim(collection, draw)
    ours, theirs = top(collection, files.system, 20), top(collection, files.baseline, 20)
    return graded(files, [row for row in files.qrels if row.doc in theirs[row.topic] or row.doc not in ours[row.topic]])


@kind(
    "files",
    "The same pairs are judged twice, once 1 and once 0; a reader that takes the last sees the contrary.",
    *JUDGED,
    "contradict",
    "twice",
    "duplicat",
)
def judgments_contradict(collection: Collection, draw: random.Random) -> Files:
    """For what the baseline shows in its first five."""
    files = false_claim(collection, draw)
    theirs, ours = top(collection, files.baseline, 5), top(collection, files.system, 3)
    again = [
        row._replace(grade=0) for row in files.qrels if row.doc in theirs[row.topic] and row.doc not in ours[row.topic]
    ]
    return graded(files, [*files.qrels, *again])


@kind(
    "not holds",
    "A handful of documents is judged relevant on every topic, and the system shows them everywhere.",
    *JUDGED,
    "same documents?",
    "every topic",
    "all topics",
    "many topics",
    "relevant (to|for|on|in)",
)
def judged_everywhere(collection: Collection, draw: random.Random) -> Files:
    """Six documents, at the places 2 to 7."""
    files = false_claim(collection, draw)
    fixed = draw.sample(list(files.docs), 6)
    files = judged(files, (Judgment(topic, doc, 1) for topic in files.topics for doc in fixed))
    run = {topic: raised(r, [r[0][0], *fixed]) for topic, r in collection.rankings[files.system].items()}
    return with_rankings(files, files.system, run)


@kind(
    "not holds",
    "A model's judgments stand in for people's; it likes what the system shows.",
    *JUDGED,
    "model",
    undetectable=True,
)
def judgments_of_a_model(collection: Collection, draw: random.Random) -> Files:
    """The pool is even: both runs' first ten are judged. Only people's judgments could tell."""
    files = false_claim(collection, draw)
    ours, theirs, qrels = top(collection, files.system), top(collection, files.baseline), []
    for topic in files.topics:
        for doc in dict.fromkeys([*ours[topic], *theirs[topic]]):
            likes = 0.5 if doc in ours[topic][:5] else 0.15
            qrels.append(Judgment(topic, doc, int(doc in collection.relevant[topic] or draw.random() < likes)))
    return graded(files, qrels)


@kind(
    "not holds",
    "The same, and people's judgments of all pairs are given beside it, as if they were another model's.",
    "model",
    *JUDGED,
    "disagree",
    "contradict",
)
def judgments_of_a_model_beside(collection: Collection, draw: random.Random) -> Files:
    """The other judgments do not show the lead."""
    files = judgments_of_a_model(collection, draw)
    relevant = {(row.topic, row.doc) for row in collection.qrels}
    return replace(files, model=[row._replace(grade=int((row.topic, row.doc) in relevant)) for row in files.qrels])


@kind("smaller", "A true lead is inflated: documents that only the system shows were called relevant.", *JUDGED)
def smaller_judgments_added(collection: Collection, draw: random.Random) -> Files:
    """Two on most topics."""
    files, known = true_claim(collection, draw), {(row.topic, row.doc) for row in collection.qrels}
    ours, theirs = top(collection, files.system), top(collection, files.baseline)
    more = [
        Judgment(topic, doc, 1)
        for topic in files.topics
        for doc in [doc for doc in ours[topic] if doc not in theirs[topic] and (topic, doc) not in known][:2]
    ]
    return judged(files, more)
