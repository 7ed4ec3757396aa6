"""Folds and grid search: stable divisions, files of folds, and choices that a plain loop makes too."""

import itertools
import json
from collections import Counter

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from places import DATA
from truerank.core.result import summary
from truerank.errors import InputError
from truerank.measures import Policy, evaluate
from truerank.measures.folds import folds
from truerank.records import Qrel, RunRow
from truerank.work.publishing import publish
from truerank.work.runs import run as started
from truerank_lab.cross_validation import cross_validate, read_folds

TOPICS = [str(number) for number in range(301, 321)]


def saved(validation, folder):
    with started("cross_validate", out=folder) as job:
        publish(validation, job)
    return folder


def test_folds_are_balanced_and_do_not_depend_on_the_order():
    found = folds(TOPICS, 5)
    assert [len(fold) for fold in found] == [4] * 5
    assert sorted(topic for fold in found for topic in fold) == TOPICS
    assert folds(reversed(TOPICS), 5) == found == folds(TOPICS, 5, 0)
    assert folds(TOPICS, 5, seed=1) != found
    # The division is a promise: published folds can be made again.
    assert found[0] == ("305", "310", "314", "319")


@settings(max_examples=40)
@given(st.sets(st.text(min_size=1, max_size=4), min_size=2, max_size=40), st.integers(2, 7), st.integers(0, 9))
def test_every_topic_is_in_one_fold(topics, k, seed):
    if len(topics) < k:
        with pytest.raises(InputError, match="make no"):
            folds(topics, k, seed)
        return
    found = folds(topics, k, seed)
    assert Counter(t for fold in found for t in fold) == Counter(topics)
    assert max(map(len, found)) - min(map(len, found)) <= 1


@pytest.mark.parametrize(
    "text",
    [
        '[["1", 2], ["3"]]',
        '{"a": ["1", "2"], "b": [3]}',
        '{"s1": {"train_qids": ["3"], "predict": {"dev": ["3"], "test": ["1", "2"]}},'
        ' "s2": {"train_qids": [], "predict": {"dev": [], "test": ["3"]}}}',
        '{"3": 10, "1": 9, "2": 9}',
        "1\t1\n2\t1\n3\t2\n",
        "3 10\n\n1 9\n2 9",
        "3 other\n1 a\n2 a\n",
    ],
)
def test_folds_from_files(tmp_path, text):
    (tmp_path / "folds").write_text(text)
    found = read_folds(tmp_path / "folds")
    assert [set(fold) for fold in found] == [{"1", "2"}, {"3"}]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('[["1"],\n ["2"}', "folds:2: no valid JSON"),
        ("[]", "0 fold is too few"),
        ("{}", "no folds"),
        ('[["1"], 2]', "a fold that is not a list of topics"),
        ('{"a": {"test": []}, "b": {}}', "a fold without"),
        ('{"a": 1.5, "b": 2}', "no folds"),
        ('[["1"], []]', "fold 2 is empty"),
        ('[["1"], ["2", "1"]]', "the topic 1 is there twice"),
        ("1 1\n2 1 x\n", "folds:2: 3 columns instead of 2"),
        ("1 1\n2 1\n", "1 fold is too few"),
        ("1 1\n1 2\n", "the topic 1 is there twice"),
        ("", "0 fold is too few"),
    ],
)
def test_faulty_files_of_folds(tmp_path, text, fault):
    (tmp_path / "folds").write_text(text)
    with pytest.raises(InputError) as raised:
        read_folds(tmp_path / "folds")
    assert fault in str(raised.value) and str(tmp_path / "folds") in str(raised.value)


def test_faulty_folds():
    with pytest.raises(InputError, match="the topic 7 is there twice"):
        folds(["7", "8", "7"], 2)
    with pytest.raises(InputError, match="needs 2 folds or more"):
        folds(TOPICS, 1)


QRELS = [Qrel(topic, "d", 1) for topic in TOPICS]


def ranked(places):
    """A run in which the relevant document of each topic stands at the given rank."""
    return [
        RunRow(topic, "d" if rank == place else f"x{rank}", rank, 10.0 - rank)
        for topic, place in places.items()
        for rank in range(1, place + 1)
    ]


RNG = np.random.default_rng(11)
#: Ranks of the relevant document by setting and topic.
PLACES = {
    f"size={size}": dict(zip(TOPICS, RNG.integers(1, 6, len(TOPICS)).tolist(), strict=True)) for size in (1, 2, 3, 4)
}
RUNS = {name: ranked(places) for name, places in PLACES.items()}


def by_hand(divided, score, best):
    """The choices of a plain loop over folds and settings."""
    chosen = []
    for fold in divided:
        rest = [topic for topic in TOPICS if topic not in fold]
        means = {name: round(sum(score(places[t]) for t in rest) / len(rest), 12) for name, places in PLACES.items()}
        chosen.append(next(name for name, mean in means.items() if mean == best(means.values())))
    return chosen


def test_grid_search_over_saved_runs():
    found = cross_validate(QRELS, RUNS, "RR MFR", seed=2)
    divided = folds(TOPICS, 5, 2)
    assert found.folds == divided and found.minimised == ("MFR",)
    for measure, score, best in (("RR", lambda rank: 1 / rank, max), ("MFR", float, min)):
        choices = [choice for choice in found.choices if choice.measure == measure]
        names = by_hand(divided, score, best)
        assert [choice.setting for choice in choices] == names
        merged = [score(PLACES[name][topic]) for name, fold in zip(names, divided, strict=True) for topic in fold]
        assert found.score(measure) == pytest.approx(np.mean(merged))
        for choice, name, fold in zip(choices, names, divided, strict=True):
            assert choice.test == pytest.approx(np.mean([score(PLACES[name][topic]) for topic in fold]))
            rest = [topic for topic in TOPICS if topic not in fold]
            assert choice.train == pytest.approx(np.mean([score(PLACES[name][topic]) for topic in rest]))
        ranks = found.runs[measure].filter(pl.col("doc_id") == "d")
        assert dict(zip(ranks["topic_id"], ranks["rank"], strict=True)) == {
            topic: PLACES[name][topic] for name, fold in zip(names, divided, strict=True) for topic in fold
        }
        assert ranks["topic_id"].to_list() == TOPICS
    assert found.evaluation.runs == ("tuned for RR", "tuned for MFR")
    assert found.grid.runs == tuple(RUNS)
    assert found.evaluation.of("tuned for MFR", "RR").mean() <= 1


def test_the_test_fold_takes_no_part_in_the_choice():
    # "memory" is perfect on one fold and useless elsewhere: only seeing the test fold would choose it.
    divided = folds(TOPICS, 5)
    runs = {
        "solid": ranked(dict.fromkeys(TOPICS, 2)),
        "memory": ranked({topic: 1 if topic in divided[0] else 5 for topic in TOPICS}),
    }
    found = cross_validate(QRELS, runs, "RR")
    assert [choice.setting for choice in found.choices] == ["solid"] * 5
    assert found.score("RR") == 0.5


def test_functions_are_called_for_the_topics_that_are_needed():
    calls = []

    def rank(params, topics):
        calls.append((params["size"], topics))
        return ranked({topic: PLACES[f"size={params['size']}"][topic] for topic in topics})

    found = cross_validate(QRELS, [{"size": size} for size in (1, 2, 3, 4)], "RR MFR", rank=rank, seed=2)
    saved = cross_validate(QRELS, RUNS, "RR MFR", seed=2)
    assert found.choices == saved.choices and found.json() == saved.json()
    assert all(found.runs[measure].equals(saved.runs[measure]) for measure in ("RR", "MFR"))
    assert [size for size, topics in calls[:4] if topics == tuple(TOPICS)] == [1, 2, 3, 4]
    chosen = {choice.setting for choice in found.choices}
    assert [f"size={size}" for size, _ in calls[4:]] == sorted(chosen, key=[c.setting for c in found.choices].index)
    for size, topics in calls[4:]:
        own = [c for c in found.choices if c.setting == f"size={size}"]
        assert set(topics) == {topic for choice in own for topic in found.folds[choice.fold - 1]}


def test_ties_go_to_the_first_setting_and_are_said():
    runs = {"b": RUNS["size=1"], "a": RUNS["size=1"], "worse": ranked(dict.fromkeys(TOPICS, 6))}
    found = cross_validate(QRELS, runs, "RR")
    assert {(choice.setting, choice.tied) for choice in found.choices} == {("b", ("a",))}
    assert "of equal ones the first in the given order" in summary(found).show()


def test_what_is_minimised_can_be_said():
    found = cross_validate(QRELS, RUNS, "RR", minimise=["RR"])
    assert [choice.setting for choice in found.choices] == by_hand(found.folds, lambda rank: 1 / rank, min)
    assert "Lower is better: RR." in summary(found).show()
    with pytest.raises(InputError, match="P@1 is not among the measures"):
        cross_validate(QRELS, RUNS, "RR", minimise=["P@1"])


def test_given_folds_and_topics_without_judgments(tmp_path):
    divided = [TOPICS[:10], [*TOPICS[10:], "999"]]
    (tmp_path / "folds.json").write_text(json.dumps(divided))
    found = cross_validate(QRELS, RUNS, "RR", k=tmp_path / "folds.json")
    assert found.unjudged == ("999",) and "1 topics of the folds have no judgments" in summary(found).show()
    assert "from folds.json" in summary(found).show()
    assert [choice.topics for choice in found.choices] == [10, 10]
    given_ones = cross_validate(QRELS, RUNS, "RR", k=divided)
    assert given_ones.choices == found.choices
    with pytest.raises(InputError, match="1 topics of the qrels are in no fold, such as 320"):
        cross_validate(QRELS, RUNS, "RR", k=[TOPICS[:10], TOPICS[10:-1]])
    with pytest.raises(InputError, match="no topic of fold 2 has judgments"):
        cross_validate(QRELS, RUNS, "RR", k=[TOPICS, ["999"]])


def test_frames_without_ranks_and_missing_topics():
    rows = [row for row in RUNS["size=1"] if row.topic_id != "305"]
    frame = pl.DataFrame(rows, schema=list(RunRow._fields), orient="row").select("topic_id", "doc_id", "score")
    shuffled = frame.sample(fraction=1.0, shuffle=True, seed=1)
    found = cross_validate(QRELS, {"one": shuffled}, "RR", policy=Policy(missing="skip"))
    assert found.score("RR") == pytest.approx(np.mean([1 / PLACES["size=1"][t] for t in TOPICS if t != "305"]))
    assert found.runs["RR"].filter(pl.col("topic_id") == "301")["rank"].to_list() == list(
        range(1, PLACES["size=1"]["301"] + 1)
    )


def test_saved_files_are_runs_again(tmp_path):
    paths = {}
    for name, rows in RUNS.items():
        paths[name] = tmp_path / f"{name}.run"
        paths[name].write_text("".join(f"{r[0]} Q0 {r[1]} {r[2]} {r[3]} x\n" for r in rows))
    found = cross_validate(QRELS, paths, "RR MFR", seed=2)
    assert found.choices == cross_validate(QRELS, RUNS, "RR MFR", seed=2).choices
    folder = saved(found, tmp_path / "out")
    value = json.loads((folder / "cross_validation.json").read_text())
    assert value["files"] == {"RR": "tuned-1.run", "MFR": "tuned-2.run"}
    again = evaluate(QRELS, [folder / "tuned-1.run"], "RR")
    assert again.mean[0, 0] == pytest.approx(found.score("RR"))
    assert read_folds(folder / "folds.json") == found.folds
    with pytest.raises(InputError, match="there is no measure 'AP'"):
        found.score("AP")


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"settings": {}}, "no setting"),
        ({"settings": RUNS, "rank": lambda params, topics: []}, "saved runs need no function"),
        ({"settings": [{"a": 1}]}, "parameters need a function that ranks"),
        ({"settings": [{"a": 1}, {"a": 1}], "rank": lambda params, topics: []}, "a setting is there twice"),
        ({"settings": [{"a": 1}], "rank": lambda params, topics: []}, "no rows in this run"),
        ({"settings": RUNS, "k": 21}, "20 topics make no 21 folds"),
        ({"settings": RUNS, "k": "nowhere.json"}, "nowhere.json"),
    ],
)
def test_faults(options, fault):
    with pytest.raises(InputError) as raised:
        cross_validate(QRELS, measures="RR", **options)
    assert fault in str(raised.value)


@pytest.mark.shared
def test_choosing_among_real_runs():
    """Three monoT5 runs on TREC DL 19: every fold's choice is the best mean of the other folds."""
    names = ("monot5", "monot5-sim5", "monot5-sim1")
    paths = {name: DATA / f"survivorship/runs/{name}.dl19.run.gz" for name in names}
    qrels = DATA / "qrels/dl19-passage.qrels.gz"
    found = cross_validate(str(qrels), paths, "nDCG@10 AP(rel=2)")
    scores = evaluate(qrels, paths, "nDCG@10 AP(rel=2)")
    for choice, (measure, fold) in zip(found.choices, itertools.product(scores.measures, found.folds), strict=True):
        rest = ~np.isin(scores.topics, fold)
        means = {name: scores.of(name, measure)[rest].mean() for name in names}
        assert choice.setting == max(means, key=means.__getitem__)
        assert choice.train == pytest.approx(means[choice.setting])
    assert found.score("nDCG@10") == pytest.approx(
        np.mean([
            scores.of(choice.setting, "nDCG@10")[scores.topics.index(topic)]
            for choice in found.choices[:5]
            for topic in found.folds[choice.fold - 1]
        ])
    )  # fmt: skip
