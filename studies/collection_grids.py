"""Whether honest runs on topics in a grid, such as products by kinds of question, are called runs of other topics.

    python studies/collection_grids.py [--sets 72] [--first 0] [--checks 24]

Grids of 6 by 5 to 12 by 8, row by row or column by column; one to three documents of each topic; of two grids in three,
some topics share a document with the next product or kind. Each set has seven honest runs that confuse what is alike:
neighbouring products, kinds, both, or a product always with the one before. The topics have their ids in the order of
the grid, or at random. Runs that are moved by one topic, in whole or in part, have a true fault. `check` compares a
good run with one that confuses products: how often does it leave topics out?
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import polars as pl

import truerank
from common import table
from truerank.audits.collection.fit import judgment_fit

SHAPES: Final = ((6, 5), (8, 5), (10, 6), (12, 8))


class Confusion(NamedTuple):
    """What a run makes of a grid.

    Attributes:
        product, kind: the loss for each step to another product or kind.
        noise: deviation of the score of a document for a topic.
        beside: the share of topics that are read as those of a neighbouring product.
        before: the share of products that are always read as the product before.
    """

    product: float
    kind: float
    noise: float
    beside: float = 0.0
    before: float = 0.0


RUNS: Final = {
    "good": Confusion(1.5, 1.5, 0.7),
    "confuses products": Confusion(0.5, 2.0, 0.7, beside=0.3),
    "confuses kinds": Confusion(2.0, 0.5, 0.7),
    "takes the product before": Confusion(1.0, 2.0, 0.7, before=0.3),
    "takes neighbours": Confusion(1.0, 2.0, 0.7, beside=0.9),
    "weak": Confusion(0.7, 0.7, 1.2, beside=0.3),
    "poor": Confusion(0.4, 0.4, 1.5, beside=0.5),
}


class Grid(NamedTuple):
    """Judgments, and runs by name."""

    qrels: pl.DataFrame
    runs: dict[str, pl.DataFrame]
    topics: list[str]


def grid(number: int, in_order: bool) -> Grid:
    """A set: its shape, its direction, shared documents, and documents of a topic go round by its number."""
    rng = np.random.default_rng(number)
    products, kinds = SHAPES[number % 4]
    shared, by_kind, size = number // 4 % 3, number // 12 % 2, 1 + number // 24 % 3
    cells = [(product, kind) for product in range(products) for kind in range(kinds)]
    if by_kind:
        cells.sort(key=lambda cell: cell[::-1])
    numbers = range(len(cells)) if in_order else rng.permutation(len(cells)).tolist()
    ids = [f"q{at + 1}" for at in numbers]
    docs = [(product, kind, at) for product, kind in cells for at in range(size)]
    judged = [(topic, _doc(*cell, at), 1) for topic, cell in zip(ids, cells, strict=True) for at in range(size)]
    for topic, (product, kind) in zip(ids, cells, strict=True):
        beside = (product + (shared == 1), kind + (shared == 2))
        if shared and beside in cells and rng.random() < 0.3:
            judged.append((topic, _doc(*beside, 0), 1))
    of_product, of_kind = np.array(docs)[:, 0], np.array(docs)[:, 1]
    order = np.argsort(np.array(numbers))
    runs = {}
    for name, how in RUNS.items():
        depth, popular = int(rng.choice([3, 5, 10, 20])), rng.normal(0, 0.3, len(docs))
        before = rng.random(products) < how.before
        rows = []
        for at in order:
            product, kind = cells[at]
            step = int(rng.choice([-1, 1])) if rng.random() < how.beside else -int(before[product])
            product = min(products - 1, max(0, product + step))
            loss = how.product * np.minimum(abs(of_product - product), 3) + how.kind * np.minimum(
                abs(of_kind - kind), 2
            )
            scores = popular - loss + rng.normal(0, how.noise, len(docs))
            first = np.argsort(-scores)[:depth]
            rows += [(ids[at], _doc(*docs[one]), rank, float(depth - rank)) for rank, one in enumerate(first, start=1)]
        runs[name] = _frame(rows, ["topic_id", "doc_id", "rank", "score"])
    return Grid(_frame(judged, ["topic_id", "doc_id", "relevance"]), runs, [ids[at] for at in order])


def _doc(product: int, kind: int, at: int) -> str:
    return f"d{product}-{kind}-{at}"


def _frame(rows: Sequence[tuple[str | int | float, ...]], columns: list[str]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=columns, orient="row")


def moved(set_: Grid, name: str, share: float) -> pl.DataFrame:
    """A run of which the last topics have the id of the next one."""
    begin = round(len(set_.topics) * (1 - share))
    later = set_.topics[begin:]
    names = dict(zip(later, [*later[1:], later[0]], strict=True))
    return set_.runs[name].with_columns(pl.col("topic_id").replace(names))


def astray(set_: Grid, runs: dict[str, pl.DataFrame]) -> set[str]:
    """The sources that are called shifted or shuffled."""
    fit = judgment_fit(set_.qrels, runs)
    return {one.source for one in fit.sources if one.word in ("shifted", "shuffled")}


def main() -> None:
    """Makes the sets, asks, and prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sets", type=int, default=72)
    parser.add_argument("--first", type=int, default=0, help="number of the first set")
    parser.add_argument("--checks", type=int, default=24, help="of the sets, those that are checked")
    options = parser.parse_args()
    rows = []
    shares = {"all": 1.0, "the last half": 0.5, "the last third": 1 / 3}
    for in_order in (True, False):
        honest: Counter[str] = Counter()
        planted: Counter[str] = Counter()
        left_out = 0
        for number in range(options.first, options.first + options.sets):
            set_ = grid(number, in_order)
            faulty = {
                f"{name}, {what} moved": moved(set_, name, share)
                for what, share in shares.items()
                for name in ("good", "confuses products")
            }
            called = astray(set_, set_.runs | faulty)
            honest.update(called & set_.runs.keys())
            honest["any run of a set"] += bool(called & set_.runs.keys())
            planted.update({what: int(what in called) for what in faulty})
            if number < options.first + options.checks:
                pair = {name: set_.runs[name] for name in ("good", "confuses products")}
                checked = truerank.check(qrels=set_.qrels, run=pair, system="good", baseline="confuses products")
                left_out += any(
                    fault["kind"].startswith("misplaced") for fault in checked.answer("files").facts["faults"]
                )
        order = "in order" if in_order else "at random"
        rows += [(order, "honest", name, honest[name]) for name in ("any run of a set", *RUNS)]
        rows += [(order, "planted", what, count) for what, count in planted.items()]
        rows.append((order, f"check, {options.checks} sets", "topics left out", left_out))
    print(table(("ids", "runs", "which", f"called, of {options.sets} sets"), rows))


if __name__ == "__main__":
    main()
