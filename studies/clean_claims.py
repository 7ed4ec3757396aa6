"""What `truerank check` says of claims in whose files nothing is wrong: true ones, and ones of two equal systems.

    python studies/clean_claims.py claims --collection vaswani --work FOLDER [--pairs N] [--with two|all]
        [--documents]
    python studies/clean_claims.py nulls --collection vaswani --work FOLDER [--count 1000]

claims: all pairs of eight runs (seven of `hand_collection.py`, and one of random documents) under five kinds of
judgments: those of relevant documents only; the same with one line of grade 0; with a tenth of the lines of grade 0;
with all of them (every other document among the first 100 of a run); and those that pools of three runs would hold
(their first 20). A difference is true if its 95% interval excludes 0 with all judgments. Printed by kind of judgments:
how many true differences are shown by the judgments given, and the words for these.

nulls: the same run twice, its scores jittered, each claim on a random half of the topics: the share of HOLDS.
"""

from __future__ import annotations

import argparse
import itertools
import random
from collections import Counter
from pathlib import Path

import polars as pl

import truerank
from common import require_shared, table
from hand_collection import Collection, collection
from truerank.measures import difference_interval, evaluate
from truerank.measures.magnitudes import exact_interval

KEYS = ["topic_id", "doc_id"]
MEASURE = "nDCG@10"
POOLED = ("bm25", "dense", "ax")
JUDGMENTS = ("relevant only", "one of grade 0", "a tenth of grade 0", "all of grade 0", "pools of three runs")


def runs_of(texts: Collection, seed: int) -> dict[str, pl.DataFrame]:
    """The clean runs, and one of random documents."""
    draw = random.Random(seed)
    every = dict(texts.rankings)
    names = sorted(texts.docs)
    every["random"] = {topic: [(doc, -n) for n, doc in enumerate(draw.sample(names, 200))] for topic in texts.topics}
    return {
        name: pl.DataFrame(
            [(t, doc, n, float(score)) for t, docs in run.items() for n, (doc, score) in enumerate(docs, 1)],
            schema={"topic_id": pl.String, "doc_id": pl.String, "rank": pl.Int64, "score": pl.Float64},
            orient="row",
        )
        for name, run in every.items()
    }


def pool(runs: dict[str, pl.DataFrame], names: tuple[str, ...], depth: int) -> pl.DataFrame:
    """The pool of the first documents of some runs."""
    first = [runs[name].filter(pl.col("rank") <= depth).select(KEYS) for name in names]
    return pl.concat(first).unique(maintain_order=True).sort(KEYS)


def judgments(texts: Collection, runs: dict[str, pl.DataFrame], seed: int) -> dict[str, pl.DataFrame]:
    """The five kinds of judgments."""
    rows = [(row.topic, row.doc, row.grade) for row in texts.qrels if row.grade > 0]
    schema = {"topic_id": pl.String, "doc_id": pl.String, "relevance": pl.Int32}
    relevant = pl.DataFrame(rows, schema=schema, orient="row").unique(KEYS, maintain_order=True)
    zeros = pool(runs, tuple(runs), 100).join(relevant, on=KEYS, how="anti").join(relevant, on="topic_id", how="semi")
    zeros = zeros.with_columns(pl.lit(0, pl.Int32).alias("relevance"))
    every = pl.concat([relevant, zeros])
    some = every.join(pool(runs, POOLED, 20), on=KEYS, how="semi")
    found = (
        relevant,
        pl.concat([relevant, zeros.sample(1, seed=seed)]),
        pl.concat([relevant, zeros.sample(fraction=0.1, seed=seed)]),
        every,
        some,
    )
    return dict(zip(JUDGMENTS, found, strict=True))


def claims(texts: Collection, pairs: int, given: str, seed: int, *, documents: bool) -> None:
    """All pairs under each kind of judgments."""
    runs = runs_of(texts, seed)
    kinds = judgments(texts, runs, seed)
    scores = evaluate(kinds["all of grade 0"], dict(runs), MEASURE)
    true = []
    for system, baseline in itertools.permutations(runs, 2):
        ends = difference_interval(scores.of(system, MEASURE), scores.of(baseline, MEASURE))
        if ends.low is not None and ends.low > 0:
            true.append((system, baseline))
    true = sorted(true) if len(true) <= pairs else sorted(random.Random(seed).sample(true, pairs))
    rows = []
    for kind, qrels in kinds.items():
        words: Counter[str] = Counter()
        shown = 0
        named: Counter[str] = Counter()
        for system, baseline in true:
            run = runs if given == "all" else {name: runs[name] for name in (system, baseline)}
            result = truerank.check(
                qrels=qrels, run=run, test=dict(texts.topics), docs=dict(texts.docs) if documents else None,
                system=system, baseline=baseline, comparisons=1, resamples=200,
            )  # fmt: skip
            is_shown = result.base is not None and result.base.effect == "stands"
            shown += is_shown
            words[result.conclusion.word] += is_shown
            words["DOES NOT HOLD, all"] += result.conclusion.word == "DOES NOT HOLD"
            named.update(answer.question for answer in result.answers if answer.objects and is_shown)
        low, high = exact_interval(words["HOLDS"], shown) if shown else (0.0, 1.0)
        others = ", ".join(f"{word} {count}" for word, count in sorted(words.items()) if word != "HOLDS" and count)
        objecting = ", ".join(f"{name} {count}" for name, count in named.most_common())
        rows.append(
            (kind, len(true), shown, words["HOLDS"], f"{words['HOLDS'] / max(1, shown):.2f}",
             f"{low:.2f} to {high:.2f}", others, objecting)
        )  # fmt: skip
    head = ("judgments", "true", "shown", "HOLDS", "share", "95%", "others", "objecting")
    print(table(head, rows))


def nulls(texts: Collection, count: int, seed: int) -> None:
    """The same run twice with jittered scores, on random halves of the topics."""
    draw = random.Random(seed)
    clean = {name: run for name, run in runs_of(texts, seed).items() if name != "random"}
    qrels = judgments(texts, {**clean, "random": clean["bm25"]}, seed)
    topics = sorted(texts.topics)
    words: Counter[str] = Counter()
    for _ in range(count):
        name, kind = draw.choice(sorted(clean)), draw.choice(JUDGMENTS)
        half = draw.sample(topics, len(topics) // 2)
        own = clean[name].filter(pl.col("topic_id").is_in(half))
        spread = float(own["score"].std() or 1.0) * 0.3  # type: ignore[arg-type]
        jittered = {}
        for side in ("one", "other"):
            noise = pl.Series([draw.gauss(0, spread) for _ in range(len(own))])
            scored = own.with_columns(pl.col("score") + noise)
            ranks = pl.col("score").rank("ordinal", descending=True).over("topic_id").cast(pl.Int64)
            jittered[side] = scored.with_columns(ranks.alias("rank")).sort("topic_id", "rank")
        result = truerank.check(
            qrels=qrels[kind].filter(pl.col("topic_id").is_in(half)), run=jittered, system="one", baseline="other",
            comparisons=1, resamples=200,
        )  # fmt: skip
        words[result.conclusion.word] += 1
    low, high = exact_interval(words["HOLDS"], count)
    print(table(("word", "claims"), sorted(words.items())))
    # The test is two-sided, and the claim names one side: 2.5% are expected.
    print(f"HOLDS {words['HOLDS'] / count:.3f} ({low:.3f} to {high:.3f}) of {count}")


def main() -> None:
    """Runs one of the two."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("claims", "nulls"))
    parser.add_argument("--collection", choices=("cacm", "vaswani"), default="cacm")
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--pairs", type=int, default=100)
    parser.add_argument("--with", dest="given", choices=("two", "all"), default="all")
    parser.add_argument("--documents", action="store_true", help="audit the documents, too (a hundred times as long)")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    require_shared()
    texts = collection(options.collection, options.work)
    if options.what == "claims":
        claims(texts, options.pairs, options.given, options.seed, documents=options.documents)
    else:
        nulls(texts, options.count, options.seed)


if __name__ == "__main__":
    main()
