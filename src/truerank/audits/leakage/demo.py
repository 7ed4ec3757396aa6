"""The loop of the leakage audit on the embedded sample, where the truth is known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from truerank.audits.leakage.audit import audit, publish
from truerank.audits.leakage.calibration import calibrate
from truerank.audits.leakage.options import Options
from truerank.audits.leakage.report import ReportExtras
from truerank.audits.leakage.results import AuditResult, Summary, load_manifest
from truerank.judging.labels import open_judgments
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
    """Walks through the whole loop with the embedded sample, where the truth is known; needs no network.

    Audits at the default threshold, reads the labels that come with the sample, calibrates the threshold with them, and
    audits again with both. Each step is shown beside the planted truth.

    Args:
        out: the folder for the report and the other artifacts of the second audit; the first one's lie in `first`.
        progress: is told what happens.

    Returns:
        The second audit; `summary["truth"]` holds precision and recall against the planted leaks, of the first audit
        under "first".

    Raises:
        MissingExtraError: the packaged encoder is not installed.
    """
    options = Options(
        encoder="packaged",
        backend="onnx",
        variants={test: str(path) for test, path in SAMPLE.variants.items()},
    )
    train, tests = [str(path) for path in SAMPLE.train], [str(path) for path in SAMPLE.tests]
    truth, texts = read_truth(), _texts()
    with TemporaryDirectory() as cache:
        first = audit(train, tests, Path(out) / "first", replace(options, cache=cache), progress=progress)
        encoder = first.summary["encoder"]
        calibration = calibrate(open_judgments((str(SAMPLE.labels),)), encoder=encoder)
        labelled = replace(options, cache=cache, labels=(str(SAMPLE.labels),))
        if calibration.chosen is not None:
            labelled = replace(labelled, threshold=round(calibration.chosen, 6), calibrated_for=encoder)
        result = audit(train, tests, out, labelled, progress=progress)
    provenance = dict(load_manifest(out))
    provenance.pop("artifacts", None)
    before, after = (against_truth(found, truth, texts) for found in (first, result))
    summary: Summary = {**result.summary, "truth": {**after, "first": before}}
    table = replace(
        truth_table(after),
        notes=(*truth_table(after).notes, _before(first, before), *_verdicts(first, result, truth)),
    )
    extras = ReportExtras(calibration=calibration, truth=table)
    return publish(Artifacts(out), replace(result, summary=summary), provenance, replace(options, cache=None), extras)


def _before(first: AuditResult, before: Mapping[str, Any]) -> str:
    return (
        f"The first audit, at {first.summary['threshold']:g} without labels, had {before['pairs']} pairs above the "
        f"threshold: precision {before['precision']:.2f}, recall {before['recall']:.2f}."
    )


def _verdicts(first: AuditResult, second: AuditResult, truth: Sequence[TruthRow]) -> Iterator[str]:
    for name, test in second.summary["tests"].items():
        leaked = {row.topic_id for row in truth if row.test == name and row.leaks}
        yield (
            f"{name}: {first.summary['tests'][name]['verdict']} at first, {test['verdict']} with labels and the "
            f"calibrated threshold; the truth: {len(leaked)} of {test['topics']} topics leak, and the second audit has "
            f"{len(leaked & set(test['leaked_topics']))} of them."
        )


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
        title="Planted leaks that the audit found above its threshold, by reformulation type",
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
