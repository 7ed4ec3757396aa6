"""What a simulation of a track's judging reads, and what can be chosen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from truerank.audits.reusability.learning.active import LearnerOptions
from truerank.audits.reusability.simulation.standings import simulated_measures
from truerank.errors import InputError

__all__ = ["DEFAULT_RULES", "UNLIKE_SYSTEMS", "SimulationOptions", "SimulationSources", "unlike_systems"]

#: Beside the official size, which is always there.
DEFAULT_RULES: Final = ("budget:400", "budget:500", "heuristic")
#: Systems unlike those that were pooled, and documents up to which "auto" makes each: an encoder reads some hundred
#: documents a second.
UNLIKE_SYSTEMS: Final[Mapping[str, int]] = {
    "dense": 50_000, "latent": 1_000_000, "lexical": 10_000_000, "feedback": 1_000_000,
}  # fmt: skip


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
        unlike: systems unlike those that were pooled, which are made from the collection and tried: names of
            `UNLIKE_SYSTEMS`; ("auto",) for those that the size of the collection allows, ("none",) for none.
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
    unlike: tuple[str, ...] = ("auto",)
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
        unlike_systems(self.unlike, 0)

    @property
    def seeds(self) -> tuple[int, ...]:
        """The official seed, then that of each trial."""
        return tuple(range(self.seed, self.seed + self.trials + 1))

    def json(self) -> dict[str, Any]:
        """The choices by name."""
        return asdict(self) | {"rules": list(self.rules), "unlike": list(self.unlike)}


def unlike_systems(asked: Sequence[str], documents: int) -> tuple[tuple[str, ...], str]:
    """Which unlike systems are made, and a note on those that the size of the collection rules out.

    Args:
        asked: see `SimulationOptions`.
        documents: of the collection.

    Raises:
        InputError: there is no such system.
    """
    if tuple(asked) == ("none",):
        return (), ""
    if tuple(asked) != ("auto",):
        unknown = [name for name in asked if name not in UNLIKE_SYSTEMS]
        if unknown or not asked:
            raise InputError(
                f"no unlike system '{', '.join(unknown)}'",
                f"name some of {', '.join(UNLIKE_SYSTEMS)}, or auto or none",
                where="--unlike",
            )
        return tuple(dict.fromkeys(asked)), ""
    made = tuple(name for name, limit in UNLIKE_SYSTEMS.items() if documents <= limit)
    left = [name for name in UNLIKE_SYSTEMS if name not in made]
    note = (
        f"Unlike systems that take long for {documents:,} documents were not made: {', '.join(left)}. Ask for them "
        f"with --unlike {','.join(UNLIKE_SYSTEMS)}."
    )
    return made, note if left else ""
