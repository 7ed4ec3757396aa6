"""A statement about judgments and versions, for a data card or for a machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from truerank.audits.transfer.estimating import Estimates, estimate
from truerank.audits.transfer.scanning.options import AGGREGATIONS
from truerank.audits.transfer.scanning.results import Scan, ScanFolder, load_scan
from truerank.options import Labels, command
from truerank.reports.cards import CardDate, card_head
from truerank.reports.results import Result
from truerank.work.artifacts import hash_file

_SCHEMA: Final = "truerank/transfer-card/1"


@dataclass(frozen=True, eq=False, repr=False)
class TransferCard(Result, shown_in="truerank.audits.transfer.report"):
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


@command
def card(
    scan: ScanFolder,
    *,
    judged: Labels = Labels(),
    date: CardDate = None,
) -> TransferCard:
    """Prints a statement about judgments and versions: Markdown for a data card, or JSON for a machine.

    Args:
        scan: the folder that `transfer scan` wrote. In Python also what it returned.
        judged: what was said about its data sets; then the card states the estimated errors, too.
        date: the date to state; left out where not given, so that the same scan gives the same bytes.

    Returns:
        The statement.

    Raises:
        InputError: no scan there, the date is none, or labels cannot be read.

    Examples:

        truerank transfer card scan/ --labels versions.judged >> README.md
    """
    opened = scan if isinstance(scan, Scan) else load_scan(scan)
    summary = opened.summary
    content = {
        **card_head(_SCHEMA, date),
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
    estimates = estimate(opened, judged) if judged else None
    if estimates is not None:
        content["estimates"] = estimates.json()
    if opened.folder is not None:
        content["candidates"] = f"sha256:{hash_file(opened.folder / 'candidates.parquet')}"
    return TransferCard(content, opened, estimates)
