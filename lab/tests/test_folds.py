"""Folds and grid search: files of folds, and choices that a plain loop makes too."""

import json

import numpy as np
import polars as pl
import pytest

from places import DATA
from truerank.errors import InputError
from truerank.measures import evaluate
from truerank.measures.folds import folds
from truerank.sources import read_run_frame
from truerank.sources.runs import RUN_SCHEMA
from truerank_lab.cross_validation import choice_table, cross_validate, read_folds

TOPICS = [str(number) for number in range(301, 321)]


def test_folds_from_a_file(tmp_path):
    (tmp_path / "folds").write_text('[["1", 2], ["3"]]')
    assert read_folds(tmp_path / "folds") == (("1", "2"), ("3",))


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('[["1"],\n ["2"}', "folds:2: no valid JSON"),
        ("[]", "0 fold is too few"),
        ("{}", "no list of lists of topics"),
        ('[["1"], 2]', "no list of lists of topics"),
        ('[["1"], ["2", "1"]]', "the topic 1 is there twice"),
        ("", "no valid JSON"),
    ],
)
def test_faulty_files_of_folds(tmp_path, text, fault):
    (tmp_path / "folds").write_text(text)
    with pytest.raises(InputError) as raised:
        read_folds(tmp_path / "folds")
    assert fault in str(raised.value) and str(tmp_path / "folds") in str(raised.value)


def ranked(places):
    """A run in which the relevant document of each topic stands at the given rank."""
    rows = [
        (topic, "d" if rank == place else f"x{rank}", rank, 10.0 - rank, "run")
        for topic, place in places.items()
        for rank in range(1, place + 1)
    ]
    return pl.DataFrame(rows, schema=RUN_SCHEMA, orient="row")


RNG = np.random.default_rng(11)
#: Ranks of the relevant document by setting and topic.
PLACES = {
    f"size={size}": dict(zip(TOPICS, RNG.integers(1, 6, len(TOPICS)).tolist(), strict=True)) for size in (1, 2, 3, 4)
}
SCORES = {"RR": (lambda rank: 1 / rank, max), "MFR": (float, min)}


@pytest.fixture(scope="module")
def qrels(tmp_path_factory):
    path = tmp_path_factory.mktemp("folds") / "test.qrels"
    path.write_text("".join(f"{topic} 0 d 1\n" for topic in TOPICS))
    return str(path)


def validated(qrels, measure, places=PLACES, calls=None, **options):
    """Cross-validation over the settings of `places`; what is asked for is added to `calls`."""

    def rank(setting, topics):
        name = f"size={setting['size']}"
        if calls is not None:
            calls.append((name, topics))
        return ranked({topic: places[name][topic] for topic in topics if topic in places[name]})

    return cross_validate(
        qrels, [{"size": name.removeprefix("size=")} for name in places], measure, rank=rank, **options
    )


@pytest.mark.parametrize("measure", SCORES)
def test_a_plain_loop_makes_the_same_choices(qrels, measure):
    score, best = SCORES[measure]
    found, divided = validated(qrels, measure, seed=2), folds(TOPICS, 5, 2)
    names = []
    for fold in divided:
        rest = [topic for topic in TOPICS if topic not in fold]
        means = {name: round(sum(score(own[t]) for t in rest) / len(rest), 12) for name, own in PLACES.items()}
        names.append(next(name for name, mean in means.items() if mean == best(means.values())))
    assert found.folds == divided and found.settings == tuple(PLACES) == found.grid.runs
    assert [choice.setting for choice in found.choices] == names
    for choice, name, fold in zip(found.choices, names, divided, strict=True):
        assert choice.test == pytest.approx(np.mean([score(PLACES[name][topic]) for topic in fold]))
        rest = [topic for topic in TOPICS if topic not in fold]
        assert choice.train == pytest.approx(np.mean([score(PLACES[name][topic]) for topic in rest]))
    ranks = found.run.filter(pl.col("doc_id") == "d")
    assert ranks["topic_id"].to_list() == TOPICS
    assert dict(zip(ranks["topic_id"], ranks["rank"], strict=True)) == {
        topic: PLACES[name][topic] for name, fold in zip(names, divided, strict=True) for topic in fold
    }


def test_the_test_fold_takes_no_part_in_the_choice(qrels):
    # "memory" is perfect on one fold and useless elsewhere: only seeing the test fold would choose it.
    divided = folds(TOPICS, 5)
    places = {
        "size=solid": dict.fromkeys(TOPICS, 2),
        "size=memory": {topic: 1 if topic in divided[0] else 5 for topic in TOPICS},
    }
    found = validated(qrels, "RR", places)
    assert [choice.setting for choice in found.choices] == ["size=solid"] * 5
    assert evaluate(qrels, {"run": found.run}, "RR").mean[0, 0] == 0.5


def test_functions_are_called_for_the_topics_that_are_needed(qrels):
    calls = []
    found = validated(qrels, "RR", calls=calls, seed=2)
    assert [name for name, topics in calls[:4] if topics == tuple(TOPICS)] == list(PLACES)
    chosen = [choice.setting for choice in found.choices]
    assert [name for name, _ in calls[4:]] == sorted(set(chosen), key=chosen.index)
    for name, topics in calls[4:]:
        own = [choice for choice in found.choices if choice.setting == name]
        assert set(topics) == {topic for choice in own for topic in found.folds[choice.fold - 1]}


def test_ties_go_to_the_first_setting_and_are_said(qrels):
    places = {"size=b": PLACES["size=1"], "size=a": PLACES["size=1"], "size=worse": dict.fromkeys(TOPICS, 6)}
    found = validated(qrels, "RR", places)
    assert {(choice.setting, choice.tied) for choice in found.choices} == {("size=b", ("size=a",))}
    assert "of equal ones the first in the given order" in choice_table(found).text()


def test_given_folds_and_topics_without_judgments(qrels, tmp_path):
    divided = [TOPICS[:10], [*TOPICS[10:], "999"]]
    (tmp_path / "folds.json").write_text(json.dumps(divided))
    found = validated(qrels, "RR", k=tmp_path / "folds.json")
    assert found.unjudged == ("999",) and "1 topics of the folds have no judgments" in choice_table(found).text()
    assert [choice.topics for choice in found.choices] == [10, 10]
    for given, fault in (
        ([TOPICS[:10], TOPICS[10:-1]], "1 topics of the qrels are in no fold, such as 320"),
        ([TOPICS, ["999"]], "no topic of fold 2 has judgments"),
        ([TOPICS, []], "no topic of fold 2 has judgments"),
    ):
        (tmp_path / "folds.json").write_text(json.dumps(given))
        with pytest.raises(InputError, match=fault):
            validated(qrels, "RR", k=tmp_path / "folds.json")
    with pytest.raises(InputError, match="20 topics make no 21 folds"):
        validated(qrels, "RR", k=21)
    with pytest.raises(InputError, match=r"nowhere.json"):
        validated(qrels, "RR", k="nowhere.json")
    with pytest.raises(InputError, match="a setting is there twice"):
        cross_validate(qrels, [{"a": 1}, {"a": 1}], "RR", rank=lambda setting, topics: ranked({}))


@pytest.mark.shared
@pytest.mark.parametrize("measure", ["nDCG@10", "AP(rel=2)"])
def test_choosing_among_real_runs(measure):
    """Three monoT5 runs on TREC DL 19: every fold's choice is the best mean of the other folds."""
    names = ("monot5", "monot5-sim5", "monot5-sim1")
    paths = {name: DATA / f"survivorship/runs/{name}.dl19.run.gz" for name in names}
    qrels, held = (
        str(DATA / "qrels/dl19-passage.qrels.gz"),
        {name: read_run_frame(path) for name, path in paths.items()},
    )

    def rank(setting, topics):
        return held[setting["run"]].filter(pl.col("topic_id").is_in(list(topics)))

    found = cross_validate(qrels, [{"run": name} for name in names], measure, rank=rank)
    scores = evaluate(qrels, paths, measure)
    for choice, fold in zip(found.choices, found.folds, strict=True):
        rest = ~np.isin(scores.topics, fold)
        means = {name: scores.of(name, measure)[rest].mean() for name in names}
        assert choice.setting == f"run={max(means, key=means.__getitem__)}"
        assert choice.train == pytest.approx(max(means.values()))
    merged = evaluate(qrels, {"run": found.run}, measure).of("run", measure)
    for choice, fold in zip(found.choices, found.folds, strict=True):
        inside = np.isin(scores.topics, fold)
        assert merged[inside] == pytest.approx(scores.of(choice.setting.removeprefix("run="), measure)[inside])
