"""Systems unlike those that were pooled, made from the collection itself without judgments, and tried on it.

Teams of a track are often alike, and a simulation that leaves out one of them then says little of a system that is not.
These systems rank by different evidence: a sentence encoder, a space of few dimensions, the words alone, and a query
that random documents have led astray. Which of them is unlike the runs depends on the runs: the overlap says it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl
import scipy
from numpy.typing import NDArray

from truerank.audits.pool.features import Features
from truerank.audits.pool.inputs import Inputs
from truerank.audits.pool.pools import depth_pool, first_documents
from truerank.audits.pool.standings import (
    ALL_TEAMS,
    COMPLETE,
    Change,
    JudgedSet,
    Judging,
    OfficialStanding,
    RunRanks,
    Scorer,
    Universe,
    change_between,
)
from truerank.audits.pool.stopping import OriginalSize
from truerank.errors import MissingExtraError
from truerank.lexical import BM25, Index, TopicQuery, search
from truerank.sources import open_documents
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
    """What the systems are made from."""

    docs: str
    fingerprint: str
    index: Index
    topics: Mapping[str, str]
    seed: int
    folder: Path
    identity: Mapping[str, Any]

    @cached_property
    def features(self) -> Features:
        return Features.of_index(self.index)

    def key(self, *parts: Any) -> str:
        return digest([dict(self.identity), self.fingerprint, dict(self.topics), self.seed, *parts])[:16]


def make_unlike(
    names: Sequence[str], given: Unlike, progress: Progress, *, optional: bool = True
) -> tuple[dict[str, pl.DataFrame], tuple[str, ...]]:
    """Makes the systems, or finds them in the folder."""
    found, notes = {}, []
    progress.start("making unlike systems", len(names))
    for name in names:
        try:
            found[name] = _MAKERS[name](given)
        except MissingExtraError as error:
            if not optional:
                raise
            notes.append(f"The unlike system {name} was not made: {error}.")
        progress.advance(1)
    return found, tuple(notes)


def _dense(given: Unlike) -> pl.DataFrame:
    """Cosine of the packaged encoder."""
    # Encoding takes nearly all the time: the vectors of finished blocks are kept when the command is killed.
    encoder = CachedEncoder(open_encoder("packaged"), given.folder / "vectors")

    def make() -> pl.DataFrame:
        asked = encoder.encode(list(given.topics.values()))
        ids: list[str] = []
        blocks = [np.zeros((len(given.topics), 0), np.float32)]
        documents = iter(open_documents(given.docs))
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
    named, found = pl.Series("doc_id", list(ids), dtype=pl.String), [_nothing()]
    for topic_id, row in zip(topics, np.round(scores, 6), strict=True):
        best = np.argsort(-row, kind="stable")[:RESULTS]
        best = best[row[best] > 0]
        part = pl.DataFrame([named.gather(best), pl.Series("score", row[best].astype(np.float64))])
        found.append(part.select(pl.lit(topic_id).alias("topic_id"), "doc_id", "score"))
    return pl.concat(found)


def _nothing() -> pl.DataFrame:
    return pl.DataFrame(schema={"topic_id": pl.String, "doc_id": pl.String, "score": pl.Float64})


def _kept(place: Path, make: Callable[[], pl.DataFrame]) -> pl.DataFrame:
    path = place.with_name(f"{place.name}.ipc")  # not .arrow: it is not a block of a shard
    run = kept_frame(path)
    if run is None:
        run = make()
        keep_frame(path, run)
    return run


# Unlike systems tried on a collection: how they stand by its judgments, and by judgments that hold their documents.
#
# An unlike system is left out of the pools. The judgments at hand, official and of every trial, rank it among the
# runs; so do the same judgments with its own first documents added, and all that the assessor knows. What differs is
# what a new system of this kind would lose. A document that the assessor has no grade for counts as not relevant in
# all of them, so that this shows too little; the share of such documents is told.

#: What the changes of unlike systems are called, by the judgments that hold more, and by those at hand with the
#: documents without a grade passed over.
UNLIKE_OWN: Final = "Unlike system, first documents judged"
UNLIKE_COMPLETE: Final = "Unlike system, complete judgments"
UNLIKE_PASSED: Final = "Unlike system, ungraded documents passed over"
UNLIKE: Final = (UNLIKE_OWN, UNLIKE_COMPLETE)
_PREFIX: Final = "unlike "


class UnlikeSystem(NamedTuple):
    """An unlike system beside the pools.

    `first` counts its first documents over all topics, down to the depth of the pools; `pooled` those that some run
    brought into the pools; `ungraded` those that the assessor has no grade for, None where the judgments hold relevant
    rows only, which say nothing of this; `new_relevant` those that are relevant and in no pool.
    """

    name: str
    first: int
    pooled: int
    ungraded: int | None
    new_relevant: int

    @property
    def overlap(self) -> float:
        return self.pooled / self.first if self.first else 0.0


def first_overlaps(pools: Mapping[str, pl.DataFrame]) -> dict[str, float]:
    keys = ["topic_id", "doc_id"]
    shared = {}
    for team, pool in pools.items():
        others = pl.concat(
            [pool.select(keys).head(0), *(other.select(keys) for name, other in pools.items() if name != team)]
        )
        shared[team] = pool.join(others, on=keys, how="semi").height / pool.height if pool.height else 0.0
    return shared


def try_unlike(
    standing: OfficialStanding,
    inputs: Inputs,
    judgings: Sequence[Judging],
    systems: Mapping[str, pl.DataFrame],
    depth: int,
) -> tuple[tuple[UnlikeSystem, ...], tuple[Change, ...]]:
    """Ranks unlike systems by the judgments at hand, and by those that hold their documents."""
    if not systems:
        return (), ()
    firsts = {name: first_documents(run, depth) for name, run in systems.items()}
    trial = _Trial(standing, inputs, systems, firsts)
    official = Judging(OriginalSize.name, 0, ALL_TEAMS, (), standing.official.qrels, 0, 0)
    at_hand = [one for one in judgings if one.rule == OriginalSize.name and one.left_out == ALL_TEAMS]
    complete = next(one for one in judgings if one.rule == COMPLETE)
    pools = depth_pool(inputs.firsts, depth, sparse=inputs.sparse)
    changes = [
        change
        for name in systems
        for judging in (official, *at_hand)
        for change in trial.changes(name, judging, complete)
    ]
    return tuple(trial.system(name, pools) for name in systems), tuple(changes)


class _Trial:
    """The runs and the unlike systems by one scorer, whose documents go on where those of the simulation end."""

    def __init__(
        self,
        standing: OfficialStanding,
        inputs: Inputs,
        systems: Mapping[str, pl.DataFrame],
        firsts: Mapping[str, pl.DataFrame],
    ) -> None:
        self._standing, self._inputs, self._firsts = standing, inputs, firsts
        self._runs = len(standing.scorer.ranks.runs)
        self._at = {name: self._runs + 2 * number for number, name in enumerate(systems)}
        self._graded = inputs.has_non_relevant(standing.scorer.rel)
        first = {
            name: {str(key[0]): tuple(part["doc_id"]) for key, part in frame.group_by("topic_id", maintain_order=True)}
            for name, frame in firsts.items()
        }
        wanted = [
            {doc_id for by_topic in first.values() for doc_id in by_topic.get(topic, ())}
            for topic in standing.universe.topics
        ]
        universe = _extended(standing.universe, inputs, wanted)
        runs = dict(inputs.runs)
        known = pl.DataFrame(
            [(topic, doc_id) for topic, grades in inputs.grades.items() for doc_id in grades],
            {"topic_id": pl.String, "doc_id": pl.String}, orient="row",
        )  # fmt: skip
        for name, run in systems.items():
            runs[f"{_PREFIX}{name}"] = run
            runs[f"{_PREFIX}{name}, graded"] = run.join(
                known, on=["topic_id", "doc_id"], how="semi", maintain_order="left"
            )
        self._scorer = Scorer(RunRanks.of(runs, universe), universe, standing.scorer.measures, standing.scorer.rel)
        numbers = [{doc_id: at for at, doc_id in enumerate(documents)} for documents in universe.documents]
        self._own = {
            name: [
                np.array([numbers[topic][doc_id] for doc_id in by_topic.get(topic_id, ())], np.int32)
                for topic, topic_id in enumerate(universe.topics)
            ]
            for name, by_topic in first.items()
        }

    def changes(self, name: str, judging: Judging, complete: Judging) -> Iterator[Change]:
        """From the judgments that hold the system's documents to those at hand."""
        columns = [*range(self._runs), self._at[name]]
        here = self._means(judging)[:, columns]
        head = judging._replace(left_out=name)
        for rule, means in (
            (UNLIKE_OWN, self._means(judging, self._own[name])),
            (UNLIKE_COMPLETE, self._means(complete)),
        ):
            yield from self._changes(head._replace(rule=rule), means[:, columns], here)
        if self._graded:
            passed = self._means(judging)[:, [*range(self._runs), self._at[name] + 1]]
            yield from self._changes(head._replace(rule=UNLIKE_PASSED), here, passed)

    def system(self, name: str, pools: pl.DataFrame) -> UnlikeSystem:
        first, keys = self._firsts[name], ["topic_id", "doc_id"]
        new = first.join(pools, on=keys, how="anti")
        grades = self._inputs.grades
        ungraded = sum(doc_id not in grades.get(topic, {}) for topic, doc_id in first.select(keys).iter_rows())
        relevant = sum(
            grades.get(topic, {}).get(doc_id, 0) >= self._scorer.rel for topic, doc_id in new.select(keys).iter_rows()
        )
        return UnlikeSystem(name, len(first), len(first) - len(new), ungraded if self._graded else None, relevant)

    def _changes(self, head: Judging, before: NDArray[np.float64], after: NDArray[np.float64]) -> Iterator[Change]:
        names = (*self._standing.scorer.ranks.runs, f"{_PREFIX}{head.left_out}")
        for number, measure in enumerate(self._scorer.names):
            own = np.array([self._runs])
            yield change_between(
                head, names, (measure, self._scorer.ascending[number]), (before[number], after[number]), own
            )

    def _means(self, judging: Judging, own: Sequence[NDArray[np.int32]] | None = None) -> NDArray[np.float64]:
        """The means by a judging of the simulation, perhaps with more documents of each topic; (measures, runs)."""
        sets = []
        for number in judging.qrels:
            judged = self._standing.scorer.judged(int(number))
            if own is not None:
                judged = JudgedSet(judged.topic, np.union1d(judged.documents, own[judged.topic]).astype(np.int32))
            sets.append(self._scorer.number(judged))
        return self._scorer.means(np.array(sets))


def _extended(universe: Universe, inputs: Inputs, wanted: Sequence[set[str]]) -> Universe:
    """The universe with further documents at the end of each topic, so that the numbers of the others stay."""
    documents, grades = [], []
    for topic, known, levels, more in zip(universe.topics, universe.documents, universe.grades, wanted, strict=True):
        new = sorted(more - set(known))
        documents.append((*known, *new))
        said = inputs.grades[topic]
        grades.append(np.concatenate([levels, np.array([said.get(doc_id, 0) for doc_id in new], np.int64)]))
    return replace(universe, documents=tuple(documents), grades=tuple(grades))
