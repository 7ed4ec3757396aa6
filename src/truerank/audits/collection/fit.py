"""Propose: whether judgments fit their own topics better than others', by words and by runs, and which way they miss.

Relevant documents fit the text of a topic if they are among the best of all topics' relevant documents for it by BM25;
they fit the results of a topic if they stand at good ranks there. The *place* of a topic's judgments at a topic is the
share of the other topics that they fit less: .5 by chance, 1 at best. Asked is whether the judgments are

- *shifted*: one rule, such as "the next number", leads to topics that all judgments, or those of a part of the topics,
  fit better than their own, and more often than topics alike explain;
- *shuffled*: they fit their own topics no better than others, but they do fit topics;
- *astray* in part: those of many topics stand high in the results of other topics, and nowhere in those of their own;
- *unrelated*: they fit no topic;
- *inverted*: the lower the grade, the higher a run ranks the document, among results that were nearly all judged.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import polars as pl
import scipy
from numpy.typing import NDArray

from truerank.arrays import Floats, Ints
from truerank.audits.collection.instances import Instances, instances
from truerank.audits.collection.run_origins import mean_ranks
from truerank.core.plain import plain
from truerank.measures.topic_lists import TopicLists

#: Judged topics, relevant documents of each and of all, and topics to compare with, at most.
_ROWS, _OF_TOPIC, _DOCS, _COLUMNS = 1000, 20, 6000, 2000
#: Blocks of neighbours in which these come, in each order; and where few topics are judged.
_BLOCKS, _SMALL_BLOCKS = 5, 100
#: Down to a depth, most results are judged; above a few ranks grades have no order.
_MOST_JUDGED, _SHALLOWEST = 0.75, 5
#: Places that are looked at before all: most runs have unjudged results among them.
_FIRST: Final = 50
#: Fewer judged topics than that show nothing.
FEWEST: Final = 10
#: Offsets in one direction times judged topics, at most; of these, so many count.
_GATHERED, _COUNTED = 6_666, 300
#: Characters of a document that are read.
_READ: Final = 20_000
_NUMBER: Final = re.compile(r"(.*?)(\d{1,18})")


class FitSample(NamedTuple):
    """Judged topics beside the topics that they are compared with.

    Attributes:
        docs: columns row, doc_id: their relevant documents, topic after topic.
        own: the column of each row; -1 where no topic has the id.
        rules: places of columns by rule, shape (rules, rows); -1 for none.
        names: of the rules: order and offset.
        related: columns that share relevant documents with a row, shape (rows, columns).
        drawn: how many rows were drawn of more judged topics; 0 where all are rows.
    """

    rows: Sequence[str]
    columns: Sequence[str]
    docs: pl.DataFrame
    own: Ints
    rules: Ints
    names: Sequence[tuple[str, int]]
    related: NDArray[np.bool_]
    drawn: int


def sampled(qrels: pl.DataFrame, asked: Sequence[str], rel: int, seed: int, order: str = "file") -> FitSample:
    """Judged topics and their relevant documents, and the topics that they are compared with, in a bounded number.

    Args:
        order: what the order of the topics asked is that of.
    """
    pairs = qrels.filter(pl.col("relevance") >= rel).select("topic_id", "doc_id")
    judged = sorted(pairs["topic_id"].unique().to_list(), key=natural)
    known = pl.Series(asked, dtype=pl.String).is_in(judged).to_numpy()
    columns = [asked[at] for at in _compared(asked, known)]
    place = {one: at for at, one in enumerate(columns)}
    # A topic fits its judgments only where it is compared; where ids say nothing of each other, any topics serve.
    same = 2 * int(known.sum()) >= min(len(judged), len(asked))
    rows = [one for one in judged if one in place] if same else judged
    every = int(known.sum()) if same else len(judged)
    rows = [rows[at] for at in np.unique(np.linspace(0, len(rows) - 1, min(len(rows), _ROWS)).astype(int))]
    at = pl.DataFrame({"topic_id": rows, "row": range(len(rows))}, schema={"topic_id": pl.String, "row": pl.Int64})
    docs = pairs.join(at, on="topic_id").select("row", "doc_id").sort("row", "doc_id")
    docs = docs.with_columns(pl.int_range(pl.len()).shuffle(seed).over("row").alias("draw"))
    docs = docs.filter(pl.col("draw") < min(_OF_TOPIC, _DOCS // max(1, len(rows)))).drop("draw")
    rules, names = _rules(rows, judged, list(asked), place, order)
    left, right = (
        pl.DataFrame({"topic_id": ids}, schema={"topic_id": pl.String}).with_row_index(name)
        for name, ids in (("row", rows), ("column", columns))
    )
    shared = pairs.join(left, on="topic_id").join(pairs.join(right, on="topic_id"), on="doc_id")
    related = np.zeros((len(rows), len(columns)), bool)
    related[shared["row"].to_numpy(), shared["column"].to_numpy()] = True
    own = np.array([place.get(one, -1) for one in rows], np.int64)
    return FitSample(rows, columns, docs, own, rules, names, related, len(rows) if len(rows) < every else 0)


def _compared(asked: Sequence[str], judged: NDArray[np.bool_]) -> Ints:
    """Places of the topics with which judged ones are compared: all of a few, else judged ones and their neighbours.

    These are neighbours in the order of the file, and in that of the ids.

    Args:
        judged: whether a topic is, shape (topics,).
    """
    topics = len(asked)
    if topics <= _COLUMNS:
        return np.arange(topics)
    judged = judged if judged.any() else np.ones(topics, np.bool_)
    orders = np.array([range(topics), sorted(range(topics), key=lambda at: natural(asked[at]))])
    # Where few topics are judged, blocks are small and many.
    dense = _COLUMNS * judged.mean() >= min(_ROWS, judged.sum())
    blocks = _BLOCKS if dense else min(_SMALL_BLOCKS, int(judged.sum()))
    width, found = _COLUMNS // (2 * blocks), []
    for order in orders:
        places = np.flatnonzero(judged[order])
        starts = places[np.linspace(0, len(places), blocks, endpoint=False).astype(int)] - width // 2
        found.append(order[np.clip(starts, 0, topics - width)[:, None] + np.arange(width)].ravel())
    return np.unique(np.concatenate(found))


def natural(identifier: str) -> tuple[str, int, str]:
    """What ids are sorted by: their stem, then their number."""
    number = _NUMBER.fullmatch(identifier)
    return (number[1], int(number[2]), identifier) if number else (identifier, 0, identifier)


def _rules(
    rows: Sequence[str], judged: Sequence[str], asked: Sequence[str], place: Mapping[str, int], order: str
) -> tuple[Ints, list[tuple[str, int]]]:
    """The ways ids may have moved, likely ones first: by order and offset, the column that each row leads to."""
    ordered = sorted(asked, key=natural)
    numbers = {(natural(one)[:2]): one for one in reversed(asked) if _NUMBER.fullmatch(one)}
    at_file, at_ids, at_judged = ({one: at for at, one in enumerate(order)} for order in (asked, ordered, judged))

    def by_number(one: str, offset: int) -> str | None:
        stem, number, _ = natural(one)
        return numbers.get((stem, number + offset))

    def around(order: Sequence[str], at: Mapping[str, int]) -> Callable[[str, int], str | None]:
        return lambda one, offset: order[(at[one] + offset) % len(order)] if one in at else None

    def along(order: Sequence[str], at: Callable[[str], int]) -> Callable[[str, int], str | None]:
        return lambda one, offset: order[spot] if 0 <= (spot := at(one) + offset) < len(order) else None

    def counted(one: str) -> int:
        return natural(one)[1] - 1 if _NUMBER.fullmatch(one) else -len(asked)

    furthest = max(1, min(len(asked) // 2, _GATHERED // max(1, min(len(rows), _COUNTED))))
    offsets = sorted((one for one in range(-furthest, furthest + 1) if one), key=abs)
    near = [0, 1, -1]
    ways = [("number", by_number, offsets), ("order of ids", around(ordered, at_ids), offsets)]
    ways += [(order, around(asked, at_file), offsets)] if ordered != list(asked) else []
    for one_order in (asked, *([ordered] if ordered != list(asked) else [])):
        ways += [("number as place", along(one_order, counted), near)]
        ways += [("order of both", along(one_order, at_judged.__getitem__), near)]
    known: set[bytes] = {np.array([place.get(one, -1) for one in rows], np.int64).tobytes()}
    # Of the neighbours in one order, half are among the columns where these are some of the topics.
    fewest = max(FEWEST, len(rows) / (2 if len(place) == len(asked) else 3))
    rules, names = [], []
    for name, way, steps in ways:
        for step in steps:
            leads = (way(one, step) for one in rows)
            rule = np.array([-1 if one is None else place.get(one, -1) for one in leads], np.int64)
            if (rule >= 0).sum() >= fewest and rule.tobytes() not in known:
                known.add(rule.tobytes())
                rules.append(rule)
                names.append((name, step))
    return np.array(rules, np.int64).reshape(len(rules), len(rows)), names


def by_run(sample: FitSample, run: TopicLists) -> Floats:
    """How well each relevant document is in the results of each topic, shape (documents, columns)."""
    number = {topic: column for column, topic in enumerate(sample.columns)}
    column = np.repeat(np.array([number.get(topic, -1) for topic in run.names], np.int64), run.lengths)
    documents = pl.Enum(sample.docs["doc_id"].unique(maintain_order=True))
    doc = (
        run.select("doc_id")["doc_id"]
        .cast(documents, strict=False)
        .to_physical()
        .cast(pl.Int64)
        .fill_null(-1)
        .to_numpy()
    )
    met = np.flatnonzero((doc >= 0) & (column >= 0))
    values = np.zeros((len(documents.categories), len(sample.columns)))
    values[doc[met], column[met]] = 1 / np.log2(run.places.to_numpy()[met] + 1.0)
    found: Floats = values[sample.docs["doc_id"].cast(documents).to_physical().to_numpy()]
    return found


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
    results = run.on(qrels["topic_id"].unique())
    for looked_at in (_FIRST, len(results)):
        first = results.first(looked_at)
        judged = first.join(qrels, on=["topic_id", "doc_id"], maintain_order="left")
        size = int(first["place"].max() or 0)  # type: ignore[arg-type]
        some, every = (
            np.bincount(rows["place"].to_numpy(), minlength=size + 1)[1:].cumsum() for rows in (judged, first)
        )
        below = np.flatnonzero(some / every < _MOST_JUDGED)
        if len(below) or len(first) == len(results):
            break
    depth = int(below[0]) if len(below) else size
    whole = judged.filter(pl.col("place") <= (depth if depth >= _SHALLOWEST else 0))
    return whole.select("topic_id", "relevance", (1 / (1 + pl.col("place")).log(2)).alias("fit"))


FitWord = Literal["fits", "shifted", "shuffled", "inverted", "displaced", "other collection", "unrelated", "not asked"]
Texts = Callable[[Collection[str]], Mapping[str, str]]

#: The level of each test, and random draws that can reach it.
_LEVEL: Final = 0.001
_DRAWS: Final = 1999
#: Own places that lie below this with certainty show no fit; no test collection that was looked at is near it.
_NO_FIT: Final = 0.7
#: A topic's judgments may belong elsewhere if a quarter of the other topics fits them better.
_MISFIT: Final = 0.75
#: So many judgments of the misfit, and a third of them, have to follow one rule.
_FOLLOWERS: Final = 5
#: The levels at which they have to do so more often than judgments that fit follow the mirrored rule: where at most one
#: does, and where topics are alike.
_LIKENESS, _ALIKE = 0.02, 0.0001
#: Topic by topic, results down to this rank are looked at, and documents that are relevant for so many topics at most.
_HIGH, _TELLS = 10, 5
#: The share of honest topics among those called astray, at most, and the confidence of that bound.
_HONEST, _SURE = 0.2, 0.95
#: A rule has to lead so many of the topics astray to where their judgments are.
_RULED: Final = 0.75
#: A fault of a larger share of the topics is one of all; the second where a sample of them was looked at.
_MOST, _SEEN = 0.5, 0.05
#: The share of a topic's words that the documents have to hold on average, so that they may be compared by words.
_COVERED: Final = 0.5


@dataclass(frozen=True)
class Fit:
    """How judgments fit their topics, by one source of evidence or by all.

    Attributes:
        word: "fits"; "shifted"; "shuffled"; "inverted"; "displaced": they fit by the texts of neighbouring documents;
            "other collection": they fit no topic by the words, or their documents are unknown; "unrelated": they fit no
            topic by a run, which may be the fault of the run; "not asked": too little evidence.
        evidence: one sentence with figures.
        topics: the judged topics concerned, each with the topic that its judgments fit; empty where that is not known.
        sampled: so many judged topics were looked at; 0 for all of them.
        told: topics of which it is known, one by one, whether they are concerned; 0 where the answer is of all or by a
            rule.
        p: of the test that gave the word; None where none did.
        offset: of "shifted": so many topics further on is the one that the judgments fit; of "displaced", documents.
        order: of "shifted" and "displaced": by "number", in the "order of ids", in the "file" or the "run"; "number as
            place": the ids count the topics of the file.
        source: "words", or the name of a run: what gave the answer.
        own: mean place of the judgments at their own topics.
        best: the same by the rule of "shifted".
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
    best: float | None = None
    sampled: int = 0
    told: int = 0
    sources: tuple[Fit, ...] = ()

    def of_all(self, judged: int) -> bool:
        """Whether all judgments are concerned, or nobody knows which."""
        if self.told:
            return len(self.topics) > _MOST * self.told
        most = _SEEN * self.sampled if self.sampled else _MOST * judged
        return self.word == "shuffled" or self.best is not None or not 0 < len(self.topics) <= most

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
    found: list[Fit] = []
    grades: list[Fit] = []
    first: dict[str, TopicLists] = {}
    samples: dict[tuple[str, ...], FitSample] = {}
    given = "file" if topics else "run"
    for name, run in (runs or {}).items():
        lists = run if isinstance(run, TopicLists) else TopicLists(run)
        if not enough or name in enough:
            first[name] = lists
        asked_enough = bool(enough) and {one.source for one in found}.issuperset(enough)
        fits = asked_enough and any(one.word == "fits" for one in found)
        if fits and any(one.word == "fits" for one in grades):
            break
        if not fits:
            asked = (*topics,) if topics else (*lists.topics,)
            # Most runs have the same topics in the same order.
            sample = samples.setdefault(asked, samples.get(asked) or sampled(qrels, asked, rel, seed, given))
            fit = _placed(sample, by_run(sample, lists), seed)
            found.append(replace(fit, source=name, sampled=sample.drawn))
        grades.append(replace(_graded(ranked(qrels, lists), seed), source=name))
    if topics and texts is not None and not any(one.word == "fits" for one in found):
        sample = sampled(qrels, [*topics], rel, seed)
        said = texts(sample.docs["doc_id"].unique(maintain_order=True).to_list())
        found.append(replace(_worded(sample, topics, said, seed), source="words", sampled=sample.drawn))
    fit = _together(found, grades)
    return _by_topic(fit, qrels.filter(pl.col("relevance") >= rel), first, topics, seed) if first else fit


def _together(found: Sequence[Fit], grades: Sequence[Fit]) -> Fit:
    """One answer: a fit by one source is a fit; otherwise what words or runs say; the grades are asked of a fit."""
    inverted = [one for one in grades if one.word == "inverted"]
    sources = (*found, *inverted)
    words = {one.word for one in found}
    order: tuple[FitWord, ...] = ("fits", "shifted", "shuffled", "other collection")
    most = sorted(found, key=lambda one: -len(one.topics))
    fit = next((one for word in order for one in most if one.word == word), None)
    if fit is None and words == {"unrelated"} and len(found) > 1:
        fit = replace(found[0], word="other collection")
    if (fit is None or fit.word == "fits") and inverted and not any(one.word == "fits" for one in grades):
        fit = inverted[0]
    if fit is not None:
        return replace(fit, sources=sources)
    return Fit("not asked", found[0].evidence if found else "No runs, and no topics with documents.", sources=sources)


def _worded(sample: FitSample, topics: Mapping[str, str], said: Mapping[str, str], seed: int) -> Fit:
    """The answer by the texts of documents."""
    wanted = sample.docs["doc_id"].n_unique()
    docs = sample.docs.filter(pl.col("doc_id").is_in(list(said)))
    gone = wanted - docs["doc_id"].n_unique()
    if 2 * gone > wanted:
        return Fit("other collection", f"{gone:,d} of {wanted:,d} relevant documents looked for do not exist.")
    scores, covered = bm25([said[one] for one in docs["doc_id"]], [topics[one] for one in sample.columns])
    # Topics differ in the size of their scores: what counts is the place among all topics' relevant documents.
    places = np.apply_along_axis(mean_ranks, 0, scores) / max(1, len(scores))
    fit = _placed(sample._replace(docs=docs), places, seed)
    if fit.word in ("shuffled", "unrelated") and covered < _COVERED:
        return Fit(
            "not asked", f"The documents hold {covered:.0%} of a topic's words: too few to compare.", own=fit.own
        )
    return replace(fit, word="other collection") if fit.word == "unrelated" else fit


# -- shifted, shuffled, unrelated ----------------------------------------------------------------------------------


class _Places(NamedTuple):
    """Judgments of topics by their place.

    `at` has the place at each column, shape (rows, columns), nan for topics that share relevant documents; `own` that
    at the own topic, .5 where there is none. `rows`, `rules` and `column`, that of the own topic, are as in the sample.
    `above` says where judgments fit a column better than the judgments of that topic do.
    """

    rows: Ints
    at: Floats
    above: NDArray[np.bool_]
    rules: Ints
    own: Floats
    column: Ints

    def by_rule(self, rules: Ints) -> Floats:
        """The places to which rules lead, shape (rules, rows); nan where they lead nowhere."""
        padded = np.concatenate([self.at, np.full((len(self.at), 1), np.nan)], axis=1)
        return np.asarray(padded[np.arange(len(self.at)), rules])

    def mirror(self, rule: Ints) -> Ints:
        """The topic from which a rule leads to that of a row; -1 for none.

        Where neighbours are alike, as in products by kinds of question, an honest run finds a document that it misses
        at a neighbour's, on either side. What moved went one way.
        """
        origin = dict(zip(rule.tolist(), self.column.tolist(), strict=True))
        return np.array([origin.get(one, -1) if one >= 0 else -1 for one in self.column.tolist()], np.int64)


def _placed(sample: FitSample, values: Floats, seed: int) -> Fit:
    """The answer by the fit of each relevant document to each topic, shape (documents, columns)."""
    groups = sample.docs["row"].to_numpy()
    rows, starts, sizes = np.unique(groups, return_index=True, return_counts=True)
    related = sample.related[rows]
    related[np.arange(len(rows)), sample.own[rows]] &= sample.own[rows] < 0
    kept = (~related).sum(axis=1) > FEWEST
    if kept.sum() < FEWEST:
        text = f"{len(rows)} judged topics with relevant documents" if len(rows) < FEWEST else "Topics of their own"
        return Fit("not asked", f"{text} are too few.")
    if not values.any():
        return Fit("unrelated", "No relevant document that was looked for is among the results.")
    means = np.add.reduceat(values, starts, axis=0) / sizes[:, None]
    of_topic = np.full(means.shape[1], -1.0)
    there = np.flatnonzero(sample.own[rows] >= 0)
    of_topic[sample.own[rows[there]]] = means[there, sample.own[rows[there]]]
    # What no topic's results hold says nothing.
    every, apart = rows[kept], np.where(related, -1.0, means)
    kept &= apart.max(axis=1) > 0
    if kept.sum() < FEWEST:
        return Fit("not asked", f"Relevant documents of {kept.sum()} topics are among the results: too few.")
    # The share of the unrelated columns that fit a row less, ties counted half; related columns have no place.
    rows, related = rows[kept], related[kept]
    left_out = related.sum(axis=1, keepdims=True)
    ranks = np.apply_along_axis(mean_ranks, 1, apart[kept])
    places = np.where(related, np.nan, (ranks - left_out - 0.5) / (means.shape[1] - left_out))
    own = sample.own[rows]
    at_own = np.where(own >= 0, places[np.arange(len(rows)), own], 0.5)
    seen = _Places(rows, places, means[kept] > of_topic, sample.rules[:, rows], at_own, own)
    fit = _shifted(sample, seen, seed) or _partly(sample, seen)
    if fit is not None:
        return fit
    mean, error = float(at_own.mean()), float(at_own.std(ddof=1)) / len(rows) ** 0.5
    p = _fit_by_chance(at_own)
    text = f"The judgments of a topic fit it better than they fit {mean:.0%} of the other topics"
    high = mean - scipy.special.ndtri(_LEVEL) * error >= _NO_FIT
    if high or p <= _LEVEL:
        fits = high and p <= _LEVEL
        # A run that finds little shows a little.
        left = "" if fits else f", but {len(rows)} topics are few" if high else ": little, but more than by chance"
        return Fit("fits" if fits else "not asked", f"{text}{left}.", p=p, own=mean)
    ids = tuple((sample.rows[row], "") for row in every)
    grouped = np.isin(groups, rows)
    p = _grouping(values[grouped], groups[grouped], seed)
    word, others = ("shuffled", "they fit others") if p <= _LEVEL else ("unrelated", "none is shown that they fit")
    evidence = f"{text}, which is chance; {others}."
    return Fit(word, evidence, ids, p if word == "shuffled" else None, own=mean)  # type: ignore[arg-type]


def _shifted(sample: FitSample, seen: _Places, seed: int) -> Fit | None:
    """Whether one rule leads all judgments to topics that they fit better than their own.

    The rule has to beat random assignments of topics to judgments (the best of all rules each time), and the topics'
    own ids and the mirrored rule (signs of the differences changed at random).
    """
    if not len(seen.rules):
        return None
    reached = seen.by_rule(seen.rules)
    means = _means(reached)
    best = int(np.flatnonzero(means >= means.max() - 0.01)[0])  # the likeliest of rules that serve as well
    if means[best] <= seen.own.mean():
        return None
    mirror = seen.mirror(seen.rules[best])
    back = reached[best] - seen.by_rule(np.where(mirror == seen.rules[best], -1, mirror))
    rng = np.random.default_rng(seed)
    beats_own = _above(reached[best] - seen.own, rng)
    if 2 * (~np.isnan(back)).sum() >= len(back):
        beats_mirror = _above(back, rng)
    else:  # without a mirror, likeness is excluded where nothing fits its own topic
        beats_mirror = 0.0 if _fit_by_chance(seen.own) > _LEVEL else 1.0
    if max(beats_own, beats_mirror) > _LEVEL:
        return None
    columns = seen.at.shape[1]
    moved = (np.append(rng.permutation(columns), columns) for _ in range(_DRAWS))
    highest = (_means(seen.by_rule(one[seen.rules])).max() for one in moved)
    p = max(beats_own, beats_mirror, _drawn(one >= means[best] - 1e-9 for one in highest))
    if p > _LEVEL:
        return None
    order, offset = sample.names[best]
    leads = zip(seen.rows, seen.rules[best], strict=True)
    text = (
        f"The judgments of a topic fit it better than they fit {seen.own.mean():.0%} of the other topics, and "
        f"{where_of(order, offset)} better than {means[best]:.0%}; {int((reached[best] > _MISFIT).sum())} of "
        f"{len(seen.rows)} fit that one better than three quarters."
    )
    topics = tuple((sample.rows[row], sample.columns[to]) for row, to in leads if to >= 0)
    return Fit("shifted", text, topics, p, offset, order, own=float(seen.own.mean()), best=float(means[best]))


def _fit_by_chance(own: Floats) -> float:
    """P of so good a fit to the own topics by chance, where places are uniform."""
    return float(scipy.special.ndtr((0.5 - float(own.mean())) * (12 * len(own)) ** 0.5))


def _above(differences: Floats, rng: np.random.Generator) -> float:
    """P that differences are above 0 by chance, their signs changed at random; 1 for too few."""
    there = differences[~np.isnan(differences)]
    if len(there) < FEWEST:
        return 1.0
    signs = rng.choice((-1.0, 1.0), (_DRAWS, len(there)))
    return _share(signs @ there >= there.sum() - 1e-9)


def _means(reached: Floats) -> Floats:
    """Means over rows that a rule leads somewhere; 0 for rules that lead nowhere."""
    there = ~np.isnan(reached)
    return np.asarray(np.where(there, reached, 0.0).sum(axis=1) / np.maximum(there.sum(axis=1), 1))


def _share(at_least: NDArray[np.bool_]) -> float:
    return float(1 + at_least.sum()) / (1 + len(at_least))


def _drawn(at_least: Iterable[bool]) -> float:
    """The same of `_DRAWS` draws that are made one after the other; 1 as soon as they cannot reach the level."""
    count = 0
    for one in at_least:
        count += one
        if 1 + count > _LEVEL * (1 + _DRAWS):
            return 1.0
    return (1 + count) / (1 + _DRAWS)


def where_of(order: str, offset: int) -> str:
    """The topic that a rule leads to, in words."""
    size, way = abs(offset), "after" if offset > 0 else "before"
    there = f"the topic {'just' if size == 1 else f'{size:,d} places'} {way} it"
    here = f", {size:,d} further {'on' if offset > 0 else 'back'}" if offset else ""
    by = {
        "number": f"the topic whose number is {size:,d} {'higher' if offset > 0 else 'lower'}",
        "order of ids": f"{there} in the order of ids",
        "file": f"{there} in the file of topics",
        "run": f"{there} in the order of the run",
        "number as place": f"the topic whose place among the topics the id counts{here}",
        "order of both": f"the topic at the same place among the topics{here}",
    }
    return by[order]


def _partly(sample: FitSample, seen: _Places) -> Fit | None:
    """Whether judgments that do not fit their own topic follow one rule more often than chance and likeness explain."""
    misfit = np.flatnonzero(seen.own < _MISFIT)
    if not len(seen.rules) or len(misfit) < _FOLLOWERS:
        return None
    first = np.nanmax(seen.at, axis=1) - 1e-9
    reached = seen.by_rule(seen.rules)
    above = seen.above[np.arange(len(seen.at)), seen.rules]  # where a rule leads nowhere, nothing is reached
    follow = ((reached >= first) & (reached > _MISFIT) & above)[:, misfit]
    followers = follow.sum(axis=1)
    best, most = int(followers.argmax()), int(followers.max())
    chance = 1 / (~np.isnan(seen.at)).sum(axis=1).mean()
    # Bit for bit the upper tail of the binomial distribution.
    p = float(min(1.0, len(seen.rules) * scipy.special.betainc(most, len(misfit) - most + 1, chance)))
    if most < max(_FOLLOWERS, len(misfit) / 3) or p > _LEVEL or _alike(seen, seen.rules[best], most, len(misfit)):
        return None
    order, offset = sample.names[best]
    chosen = misfit[follow[best]]
    pairs = tuple((sample.rows[seen.rows[at]], sample.columns[seen.rules[best][at]]) for at in chosen)
    text = (
        f"Of {len(seen.rows)} topics, {len(misfit)} have judgments that a quarter of the other topics fits better; "
        f"{len(chosen)} of these fit best {where_of(order, offset)}."
    )
    return Fit("shifted", text, pairs, p, offset, order, own=float(seen.own.mean()))


def _alike(seen: _Places, rule: Ints, followers: int, misfit: int) -> bool:
    """Whether judgments that fit their own topic best fit, of the others, the mirrored one hardly less often."""
    others = seen.at.copy()
    there = np.flatnonzero(seen.column >= 0)
    others[there, seen.column[there]] = np.nan
    back = seen.by_rule(seen.mirror(rule))
    asked = (seen.own >= _MISFIT) & ~np.isnan(back)
    back_first = int(((back >= np.nanmax(others, axis=1) - 1e-9) & (back > _MISFIT))[asked].sum())
    counts = [[followers, misfit - followers], [back_first, int(asked.sum()) - back_first]]
    return float(scipy.stats.fisher_exact(counts, alternative="greater").pvalue) > (
        _LIKENESS if back_first <= 1 else _ALIKE
    )


def _grouping(values: Floats, groups: Ints, seed: int) -> float:
    """Whether documents that one topic holds relevant fit some topic together: p against documents dealt out anew."""
    chosen = np.isin(groups, np.unique(groups)[:100])
    values, groups = values[chosen][:, :500], groups[chosen]
    starts = np.unique(groups, return_index=True)[1]
    sizes = np.diff([*starts, len(groups)])
    if len(groups) < 1.5 * len(starts):
        return 1.0
    rng = np.random.default_rng(seed)

    ends = np.append(starts, len(groups))

    def best(order: Ints) -> float:
        dealt = scipy.sparse.csr_array((np.ones(len(order)), order, ends), shape=(len(starts), len(order)))
        return float(((dealt @ values).max(axis=1) / sizes).sum())

    seen = best(np.arange(len(groups)))
    return _drawn(best(rng.permutation(len(groups))) >= seen - 1e-9 for _ in range(_DRAWS))


# -- topic by topic ------------------------------------------------------------------------------------------------


class _Elsewhere(NamedTuple):
    """Topics beside the first results of others: those whose own results `lack` their documents, and how many do not.

    `best` has the topic, one that lacks its own as well, whose results hold most of a topic's documents: topic_id,
    other, score; the score is the discounted gain there, divided by the most there can be.
    """

    lack: pl.Series
    found: int
    best: pl.DataFrame


def _elsewhere(relevant: pl.DataFrame, top: pl.DataFrame) -> _Elsewhere:
    """Relevant documents (topic_id, doc_id) in the first results of all topics (topic_id, doc_id, gain)."""
    found = relevant.join(top, on=["topic_id", "doc_id"], how="semi")["topic_id"].unique()
    # What many topics share tells none of them from another.
    relevant = relevant.filter(pl.len().over("doc_id") <= _TELLS)
    discounts = np.cumsum(1 / np.log2(np.arange(2, _HIGH + 2)))
    sizes = relevant.group_by("topic_id").len()
    most = sizes.with_columns(most=pl.Series(discounts[np.minimum(sizes["len"].to_numpy(), _HIGH) - 1]))
    hits = top.rename({"topic_id": "other"}).join(relevant, on="doc_id")
    scores = hits.group_by("topic_id", "other").agg(pl.col("gain").sum()).join(most, on="topic_id")
    itself = pl.col("topic_id") == pl.col("other")
    lack = sizes.filter(~pl.col("topic_id").is_in(found.implode()))["topic_id"]
    shared = relevant.join(relevant, on="doc_id", suffix="_other").select("topic_id", other="topic_id_other").unique()
    others = scores.filter(~itself).join(shared, on=["topic_id", "other"], how="anti")
    others = others.select("topic_id", "other", score=pl.col("gain") / pl.col("most"))
    others = others.sort("score", "topic_id", "other", descending=[True, False, False])
    # Judgments that moved to a topic took the place of its own, which are elsewhere in turn.
    at = lack
    for _ in range(2):
        best = others.filter(pl.col("other").is_in(at.implode())).unique("topic_id", keep="first", maintain_order=True)
        at = best.filter(pl.col("topic_id").is_in(lack.implode()))["topic_id"]
    return _Elsewhere(lack, len(sizes) - len(lack), best)


def _by_topic(
    fit: Fit, relevant: pl.DataFrame, runs: Mapping[str, TopicLists], topics: Mapping[str, str] | None, seed: int
) -> Fit:
    """The same answer, or which judgments are at other topics where honest ones do not explain so many.

    The relevant documents of a topic *astray* are among the first results of another topic, and not of its own; those
    of that other topic are astray as well. An honest topic whose results lack its documents may look so by chance. It
    does no more often than topics whose results have theirs, among which it is counted. Where no judgments fit, random
    documents of the first results are.
    """
    relevant = relevant.select("topic_id", "doc_id").unique()
    tops = [run.on(relevant["topic_id"].unique()).first(_HIGH) for run in runs.values()]
    top = pl.concat(tops).with_columns(gain=1 / (pl.col("place") + 1).log(2) / len(tops))
    relevant = relevant.join(top, on="topic_id", how="semi").sort("topic_id", "doc_id")
    if fit.word == "inverted" or relevant.is_empty():
        return fit
    seen = _elsewhere(relevant, top)
    lacks = pl.col("topic_id").is_in(seen.lack.implode())
    best, alike, of = seen.best.filter(lacks), seen.best.filter(~lacks), seen.found
    none_fit = fit.best is not None or (fit.word != "fits" and any(one.word == "unrelated" for one in fit.sources))
    fewest: float = FEWEST
    if none_fit:
        documents = relevant["doc_id"].unique().sort()
        dealt = top["doc_id"].sort().sample(len(documents), with_replacement=True, seed=seed)
        anew = relevant.with_columns(pl.col("doc_id").replace_strict(documents, dealt, return_dtype=pl.String))
        of = seen.found + len(seen.lack)
        alike, fewest = _elsewhere(anew, top).best, max(FEWEST, of / 4)
    limit = _MOST if none_fit else _HONEST
    gain, found = 0.0, None
    for depth in range(1, _HIGH + 1):
        high = pl.col("score") >= 1 / np.log2(depth + 1) - 1e-9
        some, by_chance = best.filter(high), len(alike.filter(high))
        several = some["other"].n_unique()
        rate = float(scipy.special.betaincinv(by_chance + 1, of - by_chance, _SURE)) if by_chance < of else 1.0
        more = several - len(seen.lack) * by_chance / max(1, of) / limit
        honest = rate * len(seen.lack)
        if several < fewest or honest > limit * several or more <= gain:
            continue
        # Asked last: it takes half a second to load.
        counts = [[several, len(seen.lack) - several], [by_chance, of - by_chance]]
        p = float(scipy.stats.fisher_exact(counts, alternative="greater").pvalue)
        if _HIGH * p <= _LEVEL:
            gain, found = more, (some, honest, p)
    if found is None:
        return fit
    some, honest, p = found
    pairs = tuple(some.sort("topic_id").select("topic_id", "other").iter_rows())
    asked = [*topics] if topics else next(iter(runs.values())).topics.to_list()
    order, offset, followers = _step(pairs, asked, "file" if topics else "run")
    ruled = followers >= _RULED * len(pairs)
    open_ones = len(seen.lack) - len(pairs)
    text = (
        f"The relevant documents of {len(pairs):,d} topics are among the first {_HIGH} results of one other topic "
        f"each, and not of their own; by chance those of at most {np.ceil(honest):,.0f} would be. Those of "
        f"{seen.found:,d} are among their own; {open_ones:,d} more may be astray, too"
        + (f"; {followers:,d} fit {where_of(order, offset)}." if ruled else ".")
    )
    by_topic = replace(
        fit, word="shifted" if ruled else "shuffled", evidence=text, topics=pairs, p=_HIGH * p, sampled=0, best=None,
        told=seen.found + len(pairs), order=order if ruled else "", offset=offset if ruled else None,
        source=", ".join(runs),
    )  # fmt: skip
    if fit.word in ("fits", "not asked", "unrelated") or by_topic.of_all(0):
        return fit if ruled and fit.best is not None else by_topic
    return fit if fit.of_all(len(seen.lack) + seen.found) or len(pairs) < len(fit.topics) else by_topic


def _step(pairs: Sequence[tuple[str, str]], asked: Sequence[str], given: str) -> tuple[str, int, int]:
    """The rule that leads most topics to others: its order, its offset, and how many it leads there."""
    ids = sorted({*asked, *(one for one, _ in pairs)}, key=natural)
    found = []
    for name, order in (("order of ids", ids), (given, asked)):
        at = {one: place for place, one in enumerate(order)}
        steps = Counter(at[other] - at[one] for one, other in pairs if one in at)
        found += [(name, offset, count) for offset, count in steps.most_common(1)]
    return max(found, key=lambda one: one[2])


# -- grades --------------------------------------------------------------------------------------------------------


def _graded(judged: pl.DataFrame, seed: int) -> Fit:
    """Whether grades rise or fall with the fit: their correlation, its signs by topic changed at random."""
    correlation = pl.corr(pl.col("relevance").cast(pl.Float64), "fit").alias("correlation")
    by_topic = judged.group_by("topic_id").agg(correlation).filter(pl.col("correlation").is_finite()).sort("topic_id")
    values = by_topic["correlation"].to_numpy()
    if len(values) < FEWEST:
        return Fit("not asked", f"{len(values)} topics with several grades are too few.")
    signs = np.random.default_rng(seed).choice((-1.0, 1.0), (_DRAWS, len(values)))
    p = _share(np.abs(signs @ values) >= abs(values.sum()) - 1e-9)
    text = f"The correlation of grade and fit is {values.mean():+.2f} on average over {len(values)} topics"
    if p > _LEVEL or values.mean() > 0:
        return Fit("not asked" if p > _LEVEL else "fits", f"{text}.", p=p)
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
