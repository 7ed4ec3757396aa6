"""The command `collection clean`: judgments without what is certainly wrong, and lists for indexing and for runs."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import polars as pl

from truerank.audits.collection.duplicates import representatives
from truerank.audits.collection.judgments import CHANGES, JudgmentTable, closed, closing_of, read_judgments
from truerank.audits.collection.results import CollectionAudit, load_audit
from truerank.audits.collection.suspects import WRONG
from truerank.core.result import Result
from truerank.errors import InputError
from truerank.measures.equivalence import EQUIVALENT_SCHEMA, Combine
from truerank.measures.magnitudes import proportion
from truerank.options import Flag, Labels, Out, command
from truerank.records import Input, Qrel
from truerank.sources.grammar import SourceSpec
from truerank.sources.inputs import inputs_of
from truerank.sources.qrels import QREL_SCHEMA, QrelLine, qrel_lines
from truerank.work.artifacts import hash_file
from truerank.work.publishing import publish
from truerank.work.runs import check_origins
from truerank.work.runs import run as started


@dataclass(frozen=True, eq=False, repr=False)
class CollectionCleaning(Result, shown_in="truerank.audits.collection.report"):
    """Judgments after cleaning, and what was done.

    Attributes:
        qrels: the judgments that stay, columns as in `QREL_SCHEMA`.
        changes: every change, columns as in `closing.CHANGES`, and rows that were no judgment.
        contradictions: judgments of one topic and document, or group, with different grades: topic_id, doc_id (of the
            group), documents, grades, relevance (the grade that was written; empty for none).
        duplicates: the map of duplicates: document_id, representative.
        exclusions: documents that are their topic's own text: topic_id, doc_id.
        read: judgments read.
        broken: rows that were no judgment and are left out.
        combine: the rule for several judgments.
        warnings: what a user must know, one sentence each.
        spec: the source of the judgments, whose lines are written again; None for values of the caller's program.
        rows: by row of the source, its topic, document and grade now; rows that are gone are missing.
        out: the folder; None where nothing was written.
    """

    qrels: pl.DataFrame
    changes: pl.DataFrame
    contradictions: pl.DataFrame
    duplicates: pl.DataFrame
    exclusions: pl.DataFrame
    read: int
    broken: int
    combine: Combine
    warnings: tuple[str, ...] = ()
    spec: SourceSpec | None = None
    rows: Mapping[int, tuple[str, str, int]] = field(default_factory=dict)
    out: Path | None = None

    @property
    def file(self) -> str:
        """The name of the cleaned judgments."""
        if self.spec is None or self.spec.scheme != "file":
            return "clean.qrels"
        return "test.tsv" if self.spec.path.is_dir() else self.spec.path.name

    def counts(self) -> dict[str, int]:
        """How many judgments were read, written, removed and changed, and what else was listed."""
        actions = Counter(self.changes["action"])
        counts = {"read": self.read, "written": len(self.qrels), "removed": actions["removed"]}
        counts |= {"changed": actions["changed"], "added": actions["added"], "broken": self.broken}
        return counts | {name: len(getattr(self, name)) for name in ("contradictions", "duplicates", "exclusions")}

    def reasons(self) -> list[tuple[str, str, int]]:
        """Action, reason and number of judgments, the most frequent first."""
        found = self.changes.group_by("action", "reason").len()
        return list(found.sort("len", "action", "reason", descending=[True, False, False]).iter_rows())

    def json(self) -> dict[str, Any]:
        """Everything, as plain numbers and texts."""
        return {
            "out": None if self.out is None else str(self.out),
            **self.counts(),
            "combine": self.combine,
            "reasons": [{"action": action, "reason": reason, "judgments": n} for action, reason, n in self.reasons()],
            "warnings": list(self.warnings),
        }


@command
def clean(
    qrels: Annotated[Any, Flag(metavar="SRC", reads=str)],
    audit: Annotated[CollectionAudit | str | Path, Flag(metavar="DIR", reads=str)],
    combine: Combine = "max",
    judged: Labels = Labels(),
    *,
    out: Out = None,
) -> CollectionCleaning:
    """Removes from the judgments what is certainly wrong, closes them under equivalence, and lists every change.

    Judgments of documents and topics that do not exist go, as do those of documents of which only a notice is left, and
    rows that are there twice; ids that are spelt unlike the document's are corrected, and topic and document go to
    their columns; one document stands for each group of equivalent ones. Only exact duplicates and pairs that people
    called the same are groups. What stays keeps its bytes and its order.

    Args:
        qrels: the judgments.
        audit: the folder that `collection audit` wrote. In Python also an audit.
        combine: what several judgments of one topic become that go to the same document: max (the highest grade), min
            (the lowest), majority (of equally many the higher), agree (the grade where they agree, otherwise none).
        judged: what people said of suspect judgments, by a scheme of relevance; these grades replace those of the
            judgments, or are added to them. A grade above all of the judgments counts as their highest.
        out: a folder for the judgments, changes.tsv, contradictions.tsv, duplicates.tsv (for `evaluate`, and for
            indexing), exclusions.tsv, summary and manifest.

    Returns:
        The judgments that stay, and every change with its reason.

    Raises:
        InputError: a source is at fault, or no audit is there.

    Examples:

        truerank collection clean --qrels test.qrels --audit audit/ --out clean/

        truerank collection clean --qrels beir/scifact --audit audit/ --combine agree --out clean/
    """
    found = audit if isinstance(audit, CollectionAudit) else load_audit(audit)
    table = read_judgments(qrels)
    again = _judged_again(judged, table.frame) if judged else {}
    result = _cleaned(table, found, combine, again)
    inputs = inputs_of(qrels=qrels, labels=judged.labels)
    check_origins("collection clean", (*inputs, Input("audit", str(found.folder or ""), "audit")))
    if out is None:
        return result
    if found.folder is not None:
        # Below the audit, it is named as seen from there, so that both can be moved together.
        inside = Path(out).absolute().is_relative_to(found.folder.absolute())
        source = os.path.relpath(found.folder.absolute(), Path(out).absolute()) if inside else str(found.folder)
        inputs += (Input(found.folder.name, source, "audit", None, hash_file(found.folder / "findings.parquet")),)
    with started("collection clean", inputs, {"combine": combine}, out) as job:
        result = replace(result, out=job.folder)
        publish(result, job)
    return result


def _judged_again(judged: Labels, frame: pl.DataFrame) -> dict[tuple[str, str], int]:
    """The grades that people gave to documents, by topic and document."""
    # Here: without labels a command need not load what reads them.
    from truerank.judging.ratings import read_ratings

    ratings = read_ratings(judged, scheme=("relevance-documents", "relevance-passages"))
    scheme = ratings.scheme
    if scheme is None or not scheme.graded:
        raise InputError(
            "the labels have no grades",
            "judge with relevance-documents or relevance-passages",
            where=", ".join(ratings.sources) or "labels",
        )
    highest = int(frame["relevance"].max() or 1)  # type: ignore[arg-type]

    def answer_of(labels: tuple[str, ...]) -> str | None:
        return next((label for label in labels if scheme.grade(label) is not None), None)

    order = sorted((choice.name for choice in scheme.choices), key=lambda name: -(scheme.grade(name) or 0))
    found = {}
    for at, label in ratings.decided(answer_of, include_models=judged.include_models, order=order).items():
        unit = ratings.units[at]
        if label is not None and unit.topic_id and unit.doc_id:
            found[unit.topic_id, unit.doc_id] = min(highest, scheme.grade(label) or 0)
    return found


def _added(judged: Mapping[tuple[str, str], int], table: JudgmentTable, groups: Mapping[str, str]) -> pl.DataFrame:
    """Rows of documents that people judged and the judgments lack, as further changes."""
    known = set(
        table.frame.with_columns(pl.col("doc_id").replace(dict(groups))).select("topic_id", "doc_id").iter_rows()
    )
    rows: dict[tuple[str, str], int] = {}
    for (topic, doc), grade in judged.items():
        pair = topic, groups.get(doc, doc)
        if pair not in known:
            rows[pair] = max(grade, rows.get(pair, grade))
    added = [(len(table.frame) + at, 0, *pair, None, "added", pair[1], grade, "judged again")
             for at, (pair, grade) in enumerate(rows.items())]  # fmt: skip
    return pl.DataFrame(added, CHANGES, orient="row")


def _cleaned(
    table: JudgmentTable, found: CollectionAudit, combine: Combine, judged: Mapping[tuple[str, str], int]
) -> CollectionCleaning:
    groups = representatives(found.groups)
    rules = replace(closing_of(found.rows, groups, combine), judged=judged)
    kept, changes = closed(table.frame, rules)
    added = _added(judged, table, groups)
    changes = pl.concat([changes, added])
    new = added.select("row", "topic_id", doc_id="new_doc_id", relevance=pl.col("new_relevance"))
    kept = pl.concat([kept, new.cast(kept.schema)])
    contradictions = _contradictions(table.frame, kept, groups, rules.respelt)
    duplicates = found.groups.select("document_id", "representative")
    duplicates = duplicates.filter(pl.col("document_id") != pl.col("representative"))
    warnings = []
    audited = found.read.get("qrels", {}).get("judgments")
    if audited is None:
        warnings.append("The audit read no judgments: whether theirs meet documents and topics is not known.")
    elif audited != len(table.frame):
        warnings.append(f"The audit read {audited:,d} judgments, here are {len(table.frame):,d}: they are others.")
    either = found.rows("unknown-topic").filter(pl.col("other") != "")
    if len(either):
        warnings.append(f"{len(either):,d} judgments of unknown topics stay: a document has the topic's id.")
    if any(len(found.rows(kind)) for kind in ("shifted-judgments", "shuffled-judgments", "unrelated-judgments")):
        warnings.append("Judgments fit other topics than theirs, or none: the ids of topics were left as they are.")
    warnings += _suspects_judged(found, judged)
    if lost := table.frame["topic_id"].n_unique() - kept["topic_id"].n_unique():
        warnings.append(f"{lost:,d} topics have no judgment left.")
    return CollectionCleaning(
        qrels=kept.select(list(QREL_SCHEMA)),
        changes=changes,
        contradictions=contradictions,
        duplicates=duplicates.cast(EQUIVALENT_SCHEMA),  # type: ignore[arg-type]
        exclusions=found.rows("self-retrieval").select("topic_id", "doc_id"),
        read=len(table.frame),
        broken=len(table.broken),
        combine=combine,
        warnings=tuple(warnings),
        spec=table.spec,
        rows={row: (topic, doc, grade) for row, topic, doc, grade in kept.iter_rows()},
    )


def _suspects_judged(found: CollectionAudit, judged: Mapping[tuple[str, str], int]) -> Iterator[str]:
    """What people said of the relevant documents that the runs contradict: the only figure that knows how many err."""
    grades = [judged[pair] for pair in found.rows("suspect-relevant").select("topic_id", "doc_id").iter_rows()
              if pair in judged]  # fmt: skip
    if grades:
        wrong = proportion(sum(grade < 1 for grade in grades), len(grades), method="exact")
        few = (
            " Most of the others are right, too: judging them finds few mistakes." if (wrong.high or 1) < WRONG else ""
        )
        yield (
            f"Of {len(grades):,d} relevant documents that the runs contradict and people judged, "
            f"{sum(grade < 1 for grade in grades):,d} are not relevant ({wrong.share:.0%}, {wrong.low:.0%} to "
            f"{wrong.high:.0%}).{few}"
        )


def _contradictions(
    frame: pl.DataFrame, kept: pl.DataFrame, groups: Mapping[str, str], respelt: Mapping[str, str]
) -> pl.DataFrame:
    named = frame.with_columns(pl.col("doc_id").replace(dict(respelt)).replace(dict(groups)).alias("group"))
    several = named.group_by("topic_id", "group", maintain_order=True).agg(
        pl.col("relevance").n_unique().alias("different"),
        pl.col("doc_id").str.join(" ").alias("documents"),
        pl.col("relevance").cast(pl.String).str.join(" ").alias("grades"),
    )
    several = several.filter(pl.col("different") > 1).rename({"group": "doc_id"})
    found = several.join(kept, on=["topic_id", "doc_id"], how="left", maintain_order="left")
    return found.select("topic_id", "doc_id", "documents", "grades", "relevance")


def clean_lines(result: CollectionCleaning) -> Iterator[bytes]:
    """The lines of the cleaned judgments; those that did not change have the bytes that they had."""
    if result.spec is None or result.spec.scheme != "file":
        for topic, doc, grade in result.qrels.iter_rows():
            yield f"{topic} 0 {doc} {grade}\n".encode()
        return
    row, last = -1, None
    for line in qrel_lines(result.spec):
        if line.said is None:
            yield line.raw + b"\n"
        elif isinstance(line.said, Qrel):
            row += 1
            last = line
            if row in result.rows:
                yield _written(line, line.said, *result.rows[row]) + b"\n"
    if last is not None and isinstance(last.said, Qrel):
        added = (judgment for number, judgment in result.rows.items() if number > row)
        yield from (_written(last, last.said, *judgment) + b"\n" for judgment in added)


def _written(line: QrelLine, said: Qrel, topic_id: str, doc_id: str, relevance: int) -> bytes:
    """The line with another topic, document or grade, its separators kept."""
    if (said.topic_id, said.doc_id, said.relevance) == (topic_id, doc_id, relevance):
        return line.raw
    head = None if line.head is None or line.head.plain else line.head
    sign = head and head.separator
    pieces = re.split(
        rb"(\s+)" if sign is None else rb'(%s(?=(?:[^"]*"[^"]*")*[^"]*$)|\s+$)' % re.escape(sign.encode()), line.raw
    )
    cells = [place for place, piece in enumerate(pieces) if place % 2 == 0 and (piece or sign)]
    places = head.places if head else (0, -2, -1)
    for at, value in zip(places, (topic_id, doc_id, relevance), strict=True):
        pieces[cells[at]] = str(value).encode()
    return b"".join(pieces)
