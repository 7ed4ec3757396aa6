"""Training sets that differ only in their fault (leakage paper, section 4), or made of the table of an audit."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Final

import polars as pl

from truerank.core.plain import picked
from truerank.errors import InputError
from truerank.options import Flag, Seed, command
from truerank.sources.inputs import inputs_of
from truerank.work.artifacts import digest
from truerank.work.progress import Progress, Quiet
from truerank.work.runs import Run
from truerank.work.runs import run as started
from truerank_lab.instances.built import COMMAND, ROWS, SUMMARY, TABLE, Built, open_built, write_rows
from truerank_lab.instances.draws import SCHEMA
from truerank_lab.instances.filled import FilledInstances, open_instances
from truerank_lab.instances.options import BuildOptions, Kind
from truerank_lab.instances.rows import assemble
from truerank_lab.instances.sources import Opened
from truerank_lab.instances.training_queries import CANDIDATES

#: The column that sets by depth have besides.
_DEPTH: Final[dict[str, Any]] = {"depth": pl.Int64}
_DEEPER: Final = "rows of another depth"
#: Options that name what is read.
_SOURCES: Final = (
    "queries", "train_qrels", "docs", "queries_from_documents", "index", "labels", "topics", "qrels", "test_docs",
    "rows",
)  # fmt: skip


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
            rows of the test topics with judged documents. by-depth: rows of a table that `survivorship triples` wrote.
        size: in instances, twice the rows; repeat for several sizes. By depth there may be none: then all rows.
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
    inputs = inputs_of(
        **{name: getattr(options, name) for name in _SOURCES},
        audit=[Path(one) / CANDIDATES for one in options.audit],
        fill=None if options.fill is None else Path(options.fill) / TABLE,
    )
    with started(COMMAND, inputs, {"kind": kind, "size": sizes, **options.json(), "seed": seed}, out) as job:
        work = job.unfinished(digest({"kind": kind, "seed": seed, **options.json()}), page="")
        if kind == "by-depth":
            written = _from_table(job, work, sizes[-1] // 2 if sizes else None, options)
        else:
            opened = Opened(options, seed, work, progress or Quiet())
            made = assemble(kind, sizes[-1] // 2, opened)
            opened.progress.start("writing")
            _forget(job)
            rows = write_rows(job, made.blocks(), work / "rows", {})
            written = {"rows": rows, **picked(made, "queries, audited, leaks, skipped, notes")}
        _finish({"kind": kind, "seed": seed}, sizes, job, options, written)
    return open_built(job.folder)


def _from_table(job: Run, work: Path, wanted: int | None, options: BuildOptions) -> dict[str, Any]:
    """Writes the rows of a table that belong to the set, in their order; what the summary says of them."""
    skipped = Counter[str]()
    source = open_instances(options.rows or "", topics=options.topics, docs=options.docs)
    _forget(job)
    rows = write_rows(job, _table_blocks(source, wanted, options, skipped), work / "rows", _DEPTH)
    if not rows or (wanted is not None and rows < wanted and not options.allow_fewer):
        (job.folder / TABLE).unlink(missing_ok=True)
        shutil.rmtree(work)
        fault = f"{rows:,} rows fit, not {wanted or 1:,}; {skipped[_DEEPER]:,} have another depth"
        raise InputError(fault, "ask for a smaller size, or give `allow_fewer`", where=options.rows)
    notes = [] if wanted is None or rows >= wanted else [f"There are only {rows:,} rows."]
    return {"rows": rows, "audited": False, "skipped": dict(skipped), "notes": notes}


def _table_blocks(
    source: FilledInstances, wanted: int | None, options: BuildOptions, skipped: Counter[str]
) -> Iterator[pl.DataFrame]:
    """The rows as frames with the columns of `SCHEMA` but `number`, and the depth; counts what is not kept."""
    path, limit = Path(options.rows or ""), options.annotation_depth or 0
    try:
        if "depth" not in (names := tuple(pl.read_parquet_schema(path))):
            fault = f"no column 'depth'; there are {', '.join(names)}"
            raise InputError(fault, "give a table that an audit wrote", where=path)
        depths = pl.read_parquet(path, columns=["depth"], glob=False)["depth"].cast(pl.Int64)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise InputError("no table that can be read", "give a Parquet table that an audit wrote", where=path) from error
    schema = {name: kind for name, kind in {**SCHEMA, **_DEPTH}.items() if name != "number"}

    def kept() -> Iterator[dict[str, Any]]:
        for line, (depth, instance) in enumerate(zip(depths, source, strict=True), start=1):
            if depth is None or depth > limit:
                skipped[_DEEPER] += 1
            elif not all(text.strip() for text in (instance.query, instance.relevant, instance.nonrelevant)):
                skipped["rows without the text of a query or document"] += 1
            else:
                origin = {"source": source.name, "origin": f"line {line} of {source.name}"}
                yield {**instance._asdict(), "role": "by-depth", "topic_id": None, **origin, "depth": depth}

    rows = islice(kept(), wanted)
    while block := list(islice(rows, ROWS)):
        yield pl.DataFrame(block, schema=schema)


def _forget(job: Run) -> None:
    """Without its manifest an earlier set of this folder is none: a killed build leaves no mixture of two."""
    job.claim(job.folder / SUMMARY)
    for name in ("manifest.json", SUMMARY):
        (job.folder / name).unlink(missing_ok=True)


def _finish(
    known: Mapping[str, Any], asked: Sequence[int], job: Run, options: BuildOptions, written: Mapping[str, Any]
) -> None:
    """Counts and the summary, of those sizes that there are rows for."""
    sizes = tuple(size for size in asked if size <= 2 * written["rows"]) or (2 * written["rows"],)
    parts = pl.scan_parquet(job.folder / TABLE, glob=False).select("role", "source").collect()
    by_size = {str(size): _counts(parts.head(size // 2)) for size in sizes}
    about = {**known, "sizes": sizes, "options": options.changed(), **written}
    job.json(SUMMARY, {**about, "counts": {"by_size": by_size}})
    job.skipped = dict(written["skipped"])
    job.log("built", kind=known["kind"], rows=written["rows"])


def _counts(rows: pl.DataFrame) -> dict[str, int]:
    """Rows by role and source, as `role: source`."""
    counts = Counter(f"{role}: {source}" for role, source in rows.iter_rows())
    return dict(sorted(counts.items(), key=lambda item: (item[0].startswith("none:"), item[0])))
