"""How a check is shown: what the command prints, the page with its forest plot, the card and `check.yaml`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import yaml

from truerank.claims.claim import EFFECTS, Claim, ClaimEstimate, Effect
from truerank.claims.results import QUESTIONS, Check, ClaimAnswer, ConclusionWord
from truerank.claims.review import review
from truerank.claims.steps import AUDITS
from truerank.reports.figures.forest import ForestMark, ForestRow, forest_plot
from truerank.reports.figures.pictures import Picture
from truerank.reports.pages import AnswerLine, AnswerList, Prose, Tone
from truerank.reports.report import Report, ReportSection, Verdict
from truerank.reports.results import Summary, place_note, reports, summarises, writes
from truerank.reports.tables import Column, Table, escape_markdown
from truerank.version import __version__
from truerank.work.kept import RECORD
from truerank.work.publishing import write_pictures, write_tables
from truerank.work.runs import Run

_TONES: Final[dict[ConclusionWord, Tone]] = {
    "DOES NOT HOLD": "bad", "CANNOT TELL": "open", "UNKNOWN": "open", "HOLDS EXCEPT": "open", "HOLDS": "good",
}  # fmt: skip
_EFFECT_TONES: Final[dict[Effect, Tone]] = {
    "stands": "good", "not shown": "open", "falls": "bad", "could turn": "open", "appears": "open", "unknown": "open",
}  # fmt: skip
_MEANINGS: Final[dict[ConclusionWord, str]] = {
    "HOLDS": "The difference is above 0 beyond chance, and stands in every question that could be answered.",
    "HOLDS EXCEPT": "The difference is above 0 beyond chance as the data are. Under the conditions named it is not.",
    "CANNOT TELL": "These topics do not show a difference of this size. That is no proof that there is none.",
    "DOES NOT HOLD": "The data, or the repaired data, do not show this difference.",
    "UNKNOWN": "Nothing that was given decides it.",
}
_MARKS: Final[dict[Effect, ForestMark]] = {
    "stands": "filled", "appears": "filled", "not shown": "hollow", "could turn": "hollow", "falls": "cross",
}  # fmt: skip
_MARK_MEANINGS: Final[dict[ForestMark, str]] = {
    "filled": "the interval is above 0",
    "hollow": "the interval includes 0",
    "cross": "not better",
    "range": "all values that are possible",
}
#: Headings in the forest plot.
_SHORT: Final = {
    "significance": "As the data are",
    "leakage": "Leakage",
    "collection": "Collection",
    "unjudged": "Unjudged documents",
    "pools": "Pools",
    "models": "Judgments of models",
    "versions": "New documents",
    "policies": "Measure and conventions",
}


@summarises(Check)
def _summary(result: Check) -> Summary:
    if not result.answers:
        table = _plan_table(result)
        lacking = [QUESTIONS[one.name] for one in result.plan if not one.answerable]
        return Summary(
            (table, f"{len(result.plan) - len(lacking)} of {len(result.plan)} questions can be answered."),
            result.json(),
        )
    conclusion = result.conclusion
    lines = (_claimed(result), f"{conclusion.word}: {conclusion.reason}", _answer_table(result))
    settles = [f"{QUESTIONS[one.question]} {_flags(one.settles)}" for one in result.answers if one.settles]
    parts: tuple[Table | str, ...] = (
        *lines,
        *(["To settle:\n" + "\n".join(f"- {one}" for one in settles)] if settles else []),
    )
    notes = place_note("The page", result.folder, "report.html")
    return Summary(parts, result.json(), (_verdict(result),), notes, width=110)


def _claimed(result: Check) -> str:
    """The claim with its interval."""
    if result.claim is None or result.base is None:
        return f"{result.sentence()}: no claim."
    return f"{result.sentence()}{_interval(result)}."


def _interval(result: Check) -> str:
    base, claim = result.base, result.claim
    if base is None or claim is None or base.low is None or base.high is None:
        return ""
    sign = -1 if (base.value or 0.0) < 0 else 1
    low, high = sorted((sign * base.low, sign * base.high))
    corrected = f", corrected for {claim.comparisons} comparisons" if claim.comparisons > 1 else ""
    return f", {100 * claim.confidence:.6g}% interval {low:.3f} to {high:.3f}{corrected}, on {base.topics} topics"


def _answer_table(result: Check) -> Table:
    rows = tuple((QUESTIONS[one.question], one.word, EFFECTS[one.effect], _told(result, one)) for one in result.answers)
    columns = (Column("Question"), Column("Finding"), Column("The claim"), Column("What it does to the difference"))
    return Table("", columns, rows)


def _told(result: Check, one: ClaimAnswer) -> str:
    """What an answer says in a table: what it does to the claim, or what was found where there is none."""
    return one.consequence if result.claim is not None and one.consequence else one.evidence


def _plan_table(result: Check) -> Table:
    rows = tuple(
        (
            QUESTIONS[one.name],
            "yes" if one.answerable else "no",
            one.what if one.answerable else f"give {_flags(one.needs)}",
            one.seconds if one.answerable else None,
        )
        for one in result.plan
    )
    columns = (
        Column("Question"), Column("Can be answered"), Column("By"), Column("Seconds", align="right", format=".0f"),
    )  # fmt: skip
    return Table("What can be answered with what was given.", columns, rows)


def _flags(text: str) -> str:
    """Names of options in backquotes as flags; commands stay as they are."""
    parts = text.split("`")
    for at in range(1, len(parts), 2):
        name = parts[at]
        parts[at] = f"--{name.replace('_', '-')}" if name.isidentifier() else f"'truerank {name}'"
    return "".join(parts)


def _verdict(result: Check) -> Verdict:
    found = result.conclusion
    return Verdict(
        found.word,
        found.reason,
        what_would_change_it=_MEANINGS[found.word],
        subject="Is it true?",
        tone=_TONES[found.word],
    )


def forest_rows(result: Check) -> tuple[ForestRow, ...]:
    """The rows of the forest plot: the difference as the data are, then under each condition, by question."""
    rows: list[ForestRow] = []
    for answer in result.answers:
        if answer.question == "significance":
            rows += [_forest_row(one)._replace(label="As the data are", bold=True) for one in answer.estimates]
            continue
        figures = "" if answer.estimates else _without(answer)
        rows.append(ForestRow(_SHORT[answer.question], figures=figures, mark=None, bold=True))
        rows += map(_forest_row, answer.estimates)
    return tuple(rows)


def _without(answer: ClaimAnswer) -> str:
    return "not known" if answer.effect == "unknown" else "as the data are"


def _forest_row(one: ClaimEstimate) -> ForestRow:
    mark = "range" if one.is_range else _MARKS.get(one.effect)
    figures = one.figures().partition(" ")[2].strip("()") if one.is_range else one.figures()
    return ForestRow(one.label, one.value, one.low, one.high, figures, mark)


@reports(Check)
def _report(result: Check) -> Report:
    return Report(
        title=f"{result.sentence()[0].upper()}{result.sentence()[1:]}" if result.claim is None else result.sentence(),
        lead=_lead(result),
        verdicts=(_verdict(result),),
        sections=tuple(_sections(result)),
        tables={"answers": _answer_table(result), "estimates": _estimates(result), "plan": _plan_table(result)},
        json=result.json(),
    )


def _lead(result: Check) -> str:
    if result.claim is None or result.base is None:
        return "Give two runs for a claim; what can be said of the data stands below."
    told = _interval(result).removeprefix(", ")
    return f"{told[0].upper()}{told[1:]} of {result.test}." if told else f"On {result.test}."


def _sections(result: Check) -> Iterator[ReportSection]:
    if result.claim is not None and result.base is not None:
        yield ReportSection("conditions", "What carries the claim", tuple(_forest(result, result.claim)))
    lines = AnswerList(tuple(map(_line, result.answers)))
    yield ReportSection("questions", "Question by question", (lines,))
    yield ReportSection("figures", "The figures", (_estimates(result),) if result.claim is not None else ())
    yield ReportSection(
        "again", "Run it again", (Prose(("truerank check check.yaml, in this folder, asks the same again.",)),)
    )


def _forest(result: Check, claim: Claim) -> Iterator[Picture]:
    """The forest plot in two layouts."""
    label = f"{claim.system} minus {claim.baseline} (right: {claim.system} is better)"
    value = None if result.base is None else result.base.value
    many = f", corrected for {claim.comparisons} comparisons" if claim.comparisons > 1 else ""
    caption = (
        f"The difference under each condition, with its {100 * claim.confidence:.6g}% interval{many}. Rows by another "
        f"measure are in the unit of that measure, all others in {claim.measure}. The dotted line is the difference as "
        "the data are."
    )
    rows = forest_rows(result)
    wide, narrow = (
        forest_plot(rows, x_label=label, zero=True, line=value, meanings=_MARK_MEANINGS, narrow=narrow)
        for narrow in (False, True)
    )
    yield Picture("forest", caption, wide, screen="wide")
    yield Picture("forest-narrow", caption, narrow, screen="narrow")


def _line(answer: ClaimAnswer) -> AnswerLine:
    tone = _EFFECT_TONES[answer.effect]
    word = answer.word if answer.effect == "unknown" else f"{answer.word} · claim {EFFECTS[answer.effect]}"
    link = f"{answer.folder}/report.html" if answer.folder else ""
    return AnswerLine(
        QUESTIONS[answer.question], word, tone, answer.evidence, answer.consequence, _flags(answer.settles), link
    )  # fmt: skip


def _estimates(result: Check) -> Table:
    measure = "" if result.claim is None else result.claim.measure
    rows = tuple(
        (
            _SHORT[answer.question],
            one.label,
            one.measure or measure,
            one.topics,
            one.value,
            one.low,
            one.high,
            EFFECTS[one.effect],
        )
        for answer in result.answers
        for one in answer.estimates
    )
    number: dict[str, Any] = {"align": "right", "format": "+.4f"}
    columns = (
        Column(""), Column("Condition"), Column("Measure"), Column("Topics", align="right", format=",d"),
        Column("Difference", **number), Column("From", **number), Column("To", **number), Column("The claim"),
    )  # fmt: skip
    return Table("The difference under each condition.", columns, rows)


def card_of(result: Check) -> str:
    """A reproducibility statement for a README or an appendix, in Markdown."""
    rows = tuple((QUESTIONS[one.question], one.word, _told(result, one)) for one in result.answers)
    table = Table("", (Column("Question"), Column("Finding"), Column("The difference")), rows)
    conclusion = result.conclusion
    parts = [
        "## Can this result be believed?",
        f"**{escape_markdown(_claimed(result))}**",
        f"**{conclusion.word}**: {escape_markdown(conclusion.reason)}",
        table.markdown().strip(),
        f"Checked with truerank {__version__}; `truerank check check.yaml` repeats it.",
    ]
    return "\n\n".join(parts) + "\n"


@writes(Check)
def _write(result: Check, job: Run) -> None:
    report = _report(result)
    write_tables(job, report.tables)
    svgs = write_pictures(job, report.pictures())
    job.text("report.html", report.page(lambda picture: svgs[picture.name], job.provenance()).html())
    job.json("summary.json", report.json)
    job.text("findings.sarif", review(result, job.inputs))
    job.text("card.md", card_of(result))
    job.text("check.yaml", _settings(result.settings))
    for name in (AUDITS, f"{AUDITS}{RECORD}"):
        if (job.folder / name).is_file():
            job.note(name)


def _settings(values: Mapping[str, Any]) -> str:
    head = "# truerank check check.yaml runs this again; paths are seen from the folder of this file.\n"
    text: str = yaml.safe_dump({**values, "out": "."}, sort_keys=False, allow_unicode=True, width=120)
    return head + text
