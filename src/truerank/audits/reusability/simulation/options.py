"""What a simulation of a track's judging reads, and what can be chosen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from truerank.audits.reusability.learning.active import LearnerOptions
from truerank.audits.reusability.simulation.standings import simulated_measures
from truerank.errors import InputError

__all__ = ["DEFAULT_RULES", "SimulationOptions", "SimulationSources"]

#: Beside the official size, which is always there.
DEFAULT_RULES: Final = ("budget:400", "budget:500", "heuristic")


@dataclass(frozen=True)
class SimulationSources:
    """What a simulation reads.

    Attributes:
        runs: TREC runs; not truncated.
        qrels: what the assessor says; a document that is not there is not relevant.
        topics: the texts of the topics.
        docs: the collection.
        metadata: tables of the runs with the team of each.
        team_prefix: the sign up to which a run's name is its team's, where no table says it. Without tables and sign
            every run is a team of its own.
        subset: pass over topics of runs that have no judgments.
        sparse: judgments whose documents are added to every pool.
        official: the qrels of the track; None has them made by the track's procedure.
    """

    runs: Sequence[str | Path]
    qrels: str
    topics: str
    docs: str
    metadata: Sequence[str | Path] = ()
    team_prefix: str | None = None
    subset: bool = False
    sparse: str | None = None
    official: str | None = None

    def names(self) -> Mapping[str, Sequence[str]]:
        """The sources by what they are."""
        return {
            "runs": [str(path) for path in self.runs],
            "qrels": [self.qrels],
            "topics": [self.topics],
            "docs": [self.docs],
            "metadata": [str(path) for path in self.metadata],
            "sparse": [self.sparse] if self.sparse else [],
            "official": [self.official] if self.official else [],
        }


@dataclass(frozen=True)
class SimulationOptions:
    """What can be chosen.

    Attributes:
        trials: how many; their seeds follow the official one.
        seed: of the official judging.
        depth: documents of each run and topic in the pools.
        length: judgments of a trace at most.
        share: of the collection that a trace holds at most; the pool is judged in any case.
        measures: what runs are ranked by, see `standings.simulated_measures`.
        rules: stopping rules beside the original size, see `stopping_specs.load_rule`.
        official_rule: makes the official qrels where none are given.
        topic_field: of the topics: what the learner starts from.
        learner: see `LearnerOptions`; its lowest relevant grade is also that of binary measures.

    Raises:
        InputError: a number out of its range, or an unknown measure.
    """

    trials: int = 10
    seed: int = 0
    depth: int = 10
    length: int = 2500
    share: float = 1.0
    measures: str = "AP P@10"
    rules: tuple[str, ...] = DEFAULT_RULES
    official_rule: str = "track"
    topic_field: str = "title"
    learner: LearnerOptions = field(default_factory=LearnerOptions)

    def __post_init__(self) -> None:
        for name, value in (("trials", self.trials), ("depth", self.depth), ("length", self.length)):
            if value < 1:
                raise InputError(f"{name}: {value}", "give 1 or more", where=f"--{name}")
        if self.seed < 0:
            raise InputError(f"the seed is {self.seed}", "give 0 or more", where="--seed")
        if not 0 < self.share <= 1:
            raise InputError(f"a share of {self.share:g}", "give more than 0 and at most 1", where="--share")
        simulated_measures(self.measures)

    @property
    def seeds(self) -> tuple[int, ...]:
        """The official seed, then that of each trial."""
        return tuple(range(self.seed, self.seed + self.trials + 1))

    def json(self) -> dict[str, Any]:
        """The choices by name."""
        return asdict(self) | {"rules": list(self.rules)}
