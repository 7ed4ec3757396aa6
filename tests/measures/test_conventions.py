"""Scores by every convention, against plain Python, truerank's own scores, and the tools that have the convention."""

from __future__ import annotations

import itertools
import math
import random
import statistics
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import polars as pl
import pytest

import truerank
from truerank.measures import conventions
from truerank.measures.conventions import ConventionScorer, convention_range, scored_measure

Qrels = dict[str, dict[str, int]]
Run = dict[str, list[tuple[str, float]]]


def data(seed: int) -> tuple[Qrels, Run]:
    """Judgments with negative and high grades; a run with ties, missing and unjudged topics, out of order."""
    draw = random.Random(seed)
    docs = [f"D{number}" for number in range(40)]
    qrels = {f"{t}": {d: draw.choice((-1, 0, 0, 1, 1, 2, 3)) for d in draw.sample(docs, 14)} for t in range(9)}
    qrels["8"] = {"D1": 0, "D2": 0}
    run = {
        f"{t}": [(d, round(draw.uniform(0, 2), 1)) for d in draw.sample(docs, 3 if t == 1 else 25)]
        for t in (10, 3, 1, 0, 4, 5, 6, 8)
    }
    return qrels, run


def scorer(qrels: Qrels, run: Run) -> ConventionScorer:
    judged = [(t, d, g) for t, own in qrels.items() for d, g in own.items()]
    places = {t: {d: n for n, (d, _) in enumerate(sorted(own, key=lambda pair: pair[0]), 1)} for t, own in run.items()}
    rows = [(t, d, s, places[t][d]) for t, own in run.items() for d, s in own]
    return ConventionScorer(
        pl.DataFrame(judged, schema=["topic_id", "doc_id", "relevance"], orient="row"),
        pl.DataFrame(rows, schema=["topic_id", "doc_id", "score", "rank"], orient="row"),
    )


@cache
def drawn(seed: int) -> tuple[Qrels, Run, ConventionScorer]:
    """The data of a seed with what scores them, for all conventions."""
    return *data(seed), scorer(*data(seed))


class Plain:
    """One score by one convention, in loops."""

    def __init__(self, qrels: Qrels, run: Run, names: dict[str, str]) -> None:
        lines = [(t, d, g) for t, own in qrels.items() for d, g in own.items()]
        cut = {
            "first-half": lines[: len(lines) // 2],
            "second-half": lines[len(lines) // 2 :],
            "without-first-line": lines[1:],
            "without-last-line": lines[:-1],
            "lost-1": [line for line in lines if line[2] != 1],
            "retrieved": [line for line in lines if line[1] in dict(run.get(line[0], []))],
        }.get(names.get("judgments", ""), lines)
        qrels = {t: {d: g for own, d, g in cut if own == t} for t in dict.fromkeys(line[0] for line in cut)}
        self.qrels, self.run, self.names, self.capped = qrels, run, names, False

    def ranking(self, topic: str) -> list[str]:
        rows = list(self.run.get(topic, []))
        ties, how = self.names.get("ties", ""), self.names.get("run", "")
        if how == "rows-10":
            rows = rows[:10]
        if how == "line-lost":
            rows = rows[1:]
        if how == "reversed":
            rows = [(doc, -score) for doc, score in rows]
        if ties in COMPARED:
            compared: Callable[[float], Any] = COMPARED[ties]
            rows.sort(reverse=True)
            rows.sort(key=lambda row: compared(abs(row[1])), reverse=how != "reversed")
            return self.cut([doc for doc, _ in rows], topic)
        if ties == "rank":
            rows.sort(key=lambda row: row[0], reverse=how == "reversed")
        elif ties in ("best", "worst"):
            sign = 1 if ties == "best" else -1
            rows.sort(key=lambda row: (-row[1], -sign * self.grade(topic, row[0], -9)))
        else:
            order = {"": sorted(rows, reverse=True), "ascending": sorted(rows), "input": rows}
            order["reversed-input"] = rows[::-1]
            order["lines"] = rows
            by_number = sorted(rows, key=lambda row: int(row[0][1:]))
            order |= {"number": by_number[::-1], "number-ascending": by_number}
            rows = sorted(order.get(ties, order[""]), key=lambda row: -row[1])
        if ties == "lines":
            rows = self.run.get(topic, [])[1 if how == "line-lost" else 0 : 10 if how == "rows-10" else None]
            rows = rows[::-1] if how == "reversed" else rows
        return self.cut([doc for doc, _ in rows], topic)

    def cut(self, found: list[str], topic: str) -> list[str]:
        how = self.names.get("run", "")
        if how == "depth-5":
            found = found[:5]
        found = found[1:] if how == "first-lost" else found
        if self.names.get("unjudged"):
            least = -1 if self.names.get("grades") == "negative" else 0
            found = [doc for doc in found if self.qrels[topic].get(doc, -2) >= least]
        return found

    def grade(self, topic: str, doc: str, absent: int = 0) -> int:
        grade = self.qrels[topic].get(doc, absent)
        how = self.names.get("grades", "")
        if grade < 0 and how != "negative":
            return absent
        changed = {
            "binary": min(grade, 1),
            "shifted": grade - 1 if grade > 0 else grade,
            "binary-2": int(grade >= 2) if grade >= 0 else grade,
            "from-2": 0 if grade == 1 else grade,
            "exactly-one": 0 if grade > 1 else grade,
            "raised": grade + 1,
            "reversed": max(g for own in self.qrels.values() for g in own.values()) + 1 - grade if grade > 0 else grade,
        }
        return absent if doc not in self.qrels[topic] else changed.get(how, grade)

    def topics(self) -> list[str]:
        rule, every = self.names.get("topics", ""), list(self.qrels)
        own = list(self.run)
        return {
            "": every,
            "in-run": [t for t in every if t in own],
            "with-relevant": [t for t in every if any(g > 0 for g in self.qrels[t].values())],
            "in-run-with-relevant": [t for t in every if t in own and any(g > 0 for g in self.qrels[t].values())],
            "with-retrieved": [t for t in every if any(self.qrels[t].get(d, 0) > 0 for d, _ in self.run.get(t, []))],
            "of-run": own,
            "union": [*every, *(t for t in own if t not in every)],
            "first-half": every[: len(every) // 2],
            "first-5": every[:5],
            "second-half": every[len(every) // 2 :],
            "without-first": every[1:],
            "without-last": every[:-1],
            "without-last-of-run": [t for t in every if t != own[-1]],
        }[rule]

    def ndcg(self, topic: str, cutoff: int | None) -> float:
        def gain(grades: list[int], is_ideal: bool = False) -> float:
            gained, off = (self.names.get(name, "") for name in ("gain", "discount"))
            if is_ideal:
                gained, off = ("" if name.endswith("-run-only") else name for name in (gained, off))
            values = [g**2 if gained == "squared" else 2.0**g - 1 if gained else g for g in grades]
            by: dict[str, Callable[[int], float]] = {
                "": lambda n: math.log2(n + 1),
                "offset": lambda n: math.log2(n + 2),
                "jarvelin": lambda n: max(1.0, math.log2(n)),
                "natural": lambda n: 1 + math.log(n),
                "reciprocal": float,
                "none": lambda n: 1.0,
            }
            return sum(v / by[off.removesuffix("-run-only")](n) for n, v in enumerate(values, 1))

        shown = [self.grade(topic, doc) for doc in self.ranking(topic)]
        every = sorted((self.grade(topic, doc) for doc in self.qrels[topic]), reverse=True)
        ideal = {
            "": every[:cutoff],
            "retrieved": sorted(shown, reverse=True)[:cutoff],
            "retrieved-cut": sorted(shown[:cutoff], reverse=True),
            "uncut": every,
            "results": every[: len(shown[:cutoff])],
            "ones": [max(self.grade(t, d) for t in self.qrels for d in self.qrels[t])] * (cutoff or 14),
        }[self.names.get("ideal", "results" if self.names.get("gain") == "elasticsearch" else "")]
        best = gain(ideal, is_ideal=True)
        return gain(shown[:cutoff]) / best if best > 0 else 0.0

    def binary(self, topic: str, cutoff: int | None, family: str) -> float:
        level, divisor = int(self.names.get("level", "1")), self.names.get("divisor", "")
        scores = dict(self.run.get(topic, []))
        hits = [
            self.grade(topic, doc, -9) >= level and not ("scores" in self.names and scores[doc] <= 0)
            for doc in self.ranking(topic)
        ][:cutoff]
        every = sum(self.grade(topic, doc, -9) >= level for doc in self.qrels[topic])
        later = 1 if self.names.get("precision") == "offset" else 0
        if family == "RR":
            return next((1 / (n + later) for n, hit in enumerate(hits, 1) if hit), 0.0)
        if divisor == "hit":
            return float(any(hits))
        if family == "P":
            return sum(hits) / (max(1, len(hits)) if divisor == "returned" else cutoff or max(1, len(hits)))
        listed = [self.grade(topic, doc, -9) >= level for doc in self.ranking(topic)]
        found = sum(hits) if family == "AP" else sum(listed)
        below = {"capped": min(every, cutoff or every), "retrieved": found, "cutoff": cutoff or 25}.get(divisor, every)
        above = sum(hits)
        if self.names.get("ties") == "last":
            ranked = [scores[doc] for doc in self.ranking(topic)][:cutoff]
            ends = [max(n for n, score in enumerate(ranked, 1) if score == own) for own in ranked]
            precision = [sum(hits[:end]) / end for hit, end in zip(hits, ends, strict=True) if hit]
            return sum(precision) / below if below else 0.0
        if family == "AP" and self.names.get("precision") == "eleven-points":
            points = [(sum(hits[:n]) / every, sum(hits[:n]) / n) for n, hit in enumerate(hits, 1) if hit]
            best = [max((p for recall, p in points if recall >= t / 10 - 1e-12), default=0.0) for t in range(11)]
            return sum(best) / 11
        if self.capped:
            below = min(every, cutoff or every)
        if family == "AP":
            return sum(sum(hits[:n]) / (n + later) for n, hit in enumerate(hits, 1) if hit) / below if below else 0.0
        return above / below if below else 0.0

    def score(self, family: str, cutoff: int | None) -> float:
        family = self.names.get("family", family)
        self.capped = cutoff is None and self.names.get("cut", "").startswith("capped")
        if cutoff is None:
            number = self.names.get("cut", "").removeprefix("capped-")
            cutoff = int(number) if number else None
        else:
            changed = {"": cutoff, "one-less": cutoff - 1, "one-more": cutoff + 1, "none": None}
            name = self.names.get("cutoff", "")
            cutoff = changed[name] if name in changed else int(name)
        by = self.ndcg if family == "nDCG" else lambda t, k: self.binary(t, k, family)
        values = [by(topic, cutoff) if topic in self.qrels else 0.0 for topic in self.topics()]
        some = [value for value in values if value > 0]
        average = self.names.get("average", "")
        if average.startswith("batches-"):
            size = int(average.removeprefix("batches-"))
            values = [float(np.mean(values[at : at + size])) for at in range(0, len(values), size)]
        averages: dict[str, Callable[[], float]] = {
            "median": lambda: statistics.median(values),
            "maximum": lambda: max(values),
            "geometric": lambda: statistics.geometric_mean([max(value, 1e-5) for value in values]),
            "harmonic": lambda: statistics.harmonic_mean(some),
            "without-zeros": lambda: statistics.mean(some),
        }
        return averages.get(average, lambda: float(np.mean(values)))()


#: What is compared in place of a score.
COMPARED: dict[str, Callable[[float], Any]] = {
    "half": np.float16,
    "whole": int,
    "digits-1": lambda score: round(score, 1),
    "text": repr,
}


CODES = [
    "", "gain.squared", "gain.elasticsearch", "ideal.results", "grades.reversed", "topics.first-5", "judgments.lost-1",
    "gain.exponential", "discount.jarvelin", "discount.offset", "ideal.retrieved", "ideal.retrieved-cut",
    "ideal.uncut", "ideal.ones", "divisor.capped", "divisor.retrieved", "divisor.cutoff", "divisor.returned",
    "divisor.hit", "level.2", "level.3", "grades.binary", "grades.shifted", "grades.negative", "unjudged.left-out",
    "topics.in-run", "topics.with-relevant", "topics.in-run-with-relevant", "topics.with-retrieved", "topics.of-run",
    "topics.without-first", "topics.without-last", "ties.last",
    "topics.without-last-of-run", "ties.ascending", "ties.input", "ties.reversed-input", "ties.rank", "ties.best",
    "ties.worst", "gain.exponential-run-only", "discount.offset-run-only", "discount.natural", "discount.reciprocal",
    "discount.none", "precision.offset", "precision.eleven-points", "family.AP", "family.nDCG", "family.RR",
    "family.R", "grades.binary-2", "grades.from-2", "grades.exactly-one", "grades.raised", "cutoff.one-less",
    "cutoff.one-more", "cutoff.3", "cutoff.none", "cut.10", "cut.capped-5", "topics.union", "topics.first-half",
    "topics.second-half", "average.median", "average.without-zeros", "average.geometric", "average.harmonic",
    "average.maximum", "average.batches-8", "ties.lines", "ties.number", "ties.number-ascending", "ties.half",
    "ties.whole", "ties.digits-1", "ties.text", "run.line-lost", "judgments.retrieved", "judgments.first-half",
    "judgments.second-half", "judgments.without-first-line", "judgments.without-last-line",
    "run.depth-5", "run.rows-10", "run.reversed", "run.first-lost",
]  # fmt: skip


@pytest.mark.parametrize("code", CODES)
def test_every_convention_is_what_loops_say(code: str) -> None:
    measures = ("nDCG@10", "nDCG", "AP", "AP@10", "RR@10", "P@5", "R@10")
    for seed, measure in itertools.product((1, 2), measures):
        family, _, cutoff = measure.partition("@")
        qrels, run, own = drawn(seed)
        chosen = tuple(one for one in own.choices if one.code == code and (not one.serves or family in one.serves))
        names = {one.dimension: one.name for one in chosen}
        expected = Plain(qrels, run, names).score(family, int(cutoff) if cutoff else None)
        assert own.scores(scored_measure(measure), chosen).score == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("measure", ["AP", "AP@10", "RR@10", "P@5", "R@10"])
def test_scores_of_zero_and_less_are_what_loops_say(measure: str) -> None:
    family, _, cutoff = measure.partition("@")
    qrels, run = data(12)
    run = {topic: [(doc, round(score - 1.7, 1)) for doc, score in rows] for topic, rows in run.items()}
    own = scorer(qrels, run)
    found = own.scores(scored_measure(measure), of(own, "scores.positive")).score
    expected = Plain(qrels, run, {"scores": "positive"}).score(family, int(cutoff) if cutoff else None)
    assert found == pytest.approx(expected, abs=1e-12)
    assert found < own.scores(scored_measure(measure)).score
    above = {topic: [(doc, score + 9) for doc, score in rows] for topic, rows in run.items()}
    assert not of(scorer(qrels, above), "scores.positive")


@pytest.mark.parametrize("code", ["ties.ascending", "ties.input", "ties.reversed-input", "ties.double"])
def test_orders_of_ties_compare_whole_scores(code: str) -> None:
    # The second score is less by one part in a thousand million: 32 bits do not hold that.
    qrels = {"1": {"b": 1, "c": 1}}
    run = {"1": [("a", 2.0 - 1e-9), ("b", 2.0), ("c", 2.0 - 2e-9), ("d", 1.0)]}
    own = scorer(qrels, run)
    ap = scored_measure("AP")
    assert own.scores(ap, of(own, code)).score == pytest.approx((1 + 2 / 3) / 2)
    assert own.scores(ap).score == pytest.approx(1)
    frame, rows = frames(qrels, run)
    assert truerank.evaluate(frame, {"a": rows}, ["AP"], ties="ascending").of("a", "AP") == pytest.approx([5 / 6])


def test_pairs_of_conventions_are_what_loops_say() -> None:
    qrels, run = data(3)
    own, draw = scorer(qrels, run), random.Random(2)
    known = {one.code: one for one in own.choices}
    for _ in range(150):
        first, second = draw.sample([code for code in CODES if code], 2)
        chosen = (known[first], known[second])
        if chosen[0].dimension == chosen[1].dimension or any(one.serves and "nDCG" not in one.serves for one in chosen):
            continue
        expected = Plain(qrels, run, {one.dimension: one.name for one in chosen}).score("nDCG", 10)
        assert own.scores(scored_measure("nDCG@10"), chosen).score == pytest.approx(expected, abs=1e-12), chosen


def frames(qrels: Qrels, run: Run) -> tuple[pl.DataFrame, pl.DataFrame]:
    judged = [(t, d, g) for t, own in qrels.items() for d, g in own.items()]
    rows = [(t, d, s) for t, own in run.items() for d, s in own]
    return (
        pl.DataFrame(judged, schema=["topic_id", "doc_id", "relevance"], orient="row"),
        pl.DataFrame(rows, schema=["topic_id", "doc_id", "score"], orient="row"),
    )


def test_without_choices_it_is_what_evaluate_says() -> None:
    texts = "nDCG@10 nDCG nDCG(dcg='exp-log2')@5 nDCG(judged_only=True)@10 AP AP(rel=2)@10 RR P@10 R@10 Success@3 Rprec"
    names = texts.split()
    qrels, run = frames(*data(4))
    found, own = truerank.evaluate(qrels, {"a": run}, names), ConventionScorer(qrels, run)
    for name, measure in zip(names, found.measures, strict=True):
        values = own.scores(scored_measure(name)).values
        assert values == pytest.approx(found.of("a", measure), abs=1e-12), name


def of(own: ConventionScorer, *codes: str) -> tuple[Any, ...]:
    return tuple(one for one in own.choices if one.code in codes)


def test_trec_eval_averages_over_the_topics_of_the_run() -> None:
    pytrec_eval = pytest.importorskip("pytrec_eval")
    qrels, run = data(5)
    # pytrec_eval can hang on negative grades.
    qrels = {t: {d: max(g, 0) for d, g in own.items()} for t, own in qrels.items()}
    names = {"ndcg_cut_10": "nDCG@10", "map": "AP", "recip_rank": "RR", "P_5": "P@5", "recall_10": "R@10"}
    evaluator = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut.10", "map", "recip_rank", "P.5", "recall.10"})
    by_topic = evaluator.evaluate({t: dict(own) for t, own in run.items()})
    own = scorer(qrels, run)
    for theirs, name in names.items():
        mean = float(np.mean([values[theirs] for values in by_topic.values()]))
        assert own.scores(scored_measure(name), of(own, "topics.in-run")).score == pytest.approx(mean, abs=1e-6)


def test_scikit_learn_takes_the_retrieved_documents_for_the_ideal() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    qrels, run = data(6)
    qrels = {t: {d: max(g, 0) for d, g in own.items()} for t, own in qrels.items()}
    run = {t: [(d, s + n / 1e4) for n, (d, s) in enumerate(own)] for t, own in run.items() if t in qrels}
    values = [
        metrics.ndcg_score([[qrels[t].get(d, 0) for d, _ in own]], [[s for _, s in own]], k=10)
        for t, own in run.items()
    ]
    own = scorer(qrels, run)
    chosen = of(own, "topics.in-run", "ideal.retrieved")
    assert own.scores(scored_measure("nDCG@10"), chosen).score == pytest.approx(float(np.mean(values)), abs=1e-9)


def test_scikit_learn_averages_over_ties_and_sees_all_judged_documents() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    qrels, run = data(9)
    qrels = {t: {d: max(g, 0) for d, g in own.items()} for t, own in qrels.items()}
    run = {t: [(d, s + 1) for d, s in own] for t, own in run.items() if t in qrels}
    values = []
    for topic, rows in run.items():
        scores = dict(rows) | {doc: -1.0 for doc in qrels[topic] if doc not in dict(rows)}
        truth = [qrels[topic].get(doc, 0) for doc in scores]
        values.append(metrics.ndcg_score([truth], [[*scores.values()]], k=10))
    own = scorer(qrels, run)
    found = own.scores(scored_measure("nDCG@10"), of(own, "topics.in-run", "run.appended", "ties.averaged")).score
    assert found == pytest.approx(float(np.mean(values)), abs=1e-9)
    found = own.scores(scored_measure("AP"), of(own, "run.appended")).score
    assert found > own.scores(scored_measure("AP")).score


def test_gdeval_has_the_exponential_gain() -> None:
    ir_measures = pytest.importorskip("ir_measures")
    qrels, run = data(7)
    qrels = {t: {d: max(g, 0) for d, g in own.items()} for t, own in qrels.items()}
    run = {t: [(d, s + n / 1e4) for n, (d, s) in enumerate(own)] for t, own in run.items() if t in qrels}
    measure = ir_measures.nDCG(dcg="exp-log2") @ 10
    theirs = {
        one.query_id: one.value
        for one in ir_measures.iter_calc([measure], qrels, {t: dict(own) for t, own in run.items()})
    }
    own = scorer(qrels, run)
    found = own.scores(scored_measure("nDCG@10"), of(own, "gain.exponential"))
    values = dict(zip(found.topics, found.values, strict=True))
    assert theirs and all(values[topic] == pytest.approx(value, abs=1e-5) for topic, value in theirs.items())


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda doc: doc.lower(), "run.case"),
        (lambda doc: f"http://x.org/{doc}", "run.prefix"),
        (lambda doc: f"00{doc[1:]}" if doc[1:] != "0" else "0", "run.integer"),
    ],
)
def test_ids_in_another_form(change: Callable[[str], str], code: str) -> None:
    qrels, run = data(8)
    if code == "run.integer":
        qrels = {t: {d[1:]: g for d, g in own.items()} for t, own in qrels.items()}
        plain = {t: [(d[1:], s) for d, s in own] for t, own in run.items()}
    else:
        plain = run
    changed = {t: [(change(d), s) for d, s in own] for t, own in run.items()}
    own, base = scorer(qrels, changed), scorer(qrels, plain)
    measure = scored_measure("R@25")
    assert own.scores(measure, of(own, code)).score == pytest.approx(base.scores(measure).score, abs=1e-12)
    assert own.scores(measure).score < base.scores(measure).score


@pytest.mark.parametrize(
    ("odd", "judged", "choices"),
    [
        ("D7", "D1", set()),
        ("d7", "D1", {"case"}),
        ("D7", "d1", set()),
        ("É7", "d1", {"case"}),
        ("007", "d1", {"integer"}),
        ("d7", "007", {"integer"}),
        ("x/d7", "d1", {"prefix"}),
        ("d7", "x:d1", {"prefix"}),
        ("d1-3", "d1", {"passages-best", "passages-first", "passages-sum"}),
        ("d2-3", "d1", set()),
    ],
)
def test_one_id_of_any_part_of_a_run_allows_a_choice(
    odd: str, judged: str, choices: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conventions, "_PART", 3)
    plain = [("d", 1.0)] * 7 + [(odd, 0.5)]
    known = {one.code for one in scorer({"1": {judged: 1}}, {"1": plain}).choices}
    allowed = {"case"} if judged == "D1" or odd == "D7" else set()
    asked = {f"run.{name}" for name in ("case", "integer", "prefix", "passages-best", "passages-first", "passages-sum")}
    assert known & asked == {f"run.{name}" for name in choices | allowed}


def test_passages_counted_as_documents() -> None:
    qrels = {"1": {"a": 1, "c": 1}, "2": {"b": 1}}
    run = {
        "1": [("b-1", 9.0), ("a-2", 5.0), ("c-1", 4.0), ("c-2", 3.0), ("a-1", 1.0)],
        "2": [("a-1", 2.0), ("b-3", 1.0)],
    }
    own = scorer(qrels, run)
    measure = scored_measure("RR")
    expected = {"best": (1 / 2 + 1 / 2) / 2, "first": (1 / 2 + 1 / 2) / 2, "sum": (1 / 2 + 1 / 2) / 2}
    for how, value in expected.items():
        assert own.scores(measure, of(own, f"run.passages-{how}")).score == pytest.approx(value)
    ap = {how: own.scores(scored_measure("AP"), of(own, f"run.passages-{how}")).values[0] for how in expected}
    # By the best: b, a, c. By the first: b, c, a. By the sum: b, c, a.
    assert all(value == pytest.approx((1 / 2 + 2 / 3) / 2) for value in ap.values())


def test_the_range_over_conventions_holds_each_of_them() -> None:
    qrels, run = data(10)
    other = {topic: sorted(rows) for topic, rows in run.items()}
    other["3"] = [(doc, score / 2) for doc, score in other["3"]][::-1]
    frame, first = frames(qrels, run)
    second = frames(qrels, other)[1].with_columns(score=pl.col("score") + pl.int_range(pl.len()) % 3)
    found = convention_range(frame, first, second, "nDCG@10")
    assert found is not None and found.conventions > 4
    own = [ConventionScorer(frame, one).scores(scored_measure("nDCG@10")).score for one in (first, second)]
    assert found.system[0] <= own[0] <= found.system[1] and found.baseline[0] <= own[1] <= found.baseline[1]
    lowest = [
        ConventionScorer(frame, one).scores(scored_measure("nDCG@10"), found.lowest).score for one in (first, second)
    ]
    assert lowest[0] - lowest[1] == pytest.approx(found.difference[0])
    assert all(one.sensible for one in found.lowest)
    assert convention_range(frame, first, second, "ERR@20") is None
    relevant = frame.filter(pl.col("relevance") > 0)
    only = convention_range(relevant, first, second, "P@5")
    assert only is not None and only.system[1] < 1


def test_the_mean_over_sub_tasks_is_that_of_their_means() -> None:
    qrels, run = data(4)
    named = [f"{'android' if int(topic) < 2 else 'unix' if int(topic) < 5 else 'tex'}-{topic}" for topic in qrels]
    of_part = dict(zip(qrels, named, strict=True))
    own = scorer(
        {of_part[topic]: grades for topic, grades in qrels.items()},
        {of_part[topic]: rows for topic, rows in run.items() if topic in of_part},
    )
    ndcg = scored_measure("nDCG@10")
    plain = own.scores(ndcg)
    by_topic = dict(zip(plain.topics, plain.values.tolist(), strict=True))
    means = [
        np.mean([score for topic, score in by_topic.items() if topic.startswith(part)])
        for part in ("android", "unix", "tex")
    ]
    assert own.scores(ndcg, of(own, "average.subtasks")).score == pytest.approx(float(np.mean(means)), abs=1e-12)
    assert plain.score != pytest.approx(float(np.mean(means)), abs=1e-4)
    assert not of(scorer(qrels, run), "average.subtasks")
