"""Which topics are worth judging: those that the submitted runs find neither hopeless nor easy."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from truerank.core.plain import picked
from truerank.core.result import Result
from truerank.core.tables import Column, Table
from truerank.errors import InputError, OptionError
from truerank.measures import Evaluation, evaluate
from truerank.options import Flag, Options, OutFile, Range, Scoring, Seed, Source, Ties, command
from truerank.sources import TopicSet, read_qrels_frame, read_topics
from truerank.sources.inputs import inputs_of
from truerank.work.runs import Run
from truerank.work.runs import run as started

_CHOSEN: Final = "chosen"
#: A cutoff that no run reaches.
_DEEPEST: Final = 1 << 40


class TopicRow(NamedTuple):
    """One topic: how the runs do on it, and what became of it.

    `median` is the median reciprocal rank over all runs (a run that finds nothing has 0), None without judgments;
    `found` the number of runs that find something relevant down to the cutoff, `best_rank` and `median_rank` are the
    ranks over those runs; `decision` is "chosen" or why it was left out.
    """

    topic_id: str
    median: float | None
    found: int
    best_rank: int | None
    median_rank: float | None
    decision: str


@dataclass(frozen=True, eq=False, repr=False)
class TopicSelection(Result, shown_in="truerank.audits.track.page"):
    """What `select_topics` found.

    Attributes:
        topics: in the order of the topic source, or else of the qrels.
        runs: names of the runs.
        measure: the reciprocal rank that was used.
        policy: ties and missing topics.
        low, high: a topic is eligible where low < median ≤ high.
        n: how many were to be drawn; None for all that are eligible.
        seed: of the draw.
        out: the file that was written, if any.
    """

    topics: tuple[TopicRow, ...]
    runs: tuple[str, ...]
    measure: str
    policy: Scoring
    low: float
    high: float
    n: int | None
    seed: int
    out: Path | None = None

    @property
    def chosen(self) -> tuple[str, ...]:
        """The chosen topics, in order."""
        return tuple(row.topic_id for row in self.topics if row.decision == _CHOSEN)

    @property
    def decisions(self) -> dict[str, int]:
        """How many topics were chosen, and how many left out for each reason."""
        return dict(sorted(Counter(row.decision for row in self.topics).items(), key=lambda item: item[0] != _CHOSEN))

    def content(self) -> dict[str, Any]:
        """Everything but the names of files."""
        return picked(self, "chosen, decisions, measure, ties=policy.ties, low, high, n, seed, runs, topics")


@dataclass(frozen=True)
class TopicRule(Options):
    """Which topics are chosen.

    Attributes:
        low: a topic is eligible if its median lies above this bound.
        high: and not above this bound.
        n: draw so many of the eligible topics; a topic's place in the draw depends on the seed and its id alone.
        seed: of the draw.
        cutoff: results that the reciprocal rank looks at; 0 for all.
        by_score: order results by score; by default MS MARCO's official rules hold, by the rank column.
        ties: with `by_score`: how documents with equal scores are ordered.
    """

    low: Annotated[float, Range(at_least=0, below=1)] = 0.0
    high: Annotated[float, Range(above=0, at_most=1)] = 0.5
    n: Annotated[int | None, Range(at_least=1)] = None
    seed: Seed = 0
    cutoff: Annotated[int, Range(at_least=0)] = 10
    by_score: bool = False
    ties: Ties = "trec_eval"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.low < self.high:
            fault = f"must be below `high`, got {self.low:g} and {self.high:g}"
            raise OptionError("low", fault, "correct the bounds")


@command
def select_topics(
    run: Annotated[Sequence[str | Path], Flag(metavar="FILE", reads=list[str])],
    qrels: Source,
    *,
    rule: TopicRule = TopicRule(),
    topics: Annotated[str | None, Flag(metavar="SRC")] = None,
    out: OutFile = None,
) -> TopicSelection:
    """Chooses the topics that are worth judging: their median reciprocal rank over all runs is above 0, at most 0.5.

    Prints every topic with its median, the number of runs that found something, the best and the median rank, and
    whether it was chosen or why not.

    Args:
        run: TREC runs; repeat the option for several. One that lacks a topic has 0 there.
        qrels: the sparse judgments.
        rule: which topics are chosen.
        topics: the topics of the track; without them the topics are those of the qrels.
        out: the chosen topics, with their table and a manifest beside it.

    Returns:
        Every topic with its median and what became of it.

    Raises:
        InputError: an option, run or source is at fault, or fewer than n topics are eligible.

    Examples:

        truerank track select-topics --run a.run --run b.run --run c.run --qrels sparse.qrels

        truerank track select-topics --run a.run --run b.run --qrels sparse.qrels --topics topics.tsv -n 52
        --out judged.tsv

    Source: Craswell et al., Overview of the TREC 2019 Deep Learning Track, section 5.
    """
    if not run:
        raise OptionError("run", "no runs", "give one or more")
    target = None if out is None else Path(out)
    known = None if topics is None else read_topics(topics)
    judgments = read_qrels_frame(qrels)
    name = "RR" if rule.by_score else "RR_MSMARCO"
    policy = Scoring(ties=rule.ties if rule.by_score else "rank")
    measure = f"{name}@{rule.cutoff or _DEEPEST}" if name == "RR_MSMARCO" or rule.cutoff else name
    scores = evaluate(judgments, list(run), measure, policy)
    rows = _drawn(_rows(scores, judgments, known, rule.low, rule.high), rule.n, rule.seed)
    shown = measure if rule.cutoff else f"{name} (no cutoff)"
    result = TopicSelection(tuple(rows), scores.runs, shown, policy, rule.low, rule.high, rule.n, rule.seed, target)
    if target is not None:
        inputs = inputs_of(run=run, qrels=qrels, topics=topics)
        with started("track select-topics", inputs, vars(rule), target, file=True) as job:
            _write(result, known, job)
    return result


def _rows(
    scores: Evaluation, judgments: pl.DataFrame, known: TopicSet | None, low: float, high: float
) -> list[TopicRow]:
    """Every topic with its median; those that are eligible count as chosen."""
    relevant = set(judgments.filter(pl.col("relevance") > 0)["topic_id"].to_list())
    places = {topic: place for place, topic in enumerate(scores.topics)}
    values = scores.values[:, 0, :]
    wanted = list(scores.topics) if known is None else [topic.topic_id for topic in known.topics]
    if known is not None and not any(topic in places for topic in wanted):
        raise InputError(
            f"the qrels judge none of its topics (there: {scores.topics[0]}, here: {wanted[0]})",
            "give the topics of these qrels",
            where=known.name,
        )
    rows = []
    for topic in wanted:
        if topic not in places:
            rows.append(TopicRow(topic, None, 0, None, None, "no judgments"))
            continue
        row = _row(topic, values[:, places[topic]])
        if topic not in relevant:
            row = row._replace(decision="nothing relevant is judged")
        elif row.median is not None and not row.median > low:
            row = row._replace(decision=f"median not above {low:g}")
        elif row.median is not None and row.median > high:
            row = row._replace(decision=f"median above {high:g}")
        rows.append(row)
    return rows


def _row(topic: str, values: NDArray[np.float64]) -> TopicRow:
    found = values[values > 0]
    median = float(np.median(values))
    if not len(found):
        return TopicRow(topic, median, 0, None, None, _CHOSEN)
    ranks = np.rint(1 / found)
    return TopicRow(topic, median, len(found), int(ranks.min()), float(np.median(ranks)), _CHOSEN)


def _drawn(rows: list[TopicRow], n: int | None, seed: int) -> list[TopicRow]:
    """The rows with n of the eligible topics chosen."""
    eligible = [row.topic_id for row in rows if row.decision == _CHOSEN]
    if n is None:
        return rows
    if len(eligible) < n:
        raise OptionError(
            "n",
            f"{len(eligible):,d} topics are eligible, {n:,d} are wanted",
            "ask for fewer, or widen `low` and `high`",
        )
    order = sorted(eligible, key=lambda topic: hashlib.sha256(f"{seed}\t{topic}".encode()).digest())
    kept = frozenset(order[:n])
    return [
        row._replace(decision="not drawn") if row.decision == _CHOSEN and row.topic_id not in kept else row
        for row in rows
    ]


def _write(result: TopicSelection, known: TopicSet | None, run: Run) -> None:
    titles = {} if known is None else {topic.topic_id: " ".join(topic.title.split()) for topic in known.topics}
    name = "" if result.out is None else result.out.name
    with run.output(name) as stream:
        for topic in result.chosen:
            stream.write((f"{topic}\t{titles[topic]}\n" if known is not None else f"{topic}\n").encode())
    run.text(f"{name}.topics.csv", Table("", tuple(map(Column, TopicRow._fields)), result.topics).csv())
    left_out = Counter(row.decision for row in result.topics if row.decision != _CHOSEN)
    run.skipped = {"topics": dict(sorted(left_out.items()))}
