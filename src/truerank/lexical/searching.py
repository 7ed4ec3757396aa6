"""Searching: topics in, a run out; one retrieval, or two where the query is expanded."""

from __future__ import annotations

import gzip
import io
import json
import multiprocessing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

import numpy as np
import polars as pl

from truerank.errors import InputError
from truerank.lexical.expansions import Expansion
from truerank.lexical.index import Index, open_index
from truerank.lexical.models import Model
from truerank.lexical.scoring import DECIMALS, Ranking, Searcher, parse_query, weighted_query
from truerank.records import Topic
from truerank.reports.tables import Column, Table
from truerank.sources import grammar
from truerank.sources.runs import RUN_SCHEMA
from truerank.sources.topics import read_topics
from truerank.text.normalising import normalise
from truerank.work.artifacts import atomic_path, hash_file, installed_versions, write_text
from truerank.work.progress import Progress, Quiet

__all__ = ["SearchResult", "TopicQuery", "retrieve", "search", "topic_queries", "write_run"]

_FIELDS: Final = ("title", "description", "narrative")
_CHUNK: Final = 64


class TopicQuery(NamedTuple):
    """What is searched for a topic."""

    topic_id: str
    text: str


@dataclass(frozen=True)
class SearchResult:
    """A run, and what was searched how.

    Attributes:
        run: rows as in `sources.runs.RUN_SCHEMA`, topic by topic, best first.
        model: name and parameters.
        index: what the index holds, see `Index.json`.
        topics: name of the topics, how many there are, and the field searched.
        weights: of the fields of the index.
        k: how many documents were asked for.
        no_text: topics without text in the field.
        no_terms: topics none of whose terms the collection holds.
        tag: the name of the run.
    """

    run: pl.DataFrame
    model: Mapping[str, Any]
    index: Mapping[str, Any]
    topics: Mapping[str, Any]
    weights: Mapping[str, float]
    k: int
    no_text: tuple[str, ...] = ()
    no_terms: tuple[str, ...] = ()
    tag: str = "truerank"

    def json(self) -> dict[str, Any]:
        """All but the rows."""
        return {
            "tag": self.tag,
            "model": dict(self.model),
            "k": self.k,
            "topics": dict(self.topics),
            "retrieved_topics": self.run["topic_id"].n_unique(),
            "rows": len(self.run),
            "no_text": list(self.no_text),
            "no_terms": list(self.no_terms),
            "weights": dict(self.weights),
            "index": {key: self.index[key] for key in ("documents", "terms", "analyser", "fingerprint")},
            "ties": f"scores with {DECIMALS} decimals, equal ones by document id ascending",
        }

    def table(self) -> Table:
        """How many topics got how many documents."""
        sizes = self.run.group_by("topic_id").len()["len"]
        unfound = [
            f"{len(topics)} topics {why}: {', '.join(topics[:5])}{' …' if len(topics) > 5 else ''}."
            for topics, why in ((self.no_text, "have no such text"), (self.no_terms, "have no term of the collection"))
            if topics
        ]
        return Table(
            f"{self.tag}: {model_text(self.model)}",
            (
                Column("topics"),
                Column("searched", align="right", format=",d"),
                Column("rows", align="right", format=",d"),
                Column("fewest", align="right", format=",d"),
                Column("most", align="right", format=",d"),
            ),
            ((str(self.topics["name"]), len(sizes), len(self.run), _whole(sizes.min()), _whole(sizes.max())),),
            notes=(
                f"Ties: scores with {DECIMALS} decimals, equal ones by document id ascending.",
                f"Analyser: {self.index['analyser']['name']}.",
                *unfound,
            ),
        )

    def text(self) -> str:
        """The table in plain characters."""
        return self.table().text()

    def write(self, path: str | Path) -> Path:
        """Writes the run in TREC format (gzipped where the name ends so), and `PATH.manifest.json` beside it."""
        target = Path(path)
        write_run(self.run, target)
        manifest = {
            "command": "search",
            "versions": installed_versions("truerank", "numpy"),
            **self.json(),
            "source": self.index["source"],
            "run": {"sha256": hash_file(target)},
        }
        text = json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"
        write_text(target.with_name(f"{target.name}.manifest.json"), text)
        return target


def search(
    index: Index | Searcher | str | Path,
    topics: str | Sequence[TopicQuery],
    model: Model | Expansion,
    *,
    k: int = 1000,
    topic_field: str = "title",
    weights: Mapping[str, float] | None = None,
    tag: str = "truerank",
    workers: int = 1,
    progress: Progress | None = None,
) -> SearchResult:
    """Retrieves the best documents for each topic.

    Args:
        index: the index, its folder, or one opened for searching (whose weights then hold).
        topics: a source of topics, see `sources.read_topics`, or queries.
        model: a model, or an expansion around one.
        k: how many documents for each topic at most; only documents that hold a term of the query are retrieved.
        topic_field: "title", "description", "narrative", or several joined by "+".
        weights: of the index's fields, see `Searcher`.
        tag: the last column of the run.
        workers: processes that search; the run does not depend on their number.
        progress: is told how many topics are done.

    Returns:
        The run. Documents with equal scores, as they are written, stand in the ascending order of their ids.

    Raises:
        InputError: a fault in the topics or the index; k below 1; a tag with blanks; no topic has a text in the field,
            or none a term of the collection.
    """
    if k < 1:
        raise InputError(f"k is {k}", "give 1 or more", where="-k")
    if tag.split() != [tag]:
        raise InputError(f"the tag '{tag}' is no single word", "give one without blanks", where="--tag")
    name = topics if isinstance(topics, str) else "queries"
    queries = topic_queries(topics, topic_field) if isinstance(topics, str) else list(topics)
    no_text = tuple(query.topic_id for query in queries if not normalise(query.text))
    asked = [query for query in queries if normalise(query.text)]
    if not asked:
        raise InputError(f"no topic has a {topic_field}", "choose another with --field", where=name)
    told = progress or Quiet()
    told.start("searching", len(asked))
    searcher = index if isinstance(index, Searcher) else Searcher(open_index(index), weights)
    opened = searcher.index
    found: list[tuple[str, Ranking]] = []
    no_terms = []
    for query, ranking in _rankings(searcher, model, asked, (k, workers), told):
        if ranking is None:
            no_terms.append(query.topic_id)
        else:
            found.append((query.topic_id, ranking))
    if not found:
        raise InputError("no topic has a term of the collection", "check the analyser and the topics", where=name)
    return SearchResult(
        _frame(opened, found, tag),
        model.json(),
        {**opened.json(), "fingerprint": opened.fingerprint},
        {
            "name": grammar.parse(name).name if isinstance(topics, str) else name,
            "read": len(queries),
            "field": topic_field,
        },
        searcher.weights,
        k,
        no_text,
        tuple(no_terms),
        tag,
    )


def topic_queries(topics: str, topic_field: str = "title") -> list[TopicQuery]:
    """The queries of a source of topics: one field, or several joined by "+".

    Raises:
        InputError: an unknown field, or what reading the topics raises.
    """
    names = [name.strip() for name in topic_field.split("+")]
    for name in names:
        if name not in _FIELDS:
            raise InputError(f"topics have no '{name}'", f"one of {', '.join(_FIELDS)}, joined by +", where="--field")
    return [TopicQuery(topic.topic_id, _joined(topic, names)) for topic in read_topics(topics).topics]


def retrieve(searcher: Searcher, model: Model | Expansion, text: str, k: int) -> Ranking | None:
    """The best documents for one query; None where the collection holds none of its terms.

    Args:
        searcher: the index.
        model: a model, or an expansion around one.
        text: the query.
        k: how many documents at most.
    """
    query = parse_query(searcher, text)
    if not query.terms:
        return None
    if not hasattr(model, "expand"):  # asking isinstance of a protocol takes as long as a short query
        return searcher.rank(weighted_query(query.terms, model), model, k)
    expansion = cast(Expansion, model)
    first = searcher.rank(weighted_query(query.terms, expansion.base), expansion.base, expansion.depth)
    expanded = expansion.expand(searcher, query, first)
    return searcher.rank(expanded.weights, expanded.model, k)


def write_run(run: pl.DataFrame, path: Path) -> None:
    """Writes a run in TREC format, whole or not at all; gzipped where the name ends in `.gz`.

    Args:
        run: columns as in `RUN_SCHEMA`.
        path: the file.
    """
    text = io.BytesIO()
    lines = run.select("topic_id", pl.lit("Q0").alias("q0"), "doc_id", "rank", pl.col("score").round(DECIMALS), "tag")
    lines.write_csv(text, include_header=False, separator=" ", float_precision=DECIMALS, quote_style="never")
    data = text.getvalue()
    with atomic_path(path) as temporary:
        temporary.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)


def model_text(model: Mapping[str, Any]) -> str:
    """A model's name and parameters as one line."""
    parts = ", ".join(
        f"{name} {model_text(value) if isinstance(value, Mapping) else value}"
        for name, value in model.items()
        if name != "model" and value is not None
    )
    return f"{model['model']} ({parts})"


def _rankings(
    searcher: Searcher,
    model: Model | Expansion,
    queries: Sequence[TopicQuery],
    size: tuple[int, int],
    told: Progress,
) -> Iterator[tuple[TopicQuery, Ranking | None]]:
    k, workers = size
    if workers <= 1 or len(queries) <= _CHUNK:
        for query in queries:
            yield query, retrieve(searcher, model, query.text, k)
            told.advance(1)
        return
    context = multiprocessing.get_context("spawn")
    chunks = [queries[at : at + _CHUNK] for at in range(0, len(queries), _CHUNK)]
    given = (searcher.index.folder, searcher.weights, model, k)
    with ProcessPoolExecutor(workers, mp_context=context, initializer=_open_worker, initargs=given) as pool:
        for chunk, rankings in zip(chunks, pool.map(_retrieve_all, chunks), strict=True):
            yield from zip(chunk, rankings, strict=True)
            told.advance(len(chunk))


class _Worker(NamedTuple):
    searcher: Searcher
    model: Model | Expansion
    k: int


_worker: _Worker | None = None


def _open_worker(folder: Path, weights: Mapping[str, float], model: Model | Expansion, k: int) -> None:
    global _worker  # noqa: PLW0603
    _worker = _Worker(Searcher(Index(folder), weights), model, k)


def _retrieve_all(queries: Iterable[TopicQuery]) -> list[Ranking | None]:
    if _worker is None:
        raise RuntimeError("a worker without an index")
    return [retrieve(_worker.searcher, _worker.model, query.text, _worker.k) for query in queries]


def _frame(index: Index, found: Sequence[tuple[str, Ranking]], tag: str) -> pl.DataFrame:
    sizes = np.array([len(ranking.documents) for _, ranking in found])
    topics = pl.Series([topic_id for topic_id, _ in found], dtype=pl.String)
    # Most documents are retrieved for several topics: each id is looked up once.
    numbers, places = np.unique(np.concatenate([ranking.documents for _, ranking in found]), return_inverse=True)
    return pl.DataFrame(
        {
            "topic_id": topics.gather(np.repeat(np.arange(len(found)), sizes)),
            "doc_id": pl.Series(index.doc_ids(numbers), dtype=pl.String).gather(places),
            "rank": np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes) + 1,
            "score": np.concatenate([ranking.scores for _, ranking in found]),
            "tag": pl.repeat(tag, int(sizes.sum()), dtype=pl.String, eager=True),
        },
        schema=RUN_SCHEMA,
    )


def _joined(topic: Topic, names: Sequence[str]) -> str:
    return " ".join(filter(None, (getattr(topic, name) for name in names)))


def _whole(value: Any) -> int:
    return int(value or 0)
