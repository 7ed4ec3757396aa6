"""Runs as they are in their files: lines with six columns, why others have not, and rows topic by topic.

Memory is bounded, also where a file mixes its topics.
"""

from __future__ import annotations

import itertools
import re
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import polars as pl

from truerank.errors import InputError
from truerank.sources import compressed, formats, grammar
from truerank.sources.lines import LineBlock, block_of, byte_blocks
from truerank.text.printable import counted

#: The columns of a run, as texts.
CELLS: Final = ("topic_id", "q0", "doc_id", "rank", "score", "tag")
REMEDY: Final = "write topic, Q0, document, rank, score, tag"
_SCHEMA: Final = {"line": pl.Int64, **dict.fromkeys(CELLS, pl.String)}
#: Bytes that `str.split` takes for blanks besides space and tab, and those that no text holds.
_CONTROLS: Final = bytes(code for code in range(32) if code not in b"\t\n") + b"\x7f"
_CONTROL: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_LONGEST_SHOWN: Final = 80


class Malformed(NamedTuple):
    """What is wrong with one line: "columns", "control" or "encoding"; only the first kind makes it no result."""

    line: int
    kind: str
    fault: str
    remedy: str


class LineScan(NamedTuple):
    """Consecutive lines of a run: those with six columns as texts (`line` and `CELLS`), and what is wrong with any."""

    frame: pl.DataFrame
    malformed: list[Malformed]


def run_path(source: str | Path) -> Path:
    spec = grammar.parse(str(source))
    if spec.scheme != "file":
        raise InputError("runs are read from files", "give a path", where=spec.spec)
    return compressed.checked_file(spec.path)


def scan(path: Path) -> Iterator[LineScan]:
    """The lines of a run, block by block, without stopping at a fault.

    Blocks whose lines all have single blanks (or tabs) between six columns are parsed as columns, the others line by
    line, split at any blank.
    """
    formats.detect(path)
    for first, data in byte_blocks(path):
        data = data.replace(b"\r\n", b"\n").removesuffix(b"\r")
        frame = _regular(data)
        if frame is None:
            yield _by_line(block_of(first, data, path))
        else:
            lines = pl.int_range(first, first + len(frame), dtype=pl.Int64, eager=True).alias("line")
            yield LineScan(frame.insert_column(0, lines), [])


def strict_frames(path: Path) -> Iterator[pl.DataFrame]:
    """The same for those who need a sound run: `line`, `topic_id`, `doc_id`, `rank` and `value` as numbers, `score`,
    `tag`.
    """
    for block in scan(path):
        numbers = block.frame.select(
            "line",
            "topic_id",
            "doc_id",
            pl.col("rank").cast(pl.Int64, strict=False),
            pl.col("score").cast(pl.Float64, strict=False).alias("value"),
            "score",
            "tag",
        )
        faults = [found for found in block.malformed if found.kind != "encoding"]
        wrong = numbers["rank"].is_null() | numbers["value"].is_finite().not_().fill_null(True)
        for line, rank, score in block.frame.filter(wrong).head(1).select("line", "rank", "score").iter_rows():
            fault = f"rank '{shown(rank)}' or score '{shown(score)}' is not a finite number"
            faults.append(Malformed(line, "number", fault, REMEDY))
        if faults:
            line, _, fault, remedy = min(faults)
            raise InputError(fault, remedy, where=path, line=line)
        yield numbers


def shown(text: str) -> str:
    """A text from a file as a message can show it: control characters as blanks, and not too long."""
    text = "".join(character if character.isprintable() else " " for character in text[: _LONGEST_SHOWN + 1])
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"


def _regular(data: bytes) -> pl.DataFrame | None:
    """Lines as six columns; None where one is blank, irregular, or holds bytes that need a closer look."""
    if not data.isascii() or len(data.translate(None, _CONTROLS)) != len(data):
        return None
    separator = " "
    if b"\t" in data:
        separator = "\t" if b" " not in data else " "
        data = data if separator == "\t" else data.replace(b"\t", b" ")
    if not data:
        return None
    schema = {name: _SCHEMA[name] for name in CELLS}
    try:
        frame = pl.read_csv(data, has_header=False, separator=separator, quote_char=None, schema=schema)
    except pl.exceptions.PolarsError:
        return None
    # A line that is too short, blank, or has two blanks in a row holds a null.
    return None if any(frame.null_count().row(0)) or len(frame) != data.count(b"\n") + (data[-1:] != b"\n") else frame


def _by_line(block: LineBlock) -> LineScan:
    rows: list[tuple[int | str, ...]] = []
    malformed: list[Malformed] = []
    for offset, text in enumerate(block.lines):
        number = block.first + offset
        if offset in block.repaired:
            malformed.append(Malformed(number, "encoding", "bytes that are not UTF-8", "convert the file to UTF-8"))
        cells = text.split()
        if not cells:
            continue
        control = _CONTROL.search(text)
        if control:
            fault = f"a control character (code {ord(control[0])}) in the line"
            malformed.append(Malformed(number, "control", fault, "write plain text"))
        if len(cells) == len(CELLS):
            rows.append((number, *cells))
            continue
        bare = "\r" in text
        remedy = "end lines with a line feed: these end with a bare carriage return" if bare else REMEDY
        malformed.append(Malformed(number, "columns", f"{counted(len(cells), 'column')} instead of 6", remedy))
    return LineScan(pl.DataFrame(rows, schema=_SCHEMA, orient="row"), malformed)


#: Rows that are held in memory at once.
_ROWS: Final = 1 << 20


class ScatteredError(Exception):
    """The rows of a topic do not stand together in the file."""


def grouped_topics(frames: Iterable[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """Cuts frames anew so that no topic is cut; for files in which the rows of each topic stand together.

    Memory grows with the largest topic and with the number of topics.
    """
    seen: set[str] = set()
    held: list[pl.DataFrame] = []
    current: str | None = None
    for frame in frames:
        if not len(frame):
            continue
        runs = frame["topic_id"].rle().struct.unnest()
        for topic in runs["value"].to_list():
            if topic == current:
                continue
            if topic in seen:
                raise ScatteredError(topic)
            seen.add(topic)
            current = topic
        rest = int(runs["len"][-1])
        if len(runs) == 1 and held and held[-1]["topic_id"][0] == current:
            held.append(frame)
            continue
        whole = [*held, frame.head(len(frame) - rest)]
        held = [frame.tail(rest)]
        if any(map(len, whole)):
            yield pl.concat(whole)
    if held:
        yield pl.concat(held)


def scattered_topics(frames: Iterable[pl.DataFrame], *, rows: int = _ROWS) -> Iterator[pl.DataFrame]:
    """Brings the rows of each topic together, over temporary files where there are more rows than memory should hold.

    The topics are numbered as they appear; consecutive ones share a bucket of about `rows` rows, and the buckets are
    sorted one after the other. Memory grows with `rows`, the largest topic and the number of topics.
    """
    with tempfile.TemporaryDirectory(prefix="truerank-") as folder:
        counts: dict[str, int] = {}
        chunks = _spilled(frames, counts, rows, Path(folder))
        if not chunks:
            return
        buckets = _buckets(counts, rows)
        last = int(buckets["bucket"][-1])
        if last == 0:
            yield _together(pl.concat([_loaded(chunk) for chunk in chunks]))
            return
        for number, chunk in enumerate(chunks):
            parts = _loaded(chunk).join(buckets, on="topic_id", how="left", maintain_order="left")
            for (bucket,), part in parts.partition_by("bucket", as_dict=True, include_key=False).items():
                part.write_ipc(Path(folder) / f"bucket-{bucket}-{number:06d}.arrow", compression="lz4")
            chunk.unlink()
        for bucket in range(last + 1):
            files = sorted(Path(folder).glob(f"bucket-{bucket}-*.arrow"))
            yield _together(pl.concat([_loaded(file) for file in files]))
            for file in files:
                file.unlink()


def _spilled(frames: Iterable[pl.DataFrame], counts: dict[str, int], rows: int, folder: Path) -> list[Path]:
    """Writes the frames to files of about `rows` rows and counts the rows of each topic, in order of appearance."""
    chunks: list[Path] = []
    held: list[pl.DataFrame] = []
    for frame in itertools.chain(frames, [None]):
        if frame is not None:
            runs = frame["topic_id"].rle().struct.unnest()
            for topic, length in runs.select("value", "len").iter_rows():
                counts[topic] = counts.get(topic, 0) + length
            held.append(frame)
        if held and (frame is None or sum(map(len, held)) >= rows):
            path = folder / f"chunk-{len(chunks):06d}.arrow"
            pl.concat(held).write_ipc(path, compression="lz4")
            chunks.append(path)
            held = []
    return chunks


def _buckets(counts: dict[str, int], rows: int) -> pl.DataFrame:
    """The bucket of each topic: consecutive topics with about `rows` rows together."""
    found: list[int] = []
    bucket = filled = 0
    for count in counts.values():
        if filled and filled + count > rows:
            bucket, filled = bucket + 1, 0
        filled += count
        found.append(bucket)
    return pl.DataFrame({"topic_id": list(counts), "bucket": found}, schema={"topic_id": pl.String, "bucket": pl.Int64})


def _loaded(path: Path) -> pl.DataFrame:
    # As a stream, because Polars would take brackets in a path for a pattern.
    with path.open("rb") as stream:
        return pl.read_ipc(stream)


def _together(frame: pl.DataFrame) -> pl.DataFrame:
    first = pl.col("line").min().over("topic_id")
    return frame.with_columns(first.alias(" first")).sort(" first", "line").drop(" first")
