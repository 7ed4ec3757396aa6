"""Searching: topics in, a run out; one retrieval, or two where the query is expanded."""

from __future__ import annotations

import dataclasses
import gzip
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple, cast

import numpy as np
import polars as pl

from truerank.core.plain import picked
from truerank.core.result import Result
from truerank.errors import InputError, OptionError
from truerank.lexical.expansions import Expansion
from truerank.lexical.index import Index, open_index
from truerank.lexical.models import Model
from truerank.lexical.presets import DEFAULT_PRESET, ModelName, PresetName, model_of, require_analyser
from truerank.lexical.scoring import DECIMALS, BestDocuments, Searcher, parse_query, weighted_query
from truerank.options import Flag, Options, OutFile, Processes, Range, command
from truerank.records import Input, Topic
from truerank.sources import grammar
from truerank.sources.inputs import inputs_of
from truerank.sources.runs import RUN_SCHEMA
from truerank.sources.topics import read_topics
from truerank.text.normalising import normalise
from truerank.work.artifacts import atomic_path
from truerank.work.engines import LocalEngine, in_order
from truerank.work.progress import Progress, Quiet
from truerank.work.runs import run as started

_FIELDS: Final = ("title", "description", "narrative")
_CHUNK: Final = 64


@dataclass(frozen=True)
class Retrieval(Options):
    """How documents are retrieved.

    Attributes:
        preset: whose parameters are used.
        set_: a parameter in place of the preset's; base.NAME of the base.
        field: of the topics: title, description, narrative, or several joined by +.
        weights: weights of the index's fields; fields not named weigh 0.
        any_analyser: search an index whose analyser is not the preset's.
    """

    preset: PresetName = DEFAULT_PRESET
    set_: Annotated[Mapping[str, Any], Flag(metavar="NAME=VALUE")] = dataclasses.field(default_factory=dict)
    field: str = "title"
    weights: Annotated[Mapping[str, float], Flag(metavar="FIELD=NUMBER")] = dataclasses.field(default_factory=dict)
    any_analyser: bool = False


class TopicQuery(NamedTuple):
    """What is searched for a topic."""

    topic_id: str
    text: str


@dataclass(frozen=True, eq=False, repr=False)
class SearchResult(Result, shown_in="truerank.lexical.report"):
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
        out: the file that it was written to.
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
    out: Path | None = None

    def json(self) -> dict[str, Any]:
        """All but the rows."""
        return {
            **picked(self, "tag, model, k, topics"),
            "retrieved_topics": self.run["topic_id"].n_unique(),
            "rows": len(self.run),
            **picked(self, "no_text, no_terms, weights"),
            "index": {key: self.index[key] for key in ("documents", "terms", "analyser", "fingerprint")},
            "ties": f"scores with {DECIMALS} decimals, equal ones by document id ascending",
        }


@command
def search(
    index: Annotated[Index | Searcher | str | Path, Flag(metavar="DIR", reads=str)],
    topics: Annotated[str | Sequence[TopicQuery], Flag(metavar="SRC", reads=str)],
    model: Annotated[Model | Expansion | ModelName | None, Flag(reads=ModelName)] = None,
    *,
    k: Annotated[int, Range(at_least=1)] = 1000,
    retrieval: Retrieval = Retrieval(),
    tag: str | None = None,
    workers: Processes = 1,
    out: OutFile = None,
    progress: Progress | None = None,
) -> SearchResult:
    """Retrieves the best documents for each topic and writes a TREC run.

    Scores have six decimals; documents with equal ones are in the ascending order of their ids.

    Args:
        index: the folder that `index` wrote. In Python also an opened index, or a searcher, whose weights then hold.
        topics: a path, irds:ID or hf:ORG/NAME. In Python also queries.
        model: by default the preset's usual model. In Python also a model, or an expansion around one.
        k: the largest number of documents per topic; only documents with a term of the query are retrieved.
        retrieval: how documents are retrieved.
        tag: last column of the run; by default preset and model.
        workers: processes that search; the run does not depend on their number.
        out: the run, with a manifest beside it; .gz compresses it.
        progress: is told how many topics are done.

    Returns:
        The run. Documents with equal scores, as they are written, are in the ascending order of their ids.

    Raises:
        InputError: a fault in the topics or the index; a tag with blanks; no topic has a text in the field, or none a
            term of the collection.

    Examples:

        truerank search --index index/ --topics topics.trec --model rm3 --out bm25-rm3.run

        truerank search --index index/ --topics topics.trec --set k1=1.2 --set b=0.75 --field description --out d.run
    """
    how = retrieval
    searcher = index if isinstance(index, Searcher) else Searcher(open_index(index), how.weights or None)
    named = model is None or isinstance(model, str)
    chosen = model_of(how.preset, model or "", how.set_) if model is None or isinstance(model, str) else model
    if named and not how.any_analyser:
        require_analyser(searcher.index, how.preset)
    name = tag or (f"{how.preset}-{chosen.json()['model']}" if named else "truerank")
    found = _searched(searcher, topics, chosen, (k, how.field, name, workers), progress or Quiet())
    if out is None:
        return found
    options = {"model": chosen.json(), "k": k, "field": how.field}
    options |= {"weights": dict(searcher.weights), "tag": name}
    inputs = (input_of_index(searcher.index), *inputs_of(topics=topics if isinstance(topics, str) else None))
    with started("search", inputs, options, out, file=True) as job:
        job.skipped = {"no_text": list(found.no_text), "no_terms": list(found.no_terms)}
        write_run(found.run, Path(out))
        job.note(Path(out).name)
    return replace(found, out=Path(out))


def input_of_index(index: Index) -> Input:
    """What a manifest says of an index."""
    return Input(index.folder.name, str(index.folder), "index", len(index), index.fingerprint)


def _searched(
    searcher: Searcher,
    topics: str | Sequence[TopicQuery],
    model: Model | Expansion,
    how: tuple[int, str, str, int],
    progress: Progress,
) -> SearchResult:
    k, topic_field, tag, workers = how
    if tag.split() != [tag]:
        raise OptionError("tag", f"the tag '{tag}' is not a single word", "give one without blanks")
    name = topics if isinstance(topics, str) else "queries"
    queries = topic_queries(topics, topic_field) if isinstance(topics, str) else list(topics)
    no_text = tuple(query.topic_id for query in queries if not normalise(query.text))
    asked = [query for query in queries if normalise(query.text)]
    if not asked:
        raise InputError(f"no topic has a {topic_field}", "choose another with `field`", where=name)
    progress.start("searching", len(asked))
    opened = searcher.index
    found: list[tuple[str, BestDocuments]] = []
    no_terms = []
    for query, ranking in _rankings(searcher, model, asked, (k, workers), progress):
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
            raise OptionError("field", f"topics have no '{name}'", f"one of {', '.join(_FIELDS)}, joined by +")
    return [TopicQuery(topic.topic_id, _joined(topic, names)) for topic in read_topics(topics).topics]


def retrieve(searcher: Searcher, model: Model | Expansion, text: str, k: int) -> BestDocuments | None:
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
    progress: Progress,
) -> Iterator[tuple[TopicQuery, BestDocuments | None]]:
    k, workers = size
    if workers <= 1 or len(queries) <= _CHUNK:
        for query in queries:
            yield query, retrieve(searcher, model, query.text, k)
            progress.advance(1)
        return
    chunks = [_Chunk(at // _CHUNK, queries[at : at + _CHUNK]) for at in range(0, len(queries), _CHUNK)]
    task = _Retrieval(searcher.index.folder, searcher.weights, model, k)
    for chunk, rankings in zip(chunks, in_order(LocalEngine(workers).run(task, chunks)), strict=True):
        yield from zip(chunk.queries, rankings, strict=True)
        progress.advance(len(chunk.queries))


class _Chunk(NamedTuple):
    """Queries that are searched together."""

    number: int
    queries: Sequence[TopicQuery]


class _Retrieval(NamedTuple):
    """Searches chunks of queries; each worker opens the index once."""

    folder: Path
    weights: Mapping[str, float]
    model: Model | Expansion
    k: int

    def open(self) -> Callable[[_Chunk], list[BestDocuments | None]]:
        """Opens the index and returns the function that searches it."""
        searcher = Searcher(Index(self.folder), self.weights)
        return lambda chunk: [retrieve(searcher, self.model, query.text, self.k) for query in chunk.queries]


def _frame(index: Index, found: Sequence[tuple[str, BestDocuments]], tag: str) -> pl.DataFrame:
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
