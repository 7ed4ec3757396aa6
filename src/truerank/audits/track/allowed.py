"""What a submitted run may hold: its topics, its candidates, the documents of the collection."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from truerank.audits.track.scanning import run_path, shown, strict_frames
from truerank.errors import InputError
from truerank.sources import formats, read_topics
from truerank.sources.lines import LineBlock, line_blocks
from truerank.sources.qrels import read_qrels_frame

#: Hashes of ids, 64 bits each. Two ids share one so rarely (below one in a million for ten million ids and as many
#: results) that a fault is not missed for it.
Keys: TypeAlias = NDArray[np.uint64]

_TOPIC_NAMES: Final = frozenset(("topic_id", "topic", "qid", "query_id", "query-id"))
_PAIRS: Final = pl.Schema({"topic_id": pl.String, "doc_id": pl.String})
_MIX: Final = np.uint64(0x9E37_79B9_7F4A_7C15)


class Allowed(NamedTuple):
    """What a run may hold; None where nothing is said.

    Attributes:
        topics: topics of the track, in order; results for others are a fault, and so is one without results.
        judged: topics that the qrels judge, in order.
        pairs: hashes of the pairs of topic and document that a rerank run may hold, sorted.
        documents: hashes of the ids of the collection, sorted.
    """

    topics: tuple[str, ...] | None = None
    judged: tuple[str, ...] | None = None
    pairs: Keys | None = None
    documents: Keys | None = None


def read_allowed(
    topics: str | None, qrels: str | None, candidates: str | Path | None, ids: str | Path | None
) -> Allowed:
    """Reads what runs may hold.

    Memory is 8 bytes for each candidate and each id of the collection.
    """
    return Allowed(
        None if topics is None else tuple(topic.topic_id for topic in read_topics(topics).topics),
        None if qrels is None else tuple(read_qrels_frame(qrels)["topic_id"].unique(maintain_order=True)),
        None if candidates is None else _sorted(_candidate_keys(candidates), run_path(candidates), "candidates"),
        None if ids is None else _sorted(_id_keys(run_path(ids)), run_path(ids), "ids"),
    )


def pair_keys(topics: pl.Series, documents: pl.Series) -> Keys:
    """A hash for each pair of topic and document."""
    with np.errstate(over="ignore"):
        keys: Keys = topics.hash().to_numpy() * _MIX ^ documents.hash().to_numpy()
    return keys


def document_keys(documents: pl.Series) -> Keys:
    """A hash for each document id."""
    keys: Keys = documents.hash().to_numpy()
    return keys


def among(keys: Keys, known: Keys) -> NDArray[np.bool_]:
    """Whether each key is one of the known ones, which are sorted."""
    # Looked up in order, which spares the processor's cache.
    order = np.argsort(keys)
    ordered = keys[order]
    places = np.minimum(np.searchsorted(known, ordered), len(known) - 1)
    found = np.empty(len(keys), dtype=bool)
    found[order] = known[places] == ordered
    return found


def _sorted(parts: Iterable[Keys], path: Path, what: str) -> Keys:
    found = list(parts)
    # Repeats are left in: sorting is many times faster than np.unique, and nothing counts them.
    keys: Keys = np.sort(np.concatenate(found)) if found else np.empty(0, np.uint64)
    if not len(keys):
        raise InputError(f"no {what} in it", "give a file that holds some", where=path)
    return keys


def _candidate_keys(source: str | Path) -> Iterator[Keys]:
    path = run_path(source)
    for frame in _candidate_frames(path):
        yield pair_keys(frame["topic_id"], frame["doc_id"])


def _candidate_frames(path: Path) -> Iterator[pl.DataFrame]:
    form = formats.detect(path)
    blocks = line_blocks(path)
    first = next(blocks)
    line = next((line for line in first.lines if line.strip()), "")
    if form in ("jsonl", "json"):
        yield from (_from_objects(block, path) for block in (first, *blocks))
    elif len(line.split("\t") if "\t" in line else line.split()) == 6:
        blocks.close()  # type: ignore[attr-defined]
        yield from (frame.select(list(_PAIRS)) for frame in strict_frames(path))
    else:
        if line.split("\t")[0].strip().lower() in _TOPIC_NAMES and line == first.lines[0]:
            first = first.without_first()
        yield from (_from_lines(block, path) for block in (first, *blocks))


def _from_lines(block: LineBlock, path: Path) -> pl.DataFrame:
    """The first two columns of each line, which tabs separate, or blanks where there is no tab."""
    lines = pl.DataFrame({"text": pl.Series(block.lines, dtype=pl.String)}).with_row_index("line", block.first)
    lines = lines.filter(pl.col("text").str.strip_chars() != "")
    pattern = r"^\s*([^\t]*[^\t\s])\s*\t\s*([^\t]*[^\t\s])|^\s*(\S+)\s+(\S+)\s*$"
    cells = lines.with_columns(
        pl.coalesce(pl.col("text").str.extract(pattern, 1), pl.col("text").str.extract(pattern, 3)).alias("topic_id"),
        pl.coalesce(pl.col("text").str.extract(pattern, 2), pl.col("text").str.extract(pattern, 4)).alias("doc_id"),
    )
    broken = cells.filter(pl.col("doc_id").is_null())
    if len(broken):
        raise InputError(
            f"no topic and document in '{shown(broken['text'][0])}'",
            "write topic TAB document, or give a run",
            where=path,
            line=broken["line"][0],
        )
    return cells.select(list(_PAIRS))


def _from_objects(block: LineBlock, path: Path) -> pl.DataFrame:
    text = "\n".join(line for line in block.lines if line.strip())
    try:
        frame = pl.read_ndjson(text.encode(), schema=dict(_PAIRS)) if text else pl.DataFrame(schema=_PAIRS)
    except pl.exceptions.PolarsError as error:
        raise InputError(
            f"no JSON objects ({str(error).partition(chr(10))[0]})",
            'write {"topic_id": "…", "doc_id": "…"}',
            where=path,
            line=block.first,
        ) from error
    if any(frame.null_count().row(0)):
        raise InputError(
            "a candidate without topic_id or doc_id",
            'write {"topic_id": "…", "doc_id": "…"}',
            where=path,
            line=block.first,
        )
    return frame


def _id_keys(path: Path) -> Iterator[Keys]:
    if formats.detect(path) in ("jsonl", "json", "parquet"):
        raise InputError("no list of ids", "write the ids one a line", where=path)
    for block in line_blocks(path):
        ids = pl.Series(block.lines, dtype=pl.String).str.extract(r"(\S+)").drop_nulls()
        yield document_keys(ids)
