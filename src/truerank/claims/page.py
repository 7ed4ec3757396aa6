"""How a check is shown: what the command prints, the page, the card, SARIF and `check.yaml`."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

import yaml

from truerank.claims.claim import Claim
from truerank.claims.options import KNOWN
from truerank.claims.questions import flags, question
from truerank.claims.register import spoken
from truerank.claims.results import Check, ClaimAnswer, ClaimRow
from truerank.claims.steps import AUDITS
from truerank.core.page import AnswerLine, AnswerList, ContrastRow, ContrastTable, Front, Prose
from truerank.core.report import Report, ReportSection
from truerank.core.result import Summary, gallery_notes, place_note, reports, summarises, writes
from truerank.core.rules import Finding
from truerank.core.sarif import sarif
from truerank.core.tables import Column, Table, card, escape_markdown
from truerank.core.verdict import Level, Verdict
from truerank.core.views import heads
from truerank.errors import InputError
from truerank.records import Input
from truerank.text.printable import capital, counted
from truerank.work.kept import RECORD
from truerank.work.publishing import write_tables
from truerank.work.runs import Run

#: Words whose next step is no question of evidence.
_DO: Final = ("FILES AT FAULT", "HOLDS", "HOLDS SMALLER")
#: How a line of the terminal begins that has no mark.
_NOTED: Final = {"●": "Found", "○": "Also found"}
#: What an audit says that found nothing, where there is no claim.
_CLEAR: Final = frozenset(("AS THEY SEEM", "CLEAN", "SOUND"))
#: Lines of the answer, and columns of a line.
_MOST_LINES: Final = 12
_WIDTH: Final = 100
_wrapped: Final = partial(textwrap.wrap, width=_WIDTH, break_on_hyphens=False, break_long_words=False)


def review(result: Check, inputs: Sequence[Input]) -> str:
    """The answers that do not leave the claim standing: what falls is an error, what is open a warning."""
    places = {each.role: each.source or each.name for each in reversed(inputs)}

    def found(answer: ClaimAnswer) -> Finding:
        about = question(answer.question)
        place = places.get(about.role, places.get("qrels", result.test))
        message = " ".join(filter(None, (result.asked, answer.found or answer.evidence, answer.consequence)))
        return Finding(about.rule, message, place, 0, result.asked, answer.severity)

    rules = [question(answer.question).rule for answer in result.answers]
    return sarif(f"check of {result.test}", rules, map(found, result.objections()))


@summarises(Check)
def _summary(result: Check) -> Summary:
    conclusion = result.conclusion
    details: tuple[Table | str, ...] = (
        *(["\n".join(conclusion.means)] if conclusion.means else []),
        "What was checked:\n" + "\n".join(f"{mark} {text}" for mark, text in checks_of(result)),
        *([_runs(result)] if _scores(result) and result.base is not None else []),
        _answer_table(result),
    )
    notes = (*place_note("The page", result.folder, "report.html"), *gallery_notes(result.json()))
    fault = None
    if conclusion.word == "FILES AT FAULT":
        fault = InputError("the files allow no comparison", "correct them, then check again", where=result.test)
    lines = "\n".join(_answered(result))
    return Summary((lines,), result.json(), (_verdict(result),), notes, width=110, fault=fault, details=details)


def _answered(result: Check) -> list[str]:
    """The answer in at most twelve lines: what was found, before and after, what it means, and what settles it."""
    conclusion = result.conclusion
    head, said = list[str](), f"{conclusion.sentence} {conclusion.decision}"
    for text in (f"{result.asked}  {conclusion.word}", conclusion.found, conclusion.figure):
        head += _wrapped(text)
    decision, title = _wrapped(conclusion.decision), "Next" if conclusion.word in _DO else "To settle"
    every, unlooked = conclusion.rows, _left_open(result)
    # Of a long answer the first and the last row are told, and what settles it first.
    for rows, count in ((every, 2), (every, 1), (every[:1] + every[-1:], 1), (every[:1] + every[-1:], 0)):
        settles = " ".join(map(flags, conclusion.settles[:count]))
        end = [*(_wrapped(f"{title}: {settles}") if settles else ()), *unlooked]
        table = _row_lines(result, rows[: 1 if len(every) == 1 else None]) if rows else []
        room = _MOST_LINES - len(head) - len(decision) - len(end) - len(table)
        if room >= 0:
            break
    marks = "○" if conclusion.rows else "" if conclusion.word == "FILES AT FAULT" else "●○?"
    shown = [
        text if mark == "?" else f"{_NOTED[mark]}: {text.partition(': ')[2]}"
        for mark, text in checks_of(result)
        if mark in marks
    ]
    beside = list[str]()
    for line in shown:
        wrapped = _wrapped(line, subsequent_indent="  ")
        told = bool(every) and line.partition(": ")[2].partition("; ")[0] in said
        beside += wrapped if not told and len(beside) + len(wrapped) <= room else []
    room -= len(beside)
    # What was left out or has to be said in any case, as far as there is room.
    for text in conclusion.means:
        wrapped, after = _wrapped(text), text.partition(": ")[2].rstrip(".")
        if len(wrapped) <= room and not (after and after in " ".join(beside)):
            decision, room = [*decision, *wrapped], room - len(wrapped)
    return [*head, *([""] if table and room > 0 else []), *table, *beside, *decision, *end]


def _row_lines(result: Check, rows: Sequence[ClaimRow]) -> list[str]:
    """The first table as lines: both scores, and the difference."""
    cells = [["", *_names(result), f"difference ({_level_of(result)})"]]
    for row in rows:
        scores = ["", ""] if row.estimate.scores is None else [f"{score:.3f}" for score in row.estimate.scores]
        cells.append([f"{' ' * (row is not rows[0])}{row.name}", *scores, row.estimate.figures()])
    widths = [max(len(line[at]) for line in cells) for at in range(3)]
    return [
        f"{first:{widths[0]}}   {one:>{widths[1]}}  {two:>{widths[2]}}   {last}".rstrip()
        for first, one, two, last in cells
    ]


def _level_of(result: Check) -> str:
    if (claim := result.claim) is None:
        return ""
    several = f", {claim.comparisons} comparisons" if claim.comparisons > 1 else ""
    return f"{100 * claim.confidence:.6g}% interval{several}"


def _names(result: Check) -> tuple[str, str]:
    """The system and the baseline, as tables have them."""
    pair = ("", "") if result.claim is None else (result.claim.system, result.claim.baseline)
    return result.names.get(pair[0], pair[0]), result.names.get(pair[1], pair[1])


def _left_open(result: Check) -> list[str]:
    """What was not checked, the largest threat first, in one line."""
    every = result.conclusion.not_checked
    names = [name for name in every if f"Not checked: {name}" not in result.conclusion.decision]
    if not names:
        return []
    more = f" and {len(names) - 1} more (-v)" if len(names) > 1 else ""
    line = f"{'Not' if len(names) == len(every) else 'Also not'} checked: {names[0]}{more}"
    page = f"{line}   For a page: --out DIR"
    return [page if result.folder is None and len(page) <= _WIDTH else line]


#: What the marks of checks say, and how they are shown.
_SAYS: Final[Mapping[str, tuple[str, Level]]] = {
    "●": ("changes the answer", "bad"), "○": ("found", "doubt"), "✓": ("no problem", "good"),
    "?": ("unclear", "unknown"), "–": ("not checked", "unknown"),
}  # fmt: skip


def _mark(result: Check, answer: ClaimAnswer) -> str:
    """What a check did: ● changes the answer, ○ found, ✓ nothing found, ? unclear, – not checked."""
    word = result.conclusion.word
    if not answer.given:
        return "–"
    says = answer.found or answer.exception or word == "FILES AT FAULT"
    decides = answer.question == result.conclusion.decided_by and says
    if (decides and word != "HOLDS") or (answer.objects and word == "HOLDS EXCEPT"):
        return "●"
    if answer.possible or (answer.effect == "unknown" and not (result.claim is None and answer.word in _CLEAR)):
        return "?"
    return "○" if answer.found else "✓"


def checks_of(result: Check) -> list[tuple[str, str]]:
    """What was checked, a mark and a line each; what found nothing stands in one line."""
    lines, clear = list[tuple[str, str]](), list[str]()
    # What was repaired stands first among what was found.
    for answer in sorted(result.answers, key=lambda one: one.repair is None):
        short, mark = spoken(question(answer.question).short, golden=result.golden), _mark(result, answer)
        if answer.question == "chance" or mark == "–":
            continue
        if mark == "✓":
            clear.append(short if not clear else short[0].lower() + short[1:])
            continue
        first = "" if answer.word.startswith("FAULTY") else answer.consequence.partition(". ")[0]
        objection = answer.exception[0] if answer.objects else ""
        says = flags(answer.found or objection or first or answer.possible or answer.evidence).rstrip(".")
        done = f"; {answer.repair.done}" if mark == "○" and answer.repair is not None else ""
        lines.append((mark, f"{short}: {says}{done}"))
    lines.sort(key=lambda line: "●○?".index(line[0]))
    if clear:
        lines.append(("✓", f"{', '.join(clear)}: no problem"))
    open_keys = [key for key in KNOWN if result.base is not None and key not in result.settings]
    unlooked = [
        *result.conclusion.not_checked,
        *(["what no file shows, such as tuning on this test"] if open_keys else []),
    ]
    return [*lines, *([("–", f"Not checked: {', '.join(unlooked)}")] if unlooked else [])]


def _answer_table(result: Check) -> Table:
    rows = tuple(
        (
            f"{question(one.question).rule.code} {spoken(question(one.question).text, golden=result.golden)}",
            one.word.capitalize() if one.question == "chance" else one.found or _SAYS[_mark(result, one)][0],
            flags(one.consequence),
            flags(one.settles),
        )
        for one in result.answers
    )
    return Table("", heads("Check, Finding, What_it_changes, Next_step"), rows)


def _verdict(result: Check) -> Verdict:
    return Verdict(result.conclusion.word, result.sentence(), result.conclusion.decision, subject=result.asked)


@reports(Check)
def _report(result: Check) -> Report:
    rows = _rows_table(result, result.conclusion.rows)
    return Report(
        title=f"{result.asked} {result.conclusion.word}",
        lead="",
        verdicts=(_verdict(result),),
        sections=tuple(_sections(result)),
        tables={"answers": _answer_table(result), "runs": _runs(result), **({} if rows is None else {"rows": rows})},
        json=result.json(),
        front=front_of(result),
    )


def front_of(result: Check) -> Front:
    """The first screen of the page."""
    conclusion, claim = result.conclusion, result.claim
    arrow = re.search(r"[+−]?\d\.\d{3} → [+−]?\d\.\d{3}(?: [\w@().]+\w)?", conclusion.figure)
    pair = () if conclusion.example is None else (conclusion.example.test, conclusion.example.train)
    said = "" if conclusion.example is None else conclusion.example.confirmed
    folder = next((one.folder for one in result.answers if one.question == conclusion.decided_by), "")
    systems = len(claim.evaluation.runs) if claim is not None else 0
    base = result.base
    topics = 0 if claim is None else len(claim.evaluation.topics)
    read = [] if claim is None or base is None else [f"{topics:,d} {claim.unit}", counted(systems, "system")]
    return Front(
        kicker=(f"truerank check · {result.test}", " · ".join((*read, *([claim.measure] if claim else [])))),
        question=result.asked,
        word=conclusion.word,
        fault=conclusion.found,
        text=conclusion.figure,
        strong="" if arrow is None else arrow[0],
        decision=conclusion.decision,
        example=pair,
        example_note=(f"One example. {said}".strip() if pair else "", f"{folder}/report.html" if folder else ""),
        table=None
        if claim is None or not conclusion.rows
        else _contrast(result, conclusion.rows, conclusion.caption, _meaning(claim), _key(result, claim)),
        notes=(
            ("What else it means", conclusion.means),
            ("What to do" if conclusion.word in _DO else "What would settle it", tuple(map(flags, conclusion.settles))),
        ),
        checks=tuple(checks_of(result)),
    )


def _contrast(result: Check, rows: Sequence[ClaimRow], caption: str, measure: str = "", key: str = "") -> ContrastTable:
    """A table of differences between the two systems."""
    shown = tuple(_contrast_row(row) for row in rows if row.estimate.value is not None)
    return ContrastTable(caption, measure, _names(result), _level_of(result).partition(",")[0], shown, key)


def _contrast_row(row: ClaimRow) -> ContrastRow:
    one, scores = row.estimate, row.estimate.scores
    value, _, ends = one.figures().partition(" ")
    return ContrastRow(
        row.name, row.note, ("–", "–") if scores is None else (f"{scores[0]:.3f}", f"{scores[1]:.3f}"),
        None if one.is_range else one.value, one.ends,
        ("", ends) if one.is_range else (value, ends),
        {"touched": "part", "answer": "answer"}.get(row.role, ""),  # type: ignore[arg-type]
    )  # fmt: skip


#: What a score means, by the beginning of the measure's name.
_SCORES: Final = {
    "nDCG": "1 if the {most} come first, 0 if no {right} is {among}",
    "RR": "1 over the rank of the first {right}, 0 if none is {among}",
    "AP": "1 if all {rights} come first, 0 if none is {among}",
    "P": "the share of {among_them} that is {is_right}",
    "R": "the share of the {rights} that is {among}",
    "Success": "1 if one {right} is {among}, otherwise 0",
}


def _meaning(claim: Claim) -> str:
    """What the figures mean, in one line."""
    name, _, cutoff = claim.measure.partition("@")
    text = _SCORES.get(name, "")
    if not text:
        return "" if claim.measured else "mean scores; higher counts as better"
    right = "expected document" if claim.golden else "relevant document"
    first = f"the first {cutoff} results" if cutoff.isdigit() else "the results"
    return f"{claim.measure}: " + text.format(
        most=f"{right}s" if claim.golden else "most relevant documents", right=right, rights=f"{right}s",
        among=f"among {first}", among_them=first, is_right=right.split(maxsplit=1)[0],
    )  # fmt: skip


def _key(result: Check, claim: Claim) -> str:
    marks = {"stands": "■ interval above 0", "not shown": "□ includes 0: chance alone could explain it"}
    marks["falls"] = "× below 0"
    hollow = [row.estimate for row in result.conclusion.rows if row.estimate.effect == "not shown"]
    if all(one.few for one in hollow if round(one.value or 0, 3)):
        marks["not shown"] = f"□ no interval: too few {claim.unit} differ"
    effects = {row.estimate.effect for row in result.conclusion.rows if round(row.estimate.value or 0, 3)}
    text = "   ".join(says for effect, says in marks.items() if effect in effects)
    if claim.comparisons > 1:
        text += f". Intervals are widened for {claim.comparisons} comparisons of systems."
    return text


def _sections(result: Check) -> Iterator[ReportSection]:
    lines = tuple(_line(result, answer) for answer in result.answers)
    yield ReportSection("checks", "All checks", (AnswerList(lines),))
    if result.claim is not None and result.base is not None:
        every = [(question(answer.question).short, one) for answer in result.answers for one in answer.estimates]
        measures = [ClaimRow(one.measure, "", one) for _, one in every if one.measure]
        # What a condition leaves as it is says nothing.
        final = result.headline.figures() if result.headline else ""
        others = [
            ClaimRow(capital(one.label), spoken(short, golden=result.golden), one)
            for short, one in every
            if not one.measure and (one is result.headline or one.figures() != final)
        ]
        if measures:
            yield ReportSection(
                "measures", "Other measures", (_contrast(result, measures, "By other measures, each in its own unit"),)
            )
        figures = (_contrast(result, others, "Under each condition"), *([_runs(result)] if _scores(result) else []))
        yield ReportSection("figures", "Every figure", figures)
    given = tuple(f"{one.path}: {one.kind}: {one.why}." for one in result.readings)
    remarks = tuple(f"{remark}." for one in result.readings for remark in one.said())
    known = gallery_notes(result.json())
    yield ReportSection("given", "What was read", (Prose((*given, *remarks, *known)),) if (*given, *known) else ())
    repeat = "Run `truerank check check.yaml` in this folder."
    told = f"What no file shows can be stated in it, with yes or no: {', '.join(KNOWN)}."
    yield ReportSection("again", "Repeat this check", (Prose((repeat, told)),))


def _scores(result: Check) -> Mapping[str, Any]:
    files = next((answer for answer in result.answers if answer.question == "files"), None)
    return {} if files is None else files.facts.get("scores", {})


def _runs(result: Check) -> Table:
    """Both scores, what of them is judged, and how many results there are."""
    measure = "Score" if result.claim is None else result.claim.measure
    lengths = heads("First_results_judged:.0%, Fewest_results:,d, Median:,d, Most:,d")
    # Of a table of questions few results are labelled, as nobody wants more.
    columns = (Column("System"), *Column.numbers(".3f", measure), *lengths[result.golden :])
    rows = [
        (name, row["score"], *([] if result.golden else [row["judged"]]), *row["results"])
        for name, row in _scores(result).items()
    ]
    return Table("Both systems, as given.", columns, tuple(rows))


def _line(result: Check, answer: ClaimAnswer) -> AnswerLine:
    about = question(answer.question)
    word, level = _SAYS[_mark(result, answer)]
    if answer.question == "chance":
        word, level = answer.word.lower(), answer.level
    link = f"{answer.folder}/report.html" if answer.folder else ""
    possible = f"Still possible: {answer.possible}" if answer.possible not in answer.consequence else ""
    # The evidence may begin with the same count.
    same = answer.found.split()[:3] == answer.evidence.split()[:3]
    evidence = " ".join(filter(None, ("" if same else answer.found, answer.evidence)))
    consequence = flags(" ".join(filter(None, (answer.consequence, possible))))
    title = spoken(about.text, golden=result.golden)
    return AnswerLine(title, word, level, evidence, consequence, flags(answer.settles), link, about.rule.code)


def _rows_table(result: Check, rows: Sequence[ClaimRow]) -> Table | None:
    """The first table, as files and the card have it; None without a claim."""
    columns = (Column(""), *Column.numbers(".3f", *_names(result)), Column(f"Difference ({_level_of(result)})"))
    cells = ((row.name, *(row.estimate.scores or (None, None)), row.estimate.figures()) for row in rows)
    return Table("", columns, tuple(cells)) if rows else None


def card_of(result: Check) -> str:
    """A statement for a README or a pull request, in Markdown: the answer, three rows, and what was not checked."""
    conclusion, rows = result.conclusion, result.conclusion.rows
    table = _rows_table(result, rows if len(rows) < 4 else (rows[0], rows[1], rows[-1]))
    unlooked = f"Not checked: {', '.join(conclusion.not_checked)}." if conclusion.not_checked else ""
    return card(
        f"{result.asked} {conclusion.word}",
        "; `truerank check check.yaml` repeats it.",
        f"**{escape_markdown(result.sentence())}**",
        *([] if table is None else [table]),
        escape_markdown(" ".join((conclusion.decision, *(f"To settle: {flags(x)}" for x in conclusion.settles[:1])))),
        escape_markdown(unlooked),
    )


@writes(Check)
def _write(result: Check, job: Run) -> None:
    report = _report(result)
    write_tables(job, report.tables)
    job.text("report.html", report.page(lambda _: "", job.provenance()).html())
    job.json("summary.json", report.json)
    job.text("findings.sarif", review(result, job.inputs))
    job.text("card.md", card_of(result))
    head = "# truerank check check.yaml runs this again; paths are seen from the folder of this file.\n"
    text: str = yaml.safe_dump({**result.settings, "out": "."}, sort_keys=False, allow_unicode=True, width=120)
    job.text("check.yaml", head + text)
    for name in (AUDITS, f"{AUDITS}{RECORD}"):
        if (job.folder / name).is_file():
            job.note(name)
