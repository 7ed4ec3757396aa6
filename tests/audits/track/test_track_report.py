"""The track report: what it reads, computes, writes and refuses."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import ir_measures
import numpy as np
import polars as pl
import pytest

import real_browser
from places import DATA, ROOT, without_progress
from shortcuts import undrawn
from truerank.audits import track
from truerank.audits.track.analysis import agrees, read_stated, statements
from truerank.audits.track.means import measure_name, read_means
from truerank.audits.track.page import best_differences, finding
from truerank.cli import main
from truerank.core.result import report, summary
from truerank.errors import InputError
from truerank.measures import Evaluation, Policy
from truerank.measures.comparison import Comparison, compare_evaluations
from truerank.sources.run_tables import RowFilter, read_metadata

METADATA = """run,group,subtask,category
a,north,fullrank,nnlm
b,north,rerank,nnlm
c,south,fullrank,nn
d,south,rerank,trad
e,east,fullrank,trad
f,east,fullrank,trad
"""
MEANS = """run,group,subtask,neural,MRR (MS),NDCG@10,NCG@100
a,north,fullrank,nnlm,0.40,0.60,0.50
b,north,rerank,nnlm,0.45,0.55,0.40
c,south,fullrank,nn,0.30,0.50,0.70
d,south,rerank,trad,0.20,0.30,0.40
e,east,fullrank,trad,0.10,0.40,0.45
f,east,fullrank,trad,0.15,0.20,
"""
QRELS = "".join(f"{topic} 0 d{document} {grade}\n" for topic in "1234" for document, grade in ((1, 2), (2, 1), (3, 0)))
TWO_QUERIES = "1\tone query\n2\ttwo queries\n"
ORDERS = {"a": "123", "b": "213", "c": "132", "d": "312", "e": "321", "f": "231"}


def text_file(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def fault(call, *words: str) -> InputError:
    with pytest.raises(InputError) as caught:
        call()
    message = str(caught.value)
    assert all(word in message for word in words), message
    return caught.value


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> dict[str, object]:
    """Six runs over four topics; on topic 2 all runs rank as `a` does, and run `f` lacks topic 4."""
    tmp_path, paths = tmp_path_factory.mktemp("runs"), []
    for name, order in ORDERS.items():
        lines = []
        for topic in "1234":
            if (name, topic) != ("f", "4"):
                ranked = ORDERS["a"] if topic == "2" else order
                lines += [f"{topic} Q0 d{doc} {rank} {9 - rank} {name}" for rank, doc in enumerate(ranked, start=1)]
        paths.append(text_file(tmp_path, f"{name}.run", "\n".join(lines) + "\n"))
    return {
        "run": paths,
        "qrels": str(text_file(tmp_path, "all.qrels", QRELS)),
        "sparse_qrels": str(text_file(tmp_path, "sparse.qrels", "1 0 d2 1\n3 0 d1 1\n9 0 d1 1\n")),
        "metadata": [text_file(tmp_path, "runs.csv", METADATA)],
    }


# --- tables that are read


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("ndcg_cut_10", "nDCG@10"),
        ("recip_rank", "RR"),
        ("MRR", "RR"),
        ("recall_100", "R@100"),
        ("MRR (MS)", "RR (MS)"),
        ("RR@10 (clicks)", "RR@10 (clicks)"),
        ("AP(rel=2)", "AP(rel=2)"),
        ("description", None),
        ("group", None),
    ],
)
def test_measures_are_known_by_their_usual_names(written, meant):
    assert measure_name(written) == meant


def test_metadata_open_in_every_format_with_other_words(tmp_path):
    rows = {"Run ID": ["x", "y"], "Team": ["t", "n/a"], "sub-task": ["Re-Rank", "end-to-end"], "Neural": ["nn", "-"]}
    frame = pl.DataFrame(rows)
    frame.write_csv(tmp_path / "m.csv")
    frame.write_csv(tmp_path / "m.tsv", separator="\t")
    frame.write_csv(tmp_path / "m.txt", separator=",")
    frame.write_ndjson(tmp_path / "m.jsonl")
    frame.write_parquet(tmp_path / "m.parquet")
    for ending in ("csv", "tsv", "txt", "jsonl", "parquet"):
        found = read_metadata([tmp_path / f"m.{ending}"], RowFilter())
        assert list(found.runs.values()) == [("x", "t", "rerank", "nn"), ("y", "", "fullrank", "")], ending


@pytest.mark.parametrize(
    ("text", "line", "word"),
    [
        ("run,subtask\na,fullrank\nb,half\n", 3, "'half'"),
        ("run,group\na,g\n,g\n", 3, "without the name"),
        ("run,group\na,g\nb,g\na,g\n", 4, "twice"),
        ("group,subtask\ng,rerank\n", 2, "no column of run names"),
    ],
)
def test_faults_of_metadata_have_a_line(tmp_path, text, line, word):
    path = text_file(tmp_path, "m.csv", text)
    error = fault(lambda: read_metadata([path], RowFilter()), word)
    assert (error.where, error.line) == (str(path), line)


def test_tables_of_metadata_complete_one_another_or_are_refused(tmp_path):
    one = text_file(tmp_path, "one.csv", "run,group\na,g\nb,h\n")
    more = text_file(tmp_path, "more.csv", "run,category\na,nn\n")
    other = text_file(tmp_path, "other.csv", "run,group\na,k\n")
    assert read_metadata([one, more], RowFilter()).of("a") == ("a", "g", "", "nn")
    fault(lambda: read_metadata([one, other], RowFilter()), "other.csv", "'k' here and 'g'")


def test_means_in_both_forms_are_the_same(tmp_path):
    wide = text_file(tmp_path, "w.csv", "run,note,ndcg_cut_10,map\na,x,0.5,0.25\nb,y,0.75,\n")
    long = text_file(tmp_path, "l.csv", "run,measure,value\na,ndcg_cut_10,0.5\na,map,0.25\nb,ndcg_cut_10,0.75\n")
    for path in (wide, long):
        found = read_means(path, RowFilter())
        assert (found.runs, found.measures) == (("a", "b"), ("nDCG@10", "AP"))
        np.testing.assert_array_equal(found.values, [[0.5, 0.25], [0.75, np.nan]])


@pytest.mark.parametrize(
    ("text", "line", "word"),
    [
        ("run,NDCG@10\na,0.5\nb,high\n", 3, "'high'"),
        ("run,NDCG@10\na,0.5\na,0.6\n", 3, "twice"),
        ("run,measure,value\na,map,0.5\na,AP,0.6\n", 3, "`where`"),
        ("run,measure,value\na,map,inf\n", 2, "'inf'"),
        ("run,group\na,g\n", 2, "no column of scores"),
    ],
)
def test_faults_of_means_have_a_line(tmp_path, text, line, word):
    path = text_file(tmp_path, "means.csv", text)
    error = fault(lambda: read_means(path, RowFilter()), word)
    assert (error.where, error.line) == (str(path), line)


def test_conditions_choose_rows_and_must_name_a_column(tmp_path):
    metadata = text_file(tmp_path, "m.csv", "run,task,category\na,docs,trad\nb,docs,nn\nc,passages,nn\n")
    means = text_file(
        tmp_path,
        "l.csv",
        "run,evaluation,measure,value\n"
        + "".join(f"{run},{kind},ndcg_cut_10,{0.1 * n}\n" for n, run in enumerate("abc", 1) for kind in ("one", "two")),
    )

    def report(**where):
        return track.report(means=[means], metadata=[metadata], options=track.TrackReportOptions(where=where))

    found = report(task="docs", evaluation="one")
    assert [run.run for run in found.analysis.scores.runs] == ["b", "a"]
    assert found.analysis.scores.notes == ()
    fault(lambda: report(task="docs", evaluation="one", year="1"), "no table has a column 'year'")
    fault(lambda: report(task="docs"), "twice")
    fault(lambda: report(evaluation="three"), "no row is left")


def test_tables_of_means_agree_by_rounding_or_stand_apart(tmp_path):
    first = text_file(tmp_path, "printed.csv", "run,category,NDCG@10,MAP\na,trad,0.5000,0.3\nb,nn,0.6000,0.4\n")
    second = text_file(tmp_path, "exact.csv", "run,NDCG@10,map\na,0.50004,0.3\nb,0.59996,0.5\nc,0.1,0.1\n")
    scores = track.report(means=[first, second]).analysis.scores
    assert scores.measures == ("nDCG@10", "AP", "AP (exact)")
    assert scores.printed == ("nDCG@10", "AP")
    np.testing.assert_array_equal(scores.of("nDCG@10"), [0.6, 0.5, 0.1])
    np.testing.assert_array_equal(scores.of("AP (exact)"), [0.5, 0.3, 0.1])
    assert "exact has another AP for 1 of 2 runs; it is kept apart." in scores.notes
    assert "printed lacks 1 of the 3 runs: c." in scores.notes


# --- what is computed


def test_categories_subtasks_and_candidates_by_hand(tmp_path):
    found = track.report(means=[text_file(tmp_path, "means.csv", MEANS)]).analysis
    assert found.categories == ("nnlm", "nn", "trad")
    assert [(one.run, one.runs) for one in found.best] == [("a", 2), ("c", 1), ("e", 3)]
    assert [one.gain for one in found.best] == [pytest.approx(50.0), pytest.approx(25.0), None]
    main, gain = found.gaps
    assert (main.fullrank, main.rerank, main.gain) == ("a", "b", pytest.approx(100 * (0.60 / 0.55 - 1)))
    assert (gain.fullrank, gain.rerank, gain.gain) == ("c", "b", pytest.approx(75.0))
    best = found.candidates
    assert (best.run, best.candidates, best.sharing, best.reranks) == ("c", 0.40, 2, 2)
    assert found.counts()["trad", "rerank"] == 1
    # Of the fifteen pairs of runs, only (a, b), (d, e) and (d, f), and (e, f), are in another order.
    both = found.agreement("RR (MS)", "nDCG@10")
    assert (both.n, both.tau) == (6, pytest.approx((15 - 2 * 3) / 15))
    assert found.agreement("nDCG@10", "NCG@100").n == 5
    assert found.agreement("RR (MS)", "nDCG@10", "nn") is None


def test_an_unknown_baseline_names_those_there_are(tmp_path):
    means = text_file(tmp_path, "means.csv", MEANS)
    options = track.TrackReportOptions(baseline_category="classic")
    fault(lambda: track.report(means=[means], options=options), "baseline_category", "nn, nnlm, trad")


@pytest.mark.usefixtures("undrawn")
def test_without_metadata_there_are_tables_and_what_is_left_out_is_said(tmp_path):
    means = text_file(tmp_path, "means.csv", "run,NDCG@10\nx,0.5\ny,0.4\n")
    found = track.report(means=[means], out=tmp_path / "out")
    assert list(report(found).pictures()) == []
    assert "No run has a category" in summary(found).show()
    assert "No run has a category" in (tmp_path / "out" / "report.html").read_text()


def test_topics_are_won_and_lost_as_ir_measures_says(runs):
    found = track.report(**runs)
    duel = next(duel for duel in found.analysis.duels if duel.first.category == "nnlm")
    assert (duel.first.run, duel.second.run) == ("a", "d")
    values = {}
    for name in "ad":
        path = next(path for path in runs["run"] if path.stem == name)
        scored = ir_measures.iter_calc(
            [ir_measures.nDCG @ 10], ir_measures.read_trec_qrels(runs["qrels"]), ir_measures.read_trec_run(str(path))
        )
        values[name] = {metric.query_id: metric.value for metric in scored}
    differences = {topic: values["a"][topic] - values["d"][topic] for topic in "1234"}
    assert duel.topics == tuple(sorted(differences, key=lambda topic: -differences[topic]))
    np.testing.assert_allclose(duel.first_values - duel.second_values, sorted(differences.values(), reverse=True))
    assert (duel.wins, duel.ties, duel.losses) == (3, 1, 0)
    assert "wins 3 of 4 topics" in report(found).tables["topics-nnlm-trad"].title


def test_sparse_judgments_go_over_the_topics_that_both_have(runs):
    found = track.report(**runs).analysis.scores
    # Run c ranks d2 third on topic 1 and d1 first on topic 3.
    column = dict(zip((run.run for run in found.runs), found.of("RR (sparse)"), strict=True))
    assert column["c"] == pytest.approx((1 / 3 + 1) / 2)
    assert column["b"] == pytest.approx((1 + 1 / 2) / 2)
    assert any("2 of 4 topics" in note and "3 topics in the file" in note for note in found.notes)
    one_grade = track.report(**runs, rel=2).analysis.scores
    np.testing.assert_array_equal(one_grade.of("RR (sparse)"), found.of("RR (sparse)"))


def test_runs_and_judgments_that_do_not_fit_are_refused(runs, tmp_path):
    fault(lambda: track.report(qrels=runs["qrels"]), "nothing to analyse")
    fault(lambda: track.report(run=runs["run"]), "runs without judgments")
    means = text_file(tmp_path, "means.csv", MEANS)
    fault(lambda: track.report(run=runs["run"], qrels=runs["qrels"], means=[means]), "both runs and tables")
    alien = str(text_file(tmp_path, "alien.qrels", "77 0 d1 1\n"))
    fault(lambda: track.report(**{**runs, "sparse_qrels": alien}))
    fault(lambda: track.report(**runs, options=track.TrackReportOptions(measure="MFR")), "better when lower")
    fault(lambda: track.report(means=[means], options=track.TrackReportOptions(measure="P@10")), "nDCG@10")
    fault(
        lambda: track.report(means=[means], options=track.TrackReportOptions(measures="P@5 RR")), "P@5, RR", "RR (MS)"
    )
    fault(lambda: track.TrackReportOptions(perplexity=0.0), "perplexity: must be above 0, got 0")
    void = text_file(tmp_path, "void.csv", "run,category,NDCG@10\na,trad,\nb,nn,-\n")
    fault(lambda: track.report(means=[void]), "no run has a value of nDCG@10")
    fault(lambda: track.report(means=[text_file(tmp_path, "x.csv", "run,NDCG@10\n")]), "no row in it")


@pytest.mark.parametrize(
    ("value", "stated", "expected"),
    [(29.3814, "29.4", True), (14.869, "14.8", False), (14.85, "14.9", True), (36.0, "36", True), (-0.04, "0.0", True)],
)
def test_stated_figures_agree_to_their_own_digits(value, stated, expected):
    statement = track.Statement("x", value, "percent", stated)
    assert agrees(statement) is expected
    assert statement.difference == pytest.approx(value - float(stated))


def test_stated_figures_are_checked_and_shown(tmp_path):
    means = text_file(tmp_path, "means.csv", MEANS)
    stated = text_file(tmp_path, "s.csv", "statement,value\nbest nn over best trad,24.9\nruns,6\n")
    found = track.report(means=[means], stated=str(stated))
    shown = {one.name: (one.difference, agrees(one)) for one in found.statements if one.stated}
    assert shown == {"best nn over best trad": (pytest.approx(0.1), False), "runs": (0.0, True)}
    assert "1 of 2 follow" in {verdict.word for verdict in report(found).verdicts}
    fault(lambda: statements(found.analysis, {"best": "1"}), "no statement is called 'best'", "runs nnlm")
    assert fault(lambda: read_stated(text_file(tmp_path, "t.csv", "statement,value\nruns,six\n")), "'six'").line == 2


def test_measures_and_runs_can_be_chosen(runs, tmp_path):
    means = text_file(tmp_path, "means.csv", MEANS)
    chosen = track.report(means=[means], measure="ndcg_cut_10", measures="MRR (MS) NCG@100")
    assert chosen.analysis.scores.measures == ("RR (MS)", "nDCG@10", "NCG@100")
    options = track.TrackReportOptions(measure="AP", where={"group": "east"})
    found = track.report(**runs, options=options, rel=2, depth=2).analysis.scores
    assert {run.run for run in found.runs} == {"e", "f"}
    assert found.main == found.measures[0] == "AP"
    assert (found.gain, found.recall, len(found.measures)) == ("NCG@2", "R@2", 5)


@pytest.mark.usefixtures("undrawn")
def test_categories_with_like_names_keep_their_own_files(runs, tmp_path):
    metadata = text_file(tmp_path, "m.csv", "run,category\na,A $b$\nb,a-b\nc,trad\nd,trad\ne,trad\nf,<trad>\n")
    found = track.report(**{**runs, "metadata": [metadata]}, out=tmp_path / "out")
    names = [name for name in report(found).tables if name.startswith("topics-")]
    assert len(names) == 3
    assert all((tmp_path / "out" / "figures" / f"{name}.svg").is_file() for name in names)
    page = (tmp_path / "out" / "report.html").read_text()
    assert "A $b$" in page
    assert "<trad>" not in page


# --- the map of runs


def scores_of(runs: int, topics: int = 20, seed: int = 3) -> Evaluation:
    values = np.random.default_rng(seed).random((runs, 1, topics))
    values[-1] = values[0]
    names = tuple(f"r{number}" for number in range(runs))
    return Evaluation(names, ("nDCG@10",), tuple(map(str, range(topics))), values, dict.fromkeys(names, 0), Policy())


def test_the_map_is_the_same_every_time_and_bounded():
    evaluation = scores_of(12)
    one, again = (track.run_map(evaluation, "nDCG@10", seed=1) for _ in range(2))
    np.testing.assert_array_equal(one.points, again.points)
    assert one.perplexity == pytest.approx(11 / 3)
    assert np.isfinite(one.points).all()
    assert track.run_map(evaluation, "nDCG@10", perplexity=99).perplexity == pytest.approx(11 / 3)
    distances = np.linalg.norm(one.points - one.points[0], axis=1)
    assert distances[1:].argmin() == 10, "the run with equal scores is the nearest"


def test_few_runs_have_no_map():
    assert track.run_map(scores_of(9), "nDCG@10") is None
    assert track.run_map(scores_of(12, topics=1), "nDCG@10") is None


def test_similarities_are_the_correlations_of_numpy():
    evaluation = scores_of(5)
    found = track.run_similarities(evaluation, "nDCG@10")
    assert found.topics == 20
    np.testing.assert_allclose(found.values, np.corrcoef(evaluation.values[:, 0]), atol=5e-5)
    assert found.values[0, 4] == 1.0
    assert track.run_similarities(scores_of(1), "nDCG@10") is None
    assert track.run_similarities(scores_of(5, topics=2), "nDCG@10") is None


def test_a_run_with_one_score_for_all_topics_resembles_none():
    values = np.random.default_rng(1).random((3, 1, 9))
    values[1] = 0.3
    evaluation = replace(scores_of(3, topics=9), values=values)
    alike = track.run_similarities(evaluation, "nDCG@10").values
    assert np.isnan(alike[1]).all()
    assert np.isfinite(alike[0, 2])


def test_without_scikit_learn_many_runs_are_shown_by_their_similarities(runs, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.manifold", None)
    copies = [text_file(tmp_path, f"{path.stem}-2.run", path.read_text()) for path in runs["run"]]
    found = track.report(**{**runs, "run": [*runs["run"], *copies]})
    assert found.run_map is None
    assert found.similarities.values.shape == (12, 12)
    assert any("truerank[track]" in sentence for sentence in found.left_out)


# --- which runs differ


def differing(gaps: tuple[float, ...], topics: int = 60, seed: int = 5) -> Comparison:
    """Runs whose scores by topic are those of the first, less a gap, and noise."""
    draw = np.random.default_rng(seed)
    first = draw.random(topics)
    values = np.stack([first - gap + (draw.normal(0, 0.02, topics) if gap else 0) for gap in gaps])[:, None, :]
    evaluation = replace(scores_of(len(gaps), topics=topics), values=values)
    return compare_evaluations(evaluation, measures=["nDCG@10"], correction="holm")


def test_the_finding_says_by_how_much_the_best_run_is_ahead():
    comparison = differing((0.0, 0.1, 0.3))
    found = finding(comparison)
    first, second = (-row.difference for row in best_differences(comparison))
    assert (found.word, found.level) == ("AHEAD", "good")
    assert f"significantly better than all 2 other runs, by {first:.4f} (r1) to {second:.4f} (r2)" in found.sentence
    assert "Of all 3 pairs of runs, 3 differ significantly (paired t-test, Holm over 3 pairs" in found.rests_on
    assert found.settles == ""


def test_the_finding_says_which_runs_the_topics_do_not_tell_apart():
    found = finding(differing((0.0, 0.001, 0.3)))
    assert found.word == "CANNOT TELL"
    assert "do not distinguish it from 1 of the 2 other runs; the nearest is r1 (-0.00" in found.sentence
    assert found.rests_on.startswith("It is significantly better than 1, by 0.2992 (r2).")
    assert "60 show a true difference of 0.0" in found.settles


def test_two_equal_runs_cannot_be_told_apart():
    found = finding(differing((0.0, 0.0)))
    assert found.word == "CANNOT TELL"
    assert "do not distinguish it from the other run" in found.sentence
    assert "Of the one pair of runs, 0 differ significantly" in found.rests_on


# --- files


@pytest.mark.parametrize(
    ("name", "kind", "text", "records"),
    [
        ("docs.tsv", "collection", "1\tone text\n2\tanother text\n", 2),
        ("docs.jsonl", "collection", '{"_id": "1", "text": "a b"}\n{"_id": "2", "text": "c"}\n', 2),
        ("queries.tsv", "queries", "1\tone query\n2\ttwo queries\n3\tthree\n", 3),
        ("x.qrels", "qrels", "1 0 d 1\n1 0 e 0\n", 2),
    ],
)
def test_files_are_counted(tmp_path, name, kind, text, records):
    path = text_file(tmp_path, name, text)
    found = track.file_statistics(str(path), kind, "A file")
    assert found == ("A file", str(path), kind, records, len(text))


@pytest.fixture(scope="module")
def written(runs, tmp_path_factory) -> tuple[Path, str]:
    """Where a report was written, and the queries that it was given."""
    folder = tmp_path_factory.mktemp("written")
    queries = f"Test queries={text_file(folder, 'q.tsv', TWO_QUERIES)}"
    with undrawn():
        track.report(**runs, queries=[queries], out=folder / "one")
    return folder / "one", queries


def test_everything_is_written_whole(written):
    out, _ = written
    names = {"collection", "counts", "results", "categories", "subtasks", "agreement", "statements"}
    names |= {"topics-nnlm-trad", "topics-nn-trad", "differences", "pairs"}
    assert {path.name for path in (out / "tables").iterdir()} == {
        f"{name}.{ending}" for name in names for ending in ("txt", "csv", "tex", "md")
    }
    drawn = {"categories", "similarity", "subtasks", "agreement-groups", "agreement-categories", "agreement-gain"}
    drawn |= {"topics-nnlm-trad", "topics-nn-trad", "differences", "order"}
    assert {path.name for path in (out / "figures").iterdir()} == {
        f"{name}.{ending}" for name in drawn for ending in ("svg", "pdf")
    }
    manifest = json.loads((out / "manifest.json").read_text())
    for name, digest in manifest["artifacts"].items():
        assert hashlib.sha256((out / name).read_bytes()).hexdigest() == digest
    assert (
        next(one for one in manifest["inputs"] if one["role"] == "qrels")["sha256"]
        == hashlib.sha256(QRELS.encode()).hexdigest()
    )
    summary = json.loads((out / "summary.json").read_text())
    assert (summary["files"][0]["description"], summary["files"][0]["records"]) == ("Test queries", 2)
    assert summary["duels"][0] | {"measure": ""} == {
        "first": "a", "second": "d", "measure": "", "topics": 4, "wins": 3, "ties": 1, "losses": 0,
    }  # fmt: skip
    results = pl.read_csv(out / "tables" / "results.csv")
    assert results["run"][0] == "a"
    assert results["nDCG@10"].is_sorted(descending=True)


@pytest.mark.slow
def test_another_process_writes_the_same_bytes(written, runs, tmp_path):
    one, queries = tmp_path / "one", written[1]
    track.report(**runs, queries=[queries], out=one)
    words = [word for path in runs["run"] for word in ("--run", path)]
    words += ["--qrels", runs["qrels"], "--sparse-qrels", runs["sparse_qrels"], "--metadata", runs["metadata"][0]]
    finished = subprocess.run(
        [sys.executable, "-m", "truerank", "track", "report", *words, "--queries", queries, "--json",
         "--out", tmp_path / "two"],
        check=True, capture_output=True, text=True, env={**os.environ, "PYTHONHASHSEED": "7"},
    )  # fmt: skip
    assert without_progress(finished.stderr) == ""
    assert json.loads((one / "summary.json").read_text()) == json.loads(finished.stdout)
    files = sorted(path.relative_to(one) for path in one.rglob("*") if path.is_file())
    assert len(files) > 50
    for name in files:
        assert (one / name).read_bytes() == (tmp_path / "two" / name).read_bytes(), name


def test_a_fault_is_one_line_with_its_place(runs, tmp_path, capsys):
    broken = text_file(tmp_path, "broken.csv", "run,subtask\na,fullrank\nb,sideways\n")
    words = ["--run", runs["run"][0], "--qrels", runs["qrels"], "--metadata", broken]
    with pytest.raises(SystemExit) as ended:
        main(["track", "report", *map(str, words), "--out", str(tmp_path / "o")])
    assert ended.value.code == 2
    line = f"{broken}:3: the subtask 'sideways' is not known. write fullrank or rerank.\n"
    assert tuple(capsys.readouterr()) == ("", line)
    assert not (tmp_path / "o").exists()


# --- the real tables and real runs


@pytest.mark.shared
@pytest.mark.parametrize(
    ("table", "task", "evaluation", "gains", "rest", "absent"),
    [
        ("dl19-doc-runs", "docs", "trec_eval", (29.38, 14.87), (0.95, 22.94), "query2doc_RNN"),
        ("dl19-passage-runs", "passages", "passages-eval", (37.55, 23.86), (3.60, 20.73), "UNH_exDL_bm25"),
    ],
)
def test_the_printed_tables_of_the_deep_learning_track(table, task, evaluation, gains, rest, absent):
    source = DATA / "trec-dl"
    result = track.report(
        means=[source / f"{table}.csv", source / "dl2019-run-measures.csv"],
        metadata=[source / "dl2019-run-metadata.csv"],
        options=track.TrackReportOptions(where={"task": task, "evaluation": evaluation}),
    )
    found = result.analysis
    assert tuple(round(one.gain, 2) for one in found.best[:2]) == gains
    assert (round(found.gaps[0].gain, 2), round(found.candidates.gain, 2)) == rest
    counted = (15, 11, 11, 27, 10) if task == "docs" else (18, 7, 11, 25, 11)
    names = ("runs nnlm", "runs nn", "runs trad", "runs fullrank", "runs rerank")
    values = {one.name: int(one.value) for one in result.statements}
    assert tuple(values[name] for name in names) == counted
    runs = 38 if task == "docs" else 37
    assert values["runs"] == runs
    assert any(note.endswith(f"lacks 1 of the {runs} runs: {absent}.") for note in found.scores.notes)
    assert found.agreement("RR (MS)", "nDCG@10").n == runs - 1
    assert found.agreement("nDCG@10", "P@10").n == runs
    assert found.recall.n == runs - 1
    assert found.recall.tau > 0.85


@pytest.fixture(scope="module")
def vaswani(tmp_path_factory) -> tuple[track.TrackReport, Path]:
    """Runs over a real collection: BM25, query likelihood, feedback and LSA, made here."""
    (DATA / "collections")
    benchmarks = str(ROOT / "studies")
    sys.path.insert(0, benchmarks)
    try:
        maker = importlib.import_module("vaswani_runs")
    finally:
        sys.path.remove(benchmarks)
    folder = tmp_path_factory.mktemp("vaswani")
    names = {"bm25-0.9-0.4", "bm25-1.2-0.75", "ql-500", "ql-2000", "ql-500-re", "prf-5-10", "lsa-50", "mix-50-re"}
    names |= {"bm25-0.5-0.2", "prf-10-20"}
    paths = maker.write(folder, names=names, depth=120)
    assert len(paths) == len(names)
    source = DATA / "collections" / "vaswani"
    result = track.report(
        out=folder / "out",
        run=paths,
        qrels=str(folder / "vaswani.qrels"),
        sparse_qrels=str(folder / "sparse.qrels"),
        metadata=[folder / "runs.csv"],
        collection=[str(source / "docs.trec.gz")],
        topics=str(source / "topics.trec.txt"),
        options=track.TrackReportOptions(title="Vaswani"),
    )
    return result, folder / "out"


@pytest.mark.slow
@pytest.mark.shared
def test_runs_over_a_real_collection(vaswani):
    result, out = vaswani
    found = result.analysis
    assert result.files[0].records == 11_429
    assert found.scores.topics == 93
    assert found.categories[0] == "prf"
    # Judgments of one grade, and no topic with more than 100 relevant documents or so: NCG@100 is recall@100.
    np.testing.assert_allclose(found.scores.of("NCG@100"), found.scores.of("R@100"), atol=0.02)
    assert all(duel.wins + duel.ties + duel.losses == 93 for duel in found.duels)
    assert result.run_map.perplexity == pytest.approx(3.0)
    infos = [run.group for run in found.scores.runs]
    indri = [i for i, group in enumerate(infos) if group == "indri"]
    latent = infos.index("latent")
    points = result.run_map.points
    apart = np.linalg.norm(points[indri] - points[latent], axis=1)
    near = np.linalg.norm(points[indri] - points[indri].mean(axis=0), axis=1)
    assert near.max() < apart.min(), "runs of one kind lie closer together than to runs of another"
    assert (out / "figures" / "similarity.pdf").read_bytes().startswith(b"%PDF-")


@pytest.fixture(scope="module")
def drawn(tmp_path_factory) -> tuple[track.TrackReport, Path]:
    """Twelve runs over ten topics: enough for the map, and for long names."""
    folder, draw = tmp_path_factory.mktemp("drawn"), random.Random(4)
    grades = {f"{topic}": {f"d{doc}": draw.choice((0, 0, 1, 2)) for doc in range(12)} for topic in range(10)}
    lines = [f"{topic} 0 {doc} {grade}" for topic, own in grades.items() for doc, grade in own.items()]
    qrels = text_file(folder, "all.qrels", "\n".join(lines) + "\n")
    clicked = [f"{topic} 0 {max(own, key=own.get)} 1" for topic, own in grades.items()]
    sparse = text_file(folder, "sparse.qrels", "\n".join(clicked) + "\n")
    rows, paths = ["run,group,subtask,category"], []
    for number in range(12):
        name = f"a-run-with-a-long-name-{number}"
        rows.append(
            f"{name},group{number % 4},{('fullrank', 'rerank')[number % 2]},{('nnlm', 'nn', 'trad')[number % 3]}"
        )
        found = []
        for topic, own in grades.items():
            order = sorted(own, key=lambda doc: own[doc] * (number % 3) + draw.gauss(0, 1), reverse=True)
            found += [f"{topic} Q0 {doc} {rank} {20 - rank} {name}" for rank, doc in enumerate(order, start=1)]
        paths.append(text_file(folder, f"{name}.run", "\n".join(found) + "\n"))
    metadata = text_file(folder, "runs.csv", "\n".join(rows) + "\n")
    sources = {"qrels": str(qrels), "sparse_qrels": str(sparse), "metadata": [metadata]}
    return track.report(out=folder / "out", run=paths, **sources), folder / "out"


@pytest.mark.parametrize("fonts", real_browser.FONTS)
@pytest.mark.parametrize("made", ["drawn", pytest.param("vaswani", marks=[pytest.mark.slow, pytest.mark.shared])])
def test_the_page_in_a_browser_has_every_figure_whole(made, fonts, request):
    result, out = request.getfixturevalue(made)
    complaints: list[str] = []
    with real_browser.chromium("the report is", fonts) as browser:
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.on("console", lambda message: complaints.append(message.text))
        page.on("request", lambda sent: None if sent.url.startswith("file:") else complaints.append(sent.url))
        page.goto((out / "report.html").as_uri())
        names = {picture.name for picture in report(result).pictures()}
        assert page.locator("figure svg").count() == len(names) >= 10 and result.run_map is not None
        page.evaluate("for (const folded of document.querySelectorAll('figure details')) folded.open = true")
        cut = page.evaluate(
            """() => [...document.querySelectorAll("figure svg")].flatMap(svg => {
                const frame = svg.getBoundingClientRect();
                return [...svg.querySelectorAll("g[id*='text_']")].filter(text => {
                    const box = text.getBoundingClientRect();
                    return box.left < frame.left - 2 || box.right > frame.right + 2
                        || box.top < frame.top - 2 || box.bottom > frame.bottom + 2;
                }).map(text => text.id);
            })"""
        )
    assert cut == []
    assert complaints == []
