"""The prefilter's cuts: tuned on some logs and topics, tested on others, against exhaustive full-precision pairs.

    python benchmarks/prefilter.py [--threshold 0.91]

Title-like texts are the titles of TREC and BEIR test sets. No description of these sets has a query above the
threshold, so that questions of eight words and more from one log stand for descriptions against the other logs.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy import stats

from shared_data import LOGS, SHARED, log_path, require_shared, table
from truerank.audits.leakage.wording import WordingProbe
from truerank.sources import open_queries, read_topics
from truerank.text.normalising import normalise
from truerank.vectors.encoders import Vectors, open_encoder
from truerank.vectors.prefilter import DEFAULT_CUTS, TrigramScorer, choose_cut

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


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threshold", type=float, default=0.91)
    threshold = parser.parse_args().threshold
    require_shared()
    encoder = open_encoder("packaged")

    def encoded(name: str, texts: list[str]) -> Texts:
        distinct = [text for text in dict.fromkeys(map(normalise, texts)) if text]
        return Texts(name, distinct, encoder.encode(distinct))

    logs = [encoded(name, [query.text for query in open_queries(str(log_path(name)))]) for name in LOGS]
    sets = [read_topics(str(SHARED / "topics" / name)) for name in TITLES]
    titles = [encoded(found.name, [topic.title for topic in found.topics]) for found in sets]
    long = []
    for log in logs:
        if log.name in QUESTION_LOGS:
            places = [place for place, text in enumerate(log.texts) if len(text.split()) >= LONG][:LONGEST]
            long.append(Texts(log.name, [log.texts[place] for place in places], log.vectors[places]))
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
