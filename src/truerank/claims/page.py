"""How a check is shown: what the command prints, the page with its forest plot, the card, SARIF and `check.yaml`."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import yaml

from truerank.claims.claim import EFFECTS, Claim, ClaimEstimate, Effect, signed
from truerank.claims.options import KNOWN
from truerank.claims.questions import Question, question
from truerank.claims.results import Check, ClaimAnswer, ConclusionWord, SystemScore
from truerank.claims.steps import AUDITS
from truerank.core.page import AnswerLine, AnswerList, Prose
from truerank.core.report import Report, ReportSection
from truerank.core.result import Summary, gallery_notes, place_note, reports, summarises, writes
from truerank.core.rules import Finding, Severity
from truerank.core.sarif import sarif
from truerank.core.tables import Column, Table, card, escape_markdown
from truerank.core.verdict import LEVELS, Level, Verdict
from truerank.core.views import heads
from truerank.errors import InputError
from truerank.records import Input
from truerank.text.printable import counted
from truerank.work.kept import RECORD
from truerank.work.publishing import write_pictures, write_tables
from truerank.work.runs import Run

if TYPE_CHECKING:
    from truerank.core.figures.export import Picture
    from truerank.core.figures.forest import ForestMark, ForestRow

_EFFECT_LEVELS: Final[dict[Effect, Level]] = {
    "stands": "good", "smaller": "doubt", "not shown": "doubt", "appears": "doubt", "falls": "bad",
    "unknown": "unknown",
}  # fmt: skip
#: Of a finding, by what the answer does to the claim.
_SEVERITIES: Final[Mapping[Level, Severity]] = {"bad": "fault", "doubt": "doubt", "unknown": "note", "good": "note"}


def review(result: Check, inputs: Sequence[Input]) -> str:
    """The answers that do not leave the claim standing: what falls is an error, what is open a warning."""
    rules = [question(answer.question).rule for answer in result.answers]
    return sarif(f"check of {result.test}", rules, _findings(result, inputs))


def _level(answer: ClaimAnswer) -> Level:
    level = "bad" if answer.word == "FILES AT FAULT" else _EFFECT_LEVELS[answer.effect]
    return "doubt" if answer.objects and level == "good" else level


def _is_finding(answer: ClaimAnswer) -> bool:
    return answer.objects or _level(answer) not in ("good", "unknown")


def _findings(result: Check, inputs: Sequence[Input]) -> Iterator[Finding]:
    places: dict[str, str] = {}
    for each in inputs:
        places.setdefault(each.role, each.source or each.name)
    for answer in result.answers:
        if _is_finding(answer):
            place = places.get(question(answer.question).role, places.get("qrels", result.test))
            message = f"{result.sentence()}: {answer.evidence} {answer.consequence}"
            rule = question(answer.question).rule
            yield Finding(rule, message, place, 0, result.sentence(), _SEVERITIES[_level(answer)])


_MEANINGS: Final[dict[ConclusionWord, str]] = {
    "HOLDS": "The difference is above 0 by more than chance explains, and no question that was asked changes that.",
    "HOLDS, SMALLER THAN CLAIMED": "The difference is above 0, and smaller than claimed, repaired or run again.",
    "HOLDS EXCEPT": "The difference is above 0 by more than chance explains. Under the conditions named it is not.",
    "CANNOT TELL": "These data do not show the difference. That does not prove that there is none.",
    "DOES NOT HOLD": "The data show that the other run is better.",
    "FILES AT FAULT": "Fix the files first; until then, nothing can be said about the claim.",
    "UNKNOWN": "The given data do not decide it.",
}
#: Lines of the answer, columns of a line, and lines of the reason.
_MOST_LINES: Final = 11
_WIDTH: Final = 110
_REASON: Final = 4
_MARKS: Final[dict[Effect, ForestMark]] = {
    "stands": "filled", "smaller": "filled", "appears": "filled", "not shown": "hollow", "falls": "cross",
}  # fmt: skip
_MARK_MEANINGS: Final[dict[ForestMark, str]] = {
    "filled": "the interval is above 0",
    "hollow": "the interval includes 0",
    "cross": "not better",
    "range": "all values that are possible",
}


@summarises(Check)
def _summary(result: Check) -> Summary:
    if not result.answers:
        able = sum(one.answerable for one in result.plan)
        count = f"{able} of {len(result.plan)} questions can be answered."
        return Summary((_plan_table(result), count), result.json())
    conclusion = result.conclusion
    settles = [f"{question(one.question).text} {_flags(one.settles)}" for one in result.answers if one.settles]
    details: tuple[Table | str, ...] = (
        f"{conclusion.word}: {conclusion.reason}",
        *([_runs(result)] if _scores(result) else []),
        _answer_table(result),
        *(["To settle:\n" + "\n".join(f"- {one}" for one in settles)] if settles else []),
    )
    notes = (*place_note("The page", result.folder, "report.html"), *gallery_notes(result.json()))
    fault = None
    if conclusion.word == "FILES AT FAULT":
        fault = InputError("the files allow no comparison", result.answer("files").settles, where=result.test)
    parts = ("\n".join(_answered(result)),)
    return Summary(parts, result.json(), (_verdict(result),), notes, width=110, fault=fault, details=details)


def _decides(result: Check, answer: ClaimAnswer) -> bool:
    """Whether the short answer names a question: where chance explains the difference, others say the same."""
    if result.claim is None:
        return _is_finding(answer) or LEVELS.get(answer.word, "unknown") not in ("good", "unknown")
    if result.headline is None or result.headline.effect == "stands":
        return _is_finding(answer)
    changes = answer.repair is not None or answer.plausible or answer.effect in ("falls", "appears")
    return answer.question == "chance" or changes


def _answered(result: Check) -> list[str]:
    """The answer in at most twelve lines: the claim, the word, what objects, and what settles it."""
    word = result.conclusion.word
    brief = result.conclusion.brief
    # What is beside a lead is no reason for it.
    meaning = _MEANINGS[word] if not brief or word in ("HOLDS", "HOLDS, SMALLER THAN CLAIMED") else ""
    reason = " ".join(filter(None, (f"{word}:", meaning, brief)))
    lines = [_claimed(result), *textwrap.wrap(reason, _WIDTH, max_lines=_REASON, placeholder=" …")]
    objects = [answer for answer in result.answers if _decides(result, answer)]
    shown = objects[: _MOST_LINES - len(lines) - 3]
    for answer in shown:
        about = question(answer.question)
        text = f"  {about.rule.code} {_titled(about)}: {_said(result, answer)}"
        if result.claim is None:
            lines += textwrap.wrap(text, _WIDTH, initial_indent="  ", subsequent_indent="    ", max_lines=_REASON)
            continue
        short = textwrap.shorten(text, _WIDTH, placeholder=" …")
        lines.append(short.replace(about.rule.code, f"  {about.rule.code}", 1))
    settles = [_flags(answer.settles) for answer in objects if answer.settles]
    if settles:
        lines.append(textwrap.shorten(f"To settle: {' '.join(settles)}", _WIDTH, placeholder=" … (-v)"))
    asked = [one for one in result.plan if not one.answerable]
    if asked:
        named = ", ".join(f"{question(one.name).subject} ({_flags(one.needs) or '--ignore'})" for one in asked)
        named += ", what only you know (check.yaml)" * bool(_unanswered(result))
        lines.append(textwrap.shorten(f"Not asked: {named}", _WIDTH, placeholder=" … (-v)"))
    if len(shown) < len(objects):
        others = ", ".join(question(one.question).subject for one in objects[len(shown) :])
        lines.append(textwrap.shorten(f"Also: {others}", _WIDTH - 5, placeholder=" …") + " (-v)")
    return lines


def _titled(about: Question) -> str:
    return f"{about.subject[0].upper()}{about.subject[1:]}"


def _claimed(result: Check) -> str:
    """The claim with its interval."""
    if result.single is not None:
        return f"{result.sentence()}{_ends_of(result.single)}."
    if result.claim is None or result.base is None:
        return f"{result.sentence()}: no figure."
    return f"{result.sentence()}{_interval(result)}."


def _ends_of(single: SystemScore) -> str:
    level = f"{100 * single.confidence:.6g}% interval"
    ends = "" if single.low is None or single.high is None else f", {level} {single.low:.3f} to {single.high:.3f}"
    return f"{ends}, on {counted(single.topics, single.unit.removesuffix('s'))}"


def _interval(result: Check) -> str:
    base, claim = result.headline, result.claim
    if base is None or claim is None:
        return ""
    many = f", on {base.topics} {claim.unit}"
    if base.low is None or base.high is None:
        return many
    low, high = base.low, base.high
    corrected = f", corrected for {claim.comparisons} comparisons" if claim.comparisons > 1 else ""
    ends = f"{signed(low)} to {signed(high)}{corrected}"
    return f", {100 * claim.confidence:.6g}% interval {ends}{many}"


def _answer_table(result: Check) -> Table:
    rows = tuple((question(one.question).text, one.word, _effect(one), _said(result, one)) for one in result.answers)
    columns = (Column("Question"), Column("Finding"), Column("The claim"), Column("What it does to the difference"))
    return Table("", columns, rows)


def _effect(answer: ClaimAnswer) -> str:
    """What becomes of the claim, as one word; the same on the page, in tables and on badges."""
    return "except" if answer.objects and answer.effect in ("stands", "smaller") else EFFECTS[answer.effect]


def _said(result: Check, one: ClaimAnswer) -> str:
    """What an answer says in a table: what it does to the claim, or what was found where there is none."""
    return one.consequence if result.claim is not None and one.consequence else one.evidence


def _plan_table(result: Check) -> Table:
    rows = tuple(
        (
            question(one.name).text,
            "yes" if one.answerable else "no",
            one.what
            if one.answerable
            else f"give {_flags(one.needs)}"
            if one.needs
            else "left out (--select, --ignore)",
            one.seconds if one.answerable else None,
        )
        for one in result.plan
    )
    columns = heads("Question, Can_be_answered, By, Seconds:.0f")
    return Table("Questions that can be answered with what was given.", columns, rows)


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
        settles=_MEANINGS[found.word],
        subject="Is it true?",
    )


def forest_rows(result: Check) -> tuple[ForestRow, ...]:
    """The rows of the forest plot: the difference as the data are, then under each condition, by question."""
    from truerank.core.figures.forest import ForestRow

    rows: list[ForestRow] = []
    for answer in result.answers:
        if answer.question == "chance":
            rows += [
                _forest_row(one)._replace(label=f"{one.label[0].upper()}{one.label[1:]}", bold=True)
                for one in answer.estimates
            ]
            continue
        figures = "" if answer.estimates else ("not known" if answer.effect == "unknown" else "as the data are")
        rows.append(ForestRow(question(answer.question).short, figures=figures, mark=None, bold=True))
        rows += map(_forest_row, answer.estimates)
    return tuple(rows)


def _forest_row(one: ClaimEstimate) -> ForestRow:
    from truerank.core.figures.forest import ForestRow

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
        tables={
            "answers": _answer_table(result),
            "runs": _runs(result),
            "estimates": _estimates(result),
            "plan": _plan_table(result),
        },
        json=result.json(),
    )


def _lead(result: Check) -> str:
    if result.conclusion.word == "FILES AT FAULT":
        return "No figure of the comparison means anything before the files are mended."
    if result.claim is None or result.base is None:
        return "Give two runs for a claim. What was found about the data follows."
    text = _interval(result).removeprefix(", ")
    return f"{text[0].upper()}{text[1:]} of {result.test}." if text else f"On {result.test}."


def _sections(result: Check) -> Iterator[ReportSection]:
    if result.claim is not None and result.base is not None:
        pictures = (*_forest(result, result.claim), *_best_of_many(result, result.claim))
        yield ReportSection("conditions", "What carries the claim", pictures)
    if result.answers:
        yield ReportSection("statements", "What that rests on", tuple(_statements(result)))
    if _scores(result):
        yield ReportSection("runs", "The two runs", (_runs(result),))
    lines = AnswerList(tuple(map(_line, result.answers)))
    yield ReportSection("questions", "Question by question", (lines,))
    given = tuple(f"{one.path}: {one.kind}: {one.why}." for one in result.readings)
    remarks = tuple(f"{remark}." for one in result.readings for remark in one.said())
    known = gallery_notes(result.json())
    yield ReportSection("given", "What was given", (Prose((*given, *remarks, *known)),) if (*given, *known) else ())
    yield ReportSection("figures", "The figures", (_estimates(result),) if result.claim is not None else ())
    yield ReportSection(
        "again", "Run it again", (Prose(("Run `truerank check check.yaml` in this folder to repeat the check.",)),)
    )


def _statements(result: Check) -> Iterator[Table]:
    """What was found, what cannot be excluded, what was not asked: three kinds of statements, kept apart."""
    named = [(_titled(question(answer.question)), answer) for answer in result.answers]
    found = [(title, _said(result, answer)) for title, answer in named if answer.effect != "unknown"]
    open_ones = [(title, answer.possible) for title, answer in named if answer.possible]
    unknown = result.conclusion.unknown
    asked = [(title, _flags(answer.settles)) for title, answer in named if answer.question in unknown]
    if keys := _unanswered(result):
        asked.append(("What only you know", f"Answer yes or no in check.yaml: {', '.join(keys)}."))
    titles = ("Found.", "Cannot be excluded by these data.", "Not asked.")
    for title, rows in zip(titles, (found, open_ones, asked), strict=True):
        if rows:
            yield Table(title, (Column("Question"), Column("")), tuple(rows))


def _unanswered(result: Check) -> list[str]:
    """The keys of check.yaml for what no data show, as far as nobody answered them."""
    return [key for key in KNOWN if result.claim is not None and key not in result.settings]


def _scores(result: Check) -> Mapping[str, Any]:
    files = next((answer for answer in result.answers if answer.question == "files"), None)
    return {} if files is None else files.facts.get("scores", {})


def _runs(result: Check) -> Table:
    """Both scores, what of them is judged, and how many results there are."""
    measure = "Score" if result.claim is None else result.claim.measure
    counted = heads("First_results_judged:.0%, Fewest_results:,d, Median:,d, Most:,d")
    columns = (Column("Run"), *Column.numbers(".3f", measure), *counted)
    rows = [(name, row["score"], row["judged"], *row["results"]) for name, row in _scores(result).items()]
    if rows and (floor := result.answer("files").facts["floor"])["mean"] is not None:
        rows.append((f"never reads the query: {floor['by']}", floor["mean"], None, None, None, None))
    return Table("Both runs, before any repair.", columns, tuple(rows))


def _forest(result: Check, claim: Claim) -> Iterator[Picture]:
    """The forest plot in two layouts."""
    # Here: what is printed needs no pictures.
    from truerank.core.figures.export import Picture
    from truerank.core.figures.forest import forest_plot

    label = f"{claim.system} minus {claim.baseline} (right: {claim.system} is better)"
    value = None if result.base is None else result.base.value
    many = f", corrected for {claim.comparisons} comparisons" if claim.comparisons > 1 else ""
    caption = (
        f"The difference under each condition, with its {100 * claim.confidence:.6g}% interval{many}. Rows by another "
        f"measure are in the unit of that measure, all others in {claim.measure}. The dotted line is the "
        "difference before any repair."
    )
    rows = forest_rows(result)
    wide, narrow = (
        forest_plot(rows, x_label=label, zero=True, line=value, meanings=_MARK_MEANINGS, narrow=narrow)
        for narrow in (False, True)
    )
    yield Picture("forest", caption, wide, screen="wide")
    yield Picture("forest-narrow", caption, narrow, screen="narrow")


def _best_of_many(result: Check, claim: Claim) -> Iterator[Picture]:
    """What the best of n configurations leads by where none is better, beside the lead of the chosen one."""
    choice = next((answer for answer in result.answers if answer.question == "choice"), None)
    chance = () if choice is None else choice.facts.get("by_chance", ())
    if choice is None or len(chance) < 2:
        return
    from truerank.core.figures.export import Picture
    from truerank.core.figures.lines import LinePanel, LineSeries, line_panels

    lead = choice.facts["lead"]
    quantile = f"{(1 + claim.confidence) / 2:.1%} quantile"
    values = {"mean": [one[1] for one in chance], quantile: [one[2] for one in chance]}
    values[f"lead of {claim.system}"] = [lead] * len(chance)
    series = tuple(LineSeries(name, tuple((one, None, None) for one in own)) for name, own in values.items())
    panel = LinePanel("", tuple(f"{size:,d}" for size, _, _ in chance), series, zero=True)
    caption = (
        f"The lead over {claim.baseline} of the best of n configurations where none is better, by random signs of the "
        f"differences of those that were tried, and the lead of {claim.system}."
    )
    drawn = line_panels([panel], x_label="configurations tried", y_label=claim.measure, columns=1)
    yield Picture("choice", caption, drawn)


def _line(answer: ClaimAnswer) -> AnswerLine:
    word = answer.word if _effect(answer) == EFFECTS["unknown"] else f"{answer.word} · claim {_effect(answer)}"
    link = f"{answer.folder}/report.html" if answer.folder else ""
    consequence = (
        f"{answer.consequence} Cannot be excluded: {answer.possible}" if answer.possible else answer.consequence
    )
    return AnswerLine(
        question(answer.question).text, word, _level(answer), answer.evidence, consequence.strip(),
        _flags(answer.settles), link, question(answer.question).rule.code,
    )  # fmt: skip


def _estimates(result: Check) -> Table:
    measure = "" if result.claim is None else result.claim.measure
    unit = "Topics" if result.claim is None else result.claim.unit.capitalize()
    rows = tuple(
        (
            question(answer.question).short,
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
    differences = heads("Difference:+.4f, From:+.4f, To:+.4f, The_claim")
    columns = (Column(""), *heads("Condition, Measure"), *Column.numbers(",d", unit), *differences)
    return Table("The difference under each condition.", columns, rows)


def card_of(result: Check) -> str:
    """A reproducibility statement for a README or an appendix, in Markdown."""
    rows = tuple((question(one.question).text, one.word, _said(result, one)) for one in result.answers)
    table = Table("", (Column("Question"), Column("Finding"), Column("The difference")), rows)
    conclusion = result.conclusion
    return card(
        "Can this result be believed?",
        "; `truerank check check.yaml` repeats it.",
        f"**{escape_markdown(_claimed(result))}**",
        f"**{conclusion.word}**: {escape_markdown(conclusion.reason)}",
        table,
    )


@writes(Check)
def _write(result: Check, job: Run) -> None:
    report = _report(result)
    write_tables(job, report.tables)
    svgs = write_pictures(job, report.pictures())
    job.text("report.html", report.page(lambda picture: svgs[picture.name], job.provenance()).html())
    job.json("summary.json", report.json)
    job.text("findings.sarif", review(result, job.inputs))
    job.text("card.md", card_of(result))
    head = "# truerank check check.yaml runs this again; paths are seen from the folder of this file.\n"
    text: str = yaml.safe_dump({**result.settings, "out": "."}, sort_keys=False, allow_unicode=True, width=120)
    job.text("check.yaml", head + text)
    for name in (AUDITS, f"{AUDITS}{RECORD}"):
        if (job.folder / name).is_file():
            job.note(name)
