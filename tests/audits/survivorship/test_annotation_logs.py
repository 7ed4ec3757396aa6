"""Annotation logs: every layout gives the same records, every fault is counted, memory does not need the file."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any, NamedTuple

import ir_datasets
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from truerank.audits.survivorship.annotation_logs import Annotation, ShownPassage, open_annotations
from truerank.errors import InputError
from truerank.sources import compressed, rows

TEXTS = ['a "quote" and {brackets]', 'back\\slash \\" end', 'café ]}, "7": [', "日本\n\ttab"]
SLOW = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]


def qna(rows: list[dict[str, Any]], *, drop: dict[str, set[int]] | None = None) -> dict[str, dict[str, Any]]:
    """Rows as columns, the keys being the rows' numbers; `drop` leaves cells out."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    drop = drop or {}
    return {
        name: {str(i): row[name] for i, row in enumerate(rows) if name in row and i not in drop.get(name, ())}
        for name in names
    }


def example(count: int = 6) -> list[dict[str, Any]]:
    return [
        {
            "answers": ["It is."] if i % 3 else ["No Answer Present."],
            "passages": [
                {
                    "is_selected": int(i % 3 > 0 and place == i % 4),
                    "passage_text": f"{TEXTS[place]} {i}",
                    "url": f"u{place}",
                }
                for place in range(4)
            ],
            "query": f"what is {TEXTS[i % 4]}".strip(),
            "query_id": 1000 + i,
            "query_type": "ENTITY" if i % 2 else "PERSON",
            "wellFormedAnswers": "[]",
        }
        for i in range(count)
    ]


def wanted(rows: list[dict[str, Any]]) -> list[Annotation]:
    return [
        Annotation(
            str(row["query_id"]),
            row["query"],
            row["query_type"],
            tuple(ShownPassage("", p["passage_text"], p["url"], p["is_selected"] == 1) for p in row["passages"]),
            tuple(text for text in row["answers"] if text != "No Answer Present."),
        )
        for row in rows
    ]


def test_every_layout_gives_the_same_records(tmp_path: Path) -> None:
    rows = example()
    columns = tmp_path / "columns.json"
    columns.write_text(json.dumps(qna(rows)))
    packed = tmp_path / "columns.json.gz"
    packed.write_bytes(gzip.compress(json.dumps(qna(rows), indent=1, ensure_ascii=False).encode()))
    lines = tmp_path / "rows.jsonl"
    lines.write_text("".join(json.dumps(row) + "\n" for row in rows))
    array = tmp_path / "rows.json"
    array.write_text(json.dumps(rows))
    # As Hugging Face stores it: a record of lists.
    lists = [
        {**row, "passages": {key: [p[key] for p in row["passages"]] for key in row["passages"][0]}} for row in rows
    ]
    table = tmp_path / "rows.parquet"
    pl.DataFrame(lists).write_parquet(table)
    for path in (columns, packed, lines, array, table):
        log = open_annotations(str(path))
        assert list(log) == wanted(rows) == list(log), path.name
        assert log.log_counts.read == log.log_counts.kept == 6
        assert not log.log_counts.faults


def test_logs_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text(
        "query_id\tquery\tshown\tselected\n7\tone two\td1 d2 d3\td3 d1\n8\tthree\td4\t\n9\tfour\td1\td9\n"
    )
    log = open_annotations(str(tmp_path / "a.tsv"))
    first, second, third = list(log)
    assert (first.positions, [one.doc_id for one in first.shown]) == ([0, 2], ["d1", "d2", "d3"])
    assert (second.survived, third.survived) == (False, False)
    assert log.log_counts.faults == {"selected-not-shown": 1}
    records = [
        {"qid": "7", "query": "one two", "shown": ["d1", "d2"], "selected": ["d2"]},
        {"qid": "8", "query": "x", "shown": [{"doc_id": 4, "text": "t", "selected": True}], "query_type": "PERSON"},
    ]
    (tmp_path / "b.jsonl").write_text("".join(json.dumps(one) + "\n" for one in records))
    log = open_annotations(str(tmp_path / "b.jsonl"))
    assert [one.positions for one in log] == [[1], [0]]
    assert log.log_counts.faults == {"no-type": 1}
    assert log.log_counts.examples["no-type"] == ("7",)


def test_columns_with_holes(tmp_path: Path) -> None:
    rows = example(40)
    expected = {one.query_id: one for one in wanted(rows)}
    drop = {"query_id": {3}, "query": {4}, "query_type": {5, 6}, "answers": {7}, "passages": {8, 39}}
    path = tmp_path / "q.json"
    path.write_text(json.dumps(qna(rows, drop=drop)))
    log = open_annotations(str(path))
    found = {one.query_id: one for one in log}
    assert set(found) == (set(expected) - {"1003"}) | {"key-3"}
    for name, one in found.items():
        row = int(name.removeprefix("key-")) % 1000
        whole = expected[str(1000 + row)]
        assert one.query == ("" if row == 4 else whole.query)
        assert one.query_type == ("" if row in (5, 6) else whole.query_type)
        assert one.shown == (() if row in (8, 39) else whole.shown)
        assert one.answers == (() if row == 7 else whole.answers)
    counted = dict(log.log_counts.faults)
    assert counted.pop("answer-without-selection", 0) == sum(bool(expected[str(1000 + i)].answers) for i in (8, 39))
    assert counted == {"no-query-id": 1, "no-query": 1, "no-type": 2, "no-answers": 1, "nothing-shown": 2}


def test_columns_in_any_one_order(tmp_path: Path) -> None:
    rows = example(40)
    columns = {name: dict(reversed(column.items())) for name, column in qna(rows).items()}
    path = tmp_path / "q.json"
    path.write_text(json.dumps(columns))
    assert list(open_annotations(str(path))) == wanted(rows)[::-1]
    # A record that a column lacks has its place only where the keys ascend.
    del columns["query"]["7"]
    path.write_text(json.dumps(columns))
    with pytest.raises(InputError, match="columns in different orders"):
        list(open_annotations(str(path)))


def test_faults_of_passages_and_queries(tmp_path: Path) -> None:
    rows = example(6)
    rows[1]["passages"][0].pop("is_selected")
    rows[1]["passages"][3]["is_selected"] = 2
    rows[2]["passages"][3] = dict(rows[2]["passages"][0])
    rows[4]["query_id"] = 1002
    rows[5]["passages"][0].pop("passage_text")
    rows[5]["answers"] = ["No Answer Present."]
    path = tmp_path / "q.json"
    data = json.dumps(qna(rows), ensure_ascii=False).encode().replace('café ]}, \\"7\\": [ 2'.encode(), b"caf\xe9 2")
    path.write_bytes(data)
    log = open_annotations(str(path))
    assert len(list(log)) == 5
    assert log.log_counts.faults == {
        "no-selection": 1,
        "bad-selection": 1,
        "repeated-document": 1,
        "repeated-query": 1,
        "no-text": 1,
        "selection-without-answer": 1,
        "repaired": 1,
    }
    with pytest.raises(InputError, match="not UTF-8"):
        list(open_annotations(str(path), strict=True))


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ('{"query": {"0": "a"}, "query_id": {"0": 1}}', "no column 'passages'"),
        ('{"passages": {"0": [{"is_selected": 1, "passage_text": "a", "url": "u"}', "cut off"),
        ('{"passages": {"0": [1, 2}, "query": {"0": "a"}}', "no valid JSON"),
        ('{"passages": {"0": []}, "query": {"0": "a"}} {}', "the end of the file expected"),
        ('{"passages": {"0": []}, "query": {"0": "a"}, "other": {"0": 1', "the file ends"),
        ('{"passages": {"0": []}, "query": 1}', "'query' is not a table"),
        ('{"passages": {"0": []}, "query": {"a": "x", "b": "y"}}', "columns in different orders"),
        ('{"passages": {"0": [1 2]}, "query": {"0": "a"}}', "no valid JSON"),
        ('{"query_id": 1, "query": "a"}\n', "no column 'shown'"),
    ],
)
def test_bad_logs(tmp_path: Path, content: str, fault: str) -> None:
    path = tmp_path / "log.json"
    path.write_text(content)
    with pytest.raises(InputError) as caught:
        list(open_annotations(str(path)))
    assert fault in str(caught.value)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text('a"\\[]{}:,é日0', max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('k"\\7', max_size=3), inner, max_size=3),
    max_leaves=9,
)


@settings(max_examples=60, suppress_health_check=SLOW)
@given(
    columns=st.dictionaries(
        st.sampled_from(["a", 'b"', "c\\"]),
        st.dictionaries(st.integers(0, 99).map(str), VALUES, max_size=4),
        max_size=3,
    ),
    size=st.integers(1, 40),
    plain=st.booleans(),
)
def test_columns_are_found_and_read_whatever_they_hold(
    tmp_path: Path, columns: dict[str, dict[str, Any]], size: int, plain: bool
) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps(columns, ensure_ascii=plain, indent=None if plain else 1), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compressed, "_CHUNK", size)
        found = {
            name: {row.values["key"]: row.values[name] for row in rows.column_rows(path, [name], [name], strict=True)}
            for name in columns
        }
    assert found == columns


class _Query(NamedTuple):
    query_id: str
    text: str
    type: str
    answers: tuple[str, ...]


class _Judgment(NamedTuple):
    query_id: str
    doc_id: str
    relevance: int


class _Data:
    """What ir_datasets gives for msmarco-qna/dev, in small."""

    def has(self, _: str) -> bool:
        return True

    def queries_iter(self) -> list[_Query]:
        return [_Query("1", "one", "PERSON", ("x",)), _Query("2", "two", "ENTITY", ()), _Query("3", "three", "", ())]

    def qrels_iter(self) -> list[_Judgment]:
        return [_Judgment("1", "70-0", 0), _Judgment("1", "8-2", 1), _Judgment("3", "9-0", 0)]


def test_ir_datasets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ir_datasets, "load", lambda _: _Data())
    log = open_annotations("irds:msmarco-qna/dev")
    first, second, third = list(log)
    assert first == Annotation("1", "one", "PERSON", (ShownPassage("70"), ShownPassage("8", selected=True)), ("x",))
    assert (second.shown, third.survived) == ((), False)
    assert log.log_counts.faults == {"nothing-shown": 1, "no-type": 1}
    monkeypatch.setattr(_Data, "qrels_iter", lambda _: [_Judgment("3", "9-0", 1), _Judgment("1", "8-2", 1)])
    with pytest.raises(InputError, match="another order"):
        list(open_annotations("irds:msmarco-qna/dev"))


def test_other_kinds_of_files(tmp_path: Path) -> None:
    path = tmp_path / "a.run"
    path.write_text("1 Q0 d 1 2.5 x\n")
    with pytest.raises(InputError, match="holds no annotations"):
        open_annotations(str(path))
