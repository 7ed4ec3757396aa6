"""The audit of the embedded sample, where the truth is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from truerank.audits.leakage.audit import audit, publish
from truerank.audits.leakage.options import Options
from truerank.audits.leakage.report import ReportExtras
from truerank.audits.leakage.results import AuditResult, Summary, load_manifest
from truerank.reports.tables import Column, Table
from truerank.sources import open_queries
from truerank.sources.sample import SAMPLE, TruthRow, read_truth
from truerank.text.normalising import normalise
from truerank.text.reformulation import TYPES
from truerank.work.artifacts import Artifacts
from truerank.work.progress import Progress

__all__ = ["against_truth", "demo", "truth_table"]

_Pair = tuple[str, str, str]


def demo(out: str | Path = "truerank-demo", *, progress: Progress | None = None) -> AuditResult:
    """Audits the embedded sample and tells how much of the planted truth it found; needs no network.

    Args:
        out: the folder for the report and the other artifacts.
        progress: is told what happens.

    Returns:
        The audit; `summary["truth"]` holds precision and recall against the planted leaks.

    Raises:
        MissingExtraError: the packaged encoder is not installed.
    """
    options = Options(
        encoder="packaged",
        backend="onnx",
        variants={test: str(path) for test, path in SAMPLE.variants.items()},
    )
    result = audit(
        [str(path) for path in SAMPLE.train], [str(path) for path in SAMPLE.tests], out, options, progress=progress
    )
    provenance = dict(load_manifest(out))
    provenance.pop("artifacts", None)
    found = against_truth(result, read_truth(), _texts())
    summary: Summary = {**result.summary, "truth": found}
    result = replace(result, summary=summary)
    return publish(Artifacts(out), result, provenance, options, ReportExtras(truth=truth_table(found)))


def against_truth(result: AuditResult, truth: Sequence[TruthRow], texts: Mapping[str, str]) -> dict[str, Any]:
    """Precision of the pairs above the threshold and recall of the planted leaks.

    A pair is a test set, a topic and a normalised query text.

    Args:
        result: an audit of the sample.
        truth: the planted pairs.
        texts: the text of each query id.

    Returns:
        `pairs`, `true`, `precision`, `planted`, `found`, `recall`, `lookalikes_above`, and `types` (planted and found
        by type).
    """
    above: set[_Pair] = {
        (test, topic, normalise(text))
        for test, topic, text in result.above().select("test", "topic_id", "query_text").iter_rows()
    }
    known = {(row.test, row.topic_id, normalise(texts[row.query_id])): row for row in truth}
    leaks = {pair: row.type for pair, row in known.items() if row.leaks}
    found = above & set(leaks)
    types = {
        name: {
            "planted": sum(kind == name for kind in leaks.values()),
            "found": sum(leaks[pair] == name for pair in found),
        }
        for name in TYPES
        if name in leaks.values()
    }
    return {
        "pairs": len(above),
        "true": len(found),
        "precision": round(len(found) / len(above), 6) if above else None,
        "planted": len(leaks),
        "found": len(found),
        "recall": round(len(found) / len(leaks), 6),
        "lookalikes_above": len(above & (set(known) - set(leaks))),
        "types": types,
    }


def truth_table(found: Mapping[str, Any]) -> Table:
    """Planted and found leaks by reformulation type."""
    count, share = {"align": "right", "format": ",d"}, {"align": "right", "format": ".2f"}
    rows = [
        (name, kind["planted"], kind["found"], kind["found"] / kind["planted"]) for name, kind in found["types"].items()
    ]
    return Table(
        title="Planted leaks that the audit found, by reformulation type",
        columns=(
            Column("type"),
            Column("planted", **count),  # type: ignore[arg-type]
            Column("found", **count),  # type: ignore[arg-type]
            Column("recall", **share),  # type: ignore[arg-type]
        ),
        rows=(*rows, ("all", found["planted"], found["found"], found["recall"])),
        notes=(
            f"Of {found['pairs']} pairs above the threshold, {found['true']} are planted leaks: "
            f"precision {found['precision']:.2f}. {found['lookalikes_above']} of the others are planted look-alikes "
            "with another information need.",
        ),
    )


def _texts() -> dict[str, str]:
    return {query.query_id: query.text for path in SAMPLE.train for query in open_queries(str(path))}
