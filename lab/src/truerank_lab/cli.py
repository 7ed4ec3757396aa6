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
    "Training sets with known faults, networks trained on them, and the papers' experiments.",
    _COMMANDS,
    {
        "Train": {
            "train": "Trains a ranker: one epoch by a named recipe.",
            "tune": "Chooses a model's parameters by cross-validation.",
        },
        "Data": {
            "build": "Builds training sets that differ only in their fault.",
            "simulate": "Writes the log that annotators would leave.",
        },
        "Grid": {
            "run": "Trains each model on each set, reranks, records.",
            "report": "Writes the papers' tables and figure.",
        },
    },
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command line and ends the process."""
    run_program(arguments, LAB)
