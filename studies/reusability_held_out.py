"""How often the verdict of `pool simulate` held for systems that the simulation had not seen.

    python studies/reusability_held_out.py [--collections cacm,vaswani] [--pools teams,lexical,dense]

Teams of the runs of `make runs` are held out from the simulation altogether: dense, latent and odd, where all other
teams ("teams") or lexical runs alone are pooled; and lexical teams, where dense runs alone are pooled. Each of their
runs is then scored by the simulated official judgments, by the same judgments with its own first 10 documents added,
and by complete judgments. A verdict is held to what it says: the largest difference at which a new run changed places,
the most ranks that one lost, and its word (SAFE and HELD: τ of 0.95 and at most 5% of the ranks lost; WITH CARE: 0.9
and 10%).

"Before" is the verdict by the teams left out alone, as it was: SAFE, WITH CARE, UNSAFE; a difference counts in the
fuller judgments. "After" is the verdict of this version, with the unlike systems of other kinds than the held-out
team's; a difference counts in the judgments with or without the run's documents, whichever is larger. The new runs are
scored by `truerank.measures.evaluate`, not by what the simulation scores with.

Both collections have judgments of relevant rows only: "complete" is all that their makers noted as relevant.
"""

from __future__ import annotations

import argparse
import dataclasses
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
import scipy.stats

from common import ROOT, SHARED, require_shared, table
from truerank import pool
from truerank.audits.pool import Simulation
from truerank.audits.pool.page import official_lines
from truerank.audits.pool.standings import ALL_TEAMS
from truerank.audits.pool.unlike import UNLIKE, UNLIKE_PASSED
from truerank.measures import evaluate
from truerank.options import Workers
from truerank.sources import read_qrels_frame, read_run_frame

#: Judgments of a trace at most.
LENGTH = 400
MEASURES = "AP P@10"
LEXICAL = ("okapi", "likely", "expand")
KEYS = ["topic_id", "doc_id"]
#: Of an unlike system, teams that are of its kind.
KINDS = {"dense": ("dense",), "latent": ("latent",), "lexical": LEXICAL, "feedback": ()}

SOURCES = {"vaswani": ("docs.trec.gz", "topics.trec.txt"), "cacm": ("cacm.tar.gz", "topics.txt")}


class Trial(NamedTuple):
    """Which runs are pooled, and which teams are held out."""

    pools: str
    pooled: tuple[str, ...]
    held_out: tuple[tuple[str, tuple[str, ...]], ...]


class Fate(NamedTuple):
    """What became of one held-out run by one measure: τ, ranks lost, the largest difference at which it changed places,
    in the fuller judgments and in either; the worst of both fuller judgments."""

    measure: str
    tau: float
    lost: int
    fuller_swap: float
    swap: float


def trials(runs: pl.DataFrame, pools: Sequence[str]) -> Iterator[Trial]:
    """The trials by a table of run, team and type."""
    by_team = {str(key[0]): tuple(part["run"]) for key, part in runs.group_by("team", maintain_order=True)}
    lexical = tuple(run for name in LEXICAL for run in by_team[name])
    if "teams" in pools:
        for team in ("dense", "latent", "odd"):
            pooled = tuple(run for name, some in by_team.items() if name != team for run in some)
            yield Trial(f"7 teams without {team}", pooled, ((team, by_team[team]),))
    if "lexical" in pools:
        others = tuple((team, by_team[team]) for team in ("dense", "latent", "odd"))
        yield Trial(f"{len(lexical)} lexical runs", lexical, others)
    if "dense" in pools:
        dense = runs.filter((pl.col("type") == "dense") & (pl.col("run") != "dense-rerank"))["run"]
        yield Trial(f"{len(dense)} dense runs", tuple(dense), (("lexical", lexical),))


def simulated(name: str, pooled: Sequence[str], given: Path, work: Path, options: pool.SimulationOptions) -> Simulation:
    """The simulation of some runs."""
    source = SHARED / "collections" / name
    return pool.simulate(
        [given / f"{run}.run" for run in pooled],
        str(source / "qrels.txt"),
        str(given / "topics.tsv"),
        str(source / SOURCES[name][0]),
        pooling=pool.Pooling(metadata=(str(given / "runs.tsv"),), sparse_qrels=str(given / "sparse.qrels")),
        options=options,
        processes=Workers(workers=1),
        work=work,
    )


def without(simulation: Simulation, team: str) -> Simulation:
    """The simulation without the unlike systems of a team's kind."""
    kinds = [name for name, teams in KINDS.items() if team in teams or team == name]
    changes = tuple(
        one for one in simulation.changes if not (one.rule in (*UNLIKE, UNLIKE_PASSED) and one.left_out in kinds)
    )
    unlike = tuple(system for system in simulation.unlike if system.name not in kinds)
    return dataclasses.replace(simulation, changes=changes, unlike=unlike)


def before(simulation: Simulation, measure: str) -> tuple[str, float, int]:
    """The word, the difference and the ranks of the verdict by the teams left out alone."""
    evidence = next(one.evidence[0] for one in pool.verdict_of(simulation).measures if one.measure == measure)
    scorer, official = simulation.standing.scorer, simulation.standing.official
    number, margin = scorer.names.index(measure), 0.0
    for judging in simulation.judgings:
        if judging.rule == "Original Size" and judging.left_out != ALL_TEAMS:
            own = np.isin(np.arange(len(scorer.ranks.runs)), simulation.standing.teams[judging.left_out])
            first, second = official.means[number], scorer.means(judging.qrels)[number]
            swapped = swaps(first, second) & (own[:, None] | own[None, :])
            margin = max(margin, float(np.where(swapped, np.subtract.outer(first, first), 0).max()))
    word = {"HELD": "SAFE", "NOT HELD": "UNSAFE"}.get(evidence.word, evidence.word)
    return word, margin, evidence.lost


def swaps(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Which pairs stand one way round first and the other way round second."""
    return (np.subtract.outer(first, first) > 1e-12) & (np.subtract.outer(second, second) < -1e-12)


def fates(simulation: Simulation, runs: dict[str, pl.DataFrame], new: pl.DataFrame) -> list[Fate]:
    """What becomes of a new run: by the official judgments, beside those with its first documents and complete ones."""
    lines = [line.split() for line in official_lines(simulation)]
    official = pl.DataFrame(
        [(topic, doc_id, int(grade)) for topic, _, doc_id, grade in lines],
        {"topic_id": pl.String, "doc_id": pl.String, "relevance": pl.Int64},
        orient="row",
    )
    known = read_qrels_frame(simulation.sources.qrels).select(*KEYS, pl.col("relevance").cast(pl.Int64))
    known = known.join(official.select("topic_id").unique(), on="topic_id", how="semi")
    first = new.sort("score", "doc_id", descending=True).group_by("topic_id", maintain_order=True).head(10)
    first = first.select(KEYS).join(known, on=KEYS, how="inner").join(official, on=KEYS, how="anti")
    fuller = (pl.concat([official, first]), pl.concat([official, known.join(official, on=KEYS, how="anti")]))
    every = {**runs, "new": new}
    here = evaluate(official, every, MEASURES)
    there = [evaluate(judgments, every, MEASURES) for judgments in fuller]
    found = []
    for number, measure in enumerate(map(str, here.measures)):
        after, one = here.mean[:, number], []
        for scores in there:
            ahead = scores.mean[:, number]
            changed = swaps(ahead, after)
            changed[:-1, :-1] = False
            differences = np.subtract.outer(ahead, ahead), -np.subtract.outer(after, after)
            places = [scipy.stats.rankdata(-np.round(values, 12), method="min")[-1] for values in (ahead, after)]
            one.append(
                Fate(
                    measure,
                    float(scipy.stats.kendalltau(np.round(ahead, 12), np.round(after, 12)).statistic),
                    max(0, int(places[1] - places[0])),
                    float(np.where(changed, differences[0], 0).max()),
                    float(np.where(changed, np.maximum(*differences), 0).max()),
                )
            )
        worst = [min(fate.tau for fate in one), *(max(fate[at] for fate in one) for at in (2, 3, 4))]
        found.append(Fate(measure, worst[0], int(worst[1]), worst[2], worst[3]))
    return found


def kept(word: str, some: Sequence[Fate], runs: int) -> int | None:
    """How many runs kept within the limits of a word; None where it promises nothing."""
    limits = {"SAFE": (0.95, 0.05), "HELD": (0.95, 0.05), "WITH CARE": (0.9, 0.1)}.get(word)
    if limits is None:
        return None
    return sum(fate.tau >= limits[0] and fate.lost <= max(1, round(limits[1] * runs)) for fate in some)


def rows(
    name: str, given: Path, work: Path, pools: Sequence[str], options: pool.SimulationOptions
) -> Iterator[list[str]]:
    """The rows of a collection: one for each trial, held-out team and measure; the last cells are for sums."""
    metadata = pl.read_csv(given / "runs.tsv", separator="\t")
    frames = {run: read_run_frame(given / f"{run}.run") for run in metadata["run"]}
    for trial in trials(metadata, pools):
        simulation = simulated(name, trial.pooled, given, work, options)
        pooled = {run: frames[run] for run in trial.pooled}
        for team, held_out in trial.held_out:
            seen = without(simulation, team)
            every = [fates(simulation, pooled, frames[run]) for run in held_out]
            for number, verdict in enumerate(pool.verdict_of(seen).measures):
                some = [fate[number] for fate in every]
                word, margin, ranks = before(simulation, verdict.measure)
                old = kept(word, some, len(pooled)), sum(fate.fuller_swap <= margin for fate in some)
                old_ranks = sum(fate.lost <= ranks for fate in some)
                new = kept(verdict.word, some, len(pooled)), sum(fate.swap <= verdict.largest_swap for fate in some)
                new_ranks = sum(fate.lost <= verdict.lost for fate in some)
                yield [
                    name, trial.pools, team, verdict.measure, str(len(some)), f"{min(fate.tau for fate in some):.3f}",
                    str(max(fate.lost for fate in some)), f"{max(fate.swap for fate in some):.4f}",
                    word, f"{ranks} / {margin:.4f}", told(old[0]), str(old_ranks), str(old[1]),
                    verdict.word, f"{verdict.lost} / {verdict.largest_swap:.4f}", told(new[0]), str(new_ranks),
                    str(new[1]),
                ]  # fmt: skip


def told(number: int | None) -> str:
    """A number of runs, or that nothing was promised."""
    return "–" if number is None else str(number)


HEADER = (
    "collection", "pools of", "held out", "measure", "runs", "worst τ", "most ranks lost", "largest swap",
    "before: word", "ranks / difference", "word held", "ranks held", "difference held",
    "after: word", "ranks / difference", "word held", "ranks held", "difference held",
)  # fmt: skip


def main() -> None:
    """Prints the table, and how often each part of the verdict held."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--collections", default=",".join(SOURCES))
    parser.add_argument("--pools", default="teams,lexical,dense")
    parser.add_argument("--trials", type=int, default=1)
    parser.add_argument("--runs", type=Path, default=Path("runs"))
    parser.add_argument("--work", type=Path, default=Path("build/held-out"))
    given = parser.parse_args()
    require_shared()
    options = pool.SimulationOptions(
        trials=given.trials, length=LENGTH, measures=MEASURES, stopping=(), unlike=",".join(KINDS)
    )
    every = []
    for name in given.collections.split(","):
        if not (given.runs / name / "runs.tsv").is_file():
            script = str(ROOT / "scripts" / "make_runs.py")
            subprocess.run([sys.executable, script, str(given.runs), "--collections", name], check=True)
        every += list(rows(name, given.runs / name, given.work / name, given.pools.split(","), options))
    print(table(HEADER, every))
    for name in given.collections.split(","):
        for what, word, ranks, swap in (("before", 10, 11, 12), ("after", 15, 16, 17)):
            mine = [row for row in every if row[0] == name]
            total = sum(int(row[4]) for row in mine)
            promised = [row for row in mine if row[word] != "–"]
            print(
                f"{name}, {what}: the word held for {sum(int(row[word]) for row in promised)} of "
                f"{sum(int(row[4]) for row in promised)} runs that it promised something for, the ranks for "
                f"{sum(int(row[ranks]) for row in mine)} of {total}, the difference for "
                f"{sum(int(row[swap]) for row in mine)} of {total}."
            )


if __name__ == "__main__":
    main()
