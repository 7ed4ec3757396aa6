"""Progress of long work, shown on a terminal's stderr and nowhere else."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Protocol

__all__ = ["Progress", "Quiet", "Terminal", "terminal_progress"]


class Progress(Protocol):
    """What long work tells about itself."""

    def start(self, what: str, total: int | None = None) -> None:
        """A stage begins; `total` is its number of items, if known."""

    def advance(self, items: int) -> None:
        """So many more items are done."""

    def status(self, text: str) -> None:
        """What the current stage is about just now, in place of its name."""

    def note(self, text: str) -> None:
        """Something that the user should know."""


class Quiet:
    """Shows nothing."""

    def start(self, what: str, total: int | None = None) -> None:
        """Shows nothing."""

    def advance(self, items: int) -> None:
        """Shows nothing."""

    def status(self, text: str) -> None:
        """Shows nothing."""

    def note(self, text: str) -> None:
        """Shows nothing."""


class Terminal:
    """A bar with count, rate and remaining time for every stage; use `terminal_progress`."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            SpinnerColumn,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )
        from rich.progress import Progress as Bars

        self.console = Console(stderr=True)
        self.bars = Bars(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=self.console,
        )
        self._stage: int | None = None

    def start(self, what: str, total: int | None = None) -> None:
        """Ends the bar of the stage before and opens one for this."""
        self.finish()
        self._stage = int(self.bars.add_task(what, total=total, rate=""))

    def advance(self, items: int) -> None:
        """Moves the bar."""
        if self._stage is None:
            return
        self.bars.advance(self._stage, items)  # type: ignore[arg-type]
        task = self.bars.tasks[self._stage]
        if task.speed:
            self.bars.update(self._stage, rate=f"{task.speed:,.0f}/s")  # type: ignore[arg-type]

    def status(self, text: str) -> None:
        """Writes the text in front of the bar."""
        if self._stage is not None:
            self.bars.update(self._stage, description=text)  # type: ignore[arg-type]

    def note(self, text: str) -> None:
        """Prints a line above the bars."""
        self.console.print(text, markup=False, highlight=False)

    def finish(self) -> None:
        """Marks the current stage as done."""
        if self._stage is None:
            return
        task = self.bars.tasks[self._stage]
        self.bars.update(self._stage, total=task.completed)  # type: ignore[arg-type]
        self._stage = None


@contextlib.contextmanager
def terminal_progress(show: bool | None = None) -> Iterator[Progress]:
    """Bars on stderr if it is a terminal (or as `show` says), otherwise nothing."""
    if not (sys.stderr.isatty() if show is None else show):
        yield Quiet()
        return
    terminal = Terminal()
    with terminal.bars:
        yield terminal
        terminal.finish()
