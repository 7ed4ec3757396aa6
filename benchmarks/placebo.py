"""Do leaked topics or documents move scores more than random ones? The level of the tests, and their power.

    python benchmarks/placebo.py level|power|all [--remove documents] [--simulations 10000] [--resamples 199] [--seed 1]
        [--workers 1] [--only vaswani]

Runs: eight of `vaswani_runs.py` (93 topics), and core17's two runs of the leakage paper (50 topics); nDCG@10. In each
simulation a fifth of the topics counts as leaked and is removed, as `leakage effect` does.

level: nothing leaked. "any topics": all are equally likely. "easy topics": those of the easier half are drawn with
twice the weight, as popular topics might be; their removal moves scores although nothing leaked. Printed: how often
each verdict comes out, without and with matching by difficulty, with a Clopper–Pearson interval for the first.
power: the scores of one run on the leaked topics are higher by an effect (at most 1). Printed: how often that is
found, and how often the verdicts are "cannot tell" and "no more than chance".

With --remove documents a fifth of the documents leaks. level: "any documents"; "of some topics": three fifths of the
documents that are relevant to, or retrieved near the top for, each of a third of the topics; "well-ranked documents":
those that the runs rank higher than most are drawn with twice the weight. power: in one run the leaked relevant
documents move up by a share of their ranks; at 1 they stand at the top.
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

import shared_data
from shared_data import SHARED, require_shared
from truerank.measures import evaluate
from truerank.measures.document_placebo import RankedDocuments, document_placebos
from truerank.measures.intervals import proportion
from truerank.measures.placebo import difficulty_classes, placebo_removal
from truerank.measures.scoring import run_frame
from truerank.options import Resampling
from vaswani_runs import write

Floats = NDArray[np.float64]

VASWANI = ("bm25-0.9-0.4", "bm25-2.0-0.9", "ql-50", "ql-2000", "ql-500-re", "lsa-50", "mix-50", "prf-10-20")
CORE17 = ("nyt-common-core-2017-bm25-anserini", "nyt-ac-common-core-2017")
MEASURE = "nDCG@10"
EFFECTS = (0.05, 0.1, 0.2, 0.4)
#: The shares of their ranks by which leaked documents move up.
RISES = (0.25, 0.5, 1.0)
#: Ranks of a run that are kept for the removal of documents; the measure looks at ten.
DEPTH = 30
WORDS = ("moved more than chance", "cannot tell", "no more than chance")


class Data(NamedTuple):
    """Scores of runs by topic, their documents, the run that profits from planted leaks, and one that does not."""

    name: str
    values: dict[str, Floats]
    ranked: RankedDocuments
    profiting: str
    other: str


class Setting(NamedTuple):
    """One row: how topics or documents are drawn, what random ones are matched by, and the planted effect."""

    leaked: str
    matched_by: str
    effect: float = 0.0


class Task(NamedTuple):
    """Simulations of one setting."""

    data: Data
    setting: Setting
    simulations: int
    resamples: int
    seed: int


def all_data() -> Iterator[Data]:
    """The scores of the real runs."""
    with tempfile.TemporaryDirectory() as folder:
        runs = write(Path(folder), names=VASWANI, depth=100)
        yield data_of("vaswani", str(Path(folder) / "vaswani.qrels"), [str(run) for run in runs])
    runs = [str(SHARED / f"spire22/runs/{run}.run.gz") for run in CORE17]
    yield data_of("core17", str(SHARED / "qrels/core17.qrels.gz"), runs)


def data_of(name: str, qrels: str, runs: list[str]) -> Data:
    """Scores of runs; the first one profits, the last one does not."""
    scores = evaluate(qrels, runs, MEASURE)
    values = {run: scores.of(run, MEASURE) for run in scores.runs}
    shallow = {name: run_frame(path).filter(_rank() <= DEPTH) for name, path in zip(scores.runs, runs, strict=True)}
    return Data(name, values, RankedDocuments.of(qrels, shallow), scores.runs[0], scores.runs[-1])


def _rank() -> pl.Expr:
    return pl.col("score").rank("ordinal", descending=True).over("topic_id")


def leaked_topics(data: Data, which: str, rng: np.random.Generator) -> NDArray[np.bool_]:
    """A fifth of the topics."""
    hard = np.mean(list(data.values.values()), axis=0)
    weights = np.ones(len(hard))
    if which == "easy topics":
        weights[hard > np.median(hard)] = 2.0
    found = np.zeros(len(hard), np.bool_)
    found[rng.choice(len(hard), len(hard) // 5, replace=False, p=weights / weights.sum())] = True
    return found


def simulate(task: Task) -> list[int]:
    """How often each verdict comes out."""
    data, setting, simulations, resamples, seed = task
    rng = np.random.default_rng(seed)
    counts = dict.fromkeys(WORDS, 0)
    for number in range(simulations):
        leaked = leaked_topics(data, setting.leaked, rng)
        values = dict(data.values)
        if setting.effect:
            raised = np.minimum(1.0, values[data.profiting] + setting.effect)
            values[data.profiting] = np.where(leaked, raised, values[data.profiting])
        by = {"all runs": list(values), "another run": [data.other]}.get(setting.matched_by)
        strata = difficulty_classes({run: values[run] for run in by}) if by else None
        counts[placebo_removal(values, leaked, strata=strata, draws=resamples, seed=seed + number).word] += 1
    return list(counts.values())


@cache
def topic_documents(ranked: RankedDocuments) -> list[NDArray[np.int64]]:
    """By topic, the documents that are relevant to it, or near the top of a run."""
    own = [set[int]() for _ in range(ranked.topics)]
    for topic, document, grade in zip(*(column.tolist() for column in ranked.judgments), strict=True):
        if grade > 0:
            own[topic].add(document)
    for rows in ranked.runs.values():
        for topic, (first, length) in enumerate(zip(rows.first, rows.length, strict=True)):
            own[topic].update(rows.document[first : first + min(length, 20)].tolist())
    return [np.array(sorted(one)) for one in own]


@cache
def well_ranked(ranked: RankedDocuments) -> NDArray[np.bool_]:
    """Documents that the runs rank higher than most of those that they hold."""
    highest = np.zeros(len(ranked.documents))
    for rows in ranked.runs.values():
        np.maximum.at(highest, rows.document, 1 / (rows.rank + 1))
    return highest > np.median(highest[highest > 0])


def leaked_documents(data: Data, which: str, rng: np.random.Generator) -> NDArray[np.bool_]:
    """A fifth of the documents."""
    count = len(data.ranked.documents)
    found = np.zeros(count, np.bool_)
    if which == "of some topics":
        for topic in rng.choice(data.ranked.topics, data.ranked.topics // 3, replace=False):
            own = topic_documents(data.ranked)[topic]
            found[own[rng.random(len(own)) < 0.6]] = True
        return found
    weights = np.ones(count)
    if which == "well-ranked documents":
        weights[well_ranked(data.ranked)] = 2.0
    found[rng.choice(count, count // 5, replace=False, p=weights / weights.sum())] = True
    return found


def raised(data: Data, leaked: NDArray[np.bool_], share: float) -> RankedDocuments:
    """The runs after the leaked relevant documents of the profiting one moved up by a share of their ranks."""
    key = data.profiting, data.ranked.scoring.ties
    rows = data.ranked.runs[key]
    rises = leaked[rows.document] & rows.judged & (rows.grade > 0)
    places = np.where(rises, np.floor(rows.rank * (1 - share)) - 0.5, rows.rank)
    order = np.lexsort((places, np.repeat(np.arange(len(rows.length)), rows.length)))
    moved = rows._replace(document=rows.document[order], grade=rows.grade[order], judged=rows.judged[order])
    return replace(data.ranked, runs={**data.ranked.runs, key: moved})


def simulate_documents(task: Task) -> list[int]:
    """How often each verdict comes out where documents are removed."""
    data, setting, simulations, resamples, seed = task
    rng = np.random.default_rng(seed)
    counts = dict.fromkeys(WORDS, 0)
    matched_by = {"all runs": "difficulty", "another run": data.other}.get(setting.matched_by)
    for number in range(simulations):
        leaked = leaked_documents(data, setting.leaked, rng)
        ranked = raised(data, leaked, setting.effect) if setting.effect else data.ranked
        gone = ranked.documents.filter(pl.Series(leaked)).to_list()
        drawing = Resampling(resamples, seed=seed + number)
        (found,) = document_placebos(ranked, gone, MEASURE, matched_by=matched_by, resampling=drawing)
        counts[found.word] += 1
    return list(counts.values())


def settings_of(what: str, remove: str) -> Iterator[Setting]:
    """The rows of a table."""
    if remove == "documents":
        kinds = ("any documents", "of some topics", "well-ranked documents")
        matched = ("nothing", "all runs") if what == "level" else ("nothing", "all runs", "another run")
        for one, matched_by in itertools.product(kinds if what == "level" else kinds[:1], matched):
            for effect in (0.0,) if what == "level" else RISES:
                yield Setting(one, matched_by, effect)
    elif what == "level":
        for topics, matched_by in itertools.product(("any topics", "easy topics"), ("nothing", "all runs")):
            yield Setting(topics, matched_by)
    else:
        for matched_by, effect in itertools.product(("nothing", "all runs", "another run"), EFFECTS):
            yield Setting("any topics", matched_by, effect)


def show(what: str, tasks: Sequence[Task], counts: Sequence[Sequence[int]]) -> None:
    """Prints a table."""
    rows = []
    for task, found in zip(tasks, counts, strict=True):
        called = proportion(found[0], task.simulations, method="exact")
        shares = [f"{100 * one / task.simulations:.2f}%" for one in found]
        first = f"{shares[0]} ({100 * called.low:.2f} to {100 * called.high:.2f})"
        effect = [f"{task.setting.effect:g}"] if what == "power" else []
        rows.append((task.data.name, task.setting.leaked, task.setting.matched_by, *effect, first, *shares[1:]))
    header = ["data", "leaked", "matched by", *(["effect"] if what == "power" else []), *WORDS]
    print(f"{what}: {tasks[0].simulations:,d} simulations a row, {tasks[0].resamples:,d} random removals each\n")
    print(shared_data.table(header, rows), flush=True)


def main() -> None:
    """Prints level and power."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=("level", "power", "all"))
    parser.add_argument("--remove", choices=("topics", "documents"), default="topics")
    parser.add_argument("--only", choices=("vaswani", "core17"))
    parser.add_argument("--leaked", help="the rows of this kind alone, such as 'of some topics'")
    parser.add_argument("--simulations", type=int, default=10_000)
    parser.add_argument("--resamples", type=int, default=199)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=1)
    given = parser.parse_args()
    require_shared()
    data = [one for one in all_data() if given.only in (None, one.name)]
    for one in data:
        means = ", ".join(f"{run} {values.mean():.4f}" for run, values in one.values.items())
        print(f"{one.name}: {MEASURE} of {means}; planted effects: {one.profiting}; matched by: {one.other}")
    for what in ("level", "power") if given.what == "all" else (given.what,):
        tasks = [
            Task(one, setting, given.simulations, given.resamples, given.seed)
            for one in data
            for setting in settings_of(what, given.remove)
            if given.leaked in (None, setting.leaked)
        ]
        started = time.perf_counter()
        # Not by fork: polars has threads.
        with ProcessPoolExecutor(given.workers, get_context("spawn")) as pool:
            simulated = simulate_documents if given.remove == "documents" else simulate
            counts = list(pool.map(simulated, tasks))
        print()
        show(what, tasks, counts)
        print(f"\n{time.perf_counter() - started:.0f} s with {given.workers} processes")


if __name__ == "__main__":
    main()
