"""Runs over the Vaswani collection to show what a track report makes of them: BM25, query likelihood, feedback, LSA.

    python studies/vaswani_runs.py FOLDER

writes seventeen runs, their metadata (runs.csv), the judgments, and sparse judgments (the first relevant document of
each topic). The rankers are as small as they can be and have no other use.
"""

from __future__ import annotations

import csv
import functools
import gzip
import re
import sys
from collections.abc import Callable, Collection, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import sparse
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer

from common import SHARED, require_shared

CANDIDATES = 100
DEPTH = 1000


class Texts(NamedTuple):
    """Counts of terms, shape (documents or topics, terms), and their ids."""

    docs: sparse.csr_matrix
    doc_ids: list[str]
    topics: sparse.csr_matrix
    topic_ids: list[str]


def read_texts(folder: Path) -> Texts:
    """Reads documents and topics."""
    raw = gzip.decompress((folder / "docs.trec.gz").read_bytes()).decode()
    docs = re.findall(r"<DOCNO>(.*?)</DOCNO>(.*?)</DOC>", raw, re.DOTALL)
    topics = re.findall(r"<num>(\d+)</num>\s*<title>(.*?)</title>", (folder / "topics.trec.txt").read_text(), re.DOTALL)
    vectorizer = CountVectorizer(stop_words="english")
    matrix = vectorizer.fit_transform(text for _, text in docs)
    asked = vectorizer.transform(text for _, text in topics)
    return Texts(matrix.tocsr(), [key.strip() for key, _ in docs], asked.tocsr(), [key for key, _ in topics])


def bm25(texts: Texts, topics: sparse.csr_matrix, k1: float, b: float) -> np.ndarray:
    """BM25 scores, shape (topics, documents)."""
    tf = texts.docs.astype(np.float64)
    lengths = np.asarray(tf.sum(axis=1)).ravel()
    df = np.asarray((tf > 0).sum(axis=0)).ravel()
    idf = np.log1p((tf.shape[0] - df + 0.5) / (df + 0.5))
    coo = tf.tocoo()
    norm = k1 * (1 - b + b * lengths / lengths.mean())
    weights = sparse.csr_matrix((coo.data * (k1 + 1) / (coo.data + norm[coo.row]) * idf[coo.col], (coo.row, coo.col)))
    weights.resize(tf.shape)
    return (topics @ weights.T).toarray()


def query_likelihood(texts: Texts, mu: float) -> np.ndarray:
    """Query likelihood with Dirichlet smoothing, shape (topics, documents)."""
    tf = texts.docs.astype(np.float64)
    lengths = np.asarray(tf.sum(axis=1)).ravel()
    background = np.asarray(tf.sum(axis=0)).ravel() / tf.sum()
    coo = tf.tocoo()
    gains = sparse.csr_matrix((np.log1p(coo.data / (mu * background[coo.col])), (coo.row, coo.col)))
    gains.resize(tf.shape)
    asked = np.asarray(texts.topics.sum(axis=1)).ravel()
    return (texts.topics @ gains.T).toarray() + asked[:, None] * np.log(mu / (mu + lengths))[None, :]


def feedback(texts: Texts, first: np.ndarray, documents: int, terms: int) -> np.ndarray:
    """BM25 with the topics enlarged by the likeliest terms of their first documents."""
    best = np.argsort(-first, axis=1, kind="stable")[:, :documents]
    tfidf = TfidfTransformer().fit_transform(texts.docs)
    rows = []
    for topic, chosen in zip(texts.topics, best, strict=True):
        centre = np.asarray(tfidf[chosen].mean(axis=0)).ravel()
        cut = np.sort(centre)[-terms]
        rows.append(topic + sparse.csr_matrix(np.where(centre >= cut, centre / centre.max() * 0.5, 0.0)))
    return bm25(texts, sparse.vstack(rows).tocsr(), 0.9, 0.4)


def latent(texts: Texts, dimensions: int, seed: int) -> np.ndarray:
    """Cosine in a space of few dimensions (LSA), shape (topics, documents)."""
    tfidf = TfidfTransformer(sublinear_tf=True).fit(texts.docs)
    space = TruncatedSVD(dimensions, random_state=seed).fit(tfidf.transform(texts.docs))
    docs, topics = (space.transform(tfidf.transform(counts)) for counts in (texts.docs, texts.topics))
    docs, topics = (part / np.maximum(np.linalg.norm(part, axis=1, keepdims=True), 1e-9) for part in (docs, topics))
    return topics @ docs.T


class Run(NamedTuple):
    """One run: who made it and how, and what scores its documents, shape (topics, documents)."""

    name: str
    group: str
    subtask: str
    category: str
    scores: Callable[[], np.ndarray]


def all_runs(texts: Texts) -> Iterator[Run]:
    """The runs; nothing is computed before its scores are asked for, and nothing twice."""
    okapi = functools.cache(partial(bm25, texts, texts.topics))
    likely = functools.cache(partial(query_likelihood, texts))
    space = functools.cache(partial(latent, texts, seed=7))

    def only_candidates(scores: Callable[[], np.ndarray]) -> np.ndarray:
        pool = np.argsort(-okapi(0.9, 0.4), axis=1, kind="stable")[:, :CANDIDATES]
        outside = np.full((len(texts.topic_ids), len(texts.doc_ids)), -np.inf)
        np.put_along_axis(outside, pool, 0.0, axis=1)
        return scores() + outside

    def mixed(size: int) -> np.ndarray:
        return space(size) / space(size).std() + okapi(0.9, 0.4) / okapi(0.9, 0.4).std()

    for k1, b in ((0.9, 0.4), (1.2, 0.75), (2.0, 0.9), (0.5, 0.2)):
        yield Run(f"bm25-{k1}-{b}", "okapi", "fullrank", "trad", partial(okapi, k1, b))
    for mu in (50, 500, 2000):
        yield Run(f"ql-{mu}", "indri", "fullrank", "trad", partial(likely, mu))
    yield Run("ql-500-re", "indri", "rerank", "trad", partial(only_candidates, partial(likely, 500)))
    for size in (50, 150, 300):
        yield Run(f"lsa-{size}", "latent", "fullrank", "nn", partial(space, size))
    for size in (50, 150):
        yield Run(f"mix-{size}", "mixers", "fullrank", "nn", partial(mixed, size))
        yield Run(f"mix-{size}-re", "mixers", "rerank", "nn", partial(only_candidates, partial(mixed, size)))
    for documents, terms in ((5, 10), (10, 20)):
        found = partial(feedback, texts, okapi(0.9, 0.4), documents, terms)
        yield Run(f"prf-{documents}-{terms}", "okapi", "fullrank", "prf", found)


def write(folder: Path, *, names: Collection[str] | None = None, depth: int = DEPTH) -> list[Path]:
    """Writes the runs and everything beside them.

    Args:
        folder: made if it does not exist.
        names: the runs to write; None for all.
        depth: results of each topic.

    Returns:
        The paths of the runs.
    """
    source = SHARED / "collections" / "vaswani"
    texts = read_texts(source)
    folder.mkdir(parents=True, exist_ok=True)
    qrels = (source / "qrels.txt").read_text()
    (folder / "vaswani.qrels").write_text(qrels)
    first = {line.split()[0]: line for line in reversed(qrels.splitlines())}
    (folder / "sparse.qrels").write_text("\n".join(reversed(first.values())) + "\n")
    paths, rows = [], [("run", "group", "subtask", "category")]
    for run in all_runs(texts):
        if names is None or run.name in names:
            paths.append(folder / f"{run.name}.run")
            write_run(paths[-1], texts, run.scores(), depth)
            rows.append(run[:4])
    with (folder / "runs.csv").open("w", newline="") as table:
        csv.writer(table).writerows(rows)
    return paths


def write_run(path: Path, texts: Texts, scores: np.ndarray, depth: int) -> None:
    """Writes the best documents of each topic as a TREC run."""
    best = np.argsort(-scores, axis=1, kind="stable")[:, :depth]
    with path.open("w") as out:
        for topic, ranked, values in zip(texts.topic_ids, best, scores, strict=True):
            for rank, document in enumerate(ranked, start=1):
                if np.isfinite(values[document]):
                    out.write(f"{topic} Q0 {texts.doc_ids[document]} {rank} {values[document]:.6f} {path.stem}\n")


if __name__ == "__main__":
    require_shared()
    for written in write(Path(sys.argv[1])):
        print(written)
