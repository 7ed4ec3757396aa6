"""The neighbours of topic texts in one training source, by a cascade of passes.

    read → distinct → [filter] → [low-precision scan] → exact scan → select

Each pass reads what the one before let through, in blocks that are saved as they finish.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from truerank.text.normalising import normalise
from truerank.vectors.encoders.base import Encoder, Vectors
from truerank.vectors.neighbours import (
    KEPT_SCHEMA,
    LISTS,
    TRUSTED,
    Bars,
    PairProbe,
    Rows,
    ScanTask,
    TextBlock,
    above_bars,
    blocks_of,
    grouped,
    rounded,
    select,
    wider,
)
from truerank.vectors.prefilter import Filtered, FilterPlan, filter_blocks
from truerank.work.blocks import BlockStore, run_blocks
from truerank.work.engines import give_back
from truerank.work.jobs import Job
from truerank.work.kept import keep_json, kept_json

#: Texts of a source on which the error of the low-precision pass is measured, and nearest topic texts of each.
_PILOT_TEXTS = 256
_PILOT_TOPICS = 8
#: Fewer texts are not worth a pilot and a first pass; nor, where the error is known already, a first pass.
_WORTH_A_PILOT = 2048
_WORTH_SCREENING = 256
#: The error that a scan allows for, as a multiple of the largest that the pilot showed; and its smallest value.
_SAFETY = 2.0
_LEAST_ERROR = 0.004


def _all_read(texts: Sequence[str]) -> NDArray[np.bool_]:
    return np.zeros(len(texts), np.bool_)


@dataclass(frozen=True)
class SearchPlan:
    """What to look for and how.

    Args:
        open_exact: opens the full-precision encoder.
        open_screen: opens a low-precision encoder of the same model for a first pass; None for no such pass.
        choose_screen: for a source that is worth a first pass, says what opens the encoder of that pass, and how that
            is called; None for no such pass.
        screen: how the first pass is called.
        device: where the encoders run.
        topic_vectors: gives the full-precision unit vectors of the topic texts, shape (topics, dimension); asked for
            when the first text is compared, so that they can be computed while texts are filtered.
        floor: pairs above this similarity are wanted.
        top_k: so many nearest texts of each topic text are wanted. With a low-precision pass, those at or below the
            floor keep that pass's similarity and are marked as not exact.
        probe: names pairs that are wanted whatever their similarity.
        prefilter: the filter in front of the encoder; None for exhaustive search.
        error: the error to allow for in the low-precision pass, where another source has shown it already.
        block_size: texts in a block.
        unread: which texts the encoder cannot read; asked about topic texts, and of pairs that the scan names.
    """

    open_exact: Callable[[], Encoder]
    topic_vectors: Callable[[], Vectors]
    floor: float
    top_k: int
    open_screen: Callable[[], Encoder] | None = None
    choose_screen: Callable[[Rows], tuple[Callable[[], Encoder], str] | None] | None = None
    probe: PairProbe | None = None
    prefilter: FilterPlan | None = None
    error: float | None = None
    block_size: int = 8192
    screen: str = "low precision"
    device: str | None = None
    unread: Callable[[Sequence[str]], NDArray[np.bool_]] = _all_read

    def after(self, searched: Iterable[NeighbourPairs]) -> SearchPlan:
        """The plan for further texts: it allows for the largest error that some source has made necessary."""
        allowed = [found.screen.allowed for found in searched if found.screen is not None]
        return replace(self, error=max(allowed)) if allowed else self


@dataclass(frozen=True)
class ScreenCheck:
    """How the low-precision pass held up.

    Attributes:
        allowed: the error that the pass allowed for at the floor.
        largest: the largest difference between low and full precision seen among the pairs that were encoded twice.
        way: how the pass ran.
    """

    allowed: float
    largest: float
    pairs: int
    way: str


@dataclass(frozen=True)
class NeighbourPairs:
    """What was found in one source.

    Attributes:
        pairs: columns as in `PAIR_SCHEMA`.
        screen: the check of the low-precision pass, if there was one.
        filtered: what the prefilter did, if there was one.
    """

    pairs: pl.DataFrame
    screen: ScreenCheck | None = None
    filtered: Filtered | None = None


def search(rows: Rows, plan: SearchPlan, job: Job) -> NeighbourPairs:
    """Finds the neighbours of the topic texts in one source."""
    if plan.prefilter is None:
        return _scan(rows, plan, job)
    job.progress.start("filtering")
    filtered = filter_blocks(rows, plan.prefilter, job.part("filter"))
    give_back()
    found = _scan(filtered.chosen, plan, job)
    above = found.pairs.filter(pl.col("similarity") > pl.lit(plan.floor, pl.Float32))
    sample = filtered.with_sample(above.join(filtered.sample.select("position"), on="position", how="semi"))
    return replace(found, filtered=sample)


def _scan(rows: Rows, plan: SearchPlan, job: Job) -> NeighbourPairs:
    job.progress.start("encoding topics")
    exact = ScanTask(
        plan.open_exact, plan.topic_vectors(), plan.floor, plan.top_k, probe=plan.probe, device=plan.device
    )
    plan = _with_screen(rows, plan)
    if plan.open_screen is None:
        job.progress.start("encoding and comparing")
        return NeighbourPairs(_selected(_pass(rows, exact, plan.block_size, job.part("exact")), plan))
    job.progress.start("measuring the first pass")
    error = _kept_error(rows, plan, job.folder) if plan.error is None else plan.error
    while True:
        coarse = replace(exact, open_encoder=plan.open_screen, error=error)
        found, check = _screened(rows, plan, coarse, job)
        if check.largest <= TRUSTED * error:
            return NeighbourPairs(_selected(found, plan), check)
        job.progress.note(f"the low-precision pass was off by {check.largest:.4f}; scanning again with a wider margin")
        error = wider(error, check.largest)


def reach_floor(texts: Sequence[str], own: Sequence[Sequence[int]], plan: SearchPlan) -> NDArray[np.bool_]:
    """Which texts have, in full precision, a similarity above the floor to one of their own topic texts; (texts,).

    The passes and their bounds are those of a search. Only whether the floor is reached is asked, so texts that the
    low-precision pass shows to be further from the floor than its error, above or below, are not encoded again.
    Whether the encoder reads a text is not asked: near a topic text that it reads, it does (of 1,024 rewordings above
    the floor, two were not read).
    """
    plan = _with_screen(lambda: [(place, "", text, text) for place, text in enumerate(dict.fromkeys(texts))], plan)
    topics = plan.topic_vectors()
    floor = np.float32(plan.floor)

    def nearest(encoder: Encoder, places: NDArray[np.intp]) -> Vectors:
        """The highest similarity of each text."""
        row_of = {text: row for row, text in enumerate(dict.fromkeys(texts[place] for place in places.tolist()))}
        vectors = encoder.encode(list(row_of))
        highest = ((topics[list(own[place])] @ vectors[row_of[texts[place]]]).max() for place in places.tolist())
        return rounded(np.fromiter(highest, np.float32, len(places)))

    exact, every = plan.open_exact(), np.arange(len(texts))
    if plan.open_screen is None:
        return nearest(exact, every) > floor
    error = _measured_error(list(dict.fromkeys(texts)), plan) if plan.error is None else plan.error
    return above_bars(nearest(plan.open_screen(), every), floor, error, partial(nearest, exact))


def _with_screen(rows: Rows, plan: SearchPlan) -> SearchPlan:
    """The plan for one source: with a first pass where the source is worth one."""
    fewest = _WORTH_A_PILOT if plan.error is None else _WORTH_SCREENING
    if plan.open_screen is None and plan.choose_screen is None:
        return plan
    if sum(1 for _ in islice(rows(), fewest)) < fewest:
        return replace(plan, open_screen=None)
    chosen = None if plan.open_screen is not None or plan.choose_screen is None else plan.choose_screen(rows)
    return plan if chosen is None else replace(plan, open_screen=chosen[0], screen=chosen[1])


def _selected(kept: pl.DataFrame, plan: SearchPlan) -> pl.DataFrame:
    """The result of an exact scan; a text of a candidate pair that the encoder cannot read has no similarity."""
    pairs = select(kept, plan.floor, plan.top_k)
    named = (pl.col("similarity") > pl.lit(plan.floor, pl.Float32)) | (pl.col("probed") > 0)
    texts = pairs.filter(named)["text"].unique(maintain_order=True)
    silent = texts.filter(pl.Series(plan.unread([normalise(text) for text in texts]), dtype=pl.Boolean))
    nothing = pl.when(pl.col("text").is_in(silent.implode())).then(pl.lit(0, pl.Float32))
    return pairs.with_columns(similarity=nothing.otherwise("similarity"))


def _screened(rows: Rows, plan: SearchPlan, coarse: ScanTask, job: Job) -> tuple[pl.DataFrame, ScreenCheck]:
    """A low-precision pass, then an exact one over the texts that may have a pair above the floor."""
    job.progress.start("first pass, low precision")
    part = f"{_file_name(plan)}-{coarse.error:.6f}"
    seen = _pass(rows, coarse, plan.block_size, job.part(f"screen-{part}"))
    give_back()
    # All pairs that the first pass may have seen at its bar, so that none of them keeps a low-precision similarity.
    near = replace(coarse, open_encoder=plan.open_exact, floor=plan.floor - 2 * coarse.error, error=0.0, top_k=0)
    job.progress.start("second pass, full precision")
    kept = _pass(lambda: _survivors(seen, coarse), near, plan.block_size, job.part(f"verify-{part}"))
    return _exact_where_known(seen, kept, coarse), _compare(seen, kept, coarse.error, plan.screen)


def _rows_of(kept: pl.DataFrame) -> Iterator[tuple[int, str, str, str]]:
    for position, query_id, text in kept.select("position", "query_id", "text").iter_rows():
        yield position, query_id, text, normalise(text)


def _file_name(plan: SearchPlan) -> str:
    return "-".join(plan.screen.split())


def _survivors(seen: pl.DataFrame, coarse: ScanTask) -> Iterator[tuple[int, str, str, str]]:
    """The texts that may have a pair above the floor, and those with a probed pair."""
    near = pl.col("similarities").list.max() >= coarse.floor - coarse.error
    return _rows_of(seen.filter(near | (pl.col("probed").list.max() > 0)))


def _exact_where_known(every: pl.DataFrame, kept: pl.DataFrame, coarse: ScanTask) -> pl.DataFrame:
    """Pairs in full precision; the neighbours at or below the floor that have none as the first pass saw them."""
    known = kept.select("position").unique()
    rest = every.join(known, on="position", how="anti")
    both = every.join(known, on="position", how="semi")
    exact = kept.select("position", "topic_nos").explode("topic_nos", empty_as_null=False)
    seen = both.explode(LISTS, empty_as_null=False).join(exact, on=["position", "topic_nos"], how="anti")
    low = seen.filter(pl.col("similarities") < coarse.floor - coarse.error)
    return pl.concat([kept, rest, grouped(low)])


def _pass(rows: Rows, task: ScanTask, block_size: int, job: Job) -> pl.DataFrame:
    """What a pass kept of all blocks, as in `KEPT_SCHEMA`."""
    store = BlockStore(job.folder, job.key)
    bars = Bars(len(task.topic_vectors), task.top_k)

    def settle(kept: pl.DataFrame) -> pl.DataFrame:
        bars.raise_by(kept)
        return bars.still_in(kept, task.floor, task.error)

    def counted(blocks: Iterator[TextBlock]) -> Iterator[TextBlock]:
        for block in blocks:
            yield block
            job.progress.advance(len(block.texts))

    count = run_blocks(task, counted(blocks_of(rows(), block_size)), store, job.engine, settle, known=True)
    frames = [bars.still_in(store.load(number), task.floor, task.error) for number in range(count)]
    return pl.concat([pl.DataFrame(schema=KEPT_SCHEMA), *frames])


def _kept_error(rows: Rows, plan: SearchPlan, folder: Path) -> float:
    """The error to allow for at the floor, from an unfinished run or measured on the source's first texts."""
    path = folder / f"pilot-{_file_name(plan)}.json"
    if (known := kept_json(path)) is not None:
        return float(known["error"])
    texts = [row[3] for row in islice(rows(), _PILOT_TEXTS)]
    error = _measured_error(texts, plan)
    keep_json(path, {"error": error, "texts": len(texts)})
    return error


def _measured_error(texts: Sequence[str], plan: SearchPlan) -> float:
    """The error to allow for at the floor: twice what some of the texts show against their nearest topics."""
    texts = texts[:: max(1, len(texts) // _PILOT_TEXTS)][:_PILOT_TEXTS]
    if not texts or plan.open_screen is None:
        return _LEAST_ERROR
    exact = plan.open_exact().encode(texts) @ plan.topic_vectors().T
    coarse = plan.open_screen().encode(texts) @ plan.topic_vectors().T
    nearest = np.argsort(-exact, axis=1, kind="stable")[:, :_PILOT_TOPICS]
    similarity = np.take_along_axis(exact, nearest, axis=1)
    difference = np.abs(similarity - np.take_along_axis(coarse, nearest, axis=1))
    # What a changed vector does to a cosine shrinks with the sine of the angle: carried over to the floor. Well
    # above the floor no error matters.
    highest = (1 + plan.floor) / 2
    sine = np.sqrt(1 - np.minimum(similarity, highest) ** 2)
    at_floor = float((difference / sine).max()) * math.sqrt(max(0.0, 1 - plan.floor**2))
    return max(_LEAST_ERROR, round(_SAFETY * at_floor, 6))


def _compare(coarse: pl.DataFrame, exact: pl.DataFrame, allowed: float, way: str) -> ScreenCheck:
    lists = ["topic_nos", "similarities"]
    both = (
        coarse.select("position", *lists)
        .explode(lists, empty_as_null=False)
        .join(exact.select("position", *lists).explode(lists, empty_as_null=False), on=["position", "topic_nos"])
    )
    difference = (both["similarities"] - both["similarities_right"]).abs()
    return ScreenCheck(allowed, round(float(difference.max() or 0.0), 6), len(both), way)  # type: ignore[arg-type]
