"""How every figure looks: ink that the page replaces, one width, and settings that are not the user's."""

from __future__ import annotations

import os
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from truerank.text.printable import printable

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

#: Written by matplotlib, then replaced in the SVG by what the surrounding page says.
INK: Final = "#1d1c1a"
ACCENT: Final = "#9c3a21"
QUIET: Final = "#8d8a82"
PAGE_COLOURS: Final = {
    INK: "currentColor",
    ACCENT: f"var(--figure-accent, {ACCENT})",
    QUIET: f"var(--figure-quiet, {QUIET})",
}
#: Width of a figure, in inches.
WIDTH: Final = 6.4
#: Letters of a title in a whole figure, and those that the labels of an axis take from it.
_TITLE_LETTERS, _AXIS_LETTERS = 92, 8
_STYLE: Final[dict[str, Any]] = {
    "font.family": ["sans-serif"],
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9.5,
    "text.color": INK,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
    "hatch.linewidth": 0.7,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    # Outlines: a text takes the room that it was given, whatever fonts the reader has.
    "svg.fonttype": "path",
    "pdf.fonttype": 42,
    "pdf.compression": 6,
}
# The settings of matplotlib belong to the process, not to a figure.
_SETTINGS_LOCK = threading.Lock()


@contextmanager
def settings() -> Iterator[None]:
    """Matplotlib as it comes, with this module's style, whatever the user's own settings are."""
    with _SETTINGS_LOCK, _imported().rc_context():
        import matplotlib

        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)
        yield


def _imported() -> ModuleType:
    """Matplotlib, which refuses to be imported where MPLBACKEND names no backend; figures here need none."""
    backend = None if "matplotlib" in sys.modules else os.environ.pop("MPLBACKEND", None)
    import matplotlib

    if backend is not None:
        os.environ["MPLBACKEND"] = backend
        with suppress(ValueError):
            matplotlib.rcParams["backend"] = backend
    return matplotlib


def new_figure(height: float) -> Figure:
    """An empty figure of the usual width; `height` is in inches."""
    # Imported here and not above: half of the commands draw nothing, and should not wait for it.
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    # A canvas of outlines: what is measured for the layout is as wide as what is drawn, which pixels are not.
    figure = Figure(figsize=(WIDTH, height), layout="constrained", dpi=72)
    FigureCanvasSVG(figure)
    return figure


def new_grid(number: int, columns: int, height: Callable[[int], float], **shared: Any) -> tuple[Figure, NDArray[Any]]:
    """An empty figure with so many plots beside and below each other; places that are left over stay blank."""
    columns = max(1, min(columns, number))
    rows = max(1, -(-number // columns))
    figure = new_figure(height(rows))
    plots: NDArray[Any] = figure.subplots(rows, columns, squeeze=False, **shared)
    for axes in plots.ravel()[number:]:
        axes.set_axis_off()
    return figure, plots


def plot_title(axes: Any, title: str, columns: int = 1) -> None:
    """Sets the title of a plot of so many beside each other; its lines end where the plot does."""
    lines = (textwrap.fill(line, _TITLE_LETTERS // columns - _AXIS_LETTERS) for line in title.splitlines())
    axes.set_title(plain("\n".join(lines)), loc="left", fontsize=8.5)


def plain(text: str) -> str:
    """The text without the signs that matplotlib reads as mathematics, and without those that no font has."""
    return printable(text).replace("$", r"\$")
