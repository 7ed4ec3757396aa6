"""What rows, columns and numbers of tables mean: questions or groups, systems or runs, higher or lower is better."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from truerank.errors import InputError, TwoReadingsError
from truerank.sources.golden import read_golden

Rows = dict[str, Sequence[Any]]
QUESTIONS = [f"how do I set option {number} of the printer?" for number in range(8)]
SCORES: Rows = {"old": [0.41 + n / 50 for n in range(8)], "new": [0.47 + n / 49 for n in range(8)]}
GOLDEN: Rows = {
    "question": QUESTIONS,
    "expected": [f"d{n}" for n in range(8)],
    "retrieved": [f"d{n};x{n}" for n in range(8)],
}
DAYS = [f"2026-11-{n + 1:02d}" for n in range(8)]
DATA_SETS = ["NQ", "FiQA", "SciFact", "HotpotQA", "TREC-COVID", "Quora", "ArguAna", "FEVER"]


def by_system(name: str, values: Sequence[Any], score: str = "score") -> list[dict[str, Any]]:
    pairs = [(system, at, value) for system in SCORES for at, value in enumerate(values)]
    return [{"system": system, name: value, score: SCORES[system][at]} for system, at, value in pairs]


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("k", [*range(1, 9)]),
        ("cutoff", [1, 3, 5, 10, 20, 50, 100, 200]),
        ("top_k", ["top-1", "top-3", "top-5", "top-10", "top-20", "top-50", "top-100", "top-200"]),
        ("", ["hit@1", "hit@3", "hit@5", "hit@10", "hit@20", "hit@50", "hit@100", "hit@200"]),
        ("date", DAYS),
        ("when", DAYS),
        ("id", DAYS),
        ("week", [f"W{n}" for n in range(40, 48)]),
        ("category", ["billing", "login", "export", "import", "search", "seats", "plans", "api"]),
        ("query_type", ["billing", "login", "export", "import", "search", "seats", "plans", "api"]),
        ("product", ["billing", "login", "export", "import", "search", "seats", "plans", "api"]),
        ("fold", [*range(8)]),
        ("name", [f"fold {n}" for n in range(8)]),
        ("index", [f"epoch-{n}" for n in range(8)]),
        ("dataset", DATA_SETS),
        ("task", DATA_SETS),
        ("id", DATA_SETS),
        ("language", ["de", "en", "fr", "es", "it", "nl", "pl", "sv"]),
    ],
)
def test_rows_that_are_no_questions_are_asked_about(name: str, values: Sequence[Any]) -> None:
    with pytest.raises(TwoReadingsError, match="mean of many questions") as raised:
        read_golden({name or "Unnamed: 0": values, **SCORES})
    # Who says that they are questions is believed.
    assert len(read_golden({name or "Unnamed: 0": values, **SCORES}, raised.value.choices[0]).questions) == 8
    if name:
        with pytest.raises(InputError):
            read_golden({"Unnamed: 0": [*range(8)], name: values, **SCORES})
        with pytest.raises(InputError):
            read_golden(by_system(name, values))
        turned = [{"system": system, **dict(zip(map(str, values), SCORES[system], strict=True))} for system in SCORES]
        if name in ("top_k", "date", "name", "dataset"):
            with pytest.raises(TwoReadingsError, match="or questions"):
                read_golden(turned)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("question", QUESTIONS),
        ("frage", ["Passwort", "Rechnung", "Abo", "Export", "Import", "Suche", "Plan", "API"]),
        ("topic", ["airport", "music", "films", "wolves", "ships", "tea", "rain", "snow"]),
        ("qid", [*range(101, 109)]),
        ("case_id", ["login", "refund", "export", "import", "search", "seats", "plans", "api"]),
        ("Unnamed: 0", [*range(8)]),
        ("sample", [f"s-{n}" for n in range(8)]),
        ("what people ask", QUESTIONS),
        ("#", [*range(1, 9)]),
    ],
)
def test_rows_that_are_questions(name: str, values: Sequence[Any]) -> None:
    found = read_golden({name: values, **SCORES})
    assert list(found.scores) == ["old", "new"] and len(found.questions) == 8
    beside = read_golden({name: values, "category": list("abababab"), "fold": [1, 2] * 4, **SCORES})
    assert list(beside.scores) == ["old", "new"] and len(beside.questions) == 8
    assert "higher counts as better" in found.sentence()


@pytest.mark.parametrize(
    "measure",
    ["hallucination", "toxicity", "perplexity", "latency", "latency_ms", "cost", "error", "error_rate", "loss", "rank",
     "distance", "word_error_rate", "WER", "tokens", "total_cost_usd"],
)  # fmt: skip
def test_of_some_measures_the_lower_is_better(measure: str) -> None:
    tables: list[Any] = [
        {"question": QUESTIONS, **{f"{measure}_{name}": own for name, own in SCORES.items()}},
        {"question": QUESTIONS, **{f"{name} {measure}": own for name, own in SCORES.items()}},
        by_system("question", QUESTIONS, measure),
        [{**row, "metric": measure} for row in by_system("question", QUESTIONS, "value")],
    ]
    for table in tables[: 4 if measure != "rank" else 2]:
        found = read_golden(table, measure=measure)
        assert list(found.scores) == ["old", "new"] and "lower is better" in found.sentence()
        assert found.scores["new"]["value"].to_list() == pytest.approx([-value for value in SCORES["new"]])
    # Beside scores, such numbers are none, and that is said.
    beside = read_golden({"question": QUESTIONS, **SCORES, f"mean {measure}": [1.5] * 8})
    assert list(beside.scores) == ["old", "new"] and f"not taken for scores: 'mean {measure}'" in beside.remarks


@pytest.mark.parametrize("measure", ["ndcg@10", "reciprocal_rank", "error_free", "token_f1", "rating", "faithfulness"])
def test_of_others_the_higher_is_better(measure: str) -> None:
    found = read_golden({"question": QUESTIONS, **{f"{measure}_{name}": own for name, own in SCORES.items()}})
    assert [*found.scores.values()][1]["value"].to_list() == SCORES["new"] and "lower" not in found.sentence()


def test_two_measures_of_which_the_lower_is_better_are_no_systems() -> None:
    with pytest.raises(InputError, match="several measures"):
        read_golden({"question": QUESTIONS, "latency": SCORES["old"], "cost": SCORES["new"]})


@pytest.mark.parametrize("name", ["run_id", "trace_id", "session", "Run ID", "request_id"])
def test_an_id_of_each_row_is_no_system(name: str) -> None:
    ids = [f"r-{n}" for n in range(8)]
    found = read_golden({name: ids, **GOLDEN})
    assert list(found.runs) == ["retrieved"] and len(found.questions) == 8
    several = {"question": QUESTIONS * 2, "model": ["a"] * 8 + ["b"] * 8, name: [f"r-{n}" for n in range(16)]}
    both = read_golden({**several, "expected": [*GOLDEN["expected"]] * 2, "retrieved": [*GOLDEN["retrieved"]] * 2})
    assert list(both.runs) == ["a", "b"]


def test_a_column_of_measures_is_asked_about() -> None:
    rows = [
        {"traceId": f"{release}{n}", "input": question, "release": release, "name": name, "value": value + n / 99}
        for release in ("v1", "v2")
        for n, question in enumerate(QUESTIONS)
        for name, value in (("recall", 0.5), ("helpful", 0.0))
    ]
    for columns in ("", "system=release", "system=release,repeat=traceId", "system=release,score=value"):
        with pytest.raises(TwoReadingsError) as raised:
            read_golden(rows, columns)
        assert "measure=name" in raised.value.choices
    with pytest.raises(InputError, match=r"scores of 2 measures .*--measure recall"):
        read_golden(rows, "system=release,repeat=traceId,measure=name")
    found = read_golden(rows, "system=release,measure=name", measure="recall")
    assert found.scores["v1"]["value"].to_list() == pytest.approx([0.5 + n / 99 for n in range(8)])


def test_what_is_named_overrules_every_guess() -> None:
    answers = {"answer_a": ["It is the first one"] * 8, "answer_b": ["It is the second one"] * 8}
    rated: Rows = {"question": QUESTIONS, **answers, "rating_a": [1, 2, 3, 4] * 2, "rating_b": [2, 2, 4, 4] * 2}
    with pytest.raises(TwoReadingsError) as raised:
        read_golden(rated)
    assert raised.value.choices[0] == "score=rating_a+rating_b"
    found = read_golden(rated, raised.value.choices[0])
    assert found.scores["rating_b"]["value"].to_list() == [2, 2, 4, 4] * 2
    for name in ("answer_doc", "answer", "reference", "response_source"):
        ids = {name: GOLDEN["expected"], "question": QUESTIONS, "old": GOLDEN["retrieved"], "new": GOLDEN["retrieved"]}
        judged = read_golden(ids, f"expected={name},retrieved=old+new").qrels
        assert judged is not None and judged["doc_id"].to_list() == GOLDEN["expected"], name


def test_a_question_that_repeats_another_one_counts_once() -> None:
    texts = ["Is C the same as C++?", "Is C++ the same as C?", "Where is it", "where is  it?", "What is -5 + 1.5?"]
    texts += ["“Where is it?”", "What is 5 + 1.5?", "What's new?"]
    found = read_golden({"id": [*"abcdefgh"], "question": texts, "old": [0, 1, 0.3, 0.5, 1, 0.4, 1, 0], "new": [1] * 8})
    assert found.questions["topic_id"].to_list() == [*"abcegh"]
    assert found.scores["old"]["value"].to_list() == pytest.approx([0, 1, 0.4, 1, 1, 0])
    assert "2 of 8 questions repeat another one: each counts once, with its mean" in found.remarks
