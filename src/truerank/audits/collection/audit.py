"""The command `collection audit`: reads what is given, looks for faults, and says what they do to scores."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import polars as pl

from truerank.audits.collection.catalogue import kinds
from truerank.audits.collection.instances import INSTANCE_SCHEMA, Instances
from truerank.audits.collection.judgments import JudgmentTable, judgment_instances, read_judgments
from truerank.audits.collection.options import CollectionOptions, Parts
from truerank.audits.collection.results import CollectionAudit, Finding
from truerank.audits.collection.verdicts import verdicts
from truerank.errors import OptionError
from truerank.near_duplicates.results import GROUPS, PAIRS
from truerank.options import Out, Scoring, command
from truerank.sources.inputs import inputs_of
from truerank.work.progress import Progress
from truerank.work.publishing import publish
from truerank.work.runs import run as started

__all__ = ["audit"]


@command
def audit(
    parts: Parts = Parts(),
    *,
    options: CollectionOptions = CollectionOptions(),
    scoring: Scoring = Scoring(),
    out: Out = None,
    progress: Progress | None = None,
) -> CollectionAudit:
    """Looks for faults in the documents, topics and judgments of a test collection, and says what they do to scores.

    Each part works alone; together they show more. Each part and the whole get a verdict: FAULTY, UNKNOWN or SOUND.

    Args:
        parts: what is audited.
        options: what is looked for.
        scoring: how runs are scored.
        out: a folder for findings, duplicates, items to judge, summary, report and manifest.
        progress: is told what happens.

    Returns:
        The findings and the verdicts.

    Raises:
        InputError: nothing is given, or a source or option is at fault.

    Examples:

        truerank collection audit --qrels robust04.qrels

        truerank collection audit --docs corpus.jsonl --topics queries.jsonl --qrels test.tsv --out audit/

        truerank collection audit --qrels new.qrels --previous-qrels old.qrels --run bm25.run --run dense.run
        --fail-on faulty
    """
    if not {"qrels", "docs", "topics"} & parts.given:
        raise OptionError("qrels", "nothing to audit", "give `qrels`, `docs` or `topics`")
    found = _audited(parts, options, scoring)
    if out is None:
        return found
    inputs = inputs_of(
        qrels=parts.qrels, docs=parts.docs, topics=parts.topics, train=parts.train, previous_qrels=parts.previous_qrels
    )
    with started("collection audit", inputs, {"options": options, "scoring": scoring}, out) as job:
        found = replace(found, folder=job.folder)
        publish(found, job)
    return found


def _audited(parts: Parts, options: CollectionOptions, scoring: Scoring) -> CollectionAudit:
    judgments = None if parts.qrels is None else read_judgments(parts.qrels)
    found = [one for one in _instances(judgments, options, scoring) if one.count]
    findings = _findings(found)
    return CollectionAudit(
        verdicts=verdicts(findings, parts.given),
        findings=findings,
        instances=_table(found),
        pairs=pl.DataFrame(schema=PAIRS),
        groups=pl.DataFrame(schema=GROUPS),
        read=_read(judgments, scoring.rel),
    )


def _instances(judgments: JudgmentTable | None, options: CollectionOptions, scoring: Scoring) -> Iterator[Instances]:
    if judgments is not None:
        yield from judgment_instances(judgments, scoring.rel, options.grades)


def _findings(found: list[Instances]) -> tuple[Finding, ...]:
    """Faults first, then doubts, then notes; within them in the order of the catalogue."""
    by_kind = {one.kind: one for one in found}
    ordered = [Finding.of_instances(kind, by_kind[name]) for name, kind in kinds().items() if name in by_kind]
    severities = ("fault", "doubt", "note")
    return tuple(sorted(ordered, key=lambda one: severities.index(one.kind.severity)))


def _table(found: list[Instances]) -> pl.DataFrame:
    frames = [
        one.rows.with_columns(pl.lit(kinds()[one.kind].part).alias("part"), pl.lit(one.kind).alias("kind"))
        for one in found
    ]
    empty = pl.DataFrame(schema=INSTANCE_SCHEMA)
    return pl.concat([empty, *(frame.select(list(INSTANCE_SCHEMA)) for frame in frames)])


def _read(judgments: JudgmentTable | None, rel: int) -> dict[str, Any]:
    read: dict[str, Any] = {}
    if judgments is not None:
        frame = judgments.frame
        read["qrels"] = {
            "name": "the program" if judgments.spec is None else judgments.spec.name,
            "judgments": len(frame),
            "topics": frame["topic_id"].n_unique(),
            "documents": frame["doc_id"].n_unique(),
            "relevant": int((frame["relevance"] >= rel).sum()),
            "grades": {str(grade): count for grade, count in sorted(frame["relevance"].value_counts().iter_rows())},
        }
    return read
