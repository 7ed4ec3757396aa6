"""What the pairs, the labels and the sensitivity check come to: the summary of an audit with its verdicts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl

from truerank.audits.leakage.estimating import TestEvidence, summarise_test
from truerank.audits.leakage.options import AuditOptions
from truerank.audits.leakage.proposing import Proposed, topic_texts
from truerank.audits.leakage.results import (
    CANDIDATE_SCHEMA,
    NEIGHBOUR_SCHEMA,
    AuditResult,
    AuditSummary,
    FormRecall,
    PrefilterRecall,
    Sensitivity,
)
from truerank.judging.labels import Judgments, annotate, scope_notes
from truerank.overlaps.meaning import ReadTexts
from truerank.records import TopicText
from truerank.sources import TopicSet
from truerank.text.normalising import normalise
from truerank.text.reformulation import propose_types
from truerank.text.wording import EVIDENCE, LETTERS, WORDS
from truerank.text.words import content_words
from truerank.vectors.encoders import Encoder
from truerank.vectors.prefilter import DEFAULT_CUTS, Filtered, estimate_recall
from truerank.vectors.words import WordVectors


@dataclass(frozen=True)
class Known:
    """What an audit knows when everything was read.

    Attributes:
        proposed: the pairs, and what was read.
        tests: the test sets.
        encoder: in full precision; proposes the reformulation types.
        judgments: what people said; None without labels.
        checked: the sensitivity check by test set.
    """

    proposed: Proposed
    tests: Sequence[TopicSet]
    encoder: Encoder
    judgments: Judgments | None
    checked: Mapping[str, Sensitivity]


def summarise(known: Known, options: AuditOptions) -> AuditResult:
    """The result of an audit."""
    proposed, tests, judgments = known.proposed, known.tests, known.judgments
    pairs = _with_evidence(proposed.pairs, options.threshold)
    above_floor = pl.col("similarity") > pl.lit(options.lowest, pl.Float32)
    candidates = with_types(pairs.filter(above_floor | (pl.col("evidence") != "")), tests, known.encoder)
    judged = None if judgments is None else annotate(pairs, judgments)
    above = pl.col("similarity") > pl.lit(options.threshold, pl.Float32)
    unsettled = (pairs if judged is None else judged.filter(pl.col("judged").fill_null(value=True))).filter(
        ~above & (pl.col("evidence") != "")
    )
    prefilter = _recall(proposed, topic_texts(tests, options.fields), options)
    nothing = Sensitivity(kinds=[], other_topics={})
    summary = AuditSummary(
        threshold=options.threshold,
        floor=options.lowest,
        calibrated_for=options.calibrated_for,
        calibrated=known.encoder.name == options.calibrated_for,
        encoder=known.encoder.name,
        mode=options.mode,
        top_k=options.k,
        sources=proposed.counts,
        tests={
            test.name: summarise_test(
                test,
                TestEvidence(
                    candidates.filter(above, test=test.name),
                    unsettled.filter(test=test.name),
                    known.checked.get(test.name, nothing),
                    None if judged is None else _confirmed(judged.filter(test=test.name), options.threshold),
                    _silent(test, options),
                    known.encoder.name == options.calibrated_for,
                    _unread(test, options, known.encoder),
                    proposed.common,
                    _judged_below(judged, test.name, options.threshold),
                ),
                proposed.counts,
                prefilter=prefilter,
                fields=tuple(name for name in (*options.fields, "variant") if name in test.fields),
            )
            for test in tests
        },
        prefilter=prefilter,
    )
    if screens := {name: asdict(one.screen) for name, one in proposed.found.items() if one.screen is not None}:
        summary["first_pass"] = screens
    if judgments is not None and judged is not None:
        summary["labels"] = _judged_counts(judged, options.threshold)
        scope = scope_notes({test.name: [topic.topic_id for topic in test.topics] for test in tests}, judgments)
        summary["labels"] |= {"test_sets": " ".join(scope)} if scope else {}
    neighbours = proposed.pairs.filter(pl.col("rank") <= options.k).select(list(NEIGHBOUR_SCHEMA))
    decided = None
    if judged is not None:
        answered = judged.filter(pl.col("judged").is_not_null())
        decided = answered.select("test", "topic_id", "source", "query_id", "judged").unique(maintain_order=True)
    return AuditResult(summary, candidates.select(list(CANDIDATE_SCHEMA)), neighbours, judged=decided)


def _with_evidence(pairs: pl.DataFrame, threshold: float) -> pl.DataFrame:
    """Pairs with the column `evidence` in the place of `probed`."""
    proposed = (
        (pl.col("similarity") > pl.lit(threshold, pl.Float32)) & ~pl.col("unread"),
        pl.col("probed") == WORDS,
        pl.col("probed") == LETTERS,
    )
    names = [pl.when(by).then(pl.lit(name)) for name, by in zip(EVIDENCE, proposed, strict=True)]
    return pairs.with_columns(pl.concat_str(names, separator="+", ignore_nulls=True).alias("evidence")).drop(
        "probed", "unread"
    )


def _confirmed(judged: pl.DataFrame, threshold: float) -> tuple[set[str], set[str]]:
    """Topics with a confirmed leak, and topics with a pair above the threshold that nobody judged."""
    above = pl.col("similarity") > pl.lit(threshold, pl.Float32)
    sure = judged.filter("judged")["topic_id"].unique()
    open_ = judged.filter(above & pl.col("judged").is_null())["topic_id"].unique()
    return set(sure), set(open_)


def _judged_counts(judged: pl.DataFrame, threshold: float) -> dict[str, Any]:
    above = judged.filter(pl.col("similarity") > pl.lit(threshold, pl.Float32))
    leaks, others = int((above["judged"] == True).sum()), int((above["judged"] == False).sum())  # noqa: E712
    return {
        "above": {"leaks": leaks, "not_leaks": others, "unjudged": len(above) - leaks - others},
        "precision_above": round(leaks / (leaks + others), 6) if leaks + others else None,
        "leaks_at_or_below": int((judged["judged"] == True).sum()) - leaks,  # noqa: E712
    }


def _judged_below(judged: pl.DataFrame | None, test: str, threshold: float) -> tuple[int, int]:
    """Of the pairs at or below the threshold that words or letters propose: the leaks, and those judged to be none."""
    if judged is None:
        return 0, 0
    listed = pl.col("evidence").is_in(["words", "letters", "words+letters"])
    below = pl.col("similarity") <= pl.lit(threshold, pl.Float32)
    answers = judged.filter(below & listed, test=test)["judged"].drop_nulls()
    return int(answers.sum()), int((~answers).sum())


def _silent(test: TopicSet, options: AuditOptions) -> int:
    spoken = {text.topic_id for text in topic_texts([test], options.fields)}
    return sum(topic.topic_id not in spoken for topic in test.topics)


def _unread(test: TopicSet, options: AuditOptions, encoder: Encoder) -> int:
    """Topics with a text that the encoder cannot read."""
    texts = topic_texts([test], options.fields)
    read = ReadTexts.of(encoder).reads([normalise(text.text) for text in texts])
    return len({text.topic_id for text, known in zip(texts, read.tolist(), strict=True) if not known})


def _recall(proposed: Proposed, texts: Sequence[TopicText], options: AuditOptions) -> PrefilterRecall | None:
    parts = [
        (found.filtered, found.pairs.filter(pl.col("similarity") > pl.lit(options.threshold, pl.Float32)))
        for found in proposed.found.values()
        if found.filtered is not None
    ]
    if not parts:
        return None
    recall = estimate_recall(parts)
    return PrefilterRecall(
        cuts={**DEFAULT_CUTS, **options.prefilter_cut},
        passed=sum(filtered.passed_count for filtered, _ in parts),
        sampled=recall.sampled,
        true_pairs=recall.true_pairs,
        missed_in_sample=recall.missed_in_sample,
        recall=recall.recall,
        low=recall.low,
        high=recall.high,
        unmodelled_low=recall.unmodelled_low,
        by=list(_recall_by_form(parts, [text.field for text in texts])),
    )


def _recall_by_form(parts: Sequence[tuple[Filtered, pl.DataFrame]], fields: Sequence[str]) -> Iterator[FormRecall]:
    """The recall by field, questions and keyword queries apart."""
    for field in dict.fromkeys(fields):
        own = pl.col("topic_no").is_in([number for number, name in enumerate(fields) if name == field])
        some = [
            (filtered.with_sample(filtered.sample_pairs.filter(own)), pairs.filter(own)) for filtered, pairs in parts
        ]
        for form, question in (("keywords", False), ("question", True)):
            found = estimate_recall(some, question=question)
            yield FormRecall(
                field=field,
                form=form,
                true_pairs=found.true_pairs,
                missed_in_sample=found.missed_in_sample,
                recall=found.recall if found.true_pairs else None,
                low=found.low,
                high=found.high,
            )


def with_types(pairs: pl.DataFrame, tests: Sequence[TopicSet], encoder: Encoder) -> pl.DataFrame:
    """Adds the columns `type` and `title_type` to the candidates."""
    titles = {(test.name, topic.topic_id): topic.title for test in tests for topic in test.topics}
    of_title = [titles[key] for key in pairs.select("test", "topic_id").iter_rows()]
    against_field = list(zip(pairs["topic_text"], pairs["query_text"], strict=True))
    against_title = list(zip(of_title, pairs["query_text"], strict=True))
    every = sorted({text for pair in (*against_field, *against_title) for text in pair})
    words = WordVectors(encoder, (word for text in every for word in content_words(text)))
    similarity = dict(zip(against_field, pairs["similarity"], strict=True))
    similarity.update(_sentence_similarities([pair for pair in set(against_title) if pair not in similarity], encoder))
    return pairs.with_columns(
        pl.Series(name, propose_types(wanted, words, [similarity[pair] for pair in wanted]), dtype=pl.String)
        for name, wanted in (("type", against_field), ("title_type", against_title))
    )


def _sentence_similarities(pairs: Sequence[tuple[str, str]], encoder: Encoder) -> dict[tuple[str, str], float]:
    texts = sorted({text for pair in pairs for text in pair})
    row = {text: place for place, text in enumerate(texts)}
    vectors = encoder.encode(texts)
    left, right = ([row[pair[side]] for pair in pairs] for side in (0, 1))
    cosines = np.einsum("ij,ij->i", vectors[left], vectors[right])
    return dict(zip(pairs, np.round(cosines.astype(np.float64), 6).tolist(), strict=True))
