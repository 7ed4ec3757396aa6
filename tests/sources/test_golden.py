"""Golden files and score tables in the layouts that people have: read rightly, or refused with both readings."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from truerank.errors import InputError, TwoReadingsError
from truerank.sources.golden import read_golden
from truerank.sources.recognition import read_as_given

QUESTIONS = [f"how do I set option {number} of the printer?" for number in range(12)]
EXPECTED = [[f"kb-{number}", *([f"kb-{number + 50}"] if number % 3 == 0 else [])] for number in range(12)]
FIRST = [[f"kb-{number + 7}", f"kb-{number}", f"kb-{number + 90}"] for number in range(12)]
SECOND = [[f"kb-{number + 30}", f"kb-{number + 31}", f"kb-{number}"] for number in range(12)]
ROWS = list(zip(QUESTIONS, EXPECTED, FIRST, SECOND, strict=True))


def table(
    path: Path, head: Sequence[str], rows: Sequence[Sequence[Any]], *, sign: str = ",", code: str = "utf-8"
) -> Path:
    with path.open("w", encoding=code, newline="") as stream:
        writer = csv.writer(stream, delimiter=sign)
        writer.writerows([head, *rows])
    return path


def wide(path: Path, join: Callable[[list[str]], Any], **how: Any) -> Path:
    rows = [(question, *map(join, lists)) for question, *lists in ROWS]
    return table(path, ("question", "expected", "retrieved_a", "retrieved_b"), rows, **how)


def holds_the_rows(path: Any, systems: tuple[str, str] = ("a", "b"), columns: str = "") -> None:
    found = read_golden(path, columns)
    assert found.qrels is not None
    assert tuple(found.runs) == systems
    topics = found.questions["topic_id"].to_list()
    judged = dict(found.qrels.group_by("topic_id").agg("doc_id").iter_rows())
    assert [judged[topic] for topic in topics] == EXPECTED
    for name, lists in zip(systems, (FIRST, SECOND), strict=True):
        run = found.runs[name].sort("topic_id", "rank")
        assert [run.filter(topic_id=topic)["doc_id"].to_list() for topic in topics] == lists
        assert run.sort("topic_id", "score", descending=[False, True])["rank"].equals(run["rank"])


@pytest.mark.parametrize(
    "form", [";".join, "|".join, "\n".join, ",".join, " ".join, " / ".join, "、".join, json.dumps, repr]
)
def test_lists_as_texts(form: Callable[[list[str]], str], tmp_path: Path) -> None:
    holds_the_rows(wide(tmp_path / "a.csv", form))


def test_a_sign_that_every_part_has_belongs_to_the_ids(tmp_path: Path) -> None:
    # Half of what is expected is never found.
    lists = [((n, n + 100) if n % 3 else (n,), (n, n + 1, n + 2), (n + 5, n, n + 7)) for n in range(12)]
    rows = [(f"what is {at}?", *(" | ".join(f"Report {n}, part 1" for n in own) for own in three))
            for at, three in enumerate(lists)]  # fmt: skip
    found = read_golden(table(tmp_path / "a.tsv", ("question", "expected", "a", "b"), rows, sign="\t"))
    assert "lists are separated by '|'" in found.remarks
    for name, place in (("a", 1), ("b", 2)):
        hits = found.runs[name].join(found.qrels, on=["topic_id", "doc_id"])
        assert len(found.runs[name]) == 36 and hits["rank"].to_list() == [place] * 12


@pytest.mark.parametrize(
    "how",
    [
        {"sign": ";"},
        {"sign": "\t"},
        {"sign": "|"},
        {"code": "utf-8-sig"},
        {"code": "utf-16"},
        {"sign": "\t", "code": "utf-16"},
    ],
)
def test_separators_and_encodings(how: dict[str, str], tmp_path: Path) -> None:
    path = wide(tmp_path / "a.csv", json.dumps, **how)
    holds_the_rows(path)
    assert [one.kind for one in read_as_given([str(path)])] == ["golden file"]


def test_a_table_of_windows_keeps_its_letters(tmp_path: Path) -> None:
    path = table(
        tmp_path / "a.csv", ("question", "gold", "results"), [("Où est le café ?", "d1", "d1;d2")], code="cp1252"
    )
    found = read_golden(path)
    assert found.questions["text"].to_list() == ["Où est le café ?"]
    assert found.remarks == ("read as Windows-1252",)


def test_a_table_of_japanese_windows(tmp_path: Path) -> None:
    rows = [(f"{n}番の木はどこに生えていますか", f"文書{n}、文書{n + 1}", f"文書{n + 1}、文書{n}") for n in range(9)]
    path = table(tmp_path / "評価.csv", ("質問", "正解文書", "新システム"), rows, code="cp932")
    found = read_golden(path, "question=質問,expected=正解文書,retrieved=新システム")
    assert found.questions["text"].to_list() == [row[0] for row in rows] and "read as Shift-JIS" in found.remarks
    assert found.runs["新システム"]["doc_id"].to_list()[:2] == ["文書1", "文書0"]


def test_records_frames_and_long_forms(tmp_path: Path) -> None:
    records = [{"query": q, "gold_ids": g, "retrieved": {"a": a, "b": b}} for q, g, a, b in ROWS]
    (tmp_path / "a.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in records))
    (tmp_path / "a.json").write_text(json.dumps(records, indent=1))
    frame = pl.DataFrame({"question": QUESTIONS, "expected": EXPECTED, "a": FIRST, "b": SECOND})
    frame.write_parquet(tmp_path / "a.parquet")
    for given in (tmp_path / "a.jsonl", tmp_path / "a.json", tmp_path / "a.parquet", frame, frame.to_dicts(), records):
        holds_the_rows(given)
    long = [(q, ";".join(g), name, ";".join(one)) for q, g, *both in ROWS for name, one in zip("ab", both, strict=True)]
    holds_the_rows(table(tmp_path / "b.csv", ("question", "expected", "system", "results"), long))
    by_row = [
        (number, name, place, doc, 1 / place, ";".join(row[1]))
        for number, row in enumerate(ROWS)
        for name, one in zip("ab", row[2:], strict=True)
        for place, doc in enumerate(one, start=1)
    ]
    holds_the_rows(table(tmp_path / "c.csv", ("qid", "model", "rank", "doc_id", "score", "expected"), by_row))


def test_results_as_objects_and_scores_by_document() -> None:
    rows = [
        {
            "input": q,
            "relevant_docs": dict.fromkeys(g, 2),
            "a": [{"page_content": f"about {doc}", "metadata": {"source": doc}} for doc in a],
            "b": {doc: 9.0 - place for place, doc in enumerate(b)},
        }
        for q, g, a, b in ROWS
    ]
    holds_the_rows(rows)
    found = read_golden(rows)
    assert found.qrels is not None and set(found.qrels["relevance"]) == {2}


def test_ids_as_numbers_are_one_id(tmp_path: Path) -> None:
    rows = [(q, float(n), f"[{n + 1}, {n}]", f"{n};{n + 2}") for n, q in enumerate(QUESTIONS)]
    found = read_golden(table(tmp_path / "a.csv", ("question", "expected", "a", "b"), rows))
    assert found.qrels is not None and found.qrels["doc_id"].to_list() == [str(n) for n in range(12)]
    assert found.runs["a"].filter(rank=2)["doc_id"].to_list() == [str(n) for n in range(12)]


def test_expected_texts_are_looked_for(tmp_path: Path) -> None:
    texts = [[f"The long passage number {n} says: press button {n}, twice.", "Another one."] for n in range(12)]
    rows = [
        (q, f"Press button {n if n else 'none of them'}, twice" if n % 2 == 0 else texts[n][0], json.dumps(texts[n]))
        for n, q in enumerate(QUESTIONS)
    ]
    found = read_golden(table(tmp_path / "a.csv", ("user_input", "reference_answer", "retrieved_contexts"), rows))
    assert "6 equal to a document, 5 contained in one, 1 in none" in found.remarks[0]


def test_what_was_done_to_rows_is_counted() -> None:
    rows = [
        {"question": "one", "expected": "d1", "results": ["d1", "d1", "d2"]},
        {"question": "one", "expected": "d3", "results": ["d1", "d1", "d2"]},
        {"question": "two", "expected": None, "results": ["d1"]},
        {"question": "three", "expected": "d3", "results": []},
    ]
    found = read_golden(rows)
    assert found.qrels is not None and len(found.qrels) == 3
    said = " ".join(found.remarks)
    for part in (
        "several rows",
        "expect other documents",
        "1 question without an expected",
        "nothing for 1",
        "1 result repeated in one list; the first place counts",
    ):
        assert part in said, part


@pytest.mark.parametrize(
    ("head", "rows", "fault"),
    [
        (("question", "results"), [("q", "d1;d2")], "no column with the expected answers"),
        (("question", "gold_ids", "relevant_docs", "results"), [("q", "d1", "d2", "d1")], "two readings: expected in"),
        (("question", "expected", "results"), [("q", "7", "007;008")], "without leading zeros"),
        (("question", "expected", "results"), [("q", "KB-1", "kb-1;kb-2")], "in small letters"),
        (("question", "expected", "results"), [("q", "x1", "y1;y2")], "no expected id is among the results"),
        (("question", "expected", "results"), [("q", "d1", "d1;d2"), ("r", "d1", "d1,d2")], "lists separated by"),
        (("question", "expected", "results"), [("q", "d1")], "2 cells below 3 columns"),
        (("question", "expected", "results"), [("q", "d1", "d1"), ("q", "d1", "d2")], "with other results"),
        (("question", "a_ndcg", "b_ndcg", "a_recall", "b_recall"), [("q", 1, 0, 1, 1)], "several measures"),
        (("name", *(f"q{n}" for n in range(9))), [("x", *range(9)), ("y", *range(9))], "two readings: 'name'"),
        (("question", "expected", "a", "a_scores"), [("q", "d1", "d1;d2;d3", "[0.1, 0.9, 0.4]")], "or by their scores"),
        (("run", "measure", "value"), [("a", "AP", 0.5), ("b", "AP", 0.4)], "no column that names the question"),
        (("question", "note"), [("q", "hello there")], "no results and no scores"),
        (("question", "question"), [("q", "r")], "appears twice"),
    ],
)  # fmt: skip
def test_two_readings_and_broken_tables_are_refused(
    head: Sequence[str], rows: Sequence[Sequence[Any]], fault: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError) as raised:
        read_golden(table(tmp_path / "a.csv", head, rows))
    assert fault in str(raised.value)


def test_an_option_decides(tmp_path: Path) -> None:
    rows = [(q, ";".join(g), "kb-1", ";".join(a), ";".join(b)) for q, g, a, b in ROWS]
    path = table(tmp_path / "a.csv", ("question", "gold_ids", "relevant_docs", "a", "b"), rows)
    holds_the_rows(path, columns="expected=gold_ids,retrieved=a+b")
    with pytest.raises(InputError, match="no column 'c'"):
        read_golden(path, "retrieved=a+c")


def test_html_is_no_table(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("<html><body>Sign in</body></html>")
    with pytest.raises(InputError, match="HTML"):
        read_golden(tmp_path / "a.csv")


def test_score_tables(tmp_path: Path) -> None:
    scores = [(f"q{n}", n / 12, (n + 1) / 12) for n in range(12)]
    decimal = [(name, *(f"{one:.3f}".replace(".", ",") for one in own)) for name, *own in scores]
    long = [
        (name, system, own + trial)
        for name, *both in scores
        for system, own in zip("ab", both, strict=True)
        for trial in (-0.1, 0.1)
    ]
    turned = [("a", *(one[1] for one in scores)), ("b", *(one[2] for one in scores))]
    files = (
        table(tmp_path / "a.csv", ("item", "a", "b"), scores),
        table(tmp_path / "b.csv", ("item", "a", "b"), decimal, sign=";"),
        table(tmp_path / "c.csv", ("question", "model", "score"), long),
        table(tmp_path / "d.csv", ("system", *(one[0] for one in scores)), turned),
        table(tmp_path / "e.csv", ("id", "a_ndcg@10", "b_ndcg@10"), scores),
    )
    for path in files:
        found = read_golden(path)
        assert found.qrels is None and list(found.scores) == ["a", "b"], path
        assert found.scores["b"]["value"].to_list() == pytest.approx([one[2] for one in scores], abs=1e-3)
    assert "12" not in read_golden(files[0]).remarks and "means over repeats" in read_golden(files[2]).remarks[0]


@pytest.mark.parametrize(
    ("head", "rows", "fault"),
    [
        (("id", "gold", "top_1", "top_2"), [("q", "d1", "d1", "d2"), ("r", "d2", "d3", "d2")], "places of one system"),
        (("question", "a", "b"), [("q", 0.5, 120), ("r", 0.4, 90)], "different scales"),
        (("question", "a", "b"), [("q", 0.5, 0.1), ("r", 0.4, ""), ("s", 0.4, "")], "fewer than half"),
        (("question", "gold", "retrieved_chunks"), [("q", "a.md", "a.md#1;b.md#2")], "without what follows '#'"),
    ],
)  # fmt: skip
def test_numbers_that_are_no_scores(
    head: Sequence[str], rows: Sequence[Sequence[Any]], fault: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError) as raised:
        read_golden(table(tmp_path / "a.csv", head, rows))
    assert fault in str(raised.value)


def test_answers_as_words_and_labels_by_row(tmp_path: Path) -> None:
    rows = [(f"q{n}", "pass" if n % 2 else "fail", "yes") for n in range(6)]
    found = read_golden(table(tmp_path / "a.csv", ("id", "old", "new"), rows))
    assert found.scores["old"]["value"].to_list() == [0, 1, 0, 1, 0, 1] and found.scores["new"]["value"].sum() == 6
    long = [(f"q{n}", f"d{place}", place, "yes" if place == n else "no") for n in range(1, 4) for place in range(1, 5)]
    judged = read_golden(table(tmp_path / "b.csv", ("query", "doc", "rank", "relevant"), long)).qrels
    assert judged is not None and judged.filter(relevance=1)["doc_id"].to_list() == ["d1", "d2", "d3"]


@pytest.mark.parametrize(
    "rows",
    [
        {"model": ["bm25", "dense", "both"], "ndcg@10": [0.3, 0.4, 0.5], "recall@10": [0.5, 0.6, 0.6]},
        {"system": ["bm25", "dense"], "ndcg@10": [0.3, 0.4], "mrr": [0.5, 0.6], "recall@5": [0.2, 0.3]},
        {"Modell": ["bm25", "dense"], "ndcg": [0.3, 0.4]},
        {"metric": ["ndcg@10", "recall@10", "mrr"], "bm25": [0.3, 0.5, 0.5], "dense": [0.4, 0.6, 0.6]},
    ],
)
def test_a_table_of_means_is_called_so(rows: dict[str, list[Any]]) -> None:
    with pytest.raises(InputError, match="means over all questions"):
        read_golden(rows)


def test_ids_that_differ_by_the_form_of_their_letters() -> None:
    composed, decomposed = "Pr\u00fcfung", "Pru\u0308fung"
    rows = {"question": ["a b c", "d e f"], "expected": [composed, "plain"]}
    for first in ([decomposed], [decomposed, "x"]):
        for second in (["x"], ["plain"]):
            with pytest.raises(InputError, match=r"Unicode \(NFC\).*decomposed"):
                read_golden({**rows, "retrieved_a": [first, second], "retrieved_b": [["x"], ["plain"]]})


def test_digits_that_meet_by_chance_are_no_reason() -> None:
    rows = {
        "question": [f"how to do {one}" for one in "abcd"],
        "expected": [f"kb-{one}" for one in range(4)],
        "retrieved": [[f"page {one + 1}"] for one in range(4)],
    }
    with pytest.raises(InputError, match="no expected id") as raised:
        read_golden(rows)
    assert "digits" not in str(raised.value)
    rows["retrieved"] = [[f"KB {one}.pdf"] for one in range(4)]
    with pytest.raises(InputError, match="by their digits"):
        read_golden(rows)


@pytest.mark.parametrize("name", ["cosine_distance", "rank"])
@pytest.mark.parametrize("fault", ["", "two readings"])
def test_distances_beside_results_have_to_rise(name: str, fault: str, tmp_path: Path) -> None:
    numbers = [1, 3, 2] if fault else [1, 2, 3]
    rows = [
        {"question": question, "expected": expected}
        | {
            key: [{"id": doc, name: n} for doc, n in zip(own, numbers, strict=True)]
            for key, own in zip("ab", lists, strict=True)
        }
        for question, expected, *lists in ROWS
    ]
    (tmp_path / "rows.json").write_text(json.dumps(rows))
    if not fault:
        holds_the_rows(tmp_path / "rows.json")
    else:
        with pytest.raises(InputError, match=fault):
            read_golden(tmp_path / "rows.json")


@pytest.mark.parametrize("sign", ["; ", "\n"])
@pytest.mark.parametrize("apart", [False, True])
def test_the_sign_between_names_that_hold_others(sign: str, *, apart: bool, tmp_path: Path) -> None:
    def names(ids: list[str]) -> list[str]:
        return [f"Report of {one.removeprefix('kb-')}, part {one}.pdf" for one in ids]

    rows = [(question, *(sign.join(names(ids)) for ids in lists)) for question, *lists in ROWS]
    if apart:
        gold = table(tmp_path / "gold.csv", ("question", "expected"), [row[:2] for row in rows])
        results = table(
            tmp_path / "results.csv", ("question", "retrieved_a", "retrieved_b"), [row[:1] + row[2:] for row in rows]
        )
        found = next(one.table for one in read_as_given([gold, results]) if one.table is not None)
    else:
        found = read_golden(table(tmp_path / "a.csv", ("question", "expected", "a", "b"), rows))
    shown = {"\n": "line ends", "; ": "';'"}.get(sign, f"'{sign}'")
    assert any(one.endswith(f"separated by {shown}") for one in found.remarks)
    for name, lists in zip("ab", (FIRST, SECOND), strict=True):
        run = found.runs[name].sort("topic_id", "rank").join(found.questions, on="topic_id")
        hits = run.join(found.qrels, on=["topic_id", "doc_id"])
        met = {(row["text"], row["rank"]) for row in hits.iter_rows(named=True)}
        assert met == {
            (question, place)
            for question, expected, own in zip(QUESTIONS, EXPECTED, lists, strict=True)
            for place, doc in enumerate(own, 1)
            if doc in expected
        }
        assert run.group_by("topic_id").len()["len"].unique().to_list() == [3]


def test_commas_within_ids_do_not_separate_them(tmp_path: Path) -> None:
    # Few are found, and the first halves of ids meet everywhere.
    rows = [
        (f"what is {n}?", f"shop,{n}", "|".join(f"shop,{n + 6 - 6 * (n < 4) + k}" for k in (0, 1, 2)))
        for n in range(12)
    ]
    found = read_golden(table(tmp_path / "a.csv", ("question", "expected", "results"), rows))
    assert found.qrels is not None
    assert found.qrels["doc_id"].to_list() == [f"shop,{n}" for n in range(12)]
    assert found.runs["results"]["doc_id"].str.count_matches(",").unique().to_list() == [1]


@pytest.mark.parametrize("columns", ["", "expected=gold_1+gold_2"])
def test_expected_documents_in_several_columns(columns: str, tmp_path: Path) -> None:
    head = ("question", "gold_1", "gold_2", *(f"{name}_{place}" for name in "ab" for place in (1, 2, 3)))
    rows = [(question, *[*expected, ""][:2], *first, *second) for question, expected, first, second in ROWS]
    holds_the_rows(table(tmp_path / "a.csv", head, rows), columns=columns)


def test_one_of_several_expected_columns_is_asked_about(tmp_path: Path) -> None:
    rows = [
        (question, *[*expected, ""][:2], ";".join(first), ";".join(second))
        for question, expected, first, second in ROWS
    ]
    path = table(tmp_path / "a.csv", ("question", "gold_1", "gold_2", "a", "b"), rows)
    with pytest.raises(TwoReadingsError) as raised:
        read_golden(path)
    assert raised.value.choices[0] == "expected=gold_1+gold_2"
    holds_the_rows(path, columns=raised.value.choices[0])
    with pytest.raises(InputError, match="2 columns for 'document'"):
        read_golden(path, "document=gold_1+gold_2")


def test_a_nested_column_is_named_with_its_dots(tmp_path: Path) -> None:
    rows = [
        {"question": q, "out": {"a": one, "b": other}, "kept": {"mine": gold, "note": []}}
        for q, gold, one, other in ROWS
    ]
    (tmp_path / "a.json").write_text(json.dumps(rows))
    holds_the_rows(tmp_path / "a.json", columns="expected=kept.mine,retrieved=out.a+out.b")
    deep = [
        {"question": q, "x": {"y.z": {"a": one, "b": other, "n": 1}, "gold": gold, "m": 2}}
        for q, gold, one, other in ROWS
    ]
    (tmp_path / "a.json").write_text(json.dumps(deep))
    holds_the_rows(tmp_path / "a.json", columns="expected=x.gold,retrieved=x.y.z.a+x.y.z.b")


@pytest.mark.parametrize("above", ["Results,,,,\nby us,2026-10-01,,,\n,,,,\n", "Results\n\n", ""])
def test_titles_filled_up_with_separators(above: str, tmp_path: Path) -> None:
    rows = [(question, *map(json.dumps, lists), "") for question, *lists in ROWS]
    path = table(tmp_path / "a.csv", ("question", "expected", "a", "b", ""), rows)
    path.write_text(above + path.read_text())
    holds_the_rows(path)


@pytest.mark.parametrize("head", ["question,old,", "question,old", "old,new"])
def test_a_header_that_names_too_few_columns_is_not_a_title(head: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(f"{head}\n" + "".join(f"case {n},{n},{n}\n" for n in range(5)))
    with pytest.raises(InputError, match=r"column without a name|cells below"):
        read_golden(tmp_path / "a.csv")


def by_result(numbers: Sequence[float], name: str) -> list[dict[str, Any]]:
    return [
        {"question": question, "expected": expected, "system": system, "doc_id": doc, name: number}
        for question, expected, *lists in ROWS
        for system, own in zip("ab", lists, strict=True)
        for doc, number in sorted(zip(own, numbers, strict=True))
    ]


@pytest.mark.parametrize("name", ["distance", "cosine_distance"])
def test_the_smallest_distance_comes_first(name: str) -> None:
    holds_the_rows(by_result((0.1, 0.2, 0.5), name))


def test_distances_that_fall_in_each_list_are_asked_about() -> None:
    rows = [
        {"qid": n, "expected": "d1", "doc_id": doc, "distance": d}
        for n in "qr"
        for doc, d in (("d1", 0.9), ("d2", 0.1))
    ]
    with pytest.raises(InputError, match="two readings"):
        read_golden(rows)


def test_numbers_that_count_up_are_places_or_scores() -> None:
    with pytest.raises(TwoReadingsError) as raised:
        read_golden(by_result((1, 2, 3), "value"))
    assert raised.value.choices == ("rank=value", "score=value")
    holds_the_rows(by_result((1, 2, 3), "value"), columns="rank=value")
    holds_the_rows(by_result((3, 2, 1), "value"), columns="score=value")
    holds_the_rows(by_result((3, 2, 1), "score"))
    holds_the_rows(by_result((4.5, 2, 1), "value"))


def test_results_within_what_a_program_returned(tmp_path: Path) -> None:
    rows = [
        {"inputs": {"question": question},
         "outputs": {"answer": "x", "documents": [{"metadata": {"source": doc}} for doc in first]},
         "reference_outputs": {"sources": expected}, "feedback": {"correctness": 1}}
        for question, expected, first, _ in ROWS
    ]  # fmt: skip
    (tmp_path / "a.json").write_text(json.dumps(rows))
    (run,) = read_golden(tmp_path / "a.json").runs.values()
    assert run.sort("topic_id", "rank").filter(topic_id="1")["doc_id"].to_list() == FIRST[0]
