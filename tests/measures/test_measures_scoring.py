"""The scores are those of trec_eval to its last printed digit, and every policy does what it says."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping
from pathlib import Path

import ir_measures
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from measures_reference import TREC_NAMES, read, trec_eval, write_qrels, write_run
from places import DATA
from truerank.errors import InputError
from truerank.measures import HMFR, MFR, NCG, RR_MSMARCO, Evaluation, Policy, evaluate, rankings
from truerank.measures.report import evaluation_notes
from truerank.records import Qrel, RunRow
from truerank.sources.sharing import reading_once

DOCUMENTS = [f"d{number}" for number in range(12)] + ["D1", "é", "10", "9"]

qrels_of = st.dictionaries(
    st.sampled_from(["1", "2", "3", "02"]),
    st.dictionaries(st.sampled_from(DOCUMENTS), st.integers(0, 3), min_size=1),
    min_size=1,
)
# Few different scores, so that there are ties; some differ only beyond 32 bits.
runs_of = st.dictionaries(
    st.sampled_from(["1", "2", "3", "02", "unknown"]),
    st.dictionaries(
        st.sampled_from(DOCUMENTS),
        st.sampled_from([-1.5, -0.0, 0.0, 1.0, 1.0 + 1e-9, 1.0 + 2e-9, 2.0, 1e30, 1e-30]),
        min_size=1,
    ),
    min_size=1,
)


def records(qrels: Mapping[str, Mapping[str, int]]) -> list[Qrel]:
    return [Qrel(topic, document, grade) for topic, found in qrels.items() for document, grade in found.items()]


def rows(run: Mapping[str, Mapping[str, float]]) -> list[RunRow]:
    return [
        RunRow(topic, document, rank, score)
        for topic, found in run.items()
        for rank, (document, score) in enumerate(found.items(), start=1)
    ]


def scores(evaluation: Evaluation, run: str, topic: str) -> dict[str, float]:
    at = evaluation.topics.index(topic)
    return {name: float(evaluation.of(run, name)[at]) for name in evaluation.measures}


def printed(values: Mapping[str, float]) -> dict[str, str]:
    """As trec_eval prints them; its interpolated precision is not a number where nothing is retrieved."""
    return {name: f"{0.0 if math.isnan(value) else value:.4f}" for name, value in values.items()}


@settings(max_examples=40)
@given(qrels_of, runs_of, st.sampled_from([1, 2]))
def test_trec_eval_on_any_run(qrels: dict[str, dict[str, int]], run: dict[str, dict[str, float]], rel: int) -> None:
    if not set(qrels) & set(run):
        with pytest.raises(InputError, match="none of the"):
            evaluate(records(qrels), {"r": rows(run)}, " ".join(TREC_NAMES))
        return
    expected = trec_eval(qrels, run, rel=rel)
    found = evaluate(records(qrels), {"r": rows(run)}, " ".join(TREC_NAMES), Policy(rel=rel))
    assert found.missing == {"r": len(set(qrels) - set(run))}
    for topic in set(qrels) & set(run):
        assert printed(scores(found, "r", topic)) == printed(expected[topic])
    for topic in set(qrels) - set(run):
        assert set(scores(found, "r", topic).values()) == {0.0}


@pytest.mark.shared
@pytest.mark.parametrize(
    ("qrels", "run"),
    [
        ("core17", "spire22/runs/nyt-common-core-2017-bm25-anserini.run.gz"),
        ("core17", "spire22/runs/nyt-ac-common-core-2017.run.gz"),
        ("core18", "spire22/runs/wapo-v2-common-core-2018-bm25-anserini.run.gz"),
        ("core18", "spire22/runs/wapo-v2-common-core-2018.run.gz"),
        ("dl19-passage", "survivorship/runs/monot5.dl19.run.gz"),
    ],
)
def test_trec_eval_on_real_runs(qrels: str, run: str) -> None:
    judged, retrieved = DATA / "qrels" / f"{qrels}.qrels.gz", DATA / run
    grades = {topic: {d: int(g) for d, g in found.items()} for topic, found in read(judged, 3).items()}
    plain = read(retrieved, 4)
    found = evaluate(str(judged), str(retrieved), " ".join(TREC_NAMES))
    name = found.runs[0]
    expected = trec_eval(grades, plain)
    assert set(expected) == set(grades) & set(plain)
    for topic in expected:
        assert printed(scores(found, name, topic)) == printed(expected[topic])
    # The leakage paper's order: score, then document id ascending. What trec_eval sees is that order, spelled out.
    ascending = {
        topic: {d: -float(rank) for rank, d in enumerate(sorted(documents, key=lambda d: (-documents[d], d)))}
        for topic, documents in plain.items()
    }
    found = evaluate(str(judged), str(retrieved), " ".join(TREC_NAMES), Policy(ties="ascending"))
    expected = trec_eval(grades, ascending)
    for topic in expected:
        assert printed(scores(found, name, topic)) == printed(expected[topic])


@pytest.mark.shared
def test_the_order_of_the_survivorship_paper() -> None:
    runs = [str(DATA / f"survivorship/runs/monot5{kind}.dl19.run.gz") for kind in ("", "-sim5", "-sim1")]
    found = evaluate(str(DATA / "qrels/dl19-passage.qrels.gz"), runs, "nDCG@10 AP(rel=2)")
    assert np.round(found.mean, 4).tolist() == [[0.7215, 0.4604], [0.7164, 0.4542], [0.6995, 0.4456]]
    assert found.runs == ("monot5.dl19", "monot5-sim5.dl19", "monot5-sim1.dl19")
    assert np.array_equal(found.mean, evaluate(str(DATA / "qrels/dl19-passage.qrels.gz"), runs, "nDCG@10 AP",
                                               Policy(rel=2)).mean)  # fmt: skip


def test_negative_grades_are_not_judged() -> None:
    qrels = {"1": {"a": -1, "b": 0, "c": 1, "d": 2, "e": -2}}
    run = {"1": {"a": 5.0, "x": 4.0, "b": 3.0, "c": 2.0, "e": 1.0, "d": 0.5}}
    found = evaluate(
        records(qrels),
        {"r": rows(run)},
        "nDCG AP Bpref P(judged_only=True)@2 NumRel Judged@3 NCG@6 nDCG(judged_only=True)",
    )
    ideal = 2 + 1 / math.log2(3)
    assert scores(found, "r", "1") == pytest.approx(
        {
            "nDCG": (1 / math.log2(5) + 2 / math.log2(7)) / ideal,
            "AP": (1 / 4 + 2 / 6) / 2,
            "Bpref": 0.0,
            "P(judged_only=True)@2": 1 / 2,
            "NumRel": 2,
            "Judged@3": 2 / 3,
            "NCG@6": 1.0,
            "nDCG(judged_only=True)": (1 / math.log2(3) + 2 / math.log2(4)) / ideal,
        }
    )


def test_measures_that_only_this_project_has() -> None:
    qrels = {"1": {"a": 3, "b": 2, "c": 1}, "2": {"a": 1}, "3": {"z": 1}}
    run = {"1": {"x": 3.0, "c": 2.0, "a": 1.0}, "2": {"a": 1.0}, "3": {"a": 1.0}}
    found = evaluate(
        records(qrels),
        {"r": rows(run)},
        [NCG @ 2, MFR, MFR(none=50), HMFR, "MFR@1", RR_MSMARCO @ 10, "RR", "HMFR(none=4)"],
    )
    assert dict(zip(found.measures, found.mean[0].tolist(), strict=True)) == pytest.approx(
        {
            "NCG@2": (1 / 5 + 1 + 0) / 3,
            "MFR": (2 + 1 + 1001) / 3,
            "MFR(none=50)": (2 + 1 + 50) / 3,
            "HMFR": 3 / (1 / 2 + 1),
            "MFR@1": (2 + 1 + 2) / 3,
            "RR_MSMARCO@10": (1 / 2 + 1) / 3,
            "RR": (1 / 2 + 1) / 3,
            "HMFR(none=4)": 3 / (1 / 2 + 1 + 1 / 4),
        }
    )
    mean = dict(zip(found.measures, found.mean[0].tolist(), strict=True))
    assert mean["HMFR"] == pytest.approx(1 / mean["RR"])
    assert found.of("r", "HMFR").tolist() == [2, 1, math.inf]
    assert any("MFR: a topic without a relevant result counts as rank 1001" in note for note in evaluation_notes(found))
    shallow = evaluate(records(qrels), {"r": rows(run)}, "MFR", Policy(depth=1))
    assert shallow.of("r", "MFR").tolist() == [2, 1, 2]


def test_discounted_gain_is_not_normalised() -> None:
    """DCG counts the top k by hand; divided by the ideal gain it is nDCG."""
    qrels = {"1": {"a": 3, "b": 2, "c": 1, "e": -1}, "2": {"a": 1}, "3": {"z": 1}}
    run = {"1": {"x": 3.0, "c": 2.0, "a": 1.0, "e": 0.5}, "2": {"a": 1.0}, "3": {"a": 1.0}}
    found = evaluate(records(qrels), {"r": rows(run)}, "DCG@2 DCG@4 DCG(dcg='exp-log2')@3 DCG(gains={1:5})@2 nDCG@4")
    assert found.of("r", "DCG@2").tolist() == pytest.approx([1 / math.log2(3), 1, 0])
    assert found.of("r", "DCG@4").tolist() == pytest.approx([1 / math.log2(3) + 3 / 2, 1, 0])
    assert found.of("r", "DCG(dcg='exp-log2')@3").tolist() == pytest.approx([1 / math.log2(3) + 7 / 2, 1, 0])
    assert found.of("r", "DCG(gains={1:5})@2").tolist() == pytest.approx([5 / math.log2(3), 5, 0])
    ideal = 3 + 2 / math.log2(3) + 1 / 2
    assert found.of("r", "nDCG@4")[0] == pytest.approx(found.of("r", "DCG@4")[0] / ideal)


def test_ms_marco_goes_by_the_rank_column_and_any_judged_grade() -> None:
    run = [RunRow("1", "late", 1, 0.1), RunRow("1", "right", 2, 0.2), RunRow("1", "top", 3, 9.0)]
    found = evaluate([Qrel("1", "right", 1)], {"r": run}, "RR_MSMARCO RR RR_MSMARCO@1", Policy(rel=2))
    assert scores(found, "r", "1") == {"RR_MSMARCO": 1 / 2, "RR": 0.0, "RR_MSMARCO@1": 0.0}
    eleven = [RunRow("1", "right" if rank == 11 else f"d{rank}", rank, 0.0) for rank in range(1, 12)]
    assert evaluate([Qrel("1", "right", 1)], {"r": eleven}, "RR_MSMARCO").mean.tolist() == [[0.0]]


def test_missing_topics() -> None:
    qrels, run = [Qrel("1", "a", 1), Qrel("2", "a", 1)], {"r": [RunRow("1", "a", 1, 1.0), RunRow("3", "a", 1, 1.0)]}
    default = evaluate(qrels, run, "P@1 MFR(none=7)")
    assert default.mean.tolist() == [[0.5, 4.0]]
    assert default.coverage["r"]._asdict() == {"matched": 1, "missing": 1, "unknown": 1, "results": 1, "unjudged": 0}
    skipped = evaluate(qrels, run, "P@1 MFR", Policy(missing="skip"))
    assert skipped.mean.tolist() == [[1.0, 1.0]]
    assert np.isnan(skipped.values[0, :, 1]).all()
    with pytest.raises(InputError, match=r"lacks 1 of the 2 topics"):
        evaluate(qrels, run, "P@1", Policy(missing="fail"))
    with pytest.raises(InputError, match=r"none of the 2 topics of the qrels, but 1 others.*topics such as '1'"):
        evaluate(qrels, {"r": [RunRow("01", "a", 1, 1.0)]}, "P@1")


@settings(max_examples=25)
@given(qrels_of, runs_of, st.sampled_from(["trec_eval", "ascending"]), st.sampled_from([1, 2]))
def test_rarer_measures_come_from_ir_measures(
    qrels: dict[str, dict[str, int]], run: dict[str, dict[str, float]], ties: str, rel: int
) -> None:
    if not set(qrels) & set(run):
        return
    measures = [ir_measures.SetF(beta=2.0), ir_measures.infAP, ir_measures.Compat(p=0.9)]
    levelled = [m if "rel" not in m.SUPPORTED_PARAMS else m(rel=rel) for m in measures]
    found = evaluate(records(qrels), {"r": rows(run)}, [*measures, "P@1"], Policy(ties=ties, rel=rel))
    ordered = {
        topic: sorted(sorted(documents, reverse=ties == "trec_eval"), key=lambda d: -float(np.float32(documents[d]))
                      if ties == "trec_eval" else -documents[d])
        for topic, documents in run.items()
    }  # fmt: skip
    scored = [
        ir_measures.ScoredDoc(topic, document, float(-rank))
        for topic, documents in ordered.items()
        for rank, document in enumerate(documents)
    ]
    judged = [ir_measures.Qrel(*qrel) for qrel in records(qrels)]
    expected = {(m.query_id, str(m.measure)): m.value for m in ir_measures.iter_calc(levelled, judged, scored)}
    for position, measure in enumerate(levelled):
        for column, topic in enumerate(found.topics):
            assert found.values[0, position, column] == pytest.approx(expected[topic, str(measure)])


def test_frames_files_and_records_give_the_same(tmp_path: Path) -> None:
    qrels = {"1": {"a": 1, "b": 0}, "2": {"c": 2}}
    run = {"1": {"b": 2.0, "a": 1.0}, "2": {"x": 3.0, "c": 1.0}}
    q, r = write_qrels(tmp_path / "q.qrels", qrels), write_run(tmp_path / "r.run", run)
    frame = pl.DataFrame(rows(run), schema=list(RunRow._fields), orient="row")
    judged = pl.DataFrame(
        [qrel[:3] for qrel in records(qrels)], schema=["topic_id", "doc_id", "relevance"], orient="row"
    )
    found = [
        evaluate(str(q), str(r), "AP RR_MSMARCO"),
        evaluate(judged, {"r": frame}, "AP RR_MSMARCO"),
        evaluate(records(qrels), {"r": rows(run)}, "AP RR_MSMARCO"),
        evaluate(judged.lazy().collect(), {"r": r}, "AP RR_MSMARCO"),
    ]
    assert all(np.array_equal(found[0].values, other.values) and other.runs == ("r",) for other in found)
    # The rank column is needed only where a measure or the ties use it.
    assert evaluate(judged, {"r": frame.drop("rank", "tag")}, "AP").mean[0, 0] == 0.5
    with pytest.raises(InputError, match="columns missing: rank"):
        evaluate(judged, {"r": frame.drop("rank")}, "RR_MSMARCO")
    again = evaluate(judged, {"r": pl.concat([frame, frame[1:2]])}, "AP RR_MSMARCO")
    assert np.array_equal(again.values, found[0].values) and "r: 1 result repeated" in again.remarks[0]
    twice = evaluate([*records(qrels), Qrel("2", "c", 0)], {"r": frame}, "AP RR_MSMARCO")
    assert np.array_equal(twice.values, found[0].values) and "the highest counts" in twice.remarks[0]
    with pytest.raises(InputError, match="no number as its score"):
        evaluate(judged, {"r": frame.with_columns(score=pl.lit(math.nan))}, "AP")
    with pytest.raises(InputError, match="no rows"):
        evaluate(judged, {"r": []}, "AP")
    with pytest.raises(InputError, match="no relevance judgments"):
        evaluate([], {"r": frame}, "AP")
    with pytest.raises(InputError, match="no run"):
        evaluate(judged, {}, "AP")


def test_runs_larger_than_one_block_are_scored_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(0)
    run = {str(t): {f"d{d}": float(s) for d, s in zip(generator.permutation(60), generator.random(60), strict=True)}
           for t in range(30)}  # fmt: skip
    qrels = {str(t): {f"d{d}": int(generator.integers(0, 3)) for d in range(0, 60, 3)} for t in range(30)}
    q, r = write_qrels(tmp_path / "q.qrels", qrels), write_run(tmp_path / "r.run", run)
    whole = evaluate(str(q), str(r), "nDCG@10 AP infAP")
    monkeypatch.setattr("truerank.sources.lines._BLOCK", 700)
    monkeypatch.setattr("truerank.sources.compressed._CHUNK", 300)
    pieces = evaluate(str(q), str(r), "nDCG@10 AP infAP")
    assert np.array_equal(whole.values, pieces.values)
    assert pieces.coverage == whole.coverage
    # A topic that comes back later, and a document that does.
    lines = r.read_text().splitlines()
    r.write_text("\n".join(lines[5:] + lines[:5]) + "\n")
    assert np.array_equal(evaluate(str(q), str(r), "nDCG@10 AP infAP").values, whole.values)
    r.write_text("\n".join([*lines, lines[3]]) + "\n")
    again = evaluate(str(q), str(r), "nDCG@10 AP infAP")
    assert np.array_equal(again.values, whole.values) and "r: 1 result repeated" in again.remarks[0]


def test_documents_with_one_hash_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    qrels = {str(t): {f"d{d}": d % 3 for d in range(t, 40, 2)} for t in range(9)}
    run = {str(t): {f"d{d}": float((7 * d) % 41) for d in range(40)} for t in range(9)}
    whole = evaluate(records(qrels), {"r": rows(run)}, "nDCG@10 AP Bpref")
    monkeypatch.setattr(rankings, "_pair_keys", lambda topics, hashes: topics.astype(np.uint64) * 2 + hashes % 2)
    assert np.array_equal(evaluate(records(qrels), {"r": rows(run)}, "nDCG@10 AP Bpref").values, whole.values)


def test_a_run_that_is_kept_is_scored_without_reading_it_again(tmp_path: Path) -> None:
    """It is read by a thread, which has to know that it is kept."""
    q, r = write_qrels(tmp_path / "q.qrels", {"1": {"a": 1}}), write_run(tmp_path / "r.run", {"1": {"a": 1.0}})
    with reading_once():
        whole = evaluate(str(q), str(r), "AP")
        with pytest.MonkeyPatch.context() as changed:
            changed.setattr("truerank.sources.lines._parsed", lambda *_: pytest.fail("read again"))
            assert np.array_equal(evaluate(str(q), str(r), "AP").values, whole.values)


def test_runs_that_are_read_ahead_fail_in_their_order(tmp_path: Path) -> None:
    judged = {"1": {"a": 1}, "2": {"b": 1}}
    good = {"1": {"a": 1.0, "b": 2.0}, "2": {"b": 1.0}}
    file = write_run(tmp_path / "good.run", good)
    bad = tmp_path / "bad.run"
    bad.write_text("1 Q0 a 1 none t\n")
    found = evaluate(records(judged), {"file": file, "rows": rows(good), "again": file}, "AP RR")
    assert found.runs == ("file", "rows", "again")
    assert np.array_equal(found.values, np.repeat(found.values[:1], 3, axis=0))
    with pytest.raises(InputError, match=r"bad\.run:1: rank '1' or score 'none'"):
        evaluate(records(judged), {"file": file, "bad": bad, "rows": rows(good)}, "AP")
    with pytest.raises(InputError, match="the run lacks 1 of the 2 topics"):
        missing = {"short": rows({"1": {"a": 1.0}}), "bad": bad}
        evaluate(records(judged), missing, "AP", Policy(missing="fail"))
    runs = {"short": rows({"1": {"a": 1.0}}), **{f"later {number}": file for number in range(5)}}
    with pytest.raises(InputError, match="lacks") as held:
        evaluate(records(judged), runs, "AP", Policy(missing="fail"))
    # Also while somebody holds the error, and with it the frames.
    assert held.tb is not None
    assert not [thread for thread in threading.enumerate() if thread.name == "read-ahead"]


def test_what_cannot_be_computed_here() -> None:
    run = {"r": [RunRow("1", "a", 1, 1.0)]}
    for name in ("RBP", "RBP(p=0.8)", "AP RBP@10"):
        with pytest.raises(InputError, match=r"cannot be computed here: RBP.*write RBP\(p=0\.8,rel=1\)"):
            evaluate([Qrel("1", "a", 1)], run, name)
    assert evaluate([Qrel("1", "a", 1)], run, "RBP(p=0.8,rel=1)").mean[0, 0] == pytest.approx(0.2)
    with pytest.raises(InputError, match="subtopics"):
        evaluate([Qrel("1", "a", 1)], run, "alpha_nDCG@10")
    for policy in ({"ties": "no"}, {"missing": "no"}, {"depth": 0}, {"rel": 0}):
        with pytest.raises(InputError):
            Policy(**policy)
