"""What an annotator would have seen: an annotation log from a ranking and judgments that are more complete."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

import polars as pl

from truerank.audits.outputs import refuse_overwrite, written
from truerank.audits.survivorship.options import SimulateOptions
from truerank.audits.survivorship.results import Share, file_input, provenance, share_of
from truerank.errors import InputError
from truerank.lexical import TopicQuery, model_of, require_analyser, search
from truerank.lexical.index import open_index
from truerank.rankers.training.instances import open_instances
from truerank.reports.tables import Column, Table
from truerank.sources import read_qrels_frame, read_run_frame, read_topics
from truerank.work.artifacts import hash_file, write_text
from truerank.work.progress import Progress, Quiet

__all__ = ["Judged", "Simulated", "simulate"]

_DEFAULTS: Final = SimulateOptions()


class Judged(NamedTuple):
    """Where queries and what answers them come from: topics with qrels, or training instances that name both."""

    topics: str | None = None
    qrels: str | None = None
    instances: str | None = None
    topic_field: str = "title"


@dataclass(frozen=True)
class Simulated:
    """The result of `survivorship.simulate`.

    Attributes:
        options: the choices.
        out: the log.
        queries: how many queries the log holds.
        discarded: queries without a selected document.
        unjudged: of these, queries for which no relevant document is known at all.
        unranked: of these, queries that the ranking has nothing for.
        selected: documents selected in all.
        inputs: for the manifest.
    """

    options: SimulateOptions
    out: Path
    queries: int
    discarded: Share
    unjudged: int
    unranked: int
    selected: int
    inputs: Mapping[str, Any] = field(default_factory=dict)

    def table(self) -> Table:
        """What the annotators would have found."""
        number: dict[str, Any] = {"align": "right", "format": ",d"}
        columns = (
            Column("log"),
            Column("queries", **number),
            Column("selected documents", **number),
            Column("discarded", **number),
            Column("share", align="right", format=".1%"),
        )
        row = (self.out.name, self.queries, self.selected, self.discarded.found, self.discarded.value)
        notes = (
            f"Each annotator saw the best {self.options.shown} documents and selected "
            f"{'every relevant one' if self.options.select == 'all' else 'the first relevant one'}.",
            f"Of the discarded queries {self.unjudged:,} have no known relevant document and {self.unranked:,} no "
            "ranking.",
            "These annotators miss nothing that is judged relevant, and find nothing that is not judged: people would "
            "discard other queries, more or fewer.",
        )
        return Table("Simulated annotation", columns, (row,), notes)

    def text(self) -> str:
        """The table for a terminal."""
        return self.table().text(120)

    def json(self) -> dict[str, Any]:
        """All figures by name."""
        return {
            "log": str(self.out),
            "queries": self.queries,
            "selected": self.selected,
            "discarded": self.discarded.json(),
            "unjudged": self.unjudged,
            "unranked": self.unranked,
            "options": self.options.json(),
        }


def simulate(
    out: str | Path,
    judged: Judged,
    *,
    run: str | None = None,
    index: str | None = None,
    preset: str = "anserini",
    options: SimulateOptions = _DEFAULTS,
    progress: Progress | None = None,
) -> Simulated:
    """Writes the annotation log of annotators who saw the first results of a ranking.

    The log is JSONL with `query_id`, `query`, `shown`, `selected`, as `open_annotations` reads it, one line for each
    query in the order of the topics; beside it stands `OUT.manifest.json`. Results are ordered by score, equal ones by
    document id, ascending.

    Args:
        out: the log; its name may end in .gz.
        judged: queries and what answers them.
        run: the ranking that was shown.
        index: in place of a run: an index that is searched by BM25.
        preset: of the search.
        options: how many were shown, and what was selected.
        progress: told about the work.

    Returns:
        The counts.

    Raises:
        InputError: a fault in a source; neither run nor index, or both; neither topics with qrels nor instances.
    """
    if (run is None) == (index is None):
        raise InputError("what was shown is not said, or said twice", "give --run or --index", where="simulate")
    target = Path(out)
    refuse_overwrite(None, target)
    queries, relevant = _judged(judged, options.rel)
    told = progress or Quiet()
    if index is not None:
        opened = open_index(index)
        require_analyser(opened, preset)
        asked = [TopicQuery(identifier, text) for identifier, text in queries.items()]
        ranking = search(opened, asked, model_of(preset, "bm25", {}), k=options.shown, progress=told).run
    else:
        ranking = read_run_frame(run or "")
    shown = _shown(ranking, options.shown)
    counts = {"selected": 0, "discarded": 0, "unjudged": 0, "unranked": 0}
    with written(target) as place, place.open() as stream:
        for identifier, text in queries.items():
            documents = shown.get(identifier, [])
            chosen = [one for one in documents if one in relevant.get(identifier, ())]
            chosen = chosen[:1] if options.select == "first" else chosen
            counts["selected"] += len(chosen)
            counts["discarded"] += not chosen
            counts["unjudged"] += identifier not in relevant
            counts["unranked"] += not documents
            line = {"query_id": identifier, "query": text, "shown": documents, "selected": chosen}
            stream.write((json.dumps(line, ensure_ascii=False) + "\n").encode())
    given = {"topics": judged.topics, "qrels": judged.qrels, "run": run}
    inputs: dict[str, Any] = {name: file_input(source) for name, source in given.items() if source is not None}
    if judged.instances is not None:
        fingerprint = open_instances(judged.instances).fingerprint
        inputs["instances"] = {"source": judged.instances, "fingerprint": fingerprint}
    if index is not None:
        inputs["index"] = {"source": index, "fingerprint": opened.fingerprint, "preset": preset}
    result = Simulated(
        options,
        target,
        len(queries),
        share_of(counts["discarded"], len(queries)),
        counts["unjudged"],
        counts["unranked"],
        counts["selected"],
        inputs,
    )
    manifest = provenance("simulate", inputs, options.json()) | {"log": {"sha256": hash_file(target)}}
    text = json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"
    write_text(target.with_name(f"{target.name}.manifest.json"), text)
    return result


def _judged(judged: Judged, rel: int) -> tuple[dict[str, str], dict[str, set[str]]]:
    """The queries, and what is relevant to each."""
    relevant: dict[str, set[str]] = {}
    if judged.instances is not None and judged.topics is None and judged.qrels is None:
        queries: dict[str, str] = {}
        for identifier, text, document in _instances(judged.instances):
            queries.setdefault(identifier, text)
            relevant.setdefault(identifier, set()).add(document)
        return queries, relevant
    if judged.topics is None or judged.qrels is None or judged.instances is not None:
        raise InputError("queries without judgments", "give --topics and --qrels, or --instances", where="simulate")
    topics = read_topics(judged.topics).topics
    queries = {topic.topic_id: getattr(topic, judged.topic_field) for topic in topics}
    frame = read_qrels_frame(judged.qrels).filter(pl.col("relevance") >= rel)
    for identifier, document in frame.select("topic_id", "doc_id").iter_rows():
        relevant.setdefault(identifier, set()).add(document)
    if not relevant.keys() & queries.keys():
        raise InputError("no topic has a relevant document", "give the judgments of these topics", where=judged.qrels)
    return queries, relevant


def _instances(spec: str) -> Iterator[tuple[str, str, str]]:
    for one in open_instances(spec).as_read():
        if not one.query_id or not one.relevant_id or not one.query:
            fault = "an instance without the id of its query or relevant document, or without the query's text"
            raise InputError(fault, "give a set that 'instances build' wrote", where=spec)
        yield one.query_id, one.query, one.relevant_id


def _shown(run: pl.DataFrame, depth: int) -> dict[str, list[str]]:
    ordered = run.sort(["topic_id", "score", "doc_id"], descending=[False, True, False], maintain_order=True)
    best = ordered.group_by("topic_id", maintain_order=True).head(depth)
    shown: dict[str, list[str]] = {}
    for topic, document in best.select("topic_id", "doc_id").iter_rows():
        shown.setdefault(topic, []).append(document)
    return shown
