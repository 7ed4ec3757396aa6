"""What an audit can see, for people: rewordings that it would have found, and the recall of the prefilter."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from truerank.audits.leakage.results import AuditSummary, KindFound, PrefilterRecall
from truerank.reports.pages import Part, Prose
from truerank.reports.tables import Column, Table
from truerank.text.wording import EVIDENCE

_FIELDS: Final = {"title": "Title", "description": "Description", "narrative": "Narrative", "variant": "Variants"}
#: Columns of one table in a terminal.
_COLUMNS: Final = 4


def sensitivity_parts(summary: AuditSummary) -> Iterator[Part]:
    """What the page says of the sensitivity check: all figures, and the converse."""
    tables = _tables(summary)
    if not tables:
        return
    yield Prose(
        (
            "Rewordings of these topics were planted and compared with the same encoder, threshold and evidence; they "
            "are written nowhere. Found: any evidence proposes the plant for its topic. A pair with the same words is "
            "not asked for its letters.",
        )
    )
    yield from tables
    others = [
        (name, field, row) for name, test in summary["tests"].items() for field, row in test["other_topics"].items()
    ]
    yield Table(
        "The converse: topic texts for which the audit would propose another topic of the same test set.",
        (
            Column("Test set"),
            Column("Field"),
            *Column.numbers(",d", "Texts", "Proposed"),
            Column("Share", align="right", format=".1%"),
            *Column.numbers(",d", *(name.capitalize() for name in EVIDENCE), above=("By",)),
        ),
        tuple(
            (name, _FIELDS[field], row["texts"], row["proposed"], row["share"], *(row["by"][by] for by in EVIDENCE))
            for name, field, row in others
        ),
    )


def short_sensitivity_tables(summary: AuditSummary) -> list[Table]:
    """What was found of what was planted, for a terminal: few tables with columns of several test sets."""
    groups = {
        (name, _FIELDS[field]): {row["kind"]: row for row in test["sensitivity"] if row["field"] == field}
        for name, test in summary["tests"].items()
        for field in dict.fromkeys(row["field"] for row in test["sensitivity"])
    }
    names = list(groups)
    tables = []
    for start in range(0, len(names), _COLUMNS):
        part = names[start : start + _COLUMNS]
        kinds = dict.fromkeys(kind for group in part for kind, row in groups[group].items() if row["planted"])
        rows = [(kind, *(_fraction(groups[group].get(kind)) for group in part)) for kind in kinds]
        columns = (Column("Kind"), *(Column(field, (name,), "right") for name, field in part))
        tables.append(Table("Planted rewordings of the topics: found / planted.", columns, tuple(rows)))
    return tables


def _fraction(row: KindFound | None) -> str:
    return f"{row['found']}/{row['planted']}" if row and row["planted"] else ""


def _tables(summary: AuditSummary) -> list[Table]:
    columns = (
        Column("Field"),
        Column("Kind"),
        *Column.numbers(",d", "Planted", "Found"),
        Column("Share", align="right", format=".2f"),
        Column("95% interval", align="right"),
        *Column.numbers(",d", *(name.capitalize() for name in EVIDENCE), above=("By",)),
    )
    tables = []
    for name, test in summary["tests"].items():
        rows = [
            (
                _FIELDS[row["field"]], row["kind"], row["planted"], row["found"], row["share"],
                f"{row['low']:.2f} to {row['high']:.2f}", *(row["by"][by] for by in EVIDENCE),
            )
            for row in test["sensitivity"]
            if row["planted"]
        ]  # fmt: skip
        if rows:
            tables.append(Table(f"Planted rewordings of {name} that the audit would have found.", columns, tuple(rows)))
    return tables


def prefilter_parts(recall: PrefilterRecall) -> Iterator[Part]:
    """What the page says of the prefilter: its recall, and by topic text and form of the training text."""
    cuts = ", ".join(f"{cut:g} for {field}" for field, cut in recall["cuts"].items())
    worst = recall.get("unmodelled_low")
    basis = f"{recall['sampled']:,d} dropped texts that were encoded after all"
    if recall["recall"] is None:
        told = f"Nothing tells its recall: neither the texts that passed nor {basis} have a pair above the threshold."
    else:
        told = (
            f"Its recall is {recall['recall']:.4f} (95% interval {recall['low']:.4f} to {recall['high']:.4f}"
            f"{'' if worst is None else f'; {worst:.4f} if nothing is assumed about texts that were not sampled'}), "
            f"estimated from {basis}, {recall['missed_in_sample']:,d} of them leaks, and {recall['true_pairs']:,d} "
            "pairs found."
        )
    yield Prose(
        (f"A prefilter stood in front of the encoder (cuts: {cuts}); {recall['passed']:,d} texts passed it. {told}",)
    )
    rows = [row for row in recall["by"] if row["recall"] is not None]
    if rows:
        share: dict[str, Any] = {"align": "right", "format": ".3f"}
        columns = (Column("Field"), Column("Training text"), Column("Pairs", align="right"), Column("Recall", **share))
        yield Table(
            "The prefilter's recall by topic text and form of the training text, with its 95% interval.",
            (*columns, Column("From", **share), Column("To", **share)),
            tuple(
                (_FIELDS[row["field"]], row["form"], row["true_pairs"], row["recall"], row["low"], row["high"])
                for row in rows
            ),
        )
