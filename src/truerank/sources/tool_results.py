"""Files as other tools write them: predictions of MTEB, sentence-transformers and ranx, per-topic scores, reports."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from truerank.errors import InputError
from truerank.loading import json_file
from truerank.sources import compressed
from truerank.sources.rows import parquet_columns, parquet_frames, rows

#: Rows of a report that hold the mean over all topics.
SUMMARY_TOPICS: Final = frozenset(("all", "mean", "average"))
#: Grades are whole numbers up to it.
_HIGHEST_GRADE: Final = 10
NAMES_OF_MEASURES: Final = re.compile(
    r"(?i:n?dcg|map|ap|m?rr|(?:mean_)?recip(?:rocal)?_rank|p|r|recall|precision|success|hit(?:_?rate)?|accuracy|r_?prec|"
    r"bpref|err|rbp|judged|infap|num_\w+|num(q|ret|rel|relret)|gm_\w+|set_?\w+|iprec\w*|utility|11pt_avg|relstring)([@_(].*)?"
)
#: Names of measures in trec_eval and elsewhere, and in ir_measures.
_NAMES: Final = {
    "map": "ap", "mean_average_precision": "ap", "recip_rank": "rr", "reciprocal_rank": "rr", "mrr": "rr",
    "mean_reciprocal_rank": "rr", "recall": "r", "precision": "p", "set_recall": "setr", "set_map": "setap",
    "r_precision": "rprec",
    **dict.fromkeys(("hit", "hit_rate", "hitrate", "accuracy", "acc", "success_rate", "hr"), "success"),
}  # fmt: skip
_PER_TOPIC: Final = "give the scores of single topics: ir_measures and trec_eval print them with -q"


class ToolForm(NamedTuple):
    """A table that a tool writes: the columns that it always has, and by role those that may have it, likeliest first.

    A column with "[]" has lists of results or of ratings; `left` are columns that seem to be something, and are not.
    """

    tool: str
    has: str
    roles: Mapping[str, str]
    left: str = ""


#: The first one that fits counts. Roles that are named with --columns come before these.
FORMS: Final = (
    ToolForm("retrieval results of LlamaIndex", "query expected_ids retrieved_ids",
         {"question": "query", "expected": "expected_ids[]", "retrieved": "retrieved_ids[]"}),
    ToolForm("a rank evaluation of Elasticsearch or OpenSearch", "id hits unrated_docs",
         {"id": "id", "score": "metric_score", "retrieved": "hits[]"}),
    ToolForm("ratings of documents by question", "ratings",
         {"id": "id query_id qid", "question": "query question", "expected": "ratings[]"}),
    ToolForm("documents of Phoenix", "context.span_id document_position",
         {"question": "input", "id": "context.span_id", "document": "reference", "rank": "document_position",
          "grade": "eval_score relevance_score annotation_score score"}),
    ToolForm("results of LangSmith", "example_id feedback.*",
         {"id": "example_id", "question": "inputs.question inputs.query inputs.input"},
         left="id execution_time outputs.* reference.*"),
    ToolForm("scores of Langfuse", "traceId name value",
         {"question": "input", "id": "datasetItemId traceId", "system": "datasetRunName release version traceName",
          "measure": "name", "score": "value"}, left="id"),
    ToolForm("scores of Langfuse by data set item", "datasetItemId datasetRunName name value",
        {"id": "datasetItemId", "system": "datasetRunName", "measure": "name", "score": "value"}, left="id"),
    ToolForm("records of TruLens", "record_id app_id input", {"question": "input", "system": "app_version app_id"}),
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class ToolResult:
    """Judgments or a run.

    Attributes:
        why: the tool and the layout.
        numbers: by topic and document.
        name: of the system, where the file names it.
    """

    kind: Literal["judgments", "run"]
    why: str
    numbers: Mapping[str, Mapping[str, float]]
    name: str = ""


def tool_result(path: Path, lines: Sequence[str]) -> ToolResult | None:
    """What a file of another tool holds; None for any other file."""
    found = _tool_result(path, lines)
    for topic, row in ({} if found is None else found.numbers).items():
        if odd := next((doc for doc, number in row.items() if not math.isfinite(number)), None):
            fault = f"topic {topic}, document {odd}: the score '{row[odd]}' is not finite"
            raise InputError(fault, "write a finite number", where=path)
    return found


def _tool_result(path: Path, lines: Sequence[str]) -> ToolResult | None:
    head = compressed.head(path)[:4096]
    if path.suffix == ".json":
        if b'"mteb_model_meta"' in head and head.lstrip()[:1] == b"{":
            return _mteb_predictions(path)
        if b'"stat_test"' in head and b'"model_names"' in head:
            raise InputError("a report of ranx: means over all topics", "give the runs and the judgments", where=path)
        if head.lstrip()[:1] == b"{":
            value = json_file(path)
            evaluated = value.get("rank_eval", value)
            if _is_report(value) or ("quality_level" in evaluated and "details" not in evaluated):
                raise InputError("means over all topics, and no scores of single ones", _PER_TOPIC, where=path)
            return graded(value)
    if path.suffix == ".jsonl" and lines and b'"corpus_id"' in head:
        return _predictions(path)
    if path.suffix == ".parquet" and parquet_columns(path) == ["q_id", "doc_id", "score"]:
        by_topic: dict[str, dict[str, float]] = {}
        for topic, doc, score in (row for frame in parquet_frames(path) for row in frame.iter_rows()):
            by_topic.setdefault(str(topic), {})[str(doc)] = score
        return graded(by_topic, "the columns q_id, doc_id and score of ranx")
    if lines and lines[0].split(",")[:2] == ["epoch", "steps"]:
        fault = "a table of an evaluator of sentence-transformers: means over all queries"
        remedy = "write the predictions too (write_predictions=True), and give them with the judgments"
        raise InputError(fault, remedy, where=path, line=1)
    return None


def _mteb_predictions(path: Path) -> ToolResult | None:
    """`{"mteb_model_meta": …, SUBSET: {SPLIT: {TOPIC: {DOCUMENT: SCORE}}}}`."""
    value = json_file(path)
    model = value.pop("mteb_model_meta", {})
    parts = [(subset, split) for subset, splits in value.items() if isinstance(splits, dict) for split in splits]
    if len(parts) != 1:
        shown = ", ".join(f"{subset}/{split}" for subset, split in parts[:3]) or "none"
        raise InputError(f"predictions of {len(parts)} subsets and splits ({shown})", "give one of them", where=path)
    subset, split = parts[0]
    numbers = value[subset][split]
    if not is_numbers(numbers):
        return None
    name = str(model.get("model_name") or "") if isinstance(model, dict) else ""
    revision = str(model.get("revision") or "") if isinstance(model, dict) else ""
    why = f"predictions of MTEB, subset {subset}, split {split}" + (f", by {name}" if name else "")
    return ToolResult("run", why + (f", revision {revision}" if revision else ""), numbers, name.rpartition("/")[2])


def _predictions(path: Path) -> ToolResult | None:
    """`{"query_id": …, "query": …, "results": [{"corpus_id": …, "score": …}]}` in each line."""
    numbers: dict[str, dict[str, float]] = {}
    for number, record, _ in rows(path, "jsonl"):
        try:
            own = {str(one["corpus_id"]): float(one["score"]) for one in record["results"]}
            topic = str(record["query_id"])
        except (ValueError, TypeError, KeyError, OverflowError):
            if number == 1:
                return None
            fault = "not a prediction of sentence-transformers"
            raise InputError(fault, "write it again", where=path, line=number) from None
        if topic in numbers:
            raise InputError(f"query {topic} appears twice", "keep one of its lines", where=path, line=number)
        numbers[topic] = own
    return ToolResult("run", "predictions of sentence-transformers", numbers)


def graded(value: Any, why: str = "") -> ToolResult | None:
    """Judgments or a run as one object: numbers by topic and document, as BEIR and ranx write them."""
    if not isinstance(value, dict) or not is_numbers(value):
        return None
    keys = [set(row) for row in value.values()]
    # A table has much the same keys in every row; a document that is retrieved for every topic is not a column.
    few = len(set.union(*keys)) <= 2 * max(map(len, keys))
    if len(keys) > 1 and set.intersection(*keys) and few:
        return None if not why else told_numbers(value, why)
    return told_numbers(value, why)


def _is_report(value: Any) -> bool:
    """Whether an object has one number for each measure, perhaps by groups, as evaluators write it."""
    if not isinstance(value, Mapping) or not value:
        return False
    groups = [one for one in value.values() if isinstance(one, Mapping) and one]
    nested = len(groups) == len(value)
    # Groups of measures; objects of measures by topic are scores of single topics.
    names = [*value, *(key for group in groups for key in group)] if nested else list(value)
    numbers = [cell for group in groups for cell in group.values()] if nested else list(value.values())
    return all(map(is_number, numbers)) and all(NAMES_OF_MEASURES.fullmatch(str(name)) for name in names)


def told_numbers(value: Mapping[str, Mapping[str, float]], why: str = "") -> ToolResult:
    """Numbers by topic and document as judgments where they may be grades, as a run elsewhere."""
    whole = all(isinstance(cell, int) and cell <= _HIGHEST_GRADE for row in value.values() for cell in row.values())
    if whole:
        return ToolResult("judgments", why or "whole numbers by topic and document", value)
    return ToolResult("run", why or "scores by topic and document", value)


def is_numbers(value: Any) -> bool:
    """Whether a value has numbers by topic and document."""
    rows = list(value.values()) if isinstance(value, dict) else []
    return bool(rows) and all(isinstance(row, dict) and all(map(is_number, row.values())) for row in rows)


def is_number(cell: Any) -> bool:
    """Whether a value is a number, and not true or false."""
    return isinstance(cell, int | float) and not isinstance(cell, bool)


def measure_columns(lines: Sequence[str]) -> tuple[str, ...]:
    """The columns of a table without a header, where ir_measures or trec_eval wrote it; empty for any other."""
    cells = [[cell.strip() for cell in line.split("\t")] for line in lines]
    cells = [row for row in cells if row[0] != "runid"]
    if not cells or any(len(row) != len(cells[0]) for row in cells) or not all(map(_is_value, cells)):
        return ()
    known = [all(NAMES_OF_MEASURES.fullmatch(row[place]) for row in cells) for place in range(len(cells[0]) - 1)]
    if len(known) == 2 and sum(known) == 1:
        names = ("measure", "query_id", "value") if known[0] else ("query_id", "measure", "value")
        if not {row[known.index(False)] for row in cells} <= SUMMARY_TOPICS:
            return names
    if known and known[0]:
        raise InputError("means over all topics, and no scores of single ones", _PER_TOPIC)
    return ()


def _is_value(row: Sequence[str]) -> bool:
    try:
        return len(row) > 1 and math.isfinite(float(row[-1]))
    except ValueError:
        return False


def measure_name(name: str) -> str:
    """A measure in the form of ir_measures, in small letters: ndcg_cut_10 is ndcg@10."""
    text = name.strip().lower()
    base, cutoff = re.fullmatch(r"(.*?)(?:_cut|_at)?(?:[@_]([\d.]+))?", text).groups()  # type: ignore[union-attr]
    return _NAMES.get(base, base) + (f"@{cutoff}" if cutoff else "")
