"""KNRM, PACRR and DUET trained on Vaswani and CACM by cross-validation, against the same models on permuted labels.

    python studies/training.py [--instances 1000] [--seeds 5] [--models knrm,pacrr,duet] [--collections vaswani,cacm]

Each fold's topics are reranked by a model that was trained on the other folds: the 100 best documents of BM25, whose
relevant ones are the positives, and whose others are the negatives. Under permuted labels the same documents get the
same number of labels at random. Word vectors are those of the packaged MiniLM's word pieces.
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from common import SHARED, require_shared, table
from truerank import lexical, measures
from truerank.rankers.base import Pair
from truerank_lab.rankers.duet import Duet
from truerank_lab.rankers.knrm import Knrm
from truerank_lab.rankers.pacrr import Pacrr
from truerank_lab.rankers.recipes import RECIPES
from truerank_lab.rankers.small_ranker import SmallRanker
from truerank_lab.rankers.vocabulary import Vocabulary, open_vocabulary
from truerank.sources import read_documents, read_qrels_frame, read_topics
from truerank.sources.instances import Instance

SOURCES = {"vaswani": ("docs.trec.gz", "topics.trec.txt"), "cacm": ("cacm.tar.gz", "topics.txt")}
MODELS: Mapping[str, tuple[type[SmallRanker], dict[str, Any]]] = {
    "knrm": (Knrm, {"max_query": 30, "max_document": 120}),
    "pacrr": (Pacrr, {"max_query": 30, "max_document": 120}),
    "duet": (Duet, {"max_query": 30, "max_document": 120, "pool": 20}),
}
FOLDS = 5
DEPTH = 100
MEASURE = "nDCG@10"


class Collection(NamedTuple):
    """What is trained and tested on: texts by id, judgments, and the documents of BM25 by topic, the best first."""

    topics: dict[str, str]
    documents: dict[str, str]
    qrels: pl.DataFrame
    bm25: pl.DataFrame
    candidates: dict[str, list[str]]
    relevant: dict[str, set[str]]
    vocabulary: Vocabulary


def read(name: str, folder: Path) -> Collection:
    """Reads a collection and searches it with BM25."""
    source = SHARED / "collections" / name
    docs, topic_file = (str(source / part) for part in SOURCES[name])
    qrels = read_qrels_frame(str(source / "qrels.txt"))
    judged = set(qrels["topic_id"])
    topics = {one.topic_id: one.title or one.description for one in read_topics(topic_file).topics}
    topics = {topic: text for topic, text in topics.items() if topic in judged}
    documents = {document.doc_id: document.text for document in read_documents(docs)}
    lexical.build_index(docs, folder / name)
    queries = [lexical.TopicQuery(topic, text) for topic, text in topics.items()]
    found = lexical.search(
        lexical.open_index(folder / name), queries, lexical.model_of("anserini", "bm25", {}), k=DEPTH
    )
    candidates = {
        str(key[0]): list(part["doc_id"]) for key, part in found.run.group_by("topic_id", maintain_order=True)
    }
    relevant: dict[str, set[str]] = {topic: set() for topic in topics}
    for topic, document, grade in qrels.select("topic_id", "doc_id", "relevance").iter_rows():
        if grade > 0 and topic in relevant and document in documents:
            relevant[topic].add(document)
    vocabulary = open_vocabulary("packaged", documents.values())
    return Collection(topics, documents, qrels, found.run, candidates, relevant, vocabulary)


def instances(data: Collection, topics: Sequence[str], count: int, seed: int, *, permuted: bool) -> list[Instance]:
    """Instances of these topics: topics in turn, a relevant document of BM25's and one that is not at random."""
    draw = random.Random(seed)
    pools = []
    for topic in topics:
        pool = data.candidates.get(topic, [])
        labels = [document in data.relevant[topic] for document in pool]
        if permuted:
            draw.shuffle(labels)
        chosen = [document for document, label in zip(pool, labels, strict=True) if label]
        others = [document for document, label in zip(pool, labels, strict=True) if not label]
        if chosen and others:
            pools.append((topic, chosen, others))
    made = []
    for number in range(count):
        topic, chosen, others = pools[number % len(pools)]
        good, bad = draw.choice(chosen), draw.choice(others)
        texts = data.documents
        made.append(Instance(topic, data.topics[topic], good, texts[good], bad, texts[bad]))
    return made


def reranked(data: Collection, model: str, count: int, seed: int, *, permuted: bool) -> pl.DataFrame:
    """A run over all topics, each by the model of its fold."""
    kind, settings = MODELS[model]
    parts = []
    folds = measures.folds(sorted(data.topics), FOLDS, seed=0)
    for tested in folds:
        trained = [topic for fold in folds if fold is not tested for topic in fold]
        ranker = kind.create(data.vocabulary, seed=seed, **settings)
        with tempfile.TemporaryDirectory() as folder:
            given = instances(data, trained, count, seed, permuted=permuted)
            ranker.fit(given, RECIPES["truerank"], seed=seed, folder=Path(folder))
        rows = [(topic, document) for topic in tested for document in data.candidates.get(topic, [])]
        scores = ranker.score([Pair(data.topics[topic], data.documents[document]) for topic, document in rows])
        frame = pl.DataFrame(rows, schema=["topic_id", "doc_id"], orient="row")
        parts.append(frame.with_columns(score=pl.Series(scores.astype(np.float64))))
    return pl.concat(parts)


def main() -> None:
    """Prints one table for each collection."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--instances", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--collections", default=",".join(SOURCES))
    parser.add_argument("--workers", type=int, default=2, help="processes; each trains with one thread")
    given = parser.parse_args()
    require_shared()
    context = multiprocessing.get_context("spawn")
    for name in given.collections.split(","):
        with (
            tempfile.TemporaryDirectory() as folder,
            ProcessPoolExecutor(given.workers, mp_context=context, initializer=open_worker, initargs=(name,)) as pool,
        ):
            report(name, read(name, Path(folder)), given.models.split(","), (given.instances, given.seeds), pool)


worker: list[Collection] = []


def open_worker(name: str) -> None:
    """Reads the collection once in each process."""
    import torch

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        worker.append(read(name, Path(folder)))


def one_run(model: str, count: int, seed: int, permuted: bool) -> pl.DataFrame:
    """What a worker does."""
    return reranked(worker[0], model, count, seed, permuted=permuted)


def report(
    name: str, data: Collection, models: Sequence[str], size: tuple[int, int], pool: ProcessPoolExecutor
) -> None:
    """Prints what the models reach on one collection; `size` is the number of instances and of seeds."""
    count, seeds = size
    topics = pl.DataFrame({"topic_id": list(data.topics)})
    qrels = data.qrels.join(topics, on="topic_id", how="semi")
    policy = measures.Policy(ties="ascending")
    first = measures.evaluate(qrels, {"bm25": data.bm25.select("topic_id", "doc_id", "score")}, MEASURE, policy)
    baseline = first.values[0, 0]
    print(f"\n{name}: {MEASURE} over {len(baseline)} topics, BM25 {baseline.mean():.4f}; {count} instances a fold")
    rows = []
    for model in models:
        started = time.monotonic()
        waiting = {
            f"{kind} {seed}": pool.submit(one_run, model, count, seed, kind == "permuted")
            for seed in range(1, seeds + 1)
            for kind in ("trained", "permuted")
        }
        runs = {key: found.result() for key, found in waiting.items()}
        values = measures.evaluate(qrels, runs, MEASURE, policy)
        by_seed = {
            kind: np.stack([values.values[values.runs.index(f"{kind} {seed}"), 0] for seed in range(1, seeds + 1)])
            for kind in ("trained", "permuted")
        }
        trained, permuted = (by_seed[kind].mean(axis=0) for kind in ("trained", "permuted"))
        p = measures.difference_test(trained, permuted).p
        rows.append(
            (
                model,
                f"{trained.mean():.4f}",
                " ".join(f"{value:.3f}" for value in by_seed["trained"].mean(axis=1)),
                f"{permuted.mean():.4f}",
                shown(trained, permuted),
                f"{p:.2g}",
                shown(trained, baseline),
                f"{time.monotonic() - started:.0f}",
            )
        )
        print(f"{model} done", file=sys.stderr, flush=True)
    head = ("model", "mean", "by seed", "permuted labels", "difference", "p", "difference to BM25", "seconds")
    print(table(head, rows), flush=True)


def shown(one: np.ndarray, other: np.ndarray) -> str:
    """The difference of the means with its 95% interval (paired t over topics)."""
    gap = measures.difference_interval(one, other)
    return f"{gap.mean:+.4f} [{gap.low:+.4f}, {gap.high:+.4f}]"


if __name__ == "__main__":
    main()
