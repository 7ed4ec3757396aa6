"""Tables that were asked about wrongly or refused, in small: what they are read as, or which question is asked."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import truerank
from truerank.audits.collection.texts import notice
from truerank.errors import InputError, TwoReadingsError
from truerank.sources.golden import GoldenTable, merged_tables, read_golden
from truerank.sources.labels import read_labels
from truerank.sources.recognition import opened, read_as_given

QUESTIONS = [f"How do I set option {n} of the printer?" for n in range(8)]
OLD, NEW = [n / 20 for n in range(8)], [n / 20 + 0.3 for n in range(8)]


def means(found: GoldenTable) -> dict[str, float]:
    return {name: round(float(frame["value"].mean()), 3) for name, frame in found.scores.items()}  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["epoch", "step", "iteration", "seed", "trial", "k", "fold"])
@pytest.mark.parametrize("long", [False, True])
def test_rows_of_a_training_log_are_no_questions(name: str, long: bool) -> None:
    table: Any = {name: [*range(1, 9)], "old": OLD, "new": NEW}
    if long:
        table = [{name: n, "system": s, "score": v[n]} for n in range(8) for s, v in (("old", OLD), ("new", NEW))]
    with pytest.raises(TwoReadingsError, match="the mean of many questions"):
        read_golden(table)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [("correct", "incorrect"), ("Right", "Wrong"), ("👍", "👎"), ("✅", "❌"), ("ja", "nein"), ("oui", "non"),
     ("sí", "no"), ("y", "n"), ("good", "bad"), ("yes", "no"), ("pass", "fail")],
)  # fmt: skip
def test_words_of_a_pair_are_1_and_0(right: str, wrong: str) -> None:
    cells = {"old": [right, wrong] * 4, "new": [right] * 8}
    found = read_golden({"question": QUESTIONS, **cells, "graded_by": ["Mia", "Lee"] * 4})
    assert means(found) == {"old": 0.5, "new": 1.0}
    rows = [
        {"question": q, "model": s, "verdict": c}
        for s, own in cells.items()
        for q, c in zip(QUESTIONS, own, strict=True)
    ]
    assert means(read_golden(rows)) == {"old": 0.5, "new": 1.0}
    if right != "yes" and right != "pass":
        beside = read_golden({"question": QUESTIONS, "old": OLD, "new": NEW, "answerable": cells["old"]})
        assert list(beside.scores) == ["old", "new"] and "not taken for scores: 'answerable'" in beside.remarks
        with pytest.raises(InputError):
            read_golden({"question": QUESTIONS, "old": [right, wrong, "maybe", "none"] * 2})
    with pytest.raises(InputError, match="write numbers: 1 and 0"):
        read_golden({"question": QUESTIONS, "old": ["green", "red"] * 4}, "score=old")


@pytest.mark.parametrize("name", ["Treffer {}", "result_{}", "bm25_{}", "hit{}"])
@pytest.mark.parametrize("doc", ["kb-{}", "{}"])
def test_columns_of_one_list_are_its_places(name: str, doc: str) -> None:
    columns = {name.format(place): [doc.format(200 + 7 * n + place) for n in range(8)] for place in (1, 2, 3)}
    if name == "bm25_{}" and doc == "{}":
        return  # numbers of seeds are called so
    found = read_golden(
        {"Frage": QUESTIONS, "Erwartetes Dokument": [doc.format(202 + 7 * n) for n in range(8)], **columns}
    )
    (run,) = found.runs.values()
    assert len(run) == 24 and any("places of one list" in remark for remark in found.remarks)


def test_columns_with_one_document_twice_are_asked_about() -> None:
    columns = {f"v{n}": [f"kb-{q}" for q in range(8)] for n in (1, 2, 3)}
    with pytest.raises(TwoReadingsError, match="places of one system") as raised:
        read_golden({"question": QUESTIONS, "expected": columns["v1"], **columns})
    assert list(
        read_golden({"question": QUESTIONS, "expected": columns["v1"], **columns}, raised.value.choices[0]).runs
    )


def test_questions_of_two_files_that_differ_in_spelling_are_one(tmp_path: Path) -> None:
    for name, asked, scores in (("old", QUESTIONS, OLD), ("new", [f"  {q.lower()[:-1]} " for q in QUESTIONS], NEW)):
        lines = [f"{q},{s}" for q, s in zip(asked, scores, strict=True)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["question,score", *lines]))
    found = opened([tmp_path / "old.csv", tmp_path / "new.csv"])
    assert found.scores is not None and len(found.scores.questions) == 8
    assert any("8 questions of several files" in line for line in found.readings[-1].lines())
    # Two questions of one file stay two.
    twice = read_golden({"question": [*QUESTIONS[:7], QUESTIONS[0].lower()], "old": OLD})
    assert len(merged_tables([twice, read_golden({"question": QUESTIONS, "new": NEW})]).scores) == 2


@pytest.mark.parametrize("form", ["{}:{}", "{} ({})", "{}={}"])
@pytest.mark.parametrize("sign", [";", ", ", "|"])
def test_grades_behind_ids_in_a_text(form: str, sign: str, tmp_path: Path) -> None:
    gold = [sign.join([form.format(f"kb-{n}", 3), form.format(f"kb-{n + 20}", 1)]) for n in range(8)]
    lists = [";".join((f"kb-{n}", f"x-{n}", f"kb-{n + 20}")) for n in range(8)]
    found = read_golden({"question": QUESTIONS, "relevant": gold, "bm25": lists})
    assert found.qrels is not None and sorted(found.qrels["relevance"].unique()) == [1, 3]
    (tmp_path / "gold.csv").write_text(
        "\n".join(["question\trelevant", *map("\t".join, zip(QUESTIONS, gold, strict=True))])
    )
    (tmp_path / "a.csv").write_text(
        "\n".join(["question\tretrieved", *map("\t".join, zip(QUESTIONS, lists, strict=True))])
    )
    joined = opened([tmp_path / "gold.csv", tmp_path / "a.csv"]).results
    assert joined is not None and joined.qrels is not None and sorted(joined.qrels["relevance"].unique()) == [1, 3]
    # An id that ends so is an id.
    plain = read_golden(
        {"question": QUESTIONS, "relevant": [f"kb:{n}" for n in range(8)], "bm25": [f"kb:{n};x" for n in range(8)]}
    )
    assert plain.qrels is not None and "kb:3" in plain.qrels["doc_id"].to_list()


def nested(n: int) -> dict[str, dict[str, float]]:
    return {"bm25": {"ndcg": OLD[n], "mrr": 0.5}, "dense": {"ndcg": NEW[n], "mrr": 0.6}}


@pytest.mark.parametrize(
    "value",
    [
        [{"question": q, "systems": nested(n)} for n, q in enumerate(QUESTIONS)],
        [{"question": q, **nested(n)} for n, q in enumerate(QUESTIONS)],
        {q: nested(n) for n, q in enumerate(QUESTIONS)},
    ],
)  # fmt: skip
def test_scores_by_system_and_measure_ask_for_the_measure(value: Any, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(value))
    with pytest.raises(InputError, match=r"scores of 2 measures \(ndcg, mrr\).* choose one: --measure ndcg"):
        read_golden(tmp_path / "a.json", measure="nDCG@10")
    found = read_golden(tmp_path / "a.json", measure="ndcg")
    assert means(found) == {"bm25": 0.175, "dense": 0.475} and found.measure == "ndcg"


def test_names_of_systems_in_other_letters_are_one_system() -> None:
    rows = [
        {"question": q, "system": s, "score": v[n]}
        for n, q in enumerate(QUESTIONS) for s, v in (("bm25", OLD), ("Dense" if n < 5 else "dense ", NEW))
    ]  # fmt: skip
    found = read_golden(rows)
    assert list(found.scores) == ["bm25", "Dense"] and any("'dense' is 'Dense'" in one for one in found.remarks)
    both = read_golden([{**row, "system": s} for row in rows[:8] for s in ("A", "a")])
    assert list(both.scores) == ["A", "a"]


@pytest.mark.parametrize("wide", [False, True])
def test_rows_by_cut_off_offer_the_measure(wide: bool) -> None:
    rows: list[dict[str, Any]] = [
        {"question": q, "k": k, "old": OLD[n], "new": NEW[n]} for n, q in enumerate(QUESTIONS) for k in (1, 5, 10)
    ]
    if not wide:
        rows = [
            {"question": r["question"], "system": s, "k": r["k"], "recall": r[s]} for r in rows for s in ("old", "new")
        ]
    with pytest.raises(TwoReadingsError) as raised:
        read_golden(rows)
    assert raised.value.choices[0] == "measure=k"
    assert means(read_golden(rows, "measure=k", measure="5")) == {"old": 0.175, "new": 0.475}


@pytest.mark.parametrize(
    "heads",
    [
        ([",bm25,bm25,dense,dense", ",ndcg@10,mrr,ndcg@10,mrr"]),
        (["question,bm25,,dense,", ",ndcg@10,mrr,ndcg@10,mrr"]),
        (["system,bm25,bm25,dense,dense", "measure,ndcg@10,mrr,ndcg@10,mrr", "question,,,,"]),
        (["Question,ndcg@10,,mrr,", ",bm25,dense,bm25,dense"]),
    ],
)
def test_two_header_rows_are_joined(heads: Sequence[str], tmp_path: Path) -> None:
    rows = [f"{q},{a},0.5,{b},0.6" for q, a, b in zip(QUESTIONS, OLD, NEW, strict=True)]
    (tmp_path / "a.csv").write_text("\n".join([*heads, *rows]))
    with pytest.raises(InputError, match="columns of several measures"):
        read_golden(tmp_path / "a.csv")
    first = "ndcg@10 bm25+ndcg@10 dense" if "ndcg" in heads[0] else "bm25 ndcg@10+dense ndcg@10"
    found = read_golden(tmp_path / "a.csv", f"score={first}")
    assert len(found.questions) == 8 and "two header rows are joined" in found.remarks


@pytest.mark.parametrize("cells", [["A", "B", "tie", "B"], ["answer_a", "answer_b"] * 2, ["bm25", "dense"] * 2])
def test_preferences_are_named(cells: Sequence[str]) -> None:
    table = {"question": QUESTIONS, "answer_a": ["yes, it is"] * 8, "answer_b": ["no"] * 8, "winner": [*cells] * 2}
    with pytest.raises(InputError, match=r"'winner' holds preferences .* a column for each system"):
        read_golden(table)


@pytest.mark.parametrize("name", ["rater", "judge", "labeler", "assessor", "evaluator", "reviewer", "grader_id"])
def test_raters_are_told_by_their_rows(name: str, tmp_path: Path) -> None:
    rows = [f"q{n},kb-{n},{who},{(n + at) % 2}" for n in range(8) for at, who in enumerate(("ann", "bob"))]
    (tmp_path / "a.csv").write_text("\n".join([f"query_id,doc_id,{name},relevance", *rows]))
    assert {one.annotator for one in read_labels(str(tmp_path / "a.csv"))} == {"ann", "bob"}
    # A column of labels beside another one is no such name.
    rows = [f"q{n},kb-{n},{n % 2},{n % 3 % 2}" for n in range(8)]
    (tmp_path / "b.csv").write_text("\n".join([f"query_id,doc_id,human,{name}", *rows]))
    assert {one.annotator for one in read_labels(str(tmp_path / "b.csv"))} == {"human", name}


def test_a_number_in_a_manual_is_no_error_page() -> None:
    text = "Article 7. To archive the warranty when the server is down open menu 744 and press {} then wait 24 minutes."
    assert not any(notice(text.format(number)) for number in (404, 415, 500, 503))
    assert notice("404. Page not found.") and notice("503 Service Unavailable. The server is temporarily down.")


def rank_evaluation(score: Sequence[float], rated: bool) -> Mapping[str, Any]:
    hits = [
        {"hit": {"_index": "kb", "_id": f"kb-{n}", "_score": 2.0}, "rating": 1 if rated else None} for n in range(3)
    ]
    details = {
        q: {"metric_score": s, "unrated_docs": [] if rated else [{"_index": "kb", "_id": "kb-1"}], "hits": hits,
            "metric_details": {"precision": {"relevant_docs_retrieved": 1, "docs_retrieved": 3}}}
        for q, s in zip(QUESTIONS, score, strict=True)
    }  # fmt: skip
    return {"metric_score": 0.5, "details": details, "failures": {}}


@pytest.mark.parametrize("rated", [False, True])
def test_rank_evaluations_have_a_score_of_each_question(rated: bool, tmp_path: Path) -> None:
    for name, score in (("old", OLD), ("new", NEW)):
        (tmp_path / f"{name}.json").write_text(json.dumps(rank_evaluation(score, rated)))
    found = truerank.check([tmp_path / "old.json", tmp_path / "new.json"])
    assert found.claim is not None and found.base is not None and found.base.value == pytest.approx(0.3)


def test_traces_of_langfuse_are_no_questions(tmp_path: Path) -> None:
    rows = [
        f"s{n}{run},item-{n},t{n}{run},{run},recall,{v[n]}" for n in range(8) for run, v in (("v1", OLD), ("v2", NEW))
    ]
    (tmp_path / "a.csv").write_text("\n".join(["id,datasetItemId,traceId,datasetRunName,name,value", *rows]))
    (found,) = read_as_given([tmp_path / "a.csv"], measure="recall")
    assert found.table is not None and means(found.table) == {"v1": 0.175, "v2": 0.475}


def test_equal_rows_are_copies_and_others_repeats() -> None:
    twice = read_golden({"question": QUESTIONS * 2, "old": OLD * 2, "new": NEW * 2})
    assert not twice.repeats and any("equal rows" in remark for remark in twice.remarks)
    other = read_golden({"question": QUESTIONS * 2, "old": [*OLD, *NEW], "new": [*NEW, *OLD]})
    assert other.repeats and any("no column says what else" in remark for remark in other.remarks)


def test_what_words_name(tmp_path: Path) -> None:
    found = read_golden({"question": QUESTIONS, "recall_old": OLD, "recall_new": NEW})
    assert found.measure == "recall"
    assert read_golden({"question": QUESTIONS, "latency_a": OLD, "latency_b": NEW}).measure == "score"
    rows = {"question": QUESTIONS * 2, "measure": ["mrr"] * 8 + ["recall"] * 8, "a": OLD * 2, "b": NEW * 2}
    assert "mrr is read; 1 other measure left out: recall" in read_golden(rows, measure="mrr").remarks
    with pytest.raises(InputError, match="among the results in 'retrieved'"):
        read_golden({"question": QUESTIONS, "expected": ["a-1"] * 8, "retrieved": ["b-1;b-2"] * 8})
    (tmp_path / "config.json").write_text('{"top_k": 10, "model": "e5"}')
    (tmp_path / "a.csv").write_text("\n".join(["question,a,b", *(f"{q},0.1,0.{n}" for n, q in enumerate(QUESTIONS))]))
    (folder,) = [one for one in read_as_given([tmp_path]) if one.path.endswith("config.json")]
    assert folder.why == "one record of plain values, as settings are"


@pytest.mark.parametrize("form", ["D{}", "https://site/d{}", "d{}.txt"])
def test_lists_of_ids_in_another_form_are_no_test_set_without_systems(form: str) -> None:
    lists = {name: [";".join(f"d{(n + at) % 8}" for at in range(step, step + 3)) for n in range(8)]
             for step, name in enumerate(("a", "b"))}  # fmt: skip
    rows = {"question": QUESTIONS, "expected": [form.format(n) for n in range(8)], **lists}
    with pytest.raises(InputError, match=r"not taken yet: 'a', 'b'"):
        truerank.check(rows)
    with pytest.raises(InputError, match="some are") as raised:
        read_golden(rows, "retrieved=a+b")
    assert raised.value.remedy.startswith("write the ids of both in the same form")
