"""Judgments, runs and labels: their formats, and faults with both lines."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from truerank.errors import InputError
from truerank.judging import open_judgments
from truerank.records import Judgment, Qrel, RunRow
from truerank.sources import read_labels, read_qrels, read_qrels_frame, read_run
from truerank.sources.qrels import qrel_lines
from truerank.sources.recognition import read_as_given


def written(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_qrels(tmp_path: Path) -> None:
    trec = written(tmp_path / "a.qrels", "1 0 d1 2\n1\t0\td2\t-1\n\n2 Q0 d1 0\n")
    assert list(read_qrels(str(trec))) == [Qrel("1", "d1", 2), Qrel("1", "d2", -1), Qrel("2", "d1", 0, "Q0")]
    written(tmp_path / "b" / "queries.jsonl", '{"_id":"1","text":"x"}\n')
    written(tmp_path / "b" / "qrels" / "test.tsv", "query-id\tcorpus-id\tscore\n1\td1\t1\n")
    assert list(read_qrels(str(tmp_path / "b"))) == [Qrel("1", "d1", 1)]


def test_run(tmp_path: Path) -> None:
    path = written(tmp_path / "a.run", "1 Q0 d2 0 2.5 bm25\n1 Q0 d1 1 -1e3 bm25\n")
    assert list(read_run(path)) == [RunRow("1", "d2", 0, 2.5, "bm25"), RunRow("1", "d1", 1, -1000.0, "bm25")]


def said(path: Path | str) -> tuple[Judgment, ...]:
    """The labelled records of a file, without where and how they were written."""
    return tuple(row._replace(where="", line=None, values={}, kind="") for row in read_labels(str(path)) if row.labels)


def test_label_studio(tmp_path: Path) -> None:
    def annotation(who: object, *choices: str, **more: object) -> dict[str, object]:
        result = {"type": "choices", "from_name": "type", "value": {"choices": list(choices)}}
        return {"completed_by": who, "result": [result], **more}

    data = {"topic_id": 301, "query_id": "77", "query_text": "crime", "similarity": 0.93, "probability": 0.25}
    tasks = [
        {
            "id": 1,
            "data": data,
            "annotations": [annotation({"email": "a@x.org"}, "Identical"), annotation(2, "Different")],
        },
        {"id": 2, "data": data, "annotations": [annotation(3, "Identical", was_cancelled=True)]},
        {"id": 3, "data": data, "annotations": []},
    ]
    path = written(tmp_path / "a.json", json.dumps(tasks, indent=1))
    pair = Judgment("301", "77", "crime", (), similarity=0.93, probability=0.25)
    assert said(path) == (
        pair._replace(labels=("Identical",), annotator="a@x.org"),
        pair._replace(labels=("Different",), annotator="2"),
    )
    prediction = {"model_version": "tiny-1", "result": annotation(1, "Identical")["result"], "score": 0.5}
    path = written(tmp_path / "model.json", json.dumps([{**tasks[0], "predictions": [prediction]}]))
    assert said(path)[2] == pair._replace(labels=("Identical",), annotator="tiny-1", role="model")
    reduced = [{"id": 1, **data, "choice": {"choices": ["A", "B"]}, "annotator": 4}]
    path = written(tmp_path / "min.json", json.dumps(reduced))
    assert said(path) == (pair._replace(labels=("A", "B"), annotator="4"),)


def test_booleans_are_labels(tmp_path: Path) -> None:
    rows = [{"topic_id": "1", "query_text": text, "label": leak} for text, leak in (("a", True), ("b", False))]
    path = written(tmp_path / "a.jsonl", "\n".join(map(json.dumps, rows)))
    assert [label.labels for label in read_labels(str(path))] == [("true",), ("false",)]
    pl.DataFrame(rows).write_parquet(tmp_path / "a.parquet")
    assert [label.labels for label in read_labels(str(tmp_path / "a.parquet"))] == [("true",), ("false",)]


def test_skips_and_roles(tmp_path: Path) -> None:
    rows = [
        {"topic_id": "1", "query_text": "a", "label": "leak", "annotator": "m", "role": "Model", "kind": "label"},
        {"topic_id": "1", "query_text": "a", "label": "leak", "annotator": "p", "kind": "skip"},
        {"topic_id": "1", "query_text": "a", "label": "no leak", "annotator": "p", "kind": "adjudicate"},
    ]
    path = written(tmp_path / "a.jsonl", "\n".join(map(json.dumps, rows)))
    rows_read = [(row.annotator, row.role, row.kind, row.labels) for row in read_labels(str(path))]
    assert rows_read == [
        ("m", "model", "label", ("leak",)),
        ("p", "", "skip", ()),
        ("p", "", "adjudicate", ("no leak",)),
    ]
    path = written(tmp_path / "b.jsonl", json.dumps({**rows[0], "kind": "undo"}))
    with pytest.raises(InputError, match=r"b\.jsonl:1: a history of events, of which some were taken back"):
        open_judgments(str(path))


@pytest.mark.parametrize(
    ("content", "fault", "line"),
    [
        ("topic_id,query_text,label\n1,a,x\n", None, None),
        ("topic_id,query_text,kind\n1,a,x\n", "'x' is not a kind of event", 2),
        ("topic_id,query_text,role,label\n1,a,cat,x\n", "'cat' is not a role", 2),
        ("topic_id,query_text\n1,a\n", "no column or key 'label'", 2),
        ("query_text,label\na,x\n", "no column or key 'topic_id'", 2),
        ("topic_id,query_text,label,similarity\n1,a,x,0.9\n1,a,x,high\n", "'high' is not a number", 3),
        ("topic_id,query_text,label,probability\n1,a,x,0\n", "probability 0 is not above 0", 2),
        ("topic_id,query_text,label\n1,a,\n", "no labelled record in it", None),
    ],
)
def test_broken_labels(content: str, fault: str | None, line: int | None, tmp_path: Path) -> None:
    path = str(written(tmp_path / "a.csv", content))
    if fault is None:
        assert said(path)[0].labels == ("x",)
        return
    with pytest.raises(InputError) as caught:
        open_judgments(path)
    assert fault in caught.value.fault
    assert caught.value.line == line


def test_ids_with_blanks_between_the_tabs_of_a_header(tmp_path: Path) -> None:
    rows = [("q 1", "doc 12", 1), ("q 1", "doc", 0), ("q2", "doc 12", 2)]
    lines = ["query-id\tcorpus-id\tscore", *(f"{topic}\t{doc}\t{grade}" for topic, doc, grade in rows)]
    path = tmp_path / "test.tsv"
    for text in ("\n".join(lines), "\n".join([*lines, ""]), "\r\n".join([*lines, "", ""])):
        path.write_bytes(text.encode())
        assert read_qrels_frame(str(path)).rows() == rows
        assert [(one.topic_id, one.doc_id, one.relevance) for one in read_qrels(str(path))] == rows
        said = [one.said for one in qrel_lines(str(path)) if isinstance(one.said, Qrel)]
        assert [(one.topic_id, one.doc_id, one.relevance) for one in said] == rows
    path.write_text("\n".join([*lines, lines[1]]))
    for read in (read_qrels_frame, lambda one: list(read_qrels(one))):
        with pytest.raises(InputError, match=r"topic q 1 and document doc 12 are already in line 2"):
            read(str(path))
    path.write_text("\n".join([*lines, "q 3\tdoc 1"]))
    with pytest.raises(InputError, match=r":5: 2 columns instead of 4"):
        read_qrels_frame(str(path))


def test_blanks_separate_the_columns_of_other_judgments(tmp_path: Path) -> None:
    path = tmp_path / "test.qrels"
    for text in ("1 0 d1 1\n", "1\t0\td1\t1\n", "1\t0 d1\t1\n", "query-id\tcorpus-id\tscore\n1 d1 1\n"):
        path.write_text(text)
        assert read_qrels_frame(str(path)).rows() == [("1", "d1", 1)]


#: What a first line calls the columns, and a line of topic 1, document 7 and grade 2 below it.
HEADERS = (
    ("qid\tdocId\trel", "1\t7\t2"),
    ("query_id iteration docno relevance", "1 0 7 2"),
    ("Topic\tIter\tDocument\tGrade", "1\t0\t7\t2"),
    ("query-id,corpus-id,score", "1,7,2"),
    ("query_id,recipe_id,grade,source", '1,7,2,"Ann, in May"'),
    ("grade;article_id;topic_id", "2;7;1"),
    ("annotator_id,question_id,product_id,label", "ann,1,7,2"),
)


@pytest.mark.parametrize(("header", "line"), HEADERS)
def test_a_first_line_that_names_the_columns_is_no_judgment(header: str, line: str, tmp_path: Path) -> None:
    path = written(tmp_path / "judged.txt", f"{header}\n{line}\n{line.replace('7', '8').replace('2', '0')}\n")
    rows = [("1", "7", 2), ("1", "8", 0)]
    assert read_qrels_frame(str(path)).rows() == rows
    assert [(one.topic_id, one.doc_id, one.relevance) for one in read_qrels(str(path))] == rows
    assert [type(one.said) for one in qrel_lines(str(path))][:3] == [type(None), Qrel, Qrel]
    written(path, f"{header}\n{line}\n{line}\n")
    with pytest.raises(InputError, match="topic 1 and document 7 are already in line 2"):
        read_qrels_frame(str(path))
    written(path, f"{header}\n{line.replace('2', '0.5', 1) if line[0] == '2' else line.replace('2', '0.5')}\n")
    assert read_qrels_frame(str(path)).rows() == [("1", "7", 5)]


@pytest.mark.parametrize("broken", ["1 0 d7 high", "q1\td7\trel", "1,7,2", "# no judgment"])
def test_a_broken_first_line_is_no_header(broken: str, tmp_path: Path) -> None:
    path = written(tmp_path / "a.qrels", f"{broken}\n1 0 d1 1\n")
    if broken.startswith("#"):
        assert len(read_qrels_frame(str(path))) == 1
        return
    with pytest.raises(InputError, match=":1: "):
        read_qrels_frame(str(path))


@pytest.mark.parametrize("count", [6, 30])
def test_a_run_below_the_names_of_its_columns(count: int, tmp_path: Path) -> None:
    lines = [f"q{at} Q0 d{at} 1 0.5 tag" for at in range(count)]
    path = written(tmp_path / "a.txt", "\n".join(["topic Q0 docno rank score tag", *lines]))
    assert [row.topic_id for row in read_run(path)] == [f"q{at}" for at in range(count)]
    judged = written(tmp_path / "q.txt", "\n".join(["topic it doc rel", *(f"q{at} 0 d1 1" for at in range(count))]))
    assert [one.kind for one in read_as_given([path, judged])] == ["run", "judgments"]
    written(path, "\n".join(["q0 Q0 d0 first 0.5 tag", *lines]))
    with pytest.raises(InputError, match=":1: rank 'first'"):
        list(read_run(path))


@pytest.mark.parametrize("named", ["query_id,recipe_id,grade,source", "qid,product_id,relevance,batch"])
def test_a_row_for_each_judgment_is_no_table_of_systems(named: str, tmp_path: Path) -> None:
    rows = [f"q{at},{100 + 5 * at + doc},{doc % 3},{'ab'[doc % 2]}" for at in range(8) for doc in range(5)]
    path = written(tmp_path / "judgments.csv", "\n".join([named, *rows]) + "\n")
    document, grade, left = named.split(",")[1:]
    for columns in ("", f"expected={document},grade={grade}"):
        (one,) = read_as_given([path], columns)
        assert one.kind == "golden set" and f"not looked at: '{left}'" in one.remarks
        assert isinstance(one.numbers, pl.DataFrame) and one.numbers["relevance"].to_list() == [0, 1, 2, 0, 1] * 8
    assert read_qrels_frame(str(path))["relevance"].to_list() == [0, 1, 2, 0, 1] * 8


@pytest.mark.parametrize("system", ["model_id", "run_id", "retriever_id"])
def test_a_rating_of_each_system_is_no_judgment_of_a_document(system: str, tmp_path: Path) -> None:
    rows = [f"q{at},{name},{(at + len(name)) % 3}" for at in range(8) for name in ("old", "newer")]
    path = written(tmp_path / "ratings.csv", "\n".join([f"query_id,{system},rating", *rows]) + "\n")
    (one,) = read_as_given([path], f"system={system},score=rating")
    assert one.kind == "score table"
    with pytest.raises(InputError):
        read_qrels_frame(str(path))
