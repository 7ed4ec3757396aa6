"""Exports of tools that evaluate retrieval and answers, in their documented forms, as they come."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import truerank
from truerank.errors import InputError
from truerank.sources import read_qrels
from truerank.sources.golden import read_golden
from truerank.sources.qrels import judged_pairs
from truerank.sources.recognition import Reading, read_as_given

#: Twelve questions: what is expected, and the lists of two systems that have it at rank 2, and at rank 1.
QUESTIONS = [f"how do I mend part {n} of the pump?" for n in range(12)]
GOLD = [f"kb-{n}" for n in range(12)]
LISTS = {
    "old": [[f"kb-{n + 40}", f"kb-{n}", f"kb-{n + 60}"] for n in range(12)],
    "new": [[f"kb-{n}", f"kb-{n + 20}", f"kb-{n + 60}"] for n in range(12)],
}
FIRST = [("old", 0.4), ("new", 0.6)]
TEXT = "The pump is closed; then, after a while, its valve opens again, {}."


def dumped(place: Path, value: Any) -> Path:
    place.parent.mkdir(exist_ok=True)
    place.write_text(json.dumps(value, indent=1))
    return place


def framed(place: Path, rows: Sequence[dict[str, Any]]) -> Path:
    """A CSV as pandas writes a frame: lists as Python prints them."""
    plain = [{key: repr(cell) if isinstance(cell, list | dict) else cell for key, cell in row.items()} for row in rows]
    pl.DataFrame(plain).write_csv(place)
    return place


def llama_index(folder: Path) -> list[Path]:
    def rows(name: str) -> list[dict[str, Any]]:
        return [
            {"": n, "query": QUESTIONS[n], "expected_ids": [GOLD[n]], "expected_texts": None, "retrieved_ids": found,
             "retrieved_texts": [TEXT.format(doc) for doc in found], "metric_dict": {"mrr": {"score": 0.5}}}
            for n, found in enumerate(LISTS[name])
        ]  # fmt: skip

    return [framed(folder / f"{name}.csv", rows(name)) for name in LISTS]


def elastic(folder: Path) -> list[Path]:
    requests = [
        {"id": f"q{n}", "request": {"query": {"match": {"text": QUESTIONS[n]}}},
         "ratings": [{"_index": "kb", "_id": doc, "rating": 1}, {"_index": "kb", "_id": f"kb-{n + 80}", "rating": 0}]}
        for n, doc in enumerate(GOLD)
    ]  # fmt: skip
    asked = dumped(folder / "request.json", {"requests": requests, "metric": {"dcg": {"k": 10, "normalize": True}}})

    def answer(name: str) -> dict[str, Any]:
        details = {
            f"q{n}": {
                "metric_score": 0.5,
                "unrated_docs": [{"_index": "kb", "_id": doc} for doc in found if doc != GOLD[n]],
                "hits": [{"hit": {"_index": "kb", "_id": doc, "_score": 9.0 - place}, "rating": None}
                         for place, doc in enumerate(found)],
                "metric_details": {"dcg": {"dcg": 1.0, "ideal_dcg": 1.0, "normalized_dcg": 1.0}},
            }
            for n, found in enumerate(LISTS[name])
        }  # fmt: skip
        return {"metric_score": 0.5, "details": details, "failures": {}}

    return [asked, *(dumped(folder / f"{name}.json", answer(name)) for name in LISTS)]


def open_search(folder: Path) -> list[Path]:
    ratings = [
        {"query": f"pump{n}", "ratings": [{"docId": doc, "rating": "1.0"}, {"docId": f"kb-{n + 80}", "rating": "0.0"}]}
        for n, doc in enumerate(GOLD)
    ]
    runs = []
    for name, lists in LISTS.items():
        lines = [f"pump{n} Q0 {doc} {at + 1} {9 - at} x" for n, own in enumerate(lists) for at, doc in enumerate(own)]
        (folder / f"{name}.run").write_text("\n".join(lines) + "\n")
        runs.append(folder / f"{name}.run")
    return [dumped(folder / "judgments.json", {"judgmentRatings": ratings}), *runs]


def by_system(folder: Path) -> list[Path]:
    lists = {name: dict(zip(QUESTIONS, own, strict=True)) for name, own in LISTS.items()}
    golden = {question: [doc] for question, doc in zip(QUESTIONS, GOLD, strict=True)}
    return [dumped(folder / "gold.json", golden), dumped(folder / "runs.json", lists)]


def keyed_by_system(folder: Path) -> list[Path]:
    records = {
        name: [{"query": QUESTIONS[n], "expected": [GOLD[n]], "retrieved": found} for n, found in enumerate(own)]
        for name, own in LISTS.items()
    }
    return [dumped(folder / "experiments.json", records)]


def search_responses(folder: Path) -> list[Path]:
    def hits(found: list[str]) -> dict[str, Any]:
        return {"total": {"value": 3}, "hits": [{"_id": doc, "_score": 9 - at} for at, doc in enumerate(found)]}

    answers = [
        dumped(folder / f"{name}.json", {f"q{n}": {"took": 3, "hits": hits(found)} for n, found in enumerate(own)})
        for name, own in LISTS.items()
    ]
    return [dumped(folder / "gold.json", {f"q{n}": [doc] for n, doc in enumerate(GOLD)}), *answers]


def promptfoo(folder: Path) -> list[Path]:
    results = [
        {"provider": {"id": f"{name}", "label": ""}, "prompt": {"raw": QUESTIONS[n], "label": "{{query}}"},
         "vars": {"query": QUESTIONS[n], "correct_chunks": json.dumps([GOLD[n]])}, "success": True, "score": 0.2,
         "response": {"output": own[n]}, "namedScores": {}, "latencyMs": 900, "gradingResult": {"pass": True}}
        for name, own in LISTS.items() for n in range(12)
    ]  # fmt: skip
    return [dumped(folder / "results.json", {"evalId": "eval-1", "results": {"version": 3, "results": results}})]


def weights_and_biases(folder: Path) -> list[Path]:
    rows = [[n, QUESTIONS[n], [GOLD[n]], *(own[n] for own in LISTS.values())] for n in range(12)]
    head = ["id", "question", "expected", "old", "new"]
    return [dumped(folder / "eval.table.json", {"columns": head, "data": rows, "ncols": 5, "nrows": 12})]


@pytest.mark.parametrize(
    "files",
    [llama_index, elastic, search_responses, open_search, by_system, keyed_by_system, promptfoo, weights_and_biases],
    ids=lambda one: one.__name__,
)
def test_results_are_scored(files: Callable[[Path], list[Path]], tmp_path: Path) -> None:
    found = truerank.check(files(tmp_path), measure="mrr")
    assert found.claim is not None and (found.claim.system, found.claim.baseline) == ("new", "old")
    assert found.base is not None and found.base.topics == 12 and found.base.value == pytest.approx(0.5)


def arms(folder: Path) -> list[Path]:
    systems = [
        {"config": {"name": name, "k": 1},
         "per_query": [{"id": f"g{n}", "question": QUESTIONS[n], "source_doc_id": GOLD[n], "rank1_correct": True,
                        "metrics": {"mrr": score + n / 100, "recall@5": 1.0, "n_retrieved": 10}} for n in range(12)]}
        for name, score in FIRST
    ]  # fmt: skip
    return [dumped(folder / "report.json", {"version": 1, "arms": systems})]


def reports(folder: Path) -> list[Path]:
    (value,) = (json.loads(path.read_text()) for path in arms(folder))
    return [
        dumped(folder / f"{arm['config']['name']}.json", {"aggregate": {"mrr": 0.5}, **arm}) for arm in value["arms"]
    ]


def measures_by_column(folder: Path) -> list[Path]:
    return [
        framed(folder / f"{name}.csv", [{"query_id": f"q{n}", "MRR": score + n / 100, "hit@5": 1} for n in range(12)])
        for name, score in FIRST
    ]


def pytrec_eval(folder: Path) -> list[Path]:
    return [
        dumped(folder / f"{name}.json", {f"q{n}": {"recip_rank": score + n / 100, "map": 0.5} for n in range(12)})
        for name, score in FIRST
    ]


def deepeval(folder: Path) -> list[Path]:
    def cases(score: float) -> list[dict[str, Any]]:
        return [
            {"name": f"test_case_{n}", "input": QUESTIONS[n], "actualOutput": TEXT, "expectedOutput": TEXT,
             "retrievalContext": [TEXT], "success": True, "order": n,
             "metricsData": [{"name": "Contextual Recall", "threshold": 0.5, "success": True, "score": score + n / 100},
                             {"name": "Faithfulness", "threshold": 0.5, "success": True, "score": 1.0}]}
            for n in range(12)
        ]  # fmt: skip

    return [
        dumped(folder / f"{name}.json", {"testCases": cases(score), "metricsScores": [], "runDuration": 2.0})
        for name, score in FIRST
    ]


def lang_smith(folder: Path) -> list[Path]:
    return [
        framed(folder / f"{name}.csv", [
            {"inputs.question": QUESTIONS[n], "outputs.answer": TEXT, "error": None, "reference.answer": TEXT,
             "feedback.correctness": score + n / 100, "execution_time": 1.5, "example_id": f"ex-{n}",
             "id": f"{name}-{n}"} for n in range(12)])
        for name, score in FIRST
    ]  # fmt: skip


def langfuse(folder: Path) -> list[Path]:
    rows = [
        {"id": f"s-{name}-{n}-{measure}", "timestamp": "2026-01-02", "traceId": f"t-{name}-{n}", "release": name,
         "input": QUESTIONS[n], "name": measure, "value": score + n / 100 if measure == "recall" else 0.5}
        for name, score in FIRST for n in range(12) for measure in ("recall", "helpful")
    ]  # fmt: skip
    return [framed(folder / "scores.csv", rows)]


def trulens(folder: Path) -> list[Path]:
    rows = [
        {"app_id": f"app-{name}", "app_name": "RAG", "app_version": name, "record_id": f"r-{name}-{n}",
         "input": QUESTIONS[n], "output": TEXT, "tags": "-", "Groundedness": score + n / 100, "latency": 1.0 + n,
         "total_tokens": 900 + n, "total_cost": 0.01}
        for name, score in FIRST for n in range(12)
    ]  # fmt: skip
    return [framed(folder / "records.csv", rows)]


@pytest.mark.parametrize(
    ("files", "measure"),
    [(arms, "MRR"), (reports, "mrr"), (measures_by_column, "mrr"), (pytrec_eval, "RR"), (langfuse, "recall"),
     (deepeval, "contextual recall"), (lang_smith, "nDCG@10"), (trulens, "nDCG@10")],
)  # fmt: skip
def test_scores_are_compared(files: Callable[[Path], list[Path]], measure: str, tmp_path: Path) -> None:
    found = truerank.check(files(tmp_path), measure=measure)
    assert found.claim is not None and (found.claim.system, found.claim.baseline) == ("new", "old")
    assert found.base is not None and found.base.topics == 12 and found.base.value == pytest.approx(0.2)


@pytest.mark.parametrize("files", [arms, deepeval, langfuse, pytrec_eval, measures_by_column])
def test_the_measure_is_asked_for(files: Callable[[Path], list[Path]], tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"scores of \d measures .* choose one: --measure"):
        read_as_given(files(tmp_path), measure="nDCG@10")


def test_documents_of_phoenix_are_judged_by_their_labels(tmp_path: Path) -> None:
    rows = [
        {"context.span_id": f"span-{n}", "document_position": place, "context.trace_id": f"t{n}",
         "input": QUESTIONS[n], "reference": f"text of {doc}", "document_score": 0.9 - place / 10,
         "eval_label": "relevant" if doc == GOLD[n] else "unrelated", "eval_score": int(doc == GOLD[n])}
        for n, own in enumerate(LISTS["old"]) for place, doc in enumerate(own)
    ]  # fmt: skip
    (found,) = read_as_given([framed(tmp_path / "documents.csv", rows)])
    assert found.table is not None and found.table.qrels is not None
    (run,) = found.table.runs.values()
    hits = run.join(found.table.qrels.filter(pl.col("relevance") == 1), on=["topic_id", "doc_id"])
    assert hits["rank"].to_list() == [2] * 12
    assert any("only what systems retrieved is judged" in one for one in found.table.remarks)


def test_ragas_asks_whether_scores_or_contexts_are_meant(tmp_path: Path) -> None:
    """Its answers are prose, whatever signs they hold."""
    rows = [
        {"user_input": QUESTIONS[n], "retrieved_contexts": [TEXT.format(doc) for doc in own],
         "reference_contexts": [TEXT.format(GOLD[n])], "response": TEXT, "reference": TEXT, "context_recall": 0.5,
         "faithfulness": 0.1 + n / 20}
        for n, own in enumerate(LISTS["new"])
    ]  # fmt: skip
    path = framed(tmp_path / "ragas.csv", rows)
    with pytest.raises(InputError, match=r"scores of a program .* expected=reference_contexts,retrieved=retr"):
        read_as_given([path])
    (found,) = read_as_given([path], "score=faithfulness")
    assert found.kind == "score table"
    (found,) = read_as_given([path], "expected=reference_contexts,retrieved=retrieved_contexts")
    assert found.kind == "golden file"


def test_named_columns_come_before_those_of_a_form(tmp_path: Path) -> None:
    first, _ = llama_index(tmp_path)
    (found,) = read_as_given([first], "expected=retrieved_ids,retrieved=expected_ids")
    assert found.table is not None and found.table.columns["retrieved"] == ("expected_ids",)
    (path,) = trulens(tmp_path)
    (found,) = read_as_given([path], "system=app_id,score=Groundedness")
    assert found.table is not None and found.table.columns["system"] == ("app_id",)


def judged(readings: Sequence[Reading]) -> dict[str, float]:
    (found,) = [one for one in readings if one.kind == "judgments"]
    assert found.numbers is not None
    return dict(found.numbers["q1"])


def test_grades_with_decimals_are_counted_in_their_steps(tmp_path: Path) -> None:
    grades = [{"docId": "a", "rating": "1.0"}, {"docId": "b", "rating": "0.4"}, {"docId": "c", "rating": "0.0"}]
    gold = dumped(tmp_path / "judgments.json", {"judgmentRatings": [{"query": "q1", "ratings": grades}]})
    (tmp_path / "a.run").write_text("q1 Q0 b 1 2 x\n")
    assert judged(read_as_given([gold, tmp_path / "a.run"])) == {"a": 10, "b": 4, "c": 0}
    rows = [{"question": "how", "expected": [{"doc_id": "a", "grade": 0.25}], "retrieved": ["a", "b"]}]
    (found,) = read_as_given([dumped(tmp_path / "gold.json", {"rows": rows})])
    assert found.table is not None and found.table.qrels is not None
    assert found.table.qrels["relevance"].to_list() == [25]
    assert any("counted as whole numbers, up to 25" in one for one in found.table.remarks)


@pytest.mark.parametrize(
    ("lines", "grades"),
    [
        (["q1 0 a 1.0", "q1 0 b 0.4", "q1 0 c 0.0"], {"a": 10, "b": 4, "c": 0}),
        (["query-id\tcorpus-id\tscore", "q1\ta\t1.0", "q1\tb\t0.0"], {"a": 1, "b": 0}),
    ],
)
def test_judgments_with_decimals(lines: list[str], grades: dict[str, float], tmp_path: Path) -> None:
    (tmp_path / "a.qrels").write_text("\n".join(lines) + "\n")
    (tmp_path / "a.run").write_text("q1 Q0 b 1 2 x\n")
    assert read_as_given([tmp_path / "a.qrels", tmp_path / "a.run"])[0].kind == "judgments"
    frame, remarks = judged_pairs(str(tmp_path / "a.qrels"))
    assert dict(frame.select("doc_id", "relevance").iter_rows()) == grades
    assert remarks == (("Grades with decimals are counted as whole numbers, up to 10.",) if grades["a"] == 10 else ())
    assert [one[2] for one in read_qrels(str(tmp_path / "a.qrels"))] == [*grades.values()]


def test_what_a_model_wrote_is_not_expected(tmp_path: Path) -> None:
    rows = [
        {"query_id": f"q{n}", "query": QUESTIONS[n], "passage_id": f"[{place}]", "passage": TEXT,
         "generated_answer": TEXT if place == 1 else None}
        for n in range(6) for place in (1, 2, 3)
    ]  # fmt: skip
    with pytest.raises(InputError, match="no column with the expected answers"):
        read_as_given([framed(tmp_path / "connector.csv", rows)])


def test_lists_of_questions_count_and_their_summaries_do_not(tmp_path: Path) -> None:
    def part(first: int, score: float) -> dict[str, Any]:
        asked = [{"query_id": f"q{n}", "rr": score + n / 100, "ndcg@5": 0.5} for n in range(first, first + 6)]
        return {"summary": {"questions": 6, "mrr": 0.5}, "per_query": asked}

    systems = dumped(
        tmp_path / "systems.json", {"run": "x", "systems": {name: part(0, score) for name, score in FIRST}}
    )
    found = read_golden(systems, measure="rr")
    assert list(found.scores) == ["old", "new"] and len(found.questions) == 6
    assert "rows are those of 'per_query' of each system" in found.remarks
    groups = dumped(tmp_path / "groups.json", {"exhibits": {"a": part(0, 0.1), "b": part(6, 0.2)}})
    assert len(read_golden(groups, measure="rr").questions) == 12
    means = {name: {"mode": name, "overall": {"n": 40, "mrr": score}, "misses": ["x"]} for name, score in FIRST}
    with pytest.raises(InputError, match="means over all questions"):
        read_golden(dumped(tmp_path / "means.json", means))
    evaluated = {"rank_eval": {"quality_level": 0.5, "unknown_docs": [{"q1": [{"doc_id": "1"}]}, {"q2": []}]}}
    with pytest.raises(InputError, match="means over all topics"):
        read_as_given([dumped(tmp_path / "response.json", evaluated)])


def test_scores_within_objects_by_system_and_by_measure(tmp_path: Path) -> None:
    rows = [
        {"query": QUESTIONS[n], **{name: {"hit": True, "rr": score + n / 100, "answer": TEXT} for name, score in FIRST}}
        for n in range(12)
    ]
    path = dumped(tmp_path / "results.json", {"n_queries": 12, "old": {"mrr": 0.5}, "per_query": rows})
    with pytest.raises(InputError, match="--measure hit, or rr"):
        read_golden(path, measure="nDCG@10")
    assert list(read_golden(path, measure="rr").scores) == [name for name, _ in FIRST]
    cases: list[dict[str, Any]] = [
        {"input": QUESTIONS[n], "metrics": {"answer_relevancy": {"score": n / 20, "success": n > 5, "reason": TEXT}}}
        for n in range(12)
    ]
    path = dumped(tmp_path / "cases.json", {"results": [*cases, {"name": "last", "error": "no answer"}]})
    found = read_golden(path)
    assert list(found.scores) == ["cases"] and len(found.questions) == 12
    assert "left out: 1 row without a question and a score" in found.remarks


def test_documents_with_pages_are_expected(tmp_path: Path) -> None:
    rows = [
        {"id": f"q{n}", "question": QUESTIONS[n], "expected_answer": TEXT, "answerable": True,
         "acceptable_pages": {"report.pdf": [n, n + 1]}} for n in range(12)
    ]  # fmt: skip
    (found,) = read_as_given([dumped(tmp_path / "golden.json", rows)])
    assert found.kind == "golden set" and "12 questions, what is expected in 'acceptable_pages'" in found.why
