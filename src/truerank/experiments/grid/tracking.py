"""Records of cells outside of the results folder: MLflow, where a user keeps experiments there."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import polars as pl

from truerank.errors import MissingExtraError, OptionError
from truerank.experiments.grid.design import Design
from truerank.experiments.grid.planning import Work
from truerank.experiments.grid.results import GridResults, is_done, open_results
from truerank.measures import Policy, evaluate

_TAG = "truerank.cell"


class Tracker(Protocol):
    """Records cells somewhere."""

    def record(self, work: Work) -> None:
        """Records the finished cells of a training."""


class _NoTracker:
    """Stands in where no tracker was asked for."""

    def record(self, work: Work) -> None:
        """Records nothing."""


@contextlib.contextmanager
def open_tracker(record: str | None, design: Design, out: Path) -> Iterator[Tracker]:
    """Opens where cells are recorded besides the results folder."""
    if record is None:
        yield _NoTracker()
        return
    kind, _, address = record.partition(":")
    if kind != "mlflow" or not address:
        raise OptionError("record", f"no record called '{record}'", "give mlflow:URI")
    yield _Mlflow(address, design, out)


class _Mlflow:
    """One MLflow run for each cell, in an experiment of the design's name; a cell is recorded once."""

    def __init__(self, address: str, design: Design, out: Path) -> None:
        try:
            from mlflow import MlflowClient
            from mlflow.exceptions import MlflowException
        except ImportError as error:
            raise MissingExtraError("recording in MLflow", "mlflow") from error
        self._design, self._out = design, out
        self._failure = MlflowException
        try:
            self._client: Any = MlflowClient(tracking_uri=address)
            found = self._client.get_experiment_by_name(design.name)
            self._experiment = found.experiment_id if found else self._client.create_experiment(design.name)
        except (MlflowException, OSError) as error:
            fault = f"no MLflow answers at '{address}' ({' '.join(str(error).split())[:120]})"
            raise OptionError("record", fault, "check the address") from error

    def record(self, work: Work) -> None:
        """Records what was trained on what, how it ended, and the measures on each collection."""
        results = open_results(self._out)
        for cell in work.cells:
            if not is_done(self._out, cell.address) or self._recorded(cell.address):
                continue
            row = results.cells.row(by_predicate=pl.col("cell") == cell.address, named=True)
            run = self._client.create_run(self._experiment, tags={_TAG: cell.address}, run_name=_name(row))
            for name in ("set", "kind", "label", "size", "model", "recipe", "seed", "variant"):
                self._client.log_param(run.info.run_id, name, row[name])
            for name, value in {"steps": row["steps"], "loss": row["loss"], **self._measured(results, row)}.items():
                if value is not None:
                    self._client.log_metric(run.info.run_id, name, float(value))
            self._client.set_terminated(run.info.run_id)

    def _recorded(self, address: str) -> bool:
        return bool(self._client.search_runs([self._experiment], f"tags.`{_TAG}` = '{address}'", max_results=1))

    def _measured(self, results: GridResults, row: dict[str, Any]) -> dict[str, float]:
        """Means over the judged topics; names as MLflow takes them."""
        found = {}
        for collection in row["collections"]:
            runs = {"cell": results.run(row["cell"], collection).select("topic_id", "doc_id", "score")}
            measures, rel = self._design.measures_of(collection), self._design.collection(collection).rel
            values = evaluate(results.qrels(collection), runs, " ".join(measures), Policy(ties="ascending", rel=rel))
            for measure, mean in zip(measures, values.values[0].mean(axis=1), strict=True):
                found[f"{collection}/{measure.replace('@', '_at_')}"] = float(mean)
        return found


def _name(row: dict[str, Any]) -> str:
    parts = (row["model"], row["set"], str(row["size"]), f"seed {row['seed']}", row["variant"])
    return " ".join(part for part in parts if part)
