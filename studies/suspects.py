"""How many of the judgments that `collection audit` proposes as suspect are wrong, where it is known which are?

    python studies/suspects.py [--collection vaswani] [--seeds 20] [--share 0.05] [--depth 100] [--texts]
        [--keep NAME …]

Seventeen runs of five groups (`vaswani_runs.py`) rank the collection. A share of the relevant rows is made wrong:

| plant | what becomes of the rows |
| --- | --- |
| pooled | each is replaced by a random document of its topic's pool, the first `--depth` results of all runs |
| strangers | each is replaced by a random document of the pools of all topics |
| missed | each is deleted |
| none | nothing: the data as they are |

and the audit proposes judgments. `right` is the share of proposals that were planted, over all seeds, with Wilson's 95%
interval; `first 50` the same of the first 50 proposals of each seed, or of all where fewer are proposed. What else is
wrong in the data counts as right. With `--texts` the audit also has documents and topics. CACM is what features of
ranks and prior were chosen on, and where a share of strangers of one half, as nothing says which kind of mistake is
likelier, was compared with one of a tenth; that words are compared was decided with both in sight.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import polars as pl
from sklearn.feature_extraction.text import CountVectorizer

from collection_effect import true_version
from common import SHARED, require_shared, table
from hand_collection import read_texts as words_of
from truerank.audits.collection.suspects import Proposals, Suspects, suspects
from truerank.measures.magnitudes import proportion
from truerank.sources import read_qrels_frame
from vaswani_runs import Texts, all_runs, read_texts

KEYS = ["topic_id", "doc_id"]
PLANTS = ("none", "pooled", "strangers", "missed")
DEPTH = 1000


class Data(NamedTuple):
    """Judgments and runs."""

    qrels: pl.DataFrame
    runs: dict[str, pl.DataFrame]
    docs: dict[str, str]
    topics: dict[str, str]


def data(name: str, kept: Sequence[str]) -> Data:
    """A collection with its runs; with `kept`, those runs only."""
    if name == "cacm":
        truth, questions = true_version()
        counts = CountVectorizer(stop_words="english")
        docs = counts.fit_transform(truth.docs.values())
        texts = Texts(docs.tocsr(), [*truth.docs], counts.transform(questions.values()).tocsr(), [*questions])
        qrels, docs_of = pl.DataFrame(truth.qrels, schema=[*KEYS, "relevance"], orient="row"), dict(truth.docs)
    else:
        texts = read_texts(SHARED / "collections/vaswani")
        qrels = read_qrels_frame(str(SHARED / "collections/vaswani/qrels.txt"))
        questions, docs_of, _ = words_of("vaswani")
    runs = {}
    for run in all_runs(texts):
        if kept and run.name not in kept:
            continue
        scores = run.scores()
        best = np.argsort(-scores, axis=1, kind="stable")[:, :DEPTH]
        topic, place = np.nonzero(np.isfinite(np.take_along_axis(scores, best, axis=1)))
        runs[run.name] = pl.DataFrame({
            "topic_id": np.array(texts.topic_ids)[topic], "doc_id": np.array(texts.doc_ids)[best[topic, place]],
            "rank": place + 1,
        })  # fmt: skip
    return Data(qrels.with_columns(pl.col("relevance").cast(pl.Int32)), runs, docs_of, dict(questions))


def planted(given: Data, plant: str, share: float, depth: int, seed: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Judgments with a plant, and the pairs that are wrong in them: not relevant, or of "missed" relevant."""
    draw, qrels = np.random.default_rng([seed, PLANTS.index(plant)]), given.qrels
    rows = draw.choice(len(qrels), round(share * len(qrels)) if plant != "none" else 0, replace=False)
    gone, stay = qrels[rows], qrels[np.setdiff1d(np.arange(len(qrels)), rows)]
    if plant in ("none", "missed"):
        return stay, gone.select(KEYS)
    pool = pl.concat([run.filter(pl.col("rank") <= depth).select(KEYS) for run in given.runs.values()]).unique()
    every = pool["doc_id"].unique().sort().to_list()
    used, wrong = set(qrels.select(KEYS).iter_rows()), []
    for topic in gone["topic_id"]:
        own = every if plant == "strangers" else pool.filter(topic_id=topic)["doc_id"].sort().to_list()
        free = [doc for doc in own if (topic, doc) not in used]
        wrong.append((topic, free[int(draw.integers(len(free)))]))
        used.add(wrong[-1])
    pairs = pl.DataFrame(wrong, schema=KEYS, orient="row")
    return pl.concat([stay, pairs.with_columns(relevance=pl.lit(1, pl.Int32)).select(qrels.columns)]), pairs


def hits(found: Proposals | None, wrong: pl.DataFrame) -> list[bool]:
    """Which proposals, in their order, were planted."""
    if found is None:
        return []
    known = set(wrong.iter_rows())
    return [pair in known for pair in found.rows.select(KEYS).iter_rows()]


def _share(values: Sequence[bool]) -> str:
    if not values:
        return "–"
    found = proportion(sum(values), len(values))
    return f"{found.share:.2f} [{found.low:.2f}, {found.high:.2f}]"


def proposed(given: Data, qrels: pl.DataFrame, share: float, texts: bool) -> Suspects:
    """What the audit proposes, by the runs alone or by texts, too."""
    if not texts:
        return suspects(given.runs, qrels, share=share)
    return suspects(
        given.runs, qrels, share=share, topics=given.topics, texts=lambda ids: {one: given.docs[one] for one in ids}
    )


def rows(given: Data, seeds: Sequence[int], share: float, depth: int, texts: bool) -> list[list[object]]:
    """A row for each plant and kind of proposal."""
    found: list[list[object]] = []
    for plant in PLANTS:
        results: list[tuple[Suspects, pl.DataFrame]] = []
        for seed in seeds if plant != "none" else seeds[:1]:
            qrels, wrong = planted(given, plant, share, depth, seed)
            results.append((proposed(given, qrels, share, texts), wrong))
        for kind in ("relevant", "others"):
            proposals = [getattr(one, kind) for one, _ in results]
            lists = [hits(one, wrong) for one, (_, wrong) in zip(proposals, results, strict=True)]
            counts = [len(one) for one in lists]
            expected = [one.rows["expected"][-1] for one in proposals if one is not None and len(one.rows)]
            shares = f"{np.mean(counts):.0f} ({min(counts)} to {max(counts)})"
            whole = [hit for one in lists for hit in one]
            first = [hit for one in lists for hit in one[:50]]
            recall = sum(whole) / max(1, sum(len(wrong) for _, wrong in results))
            found.append([
                plant, kind, shares, f"{np.mean(counts) / len(given.qrels):.1%}",
                f"{np.mean(expected):.2f}" if expected else "–", _share(whole), _share(first), f"{recall:.0%}",
            ])  # fmt: skip
    return found


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--collection", choices=("vaswani", "cacm"), default="vaswani")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first-seed", type=int, default=100)
    parser.add_argument("--share", type=float, default=0.05)
    parser.add_argument("--depth", type=int, default=100)
    parser.add_argument("--texts", action="store_true")
    parser.add_argument("--keep", nargs="*", default=())
    options = parser.parse_args()
    require_shared()
    given = data(options.collection, options.keep)
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    plain = proposed(given, given.qrels, options.share, options.texts)
    sys.stdout.write(
        f"{options.collection}: {len(given.qrels):,} judgments, {len(given.runs)} runs, {len(plain.families)} families,"
        f" mean RBO {plain.rbo or 0:.2f}. {plain.refused}\n\n"
    )
    heads = ["plant", "proposed are", "proposals", "of judgments", "expected", "right", "first 50", "of plants"]
    if not plain.refused:
        sys.stdout.write(table(heads, rows(given, seeds, options.share, options.depth, options.texts)) + "\n")


if __name__ == "__main__":
    main()
