"""How indexes, searches and tunings are shown and written."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from truerank.core.result import Summary, place_note, shows, summarises, writes
from truerank.core.tables import Column, Table
from truerank.core.views import heads
from truerank.lexical.index import Index
from truerank.lexical.scoring import DECIMALS
from truerank.lexical.searching import SearchResult, model_text, write_run
from truerank.lexical.tuning import Tuning
from truerank.measures import difference_interval
from truerank.measures.report import choice_table
from truerank.text.printable import first_few
from truerank.work.runs import Run


@shows(Index)
def index_table(index: Index) -> Table:
    """What the index holds, one row for each field."""
    tokens = index.lengths.sum(axis=0, dtype=np.int64).tolist()
    filled = np.count_nonzero(index.lengths, axis=0).tolist()
    rows = tuple(
        (name, "+".join(index.manifest["fields"][name]), count, total, total / max(1, count))
        for name, total, count in zip(index.fields, tokens, filled, strict=True)
    )
    source = index.manifest["source"]
    left_out = ", ".join(f"{source[kind]:,} {kind}" for kind in ("empty", "skipped", "repeated") if source[kind])
    return Table(
        f"Index of {source['name']}: {len(index):,} documents, {index.terms:,} terms, "
        f"{int(index.starts[-1]):,} postings",
        heads("field, of, documents:,d, tokens:,d, mean_length:.1f"),
        rows,
        notes=(
            f"Analyser: {index.analyser.name}.",
            f"Read: {source['read']:,} documents" + (f", of them left out: {left_out}." if left_out else "."),
        ),
    )


def search_table(result: SearchResult) -> Table:
    """How many topics got how many documents."""
    sizes = result.run.group_by("topic_id").len()["len"]
    unfound = [
        f"{len(topics)} topics {why}: {first_few(topics, 5)}."
        for topics, why in ((result.no_text, "have no such text"), (result.no_terms, "have no term of the collection"))
        if topics
    ]
    return Table(
        f"{result.tag}: {model_text(result.model)}",
        heads("topics, searched:,d, rows:,d, fewest:,d, most:,d"),
        ((str(result.topics["name"]), len(sizes), len(result.run), _whole(sizes.min()), _whole(sizes.max())),),
        notes=(
            f"Ties: scores with {DECIMALS} decimals, equal ones by document id ascending.",
            f"Analyser: {result.index['analyser']['name']}.",
            *unfound,
        ),
    )


def tuning_table(tuning: Tuning) -> Table:
    """Base and tuned beside each other, with the interval of their difference."""
    base, tuned = (tuning.evaluation.values[tuning.evaluation.runs.index(name), 0] for name in ("base", "tuned"))
    gap = difference_interval(tuned, base)
    rows = (
        ("base", model_text(tuning.base), float(np.mean(base)), None, None, None),
        ("tuned", "chosen by fold", float(np.mean(tuned)), gap.mean, gap.low, gap.high),
    )
    columns = (
        *heads("run, parameters"),
        *Column.numbers(".4f", tuning.measure, "difference"),
        *Column.numbers(".4f", "from", "to", above=("95% interval",)),
    )
    tried = "; ".join(f"{name}: {', '.join(map(str, values))}" for name, values in tuning.grid.items())
    return Table(
        f"{tuning.base['model']}, preset {tuning.preset}, tuned for {tuning.measure}",
        columns,
        rows,
        notes=(f"{gap.n:,} topics; Student's t interval of the mean difference.", f"Tried: {tried}."),
    )


@summarises(SearchResult)
def _search(result: SearchResult) -> Summary:
    written = {} if result.out is None else {"run": str(result.out)}
    return Summary((search_table(result),), {**result.json(), **written}, notes=place_note("run", result.out))


@summarises(Tuning)
def _tuning(tuning: Tuning) -> Summary:
    return Summary((tuning_table(tuning), choice_table(tuning.validation)), tuning.json())


@writes(Tuning)
def _write_tuning(tuning: Tuning, run: Run) -> None:
    """Writes `base.run`, `tuned.run` and `tuning.json`."""
    for name, found in (("base", tuning.base_run), ("tuned", tuning.tuned_run)):
        write_run(found.with_columns(pl.lit(f"{tuning.base['model']}-{name}").alias("tag")), run.folder / f"{name}.run")
        run.note(f"{name}.run")
    run.json("tuning.json", tuning.json())


def _whole(value: Any) -> int:
    return int(value or 0)
