"""`truerank demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from truerank.audits import leakage as audits
from truerank.cli.console import JsonFlag, emit, progress

__all__ = ["demo"]


def demo(
    out: Annotated[Path, typer.Option("--out", help="Folder for the report.")] = Path("truerank-demo"),
    as_json: JsonFlag = False,
) -> None:
    """Audits the embedded sample, where the truth is known; needs no network.

    Three small test sets against 5,000 training queries in which leaks are planted. Prints the verdicts, how many of
    the planted leaks were found, and the path of the report.
    """
    with progress() as shown:
        result = audits.demo(out, progress=shown)
    emit(f"{audits.to_text(result)}\n\n{(out / 'report.html').resolve()}", result.summary, as_json)
