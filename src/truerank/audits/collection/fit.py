"""Propose: whether judgments fit their own topics better than others', by words and by runs, and which way they miss.

Relevant documents fit a topic as far as they are among its results: those of a run, or the best of all relevant
documents by BM25 for its text. The *place* of a topic's judgments is the share of the other topics that they fit less:
.5 by chance, 1 at best. Asked is whether the judgments are

- *shifted*: one rule leads to topics that they fit better than their own, for all topics or for some that stand next
  to each other;
- *shuffled*: they fit their own topics no better than others, but they do fit topics;
- *unrelated*: they fit no topic;
- *inverted*: the lower the grade, the higher a run ranks the document, among results that were nearly all judged.

Judgments that some topics have exchanged without a rule are not looked for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import numpy as np
import polars as pl
import scipy

from truerank.arrays import Floats, Ints
from truerank.audits.collection.crossings import FEWEST, LEVEL, Crossing, Shift, block, laid, natural, shifted
from truerank.audits.collection.instances import Instances, instances
from truerank.core.plain import plain
from truerank.measures.topic_lists import TopicLists

#: Results of a topic that are looked at; of words, topics and relevant documents of each.
_DEEP, _TOPICS, _OF_TOPIC = 100, 1000, 20
#: Down to a depth, most results are judged; above a few ranks grades have no order.
_MOST_JUDGED, _SHALLOWEST = 0.75, 5
#: Characters of a document that are read.
_READ: Final = 20_000
#: Random draws that can reach the level.
_DRAWS: Final = 1999
#: Own places that lie below this with certainty show no fit; no test collection that was looked at is near it.
_NO_FIT: Final = 0.7
#: A fault of a larger share of the topics is one of all.
_MOST: Final = 0.5
#: The share of a topic's words that the documents have to hold on average, so that they may be compared by words.
_COVERED: Final = 0.5
#: Topics whose documents are dealt out anew, and topics that they may fit.
_GROUPS, _ASKED = 100, 500

FitWord = Literal["fits", "shifted", "shuffled", "inverted", "displaced", "other collection", "unrelated", "not asked"]
Texts = Callable[[Collection[str]], Mapping[str, str]]


@dataclass(frozen=True)
class Fit:
    """How judgments fit their topics, by one source of evidence or by all.

    Attributes:
        word: "fits"; "shifted"; "shuffled"; "inverted"; "displaced": they fit by the texts of neighbouring documents;
            "other collection": they fit no topic by the words, or their documents are unknown; "unrelated": they fit no
            topic by a run, which may be the fault of the run; "not asked": too little evidence.
        evidence: one sentence with figures.
        topics: the judged topics concerned, each with the topic that its judgments fit; empty where that is not known.
        whole: whether all judgments are concerned.
        sampled: so many judged topics were looked at; 0 for all of them.
        p: of the test that gave the word; None where none did.
        offset: of "shifted": so many topics further on is the one that the judgments fit; of "displaced", documents.
        order: of "shifted" and "displaced": by "number", in the "order of ids", in the "file" or the "run"; "number as
            place": the ids count the topics of the file.
        source: "words", or the name of a run: what gave the answer.
        own: mean place of the judgments at their own topics.
        sources: each source by itself. A run that is shifted, shuffled or unrelated while another source fits is at
            fault itself.
    """

    word: FitWord
    evidence: str
    topics: tuple[tuple[str, str], ...] = ()
    p: float | None = None
    offset: int | None = None
    order: str = ""
    source: str = ""
    own: float | None = None
    whole: bool = False
    sampled: int = 0
    sources: tuple[Fit, ...] = ()

    def of_all(self, judged: int) -> bool:
        """Whether all judgments are concerned, or nobody knows which."""
        return self.whole or not 0 < len(self.topics) <= _MOST * judged

    def json(self) -> dict[str, Any]:
        """The answer without its topics, which are findings, and each source."""
        answer: dict[str, Any] = plain(self, "topics")
        return answer


def judgment_fit(
    qrels: pl.DataFrame,
    runs: Mapping[str, pl.DataFrame | TopicLists] | None = None,
    *,
    topics: Mapping[str, str] | None = None,
    texts: Texts | None = None,
    rel: int = 1,
    seed: int = 0,
    enough: Collection[str] = (),
) -> Fit:
    """Whether judgments fit their topics; of several answers the gravest that no other source contradicts.

    Runs are asked first. Texts are fetched only where the runs do not show that the judgments fit. Where some runs are
    `enough`, the answers of the others are left out that cannot change the word.
    """
    relevant = qrels.filter(pl.col("relevance") >= rel).select("topic_id", "doc_id").unique(maintain_order=True)
    found, grades, crossings = list[Fit](), list[Fit](), list[Crossing]()
    for name, run in (runs or {}).items():
        lists = run if isinstance(run, TopicLists) else TopicLists(run)
        asked_enough = bool(enough) and {one.source for one in found}.issuperset(enough)
        fits = asked_enough and any(one.word == "fits" for one in found)
        if fits and any(one.word == "fits" for one in grades):
            break
        if not fits:
            asked, given = ([*topics], "file") if topics else (lists.topics.to_list(), "run")
            crossings.append(_crossing(relevant, lists.first(_DEEP), asked, given))
            found.append(replace(_placed(crossings[-1], relevant, lists.first(_DEEP), seed), source=name))
        grades.append(replace(_graded(ranked(qrels, lists), seed), source=name))
    if topics and texts is not None and not any(one.word == "fits" for one in found):
        fit, crossing = _worded(relevant, topics, texts, seed)
        found.append(fit)
        crossings += [crossing] if crossing is not None else []
    fit = _together(found, grades)
    if fit.word not in ("fits", "not asked") or not crossings:
        return fit
    # What one run alone shows is its own fault where there are others.
    alike = [one for one in crossings if one.columns == crossings[0].columns and one.rows == crossings[0].rows]
    mean = sum((one.values for one in alike[1:]), alike[0].values) / len(alike)
    moved = block(crossings[0]._replace(values=scipy.sparse.csr_matrix(mean)))
    return (
        fit
        if moved is None
        else replace(
            _moved(crossings[0], moved, moved.moved), source=fit.source or found[0].source, sources=fit.sources
        )
    )


def _crossing(relevant: pl.DataFrame, results: pl.DataFrame, asked: Sequence[str], given: str) -> Crossing:
    """How well relevant documents fit topics by results, with their place: 1 where they are the first of a topic."""
    ideal = np.cumsum(1 / np.log2(np.arange(2, _DEEP + 2)))
    size = pl.len().over("topic_id").clip(1, _DEEP) - 1
    mine = relevant.with_columns(gain=1 / pl.Series(ideal).gather(relevant.select(size).to_series()))
    theirs = results.select("topic_id", "doc_id", gain=1 / (pl.col("place") + 1).log(2))
    return Crossing.of(mine, theirs, asked, given)


def _together(found: Sequence[Fit], grades: Sequence[Fit]) -> Fit:
    """One answer: a fit by one source is a fit; otherwise what words or runs say; the grades are asked of a fit."""
    inverted = [one for one in grades if one.word == "inverted"]
    sources = (*found, *inverted)
    words = {one.word for one in found}
    order: tuple[FitWord, ...] = ("fits", "shifted", "shuffled", "other collection")
    fit = next((one for word in order for one in found if one.word == word), None)
    if fit is None and words == {"unrelated"} and len(found) > 1:
        fit = replace(found[0], word="other collection")
    if (fit is None or fit.word == "fits") and inverted and not any(one.word == "fits" for one in grades):
        fit = inverted[0]
    if fit is not None:
        return replace(fit, sources=sources)
    return Fit("not asked", found[0].evidence if found else "No runs, and no topics with documents.", sources=sources)


def _worded(relevant: pl.DataFrame, topics: Mapping[str, str], texts: Texts, seed: int) -> tuple[Fit, Crossing | None]:
    """The answer by the texts of documents: BM25 of relevant documents makes results for each topic."""
    judged = frozenset(relevant["topic_id"])
    asked = [*topics]
    if len(asked) > _TOPICS:
        start = next((at for at, one in enumerate(asked) if one in judged), 0)
        asked = asked[min(start, len(asked) - _TOPICS) :][:_TOPICS]
    some = sorted(judged & {*asked} or judged, key=natural)[:_TOPICS]
    pairs = relevant.filter(pl.col("topic_id").is_in(some)).sort("topic_id", "doc_id")
    pairs = pairs.filter(pl.int_range(pl.len()).shuffle(seed).over("topic_id") < _OF_TOPIC)
    wanted = pairs["doc_id"].unique(maintain_order=True).to_list()
    said = texts(wanted)
    gone = len(wanted) - len(said)
    if 2 * gone > len(wanted):
        evidence = f"{gone:,d} of {len(wanted):,d} relevant documents looked for do not exist."
        return Fit("other collection", evidence, source="words", whole=True), None
    held = pl.Series([*said], dtype=pl.String)
    scores, covered = bm25([*said.values()], [topics[one] for one in asked])
    best = np.argsort(-scores, axis=0, kind="stable")[:_DEEP]
    doc, column = best.ravel(), np.tile(np.arange(len(asked)), len(best))
    frame = {"topic_id": pl.Series(asked).gather(column), "doc_id": held.gather(doc)}
    place = np.repeat(np.arange(1, len(best) + 1), len(asked))
    results = pl.DataFrame({**frame, "place": place}).filter(pl.Series(scores[doc, column] > 0))
    pairs = pairs.filter(pl.col("doc_id").is_in(held.implode()))
    crossing = _crossing(pairs, results, asked, "file")
    drawn = len(some) if len(some) < len(judged) else 0
    fit = replace(_placed(crossing, pairs, results, seed), source="words", sampled=drawn)
    if fit.word in ("shuffled", "unrelated") and covered < _COVERED:
        text = f"The documents hold {covered:.0%} of a topic's words: too few to compare."
        return Fit("not asked", text, own=fit.own, source="words"), None
    return (replace(fit, word="other collection") if fit.word == "unrelated" else fit), crossing


# -- shifted, shuffled, unrelated ----------------------------------------------------------------------------------


def _placed(crossing: Crossing, relevant: pl.DataFrame, results: pl.DataFrame, seed: int) -> Fit:
    """The answer by the fit of each topic's relevant documents to the results of each topic."""
    if len(crossing.rows) < FEWEST:
        return Fit("not asked", f"{len(crossing.rows)} topics with relevant documents are too few.")
    if not crossing.values.nnz:
        return Fit("unrelated", "No relevant document that was looked for is among the results.", whole=True)
    # What topics share says nothing of them; nor does what no topic's results hold.
    mine = relevant.with_columns(gain=1.0)
    crossing = crossing.without(Crossing.of(mine, mine, crossing.columns, crossing.given))
    seen = crossing.kept(np.flatnonzero(np.diff(crossing.values.indptr)))
    if len(seen.rows) < FEWEST:
        return Fit("not asked", f"Relevant documents of {len(seen.rows)} topics are among the results: too few.")
    if (shift := shifted(seen)) is not None:
        return _moved(seen, shift, shift.moved)
    places = np.where(seen.own >= 0, seen.places(), 0.5)
    mean, error = float(places.mean()), float(places.std(ddof=1)) / len(places) ** 0.5
    p = float(scipy.special.ndtr((0.5 - mean) * (12 * len(places)) ** 0.5))
    text = f"The judgments of a topic fit it better than they fit {mean:.0%} of the other topics"
    high = mean - scipy.special.ndtri(LEVEL) * error >= _NO_FIT
    if high or p <= LEVEL:
        fits = high and p <= LEVEL
        # A run that finds little shows a little.
        left = "" if fits else f", but {len(places)} topics are few" if high else ": little, but more than by chance"
        return Fit("fits" if fits else "not asked", f"{text}{left}.", p=p, own=mean)
    p = _grouping(relevant.filter(pl.col("topic_id").is_in(seen.rows[:_GROUPS])), results, seed)
    word: FitWord = "shuffled" if p <= LEVEL else "unrelated"
    others = "they fit others" if p <= LEVEL else "none is shown that they fit"
    topics = tuple((one, "") for one in crossing.rows)
    return Fit(word, f"{text}, which is chance; {others}.", topics, p if p <= LEVEL else None, own=mean, whole=True)


def _moved(seen: Crossing, shift: Shift, rows: Ints) -> Fit:
    """The answer where a rule leads topics to others that their judgments fit better."""
    here, there = (float(seen.by(leads)[rows].mean()) for leads in (seen.own, shift.leads))
    topics = tuple((seen.rows[row], seen.columns[shift.leads[row]]) for row in sorted(rows) if shift.leads[row] >= 0)
    whole = shift.p is not None
    some = "" if whole else f", from {topics[0][0]} to {topics[-1][0]},"
    text = (
        f"The relevant documents of {len(topics):,d} topics{some} get {here:.2f} of the most discounted gain by the "
        f"results of their own topic, and {there:.2f} by those of {shift.where}."
    )
    return Fit("shifted", text, topics, shift.p, shift.offset, shift.order, whole=whole)


def _grouping(relevant: pl.DataFrame, results: pl.DataFrame, seed: int) -> float:
    """Whether documents that one topic holds relevant fit some topic together: p against documents dealt out anew."""
    if len(relevant) < 1.5 * relevant["topic_id"].n_unique():
        return 1.0
    documents, asked = pl.Enum(relevant["doc_id"].unique()), results["topic_id"].unique(maintain_order=True)
    held = laid(results.with_columns(gain=1 / (pl.col("place") + 1).log(2)), asked[:_ASKED].to_list(), documents).T
    mine = laid(relevant.with_columns(gain=1.0), relevant["topic_id"].unique().to_list(), documents)
    held, draw = held.tocsr(), np.random.default_rng(seed)

    def best(order: Ints) -> float:
        dealt = scipy.sparse.csr_matrix((mine.data, order, mine.indptr), shape=mine.shape)
        return float((dealt @ held).max(axis=1).sum())

    seen = best(mine.indices)
    at_least = sum(best(draw.permutation(mine.indices)) >= seen - 1e-9 for _ in range(_DRAWS))
    return (1 + at_least) / (1 + _DRAWS)


def bm25(documents: Sequence[str], topics: Sequence[str]) -> tuple[Floats, float]:
    """BM25 of documents for topics, shape (documents, topics), and the mean share of a topic's terms in them."""
    # Here: most judgments fit by the runs, and need no words.
    from truerank.lexical.analysis import Analyser
    from truerank.lexical.index import TermNumbers, tokens
    from truerank.lexical.models import BM25, Statistics

    analyser, model, terms = Analyser(), BM25(), TermNumbers()
    asked = [Counter(map(terms.__getitem__, analyser(text))) for text in topics]
    width = len(terms)
    # A document that is relevant for several topics is analysed once.
    cut = [text[:_READ] for text in documents]
    places = {text: place for place, text in enumerate(dict.fromkeys(cut))}
    rows = [places[text] for text in cut]
    text, term, sizes = tokens(analyser, [*places], terms)
    common, lengths = term < width, sizes[rows].astype(float)
    ones = np.ones(common.sum())
    counted = scipy.sparse.csr_matrix((ones, (text[common], term[common])), shape=(len(places), width))
    held = counted[rows].tocsc()
    mean, total = float(lengths.mean()), float(lengths.sum())
    for column in range(width):
        part = slice(held.indptr[column], held.indptr[column + 1])
        counts = held.data[part].copy()
        known = Statistics(len(documents), mean, total, len(counts), float(counts.sum()))
        held.data[part] = model.weights(counts, lengths[held.indices[part]], known)
    weights = [model.query_weight(count) for one in asked for count in one.values()]
    topic = np.repeat(np.arange(len(asked)), [*map(len, asked)])
    numbers = [number for one in asked for number in one]
    queries = scipy.sparse.csr_matrix((weights, (topic, numbers)), shape=(len(asked), width))
    there = np.diff(held.indptr) > 0
    covered = [np.mean(there[[*one]]) for one in asked if one]
    return (held.tocsr() @ queries.T).toarray(), float(np.mean(covered)) if covered else 0.0


def ranked(qrels: pl.DataFrame, run: TopicLists) -> pl.DataFrame:
    """Judged results of a run, down to where most are judged: topic_id, relevance, fit.

    Further down, and beside the run, what was judged was chosen: documents without relevance because some run had them
    far up, relevant ones from anywhere. Their ranks say how they were chosen, not how the grades are meant.
    """
    first = run.on(qrels["topic_id"].unique()).first(_DEEP)
    judged = first.join(qrels, on=["topic_id", "doc_id"], maintain_order="left")
    size = int(first["place"].max() or 0)  # type: ignore[arg-type]
    some, every = (np.bincount(rows["place"].to_numpy(), minlength=size + 1)[1:].cumsum() for rows in (judged, first))
    below = np.flatnonzero(some / every < _MOST_JUDGED)
    depth = int(below[0]) if len(below) else size
    whole = judged.filter(pl.col("place") <= (depth if depth >= _SHALLOWEST else 0))
    return whole.select("topic_id", "relevance", (1 / (1 + pl.col("place")).log(2)).alias("fit"))


# -- grades --------------------------------------------------------------------------------------------------------


def _graded(judged: pl.DataFrame, seed: int) -> Fit:
    """Whether grades rise or fall with the fit: their correlation, its signs by topic changed at random."""
    correlation = pl.corr(pl.col("relevance").cast(pl.Float64), "fit").alias("correlation")
    by_topic = judged.group_by("topic_id").agg(correlation).filter(pl.col("correlation").is_finite()).sort("topic_id")
    values = by_topic["correlation"].to_numpy()
    if len(values) < FEWEST:
        return Fit("not asked", f"{len(values)} topics with several grades are too few.")
    signs = np.random.default_rng(seed).choice((-1.0, 1.0), (_DRAWS, len(values)))
    p = float(1 + (np.abs(signs @ values) >= abs(values.sum()) - 1e-9).sum()) / (1 + _DRAWS)
    text = f"The correlation of grade and fit is {values.mean():+.2f} on average over {len(values)} topics"
    if p > LEVEL or values.mean() > 0:
        return Fit("not asked" if p > LEVEL else "fits", f"{text}.", p=p)
    low = by_topic.filter(pl.col("correlation") < 0)["topic_id"]
    return Fit("inverted", f"{text}, below 0 in {len(low)}.", tuple((one, "") for one in low), p)


# -- findings ------------------------------------------------------------------------------------------------------

_KINDS: Final[dict[FitWord, str]] = {
    "shifted": "shifted-judgments",
    "shuffled": "shuffled-judgments",
    "other collection": "unrelated-judgments",
    "inverted": "inverted-grades",
}


def fit_instances(fit: Fit, judged: int, runs: int = 0) -> Iterator[Instances]:
    """The judgments that do not fit their topics, and runs that do not fit judgments which something else fits."""
    by = f"by {fit.source}" if fit.source == "words" else f"by the run {fit.source}"
    if fit.word in _KINDS:
        rows = [{"topic_id": one, "other": other, "detail": f"{by}: {fit.evidence}"} for one, other in fit.topics]
        yield instances(_KINDS[fit.word], rows, fit.sampled or judged)
    elif fit.word == "fits":
        astray = [one for one in fit.sources if one.source != "words" and one.word in ("shifted", "shuffled")]
        yield instances("misplaced-run", [{"other": one.source, "detail": one.evidence} for one in astray], runs)
