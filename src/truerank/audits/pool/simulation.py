"""`pool simulate`: the judging of a track again and again, with all teams and with each team left out."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, ClassVar, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from truerank.audits.pool.features import ANALYSER, Features
from truerank.audits.pool.inputs import Inputs, SimulationOptions, SimulationSources, read_inputs, unlike_systems
from truerank.audits.pool.judged_topics import JudgedTopic
from truerank.audits.pool.pools import Pooling, depth_pool
from truerank.audits.pool.standings import (
    ALL_TEAMS,
    COMPLETE,
    Change,
    JudgedSet,
    Judging,
    Official,
    OfficialStanding,
    RunRanks,
    Scorer,
    Unique,
    Universe,
    compare,
    judge,
    judge_at_random,
    leave_out_uniques,
    simulated_measures,
    unique_documents,
)
from truerank.audits.pool.stopping import ConstantBudget, Keeping, OriginalSize, StoppingRule, load_rule
from truerank.audits.pool.trials import TopicWork, Traces, TraceTask, run_trials
from truerank.audits.pool.unlike import Unlike, UnlikeSystem, first_overlaps, make_unlike, try_unlike
from truerank.core.result import Result
from truerank.errors import InputError, OptionError
from truerank.lexical import Index, kept_index
from truerank.measures.orders import ranks
from truerank.options import Flag, Out, Source, Workers, command
from truerank.work.artifacts import digest, installed_versions
from truerank.work.engines import Engine, open_engine, processors
from truerank.work.jobs import Job
from truerank.work.progress import Progress, Quiet
from truerank.work.publishing import publish
from truerank.work.runs import run as started


@dataclass(frozen=True, eq=False, repr=False)
class Simulation(Result, shown_in="truerank.audits.pool.page"):
    """What a simulation found.

    Attributes:
        options: what was chosen.
        teams: the team of each run.
        standing: the documents, the scorer, the official qrels.
        judgings: what every rule made of every trial.
        changes: how each of them ranks the runs.
        uniques: what each team alone contributed.
        overlaps: by team, the share of its pool that other teams brought in too.
        unlike: the unlike systems that were tried.
        has_non_relevant: whether the assessor's judgments have rows that are not relevant.
        traces: what was judged in which order.
        rules: the names of the rules of Table 7, the original size first.
        sources: what was read.
        notes: what a reader has to know.
        length: judgments of a trace at most, after the share of the collection.
        out: the folder that it was written to.
    """

    verdict_words: ClassVar[tuple[str, ...]] = ("NOT HELD", "WITH CARE", "UNKNOWN")

    options: SimulationOptions
    teams: Mapping[str, str]
    standing: OfficialStanding
    judgings: tuple[Judging, ...]
    changes: tuple[Change, ...]
    uniques: tuple[Unique, ...]
    overlaps: Mapping[str, float]
    unlike: tuple[UnlikeSystem, ...]
    has_non_relevant: bool
    traces: Traces
    rules: tuple[str, ...]
    sources: SimulationSources
    notes: tuple[str, ...] = ()
    length: int = 0
    out: Path | None = None

    @cached_property
    def is_complete(self) -> bool:
        """Whether the official qrels hold all relevant documents that the assessor knows."""
        return all(
            change.tau == 1 and not change.drop for change in self.changes if change.rule == COMPLETE
        ) and self.judgings_of(COMPLETE)[0].relevant == sum(
            row.relevant for row in self.judged_topics() if not row.why_not
        )

    @property
    def keeping(self) -> Keeping:
        """Which topics the official qrels keep."""
        return load_rule(self.options.official_rule).keeping if self.standing.official.outcomes else Keeping(0, None)

    def of_rule(self, rule: str, measure: str) -> list[Change]:
        """How a rule's qrels rank the runs by a measure, over trials and teams left out."""
        return self._changes.get((rule, measure), [])

    def judgings_of(self, rule: str) -> list[Judging]:
        """What a rule made of each trial with all teams."""
        return self._judgings.get(rule, [])

    def judged_topics(self) -> tuple[JudgedTopic, ...]:
        """Relevant and judged documents of every topic by the official qrels."""
        official, scorer = self.standing.official, self.standing.scorer
        if official.outcomes:
            return tuple(JudgedTopic(one.topic_id, one.relevant, one.judged, one.why_not) for one in official.outcomes)
        found = []
        for number in official.qrels:
            judged = scorer.judged(int(number))
            relevant = int((self.standing.universe.grades[judged.topic][judged.documents] >= scorer.rel).sum())
            found.append(JudgedTopic(scorer.ranks.topics[judged.topic], relevant, len(judged.documents)))
        return tuple(found)

    def budgets(self) -> Iterator[tuple[int, str]]:
        """The constant budgets that were tried, the smallest first."""
        prefix = ConstantBudget(1).name.removesuffix("1")
        sizes = {int(name.removeprefix(prefix)) for name in self._judgings if name.removeprefix(prefix).isdigit()}
        yield from ((size, f"{prefix}{size}") for size in sorted(sizes))

    def positions(self, measure: str) -> NDArray[np.int64]:
        """The official rank of each run, shape (runs,)."""
        number = self.standing.scorer.names.index(measure)
        return ranks(self.standing.official.means[number], ascending=self.standing.scorer.ascending[number])

    def order(self, measure: str) -> list[int]:
        """The runs by their official rank, equal ones by name."""
        found, names = self.positions(measure), self.standing.scorer.ranks.runs
        return sorted(range(len(names)), key=lambda run: (int(found[run]), names[run]))

    def position_counts(self, measure: str) -> NDArray[np.int64]:
        """How often each run stood at each position over all trials and teams left out, shape (runs, positions)."""
        runs = len(self.standing.scorer.ranks.runs)
        counts = np.zeros((runs, runs), np.int64)
        for change in self.of_rule(OriginalSize.name, measure):
            counts[np.arange(runs), change.positions - 1] += 1
        return counts

    @cached_property
    def _changes(self) -> dict[tuple[str, str], list[Change]]:
        found: dict[tuple[str, str], list[Change]] = {}
        for change in self.changes:
            found.setdefault((change.rule, change.measure), []).append(change)
        return found

    @cached_property
    def _judgings(self) -> dict[str, list[Judging]]:
        found: dict[str, list[Judging]] = {}
        for judging in self.judgings:
            if judging.left_out == ALL_TEAMS:
                found.setdefault(judging.rule, []).append(judging)
        return found


#: Constant budgets by which the cost of the next gain is told.
LADDER: Final = (25, 50, 75, 100, 150, 200, 300, 400, 600, 800, 1200, 1600, 2500)
_PACKAGES: Final = ("scipy", "matplotlib")


@command
def simulate(
    run: Annotated[Sequence[str | Path], Flag(metavar="FILE", reads=list[str])],
    qrels: Source,
    topics: Source,
    docs: Source,
    *,
    official: Annotated[str | None, Flag(metavar="SRC")] = None,
    pooling: Pooling = Pooling(),
    options: SimulationOptions = SimulationOptions(),
    processes: Workers = Workers(),
    work: Annotated[str | Path | None, Flag(metavar="DIR", reads=Path)] = None,
    out: Out = None,
    progress: Progress | None = None,
) -> Simulation:
    """Simulates the judging of a track with each team left out, and shows how new systems would be ranked.

    Every trial is run with all teams and with each team left out of the pools. It judges the pools, then what active
    learning chooses, by the grades of the qrels; a document that is not there is not relevant. Systems unlike the runs
    (a sentence encoder, a latent space, queries led astray) are made from the collection, not pooled, and ranked by the
    judgments: the verdict takes into account how they fare. The report has a verdict for each measure, tables, figures,
    and all traces. At its start the command says what it will cost. Killed and called again, it continues.

    Args:
        run: TREC runs, not truncated; repeat the option for several.
        qrels: what the simulated assessor says.
        topics: the topics that the learner starts from.
        docs: the collection.
        official: the qrels of the track; by default `official_rule` makes them of all runs.
        pooling: what is pooled.
        options: how the judging is simulated.
        processes: where the trials run.
        work: a folder that keeps traces for further simulations; by default they go when the report is written.
        out: a folder for page, tables, figures and traces.
        progress: receives progress updates.

    Returns:
        The order of the runs in every trial, and what it is compared with.

    Raises:
        InputError: a fault in a source; runs without teams; no relevant document; a rule that keeps no topic.

    Examples:

        truerank pool simulate --run runs/a_1.run --run runs/b_1.run --team-prefix _ --qrels judged.qrels
        --topics topics.tsv --docs docs.jsonl --out report/

        truerank pool simulate --run runs/a1.run --run runs/b1.run --metadata teams.tsv --qrels track.qrels
        --official track.qrels --topics topics.tsv --docs irds:msmarco-passage --rel 2 --stopping budget:500
        --work traces/ --out report/

    Source: Craswell et al., Overview of the TREC 2019 Deep Learning Track, section 5.
    """
    progress, engine = progress or Quiet(), trial_engine(processes.engine, processes.workers)
    sources = SimulationSources(tuple(map(str, run)), qrels, topics, docs, official, pooling)
    inputs = read_inputs(sources, options)
    if out is None:
        with _folder(work) as folder:
            return _simulated(inputs, options, Job(folder, engine, progress))
    chosen = {"pooling": replace(pooling, depth=sources.depth), "options": options}
    with started("pool simulate", sources.inputs(), chosen, out, packages=_PACKAGES) as job:
        # Traces lie under what they depend on: another simulation in this folder may begin with them.
        with _folder(work or job.unfinished("simulate")) as folder:
            found = _simulated(inputs, options, Job(folder, engine, progress))
        found = replace(found, out=job.folder)
        job.skipped = {"notes": list(found.notes)}
        publish(found, job)
    return found


def _simulated(inputs: Inputs, options: SimulationOptions, job: Job) -> Simulation:
    """All trials, made where they are not there yet, and what they show."""
    place = job.folder / f"features-{digest(inputs.fingerprint)[:16]}"
    index = kept_index(inputs.sources.docs, place, ANALYSER, job.progress)
    features = Features.of_index(index, progress=job.progress)
    inputs = inputs.noting(_unknown_documents(inputs, features))
    inputs, systems = _unlike(inputs, options, index, job.progress)
    length = min(options.length, max(1, int(options.share * len(index))))
    task = TraceTask(index.folder, length, options.learner)
    identity = {"docs": inputs.fingerprint, "analyser": ANALYSER.name, **_versions()}
    traces = run_trials(tuple(_works(inputs)), options.seeds, task, job.part("traces"), identity)
    job.progress.start("comparing")
    found = _compared(inputs, options, traces, systems, len(index))
    return replace(found, length=length, notes=(*inputs.notes, *_bounded(found)))


def trial_engine(name: str | Engine = "local", workers: int | None = None) -> Engine:
    """What runs the trials: processes of this machine ("local"), or a cluster ("ray", "ray:ADDRESS").

    A cluster's machines read the collection's index where this one has it.

    Args:
        name: of the engine; an engine is taken as it is.
        workers: processes of this machine; None for one on every processor.

    Raises:
        InputError: there is no such engine.
        MissingExtraError: Ray is not installed.
    """
    if not isinstance(name, str):
        return name
    if name != "local":
        return open_engine(name, workers)
    taken = workers or processors()
    return open_engine(name, taken if taken > 1 else 0)


def _compared(
    inputs: Inputs, options: SimulationOptions, traces: Traces, systems: Mapping[str, pl.DataFrame], collection: int
) -> Simulation:
    universe = _universe(inputs, traces, collection)
    ranks = RunRanks.of(inputs.runs, universe)
    scorer = Scorer(ranks, universe, simulated_measures(options.measures), options.rel)
    official = _official(inputs, options, traces, scorer, universe)
    by_team = {
        team: np.array([at for at, run in enumerate(ranks.runs) if inputs.teams[run] == team]) for team in inputs.names
    }
    standing = OfficialStanding(universe, scorer, official, by_team)
    kept = frozenset(scorer.ranks.topics[scorer.judged(int(number)).topic] for number in official.qrels)
    # The topics are the official ones, however little of them a trial finds.
    original = OriginalSize(official.sizes, kept, Keeping(0, None))
    rules = [original, *(load_rule(spec, sizes=official.sizes, topics=kept) for spec in options.stopping)]
    names = [rule.name for rule in rules]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise OptionError("stopping", f"two rules are called '{twice}'", "give each once")
    judgings = list(_judgings(standing, traces, rules, options, inputs.names))
    judgings.append(_complete(inputs, standing))
    scorer.values()
    changes = [change for judging in judgings for change in compare(standing, judging)]
    depth = inputs.sources.depth
    pools = inputs.pools_by_team(depth)
    uniques, without = leave_out_uniques(standing, unique_documents(pools))
    unlike, strange = try_unlike(standing, inputs, judgings, systems, depth)
    return Simulation(
        options=options,
        teams=inputs.teams,
        standing=standing,
        judgings=tuple(judgings),
        changes=(*changes, *without, *strange),
        uniques=uniques,
        overlaps=first_overlaps(pools),
        unlike=unlike,
        has_non_relevant=inputs.has_non_relevant(options.rel),
        traces=traces,
        rules=tuple(names),
        sources=inputs.sources,
    )


def _judgings(
    standing: OfficialStanding,
    traces: Traces,
    rules: Sequence[StoppingRule],
    options: SimulationOptions,
    teams: Sequence[str],
) -> Iterator[Judging]:
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
            sets.append(scorer.number(JudgedSet(number, places)))
            sizes[topic_id] = len(judged)
    qrels = np.array(sets)
    return Official("as given", qrels, scorer.means(qrels), sizes)


def _complete(inputs: Inputs, standing: OfficialStanding) -> Judging:
    """All that the assessor knows of the topics of the official qrels."""
    universe, scorer = standing.universe, standing.scorer
    sets, judgments, relevant = [], 0, 0
    for official in standing.official.qrels:
        number = scorer.judged(int(official)).topic
        known = inputs.grades[universe.topics[number]]
        places = np.array([at for at, doc_id in enumerate(universe.documents[number]) if doc_id in known], np.int32)
        judgments += len(places)
        relevant += int((universe.grades[number][places] >= scorer.rel).sum())
        sets.append(scorer.number(JudgedSet(number, places)))
    return Judging(COMPLETE, 0, ALL_TEAMS, (), np.array(sets), judgments, relevant)


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


def _works(inputs: Inputs) -> Iterator[TopicWork]:
    """What is traced for each topic: the distinct pools of all conditions."""
    conditions = [_pools(inputs, team) for team in (None, *inputs.names)]
    for topic_id, query in inputs.topics.items():
        pools: dict[tuple[str, ...], int] = {}
        numbers = tuple(pools.setdefault(by_topic.get(topic_id, ()), len(pools)) for by_topic in conditions)
        yield TopicWork(topic_id, query, tuple(pools), numbers, inputs.grades[topic_id])


def _pools(inputs: Inputs, left_out: str | None) -> dict[str, tuple[str, ...]]:
    runs = {run: frame for run, frame in inputs.firsts.items() if inputs.teams[run] != left_out}
    pool = depth_pool(runs, inputs.sources.depth, sparse=inputs.sparse)
    if inputs.sparse is not None:
        # Also for topics that no run of the others has.
        pool = pl.concat([pool, inputs.sparse.select("topic_id", "doc_id")]).unique().sort("topic_id", "doc_id")
    return {str(key[0]): tuple(part["doc_id"]) for key, part in pool.group_by("topic_id", maintain_order=True)}


def _unlike(
    inputs: Inputs, options: SimulationOptions, index: Index, progress: Progress
) -> tuple[Inputs, dict[str, pl.DataFrame]]:
    """The unlike systems, and the inputs with notes on those that were not made."""
    names, note = unlike_systems(options.unlike_names, len(index))
    inputs = inputs.noting(note)
    if not names:
        return inputs, {}
    given = Unlike(
        inputs.sources.docs, inputs.fingerprint, index, inputs.topics, options.seed,
        Path(index.folder).parent, _versions(),
    )  # fmt: skip
    runs, notes = make_unlike(names, given, progress, optional=options.unlike_names == ("auto",))
    for each in notes:
        inputs = inputs.noting(each)
    return inputs, runs


def _unknown_documents(inputs: Inputs, features: Features) -> str:
    """A note on pooled documents that the collection lacks."""
    pooled = pl.concat([frame.select("doc_id") for frame in inputs.firsts.values()])["doc_id"].unique()
    lacking = sum(features.doc_ids.find(doc_id) is None for doc_id in pooled)
    if lacking == len(pooled):
        raise InputError(
            f"the collection has none of the {len(pooled):,} documents that the runs put first",
            "give the collection of these runs",
            where=inputs.sources.docs,
        )
    if not lacking:
        return ""
    return f"{lacking:,} of {len(pooled):,} pooled documents are not in the collection; the learner cannot read them."


def _bounded(found: Simulation) -> Iterator[str]:
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
def _folder(work: str | Path | None) -> Iterator[Path]:
    if work is not None:
        folder = Path(work).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        yield folder
        return
    with tempfile.TemporaryDirectory(prefix="truerank-simulate-") as temporary:
        yield Path(temporary)
