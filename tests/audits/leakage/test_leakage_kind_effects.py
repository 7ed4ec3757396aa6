"""What each kind of leak of whole examples does to scores: `leakage effect` and its folders."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from made_audits import made_audit
from truerank import leakage
from truerank.audits.leakage.kinds import KindVerdict
from truerank.cli.app import main
from truerank.core.plain import plain
from truerank.errors import InputError
from truerank.measures.document_placebo import RankedDocuments, document_placebos
from truerank.options import Resampling
from truerank.records import Qrel, RunRow

TOPICS = [f"t{i:02d}" for i in range(30)]
RELEVANT = range(8)
#: The query of six topics leaks with its answer, and of each topic two of eight relevant documents.
PAIRS, DOCUMENTS = TOPICS[:6], [f"{topic}-{n}" for topic in TOPICS for n in (0, 1)]
QRELS = [Qrel(topic, f"{topic}-{n}", 1) for topic in TOPICS for n in RELEVANT]


def run(seed: int, known: bool) -> list[RunRow]:
    """Twenty documents of each topic; one that knows what leaks has it on top."""
    rng, rows = np.random.default_rng(seed), []
    for topic in TOPICS:
        scores = rng.random(20)
        scores[:2] += known
        rows += [RunRow(topic, f"{topic}-{n}", 1, score) for n, score in enumerate(scores.tolist())]
    return rows


RUNS = {"plain": run(1, False), "other": run(2, False), "memory": run(3, True)}


def found(folder: Path | None = None, prefix: str = "", only: str = "") -> leakage.AuditResult:
    """An audit with three kinds of leak, one clean kind, and one that was not looked for."""
    texts = {"source": "secret log", "example_id": "7", "examples": 1, "training_text": "a text", "evidence": "exact"}
    rows: list[dict[str, Any]] = [
        {"kind": "pair", "topic_id": topic, "doc_id": f"{topic}-0", "role": "query+positive", **texts}
        for topic in PAIRS
    ]
    rows += [{"kind": "query-query", "topic_id": topic, "role": "query", **texts} for topic in TOPICS[:7]]
    rows += [
        {"kind": "positive-relevant", "doc_id": f"{prefix}{name}", "role": "positive", **texts} for name in DOCUMENTS
    ]

    def told(kind: str, leaked: int, of: int) -> KindVerdict:
        why = f"{leaked} of {of} leak. secret log was read."
        return KindVerdict(kind, "CONTAMINATED", why, leaked=leaked, of=of, pairs=leaked, examples=leaked)

    kinds = (
        told("pair", 6, 30),
        told("positive-relevant", 60, 240),
        KindVerdict("negative-relevant", "UNKNOWN", "Not looked for: no training text was read as a negative."),
        KindVerdict("query-document", "CLEAN", "Everything was read, and none of 30 queries was found.", of=30),
    )
    sources = {"secret log": {"examples": 67, "skipped": 0, "roles": "query=q, positive=p"}}
    chosen = [one for one in kinds if only in ("", one.kind)]
    return made_audit(rows, chosen, 600, sources, folder)


def test_each_kind_of_leak_has_a_verdict_on_scores() -> None:
    result = leakage.effect(QRELS, RUNS, found(), "nDCG@10", resamples=199)
    assert [(one.kind, one.verdict, one.removed, one.leaked, one.counted) for one in result.kinds] == [
        ("pair", "CONTAMINATED", "topics", 6, 6),
        ("positive-relevant", "CONTAMINATED", "documents", 60, 60),
        ("negative-relevant", "UNKNOWN", "documents", 0, 0),
        ("query-document", "CLEAN", "topics", 0, 0),
    ]
    by_kind = {one.kind: one.placebos for one in result.kinds}
    (documents,) = by_kind["positive-relevant"]
    assert documents.word == "moved more than chance" and documents.reason.startswith("memory moved by -0.")
    drawing = Resampling(199)
    assert (documents,) == document_placebos(RankedDocuments.of(QRELS, RUNS), DOCUMENTS, "nDCG@10", resampling=drawing)
    assert by_kind["negative-relevant"] == by_kind["query-document"] == ()
    # The leaked topics of the first table are those of pairs and queries.
    topics = leakage.effect(QRELS, RUNS, TOPICS[:7], "nDCG@10", resamples=199)
    assert (result.runs, result.placebos) == (topics.runs, topics.placebos)
    assert topics.kinds == ()
    shown = repr(result)
    assert "positive-relevant: relevant document in a training positive; the audit says CONTAMINATED." in shown
    assert "count for the same topics with the same grades" in shown
    assert json.loads(json.dumps(plain(result), allow_nan=False))["kinds"][1]["placebos"][0]["draws"] == 199


def test_chosen_kinds_and_matching(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found(tmp_path / "audit")
    (tmp_path / "t.qrels").write_text("".join(f"{one.topic_id} 0 {one.doc_id} 1\n" for one in QRELS))
    words = ["leakage", "effect", "--audit", str(tmp_path / "audit"), "--qrels", str(tmp_path / "t.qrels")]
    for name, rows in RUNS.items():
        lines = [f"{row.topic_id} Q0 {row.doc_id} 1 {row.score!r} {name}\n" for row in rows]
        (tmp_path / f"{name}.run").write_text("".join(lines))
        words += ["--run", str(tmp_path / f"{name}.run")]
    words += ["--kinds", "pair,positive-relevant", "--resamples", "99", "--matched-by", "plain", "--measures", "RR AP"]
    with pytest.raises(SystemExit, match="0"):
        main([*words, "--json"])
    told = json.loads(capsys.readouterr().out)
    assert [one["kind"] for one in told["kinds"]] == ["pair", "positive-relevant"]
    assert [one["measure"] for one in told["kinds"][1]["placebos"]] == ["RR", "AP"]
    kinds = ("pair", "positive-relevant")
    once = {name: iter(rows) for name, rows in RUNS.items()}
    same = leakage.effect(iter(QRELS), once, found(), "RR AP", kinds=kinds, matched_by="plain", resamples=99)
    assert told["kinds"] == json.loads(json.dumps(plain(same)))["kinds"]
    assert told["runs"][0]["leaked"]["n"] == 6 and "and that plain ranks about as high" in repr(same)


def test_kinds_that_are_none() -> None:
    with pytest.raises(InputError, match=r"kinds: there is no kind of leak 'pairs'\. choose from pair, query-query"):
        leakage.effect(QRELS, RUNS, found(), "RR", kinds=("pairs",))


def test_documents_that_no_run_holds_and_no_topic_asks_for_cannot_tell() -> None:
    other = found(prefix="x", only="positive-relevant")
    (one,) = leakage.effect(QRELS, RUNS, other, "RR").kinds
    assert (one.leaked, one.counted, one.placebos[0].word) == (60, 0, "cannot tell")
    assert "No removed document counts" in one.placebos[0].reason
