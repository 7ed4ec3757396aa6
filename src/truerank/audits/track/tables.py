"""The tables of a track report."""

from __future__ import annotations

import math
from collections.abc import Sequence

from truerank.audits.track.analysis import SUBTASKS, Agreement, Analysis, Duel
from truerank.audits.track.collection import FileStatistics
from truerank.audits.track.scores import Scores
from truerank.reports.tables import Cell, Column, Table

_NOT_STATED = "not stated"
_UNITS = ((10**9, "GB"), (10**6, "MB"), (10**3, "KB"))


def collection_table(found: Sequence[FileStatistics]) -> Table:
    """Table 1: records and sizes of the files of the collection."""
    return Table(
        "The data set: records and file sizes.",
        (
            Column("file"),
            Column("records", align="right", format=",d"),
            Column("size", align="right"),
            Column("bytes", align="right", format=",d"),
            Column("location"),
        ),
        tuple(
            (one.description, one.records, None if one.size is None else _size(one.size), one.size, one.location)
            for one in found
        ),
        notes=("Sizes are those on the disk, compressed where the file is; 1 MB is 1,000,000 bytes.",),
    )


def counts_table(analysis: Analysis) -> Table:
    """Table 2: runs by category and subtask, and the groups that made them."""
    counts = analysis.counts()
    categories = [*analysis.categories, *sorted({category for category, _ in counts} - {*analysis.categories, ""})]
    categories += [""] if any(category == "" for category, _ in counts) else []
    infos = analysis.scores.runs
    stated = any(run.subtask for run in infos)
    subtasks = [one for one in (*SUBTASKS, "") if stated and any(run.subtask == one for run in infos)]
    columns = [Column("category")]
    columns += Column.numbers(",d", *(subtask or _NOT_STATED for subtask in subtasks), above=("runs",))
    columns += [Column("all", ("runs",), "right", ",d"), Column("groups", (), "right", ",d")]
    rows: list[tuple[Cell, ...]] = []
    for category in categories:
        cells = [counts.get((category, subtask), 0) for subtask in subtasks]
        groups = {run.group for run in infos if run.category == category and run.group}
        runs = sum(run.category == category for run in infos)
        rows.append((category or _NOT_STATED, *cells, runs, len(groups) or None))
    totals = [sum(run.subtask == subtask for run in infos) for subtask in subtasks]
    groups = {run.group for run in infos if run.group}
    rows.append(("all", *totals, len(infos), len(groups) or None))
    notes = ["A group with runs of several categories counts in each of them, and once in the last row."]
    baselines = sorted(name for name in groups if name.lower() in ("baseline", "baselines"))
    if baselines:
        notes.append(f"{len(groups) - len(baselines)} groups without {' and '.join(baselines)}.")
    title = "Runs by category and subtask." if subtasks else "Runs by category."
    found = Table(title, tuple(columns), tuple(rows), tuple(notes if groups else ()), rules=(len(rows) - 1,))
    return found.filled()


def results_table(scores: Scores, *, whole: bool = False) -> Table:
    """Tables 3 and 4: every run with its means, best first by the main measure."""
    columns = [Column("run"), Column("group"), Column("subtask"), Column("category")]
    measures = scores.measures if whole or not scores.printed else scores.printed
    columns += Column.numbers(".4f", *measures)
    chosen = [scores.measures.index(measure) for measure in measures]
    rows = tuple(
        (info.run, info.group or None, info.subtask or None, info.category or None, *(_known(mean) for mean in means))
        for info, means in zip(scores.runs, scores.means[:, chosen], strict=True)
    )
    over = "" if scores.topics is None else f" Means over {scores.topics:,} topics."
    return Table(f"Runs sorted by {scores.main}, n = {len(rows):,}.{over}", tuple(columns), rows, notes=scores.notes)


def best_table(analysis: Analysis) -> Table:
    """The best run of each category, beside the best of the baseline."""
    main = analysis.scores.main
    return Table(
        f"The best run of each category by {main}, and by how much it is above the best {analysis.baseline} run.",
        (
            Column("category"),
            Column("runs", align="right", format=",d"),
            Column("best run"),
            Column(main, align="right", format=".4f"),
            Column(f"% over {analysis.baseline}", align="right", format="+.2f"),
        ),
        tuple((one.category, one.runs, one.run, one.value, one.gain) for one in analysis.best),
    )


def subtask_table(analysis: Analysis) -> Table:
    """Fullrank against rerank, and the best cumulated gain against that of the candidates."""
    rows: list[tuple[Cell, ...]] = [
        (gap.measure, gap.fullrank, gap.fullrank_value, gap.rerank, gap.rerank_value, gap.gain) for gap in analysis.gaps
    ]
    notes = []
    found = analysis.candidates
    if found is not None:
        notes.append(
            f"{found.measure} of the reranking candidates is taken from the rerank runs, which reorder them: "
            f"{found.candidates:.4f} ({found.sharing} of {found.reranks} have it; a run that dropped candidates has "
            f"less). The best run of all, {found.run}, has {found.value:.4f}"
            f"{'' if found.gain is None else f', {found.gain:+.2f} %'}."
        )
    return Table(
        "The best fullrank run beside the best rerank run.",
        (
            Column("measure"),
            Column("run", ("fullrank",)),
            Column("value", ("fullrank",), "right", ".4f"),
            Column("run", ("rerank",)),
            Column("value", ("rerank",), "right", ".4f"),
            Column("% over rerank", align="right", format="+.2f"),
        ),
        tuple(rows),
        notes=tuple(notes),
    )


def duel_table(duel: Duel) -> Table:
    """The best runs of two categories topic by topic, the largest win of the first one first."""
    first, second = duel.first, duel.second
    return Table(
        f"{duel.measure} by topic: {first.run} ({first.category}) wins {duel.wins} of {len(duel.topics)} topics "
        f"against {second.run} ({second.category}), ties {duel.ties}, loses {duel.losses}.",
        (
            Column("topic"),
            *Column.numbers(".4f", first.run, second.run),
            Column("difference", align="right", format="+.4f"),
        ),
        tuple(
            (topic, float(a), float(b), float(a - b))
            for topic, a, b in zip(duel.topics, duel.first_values, duel.second_values, strict=True)
        ),
    )


def agreement_table(agreements: Sequence[Agreement]) -> Table:
    """Kendall's tau of each pair of measures, over all runs and within each category."""
    return Table(
        "How far two measures order the runs alike.",
        (
            Column("measure"),
            Column("and"),
            Column("runs"),
            Column("n", align="right", format=",d"),
            Column("Kendall's τ-b", align="right", format=".4f"),
            Column("p", align="right", format=".2g"),
            Column("Pearson's r", align="right", format=".4f"),
        ),
        tuple((one.first, one.second, one.category or "all", one.n, one.tau, one.p, one.pearson) for one in agreements),
        notes=("n: the runs that both measures are known for. Fewer than three are left out.",),
    )


def _known(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _size(count: int) -> str:
    for unit, name in _UNITS:
        if count >= unit:
            return f"{count / unit:.3g} {name}"
    return f"{count} B"
