"""Near-duplicates within a collection and between two."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl

from truerank.errors import InputError
from truerank.near_duplicates.joining import NO_TWIN, find_candidates, find_equals
from truerank.near_duplicates.options import Shingles
from truerank.near_duplicates.plan import CROWD, ComparisonPlan
from truerank.near_duplicates.results import BOILERPLATE, GROUPS, KINDS, PAIRS, Equivalents, groups_of
from truerank.near_duplicates.sketches import Documents, Sketches, boilerplate, claim, keep
from truerank.near_duplicates.verifying import RELATIONS, verify
from truerank.work.engines import Engine, LocalEngine, RayEngine, ShardEngine, give_back, processors
from truerank.work.jobs import Job, opened
from truerank.work.kept import all_whole
from truerank.work.runs import plain

#: Of unfinished work; another one has other columns.
_FORMAT: Final = 2


def within(documents: Documents | Sketches, options: Shingles = Shingles(), job: Job | None = None) -> Equivalents:
    """Finds documents of one collection that say the same.

    Args:
        documents: the documents, or pairs of id and text, with distinct ids; a stream that is read once. Or what
            `keep` kept of them.
        options: what counts as nearly the same.
        job: where unfinished work lies, what runs it, and whom it tells; by default a temporary folder and this
            process. A killed job continues if it gets the same documents and options.

    Returns:
        Pairs, groups and boilerplate.

    Raises:
        InputError: sketches of other shingles, a folder with other work, or a worker died.
    """
    with opened(job) as work:
        sketches = _sketches(documents, options, work.part("sketches"))
        plan = ComparisonPlan(work.folder, (sketches,), options, CROWD)
        passages = boilerplate(sketches.all_passages, len(sketches), options.boilerplate)
        pairs, crowded = _compare(plan, replace(work, engine=_here(work.engine)), passages["passage"])
        named = _named(plan, pairs)
        numbers = np.unique(pairs.select("left", "right").to_numpy())
        groups = groups_of(named, _ids(plan, numbers))
        return Equivalents(options, (len(sketches), 0), sketches.empty, named, groups, passages, crowded)


def between(
    left: Documents | Sketches,
    right: Documents | Sketches,
    options: Shingles = Shingles(),
    job: Job | None = None,
    *,
    numbered: bool = False,
    crowd: int = CROWD,
) -> Equivalents:
    """Finds documents of two collections that say the same; pairs within one of them are not looked for.

    Args:
        left: the documents that are asked about, such as test documents, or pairs of id and text; a stream that is
            read once. Or what `keep` kept of them.
        right: the same of the other collection.
        options: what counts as nearly the same.
        job: as in `within`.
        numbered: name documents by their places from 0, as integers, in place of ids.
        crowd: documents with one shingle up to which all are compared; more take more time.

    Returns:
        Pairs of a document of `left` and one of `right`. Every document of `left` has its pairs; documents of `right`
        with the same words stand for each other, the first one is named.

    Raises:
        InputError: sketches of other shingles, a folder with other work, or a worker died.
    """
    with opened(job) as work:
        sides = tuple(
            _sketches(side, options, work.part(f"{name}-sketches")) for name, side in (("left", left), ("right", right))
        )
        plan = ComparisonPlan(work.folder, sides, options, crowd)
        pairs, crowded = _compare(plan, replace(work, engine=_here(work.engine)))
        sizes = len(sides[0]), len(sides[1])
        groups, passages = pl.DataFrame(schema=GROUPS), pl.DataFrame(schema=BOILERPLATE)
        empty = sides[0].empty + sides[1].empty
        if numbered:
            found = pairs.with_columns(pl.col("right") - len(sides[0])).select(PAIRS.keys())
        else:
            found = _named(plan, pairs)
        return Equivalents(options, sizes, empty, found, groups, passages, crowded)


def _here(engine: Engine) -> Engine:
    """What sorts and joins: processes of this machine, which share its disk. Only texts are worth sending elsewhere."""
    if isinstance(engine, ShardEngine):
        return engine.local
    return LocalEngine(processors()) if isinstance(engine, RayEngine) else engine


def _sketches(documents: Documents | Sketches, options: Shingles, job: Job) -> Sketches:
    if not isinstance(documents, Sketches):
        return keep(documents, options, job)
    kept = documents.options
    if (kept.shingle_unit, kept.shingle_size) != (options.shingle_unit, options.shingle_size):
        fault = (
            f"sketches of {kept.shingle_size} {kept.shingle_unit}, not of {options.shingle_size} {options.shingle_unit}"
        )
        raise InputError(fault, "keep them again with these options", where=documents.folder)
    return documents


def _compare(plan: ComparisonPlan, job: Job, passages: Iterable[str] = ()) -> tuple[pl.DataFrame, int]:
    """All pairs by number, columns as in `RELATIONS`, and how many crowded shingles there are."""
    give_back()
    if plan.firsts[-1] >= NO_TWIN:
        raise InputError(f"{plan.firsts[-1]:,} documents, more than can be numbered", "compare them in parts")
    sides = [[*side.sizes, side.shingles, side.empty] for side in plan.sides]
    _clear_damaged(plan.folder)
    claim(plan.folder, {"format": _FORMAT, "options": plain(plan.options), "sides": sides, "crowd": plan.crowd})
    plan.write_sizes()
    plan.write_boilerplate(passages)
    equals = find_equals(plan, job)
    candidates, crowded = find_candidates(plan, equals, job)
    similar = verify(plan, candidates, job)
    repeats = pl.DataFrame(np.concatenate([equals.of_piece(part) for part in range(plan.parts)])).cast(pl.Int64)
    twins = _twins(plan, repeats.filter(pl.col("twin") != NO_TWIN))
    if plan.border is not None:
        matched = repeats.filter(pl.col("match") != NO_TWIN).select(left="document", right="match")
        similar = similar.join(matched, on=["left", "right"], how="anti")
        others = repeats.filter((pl.col("document") != pl.col("first")) & (pl.col("document") < plan.border))
        alike = similar.join(others.select("document", "first"), left_on="left", right_on="first")
        alike = alike.with_columns(left="document").select(RELATIONS.keys())
        similar = pl.concat([similar, alike])
    return pl.concat([twins, similar]).sort("left", "right"), crowded


def _clear_damaged(folder: Path) -> None:
    """Begins a comparison again where a file of it is damaged: what that was made from may be gone."""
    parts = [path for path in folder.iterdir() if not path.name.endswith("sketches")]
    if not all_whole(parts):
        for part in parts:
            shutil.rmtree(part) if part.is_dir() else part.unlink()


def _twins(plan: ComparisonPlan, repeats: pl.DataFrame) -> pl.DataFrame:
    """Exact and reformatted duplicates with the document that they repeat."""
    document, twin = repeats["document"], repeats["twin"]
    left, right = (twin, document) if plan.border is None else (document, twin)
    words = plan.sizes("words")
    columns: dict[str, Any] = {
        "left": left,
        "right": right,
        "kind": [KINDS[kind] for kind in repeats["kind"]],
        **dict.fromkeys(("jaccard", "left_in_right", "right_in_left", "own_share"), np.ones(len(repeats))),
        "left_words": words[left.to_numpy()].astype(np.int64),
        "right_words": words[right.to_numpy()].astype(np.int64),
    }
    return pl.DataFrame(columns, RELATIONS)


def _named(plan: ComparisonPlan, pairs: pl.DataFrame) -> pl.DataFrame:
    """The pairs with ids for numbers."""
    ids = {}
    for side in ("left", "right"):
        numbers, place = np.unique(pairs[side].to_numpy(), return_inverse=True)
        ids[side] = _ids(plan, numbers).gather(place)
    return pairs.with_columns(**ids).select(PAIRS.keys())


def _ids(plan: ComparisonPlan, numbers: Any) -> pl.Series:
    """The ids of documents by ascending numbers."""
    found = [pl.Series("document_id", [], pl.String)]
    block_of = np.searchsorted(plan.firsts, numbers, side="right") - 1
    for block in np.unique(block_of).tolist():
        sketches, own = plan.places[block]
        found.append(sketches.ids(own).gather(numbers[block_of == block] - plan.firsts[block]))
    return pl.concat(found)
