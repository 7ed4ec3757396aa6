"""What the fit of judgments compares: judged topics beside others, and documents beside texts and results."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse

from truerank.arrays import Floats, Ints
from truerank.lexical.analysis import Analyser
from truerank.lexical.models import BM25, Statistics

#: Judged topics, relevant documents of each, and topics to compare with, at most; these come in blocks of neighbours.
_ROWS, _OF_TOPIC, _COLUMNS, _BLOCKS = 300, 20, 2000, 10
#: Down to a depth, most results are judged; above a few ranks grades have no order.
_MOST_JUDGED, _SHALLOWEST = 0.75, 5
#: Fewer judged topics than that show nothing.
FEWEST: Final = 10
#: Offsets and topics, together, at most.
_GATHERED: Final = 40_000
#: Characters of a document that are read.
_READ: Final = 20_000
_NUMBER: Final = re.compile(r"(.*?)(\d+)")


class FitSample(NamedTuple):
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


def sampled(qrels: pl.DataFrame, asked: Sequence[str], rel: int, seed: int) -> FitSample:
    """Judged topics and their relevant documents, and the topics that they are compared with, in a bounded number."""
    pairs = qrels.filter(pl.col("relevance") >= rel).select("topic_id", "doc_id")
    columns = list(asked)
    if len(columns) > _COLUMNS:  # neighbours stay neighbours
        starts = np.linspace(0, len(columns), _BLOCKS, endpoint=False).astype(int)
        columns = [one for start in starts for one in columns[start : start + _COLUMNS // _BLOCKS]]
    place = {one: at for at, one in enumerate(columns)}
    judged = sorted(pairs["topic_id"].unique().to_list(), key=natural)
    known = [one for one in judged if one in place]
    rows = judged if len(columns) == len(asked) or 2 * len(known) < len(judged) else known
    rows = [rows[at] for at in np.unique(np.linspace(0, len(rows) - 1, min(len(rows), _ROWS)).astype(int))]
    at = pl.DataFrame({"topic_id": rows, "row": range(len(rows))}, schema={"topic_id": pl.String, "row": pl.Int64})
    docs = pairs.join(at, on="topic_id").select("row", "doc_id").sort("row", "doc_id")
    docs = docs.with_columns(pl.int_range(pl.len()).shuffle(seed).over("row").alias("draw"))
    docs = docs.filter(pl.col("draw") < _OF_TOPIC).drop("draw")
    rules, names = _rules(rows, judged, list(asked), place)
    return FitSample(
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


def natural(identifier: str) -> tuple[str, int, str]:
    """What ids are sorted by: their stem, then their number."""
    number = _NUMBER.fullmatch(identifier)
    return (number[1], int(number[2]), identifier) if number else (identifier, 0, identifier)


def _rules(
    rows: Sequence[str], judged: Sequence[str], asked: Sequence[str], place: Mapping[str, int]
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

    furthest = max(1, min(len(asked) // 2, _GATHERED // (6 * max(1, len(rows)))))
    offsets = sorted((one for one in range(-furthest, furthest + 1) if one), key=abs)
    near = [0, 1, -1]
    ways = [("number", by_number, offsets), ("order of ids", around(ordered, at_ids), offsets)]
    ways += [("file", around(asked, at_file), offsets)] if ordered != list(asked) else []
    for order in (asked, *([ordered] if ordered != list(asked) else [])):
        ways += [("number as place", along(order, counted), near)]
        ways += [("order of both", along(order, at_judged.__getitem__), near)]
    known: set[bytes] = {np.array([place.get(one, -1) for one in rows], np.int64).tobytes()}
    rules, names = [], []
    for name, way, steps in ways:
        for step in steps:
            leads = (way(one, step) for one in rows)
            rule = np.array([-1 if one is None else place.get(one, -1) for one in leads], np.int64)
            if (rule >= 0).sum() >= max(FEWEST, len(rows) / 2) and rule.tobytes() not in known:
                known.add(rule.tobytes())
                rules.append(rule)
                names.append((name, step))
    return np.array(rules, np.int64).reshape(-1, len(rows)), names


def by_run(sample: FitSample, run: pl.DataFrame) -> Floats:
    """How well each relevant document stands in the results of each topic, shape (documents, columns)."""
    columns = pl.DataFrame({"topic_id": sample.columns}, schema={"topic_id": pl.String}).with_row_index("column")
    results = run.select("topic_id", "doc_id", pl.col("rank").rank("ordinal").over("topic_id"))
    docs = sample.docs.with_row_index("place")
    met = docs.join(results.join(columns, on="topic_id"), on="doc_id")
    values = np.zeros((len(docs), len(sample.columns)))
    values[met["place"].to_numpy(), met["column"].to_numpy()] = 1 / np.log2(met["rank"].to_numpy() + 1.0)
    return values


def bm25(documents: Sequence[str], topics: Sequence[str]) -> tuple[Floats, float]:
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


def ranked(qrels: pl.DataFrame, run: pl.DataFrame) -> pl.DataFrame:
    """Judged results of a run, down to where most are judged: topic_id, relevance, fit.

    Further down, and beside the run, what was judged was chosen: documents without relevance because some run had them
    far up, relevant ones from anywhere. Their ranks say how they were chosen, not how the grades are meant.
    """
    place = pl.col("rank").rank("ordinal").over("topic_id").alias("place")
    results = run.select("topic_id", "doc_id", place).join(qrels.select("topic_id").unique(), on="topic_id", how="semi")
    judged = results.join(qrels, on=["topic_id", "doc_id"], how="left")
    shares = judged.group_by("place").agg(pl.col("relevance").is_not_null().sum().alias("judged"), pl.len())
    shares = shares.sort("place").select((pl.col("judged").cum_sum() / pl.col("len").cum_sum()).alias("share"))
    below = np.flatnonzero(shares["share"].to_numpy() < _MOST_JUDGED)
    depth = int(below[0]) if len(below) else len(shares)
    whole = judged.filter(pl.col("place") <= (depth if depth >= _SHALLOWEST else 0), pl.col("relevance").is_not_null())
    return whole.select("topic_id", "relevance", (1 / (1 + pl.col("place")).log(2)).alias("fit"))
