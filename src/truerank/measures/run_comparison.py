"""`truerank compare`: from runs or saved evaluations to differences, topics, and the order between two conditions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np

from truerank.arrays import Floats
from truerank.core.plain import picked, plain
from truerank.core.result import Result
from truerank.errors import InputError, OptionError
from truerank.measures.comparison import Comparison, Significance, compare_evaluations
from truerank.measures.conventions import ConventionRange, convention_range
from truerank.measures.grammar import lower_is_better
from truerank.measures.orders import OrderChanges, Variant, evaluation_order_changes
from truerank.measures.repeats import (
    RepeatedPair,
    merged_repeats,
    repeat_files,
    repeated_pairs,
    scores_by_repeat,
    scores_of_table,
)
from truerank.measures.results import Evaluation
from truerank.measures.scoring import (
    QrelSource,
    RunSource,
    check_plot,
    evaluate,
    has_runs,
    named_runs,
    qrel_frame,
    refuse_strangers,
    run_frame,
    run_inputs,
)
from truerank.measures.systems import Evaluations, open_evaluations, shared_topics, systems
from truerank.options import Columns, Flag, Options, Out, Scoring, command
from truerank.sources import parse
from truerank.sources.inputs import inputs_of
from truerank.work.publishing import publish
from truerank.work.runs import run as started


@dataclass(frozen=True, eq=False, repr=False)
class TopicDifferences(Result, shown_in="truerank.measures.report"):
    """The scores of two runs by topic, from the topic where the run gains most to the one where it loses most.

    Attributes:
        measure: its name.
        run: the run.
        baseline: what it is compared with.
        topics: the ids; topics that either was not scored on are left out.
        scores: of the run, shape (topics,).
        baseline_scores: of the baseline, shape (topics,).
        tie: differences up to this are ties.
        ascending: lower scores are better.
    """

    measure: str
    run: str
    baseline: str
    topics: tuple[str, ...]
    scores: Floats
    baseline_scores: Floats
    tie: float
    ascending: bool

    @property
    def differences(self) -> Floats:
        """Run minus baseline, shape (topics,); 0 where both are infinite."""
        return _differences(self.scores, self.baseline_scores)

    @property
    def outcomes(self) -> tuple[str, ...]:
        """By topic "win", "tie" or "loss"."""
        gains = self.differences * (-1 if self.ascending else 1)
        return tuple("win" if gain > self.tie else "loss" if gain < -self.tie else "tie" for gain in gains)

    def sentence(self) -> str:
        """How often the run wins."""
        outcomes = self.outcomes
        wins, ties, losses = (outcomes.count(kind) for kind in ("win", "tie", "loss"))
        return (
            f"{self.run} wins {wins:,} of {len(outcomes):,} topics against {self.baseline}, loses {losses:,}, "
            f"{ties:,} are ties (within {self.tie:g})."
        )

    def json(self) -> dict[str, Any]:
        """Everything, as plain numbers and texts; None for what is not finite."""
        columns = (self.scores.tolist(), self.baseline_scores.tolist(), self.differences.tolist(), self.outcomes)
        keys = ("topic_id", "score", "baseline_score", "difference", "outcome")
        topics = [plain(dict(zip(keys, row, strict=True))) for row in zip(self.topics, *columns, strict=True)]
        return {**picked(self, "measure, run, baseline, tie"), "topics": topics, "sentence": self.sentence()}


def topic_differences(
    evaluations: Evaluations, run: str, baseline: str, measures: Sequence[str], *, tie: float = 1e-9
) -> tuple[TopicDifferences, ...]:
    """Compares two runs topic by topic.

    Args:
        evaluations: the scores, one evaluation or several by name.
        run: the run.
        baseline: what it is compared with; both were scored on the same topics.
        measures: by which measures.
        tie: differences up to this are ties.

    Returns:
        One result per measure; topics with the same difference are in the order of the run's evaluation.

    Raises:
        InputError: an unknown run or measure, or other topics.
    """
    found = systems(evaluations)
    for name, option in ((run, "topics_of"), (baseline, "baseline")):
        if name not in found:
            raise OptionError(option, f"there is no run '{name}'", f"one of {', '.join(found)}")
    topics, own, other = shared_topics(found[run], found[baseline])
    results = []
    for measure in measures:
        scores, others = found[run].scores(measure)[own], found[baseline].scores(measure)[other]
        known = np.flatnonzero(~(np.isnan(scores) | np.isnan(others)))
        ascending = lower_is_better(measure)
        # Differences that only rounding tells apart keep the order of the topics.
        gains = np.round(_differences(scores[known], others[known]) * (-1 if ascending else 1), 12)
        order = known[np.argsort(-gains, kind="stable")]
        results.append(
            TopicDifferences(
                measure,
                run,
                baseline,
                tuple(topics[place] for place in order),
                scores[order],
                others[order],
                tie,
                ascending,
            )
        )
    return tuple(results)


def _differences(first: Floats, second: Floats) -> Floats:
    with np.errstate(invalid="ignore"):
        return np.where(first == second, 0.0, first - second)


#: Pairs whose differences by topic one figure shows.
MOST_PANELS: Final = 8
#: What `evaluate` wrote, or returned.
Evaluated = str | Path | Evaluation


@dataclass(frozen=True, eq=False, repr=False)
class RunComparison(Result, shown_in="truerank.measures.report"):
    """What `compare` found.

    Attributes:
        comparison: the differences; None where only the order between two conditions was asked for.
        topics: the differences by topic of one run, by measure.
        orders: the change of order between two evaluations, by measure.
        inputs: by evaluation, what was read.
        drawn: the differences by topic that the figures show, by measure and pair.
        plot: whether figures are written with the tables.
        conventions: of two runs, what the conventions of other evaluators do to scores and difference, by measure.
        repeated: of systems that were run several times, the difference beside the noise between repetitions.
    """

    comparison: Comparison | None
    topics: tuple[TopicDifferences, ...] = ()
    orders: tuple[OrderChanges, ...] = ()
    inputs: Mapping[str, Any] = field(default_factory=dict)
    drawn: tuple[TopicDifferences, ...] = ()
    plot: bool = False
    conventions: tuple[ConventionRange, ...] = ()
    repeated: tuple[RepeatedPair, ...] = ()

    def json(self) -> dict[str, Any]:
        """Everything, as plain numbers and texts."""
        return picked(self, "comparison, per_topic=topics, orders, conventions, repeated")


#: Bytes of the runs whose conventions are varied without being asked for.
_LARGEST: Final = 1 << 25


@dataclass(frozen=True)
class ComparisonOptions(Options):
    """What is compared.

    Attributes:
        measures: separated by blanks; by default nDCG@10 P@1, or all that the evaluations share.
        baseline: the run that the others are compared with, or an evaluation whose runs of the same names they are
            compared with; without it, all pairs.
        topics_of: also this run against the baseline by topic, for a paired test.
        tau: variant of Kendall's τ between two conditions; b accounts for ties.
    """

    measures: str | None = None
    baseline: Annotated[str | None, Flag(metavar="NAME")] = None
    topics_of: Annotated[str | None, Flag(metavar="RUN")] = None
    tau: Variant = "b"


@command
def compare(
    qrels: Annotated[QrelSource | None, Flag(metavar="SRC", reads=str)] = None,
    run: Annotated[RunSource, Flag(metavar="FILE", reads=list[str])] = (),
    *,
    repeats: Annotated[Any, Flag(metavar="NAME=FILES", reads=list[str])] = (),
    paths: Annotated[Any, Flag(metavar="PATH…", positional=True, reads=list[str])] = (),
    columns: Columns = "",
    evaluation: Annotated[Sequence[Evaluated], Flag(metavar="DIR", reads=list[str])] = (),
    also: Annotated[Sequence[Evaluated], Flag(metavar="DIR", reads=list[str])] = (),
    comparing: ComparisonOptions = ComparisonOptions(),
    testing: Significance = Significance(),
    scoring: Scoring = Scoring(),
    plot: bool = False,
    out: Out = None,
) -> RunComparison:
    """Compares runs with a baseline or with each other: differences, tests, corrections for many comparisons.

    Every difference comes with its interval, p, corrected p, effect size, wins and losses by topic, and the smallest
    difference that so many topics can show. Of two evaluations the order of the runs is compared: pairs that change
    places, Kendall's τ, the largest drop in rank.

    Args:
        qrels: relevance judgments.
        run: Runs, as TREC lines or Parquet; repeat the option for several.
        repeats: runs that are repetitions of one system, such as a=a.*.run; repeat the option for other systems. In
            Python a dictionary of runs for each system. Scores are means over the repetitions; the noise between them
            is stated beside the difference. A table has a column for the repetition instead.
        paths: instead of `qrels` and `run`: what `check` takes, such as a table of questions with what was expected
            and what systems retrieved, or with the scores of systems, or judgments and runs in any form.
        columns: what the columns of tables are, where their names do not say; see `check`.
        evaluation: instead of `qrels` and `run`: what `evaluate` wrote. Two of them are two conditions, between which
            the order of the runs is compared; differences are tested too where a baseline is named.
        also: further evaluations whose runs take part.
        comparing: what is compared.
        testing: how runs are compared.
        scoring: how runs are scored.
        plot: also draw the differences with their intervals, those by topic, and the order of the runs with those that
            no test tells apart, as SVG and PDF in the folder of `out`.
        out: a folder for the tables and JSON.

    Returns:
        The differences, and what else was asked for.

    Raises:
        InputError: neither runs nor evaluations, both, or a fault in any of them.

    Examples:

        truerank compare results.csv

        truerank compare --qrels dl19.qrels --run bm25.run --run monot5.run --baseline bm25

        truerank compare --qrels dl19.qrels --run bm25.run --run monot5.run --measures "nDCG@10 AP(rel=2)"
        --significance randomisation --correction holm --out comparison/

        truerank compare --qrels dl19.qrels --repeats "a=runs/a.*.run" --repeats "b=runs/b.*.run"

        truerank compare --qrels dl19.qrels --run bm25.run --run monot5.run --run splade.run --plot --out comparison/

        truerank compare --evaluation without-leakage/ --evaluation with-leakage/

        truerank compare --evaluation depth-1/ --also full/ --baseline full --significance welch
    """
    check_plot(plot, out)
    files = None
    if has_runs(paths):
        from truerank.sources.recognition import opened

        files = opened(paths, columns, comparing.measures or "nDCG@10", qrels=qrels, run=run)
        if files.scores is not None:
            evaluation = (*evaluation, Evaluation.of_scores(files.scores.scores, scoring))
        else:
            qrels, run = files.judged_runs()
    own = _members(run, repeats)
    every = run if not own else {**(named_runs(run) if has_runs(run) else {}), **_flat(own)}
    named = _opened(qrels, every, evaluation, comparing.measures, scoring)
    scored = next(iter(named.values()))
    refuse_strangers(scored, every)
    if own:
        members = {system: list(_flat({system: runs})) for system, runs in own.items()}
        named = {name: merged_repeats(one, members) for name, one in named.items()}
        by_repeat = scores_by_repeat(scored, members)
    else:
        by_repeat = (
            {}
            if files is None or (table := files.scores or files.results) is None
            else (scores_of_table(scored, table.repeats))
        )
    found = _compared(named, len(evaluation) > 0, also, comparing, testing)
    found = replace(found, plot=plot, conventions=_conventions(qrels, run, found, scoring))
    if by_repeat and found.comparison is not None:
        pairs = repeated_pairs(next(iter(named.values())), found.comparison, by_repeat, testing.confidence)
        found = replace(found, repeated=tuple(pairs))
    if out is not None:
        # What was scored just now is scored as `scoring` says, what was saved as its own policy says.
        options = {**vars(comparing), "testing": testing, **({} if evaluation else {"scoring": scoring})}
        inputs = (
            *inputs_of(table=files and files.paths, qrels=qrels, evaluation=evaluation, also=also),
            *run_inputs(every),
        )
        with started("compare", inputs, options, out, packages=("scipy", "ir-measures")) as job:
            publish(found, job)
    return found if files is None else found.read_from(files.readings)


def _members(run: RunSource, repeats: Any) -> dict[str, dict[str, Any]]:
    """The repetitions of each system by name."""
    found = {system: named_runs(files) for system, files in repeat_files(repeats).items()} if repeats else {}
    if taken := set(found) & set(named_runs(run) if has_runs(run) else ()):
        name = min(taken)
        raise OptionError("repeats", f"'{name}' is a run too", "leave it out of `run`: it counts with its repetitions")
    return found


def _flat(own: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    return {f"{system}, {name}": run for system, runs in own.items() for name, run in runs.items()}


def _compared(
    named: dict[str, Evaluation],
    saved: bool,
    also: Sequence[Evaluated],
    wanted: ComparisonOptions,
    testing: Significance,
) -> RunComparison:
    baseline, measures, topics_of = wanted.baseline, wanted.measures, wanted.topics_of
    conditions = list(named.items())
    orders: tuple[OrderChanges, ...] = ()
    if len(conditions) == 2:
        (first, before), (second, after) = conditions
        orders = evaluation_order_changes(
            before, after, measures=measures, variant=wanted.tau, conditions=(first, second)
        )
    for name, evaluation in _evaluations(also).items():
        if name in named:
            raise OptionError("also", f"two evaluations are called {name}", "rename the folder")
        named[name] = evaluation
    single = len(named) == 1
    found: Evaluation | dict[str, Evaluation] = next(iter(named.values())) if single else named
    comparison = None
    if baseline is not None or not orders:
        # What was evaluated just now has its measures already, under the names that the policy gives them.
        chosen = measures if saved else list(conditions[0][1].measures) if measures else None
        comparison = compare_evaluations(found, baseline, measures=chosen, method=testing)
    topics: tuple[TopicDifferences, ...] = ()
    if topics_of is not None:
        if comparison is None or baseline is None:
            raise OptionError("topics_of", "differences by topic need a baseline", "name one with `baseline`")
        topics = topic_differences(found, topics_of, baseline, comparison.measures, tie=testing.tie)
    inputs = {name: dict(evaluation.inputs) for name, evaluation in named.items()}
    return RunComparison(comparison, topics, orders, inputs, tuple(_drawn(found, comparison)))


def _drawn(found: Evaluation | dict[str, Evaluation], comparison: Comparison | None) -> Iterator[TopicDifferences]:
    """Differences by topic of the pairs that a figure has room for, the largest differences where there are more."""
    if comparison is None or not comparison.method.paired:
        return
    for measure in comparison.measures:
        rows = [row for row in comparison.differences if row.measure == measure and row.difference is not None]
        largest = sorted(rows, key=lambda row: -abs(row.difference or 0.0))[:MOST_PANELS]
        for row in largest if len(rows) > MOST_PANELS else rows:
            yield from topic_differences(found, row.run, row.baseline, [measure], tie=comparison.method.tie)


def _conventions(
    qrels: QrelSource | None, run: RunSource, found: RunComparison, scoring: Scoring
) -> tuple[ConventionRange, ...]:
    """What conventions do to the comparison of two runs that are files of up to 32 MiB."""
    runs = named_runs(run) if has_runs(run) else {}
    if found.comparison is None or len(runs) != 2 or not isinstance(qrels, str | Path):
        return ()
    files = {name: Path(one) for name, one in runs.items() if isinstance(one, str | Path)}
    if len(files) < len(runs) or any(one.stat().st_size > _LARGEST for one in files.values()):
        return ()
    judged, pair = qrel_frame(qrels), found.comparison.differences[0]
    system, baseline = (run_frame(files[name], ("trec_eval", "rank")) for name in (pair.run, pair.baseline))
    ranges = (convention_range(judged, system, baseline, measure, scoring.rel) for measure in found.comparison.measures)
    return tuple(one for one in ranges if one is not None and one.conventions > 1)


def _opened(
    qrels: QrelSource | None,
    run: RunSource,
    evaluation: Sequence[Evaluated],
    measures: str | None,
    scoring: Scoring,
) -> dict[str, Evaluation]:
    if evaluation:
        if has_runs(run) or qrels is not None:
            fault = "saved evaluations replace judgments and runs"
            raise OptionError("evaluation", fault, "leave out `qrels` and `run`, or give them alone")
        if len(evaluation) > 2:
            fault = f"{len(evaluation)} evaluations are not two conditions"
            raise OptionError("evaluation", fault, "give further ones with `also`")
        if scoring != Scoring():
            raise OptionError(
                "evaluation",
                "saved evaluations keep the policy under which they were scored",
                "leave out `ties`, `missing`, `depth` and `rel`, or evaluate again",
            )
        return _evaluations(evaluation)
    if qrels is None or not has_runs(run):
        raise InputError("nothing to compare", "give judgments and runs, or saved evaluations", where="compare")
    name = parse(str(qrels)).name if isinstance(qrels, str | Path) else "qrels"
    return {name: evaluate(qrels, run, measures or "nDCG@10 P@1", scoring)}


def _evaluations(given: Iterable[Evaluated]) -> dict[str, Evaluation]:
    """Evaluations by the names of their folders; those of the caller's program are numbered."""
    listed = list(given)
    found = open_evaluations([one for one in listed if not isinstance(one, Evaluation)])
    return found | {f"evaluation {n}": one for n, one in enumerate(listed, 1) if isinstance(one, Evaluation)}
