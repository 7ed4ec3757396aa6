"""Check: whether second grades of judged pairs are grades of these pairs, and of which scale."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from operator import itemgetter
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl
import scipy

from truerank.arrays import Flags, Ints
from truerank.audits.assessors.agreement import coefficients
from truerank.audits.collection.crossings import Crossing, shifted
from truerank.text.printable import listed

_PAIR: Final = ["topic_id", "doc_id"]
#: The level of each test: of ids over all rules by which they may have moved, of pairs that were no random ones.
LEVEL: Final = 0.001
#: A modest agreement, as a share of the most that two sets of grades allow.
_MODEST: Final = 0.2
#: Rows by which grades may have moved from their pairs.
_STEPS: Final = (-3, -2, -1, 1, 2, 3)
#: So many pairs that are relevant twice, and never with one grade, are graded on two scales.
_ALIKE: Final = 10
#: Other grades that a sentence gives figures of.
_NEAREST: Final = 3


class GradeMismatch(NamedTuple):
    """Why second grades are not those of their pairs, and how often they call these relevant; empty where they agree.

    Attributes:
        few: so few pairs could not show a modest agreement, either.
        turned: higher grades stand for less relevant documents.
    """

    cause: str = ""
    figures: str = ""
    few: bool = False
    turned: bool = False


def disagreement(first: pl.DataFrame, second: pl.DataFrame, rel: int, confidence: float, whom: str) -> GradeMismatch:
    """What second grades, in the order of their file, lack beside the first ones of their pairs."""
    both = second.with_row_index("at").join(first.select(*_PAIR, own="relevance"), on=_PAIR, maintain_order="left")
    topic = both["topic_id"].rank("dense").to_numpy().astype(np.int64) - 1
    at, relevant = both["at"].to_numpy().astype(np.int64), both["own"].to_numpy() >= rel
    codes: Ints = second["relevance"].rank("dense").to_numpy().astype(np.int64)
    called, least = second["relevance"].to_numpy() >= rel, float(scipy.special.ndtri((1 + confidence) / 2))
    share, error = _agreement(topic, codes[at], relevant)
    if not error or share - least * error >= _MODEST:
        return GradeMismatch()
    high, rest = (called[at[of]].mean() for of in (relevant, ~relevant))
    figures = f"{high:.0%} of what {whom} call relevant is relevant by these, and {rest:.0%} of the rest"
    # Rows that moved within a topic agree less there than by chance; grades the wrong way round do so everywhere.
    turned, reach = _agreement(np.zeros_like(topic), -codes[at], relevant)
    if turned - least * reach >= _MODEST:
        return GradeMismatch("are the wrong way round", figures, turned=True)
    orders = {"the file": np.arange(len(second)), "the ids": second.select(pl.struct(_PAIR).arg_sort()).to_numpy().T[0]}
    tried = []
    for (name, order), step in product(orders.items(), _STEPS):
        other = order[(np.argsort(order)[at] + step) % len(order)]
        moved, reach = _agreement(topic, codes[other], relevant)
        fits, own = (called[one] == relevant for one in (other, at))
        if moved - least * reach >= _MODEST and reach:
            # Where rows beside each other are alike, the grades of both fit as often.
            p = scipy.special.bdtrc((fits & ~own).sum() - 1, (fits != own).sum(), 0.5)
            rows = f"{abs(step)} row{'s' * (abs(step) > 1)} {'above' if step < 0 else 'below'} them"
            tried.append((max(p, scipy.special.ndtr(-moved / reach)), f"{rows} in the order of {name}"))
    least_p, rows = min(tried, default=(1.0, ""), key=itemgetter(0))
    if len(orders) * len(_STEPS) * least_p <= LEVEL:
        return GradeMismatch(f"do not stand beside their pairs, but {rows}", figures)
    if share > least * error:
        return GradeMismatch()
    cause = f"are not shown to agree with {whom} beyond chance"
    return GradeMismatch(cause, figures, share + least * error >= _MODEST)


def _agreement(topic: Ints, codes: Ints, relevant: Flags) -> tuple[float, float]:
    """How much higher grades are for what others call relevant, as a share of the most, and its error by chance.

    By chance, any order within a topic is as likely. Both are 0 where no order is better than another.
    """
    size, good, total = (np.bincount(topic, weights) for weights in (np.ones(len(codes)), relevant, codes))
    apart = codes - (total / np.maximum(size, 1))[topic]
    spread = np.bincount(topic, apart**2) * good * (size - good) / np.maximum(size * (size - 1), 1)
    best = np.lexsort((-codes, topic))
    place = np.arange(len(codes)) - (np.cumsum(size) - size)[topic[best]]
    most = apart[best][place < good[topic[best]]].sum()
    return (
        (float(apart[relevant].sum() / most), float(np.sqrt(spread.sum()) / most)) if spread.sum() > 0 else (0.0, 0.0)
    )


def moved_topics(first: pl.DataFrame, second: pl.DataFrame, rel: int, whom: str) -> str:
    """Whether second grades fit other topics, by one rule of their ids, better than their own."""
    people, model = (grades.filter(pl.col("relevance") >= rel) for grades in (first, second))
    model = model.join(first, on="topic_id", how="semi", maintain_order="left")
    if not len(people) or not len(model):
        return ""
    # Grades the wrong way round explain as many.
    missed = len(second.filter(pl.col("relevance") < rel).join(people, on=_PAIR, how="semi"))
    asked = first["topic_id"].unique(maintain_order=True).to_list()
    crossing = Crossing.of(model.with_columns(gain=1.0), people.with_columns(gain=1.0), asked, "file")
    if (shift := shifted(crossing)) is None:
        return ""
    own, others = (int(crossing.by(leads).sum()) for leads in (crossing.own, shift.leads))
    if others <= own + missed:
        return ""
    return (
        f"topic ids have moved: of {len(model):,} documents called relevant, {whom} call {own:,} so for the same "
        f"topic, and {others:,} for {shift.where}."
    )


class Cut(NamedTuple):
    """How grades on another scale meet people's: the lowest one for each of theirs but their lowest grade.

    Attributes:
        rel: the lowest of people's grades that counts as relevant.
        kappa: with people, on what is relevant, from each of the grades on.
    """

    lowest: int
    levels: Mapping[int, int]
    rel: int
    kappa: Mapping[int, float]
    grades: pl.DataFrame

    @property
    def grade(self) -> int:
        """The lowest grade that counts as relevant."""
        return self.levels[self.rel]

    @property
    def others(self) -> tuple[int, ...]:
        """The nearest of the other grades."""
        return tuple(sorted(sorted(self.kappa.keys() - {self.grade}, key=lambda one: abs(one - self.grade))[:_NEAREST]))

    def at(self, grade: int) -> pl.DataFrame:
        """The judgments on people's scale, with another lowest relevant grade."""
        found = pl.lit(self.lowest)
        for level, least in self.levels.items():
            of = grade if level == self.rel else max(least, grade) if level > self.rel else min(least, grade)
            found = pl.when(pl.col("relevance") >= of).then(level).otherwise(found)
        return self.grades.with_columns(found.cast(pl.Int32).alias("relevance"))

    def sentence(self, whose: str) -> str:
        """Which grade it is, and why."""
        others = "".join(f"; from {one} on {self.kappa[one]:.2f}" for one in self.others)
        scale = listed([str(one) for one in (self.lowest, *self.levels)])
        binary = (self.lowest, *self.levels) == (0, 1)
        count = [
            f"those of at least {least} count as {'relevant' if binary else k}" for k, least in self.levels.items()
        ]
        return (
            f"The judgments are {scale}; of {whose} grades, {listed(count)}, which agree best with them "
            f"(κ {self.kappa[self.grade]:.2f}{others})."
        )


def best_cut(people: pl.DataFrame, grades: pl.DataFrame, rel: int) -> Cut | None:
    """How grades on another scale are divided beside people's; None where people's are 0 and 1 and these are, too.

    Of other grades of people, None also where these are on their scale, or do not agree with them by any division.
    """
    both = grades.join(people, on=_PAIR, suffix="_people")
    own, truth = (both[column].to_numpy() for column in ("relevance", "relevance_people"))
    steps, scale = np.unique(own[own > 0]), [int(one) for one in people["relevance"].unique().sort()]
    binary, relevant = scale == [0, 1], next((one for one in scale[1:] if one >= rel), None)
    if list(steps) in ([], [1]) if binary else relevant is None or set(own) <= set(scale):
        return None
    levels, kappa = dict[int, int](), dict[int, Any]()
    for level in scale[1:]:
        cells = np.array([np.bincount(2 * (truth >= level) + (own >= one), minlength=4) for one in steps], float)
        kappa[level] = np.nan_to_num(coefficients(cells, (0, 1), ("kappa",))[:, 0])
        # A higher grade of people's has no lower one of these.
        levels[level] = int(steps[np.where(steps >= max(levels.values(), default=0), kappa[level], -1).argmax()])
    known = dict(zip(steps.tolist(), kappa[relevant or 1].tolist(), strict=True))
    if not binary and known[levels[relevant or 1]] <= 0:
        return None
    return Cut(scale[0], levels, relevant or 1, known, grades)


def apart(first: pl.DataFrame, other: pl.DataFrame, pairs: str) -> str:
    """Says that no pair of others is among the judgments, and what of its topics and documents is."""
    met = [
        f"of its {other[key].n_unique():,} {what}, {other[key].unique().is_in(first[key].implode()).sum():,}"
        for key, what in zip(_PAIR, ("topics", "documents"), strict=True)
    ]
    return f"None of the {len(other):,} {pairs} is among the judgments: {met[0]} are in them, {met[1]}."


def far_from_random(first: pl.DataFrame, second: pl.DataFrame, rel: int) -> tuple[float, float, float]:
    """How far the pairs of second grades are from a random sample of each topic's, in standard deviations.

    Also the share of relevant ones by the first grades, of these pairs and of all on their topics. Topic by topic: all
    pairs of some topics, and as many pairs of each, are random samples, too.
    """
    both = first.join(second, on=_PAIR, how="semi").group_by("topic_id")
    drawn = both.agg(pl.len().alias("n"), (pl.col("relevance") >= rel).sum().alias("r"))
    same = first.group_by("topic_id").agg(pl.len(), (pl.col("relevance") >= rel).sum())
    every, good, n, r = same.join(drawn, on="topic_id").select("len", "relevance", "n", "r").to_numpy().astype(float).T
    spread = n * good * (every - good) * (every - n) / np.maximum(every**2 * (every - 1), 1)
    z = float((r - n * good / every).sum() / np.sqrt(spread.sum())) if spread.sum() > 0 else 0.0
    return z, float(r.sum() / n.sum()), float(good.sum() / every.sum())


def again_fault(first: pl.DataFrame, again: pl.DataFrame, rel: int, confidence: float) -> tuple[str, str, str]:
    """The word for second judgments that say nothing about the first ones, why, and what to do; empty if none does."""
    both = first.join(again.rename({"relevance": "second"}), on=_PAIR, maintain_order="left")
    moved = moved_topics(first, again, rel, "the first")
    if moved or not len(both):
        fault = f"The second judgments' {moved}" if moved else apart(first, again, "pairs that were judged again")
        return "NOT USABLE", fault, "Give second judgments with the ids of the first."
    z, *shares = far_from_random(first, again, rel)
    if abs(z) > -scipy.special.ndtri(LEVEL / 2):
        fault = f"{shares[0]:.0%} of them are relevant by the first grades, and {shares[1]:.0%}"
        return (
            "NOT USABLE",
            f"The {len(both):,} pairs that were judged again are not a random sample: {fault} of all on their topics.",
            "Draw pairs at random, whatever their grades, or take all of some topics.",
        )
    lack = disagreement(first, again, rel, confidence, "the first")
    if lack.cause:
        fault = f"The second grades {lack.cause}: {lack.figures} ({len(both):,} pairs)."
        if lack.few:
            return "CANNOT TELL", fault, "Have more pairs judged again, or all of some topics."
        remedy = "Make sure that each second grade stands beside its own pair, in its order and ids."
        turned = "Write them so that a higher grade is a more relevant document."
        return "NOT USABLE", fault, turned if lack.turned else remedy
    relevant, second = (both[name].to_numpy() >= rel for name in ("relevance", "second"))
    alike = both.filter(pl.Series(relevant & second))
    if len(alike) >= _ALIKE and (alike["relevance"] != alike["second"]).all():
        fault = f"of {len(alike):,} pairs that both call relevant, none has the same grade"
        return (
            "NOT USABLE",
            f"The second grades are on another scale: {fault}.",
            "Give second grades on the scale of the first.",
        )
    return "", "", ""
