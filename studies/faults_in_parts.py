"""What does `check` say where a part of a run, or of the judgments, is at fault?

    python studies/faults_in_parts.py [--collection vaswani|cacm] [--shares 0.01 0.05 0.1 0.25 0.5] [--only NAME …]
        [--claims 3]

Two runs that are equal on average get each fault in a share of the topics, of the results or of the documents, so that
the system leads where it should not. Beside each claim stands its innocent twin: the same lead, by relevant documents
that move up a little in all topics. A cell has the words of the claims, and after a stroke those of their twins: H for
a plain HOLDS, h for one that is smaller or has an exception, - for CANNOT TELL or DOES NOT HOLD, F for FILES AT FAULT.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import numpy as np
import polars as pl

import truerank
from common import SHARED, require_shared, table
from planted.collections import read_collection
from vaswani_runs import Texts, bm25, latent

Lists = dict[str, list[str]]
Generator = np.random.Generator
SHARES = (0.01, 0.05, 0.1, 0.25, 0.5)
DEPTH = 500
LETTERS = {"HOLDS": "H", "HOLDS EXCEPT": "h", "HOLDS SMALLER": "h", "FILES AT FAULT": "F"}


class Part(NamedTuple):
    """Two runs, the relevant documents, and the part of all that a fault is planted into."""

    system: Lists
    baseline: Lists
    relevant: Mapping[str, list[str]]
    topics: list[str]
    share: float
    draw: Generator


def documents(lists: Lists) -> list[str]:
    """All that are returned."""
    return sorted({doc for docs in lists.values() for doc in docs})


def respelt(part: Part, spelling: Callable[[str], str]) -> Part:
    """A share of the baseline's ids, in all lists, is written otherwise."""
    lists = {
        topic: [spelling(doc) if part.draw.random() < part.share else doc for doc in docs]
        for topic, docs in part.baseline.items()
    }
    return part._replace(baseline=lists)


def neighbours(part: Part, lists: Mapping[str, list[str]]) -> Lists:
    """The lists, with those of the topics before for topics next to each other."""
    names = list(lists)
    at = int(part.draw.integers(1, len(names) - len(part.topics)))
    return {**lists, **{names[one]: list(lists[names[one - 1]]) for one in range(at, at + len(part.topics))}}


def sighted(part: Part, *, found: bool) -> Part:
    """The system's relevant documents stand first: all of them, or those that it found."""

    lists = dict(part.system)
    for topic in part.topics:
        first = [doc for doc in part.relevant[topic] if not found or doc in lists[topic]]
        lists[topic] = [*first, *(doc for doc in lists[topic] if doc not in first)][:DEPTH]
    return part._replace(system=lists)


def lost(part: Part) -> Part:
    """The baseline's index lacks a share of the documents."""
    gone = {doc for doc in documents(part.baseline) if part.draw.random() < part.share}
    return part._replace(baseline={topic: [doc for doc in docs if doc not in gone]
                                   for topic, docs in part.baseline.items()})  # fmt: skip


def chosen(part: Part) -> Part:
    """Of some topics, as many documents as are relevant are judged so by chance among the system's first results."""
    found = dict(part.relevant)
    for topic in part.topics:
        size = min(len(found[topic]), 15)
        found[topic] = [str(doc) for doc in part.draw.choice(part.system[topic][: 2 * size + 5], size, replace=False)]
    return part._replace(relevant=found)


def of_baseline(change: Callable[[Part, list[str]], list[str]]) -> Callable[[Part], Part]:
    """A fault of the baseline's lists for some topics."""
    return lambda part: part._replace(
        baseline={**part.baseline, **{topic: change(part, part.baseline[topic]) for topic in part.topics}}
    )


FAULTS: dict[str, Callable[[Part], Part]] = {
    "all relevant documents first": lambda part: sighted(part, found=False),
    "relevant results first": lambda part: sighted(part, found=True),
    "ids with a prefix": lambda part: respelt(part, lambda doc: f"doc_{doc}"),
    "ids with an ending": lambda part: respelt(part, lambda doc: f"{doc}.txt"),
    "zeros lost at the end of ids": lambda part: respelt(part, lambda doc: doc.rstrip("0")),
    "lists in random order": of_baseline(lambda part, docs: [str(one) for one in part.draw.permutation(docs)]),
    "first fifty in random order": of_baseline(
        lambda part, docs: [*(str(one) for one in part.draw.permutation(docs[:50])), *docs[50:]]
    ),
    "lists worst first": of_baseline(lambda part, docs: docs[::-1]),
    "first ten results missing": of_baseline(lambda part, docs: docs[10:]),
    "lists cut to three": of_baseline(lambda part, docs: docs[:3]),
    "no results": of_baseline(lambda part, docs: []),
    "documents lost": lost,
    "results of the topic before": lambda part: part._replace(baseline=neighbours(part, part.baseline)),
    "one list for all": of_baseline(lambda part, docs: next(iter(part.baseline.values()))),
    "results of no topic": of_baseline(
        lambda part, docs: [str(one) for one in part.draw.choice(documents(part.baseline), DEPTH, replace=False)]
    ),
    "judgments of the topic before": lambda part: part._replace(relevant=neighbours(part, part.relevant)),
    "judgments of the system's first results": chosen,
}


def base(name: str) -> tuple[list[tuple[Lists, Lists]], Mapping[str, list[str]]]:
    """Pairs of runs, and relevant documents, of a collection; ids are like those of arXiv."""
    from sklearn.feature_extraction.text import CountVectorizer

    source = read_collection(name, SHARED / "collections" / name, seed=1)
    docs = [(doc, text) for doc, text in source.docs if isinstance(text, str) and doc not in source.harmless]
    numbers = np.random.default_rng(1).choice(100_000, len(docs), replace=False)
    ids = {doc: f"26{number % 12 + 1:02}.{number:05}" for (doc, _), number in zip(docs, numbers, strict=True)}
    relevant: Lists = {}
    for topic, doc, grade in (row[:3] for row in source.qrels):
        if grade == "1" and doc in ids:
            relevant.setdefault(topic, []).append(ids[doc])
    topics = [(topic, text) for topic, text in source.topics if topic in relevant]

    def counted(vectorizer: CountVectorizer) -> Texts:
        counts = vectorizer.fit_transform(text for _, text in docs)
        asked = vectorizer.transform(text for _, text in topics)
        return Texts(counts.tocsr(), [*ids.values()], asked.tocsr(), [topic for topic, _ in topics])

    texts = counted(CountVectorizer(stop_words="english"))
    letters = counted(CountVectorizer(analyzer="char_wb", ngram_range=(4, 4)))

    def lists(scores: np.ndarray) -> Lists:
        best = np.argsort(-scores, axis=1, kind="stable")[:, :DEPTH]
        return {topic: [texts.doc_ids[at] for at in row] for topic, row in zip(texts.topic_ids, best, strict=True)}

    okapi, space = bm25(texts, texts.topics, 0.9, 0.4), latent(texts, 150, 7)
    mixed = [lists(space / space.std() + weight * okapi / okapi.std()) for weight in (1.0, 1.1)]
    # Runs that are much alike, and two that differ in kind.
    others = lists(bm25(texts, texts.topics, 1.2, 0.6)), lists(bm25(letters, letters.topics, 0.9, 0.4))
    return [(lists(okapi), others[0]), (mixed[0], mixed[1]), (lists(okapi), others[1])], relevant


def frame(lists: Mapping[str, list[str]], *, judged: bool = False) -> pl.DataFrame:
    """A run, or judgments."""
    rows = [(topic, doc, 1 if judged else -float(at)) for topic, docs in lists.items() for at, doc in enumerate(docs)]
    return pl.DataFrame(rows, schema=["topic_id", "doc_id", "relevance" if judged else "score"], orient="row")


def lead(system: Lists, baseline: Lists, relevant: Mapping[str, list[str]]) -> float:
    """By how much nDCG@10 of the system is higher."""
    found = truerank.evaluate(frame(relevant, judged=True), {"s": frame(system), "b": frame(baseline)}, "nDCG@10")
    return float(np.mean(found.of("s", "nDCG@10") - found.of("b", "nDCG@10")))


def twin(system: Lists, baseline: Lists, relevant: Mapping[str, list[str]], size: float, seed: int) -> Lists:
    """A system with that lead: its relevant documents stand higher by random shares of their places."""
    low, high, lists = 0.0, 1.0, system
    for _ in range(12):
        most, draw = (low + high) / 2, np.random.default_rng(seed)
        lists = {}
        for topic, docs in system.items():
            rises, good = draw.random(len(docs)) ** 0.5, frozenset(relevant[topic])
            moved = most * rises * np.array([doc in good for doc in docs])
            places = (np.arange(len(docs)) + 0.5) * (1 - moved)
            lists[topic] = [docs[at] for at in np.argsort(places, kind="stable")]
        low, high = (most, high) if lead(lists, baseline, relevant) < size else (low, most)
    return lists


def word(system: Lists, baseline: Lists, relevant: Mapping[str, list[str]]) -> str:
    """The letter of a claim."""
    runs = {"system": frame(system), "baseline": frame(baseline)}
    found = truerank.check(qrels=frame(relevant, judged=True), run=runs, system="system", baseline="baseline")
    return LETTERS.get(found.conclusion.word, "-")


def cells(
    name: str, pairs: list[tuple[Lists, Lists]], relevant: Mapping[str, list[str]], given: argparse.Namespace
) -> Iterator[str]:
    """The words of one fault by share."""
    for share in given.shares:
        words, twins = "", ""
        for seed in range(given.claims):
            system, baseline = pairs[seed % len(pairs)]
            draw, topics = np.random.default_rng(seed), list(relevant)
            some = [topics[at] for at in draw.choice(len(topics), max(1, round(share * len(topics))), replace=False)]
            part = FAULTS[name](Part(system, baseline, relevant, some, share, draw))
            size = lead(part.system, part.baseline, part.relevant)
            words += word(part.system, part.baseline, part.relevant)
            twins += word(twin(system, baseline, relevant, size, seed), baseline, relevant)
        yield f"{words} / {twins}"


def main() -> None:
    """Plants, checks, and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--collection", choices=("vaswani", "cacm"), default="vaswani")
    parser.add_argument("--shares", nargs="+", type=float, default=SHARES)
    parser.add_argument("--only", nargs="*", default=[], help="parts of the names of faults")
    parser.add_argument("--claims", type=int, default=3)
    given = parser.parse_args()
    require_shared()
    names = [name for name in FAULTS if not given.only or any(part in name for part in given.only)]
    pairs, relevant = base(given.collection)
    rows = [(name, *cells(name, pairs, relevant, given)) for name in names]
    print(table(("fault", *(f"{share:.0%}" for share in given.shares)), rows))


if __name__ == "__main__":
    main()
