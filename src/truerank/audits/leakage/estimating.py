"""Estimate: how many topics and queries leak, how many more the encoder may have missed, and the verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import polars as pl
import scipy

from truerank.audits.leakage.options import FIELDS
from truerank.audits.leakage.results import (
    FieldCount,
    MissedTopics,
    PrefilterRecall,
    SourceCount,
    TestSummary,
    Verdict,
)
from truerank.sources import TopicSet
from truerank.text.normalising import normalise

__all__ = ["Evidence", "count_fields", "judged_evidence", "lexical_evidence", "missed_topics", "summarise_test"]

_CONFIDENCE: Final = 0.95
#: Judged pairs at or below the threshold that it takes to say what lies there.
_FEWEST_BELOW: Final = 10


def count_fields(
    above: pl.DataFrame, sources: Sequence[str], fields: Sequence[str]
) -> dict[str, dict[str, FieldCount]]:
    """Topics with a candidate and distinct candidate queries, by field and cumulative source.

    Args:
        above: the candidates of one test set above the threshold.
        sources: the sources in the order given; the columns are the first, the first two, ….
        fields: the fields that were compared.

    Returns:
        By field ("union" last, which counts a topic or a query once) and cumulative source label. Table 1 of the
        leakage paper.
    """
    texts = above["query_text"].unique()
    normal = pl.DataFrame({"query_text": texts, "query": [normalise(text) for text in texts]})
    pairs = above.join(normal, on="query_text", how="left").select("field", "topic_id", "source", "query")
    names = [name for name in FIELDS if name in fields]
    return {
        name: {
            label: _count(part.filter(pl.col("source").is_in(sources[: place + 1])))
            for place, label in enumerate(cumulative_labels(sources))
        }
        for name, part in [*((name, pairs.filter(field=name)) for name in names), ("union", pairs)]
    }


def cumulative_labels(sources: Sequence[str]) -> list[str]:
    """Column labels of cumulative sources: the first by its name, then "+" and the name that is added."""
    return [name if place == 0 else f"+{name}" for place, name in enumerate(sources)]


def _count(pairs: pl.DataFrame) -> FieldCount:
    return FieldCount(topics=pairs["topic_id"].n_unique(), queries=pairs["query"].n_unique())


class Evidence(NamedTuple):
    """Leaks that are known without the encoder, and how many of them have nothing above the threshold."""

    known: int
    missed: int


def lexical_evidence(probed: pl.DataFrame, leaked: Mapping[str, set[str]]) -> Evidence:
    """What the encoder made of queries that have exactly a topic text's content words.

    Args:
        probed: pairs whose query has the content words of the topic text, in any order and inflection.
        leaked: for each test set, the topics with a pair above the threshold.

    Returns:
        Over all test sets: topics with such a query, and those of them that have no pair above the threshold.
    """
    topics = probed.select("test", "topic_id").unique()
    missed = sum(topic not in leaked[test] for test, topic in topics.iter_rows())
    return Evidence(len(topics), missed)


def judged_evidence(judged: pl.DataFrame, leaked: Mapping[str, set[str]], threshold: float) -> Evidence | None:
    """What the encoder made of pairs that people call leaks, where they judged enough at or below the threshold.

    Args:
        judged: pairs with the column `judged`.
        leaked: for each test set, the topics with a pair above the threshold.
        threshold: the threshold.

    Returns:
        Over all test sets: topics with a judged leak, and those of them that have no pair above the threshold; None
        with fewer than ten judged pairs at or below the threshold, because then the labels say nothing about them.
    """
    below = pl.col("judged").is_not_null() & (pl.col("similarity") <= pl.lit(threshold, pl.Float32))
    if judged.filter(below).height < _FEWEST_BELOW:
        return None
    topics = judged.filter("judged").select("test", "topic_id").unique()
    missed = sum(topic not in leaked[test] for test, topic in topics.iter_rows())
    return Evidence(len(topics), missed)


def missed_topics(found: int, topics: int, evidence: Evidence, method: str) -> MissedTopics | None:
    """How many leaked topics may have been missed, given how often known leaks were.

    The rate of missed leaks has the Clopper–Pearson bound of the evidence; the number of leaked topics is the largest
    that would still, with that rate, show as few as were found (both at half of the error probability).

    Args:
        found: topics with a pair above the threshold.
        topics: topics in the test set.
        evidence: known leaks, and those of them that were missed.
        method: where the evidence comes from, in words.

    Returns:
        The estimate, or None if there is no evidence at all.
    """
    known, missed = evidence
    if known == 0:
        return None
    half = (1 - _CONFIDENCE) / 2
    rate = missed / known
    upper_rate = 1.0 if missed == known else float(scipy.stats.beta.ppf(1 - half, missed + 1, known - missed))
    estimate = float(topics - found) if rate == 1 else min(topics - found, found * rate / (1 - rate))
    upper = topics - found
    for more in range(topics - found):
        if scipy.stats.binom.cdf(found, found + more + 1, 1 - upper_rate) < half:
            upper = more
            break
    return MissedTopics(
        estimate=round(estimate, 1), upper=float(upper), confidence=_CONFIDENCE, evidence=known, method=method
    )


def summarise_test(
    test: TopicSet,
    above: pl.DataFrame,
    counts: Mapping[str, SourceCount],
    *,
    missed: MissedTopics | None,
    prefilter: PrefilterRecall | None,
    confirmed: tuple[set[str], set[str]] | None = None,
    fields: Sequence[str],
    silent: int = 0,
) -> TestSummary:
    """The verdict on one test set, with its reason.

    Args:
        test: the test set.
        above: its candidates above the threshold.
        counts: what was read of each source.
        missed: the bound on missed topics.
        prefilter: the prefilter's recall, if it was used.
        confirmed: where labels were given: topics with a confirmed leak, and topics with an unjudged candidate.
        fields: the fields that were compared.
        silent: topics without any text to compare.
    """
    leaked = set(above["topic_id"].unique())
    if confirmed is not None:
        leaked = confirmed[0] | (leaked & confirmed[1])
    verdict, why = _verdict(
        len(test.topics),
        len(leaked),
        counts,
        missed=missed,
        prefilter=prefilter,
        confirmed=confirmed,
        silent=silent,
        noun=test.noun,
    )
    return TestSummary(
        topics=len(test.topics),
        noun=test.noun,
        verdict=verdict,
        why=why,
        leaked_topics=[topic.topic_id for topic in test.topics if topic.topic_id in leaked],
        missed=missed,
        fields=count_fields(above, list(counts), fields),
    )


def _verdict(
    topics: int,
    leaked: int,
    counts: Mapping[str, SourceCount],
    *,
    missed: MissedTopics | None,
    prefilter: PrefilterRecall | None,
    confirmed: tuple[set[str], set[str]] | None,
    silent: int,
    noun: str,
) -> tuple[Verdict, str]:
    if leaked:
        basis = "a training query above the threshold"
        if confirmed is not None:
            sure = len(confirmed[0])
            basis = f"a leak ({sure} confirmed by labels, {leaked - sure} with candidates that nobody has judged)"
        return "CONTAMINATED", f"{leaked} of {topics} {noun} ({leaked / topics:.0%}) have {basis}."
    gaps = [
        f"{count['skipped']} records of {name} could not be read" for name, count in counts.items() if count["skipped"]
    ]
    gaps += [f"{name} holds no query" for name, count in counts.items() if count["read"] == count["empty"]]
    if silent:
        gaps.append(f"{silent} {noun} have no text in the fields compared")
    if gaps:
        return "UNKNOWN", f"Nothing above the threshold, but {'; '.join(gaps)}."
    why = "Every training query was read and none is above the threshold."
    if confirmed is not None:
        why = "Every training query was read, and every candidate above the threshold was judged not to be a leak."
    if missed is not None:
        topics_ = "topic" if missed["upper"] == 1 else "topics"
        why += (
            f" The encoder may have missed up to {missed['upper']:.0f} leaked {topics_}"
            f" ({missed['confidence']:.0%} bound, from {missed['method']})."
        )
    else:
        why += " Nothing in this data tells what the encoder may have missed: no query has exactly a topic's words."
    if prefilter is not None:
        why += f" Texts that share few trigrams with a topic were not encoded (recall {prefilter['recall']:.3f})."
    return "CLEAN", why
