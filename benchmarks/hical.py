"""What active judging costs and finds.

    python benchmarks/hical.py --sizes 10000,100000,1000000    # milliseconds of a step: re-train, and rank everything
    python benchmarks/hical.py --recall vaswani --recall cacm  # recall after 2R + 100 judgments, at equal cost

A step is what happens between two batches: the model is trained on the judgments as they stand and on 100 new random
documents, and all documents are ranked. Generated documents draw their words by Zipf's law, so that a few words stand
in most documents and most words in few: about 100 different ones of 120, as in a short web page.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np
import polars as pl

from shared_data import SHARED, peak_memory, require_shared, table
from truerank.audits.pool import ActiveLearner, Features, LearnerOptions, adaptive_pool, depth_pool, trace
from truerank.audits.pool.active import rank
from truerank.audits.pool.features import TermCounts, write_features
from truerank.audits.pool.pools import first_documents
from truerank.lexical import build_index, model_of, search
from truerank.sources import read_documents, read_qrels, read_topics
from truerank.work.artifacts import digest

VOCABULARY = 400_000
PARTS = 1 << 22
#: Documents of a subject.
OF_SUBJECT = 250
CHUNK = 1 << 15


class GeneratedCollection:
    """Documents of made-up words, the same whenever they are asked for, chunk after chunk.

    Args:
        count: of the documents.
        words: of each document.
        seed: of all that is drawn.
    """

    def __init__(self, count: int, words: int = 120, seed: int = 11) -> None:
        self.count, self.length, self.seed = count, words, seed
        draw = np.random.default_rng(seed)
        # Zipf with a shift, the words' numbers mixed so that frequency says nothing about the column.
        ranks = 1 / (np.arange(VOCABULARY) + 2.7)
        names = draw.permutation(VOCABULARY).astype(np.int32)
        # The word of each of many equal parts of the whole: drawing one is drawing a number.
        self._parts = names[np.searchsorted(np.cumsum(ranks / ranks.sum()), (np.arange(PARTS) + 0.5) / PARTS)]
        self.subjects = max(1, count // OF_SUBJECT)
        self._own = names[draw.integers(VOCABULARY // 100, VOCABULARY, (self.subjects, 40))]
        # Words of letters only, so that a query's words are found again; in the order of their numbers.
        alphabet = "abcdefghij"
        self.words = [f"x{''.join(alphabet[int(digit)] for digit in f'{number:06d}')}x" for number in range(VOCABULARY)]

    @cached_property
    def ids(self) -> list[str]:
        """Of the documents."""
        return [f"d{number:08d}" for number in range(self.count)]

    def query(self, subject: int) -> str:
        """Three words of a subject."""
        return " ".join(self.words[number] for number in self._own[subject, :3])

    def about(self) -> np.ndarray:
        """The subject of each document, shape (documents,)."""
        return np.concatenate([self._drawn(first)[0] for first in range(0, self.count, CHUNK)])

    def terms(self) -> Iterator[np.ndarray]:
        """The words of the documents of each chunk, shape (documents, words)."""
        for first in range(0, self.count, CHUNK):
            subjects, draw = self._drawn(first)
            size = len(subjects)
            found = self._parts[draw.integers(0, PARTS, (size, self.length), dtype=np.int32)]
            # A tenth of a document, by chance, is about its subject.
            tenth = self.length // 10
            chosen = self._own[subjects[:, None], draw.integers(0, 40, (size, tenth))]
            found[:, :tenth] = np.where(draw.random((size, tenth)) < 0.6, chosen, found[:, :tenth])
            yield found

    def counts(self) -> Iterator[TermCounts]:
        """The same, counted."""
        for terms in self.terms():
            terms.sort(axis=1)
            starts = np.flatnonzero(np.diff(terms, axis=1, prepend=-1))
            sizes = np.bincount(starts // self.length, minlength=len(terms))
            counts = np.diff(np.append(starts, terms.size)).astype(np.int32)
            yield TermCounts(sizes, terms.ravel()[starts], counts)

    def frequency(self) -> np.ndarray:
        """How many documents hold each word, shape (words,)."""
        found = np.zeros(VOCABULARY, np.int64)
        for block in self.counts():
            found += np.bincount(block.terms, minlength=VOCABULARY)
        return found

    def store(self, folder: Path) -> Features:
        """The features in files."""
        return write_features(folder, self.ids, self.words, self.frequency(), self.counts())

    def documents(self) -> Iterator[tuple[str, str]]:
        """Ids and texts."""
        ids = iter(self.ids)
        for terms in self.terms():
            for row in terms.tolist():
                yield next(ids), " ".join(self.words[number] for number in row)

    def _drawn(self, first: int) -> tuple[np.ndarray, np.random.Generator]:
        draw = np.random.default_rng([self.seed, first])
        return draw.integers(0, self.subjects, min(CHUNK, self.count - first)), draw


def step_times(size: int, steps: int, folder: Path) -> list[object]:
    """One row of the table of times."""
    began = time.process_time()
    generated = GeneratedCollection(size)
    features, subjects = generated.store(folder), generated.about()
    made = time.process_time() - began
    cells: list[object] = [f"{size:,}", f"{len(features.columns) / size:.0f}", f"{len(features.terms):,}"]
    for judged_count in (200, 500, 1000, 2500):
        trained, ranked, whole = [], [], []
        learner = ActiveLearner(features, "t0", generated.query(0), seed=0)
        inside = np.flatnonzero(subjects == 0)
        outside = np.random.default_rng(3).choice(np.flatnonzero(subjects != 0), judged_count, replace=False)
        relevant = inside[: min(len(inside) // 2, judged_count // 3)]
        rows = np.concatenate([relevant, outside])[:judged_count]
        grades = np.isin(rows, relevant).astype(np.int64)
        for step in range(steps):
            began = time.process_time()
            query = learner.query(rows, grades, 10)
            middle = time.process_time()
            (chosen,) = rank(features, [query])
            ended = time.process_time()
            # The first training starts cold; afterwards a batch of ten is added each time.
            if step:
                trained.append(middle - began)
                ranked.append(ended - middle)
                whole.append(ended - began)
            rows = np.concatenate([rows, chosen])
            grades = np.concatenate([grades, (subjects[chosen] == 0).astype(np.int64)])
        cells.append(f"{1000 * median(trained):.1f} + {1000 * median(ranked):.1f}")
    peak = peak_memory() / 2**10
    return [*cells, f"{features.weights.nbytes / 2**30 * 4:.2f} GB", f"{peak:.2f} GB", f"{made:.0f} s"]


def collection(name: str) -> tuple[str, str, str]:
    """Documents, topics and judgments of a real collection."""
    folder = SHARED / "collections" / name
    files = {"vaswani": ("docs.trec.gz", "topics.trec.txt"), "cacm": ("cacm.tar.gz", "topics.txt")}[name]
    return str(folder / files[0]), str(folder / files[1]), str(folder / "qrels.txt")


def runs_of(docs: str, topics: str) -> dict[str, pl.DataFrame]:
    """Five runs by models that differ, for the pools."""
    with tempfile.TemporaryDirectory() as folder:
        index = build_index(docs, Path(folder) / "index")
        models = ("bm25", "ql", "rm3", "axiomatic", "prf")
        return {name: search(index, topics, model_of("anserini", name), k=1000).run for name in models}


class Case(NamedTuple):
    """A topic with its judgments and what a comparison may cost."""

    topic: str
    query: str
    grades: dict[str, int]
    cost: int


def orders(features: Features, runs: dict[str, pl.DataFrame], case: Case, seed: int) -> Iterator[tuple[str, list[str]]]:
    """What each way of choosing judges first, by name."""
    topic, query, grades, cost = case
    firsts = {name: first_documents(run.filter(pl.col("topic_id") == topic)) for name, run in runs.items()}
    rankings = {name: found["doc_id"].to_list() for name, found in firsts.items()}
    pool = depth_pool({name: run.filter(pl.col("topic_id") == topic) for name, run in runs.items()}, 10)[
        "doc_id"
    ].to_list()

    def judge(doc_id: str) -> int:
        return grades.get(doc_id, 0)

    yield (
        "pool of depth 10, then HiCAL",
        list(trace(features, topic, query, pool, judge, length=cost, seed=seed).doc_ids),
    )
    yield (
        "HiCAL from the query alone (BMI)",
        list(trace(features, topic, query, [], judge, length=cost, seed=seed).doc_ids),
    )
    smooth = LearnerOptions(regularisation=1e-2)
    stronger = trace(features, topic, query, pool, judge, length=cost, seed=seed, options=smooth)
    yield "pool of depth 10, then HiCAL with λ = 0.01", list(stronger.doc_ids)
    for method in ("maxmean", "move-to-front"):
        yield method, list(adaptive_pool(rankings, judge, cost, method=method, seed=seed, topic_id=topic).doc_ids)
    places = pl.concat(list(firsts.values())).group_by("doc_id").agg(pl.col("place").min()).sort("place", "doc_id")
    yield "depth pool of that size", places["doc_id"].to_list()
    draw = np.random.default_rng([seed, int(digest(topic)[:8], 16)])
    union = places["doc_id"].sort().to_list()
    yield "at random from all that the runs retrieved", [union[place] for place in draw.permutation(len(union))]
    yield "at random from the collection", [features.doc_ids[row] for row in draw.permutation(len(features))]


def print_recall(name: str, seeds: int) -> None:
    """The share of the relevant documents found with 2R + 100 judgments, the mean over topics and seeds."""
    docs, topics, qrels = collection(name)
    features = Features.of_documents(read_documents(docs))
    grades: dict[str, dict[str, int]] = {}
    for qrel in read_qrels(qrels):
        grades.setdefault(qrel.topic_id, {})[qrel.doc_id] = qrel.relevance
    runs = runs_of(docs, topics)
    found: dict[str, list[float]] = {}
    costs = []
    for topic in read_topics(topics).topics:
        relevant = {doc_id for doc_id, grade in grades.get(topic.topic_id, {}).items() if grade > 0}
        if not relevant:
            continue
        cost = 2 * len(relevant) + 100
        costs.append(cost)
        case = Case(topic.topic_id, topic.title, grades[topic.topic_id], cost)
        for seed in range(seeds):
            for way, order in orders(features, runs, case, seed):
                found.setdefault(way, []).append(len(relevant & set(order[:cost])) / len(relevant))
    rows = [(way, f"{np.mean(values):.3f}", f"{np.min(values):.3f}") for way, values in found.items()]
    print(
        f"\n{name}: {len(costs)} topics, {len(features):,} documents, {np.mean(costs):.0f} judgments a topic, "
        f"{seeds} seeds\n"
    )
    print(table(("judged", "recall", "worst topic and seed"), rows))


def print_times(sizes: Sequence[int], steps: int) -> None:
    """Milliseconds of a step by the size of the collection and the number of judgments."""
    header = ("documents", "terms each", "terms", *(f"{count} judged" for count in (200, 500, 1000, 2500)))
    with tempfile.TemporaryDirectory() as folder:
        rows = [step_times(size, steps, Path(folder) / str(size)) for size in sizes]
    print("\nmilliseconds of processor time of a step: training + ranking all documents\n")
    print(table((*header, "features", "peak memory with mapped pages", "generated in"), rows))


def main() -> None:
    """Prints the tables that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="")
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--recall", action="append", default=[])
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    if arguments.sizes:
        print_times([int(size) for size in arguments.sizes.split(",")], arguments.steps)
    for name in arguments.recall:
        require_shared()
        print_recall(name, arguments.seeds)


if __name__ == "__main__":
    main()
