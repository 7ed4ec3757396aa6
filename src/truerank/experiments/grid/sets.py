"""The training sets of a grid: built here or opened, the identity of each size, and what leaks in them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

import polars as pl

from truerank.errors import InputError, OptionError
from truerank.experiments.grid.design import SetDesign
from truerank.loading import json_file
from truerank.rankers.training.instances import Instance, open_instances
from truerank.sources import formats, grammar
from truerank.sources.rows import rows
from truerank.work.artifacts import atomic_path, digest
from truerank.work.progress import Progress

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

    Attributes:
        design: as it was designed.
        source: where its rows are, for `rows_of`.
        prefixes: the hash over the rows of each size, by the size in instances.
        leaks: the documents of its leaking rows, one for each row and role in it.
    """

    design: SetDesign
    source: str
    prefixes: Mapping[int, str]
    leaks: tuple[LeakDocument, ...]

    def json(self) -> dict[str, Any]:
        """For the manifest."""
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
    """The first rows of a set."""
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
    from truerank.experiments.instances import build
    from truerank.experiments.instances.options import Kind

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
        for part, relevant in (("relevant", True), ("nonrelevant", False)):
            yield LeakDocument(
                str(topic), str(row.get(f"{part}_id") or ""), relevant, str(role), str(row.get(part) or "")
            )


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


def leaked_rows(sets: Sequence[TrainingSet], collection: str) -> Iterator[tuple[str, LeakDocument]]:
    """The leaks of all sets that a collection is tested with, with the set's name."""
    for one in sets:
        if collection in one.design.collections:
            for leak in one.leaks:
                yield one.design.name, leak
