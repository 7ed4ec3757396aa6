"""The card of an audit, for the README of a data set or a model."""

from __future__ import annotations

from collections.abc import Sequence

from truerank.audits.leakage.kinds import kind_named, kinds_of
from truerank.audits.leakage.results import AuditResult, columns_read
from truerank.core.tables import Table, card, escape_markdown
from truerank.core.views import heads
from truerank.vectors.encoders import WordsOnly

_TITLE = "Train–test leakage"


def leakage_card(result: AuditResult) -> str:
    """What an audit says."""
    summary, tests = result.summary, result.summary["tests"]
    known = f"calibrated for {escape_markdown(summary['calibrated_for'])}"
    if not summary["calibrated"]:
        known = f"not calibrated for this encoder (but for {escape_markdown(summary['calibrated_for'])})"
    rule = (
        f": cosine similarity above {summary['threshold']:g} under {escape_markdown(summary['encoder'])}; the "
        f"threshold is {known}."
    )
    if summary["encoder"] == WordsOnly.name:
        rule = ": texts were compared by their words and letters only, without an encoder."
    columns = heads("test_set, verdict, topics:,d, leaked_topics:,d, leaking_queries:,d, pairs_in_doubt:,d")
    rows = []
    for name, test in tests.items():
        union = list(test["fields"].get("union", {}).values())
        queries = union[-1]["queries"] if union else 0
        rows.append(
            (name, test["verdict"], test["topics"], len(test["leaked_topics"]), queries, test["doubts"]["pairs"])
        )
    read = tuple(
        (name, one["read"], one["distinct"], one["skipped"], one.get("fingerprint", "")[:19])
        for name, one in summary["sources"].items()
    )
    kinds = [(name, one) for name in tests for one in kinds_of(result, name)]
    heading = heads("test_set, kind_of_leak, verdict, leaking:,d, of:,d, share:.1%")
    shares = ((one.leaked, one.of, one.leaked / one.of) if one.of else (None, None, None) for _, one in kinds)
    named = ((name, kind_named(one.kind).phrase, one.verdict) for name, one in kinds)
    by_kind = Table("Documents", heading, tuple((*left, *right) for left, right in zip(named, shares, strict=True)))
    return card(
        _TITLE,
        rule,
        Table("", columns, tuple(rows)),
        *([by_kind] if kinds else []),
        *(f"**{escape_markdown(name)}**: {escape_markdown(test['sentence'])}" for name, test in tests.items()),
        Table("Training queries compared", heads("source, read:,d, distinct:,d, skipped:,d, content"), read),
        *map(escape_markdown, columns_read(summary["sources"])),
        *(_folded(f"Leaked topics of {escape_markdown(name)}", test["leaked_topics"]) for name, test in tests.items()),
        "CONTAMINATED: at least one training text matches (the same text, above the threshold, the same four content "
        "words, shared shingles, or confirmed by people). CLEAN: everything was read, no pair matches or is in doubt, "
        "and planted changes were found. UNKNOWN: anything else.",
    )


def _folded(heading: str, ids: Sequence[str]) -> str:
    """Topics that are shown at a click."""
    listed = ", ".join(map(escape_markdown, ids))
    return f"<details>\n<summary>{heading} ({len(ids)})</summary>\n\n{listed}\n\n</details>" if ids else ""
