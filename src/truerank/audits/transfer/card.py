"""A statement about judgments and versions that machines can read, and its Markdown for a data card."""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import truerank
from truerank.audits.transfer.estimating import Estimates, estimate_errors
from truerank.audits.transfer.scanning.options import AGGREGATIONS
from truerank.audits.transfer.scanning.results import Scan, load_scan
from truerank.errors import InputError
from truerank.judging.ratings import RatingSource
from truerank.judging.votes import Votes
from truerank.reports.tables import escape_markdown
from truerank.work.artifacts import hash_file

__all__ = ["TransferCard", "transfer_card"]

_SCHEMA: Final = "truerank/transfer-card/1"


@dataclass(frozen=True)
class TransferCard:
    """The statement.

    Attributes:
        content: plain values.
        scan: what it states.
        estimates: of errors, where people judged.
    """

    content: Mapping[str, Any]
    scan: Scan
    estimates: Estimates | None

    def json(self) -> dict[str, Any]:
        """The statement as plain values."""
        return dict(self.content)

    def text(self) -> str:
        """The statement as JSON text."""
        return json.dumps(self.content, indent=2, ensure_ascii=False)

    def markdown(self) -> str:
        """A section for a README, as GitHub and Hugging Face show it."""
        content = self.content
        date = f" on {content['date']}" if "date" in content else ""
        names = ", ".join(escape_markdown(name) for name in content["versions"])
        parts = [
            "## Judgments and versions of the documents",
            f"Checked with truerank {content['truerank']}{date}: {content['compared']:,d} judged documents in the "
            f"versions {names}, scored by {escape_markdown(content['ranker'])} "
            f"({escape_markdown(content['policy'])} passages).",
            self.scan.table().markdown().strip(),
        ]
        if self.scan.summary["below"]:
            parts.append(self.scan.below().markdown().strip())
        if self.estimates is not None:
            parts.append(self.estimates.table().markdown().strip())
        else:
            parts.append("Nobody judged these candidates: they are no errors yet.")
        return "\n\n".join(parts) + "\n"


def transfer_card(
    scan: Scan | str | Path, *, labels: RatingSource | None = None, votes: Votes = "majority", date: str | None = None
) -> TransferCard:
    """States what a scan found.

    Args:
        scan: the scan, or its folder.
        labels: what people said about its data sets; None where nobody judged.
        votes: how one answer is made of several voices, see `judging.VOTES`.
        date: YYYY-MM-DD; left out where not given, so that the same scan gives the same bytes.

    Raises:
        InputError: no scan there, the date is none, or labels cannot be read.
    """
    opened = scan if isinstance(scan, Scan) else load_scan(scan)
    summary = opened.summary
    content: dict[str, Any] = {"schema": _SCHEMA, "truerank": truerank.__version__}
    if date is not None:
        content["date"] = _date(date)
    content |= {
        "versions": list(opened.versions),
        "ranker": summary["ranker"]["name"],
        "policy": summary["policy"],
        "probability": summary["probability"],
        "cut_off": summary["cut_off"],
        "judged": summary["judged"],
        "compared": summary["compared"],
        "skipped": summary["skipped"],
        "sets": {
            name: {key: value for key, value in one.items() if key != "very"} for name, one in summary["sets"].items()
        },
        "below_0.1": {
            name: {label: one[key]["share"] for key, label in AGGREGATIONS.items()}
            for name, one in summary["below"].items()
        },
    }
    estimates = None if labels is None else estimate_errors(labels, opened, votes=votes)
    if estimates is not None:
        content["estimates"] = estimates.json()
    if opened.folder is not None:
        content["candidates"] = f"sha256:{hash_file(opened.folder / 'candidates.parquet')}"
    return TransferCard(content, opened, estimates)


def _date(date: str) -> str:
    try:
        return datetime.date.fromisoformat(date).isoformat()
    except ValueError as error:
        raise InputError(f"'{date}' is no date", "write it as YYYY-MM-DD", where="--date") from error
