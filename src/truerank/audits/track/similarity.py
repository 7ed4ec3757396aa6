"""How alike runs are by the topics on which they do well: a plane of many runs, the correlations of few."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from truerank.arrays import Floats
from truerank.errors import MissingExtraError
from truerank.measures import Evaluation

#: Below this many runs neighbourhoods mean nothing: there, similarities are shown themselves.
FEWEST_RUNS: Final = 10
_PERPLEXITY: Final = 30.0
_DIGITS: Final = 4
#: A vector of deviations from its mean that is shorter than this is rounding.
_CONSTANT: Final = 1e-12


class RunMap(NamedTuple):
    """Places of runs in a plane, which has no unit: only who is near whom counts.

    `points` has the shape (runs, 2); `topics` is the length of the vectors behind it.
    """

    points: Floats
    topics: int
    perplexity: float
    seed: int


class RunSimilarities(NamedTuple):
    """Pearson's correlation of the scores by topic of each pair of runs, shape (runs, runs); NaN where one is constant.

    `topics` is the number of topics behind each of them.
    """

    values: Floats
    topics: int


def run_similarities(evaluation: Evaluation, measure: str) -> RunSimilarities | None:
    """How alike runs are: high where they do well and badly on the same topics.

    Args:
        evaluation: the scores; topics that a run was not scored on are left out.
        measure: one of its measures.

    Returns:
        The correlations, in the order of the evaluation's runs; None for fewer than two runs or three topics.
    """
    vectors = _vectors(evaluation, measure)
    runs, topics = vectors.shape
    if runs < 2 or topics < 3:
        return None
    centred = vectors - vectors.mean(axis=1, keepdims=True)
    lengths = np.sqrt((centred**2).sum(axis=1))
    centred[lengths < _CONSTANT] = np.nan
    with np.errstate(invalid="ignore", divide="ignore"):
        values: Floats = np.clip(centred @ centred.T / np.outer(lengths, lengths), -1.0, 1.0)
    return RunSimilarities(values.round(_DIGITS), topics)


def _vectors(evaluation: Evaluation, measure: str) -> Floats:
    """The scores of the topics that all runs were scored on, shape (runs, topics)."""
    vectors = np.stack([evaluation.of(run, measure) for run in evaluation.runs])
    known: Floats = vectors[:, np.isfinite(vectors).all(axis=0)]
    return known


def run_map(evaluation: Evaluation, measure: str, *, seed: int = 0, perplexity: float | None = None) -> RunMap | None:
    """Lays runs out in a plane by their scores on each topic, with t-SNE.

    The gradient is computed exactly, in one thread and from a start by principal components, so that the same scores
    give the same places.

    Args:
        evaluation: the scores; topics that a run was not scored on are left out.
        measure: one of its measures.
        seed: of the layout.
        perplexity: how many neighbours count; by default 30, but at most a third of the other runs.

    Returns:
        The places, in the order of the evaluation's runs; None for fewer than ten runs or two topics.

    Raises:
        MissingExtraError: scikit-learn is not installed.

    Source: Craswell et al.: Overview of the TREC 2019 Deep Learning Track, section 4, Figure 4.
    """
    vectors = _vectors(evaluation, measure)
    runs, topics = vectors.shape
    if runs < FEWEST_RUNS or topics < 2:
        return None
    try:
        from sklearn.manifold import TSNE
        from threadpoolctl import threadpool_limits
    except ImportError as error:
        raise MissingExtraError("the map of runs", "track") from error
    bound = (runs - 1) / 3.0
    chosen = min(_PERPLEXITY, bound) if perplexity is None else min(perplexity, bound)
    with threadpool_limits(limits=1):
        layout = TSNE(n_components=2, perplexity=chosen, init=_start(vectors), method="exact", random_state=seed)
        points = layout.fit_transform(vectors)
    places: Floats = np.asarray(points, dtype=np.float64).round(_DIGITS)
    return RunMap(places, topics, chosen, seed)


def _start(vectors: Floats) -> Floats:
    """The first two principal components, as small as t-SNE wants them, with signs that do not depend on LAPACK.

    Equal vectors would never part: each run is moved by less than any difference that counts.
    """
    centred = vectors - vectors.mean(axis=0)
    left, sizes, right = np.linalg.svd(centred, full_matrices=False)
    signs = np.sign(right[np.arange(len(right)), np.abs(right).argmax(axis=1)])
    start = (left * sizes * np.where(signs == 0, 1.0, signs))[:, :2]
    spread = float(start[:, 0].std())
    steps = np.linspace(-1e-7, 1e-7, len(start))
    scaled: Floats = (start / spread if spread > 0 else start) * 1e-4 + steps[:, None]
    return scaled
