"""The loop of the leakage audit on the embedded sample, where the truth is known."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

from truerank.audits.leakage.audit import PACKAGES, PreparedAudit, audit
from truerank.audits.leakage.calibration import calibrate
from truerank.audits.leakage.options import AuditOptions
from truerank.audits.leakage.results import AuditResult, AuditSummary
from truerank.core.tables import Column, Table
from truerank.judging.labels import open_judgments
from truerank.options import Encoding, Flag, Labels, command
from truerank.sources import open_queries
from truerank.sources.sample import SAMPLE, TruthRow, read_truth
from truerank.text.normalising import normalise
from truerank.text.reformulation import TYPES
from truerank.work.progress import Progress
from truerank.work.publishing import publish
from truerank.work.runs import run as started


@dataclass(frozen=True, repr=False)
class DemoResult(AuditResult):
    """The second audit of the embedded sample, with what the first one found before anybody judged.

    Attributes:
        first: the audit without labels, at the default threshold.
    """

    first: AuditResult | None = None


@command
def demo(
    out: Annotated[str | Path, Flag(metavar="DIR", reads=Path)] = "truerank-demo", *, progress: Progress | None = None
) -> DemoResult:
    """Audits the embedded sample, where the truth is known; needs no network.

    Three small test sets against 5,000 training queries in which leaks are planted. Audits at the default threshold,
    reads the labels that come with the sample, calibrates the threshold with them, and audits again with both. Prints
    the verdicts; the report shows how many of the planted leaks each step found.

    Args:
        out: a folder for the report and the other artifacts of the second audit; the first one's lie in `first`.
        progress: is told what happens.

    Returns:
        The second audit; `summary["truth"]` holds precision and recall against the planted leaks, of the first audit
        under "first".

    Raises:
        MissingExtraError: the packaged encoder is not installed.

    Examples:

        truerank demo --out truerank-demo/
    """
    options = AuditOptions(variants={test: str(path) for test, path in SAMPLE.variants.items()})
    encoding = Encoding(encoder="packaged", backend="onnx")
    judged = Labels(labels=(str(SAMPLE.labels),))
    train, tests = [str(path) for path in SAMPLE.train], [str(path) for path in SAMPLE.tests]
    truth = read_truth()
    texts = {query.query_id: query.text for path in SAMPLE.train for query in open_queries(str(path))}
    with TemporaryDirectory() as cache:
        encoding = replace(encoding, cache=cache)
        first = audit(train, tests, options=options, encoding=encoding, out=Path(out) / "first", progress=progress)
        encoder = first.summary["encoder"]
        calibration = calibrate(open_judgments(judged.labels), encoder=encoder)
        if calibration.chosen is not None:
            options = replace(options, threshold=round(calibration.chosen, 6), calibrated_for=encoder)
        prepared = PreparedAudit.of(train, tests, options, encoding, judged=judged)
        with started("demo", (), prepared.options(), out, packages=PACKAGES) as job:
            job.log("start")
            result = prepared.result(job.unfinished(prepared.identity()), progress)
            before, after = (against_truth(found, truth, texts) for found in (first, result))
            summary: AuditSummary = {**result.summary, "truth": {**after, "first": before}}
            shown = DemoResult(
                summary, result.candidates, result.neighbours, job.folder, calibration=calibration, first=first
            )
            job.read(*prepared.inputs(result))
            publish(shown, job)
            job.log("end")
    return shown


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
    """
    above = {
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


def truth_table(result: DemoResult) -> Table:
    """Planted and found leaks by reformulation type, and what the two audits say of each test set."""
    found = result.summary.get("truth", {})
    rows = [
        (name, kind["planted"], kind["found"], kind["found"] / kind["planted"]) for name, kind in found["types"].items()
    ]
    notes = [
        f"Of {found['pairs']} pairs above the threshold, {found['true']} are planted leaks: "
        f"precision {found['precision']:.2f}. {found['lookalikes_above']} of the others are planted look-alikes "
        "with another information need."
    ]
    if result.first is not None:
        before = found["first"]
        notes += [
            f"The first audit, at {result.first.summary['threshold']:g} without labels, had {before['pairs']} pairs "
            f"above the threshold: precision {before['precision']:.2f}, recall {before['recall']:.2f}.",
            *_verdicts(result.first, result, read_truth()),
        ]
    return Table(
        title="Planted leaks that the audit found above its threshold, by reformulation type",
        columns=(
            Column("type"),
            *Column.numbers(",d", "planted", "found"),
            Column("recall", align="right", format=".2f"),
        ),
        rows=(*rows, ("all", found["planted"], found["found"], found["recall"])),
        notes=tuple(notes),
    )
