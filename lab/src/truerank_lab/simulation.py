"""`truerank-lab simulate`: the log of annotators who saw a ranking, from judgments that are more complete."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import polars as pl

from truerank.audits.outputs import refuse_overwrite
from truerank.core.plain import picked
from truerank.core.result import Result, Summary, summarises
from truerank.errors import InputError
from truerank.lexical.index import Index, open_index
from truerank.lexical.presets import model_of, require_analyser
from truerank.lexical.searching import TopicQuery, input_of_index, search
from truerank.options import Flag, Range, command
from truerank.records import Input
from truerank.sources import read_qrels_frame, read_run_frame, read_topics
from truerank.sources.inputs import inputs_of
from truerank.work.progress import Progress, Quiet
from truerank.work.runs import run as started
from truerank_lab.instances.filled import open_instances

_NAME: Final = "simulate"
_PRESET: Final = "anserini"


@dataclass(frozen=True, eq=False, repr=False)
class Simulated(Result, shown_in="truerank_lab.simulation"):
    """A simulated annotation log.

    Attributes:
        shown: how many documents each annotator saw.
        queries: of the log.
        selected: documents selected in all.
        discarded: queries without a selected document.
        unjudged: of them, those for which no relevant document is known at all.
        unranked: of them, those that the ranking has nothing for.
        out: the log.
    """

    shown: int
    queries: int
    selected: int
    discarded: int
    unjudged: int
    unranked: int
    out: Path


@command
def simulate(
    topics: Annotated[str | None, Flag(metavar="SRC")] = None,
    qrels: Annotated[str | None, Flag(metavar="SRC")] = None,
    *,
    instances: Annotated[str | None, Flag(metavar="SRC")] = None,
    run: Annotated[str | Path | None, Flag(metavar="FILE", reads=str)] = None,
    index: Annotated[str | Path | None, Flag(metavar="DIR", reads=str)] = None,
    shown: Annotated[int, Range(at_least=1)] = 10,
    out: Annotated[str | Path, Flag(metavar="FILE", reads=Path)],
    progress: Progress | None = None,
) -> Simulated:
    """Writes the log of annotators who saw the first results of a ranking, from judgments that are more complete.

    They select every relevant document that they see. Queries and what answers them come from topics with qrels, or
    from training instances. Results are ordered by score, equal ones by document id, ascending.

    Args:
        topics: the queries.
        qrels: what answers them.
        instances: in place of both: training instances with ids and queries.
        run: the ranking that was shown.
        index: in its place: an index, searched by BM25.
        shown: documents shown for each query, the best of the ranking.
        out: the log, JSONL, a line for each query, with a manifest beside it; .gz compresses it.
        progress: is told about the work.

    Returns:
        What the log holds, and what it lacks.

    Raises:
        InputError: a fault in a source; neither run nor index, or both; neither topics with qrels nor instances.

    Examples:

        truerank-lab simulate --topics topics.trec --qrels qrels.txt --run bm25.run --out log.jsonl

        truerank-lab simulate --instances train/ --index index/ --shown 10 --out log.jsonl.gz
    """
    if (run is None) == (index is None):
        raise InputError("what was shown is not said, or said twice", "give `run` or `index`", where=_NAME)
    refuse_overwrite(None, Path(out))
    opened = None if index is None else open_index(index)
    queries, relevant = _answered(topics, qrels, instances)
    ranking = _best(
        read_run_frame(str(run)) if opened is None else _searched(opened, queries, shown, progress or Quiet()), shown
    )
    rows = []
    for identifier, text in queries.items():
        documents, answers = ranking.get(identifier, []), relevant.get(identifier, ())
        selected = [one for one in documents if one in answers]
        rows.append({"query_id": identifier, "query": text, "shown": documents, "selected": selected})
    inputs = [*inputs_of(topics=topics, qrels=qrels, run=run), *_inputs(instances, opened)]
    with started(_NAME, inputs, {"shown": shown}, out, file=True) as job, job.output(Path(out).name) as stream:
        stream.writelines((json.dumps(row, ensure_ascii=False) + "\n").encode() for row in rows)
    found = [len(row["selected"]) for row in rows]
    unjudged, unranked = len(queries.keys() - relevant.keys()), len(queries.keys() - ranking.keys())
    return Simulated(shown, len(rows), sum(found), found.count(0), unjudged, unranked, Path(out))


def _inputs(instances: str | None, index: Index | None) -> Iterator[Input]:
    if instances is not None:
        source = open_instances(instances)
        yield Input(source.spec.name, instances, "instances", None, source.fingerprint)
    if index is not None:
        yield input_of_index(index)


def _searched(index: Index, queries: dict[str, str], k: int, progress: Progress) -> pl.DataFrame:
    require_analyser(index, _PRESET)
    asked = [TopicQuery(identifier, text) for identifier, text in queries.items()]
    return search(index, asked, model_of(_PRESET, "bm25"), k=k, progress=progress).run


def _answered(
    topics: str | None, qrels: str | None, instances: str | None
) -> tuple[dict[str, str], dict[str, set[str]]]:
    """The queries, and what is relevant to each."""
    relevant: dict[str, set[str]] = {}
    if instances is not None and topics is None and qrels is None:
        queries: dict[str, str] = {}
        for one in open_instances(instances).as_read():
            if not one.query_id or not one.relevant_id or not one.query:
                fault = "an instance without the id of its query or relevant document, or without the query's text"
                raise InputError(fault, "give a set that 'truerank-lab build' wrote", where=instances)
            queries.setdefault(one.query_id, one.query)
            relevant.setdefault(one.query_id, set()).add(one.relevant_id)
        return queries, relevant
    if topics is None or qrels is None or instances is not None:
        raise InputError("queries without judgments", "give `topics` and `qrels`, or `instances`", where=_NAME)
    queries = {topic.topic_id: topic.title for topic in read_topics(topics).topics}
    frame = read_qrels_frame(qrels).filter(pl.col("relevance") > 0)
    for identifier, document in frame.select("topic_id", "doc_id").iter_rows():
        relevant.setdefault(identifier, set()).add(document)
    if not relevant.keys() & queries.keys():
        raise InputError("no topic has a relevant document", "give the judgments of these topics", where=qrels)
    return queries, relevant


def _best(run: pl.DataFrame, depth: int) -> dict[str, list[str]]:
    ordered = run.sort(["topic_id", "score", "doc_id"], descending=[False, True, False], maintain_order=True)
    best = ordered.group_by("topic_id", maintain_order=True).head(depth).group_by("topic_id", maintain_order=True)
    return dict(best.agg("doc_id").iter_rows())


@summarises(Simulated)
def _summary(found: Simulated) -> Summary:
    said = (
        f"{found.queries:,} queries; of the best {found.shown} documents {found.selected:,} were selected; "
        f"{found.discarded:,} queries are discarded, {found.unjudged:,} of them without a known relevant document and "
        f"{found.unranked:,} without a ranking. These annotators miss nothing that is judged relevant, and find "
        f"nothing that is not judged.\nwritten: {found.out}"
    )
    return Summary((said,), picked(found, "out, shown, queries, selected, discarded, unjudged, unranked"))
