"""Corrected scores of runs: against evaluate, against the weights of the measures, and on the real labels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from places import DATA
from truerank import judge
from truerank.audits.assessors.correction import corrected_scores, linear_measure, ranks_of
from truerank.audits.assessors.sampling_designs import Correcting, label_plan, strata_of
from truerank.errors import InputError, OptionError
from truerank.judging import Item, Text, draw
from truerank.measures import evaluate, parse_measures
from truerank.options import Scoring
from truerank.sources import read_qrels_frame

MEASURES = "P@5 P(rel=2)@10 DCG@10 DCG(dcg='exp-log2')@5 RBP(rel=2)"


class World:
    """Six topics with 40 documents each, graded by people and by a model that is too kind; three runs of 30."""

    def __init__(self, topics: int = 6, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        keys = [(f"t{topic}", f"d{document:02d}") for topic in range(topics) for document in range(40)]
        truth = rng.choice(4, len(keys), p=[0.5, 0.25, 0.15, 0.1])
        model = np.clip(truth + rng.choice(3, len(keys), p=[0.5, 0.35, 0.15]), 0, 3)
        schema = {"topic_id": pl.String, "doc_id": pl.String}
        pairs = pl.DataFrame(keys, schema=schema, orient="row")
        self.people = pairs.with_columns(pl.Series("relevance", truth, dtype=pl.Int32))
        self.model = pairs.with_columns(pl.Series("relevance", model, dtype=pl.Int32))
        self.runs = {}
        for number in range(3):
            scores = truth * number + rng.normal(0, 2, len(keys)).round(1)
            run = pairs.with_columns(pl.Series("score", scores))
            self.runs[f"run{number}"] = (
                run.sort("score", descending=True).group_by("topic_id", maintain_order=True).head(30)
            )


@pytest.fixture(scope="module")
def world() -> World:
    return World()


def test_all_labels_give_what_evaluate_gives(world: World) -> None:
    """Also for measures that are not sums over documents, since all topics are judged whole."""
    measures = f"{MEASURES} nDCG@10 AP(rel=2) RR"
    found = corrected_scores(world.people, world.model, world.runs, measures, Correcting(target="collection"))
    expected = evaluate(world.people, world.runs, measures)
    alone = evaluate(world.model, world.runs, measures)
    for place, measure in enumerate(expected.measures):
        rows = found.scores.filter(pl.col("measure") == measure)
        assert rows["run"].to_list() == list(expected.runs)
        for column in ("corrected", "corrected_low", "corrected_high", "people"):
            assert rows[column].to_numpy() == pytest.approx(expected.values[:, place].mean(axis=1)), (measure, column)
        assert rows["model"].to_numpy() == pytest.approx(alone.values[:, place].mean(axis=1))
    gain = found.differences.filter((pl.col("measure") == "AP(rel=2)") & (pl.col("first") == "run0"))
    values = expected.values[:, expected.measures.index("AP(rel=2)")].mean(axis=1)
    assert gain["corrected"].to_numpy() == pytest.approx(values[0] - values[1:])
    assert found.remarks == ()


@pytest.mark.parametrize("scoring", [Scoring(), Scoring(rel=2, depth=7), Scoring(ties="ascending")])
def test_weights_times_gains_are_the_measure(world: World, scoring: Scoring) -> None:
    """Scores with ties, and documents that no judge has seen."""
    runs = {name: run.with_columns(pl.col("score").round(0)) for name, run in world.runs.items()}
    judged = world.people.filter(pl.int_range(pl.len()) % 3 != 0)
    ranks = ranks_of(judged, runs, scoring)
    expected = evaluate(judged, runs, MEASURES, scoring)
    for place, measure in enumerate(parse_measures(MEASURES)):
        linear = linear_measure(measure, 30, scoring)
        assert linear is not None
        values = linear.of_ranks(ranks.ranks) * linear.of_grades(ranks.grades)[:, None]
        by_topic = [values[ranks.topic == number].sum(axis=0) for number in range(len(ranks.topics))]
        order = [expected.topics.index(topic) for topic in ranks.topics]
        np.testing.assert_allclose(np.array(by_topic).T, expected.values[:, place][:, order], atol=1e-12)
    for name in ("nDCG@10", "AP", "RR", "R@10", "P(judged_only=True)@5"):
        assert linear_measure(parse_measures(name)[0], 30, scoring) is None


@pytest.mark.parametrize("design", ["uniform", "grade-rank", "disagreement"])
def test_a_plan_its_labels_and_their_probabilities(world: World, design: str) -> None:
    correcting = Correcting(design=design)
    plan = label_plan(world.model, world.runs, "P@10", correcting, labels=70)
    drawn = plan.draw(seed=3)
    assert (plan.labels, len(drawn)) == (70, 70)
    assert drawn.equals(plan.draw(seed=3)) and not drawn.equals(plan.draw(seed=4))
    people = plan.labelled(drawn.join(world.people, on=["topic_id", "doc_id"]))
    # The labels of a stratum stand for its pairs, and all pairs that count are in a stratum.
    counting = ranks_of(world.model, world.runs).ranks
    covered = ((counting >= 0) & (counting < 10)).any(axis=1).sum()
    assert (1 / people["probability"]).sum() == pytest.approx(covered)
    sizes = people.group_by("stratum").agg((1 / pl.col("probability")).sum().alias("size"))
    assert dict(sizes.iter_rows()) == pytest.approx(dict(plan.strata.select("stratum", "pairs").iter_rows()))
    found = corrected_scores(people, world.model, world.runs, "P@10", correcting)
    again = corrected_scores(
        people.select("topic_id", "doc_id", "relevance"), world.model, world.runs, "P@10", correcting
    )
    assert found.scores.equals(again.scores) and found.differences.equals(again.differences)
    scores = found.scores
    assert (scores["corrected_low"] < scores["corrected"]).all() and (
        scores["corrected"] < scores["corrected_high"]
    ).all()
    assert scores["labels"].to_list() == [70] * 3
    # The corrected differences are those of the corrected scores.
    first = found.differences.row(0, named=True)
    assert first["corrected"] == pytest.approx(scores["corrected"][0] - scores["corrected"][1])


def test_judge_new_takes_the_plan_from_a_file(world: World, tmp_path: Path) -> None:
    plan = label_plan(world.model, world.runs, "P@10", labels=50)
    pairs = plan.pairs.drop_nulls("stratum").drop("relevance")
    pairs.with_columns(query=pl.lit("a query"), text=pl.format("text of {}", "doc_id")).write_ndjson(
        tmp_path / "p.jsonl"
    )
    made = judge.new(tmp_path / "s.judged", "relevance-passages", str(tmp_path / "p.jsonl"), plan.sample)
    assert len(made.sample.items) == 50
    drawn = {stratum.name: stratum.drawn for stratum in made.sample.strata}
    assert drawn == dict(plan.strata.select("stratum", "labels").iter_rows())


def test_judge_new_takes_the_plan(world: World) -> None:
    plan = label_plan(world.model, world.runs, "P@10 DCG@10", labels=60)
    items = [
        Item(f"{topic} {doc}", topic, texts=(Text("query", "q"), Text("document", "d", doc)), stratum=stratum or "")
        for topic, doc, stratum in plan.pairs.select("topic_id", "doc_id", "stratum").iter_rows()
    ]
    sample = draw(items, plan.sample, seed=1)
    assert len(sample.items) == plan.labels
    people = plan.labelled(
        pl.DataFrame({"topic_id": [i.topic_id for i in sample.items], "doc_id": [i.texts[1].id for i in sample.items]})
        .join(world.people, on=["topic_id", "doc_id"])
    )  # fmt: skip
    assert people["probability"].to_list() == pytest.approx([item.probability for item in sample.items])
    assert people["stratum"].to_list() == [item.stratum for item in sample.items]


def test_a_plan_for_a_width_goes_on_from_its_pilot(world: World) -> None:
    correcting = Correcting(target="collection", design="uniform")
    pilot = label_plan(world.model, world.runs, "P@10", correcting, labels=30)
    first = pilot.labelled(pilot.draw(1).join(world.people, on=["topic_id", "doc_id"]))
    widths, counts = [], []
    for wanted in (0.5, 0.35, 0.2):
        plan = label_plan(world.model, world.runs, "P@10", correcting, width=wanted, pilot=first)
        more = plan.draw(2, already=first)
        assert plan.reached and len(more) == plan.labels - 30
        assert more.join(first, on=["topic_id", "doc_id"], how="semi").is_empty()
        people = pl.concat([first, more.join(world.people, on=["topic_id", "doc_id"])], how="diagonal")
        scores = corrected_scores(plan.labelled(people), world.model, world.runs, "P@10", correcting).scores
        widths.append(float((scores["corrected_high"] - scores["corrected_low"]).mean()))
        counts.append(plan.labels)
        assert plan.width is not None and plan.width <= wanted
        assert widths[-1] <= 1.15 * wanted
    assert counts == sorted(counts) and widths == sorted(widths, reverse=True)
    # No number of labels helps where the topics are too few.
    hopeless = label_plan(world.model, world.runs, "P@10", Correcting(), width=0.01, pilot=first)
    assert not hopeless.reached and hopeless.labels == int(hopeless.strata["pairs"].sum())


def test_strata_are_made_of_grade_and_rank(world: World) -> None:
    ranks = ranks_of(world.model, world.runs)
    linear = linear_measure(parse_measures("DCG@10")[0], 30, Scoring())
    assert linear is not None
    strata = strata_of(ranks, [linear], "grade-rank")
    weights = linear.of_ranks(ranks.ranks)
    assert ((strata.stratum >= 0) == weights.any(axis=1)).all()
    assert strata.sizes.sum() == weights.any(axis=1).sum()
    for number, name in enumerate(strata.names):
        grades = set(ranks.grades[strata.stratum == number].tolist())
        low, _, high = name.rpartition(" ")[2].partition("-")
        assert grades <= set(range(int(low), int(high or low) + 1)), name
    top = strata.importance[np.isin(strata.stratum, [n for n, name in enumerate(strata.names) if "top" in name])]
    bottom = strata.importance[np.isin(strata.stratum, [n for n, name in enumerate(strata.names) if "bottom" in name])]
    assert top.min() >= bottom.max()


def test_single_pairs_do_not_correct_a_ratio(world: World) -> None:
    some = world.people.sample(80, seed=1)
    found = corrected_scores(some, world.model, world.runs, "nDCG@10 P@5", Correcting(design="uniform"))
    ratio = found.scores.filter(pl.col("measure") == "nDCG@10")
    assert ratio["corrected"].null_count() == 3 and ratio["model"].null_count() == 0
    assert "nDCG@10 is not a sum over documents" in found.remarks[0]
    whole = world.people.filter(pl.col("topic_id").is_in(["t0", "t2", "t3", "t5"]))
    topics = corrected_scores(whole, world.model, world.runs, "nDCG@10", Correcting(design="topics"))
    assert topics.scores["method"].to_list() == ["topics"] * 3
    # By hand, with λ = 1: the model's mean over all topics, and the mean gain of people over the model in the judged.
    fixed = corrected_scores(whole, world.model, world.runs, "nDCG@10", Correcting(design="topics", adjustment="fixed"))
    alone, seen = evaluate(world.model, world.runs, "nDCG@10"), evaluate(whole, world.runs, "nDCG@10")
    judged = [alone.topics.index(topic) for topic in seen.topics]
    expected = alone.values[:, 0].mean(axis=1) + (seen.values[:, 0] - alone.values[:, 0][:, judged]).mean(axis=1)
    assert fixed.scores["corrected"].to_numpy() == pytest.approx(expected)


def test_faults_name_what_to_do(world: World) -> None:
    labels = world.people.head(3)
    with pytest.raises(InputError, match="people judged none"):
        corrected_scores(labels.with_columns(topic_id=pl.lit("x")), world.model, world.runs)
    with pytest.raises(InputError, match="0 topics"):
        corrected_scores(labels, world.model, world.runs, "nDCG@10", Correcting(design="topics"))
    some = world.people.sample(60, seed=2)
    with pytest.raises(InputError, match="stand for 120 pairs, but"):
        corrected_scores(some.with_columns(probability=pl.lit(0.5)), world.model, world.runs, "P@10")
    with pytest.raises(InputError, match="above 0"):
        corrected_scores(some.with_columns(probability=pl.lit(0.0)), world.model, world.runs, "P@10")
    chances = some.with_columns(probability=pl.Series([0.1, 0.2] * 30), stratum=pl.lit("a"))
    with pytest.raises(InputError, match=r"stratum 'a' has probabilities from 0\.1 to 0\.2"):
        corrected_scores(chances, world.model, world.runs, "P@10")
    with pytest.raises(OptionError, match="labels or width"):
        label_plan(world.model, world.runs, "P@10")
    with pytest.raises(OptionError, match="sums over documents"):
        label_plan(world.model, world.runs, "nDCG@10", labels=50)
    with pytest.raises(OptionError, match="2 measures for one width"):
        label_plan(world.model, world.runs, "P@10 P@5", width=0.1)
    with pytest.raises(InputError, match="plan at least"):
        label_plan(world.model, world.runs, "P@10", labels=3)


@pytest.mark.shared
def test_intervals_cover_on_the_real_labels() -> None:
    """TREC DL 2023 with a judge that is too kind: 60 samples of 80 labels; the interval of the model alone misses."""
    place = DATA / "llmjudge"
    people = read_qrels_frame(str(place / "human.qrels.gz"))
    kind = read_qrels_frame(str(place / "judges" / "TREMA-direct.qrels.gz"))
    ranker = read_qrels_frame(str(place / "judges" / "TREMA-questions.qrels.gz"))
    chance = pl.Series("score", np.random.default_rng(1).random(len(ranker)))
    runs = {"run": ranker.select("topic_id", "doc_id", (pl.col("relevance") + 0.9 * chance).alias("score"))}
    truth = float(evaluate(people, runs, "P(rel=2)@10").values.mean())
    correcting = Correcting(target="collection", design="uniform")
    hits, alone = 0, 0
    for seed in range(60):
        plan = label_plan(kind, runs, "P(rel=2)@10", correcting, labels=80)
        labels = plan.labelled(plan.draw(seed).join(people, on=["topic_id", "doc_id"]))
        row = corrected_scores(labels, kind, runs, "P(rel=2)@10", correcting).scores.row(0, named=True)
        hits += row["corrected_low"] <= truth <= row["corrected_high"]
        alone += row["model_low"] <= truth <= row["model_high"]
    assert hits >= 52
    assert alone == 0
