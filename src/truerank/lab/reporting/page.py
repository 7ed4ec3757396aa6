"""What `experiment report` prints, and its page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from truerank.core.figures import Picture, line_panels
from truerank.core.page import Prose
from truerank.core.report import Report, ReportPart, ReportSection
from truerank.core.result import Summary, page_note, reports, summarises
from truerank.core.tables import Cell, Column, Table
from truerank.core.verdict import Verdict
from truerank.lab.reporting.board import BoardRow
from truerank.lab.reporting.effectiveness import (
    TOPICS,
    Effectiveness,
    SizeEffect,
    depth_panels,
    depth_table,
    depths_compared,
    panels,
    sizes_table,
)
from truerank.lab.reporting.experiment_report import ExperimentReport, order_statements
from truerank.lab.reporting.memorisation import memorised_tables
from truerank.measures import lower_is_better
from truerank.measures.report import difference_table

_TITLES: Final = {
    "found": "What was found",
    "effectiveness": "Effectiveness by training set",
    "sizes": "Effect by training size",
    "memory": "What was memorised",
    "pilot": "The models without the fault",
    "details": "Every comparison",
    "grid": "The grid",
}
#: Tables with more rows are in their files only.
_LONGEST: Final = 60
#: Tables that are for files and the page, not for a terminal.
_LONG: Final = ("sizes",)
_SECTIONS: Final = {
    "effectiveness": "effectiveness",
    "strategies": "effectiveness",
    "depths": "effectiveness",
    "order": "effectiveness",
    "sizes": "sizes",
    "memorised": "memory",
    "pilot": "pilot",
    "pairs": "details",
    "grid": "grid",
}
_WHAT: Final = {
    "leakage": "Rankers trained on sets that differ only in a leak",
    "transfer": "Rankers trained on documents selected by different strategies",
    "survivorship": "Rankers trained on sets annotated to different depths",
    "pilot": "Rankers trained without any fault",
}


@summarises(ExperimentReport)
def _summary(result: ExperimentReport) -> Summary:
    found = tables(result)
    shown = [table for name, table in found.items() if name not in _LONG and not name.endswith("-details")]
    return Summary((*sentences(result), *shown), _facts(result, found), notes=page_note(result.out), width=120)


@reports(ExperimentReport)
def _report(result: ExperimentReport) -> Report:
    found = tables(result)
    parts: dict[str, list[ReportPart]] = {name: [] for name in _TITLES}
    said = [*order_statements(result.effects), *result.left_out]
    if said:
        parts["found"].append(Prose(tuple(said)))
    for picture in pictures(result):
        parts[_SECTIONS[picture.name.partition("-")[0]]].append(picture)
    for name, table in found.items():
        section = "details" if name.endswith("-details") else _SECTIONS[name.partition("-")[0]]
        if len(table.rows) > _LONGEST:
            parts[section].append(Prose((f"{table.title} {len(table.rows):,} rows: tables/{name}.csv.",)))
        else:
            parts[section].append(_with_new_notes(table, parts[section]))
    collections = ", ".join(f"{one.collection} ({len(one.scores.topics):,} topics)" for one in result.boards)
    compared = "" if result.options.kind == "pilot" else f", compared with {result.baseline}"
    return Report(
        title=f"Experiment: {result.name}",
        lead=f"{_WHAT[str(result.options.kind)]}{compared}, on {collections}.",
        verdicts=tuple(
            Verdict(one.verdict, one.sentence, subject=one.subject, level="bad" if one.shown else "unknown")
            for one in result.statements
        ),
        sections=tuple(ReportSection(name, _TITLES[name], tuple(some)) for name, some in parts.items()),
        tables=found,
        json=_facts(result, found),
        footer=(
            "An interval that holds 0 is no proof that there is no effect. Every table is in tables/ as CSV and LaTeX, "
            "every figure in figures/. This page asks the network for nothing.",
        ),
    )


def tables(result: ExperimentReport) -> Mapping[str, Table]:
    """The tables by name, in reading order; the first is the main one of the kind of report."""
    return dict(_tables(result))


def pictures(result: ExperimentReport) -> tuple[Picture, ...]:
    return tuple(_pictures(result))


def sentences(result: ExperimentReport) -> tuple[str, ...]:
    """What was found and what is missing, one paragraph each."""
    found = [f"{one.subject}: {one.sentence}" for one in result.statements]
    if not found:
        found = ["Nothing is compared with the baseline."] if result.options.kind != "pilot" else []
    return (*found, *order_statements(result.effects), *result.left_out)


def _facts(result: ExperimentReport, found: Mapping[str, Table]) -> dict[str, Any]:
    return {
        "name": result.name,
        "kind": result.options.kind,
        "baseline": result.baseline,
        "measures": list(dict.fromkeys(name for board in result.boards for name in board.scores.measures)),
        "findings": [one._asdict() for one in result.statements],
        "sentences": list(sentences(result)),
        "effectiveness": [one.json() for one in result.effects],
        "sizes": [_size_json(one) for one in result.sizes],
        "memorisation": [one.json() for one in result.memorised],
        "pilot": [one.json() for one in result.pilots],
        "left_out": list(result.left_out),
        "tables": list(found),
        "options": result.options.json(),
    }


def _first_measure(result: ExperimentReport) -> str:
    """That of figures and sentences; a benchmark may have its own."""
    return " or ".join(dict.fromkeys(board.scores.measures[0] for board in result.boards))


def _tables(result: ExperimentReport) -> Iterator[tuple[str, Table]]:
    names = {one: f"effectiveness-{one.board.collection}" for one in result.effects}
    if result.effects and result.options.kind == "transfer":
        yield "strategies", strategies_table(result.effects)
    elif result.effects and result.options.kind == "survivorship":
        yield "depths", depth_table(result.effects)
    else:
        for one, name in names.items():
            yield name, one.table()
    if result.sizes:
        yield "sizes", sizes_table(result.sizes, _first_measure(result), result.baseline)
    yield from memorised_tables(result.memorised, result.baseline, result.options).items()
    for each in result.pilots:
        yield f"pilot-{each.collection}", each.table()
    for one, name in names.items():
        if result.options.kind == "survivorship":
            for number, (row, found) in enumerate(depths_compared(one).items(), start=1):
                title = f"{one.board.collection}, {row}: training sets compared with each other."
                yield f"pairs-{one.board.collection}-{number}", replace(difference_table(found), title=title)
        order = one.order_table()
        if order is not None:
            yield name.replace("effectiveness", "order"), order
        yield f"{name}-details", one.details()
    yield "grid", result.grid


def _pictures(result: ExperimentReport) -> Iterator[Picture]:
    if result.options.kind == "survivorship" and result.effects:
        figure = line_panels(
            depth_panels(result.effects), x_label="depth of the annotation", y_label="mean over topics"
        )
        caption = (
            "Effectiveness by the depth of the annotation behind the training set, with "
            f"{100 * result.options.confidence:.6g}% intervals over topics. The differences are tested in the table."
        )
        yield Picture("depths", caption, figure)
    for topics in TOPICS if result.sizes else ():
        chosen = panels(result.sizes, topics)
        if chosen:
            measure = _first_measure(result)
            words = "the topics that leak" if topics == "leaking" else "all topics"
            caption = (
                f"{measure} with the fault minus {result.baseline}, by training size in instances, on {words}; "
                f"{100 * result.options.confidence:.6g}% intervals over topics, not corrected for their number."
            )
            figure = line_panels(chosen, x_label="training instances", y_label=f"difference of {measure}")
            yield Picture(f"sizes-{topics}", caption, figure)


def _size_json(one: SizeEffect) -> dict[str, Any]:
    intervals = {name: getattr(one, name)._asdict() for name in ("mean", "baseline", "difference")}
    return {**one._asdict(), "row": one.row.name, "seeds": list(one.seeds), **intervals}


def _with_new_notes(table: Table, before: Sequence[ReportPart]) -> Table:
    """The table without the notes that stand below another table of its section."""
    said = {note for part in before if isinstance(part, Table) for note in part.notes}
    return replace(table, notes=tuple(note for note in table.notes if note not in said))


def strategies_table(found: Sequence[Effectiveness]) -> Table:
    """One row per block of queries and strategy, the measures of every benchmark side by side.

    The best of a block stands out; the first stage stands below. Where the design has several rankers, each strategy
    has a row for each.

    Source: transfer paper, section 6, Tables 4 and 5.
    """
    rows = list(dict.fromkeys(row for one in found for row in one.shown_rows()))
    conditions = list(dict.fromkeys(name for one in found for name in one.board.designed))
    places = [
        (row, name)
        for row in rows
        for name in conditions
        if any((row, name, measure) in one.estimates for one in found for measure in one.measures)
    ]
    shown_model, shown_group = len({row.model for row in rows}) > 1, any(row.group for row in rows)
    lead = [*([Column("queries")] if shown_group else []), Column("selection")]
    lead += [Column("ranker")] if shown_model else []
    values = [(one, measure) for one in found for measure in one.measures]
    columns = [Column(measure, (one.board.collection,), align="right") for one, measure in values]
    cells: list[tuple[Cell, ...]] = []
    for row, name in places:
        own = [*([row.group] if shown_group else []), name, *([row.model] if shown_model else [])]
        cells.append((*own, *(one.cell(row, name, measure) for one, measure in values)))
    last: list[Cell] = ["first stage", *[""] * (len(lead) - 1)]
    last += [f"{float(one.board.first_stage.mean[0, one.measures.index(m)]):.4f}" for one, m in values]
    rules = [place for place in range(1, len(places)) if places[place - 1][0] != places[place][0]]
    said = [note for one in found for note in one.notes() if not note.startswith("What is reranked")]
    notes = tuple(dict.fromkeys(note.replace("the best of a row", "the best of a block") for note in said))
    return Table(
        "Effectiveness by the strategy that selects the version of the relevant training documents.",
        (*lead, *columns),
        (*cells, tuple(last)),
        notes,
        (*rules, len(places)),
        frozenset(_best_of_blocks(places, values, len(lead))),
    )


def _best_of_blocks(
    places: Sequence[tuple[BoardRow, str]], values: Sequence[tuple[Effectiveness, str]], lead: int
) -> set[tuple[int, int]]:
    found = set()
    for column, (one, measure) in enumerate(values):
        for block in dict.fromkeys(row for row, _ in places):
            known: dict[int, float] = {}
            for number, (row, name) in enumerate(places):
                estimate = one.estimates.get((row, name, measure))
                if row == block and estimate is not None and estimate.mean.mean is not None:
                    known[number] = estimate.mean.mean
            if len(known) > 1:
                best = (min if lower_is_better(measure) else max)(known.values())
                found |= {(number, lead + column) for number, mean in known.items() if mean == best}
    return found
