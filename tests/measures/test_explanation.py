"""`explain`: numbers of known origin are explained, numbers of none are not, and few digits promise nothing."""

from __future__ import annotations

import json
import random
from pathlib import Path

import polars as pl
import pytest

import truerank
from truerank.cli import main
from truerank.errors import InputError, OptionError
from truerank.measures.conventions import ConventionScorer, scored_measure
from truerank.measures.explanation import ExplainOptions, Explanation, explain, explanation, reported_score


def files(folder: Path, *, topics: int = 40, seed: int = 1) -> tuple[str, str]:
    """Graded judgments, and a run with ties that lacks two topics."""
    draw = random.Random(seed)
    docs = [f"d{number:03}" for number in range(300)]
    judged, rows = [], []
    for topic in range(topics):
        own = draw.sample(docs, 25)
        judged += [f"{topic} 0 {doc} {draw.choice((0, 0, 1, 1, 2, 3))}" for doc in own]
        if topic not in (5, 17):
            found = sorted(draw.sample(own, 12) + draw.sample(docs, 30), key=lambda _: draw.random())
            found = list(dict.fromkeys(found))
            rows += [f"{topic} Q0 {doc} {place} {9 - place // 3} x" for place, doc in enumerate(found, 1)]
    (folder / "a.qrels").write_text("\n".join(judged) + "\n")
    (folder / "a.run").write_text("\n".join(rows) + "\n")
    return str(folder / "a.qrels"), str(folder / "a.run")


def score(folder: Path, measure: str, *codes: str, digits: int = 4) -> str:
    qrels = truerank.sources.read_qrels_frame(str(folder / "a.qrels"))
    own = ConventionScorer(qrels, truerank.sources.read_run_frame(folder / "a.run"))
    wanted = scored_measure(measure)
    chosen = tuple(one for one in own.choices if one.code in codes and (not one.serves or wanted.family in one.serves))
    return f"{measure}={own.scores(wanted, chosen).score:.{digits}f}"


def first(found: Explanation) -> tuple[str, str]:
    codes = found.frames["causes"]["code"].to_list()
    return found.verdicts[0].word, codes[0] if codes else ""


@pytest.mark.parametrize(
    "code", ["gain.exponential", "topics.in-run", "ideal.retrieved", "unjudged.left-out", "grades.binary"]
)
def test_single_causes_with_five_digits(code: str, tmp_path: Path) -> None:
    qrels, run = files(tmp_path)
    found = explain(qrels, run, ExplainOptions(reported=(score(tmp_path, "nDCG@10", code, digits=5),)))
    assert first(found) == ("EXPLAINED", code)
    rounded = explain(qrels, run, ExplainOptions(reported=(score(tmp_path, "nDCG@10", code, digits=3),)))
    assert first(rounded)[0] == "AMBIGUOUS"


@pytest.mark.parametrize(
    "code", ["gain.squared", "grades.reversed", "topics.first-10", "judgments.lost-2", "run.cut-3"]
)
def test_mistakes_with_two_measures_of_which_one_need_not_change(code: str, tmp_path: Path) -> None:
    qrels, run = files(tmp_path)
    reported = tuple(score(tmp_path, measure, code, digits=5) for measure in ("nDCG@10", "AP"))
    assert first(explain(qrels, run, ExplainOptions(reported=reported))) == ("EXPLAINED", code)


def test_elasticsearch_cuts_the_ideal_ranking_at_the_number_of_results(tmp_path: Path) -> None:
    """By its own figures: 7 / 7, and 3 / (7 + 3 / log2(3))."""
    (tmp_path / "a.qrels").write_text("q1 0 a 3\nq1 0 b 3\nq2 0 d 3\nq2 0 e 2\n")
    (tmp_path / "a.run").write_text("q1 Q0 a 1 3 x\nq2 Q0 e 1 3 x\nq2 Q0 z 2 2 x\n")
    options = ExplainOptions(reported=("nDCG@10=0.6687",))
    found = explain(str(tmp_path / "a.qrels"), str(tmp_path / "a.run"), options)
    assert first(found) == ("EXPLAINED", "gain.elasticsearch")


def test_scores_may_have_been_sorted_as_texts(tmp_path: Path) -> None:
    (tmp_path / "a.qrels").write_text("".join(f"q{n} 0 d1 {n % 3}\nq{n} 0 d9 1\n" for n in range(9)))
    rows = (f"q{n} Q0 d{d} {12 - d} {12 - d + n / 100:.2f} x\n" for n in range(9) for d in range(1, 12))
    (tmp_path / "a.run").write_text("".join(rows))
    reported = tuple(score(tmp_path, measure, "ties.text", digits=5) for measure in ("nDCG@5", "AP"))
    found = explain(str(tmp_path / "a.qrels"), str(tmp_path / "a.run"), ExplainOptions(reported=reported))
    assert first(found)[1] == "ties.text"


def test_copies_make_scores_above_one_which_are_not_per_cent(tmp_path: Path) -> None:
    (tmp_path / "a.qrels").write_text("q1 0 a 1\nq1 0 b 1\nq1 0 c 1\nq2 0 c 1\n")
    (tmp_path / "a.run").write_text(
        "".join(f"{q} Q0 {d} {n} {9 - n} x\n" for q, d in (("q1", "a"), ("q2", "c")) for n in (1, 2))
    )
    sides = str(tmp_path / "a.qrels"), str(tmp_path / "a.run")
    found = explain(*sides, ExplainOptions(reported=("R@5=1.3333", "RR=1.0000")))
    assert first(found)[1] == "run.duplicates" and "per cent" not in found.verdict.sentence
    assert "R@5 33.3 (read as per cent)" in explain(*sides, ExplainOptions(reported=("R@5=33.3",))).verdict.sentence


def test_digits_that_were_cut_off_are_said_and_shares_hold_what_the_page_promises(tmp_path: Path) -> None:
    qrels, run = files(tmp_path)
    for codes in ((), ("gain.exponential",)):
        exact = float(score(tmp_path, "nDCG@10", *codes, digits=12).partition("=")[2])
        cut, rounded = f"{int(exact * 1e5) / 1e5:.5f}", f"{exact:.5f}"
        found = explain(qrels, run, ExplainOptions(reported=(f"nDCG@10={cut}",)))
        assert ("cut off instead of rounded" in found.verdict.sentence) == (cut != rounded)
    for digits in (4, 5):
        for code in ("ties.input", "topics.of-run", "grades.binary", "ideal.uncut"):
            found = explain(qrels, run, ExplainOptions(reported=(score(tmp_path, "nDCG@10", code, digits=digits),)))
            if found.verdict.word == "EXPLAINED":
                assert found.frames["causes"]["share"][0] >= 0.8


def test_a_measure_that_did_not_change_is_evidence(tmp_path: Path) -> None:
    """A cut-off of the other measure is excluded, a gain is not."""
    qrels, run = files(tmp_path)
    reported = (score(tmp_path, "nDCG@10", "gain.exponential", digits=5), score(tmp_path, "P@10", digits=5))
    found = explain(qrels, run, ExplainOptions(reported=reported))
    assert first(found) == ("EXPLAINED", "gain.exponential")
    assert all("topics" not in code for code in found.frames["causes"]["code"])


def test_pairs_with_two_measures(tmp_path: Path) -> None:
    qrels, run = files(tmp_path)
    codes = ("topics.in-run", "run.first-lost")
    reported = tuple(score(tmp_path, name, *codes, digits=5) for name in ("nDCG@10", "AP"))
    found = explain(qrels, run, ExplainOptions(reported=reported))
    word, code = first(found)
    assert word == "EXPLAINED" and set(code.split(" + ")) == set(codes)
    assert "at least" in found.verdicts[0].sentence


def test_the_same_number_needs_no_cause(tmp_path: Path) -> None:
    qrels, run = files(tmp_path)
    found = explain(qrels, run, ExplainOptions(reported=(score(tmp_path, "AP"), score(tmp_path, "P@10"))))
    assert first(found) == ("SAME", "")


@pytest.mark.slow
def test_random_numbers_are_not_explained(tmp_path: Path) -> None:
    qrels, run = files(tmp_path)
    own = ConventionScorer(truerank.sources.read_qrels_frame(qrels), truerank.sources.read_run_frame(run))
    default = own.scores(scored_measure("nDCG@10")).score
    draw = random.Random(3)
    words = [
        explanation(own, [reported_score(f"{default + draw.uniform(-0.02, 0.02):.4f}", "nDCG@10", 1)]).verdicts[0].word
        for _ in range(60)
    ]
    assert words.count("EXPLAINED") <= 1 and words.count("NOT EXPLAINED") >= 15


def test_scores_by_topic_say_more(tmp_path: Path) -> None:
    qrels, run = files(tmp_path)
    own = ConventionScorer(truerank.sources.read_qrels_frame(qrels), truerank.sources.read_run_frame(run))
    chosen = tuple(one for one in own.choices if one.code in ("gain.exponential", "ties.input"))
    found = own.scores(scored_measure("nDCG@10"), chosen)
    lines = [f"ndcg_cut_10\t{topic}\t{value:.4f}" for topic, value in zip(found.topics, found.values, strict=True)]
    (tmp_path / "theirs.txt").write_text("\n".join(lines) + "\n")
    answer = explain(qrels, run, ExplainOptions(reported=(f"nDCG@10={tmp_path / 'theirs.txt'}",)))
    word, code = first(answer)
    assert word == "EXPLAINED" and set(code.split(" + ")) == {"gain.exponential", "ties.input"}


def test_percent_other_runs_and_earlier_judgments(tmp_path: Path) -> None:
    qrels, run = files(tmp_path)
    other = pl.Series(Path(run).read_text().splitlines()).str.replace(r" Q0 d(\d)", " Q0 d9$1").to_list()
    (tmp_path / "b.run").write_text("\n".join(line.replace("d90", "d0") for line in other) + "\n")
    value = float(truerank.evaluate(qrels, {"b": str(tmp_path / "b.run")}, "AP").of("b", "AP").mean())
    found = explain(qrels, run, ExplainOptions(reported=(f"AP={100 * value:.3f}",)))
    assert first(found) == ("EXPLAINED", "system.b.run")
    lines = Path(qrels).read_text().splitlines()
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "first.qrels").write_text("\n".join(lines[: len(lines) // 2]) + "\n")
    own = truerank.evaluate(str(tmp_path / "old" / "first.qrels"), {"a": run}, "AP")
    reported = f"AP={float(own.of('a', 'AP').mean()):.5f}"
    found = explain(
        qrels, run, ExplainOptions(reported=(reported,)), previous_qrels=str(tmp_path / "old" / "first.qrels")
    )
    assert first(found) == ("EXPLAINED", "judgments.previous")


def test_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    qrels, run = files(tmp_path)

    def ended(*words: str) -> int:
        with pytest.raises(SystemExit) as raised:
            main(["explain", "--qrels", qrels, "--run", run, *words])
        return int(str(raised.value.code or 0))

    reported = score(tmp_path, "nDCG@10", "gain.exponential", digits=5)
    assert ended("--reported", reported, "--out", str(tmp_path / "why")) == 0
    assert capsys.readouterr().out.startswith(
        f"EXPLAINED. nDCG@10 {reported.partition('=')[2]} was computed with the exp"
    )
    summary = json.loads((tmp_path / "why" / "summary.json").read_text())
    assert summary["verdict"] == "EXPLAINED" and summary["facts"]["chance"] <= 0.01
    assert "Who computes this way" in (tmp_path / "why" / "report.html").read_text()
    for words, fault in (
        ((), "nothing to explain"),
        (("--reported", "nothing"), "neither a number nor a file"),
        (("--reported", "ERR@20=0.3"), "the conventions of 'ERR@20' are not known"),
        (("--reported", "AP=0.3", "--reported", "AP=0.4"), "two scores of AP"),
        (("--reported", "AP=140"), "140 is not a score"),
    ):
        assert ended(*words) == 2
        assert fault in capsys.readouterr().err


def test_what_has_no_effect_is_no_candidate(tmp_path: Path) -> None:
    (tmp_path / "a.qrels").write_text("1 0 a 1\n2 0 b 1\n2 0 c 0\n")
    (tmp_path / "a.run").write_text("1 Q0 a 1 3 x\n1 Q0 b 2 2 x\n2 Q0 c 1 3 x\n2 Q0 b 2 2 x\n")
    found = explain(
        str(tmp_path / "a.qrels"), str(tmp_path / "a.run"), ExplainOptions(reported=("0.9",), measure="nDCG@10")
    )
    useless = set(found.frames["without_effect"]["choice"])
    assert {"gain.exponential", "ties.input", "ties.ascending", "topics.in-run"} <= useless
    with pytest.raises(InputError):
        explain(str(tmp_path / "none.qrels"), str(tmp_path / "a.run"), ExplainOptions(reported=("0.9",)))
    with pytest.raises(OptionError, match="not a score"):
        reported_score("150.0", "AP", 1)


def test_a_score_of_zero_names_no_single_fault(tmp_path: Path) -> None:
    qrels, run = files(tmp_path)
    found = explain(qrels, run, ExplainOptions(reported=("nDCG@10=0.0000", "AP=0.0000")))
    assert first(found)[0] in ("AMBIGUOUS", "NOT EXPLAINED")


def test_a_longer_run_is_named_where_only_deep_measures_are_higher(tmp_path: Path) -> None:
    qrels, run = files(tmp_path)
    rows = Path(run).read_text().splitlines()
    short = [row for row in rows if int(row.split()[3]) <= 15]
    (tmp_path / "own").mkdir()
    lone = tmp_path / "own" / "short.run"
    lone.write_text("\n".join(short) + "\n")
    full = truerank.sources.read_run_frame(run)
    judged = truerank.sources.read_qrels_frame(qrels)
    deep = ConventionScorer(judged, full).scores(scored_measure("AP")).score
    own = ConventionScorer(judged, truerank.sources.read_run_frame(lone))
    assert own.scores(scored_measure("AP")).score < deep
    reported = (f"AP={deep:.5f}", score(tmp_path, "P@5", digits=5))
    named = explain(qrels, str(lone), ExplainOptions(reported=reported)).verdict
    assert named.word == "NOT EXPLAINED" and "more results per topic" in named.settles
    lower = explain(qrels, str(lone), ExplainOptions(reported=("AP=0.00513", reported[1]))).verdict
    assert lower.word == "NOT EXPLAINED" and "more results per topic" not in lower.settles
