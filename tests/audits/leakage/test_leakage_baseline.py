"""What is new since an earlier audit."""

import json

import pytest

from leakage_example import audit, save
from truerank.audits.leakage.baseline import since_baseline
from truerank.audits.leakage.redaction import redact
from truerank.audits.leakage.report import since_table
from truerank.errors import InputError

KEY, OTHER = b"0123456789abcdef", b"fedcba9876543210"
OLD = [
    ("robust", "301", "title", "log", "q1", "organized crime", 0.97),
    ("robust", "302", "title", "log", "q2", "polio", 0.95),
    ("robust", "303", "title", "log", "q3", "hubble", 0.905),
]


def test_nothing_new(tmp_path):
    moved = [
        ("robust", "301", "title", "another log", "7", " organized\tcrime", 0.99),
        ("robust", "302", "title", "log", "q2", "polio", 0.95),
    ]
    news = since_baseline(audit(moved, sources=("log", "another log")), save(audit(OLD), tmp_path / "old"))
    assert not news.contaminated
    assert news.tests["robust"] == {"pairs": 0, "topics": [], "queries": 0, "known": 2, "gone": 0}
    assert news.warnings == ("Training sources that the baseline does not have: another log.",)


def test_new_pairs_fields_topics_and_gone_ones():
    now = [
        *OLD[:1],
        ("robust", "301", "description", "log", "q1", "organized crime", 0.92),
        ("robust", "303", "title", "log", "q3", "hubble", 0.915),
        ("robust", "303", "title", "log", "q4", "hubble", 0.915),
        ("robust", "304", "title", "log", "q5", "below", 0.905),
    ]
    news = since_baseline(audit(now), audit(OLD))
    assert news.contaminated
    assert news.new.select("topic_id", "field", "query_id").rows() == [
        ("301", "description", "q1"), ("303", "title", "q3"), ("303", "title", "q4"),
    ]  # fmt: skip
    assert news.new.columns == audit(now).candidates.columns
    # q3 and q4 have one text: one pair.
    assert news.tests["robust"] == {"pairs": 2, "topics": ["301", "303"], "queries": 2, "known": 1, "gone": 1}
    assert news.warnings == ()
    assert json.loads(json.dumps(news.json()))["new"] is True
    assert "new pairs" in since_table(news.json()).text()


def test_applied_to_the_audit():
    result = audit(OLD)
    applied = since_baseline(result, audit(OLD[:1])).apply(result)
    assert applied.summary["baseline"]["tests"]["robust"]["topics"] == ["302"]
    assert applied.summary["tests"] == result.summary["tests"]
    assert "baseline" not in result.summary


def test_warnings_when_audits_differ():
    now = audit(OLD, threshold=0.92, tests=("robust", "core"), mode="prefilter", encoder="new-model")
    before = audit(OLD, sources=("log", "old log"), tests=("robust", "web"))
    assert since_baseline(now, before).warnings == (
        "The baseline was made with the encoder all-MiniLM-L6-v2, this audit with new-model: "
        "their similarities are not comparable.",
        "The baseline's threshold is 0.91, this audit's 0.92.",
        "Training sources of the baseline that are missing here: old log.",
        "Test sets that the baseline does not have: core.",
        "Test sets of the baseline that are missing here: web.",
        "The baseline was made in exhaustive mode, this audit in prefilter mode.",
    )


def test_lower_threshold_shows_what_the_baseline_did_not_hold_for_a_leak():
    news = since_baseline(audit(OLD, threshold=0.9), audit(OLD))
    assert news.new["query_id"].to_list() == ["q3"]


def test_redacted_audits_compare_under_one_key_only():
    assert not since_baseline(redact(audit(OLD), KEY), redact(audit(OLD), KEY)).contaminated
    with pytest.raises(InputError, match="redacted with different keys"):
        since_baseline(redact(audit(OLD), KEY), redact(audit(OLD), OTHER))
    with pytest.raises(InputError, match="the baseline is redacted and the other is not"):
        since_baseline(audit(OLD), redact(audit(OLD), KEY))
    with pytest.raises(InputError, match="this audit is redacted and the other is not"):
        since_baseline(redact(audit(OLD), KEY), audit(OLD))
    assert since_baseline(redact(audit(OLD), KEY), audit([])).contaminated
