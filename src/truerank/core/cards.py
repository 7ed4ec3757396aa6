"""The card of an audit: a section of a README that says what was checked and what was found."""

from __future__ import annotations

from truerank.core.tables import Table
from truerank.version import __version__


def card(title: str, checked: str, *parts: Table | str) -> str:
    """A section of a README in Markdown, as GitHub and Hugging Face show it.

    Args:
        checked: goes on after "Checked with truerank 1.0": what was read, and by what rule.
        parts: tables and paragraphs of Markdown; empty ones are left out.
    """
    shown = (part.markdown().strip() if isinstance(part, Table) else part for part in parts)
    return "\n\n".join((f"## {title}", f"Checked with truerank {__version__}{checked}", *filter(None, shown))) + "\n"
