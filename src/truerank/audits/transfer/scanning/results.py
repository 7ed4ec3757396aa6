"""What a scan found: scores of every version, candidates, data sets, and the files they lie in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final

import polars as pl

from truerank.arrays import frame_schema
from truerank.audits.transfer.matching.versions import Matched
from truerank.audits.transfer.scanning.candidates import CANDIDATE_SCHEMA, SET_SCHEMA
from truerank.audits.transfer.scanning.options import directions
from truerank.core.result import Result
from truerank.loading import json_file
from truerank.options import Flag
from truerank.records import Input
from truerank.work.artifacts import hash_file, read_table, written_by

#: One row per judged document and version that has it; `first` and `max` are probabilities, or with a percentile the
#: ranker's scores again.
SCORES_SCHEMA: Final[dict[str, Any]] = frame_schema(
    "row: UInt32, topic_id query doc_id: String, relevance: Int32, version version_doc_id url: String, passages "
    "best: UInt32, first_score max_score first max: Float64"
)
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


@dataclass(frozen=True, eq=False, repr=False)
class Scan(Result, shown_in="truerank.audits.transfer.scanning.report"):
    """What a scan found.

    Attributes:
        scores: columns as in `SCORES_SCHEMA`.
        candidates: columns as in `candidates.CANDIDATE_SCHEMA`.
        sets: columns as in `candidates.SET_SCHEMA`.
        skipped: judged documents that could not be compared, and why; columns as in `SKIPPED_SCHEMA`.
        summary: what `summary.json` holds.
        folder: where the files lie.
        texts: the files of `DocumentTexts` by version, while the scan is written; afterwards none.
        links: how the versions were matched.
    """

    scores: pl.DataFrame
    candidates: pl.DataFrame
    sets: pl.DataFrame
    skipped: pl.DataFrame
    summary: Mapping[str, Any]
    folder: Path | None = None
    texts: Mapping[str, Path] = field(default_factory=dict)
    links: Matched | None = field(default=None, compare=False)

    @property
    def versions(self) -> tuple[str, ...]:
        """The names, that of the judged version first."""
        return tuple(self.summary["versions"])

    @property
    def set_names(self) -> tuple[str, ...]:
        """The data sets, also empty ones."""
        return tuple(self.summary["sets"])

    def sides(self) -> Iterator[tuple[str, str, pl.DataFrame]]:
        """The better and the worse version of each comparison in both directions, and its candidates."""
        for better, worse in directions(self.summary["pairs"]):
            yield better, worse, self.candidates.filter((pl.col("better") == better) & (pl.col("worse") == worse))

    def json(self) -> dict[str, Any]:
        """The summary."""
        return dict(self.summary)


def load_scan(folder: str | Path) -> Scan:
    """Opens the folder that `transfer scan --out` wrote.

    Raises:
        InputError: a file is missing or broken.
    """
    folder = Path(folder)
    with written_by("transfer scan", folder, "summary.json", *(f"{name}.parquet" for name in _FILES)):
        summary = json_file(folder / "summary.json")
        scores, candidates, sets, skipped = (
            read_table(folder / f"{name}.parquet", schema) for name, schema in _FILES.items()
        )
        if not isinstance(summary["sets"], dict) or not summary["versions"]:
            raise ValueError("summary.json is of something else")
    return Scan(scores, candidates, sets, skipped, summary, folder)


#: The option that names a scan.
ScanFolder = Annotated[Scan | str | Path, Flag(metavar="DIR", positional=True, reads=str)]


def scan_inputs(scan: Scan | None, table: str) -> tuple[Input, ...]:
    """A scan as a manifest names it, with the hash of one of its tables; nothing where there is none."""
    if scan is None or scan.folder is None:
        return () if scan is None else (Input("scan", "", "scan", len(scan.scores)),)
    digest = hash_file(scan.folder / f"{table}.parquet")
    return (Input(scan.folder.name, str(scan.folder), "scan", len(scan.scores), digest),)


def curves(scan: Scan) -> Iterator[tuple[str, pl.DataFrame]]:
    """The distributions of Figure 1: each version's judged documents, and the best of several versions."""
    for version in scan.versions:
        yield version, scan.scores.filter(pl.col("version") == version).select("first", "max")
    for name, versions in scan.summary.get("best", {}).items():
        some = scan.scores.filter(pl.col("version").is_in(versions))
        grouped = some.group_by("row", maintain_order=True).agg(pl.len(), pl.col("first").max(), pl.col("max").max())
        yield name, grouped.filter(pl.col("len") == len(versions)).select("first", "max")
