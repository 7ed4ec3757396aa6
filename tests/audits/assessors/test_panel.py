"""Panels of models: correlation of errors, independent judges, families left out."""

from __future__ import annotations

import numpy as np
import pytest

import truerank
from assessors_example import Qrels, erring, people
from places import real
from truerank.audits.assessors.panel import effective, judge_families
from truerank.audits.assessors.verdicts import panel_verdict, verdicts_of
from truerank.core.result import summary
from truerank.errors import InputError

HUMAN = people(topics=15)


def sharing(share: float, seed: int, common: int = 99) -> Qrels:
    """A model that errs on half of the pairs; of this share of the pairs, as all others of `common` do."""
    draw = np.random.default_rng(seed)
    own, all_alike = erring(HUMAN, 0.5, seed), erring(HUMAN, 0.5, common)
    return {
        topic: {doc: all_alike[topic][doc] if draw.random() < share else grade for doc, grade in of.items()}
        for topic, of in own.items()
    }


def test_judges_that_err_independently_all_count() -> None:
    found = truerank.judge.audit(HUMAN, {f"m{n}": erring(HUMAN, 0.5, n) for n in range(8)}, resamples=200)
    row = found.of("panel", errors="equal")[0]
    assert abs(row["value"]) < 0.02 and 7 < row["effective"] <= 8
    # Errors that hold a part of people's grade look shared, though nothing is.
    assert found.of("panel", errors="signed")[0]["value"] > 0.1
    verdict = panel_verdict(found)
    assert verdict is not None and verdict.word == "USABLE"


def test_errors_that_are_shared_leave_few_judges() -> None:
    found = truerank.judge.audit(HUMAN, {f"m{n}": sharing(0.9, n) for n in range(8)}, resamples=200)
    row = found.of("panel", errors="equal")[0]
    assert 0.6 < row["value_low"] < row["value"] < row["value_high"] < 0.95
    assert row["effective"] == pytest.approx(8 / (1 + 7 * row["value"]))
    verdict = panel_verdict(found)
    assert verdict is not None and verdict.word == "WITH CARE"
    assert f"{row['effective']:.1f} independent" in verdict.sentence and verdict not in verdicts_of(found)
    assert any(verdict.sentence == one.sentence for one in summary(found).verdicts)


def test_correlation_is_that_of_residuals() -> None:
    """Against numpy, over deviations from each judge's mean error at each grade of people."""
    models = {f"m{n}": sharing(0.4, n) for n in range(4)}
    found = truerank.judge.audit(HUMAN, models, resamples=10)
    grade = np.array([one for of in HUMAN.values() for one in of.values()])
    error = np.array([[one for of in given.values() for one in of.values()] for given in models.values()]) - grade
    upper = np.triu_indices(4, 1)
    assert found.of("panel", errors="signed")[0]["value"] == pytest.approx(np.corrcoef(error)[upper].mean())
    assert found.of("panel", errors="size")[0]["value"] == pytest.approx(np.corrcoef(np.abs(error))[upper].mean())
    held = error.astype(float)
    for one in np.unique(grade):
        held[:, grade == one] -= held[:, grade == one].mean(axis=1, keepdims=True)
    assert found.of("panel", errors="equal")[0]["value"] == pytest.approx(np.corrcoef(held)[upper].mean())


def test_a_family_that_outvotes_the_others_is_shown() -> None:
    """Five copies of a bad judge against four good ones: without the copies the panel is better."""
    models = {f"bad-{n}": erring(HUMAN, 0.9, 1) for n in range(5)}
    models |= {f"good{n}": erring(HUMAN, 0.2, n) for n in range(4)}
    families = {f"good{n}": "good" for n in range(4)}
    found = truerank.judge.audit(HUMAN, models, families=families, resamples=200)
    rows = {row["family"]: row for row in found.of("left_out")}
    assert list(rows) == ["", "bad", "good"] and rows["bad"]["judges"] == 4
    assert rows["bad"]["gain_low"] > 0.3 and rows["bad"]["corrected"] < 0.01 and rows["good"]["gain"] == 0
    assert rows["bad"]["within"] == pytest.approx(1) and abs(rows["good"]["within"]) < 0.05
    assert rows["bad"]["value"] - rows[""]["value"] == pytest.approx(rows["bad"]["gain"])
    verdict = panel_verdict(found)
    assert verdict is not None and "Without bad, α changes by +" in verdict.sentence


def test_pairs_that_a_judge_lacks_count_where_both_graded() -> None:
    half = {topic: dict(list(of.items())[::2]) for topic, of in erring(HUMAN, 0.5, 3).items()}
    models = {"a": erring(HUMAN, 0.5, 1), "b": erring(HUMAN, 0.5, 1), "c": half}
    row = truerank.judge.audit(HUMAN, models, resamples=50).of("panel", errors="equal")[0]
    assert row["value"] == pytest.approx(1 / 3, abs=0.1)


def test_no_panel_without_three_judges_topics_or_errors() -> None:
    two = truerank.judge.audit(HUMAN, {"a": HUMAN, "b": erring(HUMAN, 0.5)}, resamples=20)
    assert panel_verdict(two) is None and not two.of("panel") and not two.of("left_out")
    copies = truerank.judge.audit(HUMAN, dict.fromkeys("abc", HUMAN), resamples=20)
    verdict = panel_verdict(copies)
    assert verdict is not None and verdict.word == "UNKNOWN"
    few = {topic: HUMAN[topic] for topic in ("t0", "t1")}
    assert panel_verdict(truerank.judge.audit(few, {n: erring(few, 0.5, n) for n in range(3)}, resamples=20)) is None
    with pytest.raises(InputError, match="no model has a family"):
        truerank.judge.audit(HUMAN, {"a": HUMAN}, families={"other": "x"})


def test_names_and_formulas() -> None:
    assert judge_families(("TREMA-all", "h2oloo_x", "plain", "-odd", "q-1"), {"q-1": "mine"}) == {
        "TREMA-all": "TREMA", "h2oloo_x": "h2oloo", "plain": "plain", "-odd": "-odd", "q-1": "mine",
    }  # fmt: skip
    judges = np.full(4, 5.0)
    assert effective(judges, np.array([0.0, 1.0, 0.5, -0.2])).tolist() == pytest.approx([5, 1, 5 / 3, 5])


@pytest.mark.shared
def test_the_judges_of_llmjudge() -> None:
    folder = real("llmjudge")
    models = {path.name.split(".")[0]: str(path) for path in sorted((folder / "judges").glob("*.gz"))}
    found = truerank.judge.audit(str(folder / "human.qrels.gz"), models, rel=2, resamples=20)
    size = found.of("panel", errors="size")[0]
    assert (round(size["value"], 2), round(size["effective"], 1)) == (0.44, 2.2)
    assert len(found.of("left_out")) == 8
