"""What the cells of a grid share: its training sets and its test collections, with their texts; made once."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

import polars as pl

from truerank import lexical
from truerank.arrays import frame_schema
from truerank.errors import InputError, OptionError
from truerank.lexical.searching import topic_queries
from truerank.loading import json_file
from truerank.rankers.reranking.document_texts import DocumentTexts
from truerank.sources import compressed, formats, grammar, open_documents, read_qrels_frame, read_run_frame
from truerank.sources.rows import rows
from truerank.sources.runs import RUN_SCHEMA
from truerank.text.normalising import normalise
from truerank.text.passages import joined
from truerank.work.artifacts import atomic_path, digest, write_text
from truerank.work.progress import Progress
from truerank_lab.grid.design import CollectionDesign, SetDesign, build_options
from truerank_lab.grid.results import LEAKED_SCHEMA, write_collection
from truerank_lab.instances import build
from truerank_lab.instances.filled import open_instances

_TABLE: Final = "instances.parquet"
#: Roles of the rows that leak.
_LEAKING: Final = ("leak", "test")
#: A document in a leaking row: the topic that leaks, and the document's text as it is trained on.
LEAK_SCHEMA: Final[dict[str, Any]] = frame_schema("set topic_id doc_id: String, relevant: Boolean, role text: String")


class TrainingSet(NamedTuple):
    """A training set as it lies on the disk.

    `prefixes` has the hash over the rows of each size, by the size in instances; `leaks` has the documents of the
    leaking rows, one for each row and role in it, columns as in `LEAK_SCHEMA`.
    """

    source: str
    prefixes: Mapping[int, str]
    leaks: pl.DataFrame


def open_set(design: SetDesign, out: Path, progress: Progress) -> TrainingSet:
    """Builds a set where that was asked for and is not done yet, and reads what its identity needs."""
    source = design.instances or ""
    if design.build is not None:
        source = str(_built(design, out, progress))
    progress.start(f"reading {design.name}")
    largest = max(design.sizes, default=0) // 2 or None
    leaks = pl.DataFrame([(design.name, *row) for row in _leaks(source, largest)], schema=LEAK_SCHEMA, orient="row")
    return TrainingSet(source, _prefixes(design, source, largest), leaks)


def _built(design: SetDesign, out: Path, progress: Progress) -> Path:
    folder = out / "sets" / design.name
    given = {**(design.build or {})}
    seed = int(given.pop("seed", 0))
    if (fill := given.get("fill")) is not None and (out / "sets" / fill / _TABLE).is_file():
        given["fill"] = str(out / "sets" / fill)
    wanted = digest([design.kind, design.sizes, seed, {**given, "fill": fill}])
    mark = out / "sets" / f"{design.name}.json"
    if mark.is_file() and json_file(mark).get("options") == wanted:
        return folder
    progress.start(f"building {design.name}")
    kind: Any = design.kind
    try:
        build(kind, design.sizes, options=build_options(given), out=folder, seed=seed, progress=progress)
    except OptionError as error:
        # Options are keys of the design here.
        where = f"set {design.name}"
        raise InputError(f"{error.option}: {error.fault}", error.remedy.replace("`", ""), where=where) from error
    write_text(mark, json.dumps({"options": wanted}) + "\n")
    return folder


def _prefixes(design: SetDesign, source: str, largest: int | None) -> dict[int, str]:
    """The hash over the rows of each size; of all rows where the design names no size."""
    found, prefixes, count = hashlib.sha256(), dict[int, str](), 0
    for count, instance in enumerate(islice(open_instances(source), largest), start=1):
        found.update(json.dumps(instance).encode())
        if 2 * count in design.sizes:
            prefixes[2 * count] = found.hexdigest()
    if not count:
        raise InputError(f"the set {design.name} has no rows", "give a source that holds some", where=source)
    if lacking := [size for size in design.sizes if size not in prefixes]:
        fault = f"the set {design.name} has {2 * count:,} instances ({count:,} rows), and {lacking[0]:,} were asked for"
        raise InputError(fault, "choose smaller sizes, or give more rows", where=source)
    return prefixes or {2 * count: found.hexdigest()}


def _leaks(source: str, largest: int | None) -> Iterator[tuple[str, str, bool, str, str]]:
    """The documents of the leaking rows, where the source is a table that says which rows leak."""
    spec = grammar.parse(source)
    path = spec.path / _TABLE if spec.path.is_dir() else spec.path
    form = formats.detect(path, spec.format)
    found: Iterator[Mapping[str, Any]] = iter(())
    if form == "parquet":
        lazy = pl.scan_parquet(path, glob=False)
        if {"role", "topic_id"} <= set(lazy.collect_schema().names()):
            first = lazy.head(largest) if largest else lazy
            found = first.filter(pl.col("role").is_in(_LEAKING)).collect().iter_rows(named=True)
    elif form in ("csv", "jsonl", "json"):
        found = (row.values for row in islice(rows(path, form), largest))
    for row in found:
        if row.get("role") in _LEAKING and row.get("topic_id") is not None:
            for part in ("relevant", "nonrelevant"):
                doc_id, text = (str(row.get(name) or "") for name in (f"{part}_id", part))
                yield str(row["topic_id"]), doc_id, part == "relevant", str(row["role"]), text


_ABOUT: Final = "about.json"
_TEXTS: Final = "documents.sqlite"
_PAIRS: Final = "pairs.parquet"
_LEAKED: Final = "leaked.parquet"
#: What may be scored; `place` is that of the first stage, from 0, and null outside of it; leaked documents are scored
#: at any place; `text` is that of a training document, and null where the collection has it.
_PAIR_SCHEMA: Final[dict[str, Any]] = frame_schema(
    "topic_id doc_id: String, place: Int64, leaked: Boolean, text: String"
)
#: Of a training document whose id the collection has for another one.
_FOREIGN: Final = "training:"
_TOPICS_AT_ONCE: Final = 50


class TestPair(NamedTuple):
    """A document that is scored for a topic: whether it is among the candidates, and both texts."""

    topic_id: str
    doc_id: str
    candidate: bool
    query: str
    title: str
    body: str


@dataclass(frozen=True)
class TestCollection:
    """A test collection, ready to be scored; `work` is where its texts lie.

    `fingerprints` has, by depth, the hash over all that is scored: queries, ids, places, texts.
    """

    design: CollectionDesign
    work: Path
    fingerprints: Mapping[int, str]
    notes: tuple[str, ...]


def open_collection(
    design: CollectionDesign, leaks: pl.DataFrame, depths: Collection[int], out: Path, progress: Progress
) -> tuple[TestCollection, pl.DataFrame]:
    """Searches a collection or reads its run, and keeps the texts of all that will be scored, and what leaked there.

    What an earlier run of the grid left is taken over where nothing has changed.
    """
    qrels = read_qrels_frame(design.qrels)
    judged = set(qrels["topic_id"].to_list())
    asked = topic_queries(design.topics, design.field)
    queries = {query.topic_id: query.text for query in asked if query.topic_id in judged and normalise(query.text)}
    if not queries:
        fault = f"no judged topic of {design.name} has a {design.field}"
        raise InputError(fault, "give topics and judgments of one collection, or another field", where=design.topics)
    if design.topic_count not in (None, len(queries)):
        there = f"{design.name} has {len(queries):,} judged topics with a text"
        fault, remedy = f"{there}, and the design says {design.topic_count:,}", "give the data that the design is for"
        raise InputError(fault, f"{remedy}, or correct its topic_count", where=design.topics)
    leaks = leaks.filter(pl.col("topic_id").is_in(list(queries)) & (pl.col("doc_id") != ""))
    run = None if design.run is None else compressed.fingerprint(grammar.parse(design.run).path)
    documents = open_documents(design.docs, keep_empty=True).fingerprint
    hashed = hashlib.sha256(qrels.write_csv().encode()).hexdigest()
    key = digest([documents, sorted(queries.items()), run, design.preset, sorted(depths), sorted(leaks.rows()), hashed])
    work = out / "inputs" / "collections" / f"{design.name}-{key[:16]}"
    about = out / "collections" / design.name / _ABOUT
    kept = json_file(about) if about.is_file() else {}
    if kept.get("key") != key or not (work / _LEAKED).is_file():
        # Until it is written again, nothing says what the folder holds.
        about.unlink(missing_ok=True)
        kept = {"key": key, **_make(design, _Read(queries, qrels, leaks, sorted(depths)), out, work, progress)}
        write_text(about, json.dumps(kept, indent=2, ensure_ascii=False) + "\n")
    prints = {int(depth): value for depth, value in kept["fingerprints"].items()}
    return TestCollection(design, work, prints, tuple(kept["notes"])), pl.read_parquet(work / _LEAKED)


class _Read(NamedTuple):
    queries: dict[str, str]
    qrels: pl.DataFrame
    leaks: pl.DataFrame
    depths: list[int]


def _make(design: CollectionDesign, read: _Read, out: Path, work: Path, progress: Progress) -> dict[str, Any]:
    """Writes candidates, judgments, topics, texts and what leaked; says what they are."""
    first = _first_stage(design, read.queries, max(read.depths), work, progress)
    wanted = frozenset((*first["doc_id"].to_list(), *read.leaks["doc_id"].to_list()))
    texts = DocumentTexts.collect(work / _TEXTS, design.docs, wanted, progress)
    there = first.filter(pl.col("doc_id").is_in(sorted(texts.ids())))
    if there.is_empty():
        fault = f"none of the candidates of {design.name} is in its documents"
        raise InputError(fault, "give the documents of this run", where=design.docs)
    topics = pl.DataFrame({"topic_id": list(read.queries), "text": list(read.queries.values())})
    judged = read.qrels.filter(pl.col("topic_id").is_in(list(read.queries)))
    write_collection(out, design.name, first_stage=there, qrels=judged, topics=topics)
    leaks = _named(read.leaks, texts)
    counted = leaks.with_columns(collection=pl.lit(design.name)).group_by(
        "collection", "set", "topic_id", "doc_id", "relevant", maintain_order=True
    )
    leaked = counted.len("rows").select(*LEAKED_SCHEMA).cast(pl.Schema(LEAKED_SCHEMA))
    for name, frame in ((_PAIRS, _pairs(there, leaks)), (_LEAKED, leaked)):
        with atomic_path(work / name) as temporary:
            frame.write_parquet(temporary, compression="zstd")
    lost, without = len(first) - len(there), len(read.queries) - there["topic_id"].n_unique()
    notes = [f"{lost:,} candidates are not in the documents and are left out"] if lost else []
    notes += [f"{without:,} judged topics have no candidates"] if without else []
    prints = {str(depth): _fingerprint(work, read.queries, depth) for depth in read.depths}
    return {"fingerprints": prints, "notes": notes}


def _first_stage(
    design: CollectionDesign, queries: Mapping[str, str], depth: int, work: Path, progress: Progress
) -> pl.DataFrame:
    """The best candidates of each judged topic, best first, ranks from 1."""
    if design.run is None:
        index = work / "index"
        lexical.build_index(design.docs, index, analyser=lexical.analyser_of(design.preset), progress=progress)
        asked = [lexical.TopicQuery(topic, text) for topic, text in queries.items()]
        model = lexical.model_of(design.preset, "bm25", {})
        found = lexical.search(index, asked, model, k=depth, tag="bm25", progress=progress).run
        shutil.rmtree(index)
    else:
        found = read_run_frame(design.run).filter(pl.col("topic_id").is_in(list(queries)))
        if found.is_empty():
            raise InputError("no judged topic in this run", "give the run of this collection", where=design.run)
    order = pl.DataFrame({"topic_id": list(queries)}).with_row_index("order")
    ranked = found.join(order, on="topic_id").sort("order", "score", "doc_id", descending=[False, True, False])
    ranked = ranked.with_columns(rank=pl.int_range(1, pl.len() + 1).over("topic_id")).filter(pl.col("rank") <= depth)
    return ranked.select(*RUN_SCHEMA).cast(pl.Schema(RUN_SCHEMA))


def _named(leaks: pl.DataFrame, texts: DocumentTexts) -> pl.DataFrame:
    """What leaked by the ids of the results; the text stays where it is not that of the collection's document."""
    held = frozenset(texts.ids())
    own = texts.texts([doc_id for doc_id in leaks["doc_id"].unique() if doc_id in held])
    ids: list[str] = []
    kept: list[str | None] = []
    for doc_id, role, text in leaks.select("doc_id", "role", "text").iter_rows():
        other = doc_id in own and role != "test" and normalise(joined(*own[doc_id])) != normalise(text)
        ids.append(f"{_FOREIGN}{doc_id}" if other else doc_id)
        kept.append(text if other or doc_id not in own else None)
    return leaks.with_columns(pl.Series("doc_id", ids, pl.String), pl.Series("text", kept, pl.String))


def _pairs(candidates: pl.DataFrame, leaks: pl.DataFrame) -> pl.DataFrame:
    """All that may be scored: the candidates by topic and place, and below them the leaked documents outside."""
    leaked = leaks.select("topic_id", "doc_id", "text").unique(["topic_id", "doc_id"], maintain_order=True)
    leaked = leaked.with_columns(place=pl.lit(None, pl.Int64), leaked=pl.lit(value=True)).select(*_PAIR_SCHEMA)
    inside = (
        candidates.select("topic_id", "doc_id", place=pl.col("rank") - 1)
        .join(
            leaked.select("topic_id", "doc_id", "leaked"), on=["topic_id", "doc_id"], how="left", maintain_order="left"
        )
        .with_columns(pl.col("leaked").fill_null(value=False), text=pl.lit(None, pl.String))
    )
    outside = leaked.join(inside, on=["topic_id", "doc_id"], how="anti").sort("topic_id", "doc_id")
    return pl.concat([inside.select(*_PAIR_SCHEMA).cast(pl.Schema(_PAIR_SCHEMA)), outside])


def _fingerprint(work: Path, queries: Mapping[str, str], depth: int) -> str:
    """The hash over all that is scored down to a depth."""
    found = hashlib.sha256()
    for block in pairs_of(work, queries, depth):
        for pair in block:
            found.update(json.dumps(pair).encode())
    return found.hexdigest()


def pairs_of(work: Path, queries: Mapping[str, str], depth: int) -> Iterator[list[TestPair]]:
    """What a cell scores, some topics at a time, in the order of the first stage."""
    pairs = pl.read_parquet(work / _PAIRS)
    scored = pairs.filter((pl.col("place") < depth) | pl.col("leaked"))
    texts, topics = DocumentTexts(work / _TEXTS), scored["topic_id"].unique(maintain_order=True)
    for start in range(0, len(topics), _TOPICS_AT_ONCE):
        some = scored.filter(pl.col("topic_id").is_in(topics[start : start + _TOPICS_AT_ONCE].implode()))
        held = texts.texts(some.filter(pl.col("text").is_null())["doc_id"].to_list())
        found = []
        for topic, doc_id, place, _, text in some.iter_rows():
            title, body = ("", text) if text is not None else held.get(doc_id, ("", ""))
            candidate = place is not None and place < depth
            found.append(TestPair(topic, doc_id, candidate, queries[topic], title, body))
        yield found
