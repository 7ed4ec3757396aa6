"""Training sets that differ only in their fault (leakage paper, section 4), or made of the table of an audit."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import polars as pl

from truerank.errors import InputError
from truerank.options import Flag, Seed, command
from truerank.records import Input
from truerank.sources.columns import named
from truerank.sources.instances import open_instances
from truerank.work.artifacts import digest
from truerank.work.progress import Progress, Quiet
from truerank.work.runs import Run
from truerank.work.runs import run as started
from truerank_lab.instances.built import ROWS, SUMMARY, TABLE, Built, open_built, write_rows
from truerank_lab.instances.draws import SCHEMA
from truerank_lab.instances.options import TABLE_KINDS, BuildOptions, Kind
from truerank_lab.instances.rows import assemble
from truerank_lab.instances.sources import Opened

#: The column that a table kind adds, and the names that a table has for it.
_EXTRA: Final[Mapping[str, dict[str, Any]]] = {"by-depth": {"depth": pl.Int64}, "by-version": {"version": pl.String}}
_NAMES: Final = {"by-depth": ("depth",), "by-version": ("version", "strategy")}


class _Rows(NamedTuple):
    """How many rows were written, and what the summary says of them, as in `Assembled`."""

    rows: int
    inputs: Mapping[str, Any]
    leaks: Mapping[str, Any] | None
    skipped: Mapping[str, int]
    notes: Sequence[str]


@command
def build(
    kind: Kind,
    size: Annotated[tuple[int, ...], Flag(metavar="N", reads=list[int])] = (),
    *,
    options: BuildOptions = BuildOptions(),
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
            rows of the test topics with judged documents. by-depth, by-version: rows of a table that `survivorship
            triples` or `transfer select` wrote.
        size: in instances, twice the rows; repeat for several sizes. By depth and by version there may be none: then
            all rows.
        options: what the set is built from.
        seed: of all choices.
        out: the folder of the set.
        progress: receives progress updates.

    Returns:
        The set; the folder holds `instances.parquet`, `summary.json` and `manifest.json`.

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
    options.check(kind)
    sizes = options.sizes(kind, size)
    with started("instances build", (), {"kind": kind, "size": sizes, **options.json(), "seed": seed}, out) as job:
        work = job.unfinished(digest({"kind": kind, "seed": seed, **options.json()}), page="")
        if kind in TABLE_KINDS:
            written = _from_table(kind, job, work, sizes[-1] // 2 if sizes else None, options)
        else:
            opened = Opened(options, seed, work, progress or Quiet())
            made = assemble(kind, sizes[-1] // 2, opened)
            opened.progress.start("writing")
            _forget(job)
            rows = write_rows(job, made.blocks(), work / "rows", {})
            written = _Rows(rows, made.inputs, made.leaks, made.skipped, made.notes)
        _finish({"kind": kind, "seed": seed}, sizes, job, options, written)
    return open_built(job.folder)


def _from_table(kind: str, job: Run, work: Path, wanted: int | None, options: BuildOptions) -> _Rows:
    """The rows of a table that belong to the set, in their order."""
    column, skipped = TABLE_KINDS[kind], Counter[str]()
    source = open_instances(options.rows or "", topics=options.topics, docs=options.docs)
    _forget(job)
    rows = write_rows(job, _table_blocks(kind, wanted, options, skipped), work / "rows", _EXTRA[kind])
    if not rows or (wanted is not None and rows < wanted and not options.allow_fewer):
        (job.folder / TABLE).unlink(missing_ok=True)
        shutil.rmtree(work)
        fault = (
            f"{rows:,} rows fit, not {wanted or 1:,}; {skipped[f'rows of another {column}']:,} have another {column}"
        )
        raise InputError(fault, "ask for a smaller size, or give `allow_fewer`", where=options.rows)
    inputs = {"name": source.name, "source": source.spec.spec, "fingerprint": source.fingerprint}
    notes = [] if wanted is None or rows >= wanted else [f"There are only {rows:,} rows."]
    return _Rows(rows, {"rows": inputs}, None, dict(skipped), notes)


def _table_blocks(
    kind: str, wanted: int | None, options: BuildOptions, skipped: Counter[str]
) -> Iterator[pl.DataFrame]:
    """The rows as frames with the columns of `SCHEMA` but `number`, and that of `_EXTRA`; counts what is not kept."""
    path, (column, type_) = Path(options.rows or ""), next(iter(_EXTRA[kind].items()))
    source = open_instances(str(path), topics=options.topics, docs=options.docs)
    try:
        names = tuple(pl.read_parquet_schema(path))
        if (value := named(names, _NAMES[kind])) is None:
            fault = f"no column '{_NAMES[kind][0]}'; there are {', '.join(names)}"
            raise InputError(fault, "give a table that an audit wrote", where=path)
        limit = pl.col(value) <= options.annotation_depth if kind == "by-depth" else pl.col(value) == options.strategy
        origin = pl.format(f"line {{}} of {source.name}", pl.int_range(1, pl.len() + 1))
        if (own := named(names, ("origin", "relevant_origin"))) is not None:
            origin = pl.coalesce(pl.col(own).cast(pl.String).replace("", None), origin)
        about = pl.read_parquet(path, columns=[name for name in (value, own, "topic_id") if name in names], glob=False)
        about = about.select(
            pl.lit(kind).alias("role"),
            (pl.col("topic_id").cast(pl.String) if "topic_id" in names else pl.lit(None, pl.String)).alias("topic_id"),
            pl.lit(source.name).alias("source"),
            origin.alias("origin"),
            pl.col(value).cast(type_).alias(column),
            limit.alias("fits"),
        )
    except (OSError, pl.exceptions.PolarsError) as error:
        raise InputError("no table that can be read", "give a Parquet table that an audit wrote", where=path) from error
    schema = {name: kind_of for name, kind_of in {**SCHEMA, **_EXTRA[kind]}.items() if name != "number"}

    def kept() -> Iterator[dict[str, Any]]:
        for row, instance in zip(about.iter_rows(named=True), source, strict=True):
            if not row.pop("fits"):
                skipped[f"rows of another {column}"] += 1
            elif not all(text.strip() for text in (instance.query, instance.relevant, instance.nonrelevant)):
                skipped["rows without the text of a query or document"] += 1
            else:
                yield {**instance._asdict(), **row}

    rows = islice(kept(), wanted)
    while block := list(islice(rows, ROWS)):
        yield pl.DataFrame(block, schema=schema)


def _forget(job: Run) -> None:
    """Without its manifest an earlier set of this folder is none: a killed build leaves no mixture of two."""
    job.claim(job.folder / SUMMARY)
    for name in ("manifest.json", SUMMARY):
        (job.folder / name).unlink(missing_ok=True)


def _finish(known: Mapping[str, Any], asked: Sequence[int], job: Run, options: BuildOptions, written: _Rows) -> None:
    """Counts and the summary, of those sizes that there are rows for."""
    sizes = tuple(size for size in asked if size <= 2 * written.rows) or (2 * written.rows,)
    parts = pl.scan_parquet(job.folder / TABLE, glob=False).select("role", "source").collect()
    by_size = {str(size): _counts(parts.head(size // 2)) for size in sizes}
    about = {**known, "sizes": sizes, "options": options.changed(), **written._asdict()}
    job.json(SUMMARY, {**about, "counts": {"by_size": by_size}})
    job.read(*_inputs(written.inputs, options.index))
    job.skipped = dict(written.skipped)
    job.log("built", kind=known["kind"], rows=written.rows)


def _inputs(described: Mapping[str, Any], index: str | None) -> Iterator[Input]:
    """What was read, as a manifest has it; an index that was made on the way has no place."""
    for role, found in described.items():
        if role == "first_stage":
            yield Input(Path(index or role).name, index or "", "index", None, found["index"])
            continue
        for one in found if isinstance(found, list) else [found]:
            source = str(one.get("source") or one.get("folder") or "")
            known = str(one.get("sha256") or one.get("fingerprint") or "").removeprefix("sha256:").partition(";")[0]
            yield Input(str(one.get("name") or Path(source).name), source, role, one.get("read"), known or None)


def _counts(rows: pl.DataFrame) -> dict[str, int]:
    """Rows by role and source, as `role: source`."""
    counts = Counter(f"{role}: {source}" for role, source in rows.iter_rows())
    return dict(sorted(counts.items(), key=lambda item: (item[0].startswith("none:"), item[0])))
