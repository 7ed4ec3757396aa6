"""`truerank-lab simulate`: the log of annotators who saw a ranking, from judgments that are more complete."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import polars as pl

from truerank.audits.outputs import refuse_overwrite
from truerank.core.plain import picked
from truerank.core.result import Result, shows
from truerank.core.tables import Table
from truerank.core.views import heads
from truerank.errors import InputError
from truerank.lexical.index import Index, open_index
from truerank.lexical.presets import DEFAULT_PRESET, PresetName, model_of, require_analyser
from truerank.lexical.searching import TopicQuery, input_of_index, search
from truerank.measures.magnitudes import Proportion, proportion
from truerank.options import Flag, Options, OutFile, Range, command
from truerank.records import Input
from truerank.sources import read_qrels_frame, read_run_frame, read_topics
from truerank.sources.inputs import inputs_of
from truerank.sources.instances import open_instances
from truerank.work.progress import Progress, Quiet
from truerank.work.runs import run as started

#: A simulated log, one row for each query: what was shown, and which of it was selected.
ANNOTATION_SCHEMA: Final[dict[str, Any]] = {
    "query_id": pl.String,
    "query": pl.String,
    "shown": pl.List(pl.String),
    "selected": pl.List(pl.String),
}

_NAME: Final = "simulate"


@dataclass(frozen=True)
class SimulateOptions(Options):
    """What an annotator saw and did.

    Attributes:
        shown: documents shown for each query, the best of the ranking.
        select: the annotator selects all relevant documents shown, or the first, like one who stops reading.
        rel: the lowest grade that answers a query.
        field: of the topics.
    """

    shown: Annotated[int, Range(at_least=1)] = 10
    select: Literal["all", "first"] = "all"
    rel: Annotated[int, Range(at_least=1)] = 1
    field: Literal["title", "description", "narrative"] = "title"


@dataclass(frozen=True, eq=False, repr=False)
class Simulated(Result, shown_in="truerank_lab.simulation"):
    """A simulated annotation log.

    Attributes:
        options: the choices.
        annotations: the log, columns as in `ANNOTATION_SCHEMA`, in the order of the topics.
        unjudged: discarded queries for which no relevant document is known at all.
        unranked: discarded queries that the ranking has nothing for.
        out: the file that it was written to.
    """

    options: SimulateOptions
    annotations: pl.DataFrame
    unjudged: int
    unranked: int
    out: Path | None = None

    @property
    def queries(self) -> int:
        """How many queries the log holds."""
        return len(self.annotations)

    @property
    def selected(self) -> int:
        """Documents selected in all."""
        return int(self.annotations["selected"].list.len().sum())

    @property
    def discarded(self) -> Proportion:
        """Queries without a selected document."""
        return proportion(int((self.annotations["selected"].list.len() == 0).sum()), self.queries)

    def json(self) -> dict[str, Any]:
        """All figures by name."""
        known = picked(self, "log=out, queries, selected, discarded, unjudged, unranked")
        return {**known, "options": picked(self.options, "shown, select, rel")}


@command
def simulate(
    topics: Annotated[str | None, Flag(metavar="SRC")] = None,
    qrels: Annotated[str | None, Flag(metavar="SRC")] = None,
    *,
    instances: Annotated[str | None, Flag(metavar="SRC")] = None,
    run: Annotated[str | Path | None, Flag(metavar="FILE", reads=str)] = None,
    index: Annotated[str | Path | None, Flag(metavar="DIR", reads=str)] = None,
    preset: PresetName = DEFAULT_PRESET,
    options: SimulateOptions = SimulateOptions(),
    out: OutFile = None,
    progress: Progress | None = None,
) -> Simulated:
    """Writes the log of annotators who saw the first results of a ranking, from judgments that are more complete.

    Queries and what answers them come from topics with qrels, or from training instances. Results are ordered by score,
    equal ones by document id, ascending.

    Args:
        topics: the queries.
        qrels: what answers them.
        instances: in place of both: training instances with ids and queries.
        run: the ranking that was shown.
        index: in its place: an index, searched by BM25.
        preset: whose parameters the search uses.
        options: how many documents were shown, and what was selected.
        out: the log, JSONL, with a manifest beside it; .gz compresses it.
        progress: is told about the work.

    Returns:
        The log, and what it lacks.

    Raises:
        InputError: a fault in a source; neither run nor index, or both; neither topics with qrels nor instances.

    Examples:

        truerank-lab simulate --topics topics.trec --qrels qrels.txt --run bm25.run --out log.jsonl

        truerank-lab simulate --instances train/ --index index/ --shown 10 --out log.jsonl.gz
    """
    if (run is None) == (index is None):
        raise InputError("what was shown is not said, or said twice", "give `run` or `index`", where=_NAME)
    if out is not None:
        refuse_overwrite(None, Path(out))
    opened = None if index is None else open_index(index)
    queries, relevant = _answered((topics, qrels, instances), options)
    progress = progress or Quiet()
    ranking = (
        read_run_frame(str(run)) if opened is None else _searched(opened, queries, preset, options.shown, progress)
    )
    shown = _shown(ranking, options.shown)
    rows = []
    unjudged = unranked = 0
    for identifier, text in queries.items():
        documents = shown.get(identifier, [])
        chosen = [one for one in documents if one in relevant.get(identifier, ())]
        unjudged += identifier not in relevant
        unranked += not documents
        rows.append((identifier, text, documents, chosen[:1] if options.select == "first" else chosen))
    result = Simulated(options, pl.DataFrame(rows, schema=ANNOTATION_SCHEMA, orient="row"), unjudged, unranked)
    if out is None:
        return result
    inputs = [*inputs_of(topics=topics, qrels=qrels, run=run), *_inputs(instances, opened)]
    chosen_options = {"preset": preset, "options": options}
    with started(_NAME, inputs, chosen_options, out, file=True) as job, job.output(Path(out).name) as stream:
        for row in result.annotations.iter_rows(named=True):
            stream.write((json.dumps(row, ensure_ascii=False) + "\n").encode())
    return replace(result, out=Path(out))


def _inputs(instances: str | None, index: Index | None) -> Iterator[Input]:
    if instances is not None:
        source = open_instances(instances)
        yield Input(source.spec.name, instances, "instances", None, source.fingerprint)
    if index is not None:
        yield input_of_index(index)


def _searched(index: Index, queries: dict[str, str], preset: PresetName, k: int, progress: Progress) -> pl.DataFrame:
    require_analyser(index, preset)
    asked = [TopicQuery(identifier, text) for identifier, text in queries.items()]
    return search(index, asked, model_of(preset, "bm25", {}), k=k, progress=progress).run


def _answered(
    given: tuple[str | None, str | None, str | None], options: SimulateOptions
) -> tuple[dict[str, str], dict[str, set[str]]]:
    topics, qrels, instances = given
    relevant: dict[str, set[str]] = {}
    if instances is not None and topics is None and qrels is None:
        queries: dict[str, str] = {}
        for identifier, text, document in _instances(instances):
            queries.setdefault(identifier, text)
            relevant.setdefault(identifier, set()).add(document)
        return queries, relevant
    if topics is None or qrels is None or instances is not None:
        raise InputError("queries without judgments", "give `topics` and `qrels`, or `instances`", where=_NAME)
    queries = {topic.topic_id: getattr(topic, options.field) for topic in read_topics(topics).topics}
    frame = read_qrels_frame(qrels).filter(pl.col("relevance") >= options.rel)
    for identifier, document in frame.select("topic_id", "doc_id").iter_rows():
        relevant.setdefault(identifier, set()).add(document)
    if not relevant.keys() & queries.keys():
        raise InputError("no topic has a relevant document", "give the judgments of these topics", where=qrels)
    return queries, relevant


def _instances(spec: str) -> Iterator[tuple[str, str, str]]:
    for one in open_instances(spec).as_read():
        if not one.query_id or not one.relevant_id or not one.query:
            fault = "an instance without the id of its query or relevant document, or without the query's text"
            raise InputError(fault, "give a set that 'truerank-lab build' wrote", where=spec)
        yield one.query_id, one.query, one.relevant_id


def _shown(run: pl.DataFrame, depth: int) -> dict[str, list[str]]:
    ordered = run.sort(["topic_id", "score", "doc_id"], descending=[False, True, False], maintain_order=True)
    best = ordered.group_by("topic_id", maintain_order=True).head(depth)
    shown: dict[str, list[str]] = {}
    for topic, document in best.select("topic_id", "doc_id").iter_rows():
        shown.setdefault(topic, []).append(document)
    return shown


@shows(Simulated, ("log", ""), width=120)
def simulated_table(result: Simulated) -> Table:
    columns = heads("log, queries:,d, selected_documents:,d, discarded:,d, share:.1%")
    row = (
        "log" if result.out is None else result.out.name,
        result.queries,
        result.selected,
        result.discarded.k,
        result.discarded.share,
    )
    notes = (
        f"Each annotator saw the best {result.options.shown} documents and selected "
        f"{'every relevant one' if result.options.select == 'all' else 'the first relevant one'}.",
        f"Of the discarded queries {result.unjudged:,} have no known relevant document and {result.unranked:,} no "
        "ranking.",
        "These annotators miss nothing that is judged relevant, and find nothing that is not judged: people would "
        "discard other queries, more or fewer.",
    )
    return Table("Simulated annotation", columns, (row,), notes)
