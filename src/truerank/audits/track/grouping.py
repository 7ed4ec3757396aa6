"""The rows of a run, topic by topic, in bounded memory, also where a file mixes its topics."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import polars as pl

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
