"""The question of the files where only a sample of the topics is looked at."""

from __future__ import annotations

import random
from dataclasses import replace

import polars as pl
import pytest

import truerank
from truerank.claims.conclusion import concluded
from truerank.claims.results import Check, ClaimAnswer

TOPICS = 800


Runs = dict[str, dict[str, dict[str, float]]]


def _runs(topics: int, documents: int = TOPICS) -> Runs:
    """Two runs, the first of which ranks a topic's document higher."""
    draw = random.Random(1)
    runs: Runs = {"good": {}, "plain": {}}
    for at in range(topics):
        others = [f"d{draw.randrange(documents)}" for _ in range(10)]
        for name, place in (("good", draw.randrange(2)), ("plain", draw.randrange(1, 5))):
            ranked = [*dict.fromkeys([*others[:place], f"d{at}", *others[place:]])]
            runs[name][f"t{at}"] = {doc: float(-rank) for rank, doc in enumerate(ranked)}
    return runs


def _claim(judged: list[str], runs: Runs | None = None) -> Check:
    """The claim that the first is better, by judgments of given topics."""
    qrels = {topic: {f"d{at}": 1} for at, topic in enumerate(judged)}
    return truerank.check(qrels=qrels, run=runs or _runs(TOPICS), measure="nDCG@10", system="good", baseline="plain")


def test_many_topics_with_their_own_judgments_hold() -> None:
    found = _claim([f"t{at}" for at in range(TOPICS)])
    assert found.conclusion.word.startswith("HOLDS")
    assert "As the files are" not in found.conclusion.reason


@pytest.mark.parametrize("moved", ["shuffled", pytest.param("shifted", marks=pytest.mark.slow)])
def test_judgments_of_other_topics_are_a_fault_of_all_though_a_sample_was_looked_at(moved: str) -> None:
    topics = [f"t{at}" for at in range(TOPICS)]
    other = random.Random(2).sample(topics, TOPICS) if moved == "shuffled" else [*topics[1:], topics[0]]
    found = _claim(other)
    assert found.conclusion.word == "FILES AT FAULT"
    assert "judgments" in found.conclusion.reason


def test_the_few_topics_that_are_concerned_are_left_out() -> None:
    moved = [f"t{at}" for at in range(TOPICS)]
    moved[400:430] = [*moved[401:430], moved[400]]
    found = _claim(moved)
    assert found.conclusion.word.startswith("HOLDS")
    repair = found.answer("files").repair
    assert repair is not None and "another topic" in repair.what


def test_two_runs_without_a_topic_in_common_have_no_figure() -> None:
    runs = _runs(100)
    runs["good"] = {topic: docs for topic, docs in runs["good"].items() if int(topic[1:]) < 50}
    runs["plain"] = {topic: docs for topic, docs in runs["plain"].items() if int(topic[1:]) >= 60}
    found = _claim([f"t{at}" for at in range(100)], runs)
    assert found.conclusion.word == "FILES AT FAULT" and found.base is None
    assert found.conclusion.found == "No topic is in both: 50 are in good and 40 are in plain."


@pytest.mark.parametrize("same", [0.05, 0.3])
def test_a_run_of_another_set_with_some_of_the_same_ids_is_a_fault(same: float) -> None:
    runs, other = _runs(300), _runs(300)["plain"]
    fewer = int(same * 300)
    names = [f"t{at}" if at < fewer else f"other{at}" for at in range(300)]
    moved = [f"t{(at + 77) % 300}" for at in range(300)]
    runs["plain"] = {name: other[topic] for name, topic in zip(names, moved, strict=True)}
    found = _claim([f"t{at}" for at in range(300)], runs)
    assert found.conclusion.word == "FILES AT FAULT"
    assert f"plain answers other topics, of which {fewer} have ids of judged ones" in found.conclusion.found


def test_a_run_of_some_topics_and_of_many_that_nobody_judged_is_none() -> None:
    runs = _runs(300)
    runs["plain"] |= {f"more{topic}": docs for topic, docs in runs["plain"].items()}
    runs["plain"] = {topic: docs for topic, docs in runs["plain"].items() if topic[-1] in "12" or topic[0] == "m"}
    found = _claim([f"t{at}" for at in range(300)], runs)
    assert found.conclusion.word != "FILES AT FAULT"


def test_topics_that_neither_run_has_are_told() -> None:
    found = _claim([f"t{at}" for at in range(400)], _runs(300))
    assert found.conclusion.word.startswith("HOLDS")
    assert "100 of 400 judged topics" in found.conclusion.reason


def test_lists_that_were_cut_for_some_topics_are_an_exception_where_they_decide() -> None:
    runs = _runs(400)
    runs["good"], runs["plain"] = runs["plain"], runs["good"]
    cut = _claim([f"t{at}" for at in range(400)], {**runs, "plain": dict(runs["plain"])})
    assert cut.conclusion.word == "DOES NOT HOLD"
    for at in range(0, 390, 2):
        first, second = list(runs["plain"][f"t{at}"].items())[5:7]
        runs["plain"][f"t{at}"] = dict([first, second])
    found = _claim([f"t{at}" for at in range(400)], runs)
    assert found.conclusion.word == "HOLDS EXCEPT"
    assert found.conclusion.found.startswith("plain returns fewer than 10 results for 195 of 400 topics")
    assert found.conclusion.figure.startswith("Without the 195 topics where plain returns too few, plain is ahead: ")


def test_topics_with_results_that_fit_none_are_an_exception_where_they_decide() -> None:
    draw = random.Random(3)
    qrels = {f"t{at}": {f"d{at}.{one}": int(one < 4) for one in range(40)} for at in range(80)}
    every = [doc for grades in qrels.values() for doc in grades]
    runs: Runs = {"good": {}, "plain": {}}
    for at, (topic, grades) in enumerate(qrels.items()):
        for name, lists in runs.items():
            own = sorted(grades, key=lambda doc: -1.5 * grades[doc] - draw.gauss(0, 1))[:30]
            docs = draw.sample(every, 30) if name == "plain" and at % 4 == 1 else own
            lists[topic] = {doc: float(-place) for place, doc in enumerate(docs)}
    found = truerank.check(qrels=qrels, run=runs, measure="nDCG@10", system="good", baseline="plain")
    assert found.conclusion.word == "HOLDS EXCEPT"
    assert found.conclusion.found.startswith("For 20 of 80 topics plain's results fit no topic")
    assert found.conclusion.figure.startswith(
        "Without the 20 topics where plain's results fit none, the lead is gone: "
    )
    # The scores of 0 of these topics have no second name, and the remedy names the topics.
    assert "exactly 0" not in found.conclusion.reason and "t1, t13" in found.answer("files").settles


@pytest.mark.parametrize("alone", [True, False])
def test_lists_of_one_result_are_told(alone: bool) -> None:
    draw = random.Random(5)
    runs: Runs = {"good": {}, "plain": {}}
    qrels: Runs = {}
    for at in range(60):
        qrels[f"t{at}"] = {f"d{at}.{one}": int(one < 4) for one in range(60)}
        for lists in runs.values():
            order = sorted(qrels[f"t{at}"], key=lambda doc: int(doc.split(".")[1]) / 20 + draw.gauss(0, 1))[:40]
            lists[f"t{at}"] = {doc: float(-place) for place, doc in enumerate(order)}
    for at in range(0, 60, 6):
        # A system that answers a few questions with one sure result returns what others have, too.
        runs["good"][f"t{at}"] = {"d99.1" if alone else next(iter(runs["plain"][f"t{at}"])): 1.0}
    found = truerank.check(qrels=qrels, run=runs, measure="nDCG@10", system="good", baseline="plain")
    told = "good returns fewer than 10 results for 10 of 60 topics"
    assert told in found.answer("files").evidence


@pytest.mark.parametrize(("share", "whole"), [(0.25, (10, 10)), (0.5, (6, 9)), (0.52, (10, 10)), (1.0, (6, 9))])
def test_lists_that_were_cut_make_no_lead_whatever_their_share(share: float, whole: tuple[int, int]) -> None:
    """The median of lists of which some were cut is anywhere between the two depths."""
    draw = random.Random(11)
    qrels = {f"t{at}": {f"d{at}.{one}": int(one < 6) for one in range(40)} for at in range(100)}
    runs: Runs = {"good": {}, "plain": {}}
    for at, (topic, grades) in enumerate(qrels.items()):
        # Some topics have few results in both.
        depth = whole[0] if at % 20 == 19 else 10 if at % 20 < 18 else whole[1]
        for name, lists in runs.items():
            own = sorted(grades, key=lambda doc: -1.5 * grades[doc] - draw.gauss(0, 1))
            cut = 4 if name == "plain" and at < share * 100 else depth
            lists[topic] = {doc: float(-place) for place, doc in enumerate(own[:cut])}
    found = truerank.check(qrels=qrels, run=runs, measure="R@10", system="good", baseline="plain")
    assert found.base is not None and found.base.effect == "stands" and found.conclusion.word == "HOLDS EXCEPT"


@pytest.mark.parametrize(("short", "word"), [("plain", "HOLDS SMALLER"), ("good", "HOLDS"), ("", "HOLDS")])
def test_a_lead_beyond_the_lists_of_the_baseline_is_not_one_of_equal_depth(short: str, word: str) -> None:
    draw = random.Random(5)
    qrels = {f"t{at}": {f"d{at}.{one}": int(one < 20) for one in range(60)} for at in range(40)}
    runs: Runs = {"good": {}, "plain": {}}
    for name, sight in (("good", 2.0), ("plain", 1.5)):
        for topic, grades in qrels.items():
            own = sorted(grades, key=lambda doc: -sight * grades[doc] - draw.gauss(0, 1))
            runs[name][topic] = {
                doc: float(-at)
                for at, doc in enumerate(own[: 18 if name == short == "plain" else 28 if name == short else 30])
            }
    found = truerank.check(qrels=qrels, run=runs, measure="R@30", system="good", baseline="plain")
    assert found.conclusion.word == word
    assert ("plain returns 18 results per topic" in found.conclusion.reason) == (short == "plain")
    assert ("as short as plain's, " in found.conclusion.reason) == (short == "plain")


@pytest.mark.parametrize(("kept", "spoilt"), [(12, False), (30, True)])
def test_a_measure_that_looks_beyond_the_lists_of_the_system_is_told_and_no_exception(kept: int, spoilt: bool) -> None:
    draw = random.Random(6)
    qrels = {f"t{at}": {f"d{at}.{one}": int(one < 12) for one in range(40)} for at in range(60)}
    runs: Runs = {"reranked": {}, "first": {}}
    for topic, grades in qrels.items():
        own = sorted(grades, key=lambda doc: -1.0 * grades[doc] - draw.gauss(0, 1))
        best = sorted(own[:12], key=lambda doc: -grades[doc])
        rest = sorted(own[12:], key=lambda doc: grades[doc]) if spoilt else own[12:]
        for name, docs in (("reranked", (best + rest)[:kept]), ("first", own[:30])):
            runs[name][topic] = {doc: float(-at) for at, doc in enumerate(docs)}
    found = truerank.check(qrels=qrels, run=runs, measure="P@5", measures="R@30", system="reranked", baseline="first")
    policies = found.answer("policies")
    assert any("R@30" in text for text in policies.exception) == spoilt
    assert ("first leads by R@30 only where the results of reranked have ended" in policies.remark) != spoilt


def test_what_speaks_against_a_claim_does_not_show_it() -> None:
    claim = truerank.check(
        qrels={"t": {"d": 1}, "u": {"d": 1}}, run={"a": {"t": {"d": 1.0}}, "b": {"u": {"d": 1.0}}}
    ).claim
    assert claim is not None
    claim = replace(claim, comparisons=1, confidence=0.1)
    against = ClaimAnswer("files", "FAULTS", "", "not shown", "", exception=("It saw the judgments.",), plausible=True)
    other = replace(against, question="unjudged", exception=("Unjudged documents may be relevant.",))
    told = concluded(claim, None, (against, other))
    assert told.word == "CANNOT TELL"
    assert "Unjudged documents may be relevant." in told.means and "It saw the judgments." not in told.reason


def test_topics_with_equal_judgments_and_no_results_are_no_copies() -> None:
    qrels = {f"t{at}": {f"d{at}": 1} for at in range(300)} | {f"u{at}": {"d5": 1} for at in range(5)}
    found = truerank.check(qrels=qrels, run=_runs(300), measure="nDCG@10")
    assert all(answer.repair is None for answer in found.answers)


def test_lines_of_relevant_documents_first_are_no_exception() -> None:
    runs = _runs(300)
    rows = [(f"t{at}", doc, int(doc == f"d{at}" and at % 5 > 0)) for at in range(300) for doc in runs["good"][f"t{at}"]]
    qrels = pl.DataFrame(
        sorted(rows, key=lambda row: (row[0], -row[2])), ["topic_id", "doc_id", "relevance"], orient="row"
    )
    found = truerank.check(qrels=qrels, run=runs, measure="nDCG@10", system="good", baseline="plain")
    assert found.conclusion.word.startswith("HOLDS")
    assert not any("give their grades away" in text for one in found.answers for text in one.exception)


@pytest.mark.parametrize(
    ("forms", "length", "counted"),
    [
        (("How do I reset option {}?", "how do I reset  option {}", "“How do I reset option {}”"), 3, True),
        (("How do I reset option {}?", "Option {}: what makes it as new", "undo changes of {}"), 4, True),
        (("How do I reset option {}?", "What is option {} for?"), 2, False),
    ],
)
def test_questions_that_ask_the_same_count_once(forms: tuple[str, ...], length: int, *, counted: bool) -> None:
    draw = random.Random(3)
    rows = []
    for at in range(12):
        old, new = ([f"{name}{at}-{number}" for number in range(length)] for name in "on")
        (old if at in (2, 5) else new if draw.random() < 0.7 else [""])[0] = f"kb-{at}"
        cells = {"expected": f"kb-{at}", "old": ";".join(old), "new": ";".join(new)}
        rows += [{"question": form.format(at), **cells} for form in forms]
    found = truerank.check(rows, system="new")
    assert found.base is not None and found.base.topics == 12 * len(forms)
    assert (found.repaired is not None and found.repaired.topics == 12) is counted
    repair = found.answer("files").repair
    assert (repair is not None and "copies of another one" in repair.what) is counted


@pytest.mark.parametrize(("topics", "word"), [(60, "HOLDS EXCEPT"), (70, "HOLDS")])
def test_judgments_in_sight_on_a_tenth_of_the_topics_forbid_a_plain_word(topics: int, word: str) -> None:
    draw, docs = random.Random(1), [f"d{at}" for at in range(60)]
    qrels = {f"t{at}": dict.fromkeys(draw.sample(docs, 8), 1) for at in range(topics)}
    runs: Runs = {"good": {}, "plain": {}}
    for at, (topic, relevant) in enumerate(qrels.items()):
        for name, sight in (("good", 99.0 if at < 6 else 1.0), ("plain", 0.6)):
            runs[name][topic] = {doc: sight * (doc in relevant) + draw.gauss(0, 1) for doc in docs}
    found = truerank.check(qrels=qrels, run=runs, system="good", baseline="plain")
    (fault,) = found.answer("files").facts["faults"]
    # The lead is shown without these topics, too: what forbids the word is how many they are.
    assert (fault["kind"], len(fault["topics"])) == ("judgments-in-sight", 6)
    assert found.conclusion.word == word


def _lead(failed: int, even: float = 0.0, results: int = 50) -> Check:
    """Two runs that are much alike; the baseline's lists of some topics are in random order."""
    draw, docs = random.Random(4), [f"d{at}" for at in range(results)]
    qrels = {f"t{at}": dict.fromkeys(draw.sample(docs, 5), 1) for at in range(50)}
    runs: Runs = {"good": {}, "plain": {}}
    for at, (topic, relevant) in enumerate(qrels.items()):
        fit = {doc: 2.0 * (doc in relevant) + draw.gauss(0, 1) for doc in docs}
        for name, more in (("good", even), ("plain", 0.0)):
            runs[name][topic] = {doc: fit[doc] + more * (doc in relevant) + draw.gauss(0, 0.4) for doc in docs}
        if at < failed:
            runs["plain"][topic] = {doc: draw.gauss(0, 1) for doc in docs}
    return truerank.check(qrels=qrels, run=runs, system="good", baseline="plain")


@pytest.mark.parametrize(
    ("failed", "even", "results", "alike"),
    [
        (12, 0.0, 50, 38),
        (25, 0.0, 50, 25),
        (0, 0.3, 50, 0),
        # Where the lead is everywhere, a part makes it larger only.
        (12, 0.8, 50, 0),
        # Short lists do not tell how alike they are.
        (12, 0.0, 15, 0),
    ],
)
def test_a_lead_that_is_gone_where_two_runs_are_alike_has_no_plain_word(
    failed: int, even: float, results: int, alike: int
) -> None:
    found = _lead(failed, even, results).conclusion
    assert found.word == ("HOLDS EXCEPT" if alike else "HOLDS")
    told = f"On the {alike} topics where both return the most similar results, " in found.reason
    assert told is bool(alike) is found.found.startswith(f"The lead comes from {50 - alike} of 50 topics")
    assert bool(alike) is ("a file is wrong on these topics: t" in " ".join(found.settles))
