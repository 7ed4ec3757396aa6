"""Simulated judging: sanity cases, the same figures by another way, resuming, bad input."""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import scipy.stats

import pool_collection
from dying_task import Block, Dying
from places import ROOT
from shortcuts import undrawn
from truerank.audits import pool as reusability
from truerank.audits.pool import Features, SimulationOptions, depth_pool, load_rule, simulate, verdict_of
from truerank.audits.pool.inputs import UNLIKE_SYSTEMS, unlike_systems
from truerank.audits.pool.page import simulation_tables
from truerank.audits.pool.standings import LEAVE_OUT_UNIQUES, RANDOM
from truerank.audits.pool.unlike import UNLIKE_COMPLETE, UNLIKE_OWN, UNLIKE_PASSED
from truerank.core.figures import to_svg
from truerank.core.figures.heat_maps import HeatMap, heat_maps
from truerank.core.result import summary as summary_of
from truerank.core.tables import escape_html
from truerank.errors import InputError
from truerank.measures import evaluate
from truerank.sources import open_documents, read_qrels_frame, read_run_frame, read_topics
from truerank.work.engines import LocalEngine
from truerank.work.progress import Quiet

ORIGINAL = "Original Size"
OPTIONS = SimulationOptions(
    trials=2,
    length=130,
    stopping=("budget:60", "heuristic:cap=120"),
    measures="AP P@10 nDCG@10",
    unlike="latent,lexical,feedback",
)
#: Documents of each run in the pools.
DEPTH = 5


class Counting(LocalEngine):
    """Counts the blocks, and stops like an interrupt after some of them."""

    def __init__(self, stop_after: int | None = None) -> None:
        self.done = 0
        self._stop_after = stop_after

    def run(self, task, blocks):
        for found in super().run(task, blocks):
            if self._stop_after is not None and self.done == self._stop_after:
                raise KeyboardInterrupt
            self.done += 1
            yield found


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> pool_collection.Files:
    return pool_collection.make(tmp_path_factory.mktemp("pool"))


def sources(files: pool_collection.Files, **changes) -> dict[str, object]:
    texts = {name: str(getattr(files, name)) for name in ("qrels", "topics", "docs")}
    return {"run": files.runs, **texts, "metadata": (str(files.metadata),), "depth": DEPTH, **changes}


@pytest.fixture(scope="module")
def whole(files, tmp_path_factory):
    """A simulation, and the folder that it was written to."""
    folder = tmp_path_factory.mktemp("report") / "out"
    with undrawn():
        return simulate(**sources(files), out=folder, options=OPTIONS, engine=LocalEngine()), folder


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_official_means_are_those_of_evaluate(whole, files):
    simulation, folder = whole
    runs = {path.stem: read_run_frame(path) for path in files.runs}
    scores = evaluate(str(folder / "official.qrels"), runs, OPTIONS.measures)
    assert scores.runs == simulation.standing.scorer.ranks.runs
    np.testing.assert_allclose(simulation.standing.official.means, scores.mean.T, rtol=0, atol=1e-12)
    kept = {row.topic_id for row in simulation.judged_topics() if not row.why_not}
    assert set(scores.topics) == kept and len(kept) >= 4


def test_a_left_out_team_by_another_way(whole, files):
    """Pool, trace, prefix and order of one condition, by the public steps and scipy."""
    simulation, folder = whole
    runs = {path.stem: read_run_frame(path) for path in files.runs}
    features = Features.of_documents(open_documents(str(files.docs)))
    grades = {row[:2]: row[2] for row in read_qrels_frame(str(files.qrels)).rows()}
    pool = depth_pool({name: run for name, run in runs.items() if not name.startswith("east")}, DEPTH)
    official = simulation.standing.official
    texts = {topic.topic_id: topic.title for topic in read_topics(str(files.topics)).topics}
    parts = []
    for topic in read_qrels_frame(str(folder / "official.qrels"))["topic_id"].unique(maintain_order=True):
        found = reusability.trace(
            features,
            topic,
            texts[topic],
            pool.filter(pl.col("topic_id") == topic)["doc_id"].to_list(),
            lambda doc_id, topic=topic: grades.get((topic, doc_id), 0),
            length=OPTIONS.length,
            seed=2,
        )
        parts.append(found.qrels(official.sizes[topic]))
    after = evaluate(pl.concat(parts), runs, "AP").mean[:, 0]
    before = official.means[0]
    change = next(one for one in simulation.of_rule(ORIGINAL, "AP") if (one.trial, one.left_out) == (2, "east"))
    assert change.tau == pytest.approx(scipy.stats.kendalltau(before, after).statistic, abs=1e-12)
    places = [scipy.stats.rankdata(-np.round(values, 12), method="min") for values in (before, after)]
    lost = places[1] - places[0]
    assert change.drop == max(0, lost.max())
    own = [at for at, name in enumerate(runs) if name.startswith("east")]
    assert (change.own, change.own_gain) == (lost[own].max(), max(0, -lost[own].min()))
    assert change.positions.tolist() == places[1].tolist()
    swapped = [
        max(abs(before[a] - before[b]), abs(after[a] - after[b]))
        for a, b in itertools.combinations(range(len(runs)), 2)
        if (before[a] - before[b]) * (after[a] - after[b]) < -1e-20 and {a, b} & set(own)
    ]
    assert change.largest_swap == pytest.approx(max(swapped, default=0.0), abs=1e-12)


def test_leaving_out_no_one_equals_the_all_teams_column(whole):
    """Without team copy the pools are the same, since its runs are another team's."""
    simulation, _ = whole
    for measure in simulation.standing.scorer.names:
        changes = {(one.trial, one.left_out): one for one in simulation.of_rule(ORIGINAL, measure)}
        for trial in range(1, OPTIONS.trials + 1):
            everyone, nobody = changes[trial, ""], changes[trial, "copy"]
            assert (everyone.tau, everyone.drop) == (nobody.tau, nobody.drop)
            assert everyone.positions.tolist() == nobody.positions.tolist()
    assert next(one for one in simulation.uniques if one.team == "copy").documents == 0
    assert next(one for one in simulation.uniques if one.team == "east").documents > 0


def test_all_judged_gives_tau_1_and_drop_0(files, tmp_path):
    """The whole collection is judged; the official qrels hold all that the assessor knows."""
    topics = [topic.topic_id for topic in read_topics(str(files.topics)).topics]
    grades = {row[:2]: row[2] for row in read_qrels_frame(str(files.qrels)).rows()}
    everything = tmp_path / "everything.qrels"
    everything.write_text(
        "".join(f"{topic} 0 {doc_id} {grades.get((topic, doc_id), 0)}\n" for topic in topics for doc_id in files.ids)
    )
    options = dataclasses.replace(OPTIONS, trials=1, length=1000, stopping=("budget:400",))
    found = simulate(**sources(files, official=str(everything)), options=options, engine=LocalEngine())
    changes = [one for one in found.changes if one.rule in (ORIGINAL, "Budget 400")]
    assert len(changes) == 3 * 1 * (1 + 4 + 1)
    assert all((one.tau, one.drop, one.largest_swap) == (1.0, 0, 0.0) for one in changes)
    assert found.is_complete
    assert {len(one.qrels) for one in found.judgings_of(ORIGINAL)} == {pool_collection.TOPICS}
    verdict = verdict_of(found)
    assert {one.evidence[0].word for one in verdict.measures} == {"HELD"}
    assert all(one.unmoved == 1 for one in verdict.measures)
    assert (
        "each of these 4 teams left out, no new run lost a rank and none won any. The smallest τ is 1.0000."
        in verdict.sentences()[1]
    )
    assert verdict.gain.price is None and verdict.topic_sentence().startswith("No topic's AP changes")


def test_a_random_judge_is_worse_than_the_learner_at_equal_cost(whole):
    simulation, _ = whole
    learner, random = simulation.judgings_of(ORIGINAL), simulation.judgings_of(RANDOM)
    assert [one.judgments for one in learner] == [one.judgments for one in random]
    assert min(one.relevant for one in learner) > 1.15 * max(one.relevant for one in random)
    taus = [min(one.tau for one in simulation.of_rule(rule, "AP") if not one.left_out) for rule in (ORIGINAL, RANDOM)]
    assert taus[0] > taus[1]


def test_leave_out_uniques_by_another_way(whole, files):
    simulation, folder = whole
    runs = {path.stem: read_run_frame(path) for path in files.runs}
    official = read_qrels_frame(str(folder / "official.qrels"))
    with_team = depth_pool({name: run for name, run in runs.items() if name.startswith("south")}, DEPTH)
    others = depth_pool({name: run for name, run in runs.items() if not name.startswith("south")}, DEPTH)
    keys = ["topic_id", "doc_id"]
    alone = with_team.join(others, on=keys, how="anti")
    kept = official.join(alone, on=keys, how="anti")
    dropped = official.join(alone, on=keys, how="semi").filter(pl.col("relevance") > 0)
    reduced = pl.concat([kept, official.join(alone, on=keys, how="semi").filter(pl.col("relevance") < 1)])
    unique = next(one for one in simulation.uniques if one.team == "south")
    assert (unique.documents, unique.relevant) == (len(alone), len(dropped)) and len(dropped) > 0
    order = official["topic_id"].unique(maintain_order=True)
    after = evaluate(reduced, runs, "AP")
    assert set(after.topics) == set(order)
    change = next(one for one in simulation.of_rule(LEAVE_OUT_UNIQUES, "AP") if one.left_out == "south")
    expected = scipy.stats.kendalltau(simulation.standing.official.means[0], after.mean[:, 0]).statistic
    assert change.tau == pytest.approx(expected, abs=1e-12)


def test_an_unlike_system_by_another_way(whole, files, tmp_path):
    """Its place by the official judgments, and by those that hold its documents, from qrels files and scipy."""
    simulation, folder = whole
    runs = {path.stem: read_run_frame(path) for path in files.runs}
    features = Features.of_documents(open_documents(str(files.docs)))
    texts = {topic.topic_id: topic.title for topic in read_topics(str(files.topics)).topics}
    # The latent system, by all singular vectors of the dense matrix and not by an iteration.
    dense = features.matrix.toarray().astype(np.float64)
    space = np.linalg.svd(dense, full_matrices=False)[2][:100]
    placed = dense @ space.T
    rows = []
    for topic, text in texts.items():
        query = features.vector(text).toarray()[0] @ space.T
        norms = np.maximum(np.linalg.norm(placed, axis=1) * np.linalg.norm(query), 1e-12)
        scores = np.round(placed @ query / norms, 6)
        best = [at for at in np.argsort(-scores, kind="stable") if scores[at] > 0]
        rows += [(topic, features.doc_ids[at], float(scores[at])) for at in best]
    latent = pl.DataFrame(rows, {"topic_id": pl.String, "doc_id": pl.String, "score": pl.Float64}, orient="row")
    keys = ["topic_id", "doc_id"]
    first = depth_pool({"latent": latent}, DEPTH)
    system = next(one for one in simulation.unlike if one.name == "latent")
    assert system.first == len(first) == DEPTH * pool_collection.TOPICS
    assert system.pooled == first.join(depth_pool(runs, DEPTH), on=keys, how="semi").height
    assert 0 < system.overlap < 1 and system.ungraded is None and not simulation.has_non_relevant
    official = read_qrels_frame(str(folder / "official.qrels"))
    known = read_qrels_frame(str(files.qrels)).join(official.select("topic_id").unique(), on="topic_id", how="semi")
    new = known.join(official, on=keys, how="anti")
    with_first = pl.concat([official, new.join(first, on=keys, how="semi")])
    every = {**runs, "latent": latent}
    after = evaluate(official, every, "AP").mean[:, 0]
    for rule, judgments in ((UNLIKE_OWN, with_first), (UNLIKE_COMPLETE, pl.concat([official, new]))):
        before = evaluate(judgments, every, "AP").mean[:, 0]
        change = next(one for one in simulation.of_rule(rule, "AP") if (one.trial, one.left_out) == (0, "latent"))
        assert change.tau == pytest.approx(scipy.stats.kendalltau(before, after).statistic, abs=1e-12)
        places = [scipy.stats.rankdata(-np.round(values, 12), method="min") for values in (before, after)]
        assert change.own == (places[1] - places[0])[-1] and change.positions.tolist() == places[1].tolist()
        swapped = [
            max(abs(before[a] - before[-1]), abs(after[a] - after[-1]))
            for a in range(len(runs))
            if (before[a] - before[-1]) * (after[a] - after[-1]) < -1e-20
        ]
        assert change.largest_swap == pytest.approx(max(swapped, default=0.0), abs=1e-12)
    assert {one.trial for one in simulation.of_rule(UNLIKE_OWN, "AP")} == set(range(OPTIONS.trials + 1))
    assert not simulation.of_rule(UNLIKE_PASSED, "AP")


def test_grades_that_are_missing_decide(files, tmp_path):
    """With non-relevant rows the ungraded documents of an unlike system are counted, and passed over for one rank."""
    # Every third relevant document lost its grade.
    rows = read_qrels_frame(str(files.qrels)).rows()
    grades = {row[:2]: row[2] for at, row in enumerate(rows) if at % 3}
    qrels = tmp_path / "few.qrels"
    qrels.write_text(
        "".join(f"{topic} 0 {doc_id} {grade}\n" for (topic, doc_id), grade in grades.items())
        + "".join(
            f"{topic} 0 {doc_id} 0\n" for topic in "123456" for doc_id in files.ids[:9] if (topic, doc_id) not in grades
        )
    )
    options = dataclasses.replace(OPTIONS, trials=1, measures="P@10", stopping=(), unlike="lexical")
    found = simulate(**sources(files, qrels=str(qrels), official=str(qrels)), options=options, engine=LocalEngine())
    graded = {row[:2] for row in read_qrels_frame(str(qrels)).rows()}
    (system,) = found.unlike
    change = next(one for one in found.of_rule(UNLIKE_PASSED, "P@10") if not one.trial)
    assert system.ungraded is not None and 0 < system.ungraded < system.first and found.has_non_relevant
    here = int(found.of_rule(UNLIKE_OWN, "P@10")[0].positions[-1])
    assert change.own_gain == here - int(change.positions[-1]) >= 0
    blind = f"{system.ungraded / system.first:.0%} of lexical's first 5"
    assert blind in verdict_of(found).blind and len(graded) > len(grades)
    # A HELD by all tests becomes UNKNOWN: what nobody judged decides.
    calm = tuple(
        one._replace(own_gain=3) if one.rule == UNLIKE_PASSED else one._replace(tau=1.0, own=min(one.own or 0, 0))
        for one in found.changes
    )
    (measure,) = verdict_of(dataclasses.replace(found, changes=calm)).measures
    assert measure.word == "UNKNOWN" and "what nobody judged decides its rank" in measure.sentence


def test_the_word_is_that_of_the_worst_test(whole):
    simulation, _ = whole

    def word(**changes):
        """The word for AP with changes of a rule replaced, all others calm."""
        calm = [one._replace(tau=1.0, own=min(one.own or 0, 0), largest_swap=0.0) for one in simulation.changes]
        found = [one._replace(**changes.get(one.rule, {})) if one.rule in changes else one for one in calm]
        verdict = verdict_of(dataclasses.replace(simulation, changes=tuple(found)))
        return next(one for one in verdict.measures if one.subject == "AP")

    assert word().word == "HELD" and word().largest_swap == 0
    for rule in (ORIGINAL, LEAVE_OUT_UNIQUES, UNLIKE_OWN, UNLIKE_COMPLETE):
        # Nothing is judged in the place of unique documents: alone they ask for care, and say how bad it was.
        worst = "WITH CARE" if rule == LEAVE_OUT_UNIQUES else "NOT HELD"
        assert word(**{rule: {"tau": 0.93}}).word == "WITH CARE"
        assert word(**{rule: {"tau": 0.89}}).word == worst
        found = word(**{rule: {"own": 2, "largest_swap": 0.25}})
        assert (found.word, found.lost, found.largest_swap) == (worst, 2, 0.25)
        assert "2 ranks of" in found.sentence and "Judge the first 5" in found.settles
    assert word(**{LEAVE_OUT_UNIQUES: {"tau": None}}).word == "UNKNOWN"
    # Nothing contradicts, but no unlike system was tried, or none that is unlike.
    kept = tuple(one for one in simulation.changes if not one.rule.startswith("Unlike"))
    calm = tuple(one._replace(tau=1.0, own=min(one.own or 0, 0)) for one in kept)
    alone = verdict_of(dataclasses.replace(simulation, changes=calm, unlike=()))
    assert {one.word for one in alone.measures} == {"UNKNOWN"}
    assert "No unlike system was tried: a new team may resemble these less" in alone.alike_sentence()
    alike = tuple(system._replace(pooled=system.first) for system in simulation.unlike)
    unique = tuple(one._replace(tau=0.7) if one.rule == LEAVE_OUT_UNIQUES else one for one in calm)
    for systems in ((), alike):
        lost = verdict_of(dataclasses.replace(simulation, changes=unique, unlike=systems))
        assert {one.word for one in lost.measures} == {"NOT HELD"}
    known = verdict_of(dataclasses.replace(simulation, changes=calm, unlike=alike))
    assert {one.word for one in known.measures} == {"UNKNOWN"}


def test_a_verdict_claims_no_more_than_was_tried(whole):
    simulation, folder = whole
    verdict = verdict_of(simulation)
    said = " ".join([*verdict.sentences(), verdict.criteria()])
    assert not re.search(r"\b(never|safe|unsafe|no effect)\b", said, re.IGNORECASE)
    assert "in these 2 trials with these 4 teams and 3 systems unlike them" in verdict.summary()
    assert "Relevant documents that nobody judged are not seen" in verdict.blind
    value = json.loads((folder / "summary.json").read_text())["verdict"]["measures"][0]
    assert {"word", "reason", "evidence", "what_would_change_it"} <= set(value)
    assert [one["test"] for one in value["evidence"]] == [
        "teams left out", "unique documents left out", "unlike systems",
    ]  # fmt: skip
    shared = simulation.overlaps
    assert shared["copy"] == 1 and 0 < shared["east"] < 1


def test_large_collections_get_the_systems_that_take_little_time():
    assert unlike_systems(("auto",), 3_000) == (tuple(UNLIKE_SYSTEMS), "")
    names, note = unlike_systems(("auto",), 8_000_000)
    assert "dense" not in names and "dense" in note and "--unlike dense" in note
    assert unlike_systems(("dense", "latent", "dense"), 8_000_000) == (("dense", "latent"), "")
    assert unlike_systems(("none",), 10) == ((), "")


def test_rules_cost_and_keep_what_the_traces_say(whole):
    simulation, folder = whole
    outcomes = pl.read_parquet(folder / "outcomes.parquet")
    traces = pl.read_parquet(folder / "traces.parquet")
    budget = outcomes.filter((pl.col("rule") == "Budget 60") & (pl.col("trial") == 1))
    first = traces.filter((pl.col("trial") == 1) & (pl.col("judgment") <= 60))
    found = first.group_by("topic_id").agg((pl.col("grade") > 0).sum().alias("found"))
    joined = budget.join(found, on="topic_id")
    assert len(joined) == pool_collection.TOPICS and (joined["judged"] == 60).all()
    assert (joined["relevant"] == joined["found"]).all() and (joined["kept"] == (joined["found"] >= 3)).all()
    for trial, topic in traces.select("trial", "topic_id").unique().rows():
        part = traces.filter((pl.col("trial") == trial) & (pl.col("topic_id") == topic))
        assert part["doc_id"].n_unique() == len(part) == OPTIONS.length
    row = next(row for row in simulation_tables(simulation)["table7"].rows if row[0] == "Budget 60")
    assert row[1] == f"{60 * pool_collection.TOPICS:,}"
    assert simulation_tables(simulation)["table7"].rows[1][0] == ORIGINAL
    assert len(simulation_tables(simulation)["table6"].rows) == OPTIONS.trials


def test_heat_maps_count_every_trial_and_team(whole):
    simulation, folder = whole
    for measure in simulation.standing.scorer.names:
        counts = simulation.position_counts(measure)
        assert (counts.sum(axis=1) == OPTIONS.trials * (1 + len(pool_collection.TEAMS))).all()
        rows = pl.read_parquet(folder / "positions.parquet").filter(pl.col("measure") == measure)
        for number, run in enumerate(simulation.standing.scorer.ranks.runs):
            there = rows.filter(pl.col("run") == run)["position"].value_counts()
            assert {place - 1: count for place, count in there.rows()} == {
                int(at): int(counts[number, at]) for at in np.flatnonzero(counts[number])
            }
    drawn = HeatMap("AP", ("a", "b$"), np.array([[3, 1], [0, 4]]), np.array([1, 2]))
    svgs = [to_svg(heat_maps([drawn]), name="map", description="x") for _ in range(2)]
    assert svgs[0] == svgs[1] and "b$" in svgs[0].replace("\\", "")
    assert svgs[0].count("fill-opacity") >= 1


def test_report_says_what_was_found(whole):
    simulation, folder = whole
    page = (folder / "report.html").read_text()
    summary = json.loads((folder / "summary.json").read_text())
    # Each thing once: the verdicts above, and every other sentence in its section.
    found = verdict_of(simulation)
    assert page.count('<p class="badge">') == len(found.measures)
    said = [*(one.sentence for one in found.measures), *found.sentences()[1 + len(found.measures) :]]
    for sentence in said:
        assert page.count(escape_html(sentence)) == said.count(sentence), sentence
    assert summary["verdict"]["sentences"] == list(verdict_of(simulation).sentences())
    assert {one["measure"] for one in summary["verdict"]["measures"]} == {"AP", "P@10", "nDCG@10"}
    assert page.count("<svg") == 2 + page.count("<svg class") and "http://" not in page.replace("http://www.w3.org", "")
    manifest = json.loads((folder / "manifest.json").read_text())
    assert set(manifest["artifacts"]) == set(contents(folder)) - {"manifest.json"}
    assert (manifest["command"], manifest["seeds"]) == ("pool simulate", {"seed": 0})
    # What `--fail-on` looks at: one verdict for each measure.
    words = [(one.subject, one.word) for one in summary_of(simulation).verdicts]
    assert words == [(one.subject, one.word) for one in verdict_of(simulation).measures]
    assert simulation.verdict_words == ("NOT HELD", "WITH CARE", "UNKNOWN")
    shares = [risk.share for risk in verdict_of(simulation).topics]
    assert sum(shares) == pytest.approx(1) and shares == sorted(shares, reverse=True)
    assert not (folder / ".work").exists()


@pytest.mark.usefixtures("undrawn")
def test_interrupted_and_resumed_equals_uninterrupted(whole, files, tmp_path):
    _, folder = whole
    with pytest.raises(KeyboardInterrupt):
        simulate(**sources(files), out=tmp_path / "out", options=OPTIONS, engine=Counting(stop_after=9))
    rest = Counting()
    simulate(**sources(files), out=tmp_path / "out", options=OPTIONS, engine=rest)
    assert rest.done == pool_collection.TOPICS * (1 + OPTIONS.trials) - 9
    assert contents(tmp_path / "out") == contents(folder)


@pytest.mark.slow
def test_kept_traces_serve_other_rules_and_more_trials(files, tmp_path):
    first, second, third = Counting(), Counting(), Counting()
    notes = []

    def told() -> Quiet:
        progress = Quiet()
        notes.append([])
        progress.note = notes[-1].append
        return progress

    options = dataclasses.replace(OPTIONS, trials=1)
    simulate(**sources(files), options=options, work=tmp_path, engine=first, progress=told())
    others = dataclasses.replace(options, stopping=("track",))
    simulate(**sources(files), options=others, work=tmp_path, engine=second, progress=told())
    more = dataclasses.replace(options, trials=2)
    simulate(**sources(files), options=more, work=tmp_path, engine=third, progress=told())
    assert (first.done, second.done, third.done) == (2 * pool_collection.TOPICS, 0, pool_collection.TOPICS)
    # What it will cost is said where traces are to be made: without team copy or north, the pools are those of all.
    topics = pool_collection.TOPICS
    plans = [f"Plan: {topics} topics × {trials} trials × at most 3 pools" for trials in (1, 2)]
    assert notes[0][0].startswith(plans[0]) and notes[2][0].startswith(plans[1]) and not notes[1]
    assert f"{topics * 4:,} traces of at most 130 judgments," in notes[0][0]
    assert f"{topics * 7:,} traces of at most 130 judgments; {topics * 4} traces are there already," in notes[2][0]
    assert "of processor time here" in notes[0][1] and "ranking 400 documents; measured with 3 pools" in notes[0][1]


@pytest.mark.slow
def test_interrupted_processes_lose_nothing(files, tmp_path):
    """The command with two processes, interrupted in the middle; one process afterwards writes the same bytes."""
    folder, out = tmp_path / "whole", tmp_path / "out"
    simulate(**sources(files), out=folder, options=OPTIONS, engine=LocalEngine())
    words = [sys.executable, "-m", "truerank", "pool", "simulate", "--workers", "2", "--out", str(out)]
    words += [word for path in files.runs for word in ("--run", str(path))]
    words += ["--metadata", str(files.metadata), "--qrels", str(files.qrels), "--topics", str(files.topics)]
    words += ["--docs", str(files.docs), "--trials", "2", "--depth", "5", "--length", "130", "--unlike"]
    words += ["latent, lexical,feedback", "--measures"]
    words += [OPTIONS.measures, *(word for rule in OPTIONS.stopping for word in ("--stopping", rule))]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    with subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 60
        while process.poll() is None and not list(out.rglob("*.arrow")) and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        assert process.wait(60) in (130, 0)
    rest = Counting()
    simulate(**sources(files), out=out, options=OPTIONS, engine=rest)
    assert rest.done < pool_collection.TOPICS * (1 + OPTIONS.trials)
    assert contents(out) == contents(folder)


def test_a_worker_that_is_killed_ends_with_a_message():
    with pytest.raises(InputError, match="a worker was lost: its process ended with code 9"):
        list(LocalEngine(1).run(Dying(), [Block(0)]))


FAULTS = {
    "no relevant document": ({"qrels": "1 0 d001 0\n"}, {}, "no document has a grade of 1 or more"),
    "a topic without text": ({"qrels": "99 0 d001 1\n"}, {}, "topic 99 of the qrels has no title here"),
    "no team": ({"metadata": "run\tteam\nnorth1\tnorth\n"}, {}, "no team for the run north2"),
    "one team": (
        {"metadata": "run\tteam\n" + "".join(f"{team}{n}\tone\n" for team in pool_collection.TEAMS for n in (1, 2))},
        {},
        "all runs are of one team",
    ),
    "topics unknown": ({"qrels": "1 0 d001 1\n"}, {}, "topics that are not known"),
    "another collection": ({"docs": "x1\tsome words here\nx2\tmore words\n"}, {}, "the collection has none of"),
    "a measure that is not a mean": ({}, {"measures": "NumRet"}, "'NumRet' is not simulated"),
    "two rules of one name": (
        {},
        {"stopping": ("budget:60", "budget:60"), "unlike": "none"},
        "two rules are called 'Budget 60'",
    ),
    "a rule that keeps nothing": ({}, {"stopping": ("budget:1",), "unlike": "none"}, "keeps none of the 6 topics"),
    "no such rule": ({}, {"stopping": ("never",), "unlike": "none"}, "no stopping rule 'never'"),
    "no such system": ({}, {"unlike": "dense,odd"}, "no unlike system 'odd'"),
    "no share": ({}, {"share": 0.0}, "share: must be above 0 and at most 1, got 0"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_bad_input_is_refused(name, files, tmp_path):
    texts, changes, message = FAULTS[name]
    given = {}
    for what, text in texts.items():
        path = tmp_path / f"{what}.{'qrels' if what == 'qrels' else 'tsv'}"
        path.write_text(text)
        given[what] = (str(path),) if what == "metadata" else str(path)
    with pytest.raises(InputError) as caught:
        options = dataclasses.replace(OPTIONS, trials=1, length=60, **changes)
        simulate(**sources(files, **given), options=options, engine=LocalEngine())
    assert message in str(caught.value)


def test_a_rule_that_does_not_stop_is_bounded_and_named(files):
    options = dataclasses.replace(OPTIONS, trials=1, length=80, stopping=("budget:5000",), unlike="none")
    found = simulate(**sources(files), options=options, engine=LocalEngine())
    assert any("6 topics were still open at the end of a trace" in note for note in found.notes)
    assert load_rule("budget:5000").name in found.rules
