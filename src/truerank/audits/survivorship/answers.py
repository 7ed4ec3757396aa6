"""`truerank survivorship answerable`: answers by ranker, queries that none answers, what rankers have in common."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import numpy as np
import polars as pl
import scipy
from numpy.typing import NDArray

from truerank.arrays import frame_schema
from truerank.audits.survivorship.answer_pools import (
    ITEMS,
    POOL,
    POOL_SCHEMA,
    AnswerPoolOptions,
    AnswersOfDiscarded,
    DiscardedQueries,
    discarded_ids,
    pool_discarded,
    top_results,
)
from truerank.audits.survivorship.queries import named_sources, whole_numbers
from truerank.core.plain import picked, plain
from truerank.errors import InputError, OptionError
from truerank.judging import Item, LabelCounts, Ratings, read_items, read_ratings, table
from truerank.judging.ratings import RatingSource, label_inputs, label_rules
from truerank.judging.schemes import load_scheme
from truerank.loading import whole_number
from truerank.measures.magnitudes import Proportion, proportion
from truerank.options import Confidence, Flag, Labels, Options, Out, Range, command
from truerank.records import Input
from truerank.sources import columns, formats, grammar, read_qrels_frame
from truerank.sources.inputs import input_of
from truerank.sources.query_files import as_text
from truerank.sources.rows import Row, rows
from truerank.work.artifacts import written_by
from truerank.work.progress import Progress
from truerank.work.publishing import publish
from truerank.work.runs import run as started

#: The folder of a pool of answers that was judged.
JudgedPoolFolder = Annotated[str | Path | None, Flag(metavar="DIR", reads=Path)]
#: Which passage answers which query.
ANSWER_SCHEMA: Final[dict[str, Any]] = frame_schema("corpus query_id doc_id: String, answers: Boolean")
#: The first answer of each system for each query; document and rank are null where it has none.
FIRST_SCHEMA: Final[dict[str, Any]] = frame_schema("corpus system query_id doc_id: String, rank: Int32")
_SYSTEMS: Final = ("scorer", "system", "run", "model", "ranker")
_RANKS: Final = ("rank", "position")
_DOCUMENTS: Final = ("doc_id", "docid", "docno", "passage_id")
_NOTHING: Final = frozenset(("", "_", "na", "nan", "none", "null", "-"))


def given_by_people(pool: str | Path | None, judged: Labels) -> bool:
    if (pool is not None) != bool(judged):
        raise OptionError("pool" if pool is None else "labels", "a pool goes with labels", "give `pool` and `labels`")
    return pool is not None


class JudgedPassages(NamedTuple):
    """Judged passages of a pool."""

    pool: pl.DataFrame
    answers: pl.DataFrame
    notes: tuple[str, ...]
    inputs: tuple[Input, ...]


def judged_by_people(pool: str | Path, judged: Labels) -> JudgedPassages:
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
    return JudgedPassages(passages.join(known, on=["corpus", "query_id"], how="semi"), answers, tuple(notes), inputs)


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
    return JudgedPassages(pool, answers, tuple(notes), inputs)


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
        raise InputError(f"'{rank[:40]}' is not a rank", "give 1 or more, or NA", where=where, line=row.line)
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


_ANY = "any of them"
_NAME = "survivorship answerable"


@dataclass(frozen=True)
class AnswerCountOptions(Options):
    """To count answers, of a pool that was judged or of what is given here.

    Attributes:
        qrels: judgments of discarded queries, in the place of a pool; they go with runs.
        rel: the lowest grade of these judgments that answers a query.
        firsts: a table of first answers, in the place of a pool: scorer, query_id, doc_id, rank.
        reasons: labels of the scheme survivorship: why queries were left without an answer.
        cutoffs: an answer among so many first results counts. In Python a sequence.
        confidence: of all intervals.
    """

    qrels: Annotated[str | None, Flag(metavar="SRC")] = None
    rel: Annotated[int, Range(at_least=1)] = 1
    firsts: Annotated[str | None, Flag(metavar="SRC")] = None
    reasons: Annotated[RatingSource, Flag(metavar="STORE|SRC", reads=list[str])] = ()
    cutoffs: Annotated[str | Sequence[int], Flag(metavar="K,K…", reads=str)] = "10,3"
    confidence: Confidence = 0.95

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.ranks:
            raise OptionError("cutoffs", "no number", "write them like 10,3")

    @property
    def ranks(self) -> tuple[int, ...]:
        """The cutoffs, the largest first."""
        return whole_numbers(self.cutoffs, "cutoffs")[::-1]


class SystemShares(NamedTuple):
    """One system: for how many queries it has no answer, and an answer among so many first results."""

    system: str
    none: Proportion
    within: Mapping[int, Proportion]


class Overlap(NamedTuple):
    """Two systems: how many queries both, only one, or neither answers; p of McNemar's exact test."""

    first: str
    second: str
    both: int
    only_first: int
    only_second: int
    neither: int
    p: float

    @property
    def jaccard(self) -> float | None:
        union = self.both + self.only_first + self.only_second
        return self.both / union if union else None


@dataclass(frozen=True, eq=False)
class CorpusAnswers:
    """The answers found in one corpus.

    Attributes:
        name: of the corpus, may be empty.
        systems: their names.
        queries: ids.
        ranks: rank of the first answer, shape (systems, queries), 0 where there is none.
        cutoffs: the largest first.
        confidence: of all intervals.
    """

    name: str
    systems: tuple[str, ...]
    queries: tuple[str, ...]
    ranks: NDArray[np.int64]
    cutoffs: tuple[int, ...]
    confidence: float

    @cached_property
    def answered(self) -> NDArray[np.bool_]:
        """Whether a system has an answer within the largest cutoff, shape (systems, queries)."""
        return (self.ranks > 0) & (self.ranks <= self.cutoffs[0])

    @cached_property
    def shares(self) -> tuple[SystemShares, ...]:
        """By system; with several systems, the last one is any of them."""
        rows = [(name, self.ranks[place]) for place, name in enumerate(self.systems)]
        if len(self.systems) > 1:
            far = np.iinfo(np.int64).max
            best = np.where(self.ranks > 0, self.ranks, far).min(axis=0)
            rows.append((_ANY, np.where(best == far, 0, best)))
        return tuple(self._shares(name, ranks) for name, ranks in rows)

    @property
    def unanswerable(self) -> Proportion:
        """Queries that no system answers."""
        return proportion(int((~self.answered.any(axis=0)).sum()), len(self.queries), confidence=self.confidence)

    @cached_property
    def overlaps(self) -> tuple[Overlap, ...]:
        """Every pair of systems."""
        return tuple(self._overlap(a, b) for a, b in itertools.combinations(range(len(self.systems)), 2))

    @property
    def by_count(self) -> tuple[int, ...]:
        """How many queries are answered by 0, 1, … all of the systems."""
        counts = np.bincount(self.answered.sum(axis=0), minlength=len(self.systems) + 1)
        return tuple(counts.tolist())

    def json(self) -> dict[str, Any]:
        """All figures by name."""
        return {
            "queries": len(self.queries),
            "systems": {one.system: plain(one, "system") for one in self.shares},
            "unanswerable": self.unanswerable.json(),
            "answered_by": list(self.by_count),
            "overlaps": [one._asdict() | {"jaccard": one.jaccard} for one in self.overlaps],
        }

    def _shares(self, name: str, ranks: NDArray[np.int64]) -> SystemShares:
        total, found = len(self.queries), ranks > 0
        within = {
            cutoff: proportion(int((found & (ranks <= cutoff)).sum()), total, confidence=self.confidence)
            for cutoff in self.cutoffs
        }
        without = total - within[self.cutoffs[0]].k
        return SystemShares(name, proportion(without, total, confidence=self.confidence), within)

    def _overlap(self, a: int, b: int) -> Overlap:
        first, second = self.answered[a], self.answered[b]
        only_first, only_second = int((first & ~second).sum()), int((~first & second).sum())
        differ = only_first + only_second
        p = min(1.0, 2 * float(scipy.special.bdtr(min(only_first, only_second), differ, 0.5))) if differ else 1.0
        both, neither = int((first & second).sum()), int((~first & ~second).sum())
        return Overlap(self.systems[a], self.systems[b], both, only_first, only_second, neither, p)


@dataclass(frozen=True, eq=False, repr=False)
class Answerable(AnswersOfDiscarded):
    """For how many discarded queries each ranker finds an answer.

    Attributes:
        first: the first answer of each system for each query, columns as in `answers.FIRST_SCHEMA`; None where only
            reasons were given.
        options: the choices.
        notes: what was left out.
        reasons: why queries were left without an answer, the paper's Table 1.
        inputs: what was read.
        out: the folder that it was written to.
    """

    first: pl.DataFrame | None
    options: AnswerCountOptions
    notes: tuple[str, ...] = ()
    reasons: LabelCounts | None = None
    inputs: tuple[Input, ...] = ()
    out: Path | None = None

    @cached_property
    def corpora(self) -> tuple[CorpusAnswers, ...]:
        """The answers by corpus."""
        found: list[CorpusAnswers] = []
        if self.first is None:
            return ()
        for (name,), part in self.first.group_by("corpus", maintain_order=True):
            queries = part["query_id"].unique(maintain_order=True)
            systems = part["system"].unique(maintain_order=True)
            places = pl.DataFrame({"query_id": queries}).with_row_index("place")
            ranks = np.zeros((len(systems), len(queries)), np.int64)
            for row, system in enumerate(systems):
                own = part.filter((pl.col("system") == system) & pl.col("rank").is_not_null())
                at = own.join(places, on="query_id", maintain_order="left")
                ranks[row, at["place"].to_numpy()] = at["rank"].to_numpy()
            cutoffs, confidence = self.options.ranks, self.options.confidence
            found.append(CorpusAnswers(str(name), tuple(systems), tuple(queries), ranks, cutoffs, confidence))
        return tuple(found)

    @property
    def anywhere(self) -> Proportion | None:
        """Queries that some system answers in some corpus, of those judged in every corpus; None for one corpus."""
        if len(self.corpora) < 2:
            return None
        shared = set(self.corpora[0].queries).intersection(*(corpus.queries for corpus in self.corpora[1:]))
        answered = {
            query
            for corpus in self.corpora
            for query, found in zip(corpus.queries, corpus.answered.max(axis=0, initial=False).tolist(), strict=True)
            if found
        }
        return proportion(len(answered & shared), len(shared), confidence=self.options.confidence)

    def json(self) -> dict[str, Any]:
        """What `summary.json` holds."""
        options = picked(self.options, "cutoffs=ranks, confidence, rel")
        corpora = {corpus.name: corpus.json() for corpus in self.corpora}
        return {"options": options, "corpora": corpora, **picked(self, "answerable_anywhere=anywhere, reasons, notes")}


@command
def answerable(
    run: Annotated[str | Path | Sequence[str | Path], Flag(metavar="[[CORPUS/]NAME=]FILE", reads=list[str])] = (),
    *,
    queries: DiscardedQueries = DiscardedQueries(),
    pooling: AnswerPoolOptions = AnswerPoolOptions(),
    pool: JudgedPoolFolder = None,
    judged: Labels = Labels(),
    counting: AnswerCountOptions = AnswerCountOptions(),
    out: Out = None,
    progress: Progress | None = None,
) -> AnswersOfDiscarded:
    """Finds out whether discarded queries can be answered after all: first pools rankers' results, then counts.

    With collections (docs) a pool is made: the first results of every run for the discarded queries, as items for judge
    new (scheme answerability); from a log also what the first annotators saw (reasons.jsonl, scheme survivorship).
    Without, answers are counted: for how many queries each ranker has one, and how many none answers; from labels of
    such a pool, from judgments, or from a table of first answers.

    Args:
        run: runs of the discarded queries, to be pooled, or to be counted by judgments.
        queries: where the discarded queries are.
        pooling: how a pool is made.
        pool: the folder of a pool that was judged.
        judged: its labels, of the scheme answerability; the rule for several voices goes for `reasons`, too.
        counting: other places where it is told what answers a query, and how answers are counted.
        out: a folder for the pool, or for page, tables and first answers.
        progress: is told about the work.

    Returns:
        The pool; or shares with intervals by corpus and system, queries that none answers, and what systems share.

    Raises:
        InputError: none, or several, of the sources of answers; a fault in a file.
        OptionError: an option that the other way of using this command has.

    Examples:

        truerank survivorship answerable --log dev_v2.1.json.gz --sample 50 --docs collection.tsv --run bm25.run
        --run monot5.run --out pool/

        truerank survivorship answerable --pool pool/ --labels answers.db --out answerable/

    Source: Gupta, MacAvaney: On Survivorship Bias in MS MARCO (SIGIR 2022), section 3, Tables 1 and 2.
    """
    runs = [str(one) for one in ([run] if isinstance(run, str | Path) else run)]
    if pooling.docs:
        remedy = "leave it out, and count in a second call"
        given = ("pool",) if pool is not None else ()
        _refuse(
            (*given, *_chosen(judged), *_chosen(counting)), "does not go with `docs`: a pool is judged first", remedy
        )
        result: AnswersOfDiscarded
        chosen: dict[str, Any]
        result = (made := pool_discarded(runs, queries, pooling, progress))
        inputs, chosen = made.inputs, {"survival": queries.survival, "pooling": pooling}
    else:
        by_people = given_by_people(pool, judged)
        _check_counting(runs, queries, pooling, (by_people, judged), counting)
        result = (found := _counted(runs, queries, (pool, judged), counting))
        inputs, chosen = found.inputs, {**label_rules(judged), "counting": replace(counting, reasons=())}
    if out is None:
        return result
    with started(_NAME, inputs, chosen, out, packages=("scipy", "matplotlib")) as job:
        result = replace(result, out=Path(out))
        if isinstance(result, Answerable) and result.first is not None:
            job.text("first_answers.tsv", result.first.write_csv(separator="\t", null_value="NA"))
        publish(result, job)
    return result


def _chosen(group: Options) -> list[str]:
    usual = type(group)()
    names = [field.name for field in fields(group)]  # type: ignore[arg-type]
    return [name for name in names if getattr(group, name) != getattr(usual, name)]


def _refuse(options: Iterable[str], fault: str, remedy: str) -> None:
    for option in options:
        raise OptionError(option, fault, remedy)


def _check_counting(
    runs: Sequence[str],
    queries: DiscardedQueries,
    pooling: AnswerPoolOptions,
    people: tuple[bool, Labels],
    counting: AnswerCountOptions,
) -> None:
    """Refuses what a count does not look at; `people` says whether there is a judged pool, and by which rule."""
    (by_people, judged), reasons = people, Labels(counting.reasons)
    if [by_people, counting.firsts is not None, counting.qrels is not None].count(True) > 1:
        remedy = "give `pool` with `labels`, or `firsts`, or `run` with `qrels`"
        raise InputError("only one source of answers is possible", remedy, where=_NAME)
    some = by_people or counting.firsts is not None or counting.qrels is not None
    _refuse(_chosen(pooling), "goes with `docs`: it says how a pool is made", "give `docs`, or leave it out")
    if not some and not reasons and not runs and not _chosen(queries):
        remedy = "give `pool` with `labels`, or `firsts`, or `run` with `qrels`"
        raise InputError("one source of answers is needed", remedy, where=_NAME)
    if counting.qrels is None:
        remedy = "give `docs` to make a pool, or `qrels` to count, or leave it out"
        _refuse((["run"] if runs else []) + _chosen(queries), "goes with `docs` or `qrels`", remedy)
        _refuse({"rel"}.intersection(_chosen(counting)), "goes with `qrels`", "leave it out")
    else:
        _refuse({"topics"}.intersection(_chosen(queries)), "goes with `docs`", "leave it out")
        if queries.log is None:
            _refuse({"survival"}.intersection(_chosen(queries)), "goes with `log`", "leave it out")
    if not by_people and not reasons:
        said = sorted(label_rules(judged).keys() & _chosen(judged))
        _refuse(said, "goes with `labels` or `reasons`", "leave it out")
    if not some:
        _refuse({"cutoffs"}.intersection(_chosen(counting)), "goes with a source of answers", "leave it out")


def _counted(
    runs: Sequence[str],
    queries: DiscardedQueries,
    people: tuple[str | Path | None, Labels],
    counting: AnswerCountOptions,
) -> Answerable:
    pool, judged = people
    notes: tuple[str, ...] = ()
    inputs: tuple[Input, ...] = ()
    first = None
    if counting.firsts is not None:
        first, inputs = read_firsts(counting.firsts), (input_of("firsts", counting.firsts),)
    elif counting.qrels is not None or pool is not None:
        if counting.qrels is not None:
            named = queries if queries.log or queries.discarded else None
            passages = judged_by_qrels(runs, counting.qrels, counting.rel, counting.ranks[0], named)
        else:
            passages = judged_by_people(pool or "", judged)
        first, notes, inputs = first_answers(passages), passages.notes, passages.inputs
    why = None
    reasons = replace(judged, labels=counting.reasons)
    if reasons:
        why = table(judgments=reasons, scheme="survivorship", confidence=counting.confidence)
        inputs = (*inputs, *label_inputs(reasons, "reasons"))
    return Answerable(first, counting, notes, why, inputs)
