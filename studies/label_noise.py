"""What wrong judgments allow: how often the intervals of corrected scores hold the truth, and what follows wrong ones.

    python studies/label_noise.py [--sets cacm dl19 vaswani] [--draws 100] [--seed 1]

The judgments of CACM, Vaswani (each with the first twenty results of two runs as not relevant) and DL 2019 are the
truth. A share of the relevant ones becomes not relevant, and a quarter of that share of the others relevant; a random
sample of pairs, or of whole topics, is judged again without a mistake. Printed: how often the interval of the score of
each run holds that of the truth, the same for differences, and how often a run is said to score more than the labels
allow: the honest run, and one that ranks the wrong judgments first.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
import polars as pl

from common import require_shared, table
from explain import data
from truerank.audits.collection.label_noise import label_noise
from truerank.measures import evaluate
from truerank.options import Resampling, Scoring

MEASURES = "nDCG@10 P@10 DCG@10"
SAMPLES = ("100 pairs", "400 pairs", "20 topics")


def read(name: str) -> tuple[pl.DataFrame, dict[str, pl.DataFrame]]:
    """The truth, and two runs."""
    with tempfile.TemporaryDirectory() as folder:
        qrels, first = data(name, Path(folder))
        rank = pl.col("score").rank("ordinal", descending=True).over("topic_id")
        if name == "dl19":
            other = (pl.col("doc_id").hash(3) % 40 * 0.5 - rank).alias("score")
            runs = {"system": first, "other": first.with_columns(other)}
        else:
            runs = {"system": first, "other": data(name, Path(folder), "ql-50")[1]}
    qrels = qrels.select("topic_id", "doc_id", pl.col("relevance").cast(pl.Int64))
    if name != "dl19":
        pool = pl.concat([run.filter(rank <= 20).select("topic_id", "doc_id") for run in runs.values()])
        pool = pool.unique(maintain_order=True).join(qrels, on=["topic_id", "doc_id"], how="anti")
        pool = pool.join(qrels.select("topic_id").unique(), on="topic_id", how="semi", maintain_order="left")
        qrels = pl.concat([qrels, pool.with_columns(pl.lit(0, pl.Int64).alias("relevance"))])
    return qrels, {name: run.select("topic_id", "doc_id", "score") for name, run in runs.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", default=["cacm", "dl19", "vaswani"], choices=("cacm", "dl19", "vaswani"))
    parser.add_argument("--draws", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    require_shared()
    given = parser.parse_args()
    rows = []
    for name in given.sets:
        truth, runs = read(name)
        true = evaluate(truth, runs, MEASURES)
        means = {(run, measure): float(true.of(run, measure).mean()) for run in runs for measure in true.measures}
        topics = truth["topic_id"].unique(maintain_order=True)
        for sample in SAMPLES:
            for share in (0.05, 0.2):
                scores, apart, above = list[bool](), list[bool](), {"system": 0, "follower": 0}
                for number in range(given.draws):
                    rng = np.random.default_rng([given.seed, number])
                    grades = truth["relevance"].to_numpy()
                    flip = rng.random(len(grades)) < np.where(grades > 0, share, share / 4)
                    judged = truth.with_columns(pl.Series("relevance", np.where(flip, grades < 1, grades)))
                    if sample.endswith("pairs"):
                        again = truth[np.sort(rng.choice(len(truth), int(sample.split()[0]), replace=False))]
                    else:
                        chosen = topics.gather(np.sort(rng.choice(len(topics), 20, replace=False)))
                        again = truth.filter(pl.col("topic_id").is_in(chosen.to_list()))
                    follower = judged.select("topic_id", "doc_id", pl.col("relevance").cast(pl.Float64).alias("score"))
                    facts, found = label_noise(
                        judged, again, {**runs, "follower": follower}, MEASURES,
                        scoring=Scoring(), resampling=Resampling(1000, 0.95, number),
                    )  # fmt: skip
                    for one in facts["scores"]:
                        if one["run"] in runs and one["corrected"] is not None:
                            value = means[one["run"], one["measure"]]
                            scores.append(one["corrected_low"] - 1e-9 <= value <= one["corrected_high"] + 1e-9)
                    for one in facts["differences"]:
                        if one["first"] in runs and one["second"] in runs and one["corrected"] is not None:
                            value = means[one["first"], one["measure"]] - means[one["second"], one["measure"]]
                            apart.append(one["corrected_low"] - 1e-9 <= value <= one["corrected_high"] + 1e-9)
                    told = set(found[1].rows["other"])
                    for run in above:
                        above[run] += run in told
                ceiling = given.draws if sample.endswith("topics") else 0
                rows.append((
                    name, sample, f"{share:.0%}",
                    *(f"{np.mean(held):.1%} of {len(held):,d}" if held else "no interval" for held in (scores, apart)),
                    *((f"{count} of {ceiling}" if ceiling else "not told") for count in above.values()),
                ))  # fmt: skip
    heads = "set,judged again,wrong,scores held,differences held,honest run above,run that follows wrong ones above"
    print(table(heads.split(","), rows))


if __name__ == "__main__":
    main()
