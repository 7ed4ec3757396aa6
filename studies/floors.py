"""What rankings score on well-known test sets that never read the query, and what `check` makes of claims about such.

    python studies/floors.py table [--picture FILE.svg]
    python studies/floors.py coverage [--count 200] [--seed 1]
    python studies/floors.py quoted
    python studies/floors.py forms [--count 200]
    python studies/floors.py claims [--sets cacm vaswani] [--count 20] [--seed 3]
    python studies/floors.py time

`table` has every set of `data/qrels`. `coverage` draws topics of large sets: how often does the interval hold the mean
floor of all draws of as many topics? Its shares have Clopper and Pearson's intervals. `quoted` has scores that others
published beside the floors: by Anserini's pages of regressions (QUOTED), and by MTEB's result files. `forms` compares
the closed forms of random order with shuffled runs on TREC-COVID's judgments. `time` takes processor time, the median
of five.

In `claims` documents are made relevant for many topics, and the system returns these only, or puts them before the
results of BM25: it is better than BM25 by such a list only. The others compare BM25 with query likelihood, on the same
judgments and on those without such documents.
"""

from __future__ import annotations

import argparse
import json
import tarfile
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl

import truerank
from common import SHARED, require_shared, table
from explain import data
from truerank.audits.collection.together import ceilings
from truerank.core.figures.export import to_svg_file
from truerank.core.figures.forest import IntervalPanel, IntervalValue, interval_panels
from truerank.measures.floors import fixed_list
from truerank.measures.magnitudes import proportion
from truerank.measures.null_rankers import NullRanker, null_rankers, random_order
from truerank.options import Scoring
from truerank.sources import read_qrels_frame

HIGH, TELLING = 0.05, 0.1
#: Sets of which topics are drawn, and how many.
DRAWN = {"climate-fever": (50, 150, 400), "nfcorpus": (50, 100, 160), "fever": (300,), "scifact": (100,)}
#: nDCG@10 as Anserini's pages of regressions have it: bright-pony, bright-pony.bge-large-en-v1.5.flat.cached, and
#: beir-v1.0.0-climate-fever.flat.
QUOTED = {
    "BRIGHT pony": {"BM25": 0.0434, "BGE-large-en-v1.5": 0.0572},
    "climate-fever": {"BM25": 0.1651},
}
#: Tasks of MTEB, and the set of which they have the topics, or a part of them.
MTEB = {
    "ClimateFEVERHardNegatives": "climate-fever", "TRECCOVID": "trec-covid", "NFCorpus": "nfcorpus",
    "SciFact": "scifact",
}  # fmt: skip
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
        rule = "COLL16" if (floor.mean or 0) >= HIGH and floor.topics >= 10 else ""
        rows.append((
            name, floor.topics, floor.clusters, f"{floor.mean:.3f}", interval, floor.drawn,
            " ".join((rule, *(["COLL17"] if order and (order.above_random_low or 0) >= TELLING else []))).strip(),
            "" if random is None else f"{random.floor.mean:.3f}",
            "" if order is None else f"{order.name}: {order.above_random:+.3f} ({order.above_random_low:+.3f})",
        ))  # fmt: skip
    rows.sort(key=lambda row: -float(row[3]))
    heads = (
        "set,topics,clusters,fixed list,95% interval,for other,rules,random order of the judged,"
        "order that is most above it (low)"
    )
    print(table(heads.split(","), rows))
    if given.picture:
        shown = sorted(fixed, key=lambda pair: -(pair[1].floor.mean or 0))
        values = tuple(IntervalValue(one.floor.mean, one.floor.low, one.floor.high) for _, one in shown)
        panel = IntervalPanel("", "nDCG@10 of the best fixed list", values, {HIGH: "COLL16"})
        figure = interval_panels([name for name, _ in shown], [panel])
        text = (
            "The score of the best list that never reads the query, on other topics than it was made from, by test set."
        )
        Path(given.picture).write_text(to_svg_file(figure, name="floors", description=text), encoding="utf-8")


def coverage(given: argparse.Namespace) -> None:
    """How often intervals of the best fixed list hold what as many topics score in the mean."""
    rows = []
    for name, sizes in DRAWN.items():
        qrels = read_qrels_frame(str(sets()[name]))
        topics = qrels["topic_id"].unique().sort()
        for size in sizes:
            draw, found = np.random.default_rng(given.seed), []
            for number in range(given.count):
                own = topics.gather(np.sort(draw.choice(len(topics), size, replace=False)))
                some = qrels.filter(pl.col("topic_id").is_in(own.implode()))
                found.append(fixed_list(some, "nDCG@10", seed=number))
            truth = float(np.mean([one.mean for one in found]))
            held = sum((one.low or 0.0) <= truth <= (one.high or 0.0) for one in found)
            below = sum((one.high or 0.0) < truth for one in found)
            share = proportion(held, len(found), method="exact")
            drawn = Counter(one.drawn for one in found).most_common(1)[0][0]
            rows.append(
                (
                    name,
                    f"{size} of {len(topics):,d}",
                    drawn,
                    f"{truth:.4f}",
                    f"{share.share:.1%} ({share.low:.0%} to {share.high:.0%})",
                    below,
                    len(found) - held - below,
                )
            )
    heads = "set,topics drawn,left out in parts,mean floor,intervals that hold it,ends below it,begins above it"
    print(table(heads.split(","), rows))


def quoted(_: argparse.Namespace) -> None:
    """Scores that others published, beside the floors."""
    rows: list[tuple[object, ...]] = []
    floor = {name: fixed_list(read_qrels_frame(str(sets()[name])), "nDCG@10") for name in {*QUOTED, *MTEB.values()}}

    def ends(name: str) -> str:
        return f"{floor[name].mean:.3f} ({floor[name].low:.3f} to {floor[name].high:.3f})"

    for name, scores in QUOTED.items():
        rows += [(name, ends(name), system, f"{score:.3f}") for system, score in scores.items()]
    print(table(("set", "floor", "system", "nDCG@10 as quoted"), rows))
    best: dict[str, dict[str, float]] = {task: {} for task in MTEB}
    with tarfile.open(SHARED / "mteb-results/results.tar.xz") as archive:
        for member in archive:
            task = Path(member.name).stem
            file = archive.extractfile(member) if task in MTEB else None
            if file is not None:
                scores = json.load(file).get("scores", {}).get("test", [])
                model = Path(member.name).parts[-3]
                if scores:
                    best[task][model] = max(best[task].get(model, 0.0), float(scores[0]["ndcg_at_10"]))
    print()
    rows = [
        (task, name, ends(name), len(best[task]), f"{np.median([*best[task].values()]):.3f}",
         sum(one <= (floor[name].mean or 0.0) for one in best[task].values()))
        for task, name in MTEB.items()
    ]  # fmt: skip
    heads = "task of MTEB,floor of,floor,models,median nDCG@10,models that score no more than the floor"
    print(table(heads.split(","), rows))


def forms(given: argparse.Namespace) -> None:
    """Closed forms of random order against shuffling."""
    qrels = read_qrels_frame(str(sets()["trec-covid"]))
    measures = ["nDCG@10", "AP", "RR", "P@10", "R@100", "Success@1", "Rprec"]
    sums, squares = dict.fromkeys(measures, 0.0), dict.fromkeys(measures, 0.0)
    for number in range(given.count):
        order = qrels.sample(fraction=1.0, shuffle=True, seed=number).with_columns(
            (-pl.int_range(pl.len()).over("topic_id")).cast(pl.Float64).alias("score")
        )
        found = truerank.evaluate(qrels, {"run": order.select("topic_id", "doc_id", "score")}, measures)
        for one, name in zip(measures, found.measures, strict=True):
            value = float(found.of("run", name).mean())
            sums[one], squares[one] = sums[one] + value, squares[one] + value**2
    rows = []
    for one in measures:
        expected = float(np.mean([*(random_order(qrels, one) or {}).values()]))
        mean = sums[one] / given.count
        error = ((squares[one] / given.count - mean**2) / given.count) ** 0.5
        rows.append((one, f"{expected:.5f}", f"{mean:.5f}", f"{error:.5f}", f"{(mean - expected) / error:+.1f}"))
    print(table(("measure", "closed form", "shuffled", "standard error", "apart, in errors"), rows))


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
    for name, function in (
        ("null rankers", lambda: null_rankers(frame, "nDCG@10", documents=1_000_000)),
        ("ceilings", lambda: ceilings(frame, "nDCG@10", Scoring())),
    ):
        seconds = []
        for _ in range(5):
            start = time.process_time()
            function()
            seconds.append(time.process_time() - start)
        print(
            f"{name} of {topics:,d} topics with {judged} judgments each: {np.median(seconds):.2f} s of processor time"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    for name, function, count, seed in (
        ("table", floors, 0, 0), ("coverage", coverage, 200, 1), ("quoted", quoted, 0, 0), ("forms", forms, 200, 0),
        ("claims", claims, 20, 3), ("time", timed, 0, 0),
    ):  # fmt: skip
        one = commands.add_parser(name)
        one.set_defaults(function=function)
        one.add_argument("--sets", nargs="+", default=["cacm", "vaswani"], choices=("cacm", "vaswani"))
        one.add_argument("--count", type=int, default=count)
        one.add_argument("--seed", type=int, default=seed)
        one.add_argument("--picture")
    require_shared()
    given = parser.parse_args()
    given.function(given)


if __name__ == "__main__":
    main()
