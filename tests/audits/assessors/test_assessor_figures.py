"""The figures of the audit of assessors, against scikit-learn, loops over pairs, and models with stated faults."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score, roc_auc_score

from assessors_example import Qrels, erring, higher, people, runs
from truerank import judge
from truerank.audits.assessors import AssessorAudit, AssessorRules, Grades, read_grades, read_voices
from truerank.audits.assessors.agreement import bootstrap, ensembles
from truerank.audits.assessors.order import reordered
from truerank.judging.coefficients import Coefficients, drawn_weights
from truerank.measures import evaluate
from truerank.options import Resampling
from truerank.sources.notebook import frame_of
from truerank.sources.qrels import QREL_SCHEMA
from truerank.sources.runs import RUN_SCHEMA

HUMAN = people()
NOISY = erring(HUMAN, 0.5)


def grades_of(models: dict[str, Qrels], persons: object = HUMAN) -> Grades:
    return read_grades(read_voices(persons, models=False), read_voices(models, models=True), AssessorRules())


def flat(qrels: Qrels) -> list[int]:
    return [grade for of in qrels.values() for grade in of.values()]


def audited(models: dict[str, Qrels], **more: Any) -> AssessorAudit:
    return judge.audit(HUMAN, models, resamples=200, rel=2, **more)


def row(audit: AssessorAudit, frame: str, **wanted: object) -> dict[str, Any]:
    (found,) = audit.of(frame, **wanted)
    return found


def test_coefficients_and_intervals_are_those_of_the_pairs() -> None:
    """Counts by topic, resampled, give what the pairs themselves give with the same draws of topics."""
    audit = audited({"m": NOISY})
    codes = np.array([flat(HUMAN), flat(NOISY)]).T
    topics = np.repeat(np.arange(12), 30)
    for level in ("nominal", "ordinal", "interval"):
        whole = Coefficients(codes, 4, level)  # type: ignore[arg-type]
        drawn = np.concatenate([whole.krippendorff(weights) for weights in drawn_weights(topics, 360, 200, 0)])
        found = row(audit, "agreement", coefficient=f"alpha-{level}")
        assert found["value"] == pytest.approx(whole.krippendorff(np.ones((1, 360)))[0], abs=1e-12)
        assert [found["value_low"], found["value_high"]] == pytest.approx(np.quantile(drawn, [0.025, 0.975]), abs=1e-12)
    for name, weights in (("kappa", None), ("kappa-linear", "linear"), ("kappa-quadratic", "quadratic")):
        expected = cohen_kappa_score(flat(HUMAN), flat(NOISY), weights=weights)
        assert row(audit, "agreement", coefficient=name)["value"] == pytest.approx(expected, abs=1e-12)


def test_divisions_of_the_scale_and_grades() -> None:
    audit = audited({"m": NOISY})
    first, second = np.array(flat(HUMAN)), np.array(flat(NOISY))
    for cut in (1, 2, 3):
        found = row(audit, "cuts", cut=cut)
        assert found["value"] == pytest.approx(cohen_kappa_score(first >= cut, second >= cut), abs=1e-12)
        shares = found["people_share"], found["judge_share"]
        assert shares == pytest.approx(((first >= cut).mean(), (second >= cut).mean()))
        assert found["gap"] == pytest.approx((second >= cut).mean() - (first >= cut).mean())
        assert found["gap_low"] < found["gap"] < found["gap_high"]
    for name, inside in (("all", first >= 0), ("grade 0", first == 0), ("grade 3", first == 3)):
        found = row(audit, "rating", band=name)
        gap = (second - first)[inside]
        expected = (inside.sum(), (gap < 0).mean(), (gap > 0).mean(), gap.mean())
        assert (found["pairs"], found["under"], found["over"], found["value"]) == pytest.approx(expected)
    counts = {(one["people"], one["model"]): one["pairs"] for one in audit.of("confusion")}
    assert counts[0, 2] == ((first == 0) & (second == 2)).sum()
    topic = row(audit, "topics", topic_id="t3")
    assert topic["kappa"] == pytest.approx(cohen_kappa_score(first[90:120], second[90:120]), abs=1e-12)


def test_choosing_is_the_area_under_the_curve() -> None:
    found = row(audited({"m": NOISY}), "choosing", judge="m")
    areas, missed, relevant = [], 0, 0
    for topic, of in HUMAN.items():
        truth, given = np.array(list(of.values())) >= 2, np.array(list(NOISY[topic].values()))
        if truth.any() and not truth.all():
            areas.append(roc_auc_score(truth, given))
        missed, relevant = missed + int((given[truth] == 0).sum()), relevant + int(truth.sum())
    assert found["value"] == pytest.approx(np.mean(areas), abs=1e-12)
    assert found["missed"] == pytest.approx(missed / relevant)
    assert row(audited({"m": HUMAN}), "choosing")["effort"] < 0.5 < found["effort"]


def test_ensembles() -> None:
    codes = grades_of({name: {"1": {"a": g}} for name, g in (("x", 0), ("y", 1), ("z", 3))}, {"1": {"a": 3}})
    found = dict(ensembles(codes))
    assert (found["median of all"].tolist(), found["majority of all"].tolist()) == ([1], [0])
    three = {str(seed): erring(HUMAN, 0.6, seed) for seed in range(3)}
    audit = audited(three)
    singles = [one["value"] for one in audit.of("agreement", coefficient="alpha-ordinal")]
    assert row(audit, "ensembles", ensemble="median of all")["value"] > max(singles)


def test_the_best_model_is_chosen_on_other_topics() -> None:
    """A model that is right on one topic only is not chosen for that topic."""
    lucky = {
        topic: of if topic == "t5" else {doc: 3 - grade for doc, grade in of.items()} for topic, of in HUMAN.items()
    }
    grades = grades_of({"steady": NOISY, "lucky": lucky})
    chosen = dict(ensembles(grades))["best model, chosen on the other topics"]
    assert chosen.tolist() == grades.given[:, 0].tolist()


def test_people_are_the_ceiling() -> None:
    persons = {"ann": erring(HUMAN, 0.4, 1), "bob": erring(HUMAN, 0.4, 2), "eve": erring(HUMAN, 0.4, 3)}
    audit = judge.audit(persons, {"like people": erring(HUMAN, 0.4, 4), "worse": erring(HUMAN, 0.9, 5)}, resamples=300)
    good, bad = audit.of("ceiling")
    assert good["value_low"] < 0 < good["value_high"]
    assert bad["value_high"] < 0
    assert len(audit.of("people")) == 3
    assert good["people"] == pytest.approx(np.mean([one["value"] for one in audit.of("people")]), abs=1e-12)


def test_differences_between_models() -> None:
    models = {"good": erring(HUMAN, 0.2, 1), "alike": erring(HUMAN, 0.2, 2), "bad": erring(HUMAN, 0.8, 3)}
    audit = audited(models)
    found = {frozenset((one["first"], one["second"])): one for one in audit.of("differences")}
    assert found[frozenset(("good", "bad"))]["corrected"] < 0.01
    assert found[frozenset(("alike", "good"))]["corrected"] > 0.05
    assert all(one["value"] >= 0 for one in found.values())
    assert audit.best()[-1] == "bad"


def test_a_centred_interval_lies_round_the_value() -> None:
    """Resampled correlations are lower than those of the topics; centred they are not."""
    draw = np.random.default_rng(4)
    first = draw.normal(size=(30, 20)) * 0.2 + np.linspace(0, 0.3, 20)
    second = first + draw.normal(size=(30, 20)) * 0.2

    def spearman(weights: np.ndarray) -> np.ndarray:
        means = [(weights @ side).argsort(axis=1).argsort(axis=1) for side in (first, second)]
        return np.array([[np.corrcoef(one, two)[0, 1]] for one, two in zip(*means, strict=True)])

    plain = bootstrap(spearman, 30, Resampling(resamples=400))
    centred = bootstrap(spearman, 30, Resampling(resamples=400), centred=True)
    assert plain.value == centred.value
    assert (plain.low + plain.high) / 2 < (centred.low + centred.high) / 2
    assert centred.high - centred.low == pytest.approx(plain.high - plain.low)


def test_people_in_the_place_of_a_model_are_usable() -> None:
    audit = audited({"m": HUMAN}, run=runs(HUMAN))
    assert [one["value"] for one in audit.of("order")] == pytest.approx([1.0] * 8)
    counts = row(audit, "pairs", systems="all")
    assert counts["people"] == counts["both"] > 0
    assert counts["lost"] == counts["gained"] == counts["opposite"] == counts["turned"] == 0
    assert {one["value"] for one in audit.of("scores")} == {0.0}
    assert [one.word for one in judge_verdicts(audit)] == ["USABLE"] * 4


def judge_verdicts(audit: AssessorAudit) -> Any:
    from truerank.audits.assessors import verdicts_of

    return verdicts_of(audit)


def test_scores_and_significant_pairs_are_those_of_compare() -> None:
    from truerank.measures import compare

    systems = runs(HUMAN)
    audit = audited({"m": NOISY}, run=systems)
    means = {}
    for name, qrels in (("people", HUMAN), ("model", NOISY)):
        found = compare(qrels, systems, significance="paired-t", rel=2).comparison
        assert found is not None
        significant = sum(one.significant for one in found.differences if one.measure == "nDCG@10")
        assert row(audit, "pairs", systems="all")[name] == significant
        means[name] = evaluate(qrels, systems, "nDCG@10", rel=2).mean[:, 0]
    rows = [one for one in audit.of("scores") if one["run"]]
    assert [one["people"] for one in rows] == pytest.approx(means["people"])
    assert [one["model"] for one in rows] == pytest.approx(means["model"])


def test_a_favoured_family_is_found_and_no_other() -> None:
    liked = range(10)
    systems = runs(HUMAN, 24, liking=liked)
    families = {name: f"f{number % 3}" for number, name in enumerate(systems)}
    favours = audited({"m": higher(HUMAN, liked)}, run=systems, families=families)
    found = {one["family"]: one for one in favours.of("families")}
    assert found["f0"]["adjusted_low"] > 0 and found["f0"]["corrected"] < 0.05
    assert "it favours f0" in judge_verdicts(favours)[1].sentence or judge_verdicts(favours)[1].word == "NOT USABLE"
    fair = audited({"m": HUMAN}, run=systems, families=families)
    assert {one["adjusted"] for one in fair.of("families")} == {0.0}


def test_the_gain_of_a_family() -> None:
    systems = runs(HUMAN)
    families = {"s00": "mine", "s05": "mine"}
    audit = audited({"m": NOISY}, run=systems, families=families)
    gaps = {one["run"]: one["value"] for one in audit.of("scores") if one["run"]}
    own = [gap for name, gap in gaps.items() if name in families]
    others = [gap for name, gap in gaps.items() if name not in families]
    assert row(audit, "families")["value"] == pytest.approx(np.mean(own) - np.mean(others))


def test_reordering_by_grades() -> None:
    run = frame_of({"1": {"a": 5.0, "b": 4.0, "c": 3.0, "d": 2.0, "e": 1.0}}, RUN_SCHEMA, "score")
    grades = frame_of({"1": {"b": 1, "d": 3, "e": 3}}, QREL_SCHEMA, "relevance")
    assert reordered(run, grades, 0, 4)["doc_id"].to_list() == ["d", "b", "a", "c"]


def test_the_last_stage_flatters_itself() -> None:
    systems = runs(HUMAN)
    audit = audited({"m": NOISY}, run=systems)
    found = row(audit, "last_stage")
    assert found["model"] > found["people"]
    assert found["value_low"] > 0
    own = row(audited({"m": HUMAN}, run=systems), "last_stage")
    assert own["value"] == 0 and own["above"] == own["people_above"] == 12


def test_bands_of_ranks() -> None:
    audit = audited({"m": NOISY}, run={"only": {topic: {"d1": 2.0, "d2": 1.0} for topic in HUMAN}})
    found = {one["band"]: one["pairs"] for one in audit.of("ranks")}
    assert found == {"rank 1-5": 24, "deeper than 100, or in no run": 336}
