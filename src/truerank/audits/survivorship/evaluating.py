"""`truerank survivorship evaluate`: systems scored by the judgments of every annotation depth."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Final, NamedTuple

import numpy as np
import polars as pl
from ir_measures.measures.base import Measure
from numpy.typing import NDArray

from truerank.audits.survivorship.depths import by_depth, depth_label
from truerank.audits.survivorship.evaluation import DepthEvaluation, DepthScores, EvaluateOptions
from truerank.errors import InputError, OptionError
from truerank.measures import evaluate as score_runs
from truerank.measures import parse_measures
from truerank.measures.grammar import MeasureSpec
from truerank.measures.rankings import whole_topics
from truerank.options import Flag, Out, Scoring, command
from truerank.records import Input
from truerank.sources import parse, read_qrels_frame, read_run_frame, run_frames, unique_names
from truerank.sources.inputs import input_of
from truerank.work.progress import Progress, Quiet
from truerank.work.publishing import publish
from truerank.work.runs import run as started

_PACKAGES: Final = ("ir-measures", "scipy", "matplotlib")
_NAMED: Final = re.compile(r"(?P<name>.+)-(?P<label>0*[1-9]\d*|all)\.qrels(\.(gz|bz2|xz|zst))?")


@command
def evaluate(
    run: Annotated[str | Path | Sequence[str | Path], Flag(metavar="FILE", reads=list[str])],
    depths: Annotated[str | Path | None, Flag(metavar="DIR", reads=Path)] = None,
    qrels: Annotated[Mapping[str, str], Flag(metavar="K=FILE")] = MappingProxyType({}),
    measures: Annotated[MeasureSpec, Flag(reads=str)] = "RR_MSMARCO@10",
    *,
    options: EvaluateOptions = EvaluateOptions(),
    scoring: Scoring = Scoring(),
    out: Out = None,
    progress: Progress | None = None,
) -> DepthEvaluation:
    """Scores runs by the judgments of each annotation depth, to show whether a shallow annotation moves the figures.

    Each depth is tested against the full set; the trend has an interval; the order of the systems is compared; and all
    of it once more with the first judgment of each query only.

    Args:
        run: TREC runs; repeat the option for several. Each is read once.
        depths: the folder that survivorship depth wrote, or one with files NAME-K.qrels.
        qrels: in its place, judgments by depth, and all=FILE. In Python files by depth.
        measures: measures of ir_measures, separated by blanks; RR_MSMARCO@10 follows the official rules.
        options: how depths are compared with the full set.
        scoring: how runs are scored.
        out: a folder for page, tables, scores.parquet and manifest.
        progress: is told about the work.

    Returns:
        Scores by depth with their tests, trends and the order of the systems.

    Raises:
        InputError: a fault in a file, or in how the files fit together.

    Examples:

        truerank survivorship evaluate --depths depths/ --run bm25.run --run monot5.run --out scores/

        truerank survivorship evaluate --qrels 1=dev-1.qrels --qrels all=dev.qrels --run bm25.run --significance nested

    Source: Gupta, MacAvaney: On Survivorship Bias in MS MARCO (SIGIR 2022), section 4, Table 4.
    """
    paths = [str(one) for one in ([run] if isinstance(run, str | Path) else run)]
    if not paths:
        raise OptionError("run", "no run", "name at least one")
    sets = read_depth_sets(depths, qrels)
    names = unique_names([parse(path) for path in paths])
    cutoff = largest_cutoff(parse_measures(measures))
    wanted = _queries(sets)
    told = progress or Quiet()
    told.start("runs", total=len(names))
    scored: dict[str, _Run] = {}
    for name, path in zip(names, paths, strict=True):
        kept = kept_run(path, wanted, cutoff)
        scored[name] = _Run(_scored(name, kept.rows, (sets, wanted), measures, scoring), kept.queries, kept.unknown)
        told.advance(1)
    result = replace(_result(sets, wanted, scored, options, scoring), out=None if out is None else Path(out))
    if out is not None:
        inputs = (*sets.inputs, *(input_of("run", path, name) for name, path in zip(names, paths, strict=True)))
        chosen = {"measures": list(result.measures), "options": options, "scoring": scoring}
        with started("survivorship evaluate", inputs, chosen, out, packages=_PACKAGES) as job:
            job.skipped = {"unknown_queries": {name: number for name, number in result.unknown.items() if number}}
            job.parquet("scores.parquet", result.frame())
            publish(result, job)
    return result


@dataclass(frozen=True, eq=False)
class DepthSets:
    """Judgments by depth.

    Attributes:
        name: of the log that they come from.
        every: by label, the shallowest first: all judgments; the last one is the full set.
        first: the same with the first judgment of each query only.
        derived: the first judgments were told from the depths at which judgments appear.
        strays: judgments of a depth that the full set lacks.
        inputs: for the manifest.
    """

    name: str
    every: Mapping[str, pl.DataFrame]
    first: Mapping[str, pl.DataFrame]
    derived: bool = False
    strays: int = 0
    inputs: tuple[Input, ...] = ()

    @property
    def labels(self) -> tuple[str, ...]:
        """The depths, the full set last."""
        return tuple(self.every)

    @property
    def places(self) -> tuple[float, ...]:
        """Where the depths stand on an axis; the whole log stands one after the last number."""
        numbers = [int(label) for label in self.labels if label.isdigit()]
        beyond = max(numbers, default=0) + 1
        return tuple(float(label) if label.isdigit() else float(beyond) for label in self.labels)


def read_depth_sets(folder: str | Path | None = None, files: Mapping[str, str] = MappingProxyType({})) -> DepthSets:
    """Reads judgments by depth."""
    if (folder is None) == (not files):
        remedy = "give `depths`, or `qrels` K=FILE for each depth"
        raise InputError("judgments by depth are needed", remedy, where="survivorship evaluate")
    if folder is not None:
        name, paths, firsts = _of_folder(Path(folder))
    else:
        name, paths, firsts = "qrels", _of_files(files), {}
    if len(paths) < 2:
        fault = f"{len(paths)} annotation depth" + "s" * (not paths)
        raise InputError(fault, "give two or more, the full set included", where=folder or "qrels")
    every = {label: read_qrels_frame(str(path)) for label, path in paths.items()}
    derived = set(firsts) != set(paths)
    first = _firsts(every) if derived else {label: read_qrels_frame(str(firsts[label])) for label in paths}
    if empty := next((label for label, frame in first.items() if not len(frame)), None):
        raise InputError("no relevant judgment in it", "leave this depth out", where=paths[empty])
    whole = every[list(every)[-1]]
    keys = ["topic_id", "doc_id"]
    strays = sum(len(frame.join(whole, on=keys, how="anti")) for frame in every.values())
    inputs = tuple(input_of("qrels", path, label, len(every[label])) for label, path in paths.items())
    return DepthSets(name, every, first, derived, strays, inputs)


def _of_folder(folder: Path) -> tuple[str, dict[str, Path], dict[str, Path]]:
    if not folder.is_dir():
        raise InputError("no folder", "give what 'survivorship depth --out' wrote", where=folder)
    inner = folder / "qrels"
    found = _named_files(inner if inner.is_dir() else folder)
    if len(found) != 1:
        names = ", ".join(sorted(found)) or "none"
        fault = f"judgments NAME-K.qrels of one name are needed, there are: {names}"
        raise InputError(fault, "name the files with `qrels` K=FILE", where=folder)
    name = next(iter(found))
    firsts = _named_files(folder / "first") if (folder / "first").is_dir() else {}
    return name, found[name], firsts.get(name, {})


def _named_files(folder: Path) -> dict[str, dict[str, Path]]:
    found: dict[str, dict[str, Path]] = {}
    for path in sorted(folder.iterdir()):
        if (match := _NAMED.fullmatch(path.name)) and path.is_file():
            found.setdefault(match["name"], {})[depth_label(match["label"], "depths")] = path
    return {name: _ordered(paths) for name, paths in found.items()}


def _of_files(files: Mapping[str, str]) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for label, path in files.items():
        label = depth_label(label, "qrels", f"{label}={path}")
        if label in found:
            raise OptionError("qrels", f"the depth {label} stands there twice", "give each once")
        found[label] = Path(path)
    return _ordered(found)


def _ordered(paths: Mapping[str, Path]) -> dict[str, Path]:
    return {label: paths[label] for label in sorted(paths, key=by_depth)}


def _firsts(every: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """The judgment of each query that appears first, by the depth and then by the order of the file."""
    seen = pl.concat(
        [
            frame.with_columns(pl.lit(place, pl.Int32).alias("level")).with_row_index("row")
            for place, frame in enumerate(every.values())
        ]
    ).filter(pl.col("relevance") > 0)
    first = seen.sort("level", "row").unique("topic_id", keep="first", maintain_order=True)
    return {
        label: first.filter(pl.col("level") <= place).select(frame.columns)
        for place, (label, frame) in enumerate(every.items())
    }


@dataclass(frozen=True, eq=False)
class KeptRun:
    """The rows of a run that can be scored: those of the wanted queries, above the largest cutoff."""

    rows: pl.DataFrame
    queries: frozenset[str]
    unknown: int


def largest_cutoff(measures: Sequence[Measure]) -> int | None:
    """The rank beyond which no measure looks; None if one looks at all results."""
    cutoffs = [measure.params.get("cutoff") for measure in measures]
    if any(
        cutoff is None or measure.params.get("judged_only") for cutoff, measure in zip(cutoffs, measures, strict=True)
    ):
        return None
    return max(int(cutoff) for cutoff in cutoffs if cutoff is not None)


def kept_run(path: str, wanted: pl.Series, cutoff: int | None) -> KeptRun:
    """Reads a run in pieces and keeps what is scored."""
    parts: list[pl.DataFrame] = []
    topics: set[str] = set()
    for piece in whole_topics(run_frames(path)):
        if piece is None:
            # Topics that come back: the whole run has to be seen.
            whole = read_run_frame(path)
            parts, topics = [_cut(whole, wanted, cutoff)], set(whole["topic_id"].unique())
            break
        parts.append(_cut(piece, wanted, cutoff))
        topics.update(piece["topic_id"].unique())
    there = frozenset(topics & set(wanted))
    if not there:
        fault = f"the run holds none of the {len(wanted):,} queries of the judgments"
        raise InputError(fault, f"give matching files; the judgments have '{wanted[0]}'", where=path)
    return KeptRun(pl.concat(parts, rechunk=True), there, len(topics) - len(there))


def _cut(piece: pl.DataFrame, wanted: pl.Series, cutoff: int | None) -> pl.DataFrame:
    kept = piece.filter(pl.col("topic_id").is_in(wanted.implode())).drop("tag")
    if cutoff is None:
        return kept
    scores = pl.col("score").cast(pl.Float32)
    best = scores.rank("min", descending=True).over("topic_id") <= cutoff
    return kept.filter(best | (pl.col("rank").rank("min").over("topic_id") <= cutoff))


@dataclass(frozen=True, eq=False)
class _Scores:
    """One run's scores: `values` of shape (measures, depths, queries), NaN where a depth lacks the query."""

    measures: tuple[str, ...]
    values: NDArray[np.float64] = field(repr=False)


class _Run(NamedTuple):
    """One run: its scores by set of judgments, which of the queries it has, and how many others."""

    scores: Mapping[str, _Scores]
    queries: frozenset[str]
    unknown: int


def _queries(sets: DepthSets) -> pl.Series:
    """The queries of all depths, those of the full set first."""
    frames = [frame["topic_id"] for frame in reversed(list(sets.every.values()))]
    return pl.concat(frames).unique(maintain_order=True).alias("topic_id")


def _scored(
    name: str, rows: pl.DataFrame, judged: tuple[DepthSets, pl.Series], measures: MeasureSpec, scoring: Scoring
) -> dict[str, _Scores]:
    sets, wanted = judged
    places = pl.DataFrame({"topic_id": wanted}).with_row_index("place")
    found: dict[str, _Scores] = {}
    for variant, frames in (("all", sets.every), ("first", sets.first)):
        layers: list[NDArray[np.float64]] = []
        spelled: tuple[str, ...] = ()
        for qrels in frames.values():
            scores = score_runs(qrels, {name: rows}, measures, scoring)
            spelled = scores.measures
            at = pl.DataFrame({"topic_id": scores.topics}).join(places, on="topic_id", maintain_order="left")["place"]
            layer = np.full((len(spelled), len(wanted)), np.nan)
            layer[:, at.to_numpy()] = scores.values[0]
            layers.append(layer)
        found[variant] = _Scores(spelled, np.stack(layers, axis=1))
    return found


def _result(
    sets: DepthSets,
    wanted: pl.Series,
    runs: Mapping[str, _Run],
    options: EvaluateOptions,
    scoring: Scoring,
) -> DepthEvaluation:
    measures = next(iter(runs.values())).scores["all"].measures
    variants = {}
    for variant, frames in (("all", sets.every), ("first", sets.first)):
        values = np.stack([run.scores[variant].values for run in runs.values()])
        queries = {label: frozenset(frame["topic_id"]) for label, frame in frames.items()}
        variants[variant] = DepthScores(
            values=values,
            qrels=tuple(len(frame) for frame in frames.values()),
            queries=tuple(len(ids) for ids in queries.values()),
            present={name: tuple(len(ids & run.queries) for ids in queries.values()) for name, run in runs.items()},
            together=tuple(len(ids.intersection(*(run.queries for run in runs.values()))) for ids in queries.values()),
        )
    return DepthEvaluation(
        name=sets.name,
        labels=sets.labels,
        places=sets.places,
        systems=tuple(runs),
        measures=measures,
        topics=tuple(wanted),
        variants=variants,
        options=options,
        scoring=scoring,
        derived=sets.derived,
        strays=sets.strays,
        unknown={name: run.unknown for name, run in runs.items()},
    )
