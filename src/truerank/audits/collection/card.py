"""A statement about a collection, for a data card or for a machine."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

from truerank.audits.collection.results import CollectionAudit, load_audit
from truerank.errors import OptionError
from truerank.options import Flag, command
from truerank.reports.results import Result
from truerank.version import __version__
from truerank.work.artifacts import hash_file

__all__ = ["CollectionCard", "card"]

_SCHEMA: Final = "truerank/collection-card/1"


@dataclass(frozen=True, eq=False, repr=False)
class CollectionCard(Result, shown_in="truerank.audits.collection.report"):
    """The statement.

    Attributes:
        content: plain values.
        audit: what it states.
    """

    content: Mapping[str, Any]
    audit: CollectionAudit

    def json(self) -> dict[str, Any]:
        """The statement as plain values."""
        return dict(self.content)


@command
def card(
    audit: Annotated[CollectionAudit | str | Path, Flag(metavar="DIR", reads=str, positional=True)],
    *,
    date: Annotated[str | None, Flag(metavar="YYYY-MM-DD")] = None,
) -> CollectionCard:
    """States what an audit found in a collection, for a data card or for a machine.

    As text and with --json the statement is one JSON object, as Markdown a section of a README.

    Args:
        audit: the folder that `collection audit` wrote. In Python also an audit.
        date: the date to state; left out where not given, so that the same audit gives the same bytes.

    Returns:
        The statement.

    Raises:
        InputError: no audit there, or the date is none.

    Examples:

        truerank collection card audit/ --format markdown
    """
    found = audit if isinstance(audit, CollectionAudit) else load_audit(audit)
    content: dict[str, Any] = {"schema": _SCHEMA, "truerank": __version__}
    if date is not None:
        content["date"] = _date(date)
    content |= {
        "verdict": found.verdicts[0].word,
        "verdicts": {verdict.part: verdict.word for verdict in found.verdicts[1:]},
        "read": dict(found.read),
        "findings": [
            {
                "kind": one.kind.name, "part": one.kind.part, "severity": one.kind.severity, "count": one.count,
                "of": one.of, "effect": one.kind.effect,
            }
            for one in found.findings
        ],
        "looked_for": found.facts["looked_for"],
        "ceilings": found.facts.get("ceilings", []),
    }  # fmt: skip
    if found.folder is not None:
        content["evidence"] = f"sha256:{hash_file(found.folder / 'findings.parquet')}"
    return CollectionCard(content, found)


def _date(date: str) -> str:
    try:
        return datetime.date.fromisoformat(date).isoformat()
    except ValueError as error:
        raise OptionError("date", f"'{date}' is no date", "write it as YYYY-MM-DD") from error
