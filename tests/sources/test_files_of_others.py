"""Inputs that another hand had, written anew: how they are read, or what is asked about them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import truerank
from truerank.errors import InputError, TwoReadingsError
from truerank.sources.golden import read_golden
from truerank.sources.recognition import opened

COUNT = 20
QUESTIONS = [f"what does rule number {n} say" for n in range(COUNT)]
OLD = [n * 7 % COUNT / COUNT for n in range(COUNT)]
NEW = [n * 3 % COUNT / COUNT for n in range(COUNT)]


def csv_of(columns: dict[str, Sequence[Any]], rows: int = COUNT) -> str:
    lines = [",".join(columns), *(",".join(str(own[n]) for own in columns.values()) for n in range(rows))]
    return "\n".join(lines) + "\n"


def test_blank_lines_anywhere_are_no_rows(tmp_path: Path) -> None:
    whole = csv_of({"id": [f"q{n}" for n in range(COUNT)], "old": OLD, "new": NEW})
    head, *rows = whole.splitlines()
    path = tmp_path / "scores.csv"
    for text in (
        f"{head}\n\n" + "\n".join(rows),
        "\n".join([head, *rows[:9], "", *rows[9:]]),
        f"{whole}\n\n",
        f"Exported on a Monday, by night\n\n{whole}",
    ):
        path.write_text(text)
        assert len(read_golden(path).questions) == COUNT


def test_ids_may_begin_with_a_number_sign(tmp_path: Path) -> None:
    path = tmp_path / "tickets.csv"
    path.write_text(csv_of({"ticket": [f"#{4000 + n}" for n in range(COUNT)], "old_mrr": OLD, "new_mrr": NEW}))
    assert len(read_golden(path).questions) == COUNT


@pytest.mark.parametrize("none", [-1, 0, "", "n/a"])
def test_a_missing_rank_is_not_the_best_one(none: Any) -> None:
    ranks = {f"rank_{name}": [none if n % 5 == at else 1 + n % 4 for n in range(COUNT)] for at, name in enumerate("ab")}
    for columns in ("", "rank=rank_a+rank_b"):
        with pytest.raises(InputError, match="8 ranks missing"):
            read_golden({"query": QUESTIONS, **ranks}, columns)


def test_one_negative_value_among_ratings_is_asked_about() -> None:
    rated = {name: [-1 if n == at else n % 5 for n in range(COUNT)] for at, name in enumerate(("rated_a", "rated_b"))}
    with pytest.raises(InputError, match="failures, or scores"):
        read_golden({"query": QUESTIONS, **rated})
    wins = {"query": QUESTIONS, **{f"score_{name}": [n % 3 - 1 for n in range(COUNT)] for name in "ab"}}
    assert all(frame["value"].min() == -1 for frame in read_golden(wins).scores.values())


def test_codes_of_errors_are_no_ids() -> None:
    cells = ["ERROR: timeout" if n % 9 == 1 else "ERROR: 429" if n % 9 == 2 else OLD[n] for n in range(COUNT)]
    found = read_golden({"id": QUESTIONS, "a_mrr": NEW, "b_mrr": cells})
    assert {name: len(frame) for name, frame in found.scores.items()} == {"a": COUNT, "b": COUNT - 5}


def test_columns_that_are_sorted_by_themselves_are_asked_about() -> None:
    table = {"query #": [*range(1, COUNT + 1)], "old_ndcg": sorted(OLD), "new_ndcg": sorted(NEW)}
    with pytest.raises(TwoReadingsError, match="sorted by itself") as raised:
        read_golden(table)
    assert len(read_golden(table, raised.value.choices[0]).scores) == 2
    # Sorted by one of them, they are what they are.
    assert len(read_golden({**table, "old_ndcg": OLD}).scores) == 2


def test_a_copied_system_and_one_without_the_measure_are_named() -> None:
    copied = read_golden({"id": QUESTIONS, "old": OLD, "new": NEW, "tuned": NEW})
    assert "tuned has the scores of new on every question" in copied.remarks
    systems = {"old": "ndcg@10", "new": "recall@10"}
    long = [
        {"query": q, "system": name, "metric": own, "value": value}
        for name, own in systems.items()
        for q, value in zip(QUESTIONS, OLD, strict=True)
    ]
    assert "without ndcg@10, and left out: new" in read_golden(long, measure="nDCG@10").remarks


def test_measures_of_different_scales_are_asked_about_by_measure() -> None:
    shown = {"old": [900 + n for n in range(COUNT)], "new": [800 - n for n in range(COUNT)]}
    table = {f"impressions_{name}": own for name, own in shown.items()} | {"ctr_old": OLD, "ctr_new": NEW}
    with pytest.raises(TwoReadingsError, match="different scales") as raised:
        read_golden({"term": QUESTIONS, **table})
    assert "score=ctr_old+ctr_new" in raised.value.choices


def test_ratings_called_correct_are_no_expected_ids() -> None:
    parts = {f"{what}_{name}": [1 + n * at % 5 for n in range(COUNT)] for at, what, name in
             ((2, "fluency", "A"), (3, "correct", "A"), (4, "fluency", "B"), (6, "correct", "B"))}  # fmt: skip
    with pytest.raises(TwoReadingsError) as raised:
        read_golden({"eval_id": QUESTIONS, **parts})
    assert {"score=fluency_A+fluency_B", "score=correct_A+correct_B"} <= {*raised.value.choices}
    with pytest.raises(InputError, match="score=correct_A"):
        read_golden({"eval_id": QUESTIONS, **parts}, "scores=correct_A+correct_B")


def test_flags_beside_answers_in_words_are_offered() -> None:
    table = {
        "question": QUESTIONS,
        "expected_title": [f"Title {n}" for n in range(COUNT)],
        "rag_answer": [f"It is Title {n}, I think" for n in range(COUNT)],
        "rag_correct": [n % 2 == 0 for n in range(COUNT)],
        "plain_answer": ["I do not know that one"] * COUNT,
        "plain_correct": [n % 3 == 0 for n in range(COUNT)],
        "both_correct": [n % 6 == 0 for n in range(COUNT)],
    }
    with pytest.raises(TwoReadingsError) as raised:
        read_golden(table)
    assert raised.value.choices[0] == "score=rag_correct+plain_correct"
    assert len(read_golden(table, raised.value.choices[0]).scores) == 2


def test_rows_of_a_system_in_repetitions_are_no_measures_of_two() -> None:
    rows = [
        {"topic": topic, "condition": name, "rep": rep, "novel_winrate": 0.25 * rep, "whole_winrate": 0.5}
        for topic in ("bias", "maths", "safety")
        for name in ("induction", "deduction")
        for rep in range(4)
    ]
    with pytest.raises(TwoReadingsError, match="'condition' names systems") as raised:
        read_golden(rows)
    assert "score=novel_winrate" in raised.value.choices


@pytest.mark.parametrize(
    "table",
    [
        {"code": [f"part {n}" for n in "abcdefgh"], "n": [61] * 8, "observed_agreement": OLD[:8], "kappa": NEW[:8]},
        {"Name": [f"bert-{n}" for n in range(8)], "ID": [f"3p{n}k" for n in range(8)],
         "train/acc": OLD[:8], "train/loss": NEW[:8], "eval/f1": NEW[:8]},
        {"system": ["bm25", "dense"], "mrr": [0.4, 0.5], "recall@5": [0.5, 0.6], "ranks": [[1, 2, None] * 8] * 2},
    ],
)  # fmt: skip
def test_rows_of_means_are_no_questions(table: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="means over all questions"):
        read_golden(table)


def test_sums_below_groups_are_left_out_where_the_id_is_empty() -> None:
    rows: list[dict[str, Any]] = []
    for group in ("Motor", "Home"):
        rows += [
            {"Case ID": f"{group}-{n}", "Line of business": group, "Customer question": QUESTIONS[n],
             "NDCG@10 old index": OLD[n], "NDCG@10 new index": NEW[n]} for n in range(8)
        ]  # fmt: skip
        rows.append(dict(zip(rows[0], ("", group, "Subtotal", 0.5, 0.5), strict=True)))
    found = read_golden(rows)
    assert len(found.questions) == 16 and "rows of means are left out: 2 ('Subtotal')" in found.remarks


def test_lists_of_other_things_beside_a_named_golden_set(tmp_path: Path) -> None:
    path = tmp_path / "preguntas.json"
    rows = [
        {"id": f"P{n}", "pregunta": QUESTIONS[n], "documento": f"list_{n}.csv", "hechos": [f"{n},90", f"{n} days"]}
        for n in range(8)
    ]
    path.write_text(json.dumps({"preguntas": rows}))
    assert opened(path, "expected=documento").readings[0].kind == "golden set"


def test_ratings_by_text_have_numbers_for_ids(tmp_path: Path) -> None:
    path = tmp_path / "judgments.json"
    path.write_text(json.dumps([{"query": text, "ratings": {"a-1": 3, "b-2": 1}} for text in QUESTIONS]))
    assert opened(path).readings[0].kind == "golden set"


def test_four_columns_in_another_order_are_no_judgments(tmp_path: Path) -> None:
    runs, pairs = tmp_path / "bm25.tsv", tmp_path / "qrels.tsv"
    runs.write_text("".join(f"Q{n}\t{at}\td{at}\t{9.5 - at}\n" for n in range(3) for at in range(1, 5)))
    pairs.write_text("".join(f"{n}\t{100 + at}\t1\t0\n" for n in range(3) for at in range(3)))
    for path, said in ((runs, "a run has six columns"), (pairs, "is '1' in every line")):
        with pytest.raises(InputError, match=said):
            opened(path)


def test_grades_in_words_are_refused_as_that() -> None:
    rows = [
        {"query": q, "variant": name, "position": at, "asin": f"B{at}", "esci_label": "Exact"}
        for q in QUESTIONS
        for name in ("a", "b")
        for at in (1, 2)
    ]
    with pytest.raises(InputError, match="words for grades"):
        read_golden(rows, "document=asin,grade=esci_label")


def test_lists_as_japanese_tables_have_them() -> None:
    table = {
        "番号": [*range(1, COUNT + 1)],
        "質問": [f"規則{n}は何を定めますか" for n in range(COUNT)],
        "正解文書": [f"doc-{n}" for n in range(COUNT)],
        "検索結果_旧": [f"doc-{n + 1}、doc-{n}" for n in range(COUNT)],
        "検索結果_新": [f"doc-{n}、doc-{n + 2}" for n in range(COUNT)],
    }
    assert len(read_golden(table).runs) == 2


def test_results_of_a_nested_export_are_reached(tmp_path: Path) -> None:
    path = tmp_path / "experiment.json"
    results = [
        {
            "run": {"id": f"9c{n}", "outputs": {"documents": [{"metadata": {"source": f"s{n}"}}]}},
            "example": {"id": f"ex-{n}", "inputs": {"question": text}, "outputs": {"expected": [f"s{n}"]}},
        }
        for n, text in enumerate(QUESTIONS)
    ]
    path.write_text(json.dumps({"results": results}))
    columns = "question=example.inputs.question,expected=example.outputs.expected,retrieved=run.outputs.documents"
    assert len(read_golden(path, columns).runs) == 1


def test_a_document_beside_a_question_is_the_item_of_a_label(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    labels = ["relevant", "not relevant"]
    rows = [
        "query,document,ann,ben",
        *(f"q{n // 3},doc{n % 3},{labels[n % 2]},{labels[n % 4 // 2]}" for n in range(30)),
    ]
    path.write_text("\n".join(rows))
    told = truerank.judge.agreement(paths=str(path))
    named = truerank.judge.agreement(paths=str(path), columns="id=query+document,label=ann+ben")
    assert told.json()["definitions"] == named.json()["definitions"] and told.compared[0].units == 30


def test_results_of_older_versions_of_mteb(tmp_path: Path) -> None:
    for name, shift in (("small", 0.0), ("large", 0.1)):
        folder = tmp_path / "results" / name
        folder.mkdir(parents=True)
        scores = {
            "Reranking": {"map": 0.5 + shift, "mrr": 0.6},
            "Similar": {"cos_sim": {"pearson": 0.1, "spearman": 0.7 + shift}},
            "Pairs": {"de": {"accuracy": 0.1, "main_score": 0.3 + shift}},
        }
        for task, own in scores.items():
            told = {"mteb_dataset_name": task, "mteb_version": "1.0.2", "dataset_revision": None}
            (folder / f"{task}.json").write_text(json.dumps({**told, "test": own}))
    (table,) = (one.table for one in opened(str(tmp_path / "results")).readings if one.table is not None)
    assert table.scores["large"].sort("topic_id")["value"].to_list() == pytest.approx([0.4, 0.6, 0.8])


def test_metrics_by_system_beside_their_lists_are_no_rows() -> None:
    rows = [
        {
            "question": text,
            "gold": [f"d{n}"],
            "rankings": {"old": [f"d{n + 1}", f"d{n}"], "new": [f"d{n}", f"d{n + 2}"]},
            "metrics": {"old": {"hit@1": 0, "rr": 0.5}, "new": {"hit@1": 1, "rr": 1.0}},
        }
        for n, text in enumerate(QUESTIONS)
    ]
    assert list(read_golden(rows).runs) == ["old", "new"]


def test_answers_of_few_documents_are_no_copies_of_each_other() -> None:
    orders = [("d1", "d2", "d3", "d4", "d5"), ("d2", "d1", "d3", "d5", "d4"), ("d3", "d2", "d1", "d4", "d5")]
    texts = ["how hot may it get", "what is a cell made of", "when was it first sold", "who recycles lithium"]
    rows = [
        {"question": f"{texts[n % 4]} {n}", "gold": "d1", "old": [*orders[1]], "new": [*orders[n % 3]]}
        for n in range(COUNT)
    ]
    found = truerank.check(rows)
    assert found.base is not None and found.repaired is None and found.base.topics == COUNT


def test_a_first_line_without_any_name_is_no_header(tmp_path: Path) -> None:
    path = tmp_path / "stars.csv"
    path.write_text("".join(f"D{n},the sushi is fresh and cheap {n},{n % 5 + 1}\n" for n in range(1, 11)))
    with pytest.raises(InputError, match="the first line has values"):
        read_golden(path)


def test_a_golden_set_in_portuguese(tmp_path: Path) -> None:
    path = tmp_path / "golden_set.jsonl"
    rows = [
        {"pergunta": text, "resposta_esperada": "Sim, se for pedido antes", "docs_relevantes": [f"REN-{n}"]}
        for n, text in enumerate(QUESTIONS)
    ]
    path.write_text("\n".join(map(json.dumps, rows)))
    assert opened(path).readings[0].kind == "golden set"


def test_labels_of_annotators_in_rows_are_labels(tmp_path: Path) -> None:
    path = tmp_path / "human.csv"
    rows = [f"{n // 2},Ann. {n % 2 + 1},bias,{n % 3}.0" for n in range(20)]
    path.write_text("\n".join(["art_id,ann,criteria,annotation", *rows]))
    with pytest.raises(InputError, match="judge agreement"):
        opened(path)


def test_only_options_that_lead_on_are_offered(tmp_path: Path) -> None:
    path = tmp_path / "ragas.jsonl"
    rows = [
        {
            "user_input": text,
            "reference": "it is never said in so many words",
            "retrieved_contexts": [f"a text of some words about {n}", "another one that says nothing"],
            "faithfulness": OLD[n],
            "context_recall": NEW[n],
        }
        for n, text in enumerate(QUESTIONS)
    ]
    path.write_text("\n".join(map(json.dumps, rows)))
    with pytest.raises(TwoReadingsError) as raised:
        opened(path)
    assert raised.value.choices == ("score=faithfulness", "score=context_recall")


def test_a_copied_annotator_is_named(tmp_path: Path) -> None:
    path = tmp_path / "batch.csv"
    labels = ["yes", "no", "maybe"]
    rows = ["hitid,a,b,c", *(f"H{n},{labels[n % 3]},{labels[n % 2]},{labels[n % 2]}" for n in range(COUNT))]
    path.write_text("\n".join(rows))
    notes = truerank.judge.agreement(paths=str(path)).notes
    assert any(note.startswith("b and c have the same labels on all 20 items") for note in notes)


def test_what_all_rows_share_names_no_question() -> None:
    table = {"Case ID": [812] * COUNT, "Query Text": QUESTIONS, "old_mrr": OLD, "new_mrr": NEW}
    assert len(read_golden(table).questions) == COUNT


def test_flags_called_correct_may_have_failures() -> None:
    cells = ["N/A" if n % 7 == 1 else "ERROR: timeout" if n % 7 == 2 else n % 2 for n in range(COUNT)]
    table = {"qid": QUESTIONS, "old_correct": [n % 3 % 2 for n in range(COUNT)], "new_correct": cells}
    assert list(read_golden(table).scores) == ["old_correct", "new_correct"]


def test_a_value_outside_of_its_measure_is_no_score() -> None:
    table = {"question": QUESTIONS, "faithfulness": [-1.0 if n % 6 == 1 else 0.4 + n / 50 for n in range(COUNT)]}
    with pytest.raises(InputError, match="leave the cells of failures empty") as raised:
        read_golden(table, "score=faithfulness")
    assert "--columns" not in raised.value.remedy


def test_ranks_in_words_are_missing() -> None:
    ranks = {
        f"rank_{name}": ["not found" if n % 5 == at else 1 + n % 4 for n in range(COUNT)]
        for at, name in enumerate("ab")
    }
    with pytest.raises(InputError, match="8 ranks missing"):
        read_golden({"query": QUESTIONS, **ranks})


def test_the_only_text_of_a_result_is_its_name() -> None:
    rows = [
        {"question": text, "authorities": [{"citation": f"{n} F.3d", "weight": 2}],
         "results": {"old": [f"{n + 1} F.3d", f"{n} F.3d"], "new": [f"{n} F.3d", f"{n + 2} F.3d"]}}
        for n, text in enumerate(QUESTIONS)
    ]  # fmt: skip
    found = read_golden(rows)
    assert found.qrels is not None and found.qrels["relevance"].unique().to_list() == [2]


def test_bold_rows_of_means_and_counts_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "comment.md"
    rows = [
        f"| {text} | {a} | {b} | {900 + at} |" for at, (text, a, b) in enumerate(zip(QUESTIONS, OLD, NEW, strict=True))
    ]
    path.write_text(
        "\n".join(["| Frage | alt | neu | Anzahl |", "|---|---|---|---|", *rows, "| **Mean** | 0.5 | 0.5 | 900 |"])
    )
    found = read_golden(path)
    assert len(found.questions) == COUNT and list(found.scores) == ["alt", "neu"]
