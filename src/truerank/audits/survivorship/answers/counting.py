"""Can discarded queries be answered after all? Counts of answers by ranker, and of queries that none answers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from truerank.audits.survivorship.answers.judged import (
    first_answers,
    judged_by_people,
    judged_by_qrels,
    named_runs,
    read_firsts,
)
from truerank.audits.survivorship.answers.options import AnswerableOptions, Discarded
from truerank.audits.survivorship.answers.results import Answerable
from truerank.audits.survivorship.results import file_input
from truerank.errors import InputError
from truerank.judging import table
from truerank.judging.ratings import RatingSource
from truerank.options import Labels

__all__ = ["AnswersFrom", "answerable"]

_DEFAULTS: Final = AnswerableOptions()


class AnswersFrom(NamedTuple):
    """Where it is told what answers a query; exactly one of the three.

    Args:
        pool: the folder of a pool, which goes with `labels`: a judging store, or label files.
        labels: see `pool`.
        firsts: a table of the first answer of each system for each query.
        runs: `FILE` or `SYSTEM=FILE`, which go with `qrels`.
        qrels: judgments of discarded queries.
        discarded: with judgments, the queries that count; None for all that have one.
    """

    pool: str | Path | None = None
    labels: RatingSource | None = None
    firsts: str | None = None
    runs: Sequence[str] = ()
    qrels: str | None = None
    discarded: Discarded | None = None


def answerable(
    source: AnswersFrom,
    out: str | Path | None = None,
    *,
    reasons: RatingSource | None = None,
    options: AnswerableOptions = _DEFAULTS,
) -> Answerable:
    """Counts for how many discarded queries each ranker finds an answer.

    Args:
        source: where it is told what answers a query.
        out: the folder to write; None to write nothing.
        reasons: labels of the scheme survivorship: why queries were left without an answer.
        options: cutoffs, intervals, models.

    Returns:
        Shares with intervals by corpus and system, queries that none answers, and what systems have in common.

    Raises:
        InputError: none, or several, of the kinds of source; a fault in a file.

    Source: Gupta, MacAvaney: On Survivorship Bias in MS MARCO (SIGIR 2022), section 3, Tables 1 and 2.
    """
    people = source.pool is not None or source.labels is not None
    given = [people, source.firsts is not None, source.qrels is not None]
    if sum(given) > 1 or (not any(given) and reasons is None):
        remedy = "give --pool with --labels, or --firsts, or --run with --qrels"
        raise InputError("one source of answers is needed", remedy, where="answerable")
    notes: tuple[str, ...] = ()
    inputs: dict[str, Any] = {}
    first = None
    if people:
        if source.pool is None or source.labels is None:
            raise InputError("a pool goes with labels", "give --pool and --labels", where="answerable")
        judged = judged_by_people(
            source.pool, source.labels, votes=options.votes, include_models=options.include_models
        )
        first, notes, inputs = first_answers(judged), judged.notes, dict(judged.inputs)
    elif source.qrels is not None:
        judged = judged_by_qrels(named_runs(source.runs), source.qrels, options, source.discarded)
        first, notes, inputs = first_answers(judged), judged.notes, dict(judged.inputs)
    elif source.firsts is not None:
        first, inputs = read_firsts(source.firsts), {"firsts": file_input(source.firsts)}
    why = None
    if reasons is not None:
        why = table(
            judgments=Labels(reasons, votes=options.votes, include_models=options.include_models),
            scheme="survivorship",
            confidence=options.confidence,
        )
    result = Answerable(first, options, notes, why, inputs)
    if out is not None:
        result.save(out)
    return result
