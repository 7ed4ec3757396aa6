"""Comparisons: by hand, against SciPy run by run, pooled evaluations, the command line, and the survivorship runs."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import truerank
from places import DATA
from truerank.cli.app import main
from truerank.core.result import summary
from truerank.errors import InputError
from truerank.measures import (
    Evaluation,
    Policy,
    RunComparison,
    compare,
    evaluate,
    topic_differences,
)
from truerank.measures import compare_evaluations as compared
from truerank.measures.report import difference_table, score_table
from truerank.measures.systems import shared_topics, systems
from truerank.version import __version__
from truerank.work.publishing import publish
from truerank.work.runs import run

RNG = np.random.default_rng(20220711)
BASE = RNG.beta(2, 2, 40)
#: Better by a tenth everywhere but for noise; no better; worse on one topic only.
BETTER = np.clip(BASE + 0.1 + RNG.normal(0, 0.03, 40), 0, 1.2)
SAME = BASE + RNG.permutation(np.repeat([0.02, -0.02], 20)) + RNG.normal(0, 0.01, 40)
ONE = np.where(np.arange(40) == 7, BASE - 0.5, BASE)


def evaluation(runs, *, measure="nDCG@10", topics=None, aggregates=()):
    """Runs as {name: scores}, or {name: {measure: scores}}."""
    runs = {name: scores if isinstance(scores, dict) else {measure: scores} for name, scores in runs.items()}
    measures = tuple(next(iter(runs.values())))
    values = np.array([[found[name] for name in measures] for found in runs.values()], dtype=float)
    topics = tuple(topics or (f"t{i}" for i in range(values.shape[2])))
    missing = dict.fromkeys(runs, 0)
    return Evaluation(tuple(runs), measures, topics, values.copy(), missing, Policy(), aggregates)


FOUR = {"base": BASE, "better": BETTER, "same": SAME, "one": ONE}


def test_one_difference_in_full():
    result = compared(evaluation(FOUR), "base")
    row = result.of("better", "nDCG@10")
    expected = stats.ttest_rel(BETTER, BASE)
    interval = expected.confidence_interval(0.95)
    assert (row.run, row.baseline, row.n, row.skipped) == ("better", "base", (40,), 0)
    assert (row.mean, row.baseline_mean) == (pytest.approx(BETTER.mean()), pytest.approx(BASE.mean()))
    assert row.difference == pytest.approx((BETTER - BASE).mean())
    assert (row.low, row.high) == (pytest.approx(interval.low), pytest.approx(interval.high))
    assert (row.statistic, row.freedom, row.p) == (
        pytest.approx(expected.statistic), 39, pytest.approx(expected.pvalue),
    )  # fmt: skip
    assert row.p_corrected == pytest.approx(3 * row.p) and row.significant and row.better
    differences = BETTER - BASE
    assert row.effect == pytest.approx(differences.mean() / differences.std(ddof=1))
    assert (row.wins, row.ties, row.losses) == (
        (differences > 1e-9).sum(), 0, (differences < -1e-9).sum(),
    )  # fmt: skip
    one = result.of("one", "nDCG@10")
    assert (one.wins, one.ties, one.losses, one.better) == (0, 39, 1, False)


def test_sentences_and_tables_say_what_survives():
    result = compared(evaluation(FOUR), "base")
    (first, *rest) = result.sentences()
    assert first.startswith(
        "nDCG@10: 1 of 3 differences to base survives (paired t-test, Bonferroni over 3 comparisons"
    )
    assert "better (+0." in first and rest == []
    scores = score_table(result)
    assert [row[0] for row in scores.rows] == ["base", "better", "same", "one"]
    assert scores.rows[1][1].endswith("†") and not scores.rows[0][1].endswith("†")
    assert "† differs from base: paired t-test" in scores.text()
    text = summary(result).show()
    for part in ("win / tie / loss", "0 / 39 / 1", "Cohen's dz", "95% intervals: Student t", "Ties: scores as 32-bit"):
        assert part in text
    for form in ("markdown", "latex", "csv"):
        assert "better" in getattr(difference_table(result), form)()
    none = compared(evaluation({"base": BASE, "same": SAME, "one": ONE}), "base")
    assert none.sentences()[0].startswith("nDCG@10: no difference to base survives, 0 of 2 (paired t-test")
    assert "too small for these topics" in none.sentences()[0]
    assert "†" not in str(score_table(none).rows)


def test_what_only_the_missing_correction_would_show():
    shift = np.where(np.arange(40) % 2, 0.2, -0.1)
    target = stats.t.ppf(1 - 0.02 / 2, 39)  # p of 0.02: significant alone, not as one of three
    noise = shift - shift.mean()
    scores = BASE + noise + target * noise.std(ddof=1) / math.sqrt(40)
    ev = evaluation({"base": BASE, "near": scores, "same": SAME, "one": ONE})
    result = compared(ev, "base")
    assert result.of("near", "nDCG@10").p == pytest.approx(0.02)
    assert "without the correction 1 would" in result.sentences()[1]
    free = compared(ev, "base", correction="none")
    assert "1 of 3 differences to base survives (paired t-test, no correction, α = 0.05)" in free.sentences()[0]
    strict = compared(ev, "base", confidence=0.99, correction="none")
    assert not any(row.significant for row in strict.differences)


def test_corrections_and_families():
    two = {name: {"nDCG@10": scores, "P@1": np.roll(scores, 3)} for name, scores in FOUR.items()}
    by_measure = compared(evaluation(two), "base")
    together = compared(evaluation(two), "base", family="all")
    named = compared(evaluation(two), "base", family=50, correction="holm")
    for row, all_row, many in zip(by_measure.differences, together.differences, named.differences, strict=True):
        assert row.p_corrected == pytest.approx(min(1, 3 * row.p))
        assert all_row.p_corrected == pytest.approx(min(1, 6 * row.p))
        assert many.p_corrected >= min(1, 47 * row.p) - 1e-12
    assert "Holm over 50 comparisons" in summary(named).show()
    with pytest.raises(InputError, match="a family of 2 is smaller than the 3 comparisons"):
        compared(evaluation(FOUR), "base", family=2)


def test_all_pairs():
    result = compared(evaluation(FOUR))
    assert [(row.run, row.baseline) for row in result.differences] == [
        ("better", "base"), ("same", "base"), ("one", "base"), ("same", "better"), ("one", "better"), ("one", "same"),
    ]  # fmt: skip
    assert result.of("better", "nDCG@10", "base").p_corrected == pytest.approx(6 * stats.ttest_rel(BETTER, BASE).pvalue)
    assert "3 of 6 differences between runs survive" in result.sentences()[0]
    assert "better − base (+0." in result.sentences()[0]
    assert "baseline" in [column.title for column in difference_table(result).columns]
    with pytest.raises(KeyError):
        result.of("one", "nDCG@10")


def test_lower_is_better_for_first_ranks():
    ranks = {"base": np.array([2.0, 3, 4, 5]), "run": np.array([1.0, 1, 4, 9])}
    row = compared(evaluation(ranks, measure="MFR"), "base").differences[0]
    assert (row.wins, row.ties, row.losses, row.difference, row.better) == (2, 1, 1, 0.25, False)
    infinite = {"base": np.array([2.0, np.inf, 4, np.inf]), "run": np.array([1.0, np.inf, np.inf, 3])}
    row = compared(evaluation(infinite, measure="MFR"), "base").differences[0]
    assert (row.wins, row.ties, row.losses) == (2, 1, 1)
    assert (row.p, row.case, row.mean, row.difference) == (None, "infinite", None, None)
    text = summary(compared(evaluation(infinite, measure="MFR"), "base")).show()
    assert "No test of run by MFR: a score is infinite." in text


def test_skipped_topics_are_left_out_of_both():
    first, second = BETTER.copy(), BASE.copy()
    first[3] = second[9] = np.nan
    kept = np.delete(np.arange(40), [3, 9])
    for test in ("paired-t", "wilcoxon", "randomisation"):
        row = compared(evaluation({"base": second, "better": first}), "base", significance=test).differences[0]
        assert (row.n, row.skipped) == ((38,), 2)
        assert row.mean == pytest.approx(BETTER[kept].mean())
    row = compared(evaluation({"base": second, "better": first}), "base", significance="welch").differences[0]
    assert (row.n, row.skipped) == ((39, 39), 2)
    result = compared(evaluation({"base": second, "better": first}), "base")
    assert "Up to 2 topics are left out" in summary(result).show()


@pytest.mark.parametrize("test", ["paired-t", "welch", "equal-variance-t", "wilcoxon", "randomisation"])
def test_every_test_is_named_and_used(test):
    result = compared(evaluation(FOUR), "base", significance=test, resamples=9_999)
    p = {row.run: row.p for row in result.differences}
    reference = {
        "paired-t": lambda a, b: stats.ttest_rel(a, b).pvalue,
        "welch": lambda a, b: stats.ttest_ind(a, b, equal_var=False).pvalue,
        "equal-variance-t": lambda a, b: stats.ttest_ind(a, b).pvalue,
        "wilcoxon": lambda a, b: stats.wilcoxon(a, b).pvalue,
        "randomisation": lambda a, b: (
            stats.permutation_test(
                (a - b,), lambda x, axis: x.mean(axis), permutation_type="samples", n_resamples=9_999, rng=1
            ).pvalue
        ),
    }[test]
    tolerance = {"abs": 0.02} if test == "randomisation" else {"rel": 1e-9}
    for name in ("better", "same"):
        assert p[name] == pytest.approx(reference(FOUR[name], BASE), **tolerance)
    unpaired = test in ("welch", "equal-variance-t")
    assert ("win / tie / loss" in summary(result).show()) is not unpaired
    assert ("Cohen's ds" if unpaired else "Cohen's dz") in summary(result).show()


def test_randomisation_of_many_runs_is_that_of_each():
    together = compared(evaluation(FOUR), "base", significance="randomisation", resamples=2_000, seed=4)
    alone = compared(
        evaluation({"base": BASE, "same": SAME}), "base", significance="randomisation", resamples=2_000, seed=4
    )
    assert together.of("same", "nDCG@10").p == alone.of("same", "nDCG@10").p
    # One topic differs: of both signs each is as extreme.
    assert together.of("one", "nDCG@10").p == 1.0
    assert together.of("one", "nDCG@10").how == "all 2 permutations"


def test_bootstrap_intervals_replace_those_of_t():
    result = compared(evaluation(FOUR), "base", interval="bca", resamples=2_000, seed=3)
    assert "95% intervals: BCa bootstrap, 2,000 draws, seed 3." in summary(result).show()
    row, again = (compared(evaluation(FOUR), "base", interval="bca", seed=s).of("same", "nDCG@10") for s in (3, 3))
    student = compared(evaluation(FOUR), "base").of("same", "nDCG@10")
    assert row == again and row.p == student.p
    assert row.low == pytest.approx(student.low, abs=0.002) and row.low != student.low


def test_measures_that_are_no_means():
    scores = {name: {"nDCG@10": s, "NumRet": s * 10, "HMFR": s + 1} for name, s in FOUR.items()}
    ev = evaluation(scores, aggregates=("mean", "sum", "harmonic"))
    result = compared(ev, "base")
    assert result.measures == ("nDCG@10",) and result.left_out == ("NumRet", "HMFR")
    assert "not means over topics: NumRet, HMFR" in summary(result).show()
    with pytest.raises(InputError, match="HMFR is not a mean over topics"):
        compared(ev, "base", measures="HMFR")
    with pytest.raises(InputError, match=r"not all runs were scored by P@1\. one of nDCG@10"):
        compared(ev, "base", measures=["P@1"])


def test_names_of_measures_are_those_of_the_evaluation():
    scores = {name: {"AP(rel=1)": s, "AP": s + 1, "RR(rel=2,judged_only=True)": s} for name, s in FOUR.items()}
    ev = evaluation(scores)
    assert compared(ev, "base", measures="AP(rel=1)").measures == ("AP(rel=1)",)
    assert compared(ev, "base", measures="RR(rel=2, judged_only=True),MAP").measures == (
        "RR(rel=2,judged_only=True)",
        "AP",
    )
    with pytest.raises(InputError, match="unknown measure"):
        compared(ev, "base", measures="nope")


def test_several_evaluations():
    shuffled = list(range(39, -1, -1))
    other = evaluation({"late": BETTER[shuffled], "base": SAME[shuffled]}, topics=[f"t{i}" for i in shuffled])
    both = {"first": evaluation({"base": BASE}), "second": other}
    result = compared(both, "first/base")
    assert result.of("late", "nDCG@10").p == pytest.approx(stats.ttest_rel(BETTER, BASE).pvalue)
    assert result.runs == ("first/base", "late", "second/base")
    namesakes = compared(both, "first")
    assert [(row.run, row.baseline) for row in namesakes.differences] == [("second/base", "first/base")]
    topics, own, places = shared_topics(systems(both)["first/base"], systems(both)["late"])
    assert [other.topics[place] for place in places] == list(topics) == [f"t{i}" for i in own]


def test_different_topics_need_an_unpaired_test():
    few = evaluation({"bm25": BASE[:15]})
    both = {"full": evaluation({"bm25": BASE, "t5": BETTER}), "depth-1": few}
    with pytest.raises(InputError, match=r"different topics \(0 and 25 are only in one\)\. choose an unpaired test"):
        compared(both, "full", significance="paired-t")
    row = compared(both, "full", significance="welch").differences[0]
    assert (row.run, row.baseline, row.n) == ("depth-1/bm25", "full/bm25", (15, 40))
    assert row.p == pytest.approx(stats.ttest_ind(BASE[:15], BASE, equal_var=False).pvalue)
    assert row.wins is None


@pytest.mark.parametrize(
    ("call", "fault"),
    [
        (lambda: compared(evaluation({"a": BASE})), "a comparison needs two runs"),
        (lambda: compared({}), "no evaluation"),
        (lambda: compared(evaluation(FOUR), "bse"), "there is no run 'bse'. one of base, better, same, one"),
        (lambda: compared(evaluation(FOUR), "base", tie=math.nan), "tie: must be at least 0, got nan"),
        (lambda: compared(evaluation(FOUR), "base", family=0), "family: must be at least 1, got 0"),
        (
            lambda: compared(evaluation(FOUR), "base", significance="welch", effect_size="dz"),
            "effect_size: dz needs a paired",
        ),
        (lambda: compared(evaluation(FOUR), "base", measures=""), "no measure"),
        (lambda: topic_differences(evaluation(FOUR), "x", "base", ["nDCG@10"]), "topics_of: there is no run 'x'"),
    ],
)
def test_faults(call, fault):
    with pytest.raises(InputError) as raised:
        call()
    assert fault in str(raised.value)


def saved(result, folder):
    with run("compare", out=folder) as job:
        publish(RunComparison(result), job)
    return folder


def test_json_and_files(tmp_path):
    result = compared(evaluation(FOUR), "base", effect_size="gz")
    value = json.loads(json.dumps(result.json(), allow_nan=False))
    assert value["method"]["effect"] == "gz" and value["method"]["correction"] == "bonferroni"
    assert value["differences"][0]["n"] == [40] and len(value["sentences"]) == 1
    first, second = saved(result, tmp_path / "a"), saved(result, tmp_path / "b")
    names = sorted(path.name for path in first.iterdir() if path.is_file())
    assert names == ["comparison.csv", "comparison.json", "comparison.md", "comparison.tex", "manifest.json"]
    assert all((first / name).read_bytes() == (second / name).read_bytes() for name in names)


def test_topic_differences():
    (found,) = topic_differences(evaluation(FOUR), "one", "base", ["nDCG@10"])
    assert found.topics[-1] == "t7" and found.outcomes.count("tie") == 39 and found.outcomes[-1] == "loss"
    assert found.topics[:3] == ("t0", "t1", "t2")
    assert "one wins 0 of 40 topics against base, loses 1, 39 are ties (within 1e-09)." in summary(found).show()
    (ranks,) = topic_differences(
        evaluation({"base": [2.0, 3, np.inf, 5], "run": [1.0, 9, np.inf, 5]}, measure="MFR"), "run", "base", ["MFR"]
    )
    assert ranks.topics == ("t0", "t2", "t3", "t1") and ranks.outcomes == ("win", "tie", "tie", "loss")
    assert json.loads(json.dumps(ranks.json(), allow_nan=False))["topics"][1]["score"] is None


QRELS = "".join(f"q{i} 0 d1 {2 if i % 2 else 1}\nq{i} 0 d2 1\n" for i in range(12))


def run_text(places):
    return "".join(
        f"q{i} Q0 {name} {rank} {20 - rank} x\n"
        for i, place in enumerate(places)
        for rank, name in enumerate([*["x1", "x2", "x3"][:place], "d1", "d2"], start=1)
    )


@pytest.fixture
def files(tmp_path):
    (tmp_path / "q.qrels").write_text(QRELS)
    (tmp_path / "a.run").write_text(run_text([1, 0] * 6))
    (tmp_path / "b.run").write_text(run_text([0, 1, 2] * 4))
    (tmp_path / "c.run").write_text(run_text([3] * 12))
    return tmp_path


def test_command(files, monkeypatch, capsys):
    monkeypatch.chdir(files)
    three = ["--qrels", "q.qrels", "--run", "a.run", "--run", "b.run", "--run", "c.run"]
    with pytest.raises(SystemExit) as ended:
        main(
            [
                "compare",
                *three,
                "--baseline",
                "a",
                "--measures",
                "RR nDCG@10",
                "--topics-of",
                "b",
                "--out",
                "o",
                "--json",
            ]
        )
    printed = capsys.readouterr()
    assert (ended.value.code, printed.err) == (0, "")
    value = json.loads(printed.out)
    runs = [files / f"{name}.run" for name in "abc"]
    expected = compared(evaluate(files / "q.qrels", runs, "RR nDCG@10"), "a")
    assert value["comparison"]["differences"] == json.loads(json.dumps(expected.json()))["differences"]
    assert [found["measure"] for found in value["per_topic"]] == ["RR", "nDCG@10"]
    assert json.loads((files / "o/comparison.json").read_text()) == value["comparison"]
    assert (files / "o/per_topic.csv").read_text().startswith("measure,topic,b,a,difference,for the run\n")
    twin = truerank.compare(qrels=files / "q.qrels", run=runs, baseline="a", measures="RR nDCG@10", topics_of="b")
    assert {"version": __version__, "command": "compare", **json.loads(json.dumps(twin.json()))} == value


def test_command_on_saved_evaluations(files):
    runs = [files / f"{name}.run" for name in "abc"]
    evaluate(files / "q.qrels", runs, "RR nDCG@10", out=files / "full")
    (files / "less.qrels").write_text("".join(line for line in QRELS.splitlines(True) if line.split()[0] < "q2"))
    evaluate(files / "less.qrels", runs, "RR", out=files / "less")
    report = compare(evaluation=[files / "full"], baseline="a")
    assert report.comparison.measures == ("RR", "nDCG@10") and report.orders == ()
    orders = compare(evaluation=[files / "less", files / "full"])
    assert orders.comparison is None and [order.measure for order in orders.orders] == ["RR"]
    assert orders.orders[0].conditions == ("less", "full")
    assert "Kendall's τ-b" in summary(orders).show() and "less" in summary(orders).show("markdown")
    compare(evaluation=[files / "less", files / "full"], out=files / "orders")
    assert (files / "orders/order.csv").read_text().startswith("measure,system,")
    assert not (files / "orders/swaps.csv").exists()
    # On every third topic b is perfect, on all of them a is better.
    (files / "third.qrels").write_text("".join(f"q{i} 0 d1 1\n" for i in (0, 3, 6, 9)))
    evaluate(files / "third.qrels", runs, "RR", out=files / "third")
    compare(evaluation=[files / "third", files / "full"], out=files / "swapped")
    assert "RR,change places ↔,b,a,0.25,-0.13" in (files / "swapped/swaps.csv").read_text()
    assert json.loads((files / "swapped/swaps.json").read_text())["RR"]["swaps"][0]["better"] == "b"
    assert "a" in json.loads((files / "orders/order.json").read_text())["orders"][0]["before"]
    also = compare(evaluation=[files / "less"], also=[files / "full"], baseline="full", significance="welch")
    assert [(row.run, row.baseline) for row in also.comparison.differences] == [
        (f"less/{name}", f"full/{name}") for name in "abc"
    ]
    assert also.comparison.differences[0].n == (4, 12)


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (["--run", "a.run"], "compare: nothing to compare."),
        (["--qrels", "q.qrels", "--run", "a.run"], "a comparison needs two runs"),
        (["--qrels", "q.qrels", "--run", "a.run", "--run", "b.run", "--baseline", "z"], "there is no run 'z'"),
        (["--qrels", "q.qrels", "--run", "a.run", "--run", "no.run"], "no.run"),
        (["--qrels", "q.qrels", "--run", "a.run", "--run", "b.run", "--topics-of", "b"], "need a baseline"),
        (["--evaluation", "nowhere"], "no summary.json here"),
        (["--evaluation", "x", "--qrels", "q.qrels"], "saved evaluations replace"),
        (["--evaluation", "x", "--evaluation", "y", "--evaluation", "z"], "3 evaluations are not two conditions"),
    ],
)
def test_faults_of_the_command_are_one_line(files, words, fault, monkeypatch, capsys):
    monkeypatch.chdir(files)
    with pytest.raises(SystemExit) as ended:
        main(["compare", *words])
    printed = capsys.readouterr()
    assert ended.value.code == 2 and printed.out == ""
    assert fault in printed.err and printed.err.count("\n") == 1


@pytest.mark.shared
def test_on_dl19_alone_no_difference_survives():
    """Survivorship paper, Figure 1: monoT5 trained on all judgments, or as if only the first 5 or 1 had been shown."""
    paths = [DATA / f"survivorship/runs/{name}.dl19.run.gz" for name in ("monot5", "monot5-sim5", "monot5-sim1")]
    qrels = DATA / "qrels/dl19-passage.qrels.gz"
    scores = evaluate(qrels, paths, "nDCG@10 AP(rel=2)")
    assert np.round(scores.mean, 4).tolist() == [[0.7215, 0.4604], [0.7164, 0.4542], [0.6995, 0.4456]]
    result = compared(scores, "monot5.dl19")
    for row in result.differences:
        pair = scores.of(row.run, row.measure), scores.of("monot5.dl19", row.measure)
        assert row.p == pytest.approx(stats.ttest_rel(*pair).pvalue)
        assert row.p_corrected == pytest.approx(min(1, 2 * row.p)) and not row.significant
    for sentence, measure in zip(result.sentences(), ("nDCG@10", "AP(rel=2)"), strict=True):
        assert sentence.startswith(
            f"{measure}: no difference to monot5.dl19 survives, 0 of 2 (paired t-test, Bonferroni"
        )


@settings(max_examples=25)
@given(st.lists(st.tuples(st.integers(0, 10), st.integers(0, 10)), min_size=2, max_size=25), st.randoms())
@pytest.mark.parametrize("test", ["paired-t", "welch", "wilcoxon", "randomisation"])
def test_turning_a_comparison_round_turns_its_signs(test, pairs, random):
    first, second = np.array(pairs, dtype=float).T / 10
    order = list(range(len(pairs)))
    random.shuffle(order)
    one = compared(evaluation({"a": first, "b": second}), "a", significance=test, resamples=500).differences[0]
    turned = evaluation({"b": second[order], "a": first[order]}, topics=[f"t{i}" for i in order])
    other = compared(turned, "b", significance=test, resamples=500).differences[0]
    assert (one.case, one.n) == (other.case, other.n) and (one.wins, one.ties, one.losses) == (
        other.losses, other.ties, other.wins,
    )  # fmt: skip
    for value, opposite in ((one.difference, other.difference), (one.low, other.high), (one.effect, other.effect)):
        assert (value is None) == (opposite is None)
        assert value is None or value == pytest.approx(-opposite, abs=1e-12)
    assert one.detectable == pytest.approx(other.detectable)
    tolerance = 0.15 if "500 permutations" in one.how else 1e-9
    assert (one.p is None) == (other.p is None) and (one.p is None or one.p == pytest.approx(other.p, abs=tolerance))


def test_folders_of_the_same_name(files):
    runs = [files / f"{name}.run" for name in "ab"]
    for parent in ("x", "y"):
        evaluate(files / "q.qrels", runs, "RR", out=files / parent / "scores")
    report = compare(evaluation=[files / "x/scores", files / "y/scores"], baseline="y/scores")
    assert report.orders[0].conditions == ("x/scores", "y/scores")
    assert [row.case for row in report.comparison.differences] == ["no-difference"] * 2
    with pytest.raises(InputError, match="two evaluations are called scores"):
        compare(evaluation=[files / "x/scores"], also=[files / "y/scores"], baseline="a")
