"""Reading the grades of people and models: every kind of source, the scale, and the rules."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from assessors_example import people, write_qrels
from judging_example import store_of
from truerank.audits.assessors import AssessorRules, read_grades, read_voices
from truerank.errors import InputError
from truerank.judging import Annotator, load_scheme
from truerank.judging.items import Item, Text

HUMAN = {"1": {"a": 0, "b": 2, "c": 1}, "2": {"a": 3, "d": 0}}


def codes(source: object, **rules: object) -> dict[str, list[int]]:
    """The codes that each model gave to the five pairs, in the order of people's."""
    found = read_grades(read_voices(HUMAN, models=False), read_voices(source, models=True), AssessorRules(**rules))  # type: ignore[arg-type]
    return dict(zip(found.judges, found.given.T.tolist(), strict=True))


def test_every_kind_of_source(tmp_path: Path) -> None:
    trec = write_qrels(HUMAN, tmp_path / "gpt.qrels")
    beir = tmp_path / "beir.tsv"
    beir.write_text("query-id\tcorpus-id\tscore\n1\ta\t0\n1\tb\t2\n1\tc\t1\n2\ta\t3\n2\td\t0\n", encoding="utf-8")
    labels = tmp_path / "labels.csv"
    rows = ["topic_id,doc_id,label,annotator", "1,a,0,x", "1,b,2,x", "1,c,1,x", "2,a,3,x", "2,d,0,x", "2,d,1,y"]
    labels.write_text("\n".join(rows) + "\n", encoding="utf-8")
    jsonl = tmp_path / "labels.jsonl"
    jsonl.write_text('{"topic_id": "1", "doc_id": "b", "label": "2"}\n', encoding="utf-8")
    frame = pl.DataFrame({"topic_id": ["1", "2"], "doc_id": ["a", "a"], "relevance": [0, 3]})
    same = [0, 2, 1, 3, 0]
    assert codes([str(trec)]) == {"gpt": same}
    assert codes([f"own={trec}"]) == {"own": same}
    assert codes([str(beir)]) == {"beir": same}
    assert codes([str(labels)]) == {"x": same, "y": [-1, -1, -1, -1, 1]}
    assert codes([str(jsonl)]) == {"labels": [-1, 2, -1, -1, -1]}
    assert codes({"frame": frame, "dict": HUMAN}) == {"frame": [0, -1, -1, 3, -1], "dict": same}


@pytest.mark.parametrize("column", ["label", "relevance", "grade"])
def test_a_table_of_zeros_and_ones_about_documents_has_grades(column: str, tmp_path: Path) -> None:
    table = tmp_path / "gpt.jsonl"
    rows = [(topic, doc, int(grade > 0)) for topic, held in HUMAN.items() for doc, grade in held.items()]
    lines = [f'{{"query_id": "{topic}", "doc_id": "{doc}", "{column}": {grade}}}' for topic, doc, grade in rows]
    table.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert codes([str(table)]) == {"gpt": [0, 1, 1, 1, 0]}


def test_a_store_has_people_and_models(tmp_path: Path) -> None:
    items = [
        Item(f"i{doc}", "1", texts=(Text("query", "what", id="1"), Text("document", f"text {doc}", id=doc)))
        for doc in ("a", "b")
    ]
    said = {
        "ann": {"ia": ("0",), "ib": ("2",)},
        "bob": {"ia": ("0",), "ib": ("3",)},
        "gpt": {"ia": ("1",), "ib": ("2",)},
    }
    scheme = load_scheme("relevance-passages")
    path = store_of(tmp_path / "judged", scheme, items, said, annotators=[Annotator("gpt", "model")])
    persons = read_voices(str(path), models=False)
    models = read_voices(str(path), models=True)
    assert [voice.name for voice in persons] == ["ann", "bob"]
    assert [voice.name for voice in models] == ["gpt"]
    found = read_grades(persons, models, AssessorRules(votes="first"))
    assert found.said.tolist() == [[0, 0], [2, 3]]
    assert found.given[:, 0].tolist() == [1, 2]
    undecided = read_grades(persons, models, AssessorRules())
    assert (undecided.undecided, undecided.documents) == (1, ("a",))


def test_grades_outside_the_scale() -> None:
    strange = {"1": {"a": 5, "b": -1, "c": 1}, "2": {"a": 3, "d": 0}}
    assert codes({"m": strange}) == {"m": [3, 0, 1, 3, 0]}
    assert codes({"m": strange}, outside="drop") == {"m": [-1, -1, 1, 3, 0]}
    with pytest.raises(
        InputError, match=r"m: topic 1, document a has the grade 5, which is outside the scale 0, 1, 2, 3"
    ):
        codes({"m": strange}, outside="fail")
    voices = read_voices(HUMAN, models=False), read_voices({"m": strange}, models=True)
    noted = read_grades(*voices, AssessorRules()).outside
    assert [tuple(one) for one in noted] == [("m", -1, 1), ("m", 5, 1)]
    assert read_grades(*voices, AssessorRules(scale="0-5")).outside == noted[:1]


@pytest.mark.parametrize(
    ("model", "rules", "fault"),
    [
        ({"m": {"9": {"a": 1}}}, {}, "the model m and people have no pair"),
        ({"people": HUMAN}, {}, "people are called people too"),
        ({"m": HUMAN}, {"scale": "0-0"}, "'0-0' has fewer than two grades"),
        ({"m": HUMAN}, {"scale": "high"}, "'high' is not a scale"),
    ],
)
def test_faults(model: object, rules: dict[str, str], fault: str) -> None:
    with pytest.raises(InputError, match=fault):
        codes(model, **rules)


def test_labels_that_are_no_grades(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("topic_id,doc_id,label\n1,a,perhaps\n", encoding="utf-8")
    with pytest.raises(InputError, match="the label 'perhaps' is not a grade"):
        codes([str(path)])


def test_a_model_may_grade_more_than_people() -> None:
    qrels = people(topics=2, documents=4)
    more = {topic: {**of, "new": 3} for topic, of in qrels.items()} | {"other": {"d0": 1}}
    found = read_grades(read_voices(qrels, models=False), read_voices({"m": more}, models=True), AssessorRules())
    assert len(found.reference) == 8
    assert len(found.qrels["m"]) == 10
    assert found.qrels["m"]["topic_id"].unique().sort().to_list() == ["t0", "t1"]
