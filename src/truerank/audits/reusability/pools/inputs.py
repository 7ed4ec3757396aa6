"""What pools are made of: runs by name, and which team made which run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import polars as pl

from truerank.audits.track.inputs import RowFilter, read_metadata
from truerank.errors import InputError, OptionError
from truerank.sources import parse, read_run_frame, unique_names
from truerank.text.printable import first_few

_SHOWN: Final = 5


def read_runs(paths: Sequence[str | Path]) -> dict[str, pl.DataFrame]:
    """Reads runs: by name, columns topic_id, doc_id, rank and score."""
    if not paths:
        raise OptionError("run", "no runs", "give one or more")
    names = unique_names([parse(str(path)) for path in paths])
    columns = ["topic_id", "doc_id", "rank", "score"]
    return {name: read_run_frame(path).select(columns) for name, path in zip(names, paths, strict=True)}


def teams_of(runs: Sequence[str], metadata: Sequence[str | Path] = (), prefix: str | None = None) -> dict[str, str]:
    """The team of each run.

    Args:
        runs: their names.
        metadata: tables with a column of runs and one of teams (team, group, participant, …).
        prefix: the sign up to which a run's name is its team's name, where no table says it.

    Returns:
        Team by run, in the order of the runs. Without tables and prefix every run is a team of its own.

    Raises:
        InputError: a run whose team is not said.
    """
    if not metadata and prefix is None:
        return {run: run for run in runs}
    known = read_metadata(metadata, RowFilter())
    found = {run: known.of(run).group or _prefix(run, prefix) for run in runs}
    missing = [run for run, team in found.items() if not team]
    if missing:
        rule = f" and no '{prefix}' in its name" if prefix else ""
        raise OptionError(
            "metadata" if metadata else "team_prefix",
            f"no team for the run {first_few(missing, _SHOWN)}{rule}",
            "name its team in a table (`metadata`, with columns run and team), or give another `team_prefix`",
        )
    return found


def check_topics(
    runs: Mapping[str, pl.DataFrame], topics: Sequence[str] | None, *, subset: bool = False
) -> dict[str, pl.DataFrame]:
    """The runs with the topics that are pooled."""
    if topics is None:
        return dict(runs)
    wanted = pl.DataFrame({"topic_id": list(topics)}, schema={"topic_id": pl.String})
    kept = {}
    for name, frame in runs.items():
        inside = frame.join(wanted, on="topic_id", how="semi", maintain_order="left")
        unknown = frame["topic_id"].unique(maintain_order=True)
        unknown = unknown.filter(~unknown.is_in(wanted["topic_id"].implode()))
        if not len(inside):
            raise InputError(
                "the run has none of the topics", f"it has {first_few(unknown.to_list(), _SHOWN)}", where=name
            )
        if len(unknown) and not subset:
            raise InputError(
                f"the run has topics that are not known ({len(unknown):,}): {first_few(unknown.to_list(), _SHOWN)}",
                "give the topics of the run, or pass over these with `subset`",
                where=name,
            )
        kept[name] = inside
    return kept


def _prefix(run: str, prefix: str | None) -> str:
    return run.partition(prefix)[0] if prefix and prefix in run else ""
