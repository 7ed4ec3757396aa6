"""Results of MTEB: folders of `MODEL/REVISION/TASK.json`, in the layouts of its versions, as one table of scores."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import polars as pl

from truerank.errors import InputError
from truerank.loading import json_file
from truerank.sources import compressed

#: A score, and how it was made; null where the file does not say. `measure` is empty for the main score; `first_gap` is
#: by how much the file's MRR@1 and P@1 differ, which are one number.
CELLS: Final = {
    "system": pl.String, "task": pl.String, "item": pl.String, "score": pl.Float64, "measure": pl.String,
    "split": pl.String, "data_revision": pl.String, "tool_version": pl.String, "prompt": pl.String,
    "type": pl.String, "model_revision": pl.String, "place": pl.String, "first_gap": pl.Float64,
}  # fmt: skip
#: The score of results that name no main score: that of retrieval tasks.
_MAIN: Final = "ndcg_at_10"
_OTHERS: Final = {"map_at_10": "MAP@10", "mrr_at_10": "MRR@10", "recall_at_10": "R@10", "recall_at_100": "R@100"}
_SPLITS: Final = ("test", "dev", "validation", "train")
_META: Final = "model_meta.json"


class MtebResults(NamedTuple):
    """What a folder holds.

    `cells`: columns `CELLS`; `trained`: the data sets that a system says it was trained on, by system, none where it
    says that it was trained on none; `broken`: files without scores that can be read.
    """

    cells: pl.DataFrame
    trained: Mapping[str, frozenset[str]]
    broken: int


def is_mteb_result(path: Path) -> bool:
    """Whether a JSON file is a result of one task, told from its beginning."""
    head = compressed.head(path)
    if b'"task_name"' in head:
        return b'"scores"' in head or b'"mteb_version"' in head
    return b'"mteb_dataset_name"' in head


def read_mteb_results(folder: Path, files: Iterable[Path] | None = None) -> MtebResults:
    """Reads results; by default all of a folder.

    Raises:
        InputError: no file has scores.
    """
    rows: list[tuple[Any, ...]] = []
    trained: dict[str, frozenset[str]] = {}
    broken = 0
    for path in sorted(folder.rglob("*.json")) if files is None else files:
        parts = path.relative_to(folder).parts
        system, revision = (parts[-3], parts[-2]) if len(parts) > 2 else (parts[0] if len(parts) > 1 else path.stem, "")
        try:
            value = json_file(path)
            if path.name == _META:
                names = value.get("training_datasets")
                if isinstance(names, Mapping | list):
                    trained[system] = trained.get(system, frozenset()) | frozenset(map(str, names))
                continue
            task = str(value.get("task_name") or value["mteb_dataset_name"])
            found = list(_entries(value))
        except (InputError, KeyError, TypeError, AttributeError):
            broken += path.name != _META
            continue
        about = (_text(value.get("dataset_revision")), _text(value.get("mteb_version")), None, None, revision)
        count = len(rows)
        for split, entry, main in found:
            subset = str(entry.get("hf_subset", ""))
            name = task if subset in ("", "default") else f"{task} ({subset})"
            gap = _gap(entry)
            rows += [
                (system, name, None, score, measure, split, *about, "/".join(parts), gap)
                for key, measure in ((main, ""), *_OTHERS.items())
                if (score := _number(entry.get(key))) is not None
            ]
        broken += not any(row[4] == "" for row in rows[count:])
    cells = pl.DataFrame(rows, CELLS, orient="row")
    if not (cells["measure"] == "").any():
        raise InputError(
            "no scores in these files", "give a folder of MODEL/REVISION/TASK.json, or a table", where=folder
        )
    return MtebResults(cells, trained, broken)


def one_score_each(cells: pl.DataFrame) -> pl.DataFrame:
    """The cells of one revision of each system and one split of each task.

    Of several revisions of a system the one with most tasks counts, of several splits of a task the one that most
    systems have.
    """
    size = pl.col("task").n_unique().over("system", "model_revision")
    own = cells.with_columns(size.alias("size")).sort(
        "system", "size", "model_revision", descending=[False, True, False]
    )
    own = own.filter(pl.col("model_revision").eq_missing(pl.col("model_revision").first().over("system")))
    count = pl.col("system").n_unique().over("task", "split")
    own = own.with_columns(count.alias("size")).sort("task", "size", "split", descending=[False, True, True])
    return own.filter(pl.col("split").eq_missing(pl.col("split").first().over("task"))).drop("size")


def _entries(value: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any], str]]:
    """Split, scores, and the name of the main one; older files have the split as a key."""
    if "scores" in value:
        for split, entries in value["scores"].items():
            for entry in entries:
                yield split, entry, "main_score"
        return
    for split in _SPLITS:
        if isinstance(entry := value.get(split), Mapping):
            yield split, entry, _MAIN


def _gap(entry: Mapping[str, Any]) -> float | None:
    reciprocal, precision = _number(entry.get("mrr_at_1")), _number(entry.get("precision_at_1"))
    return None if reciprocal is None or precision is None else abs(reciprocal - precision)


def _number(value: Any) -> float | None:
    known = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if known else None


def _text(value: Any) -> str | None:
    return None if value in (None, "", "None", "external") else str(value)
