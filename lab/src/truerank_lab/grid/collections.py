"""What the cells of a grid share: its training sets and its test collections, with their texts; made once."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

import polars as pl

from truerank import lexical
from truerank.arrays import frame_schema
from truerank.errors import InputError, OptionError
from truerank.lexical.searching import topic_queries
from truerank.loading import json_file
from truerank.options import overwrites
from truerank.rankers.reranking.document_texts import DocumentTexts
from truerank.sources import compressed, formats, grammar, open_documents, read_qrels_frame, read_run_frame
from truerank.sources.documents import DocumentSource
from truerank.sources.instances import Instance, open_instances
from truerank.sources.rows import rows
from truerank.sources.runs import RUN_SCHEMA
from truerank.text.normalising import normalise
from truerank.text.passages import joined
from truerank.work.artifacts import atomic_path, digest, write_text
from truerank.work.progress import Progress
from truerank_lab.grid.design import CollectionDesign, SetDesign
from truerank_lab.grid.results import LEAKED_SCHEMA, write_collection

_TABLE: Final = "instances.parquet"
_BLOCK: Final = 4096
#: Roles of the rows that leak.
_LEAKING: Final = ("leak", "test")


class LeakDocument(NamedTuple):
    """A document in a leaking row: the topic that leaks, and the document's text as it is trained on."""

    topic_id: str
    doc_id: str
    relevant: bool
    role: str
    text: str


@dataclass(frozen=True)
class TrainingSet:
    """A training set as it lies on the disk.
     `prefixes` has the hash over the rows of each size, by the size in instances; `leaks` has the documents of the
    leaking rows, one for each row and role in it.
    """

    design: SetDesign
    source: str
    prefixes: Mapping[int, str]
    leaks: tuple[LeakDocument, ...]

    def json(self) -> dict[str, Any]:
        return {"kind": self.design.kind, "sizes": dict(self.prefixes), "leaks": len(self.leaks)}


def open_set(design: SetDesign, out: Path, progress: Progress) -> TrainingSet:
    """Builds a set where that was asked for and is not done yet, and reads what its identity needs."""
    source = design.instances or ""
    if design.build is not None:
        source = str(_built(design, out, progress))
    elif design.topics is not None or design.docs is not None or grammar.parse(source).scheme != "file":
        source = str(_put_together(design, out, progress))
    progress.start(f"reading {design.name}")
    largest = max(design.sizes, default=0) // 2 or None
    prefixes = _prefixes(design, source, largest)
    return TrainingSet(design, source, prefixes, tuple(_leaks(source, largest)))


def rows_of(source: str, size: int) -> list[Instance]:
    return list(islice(open_instances(source), size // 2))


def _built(design: SetDesign, out: Path, progress: Progress) -> Path:
    folder = out / "sets" / design.name
    given = {**(design.build or {})}
    seed = int(given.pop("seed", 0))
    if (fill := given.get("fill")) is not None and (out / "sets" / fill / _TABLE).is_file():
        given["fill"] = str(out / "sets" / fill)
    wanted = digest([design.kind, sorted(design.sizes), seed, {**given, "fill": fill}])
    mark = out / "sets" / f"{design.name}.json"
    if mark.is_file() and json_file(mark).get("options") == wanted:
        return folder
    from truerank_lab.instances import build
    from truerank_lab.instances.options import Kind

    progress.start(f"building {design.name}")
    chosen: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in given.items()}
    try:
        build(cast(Kind, design.kind), design.sizes, out=folder, seed=seed, progress=progress, **chosen)
    except OptionError as error:
        # Options are keys of the design here.
        where = f"set {design.name}"
        raise InputError(f"{error.option}: {error.fault}", error.remedy.replace("`", ""), where=where) from error
    with atomic_path(mark) as temporary:
        temporary.write_text(json.dumps({"options": wanted}) + "\n", encoding="utf-8")
    return folder


def _put_together(design: SetDesign, out: Path, progress: Progress) -> Path:
    """Rows whose texts lie elsewhere, as one table: workers read it as often as there are cells."""
    path = out / "sets" / design.name / _TABLE
    progress.start(f"putting {design.name} together")
    source = open_instances(design.instances or "", topics=design.topics, docs=design.docs)
    taken: Iterator[Instance] = islice(source, max(design.sizes) // 2 if design.sizes else None)
    with atomic_path(path) as temporary:
        pl.DataFrame(list(taken), schema=dict.fromkeys(Instance._fields, pl.String), orient="row").write_parquet(
            temporary, compression="zstd"
        )
    return path


def _prefixes(design: SetDesign, source: str, largest: int | None) -> dict[int, str]:
    """The hash over the rows of each size; of all rows where the design names no size."""
    found = hashlib.sha256()
    ends = {size // 2 for size in design.sizes}
    prefixes: dict[int, str] = {}
    count = 0
    for instance in islice(open_instances(source), largest):
        found.update(json.dumps(instance).encode())
        count += 1
        if count in ends:
            prefixes[2 * count] = found.hexdigest()
    if not count:
        raise InputError(f"the set {design.name} has no rows", "give a source that holds some", where=source)
    if lacking := [size for size in design.sizes if size not in prefixes]:
        fault = f"the set {design.name} has {2 * count:,} instances ({count:,} rows), and {lacking[0]:,} were asked for"
        raise InputError(fault, "choose smaller sizes, or give more rows", where=source)
    return prefixes or {2 * count: found.hexdigest()}


def _leaks(source: str, largest: int | None) -> Iterator[LeakDocument]:
    for row in _records(source, largest):
        role, topic = row.get("role"), row.get("topic_id")
        if role not in _LEAKING or topic is None:
            continue
        for part in ("relevant", "nonrelevant"):
            doc_id, text = (str(row.get(name) or "") for name in (f"{part}_id", part))
            yield LeakDocument(str(topic), doc_id, part == "relevant", str(role), text)


def _records(source: str, largest: int | None) -> Iterator[Mapping[str, Any]]:
    """The rows with all their columns, where the source is a table that has them."""
    spec = grammar.parse(source)
    path = spec.path / _TABLE if spec.path.is_dir() else spec.path
    form = formats.detect(path, spec.format)
    if form == "parquet":
        lazy = pl.scan_parquet(path, glob=False)
        names = set(lazy.collect_schema().names())
        if not {"role", "topic_id"} <= names:
            return
        wanted = [n for n in ("role", "topic_id", *Instance._fields) if n in names and n not in ("query", "query_id")]
        first = lazy.head(largest) if largest else lazy
        yield from first.filter(pl.col("role").is_in(_LEAKING)).select(wanted).collect().iter_rows(named=True)
    elif form in ("csv", "jsonl", "json"):
        for row in islice(rows(path, form), largest):
            yield row.values


_ABOUT: Final = "about.json"
_TEXTS: Final = "documents.sqlite"
_PAIRS: Final = "pairs.parquet"
_NAMES: Final = "names.json"
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
     `fingerprints` has, by depth, the hash over all that is scored: queries, ids, places, texts; `documents` has how
    many these are, leaked ones included. `counts` are of topics and candidates.
    """

    design: CollectionDesign
    work: Path
    fingerprints: Mapping[int, str]
    documents: Mapping[int, int]
    notes: tuple[str, ...]
    counts: Mapping[str, int]

    def json(self) -> dict[str, Any]:
        return {
            "fingerprints": dict(self.fingerprints),
            "documents": dict(self.documents),
            **self.counts,
            "notes": list(self.notes),
        }


#: By role, id and hash of the text of a leaked document: its id in the results, and whether the text is its own.
_Names = dict[tuple[str, str, str], tuple[str, bool]]


class _Inputs(NamedTuple):
    documents: DocumentSource
    queries: dict[str, str]
    qrels: pl.DataFrame
    depths: tuple[int, ...]
    leaks: pl.DataFrame


def open_collection(
    design: CollectionDesign, sets: Sequence[TrainingSet], depths: Sequence[int], out: Path, progress: Progress
) -> tuple[TestCollection, pl.DataFrame]:
    """Searches a collection or reads its run, and keeps the texts of all that will be scored.

    What an earlier run of the grid left is taken over where nothing has changed.
    """
    inputs = _read(design, sets, depths)
    stage = design.first_stage.json()
    if design.first_stage.run is not None:
        stage["run"] = compressed.fingerprint(grammar.parse(design.first_stage.run).path)
    judged = hashlib.sha256(inputs.qrels.write_csv().encode()).hexdigest()
    given = [inputs.documents.fingerprint, sorted(inputs.queries.items()), stage, sorted(depths)]
    key = digest([*given, sorted(inputs.leaks.rows()), judged])
    folder = out / "inputs" / "collections" / design.name
    about = out / "collections" / design.name / _ABOUT
    kept = json_file(about) if about.is_file() else {}
    if kept.get("key") != key or not (folder / _PAIRS).is_file():
        if folder.is_dir() and not about.is_file() and not overwrites.get():
            fault = f"a folder is there that {about} does not name"
            raise InputError(fault, "choose another place with `out`, or replace it with --overwrite", where=folder)
        # After a kill this file says whose the folder is.
        write_text(about, json.dumps({"key": None}) + "\n")
        shutil.rmtree(folder, ignore_errors=True)
        kept = {"key": key, **_make(design, inputs, out, folder, progress)}
        write_text(about, json.dumps(kept, indent=2, ensure_ascii=False) + "\n")
    by_depth = kept["depths"].items()
    fingerprints = {int(depth): str(value["fingerprint"]) for depth, value in by_depth}
    documents = {int(depth): int(value["documents"]) for depth, value in by_depth}
    made = TestCollection(design, folder, fingerprints, documents, tuple(kept["notes"]), kept["counts"])
    return made, _leaked(design.name, inputs.leaks, folder)


def pairs_of(work: Path, queries: Mapping[str, str], depth: int) -> Iterator[list[TestPair]]:
    """What a cell scores, some topics at a time, in the order of the first stage."""
    with (work / _PAIRS).open("rb") as stream:
        pairs = pl.read_parquet(stream)
    scored = pairs.filter((pl.col("place") < depth) | pl.col("leaked"))
    texts = DocumentTexts(work / _TEXTS)
    for some in _by_topics(scored):
        held = texts.texts(some.filter(pl.col("text").is_null())["doc_id"].to_list())
        found = []
        for topic, doc_id, place, _, text in some.iter_rows():
            title, body = ("", text) if text is not None else held.get(doc_id, ("", ""))
            candidate = place is not None and place < depth
            found.append(TestPair(topic, doc_id, candidate, queries[topic], title, body))
        yield found


def _by_topics(pairs: pl.DataFrame) -> Iterator[pl.DataFrame]:
    topics = pairs["topic_id"].unique(maintain_order=True)
    for start in range(0, len(topics), _TOPICS_AT_ONCE):
        some = topics[start : start + _TOPICS_AT_ONCE]
        yield pairs.filter(pl.col("topic_id").is_in(some.implode()))


def _read(design: CollectionDesign, sets: Sequence[TrainingSet], depths: Sequence[int]) -> _Inputs:
    qrels = read_qrels_frame(design.qrels)
    judged = set(qrels["topic_id"].to_list())
    asked = topic_queries(design.topics, design.topic_field)
    queries = {query.topic_id: query.text for query in asked if query.topic_id in judged and normalise(query.text)}
    if not queries:
        fault = f"no judged topic of {design.name} has a {design.topic_field}"
        raise InputError(fault, "give topics and judgments of one collection, or another field", where=design.topics)
    if design.topic_count not in (None, len(queries)):
        there = f"{design.name} has {len(queries):,} judged topics with a text"
        fault, remedy = f"{there}, and the design says {design.topic_count:,}", "give the data that the design is for"
        raise InputError(fault, f"{remedy}, or correct its topic_count", where=design.topics)
    rows = [
        (one.design.name, leak.topic_id, leak.doc_id, leak.relevant, leak.role, leak.text)
        for one in sets
        if design.name in one.design.collections
        for leak in one.leaks
        if leak.topic_id in queries and leak.doc_id
    ]
    names = ("set", "topic_id", "doc_id", "relevant", "role", "text")
    leaks = pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String) | {"relevant": pl.Boolean}, orient="row")
    return _Inputs(open_documents(design.docs, keep_empty=True), queries, qrels, tuple(sorted(set(depths))), leaks)


def _make(design: CollectionDesign, inputs: _Inputs, out: Path, folder: Path, progress: Progress) -> dict[str, Any]:
    """Writes candidates, judgments, topics and texts; says what they are."""
    first = _first_stage(design, inputs, folder, progress)
    candidates = first.filter(pl.col("rank") <= max(inputs.depths))
    leaked_ids = inputs.leaks["doc_id"].unique().to_list()
    wanted = frozenset((*candidates["doc_id"].unique().to_list(), *leaked_ids))
    DocumentTexts.collect(folder / _TEXTS, design.docs, wanted, progress)
    held = frozenset(DocumentTexts(folder / _TEXTS).ids())
    there = candidates.filter(pl.col("doc_id").is_in(sorted(held)))
    if there.is_empty():
        fault = f"none of the candidates of {design.name} is in its documents"
        raise InputError(fault, "give the documents of this run", where=design.docs)
    # The ids that leaked documents have in the results.
    distinct = inputs.leaks.select("role", "doc_id", "text").unique(maintain_order=True)
    texts = DocumentTexts(folder / _TEXTS).texts([doc_id for doc_id in distinct["doc_id"].to_list() if doc_id in held])
    names: _Names = {}
    for role, doc_id, text in distinct.iter_rows():
        own = doc_id not in texts or (role != "test" and normalise(joined(*texts[doc_id])) != normalise(text))
        names[role, doc_id, _short(text)] = (f"{_FOREIGN}{doc_id}" if own and doc_id in texts else doc_id, own)
    pairs = _pairs(there, names, inputs)
    write_text(folder / _NAMES, json.dumps(sorted([*key, *value] for key, value in names.items())) + "\n")
    schema = {"topic_id": pl.String, "text": pl.String}
    topics = pl.DataFrame(list(inputs.queries.items()), schema=schema, orient="row")
    qrels = inputs.qrels.filter(pl.col("topic_id").is_in(list(inputs.queries)))
    write_collection(out, design.name, first_stage=there, qrels=qrels, topics=topics)
    with atomic_path(folder / _PAIRS) as temporary:
        pairs.write_parquet(temporary, compression="zstd")
    lost, without = len(candidates) - len(there), len(inputs.queries) - there["topic_id"].n_unique()
    return {
        "depths": _by_depth(folder, inputs),
        "notes": [
            *([f"{lost:,} candidates are not in the documents and are left out"] if lost else []),
            *([f"{without:,} judged topics have no candidates"] if without else []),
        ],
        "counts": {"topics": there["topic_id"].n_unique(), "candidates": len(there)},
    }


def _first_stage(design: CollectionDesign, inputs: _Inputs, folder: Path, progress: Progress) -> pl.DataFrame:
    """The best candidates of each judged topic, best first, ranks from 1."""
    stage, depth = design.first_stage, max(inputs.depths)
    if stage.run is None:
        index = folder / "index"
        lexical.build_index(design.docs, index, analyser=lexical.analyser_of(stage.preset), progress=progress)
        queries = [lexical.TopicQuery(topic, text) for topic, text in inputs.queries.items()]
        model = lexical.model_of(stage.preset, stage.model, stage.parameters)
        found = lexical.search(index, queries, model, k=depth, tag=stage.model, progress=progress).run
        shutil.rmtree(index)
    else:
        found = read_run_frame(stage.run).filter(pl.col("topic_id").is_in(list(inputs.queries)))
        if found.is_empty():
            raise InputError("no judged topic in this run", "give the run of this collection", where=stage.run)
    order = pl.DataFrame({"topic_id": list(inputs.queries)}).with_row_index("order")
    ranked = found.join(order, on="topic_id").sort("order", "score", "doc_id", descending=[False, True, False])
    ranked = ranked.with_columns(rank=pl.int_range(1, pl.len() + 1).over("topic_id")).filter(pl.col("rank") <= depth)
    return ranked.select(*RUN_SCHEMA).cast(pl.Schema(RUN_SCHEMA))


def _short(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _pairs(candidates: pl.DataFrame, names: _Names, inputs: _Inputs) -> pl.DataFrame:
    """All that may be scored: the candidates by topic and place, and below them the leaked documents outside."""
    rows = []
    for topic, role, doc_id, text in inputs.leaks.select("topic_id", "role", "doc_id", "text").iter_rows():
        name, own = names[role, doc_id, _short(text)]
        rows.append((topic, name, None, True, text if own else None))
    leaked = pl.DataFrame(rows, schema=_PAIR_SCHEMA, orient="row").unique(["topic_id", "doc_id"], maintain_order=True)
    leaking = leaked.select("topic_id", "doc_id", leaked=pl.lit(True))
    inside = (
        candidates.select("topic_id", "doc_id", place=pl.col("rank") - 1)
        .join(leaking, on=["topic_id", "doc_id"], how="left", maintain_order="left")
        .with_columns(pl.col("leaked").fill_null(False), text=pl.lit(None, pl.String))
    )
    outside = leaked.join(inside, on=["topic_id", "doc_id"], how="anti").sort("topic_id", "doc_id")
    return pl.concat([inside.select(*_PAIR_SCHEMA).cast(pl.Schema(_PAIR_SCHEMA)), outside])


def _by_depth(folder: Path, inputs: _Inputs) -> dict[str, dict[str, Any]]:
    """The hash over all that is scored down to each depth, and how many documents that are."""
    made: dict[str, dict[str, Any]] = {}
    for depth in inputs.depths:
        found, count = hashlib.sha256(), 0
        for block in pairs_of(folder, inputs.queries, depth):
            count += len(block)
            for pair in block:
                found.update(json.dumps(pair).encode())
        made[str(depth)] = {"fingerprint": found.hexdigest(), "documents": count}
    return made


def _leaked(name: str, leaks: pl.DataFrame, folder: Path) -> pl.DataFrame:
    """What leaked by the ids of the results, with the number of rows."""
    rows = json_file(folder / _NAMES)
    names = {(role, doc_id, text): name for role, doc_id, text, name, _ in rows}
    ids = [
        names[role, doc_id, _short(text)] for role, doc_id, text in leaks.select("role", "doc_id", "text").iter_rows()
    ]
    named = leaks.with_columns(doc_id=pl.Series(ids, dtype=pl.String), collection=pl.lit(name))
    counted = named.group_by("collection", "set", "topic_id", "doc_id", "relevant", maintain_order=True).len("rows")
    return counted.select(*LEAKED_SCHEMA).cast(pl.Schema(LEAKED_SCHEMA))
