"""A small grid of results, written by the grid's own functions: real rankings of made-up scores, no training."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from truerank.sources.qrels import QREL_SCHEMA
from truerank.sources.runs import RUN_SCHEMA
from truerank_lab.grid.design import CollectionDesign, Design, ModelDesign, ReportDesign, SetDesign, expand
from truerank_lab.grid.results import write_cell, write_collection, write_failed, write_plan

DEPTH = 10
MEASURES = ("nDCG@10", "MFR", "P@1")
#: (collection, set, model, size, seed) -> how much the relevant documents are preferred.
Strength = Callable[[str, SetDesign, str, int, int], float]


def design(
    sets: Sequence[SetDesign],
    models: Sequence[ModelDesign],
    collections: Sequence[str] = ("north", "south"),
    report: ReportDesign | None = None,
) -> Design:
    """A design over small collections whose files need not exist."""
    return Design(
        name="small",
        collections=tuple(CollectionDesign(name, "docs.tsv", "topics.tsv", f"{name}.qrels") for name in collections),
        sets=tuple(sets),
        models=tuple(models),
        measures=MEASURES,
        report=report or ReportDesign(),
    )


def judged(topics: int) -> pl.DataFrame:
    """Six judged documents a topic, three of them relevant with grades 1 and 2, one outside the reranked ones."""
    rows = [
        (f"t{topic:02d}", f"d{document:02d}", grade)
        for topic in range(topics)
        for document, grade in ((0, 2), (3, 1), (11, 1), (5, 0), (8, 0), (12, 0))
    ]
    return pl.DataFrame(rows, schema=QREL_SCHEMA, orient="row")


def write_grid(
    out: Path,
    plan: Design,
    strength: Strength,
    *,
    topics: int = 20,
    unfinished: Callable[[Mapping[str, Any]], str] = lambda _: "done",
) -> Design:
    """Writes a whole folder of results.

    Every model gives each document a drawn score, and relevant ones more, by `strength`; topics t00 … leak in sets of
    the kind leak (half of them) and test (all).
    """
    out.mkdir(parents=True, exist_ok=True)
    qrels = judged(topics)
    for collection in plan.collections:
        ids = [f"t{topic:02d}" for topic in range(topics)]
        rows = [(topic, f"d{doc:02d}", doc + 1, float(DEPTH - doc), "bm25") for topic in ids for doc in range(DEPTH)]
        first = pl.DataFrame(rows, schema=RUN_SCHEMA, orient="row")
        texts = pl.DataFrame({"topic_id": ids, "text": [f"text of {topic}" for topic in ids]})
        write_collection(out, collection.name, first_stage=first, qrels=qrels, topics=texts)
    parts = (pl.col(name).cast(pl.String) for name in ("set", "size", "model", "seed"))
    cells = expand(plan).with_columns(cell=pl.concat_str(*parts, separator="-"))
    for cell in cells.iter_rows(named=True):
        state = unfinished(cell)
        if state == "done":
            write_cell(out, cell, scores(plan, cell, strength, topics), steps=cell["size"] // 32, loss=0.5)
        elif state == "failed":
            write_failed(out, cell, "the loss is not a number")
    write_plan(out, plan, cells, leaks(plan, topics))
    return plan


def leaks(plan: Design, topics: int) -> pl.DataFrame:
    """What leaks: for half of the topics (leak) or all of them (test), two relevant and two non-relevant documents."""
    rows = [
        (collection, one.name, f"t{topic:02d}", f"d{document:02d}", relevant, 1)
        for one in plan.sets
        if one.kind in ("leak", "test")
        for collection in one.collections
        for topic in range(topics if one.kind == "test" else topics // 2)
        for document, relevant in ((3, True), (11, True), (5, False), (12, False))
    ]
    names = ("collection", "set", "topic_id", "doc_id", "relevant", "rows")
    return pl.DataFrame(rows, schema=list(names), orient="row")


def scores(plan: Design, cell: Mapping[str, Any], strength: Strength, topics: int) -> pl.DataFrame:
    """What a cell says of ten candidates and two leaked documents outside them, of every topic; some are tied."""
    parts = []
    for collection in cell["collections"]:
        # The draws of a model and seed are the same for all training sets, which differ in nothing but the strength.
        rng = np.random.default_rng([cell["seed"], *f"{collection}{cell['model']}".encode()])
        drawn = np.round(rng.normal(size=(topics, DEPTH + 3)), 1)
        more = strength(collection, plan.set(cell["set"]), cell["model"], cell["size"], cell["seed"])
        drawn[:, [0, 3, 11]] += more
        drawn[:, [5, 12]] -= more / 2
        rows = [
            (collection, f"t{topic:02d}", f"d{document:02d}", float(drawn[topic, document]), document < DEPTH)
            for topic in range(topics)
            for document in (*range(DEPTH), 11, 12)
        ]
        parts.append(rows)
    names = ["collection", "topic_id", "doc_id", "score", "candidate"]
    return pl.DataFrame([row for rows in parts for row in rows], schema=names, orient="row")


def leakage(out: Path, **options: object) -> Design:
    """Two collections, three models, three sizes, three seeds; the test data leak strongly, the other leak hardly."""
    sizes = (500, 1000, 2000)
    models = [ModelDesign(name, "knrm", seeds=(0, 1, 2)) for name in ("knrm", "pacrr", "duet")]
    sets = [
        SetDesign(f"{collection}-{kind}", kind, (collection,), sizes, instances="rows.jsonl", label=kind)
        for collection in ("north", "south")
        for kind in ("none", "leak", "test")
    ]
    gains = {"none": 0.0, "leak": 0.05, "test": 1.2}
    order = {"knrm": 0.5, "pacrr": 0.6, "duet": 0.3}

    def strength(collection: str, one: SetDesign, model: str, size: int, seed: int) -> float:
        return order[model] + gains[one.kind] * 1000 / size + 0.1 * np.log2(size / 500)

    return write_grid(out, design(sets, models, report=ReportDesign(memorisation_size=1000)), strength, **options)
