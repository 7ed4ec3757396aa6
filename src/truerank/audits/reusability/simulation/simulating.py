"""`pool simulate`: the judging of a track again and again, with all teams and with each team left out."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import polars as pl

from truerank.audits.reusability.learning.features import ANALYSER
from truerank.audits.reusability.pools.depth import depth_pool
from truerank.audits.reusability.simulation.inputs import Inputs, read_inputs
from truerank.audits.reusability.simulation.leave_out import Unique, leave_out_uniques, unique_documents
from truerank.audits.reusability.simulation.options import SimulationOptions, SimulationSources, unlike_systems
from truerank.audits.reusability.simulation.outcomes import (
    ALL_TEAMS,
    COMPLETE,
    Change,
    Judging,
    Official,
    Standing,
    compare,
    judge,
    judge_at_random,
)
from truerank.audits.reusability.simulation.report import Simulation
from truerank.audits.reusability.simulation.standings import (
    Judged,
    Qrels,
    RunRanks,
    Scorer,
    Universe,
    simulated_measures,
)
from truerank.audits.reusability.simulation.trials import TopicWork, Traces, TraceTask, run_trials
from truerank.audits.reusability.simulation.unlike import UnlikeSystem, first_overlaps, try_unlike
from truerank.audits.reusability.simulation.unlike_systems import Unlike, make_unlike
from truerank.audits.reusability.stopping import ConstantBudget, Keeping, OriginalSize, StoppingRule
from truerank.audits.reusability.stopping_specs import load_rule
from truerank.errors import InputError
from truerank.lexical import Index, build_index
from truerank.work.artifacts import Artifacts, digest, installed_versions
from truerank.work.engines import Engine, open_engine
from truerank.work.jobs import Job
from truerank.work.progress import Progress, Quiet
from truerank.work.workers import processors

__all__ = ["simulate", "trial_engine"]

_DEFAULTS: Final = SimulationOptions()
#: Constant budgets by which the cost of the next gain is told.
LADDER: Final = (25, 50, 75, 100, 150, 200, 300, 400, 600, 800, 1200, 1600, 2500)


def simulate(
    sources: SimulationSources,
    out: str | Path | None = None,
    *,
    options: SimulationOptions = _DEFAULTS,
    work: str | Path | None = None,
    engine: Engine | None = None,
    progress: Progress | None = None,
) -> Simulation:
    """Simulates how a track's collection would have come about, and how it ranks the runs of teams left out.

    Args:
        sources: what is read.
        out: the folder for the report; None to write nothing.
        options: what can be chosen.
        work: where the traces lie, and stay for the next simulation; None keeps them in `out` while it works.
        engine: what runs the trials; None for a process on every processor.
        progress: is told how far it is.

    Returns:
        The simulation: tables, figures, a verdict.

    Raises:
        InputError: a fault in a source; runs without teams; no relevant document; a rule that keeps no topic.

    Source: Craswell et al., Overview of the TREC 2019 Deep Learning Track, section 5.
    """
    told = progress or Quiet()
    inputs = read_inputs(sources, options)
    artifacts = None if out is None else Artifacts(out)
    with _folder(work, artifacts) as folder:
        index = _index(inputs, folder, told)
        inputs = inputs.noting(_unknown_documents(inputs, index))
        inputs, systems = _unlike(inputs, options, index, told)
        works = tuple(_works(inputs, options))
        length = min(options.length, max(1, int(options.share * len(index))))
        task = TraceTask(index.folder, length, options.learner)
        identity = {"docs": inputs.fingerprint, "analyser": ANALYSER.name, **_versions()}
        job = Job(folder / "traces", engine or trial_engine(), told)
        traces = run_trials(works, options.seeds, task, job, identity)
        told.start("comparing")
        found = _compared(inputs, options, traces, systems, len(index))
    simulation = Simulation(
        options=options,
        teams=inputs.teams,
        standing=found.standing,
        judgings=found.judgings,
        changes=found.changes,
        uniques=found.uniques,
        overlaps=found.overlaps,
        unlike=found.unlike,
        has_non_relevant=inputs.has_non_relevant(options.learner.relevant_from),
        traces=traces,
        rules=found.rules,
        notes=(*inputs.notes, *_bounded(found)),
        sources=sources,
        length=length,
    )
    if artifacts is not None:
        simulation.save(artifacts.folder)
    return simulation


def trial_engine(name: str = "local", workers: int | None = None) -> Engine:
    """What runs the trials: processes of this machine ("local"), or a cluster ("ray", "ray:ADDRESS").

    A cluster's machines read the collection's index where this one has it.

    Args:
        name: of the engine.
        workers: processes of this machine; None for one on every processor.

    Raises:
        InputError: there is no such engine.
        MissingExtraError: Ray is not installed.
    """
    if name != "local":
        return open_engine(name)
    taken = workers or processors()
    return open_engine(name, taken if taken > 1 else 0)


class _Found(NamedTuple):
    standing: Standing
    judgings: tuple[Judging, ...]
    changes: tuple[Change, ...]
    uniques: tuple[Unique, ...]
    overlaps: Mapping[str, float]
    unlike: tuple[UnlikeSystem, ...]
    rules: tuple[str, ...]


def _compared(
    inputs: Inputs, options: SimulationOptions, traces: Traces, systems: Mapping[str, pl.DataFrame], collection: int
) -> _Found:
    """All that the traces show."""
    universe = _universe(inputs, traces, collection)
    ranks = RunRanks.of(inputs.runs, universe)
    scorer = Scorer(ranks, universe, simulated_measures(options.measures), options.learner.relevant_from)
    official = _official(inputs, options, traces, scorer, universe)
    by_team = {
        team: np.array([at for at, run in enumerate(ranks.runs) if inputs.teams[run] == team]) for team in inputs.names
    }
    standing = Standing(universe, scorer, official, by_team)
    kept = frozenset(scorer.ranks.topics[scorer.judged(int(number)).topic] for number in official.qrels.sets)
    # The topics are the official ones, however little of them a trial finds.
    original = OriginalSize(official.sizes, kept, Keeping(0, None))
    rules = [original, *(load_rule(spec, sizes=official.sizes, topics=kept) for spec in options.rules)]
    _check_names(rules)
    judgings = list(_judgings(standing, traces, rules, options, inputs.names))
    judgings.append(_complete(inputs, standing))
    scorer.values()
    changes = [change for judging in judgings for change in compare(standing, judging)]
    pools = inputs.pools_by_team(options.depth)
    uniques, without = leave_out_uniques(standing, unique_documents(pools))
    unlike, strange = try_unlike(standing, inputs, judgings, systems, options.depth)
    names = tuple(rule.name for rule in rules)
    every = (*changes, *without, *strange)
    return _Found(standing, tuple(judgings), every, uniques, first_overlaps(pools), unlike, names)


def _check_names(rules: Sequence[StoppingRule]) -> None:
    names = [rule.name for rule in rules]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"two rules are called '{name}'", "give each once", where="--rule")


def _judgings(
    standing: Standing, traces: Traces, rules: Sequence[StoppingRule], options: SimulationOptions, teams: Sequence[str]
) -> Iterator[Judging]:
    """Every trial by every rule; with teams left out, by the original size."""
    longest = max(len(traced.documents) for traced in traces.official)
    names = {rule.name for rule in rules}
    ladder = [rule for rule in map(ConstantBudget, LADDER) if rule.judgments <= longest and rule.name not in names]
    for trial, conditions in enumerate(traces.trials, start=1):
        for rule in rules:
            yield judge(rule, standing.scorer, conditions[0], trial)
        for rule in ladder:
            # The ladder begins below the pools, where no topic may be kept.
            with contextlib.suppress(InputError):
                yield judge(rule, standing.scorer, conditions[0], trial)
        yield judge_at_random(standing, conditions[0], options.seeds[trial], trial)
        for team, traced in zip(teams, conditions[1:], strict=True):
            yield judge(rules[0], standing.scorer, traced, trial, team)


def _official(
    inputs: Inputs, options: SimulationOptions, traces: Traces, scorer: Scorer, universe: Universe
) -> Official:
    """The qrels that were given, or what the track's procedure makes of the official seed."""
    if inputs.official is None:
        rule = load_rule(options.official_rule)
        judging = judge(rule, scorer, traces.official, 0)
        sizes = {outcome.topic_id: outcome.judged for outcome in judging.outcomes}
        name = f"{rule.name}, seed {options.seed}"
        return Official(name, judging.qrels, scorer.means(judging.qrels), sizes, judging.outcomes)
    numbers = [{doc_id: at for at, doc_id in enumerate(some)} for some in universe.documents]
    sets, sizes = [], {}
    for number, topic_id in enumerate(universe.topics):
        judged = inputs.official.get(topic_id, ())
        if judged:
            places = np.array([numbers[number][doc_id] for doc_id in judged], np.int32)
            sets.append(scorer.number(Judged(number, places)))
            sizes[topic_id] = len(judged)
    qrels = Qrels(np.array(sets))
    return Official("as given", qrels, scorer.means(qrels), sizes)


def _complete(inputs: Inputs, standing: Standing) -> Judging:
    """All that the assessor knows of the topics of the official qrels."""
    universe, scorer = standing.universe, standing.scorer
    sets, judgments, relevant = [], 0, 0
    for official in standing.official.qrels.sets:
        number = scorer.judged(int(official)).topic
        known = inputs.grades[universe.topics[number]]
        places = np.array([at for at, doc_id in enumerate(universe.documents[number]) if doc_id in known], np.int32)
        judgments += len(places)
        relevant += int((universe.grades[number][places] >= scorer.rel).sum())
        sets.append(scorer.number(Judged(number, places)))
    return Judging(COMPLETE, 0, ALL_TEAMS, (), Qrels(np.array(sets)), judgments, relevant)


def _universe(inputs: Inputs, traces: Traces, collection: int) -> Universe:
    """The documents of the traces, and those that the assessor or the official qrels name."""
    documents, grades = [], []
    for topic_id, traced in zip(traces.topics, traces.documents, strict=True):
        there = set(traced)
        known = inputs.grades[topic_id]
        named = dict.fromkeys([*sorted(known), *sorted((inputs.official or {}).get(topic_id, ()))])
        every = (*traced, *(doc_id for doc_id in named if doc_id not in there))
        documents.append(every)
        grades.append(np.array([known.get(doc_id, 0) for doc_id in every], np.int64))
    return Universe(traces.topics, tuple(documents), tuple(grades), collection)


def _works(inputs: Inputs, options: SimulationOptions) -> Iterator[TopicWork]:
    """What is traced for each topic: the distinct pools of all conditions."""
    conditions = [_pools(inputs, options, team) for team in (None, *inputs.names)]
    for topic_id, query in inputs.topics.items():
        pools: dict[tuple[str, ...], int] = {}
        numbers = tuple(pools.setdefault(by_topic.get(topic_id, ()), len(pools)) for by_topic in conditions)
        yield TopicWork(topic_id, query, tuple(pools), numbers, inputs.grades[topic_id])


def _pools(inputs: Inputs, options: SimulationOptions, left_out: str | None) -> dict[str, tuple[str, ...]]:
    runs = {run: frame for run, frame in inputs.firsts.items() if inputs.teams[run] != left_out}
    pool = depth_pool(runs, options.depth, sparse=inputs.sparse)
    if inputs.sparse is not None:
        # Also for topics that no run of the others has.
        pool = pl.concat([pool, inputs.sparse.select("topic_id", "doc_id")]).unique().sort("topic_id", "doc_id")
    return {str(key[0]): tuple(part["doc_id"]) for key, part in pool.group_by("topic_id", maintain_order=True)}


def _index(inputs: Inputs, folder: Path, told: Progress) -> Index:
    """The index that the features are made from; kept for the next time."""
    place = folder / f"features-{digest(inputs.fingerprint)[:16]}"
    if not Index.is_index(place):
        build_index(inputs.sources.docs, place, analyser=ANALYSER, progress=told)
    return Index(place)


def _unlike(
    inputs: Inputs, options: SimulationOptions, index: Index, told: Progress
) -> tuple[Inputs, dict[str, pl.DataFrame]]:
    """The unlike systems, and the inputs with notes on those that were not made."""
    names, note = unlike_systems(options.unlike, len(index))
    inputs = inputs.noting(note)
    if not names:
        return inputs, {}
    given = Unlike(
        inputs.sources.docs, inputs.fingerprint, index, inputs.topics, options.seed,
        Path(index.folder).parent, _versions(),
    )  # fmt: skip
    runs, notes = make_unlike(names, given, told, optional=options.unlike == ("auto",))
    for each in notes:
        inputs = inputs.noting(each)
    return inputs, runs


def _unknown_documents(inputs: Inputs, index: Index) -> str:
    """A note on pooled documents that the collection lacks."""
    pooled = pl.concat([frame.select("doc_id") for frame in inputs.firsts.values()])["doc_id"].unique()
    known = pl.Series(index.doc_ids(np.arange(len(index))), dtype=pl.String)
    lacking = pooled.filter(~pooled.is_in(known.implode()))
    if len(lacking) == len(pooled):
        raise InputError(
            f"the collection has none of the {len(pooled):,} documents that the runs put first",
            "give the collection of these runs",
            where=inputs.sources.docs,
        )
    if not len(lacking):
        return ""
    return (
        f"{len(lacking):,} of {len(pooled):,} pooled documents are not in the collection; the learner cannot read them."
    )


def _bounded(found: _Found) -> Iterator[str]:
    """What the end of the traces, or the assessors, cut short."""
    official = [outcome for outcome in found.standing.official.outcomes if outcome.ending == "trace"]
    if official:
        yield f"Official: {len(official):,} topics were still open at the end of their traces."
    for rule in found.rules:
        ended = {
            outcome.topic_id
            for judging in found.judgings
            if judging.rule == rule
            for outcome in judging.outcomes
            if outcome.ending == "trace"
        }
        if ended:
            yield f"{rule}: {len(ended):,} topics were still open at the end of a trace."


def _versions() -> Mapping[str, str]:
    # What changes traces in the last bit may change which document is next.
    return installed_versions("truerank", "numpy", "scipy")


@contextlib.contextmanager
def _folder(work: str | Path | None, artifacts: Artifacts | None) -> Iterator[Path]:
    if work is not None:
        kept = Path(work).absolute()
        kept.mkdir(parents=True, exist_ok=True)
        yield kept
    elif artifacts is not None:
        folder = artifacts.work.absolute() / "simulate"
        yield folder
        shutil.rmtree(folder, ignore_errors=True)
        artifacts.tidy()
    else:
        with tempfile.TemporaryDirectory(prefix="truerank-simulate-") as temporary:
            yield Path(temporary)
