"""monoBERT begun from the packaged MiniLM encoder, against BM25: how it grows with what it is trained on.

    python studies/monobert.py [vaswani|cacm] [--from-documents 4000] [--steps 0,500,1000,2000] [--seeds 1]

The encoder has never seen a query beside a document, and its head is drawn from a seed. It learns in two stages. First
from the collection alone: the first words of a document are the query, the rest of it is relevant, and one of BM25's
best other documents is not. That is done once a seed. Then from judgments: for each of five folds over the topics, from
instances of the other folds, of BM25's 100 best documents. After each number of instances the fold's topics are
reranked, so that the table is a learning curve: the first row has seen no judgment. The distance to BM25 stands with
its 95% interval (paired t over topics; values are means over seeds).
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl

from common import SHARED, require_shared, table
from training import DEPTH, FOLDS, MEASURE, SOURCES, Collection, instances, read, shown
from truerank import lexical, measures
from truerank.rankers.base import Pair, open_ranker
from truerank.rankers.monobert import MonoBert
from truerank_lab.rankers.recipes import RECIPES
from truerank.sources import read_documents
from truerank.sources.instances import Instance

#: First words of a document that become its query where it has no title, and how many it must have beyond them.
QUERY_WORDS, REST = 8, 12
#: One of the best documents of BM25 for a made query is its non-relevant one.
HARD = 20


def from_documents(docs: str, index: Path, count: int, seed: int) -> list[Instance]:
    """Instances made of documents alone."""
    made = []
    for document in read_documents(docs):
        words = document.text.split()
        cut = len(document.title.split()) or QUERY_WORDS
        if len(words) >= cut + REST:
            made.append((document.doc_id, " ".join(words[:cut]), " ".join(words[cut:])))
    draw = random.Random(seed)
    draw.shuffle(made)
    made = made[:count]
    queries = [lexical.TopicQuery(doc, query) for doc, query, _ in made]
    run = lexical.search(lexical.open_index(index), queries, lexical.model_of("anserini", "bm25", {}), k=HARD).run
    others = {str(key[0]): list(part["doc_id"]) for key, part in run.group_by("topic_id", maintain_order=True)}
    texts = {document.doc_id: document.text for document in read_documents(docs)}
    found = []
    for doc, query, rest in made:
        candidates = [other for other in others.get(doc, []) if other != doc]
        if candidates:
            wrong = draw.choice(candidates)
            # The other document loses its first words too: it must not be known by having them.
            found.append(Instance(doc, query, doc, rest, wrong, " ".join(texts[wrong].split()[QUERY_WORDS:])))
    return found


def curve(
    data: Collection, start: Path, steps: Sequence[int], seed: int, rate: float
) -> Iterator[tuple[int, pl.DataFrame]]:
    """Runs over all topics after each number of instances."""
    folds = measures.folds(sorted(data.topics), FOLDS, seed=0)
    parts: dict[int, list[pl.DataFrame]] = {step: [] for step in steps}
    recipe = RECIPES["monobert"].changed({"lr": rate, "batch": 16, "accumulate": 4, "schedule": "constant"})
    for tested in folds:
        trained = [topic for fold in folds if fold is not tested for topic in fold]
        given = instances(data, trained, max(steps), seed, permuted=False)
        ranker = open_ranker(str(start), backend="torch", device="cpu")
        assert isinstance(ranker, MonoBert)
        parts[steps[0]].append(scored(data, ranker, tested))
        for before, after in pairwise(steps):
            with tempfile.TemporaryDirectory() as folder:
                ranker.fit(given[before:after], recipe, seed=seed, folder=Path(folder))
            parts[after].append(scored(data, ranker, tested))
    for step in steps:
        yield step, pl.concat(parts[step])


def scored(data: Collection, ranker: MonoBert, topics: Sequence[str]) -> pl.DataFrame:
    """The candidates of some topics with the ranker's scores."""
    rows = [(topic, document) for topic in topics for document in data.candidates.get(topic, [])]
    scores = ranker.score([Pair(data.topics[topic], data.documents[document]) for topic, document in rows])
    frame = pl.DataFrame(rows, schema=["topic_id", "doc_id"], orient="row")
    return frame.with_columns(score=pl.Series(scores.astype(np.float64)))


def main() -> None:
    """Prints the learning curve."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("collection", nargs="?", default="vaswani", choices=sorted(SOURCES))
    parser.add_argument("--from-documents", type=int, default=4000)
    parser.add_argument("--steps", default="0,500,1000,2000")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--rate", type=float, default=5e-5)
    parser.add_argument("--threads", type=int, default=2)
    given = parser.parse_args()
    require_shared()
    steps = [int(step) for step in given.steps.split(",")]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        data = read(given.collection, folder)
        docs = str(SHARED / "collections" / given.collection / SOURCES[given.collection][0])
        found: dict[int, list[pl.DataFrame]] = {step: [] for step in steps}
        begun = time.monotonic()
        for seed in range(1, given.seeds + 1):
            ranker = open_ranker("monobert:packaged", backend="torch", device="cpu", seed=seed, threads=given.threads)
            assert isinstance(ranker, MonoBert)
            made = from_documents(docs, folder / given.collection, given.from_documents, seed)
            recipe = RECIPES["monobert"].changed({"lr": given.rate, "batch": 16, "accumulate": 4})
            if made:
                ranker.fit(made, recipe, seed=seed, folder=folder)
            ranker.save(folder / f"start-{seed}")
            print(f"seed {seed}: {len(made)} instances of documents, {time.monotonic() - begun:.0f} s", flush=True)
            for step, run in curve(data, folder / f"start-{seed}", steps, seed, given.rate):
                found[step].append(run)
        report(given.collection, data, found)
        print(f"{time.monotonic() - begun:.0f} s")


def report(name: str, data: Collection, found: dict[int, list[pl.DataFrame]]) -> None:
    """Prints what each number of judged instances reached."""
    policy = measures.Policy(ties="ascending")
    topics = pl.DataFrame({"topic_id": list(data.topics)})
    qrels = data.qrels.join(topics, on="topic_id", how="semi")

    def values(run: pl.DataFrame) -> np.ndarray:
        return np.asarray(measures.evaluate(qrels, {"run": run}, MEASURE, policy).values[0, 0])

    baseline = values(data.bm25.select("topic_id", "doc_id", "score"))
    rows = []
    for step, runs in found.items():
        by_seed = np.stack([values(run) for run in runs])
        mean = by_seed.mean(axis=0)
        p = measures.difference_test(mean, baseline).p
        seeds = " ".join(f"{value:.3f}" for value in by_seed.mean(axis=1))
        rows.append((step, f"{mean.mean():.4f}", seeds, shown(mean, baseline), f"{p:.2g}"))
    print(f"\n{name}: {MEASURE}, {len(baseline)} topics, BM25 {baseline.mean():.4f}, depth {DEPTH}\n")
    print(table(("judged instances", "mean", "by seed", "difference to BM25", "p"), rows), flush=True)


if __name__ == "__main__":
    main()
