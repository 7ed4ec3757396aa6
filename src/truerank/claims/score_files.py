"""Are files of scores what they seem? Which splits the scores of a claim are of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import polars as pl

from truerank.claims.claim import Claim
from truerank.claims.results import ClaimAnswer
from truerank.sources.golden_rows import first_names
from truerank.sources.mteb_results import one_score_each
from truerank.sources.recognition import Reading
from truerank.text.printable import listed

#: Tasks of a split that a sentence names.
_NAMED: Final = 4


def pair_of_results(claim: Claim, readings: Sequence[Reading]) -> pl.DataFrame | None:
    """The results of MTEB of both systems, all splits; None where a system has none."""
    tables = [one.table.cells for one in readings if one.table is not None and one.table.cells is not None]
    pair = [claim.system, claim.baseline]
    cells = pl.concat(tables).filter(pl.col("system").is_in(pair)) if tables else pl.DataFrame({"system": []})
    return cells if cells["system"].n_unique() == len(pair) else None


def results_answer(claim: Claim, cells: pl.DataFrame) -> ClaimAnswer:
    """What results of MTEB show of how they were made.

    Args:
        claim: the claim.
        cells: of both systems, see `pair_of_results`.
    """
    splits = " ".join(_splits(cells))
    return ClaimAnswer(
        "files", "AS THEY SEEM", splits, claim.base.effect, "The files do not change the difference.", remark=splits
    )


def _splits(cells: pl.DataFrame) -> Iterable[str]:
    """Which splits count, which do not, and on which tasks the two have none in common."""
    chosen = one_score_each(cells)
    both = chosen.filter(pl.col("system").n_unique().over("task") > 1)
    left = cells.join(chosen, on=["task", "split"], how="anti", nulls_equal=True)
    yield f"The scores are of the split {_by_split(both)}."
    if len(left):
        yield f"Not counted: {_by_split(left)}."
    if len(apart := chosen.join(both, on="task", how="anti")):
        yield f"Left out, as no split has scores of both: {first_names(apart['task'].unique().sort())}."


def _by_split(cells: pl.DataFrame) -> str:
    """Splits with their tasks, that of most tasks first: "test (15 tasks) and dev (MSMARCO)"."""
    tasks = cells.group_by("split").agg(pl.col("task").unique().sort())
    tasks = tasks.sort(pl.col("task").list.len(), "split", descending=[True, False])
    rows = [(split, listed(own) if len(own) <= _NAMED else f"{len(own)} tasks") for split, own in tasks.iter_rows()]
    return listed([f"{split} ({own})" for split, own in rows])
