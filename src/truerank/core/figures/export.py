"""Figures as SVG and PDF whose bytes depend on the figure alone, and pictures that pages and notebooks show."""

from __future__ import annotations

import hashlib
import io
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

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
    svg = _element(figure, name, description)
    width, height = _OPENING.match(svg)[1].split()[2:]  # type: ignore[index]
    return _XML + svg.replace("<svg ", f'<svg width="{width}pt" height="{height}pt" ', 1)


def to_files(figure: Figure, *, name: str, description: str) -> tuple[str, bytes]:
    """The figure as an SVG file and as PDF; it is laid out once and keeps that layout.

    Returns:
        The text of the SVG file and the bytes of the PDF; equal figures and names give equal ones.
    """
    return to_svg_file(figure, name=name, description=description), to_pdf(figure)


def to_pdf(figure: Figure) -> bytes:
    """The figure as PDF without dates; the same figure gives the same bytes."""
    out = io.BytesIO()
    with settings():
        metadata = dict.fromkeys(("CreationDate", "ModDate", "Creator", "Producer"))
        figure.savefig(out, format="pdf", metadata=metadata, bbox_inches=_frame(figure))
    return out.getvalue()


def _element(figure: Figure, name: str, description: str) -> str:
    out = io.StringIO()
    import matplotlib

    with settings():
        matplotlib.rcParams["svg.hashsalt"] = name
        metadata = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        figure.savefig(out, format="svg", metadata=metadata, bbox_inches=_frame(figure))
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

    return _OPENING.sub(opening, svg, count=1).strip() + "\n"


def _frame(figure: Figure) -> Any:
    """What is saved, in inches: the figure, and whatever reaches beyond it, such as a title wider than its plot."""
    from matplotlib.transforms import Bbox

    if (engine := figure.get_layout_engine()) is not None:
        # It is laid out once, and keeps that.
        engine.execute(figure)
        figure.set_layout_engine("none")
    return Bbox.union([figure.bbox_inches, figure.get_tightbbox()])


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
