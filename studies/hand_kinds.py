"""What a kind of fault is, and the registry that `hand_claims.py` plants from. Written without sight of the rules."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from hand_collection import Collection, Files, Judgment, Rankings, Row, rows

#: The honest answer: the lead is not true as claimed; the files are broken; the lead is true, but smaller; a true lead
#: does not show; or nothing is wrong.
Honest = Literal["not holds", "files", "smaller", "hidden", "same"]
Planter = Callable[[Collection, random.Random], Files]


@dataclass(frozen=True)
class Kind:
    """A kind of fault.

    Attributes:
        done: what was done, for a reader.
        words: regular expressions, one of which a headline that names the cause matches.
        undetectable: nothing in the files says so; what the tool answers is counted apart.
    """

    name: str
    done: str
    words: tuple[str, ...]
    honest: Honest
    plant: Planter
    undetectable: bool = False


KINDS: dict[str, Kind] = {}

#: Words of causes that several kinds share.
IDS = (
    r"\bids?\b",
    "identifier",
    "no documents? of",
    "do(es)? not exist",
    "not in the (documents|collection|corpus)",
    "unknown document",
    "no such document",
)
NUMBERING = (
    "topic (ids?|number)",
    "other topics?",
    "another topic",
    "shift",
    "number(s|ed|ing)",
    "misaligned",
    "permut",
)
SCORES = (r"\bscores?\b", r"\bties?\b", "tied", "order of", "reversed", r"\brank")
JUDGED = ("judg", "qrels", "pool", "assess")
COPIES = ("cop(y|ies|ied)", "duplicat", "same text", "identical", "repeat", "near-dup")
MISSING = ("miss", "lack", "no result", "without result", "empty rank", "fewer", "cut off", "truncat", "incomplete")


def kind(honest: Honest, done: str, *words: str, undetectable: bool = False) -> Callable[[Planter], Planter]:
    """Registers a function as a kind, by its name."""

    def register(plant: Planter) -> Planter:
        name = plant.__name__
        KINDS[name] = Kind(name, done, words, honest, plant, undetectable)
        return plant

    return register


def with_run(files: Files, name: str, printed: Iterable[Row]) -> Files:
    """The files with another run under a name."""
    return replace(files, runs={**files.runs, name: list(printed)})


def with_rankings(files: Files, name: str, run: Rankings) -> Files:
    """The files with other rankings under a name."""
    return with_run(files, name, rows(run))


def scored(docs: Sequence[str]) -> list[tuple[str, float]]:
    """A ranking of documents in their order, with scores that fall as those of rankers do."""
    return [(doc, round(12.0 / (1 + 0.15 * place) + 0.001 * (len(docs) - place), 6)) for place, doc in enumerate(docs)]


def raised(ranking: Sequence[tuple[str, float]], first: Iterable[str]) -> list[tuple[str, float]]:
    """The ranking with some documents moved to its top; the list of scores stays, so that no score looks odd."""
    top = list(dict.fromkeys(first))
    order = [*top, *(doc for doc, _ in ranking if doc not in set(top))][: max(len(ranking), len(top))]
    values = [score for _, score in ranking] or [1.0]
    values += [values[-1] - 0.01 * (at + 1) for at in range(len(order) - len(values))]
    return list(zip(order, values, strict=False))


def some(draw: random.Random, values: Iterable[str], share: float) -> list[str]:
    """A share of values, in their order."""
    every = list(values)
    kept = set(draw.sample(every, max(1, round(share * len(every)))))
    return [value for value in every if value in kept]


def judged(files: Files, more: Iterable[Judgment]) -> Files:
    """The files with more judgments, which replace those of the same pairs."""
    return replace(files, qrels=list({(row.topic, row.doc): row for row in (*files.qrels, *more)}.values()))


def renamed(files: Files, ids: Callable[[str], str]) -> Files:
    """All documents with other ids, everywhere alike."""
    return replace(
        files,
        docs={ids(doc): text for doc, text in files.docs.items()},
        qrels=[row._replace(doc=ids(row.doc)) for row in files.qrels],
        runs={name: [row._replace(doc=ids(row.doc)) for row in run] for name, run in files.runs.items()},
    )


def false_claim(collection: Collection, draw: random.Random) -> Files:
    """Clean files of a claim that is not true; half of them with judgments of relevant documents only."""
    return collection.files(*collection.no_better(draw), pooled=draw.random() < 0.5)


def true_claim(collection: Collection, draw: random.Random) -> Files:
    """Clean files of a claim that is true."""
    return collection.files(*collection.better(draw), pooled=draw.random() < 0.5)


def only(files: Files, topics: Iterable[str]) -> Files:
    """The files with these topics alone, in topics, judgments and runs."""
    kept = set(topics)
    return replace(
        files,
        topics={key: text for key, text in files.topics.items() if key in kept},
        qrels=[row for row in files.qrels if row.topic in kept],
        runs={name: [row for row in run if row.topic in kept] for name, run in files.runs.items()},
    )


def docs_of(ranking: Sequence[tuple[str, float]], depth: int = 10) -> list[str]:
    """The first documents of a ranking."""
    return [doc for doc, _ in ranking[:depth]]


def gains(collection: Collection, files: Files) -> Mapping[str, float]:
    """The claimed lead by topic, in the clean data."""
    system, baseline = collection.scores[files.system], collection.scores[files.baseline]
    return {topic: system[topic] - baseline[topic] for topic in system}
