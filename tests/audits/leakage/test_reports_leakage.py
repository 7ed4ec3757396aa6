import hashlib
import json
import os
import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from places import SUPPORT
from reports_sample import made_candidates, made_result, made_summary
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
    return one_test(result, fields=fields, topics=250, why="181 of 250 topics (72%) have a training query above it.")


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
            "3,960 distinct training queries lie above 0.91.",
            "has probably seen queries of this test set",
            "Topics (T) with training queries (Q)",
        )
    ]
    assert places == sorted(places)


def test_every_verdict_is_explained(page):
    text = text_of(page)
    assert "2 contaminated, 1 clean and 1 unknown." in text
    assert "beir-kelp CLEAN Every training query was read" in text
    assert "What it can see is measured" in text
    assert "Title Synonym".lower() in text.lower()
    assert "web09 UNKNOWN Nothing above the threshold, but 3 topics have no text" in text
    assert "This is not a clean result." in text


def test_an_unknown_test_set_has_no_share(page):
    finding = page[page.index(">web09<") : page.index("</article>", page.index(">web09<"))]
    assert 'class="share"' not in finding


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
        "evidence",
        "differs",
    ]


def test_one_test_set_needs_no_column(result):
    alone = replace(result, candidates=result.candidates.filter(test="core17"))
    assert not data(render(alone))["columns"][0]["shown"]


def test_types_are_counted(result, page):
    identical = result.candidates.filter(test="lakes04", type="identical").height
    assert f"Identical {identical} " in text_of(page)


def test_estimated_counts_say_so(page):
    assert "orcas 10,405,342 ≈ 10,390,000 2 14 0" in text_of(page)
    assert "Numbers of distinct queries with a ≈ are estimates." in text_of(page)


def test_an_uncalibrated_threshold_says_so(result):
    assert "The threshold of 0.91 is not calibrated for this encoder" in text_of(render(result))
    calibrated = changed(result, calibrated=True)
    assert "The threshold of 0.91 was calibrated for this encoder" in text_of(render(calibrated))
    assert "not calibrated" not in str(calibrated)


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


def test_without_pairs_the_page_says_so(result):
    none = replace(result, candidates=result.candidates.clear(), neighbours=result.neighbours.clear())
    text = text_of(render(none))
    assert "No training query has a similarity above 0.91 to a text of a topic." in text


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
    assert "Pairs above the threshold since the baseline." in text and "lakes04 12 1 11 7 0" in text
    assert "name sha256 orcas ab12" in text
    assert repr(calibration).splitlines()[0] in text.replace("&#x27;", "'")
    assert f"n = {int(np.max(calibration.n))} labels -->" in page


def test_what_the_summary_knows_is_shown_without_extras(result):
    text = text_of(render(changed(result, labels={"confirmed": 31})))
    assert "Judged by people confirmed 31" in text


def test_wide_tables_are_cut_by_test_set(result):
    tests = {f"set{i}": result.summary["tests"]["lakes04"] for i in range(5)}
    page = render(changed(result, tests=tests))
    assert page.count("<caption>Topics (T) with training queries (Q)") == 5
    assert ">Leakage audit of 5 test sets</h1>" in page


def test_the_text_fits_a_terminal(result):
    text = str(result)
    assert max(map(len, text.splitlines())) <= 100
    assert text.startswith("CONTAMINATED: lakes04\n    ")
    assert "UNKNOWN: web09\n    Nothing above the threshold" in text
    assert text.splitlines()[-1].startswith("Union")


def test_the_text_lets_no_terminal_sequence_through(result):
    named = changed(result, tests={"\x1b]0;owned\x07": result.summary["tests"]["lakes04"]})
    assert "\x1b" not in str(named)


def test_the_same_audit_has_the_same_bytes_in_another_process(page):
    code = "from reports_sample import made_result; from truerank.audits.leakage.report import render\nimport hashlib\n"
    code += "print(hashlib.sha256(render(made_result()).encode()).hexdigest())"
    path = os.pathsep.join([str(SUPPORT), *sys.path])
    environment = {**os.environ, "PYTHONHASHSEED": "3", "PYTHONPATH": path}
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    assert out.stdout.strip() == hashlib.sha256(page.encode()).hexdigest()


def test_the_sample_holds_what_it_says():
    candidates = made_candidates(300)
    assert candidates.height == 300
    assert made_summary(candidates)["tests"]["lakes04"]["fields"]["union"]["+orcas"]["queries"] == 186
