"""What rankings score on well-known test sets that never read the query, and what `check` makes of claims about such.

    python studies/floors.py table [--picture FILE.svg]
    python studies/floors.py claims [--sets cacm vaswani] [--count 20] [--seed 3]
    python studies/floors.py time

`table` has every set of `data/qrels`. In `claims` documents are made relevant for many topics, and the system returns
these only, or puts them before the results of BM25: it is better than BM25 by such a list only. The others compare BM25
with query likelihood, on the same judgments and on those without such documents.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl

import truerank
from common import SHARED, require_shared, table
from explain import data
from truerank.core.figures.export import to_svg_file
from truerank.core.figures.forest import IntervalPanel, IntervalValue, interval_panels
from truerank.measures.null_rankers import NullRanker, null_rankers
from truerank.sources import read_qrels_frame

HIGH = 0.05
KINDS = ("list only", "list, then BM25", "shared, no lift", "as they are")


def sets() -> dict[str, Path]:
    """All judgments by the name of their set."""
    found = sorted((SHARED / "qrels").rglob("*.qrels.gz"))
    names = {one: one.name.removesuffix(".qrels.gz") for one in found}
    prefix = {"beir": "", "bright": "BRIGHT "}
    return {prefix.get(one.parent.name, "") + names[one]: one for one in found}


def floors(given: argparse.Namespace) -> None:
    """The table and the picture."""
    rows, fixed = [], list[tuple[str, NullRanker]]()
    for name, path in sets().items():
        found = {(one.name, one.of): one for one in null_rankers(read_qrels_frame(str(path)), "nDCG@10")}
        best, random = found["the best fixed list", "collection"], found.get(("random order", "judged"))
        orders = [one for one in found.values() if one.above_random is not None]
        order = max(orders, key=lambda one: one.above_random or 0.0, default=None)
        fixed.append((name, best))
        floor = best.floor
        interval = "none" if floor.low is None else f"{floor.low:.3f} to {floor.high:.3f}"
        rows.append((
            name, floor.topics, floor.clusters, f"{floor.mean:.3f}", interval,
            "COLL16" if (floor.mean or 0) >= HIGH and floor.topics >= 10 else "",
            "" if random is None else f"{random.floor.mean:.3f}",
            "" if order is None else f"{order.name}: {order.above_random:+.3f} ({order.above_random_low:+.3f})",
        ))  # fmt: skip
    rows.sort(key=lambda row: -float(row[3]))
    heads = (
        "set,topics,clusters,fixed list,95% interval,rule,random order of the judged,order that is most above it (low)"
    )
    print(table(heads.split(","), rows))
    if given.picture:
        shown = sorted(
            (pair for pair in fixed if (pair[1].floor.mean or 0) >= 0.001), key=lambda p: -(p[1].floor.mean or 0)
        )
        values = tuple(IntervalValue(one.floor.mean, one.floor.low, one.floor.high) for _, one in shown)
        panel = IntervalPanel("", "nDCG@10 of the best fixed list", values, {HIGH: "COLL16"})
        figure = interval_panels([name for name, _ in shown], [panel])
        text = (
            "The score of the best list that never reads the query, on other topics than it was made from, by test set."
        )
        Path(given.picture).write_text(to_svg_file(figure, name="floors", description=text), encoding="utf-8")


def claims(given: argparse.Namespace) -> None:
    """Claims where only the floor decides, and clean ones."""
    rows = []
    for name in given.sets:
        with tempfile.TemporaryDirectory() as folder:
            qrels, bm25 = data(name, Path(folder))
            other = data(name, Path(folder), "ql-50")[1].select("topic_id", "doc_id", "score")
        words: dict[str, Counter[str]] = {
            kind: Counter() for kind in ("list only", "list, then BM25", "shared, no lift", "as they are")
        }
        draw = np.random.default_rng(given.seed)
        topics = qrels["topic_id"].unique(maintain_order=True).to_list()
        documents = bm25["doc_id"].unique(maintain_order=True).to_list()
        for _ in range(given.count):
            number, share = int(draw.integers(3, 12)), float(draw.uniform(0.25, 0.9))
            chosen = [documents[place] for place in draw.choice(len(documents), number, replace=False)]
            more = [(topic, doc, 1) for topic in topics for doc in chosen if draw.random() < share]
            planted = pl.concat([
                qrels.select("topic_id", "doc_id", pl.col("relevance").cast(pl.Int64)),
                pl.DataFrame(more, schema=["topic_id", "doc_id", "relevance"], orient="row"),
            ]).unique(["topic_id", "doc_id"], keep="last", maintain_order=True)  # fmt: skip
            top = float(bm25["score"].max() or 0.0)  # type: ignore[arg-type]
            lifted = pl.DataFrame(
                [(t, doc, top + 1 + number - place) for t in topics for place, doc in enumerate(chosen)],
                schema=["topic_id", "doc_id", "score"], orient="row",
            )  # fmt: skip
            plain = bm25.select("topic_id", "doc_id", "score")
            system = pl.concat([lifted, plain.join(lifted, on=["topic_id", "doc_id"], how="anti")])
            for kind, judged, pair in (
                ("list only", planted, {"system": lifted, "baseline": plain}),
                ("list, then BM25", planted, {"system": system, "baseline": plain}),
                ("shared, no lift", planted, {"system": plain, "baseline": other}),
                ("as they are", qrels, {"system": plain, "baseline": other}),
            ):
                if kind == "as they are" and words[kind]:
                    continue
                found = truerank.check(qrels=judged, run=pair, baseline="baseline")
                words[kind][
                    f"{found.conclusion.word}{' (floor)' if 'scores as much' in str(found.json()) else ''}"
                ] += 1
        rows += [(name, kind, sum(own.values()), ", ".join(f"{word} {count}" for word, count in own.most_common()))
                 for kind, own in words.items()]  # fmt: skip
    print(table(("set", "claims", "count", "words"), rows))


def timed(_: argparse.Namespace) -> None:
    """10,000 topics with 30 judgments each, of which three are relevant."""
    draw = np.random.default_rng(1)
    topics, judged = 10_000, 30
    frame = pl.DataFrame({
        "topic_id": np.repeat([f"t{n}" for n in range(topics)], judged),
        "doc_id": [f"d{n}" for _ in range(topics) for n in draw.choice(200_000, judged, replace=False)],
        "relevance": np.tile(np.array([1] * 3 + [0] * (judged - 3)), topics),
    })  # fmt: skip
    start = time.perf_counter()
    found = null_rankers(frame, "nDCG@10", documents=1_000_000)
    print(f"{len(found)} null rankers of {topics:,d} topics: {time.perf_counter() - start:.2f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    for name, function in (("table", floors), ("claims", claims), ("time", timed)):
        one = commands.add_parser(name)
        one.set_defaults(function=function)
        one.add_argument("--sets", nargs="+", default=["cacm", "vaswani"], choices=("cacm", "vaswani"))
        one.add_argument("--count", type=int, default=20)
        one.add_argument("--seed", type=int, default=3)
        one.add_argument("--picture")
    require_shared()
    given = parser.parse_args()
    given.function(given)


if __name__ == "__main__":
    main()
