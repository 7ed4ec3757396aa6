"""The cards of the audits of queries and of whole examples, for the README of a data set or a model."""

from __future__ import annotations

from collections.abc import Sequence

from truerank.audits.leakage.results import AuditResult, columns_read
from truerank.audits.leakage.training_data.results import ExampleAudit, as_candidates, kind_named
from truerank.core.tables import Table, card, escape_markdown
from truerank.core.views import heads
from truerank.vectors.encoders import WordsOnly

_TITLE = "Train–test leakage"


def query_card(result: AuditResult) -> str:
    """What an audit of queries says."""
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
    return card(
        _TITLE,
        rule,
        Table("", columns, tuple(rows)),
        *(f"**{escape_markdown(name)}**: {escape_markdown(test['sentence'])}" for name, test in tests.items()),
        Table("Training queries compared", heads("source, read:,d, distinct:,d, skipped:,d, content"), read),
        *map(escape_markdown, columns_read(summary["sources"])),
        *(_folded(f"Leaked topics of {escape_markdown(name)}", test["leaked_topics"]) for name, test in tests.items()),
        "CONTAMINATED: at least one training query matches a topic (the same text, above the threshold, the same four "
        "content words, or confirmed by people). CLEAN: everything was read, no pair matches or is in doubt, and "
        "planted changes of the topics were found. UNKNOWN: anything else.",
    )


def example_card(found: ExampleAudit) -> str:
    """What an audit of whole training examples says."""
    test = found.test
    sources = ", ".join(f"{escape_markdown(name)} ({one['examples']:,d})" for name, one in found.sources.items())
    documents = f" and {test['documents']:,d} documents" if test["documents"] else ""
    rows = tuple(
        (
            kind_named(one.kind).phrase,
            one.verdict,
            *((one.leaked, one.of, one.leaked / one.of) if one.of else (None, None, None)),
        )
        for one in found.kinds
    )
    (about,) = as_candidates(found).summary["tests"].values()
    return card(
        _TITLE,
        f": the examples of {sources} against {escape_markdown(test['name'])}, {test['topics']:,d} topics{documents}.",
        Table("", heads("kind_of_leak, verdict, leaking:,d, of:,d, share:.1%"), rows),
        "\n".join(f"- **{one.kind}**: {escape_markdown(one.why)}" for one in found.kinds),
        _folded("Topics whose query leaks, alone or with its answer", about["leaked_topics"]),
        "CONTAMINATED: at least one query or document was found. CLEAN: everything was read, none was found, and "
        "planted changes of these texts were found at the rates that the audit gives. UNKNOWN: anything else.",
    )


def _folded(heading: str, ids: Sequence[str]) -> str:
    """Topics that are shown at a click."""
    listed = ", ".join(map(escape_markdown, ids))
    return f"<details>\n<summary>{heading} ({len(ids)})</summary>\n\n{listed}\n\n</details>" if ids else ""
