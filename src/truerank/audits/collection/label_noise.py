"""Measure: what wrong judgments allow, by pairs that were judged again and are taken to be right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import polars as pl

from truerank.audits.assessors.correction import CorrectedScores, corrected_scores
from truerank.audits.assessors.grades import read_voices
from truerank.audits.assessors.sampling_designs import Correcting, ranks_of
from truerank.audits.collection.instances import Instances, instances
from truerank.errors import InputError
from truerank.measures import evaluate, mean_interval, parse_measures
from truerank.measures.effectiveness import computes
from truerank.measures.grammar import aggregate_of
from truerank.measures.magnitudes import proportion
from truerank.measures.prediction_powered import Target
from truerank.options import Resampling, Scoring

#: Topics all of whose relevant documents were judged again, without which no ceiling is told.
_TOPICS: Final = 5
#: Fewer judgments of another grade among those that count tell no interval; ranks where a measure has no cut-off.
_WRONG, _DEEP = 10, 1000
_PAIR: Final = ["topic_id", "doc_id"]
_FIRST: Final = pl.lit(0.0).alias("score")
#: Rankings by the second judgments: without what these call wrong, and with it behind all that is relevant.
_ALONE, _FOLLOWED = "\nalone", "\nfollowed"


def read_again(source: Any) -> pl.DataFrame:
    """Pairs that were judged again: topic_id, doc_id, relevance; of several people the last one counts."""
    voices = read_voices(source, models=False)
    every = pl.concat([one.grades.select(*_PAIR, pl.col("relevance").cast(pl.Int64)) for one in voices])
    return every.unique(_PAIR, keep="last", maintain_order=True)


def corrected(
    pairs: pl.DataFrame,
    again: pl.DataFrame,
    runs: Mapping[str, pl.DataFrame],
    measures: Sequence[str],
    correcting: Correcting,
    *,
    scoring: Scoring,
) -> tuple[CorrectedScores | None, list[str]]:
    """Scores of runs by the second judgments of all pairs, as far as a sample tells them, and what it does not tell.

    A measure that is no sum over documents, such as nDCG, needs topics that were judged again as a whole; without
    five of these, its cumulated gain or precision at the same cut-off stands for it.
    """
    known = again.join(pairs, on=_PAIR, how="semi")
    open_topics = pairs.join(known, on=_PAIR, how="anti")["topic_id"].n_unique()
    chosen, remarks = list(measures), list[str]()
    if pairs["topic_id"].n_unique() - open_topics >= _TOPICS:
        correcting = replace(correcting, design="topics")
    else:
        chosen = list(dict.fromkeys(_sum_of(one) for one in measures))
        counts = {one: _counted(pairs, known, runs, _cutoff(one), scoring) for one in chosen}
        few = [one for one, (_, wrong) in counts.items() if open_topics and wrong < _WRONG]
        remarks = [
            f"{one}: {counts[one][1]:,d} of {counts[one][0]:,d} judgments that count got another grade: fewer than "
            f"{_WRONG} are too few for an interval." for one in few
        ]  # fmt: skip
        chosen = [one for one in chosen if one not in few]
    if not chosen:
        return None, remarks
    try:
        return corrected_scores(known, pairs, runs, " ".join(chosen), correcting, scoring=scoring), remarks
    except InputError as error:
        return None, [*remarks, str(error)]


def _counted(
    pairs: pl.DataFrame, known: pl.DataFrame, runs: Mapping[str, pl.DataFrame], depth: int, scoring: Scoring
) -> tuple[int, int]:
    """How many pairs that were judged again stand above a rank in a run, and how many of them got another grade."""
    ranks = ranks_of(pairs, runs, scoring)
    counts = ((ranks.ranks >= 0) & (ranks.ranks < depth)).any(axis=1)
    both = ranks.frame.filter(pl.Series(counts)).join(known.rename({"relevance": "second"}), on=_PAIR)
    return len(both), int((both["second"] != both["relevance"]).sum())


def _cutoff(measure: str) -> int:
    return int(parse_measures(measure)[0].params.get("cutoff") or _DEEP)


def _sum_of(measure: str) -> str:
    """The measure that is a sum over documents, at the same cut-off."""
    (parsed,) = parse_measures(measure)
    cutoff = parsed.params.get("cutoff") or 10
    if parsed.NAME in ("P", "DCG", "RBP"):
        return measure
    return f"DCG@{cutoff}" if parsed.NAME == "nDCG" else f"P@{cutoff}"


def label_noise(
    pairs: pl.DataFrame,
    again: pl.DataFrame,
    runs: Mapping[str, pl.DataFrame],
    measures: str,
    *,
    scoring: Scoring,
    resampling: Resampling,
    target: Target = "collection",
) -> tuple[dict[str, Any], list[Instances]]:
    """How many judgments are wrong, what a perfect system scores by them, and what runs score without the wrong ones.

    Args:
        pairs: the judgments, one row for each pair.
        again: pairs that were judged again, as if drawn at random.
        measures: of the ceilings and scores.
        target: what intervals of scores are for: these topics, or those that they are a sample of.

    Returns:
        Figures for the page, and findings.
    """
    pairs = pairs.select(*_PAIR, pl.col("relevance").cast(pl.Int64))
    both = pairs.join(again.rename({"relevance": "second"}), on=_PAIR, how="inner", maintain_order="left")
    beside = again.join(pairs, on=_PAIR, how="anti")
    confidence = resampling.confidence
    grades = []
    for (grade,), own in both.group_by("relevance", maintain_order=True):
        same = int((own["second"] == grade).sum())
        share = proportion(same, len(own), confidence=confidence, method="exact")
        of = int((pairs["relevance"] == grade).sum())
        relevant = int((own["second"] >= scoring.rel).sum())
        grades.append({"grade": grade, "judgments": of, "again": len(own), "relevant": relevant, **share._asdict()})
    grades.sort(key=lambda row: row["grade"])
    ceilings, above = _ceilings(pairs, both, runs, measures, scoring=scoring, confidence=confidence)
    correcting = Correcting(design="uniform", target=target, confidence=confidence, seed=resampling.seed)
    named = [str(one) for one in parse_measures(measures) if computes(one) and aggregate_of(one) == "mean"]
    found, remarks = corrected(pairs, again, runs, named, correcting, scoring=scoring) if runs else (None, [])
    facts = {
        "again": len(both), "beside": len(beside), "beside_relevant": int((beside["relevance"] >= scoring.rel).sum()),
        "grades": grades, "ceilings": ceilings, "remarks": [*remarks, *(found.remarks if found else ())],
        "scores": [] if found is None else found.scores.to_dicts(),
        "differences": [] if found is None else found.differences.to_dicts(),
    }  # fmt: skip
    wrong = both.filter(pl.col("second") != pl.col("relevance"))
    detail = pl.format("grade {}, judged again {}", "relevance", "second").alias("detail")
    lines = [_told(one) for one in ceilings[:1]]
    rows = instances("contradicted-again", wrong.with_columns(detail), len(both))
    return facts, [replace(rows, here=" ".join(lines)), instances("above-ceiling", above, len(runs))]


def _told(ceiling: Mapping[str, Any]) -> str:
    return (
        f"By {ceiling['measure']}, a system that ranks as the second judgments say scores {ceiling['mean']:.3f} at "
        f"most ({ceiling['low']:.3f} to {ceiling['high']:.3f}; {ceiling['n']:,d} topics), and {ceiling['least']:.3f} "
        "if it returns nothing that they call wrong: above that, systems differ by wrong judgments alone."
    )


def _ceilings(
    pairs: pl.DataFrame, both: pl.DataFrame, runs: Mapping[str, pl.DataFrame], measures: str, *, scoring: Scoring,
    confidence: float,
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:  # fmt: skip
    """What rankings by the second judgments score, and the runs that score more.

    On topics all of whose relevant documents were judged again; the other judgments of these are taken to be right.
    """
    relevant = pairs.filter(pl.col("relevance") >= scoring.rel)
    lacking = relevant.join(both, on=_PAIR, how="anti").select("topic_id").unique()
    topics = relevant.select("topic_id").unique(maintain_order=True).join(lacking, on="topic_id", how="anti")
    if len(topics) < _TOPICS:
        return [], []
    own = pairs.join(topics, on="topic_id", how="semi", maintain_order="left")
    second = own.join(both.select(*_PAIR, "second"), on=_PAIR, how="left", maintain_order="left")
    truth = pl.col("second").fill_null(pl.col("relevance")).cast(pl.Float64)
    # Where no judged document is relevant, another one is, of which nobody knows; no id is a blank.
    unknown = own.select(pl.col("topic_id").unique(maintain_order=True), pl.lit(" ").alias("doc_id"), _FIRST)
    alone = pl.concat([second.filter(truth > 0).select(*_PAIR, truth.alias("score")), unknown])
    hidden = pl.col("score").max().over("topic_id") > 0
    alone = alone.filter((pl.col("doc_id") != " ") | ~hidden).select(*_PAIR, "score")
    # At most: of equal documents, those that are judged higher stand first. Scores are compared with 32 bits.
    grade = (pl.col("relevance").rank("dense") / 2**10).alias("tie")
    best = second.select(*_PAIR, (pl.when(truth > 0).then(truth).otherwise(-1.0) + grade).alias("score"))
    followed = pl.concat([best, alone.filter(pl.col("doc_id") == " ")])
    scored = evaluate(own, {_ALONE: alone, _FOLLOWED: followed, **dict(runs)}, measures, scoring)
    lines, above = list[dict[str, Any]](), list[dict[str, Any]]()
    for measure, kind in zip(scored.measures, scored.aggregates, strict=True):
        if kind != "mean":
            continue
        ceiling = scored.of(_FOLLOWED, measure)
        least = float(scored.of(_ALONE, measure).mean())
        lines.append({"measure": measure, "least": least, **mean_interval(ceiling, confidence)._asdict()})
        for name in runs:
            lead = mean_interval(scored.of(name, measure) - ceiling, confidence)
            if lead.low is not None and lead.low > 0:
                more = f"{measure} {scored.of(name, measure).mean():.3f}, the ceiling is {ceiling.mean():.3f}"
                above.append({"other": name, "detail": f"{more} ({len(ceiling):,d} topics)"})
    return lines, above
