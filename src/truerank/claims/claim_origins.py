"""What the scores of a claim show of how its system was chosen: the better of two by topic, or the best of many."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

import numpy as np
import polars as pl
from scipy import stats

from truerank.audits.collection.run_faults import RunFault
from truerank.claims.claim import Claim
from truerank.claims.judged_results import cutoff_of
from truerank.measures.grammar import lower_is_better

#: Two runs are made from each other where so many of their lists are the same, or so many have the same documents.
_SAME_LISTS, _SAME_DOCUMENTS = 0.2, 0.5
#: Of the topics on which a system differs from what it was made from, a good one is better on about two thirds.
_BETTER, _HARDLY_EVER = 2 / 3, 0.1
_CHANCE: Final = 0.001
#: So many runs that share most first documents with the system are variants of it, among which it may be chosen.
_VARIANTS, _SHARED = 8, 0.5


def claim_origins(claim: Claim) -> Iterable[RunFault]:
    """What the scores show."""
    if claim.base.effect == "stands":
        lists = {name: _first_documents(claim, run) for name, run in claim.runs.items()}
        yield from _never_worse(claim, lists[claim.system], lists[claim.baseline])
        yield from _best_of_many(claim, lists)


def _first_documents(claim: Claim, run: pl.DataFrame) -> dict[str, list[str]]:
    """The first documents of each judged topic, in their order."""
    judged = run.join(claim.qrels.select("topic_id").unique(), on="topic_id", how="semi").sort("topic_id", "rank")
    first = judged.group_by("topic_id", maintain_order=True).agg(pl.col("doc_id").head(cutoff_of(claim)))
    return dict(first.iter_rows())


def _never_worse(claim: Claim, mine: dict[str, list[str]], theirs: dict[str, list[str]]) -> Iterable[RunFault]:
    """A system made from its baseline that is hardly ever worse: changes that somebody chose by the judgments."""
    shared = [topic for topic in mine if topic in theirs]
    same = sum(mine[topic] == theirs[topic] for topic in shared)
    documents = sum(set(mine[topic]) == set(theirs[topic]) for topic in shared)
    if same < _SAME_LISTS * len(shared) and documents < _SAME_DOCUMENTS * len(shared):
        return
    differences = claim.differences(claim.evaluation)
    better, worse = int((differences > 0).sum()), int((differences < 0).sum())
    if not better or worse > _HARDLY_EVER * (better + worse):
        return
    if stats.binomtest(better, better + worse, _BETTER, alternative="greater").pvalue > _CHANCE:
        return
    yield RunFault(
        "never-worse", claim.system, "doubt", frozenset(),
        f"{claim.system} and {claim.baseline} return the same first results, in the same order, for {same:,d} of "
        f"{len(shared):,d} topics and the same documents for {documents:,d}; elsewhere {claim.system} is better on "
        f"{better:,d} topics and worse on {worse:,d}. Changes that nobody chose by the judgments are worse on some.",
        f"Find out by what {claim.system} chose on which topics it differs from {claim.baseline}.",
        exception=f"that {claim.system} is {claim.baseline} with changes that are hardly ever worse, as if chosen by "
        "the judgments",
    )  # fmt: skip


def _best_of_many(claim: Claim, lists: dict[str, dict[str, list[str]]]) -> Iterable[RunFault]:
    """The best of many variants, whose lead is not shown once the choice among them counts."""
    mine = lists[claim.system]
    scores = {name: float(np.nanmean(claim.evaluation.of(name, claim.measure))) for name in lists}
    sign = -1 if lower_is_better(claim.measure) else 1
    variants = [name for name, other in lists.items() if name != claim.system and _alike(mine, other) >= _SHARED]
    if len(variants) < _VARIANTS or any(sign * scores[name] > sign * scores[claim.system] for name in variants):
        return
    # Of two variants, both may have been chosen.
    tried = len(variants) + 1
    many = max(claim.comparisons, math.comb(tried, 2) if claim.baseline in variants else len(variants))
    corrected = replace(claim, comparisons=many).base
    if corrected.effect == "stands":
        return
    yield RunFault(
        "best-of-many", claim.system, "doubt", frozenset(),
        f"{claim.system} is the best of {tried:,d} runs that share most of their first documents; with "
        f"Bonferroni's correction for the choice among them the difference is {corrected.figures()}.",
        "Choose among variants on other topics.",
        exception=f"if {claim.system} was chosen among {tried:,d} variants on these topics",
    )  # fmt: skip


def _alike(mine: dict[str, list[str]], other: dict[str, list[str]]) -> float:
    """The mean share of first documents that two runs have in common."""
    shares = [
        len(set(docs) & set(other[topic])) / len(set(docs) | set(other[topic]))
        for topic, docs in mine.items()
        if topic in other
    ]
    return float(np.mean(shares)) if shares else 0.0
