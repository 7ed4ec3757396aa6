"""Repetitions of systems as people give them, and the differences of systems beside the noise between them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl

from truerank.arrays import Floats
from truerank.errors import OptionError
from truerank.measures.comparison import Comparison
from truerank.measures.repeats import RepeatedDifference, repeated_difference
from truerank.measures.results import Evaluation

#: Files that lie beside the runs of a folder, by the beginning of their names and by their ending.
_BESIDE: Final = (("readme", "license", "log", "notes"), (".md", ".log", ".yaml", ".yml", ".toml", ".sh", ".py"))


class RepeatedPair(NamedTuple):
    """Two systems by one measure, and the first minus the second."""

    run: str
    baseline: str
    measure: str
    found: RepeatedDifference


def run_files(given: Any, option: str = "tried") -> Any:
    """Runs as they are, and the files of a folder in its place, without what else lies in it, such as a README."""
    if not isinstance(given, str | Path | list | tuple):
        return given
    found: list[Any] = []
    for one in [given] if isinstance(given, str | Path) else given:
        if isinstance(one, str | Path) and Path(one).is_dir():
            names, endings = _BESIDE
            files = [
                file
                for file in sorted(Path(one).iterdir())
                if file.is_file() and not file.name.lower().startswith((".", *names)) and file.suffix not in endings
            ]
            if not files:
                raise OptionError(option, f"no file in {one}", "name the folder that holds the runs")
            found += [str(file) for file in files]
        else:
            found.append(one)
    return found


def repeat_files(given: Any) -> dict[str, Any]:
    """The repetitions of each system: runs by name, or the files that a pattern names."""
    if isinstance(given, Mapping):
        return dict(given)
    found: dict[str, Any] = {}
    for one in [given] if isinstance(given, str) else given:
        name, equals, pattern = str(one).partition("=")
        if not equals or not name:
            raise OptionError("repeats", f"'{one}' names no system", "write NAME=FILES, such as a=runs/a.*.run")
        path = Path(pattern)
        files = run_files(path, "repeats") if path.is_dir() else sorted(map(str, path.parent.glob(path.name)))
        if len(files) < 2:
            raise OptionError("repeats", f"{len(files)} files are named by {pattern}", "name two repetitions at least")
        found[name] = files
    return found


def merged_repeats(found: Evaluation, systems: Mapping[str, Sequence[str]]) -> Evaluation:
    """The evaluation with the repetitions of a system as one run, their mean.

    Args:
        systems: the runs of each system.
    """
    own = {run for runs in systems.values() for run in runs}
    members = {**{run: [run] for run in found.runs if run not in own}, **systems}
    values = np.stack([found.values[[found.runs.index(run) for run in runs]].mean(axis=0) for runs in members.values()])
    return replace(
        found, runs=tuple(members), values=values,
        missing={name: max(found.missing.get(run, 0) for run in runs) for name, runs in members.items()},
        coverage={name: found.coverage[runs[0]] for name, runs in members.items() if runs[0] in found.coverage},
    )  # fmt: skip


def scores_by_repeat(found: Evaluation, systems: Mapping[str, Sequence[str]]) -> dict[tuple[str, str], Floats]:
    """The scores of repeated systems by system and measure, shape (topics, repetitions)."""
    return {
        (system, measure): np.stack([found.of(run, measure) for run in runs], axis=1)
        for system, runs in systems.items()
        for measure in found.measures
    }


def scores_of_table(found: Evaluation, repeats: Mapping[str, pl.DataFrame]) -> dict[tuple[str, str], Floats]:
    """The same of a score table: NaN for questions that lack a repetition."""
    topics = pl.DataFrame({"topic_id": found.topics})
    by_system = {
        system: topics.join(frame, on="topic_id", how="left", maintain_order="left").drop("topic_id").cast(pl.Float64)
        for system, frame in repeats.items()
    }
    return {(system, found.measures[0]): frame.to_numpy() for system, frame in by_system.items()}


def repeated_pairs(
    found: Evaluation, comparison: Comparison, scores: Mapping[tuple[str, str], Floats], confidence: float
) -> Iterator[RepeatedPair]:
    """The compared pairs of which a system was repeated."""
    for row in comparison.differences:
        names = (row.run, row.baseline)
        if not any((name, row.measure) in scores for name in names) or not set(names) <= set(found.runs):
            continue
        both = [scores.get((name, row.measure), found.of(name, row.measure)[:, None]) for name in names]
        known = np.isfinite(np.concatenate(both, axis=1)).all(axis=1)
        if known.sum() > 1:
            own, other = both[0][known], both[1][known]
            yield RepeatedPair(*names, row.measure, repeated_difference(own, other, confidence=confidence))
