"""The results of a grid: a folder that is written cell by cell, and what can be asked of it while it grows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import polars as pl
import yaml

from truerank.arrays import frame_schema
from truerank.errors import InputError
from truerank.lexical.searching import write_run
from truerank.loading import json_file
from truerank.sources import read_run_frame
from truerank.sources.qrels import QREL_SCHEMA
from truerank.sources.runs import RUN_SCHEMA
from truerank.work.artifacts import atomic_path, write_text
from truerank.work.kept import is_whole, keep_text, kept_path
from truerank_lab.grid.design import CELL_SCHEMA, Design, read_design

if TYPE_CHECKING:
    from truerank.measures.folds import Folds

#: One row for each cell, in the order of the design; `cell` is its address, which follows from all that decides its
#: result; `status` is done, failed or missing; `loss` is the mean over the last tenth of the steps.
RECORD_SCHEMA: Final[dict[str, Any]] = {
    **frame_schema("cell: String"),
    **CELL_SCHEMA,
    **frame_schema("status: String, steps: Int64, loss: Float64"),
}
#: What a cell says of documents; `candidate`: the first stage found it within the depth. Others are leaked documents.
SCORE_SCHEMA: Final[dict[str, Any]] = frame_schema(
    "collection topic_id doc_id: String, score: Float64, candidate: Boolean"
)
#: Which documents are in the leaking rows of which set (of its largest size), for which topic, and in how many rows.
LEAKED_SCHEMA: Final[dict[str, Any]] = frame_schema(
    "collection set topic_id doc_id: String, relevant: Boolean, rows: Int64"
)
DESIGN_FILE: Final = "design.yaml"
RECORD_FILE: Final = "record.parquet"
LEAKED_FILE: Final = "leaked.parquet"
STATES: Final = ("done", "failed", "missing")
_CELL_FILE: Final = "cell.json"
_FAILED_FILE: Final = "failed.json"
_SCORES_FILE: Final = "scores.parquet"
_SECONDS_FILE: Final = "seconds.json"


class GridResults:
    """What a grid has found so far.

    Args:
        out: its folder: the `out` of `truerank-lab run`.

    Raises:
        InputError: it holds no grid.
    """

    def __init__(self, out: str | Path) -> None:
        self.folder = Path(out)
        if not (self.folder / RECORD_FILE).is_file():
            raise InputError("no results of a grid", "give the --out of 'truerank-lab run'", where=self.folder)

    @cached_property
    def design(self) -> Design:
        """The design that it was last run with."""
        return read_design(self.folder / DESIGN_FILE)

    @cached_property
    def cells(self) -> pl.DataFrame:
        """One row for each cell, columns as in `RECORD_SCHEMA`; the status is that of this moment."""
        return record_frame(self.folder, _table(self.folder / RECORD_FILE))

    def scores(self, cell: str) -> pl.DataFrame:
        """What a finished cell says of candidates and leaked documents, columns as in `SCORE_SCHEMA`.

        Raises:
            InputError: it is not finished.
        """
        path = cell_folder(self.folder, cell) / _SCORES_FILE
        if not is_whole(path):
            raise InputError("the cell is not finished, or was changed", "run 'truerank-lab run' again", where=path)
        return _table(path)

    def run(self, cell: str, collection: str) -> pl.DataFrame:
        """The candidates of a collection in the order of a finished cell, columns as in `RUN_SCHEMA`.

        The highest score first, ties by document id ascending; topics in the order of the first stage.
        """
        found = self.scores(cell).filter(pl.col("candidate") & (pl.col("collection") == collection))
        topics = found.select(pl.col("topic_id").unique(maintain_order=True)).with_row_index("place")
        ranked = found.join(topics, on="topic_id").sort("place", "score", "doc_id", descending=[False, True, False])
        rank = (pl.int_range(pl.len()).over("topic_id") + 1).alias("rank")
        return ranked.with_columns(rank, tag=pl.lit(cell)).select(*RUN_SCHEMA).cast(pl.Schema(RUN_SCHEMA))

    def failure(self, cell: str) -> str:
        """Why a failed cell failed."""
        return str(json_file(cell_folder(self.folder, cell) / _FAILED_FILE)["reason"])

    def seconds(self, cell: str) -> float | None:
        """How long a cell took; None where nothing says so."""
        path = cell_folder(self.folder, cell) / _SECONDS_FILE
        return float(json_file(path)["seconds"]) if path.is_file() else None

    def first_stage(self, collection: str) -> pl.DataFrame:
        """The candidates of a collection as the first stage ordered them, columns as in `RUN_SCHEMA`."""
        return read_run_frame(self.folder / "collections" / collection / "first-stage.run")

    def qrels(self, collection: str) -> pl.DataFrame:
        """The judgments of a collection, columns as in `QREL_SCHEMA`."""
        return _table(self.folder / "collections" / collection / "qrels.parquet")

    def leaked(self, collection: str) -> pl.DataFrame:
        """The leaked documents of a collection, columns as in `LEAKED_SCHEMA`; no rows where nothing leaked."""
        return _table(self.folder / LEAKED_FILE).filter(pl.col("collection") == collection)

    def folds(self, benchmark: str) -> Folds:
        """The folds of the judged topics of a benchmark, or of a collection that stands alone."""
        # Here, because workers write results and need no statistics.
        from truerank.measures.folds import folds
        from truerank_lab.cross_validation import read_folds

        designed = next(one for one in self.design.reported if one.name == benchmark)
        if isinstance(designed.folds, str):
            return read_folds(designed.folds)
        topics = [
            designed.topic(collection, topic)
            for collection in designed.collections
            for topic in self.qrels(collection)["topic_id"].unique().to_list()
        ]
        return folds(topics, designed.folds)


def _table(path: Path) -> pl.DataFrame:
    with path.open("rb") as stream:
        return pl.read_parquet(stream)


def cell_folder(out: Path, address: str) -> Path:
    return out / "cells" / address


def is_done(out: Path, address: str) -> bool:
    """Whether a cell is finished, and is what was written."""
    return all(is_whole(cell_folder(out, address) / name) for name in (_CELL_FILE, _SCORES_FILE))


def write_cell(out: Path, cell: Mapping[str, Any], scores: pl.DataFrame, seconds: float = 0.0, **about: Any) -> None:
    """Writes a finished cell, a row of the record; it counts as finished once `cell.json` is there, written last."""
    folder = cell_folder(out, cell["cell"])
    write_text(folder / _SECONDS_FILE, json.dumps({"seconds": round(seconds, 3)}) + "\n")
    with kept_path(folder / _SCORES_FILE) as temporary:
        scores.select(*SCORE_SCHEMA).cast(pl.Schema(SCORE_SCHEMA)).write_parquet(temporary, compression="zstd")
    (folder / _FAILED_FILE).unlink(missing_ok=True)
    keep_text(folder / _CELL_FILE, json.dumps({**cell, **about}, indent=2, ensure_ascii=False) + "\n")


def write_failed(out: Path, cell: Mapping[str, Any], reason: str, details: str = "") -> None:
    content = {**cell, "reason": reason, "details": details}
    path = cell_folder(out, cell["cell"]) / _FAILED_FILE
    write_text(path, json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def write_collection(
    out: Path, name: str, *, first_stage: pl.DataFrame, qrels: pl.DataFrame, topics: pl.DataFrame
) -> None:
    """Writes what all cells of a collection share; topics: topic_id, text (what was searched and reranked with)."""
    folder = out / "collections" / name
    folder.mkdir(parents=True, exist_ok=True)
    write_run(first_stage, folder / "first-stage.run")
    _write(folder / "qrels.parquet", qrels.select(*QREL_SCHEMA).cast(pl.Schema(QREL_SCHEMA)))
    _write(folder / "topics.parquet", topics.select("topic_id", "text"))


def write_plan(out: Path, design: Design, cells: pl.DataFrame, leaked: pl.DataFrame) -> None:
    """Writes design, record, and which documents leaked, columns as in `LEAKED_SCHEMA`."""
    text = yaml.safe_dump(design.json(), sort_keys=False, allow_unicode=True, width=120)
    write_text(out / DESIGN_FILE, text)
    _write(out / LEAKED_FILE, leaked.select(*LEAKED_SCHEMA).cast(pl.Schema(LEAKED_SCHEMA)))
    write_record(out, cells)


def write_record(out: Path, cells: pl.DataFrame) -> pl.DataFrame:
    """Writes the record: one row for each cell, with the status of this moment; returns it."""
    frame = record_frame(out, cells)
    _write(out / RECORD_FILE, frame)
    return frame


def record_frame(out: Path, cells: pl.DataFrame) -> pl.DataFrame:
    """Cells with what became of them, columns as in `RECORD_SCHEMA`."""
    found = [{**row, **_became(cell_folder(out, row["cell"]))} for row in cells.iter_rows(named=True)]
    return pl.DataFrame(found, schema=RECORD_SCHEMA)


def _became(folder: Path) -> dict[str, Any]:
    if is_whole(folder / _CELL_FILE):
        content = json_file(folder / _CELL_FILE)
        return {"status": "done", "steps": content["steps"], "loss": content["loss"]}
    status = "failed" if (folder / _FAILED_FILE).is_file() else "missing"
    return {"status": status, "steps": None, "loss": None}


def _write(path: Path, frame: pl.DataFrame) -> None:
    with atomic_path(path) as temporary:
        frame.write_parquet(temporary, compression="zstd")
