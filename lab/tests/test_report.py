"""The report on an experiment: every number against a naive computation, unfinished grids, the three papers' tables."""

from __future__ import annotations

import itertools
import json
import math
import shutil
import statistics
from dataclasses import replace
from pathlib import Path

import ir_measures
import numpy as np
import polars as pl
import pytest
import scipy.stats

import small_grid
from truerank.core.tables import Table
from truerank.errors import InputError
from truerank.measures import Significance
from truerank_lab.cli import main
from truerank_lab.grid.design import BenchmarkDesign, ModelDesign, ReportDesign, SetDesign
from truerank_lab.grid.results import GridResults
from truerank_lab.reporting.board import BoardRow
from truerank_lab.reporting.report import ExperimentReport, pictures, report, tables

FEW = Significance(resamples=400)
MODELS = ("knrm", "pacrr", "duet")
CONDITIONS = ("none", "leak", "test")
SIZES = (500, 1000, 2000)


def dict_of(found: ExperimentReport) -> dict[str, Table]:
    return dict(tables(found))


@pytest.fixture(scope="module")
def grid(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("grid")
    small_grid.leakage(out)
    return out


@pytest.fixture(scope="module")
def leakage(grid) -> ExperimentReport:
    return report(grid, testing=FEW)


@pytest.fixture(scope="module")
def naive(grid) -> dict[tuple[str, str, int, int], dict[str, dict[str, float]]]:
    """By condition, model, size and seed of north: the values by measure and topic, scored by ir_measures."""
    results = GridResults(grid)
    qrels = {}
    for topic, doc, grade in results.qrels("north").select("topic_id", "doc_id", "relevance").rows():
        qrels.setdefault(topic, {})[doc] = grade
    found = {}
    for condition, model, size, seed in itertools.product(CONDITIONS, MODELS, SIZES, range(3)):
        frame = results.scores(f"north-{condition}-{size}-{model}-{seed}").filter("candidate")
        ranked: dict[str, list[str]] = {}
        rows = frame.select("topic_id", "doc_id", "score").rows()
        for topic, doc, _ in sorted(rows, key=lambda row: (row[0], -row[2], row[1])):
            ranked.setdefault(topic, []).append(doc)
        run = {topic: {doc: -float(rank) for rank, doc in enumerate(docs)} for topic, docs in ranked.items()}
        values: dict[str, dict[str, float]] = {"MFR": {}}
        for one in ir_measures.iter_calc([ir_measures.nDCG @ 10, ir_measures.P @ 1], qrels, run):
            values.setdefault(str(one.measure), {})[one.query_id] = one.value
        for topic, docs in ranked.items():
            ranks = [rank for rank, doc in enumerate(docs, start=1) if qrels[topic].get(doc, 0) > 0]
            values["MFR"][topic] = float(min(ranks, default=101))
        found[condition, model, size, seed] = values
    return found


def tuned(naive, folds, condition: str, model: str, measure: str) -> dict[str, float]:
    """By topic, the mean over seeds at the size that is best on the other folds."""
    by_size = {
        size: {
            topic: statistics.fmean(naive[condition, model, size, seed][measure][topic] for seed in range(3))
            for fold in folds
            for topic in fold
        }
        for size in SIZES
    }
    sign = -1 if measure == "MFR" else 1
    found = {}
    for fold in folds:
        others = [topic for other in folds if other != fold for topic in other]
        means = {size: round(sign * statistics.fmean(by_size[size][t] for t in others), 12) for size in SIZES}
        best = max(SIZES, key=lambda size: (means[size], -size))
        found.update({topic: by_size[best][topic] for topic in fold})
    return found


def test_every_cell_of_the_tables_3_to_5_agrees_with_a_naive_computation(grid, leakage, naive) -> None:
    folds = GridResults(grid).folds("north")
    one = leakage.effects[0]
    assert [len(fold) for fold in folds] == [4] * 5 and one.board.collection == "north"
    for measure in small_grid.MEASURES:
        p = {}
        for model in MODELS:
            values = {condition: tuned(naive, folds, condition, model, measure) for condition in CONDITIONS}
            for condition in CONDITIONS:
                found = one.estimates[BoardRow("", model), condition, measure]
                assert found.mean.mean == pytest.approx(statistics.fmean(values[condition].values()))
                assert found.over_seeds.n == 3 and found.over_seeds.mean == pytest.approx(found.mean.mean)
                means = [
                    statistics.fmean(naive[condition, model, size, seed][measure].values())
                    for size in SIZES
                    for seed in range(3)
                ]
                assert found.runs == pytest.approx((min(means), max(means)))
                if condition != "none":
                    pairs = [(values[condition][t], values["none"][t]) for t in sorted(values["none"])]
                    first, second = np.array(pairs).T
                    assert found.difference.difference == pytest.approx((first - second).mean())
                    if len(set(np.round(first - second, 12))) > 1:
                        p[model, condition] = scipy.stats.ttest_rel(first, second).pvalue
                        assert found.difference.p == pytest.approx(p[model, condition])
        for (model, condition), value in p.items():
            found = one.estimates[BoardRow("", model), condition, measure].difference
            # Six comparisons by each measure: three models, two training sets.
            assert found.p_corrected == pytest.approx(min(1.0, 6 * value))
            assert ("†" in one.cell((BoardRow("", model), condition, measure))) == (6 * value < 0.05)


def test_the_printed_table_marks_the_best_and_the_overtakings(leakage) -> None:
    one = leakage.effects[0]
    table = dict_of(leakage)["effectiveness-north"]
    assert (
        table == next(iter(dict_of(leakage).values()))
        and [column.above for column in table.columns[1:4]] == [("nDCG@10",)] * 3
    )
    for place, row in enumerate(table.rows):
        for number, measure in enumerate(small_grid.MEASURES):
            means = [one.estimates[BoardRow("", row[0]), c, measure].mean.mean for c in CONDITIONS]
            best = (min if measure == "MFR" else max)(means)
            for offset, mean in enumerate(means):
                assert ((place, 1 + 3 * number + offset) in table.strong) == (mean == best)
                cell = row[1 + 3 * number + offset]
                base = {m: one.estimates[BoardRow("", m), "none", measure].mean.mean for m in MODELS}
                sign = -1 if measure == "MFR" else 1
                own = base[row[0]]
                passed = [m for m, v in base.items() if sign * (own - v) < -1e-9 and sign * (mean - v) > 1e-9]
                assert ("‡" in cell) == bool(passed), (cell, passed)
    assert "0.7606†‡" in table.latex() and r"\textbf{0.7606†" in table.latex()
    assert "<strong><bdi>0.7606†" in table.html() and "**0.7606†" in table.markdown() and "*0.7606†" in table.text()


def naive_ranks(results: GridResults, condition: str, model: str, seed: int) -> dict[tuple[str, str], tuple]:
    rows = results.scores(f"north-{condition}-1000-{model}-{seed}").rows()
    candidates: dict[str, list[tuple[float, str]]] = {}
    for _, topic, doc, score, candidate in rows:
        if candidate:
            candidates.setdefault(topic, []).append((-score, doc))
    return {(t, d): (1 + sum(c < (-s, d) for c in candidates[t] if c[1] != d), s) for _, t, d, s, _ in rows}


def test_tables_6_to_8_agree_with_a_naive_computation(grid, leakage) -> None:
    results = GridResults(grid)
    for condition, topics in (("leak", 10), ("test", 20)):
        for model in MODELS:
            place = ("north", condition, BoardRow("", model))
            (found,) = (o for o in leakage.memorised if (o.collection, o.condition, o.row) == place)
            sides = [[naive_ranks(results, side, model, seed) for seed in range(3)] for side in (condition, "none")]
            by_topic = []
            for topic in (f"t{number:02d}" for number in range(topics)):
                means = []
                for side in sides:
                    parts = [[s[topic, d] for s in side for d in docs] for docs in (("d03", "d11"), ("d05", "d12"))]
                    ranks = [statistics.fmean(rank for rank, _ in part) for part in parts]
                    means.append((*ranks, statistics.fmean(score for _, score in parts[0])))
                by_topic.append([value for mean in means for value in mean])
            values = np.array(by_topic)
            assert (found.topics, found.size, found.found.seeds) == (topics, 1000, (0, 1, 2))
            assert found.rank.with_leak.mean == pytest.approx(values[:, 0].mean())
            assert found.rank.with_leak.sd == pytest.approx(values[:, 0].std(ddof=1))
            assert found.rank.without.mean == pytest.approx(values[:, 3].mean())
            assert found.score.difference.mean == pytest.approx((values[:, 2] - values[:, 5]).mean())
            rise, fall = values[:, 3] - values[:, 0], values[:, 1] - values[:, 4]
            assert (found.gain.mean, found.loss.mean) == pytest.approx((rise.mean(), fall.mean()))
            assert found.offset.difference.mean == pytest.approx((rise + fall).mean())
            assert found.offset.difference.sd == pytest.approx((rise + fall).std(ddof=1))
            assert found.offset.difference.low <= found.offset.difference.mean <= found.offset.difference.high
    assert "at 1,000 training instances" in dict_of(leakage)["memorised-offsets"].title


def test_a_pilot_compares_each_model_with_itself_on_a_control(grid, naive) -> None:
    results = GridResults(grid)
    kinds = pl.when(pl.col("kind") == "leak").then(pl.lit("other")).otherwise("kind").alias("kind")
    results.__dict__["cells"] = results.cells.with_columns(kinds)
    results.__dict__["design"] = replace(results.design, report=ReportDesign("pilot"))
    found = report(results, testing=FEW)
    table, folds = dict_of(found)["controls"], results.folds("north")
    rows = {row[2].rstrip("†"): row for row in table.rows if row[:2] == ("north", "nDCG@10")}
    beating = 0
    for model in MODELS:
        with_labels, control = (tuned(naive, folds, name, model, "nDCG@10") for name in ("none", "leak"))
        topics = sorted(with_labels)
        above = np.array([with_labels[topic] - control[topic] for topic in topics])
        p = min(1.0, 3 * scipy.stats.ttest_1samp(above, 0).pvalue)
        ends = scipy.stats.t.interval(0.95, len(topics) - 1, above.mean(), scipy.stats.sem(above))
        assert rows[model][3:5] == ("leak", 20)
        assert rows[model][5:] == pytest.approx(
            (statistics.fmean(with_labels.values()), statistics.fmean(control.values()), above.mean(), *ends, p)
        )
        assert rows[model][2].endswith("†") == (p < 0.05)
        beating += p < 0.05 and above.mean() > 0
    north = next(one for one in found.statements if one.subject == "north, leak")
    assert north.word == f"{beating} of 3 beat it" and north.level == ("good" if beating == 3 else "unknown")
    assert [one.subject for one in found.statements] == ["north, leak", "south, leak"]


def test_what_is_said_follows_from_the_tests_and_claims_no_more(leakage) -> None:
    said = {one.subject: one for one in leakage.statements}
    assert said["north, test"].level == "bad" and "3 of 3 differ from none" in said["north, test"].sentence
    for subject, one in said.items():
        if one.level == "bad" and "memory" not in subject:
            effects = leakage.effects[0 if subject.startswith("north") else 1].estimates
            for model in MODELS:
                over = effects[BoardRow("", model), "test", "nDCG@10"].difference_over_seeds
                assert (f"{model} (3 seeds)" in one.sentence) == (over.low <= 0 <= over.high)
    weak = said["north, leak"]
    assert weak.level == "unknown" and weak.word == "cannot tell" and "[" in weak.sentence
    # What is not shown comes with the size that could have been.
    assert "too small for these topics to show reliably" in weak.sentence
    assert repr(leakage).startswith("north, leak: nDCG@10: no difference is shown")
    for one in leakage.memorised:
        tested = said[f"{one.collection}, {one.condition}: memory"]
        assert (tested.level == "bad") == ("grows, corrected" in tested.sentence)
        if tested.level != "bad":
            place = (one.collection, one.condition)
            same = [each for each in leakage.memorised if (each.collection, each.condition) == place]
            own = [each.offset.difference for each in same]
            # 80% power at 5%: 2.8 standard errors and a little more, as few topics have a heavier tail.
            sizes = [each.sd / math.sqrt(each.n) for each in own]
            limits = [float(part) for part in tested.sentence.rpartition("Differences below ")[2].split()[:3:2]]
            assert all(
                2.8 * size < limit < 3.6 * size for size, limit in zip((min(sizes), max(sizes)), limits, strict=True)
            )


@pytest.mark.slow
def test_the_command_writes_the_same_files_as_the_function(grid, leakage, tmp_path, capsys) -> None:
    report(grid, out=tmp_path / "one", testing=FEW)
    with pytest.raises(SystemExit) as ended:
        main(["report", str(grid), "--out", str(tmp_path / "two"), "--resamples", "400", "--json"])
    printed = json.loads(capsys.readouterr().out)
    assert ended.value.code == 0 and printed == json.loads((tmp_path / "two/summary.json").read_text())
    assert printed["kind"] == "leakage" and len(printed["memorisation"]) == 12
    files = sorted(path.relative_to(tmp_path / "one") for path in (tmp_path / "one").rglob("*") if path.is_file())
    assert {path.name for path in files} >= {"report.html", "summary.json", "manifest.json", "memorised-ranks.tex"}
    for path in files:
        assert (tmp_path / "one" / path).read_bytes() == (tmp_path / "two" / path).read_bytes(), path
    frame = pl.read_parquet(tmp_path / "one/estimates.parquet")
    first = leakage.effects[0].estimates[BoardRow("", "knrm"), "none", "nDCG@10"]
    assert frame.row(0, named=True)["mean"] == first.mean.mean and len(frame) == 54
    page = (tmp_path / "one/report.html").read_text()
    assert "Experiment: small" in page and page.count("<strong>") >= 9


def test_an_unfinished_grid_is_reported_as_far_as_it_goes(tmp_path) -> None:
    def state(cell) -> str:
        if (cell["set"], cell["model"], cell["size"], cell["seed"]) == ("north-leak", "knrm", 1000, 2):
            return "failed"
        # Nothing of south; of north, duet has no size in common with its baseline, test is not begun.
        done = cell["collections"] == ["north"] and cell["kind"] != "test"
        lacking = cell["model"] == "duet" and (cell["size"] == 2000) == (cell["kind"] == "none")
        return "done" if done and not lacking else "missing"

    small_grid.leakage(tmp_path / "grid", unfinished=state)
    found = report(tmp_path / "grid", testing=FEW)
    words = " ".join(found.left_out)
    assert "38 of 162 cells" not in words and "1 failed" in words and "the loss is not a number" in words
    assert "south is left out" in words and "no training size is finished of every training set for duet" in words
    assert [row[0] for row in next(iter(dict_of(found).values())).rows] == ["knrm", "pacrr"]
    assert found.effects[0].estimates[BoardRow("", "knrm"), "leak", "nDCG@10"].over_seeds.n == 2
    assert {one.row.model: one.found.seeds for one in found.memorised} == {"knrm": (0, 1), "pacrr": (0, 1, 2)}
    assert found.grid.row(by_predicate=(pl.col("set") == "north-leak") & (pl.col("model") == "knrm"))[3:] == (
        9,
        8,
        1,
        0,
    )
    design = tmp_path / "grid" / "design.yaml"
    design.write_text(design.read_text().replace("memorisation_size: 1000", "memorisation_size: 4000"))
    with pytest.raises(InputError, match="no model was trained with 4,000 instances"):
        report(tmp_path / "grid")


def test_a_missing_baseline_is_a_clear_fault(grid, tmp_path) -> None:
    small_grid.leakage(tmp_path / "grid", unfinished=lambda cell: "missing" if cell["kind"] == "none" else "done")
    with pytest.raises(InputError, match="no cell of the baseline 'none' is finished"):
        report(tmp_path / "grid")
    small_grid.leakage(tmp_path / "empty", unfinished=lambda cell: "missing")
    with pytest.raises(InputError, match="no cell is finished"):
        report(tmp_path / "empty")
    with pytest.raises(InputError, match="no results of a grid"):
        report(tmp_path)
    with pytest.raises(InputError, match="welch is not a paired test"):
        report(grid, testing=Significance(significance="welch"))


def test_strategies_are_compared_block_by_block_over_ten_trainings(tmp_path) -> None:
    gains = {"T5_Max": 1.0, "BM25": 0.5, "T5_Min": 0.0}
    sets = [
        SetDesign(f"{block}-{name}", "by-version", ("north", "south"), (200,), "rows.jsonl", label=f"{title} | {name}")
        for block, title in (("v1", "V1≫V2"), ("random", "Random"))
        for name in gains
    ]
    models = [
        ModelDesign(f"monot5-{way}", "monot5:t5-base", aggregate=way, policy="sliding:150:75", seeds=seeds)
        for way, seeds in (("first", (0, 1, 2, 3, 4)), ("max", (5, 6, 7, 8, 9)))
    ]
    plan = small_grid.design(sets, models, report=ReportDesign(kind="transfer", baseline="V1≫V2 | T5_Min"))
    plan = replace(plan, measures=("P@10", "nDCG@10"))

    def strength(collection, one, model, size, seed) -> float:
        return gains[one.label.partition(" | ")[2]] * (1 if one.name.startswith("v1") else 0.2)

    small_grid.write_grid(tmp_path, plan, strength)
    found = report(tmp_path, testing=FEW)
    table = dict_of(found)["strategies"]
    assert [row[:2] for row in table.rows] == [
        ("V1≫V2", "T5_Max"), ("V1≫V2", "BM25"), ("V1≫V2", "T5_Min"),
        ("Random", "T5_Max"), ("Random", "BM25"), ("Random", "T5_Min"), ("first stage", ""),
    ]  # fmt: skip
    assert [(*column.above, column.title) for column in table.columns[2:]] == [
        ("north", "P@10"), ("north", "nDCG@10"), ("south", "P@10"), ("south", "nDCG@10")
    ]  # fmt: skip
    assert table.rules == (3, 6) and "†" in table.rows[0][3] and "†" not in table.rows[2][3]
    one = found.effects[0]
    for block, first in (("V1≫V2", 0), ("Random", 3)):
        row = BoardRow(block, "monot5:t5-base")
        means = [one.estimates[row, name, "nDCG@10"].mean.mean for name in gains]
        assert {place for place, column in table.strong if column == 3 and first <= place < first + 3} == {
            first + means.index(max(means))
        }
    estimate = one.estimates[BoardRow("V1≫V2", "monot5:t5-base"), "T5_Max", "nDCG@10"]
    # Each fold's run is the best of the ten on the other folds.
    results = GridResults(tmp_path)
    judged = results.qrels("north")
    runs = {
        f"v1-T5_Max-200-monot5-{way}-{seed}": None
        for way, seeds in (("first", range(5)), ("max", range(5, 10)))
        for seed in seeds
    }
    values = {cell: one.board.values([cell])[0, one.measures.index("nDCG@10")] for cell in runs}
    topics, total = np.array(one.board.scores.topics), 0.0
    for fold in results.folds("north"):
        inside = np.isin(topics, fold)
        best = max(values, key=lambda cell, inside=inside: round(values[cell][~inside].mean(), 12))
        total += values[best][inside].sum()
    assert estimate.mean.mean == pytest.approx(total / judged["topic_id"].n_unique())
    # Four comparisons by each measure: two blocks, two strategies.
    assert estimate.difference.p_corrected == pytest.approx(min(1, 4 * estimate.difference.p))
    assert found.memorised == () and estimate.chosen.startswith("monot5-")


def test_collections_of_a_benchmark_are_one_sample(tmp_path) -> None:
    """Folded, averaged and tested together; each collection has its own grade; a checkpoint stands beside the rest."""
    sets = [
        SetDesign("d5", "by-depth", ("north", "south", "east"), (200, 400), "rows.jsonl", label="5"),
        SetDesign("ready", "by-depth", ("north", "south", "east"), label="all", checkpoint="monot5:some"),
    ]
    models = [ModelDesign("monot5", "monot5:t5-base", seeds=(0, 1))]
    report_design = ReportDesign(kind="survivorship", baseline="all")
    plan = small_grid.design(sets, models, ("north", "south", "east"), report_design)
    alike = [replace(one, rel=2, measures=("P@5", "nDCG@10")) for one in plan.collections[:2]]
    plan = replace(
        plan,
        collections=(*alike, replace(plan.collections[2], measures=("P@1",))),
        benchmarks=(BenchmarkDesign("both", ("north", "south"), 4),),
    )
    small_grid.write_grid(tmp_path, plan, lambda c, one, m, size, seed: 0.4 if one.name == "ready" else size / 1000)
    found = report(tmp_path, testing=FEW)
    both, east = found.effects
    assert [one.board.collection for one in found.effects] == ["both", "east"]
    assert (both.measures, east.measures) == (("P@5", "nDCG@10"), ("P@1",))
    results, row = GridResults(tmp_path), BoardRow("", "monot5")
    topics = [f"{name}:t{number:02d}" for name in ("north", "south") for number in range(20)]
    assert sorted(both.board.scores.topics) == topics
    divided = results.folds("both")
    assert [len(fold) for fold in divided] == [10] * 4 and sorted(itertools.chain(*divided)) == topics

    values: dict[str, dict[str, float]] = {}
    for cell in (
        "d5-200-monot5-0",
        "d5-200-monot5-1",
        "d5-400-monot5-0",
        "d5-400-monot5-1",
        "ready-0-monot5-0",
    ):
        values[cell] = {}
        for name in ("north", "south"):
            qrels = {}
            for topic, doc, grade in results.qrels(name).select("topic_id", "doc_id", "relevance").rows():
                qrels.setdefault(topic, {})[doc] = grade
            for topic, grades in qrels.items():
                ranked = results.run(cell, name).filter(topic_id=topic).sort("rank")["doc_id"].to_list()[:5]
                values[cell][f"{name}:{topic}"] = sum(grades.get(doc, 0) >= 2 for doc in ranked) / 5
    by_size = {
        size: {t: statistics.fmean(values[f"d5-{size}-monot5-{seed}"][t] for seed in (0, 1)) for t in topics}
        for size in (200, 400)
    }
    tuned_values = {}
    for fold in divided:
        means = {
            size: round(statistics.fmean(by_size[size][t] for t in topics if t not in fold), 12) for size in by_size
        }
        best = max(means, key=lambda size: (means[size], -size))
        tuned_values.update({topic: by_size[best][topic] for topic in fold})
    own, ready = both.estimates[row, "5", "P@5"], both.estimates[row, "all", "P@5"]
    assert own.mean.n == ready.mean.n == 40
    assert own.mean.mean == pytest.approx(statistics.fmean(tuned_values.values()))
    assert ready.mean.mean == pytest.approx(statistics.fmean(values["ready-0-monot5-0"].values()))
    pairs = np.array([(tuned_values[t], values["ready-0-monot5-0"][t]) for t in topics]).T
    assert own.difference.p == pytest.approx(scipy.stats.ttest_rel(*pairs).pvalue)
    # What is not trained has no seeds and no size, and says so.
    assert (own.over_seeds.n, ready.over_seeds.n, own.difference_over_seeds) == (2, 0, None)
    assert (ready.chosen, both.unmatched) == ("all ×4", ())
    assert any("Tested as it is, without training" in note and "monot5 (all)" in note for note in both.notes())
    assert {row[0] for row in dict_of(found)["depths"].rows} == {"both", "east"}
    first = statistics.fmean(
        sum(grade >= 2 for doc, grade in results.qrels(name).filter(topic_id=t).select("doc_id", "relevance").rows()
            if doc in results.first_stage(name).filter(topic_id=t).sort("rank")["doc_id"].to_list()[:5]) / 5
        for name in ("north", "south") for t in results.qrels(name)["topic_id"].unique()
    )  # fmt: skip
    assert both.board.first_stage.mean[0, 0] == pytest.approx(first)


def test_leaks_of_a_benchmark_are_those_of_its_collections(tmp_path, leakage) -> None:
    """What is remembered of two collections together is the mean over all their topics."""
    plan = small_grid.leakage(tmp_path)
    kinds = ("none", "leak", "test")
    sets = [SetDesign(kind, kind, ("north", "south"), SIZES, "rows.jsonl", label=kind) for kind in kinds]
    joint = replace(plan, sets=tuple(sets), benchmarks=(BenchmarkDesign("both", ("north", "south")),))
    shutil.rmtree(tmp_path)
    gains = {"none": 0.0, "leak": 0.05, "test": 1.2}
    order = {"knrm": 0.5, "pacrr": 0.6, "duet": 0.3}
    small_grid.write_grid(
        tmp_path,
        joint,
        lambda c, one, model, size, seed: order[model] + gains[one.kind] * 1000 / size + 0.1 * np.log2(size / 500),
    )
    found = report(tmp_path, testing=FEW)
    together = {(one.condition, one.row): one for one in found.memorised}
    alone = {(one.collection, one.condition, one.row): one for one in leakage.memorised}
    assert len(together) == 6
    for (condition, row), one in together.items():
        parts = [alone[name, condition, row] for name in ("north", "south")]
        assert (one.collection, one.topics, one.found.unscored) == ("both", sum(p.topics for p in parts), 0)
        for name in ("rank", "offset"):
            means = [getattr(part, name).difference.mean for part in parts]
            assert getattr(one, name).difference.mean == pytest.approx(statistics.fmean(means))


def test_survivorship_names_the_base_of_its_losses(tmp_path) -> None:
    gains = {"r = 1": 0.0, "r = 5": 0.9, "all": 1.0}
    sets = [
        SetDesign(f"d{place}", "by-depth", ("north",), (200,), "rows.jsonl", label=name)
        for place, name in enumerate(gains)
    ]
    models = [ModelDesign("monot5", "monot5:t5-base", seeds=(0, 1))]
    plan = small_grid.design(sets, models, ("north",), ReportDesign(kind="survivorship", baseline="all"))
    plan = replace(plan, measures=("nDCG@10", "HMFR"))
    small_grid.write_grid(tmp_path, plan, lambda c, one, m, size, seed: gains[one.label])
    found = report(tmp_path, out=tmp_path / "report", testing=FEW)
    rows = dict_of(found)["depths"].rows
    assert [row[3] for row in rows] == ["r = 1", "r = 5", "all"] * 2
    means = [one.mean.mean for one in (found.effects[0].estimates[BoardRow("", "monot5"), c, "nDCG@10"] for c in gains)]
    assert rows[0][-2] == pytest.approx((means[0] - means[2]) / means[2])
    assert rows[0][-1] == pytest.approx((means[0] - means[2]) / means[0])
    assert rows[2][-2:] == (None, None) and "†" in rows[0][5]
    # A harmonic mean over topics has no paired test, and says so by having no difference.
    assert rows[3][1] == "HMFR" and rows[3][6:10] == (None,) * 4
    assert [one.name for one in pictures(found)] == ["depths"]
    assert (tmp_path / "report/figures/depths.svg").is_file()
