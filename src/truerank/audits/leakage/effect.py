"""What the leaked topics do to the scores of runs and to the order of systems.

A difference between leaked and clean topics is not proof that a system profited: leaked topics are popular ones and may
simply be easier. Compare with a system that was not trained on the leaked queries.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from truerank.arrays import Floats
from truerank.audits.leakage.kinds import check_kinds, kind_named, kinds_of
from truerank.audits.leakage.results import AuditResult, VerdictWord, opened_audit
from truerank.core.result import Result
from truerank.errors import InputError, OptionError
from truerank.measures import (
    Evaluation,
    MeanInterval,
    OrderChanges,
    difference_interval,
    evaluate,
    lower_is_better,
    mean_interval,
    order_changes,
    parse_measures,
)
from truerank.measures.document_placebo import RankedDocuments, document_placebos
from truerank.measures.placebo import Placebo, difficulty_classes, placebo_removal
from truerank.measures.resampling import shuffle_p
from truerank.measures.scoring import QrelSource, RunSource
from truerank.options import Flag, Names, Resampling, Scoring, Ties, command


@dataclass(frozen=True)
class KindEffect:
    """What one kind of leak does to scores.

    Of the `leaked` topics or documents, `counted` can move a score: topics with judgments, documents in a run or
    judged.
    """

    kind: str
    verdict: VerdictWord
    removed: Literal["topics", "documents"]
    leaked: int
    counted: int
    placebos: tuple[Placebo, ...]


#: An audit or its folder, or the ids of the topics that leak.
LeakedTopics: TypeAlias = AuditResult | str | Path | Collection[str]

_PERMUTATIONS: Final = 9_999
#: What `matched_by` says for the mean over all runs; anything else is the name of a run.
_DIFFICULTY: Final = "difficulty"


class RunEffect(NamedTuple):
    """One run and measure on all, leaked and clean topics.

    `difference` is leaked minus clean with Welch's interval (n: all topics); `p` is two-sided, from permuting which
    topics are leaked; `p_corrected` is Bonferroni's by the number of runs. None where one side has too few topics.
    """

    run: str
    measure: str
    all: MeanInterval
    leaked: MeanInterval
    clean: MeanInterval
    difference: MeanInterval
    p: float | None
    p_corrected: float | None


@dataclass(frozen=True, eq=False, repr=False)
class Effect(Result, shown_in="truerank.audits.leakage.summaries"):
    """The scores of runs with and without the leaked topics.

    Attributes:
        settings: test set, tie policy, confidence, permutations, resamples, seed, methods, what random topics share
            with the leaked ones.
        runs: one entry per measure and run, measures first.
        orders: how each measure orders the systems on all topics and on clean ones, where there are two runs or more.
        placebos: by measure, the removal of the leaked topics beside that of as many random ones.
        missing: for each run, the topics of the qrels that it lacks; they score the measure's default.
        unjudged: leaked topics without qrels; they are in no mean.
        kinds: of an audit of whole examples, the removal of what each kind of leak concerns.
    """

    settings: dict[str, Any]
    runs: tuple[RunEffect, ...]
    orders: tuple[OrderChanges, ...]
    placebos: tuple[Placebo, ...]
    missing: dict[str, int]
    unjudged: tuple[str, ...]
    kinds: tuple[KindEffect, ...] = ()


@command
def effect(
    qrels: Annotated[QrelSource, Flag(metavar="SRC", reads=str)],
    run: Annotated[RunSource, Flag(metavar="FILE", reads=list[str])],
    audit: Annotated[LeakedTopics, Flag(metavar="DIR", reads=str)],
    measures: Annotated[str | Sequence[str], Flag(reads=str)] = "nDCG@10 P@1",
    *,
    test_set: Annotated[str | None, Flag(metavar="NAME")] = None,
    kinds: Names = (),
    ties: Ties = "trec_eval",
    matched_by: Annotated[str | None, Flag(metavar="difficulty|RUN")] = None,
    resampling: Resampling = Resampling(resamples=1_000),
) -> Effect:
    """Scores runs on all, leaked and clean topics, and shows how the order of systems changes.

    Removing any topics moves scores. So the scores on clean topics are compared with those after removing as many
    random topics: for each measure, they moved more than chance explains, no more than that, or there are too few
    topics to tell.

    Args:
        qrels: relevance judgments; means are over its topics.
        run: TREC runs; repeat the option for several. In Python also records by name.
        audit: the folder that `leakage audit` wrote. In Python also an audit, or the ids of the leaked topics.
        measures: measures of ir_measures, separated by blanks.
        test_set: the test set in the audit, where it has several.
        kinds: of training examples, the kinds of leak that are compared; by default all. Topics whose query leaks by
            one of them are the leaked ones; by default query-query.
        ties: how documents with equal scores are ordered, for every measure alike: trec_eval (scores as 32-bit numbers,
            then document id descending), ascending (document id ascending, as in the leakage paper) or rank (the rank
            column).
        matched_by: random topics are as hard as the leaked ones: as many come from each fifth of the topics, by the
            mean score of all runs (difficulty) or by the scores of one run, given by name. Random documents are then
            ranked about as high. Name a run that was not trained on the leaked queries.
        resampling: random removals, confidence of all intervals, seed of the removals and of the permutations (9,999,
            shared by all runs; all of them where there are no more).

    Returns:
        The scores, the removal beside random ones, and for two runs or more the change in the order of systems.

    Raises:
        InputError: a source, measure or option is at fault, or no leaked topic has qrels.

    Examples:

        truerank leakage effect --audit audit/ --qrels robust04.qrels --run bm25.run --run monot5.run

        truerank leakage effect --audit audit/ --qrels scifact.qrels --run bm25.run --run dense.run --kinds pair

    Source: Welch (1947) for the interval of the difference; Kendall (1945) for τ-b; `measures.placebo` and
    `measures.document_placebo` for random removals.
    """
    confidence, seed = resampling.confidence, resampling.seed
    check_kinds(kinds)
    # Read twice: for the scores, and for the removal of documents.
    qrels, run = _held(qrels), _held(run)
    scores = evaluated_means(qrels, run, measures, ties)
    test_name, leaked_ids = leaked_topics(audit, test_set, kinds)
    leaked = np.array([topic in leaked_ids for topic in scores.topics])
    if leaked_ids and not leaked.any():
        raise InputError(
            f"none of the {len(leaked_ids)} leaked topics has relevance judgments",
            "give the qrels of the audited test set" + ("" if test_set else ", or name the test set with --test-set"),
        )
    keys = list(itertools.product(scores.measures, scores.runs))
    values = np.stack([scores.of(run, measure) for measure, run in keys], axis=1)
    p = np.full(len(keys), np.nan)
    if leaked.any() and not leaked.all():
        p = shuffle_p(values, leaked, permutations=_PERMUTATIONS, seed=seed).p
    rows = [
        _run_effect(key, values[:, i], leaked, confidence, (float(p[i]), len(scores.runs)))
        for i, key in enumerate(keys)
    ]
    comparable = scores.measures if len(scores.runs) > 1 and not leaked.all() else ()
    orders = [
        order_changes(
            *({run: float(scores.of(run, measure)[part].mean()) for run in scores.runs} for part in (..., ~leaked)),
            measure=measure, ascending=lower_is_better(measure), conditions=("all", "clean"),
        )
        for measure in comparable
    ]  # fmt: skip
    return Effect(
        runs=tuple(rows),
        orders=tuple(orders),
        missing=dict(scores.missing),
        unjudged=tuple(sorted(set(leaked_ids) - set(scores.topics))),
        settings={
            "test": test_name,
            "measures": list(scores.measures),
            "ties": ties,
            "confidence": confidence,
            "interval": "Student t over topics; Welch for the difference",
            "p": "two-sided permutation test of the difference of means",
            "permutations": _PERMUTATIONS,
            "resamples": resampling.resamples,
            "matched_by": matched_by,
            "seed": seed,
        },
        placebos=random_removals(scores, leaked_ids, matched_by, resampling),
        kinds=tuple(
            _by_kind(
                (audit, test_name), scores, (qrels, run), kinds=kinds, matched_by=matched_by, resampling=resampling
            )
        ),
    )


def _held(source: Any) -> Any:
    """Records that can be read more than once."""
    if isinstance(source, Mapping):
        return {name: _held(part) for name, part in source.items()}
    return list(source) if isinstance(source, Iterator) else source


def _by_kind(
    audited: tuple[LeakedTopics, str],
    scores: Evaluation,
    sources: tuple[QrelSource, RunSource],
    *,
    kinds: Collection[str],
    matched_by: str | None,
    resampling: Resampling,
) -> Iterator[KindEffect]:
    """Takes out what leaks, one kind after the other."""
    source, test = audited
    if not isinstance(source, AuditResult | str | Path):
        return
    audit, measures = opened_audit(source), " ".join(scores.measures)
    ranked: RankedDocuments | None = None
    for verdict in kinds_of(audit, test):
        if kinds and verdict.kind not in kinds:
            continue
        of_queries = kind_named(verdict.kind).test == "query"
        rows = audit.leaks.filter(test=test, kind=verdict.kind)
        leaked = set(rows["topic_id" if of_queries else "doc_id"].drop_nulls())
        counted, placebos = 0, tuple[Placebo, ...]()
        if leaked and of_queries:
            counted = len(leaked.intersection(scores.topics))
            placebos = random_removals(scores, leaked, matched_by, resampling)
        elif leaked:
            if ranked is None:
                by_rank: Ties = "rank"
                official = any(measure.NAME == "RR_MSMARCO" for measure in parse_measures(measures))
                ranked = RankedDocuments.of(*sources, Scoring(ties=scores.policy.ties), [by_rank] if official else [])
            counted = len(leaked.intersection(ranked.documents.to_list()))
            placebos = document_placebos(ranked, leaked, measures, matched_by=matched_by, resampling=resampling)
        yield KindEffect(
            verdict.kind, verdict.verdict, "topics" if of_queries else "documents", len(leaked), counted, placebos
        )


def random_removals(
    scores: Evaluation, removed: Collection[str], matched_by: str | None, resampling: Resampling
) -> tuple[Placebo, ...]:
    """Compares the removal of topics with the removal of as many random ones."""
    gone = np.array([topic in removed for topic in scores.topics])
    return tuple(
        placebo_removal(
            {run: scores.of(run, measure) for run in scores.runs},
            gone,
            strata=matched_strata(scores, measure, matched_by),
            measure=measure,
            draws=resampling.resamples,
            confidence=resampling.confidence,
            seed=resampling.seed,
        )
        for measure in scores.measures
    )


def matched_strata(scores: Evaluation, measure: str, matched_by: str | None) -> NDArray[np.int64] | None:
    """Fifths of the topics by difficulty, shape (topics,); None where topics are not matched."""
    if matched_by is None:
        return None
    if matched_by != _DIFFICULTY and matched_by not in scores.runs:
        names = ", ".join(scores.runs)
        raise OptionError("matched_by", f"there is no run '{matched_by}'", f"write {_DIFFICULTY}, or one of {names}")
    if len(scores.runs) == 1:
        fault = f"how hard topics are would come from {scores.runs[0]} alone, whose scores are compared"
        raise OptionError("matched_by", fault, "give another run, best one that was not trained on the leaked queries")
    runs = scores.runs if matched_by == _DIFFICULTY else (matched_by,)
    return difficulty_classes({run: scores.of(run, measure) for run in runs})


def evaluated_means(qrels: QrelSource, runs: RunSource, measures: str | Sequence[str], ties: Ties) -> Evaluation:
    """Scores by topic; only measures that are means over topics can be split into leaked and clean ones."""
    scores = evaluate(qrels, runs, measures, Scoring(ties=ties))
    for measure, kind in zip(scores.measures, scores.aggregates, strict=True):
        if kind != "mean":
            raise OptionError("measures", f"{measure} is not a mean over topics", "choose a measure that is")
    return scores


def leaked_topics(audit: LeakedTopics, test_set: str | None, kinds: Collection[str] = ()) -> tuple[str, frozenset[str]]:
    """The test set's name (empty for bare ids) and its leaked topics."""
    if not isinstance(audit, AuditResult | str | Path):
        return test_set or "", frozenset(audit)
    opened = opened_audit(audit)
    tests = opened.summary["tests"]
    names = ", ".join(tests)
    if test_set is None and len(tests) > 1:
        raise OptionError("test_set", f"the audit has the test sets {names}", "choose one")
    if test_set is not None and test_set not in tests:
        raise OptionError("test_set", f"the audit has no test set '{test_set}'", f"choose one of {names}")
    name = test_set if test_set is not None else next(iter(tests))
    if not kinds:
        return name, frozenset(tests[name]["leaked_topics"])
    rows = opened.leaks.filter(pl.col("kind").is_in(list(kinds)), test=name)
    return name, frozenset(rows["topic_id"].drop_nulls())


def _run_effect(
    key: tuple[str, str], scores: Floats, leaked: NDArray[np.bool_], confidence: float, test: tuple[float, int]
) -> RunEffect:
    p, comparisons = test
    sides = scores[leaked], scores[~leaked]
    return RunEffect(
        run=key[1],
        measure=key[0],
        all=mean_interval(scores, confidence),
        leaked=mean_interval(sides[0], confidence),
        clean=mean_interval(sides[1], confidence),
        difference=difference_interval(*sides, method="welch", confidence=confidence),
        p=None if math.isnan(p) else p,
        p_corrected=None if math.isnan(p) else min(1.0, p * comparisons),
    )
