"""What the judgments alone show, and beside documents and topics that they name."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from truerank import collection
from truerank.audits.collection.judgments import read_judgments
from truerank.audits.collection.results import kinds
from truerank.cli import main
from truerank.errors import InputError, OptionError
from truerank.text.identifiers import folded, likely, unwritable, what_differs


def _qrels(path: Path, rows: list[str]) -> str:
    path.write_text("".join(f"{row}\n" for row in rows))
    return str(path)


def _kinds(found: collection.CollectionAudit) -> dict[str, int]:
    return {one.kind.name: one.count for one in found.findings}


@pytest.mark.parametrize(
    ("one", "other", "difference"),
    [
        ("CACM-756", "CACM-0756", "padding"),
        ("gx001-A", "GX001-a", "case"),
        ("Café", "CafÃ©", "encoding"),
        ("a%2Fb", "a/b", "encoding"),
        ("doc7.html", "doc7", "ending"),
        ("12345.0", "12345", "ending"),
        ("a_b-c", "a-b-c", "separators"),
        ("A_1", "a-01", "case and padding and separators"),
    ],
)
def test_ids_that_mean_the_same(one: str, other: str, difference: str) -> None:
    assert folded(one) == folded(other) and what_differs(one, other) == difference
    assert likely([one], ["x", other]) == {one: other}


@pytest.mark.parametrize(
    ("one", "other"), [("d1", "d10"), ("d-1-2", "d-12"), ("a1", "a2"), ("1.5", "15"), ("100", "10")]
)
def test_ids_that_do_not(one: str, other: str) -> None:
    assert folded(one) != folded(other)


PARTS = ("a", "B", "0", "00", "1", "-", "_", "/", ".", "%20", "&amp;", "é", "Ã©", ".html", ".00", " ", "\x1f", "²", "ſ")
NAMES = st.lists(st.lists(st.sampled_from(PARTS), min_size=1, max_size=5).map("".join), max_size=12)


@given(NAMES, NAMES)
def test_likely_ids_are_those_of_one_folded_form(wanted: list[str], known: list[str]) -> None:
    known += [one.swapcase() for one in wanted[::2]]
    of = {one: {other for other in known if folded(other) == folded(one)} for one in wanted}
    assert likely(wanted, known) == {one: next(iter(several)) for one, several in of.items() if len(several) == 1}


def test_a_spelling_of_two_documents_is_nobodys() -> None:
    assert likely(["A-1"], ["a-1", "a-01"]) == {}
    assert unwritable("a b") and unwritable("a\u00a0b") and unwritable("") and not unwritable("a-b")


def test_rows_pairs_and_grades(tmp_path: Path) -> None:
    rows = [f"{t} 0 d{d} {d % 2}" for t in range(1, 6) for d in range(60)]
    rows += ["1 0 d5 1", "2 0 d7 0", "3 0 x", "3 0 x y", "4 0 e 100", "5 0 f -1"]
    found = collection.audit(qrels=_qrels(tmp_path / "a.qrels", rows))
    assert found.verdicts[0].word == "FAULTY IN PART"
    counts = _kinds(found)
    assert counts["broken-row"] == 2 and counts["repeated-pair"] == 1 and counts["contradicted-pair"] == 1
    assert counts["off-scale-grade"] == 1 and counts["negative-grade"] == 1
    assert found.rows("broken-row")["line"].to_list() == [303, 304]
    assert "grade 100" in found.rows("off-scale-grade")["detail"][0]
    assert found.rows("contradicted-pair").row(0, named=True)["detail"].startswith("grades 1, 0; judgments 68, ")
    named = collection.audit(qrels=_qrels(tmp_path / "b.qrels", ["1 0 a 1", "1 0 b 3", "1 0 c 0"]), grades=(0, 1))
    assert _kinds(named)["off-scale-grade"] == 1


def test_a_usual_scale_is_not_off_scale(tmp_path: Path) -> None:
    grades = [0] * 200 + [1] * 60 + [2] * 20 + [3] * 5 + [4] * 2
    rows = [f"{n % 7} 0 d{n} {grade}" for n, grade in enumerate(grades)]
    assert "off-scale-grade" not in _kinds(collection.audit(qrels=_qrels(tmp_path / "a.qrels", rows)))


@pytest.mark.parametrize(
    ("grades", "odd"),
    [
        ([0] * 50 + [1, 2, 3] * 30 + [10, 20] * 5, 10),
        ([0] * 50 + [1, 2, 3] * 30 + [100, 200, 300] * 29, 87),  # as many nearly as those of the scale
        ([0] * 80 + [1] * 30 + [10] * 6, 6),
        ([0] * 80 + [1, 2, 3] * 10 + [10] * 6, 6),
        ([0] * 80 + [10, 20, 30] * 10, 0),  # a scale of tens
        ([0] * 80 + [1, 3, 10] * 10, 0),  # a gain for each grade
        ([0] * 20 + [1] * 30 + [10] * 30, 0),  # two grades that many have
        ([*range(1, 11)] * 10, 0),
    ],
)
def test_grades_of_another_scale_are_named(tmp_path: Path, grades: list[int], odd: int) -> None:
    rows = [f"{n % 7} 0 d{n} {grade}" for n, grade in enumerate(grades)]
    found = collection.audit(qrels=_qrels(tmp_path / "a.qrels", rows))
    assert len(found.rows("off-scale-grade")) == odd


def test_topics_that_look_alike_and_hubs(tmp_path: Path) -> None:
    rows = [f"{t} 0 d{t}-{d} 1" for t in range(20) for d in range(5)]
    rows += [f"copy 0 d3-{d} 1" for d in range(5)] + [f"part 0 d4-{d} 1" for d in range(2)]
    rows += [f"{t} 0 hub 1" for t in range(11)] + [f"{t} 0 n{t} 0" for t in range(20)]
    found = collection.audit(qrels=_qrels(tmp_path / "a.qrels", rows))
    assert found.rows("twin-topics").select("topic_id", "other").rows() == [("copy", "3")]
    assert found.rows("hub-document")["doc_id"].to_list() == ["hub"]
    assert found.verdicts[0].word == "UNKNOWN"


def test_topics_that_share_a_document_of_nearly_all_look_alike(tmp_path: Path) -> None:
    rows = [f"{t} 0 hub 1" for t in range(250)] + [f"{t} 0 own{t} 1" for t in range(250)]
    rows += ["left 0 hub 1", "left 0 a 1", "left 0 b 1", "right 0 hub 1", "right 0 a 1", "right 0 b 1"]
    found = collection.audit(qrels=_qrels(tmp_path / "a.qrels", rows))
    assert found.rows("twin-topics").select("topic_id", "other").rows() == [("right", "left")]


def test_a_topic_that_took_the_judgments_of_others(tmp_path: Path) -> None:
    rows = [f"{t} 0 d{t}-{d} 1" for t in range(9) for d in range(4 + t)] + [f"wide 0 w{d} 1" for d in range(200)]
    found = collection.audit(qrels=_qrels(tmp_path / "a.qrels", rows))
    assert found.rows("swollen-topic").select("topic_id", "detail").rows() == [
        ("wide", "200 relevant documents, median 8.5")
    ]


def test_judgments_beside_documents_and_topics(tmp_path: Path) -> None:
    docs = tmp_path / "docs.jsonl"
    docs.write_text(
        "".join(json.dumps({"_id": f"D-0{n}", "text": f"text number {n} about {n * 7}"}) + "\n" for n in range(9))
    )
    topics = tmp_path / "topics.tsv"
    topics.write_text("".join(f"t{n}\twhat is number {n}\n" for n in range(4)))
    rows = ["t0 0 D-00 1", "t0 0 D-1 1", "t1 0 gone 1", "t9 0 D-02 1", "T2 0 D-03 1", "D-05 0 t1 1", "t1 0 D-04 0"]
    found = collection.audit(qrels=_qrels(tmp_path / "q.qrels", rows), docs=str(docs), topics=str(topics))
    assert found.rows("respelt-document").select("doc_id", "other", "detail").rows() == [
        ("D-1", "D-01", "differs in padding")
    ]
    assert found.rows("missing-document")["doc_id"].to_list() == ["gone"]
    (missing,) = [one for one in found.findings if one.kind.name == "missing-document"]
    assert missing.here.startswith("1 of 6 relevant documents cannot be found under these ids, for 1 of")
    assert found.rows("unknown-topic")["topic_id"].to_list() == ["t9"]
    assert found.rows("respelt-topic").select("topic_id", "other").rows() == [("T2", "t2")]
    assert found.rows("swapped-ids")["doc_id"].to_list() == ["t1"]
    assert found.rows("unjudged-topic")["topic_id"].to_list() == ["t2", "t3"]
    # The ceiling knows that the missing document cannot be returned, and that D-05, whose row is swapped, can.
    ceilings = {one["measure"]: one for one in found.facts["ceilings"]}
    assert round(ceilings["nDCG@10"]["lowest"], 3) == 0.613 and ceilings["nDCG@10"]["mean"] < 1


@pytest.mark.parametrize(
    ("rows", "swapped", "unknown", "written"),
    [
        # Topics 1, 2, 7 and documents 1 to 9: a number may be either, so nothing is swapped, and nothing goes.
        (["1 0 4 1", "3 0 9 1", "4 0 7 1", "7 0 2 0"], 0, 2, ["1 0 4 1", "3 0 9 1", "4 0 7 1", "7 0 2 0"]),
        # No document is called t5 and no topic d3.
        (["t5 0 d1 1", "d3\t0\tt5\t1", "t5 0 d2 0", "t4 0 d2 1"], 1, 1, ["t5 0 d1 1", "t5\t0\td3\t1", "t5 0 d2 0"]),
    ],
)
def test_ids_are_swapped_only_if_neither_stands_for_itself(
    tmp_path: Path, rows: list[str], swapped: int, unknown: int, written: list[str]
) -> None:
    letters = rows[1].startswith("d")
    (tmp_path / "docs.jsonl").write_text(
        "".join(json.dumps({"_id": f"{'d' * letters}{n}", "text": f"text {n} of {n * 7}"}) + "\n" for n in range(1, 10))
    )
    (tmp_path / "topics.tsv").write_text("t5\twhat\n" if letters else "1\twhat\n2\twhere\n7\twho\n")
    files = {"docs": str(tmp_path / "docs.jsonl"), "topics": str(tmp_path / "topics.tsv")}
    qrels = _qrels(tmp_path / "q.qrels", rows)
    found = collection.audit(qrels=qrels, **files)
    assert len(found.rows("swapped-ids")) == swapped and len(found.rows("unknown-topic")) == unknown
    cleaned = collection.clean(qrels, found, out=tmp_path / "clean")
    assert (tmp_path / "clean" / "q.qrels").read_text().splitlines() == written
    assert any("stay" in one for one in cleaned.warnings) != letters


@pytest.mark.parametrize("swapped", [0, 3, 24])
def test_what_follows_from_swapped_ids_is_no_other_fault(tmp_path: Path, swapped: int) -> None:
    lines = [json.dumps({"_id": f"d{n}", "text": f"text {n} of {n * 7} and {n * 11}"}) for n in range(40)]
    (tmp_path / "docs.jsonl").write_text("\n".join(lines))
    (tmp_path / "topics.tsv").write_text("".join(f"t{n}\twhat is {n}\n" for n in range(12)))
    rows = [(f"t{n % 12}", f"d{n}", n // 12) for n in range(24)]
    # Topic 11 has no relevant document, however its judgments are written.
    rows[23] = ("t11", "d23", 0)
    written = [f"{d} 0 {t} {g}" if at < swapped else f"{t} 0 {d} {g}" for at, (t, d, g) in enumerate(rows)]
    qrels = _qrels(tmp_path / "q.qrels", written)
    found = collection.audit(qrels=qrels, docs=str(tmp_path / "docs.jsonl"), topics=str(tmp_path / "topics.tsv"))
    assert len(found.rows("swapped-ids")) == swapped
    assert found.rows("no-relevant")["topic_id"].to_list() == ["t11"]
    assert found.finding("unjudged-topic") is None and found.finding("unknown-topic") is None


def test_judgments_of_another_collection_are_a_finding(tmp_path: Path) -> None:
    docs = tmp_path / "docs.jsonl"
    docs.write_text('{"_id": "a", "text": "one text"}\n')
    found = collection.audit(qrels=_qrels(tmp_path / "q.qrels", ["t1 0 b 1", "t2 0 c 1"]), docs=str(docs))
    assert found.verdicts[0].word == "FAULTY" and len(found.rows("missing-document")) == 2
    assert {one["mean"] for one in found.facts["ceilings"]} == {0.0}


def test_ceilings_are_those_of_the_best_ranking() -> None:
    qrels = {"wide": {f"d{n}": 1 for n in range(40)}, "narrow": {"a": 2, "b": 0}}
    found = collection.audit(qrels=qrels, measures="R@10 P@5 nDCG@10")
    lines = {one["measure"]: one for one in found.facts["ceilings"]}
    assert lines["R@10"]["lowest"] == 0.25 and lines["R@10"]["topic"] == "wide"
    assert lines["P@5"]["lowest"] == 0.2 and lines["P@5"]["mean"] == pytest.approx(0.6)
    assert lines["nDCG@10"]["below"] == 0
    low = found.finding("low-ceiling")
    assert low is not None and any("40 relevant documents" in one["detail"] for one in low.examples)


def test_a_ceiling_that_returns_every_text_once(tmp_path: Path) -> None:
    docs = tmp_path / "docs.jsonl"
    texts = {"a": "the same words twice", "b": "the same words twice", "c": "other words", "d": "words of nobody"}
    docs.write_text("".join(json.dumps({"_id": key, "text": text}) + "\n" for key, text in texts.items()))
    rows = ["t1 0 a 1", "t1 0 b 1", "t1 0 c 1", "t2 0 d 1", "t2 0 gone 1"]
    found = collection.audit(qrels=_qrels(tmp_path / "q.qrels", rows), docs=str(docs), measures="R@10 P@1")
    lines = {one["measure"]: one for one in found.facts["ceilings"]}
    assert lines["R@10"]["mean"] == pytest.approx((1 + 1 / 2) / 2)
    assert lines["R@10"]["once"] == pytest.approx((2 / 3 + 1 / 2) / 2)
    assert lines["P@1"]["once"] == lines["P@1"]["mean"] == 1.0
    low = found.rows("low-ceiling")
    assert low["topic_id"].to_list() == ["t2"] and "1 of them not in the collection" in low["detail"][0]


def test_two_versions_of_judgments() -> None:
    before = {"1": {"a": 1, "b": 0, "c_1": 1}, "2": {"x": 1}, "old": {"y": 1}}
    after = {"1": {"a": 1, "b": 1, "c-1": 1, "new": 1}, "2": {}, "now": {"z": 1}}
    found = collection.audit(qrels=after, previous_qrels=before)
    counts = _kinds(found)
    assert (
        counts["added-judgment"] == 2
        and counts["removed-judgment"] == 2
        and counts["regraded-judgment"] == 1
        and counts["respelt-judgment"] == 1
    )
    assert counts["topic-only-before"] == 2 and counts["topic-only-now"] == 1
    runs = {"r": {"1": {"b": 2.0, "a": 1.0}, "now": {"z": 1.0}}}
    scored = collection.audit(qrels=after, previous_qrels=before, run=runs, resamples=20, measures="P@1")
    (line,) = scored.facts["versions"]["scores"]
    assert line["before"]["mean"] == 0.0 and line["after"]["mean"] == 1.0 and line["difference"]["n"] == 1


def test_verdicts_claim_no_more_than_was_looked_at(tmp_path: Path) -> None:
    sound = {"1": {"a": 1, "b": 0}, "2": {"c": 2, "d": 0}}
    found = collection.audit(qrels=sound)
    assert [verdict.word for verdict in found.verdicts] == ["UNKNOWN", "UNKNOWN"]
    assert "--docs" in found.verdicts[1].settles and "--topics" in found.verdicts[1].settles
    docs = tmp_path / "docs.jsonl"
    texts = {
        "a": "apples ripen slowly",
        "b": "iron rusts in rain",
        "c": "ships sail by night",
        "d": "birds sing at dawn",
    }
    docs.write_text("".join(json.dumps({"_id": one, "text": text}) + "\n" for one, text in texts.items()))
    topics = tmp_path / "topics.tsv"
    topics.write_text("1\tripening of fruit\n2\tnavigation in darkness\n")
    whole = collection.audit(qrels=sound, docs=str(docs), topics=str(topics))
    assert [verdict.word for verdict in whole.verdicts] == ["SOUND"] * 5
    # Two topics are too few to say anything of wrong judgments.
    assert "wrong judgments, of which so few topics" in whole.verdicts[0].sentence
    assert ["This audit cannot see " in verdict.sentence for verdict in whole.verdicts] == [
        True,
        True,
        True,
        False,
        False,
    ]


def test_every_kind_is_described() -> None:
    for name, kind in kinds().items():
        assert (
            kind.name == name and kind.needs and kind.title and kind.effect.endswith(".") and kind.remedy.endswith(".")
        )
        assert len(kind.noun) == 2


def test_the_command_fails_on_a_fault(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = _qrels(tmp_path / "a.qrels", ["1 0 a 1", "1 0 a 0", "1 0 b 0"])
    for words, code in (((), 0), (("--fail-on", "faulty"), 1), (("--fail-on", "never"), 0)):
        with pytest.raises(SystemExit) as ended:
            main(["collection", "audit", "--qrels", path, *words])
        assert (ended.value.code or 0) == code
    with pytest.raises(SystemExit):
        main(["collection", "audit", "--qrels", path, "--json"])
    out = capsys.readouterr().out
    assert json.loads(out[out.rindex('{"version"') :])["verdict"] == "FAULTY"


def test_faults_of_the_user(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="nothing to audit"):
        collection.audit()
    with pytest.raises(InputError, match="no line of it is a judgment"):
        collection.audit(qrels=_qrels(tmp_path / "a.qrels", ["nothing at all here to read"]))
    with pytest.raises(OptionError, match="grades: expected integers, got 'a,b'"):
        collection.audit(qrels={"1": {"a": 1}}, grades=("a", "b"))
    with pytest.raises(InputError, match="no summary"):
        collection.load_audit(tmp_path)


def test_judgments_are_read_with_their_faults_as_fast_as_without(tmp_path: Path) -> None:
    """Regular files are read as columns, and give the same rows as line by line."""
    rows = [f"{t}\t0\td{d}\t{d % 3}" for t in range(5) for d in range(10)]
    plain = read_judgments(_qrels(tmp_path / "a.qrels", rows))
    broken = read_judgments(_qrels(tmp_path / "b.qrels", [*rows, "1 2"]))
    columns = ["topic_id", "doc_id", "relevance"]
    assert plain.frame.select(columns).equals(broken.frame.select(columns))
    assert broken.broken["line"].to_list() == [51] and isinstance(plain.frame, pl.DataFrame)


def test_rules_are_selected_ignored_and_accepted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [f"{t} 0 d{d} {d % 2}" for t in range(1, 6) for d in range(60)]
    _qrels(tmp_path / "a.qrels", [*rows, "1 0 d5 1", "2 0 d7 1", "3 0 d9 0"])
    monkeypatch.chdir(tmp_path)

    def audited(*words: str) -> int:
        with pytest.raises(SystemExit) as ended:
            main(["collection", "audit", "--qrels", "a.qrels", "--fail-on", "faulty", *words])
        return int(str(ended.value.code or 0))

    assert audited() == 1
    assert "QREL11" in capsys.readouterr().out
    assert audited("--ignore", "QREL11,QREL12") == 0
    shown = capsys.readouterr().out
    assert "QREL11" not in shown and "leave out 2 kinds" in " ".join(shown.split())
    assert audited("--select", "QREL12") == 1
    assert audited("--ignore", "QREL") == 0
    assert "Nothing was looked for" in capsys.readouterr().out
    reason = "the archive repeats these rows"
    (tmp_path / "truerank.toml").write_text(
        f'[collection.audit]\naccept = ["QREL11 = {reason}", "QREL12=the later row counts"]\n'
    )
    assert audited("--out", "audit") == 0
    assert "accepted" in capsys.readouterr().out
    page = (tmp_path / "audit" / "report.html").read_text()
    assert reason in page and "Accepted, and not counted" in page
    results = json.loads((tmp_path / "audit" / "findings.sarif").read_text())["runs"][0]["results"]
    assert {one["suppressions"][0]["justification"] for one in results if one["ruleId"] == "QREL11"} == {f"{reason}."}
    again = collection.load_audit(tmp_path / "audit")
    assert [one.accepted for one in again.findings if one.kind.code == "QREL11"] == [reason]
    for words in (("--accept", "QREL11"), ("--accept", "NONE1=x"), ("--select", "LEAK01")):
        assert audited(*words) == 2
