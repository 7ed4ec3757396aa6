"""Whether judgments of many topics, or runs that find little, are taken for judgments of other topics.

    python studies/collection_fit_large.py [--draws 5]

The judgments of MS MARCO's dev subset (6,980 topics), or of a sample of its topics, with two generated runs: each holds
a relevant document with a given probability, at any of its ranks, and relevant documents of other topics in a tenth of
the others. Prints how often each plant ends with each word, and with 'all' where all judgments are said to be
concerned.
"""

from __future__ import annotations

import argparse
from collections import Counter

import numpy as np
import polars as pl

from common import SHARED, require_shared, table
from truerank.audits.collection.fit import judgment_fit, natural
from truerank.audits.collection.judgments import read_judgments, usable


def run(qrels: pl.DataFrame, depth: int, share: float, rng: np.random.Generator) -> pl.DataFrame:
    """The first `depth` results of each judged topic."""
    own = dict(qrels.group_by("topic_id", maintain_order=True).agg("doc_id").iter_rows())
    docs = qrels["doc_id"].to_numpy()
    rows = []
    for topic, relevant in own.items():
        ids = [f"other-{number}" for number in rng.integers(0, 8_000_000, depth)]
        for place in np.flatnonzero(rng.random(depth) < 0.1):
            ids[place] = docs[rng.integers(len(docs))]
        for doc in relevant:
            if rng.random() < share:
                ids[rng.integers(depth)] = doc
        rows += [(topic, doc, rank) for rank, doc in enumerate(dict.fromkeys(ids), start=1)]
    return pl.DataFrame(rows, schema=["topic_id", "doc_id", "rank"], orient="row")


#: The share of the topics whose judgments are dealt out among them.
SHUFFLED = {"a tenth shuffled": 0.1, "half shuffled": 0.5, "nine tenths shuffled": 0.9, "shuffled": 1.0}


def moved(qrels: pl.DataFrame, how: str, rng: np.random.Generator) -> pl.DataFrame:
    """Judgments whose topics have other ids."""
    order = sorted(qrels["topic_id"].unique().to_list(), key=natural)
    names = dict(zip(order, order, strict=True))
    if how in SHUFFLED:
        some = rng.permutation(order)[: round(SHUFFLED[how] * len(order))].tolist()
        names |= dict(zip(some, rng.permutation(some).tolist(), strict=True))
    elif how != "nothing":
        start, end = (0, len(order)) if how == "moved by one" else (len(order) // 2, len(order) * 6 // 10)
        for at in range(start, end):
            names[order[at]] = order[(at + 1) % len(order)]
    ids = pl.col("topic_id").replace(names)
    return qrels.with_columns(ids).unique(["topic_id", "doc_id"], keep="first", maintain_order=True)


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=5)
    given = parser.parse_args()
    require_shared()
    every = usable(read_judgments(str(SHARED / "qrels" / "msmarco-passage.dev-subset.qrels.gz")))
    ids = every["topic_id"].unique().sort().to_list()
    rows = []
    for topics in (50, 200, 1_500, 6_980):
        for depth, share in ((10, 0.15), (10, 0.4), (100, 0.4), (100, 0.8)):
            found = {how: Counter[str]() for how in ("nothing", "moved by one", "a tenth moved by one", *SHUFFLED)}
            for draw in range(given.draws):
                rng = np.random.default_rng(draw)
                some = rng.permutation(ids)[:topics].tolist()
                qrels = every.filter(pl.col("topic_id").is_in(some))
                runs = {name: run(qrels, depth, share, rng) for name in ("one", "other")}
                for how, words in found.items():
                    fit = judgment_fit(moved(qrels, how, rng), runs, seed=draw, enough=("one", "other"))
                    concerned = " all" if fit.word not in ("fits", "not asked") and fit.of_all(topics) else ""
                    words[f"{fit.word}{concerned}"] += 1
            cells = (", ".join(f"{word} {count}" for word, count in words.most_common()) for words in found.values())
            rows.append((f"{topics:,}", str(depth), f"{share:.2f}", *cells))
            print(*rows[-1], sep=" | ", flush=True)
    print(table(("topics", "results", "found", *(found)), rows))


if __name__ == "__main__":
    main()
