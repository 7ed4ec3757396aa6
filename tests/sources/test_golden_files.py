"""Evaluations in several files, tables with other words in their headers, and what spreadsheets and programs add."""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import truerank
from truerank.errors import InputError, TwoReadingsError
from truerank.sources.golden import GoldenTable, merged_tables, read_golden
from truerank.sources.golden_scores import failure_marks
from truerank.sources.recognition import Reading, read_as_given

#: Questions, what is expected of them, and two lists.
EVALUATION = {
    f"how does part {n} of the pump work?": (
        [f"kb-{n}", f"kb-{n + 40}"],
        [f"kb-{n}", f"kb-{n + 100}", f"kb-{n + 101}"],
        [f"kb-{n + 200}", f"kb-{n}", f"kb-{n + 40}"],
    )
    for n in range(20)
}
ROWS = [(question, *lists) for question, lists in EVALUATION.items()]


def write(path: Path, head: Sequence[str], rows: Sequence[Sequence[Any]], sign: str = ",") -> Path:
    cells = [[json.dumps(cell) if isinstance(cell, list) else str(cell) for cell in row] for row in rows]
    pl.DataFrame(cells, schema=list(head), orient="row").write_csv(path, separator=sign)
    return path


def tables(readings: Sequence[Reading]) -> GoldenTable:
    return merged_tables([one.table for one in readings if one.table is not None and one.table.qrels is not None])


def holds_the_evaluation(found: GoldenTable, *systems: str) -> None:
    """Whether each question has its expected documents and its two lists."""
    assert set(found.runs) == set(systems) and found.qrels is not None
    texts = dict(found.questions.iter_rows())
    expected: dict[str, set[str]] = {}
    for topic, doc in found.qrels.select("topic_id", "doc_id").iter_rows():
        expected.setdefault(str(texts[topic]), set()).add(doc)
    assert expected == {question: set(lists[0]) for question, lists in EVALUATION.items()}
    for place, system in enumerate(systems, 1):
        run = found.runs[system].sort("topic_id", "rank").group_by("topic_id", maintain_order=True).agg("doc_id")
        assert {texts[topic]: docs for topic, docs in run.iter_rows()} == {
            question: lists[place] for question, lists in EVALUATION.items()
        }


def gold_rows(folder: Path) -> Path:
    rows = [(question, doc) for question, expected, *_ in ROWS for doc in expected]
    return write(folder / "gold.csv", ("query", "doc_id"), rows)


def gold_lists(folder: Path) -> Path:
    path = folder / "truth.jsonl"
    path.write_text("\n".join(json.dumps({"query": row[0], "docs": row[1]}) for row in reversed(ROWS)))
    return path


def gold_places(folder: Path) -> Path:
    return write(folder / "solutions.csv", ("query", "doc1", "doc2", "doc3"), [(q, *docs, "") for q, docs, *_ in ROWS])


def gold_yaml(folder: Path) -> Path:
    path = folder / "golden.yaml"
    path.write_text("cases:\n" + "".join(f"- question: {q}\n  expected: {json.dumps(docs)}\n" for q, docs, *_ in ROWS))
    return path


def results_by_rank(folder: Path) -> Sequence[Path]:
    rows = [(q, name, n, doc) for q, _, *both in ROWS for name, docs in zip("ab", both, strict=True)
            for n, doc in enumerate(docs)]  # fmt: skip
    return [write(folder / "hits.csv", ("query", "model", "position", "doc_id"), rows[::-1])]


def results_by_file(folder: Path) -> Sequence[Path]:
    return [
        write(folder / f"{name}.csv", ("query", "hit1", "hit2", "hit3"), [(row[0], *row[place]) for row in ROWS], ";")
        for place, name in enumerate("ab", 2)
    ]


def results_as_lists(folder: Path) -> Sequence[Path]:
    for place, name in enumerate("ab", 2):
        lines = [json.dumps({"query": row[0], "docs": row[place]}) for row in ROWS]
        (folder / f"{name}.jsonl").write_text("\n".join(lines))
    return [folder / "a.jsonl", folder / "b.jsonl"]


@pytest.mark.parametrize("gold", [gold_rows, gold_lists, gold_places, gold_yaml])
@pytest.mark.parametrize("results", [results_by_rank, results_by_file, results_as_lists])
def test_expected_and_retrieved_in_files_of_their_own(
    gold: Callable[[Path], Path], results: Callable[[Path], Sequence[Path]], tmp_path: Path
) -> None:
    readings = read_as_given([gold(tmp_path), *results(tmp_path)])
    holds_the_evaluation(tables(readings), "a", "b")
    assert [one.kind for one in readings].count("expected answers") == 1


def test_graded_rows_beside_runs_are_judgments(tmp_path: Path) -> None:
    labels = write(tmp_path / "labels.tsv", ("query_id", "doc_id", "label"), [("t1", "a", 3), ("t1", "b", 0)], "\t")
    (tmp_path / "x.run").write_text("t1 Q0 b 1 2.0 x\nt1 Q0 a 2 1.0 x\n")
    found = {one.kind: one for one in read_as_given([labels, tmp_path / "x.run"])}
    judged = found["judgments"].numbers
    assert (
        isinstance(judged, pl.DataFrame)
        and judged.rows() == [("t1", "a", 3), ("t1", "b", 0)]
        and set(found) == {"judgments", "run"}
    )


@pytest.mark.parametrize(
    "head",
    [
        ("pregunta", "esperados", "viejo", "nuevo"),
        ("質問", "正解", "旧", "新"),
        ("case", "should_find", "did_a", "did_b"),
    ],
)
def test_columns_are_known_by_what_they_hold(head: Sequence[str], tmp_path: Path) -> None:
    found = read_golden(write(tmp_path / "a.csv", head, ROWS))
    assert found.columns["expected"] == (head[1],) and found.columns["retrieved"] == tuple(head[2:])
    assert found.qrels is not None and len(found.qrels) == 40


def test_a_column_of_systems_is_known_by_its_values(tmp_path: Path) -> None:
    rows = [(q, name, docs, own) for q, docs, *both in ROWS for name, own in zip("ab", both, strict=True)]
    holds_the_evaluation(read_golden(write(tmp_path / "a.csv", ("frage", "aufbau", "soll", "ist"), rows)), "a", "b")


def test_lists_of_one_length_are_not_guessed(tmp_path: Path) -> None:
    rows = [(question, both[0], both[0]) for question, _, *both in ROWS]
    with pytest.raises(InputError, match="no column with the expected"):
        read_golden(write(tmp_path / "a.csv", ("frage", "eins", "zwei"), rows))


FORMS: Mapping[str, Callable[[list[dict[str, Any]]], Any]] = {
    "columns of a frame": lambda rows: {key: {str(n): row[key] for n, row in enumerate(rows)} for key in rows[0]},
    "columns and data": lambda rows: {"columns": list(rows[0]), "data": [list(row.values()) for row in rows]},
    "records within": lambda rows: {"made": "2025", "config": {"k": 3}, "output": {"rows": rows}},
    "records by id": lambda rows: {f"q{n}": row for n, row in enumerate(rows)},
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("indent", [None, 1])
def test_forms_of_json(form: str, indent: int | None, tmp_path: Path) -> None:
    rows = [{"question": q, "expected": docs, "a": a, "b": b} for q, docs, a, b in ROWS]
    (tmp_path / "a.json").write_text(json.dumps(FORMS[form](rows), indent=indent))
    holds_the_evaluation(read_golden(tmp_path / "a.json"), "a", "b")


def test_records_by_system_and_question(tmp_path: Path) -> None:
    value = {
        name: {q: {"relevant": docs, "retrieved": both[place]} for q, docs, *both in ROWS}
        for place, name in enumerate("ab")
    }
    (tmp_path / "a.json").write_text(json.dumps({"k": 10, "results": value}))
    found = read_golden(tmp_path / "a.json")
    assert list(found.runs) == ["a", "b"] and found.qrels is not None and len(found.qrels) == 40


def test_what_spreadsheets_add(tmp_path: Path) -> None:
    rows = "".join(f"case {n};0,{n + 20};{n + 30},0 %\n" for n in range(9))
    text = f"Comparison;;\n2025-03-01;;\n\ncase;old;new\n# by hand\n{rows}case 9;#DIV/0!;40 %\n;;\nMean;0,24;34,0 %\n"
    (tmp_path / "a.csv").write_text(text)
    found = read_golden(tmp_path / "a.csv")
    assert list(found.scores) == ["old", "new"] and len(found.questions) == 10
    assert found.scores["old"]["value"].to_list() == pytest.approx([(n + 20) / 100 for n in range(9)])
    assert found.scores["new"]["value"].to_list() == pytest.approx([(n + 30) / 100 for n in range(9)] + [0.4])
    said = " ".join(found.remarks)
    assert all(part in said for part in ("2 lines above the header", "1 comment left", "'Mean'", "1 score is missing"))


def test_texts_without_ids_are_their_answers(tmp_path: Path) -> None:
    """Two systems that cut documents in two ways are compared by the answers that their texts contain."""
    readings = []
    for width in (4, 6):
        rows = [
            {
                "question": f"how long is leave {n}?",
                "reference": [f"leave {n} takes {n} days"],
                "contexts": [
                    f"Section {width}. Leave {n} takes {n} days." + " And so on." * width,
                    f"Other {n} of {width}.",
                ],
            }
            for n in range(12)
        ]
        path = tmp_path / f"chunks{width}.jsonl"
        path.write_text("\n".join(map(json.dumps, rows)))
        readings += read_as_given([path])
    found = tables(readings)
    assert list(found.runs) == ["chunks4", "chunks6"] and found.qrels is not None and len(found.qrels) == 12
    judged = set(found.qrels.select("topic_id", "doc_id").iter_rows())
    for run in found.runs.values():
        assert len(judged & set(run.filter(pl.col("rank") == 1).select("topic_id", "doc_id").iter_rows())) == 12


@pytest.mark.parametrize(
    ("head", "rows", "fault"),
    [
        (("query", "relevant", "retrieved"), [("q", ["a"], "['a', 'b', ...")], "cut off"),
        (("query", "expected", "retrieved"), [(f"q{n}", [*"abcdefgh"], ["a"]) for n in range(9)], "which is"),
        (("item", "flavour", "rater", "stars"), [("i", v, r, 3) for v in "ab" for r in "cd"], "several rows"),
    ],
)  # fmt: skip
def test_what_could_be_read_wrongly_is_refused(
    head: Sequence[str], rows: Sequence[Sequence[Any]], fault: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError) as raised:
        read_golden(write(tmp_path / "a.csv", head, rows))
    assert fault in str(raised.value)


def test_percent_and_shares_are_not_compared(tmp_path: Path) -> None:
    for name, factor in (("ours", 1), ("theirs", 100)):
        write(tmp_path / f"{name}.csv", ("id", "ndcg"), [(n, factor * n / 30) for n in range(30)])
    with pytest.raises(InputError, match="different scales"):
        merged_tables(
            [one.table for one in read_as_given([tmp_path / "ours.csv", tmp_path / "theirs.csv"]) if one.table]
        )


def test_zeros_that_a_spreadsheet_took_are_named(tmp_path: Path) -> None:
    rows = [(f"q{n}", place, f"{n + place:06}") for n in range(9) for place in (1, 2, 3)]
    paths = [
        write(tmp_path / "expected.csv", ("question", "part_no"), [(f"q{n}", n + 1) for n in range(9)]),
        write(tmp_path / "parts.csv", ("question", "rank", "part_no"), rows),
    ]
    with pytest.raises(InputError, match="without leading zeros, some are"):
        read_as_given(paths)


def test_two_readings_name_the_options(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.csv", ("item", "flavour", "rater", "stars"), [("i", v, r, 3) for v in "ab" for r in "cd"]
    )
    with pytest.raises(TwoReadingsError) as raised:
        read_golden(path)
    assert "system=flavour" in raised.value.choices
    assert list(read_golden(path, "system=flavour,repeat=rater").scores) == ["a", "b"]


def test_an_empty_list_is_an_answer(tmp_path: Path) -> None:
    """A system that retrieves nothing scores 0 there: its file is complete."""
    for name in "ab":
        rows = []
        for n in range(24):
            docs = [f"x{n}", f"d{n}"] if n % (2 if name == "a" else 3) else [f"d{n}", f"{name}{n}"]
            found = docs if name == "a" or n > 3 else []
            rows.append({"question": f"what is {n}?", "expected": [f"d{n}"], "results": found})
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    result = truerank.check([tmp_path / "a.jsonl", tmp_path / "b.jsonl"])
    assert result.claim is not None and len(result.claim.evaluation.topics) == 24
    assert result.answer("files").repair is None


def test_flags_are_no_ids(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv", ("query", "relevant", "retrieved"), [(f"q{n}", "1", "1,0,0") for n in range(9)])
    with pytest.raises(InputError, match="flags"):
        read_golden(path)


def test_a_named_column_of_scores_counts_beside_texts(tmp_path: Path) -> None:
    rows = [(f"why {n}?", ["a b c"], "some answer here", n / 10, 1 - n / 10) for n in range(10)]
    path = write(tmp_path / "a.csv", ("user_input", "contexts", "reference", "faithfulness", "relevancy"), rows)
    assert list(read_golden(path, "score=faithfulness").scores) == ["a"]


@pytest.mark.parametrize(
    ("name", "head", "rows", "fault"),
    [
        ("eval", ("question", "bm25", "vector"), [(f"q{n}", 1 + n % 4, 3) for n in range(9)], "times or counts"),
        ("latency", ("question", "bm25", "vector"), [(f"q {n}", 0.4, 0.2) for n in range(9)], "lower may be better"),
        ("bench", ("question", "bm25_s", "vector_s"), [(f"q {n}", 0.4, 0.2) for n in range(9)], "lower may be better"),
        ("log", ("system", "question", "Clause", "Score"),
         [(s, f"q {n}", f"art {n + m} {s}", 0.5) for s in "ab" for n in range(9) for m in range(3)], "with 'Clause'"),
    ],
)  # fmt: skip
def test_numbers_that_may_be_something_else(
    name: str, head: Sequence[str], rows: Sequence[Sequence[Any]], fault: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError) as raised:
        read_golden(write(tmp_path / f"{name}.csv", head, rows))
    assert fault in str(raised.value)


def test_times_differences_and_row_numbers_beside_scores(tmp_path: Path) -> None:
    rows = [(n, f"q{n}", 0.1 * n, 0.05 * n, 0.05 * n, 30 + n, n / 2) for n in range(9)]
    path = write(tmp_path / "a.csv", ("", "item", "old", "new", "Δ", "latency_ms", "avg"), rows)
    found = read_golden(path)
    assert list(found.scores) == ["old", "new"] and "'Δ', 'latency_ms', 'avg'" in " ".join(found.remarks)


def test_lists_of_two_systems_by_place(tmp_path: Path) -> None:
    rows = [(q, docs[0], *a, *b) for q, docs, a, b in ROWS]
    head = ("question", "expected", *(f"a_{n}" for n in (1, 2, 3)), *(f"b_{n}" for n in (1, 2, 3)))
    found = read_golden(write(tmp_path / "a.csv", head, rows))
    assert list(found.runs) == ["a", "b"] and len(found.runs["a"]) == 3 * len(ROWS)


def test_a_system_that_never_hits_is_asked_about(tmp_path: Path) -> None:
    rows = [(q, docs, a, [f"other-{doc}" for doc in b]) for q, docs, a, b in ROWS]
    path = write(tmp_path / "a.csv", ("question", "expected", "results_a", "vectors"), rows)
    with pytest.raises(TwoReadingsError) as raised:
        read_golden(path)
    assert raised.value.choices[0] == "retrieved=results_a+vectors"


def test_columns_are_named_for_the_files_that_have_them(tmp_path: Path) -> None:
    gold = write(tmp_path / "gold.csv", ("query", "answer", "source_doc"), [(q, "by hand.", d[0]) for q, d, *_ in ROWS])
    results = results_as_lists(tmp_path)
    found = tables(read_as_given([gold, *results], "expected=source_doc"))
    assert set(found.runs) == {"a", "b"} and found.qrels is not None and len(found.qrels) == len(ROWS)
    with pytest.raises(InputError, match="no column 'sources'"):
        read_as_given([gold, *results], "expected=sources")


def test_judgments_and_runs_of_one_object(tmp_path: Path) -> None:
    place = tmp_path / "dump.json"
    runs = {"a": {"q1": {"d1": 2.5, "d3": 3.0}}, "b": {"q1": {"d2": 0.1}, "q2": {"d9": 0.2}}}
    place.write_text(
        json.dumps({"meta": {"k": 10}, "qrels": {"q1": {"d1": 2, "d2": 0}, "q2": {"d9": 1}}, "runs": runs})
    )
    found = read_golden(place)
    assert found.qrels is not None and found.qrels.rows() == [("q1", "d1", 2), ("q1", "d2", 0), ("q2", "d9", 1)]
    assert found.runs["a"]["doc_id"].to_list() == ["d3", "d1"] and found.empty["a"] == {"q2"}


def test_what_psql_prints(tmp_path: Path) -> None:
    lines = (
        " id |  query  | gold_doc |   lexical   |  semantic",
        "----+---------+----------+-------------+-----------",
        " 11 | how a b | D-87     | {D-87,D-57} | {D-80}",
        " 12 | how c d | D-1      | {D-2}       | {D-1,D-3}",
        "(2 rows)",
    )
    (tmp_path / "result.txt").write_text("\n".join(lines))
    found = read_golden(tmp_path / "result.txt")
    assert {name: run["doc_id"].to_list() for name, run in found.runs.items()} == {
        "lexical": ["D-87", "D-57", "D-2"],
        "semantic": ["D-80", "D-1", "D-3"],
    }


def test_parts_of_one_export(tmp_path: Path) -> None:
    rows = [{"qid": f"q{n}", "system": s, "relevant": ["d1"], "ranking": ["d1", s]} for n in range(6) for s in "ab"]
    for part in range(2):
        own = rows[6 * part : 6 * part + 6]
        (tmp_path / f"part-{part}.jsonl").write_text("\n".join(map(json.dumps, own)))
    merged = merged_tables([one.table for one in read_as_given([tmp_path]) if one.table is not None])
    assert set(merged.runs) == {"a", "b"} and merged.runs["a"]["topic_id"].n_unique() == 6
    (tmp_path / "part-2.jsonl").write_text(json.dumps(rows[0]))
    with pytest.raises(InputError, match="a system 'a' in two files"):
        merged_tables([one.table for one in read_as_given([tmp_path]) if one.table is not None])


def test_what_a_program_that_judges_answers_made_is_asked_about() -> None:
    rows = {
        "user_input": ["how a b", "how c d"], "retrieved_contexts": [["one two three"], ["four five six"]],
        "reference": ["one two three", "four five six"], "faithfulness": [0.5, 0.25], "context_recall": [1.0, 0.0],
    }  # fmt: skip
    with pytest.raises(InputError, match=r"several readings.*score=faithfulness"):
        read_golden(rows)
    (scores,) = read_golden(rows, "score=context_recall").scores.values()
    assert scores["value"].to_list() == [1.0, 0.0]
    assert read_golden(rows, "expected=reference,retrieved=retrieved_contexts").runs


def test_ids_of_rows_are_no_questions() -> None:
    tables = [
        read_golden({"id": [f"{name}{n}" for n in order], "inputs.question": [f"how is {n}" for n in order],
                     "reference_outputs.answer": ["a"] * 5, "outputs.answer": ["b"] * 5,
                     "feedback.correctness": [0.1 * n for n in order]})
        for name, order in (("x", range(5)), ("y", range(4, -1, -1)))
    ]  # fmt: skip
    merged = merged_tables([replace(one, name=f"{place}.csv") for place, one in enumerate(tables)])
    (first, other) = (dict(frame.iter_rows()) for frame in merged.scores.values())
    assert first == pytest.approx(other) and len(first) == 5


def test_an_object_names_a_system() -> None:
    rows = [
        {"provider": {"id": name, "label": ""}, "vars": {"query": f"how is {n}"}, "response": "x", "score": value}
        for n in range(4)
        for name, value in (("a", 0.5), ("b", 0.25))
    ]
    found = read_golden(rows)
    assert {name: own["value"].to_list() for name, own in found.scores.items()} == {"a": [0.5] * 4, "b": [0.25] * 4}


def test_an_excel_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "eval.xlsx"
    place.write_bytes(b"PK\x03\x04")
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "openpyxl", None)
        with pytest.raises(InputError, match=r"pip install 'truerank\[excel\]'"):
            read_golden(place)
    openpyxl = pytest.importorskip("openpyxl", reason="openpyxl is not installed: Excel files are not tested")
    with pytest.raises(InputError, match="cannot be read"):
        read_golden(place)
    book = openpyxl.Workbook()
    for row in (("Question", "Expected", "Retrieved"), ("how a b", 12, "12; 13"), ("how c d", 14, "13; 14")):
        book.active.append(row)
    book.save(place)
    found = read_golden(place)
    assert found.qrels is not None and found.qrels["doc_id"].to_list() == ["12", "14"]
    assert found.runs and next(iter(found.runs.values()))["doc_id"].to_list() == ["12", "13", "13", "14"]
    book.create_sheet("notes").append(("written in May",))
    book.save(place)
    assert read_golden(place).runs


def test_sheets_of_a_workbook_are_named_behind_a_sign(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl", reason="openpyxl is not installed: Excel files are not tested")
    book = openpyxl.Workbook()
    book.active.title = "golden"
    names = {"golden": ("question", "doc"), "bm25 v1": ("question", "results"), "dense": ("question", "results")}
    for place, (name, head) in enumerate(names.items()):
        sheet = book[name] if name in book.sheetnames else book.create_sheet(name)
        sheet.append(head)
        for question, *lists in ROWS:
            sheet.append((question, "; ".join(lists[place])))
    book.save(tmp_path / "eval.xlsx")
    with pytest.raises(InputError, match=r"3 sheets with tables .* '.*eval.xlsx#bm25 v1'"):
        read_golden(tmp_path / "eval.xlsx")
    with pytest.raises(InputError, match=r"no sheet 'x' \('golden'"):
        read_golden(f"{tmp_path}/eval.xlsx#x")
    found = truerank.check([f"{tmp_path}/eval.xlsx#{name}" for name in names])
    assert found.claim is not None and {found.claim.system, found.claim.baseline} == {"bm25 v1", "dense"}
    assert found.base is not None and found.base.topics == 20


@pytest.mark.parametrize("folders", [("bm25/2026-01-03", "dense/2026-01-04"), ("2026-01-03/bm25", "2026-01-04/dense")])
def test_folders_name_systems_where_files_do_not(folders: tuple[str, str], tmp_path: Path) -> None:
    for place, folder in enumerate(folders, 2):
        (tmp_path / folder).mkdir(parents=True)
        write(
            tmp_path / folder / "results.csv",
            ("query", "expected", "hits"),
            [(row[0], row[1], row[place]) for row in ROWS],
        )
    holds_the_evaluation(tables(read_as_given([tmp_path])), "bm25", "dense")


def test_parts_of_results_in_folders_are_not_systems(tmp_path: Path) -> None:
    for name, own in (("one", ROWS[:10]), ("other", ROWS[10:])):
        (tmp_path / name).mkdir()
        write(
            tmp_path / name / "results.csv",
            ("id", "expected", "hits"),
            [(str(ROWS.index(row)), *row[1:3]) for row in own],
        )
    with pytest.raises(InputError, match="a system 'results' in two files"):
        tables(read_as_given([tmp_path]))


@pytest.mark.parametrize("lists", [False, True])
def test_results_of_promptfoo(lists: bool, tmp_path: Path) -> None:
    results = [
        {
            "id": f"{name}-{test}", "testIdx": test, "promptIdx": 0, "provider": {"id": name, "label": ""},
            "score": test % 2,
            "vars": {"query": row[0], "expected": row[1]},
            "response": {"output": json.dumps(row[place]) if lists else "It works."},
        }
        for test, row in enumerate(ROWS)
        for place, name in enumerate(("a.py", "b.py"), 2)
    ]  # fmt: skip
    if lists:
        results[-1].pop("response")
    (tmp_path / "output.json").write_text(json.dumps({"results": {"version": 3, "results": results}, "config": {}}))
    (found,) = [one.table for one in read_as_given([tmp_path / "output.json"])]
    assert found is not None and found.questions["text"].to_list() == [row[0] for row in ROWS]
    if lists:
        assert found.empty["b.py"] == {"19"} and not found.empty["a.py"]
        assert found.runs["b.py"].filter(topic_id="3").sort("rank")["doc_id"].to_list() == ROWS[3][3]
    else:
        assert set(found.scores) == {"a.py", "b.py"}
        assert found.scores["a.py"].sort("topic_id")["value"].sum() == len(ROWS) / 2


@pytest.mark.parametrize("name", ["rank", "score", "cosine_distance"])
def test_numbers_order_results_beside_judgments(name: str, tmp_path: Path) -> None:
    (tmp_path / "a.qrels").write_text("".join(f"q{n} 0 {doc} 1\n" for n, row in enumerate(ROWS) for doc in row[1]))
    sign = -1 if name == "score" else 1
    rows = [(f"q{n}", doc, sign * place / 4) for n, row in enumerate(ROWS) for place, doc in enumerate(row[3], 1)]
    rows.sort(key=lambda row: row[1])
    readings = read_as_given([tmp_path / "a.qrels", write(tmp_path / "a.csv", ("qid", "doc_id", name), rows)])
    (run,) = [one.numbers for one in readings if one.kind == "run"]
    assert run is not None and {topic: sorted(own, key=lambda doc: -own[doc]) for topic, own in run.items()} == {
        f"q{n}": row[3] for n, row in enumerate(ROWS)
    }


def test_the_column_that_has_ids_of_results_is_named(tmp_path: Path) -> None:
    write(
        tmp_path / "answers.csv",
        ("query", "answer", "sources"),
        [(row[0], "by a belt", " ".join(row[1])) for row in ROWS],
    )
    write(tmp_path / "found.csv", ("query", "hits"), [(row[0], row[2]) for row in ROWS])
    with pytest.raises(InputError) as raised:
        read_as_given([tmp_path / "answers.csv", tmp_path / "found.csv"])
    assert "'sources' of answers.csv" in raised.value.fault and "expected=sources" in raised.value.remedy
    paths = [tmp_path / "answers.csv", tmp_path / "found.csv"]
    assert tables(read_as_given(paths, "expected=sources")).runs["hits"]["doc_id"].len() == 3 * len(ROWS)


@pytest.mark.parametrize("odd", ["NaN", "Infinity"])
def test_a_number_that_is_not_finite_is_named_with_its_file(odd: str, tmp_path: Path) -> None:
    (tmp_path / "new.json").write_text(
        f'{{"q1": {{"d1": 0.5, "d2": {odd}}}, "q2": {{"d3": 0.5}}, "q3": {{"d4": 1.5}}}}'
    )
    with pytest.raises(InputError, match="q1, document d2") as raised:
        read_as_given([tmp_path / "new.json"])
    assert raised.value.where == str(tmp_path / "new.json")


def scored(mark: object, count: int, *, scale: float = 1.0, digits: int = 4, seed: int = 3) -> dict[str, list[object]]:
    """Scores of two systems on 40 questions, with a mark in place of some of the second one's."""
    draw = random.Random(seed)
    a = [round(scale * draw.random(), digits) for _ in range(40)]
    b: list[object] = [mark if n < count else round(scale * draw.random(), digits) for n in range(40)]
    return {"id": list(range(100, 140)), "a": list(a), "b": b}


@pytest.mark.parametrize(
    ("mark", "count", "scale"),
    [(-1, 6, 1), (-1, 1, 1), (-1.0, 3, 100), (-999, 2, 1), (9999, 2, 1), (99, 1, 1), ("-1", 6, 1), (-999, 1, 100)],
)
def test_marks_of_failures_are_no_scores(mark: object, count: int, scale: float) -> None:
    table = scored(mark, count, scale=scale)
    if scale > 1:
        table = {"id": table["id"], "score_a": table["a"], "score_b": table["b"]}
    found = f"{float(str(mark)):g} in {count} scores? of '(score_)?b'"
    with pytest.raises(InputError, match=f"{found}.*failures, or scores.*leave"):
        read_golden(table)
    rows = [
        {"qid": qid, "model": name, "score": table[name][n]}
        for n, qid in enumerate(table["id"])
        for name in list(table)[1:]
    ]
    with pytest.raises(InputError, match=found):
        read_golden(rows)
    if str(mark).startswith("-1"):
        said = " ".join(read_golden(table, f"score={'+'.join(list(table)[1:])}").remarks)
        assert f"-1 in {count} score" in said and "counted" in said


def test_scores_below_zero_are_no_marks_of_failures() -> None:
    draw = random.Random(5)
    kinds = {
        "cosines": lambda: round(draw.uniform(-0.2, 1), 4),
        "correlations": lambda: round(draw.uniform(-1, 1), 1),
        "logits": lambda: round(draw.gauss(2, 3), 2),
        "votes": lambda: draw.choice([-1, 0, 1]),
        "stars": lambda: draw.choice([1, 2, 3, 4, 5]),
        "logarithms": lambda: -round(draw.expovariate(0.3), 3),
        "percent": lambda: draw.choice([99, 98.5, 97, round(draw.uniform(0, 100), 1)]),
        "scale": lambda: draw.choice([-3, -1, 0, 2, 4]),
    }
    for name, one in kinds.items():
        marks, certain = failure_marks([float(one()) for _ in range(60)])
        assert not certain and (not marks or name == "votes"), name


def test_texts_in_a_column_of_scores_are_named() -> None:
    found = read_golden(scored("timeout", 4))
    assert list(found.scores) == ["a", "b"]
    assert "b: 4 cells are no numbers, such as 'timeout'; averages leave these questions out" in " ".join(found.remarks)
    missing = read_golden(scored("NaN", 4))
    assert "b: 4 scores are missing" in " ".join(missing.remarks)
