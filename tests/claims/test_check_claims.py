"""A claim under each condition: against SciPy, all gradings of unjudged documents, and planted faults."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest
import scipy.stats

import truerank
from truerank.claims.claim import (
    Claim,
    ClaimEstimate,
    Effect,
    Repair,
    change_by,
    chosen_claim,
    repaired_effect,
    signed,
)
from truerank.claims.conclusion import concluded
from truerank.claims.data_questions import leakage_answer, without_leaked
from truerank.claims.inquiry import Inquiry
from truerank.claims.options import ClaimSources
from truerank.claims.page import checks_of
from truerank.claims.results import ClaimAnswer
from truerank.claims.scoring_questions import chance_answer
from truerank.claims.steps import AuditSteps
from truerank.claims.unjudged import judged_results, unjudged_bounds
from truerank.errors import OptionError
from truerank.measures import evaluate
from truerank.options import Resampling, Scoring
from truerank.work.progress import Quiet

Runs = Mapping[str, Mapping[str, Mapping[str, float]]]
Grades = dict[str, dict[str, int]]
TIES = ("trec_eval", "ascending", "rank")
WORDS = "river stone lamp field cloud paper glass tower bread winter garden market bridge copper".split()


def collection(
    topics: int = 24, seed: int = 3, lead: float = 1.0
) -> tuple[Grades, dict[str, dict[str, dict[str, float]]]]:
    """Judgments and three runs, of which "good" is better than "plain" by about `lead` standard deviations of noise."""
    draw = random.Random(seed)
    grades: Grades = {}
    runs: dict[str, dict[str, dict[str, float]]] = {"good": {}, "plain": {}, "third": {}}
    for topic in (f"t{n}" for n in range(topics)):
        grades[topic] = {f"{topic}-d{n}": int(n < 4) for n in range(16)}
        for name, sight in (("good", 1 + lead), ("plain", 1.0), ("third", 0.8)):
            runs[name][topic] = {key: sight * grade + draw.gauss(0, 1) for key, grade in grades[topic].items()}
    return grades, runs


def claim(grades: Grades, runs: Runs, **changes: object) -> Claim:
    """The claim that "good" is better than "plain"."""
    frames = {
        name: pl.DataFrame(
            [(t, d, n, s) for t, held in run.items() for n, (d, s) in enumerate(held.items(), 1)],
            schema={"topic_id": pl.String, "doc_id": pl.String, "rank": pl.Int64, "score": pl.Float64},
            orient="row",
        )
        for name, run in runs.items()
    }
    rows = [(t, d, g) for t, held in grades.items() for d, g in held.items()]
    qrels = pl.DataFrame(rows, schema={"topic_id": pl.String, "doc_id": pl.String, "relevance": pl.Int32}, orient="row")
    options: dict[str, object] = {"comparisons": None, "confidence": 0.95, **changes}
    return chosen_claim(frames, qrels, "nDCG@10", Scoring(), ("good", "plain"), **options)  # type: ignore[arg-type]


def effects(result: truerank.claims.Check) -> dict[str, Effect]:  # type: ignore[name-defined]
    return {one.question: one.effect for one in result.answers}


def test_the_interval_says_what_the_corrected_test_says() -> None:
    for seed, lead in itertools.product(range(6), (0.0, 0.3, 0.6)):
        grades, runs = collection(seed=seed, lead=lead)
        found = claim(grades, runs, comparisons=3)
        scores = evaluate(grades, {name: runs[name] for name in ("good", "plain")}, "nDCG@10")
        p = float(scipy.stats.ttest_rel(scores.of("good", "nDCG@10"), scores.of("plain", "nDCG@10")).pvalue)
        base = found.base
        assert base.value is not None and base.low is not None and base.high is not None
        assert (base.low > 0 or base.high < 0) == (3 * p < 0.05)
        answer = chance_answer(found)
        assert answer.facts["p_corrected"] == pytest.approx(min(1.0, 3 * p))
        assert (answer.word == "MORE THAN CHANCE") == (base.low > 0)


def test_the_claim_is_that_of_the_named_runs_or_of_the_best() -> None:
    grades, runs = collection()
    best = truerank.check(qrels=grades, run=runs).claim
    assert best is not None
    assert (best.system, best.baseline, best.comparisons) == ("good", "plain", 3)
    named = truerank.check(qrels=grades, run=runs, baseline="third").claim
    assert named is not None
    assert (named.system, named.baseline, named.comparisons) == ("good", "third", 2)
    with pytest.raises(OptionError, match="there is no run 'other'"):
        truerank.check(qrels=grades, run=runs, baseline="other")
    with pytest.raises(OptionError, match=r"^measure: unknown measure: 'ndgc'. did you mean nDCG"):
        truerank.check(qrels=grades, run=runs, measure="ndgc")
    opposite = truerank.check(qrels=grades, run=runs, baseline="good", system="plain")
    told = opposite.answer("policies")
    assert (opposite.conclusion.word, told.word) == ("DOES NOT HOLD", "SAME SIGN")
    assert (
        told.consequence.startswith("By nDCG@10")
        and "good leads by more than chance" in told.consequence.partition(";")[0]
    )
    with pytest.raises(OptionError, match="is the baseline too"):
        truerank.check(qrels=grades, run=runs, baseline="good", system="good")


def test_bounds_of_unjudged_documents_are_those_of_all_gradings() -> None:
    grades: Grades = {"t1": {"a": 1, "b": 0, "c": 1}, "t2": {"a": 0, "d": 1}}
    runs = {
        "good": {"t1": {"a": 9.0, "x": 8.0, "b": 7.0, "y": 6.0}, "t2": {"d": 9.0, "u": 8.0, "v": 7.0}},
        "plain": {"t1": {"x": 9.0, "z": 8.0, "c": 7.0, "a": 6.0}, "t2": {"v": 9.0, "a": 8.0, "d": 7.0}},
    }
    found = claim(grades, runs)
    bounds = unjudged_bounds(found, judged_results(found))
    values = []
    for given in itertools.product((0, 1), repeat=5):
        x, y, z, u, v = given
        full = {"t1": {**grades["t1"], "x": x, "y": y, "z": z}, "t2": {**grades["t2"], "u": u, "v": v}}
        scores = evaluate(full, runs, "nDCG@10")
        values.append(float(scores.of("good", "nDCG@10").mean() - scores.of("plain", "nDCG@10").mean()))
    assert bounds.unjudged == 5
    assert (bounds.low, bounds.high) == (pytest.approx(min(values)), pytest.approx(max(values)))


def test_a_claim_without_a_fault_holds_and_says_what_is_not_known() -> None:
    grades, runs = collection()
    result = truerank.check(qrels=grades, run=runs, baseline="plain")
    assert result.conclusion.word == "HOLDS"
    assert [one.question for one in result.answers if one.effect == "unknown"] == [
        "leakage", "collection", "versions", "models",
    ]  # fmt: skip
    assert result.conclusion.not_checked[0].startswith("training data")
    assert "Not checked: training data" in result.conclusion.reason
    assert {effects(result)[name] for name in ("chance", "unjudged", "pools", "policies")} == {"stands"}


def test_a_lead_that_rests_on_leaked_topics_goes_with_them_and_any_other_stays() -> None:
    grades, runs = collection(topics=40, lead=0.0)
    leaked = frozenset(f"t{n}" for n in range(20))
    for topic in leaked:
        runs["good"][topic] = {
            key: 10 * grade + place / 100 for place, (key, grade) in enumerate(grades[topic].items())
        }
    resampling = Resampling(resamples=500)
    carried = claim(grades, runs)
    assert carried.base.effect == "stands"
    listed = ClaimAnswer("leakage", "CONTAMINATED", "", "unknown", "")
    repaired = without_leaked(carried, listed, leaked, frozenset(), resampling)
    assert repaired.effect == "falls" and repaired.repair is not None
    conclusion = concluded(carried, change_by(carried, [repaired.repair], "", resampling), [repaired])
    assert conclusion.word in ("CANNOT TELL", "DOES NOT HOLD")
    assert conclusion.found == "20 of 40 test topics match a training query."
    change = f"{signed(carried.base.value or 0)} → {signed(repaired.estimates[0].value or 0)} nDCG@10"
    assert conclusion.figure == f"On the other 20 the lead is gone: {change}."
    gone = Repair("without the 2 documents that are gone", documents=frozenset({"t1-d9", "t2-d9"}))
    facts, lost = {"moved": False}, "2 documents are gone."
    other = ClaimAnswer("versions", "CHANGED", "", "stands", "", repair=gone, facts=facts, found=lost)
    every = change_by(carried, [repaired.repair, gone], "", resampling)
    both = concluded(carried, every, [repaired, other])
    assert (both.found, both.decided_by) == (conclusion.found, "leakage")
    assert any(text.endswith(f"as well: {lost}") for text in both.means)
    # Where no repair by itself changes the answer, none is named.
    together = concluded(carried, every, [replace(repaired, facts={}), other, other])
    assert (together.found, together.decided_by) == ("", "chance")
    assert together.figure.startswith("After all repairs, the lead is gone: ")
    even = claim(*collection(topics=40, lead=1.5))
    assert without_leaked(even, listed, leaked, frozenset(), resampling).effect == "stands"
    clean = ClaimAnswer("leakage", "CLEAN", "", "unknown", "")
    nothing = without_leaked(even, clean, frozenset(), frozenset(), resampling)
    assert (nothing.effect, nothing.estimates, nothing.repair) == ("stands", (), None)


def test_leaked_documents_leave_runs_and_judgments() -> None:
    grades, runs = collection(topics=40, lead=0.0)
    leaked = frozenset(f"{topic}-d{n}" for topic in list(grades)[:30] for n in (0, 1))
    for document in leaked:
        runs["good"][document.partition("-")[0]][document] = 99.0
    carried = claim(grades, runs)
    listed = ClaimAnswer("leakage", "CONTAMINATED", "", "unknown", "")
    repaired = without_leaked(carried, listed, frozenset(), leaked, Resampling(resamples=200))
    assert (repaired.effect, repaired.facts["moved"]) == ("falls", True)
    left = {topic: {key: g for key, g in held.items() if key not in leaked} for topic, held in grades.items()}
    rest = {
        name: {topic: {key: s for key, s in held.items() if key not in leaked} for topic, held in run.items()}
        for name, run in runs.items()
    }
    assert repaired.estimates[0].value == pytest.approx(claim(left, rest).base.value)
    assert "60 relevant documents" in repaired.consequence


def test_a_lead_that_leaked_topics_made_larger_is_smaller_than_claimed() -> None:
    grades, runs = collection(topics=60, lead=0.7)
    leaked = frozenset(f"t{n}" for n in range(15))
    for topic in leaked:
        runs["good"][topic] = {key: 10 * grade + n / 100 for n, (key, grade) in enumerate(grades[topic].items())}
        runs["plain"][topic] = {key: -grade + n / 100 for n, (key, grade) in enumerate(grades[topic].items())}
    inflated = claim(grades, runs)
    listed = ClaimAnswer("leakage", "CONTAMINATED", "", "unknown", "")
    answer = without_leaked(inflated, listed, leaked, frozenset(), Resampling(resamples=200))
    assert answer.effect == "smaller" and answer.repair is not None
    change = change_by(inflated, [answer.repair], "", Resampling(resamples=200))
    conclusion = concluded(inflated, change, [answer])
    assert conclusion.word == "HOLDS SMALLER"
    assert conclusion.found == "15 of 60 test topics match a training query."
    change = f"{signed(inflated.base.value or 0)} → {signed(answer.estimates[0].value or 0)}"
    assert f"On the other 45 the lead shrinks but stays: {change}" in conclusion.figure


def test_judgments_of_documents_that_do_not_exist_carry_no_claim() -> None:
    grades, runs = collection(lead=0.0)
    draw = random.Random(5)
    docs = {key: " ".join(draw.choices(WORDS, k=30)) + f" {key}" for held in grades.values() for key in held}
    for topic, held in grades.items():
        held |= {f"{topic}-ghost{n}": 1 for n in range(3)}
        runs["good"][topic] |= {f"{topic}-ghost{n}": 50.0 - n for n in range(3)}
    result = truerank.check(qrels=grades, run=runs, docs=docs, system="good", baseline="plain")
    assert result.answer("collection").word == "FAULTY"
    assert result.base is not None and result.base.effect == "stands"
    assert (effects(result)["collection"], result.conclusion.word) == ("falls", "CANNOT TELL")
    assert result.repaired is not None and "72 of 168 relevant documents do not exist" in result.conclusion.found
    repair = result.answer("collection").repair
    assert repair is not None and "72 documents that the collection lacks" in repair.what


def test_unjudged_documents_and_missing_topics_leave_a_claim_open() -> None:
    grades, runs = collection(lead=0.2, topics=30)
    own = {topic: sorted(held, key=held.__getitem__)[-10:] for topic, held in runs["plain"].items()}
    theirs = {topic: sorted(held, key=held.__getitem__)[-10:] for topic, held in runs["good"].items()}
    for topic, held in grades.items():
        for key in set(own[topic]) - set(theirs[topic]):
            held.pop(key)
    result = truerank.check(qrels=grades, run=runs, system="good", baseline="plain")
    unjudged = result.answer("unjudged")
    assert (unjudged.word, unjudged.plausible) == ("JUDGED UNEVENLY", True)
    assert result.answer("pools").word == "ONE RUN POOLED"
    grades, runs = collection(lead=0.0, topics=30)
    gone = [topic for n, topic in enumerate(grades) if n % 3 == 0]
    lacking = {**runs, "plain": {topic: held for topic, held in runs["plain"].items() if topic not in gone}}
    result = truerank.check(qrels=grades, run=lacking, system="good", baseline="plain")
    assert result.base is not None and result.base.effect == "stands"
    # Missing answers count 0; the difference over the topics that both runs have stands beside it.
    skipped = {name: {t: h for t, h in run.items() if t not in gone} for name, run in runs.items()}
    left = claim({t: g for t, g in grades.items() if t not in gone}, skipped).base
    assert result.repaired is None and result.answer("files").estimates[0].value == pytest.approx(left.value)
    assert result.conclusion.word == "HOLDS EXCEPT"
    assert result.conclusion.found.startswith("plain gave no answer to 10 of 30 topics")
    change = f"{signed(result.base.value or 0)} → {signed(left.value or 0)}"
    assert result.conclusion.figure.startswith("Without the 10 topics that plain did not answer, ")
    assert change in result.conclusion.figure


def test_missing_answers_count_0_unless_they_were_not_asked() -> None:
    grades, runs = collection(topics=30, lead=0.8)
    whole = claim(grades, runs)
    assert whole.base.effect == "stands"
    known = whole.differences(whole.evaluation)
    middle = [whole.evaluation.topics[at] for at in np.argsort(-known)[5:15]]
    without = {**runs, "good": {topic: held for topic, held in runs["good"].items() if topic not in middle}}
    result = truerank.check(qrels=grades, run=without, system="good", baseline="plain", comparisons=1)
    assert result.base is not None and result.base.effect != "stands"
    assert (effects(result)["files"], result.conclusion.word) == ("falls", "DOES NOT HOLD")
    assert "good gave no answer to 10 of 30 topics; these count 0." in result.conclusion.reason
    change = f"{signed(result.base.value or 0)} → {signed(result.answer('files').estimates[0].value or 0)}"
    assert (
        f"Without the 10 topics that good did not answer, good leads by more than chance: {change}"
        in result.conclusion.reason
    )
    skip, third = Scoring(missing="skip"), whole.evaluation.topics[::3]
    thinned = {**runs, "good": {topic: held for topic, held in runs["good"].items() if topic not in third}}
    result = truerank.check(qrels=grades, run=thinned, system="good", baseline="plain", scoring=skip)
    assert result.conclusion.word == "HOLDS", result.conclusion.reason
    # A system without answers for its hardest topics: no lead comes of leaving them out.
    mean = whole.evaluation.of("plain", whole.measure)
    worst = {whole.evaluation.topics[at] for at in np.argsort(mean)[:8]}
    picked = {**runs, "good": {topic: held for topic, held in runs["good"].items() if topic not in worst}}
    result = truerank.check(qrels=grades, run=picked, system="good", baseline="plain", scoring=skip)
    assert "These are harder than others: plain does worse on them" in result.conclusion.reason
    assert result.conclusion.word in ("HOLDS EXCEPT", "CANNOT TELL")


def test_other_conventions_of_the_claims_measure_are_named() -> None:
    grades, runs = collection(seed=4)
    # All scores are equal in blocks, so that the order of ties decides.
    flat = {
        name: {t: {d: float(round(s / 2)) for d, s in held.items()} for t, held in run.items()}
        for name, run in runs.items()
    }
    answer = truerank.check(qrels=grades, run=flat, baseline="plain", measures="nDCG@10").answer("policies")
    ways = {name: f"nDCG@10, ties {name}" in answer.facts["turned"] for name in TIES}
    assert len(set(ways.values())) == 2
    # Named are the ways of breaking ties that turn it, and no other condition.
    assert answer.effect == "not shown"
    named = f"By nDCG@10 with {' or '.join(f'ties broken by {n}' for n, t in ways.items() if t)}"
    assert answer.exception[0].startswith(f"{named}, chance can explain the lead")


def test_judgments_of_relevant_documents_only_tell_no_rate_and_change_nothing() -> None:
    grades, runs = collection()
    only = {topic: {key: 1 for key, grade in held.items() if grade} for topic, held in grades.items()}
    result = truerank.check(qrels=only, run=runs, baseline="plain")
    answers = [result.answer(name) for name in ("unjudged", "pools")]
    assert [one.word for one in answers] == ["CANNOT TELL", "NOT POOLED"]
    assert {(one.effect, one.plausible) for one in answers} == {("stands", False)}
    assert "The judgments name relevant documents only" in answers[0].found
    told = answers[0].possible.partition("plain draws level if ")[2]
    assert "of its unjudged documents are relevant" in told


def test_a_model_that_prefers_the_other_run_is_an_exception() -> None:
    grades, runs = collection()
    first = {topic: sorted(held, key=held.__getitem__)[-6:] for topic, held in runs["plain"].items()}
    model = {topic: {key: int(key in first[topic]) for key in held} for topic, held in grades.items()}
    result = truerank.check(qrels=grades, run=runs, baseline="plain", model_judgments={"judge": model}, resamples=50)
    assert effects(result)["models"] in ("falls", "not shown")
    assert result.conclusion.word == "HOLDS EXCEPT"
    (row,) = result.answer("models").estimates
    change = f"{signed(result.claim.base.value or 0)} → {row.figures()}"  # type: ignore[union-attr]
    assert f"By judge's judgments: {change}" in result.conclusion.found


@pytest.mark.slow
def test_documents_that_are_gone_are_told_from_doubtful_ones(tmp_path: Path) -> None:
    grades, runs = collection(topics=12, lead=2.0)
    draw = random.Random(8)
    topics = {topic: " ".join(draw.sample(WORDS, 3)) for topic in grades}
    before = {
        key: f"{topics[topic] if grade else ''} {' '.join(draw.choices(WORDS, k=25))} {key}"
        for topic, held in grades.items()
        for key, grade in held.items()
    }
    now = {key: text for key, text in before.items() if not key.endswith("-d0")}
    result = truerank.check(
        qrels=grades, run=runs, test=topics, docs=now, previous=before, system="good", baseline="plain"
    )  # fmt: skip
    answer = result.answer("versions")
    assert (answer.word, answer.facts["lost"], answer.facts["by"]) == ("CHANGED", 12, "id")
    kept = {topic: {key: g for key, g in held.items() if not key.endswith("-d0")} for topic, held in grades.items()}
    new = {
        name: {topic: {key: one for key, one in held.items() if not key.endswith("-d0")} for topic, held in run.items()}
        for name, run in runs.items()
    }
    assert answer.estimates[0].value == pytest.approx(claim(kept, new).base.value)
    # What is written to a folder is what is said without one.
    written = truerank.check(
        qrels=grades, run=runs, test=topics, docs=now, previous=before, system="good", baseline="plain", out=tmp_path
    )  # fmt: skip
    assert [one.json() for one in written.answers] == [one.json() for one in result.answers]


def test_versions_that_bm25_cannot_compare_leave_the_other_answers() -> None:
    grades, runs = collection(topics=12, lead=2.0)
    docs = {key: f"the same words in every document {key}" for held in grades.values() for key in held}
    topics = dict.fromkeys(grades, "nothing of this")
    result = truerank.check(
        qrels=grades, run=runs, test=topics, docs=docs, previous=docs, system="good", baseline="plain"
    )  # fmt: skip
    answer = result.answer("versions")
    assert (answer.word, answer.effect) == ("UNKNOWN", "unknown")
    assert answer.evidence.startswith("BM25 cannot compare the versions: the ranker does not distinguish judged doc")
    assert result.answer("versions").effect == "unknown"
    assert any(mark == "?" and "BM25 cannot compare the versions" in text for mark, text in checks_of(result))


@pytest.mark.parametrize(
    ("after", "moved", "effect"),
    [
        ((0.06, 0.01, 0.10), True, "stands"),
        ((0.04, 0.01, 0.07), True, "smaller"),
        ((0.04, 0.01, 0.07), False, "stands"),
        ((-0.01, -0.05, 0.09), True, "falls"),
        ((0.01, -0.02, 0.04), True, "falls"),
        ((0.03, -0.02, 0.08), True, "not shown"),
        ((-0.01, -0.05, 0.09), False, "not shown"),
    ],
)
def test_what_repairing_does(after: tuple[float, float, float], moved: bool, effect: Effect) -> None:
    base = ClaimEstimate("", 0.05, 0.01, 0.09, 40, "stands")
    state: Effect = "stands" if after[1] > 0 else "not shown" if after[0] > 0 else "falls"
    assert repaired_effect(base, ClaimEstimate("", *after, 40, state), moved) == effect
    weak = ClaimEstimate("", 0.01, -0.03, 0.05, 40, "not shown")
    shown = ClaimEstimate("", 0.05, 0.01, 0.09, 40, "stands")
    assert repaired_effect(weak, shown, moved) == "appears"
    assert repaired_effect(weak, weak, moved) == "not shown"


def test_a_measure_where_less_is_better_keeps_its_sense() -> None:
    grades, runs = collection()
    by_rank = truerank.check(qrels=grades, run=runs, baseline="plain", measure="MFR", measures="nDCG@10")
    assert by_rank.claim is not None and by_rank.base is not None
    means = evaluate(grades, runs, "MFR").mean[:, 0]
    assert by_rank.base.value == pytest.approx(means[1] - means[0])
    assert np.sign(by_rank.base.value or 0) == 1


def test_topics_whose_answer_stands_in_a_training_example_leak(tmp_path: Path) -> None:
    words = [f"{first}{second}" for first in WORDS for second in WORDS]
    topics = {f"t{n}": " ".join(words[8 * n : 8 * n + 8]) for n in range(6)}
    docs = {f"d{n}": " ".join(words[60 + 20 * n : 80 + 20 * n]) for n in range(6)}
    (tmp_path / "topics.tsv").write_text("".join(f"{key}\t{text}\n" for key, text in topics.items()))
    (tmp_path / "docs.jsonl").write_text("".join(json.dumps({"_id": k, "text": t}) + "\n" for k, t in docs.items()))
    (tmp_path / "test.qrels").write_text("".join(f"t{n} 0 d{n} 1\n" for n in range(6)))
    rows = [{"query": topics["t2"], "positive": docs["d2"]}, {"query": "another one", "positive": "words of its own"}]
    (tmp_path / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "queries.tsv").write_text("q1\tsomething else\n")
    steps = AuditSteps(tmp_path / "out", Quiet())

    def asked(train: str) -> Inquiry:
        given = {"test": "topics.tsv", "qrels": "test.qrels", "docs": "docs.jsonl"}
        paths = {name: str(tmp_path / file) for name, file in given.items()}
        return Inquiry(ClaimSources(**paths, train=(str(tmp_path / train),)))

    material: Any = SimpleNamespace(test="topics")
    found = leakage_answer(asked("train.jsonl"), material, None, steps)
    assert found.word == "CONTAMINATED"
    assert (found.facts["leaked_topics"], found.facts["leaked_documents"]) == (["t2"], ["d2"])
    assert "Only queries were compared" not in found.evidence
    assert "Only queries were compared" in leakage_answer(asked("queries.tsv"), material, None, steps).evidence


def test_the_best_of_many_that_were_tried_is_no_finding_by_itself(tmp_path: Path) -> None:
    draw = random.Random(13)
    grades = {f"t{n}": {f"t{n}-d{m}": int(m < 4) for m in range(16)} for n in range(40)}

    def noisy(sight: float) -> dict[str, dict[str, float]]:
        return {t: {doc: sight * grade + draw.gauss(0, 1) for doc, grade in own.items()} for t, own in grades.items()}

    tried = {f"config-{n}": noisy(1.0) for n in range(40)}
    scores = evaluate(grades, tried, "nDCG@10")
    order = scores.sorted("nDCG@10").runs
    best, other = order[0], order[25]
    pair = {best: tried[best], other: tried[other]}
    plain = truerank.check(qrels=grades, run=pair, baseline=other)
    assert plain.base is not None and plain.base.effect == "stands"
    assert "choice" not in {one.question for one in plain.answers}
    folder = tmp_path / "tried"
    folder.mkdir()
    for name, run in tried.items():
        lines = (f"{t} Q0 {doc} 0 {score!r} {name}" for t, own in run.items() for doc, score in own.items())
        (folder / f"{name}.run").write_text("\n".join(lines) + "\n")
    (folder / "README.md").write_text("Runs of a sweep.\n")
    for given in (tried, str(folder)):
        found = truerank.check(qrels=grades, run=pair, baseline=other, tried=given, out=tmp_path / type(given).__name__)
        answer = found.answer("choice")
        assert (answer.word, answer.effect) == ("THE CHOICE EXPLAINS IT", "not shown")
        assert (answer.facts["tried"], answer.facts["place"]) == (39, 1)
        assert abs(answer.facts["cross_fitted"]) < answer.facts["lead"]
        assert found.conclusion.word == "HOLDS EXCEPT"
        assert f"{best} is the best of 39 settings" in found.conclusion.found
        assert answer.estimates[0].figures() in found.conclusion.figure
    (tmp_path / "empty").mkdir()
    with pytest.raises(OptionError, match="no file in"):
        truerank.check(qrels=grades, run=pair, tried=str(tmp_path / "empty"))


def test_repetitions_of_both_systems_say_what_running_again_may_change(tmp_path: Path) -> None:
    grades, runs = collection(topics=40, lead=0.6)
    draw = random.Random(2)

    def again(name: str, spread: float) -> dict[str, dict[str, dict[str, float]]]:
        found = {}
        for number in range(3):
            shift = draw.gauss(0, spread)
            found[f"{name}.{number}"] = {
                t: {d: s + (shift * grades[t][d]) + draw.gauss(0, 0.2) for d, s in own.items()}
                for t, own in runs[name].items()
            }
        return found

    pair = {name: runs[name] for name in ("good", "plain")}
    quiet = {name: again(name, 0.0) for name in pair}
    found = truerank.check(qrels=grades, run=pair, baseline="plain", repeats=quiet)
    answer = found.answer("repeats")
    assert (answer.word, found.conclusion.word) == ("MORE THAN THE NOISE", "HOLDS")
    assert answer.facts["system"]["repeats"] == 3 and answer.facts["system"]["by_repeat"] < 0.02
    for own in [again(name, 0.7) for name in pair]:
        for key, run in own.items():
            lines = (f"{t} Q0 {doc} 0 {score!r} {key}" for t, held in run.items() for doc, score in held.items())
            (tmp_path / f"{key}.run").write_text("\n".join(lines) + "\n")
    loud = truerank.check(
        qrels=grades, run=pair, baseline="plain",
        repeats=[f"{name}={tmp_path}/{name}.*.run" for name in pair],
    )  # fmt: skip
    answer = loud.answer("repeats")
    assert answer.effect == "not shown" and loud.conclusion.word == "HOLDS EXCEPT"
    assert loud.conclusion.found.startswith("From run to run ") and "10 runs of each on 160 topics" in answer.settles
    assert loud.base is not None
    assert f"{signed(loud.base.value or 0)} → {signed(answer.estimates[0].value or 0)}" in loud.conclusion.figure
    for wrong, what in (
        ("good", "names no system"),
        (f"good={tmp_path}/x.*", "0 files"),
        (f"other={tmp_path}", "neither"),
    ):
        with pytest.raises(OptionError, match=what):
            truerank.check(qrels=grades, run=pair, repeats=[wrong])


def test_a_run_that_is_the_best_of_its_repetitions_is_smaller_than_claimed() -> None:
    draw = random.Random(5)
    topics = {f"t{n}": [f"t{n}-d{m}" for m in range(20)] for n in range(40)}
    grades = {topic: {doc: int(at < 4) for at, doc in enumerate(docs)} for topic, docs in topics.items()}

    def ranked(lead: float) -> dict[str, dict[str, float]]:
        return {t: {d: lead * grades[t][d] + draw.gauss(0, 1) for d in docs} for t, docs in topics.items()}

    def said(own: dict[str, dict[str, float]], **repeats: dict[str, dict[str, float]]) -> tuple[str, ClaimAnswer]:
        runs = {"a": own, "b": base}
        found = truerank.check(qrels=grades, run=runs, system="a", baseline="b", repeats={"a": repeats})
        return found.conclusion.word, found.answer("repeats")

    base, usual, lucky = ranked(0.0), {f"a{n}": ranked(1.2) for n in range(4)}, ranked(2.5)
    word, answer = said(lucky, **usual)
    assert (word, answer.effect) == ("HOLDS SMALLER", "smaller")
    assert "This run of a is its luckiest of 5" in answer.remark
    assert said(ranked(1.2), **usual)[0] == "HOLDS"
    # One that is among them, and no better than chance explains of the best of them.
    assert said(usual["a0"], **usual)[0] == "HOLDS"
    copies = said(usual["a0"], one=usual["a1"], two=usual["a1"])
    assert (copies[1].word, copies[1].effect) == ("UNKNOWN", "unknown")
    assert "1 of 2 runs of a repeats the scores of another one" in copies[1].remark
    assert copies[0] == "HOLDS"
    # Half of a file.
    half = {topic: usual["a1"][topic] for topic in list(topics)[:20]}
    word, answer = said(usual["a0"], whole=usual["a2"], half=half)
    assert word == "HOLDS" and "half has no results for 20 topics" in answer.remark
    assert answer.estimates[0].topics == 20


def test_a_table_of_scores_with_repetitions_asks_for_their_noise(tmp_path: Path) -> None:
    draw = random.Random(6)
    rows = [f"what is {n}?,{seed},{0.6 + draw.gauss(0, 0.1):.3f},{0.4 + draw.gauss(0, 0.1):.3f}"
            for n in range(30) for seed in range(3)]  # fmt: skip
    (tmp_path / "s.csv").write_text("\n".join(("question,seed,new,old", *rows)) + "\n")
    found = truerank.check(str(tmp_path / "s.csv"))
    answer = found.answer("repeats")
    assert (answer.word, found.conclusion.word) == ("MORE THAN THE NOISE", "HOLDS")
    assert answer.facts["system"]["repeats"] == 3


def test_lists_that_end_above_the_cutoff_are_compared_at_their_depth() -> None:
    grades, runs = collection(topics=40, lead=0.8)
    short = {t: dict(sorted(own.items(), key=lambda one: -one[1])[:4]) for t, own in runs["plain"].items()}
    found = truerank.check(qrels=grades, run={"good": runs["good"], "plain": short}, baseline="plain", measure="R@10")
    answer = found.answer("files")
    row = next(one for one in answer.estimates if "as short as plain's" in one.label)
    assert row.value is not None and found.base is not None and row.value < (found.base.value or 0)
    change = f"{signed(found.base.value or 0)} → {signed(row.value)}"
    assert "as short as plain's, " in found.conclusion.reason and change in found.conclusion.reason


def test_a_lead_that_wrong_judgments_make_is_not_shown_by_the_second_ones() -> None:
    draw = random.Random(4)
    truth = {f"t{n}": {f"t{n}-d{m}": int(m < 5) for m in range(25)} for n in range(60)}
    judged = {topic: {doc: grade ^ int(draw.random() < 0.15) for doc, grade in own.items()}
              for topic, own in truth.items()}  # fmt: skip

    def by(first: dict[str, dict[str, int]], sight: float, noise: float = 1.0) -> dict[str, dict[str, float]]:
        return {t: {doc: sight * grade + noise * draw.gauss(0, 1) for doc, grade in own.items()}
                for t, own in first.items()}  # fmt: skip

    whole = {topic: truth[topic] for topic in list(truth)[:30]}
    follows = truerank.check(
        qrels=judged, run={"follows": by(judged, 3.0), "plain": by(truth, 3.0)}, baseline="plain", judged_again=whole
    )
    answer = follows.answer("labels")
    assert follows.base is not None and follows.base.effect == "stands"
    assert (answer.word, answer.effect == "stands") == ("WRONG JUDGMENTS MAY EXPLAIN IT", False)
    assert follows.conclusion.word != "HOLDS"
    better = truerank.check(
        qrels=judged, run={"better": by(truth, 3.0), "plain": by(truth, 0.5)}, baseline="plain", judged_again=whole
    )
    assert better.answer("labels").word == "MORE THAN WRONG JUDGMENTS"
    few = {topic: dict(draw.sample(list(own.items()), 1)) for topic, own in list(truth.items())[:20]}
    unclear = truerank.check(qrels=judged, run={"better": by(truth, 3.0), "plain": by(truth, 0.5)}, judged_again=few)
    assert (unclear.answer("labels").word, unclear.answer("labels").effect) == ("CANNOT TELL", "unknown")
    asked = {one.question for one in truerank.check(qrels=judged, run={"a": by(truth, 1), "b": by(truth, 2)}).answers}
    assert "labels" not in asked


def test_few_that_differ_are_no_lead_and_equal_differences_have_no_interval() -> None:
    rows: dict[str, list[object]] = {"id": [f"q{n}" for n in range(100)], "old": [0.5] * 100}
    for wins, word in ((4, "CANNOT TELL"), (5, "CANNOT TELL"), (6, "HOLDS")):
        found = truerank.check({**rows, "new": [0.6 if n < wins else 0.5 for n in range(100)]})
        assert found.conclusion.word == word, wins
        assert (f"The scores differ on only {wins} of 100 questions" in found.conclusion.reason) is (wins < 6)
    found = truerank.check({**rows, "new": [0.6] * 100})
    assert found.base is not None and (found.conclusion.word, found.base.low) == ("HOLDS", None)
    assert "0.600 against 0.500 on 100 questions (+0.100)" in found.conclusion.figure


def test_large_losses_of_few_topics_forbid_a_plain_word() -> None:
    draw = random.Random(1)
    new = [0.55 + draw.gauss(0, 0.002) for _ in range(20)]
    rows: dict[str, list[object]] = {"id": [f"q{n}" for n in range(20)], "old": [0.5] * 20, "new": new}
    assert truerank.check(rows).conclusion.word == "HOLDS"
    found = truerank.check({**rows, "new": [0.25, *new[1:]]}).conclusion
    # A lead that as many losses as chance allows would not end keeps its word.
    assert truerank.check({**rows, "new": [0.5, *(one + 0.4 for one in new[1:])]}).conclusion.word == "HOLDS"
    assert found.word == "HOLDS EXCEPT" and "new loses much on few of 20 questions" in found.found


def test_blank_scores_are_told_at_both_ends() -> None:
    draw = random.Random(2)
    true = [draw.betavariate(0.8, 1.2) for _ in range(60)]
    both = [[min(1.0, max(0.0, one + draw.gauss(0, 0.15))) for one in true] for _ in "ab"]
    worst = sorted(range(60), key=both[0].__getitem__)[:15]
    rows: dict[str, list[object]] = {
        "id": [*range(60)],
        "a": [None if n in worst else x for n, x in enumerate(both[0])],
        "b": both[1],
    }
    found = truerank.check(rows, system="a", baseline="b").conclusion
    assert found.word != "HOLDS" and "a has no score for 15 of 60 questions" in found.reason
    left = [draw.sample(range(60), 6) for _ in "ab"]
    some = {
        name: [None if n in gone else min(1.0, x + lead) for n, x in enumerate(own)]
        for name, own, gone, lead in zip("ab", both, left, (0.2, 0), strict=True)
    }
    assert truerank.check({"id": [*range(60)], **some}, system="a", baseline="b").conclusion.word == "HOLDS"
    few = {"id": [*range(60)], "a": [x + 0.06 for x in both[0]], "b": [None, None, *both[0][2:]]}
    few["b"] = [x if n % 3 or x is None else x - 0.01 for n, x in enumerate(few["b"])]
    told = truerank.check(few, system="a", baseline="b").conclusion
    assert "b has no score for 2 of 60 questions" in told.reason
    assert truerank.check(few, system="a", baseline="b", scoring=Scoring(missing="skip")).conclusion.word == "HOLDS"
    assert (
        "Whatever these would be, the difference lies between "
        in truerank.check({"id": [*range(60)], **some}).conclusion.reason
    )


def test_a_lead_that_missing_scores_make_is_none() -> None:
    draw = random.Random(5)
    scores = {name: [min(1.0, lead + draw.random() / 2) for _ in range(40)] for name, lead in (("a", 0.5), ("b", 0.3))}
    blank = {"id": [*range(40)], "b": scores["b"], "a": [x if n % 3 else None for n, x in enumerate(scores["a"])]}
    found = truerank.check(blank, system="a", baseline="b").conclusion
    assert (found.word, found.found) == ("CANNOT TELL", "a has no score for 14 of 40 questions.")
    assert found.figure.startswith("With 0 for missing scores, the lead is gone: +0.269 → ")
    assert truerank.check({**blank, "a": scores["a"]}, system="a", baseline="b").conclusion.word == "HOLDS"


@pytest.mark.parametrize(("lost", "word"), [(0, "HOLDS"), (3, "HOLDS"), (12, "HOLDS SMALLER")])
def test_a_baseline_without_results_for_many_topics_forbids_a_plain_word(lost: int, word: str) -> None:
    grades, runs = collection(topics=60, lead=1.0)
    part = {topic: held for at, (topic, held) in enumerate(runs["plain"].items()) if at >= lost}
    found = truerank.check(qrels=grades, run={"good": runs["good"], "plain": part}, system="good").conclusion
    assert found.word == word and ("plain gave no answer to 12 of 60 topics" in found.found) == (word != "HOLDS")


def test_who_never_scores_has_a_scale() -> None:
    hits = [n % 3 > 0 for n in range(20)]
    found = truerank.check({"id": [*range(20)], "old": [0.0] * 20, "new": [float(one) for one in hits]})
    assert found.base is not None and found.base.value == pytest.approx(13 / 20)


def test_a_system_that_reads_queries_is_not_accused_on_a_small_file() -> None:
    docs, draw = [f"d{n}" for n in range(24)], random.Random(3)
    rows = [
        {"question": f"how is thing {n} done", "expected": [docs[2 * n]], "new": [docs[2 * n], *docs[1:8]], "old": old}
        for n, old in enumerate(draw.sample(docs, 8) for _ in range(12))
    ]
    assert truerank.check(rows, measure="RR").conclusion.word == "HOLDS"
    fixed = [{**row, "new": docs[:8], "expected": [docs[n % 3]]} for n, row in enumerate(rows)]
    assert truerank.check(fixed, measure="RR").conclusion.word != "HOLDS"


def test_what_only_people_know_is_a_key_of_the_settings(tmp_path: Path) -> None:
    draw = random.Random(4)
    scores = {name: [lead + draw.gauss(0.5, 0.1) for _ in range(40)] for name, lead in (("new", 0.2), ("old", 0))}
    pl.DataFrame({"id": [*range(40)], **scores}).write_csv(tmp_path / "scores.csv")
    found = truerank.check(tmp_path / "scores.csv", out=tmp_path / "out")
    assert found.conclusion.word == "HOLDS"
    assert "what no file shows" in (tmp_path / "out/report.html").read_text()
    settings = tmp_path / "check.yaml"
    settings.write_text("paths: [scores.csv]\ntuned_on_questions: yes\nbest_of_several: no\njudge_saw_names: yes\n")
    told = truerank.check(settings)
    assert told.conclusion.word == "HOLDS EXCEPT"
    assert "Questions of the test were seen while a system was made" in told.conclusion.reason
    assert " saw the names of the systems" in told.conclusion.reason and "best of several" not in told.conclusion.reason
    settings.write_text("paths: [scores.csv]\ntuned_on_questions: perhaps\n")
    with pytest.raises(OptionError, match="tuned_on_questions"):
        truerank.check(settings)
