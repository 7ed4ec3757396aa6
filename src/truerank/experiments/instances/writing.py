"""Writing a set: rows block by block, then as one table; and the formats that other programs read."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import polars as pl

from truerank.errors import InputError
from truerank.experiments.instances.built import TABLE, Built, open_built
from truerank.experiments.instances.drafts import SCHEMA
from truerank.experiments.instances.options import FORMATS
from truerank.text.normalising import normalise
from truerank.work.artifacts import Artifacts, atomic_path
from truerank.work.blocks import BlockStore

__all__ = ["ROWS", "export_instances", "export_name", "write_rows"]

#: Rows that are held in memory at once, and rows of a group in the table.
ROWS: Final = 1000
_ENDINGS: Final = {
    "jsonl": "instances-{size}.jsonl",
    "parquet": "instances-{size}.parquet",
    "sentence-transformers": "sentence-transformers-{size}.jsonl",
    "triples": "triples-{size}.tsv",
}


def write_rows(artifacts: Artifacts, blocks: Iterator[pl.DataFrame], folder: Path, extra: dict[str, Any]) -> int:
    """Writes `instances.parquet`; only a block of rows is in memory at a time.

    Args:
        artifacts: of the set.
        blocks: frames with the columns of `SCHEMA` but `number`, and those of `extra`.
        folder: where the blocks lie meanwhile.
        extra: columns that only this kind of set has.

    Returns:
        The number of rows.
    """
    shutil.rmtree(folder, ignore_errors=True)
    store, schema = BlockStore(folder), {**SCHEMA, **extra}
    written = number = 0
    for block in blocks:
        numbers = pl.Series("number", range(written, written + len(block)), dtype=pl.Int64)
        store.save(number, block.with_columns(numbers).select(list(schema)))
        written, number = written + len(block), number + 1
    if not number:
        store.remove()
        return 0
    files = [folder / f"{place:08d}.arrow" for place in range(number)]
    artifacts.lazy_parquet(TABLE, pl.scan_ipc(files, glob=False), ROWS)
    store.remove()
    return written


def export_name(form: str, size: int) -> str:
    """The name of the file that holds a size in a format."""
    return _ENDINGS[form].format(size=size)


def export_instances(built: Built | str | Path, form: str, out: str | Path, size: int | None = None) -> Path:
    """Writes a set, or the beginning of one, as other programs read it.

    `jsonl` and `parquet` hold all columns; `sentence-transformers` is JSONL with anchor, positive, negative; `triples`
    is TSV of query, relevant, non-relevant text as MS MARCO has it, in which tabs and line ends of the texts become
    blanks.

    Args:
        built: the set or its folder.
        form: one of `FORMATS`.
        out: the file.
        size: in instances; None for the whole set.

    Raises:
        InputError: an unknown format, or a size that the set does not have.
    """
    set_ = built if isinstance(built, Built) else open_built(built)
    if form not in FORMATS:
        raise InputError(f"no format called '{form}'", f"one of {', '.join(FORMATS)}", where="--format")
    rows = set_.rows if size is None else size // 2
    if size is not None and (size % 2 or not 0 < rows <= set_.rows):
        fault = f"there are {2 * set_.rows:,} instances, not {size:,}"
        raise InputError(fault, "give an even number up to that", where=set_.folder)
    target = Path(out)
    frame = set_.lazy().head(rows)
    with atomic_path(target) as temporary:
        if form == "parquet":
            frame.sink_parquet(temporary, compression="zstd", statistics=True, row_group_size=ROWS, maintain_order=True)
        else:
            with temporary.open("w", encoding="utf-8", newline="\n") as stream:
                for line in _lines(frame, form):
                    stream.write(line)
    return target


def _lines(frame: pl.LazyFrame, form: str) -> Iterator[str]:
    texts = ["query", "relevant", "nonrelevant"]
    wanted = frame if form == "jsonl" else frame.select(texts)
    for block in wanted.collect_batches(chunk_size=ROWS, maintain_order=True):
        for row in block.iter_rows(named=True):
            if form == "triples":
                yield "\t".join(normalise(row[name]) for name in texts) + "\n"
            elif form == "sentence-transformers":
                names = zip(("anchor", "positive", "negative"), texts, strict=True)
                yield json.dumps({name: row[text] for name, text in names}, ensure_ascii=False) + "\n"
            else:
                yield json.dumps(row, ensure_ascii=False) + "\n"
