"""The results of a grid: a folder that is written cell by cell, and what can be asked of it while it grows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

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
from truerank.work.kept import is_unharmed, keep_text, kept_path
from truerank_lab.grid.design import Design, ModelDesign, SetDesign

if TYPE_CHECKING:
    from truerank.measures.folds import Folds


class GridTraining(NamedTuple):
    """One training: a set in one size, a model, a seed. Its cells differ in how passages become scores.

    `size` is in instances, two for each row; 0 stands for all rows of a set whose number is not known yet, and for a
    checkpoint that is not trained at all.
    """

    set: SetDesign
    size: int
    model: ModelDesign
    seed: int

    @property
    def variants(self) -> tuple[str, ...]:
        """The variants of its results; one without a name where the collections say how passages become scores."""
        return self.model.aggregates or ("",)

    @property
    def drawn(self) -> SetDesign:
        return self.set.drawn(self.model.name, self.seed)


class Cell(NamedTuple):
    """One cell of the grid, as it is in the record.

    `address` follows from all that decides the result; `variant` is "first", "max", or empty where the collections say.
    """

    address: str
    set: str
    kind: str
    label: str
    collections: tuple[str, ...]
    size: int
    model: str
    recipe: str
    seed: int
    variant: str = ""

    def json(self) -> dict[str, Any]:
        """By the names of the record's columns."""
        rest = {name: value for name, value in self._asdict().items() if name != "address"}
        return {"cell": self.address, **rest, "collections": list(self.collections)}

    @classmethod
    def of(cls, value: Mapping[str, Any]) -> Cell:
        """What `json` gave."""
        own = {name: value[name] for name in cls._fields if name not in ("address", "collections")}
        return cls(address=value["cell"], collections=tuple(value["collections"]), **own)


def expand(design: Design) -> tuple[GridTraining, ...]:
    """All trainings of a design: by set, size, model, seed, in the order of the file.

    Args:
        design: the experiment; `len(training.variants)` cells come from each training.
    """
    return tuple(
        GridTraining(one, size, model, seed)
        for one in design.sets
        for size in one.sizes or (0,)
        for model in design.models
        if not model.sets or one.name in model.sets
        if not model.sizes or size in model.sizes or one.checkpoint is not None
        # What is not trained is the same under every seed.
        for seed in (model.seeds if one.checkpoint is None else model.seeds[:1])
    )


#: One row for each cell, in the order of the design; `collections` are those that it is tested on; `size` is in
#: instances, two a row; `status` is done, failed or missing; `loss` is the mean over the last tenth of the steps.
RECORD_SCHEMA: Final[dict[str, Any]] = {
    **frame_schema("cell set kind label: String"),
    "collections": pl.List(pl.String),
    **frame_schema(
        "size: Int64, model recipe: String, seed: Int64, variant status: String, steps: Int64, loss: Float64"
    ),
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
_CELL_FILE: Final = "cell.json"
_FAILED_FILE: Final = "failed.json"
_SCORES_FILE: Final = "scores.parquet"


def open_results(out: str | Path) -> GridResults:
    """Opens the folder of a grid, finished or not.

    Args:
        out: the folder that `experiment run` writes to.

    Raises:
        InputError: it holds no grid.
    """
    return GridResults(out)


class GridResults:
    """What a grid has found so far.

    Args:
        out: its folder.

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
        from truerank_lab.grid.design import read_design

        return read_design(self.folder / DESIGN_FILE)

    @cached_property
    def cells(self) -> pl.DataFrame:
        """One row for each cell, columns as in `RECORD_SCHEMA`; the status is that of this moment."""
        planned = _table(self.folder / RECORD_FILE)
        return record_frame(self.folder, [Cell.of(row) for row in planned.iter_rows(named=True)])

    def scores(self, cell: str) -> pl.DataFrame:
        """What a finished cell says of candidates and leaked documents, columns as in `SCORE_SCHEMA`.

        Raises:
            InputError: it is not finished.
        """
        path = cell_folder(self.folder, cell) / _SCORES_FILE
        if not path.is_file():
            raise InputError("the cell is not finished", "run 'truerank-lab run' again", where=path.parent)
        if not is_unharmed(path):
            fault = "is not what was written here"
            raise InputError(fault, "'truerank-lab run' makes it again", where=path)
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

    def first_stage(self, collection: str) -> pl.DataFrame:
        """The candidates of a collection as the first stage ordered them, columns as in `RUN_SCHEMA`."""
        return read_run_frame(self._of(collection) / "first-stage.run")

    def qrels(self, collection: str) -> pl.DataFrame:
        """The judgments of a collection, columns as in `QREL_SCHEMA`."""
        return _table(self._of(collection) / "qrels.parquet")

    def topics(self, collection: str) -> pl.DataFrame:
        """The topics of a collection: topic_id, text (what was searched and reranked with)."""
        return _table(self._of(collection) / "topics.parquet")

    def leaked(self, collection: str) -> pl.DataFrame:
        """The leaked documents of a collection, columns as in `LEAKED_SCHEMA`; no rows where nothing leaked."""
        path = self.folder / LEAKED_FILE
        if not path.is_file():
            return pl.DataFrame(schema=LEAKED_SCHEMA)
        return _table(path).filter(pl.col("collection") == collection)

    def leaking_topics(self, collection: str) -> tuple[str, ...]:
        """The topics that leak: those that the design's file names, or those of the pairs of `leak` sets, sorted."""
        named = self.design.collection(collection).leaking_topics
        if named is not None:
            return tuple(sorted(set(Path(named).read_text(encoding="utf-8").split())))
        kinds = {each.name for each in self.design.sets if each.kind == "leak"}
        found = self.leaked(collection).filter(pl.col("set").is_in(sorted(kinds)))
        return tuple(found["topic_id"].unique().sort().to_list())

    def folds(self, benchmark: str) -> Folds:
        """The folds of the judged topics of a benchmark, or of a collection that stands alone."""
        # Here, because workers write results and need no statistics.
        from truerank.measures.folds import folds
        from truerank_lab.cross_validation import read_folds

        designed = self.design.benchmark(benchmark)
        if isinstance(designed.folds, str):
            return read_folds(designed.folds)
        topics = [
            designed.topic(collection, topic)
            for collection in designed.collections
            for topic in self.qrels(collection)["topic_id"].unique().to_list()
        ]
        return folds(topics, designed.folds, designed.fold_seed)

    def _of(self, collection: str) -> Path:
        folder = self.folder / "collections" / collection
        if not folder.is_dir():
            raise InputError(f"no collection '{collection}' in these results", "see design.yaml", where=self.folder)
        return folder


def _table(path: Path) -> pl.DataFrame:
    with path.open("rb") as stream:
        return pl.read_parquet(stream)


def cell_folder(out: Path, address: str) -> Path:
    return out / "cells" / address


def is_done(out: Path, address: str) -> bool:
    """Whether a cell is finished, and is what was written."""
    return all(is_unharmed(cell_folder(out, address) / name) for name in (_CELL_FILE, _SCORES_FILE))


def has_failed(out: Path, address: str) -> bool:
    """Whether a cell failed when it was last tried."""
    return (cell_folder(out, address) / _FAILED_FILE).is_file()


def write_cell(
    out: Path,
    cell: Cell,
    scores: pl.DataFrame,
    *,
    steps: int,
    loss: float | None,
    about: Mapping[str, Any] | None = None,
) -> None:
    """Writes a finished cell; it counts as finished once `cell.json` is there, which is written last."""
    folder = cell_folder(out, cell.address)
    ordered = scores.select(*SCORE_SCHEMA).cast(pl.Schema(SCORE_SCHEMA))
    with kept_path(folder / _SCORES_FILE) as temporary:
        _write(temporary, ordered)
    content = {**cell.json(), "status": "done", "steps": steps, "loss": loss, **(about or {})}
    (folder / _FAILED_FILE).unlink(missing_ok=True)
    keep_text(folder / _CELL_FILE, json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def write_failed(out: Path, cell: Cell, reason: str) -> None:
    content = {**cell.json(), "status": "failed", "reason": reason}
    write_text(cell_folder(out, cell.address) / _FAILED_FILE, json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def write_collection(
    out: Path, name: str, *, first_stage: pl.DataFrame, qrels: pl.DataFrame, topics: pl.DataFrame
) -> None:
    """Writes what all cells of a collection share."""
    folder = out / "collections" / name
    folder.mkdir(parents=True, exist_ok=True)
    write_run(first_stage, folder / "first-stage.run")
    _parquet(folder / "qrels.parquet", qrels.select(*QREL_SCHEMA).cast(pl.Schema(QREL_SCHEMA)))
    _parquet(folder / "topics.parquet", topics.select("topic_id", "text"))


def write_leaked(out: Path, leaked: pl.DataFrame) -> None:
    """Writes which documents leaked, columns as in `LEAKED_SCHEMA`."""
    _parquet(out / LEAKED_FILE, leaked.select(*LEAKED_SCHEMA).cast(pl.Schema(LEAKED_SCHEMA)))


def write_design(out: Path, design: Design) -> None:
    """Writes the whole design, every value written out; `read_design` reads it."""
    text = yaml.safe_dump(design.json(), sort_keys=False, allow_unicode=True, width=120)
    write_text(out / DESIGN_FILE, text)


def write_record(out: Path, cells: Sequence[Cell]) -> pl.DataFrame:
    """Writes the record: one row for each cell, with the status of this moment; returns it."""
    frame = record_frame(out, cells)
    _parquet(out / RECORD_FILE, frame)
    return frame


def record_frame(out: Path, cells: Iterable[Cell]) -> pl.DataFrame:
    """Cells with what became of them, columns as in `RECORD_SCHEMA`."""
    rows = [{**cell.json(), **_became(cell_folder(out, cell.address))} for cell in cells]
    return pl.DataFrame(rows, schema=RECORD_SCHEMA)


def _became(folder: Path) -> dict[str, Any]:
    if is_unharmed(folder / _CELL_FILE):
        content = json_file(folder / _CELL_FILE)
        return {name: content[name] for name in ("status", "steps", "loss")}
    status = "failed" if (folder / _FAILED_FILE).is_file() else "missing"
    return {"status": status, "steps": None, "loss": None}


def _parquet(path: Path, frame: pl.DataFrame) -> None:
    with atomic_path(path) as temporary:
        _write(temporary, frame)


def _write(path: Path, frame: pl.DataFrame) -> None:
    frame.write_parquet(path, compression="zstd", statistics=True)
