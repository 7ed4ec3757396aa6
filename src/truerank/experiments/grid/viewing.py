"""What a user sees of a running grid: a live table on a terminal, plain lines elsewhere, or nothing."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator
from typing import Any, Final, Protocol, TextIO

from truerank.experiments.grid.costs import CostEstimate
from truerank.experiments.grid.planning import Work
from truerank.experiments.grid.working import TrainingOutcome
from truerank.work.progress import Progress, Quiet

_EVERY_SECONDS: Final = 15.0


class GridView(Progress, Protocol):
    """What a grid tells about itself: the stages before it, and each training as it begins and ends."""

    def running(self, estimate: CostEstimate) -> contextlib.AbstractContextManager[None]:
        """Inside, trainings begin and end."""

    def began(self, work: Work) -> None:
        """A training was handed to a worker."""

    def ended(self, work: Work, outcome: TrainingOutcome) -> None:
        """A training ended, well or not."""


class NoView(Quiet):
    """Shows nothing."""

    @contextlib.contextmanager
    def running(self, estimate: CostEstimate) -> Iterator[None]:
        """Shows nothing."""
        yield

    def began(self, work: Work) -> None:
        """Shows nothing."""

    def ended(self, work: Work, outcome: TrainingOutcome) -> None:
        """Shows nothing."""


class Tally:
    """Counts by model, and how long the rest will take.

    Args:
        estimate: made before the grid started; what was measured since corrects it.
    """

    def __init__(self, estimate: CostEstimate) -> None:
        self._estimate = estimate
        self.left = {one.model: one.trainings for one in estimate.models}
        self.done = dict.fromkeys(self.left, 0)
        self.failed = dict.fromkeys(self.left, 0)
        self.working = dict.fromkeys(self.left, 0)
        self.seconds = dict.fromkeys(self.left, 0.0)
        self._expected = {one.model: one.hours * 3600 / max(1, one.trainings) for one in estimate.models}

    def began(self, work: Work) -> None:
        """One more at work."""
        name = work.training.model.name
        self.working[name] += 1
        self.left[name] -= 1

    def ended(self, work: Work, outcome: TrainingOutcome) -> None:
        """One less at work."""
        name = work.training.model.name
        self.working[name] -= 1
        self.failed[name] += bool(outcome.reason)
        self.done[name] += not outcome.reason
        self.seconds[name] += outcome.spent.training + outcome.spent.scoring

    def each(self, model: str) -> float:
        """Seconds of a training of a model, so far."""
        return self.seconds[model] / self.done[model] if self.done[model] else self._expected[model]

    def remaining(self) -> float:
        """Seconds until all is done; what is at work counts half."""
        rest = sum((self.left[name] + self.working[name] / 2) * self.each(name) for name in self.left)
        return rest / self._estimate.workers

    def sentence(self) -> str:
        """The counts as one line."""
        done, failed, working = (sum(counts.values()) for counts in (self.done, self.failed, self.working))
        parts = [f"{done:,} of {self._estimate.left:,} runs done"]
        parts += [f"{failed:,} failed"] if failed else []
        parts += [f"{working:,} at work", f"about {_clock(self.remaining())} left"]
        return ", ".join(parts)


class Lines(NoView):
    """A line now and then, where no terminal is.

    Args:
        stream: where to.
        every: seconds between lines.
    """

    def __init__(self, stream: TextIO, every: float = _EVERY_SECONDS) -> None:
        self._stream, self._every = stream, every
        self._tally: Tally | None = None
        self._last = time.monotonic()

    @contextlib.contextmanager
    def running(self, estimate: CostEstimate) -> Iterator[None]:
        """Begins with the cost, ends with the counts."""
        self.note(estimate.sentence())
        self._tally = Tally(estimate)
        try:
            yield
        finally:
            if estimate.left:
                self.note(self._tally.sentence())

    def note(self, text: str) -> None:
        """Writes a line."""
        self._stream.write(text + "\n")
        self._stream.flush()

    def began(self, work: Work) -> None:
        """Counts."""
        if self._tally is not None:
            self._tally.began(work)

    def ended(self, work: Work, outcome: TrainingOutcome) -> None:
        """Counts; writes what failed at once, and how far it is now and then."""
        if self._tally is None:
            return
        self._tally.ended(work, outcome)
        if outcome.reason:
            self.note(f"failed: {_named(work)}: {outcome.reason}")
        if time.monotonic() - self._last >= self._every:
            self._last = time.monotonic()
            self.note(self._tally.sentence())


class LiveTable(Lines):
    """A table of the models that changes in place, with a bar below it."""

    def __init__(self, console: Any) -> None:
        super().__init__(console.file)
        self._console = console
        self._live: Any = None
        self._stage = ""

    def start(self, what: str, total: int | None = None) -> None:
        """A stage before the first training."""
        if self._live is None and what != self._stage:
            self._stage = what
            self.note(what)

    def note(self, text: str) -> None:
        """Writes a line above the table."""
        self._console.print(text, markup=False, highlight=False)

    @contextlib.contextmanager
    def running(self, estimate: CostEstimate) -> Iterator[None]:
        """Shows the table."""
        from rich.live import Live

        self.note(estimate.sentence())
        self._tally = Tally(estimate)
        if not estimate.left:
            yield
            return
        with Live(self._table(), console=self._console, refresh_per_second=2) as self._live:
            yield
            self._live.update(self._table())

    def began(self, work: Work) -> None:
        """Counts, and shows it."""
        super().began(work)
        self._update()

    def ended(self, work: Work, outcome: TrainingOutcome) -> None:
        """Counts, and shows it; a failure is written above the table."""
        if self._tally is not None:
            self._tally.ended(work, outcome)
        if outcome.reason:
            self.note(f"failed: {_named(work)}: {outcome.reason}")
        self._update()

    def _update(self) -> None:
        if self._live is not None:
            self._live.update(self._table())

    def _table(self) -> Any:
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table as RichTable

        tally = self._tally
        if tally is None:
            return ""
        table = RichTable(box=None, pad_edge=False)
        table.add_column("model")
        for head in ("done", "failed", "at work", "left", "s/run"):
            table.add_column(head, justify="right")
        for name in tally.left:
            counts = (tally.done[name], tally.failed[name], tally.working[name], tally.left[name])
            table.add_row(name, *(f"{count:,}" for count in counts), f"{tally.each(name):,.1f}")
        ended = sum(tally.done.values()) + sum(tally.failed.values())
        whole = ended + sum(tally.working.values()) + sum(tally.left.values())
        return Group(table, ProgressBar(total=max(1, whole), completed=ended, width=60), tally.sentence())


def view_for() -> GridView:
    """The live table where standard error is a terminal, lines elsewhere."""
    if not sys.stderr.isatty():
        return Lines(sys.stderr)
    from rich.console import Console

    return LiveTable(Console(file=sys.stderr))


def _named(work: Work) -> str:
    training = work.training
    return f"{training.model.name} on {training.set.name}, {work.size:,} instances, seed {training.seed}"


def _clock(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} seconds"
    return f"{round(seconds / 60)} minutes" if seconds < 5400 else f"{seconds / 3600:,.1f} hours"
