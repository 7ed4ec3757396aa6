"""The ids of passages by the keys of their texts, as `survivorship map` wrote them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl

from truerank.audits.survivorship.keys import Keys, lookup, sorted_keys
from truerank.errors import InputError

__all__ = ["MAPPING_SCHEMA", "PassageIds", "open_passage_ids"]

#: `mapping.parquet`: a text's key in two halves, and the passage's id.
MAPPING_SCHEMA: Final[dict[str, Any]] = {"key_high": pl.UInt64, "key_low": pl.UInt64, "doc_id": pl.String}


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
        """The ids of keys, None where one has none."""
        rows = lookup(self._keys, keys)
        found = rows >= 0
        ids: list[str | None] = [None] * len(rows)
        for place, doc_id in zip(np.flatnonzero(found).tolist(), self._ids.gather(rows[found]).to_list(), strict=True):
            ids[place] = doc_id
        return ids


def open_passage_ids(folder: str | Path) -> PassageIds:
    """Opens what `survivorship map --out` wrote.

    Raises:
        InputError: no such folder, or no mapping in it.
    """
    path = Path(folder) / "mapping.parquet" if Path(folder).is_dir() else Path(folder)
    if not path.is_file():
        raise InputError("no mapping.parquet here", "give the folder that 'survivorship map --out' wrote", where=path)
    try:
        frame = pl.read_parquet(path, glob=False)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise InputError("no valid Parquet", "run 'survivorship map' again", where=path) from error
    missing = [column for column in MAPPING_SCHEMA if column not in frame.columns]
    if missing:
        raise InputError(f"columns missing: {', '.join(missing)}", "run 'survivorship map' again", where=path)
    return PassageIds(frame.select(list(MAPPING_SCHEMA)))
