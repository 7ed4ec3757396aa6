"""Judgments by annotation depth, as they are found in a folder or named one by one, and runs cut to what is scored."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import polars as pl
from ir_measures.measures.base import Measure

from truerank.audits.survivorship.results import file_input
from truerank.errors import InputError
from truerank.measures.rankings import whole_topics
from truerank.sources import read_qrels_frame, read_run_frame, run_frames

__all__ = ["ALL", "DepthSets", "KeptRun", "kept_run", "largest_cutoff", "read_depth_sets"]

#: The label of the whole log.
ALL: Final = "all"
_NAMED: Final = re.compile(r"(?P<name>.+)-(?P<label>\d+|all)\.qrels(\.(gz|bz2|xz|zst))?")


@dataclass(frozen=True, eq=False)
class DepthSets:
    """Judgments by depth.

    Attributes:
        name: of the log that they come from.
        every: by label, the shallowest first: all judgments; the last one is the full set.
        first: the same with the first judgment of each query only.
        derived: the first judgments were told from the depths at which judgments appear.
        strays: judgments of a depth that the full set lacks.
        inputs: for the manifest.
    """

    name: str
    every: Mapping[str, pl.DataFrame]
    first: Mapping[str, pl.DataFrame]
    derived: bool = False
    strays: int = 0
    inputs: Mapping[str, Any] = field(default_factory=dict)

    @property
    def labels(self) -> tuple[str, ...]:
        """The depths, the full set last."""
        return tuple(self.every)

    @property
    def places(self) -> tuple[float, ...]:
        """Where the depths stand on an axis; the whole log stands one after the last number."""
        numbers = [int(label) for label in self.labels if label.isdigit()]
        beyond = max(numbers, default=0) + 1
        return tuple(float(label) if label.isdigit() else float(beyond) for label in self.labels)


def read_depth_sets(folder: str | Path | None = None, files: Sequence[str] = ()) -> DepthSets:
    """Reads judgments by depth.

    Args:
        folder: what `survivorship depth` wrote, or any folder with files called NAME-K.qrels and NAME-all.qrels.
        files: in its place `K=FILE` for each depth, K a number or "all".

    Raises:
        InputError: both or neither, fewer than two depths, files of several names, or a fault in a file.
    """
    if (folder is None) == (not files):
        raise InputError("judgments by depth are needed", "give --depths DIR, or --qrels K=FILE for each depth")
    if folder is not None:
        name, paths, firsts = _of_folder(Path(folder))
    else:
        name, paths, firsts = "qrels", _of_files(files), {}
    if len(paths) < 2:
        fault = f"{len(paths)} annotation depth" + "s" * (not paths)
        raise InputError(fault, "give two or more, the full set included", where=folder or "--qrels")
    every = {label: read_qrels_frame(str(path)) for label, path in paths.items()}
    derived = set(firsts) != set(paths)
    first = _firsts(every) if derived else {label: read_qrels_frame(str(firsts[label])) for label in paths}
    if empty := next((label for label, frame in first.items() if not len(frame)), None):
        raise InputError("no relevant judgment in it", "leave this depth out", where=paths[empty])
    whole = every[list(every)[-1]]
    keys = ["topic_id", "doc_id"]
    strays = sum(len(frame.join(whole, on=keys, how="anti")) for frame in every.values())
    inputs = {label: file_input(str(path)) for label, path in paths.items()}
    return DepthSets(name, every, first, derived, strays, {"qrels": inputs})


def _of_folder(folder: Path) -> tuple[str, dict[str, Path], dict[str, Path]]:
    if not folder.is_dir():
        raise InputError("no folder", "give what 'survivorship depth --out' wrote", where=folder)
    inner = folder / "qrels"
    found = _named_files(inner if inner.is_dir() else folder)
    if len(found) != 1:
        names = ", ".join(sorted(found)) or "none"
        fault = f"judgments NAME-K.qrels of one name are needed, there are: {names}"
        raise InputError(fault, "name the files with --qrels K=FILE", where=folder)
    name = next(iter(found))
    firsts = _named_files(folder / "first") if (folder / "first").is_dir() else {}
    return name, found[name], firsts.get(name, {})


def _named_files(folder: Path) -> dict[str, dict[str, Path]]:
    found: dict[str, dict[str, Path]] = {}
    for path in sorted(folder.iterdir()):
        if (match := _NAMED.fullmatch(path.name)) and path.is_file():
            label = match["label"] if match["label"] == ALL else str(int(match["label"]))
            found.setdefault(match["name"], {})[label] = path
    return {name: _ordered(paths) for name, paths in found.items()}


def _of_files(files: Sequence[str]) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for given in files:
        label, sign, path = given.partition("=")
        if not sign or not path or not (label == ALL or (label.isdigit() and int(label) > 0)):
            raise InputError(f"'{given}' is no depth with a file", "write 5=FILE or all=FILE", where="--qrels")
        label = label if label == ALL else str(int(label))
        if label in found:
            raise InputError(f"the depth {label} stands there twice", "give each once", where="--qrels")
        found[label] = Path(path)
    return _ordered(found)


def _ordered(paths: Mapping[str, Path]) -> dict[str, Path]:
    return {label: paths[label] for label in sorted(paths, key=lambda one: (one == ALL, one.isdigit() and int(one)))}


def _firsts(every: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """The judgment of each query that appears first, by the depth and then by the order of the file."""
    seen = pl.concat(
        [
            frame.with_columns(pl.lit(place, pl.Int32).alias("level")).with_row_index("row")
            for place, frame in enumerate(every.values())
        ]
    ).filter(pl.col("relevance") > 0)
    first = seen.sort("level", "row").unique("topic_id", keep="first", maintain_order=True)
    return {
        label: first.filter(pl.col("level") <= place).select(frame.columns)
        for place, (label, frame) in enumerate(every.items())
    }


@dataclass(frozen=True, eq=False)
class KeptRun:
    """The rows of a run that can be scored: those of the wanted queries, above the largest cutoff."""

    rows: pl.DataFrame
    queries: frozenset[str]
    unknown: int


def largest_cutoff(measures: Sequence[Measure]) -> int | None:
    """The rank beyond which no measure looks; None if one looks at all results."""
    cutoffs = [measure.params.get("cutoff") for measure in measures]
    if any(
        cutoff is None or measure.params.get("judged_only") for cutoff, measure in zip(cutoffs, measures, strict=True)
    ):
        return None
    return max(int(cutoff) for cutoff in cutoffs if cutoff is not None)


def kept_run(path: str, wanted: pl.Series, cutoff: int | None) -> KeptRun:
    """Reads a run in pieces and keeps what is scored.

    Args:
        path: the file.
        wanted: ids of the queries.
        cutoff: the rank beyond which nothing is looked at; rows that are among the first by rank or by score, ties
            included, are kept.

    Raises:
        InputError: a fault in the file, or none of the queries in it.
    """
    parts: list[pl.DataFrame] = []
    topics: set[str] = set()
    for piece in whole_topics(run_frames(path)):
        if piece is None:
            # Topics that come back: the whole run has to be seen.
            whole = read_run_frame(path)
            parts, topics = [_cut(whole, wanted, cutoff)], set(whole["topic_id"].unique())
            break
        parts.append(_cut(piece, wanted, cutoff))
        topics.update(piece["topic_id"].unique())
    there = frozenset(topics & set(wanted))
    if not there:
        fault = f"the run holds none of the {len(wanted):,} queries of the judgments"
        raise InputError(fault, f"give matching files; the judgments have '{wanted[0]}'", where=path)
    return KeptRun(pl.concat(parts, rechunk=True), there, len(topics) - len(there))


def _cut(piece: pl.DataFrame, wanted: pl.Series, cutoff: int | None) -> pl.DataFrame:
    kept = piece.filter(pl.col("topic_id").is_in(wanted.implode())).drop("tag")
    if cutoff is None:
        return kept
    scores = pl.col("score").cast(pl.Float32)
    best = scores.rank("min", descending=True).over("topic_id") <= cutoff
    return kept.filter(best | (pl.col("rank").rank("min").over("topic_id") <= cutoff))
