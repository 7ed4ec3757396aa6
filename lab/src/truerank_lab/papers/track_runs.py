"""Writes a varied set of runs over Vaswani and CACM: 33 runs of 8 teams, some of them weak and unlike the others.

    python -m truerank_lab.papers.track_runs [FOLDER] [--collections vaswani,cacm]

For each collection a folder with `NAME.run`, `runs.tsv` (run, team, category, subtask), `sparse.qrels` (the first
relevant document of each judged topic, as the sparse judgments of a track) and `topics.tsv` (the judged topics). The
reranker models are trained on the documents alone: a document's first words ask for it against a document of BM25. Same
seed, same runs.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.random_projection import GaussianRandomProjection

from truerank import lexical
from truerank.audits.survivorship.instances import Instance
from truerank.errors import InputError
from truerank.lexical import BM25, BM25PRF, RM3, Analyser, Axiomatic, QueryLikelihood
from truerank.rankers.base import Pair
from truerank.sources import open_documents, read_qrels_frame, read_topics
from truerank.vectors.encoders import open_encoder
from truerank_lab.rankers.recipes import RECIPES

SHARED = Path(os.environ.get("TRUERANK_SHARED", Path(__file__).resolve().parents[5] / "shared"))
SOURCES = {"vaswani": ("docs.trec.gz", "topics.trec.txt"), "cacm": ("cacm.tar.gz", "topics.txt")}
DEPTH = 1000
RERANKED = 100
INSTANCES = 1500
FIRST_WORDS = 10
SEED = 7
PORTER, UNSTEMMED, ALL_WORDS = Analyser(), Analyser(stemmer="none"), Analyser(stopwords="none", stemmer="none")

Scores = NDArray[np.float64]
Ranked = dict[str, dict[str, float]]
Model = lexical.Model | lexical.Expansion
T = TypeVar("T")


class Collection(NamedTuple):
    """Documents and judged topics as texts by id, in their order."""

    source: str
    documents: dict[str, str]
    topics: dict[str, str]


class Run(NamedTuple):
    """A run: its name, who made it, the track's category and subtask, and what ranks the documents."""

    name: str
    team: str
    category: str
    rank: Callable[[], Ranked]
    subtask: str = "fullrank"


class Ranker:
    """What the runs share: indexes, vectors and runs that others build on, each made once."""

    def __init__(self, collection: Collection, folder: Path) -> None:
        self.collection = collection
        self._folder = folder
        self._made: dict[object, object] = {}

    def _once(self, key: object, make: Callable[[], T]) -> T:
        if key not in self._made:
            self._made[key] = make()
        return cast(T, self._made[key])

    def lexical(self, model: Model, analyser: Analyser = PORTER, words: int = 0) -> Ranked:
        """A run of the lexical room; with `words`, over queries of so many words."""
        asked = {key: " ".join(text.split()[: words or None]) for key, text in self.collection.topics.items()}
        return self._once((model, analyser, words), lambda: self._searched(asked, model, analyser, DEPTH))

    def _searched(self, asked: dict[str, str], model: Model, analyser: Analyser, k: int) -> Ranked:
        place, source = self._folder / f"index-{analyser.name}", self.collection.source
        index = self._once(analyser, lambda: lexical.build_index(source, place, analyser=analyser))
        run = lexical.search(index, [lexical.TopicQuery(*each) for each in asked.items()], model, k=k).run
        found: Ranked = {}
        for topic, key, score in run.select("topic_id", "doc_id", "score").iter_rows():
            found.setdefault(topic, {})[key] = score
        return found

    def space(self, kind: str, size: int) -> Ranked:
        """Cosine in a space of few dimensions: "latent" (LSA), "random" (random projection) or "letters" (3 to 5)."""
        return self._once((kind, size), lambda: self._nearest(self._placed(kind, size)))

    def _placed(self, kind: str, size: int) -> Scores:
        analyser, spans = ("char_wb", (3, 5)) if kind == "letters" else ("word", (1, 1))
        vectorizer = TfidfVectorizer(analyzer=analyser, ngram_range=spans, sublinear_tf=True, min_df=2)
        documents = vectorizer.fit_transform(self.collection.documents.values())
        topics = vectorizer.transform(self.collection.topics.values())
        if kind == "letters":
            return np.asarray((topics @ documents.T).todense())
        projection = (TruncatedSVD if kind == "latent" else GaussianRandomProjection)(size, random_state=SEED)
        placed = projection.fit_transform(documents)
        return _unit(projection.transform(topics)) @ _unit(placed).T

    def dense(self, words: int = 0, feedback: float = 0.0) -> Ranked:
        """Cosine of the packaged encoder: of whole documents or first words, perhaps with the best three fed back."""
        return self._once(("dense", words, feedback), lambda: self._nearest(self._cosines(words, feedback)))

    def _cosines(self, words: int, feedback: float) -> Scores:
        encoder = open_encoder("packaged")
        texts = [" ".join(text.split()[: words or None]) for text in self.collection.documents.values()]
        documents = self._once(("vectors", words), lambda: encoder.encode(texts))
        asked: NDArray[np.floating] = encoder.encode(list(self.collection.topics.values()))
        if feedback:
            best = np.argsort(-(asked @ documents.T), axis=1, kind="stable")[:, :3]
            asked = _unit((1 - feedback) * asked + feedback * documents[best].mean(axis=1))
        return np.asarray(asked @ documents.T, np.float64)

    def _nearest(self, scores: Scores) -> Ranked:
        names = list(self.collection.documents)
        found: Ranked = {}
        for topic, row in zip(self.collection.topics, scores, strict=True):
            best = np.argsort(-np.round(row, 6), kind="stable")[:DEPTH]
            found[topic] = {names[at]: float(row[at]) for at in best}
        return found

    def overlap(self) -> Ranked:
        """How many distinct words of the topic a document holds, shorter documents first: a deliberately weak run."""
        held = {key: frozenset(ALL_WORDS(text)) for key, text in self.collection.documents.items()}
        found: Ranked = {}
        for topic, text in self.collection.topics.items():
            asked = frozenset(ALL_WORDS(text))
            scored = {key: len(asked & words) + 1 / (2 + len(words)) for key, words in held.items() if asked & words}
            found[topic] = _first(scored, DEPTH)
        return found

    def reranked(self, kind: str, first: Model) -> Ranked:
        """The best documents of a lexical run in the order of a small neural model."""
        return self._once((kind, first), lambda: self._reranked(kind, self.lexical(first)))

    def _reranked(self, kind: str, first: Ranked) -> Ranked:
        import torch

        from truerank_lab.rankers.fitting import fit
        from truerank_lab.rankers.knrm import Knrm
        from truerank_lab.rankers.pacrr import Pacrr
        from truerank_lab.rankers.vocabulary import open_vocabulary

        torch.set_num_threads(1)
        texts, topics = self.collection.documents, self.collection.topics
        vocabulary = self._once("vocabulary", lambda: open_vocabulary("packaged", texts.values()))
        made = {"knrm": Knrm, "pacrr": Pacrr}[kind].create(vocabulary, seed=SEED, max_query=30, max_document=120)
        with tempfile.TemporaryDirectory() as folder:
            fit(made, list(self._instances()), RECIPES["truerank"], seed=SEED, folder=Path(folder))
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
        asked = {key: " ".join(texts[key].split()[:FIRST_WORDS]) for key in chosen}
        found = self._searched(asked, BM25(), PORTER, 20)
        for query, text in asked.items():
            others = [key for key in found.get(query, {}) if key != query]
            if others:
                rest, other = " ".join(texts[query].split()[FIRST_WORDS:]), draw.choice(others)
                yield Instance(query, text, query, rest, other, texts[other])


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
        yield Run(f"okapi-{name}", "okapi", "trad", partial(words, model, analyser))
    yield Run("okapi-short", "okapi", "trad", partial(words, bm25, PORTER, 3))
    for mu in (50, 500, 2500):
        yield Run(f"likely-{mu}", "likely", "trad", partial(words, QueryLikelihood(mu)))
    yield Run("likely-nostem", "likely", "trad", partial(words, likely, UNSTEMMED))
    for name, expansion in (
        ("rm3", rm3),
        ("rm3-ql", RM3(20, 10, 0.5, likely)),
        ("axiomatic", Axiomatic()),
        ("prf", BM25PRF()),
    ):
        yield Run(f"expand-{name}", "expand", "trad", partial(words, expansion))
    yield Run("words-knrm", "words", "nn", partial(ranker.reranked, "knrm", bm25), "rerank")
    yield Run("words-pacrr", "words", "nn", partial(ranker.reranked, "pacrr", bm25), "rerank")
    yield Run("words-knrm-rm3", "words", "nn", partial(ranker.reranked, "knrm", rm3), "rerank")
    yield Run("words-both", "words", "nn", lambda: reciprocal([ranker.reranked("knrm", bm25), first()]))
    yield Run("dense-whole", "dense", "nnlm", ranker.dense)
    yield Run("dense-first", "dense", "nnlm", partial(ranker.dense, FIRST_WORDS))
    yield Run("dense-feedback", "dense", "nnlm", partial(ranker.dense, 0, 0.4))
    yield Run("dense-rerank", "dense", "nnlm", lambda: only(ranker.dense(), first()), "rerank")
    for size in (50, 200):
        yield Run(f"latent-{size}", "latent", "trad", partial(space, "latent", size))
    yield Run("latent-letters", "latent", "trad", partial(space, "letters", 0))
    yield Run("latent-mixed", "latent", "trad", lambda: added([space("latent", 200), first()]))
    yield Run("fused-rrf", "fused", "nnlm", lambda: reciprocal([first(), ranker.dense(), words(likely)]))
    yield Run("fused-sum", "fused", "nnlm", lambda: added([first(), ranker.dense()]))
    yield Run("fused-expanded", "fused", "nnlm", lambda: added([words(rm3), ranker.dense(0, 0.4)]))
    yield Run("fused-lexical", "fused", "trad", lambda: reciprocal([first(), words(likely), words(rm3)]))
    for size in (20, 100, 400):
        yield Run(f"odd-random-{size}", "odd", "trad", partial(space, "random", size))
    yield Run("odd-overlap", "odd", "trad", ranker.overlap)


def reciprocal(parts: Sequence[Ranked]) -> Ranked:
    """Reciprocal rank fusion, k = 60."""
    return _fused([{topic: _reciprocals(own) for topic, own in part.items()} for part in parts])


def added(parts: Sequence[Ranked]) -> Ranked:
    """CombSUM of scores between 0 and 1."""
    return _fused([{topic: _scaled(own) for topic, own in part.items()} for part in parts])


def _reciprocals(ranked: Iterable[str]) -> dict[str, float]:
    return {key: 1 / (60 + rank) for rank, key in enumerate(ranked, start=1)}


def _scaled(ranked: dict[str, float]) -> dict[str, float]:
    low, high = min(ranked.values(), default=0.0), max(ranked.values(), default=0.0)
    return {key: (score - low) / ((high - low) or 1.0) for key, score in ranked.items()}


def _fused(parts: Sequence[Ranked]) -> Ranked:
    found: Ranked = {}
    for topic, ranked in (item for part in parts for item in part.items()):
        scores = found.setdefault(topic, {})
        for key, score in ranked.items():
            scores[key] = scores.get(key, 0.0) + score
    return {topic: _first(scores, DEPTH) for topic, scores in found.items()}


def only(run: Ranked, first: Ranked) -> Ranked:
    """A run's order of the best documents of a first stage; those that it lacks are left out."""
    return {
        topic: {key: score for key, score in run[topic].items() if key in set(list(ranked)[:RERANKED])}
        for topic, ranked in first.items()
    }


def _first(scores: dict[str, float], size: int) -> dict[str, float]:
    return dict(sorted(scores.items(), key=lambda item: (-round(item[1], 6), item[0]))[:size])


def _unit(vectors: Scores) -> Scores:
    return cast(Scores, vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9))


def read(name: str, root: Path) -> tuple[Collection, pl.DataFrame]:
    """A collection with its judged topics, and its judgments."""
    docs, topics = (str(root / name / part) for part in SOURCES[name])
    qrels = read_qrels_frame(str(root / name / "qrels.txt"))
    judged = set(qrels["topic_id"])
    texts = {one.topic_id: one.title or one.description for one in read_topics(topics).topics}
    documents = {document.doc_id: document.text for document in open_documents(docs)}
    return Collection(docs, documents, {key: text for key, text in texts.items() if key in judged}), qrels


def write(collection: Collection, qrels: pl.DataFrame, folder: Path, *, wanted: Sequence[str] = ()) -> list[Path]:
    """Writes the runs of one collection and what stands beside them.

    Args:
        collection: documents and topics.
        qrels: the judgments; the first relevant document of each topic becomes the sparse judgments.
        folder: made if it does not exist.
        wanted: names of runs; none for all.

    Returns:
        The paths of the runs.
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths, rows = [], ["run\tteam\tcategory\tsubtask"]
    with tempfile.TemporaryDirectory() as work:
        for run in runs(Ranker(collection, Path(work))):
            if wanted and run.name not in wanted:
                continue
            lines = (
                f"{topic} Q0 {key} {rank} {score:.6f} {run.name}"
                for topic, scored in run.rank().items()
                for rank, (key, score) in enumerate(scored.items(), start=1)
            )
            paths.append(folder / f"{run.name}.run")
            paths[-1].write_text("\n".join(lines) + "\n")
            rows.append("\t".join((run.name, run.team, run.category, run.subtask)))
    (folder / "runs.tsv").write_text("\n".join(rows) + "\n")
    relevant = qrels.filter(pl.col("relevance") > 0).unique("topic_id", keep="first", maintain_order=True)
    known = relevant.filter(pl.col("topic_id").is_in(list(collection.topics)))
    (folder / "sparse.qrels").write_text("".join(f"{topic} 0 {key} {grade}\n" for topic, key, grade in known.rows()))
    asked = (f"{topic}\t{' '.join(text.split())}" for topic, text in collection.topics.items())
    (folder / "topics.tsv").write_text("\n".join(asked) + "\n")
    return paths


def main() -> None:
    """Writes the runs of every collection."""
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", nargs="?", type=Path, default=Path("runs"))
    parser.add_argument("--collections", nargs="+", choices=SOURCES, default=list(SOURCES))
    given = parser.parse_args()
    root = SHARED / "data" / "collections"
    if not root.is_dir():
        sys.exit(f"no data at {root}: set TRUERANK_SHARED to the folder that holds data/")
    try:
        for name in given.collections:
            print(*write(*read(name, root), given.folder / name), sep="\n")
    except InputError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
