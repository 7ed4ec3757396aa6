"""Judgments and runs as tables: their columns by the names that other programs use, and Parquet files of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from numbers import Real
from pathlib import Path
from typing import Any, Final

import polars as pl

from truerank.errors import InputError
from truerank.sources import formats
from truerank.sources.golden_words import DOCUMENT, GRADE, RANK, SCORES, SYSTEM, joined, says, words_of
from truerank.sources.lines import Header, Repeat, raise_repeat
from truerank.sources.rows import parquet_columns, parquet_frames

#: What other programs call the columns.
_NAMES: Final = {
    "topic_id": ("query_id", "query-id", "qid", "q_id", "topic"),
    "doc_id": ("corpus-id", "docno", "docid", "document"),
    "relevance": ("label", "grade", "rel"),
}
_TOPICS: Final = tuple("query_id qid q_id queryid topic_id topic topic_number question_id query".split())
_GRADES: Final = GRADE | {"label", "rating"}
#: What has an id, and is no document.
_OTHERS: Final = SYSTEM | frozenset(
    "annotator user worker rater assessor judge session batch trace request trial".split()
)
_BEIR: Final = frozenset(("query-id", "corpus-id", "score"))
#: Rows that are read at once.
_ROWS: Final = 1 << 19


def is_missing(value: Any) -> bool:
    """Whether a value of a frame or a list stands for none: None, nan, and what pandas has for it."""
    if isinstance(value, Real):
        return bool(value != value)  # noqa: PLR0124
    return value is None or type(value).__name__ in ("NAType", "NaTType")


def polars_frame(value: Any) -> pl.DataFrame:
    """A frame of Polars or pandas, or a data set of Hugging Face; what is missing in it is null."""
    if isinstance(value, pl.DataFrame | pl.LazyFrame):
        return value.lazy().collect()
    names = list(getattr(value, "column_names", None) or value.columns)
    # Beside texts, Polars would make the text "NaN" of a missing one.
    cells = {str(name): [None if is_missing(one) else one for one in value[name]] for name in names}
    return pl.DataFrame(cells, strict=False)


def renamed(frame: pl.DataFrame, schema: Collection[str]) -> pl.DataFrame:
    """The frame with those columns of a schema that other programs call by other names."""
    return frame.rename(_other_names(frame.columns, schema))


def _other_names(columns: Sequence[str], schema: Collection[str]) -> dict[str, str]:
    # Only BEIR calls grades "score": elsewhere, what has scores is a run.
    also = {"relevance": ("score",)} if _BEIR.issubset(columns) else {}
    lacking = {name: (*_NAMES.get(name, ()), *also.get(name, ())) for name in schema if name not in columns}
    first = {name: next((one for one in others if one in columns), None) for name, others in lacking.items()}
    return {other: name for name, other in first.items() if other is not None}


def conforming(frame: pl.DataFrame, schema: Mapping[str, Any], where: str | Path) -> pl.DataFrame:
    """The wanted columns of a frame in their types."""
    if missing := [name for name in schema if name not in frame.columns]:
        raise InputError(f"columns missing: {', '.join(missing)}", f"needed are {', '.join(schema)}", where=where)
    for name, kind in schema.items():
        own = frame[name]
        if kind.is_integer() and own.dtype.is_float() and (odd := own.filter(own != own.round())).len():
            raise InputError(f"the {name} {odd[0]} is not a whole number", "write whole numbers", where=where)
    try:
        frame = frame.select([pl.col(name).cast(kind) for name, kind in schema.items()])
    except pl.exceptions.PolarsError as error:
        reason = str(error).partition("\n")[0]
        raise InputError(f"a value has another type ({reason})", "convert the columns", where=where) from error
    if any(frame.null_count().row(0)):
        raise InputError("a value is missing", "fill it in, or drop the row", where=where)
    return frame


def judgment_columns(names: Sequence[str]) -> tuple[str, str, str] | None:
    """The columns of topic, document and grade where each row is a judgment, as their names say."""
    if _BEIR.issubset(names):
        return "query-id", "corpus-id", "score"
    spelt = {joined(name): name for name in reversed(names)}
    topic = next((spelt[one] for one in _TOPICS if one in spelt), None)
    grade = next((name for one, name in spelt.items() if one in _GRADES), None)
    others = [name for name in names if name not in (topic, grade)]
    documents = [name for name in others if joined(name) in DOCUMENT]
    documents = documents or [name for name in others if words_of(name)[-1:] == ("id",) and not says(name, _OTHERS)]
    if topic is None or grade is None or len(documents) != 1 or any(joined(name) in RANK | SCORES for name in others):
        return None
    return topic, documents[0], grade


def refuse_repeat(path: Path, frame: pl.DataFrame, pair: Repeat, header: Callable[[str], Header | None]) -> None:
    """Says of a pair that occurs twice in a file, with its lines where it has lines."""
    if formats.detect(path) == "parquet":
        topic, document = frame["topic_id"][pair.second], frame["doc_id"][pair.second]
        raise InputError(f"topic {topic} has document {document} twice", "remove one of them", where=path)
    raise_repeat(path, pair, header)


def parquet_pairs(path: Path, schema: Mapping[str, Any]) -> Iterator[pl.DataFrame]:
    """The wanted columns of a Parquet file of judgments or of a run, some rows at a time.

    Without `rank`, ranks are those of the scores; without `tag`, it is the name of the file.
    """
    names = parquet_columns(path)
    other = _other_names(names, schema)
    own = {other.get(name, name): name for name in names}
    ranked = "rank" in schema and "rank" not in own
    needed = {name: kind for name, kind in schema.items() if name in own or name not in ("rank", "tag")}
    needed |= {"score": pl.Float64} if ranked else {}
    if missing := [name for name in needed if name not in own]:
        raise InputError(f"columns missing: {', '.join(missing)}", f"there are {', '.join(names)}", where=path)
    more = [] if "tag" in own or "tag" not in schema else [pl.lit(path.stem).alias("tag")]
    more += [pl.col("score").rank("ordinal", descending=True).over("topic_id").cast(pl.Int64).alias("rank")] * ranked
    tables = parquet_frames(path, [own[name] for name in needed], _ROWS)
    frames = (conforming(one.rename(other, strict=False), needed, path) for one in tables)
    # Ranks need whole topics.
    for frame in [pl.concat([pl.DataFrame(schema=needed), *frames])] if ranked else frames:
        if "score" in needed and not frame["score"].is_finite().all():
            row = frame.filter(~pl.col("score").is_finite()).row(0, named=True)
            fault = f"topic {row['topic_id']}, document {row['doc_id']}: the score {row['score']} is not finite"
            raise InputError(fault, "write a finite number", where=path)
        if len(frame):
            yield frame.with_columns(more).select(list(schema))
