"""The prefilter's cuts and the interval of its recall, against exhaustive full-precision pairs.

    python studies/prefilter.py [--threshold 0.91]
    python studies/prefilter.py --coverage [--lines 12000] [--cache DIR]

The first tunes the cuts on some logs and topics and tests them on others. Title-like texts are the titles of TREC and
BEIR test sets. No description of these sets has a query above the threshold, so that questions of eight words and more
from one log stand for descriptions against the other logs.

The second filters each log for each set of texts with the default cuts, estimates the recall as an audit does, for
questions and keyword queries apart, at thresholds low enough that there are pairs, and counts how often the 95%
interval holds the true recall, apart for the logs and topics that the cuts were tuned on and for the others.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import stats

from common import LOGS, SHARED, log_path, require_shared, table
from truerank.sources import open_queries, read_topics
from truerank.text.normalising import normalise
from truerank.text.wording import WordingProbe, is_question
from truerank.vectors.encoders import CachedEncoder, Encoder, Vectors, open_encoder
from truerank.vectors.prefilter import (
    DEFAULT_CUTS,
    FilterPlan,
    TrigramScorer,
    estimate_recall,
    filter_blocks,
)
from truerank.work.jobs import Job

TITLES = (
    "robust04.trec.txt",
    "core18.trec.txt",
    "web09.xml",
    "dl20.tsv",
    "beir-nfcorpus.tsv.gz",
    "beir-trec-covid.tsv.gz",
)
QUESTION_LOGS = ("nq-dev", "trivia-dev", "msmarco-dev-test")
TUNING_LOGS = ("million-query", "nq-dev")
LONGEST = 2000
LONG = 8
#: Thresholds of the coverage table; a log holds enough pairs above them.
LOW_THRESHOLDS: Final = (0.80, 0.825, 0.85)
#: Fewer pairs than this say nothing of a share.
FEWEST_PAIRS: Final = 5


def choose_cut(true_scores: NDArray[np.floating], recall: float = 0.995, slack: float = 0.03) -> float:
    """The cut that keeps a share of the true pairs, with a slack for those that were not seen.

    Args:
        true_scores: filter scores of the true pairs of a tuning set, shape (n,).
    """
    return float(np.floor((np.quantile(true_scores, 1 - recall, method="lower") - slack) * 100) / 100)


class Texts(NamedTuple):
    """Texts with their unit vectors."""

    name: str
    texts: list[str]
    vectors: Vectors


class Compared(NamedTuple):
    """One log against one set of texts: filter scores of the texts of true pairs, and of all texts."""

    true_scores: Vectors
    scores: Vectors
    pairs: int


def compared(topics: Texts, log: Texts, threshold: float) -> Compared:
    """Scores every text of the log; texts that have exactly a topic text's words score 1."""
    similarity = topics.vectors @ log.vectors.T
    hits = np.flatnonzero((similarity > threshold).any(axis=0))
    scorer = TrigramScorer(topics.texts, ["text"] * len(topics.texts), log.texts[: 1 << 16])
    parts = [scorer.scores(log.texts[start : start + 16384])[:, 0] for start in range(0, len(log.texts), 16384)]
    scores = np.concatenate(parts)
    scores[[place for place, *_ in WordingProbe(topics.texts)(log.texts)]] = 1
    return Compared(scores[hits], scores, int((similarity > threshold).sum()))


def half(topics: Texts, odd: bool) -> Texts:
    """Every other topic."""
    return Texts(topics.name, topics.texts[odd::2], topics.vectors[odd::2])


def cases(topics: list[Texts], logs: list[Texts], tuning: bool, threshold: float) -> Iterator[Compared]:
    """Tuning and testing share neither a log nor a topic; dl20's queries come from the MS MARCO log."""
    for log in logs:
        if (log.name in TUNING_LOGS) == tuning:
            for some in topics:
                if some.name != log.name and not (some.name == "dl20" and log.name == "msmarco-dev-test"):
                    yield compared(half(some, odd=not tuning), log, threshold)


def interval(found: int, of: int) -> str:
    """Clopper-Pearson, 95%."""
    low, high = stats.binomtest(found, of).proportion_ci()
    return f"{low:.3f} to {high:.3f}"


class Check(NamedTuple):
    """One interval beside the truth."""

    held_out: bool
    field: str
    threshold: float
    form: str
    recall: float
    low: float
    high: float
    truth: float


def checks(topics: Texts, field: str, log: Texts, *, held_out: bool) -> Iterator[Check]:
    """The intervals of one audit of a log, by threshold and form of the training text."""

    def rows() -> Iterator[tuple[int, str, str, str]]:
        return ((place, str(place), text, text) for place, text in enumerate(log.texts))

    plan = FilterPlan(
        tuple(topics.texts), (field,) * len(topics.texts), {field: DEFAULT_CUTS[field]}, WordingProbe(topics.texts)
    )
    similarity = topics.vectors @ log.vectors.T
    topic, place = np.nonzero(similarity > min(LOW_THRESHOLDS))
    every = pl.DataFrame(
        {
            "topic_no": topic,
            "position": place,
            "text": [log.texts[at] for at in place],
            "similarity": similarity[topic, place],
            "question": [is_question(log.texts[at]) for at in place],
        },
        schema_overrides={"position": pl.Int64},
    )
    with tempfile.TemporaryDirectory() as folder:
        filtered = filter_blocks(rows, plan, Job(Path(folder)))
        encoded = pl.Series([row[0] for row in filtered.chosen()], dtype=pl.Int64)
        sample = filtered.sample["position"]
        for threshold in LOW_THRESHOLDS:
            true = every.filter(pl.col("similarity") > threshold)
            found = true.filter(pl.col("position").is_in(encoded.implode()))
            sampled = found.filter(pl.col("position").is_in(sample.implode()))
            for form, question in (("all", None), ("keywords", False), ("questions", True)):
                told = estimate_recall([(filtered.with_sample(sampled), found)], question=question)
                own = pl.lit(True) if question is None else pl.col("question") == question
                pairs = true.filter(own).height
                if told.true_pairs and pairs >= FEWEST_PAIRS:
                    passed = found.filter(own).height - sampled.filter(own).height
                    yield Check(
                        held_out, field, threshold, form, told.recall, told.low, told.high, round(passed / pairs, 6)
                    )


def coverage(topics: Sequence[tuple[str, Texts]], logs: Sequence[Texts]) -> None:
    """Prints how often the interval holds the truth."""
    found: list[Check] = []
    for log in logs:
        for field, some in topics:
            if some.name != log.name and not (some.name == "dl20" and log.name == "msmarco-dev-test"):
                for odd in (False, True):
                    held_out = not odd and log.name not in TUNING_LOGS
                    found += checks(half(some, odd=odd), field, log, held_out=held_out)
    if not found:
        print("too few pairs above these thresholds")
        return
    frame = pl.DataFrame(found, schema=Check._fields, orient="row")
    frame = frame.with_columns(
        cuts=pl.when("held_out").then(pl.lit("held out")).otherwise(pl.lit("tuned")),
        below=pl.col("truth") < pl.col("low"),
        above=pl.col("truth") > pl.col("high"),
    )
    rows = []
    for names, part in frame.group_by("cuts", "field", "threshold", "form", maintain_order=True):
        rows.append((*names, *_coverage_cells(part)))
    for names, part in frame.group_by("cuts", "form", maintain_order=True):
        rows.append((names[0], "all", "all", names[1], *_coverage_cells(part)))
    header = (
        "logs and topics", "field", "threshold", "training text", "intervals", "hold the truth", "truth below",
        "truth above", "mean truth", "mean estimate", "mean width",
    )  # fmt: skip
    print(table(header, rows))


def _coverage_cells(part: pl.DataFrame) -> tuple[str, ...]:
    below, above = int(part["below"].sum()), int(part["above"].sum())
    means = (part["truth"].mean(), part["recall"].mean(), (part["high"] - part["low"]).mean())
    return (
        str(part.height),
        f"{1 - (below + above) / part.height:.1%}",
        str(below),
        str(above),
        *(f"{mean:.3f}" for mean in means),
    )


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threshold", type=float, default=0.91)
    parser.add_argument("--coverage", action="store_true", help="the interval of the recall instead of the cuts")
    parser.add_argument("--lines", type=int, help="only the first lines of each log")
    parser.add_argument("--cache", type=Path, help="keeps the vectors here for the next time")
    given = parser.parse_args()
    threshold = given.threshold
    require_shared()
    encoder: Encoder = open_encoder("packaged")
    if given.cache is not None:
        encoder = CachedEncoder(encoder, given.cache)

    def encoded(name: str, texts: list[str]) -> Texts:
        distinct = [text for text in dict.fromkeys(map(normalise, texts)) if text]
        return Texts(name, distinct, encoder.encode(distinct))

    logs = [
        encoded(name, [query.text for query in islice(open_queries(str(log_path(name))), given.lines)]) for name in LOGS
    ]
    sets = [read_topics(str(SHARED / "topics" / name)) for name in TITLES]
    titles = [encoded(found.name, [topic.title for topic in found.topics]) for found in sets]
    long = []
    for log in logs:
        if log.name in QUESTION_LOGS:
            places = [place for place, text in enumerate(log.texts) if len(text.split()) >= LONG][:LONGEST]
            long.append(Texts(log.name, [log.texts[place] for place in places], log.vectors[places]))
    if given.coverage:
        coverage([*(("title", some) for some in titles), *(("description", some) for some in long)], logs)
        return
    rows = []
    for field, topics in (("title", titles), ("description", long)):
        tuned = np.concatenate([case.true_scores for case in cases(topics, logs, True, threshold)])
        tested = list(cases(topics, logs, False, threshold))
        true = np.concatenate([case.true_scores for case in tested])
        every = np.concatenate([case.scores for case in tested])
        for name, cut in (("tuned", choose_cut(tuned)), ("default", DEFAULT_CUTS[field])):
            kept = int((true >= cut).sum())
            rows.append(
                (
                    field, name, f"{cut:.2f}", len(tuned), len(true), sum(case.pairs for case in tested),
                    f"{kept / len(true):.4f}", interval(kept, len(true)), f"{(every >= cut).mean():.2%}",
                )
            )  # fmt: skip
    header = (
        "field", "cut", "score", "tuned on", "true texts tested", "true pairs", "recall", "95% interval", "encoded",
    )  # fmt: skip
    print(table(header, rows))


if __name__ == "__main__":
    main()
