"""Results of MTEB: folders of `MODEL/REVISION/TASK.json`, in the layouts of its versions, as one table of scores."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

import polars as pl

from truerank.arrays import frame_schema
from truerank.errors import InputError
from truerank.loading import json_file
from truerank.sources import compressed

#: A score, and how it was made; null where the file does not say. `measure` is empty for the main score. Main scores of
#: MTEB's files also say which measures of the file have the same value ("" for none), what in the file contradicts
#: itself, all its measures as one text, and the largest of those at a rank.
CELLS: Final = frame_schema(
    "system task item: String, score: Float64, measure split data_revision tool_version prompt type model_revision "
    "place languages main_measure contradiction fingerprint: String, largest: Float64"
)
#: The score of results that name no main score: that of retrieval tasks.
_MAIN: Final = "ndcg_at_10"
_OTHERS: Final = {"map_at_10": "MAP@10", "mrr_at_10": "MRR@10", "recall_at_10": "R@10", "recall_at_100": "R@100"}
_CUTOFFS: Final = (1, 3, 5, 10, 20, 100, 1000)
#: MRR@1 and P@1 are one number. In MTEB's results ties and passages that answer themselves part them by up to .025.
_FIRST_GAP: Final = 0.05
#: Measures above it are from 0 to 100.
_SHARES: Final = 1.5
#: Scores that are equal but for rounding to three decimals.
_ROUNDED: Final = 5e-4
#: Measures of a file from which on these say something about each other.
_FEWEST: Final = 5
_SPLITS: Final = ("test", "dev", "validation", "train")
#: Which split counts where as many systems have one as the other; what it trains on counts where there is no other.
_PLACES: Final = {"test": 0, "dev": 1, "validation": 2, "train": 4}
_OTHER: Final = 3
#: Before MTEB 1.11, the main score had the name of its measure, and similarities had blocks of their own.
_OLD: Final = ("main_score", "ndcg_at_10", "map", "v_measure", "spearman", "ap")
_SIMILARITIES: Final = ("cos_sim", "dot", "euclidean", "manhattan", "max")
#: Tasks whose results MTEB reports on another split than test.
_REPORTED: Final = {"MSMARCO": "dev"}
#: What MTEB knows of a model.
META_FILE: Final = "model_meta.json"


class MtebResults(NamedTuple):
    """What a folder holds.

    `cells`: columns `CELLS`; `trained`: the data sets that a system says it was trained on, by system, none where it
    says that it was trained on none; `foreign`: metadata whose model has another name, by system; `broken`: files
    without scores that can be read
    """

    cells: pl.DataFrame
    trained: Mapping[str, frozenset[str]]
    foreign: Mapping[str, str]
    broken: tuple[str, ...]


def is_mteb_result(path: Path) -> bool:
    """Whether a JSON file is a result of one task, told from its beginning."""
    head = compressed.head(path)
    if b'"task_name"' in head:
        return b'"scores"' in head or b'"mteb_version"' in head
    return b'"mteb_dataset_name"' in head


def read_mteb_results(folder: Path, files: Iterable[Path] | None = None) -> MtebResults:
    """Reads results; by default all of a folder."""
    rows: list[tuple[Any, ...]] = []
    trained: dict[str, frozenset[str]] = {}
    foreign: dict[str, str] = {}
    broken: list[str] = []
    for path in sorted(folder.rglob("*.json")) if files is None else files:
        parts = path.relative_to(folder).parts
        system, revision = (parts[-3], parts[-2]) if len(parts) > 2 else (parts[0] if len(parts) > 1 else path.stem, "")
        try:
            value = json_file(path)
            if path.name == META_FILE:
                names, model = value.get("training_datasets"), value.get("name")
                if isinstance(model, str) and model.replace("/", "__") != system:
                    foreign[system] = model
                if isinstance(names, Mapping | list):
                    trained[system] = trained.get(system, frozenset()) | frozenset(map(str, names))
                continue
            task = str(value.get("task_name") or value["mteb_dataset_name"])
            found = list(_entries(value))
        except (InputError, KeyError, TypeError, AttributeError):
            broken += ["/".join(parts)] if path.name != META_FILE else []
            continue
        about = (_text(value.get("dataset_revision")), _text(value.get("mteb_version")), None, None, revision)
        count = len(rows)
        for split, entry, main in found:
            subset = str(entry.get("hf_subset", ""))
            name = task if subset in ("", "default") else f"{task} ({subset})"
            if (score := _number(entry.get(main))) is None:
                continue
            cell = (*about, "/".join(parts), _languages(entry))
            rows.append((system, name, None, score, "", split, *cell, *_facts(entry, main, score)))
            rows += [
                (system, name, None, other, measure, split, *cell, *(None,) * 4)
                for key, measure in _OTHERS.items()
                if (other := _number(entry.get(key))) is not None
            ]
        broken += ["/".join(parts)] if len(rows) == count else []
    cells = pl.DataFrame(rows, CELLS, orient="row")
    if not len(cells):
        remedy = "give a folder of MODEL/REVISION/TASK.json, or a table"
        raise InputError("no scores in these files", remedy, where=folder)
    return MtebResults(cells, trained, foreign, tuple(broken))


def one_score_each(cells: pl.DataFrame) -> pl.DataFrame:
    """The cells of one split of each task, and of one revision of a system on each task.

    Of several splits of a task `counted_splits` chooses, of several revisions of a system the one with most tasks
    counts; the others fill in tasks that it lacks, as on MTEB's leaderboard.
    """
    own = cells.join(counted_splits(cells), on=["task", "split"], nulls_equal=True)
    size = pl.col("task").n_unique().over("system", "model_revision")
    own = own.with_columns(size.alias("size")).sort("system", "size", "model_revision", descending=[False, True, False])
    first = pl.col("model_revision").first().over("system", "task")
    return own.filter(pl.col("model_revision").eq_missing(first)).drop("size")


def counted_splits(cells: pl.DataFrame) -> pl.DataFrame:
    """The split of each task that counts, columns task and split: the one that most systems have.

    Of those that as many have it is the one that MTEB reports (dev of MSMARCO), test, dev, validation, in this order.
    Train counts where there is no other.
    """
    place = pl.col("split").replace_strict(_PLACES, default=_OTHER).fill_null(_OTHER)
    reported = pl.col("task").replace_strict(_REPORTED, default=None, return_dtype=pl.String).eq(pl.col("split"))
    place = pl.when(reported).then(-1).otherwise(place).alias("place")
    splits = cells.group_by("task", "split").agg(pl.col("system").n_unique()).with_columns(place)
    trains = pl.col("place") == _PLACES["train"]
    order = splits.sort("task", trains, "system", "place", "split", descending=[False, False, True, False, False])
    return order.unique("task", keep="first", maintain_order=True).select("task", "split")


def task_scores(cells: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """The main scores of each system, columns topic_id and value; none of a system that lacks the splits that count."""
    means = one_score_each(cells.filter(pl.col("measure") == "")).group_by("system", "task").agg(pl.col("score").mean())
    means = means.sort("task").rename({"task": "topic_id", "score": "value"})
    return {
        system: means.filter(pl.col("system") == system).drop("system") for system in cells["system"].unique().sort()
    }


def _entries(value: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any], str]]:
    """Split, scores, and the name of the main one; older files have the split as a key."""
    if "scores" in value:
        for split, entries in value["scores"].items():
            for entry in entries:
                if not isinstance(entry, Mapping):
                    raise TypeError(f"{entry!r} is not an object")
                yield split, entry, "main_score"
        return
    for split in _SPLITS:
        if isinstance(whole := value.get(split), Mapping):
            parts = {key: one for key, one in whole.items() if isinstance(one, Mapping) and key not in _SIMILARITIES}
            for subset, part in (parts or {"": whole}).items():
                cosine = part.get(_SIMILARITIES[0]) or {}
                entry = {"hf_subset": subset, **{key: one for key, one in cosine.items() if key in _OLD}, **part}
                yield split, entry, next((key for key in _OLD if _number(entry.get(key)) is not None), _MAIN)


def _languages(entry: Mapping[str, Any]) -> str | None:
    value = entry.get("languages")
    return ", ".join(sorted(set(map(str, value)))) if isinstance(value, list) and value else None


def _facts(
    entry: Mapping[str, Any], main: str, score: float
) -> tuple[str | None, str | None, str | None, float | None]:
    """Which measure the main score is, what contradicts itself, all measures as one text, and the largest at a rank."""
    measures = {
        key: number
        for key, value in sorted(entry.items())
        if key != "main_score" and not key.startswith("nauc") and (number := _number(value)) is not None
    }
    if len(measures) < _FEWEST:
        return (None,) * 4
    largest = max((measures[key] for key in measures if "_at_" in key), default=None)
    unit = 100 if (largest or 0) > _SHARES else 1
    # Measures are written with fewer digits than the main score in some files.
    near = [key for key, value in measures.items() if abs(value - score) <= unit * _ROUNDED]
    near.sort(key=lambda key: key != _MAIN)
    named = main if main != "main_score" else " ".join(near)
    texts = [f"{value:.6g}" for value in measures.values()]
    # Results that are all 0 or 1 are equal without being copies.
    fingerprint = " ".join(texts) if len(set(texts)) >= _FEWEST else None
    return named, _contradiction({key: value / unit for key, value in measures.items()}), fingerprint, largest


def _contradiction(measures: Mapping[str, float]) -> str | None:
    """What measures from 0 to 1 say against each other."""
    reciprocal, precision = measures.get("mrr_at_1"), measures.get("precision_at_1")
    if reciprocal is not None and precision is not None and abs(reciprocal - precision) > _FIRST_GAP:
        return f"MRR@1 is {reciprocal:.3f} and P@1 {precision:.3f}, which are one number"
    for name in ("recall", "mrr"):
        known = [(k, measures[key]) for k in _CUTOFFS if (key := f"{name}_at_{k}") in measures]
        for (less, first), (more, second) in pairwise(known):
            if second < first - _ROUNDED:
                return f"{name}@{more} is {second:.3f}, below {name}@{less} ({first:.3f})"
    return None


def _number(value: Any) -> float | None:
    known = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if known else None


def _text(value: Any) -> str | None:
    return None if value in (None, "", "None", "external") else str(value)
