"""The usual measures, computed over arrays for all topics of a run at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
from ir_measures.measures.base import Measure
from numpy.typing import NDArray

from truerank.arrays import Floats, Ints
from truerank.measures.rankings import GradeTable, Hits
from truerank.options import Scoring

#: How many results MFR and HMFR look at where neither a cutoff nor a depth is given.
FIRST_RANK_DEPTH: Final = 1000


class RankedJudgments(NamedTuple):
    """What a measure sees: the judgments, the hits under the tie policy and those by the rank column, the policy."""

    judgments: GradeTable
    hits: Hits
    by_rank: Hits | None
    policy: Scoring


def computes(measure: Measure) -> bool:
    """Whether a measure is computed here; every other one goes to ir_measures."""
    if hasattr(measure, "values"):
        return True
    parameters = measure.params
    usual = parameters.get("rel", 0) >= 0 and parameters.get("beta", 1.0) == 1.0
    return measure.NAME in _MEASURES and usual and (measure.NAME != "RBP" or "rel" in parameters)


def score(measure: Measure, view: RankedJudgments) -> Floats:
    """The value of every topic, shape (topics,); a topic that the run lacks has an empty ranking.

    Source: trec_eval, whose printed values these are, to the last digit.
    """
    if measure.params.get("judged_only"):
        view = view._replace(hits=view.hits.judged_only())
    values: Floats = measure.values(view) if hasattr(measure, "values") else _MEASURES[measure.NAME](measure, view)
    return values


def no_relevant_rank(measure: Measure, policy: Scoring) -> float:
    """The rank that MFR or HMFR counts where nothing relevant is found."""
    if "none" in measure.params:
        return float(measure.params["none"])
    return float("inf") if measure.NAME == "HMFR" else float(_first_rank_cutoff(measure, policy) + 1)


def _ndcg(measure: Measure, view: RankedJudgments) -> Floats:
    return _normalised(measure, view, lambda grades, ranks: gains_of(measure, grades) / np.log2(ranks + 2))


def _dcg(measure: Measure, view: RankedJudgments) -> Floats:
    hits = view.hits
    kept = _within(hits.rank, measure)
    discounted = gains_of(measure, hits.relevance[kept]) / np.log2(hits.rank[kept] + 2)
    return np.bincount(hits.topic[kept], discounted, len(view.judgments.topics)).astype(np.float64)


def gains_of(measure: Measure, grades: Ints) -> Floats:
    """The gain of each grade in nDCG or DCG."""
    gains = _gains(measure, grades)
    return np.exp2(gains) - 1 if measure.params.get("dcg") == "exp-log2" else gains


def _ncg(measure: Measure, view: RankedJudgments) -> Floats:
    return _normalised(measure, view, lambda grades, ranks: _gains(measure, grades))


def _normalised(measure: Measure, view: RankedJudgments, gain: Callable[[Ints, Ints], Floats]) -> Floats:
    """The gain of the ranking over that of the best possible one, both down to the cutoff."""
    hits, judgments, topics = view.hits, view.judgments, len(view.judgments.topics)
    kept = _within(hits.rank, measure)
    found = np.bincount(hits.topic[kept], gain(hits.relevance[kept], hits.rank[kept]), topics)
    ideal = judgments.once(("ideal", str(measure)), lambda: _ideal(measure, judgments, gain))
    return _ratio(found, ideal)


def _ideal(measure: Measure, judgments: GradeTable, gain: Callable[[Ints, Ints], Floats]) -> Floats:
    """The gain of the best ranking down to the cutoff, by topic."""
    by_gains = ("order", str(measure.params.get("gains")))
    order = judgments.once(by_gains, lambda: judgments.best_first(_gains(measure, judgments.relevance)))
    counts = np.bincount(judgments.topic, minlength=len(judgments.topics))
    place = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    kept = _within(place, measure)
    best = order[kept]
    gains = gain(judgments.relevance[best], place[kept])
    return np.bincount(judgments.topic[best], gains, len(judgments.topics)).astype(np.float64)


def _gains(measure: Measure, grades: Ints) -> Floats:
    """The gain of each grade: what `gains=` says, else the grade; nothing below 0."""
    mapped = grades
    for grade, gain in (measure.params.get("gains") or {}).items():
        mapped = np.where(grades == grade, gain, mapped)
    return np.maximum(mapped, 0).astype(np.float64)


def _precision(measure: Measure, view: RankedJudgments) -> Floats:
    return _relevant(measure, view, measure["cutoff"]) / float(measure["cutoff"])


def _recall(measure: Measure, view: RankedJudgments) -> Floats:
    return _ratio(_relevant(measure, view, measure["cutoff"]), _possible(measure, view))


def _success(measure: Measure, view: RankedJudgments) -> Floats:
    return (_relevant(measure, view, measure["cutoff"]) > 0).astype(np.float64)


def _average_precision(measure: Measure, view: RankedJudgments) -> Floats:
    topic, rank = _relevant_hits(measure, view)
    kept = _within(rank, measure)
    topic, rank = topic[kept], rank[kept]
    sums = np.bincount(topic, _ordinals(topic) / (rank + 1), len(view.judgments.topics))
    return _ratio(sums, _possible(measure, view))


def _reciprocal_rank(measure: Measure, view: RankedJudgments) -> Floats:
    return 1 / _first_ranks(measure, view, measure.params.get("cutoff"))


def _ms_marco(measure: Measure, view: RankedJudgments) -> Floats:
    if view.by_rank is None:
        raise ValueError("RR_MSMARCO needs the hits by the rank column")
    # The sparse judgments of MS MARCO have one grade, whatever counts as relevant elsewhere.
    by_rank = view._replace(hits=view.by_rank, policy=Scoring(rel=1))
    return 1 / _first_ranks(measure, by_rank, measure.params.get("cutoff", 10))


def _first_rank(measure: Measure, view: RankedJudgments) -> Floats:
    ranks = _first_ranks(measure, view, _first_rank_cutoff(measure, view.policy))
    return np.where(np.isinf(ranks), no_relevant_rank(measure, view.policy), ranks)


def _first_rank_cutoff(measure: Measure, policy: Scoring) -> int:
    return int(measure.params.get("cutoff") or policy.depth or FIRST_RANK_DEPTH)


def _rank_biased_precision(measure: Measure, view: RankedJudgments) -> Floats:
    """Source: Moffat and Zobel (2008), with binary relevance."""
    topic, rank = _relevant_hits(measure, view)
    kept = _within(rank, measure)
    persistence = float(measure["p"])
    weights: Floats = (1 - persistence) * np.power(persistence, rank[kept])
    return np.bincount(topic[kept], weights, len(view.judgments.topics)).astype(np.float64)


def _r_precision(measure: Measure, view: RankedJudgments) -> Floats:
    topic, rank = _relevant_hits(measure, view)
    possible = _possible(measure, view)
    return _ratio(np.bincount(topic[rank < possible[topic]], minlength=len(possible)), possible)


def _binary_preference(measure: Measure, view: RankedJudgments) -> Floats:
    """Source: Buckley and Voorhees (2004), as in trec_eval: judged non-relevant results above each relevant one."""
    level, topics = _level(measure, view), len(view.judgments.topics)
    kept = view.hits.relevance >= 0
    topic, relevant = view.hits.topic[kept], view.hits.relevance[kept] >= level
    above = _counted(topic, ~relevant)[relevant]
    topic = topic[relevant]
    possible = _possible(measure, view)
    judged = np.bincount(view.judgments.topic[view.judgments.relevance >= 0], minlength=topics)
    bound = np.minimum(possible, judged - possible)
    penalty = _ratio(np.minimum(above, possible[topic]), bound[topic])
    return _ratio(np.bincount(topic, 1 - penalty, topics), possible)


def _interpolated_precision(measure: Measure, view: RankedJudgments) -> Floats:
    """The best precision at any rank from the wanted recall on."""
    topic, rank = _relevant_hits(measure, view)
    possible, ordinal = _possible(measure, view), _ordinals(topic)
    # trec_eval rounds the number of relevant documents that the recall stands for in this way.
    needed = np.floor(measure["recall"] * possible + 0.9).astype(np.int64)
    best = np.zeros(len(possible))
    kept = ordinal >= needed[topic]
    np.maximum.at(best, topic[kept], ordinal[kept] / (rank[kept] + 1))
    return best


def _judged(measure: Measure, view: RankedJudgments) -> Floats:
    hits = view.hits
    kept = _within(hits.rank, measure)
    found = np.bincount(hits.topic[kept], minlength=len(hits.results))
    return _ratio(found, np.minimum(hits.results, measure.params.get("cutoff", np.iinfo(np.int64).max)))


def _set_precision(measure: Measure, view: RankedJudgments) -> Floats:
    size = view.hits.results
    size = np.minimum(size, _possible(measure, view)) if measure.params.get("relative") else size
    return _ratio(_relevant(measure, view), size)


def _set_recall(measure: Measure, view: RankedJudgments) -> Floats:
    return _ratio(_relevant(measure, view), _possible(measure, view))


def _set_f(measure: Measure, view: RankedJudgments) -> Floats:
    precision, recall = _set_precision(measure, view), _set_recall(measure, view)
    return _ratio(2 * precision * recall, precision + recall)


def _set_average_precision(measure: Measure, view: RankedJudgments) -> Floats:
    relevant = _relevant(measure, view)
    return _ratio(relevant * relevant, view.hits.results * _possible(measure, view))


def _number_retrieved(measure: Measure, view: RankedJudgments) -> Floats:
    return _relevant(measure, view) if "rel" in measure.params else view.hits.results.astype(np.float64)


def _number_relevant(measure: Measure, view: RankedJudgments) -> Floats:
    return _possible(measure, view).astype(np.float64)


def _number_of_queries(measure: Measure, view: RankedJudgments) -> Floats:
    return np.ones(len(view.judgments.topics))


def _level(measure: Measure, view: RankedJudgments) -> int:
    return int(measure.params.get("rel", view.policy.rel))


def _within(ranks: Ints, measure: Measure) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = ranks < measure.params.get("cutoff", np.inf)
    return found


def _relevant_hits(measure: Measure, view: RankedJudgments) -> tuple[Ints, Ints]:
    """Topic and rank of the relevant results."""
    kept = view.hits.relevance >= max(0, _level(measure, view))
    return view.hits.topic[kept], view.hits.rank[kept]


def _relevant(measure: Measure, view: RankedJudgments, cutoff: int | None = None) -> Floats:
    """How many results down to the cutoff are relevant, by topic."""
    topic, rank = _relevant_hits(measure, view)
    topic = topic if cutoff is None else topic[rank < cutoff]
    return np.bincount(topic, minlength=len(view.judgments.topics)).astype(np.float64)


def _possible(measure: Measure, view: RankedJudgments) -> Ints:
    """How many judged documents are relevant, by topic."""
    judgments, level = view.judgments, max(0, _level(measure, view))
    return judgments.once(
        ("possible", level),
        lambda: np.bincount(judgments.topic[judgments.relevance >= level], minlength=len(judgments.topics)),
    )


def _first_ranks(measure: Measure, view: RankedJudgments, cutoff: int | None) -> Floats:
    """The rank, from 1, of the first relevant result down to the cutoff; infinite where there is none."""
    topic, rank = _relevant_hits(measure, view)
    first = np.full(len(view.judgments.topics), np.inf)
    starts = _starts(topic)
    first[topic[starts]] = rank[starts] + 1
    return first if cutoff is None else np.where(first <= cutoff, first, np.inf)


def _ordinals(topic: Ints) -> Ints:
    """1, 2, … within each topic of sorted topics."""
    return _counted(topic, np.ones(len(topic), np.bool_))


def _counted(topic: Ints, flags: NDArray[np.bool_]) -> Ints:
    """How many flags are set within the same topic up to each place, of sorted topics."""
    total = np.cumsum(flags)
    starts = _starts(topic)
    before: Ints = (total - flags)[starts]
    found: Ints = total - np.repeat(before, np.diff(np.append(starts, len(topic))))
    return found


def _starts(topic: Ints) -> Ints:
    """Where each of sorted topics begins."""
    return np.flatnonzero(np.diff(topic, prepend=-1))


def _ratio(part: NDArray[Any], whole: NDArray[Any]) -> Floats:
    """The ratio, 0 where there is nothing to divide by."""
    found: Floats = np.divide(part, whole, out=np.zeros(len(part)), where=whole > 0)
    return found


_MEASURES: Final[dict[str, Callable[[Measure, RankedJudgments], Floats]]] = {
    "nDCG": _ndcg,
    "NCG": _ncg,
    "DCG": _dcg,
    "P": _precision,
    "R": _recall,
    "Success": _success,
    "AP": _average_precision,
    "RR": _reciprocal_rank,
    "RR_MSMARCO": _ms_marco,
    "MFR": _first_rank,
    "HMFR": _first_rank,
    "RBP": _rank_biased_precision,
    "Rprec": _r_precision,
    "Bpref": _binary_preference,
    "IPrec": _interpolated_precision,
    "Judged": _judged,
    "SetP": _set_precision,
    "SetR": _set_recall,
    "SetF": _set_f,
    "SetAP": _set_average_precision,
    "NumRet": _number_retrieved,
    "NumRelRet": _relevant,
    "NumRel": _number_relevant,
    "NumQ": _number_of_queries,
}
