"""Changes that must not move the word of a check, for `hand_claims.py`. Written without sight of the rules.

Half of the claims are true and half are false.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from hand_collection import Collection, Files, Judgment, rows
from hand_kinds import false_claim, kind, true_claim

T = TypeVar("T")


def reordered(draw: random.Random, values: Sequence[T]) -> list[T]:
    """The values in another order."""
    return draw.sample(values, len(values))


def either(collection: Collection, draw: random.Random) -> Files:
    """A true claim or a false one."""
    return draw.choice((false_claim, true_claim))(collection, draw)


@kind("same", "Lines of all files are in another order.")
def same_lines_reordered(collection: Collection, draw: random.Random) -> Files:
    """Rows of runs keep their scores and ranks."""
    files, mixed = either(collection, draw), partial(reordered, draw)
    return replace(
        files,
        topics=dict(mixed(list(files.topics.items()))),
        docs=dict(mixed(list(files.docs.items()))),
        qrels=mixed(list(files.qrels)),
        runs={name: mixed(list(run)) for name, run in files.runs.items()},
    )


@kind("same", "The last column of the runs says something else.")
def same_tags(collection: Collection, draw: random.Random) -> Files:
    """All the same, or each another."""
    files, alike = either(collection, draw), draw.random() < 0.5
    return replace(files, tags={name: "run" if alike else f"tag-{draw.randrange(99)}" for name in files.runs})


@kind("same", "All files are compressed.")
def same_gzip(collection: Collection, draw: random.Random) -> Files:
    """With gzip."""
    return replace(either(collection, draw), gzipped=True)


@kind("same", "Lines end as on Windows.")
def same_crlf(collection: Collection, draw: random.Random) -> Files:
    """In all files."""
    return replace(either(collection, draw), crlf=True)


@kind("same", "Two more runs are given, which the claim does not name.")
def same_more_runs(collection: Collection, draw: random.Random) -> Files:
    """Means of two others."""
    files = either(collection, draw)
    more = {}
    for _ in range(2):
        a, b = draw.sample(sorted(collection.rankings), 2)
        both = {}
        for topic in files.topics:
            places: dict[str, float] = {}
            for ranking in (collection.rankings[a][topic], collection.rankings[b][topic]):
                for place, (doc, _) in enumerate(ranking):
                    places[doc] = places.get(doc, 0.0) + 1 / (60 + place)
            both[topic] = sorted(((doc, round(s, 6)) for doc, s in places.items()), key=lambda pair: -pair[1])[:200]
        more[f"fused-{a}-{b}"] = rows(both)
    return replace(files, runs={**files.runs, **more})


@kind("same", "The scores of the two runs are on other scales; their order is the same.")
def same_scores_rescaled(collection: Collection, draw: random.Random) -> Files:
    """A logarithm, or a straight line."""
    files, runs = either(collection, draw), {}
    for name, run in files.runs.items():
        way = draw.randrange(3)
        made = []
        for row in run:
            score = float(row.score)
            new = (1000 * score - 5000, score / 64, math.copysign(math.log1p(abs(score)), score))[way]
            made.append(row._replace(score=repr(new)))
        runs[name] = made
    return replace(files, runs=runs)


@kind("same", "Random documents were judged irrelevant on all topics.")
def same_more_zeros(collection: Collection, draw: random.Random) -> Files:
    """Twenty a topic, none of them relevant."""
    files, docs = either(collection, draw), list(collection.docs)
    more = [
        Judgment(topic, doc, 0)
        for topic in files.topics
        for doc in draw.sample(docs, 20)
        if doc not in collection.relevant[topic]
    ]
    return replace(files, qrels=[*files.qrels, *more])


@kind("same", "The topics' file has more topics, which nobody judged and no run has.")
def same_more_topics(collection: Collection, draw: random.Random) -> Files:
    """Five, as the files of some tracks have many."""
    files = either(collection, draw)
    more = {f"{7000 + at}": text for at, text in enumerate(("sea temperature", "old maps", "bread", "snow", "ferries"))}
    return replace(files, topics={**files.topics, **more})


@kind("same", "Ranks are counted from 0.")
def same_ranks_from_zero(collection: Collection, draw: random.Random) -> Files:
    """In all runs."""
    files = either(collection, draw)
    return replace(
        files, runs={name: [row._replace(rank=row.rank - 1) for row in run] for name, run in files.runs.items()}
    )


@kind("same", "Nothing was done.")
def same_clean(collection: Collection, draw: random.Random) -> Files:
    """A plain HOLDS of the true half is right, one of the false half is not."""
    return either(collection, draw)
