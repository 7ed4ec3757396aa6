"""A figure as a report needs it: with the name of its files, and what it shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Picture"]


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
