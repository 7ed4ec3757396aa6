"""Propose: judgments that the runs contradict, for people to judge again.

A document that was judged relevant is suspect where the runs rank it like documents that were not, and the other way
round. A logistic regression, cross-fitted over topics, tells the relevant documents of a topic from the others of its
pool: by the ranks in each family of runs, beside those of the topic's other relevant documents, and by how alike they
are to these. Two documents are alike if the runs rank them for the same other topics and, where texts are given, if
they have words in common.

How many proposals are wrong is not known. It is estimated by flips: what if a stated share of the relevant judgments
were of random documents of the pool? The scores of all these show how many of such flips a threshold would find.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl
import scipy

from truerank.arrays import Flags, Floats, Ints
from truerank.audits.collection.instances import Instances, instances
from truerank.audits.collection.texts import plain_words
from truerank.measures.folds import folds
from truerank.measures.logistic import logistic_slopes
from truerank.text.words import FUNCTION_WORDS, stem

#: Runs that are alike by an RBO from here on are one family; so many families are needed, and so many topics.
ALIKE, FEWEST, FEWEST_TOPICS = 0.8, 5, 10
#: Suspects are proposed while the expected share of wrong ones is at least this.
WRONG: Final = 0.5
#: Ranks that make the pool, and that are looked at; judged topics, and topics of a document's profile, at most.
_POOL, _DEEPEST, _TOPICS, _PROFILE = 100, 1000, 2000, 1000
#: The share of flips that are of documents from the pools of all topics, by ranks alone, which hardly tell these from
#: relevant documents that no system finds, and by words, where nothing says which kind is likelier; so many are drawn
#: for a relevant one.
_FOREIGN, _FOREIGN_WORDS, _STRANGERS = 0.1, 0.5, 10
#: Of RBO: the weight of a rank falls by this factor.
_PERSISTENCE: Final = 0.9
_FOLDS: Final = 5
#: Ranks at which the slope of a feature may change.
_KNOTS: Final = (5, 20, 80, 320)
#: Documents of the pool that a topic brings for each of its relevant ones when the model is fitted, at most.
_OTHERS: Final = 50
_PRIOR: Final = 3.0
#: Candidates, and the share of flips, above a score that say how many can be wrong.
_TOLD, _SEEN = 10, 0.05
#: Runs that allow more than this to be wrong say nothing of it.
_ALLOWED: Final = 0.4
#: One in so many proposals may be of documents that nobody judged relevant, at least.
_PART: Final = 4
#: Texts of so many documents are compared at most.
_TEXTS: Final = 200_000
_KEYS: Final = ["topic_id", "doc_id"]
#: Reads the texts of some documents, by id.
Texts = Callable[[Collection[str]], Mapping[str, str]]
#: Its kinds of finding.
KINDS: Final = ("suspect-relevant", "suspect-other")


class Proposals(NamedTuple):
    """Suspects of one kind, the likeliest first.

    Attributes:
        rows: columns topic_id, doc_id, grade (null where it was not judged), score (log odds), expected: the share of
            wrong ones expected among it and those before it.
        of: how many were looked at.
        detected: the share of flips that score as high as the last proposal; 0 without proposals.
        rate: the share of the relevant judgments that is taken to be wrong for `expected`.
        allowed: how large the runs let that share be: as if all that scores high were wrong.
    """

    rows: pl.DataFrame
    of: int
    detected: float
    rate: float
    allowed: float


@dataclass(frozen=True)
class Suspects:
    """Judgments that the runs contradict.

    Attributes:
        refused: why nothing was looked for; empty where it was.
        families: the runs of each family.
        rbo: the mean RBO of two runs; None with fewer than two.
        topics: how many were looked at.
        share: the share of the relevant judgments that is taken to be wrong.
        relevant: relevant documents that the runs rank like others.
        others: documents that the runs rank like relevant ones.
        texts: whether the words of documents and topics were compared, too.
    """

    refused: str
    families: tuple[tuple[str, ...], ...]
    rbo: float | None
    topics: int
    share: float
    relevant: Proposals | None = None
    others: Proposals | None = None
    texts: bool = False

    def facts(self) -> dict[str, Any]:
        """What `summary.json` holds."""
        about: dict[str, Any] = {
            "refused": self.refused, "families": [list(one) for one in self.families], "rbo": self.rbo,
            "topics": self.topics, "share": self.share, "texts": self.texts,
        }  # fmt: skip
        for name, found in (("relevant", self.relevant), ("others", self.others)):
            if found is not None:
                expected = float(found.rows["expected"][-1]) if len(found.rows) else None
                about[name] = {
                    "proposed": len(found.rows), "of": found.of, "expected": expected, "detected": found.detected,
                    "rate": found.rate, "allowed": found.allowed,
                }  # fmt: skip
        return about

    def instances(self) -> Iterator[Instances]:
        """The proposals as findings."""
        for kind, found in zip(KINDS, (self.relevant, self.others), strict=True):
            if found is not None:
                grade = pl.when(pl.col("grade").is_null()).then(pl.lit("not judged"))
                place = pl.int_range(1, pl.len() + 1)
                share = (100 * pl.col("expected")).round().cast(pl.Int64)
                said = grade.otherwise(pl.format("grade {}", "grade"))
                if_so = f"if {found.rate:.0%} of the relevant judgments were of random documents"
                detail = pl.format(f"{{}}; proposal {{}}; {if_so}, {{}}% of those so far are wrong", said, place, share)
                yield instances(kind, found.rows.with_columns(detail=detail), found.of)

    def run(self) -> str:
        """All proposals as a TREC run, for `judge new`: by topic, the likeliest first, each kind in turn."""
        parts = [found.rows.with_columns(kind=at, place=pl.int_range(pl.len())) for at, found in
                 enumerate((self.relevant, self.others)) if found is not None]  # fmt: skip
        if not parts:
            return ""
        rows = pl.concat(parts).sort("topic_id", "place", "kind", maintain_order=True)
        rank = pl.int_range(1, pl.len() + 1).over("topic_id")
        line = pl.format("{} Q0 {} {} {} suspects\n", "topic_id", "doc_id", rank, pl.len().over("topic_id") - rank + 1)
        return "".join(rows.select(line.alias("line"))["line"])


def suspects(
    runs: Mapping[str, pl.DataFrame],
    qrels: pl.DataFrame,
    *,
    texts: Texts | None = None,
    topics: Mapping[str, str] | None = None,
    rel: int = 1,
    share: float = 0.05,
    seed: int = 0,
) -> Suspects:
    """Which judgments runs of several families contradict.

    Args:
        runs: by name, columns topic_id, doc_id, rank.
        qrels: columns topic_id, doc_id, relevance, one row for each pair.
        texts: of documents; compared where `topics` are given, too.
        topics: texts of topics, by id.
        share: the share of the relevant judgments that is taken to be wrong.
        seed: of the folds, and of topics and documents that are drawn.

    Returns:
        The proposals, or why there are none: fewer than five families, or than ten topics.

    Source: Webber, Moffat, Zobel (2010) for RBO; Elkan, Noto (KDD 2008) for a classifier of labelled against unlabelled
    documents.
    """
    asked = qrels.filter(pl.col("relevance") >= rel)["topic_id"].unique().sort()
    if len(asked) > _TOPICS:
        asked = asked.gather(np.sort(np.random.default_rng(seed).choice(len(asked), _TOPICS, replace=False)))
    looked = _Looked.of(runs, qrels.join(asked.to_frame(), on="topic_id", how="semi"), rel, seed)
    alike = looked.alike()
    families = _families(alike)
    named = tuple(tuple(looked.names[at] for at in one) for one in families)
    rbo = float(np.mean(alike[np.triu_indices(len(alike), 1)])) if len(alike) > 1 else None
    refused = ""
    if len(named) < FEWEST:
        refused = (
            f"Runs whose first results have an RBO of {ALIKE:g} or more are one family: these {len(runs)} make "
            f"{len(named)}, and {FEWEST} are needed."
        )
    elif len(looked.topics) < FEWEST_TOPICS:
        refused = f"{len(looked.topics)} topics with relevant documents and results: {FEWEST_TOPICS} are needed."
    elif not (looked.pooled & ~looked.relevant).any():
        refused = "The runs return no document that is not judged relevant."
    if refused:
        return Suspects(refused, named, rbo, len(looked.topics), share)
    words = None
    if texts is not None and topics and looked.rows["doc_id"].n_unique() <= _TEXTS:
        words = _Words.of(looked, texts(looked.rows["doc_id"].unique().to_list()), topics)
    scores, flips = _scored(looked, families, words, seed)
    relevant, others = looked.relevant, looked.pooled & ~looked.relevant
    # A relevant document that is in no pool cannot be missed there: it is not a flip of the other kind.
    missed = (relevant & looked.pooled).astype(np.float64) / float(relevant.sum())
    doubted, missing = (
        _proposed(looked.rows, some, own, of, share=share, relevant=int(relevant.sum()), rising=rising)
        # What is not judged may be relevant beyond any share: there the runs allow more than is wrong.
        for some, own, of, rising in ((relevant, scores, flips / flips.sum(), True), (others, -scores, missed, False))
    )
    # All proposals together are no more than that share of the judgments; a part of them is kept for each kind.
    room = int(share * looked.rows["grade"].count())
    kept = min(len(missing.rows), max(room // _PART, room - len(doubted.rows)))
    doubted = doubted._replace(rows=doubted.rows.head(room - kept))
    missing = missing._replace(rows=missing.rows.head(kept))
    return Suspects("", named, rbo, len(looked.topics), share, doubted, missing, words is not None)


@dataclass(frozen=True, eq=False)
class _Looked:
    """The pool and the relevant documents of each topic, with the rank in each run, 0 where a run lacks it.

    `rows` has topic_id, doc_id, grade; `ranks` shape (rows, runs); `deepest` is the depth of the runs; `strange` are
    documents that were drawn from the pools of all topics.
    """

    names: tuple[str, ...]
    rows: pl.DataFrame
    ranks: Floats
    relevant: Flags
    strange: Flags
    deepest: int
    runs: tuple[pl.DataFrame, ...]

    @classmethod
    def of(cls, runs: Mapping[str, pl.DataFrame], qrels: pl.DataFrame, rel: int, seed: int) -> _Looked:
        first = [
            run.select(*_KEYS, pl.col("rank").rank("ordinal").over("topic_id").alias("rank"))
            .filter(pl.col("rank") <= _DEEPEST)
            .unique(_KEYS, keep="first", maintain_order=True)
            for run in runs.values()
        ]
        judged = qrels.select(*_KEYS, pl.col("relevance").alias("grade"))
        inside = [run.join(judged.select("topic_id").unique(), on="topic_id", how="semi") for run in first]
        pool = [run.filter(pl.col("rank") <= _POOL).select(_KEYS) for run in inside]
        relevant = judged.filter(pl.col("grade") >= rel).select(_KEYS).sort(_KEYS)
        every = pl.concat([one["doc_id"] for one in pool]).unique().sort()
        strange = relevant.head(0)
        if len(every):
            drawn = np.random.default_rng(seed).integers(len(every), size=len(relevant) * _STRANGERS)
            asked = relevant["topic_id"].gather(np.repeat(np.arange(len(relevant)), _STRANGERS))
            strange = pl.DataFrame({"topic_id": asked, "doc_id": every.gather(drawn)})
        rows = pl.concat([*pool, relevant, strange]).unique()
        rows = rows.join(judged, on=_KEYS, how="left").sort(_KEYS)
        rows = rows.join(strange.unique().with_columns(strange=True), on=_KEYS, how="left", maintain_order="left")
        for at, run in enumerate(inside):
            rows = rows.join(run.rename({"rank": f"rank {at}"}), on=_KEYS, how="left", maintain_order="left")
        ranks = rows.select(pl.col("^rank .*$").fill_null(0)).to_numpy().astype(np.float64)
        # A topic that no run answers shows nothing.
        answered = rows.filter(pl.Series(ranks.any(axis=1), dtype=pl.Boolean))["topic_id"].unique()
        kept = rows["topic_id"].is_in(answered.implode())
        rows, ranks = rows.filter(kept), ranks[kept.to_numpy()]
        labels = (rows["grade"].fill_null(rel - 1) >= rel).to_numpy()
        deepest = int(ranks.max(initial=0.0))
        foreign: Flags = rows["strange"].fill_null(False).to_numpy().astype(np.bool_)
        return cls(tuple(runs), rows.select(*_KEYS, "grade"), ranks, labels, foreign, deepest, tuple(first))

    @cached_property
    def pooled(self) -> Flags:
        return np.asarray(((self.ranks > 0) & (self.ranks <= _POOL)).any(axis=1))

    @cached_property
    def topics(self) -> tuple[str, ...]:
        return tuple(self.rows["topic_id"].unique(maintain_order=True))

    @cached_property
    def topic(self) -> Ints:
        """The number of each row's topic; rows of a topic stand together."""
        return self.rows["topic_id"].rank("dense").to_numpy().astype(np.int64) - 1

    @cached_property
    def parts(self) -> list[Ints]:
        """The rows of each topic."""
        return np.split(np.arange(len(self.topic)), np.flatnonzero(np.diff(self.topic)) + 1)

    def alike(self) -> Floats:
        """The mean RBO of each two runs over the topics that both answer, shape (runs, runs)."""
        runs = len(self.names)
        depth = min(_POOL, max(1, self.deepest))
        tail = (1 - _PERSISTENCE) / _PERSISTENCE * _PERSISTENCE ** np.arange(1, depth + 1) / np.arange(1, depth + 1)
        # What a document adds that both lists hold from a depth on: RBO, as if the lists went on as they did.
        weight = np.append(np.cumsum(tail[::-1])[::-1] + _PERSISTENCE**depth / depth, 0.0)
        places = np.where((self.ranks > 0) & (self.ranks <= depth), self.ranks, depth + 1).astype(np.int64) - 1
        answers = np.zeros((len(self.topics), runs), dtype=bool)
        np.logical_or.at(answers, self.topic, places < depth)
        found = np.eye(runs)
        for one in range(runs):
            for other in range(one):
                both = int((answers[:, one] & answers[:, other]).sum())
                total = float(weight[np.maximum(places[:, one], places[:, other])].sum())
                found[one, other] = found[other, one] = total / both if both else 0.0
        return found


@dataclass(frozen=True, eq=False)
class _Words:
    """Content words of documents and topics, weighted by tf and idf, a row of length one for each document and topic.

    `document` is the row of each pair's document.
    """

    documents: Any
    topics: Any
    document: Ints

    @classmethod
    def of(cls, looked: _Looked, texts: Mapping[str, str], topics: Mapping[str, str]) -> _Words:
        ids = looked.rows["doc_id"].unique().sort()
        place = pl.DataFrame({"doc_id": ids, "place": np.arange(len(ids))})
        stems, numbers = dict[str, str](), dict[str, int]()
        rows, columns, counts = list[int](), list[int](), list[int]()
        for row, text in enumerate(
            [*(texts.get(doc, "") for doc in ids), *(topics.get(one, "") for one in looked.topics)]
        ):
            found = Counter(stems.setdefault(w, stem(w)) for w in plain_words(text) if w not in FUNCTION_WORDS)
            rows += [row] * len(found)
            columns += [numbers.setdefault(word, len(numbers)) for word in found]
            counts += found.values()
        shape = (len(ids) + len(looked.topics), max(1, len(numbers)))
        matrix = scipy.sparse.csr_matrix((1 + np.log(np.array(counts, np.float64)), (rows, columns)), shape=shape)
        held = np.bincount(matrix[: len(ids)].indices, minlength=shape[1])
        matrix = matrix @ scipy.sparse.diags_array(np.log((1 + len(ids)) / (1 + held)) + 1)
        length = np.sqrt(np.asarray(matrix.multiply(matrix).sum(axis=1)).ravel())
        matrix = scipy.sparse.diags_array(1 / np.maximum(length, 1e-9)) @ matrix
        document = looked.rows.select("doc_id").join(place, on="doc_id", how="left", maintain_order="left")["place"]
        matrix = matrix.tocsr()
        return cls(matrix[: len(ids)], matrix[len(ids) :], document.to_numpy())

    def alike(self, looked: _Looked, without: Ints) -> Floats:
        """How alike a document is to the topic's other relevant ones, as `_likeness` has it, and to the topic."""
        found = np.zeros((len(looked.rows), 4))
        for number, own in enumerate(looked.parts):
            words = self.documents[self.document[own]]
            good = np.flatnonzero(looked.relevant[own])
            found[own, 3] = (words @ self.topics[[number]].T).toarray()[:, 0]
            if len(good) > 1:
                found[own, :3] = _nearest((words @ words[good].T).toarray(), without[own])
        return found


def _families(alike: Floats) -> list[list[int]]:
    """Runs that are like the first one of a family belong to it."""
    families: list[list[int]] = []
    for run in range(len(alike)):
        own = next((family for family in families if alike[family[0], run] >= ALIKE), None)
        if own is None:
            families.append([run])
        else:
            own.append(run)
    return families


def _scored(
    looked: _Looked, families: Sequence[Sequence[int]], words: _Words | None, seed: int
) -> tuple[Floats, Floats]:
    """By row the log odds of being no relevant document, cross-fitted over topics, and how many flips it stands for."""
    features = _features(looked, families, words, seed)
    relevant, draw = looked.relevant, np.random.default_rng(seed)
    weights, fitted = np.zeros(len(features)), np.zeros(len(features), dtype=bool)
    flips = np.zeros(len(features))
    foreign = _FOREIGN if words is None else _FOREIGN_WORDS
    for own in looked.parts:
        others = own[looked.pooled[own] & ~relevant[own]]
        good = own[relevant[own]]
        if not len(others) or not len(good):
            continue
        weights[good], fitted[good] = 1.0, True
        strange = own[looked.strange[own] & ~relevant[own]]
        for some, part in ((others, 1.0 - foreign * bool(len(strange))), (strange, foreign)):
            if len(some):
                drawn = draw.choice(some, min(len(some), _OTHERS * len(good)), replace=False)
                flips[some] += len(good) * part / len(some)
                weights[drawn] += len(good) * part / len(drawn)
                fitted[drawn] = True
    scores = np.zeros(len(features))
    number = {topic: at for at, topic in enumerate(looked.topics)}
    for fold in folds(looked.topics, _FOLDS, seed):
        held = np.isin(looked.topic, [number[topic] for topic in fold])
        used = np.flatnonzero(fitted & ~held)
        middle, spread = features[used].mean(axis=0), features[used].std(axis=0)
        columns = np.column_stack([np.ones(len(features)), (features - middle) / np.where(spread > 0, spread, 1.0)])
        slopes = logistic_slopes(columns[used], (~relevant[used]).astype(np.float64), weights[used], _PRIOR)
        scores[held] = columns[held] @ slopes
    return scores, flips


def _features(looked: _Looked, families: Sequence[Sequence[int]], words: _Words | None, seed: int) -> Floats:
    """What a document shows in the runs, shape (rows, features).

    Where it is compared with the relevant documents of its topic, one of these is left out: itself, or for a document
    that is none of them one at random, which a flip would replace. Otherwise their number would give its label away.
    """
    draw = np.random.default_rng(seed)
    without = np.zeros(len(looked.rows), dtype=np.int64)
    for own in looked.parts:
        good = np.flatnonzero(looked.relevant[own])
        if len(good):
            without[own] = draw.integers(len(good), size=len(own))
            without[own[good]] = np.arange(len(good))
    there = looked.ranks > 0
    logs = np.log(np.where(there, looked.ranks, 2.0 * max(1, looked.deepest)))
    of_family = np.stack([logs[:, list(one)].mean(axis=1) for one in families], axis=1)
    shapes = [of_family.mean(axis=1), of_family.min(axis=1), np.median(of_family, axis=1)]
    columns = [*of_family.T, *shapes, of_family.max(axis=1), of_family.std(axis=1)]
    columns += [np.maximum(one - np.log(knot), 0.0) for one in shapes for knot in _KNOTS if knot < looked.deepest]
    columns += [one**2 for one in (*shapes, of_family.max(axis=1))] + [shapes[0] * shapes[1]]
    columns += [there.mean(axis=1), ((looked.ranks <= _POOL) & there).mean(axis=1), (~looked.pooled).astype(np.float64)]
    beside, likeness = _beside(looked, shapes[0], without), _likeness(looked, without)
    columns += [*beside.T, beside[:, 0] * shapes[0], *likeness.T, *(likeness[:, [0, 2]] * shapes[0][:, None]).T]
    if words is not None:
        columns += [*words.alike(looked, without).T]
    return np.stack(columns, axis=1)


def _beside(looked: _Looked, mean: Floats, without: Ints) -> Floats:
    """The ranks and the number of the topic's other relevant documents, and how far the document's are from them."""
    found = np.zeros((len(mean), 3))
    for own in looked.parts:
        good = mean[own[looked.relevant[own]]]
        if len(good) > 1:
            level = (good.sum() - good[without[own]]) / (len(good) - 1)
            found[own] = np.stack([level, np.full(len(own), np.log(len(good))), mean[own] - level], axis=1)
    return found


def _likeness(looked: _Looked, without: Ints) -> Floats:
    """How alike a document is to the topic's other relevant ones: the mean, the nearest, the mean of the nearest three.

    Cosine of profiles: by other topic how high the runs rank the document, less the mean of the topic's pool.
    """
    topics = pl.concat([run["topic_id"] for run in looked.runs]).unique().sort()
    if len(topics) > _PROFILE:
        topics = topics.gather(np.linspace(0, len(topics) - 1, _PROFILE).astype(np.int64))
    docs = looked.rows["doc_id"].unique().sort()
    place = {doc: at for at, doc in enumerate(docs)}
    column = {topic: at for at, topic in enumerate(topics)}
    shape = (len(docs), len(topics))
    profiles = scipy.sparse.csr_matrix(shape)
    for run in looked.runs:
        kept = run.filter(pl.col("topic_id").is_in(topics.implode()) & pl.col("doc_id").is_in(docs.implode()))
        at = [place[doc] for doc in kept["doc_id"]], [column[topic] for topic in kept["topic_id"]]
        height = np.log(2.0 * max(1, looked.deepest, _POOL) / np.minimum(kept["rank"].to_numpy(), _DEEPEST))
        profiles = profiles + scipy.sparse.csr_matrix((height, at), shape=shape)
    found = np.zeros((len(looked.rows), 3))
    number = np.array([place[doc] for doc in looked.rows["doc_id"]], dtype=np.int64)
    for topic, own in zip(looked.topics, looked.parts, strict=True):
        profile = profiles[number[own]].toarray()
        if topic in column:
            profile[:, column[topic]] = 0.0
        pooled = looked.pooled[own]
        profile -= profile[pooled].mean(axis=0) if pooled.any() else 0.0
        profile /= np.maximum(np.linalg.norm(profile, axis=1, keepdims=True), 1e-9)
        good = np.flatnonzero(looked.relevant[own])
        if len(good) > 1:
            found[own] = _nearest(profile @ profile[good].T, without[own])
    return found


def _nearest(cosines: Floats, without: Ints) -> Floats:
    """Mean, highest, and mean of the highest three of each row's cosines but the one that is left out."""
    cosines[np.arange(len(cosines)), without] = np.nan
    ordered = -np.sort(-cosines, axis=1)
    known = np.isfinite(ordered)
    means = [
        np.where(known[:, :k], ordered[:, :k], 0.0).sum(axis=1) / np.maximum(known[:, :k].sum(axis=1), 1)
        for k in (ordered.shape[1], 1, 3)
    ]
    return np.stack(means, axis=1)


def _proposed(
    rows: pl.DataFrame,
    candidates: Flags,
    scores: Floats,
    flips: Floats,
    *,
    share: float,
    relevant: int,
    rising: bool,
) -> Proposals:
    """The candidates with the highest scores, while at least half of them are expected to be wrong.

    Args:
        rows: topic_id, doc_id, grade.
        candidates: those that are looked at.
        scores: by row; the higher the more like a flip.
        flips: of all flips, the share for which each row stands.
        share: of the relevant judgments that is taken to be wrong, and no more than the runs allow.
        relevant: how many there are; no more than the share of them are proposed.
        rising: whether at least half of what the runs allow is taken to be wrong.
    """
    own = np.flatnonzero(candidates)
    own = own[np.lexsort((own, -scores[own]))]
    order = np.argsort(-scores, kind="stable")
    total = np.append(0.0, np.cumsum(flips[order]))
    detected = total[np.searchsorted(-scores[order], -scores[own], side="right")]
    number = np.arange(1, len(own) + 1)
    # If all candidates above a score were wrong, so many would be.
    told = np.flatnonzero((number >= _TOLD) & (detected >= _SEEN))
    allowed = float(min(1.0, (number[told] / (relevant * detected[told])).min(initial=1.0)))
    rate = share if allowed > _ALLOWED else min(allowed, max(share, rising * allowed * WRONG))
    expected = np.minimum(1.0, rate * relevant * detected / number)
    last = min(int(np.flatnonzero(np.append(True, expected >= WRONG - 1e-9)).max()), int(share * relevant))
    chosen = own[:last]
    found = rows[chosen].with_columns(score=pl.Series(scores[chosen]), expected=pl.Series(expected[:last]))
    return Proposals(found, len(own), float(detected[last - 1]) if last else 0.0, rate, allowed)
