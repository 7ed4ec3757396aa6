"""Tables of labels as the papers print them."""

from __future__ import annotations

from pathlib import Path

import pytest

from judging_example import pair_item, store_of, written_csv
from places import DATA, real
from truerank import judge
from truerank.errors import InputError
from truerank.judging import Annotator, Item, Store, Text, load_scheme
from truerank.judging.ratings import read_ratings
from truerank.judging.report import label_tables


@pytest.fixture
def annotations() -> list[Path]:
    folder = real("spire22/annotations")
    return sorted(folder.glob("query-*.jsonl"))


@pytest.mark.shared
def test_table_2_of_the_leakage_paper(annotations: list[Path]) -> None:
    sets = {"Robust04": "robust04", "Core 2017": "core17", "Core 2018": "core18"}
    topics = [f"{name}={DATA / 'topics' / f'{file}.trec.txt'}" for name, file in sets.items()]
    found = judge.table(annotations, scheme="leakage", topics=topics)
    assert tuple(found.parts["a"].rows()) == (
        ("Robust04", "true", 648, 172),
        ("Robust04", "false", 93, 53),
        ("Core 2017", "true", 138, 37),
        ("Core 2017", "false", 21, 11),
        ("Core 2018", "true", 157, 38),
        ("Core 2018", "false", 19, 7),
    )
    assert tuple(found.parts["b"].rows()) == (
        ("identical", 187),
        ("generalization", 124),
        ("specialization", 228),
        ("reformulation", 182),
        ("different topic", 106),
    )
    assert "1 pair with a type of the variant only counts as reformulation." in found.notes
    assert (
        judge.table(annotations, topics=dict(pair.split("=") for pair in topics)).json()["tables"]
        == (found.json()["tables"])
    )


@pytest.mark.shared
def test_all_annotations_of_the_first_iteration_together(annotations: list[Path]) -> None:
    """The two independent annotations and the agreed one: three votes on each of 103 pairs."""
    first = [annotations[0], *sorted(annotations[0].parent.glob("agreement-*.jsonl"))]
    found = judge.table(first, scheme="leakage")
    counts = {row[1]: row[2] for row in found.parts["a"].rows()}
    assert sum(counts.values()) == 103


def test_corpora_types_and_what_is_left_out(tmp_path: Path) -> None:
    rows = [
        ("1", "a", "Title-Identical|Different Topic", "x", "news"),
        ("1", "b", "Title-Specialization", "x", "news"),
        ("1", "b", "Title-Specialization", "y", "news"),
        ("1", "b", "Title-Reformulation", "z", "news"),
        ("2", "c", "Variant-Identical", "x", "web"),
        ("2", "d", "Title-Identical", "x", "web"),
        ("2", "d", "Title-Generalization", "y", "web"),
        ("2", "e", "Title-Identical", "x", "web"),
        ("2", "e", "Different Topic", "y", "web"),
        ("3", "f", "", "y", "web"),
    ]
    path = written_csv(tmp_path / "a.csv", ["topic_id", "query_text", "labels", "annotator", "dataset"], rows)
    found = judge.table(path)
    assert found.scheme == "leakage"
    assert tuple(found.parts["a"].rows()) == (
        ("news", "true", 1, 1), ("news", "false", 1, 1), ("web", "true", 2, 1), ("web", "false", 0, 0),
    )  # fmt: skip
    assert dict(found.parts["b"].rows()) == {
        "identical": 0, "generalization": 0, "specialization": 1, "reformulation": 1, "different topic": 1,
    }  # fmt: skip
    assert found.notes == (
        "1 item on which annotators are tied is left out; adjudicate them.",
        "2 items on which annotators are tied are left out of the types; adjudicate them.",
        "1 pair with a type of the variant only counts as reformulation.",
        "1 record without a label, or skipped, is left out.",
        "The scheme 'leakage' was recognised from the labels.",
    )
    topics = tmp_path / "two.tsv"
    topics.write_text("2\tsecond topic\n9\tninth topic\n")
    filed = judge.table(path, topics=[str(topics), f"again={topics}"])
    assert tuple(filed.parts["a"].rows()) == tuple(
        (name, *rest) for name in ("two", "again") for rest in (("true", 2, 1), ("false", 0, 0))
    )
    assert "2 judged pairs have a topic of none of the topic sets." in filed.notes
    with pytest.raises(InputError, match="two topic sets are called 'two'"):
        judge.table(path, topics=[str(topics), f"two={topics}"])


def test_table_1_of_the_survivorship_paper(tmp_path: Path) -> None:
    """The paper's counts, spread over labels of single queries."""
    counts = {"Dev": (70, 15, 14, 1), "Train": (36, 5, 6, 3)}
    reasons = ("no_ans", "partial_ans", "wrong_lab", "ill_form")
    rows = [
        (split, f"{split}-{reason}-{number}", reason)
        for split, row in counts.items()
        for reason, count in zip(reasons, row, strict=True)
        for number in range(count)
    ]
    found = judge.table(written_csv(tmp_path / "a.csv", ["split", "query_id", "label"], rows))
    assert found.scheme == "survivorship"
    assert found.parts["counts"].columns == ["split", *reasons, "total"]
    assert tuple(found.parts["counts"].rows()) == (
        ("Dev", 70, 15, 14, 1, 100), ("Train", 36, 5, 6, 3, 50), ("total", 106, 20, 20, 4, 150),
    )  # fmt: skip
    shares = {(row[0], row[1]): row[2:] for row in found.parts["shares"].rows()}
    # statsmodels 0.15, proportion_confint(method="wilson").
    assert shares["Dev", "no_ans"] == pytest.approx((70, 0.7, 0.6041514536665332, 0.7810511470506724), abs=1e-9)
    assert shares["total", "wrong_lab"] == pytest.approx(
        (20, 2 / 15, 0.08799800470551418, 0.19698017449774202), abs=1e-9
    )
    narrow = judge.table(tmp_path / "a.csv", confidence=0.5).parts["shares"].row(0)
    assert narrow[4] > shares["Dev", "no_ans"][2]
    assert len(judge.table(tmp_path / "a.csv", group_by="query_id").parts["counts"]) == 151
    with pytest.raises(InputError, match="no item has 'colour'"):
        judge.table(tmp_path / "a.csv", group_by="colour")


#: Table 3 of the transfer paper: counts per query set and outcome.
OUTCOMES = ("neither", "only V2", "only V1", "both", "V1 better", "V2 better")
REVIEWED = {
    "V1>>V2 FirstP": (1, 4, 48, 37, 6, 4),
    "V1>>V2 MaxP": (5, 3, 73, 11, 7, 1),
    "V2>>V1 FirstP": (0, 21, 7, 55, 2, 15),
    "V2>>V1 MaxP": (0, 25, 5, 51, 0, 19),
    "Random": (4, 0, 9, 79, 3, 5),
    "Wayback": (0, 1, 3, 89, 7, 0),
}


def test_table_3_of_the_transfer_paper_from_a_store(tmp_path: Path) -> None:
    items, said = [], {}
    for name, counts in REVIEWED.items():
        for outcome, count in zip(OUTCOMES, counts, strict=True):
            for number in range(count):
                item_id = f"{name}-{outcome}-{number}"
                texts = (Text("query", "q"), Text("V1", "one", f"d{number}"), Text("V2", "two"))
                items.append(Item(item_id, "t", texts=texts, dataset=name))
                said[item_id] = [outcome]
    path = store_of(tmp_path / "v.judged", load_scheme("transfer"), items, {"ann": said})
    found = judge.table(path)
    assert tuple(found.parts["counts"].rows())[:-1] == tuple((name, *counts, 100) for name, counts in REVIEWED.items())
    assert tuple(found.parts["counts"].rows())[-1] == ("total", *map(sum, zip(*REVIEWED.values(), strict=True)), 600)
    assert [(column.title, column.above) for column in label_tables(found)["counts"].columns[1:3]] == [
        ("neither", ("V1=0 V2=0",)), ("only V2", ("V1=0 V2=1",)),
    ]  # fmt: skip


def test_grades_of_three_versions(tmp_path: Path) -> None:
    scheme = load_scheme("transfer:3")
    texts = (Text("query", "q"), *(Text(f"V{number}", f"text {number}") for number in (1, 2, 3)))
    items = [Item(f"i{number}", "t", texts=texts, dataset="d") for number in range(2)]
    said = {"i0": ["V1=2", "V2=0", "V3=1"], "i1": ["V1=1", "V2=0", "V3=1"]}
    found = judge.table(store_of(tmp_path / "v.judged", scheme, items, {"ann": said}))
    assert tuple(found.parts["counts"].rows()) == (
        ("d", "V1", 0, 1, 1, 2),
        ("d", "V2", 2, 0, 0, 2),
        ("d", "V3", 0, 2, 0, 2),
    )


def test_answers_per_passage_and_grades(tmp_path: Path) -> None:
    texts = (Text("query", "q"), Text("passage 1", "a"), Text("passage 2", "b"))
    items = [Item(f"i{number}", "t", texts=texts) for number in range(3)]
    said = {"i0": ["passage 1", "passage 2"], "i1": ["none"], "i2": ["passage 2"]}
    path = store_of(tmp_path / "p.judged", load_scheme("answerability"), items, {"ann": said})
    assert tuple(judge.table(path).parts["counts"].rows()) == (("all", 2, 1, 3),)
    grades = written_csv(tmp_path / "g.csv", ["query_id", "doc_id", "label"], [("q", "a", 3), ("q", "b", 0)])
    found = judge.table(grades, scheme="relevance-documents")
    assert dict(zip(found.parts["counts"].columns, found.parts["counts"].row(0), strict=True)) == {
        "data set": "all", "3": 1, "2": 0, "1": 0, "0": 1, "total": 2,
    }  # fmt: skip


def test_adjudication_decides_and_models_are_asked_for(tmp_path: Path) -> None:
    items = [pair_item("1", f"query {number}", number) for number in range(3)]
    people = {"ann": {"1-0": ["leak"], "1-1": ["leak"]}, "bob": {"1-0": ["leak"], "1-1": ["no leak"]}}
    robot = {"robot": {item.item_id: ["no leak"] for item in items}}
    model = Annotator("robot", "model", "a model")
    path = store_of(tmp_path / "s.judged", load_scheme("leak"), items, {**people, **robot}, [model])
    before = judge.table(path)
    assert [row[2] for row in before.parts["a"].rows()] == [1, 0]
    assert "Labels of the models robot are left out." in repr(before)
    with_models = judge.table(path, include_models=True)
    assert [row[2] for row in with_models.parts["a"].rows()] == [1, 2]
    assert "Not only people: labels of the models robot are counted." in repr(with_models)
    with Store.open(path) as store:
        store.add_annotator("cy", "adjudicator")
        store.record("1-1", "cy", "adjudicate", ["leak"])
        assert [row[2] for row in judge.table(store, include_models=True).parts["a"].rows()] == [2, 1]
    alone = store_of(tmp_path / "m.judged", load_scheme("leak"), items, robot, [model])
    with pytest.raises(InputError, match=r"no item is labelled by people\. let people judge, or give `include_models`"):
        judge.table(alone)
    with pytest.raises(InputError, match="the store was made with the scheme 'leak', not 'transfer'"):
        judge.table(alone, scheme="transfer")
    with pytest.raises(InputError, match="a store beside other sources"):
        judge.table([alone, path])


def test_labels_of_no_scheme(tmp_path: Path) -> None:
    path = written_csv(tmp_path / "a.csv", ["query_id", "label"], [("1", "red"), ("2", "green")])
    with pytest.raises(InputError, match="no known scheme has the labels 'green', 'red'"):
        judge.table(path)
    with pytest.raises(InputError, match="the scheme has no label 'red'"):
        judge.table(path, scheme="leakage")
    with pytest.raises(InputError, match="nothing distinguishes this record from others"):
        judge.table(written_csv(tmp_path / "b.csv", ["topic_id", "label"], [("1", "leak")]))


@pytest.mark.parametrize("labels", [("True", "False"), ("yes", "no"), ("YES", "No")])
def test_labels_of_anything_are_of_no_scheme_and_the_id_is_named(labels: tuple[str, str], tmp_path: Path) -> None:
    rows = [f"t{at},{labels[at % 2]},{labels[at % 3 == 0]}" for at in range(12)]
    (tmp_path / "a.csv").write_text("\n".join(("tweet_id,judge_ok,human_ok", *rows)) + "\n")
    assert read_ratings(tmp_path / "a.csv", columns="id=tweet_id,label=judge_ok+human_ok").scheme is None
    with pytest.raises(InputError, match="--columns id=tweet_id, or question=COLUMN"):
        read_ratings(tmp_path / "a.csv", columns="label=judge_ok+human_ok")
