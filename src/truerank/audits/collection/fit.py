"""Propose: whether judgments fit their own topics better than others', by words and by runs, and which way they miss.

Relevant documents fit the text of a topic if they are among the best of all topics' relevant documents for it by BM25;
they fit the results of a topic if they stand at good ranks there. The *place* of a topic's judgments at a topic is the
share of the other topics that they fit less: .5 by chance, 1 at best. Asked is whether the judgments are

- *shifted*: one rule, such as "the next number", leads to topics that all judgments, or those of a part of the topics,
  fit better than their own;
- *shuffled*: they fit their own topics no better than others, but they do fit topics;
- *unrelated*: they fit no topic;
- *inverted*: the lower the grade, the better the document fits its own topic.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse, stats

from truerank.lexical.analysis import Analyser
from truerank.lexical.models import BM25, Statistics

FitWord = Literal["fits", "shifted", "shuffled", "inverted", "other collection", "unrelated", "not asked"]
Texts = Callable[[Collection[str]], Mapping[str, str]]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: The level of each test, and random draws that can reach it.
_LEVEL: Final = 0.001
_DRAWS: Final = 1999
#: Judged topics, relevant documents of each, and topics to compare with, at most.
_ROWS, _OF_TOPIC, _COLUMNS, _BLOCKS = 300, 20, 2000, 10
#: Fewer judged topics than that, or fewer unrelated topics beside one, show nothing.
_FEWEST: Final = 10
#: Own places that lie below this with certainty show no fit; no test collection that was looked at is near it.
_NO_FIT: Final = 0.6
#: A topic's judgments may belong elsewhere if a quarter of the other topics fits them better.
_MISFIT: Final = 0.75
#: So many judgments of the misfit have to follow one rule.
_FOLLOWERS: Final = 5
#: Offsets and topics of the shift test, together, at most.
_GATHERED: Final = 40_000
#: The share of a topic's words that the documents have to hold on average, so that they may be compared by words.
_COVERED: Final = 0.5
#: Characters of a document that are read.
_READ: Final = 20_000
_NUMBER: Final = re.compile(r"(.*?)(\d+)")


@dataclass(frozen=True)
class Fit:
    """How judgments fit their topics, by one source of evidence or by all.

    Attributes:
        word: "fits"; "shifted"; "shuffled"; "inverted"; "other collection": they fit no topic by the words, or their
            documents are unknown; "unrelated": they fit no topic by a run, which may be the fault of the run; "not
            asked": too little evidence.
        evidence: one sentence with figures.
        topics: the judged topics concerned, each with the topic that its judgments fit; empty where that is not known.
        p: of the test that gave the word; None where none did.
        offset: of "shifted": so many topics further on is the one that the judgments fit.
        order: of "shifted": by "number", in the "order of ids", in the "file"; "number as place": the ids count the
            topics of the file.
        source: "words", or the name of a run; empty for all together.
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
    sources: tuple[Fit, ...] = ()


class _Sample(NamedTuple):
    """Judged topics beside the topics that they are compared with.

    Attributes:
        rows: ids of the judged topics.
        columns: ids of the topics of the file or run.
        docs: columns row, doc_id: their relevant documents, topic after topic.
        own: the column of each row; -1 where no topic has the id.
        rules: places of columns by rule, shape (rules, rows); -1 for none.
        names: of the rules: order and offset.
        related: columns that share relevant documents with a row, shape (rows, columns).
    """

    rows: Sequence[str]
    columns: Sequence[str]
    docs: pl.DataFrame
    own: Ints
    rules: Ints
    names: Sequence[tuple[str, int]]
    related: NDArray[np.bool_]


def judgment_fit(
    qrels: pl.DataFrame,
    runs: Mapping[str, pl.DataFrame] | None = None,
    topics: Mapping[str, str] | None = None,
    texts: Texts | None = None,
    rel: int = 1,
    seed: int = 0,
) -> Fit:
    """Whether judgments fit their topics; of several answers the gravest that no other source contradicts.

    Runs are asked first. Texts are fetched only where the runs do not show that the judgments fit.

    Args:
        qrels: columns topic_id, doc_id, relevance; one row for each pair.
        runs: by name, columns topic_id, doc_id, rank.
        topics: texts by id, in the order of their file.
        texts: of the documents named, the texts of those that exist.
        rel: the lowest grade that counts as relevant.
        seed: of samples and permutations.
    """
    found, grades = [], []
    for name, run in (runs or {}).items():
        asked = [*topics] if topics else run["topic_id"].unique(maintain_order=True).to_list()
        sample = _sampled(qrels, asked, rel, seed)
        found.append(replace(_placed(sample, _by_run(sample, run), seed), source=name))
        grades.append(replace(_graded(_ranked(qrels, run), seed), source=name))
    if topics and texts is not None and not any(one.word == "fits" for one in found):
        sample = _sampled(qrels, [*topics], rel, seed)
        found.append(replace(_worded(sample, topics, texts, seed), source="words"))
        if not any(one.word != "not asked" for one in grades):
            grades.append(replace(_graded(_scored(qrels, topics, texts, seed), seed), source="words"))
    return _together(found, grades)


def _together(found: Sequence[Fit], grades: Sequence[Fit]) -> Fit:
    """One answer: a fit by any source is a fit; otherwise what words say, or else all runs that say something."""
    sources = (*found, *(one for one in grades if one.word == "inverted"))
    words = {one.word for one in found}
    inverted = [one for one in grades if one.word == "inverted"]
    if inverted and not any(one.word == "fits" for one in grades):
        return replace(min(inverted, key=lambda one: one.p or 0), source="", sources=sources)
    for word in ("fits", "shifted", "shuffled", "other collection"):
        chosen = [one for one in found if one.word == word]
        if chosen:
            return replace(max(chosen, key=lambda one: len(one.topics)), source="", sources=sources)
    if sum(one.word == "unrelated" for one in found) > 1 and words <= {"unrelated", "not asked"}:
        first = next(one for one in found if one.word == "unrelated")
        return replace(first, word="other collection", source="", sources=sources)
    return Fit("not asked", found[0].evidence if found else "No runs, and no topics with documents.", sources=sources)


# -- what is compared ----------------------------------------------------------------------------------------------


def _sampled(qrels: pl.DataFrame, asked: Sequence[str], rel: int, seed: int) -> _Sample:
    """Judged topics and their relevant documents, and the topics that they are compared with, in a bounded number."""
    pairs = qrels.filter(pl.col("relevance") >= rel).select("topic_id", "doc_id")
    columns = list(asked)
    if len(columns) > _COLUMNS:  # neighbours stay neighbours
        starts = np.linspace(0, len(columns), _BLOCKS, endpoint=False).astype(int)
        columns = [one for start in starts for one in columns[start : start + _COLUMNS // _BLOCKS]]
    place = {one: at for at, one in enumerate(columns)}
    judged = sorted(pairs["topic_id"].unique().to_list(), key=_natural)
    known = [one for one in judged if one in place]
    rows = judged if len(columns) == len(asked) or 2 * len(known) < len(judged) else known
    rows = [rows[at] for at in np.unique(np.linspace(0, len(rows) - 1, min(len(rows), _ROWS)).astype(int))]
    at = pl.DataFrame({"topic_id": rows, "row": range(len(rows))}, schema={"topic_id": pl.String, "row": pl.Int64})
    docs = pairs.join(at, on="topic_id").select("row", "doc_id").sort("row", "doc_id")
    docs = docs.with_columns(pl.int_range(pl.len()).shuffle(seed).over("row").alias("draw"))
    docs = docs.filter(pl.col("draw") < _OF_TOPIC).drop("draw")
    rules, names = _rules(rows, judged, list(asked), place)
    return _Sample(
        rows, columns, docs, np.array([place.get(one, -1) for one in rows], np.int64), rules, names,
        _related(pairs, rows, columns),
    )  # fmt: skip


def _related(pairs: pl.DataFrame, rows: Sequence[str], columns: Sequence[str]) -> NDArray[np.bool_]:
    """Which topics share a relevant document."""
    left = pl.DataFrame({"topic_id": rows}, schema={"topic_id": pl.String}).with_row_index("row")
    right = pl.DataFrame({"topic_id": columns}, schema={"topic_id": pl.String}).with_row_index("column")
    shared = pairs.join(left, on="topic_id").join(pairs.join(right, on="topic_id"), on="doc_id")
    related = np.zeros((len(rows), len(columns)), bool)
    related[shared["row"].to_numpy(), shared["column"].to_numpy()] = True
    return related


def _natural(identifier: str) -> tuple[str, int, str]:
    number = _NUMBER.fullmatch(identifier)
    return (number[1], int(number[2]), identifier) if number else (identifier, 0, identifier)


def _rules(
    rows: Sequence[str], judged: Sequence[str], asked: Sequence[str], place: Mapping[str, int]
) -> tuple[Ints, list[tuple[str, int]]]:
    """The ways in which ids may have moved: by order and offset, the column that each row leads to; likely ones first.

    Args:
        rows: judged topics that are looked at.
        judged: all judged topics in the order of their ids.
        asked: all topics in the order of their file.
        place: the columns of topics.
    """
    ordered = sorted(asked, key=_natural)
    numbers = {(_natural(one)[:2]): one for one in reversed(asked) if _NUMBER.fullmatch(one)}
    at_file, at_ids, at_judged = ({one: at for at, one in enumerate(order)} for order in (asked, ordered, judged))

    def by_number(one: str, offset: int) -> str | None:
        stem, number, _ = _natural(one)
        return numbers.get((stem, number + offset))

    def around(order: Sequence[str], at: Mapping[str, int]) -> Callable[[str, int], str | None]:
        return lambda one, offset: order[(at[one] + offset) % len(order)] if one in at else None

    def as_place(one: str, offset: int) -> str | None:
        spot = _natural(one)[1] - 1 + offset if _NUMBER.fullmatch(one) else -1
        return asked[spot] if 0 <= spot < len(asked) else None

    def in_turn(one: str, offset: int) -> str | None:
        return asked[spot] if 0 <= (spot := at_judged[one] + offset) < len(asked) else None

    furthest = max(1, min(len(asked) // 2, _GATHERED // (6 * max(1, len(rows)))))
    offsets = sorted((one for one in range(-furthest, furthest + 1) if one), key=abs)
    near = (0, 1, -1)
    ways = [("number", by_number, offsets), ("order of ids", around(ordered, at_ids), offsets)]
    ways += [("file", around(asked, at_file), offsets)] if ordered != list(asked) else []
    ways += [("number as place", as_place, near), ("order of both", in_turn, near)]
    known: set[bytes] = {np.array([place.get(one, -1) for one in rows], np.int64).tobytes()}
    rules, names = [], []
    for name, way, steps in ways:
        for step in steps:
            leads = (way(one, step) for one in rows)
            rule = np.array([-1 if one is None else place.get(one, -1) for one in leads], np.int64)
            if (rule >= 0).sum() >= max(_FEWEST, len(rows) / 2) and rule.tobytes() not in known:
                known.add(rule.tobytes())
                rules.append(rule)
                names.append((name, step))
    return np.array(rules, np.int64).reshape(-1, len(rows)), names


# -- fit by words and by runs --------------------------------------------------------------------------------------


def _by_run(sample: _Sample, run: pl.DataFrame) -> Floats:
    """How well each relevant document stands in the results of each topic, shape (documents, columns)."""
    columns = pl.DataFrame({"topic_id": sample.columns}, schema={"topic_id": pl.String}).with_row_index("column")
    results = run.select("topic_id", "doc_id", pl.col("rank").rank("ordinal").over("topic_id"))
    docs = sample.docs.with_row_index("place")
    met = docs.join(results.join(columns, on="topic_id"), on="doc_id")
    values = np.zeros((len(docs), len(sample.columns)))
    values[met["place"].to_numpy(), met["column"].to_numpy()] = 1 / np.log2(met["rank"].to_numpy() + 1.0)
    return values


def _bm25(documents: Sequence[str], topics: Sequence[str]) -> tuple[Floats, float]:
    """BM25 of documents for topics, shape (documents, topics), and the mean share of a topic's terms in them."""
    analyser, model = Analyser(), BM25()
    asked = [Counter(analyser(text)) for text in topics]
    terms = {term: at for at, term in enumerate(dict.fromkeys(term for one in asked for term in one))}
    counted = [Counter(analyser(text[:_READ])) for text in documents]
    lengths = np.array([one.total() for one in counted], float)
    held = _sparse(
        [{terms[term]: count for term, count in one.items() if term in terms} for one in counted], len(terms)
    )
    held = held.tocsc()
    for term in range(len(terms)):
        part = slice(held.indptr[term], held.indptr[term + 1])
        counts = held.data[part].copy()
        known = Statistics(
            len(documents), float(lengths.mean()), float(lengths.sum()), len(counts), float(counts.sum())
        )
        held.data[part] = model.weights(counts, lengths[held.indices[part]], known)
    queries = _sparse(
        [{terms[term]: model.query_weight(count) for term, count in one.items()} for one in asked], len(terms)
    )
    there = np.diff(held.indptr) > 0
    covered = [np.mean([there[terms[term]] for term in one]) for one in asked if one]
    return (held.tocsr() @ queries.T).toarray(), float(np.mean(covered)) if covered else 0.0


def _sparse(rows: Sequence[Mapping[int, float]], width: int) -> sparse.csr_matrix:
    ends = np.cumsum([0, *map(len, rows)])
    columns = [column for row in rows for column in row]
    values = [value for row in rows for value in row.values()]
    return sparse.csr_matrix((np.array(values, float), np.array(columns, np.int64), ends), shape=(len(rows), width))


def _worded(sample: _Sample, topics: Mapping[str, str], texts: Texts, seed: int) -> Fit:
    """The answer by words."""
    wanted = sample.docs["doc_id"].unique(maintain_order=True).to_list()
    said = texts(wanted)
    there = sum(one in said for one in wanted)
    if 2 * there < len(wanted):
        told = f"{len(wanted) - there:,d} of {len(wanted):,d} relevant documents looked for are not in the collection."
        return Fit("other collection", told, tuple((one, "") for one in sample.rows))
    docs = sample.docs.filter(pl.col("doc_id").is_in(list(said)))
    scores, covered = _bm25([said[one] for one in docs["doc_id"]], [topics[one] for one in sample.columns])
    # Topics differ in the size of their scores: what counts is the place among all topics' relevant documents.
    places = stats.rankdata(scores, axis=0) / len(scores)
    fit = _placed(sample._replace(docs=docs), places, seed)
    if fit.word in ("shuffled", "unrelated") and covered < _COVERED:
        return Fit(
            "not asked", f"The documents hold {covered:.0%} of a topic's words: too few to compare.", own=fit.own
        )
    return replace(fit, word="other collection") if fit.word == "unrelated" else fit


# -- shifted, shuffled, unrelated ----------------------------------------------------------------------------------


def _placed(sample: _Sample, values: Floats, seed: int) -> Fit:
    """The answer by the fit of each relevant document to each topic, shape (documents, columns)."""
    groups = sample.docs["row"].to_numpy()
    rows, starts = np.unique(groups, return_index=True)
    usable = np.zeros(len(sample.rows), bool)
    usable[rows] = True
    if len(rows) < _FEWEST:
        return Fit("not asked", f"{len(rows)} judged topics with relevant documents are too few.")
    means = np.add.reduceat(values, starts, axis=0) / np.diff([*starts, len(groups)])[:, None]
    own, related = sample.own[rows], sample.related[rows].copy()
    related[own >= 0, own[own >= 0]] = False
    compared = (~related).sum(axis=1)
    kept = compared > _FEWEST
    if kept.sum() < _FEWEST:
        return Fit("not asked", "Too many topics share their relevant documents.")
    rows, own, related, means = rows[kept], own[kept], related[kept], means[kept]
    places = _row_places(means, related)
    rules = np.where(sample.rules[:, rows] >= 0, sample.rules[:, rows], -1)
    at_own = np.where(own >= 0, places[np.arange(len(rows)), own], 0.5)
    fit = _shifted(sample, rows, places, rules, at_own, seed) or _partly(sample, rows, places, rules, at_own)
    if fit is not None:
        return fit
    mean, error = float(at_own.mean()), float(at_own.std(ddof=1)) / len(rows) ** 0.5
    z = (mean - 0.5) / (1 / (12 * len(rows))) ** 0.5
    p = float(stats.norm.sf(z))
    figures = f"On average the judgments of a topic fit it better than {mean:.0%} of the other topics"
    if p <= _LEVEL and mean + 3.09 * error >= _NO_FIT:
        return Fit("fits", f"{figures}.", p=p, own=mean)
    if mean + 3.09 * error >= _NO_FIT:
        return Fit("not asked", f"{figures}: {len(rows)} topics are too few to say more.", own=mean)
    ids = tuple((sample.rows[row], "") for row in rows)
    grouped = np.isin(groups, rows)
    p = _grouping(values[grouped], groups[grouped], seed)
    if p <= _LEVEL:
        return Fit("shuffled", f"{figures}, but they fit topics: mixed up.", ids, p, own=mean)
    return Fit("unrelated", f"{figures}: half is chance.", ids, own=mean)


def _row_places(means: Floats, related: NDArray[np.bool_]) -> Floats:
    """The share of the unrelated columns that fit a row less, ties counted half; related columns have no place."""
    ranks = stats.rankdata(np.where(related, -1.0, means), axis=1)
    left_out = related.sum(axis=1, keepdims=True)
    places = (ranks - left_out - 0.5) / (means.shape[1] - left_out)
    return np.where(related, np.nan, places)


def _shifted(sample: _Sample, rows: Ints, places: Floats, rules: Ints, at_own: Floats, seed: int) -> Fit | None:
    """Whether one rule leads all judgments to topics that they fit better than their own.

    The rule has to beat random assignments of topics to judgments (the best of all rules each time), and the topics'
    own ids (signs of the differences changed at random).
    """
    if not len(rules):
        return None
    padded = np.c_[places, np.full(len(rows), np.nan)]
    at = np.arange(len(rows))
    reached = padded[at, rules]
    means = np.nanmean(np.c_[reached, np.full(len(rules), 0.0)], axis=1) if False else _means(reached)
    best = int(means.argmax())
    differences = reached[best] - at_own
    differences = differences[~np.isnan(differences)]
    if means[best] <= at_own.mean() or len(differences) < _FEWEST or differences.mean() <= 0:
        return None
    rng = np.random.default_rng(seed)
    signs = rng.choice((-1.0, 1.0), (_DRAWS, len(differences)))
    p_own = _share(signs @ differences >= differences.sum() - 1e-9)
    if p_own > _LEVEL:
        return None
    columns = places.shape[1]
    highest = np.empty(_DRAWS)
    for draw in range(_DRAWS):
        moved = np.append(rng.permutation(columns), columns)
        highest[draw] = _means(padded[at, moved[rules]]).max()
    p = max(p_own, _share(highest >= means[best] - 1e-9))
    if p > _LEVEL:
        return None
    order, offset = sample.names[best]
    pairs = tuple((sample.rows[row], sample.columns[to]) for row, to in zip(rows, rules[best], strict=True) if to >= 0)
    told = (
        f"The judgments of a topic fit it better than {at_own.mean():.0%} of the other topics, and {_where(order, offset)} "
        f"better than {means[best]:.0%}."
    )
    return Fit("shifted", told, pairs, p, offset, order, own=float(at_own.mean()), best=float(means[best]))


def _means(reached: Floats) -> Floats:
    """Means over rows that a rule leads somewhere; 0 for rules that lead nowhere."""
    there = ~np.isnan(reached)
    return np.where(there, reached, 0.0).sum(axis=1) / np.maximum(there.sum(axis=1), 1)


def _share(at_least: NDArray[np.bool_]) -> float:
    return float(1 + at_least.sum()) / (1 + len(at_least))


def _where(order: str, offset: int) -> str:
    """The topic that a rule leads to, in words."""
    by = {
        "number": f"the topic whose number is {offset:+d}",
        "order of ids": f"the topic {offset:+d} places on in the order of ids",
        "file": f"the topic {offset:+d} places on in the file of topics",
        "number as place": "the topic whose place in the file the id counts" + (f", {offset:+d}" if offset else ""),
        "order of both": "the topic at the same place in the file" + (f", {offset:+d}" if offset else ""),
    }
    return by[order]


def _partly(sample: _Sample, rows: Ints, places: Floats, rules: Ints, at_own: Floats) -> Fit | None:
    """Whether judgments that do not fit their own topic follow one rule more often than chance."""
    misfit = np.flatnonzero(at_own < _MISFIT)
    if not len(rules) or len(misfit) < _FOLLOWERS:
        return None
    padded = np.c_[places, np.full(len(rows), np.nan)]
    first = np.nanmax(places, axis=1) - 1e-9
    follow = padded[misfit, rules[:, misfit]] >= first[misfit]
    followers = follow.sum(axis=1)
    best = int(followers.argmax())
    chance = 1 / (~np.isnan(places)).sum(axis=1).mean()
    p = float(min(1.0, len(rules) * stats.binom.sf(followers[best] - 1, len(misfit), chance)))
    if followers[best] < _FOLLOWERS or p > _LEVEL:
        return None
    order, offset = sample.names[best]
    chosen = misfit[follow[best]]
    pairs = tuple((sample.rows[rows[at]], sample.columns[rules[best][at]]) for at in chosen)
    told = (
        f"Of {len(rows)} topics, {len(misfit)} have judgments that a quarter of the other topics fits better; "
        f"{len(chosen)} of these fit best {_where(order, offset)}."
    )
    return Fit("shifted", told, pairs, p, offset, order, own=float(at_own.mean()))


def _grouping(values: Floats, groups: Ints, seed: int) -> float:
    """Whether documents that one topic holds relevant fit some topic together: p against documents dealt out anew."""
    chosen = np.isin(groups, np.unique(groups)[:100])
    values, groups = values[chosen][:, :500], groups[chosen]
    starts = np.unique(groups, return_index=True)[1]
    sizes = np.diff([*starts, len(groups)])
    if len(groups) < 1.5 * len(starts):
        return 1.0
    rng = np.random.default_rng(seed)

    def best(order: Ints) -> float:
        return float((np.add.reduceat(values[order], starts, axis=0).max(axis=1) / sizes).sum())

    seen = best(np.arange(len(groups)))
    return _share(np.array([best(rng.permutation(len(groups))) for _ in range(_DRAWS)]) >= seen - 1e-9)


# -- grades --------------------------------------------------------------------------------------------------------


def _ranked(qrels: pl.DataFrame, run: pl.DataFrame) -> pl.DataFrame:
    """Judged documents of topics of a run: topic_id, relevance, fit; what the run does not hold stands last."""
    results = run.select("topic_id", "doc_id", pl.col("rank").rank("ordinal").over("topic_id").cast(pl.Float64))
    judged = qrels.join(results.select("topic_id").unique(), on="topic_id", how="semi")
    judged = judged.join(results, on=["topic_id", "doc_id"], how="left")
    return judged.select("topic_id", "relevance", (-pl.col("rank").fill_null(np.inf)).alias("fit"))


def _scored(qrels: pl.DataFrame, topics: Mapping[str, str], texts: Texts, seed: int) -> pl.DataFrame:
    """The same by BM25, for a sample of topics and documents."""
    mixed = qrels.filter(pl.col("relevance").n_unique().over("topic_id") > 1, pl.col("topic_id").is_in(list(topics)))
    some = mixed["topic_id"].unique().sort().head(_ROWS)
    mixed = mixed.filter(pl.col("topic_id").is_in(some.to_list())).sort("topic_id", "doc_id")
    draw = pl.int_range(pl.len()).shuffle(seed).over("topic_id", "relevance")
    mixed = mixed.filter(draw < _OF_TOPIC)
    said = texts(mixed["doc_id"].unique().to_list()) if len(mixed) else {}
    mixed = mixed.filter(pl.col("doc_id").is_in(list(said)))
    if mixed.is_empty():
        return pl.DataFrame(schema={"topic_id": pl.String, "relevance": pl.Int64, "fit": pl.Float64})
    ids = mixed["topic_id"].unique(maintain_order=True).to_list()
    docs = mixed["doc_id"].unique(maintain_order=True).to_list()
    scores, _ = _bm25([said[one] for one in docs], [topics[one] for one in ids])
    at = ({one: place for place, one in enumerate(order)} for order in (docs, ids))
    rows, columns = (
        mixed[name].replace_strict(places, return_dtype=pl.Int64).to_numpy()
        for name, places in zip(("doc_id", "topic_id"), at, strict=True)
    )
    return mixed.select("topic_id", "relevance").with_columns(fit=scores[rows, columns])


def _graded(judged: pl.DataFrame, seed: int) -> Fit:
    """Whether grades rise or fall with the fit: the mean over topics of Spearman's coefficient."""
    by_topic = judged.group_by("topic_id").agg(pl.corr("relevance", "fit", method="spearman").alias("rho"))
    by_topic = by_topic.filter(pl.col("rho").is_finite()).sort("topic_id")
    values = by_topic["rho"].to_numpy()
    if len(values) < _FEWEST:
        return Fit("not asked", f"{len(values)} topics with several grades are too few.")
    signs = np.random.default_rng(seed).choice((-1.0, 1.0), (_DRAWS, len(values)))
    drawn = np.abs(signs @ values)
    p = _share(drawn >= abs(values.sum()) - 1e-9)
    mean = float(values.mean())
    told = f"The rank correlation of grade and fit is {mean:+.2f} on average over {len(values)} topics"
    if p > _LEVEL:
        return Fit("not asked", f"{told}, which is no evidence.", p=p)
    if mean > 0:
        return Fit("fits", f"{told}.", p=p)
    return Fit(
        "inverted",
        f"{told}, below 0 in {int((values < 0).sum())}.",
        tuple((one, "") for one in by_topic["topic_id"]),
        p,
    )
