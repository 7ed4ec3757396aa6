"""The leakage audit for people: a page with every pair, a short text for the terminal, and its files."""

from __future__ import annotations

import functools
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from truerank.audits.leakage.demo import DemoResult, truth_table
from truerank.audits.leakage.page import calibrated_for, counted, lead, sections, similarity_pictures, title
from truerank.audits.leakage.results import AuditResult, AuditSummary, TestSummary, VerdictWord, columns_read
from truerank.audits.leakage.review import review
from truerank.audits.leakage.seen import short_sensitivity_tables
from truerank.audits.leakage.tables import counts_table, labels_of, neighbours_table, news_table
from truerank.reports.pages import Tone
from truerank.reports.report import Report, Verdict
from truerank.reports.results import Summary, reports, summarises, writes
from truerank.reports.tables import Table
from truerank.text.normalising import normalise
from truerank.work.runs import Run

_MEANINGS: Final[dict[VerdictWord, str]] = {
    "CONTAMINATED": (
        "A model trained on these sources has probably seen queries of this test set. Look at the pairs below before "
        "you believe a score: remove them from the training data, or report the topics with and without leaks apart."
    ),
    "CLEAN": (
        "Everything was read, and nothing that this audit can see is left unjudged. What it can see is measured: "
        "rewordings of these very topics were planted, and the table says which share of each kind would have been "
        "found."
    ),
    "UNKNOWN": (
        "This is not a clean result. Something was not looked at, not judged, or cannot be seen; do what is named here "
        "before you rely on this test set."
    ),
}
TONES: Final[dict[VerdictWord, Tone]] = {"CONTAMINATED": "bad", "CLEAN": "good", "UNKNOWN": "open"}


def _sign(left: float, right: float, shared: str = "", dashes: str = "") -> str:
    """Training data and test set as two circles."""
    ring = 'cy="12" r="9" fill="none" stroke="currentColor" stroke-width="2"'
    return (
        f'<svg viewBox="0 0 44 24" aria-hidden="true">{shared}<circle cx="{left:g}" {ring}/>'
        f'<circle cx="{right:g}" {ring}{dashes}/></svg>'
    )


SIGNS: Final[dict[VerdictWord, str]] = {
    "CONTAMINATED": _sign(16.5, 27.5, '<path d="M22 4.9a9 9 0 0 1 0 14.2a9 9 0 0 1 0-14.2z" fill="currentColor"/>'),
    "CLEAN": _sign(11, 33),
    "UNKNOWN": _sign(11, 33, dashes=' stroke-dasharray="3 2.7"'),
}


@summarises(AuditResult)
def _summary(result: AuditResult) -> Summary:
    parts, tables = list(_parts(result, 100)), [neighbours_table(result, topic) for topic in result.topics]
    shown: dict[str, Any] = dict(result.summary)
    if tables:
        shown["neighbours"] = {
            topic: [dict(zip((column.title for column in table.columns), row, strict=True)) for row in table.rows]
            for topic, table in zip(result.topics, tables, strict=True)
        }
    notes = () if result.folder is None else (f"report: {result.folder / 'report.html'}", *result.left_over)
    pictures = functools.partial(similarity_pictures, result)
    return Summary((*parts, *tables), shown, tuple(_that_count(result.summary)), notes, width=100, pictures=pictures)


@reports(AuditResult)
def _report(result: AuditResult) -> Report:
    summary = result.summary
    return Report(
        title=title(summary),
        lead=lead(summary),
        verdicts=tuple(_verdicts(summary)),
        sections=sections(result, truth_table(result) if isinstance(result, DemoResult) else None),
        json=summary,
        footer=(
            "Above the threshold means greater than it. A query is its normalised text: queries that differ in blanks "
            "or invisible characters only are one. This page asks the network for nothing.",
        ),
    )


@writes(AuditResult)
def _write(result: AuditResult, job: Run) -> None:
    job.parquet("candidates.parquet", result.candidates)
    job.parquet("neighbours.parquet", result.neighbours)
    job.json("summary.json", result.summary)
    job.text("findings.sarif", review(result, job.inputs))
    job.text("report.html", render(result, job.provenance(), job.names()))


def render(result: AuditResult, provenance: Mapping[str, Any] | None = None, files: Iterable[str] = ()) -> str:
    """The audit as one HTML page that needs no network; the same audit gives the same text.

    Texts that were redacted (`--redact`) are left out of the table; their hashes stand in the saved file.
    """
    page = _report(result).page(_no_picture, provenance or {}, files)
    return (page if provenance else replace(page, sections=page.sections[:-1])).html()


def _no_picture(picture: Any) -> str:
    raise TypeError("the figures of this page are drawn already")


def to_text(result: AuditResult, *, width: int = 100) -> str:
    """The verdicts and the table of counts for a terminal."""
    return Summary(tuple(_parts(result, width)), {}, width=width).show("text")


def _parts(result: AuditResult, width: int) -> Iterator[Table | str]:
    summary = result.summary
    for name, test in summary["tests"].items():
        sentences = [test["why"], *_more(test, summary)]
        lines = textwrap.wrap(normalise(" ".join(sentences)), width - 4)
        yield "\n".join([f"{test['verdict']}: {normalise(name)}", *(f"    {line}" for line in lines)])
    if (warning := calibrated_for(summary)) and not summary["calibrated"]:
        yield "\n".join(textwrap.wrap(normalise(warning), width))
    yield from short_sensitivity_tables(summary)
    for line in columns_read(summary["sources"]):
        yield "\n".join(textwrap.wrap(normalise(line), width))
    if any(test["fields"] for test in summary["tests"].values()):
        yield counts_table(summary)
    if "baseline" in summary:
        yield news_table(summary["baseline"])


def _verdicts(summary: AuditSummary) -> Iterator[Verdict]:
    explained: set[VerdictWord] = set()
    for name, test in summary["tests"].items():
        word = test["verdict"]
        known = word != "UNKNOWN" and test["topics"] > 0
        # The page sets the reason in large type: its first sentence.
        reason, _, details = test["why"].partition(". ")
        yield Verdict(
            word=word,
            reason=f"{reason.rstrip('.')}.",
            evidence=" ".join(filter(None, [details, *_more(test, summary)])),
            what_would_change_it="" if word in explained else _MEANINGS[word],
            subject=name,
            tone=TONES[word],
            share=len(test["leaked_topics"]) / test["topics"] if known else None,
            sign=SIGNS[word],
        )
        explained.add(word)


def _that_count(summary: AuditSummary) -> Iterator[Verdict]:
    """What `--fail-on` looks at: with a baseline, a test set is contaminated by what is new only."""
    new = summary.get("baseline")
    for verdict in _verdicts(summary):
        if new is None:
            yield verdict
        elif new["tests"][verdict.subject]["pairs"]:
            yield replace(verdict, word="CONTAMINATED")
        else:
            yield replace(verdict, word="UNKNOWN" if verdict.word == "UNKNOWN" else "CLEAN")


def _more(test: TestSummary, summary: AuditSummary) -> Iterator[str]:
    """What stands behind the reason of a verdict, in sentences."""
    labels = labels_of(test)
    union = test["fields"].get("union", {}).get(labels[-1]) if labels else None
    if union is not None and union["queries"]:
        yield (
            f"{counted(union['queries'], 'distinct training query', 'distinct training queries')} lie above "
            f"{summary['threshold']:g}."
        )
    if test["verdict"] == "CONTAMINATED":
        yield from test["evidence"]
    yield from test["settle"]
