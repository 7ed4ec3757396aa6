"""Figures as SVG and PDF whose bytes depend on the figure alone, and pictures that pages and notebooks show."""

from __future__ import annotations

import hashlib
import io
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from truerank.core.figures.style import PAGE_COLOURS, settings
from truerank.core.tables import escape_html

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_XML: Final = '<?xml version="1.0" encoding="UTF-8"?>\n'
_SIZE: Final = re.compile(r'<svg width="[^"]*" height="[^"]*" ')
_METADATA: Final = re.compile(r"\s*<metadata>.*?</metadata>", re.DOTALL)
_PROLOGUE: Final = re.compile(r"^.*?(?=<svg )", re.DOTALL)
_DEFINED: Final = re.compile(r'\bid="([^"]+)"')
_USED: Final = re.compile(r'((?:xlink:)?href="#|url\(#)([^")]+)')
_GLOBAL_STYLE: Final = re.compile(r"\s*<defs>\s*<style.*?</style>\s*</defs>", re.DOTALL)
_FONT: Final = re.compile(r"'DejaVu Sans'(, sans-serif)*")
_OPENING: Final = re.compile(r"<svg [^>]*?viewBox=\"([^\"]+)\"[^>]*>")


def to_svg(figure: Figure, *, name: str, description: str) -> str:
    """The figure as an inert SVG element for a page: no prologue, date, script or reference to the outside."""
    return page_svg(to_svg_file(figure, name=name, description=description))


def page_svg(file: str) -> str:
    """What `to_svg_file` wrote as an element for a page: it fills its place and takes its ink from around it."""
    svg = _SIZE.sub("<svg ", file.removeprefix(_XML), count=1)
    for ink, colour in PAGE_COLOURS.items():
        svg = svg.replace(ink, colour)
    return svg


def to_svg_file(figure: Figure, *, name: str, description: str) -> str:
    """The figure as an SVG file of its own, with colours that any program understands, on no background."""
    width, height = (f"{inches * 72:g}pt" for inches in figure.get_size_inches())
    svg = _element(figure, name, description)
    return _XML + svg.replace("<svg ", f'<svg width="{width}" height="{height}" ', 1)


def to_files(figure: Figure, *, name: str, description: str) -> tuple[str, bytes]:
    """The figure as an SVG file and as PDF; it is laid out once and keeps that layout.

    Returns:
        The text of the SVG file and the bytes of the PDF; equal figures and names give equal ones.
    """
    svg = to_svg_file(figure, name=name, description=description)
    figure.set_layout_engine("none")
    return svg, to_pdf(figure)


def to_pdf(figure: Figure) -> bytes:
    """The figure as PDF without dates; the same figure gives the same bytes."""
    out = io.BytesIO()
    with settings():
        metadata = dict.fromkeys(("CreationDate", "ModDate", "Creator", "Producer"))
        figure.savefig(out, format="pdf", metadata=metadata)
    return out.getvalue()


def _element(figure: Figure, name: str, description: str) -> str:
    out = io.StringIO()
    import matplotlib

    with settings():
        matplotlib.rcParams["svg.hashsalt"] = name
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    svg = _METADATA.sub("", _PROLOGUE.sub("", out.getvalue()))
    svg = _GLOBAL_STYLE.sub("", svg)
    svg = _USED.sub(rf"\1{name}-\2", _DEFINED.sub(rf'id="{name}-\1"', svg))
    label = escape_html(" ".join(description.split()))

    def opening(match: re.Match[str]) -> str:
        return (
            '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
            f'viewBox="{match[1]}" role="img" aria-label="{label}" '
            'style="stroke-linejoin: round; stroke-linecap: butt">'
        )

    return _OPENING.sub(opening, _FONT.sub("sans-serif", svg), count=1).strip() + "\n"


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
