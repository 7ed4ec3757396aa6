"""The noise of running again: a difference between two systems beside that between repetitions of each.

Scores are y = mean + topic + repeat + rest, with random topics and repeats; the rest holds the interaction of both.
Source: Satterthwaite (1946) for the degrees of freedom of a difference; Williams (1962) for the interval of a
component; Searle, Casella and McCulloch (1992), Variance Components.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import polars as pl
import scipy

from truerank.arrays import Floats
from truerank.errors import InputError, OptionError
from truerank.measures.comparison import Comparison
from truerank.measures.results import Evaluation


class RepeatNoise(NamedTuple):
    """What the scores of one system's repetitions vary by, as standard deviations; 0 where an estimate is below it.

    Attributes:
        repeats: how many.
        topics: how many.
        by_topic: between topics.
        by_repeat: between the means of repetitions, beyond what the rest explains.
        rest: of one topic in one repetition: the interaction, and all else.
        low: the lower end of the interval of `by_repeat`.
        high: the upper end; None where so few repetitions give none.
    """

    repeats: int
    topics: int
    by_topic: float
    by_repeat: float
    rest: float
    low: float
    high: float | None


class RepeatedDifference(NamedTuple):
    """The mean difference of two systems, for other topics and other repetitions.

    Attributes:
        mean: of the first minus the second, over topics and repetitions.
        low: the lower end of its interval.
        freedom: Satterthwaite's degrees of freedom.
        topics_only: the lower and the upper end if repetitions were all alike.
        system: the noise of the first.
        baseline: that of the second.
        detectable: the smallest difference that would be found with a power of 0.8, by repetitions and topics.
    """

    mean: float
    low: float
    high: float
    freedom: float
    topics_only: tuple[float, float]
    system: RepeatNoise
    baseline: RepeatNoise
    detectable: tuple[tuple[int, int, float], ...]


class _Squares(NamedTuple):
    """Mean squares of topics, repeats and the rest, with the degrees of freedom of the last two."""

    topics: float
    repeats: float
    rest: float
    free: tuple[float, float]


def _squares(scores: Floats) -> _Squares:
    topics, repeats = scores.shape
    mean = scores.mean()
    by_topic, by_repeat = scores.mean(axis=1), scores.mean(axis=0)
    rest = scores - by_topic[:, None] - by_repeat[None, :] + mean
    free = (float(max(1, repeats - 1)), float(max(1, (repeats - 1) * (topics - 1))))
    return _Squares(
        float(repeats * np.sum((by_topic - mean) ** 2) / (topics - 1)),
        float(topics * np.sum((by_repeat - mean) ** 2) / free[0]),
        float(np.sum(rest**2) / free[1]),
        free,
    )


def repeat_noise(scores: Floats, confidence: float = 0.95) -> RepeatNoise:
    """The variance components of one system's repetitions.

    Args:
        scores: shape (topics, repeats); finite.
        confidence: of the interval of the noise between repetitions (Williams and Tukey).
    """
    topics, repeats = scores.shape
    if topics < 2 or repeats < 2:
        raise InputError(f"{topics} topics and {repeats} repeats", "give two of each at least")
    squares = _squares(scores)
    between = max(0.0, (squares.repeats - squares.rest) / topics)
    ends = ((1 - confidence) / 2, (1 + confidence) / 2)
    ratios = scipy.special.fdtri(*squares.free, ends)
    least = max(0.0, (squares.repeats / ratios[1] - squares.rest) / topics)
    # Two repetitions leave the upper end open: it would be thirty times what was seen.
    most = (squares.repeats - squares.rest * ratios[0]) / topics * squares.free[0]
    most /= 2 * float(scipy.special.gammaincinv(squares.free[0] / 2, ends[0]))
    high = float(np.sqrt(max(0.0, most))) if repeats > 2 else None
    return RepeatNoise(
        repeats, topics, float(np.sqrt(max(0.0, (squares.topics - squares.rest) / repeats))), float(np.sqrt(between)),
        float(np.sqrt(squares.rest)), float(np.sqrt(least)), high,
    )  # fmt: skip


def repeated_difference(
    system: Floats, baseline: Floats, *, confidence: float = 0.95, sizes: Sequence[int] = (1, 2, 3, 5, 10)
) -> RepeatedDifference:
    """The difference of two systems with the noise of topics and of repetitions.

    Args:
        system: shape (topics, repeats); finite.
        baseline: shape (topics, repeats of its own); finite, of the same topics.
        sizes: numbers of repetitions for which the detectable difference is computed; where there are more repetitions
            than any of these, for their number and twice that, too.
    """
    topics = len(system)
    repeated = [one for one in (system, baseline) if one.shape[1] > 1]
    if topics < 2 or not repeated:
        raise InputError("no repetitions", "give two runs of one system at least, of two topics or more")
    most = max(one.shape[1] for one in repeated)
    sizes = (*sizes, most, 2 * most) if most > max(sizes, default=0) else sizes
    by_topic = system.mean(axis=1) - baseline.mean(axis=1)
    mean = float(by_topic.mean())
    own = float(by_topic.var(ddof=1)) / topics
    variance, parts = own, [own**2 / (topics - 1)]
    between, rest = 0.0, 0.0
    for one in repeated:
        squares, repeats = _squares(one), one.shape[1]
        found = (squares.repeats - squares.rest) / topics / repeats
        rest += squares.rest / len(repeated) * 2
        if found > 0:
            variance += found
            parts += [
                (squares.repeats / topics / repeats) ** 2 / squares.free[0],
                (squares.rest / topics / repeats) ** 2 / squares.free[1],
            ]
            between += found * repeats
    freedom = variance**2 / sum(parts) if variance > 0 else float(topics - 1)
    share = (1 + confidence) / 2
    reach = float(scipy.special.stdtrit(max(freedom, 1.0), share)) * float(np.sqrt(variance))
    alone = float(scipy.special.stdtrit(topics - 1, share)) * float(np.sqrt(own))
    # What topics alone bring, without the rest of single repetitions that is in their differences.
    inside = sum(_squares(one).rest / one.shape[1] for one in repeated)
    pure = max(0.0, own * topics - inside)
    z = float(scipy.special.ndtri(share) + scipy.special.ndtri(0.8))
    planned = tuple(
        (repeats, topics * times, z * float(np.sqrt((pure + rest / repeats) / (topics * times) + between / repeats)))
        for repeats in sizes
        for times in (1, 4)
    )
    noise = [
        repeat_noise(one, confidence) if one.shape[1] > 1
        else RepeatNoise(1, topics, float(one.std(ddof=1)), 0.0, 0.0, 0.0, None)
        for one in (system, baseline)
    ]  # fmt: skip
    return RepeatedDifference(
        mean, mean - reach, mean + reach, freedom, (mean - alone, mean + alone), noise[0], noise[1], planned
    )


#: Files that lie beside the runs of a folder, by the beginning of their names and by their ending.
_BESIDE: Final = (("readme", "license", "log", "notes"), (".md", ".log", ".yaml", ".yml", ".toml", ".sh", ".py"))


def apart_from_repeats(own: Floats, repetitions: Floats) -> tuple[int, float]:
    """How many other repetitions a run has, and the chance that it is so far above them (Student's t of one more).

    Args:
        own: its scores, shape (topics,).
        repetitions: shape (topics, repetitions); where it is one of them, it may be the best of all.
    """
    others = repetitions[:, (repetitions != own[:, None]).any(axis=0)].mean(axis=0)
    if len(others) < 2 or not (spread := float(others.std(ddof=1))):
        return len(others), 1.0
    t = (own.mean() - others.mean()) / (spread * math.sqrt(1 + 1 / len(others)))
    tried = repetitions.shape[1] if len(others) < repetitions.shape[1] else 1
    return len(others), min(1.0, tried * float(scipy.special.stdtr(len(others) - 1, -t)))


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
