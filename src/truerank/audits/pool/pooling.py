"""What is pooled: runs and their teams, by depth or by following what is found."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal, NamedTuple

import numpy as np
import polars as pl

from truerank.errors import InputError, OptionError
from truerank.options import Flag, Options, Range, Seed
from truerank.sources import parse, read_run_frame, unique_names
from truerank.sources.run_tables import RowFilter, read_metadata
from truerank.text.printable import first_few
from truerank.work.artifacts import digest

#: The columns of a pool.
POOL_SCHEMA = {"topic_id": pl.String, "doc_id": pl.String}


def depth_pool(runs: Mapping[str, pl.DataFrame], depth: int, *, sparse: pl.DataFrame | None = None) -> pl.DataFrame:
    """The documents that some run has among its first, and those that sparse judgments name.

    Args:
        runs: by name; columns topic_id, doc_id, score (equal scores by document id descending, as trec_eval reads).
        depth: documents of each run and topic.
        sparse: judgments whose documents are added; columns topic_id, doc_id. Topics that no run has are left out.

    Returns:
        Columns topic_id and doc_id; each pair once, ordered by topic, then document id.

    Raises:
        InputError: no run, or a depth below 1.
    """
    if not runs:
        raise OptionError("run", "no runs", "give one or more")
    if depth < 1:
        raise OptionError("depth", f"the depth is {depth}", "give 1 or more")
    pool = pl.concat([first_documents(frame, depth).select("topic_id", "doc_id") for frame in runs.values()])
    if sparse is not None:
        pool = pl.concat([pool, sparse.select("topic_id", "doc_id").join(pool, on="topic_id", how="semi")])
    return pool.unique().sort("topic_id", "doc_id")


def first_documents(run: pl.DataFrame, depth: int | None = None) -> pl.DataFrame:
    # As trec_eval reads scores: in 32 bits.
    narrow = run.with_columns(pl.col("score").cast(pl.Float32))
    ordered = narrow.sort("topic_id", "score", "doc_id", descending=[False, True, True])
    ordered = ordered.select("topic_id", "doc_id", (pl.int_range(pl.len()).over("topic_id") + 1).alias("place"))
    return ordered if depth is None else ordered.filter(pl.col("place") <= depth)


# Pools that follow what is found: move-to-front, and the bandit MaxMean that the Common Core track used.
#
# Both look at the runs one document at a time and go on with a run as long as it finds something. Ties between runs
# are broken by the seed. Documents that were judged are passed over and change nothing.

Method = Literal["depth", "move-to-front", "maxmean"]
METHODS: Final = ("depth", "move-to-front", "maxmean")


class Ordered(NamedTuple):
    """A topic's documents in the order in which they are judged.

    `doc_ids` and `grades` belong together, the grade is None where nobody judged the document yet; `runs` says which
    run brought each.
    """

    doc_ids: tuple[str, ...]
    grades: tuple[int | None, ...]
    runs: tuple[str, ...]

    @property
    def pending(self) -> tuple[str, ...]:
        """The documents that are to be judged next."""
        return tuple(doc_id for doc_id, grade in zip(self.doc_ids, self.grades, strict=True) if grade is None)


def adaptive_pool(
    rankings: Mapping[str, Sequence[str]],
    judge: Callable[[str], int | None],
    budget: int,
    *,
    method: Method = "maxmean",
    fading: float = 1.0,
    rel: int = 1,
    batch: int = 1,
    seed: int = 0,
    topic_id: str = "",
) -> Ordered:
    """The documents of a topic that are judged, one after the other.

    Move-to-front: all runs begin with one priority; the first takes documents from its top until one is not relevant,
    then its priority falls by one. MaxMean: a run's worth is the mean of a Beta distribution, (1 + relevant) /
    (2 + judged) over the documents it brought; the run of the largest mean brings the next. With a fading below 1
    earlier documents count less (0: only the last one), which is the non-stationary variant.

    Args:
        rankings: document ids, the best first, by run.
        judge: the grade of a document; None where it is not judged yet. Such a document is taken, and its run is left
            as it was.
        budget: documents at most.
        method: "move-to-front" or "maxmean".
        fading: what a document's weight is multiplied by with every later one of its run.
        rel: the lowest grade that counts as relevant.
        batch: documents without a judgment after which it ends.
        seed: of ties.
        topic_id: the topic, so that ties fall differently in each.

    Returns:
        The documents.

    Raises:
        InputError: an unknown method, a fading outside 0 to 1, or a budget below 1.

    Source: Cormack, Palmer, Clarke, Efficient construction of large test collections (SIGIR 1998); Losada, Parapar,
    Barreiro, Multi-armed bandits for adjudicating documents (Information Processing and Management, 2017).
    """
    if method not in METHODS[1:]:
        raise OptionError("method", f"no method '{method}'", f"one of {', '.join(METHODS)}")
    if not 0 <= fading <= 1 or budget < 1 or batch < 1:
        raise OptionError("method", "a fading outside 0 to 1, or a budget or batch below 1", "correct it")
    key = int(digest([seed, topic_id])[:16], 16)
    order = np.random.default_rng(key).permutation(len(rankings))
    arms = [_Arm(name, ranking, int(place)) for (name, ranking), place in zip(rankings.items(), order, strict=True)]
    taken: dict[str, tuple[int | None, str]] = {}
    pending = 0
    while len(taken) < budget and pending < batch:
        live = [arm for arm in arms if arm.advance(taken)]
        if not live:
            break
        arm = max(live, key=lambda arm: (arm.priority if method == "move-to-front" else arm.mean, -arm.place))
        doc_id = arm.take()
        grade = judge(doc_id)
        taken[doc_id] = grade, arm.name
        if grade is None:
            pending += 1
        else:
            arm.learn(grade >= rel, fading)
    documents = tuple(taken)
    return Ordered(documents, tuple(grade for grade, _ in taken.values()), tuple(run for _, run in taken.values()))


@dataclass
class _Arm:
    """A run on its way down."""

    name: str
    ranking: Sequence[str]
    place: int
    at: int = 0
    priority: int = 0
    relevant: float = 0.0
    judged: float = 0.0

    @property
    def mean(self) -> float:
        return (1 + self.relevant) / (2 + self.judged)

    def advance(self, taken: Mapping[str, object]) -> bool:
        """Passes over documents that were taken; whether one is left."""
        while self.at < len(self.ranking) and self.ranking[self.at] in taken:
            self.at += 1
        return self.at < len(self.ranking)

    def take(self) -> str:
        self.at += 1
        return self.ranking[self.at - 1]

    def learn(self, relevant: bool, fading: float) -> None:
        """Takes in what was said about the document that it brought last."""
        self.relevant = fading * self.relevant + relevant
        self.judged = fading * self.judged + 1
        self.priority -= not relevant


#: Documents of each run in a depth pool, and how far down the other methods follow a run, where nothing is said.
DEPTH: Final = 10
_FOLLOWED: Final = 100


@dataclass(frozen=True)
class Pooling(Options):
    """What is pooled.

    Attributes:
        depth: documents of each run and topic in the pools, by default 10; with a method that follows judgments, how
            far down runs are followed, by default 100.
        metadata: tables of run and team; without them and `team_prefix` every run is a team of its own.
        team_prefix: where no table says it, a run's name up to this sign is its team's; a hyphen is given as
            --team-prefix=-.
        subset: pass over topics of runs that are not pooled.
        sparse_qrels: judgments whose documents are added to the pools.
    """

    depth: Annotated[int | None, Range(at_least=1)] = None
    metadata: Annotated[tuple[str, ...], Flag(metavar="FILE", reads=list[str])] = ()
    team_prefix: Annotated[str | None, Flag(metavar="SIGN")] = None
    subset: bool = False
    sparse_qrels: Annotated[str | None, Flag(metavar="SRC")] = None


@dataclass(frozen=True)
class PoolMethod(Options):
    """How documents are chosen.

    Attributes:
        method: depth takes the first documents of every run; move-to-front and maxmean (the bandit of the Common Core
            track) follow what is found and need `qrels`.
        rel: the lowest grade that counts as relevant.
        budget: with move-to-front and maxmean, documents of a topic; by default as many as its pool of depth 10 has.
        fading: with maxmean, what the weight of a document is multiplied by with every later one of its run.
        batch: with a judging store, documents of a topic to judge next.
        seed: of ties between runs.
    """

    method: Method = "depth"
    rel: Annotated[int, Range(at_least=1)] = 1
    budget: Annotated[int | None, Range(at_least=1)] = None
    fading: Annotated[float, Range(at_least=0, at_most=1)] = 1.0
    batch: Annotated[int, Range(at_least=1)] = 10
    seed: Seed = 0

    def reach(self, depth: int | None) -> int:
        """How far down the runs are looked at.

        Args:
            depth: of `Pooling`.
        """
        return depth or (DEPTH if self.method == "depth" else _FOLLOWED)


_SHOWN: Final = 5


def read_runs(paths: Sequence[str | Path]) -> dict[str, pl.DataFrame]:
    if not paths:
        raise OptionError("run", "no runs", "give one or more")
    names = unique_names([parse(str(path)) for path in paths])
    columns = ["topic_id", "doc_id", "rank", "score"]
    return {name: read_run_frame(path).select(columns) for name, path in zip(names, paths, strict=True)}


def teams_of(runs: Sequence[str], metadata: Sequence[str | Path] = (), prefix: str | None = None) -> dict[str, str]:
    """The team of each run.

    Args:
        runs: their names.
        metadata: tables with a column of runs and one of teams (team, group, participant, …).
        prefix: the sign up to which a run's name is its team's name, where no table says it.

    Returns:
        Team by run, in the order of the runs. Without tables and prefix every run is a team of its own.

    Raises:
        InputError: a run whose team is not said.
    """
    if not metadata and prefix is None:
        return {run: run for run in runs}
    known = read_metadata(metadata, RowFilter())
    found = {run: known.of(run).group or _prefix(run, prefix) for run in runs}
    missing = [run for run, team in found.items() if not team]
    if missing:
        rule = f" and no '{prefix}' in its name" if prefix else ""
        raise OptionError(
            "metadata" if metadata else "team_prefix",
            f"no team for the run {first_few(missing, _SHOWN)}{rule}",
            "name its team in a table (`metadata`, with columns run and team), or give another `team_prefix`",
        )
    return found


def check_topics(
    runs: Mapping[str, pl.DataFrame], topics: Sequence[str] | None, *, subset: bool = False
) -> dict[str, pl.DataFrame]:
    """The runs with the topics that are pooled."""
    if topics is None:
        return dict(runs)
    wanted = pl.DataFrame({"topic_id": list(topics)}, schema={"topic_id": pl.String})
    kept = {}
    for name, frame in runs.items():
        inside = frame.join(wanted, on="topic_id", how="semi", maintain_order="left")
        unknown = frame["topic_id"].unique(maintain_order=True)
        unknown = unknown.filter(~unknown.is_in(wanted["topic_id"].implode()))
        if not len(inside):
            raise InputError(
                "the run has none of the topics", f"it has {first_few(unknown.to_list(), _SHOWN)}", where=name
            )
        if len(unknown) and not subset:
            raise InputError(
                f"the run has topics that are not known ({len(unknown):,}): {first_few(unknown.to_list(), _SHOWN)}",
                "give the topics of the run, or pass over these with `subset`",
                where=name,
            )
        kept[name] = inside
    return kept


def _prefix(run: str, prefix: str | None) -> str:
    return run.partition(prefix)[0] if prefix and prefix in run else ""
