"""What follows from the TREC 2019 Deep Learning Track's printed tables, beside what its overview states.

    python studies/track_tables.py [FOLDER]

Prints, for documents and passages, the percentages and counts with the stated figures and the differences, the counts
by category and subtask, Kendall's tau of each pair of measures that the figures show, and the correlation of NCG with
recall. Printed means come first; the trec_eval means of all 75 runs stand beside them. With a FOLDER, writes both
reports there, and one of seventeen runs over Vaswani, which have scores by topic.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import vaswani_runs
from common import SHARED, require_shared
from truerank.audits import track
from truerank.audits.track.page import counts_table
from truerank.core.result import report

#: By task: the printed table, the value of the column `task`, that of the column `evaluation`, and the stated figures:
#: percentages of section 4 and counts of Table 2.
TASKS = {
    "documents": (
        "dl19-doc-runs.csv",
        "docs",
        "trec_eval",
        {
            "best nnlm over best trad": "29.4",
            "best nn over best trad": "14.8",
            "best fullrank over best rerank": "0.9",
            "best NCG over the candidates": "22.9",
            "groups": "10",
            "runs": "38",
            "runs nnlm": "15",
            "runs nn": "12",
            "runs trad": "11",
            "runs rerank": "10",
            "runs fullrank": "28",
        },
    ),
    "passages": (
        "dl19-passage-runs.csv",
        "passages",
        "passages-eval",
        {
            "best nnlm over best trad": "37.4",
            "best nn over best trad": "23.7",
            "best fullrank over best rerank": "3.6",
            "best NCG over the candidates": "20.7",
            "groups": "11",
            "runs": "37",
            "runs nnlm": "18",
            "runs nn": "8",
            "runs trad": "11",
            "runs rerank": "11",
            "runs fullrank": "26",
        },
    ),
}


def task_report(name: str, folder: Path) -> track.TrackReport:
    """The report of one task, from the printed table and the means of all runs."""
    printed, task, evaluation, stated = TASKS[name]
    source = SHARED / "trec-dl"
    folder.mkdir(parents=True, exist_ok=True)
    table = folder / f"stated-{name}.csv"
    table.write_text("statement,value\n" + "".join(f"{key},{value}\n" for key, value in stated.items()))
    return track.report(
        out=folder / name,
        means=[source / printed, source / "dl2019-run-measures.csv"],
        metadata=[source / "dl2019-run-metadata.csv"],
        stated=str(table),
        options=track.TrackReportOptions(
            title=f"TREC 2019 Deep Learning Track, {name}", where={"task": task, "evaluation": evaluation}
        ),
    )


def vaswani_report(folder: Path) -> track.TrackReport:
    """The report of runs with scores by topic."""
    source = SHARED / "collections" / "vaswani"
    runs = vaswani_runs.write(folder / "vaswani-runs")
    return track.report(
        out=folder / "vaswani",
        run=runs,
        qrels=str(folder / "vaswani-runs" / "vaswani.qrels"),
        sparse_qrels=str(folder / "vaswani-runs" / "sparse.qrels"),
        metadata=[folder / "vaswani-runs" / "runs.csv"],
        collection=[str(source / "docs.trec.gz")],
        queries=[f"Test queries={source / 'topics.trec.txt'}"],
        topics=str(source / "topics.trec.txt"),
        options=track.TrackReportOptions(title="Vaswani"),
    )


def main(folder: Path) -> None:
    """Prints both tasks."""
    for name in TASKS:
        began = time.perf_counter()
        result = task_report(name, folder)
        print(f"## {name} ({time.perf_counter() - began:.1f} s, page, tables and figures included)\n")
        print(report(result).tables["statements"].text())
        print(counts_table(result.analysis).text())
        print("\n".join(result.analysis.scores.notes) + "\n")
        print(report(result).tables["agreement"].text())


if __name__ == "__main__":
    require_shared()
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
        print(vaswani_report(Path(sys.argv[1])).text())
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(Path(temporary))
