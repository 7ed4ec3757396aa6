"""Systems unlike those that were pooled, made from the collection itself: runs for topics, without judgments.

Teams of a track are often alike, and a simulation that leaves out one of them then says little of a system that is not.
These systems rank by different evidence: a sentence encoder, a space of few dimensions, the words alone, and a query
that random documents have led astray. Which of them is unlike the runs depends on the runs: the overlap says it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl
import scipy
from numpy.typing import NDArray

from truerank.audits.reusability.learning.features import Features
from truerank.errors import MissingExtraError
from truerank.lexical import BM25, Index, TopicQuery, search
from truerank.sources import read_documents
from truerank.vectors.encoders import CachedEncoder, open_encoder
from truerank.work.artifacts import digest
from truerank.work.kept import keep_frame, kept_frame
from truerank.work.progress import Progress

Scores = NDArray[np.float32]

#: Results of each topic.
RESULTS: Final = 1000
#: Dimensions of the latent space.
DIMENSIONS: Final = 100
#: Documents that the query is led astray by, where in its own ranking they are drawn, and their weight.
ASTRAY: Final = 5
ASTRAY_FROM: Final = (10, 200)
ASTRAY_WEIGHT: Final = 0.5
_BLOCK: Final = 4096


@dataclass(frozen=True, eq=False)
class Unlike:
    """What the systems are made from.

    Attributes:
        docs: the collection.
        fingerprint: its identity.
        index: its words, made with the learner's analyser.
        topics: the text of each topic.
        seed: of the random documents.
        folder: where finished runs, and blocks of unfinished ones, lie.
        identity: what else the runs depend on: versions.
    """

    docs: str
    fingerprint: str
    index: Index
    topics: Mapping[str, str]
    seed: int
    folder: Path
    identity: Mapping[str, Any]

    @cached_property
    def features(self) -> Features:
        """The documents as rows of weighted terms."""
        return Features.of_index(self.index)

    def key(self, *parts: Any) -> str:
        """A digest of what a run depends on."""
        return digest([dict(self.identity), self.fingerprint, dict(self.topics), self.seed, *parts])[:16]


def make_unlike(
    names: Sequence[str], given: Unlike, told: Progress, *, optional: bool = True
) -> tuple[dict[str, pl.DataFrame], tuple[str, ...]]:
    """Makes the systems, or finds them in the folder."""
    found, notes = {}, []
    told.start("making unlike systems", len(names))
    for name in names:
        try:
            found[name] = _MAKERS[name](given)
        except MissingExtraError as error:
            if not optional:
                raise
            notes.append(f"The unlike system {name} was not made: {error}.")
        told.advance(1)
    return found, tuple(notes)


def _dense(given: Unlike) -> pl.DataFrame:
    """Cosine of the packaged encoder."""
    # Encoding takes nearly all the time: the vectors of finished blocks are kept when the command is killed.
    encoder = CachedEncoder(open_encoder("packaged"), given.folder / "vectors")

    def make() -> pl.DataFrame:
        asked = encoder.encode(list(given.topics.values()))
        ids: list[str] = []
        blocks = [np.zeros((len(given.topics), 0), np.float32)]
        documents = iter(read_documents(given.docs))
        while block := list(islice(documents, _BLOCK)):
            ids += [document.doc_id for document in block]
            blocks.append(asked @ encoder.encode([document.text for document in block]).T)
        return _ranked(given.topics, ids, np.concatenate(blocks, axis=1))

    return _kept(given.folder / f"unlike-dense-{given.key('dense', encoder.fingerprint)}", make)


def _latent(given: Unlike) -> pl.DataFrame:
    """Cosine in the space of the largest singular values of the weighted terms (latent semantic indexing).

    Source: Deerwester et al., Indexing by Latent Semantic Analysis (JASIS 1990).
    """
    matrix = given.features.matrix
    dimensions = min(DIMENSIONS, min(matrix.shape) - 1)

    def make() -> pl.DataFrame:
        if dimensions < 1:
            return _nothing()
        # A fixed start makes the iteration repeat.
        start = np.random.default_rng(given.seed).standard_normal(min(matrix.shape))
        _, _, terms = scipy.sparse.linalg.svds(matrix.astype(np.float64), dimensions, v0=start)
        placed, asked = matrix @ terms.T, _queries(given) @ terms.T
        return _ranked(given.topics, given.features.doc_ids, (_unit(asked) @ _unit(placed).T).astype(np.float32))

    return _kept(given.folder / f"unlike-latent-{given.key('latent', dimensions)}", make)


def _lexical(given: Unlike) -> pl.DataFrame:
    """BM25 over all words, for pools that hold no lexical run."""

    def make() -> pl.DataFrame:
        queries = [TopicQuery(*each) for each in given.topics.items()]
        return search(given.index, queries, BM25(), k=RESULTS).run.select("topic_id", "doc_id", "score")

    return _kept(given.folder / f"unlike-lexical-{given.key('lexical')}", make)


def _feedback(given: Unlike) -> pl.DataFrame:
    """The query expanded by random documents of the lower part of its own ranking, which are mostly not relevant."""

    def make() -> pl.DataFrame:
        matrix, queries = given.features.matrix, _queries(given)
        rows = []
        for number in range(len(given.topics)):
            query = queries[number]
            scores = np.round(np.asarray((matrix @ query.T).todense()).ravel(), 6)
            there = np.argsort(-scores, kind="stable")[slice(*ASTRAY_FROM)]
            draw = np.random.default_rng([given.seed, number])
            drawn = draw.choice(there, min(ASTRAY, len(there)), replace=False) if len(there) else there
            away = scipy.sparse.csr_matrix(matrix[np.sort(drawn)].sum(axis=0))
            both = (1 - ASTRAY_WEIGHT) * _unit(query) + ASTRAY_WEIGHT * _unit(away)
            rows.append(np.asarray((matrix @ both.T).todense(), np.float32).ravel())
        return _ranked(given.topics, given.features.doc_ids, np.array(rows))

    return _kept(given.folder / f"unlike-feedback-{given.key('feedback', ASTRAY, ASTRAY_FROM, ASTRAY_WEIGHT)}", make)


_MAKERS: Final[Mapping[str, Callable[[Unlike], pl.DataFrame]]] = {
    "dense": _dense, "latent": _latent, "lexical": _lexical, "feedback": _feedback,
}  # fmt: skip


def _queries(given: Unlike) -> Any:
    return scipy.sparse.vstack([given.features.vector(text) for text in given.topics.values()], format="csr")


def _unit(vectors: Any) -> Any:
    """Rows of length 1; an empty row stays empty."""
    if scipy.sparse.issparse(vectors):
        norm = float(scipy.sparse.linalg.norm(vectors))
        return vectors / norm if norm else vectors
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


def _ranked(topics: Mapping[str, str], ids: Iterable[str], scores: Scores) -> pl.DataFrame:
    """The best documents of each topic; only those above 0, so that an empty query finds nothing."""
    return pl.concat([_nothing(), *_results(topics, pl.Series(list(ids), dtype=pl.String), np.round(scores, 6))])


def _results(topics: Mapping[str, str], ids: pl.Series, scores: Scores) -> Iterator[pl.DataFrame]:
    for topic_id, row in zip(topics, scores, strict=True):
        best = np.argsort(-row, kind="stable")[:RESULTS]
        best = best[row[best] > 0]
        yield pl.DataFrame(
            {
                "topic_id": pl.repeat(topic_id, len(best), dtype=pl.String, eager=True),
                "doc_id": ids.gather(best),
                "score": row[best].astype(np.float64),
            }
        )


def _nothing() -> pl.DataFrame:
    return pl.DataFrame(schema={"topic_id": pl.String, "doc_id": pl.String, "score": pl.Float64})


def _kept(place: Path, make: Callable[[], pl.DataFrame]) -> pl.DataFrame:
    """A run that lies in a folder; made where it does not."""
    path = place.with_name(f"{place.name}.ipc")  # not .arrow: it is no block of a shard
    run = kept_frame(path)
    if run is None:
        run = make()
        keep_frame(path, run)
    return run
