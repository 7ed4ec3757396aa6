"""The passages of a collection by the keys of their texts: eight million of them in half a gigabyte."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from truerank.errors import InputError
from truerank.sources.documents import DocumentSource
from truerank.text.mojibake import repair
from truerank.work.artifacts import read_table, written_by
from truerank.work.progress import Progress

#: Keys of n texts as numbers, shape (n, 2).
Keys = NDArray[np.uint64]

_SIZE: Final = 16


def canonical(text: str) -> str:
    """The form in which texts are compared: encoding repaired, blanks of any kind and number as one, none at the ends.

    A table of tab-separated lines cannot hold tabs and line ends, so that a text loses them on its way into a
    collection.
    """
    return " ".join(repair(text).split())


def key_of(text: str) -> bytes:
    """The key of a text, 16 bytes.

    Two of ten million different texts share one with a probability below 1e-24.
    """
    return blake2b(canonical(text).encode("utf-8", "surrogatepass"), digest_size=_SIZE).digest()


def keys_of(texts: Iterable[str]) -> Keys:
    return np.frombuffer(b"".join(map(key_of, texts)), ">u8").reshape(-1, 2).astype(np.uint64)


def hex_keys(keys: Keys) -> list[str]:
    """Keys as 32 hexadecimal digits each."""
    data = keys.astype(">u8").tobytes().hex()
    return [data[start : start + 2 * _SIZE] for start in range(0, len(data), 2 * _SIZE)]


def sorted_keys(keys: Keys) -> NDArray[np.int64]:
    """The order in which keys ascend; equal ones stay in their order."""
    return np.lexsort((keys[:, 1], keys[:, 0])).astype(np.int64)


def lookup(ordered: Keys, wanted: Keys) -> NDArray[np.int64]:
    """For each wanted key the first row of ascending keys that has it, -1 where none does."""
    if not len(ordered):
        return np.full(len(wanted), -1, np.int64)
    high, low = ordered[:, 0], ordered[:, 1]
    place = np.searchsorted(high, wanted[:, 0]).astype(np.int64)
    end = np.searchsorted(high, wanted[:, 0], side="right")
    # Several keys with the same first half stand there by their second one; hardly ever more than one.
    crowded = np.flatnonzero(end - place > 1)
    for row in crowded.tolist():
        place[row] += np.searchsorted(low[place[row] : end[row]], wanted[row, 1])
    inside = np.minimum(place, len(ordered) - 1)
    found = (place < end) & (low[inside] == wanted[:, 1])
    return np.where(found, inside, -1)


_BLOCK = 1 << 13
#: `mapping.parquet`: a text's key in two halves, and the passage's id.
MAPPING_SCHEMA: Final[dict[str, Any]] = {"key_high": pl.UInt64, "key_low": pl.UInt64, "doc_id": pl.String}


@dataclass(frozen=True, eq=False)
class PassageTable:
    """The distinct texts of a collection.

    Attributes:
        keys: ascending, shape (n, 2).
        ids: the id of the first passage with that text, n of them.
        repeated: which texts several passages have, shape (n,).
        passages: how many there are in all.
        duplicates: columns `text_no` and `doc_id`, all passages with a text that others have, in groups.
    """

    keys: Keys
    ids: pl.Series
    repeated: NDArray[np.bool_]
    passages: int
    duplicates: pl.DataFrame

    def find(self, keys: Keys) -> NDArray[np.int64]:
        return lookup(self.keys, keys)

    def groups(self) -> Iterator[list[str]]:
        for _, group in self.duplicates.group_by("text_no", maintain_order=True):
            yield group["doc_id"].to_list()

    @property
    def texts_repeated(self) -> int:
        return int(self.repeated.sum())

    def json(self) -> dict[str, Any]:
        return {
            "passages": self.passages,
            "distinct": len(self.ids),
            "texts_repeated": self.texts_repeated,
            "passages_repeated": len(self.duplicates),
        }


def passage_table(documents: DocumentSource, *, unique: bool, progress: Progress) -> PassageTable:
    """Reads a collection and keeps its passages' ids by their texts' keys."""
    progress.start("passages of the collection")
    parts: list[Keys] = []
    names: list[pl.Series] = []
    for block in documents.batches(_BLOCK):
        parts.append(keys_of(one.text for one in block))
        names.append(pl.Series([one.doc_id for one in block], dtype=pl.String))
        progress.advance(len(block))
    keys, ids = np.concatenate(parts), pl.concat(names, rechunk=True)
    parts.clear()
    names.clear()
    order = sorted_keys(keys)
    keys, ids = keys[order], ids.gather(order)
    same = (keys[1:] == keys[:-1]).all(axis=1)
    if unique and same.any():
        row = int(np.flatnonzero(same)[0])
        raise InputError(
            f"the passages '{ids[row]}' and '{ids[row + 1]}' have the same text ({int(same.sum()):,} more do)",
            "leave such texts unmapped with `duplicates` leave, or take the first with `duplicates` first",
            where=documents.spec.location,
        )
    begins = np.concatenate(([True], ~same))
    crowd = np.concatenate((same, [False])) | np.concatenate(([False], same))
    duplicates = pl.DataFrame(
        {"text_no": np.cumsum(begins)[crowd], "doc_id": ids.filter(pl.Series(crowd)), "at": order[crowd]}
    )
    # Groups stand in the order of the collection, not of the keys.
    duplicates = duplicates.sort(pl.col("at").min().over("text_no"), "at").drop("at")
    repeated = np.concatenate((same, [False]))[begins]
    return PassageTable(keys[begins], ids.filter(pl.Series(begins)), repeated, len(ids), duplicates)


class PassageIds:
    """Ids by key, in arrays.

    Args:
        frame: columns as in `MAPPING_SCHEMA`, no key twice.
    """

    def __init__(self, frame: pl.DataFrame) -> None:
        keys = np.column_stack([frame["key_high"].to_numpy(), frame["key_low"].to_numpy()])
        order = sorted_keys(keys)
        self._keys = keys[order]
        self._ids = frame["doc_id"].gather(order)

    def __len__(self) -> int:
        return len(self._ids)

    def ids(self, keys: Keys) -> list[str | None]:
        rows = lookup(self._keys, keys)
        found = rows >= 0
        ids: list[str | None] = [None] * len(rows)
        for place, doc_id in zip(np.flatnonzero(found).tolist(), self._ids.gather(rows[found]).to_list(), strict=True):
            ids[place] = doc_id
        return ids


def mapping_file(folder: str | Path) -> Path:
    """The file of a folder that `survivorship map` wrote, or the file itself."""
    return Path(folder) / "mapping.parquet" if Path(folder).is_dir() else Path(folder)


def open_passage_ids(folder: str | Path) -> PassageIds:
    path = mapping_file(folder)
    with written_by("survivorship map", path.parent, path.name):
        return PassageIds(read_table(path, MAPPING_SCHEMA))
