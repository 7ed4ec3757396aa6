"""The meaning of labels: leak or not, several annotators, matching to candidates."""

import polars as pl
import pytest

from judging_example import store_of
from places import real
from truerank.errors import InputError
from truerank.judging import Annotator, Item, Store, Text, load_scheme, read_ratings
from truerank.judging.definitions import is_leak
from truerank.judging.labels import Judgments, annotate, open_judgments
from truerank.records import Judgment


@pytest.fixture
def annotations():
    return real("spire22/annotations")


def label(topic, text, *labels, query="", **more):
    return Judgment(topic, query, text, labels, **more)


@pytest.mark.parametrize(
    ("labels", "leak"),
    [
        (["Title-Identical", "Variant-Identical"], True),
        (["Title-Specialisation"], True),
        (["title_reformulation"], True),
        (["Title-Identical", "different topic"], False),
        (["DIFFERENT-TOPIC"], False),
        (["Yes"], True),
        (["No Leak"], False),
        (["0"], False),
        (["true"], True),
        ([" "], None),
    ],
)
def test_labels_mean_leak_or_not(labels, leak):
    assert is_leak(labels) is leak


def test_unknown_labels_are_named():
    with pytest.raises(InputError, match=r"unknown label 'maybe'\. use a reformulation type"):
        is_leak(["Title-Identical", "maybe"])
    rows = [label("1", "a", "maybe"), label("1", "b", "yes"), label("2", "c", "perhaps")]
    with pytest.raises(InputError, match="unknown labels 'maybe', 'perhaps'"):
        open_judgments(rows)


def test_contradiction_within_one_row():
    with pytest.raises(InputError, match="contradict each other on one pair: yes, no leak"):
        is_leak(["yes", "no leak"])


def test_majority_tie_and_unlabelled():
    rows = [
        label("1", "polio  outbreaks", "yes", annotator="a", similarity=0.93),
        label("1", "polio outbreaks ", "no", annotator="b", similarity=0.95),
        label("1", "polio outbreaks", "Title-Identical", annotator="c"),
        label("1", "tied", "yes", annotator="a"),
        label("1", "tied", "no", annotator="b"),
        label("2", "polio outbreaks", "no", annotator="a"),
        label("2", "never looked at"),
    ]
    judgments = open_judgments(rows)
    assert [(p.topic_id, p.text, p.leak, p.yes, p.no) for p in judgments.pairs] == [
        ("1", "polio outbreaks", True, 2, 1),
        ("1", "tied", None, 1, 1),
        ("2", "polio outbreaks", False, 0, 1),
    ]
    assert (judgments.unresolved, judgments.unlabelled) == (1, 1)
    assert judgments.pairs[0].similarity == 0.95


def test_one_annotator_has_one_vote():
    rows = [label("1", "q", "yes", annotator="a")] * 3 + [label("1", "q", "no", annotator=n) for n in "bc"]
    (pair,) = open_judgments(rows).pairs
    assert (pair.leak, pair.yes, pair.no) == (False, 1, 2)
    rows = [label("1", "q", "yes"), label("1", "q", "no", annotator="b"), label("1", "q", "no")]
    # Rows that name nobody are by one annotator, who contradicts himself here.
    with pytest.raises(InputError, match=r"annotators contradict themselves: '' on topic 1, 'q': leak, no leak"):
        open_judgments(rows)
    found = {votes: open_judgments(rows, votes=votes) for votes in ("unanimous", "any", "first", "last")}
    assert [judgments.pairs[0].leak for judgments in found.values()] == [None, True, True, False]
    assert all("'' on topic 1" in judgments.notes[0] for judgments in found.values())


def test_two_probabilities_for_one_pair():
    rows = [label("1", "q", "yes", probability=0.5), label("1", "q", "yes", probability=0.25)]
    with pytest.raises(InputError, match="topic 1, query 'q' has two sampling probabilities"):
        open_judgments(rows)


def test_found_by_text_first_and_by_id_where_there_is_no_text():
    judgments = open_judgments([label("1", "a b", "yes", query="7"), label("1", "", "no", query="8")])
    assert judgments.find("1", " a\tb").leak is True
    assert judgments.find("1", "other text", "7") is None
    assert judgments.find("1", "other text", "8").leak is False
    assert judgments.find("2", "a b") is None


def test_annotate_candidates():
    candidates = pl.DataFrame(
        {
            "topic_id": ["1", "1", "1"],
            "query_id": ["x", "y", "z"],
            "query_text": ["a", "b ", "c"],
            "similarity": [1.0] * 3,
        }
    )
    judged = annotate(candidates, open_judgments([label("1", "a", "yes"), label("1", "b", "different topic")]))
    assert judged["judged"].to_list() == [True, False, None]
    assert judged.columns == [*candidates.columns, "judged"]


def test_row_without_text_and_id():
    with pytest.raises(InputError, match="nothing distinguishes this record from others"):
        open_judgments([label("4", " ", "yes")])


def test_open_judgments_takes_files_records_and_judgments(tmp_path):
    path = tmp_path / "labels.jsonl"
    path.write_text('{"topic": "301", "data": "organized crime", "label": ["Title-Generalization"]}\n')
    for source in (path, str(path), [path], [label("301", "organized crime", "Title-Generalization")]):
        judgments = open_judgments(source)
        assert [(p.topic_id, p.text, p.leak) for p in judgments.pairs] == [("301", "organized crime", True)]
    assert open_judgments(judgments) is judgments
    assert open_judgments([]) == Judgments(())
    with pytest.raises(InputError, match="mixed"):
        open_judgments([str(path), label("1", "a", "yes")])


@pytest.mark.shared
def test_the_authors_827_labels(annotations):
    files = sorted(annotations.glob("query-*.jsonl"))
    judgments = open_judgments(files)
    # 827 rows; two pairs were labelled twice with the same outcome.
    assert (len(judgments.pairs), sum(p.leak for p in judgments.pairs)) == (825, 720)
    assert judgments.unresolved == 0


@pytest.mark.shared
def test_two_annotators_of_the_agreement_sample(annotations):
    files = sorted(annotations.glob("agreement-*.jsonl"))
    judgments = open_judgments(files)
    # 2 x 103 rows on 102 pairs; on eight of them the two disagree.
    assert len(judgments.pairs) == 102
    assert judgments.unresolved == sum(p.yes == p.no for p in judgments.pairs) == 8


# Judging stores, adjudications, models


def leak_store(path, **said):
    items = [
        Item(
            f"i{number}",
            "301",
            texts=(Text("query", text, f"q{number}"),),
            score=0.9 + number / 100,
            probability=0.25 if number else 0.5,
        )
        for number, text in enumerate(["organized crime", "crime groups", "mafia"])
    ]
    return store_of(path, load_scheme("leakage"), items, said, [Annotator("robot", "model", "a model")])


def test_a_store_is_read_like_a_label_file(tmp_path):
    path = leak_store(
        tmp_path / "s.judged",
        ann={"i0": ["Title-Identical"], "i1": ["Title-Reformulation"]},
        bob={"i0": ["Different Topic"], "i1": ["Title-Identical"]},
        robot={"i0": ["Title-Identical"], "i2": ["Title-Identical"]},
    )
    for source in (path, str(path), [path]):
        judgments = open_judgments(source)
        assert [(p.text, p.leak, p.yes, p.no) for p in judgments.pairs] == [
            ("organized crime", None, 1, 1),
            ("crime groups", True, 2, 0),
        ]
        assert [(p.query_id, p.similarity, p.probability) for p in judgments.pairs] == [
            ("q0", 0.9, 0.5),
            ("q1", 0.91, 0.25),
        ]
        assert judgments.model_note == "2 labels of models are left out."
    mixed = open_judgments(path, include_models=True)
    assert [(p.text, p.leak) for p in mixed.pairs] == [
        ("organized crime", True),
        ("crime groups", True),
        ("mafia", True),
    ]
    assert mixed.model_note == "Not only people: 2 labels of models are counted."
    with Store.open(path) as store:
        store.add_annotator("judge", "adjudicator")
        store.record("i0", "judge", "adjudicate", ["Different Topic"])
        settled = open_judgments(store)
        assert (settled.pairs[0].leak, settled.pairs[0].yes, settled.pairs[0].no) == (False, 1, 1)
        assert settled.unresolved == 0
        store.undo("judge")
        assert open_judgments(store).unresolved == 1
        assert open_judgments(read_ratings(store)).pairs == open_judgments(path).pairs
    more = tmp_path / "more.csv"
    more.write_text("topic_id,query_text,label,probability,annotator\n301,organized  crime,true,0.5,cy\n")
    assert open_judgments([path, more]).pairs[0].leak is True


def test_stores_that_say_nothing_about_leaks(tmp_path):
    with pytest.raises(InputError, match="nothing is labelled yet"):
        open_judgments(leak_store(tmp_path / "empty.judged"))
    with pytest.raises(InputError, match="only models labelled these pairs"):
        open_judgments(leak_store(tmp_path / "robot.judged", robot={"i0": ["Title-Identical"]}))
    texts = (Text("query", "q"), Text("V1", "a"), Text("V2", "b"))
    other = store_of(
        tmp_path / "t.judged", load_scheme("transfer"), [Item("x", "1", texts=texts)], {"a": {"x": ["both"]}}
    )
    with pytest.raises(InputError, match="a store of the scheme 'transfer' says nothing about leaks"):
        open_judgments(other)


def test_roles_in_label_files(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text(
        "topic_id,query_text,label,annotator,role\n"
        "1,a,leak,ann,person\n1,a,no leak,bob,\n1,a,no leak,cy,adjudicator\n"
        "1,a,leak,robot,model\n1,b,leak,robot,model\n"
    )
    judgments = open_judgments(path)
    assert [(p.text, p.leak, p.yes, p.no) for p in judgments.pairs] == [("a", False, 1, 1)]
    assert (judgments.models, judgments.models_count) == (2, False)
