"""What rows, columns and numbers of tables mean: questions or groups, systems or runs, higher or lower is better."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from truerank.errors import InputError, TwoReadingsError
from truerank.sources.golden import read_golden
from truerank.sources.recognition import opened

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
        ("id", ["de", "en", "fr", "es", "it", "nl", "pl", "sv"]),
        ("run", [f"run-{n}" for n in range(8)]),
        ("annotator", [f"A{n}" for n in range(8)]),
        ("language", ["de", "en", "fr", "es", "it", "nl", "pl", "sv"]),
    ],
)
def test_rows_that_are_no_questions_are_asked_about(name: str, values: Sequence[Any]) -> None:
    with pytest.raises(TwoReadingsError, match="the mean of many questions") as raised:
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
        ("customer question", QUESTIONS),
        ("#", [*range(1, 9)]),
        ("question number", [*range(1, 9)]),
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


@pytest.mark.parametrize(
    "measure",
    ["ndcg@10", "reciprocal_rank", "recip_rank", "cost efficiency", "error_free", "token_f1", "rating", "faithfulness"],
)
def test_of_others_the_higher_is_better(measure: str) -> None:
    found = read_golden({"question": QUESTIONS, **{f"{measure}_{name}": own for name, own in SCORES.items()}})
    assert [*found.scores.values()][1]["value"].to_list() == SCORES["new"] and "lower" not in found.sentence()


def test_of_objects_in_objects_the_longer_side_has_the_questions(tmp_path: Path) -> None:
    for name, keys in (("a.json", QUESTIONS), ("b.json", DATA_SETS)):
        by_system = {system: dict(zip(keys, own, strict=True)) for system, own in SCORES.items()}
        by_question = {key: {system: by_system[system][key] for system in SCORES} for key in keys}
        for value in (by_system, by_question):
            (tmp_path / name).write_text(json.dumps(value))
            if keys is DATA_SETS:
                with pytest.raises(TwoReadingsError, match="data sets"):
                    read_golden(tmp_path / name)
            else:
                assert read_golden(tmp_path / name).scores["new"]["value"].to_list() == SCORES["new"]


def test_systems_that_are_called_after_what_they_lower() -> None:
    table = {"question": QUESTIONS, "error_aware": SCORES["old"], "plain": SCORES["new"]}
    assert "not taken for scores: 'error_aware'" in read_golden(table).remarks
    found = read_golden(table, "score=error_aware+plain")
    assert list(found.scores) == ["error_aware", "plain"] and found.scores["plain"]["value"].to_list() == SCORES["new"]
    ranks = {"question": QUESTIONS, "rank_old": [1, 90, 3, 4, 1, 2, 7, 30], "rank_new": [1, 2, 3, 4, 1, 2, 7, 3]}
    assert read_golden(ranks).scores["old"]["value"].to_list()[1] == -90
    hits = {"question": QUESTIONS, "first_hit_rank_old": [1, 2, 3, 4, 1, 2, 7, 3], "first_hit_rank_new": [1] * 7 + [""]}
    with pytest.raises(InputError, match="1 rank missing"):
        read_golden(hits)


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
        {"trace": f"{release}{n}", "input": question, "variant": release, "criterion": name, "value": value + n / 99}
        for release in ("v1", "v2")
        for n, question in enumerate(QUESTIONS)
        for name, value in (("recall", 0.5), ("helpful", 0.0))
    ]
    others = [row | {"criterion": str(row["criterion"]).replace("recall", "concise")} for row in rows]
    with pytest.raises(TwoReadingsError) as raised:
        read_golden(others, "system=variant")
    assert raised.value.choices == ("measure=criterion", "system=variant+criterion", "repeat=criterion")
    for columns in ("", "system=variant", "system=variant,repeat=trace", "system=variant,score=value"):
        with pytest.raises(TwoReadingsError) as raised:
            read_golden(rows, columns)
        assert "measure=criterion" in raised.value.choices
    with pytest.raises(InputError, match=r"scores of 2 measures .*--measure recall"):
        read_golden(rows, "system=variant,repeat=trace,measure=criterion")
    found = read_golden(rows, "system=variant,measure=criterion", measure="recall")
    assert found.scores["v1"]["value"].to_list() == pytest.approx([0.5 + n / 99 for n in range(8)])


def test_what_is_named_overrules_every_guess() -> None:
    answers = {"answer_a": ["It is the first one"] * 8, "answer_b": ["It is the second one"] * 8}
    rated: Rows = {"question": QUESTIONS, **answers, "rating_a": [1, 2, 3, 4] * 2, "rating_b": [2, 2, 4, 4] * 2}
    with pytest.raises(TwoReadingsError) as raised:
        read_golden(rated)
    assert raised.value.choices[0] == "score=rating_a+rating_b"
    found = read_golden(rated, raised.value.choices[0])
    assert found.scores["rating_b"]["value"].to_list() == [2, 2, 4, 4] * 2
    told = {"question": QUESTIONS, "correct old": [0, 1] * 4, "correct new": [1] * 8, "answer old": ["It is so"] * 8}
    assert list(read_golden(told).scores) == ["correct old", "correct new"]
    with pytest.raises(TwoReadingsError, match='--columns "question=my names"') as raised:
        read_golden({"my names": ["Ann", "Bob"] * 4, **SCORES})
    raised.value.name_keywords()
    assert 'columns="question=my names"' in str(raised.value)
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


def test_a_guess_gives_way_to_what_is_named() -> None:
    lists = dict.fromkeys(("bm25", "dense"), GOLDEN["retrieved"])
    named = "expected=gold,retrieved=bm25+dense"
    tables: dict[str, Rows] = {
        "a model that is none": {"gold": GOLDEN["expected"], "model": ["x", "y"] * 4, **lists},
        "documents that are others": {
            "gold": GOLDEN["expected"],
            "doc_id": [*"aabbccdd"],
            "topic": [*"aabbccdd"],
            **lists,
        },
        "a second expected one": {"gold": GOLDEN["expected"], "relevant_docs": ["z1;z2"] * 8, **lists},
        "scores of a judge": {"gold": GOLDEN["expected"], "faithfulness": SCORES["old"], **lists},
        "lists of something else": {"gold": GOLDEN["expected"], "steps": ["u;v;w"] * 8, **lists},
    }
    for what, table in tables.items():
        found = read_golden({"question": QUESTIONS, **table}, f"{named},question=question")
        assert list(found.runs) == ["bm25", "dense"] and len(found.questions) == 8, what
        assert found.qrels is not None and found.qrels["doc_id"].to_list() == GOLDEN["expected"], what
    scored = {
        "question": QUESTIONS,
        "model": ["x", "y"] * 4,
        "precision_model": SCORES["old"],
        "recall_model": SCORES["new"],
    }
    assert len(read_golden(scored, "score=precision_model+recall_model").scores) == 2
    by_row = {"question": [q for q in QUESTIONS for _ in "ab"], "gold": [d for d in GOLDEN["expected"] for _ in "ab"]}
    for columns in ("retrieved=hit", "document=hit"):
        ((_, run),) = read_golden(
            {**by_row, "hit": [f"d{n // 2 + n % 2}" for n in range(16)]}, f"expected=gold,{columns}"
        ).runs.items()
        assert len(run) == 16


def test_cells_that_are_no_numbers_are_left_out_and_counted() -> None:
    for failed in ("timeout", "ERR", "skipped by hand"):
        for own in ([failed, 4, 3, "", 5, 2, failed, 1], [failed, 0.4, 0.3, "", 0.5, 0.2, failed, 0.1]):
            table: Rows = {"question": QUESTIONS, "rating_old": own, "rating_new": [3, 4, 3, 1, 5, 2, 2, 1]}
            if isinstance(own[1], float):
                table["rating_new"] = SCORES["new"]
            for given in (table, [
                {"question": q, "system": name, "score": table[name][n]}
                for n, q in enumerate(QUESTIONS) for name in ("rating_old", "rating_new")
            ]):  # fmt: skip
                found = read_golden(given)
                assert [len(found.scores[name]) for name in ("rating_old", "rating_new")] == [5, 8]
                said = " ".join(found.remarks)
                assert (
                    f"rating_old: 2 cells are no numbers, such as '{failed}'" in said and "1 score is missing" in said
                )
    most = read_golden({"question": QUESTIONS, "rating_new": SCORES["new"], "rating_old": ["crash"] * 6 + [0.5, 0.25]})
    assert list(most.scores) == ["rating_new"] and "6 of its cells, such as 'crash'" in " ".join(most.remarks)


@pytest.mark.parametrize("name", ["run", "rater", "k"])
def test_columns_that_tell_rows_of_a_question_apart(name: str) -> None:
    numbers = {key: [value + n for value in own for n in (0.0, 0.1)] for key, own in SCORES.items()}
    wide: Rows = {"question": [q for q in QUESTIONS for _ in "ab"], name: [1, 10] * 8, **numbers}
    with pytest.raises(TwoReadingsError) as raised:
        read_golden(wide)
    assert any(f"repeat={name}" in choice for choice in raised.value.choices)
    found = read_golden(wide, f"score=old+new,repeat={name}")
    assert found.scores["new"]["value"].to_list() == pytest.approx([value + 0.05 for value in SCORES["new"]])
    long = [
        {"question": row[0], "model": system, name: row[1], "hit": row[2 + at]}
        for row in zip(*wide.values(), strict=True)
        for at, system in enumerate(SCORES)
    ]
    if name == "k":
        with pytest.raises(TwoReadingsError, match="with 'k'"):
            read_golden(long)


def test_means_above_or_below_the_questions_are_left_out() -> None:
    table = {"question": ["Average", *QUESTIONS, "mean"], **{name: [0.5, *own, 0.5] for name, own in SCORES.items()}}
    found = read_golden(table)
    assert len(found.questions) == 8 and "rows of means are left out: 2 ('Average', 'mean')" in found.remarks


def by_arm(name: str = "setup", **measures: float) -> list[dict[str, Any]]:
    """Scores of two systems on 8 questions by several measures, in rows of question and system."""
    pairs = [(n, name, system) for n in range(8) for system in SCORES]
    return [
        {"query_id": n + 101, column: system, **{key: SCORES[system][n] - less for key, less in measures.items()}}
        for n, column, system in pairs
    ]


@pytest.mark.parametrize("name", ["arm", "mode", "strategy", "variant", "Sistem", "what"])
def test_what_each_question_has_once_names_systems(name: str) -> None:
    rows = by_arm(name, **{"recall@5": 0.1, "mrr": 0.0})
    for missing in (rows, rows[:-1]):
        for columns in ("", f"system={name}"):
            found = read_golden(missing, columns, measure="MRR")
            assert list(found.scores) == ["old", "new"] and "1 other measure left out: recall@5" in str(found.remarks)
            assert found.scores["old"]["value"].to_list() == pytest.approx(SCORES["old"])
    with pytest.raises(
        InputError, match=r"scores of 2 measures \(recall@5, mrr\)\. choose one: --measure recall@5, or mrr"
    ):
        read_golden(rows, measure="nDCG@10")
    assert list(read_golden([{**row, "score": row["mrr"]} for row in by_arm(name, mrr=0.0)]).scores) == ["old", "new"]
    (empty,) = read_golden([*rows[:-1], rows[-1] | {"mrr": ""}], measure="mrr").remarks[1:]
    assert empty.startswith("new: 1 score is missing")


def test_two_settings_of_a_system_are_asked_about() -> None:
    rows = [row | {"k": k} for row in by_arm(ndcg=0.0, mrr=0.1) for k in (256, 512)]
    with pytest.raises(TwoReadingsError, match="'setup', 'k'"):
        read_golden(rows, measure="ndcg")
    with pytest.raises(TwoReadingsError) as raised:
        read_golden(rows, "system=setup", measure="ndcg")
    assert raised.value.beside("system=setup").choices == ("system=setup,repeat=k",)
    assert list(read_golden(rows, "system=setup,repeat=k", measure="ndcg").scores) == ["old", "new"]


@pytest.mark.parametrize("word", ["mean", "ALL", "overall", "RATA-RATA", "avg.", "macro avg", "Mean score"])
@pytest.mark.parametrize("key", ["topic", "query_id", "Query", "case_id"])
def test_rows_of_means_are_no_questions(word: str, key: str) -> None:
    rows = [
        {"experiment": f"{system} v1", key: at, "split": "dev", "ndcg": value}
        for system, own in SCORES.items()
        for at, value in [(word, 0.9), *enumerate(own)]
    ]
    for table in (rows, [*rows[1:], rows[0]]):
        found = read_golden(table, "system=experiment")
        assert all(len(own) == 8 for own in found.scores.values()) and len(found.scores) == 2
        assert found.remarks[0] == f"rows of means are left out: 2 ('{word.rstrip('.')}')"
    # A system may be called so, and a question.
    systems = [{"pooling": {"old": "cls"}.get(row["setup"], "mean"), **row} for row in by_arm(ndcg=0.0)]
    assert list(read_golden([{k: x for k, x in row.items() if k != "setup"} for row in systems]).scores) == [
        "cls",
        "mean",
    ]
    words = ["airport", "music", "films", word, "ships", "tea", "rain", "snow"]
    assert len(read_golden({"query": words, **SCORES}).questions) == 8


def test_measures_of_one_system_are_no_systems() -> None:
    table = {"id": [*range(8)], "label": [1] * 8, "faithfulness": SCORES["old"], "answer_relevancy": SCORES["new"]}
    for columns in ("", "score=label+answer_relevancy", "score=faithfulness+answer_relevancy"):
        with pytest.raises(TwoReadingsError, match="columns of several measures") as raised:
            read_golden(table, columns)
        assert not any("+" in choice for choice in raised.value.choices)
        assert list(read_golden(table, raised.value.choices[0]).scores) == [raised.value.choices[0][6:]]
    beside = {f"{name}_{system}": own for name in ("mrr", "faithfulness") for system, own in SCORES.items()}
    with pytest.raises(TwoReadingsError) as raised:
        read_golden({"id": [*range(8)], **beside})
    assert raised.value.choices == ("score=mrr_old+mrr_new", "score=faithfulness_old+faithfulness_new")
    assert len(read_golden({"id": [*range(8)], **beside}, "score=mrr_old+faithfulness_new").scores) == 2


def test_ranks_of_first_hits_can_be_named() -> None:
    table: Rows = {"query": QUESTIONS, "BM25 (text)": [1, 3, 2, 4, 1, 5, 2, 3], "hybrid": [1, 2, 1, 3, 1, 2, 2, 1]}
    with pytest.raises(TwoReadingsError, match="places") as raised:
        read_golden(table)
    higher, lower = (read_golden(table, choice) for choice in raised.value.choices)
    assert higher.scores["hybrid"]["value"].to_list() == [-x for x in lower.scores["hybrid"]["value"]]
    assert "lower is better" in lower.sentence() and "higher counts as better" in higher.sentence()
    with pytest.raises(InputError, match=r"1 rank missing .*: nothing was found, or nothing asked"):
        read_golden({**table, "hybrid": [*table["hybrid"][1:], ""]}, raised.value.choices[1])
    rows = [
        {"query": q, "arm": arm, "place": x}
        for arm in ("BM25 (text)", "hybrid")
        for q, x in zip(QUESTIONS, table[arm], strict=True)
    ]
    assert "lower is better" in read_golden(rows, "rank=place").sentence()


def test_times_alone_are_asked_about() -> None:
    table: Rows = {
        "question": QUESTIONS,
        "embed_s": SCORES["old"],
        "total_s": SCORES["new"],
        "num_chunks_retrieved": [4] * 8,
    }
    with pytest.raises(TwoReadingsError) as raised:
        read_golden(table)
    assert raised.value.choices == ("score=total_s", "rank=total_s")


def test_counts_and_flags_are_no_scores() -> None:
    counts = [
        row | {"references": 20 + n, "citations": n, "flag": n % 2 > 0}
        for n, row in enumerate(by_arm(vital_precision=0, all_recall=0.1))
    ]
    with pytest.raises(TwoReadingsError) as raised:
        read_golden(counts)
    assert raised.value.choices[:2] == ("score=vital_precision", "score=all_recall")
    assert list(read_golden(counts, "score=vital_precision").scores) == ["old", "new"]
    rows = [
        {"topic": n, "title": QUESTIONS[n], "metric": name, **{key: own[n] * less for key, own in SCORES.items()},
         "status": "tied", "is_primary": name == "MRR"}
        for n in range(8) for name, less in (("MRR", 1), ("judged_count@10", 20))
    ]  # fmt: skip
    with pytest.raises(InputError, match="choose one: --measure MRR, or judged_count@10"):
        read_golden(rows)
    for columns in ("", "measure=metric,score=old+new"):
        found = read_golden(rows, columns, measure="mrr")
        assert {name: own["value"].to_list() for name, own in found.scores.items()} == SCORES


def test_means_are_said_to_be_means() -> None:
    tables: list[Any] = [
        {
            "variant": ["keyword", "vector", "BEST"],
            "hit_rate@5": [0.9, 0.8, 0.9],
            "mrr": [0.7, 0.8, 0.8],
            "num_questions": [21] * 3,
        },
        [{"Retriever": name, "k": k, "Recall": 0.3, "Precision": k / 9} for name in ("BM25", "Dense") for k in (1, 3)],
    ]
    for table in tables:
        with pytest.raises(InputError, match=r"means over all questions .* no scores of single ones"):
            read_golden(table)


def test_answers_in_prose_are_not_split() -> None:
    prose = [
        "Orders under 35 cost 4; others are free of charge.",
        "If it arrived damaged, this may qualify for a full refund.",
    ]
    table: Rows = {"question": QUESTIONS, "reference": prose * 4, "faithfulness": SCORES["old"]}
    assert list(read_golden(table).scores) == ["faithfulness"]
    contexts = {**table, "retrieved_contexts": [[f"{prose[n % 2]} More, too."] for n in range(8)]}
    with pytest.raises(TwoReadingsError) as raised:
        read_golden(contexts)
    judged = read_golden(contexts, raised.value.choices[-1]).qrels
    assert judged is not None and len(judged) == 8
    with pytest.raises(InputError, match="no text of 'reference' is a result"):
        read_golden({**contexts, "retrieved_contexts": [["Something else, it is"]] * 8}, raised.value.choices[-1])


def test_a_question_that_comes_twice_with_other_results() -> None:
    table: Rows = {
        "Pass or Fail": ["PASS", "FAIL"] * 4,
        "Found or not": ["FOUND", "NOT FOUND"] * 4,
        "Page": [f"/p-{n}" for n in range(8)],
        "Search Term": [*QUESTIONS[1:], QUESTIONS[1]],
    }
    with pytest.raises(TwoReadingsError) as raised:
        read_golden(table)
    for choice in raised.value.choices:
        assert choice.startswith("repeat=") and len(read_golden(table, choice).questions) == 7


@pytest.mark.parametrize(("marks", "again"), [("", 2), ("?", 2), (" please", 0)])
def test_questions_with_the_text_of_another_one_are_counted(marks: str, again: int) -> None:
    asked = [*QUESTIONS, *(f"{text.rstrip('?').upper()}{marks}" for text in QUESTIONS[:2])]
    rows = [{"question": text, "expected": f"d{n}", "retrieved": [f"d{n}", "d99"]} for n, text in enumerate(asked)]
    said = [one for one in read_golden(rows).remarks if "the text of another one; a check counts each text once" in one]
    assert [one.split()[0] for one in said] == [str(again)] * (again > 0)


@pytest.mark.parametrize(
    "names",
    [
        ("top1_doc_match", "top3_doc_match"),
        ("top1_doc_match", "top1_article_match"),
        ("top1_doc_match", "top3_doc_match", "found_doc"),
        ("found_document", "found_page"),
        ("first_3", "first_5"),
        ("in top 1", "in top 5", "in top 10"),
        ("correct@1", "correct@3"),
    ],
)
def test_cut_offs_and_parts_of_one_system_are_no_systems(names: tuple[str, ...]) -> None:
    rows: Rows = {"query": QUESTIONS} | {name: [n % (at + 2) < 1 for n in range(8)] for at, name in enumerate(names)}
    with pytest.raises(TwoReadingsError, match="several measures") as raised:
        read_golden(rows)
    assert raised.value.choices[0] == f"score={names[0]}"
    assert len(read_golden(rows, raised.value.choices[0]).scores) == 1
    # Who says that they are systems is believed.
    assert len(read_golden(rows, f"score={'+'.join(names)}").scores) == len(names)


@pytest.mark.parametrize(
    "names",
    [("bm25_top5", "dense_top5"), ("run1", "run2"), ("chunk_128", "chunk_256"), ("bm25_correct", "dense_correct")],
)
def test_systems_whose_names_have_numbers_are_systems(names: tuple[str, str]) -> None:
    rows: Rows = {"query": QUESTIONS} | {name: [n % (at + 2) < 1 for n in range(8)] for at, name in enumerate(names)}
    assert list(read_golden(rows).scores) == list(names)


@pytest.mark.parametrize("names", [("hit@15", "hit@12_sem"), ("source_mrr", "source_recall_at_k")])
@pytest.mark.parametrize("beside", ["rank", "retrieved"])
def test_scores_beside_results_are_asked_about(tmp_path: Path, names: tuple[str, str], beside: str) -> None:
    column = [1 + n % 3 for n in range(12)] if beside == "rank" else [f"d{n};x{n}" for n in range(12)]
    rows: Rows = {"id": [f"q{n}" for n in range(12)], beside: column}
    rows |= {name: [(n + at) % 4 / 3 if n % 4 else 1.0 for n in range(12)] for at, name in enumerate(names)}
    path = tmp_path / "results.csv"
    pl.DataFrame(rows).write_csv(path)
    with pytest.raises(TwoReadingsError) as raised:
        opened(str(path))
    assert f"score={names[0]}" in raised.value.choices and "annotators" not in raised.value.fault
    for choice in raised.value.choices:
        read = opened(str(path), choice)
        assert read.scores is not None and len(read.scores.questions) == 12


@pytest.mark.parametrize(
    ("setting", "values"),
    [("chunk_size", (128, 256)), ("temperature", (0.0, 0.7)), ("chunker", "ab")],
)
def test_settings_of_systems_are_named(setting: str, values: Sequence[Any]) -> None:
    rows = [
        {
            setting: value,
            "method": method,
            "query_id": f"q{n}",
            "reciprocal_rank": 1 / (n + place),
            "note": f"n{n * n % 3}{at}",
        }
        for at, value in enumerate(values)
        for place, method in enumerate(("dense", "sparse"), 1)
        for n in range(8)
    ]
    for columns in ("", "score=reciprocal_rank"):
        with pytest.raises(TwoReadingsError, match=f"with '{setting}'") as raised:
            read_golden(rows, columns)
        assert f"system=method+{setting}" in raised.value.choices and "note" not in str(raised.value)
    both = read_golden(rows, f"system={setting}+method")
    assert list(both.scores) == [f"{value} {method}" for value in values for method in ("dense", "sparse")]
    assert both.measure == "reciprocal_rank" and list(read_golden(rows, f"repeat={setting}").scores) == [
        "dense",
        "sparse",
    ]
    many = [row | {"recall_at_3": 0.5} for row in rows]
    with pytest.raises(InputError, match=r"2 measures .*--measure reciprocal_rank, or recall_at_3"):
        read_golden(many, measure="nDCG@10")
    assert len(read_golden(many, f"system={setting}+method", measure="reciprocal_rank").scores) == 4


def test_segments_with_a_count_are_means() -> None:
    names = ["overall", "jargon", "plain_language", "numeric_fact"]
    parts = {name: {"hit_rate": 0.25 + at / 9, "mrr": 0.2, "n": 112 - 9 * at} for at, name in enumerate(names)}
    rows = [{"system": system, "id": name} | own for system in SCORES for name, own in parts.items()]
    for measure in ("", "mrr", "nDCG@10"):
        with pytest.raises(InputError, match="means over all questions"):
            read_golden(rows, measure=measure)
    # A question may have a count of its own.
    for form in ("q{}", "{}"):
        asked = [row | {"id": form.format(at % 4), "n": 20} for at, row in enumerate(rows)]
        assert len(read_golden(asked, measure="mrr").questions) == 4


def test_a_rank_of_the_expected_answer_is_a_rank() -> None:
    rows: Rows = {"question": QUESTIONS, "first_relevant_rank": [1, 4, 1, 2, 20, 1, 3, 1]}
    rows |= {"top1_category": [f"part {n % 3} of it" for n in range(8)], "top1_score": [n / 9 for n in range(8)]}
    with pytest.raises(TwoReadingsError) as raised:
        read_golden(rows)
    assert "rank=first_relevant_rank" in raised.value.choices
    found = read_golden(rows, "rank=first_relevant_rank")
    assert found.better.startswith("lower") and found.columns["rank"] == ("first_relevant_rank",)


@pytest.mark.parametrize("other", ["must_include", "terms", "key phrases"])
def test_words_beside_expected_ids_are_no_results(tmp_path: Path, other: str) -> None:
    words = ["data", "machine learning", "container"]
    lines = [{"q": text, other: [words[n % 3]], "must_cite": [f"a{n}"]} for n, text in enumerate(QUESTIONS)]
    path = tmp_path / "golden.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    (one,) = opened(str(path), "expected=must_cite").readings
    assert one.kind == "golden set" and f"not looked at: '{other}'" in one.remarks


def test_blocks_of_one_system_and_lists_of_numbers_are_means() -> None:
    systems = {f"BM25 {n}": {"mrr": 0.2 + n / 9, "ranks": [n, None, *range(1, 20)]} for n in range(1, 5)}
    blocks = {"ragas": {"recall": 0.5, "precision": 0.6}, "latency_ms": {"mean": 10.4, "p95": 21.5}}
    rows = [{"system": name, "id": key, **own} for name in ("dense", "hybrid") for key, own in blocks.items()]
    for table in ([{"id": name, **own} for name, own in systems.items()], rows):
        for measure in ("", "mrr"):
            with pytest.raises(InputError, match="means over all questions"):
                read_golden(table, measure=measure)
    # The documents of a question are no ranks of many.
    lists = [{"id": f"q{n}", "mrr": 0.1 * n, "retrieved_pages": [n, n + 1, n + 2]} for n in range(1, 8)]
    assert len(read_golden(lists, "score=mrr").questions) == 7


def test_a_question_may_be_named_by_two_columns() -> None:
    rows = [
        {"domain": domain, "file": f"doc_{n}", "old": n / 12, "new": (n + at) / 12}
        for at, domain in enumerate(("law", "medicine", "tax"))
        for n in range(6)
    ]
    with pytest.raises(TwoReadingsError) as raised:
        read_golden([{key: cell for key, cell in row.items() if key != "old"} for row in rows], "id=file,score=new")
    assert "id=file+domain" in raised.value.choices
    found = read_golden(rows, "id=file+domain")
    assert len(found.questions) == 18 and found.columns["id"] == ("file+domain",)


def test_a_question_about_columns_shows_them_all(tmp_path: Path) -> None:
    path = tmp_path / "answers.csv"
    rows = {"q": QUESTIONS, "arm": ["old", "new"] * 4, "shown": [f"d{n}|d1" for n in range(8)], "tokens": range(8)}
    pl.DataFrame(rows | {"fit": [n / 8 for n in range(8)], "note": [""] * 8}).write_csv(path)
    with pytest.raises(InputError, match="no column with the expected answers") as raised:
        read_golden(path, "retrieved=shown")
    title, *shown = raised.value.details
    roles = {line[2:].split()[0]: line.rstrip().rpartition("  ")[2].split(", ") for line in shown}
    assert "--columns ROLE=COLUMN" in title
    assert "question" in roles["q"]
    assert roles["arm"][:2] == ["system", "repeat"]
    assert {"expected", "retrieved"} <= {*roles["shown"]}
    assert roles["tokens"][:2] == ["score", "rank"]
    assert roles["fit"] == ["score"]
    assert roles["note"] == ["(empty)"]
    # A fault of one cell is said with its line, and not with the columns.
    path.write_text("id,old,new\na,0.5,0.5\nb,0.5\n")
    with pytest.raises(InputError, match="2 cells below 3") as raised:
        read_golden(path)
    assert raised.value.details == ()


@pytest.mark.parametrize("grades", [[2, 1, 0, 1], [1, 1, 1, 1]])
def test_whole_scores_of_documents_may_be_grades(tmp_path: Path, grades: list[int]) -> None:
    path = tmp_path / "pairs.csv"
    rows = {"query_id": ["q1", "q1", "q2", "q2"], "doc_id": ["d1", "d2", "d1", "d3"], "score": grades}
    pl.DataFrame(rows).write_csv(path)
    with pytest.raises(TwoReadingsError, match="grades of 'doc_id'") as raised:
        opened(path)
    assert opened(path, raised.value.choices[0]).readings[0].kind == "golden set"


def test_a_first_line_of_values_names_no_columns(tmp_path: Path) -> None:
    (tmp_path / "judged.txt").write_text("q1|184|2\nq1|29|2\nq2|31|1\nq2|184|1\n")
    with pytest.raises(InputError, match="first line has values"):
        read_golden(tmp_path / "judged.txt")


@pytest.mark.parametrize(
    "rows",
    [
        {"mode": ["keyword", "vector", "hybrid"], "hit_rate": [0.7, 0.6, 0.8], "mrr": [0.5, 0.4, 0.6]},
        {"": ["tfidf", "bm25"], "ndcg@5": [0.8, 0.9], "mrr": [0.7, 0.6]},
        {"버전": ["v3 with another reranker"], "Faithfulness": [0.85], "Context Recall": [0.9]},
        {"rerank": ["off", "on"], "candidate_k": [5, 15], "recall_at_1": [0.74, 0.74], "mrr": [0.83, 0.84]},
        {"label": ["fixed 5 at a time", "fixed 7 at a time"], "k": [5, 7], "hit_at_k": [0.5, 0.9], "precision": [0, 1]},
    ],
)
def test_settings_beside_measures_are_means(rows: Rows) -> None:
    for measure in ("", "mrr", "nDCG@10"):
        with pytest.raises(InputError, match="means over all questions"):
            read_golden(rows, measure=measure)


def test_the_questions_within_one_summary_are_read(tmp_path: Path) -> None:
    asked = [{"id": f"f{n}", "recall_at_5": n / 8, "faithfulness": 1 - n / 8} for n in range(8)]
    for names in (("full",), ("full", "no reranker")):
        value = [{"variant": name, "n": 50, "recall_at_5": 0.98, "per_question": asked} for name in names]
        (tmp_path / "ablation.json").write_text(json.dumps(value))
        found = read_golden(tmp_path / "ablation.json", measure="recall_at_5")
        assert tuple(found.scores) == names and len(found.questions) == 8


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ([[45, 48], [77, 92]], "without ids of questions"),
        ({question: [1, 0, 1, 0] for question in QUESTIONS}, "0 and 1 by rank"),
        ([{"question": q, "n_target": 3, "n_retrieved": n} for n, q in enumerate(QUESTIONS)], "count something"),
    ],
)
def test_numbers_that_are_neither_ids_nor_scores(tmp_path: Path, value: Any, said: str) -> None:
    (tmp_path / "qrels.json").write_text(json.dumps(value))
    with pytest.raises(InputError, match=said):
        opened(tmp_path / "qrels.json")


def test_flags_that_say_how_it_was_answered_are_offered() -> None:
    rows = {"question": QUESTIONS, "answer_correct": [True, False] * 4, "citation_correct": [False] * 7 + [True]}
    with pytest.raises(TwoReadingsError) as raised:
        read_golden(rows | {"llm_calls": [*range(8)]})
    assert raised.value.choices == ("score=answer_correct", "score=citation_correct")


def test_times_that_were_not_taken_are_no_scores() -> None:
    rows = {"question": QUESTIONS, "elapsed_ms": [*range(9, 17)], "total_elapsed_ms": [0] * 8}
    assert read_golden(rows).columns["scores"] == ("elapsed_ms",)


def test_a_named_measure_is_its_column() -> None:
    rows = {"question": QUESTIONS, "expected_pages": [*range(8)], "hit_at_1": [1, 0] * 4, "mrr": SCORES["old"]}
    assert read_golden(rows, measure="mrr").columns["scores"] == ("mrr",)


def test_sentences_with_signs_of_lists_are_no_lists(tmp_path: Path) -> None:
    rows = [
        {"question_id": f"q{n}", "relevant_ids": [f"c{n}"], "basis": basis}
        for n, basis in enumerate(
            ["It says so, at length; see c0.", "It says it once; and again", "c2, in a table"] * 3
        )
    ]
    (tmp_path / "judged.json").write_text(json.dumps(rows))
    assert opened(tmp_path / "judged.json").readings[0].kind == "golden set"
