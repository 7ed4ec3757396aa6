"""The command `truerank-lab`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from truerank.cli import main as run_program
from truerank.cli.commands import Program

_COMMANDS: Final = {
    "train": "truerank_lab.training:train",
    "tune": "truerank_lab.tuning:tune",
    "build": "truerank_lab.instances.training_sets:build",
    "run": "truerank_lab.grid.execution:run",
    "report": "truerank_lab.reporting.report:report",
    "simulate": "truerank_lab.simulation:simulate",
}
#: `truerank-lab`.
LAB: Final = Program(
    "truerank-lab",
    "truerank_lab",
    _COMMANDS,
    {
        "Train": ("train", "tune"),
        "Data": ("build", "simulate"),
        "Experiments": ("run", "report"),
    },
    {},
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command line and ends the process."""
    run_program(arguments, LAB)
