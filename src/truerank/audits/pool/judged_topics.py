"""Which topics are kept, from what was judged: the tables of judging statistics (the track paper's Table 5)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import polars as pl

from truerank.audits.pool.items import read_grades
from truerank.audits.pool.stopping import AS_THE_TRACK, MAX_RATIO, MIN_RELEVANT, Keeping
from truerank.core.result import Result
from truerank.errors import InputError, OptionError
from truerank.judging import is_store
from truerank.loading import decimal_number, signed_number
from truerank.options import Flag, OutFile, Range, command
from truerank.sources import compressed, formats, grammar
from truerank.sources.inputs import inputs_of
from truerank.sources.qrels import read_qrels_frame
from truerank.sources.rows import Row, rows
from truerank.work.runs import run as started

_TOPIC: Final = ("topic", "topic_id", "query_id", "qid")
_RELEVANT: Final = re.compile(r"(?:(?P<task>.+?)[ _-])?(?:num_?)?(?:relevant|rel)")
_JUDGED: Final = ("judged", "num_judged", "judgments")
_TABLES: Final = ("csv", "tsv", "jsonl", "json", "parquet")


class JudgedTopic(NamedTuple):
    """How much of a topic was judged and found relevant, and why it is left out; empty where it is kept."""

    topic_id: str
    relevant: int
    judged: int
    why_not: str = ""

    @property
    def ratio(self) -> float | None:
        return self.relevant / self.judged if self.judged else None


class CountDifference(NamedTuple):
    """A topic that qrels count otherwise than the statistics do."""

    topic_id: str
    relevant: int
    judged: int
    relevant_in_qrels: int
    judged_in_qrels: int


@dataclass(frozen=True)
class TaskTopics:
    """One task's topics.

    Attributes:
        name: of the task; empty where there is one only.
        rel: the lowest grade that counted as relevant; None where the source holds counts.
        qrels: the name of qrels that it was compared with, if any.
        differences: topics that these count otherwise.
        beyond: topics of these that the statistics lack, or that they keep and the qrels lack.
    """

    name: str
    topics: tuple[JudgedTopic, ...]
    rel: int | None = None
    qrels: str = ""
    differences: tuple[CountDifference, ...] = ()
    beyond: tuple[str, ...] = ()

    @property
    def kept(self) -> tuple[JudgedTopic, ...]:
        return tuple(topic for topic in self.topics if not topic.why_not)

    @property
    def left_out(self) -> tuple[JudgedTopic, ...]:
        return tuple(topic for topic in self.topics if topic.why_not)

    @property
    def only_relevant(self) -> bool:
        return self.judged > 0 and all(topic.relevant == topic.judged for topic in self.topics)

    @property
    def judged(self) -> int:
        return sum(topic.judged for topic in self.topics)

    @property
    def judged_kept(self) -> int:
        return sum(topic.judged for topic in self.kept)

    def by_qrels(self) -> tuple[int, int]:
        """The same two totals with the numbers of the qrels where they have the topic."""
        change = {row.topic_id: row.judged_in_qrels - row.judged for row in self.differences}
        kept = sum(change.get(topic.topic_id, 0) for topic in self.kept)
        return self.judged + sum(change.values()), self.judged_kept + kept


@dataclass(frozen=True, eq=False, repr=False)
class TopicStatistics(Result, shown_in="truerank.audits.pool.page"):
    """Which topics are kept, task by task.

    Attributes:
        source: the name of what was read.
        tasks: as the source has them.
        keeping: which topics are kept.
    """

    source: str
    tasks: tuple[TaskTopics, ...]
    keeping: Keeping = AS_THE_TRACK


@command
def topics(
    source: Annotated[str | Path, Flag(metavar="SRC", positional=True, reads=str)],
    *,
    qrels: Annotated[str | Mapping[str, str] | Sequence[str], Flag(metavar="[TASK=]SRC", reads=list[str])] = (),
    rel: Annotated[int | Mapping[str, int] | Sequence[str], Flag(metavar="[TASK=]GRADE", reads=list[str])] = 1,
    min_relevant: Annotated[int, Range(at_least=0)] = MIN_RELEVANT,
    max_ratio: Annotated[float | str | None, Flag(metavar="NUMBER|none", reads=str)] = MAX_RATIO,
    out: OutFile = None,
) -> TopicStatistics:
    """Shows which topics have enough judgments to be kept, and why the others are left out.

    A topic is kept with enough relevant documents and not too large a share of them among the judged ones: the track's
    rule is 3 and 0.6. A ratio that equals the bound keeps the topic.

    Args:
        source: qrels, a judging store of a relevance scheme, or a table with one row per topic: topic, relevant and
            judged, or TASK_relevant and TASK_judged for each of several tasks.
        qrels: judgments to compare the counts with; repeat the option for several tasks. In Python also by task.
        rel: the lowest grade that counts as relevant, in qrels and stores; repeat the option for several tasks. In
            Python also by task.
        min_relevant: relevant documents that a topic needs.
        max_ratio: the largest share of relevant documents among the judged ones; none for no bound.
        out: a file for the ids of the kept topics, one a line, with a manifest beside it; of several tasks a line is
            TASK, a tab and the id.

    Returns:
        The topics of each task in the order of the source.

    Raises:
        InputError: a source is at fault; qrels without a relevant document; a task that the table lacks.

    Examples:

        truerank pool topics judged.csv

        truerank pool topics judged.csv --qrels doc=documents.qrels --qrels passage=passages.qrels --rel passage=2

        truerank pool topics track.qrels --max-ratio none --out kept.tsv

    Source: Craswell et al., Overview of the TREC 2019 Deep Learning Track, section 5 and Table 5.
    """
    keeping = Keeping(min_relevant, _ratio(max_ratio))
    grades = {task: _grade(value) for task, value in _by_task({"": rel} if isinstance(rel, int) else rel).items()}
    against = _by_task(qrels)
    found = _statistics(str(source), against, grades, keeping)
    if out is not None:
        options = {"rel": grades, "min_relevant": min_relevant, "max_ratio": keeping.max_ratio}
        inputs = inputs_of(source=str(source), qrels=list(against.values()))
        with started("pool topics", inputs, options, out, file=True) as job:
            several = len(found.tasks) > 1
            with job.output(Path(out).name) as stream:
                for task in found.tasks:
                    stream.writelines(
                        f"{task.name}\t{one.topic_id}\n".encode() if several else f"{one.topic_id}\n".encode()
                        for one in task.kept
                    )
            job.skipped = {
                task.name or "topics": {one.topic_id: one.why_not for one in task.left_out} for task in found.tasks
            }
    return found


def _by_task(values: Any) -> dict[str, Any]:
    """Values by task: a mapping, one value, or texts of the form [TASK=]VALUE."""
    if isinstance(values, Mapping):
        return dict(values)
    texts = [values] if isinstance(values, str) else list(values)
    return {text.partition("=")[0] if "=" in text else "": text.partition("=")[2] or text for text in texts}


def _ratio(given: float | str | None) -> float | None:
    if given is None or given == "none":
        return None
    ratio = decimal_number(str(given))
    if ratio is None:
        raise OptionError("max_ratio", f"'{given}' is not a number", "write one such as 0.6, or none")
    if not 0 < ratio <= 1:
        raise OptionError("max_ratio", f"must be above 0 and at most 1, got {ratio:g}", "correct the value")
    return ratio


def _grade(given: int | str) -> int:
    if (grade := signed_number(str(given))) is not None:
        return grade
    raise OptionError("rel", f"'{given}' is not a grade", "write an integer, or TASK=INTEGER")


def _statistics(
    source: str, against: Mapping[str, str], grades: Mapping[str, int], keeping: Keeping
) -> TopicStatistics:
    spec = grammar.parse(source)
    lowest = grades.get("", 1)
    if spec.scheme == "file" and not is_store(spec.path) and _form(spec.path, spec.format) in _TABLES:
        counted = _table_counts(spec.path, _form(spec.path, spec.format))
        levels: dict[str, int | None] = dict.fromkeys(counted)
    else:
        counted = {"": _counts(_grades(source), lowest, source)}
        levels = {"": lowest}
    for name in (*against, *(task for task in grades if task)):
        if name not in counted and not (name == "" and len(counted) == 1):
            known = ", ".join(counted) or "none"
            raise InputError(f"no task '{name}' in it", f"there are {known}", where=spec.location)
    tasks = []
    for name, found in counted.items():
        rows_ = tuple(one._replace(why_not=keeping.why_not(one.relevant, one.judged)) for one in found)
        task = TaskTopics(name, rows_, levels[name])
        other = against.get(name, against.get("") if len(counted) == 1 else None)
        tasks.append(task if other is None else _compared(task, other, grades.get(name, lowest)))
    return TopicStatistics(spec.name, tuple(tasks), keeping)


def _form(path: Path, given: str | None) -> str:
    found = formats.detect(compressed.checked_file(path), given)
    if found not in ("lines", "tsv") or given:
        return "csv" if found == "lines" else found
    # The ending does not say it: a table of counts, or qrels, whose lines are four words with a grade at the end.
    first = compressed.head(path).decode(errors="replace").strip().partition("\n")[0].split()
    return "qrels" if len(first) == 4 and first[3].lstrip("-").isdigit() else found.replace("lines", "csv")


def _grades(source: str) -> pl.DataFrame:
    spec = grammar.parse(source)
    if spec.scheme == "file" and is_store(spec.path):
        return read_grades(spec.path)
    return read_qrels_frame(source)


def _counts(judgments: pl.DataFrame, rel: int, where: str) -> list[JudgedTopic]:
    counted = judgments.group_by("topic_id", maintain_order=True).agg(
        (pl.col("relevance") >= rel).sum().alias("relevant"), pl.len().alias("judged")
    )
    if not counted["relevant"].sum():
        raise InputError(
            f"no document has the grade {rel} or a higher one",
            "give judgments with relevant documents, or a lower `rel`",
            where=where,
        )
    return [JudgedTopic(topic, int(relevant), int(judged)) for topic, relevant, judged in counted.iter_rows()]


def _compared(task: TaskTopics, source: str, rel: int) -> TaskTopics:
    there = {one.topic_id: one for one in _counts(_grades(source), rel, source)}
    here = {one.topic_id: one for one in task.topics}
    differences = tuple(
        CountDifference(one.topic_id, one.relevant, one.judged, other.relevant, other.judged)
        for one in task.topics
        if (other := there.get(one.topic_id)) is not None
        and (one.relevant, one.judged) != (other.relevant, other.judged)
    )
    kept = {one.topic_id for one in task.kept}
    beyond = tuple(name for name in (*here, *(set(there) - set(here))) if (name in kept) != (name in there))
    return TaskTopics(task.name, task.topics, rel, grammar.parse(source).name, differences, tuple(sorted(beyond)))


def _table_counts(path: Path, form: str) -> dict[str, list[JudgedTopic]]:
    tasks: dict[str, tuple[str, str]] = {}
    counted: dict[str, list[JudgedTopic]] = {}
    seen: set[str] = set()
    for row in rows(path, form):
        keys = {str(name).strip().lower(): str(name) for name in row.values}
        topic_column = next((keys[name] for name in _TOPIC if name in keys), None)
        tasks = tasks or _task_columns(keys)
        if topic_column is None or not tasks:
            raise InputError(
                f"no columns of a topic's counts (there are {', '.join(keys)})",
                "name them topic, relevant and judged, or TASK_relevant and TASK_judged",
                where=path,
                line=row.line,
            )
        topic = str(row.values[topic_column] or "").strip()
        if not topic or topic in seen:
            raise InputError(
                f"the topic '{topic}' appears twice" if topic else "a row without a topic",
                "correct the row",
                where=path,
                line=row.line,
            )
        seen.add(topic)
        for name, (relevant, judged) in tasks.items():
            one = JudgedTopic(topic, _count(row, relevant, path), _count(row, judged, path))
            if one.relevant > one.judged:
                fault = f"{one.relevant:,} relevant of {one.judged:,} judged documents"
                raise InputError(fault, "correct the row", where=path, line=row.line)
            counted.setdefault(name, []).append(one)
    if not counted:
        raise InputError("no row in it", "give one row per topic", where=path)
    return counted


def _task_columns(keys: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    found: dict[str, tuple[str, str]] = {}
    for key, column in keys.items():
        match = _RELEVANT.fullmatch(key)
        if match is None:
            continue
        task = match["task"] or ""
        heads: Sequence[str] = ("",) if not task else (f"{task}_", f"{task} ", f"{task}-")
        judged = next((keys[head + name] for head in heads for name in _JUDGED if head + name in keys), None)
        if judged is not None:
            found[task] = (column, judged)
    return found


def _count(row: Row, column: str, path: Path) -> int:
    text = str(row.values.get(column, "") if row.values.get(column) is not None else "").strip()
    try:
        value = int(text)
    except ValueError:
        value = -1
    if value < 0:
        raise InputError(f"'{text}' in the column '{column}' is not a count", "correct it", where=path, line=row.line)
    return value
