"""What rows and files mean beside each other: numbers of rows and questions, several labels, sets, failures, sums."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import truerank
from truerank.errors import TwoReadingsError
from truerank.sources.golden import read_golden
from truerank.sources.qrels import judged_pairs
from truerank.sources.recognition import Opened, opened

Table = dict[str, Sequence[Any]]
VERBS, THINGS = ("renew", "cancel", "export", "share"), ("the invoice", "a contract", "my password")
QUESTIONS = [f"How do I {verb} {thing} after the deadline?" for verb in VERBS for thing in THINGS]
COUNT = len(QUESTIONS)
#: Each question's place in a file with other rows first.
MOVED = [(5 * place + 3) % COUNT for place in range(COUNT)]
VALUES = {
    "old": [round(0.31 + n / 37, 2) for n in range(COUNT)],
    "new": [round(0.44 + n / 41, 2) for n in range(COUNT)],
}


def write(path: Path, table: Table) -> str:
    if path.suffix == ".json":
        path.write_text(json.dumps([dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]))
    else:
        with path.open("w", newline="") as file:
            csv.writer(file).writerows([[*table], *zip(*table.values(), strict=True)])
    return str(path)


def moved(table: Table) -> Table:
    return {name: [cells[place] for place in MOVED] for name, cells in table.items()}


def remarks(found: Opened) -> str:
    return "\n".join(line for one in found.readings for line in one.lines())


@pytest.mark.parametrize("index", ["", "index", "id", "Nr", "Unnamed: 0"])
@pytest.mark.parametrize("form", ["csv", "json"])
def test_numbers_of_rows_do_not_pair_questions(tmp_path: Path, index: str, form: str) -> None:
    numbers: Table = {index or "index" if form == "json" else index: range(COUNT)}
    paths = [
        write(tmp_path / f"{name}.{form}", {**numbers, **(change({"question": QUESTIONS, "score": VALUES[name]}))})
        for name, change in (("old", dict), ("new", moved))
    ]
    found = opened(paths)
    assert found.scores is not None
    assert "paired by their texts" in remarks(found) and "does not name the same question in each file" in remarks(
        found
    )
    texts = dict(found.scores.questions.iter_rows())
    for name, values in VALUES.items():
        scores = {texts[topic]: value for topic, value in found.scores.scores[name].iter_rows()}
        assert scores == dict(zip(QUESTIONS, values, strict=True))
    column = index or "index"
    # What is named wins.
    assert "paired by" not in remarks(opened(paths, f"id={column}"))
    assert "--columns names them" in remarks(opened(paths, "question=question"))


def test_texts_pair_files_of_which_one_has_no_numbers(tmp_path: Path) -> None:
    old = write(tmp_path / "old.csv", {"index": range(COUNT), "question": QUESTIONS, "score": VALUES["old"]})
    new = write(tmp_path / "new.csv", moved({"question": [*map(str.upper, QUESTIONS)], "score": VALUES["new"]}))
    found = opened([old, new])
    assert found.scores is not None and len(found.scores.questions) == COUNT
    assert "new.csv has no ids" in remarks(found)


def test_ids_with_other_texts_are_asked_about_unless_few_differ(tmp_path: Path) -> None:
    ids = [f"q{n}" for n in range(COUNT)]
    old = write(tmp_path / "old.csv", {"id": ids, "question": QUESTIONS, "score": VALUES["old"]})
    edited = [f"{text[:-1]}, please?" if n < 3 else text for n, text in enumerate(QUESTIONS)]
    same = write(tmp_path / "new.csv", moved({"id": ids, "question": edited, "score": VALUES["new"]}))
    assert "paired by" not in remarks(opened([old, same]))
    other = write(tmp_path / "new.csv", {"id": ids, "question": [f"x {t}" for t in QUESTIONS], "score": VALUES["new"]})
    with pytest.raises(TwoReadingsError, match="q0 is 'How do I renew") as raised:
        opened([old, other])
    assert raised.value.choices == ("id=id",)
    assert opened([old, other], "id=id").scores is not None


EXPECTED = [f"d{n}" for n in range(COUNT)]
LISTS = {
    "old": [f"x{n};d{n};y{n}" for n in range(COUNT)],
    "new": [f"d{n};y{n};z{n}" for n in range(COUNT)],
}  # fmt: skip


@pytest.mark.parametrize("apart", [True, False])
def test_golden_files_are_paired_by_text_where_numbers_count_rows(tmp_path: Path, apart: bool) -> None:
    gold: Table = {"question": QUESTIONS, "expected": EXPECTED}
    paths = [write(tmp_path / "golden.csv", {"": range(COUNT), **gold})] if apart else []
    for name, change in (("old", dict), ("new", moved)):
        own: Table = {"question": QUESTIONS, "retrieved": LISTS[name]} if apart else {**gold, "retrieved": LISTS[name]}
        paths.append(write(tmp_path / f"{name}.csv", {"": range(COUNT), **change(own)}))
    found = opened(paths).results
    assert found is not None and found.qrels is not None
    wanted = dict(found.qrels.select("topic_id", "doc_id").iter_rows())
    for name, first in (("old", "x"), ("new", "d")):
        own = {topic: doc for topic, doc, _, rank in found.runs[name].iter_rows() if rank == 1}
        assert own == {topic: doc.replace("d", first) for topic, doc in wanted.items()}


def test_questions_of_one_file_only_are_counted_in_the_first_lines(tmp_path: Path) -> None:
    old = write(tmp_path / "old.csv", {"question": QUESTIONS[:9], "score": VALUES["old"][:9]})
    new = write(tmp_path / "new.csv", {"question": QUESTIONS[4:], "score": VALUES["new"][4:]})
    assert "7 of 12 questions are not in all files" in remarks(opened([old, new]))


LABELS: Table = {
    "query_id": [f"q{n % 6}" for n in range(24)],
    "query": [QUESTIONS[n % 6] for n in range(24)],
    "doc_id": [f"d{n % 6}" if n < 12 else f"e{n % 6}" for n in range(24)],
    "relevance": [1] * 6 + [0, 0, 1, 1, 1, 1] + [0] * 12,
    "annotator": ["ann"] * 6 + ["bob"] * 6 + ["ann"] * 6 + ["bob"] * 6,
}
RESULTS: Table = {
    "query_id": [f"q{n % 6}" for n in range(12)],
    "doc_id": [f"{'de'[n // 6]}{n % 6}" for n in range(12)],
    "rank": [1 + n // 6 for n in range(12)],
}


@pytest.mark.parametrize("flip", [1, -1])
@pytest.mark.parametrize("beside", ["results", "run", "nothing"])
def test_of_several_labels_the_highest_counts_whatever_their_order(tmp_path: Path, flip: int, beside: str) -> None:
    labels = write(tmp_path / "labels.csv", {name: [*cells][::flip] for name, cells in LABELS.items()})
    paths = [labels]
    if beside == "results":
        paths.append(write(tmp_path / "bm25.csv", RESULTS))
    if beside == "run":
        lines = [f"q{n % 6} Q0 {'de'[n // 6]}{n % 6} {1 + n // 6} {9 - n // 6} bm25\n" for n in range(12)]
        (tmp_path / "bm25.run").write_text("".join(lines))
        paths.append(str(tmp_path / "bm25.run"))
    found = opened(paths)
    assert "2 pairs of topic and document judged with several grades" in remarks(found)
    if found.results is not None and found.results.qrels is not None:
        assert sum(found.results.qrels["relevance"]) == 6
    if beside == "nothing":
        assert found.readings[0].kind == "golden set" and found.readings[0].numbers is not None
        # The audit finds the contradictions; what counts is the highest.
        judged, said = judged_pairs(found.sources["qrels"])
        first = judged.filter(pl.col("doc_id").str.starts_with("d"))
        assert set(first["relevance"]) == {1} and set(first["topic_id"]) == set(LABELS["query_id"])
        assert "2 pairs of topic and document judged with several grades" in " ".join(said)
        audit = truerank.collection.audit(paths=paths)
        assert "QREL12" in {finding.kind.code for finding in audit.findings}
        # One system's results in their order have to be called so.
        results = opened(paths, "retrieved=doc_id").results
        assert results is not None and [*results.runs] == ["labels"]


def test_labels_of_people_and_of_a_model_are_named(tmp_path: Path) -> None:
    who = ["human"] * 6 + ["gpt-4o"] * 6 + ["human"] * 6 + ["gpt-4o"] * 6
    labels = write(tmp_path / "labels.csv", {**LABELS, "annotator": who})
    assert "'annotator' has human (12) and gpt-4o (12)" in remarks(opened([labels, write(tmp_path / "a.csv", RESULTS)]))
    assert "all rows count alike" not in remarks(opened([write(tmp_path / "people.csv", LABELS)]))


@pytest.mark.parametrize("name", ["n_gold", "num_relevant", "n_expected", "gold_count", "number of relevant docs"])
def test_a_count_is_no_expected_document(name: str) -> None:
    counts = [1 + n % 3 for n in range(COUNT)]
    shares = [n % 3 / 2 for n in range(COUNT)]
    scores: Table = {"recall_5_base": shares, "recall_5_tuned": shares[::-1]}
    found = read_golden({"query": QUESTIONS, name: counts, **scores})
    assert [*found.scores] == ["base", "tuned"] and any(name in remark for remark in found.remarks)
    golden = read_golden({"query": QUESTIONS, "gold": EXPECTED, name: counts, "retrieved": LISTS["old"]})
    assert golden.columns["expected"] == ("gold",) and len(golden.runs) == 1
    scored = read_golden({"query": QUESTIONS, "gold_id": [1 + n % 3 for n in range(COUNT)], **scores})
    assert scored.scores and not scored.runs


@pytest.mark.parametrize(
    ("names", "first"),
    [
        (("v1_gpt4", "v1_claude", "v2_gpt4", "v2_claude"), "score=v1_gpt4+v2_gpt4"),
        (("score_v1_judge_a", "score_v1_judge_b", "score_v2_judge_a", "score_v2_judge_b"), ""),
        (("ann old", "ann new", "bob old", "bob new", "eve old", "eve new"), "score=ann old+bob old+eve old"),
    ],
)
def test_two_factors_in_names_of_columns_are_asked_about(names: Sequence[str], first: str) -> None:
    table: Table = {
        "question": QUESTIONS,
        **{name: VALUES["old"][at:] + VALUES["new"][:at] for at, name in enumerate(names)},
    }
    with pytest.raises(TwoReadingsError, match="each of") as raised:
        read_golden(table)
    assert raised.value.choices[0] == (first or "score=score_v1_judge_a+score_v2_judge_a")
    counts = [len(read_golden(table, choice).scores) for choice in raised.value.choices]
    assert counts == [*[len(names) // 2] * 2, *[2] * (len(names) // 2), len(names)]
    assert len(read_golden({name: table[name] for name in ["question", *names[1:]]}).scores) == len(names) - 1


@pytest.mark.parametrize("label", ["Subtotal {}", "Average {}", "Total: {}", "Ø {}", "Zwischensumme {}", "Mean"])
def test_rows_of_sums_between_questions_are_left_out(label: str) -> None:
    rows = [{"Question": text, "Old": a, "New": b} for text, a, b in zip(QUESTIONS, *VALUES.values(), strict=True)]
    for place, part in ((12, "HR"), (6, "Billing")):
        rows.insert(place, {"Question": label.format(part), "Old": 0.5, "New": 0.6})
    found = read_golden(rows)
    assert len(found.questions) == COUNT and label.format("HR") in " ".join(found.remarks)


def test_questions_that_begin_like_sums_stay() -> None:
    asked: Table = {"question": ["Average cost of a seat?", "Mean time to repair?", *QUESTIONS[2:]], **VALUES}
    assert len(read_golden(asked).questions) == COUNT
    words: Table = {"query": ["total war", "average salary", "media player", *map(str, THINGS), *"abcdef"], **VALUES}
    assert len(read_golden(words, "question=query").questions) == COUNT


@pytest.mark.parametrize(
    ("column", "cells", "said"),
    [
        ("split", ["train"] * 7 + ["test"] * 5, "'split' has train (7) and test (5)"),
        ("part", ["dev"] * 6 + ["test"] * 6, "'part' has dev (6) and test (6)"),
        ("status_old", ["ok"] * 9 + ["timeout"] * 3, "'status_old' says timeout in 3 rows, whose 'old' is 0"),
        ("error", [""] * 9 + ["Rate limit error"] * 3, "'error' says Rate limit error in 3 rows, whose 'old' is 0"),
        ("failed", ["False"] * 9 + ["True"] * 3, "'failed' says True in 3 rows"),
        ("split", ["test"] * 12, ""),
        ("status", ["ok"] * 12, ""),
        ("category", ["errors"] * 6 + ["billing"] * 6, ""),
        ("area", ["test"] * 6 + ["billing"] * 6, ""),
    ],
)
def test_columns_that_say_that_rows_are_not_alike_are_named(column: str, cells: Sequence[str], said: str) -> None:
    values = {"old": [*VALUES["old"][:9], 0.0, 0.0, 0.0], "new": VALUES["new"]}
    found = read_golden({"question": QUESTIONS, column: cells, **values})
    assert len(found.scores) == 2 and (said in " ".join(found.remarks) if said else not found.remarks)
    golden = read_golden({"question": QUESTIONS, column: cells, "expected": EXPECTED, "retrieved": LISTS["old"]})
    assert said.partition(",")[0] in " ".join(golden.remarks)
