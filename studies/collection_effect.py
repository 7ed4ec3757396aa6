"""What planted duplicates do to eight rankers on CACM, and what closing the judgments brings back.

    python studies/collection_effect.py [--copies 600] [--draws 1000] [--seed 1] [--out FOLDER]

Truth: CACM as it is (ids of judgments corrected), searched by eight rankers. Planted: a random part of the documents
gets one to three copies, reformatted or letter for letter; of the copies of judged documents a third is judged as the
original, a third as not relevant, a third not at all. The same rankers search that collection. Before: scored by its
judgments. After: by the judgments that `collection clean` closes, with `evaluate --equivalent`. Prints the
scores, their
distance to the truth, τ with the true order, and whether the change is more than random changes of the same size make.
The rankers are those of `vaswani_runs.py`.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
from sklearn.feature_extraction.text import CountVectorizer

from common import SHARED, require_shared, table
from truerank import collection, evaluate
from truerank.measures import kendall
from truerank.sources import open_documents, read_topics
from vaswani_runs import Texts, all_runs

RANKERS = ("bm25-0.9-0.4", "bm25-2.0-0.9", "ql-50", "ql-2000", "lsa-50", "lsa-300", "mix-150", "prf-10-20")
MEASURES = "nDCG@10 R@50"
DEPTH = 200


class Version(NamedTuple):
    """A collection with its judgments."""

    docs: dict[str, str]
    qrels: list[tuple[str, str, int]]


def true_version() -> tuple[Version, dict[str, str]]:
    """CACM with the ids of its documents in the judgments, and the topics."""
    folder = SHARED / "collections/cacm"
    docs = {one.doc_id: one.text for one in open_documents(str(folder / "cacm.tar.gz"))}
    topics = {one.topic_id: one.title for one in read_topics(str(folder / "topics.txt")).topics}
    audited = collection.audit(docs=str(folder / "cacm.tar.gz"), qrels=str(folder / "qrels.txt"), measures="P@1")
    cleaned = collection.clean(str(folder / "qrels.txt"), audited)
    return Version(docs, [row for row in cleaned.qrels.iter_rows() if row[1] in docs]), topics


def planted(truth: Version, copies: int, rng: random.Random) -> Version:
    """The collection with copies, and judgments of some of them."""
    docs, qrels = dict(truth.docs), list(truth.qrels)
    about: dict[str, list[tuple[str, int]]] = {}
    for topic, doc, grade in truth.qrels:
        about.setdefault(doc, []).append((topic, grade))
    # Half of the copied documents are judged ones: those are what evaluation sees.
    judged = rng.sample(sorted(about), min(len(about), copies // 4))
    others = rng.sample(sorted(set(truth.docs) - set(about)), copies // 4)
    ways = (lambda text: text, str.upper, lambda text: text.replace(" ", "\n"), lambda text: f" {text} ")
    made = 0
    for doc in [*judged, *others]:
        for number in range(rng.randint(1, 3)):
            copy = f"{doc}-copy{number}"
            docs[copy] = ways[made % len(ways)](truth.docs[doc])
            made += 1
            fate = rng.randrange(3)
            if fate < 2:
                qrels += [(topic, copy, grade if fate else 0) for topic, grade in about.get(doc, ())]
    return Version(docs, qrels)


def searched(docs: dict[str, str], topics: dict[str, str]) -> dict[str, pl.DataFrame]:
    """The runs of the rankers."""
    vectorizer = CountVectorizer(stop_words="english")
    matrix = vectorizer.fit_transform(docs.values()).tocsr()
    texts = Texts(matrix, list(docs), vectorizer.transform(topics.values()).tocsr(), list(topics))
    runs = {}
    for run in all_runs(texts):
        if run.name in RANKERS:
            scores = run.scores()
            best = np.argsort(-scores, axis=1, kind="stable")[:, :DEPTH]
            rows = [
                (topic, texts.doc_ids[doc], float(scores[row, doc]), rank)
                for row, topic in enumerate(texts.topic_ids)
                for rank, doc in enumerate(best[row], start=1)
            ]
            runs[run.name] = pl.DataFrame(rows, schema=["topic_id", "doc_id", "score", "rank"], orient="row")
    return runs


def frame(qrels: list[tuple[str, str, int]]) -> pl.DataFrame:
    """Judgments as a frame."""
    return pl.DataFrame(qrels, schema={"topic_id": pl.String, "doc_id": pl.String, "relevance": pl.Int32}, orient="row")


def main() -> None:
    """Plants, searches, closes and compares."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--copies", type=int, default=600)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    require_shared()
    truth, topics = true_version()
    faulty = planted(truth, given.copies, random.Random(given.seed))
    print(f"{len(truth.docs):,d} documents, {len(faulty.docs) - len(truth.docs):,d} copies planted", flush=True)
    runs = {name: searched(one.docs, topics) for name, one in (("truth", truth), ("planted", faulty))}
    with tempfile.TemporaryDirectory() as temporary:
        docs = Path(temporary) / "docs.jsonl"
        docs.write_text(
            "".join(json.dumps({"_id": one, "text": text}) + "\n" for one, text in faulty.docs.items()),
            encoding="utf-8",
        )
        audited = collection.audit(
            docs=str(docs), qrels=frame(faulty.qrels), run=runs["planted"], measures=MEASURES, resamples=given.draws,
            out=given.out,
        )  # fmt: skip
    cleaned = collection.clean(frame(faulty.qrels), audited)
    scores = {
        "truth": evaluate(frame(truth.qrels), runs["truth"], MEASURES),
        "before": evaluate(frame(faulty.qrels), runs["planted"], MEASURES),
        "after": evaluate(cleaned.qrels, runs["planted"], MEASURES, equivalent=cleaned.duplicates),
    }
    for place, measure in enumerate(scores["truth"].measures):
        means = {name: one.mean[:, place] for name, one in scores.items()}
        order = np.argsort(-means["truth"], kind="stable")
        rows = [
            (scores["truth"].runs[at], *(f"{means[name][at]:.4f}" for name in ("truth", "before", "after")))
            for at in order
        ]
        print(f"\n{measure}\n")
        print(table(("run", "truth", "before", "after"), rows))
        for name in ("before", "after"):
            away = np.abs(means[name] - means["truth"])
            tau = kendall(means["truth"], means[name]).tau
            print(f"\n{name}: mean distance to the truth {away.mean():.4f}, largest {away.max():.4f}, τ = {tau:.3f}")
    for one in audited.facts["effect"]["placebos"]:
        print(f"\n{one['measure']}: {one['verdict']}. {one['what']}. {one['reason']}")


if __name__ == "__main__":
    main()
