"""What a scan found: scores of every version, candidates, data sets, and the files they lie in."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import polars as pl

from truerank.audits.transfer.scanning.candidates import CANDIDATE_SCHEMA, SET_SCHEMA
from truerank.audits.transfer.scanning.options import AGGREGATIONS
from truerank.errors import InputError
from truerank.records import Input
from truerank.reports.tables import Cell, Column, Table
from truerank.text.page_faults import REASONS
from truerank.work.artifacts import hash_file

__all__ = ["LOW", "SCORES_SCHEMA", "SKIPPED_SCHEMA", "VERY", "Scan", "curves", "load_scan", "scan_inputs"]

#: One row per judged document and version that has it; `first` and `max` are probabilities, or with a percentile the
#: ranker's scores again.
SCORES_SCHEMA: Final[dict[str, Any]] = {
    "row": pl.UInt32,
    "topic_id": pl.String,
    "query": pl.String,
    "doc_id": pl.String,
    "relevance": pl.Int32,
    "version": pl.String,
    "version_doc_id": pl.String,
    "url": pl.String,
    "passages": pl.UInt32,
    "best": pl.UInt32,
    "first_score": pl.Float64,
    "max_score": pl.Float64,
    "first": pl.Float64,
    "max": pl.Float64,
}
SKIPPED_SCHEMA: Final[dict[str, Any]] = {"topic_id": pl.String, "doc_id": pl.String, "reason": pl.String}
_FILES: Final[Mapping[str, Mapping[str, Any]]] = {
    "scores": SCORES_SCHEMA,
    "candidates": CANDIDATE_SCHEMA,
    "sets": SET_SCHEMA,
    "skipped": SKIPPED_SCHEMA,
}
#: Below this probability a judged document looks like an error (the paper's Figure 1).
LOW: Final = 0.1
#: The paper counts the differences above it on their own (section 4).
VERY: Final = 0.95


@dataclass(frozen=True, eq=False)
class Scan:
    """What a scan found.

    Attributes:
        scores: columns as in `SCORES_SCHEMA`.
        candidates: columns as in `candidates.CANDIDATE_SCHEMA`.
        sets: columns as in `candidates.SET_SCHEMA`.
        skipped: judged documents that could not be compared, and why; columns as in `SKIPPED_SCHEMA`.
        summary: what `summary.json` holds.
        folder: where the files lie.
    """

    scores: pl.DataFrame
    candidates: pl.DataFrame
    sets: pl.DataFrame
    skipped: pl.DataFrame
    summary: Mapping[str, Any]
    folder: Path | None = None

    @property
    def versions(self) -> tuple[str, ...]:
        """The names, that of the judged version first."""
        return tuple(self.summary["versions"])

    @property
    def set_names(self) -> tuple[str, ...]:
        """The data sets, also empty ones."""
        return tuple(self.summary["sets"])

    def table(self) -> Table:
        """The data sets: documents, those that differ most, and the classes of reasons."""
        present = [name for name in REASONS if any(name in one["reasons"] for one in self.summary["sets"].values())]
        rows: list[tuple[Cell, ...]] = [
            (
                name,
                one["documents"],
                one["very"] if one["aggregation"] else None,
                *(one["reasons"].get(reason, 0) if one["aggregation"] else None for reason in present),
            )
            for name, one in self.summary["sets"].items()
        ]
        number: dict[str, Any] = {"align": "right", "format": ",d"}
        very = f"> {VERY:g}" if self.summary["percentile"] is None else "twice the cut-off"
        return Table(
            f"Judged documents that one version answers and the other, it seems, does not ({self._cut_off()}).",
            (
                Column("set"),
                Column("documents", **number),
                Column(very, **number),
                *(Column(reason, ("why, by the texts",), **number) for reason in present),
            ),
            tuple(rows),
            notes=tuple(self.summary["notes"]),
        )

    def below(self) -> Table:
        """The share of judged documents below 0.1, by version and aggregation (Figure 1)."""
        rows = []
        for name, one in self.summary["below"].items():
            shares = (100 * one[aggregation]["share"] for aggregation in AGGREGATIONS)
            rows.append((name, one["documents"], *shares))
        share = {"align": "right", "format": ".2f"}
        return Table(
            f"Judged documents whose probability of being relevant is below {LOW:g}, in percent.",
            (
                Column("version"),
                Column("documents", align="right", format=",d"),
                *(Column(label, **share) for label in AGGREGATIONS.values()),  # type: ignore[arg-type]
            ),
            tuple(rows),
        )

    def json(self) -> dict[str, Any]:
        """The summary."""
        return dict(self.summary)

    def text(self) -> str:
        """The tables for a terminal."""
        parts = [self.table().text(110)]
        if self.summary["below"]:
            parts.append(self.below().text(110))
        skipped = self.summary["skipped"]
        if skipped:
            told = "; ".join(f"{count:,d}: {reason}" for reason, count in skipped.items())
            parts.append(f"Not compared: {told}\n")
        return "\n".join(parts)

    def _cut_off(self) -> str:
        cuts = self.summary["cut_off"]
        if self.summary["percentile"] is None:
            return f"difference above {cuts['max']:g}"
        told = ", ".join(f"{label} {cuts[name]:g}" for name, label in AGGREGATIONS.items())
        return f"difference above percentile {self.summary['percentile']:g}: {told}"


def load_scan(folder: str | Path) -> Scan:
    """Opens the folder that `transfer scan --out` wrote.

    Raises:
        InputError: a file is missing or broken.
    """
    folder = Path(folder)
    try:
        summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
        scores, candidates, sets, skipped = (
            pl.read_parquet(folder / f"{name}.parquet", glob=False).select(list(schema))
            for name, schema in _FILES.items()
        )
        if not isinstance(summary["sets"], dict) or not summary["versions"]:
            raise ValueError("summary.json is of something else")
    except (OSError, ValueError, KeyError, TypeError, pl.exceptions.PolarsError) as error:
        reason = getattr(error, "strerror", None) or str(error).partition("\n")[0]
        fault = f"not the folder of a scan ({reason})"
        raise InputError(fault, "give the folder that 'truerank transfer scan' wrote", where=folder) from error
    return Scan(scores, candidates, sets, skipped, summary, folder)


def scan_inputs(scan: Scan | None, table: str) -> tuple[Input, ...]:
    """A scan as a manifest names it, with the hash of one of its tables; nothing where there is none.

    Args:
        scan: the scan; what lies in memory only has no hash.
        table: "scores" or "candidates".
    """
    if scan is None or scan.folder is None:
        return () if scan is None else (Input("scan", "", "scan", len(scan.scores)),)
    digest = hash_file(scan.folder / f"{table}.parquet")
    return (Input(scan.folder.name, str(scan.folder), "scan", len(scan.scores), digest),)


def curves(scan: Scan, best: Mapping[str, tuple[str, ...]]) -> Iterator[tuple[str, pl.DataFrame]]:
    """The distributions of Figure 1: each version's judged documents, and the best of several versions.

    Yields:
        A name, and columns `first` and `max`. The best of several is over the documents that all of them have.
    """
    for version in scan.versions:
        yield version, scan.scores.filter(pl.col("version") == version).select("first", "max")
    for name, versions in best.items():
        some = scan.scores.filter(pl.col("version").is_in(list(versions)))
        grouped = some.group_by("row", maintain_order=True).agg(pl.len(), pl.col("first").max(), pl.col("max").max())
        yield name, grouped.filter(pl.col("len") == len(versions)).select("first", "max")
