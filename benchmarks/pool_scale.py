"""What active judging costs at a track's size: `python benchmarks/pool_simulation.py scale` runs this.

Documents are generated (`generated_collection.py`), their features written to files. Then two workers, each a process
of its own, map them and take steps side by side: 13 pools of a topic are trained on 200, 1,000 and 2,500 judgments and
ranked together. The ranking that was there before, one model at a time over the whole matrix, is timed in the same
rounds, and has to give the same documents. All times are processor time, medians of the rounds; memory is what a
worker needs at its peak, without and with the pages of the mapped files.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from generated_collection import GeneratedCollection
from shared_data import table
from truerank import pool
from truerank.audits.pool.active import ActiveLearner, LearnerOptions, ModelQuery, rank
from truerank.audits.pool.features import Features, TermCounts, write_features
from truerank.audits.pool.trials import duration, steps_of
from truerank.options import Workers
from truerank.work.progress import ProgressLines

#: The track: topics, pools (all teams, and each of twelve left out), trials, judgments of a trace, documents of a pool.
TOPICS, POOLS, TRIALS, LENGTH, POOLED = 52, 13, 10, 2500, 100
JUDGED = (200, 1000, 2500)
WORKERS = 2
MACHINES = (1, 16, 256)
PASSAGES = 8_841_823
_MEMORY = ("VmHWM", "RssAnon")


class MemoryWatch:
    """The largest memory of each process that is watched, in MB: VmHWM, and RssAnon as it is read now and then."""

    def __init__(self, processes: Sequence[int] | None = None) -> None:
        self._processes = processes
        self.peaks: dict[int, dict[str, float]] = {}
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> MemoryWatch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def largest(self, name: str) -> float:
        """Of all processes."""
        return max((peak[name] for peak in self.peaks.values()), default=0.0)

    def _watch(self) -> None:
        while not self._end.wait(0.02):
            for process in self._processes or _children():
                try:
                    status = Path(f"/proc/{process}/status").read_text()
                except OSError:
                    continue
                here = self.peaks.setdefault(process, dict.fromkeys(_MEMORY, 0.0))
                for name in _MEMORY:
                    if found := re.search(rf"{name}:\s+(\d+)", status):
                        here[name] = max(here[name], int(found[1]) / 1000)


def _children() -> list[int]:
    own = Path("/proc/self/task").glob("*/children")
    return [int(each) for path in own for each in path.read_text().split()]


def stored(folder: Path, documents: int, words: int) -> dict[str, float]:
    """Writes the features where they are not there yet; what that took."""
    place, facts = folder / f"{documents}-{words}", folder / f"{documents}-{words}.json"
    if not facts.is_file():
        process = multiprocessing.get_context("spawn").Process(target=_store, args=(place, documents, words))
        process.start()
        with MemoryWatch([process.pid or 0]) as watch:
            process.join()
        if process.exitcode:
            sys.exit("the features could not be written")
        seconds = json.loads((folder / "seconds.json").read_text())
        files = sum(path.stat().st_size for path in place.iterdir())
        facts.write_text(json.dumps({"seconds": seconds, "bytes": files, "memory": watch.largest("RssAnon")}))
    return dict(json.loads(facts.read_text()))


def _store(place: Path, documents: int, words: int) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    generated = GeneratedCollection(documents, words)
    frequency = generated.frequency()
    begun = time.process_time()
    drawing = 0.0

    def counts() -> Iterator[TermCounts]:
        nonlocal drawing
        blocks = generated.counts()
        while True:
            before = time.process_time()
            block = next(blocks, None)
            drawing += time.process_time() - before
            if block is None:
                return
            yield block

    write_features(place, generated.ids, generated.words, frequency, counts())
    (place.parent / "seconds.json").write_text(json.dumps(time.process_time() - begun - drawing))


class Topic(NamedTuple):
    """A topic of generated documents: its text, and the rows of what is relevant."""

    text: str
    relevant: np.ndarray
    documents: int

    def judged(self, count: int, draw: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Rows and grades as traces end: a tenth of them relevant, and at most nine of ten relevant documents found."""
        found = self.relevant[: min(len(self.relevant) * 9 // 10, count // 10)]
        others = np.setdiff1d(draw.integers(0, self.documents, 2 * count), self.relevant)
        rows = np.concatenate([found, draw.permutation(others)[: count - len(found)]])
        return rows, (np.arange(len(rows)) < len(found)).astype(np.int64)


def steps(place: Path, topic: Topic, rounds: int, results: Any) -> None:
    """A worker: takes steps and reports milliseconds for each pool by judgments: training, ranking together, before."""
    with MemoryWatch([os.getpid()]) as watch:
        features = Features.open(place)
        learners = [[ActiveLearner(features, "t0", topic.text, 0) for _ in range(POOLS)] for _ in JUDGED]
        # The first trainings start cold, and do not count.
        for judged, some in zip(JUDGED, learners, strict=True):
            _step(features, some, topic, judged, 0)
    found: dict[str, list[float]] = {}
    for number in range(1, rounds + 1):
        for judged, some in zip(JUDGED, learners, strict=True):
            training, ranking, before = _step(features, some, topic, judged, number)
            found.setdefault(f"training {judged}", []).append(1000 * training / POOLS)
            found.setdefault(f"ranking {judged}", []).append(1000 * ranking / POOLS)
            found.setdefault(f"before {judged}", []).append(1000 * before)
    medians = {name: median(values) for name, values in found.items()}
    results.put({**medians, "own": watch.largest("RssAnon"), "mapped": watch.largest("VmHWM")})


def _step(
    features: Features, learners: Sequence[ActiveLearner], topic: Topic, judged: int, number: int
) -> tuple[float, float, float]:
    """Seconds of one step of all pools, each with some judgments of its own; the first is not compared."""
    queries = []
    training = 0.0
    for at, learner in enumerate(learners):
        rows, grades = topic.judged(judged + number, np.random.default_rng([judged, at]))
        begun = time.process_time()
        queries.append(learner.query(rows, grades, max(1, judged // 10)))
        training += time.process_time() - begun
    begun = time.process_time()
    together = rank(features, queries)
    ranked = time.process_time()
    if not number:
        return training, ranked - begun, 0.0
    before = _whole(features, queries[0])
    ended = time.process_time()
    if together[0] != before:
        sys.exit("the ranking differs from that of the whole matrix")
    return training, ranked - begun, ended - ranked


def _whole(features: Features, query: ModelQuery) -> list[int]:
    """As it was: all scores in 32 bits by the whole matrix, the best and some more in 64 bits."""
    weights = np.zeros(len(features.terms))
    weights[query.terms] = query.weights
    scores = features.matrix @ weights.astype(np.float32)
    scores[query.taken] = -np.inf
    wide = min(query.n + 64, len(scores))
    border = np.partition(scores, len(scores) - wide)[len(scores) - wide]
    candidates = np.flatnonzero(scores >= border)
    exact = features.matrix[candidates].astype(np.float64) @ weights
    return [int(row) for row in candidates[np.argsort(-exact, kind="stable")[: query.n]]]


def measured(folder: Path, documents: int, words: int, rounds: int) -> dict[str, float]:
    """One size: what writing took, and what two workers measured beside each other."""
    made = stored(folder, documents, words)
    generated = GeneratedCollection(documents, words)
    topic = Topic(generated.query(0), np.flatnonzero(generated.about() == 0), documents)
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    arguments = (folder / f"{documents}-{words}", topic, rounds, results)
    workers = [context.Process(target=steps, args=arguments) for _ in range(WORKERS)]
    for worker in workers:
        worker.start()
    while results.qsize() < WORKERS and all(worker.exitcode in (None, 0) for worker in workers):
        time.sleep(0.2)
    if broken := [worker.exitcode for worker in workers if worker.exitcode]:
        sys.exit(f"{documents:,} documents: a worker ended with exit code {broken[0]}")
    answers = [results.get() for _ in workers]
    for worker in workers:
        worker.join()
    found = {name: median(answer[name] for answer in answers) for name in answers[0]}
    whole = {**found, "writing": made["seconds"], "bytes": made["bytes"], "written with": made["memory"]}
    print(f"{documents:,}: {json.dumps(whole)}", file=sys.stderr, flush=True)
    return whole


def step_seconds(found: dict[str, float]) -> tuple[float, float]:
    """Training and ranking of a step of one pool, means over the judgments that were measured, weighted by steps."""
    share = [steps_of(LearnerOptions(), judged - POOLED) for judged in JUDGED]
    ends = np.diff([0, *share])
    parts = []
    for name in ("training", "ranking"):
        parts.append(float(np.average([found[f"{name} {judged}"] for judged in JUDGED], weights=ends)) / 1000)
    return parts[0], parts[1]


def scale(sizes: Sequence[int], words: int, rounds: int, folder: Path) -> None:
    """Prints what a step costs by the size of the collection, and the plan of the track."""
    every = {size: measured(folder, size, words, rounds) for size in sizes}
    header = (
        "documents", "features, GB of disk", "written in, s", "memory of writing, MB",
        *(f"{judged:,} judged: training + ranking, ms" for judged in JUDGED), "ranking before, ms",
        "memory of a worker, MB", "with mapped pages, MB",
    )  # fmt: skip
    rows = []
    for size, found in every.items():
        pairs = [f"{found[f'training {judged}']:.0f} + {found[f'ranking {judged}']:.0f}" for judged in JUDGED]
        before = median(found[f"before {judged}"] for judged in JUDGED)
        rows.append(
            (
                f"{size:,}", f"{found['bytes'] / 1e9:.2f}", f"{found['writing']:,.0f}", f"{found['written with']:,.0f}",
                *pairs, f"{before:.0f}", f"{found['own']:,.0f}", f"{found['mapped']:,.0f}",
            )
        )  # fmt: skip
    print(f"\nprocessor time of a step for each of {POOLS} pools, median of {rounds} rounds in {WORKERS} workers\n")
    print(table(header, rows))
    print_plan({size: step_seconds(found) for size, found in every.items()})


def print_plan(cost: dict[int, tuple[float, float]]) -> None:
    """The track's simulation on so many machines, by size; beyond what was measured, by the line through the sizes."""
    traces = TOPICS * (1 + TRIALS * POOLS)
    each = steps_of(LearnerOptions(), LENGTH - POOLED)
    print(
        f"\n{TOPICS} topics × {POOLS} pools × {TRIALS} trials, and the official judging: {traces:,} traces of {each} "
        f"steps; machines of {WORKERS} processors\n"
    )
    sizes = sorted(cost)
    if sizes[-1] < PASSAGES and len(sizes) > 1:
        (small, large) = sizes[-2:]
        slope = (cost[large][1] - cost[small][1]) / (large - small)
        cost = cost | {PASSAGES: (cost[large][0], cost[large][1] + slope * (PASSAGES - large))}
    header = ("documents", "training, s", "ranking, s", "whole", *(f"{count} machines" for count in MACHINES))
    rows = []
    for size, (training, ranking) in cost.items():
        parts = [traces * each * part for part in (training, ranking)]
        whole = sum(parts)
        # Blocks of a topic and a trial are not cut.
        blocks = TOPICS * TRIALS
        clocks = [duration(max(whole / (count * WORKERS), whole / blocks)) for count in MACHINES]
        name = f"{size:,}" if size in sizes else f"{size:,} (extrapolated, not measured)"
        rows.append((name, f"{training:.3f}", f"{ranking:.3f}", f"{whole / 3600:,.1f} processor hours", *clocks))
    print(table(header, rows))


def simulated(documents: int, topics: int, trials: int, folder: Path) -> None:
    """A simulation of generated documents from texts to verdict: two teams, hence three pools for each topic."""
    place = folder / f"simulated-{documents}"
    place.mkdir(parents=True, exist_ok=True)
    generated = GeneratedCollection(documents)
    docs = place / "docs.tsv"
    if not docs.is_file():
        temporary = place / "docs.part"
        temporary.write_text("".join(f"{doc_id}\t{text}\n" for doc_id, text in generated.documents()))
        temporary.rename(docs)
    _write_track(place, generated, topics)
    lines = ProgressLines(sys.stderr, every=30)
    begun, clock = _processor_seconds(), time.monotonic()
    try:
        with MemoryWatch() as watch:
            found = pool.simulate(
                sorted(place.glob("*.run")), str(place / "qrels.txt"), str(place / "topics.tsv"), str(docs),
                pooling=pool.Pooling(team_prefix="_"),
                options=pool.SimulationOptions(
                    trials=trials, unlike="none", official_rule="track:bound=0.9", stopping=("budget:1000",)
                ),
                processes=Workers(workers=WORKERS), work=place / "work", progress=lines,
            )  # fmt: skip
    finally:
        lines.finish()
    print(
        f"\n{documents:,} documents, {topics} topics × 3 pools × {trials} trials: "
        f"{_processor_seconds() - begun:,.0f} s of processor time with index and features where they were not there, "
        f"{time.monotonic() - clock:,.0f} s by the clock; memory of a worker {watch.largest('RssAnon'):,.0f} MB, with "
        f"mapped pages {watch.largest('VmHWM'):,.0f} MB.\n"
    )
    print("\n".join(pool.verdict_of(found).sentences()))
    judging = found.judgings_of("Original Size")[0]
    known = sum(len([grade for grade in own if grade]) for own in found.standing.universe.grades)
    print(f"Trial 1: {judging.judgments:,} judgments find {judging.relevant:,} of {known:,} relevant documents.")


def _write_track(place: Path, generated: GeneratedCollection, topics: int) -> None:
    """Topics, what is relevant, and two runs of two teams each: relevance, as loud as the run is good, and noise."""
    draw, subjects = np.random.default_rng(7), generated.about()
    queries, qrels = [], []
    runs: dict[str, list[str]] = {f"{team}_{number}": [] for team in ("east", "west") for number in (1, 2)}
    for topic in range(topics):
        relevant = np.flatnonzero(subjects == topic)
        queries.append(f"t{topic}\t{generated.query(topic)}\n")
        qrels += [f"t{topic} 0 {generated.ids[row]} 1\n" for row in relevant]
        for number, (name, lines) in enumerate(runs.items()):
            rows = np.union1d(relevant, draw.choice(generated.count, 1000, replace=False))
            scores = np.isin(rows, relevant) * (1 + 0.5 * number) + draw.normal(size=len(rows))
            for at, place_ in enumerate(np.argsort(-scores), start=1):
                lines.append(f"t{topic} Q0 {generated.ids[rows[place_]]} {at} {scores[place_]:.6f} {name}\n")
    (place / "topics.tsv").write_text("".join(queries))
    (place / "qrels.txt").write_text("".join(qrels))
    for name, lines in runs.items():
        (place / f"{name}.run").write_text("".join(lines))


def _processor_seconds() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system
