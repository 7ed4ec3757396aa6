"""Depth pools, and `pool build`: which documents are judged, what each team brought, and who judges what."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal, NamedTuple

import numpy as np
import polars as pl

from truerank.core.result import Result
from truerank.errors import InputError, OptionError
from truerank.measures.rankings import among_first
from truerank.options import Flag, Options, Out, Range, Seed, command
from truerank.sources import parse, read_qrels_frame, read_run_frame, read_topics, unique_names
from truerank.sources.inputs import inputs_of
from truerank.sources.run_tables import RowFilter, read_metadata
from truerank.text.printable import first_few
from truerank.work.artifacts import digest
from truerank.work.progress import Progress
from truerank.work.publishing import publish
from truerank.work.runs import run as started

if TYPE_CHECKING:
    from truerank.audits.pool.items import Batch


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
    if depth is not None:
        # Comparing ids takes most of the time: only those that may be among the first are compared.
        narrow = narrow.filter(among_first(narrow, depth))
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
    found = {run: known.of(run).group or (run.partition(prefix)[0] if prefix and prefix in run else "") for run in runs}
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


class PoolTopic(NamedTuple):
    """One topic's pool: its size, documents that only sparse judgments name, those that one team alone brought, and
    how many are judged and relevant."""

    topic_id: str
    documents: int
    sparse_only: int
    unique: int
    judged: int
    relevant: int


class PoolTeam(NamedTuple):
    """What one team brought: documents of the pool that its runs hold (down to the depth), those that no other team
    brought, and the relevant ones among both."""

    team: str
    runs: int
    documents: int
    unique: int
    relevant: int
    unique_relevant: int


@dataclass(frozen=True, eq=False, repr=False)
class Pool(Result, shown_in="truerank.audits.pool.page"):
    """The pools of all topics.

    Attributes:
        documents: topic_id, doc_id, order (of judging, within the topic), place (the best one in a run, null where only
            sparse judgments name it), runs and teams (how many have it), sparse, grade (null where nobody judged it).
        topics: their pools.
        teams: what each brought.
        work: who judges what.
        depth: how far down the runs were looked at.
        choice: how documents were chosen.
        annotators: who judges.
        without: topics that no run has.
        graded: whether judgments were given.
        out: the folder that was written, if any.
    """

    documents: pl.DataFrame
    topics: tuple[PoolTopic, ...]
    teams: tuple[PoolTeam, ...]
    work: tuple[Batch, ...]
    depth: int
    choice: PoolMethod
    annotators: tuple[str, ...]
    without: tuple[str, ...] = ()
    graded: bool = False
    out: Path | None = None

    def __len__(self) -> int:
        return len(self.documents)


def topic_rows(documents: pl.DataFrame, names: Sequence[str], rel: int = 1) -> tuple[PoolTopic, ...]:
    """The sizes of the pools, in the order of the names."""
    counted = documents.group_by("topic_id").agg(
        pl.len().alias("documents"),
        (pl.col("runs") == 0).sum().alias("sparse_only"),
        (pl.col("teams") == 1).sum().alias("unique"),
        pl.col("grade").is_not_null().sum().alias("judged"),
        (pl.col("grade") >= rel).sum().alias("relevant"),
    )
    found = {row[0]: PoolTopic(row[0], *map(int, row[1:])) for row in counted.iter_rows()}
    return tuple(found[name] for name in names)


def team_rows(
    documents: pl.DataFrame, members: pl.DataFrame, teams: Mapping[str, str], rel: int = 1
) -> tuple[PoolTeam, ...]:
    """What each team brought, in the order in which the runs name them."""
    brought = members.select("topic_id", "doc_id", "team").unique()
    brought = brought.join(documents.select("topic_id", "doc_id", "teams", "grade"), on=["topic_id", "doc_id"])
    alone, relevant = pl.col("teams") == 1, (pl.col("grade") >= rel).fill_null(False)
    counted = brought.group_by("team").agg(
        pl.len().alias("documents"),
        alone.sum().alias("unique"),
        relevant.sum().alias("relevant"),
        (alone & relevant).sum().alias("unique_relevant"),
    )
    found = {row[0]: tuple(map(int, row[1:])) for row in counted.iter_rows()}
    sizes = {team: sum(one == team for one in teams.values()) for team in dict.fromkeys(teams.values())}
    return tuple(PoolTeam(team, size, *found.get(team, (0, 0, 0, 0))) for team, size in sizes.items())


_NAME: Final = re.compile(r"\w[\w.@+-]{0,79}")


@command
def build(
    run: Annotated[Sequence[str | Path], Flag(metavar="FILE", reads=list[str])],
    *,
    topics: Annotated[str | None, Flag(metavar="SRC")] = None,
    docs: Annotated[str | None, Flag(metavar="SRC")] = None,
    qrels: Annotated[str | None, Flag(metavar="SRC")] = None,
    annotators: Annotated[Sequence[str], Flag(metavar="NAME", reads=list[str])] = ("annotator",),
    pooling: Pooling = Pooling(),
    choice: PoolMethod = PoolMethod(),
    out: Out = None,
    progress: Progress | None = None,
) -> Pool:
    """Builds pools over runs, and the batches in which they are judged.

    The depth method takes the first documents of every run; move-to-front and maxmean (the bandit of the Common Core
    track) follow what is found and need judgments: qrels, or a judging store, where the documents to judge next are
    written. Documents of sparse judgments are added. Batches are items for `judge new` where documents and topics are
    given, else runs.

    Args:
        run: TREC runs; repeat the option for several.
        topics: the topics that are pooled; by default all of the runs.
        docs: the collection, for batches with texts.
        qrels: what is judged: qrels (what they lack is not relevant) or a judging store (what it lacks is not judged).
        annotators: who judges; repeat the option, or separate names by commas. Each topic goes to one of them.
        pooling: what is pooled.
        choice: how documents are chosen.
        out: a folder for pool.csv, topics.csv, teams.csv, batches.csv, the batches and manifest.json.
        progress: is told how many documents were read.

    Returns:
        The pools.

    Raises:
        InputError: a source or an option is at fault; a run with topics that are not known, or without a team; a method
            that follows what is found without judgments; judgments without a relevant document.

    Examples:

        truerank pool build --run runs/a_1.run --run runs/b_1.run --team-prefix _ --out pool/

        truerank pool build --run runs/a1.run --run runs/b1.run --metadata teams.tsv --sparse-qrels clicks.qrels
        --topics t.tsv --docs docs.jsonl --annotators ann,bob --out pool/

        truerank pool build --run runs/a1.run --run runs/b1.run --method maxmean --qrels judged --batch 10 --out next/

    Source: Craswell et al., Overview of the TREC 2019 Deep Learning Track, section 5; for the methods, `adaptive_pool`.
    """
    people = _people(annotators)
    if docs is not None and topics is None:
        raise OptionError("docs", "batches with texts need the topics' texts too", "give `topics`")
    if pooling.subset and topics is None:
        raise OptionError("subset", "no topics are named", "give `topics`, or leave `subset` out")
    if choice.method != "depth" and qrels is None:
        raise OptionError("qrels", f"{choice.method} follows judgments", "give qrels or a store")
    known = {} if topics is None else {one.topic_id: one for one in read_topics(topics).topics}
    frames = check_topics(read_runs(run), list(known) or None, subset=pooling.subset)
    made = _made(frames, list(known), qrels, (pooling, choice), people)
    if out is None:
        return made
    from truerank.audits.pool.items import write_batches

    inputs = inputs_of(
        run=run, topics=topics, docs=docs, qrels=qrels, metadata=pooling.metadata, sparse_qrels=pooling.sparse_qrels
    )
    options = {"annotators": people, "pooling": replace(pooling, depth=made.depth), "choice": choice}
    with started("pool build", inputs, options, out) as job:
        made = replace(made, out=job.folder, work=write_batches(job, made.work, known, docs, progress))
        job.skipped = {"topics_without_runs": list(made.without)}
        publish(made, job)
    return made


def _people(given: Sequence[str]) -> tuple[str, ...]:
    """Names of annotators, each of which can be that of a file."""
    names = tuple(name.strip() for one in given for name in one.split(",") if name.strip())
    if not names:
        raise OptionError("annotators", "nobody judges", "name an annotator")
    for name in names:
        if not _NAME.fullmatch(name):
            raise OptionError("annotators", f"'{name}' cannot be the name of a file", "use letters, digits and . @ + -")
        if names.count(name) > 1:
            raise OptionError("annotators", f"'{name}' is named twice", "name everybody once")
    return names


def _made(
    frames: Mapping[str, pl.DataFrame],
    topics: Sequence[str],
    qrels: str | None,
    options: tuple[Pooling, PoolMethod],
    people: tuple[str, ...],
) -> Pool:
    pooling, choice = options
    teams = teams_of(list(frames), pooling.metadata, pooling.team_prefix)
    depth = choice.reach(pooling.depth)
    members = pl.concat(
        [
            first_documents(frame, depth).with_columns(run=pl.lit(name), team=pl.lit(teams[name]))
            for name, frame in frames.items()
        ]
    )
    sparse = _sparse(pooling.sparse_qrels, members)
    # Here, as above: a check takes the first documents of runs from this module, and builds no pool.
    from truerank.audits.pool.items import shared_out
    from truerank.judging import is_store

    live = qrels is not None and parse(qrels).scheme == "file" and is_store(parse(qrels).path)
    grades = _grades(qrels, choice.rel, live)
    order = _adaptive(members, sparse, grades, choice, live) if choice.method != "depth" else None
    documents = _described(members, sparse, grades, order, live)
    names = [name for name in topics if name in set(documents["topic_id"])] or sorted(set(documents["topic_id"]))
    open_ones = documents.filter(pl.col("grade").is_null()) if live else documents
    return Pool(
        documents=documents,
        topics=topic_rows(documents, names, choice.rel),
        teams=team_rows(documents, members, teams, choice.rel),
        work=shared_out(open_ones, names, people),
        depth=depth,
        choice=choice,
        annotators=people,
        without=tuple(name for name in topics if name not in names),
        graded=qrels is not None,
    )


def _sparse(source: str | None, members: pl.DataFrame) -> pl.DataFrame:
    """The documents that sparse judgments name, of topics that some run has."""
    if source is None:
        return pl.DataFrame(schema={"topic_id": pl.String, "doc_id": pl.String})
    named = read_qrels_frame(source).select("topic_id", "doc_id").unique(maintain_order=True)
    return named.join(members, on="topic_id", how="semi", maintain_order="left")


def _grades(source: str | None, rel: int, live: bool) -> dict[tuple[str, str], int]:
    if source is None:
        return {}
    from truerank.audits.pool.items import read_grades

    frame = read_grades(parse(source).path, allow_none=True) if live else read_qrels_frame(source)
    if not live and not (frame["relevance"] >= rel).any():
        raise InputError(
            f"no document has the grade {rel} or a higher one",
            "give judgments with relevant documents, or a lower `rel`",
            where=source,
        )
    return {
        (topic, doc): int(grade) for topic, doc, grade in frame.select("topic_id", "doc_id", "relevance").iter_rows()
    }


def _adaptive(
    members: pl.DataFrame, sparse: pl.DataFrame, grades: Mapping[tuple[str, str], int], options: PoolMethod, live: bool
) -> pl.DataFrame:
    """The documents in the order in which a method takes them, the sparse ones first: topic_id, doc_id, order."""
    firsts: dict[str, list[str]] = {}
    for topic, doc_id in sparse.iter_rows():
        firsts.setdefault(topic, []).append(doc_id)
    rows: list[tuple[str, str, int]] = []
    shallow = members.filter(pl.col("place") <= DEPTH)
    sizes = dict(shallow.group_by("topic_id").agg(pl.col("doc_id").n_unique()).iter_rows())
    for (topic,), part in members.sort("topic_id", maintain_order=True).group_by("topic_id", maintain_order=True):
        rankings = {
            str(run): own["doc_id"].to_list() for (run,), own in part.group_by("run", maintain_order=True)
        }  # fmt: skip
        already = firsts.get(str(topic), [])
        budget = (options.budget or int(sizes[topic])) - len(already)
        found = adaptive_pool(
            {run: [one for one in ranking if one not in set(already)] for run, ranking in rankings.items()},
            lambda doc_id, topic=topic: grades.get((topic, doc_id), None if live else 0),  # type: ignore[misc]
            max(1, budget), method=options.method, fading=options.fading, rel=options.rel,
            batch=options.batch, seed=options.seed, topic_id=str(topic),
        )  # fmt: skip
        rows += [(str(topic), doc_id, place) for place, doc_id in enumerate((*already, *found.doc_ids), start=1)]
    return pl.DataFrame(rows, schema={"topic_id": pl.String, "doc_id": pl.String, "order": pl.Int64}, orient="row")


def _described(
    members: pl.DataFrame,
    sparse: pl.DataFrame,
    grades: Mapping[tuple[str, str], int],
    order: pl.DataFrame | None,
    live: bool,
) -> pl.DataFrame:
    """One row for each pooled document; without an order the documents of a topic stand by their ids."""
    keys = ["topic_id", "doc_id"]
    if order is None:
        pairs = pl.concat([members.select(keys), sparse.select(keys)]).unique().sort(keys)
        order = pairs.with_columns((pl.int_range(pl.len()).over("topic_id") + 1).alias("order"))
    brought = members.group_by(keys).agg(
        pl.col("place").min(), pl.col("run").n_unique().alias("runs"), pl.col("team").n_unique().alias("teams")
    )
    found = order.join(brought, on=keys, how="left", maintain_order="left")
    found = found.join(sparse.with_columns(sparse=pl.lit(True)), on=keys, how="left", maintain_order="left")
    values = [grades.get(pair, None if live or not grades else 0) for pair in found.select(keys).iter_rows()]
    return found.with_columns(
        pl.col("runs").fill_null(0),
        pl.col("teams").fill_null(0),
        pl.col("sparse").fill_null(False),
        pl.Series("grade", values, dtype=pl.Int64),
    )
