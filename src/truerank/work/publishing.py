"""Tables and figures of a report as files, in every form that a paper or a page may want."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final

from truerank.core.result import Result, writer
from truerank.core.result import report as report_of
from truerank.core.tables import Table
from truerank.work.artifacts import Artifacts
from truerank.work.runs import Run

if TYPE_CHECKING:
    from truerank.core.figures import Picture
    from truerank.core.report import Report

_FORMS: Final[Mapping[str, Callable[[Table], str]]] = {
    "txt": Table.text,
    "csv": Table.csv,
    "tex": Table.latex,
    "md": Table.markdown,
}


def publish(result: Result | Report, run: Run) -> None:
    """Writes the artifacts of a result.

    Those of a report are its frames and texts, `tables/`, `figures/`, `report.html` and `summary.json`. A result
    without a report says with `writes` what it leaves behind.
    """
    own = writer(result) if isinstance(result, Result) else None
    if own is not None:
        own(run)
        return
    report = report_of(result) if isinstance(result, Result) else result
    for name, frame in report.frames.items():
        run.parquet(f"{name}.parquet", frame)
    for name, text in report.texts.items():
        run.text(name, text)
    write_tables(run, report.tables)
    svgs = write_pictures(run, report.pictures())
    run.json("summary.json", report.json)
    page = report.page(lambda picture: svgs[picture.name], run.provenance(), run.names())
    run.text("report.html", page.html())


def write_tables(artifacts: Artifacts, tables: Mapping[str, Table]) -> None:
    """Writes each table as text, CSV, LaTeX and Markdown: `tables/NAME.txt`, `.csv`, `.tex`, `.md`."""
    for name, table in tables.items():
        for ending, form in _FORMS.items():
            artifacts.text(f"tables/{name}.{ending}", form(table))


def write_pictures(artifacts: Artifacts, pictures: Iterable[Picture], folder: str = "figures/") -> dict[str, str]:
    """Writes each figure as `figures/NAME.svg` and `.pdf`."""
    # Imported here: commands without figures do not wait for them.
    from truerank.core.figures import to_files

    svgs: dict[str, str] = {}
    for one in pictures:
        svgs[one.name], pdf = to_files(one.figure, name=one.name, description=one.caption)
        artifacts.text(f"{folder}{one.name}.svg", svgs[one.name])
        artifacts.binary(f"{folder}{one.name}.pdf", pdf)
    return svgs
