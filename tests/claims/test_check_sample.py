"""The small collection of the sample: made anew it is the same, and a check of it sees every fault that was planted."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

import truerank
from truerank.sources import read_qrels_frame, read_run_frame
from truerank.sources.sample import sample_folder

ROOT = Path(__file__).resolve().parents[2]
FOLDER = sample_folder() / "collection"


def truth() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / "truth.json").read_text())
    return found


def test_made_anew_the_collection_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = importlib.util.spec_from_file_location("make_sample_collection", ROOT / "scripts/make_sample_collection.py")
    assert spec is not None and spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    (tmp_path / "collection").mkdir()
    (tmp_path / "truth.tsv").write_bytes((sample_folder() / "truth.tsv").read_bytes())
    monkeypatch.setattr(script, "SAMPLE", tmp_path)
    script.main()
    made = {path.name: path.read_bytes() for path in (tmp_path / "collection").iterdir()}
    assert made == {path.name: path.read_bytes() for path in FOLDER.iterdir()}
    assert sum(map(len, made.values())) < 200_000


def test_the_collection_is_read_and_its_faults_are_there() -> None:
    faults = truth()
    qrels = read_qrels_frame(str(FOLDER / "people.qrels"))
    judged = set(qrels.select("topic_id", "doc_id").iter_rows())
    assert {tuple(pair) for pair in faults["judgments_of_missing_documents"]} <= judged
    assert not {tuple(pair) for pair in faults["unjudged"]} & judged
    assert read_run_frame(FOLDER / "expanded.run.gz")["topic_id"].n_unique() == 38
    result = truerank.check(
        qrels=str(FOLDER / "people.qrels"),
        run=[str(FOLDER / f"{name}.run.gz") for name in ("bm25", "tuned-encoder", "late-run")],
        baseline="late-run",
        system="bm25",
    )
    # The late run was not pooled: less of it is judged, and the page says so.
    assert result.answer("pools").word == "ONE RUN POOLED"


@pytest.mark.slow
def test_a_check_of_the_sample_sees_what_was_planted(tmp_path: Path) -> None:
    faults = truth()
    result = truerank.check("sample", out=tmp_path)
    assert result.conclusion.word == "CANNOT TELL"
    assert {one.question for one in result.answers if one.effect == "unknown"} == set()
    leaked = set(result.answer("leakage").facts["leaked_topics"])
    assert set(faults["leaked_topics"]) <= leaked
    assert len(leaked) <= len(faults["leaked_topics"]) + 1
    audit = truerank.collection.load_audit(tmp_path / "collection")
    gone = {pair[1] for pair in faults["judgments_of_missing_documents"]}
    assert gone | set(faults["lost"]) == set(audit.rows("missing-document")["doc_id"])
    assert set(faults["copies"]) <= set(audit.rows("exact-duplicate")["doc_id"])
    versions = result.answer("versions").facts
    assert versions["flagged"] == len(faults["error_pages"])
    assert (versions["lost"], versions["nowhere"]) == (len(faults["lost"]), len(gone))
