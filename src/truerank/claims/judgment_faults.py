"""What is wrong with a model's grades, or with second ones, and what errors that ignore the systems do to a claim."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl
import scipy

from truerank.arrays import Flags, Ints
from truerank.audits.assessors.agreement import coefficients
from truerank.audits.assessors.grades import Grades, read_voices
from truerank.audits.collection.fit import sampled, where_of
from truerank.claims.claim import Claim, ClaimEstimate, Effect
from truerank.claims.unjudged import KEYS, STRATA, GradedResults, judged_results
from truerank.text.printable import listed

#: The level of the test of ids, over all rules by which they may have moved.
_LEVEL: Final = 0.001
#: Draws of errors; grades in all of them, at most.
_DRAWS, _FEWEST_DRAWS, _HELD = 1_000, 50, 4_000_000
#: So many pairs that are relevant twice, and never with one grade, are graded on two scales.
_ALIKE: Final = 10
#: Other grades that a sentence gives figures of.
_NEAREST: Final = 3
#: Documents are as hard to judge where the better of their ranks is in one band: the last rank of each.
_BANDS: Final = [last for _, last in STRATA]


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
    topic, codes, relevant = grades.topic[met], codes[met], grades.reference[met] >= grades.code_of(rel)
    if moved := _moved(grades, judge, rel, int((codes[relevant] < grades.code_of(rel)).sum())):
        return moved
    if len(np.unique(codes)) == 1:
        grade = grades.scale[codes[0]]
        return f"it gives all {len(codes):,} pairs that people graded, too, the grade {grade}."
    sign, figures = _agreement(topic, codes, relevant, grades.code_of(rel), "people", confidence=confidence)
    if sign in (None, 1):
        return ""
    what = "its grades are the wrong way round" if sign else "it is not shown to agree with people beyond chance"
    return f"{what}: it calls {figures} ({len(codes):,} pairs)."


def _agreement(
    topic: Ints, codes: Ints, relevant: Flags, least: int, whom: str, *, confidence: float
) -> tuple[int | None, str]:
    """Whether second grades are higher for what others call relevant: 1, 0 by chance, -1 lower, None unknown; figures.

    By chance, any order within a topic is as likely.
    """
    size, good, total = (np.bincount(topic, weights) for weights in (np.ones(len(codes)), relevant, codes))
    apart = codes - (total / np.maximum(size, 1))[topic]
    spread = np.bincount(topic, apart**2) * good * (size - good) / np.maximum(size * (size - 1), 1)
    if spread.sum() <= 0:
        return None, ""
    z = float(apart[relevant].sum() / np.sqrt(spread.sum()))
    called, rest = ((codes[of] >= least).mean() for of in (relevant, ~relevant))
    figures = f"{called:.0%} of what {whom} call relevant so, and {rest:.0%} of the rest"
    return (0 if abs(z) < scipy.special.ndtri((1 + confidence) / 2) else 1 if z > 0 else -1), figures


def _moved(grades: Grades, judge: str, rel: int, missed: int) -> str:
    """Whether a model's grades fit other topics, by one rule of their ids, better than their own.

    Args:
        missed: relevant pairs that it does not call so: grades the wrong way round explain as many.
    """
    people, model = (grades.qrels[name].filter(pl.col("relevance") >= rel) for name in ("", judge))
    if not len(people) or not len(model):
        return ""
    sample = sampled(model, grades.topics, rel, seed=0)
    columns = pl.DataFrame({"topic_id": sample.columns}).with_row_index("column")
    both = sample.docs.join(people, on="doc_id").join(columns, on="topic_id")
    shared = np.zeros((len(sample.rows), len(sample.columns)), np.int64)
    np.add.at(shared, (both["row"].to_numpy(), both["column"].to_numpy()), 1)
    rows = np.arange(len(sample.rows))
    own, *others = (
        int(np.where(rule >= 0, shared[rows, rule], 0).sum()) for rule in np.vstack([sample.own, sample.rules])
    )
    best = int(np.argmax(others)) if others else 0
    if not others or others[best] <= missed:
        return ""
    # Where topics are alike, the documents of both are as likely.
    if len(others) * scipy.special.bdtrc(others[best] - 1, own + others[best], 0.5) > _LEVEL:
        return ""
    return (
        f"its topic ids have moved: of {len(sample.docs):,} documents that it calls relevant, people call {own:,} "
        f"so for the same topic, and {others[best]:,} for {where_of(*sample.names[best])}."
    )


class Cut(NamedTuple):
    """A model's grades from one on count as relevant: κ with people by this grade and every other one."""

    grade: int
    kappa: Mapping[int, float]
    grades: pl.DataFrame

    @property
    def others(self) -> tuple[int, ...]:
        """The nearest of the other grades."""
        return tuple(sorted(sorted(self.kappa.keys() - {self.grade}, key=lambda one: abs(one - self.grade))[:_NEAREST]))

    def at(self, grade: int) -> pl.DataFrame:
        """The judgments with another lowest relevant grade, of 0 and 1."""
        return self.grades.with_columns((pl.col("relevance") >= grade).cast(pl.Int32).alias("relevance"))

    def sentence(self, whose: str) -> str:
        """Which grade it is, and why."""
        others = "".join(f"; from {one} on {self.kappa[one]:.2f}" for one in self.others)
        return (
            f"The judgments are 0 and 1; of {whose} grades, those of at least {self.grade} count as relevant, which "
            f"agree best with them (κ {self.kappa[self.grade]:.2f}{others})."
        )


def best_cut(people: pl.DataFrame, grades: pl.DataFrame) -> Cut | None:
    """How grades are divided beside people's 0 and 1; None where people's are others, or these are 0 and 1, too."""
    both = grades.join(people, on=KEYS, suffix="_people")
    own, truth = (both[column].to_numpy() for column in ("relevance", "relevance_people"))
    steps = [int(one) for one in np.unique(own[own > 0])]
    if steps in ([], [1]) or set(people["relevance"].unique()) != {0, 1}:
        return None
    cells = np.array([np.bincount(2 * truth + (own >= one), minlength=4) for one in steps], float)
    kappa = np.nan_to_num(coefficients(cells, (0, 1), ("kappa",))[:, 0])
    return Cut(steps[int(kappa.argmax())], dict(zip(steps, kappa.tolist(), strict=True)), grades)


def cuts(people: pl.DataFrame, models: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Cut], str]:
    """The models that graded a pair of people's, how the grades of some were divided, and what the others graded."""
    found, cut, others = dict[str, Any](), dict[str, Cut](), list[str]()
    for name, source in models.items():
        voices = read_voices({name: source}, models=True)
        met = {voice.name: voice.grades for voice in voices if len(voice.grades.join(people, on=KEYS, how="semi"))}
        others += [apart(people, v.grades, f"pairs that {v.name} graded") for v in voices if v.name not in met]
        own = {key: one for key, grades in met.items() if (one := best_cut(people, grades)) is not None}
        changed = own or len(met) < len(voices)
        found |= {k: own[k].at(own[k].grade) if k in own else v for k, v in met.items()} if changed else {name: source}
        cut |= own
    return found, cut, " ".join(others)


def apart(first: pl.DataFrame, other: pl.DataFrame, pairs: str) -> str:
    """Says that no pair of others is among the judgments, and what of its topics and documents is."""
    met = [
        f"of its {other[key].n_unique():,} {what}, {other[key].unique().is_in(first[key].implode()).sum():,}"
        for key, what in zip(KEYS, ("topics", "documents"), strict=True)
    ]
    return f"None of the {len(other):,} {pairs} is among the judgments: {met[0]} are in them, {met[1]}."


def again_fault(first: pl.DataFrame, again: pl.DataFrame, rel: int, confidence: float) -> tuple[str, str]:
    """Why second judgments say nothing about the first ones, and what to do; empty where nothing is shown."""
    both = first.join(again.rename({"relevance": "second"}), on=KEYS, maintain_order="left")
    if not len(both):
        return apart(first, again, "pairs that were judged again"), "Give second judgments with the ids of the first."
    topic = both["topic_id"].rank("dense").to_numpy().astype(np.int64) - 1
    relevant, second = (both[name].to_numpy() >= rel for name in ("relevance", "second"))
    sign, figures = _agreement(topic, second.astype(np.int64), relevant, 1, "the first", confidence=confidence)
    if sign == -1:
        return f"The second grades are the wrong way round: they call {figures}.", "Correct the second grades."
    alike = both.filter(pl.Series(relevant & second))
    if len(alike) >= _ALIKE and (alike["relevance"] != alike["second"]).all():
        fault = f"of {len(alike):,} pairs that both call relevant, none has the same grade"
        return f"The second grades are on another scale: {fault}.", "Give second grades on the scale of the first."
    same = (
        first.join(both, on="topic_id", how="semi")
        .group_by("topic_id")
        .agg(pl.len(), (pl.col("relevance") >= rel).sum())
    )
    drawn = both.group_by("topic_id").agg(pl.len().alias("n"), (pl.col("relevance") >= rel).sum().alias("r"))
    every, good, n, r = same.join(drawn, on="topic_id").select("len", "relevance", "n", "r").to_numpy().astype(float).T
    spread = n * good * (every - good) * (every - n) / np.maximum(every**2 * (every - 1), 1)
    far = float((r - n * good / every).sum())
    # Topic by topic: all pairs of some topics, and as many pairs of each, are random samples, too.
    if abs(far) > -scipy.special.ndtri(_LEVEL / 2) * np.sqrt(spread.sum()):
        fault = f"{r.sum() / n.sum():.0%} of them are relevant by the first grades, and {good.sum() / every.sum():.0%}"
        return (
            f"The {len(both):,} pairs that were judged again are not a random sample: {fault} of all on their topics.",
            "Draw pairs at random, whatever their grades, or take all of some topics.",
        )
    return "", ""


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
    first, second = (
        claim.estimate(claim.differences(claim.scored(one)), "").effect if len(one) else "unknown"
        for one in (same, filled)
    )
    return first, second


def expected(claim: Claim, model: pl.DataFrame, seed: int) -> ClaimEstimate | None:
    """The difference that a model's grades would give if its errors ignored the systems; None without errors.

    Among the first results of both runs on a topic, its grades are exchanged at random between documents that have one
    grade of people, and of which the better rank is alike. The ends are those of chance.
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
    means = np.nanmean(GradedResults(results, open_rows.to_numpy()).differences(exchanged), axis=1)
    value, reach = float(means.mean()), float(scipy.special.ndtri((1 + claim.level) / 2) * means.std(ddof=1))
    return ClaimEstimate("", value, value - reach, value + reach, len(asked.evaluation.topics), "unknown")
