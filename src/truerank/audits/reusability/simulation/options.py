"""What a simulation of a track's judging reads, and what can be chosen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Final

from truerank.audits.reusability.learning.active import LearnerOptions
from truerank.audits.reusability.pools.options import DEPTH, Pooling
from truerank.audits.reusability.simulation.standings import simulated_measures
from truerank.errors import OptionError
from truerank.options import Flag, Options, Range, Seed
from truerank.records import Input
from truerank.sources.inputs import inputs_of

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
    """What a simulation reads.

    Attributes:
        runs: TREC runs; not truncated.
        qrels: what the assessor says; a document that is not there is not relevant.
        topics: the texts of the topics.
        docs: the collection.
        official: the qrels of the track; None has them made by the track's procedure.
        pooling: what is pooled.
    """

    runs: tuple[str, ...]
    qrels: str
    topics: str
    docs: str
    official: str | None
    pooling: Pooling

    @property
    def depth(self) -> int:
        """Documents of each run and topic in the pools."""
        return self.pooling.depth or DEPTH

    def inputs(self) -> tuple[Input, ...]:
        """All of it by the options that name it, with hashes."""
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
            heuristic:cap=1000, track:increment=0.5,bound=0.6, budget:400, MODULE:FUNCTION or FILE.py:FUNCTION.
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
