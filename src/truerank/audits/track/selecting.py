"""Which topics are worth judging: those that the submitted runs find neither hopeless nor easy."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

import truerank
from truerank.audits.outputs import refuse_overwrite, written
from truerank.errors import InputError
from truerank.measures import Evaluation, Policy, evaluate
from truerank.measures.policy import Ties
from truerank.reports.tables import Column, Table
from truerank.sources import TopicSet, compressed, parse, read_qrels_frame, read_topics
from truerank.work.artifacts import hash_file, write_text

__all__ = ["Selection", "TopicRow", "select_topics"]

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


@dataclass(frozen=True)
class Selection:
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
    policy: Policy
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

    def table(self) -> Table:
        """One row per topic."""
        columns = (
            Column("topic"),
            Column("median RR", align="right", format=".4f"),
            Column(f"of {len(self.runs):,d}", ("runs that found it",), align="right", format=",d"),
            Column("best", ("rank",), align="right", format=",d"),
            Column("median", ("rank",), align="right", format="g"),
            Column("decision"),
        )
        counts = ", ".join(f"{decision} {count:,d}" for decision, count in self.decisions.items())
        drawn = "" if self.n is None else f" {self.n:,d} of the eligible topics were drawn with seed {self.seed}."
        return Table(
            f"{len(self.chosen):,d} of {len(self.topics):,d} topics are chosen.",
            columns,
            tuple(tuple(row) for row in self.topics),
            notes=(
                f"Eligible: {self.low:g} < median ≤ {self.high:g}.{drawn} Topics: {counts}.",
                f"Median of {self.measure} over {len(self.runs):,d} runs; of an even number of runs the mean of the "
                "middle two.",
                *self.policy.sentences()[:2],
            ),
        )

    def text(self) -> str:
        """The table for a terminal."""
        return self.table().text()

    def json(self) -> dict[str, Any]:
        """Everything, as plain numbers and texts."""
        return {"out": None if self.out is None else str(self.out), **self.content()}

    def content(self) -> dict[str, Any]:
        """Everything but the names of files."""
        return {
            "chosen": list(self.chosen),
            "decisions": self.decisions,
            "measure": self.measure,
            "ties": self.policy.ties,
            "low": self.low,
            "high": self.high,
            "n": self.n,
            "seed": self.seed,
            "runs": list(self.runs),
            "topics": [row._asdict() for row in self.topics],
        }


def select_topics(
    runs: Sequence[str | Path],
    qrels: str,
    *,
    low: float = 0.0,
    high: float = 0.5,
    n: int | None = None,
    seed: int = 0,
    cutoff: int | None = 10,
    ties: Ties = "rank",
    topics: str | None = None,
    out: str | Path | None = None,
) -> Selection:
    """Chooses topics by the median reciprocal rank of the runs on sparse judgments.

    Beside the output stand `OUT.topics.csv` (the table) and `OUT.manifest.json`.

    Args:
        runs: TREC runs; one that lacks a topic has 0 there.
        qrels: the sparse judgments.
        low, high: a topic is eligible where low < median ≤ high.
        n: how many of the eligible topics are drawn; None for all.
        seed: of the draw. A topic's place in it depends on the seed and its id alone.
        cutoff: results looked at, None for all.
        ties: "rank" with MS MARCO's official rules (the rank column counts); with "trec_eval" or "ascending" the score
            counts, and equal ones are ordered as in `Policy`.
        topics: a source of topics; without it the topics are those of the qrels. Topics that the qrels lack are left
            out with that reason, and judged ones that it lacks are not looked at.
        out: a file for the chosen topics: `id TAB title` where topics are given, else one id a line.

    Returns:
        Every topic with its median and what became of it.

    Raises:
        InputError: an option, run or source is at fault, or fewer than n topics are eligible.

    Source: Craswell et al., Overview of the TREC 2019 Deep Learning Track, section 5.
    """
    _check(runs, low, high, n, cutoff)
    target = None if out is None else Path(out)
    if target is not None:
        refuse_overwrite(None, target)
    known = None if topics is None else read_topics(topics)
    judgments = read_qrels_frame(qrels)
    name = "RR_MSMARCO" if ties == "rank" else "RR"
    policy = Policy(ties=ties)
    measure = f"{name}@{cutoff or _DEEPEST}" if name == "RR_MSMARCO" or cutoff else name
    scores = evaluate(judgments, list(runs), measure, policy)
    rows = _rows(scores, judgments, known, low, high)
    rows = _drawn(rows, n, seed)
    shown = measure if cutoff else f"{name} (no cutoff)"
    result = Selection(tuple(rows), scores.runs, shown, policy, low, high, n, seed, target)
    if target is not None:
        _write(result, known, target, runs, qrels)
    return result


def _check(runs: Sequence[str | Path], low: float, high: float, n: int | None, cutoff: int | None) -> None:
    if not runs:
        raise InputError("no runs", "give one or more", where="--run")
    if not 0 <= low < high <= 1:
        raise InputError(f"the bounds are {low:g} and {high:g}", "give 0 ≤ low < high ≤ 1", where="--low, --high")
    if n is not None and n < 1:
        raise InputError(f"{n} topics are wanted", "give 1 or more", where="--n")
    if cutoff is not None and cutoff < 1:
        raise InputError(f"the cutoff is {cutoff}", "give 1 or more, or leave it out", where="--cutoff")


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
        raise InputError(
            f"{len(eligible):,d} topics are eligible, {n:,d} are wanted",
            "ask for fewer, or widen --low and --high",
            where="--n",
        )
    order = sorted(eligible, key=lambda topic: hashlib.sha256(f"{seed}\t{topic}".encode()).digest())
    kept = frozenset(order[:n])
    return [
        row._replace(decision="not drawn") if row.decision == _CHOSEN and row.topic_id not in kept else row
        for row in rows
    ]


def _write(result: Selection, known: TopicSet | None, out: Path, runs: Sequence[str | Path], qrels: str) -> None:
    titles = {} if known is None else {topic.topic_id: " ".join(topic.title.split()) for topic in known.topics}
    table_file = out.with_name(f"{out.name}.topics.csv")
    with written(out) as target, written(table_file) as table:
        with target.open() as stream:
            for topic in result.chosen:
                stream.write((f"{topic}\t{titles[topic]}\n" if known is not None else f"{topic}\n").encode())
        with table.open() as stream:
            stream.write(Table("", tuple(map(Column, TopicRow._fields)), result.topics).csv().encode())
        manifest = {
            "truerank": truerank.__version__,
            "command": "track select-topics",
            "inputs": {
                "runs": [{"source": str(run), "hash": compressed.fingerprint(parse(str(run)).path)} for run in runs],
                "qrels": qrels,
                "topics": None if known is None else known.name,
            },
            **{key: value for key, value in result.content().items() if key != "topics"},
            "artifacts": {out.name: hash_file(target.path), table_file.name: hash_file(table.path)},
        }
        write_text(
            out.with_name(f"{out.name}.manifest.json"), json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"
        )
