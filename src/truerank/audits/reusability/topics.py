"""Which topics are kept, from what was judged: the tables of judging statistics (the track paper's Table 5)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import polars as pl

from truerank.audits.outputs import written
from truerank.audits.reusability.learning.labels_now import read_grades
from truerank.audits.reusability.stopping import AS_THE_TRACK, Keeping
from truerank.errors import InputError
from truerank.judging import is_store
from truerank.reports.tables import Cell, Column, Table
from truerank.sources import compressed, formats, grammar
from truerank.sources.qrels import read_qrels_frame
from truerank.sources.rows import Row, rows

__all__ = ["Difference", "JudgedTopic", "Task", "TopicStatistics", "topics"]

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
        """Relevant by judged; None without judgments."""
        return self.relevant / self.judged if self.judged else None


class Difference(NamedTuple):
    """A topic that qrels count otherwise than the statistics do."""

    topic_id: str
    relevant: int
    judged: int
    relevant_in_qrels: int
    judged_in_qrels: int


@dataclass(frozen=True)
class Task:
    """One task's topics.

    Attributes:
        name: of the task; empty where there is one only.
        topics: in the order of the source.
        relevant_from: the lowest grade that counted as relevant; None where the source holds counts.
        qrels: the name of qrels that it was compared with, if any.
        differences: topics that these count otherwise.
        beyond: topics of these that the statistics lack, or that they keep and the qrels lack.
    """

    name: str
    topics: tuple[JudgedTopic, ...]
    relevant_from: int | None = None
    qrels: str = ""
    differences: tuple[Difference, ...] = ()
    beyond: tuple[str, ...] = ()

    @property
    def kept(self) -> tuple[JudgedTopic, ...]:
        """The topics of the evaluation set."""
        return tuple(topic for topic in self.topics if not topic.why_not)

    @property
    def left_out(self) -> tuple[JudgedTopic, ...]:
        """The others: the grey rows of the paper's table."""
        return tuple(topic for topic in self.topics if topic.why_not)

    @property
    def only_relevant(self) -> bool:
        """Whether there are judgments, and every one of them is relevant."""
        return self.judged > 0 and all(topic.relevant == topic.judged for topic in self.topics)

    @property
    def judged(self) -> int:
        """Judgments over all topics."""
        return sum(topic.judged for topic in self.topics)

    @property
    def judged_kept(self) -> int:
        """Judgments over the kept topics."""
        return sum(topic.judged for topic in self.kept)

    def by_qrels(self) -> tuple[int, int]:
        """The same two totals with the numbers of the qrels where they have the topic."""
        change = {row.topic_id: row.judged_in_qrels - row.judged for row in self.differences}
        kept = sum(change.get(topic.topic_id, 0) for topic in self.kept)
        return self.judged + sum(change.values()), self.judged_kept + kept

    def notes(self) -> list[str]:
        """What is to be said below the table."""
        title = f"{self.name}: " if self.name else ""
        reasons = dict.fromkeys(topic.why_not for topic in self.left_out)
        said = [
            f"{title}{len(self.kept):,} of {len(self.topics):,} topics are kept; {self.judged:,} judged, "
            f"{self.judged_kept:,} in the kept ones."
        ]
        for reason in reasons:
            named = ", ".join(topic.topic_id for topic in self.left_out if topic.why_not == reason)
            said.append(f"{title}left out, {reason}: {named}.")
        if self.qrels:
            judged, kept = self.by_qrels()
            parts = [
                f"{row.topic_id} ({row.judged:,} here, {row.judged_in_qrels:,} there{_relevant_differ(row)})"
                for row in self.differences
            ]
            told = f"differ in {', '.join(parts)}" if parts else "agree in every topic that both have"
            said.append(f"{title}{self.qrels} and the rows {told}: by the qrels {judged:,} judged, {kept:,} kept.")
        if self.beyond:
            said.append(f"{title}kept here or judged there, but not both: {', '.join(self.beyond)}.")
        if self.topics and not self.kept and self.only_relevant:
            said.append(
                f"{title}no topic is kept because every judgment is relevant: these judgments lack their non-relevant "
                "rows, so that the share of relevant documents says nothing. Give the judgments with all rows, or "
                "--max-ratio none."
            )
        return said

    def json(self) -> dict[str, Any]:
        """The task as plain numbers and texts."""
        judged, kept = self.by_qrels()
        return {
            "task": self.name,
            "topics": len(self.topics),
            "kept": len(self.kept),
            "judged": self.judged,
            "judged_kept": self.judged_kept,
            "relevant_from": self.relevant_from,
            "left_out": {topic.topic_id: topic.why_not for topic in self.left_out},
            "rows": [{**topic._asdict(), "ratio": topic.ratio, "kept": not topic.why_not} for topic in self.topics],
            "qrels": self.qrels or None,
            "judged_by_qrels": judged if self.qrels else None,
            "judged_kept_by_qrels": kept if self.qrels else None,
            "differences": [row._asdict() for row in self.differences],
            "beyond": list(self.beyond),
        }


@dataclass(frozen=True)
class TopicStatistics:
    """Which topics are kept, task by task.

    Attributes:
        source: the name of what was read.
        tasks: as the source has them.
        keeping: which topics are kept.
    """

    source: str
    tasks: tuple[Task, ...]
    keeping: Keeping = AS_THE_TRACK

    def table(self) -> Table:
        """Relevant, judged and their ratio, by topic and task, with the totals below."""
        ids = list(dict.fromkeys(topic.topic_id for task in self.tasks for topic in task.topics))
        columns: list[Column] = [Column("topic")]
        for task in self.tasks:
            above = (task.name,) if task.name else ()
            columns += [
                Column("relevant", above, "right", ",d"),
                Column("judged", above, "right", ",d"),
                Column("ratio", above, "right", ".3f"),
                Column("left out", above),
            ]
        found = [{topic.topic_id: topic for topic in task.topics} for task in self.tasks]
        body: list[tuple[Cell, ...]] = []
        for topic_id in ids:
            cells: list[Cell] = [topic_id]
            for by_topic in found:
                one = by_topic.get(topic_id)
                cells += [None] * 4 if one is None else [one.relevant, one.judged, one.ratio, one.why_not]
            body.append(tuple(cells))
        totals: list[Cell] = ["judged in all"]
        sizes: list[Cell] = ["in kept topics"]
        for task in self.tasks:
            totals += [None, task.judged, None, ""]
            sizes += [sum(topic.relevant for topic in task.kept), task.judged_kept, None, ""]
        ratio = "" if self.keeping.max_ratio is None else f" and relevant/judged at most {self.keeping.max_ratio:g}"
        rule = f"A topic is kept with at least {self.keeping.min_relevant} relevant documents{ratio}."
        return Table(
            f"Judging statistics of {self.source}",
            tuple(columns),
            (*body, tuple(totals), tuple(sizes)),
            notes=(rule, *(note for task in self.tasks for note in task.notes())),
            rules=(len(body),),
        )

    def text(self) -> str:
        """The table for a terminal."""
        return self.table().text()

    def write(self, out: str | Path) -> Path:
        """Writes the ids of the kept topics, one a line; of several tasks a line is `TASK TAB topic`.

        Raises:
            InputError: it cannot be written.
        """
        several = len(self.tasks) > 1
        lines = [
            f"{task.name}\t{one.topic_id}" if several else one.topic_id for task in self.tasks for one in task.kept
        ]
        with written(Path(out)) as target, target.open() as stream:
            stream.write("".join(f"{line}\n" for line in lines).encode())
        return Path(out)

    def json(self) -> dict[str, Any]:
        """Everything, as plain numbers and texts."""
        return {
            "source": self.source,
            "min_relevant": self.keeping.min_relevant,
            "max_ratio": self.keeping.max_ratio,
            "tasks": [task.json() for task in self.tasks],
        }


def topics(
    source: str | Path,
    *,
    qrels: Mapping[str, str] | str | None = None,
    relevant_from: Mapping[str, int] | int = 1,
    keeping: Keeping = AS_THE_TRACK,
) -> TopicStatistics:
    """Says which topics are kept, and why not the others.

    Args:
        source: qrels; a judging store of a relevance scheme; or a table with one row per topic: columns topic, relevant
            and judged, or TASK_relevant and TASK_judged for each of several tasks.
        qrels: judgments to compare the counts with, for one task or by task.
        relevant_from: the lowest grade that counts as relevant, for all tasks or by task; for qrels and stores.
        keeping: which topics are kept.

    Returns:
        The statistics; in the order of the source.

    Raises:
        InputError: a source is at fault; qrels without a relevant document; a task that the table lacks.

    Source: Craswell et al., Overview of the TREC 2019 Deep Learning Track, section 5 and Table 5.
    """
    if keeping.min_relevant < 0 or (keeping.max_ratio is not None and not 0 < keeping.max_ratio <= 1):
        raise InputError(
            "bounds of the kept topics out of range", "give a ratio above 0, at most 1", where="--max-ratio"
        )
    spec = grammar.parse(str(source))
    grades = dict(relevant_from) if isinstance(relevant_from, Mapping) else {}
    lowest = grades.pop("", 1) if isinstance(relevant_from, Mapping) else relevant_from
    given = {"": qrels} if isinstance(qrels, str) else dict(qrels or {})
    if spec.scheme == "file" and not is_store(spec.path) and _form(spec.path, spec.format) in _TABLES:
        counted = _table_counts(spec.path, _form(spec.path, spec.format))
        levels: dict[str, int | None] = dict.fromkeys(counted)
    else:
        counted = {"": _counts(_grades(str(source)), lowest, str(source))}
        levels = {"": lowest}
    tasks = []
    for name in (*given, *grades):
        if name not in counted and not (name == "" and len(counted) == 1):
            known = ", ".join(counted) or "none"
            raise InputError(f"no task '{name}' in it", f"there are {known}", where=spec.location)
    for name, found in counted.items():
        rows_ = tuple(one._replace(why_not=keeping.why_not(one.relevant, one.judged)) for one in found)
        task = Task(name, rows_, levels[name])
        against = given.get(name, given.get("") if len(counted) == 1 else None)
        if against is not None:
            task = _compared(task, against, grades.get(name, lowest))
        tasks.append(task)
    return TopicStatistics(spec.name, tuple(tasks), keeping)


def _relevant_differ(row: Difference) -> str:
    if row.relevant == row.relevant_in_qrels:
        return ""
    return f"; relevant {row.relevant:,} and {row.relevant_in_qrels:,}"


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


def _counts(judgments: pl.DataFrame, relevant_from: int, where: str) -> list[JudgedTopic]:
    counted = judgments.group_by("topic_id", maintain_order=True).agg(
        (pl.col("relevance") >= relevant_from).sum().alias("relevant"), pl.len().alias("judged")
    )
    if not counted["relevant"].sum():
        raise InputError(
            f"no document has the grade {relevant_from} or a higher one",
            "give judgments with relevant documents, or a lower --relevant-from",
            where=where,
        )
    return [JudgedTopic(topic, int(relevant), int(judged)) for topic, relevant, judged in counted.iter_rows()]


def _compared(task: Task, source: str, relevant_from: int) -> Task:
    there = {one.topic_id: one for one in _counts(_grades(source), relevant_from, source)}
    here = {one.topic_id: one for one in task.topics}
    differences = tuple(
        Difference(one.topic_id, one.relevant, one.judged, other.relevant, other.judged)
        for one in task.topics
        if (other := there.get(one.topic_id)) is not None
        and (one.relevant, one.judged) != (other.relevant, other.judged)
    )
    kept = {one.topic_id for one in task.kept}
    beyond = tuple(name for name in (*here, *(set(there) - set(here))) if (name in kept) != (name in there))
    return Task(task.name, task.topics, relevant_from, grammar.parse(source).name, differences, tuple(sorted(beyond)))


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
                f"the topic '{topic}' stands there twice" if topic else "a row without a topic",
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
    """The columns of relevant and of judged documents by task."""
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
        raise InputError(f"'{text}' in the column '{column}' is no count", "correct it", where=path, line=row.line)
    return value
