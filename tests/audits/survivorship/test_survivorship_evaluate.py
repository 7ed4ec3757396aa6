"""Scores by depth against a brute-force oracle; tests and trends that find what is there, and only that."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import scipy

from places import DATA
from truerank.audits.survivorship import EvaluateOptions, evaluate
from truerank.audits.survivorship.evaluation import nested_contrast, read_depth_sets, slope_weights
from truerank.cli import main
from truerank.measures import compare_evaluations
from truerank.measures import evaluate as evaluate_runs

AUTHORS = DATA / "survivorship"
LABELS = ("1", "3", "all")
RUNS = ("alpha", "beta", "gamma")


def generated(
    folder: Path, seed: int = 1, count: int = 120
) -> tuple[dict[str, list[tuple[str, int]]], dict[str, dict]]:  # type: ignore[type-arg]
    """Answers with the position at which they were shown, by query; and runs, of which each lacks some queries."""
    draw = random.Random(seed)
    answers: dict[str, list[tuple[str, int]]] = {}
    for number in range(count):
        places = sorted(draw.sample(range(6), draw.choice((1, 1, 1, 2, 3))))
        answers[f"q{number}"] = [(f"d{number}-{place}", place) for place in places]
    (folder / "qrels").mkdir()
    (folder / "first").mkdir()
    for label in LABELS:
        k = 99 if label == "all" else int(label)
        every = [(q, doc, place) for q, docs in answers.items() for doc, place in docs if place < k]
        first = [(q, docs[0][0]) for q, docs in answers.items() if docs[0][1] < k]
        (folder / "qrels" / f"log-{label}.qrels").write_text("".join(f"{q} 0 {doc} 1\n" for q, doc, _ in every))
        (folder / "first" / f"log-{label}.qrels").write_text("".join(f"{q} 0 {doc} 1\n" for q, doc in first))
    runs: dict[str, dict[str, list[str]]] = {}
    for name in RUNS:
        own: dict[str, list[str]] = {}
        for query, docs in answers.items():
            if draw.random() < 0.05:
                continue
            ranking = [f"x{query}-{n}" for n in range(14)] + [doc for doc, _ in docs]
            draw.shuffle(ranking)
            own[query] = ranking
        own["unknown"] = ["x"]
        runs[name] = own
        lines = [
            # Scores tell another order than the ranks, by which the official rules go.
            f"{q} Q0 {doc} {rank} {draw.random():.2f} {name}\n"
            for q, docs in own.items()
            for rank, doc in enumerate(docs, start=1)
        ]
        if name == "gamma":
            # Topics that come back.
            draw.shuffle(lines)
        (folder / f"{name}.run").write_text("".join(lines))
    return answers, runs


def expected(answers: dict, runs: dict, name: str, label: str, variant: str, missing: str) -> dict[str, float]:  # type: ignore[type-arg]
    """RR@10 of every query of a depth, by hand."""
    k = 99 if label == "all" else int(label)
    found = {}
    for query, docs in answers.items():
        kept = {doc for doc, place in (docs[:1] if variant == "first" else docs) if place < k}
        if not kept or (missing == "skip" and query not in runs[name]):
            continue
        ranks = [rank for rank, doc in enumerate(runs[name].get(query, [])[:10], start=1) if doc in kept]
        found[query] = 1 / ranks[0] if ranks else 0.0
    return found


@pytest.mark.parametrize("missing", ["default", "skip"])
def test_against_brute_force(tmp_path: Path, missing: str) -> None:
    answers, runs = generated(tmp_path)
    files = [str(tmp_path / f"{name}.run") for name in RUNS]
    result = evaluate(files, depths=tmp_path, missing=missing)
    assert (result.name, result.labels, result.places) == ("log", LABELS, (1, 3, 4))
    frame = result.frame()
    for variant in ("all", "first"):
        ps = []
        for name in RUNS:
            full = list(expected(answers, runs, name, "all", variant, missing).values())
            for label in LABELS:
                oracle = expected(answers, runs, name, label, variant, missing)
                rows = frame.filter(
                    (pl.col("judgments") == variant) & (pl.col("run") == name) & (pl.col("depth") == label)
                )
                assert dict(zip(rows["topic_id"], rows["value"], strict=True)) == pytest.approx(oracle)
                cell = result.cell(name, label, judgments=variant)
                assert (cell.n, cell.mean) == (len(oracle), pytest.approx(np.mean(list(oracle.values()))))
                if label != "all":
                    test = scipy.stats.ttest_ind(list(oracle.values()), full, equal_var=False)
                    assert cell.p == pytest.approx(test.pvalue)
                    assert cell.difference == pytest.approx(np.mean(list(oracle.values())) - np.mean(full))
                    ps.append((cell, test.pvalue))
        # Bonferroni over the six comparisons of the measure, each set of judgments for itself.
        assert [cell.corrected for cell, _ in ps] == pytest.approx([min(1, 6 * p) for _, p in ps])
        counts = result.variants[variant]
        shown = [sum(docs[0][1] < k for docs in answers.values()) for k in (1, 3, 99)]
        assert list(counts.queries) == shown
        for name in RUNS:
            there = [sum(d[0][1] < k and q in runs[name] for q, d in answers.items()) for k in (1, 3, 99)]
            assert list(counts.present[name]) == there
        both = [sum(d[0][1] < k and all(q in runs[n] for n in RUNS) for q, d in answers.items()) for k in (1, 3, 99)]
        assert list(counts.together) == both
    assert result.unknown == dict.fromkeys(RUNS, 1)
    for (variant, _, label), order in result.orders.items():
        means = [{n: result.cell(n, at, judgments=variant).mean for n in RUNS} for at in (label, "all")]
        swapped = sum(
            (means[0][a] - means[0][b]) * (means[1][a] - means[1][b]) < 0
            for a in RUNS
            for b in RUNS
            if a < b  # type: ignore[operator]
        )
        assert len(order.swaps) == swapped
    # Files named one by one: without the folder of first judgments these are told from the depths.
    named = {label: str(tmp_path / "qrels" / f"log-{label}.qrels") for label in reversed(LABELS)}
    again = evaluate(files, qrels=named, missing=missing)
    assert again.derived
    assert [one[4:] for one in again.cells] == [one[4:] for one in result.cells]
    # Measures without a cutoff look at whole rankings; families and corrections are as they are called.
    other = EvaluateOptions(family="system", correction="holm")
    wide = evaluate(files, tmp_path, measures="RR nDCG@3", options=other)
    assert wide.measures == ("RR", "nDCG@3")
    pair = [wide.cell("beta", label, "RR") for label in ("1", "3")]
    low, high = sorted((one.p for one in pair), key=float)  # type: ignore[arg-type]
    assert sorted(one.corrected for one in pair) == pytest.approx(sorted((min(1, 2 * low), max(min(1, 2 * low), high))))  # type: ignore[operator,type-var]


def test_nested_sets_of_queries() -> None:
    draw = np.random.default_rng(3)
    depths = np.arange(1, 6)
    positions = draw.integers(0, 5, 400)
    base = draw.random(400)
    scores = np.where(depths[:, None] > positions, base, np.nan)
    weights = np.array([1.0, 0, 0, 0, -1.0])
    found = nested_contrast(scores, weights)
    own, rest = base[positions == 0], base[positions > 0]
    assert found.value == pytest.approx(own.mean() - base.mean())
    # The shallow set is a part of the full one: only what the full set adds makes a difference.
    share = len(rest) / 400
    error = share * np.sqrt(own.var() / len(own) + rest.var() / len(rest))
    assert (found.high - found.low) / 2 == pytest.approx(error * scipy.stats.t.ppf(0.975, len(own) - 1), rel=0.01)  # type: ignore[operator]
    means = np.nanmean(scores, axis=1)
    slope = nested_contrast(scores, slope_weights([1, 2, 3, 4, 7]))
    assert slope.value == pytest.approx(np.polyfit([1, 2, 3, 4, 7], means, 1)[0])
    resampled = []
    for _ in range(1500):
        drawn = scores[:, draw.integers(0, 400, 400)]
        resampled.append(np.polyfit([1, 2, 3, 4, 7], np.nanmean(drawn, axis=1), 1)[0])
    assert (slope.high - slope.low) / 2 == pytest.approx(1.96 * np.std(resampled), rel=0.12)  # type: ignore[operator]
    # Rates: near α where there is nothing, near 1 where the effect is five standard errors.
    hits = {0.0: 0, 0.3: 0}
    for shift in hits:
        for _ in range(400):
            places = draw.integers(0, 5, 400)
            values = draw.random(400) + shift * places / 4
            layers = np.where(depths[:, None] > places, values, np.nan)
            hits[shift] += nested_contrast(layers, weights).known
    assert 7 <= hits[0.0] <= 36
    assert hits[0.3] >= 385
    assert nested_contrast(np.full((2, 3), np.nan), [1, -1]).p is None
    assert nested_contrast(np.ones((2, 9)), [1, -1]) == (0.0, 0.0, 0.0, 1.0, None)


def test_command_report_and_repeatable_bytes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    generated(tmp_path)
    runs = [word for name in RUNS for word in ("--run", str(tmp_path / f"{name}.run"))]
    contents = []
    for out in ("a", "b"):
        words = ["survivorship", "evaluate", "--depths", str(tmp_path), *runs, "--out", str(tmp_path / out), "--json"]
        with pytest.raises(SystemExit) as ended:
            main([*words, "--significance", "nested"])
        assert ended.value.code == 0
        printed = json.loads(capsys.readouterr().out)
        files = sorted(path for path in (tmp_path / out).rglob("*") if path.is_file())
        contents.append({path.relative_to(tmp_path / out).as_posix(): path.read_bytes() for path in files})
    assert contents[0] == contents[1]
    assert {"report.html", "scores.parquet", "tables/all.tex", "tables/first.csv", "tables/trend.csv",
            "tables/order.csv", "figures/scores.svg", "manifest.json"} <= set(contents[0])  # fmt: skip
    assert b"<svg" in contents[0]["report.html"]
    assert (len(printed["cells"]), len(printed["trends"]), len(printed["orders"])) == (18, 6, 4)
    one = str(tmp_path / "qrels" / "log-1.qrels")
    (tmp_path / "other.run").write_text("elsewhere Q0 d 1 1 x\n")
    (tmp_path / "none.qrels").write_text("q0 0 d0-0 0\n")
    (tmp_path / "mixed").mkdir()
    for name in ("a-1", "b-1"):
        (tmp_path / "mixed" / f"{name}.qrels").write_text("q 0 d 1\n")
    cases = [
        ([*runs], "judgments by depth are needed"),
        ([*runs, "--qrels", f"1={one}"], "1 annotation depth"),
        ([*runs, "--qrels", f"one={one}", "--qrels", f"all={one}"], "'one' in 'one="),
        ([*runs, "--qrels", f"1={one}", "--qrels", f"01={one}"], "appears twice"),
        ([*runs, "--qrels", f"1={tmp_path / 'none.qrels'}", "--qrels", f"all={one}"], "no relevant judgment"),
        ([*runs, "--depths", str(tmp_path / "mixed")], "there are: a, b"),
        ([*runs, "--depths", one], "no folder"),
        (["--run", str(tmp_path / "other.run"), "--depths", str(tmp_path)], "none of the 120 queries"),
        ([*runs, "--depths", str(tmp_path), "--confidence", "2"], "--confidence: must be above 0 and below 1, got 2"),
        ([*runs, "--depths", str(tmp_path), "--missing", "fail"], "lacks"),
    ]
    for words, fault in cases:
        with pytest.raises(SystemExit) as ended:
            main(["survivorship", "evaluate", *words, "--out", str(tmp_path / "c")])
        assert ended.value.code == 2, words
        assert fault in capsys.readouterr().err, words


@pytest.mark.shared
def test_the_authors_depths(tmp_path: Path) -> None:
    sets = read_depth_sets(AUTHORS / "qrels")
    queries = [frame["topic_id"].n_unique() for frame in sets.every.values()]
    assert queries == [8197, 15543, 22060, 27858, 33062, 38024, 42669, 47146, 51344, 55578]
    assert [len(frame) for frame in sets.first.values()] == queries
    assert (sets.name, sets.derived, sets.strays) == ("dev", True, 0)
    lines = gzip.decompress((AUTHORS / "qrels" / "dev-all.qrels.gz").read_bytes()).decode().splitlines()
    shallow = set(sets.every["1"]["topic_id"])
    run, seen = [], set()
    for line in lines:
        query, _, document, _ = line.split()
        if query not in seen and len(seen) % 1500:
            before = [f"{query} Q0 other 1 2 r\n"] if query in shallow else []
            run += [*before, f"{query} Q0 {document} {len(before) + 1} 1 r\n"]
        seen.add(query)
    (tmp_path / "r.run").write_text("".join(run))
    named = {label: str(AUTHORS / "qrels" / f"dev-{label}.qrels.gz") for label in ("1", "all")}
    result = evaluate([str(tmp_path / "r.run")], qrels=named)
    scores = result.variants["all"]
    assert (scores.queries[-1], scores.together[-1]) == (55578, 55578 - 38)
    assert result.cell("r", "1").significant
    (trend,) = (one for one in result.trends if one.judgments == "all")
    assert trend.change.known
    assert trend.relative_to_full == pytest.approx(trend.change.value / result.cell("r", "all").mean)  # type: ignore[operator]


@pytest.mark.shared
def test_figure_1_for_dl_19() -> None:
    names = {"all": "monot5", "1": "monot5-sim1", "5": "monot5-sim5"}
    runs = {depth: str(AUTHORS / "runs" / f"{name}.dl19.run.gz") for depth, name in names.items()}
    evaluation = evaluate_runs(str(DATA / "qrels" / "dl19-passage.qrels.gz"), runs, "nDCG@10 AP(rel=1) RR(rel=2)")
    means = {
        name: dict(zip(evaluation.measures, row, strict=True)) for name, row in zip(runs, evaluation.mean, strict=True)
    }
    assert round(means["1"]["AP"], 4) == 0.4495
    assert means["1"]["nDCG@10"] < means["5"]["nDCG@10"]
    # The paper: significant at depth 1, not for RR, which the full model even loses.
    pairs = compare_evaluations(evaluation).differences
    assert {frozenset((one.run, one.baseline)) for one in pairs if one.measure == "AP" and one.significant} == {
        frozenset(("1", "5")),
        frozenset(("1", "all")),
    }
    assert not any(one.significant for one in pairs if one.measure == "RR(rel=2)")
    loss = means["all"]["AP"] - means["1"]["AP"]
    assert (round(loss / means["all"]["AP"], 3), round(loss / means["1"]["AP"], 3)) == (0.062, 0.066)
