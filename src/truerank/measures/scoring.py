"""Scoring runs: one after the other, each read in pieces of whole topics."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import combinations, groupby
from operator import itemgetter
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple, TypeAlias

import numpy as np
import polars as pl
from ir_measures.measures.base import Measure
from numpy.typing import NDArray

from truerank.arrays import Ints
from truerank.errors import InputError, OptionError
from truerank.measures import effectiveness
from truerank.measures.effectiveness import RankedJudgments
from truerank.measures.equivalence import Equivalence, EquivalenceOptions
from truerank.measures.grammar import MeasureSpec, aggregate_of, parse_measures
from truerank.measures.rankings import GradeTable, Hits, Ranking, grouped, joined, topic_starts, whole_topics
from truerank.measures.results import Coverage, Evaluation
from truerank.options import Columns, Flag, Out, Scoring, Ties, command
from truerank.records import Input, Qrel, RunRow
from truerank.sources import SourceSpec, parse, run_frames, unique_names
from truerank.sources import qrels as sources_qrels
from truerank.sources.inputs import input_of, inputs_of
from truerank.sources.notebook import frame_of, is_single, of_ranx
from truerank.sources.pair_tables import conforming
from truerank.sources.qrels import QREL_SCHEMA, highest_grades
from truerank.sources.runs import RUN_SCHEMA, first_places, whole_run
from truerank.work.ahead import read_ahead
from truerank.work.progress import Progress, Quiet
from truerank.work.publishing import publish
from truerank.work.runs import run as started


class RarerMeasures:
    """Scores rankings by measures of ir_measures.

    Every tool behind ir_measures orders results in its own way where scores are equal. So each gets the ranking of the
    policy, with scores that fall by one from rank to rank.

    Args:
        measures: what is scored; binary measures without `rel=` take the policy's.
        qrels: columns topic_id, doc_id and relevance.
        policy: for the lowest relevant grade.
    """

    def __init__(self, measures: Sequence[Measure], qrels: pl.DataFrame, policy: Scoring) -> None:
        import ir_measures

        self._names = {str(_at_level(measure, policy)): name for name, measure in enumerate(measures)}
        levelled = [_at_level(measure, policy) for measure in measures]
        for measure in levelled:
            if type(measure).__module__.endswith(".diversity"):
                raise OptionError(
                    "measures", f"{measure} scores the subtopics of a topic", "leave it out: they are not read"
                )
        self._defaults = [float(measure.DEFAULT) for measure in levelled]
        try:
            sampled = any(measure.NAME == "infAP" for measure in measures)
            records = [ir_measures.Qrel(*row) for row in _safe(qrels, sampled).iter_rows()]
            self._evaluator = ir_measures.evaluator(levelled, records)
        except (RuntimeError, ValueError, AssertionError) as error:
            reason = str(error).removeprefix("Unsupported measures ").replace("{", "").replace("}", "")
            graded = any(measure.NAME == "RBP" for measure in levelled)
            remedy = "write RBP(p=0.8,rel=1), with the lowest relevant grade in it" if graded else "choose another"
            raise OptionError("measures", f"cannot be computed here: {reason}", remedy) from error

    def score(
        self, rankings: Iterator[tuple[str, list[str]]], topics: Mapping[str, int], values: NDArray[np.float64]
    ) -> None:
        """Fills in the values of some topics.

        Args:
            values: shape (measures, topics).
        """
        run = {topic: {name: float(-rank) for rank, name in enumerate(documents)} for topic, documents in rankings}
        for found in self._evaluator.iter_calc(run):
            if found.query_id in run:
                values[self._names[str(found.measure)], topics[found.query_id]] = found.value

    def empty(self, topics: int) -> NDArray[np.float64]:
        """What topics score whose ranking is empty, shape (measures, topics)."""
        return np.repeat(np.array(self._defaults)[:, None], topics, axis=1)


def _safe(qrels: pl.DataFrame, sampled: bool) -> pl.DataFrame:
    """The judgments without negative grades, which can make pytrec_eval hang.

    They stand for documents that are not judged. Where a measure needs to know that they were pooled, they stay as -1
    in topics that have other grades.
    """
    if not sampled:
        return qrels.filter(pl.col("relevance") >= 0)
    judged = qrels.filter(pl.col("relevance").max().over("topic_id") >= 0)
    return judged.with_columns(pl.col("relevance").clip(lower_bound=-1))


def _at_level(measure: Measure, policy: Scoring) -> Measure:
    """The measure with the policy's grade, if it counts grades of 1 and more unless told otherwise."""
    known = measure.SUPPORTED_PARAMS.get("rel")
    follows = known is not None and known.default == 1 and "rel" not in measure.params
    return measure(rel=policy.rel) if follows and policy.rel != 1 else measure


#: Judgments: a source, records, a frame, or grades by topic and document as pytrec_eval takes them.
QrelSource: TypeAlias = str | Path | SourceSpec | pl.DataFrame | Mapping[str, Mapping[str, int]] | Iterable[Qrel]
OneRun: TypeAlias = str | Path | pl.DataFrame | Mapping[str, Mapping[str, float]] | Iterable[RunRow]
RunSource: TypeAlias = str | Path | Sequence[str | Path] | Mapping[str, OneRun] | OneRun

#: Topics whose scores are looked at, and the share of them that has to be odd.
_LOOKED_AT, _MOST = 100, 0.5
#: The fault of ranks that are all the same.
_CONSTANT: Final = "constant-ranks"
#: Rows whose ranks are looked at.
_ROWS: Final = 100_000
_NEEDED: Final[dict[Ties, str]] = {"trec_eval": "score", "ascending": "score", "rank": "rank"}


class _Scored(NamedTuple):
    """The scores of one run, what of it is judged, its rows, and whether its scores or ranks may say nothing."""

    values: NDArray[np.float64]
    coverage: Coverage
    rows: int
    odd: bool
    constant: bool
    remark: str = ""


class _Plan(NamedTuple):
    """What is done with every run: the measures by where they are computed, and what they need."""

    measures: tuple[Measure, ...]
    ties: tuple[Ties, ...]
    judgments: GradeTable
    rarer: RarerMeasures | None
    policy: Scoring
    equivalence: Equivalence | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        needed = {_NEEDED[policy] for policy in self.ties}
        return tuple(name for name in RUN_SCHEMA if name in {"topic_id", "doc_id", *needed})


class _Gathered:
    """What is known of a run after some of its topics."""

    def __init__(self, plan: _Plan) -> None:
        self._plan = plan
        self._hits: tuple[list[Hits], ...] = tuple([] for _ in plan.ties)
        self._present = np.zeros(len(plan.judgments.topics), np.bool_)
        self._unknown = 0
        self._rows = 0
        self._odd = self._constant = False
        self._places = {topic: place for place, topic in enumerate(plan.judgments.topics)}
        self._rarer = None if plan.rarer is None else plan.rarer.empty(len(self._present))

    def add(self, frame: pl.DataFrame, starts: Ints | None = None) -> bool:
        """Takes whole topics; False, and nothing is known, where a document occurs twice for one of them."""
        plan = self._plan
        ranking = Ranking(frame, plan.judgments, starts)
        if ranking.repeats():
            return False
        closed = ranking.closed(plan.equivalence, plan.ties)
        for held, policy in zip(self._hits, plan.ties, strict=True):
            shown, ties = closed[policy]
            held.append(shown.hits((ties,), plan.policy.depth)[0])
        # The first topics show what is asked of all of them, if it shows.
        self._odd |= not self._rows and plan.policy.ties != "rank" and _odd_scores(frame, starts)
        self._constant |= not self._rows and "rank" in plan.ties and constant_ranks(frame)
        self._present[ranking.numbers] = True
        self._unknown += ranking.unknown
        self._rows += len(frame)
        if plan.rarer is not None and self._rarer is not None:
            shown, ties = closed[plan.policy.ties]
            plan.rarer.score(shown.documents(ties, plan.policy.depth), self._places, self._rarer)
        return True

    def scored(self, name: str) -> _Scored:
        """The values of every measure and topic."""
        plan, topics = self._plan, len(self._present)
        missing = int(np.count_nonzero(~self._present))
        _check_topics(name, missing, plan, self._unknown)
        views = {policy: joined(held, topics) for policy, held in zip(plan.ties, self._hits, strict=True)}
        hits = views[plan.policy.ties]
        view = RankedJudgments(plan.judgments, hits, views.get("rank"), plan.policy)
        rarer = iter(() if self._rarer is None else self._rarer)
        values = np.stack(
            [
                effectiveness.score(measure, view) if effectiveness.computes(measure) else next(rarer)
                for measure in plan.measures
            ]
        )
        if plan.policy.missing == "skip":
            values[:, ~self._present] = np.nan
        results = int(hits.results.sum())
        coverage = Coverage(topics - missing, missing, self._unknown, results, results - len(hits.topic))
        return _Scored(values, coverage, self._rows, self._odd, self._constant)


@command
def evaluate(
    qrels: Annotated[QrelSource | None, Flag(metavar="SRC", reads=str)] = None,
    run: Annotated[RunSource, Flag(metavar="FILE", reads=list[str])] = (),
    measures: Annotated[MeasureSpec, Flag(reads=str)] = "nDCG@10 P@1",
    scoring: Scoring = Scoring(),
    equivalence: EquivalenceOptions = EquivalenceOptions(),
    *,
    paths: Annotated[Any, Flag(metavar="PATH…", positional=True, reads=list[str])] = (),
    columns: Columns = "",
    sort: Annotated[str | None, Flag(metavar="MEASURE")] = None,
    per_topic: bool = False,
    plot: bool = False,
    out: Out = None,
    progress: Progress | None = None,
) -> Evaluation:
    """Scores runs against relevance judgments, under policies that are printed with the scores.

    Means are over the topics of the judgments. A run is named by its file without .run, .txt and .gz. Runs are read one
    at a time, in blocks.

    Args:
        qrels: relevance judgments: a path or irds:ID. In Python also a frame (topic_id, doc_id, relevance), records, or
            grades by topic and document.
        run: Runs, as TREC lines or Parquet; repeat the option for several. In Python also runs by name: files, frames
            (topic_id, doc_id, score, and rank where it is used), records, or scores by topic and document.
        measures: measures of ir_measures, DCG@k, NCG@k, MFR, HMFR, RR_MSMARCO, separated by blanks.
        scoring: how ties, missing topics, depth and grades are dealt with.
        equivalence: documents that count as one.
        paths: instead of `qrels` and `run`: what `check` takes, such as a table of questions with what was expected
            and what systems retrieved, or judgments and runs in any form.
        columns: what the columns of tables are, where their names do not say; see `check`.
        sort: order the runs by this measure, the best first.
        per_topic: also show the scores of every topic.
        plot: also draw the means with their intervals, as SVG and PDF in the folder of `out`.
        out: a folder for per_topic.parquet, summary.json and manifest.json.
        progress: is told how many runs are scored.

    Returns:
        The scores by run, measure and topic.

    Raises:
        InputError: a fault in a file, with its line; an unknown measure, or one that cannot be computed here; a run
            without any topic of the qrels, or without some where `scoring` refuses that.

    Examples:

        truerank evaluate results.csv

        truerank evaluate --qrels robust04.qrels --run bm25.run --run monot5.run.gz --measures "nDCG@10 P@1 AP MFR"

        truerank evaluate --qrels dl19-passage.qrels --run monot5.run --rel 2 --measures "nDCG@10 AP P(rel=3)@10"

        truerank evaluate --qrels irds:cord19/trec-covid --run a.run --run b.run --sort nDCG@10 --format latex
        --out evaluation/
    """
    check_plot(plot, out)
    files = None
    if has_runs(paths):
        # Here, as in other commands: few of them are given paths.
        from truerank.sources.recognition import opened

        files = opened(paths, columns, str(measures), qrels=qrels, run=run)
        qrels, run = files.judged_runs()
    if qrels is None:
        raise OptionError("qrels", "no judgments", "give them, or a table of questions and results")
    if not has_runs(run):
        raise OptionError("run", "no run", "name at least one, or give a table of questions and results")
    # Read twice: once for the scores, once for the manifest.
    run = list(run) if isinstance(run, Iterator) else run
    found = _evaluated(qrels, run, measures, scoring, equivalence, progress=progress or Quiet())
    if files is not None:
        refuse_strangers(found, run)
    found = replace(found if sort is None else found.sorted(sort), per_topic=per_topic, plot=plot)
    if out is not None:
        options = {"measures": list(found.measures), "scoring": scoring, "sort": sort, **equivalence.json()}
        given = [
            *_inputs(qrels, run, found),
            *inputs_of(table=files and files.paths, equivalent=equivalence.equivalent),
        ]
        with started("evaluate", given, options, out, packages=("ir-measures",)) as job:
            publish(found, job)
    return found if files is None else found.read_from(files.readings)


def refuse_strangers(scored: Evaluation, runs: RunSource) -> None:
    """Refuses two runs that answer no topic in common: a difference of them is one of the topics."""
    matched = {name: coverage.matched for name, coverage in scored.coverage.items()}
    for name, other in combinations(matched, 2):
        if matched[name] + matched[other] > len(scored.topics):
            continue
        topics, others = (set(run_frame(named_runs(runs)[one])["topic_id"]) for one in (name, other))
        if not topics & others & {*scored.topics}:
            fault = f"{name} answers {matched[name]} topics, {other} {matched[other]} others, and none is in both"
            raise InputError(fault, "give results of the same topics, with the same ids", where=name)


def check_plot(plot: bool, out: str | Path | None) -> None:
    """Figures need a folder."""
    if plot and out is None:
        raise OptionError("plot", "there is no folder for the figures", "name one with `out`")


def _inputs(qrels: QrelSource, run: RunSource, found: Evaluation) -> list[Input]:
    opened, rows = named_runs(run), found.inputs["runs"]
    judged = input_of("qrels", qrels, rows=found.inputs["qrels"]["rows"])
    return [judged, *(input_of("run", source, name, rows[name]["rows"]) for name, source in opened.items())]


def _evaluated(
    qrels: QrelSource,
    runs: RunSource,
    measures: MeasureSpec,
    policy: Scoring,
    equivalence: EquivalenceOptions,
    *,
    progress: Progress,
) -> Evaluation:
    spelled = _spelled(parse_measures(measures), policy)
    opened = named_runs(runs)
    (judged, repeated), groups = judged_pairs(qrels), equivalence.opened()
    plan = _plan(tuple(spelled.values()), judged if groups is None else groups.closed(judged), policy, groups)
    progress.start("scoring runs", len(opened))
    scored = _scored(opened, plan, progress)
    return Evaluation(
        runs=tuple(scored),
        measures=tuple(spelled),
        topics=plan.judgments.topics,
        values=np.stack([found.values for found in scored.values()]),
        missing={name: found.coverage.missing for name, found in scored.items()},
        policy=policy,
        aggregates=tuple(map(aggregate_of, spelled.values())),
        coverage={name: found.coverage for name, found in scored.items()},
        remarks=(
            *repeated,
            *(found.remark for found in scored.values() if found.remark),
            *_run_remarks(opened, scored, judged, policy),
            *_remarks(spelled, policy),
            *equivalence.sentences(),
        ),
        inputs={
            "qrels": {"source": _source(qrels), "rows": len(judged)},
            "runs": {name: {"source": _source(opened[name]), "rows": found.rows} for name, found in scored.items()},
        },
    )


def _spelled(measures: tuple[Measure, ...], policy: Scoring) -> dict[str, Measure]:
    """The measures by their names, which show a grade of 1 where it is not the policy's."""
    names: dict[str, Measure] = {}
    for measure in measures:
        name = str(measure)
        if measure.params.get("rel") == 1 and policy.rel != 1 and "rel=" not in name:
            head, at, tail = name.partition("@")
            name = f"{head[:-1]},rel=1){at}{tail}" if head.endswith(")") else f"{head}(rel=1){at}{tail}"
        names.setdefault(name, measure)
    return names


def _plan(
    measures: tuple[Measure, ...], judged: pl.DataFrame, policy: Scoring, equivalence: Equivalence | None
) -> _Plan:
    rarer = [measure for measure in measures if not effectiveness.computes(measure)]
    official = any(measure.NAME == "RR_MSMARCO" for measure in measures)
    ties = dict.fromkeys((policy.ties, *(("rank",) if official else ())))
    return _Plan(
        measures=measures,
        ties=tuple(ties),
        judgments=GradeTable(judged),
        rarer=RarerMeasures(rarer, judged, policy) if rarer else None,
        policy=policy,
        equivalence=equivalence,
    )


def _scored(opened: Mapping[str, OneRun], plan: _Plan, progress: Progress) -> dict[str, _Scored]:
    """The scores of every run; what comes next is read meanwhile, be it of the same run or of the next one."""
    # Closed at once where a run is at fault, so that no thread goes on reading.
    with closing(read_ahead(_blocks(opened, plan.columns), 1)) as blocks:
        scored = {}
        for name, some in groupby(blocks, itemgetter(0)):
            scored[name] = _score(name, opened[name], (frame for _, frame in some), plan)
            progress.advance(1)
        return scored


def _blocks(opened: Mapping[str, OneRun], columns: Collection[str]) -> Iterator[tuple[str, pl.DataFrame]]:
    for name, run in opened.items():
        read = run_frames(run, columns) if isinstance(run, str | Path) else [_frame_of(name, run, columns)]
        yield from ((name, frame) for frame in read)


def _score(name: str, run: OneRun, frames: Iterator[pl.DataFrame], plan: _Plan) -> _Scored:
    if not isinstance(run, str | Path):
        return _score_whole(name, next(frames), plan)
    gathered = _Gathered(plan)
    for piece in whole_topics(frames):
        if piece is None or not gathered.add(*piece):
            # Topics that come back, or a document that occurs twice: the whole run has to be seen.
            return _score_whole(name, whole_run(run), plan)
    return gathered.scored(name)


def _score_whole(name: str, frame: pl.DataFrame, plan: _Plan) -> _Scored:
    gathered = _Gathered(plan)
    frame, remark = first_places(frame, name)
    gathered.add(grouped(frame.select(plan.columns)))
    return gathered.scored(name)._replace(remark=remark)


def _frame_of(name: str, run: OneRun, columns: Collection[str]) -> pl.DataFrame:
    schema = {column: RUN_SCHEMA[column] for column in columns}
    frame = conforming(frame_of(run, RUN_SCHEMA, "score"), schema, f"the run {name}")
    if not len(frame):
        raise InputError("no rows in this run", "give one that holds some", where=name)
    refuse_scores(frame, name)
    return frame


def refuse_scores(frame: pl.DataFrame, name: str) -> None:
    """Raises an InputError where a result has a score that is no number."""
    none = pl.col("score").is_null() | pl.col("score").is_nan()
    if "score" in frame.columns and len(row := frame.filter(none)):
        fault = f"topic {row['topic_id'][0]}, document {row['doc_id'][0]} has no number as its score"
        raise InputError(fault, "write one", where=name)


def run_frame(run: OneRun, ties: Iterable[Ties] = ("trec_eval",)) -> pl.DataFrame:
    """One run of any kind that `evaluate` takes, with the columns topic_id, doc_id, and what its order comes from."""
    columns = ("topic_id", "doc_id", *dict.fromkeys(_NEEDED[one] for one in ties))
    if isinstance(run, str | Path):
        return first_places(whole_run(run), "run")[0].select(columns)
    return first_places(_frame_of("run", run, columns), "run")[0]


def ranked_runs(given: Any) -> tuple[dict[str, pl.DataFrame], tuple[str, ...]]:
    """Whole runs by name, and what has to be said of them: topic_id, doc_id, rank and score; scores may give ranks."""
    wanted = ("topic_id", "doc_id", "rank", "score")
    runs, remarks = {}, []
    for name, one in (named_runs(given) if has_runs(given) else {}).items():
        frame = whole_run(one, wanted) if isinstance(one, str | Path) else frame_of(one, RUN_SCHEMA, "score")
        held = {column: RUN_SCHEMA[column] for column in wanted if column != "rank" or column in frame.columns}
        frame = conforming(frame, held, f"the run {name}")
        refuse_scores(frame, name)
        frame, remark = first_places(frame, name)
        remarks += [remark] if remark else []
        if "rank" not in held:
            ranks = pl.col("score").rank("ordinal", descending=True).over("topic_id")
            frame = frame.with_columns(ranks.cast(pl.Int64).alias("rank"))
        runs[name] = frame.select(wanted)
    return runs, tuple(remarks)


def qrel_frame(qrels: QrelSource) -> pl.DataFrame:
    """Judgments of any kind that `evaluate` takes, with the columns of `QREL_SCHEMA`."""
    return judged_pairs(qrels)[0]


def judged_pairs(qrels: QrelSource) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """The same, with what has to be said of pairs that were judged several times."""
    if isinstance(qrels, str | Path | SourceSpec):
        return sources_qrels.judged_pairs(qrels if isinstance(qrels, SourceSpec) else str(qrels))
    return highest_grades(conforming(frame_of(qrels, QREL_SCHEMA, "relevance"), QREL_SCHEMA, "the qrels"))


def named_runs(runs: RunSource) -> dict[str, OneRun]:
    """The runs by name: that of the file, the key of a mapping, or "run", of several "run 1" and "run 2"."""
    opened: dict[str, OneRun]
    several = runs if isinstance(runs, list | tuple) else ()
    if any(map(is_single, several)) and all(isinstance(run, str | Path) or is_single(run) for run in several):
        numbers = [f"run {number}" for number in range(1, len(several) + 1)] if len(several) > 1 else ["run"]
        named = [_name_of(run) or number for run, number in zip(several, numbers, strict=True)]
        if len(set(named)) < len(named):
            raise OptionError("run", "two runs have one name", "give runs by name, as a dictionary")
        return dict(zip(named, several, strict=True))
    if is_single(runs):
        opened = {_name_of(runs) or "run": runs}  # type: ignore[dict-item]
    elif isinstance(runs, Mapping):
        opened = dict(runs)  # type: ignore[arg-type]
    else:
        given = [runs] if isinstance(runs, str | Path) else list(runs)
        for one in given:
            if not isinstance(one, str | PathLike):
                raise OptionError(
                    "run", f"cannot read a {type(one).__name__} as a run",
                    "give paths, or runs by name: frames, or {topic: {document: score}}",
                )  # fmt: skip
        paths = [str(path) for path in given]
        opened = dict(zip(unique_names([parse(path) for path in paths]), paths, strict=True))
    if not opened:
        raise OptionError("run", "no run", "name at least one")
    return opened


def _name_of(run: Any) -> str:
    """The name of a file, or that which a run of ranx has; frames have none."""
    if isinstance(run, str | Path):
        return parse(str(run)).name
    return str(getattr(run, "name", None) or "") if of_ranx(run) else ""


def has_runs(runs: RunSource) -> bool:
    """Whether any run is given."""
    return not (isinstance(runs, list | tuple | Mapping) and not runs)


def run_inputs(runs: RunSource) -> list[Input]:
    """What the manifest says of runs."""
    return [input_of("run", source, name) for name, source in named_runs(runs).items()] if has_runs(runs) else []


def _check_topics(name: str, missing: int, plan: _Plan, unknown: int) -> None:
    topics = len(plan.judgments.topics)
    if missing == topics:
        raise InputError(
            f"the run holds none of the {topics} topics of the qrels, but {unknown} others",
            f"give matching files; the qrels have topics such as '{plan.judgments.topics[0]}'",
            where=name,
        )
    if missing and plan.policy.missing == "fail":
        raise InputError(
            f"the run lacks {missing} of the {topics} topics of the qrels",
            "complete it, or choose another policy for missing topics",
            where=name,
        )


def _remarks(measures: Mapping[str, Measure], policy: Scoring) -> tuple[str, ...]:
    """What has to be said of single measures."""
    remarks = []
    for name, measure in measures.items():
        if measure.NAME in ("MFR", "HMFR"):
            rank = effectiveness.no_relevant_rank(measure, policy)
            none = "adds nothing to the sum of 1/rank" if np.isinf(rank) else f"counts as rank {rank:g}"
            remarks.append(f"{name}: a topic without a relevant result {none}; lower is better.")
    return tuple(remarks)


def _odd_scores(frame: pl.DataFrame, starts: Ints | None) -> bool:
    """Whether the scores of most topics may rise from row to row, or are all the same."""
    starts = (topic_starts(frame["topic_id"]) if starts is None else starts)[: _LOOKED_AT + 1]
    ends = np.append(starts[1:], [] if len(starts) > _LOOKED_AT else len(frame)).astype(np.int64)
    starts = starts[:_LOOKED_AT]
    steps = np.diff(frame["score"].head(int(ends[-1])).to_numpy(), prepend=np.nan)
    steps[starts] = np.nan
    up, down = (np.add.reduceat(sign, starts, dtype=np.int64) for sign in (steps > 0, steps < 0))
    several = ends - starts > 1
    return bool(several.any()) and bool((3 * up >= down)[several].mean() >= _MOST)


def constant_ranks(frame: pl.DataFrame) -> bool:
    """Whether the ranks of most topics with several results are all the same: no order can come from them."""
    topics = frame.head(_ROWS).group_by("topic_id").agg(pl.len(), ranks=pl.col("rank").n_unique())
    several = topics.filter(pl.col("len") > 1)
    return len(several) > 0 and 2 * len(several.filter(pl.col("ranks") == 1)) >= len(several)


def _run_remarks(
    opened: Mapping[str, OneRun], scored: Mapping[str, _Scored], judged: pl.DataFrame, policy: Scoring
) -> Iterator[str]:
    """What has to be said of runs whose scores contradict their ranks or say nothing, or of which nothing is judged."""
    for name, found in scored.items():
        none = 0 < found.coverage.results == found.coverage.unjudged
        if not none and not found.odd and not found.constant:
            continue
        # Here: most runs need none of this, and are not read again.
        from truerank.measures.run_faults import score_faults
        from truerank.measures.topic_lists import TopicLists
        from truerank.text.identifiers import likely_cause

        run = opened[name]
        if isinstance(run, str | Path):
            frame = first_places(whole_run(run), name)[0]
        else:
            given = frame_of(run, RUN_SCHEMA, "score")
            wanted = ("topic_id", "doc_id", *(one for one in ("rank", "score") if one in given.columns))
            frame = conforming(given, {one: RUN_SCHEMA[one] for one in wanted}, name)
        frame = frame.join(judged, on="topic_id", how="semi", maintain_order="left")
        if none:
            cause = likely_cause(frame["doc_id"].unique(maintain_order=True), judged["doc_id"].unique())
            yield (
                f"None of the {found.coverage.results:,d} results of {name} is judged{cause}: it is scored as a run "
                "that finds nothing. Give the run and the judgments of the same documents, with the same ids."
            )
        elif "rank" not in frame.columns:
            frame = frame.with_columns(rank=pl.col("score").rank("ordinal", descending=True).over("topic_id"))
        for by_rank in (False,) * found.odd + (True,) * found.constant:
            faults = score_faults(name, TopicLists(frame), by_rank=by_rank)
            said = (fault for fault in faults if fault.weight == "fault" and (fault.kind == _CONSTANT or not by_rank))
            yield from (f"{fault.reason} {fault.remedy}" for fault in said)


def _source(given: Any) -> str | None:
    if isinstance(given, SourceSpec):
        return given.spec
    return str(given) if isinstance(given, str | Path) else None
