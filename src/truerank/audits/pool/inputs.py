"""What a simulation reads, checked source against source, and what can be chosen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Final

import polars as pl

from truerank.audits.pool.active import LearnerOptions
from truerank.audits.pool.pools import (
    DEPTH,
    Pooling,
    check_topics,
    depth_pool,
    first_documents,
    read_runs,
    teams_of,
)
from truerank.audits.pool.standings import simulated_measures
from truerank.errors import InputError, OptionError
from truerank.lexical import topic_queries
from truerank.options import Flag, Options, Range, Seed
from truerank.records import Input
from truerank.sources import open_documents, read_qrels_frame
from truerank.sources.inputs import inputs_of
from truerank.text.normalising import normalise
from truerank.text.printable import first_few

#: Beside the official size, which is always there.
DEFAULT_RULES: Final = ("budget:400", "budget:500", "heuristic")
#: Systems unlike those that were pooled, and documents up to which "auto" makes each: an encoder reads some hundred
#: documents a second.
UNLIKE_SYSTEMS: Final[Mapping[str, int]] = {
    "dense": 50_000, "latent": 1_000_000, "lexical": 10_000_000, "feedback": 1_000_000,
}  # fmt: skip
_LEARNER: Final = LearnerOptions()


@dataclass(frozen=True)
class SimulationSources:
    """What a simulation reads."""

    runs: tuple[str, ...]
    qrels: str
    topics: str
    docs: str
    official: str | None
    pooling: Pooling

    @property
    def depth(self) -> int:
        return self.pooling.depth or DEPTH

    def inputs(self) -> tuple[Input, ...]:
        return inputs_of(
            run=self.runs, qrels=self.qrels, topics=self.topics, docs=self.docs, official=self.official,
            metadata=self.pooling.metadata, sparse_qrels=self.pooling.sparse_qrels,
        )  # fmt: skip


@dataclass(frozen=True)
class SimulationOptions(Options):
    """How the judging is simulated.

    Attributes:
        trials: how many; their seeds follow the official one.
        seed: of the official judging.
        length: judgments of a topic in a trial at most.
        share: of the collection that is judged for a topic in a trial at most; the pool is judged in any case.
        measures: what runs are ranked by; the first one leads.
        stopping: stopping rules beside the original size; repeat the option for several. track,
            heuristic:cap=1000, track:increment=0.5,bound=0.6, or budget:400.
        official_rule: the stopping rule that makes the official qrels where none are given.
        rel: the lowest grade that counts as relevant.
        field: of the topics: title, description, narrative, or several joined by +.
        unlike: systems unlike the runs, made from the collection and tried without being pooled: dense, latent,
            lexical, feedback, joined by commas; auto (as the collection's size allows) or none.
        learner: see `LearnerOptions`; its lowest relevant grade is `rel`.
    """

    trials: Annotated[int, Range(at_least=1)] = 10
    seed: Seed = 0
    length: Annotated[int, Range(at_least=1)] = 2500
    share: Annotated[float, Range(above=0, at_most=1)] = 1.0
    measures: str = "AP P@10"
    stopping: Annotated[tuple[str, ...], Flag(metavar="RULE", reads=list[str])] = DEFAULT_RULES
    official_rule: Annotated[str, Flag(metavar="RULE")] = "track"
    rel: Annotated[int, Range(at_least=1)] = 1
    field: str = "title"
    unlike: Annotated[str, Flag(metavar="NAMES")] = "auto"
    learner: Annotated[LearnerOptions, Flag(hidden=True)] = _LEARNER

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "learner", replace(self.learner, rel=self.rel))
        simulated_measures(self.measures)
        unlike_systems(self.unlike_names, 0)

    @property
    def unlike_names(self) -> tuple[str, ...]:
        """The unlike systems that were asked for."""
        return tuple(name.strip() for name in self.unlike.split(","))

    @property
    def seeds(self) -> tuple[int, ...]:
        """The official seed, then that of each trial."""
        return tuple(range(self.seed, self.seed + self.trials + 1))


def unlike_systems(asked: Sequence[str], documents: int) -> tuple[tuple[str, ...], str]:
    """Which unlike systems are made, and a note on those that the size of the collection rules out."""
    if tuple(asked) == ("none",):
        return (), ""
    if tuple(asked) != ("auto",):
        unknown = [name for name in asked if name not in UNLIKE_SYSTEMS]
        if unknown or not asked:
            raise OptionError(
                "unlike",
                f"no unlike system '{', '.join(unknown)}'",
                f"name some of {', '.join(UNLIKE_SYSTEMS)}, or auto or none",
            )
        return tuple(dict.fromkeys(asked)), ""
    made = tuple(name for name, limit in UNLIKE_SYSTEMS.items() if documents <= limit)
    left = [name for name in UNLIKE_SYSTEMS if name not in made]
    note = (
        f"Unlike systems that take long for {documents:,} documents were not made: {', '.join(left)}. Ask for them "
        f"with --unlike {','.join(UNLIKE_SYSTEMS)}."
    )
    return made, note if left else ""


_SHOWN: Final = 5


@dataclass(frozen=True, eq=False)
class Inputs:
    """What a simulation works with."""

    sources: SimulationSources
    runs: Mapping[str, pl.DataFrame]
    firsts: Mapping[str, pl.DataFrame]
    teams: Mapping[str, str]
    names: tuple[str, ...]
    topics: Mapping[str, str]
    grades: Mapping[str, Mapping[str, int]]
    sparse: pl.DataFrame | None = None
    official: Mapping[str, tuple[str, ...]] | None = None
    fingerprint: str = ""
    notes: tuple[str, ...] = field(default=())

    def noting(self, note: str) -> Inputs:
        """The same with one more note; an empty one changes nothing."""
        return replace(self, notes=(*self.notes, note)) if note else self

    def has_non_relevant(self, rel: int) -> bool:
        """Whether the assessor's judgments have rows below the grade; without them nothing says what was looked at."""
        return any(grade < rel for grades in self.grades.values() for grade in grades.values())

    def pools_by_team(self, depth: int) -> dict[str, pl.DataFrame]:
        """The pool of each team's runs, without documents that the sparse judgments name."""
        found = {}
        for team in self.names:
            pool = depth_pool({run: frame for run, frame in self.firsts.items() if self.teams[run] == team}, depth)
            keys = ["topic_id", "doc_id"]
            found[team] = pool if self.sparse is None else pool.join(self.sparse, on=keys, how="anti")
        return found


def read_inputs(sources: SimulationSources, options: SimulationOptions) -> Inputs:
    """Reads and checks the sources."""
    qrels = read_qrels_frame(sources.qrels)
    grades: dict[str, dict[str, int]] = {}
    for topic_id, doc_id, grade in qrels.select("topic_id", "doc_id", "relevance").iter_rows():
        grades.setdefault(topic_id, {})[doc_id] = grade
    if int(qrels["relevance"].max() or 0) < options.rel:  # type: ignore[arg-type]
        raise InputError(
            f"no document has a grade of {options.rel} or more",
            "give judgments with relevant documents, or lower `rel`",
            where=sources.qrels,
        )
    topics = _texts(sources, options.field, grades)
    notes: list[str] = []
    every = read_runs(sources.runs)
    found = check_topics(every, list(topics), subset=sources.pooling.subset)
    beyond = [run for run, frame in every.items() if frame["topic_id"].n_unique() > found[run]["topic_id"].n_unique()]
    if beyond:
        notes.append(f"Topics without judgments are left out of {len(beyond):,} runs: {first_few(beyond, _SHOWN)}.")
    lacking = {run: len(topics) - frame["topic_id"].n_unique() for run, frame in found.items()}
    if short := [f"{run} ({number:,})" for run, number in lacking.items() if number]:
        notes.append(f"{len(short):,} runs lack topics, which score as empty: {first_few(short, _SHOWN)}.")
    runs = {run: frame.select("topic_id", "doc_id", "score") for run, frame in found.items()}
    teams = teams_of(list(runs), sources.pooling.metadata, sources.pooling.team_prefix)
    if len(set(teams.values())) < 2:
        raise OptionError("metadata", "all runs are of one team", "leave-one-out needs two teams or more")
    if not sources.pooling.metadata and sources.pooling.team_prefix is None:
        notes.append("Nothing says which team made a run: every run counts as a team of its own.")
    sparse = None
    if sources.pooling.sparse_qrels is not None:
        wanted = pl.DataFrame({"topic_id": list(topics)}, schema={"topic_id": pl.String})
        sparse = read_qrels_frame(sources.pooling.sparse_qrels).join(wanted, on="topic_id", how="semi")
    official = None if sources.official is None else _official(sources.official, grades, notes)
    keys = ["topic_id", "doc_id"]
    firsts = {
        run: frame.join(first_documents(frame, sources.depth), on=keys, how="semi") for run, frame in runs.items()
    }
    return Inputs(
        sources=sources,
        runs=runs,
        firsts=firsts,
        teams=teams,
        names=tuple(dict.fromkeys(teams.values())),
        topics=topics,
        grades=grades,
        sparse=sparse,
        official=official,
        fingerprint=open_documents(sources.docs).fingerprint,
        notes=tuple(notes),
    )


def _texts(sources: SimulationSources, field_: str, grades: Mapping[str, object]) -> dict[str, str]:
    queries = {query.topic_id: query.text for query in topic_queries(sources.topics, field_)}
    for topic_id in grades:
        if not normalise(queries.get(topic_id, "")):
            raise InputError(
                f"topic {topic_id} of the qrels has no {field_} here", "complete the topics, or give another `field`",
                where=sources.topics,
            )  # fmt: skip
    return {topic_id: queries[topic_id] for topic_id in grades}


def _official(source: str, grades: Mapping[str, Mapping[str, int]], notes: list[str]) -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    differing = 0
    for topic_id, doc_id, grade in read_qrels_frame(source).select("topic_id", "doc_id", "relevance").iter_rows():
        if topic_id in grades:
            found.setdefault(topic_id, []).append(doc_id)
            differing += grades[topic_id].get(doc_id, 0) != grade
    if not found:
        raise InputError("none of its topics is one of the qrels", "give matching files", where=source)
    if differing:
        notes.append(f"{differing:,} official grades differ from the assessor's, whose are used.")
    return {topic_id: tuple(documents) for topic_id, documents in found.items()}
