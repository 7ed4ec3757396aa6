"""Data and model cards of Hugging Face: a statement goes into a README, with a tag and figures in its metadata.

Source: huggingface.co/docs/hub/datasets-cards and model-cards.
"""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from truerank.errors import InputError, OptionError
from truerank.options import Flag
from truerank.version import __version__

CardKind = Literal["dataset-card", "model-card"]
#: The day that a statement names.
CardDate = Annotated[str | None, Flag(metavar="YYYY-MM-DD")]


def card_head(schema: str, date: str | None) -> dict[str, Any]:
    """What every statement begins with: its schema, the version of truerank, and the day where one is given."""
    head = {"schema": schema, "truerank": __version__}
    if date is None:
        return head
    try:
        return head | {"date": datetime.date.fromisoformat(date).isoformat()}
    except ValueError as error:
        raise OptionError("date", f"'{date}' is not a date", "write it as YYYY-MM-DD") from error


@dataclass(frozen=True)
class CardStatement:
    """What an audit says in a card.

    Attributes:
        subject: what was audited, small letters and hyphens ("train-test-leakage"); its tags begin with it.
        verdict: one word.
        section: Markdown.
        figures: plain values for the metadata, under the subject with underscores.
    """

    subject: str
    verdict: str
    section: str
    figures: Any


def card_with(kind: CardKind, readme: str, statement: CardStatement) -> str:
    """A card with a statement; an earlier one on the same subject is replaced, everything else stays."""
    from huggingface_hub import DatasetCard, ModelCard

    # Without metadata of its own the card gets an empty block, so that the library does not warn.
    readme = readme if readme.startswith("---") else f"---\n{{}}\n---\n{readme}"
    try:
        card = (DatasetCard if kind == "dataset-card" else ModelCard)(readme, ignore_metadata_errors=False)
    except Exception as error:  # of YAML, of the metadata, or of the hub's own checks
        reason = " ".join(str(error).split())[:160]
        raise InputError(f"the metadata of the card cannot be read ({reason})", "mend them", where="into") from error
    tags = [tag for tag in card.data.get("tags") or [] if not str(tag).startswith(f"{statement.subject}-")]
    card.data["tags"] = [*tags, f"{statement.subject}-{statement.verdict.lower()}"]
    card.data[statement.subject.replace("-", "_")] = statement.figures
    begin, end = (f"<!-- truerank: {statement.subject}, {word} -->" for word in ("begin", "end"))
    block = f"{begin}\n{statement.section.strip()}\n{end}"
    text = card.text if isinstance(card.text, str) else ""
    earlier = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    if earlier.search(text):
        card.text = earlier.sub(lambda _: block, text, count=1)
    else:
        card.text = f"{text.rstrip()}\n\n{block}\n" if text.strip() else f"{block}\n"
    return str(card)
