"""Writes a varied set of runs over Vaswani and CACM: 32 runs of 8 teams, some of them weak and unlike the others.

    python -m truerank_lab.papers.track_runs [FOLDER] [--collections vaswani,cacm]

For each collection a folder with `NAME.run`, `runs.tsv` (run, team, type), `sparse.qrels` (the first relevant document
of each judged topic, as the sparse judgments of a track) and `topics.tsv` (the judged topics). The reranker models are
trained on the documents alone: a document's first words ask for it against a document of BM25. Same seed, same runs.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.random_projection import GaussianRandomProjection

from truerank import lexical
from truerank.errors import InputError
from truerank.lexical import BM25, BM25PRF, RM3, Analyser, Axiomatic, QueryLikelihood
from truerank.rankers.base import Pair
from truerank.sources import read_documents, read_qrels_frame, read_topics
from truerank.sources.instances import Instance
from truerank.vectors.encoders import open_encoder
from truerank_lab.rankers.recipes import RECIPES

HERE = Path(__file__).resolve().parent
SHARED = Path(os.environ.get("TRUERANK_SHARED", HERE.parent.parent / "shared")) / "data" / "collections"
SOURCES = {"vaswani": ("docs.trec.gz", "topics.trec.txt"), "cacm": ("cacm.tar.gz", "topics.txt")}
DEPTH = 1000
RERANKED = 100
INSTANCES = 1500
FIRST_WORDS = 10
SEED = 7
PORTER, UNSTEMMED, ALL_WORDS = Analyser(), Analyser(stemmer="none"), Analyser(stopwords="none", stemmer="none")

Scores = NDArray[np.float64]
Ranked = dict[str, dict[str, float]]


class Collection(NamedTuple):
    """Documents and judged topics as texts by id, in their order."""

    source: str
    documents: dict[str, str]
    topics: dict[str, str]


class Run(NamedTuple):
    """A run: its name, who made it, its type, and what ranks the documents."""

    name: str
    team: str
    kind: str
    rank: Callable[[], Ranked]


class Ranker:
    """What the runs share: indexes, vectors and runs that others build on, each made once."""

    def __init__(self, collection: Collection, folder: Path) -> None:
        self.collection = collection
        self._folder = folder
        self._made: dict[object, object] = {}

    def once(self, key: object, make: Callable[[], object]) -> object:
        """What stands under the key, made at the first call."""
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]

    def lexical(self, model: lexical.Model | lexical.Expansion, analyser: Analyser = PORTER, words: int = 0) -> Ranked:
        """A run of the lexical room; with `words`, over queries of so many words."""

        def index() -> lexical.Index:
            return lexical.build_index(
                self.collection.source, self._folder / f"index-{analyser.name}", analyser=analyser
            )

        def searched() -> Ranked:
            opened = cast(lexical.Index, self.once(analyser, index))
            texts = ((key, " ".join(text.split()[:words] if words else text.split())) for key, text in self.topics())
            found = lexical.search(opened, [lexical.TopicQuery(*each) for each in texts], model, k=DEPTH)
            return _of_frame(found.run)

        return cast(Ranked, self.once((model, analyser, words), searched))

    def topics(self) -> Iterator[tuple[str, str]]:
        """The judged topics."""
        yield from self.collection.topics.items()

    def space(self, kind: str, size: int) -> Ranked:
        """Cosine in a space of few dimensions: "latent" (LSA), "random" (random projection) or "letters" (3 to 5)."""
        return cast(Ranked, self.once((kind, size), partial(self._space, kind, size)))

    def dense(self, words: int = 0, feedback: float = 0.0) -> Ranked:
        """Cosine of the packaged encoder: of whole documents or first words, perhaps with the best three fed back."""
        return cast(Ranked, self.once(("dense", words, feedback), partial(self._dense, words, feedback)))

    def reranked(self, kind: str, first: Ranked) -> Ranked:
        """The best documents of a run in the order of a small neural model."""
        return cast(Ranked, self.once((kind, id(first)), partial(self._reranked, kind, first)))

    def overlap(self) -> Ranked:
        """How many distinct words of the topic a document holds, shorter documents first: a deliberately weak run."""
        held = {key: frozenset(ALL_WORDS(text)) for key, text in self.collection.documents.items()}
        found: Ranked = {}
        for topic, text in self.topics():
            asked = frozenset(ALL_WORDS(text))
            scored = {key: len(asked & words) + 1 / (2 + len(words)) for key, words in held.items() if asked & words}
            found[topic] = _first(scored, DEPTH)
        return found

    def _space(self, kind: str, size: int) -> Ranked:
        documents, topics = self._weights("char_wb" if kind == "letters" else "word")
        if kind == "letters":
            return self._nearest(np.asarray((topics @ documents.T).todense()))
        projection = (
            TruncatedSVD(size, random_state=SEED)
            if kind == "latent"
            else GaussianRandomProjection(size, random_state=SEED)
        )
        placed = projection.fit_transform(documents)
        return self._nearest(_unit(projection.transform(topics)) @ _unit(placed).T)

    def _weights(self, analyser: str) -> tuple[sparse.csr_matrix, sparse.csr_matrix]:
        spans = (3, 5) if analyser == "char_wb" else (1, 1)
        vectorizer = TfidfVectorizer(analyzer=analyser, ngram_range=spans, sublinear_tf=True, min_df=2)
        documents = vectorizer.fit_transform(self.collection.documents.values())
        return documents, vectorizer.transform(self.collection.topics.values())

    def _dense(self, words: int, feedback: float) -> Ranked:
        encoder = open_encoder("packaged")
        texts = [" ".join(text.split()[: words or None]) for text in self.collection.documents.values()]
        documents = cast(Scores, self.once(("vectors", words), lambda: encoder.encode(texts)))
        asked = encoder.encode(list(self.collection.topics.values()))
        if feedback:
            best = np.argsort(-(asked @ documents.T), axis=1, kind="stable")[:, :3]
            asked = _unit((1 - feedback) * asked + feedback * documents[best].mean(axis=1))
        return self._nearest(np.asarray(asked @ documents.T, np.float64))

    def _nearest(self, scores: Scores) -> Ranked:
        names = list(self.collection.documents)
        found: Ranked = {}
        for topic, row in zip(self.collection.topics, scores, strict=True):
            best = np.argsort(-np.round(row, 6), kind="stable")[:DEPTH]
            found[topic] = {names[at]: float(row[at]) for at in best}
        return found

    def _reranked(self, kind: str, first: Ranked) -> Ranked:
        import torch

        from truerank_lab.rankers.knrm import Knrm
        from truerank_lab.rankers.pacrr import Pacrr
        from truerank_lab.rankers.vocabulary import open_vocabulary

        torch.set_num_threads(1)
        texts, topics = self.collection.documents, self.collection.topics
        vocabulary = self.once("vocabulary", lambda: open_vocabulary("packaged", texts.values()))
        made = {"knrm": Knrm, "pacrr": Pacrr}[kind].create(vocabulary, seed=SEED, max_query=30, max_document=120)
        with tempfile.TemporaryDirectory() as folder:
            made.fit(list(self._instances()), RECIPES["truerank"], seed=SEED, folder=Path(folder))
        rows = [(topic, key) for topic, ranked in first.items() for key in list(ranked)[:RERANKED]]
        scores = made.score([Pair(topics[topic], texts[key]) for topic, key in rows])
        found: Ranked = {topic: {} for topic in first}
        for (topic, key), score in zip(rows, scores, strict=True):
            found[topic][key] = float(score)
        return {topic: _first(ranked, RERANKED) for topic, ranked in found.items()}

    def _instances(self) -> Iterator[Instance]:
        """A document's first words ask for the rest of it, against what BM25 finds for them."""
        draw, texts = random.Random(SEED), self.collection.documents
        chosen = [key for key in draw.sample(list(texts), min(INSTANCES, len(texts))) if len(texts[key].split()) > 15]
        queries = [lexical.TopicQuery(key, " ".join(texts[key].split()[:FIRST_WORDS])) for key in chosen]
        index = cast(lexical.Index, self._made[PORTER])
        found = _of_frame(lexical.search(index, queries, BM25(), k=20).run)
        for query in queries:
            others = [key for key in found.get(query.topic_id, {}) if key != query.topic_id]
            if others:
                rest = " ".join(texts[query.topic_id].split()[FIRST_WORDS:])
                other = draw.choice(others)
                yield Instance(query.topic_id, query.text, query.topic_id, rest, other, texts[other])


def runs(ranker: Ranker) -> Iterator[Run]:
    """The runs; nothing is ranked before it is asked for, and nothing twice."""
    words, space = ranker.lexical, ranker.space
    bm25, likely, rm3 = BM25(), QueryLikelihood(500), RM3(20, 10, 0.5, BM25())
    first = partial(words, bm25)
    for name, model, analyser in (
        ("bm25", bm25, PORTER),
        ("bm25-long", BM25(2.0, 0.9), PORTER),
        ("bm25-flat", BM25(0.9, 0.0), PORTER),
        ("bm25-nostem", bm25, UNSTEMMED),
    ):
        yield Run(f"okapi-{name}", "okapi", "lexical", partial(words, model, analyser))
    yield Run("okapi-short", "okapi", "lexical", partial(words, bm25, PORTER, 3))
    for mu in (50, 500, 2500):
        yield Run(f"likely-{mu}", "likely", "lexical", partial(words, QueryLikelihood(mu)))
    yield Run("likely-nostem", "likely", "lexical", partial(words, likely, UNSTEMMED))
    for name, expansion in (
        ("rm3", rm3),
        ("rm3-ql", RM3(20, 10, 0.5, likely)),
        ("axiomatic", Axiomatic()),
        ("prf", BM25PRF()),
    ):
        yield Run(f"expand-{name}", "expand", "expansion", partial(words, expansion))
    yield Run("words-knrm", "words", "neural", lambda: ranker.reranked("knrm", first()))
    yield Run("words-pacrr", "words", "neural", lambda: ranker.reranked("pacrr", first()))
    yield Run("words-knrm-rm3", "words", "neural", lambda: ranker.reranked("knrm", words(rm3)))
    yield Run("words-both", "words", "fusion", lambda: reciprocal([ranker.reranked("knrm", first()), first()]))
    yield Run("dense-whole", "dense", "dense", ranker.dense)
    yield Run("dense-first", "dense", "dense", partial(ranker.dense, FIRST_WORDS))
    yield Run("dense-feedback", "dense", "dense", partial(ranker.dense, 0, 0.4))
    yield Run("dense-rerank", "dense", "dense", lambda: only(ranker.dense(), first()))
    for size in (50, 200):
        yield Run(f"latent-{size}", "latent", "dense", partial(space, "latent", size))
    yield Run("latent-letters", "latent", "lexical", partial(space, "letters", 0))
    yield Run("latent-mixed", "latent", "fusion", lambda: added([space("latent", 200), first()]))
    yield Run("fused-rrf", "fused", "fusion", lambda: reciprocal([first(), ranker.dense(), words(likely)]))
    yield Run("fused-sum", "fused", "fusion", lambda: added([first(), ranker.dense()]))
    yield Run("fused-expanded", "fused", "fusion", lambda: added([words(rm3), ranker.dense(0, 0.4)]))
    yield Run("fused-lexical", "fused", "fusion", lambda: reciprocal([first(), words(likely), words(rm3)]))
    for size in (20, 100, 400):
        yield Run(f"odd-random-{size}", "odd", "dense", partial(space, "random", size))
    yield Run("odd-overlap", "odd", "lexical", ranker.overlap)


def reciprocal(parts: list[Ranked], k: int = 60) -> Ranked:
    """Reciprocal rank fusion."""

    def fused(topic: str) -> dict[str, float]:
        scores: dict[str, float] = {}
        for part in parts:
            for rank, key in enumerate(part.get(topic, {}), start=1):
                scores[key] = scores.get(key, 0.0) + 1 / (k + rank)
        return _first(scores, DEPTH)

    return {topic: fused(topic) for topic in dict.fromkeys(topic for part in parts for topic in part)}


def added(parts: list[Ranked]) -> Ranked:
    """CombSUM of scores between 0 and 1."""

    def fused(topic: str) -> dict[str, float]:
        scores: dict[str, float] = {}
        for part in parts:
            ranked = part.get(topic, {})
            low, high = min(ranked.values(), default=0.0), max(ranked.values(), default=0.0)
            for key, score in ranked.items():
                scores[key] = scores.get(key, 0.0) + (score - low) / ((high - low) or 1.0)
        return _first(scores, DEPTH)

    return {topic: fused(topic) for topic in dict.fromkeys(topic for part in parts for topic in part)}


def only(run: Ranked, first: Ranked) -> Ranked:
    """A run's order of the best documents of a first stage; those that it lacks are left out."""
    return {
        topic: {key: score for key, score in run[topic].items() if key in set(list(ranked)[:RERANKED])}
        for topic, ranked in first.items()
    }


def read(name: str, root: Path) -> tuple[Collection, pl.DataFrame]:
    """A collection with its judged topics, and its judgments."""
    docs, topics = (str(root / name / part) for part in SOURCES[name])
    qrels = read_qrels_frame(str(root / name / "qrels.txt"))
    judged = set(qrels["topic_id"])
    texts = {one.topic_id: one.title or one.description for one in read_topics(topics).topics}
    documents = {document.doc_id: document.text for document in read_documents(docs)}
    return Collection(docs, documents, {key: text for key, text in texts.items() if key in judged}), qrels


def write(collection: Collection, qrels: pl.DataFrame, folder: Path, *, runs_wanted: int | None = None) -> list[Path]:
    """Writes the runs of one collection and what stands beside them.

    Args:
        collection: documents and topics.
        qrels: the judgments; the first relevant document of each topic becomes the sparse judgments.
        folder: made if it does not exist.
        runs_wanted: only so many runs; None for all.

    Returns:
        The paths of the runs.
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths, rows = [], ["run\tteam\ttype"]
    with tempfile.TemporaryDirectory() as work:
        ranker = Ranker(collection, Path(work))
        ranker.lexical(BM25())
        for run in list(runs(ranker))[:runs_wanted]:
            started = time.perf_counter()
            ranked = run.rank()
            path = folder / f"{run.name}.run"
            lines = (
                f"{topic} Q0 {key} {rank} {score:.6f} {run.name}"
                for topic, scored in ranked.items()
                for rank, (key, score) in enumerate(scored.items(), start=1)
            )
            path.write_text("\n".join(lines) + "\n")
            paths.append(path)
            rows.append(f"{run.name}\t{run.team}\t{run.kind}")
            print(f"{path}  {time.perf_counter() - started:.1f} s", flush=True)
    (folder / "runs.tsv").write_text("\n".join(rows) + "\n")
    relevant = qrels.filter(pl.col("relevance") > 0).unique("topic_id", keep="first", maintain_order=True)
    known = relevant.filter(pl.col("topic_id").is_in(list(collection.topics)))
    (folder / "sparse.qrels").write_text("".join(f"{topic} 0 {key} {grade}\n" for topic, key, grade in known.rows()))
    asked = (f"{topic}\t{' '.join(text.split())}" for topic, text in collection.topics.items())
    (folder / "topics.tsv").write_text("\n".join(asked) + "\n")
    return paths


def _of_frame(run: pl.DataFrame) -> Ranked:
    found: Ranked = {}
    for topic, key, score in run.select("topic_id", "doc_id", "score").iter_rows():
        found.setdefault(topic, {})[key] = score
    return found


def _first(scores: dict[str, float], size: int) -> dict[str, float]:
    return dict(sorted(scores.items(), key=lambda item: (-round(item[1], 6), item[0]))[:size])


def _unit(vectors: Scores) -> Scores:
    return cast(Scores, vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9))


def main() -> None:
    """Writes the runs of every collection."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", nargs="?", type=Path, default=Path("runs"))
    parser.add_argument("--collections", default=",".join(SOURCES))
    parser.add_argument("--runs", type=int, help="write only the first so many")
    given = parser.parse_args()
    if not SHARED.is_dir():
        sys.exit(f"no data at {SHARED}: set TRUERANK_SHARED to the folder that holds data/")
    for name in given.collections.split(","):
        if name not in SOURCES:
            sys.exit(f"no collection '{name}': one of {', '.join(SOURCES)}")
        try:
            write(*read(name, SHARED), given.folder / name, runs_wanted=given.runs)
        except InputError as error:
            sys.exit(str(error))


if __name__ == "__main__":
    main()
