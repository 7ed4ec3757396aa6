"""A statement about a collection, for a data card or for a machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Final

from truerank.audits.collection.results import CollectionAudit, load_audit
from truerank.core.cards import CardDate, CardStatement, card_head, card_with
from truerank.core.plain import plain
from truerank.core.result import Result, summary
from truerank.loading import text_file
from truerank.options import Flag, command
from truerank.work.artifacts import hash_file

_SCHEMA: Final = "truerank/collection-card/1"


@dataclass(frozen=True, eq=False, repr=False)
class CollectionCard(Result, shown_in="truerank.audits.collection.report"):
    """The statement.

    Attributes:
        content: plain values.
        audit: what it states.
        card: the README with the statement in it; empty for the statement itself.
    """

    content: Mapping[str, Any]
    audit: CollectionAudit
    card: str = ""

    def json(self) -> dict[str, Any]:
        """The statement as plain values."""
        return dict(self.content)


@command
def card(
    audit: Annotated[CollectionAudit | str | Path, Flag(metavar="DIR", reads=str, positional=True)],
    *,
    date: CardDate = None,
    into: Annotated[str | None, Flag(metavar="FILE")] = None,
) -> CollectionCard:
    """States what an audit found in a collection, for a data card or for a machine.

    As text and with --json the statement is one JSON object, as Markdown a section of a README. With a README of
    Hugging Face, that is printed with the statement in it.

    Args:
        audit: the folder that `collection audit` wrote. In Python also an audit.
        date: the date in the statement; by default none, so that the same audit gives the same bytes.
        into: the README of a data set on Hugging Face; it gets a tag, figures in its metadata, and a section.

    Returns:
        The statement.

    Raises:
        InputError: no audit there, the date is none, or the README cannot be read.

    Examples:

        truerank collection card audit/ --format markdown

        truerank collection card audit/ --into README.md
    """
    found = audit if isinstance(audit, CollectionAudit) else load_audit(audit)
    content = {
        **card_head(_SCHEMA, date),
        "verdict": found.verdicts[0].word,
        "verdicts": {verdict.subject: verdict.word for verdict in found.verdicts[1:]},
        "read": dict(found.read),
        "findings": [plain(one.json(), "title", "here", "remedy", "examples") for one in found.findings],
        "looked_for": found.facts["looked_for"],
        "ceilings": found.facts.get("ceilings", []),
    }
    if found.folder is not None:
        content["evidence"] = f"sha256:{hash_file(found.folder / 'findings.parquet')}"
    made = CollectionCard(content, found)
    if into is None:
        return made
    figures = {"verdict": content["verdict"], **content["verdicts"]}
    statement = CardStatement("collection-audit", content["verdict"], summary(made).show("markdown"), figures)
    return replace(made, card=card_with("dataset-card", text_file(into), statement))
