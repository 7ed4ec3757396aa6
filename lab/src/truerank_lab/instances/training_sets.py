"""Training sets that differ only in their fault (leakage paper, section 4), or made of the table of an audit."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import polars as pl

from truerank.core.plain import picked
from truerank.errors import InputError, OptionError
from truerank.options import Flag, Seed, command
from truerank.records import Input
from truerank.sources import formats, hub
from truerank.sources.columns import named
from truerank.sources.instances import Instance, open_instances
from truerank.sources.query_files import as_text
from truerank.sources.rows import rows
from truerank.work.artifacts import digest
from truerank.work.progress import Progress, Quiet
from truerank.work.runs import Run
from truerank.work.runs import run as started
from truerank_lab.instances.built import ROWS, SUMMARY, TABLE, Built, export_name, open_built, write_export, write_rows
from truerank_lab.instances.document_queries import CutRule
from truerank_lab.instances.draws import SCHEMA
from truerank_lab.instances.options import (
    BuildOptions,
    FirstStageOptions,
    Format,
    Kind,
    LeakOptions,
    TableOptions,
    TopicOptions,
    TrainingOptions,
    checked_sizes,
)
from truerank_lab.instances.rows import assemble
from truerank_lab.instances.sources import Opened

#: The column that a kind of set has besides those of all.
EXTRA: Final[Mapping[str, dict[str, Any]]] = {"by-depth": {"depth": pl.Int64}, "by-version": {"version": pl.String}}
_NAMES: Final = {"by-depth": ("depth",), "by-version": ("version", "strategy")}
_ORIGINS: Final = ("origin", "relevant_origin")


class _Row(NamedTuple):
    """One row of the table, with its line and the value that decides whether it belongs to the set."""

    line: int
    instance: Instance
    value: str
    origin: str
    topic_id: str | None


@dataclass
class TableRows:
    """The rows of a table that belong to a set ("by-depth" or "by-version"), in their order.
     It counts the rows that were read, those left out for a greater depth or another version, and those with an empty
    text.
    """

    kind: str
    options: BuildOptions
    read: int = 0
    left_out: int = 0
    empty: int = 0

    def __post_init__(self) -> None:
        options = self.options
        self._source = open_instances(
            options.rows or "", topics=options.topics, docs=options.docs, topic_field=options.field
        )

    @property
    def inputs(self) -> dict[str, Any]:
        return {"name": self._source.name, "source": self._source.spec.spec, "fingerprint": self._source.fingerprint}

    def blocks(self, wanted: int | None) -> Iterator[pl.DataFrame]:
        """The rows as frames with the columns of `SCHEMA` but `number`, and the one of `EXTRA`."""
        block: list[dict[str, Any]] = []
        for row in islice(self._kept(), wanted):
            column = next(iter(EXTRA[self.kind]))
            came = row.origin or f"line {row.line} of {self._source.name}"
            block.append(
                {
                    **row.instance._asdict(),
                    "role": self.kind,
                    "topic_id": row.topic_id,
                    "source": self._source.name,
                    "origin": came,
                    column: int(row.value) if self.kind == "by-depth" else row.value,
                }
            )
            if len(block) == ROWS:
                yield self._frame(block)
                block = []
        if block:
            yield self._frame(block)

    def _kept(self) -> Iterator[_Row]:
        self.read = self.left_out = self.empty = 0
        version = self.options.strategy
        for row in self._rows():
            self.read += 1
            if self.kind == "by-depth":
                keep = self._depth(row) <= (self.options.annotation_depth or 0)
            else:
                version = row.value if version is None else version
                if self.options.strategy is None and row.value != version:
                    fault = f"rows of several versions ('{version}', '{row.value}')"
                    raise InputError(fault, "choose one with `strategy`", where=self.options.rows, line=row.line)
                keep = row.value == version
            instance = row.instance
            if not keep:
                self.left_out += 1
            elif not all(text.strip() for text in (instance.query, instance.relevant, instance.nonrelevant)):
                self.empty += 1
            else:
                yield row

    def _rows(self) -> Iterator[_Row]:
        spec = self._source.spec
        records = hub.records(spec) if spec.scheme == "hf" else rows(spec.path, formats.detect(spec.path, spec.format))
        key: str | None = None
        for row, instance in zip(records, self._source, strict=True):
            names = tuple(row.values)
            key = named(names, _NAMES[self.kind]) if key is None or key not in row.values else key
            if key is None:
                fault = f"no column '{_NAMES[self.kind][0]}'; there are {', '.join(names)}"
                raise InputError(fault, "give a table that an audit wrote", where=spec.location, line=row.line)
            origin, topic = (
                None if column is None else as_text(row.values[column])
                for column in (named(names, _ORIGINS), named(names, ("topic_id",)))
            )
            yield _Row(row.line, instance, as_text(row.values[key]) or "", origin or "", topic)

    def _depth(self, row: _Row) -> int:
        try:
            return int(row.value)
        except ValueError as error:
            fault = f"expected an integer as depth, got '{row.value}'"
            raise InputError(fault, "correct it", where=self.options.rows, line=row.line) from error

    def _frame(self, block: list[dict[str, Any]]) -> pl.DataFrame:
        schema = {name: kind for name, kind in {**SCHEMA, **EXTRA[self.kind]}.items() if name != "number"}
        return pl.DataFrame(block, schema=schema)


_EXPORTS: Final = "exports"


@command
def build(
    kind: Kind,
    size: Annotated[tuple[int, ...], Flag(metavar="N", reads=list[int])] = (),
    *,
    training: TrainingOptions = TrainingOptions(),
    cut: CutRule = CutRule(),
    first_stage: FirstStageOptions = FirstStageOptions(),
    leak: LeakOptions = LeakOptions(),
    testing: TopicOptions = TopicOptions(),
    table: TableOptions = TableOptions(),
    write: Annotated[tuple[Format, ...], Flag(metavar="FORMAT", reads=list[Format])] = (),
    allow_fewer: bool = False,
    seed: Seed = 0,
    out: Annotated[str | Path, Flag(metavar="DIR", reads=Path)],
    progress: Progress | None = None,
) -> Built:
    """Builds a training set that differs from others only in its fault, in several sizes at once.

    An instance is a pair of a query and a document: a size of 1,000 has 500 rows, each a query with one relevant and
    one non-relevant document. Each size is the beginning of the next. Rows that leak come first; the others are those
    of the set of the kind none with the same sources and seed. Everything is chosen by hashes keyed with the seed; the
    same input gives the same bytes. Killed and called again, searching for non-relevant documents continues.

    Args:
        kind: which fault the set has. none: no candidate of an audit, equal shares of the sources. leak: so many
            leaking queries, spread over the topics, with the relevant document of the training query. test: so many
            rows of the test topics with judged documents. test-queries: of their texts with documents of the first
            stage that nobody judged. test-documents: of documents judged relevant, with queries that are made of these.
            test-reworded: as test, with the text of the topic reworded by rules. by-depth, by-version: rows of a table
            that `survivorship triples` or `transfer select` wrote.
        size: in instances, twice the rows; repeat for several sizes. By depth and by version there may be none: then
            all rows.
        training: training data.
        cut: how documents make queries.
        first_stage: where non-relevant documents come from.
        leak: rows that leak.
        testing: test data.
        table: rows of a table.
        write: also write each size as jsonl, parquet, sentence-transformers or triples; repeat.
        allow_fewer: take what there is where it is less than asked for.
        seed: of all choices.
        out: the folder of the set.
        progress: receives progress updates.

    Returns:
        The set; the folder holds `instances.parquet`, `summary.json`, `manifest.json` and what `write` asks for.

    Raises:
        InputError: a fault in a source or an option; fewer rows than asked for, with how many there are.

    Examples:

        truerank-lab build --kind none --queries irds:msmarco-document/train --queries irds:msmarco-document/orcas
        --docs irds:msmarco-document --index index/ --audit audit/ --size 1000 --size 128000 --out none/

        truerank-lab build --kind leak --leaks 500 --labels judged.jsonl --topics topics.trec
        --queries queries.tsv --train-qrels qrels.tsv --docs docs.jsonl --audit audit/ --size 1000 --out leak/

        truerank-lab build --kind test --leaks 500 --topics topics.trec --qrels qrels.txt --test-docs robust.jsonl
        --queries queries.tsv --train-qrels qrels.tsv --docs docs.jsonl --audit audit/ --size 1000 --out test/

        truerank-lab build --kind none --queries-from-documents docs.trec.gz --audit audit/ --size 1000
        --out none/

        truerank-lab build --kind by-depth --rows triples.parquet --annotation-depth 1 --out depth-1/

    Source: leakage paper, section 4, "Training Datasets".
    """
    options = BuildOptions.of(
        training, first_stage, leak, testing, table, cut=cut, write=write, allow_fewer=allow_fewer
    )
    options.check(kind)
    sizes = _sizes(kind, size, options)
    with started("instances build", (), {"kind": kind, "size": sizes, **options.json(), "seed": seed}, out) as job:
        work = job.unfinished(digest({"kind": kind, "seed": seed, **asdict(options)}), page="")
        if kind in EXTRA:
            written = _from_table(kind, job, work, sizes, options)
        else:
            opened = Opened(options, seed, work, progress or Quiet())
            made = assemble(kind, sizes[-1] // 2, opened)
            opened.progress.start("writing")
            _forget(job)
            rows = write_rows(job, made.blocks(), work / "rows", {})
            written = _Rows(rows, made.inputs, made.leaks, made.skipped, made.notes)
        _finish(Built(job.folder, kind, sizes, seed, {"rows": written.rows}), job, options, written)
    return open_built(job.folder)


def _sizes(kind: Kind, asked: Sequence[int], options: BuildOptions) -> tuple[int, ...]:
    """The sizes in ascending order; the first one has room for all rows that leak."""
    sizes, lead = checked_sizes(asked), options.leaks or 0
    if kind in EXTRA:
        return sizes
    if not sizes:
        raise OptionError("size", "is missing", "give one size or several, in instances: 1000 are 500 queries")
    if sizes[0] // 2 < lead:
        fault = f"the size {sizes[0]:,} has {sizes[0] // 2:,} rows, fewer than the {lead:,} that leak"
        raise OptionError("size", fault, f"begin with a size of {2 * lead:,}")
    return sizes


class _Rows(NamedTuple):
    """How many rows were written, and what the summary says of them, as in `Assembled`."""

    rows: int
    inputs: Mapping[str, Any]
    leaks: Mapping[str, Any] | None
    skipped: Mapping[str, int]
    notes: Sequence[str]


def _from_table(kind: str, job: Run, work: Path, sizes: tuple[int, ...], options: BuildOptions) -> _Rows:
    table = TableRows(kind, options)
    wanted = sizes[-1] // 2 if sizes else None
    _forget(job)
    rows = write_rows(job, table.blocks(wanted), work / "rows", EXTRA[kind])
    column = next(iter(EXTRA[kind]))
    if not rows or (wanted is not None and rows < wanted and not options.allow_fewer):
        (job.folder / TABLE).unlink(missing_ok=True)
        shutil.rmtree(work)
        fault = f"{rows:,} rows fit, not {wanted or 1:,}; {table.left_out:,} have another {column}"
        raise InputError(fault, "ask for a smaller size, or give `allow_fewer`", where=options.rows)
    no_text = "rows without the text of a query or document"
    skipped = {f"rows of another {column}": table.left_out, no_text: table.empty}
    notes = [] if wanted is None or rows >= wanted else [f"There are only {rows:,} rows."]
    if wanted is not None and rows == wanted:
        notes.append(f"The table was read as far as its row {table.read:,}.")
    left_out = {reason: number for reason, number in skipped.items() if number}
    return _Rows(rows, {"rows": table.inputs}, None, left_out, notes)


def _forget(job: Run) -> None:
    """Without its manifest an earlier set of this folder is none: a killed build leaves no mixture of two."""
    job.claim(job.folder / SUMMARY)
    for name in ("manifest.json", SUMMARY):
        (job.folder / name).unlink(missing_ok=True)


def _finish(asked: Built, job: Run, options: BuildOptions, written: _Rows) -> None:
    """Counts, exports and the summary, of those sizes that there are rows for."""
    built = replace(asked, sizes=tuple(size for size in asked.sizes if size <= 2 * written.rows) or (2 * written.rows,))
    by_size = {str(size): _counts(built, size) for size in built.sizes}
    job.withdraw(_EXPORTS)
    exports = {}
    for form in options.write:
        for size in built.sizes:
            name = f"{_EXPORTS}/{export_name(form, size)}"
            write_export(built, form, job.folder / name, size)
            job.note(name)
            exports[name] = {"format": form, "size": size}
    job.json(
        SUMMARY,
        {
            **picked(built, "kind, seed, sizes"),
            "counting": "an instance is a pair of a query and a document: a size of 1,000 has 500 rows",
            # How many processes searched changes nothing in the set.
            "options": {name: value for name, value in options.changed().items() if name != "workers"},
            **written._asdict(),
            "counts": {"by_size": by_size},
            "exports": exports,
        },
    )
    job.read(*_inputs(written.inputs, options.index))
    job.skipped = dict(written.skipped)
    job.log("built", kind=built.kind, rows=written.rows)


def _inputs(described: Mapping[str, Any], index: str | None) -> Iterator[Input]:
    """What was read, as a manifest has it; an index that was made on the way has no place."""
    for role, found in described.items():
        if role == "first_stage":
            if "index" in found:
                yield Input(Path(index or role).name, index or "", "index", None, found["index"])
            continue
        for one in found if isinstance(found, list) else [found]:
            source = str(one.get("source") or one.get("folder") or "")
            known = str(one.get("sha256") or one.get("fingerprint") or "").removeprefix("sha256:").partition(";")[0]
            yield Input(str(one.get("name") or Path(source).name), source, role, one.get("read"), known or None)


def _counts(built: Built, size: int) -> dict[str, int]:
    """Rows of a size by role and source, as `role: source`."""
    frame = built.lazy().head(size // 2).select("role", "source").collect()
    counts = Counter(f"{role}: {source}" for role, source in frame.iter_rows())
    return dict(sorted(counts.items(), key=lambda item: (item[0].startswith("none:"), item[0])))
