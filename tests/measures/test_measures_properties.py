"""Properties of the measures: an obviously right count of each, bounds, and what must not change a score."""

from __future__ import annotations

import gzip
import itertools
import math
import random
import struct
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from truerank.errors import InputError
from truerank.measures import Evaluation, Policy, evaluate
from truerank.records import Qrel, RunRow

Grades = Mapping[str, int]
Results = Mapping[str, tuple[int, float]]

DOCUMENTS = ["a", "b", "B", "c", "é", "10", "9", "d-1", "d", "z"]
TOPICS = ["1", "01", "2", "ü"]
#: Ties in 64 and in 32 bits, scores beyond 32 bits, and none above another by accident.
SCORES = [2.0, 1.0, 1.0 + 1e-12, 0.0, -1.0, -1.0000001, 1e300, 2e300, 1e-300, 0.5, 3.25]

#: Topics and their judgments: graded, with pooled but unjudged documents (negative), and topics without any relevant.
QRELS = st.dictionaries(
    st.sampled_from(TOPICS),
    st.dictionaries(st.sampled_from(DOCUMENTS), st.sampled_from([-1, 0, 0, 1, 1, 2, 3]), min_size=1),
    min_size=1,
)
RUN = st.dictionaries(
    st.sampled_from([*TOPICS, "other"]),
    st.dictionaries(st.sampled_from(DOCUMENTS), st.tuples(st.integers(0, 12), st.sampled_from(SCORES)), min_size=1),
    min_size=1,
)
POLICIES = st.builds(
    Policy,
    ties=st.sampled_from(["trec_eval", "ascending", "rank"]),
    missing=st.sampled_from(["default", "skip"]),
    depth=st.sampled_from([None, None, 1, 3, 6]),
    rel=st.sampled_from([1, 1, 2, 3]),
)
SETTINGS = settings(max_examples=25)


def single(number: float) -> float:
    """The number as 32 bits hold it."""
    try:
        return float(struct.unpack("f", struct.pack("f", number))[0])
    except OverflowError:
        return math.copysign(math.inf, number)


def ranked(results: Results, ties: str, depth: int | None) -> list[str]:
    """The documents of a topic, best first."""
    documents = sorted(results, key=str.encode)
    if ties == "rank":
        documents.sort(key=lambda document: results[document][0])
    elif ties == "ascending":
        documents.sort(key=lambda document: -results[document][1])
    else:
        documents = sorted(documents, key=str.encode, reverse=True)
        documents.sort(key=lambda document: -single(results[document][1]))
    return documents[:depth]


# -- each measure as its definition says, over one topic


class Topic(NamedTuple):
    """A ranking and the judgments, and the lowest relevant grade."""

    documents: list[str]
    grades: Grades
    rel: int

    def relevant(self, document: str) -> bool:
        return self.grades.get(document, -1) >= self.rel

    def hits(self) -> list[bool]:
        return [self.relevant(document) for document in self.documents]

    def all_relevant(self) -> int:
        return sum(grade >= self.rel for grade in self.grades.values())


def ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def precision(topic: Topic, k: int) -> float:
    return sum(topic.hits()[:k]) / k


def recall(topic: Topic, k: int) -> float:
    return ratio(sum(topic.hits()[:k]), topic.all_relevant())


def average_precision(topic: Topic, k: int | None = None) -> float:
    hits = topic.hits()[:k]
    found = sum(precision(topic, place + 1) for place, hit in enumerate(hits) if hit)
    return ratio(found, topic.all_relevant())


def first_rank(topic: Topic, k: int | None, none: float) -> float:
    return next((float(rank) for rank, hit in enumerate(topic.hits()[:k], 1) if hit), none)


def gained(topic: Topic, k: int | None, gain: Callable[[int], float], discount: Callable[[int], float]) -> float:
    def total(grades: Sequence[int]) -> float:
        return sum(gain(max(0, grade)) / discount(rank) for rank, grade in enumerate(grades[:k], 1))

    best = total(sorted(topic.grades.values(), reverse=True))
    return ratio(total([topic.grades.get(document, 0) for document in topic.documents]), best)


def r_precision(topic: Topic) -> float:
    return ratio(sum(topic.hits()[: topic.all_relevant()]), topic.all_relevant())


def binary_preference(topic: Topic) -> float:
    relevant = topic.all_relevant()
    others = sum(0 <= grade < topic.rel for grade in topic.grades.values())
    above, total = 0, 0.0
    for document in topic.documents:
        if topic.relevant(document):
            total += 1 - (min(above, relevant) / min(relevant, others) if above else 0)
        elif topic.grades.get(document, -1) >= 0:
            above += 1
    return ratio(total, relevant)


def interpolated(topic: Topic, wanted: float) -> float:
    needed = int(wanted * topic.all_relevant() + 0.9)
    return max(
        (precision(topic, rank) for rank in range(1, len(topic.documents) + 1)
         if sum(topic.hits()[:rank]) >= max(1, needed)),
        default=0.0,
    )  # fmt: skip


def judged(topic: Topic, k: int | None) -> float:
    # As in ir_measures, a document that was pooled (a negative grade) counts.
    seen = topic.documents[:k]
    return ratio(sum(document in topic.grades for document in seen), len(seen))


def rank_biased(topic: Topic, p: float, k: int | None) -> float:
    return (1 - p) * sum(p**place for place, hit in enumerate(topic.hits()[:k]) if hit)


def set_precision(topic: Topic, *, relative: bool = False) -> float:
    found = sum(topic.hits())
    return ratio(found, min(len(topic.documents), topic.all_relevant()) if relative else len(topic.documents))


def set_f(topic: Topic) -> float:
    return ratio(2 * set_precision(topic) * recall(topic, 10**6), set_precision(topic) + recall(topic, 10**6))


def log_discount(rank: int) -> float:
    return math.log2(rank + 1)


MEASURES: dict[str, Callable[[Topic], float]] = {
    "P@1": lambda topic: precision(topic, 1),
    "P@5": lambda topic: precision(topic, 5),
    "R@3": lambda topic: recall(topic, 3),
    "Success@2": lambda topic: float(any(topic.hits()[:2])),
    "AP": average_precision,
    "AP@4": lambda topic: average_precision(topic, 4),
    "RR": lambda topic: 1 / first_rank(topic, None, math.inf),
    "RR@2": lambda topic: 1 / first_rank(topic, 2, math.inf),
    "nDCG": lambda topic: gained(topic, None, float, log_discount),
    "nDCG@3": lambda topic: gained(topic, 3, float, log_discount),
    "nDCG(dcg='exp-log2')@4": lambda topic: gained(topic, 4, lambda grade: 2.0**grade - 1, log_discount),
    "nDCG(gains={1:0,2:5})@4": lambda topic: gained(
        topic._replace(grades={name: {1: 0, 2: 5}.get(grade, grade) for name, grade in topic.grades.items()}),
        4, float, log_discount,
    ),
    "NCG@3": lambda topic: gained(topic, 3, float, lambda rank: 1),
    "NCG@100": lambda topic: gained(topic, 100, float, lambda rank: 1),
    "Rprec": r_precision,
    "Bpref": binary_preference,
    "IPrec@0.0": lambda topic: interpolated(topic, 0.0),
    "IPrec@0.5": lambda topic: interpolated(topic, 0.5),
    "IPrec@1.0": lambda topic: interpolated(topic, 1.0),
    "Judged@4": lambda topic: judged(topic, 4),
    "Judged": lambda topic: judged(topic, None),
    "SetP": set_precision,
    "SetP(relative=True)": lambda topic: set_precision(topic, relative=True),
    "SetR": lambda topic: recall(topic, 10**6),
    "SetF": set_f,
    "SetAP": lambda topic: set_precision(topic) * recall(topic, 10**6),
    "NumRet": lambda topic: len(topic.documents),
    "NumRel": Topic.all_relevant,
    "NumRelRet": lambda topic: sum(topic.hits()),
    "RBP(rel=1,p=0.8)": lambda topic: rank_biased(topic._replace(rel=1), 0.8, None),
    "RBP(rel=2,p=0.5)@3": lambda topic: rank_biased(topic._replace(rel=2), 0.5, 3),
    "AP(rel=2)": lambda topic: average_precision(topic._replace(rel=2)),
    "P(rel=3)@2": lambda topic: precision(topic._replace(rel=3), 2),
    "RR(rel=2)@5": lambda topic: 1 / first_rank(topic._replace(rel=2), 5, math.inf),
    "MFR@5": lambda topic: first_rank(topic, 5, 6.0),
    "MFR(none=50)@2": lambda topic: first_rank(topic, 2, 50.0),
    "HMFR@5": lambda topic: first_rank(topic, 5, math.inf),
}  # fmt: skip
#: Those that can be asked to pass over results without a judgment.
JUDGED_ONLY = {
    "P(judged_only=True)@2": "P@2", "AP(judged_only=True)": "AP", "RR(judged_only=True)": "RR",
    "nDCG(judged_only=True)@3": "nDCG@3", "R(judged_only=True)@3": "R@3", "NCG(judged_only=True)@3": "NCG@3",
    "MFR(judged_only=True)@5": "MFR@5", "Rprec(judged_only=True)": "Rprec",
}  # fmt: skip
COUNTS = ("NumRet", "NumRel", "NumRelRet")
RANKS = ("MFR@5", "MFR(none=50)@2", "HMFR@5", "MFR(judged_only=True)@5")


def scored(qrels: Mapping[str, Grades], run: Mapping[str, Results], measures: Any, policy: Policy) -> Evaluation:
    """The scores, from records."""
    return evaluate(
        [Qrel(topic, document, grade) for topic, grades in qrels.items() for document, grade in grades.items()],
        {"run": [RunRow(topic, document, rank, score) for topic, results in run.items()
                 for document, (rank, score) in results.items()]},
        measures,
        policy,
    )  # fmt: skip


def has_common_topic(qrels: Mapping[str, Grades], run: Mapping[str, Results]) -> bool:
    return not set(qrels).isdisjoint(run)


def values_of(evaluation: Evaluation) -> dict[str, list[float]]:
    return {name: evaluation.values[0, place].tolist() for place, name in enumerate(evaluation.measures)}


# -- agreement with the definitions


@settings(max_examples=100)
@given(QRELS, RUN, POLICIES)
def test_agree_with_their_definitions(qrels: Any, run: Any, policy: Policy) -> None:
    assume(has_common_topic(qrels, run))
    found = scored(qrels, run, list(MEASURES), policy)
    # Where the policy's grade is not 1, a grade of 1 that a measure names itself is spelled out.
    assert len(found.measures) == len(MEASURES)
    for place, (name, definition) in enumerate(MEASURES.items()):
        for number, topic in enumerate(found.topics):
            value = found.values[0, place, number]
            if topic not in run and policy.missing == "skip":
                assert math.isnan(value), name
                continue
            documents = ranked(run.get(topic, {}), policy.ties, policy.depth)
            expected = definition(Topic(documents, qrels[topic], policy.rel))
            assert value == pytest.approx(expected, abs=1e-12), (name, topic)


@SETTINGS
@given(QRELS, RUN, POLICIES)
def test_judged_only_is_the_ranking_without_the_unjudged(qrels: Any, run: Any, policy: Policy) -> None:
    assume(has_common_topic(qrels, run))
    found = values_of(scored(qrels, run, list(JUDGED_ONLY), policy))
    kept = {
        topic: {
            document: (place, float(-place))
            for place, document in enumerate(ranked(results, policy.ties, policy.depth))
            if qrels.get(topic, {}).get(document, -1) >= 0
        }
        for topic, results in run.items()
    }
    plain = {topic: results or {"nothing judged": (0, 0.0)} for topic, results in kept.items()}
    expected = values_of(scored(qrels, plain, list(JUDGED_ONLY.values()), policy))
    for ours, same in JUDGED_ONLY.items():
        assert found[ours] == pytest.approx(expected[same], abs=1e-12, nan_ok=True), ours


@SETTINGS
@given(QRELS, RUN, POLICIES)
def test_ms_marco_goes_by_the_rank_column(qrels: Any, run: Any, policy: Policy) -> None:
    assume(has_common_topic(qrels, run))
    found = scored(qrels, run, "RR_MSMARCO@3", policy)
    for number, topic in enumerate(found.topics):
        documents = ranked(run.get(topic, {}), "rank", policy.depth)
        if topic in run or policy.missing == "default":
            expected = 1 / first_rank(Topic(documents, qrels[topic], 1), 3, math.inf)
            assert found.values[0, 0, number] == pytest.approx(expected, abs=1e-12)


# -- bounds, and how measures hang together


@SETTINGS
@given(QRELS, RUN, POLICIES)
def test_bounds(qrels: Any, run: Any, policy: Policy) -> None:
    assume(has_common_topic(qrels, run))
    found = scored(qrels, run, [*MEASURES, *JUDGED_ONLY], policy)
    for name, values in zip([*MEASURES, *JUDGED_ONLY], found.values[0], strict=True):
        known = values[~np.isnan(values)]
        if name in RANKS:
            assert (known >= 1).all(), name
        elif name in COUNTS:
            assert (known >= 0).all(), name
            assert (known == np.rint(known)).all(), name
        else:
            assert (known >= 0).all(), name
            # Sums of fractions may miss 1 by the last bits.
            assert (known <= 1 + 1e-12).all(), name


@SETTINGS
@given(QRELS, RUN, POLICIES)
def test_how_measures_hang_together(qrels: Any, run: Any, policy: Policy) -> None:
    assume(has_common_topic(qrels, run))
    names = "P@1 P@2 P@3 R@1 R@2 R@3 NCG@3 RR RR@2 RR@3 MFR@3 HMFR@3 MFR@100 AP Success@1 nDCG@1 NCG@1"
    found = scored(qrels, run, names, policy)
    mean = dict(zip(found.measures, found.mean[0].tolist(), strict=True))
    topic = {name: np.array(values) for name, values in values_of(found).items()}
    known = ~np.isnan(topic["P@1"])
    for first, second in itertools.pairwise(("R@1", "R@2", "R@3")):
        assert (topic[first][known] <= topic[second][known]).all()
    assert (topic["RR@2"][known] <= topic["RR@3"][known]).all()
    assert (topic["RR@3"][known] <= topic["RR"][known]).all()
    assert (topic["P@1"][known] == topic["Success@1"][known]).all()
    assert topic["nDCG@1"] == pytest.approx(topic["NCG@1"], nan_ok=True)
    # No first rank between 1 and 2: the arithmetic mean cannot lie below 2 - P@1.
    assert mean["MFR@3"] >= 2 - mean["P@1"] - 1e-12
    assert mean["MFR@3"] <= mean["MFR@100"] + 1e-12
    if mean["RR@3"]:
        assert mean["HMFR@3"] == pytest.approx(1 / mean["RR@3"])
    else:
        assert mean["HMFR@3"] == math.inf


@SETTINGS
@given(QRELS, st.sampled_from([1, 2, 3]), st.randoms(use_true_random=False))
def test_the_best_ranking_scores_one(qrels: Any, rel: int, draw: random.Random) -> None:
    best: dict[str, dict[str, tuple[int, float]]] = {}
    for topic, grades in qrels.items():
        order = sorted(grades, key=lambda document: (-max(0, grades[document]), draw.random()))
        best[topic] = {document: (rank, -float(rank)) for rank, document in enumerate(order, 1)}
    full = ("AP", "Rprec", "RR", "IPrec@1.0", "SetR", "Bpref", f"Success(rel={rel})@1")
    found = scored(qrels, best, ["nDCG", "nDCG@2", "NCG@3", *full], Policy(rel=rel))
    for number, topic in enumerate(found.topics):
        grades = list(qrels[topic].values())
        wanted = [1.0] * 3 if max(grades) > 0 else [0.0] * 3
        wanted += [1.0 if max(grades) >= rel else 0.0] * len(full)
        assert found.values[0, :, number] == pytest.approx(wanted, abs=1e-12)


# -- what must not change a score

MIXED = [*MEASURES, *JUDGED_ONLY, "RR_MSMARCO@3"]


def same(first: Evaluation, second: Evaluation) -> bool:
    """Whether two evaluations have the same values to the last bit, whatever the order of topics."""
    if first.measures != second.measures or sorted(first.topics) != sorted(second.topics):
        return False
    order = [second.topics.index(topic) for topic in first.topics]
    return np.array_equal(first.values, second.values[:, :, order], equal_nan=True)


def lines_of(qrels: Mapping[str, Grades], run: Mapping[str, Results]) -> tuple[list[str], list[str]]:
    return (
        [f"{topic} 0 {document} {grade}" for topic, grades in qrels.items() for document, grade in grades.items()],
        [f"{topic} Q0 {document} {rank} {score!r} tag" for topic, results in run.items()
         for document, (rank, score) in results.items()],
    )  # fmt: skip


def written(path: Path, lines: Sequence[str], separator: str = " ", end: str = "\n") -> str:
    data = "".join(separator.join(line.split(" ")) + end for line in lines).encode()
    path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
    return str(path)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(QRELS, RUN, POLICIES, st.randoms(use_true_random=False))
def test_the_order_of_lines_and_the_form_of_files(
    tmp_path: Path, qrels: Any, run: Any, policy: Policy, draw: random.Random
) -> None:
    assume(has_common_topic(qrels, run))
    judged_lines, run_lines = lines_of(qrels, run)
    plain = evaluate(written(tmp_path / "a.qrels", judged_lines), written(tmp_path / "a.run", run_lines), MIXED, policy)
    assert same(plain, evaluate(str(tmp_path / "a.qrels"), {"a": [
        RunRow(topic, document, rank, score) for topic, results in run.items()
        for document, (rank, score) in results.items()
    ]}, MIXED, policy))  # fmt: skip
    draw.shuffle(judged_lines)
    draw.shuffle(run_lines)
    mixed = evaluate(
        written(tmp_path / "b.qrels.gz", judged_lines, "\t", "\r\n"),
        written(tmp_path / "b.run.gz", run_lines, "  ", "\n\n"),
        MIXED,
        policy,
    )
    assert same(plain, mixed)


@SETTINGS
@given(QRELS, RUN, RUN, POLICIES)
def test_runs_and_measures_do_not_touch_each_other(qrels: Any, first: Any, second: Any, policy: Policy) -> None:
    assume(has_common_topic(qrels, first) and has_common_topic(qrels, second))
    alone = [scored(qrels, run, MIXED, policy) for run in (first, second)]
    rows = {
        name: [
            RunRow(topic, document, *result) for topic, results in run.items() for document, result in results.items()
        ]
        for name, run in (("x", first), ("y", second))
    }
    judgments = [Qrel(topic, name, grade) for topic, grades in qrels.items() for name, grade in grades.items()]
    together = evaluate(judgments, rows, MIXED, policy)
    assert np.array_equal(together.values, np.concatenate([one.values for one in alone]), equal_nan=True)
    for name in ("AP@4", "nDCG@3", "RR_MSMARCO@3"):
        one = scored(qrels, first, name, policy)
        place = MIXED.index(name)
        assert np.array_equal(one.values[0, 0], alone[0].values[0, place], equal_nan=True)


@SETTINGS
@given(QRELS, RUN, POLICIES)
def test_topics_without_judgments_and_rising_scores(qrels: Any, run: Any, policy: Policy) -> None:
    assume(has_common_topic(qrels, run))
    plain = scored(qrels, run, MIXED, policy)
    more = {**run, "never judged": {"a": (1, 1.0), "b": (2, 0.5)}}
    assert same(plain, scored(qrels, more, MIXED, policy))
    assert scored(qrels, more, "AP", policy).coverage["run"].unknown == len(set(more) - set(qrels))
    # Halves are exact in 32 and in 64 bits, but for what the smallest of these numbers would lose.
    halved = {
        topic: {name: (rank, score / 2 if abs(score) < 1e30 else score) for name, (rank, score) in results.items()}
        for topic, results in run.items()
    }
    assert same(plain, scored(qrels, halved, MIXED, policy))


@SETTINGS
@given(QRELS, RUN, POLICIES)
def test_what_is_not_judged_matters_only_by_its_place(qrels: Any, run: Any, policy: Policy) -> None:
    """Unjudged documents at the end of the ranking change no measure that looks at places only."""
    assume(has_common_topic(qrels, run))
    policy = Policy(ties=policy.ties, missing=policy.missing, rel=policy.rel)
    names = "P@5 AP RR nDCG NCG@3 Rprec Bpref SetR IPrec@0.5 MFR@5 NumRelRet R@3"
    longer = {
        topic: {**results, **{f"new-{n}": (100 + n, -1e301 - n * 1e299) for n in range(3)}}
        for topic, results in run.items()
    }
    # Beyond 32 bits all these scores are one: that is what the end means under trec_eval's ties.
    assert same(scored(qrels, run, names, policy), scored(qrels, longer, names, policy))


# -- faults have their lines

FAULTS = {
    "run": ["{0} Q0 {1} 1 2", "{0} Q0 {1} first 2 t", "{0} Q0 {1} 1 nan t", "{0} Q0 {1} 1 two t", "{0} Q0 {1} 1 2 t t"],
    "qrels": ["{0} 0", "{0} 0 {1} yes", "{0} 0 {1} 0.5x", "{0} 0 {1} 1 1"],
}


def test_a_repeat_in_a_topic_without_judgments_is_said_too(tmp_path: Path) -> None:
    qrels = written(tmp_path / "a.qrels", ["1 0 a 1"])
    for lines in (["1 Q0 a 1 2 t", "9 Q0 a 1 2 t", "9 Q0 a 2 1 t"], ["9 Q0 a 1 2 t", "1 Q0 a 1 2 t", "9 Q0 a 2 1 t"]):
        found = evaluate(qrels, written(tmp_path / "a.run", lines), "AP")
        assert found.mean[0, 0] == 1 and "a: 1 result repeated, such as a for topic 9" in found.remarks[0]


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(QRELS, RUN, st.sampled_from(["run", "qrels"]), st.integers(0, 40), st.integers(0, 4))
def test_faults_have_their_lines(tmp_path: Path, qrels: Any, run: Any, file: str, place: int, kind: int) -> None:
    assume(has_common_topic(qrels, run))
    judged_lines, run_lines = lines_of(qrels, run)
    lines = run_lines if file == "run" else judged_lines
    place = min(place, len(lines) - 1)
    cells = lines[place].split()
    lines[place] = FAULTS[file][kind % len(FAULTS[file])].format(cells[0], cells[2])
    paths = written(tmp_path / "a.qrels", judged_lines), written(tmp_path / "a.run", run_lines)
    with pytest.raises(InputError) as caught:
        evaluate(*paths, "AP RR_MSMARCO@3")
    assert caught.value.line == place + 1
    assert caught.value.where == paths[file == "run"]
    assert caught.value.remedy
