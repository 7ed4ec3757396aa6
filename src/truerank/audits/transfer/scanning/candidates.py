"""Candidates: judged documents that one version answers the query with and another, it seems, does not."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from truerank.arrays import Floats, frame_schema
from truerank.audits.transfer.scanning.options import AGGREGATIONS, TEXTS, Aggregation, directions
from truerank.audits.transfer.scanning.text_evidence import favoured
from truerank.errors import OptionError
from truerank.rankers.reranking.document_texts import DocumentTexts
from truerank.text.page_faults import PageFault, PageWords, page_fault

#: Keeps the slope finite where all relevant documents score above all others.
_PENALTY: Final = 1e-4
_STEPS: Final = 100
#: As many documents of average score are added to those of each topic.
_SHRINKAGE: Final = 5


@dataclass(frozen=True)
class Curve:
    """P(relevant) = 1 / (1 + exp(-(slopes · scores + offset))), for as many relevant documents as others.

    Scores are those of one ranker or several, each above the level of its topic, see `topic_levels`.

    It was fitted to so many `relevant` documents and `others`; `auc` is the share of pairs of the two in which the
    relevant one scores higher.
    """

    slopes: tuple[float, ...]
    offset: float
    relevant: int
    others: int
    auc: float

    @property
    def tells(self) -> bool:
        """Whether relevant documents score higher at all."""
        return max(self.slopes) > 0 and self.auc > 0.5

    def log_odds(self, scores: Floats) -> Floats:
        """The logarithm of the odds of being relevant, shape (n,); 0 for all where the scores tell nothing.

        Args:
            scores: shape (n, rankers).
        """
        if not self.tells:
            return np.zeros(len(scores))
        found: Floats = scores @ np.array(self.slopes) + self.offset
        return found

    def __call__(self, scores: Floats) -> Floats:
        """The probability of each row of scores, shape (n,); one half for all where the scores tell nothing."""
        found: Floats = _expit(self.log_odds(scores))
        return found

    def json(self) -> dict[str, Any]:
        """The curve as plain numbers."""
        rounded = {"slopes": [round(slope, 6) for slope in self.slopes], "offset": round(self.offset, 6)}
        return {**rounded, "relevant": self.relevant, "others": self.others, "auc": round(self.auc, 6)}


def fit_curve(relevant: Floats, others: Floats) -> Curve:
    """Fits the curve; both sides weigh the same, whatever their numbers.

    Args:
        relevant: scores of judged relevant documents, shape (m, rankers).
        others: scores of documents that are not, shape (n, rankers).

    Source: Platt (1999).
    """
    if not len(relevant) or not len(others):
        raise OptionError(
            "probability",
            "nothing to calibrate with: no judged topic has a document that is not relevant to it",
            "give --first-stage, or --percentile instead of a cut-off",
        )
    scores = np.concatenate([relevant, others])
    centre, scale = scores.mean(axis=0), scores.std(axis=0)
    scale[scale == 0] = 1.0
    x = np.column_stack([(scores - centre) / scale, np.ones(len(scores))])
    y = np.r_[np.ones(len(relevant)), np.zeros(len(others))]
    weights = np.r_[np.full(len(relevant), 0.5 / len(relevant)), np.full(len(others), 0.5 / len(others))]
    found = np.zeros(x.shape[1])
    penalty = np.diag([*[_PENALTY] * scores.shape[1], 0.0])
    for _ in range(_STEPS):
        guess = _expit(x @ found)
        rise = x.T @ (weights * (guess - y)) + penalty @ found
        bend = (x * (weights * guess * (1 - guess))[:, None]).T @ x + penalty + 1e-9 * np.eye(len(found))
        step = np.linalg.solve(bend, rise)
        # A long step from a flat place would overshoot.
        found = found - step * min(1.0, 5.0 / float(np.abs(step).max() or 1.0))
        if np.abs(step).max() < 1e-10:
            break
    slopes = found[:-1] / scale
    offset = float(found[-1] - slopes @ centre)
    # A single score orders documents itself, also where its slope is negative.
    order = slopes if len(slopes) > 1 else np.ones(1)
    mine, ordered = relevant @ order, np.sort(others @ order)
    below = np.searchsorted(ordered, mine, side="left")
    tied = np.searchsorted(ordered, mine, side="right") - below
    area = float((below + 0.5 * tied).mean() / len(others))
    return Curve(tuple(slopes.tolist()), offset, len(relevant), len(others), area)


def difference(better: pl.Expr, worse: pl.Expr, *, judged: bool) -> pl.Expr:
    """How much more probable it is that one version is relevant than that the other is."""
    plain = better - worse
    if not judged:
        return plain
    either = better + worse - better * worse
    return pl.when(either > 0).then(plain / either).otherwise(0.0)


def topic_levels(topics: pl.Series, scores: Floats, others: NDArray[np.bool_]) -> Floats:
    """What a document that is not relevant scores for a topic, on average: some topics score high with everything.

    Args:
        scores: shape (n,).
        others: which of them are of documents that are not relevant, shape (n,); few for a topic weigh little.

    Returns:
        The level of each score's topic, shape (n,).
    """
    mean = float(scores[others].mean()) if others.any() else 0.0
    known = pl.DataFrame({"topic": topics, "score": scores, "other": others})
    mine = known.filter("other").group_by("topic").agg(pl.col("score").sum().alias("sum"), pl.len().alias("n"))
    joined = known.join(mine, on="topic", how="left", maintain_order="left")
    level = (pl.col("sum").fill_null(0.0) + _SHRINKAGE * mean) / (pl.col("n").fill_null(0) + _SHRINKAGE)
    found: Floats = joined.select(level.alias("level"))["level"].to_numpy()
    return found


def _expit(values: Floats) -> Floats:
    # Imported here: SciPy takes a while to load.
    from scipy.special import expit

    found: Floats = expit(values)
    return found


#: One row per judged document and direction in which two of its versions differ. `evidence` says what named it: the
#: "scores" (`better` scores higher than `worse` by more than the cut-off, by the first passage, `first`, the best one,
#: `max`, or both), the "texts" (`texts`: `worse` lacks the share `lost` of what answered the query), or "both". Scores
#: are probabilities, or the ranker's own with a percentile; differences as in `probabilities.difference`. `passage` is
#: the place of the best passage in the better version; `shown` what shows the reason.
CANDIDATE_SCHEMA: Final[dict[str, Any]] = frame_schema(
    "topic_id query doc_id: String, relevance: Int32, better worse better_id worse_id better_url worse_url: String, "
    "first_better first_worse first_difference max_better max_worse max_difference: Float64, first max texts: Boolean, "
    "lost: Float64, evidence: String, passage: UInt32, reason shown: String"
)
#: The data sets of the paper's section 4: which judged document is in which, with the difference that put it there.
SET_SCHEMA: Final[dict[str, Any]] = frame_schema(
    "set aggregation better worse topic_id doc_id: String, difference: Float64"
)
_AT_ONCE: Final = 512


class Comparing(NamedTuple):
    """What candidates are looked for in.

    Attributes:
        scores: one row per judged document and version, columns as in `results.SCORES_SCHEMA`.
        cut_offs: the difference above which one is a candidate.
        texts: the files of `DocumentTexts` by version.
        judged: differences take it as given that one of the two versions is relevant.
        floor: then the larger probability is at least this.
        by_scores: the scores name candidates.
        losses: by which the texts name candidates, columns as in `text_evidence.TEXT_SCHEMA`; None where they do not.
        odds: scores are probabilities.
    """

    scores: pl.DataFrame
    pairs: Sequence[tuple[str, str]]
    cut_offs: Mapping[Aggregation, float]
    texts: Mapping[str, Path]
    judged: bool
    floor: float
    by_scores: bool
    losses: pl.DataFrame | None
    judged_version: str
    odds: bool


def cut_offs(scores: pl.DataFrame, pairs: Sequence[tuple[str, str]], percentile: float) -> dict[Aggregation, float]:
    """The percentile of the differences, whatever their direction, of all pairs of versions together."""
    found: dict[Aggregation, float] = {}
    for aggregation in AGGREGATIONS:
        parts = [_beside(scores, a, b, judged=False)[f"{aggregation}_difference"].abs().to_numpy() for a, b in pairs]
        every = np.concatenate(parts) if parts else np.zeros(0)
        found[aggregation] = round(float(np.percentile(every, percentile)), 6) if len(every) else 0.0
    return found


def find_candidates(comparing: Comparing) -> pl.DataFrame:
    """The judged documents whose versions differ by scores or texts, with a class of reasons for each."""
    parts = [pl.DataFrame(schema=CANDIDATE_SCHEMA)]
    for better, worse in directions(comparing.pairs):
        beside = _beside(comparing.scores, better, worse, judged=comparing.judged)
        flagged = _flagged(beside, comparing, better, worse)
        flagged = _described(flagged, comparing.scores, better, worse)
        flagged = _repeated(flagged, comparing.losses, better, worse)
        faults = _faults(flagged, DocumentTexts(comparing.texts[better]), DocumentTexts(comparing.texts[worse]))
        reasons = pl.DataFrame(list(faults), schema={"reason": pl.String, "shown": pl.String}, orient="row")
        sides = pl.lit(better).alias("better"), pl.lit(worse).alias("worse")
        flagged = flagged.with_columns(*sides, *reasons.get_columns())
        parts.append(flagged.select(list(CANDIDATE_SCHEMA)).cast(pl.Schema(CANDIDATE_SCHEMA)))
    return pl.concat(parts)


def _flagged(beside: pl.DataFrame, comparing: Comparing, better: str, worse: str) -> pl.DataFrame:
    """The rows that scores or texts name, with what named them."""
    sure = pl.lit(True)
    above = []
    for name, cut in comparing.cut_offs.items():
        if comparing.judged:
            sure = pl.max_horizontal(f"{name}_better", f"{name}_worse") >= comparing.floor
        above.append(pl.lit(comparing.by_scores) & sure & (pl.col(f"{name}_difference") > cut))
    lost = pl.DataFrame(schema={"row": pl.UInt32, "lost": pl.Float64})
    if comparing.losses is not None:
        pair = comparing.losses.filter(pl.col("first").is_in([better, worse]) & pl.col("second").is_in([better, worse]))
        pair = pair.join(beside.select("row", "max_better", "max_worse"), on="row", how="inner", maintain_order="left")
        judged, odds = comparing.judged_version, comparing.odds
        lost = favoured(pair, better, judged, odds=odds)
        # Beside the texts, scores name no document that lost next to nothing, and not the other version.
        some = favoured(pair, better, judged, odds=odds, support=True)
        above = [flag & pl.col("row").is_in(some["row"].implode()) for flag in above]
    found = beside.join(lost, on="row", how="left", maintain_order="left")
    found = found.with_columns(
        *(flag.alias(name) for name, flag in zip(comparing.cut_offs, above, strict=True)),
        pl.col("lost").is_not_null().alias("texts"),
    )
    scores = pl.any_horizontal("first", "max")
    evidence = pl.when(scores & pl.col("texts")).then(pl.lit("both")).when(scores).then(pl.lit("scores"))
    return found.with_columns(evidence.otherwise(pl.lit("texts")).alias("evidence")).filter(scores | pl.col("texts"))


def data_sets(comparing: Comparing, candidates: pl.DataFrame, versions: Sequence[str]) -> pl.DataFrame:
    """The data sets: for each direction FirstP, MaxP and the texts, and what is there in all versions.

    Source: the transfer paper, section 4.
    """

    def members(frame: pl.DataFrame, value: pl.Expr, **about: str) -> pl.DataFrame:
        named = frame.with_columns(value.alias("difference"), **{key: pl.lit(text) for key, text in about.items()})
        return named.select(list(SET_SCHEMA))

    parts = [pl.DataFrame(schema=SET_SCHEMA)]
    kinds = (*AGGREGATIONS, *(() if comparing.losses is None else (TEXTS,)))
    for (better, worse), kind in itertools.product(directions(comparing.pairs), kinds):
        inside = candidates.filter((pl.col("better") == better) & (pl.col("worse") == worse) & pl.col(kind))
        value = pl.col("lost" if kind == TEXTS else f"{kind}_difference")
        parts.append(members(inside, value, set=set_name(better, worse, kind), aggregation=kind))
    complete = comparing.scores.filter(pl.col("row").is_first_distinct() & (pl.len().over("row") == len(versions)))
    whole = members(complete, pl.lit(None, pl.Float64), set="all versions", aggregation="", better="", worse="")
    return pl.concat([*parts, whole])


def set_name(better: str, worse: str, kind: str) -> str:
    """What a data set is called: "V1>>V2 MaxP", or "V1>>V2 texts"."""
    return f"{better}>>{worse} {dict(AGGREGATIONS).get(kind, kind)}"  # type: ignore[call-overload]


def _beside(scores: pl.DataFrame, better: str, worse: str, *, judged: bool) -> pl.DataFrame:
    """The numbers of two versions side by side, in the order of the judgments; texts are joined to what is flagged."""
    left, right = (
        scores.lazy()
        .filter(pl.col("version") == name)
        .select("row", pl.col("first").alias(f"first_{side}"), pl.col("max").alias(f"max_{side}"))
        .collect()
        for name, side in ((better, "better"), (worse, "worse"))
    )
    joined = left.join(right, on="row", how="inner", maintain_order="left")
    return joined.with_columns(
        # Rounded as they are stored, so that a reader of the file finds the same documents above the cut-off.
        difference(pl.col(f"{name}_better"), pl.col(f"{name}_worse"), judged=judged)
        .round(6)
        .alias(f"{name}_difference")
        for name in AGGREGATIONS
    )


def _described(flagged: pl.DataFrame, scores: pl.DataFrame, better: str, worse: str) -> pl.DataFrame:
    """What is flagged with ids, addresses and the place of the best passage."""
    some = scores.lazy().filter(pl.col("row").is_in(flagged["row"].implode()))
    of_better = some.filter(pl.col("version") == better).select(
        "row", "topic_id", "query", "doc_id", "relevance", pl.col("best").alias("passage"),
        pl.col("version_doc_id").alias("better_id"), pl.col("url").alias("better_url"),
    )  # fmt: skip
    of_worse = some.filter(pl.col("version") == worse).select(
        "row", pl.col("version_doc_id").alias("worse_id"), pl.col("url").alias("worse_url")
    )
    for side in (of_better, of_worse):
        flagged = flagged.join(side.collect(), on="row", how="left", maintain_order="left")
    return flagged


def _repeated(flagged: pl.DataFrame, losses: pl.DataFrame | None, better: str, worse: str) -> pl.DataFrame:
    """What is flagged with how many other documents of the worse version say the same; 0 where texts are not read."""
    if losses is None:
        return flagged.with_columns(pl.lit(0, pl.Int64).alias("alone"))
    pair = losses.filter(pl.col("first").is_in([better, worse]) & pl.col("second").is_in([better, worse]))
    side = pl.when(pl.col("first") == worse).then("first_alone").otherwise("second_alone")
    counts = pair.select("row", side.alias("alone"))
    return flagged.join(counts, on="row", how="left", maintain_order="left").with_columns(pl.col("alone").fill_null(0))


def _faults(flagged: pl.DataFrame, better: DocumentTexts, worse: DocumentTexts) -> Iterator[PageFault]:
    for part in flagged.iter_slices(_AT_ONCE):
        ids = part["better_id"].to_list(), part["worse_id"].to_list()
        before, after = better.texts(ids[0]), worse.texts(ids[1])
        known: dict[tuple[str, str, int], PageFault] = {}
        for key in zip(*ids, part["alone"].to_list(), strict=True):
            if key not in known:
                known[key] = page_fault(PageWords(*before[key[0]]), PageWords(*after[key[1]]), repeated=key[2])
            yield known[key]
