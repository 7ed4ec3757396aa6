"""Which passages answer discarded queries, as people or judgments say, and where rankers have the first answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import polars as pl

from truerank.audits.survivorship.pooling import ITEMS, POOL, POOL_SCHEMA, DiscardedQueries, discarded_ids, top_results
from truerank.audits.survivorship.queries import named_sources
from truerank.errors import InputError, OptionError
from truerank.judging import Item, Ratings, read_items, read_ratings
from truerank.judging.ratings import label_inputs
from truerank.judging.schemes import load_scheme
from truerank.loading import whole_number
from truerank.options import Flag, Labels
from truerank.records import Input
from truerank.sources import columns, formats, grammar, read_qrels_frame
from truerank.sources.inputs import input_of
from truerank.sources.query_files import as_text
from truerank.sources.rows import Row, rows
from truerank.work.artifacts import written_by

#: The folder of a pool of answers that was judged.
JudgedPoolFolder = Annotated[str | Path | None, Flag(metavar="DIR", reads=Path)]
#: Which passage answers which query.
ANSWER_SCHEMA: Final[dict[str, Any]] = {
    "corpus": pl.String,
    "query_id": pl.String,
    "doc_id": pl.String,
    "answers": pl.Boolean,
}
#: The first answer of each system for each query; document and rank are null where it has none.
FIRST_SCHEMA: Final[dict[str, Any]] = {
    "corpus": pl.String,
    "system": pl.String,
    "query_id": pl.String,
    "doc_id": pl.String,
    "rank": pl.Int32,
}
_SYSTEMS: Final = ("scorer", "system", "run", "model", "ranker")
_RANKS: Final = ("rank", "position")
_DOCUMENTS: Final = ("doc_id", "docid", "docno", "passage_id")
_NOTHING: Final = frozenset(("", "_", "na", "nan", "none", "null", "-"))


def given_by_people(pool: str | Path | None, judged: Labels) -> bool:
    """Whether a pool with its labels is given."""
    if (pool is not None) != bool(judged):
        raise OptionError("pool" if pool is None else "labels", "a pool goes with labels", "give `pool` and `labels`")
    return pool is not None


class JudgedPassages(NamedTuple):
    """Judged passages of a pool.

    Attributes:
        pool: columns as in `pooling.POOL_SCHEMA`, queries that were judged only.
        answers: columns as in `ANSWER_SCHEMA`, one row for each judged passage.
        items: the items, by corpus and query; empty where judgments stand for labels.
        notes: what was left out.
        inputs: what was read.
    """

    pool: pl.DataFrame
    answers: pl.DataFrame
    items: Mapping[tuple[str, str], Item]
    notes: tuple[str, ...]
    inputs: tuple[Input, ...]


def judged_by_people(pool: str | Path, judged: Labels) -> JudgedPassages:
    """What people said about a pool."""
    folder = Path(pool)
    passages, items = _opened(folder)
    ratings = read_ratings(judged, scheme="answerability")
    units, foreign = _units(ratings, items)
    if not units:
        raise InputError("the labels are of other items", "give those of this pool", where=", ".join(ratings.sources))
    rows: list[tuple[str, str, str, bool]] = []
    tied = 0
    places = max((len(item.texts) for item in items.values()), default=1)
    for number in range(1, places):
        name = f"passage {number}"

        def marked(said: tuple[str, ...], name: str = name) -> str | None:
            return None if not said else "yes" if name in said else "no"

        for unit, answer in ratings.decided(marked, include_models=judged.include_models, order=("yes", "no")).items():
            item = units.get(unit)
            passage = None if item is None else next((text for text in item.texts if text.name == name), None)
            if item is None or passage is None:
                continue
            tied += answer is None
            rows.append((item.dataset, item.topic_id, passage.id, answer == "yes"))
    if not rows:
        raise InputError("nothing is labelled by people", "let people judge", where=", ".join(ratings.sources))
    answers = pl.DataFrame(rows, schema=ANSWER_SCHEMA, orient="row")
    known = answers.select("corpus", "query_id").unique()
    notes = [f"{len(known):,} of {len(items):,} items were judged."]
    if tied:
        notes.append(f"{tied:,} passages on which annotators are tied are taken for no answers; adjudicate them.")
    if foreign:
        notes.append(f"{foreign:,} labelled items are not of this pool and are left out.")
    notes += ratings.notes
    inputs = (input_of("pool", folder / POOL), *label_inputs(judged))
    return JudgedPassages(
        passages.join(known, on=["corpus", "query_id"], how="semi"), answers, items, tuple(notes), inputs
    )


def judged_by_qrels(
    runs: Sequence[str], qrels: str, rel: int, k: int, discarded: DiscardedQueries | None = None
) -> JudgedPassages:
    """What existing judgments say about the first results of rankers."""
    systems = named_sources(runs, "run")
    if not systems:
        raise OptionError("run", "no run", "name at least one")
    judged = read_qrels_frame(qrels)
    name = grammar.parse(qrels).name
    inputs = (input_of("qrels", qrels), *(input_of("run", spec, system) for system, spec in systems.items()))
    notes: list[str] = []
    if discarded is not None:
        ids, read = discarded_ids(discarded)
        inputs = (*inputs, *read)
        judged = judged.filter(pl.col("topic_id").is_in(pl.Series(ids, dtype=pl.String).implode()))
        lacking = len(ids) - judged["topic_id"].n_unique()
        if not len(judged):
            raise InputError("no discarded query has a judgment", "give judgments of them", where=qrels)
        if lacking:
            notes.append(f"{lacking:,} discarded queries without a judgment are left out.")
    wanted = judged["topic_id"].unique(maintain_order=True)
    parts = []
    for system, spec in systems.items():
        top = top_results(spec, wanted, k)
        parts.append(top.with_columns(pl.lit(name).alias("corpus"), pl.lit(system).alias("system")))
    pool = pl.concat(parts).select(list(POOL_SCHEMA)).cast(pl.Schema(POOL_SCHEMA))
    answers = judged.select(
        pl.lit(name).alias("corpus"),
        pl.col("topic_id").alias("query_id"),
        "doc_id",
        (pl.col("relevance") >= rel).alias("answers"),
    )
    unjudged = len(pool.join(answers, on=["query_id", "doc_id"], how="anti"))
    notes.append(f"{unjudged:,} of {len(pool):,} pooled results are not judged and are taken for no answers.")
    return JudgedPassages(pool, answers, {}, tuple(notes), inputs)


def first_answers(judged: JudgedPassages) -> pl.DataFrame:
    """The first answer of each system for each judged query, columns as in `FIRST_SCHEMA`."""
    queries = judged.answers.select("corpus", "query_id").unique(maintain_order=True)
    systems = judged.pool.select("corpus", "system").unique(maintain_order=True)
    every = systems.join(queries, on="corpus", maintain_order="left_right")
    right = judged.answers.filter("answers").select("corpus", "query_id", "doc_id")
    hits = judged.pool.join(right, on=["corpus", "query_id", "doc_id"]).sort("rank", "doc_id")
    best = hits.unique(["corpus", "system", "query_id"], keep="first", maintain_order=True)
    keys = ["corpus", "system", "query_id"]
    return (
        every.join(best, on=keys, how="left", maintain_order="left")
        .select(list(FIRST_SCHEMA))
        .cast(pl.Schema(FIRST_SCHEMA))
    )


def read_firsts(source: str) -> pl.DataFrame:
    """A table of first answers: system (or scorer), query_id, doc_id and rank, NA or _ where there is none."""
    spec = grammar.parse(source)
    if spec.scheme != "file":
        raise InputError("tables of first answers are read from files", "give a path", where=source)
    form = formats.detect(spec.path, spec.format)
    if form not in ("csv", "tsv", "lines", "jsonl", "json", "parquet"):
        raise InputError(f"a file of the kind '{form}' holds no table", "give TSV, CSV or JSONL", where=spec.location)
    found = [_first(row, spec.location) for row in rows(spec.path, "tsv" if form == "lines" else form)]
    if not found:
        raise InputError("no rows in it", "give a row for each system and query", where=spec.location)
    frame = pl.DataFrame(found, schema=FIRST_SCHEMA, orient="row")
    _check_whole(frame, spec.location)
    return frame


def _opened(folder: Path) -> tuple[pl.DataFrame, dict[tuple[str, str], Item]]:
    with written_by("survivorship answerable --docs", folder, POOL, ITEMS):
        pool = pl.read_parquet(folder / POOL, glob=False).select(list(POOL_SCHEMA)).cast(pl.Schema(POOL_SCHEMA))
    items = read_items(str(folder / ITEMS), load_scheme("answerability"))
    return pool, {(item.dataset, item.topic_id): item for item in items}


def _units(ratings: Ratings, items: Mapping[tuple[str, str], Item]) -> tuple[dict[int, Item], int]:
    """The items by the units that were rated, and how many rated units are none of them."""
    by_id = {item.item_id: item for item in items.values()}
    found: dict[int, Item] = {}
    rated = {rating.unit for rating in ratings.ratings}
    for place in sorted(rated):
        unit = ratings.units[place]
        item = by_id.get(unit.unit_id) or items.get((unit.dataset, unit.topic_id))
        if item is not None:
            found[place] = item
    return found, len(rated) - len(found)


def _first(row: Row, where: str) -> tuple[str, str, str, str | None, int | None]:
    names = list(row.values)
    keys = [columns.named(names, wanted) for wanted in (_SYSTEMS, columns.ID_NAMES, _DOCUMENTS, _RANKS)]
    if None in keys:
        fault = f"columns for system, query_id, doc_id and rank are needed; there are {', '.join(names[:12])}"
        raise InputError(fault, "name them so", where=where, line=row.line)
    system, query_id, doc_id, rank = ((as_text(row.values[key or ""]) or "").strip() for key in keys)
    if not system or not query_id:
        raise InputError("a row without system or query", "fill it in", where=where, line=row.line)
    corpus = columns.named(names, ("corpus", "dataset"))
    named = "" if corpus is None else (as_text(row.values[corpus]) or "").strip()
    if rank.lower() in _NOTHING:
        return named, system, query_id, None, None
    whole, _, fraction = rank.partition(".")
    number = whole_number(whole) or 0
    if not 1 <= number < 1 << 31 or fraction.strip("0"):
        raise InputError(f"'{rank[:40]}' is no rank", "give 1 or more, or NA", where=where, line=row.line)
    return named, system, query_id, None if doc_id.lower() in _NOTHING else doc_id, number


def _check_whole(frame: pl.DataFrame, where: str) -> None:
    keys = ["corpus", "system", "query_id"]
    repeated = frame.filter(pl.struct(keys).is_duplicated())
    if len(repeated):
        _, system, query = repeated.select(keys).row(0)
        raise InputError(f"'{system}' has the query {query} twice", "keep one row", where=where)
    for (corpus,), part in frame.group_by("corpus", maintain_order=True):
        queries = part["query_id"].n_unique()
        for (system,), own in part.group_by("system", maintain_order=True):
            if len(own) < queries:
                fault = f"'{system}' lacks {queries - len(own)} of the {queries} queries" + (
                    f" of {corpus}" if corpus else ""
                )
                raise InputError(fault, "write NA as the rank where it has no answer", where=where)
