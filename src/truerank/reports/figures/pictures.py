"""A figure as a report needs it: with the name of its files, and what it shows."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from truerank.reports.figures.export import to_svg
from truerank.reports.tables import escape_html

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False)
class Picture:
    """A figure with its name (of files, and in the page), its caption, and the section of the page it belongs to.

    `screen` says where the page shows it: everywhere, or on a wide or narrow screen only, where it has two layouts.
    """

    name: str
    caption: str
    figure: Figure
    section: str = ""
    screen: Literal["every", "wide", "narrow"] = "every"

    def _repr_html_(self) -> str:
        drawn = to_svg(self.figure, name=self.name, description=self.caption)
        # One notebook may show several figures of one name, but no id twice.
        name = f"{self.name}-{hashlib.sha256(drawn.encode()).hexdigest()[:8]}"
        for sign in ('id="', "#"):
            drawn = drawn.replace(f"{sign}{self.name}-", f"{sign}{name}-")
        caption = escape_html(self.caption)
        return f'<figure style="max-width: 50rem">\n{drawn}<figcaption>{caption}</figcaption>\n</figure>'
