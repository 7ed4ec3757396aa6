"""How an audit of assessors is shown: what the command prints, its page, its figures, its card and its files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import polars as pl

from truerank.audits.assessors.audit import AssessorAudit
from truerank.audits.assessors.options import OUTSIDE
from truerank.audits.assessors.order import SystemScores
from truerank.audits.assessors.verdicts import (
    LIMITS,
    MEANINGS,
    PANEL,
    RULES,
    USES,
    UseVerdict,
    counts_of,
    panel_verdict,
    verdicts_of,
)
from truerank.audits.assessors.views import VIEWS, notes_facts, shown_frames
from truerank.core.figures.export import Picture
from truerank.core.figures.forest import IntervalPanel, IntervalValue, interval_panels
from truerank.core.figures.lines import LinePanel, LineSeries, Panel, Series, line_panels, scatter_panels
from truerank.core.page import Prose
from truerank.core.plain import picked
from truerank.core.report import Report, ReportSection
from truerank.core.result import Summary, page_note, reports, summarises
from truerank.core.tables import Table
from truerank.core.verdict import Verdict
from truerank.core.views import View, tables
from truerank.version import __version__

#: Up to so many models, each verdict is a finding of the page; with more, each use is.
_FEW: Final = 2
_SHOWN: Final = 4
_TITLES: Final = {
    "verdicts": "For what may each model be used?",
    "agreement": "Agreement with people",
    "grading": "Grades too high or too low",
    "people": "People among themselves",
    "models": "Models among themselves, and together",
    "choosing": "Selecting what people judge next",
    "order": "The order of systems",
    "families": "Families of systems",
    "last_stage": "The model as the last stage",
    "corrected": "Corrected scores",
}


@summarises(AssessorAudit)
def _summary(audit: AssessorAudit) -> Summary:
    named = dict(_tables(audit))
    shown = [named[view.name] for view in VIEWS if view.name in named and view.place == "everywhere"]
    found = verdicts_of(audit)
    first = audit.best()[:_FEW]
    said = [f"{USES[one.use]}, {one.judge}: {one.word}. {one.sentence}" for one in found if one.judge in first]
    panel = panel_verdict(audit)
    if panel is not None:
        found = (*found, panel)
        said.append(f"{PANEL['panel']}: {panel.word}. {panel.sentence}")
    verdicts = tuple(one.explained() for one in found)
    parts: tuple[Table | str, ...] = ("\n".join(said), *shown, *_notes(audit))
    return Summary(parts, _facts(audit), verdicts, page_note(audit.out), width=120, pictures=lambda: _pictures(audit))


@reports(AssessorAudit)
def _report(audit: AssessorAudit) -> Report:
    named = dict(_tables(audit))
    parts: dict[str, list[Any]] = {name: [] for name in _TITLES}
    for picture in _pictures(audit):
        parts[picture.section].append(picture)
    for view in VIEWS:
        if view.name in named:
            parts[view.section].append(_first_models(audit, view, named[view.name]))
    parts["verdicts"].append(Prose(_reasons(audit)))
    if notes := _notes(audit):
        parts["agreement"].append(Prose(notes))
    if audit.scores is not None and not audit.of("corrected"):
        text = "People graded every pair that a model graded: there is nothing to correct, and their scores hold."
        parts["corrected"].insert(0, Prose(audit.remarks or (text,)))
    elif audit.remarks:
        parts["corrected"].append(Prose(audit.remarks))
    if not audit.of("people"):
        text = "One person judged each pair: these data do not tell how far two people agree."
        parts["people"].append(Prose((text,)))
    content = card(audit)
    grades, runs = audit.grades, 0 if audit.scores is None else len(audit.scores.runs)
    systems = f", {runs:,} runs" if runs else ""
    return Report(
        title="Can these models label in place of people?",
        lead=f"{len(grades.judges):,} model{'s' * (len(grades.judges) > 1)} against people: "
        f"{len(grades.reference):,} judged pairs of {len(grades.topics):,} topics{systems}.",
        verdicts=tuple(_findings(audit)),
        sections=tuple(ReportSection(name, _TITLES[name], tuple(some)) for name, some in parts.items()),
        tables=named,
        json=_facts(audit),
        footer=(
            "What a model did on these topics, documents and runs says nothing certain about others. "
            "This page needs no network.",
        ),
        frames=audit.frames,
        texts={"card.json": json.dumps(content, indent=2, ensure_ascii=False) + "\n", "card.md": _card_text(content)},
    )


def _tables(audit: AssessorAudit) -> Iterator[tuple[str, Table]]:
    return tables(VIEWS, shown_frames(audit), notes_facts(audit))


def _first_models(audit: AssessorAudit, view: View, table: Table) -> Table:
    """A long table with the models that agree best only; its files have all."""
    first = audit.best()[:_SHOWN]
    if not view.by or len(first) == len(audit.grades.judges):
        return table
    rows = tuple(row for row in table.rows if row[0] in first)
    rules = tuple(at for at in table.rules if at < len(rows))
    note = f"The {_SHOWN} models that agree best with people; all are in tables/{view.name}."
    return replace(table, rows=rows, rules=rules, notes=(note, *table.notes))


def card(audit: AssessorAudit) -> dict[str, Any]:
    """What may be said of the models in a data card: the verdicts with their reasons, and what they rest on."""
    return {
        "schema": "truerank/assessor-card/1",
        "truerank": __version__,
        "people": list(audit.grades.people),
        "pairs": len(audit.grades.reference),
        "topics": len(audit.grades.topics),
        "scale": list(audit.grades.scale),
        "runs": 0 if audit.scores is None else len(audit.scores.runs),
        "measure": None if audit.scores is None else audit.scores.measures[0],
        "models": [
            {"model": judge, "uses": [_said(one) for one in verdicts_of(audit) if one.judge == judge]}
            for judge in audit.grades.judges
        ],
        "panel": None if (panel := panel_verdict(audit)) is None else _said(panel),
    }


def _said(one: UseVerdict) -> dict[str, Any]:
    return {"use": (USES | PANEL)[one.use], "rule": RULES[one.use].code, "verdict": one.word, "reason": one.sentence}


def _card_text(content: dict[str, Any]) -> str:
    lines = [
        "## Model judgments",
        "",
        f"Audited against people on {content['pairs']:,} pairs of {content['topics']:,} topics"
        + (f", with {content['runs']:,} runs by {content['measure']}" if content["runs"] else "")
        + f" (truerank {content['truerank']}).",
        "",
    ]
    for model in content["models"]:
        lines += [f"**{model['model']}**", ""]
        lines += [f"- {use['use']}: **{use['verdict']}**. {use['reason']}" for use in model["uses"]]
        lines.append("")
    if content["panel"]:
        panel = content["panel"]
        lines += [f"**{panel['use']}**: **{panel['verdict']}**. {panel['reason']}", ""]
    return "\n".join(lines)


def _findings(audit: AssessorAudit) -> Iterator[Verdict]:
    found = verdicts_of(audit)
    if len(audit.grades.judges) <= _FEW:
        yield from (one.explained() for one in found)
        return
    best = audit.best()[0]
    for use, title in USES.items():
        counts = counts_of(found, use)
        one = next(each for each in found if each.judge == best and each.use == use)
        shown = ", ".join(f"{count} {word}" for word, count in counts.items())
        yield Verdict(
            one.word,
            f"{best}, which agrees best with people: {one.sentence}",
            f"All {len(audit.grades.judges)} models: {shown}.",
            one.explained().settles,
            subject=title,
        )
    if (panel := panel_verdict(audit)) is not None:
        yield panel.explained()


def _reasons(audit: AssessorAudit) -> tuple[str, ...]:
    limits = (
        f"Order: USABLE where the interval of τ lies at {LIMITS['same']} or above, WITH CARE at "
        f"{LIMITS['noticeable']} or above, NOT USABLE below {LIMITS['noticeable']}, where pairs are turned round, or "
        f"where a family is favoured. Absolute scores: within {audit.rules.margin:g}. Selecting: the chance that a "
        f"relevant document has the higher grade, {LIMITS['chooses well']} and {LIMITS['chooses badly']}. The reasons "
        "of all verdicts are in card.md."
    )
    return (limits, *(f"{word}: {meaning}" for word, meaning in MEANINGS.items()))


def _notes(audit: AssessorAudit) -> tuple[str, ...]:
    notes = []
    for one in audit.grades.outside:
        rule = OUTSIDE[audit.rules.outside]
        pairs = "1 pair" if one.pairs == 1 else f"{one.pairs:,} pairs"
        notes.append(f"{one.name} gave the grade {one.grade} to {pairs}, outside the scale: {rule}.")
    every = len(audit.grades.reference)
    for judge in audit.grades.judges:
        if lacking := every - next(iter(audit.of("agreement", judge=judge)))["pairs"]:
            notes.append(
                f"{judge} lacks a grade for {lacking:,} of the {every:,} pairs that people graded; in the scores of "
                "runs these documents are not relevant."
            )
    if audit.grades.undecided:
        count, votes = audit.grades.undecided, audit.rules.votes
        notes.append(f"{count:,} pairs have no grade by the rule '{votes}' and are left out.")
    if audit.scores is not None and audit.scores.left_out:
        notes.append(f"{audit.scores.left_out:,} topics on which a run was not scored are left out of the order.")
    return tuple(notes)


def _pictures(audit: AssessorAudit) -> Iterator[Picture]:
    yield _models_picture(audit)
    yield _grading_picture(audit)
    if audit.scores is not None:
        yield _scores_picture(audit, audit.scores)


def _models_picture(audit: AssessorAudit) -> Picture:
    """Each model's agreement and, with runs, the order of systems, marked by its verdicts."""
    words = {(one.judge, one.use): one.word for one in verdicts_of(audit)}
    main = {row["judge"]: row for row in audit.of("agreement", coefficient="alpha-ordinal")}
    rows = audit.best()
    panels = [
        IntervalPanel("Agreement with people", "Krippendorff's α, ordinal", tuple(_ends(main[j]) for j in rows), {})
    ]
    if audit.scores is not None:
        limits = {LIMITS["noticeable"]: "", LIMITS["same"]: ""}
        for systems, use, title in (("all", "order", "Order of all systems"), ("best 10", "best", "Of the best 10")):
            chosen = audit.of("order", measure=audit.scores.measures[0], systems=systems, statistic="tau")
            of = {row["judge"]: row for row in chosen}
            if of:
                values = tuple(_ends(of[judge], words[judge, use]) for judge in rows)
                panels.append(IntervalPanel(title, "Kendall's τ", values, limits))
    shown = "The dashed lines are at τ = 0.8 and 0.9; the mark says the verdict." if len(panels) > 1 else ""
    return Picture(
        "models",
        f"Each model against people, the best agreement first; {audit.resampling.confidence:.0%} intervals over "
        f"{len(audit.grades.topics):,} topics. {shown}".strip(),
        interval_panels(
            rows, panels, groups=("USABLE", "WITH CARE", "UNKNOWN", "NOT USABLE") if len(panels) > 1 else ()
        ),
        section="verdicts",
    )


def _ends(row: dict[str, Any], group: str = "") -> IntervalValue:
    return IntervalValue(row["value"], row["value_low"], row["value_high"], group)


def _grading_picture(audit: AssessorAudit) -> Picture:
    bands = ["all", *(f"grade {grade}" for grade in audit.grades.scale)]
    lines = []
    for judge in audit.best()[:_SHOWN]:
        rows = {row["band"]: row for row in audit.of("rating", judge=judge)}
        values = tuple(
            (rows[band]["value"], rows[band]["value_low"], rows[band]["value_high"]) if band in rows else None
            for band in bands
        )
        lines.append(LineSeries(judge, values))
    panel = LinePanel("Model minus people, in grades", tuple(bands), tuple(lines), zero=True)
    which = "" if len(audit.grades.judges) <= _SHOWN else f" of the {_SHOWN} models that agree best"
    return Picture(
        "grading",
        f"How much higher or lower grades{which} are than people's, by people's grade. A judge that errs by chance "
        "lies above 0 at the lowest grade and below 0 at the highest; 'all' shows which prevails.",
        line_panels([panel], x_label="people's grade", y_label="difference", columns=1),
        section="grading",
    )


def _scores_picture(audit: AssessorAudit, scores: SystemScores) -> Picture:
    panels = []
    for judge in audit.best()[:_SHOWN]:
        rows = [row for row in audit.of("scores", judge=judge, measure=scores.measures[0]) if row["run"]]
        names = [audit.families.get(row["run"], "" if audit.families else "runs") or "no family" for row in rows]
        series = tuple(
            Series(
                name,
                [row["people"] for row, own in zip(rows, names, strict=True) if own == name],
                [row["model"] for row, own in zip(rows, names, strict=True) if own == name],
            )
            for name in dict.fromkeys(names)
        )
        panels.append(Panel(judge, f"{scores.measures[0]} by people", "by the model", series))
    return Picture(
        "scores",
        f"Mean {scores.measures[0]} of every run by people and by the models that agree best with them.",
        scatter_panels(panels, columns=2),
        section="order",
    )


def _facts(audit: AssessorAudit) -> dict[str, Any]:
    """What `summary.json` holds."""
    long = {"topics", "between", "confusion"}
    panel = panel_verdict(audit)
    return {
        "verdicts": [_verdict_facts(one) for one in verdicts_of(audit)],
        "panel_verdict": None if panel is None else _verdict_facts(panel),
        **picked(audit, "people=grades.people, models=grades.judges, best, scale=grades.scale"),
        "pairs": len(audit.grades.reference),
        "topics": len(audit.grades.topics),
        **picked(audit.grades, "undecided, outside"),
        "runs": [] if audit.scores is None else list(audit.scores.runs),
        "families": dict(audit.families),
        "limits": {**LIMITS, "margin": audit.rules.margin},
        **{name: _plain(frame) for name, frame in audit.frames.items() if name not in long},
    }


def _verdict_facts(one: UseVerdict) -> dict[str, Any]:
    known = picked(one, "word, reason=sentence, settles, value, low, high")
    return {"judge": one.judge, "use": (USES | PANEL)[one.use], "rule": RULES[one.use].code, **known}


def _plain(frame: pl.DataFrame) -> list[dict[str, Any]]:
    return frame.with_columns(pl.selectors.float().round(6)).rows(named=True)
