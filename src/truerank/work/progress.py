"""Progress of long work, on stderr: bars on a terminal, otherwise a line now and then."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterator
from typing import Final, Protocol, TextIO

from truerank.core.tables import escape_html
from truerank.errors import InputError
from truerank.options import watcher
from truerank.text.printable import printable

#: Seconds between two lines where there is no terminal.
_EVERY: Final = 60.0
#: Seconds between two drawings of a notebook's bar.
_REDRAWN: Final = 0.2


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
        self._stage = int(self.bars.add_task(self._unmarked(what), total=total, rate=""))

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
            self.bars.update(self._stage, description=self._unmarked(text))  # type: ignore[arg-type]

    @staticmethod
    def _unmarked(text: str) -> str:
        """A text that may hold characters of the input; nothing in it is markup."""
        from rich.markup import escape

        return escape(printable(text))

    def note(self, text: str) -> None:
        """Prints a line above the bars."""
        self.console.print(printable(text), markup=False, highlight=False)

    def finish(self) -> None:
        """Marks the current stage as done."""
        if self._stage is None:
            return
        task = self.bars.tasks[self._stage]
        self.bars.update(self._stage, total=task.completed)  # type: ignore[arg-type]
        self._stage = None


class NotebookProgress:
    """A bar for every stage below the cell of a notebook that runs; give it as `progress`."""

    def __init__(self) -> None:
        try:
            from IPython.display import display
        except ImportError as error:
            raise InputError("there is no notebook here", "leave out `progress`, or install ipykernel") from error
        self._what, self._done, self._notes = "", 0, ""
        self._total: int | None = None
        self._shown = display(self, display_id=True)
        self._last = time.monotonic()

    def start(self, what: str, total: int | None = None) -> None:
        """Begins a new bar."""
        self._what, self._done, self._total = what, 0, total
        self._show()

    def advance(self, items: int) -> None:
        """Moves the bar."""
        self._done += items
        if time.monotonic() - self._last > _REDRAWN or self._done == self._total:
            self._show()

    def status(self, text: str) -> None:
        """Writes the text in front of the bar."""
        self._what = text
        self._show()

    def note(self, text: str) -> None:
        """Keeps a line below the bar."""
        self._notes += f"<br>{escape_html(printable(text))}"
        self._show()

    def _show(self) -> None:
        self._last = time.monotonic()
        if self._shown is not None:
            self._shown.update(self)

    def __repr__(self) -> str:
        if self._total is None:
            return f"{self._what}: {self._done:,}" if self._done else self._what
        return f"{self._what}: {self._done:,} of {self._total:,}"

    def _repr_html_(self) -> str:
        bar = "" if self._total is None else f' <progress value="{self._done}" max="{self._total}"></progress>'
        return f"{escape_html(printable(repr(self)))}{bar}{self._notes}"


class ProgressLines:
    """A line every minute that says how far the work is, for logs; work of less than a minute writes none.

    Args:
        stream: where lines go.
        every: seconds between two lines.
        patient: notes wait for the first line, too.
    """

    def __init__(self, stream: TextIO, every: float = _EVERY, *, patient: bool = False) -> None:
        self._stream, self._every = stream, every
        self._waits, self._notes = patient, ""
        self._what, self._done = "working", 0
        self._total: int | None = None
        self._begun = time.monotonic()
        self._end = threading.Event()
        # A thread, because some stages work for minutes without saying anything.
        self._thread = threading.Thread(target=self._tell, name="progress", daemon=True)
        self._thread.start()

    def start(self, what: str, total: int | None = None) -> None:
        """Remembers the stage."""
        self._what, self._done, self._total = what, 0, total

    def advance(self, items: int) -> None:
        """Counts."""
        self._done += items

    def status(self, text: str) -> None:
        """Remembers what the stage is about."""
        self._what = text

    def note(self, text: str) -> None:
        """Writes a line at once, or before the first line of a patient one."""
        if self._waits:
            self._notes += f"{text}\n"
        else:
            self._write(text)

    def finish(self) -> None:
        """Writes no further line."""
        self._end.set()
        self._thread.join()

    def _tell(self) -> None:
        while not self._end.wait(self._every):
            count = f", {self._done:,}" if self._done or self._total is not None else ""
            of = f" of {self._total:,}" if self._total is not None else ""
            self._waits, notes, self._notes = False, self._notes, ""
            seconds = int(time.monotonic() - self._begun)
            self._write(f"{notes}{self._what}{count}{of} ({seconds // 60} min {seconds % 60} s)")

    def _write(self, text: str) -> None:
        # A log that has gone, or is full, is no reason to end the work.
        with contextlib.suppress(OSError, ValueError):
            self._stream.write(printable(f"{text}\n"))
            self._stream.flush()


@watcher
@contextlib.contextmanager
def line_progress(patient: bool = True) -> Iterator[Progress]:
    """Lines on stderr for work of more than a minute; where Python calls, notes wait as long, too."""
    lines = ProgressLines(sys.stderr, every=_EVERY, patient=patient)
    try:
        yield lines
    finally:
        lines.finish()


@contextlib.contextmanager
def terminal_progress(show: bool | None = None) -> Iterator[Progress]:
    """Bars on stderr if it is a terminal, otherwise lines; `show` False shows nothing, True bars in any case."""
    if show is False:
        yield Quiet()
        return
    if show is None and not sys.stderr.isatty():
        with line_progress(patient=False) as lines:
            yield lines
        return
    terminal = Terminal()
    with terminal.bars:
        yield terminal
        terminal.finish()
