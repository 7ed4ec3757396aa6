"""What is wrong with a model's grades, or with second ones, and what errors that ignore the systems do to a claim."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np
import polars as pl
import scipy

from truerank.arrays import Ints
from truerank.audits.assessors.grades import Grades, read_voices
from truerank.audits.collection.second_grades import (
    LEVEL,
    Cut,
    apart,
    best_cut,
    disagreement,
    far_from_random,
    moved_topics,
)
from truerank.claims.claim import Claim, ClaimEstimate, Effect
from truerank.claims.unjudged import DEEPEST, KEYS, judged_results
from truerank.text.printable import listed

#: Draws of errors; grades in all of them, at most.
_DRAWS, _FEWEST_DRAWS, _HELD = 1_000, 50, 4_000_000
#: Documents are as hard to judge where the better of their ranks is in one band: the last rank of each.
_BANDS: Final = (3, 10, 30, DEEPEST)


def fault_of(grades: Grades, judge: str, rel: int, confidence: float) -> str:
    """Why a model's grades say nothing about a claim, in one sentence; empty where nothing is shown to be wrong."""
    outside = [one for one in grades.outside if one.name == judge]
    if 2 * sum(one.pairs for one in outside) > len(grades.qrels[judge]):
        scale = f"{grades.scale[0]} to {grades.scale[-1]}"
        return (
            f"most of its grades ({listed([str(one.grade) for one in outside])}) are outside people's scale ({scale})."
        )
    codes = grades.given[:, grades.judges.index(judge)]
    met = codes >= 0
    codes = codes[met]
    if moved := moved_topics(grades.qrels[""], grades.qrels[judge], rel, "people"):
        return f"its {moved}"
    z, *shares = far_from_random(grades.qrels[""], grades.qrels[judge], rel)
    if codes.min() >= grades.code_of(rel) and z > -scipy.special.ndtri(LEVEL / 2):
        figures = f"people call {shares[0]:.0%} of its {len(codes):,} pairs relevant, and {shares[1]:.0%} of all"
        return f"it calls all of its pairs relevant, and rows of other grades may be missing: {figures} on its topics."
    if len(np.unique(codes)) == 1:
        grade = grades.scale[codes[0]]
        return f"it gives all {len(codes):,} pairs that people graded, too, the grade {grade}."
    lack = disagreement(grades.qrels[""], grades.qrels[judge], rel, confidence, "people")
    few = ", and these are too few to show a modest agreement" * lack.few
    return f"its grades {lack.cause}: {lack.figures} ({len(codes):,} pairs{few})." if lack.cause else ""


def cuts(people: pl.DataFrame, models: Mapping[str, Any], rel: int) -> tuple[dict[str, Any], dict[str, Cut], str]:
    """The models that graded a pair of people's, how the grades of some were divided, and what the others graded."""
    found, cut, others = dict[str, Any](), dict[str, Cut](), list[str]()
    for name, source in models.items():
        voices = read_voices({name: source}, models=True)
        met = {voice.name: voice.grades for voice in voices if len(voice.grades.join(people, on=KEYS, how="semi"))}
        others += [apart(people, v.grades, f"pairs that {v.name} graded") for v in voices if v.name not in met]
        own = {key: one for key, grades in met.items() if (one := best_cut(people, grades, rel)) is not None}
        changed = own or len(met) < len(voices)
        found |= {k: own[k].at(own[k].grade) if k in own else v for k, v in met.items()} if changed else {name: source}
        cut |= own
    return found, cut, " ".join(others)


def coverage(grades: Grades, judge: str) -> tuple[str, ...]:
    """How much of what people graded a model graded, too; nothing where it is most of it, and of every topic."""
    met = grades.given[:, grades.judges.index(judge)] >= 0
    topics = len(np.unique(grades.topic[met]))
    if topics == len(grades.topics) and 2 * met.sum() >= len(met):
        return ()
    return (
        f"{judge} graded {met.sum():,} of the {len(met):,} pairs that people graded, on {topics:,} of "
        f"{len(grades.topics):,} topics.",
    )


def by_people(claim: Claim, model: pl.DataFrame) -> tuple[Effect, Effect]:
    """The claim by people's grades of the pairs that a model graded: of these alone, and with its own of all others."""
    same = claim.qrels.join(model, on=KEYS, how="semi")
    filled = pl.concat([same, model.join(same, on=KEYS, how="anti").select(same.columns).cast(same.schema)])
    first, second = (claim.of(claim.scored(one), "").effect if len(one) else "unknown" for one in (same, filled))
    return first, second


def expected(claim: Claim, model: pl.DataFrame, seed: int, models: int = 1) -> ClaimEstimate | None:
    """The difference that a model's grades would give if its errors ignored the systems; None without errors.

    Among the first results of both runs on a topic, its grades are exchanged at random between documents that have one
    grade of people, and of which the better rank is alike. The ends are those of chance: as any order of its grades is
    as likely then, one of so many draws is beyond an end as seldom as the level says, of all models together.
    """
    asked = replace(claim, qrels=model, evaluation=claim.scored(model))
    results = judged_results(asked)
    best = np.minimum(*(results.ranks[run] for run in claim.pair))
    rows = results.rows.with_columns(pl.Series("far", np.searchsorted(_BANDS, best)))
    rows = rows.filter(pl.Series(best <= results.depth) & (pl.col("relevance") >= 0))
    people = claim.qrels.select(*KEYS, pl.col("relevance").alias("people"))
    rows = rows.join(people, on=KEYS, how="inner", maintain_order="left")
    kind = rows.select(pl.struct("topic_id", "people", "far").rank("dense")).to_series().to_numpy()
    given = rows["relevance"].to_numpy().astype(np.int64)
    if (given == rows["people"].to_numpy()).all():
        return None
    order, draws = np.argsort(kind, kind="stable"), int(np.clip(_HELD // len(rows), _FEWEST_DRAWS, _DRAWS))
    drawn = np.random.default_rng(seed).random((len(rows), draws))
    exchanged: Ints = np.empty(drawn.shape, np.int64)
    exchanged[order] = given[np.argsort(kind[:, None] + drawn, axis=0)]
    keys = rows.select(KEYS).with_columns(open=True)
    open_rows = results.rows.join(keys, on=KEYS, how="left", maintain_order="left")["open"].fill_null(value=False)
    means = np.nanmean(results.regraded(open_rows.to_numpy()).differences(exchanged), axis=1)
    tail = (1 - claim.level) / 2 / models
    value, reach = float(means.mean()), float(-scipy.special.ndtri(tail) * means.std(ddof=1))
    low, high = value - reach, value + reach
    if beyond := int((draws + 1) * tail + 1e-9):
        low, high = (float(one) for one in np.sort(means)[[beyond - 1, -beyond]])
    return ClaimEstimate("", value, low, high, len(asked.evaluation.topics), "unknown")
