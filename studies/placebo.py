"""Do leaked topics or documents move scores more than random ones? The level of the tests, and their power.

    python studies/placebo.py level|power|all [--remove topics|documents|both] [--simulations N] [--resamples N]
        [--seed 1] [--workers 1] [--only vaswani] [--leaked "of some topics"]

Runs: eight of `vaswani_runs.py` (93 topics), and core17's two runs of the leakage paper (50 topics); nDCG@10. In each
simulation a fifth of the topics counts as leaked and is removed, as `leakage effect` does; `level` makes 10,000
simulations a row, `power` 500.

level: nothing leaked. "any topics": all are equally likely. "easy topics": those of the easier half are drawn with
twice the weight, as popular topics might be; their removal moves scores although nothing leaked. Printed: how often
each verdict comes out, without and with matching by difficulty, with a Clopper–Pearson interval for the first.
power: the scores of one run on the leaked topics are higher by an effect (at most 1). Printed: how often that is
found, and how often the verdicts are "cannot tell" and "no more than chance".

With --remove documents, documents leak. level: "any documents": a fifth of all. "of some topics": three fifths of the
documents that are relevant to, or among the first 20 of a run for, each of a third of the topics. "of topics, each
with its own rate": the same documents of every topic, at a rate between 0 and 1 that each topic draws, most near 0.
"of some topics, to rank 30": as the second, of the first 30, which lies below what the test matches. "well-ranked
documents": those that the runs rank higher than most are drawn with twice the weight. "mined by another run"
(Vaswani): those that a run that is not among the eight has in its first ten are drawn with twice the weight. power: in
one run the leaked relevant documents, a fifth of any documents or three fifths of those of a third of the topics, move
up by a share of their ranks; at 1 they stand at the top. In `level` scores are computed in one go; the first
simulations of each row are compared with what the library says.
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

import common
from common import SHARED, require_shared
from truerank.measures import evaluate
from truerank.measures.document_placebo import RankedDocuments, document_placebos, share_compared
from truerank.measures.magnitudes import proportion
from truerank.measures.placebo import Placebo, difficulty_classes, placebo_changes, placebo_removal, removal_draws
from truerank.measures.scoring import run_frame
from truerank.options import Resampling
from vaswani_runs import write

Floats = NDArray[np.float64]

VASWANI = ("bm25-0.9-0.4", "bm25-2.0-0.9", "ql-50", "ql-2000", "ql-500-re", "lsa-50", "mix-50", "prf-10-20")
#: A run whose first results leak, and that is not compared.
MINER, MINED = "lsa-300", 10
CORE17 = ("nyt-common-core-2017-bm25-anserini", "nyt-ac-common-core-2017")
MEASURE = "nDCG@10"
EFFECTS = (0.05, 0.1, 0.2, 0.4)
#: The shares of their ranks by which leaked documents move up.
RISES = (0.25, 0.5, 1.0)
#: Ranks of a run that are kept for the removal of documents; the measure looks at ten.
DEPTH = 30
#: Simulations of a part of a row, and how many of these the library repeats.
BLOCK, CHECKED = 2_500, 5
SIMULATIONS = {"level": 10_000, "power": 500}
#: Random removals in each simulation, by what is removed. Any number is exact; more find smaller effects.
RESAMPLES = {("level", "documents"): 19}
WORDS = ("moved more than chance", "cannot tell", "no more than chance")


class Data(NamedTuple):
    """Scores of runs by topic, their documents, the run that profits from planted leaks, one that does not, and the
    documents that a run of nobody's has on top."""

    name: str
    values: dict[str, Floats]
    ranked: RankedDocuments
    profiting: str
    other: str
    mined: NDArray[np.bool_] | None = None


class Setting(NamedTuple):
    """One row: how topics or documents are drawn, what random ones are matched by, and the planted effect."""

    leaked: str
    matched_by: str
    effect: float = 0.0


class Task(NamedTuple):
    """Simulations of one setting, from one number on."""

    data: Data
    setting: Setting
    simulations: int
    resamples: int
    seed: int
    first: int = 0

    def blocks(self) -> list[Task]:
        """The same simulations in parts, each with a generator of its own."""
        starts = range(0, self.simulations, BLOCK)
        return [self._replace(simulations=min(BLOCK, self.simulations - start), first=start) for start in starts]


def all_data() -> Iterator[Data]:
    """The scores of the real runs."""
    with tempfile.TemporaryDirectory() as folder:
        runs = write(Path(folder), names=VASWANI, depth=100)
        made = data_of("vaswani", str(Path(folder) / "vaswani.qrels"), [str(run) for run in runs])
        (miner,) = write(Path(folder), names=(MINER,), depth=MINED)
        mined = made.ranked.documents.is_in(run_frame(str(miner))["doc_id"].unique().implode()).to_numpy()
        yield made._replace(mined=mined)
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
    data, setting, simulations, resamples, seed, first = task
    rng = np.random.default_rng([seed, first])
    counts = dict.fromkeys(WORDS, 0)
    for number in range(first, first + simulations):
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
def topic_documents(ranked: RankedDocuments, depth: int) -> list[NDArray[np.int64]]:
    """By topic, the documents that are relevant to it, or above a rank of a run."""
    own = [set[int]() for _ in range(ranked.topics)]
    for topic, document, grade in zip(*(column.tolist() for column in ranked.judgments), strict=True):
        if grade > 0:
            own[topic].add(document)
    for rows in ranked.runs.values():
        for topic, (first, length) in enumerate(zip(rows.first, rows.length, strict=True)):
            own[topic].update(rows.document[first : first + min(length, depth)].tolist())
    return [np.array(sorted(one)) for one in own]


@cache
def well_ranked(ranked: RankedDocuments) -> NDArray[np.bool_]:
    """Documents that the runs rank higher than most of those that they hold."""
    highest = np.zeros(len(ranked.documents))
    for rows in ranked.runs.values():
        np.maximum.at(highest, rows.document, 1 / (rows.rank + 1))
    return highest > np.median(highest[highest > 0])


def leaked_documents(data: Data, which: str, rng: np.random.Generator) -> NDArray[np.bool_]:
    """The documents that leak, shape (documents,)."""
    count = len(data.ranked.documents)
    found = np.zeros(count, np.bool_)
    if which.startswith("of "):
        own = topic_documents(data.ranked, DEPTH if which.endswith("30") else 20)
        rates = np.zeros(len(own))
        if which.endswith("rate"):
            rates[:] = rng.beta(0.3, 1.0, len(own))
        else:
            rates[rng.choice(len(own), len(own) // 3, replace=False)] = 0.6
        for documents, rate in zip(own, rates, strict=True):
            found[documents[rng.random(len(documents)) < rate]] = True
        return found
    weights = np.ones(count)
    if which == "well-ranked documents":
        weights[well_ranked(data.ranked)] = 2.0
    if which == "mined by another run" and data.mined is not None:
        weights[data.mined] = 2.0
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


class Means:
    """nDCG@10 of all runs after many removals: what `RankedDocuments.without` computes for any measure.

    The rankings of all runs and topics stand side by side: places in rows, rankings in columns. The ideal gain follows
    from how many documents of each grade are left.
    """

    def __init__(self, ranked: RankedDocuments) -> None:
        self.topics = ranked.topics
        runs = [ranked.results(name) for name in ranked.names]
        positive = ranked.judgments.grade > 0
        self.relevant = ranked.judgments.document[positive]
        # Only documents that can count; a place without a document holds one that is always there.
        self.known = np.union1d(self.relevant, np.concatenate([rows.document for rows in runs]))
        self.documents = np.full((DEPTH, len(runs), ranked.topics), len(self.known))
        gains = np.zeros(self.documents.shape, np.int64)
        for column, rows in enumerate(runs):
            topic = np.repeat(np.arange(ranked.topics), rows.length)
            self.documents[rows.rank, column, topic] = np.searchsorted(self.known, rows.document)
            gains[rows.rank, column, topic] = np.maximum(rows.grade, 0)
        self.ranking, self.places = np.nonzero(gains.reshape(DEPTH, -1).T)
        self.gains = gains.reshape(DEPTH, -1)[self.places, self.ranking].astype(np.float64)[:, None]
        self.rankings, self.starts = np.unique(self.ranking, return_index=True)
        self.discounts = np.zeros(DEPTH + 1)
        self.discounts[:10] = 1 / np.log2(np.arange(10) + 2)
        self.sums = np.concatenate([[0.0], np.cumsum(self.discounts[:10])])
        self.relevant = np.searchsorted(self.known, self.relevant)
        pairs = np.stack([ranked.judgments.topic[positive], -ranked.judgments.grade[positive]])
        (self.topic, grades), self.first = np.unique(pairs, axis=1, return_index=True)
        self.grade = -grades

    def __call__(self, removed: NDArray[np.bool_]) -> Floats:
        """The means, shape (draws, runs); `removed` has the shape (known documents, draws)."""
        draws = removed.shape[1]
        flags = np.zeros((len(removed) + 1, draws), np.uint8)
        flags[:-1] = removed
        gone = flags[self.documents.reshape(DEPTH, -1)]
        before = np.zeros_like(gone)
        for place in range(1, DEPTH):
            np.add(before[place - 1], gone[place - 1], out=before[place])
        ranks = self.places[:, None].astype(np.uint8) - before[self.places, self.ranking]
        values = self.discounts[ranks] * (self.gains * (1 - gone[self.places, self.ranking]))
        found = np.zeros((gone.shape[1], draws))
        found[self.rankings] = np.add.reduceat(values, self.starts, axis=0)
        left = np.add.reduceat(1 - flags[self.relevant], self.first, axis=0, dtype=np.int64)
        ideal, above = np.zeros((self.topics, draws)), np.zeros((self.topics, draws), np.int64)
        for grade in np.unique(self.grade)[::-1]:
            of = np.flatnonzero(self.grade == grade)
            topic, ends = self.topic[of], above[self.topic[of]] + left[of]
            gained = self.sums[np.minimum(ends, 10)] - self.sums[np.minimum(above[topic], 10)]
            ideal[topic] += grade * gained
            above[topic] = ends
        scored = ideal > 0
        scored[np.setdiff1d(np.arange(self.topics), self.topic)] = True
        ratios = np.divide(
            found.reshape(-1, self.topics, draws),
            ideal,
            out=np.zeros((len(found) // self.topics, *ideal.shape)),
            where=ideal > 0,
        )
        means: Floats = ((ratios * scored).sum(axis=1) / np.maximum(1, scored.sum(axis=0))).T
        return means


def fast_placebo(
    ranked: RankedDocuments, means: Means, leaked: NDArray[np.bool_], matched: Sequence[str], drawing: Resampling
) -> Placebo:
    """What `document_placebos` says, with the same random removals."""
    classes = ranked.classes(10, matched)
    pool = np.flatnonzero(classes >= 0)
    picked = np.concatenate(list(removal_draws(leaked[pool], classes[pool], drawing.resamples, drawing.seed)))
    removed = np.repeat(leaked[means.known, None], len(picked) + 2, axis=1)
    removed[:, 0] = False
    removed[np.searchsorted(means.known, pool), 2:] = picked.T > 0
    before, after, *drawn = means(removed)
    return placebo_changes(
        dict(zip(ranked.names, before.tolist(), strict=True)),
        dict(zip(ranked.names, after.tolist(), strict=True)),
        lambda rng, draws: np.array(drawn),
        confidence=drawing.confidence,
        compared=share_compared(ranked, leaked, 10, matched) * (1 - 1 / len(matched) if len(matched) > 1 else 1),
    )


def simulate_documents(task: Task) -> list[int]:
    """How often each verdict comes out where documents are removed."""
    data, setting, simulations, resamples, seed, first = task
    rng = np.random.default_rng([seed, first])
    counts = dict.fromkeys(WORDS, 0)
    matched_by = {"all runs": "difficulty", "another run": data.other}.get(setting.matched_by)
    names = {"all runs": data.ranked.names, "another run": (data.other,)}.get(setting.matched_by, ())
    means = Means(data.ranked)
    for number in range(first, first + simulations):
        leaked = leaked_documents(data, setting.leaked, rng)
        drawing = Resampling(resamples, seed=seed + number)
        ranked = raised(data, leaked, setting.effect) if setting.effect else data.ranked
        fast = None if setting.effect else fast_placebo(ranked, means, leaked, names, drawing)
        if fast is None or number < first + CHECKED:
            gone = ranked.documents.filter(pl.Series(leaked)).to_list()
            (found,) = document_placebos(ranked, gone, MEASURE, matched_by=matched_by, resampling=drawing)
            if fast is not None and (abs(found.p - fast.p) > 1e-9 or found.word != fast.word):
                raise SystemExit(f"p is {fast.p} here ({fast.word}) and {found.p} in the library ({found.word})")
        counts[(found if fast is None else fast).word] += 1
    return list(counts.values())


def settings_of(what: str, remove: str, data: Data) -> Iterator[Setting]:
    """The rows of a table."""
    if remove == "documents":
        kinds = (
            "any documents", "of some topics", "of topics, each with its own rate", "of some topics, to rank 30",
            "well-ranked documents", *(() if data.mined is None else ("mined by another run",)),
        )  # fmt: skip
        matched = ("nothing", "all runs") if what == "level" else ("nothing", "all runs", "another run")
        for one, matched_by in itertools.product(kinds if what == "level" else kinds[:2], matched):
            for effect in (0.0,) if what == "level" else RISES:
                yield Setting(one, matched_by, effect)
    elif what == "level":
        for topics, matched_by in itertools.product(("any topics", "easy topics"), ("nothing", "all runs")):
            yield Setting(topics, matched_by)
    else:
        for matched_by, effect in itertools.product(("nothing", "all runs", "another run"), EFFECTS):
            yield Setting("any topics", matched_by, effect)


def show(title: str, tasks: Sequence[Task], counts: Sequence[Sequence[int]]) -> None:
    """Prints a table."""
    rows, planted = [], any(task.setting.effect for task in tasks)
    for task, found in zip(tasks, counts, strict=True):
        called = proportion(found[0], task.simulations, method="exact")
        shares = [f"{100 * one / task.simulations:.2f}%" for one in found]
        first = f"{shares[0]} ({100 * called.low:.2f} to {100 * called.high:.2f})"
        effect = [f"{task.setting.effect:g}"] if planted else []
        rows.append((task.data.name, task.setting.leaked, task.setting.matched_by, *effect, first, *shares[1:]))
    header = ["data", "leaked", "matched by", *(["effect"] if planted else []), *WORDS]
    print(f"{title}: {tasks[0].simulations:,d} simulations a row, {tasks[0].resamples:,d} random removals each\n")
    print(common.table(header, rows), flush=True)


def main() -> None:
    """Prints level and power."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=("level", "power", "all"))
    parser.add_argument("--remove", choices=("topics", "documents", "both"), default="both")
    parser.add_argument("--only", choices=("vaswani", "core17"))
    parser.add_argument("--leaked", help="the rows of this kind alone, such as 'of some topics'")
    parser.add_argument("--simulations", type=int, help="by default 10,000 for the level, 500 for the power")
    parser.add_argument("--resamples", type=int, help="by default 199; 19 for the level with documents")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=1)
    given = parser.parse_args()
    require_shared()
    data = [one for one in all_data() if given.only in (None, one.name)]
    for one in data:
        means = ", ".join(f"{run} {values.mean():.4f}" for run, values in one.values.items())
        print(f"{one.name}: {MEASURE} of {means}; planted effects: {one.profiting}; matched by: {one.other}")
    whats = ("level", "power") if given.what == "all" else (given.what,)
    removes = ("topics", "documents") if given.remove == "both" else (given.remove,)
    for what, remove in itertools.product(whats, removes):
        tasks = [
            Task(
                one,
                setting,
                given.simulations or SIMULATIONS[what],
                given.resamples or RESAMPLES.get((what, remove), 199),
                given.seed,
            )
            for one in data
            for setting in settings_of(what, remove, one)
            if given.leaked in (None, setting.leaked)
        ]
        started = time.perf_counter()
        # Not by fork: polars has threads.
        with ProcessPoolExecutor(given.workers, get_context("spawn")) as pool:
            blocks = [task.blocks() for task in tasks]
            simulated = simulate_documents if remove == "documents" else simulate
            found = pool.map(simulated, itertools.chain(*blocks))
            counts = [np.sum(list(itertools.islice(found, len(one))), axis=0).tolist() for one in blocks]
        print()
        show(f"{what}, {remove} removed", tasks, counts)
        print(f"\n{time.perf_counter() - started:.0f} s with {given.workers} processes")


if __name__ == "__main__":
    main()
