"""Runs in TREC format, with the line of every fault, and what they say of themselves in a header of ir_metadata."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import polars as pl

from truerank.errors import InputError
from truerank.loading import load_yaml, whole_number
from truerank.records import RunRow
from truerank.sources import compressed, formats, grammar, lines
from truerank.sources.lines import metadata_header
from truerank.sources.pair_tables import parquet_pairs, refuse_repeat
from truerank.sources.sharing import is_shared, shared_frames
from truerank.text.printable import counted

#: The columns of a run as a frame.
RUN_SCHEMA: Final[dict[str, Any]] = {
    "topic_id": pl.String,
    "doc_id": pl.String,
    "rank": pl.Int64,
    "score": pl.Float64,
    "tag": pl.String,
}
_REMEDY: Final = "write topic, Q0, document, rank, score, tag"
_LAYOUT: Final = ("topic_id", None, "doc_id", "rank", "score", "tag")
_LARGEST: Final = 2**63 - 1


def read_run(path: str | Path) -> Iterator[RunRow]:
    """Reads a run: lines `topic Q0 document rank score tag`, or `topic document rank`, compressed or not, or Parquet.

    Lines that begin with "#" and are no result are comments. Without scores, the score of rank r is 1 / r. Parquet has
    the columns of `RUN_SCHEMA`, by these names or those of other programs; without `rank`, scores give it.

    Args:
        path: the file.

    Yields:
        The rows in the order of the file; ranks are as they are there.

    Raises:
        InputError: not readable; a line with another number of columns, a rank that is not an integer or a score that
            is not a finite number; a document that occurs twice for a topic; no row.
    """
    return (RunRow(*row) for row in read_run_frame(path).iter_rows())


def read_run_frame(path: str | Path, columns: Collection[str] = tuple(RUN_SCHEMA)) -> pl.DataFrame:
    """Reads a run as columns; the format is that of `read_run`.

    Args:
        path: the file.
        columns: those of `RUN_SCHEMA` that are wanted; topics and documents are always read.

    Returns:
        The rows in the order of the file, columns as in `RUN_SCHEMA`.

    Raises:
        InputError: as in `read_run`; a document that occurs twice for a topic anywhere in the file.
    """
    frame = whole_run(path, columns)
    if pair := lines.repeated_pair(frame["topic_id"], frame["doc_id"]):
        refuse_repeat(_file(path)[0], frame, pair, header_of)
    return frame


def whole_run(path: str | Path, columns: Collection[str] = tuple(RUN_SCHEMA)) -> pl.DataFrame:
    """The same; documents that occur twice are not looked for."""
    wanted = {name: kind for name, kind in RUN_SCHEMA.items() if name in ("topic_id", "doc_id", *columns)}
    parts: dict[str, list[pl.Series]] = {name: [pl.Series(name, dtype=kind)] for name, kind in wanted.items()}
    for part in run_frames(path, tuple(wanted)):
        for name, some in parts.items():
            some.append(part[name])
    del part
    # One column after the other, so that no more than one is held twice; those of a small file are good as they are.
    return pl.DataFrame([pl.concat(some := parts.pop(name), rechunk=len(some) > 2) for name in wanted])


def first_places(frame: pl.DataFrame, name: str) -> tuple[pl.DataFrame, str]:
    """A run with each document once for a topic, where its score, or else its rank, puts it first; and a remark."""
    if (pair := lines.repeated_pair(frame["topic_id"], frame["doc_id"])) is None:
        return frame, ""
    order = [one for one in ("score", "rank", "row") if one in (*frame.columns, "row")]
    placed = frame.with_row_index("row").sort(order, descending=[one == "score" for one in order])
    kept = placed.unique(["topic_id", "doc_id"], keep="first", maintain_order=True).sort("row").drop("row")
    topic, doc = frame.select("topic_id", "doc_id").row(pair.second)
    many = counted(len(frame) - len(kept), "result")
    return kept, f"{name}: {many} repeated, such as {doc} for topic {topic}: the first place of each counts."


def run_frames(path: str | Path, columns: Collection[str] = tuple(RUN_SCHEMA)) -> Iterator[pl.DataFrame]:
    """Reads a run as columns, some 16 MiB of text at a time; documents that occur twice are not looked for.

    Args:
        path: the file.
        columns: those of `RUN_SCHEMA` that are wanted.

    Yields:
        Frames of these columns, in the order of the file.

    Raises:
        InputError: as in `read_run`.
    """
    checked, form = _file(path)
    schema = {name: kind for name, kind in RUN_SCHEMA.items() if name in columns}
    text = form != "parquet"
    # Ranks and scores of a text are read in any case: they may be no numbers. What is kept for other readers is all.
    kinds = RUN_SCHEMA.items()
    read = {name: kind for name, kind in kinds if name in schema or (text and kind != pl.String) or is_shared()}
    layout = tuple(name if name in read else None for name in _LAYOUT)
    as_text = partial(lines.frames, checked, read, [layout], _values_of(read), header=header_of)
    blocks = as_text if text else partial(parquet_pairs, checked, read)
    found = False
    for frame in shared_frames(checked, "run", blocks):
        found = True
        yield frame.select(list(schema))
    if not found:
        raise InputError("no rows in this run", f"{_REMEDY}, one a line", where=checked)


def _file(path: str | Path) -> tuple[Path, str]:
    """The file of a run, and its format."""
    spec = grammar.parse(str(path))
    if spec.scheme != "file":
        raise InputError("runs are read from files", "give a path", where=spec.spec)
    return spec.path, formats.detect(compressed.checked_file(spec.path))


def header_of(first: str) -> lines.Header | None:
    """How the lines are read below a first one that names their columns."""
    cells = first.split()
    numbers = {3: cells[2:], 6: cells[3:5]}.get(len(cells), [])
    named = numbers and not re.search(r"^#|\d", cells[0]) and all(one.replace("_", "").isalpha() for one in numbers)
    return lines.Header(None, (), plain=True) if named else None


def _values_of(columns: Collection[str]) -> lines.LineReader:
    positions = [RunRow._fields.index(name) for name in columns]

    def values(cells: list[str], path: Path, line: int) -> tuple[Any, ...]:
        row = _row(cells, path, line)
        return tuple(row[position] for position in positions)

    return values


def _row(cells: list[str], path: Path, line: int) -> RunRow:
    if len(cells) == 3 and (place := whole_number(cells[2])):
        return RunRow(cells[0], cells[1], place, 1 / place, "")
    if len(cells) != 6:
        raise InputError(f"{counted(len(cells), 'column')} instead of 6", _REMEDY, where=path, line=line)
    topic, _, document, rank, score, tag = cells
    try:
        row = RunRow(topic, document, int(rank), float(score), tag)
    except ValueError as error:
        fault = f"rank '{rank[:40]}' or score '{score[:40]}' is not a number"
        raise InputError(fault, _REMEDY, where=path, line=line) from error
    if not -_LARGEST - 1 <= row.rank <= _LARGEST:
        raise InputError(f"the rank '{rank[:40]}' is too large", _REMEDY, where=path, line=line)
    if not math.isfinite(row.score):
        raise InputError(f"the score '{score}' is not finite", "write a finite number", where=path, line=line)
    return row


#: A header that is longer is not looked for.
_HEAD: Final = 1 << 19
_COMMENT: Final = re.compile(r"^#[ \t]?", re.MULTILINE)
_REMEDY_run_metadata: Final = "write it as www.ir-metadata.org says"


class TrainingData(NamedTuple):
    """One entry of `data: training data:`; `irds` is its id in ir_datasets, or empty."""

    name: str
    source: str
    irds: str


def stated_training(path: str | Path) -> tuple[TrainingData, ...] | None:
    """The training data that the metadata header of a run names; None where it has no header."""
    path = grammar.parse(str(path)).path
    data = compressed.head(path, _HEAD).removeprefix(b"\xef\xbb\xbf")
    length = metadata_header(data)
    if not length:
        return None
    # The two marks stand around the YAML; a blank line keeps its lines those of the file.
    lines = _COMMENT.sub("", data[:length].decode("utf-8", "replace")).splitlines()
    content = load_yaml("\n".join(["", *lines[1:-1]]), path, _constructed, remedy=_REMEDY_run_metadata)
    about = content.get("data") if isinstance(content, Mapping) else None
    return tuple(_entries(about.get("training data"))) if isinstance(about, Mapping) else ()


def trained_on(spec: str) -> tuple[str, ...]:
    """The sources that stand for a run as training data: what its header names by ids of ir_datasets."""
    parsed = grammar.parse(spec)
    if parsed.scheme != "file" or not parsed.path.is_file():
        return (spec,)
    training = stated_training(parsed.path)
    if training is None:
        return (spec,)
    if not training:
        raise InputError("the header of this run names no training data", "name the training data", where=spec)
    unknown = [one.name or one.source for one in training if not one.irds]
    if unknown:
        fault = f"the training data '{unknown[0]}' of this run have no id of ir_datasets"
        raise InputError(fault, "name their source yourself", where=spec)
    return tuple(f"irds:{one.irds}" for one in training)


def _constructed(loader: Any, node: Any) -> Any:
    return loader.construct_document(node)


def _entries(value: Any) -> Iterator[TrainingData]:
    """A list of mappings, as the schema wants it; also one mapping, and bare names."""
    for one in value if isinstance(value, list | tuple) else [value]:
        if isinstance(one, Mapping):
            yield TrainingData(str(one.get("name") or ""), str(one.get("source") or ""), _irds(one.get("ir_datasets")))
        elif one is not None:
            yield TrainingData(str(one), "", "")


def _irds(value: Any) -> str:
    """The id in an id, or in a link to its page: `https://ir-datasets.com/beir.html#beir/scifact`."""
    text = str(value or "").strip()
    if "://" not in text:
        return text.removeprefix("irds:")
    page, _, part = text.partition("#")
    return part or page.rstrip("/").rpartition("/")[2].removesuffix(".html")
