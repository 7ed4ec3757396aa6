import json
import re
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from reports_sample import made_result
from truerank.audits.leakage.calibration import calibrate
from truerank.audits.leakage.redaction import redact
from truerank.audits.leakage.report import counts_table, render
from truerank.records import Judgment

PAPER = {
    "title": ((33, 83), (140, 1775)),
    "description": ((2, 3), (8, 50)),
    "variant": ((45, 116), (167, 3356)),
    "union": ((53, 151), (181, 3960)),
}


@pytest.fixture(scope="module")
def result():
    return made_result()


@pytest.fixture(scope="module")
def page(result):
    return render(result)


def changed(result, **parts):
    return replace(result, summary={**result.summary, **parts})


def one_test(result, **parts):
    test = {**result.summary["tests"]["lakes04"], **parts}
    return changed(result, tests={"robust04": test})


def data(page):
    return json.loads(re.search(r'<script type="application/json">(.*?)</script>', page, re.DOTALL)[1])


def text_of(page):
    body = re.sub(r"<script.*?</script>|<svg.*?</svg>", "", page, flags=re.DOTALL)
    return " ".join(re.sub("<[^>]+>", " ", body).split())


def paper_counts(result):
    labels = ("MSM", "+ORC")
    fields = {
        field: {label: {"topics": t, "queries": q} for label, (t, q) in zip(labels, counts, strict=True)}
        for field, counts in PAPER.items()
    }
    return one_test(
        result, fields=fields, topics=250, sentence="181 of 250 topics (72%) have a training query above it."
    )


def test_table_1_reads_as_in_the_paper(result):
    assert counts_table(paper_counts(result).summary).text().split("\n\n", 1)[1] == (
        "             robust04\n"
        "             -------------------\n"
        "             MSM      + ORC\n"
        "             -------  ----------\n"
        "Field         T    Q    T      Q\n"
        "--------------------------------\n"
        "Title        33   83  140  1,775\n"
        "Description   2    3    8     50\n"
        "Variants     45  116  167  3,356\n"
        "--------------------------------\n"
        "Union        53  151  181  3,960\n"
    )


def test_the_verdict_comes_first_with_its_reason_and_meaning(result):
    text = text_of(render(paper_counts(result)))
    places = [
        text.index(part)
        for part in (
            "robust04 CONTAMINATED",
            "181 of 250 topics (72%) have a training query above it.",
            "3,960 distinct training queries leak.",
            "has probably seen queries of this test set",
            "Topics (T) that match a training query (Q)",
        )
    ]
    assert places == sorted(places)


def test_every_pair_is_in_the_page(result, page):
    columns = {column["key"]: column for column in data(page)["columns"]}
    assert data(page)["rows"] == 300
    assert columns["similarity"]["values"][0] == round(float(result.candidates["similarity"][0]), 6)
    assert columns["topic_id"]["codes"][-1] == len(columns["topic_id"]["dictionary"]) - 1
    assert [key for key, column in columns.items() if column["shown"]] == [
        "test",
        "topic_id",
        "text",
        "topic_text",
        "query_text",
        "source",
        "query_id",
        "similarity",
        "type",
        "standing",
        "evidence",
        "differs",
    ]


def test_the_prefilter_states_its_recall(result):
    recall = {"cuts": {"title": 0.6}, "passed": 4000, "sampled": 900, "true_pairs": 300, "missed_in_sample": 1}
    recall |= {"recall": 0.9967, "low": 0.991, "high": 0.9995, "unmodelled_low": 0.98, "by": []}
    text = text_of(render(changed(result, prefilter=recall, mode="prefilter")))
    assert "recall is 0.9967 (95% interval 0.9910 to 0.9995" in text
    assert "300 pairs found" in text
    recall |= {"recall": None, "low": 0.0, "high": 1.0, "true_pairs": 0, "missed_in_sample": 0}
    assert "Its recall cannot be estimated" in text_of(render(changed(result, prefilter=recall, mode="prefilter")))


def test_pairs_below_the_threshold_wait_behind_the_filter(result):
    lower = changed(result, threshold=0.95, floor=0.91)
    page = render(lower)
    bound = next(column for column in data(page)["columns"] if column["key"] == "similarity")
    assert bound["start"] == "0.95"
    assert "the list begins with those above 0.95" in text_of(page)
    static = re.findall(r'data-title="Similarity"><bdi>([\d.]+)<', page)
    assert min(map(float, static)) >= 0.95


def test_redacted_texts_are_nowhere(result):
    redacted = redact(result, b"0123456789abcdef")
    page = render(redacted)
    assert "Texts are redacted" in text_of(page)
    assert "heat pump" not in page
    assert {c["key"] for c in data(page)["columns"] if not c["shown"]} >= {"topic_text", "query_text"}
    dashes = replace(result, candidates=result.candidates.with_columns(query_text=pl.lit("—"), topic_text=pl.lit("")))
    assert "Texts are redacted" in text_of(render(dashes))


def test_extras_are_shown(result):
    labels = [
        Judgment(f"t{i}", f"q{i}", "x", ("Identical",) if i % 10 else ("Different Topic",), similarity=0.85 + i / 1500)
        for i in range(200)
    ]
    calibration = calibrate(labels, min_precision=0.8)
    news = {"pairs": 12, "topics": ["301"], "queries": 11, "known": 7, "gone": 0}
    baseline = {"tests": {"lakes04": news}, "pairs": [], "pairs_left_out": 0, "warnings": []}
    shown = replace(changed(result, baseline=baseline), calibration=calibration)
    provenance = {"seed": 7, "inputs": [{"name": "orcas", "sha256": "ab12"}]}
    text = text_of(page := render(shown, provenance))
    assert "Leaking pairs since the baseline." in text and "lakes04 12 1 11 7 0" in text
    assert "name sha256 orcas ab12" in text
    assert repr(calibration).splitlines()[0] in text.replace("&#x27;", "'")
    assert f"n = {int(np.max(calibration.n))} labels -->" in page


def test_the_text_lets_no_terminal_sequence_through(result):
    named = changed(result, tests={"\x1b]0;owned\x07": result.summary["tests"]["lakes04"]})
    assert "\x1b" not in str(named)
